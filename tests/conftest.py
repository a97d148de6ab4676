"""Which servers a run uses, and the fixtures that hand them out.

A chosen server that cannot be had fails the run; tests of servers not chosen are deselected, never skipped.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for `import servers` in every test

from processes import Result, run
from servers import NAMES, Database, Server, ServerError, given_server, local_server, variable_of

ROOT = Path(__file__).parent.parent
SQL_SERVERS = ("mysql", "mariadb", "postgresql", "postgresql-newest")
CHOICES = {"mysql": {"mysql"}, "mariadb": {"mariadb"}, "postgresql": {"postgresql", "postgresql-newest"}}
CHOICES |= {"postgresql-newest": {"postgresql-newest"}, "redis": {"redis"}, "none": set()}
CHOSEN = pytest.StashKey[frozenset[str]]()
POOL = pytest.StashKey["ServerPool"]()


class ServerPool:
    """The servers of this session, each started at most once, and the folder they live in."""

    def __init__(self) -> None:
        # Not pytest's tmp_path: too long for a socket's name, and closed to the user that PostgreSQL runs as
        # under root. In memory, where there is plenty, a database is made ten times as quickly.
        memory = Path("/dev/shm")
        plenty = os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 4 * 2**30
        self.directory = Path(tempfile.mkdtemp(prefix="opsctl-", dir=memory if plenty else None))
        self.directory.chmod(0o711)
        self.servers: dict[str, Server] = {}
        self.started_here: list[Server] = []

    def start(self, names: set[str]) -> None:
        """Start these side by side; raises ServerError with every reason when one cannot be had."""
        errors = []
        with ThreadPoolExecutor(len(NAMES)) as threads:
            started = {name: threads.submit(self._obtain, name) for name in sorted(names)}
            try:
                wait(started.values())
            except BaseException:
                self.discard_all()  # else the threads would go on waiting for them after a Ctrl-C
                raise
        for name, future in started.items():
            try:
                self.servers[name] = future.result()
            except ServerError as error:
                errors.append(str(error))
        if errors:
            raise ServerError("\n".join(errors))

    def start_here(self, name: str, *extra_args: str) -> Server:
        server = local_server(name, Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self.directory)), extra_args)
        self.started_here.append(server)
        server.start()
        return server

    def _obtain(self, name: str) -> Server:
        if server := given_server(name):
            return server
        try:
            return self.start_here(name)
        except ServerError as error:
            raise ServerError(f"{error}\n({variable_of(name)} can name a server to use instead.)") from error

    def discard_all(self) -> None:
        for server in self.started_here:
            server.discard()

    def close(self) -> None:
        """The data goes with the servers, so they need not shut down in order."""
        self.discard_all()
        shutil.rmtree(self.directory, ignore_errors=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--db",
        default="mysql,mariadb,postgresql,redis",
        metavar="NAMES",
        help="servers to test on, of mysql, mariadb, postgresql (the oldest and the newest that can be had), "
        "postgresql-newest, redis; none: only tests that need no server. Default: %(default)s. "
        "OPSCTL_TEST_<NAME>_DSN names a server to use instead of starting one.",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "servers(*names): run on these servers only; postgresql means both")
    names = [name.strip() for name in config.getoption("--db").split(",")]
    if unknown := [name for name in names if name not in CHOICES]:
        raise pytest.UsageError(f"--db: unknown {', '.join(unknown)}; known are {', '.join(CHOICES)}")
    config.stash[CHOSEN] = frozenset().union(*(CHOICES[name] for name in names))
    # A CI that gives up sends SIGTERM: servers are to be stopped then, as after Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`server`: once for each server that the test allows; what was not chosen is deselected below."""
    if "server" in metafunc.fixturenames:
        allowed = _marked(metafunc.definition) or set(SQL_SERVERS)
        names = [name for name in SQL_SERVERS if name in allowed]
        metafunc.parametrize("server", names, indirect=True, ids=names, scope="session")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    chosen = config.stash[CHOSEN]
    kept = [item for item in items if _needed(item) <= chosen]
    if not chosen:
        kept = [item for item in kept if not {"private_server", "unpacked_shell"} & set(item.fixturenames)]
    if len(kept) < len(items):
        config.hook.pytest_deselected(items=list(set(items) - set(kept)))
        items[:] = kept


