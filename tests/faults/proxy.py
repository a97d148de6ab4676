"""A TCP proxy that, at a known moment, stalls, cuts, resets or swallows what passes, one way or both."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from dataclasses import dataclass, field
from enum import Enum

CHUNK = 65536


class Direction(Enum):
    TO_SERVER = "to server"
    TO_CLIENT = "to client"


TO_SERVER, TO_CLIENT = Direction.TO_SERVER, Direction.TO_CLIENT


class Action(Enum):
    NOTE = "note"  # it passes; only the event is set
    STALL = "stall"  # nothing passes in either direction any more, both sides stay connected
    SILENCE = "silence"  # the same for every connection, those to come included
    CUT = "cut"  # both connections are closed
    RESET = "reset"  # the client's is reset, the server's closed
    SWALLOW = "swallow"  # what comes in this direction is read and lost


@dataclass
class Rule:
    """`action` once the `nth` chunk that holds `pattern` (in any case) comes along in `direction`."""

    direction: Direction
    action: Action
    pattern: bytes = b""
    nth: int = 1
    deliver: bool = False  # that chunk still reaches the other side
    keep: int | None = None  # of that chunk, only so many bytes are lost (SWALLOW) or delivered (the others)
    after: threading.Event | None = None  # nothing counts before this
    seen: int = 0
    done: bool = False
    happened: threading.Event = field(default_factory=threading.Event)


class Proxy:
    """Listens on a loopback port of its own, for `upstream`, until it is closed."""

    def __init__(self, host: str, port: int) -> None:
        self._upstream = (host, port)
        self._rules: list[Rule] = []
        self._lock = threading.Lock()
        self._silent = threading.Event()
        self._closed = threading.Event()
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.connections = 0
        self._spawn(self._accept)

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def when(
        self,
        direction: Direction,
        action: Action,
        pattern: bytes = b"",
        *,
        nth: int = 1,
        deliver: bool = False,
        keep: int | None = None,
        after: threading.Event | None = None,
    ) -> threading.Event:
        """Set a rule; the event is set when it has come true."""
        rule = Rule(direction, action, pattern.lower(), nth, deliver, keep, after)
        with self._lock:
            self._rules.append(rule)
        return rule.happened

    def pass_on(self) -> None:
        """Forget the rules, and let new connections pass; those that are stalled stay so."""
        with self._lock:
            self._rules.clear()
        self._silent.clear()

    def close(self) -> None:
        """End everything; nothing is left listening or connected."""
        self._closed.set()
        # A thread in accept() keeps a closed listener alive: wake it.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            sockets, self._sockets = self._sockets, []
        for one in sockets:
            _close(one)

    @staticmethod
    def _spawn(target: object, *args: object) -> None:
        threading.Thread(target=target, args=args, daemon=True).start()  # type: ignore[arg-type]

    def _accept(self) -> None:
        while not self._closed.is_set():
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self._upstream, timeout=10)
            except OSError:
                client.close()
                continue
            server.settimeout(None)
            for one in (client, server):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._sockets += [client, server]
                self.connections += 1
            stall = threading.Event()
            self._spawn(self._pump, client, server, TO_SERVER, client, stall)
            self._spawn(self._pump, server, client, TO_CLIENT, client, stall)

    def _pump(
        self,
        source: socket.socket,
        sink: socket.socket,
        direction: Direction,
        client: socket.socket,
        stall: threading.Event,
    ) -> None:
        swallowing = False
        while True:
            try:
                data = source.recv(CHUNK)
            except OSError:
                data = b""
            if self._silent.is_set():
                stall.set()
            if stall.is_set():
                self._closed.wait()
                return
            if not data:
                _close(source)
                _close(sink)
                return
            if swallowing:
                continue
            rule = self._match(direction, data)
            with contextlib.suppress(OSError):
                if rule is None or rule.action is Action.NOTE:
                    sink.sendall(data)
                elif rule.action is Action.SWALLOW and rule.keep is not None:
                    sink.sendall(data[rule.keep :])
                elif rule.deliver or rule.keep is not None:
                    sink.sendall(data[: rule.keep])
            if rule is None:
                continue
            if rule.action is Action.NOTE:
                rule.happened.set()
                continue
            if rule.action in (Action.STALL, Action.SILENCE):
                stall.set()
                if rule.action is Action.SILENCE:
                    self._silent.set()
            elif rule.action is Action.SWALLOW:
                swallowing = rule.keep is None
            else:
                if rule.action is Action.RESET:
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    client.close()
                    with contextlib.suppress(OSError):
                        (sink if source is client else source).shutdown(socket.SHUT_RDWR)
                _close(source)
                _close(sink)
            rule.happened.set()
            if stall.is_set():
                self._closed.wait()
                return

    def _match(self, direction: Direction, data: bytes) -> Rule | None:
        lowered = data.lower()
        with self._lock:
            for rule in self._rules:
                if rule.done or rule.direction is not direction:
                    continue
                if (rule.after is None or rule.after.is_set()) and rule.pattern in lowered:
                    rule.seen += 1
                    if rule.seen == rule.nth:
                        rule.done = True
                        return rule
        return None


def _close(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    with contextlib.suppress(OSError):
        one.close()
