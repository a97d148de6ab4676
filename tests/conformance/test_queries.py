"""query run: parameters, limits, other tables and schemas, what it says of what is missing, and that it only reads."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from pairs import ATTEMPTS, EXECUTIONS, Answer, Opsctl, create_pair
from servers import Database, Server

from opsctl.db import open_session
from opsctl.dialects.base import Timeouts
from opsctl.errors import StatementRefused
from opsctl.queryfiles import load_catalogue
from opsctl.target import parse_dsn

NAMES = sorted(load_catalogue("postgresql"))
ID = "0f8fad5b-d9cb-469f-a165-70867728950e"
#: A promise to scripts, whatever the server.
COLUMNS = {
    "attempts": "execution_id namespace task_name execution_status version attempt_no status worker_id started_at"
    " heartbeat_at finished_at run_s error attempt_id",
    "cancel-lingering": "execution_id namespace task_name worker_id cancel_requested_at requested_s cancel_reason"
    " heartbeat_at lease_expires_at",
    "claim-cost": "namespace task_name waiting due passes_stock overdue_reads_stock",
    "cleaning": "kind session_id_or_name account state age_s holds_back statement",
    "expired-leases": "execution_id namespace task_name status attempts worker_id lease_expires_at expired_s next_status",
    "idempotency-duplicates": "kind namespace task_name idempotency_key executions first_created_at last_created_at",
    "inconsistencies": "execution_id namespace task_name status attempts problems updated_at",
    "index-sizes": "table_name index_name index_bytes is_unique is_valid uses",
    "largest-rows": "execution_id namespace task_name status payload_bytes metadata_bytes result_bytes error_bytes"
    " total_bytes created_at",
    "latency": "namespace task_name runs wait_p50_s wait_p90_s wait_p99_s wait_max_s run_p50_s run_p90_s run_p99_s run_max_s",
    "locks": "session_id account application state transaction_age_s table_name lock_type lock_mode granted blocked_by"
    " statement",
    "oldest-queued": "namespace task_name due later oldest_available_at oldest_age_s next_available_at",
    "overdue-queued": "execution_id namespace task_name status attempts available_at expires_at overdue_s",
    "poison": "execution_id namespace task_name status attempts lost last_lost_at last_worker_id available_at",
    "recent-failures": "namespace task_name kind exception_type failures last_finished_at last_execution_id",
    "retry-storm": "namespace task_name kind exception_type executions max_attempts oldest_created_at next_available_at",
    "sizes": "table_name rows_estimate table_bytes index_bytes total_bytes dead_rows free_bytes last_analyzed_at",
    "status-counts": "namespace task_name status executions oldest_created_at last_updated_at",
    "stuck-running": "execution_id namespace task_name status attempt_no worker_id started_at running_s heartbeat_at"
    " heartbeat_age_s lease_expires_at lease_left_s reason",
    "throughput": "namespace task_name finished succeeded failed cancelled expired per_minute last_finished_at",
    "transactions": "session_id account application client state age_s isolation statement",
    "undecodable-errors": "table_name namespace task_name unknown_keys rows_found newest_created_at example_id",
    "workers": "namespace task_name worker_id leases expired_leases oldest_started_at last_heartbeat_at heartbeat_age_s"
    " next_lease_expires_at",
}

Run = Callable[..., Answer]


@pytest.fixture
def run(database: Database, opsctl: Opsctl, tmp_path: Path) -> Run:
    """run("name" or "SELECT …", OPTION…): a query of the catalogue, or a file with this text."""

    def run_query(query: str, *options: str, dsn: str | None = None) -> Answer:
        if " " in query:
            (tmp_path / "own.sql").write_text(query)
            query, options = "own", ("--query-dir", str(tmp_path), *options)
        return opsctl("query", "run", query, "--dsn", dsn or database.dsn, *options)

    return run_query


def is_postgresql(database: Database) -> bool:
    return database.server.family == "postgresql"


def run_all(run: Run, *options: str) -> dict[str, Answer]:
    """Run the whole catalogue, which must go well."""
    answers = {name: run(name, *(("-p", f"id={ID}") if name == "attempts" else ()), *options) for name in NAMES}
    assert {name: answer.err for name, answer in answers.items() if answer.code != 0} == {}
    return answers


def queue(database: Database, *namespaces: str, executions: str = EXECUTIONS) -> None:
    """Put one queued execution into each of these namespaces."""
    now = "now()" if is_postgresql(database) else "UTC_TIMESTAMP(6)"
    for number, namespace in enumerate(namespaces):
        database.execute(
            f"INSERT INTO {executions} (id, namespace, task_name, status, payload, metadata, available_at, created_at,"
            f" updated_at) VALUES ('{ID.replace('-', '')[:-2]}{number:02x}', '{namespace}', 't', 'queued', '{{}}', '{{}}',"
            f" {now}, {now}, {now})"
        )


def test_columns_are_what_was_promised(database: Database, run: Run) -> None:
    create_pair(database)
    answers = run_all(run, "-o", "json")
    found = {name: " ".join(column["name"] for column in answer.json["columns"]) for name, answer in answers.items()}
    assert found == COLUMNS


def test_another_pair_and_another_schema(database: Database, run: Run) -> None:
    """Reserved words and upper case as names; on PostgreSQL in a schema that the search_path does not know."""
    executions, attempts = "order", "Select_Attempts"
    create_pair(database, executions, attempts)
    place = ["--executions-table", executions, "--attempts-table", attempts]
    quoted = '"order"' if is_postgresql(database) else "`order`"
    if is_postgresql(database):
        database.execute(
            'CREATE SCHEMA "Other one"',
            f'ALTER TABLE {quoted} SET SCHEMA "Other one"',
            'ALTER TABLE "Select_Attempts" SET SCHEMA "Other one"',
        )
        place += ["--schema", "Other one"]
        quoted = f'"Other one".{quoted}'
    queue(database, "shop", executions=quoted)
    answers = run_all(run, *place, "-o", "json")
    assert answers["status-counts"].json["rows"][0]["executions"] == 1
    assert {row["table_name"] for row in answers["sizes"].json["rows"]} == {executions, attempts}
    assert len(answers["index-sizes"].json["rows"]) == 8
    assert run("status-counts").code == 4


def test_namespaces(database: Database, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    create_pair(database)
    queue(database, "shop", "shop", "branch")

    def counted(*options: str) -> tuple[dict[str, int], str]:
        answer = run("status-counts", "-o", "json", *options)
        assert answer.code == 0, answer.err
        return {row["namespace"]: row["executions"] for row in answer.json["rows"]}, answer.err

    assert counted() == ({"branch": 1, "shop": 2}, "")
    assert counted("-p", "namespace=shop") == ({"shop": 2}, "")
    assert counted("--namespace", "branch") == ({"branch": 1}, "")
    assert counted("-p", "task=none") == ({}, "")
    monkeypatch.setenv("OPSCTL_NAMESPACE", "shop")
    assert counted() == ({"shop": 2}, "only namespace shop (OPSCTL_NAMESPACE)\n")
    assert counted("--namespace", "branch") == ({"branch": 1}, "")
    assert counted("-p", "namespace=branch") == ({"branch": 1}, "")
    assert run("sizes").err == "", "it has no namespaces"


def test_limits(database: Database, run: Run) -> None:
    create_pair(database)
    queue(database, "a", "b", "c")
    for limit, more in ((1, True), (2, True), (3, False), (4, False), (1_000_000, False)):
        for query in ("status-counts", f"SELECT id FROM {EXECUTIONS}"):
            answer = run(query, "--limit", str(limit), "-o", "json")
            assert (len(answer.json["rows"]), answer.json["more"]) == (min(limit, 3), more)
            word = f"there are more than these {limit} rows: raise --limit, or narrow it with -p\n"
            assert answer.err == (word if more else "")
    for text in ("0", "-1", "1000001"):
        answer = run("status-counts", "--limit", text)
        assert (answer.code, answer.out) == (2, "")
        assert "from 1 to 1000000" in answer.err


def test_words_that_are_wrong_are_said_before_anybody_connects(run: Run, database: Database) -> None:
    nowhere = urlsplit(database.dsn)._replace(netloc="nobody@127.0.0.1:1").geturl()
    for query, options, word in (
        ("no-such-query", (), "no query 'no-such-query'"),
        ("status-count", ("-p", "namspace=a"), "was namespace meant?"),
        ("attempts", (), "attempts needs id"),
        ("attempts", ("-p", "id=1234"), "this is no uuid"),
        ("stuck-running", ("-p", "heartbeat_older=soon"), "this is no duration"),
        ("poison", ("-p", "min_lost=two"), "this is no int"),
        ("poison", ("-p", "min_lost"), "names no value"),
        ("poison", ("-p", "=2"), "names no value"),
        ("poison", ("-p", "min_lost=2", "-p", "min_lost=3"), "given twice"),
        ("status-counts", ("--watch", "0"), "no interval"),
        ("DELETE FROM onestep_executions", (), "own.sql: it begins with 'DELETE'"),
    ):
        answer = run(query, *options, dsn=nowhere)
        assert (answer.code, answer.out) == (2, ""), (query, answer.err)
        assert word in answer.err
    assert run("status-counts", dsn=nowhere).code == 3


def test_a_table_or_a_column_that_is_not_there(database: Database, run: Run) -> None:
    answer = run("status-counts")
    assert answer.code == 4
    assert EXECUTIONS in answer.err
    assert "opsctl init-tables creates the pair" in answer.err
    create_pair(database)
    database.execute(f"ALTER TABLE {EXECUTIONS} DROP COLUMN cancel_reason")
    answer = run("cancel-lingering")
    assert answer.code == 4
    assert "cancel_reason" in answer.err
    assert "opsctl verify-schema" in answer.err


@pytest.fixture
def reader(database: Database) -> Iterator[str]:
    """The DSN of an account that may read the attempts, and no more."""
    create_pair(database)
    name = f"r_{database.name[2:]}"
    who = name if is_postgresql(database) else f"'{name}'@'%'"
    password = "PASSWORD" if is_postgresql(database) else "IDENTIFIED BY"
    database.execute(f"CREATE USER {who} {password} 'sesame'", f"GRANT SELECT ON {ATTEMPTS} TO {who}")
    parts = urlsplit(database.dsn)
    yield parts._replace(netloc=f"{name}:sesame@{parts.hostname}:{parts.port}").geturl()
    if is_postgresql(database):
        database.execute(f"DROP OWNED BY {who}")
    database.execute(f"DROP USER {who}")


def test_a_right_that_is_missing_is_named(reader: str, run: Run) -> None:
    for query in ("status-counts", f"SELECT id FROM {EXECUTIONS}"):
        for option in ("--allow-scan", "--explain", "-q"):
            answer = run(query, option, dsn=reader)
            assert (answer.code, answer.out) == (4, ""), answer.err
            assert EXECUTIONS in answer.err
            assert "needs SELECT on the tables that it reads: have it granted to this account" in answer.err
    assert run(f"SELECT id FROM {ATTEMPTS}", dsn=reader).code == 0


# -- reads are harmless ----------------------------------------------------------------------------------------------

_WRITER = {
    "postgresql": "CREATE FUNCTION act() RETURNS int LANGUAGE sql AS 'INSERT INTO acts VALUES (1) RETURNING 1'",
    "mysql": "CREATE FUNCTION act() RETURNS int DETERMINISTIC BEGIN INSERT INTO acts VALUES (1); RETURN 1; END",
}
_WRITES = {
    "postgresql": (
        "SELECT act()",
        "WITH x AS (SELECT act() AS n) SELECT n FROM x",
        "WITH x AS (UPDATE acts SET n = 2 RETURNING n) SELECT n FROM x",
        "SELECT number() AS n",
    ),
    "mysql": ("SELECT act()", "WITH x AS (SELECT 1 AS n) UPDATE acts SET n = 2"),
    "mariadb": ("SELECT act()",),  # it knows no UPDATE behind WITH
}


def test_what_gets_past_the_file_s_check_is_refused_by_the_transaction(database: Database, run: Run) -> None:
    family = database.server.family
    database.execute("CREATE TABLE acts (n int)", "INSERT INTO acts VALUES (0)", _WRITER[family])
    if is_postgresql(database):
        number = "CREATE FUNCTION number() RETURNS int8 LANGUAGE sql AS $$SELECT nextval('s')$$"
        database.execute("CREATE SEQUENCE s", number)
    for statement in _WRITES.get(database.server.name, _WRITES[family]):
        answer = run(statement, "--allow-scan")
        assert (answer.code, answer.out) == (4, ""), (statement, answer.err)
        assert "a query runs in a read-only transaction" in answer.err
        assert run(statement).code == 4
    assert list(database.execute("SELECT n FROM acts")) == [(0,)]
    if is_postgresql(database):
        assert database.execute("SELECT is_called FROM s") == [(False,)]


def test_the_session_is_and_stays_read_only(database: Database, run: Run) -> None:
    """On MySQL a DDL statement would commit what is open, and the next transaction could write."""
    look = "SHOW transaction_read_only" if is_postgresql(database) else "SELECT @@session.transaction_read_only AS ro"
    if database.server.name == "mariadb":
        look = "SELECT @@session.tx_read_only AS ro"
    assert list(run(look, "-o", "json").json["rows"][0].values()) in (["on"], [1])
    database.execute("CREATE TABLE acts (n int)")
    with open_session(parse_dsn(database.dsn, origin="--dsn"), Timeouts(), read_only=True) as session:
        for statement in ("CREATE TABLE more (n int)", "DROP TABLE acts", "INSERT INTO acts VALUES (1)"):
            for _ in range(2):
                with pytest.raises(StatementRefused):
                    session.run(statement)
                session.rollback()
        assert session.rows("SELECT n FROM acts") == []


@contextlib.contextmanager
def read_only(server: Server, database: Database) -> Iterator[None]:
    if server.family == "postgresql":
        database.execute(f"ALTER DATABASE {database.name} SET default_transaction_read_only = on")
        yield
        return
    variable = "super_read_only" if server.name == "mysql" else "read_only"
    database.execute(f"SET GLOBAL {variable} = 1")
    try:
        yield
    finally:
        database.execute("SET GLOBAL read_only = 0")


def test_a_server_that_is_read_only(server: Server, database: Database, run: Run) -> None:
    create_pair(database)
    with read_only(server, database):
        run_all(run, "-q")


# -- what others do on the server ------------------------------------------------------------------------------------


@contextlib.contextmanager
def at_work(database: Database, statement: str) -> Iterator[int]:
    """A session that has run this in a transaction, and holds what it got; yields its number."""
    connection = database.connect()
    with connection.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute(statement)
        number = number_of(cursor, database)
        try:
            yield number
        finally:
            cursor.execute("ROLLBACK")
    connection.close()


def number_of(cursor: Any, database: Database) -> int:
    cursor.execute("SELECT pg_backend_pid()" if is_postgresql(database) else "SELECT connection_id()")
    return int(cursor.fetchone()[0])


def rows_of(answer: Answer) -> list[dict[str, Any]]:
    assert answer.code == 0, answer.err
    found: list[dict[str, Any]] = answer.json["rows"]
    return found


def test_transactions_and_what_holds_back_cleaning(database: Database, run: Run) -> None:
    create_pair(database)
    queue(database, "shop")
    database.execute("CREATE TABLE elsewhere (n int)")
    change = f"UPDATE {EXECUTIONS} SET version = 7"
    with at_work(database, change) as number, at_work(database, "INSERT INTO elsewhere VALUES (1)") as other:
        transactions = rows_of(run("transactions", "-p", "older_than=0", "-o", "json"))
        assert {row["session_id"] for row in transactions} == {number, other}
        assert all(0 <= row["age_s"] < 60 for row in transactions)
        assert rows_of(run("transactions", "-p", "older_than=1h", "-o", "json")) == []
        holders = rows_of(run("cleaning", "-o", "json"))
        assert {str(number), str(other)} <= {row["session_id_or_name"] for row in holders}


@pytest.mark.slow
@pytest.mark.servers("mysql", "mariadb", "postgresql")
def test_who_waits_for_whom(server: Server, private_server: Callable[..., Server], opsctl: Opsctl) -> None:
    """MySQL tells of row locks in performance_schema, which the servers of the other tests do without."""
    if server.name == "mysql":
        server = private_server("mysql", "--performance-schema=ON")
    database = Database(server)
    create_pair(database)
    queue(database, "shop")
    change = f"UPDATE {EXECUTIONS} SET version = version + 1"
    connection = database.connect()
    with connection.cursor() as cursor, ThreadPoolExecutor(1) as threads, at_work(database, change) as holder:
        waiter = number_of(cursor, database)
        waiting = threads.submit(cursor.execute, change)
        deadline = time.monotonic() + 10
        while True:
            rows = rows_of(opsctl("query", "run", "locks", "--dsn", database.dsn, "-o", "json"))
            if blocked := [row for row in rows if row["session_id"] == waiter and not row["granted"]]:
                break
            assert time.monotonic() < deadline, rows
        assert rows[0]["session_id"] == waiter, "who waits comes first"
        assert blocked[0]["table_name"] == EXECUTIONS
        assert str(blocked[0]["blocked_by"]) == str(holder)
        assert change in blocked[0]["statement"]
        assert holder in {row["session_id"] for row in rows}
        assert not waiting.done()
    waiting.result(10)  # once the holder has rolled back
    database.drop()
