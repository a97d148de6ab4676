"""What the terminal can do: width, colours, a pager."""

from __future__ import annotations

import os
import shutil
import sys


def use_colour(no_color: bool) -> bool:
    """Whether stdout gets colours: --no-color, then NO_COLOR, then FORCE_COLOR, then whether it is a terminal with any."""
    if no_color or os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return sys.stdout.isatty() and not is_dumb()


def is_dumb() -> bool:
    """Whether the terminal can do no more than print, so that nothing on it can be taken back."""
    return os.environ.get("TERM", "dumb") in ("dumb", "")


def width() -> int | None:
    """Return the columns that a table may take: the terminal's, or COLUMNS; None when nobody looks at a screen."""
    if not sys.stdout.isatty():
        return None
    return shutil.get_terminal_size((120, 24)).columns


def height() -> int:
    """Return the lines of the screen."""
    return shutil.get_terminal_size((120, 24)).lines


def lines_of(text: str) -> int:
    """Return how many lines of the screen `text` takes, or somewhat more: characters may take no column, or two."""
    columns = width() or 120
    return sum(max(1, -(-len(line) // columns)) for line in text.split("\n"))


def utf8_stdout() -> bool:
    """Whether stdout takes every character."""
    return sys.stdout.encoding.lower().replace("-", "") == "utf8"
