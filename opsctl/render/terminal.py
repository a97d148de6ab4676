"""What the terminal can do: width, colours, a pager."""

from __future__ import annotations

import os
import shutil
import sys


def use_colour(no_color: bool) -> bool:
    """Whether stdout gets colours: --no-color, then NO_COLOR, then FORCE_COLOR, then whether it is a terminal."""
    if no_color or os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return sys.stdout.isatty()


def width() -> int | None:
    """Return the columns that a table may take: the terminal's, or COLUMNS; None when nobody looks at a screen."""
    if not sys.stdout.isatty():
        return None
    return shutil.get_terminal_size((120, 24)).columns


def height() -> int:
    """Return the lines of the screen."""
    return shutil.get_terminal_size((120, 24)).lines


def utf8_stdout() -> bool:
    """Whether stdout takes every character."""
    return sys.stdout.encoding.lower().replace("-", "") == "utf8"
