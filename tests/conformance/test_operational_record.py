"""The record of the operational indexes: what alembic reads of it, what comes along in a dump, who may not read it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from pairs import ATTEMPTS, EXECUTIONS, Opsctl, create_pair, remarks
from servers import Database
from sqlalchemy.pool import NullPool
from test_dump_restore import dump_and_restore
from test_operational import recommended
from test_rights import Accounts, unread, verify_as
from test_tune_change import CLAIM, indexes, items_of, recorded

from opsctl.db import open_session
from opsctl.dialects.base import Timeouts
from opsctl.dialects.names import Pair
from opsctl.resources import find_resource
from opsctl.schema.versions import INDEXES_BASE, TABLES_HEAD, read_versions, record_indexes, recorded_indexes
from opsctl.target import parse_dsn

RECORD = f"opsctl_rev_{EXECUTIONS}_{ATTEMPTS}"


@pytest.fixture
def connection(database: Database) -> Iterator[sa.Connection]:
    driver = "postgresql+psycopg" if database.server.family == "postgresql" else "mysql+pymysql"
    engine = sa.create_engine(sa.make_url(database.dsn).set(drivername=driver), poolclass=NullPool)
    with engine.connect() as connection:
        yield connection
    engine.dispose()


@pytest.fixture
def accounts(database: Database) -> Iterator[Accounts]:
    accounts = Accounts(database)
    yield accounts
    accounts.drop()


@pytest.fixture
def other(server: object) -> Iterator[Database]:
    """A second empty database on the same server."""
    database = Database(server)  # type: ignore[arg-type]
    yield database
    database.drop()


def heads(connection: sa.Connection, schema: str | None = None) -> set[str]:
    options = {"version_table": RECORD, "version_table_schema": schema}
    found = set(MigrationContext.configure(connection, opts=options).get_current_heads())
    connection.rollback()
    return found


def configured(connection: sa.Connection) -> Config:
    """Alembic's configuration for the pair, as opsctl makes it."""
    config = Config()
    config.set_main_option("script_location", str(find_resource("migrations")))
    config.attributes.update(
        pair=Pair(),
        statements=[],
        dialect_name=connection.dialect.name,
        version_table=RECORD,
        version_schema=None,
        connection=connection,
    )
    return config


def test_alembic_reads_the_record(
    database: Database, connection: sa.Connection, opsctl: Opsctl, capsys: pytest.CaptureFixture[str]
) -> None:
    assert opsctl.init(database, "--with-indexes").code == 0
    wanted = {item.revision for item in recommended(database)} | {TABLES_HEAD}
    assert heads(connection) == wanted
    config = configured(connection)
    config.print_stdout = lambda text, *rest: print(text % rest if rest else text)  # type: ignore[method-assign]
    capsys.readouterr()
    command.current(config)
    assert {line.split()[0] for line in capsys.readouterr().out.splitlines() if line} == wanted
    # What init-tables runs on a record like this leaves the other branch alone.
    command.upgrade(config, f"tables@{TABLES_HEAD}")
    assert heads(connection) == wanted


def test_a_record_that_began_with_indexes(database: Database, connection: sa.Connection, opsctl: Opsctl) -> None:
    """tune apply on a pair of onestep's own making, then init-tables adopts it: both branches stand."""
    create_pair(database)
    assert opsctl("tune", "apply", "--dsn", database.dsn, "--only", "finished", "--no-measure", "--yes").code == 0
    assert heads(connection) == {"indexes_finished_0001"}
    adopted = opsctl.init(database)
    assert (adopted.code, "adopted" in adopted.out) == (0, True), adopted
    assert heads(connection) == {"indexes_finished_0001", TABLES_HEAD}
    assert opsctl.init(database, "--with-indexes").code == 0
    assert heads(connection) == {item.revision for item in recommended(database)} | {
        TABLES_HEAD,
        "indexes_finished_0001",
    }


