"""Say on a terminal that something takes long; nowhere else."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator

from opsctl.cli import state

#: What is done sooner needs no word.
_PATIENCE_S = 1.0


@contextlib.contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show `what` and the seconds that it takes on stderr while the block runs, and take it away afterwards."""
    if state.current.quiet or not sys.stderr.isatty():
        yield
        return
    done = threading.Event()
    thread = threading.Thread(target=_count, args=(what, done), daemon=True, name="opsctl-progress")
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
    while not done.wait(wait_s):
        sys.stderr.write(f"\r\x1b[K{state.redacted(what)}: {time.monotonic() - started:.0f} s (Ctrl-C ends it)")
        sys.stderr.flush()
        shown, wait_s = True, 0.5
    if shown:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()
