"""What one claim of onestep's own backend costs, in milliseconds."""

from __future__ import annotations

import asyncio
import statistics
import time
from dataclasses import dataclass

from onestep_life import Clock, backend
from pairs import ATTEMPTS, EXECUTIONS


@dataclass(frozen=True)
class Latency:
    """The median and the longest of `runs` claims, in milliseconds; `claimed` rows came of the last."""

    median_ms: float
    longest_ms: float
    runs: int
    claimed: int


def time_claims(
    dsn: str, *, task: str, namespace: str = "ns-0", limit: int = 4, runs: int = 7, budget_s: float = 20
) -> Latency:
    """Claim `runs` times, or as often as fits into `budget_s`, after one claim that is not counted."""
    return asyncio.run(_time_claims(dsn, task, namespace, limit, runs, budget_s))


async def _time_claims(dsn: str, task: str, namespace: str, limit: int, runs: int, budget_s: float) -> Latency:
    store = backend(dsn, EXECUTIONS, ATTEMPTS, Clock(), auto_create=False)
    await store.open()
    times: list[float] = []
    claimed = 0
    try:
        until = time.monotonic() + budget_s
        await store.claim(namespace, (task,), limit, 600, "w-0")
        while len(times) < runs and (not times or time.monotonic() < until):
            started = time.perf_counter()
            claimed = len(await store.claim(namespace, (task,), limit, 600, "w-0"))
            times.append((time.perf_counter() - started) * 1000)
    finally:
        await store.close()
    return Latency(statistics.median(times), max(times), len(times), claimed)
