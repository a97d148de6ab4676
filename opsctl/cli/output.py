"""Write results to stdout: through the pager where they are longer than the screen."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Any

import click

from opsctl.cli import state
from opsctl.cli.options import find_settings
from opsctl.render import rows as formats
from opsctl.render import terminal
from opsctl.rows import Rows


def show_rows(rows: Rows, output: str, facts: Mapping[str, Any], *, paged: bool = True) -> None:
    """Write rows in the format `output`; `facts` go into the document of json and yaml."""
    colour = terminal.use_colour(state.current.no_color)
    text = formats.render_rows(
        rows,
        output,
        facts=facts,
        width=terminal.width(),
        colour=colour,
        ascii_only=not terminal.utf8_stdout(),
    )
    if rows.columns and (rows.rows or output in ("json", "yaml", "csv")):
        show(text, paged=paged)


def show_document(document: Mapping[str, Any], rows: Rows, output: str) -> None:
    """Write a document that has a shape of its own as json or yaml, its rows in the other formats."""
    ascii_only = not terminal.utf8_stdout()
    if output == "json":
        show(json.dumps(document, indent=2, ensure_ascii=ascii_only))
    elif output == "yaml":
        show(formats.dump_yaml(document, ascii_only=ascii_only))
    else:
        show_rows(rows, output, {})


def show(text: str, *, paged: bool = True) -> None:
    """Write `text` to stdout; on a terminal that is too low for it through the pager."""
    colour = terminal.use_colour(state.current.no_color)
    if paged and sys.stdout.isatty() and sys.stdin.isatty() and _lines(text) >= terminal.height():
        pager = find_settings({}).find("pager")
        if pager is not None:
            os.environ["PAGER"] = pager.value
        os.environ.setdefault("LESS", "-RSX")  # rows stay rows: arrows move sideways
        if os.environ.get("PAGER") not in ("cat", ""):
            click.echo_via_pager(text + "\n", color=colour)
            return
    click.echo(text, color=colour)


def _lines(text: str) -> int:
    return text.count("\n") + 1
