"""A worker of onestep for tests: `onestep run onestep_worker:app`, with this directory in PYTHONPATH.

WORKER holds JSON: dsn, executions, attempts, id, namespace, tasks, lease_s. A payload says what becomes of a run:
{"do": "succeed" | "fail" | "fail once" | "sleep" | "die"}; a run that fails is tried twice.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from typing import Any

from onestep import MaxAttempts, OneStepApp

CONFIG = json.loads(os.environ["WORKER"])


def source(task: str) -> Any:
    options: dict[str, Any] = {
        "dsn": CONFIG["dsn"],
        "table": CONFIG["executions"],
        "attempts_table": CONFIG["attempts"],
        "namespace": CONFIG["namespace"],
        "task_names": [task],
        "auto_create": False,
        "worker_id": CONFIG["id"],
        "batch_size": 4,
        "poll_interval_s": 0.05,
        "lease_duration_s": CONFIG["lease_s"],
        "heartbeat_interval_s": min(0.2, CONFIG["lease_s"] / 4),
    }
    if CONFIG["dsn"].startswith("postgresql"):
        from onestep_sql.postgres import PostgresExecutionSource

        return PostgresExecutionSource(**options)
    from onestep_sql.mysql import MySQLExecutionSource

    return MySQLExecutionSource(**options)


async def handle(ctx: Any, payload: dict[str, Any]) -> dict[str, Any]:
    what = payload["do"]
    if what == "sleep":
        await asyncio.sleep(600)
    if what == "die":  # as the kernel would end it when memory runs out
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "fail" or (what == "fail once" and ctx.current.attempts == 0):
        raise ValueError(what)
    return {"did": what}


app = OneStepApp("states", shutdown_timeout_s=3.0)
for name in CONFIG["tasks"]:
    app.task(name=name, source=source(name), concurrency=4, retry=MaxAttempts(2, delay_s=0))(handle)
