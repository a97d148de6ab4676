"""Rows in five formats. In every one of them NULL is not the empty text, and what is written reads back the same.

table     one line a row; fitted to the width of a terminal only, whole everywhere else
vertical  one line a value
json      one document: format, facts, columns with their types, rows as objects; JSON values as JSON
yaml      the same document
csv       as PostgreSQL's COPY: NULL is nothing at all, the empty text is ""

In table and vertical a text is written with the escapes of C (\\n, \\t, \\\\, \\x1b), so that it keeps to its line and can
do nothing to a terminal, and in double quotes where it could be taken for NULL or would lose a space at its ends.
Bytes are \\x and hex digits, as PostgreSQL writes them; moments are ISO 8601 in UTC.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import click

from opsctl.rows import Json, Rows

_NULL = "NULL"
#: Columns of free text may be cut to fit a terminal, to no less than this; ids, numbers and moments never.
_LEAST_WIDTH = 12
_GAP = 2


def render_rows(
    rows: Rows,
    output: str,
    *,
    facts: Mapping[str, Any] | None = None,
    width: int | None = None,
    colour: bool = False,
    ascii_only: bool = False,
) -> str:
    """Return `rows` in the format `output`, without a newline at the end.

    `facts` go into the document of json and yaml; `width` is that of the terminal, None for no limit.
    """
    if output == "json":
        return to_json(rows, facts or {}, ascii_only=ascii_only)
    if output == "yaml":
        return to_yaml(rows, facts or {}, ascii_only=ascii_only)
    if output == "csv":
        return to_csv(rows)
    if output == "vertical":
        return to_vertical(rows, colour=colour)
    return to_table(rows, width=width, colour=colour)


# -- for programs ----------------------------------------------------------------------------------------------------


def to_json(rows: Rows, facts: Mapping[str, Any], *, ascii_only: bool = False, compact: bool = False) -> str:
    """Return one document; JSON values stand in it as the server wrote them, to the last digit."""

    def write(value: Any) -> str:
        return _json_value(value, ascii_only=ascii_only)

    head = [
        f"{write(name)}: {json.dumps(value, ensure_ascii=ascii_only)}" for name, value in _head(rows, facts).items()
    ]
    lines = [
        "{" + ", ".join(f"{write(name)}: {write(value)}" for name, value in zip(rows.columns, row, strict=True)) + "}"
        for row in rows.rows
    ]
    if compact:
        return "{" + ", ".join([*head, '"rows": [' + ", ".join(lines) + "]"]) + "}"
    body = "[\n    " + ",\n    ".join(lines) + "\n  ]" if lines else "[]"
    return "{\n  " + ",\n  ".join([*head, f'"rows": {body}']) + "\n}"


def _head(rows: Rows, facts: Mapping[str, Any]) -> dict[str, Any]:
    columns = [{"name": name, "type": _type_of(rows.column(name))} for name in rows.columns]
    return {"format": 1, **facts, "columns": columns, "more": rows.more}


def _type_of(values: list[Any]) -> str:
    for value in values:
        for kind, name in _TYPES:
            if isinstance(value, kind):
                return name
    return "null" if all(value is None for value in values) else "text"


_TYPES: tuple[tuple[Any, str], ...] = (
    (Json, "json"),
    (bool, "boolean"),
    (int, "integer"),
    ((float, Decimal), "number"),
    (datetime, "timestamp"),
    (UUID, "uuid"),
    (bytes, "bytes"),
    (list, "array"),
)


def _json_value(value: Any, *, ascii_only: bool) -> str:
    if isinstance(value, Json):
        text = _valid_json(value.text)
        if text is None:
            return json.dumps(value.text, ensure_ascii=ascii_only)
        return "".join(json.dumps(c)[1:-1] if ord(c) > 127 else c for c in text) if ascii_only else text
    if isinstance(value, list):
        return "[" + ", ".join(_json_value(part, ascii_only=ascii_only) for part in value) + "]"
    if isinstance(value, Decimal) and value.is_finite():
        return str(value)
    if value is None or isinstance(value, bool | int) or (isinstance(value, float) and value - value == 0):
        return json.dumps(value)
    return json.dumps(_text_of(value), ensure_ascii=ascii_only)


def _valid_json(text: str) -> str | None:
    """Return JSON as it is, on one line; None when it is not JSON after all."""
    try:
        json.loads(text, parse_constant=_refuse_constant, parse_int=str)
    except (ValueError, RecursionError):
        return None
    # A newline outside of texts is layout, and inside it cannot be.
    return text.strip().replace("\r", " ").replace("\n", " ")


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)


def _text_of(value: Any) -> str:
    """Return a value that JSON has no type for as text."""
    if isinstance(value, bytes):
        return "\\x" + value.hex()
    if isinstance(value, datetime):
        return value.isoformat(timespec="microseconds")
    return str(value)


def to_yaml(rows: Rows, facts: Mapping[str, Any], *, ascii_only: bool = False) -> str:
    """Return the document of to_json as YAML; bytes are !!binary."""
    plain = [{name: _yaml_value(value) for name, value in zip(rows.columns, row, strict=True)} for row in rows.rows]
    return dump_yaml({**_head(rows, facts), "rows": plain}, ascii_only=ascii_only)


def dump_yaml(document: Mapping[str, Any], *, ascii_only: bool = False) -> str:
    """Return `document` as YAML, in its own order."""
    import yaml

    class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
        def ignore_aliases(self, data: Any) -> bool:
            return True

    def number(dumper: Any, value: Decimal) -> Any:
        text = str(value).lower()
        digits, e, exponent = text.partition("e")  # YAML 1.1 takes a number with e only with a point and a sign
        text = f"{digits if '.' in digits or not e else digits + '.0'}{e}{exponent}"
        return dumper.represent_scalar(f"tag:yaml.org,2002:{'float' if set(text) & set('.e') else 'int'}", text)

    Dumper.add_representer(Decimal, number)
    text: str = yaml.dump(document, Dumper=Dumper, sort_keys=False, allow_unicode=not ascii_only, width=2**20)
    return text.rstrip("\n")


def _yaml_value(value: Any) -> Any:
    if isinstance(value, Json):
        try:
            return json.loads(value.text, parse_float=Decimal, parse_constant=_refuse_constant)
        except (ValueError, RecursionError):
            return value.text
    if isinstance(value, list):
        return [_yaml_value(part) for part in value]
    if isinstance(value, Decimal) and not value.is_finite():
        return str(value)
    if value is None or isinstance(value, bool | int | float | bytes | str | Decimal):
        return value
    return _text_of(value)


def to_csv(rows: Rows) -> str:
    """Return a header and a line for each row; nothing between commas is NULL, \"\" is the empty text."""
    lines = [",".join(map(_csv_field, rows.columns))]
    lines += [",".join(map(_csv_field, row)) for row in rows.rows]
    return "\n".join(lines)


