"""How large an index will be, and whether the server has room for it: its disk, and InnoDB's log of an online build."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass

from opsctl.db import Session, in_text
from opsctl.dialects.postgresql import PostgreSQL
from opsctl.errors import OpsctlError
from opsctl.ops.tune.steps import Live
from opsctl.schema.model import Index
from opsctl.schema.sizes import estimate_entries
from opsctl.schema.versions import qualified

#: A sorted build fills InnoDB's pages to 15/16 and PostgreSQL's to 90 %; pages above the leaves are a hundredth.
_FILL_INNODB, _FILL_POSTGRESQL = 15 / 16 * 0.98, 0.89
#: What a build sorts outside of the index goes through files of its own, as large again.
_WITH_SORT_FILES = 2.0
#: A second or so of DML, as a table that is busy has it, must fit many times over.
_SAMPLE = 1000
_NULL_SHARE = """
SELECT null_frac FROM pg_catalog.pg_stats WHERE schemaname = :schema AND tablename = :table AND attname = :column
"""
_VARIABLE = {"namespace", "task_name", "status", "worker_id"}
_LOOPBACK = ("127.", "::1", "localhost", "/")


@dataclass(frozen=True)
class Size:
    """An estimate: `rows` entries, `bytes` of index."""

    rows: int
    bytes: int

    def __str__(self) -> str:
        return f"about {format_bytes(self.bytes)}"


@dataclass(frozen=True)
class Room:
    """Where the server keeps the table, and what is free there; `free` is None where this machine cannot see it."""

    directory: str | None
    free: int | None


def estimate_size(session: Session, live: Live, index: Index, rows: int) -> Size:
    """Return how large `index` will be when it is built, from the lengths in a sample of rows."""
    postgresql = isinstance(session.dialect, PostgreSQL)
    if postgresql and index.predicate:
        column = next(part.name for part in index.parts if part.name != "id")
        rows = _live_rows(session, live, rows) if "queued" in index.predicate else rows
        rows = round(rows * (1 - _null_share(session, live, column)))
    lengths = _sample_lengths(session, live, [part.name for part in index.parts if part.name in _VARIABLE])
    width = 0.0
    for part in index.parts:
        if part.name in _VARIABLE:
            width += lengths.get(part.name, 12.0) + 1
        else:
            width += (16.0 if part.name == "id" and postgresql else 0.0) if part.name == "id" else 8.0
    if postgresql:
        return Size(rows, round(rows * (8 + 4 + -(-width // 8) * 8) / _FILL_POSTGRESQL) + 16384)
    ids = next((column.type for column in live.table.columns if column.name.lower() == "id"), "char(32)")
    return Size(rows, round(rows * (width + (16 if ids == "uuid" else 32) + 6 + 3) / _FILL_INNODB) + 16384)


def _live_rows(session: Session, live: Live, rows: int) -> int:
    """What waits, as far as the partial claim index's own statistics tell."""
    claim = session.dialect.derived_names(live.pair)["ix_onestep_executions_claim"]
    found = estimate_entries(session, claim, live.schema)
    return min(rows, found) if found else rows


def _null_share(session: Session, live: Live, column: str) -> float:
    """The share of rows without a value in `column`, by the statistics of the last ANALYZE; 0 when there was none."""
    found = session.scalar(_NULL_SHARE, schema=live.schema, table=live.pair.executions, column=column)
    return float(found or 0)


def _sample_lengths(session: Session, live: Live, columns: list[str]) -> dict[str, float]:
    if not columns:
        return {}
    table = in_text(qualified(session.dialect, live.pair.executions, live.schema))
    picked = ", ".join(columns)
    averages = ", ".join(f"avg(octet_length({column})) AS {column}" for column in columns)
    sample = f"SELECT {averages} FROM (SELECT {picked} FROM {table} LIMIT {_SAMPLE}) s"  # noqa: S608 (quoted, own columns)
    [row] = session.rows(sample)
    return {name: float(value) for name, value in zip(row.names, row.values, strict=True) if value is not None}


def find_room(session: Session) -> Room:
    """Return what is free where the server keeps its data, when it runs on this machine; else say nothing of it."""
    try:
        directory = _data_directory(session)
    except OpsctlError:
        session.rollback()
        return Room(None, None)
    if directory is None or not _is_here(session):
        return Room(directory, None)
    try:
        found = os.statvfs(directory)
    except OSError:
        return Room(directory, None)
    return Room(directory, found.f_bavail * found.f_frsize)


def bytes_needed(sizes: list[Size]) -> int:
    """Return what must be free for building these: the indexes, and as much again in the files of their sort."""
    return round(sum(size.bytes for size in sizes) * _WITH_SORT_FILES)


def online_log_limit(session: Session) -> int | None:
    """Return innodb_online_alter_log_max_size in bytes: what may be written while one index is built. None elsewhere."""
    if isinstance(session.dialect, PostgreSQL):
        return None
    return int(session.scalar("SELECT @@GLOBAL.innodb_online_alter_log_max_size"))


def _data_directory(session: Session) -> str | None:
    if isinstance(session.dialect, PostgreSQL):
        readable = "SELECT pg_has_role('pg_read_all_settings', 'USAGE')"
        return str(session.scalar("SHOW data_directory")) if session.scalar(readable) else None
    return str(session.scalar("SELECT @@GLOBAL.datadir"))


def _is_here(session: Session) -> bool:
    host = session.target.url.host or "localhost"
    if not host.startswith(_LOOPBACK):
        return False
    if isinstance(session.dialect, PostgreSQL):
        return True
    # A tunnel ends on loopback too.
    return str(session.scalar("SELECT @@GLOBAL.hostname")) == socket.gethostname()


def format_bytes(number: float) -> str:
    """Return a size as people say it: 640 KiB, 1.2 GiB."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if number < 1024:
            return f"{number:,.0f} {unit}" if number >= 10 or unit == "bytes" else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:,.1f} TiB"
