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
    """One run; `time_ms` is None when it was ended after the limit, and `passed` is then the plan's."""

    index: str
    passed: int | None
    wanted: int
    time_ms: float | None


def run_read(session: Session, statement: str, binds: Mapping[str, Any], *, limit_s: float) -> Run:
    """Run a read in the session's read-only transaction, twice where the first shows that it is quick."""
    run = _run_postgresql if isinstance(session.dialect, PostgreSQL) else _run_mysql
    _limit(session, limit_s)
    try:
        first = run(session, statement, binds)
        # What came from the disk the first time is in memory for the next claim, a second later.
        return run(session, statement, binds) if first.time_ms is not None and first.time_ms < limit_s * 200 else first
    finally:
        session.rollback()
        _limit(session, session.timeouts.longest_s)


def _limit(session: Session, seconds: float) -> None:
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
        if error_code(error) not in _LATE:
            raise
        session.rollback()
        return Run(index, planned, 0, None)


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
    passed = sum(max(0, after[name] - before[name] - asking[name]) for name in after)
    if "Using index condition" in extra and ("Using filesort" in extra or wanted < _most(statement)):
        passed = max(passed, planned)  # all of it was read, and what the index itself turned away is counted nowhere
    return Run(index, max(passed, wanted), wanted, took_ms)


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
        if error_code(error) not in _LATE:
            raise
        session.rollback()
        scans = list(_scans(planned["Plan"]))
        return Run(_index_of(scans), sum(round(node["Plan Rows"]) for node in scans), 0, None)
    scans = list(_scans(found["Plan"]))
    passed = sum(
        (node["Actual Rows"] + node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0))
        * node["Actual Loops"]
        for node in scans
    )
    wanted = round(found["Plan"]["Actual Rows"])
    return Run(_index_of(scans), max(round(passed), wanted), wanted, found["Execution Time"] + found["Planning Time"])


def _plan(session: Session, explain: str, statement: str, binds: Mapping[str, Any]) -> dict[str, Any]:
    document: dict[str, Any] = session.scalar(f"{explain} {statement}", **binds)[0]
    return document


def _scans(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if "Relation Name" in node:
        yield node
    for child in node.get("Plans", ()):
        yield from _scans(child)


def _index_of(scans: list[dict[str, Any]]) -> str:
    """The index of the scan of the executions, which comes first; a bitmap's names stand below it."""
    for node in scans:
        for below in (node, *node.get("Plans", ())):
            if "Index Name" in below:
                return str(below["Index Name"])
        return WHOLE_TABLE
    return WHOLE_TABLE
