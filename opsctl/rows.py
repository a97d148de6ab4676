"""Rows as a query gives them, free of any driver's types.

A value is None, bool, int, float, Decimal, str, bytes, datetime (UTC; without a zone where PostgreSQL's type has none),
UUID, Json, or a list of these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Json:
    """A value of a JSON column, as the server wrote it: apart from text, and its null apart from SQL NULL."""

    text: str


@dataclass(frozen=True)
class Rows:
    """Columns by name and rows in the server's order; `more` says that there were more than the limit allowed."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    more: bool = False

    def __len__(self) -> int:
        return len(self.rows)

    def column(self, name: str) -> list[Any]:
        """Return one column's values."""
        place = self.columns.index(name)
        return [row[place] for row in self.rows]
