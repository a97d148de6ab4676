"""How much of the server's work claims are: by its own statistics, or by the number of workers."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

from opsctl.db import Session
from opsctl.dialects.names import Pair
from opsctl.dialects.postgresql import PostgreSQL
from opsctl.errors import OpsctlError

_DIGESTS = """
SELECT SUM(count_star) AS claims, SUM(sum_timer_wait) / 1e12 AS seconds, MIN(first_seen) AS since,
       TIMESTAMPDIFF(SECOND, MIN(first_seen), MAX(last_seen)) AS span_s
  FROM performance_schema.events_statements_summary_by_digest
 WHERE schema_name = DATABASE() AND digest_text LIKE :pattern
"""
_ALL_DIGESTS = """
SELECT SUM(sum_timer_wait) / 1e12 AS seconds FROM performance_schema.events_statements_summary_by_digest
"""
_STATEMENTS = """
SELECT sum(calls) FILTER (WHERE plain LIKE :first) AS claims,
       sum(total_exec_time) FILTER (WHERE plain LIKE :first OR plain LIKE :second OR plain LIKE :third) / 1000 AS seconds,
       (SELECT sum(total_exec_time) / 1000 FROM {schema}.pg_stat_statements) AS whole
  FROM (SELECT calls, total_exec_time, replace(query, '"', '') AS plain FROM {schema}.pg_stat_statements
         WHERE dbid = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())) AS statements
"""
_STATEMENTS_SINCE = """
SELECT stats_reset AS since, CAST(extract(epoch FROM now() - stats_reset) AS float) AS span_s
  FROM {schema}.pg_stat_statements_info
"""
#: It need not be on the search_path.
_EXTENSION = """
SELECT nspname FROM pg_catalog.pg_extension JOIN pg_catalog.pg_namespace n ON n.oid = extnamespace
 WHERE extname = 'pg_stat_statements'
"""


@dataclass(frozen=True)
class Share:
    """What claims take: `part` of `of`, and where that is known from. `claims_s` is claims a second."""

    part: float
    of: str
    source: str
    claims_s: float | None = None

    def __str__(self) -> str:
        often = f", {self.claims_s:,.1f} claims a second" if self.claims_s is not None else ""
        part = f"{self.part:.1%} of {self.of}" if self.part <= 1 else f"{self.part:,.1f} cores"
        return f"claims take {part}{often} ({self.source})"


def share_of_workers(claim_ms: float, *, workers: int, poll_s: float, at_least: bool = False) -> Share:
    """Return what idle `workers` take of one core: each claims, and sleeps `poll_s` seconds when it has found nothing.

    `at_least`: the claim takes longer than `claim_ms`, by how much is not known.
    """
    claims_s = workers / (poll_s + claim_ms / 1000)
    source = f"{workers} workers, a poll every {poll_s:g} s{', and more: a claim takes too long to be measured' if at_least else ''}"
    return Share(claims_s * claim_ms / 1000, "one core", source, None if at_least else claims_s)


def read_share(session: Session, pair: Pair, *, ready_ms: float | None) -> Share | None:
    """Return what the server's own statistics say; None where they are off or not to be read.

    On MySQL the search for due rows lists so many columns that the server's digest ends before its condition; so its
    time is what was measured now, for as many claims as there were searches for overdue rows.
    """
    try:
        if isinstance(session.dialect, PostgreSQL):
            return _on_postgresql(session, pair)
        return _on_mysql(session, pair, ready_ms or 0.0)
    except OpsctlError:
        with contextlib.suppress(OpsctlError):
            session.rollback()
        return None


def _on_mysql(session: Session, pair: Pair, ready_ms: float) -> Share | None:
    if str(session.scalar("SELECT @@GLOBAL.performance_schema")) not in ("1", "ON"):
        return None
    table = f"`{pair.executions}`".replace("\\", "\\\\").replace("_", "\\_")
    found: list[Any] = []
    for column in ("expires_at", "lease_expires_at"):
        name = column.replace("_", "\\_")
        [row] = session.rows(
            _DIGESTS, pattern=f"%FROM {table} WHERE%ORDER BY {table} . `{name}` , {table} . `id` LIMIT%"
        )
        found.append(row)
    first, leases = found
    whole = session.scalar(_ALL_DIGESTS)
    if not first["claims"] or not whole:
        return None
    claims = int(first["claims"])
    seconds = float(first["seconds"]) + float(leases["seconds"] or 0) + claims * ready_ms / 1000
    span_s = float(first["span_s"] or 0)
    return Share(
        min(1.0, seconds / max(float(whole), seconds)),
        "the time of all statements",
        f"performance_schema, since {first['since']:%Y-%m-%d %H:%M} of the server's clock",
        claims / span_s if span_s >= 1 else None,
    )


def _on_postgresql(session: Session, pair: Pair) -> Share | None:
    place = session.scalar(_EXTENSION)
    if place is None:
        return None
    schema = session.dialect.quote(str(place))
    table = pair.executions.replace("_", "\\_")
    orders = {
        "first": f"%ORDER BY {table}.expires\\_at, {table}.id%",
        "second": f"%ORDER BY {table}.lease\\_expires\\_at, {table}.id%",
        "third": f"%ORDER BY {table}.available\\_at, {table}.created\\_at, {table}.id%",
    }
    [row] = session.rows(_STATEMENTS.format(schema=schema), **orders)
    if not row["claims"] or not row["whole"]:
        return None
    since, claims_s = "since its statistics began", None
    with contextlib.suppress(OpsctlError):  # only its version 1.9 and later know
        [began] = session.rows(_STATEMENTS_SINCE.format(schema=schema))
        since = f"since {began['since']:%Y-%m-%d %H:%M} UTC"
        claims_s = int(row["claims"]) / began["span_s"] if began["span_s"] >= 1 else None
    part = float(row["seconds"]) / float(row["whole"])
    return Share(part, "the time of all statements", f"pg_stat_statements, {since}", claims_s)
