"""Ctrl-C and SIGTERM as an exception, but never at a moment when it would lose a process or a directory."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(SystemExit):
    """A signal ended the demo. A SystemExit, so that asyncio lets it through."""

    def __init__(self, number: int) -> None:
        super().__init__(128 + number)
        self.number = number


class Interrupts:
    """The handlers of this process. The first signal raises Interrupted; later ones do not disturb the clearing up."""

    def __init__(self) -> None:
        self._holders = 0
        self._pending: int | None = None
        self._over = False

    def install(self) -> None:
        """Take over SIGINT, SIGTERM and, where nohup has not had it ignored, SIGHUP."""
        for number in _SIGNALS:
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._handle)

    def end(self) -> None:
        """From here on a signal changes nothing, to the end of the process: everything is being cleared up anyway."""
        self._over = True
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Let a signal wait until the block is through, or comes to `check`.

        What the block makes is then known to whoever clears up, and a driver in it is not torn from its protocol.
        """
        self._holders += 1
        try:
            yield
        finally:
            self._holders -= 1
            if not self._holders:
                self.check()

    def check(self) -> None:
        """Raise Interrupted if a signal came in while it was held."""
        if self._pending is not None:
            self._raise(self._pending)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._over:
            return
        if self._holders:
            self._pending = self._pending or number
        else:
            self._raise(number)

    def _raise(self, number: int) -> None:
        if not self._over:
            self._over = True
            raise Interrupted(number)
