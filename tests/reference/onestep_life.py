"""Run by an interpreter that has onestep: create a pair, or live a life in one with auto_create off.

    onestep_life.py create DSN EXECUTIONS ATTEMPTS
    onestep_life.py life   DSN EXECUTIONS ATTEMPTS

A life: open, submit, replay, conflict, list, claim, heartbeat, complete, retry, cancel at once and while running, a
lost lease reclaimed. Prints one JSON line with what came of it.
"""

from __future__ import annotations

import asyncio
import json
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

from onestep import ExecutionClient
from onestep.execution import ExecutionCompletion, ExecutionConflict, ExecutionErrorDetail, ExecutionStatus
from onestep_sql.mysql.execution_backend import MySQLExecutionBackend
from onestep_sql.postgres.execution_backend import PostgresExecutionBackend


class Clock:
    """MySQL's leases follow the process's clock, so a test can let one run out without waiting."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead


def backend(dsn: str, executions: str, attempts: str, clock: Clock, *, auto_create: bool) -> Any:
    kind = PostgresExecutionBackend if dsn.startswith("postgresql") else MySQLExecutionBackend
    return kind(dsn=dsn, table=executions, attempts_table=attempts, auto_create=auto_create, clock=clock)


async def claim_one(store: Any, worker: str, lease_s: float = 60) -> Any:
    (lease,) = await store.claim("n", ("t",), 1, lease_s, worker)
    return lease


async def finish(store: Any, lease: Any, status: str, **details: Any) -> Any:
    completion = ExecutionCompletion(status=ExecutionStatus(status), **details)
    return await store.complete(lease.execution.id, lease.attempt_id, lease.lease_token, completion)


async def life(dsn: str, executions: str, attempts: str) -> dict[str, Any]:
    clock = Clock()
    store = backend(dsn, executions, attempts, clock, auto_create=False)
    seen: dict[str, Any] = {}
    async with ExecutionClient(store, namespace="n") as client:
        first = await client.submit("t", {"text": "naïve 🚀"}, idempotency_key="k-1", metadata={"a": 1})
        again = await client.submit("t", {"text": "naïve 🚀"}, idempotency_key="k-1", metadata={"a": 1})
        seen["replayed"] = first.id == again.id
        try:
            await client.submit("t", {"text": "other"}, idempotency_key="k-1")
            seen["conflict"] = False
        except ExecutionConflict:
            seen["conflict"] = True
        lease = await claim_one(store, "w-1")
        await store.heartbeat(first.id, lease.attempt_id, lease.lease_token, 60)
        await finish(store, lease, "succeeded", result={"done": True})
        seen["result"] = await client.result(first.id)

        retried = await client.submit("t", {})
        error = ExecutionErrorDetail(kind="handler", exception_type="ValueError")
        await finish(store, await claim_one(store, "w-1"), "retrying", error=error, delay_s=0)
        await finish(store, await claim_one(store, "w-2"), "failed", error=error)
        row = await client.get(retried.id)
        seen["retried"] = [row.status.value, row.attempts]

        waiting = await client.submit("t", {})
        seen["cancelled"] = (await client.cancel(waiting.id, reason="no more")).status.value
        running = await client.submit("t", {})
        lease = await claim_one(store, "w-1")
        seen["requested"] = (await client.cancel(running.id)).status.value
        seen["cancelled late"] = (await finish(store, lease, "succeeded", result=1)).status.value

        lost = await client.submit("t", {})
        await claim_one(store, "w-dead", lease_s=0.2)
        if dsn.startswith("mysql"):
            clock.ahead = timedelta(seconds=1)
        while not (leases := await store.claim("n", ("t",), 1, 60, "w-2")):
            await asyncio.sleep(0.02)  # PostgreSQL's clock cannot be moved: wait for it
        await finish(store, leases[0], "succeeded", result=2)
        row = await client.get(lost.id)
        seen["reclaimed"] = [row.status.value, row.attempts]
        page = await client.list(limit=3)
        rest = await client.list(limit=3, cursor=page.next_cursor)
        seen["listed"] = len(page.items) + len(rest.items)
    return seen


async def create(dsn: str, executions: str, attempts: str) -> dict[str, Any]:
    store = backend(dsn, executions, attempts, Clock(), auto_create=True)
    await store.open()
    await store.close()
    return {"created": True}


if __name__ == "__main__":
    verb, *arguments = sys.argv[1:]
    print(json.dumps(asyncio.run({"life": life, "create": create}[verb](*arguments))))
