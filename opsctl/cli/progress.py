"""Say on a terminal that something takes long; nowhere else."""

from __future__ import annotations

import contextlib
import shutil
import sys
import threading
import time
from collections.abc import Iterator

from opsctl.cli import state
from opsctl.render.escapes import escape_c
from opsctl.render.terminal import is_dumb

#: What is done sooner needs no word.
_PATIENCE_S = 1.0
_CLEAR_LINE = "\r\x1b[K"


@contextlib.contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show `what` and the seconds that it takes on stderr while the block runs, and take it away afterwards."""
    if state.current.quiet or is_dumb() or not sys.stderr.isatty():
        yield
        return
    done = threading.Event()
    text = escape_c(state.redacted(what))
    thread = threading.Thread(target=_count, args=(text, done), daemon=True, name="opsctl-progress")
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _count(what: str, done: threading.Event) -> None:
    started = time.monotonic()
    wait_s = _PATIENCE_S
    shown = False
    with contextlib.suppress(OSError):  # the terminal is gone: there is nobody to tell
        while not done.wait(wait_s):
            line = f"{what}: {time.monotonic() - started:.0f} s (Ctrl-C ends it)"
            # A line that wraps cannot be taken away.
            _write(_CLEAR_LINE + line[: shutil.get_terminal_size((80, 24)).columns - 1])
            shown, wait_s = True, 0.5
        if shown:
            _write(_CLEAR_LINE)


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
