"""Readers of the formats that rows are written in: each by its own rules, with nothing of opsctl's own code.

A cell comes back as text; None is NULL.
"""

from __future__ import annotations

import base64
import json
import re
from decimal import Decimal
from typing import Any

import yaml
from wcwidth import wcswidth

Cells = list[tuple[str | None, ...]]

_C = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", '"': '"'}
_ESCAPE = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8})|(.))", re.DOTALL)


def read_csv(text: str) -> tuple[list[str], Cells]:
    """As PostgreSQL reads it: nothing at all is NULL, \"\" is the empty text; lines end with a newline."""
    assert text.endswith("\n")
    lines: list[list[str | None]] = []
    line: list[str | None] = []
    field, quoted, was_quoted, place = "", False, False, 0
    while place < len(text):
        character = text[place]
        if quoted:
            if character == '"' and text[place + 1 : place + 2] == '"':
                field += '"'
                place += 1
            elif character == '"':
                quoted = False
            else:
                end = text.index('"', place)
                field += text[place:end]
                place = end - 1
        elif character == '"':
            assert not field, "a quote in the middle of a field"
            quoted = was_quoted = True
        elif character in ",\n":
            line.append(field if field or was_quoted else None)
            field, was_quoted = "", False
            if character == "\n":
                lines.append(line)
                line = []
        else:
            assert character != "\r", "a bare CR"
            assert not was_quoted, "something behind a quoted field"
            match = re.compile('[^,\n"\r]+').match(text, place)
            assert match
            field += match[0]
            place = match.end() - 1
        place += 1
    assert not quoted
    assert not line
    header, *rows = lines
    assert all(len(row) == len(header) for row in rows)
    return [name or "" for name in header], [tuple(row) for row in rows]


def unescape_c(text: str) -> str:
    """Undo the escapes of C, as they stand in table and vertical."""

    def one(match: re.Match[str]) -> str:
        code = match[1] or match[2] or match[3]
        return chr(int(code, 16)) if code else _C[match[4]]

    return _ESCAPE.sub(one, text)


def read_text_cell(cell: str) -> str | None:
    """Read what stands for a text: NULL, or quoted, or as it is."""
    if cell == "NULL":
        return None
    if cell.startswith('"'):
        assert len(cell) > 1
        assert cell.endswith('"')
        cell = cell[1:-1]
    return unescape_c(cell)


def read_table(text: str) -> tuple[list[str], Cells]:
    """By its second line, whose dashes say how many columns of the terminal each column takes. Cells stay as written."""
    header, dashes, *lines = text.split("\n")
    widths = [len(run) for run in dashes.split("  ")]
    assert set(dashes) <= set("- ")

    def cut(line: str) -> list[str]:
        cells, place = [], 0
        for number, width in enumerate(widths):
            end = _end_of(line, place, width, last=number == len(widths) - 1)
            cells.append(line[place:end].strip(" "))
            assert line[end : end + 2].strip(" ") == "", f"a cell that is wider than its column: {line!r}"
            place = end + 2
        return cells

    return [read_text_cell(name) or "" for name in cut(header)], [tuple(cut(line)) for line in lines]


def _end_of(line: str, start: int, width: int, *, last: bool) -> int:
    if last or line[start:].isascii():
        return len(line) if last else min(len(line), start + width)
    for end in range(len(line), start, -1):
        if line[end : end + 2] in ("  ", " ", "") and wcswidth(line[start:end].rstrip(" ")) <= width:
            text = line[start:end]
            spaces = len(text) - len(text.rstrip(" "))
            if wcswidth(text.rstrip(" ")) + spaces == width or end == len(line):
                return end
    raise AssertionError(f"no column of {width} at {start} in {line!r}")


def read_vertical(text: str) -> tuple[list[str], Cells]:
    """By the names, which are padded to one width."""
    names: list[str] = []
    rows: list[list[str]] = []
    for line in text.split("\n"):
        if re.fullmatch(rf"-\[ row {len(rows) + 1} \]-+", line):
            rows.append([])
        else:
            name, bar, cell = _partition(line)
            assert bar, line
            rows[-1].append(cell)
            if len(rows) == 1:
                names.append(read_text_cell(name.rstrip(" ")) or "")
    return names, [tuple(row) for row in rows]


def _partition(line: str) -> tuple[str, str, str]:
    """A name may hold a bar, but where it does it is escaped by nothing: the tests' names have none behind a space."""
    name, bar, cell = line.partition(" | ")
    return (name, bar, cell) if bar else (line.removesuffix(" |"), " |" * line.endswith(" |"), "")


def read_json(text: str) -> Any:
    """As a strict reader does, with every digit: numbers are Decimal."""
    return json.loads(text, parse_float=Decimal, parse_int=Decimal, parse_constant=_refuse)


def _refuse(name: str) -> Any:
    raise AssertionError(f"{name} is not JSON")


def _number(loader: Any, node: Any) -> Any:
    text = loader.construct_scalar(node).lower().lstrip("+")
    return float(text.replace(".", "")) if text.endswith(("inf", "nan")) else Decimal(text)


def _exact(base: Any) -> Any:
    """safe_load, with every digit of a number."""
    loader = type("Exact", (base,), {})
    loader.add_constructor("tag:yaml.org,2002:float", _number)
    loader.add_constructor("tag:yaml.org,2002:int", _number)
    loader.add_constructor(
        "tag:yaml.org,2002:binary",
        lambda loader, node: base64.b64decode(loader.construct_scalar(node), validate=True),
    )
    return loader


_PYTHON, _LIBYAML = _exact(yaml.SafeLoader), _exact(yaml.CSafeLoader)


def read_yaml(text: str, *, libyaml: bool = False) -> Any:
    """As safe_load does, with every digit: numbers are Decimal."""
    return yaml.load(text, Loader=_LIBYAML if libyaml else _PYTHON)
