"""init-tables: create, complete, adopt, refuse, do nothing; say it first; be safe beside others."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pairs import ATTEMPTS, EXECUTIONS, Opsctl, create_pair, onestep_dsn
from servers import Database

LIFE = Path(__file__).parent.parent / "reference" / "onestep_life.py"
RECORD = "opsctl_rev_onestep_executions_onestep_execution_attempts"


def tables_of(database: Database) -> set[str]:
    schema = "current_schema()" if database.server.family == "postgresql" else "DATABASE()"
    return {
        row[0]
        for row in database.execute(f"SELECT table_name FROM information_schema.tables WHERE table_schema = {schema}")
    }


def test_creates_records_and_then_does_nothing(database: Database, opsctl: Opsctl, tmp_path: Path) -> None:
    audit = tmp_path / "audit.jsonl"
    first = opsctl.init(database, "--audit-file", str(audit))
    assert (first.code, first.out.startswith("created ")) == (0, True), first
    assert tables_of(database) == {EXECUTIONS, ATTEMPTS, RECORD}
    assert database.execute(f"SELECT version_num FROM {RECORD}") in ([("tables_0001",)], (("tables_0001",),))
    begin, committed = (json.loads(line) for line in audit.read_text().splitlines())
    assert (begin["event"], committed["event"]) == ("begin", "committed")
    assert begin["id"] == committed["id"]
    assert (committed["versions_before"], committed["versions_after"]) == ([], ["tables_0001"])
    second = opsctl("init-tables", "--dsn", database.dsn)  # nothing to change, so nothing to ask
    assert (second.code, second.out.startswith("nothing to do")) == (0, True)


def test_dry_run_prints_the_very_sql_and_writes_nothing(database: Database, opsctl: Opsctl) -> None:
    answer = opsctl("init-tables", "--dsn", database.dsn, "--dry-run")
    assert answer.code == 0
    assert tables_of(database) == set()
    run_in_the_servers_own_client(database, answer.out)
    assert tables_of(database) == {EXECUTIONS, ATTEMPTS, RECORD}
    assert opsctl.verify(database).code == 0
    assert opsctl("init-tables", "--dsn", database.dsn).out.startswith("nothing to do")


def test_ddl_file_runs_by_hand_and_is_adopted(database: Database, opsctl: Opsctl) -> None:
    folder = {"postgresql-newest": "postgresql"}.get(database.server.name, database.server.name)
    file = Path(__file__).parents[2] / "sql" / folder / "schema" / "V1__tracked_execution.sql"
    run_in_the_servers_own_client(database, file.read_text())
    answer = opsctl.verify(database, "-o", "json")
    assert (answer.code, answer.json["findings"]) == (0, [])
    assert opsctl.init(database).out.startswith("adopted ")


def run_in_the_servers_own_client(database: Database, sql: str) -> None:
    server = database.server
    if server.family == "postgresql":
        program = [*server.bin("psql"), "-v", "ON_ERROR_STOP=1", "-q", database.dsn]
    else:
        client = "mariadb" if server.name == "mariadb" else "mysql"
        address = server.address
        program = [*server.bin(client), "-h", address.host, "-P", str(address.port), "-u", address.user, database.name]
    done = subprocess.run(program, input=sql, text=True, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_asks_and_refuses_without_a_terminal(database: Database, opsctl: Opsctl) -> None:
    answer = opsctl("init-tables", "--dsn", database.dsn)
    assert answer.code == 5
    assert "--yes" in answer.err
    assert tables_of(database) == set()


def test_completes_a_half_made_pair(database: Database, opsctl: Opsctl) -> None:
    create_pair(database)
    database.execute(f"DROP TABLE {ATTEMPTS}")
    answer = opsctl.init(database)
    assert (answer.code, ATTEMPTS in answer.out) == (0, True), answer.err
    assert opsctl.verify(database).code == 0


@pytest.mark.servers("mariadb")
def test_completes_a_pair_in_the_generation_it_was_begun_in(
    database: Database, opsctl: Opsctl, onestep: Callable[..., Any]
) -> None:
    assert onestep("oldest", LIFE, "create", onestep_dsn(database), EXECUTIONS, ATTEMPTS).code == 0
    database.execute(f"DROP TABLE {ATTEMPTS}")
    assert opsctl.init(database).code == 0
    assert opsctl.verify(database, "-o", "json").json["made_by"] == "SQLAlchemy 2.0"


def test_creates_again_what_the_record_says_is_there(database: Database, opsctl: Opsctl) -> None:
    opsctl.init(database)
    database.execute(f"DROP TABLE {ATTEMPTS}", f"DROP TABLE {EXECUTIONS}")
    dry = opsctl("init-tables", "--dsn", database.dsn, "--dry-run")
    assert "DELETE FROM" in dry.out
    assert opsctl.init(database).code == 0
    assert opsctl.verify(database).code == 0


def test_refuses_on_drift_and_changes_nothing(database: Database, opsctl: Opsctl) -> None:
    create_pair(database)
    database.execute(f"ALTER TABLE {EXECUTIONS} DROP COLUMN cancel_reason", f"DROP TABLE {ATTEMPTS}")
    for arguments in (("--yes",), ("--dry-run",), ()):
        answer = opsctl("init-tables", "--dsn", database.dsn, *arguments)
        assert (answer.code, "cancel_reason" in answer.out) == (1, True), answer.err
    assert tables_of(database) == {EXECUTIONS}


@pytest.mark.parametrize("revisions", [("garbage",), ("tables_0002",), ("tables_0001", "tables_0002")])
def test_record_of_another_opsctl_is_left_alone(revisions: tuple[str, ...], database: Database, opsctl: Opsctl) -> None:
    create_pair(database)
    database.execute(
        f"CREATE TABLE {RECORD} (version_num varchar(32) NOT NULL PRIMARY KEY)",
        *(f"INSERT INTO {RECORD} VALUES ('{revision}')" for revision in revisions),
    )
    for arguments in (("--yes",), ("--dry-run",)):
        answer = opsctl("init-tables", "--dsn", database.dsn, *arguments)
        assert (answer.code, RECORD in answer.err, revisions[-1] in answer.err) == (5, True, True), answer
    assert {row[0] for row in database.execute(f"SELECT version_num FROM {RECORD}")} == set(revisions)


def test_record_of_another_shape_is_named(database: Database, opsctl: Opsctl) -> None:
    database.execute(f"CREATE TABLE {RECORD} (id int)")
    answer = opsctl.init(database)
    assert (answer.code, f"{RECORD} granted" in answer.err) == (4, True), answer.err
    assert tables_of(database) == {RECORD}


def test_name_in_the_way_is_named_before_anything_is_made(database: Database, opsctl: Opsctl) -> None:
    """The tables cannot be made: an object of another kind, or of another table, has one of their names."""
    if database.server.family == "postgresql":
        database.execute("CREATE SEQUENCE ix_onestep_executions_claim")
        name = "ix_onestep_executions_claim"
    else:
        # CHECK names are a table's own on MariaDB, foreign keys' are not
        name = "fk_onestep_execution_attempts_execution"
        database.execute(
            "CREATE TABLE u (id int PRIMARY KEY) ENGINE=InnoDB",
            f"CREATE TABLE v (id int, CONSTRAINT {name} FOREIGN KEY (id) REFERENCES u (id)) ENGINE=InnoDB",
            "CREATE TABLE w (a int, CONSTRAINT ck_onestep_executions_status CHECK (a > 0))",
        )
        if database.server.name == "mysql":
            name = "ck_onestep_executions_status"
    before = tables_of(database)
    for arguments in (("--yes",), ("--dry-run",)):
        answer = opsctl("init-tables", "--dsn", database.dsn, *arguments)
        assert (answer.code, len(answer.err.splitlines()), name in answer.err) == (5, 2, True), answer.err
    assert tables_of(database) == before


@pytest.mark.servers("postgresql")
def test_type_in_the_way_of_a_table(database: Database, opsctl: Opsctl) -> None:
    database.execute(f"CREATE TYPE {ATTEMPTS} AS ENUM ('a')")
    answer = opsctl.init(database)
    assert (answer.code, "a type has it" in answer.err) == (5, True), answer.err
    assert tables_of(database) == set()


def test_audit_record_that_cannot_be_written_stops_the_change(database: Database, opsctl: Opsctl) -> None:
    answer = opsctl.init(database, "--audit-file", "/dev/full")
    assert (answer.code, "audit record" in answer.err, "nothing was changed" in answer.err) == (5, True, True), answer
    assert tables_of(database) == set()


def test_audit_lines_stay_json_whatever_the_password(
    database: Database, opsctl: Opsctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A password that is a word of the record itself ("audit", "1") is not cut out of its syntax."""
    account = "u" + database.name
    if database.server.family == "postgresql":
        database.execute(f"CREATE USER {account} SUPERUSER PASSWORD 'audit'")
    else:
        database.execute(f"CREATE USER {account} IDENTIFIED BY 'audit'", f"GRANT ALL ON *.* TO {account}")
    try:
        host = database.dsn.partition("@")[2]
        scheme = database.dsn.partition("://")[0]
        monkeypatch.setenv("OPSCTL_DSN", f"{scheme}://{account}:audit@{host}")
        audit = tmp_path / "audit.jsonl"
        assert opsctl("init-tables", "--yes", "--audit-file", str(audit)).code == 0
        assert [json.loads(line)["audit"] for line in audit.read_text().splitlines()] == [1, 1]
    finally:
        if database.server.family == "postgresql":
            database.execute(f"REASSIGN OWNED BY {account} TO postgres", f"DROP OWNED BY {account}")
        database.execute(f"DROP USER {account}")


