"""With fewer rights verify-schema says what it could not read, and init-tables names the right that is missing."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from pairs import ATTEMPTS, EXECUTIONS, Opsctl, create_pair, remarks
from servers import Database

PASSWORD = "s3cret/p@ss:%#?{}'\" é"


class Accounts:
    """Makes accounts on the server of a database; each is gone with the test."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._postgresql = database.server.family == "postgresql"
        self._made: list[str] = []

    def make(self, *grants: str, role: bool = False) -> str:
        """Make an account, or a role for one, with `grants` ("SELECT ON …"); return the account's DSN."""
        name = f"u{len(self._made)}_{self._database.name[2:]}"
        account = name if self._postgresql else f"'{name}'@'%'"
        self._made.append(account)
        connection = self._database.connect()
        with connection.cursor() as cursor:
            # psycopg and PyMySQL quote the password themselves
            word = "PASSWORD" if self._postgresql else "IDENTIFIED BY"
            literal = "'" + PASSWORD.replace("'", "''") + "'"
            cursor.execute(f"CREATE USER {account} {word} {literal}")
            holder = account
            if role and not self._postgresql:
                holder = f"r{name}"
                self._made.append(holder)
                cursor.execute(f"CREATE ROLE {holder}")
                cursor.execute(f"GRANT {holder} TO {account}")
                of = f"{holder} FOR {account}" if self._database.server.name == "mariadb" else f"{holder} TO {account}"
                cursor.execute(f"SET DEFAULT ROLE {of}")
            for grant in grants:
                cursor.execute(f"GRANT {grant} TO {holder}")
        parts = urlsplit(self._database.dsn)
        return parts._replace(netloc=f"{name}:{quote(PASSWORD, safe='')}@{parts.hostname}:{parts.port}").geturl()

    def drop(self) -> None:
        for account in self._made:
            word = "ROLE" if self._postgresql or account.startswith("ru") else "USER"
            if self._postgresql:
                self._database.execute(f"DROP OWNED BY {account} CASCADE")
            with contextlib.suppress(Exception):
                self._database.execute(f"DROP {word} {account}")


@pytest.fixture
def accounts(database: Database) -> Iterator[Accounts]:
    accounts = Accounts(database)
    yield accounts
    accounts.drop()


def verify_as(opsctl: Opsctl, dsn: str, tmp_path: Any, *arguments: str) -> Any:
    file = tmp_path / "dsn"
    file.write_text(dsn)
    answer = opsctl("verify-schema", "--dsn-file", str(file), *arguments)
    assert PASSWORD not in answer.out + answer.err
    return answer


def unread(report: Any) -> set[tuple[str, str]]:
    return {(fact["table"], fact["property"]) for fact in report["unread"]}


@pytest.mark.servers("mysql", "mariadb")
@pytest.mark.parametrize("role", [False, True], ids=["direct", "by role"])
def test_mysql_select_reads_all_but_triggers(
    role: bool, database: Database, accounts: Accounts, opsctl: Opsctl, tmp_path: Any
) -> None:
    create_pair(database)
    reader = accounts.make(f"SELECT ON `{database.name}`.*", role=role)
    answer = verify_as(opsctl, reader, tmp_path, "-o", "json")
    assert (answer.code, answer.json["verdict"], answer.json["matches_version"]) == (6, "unknown", None), answer.err
    assert unread(answer.json) == {(EXECUTIONS, "triggers"), (ATTEMPTS, "triggers")}
    database.execute(f"ALTER TABLE {EXECUTIONS} DROP INDEX ix_{EXECUTIONS}_claim")
    assert verify_as(opsctl, reader, tmp_path).code == 1, "drift wins over what could not be read"


@pytest.mark.servers("mysql", "mariadb")
@pytest.mark.parametrize("role", [False, True], ids=["direct", "by role"])
def test_mysql_select_and_trigger_read_everything(
    role: bool, database: Database, accounts: Accounts, opsctl: Opsctl, tmp_path: Any
) -> None:
    create_pair(database)
    reader = accounts.make(f"SELECT, TRIGGER ON `{database.name}`.*", role=role)
    answer = verify_as(opsctl, reader, tmp_path, "-o", "json")
    assert (answer.code, answer.json["verdict"], answer.json["unread"]) == (0, "match", [])


