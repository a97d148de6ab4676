"""What each format makes of the values of Rows, by the rules that the documentation states; samples to try them with."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any

from readers import read_csv, read_json, read_table, read_text_cell, read_vertical, read_yaml

from opsctl.rows import Json, Rows

TEXTS = [
    "", " ", "NULL", "null", '"', '"NULL"', "~", "-", "true", "yes", "n", "1", "1e3", "0o17", "0x1f", "1_000", "12:30:45",
    "2026-11-30", "<<", "=", "a: b", "# no comment", "- a", "[a", "{a", "!a", "&a", "*a", "|", ">", "%a", "@a", "`a", "...",
    "---", "lead", " lead", "trail ", "\ttab\t", "a\nb", "\nb", "a\n", "\n", "a\n\n  b\n", "a\r\nb", "\r", "\x0b\x0c", "\\",
    "\\n", "\\.", "a\n\\.\nb", "it's", 'say "hi"', "a,b", "a;b", "a | b", "\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\x9b31m",
    "\x00", "\x7f", "\x80", "\x85", "a\x85b", "\xa0", "\xad", "é", "e\u0301", "\u0301", "日本語", "ｗｉｄｅ", "😀", "👨‍👩‍👧‍👦",
    "🇩🇪", "☺️", "👍🏽", "مرحبا", "नमस्ते", "क्‍ष", "\u200b", "a\u200db", "\u200d", "é\u200d", "\u202eevil\u202c", "\u2028", "\u2066",
    "\ufeff", "\ufffe", "\ufff9", "\U000e0041", "\U0010ffff", "…", "~", "\\x1b", "\\u00e9",
]  # fmt: skip
JSONS = [
    "null", "true", "0", "-0", "1e400", "-1E-400", "0.1000000000000000000001", str(2**70), "1" * 4400, "1.50", "1E+2",
    '""', '"NULL"', '" "', r'"\u0000\u001b\ud83d\ude00\"\\\/\b\f\n\r\t"', r'"\ud800"', '"\x7f\x9b\u202e\u2028"', '"é日😀"',
    "[]", "{}", '{"a": 1, "b": [1, 2.50, {"c": null}], "": "x", "a b": true, "1": 1, "\\u001b": 2, "no": 3, "\\n": 4}',
    '[\n  1,\r\n\t2\n]', " \n1\n ", '{"a":{"b":{"c":[[[[]]]]}}}', '{"k1":"a\\nb\\n"}',
]  # fmt: skip


def as_text(one: Any) -> str:
    """A value that is no text, as csv, table and vertical have it."""
    if isinstance(one, bool):
        return "true" if one else "false"
    if isinstance(one, bytes):
        return "\\x" + one.hex()
    if isinstance(one, datetime):
        return one.isoformat(timespec="microseconds")
    if isinstance(one, float) and not math.isfinite(one):
        return "NaN" if math.isnan(one) else "Infinity" if one > 0 else "-Infinity"
    return str(one)


def in_json(one: Any) -> Any:
    """A value as a reader of JSON gets it, with numbers as Decimal."""
    if isinstance(one, Json):
        try:
            return read_json(one.text)
        except (ValueError, AssertionError, RecursionError):
            return one.text
    if isinstance(one, list):
        return [in_json(part) for part in one]
    if one is None or isinstance(one, bool | str):
        return one
    if isinstance(one, int) or (isinstance(one, float | Decimal) and is_finite(one)):
        return Decimal(str(one))
    return as_text(one)


def in_yaml(one: Any) -> Any:
    """The same as YAML: bytes stay bytes, NaN and infinities are numbers."""
    if isinstance(one, Json):
        found = in_json(one)
        return one.text if re.search("[\ud800-\udfff]", json.dumps(found, default=str, ensure_ascii=False)) else found
    if isinstance(one, list):
        return [in_yaml(part) for part in one]
    if isinstance(one, float | Decimal) and not is_finite(one):
        return float(one)
    return one if isinstance(one, bytes) else in_json(one)


def is_finite(one: float | Decimal) -> bool:
    return one.is_finite() if isinstance(one, Decimal) else math.isfinite(one)


def same(found: Any, wanted: Any) -> bool:
    """Equal, type for type and digit for digit; a NaN is a NaN."""
    if isinstance(found, list) and isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(same, found, wanted))
    if isinstance(found, dict) and isinstance(wanted, dict):
        return list(found) == list(wanted) and all(map(same, found.values(), wanted.values()))
    if isinstance(found, float) and isinstance(wanted, float):
        return str(found) == str(wanted)
    return type(found) is type(wanted) and found == wanted


def check_cells(
    columns: list[str], cells: list[tuple[str | None, ...]], rows: Rows, read: Callable[[str], Any]
) -> None:
    """`read` is how the format writes a text."""
    assert columns == list(rows.columns)
    assert len(cells) == len(rows)
    for line, row in zip(cells, rows.rows, strict=True):
        for cell, one in zip(line, row, strict=True):
            if one is None:
                assert cell is None or cell == "NULL"
            elif isinstance(one, str):
                assert cell is not None
                assert read(cell) == one
            elif isinstance(one, Json | list):
                assert cell is not None
                wanted = in_json(one)
                is_text = isinstance(one, Json) and isinstance(wanted, str) and wanted == one.text
                assert same(read(cell) if is_text else read_json(cell), wanted)
            else:
                assert cell == as_text(one)


def check_document(document: Any, rows: Rows, wanted: Callable[[Any], Any]) -> None:
    assert document["format"] == 1
    assert [found["name"] for found in document["columns"]] == list(rows.columns)
    assert len(document["rows"]) == len(rows)
    for line, row in zip(document["rows"], rows.rows, strict=True):
        assert list(line) == list(rows.columns)
        for name, one in zip(rows.columns, row, strict=True):
            assert same(line[name], wanted(one)), (line[name], wanted(one))
    nulls = {
        name: [n for n, one in enumerate(rows.column(name)) if isinstance(one, Json) and one.text.strip() == "null"]
        for name in rows.columns
    }
    assert {name: list(map(int, n)) for name, n in document.get("json_nulls", {}).items()} == {
        name: numbers for name, numbers in nulls.items() if numbers
    }


def check_written(written: str, output: str, rows: Rows) -> None:
    """Assert that `written`, in the format `output`, reads back as `rows`."""
    if output == "json":
        check_document(read_json(written), rows, in_json)
    elif output == "yaml":
        check_document(read_yaml(written), rows, in_yaml)
    elif output == "csv":
        check_cells(*read_csv(written), rows, str)
    elif output == "table":
        check_cells(*read_table(written.removesuffix("\n")), rows, read_text_cell)
    else:
        check_cells(*read_vertical(written.removesuffix("\n")), rows, read_text_cell)
