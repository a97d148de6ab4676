"""Servers that are read only, and sessions and servers whose settings are set against us."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from faults.harness import COMMANDS, Account, Opsctl, account_on, run_all, settings
from servers import Server, local_server

STRANGE = {
    "mysql": {
        "sql_mode": "ANSI,NO_BACKSLASH_ESCAPES,PAD_CHAR_TO_FULL_LENGTH,NO_AUTO_VALUE_ON_ZERO",
        "time_zone": "+05:30",
        "autocommit": 0,
        "lc_messages": "ja_JP",
        "sql_select_limit": 1,
        "sql_safe_updates": 1,
        "completion_type": 2,
        "default_storage_engine": "MyISAM",
        "default_collation_for_utf8mb4": "utf8mb4_general_ci",
        "character_set_server": "latin1",
        "collation_server": "latin1_german1_ci",
        "foreign_key_checks": 0,
        "max_execution_time": 1000,
        "lock_wait_timeout": 1,
        "wait_timeout": 5,
        "transaction_isolation": "SERIALIZABLE",
        "init_connect": "SET SESSION sql_mode = 'ANSI_QUOTES', SESSION sql_select_limit = 1",
        "show_create_table_verbosity": 1,
        "sql_require_primary_key": 1,
    },
    "mariadb": {
        "sql_mode": "ORACLE",
        "time_zone": "+05:30",
        "autocommit": 0,
        "lc_messages": "de_DE",
        "sql_select_limit": 1,
        "sql_safe_updates": 1,
        "completion_type": 2,
        "default_storage_engine": "MyISAM",
        "character_set_server": "latin1",
        "collation_server": "latin1_german1_ci",
        "foreign_key_checks": 0,
        "max_statement_time": 1,
        "lock_wait_timeout": 1,
        "wait_timeout": 5,
        "tx_isolation": "SERIALIZABLE",
        "init_connect": "SET SESSION sql_mode = 'ANSI_QUOTES', SESSION sql_quote_show_create = 0",
        "sql_quote_show_create": 0,
        "check_constraint_checks": 0,
        "old_mode": "",
    },
}
SLOW = pytest.mark.slow
MODES = ("ANSI_QUOTES", "ANSI", "NO_BACKSLASH_ESCAPES", "", "TRADITIONAL,IGNORE_SPACE,HIGH_NOT_PRECEDENCE")
ROLE = {
    "lc_messages": "'C'",
    "standard_conforming_strings": "off",
    "default_transaction_isolation": "'serializable'",
    "default_transaction_deferrable": "on",
    "statement_timeout": "'1s'",
    "lock_timeout": "'1ms'",
    "row_security": "off",
    "quote_all_identifiers": "on",
    "transform_null_equals": "on",
    "client_encoding": "'LATIN1'",
    "datestyle": "'German, DMY'",
    "timezone": "'Asia/Kathmandu'",
    "bytea_output": "'escape'",
    "array_nulls": "off",
    "client_min_messages": "'debug5'",
    "enable_seqscan": "off",
    "idle_in_transaction_session_timeout": "'30s'",
}


@pytest.mark.servers("mysql", "mariadb")
def test_strange_server_settings(account: Account, opsctl: Opsctl) -> None:
    with settings(account.database, **STRANGE[account.server.name]):
        made = opsctl(account.dsn(), "init-tables", "--yes")
        assert made.code == 0, made
        verified = opsctl(account.dsn(), "verify-schema")
        assert verified.code == 0, verified
    verified = opsctl(account.dsn(), "verify-schema")
    assert verified.code == 0, verified


@pytest.mark.slow
@pytest.mark.parametrize("mode", [*MODES, "ORACLE"])
@pytest.mark.servers("mysql", "mariadb")
def test_sql_modes(account: Account, opsctl: Opsctl, mode: str) -> None:
    if mode == "ORACLE" and account.server.name == "mysql":
        mode = "PAD_CHAR_TO_FULL_LENGTH"
    with settings(account.database, sql_mode=mode):
        assert opsctl(account.dsn(), "init-tables", "--yes").code == 0
        assert opsctl(account.dsn(), "verify-schema").code == 0
    assert opsctl(account.dsn(), "verify-schema").code == 0


@pytest.mark.servers("mysql", "mariadb")
def test_row_format_in_which_the_indexes_do_not_fit(account: Account, opsctl: Opsctl) -> None:
    """onestep's own DDL fails there too."""
    with settings(account.database, innodb_default_row_format="compact"):
        opsctl(account.dsn(), "init-tables", "--yes").failed(4, "index column size", "innodb_default_row_format")
        assert not {name for name in account.tables() if name.startswith("onestep")}
    assert opsctl(account.dsn(), "init-tables", "--yes").code == 0


@pytest.mark.servers("mysql", "mariadb")
def test_init_connect_that_fails(ready: Account, opsctl: Opsctl) -> None:
    """The server then closes every connection but an administrator's."""
    with settings(ready.database, init_connect="SELECT nonsense FROM nowhere"):
        opsctl(ready.dsn(), "verify-schema").failed(3, "", "again|server", within_s=5)


@pytest.mark.servers("postgresql")
def test_strange_settings_of_a_role(account: Account, opsctl: Opsctl) -> None:
    for name, value in ROLE.items():
        account.database.execute(f"ALTER ROLE {account.user} SET {name} = {value}")
    made = opsctl(account.dsn(), "init-tables", "--yes")
    assert made.code == 0, made
    verified = opsctl(account.dsn(), "verify-schema")
    assert verified.code == 0, verified
    account.database.execute(f"ALTER ROLE {account.user} RESET ALL")
    assert opsctl(account.dsn(), "verify-schema").code == 0


