"""Run a query of the catalogue on a session: for this pair, within its limit, and never over a large table unasked."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from opsctl.db import Session
from opsctl.dialects.names import DEFAULT_ATTEMPTS, DEFAULT_EXECUTIONS, Pair
from opsctl.dialects.postgresql import PostgreSQL
from opsctl.errors import Guarded, StatementRefused, UsageError
from opsctl.failures import error_code
from opsctl.queryfiles import Query, binds_of, escape_colons
from opsctl.rows import Json, Rows
from opsctl.sqlfiles import rename

#: What may be read unasked, from end to end or by an index: a second or so of the server's work when it is not in memory.
_ROWS_UNASKED = 100_000
#: The same in PostgreSQL's unit of cost, one page read in sequence, for what no scan's rows show: joins, and rows that lie
#: far apart. (A scan of 100,000 rows costs 3,000; as many rows by an index up to 400,000.)
_COST_UNASKED = 100_000.0

_NO_PLAN = re.compile(r"[\s(]*SHOW\b", re.IGNORECASE)
_JOINS = ("Nested Loop", "Hash Join", "Merge Join")
_SERVERS_OWN = re.compile(r"`?(?:performance_schema|information_schema|sys)`?\.", re.IGNORECASE)
#: An index that no stock table has: opsctl tune makes it.
_OPERATIONAL = re.compile(r"\bix_\w+_(ready|overdue|finished)\b")
_RIGHT_IS_MISSING = (1142, 1143, 1227, 1370, "42501")
_SEEN_ON_MYSQL = "SELECT count(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = :name"
#: The last is PostgreSQL's word for a WITH that changes rows, in a cursor.
_IS_NO_READ = (1792, "25006", "0A000")


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
    cost: float = 0.0

    @property
    def is_large(self) -> bool:
        """Whether this wants --allow-scan."""
        return self.rows > _ROWS_UNASKED or self.cost > _COST_UNASKED

    def __str__(self) -> str:
        place = f", most of them in {self.table}" if self.table else ""
        if self.rows > _ROWS_UNASKED or not self.cost:
            return f"about {self.rows:,} rows{place}"
        return f"what costs as much as {self.cost:,.0f} pages{place}"


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
    if schema is not None or pair != Pair():
        indexes = {old: quote(new) for old, new in session.dialect.derived_names(pair).items()}
        statement = rename(statement, indexes | tables, lambda name: name, query.family)
    on_postgresql = isinstance(session.dialect, PostgreSQL)
    provided = {
        "limit": rows + 1,
        "executions_table": tables[DEFAULT_EXECUTIONS] if on_postgresql else pair.executions,
        "attempts_table": tables[DEFAULT_ATTEMPTS] if on_postgresql else pair.attempts,
        "schema": schema,
    }
    # A parameter that was left out and is used outside its @if lines is NULL there.
    binds = {name: values.get(name, provided.get(name)) for name in binds_of(statement, query.family)}
    return Prepared(query, escape_colons(statement, query.family), binds, rows)


def run_query(session: Session, prepared: Prepared, *, allow_scan: bool) -> Rows:
    """Return its rows, read in a transaction of their own. Raises Guarded when it would read a large table unasked."""
    query = prepared.query
    with _transaction_of(session, query):
        _require_tables(session, prepared)
        if not allow_scan and (reading := expected_reading(session, prepared)) and reading.is_large:
            raise Guarded(f"{query.name} would read {reading}, and did not", _way_round(query))
        rows = session.read(prepared.statement, prepared.binds, limit=prepared.limit, json=query.json, ids=query.ids)
    if len(set(rows.columns)) < len(rows.columns):
        twice = next(name for name in rows.columns if rows.columns.count(name) > 1)
        raise UsageError(f"{query.path}: two columns are called {twice}", "give one of them another name with AS")
    return rows


def _require_tables(session: Session, prepared: Prepared) -> None:
    """Refuse a table that is not there where the query would only find nothing: "no locks" is no answer about a typo."""
    on_postgresql = isinstance(session.dialect, PostgreSQL)
    seen = "SELECT to_regclass(:name) IS NOT NULL" if on_postgresql else _SEEN_ON_MYSQL
    for bind in ("executions_table", "attempts_table"):
        name = prepared.binds.get(bind)
        if name is not None and not session.scalar(seen, name=name):
            raise StatementRefused(
                f"{session.target}: there is no table {name}, or this account may not see it",
                "correct --executions-table, --attempts-table, --schema or the DSN; opsctl init-tables creates the pair",
            )


def explain_query(session: Session, prepared: Prepared) -> Rows:
    """Return the server's plan, as its own client shows it; the query does not run. Raises UsageError without a plan."""
    if _NO_PLAN.match(prepared.statement):
        raise UsageError(f"{prepared.query.name} is a SHOW statement, which has no plan", "run it without --explain")
    with _transaction_of(session, prepared.query):
        return _explain(session, prepared, "EXPLAIN")


