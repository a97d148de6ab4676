"""One running server: where it listens, what it is, how to stop, kill and restart it."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from .identify import NO_ANSWER, Address, identify

PRODUCTS = {
    "mysql": "MySQL",
    "mariadb": "MariaDB",
    "postgresql": "PostgreSQL",
    "postgresql-newest": "PostgreSQL",
    "redis": "Redis",
}
NAMES = tuple(PRODUCTS)

RECIPES = Path(__file__).parent
# A first start fetches and unpacks the server; later ones take a second.
FIRST_START_TIMEOUT_S = 900.0
STOP_TIMEOUT_S = 30.0


class ServerError(Exception):
    """A server cannot be started, reached, or is not what its name says."""


@dataclass
class Server:
    """A server that answers. `directory`, `pid`, stop, start and kill are for servers started here only."""

    name: str
    dsn: str
    product: str = ""
    version: str = ""
    directory: Path | None = None
    extra_args: tuple[str, ...] = ()
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def host(self) -> str:
        return self.address.host

    @property
    def port(self) -> int:
        return self.address.port

    @property
    def address(self) -> Address:
        defaults = {"postgresql": 5432, "redis": 6379, "mysql": 3306}
        return Address.of(self.dsn, defaults[self.family])

    @property
    def family(self) -> str:
        """The protocol spoken: mysql (MariaDB too), postgresql or redis."""
        return {"mysql": "mysql", "mariadb": "mysql", "redis": "redis"}.get(self.name, "postgresql")

    @property
    def pid(self) -> int:
        return self._own_process().pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def bin(self, program: str) -> list[str]:
        """The argv to start a client program of this very server: mysqldump, mariadb, psql, pg_dump …"""
        if self.directory is None:
            found = shutil.which(program)
        else:
            found = shutil.which(program, path=(self.directory / "programs").read_text().strip())
        if found is None:
            raise ServerError(f"{self.name}: its client program {program} is not on this machine")
        return [found]

    def log(self) -> str:
        """What the server wrote so far."""
        assert self.directory is not None, f"{self.name} was not started here"
        return (self.directory / "log").read_text(errors="replace")

    def start(self, timeout_s: float = FIRST_START_TIMEOUT_S) -> None:
        """Start it (again, with the same data, port and options) and wait until it answers."""
        assert self.directory is not None, f"{self.name} was not started here"
        assert not self.running, f"{self.name} runs already"
        with (self.directory / "log").open("ab") as log:
            # Its own session: Ctrl-C in the terminal is for pytest, which then stops the servers.
            self._process = subprocess.Popen(
                [str(RECIPES / self.name), str(self.directory), str(self.port), *self.extra_args],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                self.identify()
            except NO_ANSWER as error:
                if (code := self._process.poll()) is not None:
                    raise ServerError(f"{self.name} ended with {code}:\n{_tail(self.log())}") from error
                if time.monotonic() > deadline:
                    self.kill()
                    raise ServerError(f"{self.name} not ready in {timeout_s:g} s:\n{_tail(self.log())}") from error
                time.sleep(0.05)
            else:
                if self._process.poll() is not None:
                    raise ServerError(f"{self.name}: another server answers on port {self.port}\n{_tail(self.log())}")
                _check_product(self, f"the recipe {self.name}")
                return

    def stop(self) -> None:
        """Shut it down in order; sessions are cut. Does nothing when it does not run."""
        process = self._own_process()
        # PostgreSQL waits for its clients on SIGTERM
        process.send_signal(signal.SIGINT if self.family == "postgresql" else signal.SIGTERM)
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise ServerError(f"{self.name} did not stop in {STOP_TIMEOUT_S:g} s") from None

    def kill(self) -> None:
        """SIGKILL, its helper processes too, as a crash of the machine would; waits until all are gone."""
        process = self._own_process()
        helpers = _children(process.pid)
        # The recipe may still be fetching or preparing, in processes of its own in its group.
        for kill, pid in ((os.killpg, process.pid), *((os.kill, helper) for helper in helpers)):
            try:
                kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        process.wait()
        deadline = time.monotonic() + STOP_TIMEOUT_S
        while any(_alive(helper) for helper in helpers) and time.monotonic() < deadline:
            time.sleep(0.01)

    def discard(self) -> None:
        """End it at once if it runs; its data is not needed any more."""
        if self.running and self.family == "postgresql":
            # immediate shutdown: as quick as SIGKILL, but it gives its System V shared memory back
            self._own_process().send_signal(signal.SIGQUIT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._own_process().wait(5)
        if self.running:
            self.kill()

    def identify(self) -> None:
        """Ask the server for its product and version; raises the driver's error when it does not answer."""
        self.product, self.version = identify(self.family, self.dsn)

    def _own_process(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise ServerError(f"{self.name} was given by a DSN; it is not ours to stop")
        return self._process

    def __str__(self) -> str:
        return f"{self.product} {self.version} ({self.host}:{self.port})"


def local_server(name: str, directory: Path, extra_args: tuple[str, ...] = ()) -> Server:
    """A server of this name, not started yet, with its data in `directory`.

    Under root PostgreSQL runs as another user: `directory` must be one that everybody can reach.
    """
    directory.mkdir(parents=True, exist_ok=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = Server(name, "", directory=directory, extra_args=tuple(extra_args))
    server.dsn = {
        "postgresql": f"postgresql://postgres@127.0.0.1:{port}/postgres",
        "mysql": f"mysql://root@127.0.0.1:{port}/",
        "redis": f"redis://127.0.0.1:{port}/0",
    }[server.family]
    return server


def start_server(name: str, directory: Path, extra_args: tuple[str, ...] = ()) -> Server:
    """Start a server of this name with its data in `directory`, and with these options for the server."""
    server = local_server(name, directory, extra_args)
    server.start()
    return server


def given_server(name: str, environ: Mapping[str, str] = os.environ) -> Server | None:
    """The server that OPSCTL_TEST_<NAME>_DSN names, or None; it must be the product that the name says."""
    dsn = environ.get(variable_of(name))
    if not dsn:
        return None
    scheme, _, rest = dsn.partition("://")
    server = Server(name, f"{scheme.partition('+')[0]}://{rest}")
    try:
        server.identify()
    except NO_ANSWER as error:
        raise ServerError(f"{variable_of(name)}: {error}") from error
    _check_product(server, variable_of(name))
    return server


def variable_of(name: str) -> str:
    """The environment variable that names a server to use instead of starting one."""
    return f"OPSCTL_TEST_{name.upper().replace('-', '_')}_DSN"


def _check_product(server: Server, source: str) -> None:
    if server.product != PRODUCTS[server.name]:
        raise ServerError(f"{source} leads to {server.product} {server.version}, not to {PRODUCTS[server.name]}")


def _children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _alive(pid: int) -> bool:
    """False for a zombie too: nobody may be there to reap what a killed server leaves."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _tail(text: str, lines: int = 20) -> str:
    return "\n".join(text.splitlines()[-lines:])
