"""A password of every awkward character logs in by every way of giving it, and appears nowhere that opsctl writes."""

from __future__ import annotations

import base64
import json
import secrets
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit

import click
import pytest
from pairs import Answer, Opsctl
from servers import Database

from opsctl.cli.main import cli

pytestmark = pytest.mark.slow

PASSWORD = " @:/%#?{}'\"\\ =&;+$é€🚀%41 s3cret "


@dataclass(frozen=True)
class Account:
    """An administrator with that password; `bare` is its DSN without one."""

    name: str
    database: Database

    @property
    def bare(self) -> str:
        where = urlsplit(self.database.dsn)
        return f"{where.scheme}://{self.name}@{where.hostname}:{where.port}/{self.database.name}"

    def dsn(self, password: str = PASSWORD) -> str:
        return self.bare.replace("@", f":{quote(password, safe='')}@", 1)


@pytest.fixture
def account(database: Database) -> Iterator[Account]:
    name = f"p_{secrets.token_hex(4)}"
    if database.server.family == "postgresql":
        literal = "E'" + PASSWORD.replace("\\", "\\\\").replace("'", "\\'") + "'"
        # Of the members of this role our own servers want a password (tests/servers/postgresql).
        create = ["DO $$ BEGIN CREATE ROLE needs_password; EXCEPTION WHEN duplicate_object THEN NULL; END $$"]
        create += [f"CREATE ROLE {name} LOGIN SUPERUSER PASSWORD {literal}", f"GRANT needs_password TO {name}"]
        drop = f"DROP ROLE {name}"
    else:
        literal = "'" + PASSWORD.replace("\\", "\\\\").replace("'", "\\'") + "'"
        create = [f"CREATE USER {name} IDENTIFIED BY {literal}", f"GRANT ALL ON *.* TO {name} WITH GRANT OPTION"]
        drop = f"DROP USER {name}"
    # The driver would take a % in the text for a placeholder if it were given parameters; it is given none.
    database.execute(*create)
    yield Account(name, database)
    if database.server.family == "postgresql":
        database.execute(f"DROP OWNED BY {name} CASCADE")
    database.execute(drop)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Given:
    """Where a password is put, one way at a time; each returns the arguments that go with it."""

    def __init__(self, account: Account, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.account = account
        self.home = home
        self.set = monkeypatch.setenv
        self.family = account.database.server.family

    def write(self, name: str, text: str) -> str:
        path = self.home / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o600)
        return str(path)

    def dsn(self) -> list[str]:
        return ["--dsn", self.account.dsn()]

    def dsn_file(self) -> list[str]:
        return ["--dsn-file", self.write("dsn", f"{self.account.dsn()}\n")]

    def opsctl_dsn(self) -> list[str]:
        self.set("OPSCTL_DSN", self.account.dsn())
        return []

    def opsctl_dsn_file(self) -> list[str]:
        self.set("OPSCTL_DSN_FILE", self.write("dsn", self.account.dsn()))
        return []

    def migration_dsn(self) -> list[str]:
        self.set("OPSCTL_MIGRATION_DSN", self.account.dsn())
        return []

    def deployment(self) -> list[str]:
        self.set("POSTGRES_EXECUTION_DSN" if self.family == "postgresql" else "MYSQL_EXECUTION_DSN", self.account.dsn())
        return []

    def folder_file(self) -> list[str]:
        self.write("opsctl.toml", f"dsn = {json.dumps(self.account.dsn())}\n")
        return []

    def target(self) -> list[str]:
        self.write("opsctl.toml", f"[targets.a]\ndsn = '''{self.account.dsn()}'''\n")
        return ["--target", "a"]

    def target_file(self) -> list[str]:
        self.write("a.dsn", self.account.dsn())
        self.write("opsctl.toml", '[targets.a]\nmigration_dsn_file = "a.dsn"\ndsn_file = "a.dsn"\n')
        return ["--target", "a"]

    def client_file(self) -> list[str]:
        """~/.my.cnf, quoted as the mysql client wants it, or ~/.pgpass."""
        if self.family == "postgresql":
            escaped = PASSWORD.replace("\\", "\\\\").replace(":", "\\:")
            self.set("PGPASSFILE", self.write(".pgpass", f"*:*:*:{self.account.name}:{escaped}\n"))
        else:
            escaped = PASSWORD.replace("\\", "\\\\").replace('"', '\\"')
            self.write(".my.cnf", f'[client]\nuser = {self.account.name}\npassword = "{escaped}"\n')
        return ["--dsn", self.account.bare]

    def client_variable(self) -> list[str]:
        """PGPASSWORD and a service file; on MySQL the file that the DSN names."""
        where = urlsplit(self.account.bare)
        if self.family == "postgresql":
            self.set("PGPASSWORD", PASSWORD)
            lines = [
                "[a]",
                f"host={where.hostname}",
                f"port={where.port}",
                f"user={self.account.name}",
                f"dbname={self.account.database.name}",
            ]
            self.set("PGSERVICEFILE", self.write("services", "\n".join(lines) + "\n"))
            return ["--dsn", "postgresql:///?service=a"]
        escaped = PASSWORD.replace("\\", "\\\\").replace("'", "\\'")
        text = f"[client]\nhost={where.hostname}\nport={where.port}\nuser={self.account.name}\npassword='{escaped}'\n"
        path = self.write("its.cnf", text)
        return ["--dsn", f"mysql:///{self.account.database.name}?read_default_file={path}"]


WAYS = [name for name in vars(Given) if not name.startswith("_") and name != "write"]