@pytest.mark.parametrize(
    "path",
    [
        "nosuch, elsewhere",
        "public, pg_catalog",
        pytest.param("elsewhere, public", marks=SLOW),
        pytest.param('"$user", public', marks=SLOW),
    ],
)
@pytest.mark.servers("postgresql-newest")
def test_search_paths(account: Account, opsctl: Opsctl, path: str) -> None:
    account.database.execute(
        f"CREATE SCHEMA elsewhere AUTHORIZATION {account.user}",
        f"ALTER ROLE {account.user} SET search_path = {path}",
    )
    made = opsctl(account.dsn(), "init-tables", "--yes")
    assert made.code == 0, made
    verified = opsctl(account.dsn(), "verify-schema")
    assert verified.code == 0, verified
    where = "elsewhere" if "elsewhere" in path else "public"
    found = "SELECT schemaname FROM pg_tables WHERE tablename = 'onestep_executions'"
    assert account.database.execute(found) == [(where,)]


@pytest.mark.servers("postgresql-newest")
def test_search_path_without_a_place(account: Account, opsctl: Opsctl) -> None:
    account.database.execute(f"ALTER ROLE {account.user} SET search_path = pg_catalog, public")
    opsctl(account.dsn(), "init-tables", "--yes").failed(4, "pg_catalog", "grant")
    account.database.execute(f"ALTER ROLE {account.user} SET search_path = nosuch")
    opsctl(account.dsn(), "init-tables", "--yes").failed(2, "search_path", "--schema")


def check_read_only(account: Account, opsctl: Opsctl, pair_there: bool) -> None:
    """init-tables is refused and leaves nothing, whether all or half of the pair is missing; verify-schema reads."""
    before = account.tables()
    ends = run_all([lambda c=c: opsctl(account.dsn(), *c) for c in (*COMMANDS, ("init-tables", "--dry-run"))])
    assert [end.code for end in ends] == ([0, 0, 0] if pair_there else [1, 4, 0]), ends
    if not pair_there:
        ends[1].failed(4, "read.only", "writable|primary|turned off")
    assert account.tables() == before
    account.gone()


@pytest.fixture(params=["nothing", pytest.param("half", marks=SLOW), pytest.param("all", marks=SLOW)])
def begun(request: pytest.FixtureRequest, account: Account, opsctl: Opsctl) -> Account:
    if request.param != "nothing":
        assert opsctl(account.dsn(), "init-tables", "--yes").code == 0
    if request.param == "half":
        account.database.execute("DROP TABLE onestep_execution_attempts")
    return account


@pytest.mark.servers("mysql", "mariadb")
@pytest.mark.parametrize("variable", ["read_only", pytest.param("transaction_read_only", marks=SLOW)])
def test_read_only_server(begun: Account, opsctl: Opsctl, variable: str) -> None:
    if variable == "transaction_read_only" and begun.server.name == "mariadb":
        variable = "tx_read_only"
    with settings(begun.database, **{variable: 1}):
        check_read_only(begun, opsctl, len(begun.tables()) == 3)


@pytest.mark.servers("postgresql-newest")
def test_read_only_database(begun: Account, opsctl: Opsctl) -> None:
    name = begun.database.name
    begun.database.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    check_read_only(begun, opsctl, len(begun.tables()) == 3)
    begun.database.close()  # its own sessions are to be able to tidy up
    begun.database.execute(
        "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE",
        f"ALTER DATABASE {name} RESET default_transaction_read_only",
    )
    begun.database.close()


@pytest.mark.slow
@pytest.mark.servers("postgresql")
def test_standby(server: Server, opsctl: Opsctl, private_server: Callable[..., Server]) -> None:
    primary = private_server(server.name)
    assert primary.directory is not None
    with account_on(primary) as whole, account_on(primary) as empty:
        assert opsctl(whole.dsn(), "init-tables", "--yes").code == 0
        directory = primary.directory.parent / f"{primary.directory.name}-standby"
        standby = local_server(server.name, directory, ("-chot_standby=on",))
        try:
            copy(primary, directory)
            standby.start()
            for account, code in ((whole, 0), (empty, 1)):
                there = account.dsn(port=standby.port)
                verified = opsctl(there, "verify-schema")
                assert verified.code == code, verified
            nothing = opsctl(whole.dsn(port=standby.port), "init-tables", "--yes")
            assert nothing.code == 0, nothing
            refused = opsctl(empty.dsn(port=standby.port), "init-tables", "--yes")
            refused.failed(4, "read-only|recovery", "primary")
            assert empty.tables() == set()
            apply = ["tune", "apply", "--only", "finished", "--no-measure"]
            opsctl(whole.dsn(port=standby.port), *apply, "--yes").failed(5, "standby", "primary")
            named = opsctl(whole.dsn(), *apply, "--dry-run")
            assert (named.code, "through the WAL" in named.out) == (0, True), named
            assert opsctl(whole.dsn(), *apply, "--yes").code == 0
        finally:
            standby.discard()
            shutil.rmtree(directory, ignore_errors=True)


def copy(primary: Server, directory: Path) -> None:
    data = directory / "data"
    argv = [*primary.bin("pg_basebackup"), "-D", str(data), "-R", "-X", "stream", "-c", "fast", "--no-sync"]
    argv += ["-d", f"host={primary.host} port={primary.port} user={primary.address.user}"]
    subprocess.run(argv, check=True, capture_output=True, timeout=60)
    assert primary.directory is not None
    owner = (primary.directory / "data").stat()
    for path in (directory, data, *data.rglob("*")):
        shutil.chown(path, owner.st_uid, owner.st_gid)
