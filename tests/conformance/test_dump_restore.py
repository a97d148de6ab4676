"""A dump restored elsewhere is the same pair: the servers print its rules in other words, and verify-schema knows."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest
from pairs import ATTEMPTS, EXECUTIONS, Opsctl, create_pair, remarks
from servers import Database


@pytest.fixture
def other(server: object) -> Iterator[Database]:
    """A second empty database on the same server."""
    database = Database(server)  # type: ignore[arg-type]
    yield database
    database.drop()


def dump_and_restore(source: Database, target: Database) -> None:
    server = source.server
    if server.family == "postgresql":
        dump = [*server.bin("pg_dump"), "--no-owner", source.dsn]
        restore = [*server.bin("psql"), "-q", "-v", "ON_ERROR_STOP=1", target.dsn]
    else:
        dumper, client = ("mariadb-dump", "mariadb") if server.name == "mariadb" else ("mysqldump", "mysql")
        address = server.address
        login = ["-h", address.host, "-P", str(address.port), "-u", address.user]
        dump = [*server.bin(dumper), *login, "--no-tablespaces", "--routines", "--triggers", source.name]
        restore = [*server.bin(client), *login, target.name]
    text = subprocess.run(dump, capture_output=True, timeout=60, check=True, text=True).stdout
    subprocess.run(restore, input=text, capture_output=True, timeout=60, check=True, text=True)


def test_restored_pair_matches(database: Database, other: Database, opsctl: Opsctl) -> None:
    assert opsctl.init(database).code == 0
    dump_and_restore(database, other)
    answer = opsctl.verify(other, "-o", "json")
    assert (answer.code, remarks(answer.json), answer.json["unread"]) == (0, [], []), answer.out
    assert opsctl.init(other).out.startswith("nothing to do"), "the version record came along"


def test_restored_twice_matches(database: Database, other: Database, opsctl: Opsctl) -> None:
    """PostgreSQL moves a cast from the array to each element on the first restore: the second must be stable too."""
    create_pair(database)
    dump_and_restore(database, other)
    database.execute(f"DROP TABLE {ATTEMPTS}", f"DROP TABLE {EXECUTIONS}")
    dump_and_restore(other, database)
    answer = opsctl.verify(database, "-o", "json")
    assert (answer.code, remarks(answer.json)) == (0, []), answer.out


def test_drift_survives_the_restore(database: Database, other: Database, opsctl: Opsctl) -> None:
    create_pair(database)
    name = "ck_onestep_attempt_status" if database.server.family == "postgresql" else f"ck_{ATTEMPTS}_status"
    database.execute(f"ALTER TABLE {ATTEMPTS} DROP CONSTRAINT {name}")
    dump_and_restore(database, other)
    answer = opsctl.verify(other)
    assert (answer.code, name in answer.out) == (1, True), answer.out


@pytest.mark.servers("mysql", "mariadb")
@pytest.mark.parametrize(
    "setting",
    ["sql_mode = 'ANSI_QUOTES'", "sql_mode = 'ANSI'", "sql_mode = ''", "sql_quote_show_create = 0"],
)
def test_restored_under_other_server_settings(
    setting: str, database: Database, other: Database, opsctl: Opsctl
) -> None:
    variable = setting.partition(" ")[0]
    create_pair(database)
    dump_and_restore(database, other)
    before = other.execute(f"SELECT @@GLOBAL.{variable}")[0][0]
    try:
        other.execute(f"SET GLOBAL {setting}")
        assert remarks(opsctl.verify(other, "-o", "json").json) == []
        assert opsctl.init(other).code == 0
    finally:
        other.execute(f"SET GLOBAL {variable} = {before!r}")


@pytest.mark.servers("postgresql")
@pytest.mark.parametrize("path", ["app, public", "public, app", '"$user", app', "pg_catalog, app", "app, pg_temp"])
def test_restored_under_another_search_path(path: str, database: Database, other: Database, opsctl: Opsctl) -> None:
    database.execute("CREATE SCHEMA app")
    assert opsctl.init(database, "--schema", "app").code == 0
    dump_and_restore(database, other)
    other.execute(f"ALTER DATABASE {other.name} SET search_path = {path}")
    answer = opsctl.verify(other, "-o", "json")
    assert (answer.code, remarks(answer.json), answer.json["schema"]) == (0, [], "app"), answer.out
