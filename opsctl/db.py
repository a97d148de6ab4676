"""Connections: sessions as the contract wants them.

A session is UTC and READ COMMITTED, has connect, lock and statement timeouts on the server and a limit on the client's
side too, since a server or a proxy that says nothing obeys no timeout of its own.
"""

from __future__ import annotations

import contextlib
import logging
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opsctl.dialects import AnyDialect, dialect_of
from opsctl.dialects.base import Server, Timeouts
from opsctl.dialects.mysql import SQL_MODE
from opsctl.errors import OpsctlError, Unreachable
from opsctl.failures import error_code, raised_by_driver, translate
from opsctl.lifeline import CANCEL_S, Connecting, Line, Watchdog
from opsctl.rows import Rows
from opsctl.target import Target
from opsctl.values import keep_postgresql_text, readers

if TYPE_CHECKING:
    import sqlalchemy as sa

APPLICATION_NAME = "opsctl"

#: How much longer than the server's own limit the client waits before it ends the connection.
_CLIENT_GRACE_S = 1.0
_CAN_STREAM = re.compile(r"[\s(]*(SELECT|WITH|VALUES|TABLE)\b", re.IGNORECASE)
_IN_ABORTED_TRANSACTION = "25P02"

# What these have to say about a lost connection is said by the error that opsctl raises.
for _library in ("psycopg", "sqlalchemy"):
    logging.getLogger(_library).addHandler(logging.NullHandler())


@dataclass(frozen=True)
class Row:
    """A result row: read a column as an attribute of `values` by its name, or all in order."""

    names: tuple[str, ...]
    values: tuple[Any, ...]

    def __getitem__(self, name: str) -> Any:
        return self.values[self.names.index(name)]


class Session:
    """One connection with its settings made. Every error it raises is an OpsctlError without secrets."""

    def __init__(
        self, connection: sa.Connection, target: Target, timeouts: Timeouts, server: Server, line: Line
    ) -> None:
        self.connection = connection
        self.target = target
        self.timeouts = timeouts
        self.server = server
        self._line = line
        self._lost: OpsctlError | None = None
        self._aborted: OpsctlError | None = None
        self.dialect: AnyDialect = dialect_of(server)

    def rows(self, sql: str, **binds: Any) -> list[Row]:
        """Run `sql` with :name binds and return its rows."""
        from sqlalchemy import text

        with self.guarded():
            result = self.connection.execute(text(sql), binds)
            if not result.returns_rows:
                return []
            names = tuple(result.keys())
            return [Row(names, tuple(row)) for row in result]

    def read(
        self,
        sql: str,
        binds: Mapping[str, Any],
        *,
        limit: int | None = None,
        json: frozenset[str] = frozenset(),
        ids: frozenset[str] = frozenset(),
    ) -> Rows:
        """Run a reading statement with :name binds and return its columns and at most `limit` rows, as Rows holds them.

        `json` and `ids` name columns that hold JSON or an id although their type does not say so. No more than `limit` + 1
        rows leave the server.
        """
        from sqlalchemy import text

        with self.guarded():
            if self.target.family == "postgresql":
                keep_postgresql_text(self.connection.connection.dbapi_connection)
            elif limit is not None:
                execute_verbatim(self.connection, f"SET SESSION sql_select_limit = {limit + 1:d}")
            # A cursor on the server, so that rows beyond the limit stay there; only these can have one.
            streams = limit is not None and _CAN_STREAM.match(sql) is not None and self.target.family == "postgresql"
            options = {"stream_results": streams, "max_row_buffer": 1000}
            result = self.connection.execute(text(sql), binds, execution_options=options)
            if not result.returns_rows:
                return Rows((), ())
            names = tuple(result.keys())
            convert = readers(self.target.family, result.cursor.description, json=json, ids=ids)
            found = result.fetchall() if limit is None else result.fetchmany(limit + 1)
            result.close()
        rows = tuple(tuple(read(value) for read, value in zip(convert, row, strict=True)) for row in found)
        return Rows(names, rows[:limit], more=limit is not None and len(rows) > limit)

    def scalar(self, sql: str, **binds: Any) -> Any:
        """Run `sql` and return the first column of its first row, None without a row."""
        rows = self.rows(sql, **binds)
        return rows[0].values[0] if rows else None

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        """Run `sql` as it is, no binds and no % or : with a meaning, and return what rows it gives."""
        with self.guarded():
            return execute_verbatim(self.connection, sql)

    def commit(self) -> None:
        """Commit the open transaction."""
        with self.guarded():
            self.connection.commit()
        self._aborted = None

    def rollback(self) -> None:
        """Roll the open transaction back."""
        with self.guarded():
            self.connection.rollback()
        self._aborted = None

    @contextlib.contextmanager
    def guarded(self, limit_s: float | None = None) -> Iterator[None]:
        """End the connection when the block takes longer than the statement timeout, and translate its errors.

        What tidies up after an error raises that error again instead of one of its own: SQLAlchemy would connect anew,
        to a session without settings and locks, and PostgreSQL says no more than that the transaction is aborted.
        """
        from sqlalchemy.exc import DBAPIError

        if self._lost is not None:
            raise self._lost
        limit = (self.timeouts.longest_s if limit_s is None else limit_s) + _CLIENT_GRACE_S
        try:
            with _translated(Watchdog(self._line, limit), self.target, limit):
                yield
        except OpsctlError as error:
            if isinstance(error.__cause__, DBAPIError) and not self.connection.invalidated:
                if self._aborted is not None and error_code(error) == _IN_ABORTED_TRANSACTION:
                    raise self._aborted from self._aborted.__cause__
                self._aborted = error
            elif error.__cause__ is not None:
                self._lose(error)
            raise
        except Exception:
            raise
        except BaseException:  # Ctrl-C, SIGTERM: the statement was ended, and the connection with it
            self._lose(Unreachable(f"{self.target}: the statement was interrupted", "run the command again"))
            raise

    def _lose(self, error: OpsctlError) -> None:
        self._lost = error
        with contextlib.suppress(Exception):
            self.connection.invalidate()


