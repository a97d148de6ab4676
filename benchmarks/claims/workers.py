"""Many workers of onestep at once: `workers.py` runs some of them in one process and prints what they did as JSON.

    workers.py drain  DSN WORKERS SECONDS FIRST   claim 4 and complete them, again and again, from task-0
    workers.py writes DSN WORKERS SECONDS FIRST   submit; then beat the heart of what was claimed; then complete it

Each worker has a backend, and so a connection, of its own. `writes` times each kind of write apart from the claims, which
would hide them: it submits for SECONDS, claims all of it, beats for SECONDS, and completes what it holds.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any
from uuid import uuid4

HERE = Path(__file__).parent
PROCESSES = 4
PHASES = {"drain": 1, "writes": 3}
LEASE_S = 600.0


def run_workers(what: str, dsn: str, *, workers: int, seconds: float) -> dict[str, float]:
    """Run them in up to PROCESSES processes; return what they did per second, by kind, all of them together."""
    processes = []
    started = 0
    for number in range(min(PROCESSES, workers)):
        share = workers // PROCESSES + (number < workers % PROCESSES) if workers > PROCESSES else 1
        argv = [sys.executable, str(HERE / "workers.py"), what, dsn, str(share), str(seconds), str(started)]
        started += share
        processes.append(subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
    total: Counter[str] = Counter()
    for _ in range(PHASES[what]):
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
    for process in processes:
        assert process.stdout is not None
        total.update(json.loads(process.stdout.read()))
        assert process.wait() == 0
    return dict(total)


async def _main(what: str, dsn: str, workers: int, seconds: float, first: int) -> None:
    from onestep import ExecutionClient
    from onestep.execution import ExecutionCompletion, ExecutionStatus
    from onestep_life import Clock, backend
    from pairs import ATTEMPTS, EXECUTIONS

    stores = [backend(dsn, EXECUTIONS, ATTEMPTS, Clock(), auto_create=False) for _ in range(workers)]
    for store in stores:
        await store.open()
        await store.get("ns-0", uuid4())
    barrier = asyncio.Barrier(workers)

    async def together() -> None:
        """Wait until every worker of every process is here."""
        if await barrier.wait() == 0:
            print("ready", flush=True)
            await asyncio.to_thread(sys.stdin.readline)
        await barrier.wait()

    done = ExecutionCompletion(status=ExecutionStatus.SUCCEEDED, result={"text": "x" * 200})

    async def complete(store: Any, lease: Any) -> None:
        await store.complete(lease.execution.id, lease.attempt_id, lease.lease_token, done)

    async def drain(store: Any, name: str) -> Counter[str]:
        counts: Counter[str] = Counter()
        await together()
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            leases = await store.claim("ns-0", ("task-0",), 4, LEASE_S, name)
            counts["claims"] += 1
            counts["empty"] += not leases
            counts["completed"] += len(leases)
            for lease in leases:
                await complete(store, lease)
        return Counter({kind: count / seconds for kind, count in counts.items()})

    async def writes(store: Any, name: str) -> Counter[str]:
        rates: Counter[str] = Counter()
        task = f"own-{name}"
        async with ExecutionClient(store, namespace="ns-0") as client:
            await together()
            rates["submit"] = await _repeat(lambda: client.submit(task, {"text": "x" * 200}), seconds)
            leases: list[Any] = []
            while more := await store.claim("ns-0", (task,), 200, LEASE_S, name):
                leases += more
            place = iter(range(10**9))

            async def beat() -> None:
                lease = leases[next(place) % len(leases)]
                await store.heartbeat(lease.execution.id, lease.attempt_id, lease.lease_token, LEASE_S)

            await together()
            rates["heartbeat"] = await _repeat(beat, seconds)
            await together()
            started = time.monotonic()
            for lease in leases:
                await complete(store, lease)
            rates["complete"] = len(leases) / (time.monotonic() - started)
        return rates

    work = {"drain": drain, "writes": writes}[what]
    results = await asyncio.gather(*(work(store, f"w-{first + number}") for number, store in enumerate(stores)))
    print(json.dumps(sum(results, Counter())))
    for store in stores:
        await store.close()


async def _repeat(act: Any, seconds: float) -> float:
    started = time.monotonic()
    count = 0
    while time.monotonic() < started + seconds:
        await act()
        count += 1
    return count / (time.monotonic() - started)


if __name__ == "__main__":
    sys.path[:0] = [str(HERE.parents[1] / "tests" / name) for name in (".", "conformance", "reference")]
    asyncio.run(_main(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]), int(sys.argv[5])))
