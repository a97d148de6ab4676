"""opsctl in the background under an account of its own, what it must say when it fails, and what it leaves behind."""

from __future__ import annotations

import contextlib
import re
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from processes import clean_environment
from servers import Database, Server

#: What a process needs to start, and a machine to notice, beyond the limit that it was given.
MARGIN_S = 3.0

OPSCTL = Path(sys.executable).parent / "opsctl"
COMMANDS = (("verify-schema",), ("init-tables", "--yes"))


@dataclass(frozen=True)
class Ended:
    """How an opsctl ended, what it wrote, and how long it took."""

    code: int
    out: str
    err: str
    took_s: float

    def lines(self) -> list[str]:
        """stderr without warnings."""
        return [line for line in self.err.splitlines() if not line.startswith("opsctl: warning:")]

    def failed(self, code: int, cause: str = "", remedy: str = "", *, within_s: float | None = None) -> Ended:
        """Assert this exit code, one line of cause and one of remedy that hold these patterns, and the time."""
        assert self.code == code, self
        # Progress and the audit record of a change come before; the error itself is the last two lines.
        lines = self.lines()
        assert len(lines) >= 2, self
        first, second = lines[-2:]
        assert first.startswith("opsctl: "), self
        assert second.startswith("  "), self
        assert second.strip(), self
        for line in lines[:-2]:
            assert not line.startswith(("opsctl: ", "  ")), self
        assert re.search(cause, first, re.IGNORECASE), (cause, self)
        assert re.search(remedy, second, re.IGNORECASE), (remedy, self)
        assert "Traceback" not in self.err, self
        if within_s is not None and self.took_s > within_s + MARGIN_S:
            # Late: because of opsctl, or is this machine so busy? Then the least that opsctl can do takes long as well.
            least_s = least_time_s()
            assert self.took_s < within_s + MARGIN_S + 4 * least_s, (least_s, self)
        return self


def least_time_s() -> float:
    """How long opsctl takes here and now to say that an option is wrong."""
    started = time.monotonic()
    subprocess.run([OPSCTL, "verify-schema", "--nosuch"], capture_output=True, check=False)
    return time.monotonic() - started