def _csv_field(value: Any) -> str:
    if value is None:
        return ""
    text = _flat(value)
    # \. alone on a line ends the data of PostgreSQL's COPY.
    if text == "" or text == "\\." or text != text.strip() or any(mark in text for mark in ',"\n\r'):
        return '"' + text.replace('"', '""') + '"'
    return text


def _flat(value: Any) -> str:
    """Return a value as text for csv, table and vertical, before any quoting."""
    if isinstance(value, str):
        return value
    if isinstance(value, Json):
        return _valid_json(value.text) or value.text
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return _json_value(value, ascii_only=False)
    return _text_of(value)


# -- for people ------------------------------------------------------------------------------------------------------

#: Characters that are written as escapes: controls, and what would turn or break a line on a terminal.
_ESCAPES = {ord("\\"): "\\\\", ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t"} | {
    code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\r\t"
}
_ESCAPES |= {
    code: f"\\u{code:04x}"
    for code in (0xAD, 0x200B, 0x200E, 0x200F, 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0xFEFF)
}


def _cell(value: Any) -> str:
    if value is None:
        return _NULL
    text = _flat(value)
    if isinstance(value, Json):  # JSON's own escapes are enough for all but what they need not escape
        return "".join(json.dumps(c)[1:-1] if c != "\\" and ord(c) in _ESCAPES else c for c in text)
    if not isinstance(value, str):
        return text
    text = text.translate(_ESCAPES)
    if text == _NULL or text != text.strip() or text.startswith('"'):
        return '"' + text.replace('"', '\\"') + '"'
    return text


