"""Run a query of the catalogue on a session: for this pair, within its limit, and never over a large table unasked."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from opsctl.db import Session
from opsctl.dialects.names import DEFAULT_ATTEMPTS, DEFAULT_EXECUTIONS, Pair
from opsctl.dialects.postgresql import PostgreSQL
from opsctl.errors import Guarded, UsageError
from opsctl.queryfiles import Query, escape_colons
from opsctl.rows import Json, Rows
from opsctl.sqlfiles import rename

#: What may be read unasked: a second or so of the server's work on a table that is not in memory.
_ROWS_UNASKED = 100_000
#: The same in PostgreSQL's unit of cost, one page read in sequence; its plans tell costs more truly than rows.
_COST_UNASKED = 20_000.0


@dataclass(frozen=True)
class Prepared:
    """A query made ready for one pair: the statement as it will run, with :name binds, and their values."""

    query: Query
    statement: str
    binds: Mapping[str, Any]
    limit: int


@dataclass(frozen=True)
class Reading:
    """What the server expects to read for a statement; `table` is where the most of it is, `cost` PostgreSQL's."""

    table: str
    rows: int
    cost: float | None = None

    @property
    def is_large(self) -> bool:
        """Whether this wants --allow-scan."""
        return self.rows > _ROWS_UNASKED if self.cost is None else self.cost > _COST_UNASKED


def prepare_query(
    session: Session, query: Query, given: Mapping[str, str], *, pair: Pair, schema: str | None, limit: int | None
) -> Prepared:
    """Bind the parameters and put the names of this pair in. Raises UsageError for a parameter that does not fit."""
    statement, values = query.bind(given)
    rows = query.limit if limit is None else limit
    quote = session.dialect.quote

    def place(table: str) -> str:
        return f"{quote(schema)}.{quote(table)}" if schema else quote(table)

    tables = {DEFAULT_EXECUTIONS: place(pair.executions), DEFAULT_ATTEMPTS: place(pair.attempts)}
    changed = schema is not None or pair != Pair()
    statement = rename(statement, tables, lambda name: name, query.family) if changed else statement
    on_postgresql = isinstance(session.dialect, PostgreSQL)
    provided = {
        "limit": rows + 1,
        "executions_table": tables[DEFAULT_EXECUTIONS] if on_postgresql else pair.executions,
        "attempts_table": tables[DEFAULT_ATTEMPTS] if on_postgresql else pair.attempts,
        "schema": schema,
    }
    binds = {**{name: value for name, value in provided.items() if f":{name}" in statement}, **values}
    statement = escape_colons(statement, query.family)
    return Prepared(query, statement, {name: binds[name] for name in binds if f":{name}" in statement}, rows)


def run_query(session: Session, prepared: Prepared, *, allow_scan: bool) -> Rows:
    """Return its rows, read in a transaction of their own. Raises Guarded when it would read a large table unasked."""
    try:
        if not allow_scan and (reading := expected_reading(session, prepared)) and reading.is_large:
            raise Guarded(
                f"{prepared.query.name} would read about {reading.rows:,} rows of {reading.table}, and did not",
                "add --allow-scan if the server has the time, or narrow it: opsctl query show "
                f"{prepared.query.name} lists its parameters",
            )
        query = prepared.query
        rows = session.read(prepared.statement, prepared.binds, limit=prepared.limit, json=query.json, ids=query.ids)
    finally:
        session.rollback()
    if len(set(rows.columns)) < len(rows.columns):
        twice = next(name for name in rows.columns if rows.columns.count(name) > 1)
        raise UsageError(f"{query.path}: two columns are called {twice}", "give one of them another name with AS")
    return rows


def explain_query(session: Session, prepared: Prepared) -> Rows:
    """Return the server's plan, as its own client shows it; the query does not run."""
    try:
        return session.read(f"EXPLAIN {prepared.statement}", prepared.binds)
    finally:
        session.rollback()


def expected_reading(session: Session, prepared: Prepared) -> Reading | None:
    """Ask the server what it expects to read; None for a statement that has no plan."""
    if prepared.statement.lstrip(" \n(")[:4].upper() in ("SHOW", "EXPL"):
        return None
    if isinstance(session.dialect, PostgreSQL):
        plan = session.read(f"EXPLAIN (VERBOSE, FORMAT JSON) {prepared.statement}", prepared.binds).rows[0][0]
        return _postgresql_reading(session, json.loads(plan.text if isinstance(plan, Json) else plan)[0]["Plan"])
    return _mysql_reading(explain_query(session, prepared))


def _postgresql_reading(session: Session, plan: dict[str, Any]) -> Reading:
    scans = [node for node in _nodes(plan) if "Relation Name" in node]
    dearest = max(scans, key=lambda node: float(node["Total Cost"]), default={})
    reading = Reading(
        str(dearest.get("Relation Name", "")), int(dearest.get("Plan Rows", 0)), float(plan["Total Cost"])
    )
    if dearest.get("Node Type") != "Seq Scan" or not reading.is_large:
        return reading
    # The plan counts what its filter lets pass; a scan looks at every row.
    name = ".".join(map(session.dialect.quote, (str(dearest["Schema"]), reading.table)))
    stored = session.scalar("SELECT reltuples::bigint FROM pg_class WHERE oid = to_regclass(:name)", name=name)
    return replace(reading, rows=max(reading.rows, int(stored or 0)))


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from _nodes(child)


def _mysql_reading(plan: Rows) -> Reading:
    """Sum what a tabular EXPLAIN expects to look at: each table of a join once for every row that comes before it."""
    total, largest, table = 0.0, 0.0, ""
    passing: dict[Any, float] = {}
    for row in plan.rows:
        step = dict(zip((name.lower() for name in plan.columns), row, strict=True))
        if step.get("rows") is None:
            continue
        before = passing.get(step["id"], 1.0)
        looked_at = before * float(step["rows"])
        passing[step["id"]] = looked_at * float(step.get("filtered") or 100) / 100
        total += looked_at
        if looked_at >= largest:
            largest, table = looked_at, str(step["table"])
    return Reading(table, round(total))