class Running:
    """An opsctl that runs."""

    def __init__(self, argv: Sequence[object], home: Path, env: dict[str, str]) -> None:
        self._started = time.monotonic()
        self.process = subprocess.Popen(
            [str(part) for part in argv],
            env=clean_environment(home, env),
            cwd=home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def end(self, *, within_s: float = 30.0) -> Ended:
        """Wait for its end; it fails the test not to come within `within_s` of now."""
        try:
            out, err = self.process.communicate(timeout=within_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            out, err = self.process.communicate()
            pytest.fail(f"opsctl did not end within {within_s:g} s:\n{out}\n{err}")
        return Ended(self.process.returncode, out, err, time.monotonic() - self._started)


class Opsctl:
    """Starts the real opsctl with an account's DSN in OPSCTL_DSN; remembers everything it wrote."""

    def __init__(self, home: Path) -> None:
        self.program = OPSCTL
        self.home = home
        self.running: list[Running] = []

    def start(self, dsn: str | None, *args: object, env: dict[str, str] | None = None) -> Running:
        environment = dict(env or {}) | ({"OPSCTL_DSN": dsn} if dsn is not None else {})
        running = Running([self.program, *args], self.home, environment)
        self.running.append(running)
        return running

    def __call__(
        self, dsn: str | None, *args: object, env: dict[str, str] | None = None, within_s: float = 30.0
    ) -> Ended:
        return self.start(dsn, *args, env=env).end(within_s=within_s)

    def stop(self) -> None:
        for running in self.running:
            if running.process.poll() is None:
                running.process.kill()
                running.process.communicate()


@dataclass
class Account:
    """A login of its own, so that what the server shows of it is opsctl's; all rights on one database."""

    database: Database
    user: str
    password: str
    _admin: Any = field(default=None, repr=False)

    @property
    def server(self) -> Server:
        return self.database.server

    def dsn(
        self,
        options: str = "",
        *,
        port: int | None = None,
        host: str | None = None,
        user: str | None = None,
        password: str | None = None,
        database: str | None = None,
    ) -> str:
        """The DSN of this account, or with some of it replaced."""
        login = quote(user or self.user, safe="")
        secret = quote(self.password if password is None else password, safe="")
        place = f"{host or self.server.host}:{port or self.server.port}"
        name = self.database.name if database is None else database
        return f"{self.server.family}://{login}:{secret}@{place}/{name}{options and '?'}{options}"

    def clear_dsn(self, port: int) -> str:
        """The DSN that leads through a proxy on `port` which is to read along: without TLS."""
        options = "sslmode=disable" if self.server.family == "postgresql" else "ssl_disabled=true"
        return self.dsn(options, port=port)

    def sessions(self) -> list[tuple[Any, ...]]:
        """Its sessions on the server: id, state, statement."""
        if self.server.family == "postgresql":
            sql = (
                "SELECT pid, concat_ws(' ', state, wait_event_type, wait_event), query FROM pg_stat_activity"
                f" WHERE usename = '{self.user}'"
            )
        else:
            sql = f"SELECT id, state, info FROM information_schema.processlist WHERE user = '{self.user}'"
        return self.database.execute(sql)

    def waits(self) -> bool:
        """Whether one of its sessions waits for a lock."""
        return any(re.search(r"wait|lock", str(state), re.IGNORECASE) for _, state, _ in self._active())

    def _active(self) -> list[tuple[Any, ...]]:
        if self.server.family == "postgresql":
            return [row for row in self.sessions() if "active Lock" in row[1]]
        return [row for row in self.sessions() if row[2]]

    def gone(self, within_s: float = 3.0) -> None:
        """Assert that nothing of it is left on the server."""
        wait_until(lambda: not self.sessions(), within_s, lambda: f"left on the server: {self.sessions()}")

    def tables(self) -> set[str]:
        """The tables of its database."""
        schema = "public" if self.server.family == "postgresql" else self.database.name
        sql = f"SELECT table_name FROM information_schema.tables WHERE table_schema = '{schema}'"
        return {name for (name,) in self.database.execute(sql)}

    def terminate(self, session: int) -> None:
        """End one of its sessions, as an administrator would."""
        kill = "SELECT pg_terminate_backend({})" if self.server.family == "postgresql" else "KILL {}"
        self.database.execute(kill.format(session))

    def create(self) -> None:
        literal = self.password.replace("'", "''")
        if self.server.family == "postgresql":
            self.database.execute(
                f"CREATE ROLE {self.user} LOGIN PASSWORD '{literal}'",
                f"ALTER DATABASE {self.database.name} OWNER TO {self.user}",
            )
            return
        literal = literal.replace("\\", "\\\\")
        self.database.execute(
            f"CREATE USER '{self.user}'@'%' IDENTIFIED BY '{literal}'",
            f"GRANT ALL ON `{self.database.name}`.* TO '{self.user}'@'%'",
        )

    def drop(self) -> None:
        if self.server.family != "postgresql":
            self.database.execute(f"DROP USER IF EXISTS '{self.user}'@'%'")
            return
        self.database.close()
        self.database.execute(
            f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{self.user}'",
            f"REASSIGN OWNED BY {self.user} TO CURRENT_USER",
            f"DROP OWNED BY {self.user}",
            f"DROP ROLE {self.user}",
        )


def wait_until(
    holds: Callable[[], object], within_s: float, otherwise: Callable[[], str] | str = "it never came"
) -> None:
    """Poll until `holds` or fail with `otherwise`."""
    deadline = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > deadline:
            pytest.fail(otherwise if isinstance(otherwise, str) else otherwise())
        time.sleep(0.02)


def forms_of(password: str) -> set[str]:
    """The ways in which a password could show in a text."""
    forms = {password, quote(password, safe=""), quote(password), quote_plus(password), repr(password)[1:-1]}
    return forms | {ascii(password)[1:-1], password.replace("'", "''"), password.replace("\\", "\\\\")}


def assert_secret(password: str, *texts: str) -> None:
    """Assert that `password` is in none of `texts` in any form."""
    for text in texts:
        for form in forms_of(password):
            assert form not in text, f"the password shows as {form!r}"


def make_account(database: Database, password: str | None = None) -> Account:
    made = Account(database, f"o_{secrets.token_hex(5)}", password or f"pw{secrets.token_hex(8)}")
    made.create()
    return made


@contextlib.contextmanager
def account_on(server: Server, password: str | None = None) -> Iterator[Account]:
    """An account with a database on a private server; both go with the server, which may be dead by then."""
    database = Database(server)
    try:
        yield make_account(database, password)
    finally:
        database.close()


@contextlib.contextmanager
def settings(database: Database, **values: object) -> Iterator[None]:
    """MySQL and MariaDB: these global variables, as they were before afterwards."""
    before = {}
    try:
        for name, value in values.items():
            before[name] = database.execute(f"SELECT @@GLOBAL.{name}")[0][0]
            database.execute(f"SET GLOBAL {name} = {_literal(value)}")
        yield
    finally:
        for name, value in before.items():
            database.execute(f"SET GLOBAL {name} = {_literal(value)}")


def _literal(value: object) -> str:
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
    return str(value)


def run_all(calls: list[Callable[[], Ended]]) -> list[Ended]:
    """Run them side by side: most of them only wait."""
    with ThreadPoolExecutor(4) as threads:
        return [future.result() for future in [threads.submit(call) for call in calls]]
