"""tune measure and advise on real rows; and that what is measured is what onestep sends."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from faults.test_fault_settings import copy
from pairs import ATTEMPTS, EXECUTIONS, Answer, Opsctl, create_pair, onestep_dsn
from processes import Result
from servers import Database, Server, local_server
from test_grants import People, close_to_everybody, printed, run_in_client
from test_tune_change import dialect_of, indexes, items_of

from opsctl.db import open_session
from opsctl.dialects.base import Timeouts
from opsctl.dialects.names import Pair
from opsctl.ops.tune.plans import run_read
from opsctl.ops.tune.workload import load_workload
from opsctl.target import parse_dsn

READS = Path(__file__).parents[1] / "reference/onestep_reads.py"


# -- what onestep sends ----------------------------------------------------------------------------------------------


def plain(statement: str, database: Database) -> str:
    """One line, without what says nothing: quotes of names, columns that are selected, locks."""
    text = " ".join(statement.replace("`", "").replace('"', "").split())
    text = text.replace("onestep_executions.onestep_executions", "onestep_executions")
    text = re.sub(
        r"^SELECT onestep_executions\.id, onestep_executions\.namespace.*? FROM",
        "SELECT onestep_executions.* FROM",
        text,
    )
    return text.removesuffix(" FOR UPDATE SKIP LOCKED")


@pytest.mark.parametrize("release", ["newest", "oldest"])
def test_the_workload_is_what_onestep_sends(
    release: str, database: Database, onestep: Callable[..., Result], opsctl: Opsctl
) -> None:
    create_pair(database)
    told = onestep(release, READS, onestep_dsn(database), EXECUTIONS, ATTEMPTS)
    assert told.code == 0, told.err
    sent = json.loads(told.out.splitlines()[-1])
    reads = {read.name: read for read in load_workload(dialect_of(database), Pair(), None)}
    given = {":namespace": "'n'", ":task": "'t'"}

    def ours(name: str) -> str:
        return plain(re.sub(r":(?:namespace|task)\b", lambda bind: given[bind[0]], reads[name].statement), database)

    claim = [plain(statement, database) for statement in sent["claim"] if "SELECT" in statement]
    assert claim == [ours(read.name) for read in reads.values() if read.of_claim]
    assert [plain(statement, database) for statement in sent["list"]] == [ours("list"), ours("list-failed")]


# -- measuring -------------------------------------------------------------------------------------------------------


def fill(database: Database, finished: int, waiting: int = 0) -> None:
    """Rows of one task, those that wait with a latest start in the future."""
    postgresql = database.server.family == "postgresql"
    uuid = (
        "md5(concat('x', i, {0}))::uuid"
        if postgresql
        else "concat(lpad(hex(i + {0}), 12, '0'), '40008000000000000000')"
    )
    if postgresql:
        source = "generate_series(1, {0}) AS s(i)"
        ago, later = "now() - interval '2 hours' - interval '1 ms' * i", "now() + interval '1 day'"
    else:
        variable = "max_recursive_iterations" if database.server.name == "mariadb" else "cte_max_recursion_depth"
        database.execute(f"SET SESSION {variable} = 1000000")
        source = "(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {0}) SELECT i FROM n) AS s"
        ago, later = "UTC_TIMESTAMP(6) - INTERVAL 7200000 + i MICROSECOND", "UTC_TIMESTAMP(6) + INTERVAL 1 DAY"
    names = "id, namespace, task_name, status, payload, metadata, available_at, created_at, updated_at, finished_at, expires_at"
    for status, count, offset in (("succeeded", finished, 0), ("queued", waiting, 10_000_000)):
        ended = ago if status == "succeeded" else "NULL"
        until = later if status == "queued" else "NULL"
        row = f"{uuid.format(offset)}, 'ns', 'task', '{status}', '{{}}', '{{}}', {ago}, {ago}, {ago}, {ended}, {until}"
        if count:
            database.execute(f"INSERT INTO {EXECUTIONS} ({names}) SELECT {row} FROM {source.format(count)}")
    database.execute(f"VACUUM ANALYZE {EXECUTIONS}" if postgresql else f"ANALYZE TABLE {EXECUTIONS}")


@pytest.fixture
def tune(database: Database, opsctl: Opsctl) -> Callable[..., Answer]:
    create_pair(database)
    return lambda *arguments: opsctl("tune", *arguments, "--dsn", database.dsn)


@pytest.fixture
def people(database: Database) -> Iterator[People]:
    people = People(database)
    yield people
    people.drop()


def rows_of(answer: Answer) -> dict[str, dict[str, Any]]:
    assert answer.code in (0, 1), answer
    return {row["operation"]: row for row in answer.json["rows"]}


def test_rows_passed_for_rows_wanted(database: Database, tune: Callable[..., Answer]) -> None:
    fill(database, 3000, 50)
    answer = tune("measure", "-o", "json")
    measured = rows_of(answer)
    assert answer.json["task"] == "task"
    assert answer.json["namespace"] == "ns"
    assert list(measured)[:5] == ["claim", "overdue-search", "cancel-search", "lease-search", "ready-search"]
    assert measured["ready-search"]["wanted"] == 4
    assert measured["counts"]["wanted"] == 2
    assert 3050 <= measured["counts"]["passed"] <= 3060, "the rows, and not what grouping them takes"
    assert measured["list"]["wanted"] == 51
    if measured["list"]["served_by"] == f"ix_{EXECUTIONS}_list":  # it ends at its LIMIT, whatever lies behind
        assert measured["list"]["at_ten_times_ms"] == measured["list"]["time_ms"]
    searches = [measured[name] for name in ("overdue-search", "cancel-search", "lease-search", "ready-search")]
    assert measured["claim"]["passed"] == sum(one["passed"] for one in searches)
    if database.server.family == "postgresql":
        assert measured["overdue-search"]["passed"] <= 50
        assert measured["ready-search"]["passed"] <= 50
    else:
        assert measured["overdue-search"]["passed"] >= 3000
        assert measured["overdue-search"]["served_by"] == "none: the whole table"


def test_ten_times_the_rows(database: Database, tune: Callable[..., Answer]) -> None:
    """What is said of ten times the rows is true when they are there: in rows, since milliseconds are nobody's promise."""
    fill(database, 2000, 20)
    only = [part for item in items_of(database) if not item.optional for part in ("--only", item.name)]
    seen: dict[tuple[str, int], dict[str, dict[str, Any]]] = {}
    for finished in (2000, 20_000):
        if finished > 2000:
            database.execute(f"DELETE FROM {EXECUTIONS}")
            fill(database, finished, 20)
        seen["stock", finished] = rows_of(tune("measure", "-o", "json"))
        assert tune("apply", *only, "--no-measure", "--yes").code == 0
        database.execute(f"{'ANALYZE' if database.server.family == 'postgresql' else 'ANALYZE TABLE'} {EXECUTIONS}")
        seen["tuned", finished] = rows_of(tune("measure", "-o", "json"))
        assert tune("revert", "--yes").code == 0
    for indexes_, name in [
        ("stock", "counts"),
        ("tuned", "overdue-search"),
        ("tuned", "ready-search"),
        ("stock", "overdue-search"),
        ("stock", "purge"),
    ]:
        few, many = seen[indexes_, 2000][name], seen[indexes_, 20_000][name]
        grows = (few["at_ten_times_ms"] or 0) > 5 * (few["time_ms"] or 0) > 0
        if few["time_ms"] >= 0.2:  # below, a rounding of milliseconds hides it
            assert grows == (many["passed"] > 5 * max(1, few["passed"])), (indexes_, name, few, many)
    assert seen["tuned", 20_000]["claim"]["passed"] <= 100, seen["tuned", 20_000]


