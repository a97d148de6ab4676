"""The wheel has everything in it: built, installed into an empty environment, run from /."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from processes import run
from servers import Database

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "build", "--wheel", "-o", folder, ROOT], check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The opsctl of an environment that holds the wheel and what it depends on, and nothing else."""
    environment = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    pip = [sys.executable, "-m", "pip", "--python", environment / "bin" / "python", "install", "-q"]
    subprocess.run([*pip, wheel], check=True, capture_output=True)
    return environment / "bin" / "opsctl"


@pytest.mark.slow
def test_holds_the_sql_and_the_revisions(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for folder in ("sql", "migrations"):
        files = [f for f in (ROOT / folder).rglob("*") if f.is_file() and "__pycache__" not in f.parts]
        assert files
        assert {f"opsctl/{file.relative_to(ROOT)}" for file in files} <= names
    assert not [name for name in names if name.startswith(("tests", "sql", "migrations"))]


@pytest.mark.slow
@pytest.mark.servers("postgresql-newest", "mysql")
def test_runs_from_the_root_folder(installed: Path, database: Database, tmp_path: Path) -> None:
    environment = {"OPSCTL_DSN": database.dsn}
    for arguments in (["--version"], ["init-tables", "--yes"], ["verify-schema"]):
        done = run([installed, *arguments], tmp_path, env=environment, cwd=Path("/"))
        assert done.code == 0, done.err
    assert "match" in done.out
