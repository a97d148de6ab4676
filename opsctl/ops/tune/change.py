"""tune apply and revert: change the operational indexes of a pair online, one after the other, each recorded when done."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from opsctl.db import Session, open_session
from opsctl.dialects.names import Pair
from opsctl.dialects.postgresql import PostgreSQL
from opsctl.errors import Guarded, StatementRefused
from opsctl.ops.audit import Audit
from opsctl.ops.tune.online import Patience, Report, open_builder
from opsctl.ops.tune.room import (
    Room,
    Size,
    bytes_needed,
    estimate_size,
    find_room,
    format_bytes,
    online_log_limit,
)
from opsctl.ops.tune.steps import (
    CLEAN,
    DROP,
    FORGET,
    HIDE,
    RECORD,
    SHOW,
    Change,
    Live,
    Step,
    group_steps,
    plan_apply,
    plan_revert,
    read_live,
)
from opsctl.schema.sizes import estimate_rows
from opsctl.schema.versions import record_indexes

#: Rows a second that a build reads at the least, measured on two cores with the table on disk, and halved.
_ROWS_A_SECOND = 50_000
#: Bytes that InnoDB logs for one write of a row while an index of some hundred bytes is built.
_LOGGED_BYTES = 250
_SAMPLE_S = 1.0


@dataclass(frozen=True)
class Demand:
    """What building needs: the size of each index, the disk, and what is known of the room for it."""

    sizes: dict[str, Size]
    room: Room

    @property
    def needed(self) -> int:
        """Bytes that must be free."""
        return bytes_needed(list(self.sizes.values()))


@dataclass(frozen=True)
class Done:
    """A change that was done and the seconds that it took."""

    change: Change
    seconds: float


def estimate_demand(session: Session, live: Live, steps: list[Step]) -> Demand:
    """Return what the steps will need. Reads a sample of a thousand rows."""
    rows = estimate_rows(session, live.pair, live.schema)
    sizes = {
        step.item.name: estimate_size(session, live, step.item.index, rows)
        for step in steps
        if step.builds and step.item.index is not None
    }
    return Demand(sizes, find_room(session))


def require_room(session: Session, demand: Demand) -> None:
    """Raises Guarded when the disk, or InnoDB's log of an online build, is known to be too small for it."""
    if not demand.sizes:
        return
    free = demand.room.free
    if free is not None and free < demand.needed:
        raise Guarded(
            f"{session.target}: building needs {format_bytes(demand.needed)} and {demand.room.directory} has {format_bytes(free)} free",
            "make room there first, or apply one at a time with --only",
        )
    limit = online_log_limit(session)
    if limit is None:
        return
    rows = max(size.rows for size in demand.sizes.values())
    seconds = rows / _ROWS_A_SECOND
    if seconds < 1:
        return
    logged = _writes_a_second(session) * seconds * _LOGGED_BYTES
    if logged > limit:
        raise Guarded(
            f"{session.target}: in the {seconds:,.0f} s of building some {format_bytes(logged)} of changes must be kept, "
            f"and innodb_online_alter_log_max_size is {format_bytes(limit)}",
            "raise that variable (SET GLOBAL, no restart), or run this when less is written",
        )


def apply_indexes(
    session: Session,
    pair: Pair,
    names: Collection[str],
    *,
    schema: str | None,
    patience: Patience,
    audit: Audit,
    report: Report,
) -> Iterator[Done]:
    """Make the operational indexes `names` hold; yield each step when it is done and on record.

    A run that was ended at any moment is recognised by what it left: whole steps are kept, an invalid index is built anew.
    """

    def plan(builder: Session, live: Live) -> list[Step]:
        return plan_apply(builder, live, names)

    yield from _change(session, pair, plan, schema=schema, patience=patience, audit=audit, report=report)


