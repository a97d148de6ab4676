"""How many rows a table has, as far as the server knows without counting."""

from __future__ import annotations

from opsctl.db import Session
from opsctl.dialects.names import Pair
from opsctl.dialects.postgresql import PostgreSQL
from opsctl.schema.versions import qualified

#: Bytes of an execution with a small payload, for a table of which PostgreSQL has no statistics yet.
_ROW_BYTES = 300
_ENTRY_BYTES = 80

_POSTGRESQL = """
SELECT reltuples AS rows, relpages AS analyzed,
       pg_relation_size(oid) / current_setting('block_size')::bigint AS pages
  FROM pg_catalog.pg_class WHERE oid = to_regclass(:name)
"""


def estimate_rows(session: Session, pair: Pair, schema: str | None) -> int:
    """Return the server's own estimate of the rows of the executions table; on MySQL it may be off by half."""
    if isinstance(session.dialect, PostgreSQL):
        return _rows_of(session, qualified(session.dialect, pair.executions, schema), _ROW_BYTES)
    if session.server.product == "MySQL":
        session.run("SET SESSION information_schema_stats_expiry = 0")  # else its figures may be a day old
    return int(
        session.scalar(
            "SELECT table_rows FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = :name",
            name=pair.executions,
        )
        or 0
    )


def estimate_entries(session: Session, index: str, schema: str | None) -> int:
    """Return how many entries an index of PostgreSQL has, by the server's own estimate; 0 for one that is not there."""
    return _rows_of(session, qualified(session.dialect, index, schema), _ENTRY_BYTES)


def _rows_of(session: Session, name: str, row_bytes: int) -> int:
    """As the planner does it: the rows of the last ANALYZE, as many times over as there are more pages now."""
    rows = session.rows(_POSTGRESQL, name=name)
    if not rows or not rows[0]["pages"]:
        return 0
    known, analyzed, pages = float(rows[0]["rows"]), int(rows[0]["analyzed"]), int(rows[0]["pages"])
    if known > 0 and analyzed > 0:
        return round(known / analyzed * pages)
    return pages * 8192 // row_bytes
