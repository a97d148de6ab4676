"""`python -m opsctl.demo [--db postgresql|mysql]`."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import sys
import time
from collections.abc import Sequence

from opsctl.demo.interrupts import Interrupted, Interrupts
from opsctl.errors import EXIT_BROKEN_PIPE, EXIT_NO, OpsctlError, UsageError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo and return its exit code: 0 only when everything came as it should."""
    parser = argparse.ArgumentParser(
        prog="python -m opsctl.demo", description="opsctl on a database of its own, which is gone afterwards."
    )
    parser.add_argument("--db", choices=("postgresql", "mysql"), default="postgresql", help="default: %(default)s")
    family = parser.parse_args(arguments).db
    interrupts = Interrupts()
    interrupts.install()
    try:
        with contextlib.ExitStack() as clearing:
            try:
                code = _run(interrupts, clearing, family)
            finally:
                interrupts.end()
    except Interrupted as stopped:
        _complain("interrupted: everything it had started is stopped and removed")
        return 128 + stopped.number
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nobody reads on; do not complain at exit
        return EXIT_BROKEN_PIPE
    except OpsctlError as error:
        _complain(" ".join(error.message.split()), error.hint)
        return error.exit_code
    return code


def _run(interrupts: Interrupts, clearing: contextlib.ExitStack, family: str) -> int:
    for module in ("onestep", "onestep_sql"):
        if importlib.util.find_spec(module) is None:
            raise UsageError(
                f"the package {module.replace('_', '-')} is not installed",
                "run `make demo` in the checkout, or `pip install '.[demo]'` there",
            )
    from opsctl.demo.executions import Unexpected
    from opsctl.demo.mysql import start_mysql
    from opsctl.demo.postgresql import start_postgresql
    from opsctl.demo.stage import Stage
    from opsctl.demo.story import Story, say

    started = time.monotonic()
    stage = Stage(interrupts, clearing)
    what = "MySQL (fetched the first time, which takes a while)" if family == "mysql" else "PostgreSQL"
    say(f"Starting {what}, for this demo alone ...")
    database = start_mysql(stage) if family == "mysql" else start_postgresql(stage)
    try:
        Story(stage, database).tell()
    except Unexpected as error:
        _complain(f"not as expected: {error}", "this is a bug: please report it with the output above")
        return EXIT_NO
    interrupts.end()
    clearing.close()
    say(
        f"The server and its data are gone again; what was installed stays for the next time. ({time.monotonic() - started:.0f} s)"
    )
    return 0


def _complain(message: str, hint: str = "") -> None:
    sys.stdout.flush()
    print(f"opsctl.demo: {message}", file=sys.stderr)
    if hint:
        print(f"  {hint}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
