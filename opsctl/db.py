"""Connections: sessions as the contract wants them, and the only place that translates drivers' errors.

A session is UTC and READ COMMITTED, has connect, lock and statement timeouts on the server and a limit on the client's
side too, since a server or a proxy that says nothing obeys no timeout of its own.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import ssl
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from opsctl.dialects import AnyDialect, dialect_of
from opsctl.dialects.base import Failure, Server, Timeouts
from opsctl.dialects.mysql import SQL_MODE, explain_error
from opsctl.dialects.postgresql import explain_connect_text, explain_state
from opsctl.errors import OpsctlError, StatementRefused, Unreachable
from opsctl.target import Target

APPLICATION_NAME = "opsctl"

#: How much longer than the server's own limit the client waits before it ends the connection.
_CLIENT_GRACE_S = 1.0
#: How long it may take to have the server end a statement that nobody waits for any more.
_CANCEL_S = 1.0
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
        self, connection: sa.Connection, target: Target, timeouts: Timeouts, server: Server, line: _Line
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
        with self.guarded():
            result = self.connection.execute(sa.text(sql), binds)
            if not result.returns_rows:
                return []
            names = tuple(result.keys())
            return [Row(names, tuple(row)) for row in result]

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
        if self._lost is not None:
            raise self._lost
        limit = (self.timeouts.longest_s if limit_s is None else limit_s) + _CLIENT_GRACE_S
        try:
            with _translated(_Watchdog(self._line, limit), self.target, limit):
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
    options = _connect_arguments(target, timeouts)
    engine = sa.create_engine(
        target.url,
        connect_args=options,
        poolclass=NullPool,
        hide_parameters=True,
    )
    started = time.monotonic()
    try:
        connection = _Connecting(engine).connection_within(timeouts.connect_s)
    except Exception as error:
        late = time.monotonic() - started >= timeouts.connect_s * 0.95
        timed_out = timeouts.connect_s if late and "time" in str(error).lower() else None
        raise translate(error, target, timed_out_after_s=timed_out, connecting=True) from error
    line = _Line(engine, connection, target, options, started)
    sa.event.listen(engine, "invalidate", line.on_invalidate)
    try:
        yield _prepare(connection, target, timeouts, line, read_only=read_only)
    finally:
        # A connection that the watchdog or the server ended cannot be rolled back; it is gone all the same.
        with contextlib.suppress(Exception), _Watchdog(line, _CLIENT_GRACE_S):
            connection.close()
        engine.dispose()


class _Connecting(threading.Thread):
    """Connects in a thread of its own: neither looking a name up nor a server that drips bytes knows a limit.

    The main thread stays open to signals meanwhile. A connection that comes too late is closed.
    """

    def __init__(self, engine: sa.Engine) -> None:
        super().__init__(name="opsctl-connect", daemon=True)
        self._engine = engine
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._abandoned = False
        self._connection: sa.Connection | None = None
        self._error: Exception | None = None

    def run(self) -> None:
        try:
            connection = self._engine.connect()
        except Exception as error:  # noqa: BLE001 (raised again by the waiting thread)
            self._error = error
        else:
            with self._lock:
                if self._abandoned:
                    connection.invalidate()
                else:
                    self._connection = connection
        self._done.set()

    def connection_within(self, limit_s: float) -> sa.Connection:
        """Return the connection; raises what connecting raised, TimeoutError after `limit_s`."""
        self.start()
        try:
            self._done.wait(limit_s)
        finally:
            with self._lock:
                self._abandoned = self._connection is None
        if self._error is not None:
            raise self._error
        if self._connection is None:
            raise TimeoutError("no connection in time")
        return self._connection


def _prepare(connection: sa.Connection, target: Target, timeouts: Timeouts, line: _Line, *, read_only: bool) -> Session:
    with _translated(_Watchdog(line, timeouts.connect_s), target, timeouts.connect_s):
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
        raw._read_timeout = raw._write_timeout = timeouts.longest_s + _CLIENT_GRACE_S + 2 * _CANCEL_S
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
            args["password"] = target.url.password.encode()
        return args
    args.setdefault("application_name", APPLICATION_NAME)
    args["connect_timeout"] = max(2, seconds)  # libpq takes anything below 2 for 2
    args |= {"keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3}
    return args


class _Line:
    """What a session's statement can be ended with from elsewhere, on the server and on this side."""

    def __init__(
        self,
        engine: sa.Engine,
        connection: sa.Connection,
        target: Target,
        options: dict[str, Any],
        started: float,
    ) -> None:
        self.place: tuple[Any, ...] | None = None
        self._options = options
        self._engine = engine
        self._raw: Any = connection.connection.dbapi_connection
        self._target = target
        self._started = started

    def end(self) -> None:
        """End the statement on the server, within _CANCEL_S, then the connection, so that a blocked read returns."""
        with contextlib.suppress(Exception):
            self._end_on_server()
        with contextlib.suppress(Exception):
            _shut_down(self._raw)

    def on_invalidate(self, raw: Any, record: object, error: BaseException | None) -> None:
        """A signal interrupted a statement: closing the connection would leave it running on the server."""
        if error is not None and not isinstance(error, Exception):
            with contextlib.suppress(Exception):
                self._end_on_server()

    def place_on_server(self, raw: Any) -> tuple[Any, ...]:
        """Return which MySQL server this is, and the connection's id there."""
        with raw.cursor() as cursor:
            cursor.execute("SELECT @@hostname, @@port, CONNECTION_ID()")
            return tuple(cursor.fetchone())

    def _end_on_server(self) -> None:
        if self._target.family == "postgresql":
            self._raw.cancel_safe(timeout=_CANCEL_S)
            return
        if self.place is None:
            return
        dialect = self._engine.dialect
        args, options = dialect.create_connect_args(self._target.url)
        limits = {"connect_timeout": _CANCEL_S, "read_timeout": _CANCEL_S, "write_timeout": _CANCEL_S}
        assert dialect.loaded_dbapi is not None
        other = dialect.loaded_dbapi.connect(*args, **{**options, **self._options, **limits})
        with contextlib.closing(other), other.cursor() as cursor:
            *server, number = self.place
            *this_server, own_number = self.place_on_server(other)
            cursor.execute("SHOW GLOBAL STATUS LIKE 'Uptime'")
            uptime_s = int(cursor.fetchone()[1])
            # A proxy may lead to another server, and one that restarted counts from the beginning: the number could
            # be somebody else's there.
            if server == this_server and own_number > number and uptime_s >= time.monotonic() - self._started - 1:
                cursor.execute(f"KILL {int(number)}")


