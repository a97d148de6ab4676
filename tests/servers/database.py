"""A fresh, empty database on a server, and its end."""

from __future__ import annotations

import contextlib
import secrets
import time
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pymysql

from .server import Server

DROP_TIMEOUT_S = 15.0


def connect(server: Server, dsn: str | None = None) -> Any:
    """A raw autocommit connection as administrator: PyMySQL's or psycopg's."""
    dsn = dsn or server.dsn
    if server.family == "postgresql":
        return psycopg.connect(dsn, autocommit=True, connect_timeout=10)
    address = server.address
    return pymysql.connect(
        host=address.host,
        port=address.port,
        user=address.user,
        password=address.password,
        database=urlsplit(dsn).path.strip("/") or None,
        charset="utf8mb4",
        autocommit=True,
        connect_timeout=10,
    )


class Database:
    """An empty database of a random name. `dsn` logs in as administrator."""

    def __init__(self, server: Server, name: str | None = None) -> None:
        self.server = server
        self.name = name or f"t_{secrets.token_hex(5)}"
        self.dsn = urlsplit(server.dsn)._replace(path=f"/{self.name}").geturl()
        self._connections: list[Any] = []
        self._own: Any = None
        if server.family == "postgresql":
            create = f"CREATE DATABASE {self.name} TEMPLATE template0 ENCODING 'UTF8'"
        else:
            # utf8mb4 whatever a given server's default is: it is what onestep's tables need
            create = f"CREATE DATABASE {self.name} CHARACTER SET utf8mb4"
        with contextlib.closing(connect(server)) as admin, admin.cursor() as cursor:
            cursor.execute(create)

    def connect(self) -> Any:
        """A new raw autocommit connection (PyMySQL or psycopg), closed with the database at the latest."""
        connection = connect(self.server, self.dsn)
        self._connections.append(connection)
        return connection

    def execute(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run each statement as administrator, with autocommit; the rows of the last one."""
        if self._own is None:
            self._own = self.connect()
        rows: list[tuple[Any, ...]] = []
        with self._own.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
                rows = list(cursor.fetchall()) if cursor.description else []
        return rows

    def close(self) -> None:
        """Close every connection given out, whatever state it is in; execute and connect make new ones."""
        for connection in self._connections:
            with contextlib.suppress(pymysql.Error, psycopg.Error, OSError):
                connection.close()
        self._connections, self._own = [], None

    def drop(self) -> None:
        """Drop it, ending every session that uses it."""
        self.close()
        with contextlib.closing(connect(self.server)) as admin, admin.cursor() as cursor:
            if self.server.family == "postgresql":
                cursor.execute(f"DROP DATABASE IF EXISTS {self.name} WITH (FORCE)")
            else:
                self._drop_mysql(cursor)

    def _drop_mysql(self, cursor: Any) -> None:
        """KILL only asks a session to end: an open transaction holds its locks until it has rolled back."""
        cursor.execute("SET SESSION lock_wait_timeout = 1")
        deadline = time.monotonic() + DROP_TIMEOUT_S
        while True:
            cursor.execute("SELECT id FROM information_schema.processlist WHERE db = %s", (self.name,))
            for (session,) in cursor.fetchall():
                with contextlib.suppress(pymysql.Error):  # gone meanwhile
                    cursor.execute(f"KILL {session:d}")
            try:
                cursor.execute(f"DROP DATABASE IF EXISTS {self.name}")
            except pymysql.OperationalError:
                if time.monotonic() > deadline:
                    raise
            else:
                return
