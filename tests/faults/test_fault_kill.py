"""init-tables killed with SIGKILL at each statement that changes something, before and after the server had it."""

from __future__ import annotations

import signal

import pytest
from faults.harness import Account, Opsctl
from faults.proxy import TO_SERVER, Action, Proxy

# pattern, which one of them: the lock, each CREATE TABLE, the version's row, the commit behind it, the release.
POINTS = {
    "lock": (b"get_lock", 2),
    "table 1": (b"create table", 1),
    "table 2": (b"create table", 2),
    "table 3": (b"create table", 3),
    "record": (b"insert into", 1),
    "release": (b"release_lock", 1),
}
POSTGRESQL_POINTS = {
    "lock": (b"pg_advisory_xact_lock", 1),
    "table 1": (b"create table", 1),
    "table 2": (b"create table", 2),
    "index": (b"create index", 1),
    "table 3": (b"create table", 3),
    "record": (b"insert into", 1),
    "commit": (b"commit", 1),
}


def kill_at(account: Account, opsctl: Opsctl, pattern: bytes, nth: int, deliver: bool) -> None:
    with Proxy(account.server.host, account.server.port) as proxy:
        started = proxy.when(TO_SERVER, Action.NOTE, b"read committed")
        happened = proxy.when(TO_SERVER, Action.STALL, pattern, nth=nth, deliver=deliver, after=started)
        running = opsctl.start(account.clear_dsn(proxy.port), "init-tables", "--yes")
        assert happened.wait(20), (pattern, nth, running.process.poll())
        running.send(signal.SIGKILL)
        running.end()
    before = account.tables()
    transactional = account.server.family == "postgresql"
    assert not transactional or len(before) in (0, 3), before
    again = opsctl(account.dsn(), "init-tables", "--yes")
    assert again.code == 0, (pattern, nth, deliver, before, again)
    assert len(account.tables()) == 3
    verified = opsctl(account.dsn(), "verify-schema")
    assert verified.code == 0, (pattern, nth, deliver, before, verified)
    account.gone()


def kill_at_point(account: Account, opsctl: Opsctl, point: str, deliver: bool) -> None:
    points = POSTGRESQL_POINTS if account.server.family == "postgresql" else POINTS
    kill_at(account, opsctl, *points[point], deliver)


@pytest.mark.servers("mysql", "mariadb", "postgresql-newest")
def test_killed(account: Account, opsctl: Opsctl) -> None:
    kill_at_point(account, opsctl, "table 2", deliver=True)


@pytest.mark.slow
@pytest.mark.parametrize("deliver", [False, True])
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.servers("mysql", "mariadb")
def test_killed_everywhere(account: Account, opsctl: Opsctl, point: str, deliver: bool) -> None:
    kill_at_point(account, opsctl, point, deliver)


@pytest.mark.slow
@pytest.mark.parametrize("deliver", [False, True])
@pytest.mark.parametrize("point", POSTGRESQL_POINTS)
@pytest.mark.servers("postgresql")
def test_killed_everywhere_on_postgresql(account: Account, opsctl: Opsctl, point: str, deliver: bool) -> None:
    kill_at_point(account, opsctl, point, deliver)
