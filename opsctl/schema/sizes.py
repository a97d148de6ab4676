"""How many rows a table has, as far as the server knows without counting."""

from __future__ import annotations

from opsctl.db import Session
from opsctl.dialects.names import Pair
from opsctl.dialects.postgresql import PostgreSQL
from opsctl.schema.versions import qualified

#: Bytes of an execution with a small payload, for a table of which PostgreSQL has no statistics yet.
_ROW_BYTES = 300


def estimate_rows(session: Session, pair: Pair, schema: str | None) -> int:
    """Return the server's own estimate of the rows of the executions table; on MySQL it may be off by half."""
    if isinstance(session.dialect, PostgreSQL):
        name = qualified(session.dialect, pair.executions, schema)
        found = session.scalar("SELECT reltuples FROM pg_catalog.pg_class WHERE oid = to_regclass(:name)", name=name)
        if found is not None and found > 0:
            return int(found)
        size = session.scalar("SELECT pg_relation_size(to_regclass(:name))", name=name)
        return int(size or 0) // _ROW_BYTES
    return int(
        session.scalar(
            "SELECT table_rows FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = :name",
            name=pair.executions,
        )
        or 0
    )