def in_text(name: str) -> str:
    """Return a quoted name as it stands in a statement with :name binds: a colon in it is none."""
    return name.replace(":", "\\:")


def execute_verbatim(connection: sa.Connection, sql: str) -> list[tuple[Any, ...]]:
    """Run `sql` through the driver with nothing in it interpreted, on a connection of SQLAlchemy's."""
    # Drivers treat % as a placeholder only when parameters come along; exec_driver_sql passes an empty tuple.
    result = connection.exec_driver_sql(sql.replace("%", "%%"))
    return [tuple(row) for row in result] if result.returns_rows else []


@contextlib.contextmanager
def open_session(target: Target, timeouts: Timeouts, *, read_only: bool) -> Iterator[Session]:
    """Connect to `target` and yield a Session; everything uncommitted is rolled back at the end.

    Raises Unreachable (exit 3) when it cannot connect or log in within `timeouts.connect_s`, StatementRefused (exit 4)
    when the server refuses the session's settings.
    """
    import sqlalchemy as sa
    from sqlalchemy.pool import NullPool

    options = _connect_arguments(target, timeouts)
    engine = sa.create_engine(
        target.url,
        connect_args=options,
        poolclass=NullPool,
        hide_parameters=True,
    )
    started = time.monotonic()
    try:
        connection = Connecting(engine).connection_within(timeouts.connect_s)
    except Exception as error:
        late = time.monotonic() - started >= timeouts.connect_s * 0.95
        timed_out = timeouts.connect_s if late and "time" in str(error).lower() else None
        raise translate(error, target, timed_out_after_s=timed_out, connecting=True) from error
    _learn_place(connection, target)
    line = Line(engine, connection, target, options, started)
    sa.event.listen(engine, "invalidate", line.on_invalidate)
    try:
        yield _prepare(connection, target, timeouts, line, read_only=read_only)
    finally:
        # A connection that the watchdog or the server ended cannot be rolled back; it is gone all the same.
        with contextlib.suppress(Exception), Watchdog(line, _CLIENT_GRACE_S):
            connection.close()
        engine.dispose()