class _Watchdog:
    """Ends its block's statement and connection when the block lasts too long."""

    def __init__(self, line: _Line, limit_s: float) -> None:
        self.fired = False
        self._line = line
        self._timer = threading.Timer(limit_s, self._fire)
        self._timer.daemon = True

    def __enter__(self) -> None:
        self._timer.start()

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        if self.fired:
            self._timer.join(2 * _CANCEL_S)

    def _fire(self) -> None:
        self.fired = True
        self._line.end()


@contextlib.contextmanager
def _translated(watchdog: _Watchdog, target: Target, limit_s: float) -> Iterator[None]:
    try:
        with watchdog:
            yield
    except OpsctlError:
        raise
    except Exception as error:
        if not (watchdog.fired or isinstance(error, SQLAlchemyError) or _raised_by_driver(error)):
            raise
        raise translate(error, target, timed_out_after_s=limit_s if watchdog.fired else None) from error


def _raised_by_driver(error: BaseException) -> bool:
    """Whether PyMySQL stumbled: it checks nothing of what a server sends, and bytes that are lost make any error."""
    frames = [frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__)]
    return bool(frames) and str(frames[-1]).partition(".")[0] == "pymysql"


def _shut_down(raw: Any) -> None:
    if hasattr(raw, "_sock"):  # PyMySQL
        raw._sock.shutdown(socket.SHUT_RDWR)
        return
    with socket.socket(fileno=socket.dup(raw.fileno())) as copy:
        copy.shutdown(socket.SHUT_RDWR)


