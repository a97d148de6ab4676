"""Run by an interpreter that has onestep: workers that are never idle, until a line comes on stdin.

onestep_busy.py DSN EXECUTIONS ATTEMPTS WORKERS: each submits, claims, beats, and completes, on a connection of its own.
Prints "busy" when all of them work, and at the end, as JSON: how many were submitted, completed, and which errors came.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any
from uuid import uuid4

from onestep import ExecutionClient
from onestep_life import Clock, backend, finish


async def main(dsn: str, executions: str, attempts: str, workers: int) -> None:
    stop = asyncio.Event()
    busy = asyncio.Semaphore(0)
    counts = {"submitted": 0, "completed": 0}
    errors: dict[str, list[str]] = {"claim": [], "write": []}

    async def work(number: int) -> None:
        store = backend(dsn, executions, attempts, Clock(), auto_create=False)
        async with ExecutionClient(store, namespace="busy") as client:
            while not stop.is_set():
                try:
                    await client.submit(f"t{number % 3}", {"n": number}, idempotency_key=str(uuid4()))
                    counts["submitted"] += 1
                    await take(store, number)
                except Exception as error:  # noqa: BLE001 (what comes is told at the end)
                    kind = "claim" if "SKIP LOCKED" in str(error) else "write"
                    errors[kind].append(f"{type(error).__name__}: {error}"[:300])
                busy.release()

    async def take(store: Any, number: int) -> None:
        for lease in await store.claim("busy", (f"t{number % 3}",), 2, 60, f"w-{number}"):
            await store.heartbeat(lease.execution.id, lease.attempt_id, lease.lease_token, 60)
            await finish(store, lease, "succeeded", result={"n": number})
            counts["completed"] += 1

    tasks = [asyncio.create_task(work(number)) for number in range(workers)]
    for _ in range(workers):
        await busy.acquire()
    print("busy", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    stop.set()
    await asyncio.gather(*tasks)
    store = backend(dsn, executions, attempts, Clock(), auto_create=False)
    async with ExecutionClient(store, namespace="busy"):
        for number in range(3):
            while counts["completed"] < counts["submitted"]:
                before = counts["completed"]
                await take(store, number)
                if counts["completed"] == before:
                    break
    print(json.dumps({**counts, "errors": errors}))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:4], int(sys.argv[4])))
