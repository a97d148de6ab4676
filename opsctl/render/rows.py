"""Rows in five formats. In every one of them NULL is not the empty text, and what is written reads back the same.

table     one line a row; fitted to the width of a terminal only, whole everywhere else
vertical  one line a value
json      one document: format, facts, columns with their types, rows as objects; JSON values as JSON
yaml      the same document
csv       as PostgreSQL's COPY: NULL is nothing at all, the empty text is ""

In table and vertical a text is written with the escapes of C (\\n, \\t, \\\\, \\x1b), so that it keeps to its line and can
do nothing to a terminal, and in double quotes where it could be taken for NULL or would lose a space at its ends. Bytes are \\x and hex digits, as PostgreSQL writes them; moments are ISO 8601 in UTC.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opsctl.render.documents import to_json, to_yaml
from opsctl.render.escapes import escape_controls
from opsctl.render.table import Rendered, flat, to_table, to_vertical
from opsctl.rows import Rows


def render_rows(
    rows: Rows,
    output: str,
    *,
    facts: Mapping[str, Any] | None = None,
    width: int | None = None,
    colour: bool = False,
    ascii_only: bool = False,
    compact: bool = False,
) -> Rendered:
    """Return `rows` in the format `output`, without a newline at the end.

    `facts` go into the document of json and yaml; `width` is that of the terminal, None where there is none; `compact`
    keeps a json document to one line.
    """
    if output == "json":
        return Rendered(to_json(rows, facts or {}, ascii_only=ascii_only, compact=compact))
    if output == "yaml":
        return Rendered(to_yaml(rows, facts or {}, ascii_only=ascii_only))
    if output == "csv":
        text = to_csv(rows)
        # Only what goes to a file or a pipe is read back, and may hold what would act on a terminal.
        return Rendered(text if width is None else escape_controls(text))
    if output == "vertical":
        return Rendered(to_vertical(rows, colour=colour, ascii_only=ascii_only))
    return to_table(rows, width=width, colour=colour, ascii_only=ascii_only)


def to_csv(rows: Rows) -> str:
    """Return a header and a line for each row; nothing between commas is NULL, \"\" is the empty text."""
    lines = [",".join(map(_csv_field, rows.columns))]
    lines += [",".join(map(_csv_field, row)) for row in rows.rows]
    return "\n".join(lines)


def _csv_field(value: Any) -> str:
    if value is None:
        return ""
    text = flat(value)
    # \. alone on a line ends the data of PostgreSQL's COPY.
    if text == "" or text == "\\." or text != text.strip() or any(mark in text for mark in ',"\n\r'):
        return '"' + text.replace('"', '""') + '"'
    return text
