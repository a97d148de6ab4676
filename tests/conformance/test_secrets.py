"""No password in any form in what any command writes, whether it succeeds or fails."""

from __future__ import annotations

import json
import logging
import re
import secrets
import shlex
import subprocess
from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import click
import pytest
from faults.harness import OPSCTL, Account, forms_of
from logins import accounts_on
from pairs import EXECUTIONS, Answer, Opsctl, create_pair
from processes import clean_environment
from servers import Server

from opsctl.cli import options
from opsctl.cli.main import cli
from opsctl.config import FORMATS, KEYS

pytestmark = pytest.mark.slow

#: How each command is run so that it succeeds on a pair of tables. A new command fails a test until it stands here.
ARGUMENTS = {
    "init-tables": ["--yes"],
    "verify-schema": [],
    "query list": [],
    "query show": ["status-counts"],
    "query run": ["status-counts"],
    "grants sql": ["--role", "runtime", "--to", "app"],
    "tune measure": [],
    "tune advise": [],
    "tune apply": ["--only", "finished", "--no-measure", "--yes", "--retry-for", "1"],
    "tune revert": ["--yes", "--retry-for", "1"],
    "config show": ["--origin"],
    "completion": ["bash"],
}


def leaves(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        yield " ".join(path), command
        return
    with click.Context(command) as context:
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from leaves(found, (*path, name))


COMMANDS = dict(leaves(cli))
DATABASE_COMMANDS = [name for name, command in COMMANDS.items() if any("--dsn" in one.opts for one in command.params)]


def takes(name: str, option: str) -> bool:
    return any(option in parameter.opts for parameter in COMMANDS[name].params)


def test_every_command_is_here() -> None:
    assert set(ARGUMENTS) == set(COMMANDS), "say in ARGUMENTS how a new command is run"


def new_password() -> str:
    return f"Zq{secrets.token_hex(4)}@:/%#?'\"\\ {{é}}"


@lru_cache
def all_forms(password: str) -> frozenset[str]:
    """The password as any text could hold it."""
    forms = forms_of(password) | {json.dumps(password)[1:-1], json.dumps(password, ensure_ascii=False)[1:-1]}
    forms |= {shlex.quote(password)[1:-1], b64encode(password.encode()).decode().rstrip("=")}
    return frozenset(forms | {re.sub("%..", lambda code: code[0].lower(), form) for form in forms} | {password[:10]})


@dataclass
class Watch:
    """Runs opsctl in a directory of its own and looks for passwords in all that comes out, logs and files too."""

    opsctl: Opsctl
    directory: Path
    caplog: pytest.LogCaptureFixture
    setenv: Callable[[str, str], None]
    passwords: list[str] = field(default_factory=list)
    _given: dict[Path, bytes] = field(default_factory=dict)

    def password(self) -> str:
        self.passwords.append(new_password())
        return self.passwords[-1]

    def write(self, name: str, text: str) -> str:
        """Write a file that may hold passwords."""
        path = self.directory / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o600)
        self._given[path] = path.read_bytes()
        return str(path)

    def __call__(self, *arguments: str, codes: set[int] | None = None) -> Answer:
        answer = self.opsctl(*arguments)
        self.look(answer.out, answer.err, self.caplog.text, said_by=arguments)
        assert answer.code != 70, (arguments, answer)
        assert codes is None or answer.code in codes, (arguments, answer)
        return answer

    def look(self, *texts: str, said_by: object = None) -> None:
        for path in self.directory.rglob("*"):
            if path.is_file() and self._given.get(path) != path.read_bytes():
                texts = (*texts, path.read_text(encoding="utf-8", errors="replace"))
            if path not in self._given:
                texts = (*texts, str(path))
        for password in self.passwords:
            for form in all_forms(password):
                for text in texts:
                    assert form not in text, (said_by, form, text)


