"""Pairs of tables made by onestep's own code, and opsctl run on them in this process."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

import pytest
import sqlalchemy as sa
from onestep_sql.mysql.execution_schema import build_execution_tables as mysql_tables
from onestep_sql.postgres.execution_schema import build_execution_tables as postgresql_tables
from servers import Database
from sqlalchemy.pool import NullPool

from opsctl.cli import main as entry
from opsctl.cli import state

EXECUTIONS, ATTEMPTS = "onestep_executions", "onestep_execution_attempts"


def create_pair(database: Database, executions: str = EXECUTIONS, attempts: str = ATTEMPTS) -> None:
    """Create the pair with the metadata that onestep itself creates it with."""
    if database.server.family == "postgresql":
        build, driver = postgresql_tables, "postgresql+psycopg"
    else:
        build, driver = mysql_tables, "mysql+pymysql"
    engine = sa.create_engine(sa.make_url(database.dsn).set(drivername=driver), poolclass=NullPool)
    build(executions_table=executions, attempts_table=attempts).metadata.create_all(engine)
    engine.dispose()


@dataclass
class Answer:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Opsctl:
    """The command line in this process: everything but the interpreter's start is what a user runs."""

    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._capsys = capsys
        for name in [name for name in os.environ if name.startswith(("OPSCTL_", "MYSQL_", "POSTGRES_", "PG"))]:
            if not name.startswith("OPSCTL_TEST_"):
                monkeypatch.delenv(name)
        monkeypatch.delenv("FORCE_COLOR", raising=False)
        for name in ("XDG_CONFIG_HOME", "HOME"):  # a developer's own config.toml, ~/.my.cnf, ~/.pgpass
            monkeypatch.setenv(name, "/nonexistent")

    def __call__(self, *arguments: str) -> Answer:
        self._capsys.readouterr()
        state.current = state.State()
        code = entry._run(arguments)
        captured = self._capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    def verify(self, database: Database, *arguments: str) -> Answer:
        return self("verify-schema", "--dsn", database.dsn, *arguments)

    def init(self, database: Database, *arguments: str) -> Answer:
        return self("init-tables", "--dsn", database.dsn, "--yes", *arguments)


#: What onestep_life.py prints when every step of an execution's life came as it should.
A_GOOD_LIFE = {
    "replayed": True,
    "conflict": True,
    "result": {"done": True},
    "retried": ["failed", 2],
    "cancelled": "cancelled",
    "requested": "cancel_requested",
    "cancelled late": "cancelled",
    "reclaimed": ["succeeded", 2],
    "listed": 5,
}


def onestep_dsn(database: Database) -> str:
    """The DSN as a deployment of onestep writes it."""
    driver = "postgresql+psycopg" if database.server.family == "postgresql" else "mysql+asyncmy"
    return f"{driver}://{database.dsn.partition('://')[2]}"


def longest_names(database: Database) -> tuple[str, str]:
    """Two table names of as many characters as the server allows, which begin alike."""
    limit = 63 if database.server.family == "postgresql" else 64
    return "e" * (limit - 1) + "x", "e" * (limit - 1) + "y"


def remarks(report: Any) -> list[Any]:
    """The findings of a report but for what is so of every pair that SQLAlchemy 2.0 makes on MariaDB."""
    return [finding for finding in report["findings"] if finding["property"] != "generation"]