@pytest.mark.servers("mysql", "mariadb")
def test_mysql_rights_on_one_table_leave_the_other_unread(
    database: Database, accounts: Accounts, opsctl: Opsctl, tmp_path: Any
) -> None:
    create_pair(database)
    reader = accounts.make(f"SELECT, TRIGGER ON `{database.name}`.{EXECUTIONS}")
    answer = verify_as(opsctl, reader, tmp_path, "-o", "json")
    assert answer.code == 6, answer.out
    assert unread(answer.json) == {(EXECUTIONS, "leftovers"), (ATTEMPTS, "table")}
    assert remarks(answer.json) == []


@pytest.mark.servers("mysql", "mariadb")
def test_mysql_missing_table_is_not_missing_for_who_may_not_look(
    database: Database, accounts: Accounts, opsctl: Opsctl, tmp_path: Any
) -> None:
    database.execute("CREATE TABLE elsewhere (id INT)")
    reader = accounts.make(f"SELECT ON `{database.name}`.elsewhere")
    assert verify_as(opsctl, reader, tmp_path).code == 6


@pytest.mark.servers("mysql", "mariadb")
@pytest.mark.parametrize(
    "grants",
    [
        (r"ALL ON `{wide}`.*", r"SELECT ON `{exact}`.*"),  # the server goes by the most specific entry alone
        (r"ALL ON `{upper}`.*", r"SELECT ON `{exact}`.*"),  # and tells database names by their case
        (r"SELECT ON `{exact}`.*", r"TRIGGER ON `{plain}`.ONESTEP_EXECUTIONS"),  # and table names
    ],
)
def test_mysql_trigger_hidden_from_the_account_is_unread(
    grants: tuple[str, ...], database: Database, accounts: Accounts, opsctl: Opsctl, tmp_path: Any
) -> None:
    create_pair(database)
    database.execute(
        "CREATE TABLE ONESTEP_EXECUTIONS (id INT)",
        f"CREATE TRIGGER hidden BEFORE INSERT ON {EXECUTIONS} FOR EACH ROW SET @a = 1",
    )
    name = database.name
    forms = {"wide": name[:3] + "%", "exact": name.replace("_", r"\_"), "upper": name.upper(), "plain": name}
    reader = accounts.make(*(grant.format(**forms) for grant in grants))
    answer = verify_as(opsctl, reader, tmp_path, "-o", "json")
    assert (answer.code, (EXECUTIONS, "triggers") in unread(answer.json)) == (6, True), answer.out


@pytest.mark.servers("mysql", "mariadb")
def test_mysql_right_by_a_wildcard_counts(
    database: Database, accounts: Accounts, opsctl: Opsctl, tmp_path: Any
) -> None:
    create_pair(database)
    reader = accounts.make(f"SELECT, TRIGGER ON `{database.name[:4]}%`.*")
    assert verify_as(opsctl, reader, tmp_path).code == 0


@pytest.mark.servers("mysql")
def test_mysql_partial_revokes(private_server: Callable[..., Any], opsctl: Opsctl, tmp_path: Any) -> None:
    database = Database(private_server("mysql", "--partial-revokes=ON"))
    create_pair(database)
    accounts = Accounts(database)
    everywhere = accounts.make("SELECT, TRIGGER ON *.*")
    assert verify_as(opsctl, everywhere, tmp_path).code == 0
    account = urlsplit(everywhere).username
    database.execute(f"REVOKE TRIGGER ON `{database.name}`.* FROM {account}")
    assert verify_as(opsctl, everywhere, tmp_path).code == 6
    literal = accounts.make(f"ALL ON `{database.name[:3]}%`.*", f"SELECT ON `{database.name}`.*")
    assert verify_as(opsctl, literal, tmp_path).code == 6, "a wildcard is a letter there"


@pytest.mark.servers("postgresql")
def test_postgresql_names_usage_and_delete(
    database: Database, accounts: Accounts, opsctl: Opsctl, tmp_path: Any
) -> None:
    database.execute("REVOKE ALL ON SCHEMA public FROM PUBLIC")
    file = tmp_path / "dsn"
    file.write_text(accounts.make())
    answer = opsctl("init-tables", "--yes", "--dsn-file", str(file))
    assert (answer.code, "USAGE" in answer.err, "schema public" in answer.err) == (4, True, True), answer.err
    assert opsctl.init(database).code == 0
    database.execute(f"DROP TABLE {ATTEMPTS}", f"DROP TABLE {EXECUTIONS}")
    record = "opsctl_rev_onestep_executions_onestep_execution_attempts"
    file.write_text(accounts.make("CREATE, USAGE ON SCHEMA public", f"SELECT, INSERT ON {record}"))
    answer = opsctl("init-tables", "--yes", "--dsn-file", str(file))
    assert (answer.code, f"DELETE on {record}" in answer.err) == (4, True), answer.err


