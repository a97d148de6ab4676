"""Who follows this server, and what building an index will do to them."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from opsctl.db import Session
from opsctl.dialects.postgresql import PostgreSQL
from opsctl.errors import OpsctlError

_POSTGRESQL = """
SELECT coalesce(nullif(r.application_name, ''), '?') || ' at ' || coalesce(host(r.client_addr), 'a socket') AS name,
       EXISTS (SELECT FROM pg_catalog.pg_replication_slots s
                WHERE s.active_pid = r.pid AND s.slot_type = 'logical') AS logical
  FROM pg_catalog.pg_stat_replication r ORDER BY 1
"""
_DUMPS = """
SELECT host AS name FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%' ORDER BY 1
"""


@dataclass(frozen=True)
class Replica:
    """One that follows: its name as the server tells it, and what the change will do to it."""

    name: str
    effect: str


def find_replicas(session: Session) -> list[Replica]:
    """Return those connected now. What the account may not see is not there: an empty list is no promise."""
    try:
        if isinstance(session.dialect, PostgreSQL):
            return [Replica(row["name"], _on_postgresql(row["logical"])) for row in session.rows(_POSTGRESQL)]
        return [Replica(str(row["name"]), _ON_MYSQL) for row in session.rows(_DUMPS)]
    except OpsctlError:
        with contextlib.suppress(OpsctlError):
            session.rollback()
        return []


def may_see_replicas(session: Session) -> bool:
    """Whether the account would see them: PROCESS on MySQL and MariaDB; PostgreSQL shows that they are there to all."""
    if isinstance(session.dialect, PostgreSQL):
        return True
    with contextlib.suppress(OpsctlError):
        return any(
            "PROCESS" in str(row[0]) or "ALL PRIVILEGES ON *.*" in str(row[0]) for row in session.run("SHOW GRANTS")
        )
    return False


def _on_postgresql(logical: bool) -> str:
    if logical:
        return "follows by logical replication: it does not get the index, build it there by itself"
    return "gets the index through the WAL while it is built here; queries there go on"


_ON_MYSQL = (
    "runs the same ALTER when it is done here, and is behind by about the time that it took until it has done it"
)
