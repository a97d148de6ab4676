"""The application's part: submit executions, cancel one, wait for all, read them back. All by onestep's own client."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from onestep.execution import ExecutionClient

from opsctl.demo.contract import NAMESPACE, TASK

_WAIT_S = 30.0
_POLL_S = 0.1


@dataclass(frozen=True)
class Report:
    """What is submitted, and the status it has to end in."""

    name: str
    pages: int | str
    expected: str
    key: str | None = None


REPORTS = (
    Report("north", 3, "succeeded", key="report-north-1"),
    Report("south", 5, "succeeded"),
    Report("east", "many", "failed"),
    Report("west", 1_000_000, "cancelled"),
)


class Unexpected(Exception):
    """Something came out other than the demo promised."""


def client_of(family: str, dsn: str) -> Any:
    """Return onestep's client for the tables at `dsn`, which it does not create."""
    if family == "postgresql":
        from onestep_sql.postgres import PostgresExecutionBackend as Backend
    else:
        from onestep_sql.mysql import MySQLExecutionBackend as Backend
    return ExecutionClient(Backend(dsn=dsn, auto_create=False), namespace=NAMESPACE)


async def submit_all(client: Any, say: Callable[[str], None]) -> dict[str, str]:
    """Submit REPORTS, the one with a key twice; return the id of each by its name."""
    ids: dict[str, str] = {}
    for report in REPORTS:
        payload = {"report": report.name, "pages": report.pages}
        execution = await client.submit(TASK, payload, idempotency_key=report.key)
        ids[report.name] = str(execution.id)
        say(f"submitted  {report.name:<6} {execution.id}  {payload}")
        if report.key is None:
            continue
        again = await client.submit(TASK, payload, idempotency_key=report.key)
        if again.id != execution.id:
            raise Unexpected(f"the key {report.key} was submitted twice and made two executions")
        say(f"submitted  {report.name:<6} {again.id}  again, by the same idempotency key: the same execution")
    return ids


async def cancel(client: Any, execution_id: str, may_go_on: Callable[[], None]) -> str:
    """Cancel an execution once it runs; return the status it has then.

    `may_go_on` is called between the polls, and raises when there is no use in waiting.
    """
    await _wait_for(client, [execution_id], lambda status: status == "running", "been begun", may_go_on)
    execution = await client.cancel(execution_id, reason="the demo has seen enough of it")
    return str(execution.status.value)


async def wait_for_end(client: Any, ids: Sequence[str], may_go_on: Callable[[], None]) -> None:
    """Wait until each execution has come to an end; `may_go_on` as for cancel."""
    ends = ("succeeded", "failed", "cancelled", "expired")
    await _wait_for(client, ids, lambda status: status in ends, "come to an end", may_go_on)


async def table(client: Any, ids: dict[str, str]) -> list[str]:
    """Read the executions back by the client's list; return them as lines. Raises Unexpected for a wrong status."""
    page = await client.list(task_name=TASK)
    names = {execution_id: name for name, execution_id in ids.items()}
    rows = {names.get(str(execution.id), "?"): execution for execution in page.items}
    if len(page.items) != len(REPORTS) or rows.keys() != ids.keys():
        raise Unexpected(f"{len(REPORTS)} executions were submitted, and the tables list {len(page.items)}")
    lines = [f"{'report':<8}{'status':<12}{'attempts':<10}outcome"]
    for report in REPORTS:
        execution = rows[report.name]
        status = execution.status.value
        outcome = execution.error.exception_type if execution.error is not None else execution.result
        lines.append(
            f"{report.name:<8}{status:<12}{execution.attempts:<10}{'' if outcome is None else outcome}".rstrip()
        )
        if status != report.expected:
            raise Unexpected(f"the report {report.name} is {status}, not {report.expected}")
    return lines


async def _wait_for(
    client: Any, ids: Sequence[str], reached: Callable[[str], bool], what: str, may_go_on: Callable[[], None]
) -> None:
    end = time.monotonic() + _WAIT_S
    while True:
        states = [(await client.get(execution_id)).status.value for execution_id in ids]
        if all(map(reached, states)):
            return
        may_go_on()
        if time.monotonic() > end:
            raise Unexpected(f"after {_WAIT_S:g} s they have not {what}, but are {', '.join(states)}")
        await asyncio.sleep(_POLL_S)
