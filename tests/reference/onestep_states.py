"""Run by an interpreter that has onestep: make a pair, and by real workers, some of them killed, every state in it.

onestep_states.py DSN EXECUTIONS ATTEMPTS prints the id of each execution by its name (see Story) as JSON. The worker that
is killed with a long lease holds "killed" and "lingering"; "crashing" has lost three leases.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from onestep import ExecutionClient
from onestep.execution import ExecutionErrorDetail
from onestep_life import Clock, backend, finish

HERE = Path(__file__).parent
SHORT_LEASE_S = 0.6
ERROR = ExecutionErrorDetail(kind="handler", exception_type="KeyError")


def end(worker: subprocess.Popen[bytes], number: int) -> None:
    worker.send_signal(number)
    worker.wait()


class Story:
    def __init__(self, dsn: str, executions: str, attempts: str) -> None:
        self.pair = {"dsn": dsn, "executions": executions, "attempts": attempts}
        self.store = backend(dsn, executions, attempts, Clock(), auto_create=True)
        self.client = ExecutionClient(self.store, namespace="shop")
        self.ids: dict[str, str] = {}

    async def submit(self, name: str, task: str, client: Any = None, do: str = "succeed", **options: Any) -> None:
        execution = await (client or self.client).submit(task, {"do": do, "name": name}, **options)
        self.ids[name] = str(execution.id)

    async def wait_for(self, **expected: str) -> None:
        async with asyncio.timeout(40):
            for name, status in expected.items():
                while (await self.client.get(self.ids[name])).status.value != status:
                    await asyncio.sleep(0.02)

    async def claim(self, task: str, worker: str, lease_s: float = 3600) -> Any:
        (lease,) = await self.store.claim("shop", (task,), 1, lease_s, worker)
        return lease

    @contextlib.contextmanager
    def worker(self, name: str, *tasks: str, lease_s: float = 600.0) -> Iterator[subprocess.Popen[bytes]]:
        config = {**self.pair, "id": name, "namespace": "shop", "tasks": tasks, "lease_s": lease_s}
        worker = subprocess.Popen(
            [sys.executable, "-m", "onestep.cli", "run", "onestep_worker:app"],
            env={**os.environ, "WORKER": json.dumps(config), "PYTHONPATH": str(HERE)},
            stdout=sys.stderr,
        )
        try:
            yield worker
        finally:
            if worker.poll() is None:
                end(worker, signal.SIGKILL)

    async def work(self) -> None:
        """What goes well, or goes wrong in an orderly way."""
        await self.submit("done", "report", idempotency_key="k-1")
        await self.submit("done too", "report", idempotency_key="k-2")
        await self.submit("failed", "report", do="fail")
        await self.submit("failed once", "report", do="fail once")
        await self.submit("cancelled running", "report", do="sleep")
        with self.worker("w-main", "report") as worker:
            await self.wait_for(**{"cancelled running": "running"})
            await self.client.cancel(self.ids["cancelled running"], reason="enough of it")
            ends = {"done": "succeeded", "done too": "succeeded", "failed": "failed", "failed once": "succeeded"}
            await self.wait_for(**ends, **{"cancelled running": "cancelled"})
            end(worker, signal.SIGTERM)

    async def die(self) -> None:
        """A worker is killed in the middle of two runs, of which one is cancelled afterwards."""
        await self.submit("killed", "long", do="sleep")
        await self.submit("lingering", "long", do="sleep")
        with self.worker("w-killed", "long") as worker:
            await self.wait_for(killed="running", lingering="running")
            end(worker, signal.SIGKILL)
        await self.client.cancel(self.ids["lingering"])

    async def crash(self) -> None:
        """A task kills its worker three times."""
        await self.submit("crashing", "crash", do="die")
        for _ in range(3):
            with self.worker("w-crash", "crash", lease_s=SHORT_LEASE_S) as worker:
                while worker.poll() is None:
                    await asyncio.sleep(0.02)
        await asyncio.sleep(SHORT_LEASE_S)

    async def wait(self) -> None:
        """What waits, was given back, or was taken back, made by the calls that a worker's source makes."""
        past, future = (datetime.now(UTC) + timedelta(hours=hours) for hours in (-1, 1))
        await self.submit("cancelled queued", "order")
        await self.client.cancel(self.ids["cancelled queued"])
        await self.submit("released", "order")
        lease = await self.claim("order", "w-gave-back")
        await self.store.release(lease.execution.id, lease.attempt_id, lease.lease_token)

        await self.submit("retrying later", "retry")
        await finish(self.store, await self.claim("retry", "w-1"), "retrying", error=ERROR, delay_s=3600)
        soon = datetime.now(UTC) + timedelta(seconds=1.5)  # time enough for the claims before it
        await self.submit("lost, to be retried late", "lost", expires_at=soon)
        await self.claim("lost", "w-lost", lease_s=0.2)
        await self.submit("cancelled late", "cancel")
        await self.claim("cancel", "w-lost", lease_s=0.2)
        await self.client.cancel(self.ids["cancelled late"])
        await self.submit("expired", "order", expires_at=past)
        await asyncio.sleep(0.3)
        await self.store.claim("nobody", ("nothing",), 1, 60, "w-2")  # takes back and expires for all namespaces
        taken_back = {"expired": "expired", "cancelled late": "cancelled", "lost, to be retried late": "retrying"}
        await self.wait_for(**taken_back, crashing="retrying")

        # From here on no claim may come after what a claim would take back.
        await self.submit("retrying, overdue", "retry", expires_at=soon)
        await finish(self.store, await self.claim("retry", "w-1"), "retrying", error=ERROR, delay_s=0)
        await self.submit("lease run out", "short")
        await self.claim("short", "w-lost", lease_s=0.2)
        await self.submit("due", "order")
        await self.submit("delayed", "order", delay_s=3600)
        await self.submit("in time", "order", expires_at=future)
        await self.submit("overdue", "order", expires_at=past)
        await self.submit("overdue, delayed", "order", expires_at=past, delay_s=3600)
        await self.submit("elsewhere", "order", ExecutionClient(self.store, namespace="branch"))
        await asyncio.sleep(max(0.0, (soon - datetime.now(UTC)).total_seconds()))

    async def tell(self) -> None:
        async with self.client:
            async with asyncio.TaskGroup() as group:
                for chapter in (self.work, self.die, self.crash):
                    group.create_task(chapter())
            await self.wait()


if __name__ == "__main__":
    story = Story(*sys.argv[1:])
    asyncio.run(story.tell())
    print(json.dumps(story.ids))