def test_what_is_measured_can_be_said(database: Database, tune: Callable[..., Answer], opsctl: Opsctl) -> None:
    fill(database, 300, 10)
    for arguments, place in [
        (("--task", "task"), ("ns", "task")),
        (("--task", "rare"), ("ns", "rare")),
        (("--namespace", "ns"), ("ns", "task")),
        (("--namespace", "other", "--task", "rare"), ("other", "rare")),
    ]:
        answer = tune("measure", *arguments, "-o", "json")
        assert (answer.json["namespace"], answer.json["task"]) == place, answer
        assert rows_of(answer)["ready-search"]["wanted"] == (4 if place == ("ns", "task") else 0)
    missing = tune("measure", "--executions-table", "nothing")
    assert (missing.code, missing.out) == (4, ""), missing


def test_the_monitor_measures_and_nothing_is_written(
    database: Database, tune: Callable[..., Answer], opsctl: Opsctl, people: People
) -> None:
    fill(database, 300, 10)
    close_to_everybody(database)
    name = people.make()
    run_in_client(database, printed(opsctl, "--role", "monitor", "--to", name, "--dsn", database.dsn))
    before = database.execute(f"SELECT id, version, status, updated_at FROM {EXECUTIONS} ORDER BY id")
    own, monitors = tune("measure", "-o", "json"), opsctl("tune", "measure", "-o", "json", "--dsn", people.dsn(name))
    assert monitors.code == 0, monitors
    same = ("operation", "wanted", "passed", "served_by")
    assert [[row[key] for key in same] for row in monitors.json["rows"]] == [
        [row[key] for key in same] for row in own.json["rows"]
    ]
    assert database.execute(f"SELECT id, version, status, updated_at FROM {EXECUTIONS} ORDER BY id") == before


