"""Rows for people: one line a row, or one line a value."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, NamedTuple

import click

from opsctl.render.documents import json_value, text_of, valid_json
from opsctl.render.escapes import escape_c, escape_json
from opsctl.rows import Json, Rows

_NULL = "NULL"
#: Columns of free text may be cut to fit a terminal, to no less than this; ids, numbers and moments never.
_LEAST_WIDTH = 12
_GAP = 2
#: One large value makes every row as long: a table with more characters than this becomes vertical.
_MOST_CHARACTERS = 2**26


class Rendered(NamedTuple):
    """What goes to stdout, and what is to be said about it on stderr."""

    text: str
    note: str = ""


def to_vertical(rows: Rows, *, colour: bool = False, ascii_only: bool = False) -> str:
    """Return a block for each row, a line for each value."""
    names = [_name_cell(name, ascii_only=ascii_only) for name in rows.columns]
    longest = max(map(columns_of, names), default=0)
    labels = [name + " " * (longest - columns_of(name)) for name in names]
    lines = []
    for number, row in enumerate(rows.rows, 1):
        lines.append(_styled(f"-[ row {number} ]" + "-" * max(4, longest - 8), colour and "bold"))
        for label, value in zip(labels, row, strict=True):
            cell = _cell(value, ascii_only=ascii_only)
            lines.append(f"{label} | {_styled(cell, colour and value is None and 'dim')}".rstrip())
    return "\n".join(lines)


def to_table(rows: Rows, *, width: int | None = None, colour: bool = False, ascii_only: bool = False) -> Rendered:
    """Return a table. Where it is wider than `width` free text is cut (…), and where that does not do it is vertical."""
    cells = [[_cell(value, ascii_only=ascii_only) for value in row] for row in rows.rows]
    names = [_name_cell(name, ascii_only=ascii_only) for name in rows.columns]
    widths = [max(_width_within(cell, width) for cell in column) for column in zip(names, *cells, strict=True)]
    total = _total(widths)
    note = ""
    if width is not None and total > width:
        limits = _fit(rows, widths, width)
        if limits is None:
            return Rendered(to_vertical(rows, colour=colour, ascii_only=ascii_only))
        mark = "~" if ascii_only else "…"
        names, *cells = [
            [_cut(cell, limit, mark) for cell, limit in zip(line, limits, strict=True)] for line in (names, *cells)
        ]
        widths = limits
        note = f"values were cut to the width of the terminal ({mark}): -o vertical shows them whole"
    elif total * len(cells) > _MOST_CHARACTERS + 2 * sum(map(len, (cell for line in cells for cell in line))):
        text = to_vertical(rows, colour=colour, ascii_only=ascii_only)
        return Rendered(text, "a value is too long for the lines of a table: these are as -o vertical shows them")
    styles = [[colour and "bold"] * len(names)]
    styles += [[colour and value is None and "dim" for value in row] for row in rows.rows]
    names, *cells = [
        [_styled(cell, style) for cell, style in zip(line, line_styles, strict=True)]
        for line, line_styles in zip((names, *cells), styles, strict=True)
    ]
    aligned = ["right" if _are_numbers(rows.column(name)) else "left" for name in rows.columns]
    return Rendered(_laid_out(names, cells, aligned), note)


def _laid_out(names: list[str], cells: list[list[str]], aligned: list[str]) -> str:
    import tabulate

    # Its settings are its module's: a heading makes no column wider than itself, and no text is stripped.
    tabulate.MIN_PADDING = 0
    tabulate.PRESERVE_WHITESPACE = True
    text = tabulate.tabulate(cells, names, tablefmt="simple", disable_numparse=True, colalign=aligned)
    return "\n".join(line.rstrip(" ") for line in text.split("\n"))


def _styled(text: str, style: str | bool) -> str:
    return click.style(text, **{str(style): True}) if style else text


def _are_numbers(values: list[Any]) -> bool:
    kinds = {type(value) for value in values} - {type(None)}
    return bool(kinds) and kinds <= {int, float, Decimal}


# -- cells -----------------------------------------------------------------------------------------------------------


def flat(value: Any) -> str:
    """Return a value as text, before any quoting."""
    if isinstance(value, str):
        return value
    if isinstance(value, Json):
        return valid_json(value.text) or value.text
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return json_value(value)
    return text_of(value)


def _cell(value: Any, *, ascii_only: bool) -> str:
    if value is None:
        return _NULL
    if isinstance(value, str):
        return _text_cell(value, ascii_only=ascii_only)
    if isinstance(value, Json):
        text = valid_json(value.text)
        # JSON's own escapes are enough for all but what they need not escape.
        return (
            _text_cell(value.text, ascii_only=ascii_only) if text is None else escape_json(text, ascii_only=ascii_only)
        )
    return escape_json(flat(value), ascii_only=ascii_only) if isinstance(value, list) else flat(value)


def _text_cell(text: str, *, ascii_only: bool) -> str:
    text = escape_c(text, ascii_only=ascii_only)
    if text == _NULL or text != text.strip() or text.startswith('"'):
        return '"' + text.replace('"', '\\"') + '"'
    return text


def _name_cell(name: str, *, ascii_only: bool) -> str:
    return _text_cell(name, ascii_only=ascii_only) or '""'


# -- widths ----------------------------------------------------------------------------------------------------------


def _fit(rows: Rows, widths: list[int], width: int) -> list[int] | None:
    """Return how wide each column may be: columns of free text give way, the widest first. None when it cannot be done."""
    free = [
        all(value is None or isinstance(value, str | Json | list | bytes) for value in rows.column(name))
        for name in rows.columns
    ]
    for most in range(width, _LEAST_WIDTH - 1, -1):
        limits = [min(own, most) if gives_way else own for own, gives_way in zip(widths, free, strict=True)]
        if (spare := width - _total(limits)) >= 0:
            for place, own in enumerate(widths):
                if spare and own > limits[place]:
                    limits[place] += 1
                    spare -= 1
            return limits
    return None


def _total(widths: list[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def _cut(cell: str, limit: int, mark: str) -> str:
    if _width_within(cell, limit) <= limit:
        return cell
    from wcwidth import wcwidth

    kept = used = 0
    for kept, character in enumerate(cell):  # noqa: B007 (how many fit)
        used += 1 if character == "\ufe0f" else max(0, wcwidth(character))
        if used > limit - 1:
            break
    return cell[:kept].rstrip("\u200c\u200d") + mark


def _width_within(text: str, limit: int | None) -> int:
    """Return the columns of `text`; beyond `limit` only that they are more, for it would take long."""
    if limit is None or len(text) <= 8 * limit:
        return columns_of(text)
    return max(limit + 1, columns_of(text[: 8 * limit]))


def columns_of(text: str) -> int:
    """Return how many columns of a terminal `text` takes."""
    if text.isascii():
        return len(text)
    from wcwidth import wcswidth

    return max(0, wcswidth(text))
