"""Run one change of an index while the application works: short waits for its locks, tried again, with progress.

MySQL and MariaDB want the table for themselves for a moment at the beginning and at the end of a build. While they wait
for that, everything else queues behind them; so they wait no longer than the lock timeout, and the application has the
table to itself between two tries. PostgreSQL's CONCURRENTLY waits for older transactions, and nobody waits for it.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from opsctl.db import Session, open_session
from opsctl.dialects.base import Timeouts
from opsctl.dialects.mariadb import MariaDB
from opsctl.dialects.names import derive_name
from opsctl.dialects.postgresql import PostgreSQL
from opsctl.errors import Guarded, OpsctlError, Unreachable
from opsctl.failures import error_code
from opsctl.ops.ddl_locks import advisory_holder
from opsctl.ops.tune.steps import Live, drop_sql
from opsctl.schema.versions import qualified

#: Not had in time, or given up for another's sake: nothing is changed, and it is worth another try.
_TRY_AGAIN = (1205, 1213, "40P01", "55P03")
_POLL_S = 0.5
_LOCK_POLL_S = 1.0
_PAUSE_FACTOR = 2.0

Report = Callable[[str], None]

_ON_POSTGRESQL = """
SELECT phase, current_locker_pid AS waits_for,
       CASE WHEN blocks_total > 0 THEN 100.0 * blocks_done / blocks_total
            WHEN tuples_total > 0 THEN 100.0 * tuples_done / tuples_total END AS percent
  FROM pg_catalog.pg_stat_progress_create_index WHERE pid = :id
"""
_ON_MARIADB = (
    "SELECT state AS phase, progress AS percent FROM information_schema.processlist WHERE id = :id AND progress > 0"
)
_STAGES = """
SELECT SUBSTRING_INDEX(s.event_name, '/', -1) AS phase,
       100.0 * s.work_completed / NULLIF(s.work_estimated, 0) AS percent
  FROM performance_schema.events_stages_current s JOIN performance_schema.threads t USING (thread_id)
 WHERE t.processlist_id = :id
"""
_NEXT = (
    "see opsctl query run transactions for what is open; then run the same again, which goes on from there "
    "(--build-timeout is the time for one)"
)
_IS_VALID = "SELECT indisvalid FROM pg_catalog.pg_index WHERE indexrelid = to_regclass(:name)"
_STATE = "SELECT state AS phase FROM information_schema.processlist WHERE id = :id"
_HOLDERS_ON_MYSQL = """
SELECT DISTINCT t.processlist_id AS id
  FROM performance_schema.metadata_locks m JOIN performance_schema.threads t ON t.thread_id = m.owner_thread_id
 WHERE m.object_schema = DATABASE() AND m.object_name = :name AND m.lock_status = 'GRANTED'
   AND t.processlist_id <> CONNECTION_ID()
"""
_OLD_TRANSACTIONS = """
SELECT trx_mysql_thread_id AS id FROM information_schema.innodb_trx
 WHERE trx_mysql_thread_id <> CONNECTION_ID() ORDER BY trx_started LIMIT 5
"""


@dataclass(frozen=True)
class Patience:
    """Seconds: for one lock, for one build, and for how long to go on trying."""

    lock_s: float
    build_s: float
    retry_for_s: float


class Builder:
    """A session of its own for the changes, which nobody else makes on this pair meanwhile."""

    def __init__(self, session: Session, live: Live, patience: Patience, report: Report) -> None:
        self.session = session
        self._live = live
        self._patience = patience
        self._report = report
        own_id = "SELECT pg_backend_pid()" if isinstance(session.dialect, PostgreSQL) else "SELECT CONNECTION_ID()"
        self._id = int(session.scalar(own_id))

    def run(self, statement: str, *, builds: str | None = None) -> None:
        """Run a statement, and try again while another's lock is in its way. Raises Unreachable when patience ends.

        `builds` names the index that PostgreSQL would leave invalid: it is dropped before another try and at the end.
        """
        until = time.monotonic() + self._patience.retry_for_s
        while True:
            try:
                with _watched(self.session, self._id, self._report):
                    self.session.run(statement)
                return
            except OpsctlError as error:
                code = error_code(error)
                left = self._clean_up(builds)
                if not isinstance(error, Unreachable) or code not in _TRY_AGAIN:
                    if left:
                        raise type(error)(f"{error.message}; {left}", _NEXT) from error.__cause__
                    raise
                self.session.rollback()
                if time.monotonic() >= until:
                    raise Unreachable(
                        f"{error.message}; tried for {self._patience.retry_for_s:g} s{self._holders()}",
                        "nothing is changed: see opsctl query run transactions for what is open and let it end, or raise --lock-timeout "
                        "(the application waits as long) or --retry-for",
                    ) from error.__cause__
            pause = self._patience.lock_s * _PAUSE_FACTOR
            self._report(f"the table is in use{self._holders()}; trying again in {pause:g} s")
            time.sleep(min(pause, max(0.0, until - time.monotonic())))

    def _clean_up(self, index: str | None) -> str:
        """Drop an index that was left invalid; one that is valid is somebody else's. Return what could not be dropped."""
        if index is None:
            return ""
        with contextlib.suppress(OpsctlError):  # the connection is gone: the next run finds what is left, and cleans up
            self.session.rollback()
            name = qualified(self.session.dialect, index, self._live.schema)
            if self.session.scalar(_IS_VALID, name=name) is False:
                self.session.run(drop_sql(self.session, self._live, index))
            return ""
        return f"{index} is left invalid, or gone when the server has ended what it does"

    def _holders(self) -> str:
        if isinstance(self.session.dialect, PostgreSQL):
            return ""
        for sql, binds in ((_HOLDERS_ON_MYSQL, {"name": self._live.pair.executions}), (_OLD_TRANSACTIONS, {})):
            with contextlib.suppress(OpsctlError):
                ids = [str(row["id"]) for row in self.session.rows(sql, **binds)]
                if ids:
                    return f" (by session {', '.join(ids[:5])})"
            with contextlib.suppress(OpsctlError):
                self.session.rollback()
        return ""