@pytest.mark.slow
@pytest.mark.servers("postgresql")
def test_a_standby_is_measured(server: Server, opsctl: Opsctl, private_server: Callable[..., Server]) -> None:
    primary = private_server(server.name)
    database = Database(primary)
    create_pair(database)
    fill(database, 300, 10)
    assert primary.directory is not None
    directory = primary.directory.parent / f"{primary.directory.name}-measured"
    standby = local_server(server.name, directory, ("-chot_standby=on",))
    try:
        copy(primary, directory)
        standby.start()
        answer = opsctl(
            "tune", "measure", "-o", "json", "--dsn", database.dsn.replace(f":{primary.port}/", f":{standby.port}/")
        )
        assert rows_of(answer)["ready-search"]["wanted"] == 4
    finally:
        standby.discard()
        shutil.rmtree(directory, ignore_errors=True)
        database.drop()


def test_an_empty_pair(database: Database, tune: Callable[..., Answer]) -> None:
    answer = tune("measure", "-o", "json")
    assert answer.code == 0, answer
    assert answer.json["task"] is None
    assert rows_of(answer)["claim"]["wanted"] == 0
    advised = tune("advise")
    assert advised.code == 0, advised


def test_a_read_that_takes_too_long_is_ended(database: Database) -> None:
    """And the next one runs."""
    target = parse_dsn(database.dsn, origin="--dsn", environment={})
    name = "pg_attribute" if database.server.family == "postgresql" else "numbers"
    if name == "numbers":
        database.execute("CREATE TABLE numbers (n INT)", "INSERT INTO numbers VALUES " + ", ".join(["(1)"] * 500))
    column = "attnum" if name == "pg_attribute" else "n"
    heavy = (
        f"SELECT sum(a.{column} * b.{column}) FROM {name} a CROSS JOIN {name} b CROSS JOIN {name} c CROSS JOIN {name} d"
    )
    with open_session(target, Timeouts(), read_only=True) as session:
        assert run_read(session, heavy, {}, limit_s=0.3).time_ms is None
        assert run_read(session, f"SELECT count(*) FROM {name}", {}, limit_s=10).time_ms is not None
        limit = {"mysql": "SELECT @@max_execution_time", "mariadb": "SELECT @@max_statement_time"}
        assert str(session.scalar(limit.get(database.server.name, "SHOW statement_timeout"))) in (
            "30000",
            "30.0",
            "30s",
            "30.000000",
        )


def test_names_that_are_odd(database: Database, tune: Callable[..., Answer]) -> None:
    now = "now()" if database.server.family == "postgresql" else "UTC_TIMESTAMP(6)"
    namespace, task = (
        "it''s 100% :odd \\\\ 🚀".replace("\\\\", "\\" if database.server.family == "postgresql" else "\\\\"),
        "a:b ''x''",
    )
    names = "id, namespace, task_name, status, payload, metadata, available_at, created_at, updated_at"
    uuid = "gen_random_uuid()" if database.server.family == "postgresql" else "'00000000000040008000000000000001'"
    with database.connect().cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {EXECUTIONS} ({names}) VALUES ({uuid}, '{namespace}', '{task}', 'queued', '{{}}', '{{}}', {now}, {now}, {now})"
        )
    answer = tune("measure", "-o", "json")
    assert answer.json["namespace"] == "it's 100% :odd \\ 🚀"
    assert rows_of(answer)["ready-search"]["wanted"] == 1


def test_by_workers(database: Database, tune: Callable[..., Answer]) -> None:
    share = tune("measure", "--workers", "16", "--poll", "2", "-o", "json").json["share"]
    assert share["of"] == "one core"
    assert 0 < share["claims_per_second"] < 8