@pytest.hookimpl(tryfirst=True)  # before the terminal prints what pytest_report_collectionfinish says
def pytest_collection_finish(session: pytest.Session) -> None:
    """Start what the selected tests need, and only that, before the first of them runs."""
    needed = set().union(*(_needed(item) for item in session.items))
    if session.config.option.collectonly or session.testsfailed:
        return
    pool = session.config.stash[POOL] = ServerPool()
    try:
        pool.start(needed)
    except ServerError as error:
        pytest.exit(f"a server that this run needs cannot be had:\n{error}", returncode=3)


def pytest_report_collectionfinish(config: pytest.Config) -> list[str]:
    pool = config.stash.get(POOL, None)
    return [f"server {name}: {server}" for name, server in sorted(pool.servers.items())] if pool else []


def pytest_unconfigure(config: pytest.Config) -> None:
    if pool := config.stash.get(POOL, None):
        pool.close()


def _marked(node: pytest.Item) -> set[str]:
    names = [name for mark in node.iter_markers("servers") for name in mark.args]
    if unknown := [name for name in names if name not in CHOICES]:
        raise pytest.UsageError(f"{node.nodeid}: unknown server {', '.join(unknown)}")
    return set().union(*(CHOICES[name] for name in names))


def _needed(item: pytest.Item) -> set[str]:
    """The servers without which this test cannot run: its parameter, or else all those it is marked with."""
    callspec = getattr(item, "callspec", None)
    needed = {callspec.params["server"]} if callspec and "server" in callspec.params else _marked(item)
    return needed | ({"redis"} if "redis_server" in item.fixturenames else set())


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest) -> Server:
    """A database server; a test that asks for it runs once on each chosen one."""
    return request.config.stash[POOL].servers[request.param]


@pytest.fixture(scope="session")
def redis_server(request: pytest.FixtureRequest) -> Server:
    return request.config.stash[POOL].servers["redis"]


@pytest.fixture
def database(server: Server) -> Iterator[Database]:
    """A fresh, empty database on `server`, dropped afterwards whatever still uses it."""
    database = Database(server)
    yield database
    database.drop()


@pytest.fixture
def private_server(request: pytest.FixtureRequest) -> Iterator[Callable[..., Server]]:
    """private_server(NAME, OPTION...): one more server for this test alone, to stop, kill, misconfigure."""
    pool = request.config.stash[POOL]
    before = len(pool.started_here)
    yield pool.start_here
    for server in pool.started_here[before:]:
        server.discard()
        shutil.rmtree(server.directory)
    del pool.started_here[before:]


@pytest.fixture
def cli(tmp_path: Path) -> Callable[..., Result]:
    """cli("verify-schema", "--dsn", …, env={}, input=None, timeout=60): this environment's real opsctl."""
    opsctl = Path(sys.executable).parent / "opsctl"
    if not opsctl.exists():
        pytest.fail(f"there is no opsctl beside {sys.executable}: run `make setup`")
    return lambda *args, **options: run([opsctl, *args], tmp_path, **options)


@pytest.fixture(scope="session")
def reference_pythons() -> dict[str, Path]:
    """Interpreters that have onestep: the newest release and the oldest supported one."""
    oldest = os.environ.get("OPSCTL_TEST_OLDEST_PYTHON") or ROOT / ".venv-oldest/bin/python"
    return {"newest": ROOT / ".venv/bin/python", "oldest": Path(oldest)}


@pytest.fixture
def onestep(tmp_path: Path, reference_pythons: dict[str, Path]) -> Callable[..., Result]:
    """onestep("newest" or "oldest", SCRIPT, *args): run a script with that release of onestep."""

    def run_script(release: str, script: Path, *args: object, **options: object) -> Result:
        python = reference_pythons[release]
        if not python.exists():
            pytest.fail(f"{python} is missing: run `make setup`")
        return run([python, script, *args], tmp_path, **options)

    return run_script
