"""The demo itself: each step says what it shows, shows the command and its output, and checks both."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from opsctl.demo import executions
from opsctl.demo.contract import VARIABLES
from opsctl.demo.database import Database
from opsctl.demo.executions import Unexpected
from opsctl.demo.stage import Stage, stop, tail

_STATUSES = "'queued', 'running', 'retrying', 'cancel_requested', 'succeeded', 'failed', 'cancelled'"
#: What a colleague does by hand: drops an index that "nobody uses", writes a CHECK again from memory.
_DRIFT = {
    "postgresql": (
        "DROP INDEX ix_onestep_executions_claim;",
        "ALTER TABLE onestep_executions DROP CONSTRAINT ck_onestep_execution_status;",
        f"ALTER TABLE onestep_executions ADD CONSTRAINT ck_onestep_execution_status CHECK (status IN ({_STATUSES}));",
    ),
    "mysql": (
        "ALTER TABLE onestep_executions DROP INDEX ix_onestep_executions_claim;",
        "ALTER TABLE onestep_executions DROP CHECK ck_onestep_executions_status;",
        f"ALTER TABLE onestep_executions ADD CONSTRAINT ck_onestep_executions_status CHECK (status IN ({_STATUSES}));",
    ),
}
_CLIENT_S = 75.0
_WORKER = "opsctl.demo.worker_app:app"


class Story:
    """The steps, in their order, on one database."""

    def __init__(self, stage: Stage, database: Database) -> None:
        self._stage = stage
        self._database = database
        self._cancelled = ""
        self._bold = sys.stdout.isatty() and not os.environ.get("NO_COLOR")

    def tell(self) -> None:
        """Do all of it. Raises Unexpected at the first thing that comes out other than it should."""
        variable = VARIABLES[self._database.family]
        self._stage.exported[variable] = self._database.dsn
        say("onestep keeps long jobs in two tables, which its workers and your API share; opsctl looks after these.")
        say(f"All of them find the database by one variable. Here it names an empty one on {self._database.title}:")
        say("")
        self._command(f"export {variable}={self._database.shown_dsn}")
        self._create()
        self._use()
        self._look()
        self._spoil()
        self._mend()

    def _create(self) -> None:
        self._step("1. Create the tables, so that no worker needs the right to do so")
        self._opsctl("init-tables", "--yes", "--audit-file", "audit.jsonl")
        self._step("2. Are they what onestep needs?")
        self._opsctl("verify-schema", expected="match")

    def _use(self) -> None:
        self._step("3. Use them: onestep's worker, and an application that submits work by onestep's client")
        log = self._stage.directory / "worker.log"
        self._command(f"onestep run {_WORKER} > worker.log &")
        with log.open("w", encoding="utf-8") as stream:
            worker = self._stage.start(
                [sys.executable, "-m", "onestep.cli", "run", _WORKER], stdout=stream, stderr=subprocess.STDOUT
            )
        try:
            with self._stage.interrupts.held():
                lines = asyncio.run(self._submit_and_wait(worker))
        except Unexpected as error:
            raise Unexpected(f"{error}\nThe worker's log ends so:\n{tail(log)}") from None
        say("")
        for line in lines:
            say(line)
        say("")
        self._command("kill %1")
        if (code := stop(worker)) != 0:
            raise Unexpected(f"the worker ended with {code}, not 0\nIts log ends so:\n{tail(log)}")
        say("The worker has ended in order.")

    async def _submit_and_wait(self, worker: subprocess.Popen[str]) -> list[str]:
        def may_go_on() -> None:
            self._stage.interrupts.check()
            if worker.poll() is not None:
                raise Unexpected(f"the worker ended before its work, with {worker.returncode}")

        async with (
            asyncio.timeout(_CLIENT_S),
            executions.client_of(self._database.family, self._database.dsn) as client,
        ):
            ids = await executions.submit_all(client, say)
            self._cancelled = ids["west"]
            status = await executions.cancel(client, ids["west"], may_go_on)
            say(f"cancelled  west   while it ran: {status}, until the worker's next heartbeat")
            await executions.wait_for_end(client, list(ids.values()), may_go_on)
            return await executions.table(client, ids)

    def _look(self) -> None:
        self._step("4. Ask the tables what happened: queries that are ready, in a read-only transaction")
        self._opsctl("query", "run", "status-counts", expected="succeeded")
        say("")
        self._opsctl("query", "run", "attempts", "-p", f"id={self._cancelled}", "-o", "vertical", expected="cancelled")

    def _spoil(self) -> None:
        self._step("5. A colleague tidies up by hand: an index is gone, and a CHECK has lost the status 'expired'")
        self._sql(_DRIFT[self._database.family])
        say("")
        say("Nothing fails at once, and that is the trouble. opsctl says what will:")
        say("")
        out = self._opsctl("verify-schema", exit_code=1, expected="drift")
        for name in ("ix_onestep_executions_claim", "expired"):
            if name not in out:
                raise Unexpected(f"the findings do not name {name}")

    def _mend(self) -> None:
        self._step("6. The way back: a finding comes with the SQL that mends it")
        out = self._opsctl("verify-schema", "-o", "json", exit_code=1, into="findings.json")
        fixes = [finding["fix"] for finding in json.loads(out)["findings"] if finding["fix"]]
        if not fixes:
            raise Unexpected("no finding has a fix")
        say('Now what stands in the field "fix" of each finding there, one statement after the other:')
        say("")
        self._sql([f"{part.rstrip(';')};" for fix in fixes for part in fix.split(";\n")])
        say("")
        self._opsctl("verify-schema", expected="match")
        say("")
        say("That was: tables created, checked, used, spoilt, mended and checked again, all on a real server.")
        opsctl = Path(sys.executable).with_name("opsctl")
        shown = opsctl.relative_to(Path.cwd()) if opsctl.is_relative_to(Path.cwd()) else opsctl
        say("Next, on a database of yours, which these two only read:")
        say(f"  {shown} verify-schema --dsn-file FILE")
        say(f"  {shown} init-tables --dry-run --dsn-file FILE")

    def _opsctl(self, *arguments: str, exit_code: int = 0, expected: str = "", into: str | None = None) -> str:
        """Run this environment's opsctl, show it, check it; return its stdout. `into`: a file, not the terminal."""
        line = shlex.join(("opsctl", *arguments))
        self._command(f"{line} > {into}" if into else line)
        # As on a terminal, where stderr comes in between; but a file gets only stdout.
        stderr = subprocess.PIPE if into else subprocess.STDOUT
        code, out, err = self._stage.run([sys.executable, "-m", "opsctl", *arguments], stderr=stderr)
        shown = err if into else out
        if shown.strip():
            say(shown.rstrip())
        if exit_code or code:
            say(f"(exit code {code})")
        if code != exit_code:
            raise Unexpected(f"{line} ended with {code}, not {exit_code}")
        if expected not in out:
            raise Unexpected(f"{line} does not say {expected!r}")
        return out

    def _sql(self, statements: Sequence[str]) -> None:
        prompt = "mysql" if self._database.family == "mysql" else "psql"
        interrupts = self._stage.interrupts
        with interrupts.held(), self._database.connect() as connection, connection.cursor() as cursor:
            for statement in statements:
                interrupts.check()
                self._command(statement, f"{prompt}> ")
                cursor.execute(statement)

    def _step(self, title: str) -> None:
        say("")
        say(f"\033[1m== {title}\033[0m" if self._bold else f"== {title}")

    def _command(self, line: str, prompt: str = "$ ") -> None:
        say(f"\033[1m{prompt}{line}\033[0m" if self._bold else f"{prompt}{line}")


def say(line: str) -> None:
    """Print a line at once: who looks on, or interrupts, sees how far it has come."""
    print(line, flush=True)
