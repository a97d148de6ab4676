"""init-tables --with-indexes, and what verify-schema says of the operational indexes and of their record."""

from __future__ import annotations

from typing import Any

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from faults.harness import run_all
from pairs import ATTEMPTS, EXECUTIONS, Opsctl, create_pair, longest_names, remarks
from servers import Database
from test_tune_change import CLAIM, dialect_of, indexes, items_of, recorded

from opsctl.dialects.names import Pair
from opsctl.resources import find_resource
from opsctl.schema.operational import NAMES, load_operational, revision_of
from opsctl.schema.versions import INDEX_REVISIONS


def recommended(database: Database) -> list[Any]:
    return [item for item in items_of(database) if not item.optional]


def test_a_new_pair_with_indexes(database: Database, opsctl: Opsctl) -> None:
    made = opsctl.init(database, "--with-indexes")
    assert made.code == 0, made
    assert {item.object for item in recommended(database)} <= set(indexes(database))
    assert recorded(database) == {item.revision for item in recommended(database)}
    verified = opsctl.verify(database, "-o", "json")
    assert verified.code == 0, verified
    assert {(found["severity"], found["object"]) for found in remarks(verified.json)} == {
        ("info", item.object) for item in recommended(database)
    }
    again = opsctl.init(database, "--with-indexes")
    assert (again.code, "nothing to do" in again.out) == (0, True), again
    assert "nothing to do" in opsctl.init(database).out


def test_a_small_pair_gets_them(database: Database, opsctl: Opsctl) -> None:
    create_pair(database)
    adopted = opsctl.init(database, "--with-indexes")
    assert (adopted.code, "adopted" in adopted.out, "finished" in adopted.out) == (0, True, True), adopted
    assert recorded(database) == {item.revision for item in recommended(database)}
    assert opsctl("tune", "revert", "--dsn", database.dsn, "--yes").code == 0
    assert opsctl.init(database, "--with-indexes").code == 0
    assert recorded(database) == {item.revision for item in recommended(database)}


def test_the_sql_of_a_dry_run_does_it(database: Database, opsctl: Opsctl) -> None:
    told = opsctl("init-tables", "--dsn", database.dsn, "--with-indexes", "--dry-run")
    assert told.code == 0, told
    lines = [line for line in told.out.splitlines() if not line.startswith("--")]
    database.execute(*[part for part in "\n".join(lines).split(";") if part.strip()])
    again = opsctl.init(database, "--with-indexes")
    assert (again.code, "nothing to do" in again.out) == (0, True), again


def test_a_large_pair_is_for_tune(database: Database, opsctl: Opsctl) -> None:
    create_pair(database)
    postgresql = database.server.family == "postgresql"
    now, uuid = ("now()", "gen_random_uuid()") if postgresql else ("now(6)", "md5_of")
    names = "id, namespace, task_name, status, payload, metadata, available_at, created_at, updated_at"
    if postgresql:
        source = "generate_series(1, 20000) AS s(i)"
    else:
        uuid = "concat('00000000000040008000', lpad(hex(i), 12, '0'))"
        series = "SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 20000"
        variable = "max_recursive_iterations" if database.server.name == "mariadb" else "cte_max_recursion_depth"
        database.execute(f"SET SESSION {variable} = 100000")
        source = "s"
    select = f"SELECT {uuid}, 'n', 't', 'queued', '{{}}', '{{}}', {now}, {now}, {now} FROM {source}"
    prefix = "" if postgresql else f"WITH RECURSIVE s(i) AS ({series}) "
    database.execute(f"INSERT INTO {EXECUTIONS} ({names}) {prefix}{select}")
    database.execute(f"ANALYZE {EXECUTIONS}" if postgresql else f"ANALYZE TABLE {EXECUTIONS}")
    before = indexes(database)
    refused = opsctl.init(database, "--with-indexes")
    assert (refused.code, "tune apply" in refused.err) == (5, True), refused
    assert indexes(database) == before
    assert opsctl.init(database).code == 0


def test_at_one_moment(database: Database, cli: Any) -> None:
    def init() -> Any:
        return cli("init-tables", "--dsn", database.dsn, "--with-indexes", "--yes")

    assert [one.code for one in run_all([init] * 4)] == [0, 0, 0, 0]
    assert recorded(database) == {item.revision for item in recommended(database)}


