"""Run a program as its user would, in an environment that says nothing about databases."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

# What would lead a program to a database or to other settings, or change how its output looks.
FOREIGN = ("OPSCTL_", "MYSQL_", "MARIADB_", "POSTGRES_", "PG", "XDG_")
FOREIGN += ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "PYTHONPATH")


@dataclass(frozen=True)
class Result:
    """How a process ended and what it wrote."""

    code: int
    out: str
    err: str

    @cached_property
    def json(self) -> Any:
        """stdout, read as JSON."""
        return json.loads(self.out)


def clean_environment(home: Path, env: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment without what is about databases, with an empty HOME, plus `env`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    return {**kept, "HOME": str(home), **(env or {})}


def run(
    argv: list[object],
    home: Path,
    *,
    env: Mapping[str, str] | None = None,
    input: str | None = None,
    timeout: float = 60,
    cwd: Path | None = None,
) -> Result:
    """Run it to its end, in `cwd` (default: the home); no input means none, never the terminal's."""
    done = subprocess.run(
        [str(part) for part in argv],
        env=clean_environment(home, env),
        cwd=cwd or home,
        text=True,
        capture_output=True,
        timeout=timeout,
        check=False,
        **({"stdin": subprocess.DEVNULL} if input is None else {"input": input}),
    )
    return Result(done.returncode, done.stdout, done.stderr)
