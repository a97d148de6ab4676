"""What a command costs from the shell's point of view: whole processes, side by side in one run, medians and ratios.

    .venv/bin/python benchmarks/startup.py --dsn URL [--runs 15]

Compared: `python -c "import click"` with `opsctl --help` (at most three times its CPU, by contract), and an inspector
script, which reads the same two tables with SQLAlchemy and compares nothing, with `opsctl verify-schema`.
The DSN must lead to a pair that init-tables made.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time

from tabulate import tabulate

from opsctl.target import parse_dsn

INSPECTOR = """
import os, sqlalchemy as sa
engine = sa.create_engine(os.environ["BENCHMARK_URL"])
found = sa.inspect(engine)
for table in ("onestep_executions", "onestep_execution_attempts"):
    found.get_columns(table), found.get_indexes(table), found.get_check_constraints(table)
    found.get_foreign_keys(table), found.get_unique_constraints(table), found.get_pk_constraint(table)
"""


def measure(argv: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Run it once; return wall and CPU seconds of the process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    subprocess.run(argv, env=environment, check=True, capture_output=True)
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measure each command `--runs` times in turn, after one run that is not counted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dsn", required=True)
    parser.add_argument("--runs", type=int, default=15)
    arguments = parser.parse_args()
    url = parse_dsn(arguments.dsn, origin="--dsn").url
    environment = {
        **os.environ,
        "OPSCTL_DSN": arguments.dsn,
        "BENCHMARK_URL": url.render_as_string(hide_password=False),
    }
    opsctl = [sys.executable, "-m", "opsctl"]
    commands = {
        "import click": [sys.executable, "-c", "import click"],
        "opsctl --help": [*opsctl, "--help"],
        "inspector script": [sys.executable, "-c", INSPECTOR],
        "opsctl verify-schema": [*opsctl, "verify-schema"],
    }
    for argv in commands.values():
        measure(argv, environment)
    figures: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for _ in range(arguments.runs):
        for name, argv in commands.items():
            figures[name].append(measure(argv, environment))
    base = {"opsctl --help": "import click", "opsctl verify-schema": "inspector script"}
    medians = {
        name: [statistics.median(column) for column in zip(*runs, strict=True)] for name, runs in figures.items()
    }
    rows = [
        [name, f"{wall * 1000:.0f}", f"{cpu * 1000:.0f}"]
        + (
            [f"{wall / medians[base[name]][0]:.2f}", f"{cpu / medians[base[name]][1]:.2f}"]
            if name in base
            else ["", ""]
        )
        for name, (wall, cpu) in medians.items()
    ]
    print(f"{parse_dsn(arguments.dsn, origin='--dsn')}, {arguments.runs} runs, medians, {os.cpu_count()} cores")
    print(tabulate(rows, ["process", "wall ms", "CPU ms", "wall ratio", "CPU ratio"], disable_numparse=True))


if __name__ == "__main__":
    main()
