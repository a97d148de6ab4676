"""Fixtures of the fault tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from faults.harness import Account, Opsctl, make_account
from faults.proxy import Proxy
from servers import Database, Server


@pytest.fixture
def opsctl(tmp_path: Path) -> Iterator[Opsctl]:
    opsctl = Opsctl(tmp_path)
    yield opsctl
    opsctl.stop()


@pytest.fixture
def account(database: Database) -> Iterator[Account]:
    """An account with all rights on `database`, an empty one."""
    made = make_account(database)
    yield made
    made.drop()


@pytest.fixture
def ready(account: Account, opsctl: Opsctl) -> Account:
    """An account whose database has the pair."""
    assert opsctl(account.dsn(), "init-tables", "--yes").code == 0
    return account


@pytest.fixture
def proxy(server: Server) -> Iterator[Proxy]:
    """A proxy before `server`."""
    with Proxy(server.host, server.port) as proxy:
        yield proxy
