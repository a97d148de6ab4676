"""verify-schema beside the corpus: the JSON contract, thresholds, colours, places, and what only one server has."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pairs import ATTEMPTS, EXECUTIONS, Opsctl, create_pair, remarks
from processes import run
from servers import Database

FINDING = {"table", "kind", "object", "property", "severity", "expected", "actual", "message", "fix"}


def test_json_is_the_contract(database: Database, opsctl: Opsctl) -> None:
    create_pair(database)
    database.execute(f"DROP TABLE {ATTEMPTS}")
    report = opsctl.verify(database, "-o", "json").json
    assert {"format", "target", "server", "verdict", "matches_version", "findings", "unread"} <= set(report)
    assert report["format"] == 1
    assert report["server"] == {"product": database.server.product, "version": report["server"]["version"]}
    assert report["server"]["version"].startswith(database.server.version.split("-")[0].split(" ")[0])
    assert [set(finding) for finding in remarks(report)] == [FINDING]
    assert remarks(report)[0]["object"] == ATTEMPTS
    assert report["matches_version"] is None


@pytest.mark.parametrize(
    ("change", "codes"),
    [
        ("CREATE INDEX extra ON {t} (finished_at)", {"error": 0, "warning": 0, "info": 1}),
        ("ALTER TABLE {t} ADD CONSTRAINT few CHECK (attempts < 10)", {"error": 0, "warning": 1, "info": 1}),
        ("ALTER TABLE {t} DROP COLUMN cancel_reason", {"error": 1, "warning": 1, "info": 1}),
    ],
)
def test_fail_on(change: str, codes: dict[str, int], database: Database, opsctl: Opsctl) -> None:
    create_pair(database)
    database.execute(change.format(t=EXECUTIONS))
    assert {level: opsctl.verify(database, "--fail-on", level).code for level in codes} == codes
    verdicts = {opsctl.verify(database, "--fail-on", level, "-o", "json").json["verdict"] for level in codes}
    assert verdicts == {"drift" if codes["warning"] else "match"}, "the verdict is about the tables alone"


def test_colours_only_where_they_are_wanted(
    database: Database, opsctl: Opsctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "\x1b[" not in opsctl.verify(database).out
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in opsctl.verify(database).out
    assert "\x1b[" not in opsctl("--no-color", "verify-schema", "--dsn", database.dsn).out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in opsctl.verify(database).out


def test_names_that_this_server_cannot_have(database: Database, opsctl: Opsctl) -> None:
    limit = 63 if database.server.family == "postgresql" else 64
    for name in ("e" * (limit + 1), "two words", "1st", "tab;le", "täble", ATTEMPTS):
        for command in ("verify-schema", "init-tables"):
            answer = opsctl(command, "--dsn", database.dsn, "--executions-table", name)
            assert (answer.code, len(answer.err.splitlines())) == (2, 2), answer


@pytest.mark.servers("mysql", "mariadb")
def test_mysql_dsn_without_a_database(database: Database, opsctl: Opsctl) -> None:
    answer = opsctl("verify-schema", "--dsn", database.server.dsn)
    assert (answer.code, "/DATABASE" in answer.err) == (2, True), answer.err
    assert opsctl("verify-schema", "--dsn", database.dsn, "--schema", "public").code == 2


@pytest.mark.servers("postgresql")
def test_postgresql_says_where_else_the_tables_are(database: Database, opsctl: Opsctl) -> None:
    database.execute("CREATE SCHEMA app")
    assert opsctl.init(database, "--schema", "app").code == 0
    answer = opsctl.verify(database)
    assert (answer.code, "--schema app" in answer.out) == (1, True), answer.out


@pytest.mark.servers("postgresql")
def test_postgresql_schema_that_is_not_there(database: Database, opsctl: Opsctl) -> None:
    answer = opsctl.verify(database, "--schema", "nosuch")
    assert (answer.code, "no schema 'nosuch'" in answer.err) == (2, True), answer.err


@pytest.mark.servers("postgresql-newest")
@pytest.mark.parametrize(
    ("changes", "name"),
    [
        (
            (
                f"ALTER TABLE {ATTEMPTS} DROP CONSTRAINT ck_onestep_attempt_status",
                f"ALTER TABLE {ATTEMPTS} ADD CONSTRAINT ck_onestep_attempt_status CHECK (status IN "
                "('running', 'succeeded', 'retrying', 'failed', 'cancelled', 'lease_lost')) NOT ENFORCED",
            ),
            "ck_onestep_attempt_status",
        ),
        (
            (f"ALTER TABLE {ATTEMPTS} ALTER CONSTRAINT {ATTEMPTS}_execution_id_fkey NOT ENFORCED",),
            f"{ATTEMPTS}_execution_id_fkey",
        ),
    ],
)
def test_not_enforced_on_the_newest_postgresql(
    changes: tuple[str, ...], name: str, database: Database, opsctl: Opsctl
) -> None:
    create_pair(database)
    database.execute(*changes)
    answer = opsctl.verify(database, "-o", "json")
    assert [finding["object"] for finding in answer.json["findings"]] == [name]
    assert answer.code == 1
    database.execute(*(fix for fix in answer.json["findings"][0]["fix"].split(";\n") if fix))
    assert opsctl.verify(database).code == 0


@pytest.mark.servers("postgresql")
def test_read_only_session_is_enough(database: Database, opsctl: Opsctl) -> None:
    create_pair(database)
    database.execute(f"ALTER DATABASE {database.name} SET default_transaction_read_only = on")
    assert opsctl.verify(database).code == 0
    refused = opsctl.init(database)
    assert (refused.code, "read-only" in refused.err) == (4, True), "who set that meant it"


@pytest.mark.servers("postgresql")
def test_other_encodings(database: Database, opsctl: Opsctl, monkeypatch: pytest.MonkeyPatch) -> None:
    create_pair(database)
    database.execute(f"COMMENT ON COLUMN {EXECUTIONS}.status IS '状态 🚀'")
    for value in ("SQL_ASCII", "LATIN1", "UTF8"):
        monkeypatch.setenv("PGCLIENTENCODING", value)
        assert opsctl.verify(database).code == 0
        assert opsctl("verify-schema", "--dsn", f"{database.dsn}?client_encoding={value}").code == 0


@pytest.mark.servers("postgresql-newest")
def test_not_null_that_is_not_validated(database: Database, opsctl: Opsctl) -> None:
    create_pair(database)
    database.execute(
        f"ALTER TABLE {EXECUTIONS} ALTER namespace DROP NOT NULL",
        f"ALTER TABLE {EXECUTIONS} ADD CONSTRAINT later NOT NULL namespace NOT VALID",
    )
    answer = opsctl.verify(database, "-o", "json")
    assert [finding["object"] for finding in answer.json["findings"]] == ["namespace"]
    database.execute(answer.json["findings"][0]["fix"])
    assert opsctl.verify(database).code == 0


@pytest.mark.servers("mysql", "postgresql-newest")
def test_streams_that_cannot_be_written(database: Database, tmp_path: Path) -> None:
    """The exit code stays what the answer is, or says that the answer could not be given; never that of a bug."""
    create_pair(database)
    script = tmp_path / "run.sh"
    opsctl = Path(sys.executable).parent / "opsctl"
    cases = {
        "verify-schema >/dev/full": 2,
        "--help >/dev/full": 2,
        "verify-schema >&-": 0,
        "--help >&-": 0,
        "verify-schema 2>&-": 0,
        "verify-schema --dsn nonsense 2>/dev/full": 2,
        "verify-schema --dsn nonsense 2>&-": 2,
    }
    for arguments, code in cases.items():
        script.write_text(f"exec {opsctl} {arguments}\n")
        for buffering in ("", "1"):
            environment = {"OPSCTL_DSN": database.dsn, "PYTHONUNBUFFERED": buffering}
            done = run(["sh", script], tmp_path, env=environment)
            assert (done.code, "Traceback" in done.err) == (code, False), (arguments, buffering, done)


def test_terminal_that_lacks_a_character(database: Database, cli: Callable[..., Any]) -> None:
    create_pair(database)
    change = f"ALTER TABLE {EXECUTIONS} MODIFY cancel_reason varchar(500) NULL COMMENT '原因'"
    if database.server.family == "postgresql":
        change = f"COMMENT ON COLUMN {EXECUTIONS}.cancel_reason IS '原因'"
    database.execute(change)
    for encoding in ("latin-1", "ascii", "utf-8"):
        environment = {"OPSCTL_DSN": database.dsn, "PYTHONIOENCODING": encoding}
        assert cli("verify-schema", env=environment).code == 0
        (finding,) = remarks(cli("verify-schema", "-o", "json", env=environment).json)
        assert finding["actual"] == "原因"
