"""Drifts and look-alikes with the right answer: verify-schema says it, names the object, and its fixes mend it.

Each case changes a pair that onestep made. `unmendable` cases need a person's decision and carry no fix.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pairs import Opsctl, create_pair
from servers import Database

CORPUS = Path(__file__).parent / "corpus"
CASES: list[dict[str, Any]] = [
    case for file in sorted(CORPUS.glob("*.json")) for case in json.loads(file.read_text(encoding="utf-8"))
]


def cases(product: str) -> Any:
    chosen = [case for case in CASES if product in case["dbs"]]
    return pytest.mark.parametrize("case", chosen, ids=[case["id"] for case in chosen])


@pytest.mark.servers("mysql")
@cases("mysql")
def test_mysql(case: dict[str, Any], database: Database, opsctl: Opsctl) -> None:
    check(case, database, opsctl)


@pytest.mark.servers("mariadb")
@cases("mariadb")
def test_mariadb(case: dict[str, Any], database: Database, opsctl: Opsctl) -> None:
    check(case, database, opsctl)


@pytest.mark.servers("postgresql")
@cases("postgresql")
def test_postgresql(case: dict[str, Any], database: Database, opsctl: Opsctl) -> None:
    check(case, database, opsctl)


def check(case: dict[str, Any], database: Database, opsctl: Opsctl) -> None:
    create_pair(database)
    with server_variables_kept(database, case["sql"]):
        database.execute(*(statement.replace("{db}", database.name) for statement in case["sql"]))
        answer = opsctl.verify(database)
        report = opsctl.verify(database, "-o", "json").json
    said = answer.out + answer.err
    assert answer.code == {"match": 0, "drift": 1}[case["expect"]], said
    assert report["verdict"] == case["expect"]
    assert report["unread"] == []
    if case["object"]:
        assert re.search(case["object"], said), said
    if case["expect"] == "match":
        assert {finding["severity"] for finding in report["findings"]} <= {"info"}
        assert report["matches_version"] == "V1"
        return
    graver = [finding for finding in report["findings"] if finding["severity"] != "info"]
    assert all(finding["message"] for finding in graver)
    if not case.get("unmendable"):
        mend(database, graver, opsctl)
        assert opsctl.verify(database).code == 0, opsctl.verify(database).out


def mend(database: Database, findings: list[dict[str, Any]], opsctl: Opsctl) -> None:
    """Run the fixes as a DBA would paste them, each once."""
    if any("opsctl init-tables creates it" in finding["message"] for finding in findings):
        assert opsctl.init(database).code == 0
        return
    for fix in dict.fromkeys(finding["fix"] for finding in findings):
        assert fix, findings
        database.execute(*(statement for statement in fix.split(";\n") if statement.strip(" ;")))


@contextlib.contextmanager
def server_variables_kept(database: Database, statements: list[str]) -> Iterator[None]:
    """Put a global that the case sets back to what it was."""
    names = re.findall(r"SET GLOBAL (\w+)", " ".join(statements))
    before = {name: database.execute(f"SELECT @@GLOBAL.{name}")[0][0] for name in names}
    try:
        yield
    finally:
        for name, value in before.items():
            database.execute(
                f"SET GLOBAL {name} = '{value}'" if isinstance(value, str) else f"SET GLOBAL {name} = {value}"
            )
