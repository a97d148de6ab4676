"""Ending what hangs: connecting, a statement, a connection, on this side and on the server.

A server or a proxy that says nothing obeys no timeout of its own, and closing a socket does not stop the server's work.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

from opsctl.target import Target

if TYPE_CHECKING:
    import sqlalchemy as sa

#: How long it may take to have the server end a statement that nobody waits for any more.
CANCEL_S = 1.0


class Connecting(threading.Thread):
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
        """Connect; what came of it waits for connection_within."""
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


class Line:
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
        """End the statement on the server, within CANCEL_S, then the connection, so that a blocked read returns."""
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
            self._raw.cancel_safe(timeout=CANCEL_S)
            return
        if self.place is None:
            return
        dialect = self._engine.dialect
        args, options = dialect.create_connect_args(self._target.url)
        limits = {"connect_timeout": CANCEL_S, "read_timeout": CANCEL_S, "write_timeout": CANCEL_S}
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


class Watchdog:
    """Ends its block's statement and connection when the block lasts too long."""

    def __init__(self, line: Line, limit_s: float) -> None:
        self.fired = False
        self._line = line
        self._timer = threading.Timer(limit_s, self._fire)
        self._timer.daemon = True

    def __enter__(self) -> None:
        self._timer.start()

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        if self.fired:
            self._timer.join(2 * CANCEL_S)

    def _fire(self) -> None:
        self.fired = True
        self._line.end()


def _shut_down(raw: Any) -> None:
    if hasattr(raw, "_sock"):  # PyMySQL
        raw._sock.shutdown(socket.SHUT_RDWR)
        return
    with socket.socket(fileno=socket.dup(raw.fileno())) as copy:
        copy.shutdown(socket.SHUT_RDWR)
