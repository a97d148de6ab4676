"""The connection, the session or the server goes while a statement runs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from faults.harness import Account, Opsctl, account_on, assert_secret, run_all, wait_until
from faults.locks import blocked_table, creation_lock
from faults.proxy import TO_CLIENT, TO_SERVER, Action, Proxy
from servers import Server

LIMITS = ("--statement-timeout", "1", "--lock-timeout", "1")


def reads(account: Account) -> bytes:
    """What only the statement in the middle of verify-schema holds."""
    return b"pg_constraint" if account.server.family == "postgresql" else b"show create table"


def test_connection_falls_silent(ready: Account, opsctl: Opsctl, proxy: Proxy) -> None:
    """With --statement-timeout 2 the client gives up by itself: the server's own limits do not come through."""
    happened = proxy.when(TO_SERVER, Action.SILENCE, reads(ready), deliver=True)
    limits = ("--statement-timeout", "2", "--lock-timeout", "2")
    end = opsctl(ready.clear_dsn(proxy.port), "verify-schema", *limits)
    assert happened.is_set()
    end.failed(3, "no answer after 3 s", "statement-timeout", within_s=4)
    assert_secret(ready.password, end.err)
    proxy.close()
    ready.gone()


@pytest.mark.servers("mysql", "postgresql-newest")
def test_connection_falls_silent_at_the_end(ready: Account, opsctl: Opsctl, proxy: Proxy) -> None:
    """All is read by then: the answer is given, and nobody waits long for a rollback."""
    read = proxy.when(TO_SERVER, Action.NOTE, reads(ready))
    happened = proxy.when(TO_SERVER, Action.SILENCE, b"rollback", after=read)
    end = opsctl(ready.clear_dsn(proxy.port), "verify-schema", *LIMITS)
    assert happened.is_set()
    assert end.code == 0, end
    assert not end.lines(), end
    proxy.close()
    ready.gone()


@pytest.mark.servers("mysql", "mariadb", "postgresql-newest")
def test_connection_falls_silent_while_tables_are_made(account: Account, opsctl: Opsctl, proxy: Proxy) -> None:
    happened = proxy.when(TO_SERVER, Action.SILENCE, b"create table", nth=2)
    end = opsctl(account.clear_dsn(proxy.port), "init-tables", "--yes", *LIMITS)
    assert happened.is_set()
    end.failed(3, "no answer after 2 s", "statement-timeout", within_s=3)
    proxy.close()
    account.gone()
    assert_completes(account, opsctl)


@pytest.mark.servers("mysql", "mariadb", "postgresql-newest")
def test_answers_that_are_lost_or_end(ready: Account, opsctl: Opsctl) -> None:
    """Cut, reset, answers lost whole, and the first bytes of one lost so that what follows makes no sense."""
    pattern = reads(ready)

    def ask(action: Action, keep: int | None, deliver: bool) -> object:
        with Proxy(ready.server.host, ready.server.port) as proxy:
            if keep is None:
                happened = proxy.when(TO_SERVER, action, pattern, deliver=deliver)
            else:
                happened = proxy.when(TO_CLIENT, action, b"onestep_execution", keep=keep)
            end = opsctl(ready.clear_dsn(proxy.port), "verify-schema", *LIMITS)
            assert happened.is_set(), action
            return end.failed(3, within_s=4)

    cases = [(Action.CUT, None, True), (Action.RESET, None, False)]
    cases += [(Action.CUT, 7, True), (Action.SWALLOW, 7, True)]
    run_all([lambda case=case: ask(*case) for case in cases])  # type: ignore[arg-type]
    ready.gone(5)


def test_session_is_ended_by_an_administrator(account: Account, opsctl: Opsctl) -> None:
    with creation_lock(account.database):
        running = opsctl.start(account.dsn(), "init-tables", "--yes", "--lock-timeout", "20")
        wait_until(account.waits, 15)
        (session,) = [row[0] for row in account.sessions()]
        account.terminate(session)
        running.end().failed(3, "terminat|lost|kill|closed|gone|interrupted|ended", "again")
    account.gone()
    assert account.tables() == set()


@pytest.mark.servers("mysql", "mariadb")
def test_session_is_ended_while_it_reads(ready: Account, opsctl: Opsctl) -> None:
    with blocked_table(ready.database, "onestep_executions"):
        running = opsctl.start(ready.dsn(), "verify-schema", "--lock-timeout", "20")
        wait_until(ready.waits, 15)
        (session,) = [row[0] for row in ready.sessions()]
        ready.terminate(session)
        running.end().failed(3, "", "again")
    ready.gone()


@pytest.mark.slow
@pytest.mark.servers("mysql", "mariadb", "postgresql")
def test_server_crashes(server: Server, opsctl: Opsctl, private_server: Callable[..., Server]) -> None:
    own = private_server(server.name)
    with account_on(own) as account:
        with creation_lock(account.database):
            running = opsctl.start(account.dsn(), "init-tables", "--yes", "--lock-timeout", "20")
            wait_until(account.waits, 15)
            own.kill()
            running.end().failed(3, "", "again|restart", within_s=20)
            opsctl(account.dsn(), "verify-schema").failed(3, "refused", "host and port")
        account.database.close()
        own.start()
        assert_completes(account, opsctl)


def assert_completes(account: Account, opsctl: Opsctl) -> None:
    """Whatever a broken run left, the next one makes it whole."""
    again = opsctl(account.dsn(), "init-tables", "--yes")
    assert again.code == 0, again
    verified = opsctl(account.dsn(), "verify-schema")
    assert verified.code == 0, verified
