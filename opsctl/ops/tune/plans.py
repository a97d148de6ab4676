"""What one read costs: by which index, how many rows it passes for how many that it wants, and the time."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from opsctl.db import Session
from opsctl.dialects.postgresql import PostgreSQL
from opsctl.errors import Unreachable
from opsctl.failures import error_code

WHOLE_TABLE = "none: the whole table"
_LATE = (1317, 1969, 3024, "57014")
#: Reading a row by its place again, to sort it, is no passing of it.
_PASSING = ("key", "next", "prev", "first", "last", "rnd_next")


@dataclass(frozen=True)
class Run:
    """One run; `time_ms` is None when it was ended after the limit, and `passed` is then the plan's.

    `by_plan` says that `passed` is the optimizer's estimate; `stopped_early` that it read in the order asked for and ended
    at its LIMIT, so that what lies behind costs it nothing.
    """

    index: str
    passed: int | None
    wanted: int
    time_ms: float | None
    by_plan: bool = False
    stopped_early: bool = False


def ended_late(error: Unreachable) -> bool:
    """Whether the server ended the statement at its limit of time, which leaves the session as it was."""
    return error_code(error) in _LATE


def run_read(session: Session, statement: str, binds: Mapping[str, Any], *, limit_s: float) -> Run:
    """Run a read in the session's read-only transaction, twice where the first shows that it is quick."""
    run = _run_postgresql if isinstance(session.dialect, PostgreSQL) else _run_mysql
    limit_time(session, limit_s)
    try:
        first = run(session, statement, binds)
        # What came from the disk the first time is in memory for the next claim, a second later.
        return run(session, statement, binds) if first.time_ms is not None and first.time_ms < limit_s * 200 else first
    finally:
        session.rollback()
        limit_time(session, session.timeouts.longest_s)


def limit_time(session: Session, seconds: float) -> None:
    """Have the server end each statement that takes longer."""
    if isinstance(session.dialect, PostgreSQL):
        session.scalar("SELECT set_config('statement_timeout', :limit, false)", limit=f"{round(seconds * 1000)}ms")
        session.commit()  # or the next rollback takes it back
    else:
        session.run(f"SET {session.dialect.statement_timeout(seconds)}")


# -- MySQL and MariaDB -----------------------------------------------------------------------------------------------


def _run_mysql(session: Session, statement: str, binds: Mapping[str, Any]) -> Run:
    index, planned, extra = "not known", None, ""
    try:
        step = _first_step(session, statement, binds)
        index, extra = str(step["key"]) if step["key"] else WHOLE_TABLE, str(step["extra"])
        planned = int(float(re.findall(r"\d+", str(step["rows"] or 0))[0]))
        return _time_mysql(session, statement, binds, index, planned, extra)
    except Unreachable as error:
        if not ended_late(error):
            raise
        session.rollback()
        return Run(index, planned, 0, None, by_plan=planned is not None)


def _time_mysql(
    session: Session, statement: str, binds: Mapping[str, Any], index: str, planned: int, extra: str
) -> Run:
    before = _handlers(session)
    asking = {name: count - before[name] for name, count in _handlers(session).items()}
    before = _handlers(session)
    started = time.perf_counter()
    wanted = len(session.rows(statement, **binds))
    took_ms = (time.perf_counter() - started) * 1000
    after = _handlers(session)
    counts = {name: max(0, after[name] - before[name] - asking[name]) for name in after}
    if "Using temporary" in extra:
        # Each row looks its group up in the temporary table, and the groups are read from there: no rows of ours.
        counts["Handler_read_key"] = 0
        counts["Handler_read_rnd_next"] = max(0, counts["Handler_read_rnd_next"] - wanted - 1)
    passed = sum(counts.values())
    in_order = "Using filesort" not in extra and "Using temporary" not in extra
    stopped = in_order and wanted == _most(statement)
    # All of it was read, and what the index itself turned away is counted nowhere.
    by_plan = "Using index condition" in extra and not stopped and planned > passed
    return Run(index, max(planned if by_plan else passed, wanted), wanted, took_ms, by_plan, stopped)


def _most(statement: str) -> float:
    """Return how many rows the statement stops at."""
    limit = re.search(r"LIMIT (\d+)\s*$", statement)
    return int(limit[1]) if limit else float("inf")


def _first_step(session: Session, statement: str, binds: Mapping[str, Any]) -> dict[str, Any]:
    plan = session.read(f"EXPLAIN FORMAT=TRADITIONAL {statement}", binds)
    names = [name.lower() for name in plan.columns]
    steps = [dict(zip(names, row, strict=True)) for row in plan.rows]
    # MySQL answers a search of a table without rows while it plans.
    return next((step for step in steps if step["table"]), {"key": None, "rows": 0, "extra": ""})


def _handlers(session: Session) -> dict[str, int]:
    rows = session.rows("SHOW SESSION STATUS LIKE 'Handler\\_read\\_%'")
    names = {f"Handler_read_{name}" for name in _PASSING}
    return {str(row.values[0]): int(row.values[1]) for row in rows if str(row.values[0]) in names}


# -- PostgreSQL ------------------------------------------------------------------------------------------------------


def _run_postgresql(session: Session, statement: str, binds: Mapping[str, Any]) -> Run:
    planned = _plan(session, "EXPLAIN (FORMAT JSON)", statement, binds)
    try:
        found = _plan(session, "EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON)", statement, binds)
    except Unreachable as error:
        if not ended_late(error):
            raise
        session.rollback()
        scans = list(_scans(planned["Plan"]))
        return Run(_index_of(scans), sum(round(node["Plan Rows"]) for node in scans), 0, None, by_plan=True)
    scans = list(_scans(found["Plan"]))
    passed = sum(
        (node["Actual Rows"] + node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0))
        * node["Actual Loops"]
        for node in scans
    )
    wanted = round(found["Plan"]["Actual Rows"])
    took_ms = found["Execution Time"] + found["Planning Time"]
    stopped = wanted == _most(statement) and not _sorts(found["Plan"])
    return Run(_index_of(scans), max(round(passed), wanted), wanted, took_ms, stopped_early=stopped)


def _plan(session: Session, explain: str, statement: str, binds: Mapping[str, Any]) -> dict[str, Any]:
    document: dict[str, Any] = session.scalar(f"{explain} {statement}", **binds)[0]
    return document


def _scans(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if "Relation Name" in node:
        yield node
    for child in node.get("Plans", ()):
        yield from _scans(child)


def _sorts(node: dict[str, Any]) -> bool:
    """Whether all rows are read before the first comes out."""
    return node["Node Type"] in ("Sort", "Aggregate", "Bitmap Heap Scan") or any(map(_sorts, node.get("Plans", ())))


def _index_of(scans: list[dict[str, Any]]) -> str:
    """The index of the scan of the executions, which comes first; those of a bitmap stand below it."""
    return (_named_in(scans[0]) if scans else None) or WHOLE_TABLE


def _named_in(node: dict[str, Any]) -> str | None:
    if "Index Name" in node:
        return str(node["Index Name"])
    bitmaps = (below for below in node.get("Plans", ()) if below["Node Type"].startswith("Bitmap"))
    return next((name for name in map(_named_in, bitmaps) if name), None)
