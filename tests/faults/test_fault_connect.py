"""A name, a password, a database that is wrong; a server that is full; a handshake that breaks off."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import psycopg
import pymysql
import pytest
from faults.harness import COMMANDS, Account, Ended, Opsctl, account_on, assert_secret, make_account, run_all
from faults.proxy import TO_CLIENT, TO_SERVER, Action, Direction, Proxy
from servers import Database, Server

NASTY = "@:/%#?{}'\" é+&=\\x"


def test_wrong_name_or_database(account: Account, opsctl: Opsctl) -> None:
    mysql = account.server.family == "mysql"
    ends = run_all(
        [
            lambda: opsctl(account.dsn(user="nosuch_user"), "verify-schema"),
            lambda: opsctl(account.dsn(database="nosuch_database"), "verify-schema"),
            lambda: opsctl(account.dsn(database="nosuch_database"), "init-tables", "--yes"),
        ]
    )
    ends[0].failed(3, "nosuch_user", "user|role", within_s=5)
    for end in ends[1:]:
        end.failed(3, "nosuch_database|Access denied", "database", within_s=5)
    if mysql:
        for command in COMMANDS:
            end = opsctl(account.dsn(database=""), *command).failed(2, "database", "mysql://", within_s=5)
            ends.append(end)
    for end in ends:
        assert_secret(account.password, end.out, end.err)
    account.gone()


@pytest.mark.servers("mysql", "mariadb")
def test_database_that_does_not_exist_for_an_administrator(database: Database, opsctl: Opsctl) -> None:
    dsn = database.dsn.replace(database.name, "nosuch_database")
    opsctl(dsn, "verify-schema").failed(3, "nosuch_database", "correct the database", within_s=5)


@pytest.mark.servers("mysql", "mariadb")
@pytest.mark.parametrize("options", ["", "ssl_disabled=true"])
def test_special_characters_in_a_password(database: Database, opsctl: Opsctl, tmp_path: Path, options: str) -> None:
    account = make_account(database, NASTY)
    try:
        check_password(account, opsctl, tmp_path, options)
    finally:
        account.drop()


@pytest.mark.servers("postgresql-newest")
def test_special_characters_in_a_password_of_postgresql(
    server: Server, opsctl: Opsctl, tmp_path: Path, private_server: Callable[..., Server]
) -> None:
    own = private_server(server.name)
    assert own.directory is not None
    with account_on(own, NASTY) as account:
        hba = own.directory / "data" / "pg_hba.conf"
        hba.write_text(f"host all {account.user} 127.0.0.1/32 scram-sha-256\n{hba.read_text()}")
        account.database.execute("SELECT pg_reload_conf()")
        check_password(account, opsctl, tmp_path, "")


def check_password(account: Account, opsctl: Opsctl, tmp_path: Path, options: str) -> None:
    """The right password gets in, a wrong one does not and never shows, wherever the DSN comes from."""
    wrong = account.password + "wrong"
    good, bad = account.dsn(options), account.dsn(options, password=wrong)
    good_file, bad_file, audit = tmp_path / "good.dsn", tmp_path / "bad.dsn", tmp_path / "audit.jsonl"
    good_file.write_text(good + "\n", encoding="utf-8")
    bad_file.write_text(bad + "\n", encoding="utf-8")
    made = opsctl(None, "init-tables", "--yes", "--dsn-file", good_file, "--audit-file", audit)
    assert made.code == 0, made
    ends = run_all(
        [
            lambda: opsctl(good, "--debug", "verify-schema"),
            lambda: opsctl(None, "--debug", "init-tables", "--yes", "--dsn-file", bad_file),
            lambda: opsctl(bad, "verify-schema"),
        ]
    )
    assert [end.code for end in ends] == [0, 3, 3], ends
    assert "Traceback" in ends[1].err
    for end in ends[2:]:
        end.failed(3, "denied|password authentication failed", "password", within_s=5)
    for end in (made, *ends):
        assert_secret(account.password, end.out, end.err)
        assert_secret(wrong, end.out, end.err)
    assert_secret(account.password, audit.read_text(encoding="utf-8"))
    account.gone()


@pytest.mark.servers("mysql")
def test_caching_sha2_password_where_the_server_has_no_tls(
    server: Server, opsctl: Opsctl, private_server: Callable[..., Server], tmp_path: Path
) -> None:
    with account_on(private_server(server.name, "--tls-version="), NASTY) as account:
        check_password(account, opsctl, tmp_path, "")
        opsctl(account.dsn("ssl_mode=REQUIRED"), "verify-schema").failed(3, "SSL|TLS", "TLS", within_s=5)


# What the client sends first, what comes back first, the login, the answer to it, the first statements after it.
PLACES = {
    "greeting": (TO_CLIENT, b"", 1),
    "login": (TO_SERVER, b"@user", 1),
    "answer": (TO_CLIENT, b"", 3),
    "first statement": (TO_SERVER, b"select", 1),
    "settings": (TO_SERVER, b"read committed", 1),
}


@pytest.mark.parametrize(
    "action",
    [
        Action.SILENCE,
        # the rest is the same to opsctl, or nearly
        pytest.param(Action.CUT, marks=pytest.mark.slow),
        pytest.param(Action.RESET, marks=pytest.mark.slow),
        pytest.param(Action.SWALLOW, marks=pytest.mark.slow),
    ],
)
@pytest.mark.servers("mysql", "postgresql-newest")
def test_handshake_that_breaks_off(account: Account, opsctl: Opsctl, action: Action) -> None:
    def ask(direction: Direction, pattern: bytes, nth: int) -> Ended:
        with Proxy(account.server.host, account.server.port) as proxy:
            happened = proxy.when(direction, action, pattern.replace(b"@user", account.user.encode()), nth=nth)
            end = opsctl(account.clear_dsn(proxy.port), "verify-schema", "--connect-timeout", "2")
            assert happened.is_set(), (pattern, nth)
            return end

    for end in run_all([lambda place=place: ask(*place) for place in PLACES.values()]):
        end.failed(3, within_s=4)
        if action in (Action.SILENCE, Action.SWALLOW):
            assert "no answer after 2 s" in end.err, end
        assert_secret(account.password, end.err)
    account.gone()


@pytest.mark.slow
@pytest.mark.servers("mysql", "mariadb", "postgresql")
def test_no_connection_left(server: Server, opsctl: Opsctl, private_server: Callable[..., Server]) -> None:
    if server.family == "postgresql":
        own = private_server(server.name, "-cmax_connections=5", "-csuperuser_reserved_connections=1")
    else:
        own = private_server(server.name, "--max-connections=2")
    with account_on(own) as account:
        with contextlib.suppress(pymysql.Error, psycopg.Error):
            for _ in range(10):
                account.database.connect()
        ends = run_all([lambda command=command: opsctl(account.dsn(), *command) for command in COMMANDS])
        for end in ends:
            end.failed(3, "too many|connection slots", "max_connections", within_s=5)
        account.database.close()
        assert opsctl(account.dsn(), "init-tables", "--yes").code == 0
