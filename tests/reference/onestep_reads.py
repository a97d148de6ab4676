"""Run by an interpreter that has onestep: print the reads that a claim and a list send, as JSON.

onestep_reads.py DSN EXECUTIONS ATTEMPTS: each statement with its parameters put in, in the order in which they are sent.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from onestep import ExecutionClient
from onestep.execution import ExecutionStatus
from onestep_life import Clock, backend


def with_parameters(statement: str, parameters: Any) -> str:
    """The statement with each value in its place; moments are :now."""
    values = iter(parameters) if isinstance(parameters, tuple | list) else None

    def value(match: re.Match[str]) -> str:
        found = next(values) if values is not None else parameters[match["name"]]
        if isinstance(found, datetime):
            return ":now"
        return f"'{found}'" if isinstance(found, str) else str(found)

    return re.sub(r"%(?:\((?P<name>\w+)\))?s(?:::(?:TIMESTAMP WITH TIME ZONE|[A-Z]+))?", value, statement)


async def main(dsn: str, executions: str, attempts: str) -> None:
    store = backend(dsn, executions, attempts, Clock(), auto_create=False)
    async with ExecutionClient(store, namespace="n") as client:
        await client.list(limit=1)
        sent: list[str] = []

        def keep(conn: Any, cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
            if executions in statement:
                sent.append(" ".join(with_parameters(statement, parameters).split()))

        sa.event.listen(store.engine.sync_engine, "before_cursor_execute", keep)
        await store.claim("n", ("t",), 4, 60, "w")
        claim, sent[:] = list(sent), []
        await client.list(limit=50)
        await client.list(task_name="t", status=ExecutionStatus.FAILED, limit=50)
        print(json.dumps({"claim": claim, "list": sent}))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