@contextlib.contextmanager
def open_builder(session: Session, live: Live, patience: Patience, report: Report) -> Iterator[Builder]:
    """Connect once more, beside `session`, and hold the lock that keeps two changes of one pair apart.

    A build goes on in the server when its client is killed; its session holds the lock until it has ended. Waits for that
    up to `patience.retry_for_s`, then raises Guarded.
    """
    on_postgresql = isinstance(session.dialect, PostgreSQL)
    timeouts = Timeouts(
        connect_s=session.timeouts.connect_s,
        # Nobody queues behind what waits for CONCURRENTLY.
        lock_s=patience.build_s if on_postgresql else patience.lock_s,
        statement_s=patience.build_s,
    )
    with open_session(session.target, timeouts, read_only=False) as builder:
        if on_postgresql:
            builder.connection.execution_options(isolation_level="AUTOCOMMIT")
        _take_turn(builder, live, patience, report)
        yield Builder(builder, live, patience, report)


def _take_turn(session: Session, live: Live, patience: Patience, report: Report) -> None:
    until = time.monotonic() + patience.retry_for_s
    while True:
        holder = _try_lock(session, live)
        if holder is None:
            return
        if time.monotonic() >= until:
            raise Guarded(
                f"{session.target}: session {holder} changes the indexes of {live.pair.executions} already",
                "let it end, or end that session; then run this again: it goes on from there",
            )
        report(f"session {holder} changes indexes of {live.pair.executions} already; waiting for it")
        time.sleep(_LOCK_POLL_S)


def _try_lock(session: Session, live: Live) -> str | None:
    """Take the lock; return who has it when it cannot be had at once. It lasts as long as the session."""
    if isinstance(session.dialect, PostgreSQL):
        name = f"opsctl tune {live.schema} {live.pair.executions}"
        key = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], byteorder="big", signed=True)
        if session.scalar("SELECT pg_try_advisory_lock(:key)", key=key):
            return None
        return str(advisory_holder(session, key) or "?")
    # A lock's name holds for the whole server, so the database is part of it; the hash keeps it within 64 characters.
    name = derive_name("opsctl_tune_", hashlib.sha256(str(session.scalar("SELECT DATABASE()")).encode()).hexdigest()[:12],
                       live.pair.executions, max_length=64)  # fmt: skip
    if session.scalar("SELECT GET_LOCK(:name, 0)", name=name) == 1:
        return None
    return str(session.scalar("SELECT IS_USED_LOCK(:name)", name=name) or "?")


@contextlib.contextmanager
def _watched(session: Session, builder_id: int, report: Report) -> Iterator[None]:
    """Report what the server says of the statement that the block runs, from a connection of its own."""
    done = threading.Event()
    thread = threading.Thread(target=_watch, args=(session, builder_id, report, done), daemon=True, name="opsctl-watch")
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(_POLL_S)


def _watch(session: Session, builder_id: int, report: Report, done: threading.Event) -> None:
    """Progress is a comfort: whatever goes wrong here must not disturb the build."""
    with contextlib.suppress(Exception):
        if done.wait(_POLL_S):
            return
        timeouts = replace(session.timeouts, lock_s=session.timeouts.connect_s, statement_s=session.timeouts.connect_s)
        with open_session(session.target, timeouts, read_only=True) as watcher:
            while not done.wait(_POLL_S):
                if text := _progress(watcher, builder_id):
                    report(text)


def _progress(watcher: Session, builder_id: int) -> str:
    if isinstance(watcher.dialect, PostgreSQL):
        queries = [_ON_POSTGRESQL]
    else:
        queries = [_ON_MARIADB if isinstance(watcher.dialect, MariaDB) else _STAGES, _STATE]
    for sql in queries:
        rows: list[dict[str, object]] = []
        with contextlib.suppress(OpsctlError):
            rows = [dict(zip(row.names, row.values, strict=True)) for row in watcher.rows(sql, id=builder_id)]
        watcher.rollback()
        if rows and rows[0].get("phase"):
            text = str(rows[0]["phase"])
            percent = rows[0].get("percent")
            text += f", {float(str(percent)):.0f} %" if percent is not None else ""
            return text + (f", waits for session {rows[0]['waits_for']}" if rows[0].get("waits_for") else "")
    return ""