def test_exactly_these_are_on_record(database: Database, connection: sa.Connection) -> None:
    target = parse_dsn(database.dsn, origin="--dsn")
    schema = "public" if database.server.family == "postgresql" else None

    def record(*names: str) -> set[str]:
        with open_session(target, Timeouts(), read_only=False) as session:
            record_indexes(session, Pair(), names, schema=schema)
            session.commit()
            assert recorded_indexes(read_versions(session, Pair(), schema=schema)) == set(names)
        return heads(connection)

    assert record("finished") == {"indexes_finished_0001"}
    database.execute(f"INSERT INTO {RECORD} VALUES ('{TABLES_HEAD}')")
    assert record("overdue", "finished") == {"indexes_finished_0001", "indexes_overdue_0001", TABLES_HEAD}
    assert record("overdue") == {"indexes_overdue_0001", TABLES_HEAD}
    assert record() == {TABLES_HEAD}


def test_alembic_goes_up_and_down_the_branch(database: Database, connection: sa.Connection, opsctl: Opsctl) -> None:
    assert opsctl.init(database).code == 0
    item = next(item for item in items_of(database) if item.name == "finished")
    config = configured(connection)
    config.attributes["statements"] = [item.statement.replace("CONCURRENTLY ", "")]
    command.upgrade(config, "indexes_finished_0001")
    connection.commit()
    assert heads(connection) == {"indexes_finished_0001", TABLES_HEAD}
    assert (opsctl.verify(database).code, item.object in indexes(database)) == (0, True)
    on = "" if database.server.family == "postgresql" else f" ON {EXECUTIONS}"
    config.attributes["statements"] = [f"DROP INDEX {item.object}{on}"]
    command.downgrade(config, INDEXES_BASE)
    connection.commit()
    assert heads(connection) == {INDEXES_BASE, TABLES_HEAD}
    assert (opsctl.verify(database).code, item.object in indexes(database)) == (0, False)
    assert opsctl.init(database, "--with-indexes").code == 0
    assert heads(connection) == {item.revision for item in recommended(database)} | {TABLES_HEAD}


def test_a_dump_takes_it_along(database: Database, other: Database, opsctl: Opsctl) -> None:
    assert opsctl.init(database, "--with-indexes").code == 0
    dump_and_restore(database, other)
    report = opsctl.verify(other, "-o", "json").json
    assert (report["verdict"], report["unread"]) == ("match", []), report
    assert {found["object"] for found in remarks(report)} == {item.object for item in recommended(database)}
    again = opsctl.init(other, "--with-indexes")
    assert (again.code, "nothing to do" in again.out) == (0, True), again


@pytest.mark.servers("postgresql")
def test_in_a_schema(database: Database, connection: sa.Connection, opsctl: Opsctl) -> None:
    database.execute('CREATE SCHEMA "App one"')
    schema = ["--schema", "App one"]
    assert opsctl.init(database, "--with-indexes", *schema).code == 0
    assert heads(connection, "App one") == {item.revision for item in recommended(database)} | {TABLES_HEAD}
    report = opsctl.verify(database, "-o", "json", *schema).json
    assert report["verdict"] == "match"
    assert {found["object"] for found in report["findings"]} == {item.object for item in recommended(database)}
    again = opsctl.init(database, "--with-indexes", *schema)
    assert (again.code, "nothing to do" in again.out) == (0, True), again


def test_another_run_mends_what_is_on_record(database: Database, opsctl: Opsctl) -> None:
    assert opsctl.init(database, "--with-indexes").code == 0
    name = f"ix_{EXECUTIONS}_finished"
    database.execute(f"DROP INDEX {name}" + ("" if database.server.family == "postgresql" else f" ON {EXECUTIONS}"))
    told = opsctl("init-tables", "--dsn", database.dsn, "--with-indexes", "--dry-run")
    assert (told.code, name in told.out, name in indexes(database)) == (0, True, False), told
    lines = [line for line in told.out.splitlines() if not line.startswith("--")]
    database.execute(*[part for part in "\n".join(lines).split(";") if part.strip()])
    assert opsctl.verify(database).code == 0
    database.execute(f"DROP INDEX {name}" + ("" if database.server.family == "postgresql" else f" ON {EXECUTIONS}"))
    mended = opsctl.init(database, "--with-indexes")
    assert (mended.code, name in indexes(database)) == (0, True), mended