@pytest.mark.servers("postgresql")
def test_postgresql_needs_no_right_on_the_tables(
    database: Database, accounts: Accounts, opsctl: Opsctl, tmp_path: Any
) -> None:
    """pg_catalog is open to every role, and has what information_schema hides from one with SELECT only."""
    create_pair(database)
    for grants in ((), (f"SELECT ON {EXECUTIONS}, {ATTEMPTS}",)):
        answer = verify_as(opsctl, accounts.make(*grants), tmp_path, "-o", "json")
        assert (answer.code, answer.json["verdict"], answer.json["unread"]) == (0, "match", []), answer.out
    database.execute(f"ALTER TABLE {ATTEMPTS} DROP CONSTRAINT ck_onestep_attempt_status")
    answer = verify_as(opsctl, accounts.make(), tmp_path)
    assert (answer.code, "ck_onestep_attempt_status" in answer.out) == (1, True)


@pytest.mark.servers("postgresql")
def test_postgresql_schema_that_may_not_be_used_is_unread_not_missing(
    database: Database, accounts: Accounts, opsctl: Opsctl, tmp_path: Any
) -> None:
    database.execute("CREATE SCHEMA app", f"ALTER DATABASE {database.name} SET search_path = app")
    database.close()
    create_pair(database)
    answer = verify_as(opsctl, accounts.make(), tmp_path, "-o", "json")
    assert answer.code == 6, answer.out
    assert "USAGE on schema app" in answer.json["unread"][0]["reason"]
    assert verify_as(opsctl, accounts.make("USAGE ON SCHEMA app"), tmp_path).code == 0


@pytest.mark.servers("mysql", "mariadb")
@pytest.mark.parametrize("withheld", [None, "CREATE", "REFERENCES", "SELECT", "INSERT"])
def test_mysql_init_tables_names_the_missing_right(
    withheld: str | None, database: Database, accounts: Accounts, opsctl: Opsctl, tmp_path: Any
) -> None:
    rights = [right for right in ("CREATE", "REFERENCES", "SELECT", "INSERT") if right != withheld]
    file = tmp_path / "dsn"
    file.write_text(accounts.make(f"{', '.join(rights)} ON `{database.name}`.*"))
    answer = opsctl("init-tables", "--yes", "--dsn-file", str(file))
    if withheld is None:
        assert answer.code == 0, answer.err
        assert opsctl.verify(database).code == 0
        return
    assert (answer.code, withheld in answer.err) == (4, True), answer.err
    assert database.execute("SHOW TABLES") in ([], ()), "nothing half done"
    assert PASSWORD not in answer.err


@pytest.mark.servers("postgresql")
@pytest.mark.parametrize("withheld", [None, "CREATE", "USAGE", "REFERENCES"])
def test_postgresql_init_tables_names_the_missing_right(
    withheld: str | None, database: Database, accounts: Accounts, opsctl: Opsctl, tmp_path: Any
) -> None:
    database.execute("REVOKE ALL ON SCHEMA public FROM PUBLIC")
    grants = [f"{right} ON SCHEMA public" for right in ("CREATE", "USAGE") if right != withheld]
    if withheld == "REFERENCES":  # the half that is there belongs to somebody else
        create_pair(database)
        database.execute(f"DROP TABLE {ATTEMPTS}")
        grants.append(f"SELECT ON {EXECUTIONS}")
    file = tmp_path / "dsn"
    file.write_text(accounts.make(*grants))
    answer = opsctl("init-tables", "--yes", "--schema", "public", "--dsn-file", str(file))
    if withheld is None:
        assert answer.code == 0, answer.err
        return
    assert (answer.code, withheld in answer.err) == (4, True), answer.err


def test_migration_dsn_comes_first(
    database: Database, opsctl: Opsctl, monkeypatch: pytest.MonkeyPatch, accounts: Accounts
) -> None:
    family = "POSTGRES" if database.server.family == "postgresql" else "MYSQL"
    monkeypatch.setenv(f"{family}_EXECUTION_DSN", accounts.make())
    monkeypatch.setenv(f"{family}_EXECUTION_MIGRATION_DSN", database.dsn)
    assert opsctl("init-tables", "--yes").code == 0
    assert opsctl("verify-schema").code != 0 or family == "POSTGRES", "reading uses the ordinary account"
