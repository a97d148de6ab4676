"""What the demo stands on: one temporary directory, the processes it started, and the end of both."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import site
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opsctl.demo.interrupts import Interrupts
from opsctl.errors import Unreachable

_COMMAND_TIMEOUT_S = 60.0
#: A socket's name has about 100 characters, and the servers put theirs into the directory.
_LONGEST_BASE = 50
#: What would lead a command to another database, or make it read other settings. OPSCTL_TEST_… names servers for --db.
_FOREIGN = ("OPSCTL_", "MYSQL_", "MARIADB_", "POSTGRES_", "PG")
_KEPT = "OPSCTL_TEST_"


@dataclass(frozen=True)
class Account:
    """A system user that a server runs as, because PostgreSQL refuses to run as root."""

    name: str
    uid: int
    gid: int

    def may_enter(self, path: Path) -> bool:
        """Whether it gets to `path`, by the permission bits of all directories above it and of `path` itself."""
        return all(self._may(part.stat(), 0o1) for part in (path, *path.parents))

    def may_read(self, path: Path) -> bool:
        """Whether it can read the file `path`."""
        return self.may_enter(path.parent) and self._may(path.stat(), 0o4)

    def _may(self, status: os.stat_result, bit: int) -> bool:
        if status.st_uid == self.uid:
            bit <<= 6
        elif status.st_gid == self.gid:
            bit <<= 3
        return bool(status.st_mode & bit)


def server_account() -> Account | None:
    """Return the account for a server: None (the demo's own) unless that is root. Raises Unreachable."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
            return Account(name, entry.pw_uid, entry.pw_gid)
    raise Unreachable(
        "PostgreSQL does not run as root, and this machine has neither a user postgres nor a user nobody",
        "run the demo as an ordinary user",
    )


class Stage:
    """The directory, the environment and the processes of one demo."""

    def __init__(self, interrupts: Interrupts, clearing: contextlib.ExitStack) -> None:
        self.interrupts = interrupts
        self.clearing = clearing
        for name in [name for name in os.environ if name.startswith(_FOREIGN) and not name.startswith(_KEPT)]:
            del os.environ[name]
        self.account = server_account()
        base = _base(self.account)
        with interrupts.held():
            self.directory = Path(tempfile.mkdtemp(prefix="opsctl-demo-", dir=base))
            clearing.callback(_remove, self.directory)
        if self.account is not None:
            self.directory.chmod(0o711)  # the server's own directory in it must be reached
        self.exported: dict[str, str] = {}

    @property
    def environment(self) -> dict[str, str]:
        """The environment of opsctl and onestep: this one, with a home in which no settings lie."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_CONFIG_", _KEPT))}
        if site.ENABLE_USER_SITE:
            kept.setdefault("PYTHONUSERBASE", site.getuserbase())  # it would be looked for in the new home
        if sys.stdout.isatty():
            kept["COLUMNS"] = str(shutil.get_terminal_size().columns)
            kept.setdefault("FORCE_COLOR", "1")
        return {**kept, "HOME": str(self.directory), "PYTHONUNBUFFERED": "1", **self.exported}

    def start(
        self,
        argv: Sequence[str | Path],
        *,
        stop_by: int = signal.SIGTERM,
        account: Account | None = None,
        env: Mapping[str, str] | None = None,
        **options: Any,
    ) -> subprocess.Popen[str]:
        """Start a process which ends with the demo at the latest, in the demo's directory.

        It gets a session of its own: a Ctrl-C is for the demo, which stops the others in the right order.
        """
        if account is not None:
            options |= {"user": account.uid, "group": account.gid, "extra_groups": []}
        with self.interrupts.held():
            process = subprocess.Popen(
                [str(part) for part in argv],
                text=True,
                encoding="utf-8",
                errors="replace",
                cwd=self.directory,
                env=self.environment if env is None else env,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                **options,
            )
            self.clearing.callback(stop, process, stop_by)
        return process

    def run(
        self, argv: Sequence[str | Path], *, stderr: int = subprocess.STDOUT, **options: Any
    ) -> tuple[int, str, str]:
        """Run a process to its end; return its exit code, stdout and, where `stderr` is a pipe of its own, stderr."""
        process = self.start(argv, stdout=subprocess.PIPE, stderr=stderr, **options)
        try:
            out, err = process.communicate(timeout=_COMMAND_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise Unreachable(
                f"{Path(str(argv[0])).name} did not end in {_COMMAND_TIMEOUT_S:g} s",
                "see whether this machine is overloaded, then run the demo again",
            ) from None
        return process.returncode, out or "", err or ""


def stop(process: subprocess.Popen[str], number: int = signal.SIGTERM, grace_s: float = 5.0) -> int:
    """End a process of a stage and whatever is left in its session; return its exit code."""
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    if process.poll() is None:
        process.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(grace_s)
        # Only now, not for one that ended long ago: its number may be another's by then.
        with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS: not permitted for a group of zombies
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            for _ in polls(2.0):
                os.killpg(process.pid, 0)
    return process.wait()


def polls(limit_s: float, pause_s: float = 0.05) -> Iterator[None]:
    """Yield again and again until `limit_s` have passed, for a loop that looks for something."""
    end = time.monotonic() + limit_s
    while True:
        yield
        if time.monotonic() >= end:
            return
        time.sleep(pause_s)


def tail(path: Path, lines: int = 15) -> str:
    """Return the end of a log, for a message."""
    return "\n".join(path.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])


def _base(account: Account | None) -> str:
    """Return where temporary files go; not where that has too long a name, or the server's account cannot go."""
    usual = Path(tempfile.gettempdir()).resolve()
    for path in (usual, Path("/tmp"), Path("/var/tmp")):
        reached = path.is_dir() and os.access(path, os.W_OK) and (account is None or account.may_enter(path))
        if reached and len(str(path)) <= _LONGEST_BASE:
            return str(path)
    return str(usual)


def _remove(directory: Path) -> None:
    """Remove the demo's directory, while a process just killed may still be writing into it."""
    for _ in polls(5.0):
        shutil.rmtree(directory, ignore_errors=True)
        if not directory.exists():
            return
    raise Unreachable(f"{directory} could not be removed", "remove it by hand")