@pytest.fixture
def watch(
    opsctl: Opsctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> Iterator[Watch]:
    """A directory whose configuration holds passwords of targets that nobody uses, too."""
    caplog.set_level(logging.DEBUG)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    found = Watch(opsctl, tmp_path, caplog, monkeypatch.setenv)
    other = {name: json.dumps(f"mysql://u:{encoded(found.password())}@h/d") for name in ("dsn", "migration_dsn")}
    redis = json.dumps(f"redis://:{encoded(found.password())}@h/0")
    table = f"dsn = {other['dsn']}\nmigration_dsn = {other['migration_dsn']}\nredis_url = {redis}\n"
    found.write("opsctl.toml", f"[targets.unused]\n{table}")
    found.setenv("OPSCTL_REDIS_URL", f"redis://:{encoded(found.password())}@h/0")
    yield found
    found.look(said_by="the end")


def encoded(password: str) -> str:
    return "".join(
        f"%{byte:02X}" if byte in b"@:/%#?'\"\\ {}" or byte > 127 else chr(byte) for byte in password.encode()
    )


# -- without a server ------------------------------------------------------------------------------------------------

WRONG_DSNS = [
    "mysql://app:{}@host:port/d",
    "postgresql://app:{}@h:99999/d",
    "app:{}@127.0.0.1/d",
    "oracle://app:{}@127.0.0.1:1/d",
    "mysql://app@127.0.0.1:1/d?password={}",
    "mysql://app:{}@127.0.0.1:1/d?ssl_mode=maybe",
    "mysql://app:{}@127.0.0.1:1/d?ssl_ca=/nonexistent/ca.pem",
    "mysql://app:{}@127.0.0.1:1/d?read_default_file=/nonexistent/my.cnf",
    "postgresql://app@127.0.0.1:1/d?sslmode=nosuch&sslpassword={}&password={}",
    "mysql://a:b@{}@127.0.0.1:1/d",
    "host=127.0.0.1 user=app password={}",
]


@pytest.mark.parametrize("command", [*DATABASE_COMMANDS, "config show"])
def test_dsns_that_are_wrong(command: str, watch: Watch) -> None:
    for form in WRONG_DSNS:
        password = watch.password()
        for dsn in (form.replace("{}", encoded(password)), form.replace("{}", password.replace(" ", "+"))):
            watch.setenv("OPSCTL_DSN", dsn)
            watch.setenv("OPSCTL_DSN_FILE", "")
            watch("--debug", "-v", *command.split(), *ARGUMENTS[command])
            if takes(command, "--dsn"):
                watch(*command.split(), *ARGUMENTS[command], "--debug", "--dsn", dsn)
                watch(*command.split(), *ARGUMENTS[command], "--dsn-file", dsn)
                watch(*command.split(), *ARGUMENTS[command], "--dsn-file", watch.write("x.dsn", f"{dsn}\n"))
            watch.setenv("OPSCTL_DSN", "")
            watch.setenv("OPSCTL_DSN_FILE", dsn)
            watch("--debug", *command.split(), *ARGUMENTS[command])
    watch.setenv("OPSCTL_DSN_FILE", "")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_dsn_in_the_place_of_something_else(command: str, watch: Watch) -> None:
    """Every option and argument that takes a value, and those that no command has."""
    dsn = f"mysql://app:{encoded(watch.password())}@127.0.0.1:1/d"
    run = [*command.split(), *ARGUMENTS[command]]
    for name in {flag for parameter in COMMANDS[command].params for flag in parameter.opts if flag[:2] == "--"}:
        answer = watch("--debug", *run, name, dsn)
        if name not in ("--to", "--dsn"):
            assert answer.code != 0 or "app" not in answer.out, answer
    watch(*run, "--dns", dsn, codes={2})
    watch(*run, f"--dns={dsn}", codes={2})
    watch(*run, dsn, codes={2})
    watch(*command.split()[:-1], dsn, codes={2})
    watch("--config", dsn, *run)
    watch(*command.split(), dsn)
    for name in KEYS:
        watch.setenv(KEYS[name].variable, dsn)
        watch("--debug", *run)
        watch.setenv(KEYS[name].variable, "")


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "completion"])
def test_files_that_are_broken(command: str, watch: Watch) -> None:
    password = watch.password()
    dsn = f"mysql://app:{encoded(password)}@127.0.0.1:1/d"
    for text in (
        f"dsn = {dsn}",
        f'dsn = "{dsn}',
        f'dsn = "{dsn}"\ndsn = "{dsn}"',
        f'dns = "{dsn}"',
        f'"{dsn}" = 1',
        f'target = "{dsn}"',
        f'[targets."{dsn}"]\nx = 1',
        f'targets = "{dsn}"',
        f'output = "{dsn}"\nlock_timeout = "{dsn}"',
        f'lock_timeout = "{dsn}"',
        f'dsn_file = "{dsn}"',
        f'query_path = "{dsn}"',
        f'namespace = "{dsn}"\ndsn = "{dsn}\\u0000"',
        f'dsn = "{dsn}"\nexecutions_table = "{dsn}"',
    ):
        watch("--debug", "--config", watch.write("broken.toml", text), *command.split(), *ARGUMENTS[command])
    for text in (f"password={password}", f"[client\npassword={password}", f"[client]\nport={password}"):
        watch.write(".my.cnf", text)
        watch.setenv("OPSCTL_DSN", "mysql://127.0.0.1:1/d" if "port" not in text else "mysql:///d")
        watch("--debug", *command.split(), *ARGUMENTS[command])