@pytest.mark.servers("mysql", "mariadb")
@pytest.mark.parametrize("left", ["ready", "hide-claim"])
def test_a_killed_run_is_finished(left: str, database: Database, opsctl: Opsctl) -> None:
    """Each statement commits by itself there: a run that was killed leaves some of them, and no record."""
    assert opsctl.init(database).code == 0
    for item in items_of(database):
        if not item.optional:
            database.execute(item.statement)
        if item.name == left:
            break
    finished = opsctl.init(database, "--with-indexes")
    assert finished.code == 0, finished
    assert recorded(database) == {item.revision for item in recommended(database)}
    assert opsctl.verify(database).code == 0


@pytest.mark.servers("mysql", "mariadb")
def test_who_may_not_read_the_record(database: Database, accounts: Accounts, opsctl: Opsctl, tmp_path: Any) -> None:
    """Only a hidden claim index makes the record count."""
    assert opsctl.init(database, "--with-indexes").code == 0
    dsn = accounts.make(f"SELECT, TRIGGER ON {EXECUTIONS}", f"SELECT, TRIGGER ON {ATTEMPTS}", "SHOW VIEW ON *")
    answer = verify_as(opsctl, dsn, tmp_path, "-o", "json")
    # SHOW VIEW on the database shows that the record is there.
    assert (answer.code, (EXECUTIONS, "record") in unread(answer.json)) == (6, True), answer
    show = "NOT IGNORED" if database.server.name == "mariadb" else "VISIBLE"
    database.execute(f"ALTER TABLE {EXECUTIONS} ALTER INDEX {CLAIM} {show}")
    answer = verify_as(opsctl, dsn, tmp_path, "-o", "json")
    assert (answer.code, unread(answer.json)) == (0, set()), answer


@pytest.mark.servers("postgresql")
def test_postgresql_needs_no_record(database: Database, accounts: Accounts, opsctl: Opsctl, tmp_path: Any) -> None:
    assert opsctl.init(database, "--with-indexes").code == 0
    dsn = accounts.make(f"CONNECT ON DATABASE {database.name}")
    answer = verify_as(opsctl, dsn, tmp_path, "-o", "json")
    assert (answer.code, unread(answer.json)) == (0, set()), answer
    database.execute(f"DROP TABLE {ATTEMPTS}")
    assert verify_as(opsctl, dsn, tmp_path).code == 1


def test_the_right_to_index_is_missing(database: Database, accounts: Accounts, opsctl: Opsctl, tmp_path: Any) -> None:
    """Said before anything is changed: on MySQL the tables would stand without their indexes else."""
    postgresql = database.server.family == "postgresql"
    if postgresql:
        create_pair(database)
        grants = ["CREATE, USAGE ON SCHEMA public"]
    else:
        grants = [
            f"CREATE, SELECT, REFERENCES ON {EXECUTIONS}",
            f"CREATE, SELECT ON {ATTEMPTS}",
            f"CREATE, SELECT, INSERT, UPDATE, DELETE ON {RECORD}",
        ]
    file = tmp_path / "dsn"
    file.write_text(accounts.make(*grants))
    before = indexes(database)
    options = ["--dsn-file", str(file), "--yes", "--with-indexes"]
    refused = opsctl("init-tables", *options)
    assert (refused.code, "lacks" in refused.err) == (4, True), refused
    assert (EXECUTIONS if postgresql else "INDEX") in refused.err
    assert indexes(database) == before