@pytest.mark.slow
@pytest.mark.servers("mysql", "mariadb", "postgresql")
def test_the_share_of_the_server(
    server: Server, private_server: Callable[..., Server], onestep: Callable[..., Result], opsctl: Opsctl
) -> None:
    options = (
        ("-cshared_preload_libraries=pg_stat_statements",)
        if server.family == "postgresql"
        else ("--performance-schema=ON",)
    )
    own = private_server(server.name, *options)
    database = Database(own)
    create_pair(database)
    if server.family == "postgresql":
        database.execute("CREATE EXTENSION pg_stat_statements")
    before = opsctl("tune", "measure", "--dsn", database.dsn, "-o", "json")
    assert before.code == 0, before
    for _ in range(3):
        assert onestep("newest", READS, onestep_dsn(database), EXECUTIONS, ATTEMPTS).code == 0
    share = opsctl("tune", "measure", "--dsn", database.dsn, "-o", "json").json["share"]
    database.drop()
    assert 0 < share["part"] < 1
    assert ("performance_schema" in share["source"]) == (server.family == "mysql")


# -- advice ----------------------------------------------------------------------------------------------------------


def advice_of(answer: Answer) -> dict[str, str]:
    return {row["name"]: row["advice"] for row in answer.json["rows"]}


def test_nothing_pays_on_a_small_table(database: Database, tune: Callable[..., Answer]) -> None:
    fill(database, 300, 10)
    answer = tune("advise", "-o", "json")
    assert answer.code == 0, answer
    assert set(advice_of(answer).values()) == {"does not pay"}
    before = indexes(database)
    applied = tune("apply", "--yes")
    assert (applied.code, "nothing to do" in applied.out) == (0, True), applied
    assert indexes(database) == before


def test_what_pays_is_applied_and_measured_again(database: Database, tune: Callable[..., Answer]) -> None:
    postgresql = database.server.family == "postgresql"
    fill(database, 60_000, 25_000 if postgresql else 100)
    answer = tune("advise", "-o", "json")
    assert answer.code == 1, answer
    pays = {"overdue", "finished"} if postgresql else {"ready", "finished", "hide-claim"}
    assert {name for name, advice in advice_of(answer).items() if advice == "pays"} == pays
    sizes = {row["name"]: row["size_bytes"] for row in answer.json["rows"]}
    assert all(sizes[name] for name in pays - {"hide-claim"})
    applied = tune("apply", "--yes")
    assert applied.code == 0, applied
    assert re.search(r"^overdue-search: .* before, .* now", applied.out, re.MULTILINE), applied
    answer = tune("advise", "-o", "json")
    assert answer.code == 0, answer
    assert {name for name, advice in advice_of(answer).items() if advice == "in place"} == pays


@pytest.mark.servers("mysql", "mariadb")
def test_a_queue_longer_than_what_has_ended_keeps_the_stock_index(
    database: Database, tune: Callable[..., Answer]
) -> None:
    fill(database, 6_000, 6_000)
    assert advice_of(tune("advise", "-o", "json"))["hide-claim"] == "does not pay"
    assert tune("apply", "--only", "ready", "--only", "hide-claim", "--no-measure", "--yes").code == 0
    assert advice_of(tune("advise", "-o", "json"))["hide-claim"] == "consider"


def test_what_was_made_by_hand_goes_on_record(database: Database, tune: Callable[..., Answer], opsctl: Opsctl) -> None:
    fill(database, 300, 10)
    database.execute(*(item.statement for item in items_of(database) if not item.optional))
    told = tune("apply", "--yes")
    assert told.code == 0, told
    assert opsctl.verify(database).code == 0
    assert "nothing to do" in tune("apply", "--yes").out


def test_sizes_are_estimated_well(database: Database, tune: Callable[..., Answer]) -> None:
    fill(database, 30_000)
    found = {row["name"]: row["size_bytes"] for row in tune("advise", "-o", "json").json["rows"] if row["size_bytes"]}
    only = [part for name in found for part in ("--only", name)]
    assert tune("apply", *only, "--no-measure", "--yes").code == 0
    for name, estimate in found.items():
        index = next(item.object for item in items_of(database) if item.name == name)
        if database.server.family == "postgresql":
            [(real,)] = database.execute(f"SELECT pg_relation_size('{index}'::regclass)")
        else:
            database.execute(f"ANALYZE TABLE {EXECUTIONS}")
            [(real,)] = database.execute(
                "SELECT stat_value * @@innodb_page_size FROM mysql.innodb_index_stats WHERE stat_name = 'size'"
                f" AND database_name = DATABASE() AND table_name = '{EXECUTIONS}' AND index_name = '{index}'"
            )
        if real > 200_000:  # below, an extent or a page more or less decides
            assert 0.5 < estimate / float(real) < 2, (name, estimate, real)
