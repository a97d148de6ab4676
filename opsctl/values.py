"""What drivers hand over as a column's value, turned into what Rows holds."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import cache
from typing import Any
from uuid import UUID

from opsctl.rows import Json

#: PyMySQL's number of MySQL's JSON type; MariaDB's JSON is text, which a query's header has to name.
_MYSQL_JSON = 245
#: PostgreSQL types whose own text says more than a Python object: months in an interval, 'infinity', ranges, addresses.
_AS_TEXT = (
    *("interval", "date", "time", "timetz", "money", "inet", "cidr", "xid8", "pg_lsn", "record"),
    *(f"{name}{kind}" for name in ("int4", "int8", "num", "date", "ts", "tstz") for kind in ("range", "multirange")),
)


def keep_postgresql_text(raw: Any) -> None:
    """Have the psycopg connection `raw` give JSON as Json, and text where Python's type would lose something."""
    from psycopg.types.string import TextLoader

    loaders = _postgresql_loaders()
    for name in _AS_TEXT:
        raw.adapters.register_loader(name, TextLoader)
    for name in ("json", "jsonb"):
        raw.adapters.register_loader(name, loaders["json"])
    for name in ("timestamp", "timestamptz"):
        raw.adapters.register_loader(name, loaders[name])


@cache
def _postgresql_loaders() -> Mapping[str, type]:
    from psycopg import DataError
    from psycopg.adapt import Buffer, Loader
    from psycopg.types.datetime import TimestampLoader, TimestamptzLoader

    class JsonLoader(Loader):
        def load(self, data: Buffer) -> Json:
            return Json(bytes(data).decode())

    class Moment(Loader):
        """A moment, or the server's own words for one that Python has not: infinity, a year after 9999."""

        inner: type[Loader]

        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            self._inner = self.inner(*arguments)

        def load(self, data: Buffer) -> Any:
            try:
                return self._inner.load(data)
            except DataError:
                return bytes(data).decode()

    class Local(Moment):
        inner = TimestampLoader

    class Zoned(Moment):
        inner = TimestamptzLoader

    return {"json": JsonLoader, "timestamp": Local, "timestamptz": Zoned}


def readers(family: str, description: Sequence[Any], *, json: frozenset[str], ids: frozenset[str]) -> list[Reader]:
    """Return, for each column of a cursor, what makes a value of Rows from the driver's.

    `json` and `ids` name columns that the server calls text although they hold JSON, or an id without dashes.
    """
    plain = _mysql_value if family == "mysql" else _postgresql_value
    found: list[Reader] = []
    for name, type_code, *_ in description:
        if name in json or (family == "mysql" and type_code == _MYSQL_JSON):
            found.append(_json)
        else:
            found.append(_id if name in ids else plain)
    return found


Reader = Callable[[Any], Any]


def _json(value: Any) -> Any:
    return Json(value) if isinstance(value, str) else value


def _id(value: Any) -> Any:
    """Take an id of MySQL, 32 hex digits, for the UUID that it is."""
    try:
        return UUID(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _mysql_value(value: Any) -> Any:
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=dt.UTC)  # the session is UTC, and so are onestep's columns
    if isinstance(value, dt.timedelta):
        return _time_text(value)
    return _plain(value)


def _time_text(value: dt.timedelta) -> str:
    """Return a TIME, which may be negative and longer than a day, as the server writes it."""
    microseconds = abs(value) // dt.timedelta(microseconds=1)
    seconds, fraction = divmod(microseconds, 1_000_000)
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return ("-" if value < dt.timedelta() else "") + text + (f".{fraction:06}" if fraction else "")


def _postgresql_value(value: Any) -> Any:
    if isinstance(value, dt.datetime):  # a timestamp without time zone stays one
        return value if value.tzinfo is None else value.astimezone(dt.UTC)
    if isinstance(value, list | tuple):
        return [_postgresql_value(part) for part in value]
    return _plain(value)


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | Decimal | str | bytes | UUID | Json):
        return value
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    return str(value)
