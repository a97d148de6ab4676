"""tune apply and revert: what they make, what they leave alone, and what they refuse before anything is changed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from faults.harness import settings
from pairs import ATTEMPTS, EXECUTIONS, Answer, Opsctl, create_pair, longest_names, remarks
from servers import Database

from opsctl.dialects import AnyDialect
from opsctl.dialects.mariadb import MariaDB
from opsctl.dialects.mysql import MySQL
from opsctl.dialects.names import Pair
from opsctl.dialects.postgresql import PostgreSQL
from opsctl.schema.operational import Operational, load_operational

CLAIM = f"ix_{EXECUTIONS}_claim"


def dialect_of(database: Database) -> AnyDialect:
    if database.server.family == "postgresql":
        return PostgreSQL()
    return MariaDB() if database.server.name == "mariadb" else MySQL()


def items_of(database: Database, pair: Pair | None = None) -> tuple[Operational, ...]:
    schema = "public" if database.server.family == "postgresql" else None
    return load_operational(dialect_of(database), pair or Pair(), schema)


@pytest.fixture
def tune(database: Database, opsctl: Opsctl) -> Any:
    """Run tune apply or revert without measuring; `only` are the names, all of them without."""
    create_pair(database)

    def run(command: str, *arguments: str, only: tuple[str, ...] | None = None, yes: bool = True) -> Answer:
        names = [item.name for item in items_of(database)] if only is None else only
        chosen = [part for name in names for part in ("--only", name)]
        options = ["--no-measure"] if command == "apply" else []
        return opsctl(
            "tune", command, "--dsn", database.dsn, *chosen, *options, *(["--yes"] if yes else []), *arguments
        )

    return run


def indexes(database: Database, table: str = EXECUTIONS) -> dict[str, bool]:
    """The indexes of a table: name -> whether it is seen and valid."""
    if database.server.family == "postgresql":
        sql = f"SELECT c.relname, i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indrelid = '\"{table}\"'::regclass"
        return dict(database.execute(sql))
    flag = "ignored" if database.server.name == "mariadb" else "is_visible"
    sql = f"SELECT DISTINCT index_name, {flag} FROM information_schema.statistics WHERE table_schema = DATABASE() AND table_name = '{table}'"
    seen = "NO" if database.server.name == "mariadb" else "YES"
    return {name: value == seen for name, value in database.execute(sql)}


def recorded(database: Database) -> set[str]:
    rows = database.execute(f"SELECT version_num FROM opsctl_rev_{EXECUTIONS}_{ATTEMPTS}")
    return {row[0] for row in rows if row[0] != "tables_0001"}


def findings(opsctl: Opsctl, database: Database) -> list[Any]:
    report = opsctl.verify(database, "-o", "json")
    assert report.code == 0, report
    return remarks(report.json)


def test_there_and_back(database: Database, tune: Any, opsctl: Opsctl) -> None:
    before = indexes(database)
    applied = tune("apply")
    assert applied.code == 0, applied
    made = [item for item in items_of(database) if item.index]
    hidden = {item.object for item in items_of(database) if item.hides}
    assert indexes(database) == {name: name not in hidden for name in before} | {item.object: True for item in made}
    assert recorded(database) == {item.revision for item in items_of(database)}
    said = {(finding["severity"], finding["object"]) for finding in findings(opsctl, database)}
    assert said == {("info", item.object) for item in items_of(database)}
    again = tune("apply")
    assert (again.code, "nothing to do" in again.out) == (0, True), again
    reverted = tune("revert")
    assert reverted.code == 0, reverted
    assert indexes(database) == before
    assert recorded(database) == set()
    assert not findings(opsctl, database)
    nothing = tune("revert")
    assert (nothing.code, "nothing to do" in nothing.out) == (0, True), nothing


def test_the_record_of_the_tables_stays(database: Database, tune: Any, opsctl: Opsctl) -> None:
    assert opsctl.init(database).code == 0
    assert tune("apply", only=("finished",)).code == 0
    nothing = opsctl.init(database)
    assert (nothing.code, "nothing to do" in nothing.out) == (0, True), nothing
    assert tune("revert").code == 0
    assert "nothing to do" in opsctl.init(database).out


def test_a_dry_run_prints_what_would_run(database: Database, tune: Any) -> None:
    before = indexes(database)
    told = tune("apply", "--dry-run", yes=False)
    assert told.code == 0, told
    statements = [line for line in told.out.splitlines() if line and not line.startswith("--")]
    if database.server.family == "postgresql":
        assert statements == [line for item in items_of(database) for line in f"{item.statement};".splitlines()]
    else:
        assert statements[0] == f"ALTER TABLE `{EXECUTIONS}`", (
            "one statement, which takes the table for itself but twice"
        )
        assert statements[-1] == "  ALGORITHM=INPLACE, LOCK=NONE;"
    assert indexes(database) == before
    # The printed text is SQL that does it.
    database.execute(*[part for part in "\n".join(statements).split(";") if part.strip()])
    assert tune("apply", "--dry-run", yes=False).out.count("put ix_") == len([i for i in items_of(database) if i.index])
    assert tune("apply").code == 0
    assert recorded(database) == {item.revision for item in items_of(database)}


def test_nobody_to_ask(database: Database, tune: Any) -> None:
    before = indexes(database)
    for command in ("apply", "revert"):
        refused = tune(command, yes=False)
        if command == "apply":
            assert refused.code == 5, refused
            assert "--yes" in refused.err
    assert indexes(database) == before


def test_one_under_another_name_is_left_alone(database: Database, tune: Any, opsctl: Opsctl) -> None:
    finished = next(item for item in items_of(database) if item.name == "finished")
    database.execute(finished.statement.replace(finished.object, "mine"))
    nothing = tune("apply", only=("finished",))
    assert (nothing.code, "nothing to do" in nothing.out) == (0, True), nothing
    assert tune("revert").code == 0
    assert "mine" in indexes(database)
    assert [finding["object"] for finding in findings(opsctl, database)] == ["mine"]


def test_another_index_under_its_name(database: Database, tune: Any) -> None:
    database.execute(f"CREATE INDEX ix_{EXECUTIONS}_finished ON {EXECUTIONS} (worker_id)")
    before = indexes(database)
    refused = tune("apply")
    assert refused.code == 5, refused
    assert "worker_id" in refused.err
    assert indexes(database) == before
    assert tune("revert").code == 0
    assert indexes(database) == before, "what is no index of opsctl's is not dropped"


@pytest.mark.servers("postgresql", "postgresql-newest")
def test_what_a_killed_build_left(database: Database, tune: Any) -> None:
    """Invalid under its own name, and under the names that a REINDEX CONCURRENTLY gives."""
    for item in items_of(database):
        database.execute(item.statement, item.statement.replace(item.object, f"{item.object}_ccnew"))
        names = f"'{item.object}'::regclass, '{item.object}_ccnew'::regclass"
        database.execute(f"UPDATE pg_index SET indisvalid = false WHERE indexrelid IN ({names})")
    told = tune("apply")
    assert told.code == 0, told
    assert all(indexes(database).values())
    assert not [name for name in indexes(database) if "_cc" in name]
    assert recorded(database) == {item.revision for item in items_of(database)}


@pytest.mark.servers("mysql", "mariadb")
def test_the_stock_index_is_never_hidden_without_another(database: Database, tune: Any) -> None:
    refused = tune("apply", only=("hide-claim",))
    assert (refused.code, "ready" in refused.err) == (5, True), refused
    assert tune("apply").code == 0
    refused = tune("revert", only=("ready",))
    assert (refused.code, CLAIM in refused.err) == (5, True), refused
    assert indexes(database)[CLAIM] is False
    assert tune("revert", only=("hide-claim",)).code == 0
    assert indexes(database)[CLAIM] is True


@pytest.mark.servers("mysql", "mariadb")
def test_a_hidden_one_is_shown(database: Database, tune: Any) -> None:
    assert tune("apply").code == 0
    word = "IGNORED" if database.server.name == "mariadb" else "INVISIBLE"
    database.execute(f"ALTER TABLE {EXECUTIONS} ALTER INDEX ix_{EXECUTIONS}_finished {word}")
    assert tune("apply").code == 0
    assert indexes(database)[f"ix_{EXECUTIONS}_finished"] is True


def test_names_of_full_length(database: Database, opsctl: Opsctl) -> None:
    executions, attempts = longest_names(database)
    create_pair(database, executions, attempts)
    pair = Pair(executions, attempts)
    tables = ["--executions-table", executions, "--attempts-table", attempts]
    chosen = [part for item in items_of(database, pair) for part in ("--only", item.name)]
    done = opsctl("tune", "apply", "--dsn", database.dsn, *tables, *chosen, "--no-measure", "--yes")
    assert done.code == 0, done
    assert {item.object for item in items_of(database, pair)} <= set(indexes(database, executions))
    verified = opsctl.verify(database, *tables)
    assert verified.code == 0, verified
    assert opsctl("tune", "revert", "--dsn", database.dsn, *tables, "--yes").code == 0


@pytest.mark.servers("postgresql")
def test_in_a_schema_that_is_not_in_the_path(database: Database, opsctl: Opsctl) -> None:
    database.execute('CREATE SCHEMA "Odd: :x ""one"" 100%"')
    place = ["--dsn", database.dsn, "--schema", 'Odd: :x "one" 100%']
    assert opsctl("init-tables", *place, "--yes").code == 0
    done = opsctl("tune", "apply", *place, "--only", "finished", "--only", "overdue", "--no-measure", "--yes")
    assert done.code == 0, done
    assert opsctl("verify-schema", *place).code == 0
    assert "nothing to do" in opsctl("tune", "apply", *place, "--only", "finished", "--no-measure", "--yes").out
    for command in ("measure", "advise"):
        measured = opsctl("tune", command, *place)
        assert measured.code == 0, measured
    assert opsctl("tune", "revert", *place, "--yes").code == 0


@pytest.mark.servers("postgresql")
def test_a_name_that_something_else_has(database: Database, tune: Any) -> None:
    database.execute(f"CREATE TABLE ix_{EXECUTIONS}_finished (a INT)")
    before = indexes(database)
    refused = tune("apply")
    assert (refused.code, f"ix_{EXECUTIONS}_finished" in refused.err) == (5, True), refused
    assert indexes(database) == before


def test_a_unique_index_under_its_name(database: Database, tune: Any) -> None:
    finished = next(item for item in items_of(database) if item.name == "finished")
    database.execute(finished.statement.replace("CREATE INDEX", "CREATE UNIQUE INDEX"))
    refused = tune("apply", only=("finished",))
    assert (refused.code, "UNIQUE" in refused.err) == (5, True), refused


@pytest.mark.servers("mysql", "mariadb")
def test_the_stock_index_is_gone(database: Database, tune: Any, opsctl: Opsctl) -> None:
    database.execute(f"DROP INDEX {CLAIM} ON {EXECUTIONS}")
    told = opsctl("tune", "advise", "--dsn", database.dsn, "-o", "json")
    advice = {row["name"]: row["advice"] for row in told.json["rows"]}
    assert advice["hide-claim"] == "does not pay", told
    assert tune("apply", only=("ready",)).code == 0


@pytest.mark.parametrize("option", ["--retry-for", "--build-timeout", "--limit-time"])
def test_no_number_of_seconds(option: str, database: Database, tune: Any) -> None:
    for value in ("nan", "inf", "-1", "soon"):
        assert tune("apply", option, value).code == 2


def test_the_audit(database: Database, tune: Any, tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    assert tune("apply", "--audit-file", str(file)).code == 0
    begin, committed = map(json.loads, file.read_text().splitlines())
    assert (begin["event"], committed["event"]) == ("begin", "committed")
    assert begin["command"] == "tune apply"
    assert begin["versions_before"] == []
    statements = [statement for step in begin["steps"] for statement in step["statements"]]
    assert all(item.object in " ".join(statements) for item in items_of(database))
    assert len(statements) == (2 if database.server.family == "postgresql" else 1)
    assert set(committed["versions_after"]) == {item.name for item in items_of(database)}


def test_the_pair_is_missing(database: Database, opsctl: Opsctl) -> None:
    for command in ("advise", "apply", "revert"):
        refused = opsctl("tune", command, "--dsn", database.dsn)
        assert (refused.code, EXECUTIONS in refused.err) == (4, True), refused


@pytest.fixture
def narrow(database: Database, tune: Any) -> Iterator[str]:
    """The DSN of an account that may read and write the rows, and no more."""
    name = f"n_{database.name[2:]}"
    if database.server.family == "postgresql":
        database.execute(
            f"CREATE ROLE {name} LOGIN", f"GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA public TO {name}"
        )
    else:
        database.execute(f"CREATE USER {name}", f"GRANT SELECT, INSERT, UPDATE ON {database.name}.* TO {name}")
    user = "postgres" if database.server.family == "postgresql" else "root"
    yield database.dsn.replace(f"{user}@", f"{name}@", 1)
    drop = [f"DROP OWNED BY {name}", f"DROP ROLE {name}"] if user == "postgres" else [f"DROP USER {name}"]
    database.execute(*drop)


def test_too_few_rights(database: Database, narrow: str, opsctl: Opsctl) -> None:
    before = indexes(database)
    refused = opsctl("tune", "apply", "--dsn", narrow, "--only", "finished", "--no-measure", "--yes")
    assert refused.code == 4, refused
    assert ("ownership" if database.server.family == "postgresql" else "INDEX on") in refused.err
    assert indexes(database) == before


@pytest.mark.servers("mysql", "mariadb")
def test_a_server_that_is_read_only(database: Database, tune: Any) -> None:
    before = indexes(database)
    with settings(database, read_only=1):
        refused = tune("apply")
    assert (refused.code, "replica" in refused.err) == (5, True), refused
    assert indexes(database) == before


@pytest.mark.servers("postgresql")
def test_a_database_that_is_read_only(database: Database, tune: Any) -> None:
    before = indexes(database)
    database.execute(f"ALTER DATABASE {database.name} SET default_transaction_read_only = on")
    refused = tune("apply")
    assert (refused.code, "read_only" in refused.err) == (5, True), refused
    database.close()
    database.execute("SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE")
    assert indexes(database) == before


def test_a_disk_without_room(database: Database, tune: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server runs on this machine, so what is free can be seen: here, as if next to nothing were."""
    full = os.statvfs_result((4096, 4096, 10**6, 3, 3, 10**6, 10**5, 10**5, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda path: full)
    before = indexes(database)
    refused = tune("apply")
    assert (refused.code, "free" in refused.err) == (5, True), refused
    assert indexes(database) == before


@pytest.mark.servers("postgresql")
def test_room_that_runs_out_on_the_way(database: Database, tune: Any) -> None:
    """PostgreSQL leaves an invalid index then; it is cleaned up, and what was made before it stays."""
    row = "gen_random_uuid(), 'n', 't', 'succeeded', '{}', now(), now(), now(), now()"
    names = "id, namespace, task_name, status, payload, available_at, created_at, updated_at, finished_at"
    database.execute(
        f"INSERT INTO {EXECUTIONS} ({names}) SELECT {row} FROM generate_series(1, 30000)",
        f"ALTER DATABASE {database.name} SET temp_file_limit = 100",
        f"ALTER DATABASE {database.name} SET maintenance_work_mem = '1MB'",
        f"ALTER DATABASE {database.name} SET max_parallel_maintenance_workers = 0",
    )
    before = indexes(database)
    failed = tune("apply")
    assert failed.code == 4, failed
    assert "temp_file_limit" in failed.err
    assert indexes(database) == before | {f"ix_{EXECUTIONS}_overdue": True}
    database.execute(f"ALTER DATABASE {database.name} RESET ALL")
    assert tune("apply").code == 0
    assert all(indexes(database).values())