def assert_kept(answer: Answer, *files: Path) -> None:
    """No form of the password is in what was written."""
    texts = [answer.out, answer.err, *(path.read_text(encoding="utf-8") for path in files if path.exists())]
    core = PASSWORD.strip()
    forms = {
        "s3cret",
        core,
        quote(PASSWORD, safe=""),
        quote(core),
        shlex.quote(core),
        base64.b64encode(PASSWORD.encode()).decode(),
        base64.b64encode(core.encode()).decode(),
    }
    for text in texts:
        for form in forms:
            assert form not in text, (form, text)


@pytest.mark.parametrize("way", WAYS)
def test_it_logs_in(way: str, account: Account, home: Path, opsctl: Opsctl, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = getattr(Given(account, home, monkeypatch), way)()
    audit = home / "audit.jsonl"
    made = opsctl("--debug", "-v", "init-tables", "--yes", "--audit-file", str(audit), *arguments)
    assert made.code == 0, made
    assert_kept(made, audit)
    if way == "migration_dsn":  # which is for commands that change the schema alone
        assert opsctl("verify-schema", *arguments).code == 2
        return
    for command in (["verify-schema", "-o", "json"], ["query", "run", "sizes", "-o", "csv"]):
        looked = opsctl("--debug", "-v", *command, *arguments)
        assert looked.code == 0, looked
        assert_kept(looked)


def commands() -> Iterator[list[str]]:
    """Every command that opsctl has, with what it needs to run."""
    needs = {
        "query show": ["sizes"],
        "query run": ["sizes"],
        "grants sql": ["--role", "runtime", "--to", "someone"],
        "completion": ["bash"],
        "init-tables": ["--yes"],
    }

    def below(group: click.Group, path: list[str]) -> Iterator[list[str]]:
        for name in group.list_commands(click.Context(group)):
            command = group.get_command(click.Context(group), name)
            if isinstance(command, click.Group):
                yield from below(command, [*path, name])
            else:
                yield [*path, name, *needs.get(" ".join([*path, name]), [])]

    yield from below(cli, [])


def environments(account: Account, home: Path) -> dict[str, Callable[[pytest.MonkeyPatch], list[str]]]:
    """What can go wrong, or right, with that password about: each sets it up and returns further arguments."""
    where = urlsplit(account.bare)
    closed = account.dsn().replace(f":{where.port}/", ":1/")

    def variable(dsn: str) -> Callable[[pytest.MonkeyPatch], list[str]]:
        def prepare(patch: pytest.MonkeyPatch) -> list[str]:
            patch.setenv("OPSCTL_DSN", dsn)
            return []

        return prepare

    def broken_file(text: str) -> Callable[[pytest.MonkeyPatch], list[str]]:
        def prepare(patch: pytest.MonkeyPatch) -> list[str]:
            (home / "broken.toml").write_text(text, encoding="utf-8")
            patch.setenv("OPSCTL_CONFIG", str(home / "broken.toml"))
            return []

        return prepare

    return {
        "works": variable(account.dsn()),
        "wrong password": variable(account.dsn(PASSWORD + "x")),
        "closed port": variable(closed),
        "no such database": variable(account.dsn().replace(account.database.name, "no_such_database")),
        "not escaped": variable(account.bare.replace("@", f":{PASSWORD}@", 1)),
        "no scheme": variable(account.dsn().partition("://")[2]),
        "another product": variable("oracle://" + account.dsn().partition("://")[2]),
        "a bad option": variable(account.dsn() + "?ssl_mode=" + quote(PASSWORD)),
        "an unclosed string": broken_file(f'dsn = "{account.dsn()}\n'),
        "an unknown key": broken_file(f"dns = {json.dumps(account.dsn())}\n"),
        "another target's": broken_file(f"[targets.b]\ndsn = {json.dumps(account.dsn())}\n"),
        "a redis": broken_file(f"redis_url = {json.dumps('redis://u:' + quote(PASSWORD, safe='') + '@h/0')}\n"),
    }


def test_it_appears_nowhere(account: Account, home: Path, opsctl: Opsctl) -> None:
    audit = home / "audit.jsonl"
    codes: dict[str, set[int]] = {}
    for name, prepare in environments(account, home).items():
        for command in commands():
            for form in ([], ["-o", "json"]) if command[0] != "completion" else ([],):
                with pytest.MonkeyPatch.context() as patch:
                    patch.setenv("OPSCTL_AUDIT_FILE", str(audit))
                    arguments = prepare(patch)
                    answer = opsctl("--debug", "-v", *command, *arguments, *form)
                assert answer.code != 70, (name, command, answer)
                assert_kept(answer, audit)
                codes.setdefault(name, set()).add(answer.code)
    assert codes["works"] >= {0}
    assert codes["wrong password"] >= {3}
    assert codes["closed port"] >= {3}
    for name in ("not escaped", "no scheme", "another product", "an unclosed string", "an unknown key"):
        assert 2 in codes[name], (name, codes[name])


@pytest.mark.parametrize("refused", ["SELECT '{}'", "SELECT {}", "SELECT * FROM t WHERE a = '{}' AND"])
def test_a_servers_words_about_a_statement_do_not_show_it(
    refused: str, account: Account, home: Path, opsctl: Opsctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query that has the password in it, which the server quotes in its error."""
    (home / "q").mkdir()
    statement = refused.format(PASSWORD.replace("\\", "\\\\").replace("'", "''")) + " FROM"
    (home / "q/own.sql").write_text(f"-- own: x\n{statement}\n", encoding="utf-8")
    monkeypatch.setenv("OPSCTL_DSN", account.dsn())
    answer = opsctl("--debug", "query", "run", "own", "--query-dir", str(home / "q"))
    assert answer.code in (2, 4), answer
    assert_kept(answer)
