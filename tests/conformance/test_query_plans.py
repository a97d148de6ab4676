"""Each query against a million finished executions: by the index that its header names, or refused until it is allowed."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from million import FINISHED, LIVE, fill, gather_statistics, make_million
from pairs import ATTEMPTS, EXECUTIONS, Answer, Opsctl
from servers import Database, Server

from opsctl.dialects.mariadb import MariaDB
from opsctl.dialects.mysql import MySQL
from opsctl.dialects.names import Pair
from opsctl.dialects.postgresql import PostgreSQL
from opsctl.queryfiles import SEARCH, Query, load_catalogue
from opsctl.schema.operational import load_operational

pytestmark = pytest.mark.slow

CATALOGUES = {dialect: load_catalogue(dialect) for dialect in SEARCH}
NAMES = sorted(CATALOGUES["postgresql"])
#: Every other number of the fifth million begins no run: they are queued.
QUEUED = range(5_000_000, 5_000_000 + 4 * 20_000, 4)
GIVEN = {"namespace": "shop", "since": "1d"}

Run = Callable[..., Answer]


@pytest.fixture(scope="module")
def millions() -> Iterator[dict[str, Database]]:
    made: dict[str, Database] = {}
    yield made
    for database in made.values():
        database.drop()


@pytest.fixture
def million(server: Server, millions: dict[str, Database]) -> Database:
    """Made once for each server; a test leaves it as it found it."""
    if server.name not in millions:
        millions[server.name] = Database(server)
        make_million(millions[server.name])
    return millions[server.name]


@pytest.fixture
def run(million: Database, opsctl: Opsctl) -> Run:
    """Run a query of the catalogue with these parameters."""

    def run_query(name: str, *options: str, **params: str) -> Answer:
        given = [part for key, value in params.items() for part in ("-p", f"{key}={value}")]
        return opsctl("query", "run", name, "--dsn", million.dsn, "--statement-timeout", "90", *given, *options)

    return run_query


def query_of(database: Database, name: str) -> Query:
    dialect = "postgresql" if database.server.family == "postgresql" else database.server.name
    return CATALOGUES[dialect][name]


def required(million: Database, query: Query) -> dict[str, str]:
    """The parameters without which it does not run."""
    if "id" not in {param.name for param in query.params}:
        return {}
    return {"id": str(million.execute(f"SELECT id FROM {EXECUTIONS} WHERE status = 'failed' LIMIT 1")[0][0])}


def indexes_used(answer: Answer) -> set[str]:
    """The indexes in a plan that --explain -o json gave."""
    assert answer.code == 0, answer.err
    rows = answer.json["rows"]
    if "key" in rows[0]:  # MariaDB; "a|b" where it filters a by b
        return {key for row in rows for key in str(row["key"]).split("|")}
    text = "\n".join(str(value) for row in rows for value in row.values())
    # MySQL says nothing of the key of a row that it reads while it plans
    known = set() if re.search(" scan on ", text, re.IGNORECASE) else {"PRIMARY"}
    return known | set(re.findall(r"(?:using|on) (\w+)", text))


def served_by(query: Query, used: set[str]) -> bool:
    """Whether each index of the header is among those used, or one of those which it has an `or` between."""
    groups = query.index.partition(", when ")[0].split(", ")
    for group in groups:
        names = set(re.findall(r"\b(?:ix|uq)_\w+", group))
        if "primary key" in group:
            names |= {"PRIMARY", f"{EXECUTIONS}_pkey", EXECUTIONS}
        assert names, f"{query.path}: @index {query.index}: no index is named in {group!r}"
        if not names & used:
            return False
    return True


def operational(query: Query) -> str | None:
    """The name of the operational index that serves it: a pair does not have it from the beginning."""
    match = None if query.index.startswith("none: ") else re.search(r"_(ready|overdue|finished)\b", query.index)
    return match[1] if match else None


@contextlib.contextmanager
def applied(database: Database, name: str) -> Iterator[None]:
    """With this operational index, as opsctl makes it."""
    postgresql = database.server.family == "postgresql"
    mysql = MariaDB() if database.server.name == "mariadb" else MySQL()
    dialect = PostgreSQL() if postgresql else mysql
    [found] = [one for one in load_operational(dialect, Pair()) if one.name == name]
    database.execute(found.statement)
    try:
        gather_statistics(database)
        yield
    finally:
        database.execute(f"DROP INDEX {found.object}" + ("" if postgresql else f" ON {EXECUTIONS}"))


def assert_refused(answer: Answer) -> None:
    assert answer.code == 5, answer.out + answer.err
    assert answer.out == ""
    match = re.search(
        r"would read about ([\d,]+) rows, most of them in (\w+), and did not\n  .*--allow-scan", answer.err
    )
    assert match, answer.err
    assert int(match[1].replace(",", "")) > 200_000
    assert match[2] in (EXECUTIONS, ATTEMPTS)


@pytest.mark.parametrize("name", NAMES)
def test_query_is_what_its_header_says(name: str, million: Database, run: Run) -> None:
    query = query_of(million, name)
    params = required(million, query)
    index, _, condition = query.index.partition(", when ")
    if index.startswith("none: from"):  # the server's own tables
        assert run(name, **params).code == 0
    elif index.startswith("none: "):
        assert_refused(run(name, **params))
        assert run(name, "--allow-scan", **params).code == 0
    elif made := operational(query):
        answer = run(name, **params)
        assert_refused(answer)
        assert f"{query.index} should serve it: opsctl tune apply --only {made} makes it" in answer.err
        assert run(name, "--allow-scan", **params).code == 0
        with applied(million, made):
            used = indexes_used(run(name, "--explain", "-o", "json", **params))
            assert served_by(query, used), (query.index, used)
            for given in ({}, {"namespace": "shop", "task": "task-1"}, {"since": "6h"}):
                assert run(name, **params, **given).code == 0
            assert_refused(run(name, **params, since="30d"))
    else:
        needed = set(re.findall(r"\w+", condition)) & GIVEN.keys()
        assert bool(condition) == bool(needed), query.index
        full = params | {key: GIVEN[key] for key in needed}
        used = indexes_used(run(name, "--explain", "-o", "json", **full))
        assert served_by(query, used), (query.index, used)
        done = run(name, **full)
        assert done.code == 0, done.err
        if condition:
            answer = run(name, **params)
            # A newer server may find a way by the index all the same.
            if answer.code != 0 or not served_by(query, indexes_used(run(name, "--explain", "-o", "json", **params))):
                assert_refused(answer)
                assert run(name, "--allow-scan", **params).code == 0


@pytest.fixture
def long_queue(million: Database) -> Iterator[None]:
    """20,000 executions more that are queued."""
    fill(million, QUEUED[0], QUEUED[-1], step=QUEUED.step)
    gather_statistics(million)
    try:
        [(queued,)] = million.execute(f"SELECT count(*) FROM {EXECUTIONS} WHERE status = 'queued'")
        assert queued == len(QUEUED) + LIVE // 4
        yield
    finally:
        newest = f"attempts = 0 AND status = 'queued' AND idempotency_key >= 'key-{QUEUED[0]}'"
        million.execute(f"DELETE FROM {EXECUTIONS} WHERE {newest}")
        gather_statistics(million)


@pytest.mark.usefixtures("long_queue")
def test_a_long_queue_is_no_reason_to_refuse(million: Database, run: Run) -> None:
    for name in NAMES:
        query = query_of(million, name)
        if not query.index.startswith("none: ") and ", when " not in query.index and not operational(query):
            answer = run(name, **required(million, query))
            assert answer.code == 0, answer.err


def test_a_lost_index_is_noticed(million: Database, run: Run) -> None:
    index = f"ix_{EXECUTIONS}_lease"
    if million.server.family == "postgresql":
        [(again,)] = million.execute(f"SELECT indexdef FROM pg_indexes WHERE indexname = '{index}'")
        million.execute(f"DROP INDEX {index}")
    else:
        again = f"CREATE INDEX {index} ON {EXECUTIONS} (lease_expires_at, id)"
        million.execute(f"DROP INDEX {index} ON {EXECUTIONS}")
    try:
        answer = run("stuck-running")
        assert_refused(answer)
        assert re.search(rf"{index}.* should serve it: .*opsctl verify-schema", answer.err)
    finally:
        million.execute(again)


#: Statements of a user, and whether they are to be refused. E and A are the tables.
STATEMENTS = {
    "key": ("SELECT * FROM E WHERE id = (SELECT id FROM E ORDER BY id LIMIT 1)", False),
    "first by key": ("SELECT id, status FROM E ORDER BY id LIMIT 5", False),
    "range by index": ("SELECT count(*) FROM E e WHERE namespace = 'shop' AND created_at > '2999-01-01'", False),
    "live by join": (
        "SELECT a.* FROM E e LEFT JOIN A a ON a.execution_id = e.id AND a.attempt_no = e.attempts"
        " WHERE e.lease_expires_at > '2000-01-01' AND e.status IN ('running', 'cancel_requested') LIMIT 400",
        False,
    ),
    "count": ("SELECT count(*) FROM E WHERE result IS NULL", True),
    "filter, limit": ("SELECT id FROM E WHERE cancel_reason LIKE '%no such%' LIMIT 5", True),
    "filter, by key, limit": ("SELECT id FROM E WHERE cancel_reason LIKE '%no such%' ORDER BY id LIMIT 5", True),
    "filter by bind": ("SELECT id FROM E WHERE cancel_reason = :reason LIMIT :limit", True),
    "no limit": ("SELECT id FROM E WHERE cancel_reason = 'no'", True),
    "derived": ("SELECT count(*) FROM (SELECT DISTINCT status FROM E) d", True),
    "with": ("WITH w AS (SELECT worker_id, count(*) AS n FROM A GROUP BY worker_id) SELECT * FROM w LIMIT 2", True),
    "union": ("SELECT 1 AS n UNION ALL SELECT count(*) FROM A WHERE error IS NULL", True),
    "scalar": ("SELECT 1 AS one, (SELECT max(heartbeat_at) FROM A) AS two", True),
    "exists": ("SELECT 1 AS one WHERE EXISTS (SELECT 1 FROM A WHERE worker_id = 'none')", True),
    "anti join": (
        "SELECT e.id FROM E e WHERE NOT EXISTS (SELECT 1 FROM A a WHERE a.execution_id = e.id)"
        " AND e.started_at IS NOT NULL LIMIT 5",
        True,
    ),
    "join": (
        "SELECT e.id FROM A a JOIN E e ON e.id = a.execution_id WHERE a.worker_id = e.cancel_reason LIMIT 1",
        True,
    ),
    "parentheses": ("(SELECT status FROM E GROUP BY status) UNION (SELECT status FROM A GROUP BY status)", True),
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_statements_of_a_user(name: str, million: Database, opsctl: Opsctl, tmp_path: Path) -> None:
    statement, refused = STATEMENTS[name]
    # MariaDB's plan counts all rows for a subquery that its LIMIT ends at the first: on the side of caution.
    refused = refused or (name == "key" and million.server.name == "mariadb")
    text = re.sub(r"\b[EA]\b", lambda match: {"E": EXECUTIONS, "A": ATTEMPTS}[match[0]], statement)
    header = "-- @param reason text = no: why\n" if ":reason" in text else ""
    (tmp_path / "own.sql").write_text(header + text)
    answer = opsctl("query", "run", "own", "--query-dir", str(tmp_path), "--dsn", million.dsn)
    assert answer.code == (5 if refused else 0), answer.out + answer.err


def test_a_table_without_statistics(million: Database, opsctl: Opsctl, tmp_path: Path) -> None:
    postgresql = million.server.family == "postgresql"
    options = "WITH (autovacuum_enabled = off)" if postgresql else "STATS_AUTO_RECALC = 0"
    million.execute(f"CREATE TABLE fresh {options} AS SELECT id, status, created_at FROM {EXECUTIONS}")
    (tmp_path / "own.sql").write_text("SELECT count(*) FROM fresh WHERE status = 'lost'")
    try:
        answer = opsctl("query", "run", "own", "--query-dir", str(tmp_path), "--dsn", million.dsn)
    finally:
        million.execute("DROP TABLE fresh")
    assert answer.code == 5, answer.out + answer.err
    assert "fresh" in answer.err


def test_the_numbers_are_what_they_should_be(million: Database) -> None:
    counts = dict(million.execute(f"SELECT status, count(*) FROM {EXECUTIONS} GROUP BY status"))
    assert sum(counts.values()) == FINISHED + LIVE
    assert [counts[status] for status in ("queued", "running", "retrying", "cancel_requested")] == [LIVE // 4] * 4
