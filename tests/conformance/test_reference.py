"""opsctl's tables under onestep's eye, and onestep's under opsctl's, at the oldest and the newest release."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pairs import A_GOOD_LIFE, ATTEMPTS, EXECUTIONS, Opsctl, create_pair, longest_names, onestep_dsn, remarks
from processes import clean_environment
from servers import Database

LIFE = Path(__file__).parent.parent / "reference" / "onestep_life.py"
RELEASES = ("oldest", "newest")
Run = Callable[..., Any]


def names(kind: str, database: Database) -> tuple[str, str]:
    return {
        "default": (EXECUTIONS, ATTEMPTS),
        "custom": ("order", "Select_Attempts"),  # a reserved word and upper case: onestep quotes them
        "longest": longest_names(database),
    }[kind]


def tables(pair: tuple[str, str]) -> tuple[str, ...]:
    return "--executions-table", pair[0], "--attempts-table", pair[1]


def live(onestep: Run, release: str, verb: str, database: Database, pair: tuple[str, str]) -> dict[str, Any]:
    done = onestep(release, LIFE, verb, onestep_dsn(database), *pair)
    assert done.code == 0, done.err
    result: dict[str, Any] = json.loads(done.out)
    return result


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("kind", ["default", "custom", "longest"])
def test_onestep_lives_in_tables_of_init_tables(
    kind: str, release: str, database: Database, opsctl: Opsctl, onestep: Run
) -> None:
    pair = names(kind, database)
    assert opsctl.init(database, *tables(pair)).code == 0
    assert live(onestep, release, "life", database, pair) == A_GOOD_LIFE
    after = opsctl.verify(database, *tables(pair))
    assert after.code == 0, after.out


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("kind", ["default", "custom", "longest"])
def test_verify_passes_tables_of_onestep_and_init_adopts_them(
    kind: str, release: str, database: Database, opsctl: Opsctl, onestep: Run
) -> None:
    pair = names(kind, database)
    live(onestep, release, "create", database, pair)
    report = opsctl.verify(database, *tables(pair), "-o", "json")
    assert (report.code, report.json["verdict"], report.json["matches_version"]) == (0, "match", "V1"), report.out
    # char(32) is genuine on MariaDB, and said to be a trap; nothing else may be remarked on
    assert {finding["property"] for finding in report.json["findings"]} <= {"generation"}
    adopted = opsctl.init(database, *tables(pair))
    assert adopted.code == 0
    assert "adopt" in adopted.out
    assert opsctl.init(database, *tables(pair)).out.startswith("nothing to do")


@pytest.mark.parametrize("release", RELEASES)
def test_a_real_worker_works_in_tables_of_init_tables(
    release: str,
    database: Database,
    opsctl: Opsctl,
    onestep: Run,
    reference_pythons: dict[str, Path],
    tmp_path: Path,
) -> None:
    assert opsctl.init(database).code == 0
    family = "POSTGRES" if database.server.family == "postgresql" else "MYSQL"
    variables = {f"{family}_EXECUTION_DSN": onestep_dsn(database)}
    log = tmp_path / "worker.log"
    with log.open("w") as stream:
        worker = subprocess.Popen(
            [reference_pythons[release], "-m", "onestep.cli", "run", "opsctl.demo.worker_app:app"],
            env=clean_environment(tmp_path, variables),
            stdout=stream,
            stderr=subprocess.STDOUT,
        )
    try:
        done = onestep(release, LIFE.parent / "onestep_submit.py", onestep_dsn(database), EXECUTIONS, ATTEMPTS)
        assert done.code == 0, done.err + log.read_text()
        assert json.loads(done.out) == ["failed", "succeeded", "succeeded", "succeeded", "succeeded"]
    finally:
        worker.kill()
        worker.wait()
    assert opsctl.verify(database).code == 0


@pytest.mark.servers("mariadb")
def test_mariadb_names_the_generation_and_the_trap(database: Database, opsctl: Opsctl, onestep: Run) -> None:
    """char(32) ids of SQLAlchemy 2.0 look right, and every submit of a client on 2.1 fails in them."""
    live(onestep, "oldest", "create", database, (EXECUTIONS, ATTEMPTS))
    report = opsctl.verify(database, "-o", "json").json
    assert report["made_by"] == "SQLAlchemy 2.0"
    assert [finding["severity"] for finding in report["findings"]] == ["info"]
    assert "SQLAlchemy 2.1" in report["findings"][0]["message"]
    failed = onestep("newest", LIFE, "life", onestep_dsn(database), EXECUTIONS, ATTEMPTS)
    assert "Data too long" in failed.err
    assert live(onestep, "oldest", "life", database, (EXECUTIONS, ATTEMPTS)) == A_GOOD_LIFE


def test_two_pairs_and_a_second_attempts_table_in_one_schema(database: Database, opsctl: Opsctl) -> None:
    create_pair(database)
    pairs = [(EXECUTIONS, ATTEMPTS), ("jobs", "job_attempts"), (EXECUTIONS, "more_attempts")]
    for pair in pairs:
        assert opsctl.init(database, *tables(pair)).code == 0
    for pair in pairs:
        answer = opsctl.verify(database, *tables(pair), "-o", "json")
        assert (answer.code, remarks(answer.json)) == (0, []), answer.out
    records = [row[0] for row in database.execute(record_tables(database))]
    assert len(records) == len(pairs), "every pair has a version record of its own"


def record_tables(database: Database) -> str:
    schema = "current_schema()" if database.server.family == "postgresql" else "DATABASE()"
    return (
        f"SELECT table_name FROM information_schema.tables WHERE table_schema = {schema} AND table_name LIKE 'opsctl%'"
    )
