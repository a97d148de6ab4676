"""query run: what hangs, is slow, is killed or interrupted ends in time, and leaves nothing running on the server."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from faults.harness import Account, Ended, Opsctl, account_on, wait_until
from faults.locks import blocked_table, session
from processes import clean_environment
from servers import Database, Server

#: Minutes of work without a table, in words that all servers know.
SLOW = """
WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 900)
SELECT count(*) FROM n a, n b, n c, n d WHERE a.i + b.i + c.i + d.i = 0
"""
#: Ten million rows and more, without a LIMIT.
MANY = """
WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 220)
SELECT a.i, b.i AS j, c.i AS k FROM n a, n b, n c
"""
LOOK = "SELECT status, count(*) AS executions FROM onestep_executions GROUP BY status"


@pytest.fixture
def queries(opsctl: Opsctl) -> tuple[str, str]:
    """The option that names a folder with SLOW, MANY and LOOK."""
    folder = opsctl.home / "queries"
    folder.mkdir()
    for name, text in (("slow", SLOW), ("many", MANY), ("many-too", f"({MANY})"), ("look", LOOK)):
        (folder / f"{name}.sql").write_text(text)
    (folder / "mark.sql").write_text("SELECT text FROM marks")
    return "--query-dir", str(folder)


@contextlib.contextmanager
def locked_for_writing(database: Database, table: str) -> Iterator[None]:
    with session(database, f"LOCK TABLES {table} WRITE"):
        yield


@pytest.mark.parametrize("options", [(), ("--allow-scan",), ("--explain",)], ids=["guard", "query", "explain"])
def test_table_is_locked(options: tuple[str, ...], ready: Account, opsctl: Opsctl, queries: tuple[str, str]) -> None:
    """The guard's EXPLAIN waits for the table as well as the query does."""
    locks = [blocked_table] if ready.server.family == "postgresql" else [blocked_table, locked_for_writing]
    for lock in locks:
        with lock(ready.database, "onestep_executions"):
            end = opsctl(ready.dsn(), "query", "run", "look", *queries, *options, "--lock-timeout", "1")
            end.failed(3, "lock", "--lock-timeout", within_s=2)
            ready.gone()


def test_query_is_slow(ready: Account, opsctl: Opsctl, queries: tuple[str, str]) -> None:
    run = ("query", "run", "slow", *queries, "--statement-timeout", "1", "--lock-timeout", "1")
    opsctl(ready.dsn(), *run, "--allow-scan").failed(3, "time", "statement-timeout", within_s=2.5)
    ready.gone()


def start_slow(account: Account, opsctl: Opsctl, queries: tuple[str, str]) -> tuple[int, Callable[..., Ended], object]:
    running = opsctl.start(account.dsn(), "query", "run", "slow", *queries, "--allow-scan")

    def at_work() -> list[int]:
        return [session[0] for session in account.sessions() if re.search("active.*FETCH|RECURSIVE", str(session[1:]))]

    wait_until(at_work, 15)
    return at_work()[0], running.end, running.send


def test_connection_is_killed_in_mid_query(ready: Account, opsctl: Opsctl, queries: tuple[str, str]) -> None:
    number, end, _ = start_slow(ready, opsctl, queries)
    ready.terminate(number)
    end().failed(3, "terminat|lost|kill|closed|gone|interrupted|ended", "again")
    ready.gone()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signal_in_mid_query(
    ready: Account, opsctl: Opsctl, queries: tuple[str, str], number: signal.Signals, code: int
) -> None:
    _, end, send = start_slow(ready, opsctl, queries)
    send(number)  # type: ignore[operator]
    end(within_s=8).failed(code, "interrupted|terminated")
    ready.gone()


def peak_kib(account: Account, opsctl: Opsctl, *arguments: str) -> int:
    """The most memory that a run of opsctl had, which must end well."""
    process = subprocess.Popen(
        [opsctl.program, "query", "run", *arguments, "--limit", "10", "-o", "csv"],
        env=clean_environment(opsctl.home, {"OPSCTL_DSN": account.dsn()}),
        cwd=opsctl.home,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    out, err = process.stdout.read(), process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    process.stderr.close()
    assert process.returncode == 0, err
    assert len(out.splitlines()) == 11
    assert "more than these 10 rows" in err
    return usage.ru_maxrss


def test_ten_million_rows_stay_on_the_server(ready: Account, opsctl: Opsctl, queries: tuple[str, str]) -> None:
    (opsctl.home / "queries/few.sql").write_text(MANY.replace("220", "4"))
    few = peak_kib(ready, opsctl, "few", *queries)
    for name in ("many", "many-too") if ready.server.family == "postgresql" else ("many",):
        assert peak_kib(ready, opsctl, name, *queries, "--allow-scan") < few + 10_000
    ready.gone()


@pytest.mark.slow
@pytest.mark.servers("mysql", "mariadb", "postgresql-newest")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_watch_outlives_the_server(
    server: Server,
    opsctl: Opsctl,
    queries: tuple[str, str],
    private_server: Callable[..., Server],
    number: signal.Signals,
    code: int,
    tmp_path: Path,
) -> None:
    own = private_server(server.name)
    out, err = tmp_path / "out", tmp_path / "err"

    def seen(path: Path, text: str) -> Callable[[], bool]:
        return lambda: text in path.read_text()

    with account_on(own) as account, out.open("w") as stdout, err.open("w") as stderr:
        account.database.execute("CREATE TABLE marks (text varchar(20))", "INSERT INTO marks VALUES ('before')")
        if own.family == "postgresql":
            account.database.execute(f"GRANT SELECT ON marks TO {account.user}")
        account.database.close()
        process = subprocess.Popen(
            [opsctl.program, "query", "run", "mark", *queries, "--watch", "0.2", "-o", "csv"],
            env=clean_environment(opsctl.home, {"OPSCTL_DSN": account.dsn()}),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
        )
        try:
            wait_until(seen(out, "before"), 15)
            own.stop()
            wait_until(seen(err, "trying again"), 15)
            own.start()
            account.database.execute("UPDATE marks SET text = 'after'")
            wait_until(seen(out, "after"), 15, err.read_text)
            process.send_signal(number)
            assert process.wait(10) == code
        finally:
            process.kill()
            process.wait()
        account.gone()
    said = r"opsctl: .*(refused|lost|closed|terminat|shut)[^\n]*\n  .*; trying again in 0.2 s\n"
    assert re.search(said, err.read_text(), re.IGNORECASE)
    assert "Traceback" not in err.read_text()
