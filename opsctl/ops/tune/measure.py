"""tune measure: what claims, lists, counts and purge cost on this database now, and at ten times its finished rows."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from opsctl.db import Session, in_text
from opsctl.dialects.base import Server
from opsctl.dialects.names import Pair
from opsctl.dialects.postgresql import PostgreSQL
from opsctl.errors import Unreachable
from opsctl.ops.tune.plans import Run, ended_late, limit_time, run_read
from opsctl.ops.tune.share import Share, read_share, share_of_workers
from opsctl.ops.tune.steps import Live, read_live
from opsctl.ops.tune.workload import Read, load_workload
from opsctl.schema.model import Index
from opsctl.schema.sizes import estimate_rows
from opsctl.schema.versions import qualified

CLAIM = "claim"
_TASKS = 50
_SAMPLE = 10_000
#: For finding a task to measure, which is no measurement.
_SEARCH_S = 2.0
_KEPT = timedelta(days=30)
_TIMES = ("available_at", "created_at", "expires_at", "finished_at", "updated_at", "started_at")


@dataclass(frozen=True)
class Measurement:
    """What one operation costs. `passed` rows are looked at for `wanted`; `time_ms` is None beyond the limit of time.

    `at_ten_times_ms` is what it will cost with ten times the finished rows and the same queue: what is passed in vain
    grows tenfold, unless its index keeps live rows apart (the status before any time in its key or in its predicate, or
    a lease, which only live rows have), or unless it ends at its LIMIT before it meets them. Every other time is kept.
    """

    operation: str
    sender: str
    index: str | None
    passed: int | None
    wanted: int
    time_ms: float | None
    at_ten_times_ms: float | None
    note: str = ""


@dataclass(frozen=True)
class Measured:
    """All measurements of a pair, the claim as a whole first. `namespace` and `task` are what claims were measured for."""

    target: str
    server: Server
    namespace: str | None
    task: str | None
    rows_estimate: int
    measurements: tuple[Measurement, ...]
    share: Share | None

    def find(self, operation: str) -> Measurement | None:
        """Return one measurement by its name."""
        return next((one for one in self.measurements if one.operation == operation), None)


def measure_pair(
    session: Session,
    pair: Pair,
    *,
    schema: str | None,
    namespace: str | None,
    task: str | None,
    limit_s: float,
    workers: int | None = None,
    poll_s: float = 1.0,
) -> Measured:
    """Run each read of the workload once or twice, within `limit_s` each, in read-only transactions; nothing is locked.

    Raises StatementRefused when the pair is not there.
    """
    live = read_live(session, pair, schema=schema, with_record=False)
    session.rollback()
    limit_s = min(limit_s, session.timeouts.longest_s)
    rows = estimate_rows(session, live.pair, live.schema)
    if namespace is None or task is None:
        namespace, task = _busiest(session, live, rows, namespace, task)
    session.rollback()
    now = datetime.now(UTC)
    if not isinstance(session.dialect, PostgreSQL):
        now = now.replace(tzinfo=None)
    values = {"now": now, "before": now - _KEPT, "namespace": namespace or "", "task": task or ""}
    reads = load_workload(session.dialect, pair, live.schema)
    measured = []
    for read in reads:
        binds = {name: values[name] for name in read.binds}
        measured.append(_measurement(read, run_read(session, read.statement, binds, limit_s=limit_s), live, limit_s))
    searches = [one for one, read in zip(measured, reads, strict=True) if read.of_claim]
    claim = _claim(searches)
    share: Share | None
    if workers is not None:
        least_ms = sum(limit_s * 1000 if one.time_ms is None else one.time_ms for one in searches)
        share = share_of_workers(least_ms, workers=workers, poll_s=poll_s, at_least=claim.time_ms is None)
    else:
        ready = next(one for one in measured if one.operation == "ready-search")
        share = read_share(session, pair, ready_ms=ready.time_ms)
    return Measured(str(session.target), session.server, namespace, task, rows, (claim, *measured), share)


def _measurement(read: Read, run: Run, live: Live, limit_s: float) -> Measurement:
    note = "" if run.time_ms is not None else f"over {limit_s:g} s"
    if run.by_plan:
        note += f"{'; ' if note else ''}rows passed by the plan"
    ten = None
    if run.time_ms is not None and run.passed:
        stays = keeps_live_apart(live, run.index) if read.of_live else run.stopped_early
        grows = 1.0 if stays else 10.0
        ten = run.time_ms * (run.wanted + grows * (run.passed - run.wanted)) / run.passed
    elif run.time_ms is not None:
        ten = run.time_ms
    return Measurement(read.name, read.sender, run.index, run.passed, run.wanted, run.time_ms, ten, note)


def keeps_live_apart(live: Live, index: str) -> bool:
    """Whether finished rows are out of the way of a read by this index, however many there are."""
    # MariaDB names a second index behind it, by which it filters the rows of the first.
    found: Index | None = live.named(index.partition("|")[0])
    if found is None:
        return False
    if found.predicate and "status" in found.predicate:
        return True
    for part in found.parts:
        if part.name.lower() in ("status", "lease_expires_at"):
            return True
        if part.name.lower() in _TIMES:
            return False
    return False


def _claim(searches: list[Measurement]) -> Measurement:
    late = any(one.time_ms is None for one in searches)
    return Measurement(
        CLAIM,
        "onestep",
        None,
        sum(one.passed or 0 for one in searches),
        sum(one.wanted for one in searches),
        None if late else sum(one.time_ms or 0 for one in searches),
        None if late else sum(one.at_ten_times_ms or 0 for one in searches),
        "the four searches of one claim" + ("; one took longer than the limit" if late else ""),
    )


def _busiest(
    session: Session, live: Live, rows: int, namespace: str | None, task: str | None
) -> tuple[str | None, str | None]:
    """Return the namespace and task with the most rows, as far as that can be had without reading them all.

    What was given stays as it is. None where there are no rows.
    """
    limit_time(session, min(_SEARCH_S, session.timeouts.longest_s))
    try:
        found = _in_time(session, live, rows, namespace, task)
        if found[0] is None and task is not None:
            # A task that is rare, or not there: claims of it are measured in the namespace with the most rows.
            return _in_time(session, live, rows, None, None)[0], task
        return found
    finally:
        session.rollback()
        limit_time(session, session.timeouts.longest_s)


def _in_time(
    session: Session, live: Live, rows: int, namespace: str | None, task: str | None
) -> tuple[str | None, str | None]:
    try:
        return _sampled(session, live, rows, namespace, task)
    except Unreachable as error:
        if not ended_late(error):
            raise
        session.rollback()
        return namespace, task


def _sampled(
    session: Session, live: Live, rows: int, namespace: str | None, task: str | None
) -> tuple[str | None, str | None]:
    table = in_text(qualified(session.dialect, live.pair.executions, live.schema))
    given = {name: value for name, value in (("namespace", namespace), ("task_name", task)) if value is not None}
    where = " WHERE " + " AND ".join(f"{name} = :{name}" for name in given) if given else ""
    if isinstance(session.dialect, PostgreSQL):
        share = min(100.0, 100.0 * _SAMPLE / max(rows, 1))
        sample = f"SELECT namespace, task_name FROM {table} TABLESAMPLE SYSTEM ({share:.6f}){where} LIMIT {_SAMPLE}"  # noqa: S608
    else:
        sample = f"SELECT DISTINCT namespace, task_name FROM {table}{where}"  # noqa: S608 (quoted)
        plan = session.read(f"EXPLAIN FORMAT=TRADITIONAL {sample}", given)
        extra = [str(value) for row in plan.rows for value in row]
        if any("Using index for group-by" in value for value in extra):
            return _largest(session, table, f"{sample} LIMIT {_TASKS}", given)
        sample = f"SELECT namespace, task_name FROM {table}{where} LIMIT {_SAMPLE}"  # noqa: S608 (quoted)
    found = Counter((row["namespace"], row["task_name"]) for row in session.rows(sample, **given))
    if not found and " TABLESAMPLE" in sample:  # a table of few pages, of which the sample took none, or a rare task
        whole = re.sub(r" TABLESAMPLE SYSTEM \([\d.]+\)", "", sample)
        found = Counter((row["namespace"], row["task_name"]) for row in session.rows(whole, **given))
    return found.most_common(1)[0][0] if found else (namespace, task)


def _largest(session: Session, table: str, distinct: str, given: dict[str, Any]) -> tuple[str | None, str | None]:
    """Ask the optimizer for its estimate of each."""
    most: tuple[int, str | None, str | None] = (-1, given.get("namespace"), given.get("task_name"))
    for row in session.rows(distinct, **given):
        pair = {"namespace": row["namespace"], "task_name": row["task_name"]}
        explain = (
            f"EXPLAIN FORMAT=TRADITIONAL SELECT 1 FROM {table} WHERE namespace = :namespace AND task_name = :task_name"  # noqa: S608
        )
        plan = session.read(explain, pair)
        rows = int(plan.column(next(name for name in plan.columns if name.lower() == "rows"))[0] or 0)
        most = max(most, (rows, row["namespace"], row["task_name"]), key=lambda one: one[0])
    return most[1], most[2]
