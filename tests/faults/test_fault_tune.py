"""tune apply and revert beside a busy application, killed at any moment, and with others in the way."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pymysql
import pytest
from faults.harness import Account, Opsctl, wait_until
from faults.locks import session
from processes import clean_environment
from servers import Database

EXECUTIONS, ATTEMPTS = "onestep_executions", "onestep_execution_attempts"
BUSY = Path(__file__).parents[1] / "reference/onestep_busy.py"
FINISHED = 60_000
WORKERS = 16
NAMES = {"postgresql": ("overdue", "finished"), "mysql": ("ready", "finished", "hide-claim")}


def only(account: Account) -> list[str]:
    return [part for name in NAMES[account.server.family] for part in ("--only", name)]


def apply_options(account: Account) -> list[str]:
    return ["tune", "apply", *only(account), "--no-measure", "--yes"]


def fill(database: Database, rows: int = FINISHED) -> None:
    """Finished rows enough for a build to take a moment."""
    postgresql = database.server.family == "postgresql"
    now = "now()" if postgresql else "UTC_TIMESTAMP(6)"
    uuid = "gen_random_uuid()" if postgresql else "insert(insert(lower(hex(random_bytes(16))), 13, 1, '4'), 17, 1, '8')"
    series = "generate_series(1, {0}) AS s(i)"
    prefix = ""
    if not postgresql:
        prefix, series = "WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < {0}) ", "s"
        variable = "max_recursive_iterations" if database.server.name == "mariadb" else "cte_max_recursion_depth"
        database.execute(f"SET SESSION {variable} = 10000000")
    row = f"{uuid}, 'busy', 't0', 'succeeded', '{{}}', '{{}}', {now}, {now}, {now}, {now}"
    names = "id, namespace, task_name, status, payload, metadata, available_at, created_at, updated_at, finished_at"
    database.execute(f"INSERT INTO {EXECUTIONS} ({names}) {prefix.format(rows)}SELECT {row} FROM {series.format(rows)}")


@contextmanager
def busy(python: Path, account: Account, home: Path, workers: int = WORKERS) -> Iterator[Callable[[], Any]]:
    """Workers of onestep that are never idle; the call ends them and returns what they did."""
    driver = "postgresql+psycopg" if account.server.family == "postgresql" else "mysql+asyncmy"
    dsn = f"{driver}://{account.database.dsn.partition('://')[2]}"
    argv = [python, BUSY, dsn, EXECUTIONS, ATTEMPTS, workers]
    process = subprocess.Popen(
        [str(part) for part in argv], env=clean_environment(home, {}), cwd=home, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip

    def end() -> Any:
        out, err = process.communicate("stop\n", timeout=120)
        assert process.returncode == 0, err
        return json.loads(out)

    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "busy\n", process.communicate()[1]
        yield end
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


def names_of(account: Account) -> set[str]:
    """The indexes that stand, valid and seen; one that is hidden is left out."""
    if account.server.family == "postgresql":
        sql = (
            f"SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid = '{EXECUTIONS}'::regclass AND indisvalid"
        )
    else:
        seen = "ignored = 'NO'" if account.server.name == "mariadb" else "is_visible = 'YES'"
        sql = f"SELECT DISTINCT index_name FROM information_schema.statistics WHERE table_schema = DATABASE() AND table_name = '{EXECUTIONS}' AND {seen}"
    return {row[0] for row in account.database.execute(sql)}


@pytest.mark.slow
def test_no_claim_fails_or_is_lost(
    ready: Account, opsctl: Opsctl, tmp_path: Path, reference_pythons: dict[str, Path]
) -> None:
    fill(ready.database)
    before = names_of(ready)
    with busy(reference_pythons["newest"], ready, tmp_path) as end:
        applied = opsctl(ready.dsn(), *apply_options(ready), within_s=180)
        assert applied.code == 0, applied
        between = names_of(ready)
        reverted = opsctl(ready.dsn(), "tune", "revert", "--yes", within_s=180)
        assert reverted.code == 0, reverted
        did = end()
    assert did["errors"]["write"] == [], did
    if ready.server.family == "postgresql":
        assert did["errors"]["claim"] == [], did
    # MySQL and MariaDB (docs/dba.md): a claim reads first and locks then, and when the ALTER has begun to wait for the table
    # in between, the server ends the claim; the worker claims again at its next poll. Twice for each ALTER, at most.
    assert all("1213" in error for error in did["errors"]["claim"]), did
    assert len(did["errors"]["claim"]) <= 2 * 2 * WORKERS, did
    assert did["completed"] == did["submitted"] > 0, did
    assert between != before == names_of(ready)
    live = ready.database.execute(f"SELECT count(*) FROM {EXECUTIONS} WHERE status <> 'succeeded'")
    assert live[0][0] == 0


def building(account: Account) -> bool:
    """Whether a session of opsctl's is at work on an index."""
    if account.server.family == "postgresql":
        sql = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'CREATE INDEX%' AND state = 'active' AND datname = current_database()"
    else:
        sql = "SELECT count(*) FROM information_schema.processlist WHERE info LIKE 'CREATE INDEX%' AND db = DATABASE()"
    return bool(account.database.execute(sql)[0][0])


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_run_that_was_ended_is_finished_by_the_next(how: signal.Signals, ready: Account, opsctl: Opsctl) -> None:
    """Ended in the first moment that the server shows an index being built."""
    fill(ready.database, 100_000)
    running = opsctl.start(ready.dsn(), *apply_options(ready))
    wait_until(lambda: building(ready) or running.process.poll() is not None, 60)
    running.send(how)
    ended = running.end(within_s=60)
    assert ended.code in (-how, 130, 143, 0), ended
    finished = opsctl(ready.dsn(), *apply_options(ready), within_s=120)
    assert finished.code == 0, finished
    verified = opsctl(ready.dsn(), "verify-schema")
    assert verified.code == 0, verified
    assert {f"ix_{EXECUTIONS}_finished"} <= names_of(ready)
    assert "nothing to do" in opsctl(ready.dsn(), *apply_options(ready)).out


