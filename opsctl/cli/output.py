"""Write results to stdout: through the pager where they are longer than the screen."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import click

from opsctl.cli import state
from opsctl.cli.options import find_settings
from opsctl.render import documents, escapes, terminal
from opsctl.render.rows import render_rows
from opsctl.rows import Rows

#: A pager with any of these is a shell's command line.
_FOR_THE_SHELL = re.compile(r"[|&;<>()$`\\\"'*?\[#~=%\n]")
#: Colours, and the text stays on the screen afterwards. Rows stay rows: arrows move sideways.
_LESS, _LESS_FOR_ROWS = "-RX", "-RSX"
#: How a shell says that it cannot run, or cannot find, what it was given.
_NOT_RUN = (126, 127)


def show_rows(rows: Rows, output: str, facts: Mapping[str, Any], *, watching: bool = False) -> None:
    """Write rows in the format `output`; `facts` go into the document of json and yaml.

    `watching`: it is one of many, one after the other: nothing waits in a pager, and each document can be told apart.
    """
    if not rows.columns or not (rows.rows or output in ("json", "yaml", "csv")):
        return
    apart = watching and not sys.stdout.isatty()
    found = render_rows(
        rows,
        output,
        facts=facts,
        width=terminal.width(),
        colour=terminal.use_colour(state.current.no_color),
        ascii_only=not terminal.utf8_stdout(),
        compact=apart,
    )
    text = found.text
    if apart:
        text = {"yaml": f"---\n{text}", "table": f"{text}\n"}.get(output, text)
    show(text, paged=not watching, as_rows=output in ("table", "csv"))
    if found.note:
        state.say(found.note)


def show_document(document: Mapping[str, Any], rows: Rows, output: str) -> None:
    """Write a document that has a shape of its own as json or yaml, its rows in the other formats."""
    ascii_only = not terminal.utf8_stdout()
    if output == "json":
        show(documents.dump_json(document, ascii_only=ascii_only))
    elif output == "yaml":
        show(documents.dump_yaml(document, ascii_only=ascii_only))
    else:
        show_rows(rows, output, {})


def show_text(text: str) -> None:
    """Write text that came from a server and has lines of its own."""
    show(escapes.escape_controls(text) if sys.stdout.isatty() else text, as_rows=True)


def clear_screen() -> None:
    """Clear the terminal, but not what can be scrolled back to."""
    if not terminal.is_dumb():
        click.echo("\x1b[H\x1b[2J", nl=False, color=True)


def show(text: str, *, paged: bool = True, as_rows: bool = False) -> None:
    """Write `text` to stdout; on a terminal that is too low for it through the pager, `as_rows` without breaking lines."""
    if paged and sys.stdout.isatty() and sys.stdin.isatty() and terminal.lines_of(text) >= terminal.height():
        pager = _pager()
        if pager and _page(pager, text, _LESS_FOR_ROWS if as_rows else _LESS):
            return
    click.echo(
        text, color=True
    )  # nothing is stripped: what is in it belongs to the values, or is a colour that is wanted


def _pager() -> str:
    """Return the pager: OPSCTL_PAGER, a file's pager, PAGER, or less; empty for none."""
    setting = find_settings({}).find("pager")
    if os.environ.get("OPSCTL_PAGER") == "":
        return ""
    default = "" if terminal.is_dumb() else "less"
    command = setting.value if setting else os.environ.get("PAGER", default)
    return "" if command.strip() == "cat" else command.strip()


def _page(command: str, text: str, less: str) -> bool:
    """Show `text` with a pager, until it is left. Return whether that could be done."""
    argv = ["sh", "-c", command] if _FOR_THE_SHELL.search(command) else shlex.split(command)
    environment = {**os.environ, "LESS": os.environ.get("LESS", less)}
    sys.stdout.flush()
    try:
        process = subprocess.Popen(argv, stdin=subprocess.PIPE, env=environment)
    except OSError as error:
        state.warn(f"the pager {command} cannot be run: {error.strerror}")
        return False
    assert process.stdin is not None
    with _left_to_the_pager(process):
        with contextlib.suppress(BrokenPipeError):  # left before the end
            process.stdin.write(text.encode(sys.stdout.encoding, errors="backslashreplace") + b"\n")
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        return process.wait() not in _NOT_RUN


@contextlib.contextmanager
def _left_to_the_pager(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Leave Ctrl-C to the pager, to which it means something else; when opsctl is told to end, end the pager."""
    # A function and not SIG_IGN, which the pager would inherit if it were set any sooner.
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    except BaseException:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(1)
        raise
    finally:
        signal.signal(signal.SIGINT, before)
