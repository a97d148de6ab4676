"""A onestep worker as a deployment has it: `onestep run opsctl.demo.worker_app:app`.

It writes "reports". What matters is the source: no table is created by the worker (opsctl has done that), and the DSN
comes from the same variable that opsctl reads.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

from onestep import OneStepApp

from opsctl.demo.contract import NAMESPACE, TASK, VARIABLES


def _source() -> Any:
    options: dict[str, Any] = {
        "namespace": NAMESPACE,
        "task_names": [TASK],
        "auto_create": False,
        "worker_id": "demo-worker",
        "batch_size": 4,
        "poll_interval_s": 0.2,
        # Short, so that a cancelled run hears of it at once; the defaults are 90 and 30 seconds.
        "lease_duration_s": 6.0,
        "heartbeat_interval_s": 0.5,
    }
    if dsn := os.environ.get(VARIABLES["postgresql"]):
        from onestep_sql.postgres import PostgresExecutionSource

        return PostgresExecutionSource(dsn=dsn, **options)
    from onestep_sql.mysql import MySQLExecutionSource

    return MySQLExecutionSource(dsn=os.environ[VARIABLES["mysql"]], **options)


async def write_report(ctx: Any, payload: dict[str, Any]) -> dict[str, Any]:
    """Write the pages of a report, one after the other."""
    pages = int(payload["pages"])
    for _ in range(pages):
        await asyncio.sleep(0.02)
    return {"pages": pages}


app = OneStepApp("opsctl-demo", shutdown_timeout_s=3.0)
app.task(name=TASK, source=_source(), concurrency=4)(write_report)