def expected_reading(session: Session, prepared: Prepared) -> Reading | None:
    """Ask the server what it expects to read; None for a statement that has no plan."""
    if _NO_PLAN.match(prepared.statement):
        return None
    if isinstance(session.dialect, PostgreSQL):
        [[plan]] = _explain(session, prepared, "EXPLAIN (VERBOSE, FORMAT JSON)").rows
        return _postgresql_reading(session, _root(plan))
    # Named, because explain_format may be another one: it is TREE by default from MySQL 9.5 on.
    return _mysql_reading(session, prepared, _explain(session, prepared, "EXPLAIN FORMAT=TRADITIONAL"))


@contextlib.contextmanager
def _transaction_of(session: Session, query: Query) -> Iterator[None]:
    """End the transaction behind the block, and say more of what the server refused in it."""
    try:
        yield
    except StatementRefused as error:
        session.rollback()
        raise _with_hint_for(query, error) from error.__cause__
    except Exception:
        session.rollback()
        raise
    # Behind Ctrl-C there is nothing left to roll back, and what that raised would take its place.
    session.rollback()


def _explain(session: Session, prepared: Prepared, explain: str) -> Rows:
    if not isinstance(session.dialect, PostgreSQL):
        # As it will run: MySQL plans for it, and does not cut the plan itself.
        session.run(f"SET SESSION sql_select_limit = {prepared.limit + 1:d}")
    return session.read(f"{explain} {prepared.statement}", prepared.binds)


def _way_round(query: Query) -> str:
    anyway = "add --allow-scan if the server has the time for it"
    if query.index and not query.index.startswith("none"):
        if operational := _OPERATIONAL.search(query.index):
            makes_it = f"opsctl tune apply --only {operational[1]} makes it if it is missing"
            return f"{query.index} should serve it: {makes_it}; or narrow it with -p, or {anyway}"
        return f"{query.index} should serve it: see whether it is there with opsctl verify-schema; or {anyway}"
    if query.params:
        return f"{anyway}, or narrow it: opsctl query show {query.name} lists its parameters"
    return anyway


def _with_hint_for(query: Query, error: StatementRefused) -> StatementRefused:
    code = error_code(error)
    if code in _RIGHT_IS_MISSING:
        needed = query.right or "SELECT on the tables that it reads"
        return StatementRefused(error.message, f"{query.name} needs {needed}: have it granted to this account")
    if code in _IS_NO_READ:
        return StatementRefused(
            error.message, f"a query runs in a read-only transaction: take what writes or locks out of {query.path}"
        )
    return error


# -- PostgreSQL ------------------------------------------------------------------------------------------------------


def _postgresql_reading(session: Session, plan: dict[str, Any]) -> Reading:
    cost = float(plan["Total Cost"]) + sum(map(_hidden_by_limit, _nodes(plan)))
    found = [Reading("", 0, cost)]
    for node in _scans(plan, float("inf")):
        table, rows = str(node["Relation Name"]), int(node["Plan Rows"])
        if node["Node Type"] == "Seq Scan":
            # The plan counts what its filter lets pass; a scan looks at every row, and knows how many without statistics.
            name = ".".join(map(session.dialect.quote, (str(node["Schema"]), table)))
            [[whole]] = session.read(f"EXPLAIN (FORMAT JSON) SELECT 1 FROM ONLY {name}", {}).rows  # noqa: S608 (quoted)
            rows = max(rows, int(_root(whole)["Plan Rows"]))
        found.append(Reading(table, rows, cost))
    return max(found, key=lambda reading: reading.rows)