def revert_indexes(
    session: Session,
    pair: Pair,
    names: Collection[str],
    *,
    schema: str | None,
    patience: Patience,
    audit: Audit,
    report: Report,
) -> Iterator[Done]:
    """Take the operational indexes `names` back; yield each step when it is done and off the record."""

    def plan(builder: Session, live: Live) -> list[Step]:
        return plan_revert(builder, live, names)

    yield from _change(session, pair, plan, schema=schema, patience=patience, audit=audit, report=report)


def _change(
    session: Session,
    pair: Pair,
    plan: Callable[[Session, Live], list[Step]],
    *,
    schema: str | None,
    patience: Patience,
    audit: Audit,
    report: Report,
) -> Iterator[Done]:
    live = read_live(session, pair, schema=schema)
    session.rollback()
    with open_builder(session, live, patience, report) as builder:
        live = read_live(builder.session, pair, schema=schema)  # another may have been at work until now
        # On the builder's connection: a transaction that stays open on another is one that CONCURRENTLY waits for.
        changes = group_steps(session, live, plan(builder.session, live))
        recorded = live.recorded
        audit.record(
            "begin",
            steps=[{"what": change.what, "statements": list(change.statements)} for change in changes],
            schema=live.schema,
            versions_before=sorted(recorded),
        )
        try:
            for change in changes:
                started = time.monotonic()
                report(change.what)
                for statement in change.statements:
                    builder.run(statement, builds=_built(session, change))
                for step in change.steps:
                    _require_done(builder.session, pair, step, live.schema)
                    recorded = _recorded_after(step, recorded)
                _record(session, pair, recorded, live.schema)
                yield Done(change, time.monotonic() - started)
        except BaseException as error:
            audit.record("failed", error=str(error) or type(error).__name__, versions_after=sorted(recorded))
            raise
        audit.record("committed", versions_after=sorted(recorded))


def _built(session: Session, change: Change) -> str | None:
    """Return the index that a failed build or drop leaves invalid, where the server does not: CONCURRENTLY."""
    if not isinstance(session.dialect, PostgreSQL):
        return None
    return next((step.item.object for step in change.steps if step.builds or step.action == DROP), None)


def _recorded_after(step: Step, recorded: frozenset[str]) -> frozenset[str]:
    taken_back = step.action in (DROP, FORGET) or (step.action == SHOW and step.item.hides)
    if taken_back:
        return recorded - {step.item.name}
    return recorded if step.action == CLEAN else recorded | {step.item.name}


def _require_done(session: Session, pair: Pair, step: Step, schema: str | None) -> None:
    """Look whether the server did what it was asked to: IF NOT EXISTS and event triggers lie."""
    if step.action in (RECORD, FORGET):
        return
    live = read_live(session, pair, schema=schema)
    found = live.named(step.item.object)
    if step.action == CLEAN:
        return
    right = {
        DROP: found is None,
        HIDE: found is not None and not found.visible,
        SHOW: found is not None and found.visible,
    }.get(step.action, found is not None and found.valid and found.visible)
    if not right:
        raise StatementRefused(
            f"{session.target}: {step.item.object} is not as asked for: {step.what}",
            "opsctl verify-schema shows how it is; a setting or an event trigger of the server changes what is made",
        )


def _record(session: Session, pair: Pair, names: Collection[str], schema: str | None) -> None:
    """In a session of its own: the one that plans may have been cut off while an index was built."""
    with open_session(session.target, session.timeouts, read_only=False) as own:
        record_indexes(own, pair, names, schema=schema)
        own.commit()


def _writes_a_second(session: Session) -> float:
    names = ("Innodb_rows_inserted", "Innodb_rows_updated", "Innodb_rows_deleted")

    def count() -> int:
        rows = session.rows(f"SHOW GLOBAL STATUS WHERE Variable_name IN {names}")
        return sum(int(row.values[1]) for row in rows)

    before = count()
    time.sleep(_SAMPLE_S)
    return (count() - before) / _SAMPLE_S
