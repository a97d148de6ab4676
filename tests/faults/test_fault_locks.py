"""Locks that others hold, and signals that come while opsctl waits for one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from faults.harness import COMMANDS, Account, Opsctl, run_all, wait_until
from faults.locks import blocked_table, creation_lock
from servers import Server


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.servers("mysql", "mariadb")
def test_lock_of_onestep_is_held(account: Account, opsctl: Opsctl, which: int) -> None:
    with creation_lock(account.database, which) as holder:
        end = opsctl(account.dsn(), "init-tables", "--yes", "--lock-timeout", "1")
    end.failed(3, rf"lock_\w+ is held by session {holder}, waited 1 s", "--lock-timeout", within_s=1)
    account.gone()
    assert account.tables() == set()


@pytest.mark.servers("postgresql")
def test_advisory_lock_of_onestep_is_held(account: Account, opsctl: Opsctl) -> None:
    with creation_lock(account.database) as holder:
        end = opsctl(account.dsn(), "init-tables", "--yes", "--lock-timeout", "0.5")
    end.failed(3, rf"advisory lock -?\d+ is held by session {holder}, waited 0.5 s", "--lock-timeout", within_s=1)
    account.gone()
    assert account.tables() == set()


@pytest.mark.servers("mysql", "mariadb")
def test_table_is_locked(ready: Account, opsctl: Opsctl) -> None:
    with blocked_table(ready.database, "onestep_executions"):
        ends = run_all([lambda c=c: opsctl(ready.dsn(), *c, "--lock-timeout", "1") for c in COMMANDS])
        for end in ends:
            end.failed(3, "lock wait timeout", "--lock-timeout", within_s=2)
        ready.gone()


@pytest.mark.servers("postgresql")
def test_table_is_locked_on_postgresql(ready: Account, opsctl: Opsctl) -> None:
    """What deparses an index or a constraint opens the table, so reading the catalog waits, too."""
    with blocked_table(ready.database, "onestep_executions"):
        end = opsctl(ready.dsn(), "verify-schema", "--lock-timeout", "1")
        end.failed(3, "lock timeout", "--lock-timeout", within_s=2)
        ready.gone()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.servers("mysql", "mariadb", "postgresql-newest")
def test_signal_while_init_tables_waits(
    account: Account, opsctl: Opsctl, number: signal.Signals, code: int, tmp_path: Path
) -> None:
    audit = tmp_path / "audit.jsonl"
    with creation_lock(account.database, which=1):
        running = opsctl.start(account.dsn(), "init-tables", "--yes", "--lock-timeout", "60", "--audit-file", audit)
        wait_until(account.waits, 20)
        running.send(number)
        running.end(within_s=8).failed(code, "interrupted|terminated", "rolled back")
        account.gone()
    assert account.tables() == set()
    assert [json.loads(line)["event"] for line in audit.read_text().splitlines()] in (["failed"], [])


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.servers("mysql", "mariadb")
def test_signal_while_verify_schema_waits(ready: Account, opsctl: Opsctl, number: signal.Signals, code: int) -> None:
    """The server would wait for the table long after the connection is closed: it is told."""
    with blocked_table(ready.database, "onestep_executions"):
        running = opsctl.start(ready.dsn(), "verify-schema", "--lock-timeout", "60")
        wait_until(ready.waits, 20)
        running.send(number)
        running.end(within_s=8).failed(code, "interrupted|terminated")
        ready.gone()


@pytest.mark.servers("mysql", "postgresql-newest")
def test_reader_of_stdout_goes_away(ready: Account, opsctl: Opsctl, server: Server) -> None:
    for options in ([], ["-o", "json"]):
        read, write = os.pipe()
        os.close(read)
        with os.fdopen(write, "wb") as stdout:
            done = subprocess.run(
                [opsctl.program, "verify-schema", *options],
                env={**os.environ, "OPSCTL_DSN": ready.dsn()},
                stdout=stdout,
                stderr=subprocess.PIPE,
                text=True,
                timeout=30,
                check=False,
            )
        assert (done.returncode, done.stderr) == (141, "")