def test_full_length_names(database: Database, opsctl: Opsctl) -> None:
    executions, attempts = longest_names(database)
    tables = ["--executions-table", executions, "--attempts-table", attempts]
    assert opsctl.init(database, "--with-indexes", *tables).code == 0
    made = {
        item.object for item in load_operational(dialect_of(database), Pair(executions, attempts)) if not item.optional
    }
    assert made <= set(indexes(database, executions))
    assert opsctl.verify(database, *tables).code == 0


# -- verify-schema ---------------------------------------------------------------------------------------------------


@pytest.fixture
def finding(database: Database, opsctl: Opsctl) -> Any:
    """What verify-schema says of one object, on a pair with all that is recommended."""
    assert opsctl.init(database, "--with-indexes").code == 0

    def find(name: str) -> Any:
        report = opsctl.verify(database, "-o", "json")
        return next(found for found in report.json["findings"] if found["object"] == name), report.code

    return find


def drop(database: Database, index: str) -> None:
    database.execute(f"DROP INDEX {index}" + ("" if database.server.family == "postgresql" else f" ON {EXECUTIONS}"))


def test_one_on_record_is_missing(database: Database, finding: Any) -> None:
    name = f"ix_{EXECUTIONS}_finished"
    drop(database, name)
    found, code = finding(name)
    assert (found["severity"], found["property"], code) == ("warning", "existence", 1)
    database.execute(found["fix"].rstrip(";"))
    assert finding(name)[1] == 0


def test_another_index_of_that_name(database: Database, finding: Any) -> None:
    name = f"ix_{EXECUTIONS}_finished"
    drop(database, name)
    database.execute(f"CREATE INDEX {name} ON {EXECUTIONS} (worker_id)")
    found, code = finding(name)
    assert (found["severity"], found["property"], code) == ("warning", "columns", 1)


@pytest.mark.servers("postgresql")
def test_an_invalid_one(database: Database, finding: Any) -> None:
    name = f"ix_{EXECUTIONS}_finished"
    database.execute(f"UPDATE pg_index SET indisvalid = false WHERE indexrelid = '{name}'::regclass")
    found, code = finding(name)
    assert (found["severity"], found["property"], code) == ("warning", "valid", 1)


@pytest.mark.servers("mysql", "mariadb")
def test_the_hidden_stock_index(database: Database, finding: Any, opsctl: Opsctl) -> None:
    hide, show = ("IGNORED", "NOT IGNORED") if database.server.name == "mariadb" else ("INVISIBLE", "VISIBLE")
    alter = f"ALTER TABLE {EXECUTIONS} ALTER INDEX "
    found, code = finding(CLAIM)
    assert (found["severity"], code) == ("info", 0)
    database.execute(f"{alter}{CLAIM} {show}")
    found, code = finding(CLAIM)
    assert (found["severity"], found["property"], code) == ("warning", "visible", 1), "on record as hidden"
    database.execute(f"{alter}{CLAIM} {hide}")
    record = f"opsctl_rev_{EXECUTIONS}_{ATTEMPTS}"
    database.execute(f"DELETE FROM {record} WHERE version_num = '{revision_of('hide-claim')}'")
    found, code = finding(CLAIM)
    assert (found["severity"], "no record" in found["message"], code) == ("warning", True, 1)
    database.execute(f"INSERT INTO {record} VALUES ('{revision_of('hide-claim')}')")
    database.execute(f"{alter}ix_{EXECUTIONS}_ready {hide}")
    found, code = finding(CLAIM)
    assert (found["severity"], "does not stand" in found["message"], code) == ("warning", True, 1)
    database.execute(f"DROP INDEX ix_{EXECUTIONS}_ready ON {EXECUTIONS}")
    found, code = finding(CLAIM)
    assert (found["severity"], "does not stand" in found["message"], code) == ("warning", True, 1)


# -- the record ------------------------------------------------------------------------------------------------------


def test_alembic_knows_the_branch() -> None:
    config = Config()
    config.set_main_option("script_location", str(find_resource("migrations")))
    script = ScriptDirectory.from_config(config)
    assert set(INDEX_REVISIONS) == set(NAMES)
    heads = {revision.revision for revision in script.get_revisions("indexes@heads")}
    assert heads == set(INDEX_REVISIONS.values())
    assert all("indexes" in revision.branch_labels for revision in script.get_revisions("indexes@heads"))
