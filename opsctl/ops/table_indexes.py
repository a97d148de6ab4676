"""The operational indexes of init-tables --with-indexes: which are missing, what they need, and what they mend."""

from __future__ import annotations

from collections.abc import Sequence

from opsctl.db import Session
from opsctl.dialects.names import Pair
from opsctl.dialects.postgresql import PostgreSQL
from opsctl.errors import Guarded
from opsctl.schema.findings import Finding
from opsctl.schema.grants import read_mysql_rights
from opsctl.schema.model import Table
from opsctl.schema.operational import Operational, load_operational
from opsctl.schema.sizes import estimate_rows
from opsctl.schema.versions import qualified, recorded_indexes

#: A table of so many rows is indexed in a moment.
SMALL = 10_000


def recommended_indexes(session: Session, pair: Pair, schema: str | None) -> tuple[Operational, ...]:
    """Return the operational indexes that a new pair gets."""
    return tuple(item for item in load_operational(session.dialect, pair, schema) if not item.optional)


def plan_indexes(
    session: Session, pair: Pair, table: Table | None, recorded: frozenset[str] | None, schema: str | None
) -> tuple[tuple[Operational, ...], frozenset[str]]:
    """Return the recommended operational indexes that do not hold, and the names of all that will be on record.

    `table` is the live executions table, `recorded` the revisions on record. Raises Guarded when a table has too many rows.
    """
    wanted = recommended_indexes(session, pair, schema)
    missing = tuple(item for item in wanted if table is None or not item.holds_in(table))
    if table is not None and missing:
        rows = estimate_rows(session, pair, schema)
        if rows > SMALL:
            raise Guarded(
                f"{session.target}: {pair.executions} has about {rows:,} rows, too many to index beside a running application",
                "opsctl tune apply does that online; leave --with-indexes out here",
            )
    own = {item.name for item in wanted if item not in missing and table is not None and item.is_own_in(table)}
    return missing, recorded_indexes(recorded) | own | {item.name for item in missing}


def is_mended(finding: Finding, wanted: Sequence[Operational]) -> bool:
    """Whether making or recording `wanted` mends `finding`: one is gone, or the hiding and its record do not agree.

    A run that was killed on MySQL or MariaDB leaves such a thing, and the next is to finish it.
    """
    return any(
        finding.object.lower() == item.object.lower() and finding.property == ("visible" if item.hides else "existence")
        for item in wanted
    )


def lacks_for_indexes(
    session: Session, pair: Pair, indexes: Sequence[Operational], *, exists: bool, schema: str | None
) -> dict[str, list[str]]:
    """Return the rights that making `indexes` needs and lacks. `exists`: the executions table is there already."""
    if not indexes:
        return {}
    if isinstance(session.dialect, PostgreSQL):
        if not exists:  # who makes it owns it
            return {}
        owns = "SELECT pg_has_role(relowner, 'USAGE') FROM pg_catalog.pg_class WHERE oid = to_regclass(:name)"
        if session.scalar(owns, name=qualified(session.dialect, pair.executions, schema)):
            return {}
        return {pair.executions: ["the ownership"]}
    # CREATE INDEX wants INDEX alone, and ALTER INDEX the right ALTER.
    needed = ["INDEX"] * any(item.index for item in indexes) + ["ALTER"] * any(item.hides for item in indexes)
    missing = read_mysql_rights(session).missing(pair.executions, *needed)
    return {pair.executions: missing} if missing else {}
