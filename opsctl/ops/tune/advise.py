"""tune advise: which operational indexes pay on this database, by what its claims cost now.

An index pays where the reads that it serves pass thousands of rows in vain: some ten milliseconds of each poll of each
worker. Source of the thresholds: docs/adr/0009-operational-indexes.md and `benchmarks/claims`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from opsctl.db import Session, in_text
from opsctl.dialects.names import Pair
from opsctl.dialects.postgresql import PostgreSQL
from opsctl.errors import OpsctlError
from opsctl.ops.tune.measure import Measured, Measurement, measure_pair
from opsctl.ops.tune.plans import WHOLE_TABLE
from opsctl.ops.tune.room import Size, estimate_size
from opsctl.ops.tune.steps import Live, read_live
from opsctl.schema.operational import Operational
from opsctl.schema.sizes import estimate_rows
from opsctl.schema.versions import qualified

PAYS = "pays"
IN_PLACE = "in place"
NOT_NOW = "does not pay"
CONSIDER = "consider"

#: Rows that a read may pass in vain: below, an index changes little.
_IN_VAIN = 5_000
#: What purge reads in vain; it runs once a day, not once a second.
_IN_VAIN_OF_PURGE = 50_000
#: Some ten milliseconds of each poll of each worker.
_SLOW_MS = 10.0
#: As many rows of an index are read in some ten milliseconds.
_WAITING_LONG = 20_000
#: Below, either index finds them at once.
_LONG_QUEUE = 1_000
_COUNT_UP_TO = 1_000_000
_KEPT_DAYS = 30


@dataclass(frozen=True)
class Advice:
    """What is said about one index, or about retention: `writes` are the entries that acts of onestep write more."""

    name: str
    verdict: str
    why: str
    size: Size | None = None
    writes: str = ""

    @property
    def pays(self) -> bool:
        """Whether it is to be applied."""
        return self.verdict == PAYS


@dataclass(frozen=True)
class Advised:
    """The measurements, and what follows from them."""

    measured: Measured
    advice: tuple[Advice, ...]

    @property
    def paying(self) -> tuple[str, ...]:
        """The names to apply."""
        return tuple(one.name for one in self.advice if one.pays)

    def is_worse_than(self, before: Advised) -> bool:
        """Whether a claim passes more rows and takes longer than it did `before`."""
        now, was = self.measured.find("claim"), before.measured.find("claim")
        if now is None or was is None or now.time_ms is None or was.time_ms is None:
            return False
        return now.time_ms > 1.2 * was.time_ms and (now.passed or 0) > (was.passed or 0) + _IN_VAIN

    def gains(self, before: Advised) -> Iterator[str]:
        """Yield a line for each operation that passes fewer rows than it did `before`."""
        old = {one.operation: one for one in before.measured.measurements}
        for new in self.measured.measurements:
            was = old.get(new.operation)
            if was is None or new.time_ms is None or (new.passed or 0) >= (was.passed or 0):
                continue
            times = (
                f" ({was.time_ms / new.time_ms:,.0f} times)"
                if was.time_ms and was.time_ms > 2 * new.time_ms > 0
                else ""
            )
            yield f"{new.operation}: {_cost(was)} before, {_cost(new)} now{times}"


def advise_indexes(
    session: Session, pair: Pair, *, schema: str | None, namespace: str | None, task: str | None, limit_s: float
) -> Advised:
    """Measure, read what is there, and say of each operational index whether it pays. Reads only."""
    live = read_live(session, pair, schema=schema, with_record=False)
    session.rollback()
    measured = measure_pair(session, pair, schema=live.schema, namespace=namespace, task=task, limit_s=limit_s)
    session.rollback()
    facts = _Facts(session, live, measured)
    advice = [*(facts.about(item) for item in live.operational), facts.about_retention()]
    session.rollback()
    return Advised(measured, tuple(advice))


class _Facts:
    def __init__(self, session: Session, live: Live, measured: Measured) -> None:
        self._session = session
        self._live = live
        self._by_name: Mapping[str, Measurement] = {one.operation: one for one in measured.measurements}
        self._measured = measured
        self._rows = estimate_rows(session, live.pair, live.schema)
        self._items = {item.name: item for item in live.operational}
        self._postgresql = isinstance(session.dialect, PostgreSQL)
        self._waiting = self._count_waiting()

    def about(self, item: Operational) -> Advice:
        """Return the advice about one operational index."""
        if item.hides and item.holds_in(self._live.table) and self._queue_is_long():
            why = f"{self._waiting:,} of about {self._rows:,} rows wait: walking past what has ended by the stock claim index costs less than sorting them; while that is so: opsctl tune revert --only {item.name}"
            return Advice(item.name, CONSIDER, why, writes=_writes(item))
        if item.holds_in(self._live.table):
            found = item.found_in(self._live.table)
            name = found.name if found is not None else item.object
            other = f"; {name} does its work" if name != item.object else ""
            return Advice(item.name, IN_PLACE, f"serves {', '.join(item.serves)}{other}", writes=_writes(item))
        verdict, why = {
            "ready": self._ready,
            "overdue": self._overdue,
            "finished": self._finished,
            "hide-claim": self._hide_claim,
        }[item.name]()
        own = self._live.named(item.object)
        if item.index is not None and own is not None and not own.valid:
            verdict, why = PAYS, "a build that did not end left it invalid: it costs every write and serves nothing"
        size = estimate_size(self._session, self._live, item.index, self._rows) if item.index is not None else None
        return Advice(item.name, verdict, why, size, _writes(item))

    def about_retention(self) -> Advice:
        """Say what keeping 30 days would change, which no index does."""
        oldest = self._oldest()
        if oldest is None:
            return Advice("retention", NOT_NOW, "there are no rows to speak of")
        days = (datetime.now(UTC) - oldest).total_seconds() / 86400
        kept = min(1.0, _KEPT_DAYS / max(days, 0.001))
        since = f"the oldest of about {self._rows:,} rows is of {oldest:%Y-%m-%d}"
        if kept > 0.5 or self._rows < 100_000:
            return Advice("retention", NOT_NOW, f"{since}: keeping {_KEPT_DAYS} days would not change much")
        return Advice(
            "retention",
            CONSIDER,
            f"{since}: keeping {_KEPT_DAYS} days would leave some {kept:.0%}, and every index, backup and scan as much smaller",
        )

    def _ready(self) -> tuple[str, str]:
        searches = [self._by_name.get(name) for name in ("overdue-search", "ready-search")]
        vain = sum(_in_vain(one) for one in searches)
        if vain >= _IN_VAIN:
            cost = self._by_name["claim"]
            return PAYS, f"a claim passes about {vain:,} rows in vain: {_time(cost)} in every poll of every worker"
        return NOT_NOW, f"a claim passes only {vain:,} rows in vain"

    def _overdue(self) -> tuple[str, str]:
        search = self._by_name.get("overdue-search")
        vain = _in_vain(search)
        if self._postgresql:
            slow = search is not None and (search.time_ms is None or search.time_ms >= _SLOW_MS)
            if vain >= _WAITING_LONG or (vain >= _IN_VAIN and slow):
                return (
                    PAYS,
                    f"the search for overdue rows, which begins every claim, passes {vain:,} rows in vain: {_time(search)}",
                )
            return NOT_NOW, f"the search for overdue rows passes only {vain:,} rows in vain: the queue is short"
        whole = search is not None and search.index == WHOLE_TABLE and vain >= _IN_VAIN
        if whole and self._items["ready"].holds_in(self._live.table):
            return (
                PAYS,
                f"the search for overdue rows reads the whole table although ready is there: {vain:,} rows in vain, {_time(search)}",
            )
        if (self._waiting or 0) >= _WAITING_LONG:
            return PAYS, f"{self._waiting:,} rows wait, and every claim reads them all to see whether one is overdue"
        return NOT_NOW, f"the index ready serves the search for overdue rows too, until some {_WAITING_LONG:,} wait"

    def _finished(self) -> tuple[str, str]:
        purge = self._by_name.get("purge")
        vain = _in_vain(purge)
        if vain >= _IN_VAIN_OF_PURGE:
            return (
                PAYS,
                f"retention, throughput and the exporter find what has ended by reading {vain:,} rows in vain: {_time(purge)}",
            )
        return NOT_NOW, f"finding what has ended passes only {vain:,} rows in vain"

    def _hide_claim(self) -> tuple[str, str]:
        if self._live.named(str(self._items["hide-claim"].hides)) is None:
            return NOT_NOW, "there is no stock claim index to hide: opsctl verify-schema says what else is missing"
        ready = self._items["ready"]
        stands = ready.holds_in(self._live.table)
        if not stands and self._ready()[0] != PAYS:
            return NOT_NOW, "the stock claim index is the best there is while ready does not pay"
        if self._queue_is_long():
            return NOT_NOW, (
                f"{self._waiting:,} of about {self._rows:,} rows wait: sorting them costs more than walking past what has ended; "
                "look again when the queue is short"
            )
        search = self._by_name.get("ready-search")
        now = f" ({_time(search)} now)" if _in_vain(search) >= _IN_VAIN else ""
        return PAYS, (
            "as soon as some thousand rows wait the optimizer prefers the stock claim index, and walks past every finished row "
            f"of the task{now}"
        )

    def _queue_is_long(self) -> bool:
        """Whether so many rows wait that the order of the stock claim index finds them sooner than a sort."""
        return (
            self._waiting is not None and self._waiting > _LONG_QUEUE and self._waiting * 2 > self._rows - self._waiting
        )

    def _count_waiting(self) -> int | None:
        """Count what waits, up to a million; None where that takes too long."""
        measured = self._by_name.get("waiting")
        if measured is None or measured.time_ms is None:
            return None
        table = in_text(qualified(self._session.dialect, self._live.pair.executions, self._live.schema))
        sql = f"SELECT count(*) FROM (SELECT 1 AS one FROM {table} WHERE status IN ('queued', 'retrying') LIMIT {_COUNT_UP_TO}) w"  # noqa: S608 (quoted)
        try:
            return int(self._session.scalar(sql))
        except OpsctlError:
            with contextlib.suppress(OpsctlError):
                self._session.rollback()
            return None

    def _oldest(self) -> datetime | None:
        """The oldest row of the namespace that was measured: one entry of the list index."""
        if self._measured.namespace is None:
            return None
        table = in_text(qualified(self._session.dialect, self._live.pair.executions, self._live.schema))
        found: datetime | None = self._session.scalar(
            f"SELECT created_at FROM {table} WHERE namespace = :namespace ORDER BY created_at, id LIMIT 1",  # noqa: S608
            namespace=self._measured.namespace,
        )
        if found is None:
            return None
        return found if found.tzinfo else found.replace(tzinfo=UTC)


def _in_vain(one: Measurement | None) -> int:
    return 0 if one is None or one.passed is None else max(0, one.passed - one.wanted)


def _cost(one: Measurement | None) -> str:
    if one is None:
        return "not measured"
    passed = f"{one.passed:,} rows passed" if one.passed is not None else "rows not counted"
    return f"{one.time_ms:,.1f} ms, {passed}" if one.time_ms is not None else f"over the limit of time, {passed}"


def _time(one: Measurement | None) -> str:
    return "too long to measure" if one is None or one.time_ms is None else f"{one.time_ms:,.0f} ms"


def _writes(item: Operational) -> str:
    return ", ".join(f"{act} +{count}" for act, count in item.writes.items() if count)