@pytest.mark.parametrize("command", DATABASE_COMMANDS)
def test_a_bug_that_quotes_the_dsn(command: str, watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    password = watch.password()
    dsn = f"mysql://app:{encoded(password)}@127.0.0.1:1/d"

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError(f"{dsn!r} {password!r} {password} {json.dumps(password)} {b64encode(password.encode())!r}")

    watch.setenv("OPSCTL_DSN", dsn)
    monkeypatch.setattr(options, "Pair", broken)
    answer = watch.opsctl("--debug", *command.split(), *ARGUMENTS[command])
    assert answer.code == 70
    assert "Traceback" in answer.err
    watch.look(answer.out, answer.err)


# -- with one --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def accounts(server: Server) -> Iterator[list[Account]]:
    """One that may do everything on its database, which is empty, and one that may do nothing."""
    with accounts_on(server, new_password(), new_password()) as made:
        owner, stranger = made.values()
        if server.family == "postgresql":
            owner.database.execute(
                f"ALTER DATABASE {owner.database.name} OWNER TO {owner.user}",
                "REVOKE ALL ON SCHEMA public FROM PUBLIC",
                f"REVOKE ALL ON SCHEMA public FROM {stranger.user}",
            )
        else:
            owner.database.execute(
                f"REVOKE ALL ON `{owner.database.name}`.* FROM '{stranger.user}'@'%'",
                f"CREATE TABLE `{owner.database.name}`.other (id INT)",
                f"GRANT SELECT ON `{owner.database.name}`.other TO '{stranger.user}'@'%'",
            )
        yield [owner, stranger]


def variants(command: str, watch: Watch) -> Iterator[list[str]]:
    """The command as it may be written: each format, quiet, verbose, with an audit file."""
    run = [*command.split(), *ARGUMENTS[command]]
    yield ["--debug", "-v", *run]
    if takes(command, "--output"):
        yield from (["--debug", *run, "-o", form] for form in FORMATS)
    if takes(command, "--dry-run"):
        yield [*run, "--dry-run", "-v"]
    if takes(command, "--audit-file"):
        yield ["--debug", "-v", *run, "--audit-file", str(watch.directory / "audit.jsonl")]


def reset(account: Account, *, tables: bool) -> None:
    database = account.database
    for name in account.tables() - {"other"}:
        cascade = " CASCADE" if account.server.family == "postgresql" else ""
        if account.server.family == "mysql":
            database.execute("SET SESSION foreign_key_checks = 0")
        database.execute(f"DROP TABLE {name}{cascade}")
    if tables:
        create_pair(database)
        if account.server.family == "postgresql":
            database.execute(
                *(f"ALTER TABLE {name} OWNER TO {account.user}" for name in sorted(account.tables() - {"other"}))
            )


@pytest.mark.parametrize("command", DATABASE_COMMANDS)
def test_what_succeeds_and_what_the_server_refuses(command: str, watch: Watch, accounts: list[Account]) -> None:
    owner, stranger = accounts
    watch.passwords += [owner.password, stranger.password]
    wrong = watch.password()
    reset(owner, tables=False)
    watch.setenv("OPSCTL_DSN", owner.dsn())
    for run in variants(command, watch):  # tables missing
        watch(*run, codes={0, 1, 2, 4})
        reset(owner, tables=False)
    reset(owner, tables=True)
    for run in variants(command, watch):
        watch(*run, codes={0})
    failing = {
        "password": (owner.dsn(password=wrong), 3),
        "port": (owner.dsn(port=1), 3),
        "host": (owner.dsn(host="nosuch.invalid"), 3),
        "database": (owner.dsn(database="nosuch_database"), 3),
        "user": (owner.dsn(user="nosuch_user"), 3),
        "rights": (stranger.dsn(), None),
    }
    for name, (dsn, code) in failing.items():
        watch.setenv("OPSCTL_DSN", dsn)
        codes = {0, 1, 2, 4, 6} if code is None else {code}
        for run in list(variants(command, watch))[:: 1 if name in ("password", "rights") else 4]:
            watch(*run, "--connect-timeout", "2", codes=codes)
    # a lock that does not go away, and an answer that takes too long
    watch.setenv("OPSCTL_DSN", owner.dsn())
    with locked(owner):
        for run in list(variants(command, watch))[::5]:
            limits = ["--lock-timeout", "0.1", "--statement-timeout", "1"]
            watch(*run, *limits, codes={0, 1, 3, 4, 6})


class locked:  # noqa: N801 (reads as a statement)
    """The pair's table, locked by another session."""

    def __init__(self, account: Account) -> None:
        self._connection = account.database.connect()
        self._family = account.server.family

    def __enter__(self) -> None:
        cursor = self._connection.cursor()
        if self._family == "postgresql":
            cursor.execute("BEGIN")
            cursor.execute(f"LOCK TABLE {EXECUTIONS} IN ACCESS EXCLUSIVE MODE")
        else:
            cursor.execute(f"LOCK TABLES {EXECUTIONS} WRITE")

    def __exit__(self, *_: object) -> None:
        self._connection.close()


@pytest.mark.parametrize("refused", ["SELECT '{}'", "SELECT * FROM t WHERE a = '{}' AND"])
def test_a_query_that_the_server_quotes_in_its_error(refused: str, watch: Watch, accounts: list[Account]) -> None:
    owner = accounts[0]
    watch.passwords.append(owner.password)
    watch.setenv("OPSCTL_DSN", owner.dsn())
    (watch.directory / "q").mkdir()
    quoted = owner.password.replace("\\", "\\\\").replace("'", "''")
    watch.write("q/own.sql", f"-- own: x\n{refused.format(quoted)} FROM\n")
    watch("--debug", "query", "run", "own", "--query-dir", str(watch.directory / "q"), codes={2, 4})


@pytest.mark.parametrize("right", [True, False])
def test_passwords_of_the_clients_own_files(watch: Watch, accounts: list[Account], right: bool) -> None:
    owner = accounts[0]
    reset(owner, tables=True)
    password = owner.password if right else watch.password()
    watch.passwords.append(owner.password)
    bare = owner.dsn().replace(f":{encoded(owner.password)}@", "@")
    assert owner.user in bare
    if owner.server.family == "postgresql":
        escaped = password.replace("\\", "\\\\").replace(":", "\\:")
        watch.setenv("PGPASSFILE", watch.write("pgpass", f"*:*:*:*:{escaped}\n"))
    else:
        escaped = password.replace("\\", "\\\\").replace('"', '\\"')
        watch.write(".my.cnf", f'[client]\nuser={owner.user}\npassword="{escaped}"\n')
    watch.setenv("OPSCTL_DSN", bare)
    for command in DATABASE_COMMANDS:
        for run in list(variants(command, watch))[::3]:
            watch(*run, codes={0 if right else 3})
    watch("--debug", "config", "show", "--origin", codes={0})


def test_a_reader_that_goes_away(watch: Watch, accounts: list[Account]) -> None:
    owner = accounts[0]
    watch.passwords.append(owner.password)
    reset(owner, tables=True)
    process = subprocess.Popen(
        [OPSCTL, "--debug", "-v", "verify-schema", "-o", "json"],
        env=clean_environment(watch.directory, {"OPSCTL_DSN": owner.dsn()}),
        cwd=watch.directory,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    err = process.stderr.read()
    process.stderr.close()
    assert process.wait(30) == 141
    watch.look(err)
