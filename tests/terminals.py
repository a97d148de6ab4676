"""A real terminal for a program: a pty of a given size that is its controlling terminal, so that Ctrl-C is a signal."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType

from processes import clean_environment

#: Runs in the new session before the program: only a session's leader can take a terminal for its own.
_TAKE_TERMINAL = """
import fcntl, os, signal, sys, termios
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):  # ignored where the tests themselves run in the background
    signal.signal(number, signal.SIG_DFL)
fcntl.ioctl(int(sys.argv[1]), termios.TIOCSCTTY, 0)
os.execvp(sys.argv[2], sys.argv[2:])
"""
CTRL_C, CTRL_D, TAB = "\x03", "\x04", "\t"
_ESCAPE_SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]")


class Terminal:
    """A program in a terminal. `output` is all it wrote there so far; a stream given as a file goes there instead."""

    def __init__(
        self,
        argv: list[object],
        home: Path,
        *,
        columns: int = 80,
        lines: int = 24,
        env: Mapping[str, str] | None = None,
        stdin: int | None = None,
        stdout: int | None = None,
        stderr: int | None = None,
        timeout_s: float = 60,
    ) -> None:
        self._deadline = time.monotonic() + timeout_s
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self._read = bytearray()
        self._expected = 0
        environment = {**clean_environment(home, {"TERM": "xterm", "LANG": "C.UTF-8"}), **(env or {})}
        for name in ("LESS", "PAGER", "LC_ALL"):
            if name not in (env or {}):
                environment.pop(name, None)
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _TAKE_TERMINAL, str(slave), *map(str, argv)],
                cwd=home,
                env=environment,
                stdin=slave if stdin is None else stdin,
                stdout=slave if stdout is None else stdout,
                stderr=slave if stderr is None else stderr,
                pass_fds=[slave],
                start_new_session=True,
            )
        finally:
            os.close(slave)

    @property
    def output(self) -> str:
        """What the terminal got, with its line ends as a program writes them."""
        return self._read.decode(errors="replace").replace("\r\n", "\n")

    @property
    def plain(self) -> str:
        """The same without colours and other escape sequences."""
        return _ESCAPE_SEQUENCE.sub("", self.output)

    def expect(self, pattern: str) -> re.Match[str]:
        """Wait until the pattern comes, behind what was expected before."""
        while True:
            if match := re.search(pattern, self._read[self._expected :].decode(errors="replace")):
                self._expected += len(match.string[: match.end()].encode(errors="replace"))
                return match
            if not self._receive():
                raise AssertionError(f"ended without {pattern!r}: {self.output!r}")

    def send(self, text: str) -> None:
        """Type."""
        os.write(self._master, text.encode())

    def wait(self) -> int:
        """Read to the end; return the exit code, -N for signal N."""
        while self._receive():
            pass
        return self.process.wait(max(0.1, self._deadline - time.monotonic()))

    def press_until_the_end(self, key: str) -> int:
        """Press a key until the program ends: one that comes just before it begins to read interrupts nothing."""
        while True:
            self.send(key)
            again = time.monotonic() + 2
            while (left := again - time.monotonic()) > 0:
                if select.select([self._master], [], [], left)[0] and not self._receive():
                    return self.wait()
            assert time.monotonic() < self._deadline, f"it does not end: {self.output!r}"

    def _receive(self) -> bool:
        ready, _, _ = select.select([self._master], [], [], max(0, self._deadline - time.monotonic()))
        if not ready:
            raise AssertionError(f"nothing more came in time: {self.output!r}")
        try:
            received = os.read(self._master, 65536)
        except OSError:  # Linux: EIO when nobody has the terminal open any more
            received = b""
        self._read += received
        return bool(received)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        os.close(self._master)


@contextlib.contextmanager
def full_device() -> Iterator[int]:
    """A descriptor to which nothing can be written."""
    descriptor = os.open("/dev/full", os.O_WRONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
