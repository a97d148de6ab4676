"""A password of any characters logs in, whichever way it is given, on every server; and it shows nowhere."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest
from faults.harness import Account, assert_secret
from logins import accounts_on
from pairs import Answer, Opsctl
from servers import Server

pytestmark = pytest.mark.slow

#: All that a URL, a shell, TOML, an option file or .pgpass gives a meaning to.
NASTY = " @:/%#?{}'\"`\\&=+;$é☃ "
#: Of these what an option file takes without quotes, and a service file at the end of a line.
UNQUOTED = "b%41@:/?{}`\\b=+é☃"


@dataclass(frozen=True)
class Way:
    """A way of giving a password; `changes`: one of init-tables alone; an error `names` the place."""

    name: str
    give: Callable[[Giving], list[str]]
    changes: bool = False
    names: str = ""
    passwords: tuple[str, ...] = (NASTY, UNQUOTED)


@dataclass(frozen=True)
class Giving:
    """An account to log in as, and where to put its password: a directory that is home and current, the environment."""

    account: Account
    directory: Path
    setenv: Callable[[str, str], None]

    @property
    def dsn(self) -> str:
        """With the password; as a deployment writes it."""
        return self.account.dsn().replace("mysql://", "mysql+asyncmy://").replace("postgresql:", "postgresql+asyncpg:")

    @property
    def bare(self) -> str:
        """Without the password."""
        where = f"{self.account.server.host}:{self.account.server.port}/{self.account.database.name}"
        return f"{self.account.server.family}://{self.account.user}@{where}"

    @property
    def prefix(self) -> str:
        return "POSTGRES" if self.account.server.family == "postgresql" else "MYSQL"

    def write(self, name: str, text: str) -> str:
        path = self.directory / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o600)
        return str(path)

    def toml(self, text: str) -> None:
        self.write("given.dsn", f"{self.dsn}\n")
        self.write("opsctl.toml", text.format(dsn=json.dumps(self.dsn), bare=json.dumps(self.bare)))


def flag(giving: Giving) -> list[str]:
    return ["--dsn", giving.dsn]


def flag_file(giving: Giving) -> list[str]:
    return ["--dsn-file", giving.write("x.dsn", giving.dsn)]


def variable(name: str) -> Callable[[Giving], list[str]]:
    def give(giving: Giving) -> list[str]:
        value = giving.write("x.dsn", giving.dsn) if name.endswith("FILE") else giving.dsn
        giving.setenv(name.format(giving.prefix), value)
        return []

    return give


def toml(text: str, *arguments: str) -> Callable[[Giving], list[str]]:
    def give(giving: Giving) -> list[str]:
        giving.toml(text)
        return list(arguments)

    return give


def option_file(line: Callable[[str], str], *, named: bool = False) -> Callable[[Giving], list[str]]:
    """~/.my.cnf, or with `named` a file that the DSN names, which then has all but the database."""

    def give(giving: Giving) -> list[str]:
        account, server = giving.account, giving.account.server
        login = f"[client]\nuser = {account.user}\npassword = {line(account.password)}\n"
        if not named:
            giving.write(".my.cnf", login)
            return ["--dsn", giving.bare]
        place = f"[place]\nuser=nosuch\n{login}host = {server.host}\nport = {server.port}\n"
        path = giving.write("own.cnf", place)
        return ["--dsn", f"mysql:///{account.database.name}?read_default_file={quote(path, safe='')}"]

    return give


def double_quoted(password: str) -> str:
    return '"' + password.replace("\\", "\\\\").replace('"', '\\"') + '"'


def single_quoted(password: str) -> str:
    return "'" + password.replace("\\", "\\\\").replace("'", "\\'").replace(" ", "\\s") + "'  # the worker's"


def unquoted(password: str) -> str:
    return password.replace("\\", "\\\\")


def included(giving: Giving) -> list[str]:
    path = giving.write("login.cnf", f"[opsctl]\npassword={double_quoted(giving.account.password)}\n")
    giving.write(".my.cnf", f"[client]\npassword=wrong\n!include {path}\n")
    return ["--dsn", giving.bare]


def mysql_pwd(giving: Giving) -> list[str]:
    giving.setenv("MYSQL_PWD", giving.account.password)
    return ["--dsn", giving.bare]


def pgpassword(giving: Giving) -> list[str]:
    giving.setenv("PGPASSWORD", giving.account.password)
    return ["--dsn", giving.bare]


def all_of_libpq(giving: Giving) -> list[str]:
    account = giving.account
    for name, value in (("USER", account.user), ("PASSWORD", account.password), ("DATABASE", account.database.name)):
        giving.setenv(f"PG{name}", value)
    giving.setenv("PGHOST", account.server.host)
    giving.setenv("PGPORT", str(account.server.port))
    return ["--dsn", "postgresql://"]


def pgpass(*, option: bool) -> Callable[[Giving], list[str]]:
    def give(giving: Giving) -> list[str]:
        escaped = giving.account.password.replace("\\", "\\\\").replace(":", "\\:")
        lines = f"# of libpq\n*:1:*:*:wrong\n*:*:*:{giving.account.user}:{escaped}\n"
        path = giving.write("pgpass", lines)
        if option:
            return ["--dsn", f"{giving.bare}?passfile={quote(path, safe='')}"]
        giving.setenv("PGPASSFILE", path)
        return ["--dsn", giving.bare]

    return give


def service(*, option: bool) -> Callable[[Giving], list[str]]:
    def give(giving: Giving) -> list[str]:
        account = giving.account
        text = f"[own]\nhost={account.server.host}\nport={account.server.port}\nuser={account.user}\n"
        path = giving.write("services", f"{text}dbname={account.database.name}\npassword={account.password}\n")
        giving.setenv("PGSERVICEFILE", path)
        if option:
            return ["--dsn", "postgresql:///?service=own"]
        giving.setenv("PGSERVICE", "own")
        return ["--dsn", "postgresql://"]

    return give


def query_option(giving: Giving) -> list[str]:
    where = f"{giving.account.server.host}:{giving.account.server.port}/{giving.account.database.name}"
    login = f"user={giving.account.user}&password={quote(giving.account.password, safe='')}"
    return ["--dsn", f"postgresql://{where}?{login}"]


WAYS = [
    Way("--dsn", flag),
    Way("--dsn-file", flag_file),
    *(Way(name, variable(name)) for name in ("OPSCTL_DSN", "OPSCTL_DSN_FILE", "{}_EXECUTION_DSN")),
    *(
        Way(name, variable(name), changes=True)
        for name in ("OPSCTL_MIGRATION_DSN", "OPSCTL_MIGRATION_DSN_FILE", "{}_EXECUTION_MIGRATION_DSN")
    ),
    Way("file dsn", toml("dsn = {dsn}\n")),
    Way("file dsn_file", toml('dsn_file = "given.dsn"\n')),
    Way("target dsn", toml('[targets."a.b"]\ndsn = {dsn}\n', "--target", "a.b")),
    Way("target dsn_file", toml('target = "t"\n[targets.t]\ndsn_file = "given.dsn"\n')),
    Way(
        "target migration_dsn",
        toml("[targets.t]\ndsn = {bare}\nmigration_dsn = {dsn}\n", "--target", "t"),
        changes=True,
    ),
    Way(
        "target migration_dsn_file",
        toml('[targets.t]\ndsn = {bare}\nmigration_dsn_file = "given.dsn"\n', "--target", "t"),
        changes=True,
    ),
]
IN_MY_CNF = "password from ~/.my.cnf [client]"
MYSQL_WAYS = [
    Way("my.cnf in double quotes", option_file(double_quoted), names=IN_MY_CNF),
    Way("my.cnf in single quotes", option_file(single_quoted), names=IN_MY_CNF),
    Way("my.cnf unquoted", option_file(unquoted), names=IN_MY_CNF, passwords=(UNQUOTED,)),
    Way("my.cnf includes", included, names="login.cnf [opsctl]"),
    Way("read_default_file", option_file(double_quoted, named=True), names="own.cnf [client]"),
    Way("MYSQL_PWD", mysql_pwd, names="password from MYSQL_PWD"),
]
POSTGRESQL_WAYS = [
    Way("PGPASSWORD", pgpassword, names="password from PGPASSWORD"),
    Way("PGHOST and all others", all_of_libpq, names="password from PGPASSWORD"),
    Way("PGPASSFILE", pgpass(option=False), names="pgpass"),
    Way("?passfile=", pgpass(option=True), names="pgpass"),
    Way("PGSERVICE", service(option=False), names="PGSERVICE own", passwords=(UNQUOTED,)),
    Way("?service=", service(option=True), names="the service own", passwords=(UNQUOTED,)),
    Way("?password=", query_option, names="--dsn"),
]
each_way = pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
each_way_of_mysql = pytest.mark.parametrize("way", MYSQL_WAYS, ids=lambda way: way.name)
each_way_of_postgresql = pytest.mark.parametrize("way", POSTGRESQL_WAYS, ids=lambda way: way.name)


@pytest.fixture(scope="module")
def accounts(server: Server) -> Iterator[dict[str, Account]]:
    """An account for each password, on one database."""
    with accounts_on(server, NASTY, UNQUOTED) as made:
        yield made


@pytest.fixture
def giving(tmp_path: Path, opsctl: Opsctl, monkeypatch: pytest.MonkeyPatch) -> Callable[[Account], Giving]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    return lambda account: Giving(account, tmp_path, monkeypatch.setenv)


def run_as(opsctl: Opsctl, arguments: list[str], *, changes: bool) -> Answer:
    """Log in and read: an empty database makes exit 1 of a check, and 0 of what would create the tables."""
    command = ["init-tables", "--dry-run"] if changes else ["verify-schema"]
    answer = opsctl("-v", "--debug", *command, *arguments)
    assert answer.code == (0 if changes else 1), answer
    return answer


@dataclass
class Login:
    """Everything a test of a way needs."""

    server: Server
    accounts: dict[str, Account]
    opsctl: Opsctl
    giving: Callable[[Account], Giving]

    def succeeds(self, way: Way) -> None:
        for password in way.passwords:
            account = self.accounts[password]
            answer = run_as(self.opsctl, way.give(self.giving(account)), changes=way.changes)
            assert_secret(password, answer.out, answer.err)
            place = f"{account.user}@{self.server.host}:{self.server.port}/{account.database.name}"
            assert f"{self.server.family}://{place}" in answer.out + answer.err

    def fails(self, way: Way) -> None:
        account = self.accounts[UNQUOTED]
        wrong = Account(account.database, account.user, f"wr0ng-{UNQUOTED}")
        answer = self.opsctl("--debug", "verify-schema", *way.give(self.giving(wrong)))
        assert answer.code == 3, answer
        assert_secret(wrong.password, answer.out, answer.err)
        assert account.user in answer.err
        assert way.names in answer.err


@pytest.fixture
def login(server: Server, accounts: dict[str, Account], opsctl: Opsctl, giving: Callable[[Account], Giving]) -> Login:
    return Login(server, accounts, opsctl, giving)


@each_way
def test_a_password_logs_in(way: Way, login: Login) -> None:
    login.succeeds(way)


@pytest.mark.servers("mysql", "mariadb")
@each_way_of_mysql
def test_a_password_of_mysql_logs_in(way: Way, login: Login) -> None:
    login.succeeds(way)


@pytest.mark.servers("postgresql")
@each_way_of_postgresql
def test_a_password_of_postgresql_logs_in(way: Way, login: Login) -> None:
    login.succeeds(way)


@pytest.mark.servers("mysql", "mariadb")
@each_way_of_mysql
def test_a_wrong_password_of_mysql_names_its_place(way: Way, login: Login) -> None:
    login.fails(way)


@pytest.mark.servers("postgresql")
@each_way_of_postgresql
def test_a_wrong_password_of_postgresql_names_its_place(way: Way, login: Login) -> None:
    login.fails(way)


@pytest.mark.servers("mysql", "mariadb")
def test_the_password_of_another_user_is_not_tried(
    server: Server, accounts: dict[str, Account], opsctl: Opsctl, giving: Callable[[Account], Giving]
) -> None:
    given = giving(accounts[NASTY])
    given.write(".my.cnf", f"[client]\nuser=somebody\npassword={double_quoted(NASTY)}\n")
    answer = opsctl("verify-schema", "--dsn", given.bare)
    assert answer.code == 3
    assert "the password in ~/.my.cnf [client] is for the user somebody" in answer.err
    assert_secret(NASTY, answer.err)


@pytest.mark.servers("mysql", "mariadb")
def test_a_socket_of_my_cnf(
    server: Server, accounts: dict[str, Account], opsctl: Opsctl, giving: Callable[[Account], Giving]
) -> None:
    """Everything from the file, through the server's socket where this machine has it."""
    account = accounts[NASTY]
    ((socket,),) = account.database.execute("SELECT @@socket")
    if not Path(socket).exists():
        pytest.skip(f"{server} runs elsewhere")
    text = f"[client]\nuser={account.user}\npassword={double_quoted(NASTY)}\nsocket={socket}\nport=1\n"
    giving(account).write(".my.cnf", f"{text}database={account.database.name}\n")
    answer = run_as(opsctl, ["--dsn", "mysql://"], changes=True)
    assert f"mysql://{account.user}@/{account.database.name}?unix_socket={socket}" in answer.out
