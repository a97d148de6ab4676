"""The record of a change: one JSON line before it is committed, one after."""

from __future__ import annotations

import getpass
import json
import os
import socket
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from opsctl.db import Session
from opsctl.dialects.names import Pair


class Audit:
    """Writes the record of one command through `write`, which takes a line; the facts are the same in both lines."""

    def __init__(self, write: Callable[[str], None], command: str, session: Session, pair: Pair) -> None:
        self._write = write
        self._facts: dict[str, Any] = {
            "audit": 1,
            "id": str(uuid.uuid4()),
            "command": command,
            "who": f"{_user()}@{socket.gethostname()}",
            "pid": os.getpid(),
            "account": str(session.scalar("SELECT CURRENT_USER")),
            "target": str(session.target),
            "server": str(session.server),
            "tables": [pair.executions, pair.attempts],
        }

    def record(self, event: str, **facts: Any) -> None:
        """Write one line; `event` is "begin", "committed" or "failed"."""
        self._facts |= facts
        moment = datetime.now(UTC).isoformat(timespec="milliseconds")
        self._write(json.dumps({"event": event, "time": moment, **self._facts}, ensure_ascii=False, default=str))


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # an id without a name, as in many containers
        return f"uid {os.getuid()}"
