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
from opsctl.errors import Guarded


class Audit:
    """Writes the record of one command through `write`, which takes a line; the facts are the same in both lines."""

    def __init__(self, write: Callable[[str], None], command: str, session: Session, pair: Pair) -> None:
        self._write = write
        self._begun = False
        self._redact = session.target.redact
        self._facts: dict[str, Any] = {
            "audit": 1,
            "id": str(uuid.uuid4()),
            "command": command,
            "who": f"{_user()}@{socket.gethostname()}",
            "pid": os.getpid(),
            "account": session.target.redact(str(session.scalar("SELECT CURRENT_USER"))),
            "target": str(session.target),
            "server": str(session.server),
            "tables": [pair.executions, pair.attempts],
        }

    def record(self, event: str, **facts: Any) -> None:
        """Write one line; `event` is "begin", "committed" or "failed". Raises Guarded when it cannot be written."""
        self._facts |= {key: self._redact(value) if isinstance(value, str) else value for key, value in facts.items()}
        if event == "failed" and not self._begun:
            return  # nothing was changed and nothing was about to be
        self._begun = True
        line = self._line(event)
        try:
            self._write(line)
        except OSError as error:
            if event == "failed":
                return  # what failed says more
            done = "the change is made" if event == "committed" else "nothing was changed"
            raise Guarded(
                f"the audit record cannot be written: {error.strerror}", f"{done}; give --audit-file a place with room"
            ) from None

    def _line(self, event: str) -> str:
        moment = datetime.now(UTC).isoformat(timespec="milliseconds")
        return json.dumps({"event": event, "time": moment, **self._facts}, ensure_ascii=False, default=str)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # an id without a name, as in many containers
        return f"uid {os.getuid()}"