def to_vertical(rows: Rows, *, colour: bool = False) -> str:
    """Return a block for each row, a line for each value."""
    names = [name.translate(_ESCAPES) for name in rows.columns]
    longest = max(map(_columns, names), default=0)
    lines = []
    for number, row in enumerate(rows.rows, 1):
        lines.append(_styled(f"-[ row {number} ]" + "-" * max(4, longest - 8), colour, bold=True))
        for name, value in zip(names, row, strict=True):
            label = name + " " * (longest - _columns(name))
            cell = _cell(value)
            lines.append(f"{label} | {_styled(cell, colour, dim=True) if value is None else cell}".rstrip())
    return "\n".join(lines)


def to_table(rows: Rows, *, width: int | None = None, colour: bool = False) -> str:
    """Return a table. Where it is wider than `width` free text is cut (…), and where that does not do it is vertical."""
    from tabulate import tabulate

    cells = [[_cell(value) for value in row] for row in rows.rows]
    names = [name.translate(_ESCAPES) or " " for name in rows.columns]
    if width is not None:
        widths = [
            max(map(_columns, [name, *column])) for name, column in zip(names, _transposed(cells, names), strict=True)
        ]
        excess = sum(widths) + _GAP * (len(widths) - 1) - width
        if excess > 0:
            limits = _fit(rows, widths, names, excess)
            if limits is None:
                return to_vertical(rows, colour=colour)
            cells = [[_cut(cell, limit) for cell, limit in zip(row, limits, strict=True)] for row in cells]
    right = [
        all(value is None or isinstance(value, int | float | Decimal) for value in rows.column(name)) and len(rows) > 0
        for name in rows.columns
    ]
    if colour:
        cells = [
            [_styled(cell, colour, dim=True) if value is None else cell for cell, value in zip(line, row, strict=True)]
            for line, row in zip(cells, rows.rows, strict=True)
        ]
        names = [_styled(name, colour, bold=True) for name in names]
    return tabulate(
        cells,
        headers=names,
        tablefmt="simple",
        disable_numparse=True,
        colalign=["right" if is_number else "left" for is_number in right],
    )


def _transposed(cells: list[list[str]], names: list[str]) -> list[list[str]]:
    return [[row[place] for row in cells] for place in range(len(names))]


def _fit(rows: Rows, widths: list[int], names: list[str], excess: int) -> list[int] | None:
    """Return how wide each column may be: columns of free text give way, the widest first. None when it cannot be done."""
    limits = list(widths)
    free = [
        place
        for place, name in enumerate(rows.columns)
        if all(value is None or isinstance(value, str | Json | list | bytes) for value in rows.column(name))
    ]
    least = {place: max(_LEAST_WIDTH, min(_columns(names[place]), 20)) for place in free}
    while excess > 0:
        widest = max((place for place in free if limits[place] > least[place]), key=limits.__getitem__, default=None)
        if widest is None:
            return None
        others = sorted((limits[place] for place in free if place != widest), reverse=True)
        step = max(1, min(excess, limits[widest] - max(least[widest], others[0] if others else 0)))
        limits[widest] -= step
        excess -= step
    return limits


def _cut(cell: str, limit: int) -> str:
    if _columns(cell) <= limit:
        return cell
    kept, used = "", 0
    for character in cell:
        used += _columns(character)
        if used > limit - 1:
            break
        kept += character
    return kept + "…"


def _columns(text: str) -> int:
    """Return how many columns of a terminal `text` takes."""
    if text.isascii():
        return len(text)
    from wcwidth import wcswidth

    return max(0, wcswidth(text)) or len(text)


def _styled(text: str, colour: bool, **style: Any) -> str:
    return click.style(text, **style) if colour else text
