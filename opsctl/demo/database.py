"""The demo's database, whichever server it is on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from opsctl.target import parse_dsn


@dataclass(frozen=True)
class Database:
    """An empty database. `title` is the server's product and version."""

    family: str
    dsn: str
    title: str

    @property
    def shown_dsn(self) -> str:
        """The DSN without a password, fit for output."""
        return str(parse_dsn(self.dsn, origin="the demo"))

    def connect(self) -> Any:
        """Return a driver's connection in autocommit mode, as the servers' own clients have it."""
        if self.family == "postgresql":
            import psycopg

            options = "-c statement_timeout=30000"
            return psycopg.connect(self.dsn, autocommit=True, connect_timeout=10, options=options)
        import pymysql

        url = parse_dsn(self.dsn, origin="the demo").url
        return pymysql.connect(
            host=url.host,
            port=url.port or 3306,
            user=url.username,
            password=str(url.password or ""),
            database=url.database,
            charset="utf8mb4",
            autocommit=True,
            connect_timeout=10,
            read_timeout=30,
        )


def last_line(text: str) -> str:
    """Return the last line of a log that says something."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "it wrote nothing")
