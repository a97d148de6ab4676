"""Accounts with a password that the server asks for."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Iterator

import psycopg
import pymysql
import pytest
from faults.harness import Account
from servers import Database, Server


def connects(account: Account, password: str) -> bool:
    """Whether the driver by itself gets in with this password."""
    server, name = account.server, account.database.name
    try:
        if server.family == "postgresql":
            psycopg.connect(
                host=server.host, port=server.port, user=account.user, password=password, dbname=name
            ).close()
        else:
            pymysql.connect(
                host=server.host, port=server.port, user=account.user, password=password.encode(), database=name
            ).close()
    except (psycopg.OperationalError, pymysql.OperationalError):
        return False
    return True


@contextlib.contextmanager
def asked_for_passwords(server: Server, group: str) -> Iterator[None]:
    """PostgreSQL: members of `group` need their password; a server that was started here trusts everybody else."""
    if server.family != "postgresql" or server.directory is None:
        yield
        return
    hba = server.directory / "data" / "pg_hba.conf"
    before = hba.read_text()
    admin = psycopg.connect(server.dsn, autocommit=True)
    admin.execute(f"CREATE ROLE {group}")
    hba.write_text(f"host all +{group} all scram-sha-256\n{before}")
    admin.execute("SELECT pg_reload_conf()")
    try:
        yield
    finally:
        hba.write_text(before)
        admin.execute("SELECT pg_reload_conf()")
        admin.execute(f"DROP ROLE {group}")
        admin.close()


@contextlib.contextmanager
def accounts_on(server: Server, *passwords: str) -> Iterator[dict[str, Account]]:
    """An account for each password, on one database where each may do everything."""
    group = f"g_{secrets.token_hex(5)}"
    with asked_for_passwords(server, group):
        database = Database(server)
        made = {password: Account(database, f"o_{secrets.token_hex(5)}", password) for password in passwords}
        try:
            for account in made.values():
                account.create()
                if server.family == "postgresql" and server.directory is not None:
                    database.execute(f"GRANT {group} TO {account.user}")
                if server.family == "postgresql":  # each account that is created takes the database over
                    database.execute(f"GRANT ALL ON SCHEMA public TO {account.user}")
            deadline = time.monotonic() + 5
            while any(connects(account, "wrong") for account in made.values()):
                if time.monotonic() > deadline:
                    pytest.skip(f"{server} asks nobody for a password")
                time.sleep(0.02)
            for password, account in made.items():
                assert connects(account, password), "the driver by itself does not get in"
            yield made
        finally:
            for account in made.values():
                account.drop()
            database.drop()
