"""Say on a terminal what takes long, and how far it is; nowhere else but with --verbose."""

from __future__ import annotations

import contextlib
import shutil
import sys
import threading
import time
from typing import Self

from opsctl.cli import state
from opsctl.render.escapes import escape_c
from opsctl.render.terminal import is_dumb

#: What is done sooner needs no word.
_PATIENCE_S = 1.0
_CLEAR_LINE = "\r\x1b[K"


class Progress:
    """A line on stderr with what is going on and the seconds that it takes, until the block ends."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._done = threading.Event()
        self._writing = threading.Lock()
        self._shown = False
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if not (state.current.quiet or is_dumb() or not sys.stderr.isatty()):
            self._thread = threading.Thread(target=self._count, daemon=True, name="opsctl-progress")
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        if self._thread is not None:
            self._thread.join()

    def say(self, what: str) -> None:
        """Go on with another text. With --verbose and no terminal each becomes a line."""
        if self._thread is None and what != self._what:
            state.explain(what)
        self._what = what

    def note(self, text: str) -> None:
        """Say something that stays, above the line."""
        with contextlib.suppress(OSError):
            self._clear()
        state.say(text)

    def _count(self) -> None:
        started = time.monotonic()
        wait_s = _PATIENCE_S
        with contextlib.suppress(OSError):  # the terminal is gone: there is nobody to tell
            while not self._done.wait(wait_s):
                what = escape_c(state.redacted(self._what))
                line = f"{what}: {time.monotonic() - started:.0f} s (Ctrl-C ends it)"
                # A line that wraps cannot be taken away.
                with self._writing:
                    _write(_CLEAR_LINE + line[: shutil.get_terminal_size((80, 24)).columns - 1])
                    self._shown, wait_s = True, 0.5
            self._clear()

    def _clear(self) -> None:
        with self._writing:
            if self._shown:
                _write(_CLEAR_LINE)
            self._shown = False


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