def translate(
    error: BaseException, target: Target, *, timed_out_after_s: float | None = None, connecting: bool = False
) -> OpsctlError:
    """Return the OpsctlError for an error of a driver: exit class, one line of cause without secrets, a remedy."""
    original = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    if timed_out_after_s is not None:
        what = "connecting to" if connecting else "waiting for"
        return Unreachable(
            f"{target}: no answer after {timed_out_after_s:g} s of {what} the server",
            "see whether the server, or a proxy in front of it, hangs; raise --connect-timeout or --statement-timeout"
            if connecting
            else "look on the server what its session of application opsctl waits for; raise --statement-timeout",
        )
    failure = _explain(original, connecting=connecting)
    message = target.redact(f"{target}: {_one_line(failure.cause)}")
    gone = isinstance(error, DBAPIError) and error.connection_invalidated
    if failure.kind == "unreachable" or gone:
        return Unreachable(message, failure.hint)
    return StatementRefused(message, failure.hint)


def _explain(original: BaseException, *, connecting: bool) -> Failure:
    arguments: Sequence[Any] = getattr(original, "args", ())
    text = str(original) or type(original).__name__
    if arguments and isinstance(arguments[0], int) and not isinstance(original, OSError):  # PyMySQL: (code, text)
        code, text = arguments[0], str(arguments[1]) if len(arguments) > 1 else ""
        if isinstance(getattr(original, "original_exception", None), ssl.SSLError):
            code = 2026  # PyMySQL says 2003, host not reached, for a certificate that it does not trust
        known = explain_error(code, f"{text} (error {code})")
        if known is None and code == 0:
            known = Failure("unreachable", "the server closed the connection", "run the command again")
        if known is not None:
            return known
        text = f"{text} (error {code})"
    elif sqlstate := getattr(original, "sqlstate", None):  # psycopg
        known = explain_state(sqlstate, f"{text} (SQLSTATE {sqlstate})")
        if known is not None:
            return known
        text = f"{text} (SQLSTATE {sqlstate})"
    elif isinstance(original, OSError):
        return Failure("unreachable", text, "check that the files which the DSN's TLS options name can be read")
    elif connecting and not _raised_by_driver(original):
        return explain_connect_text(text)
    elif "connection" in text.lower() or "SSL" in text:  # libpq, which has no SQLSTATE for it
        return Failure("unreachable", text, "see whether the server restarted, then run the command again")
    elif _raised_by_driver(original) and not connecting:
        text = f"the server's answer makes no sense ({type(original).__name__}: {text})"
        return Failure("unreachable", text, "see what a proxy in between does, and run the command again")
    if connecting:
        if _raised_by_driver(original):
            text = f"what answers does not speak the protocol ({type(original).__name__}: {text})"
        return Failure("unreachable", text, "check the DSN, and that this is the server that you meant")
    return Failure("refused", text, "run the command again with --debug for the statement and the traceback")


def _one_line(text: str) -> str:
    return " ".join(text.split())


def error_code(error: BaseException) -> int | str | None:
    """Return MySQL's error number or PostgreSQL's SQLSTATE behind an OpsctlError of a session, None without one."""
    cause = error.__cause__
    original = cause.orig if isinstance(cause, DBAPIError) else cause
    if original is None:
        return None
    if original.args and isinstance(original.args[0], int):
        return original.args[0]
    state = getattr(original, "sqlstate", None)
    return str(state) if state else None


__all__ = ["Row", "Session", "error_code", "execute_verbatim", "open_session", "translate"]
