"""The servers themselves: each is the product it is called, and a test finds a clean database on it."""

from __future__ import annotations

import re
import subprocess

import pytest
from servers import PRODUCTS, Database, Server, ServerError, given_server

DUMP = {
    "mysql": "mysqldump",
    "mariadb": "mariadb-dump",
    "postgresql": "pg_dump",
    "postgresql-newest": "pg_dump",
}
CLIENT = {"mysql": "mysql", "mariadb": "mariadb", "postgresql": "psql", "postgresql-newest": "psql"}


def test_server_is_what_it_is_called(server: Server) -> None:
    assert server.product == PRODUCTS[server.name]
    assert re.match(r"\d+\.\d+", server.version)
    assert server.host == "127.0.0.1"


def test_redis_answers(redis_server: Server) -> None:
    assert redis_server.product == "Redis"


def test_database_is_empty_and_its_own(database: Database) -> None:
    schema = "public" if database.server.family == "postgresql" else database.name
    tables = f"SELECT count(*) FROM information_schema.tables WHERE table_schema = '{schema}'"
    assert database.execute(tables) == [(0,)]
    assert database.execute("CREATE TABLE t (a int)", "INSERT INTO t VALUES (1)", "SELECT a FROM t") == [(1,)]
    with database.connect().cursor() as cursor:
        cursor.execute("SELECT a FROM t")
        assert list(cursor.fetchall()) == [(1,)]


def test_database_is_dropped_under_an_open_transaction(server: Server) -> None:
    database = Database(server)
    database.execute("CREATE TABLE t (a int primary key)")
    with database.connect().cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("INSERT INTO t VALUES (1)")
        database.drop()
    names = "SELECT datname FROM pg_database" if server.family == "postgresql" else "SHOW DATABASES"
    probe = Database(server)
    assert (database.name,) not in probe.execute(names)
    probe.drop()


def test_dump_and_client_programs_run(database: Database) -> None:
    server = database.server
    database.execute("CREATE TABLE found_again (a int)")
    if server.family == "postgresql":
        dump = [*server.bin(DUMP[server.name]), database.dsn]
        client = [*server.bin(CLIENT[server.name]), "-tAc", "SELECT 1+1", database.dsn]
    else:
        login = [f"--host={server.host}", f"--port={server.port}", f"--user={server.address.user}"]
        dump = [*server.bin(DUMP[server.name]), "--no-defaults", *login, database.name]
        client = [*server.bin(CLIENT[server.name]), "--no-defaults", *login, "-NBe", "SELECT 1+1"]
    assert "found_again" in subprocess.run(dump, capture_output=True, text=True, check=True).stdout
    assert subprocess.run(client, capture_output=True, text=True, check=True).stdout.strip() == "2"


@pytest.mark.slow
@pytest.mark.servers("mysql", "mariadb", "postgresql")
def test_private_server_survives_stop_and_kill(server: Server, private_server) -> None:
    option = "-cmax_connections=33" if server.family == "postgresql" else "--max-connections=33"
    private = private_server(server.name, option)
    limit = "SHOW max_connections" if server.family == "postgresql" else "SELECT @@max_connections"
    database = Database(private)
    database.execute("CREATE TABLE t (a int)", "INSERT INTO t VALUES (1)")
    assert [str(value) for (value,) in database.execute(limit)] == ["33"]
    for end in (private.kill, private.stop):
        database.close()
        end()
        assert not private.running
        private.start()
        assert database.execute("SELECT a FROM t") == [(1,)]
    database.close()


@pytest.mark.servers("mysql", "mariadb")
def test_mariadb_is_never_taken_for_mysql(server: Server) -> None:
    other = {"mysql": "mariadb", "mariadb": "mysql"}[server.name]
    variable = f"OPSCTL_TEST_{other.upper()}_DSN"
    complaint = f"{variable} leads to {server.product} .*, not to {PRODUCTS[other]}"
    with pytest.raises(ServerError, match=complaint):
        given_server(other, {variable: server.dsn})
