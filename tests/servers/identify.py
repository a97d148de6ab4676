"""Ask a server what it is."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

import psycopg
import pymysql

# What a driver says when nobody, or nobody who speaks its protocol, answers.
NO_ANSWER = (pymysql.Error, psycopg.Error, OSError)


@dataclass(frozen=True)
class Address:
    """Host, port and login of an administrator, taken from a DSN."""

    host: str
    port: int
    user: str
    password: str

    @classmethod
    def of(cls, dsn: str, default_port: int) -> Address:
        url = urlsplit(dsn)
        return cls(
            url.hostname or "127.0.0.1",
            url.port or default_port,
            unquote(url.username or ""),
            unquote(url.password or ""),
        )


def identify(family: str, dsn: str) -> tuple[str, str]:
    """Product and version, as the server itself says; raises one of NO_ANSWER."""
    return {"mysql": _identify_mysql, "postgresql": _identify_postgresql, "redis": _identify_redis}[family](dsn)


def _identify_mysql(dsn: str) -> tuple[str, str]:
    address = Address.of(dsn, 3306)
    with (
        pymysql.connect(
            host=address.host,
            port=address.port,
            user=address.user,
            password=address.password,
            connect_timeout=5,
        ) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("SELECT VERSION()")
        ((version,),) = cursor.fetchall()
    # MariaDB always says so in its version; its comment and scheme may say anything
    return ("MariaDB" if "mariadb" in version.lower() else "MySQL"), version


def _identify_postgresql(dsn: str) -> tuple[str, str]:
    with psycopg.connect(dsn, connect_timeout=5) as connection:
        row = connection.execute("SELECT version(), current_setting('server_version')").fetchone()
    assert row is not None
    return row[0].split()[0], row[1]


def _identify_redis(dsn: str) -> tuple[str, str]:
    """INFO over a plain socket: redis-py is an optional dependency."""
    address = Address.of(dsn, 6379)
    with socket.create_connection((address.host, address.port), timeout=5) as connection:
        login = " ".join(filter(None, (address.user, address.password)))
        connection.sendall((f"AUTH {login}\r\n" if login else "").encode() + b"INFO server\r\nQUIT\r\n")
        text = connection.makefile("rb").read().decode()
    facts = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    if "redis_version" not in facts:
        raise OSError(f"not Redis: {text[:80]!r}")
    if facts.get("server_name", "redis") != "redis":
        return facts["server_name"].capitalize(), facts.get(f"{facts['server_name']}_version", "")
    return "Redis", facts["redis_version"]
