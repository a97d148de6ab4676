"""Run by an interpreter that has onestep: submit five reports for the demo's worker and wait for their ends.

onestep_submit.py DSN EXECUTIONS ATTEMPTS prints the statuses as JSON, sorted.
"""

from __future__ import annotations

import asyncio
import json
import sys

from onestep import ExecutionClient
from onestep_life import Clock, backend

from opsctl.demo.contract import NAMESPACE, TASK

ENDED = {"succeeded", "failed", "cancelled", "expired"}


async def main(dsn: str, executions: str, attempts: str) -> None:
    store = backend(dsn, executions, attempts, Clock(), auto_create=False)
    async with ExecutionClient(store, namespace=NAMESPACE) as client:
        submitted = [await client.submit(TASK, {"pages": pages}) for pages in (1, 2, 3, 4, "many")]
        async with asyncio.timeout(40):
            while True:
                statuses = [(await client.get(one.id)).status.value for one in submitted]
                if set(statuses) <= ENDED:
                    break
                await asyncio.sleep(0.05)
    print(json.dumps(sorted(statuses)))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