def _scans(node: dict[str, Any], most: float) -> Iterator[dict[str, Any]]:
    """Yield the nodes that read a table, but for what a Limit ends long before it has read all."""
    if node["Node Type"] == "Limit" and not _may_come_to_nothing(node):
        most = min(most, float(node["Total Cost"]))
    if "Relation Name" in node and float(node["Total Cost"]) <= most:
        yield node
    for child in node.get("Plans", ()):
        yield from _scans(child, most)


def _hidden_by_limit(node: dict[str, Any]) -> float:
    """Return what a Limit leaves out of its cost although it is read when too few rows come."""
    if node["Node Type"] != "Limit" or not _may_come_to_nothing(node):
        return 0.0
    return max(float(child["Total Cost"]) - float(node["Total Cost"]) for child in node["Plans"])


def _may_come_to_nothing(limit: dict[str, Any]) -> bool:
    """Whether something below a Limit holds rows back, so that it may have to read all for the few that it wants."""
    below = [node for child in limit["Plans"] for node in _nodes(child)]
    return any("Filter" in node or (node["Node Type"] in _JOINS and node.get("Join Type") != "Left") for node in below)


def _root(plan: Any) -> dict[str, Any]:
    root: dict[str, Any] = json.loads(plan.text if isinstance(plan, Json) else plan)[0]["Plan"]
    return root


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from _nodes(child)


# -- MySQL and MariaDB -----------------------------------------------------------------------------------------------


def _mysql_reading(session: Session, prepared: Prepared, plan: Rows) -> Reading:
    """Sum what a tabular EXPLAIN expects to look at: each table of a join once for every row that comes before it."""
    steps = [dict(zip((name.lower() for name in plan.columns), row, strict=True)) for row in plan.rows]
    steps = [step for step in steps if step["rows"] is not None]
    total, largest, table = 0.0, 0.0, ""
    passing: dict[Any, float] = {}
    for step in steps:
        # One of a subquery that depends on the row outside is done for every such row.
        outside = max(passing.values(), default=1.0) if str(step["select_type"]).startswith("DEPENDENT") else 1.0
        before = passing.get(step["id"], max(1.0, outside))
        is_table = "Table function" not in str(step["extra"])
        name = _table_of(prepared.statement, str(step["table"])) if is_table else ""
        if _SERVERS_OWN.match(name):
            continue  # in memory, and the plan's numbers of it are invented
        rows = float(re.findall(r"\d+", str(step["rows"]))[0])  # MariaDB: "12 (3%)" where it filters by a second index
        is_joined = [other["id"] for other in steps].count(step["id"]) > 1
        if step["type"] in ("ALL", "index") and (is_joined or "Using where" in str(step["extra"])):
            # The plan counts what LIMIT needs if enough rows pass what comes behind; else all are read.
            rows = max(rows, _all_rows(session, name))
        looked_at = before * rows
        passing[step["id"]] = looked_at * float(step.get("filtered") or 100) / 100
        total += looked_at
        if name and looked_at >= largest:
            largest, table = looked_at, name
    return Reading(table.replace("`", ""), round(total) if table else 0)


def _table_of(statement: str, alias: str) -> str:
    """Return the table behind an alias, which is all that a plan names; empty for a subquery's result."""
    if alias.startswith("<"):
        return ""
    name = re.escape(alias)
    match = re.search(rf"(?:\bFROM|\bJOIN|,)\s+([\w$.`]+)\s+(?:AS\s+)?`?{name}`?(?![\w$.])", statement, re.IGNORECASE)
    return match[1] if match else f"`{alias}`"


def _all_rows(session: Session, table: str) -> float:
    """Return how many rows the server believes to be in a table; 0 for what is none."""
    if not table:
        return 0.0
    try:
        plan = session.read(f"EXPLAIN FORMAT=TRADITIONAL SELECT 1 FROM {table}", {})  # noqa: S608 (the query's own name)
    except StatementRefused:  # of a WITH in the query, for example
        return 0.0
    return float(plan.rows[0][[name.lower() for name in plan.columns].index("rows")] or 0)