def _learn_place(connection: sa.Connection, target: Target) -> None:
    """Let the target know what libpq took from its own files and variables: where, as whom, with which password."""
    if target.family == "postgresql":
        raw: Any = connection.connection.dbapi_connection
        info = raw.info
        target.learn(username=info.user, password=info.password, host=info.host, port=info.port, database=info.dbname)


@contextlib.contextmanager
def _translated(watchdog: Watchdog, target: Target, limit_s: float) -> Iterator[None]:
    from sqlalchemy.exc import SQLAlchemyError

    try:
        with watchdog:
            yield
    except OpsctlError:
        raise
    except Exception as error:
        if not (watchdog.fired or isinstance(error, SQLAlchemyError) or raised_by_driver(error)):
            raise
        raise translate(error, target, timed_out_after_s=limit_s if watchdog.fired else None) from error


def _prepare(connection: sa.Connection, target: Target, timeouts: Timeouts, line: Line, *, read_only: bool) -> Session:
    with _translated(Watchdog(line, timeouts.connect_s), target, timeouts.connect_s):
        server = _identify(connection)
        for statement in dialect_of(server).session_setup(timeouts, read_only=read_only):
            execute_verbatim(connection, statement)
        if target.family == "mysql":
            line.place = line.place_on_server(connection.connection.dbapi_connection)
        connection.commit()
    raw: Any = connection.connection.dbapi_connection
    if target.family == "mysql" and hasattr(raw, "_read_timeout"):
        # Connecting had its own short limit; from here on a statement's applies, which the watchdog keeps. PyMySQL has
        # no public way to change it; a fault test (a server that falls silent in mid-query) fails should it ever move.
        raw._read_timeout = raw._write_timeout = timeouts.longest_s + _CLIENT_GRACE_S + 2 * CANCEL_S
    return Session(connection, target, timeouts, server, line)


def _identify(connection: sa.Connection) -> Server:
    """Ask the server what it is; the DSN's scheme says nothing about that."""
    version = str(execute_verbatim(connection, "SELECT version()")[0][0])
    if connection.dialect.name == "postgresql":
        return Server("PostgreSQL", str(execute_verbatim(connection, "SHOW server_version")[0][0]))
    if "mariadb" in version.lower():
        # Behind a replication-compatible prefix ("5.5.5-10.6.4-MariaDB") the second number is the server's.
        return Server("MariaDB", version.removeprefix("5.5.5-"))
    return Server("MySQL", version)


def _connect_arguments(target: Target, timeouts: Timeouts) -> dict[str, Any]:
    seconds = max(1, round(timeouts.connect_s))
    args = dict(target.connect_args)
    if target.family == "mysql":
        args |= {
            "connect_timeout": seconds,
            # A little longer than opsctl's own limit on connecting, which has the better words.
            "read_timeout": seconds + 2,
            "write_timeout": seconds + 2,
            "charset": "utf8mb4",
            "program_name": APPLICATION_NAME,
            # Before SQLAlchemy looks: under ANSI_QUOTES it would go on quoting with " when the mode has changed.
            "sql_mode": SQL_MODE,
            # Before anything is rolled back: with RELEASE the server ends the session with its first transaction.
            "init_command": "SET SESSION completion_type = NO_CHAIN",
        }
        if target.url.password is not None:
            # PyMySQL takes text for Latin-1; a server that was told the password by a client of today knows its UTF-8.
            args["password"] = target.url.password.encode(errors="surrogateescape")
        return args
    args.setdefault("application_name", APPLICATION_NAME)
    args["client_encoding"] = "UTF8"  # SQL_ASCII, from a variable or an old database, would give bytes for text
    args["connect_timeout"] = max(2, seconds)  # libpq takes anything below 2 for 2
    args |= {"keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3}
    return args
