"""Servers that are too old are refused before anything is done, with the reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pairs import Opsctl
from servers import Database

from opsctl.dialects import dialect_of, require_supported
from opsctl.dialects.base import Server
from opsctl.errors import Guarded


@pytest.mark.servers("mariadb")
def test_real_mariadb_that_says_it_is_old(private_server: Callable[..., Any], opsctl: Opsctl) -> None:
    """MariaDB lets its version be set at the start, as some hosters do: opsctl goes by what the server says."""
    database = Database(private_server("mariadb", "--version=10.5.29-MariaDB-old"))
    answer = opsctl.init(database)
    assert (answer.code, "SKIP LOCKED" in answer.err, "10.6" in answer.err) == (5, True, True), answer.err
    assert database.execute("SHOW TABLES") in ([], ())
    assert opsctl("init-tables", "--dry-run", "--dsn", database.dsn).code == 5


@pytest.mark.servers("mariadb")
def test_mariadb_without_the_type_uuid_gets_char(private_server: Callable[..., Any], opsctl: Opsctl) -> None:
    database = Database(private_server("mariadb", "--version=10.6.20-MariaDB"))
    assert opsctl.init(database).code == 0
    (row,) = database.execute("SHOW CREATE TABLE onestep_executions")
    assert "`lease_token` char(32)" in row[1]
    report = opsctl.verify(database, "-o", "json").json
    assert (report["verdict"], report["findings"]) == ("match", []), "no other generation is possible there"


@pytest.mark.parametrize(
    ("product", "version", "supported"),
    [
        ("MySQL", "8.0.16", True),
        ("MySQL", "8.0.15", False),
        ("MySQL", "5.7.44-log", False),
        ("MySQL", "8.0.22-TXSQL-tdsql", True),
        ("MySQL", "8.4.3", True),
        ("MySQL", "9.7.4-2", True),
        ("MariaDB", "10.5.29-MariaDB", False),
        ("MariaDB", "10.6.4-MariaDB-1:10.6.4+maria~focal", True),
        ("MariaDB", "11.8.3-MariaDB-0+deb13u1", True),
        ("PostgreSQL", "12.22", False),
        ("PostgreSQL", "13.0", True),
        ("PostgreSQL", "18.6 (Debian 18.6-3)", True),
        ("PostgreSQL", "19beta1", True),
        ("PostgreSQL", "16devel", True),
    ],
)
def test_versions_as_servers_print_them(product: str, version: str, supported: bool) -> None:
    server = Server(product, version)
    if supported:
        require_supported(server)
    else:
        with pytest.raises(Guarded, match="too old") as raised:
            require_supported(server)
        assert dialect_of(server).product in raised.value.hint