@pytest.mark.servers("mysql", "mariadb")
def test_a_long_transaction_does_not_make_the_application_wait(ready: Account, opsctl: Opsctl) -> None:
    """The ALTER gives up before anybody else does, and tries again; in between the table is free."""
    before = names_of(ready)
    patient = "SET SESSION lock_wait_timeout = 20"
    refused: list[Exception] = []
    done = threading.Event()

    def application() -> None:
        with session(ready.database, patient) as connection, connection.cursor() as cursor:
            while not done.is_set():
                try:
                    cursor.execute(f"SELECT count(*) FROM {EXECUTIONS}")
                except pymysql.Error as error:
                    refused.append(error)

    with session(ready.database, "BEGIN", f"SELECT * FROM {EXECUTIONS}"):
        thread = threading.Thread(target=application)
        thread.start()
        try:
            ended = opsctl(ready.dsn(), *apply_options(ready), "--lock-timeout", "1", "--retry-for", "3", within_s=60)
        finally:
            done.set()
            thread.join()
        ended.failed(3, "tried for 3 s", "query run transactions")
    assert not refused
    assert names_of(ready) == before
    assert opsctl(ready.dsn(), *apply_options(ready)).code == 0


@pytest.mark.servers("postgresql", "postgresql-newest")
def test_a_build_that_gives_up_leaves_nothing(ready: Account, opsctl: Opsctl) -> None:
    """CONCURRENTLY waits for older transactions; the time for the build ends that."""
    before = names_of(ready)
    with session(ready.database, "BEGIN ISOLATION LEVEL REPEATABLE READ", f"SELECT * FROM {EXECUTIONS}"):
        ended = opsctl(ready.dsn(), *apply_options(ready), "--build-timeout", "2", "--retry-for", "0", within_s=60)
        assert ended.code == 3, ended
    left = ready.database.execute(f"SELECT count(*) FROM pg_index WHERE indrelid = '{EXECUTIONS}'::regclass")
    assert opsctl(ready.dsn(), *apply_options(ready)).code == 0
    assert names_of(ready) > before
    assert left[0][0] >= len(before)


def test_two_at_once(ready: Account, opsctl: Opsctl) -> None:
    fill(ready.database)
    running = [opsctl.start(ready.dsn(), *apply_options(ready)) for _ in range(3)]
    ended = [one.end(within_s=120) for one in running]
    assert [one.code for one in ended] == [0, 0, 0], ended
    assert opsctl(ready.dsn(), "verify-schema").code == 0
    assert "nothing to do" in opsctl(ready.dsn(), *apply_options(ready)).out
