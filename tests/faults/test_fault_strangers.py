"""What answers in place of a server, if anything does. These tests need no database."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest
from faults.harness import COMMANDS, Ended, Opsctl, assert_secret, run_all

PASSWORD = "hush-hush/é"
LOGIN = "someone:hush-hush%2F%C3%A9"
FAMILIES = pytest.mark.parametrize("family", ["mysql", "postgresql"])


def dsn_of(family: str, port: int, host: str = "127.0.0.1") -> str:
    options = "sslmode=disable" if family == "postgresql" else "ssl_disabled=true"
    return f"{family}://{LOGIN}@{host}:{port}/somewhere?{options}"


@contextlib.contextmanager
def listener(answer: bytes | None, drip: bytes = b"") -> Iterator[int]:
    """A port that accepts, says `answer` (None: nothing, b"": hangs up) and then `drip` again and again."""
    stop = threading.Event()
    threads: list[threading.Thread] = []

    def talk(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            if answer == b"":
                return
            connection.sendall(answer or b"")
            while not stop.wait(0.2):
                connection.sendall(drip)

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                threads.append(threading.Thread(target=talk, args=(server.accept()[0],)))
                threads[-1].start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        acceptor = threading.Thread(target=serve)
        acceptor.start()
        yield server.getsockname()[1]
        stop.set()
        server.shutdown(socket.SHUT_RDWR)
        acceptor.join()
    for thread in threads:
        thread.join()


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port on which nobody listens, and nobody can begin to."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


@FAMILIES
def test_nobody_there(opsctl: Opsctl, closed_port: int, family: str) -> None:
    down = run_all([lambda c=c: opsctl(dsn_of(family, closed_port), *c, "--connect-timeout", "2") for c in COMMANDS])
    lost = opsctl(dsn_of(family, 1, "nosuch.invalid"), "verify-schema", "--connect-timeout", "2")
    for end in down:
        end.failed(3, "refused", "host and port", within_s=2)
    lost.failed(3, "nosuch.invalid", "host", within_s=2)
    for end in (*down, lost):
        assert_secret(PASSWORD, end.err)
        assert not end.out


# An HTTP server; whole and broken messages of either protocol that hold nonsense; one that hangs up.
GARBAGE = {
    "mysql": (
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"\x05\x00\x00\x00hello",
        b"\x01\x00\x00\x00\x0a",
        b"\x0a\x00\x00\x00\x0a8.0.36\x00xx",
        b"\x00\x00\x00\x00",
        b"",
    ),
    "postgresql": (
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"E\x00\x00\x00\x08oops",
        b"R\x00\x00\x00\x08\x00\x00\x00\x63",
        b"R\x00\x00\x00\x08\x00\x00\x00\x00Z\x00\x00\x00\x05XT\xff\xff\xff\xff",
        b"",
    ),
}


@FAMILIES
def test_server_that_is_something_else(opsctl: Opsctl, family: str) -> None:
    def ask(answer: bytes) -> Ended:
        with listener(answer) as port:
            return opsctl(dsn_of(family, port), "verify-schema", "--connect-timeout", "1")

    for end in run_all([lambda answer=answer: ask(answer) for answer in GARBAGE[family]]):
        end.failed(3, within_s=2)
        assert_secret(PASSWORD, end.err)
        assert not end.out


@FAMILIES
def test_server_that_says_nothing_or_too_little(opsctl: Opsctl, family: str) -> None:
    """Or drips: each byte comes in time, the whole never does."""
    beginning = b"\x4a\x00\x00\x00" if family == "mysql" else b"R\x00\x00\x02\x00"

    def ask(answer: bytes | None, drip: bytes, *command: str) -> Ended:
        with listener(answer, drip) as port:
            return opsctl(dsn_of(family, port), *command, "--connect-timeout", "1")

    calls = [lambda c=c: ask(None, b"", *c) for c in COMMANDS]
    for end in run_all([*calls, lambda: ask(beginning, b"\x0a", "verify-schema")]):
        end.failed(3, "no answer after 1 s", "--connect-timeout", within_s=1)
        assert_secret(PASSWORD, end.err)