@pytest.mark.servers("postgresql")
def test_schema_is_where_the_tables_go(database: Database, opsctl: Opsctl) -> None:
    missing = opsctl.init(database, "--schema", "app")
    assert (missing.code, "CREATE SCHEMA" in missing.err) == (2, True)
    database.execute('CREATE SCHEMA "App 1"')
    assert opsctl.init(database, "--schema", "App 1").code == 0
    assert opsctl.verify(database, "--schema", "App 1", "-o", "json").json["schema"] == "App 1"
    assert opsctl.verify(database).code == 1, "the search_path does not lead there"
    database.execute("CREATE SCHEMA late", f'ALTER DATABASE {database.name} SET search_path = late, "App 1"')
    assert opsctl.verify(database).code == 0
    assert opsctl.init(database).out.startswith("nothing to do")
    database.execute(f'DROP TABLE "App 1".{ATTEMPTS}')
    assert opsctl.init(database).code == 0
    # the missing half goes beside the present one, not into the first schema of the path
    assert opsctl.verify(database, "--schema", "App 1").code == 0


@pytest.mark.slow
def test_eight_at_once_and_onestep_among_them(
    database: Database, opsctl: Opsctl, reference_pythons: dict[str, Path], tmp_path: Path
) -> None:
    """20 rounds of eight init-tables and onestep's own creation, all released at one moment: no error, one pair."""
    starter = tmp_path / "start_together.py"
    starter.write_text(START_TOGETHER)
    processes = [start_racer(starter, python, database) for python in racers(reference_pythons)]
    try:
        for round_ in range(20):
            pair = (f"e{round_}", f"a{round_}")
            for process in processes:
                process.stdin.write(json.dumps(pair) + "\n")
                process.stdin.flush()
            answers = [json.loads(process.stdout.readline()) for process in processes]
            assert [answer["code"] for answer in answers] == [0] * len(processes), answers
            found = {name for name in tables_of(database) if name.endswith(str(round_))}
            assert {pair[0], pair[1]} <= found
            verified = opsctl.verify(database, "--executions-table", pair[0], "--attempts-table", pair[1])
            assert verified.code == 0, verified.out
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def racers(pythons: dict[str, Path]) -> list[tuple[str, Path]]:
    return [("opsctl", Path(sys.executable))] * 8 + [("onestep", pythons["newest"])]


def start_racer(starter: Path, racer: tuple[str, Path], database: Database) -> Any:
    kind, python = racer
    dsn = database.dsn if kind == "opsctl" else onestep_dsn(database)
    return subprocess.Popen(
        [python, starter, kind, dsn, LIFE.parent],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


#: A process that has imported everything and waits for a line: so the creations meet, not the interpreters' starts.
START_TOGETHER = """
import contextlib, io, json, sys
kind, dsn, folder = sys.argv[1:]
if kind == "opsctl":
    from opsctl.cli import main
    import opsctl.cli.init_tables, alembic.command
else:
    import asyncio
    sys.path.insert(0, folder)
    import onestep_life
for line in sys.stdin:
    executions, attempts = json.loads(line)
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            if kind == "opsctl":
                code = main._run(["init-tables", "--yes", "--dsn", dsn, "--lock-timeout", "30",
                                  "--executions-table", executions, "--attempts-table", attempts])
            else:
                asyncio.run(onestep_life.create(dsn, executions, attempts))
                code = 0
        except Exception as error:
            code, out = 99, io.StringIO(repr(error))
    print(json.dumps({"code": code, "said": out.getvalue()[-2000:]}), flush=True)
"""
