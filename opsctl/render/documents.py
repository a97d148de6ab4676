"""Rows, and documents of other shapes, as JSON and YAML."""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from functools import cache
from typing import Any
from uuid import UUID

from opsctl.render.escapes import escape_json, escape_yaml, has_unsafe
from opsctl.rows import Json, Rows

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


def head_of(rows: Rows, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return all of the document but its rows.

    `json_nulls` is there only when it is needed: the numbers of the rows, from 0, whose null is a JSON value's and not SQL's.
    """
    columns = [{"name": name, "type": _type_of(rows.column(name))} for name in rows.columns]
    nulls = {
        name: [number for number, value in enumerate(rows.column(name)) if is_json_null(value)] for name in rows.columns
    }
    nulls = {name: numbers for name, numbers in nulls.items() if numbers}
    return {"format": 1, **facts, "columns": columns, **({"json_nulls": nulls} if nulls else {}), "more": rows.more}


def _type_of(values: list[Any]) -> str:
    for value in values:
        for kind, name in _TYPES:
            if isinstance(value, kind):
                return name
    return "null" if all(value is None for value in values) else "text"


def is_json_null(value: Any) -> bool:
    """Whether it is JSON's null, which is a value and not the lack of one."""
    return isinstance(value, Json) and value.text.strip() == "null"


def text_of(value: Any) -> str:
    """Return a value that JSON has no type for as text."""
    if isinstance(value, bytes):
        return "\\x" + value.hex()
    if isinstance(value, datetime):
        return value.isoformat(timespec="microseconds")
    if isinstance(value, float):
        return str(Decimal(value)) if not math.isfinite(value) else repr(value)
    return str(value)


# -- JSON ------------------------------------------------------------------------------------------------------------


def to_json(rows: Rows, facts: Mapping[str, Any], *, ascii_only: bool = False, compact: bool = False) -> str:
    """Return one document, `compact` on one line; JSON values stand in it as the server wrote them, to the last digit."""
    names = [json_value(name) for name in rows.columns]
    head = [
        f"{json_value(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in head_of(rows, facts).items()
    ]
    lines = [
        "{" + ", ".join(f"{name}: {json_value(value)}" for name, value in zip(names, row, strict=True)) + "}"
        for row in rows.rows
    ]
    if compact:
        text = "{" + ", ".join([*head, '"rows": [' + ", ".join(lines) + "]"]) + "}"
    else:
        body = "[\n    " + ",\n    ".join(lines) + "\n  ]" if lines else "[]"
        text = "{\n  " + ",\n  ".join([*head, f'"rows": {body}']) + "\n}"
    return escape_json(text, ascii_only=ascii_only)


def dump_json(document: Mapping[str, Any], *, ascii_only: bool = False) -> str:
    """Return `document` as JSON, in its own order."""
    return escape_json(json.dumps(document, indent=2, ensure_ascii=False), ascii_only=ascii_only)


def json_value(value: Any) -> str:
    """Return one value as JSON; what JSON has no type for is a text."""
    if isinstance(value, Json):
        text = valid_json(value.text)
        return json.dumps(value.text, ensure_ascii=False) if text is None else text
    if isinstance(value, list):
        return "[" + ", ".join(map(json_value, value)) + "]"
    if isinstance(value, Decimal) and value.is_finite():
        return str(value)
    if value is None or isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return json.dumps(value)
    return json.dumps(text_of(value), ensure_ascii=False)


def valid_json(text: str) -> str | None:
    """Return JSON as it is, on one line; None when it is not JSON after all."""
    try:
        json.loads(text, parse_constant=_refuse_constant, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return None
    # A newline or a tab outside of texts is layout, and inside it cannot be.
    return re.sub(r"[\t\r\n]", " ", text).strip(" ")


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)


# -- YAML ------------------------------------------------------------------------------------------------------------

#: What PyYAML, by the rules of YAML 1.1, writes bare although it is a number or a truth to readers of YAML 1.2 or of all
#: of 1.1's words.
_NUMBER_OR_TRUTH = re.compile(r"[-+]?(0o[0-7]+|(\.\d+|\d+(\.\d*)?)([eE][-+]?\d+)?)|[yYnN]")
#: No line breaks: the longest that libyaml takes.
_WIDTH = 2**31 - 1


class _Number(str):
    """A number of a JSON value, with all its digits."""

    __slots__ = ()


def to_yaml(rows: Rows, facts: Mapping[str, Any], *, ascii_only: bool = False) -> str:
    """Return the document of to_json as YAML; bytes are !!binary, NaN and infinities YAML's own."""
    plain = [{name: _yaml_value(value) for name, value in zip(rows.columns, row, strict=True)} for row in rows.rows]
    return dump_yaml({**head_of(rows, facts), "rows": plain}, ascii_only=ascii_only)


def dump_yaml(document: Mapping[str, Any], *, ascii_only: bool = False) -> str:
    """Return `document` as YAML, in its own order."""
    import yaml

    text: str = yaml.dump(document, Dumper=_dumper(), sort_keys=False, allow_unicode=not ascii_only, width=_WIDTH)
    return escape_yaml(text).removesuffix("\n")


@cache
def _dumper() -> Any:
    import yaml

    class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
        def ignore_aliases(self, data: Any) -> bool:
            return True

    def text(dumper: Any, value: str) -> Any:
        style = None
        if has_unsafe(value):
            # Lines read well as a block. For the rest only double quotes are safe: libyaml and PyYAML disagree elsewhere.
            style = "|" if _reads_well_as_block(value) else '"'
        elif _NUMBER_OR_TRUTH.fullmatch(value):
            style = "'"
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    def number(dumper: Any, value: Any) -> Any:
        written = str(value).lower()
        if "n" in written:  # nan, inf
            written = {"n": ".nan", "i": ".inf", "-": "-.inf"}[written[0]]
            return dumper.represent_scalar("tag:yaml.org,2002:float", written)
        digits, e, exponent = written.partition("e")  # YAML 1.1 takes a number with e only with a point and a sign
        digits = f"{digits if '.' in digits or not e else digits + '.0'}"
        exponent = exponent if not e or exponent[0] in "+-" else f"+{exponent}"
        kind = "float" if e or "." in digits else "int"
        return dumper.represent_scalar(f"tag:yaml.org,2002:{kind}", f"{digits}{e}{exponent}")

    def binary(dumper: Any, value: bytes) -> Any:
        return dumper.represent_scalar("tag:yaml.org,2002:binary", base64.b64encode(value).decode(), style='"')

    Dumper.add_representer(str, text)
    Dumper.add_representer(bytes, binary)
    for kind in (float, Decimal, _Number):
        Dumper.add_representer(kind, number)
    return Dumper


def _reads_well_as_block(text: str) -> bool:
    return "\n" in text and not text.startswith((" ", "\n")) and not has_unsafe(text.replace("\n", ""))


def _yaml_value(value: Any) -> Any:
    if isinstance(value, Json):
        try:
            found = json.loads(value.text, parse_float=_Number, parse_int=_Number, parse_constant=_refuse_constant)
            if "\\ud" in value.text.lower():
                json.dumps(found, ensure_ascii=False).encode()  # YAML has no way to write half a surrogate pair
        except (ValueError, RecursionError):
            return value.text
        return found
    if isinstance(value, list):
        return [_yaml_value(part) for part in value]
    if value is None or isinstance(value, bool | int | float | bytes | str | Decimal):
        return value
    return text_of(value)
