"""Verify a live pair against the expected one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from opsctl.db import Session
from opsctl.dialects import AnyDialect
from opsctl.dialects.base import Server
from opsctl.dialects.mariadb import MariaDB
from opsctl.dialects.names import Pair, validate_pair
from opsctl.dialects.postgresql import PostgreSQL
from opsctl.errors import Guarded, StatementRefused, UsageError
from opsctl.schema import read_mysql, read_postgresql
from opsctl.schema.diff import compare_table
from opsctl.schema.expected import UUID_CHAR, UUID_NATIVE, VERSION, expected_pair
from opsctl.schema.findings import ERROR, INFO, WARNING, Finding, at_least
from opsctl.schema.model import Table, Unread
from opsctl.schema.operational import load_operational
from opsctl.schema.versions import read_versions, recorded_indexes, version_table

MATCH = "match"
DRIFT = "drift"
UNKNOWN = "unknown"


@dataclass(frozen=True)
class Verification:
    """The answer about one pair.

    `made_by` names the SQLAlchemy generation that made the tables, where that shows (MariaDB); `live` holds the tables
    as read, None for a missing one; `schema` is where they are on PostgreSQL.
    """

    target: str
    server: Server
    pair: Pair
    findings: tuple[Finding, ...]
    unread: tuple[tuple[str, Unread], ...]
    live: tuple[Table | None, Table | None]
    made_by: str | None = None
    schema: str | None = None

    @property
    def verdict(self) -> str:
        """ "drift" for an error or a warning (info never makes drift), "unknown" when a fact is unread, else "match"."""
        if self.fails(WARNING):
            return DRIFT
        return UNKNOWN if self.unread else MATCH

    def fails(self, fail_on: str) -> bool:
        """Whether there is a finding of severity `fail_on` or graver."""
        return any(at_least(finding.severity, fail_on) for finding in self.findings)

    @property
    def matches_version(self) -> str | None:
        """The known version whose tables these are, None when they differ or could not be read whole."""
        return VERSION if self.verdict == MATCH else None

    def as_dict(self) -> dict[str, Any]:
        """The answer in the form of the JSON contract, format 1."""
        return {
            "format": 1,
            "target": self.target,
            "server": {"product": self.server.product, "version": self.server.version},
            "verdict": self.verdict,
            "matches_version": self.matches_version,
            "made_by": self.made_by,
            "schema": self.schema,
            "tables": {"executions": self.pair.executions, "attempts": self.pair.attempts},
            "findings": [finding.as_dict() for finding in self.findings],
            "unread": [
                {"table": table, "object": fact.object, "property": fact.property, "reason": fact.reason}
                for table, fact in self.unread
            ],
        }


def verify_pair(session: Session, pair: Pair, *, schema: str | None = None) -> Verification:
    """Read the pair and compare it. Read-only: catalog reads and SHOW CREATE TABLE, no lock kept.

    `schema` is PostgreSQL's; None takes each table where the search_path finds it, as onestep does. Raises UsageError
    for names that this server cannot have, for a schema that does not exist and without a database, Unreachable after a
    timeout.
    """
    dialect = session.dialect
    validate_pair(pair, max_length=dialect.identifier_limit)
    names = (pair.executions, pair.attempts)
    if isinstance(dialect, PostgreSQL):
        if schema is not None:
            require_schema(session, schema)
        found = read_postgresql.read_tables(session, names, schema=schema)
    else:
        if session.scalar("SELECT DATABASE()") is None:
            raise UsageError(
                f"{session.target}: the DSN names no database",
                "add it: mysql://user@host:3306/DATABASE",
            )
        found = read_mysql.read_tables(session, names)
    live = (found[pair.executions], _qualified_keys(found[pair.executions], found[pair.attempts]))
    uuid_type = uuid_type_of(dialect, session, live)
    expected = expected_pair(dialect, pair, uuid_type=uuid_type)
    findings: list[Finding] = []
    unread: list[tuple[str, Unread]] = []
    where = live[0].options.get("schema") if live[0] is not None else None
    operational = load_operational(dialect, pair, where)
    recorded = _recorded_indexes(session, pair, where) if live[0] is not None else None
    if (
        recorded is None
        and live[0] is not None
        and any(item.is_hidden_in(live[0]) for item in operational if item.hides)
    ):
        reason = "the account has no SELECT on it, or it is not opsctl's: whether an index was hidden on purpose is not known"
        unread.append((pair.executions, Unread(version_table(pair), "record", reason)))
    for wanted, table in zip(expected, live, strict=True):
        extra = (operational, recorded) if wanted is expected[0] else ((), None)
        findings += compare_table(dialect, wanted, table, *extra)
        unread += [(wanted.name, fact) for fact in (table.unread if table is not None else ())]
    findings = [
        replace(finding, message=f"{finding.message}; {_way_back(session, pair, live, finding.table, schema)}")
        if (finding.kind, finding.property) == ("table", "existence")
        else finding
        for finding in findings
    ]
    findings += _collation_clash(pair, live)
    made_by = None
    if isinstance(dialect, MariaDB) and live[0] is not None:
        made_by = "SQLAlchemy 2.1" if uuid_type == UUID_NATIVE else "SQLAlchemy 2.0"
        findings += _char_uuid_hazard(dialect, session, live, uuid_type)
    schemas = {table.options["schema"] for table in live if table is not None and "schema" in table.options}
    return Verification(
        target=str(session.target),
        server=session.server,
        pair=pair,
        findings=tuple(findings),
        unread=tuple(unread),
        live=live,
        made_by=made_by,
        schema=next(iter(schemas)) if len(schemas) == 1 else None,
    )


def _recorded_indexes(session: Session, pair: Pair, schema: str | None) -> frozenset[str] | None:
    """Return the operational indexes on record, none without a record; None where it cannot be read."""
    try:
        return recorded_indexes(read_versions(session, pair, schema=schema))
    except (StatementRefused, Guarded):
        session.rollback()
        return None


def _qualified_keys(executions: Table | None, attempts: Table | None) -> Table | None:
    """Name the tables that foreign keys point to as seen from the executions table: the pair may stand in two schemas."""
    if executions is None or attempts is None or "schema" not in executions.options:
        return attempts

    def seen(table: str) -> str:
        full = table if "." in table else f"{attempts.options['schema']}.{table}"
        return executions.name if full == f"{executions.options['schema']}.{executions.name}" else full

    keys = tuple(replace(key, ref_table=seen(key.ref_table)) for key in attempts.foreign_keys)
    return replace(attempts, foreign_keys=keys)


def require_schema(session: Session, schema: str) -> None:
    """Raise UsageError when PostgreSQL has no schema of that name."""
    if not session.scalar("SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = :name)", name=schema):
        raise UsageError(
            f"{session.target}: there is no schema {schema!r}",
            f"correct --schema, or have it created: CREATE SCHEMA {session.dialect.quote(schema)}",
        )


def _way_back(
    session: Session, pair: Pair, live: tuple[Table | None, Table | None], missing: str, schema: str | None
) -> str:
    """What to do about a missing table: it may stand in another schema, or its pair may be in the way."""
    if isinstance(session.dialect, PostgreSQL) and schema is None:
        others = read_postgresql.schemas_with(session, missing)
        if others:
            listed = ", ".join(others[:5]) + (" and more" if len(others) > 5 else "")
            return f"the search_path does not lead to schema {listed}, which has a table of this name: give --schema {others[0]}"
    if missing == pair.executions and live[1] is not None:
        # Its foreign key went with the executions table, and init-tables does not touch a table that differs.
        return f"{pair.attempts} is still there: restore {missing}, or drop {pair.attempts} and run opsctl init-tables"
    return "opsctl init-tables creates it"


def uuid_type_of(dialect: AnyDialect, session: Session, live: tuple[Table | None, Table | None]) -> str:
    """Return which of the two genuine uuid types the pair is made with; what a new pair gets when none is there."""
    if isinstance(dialect, PostgreSQL):
        return UUID_NATIVE
    if not isinstance(dialect, MariaDB):
        return UUID_CHAR
    for table in live:
        for column in table.columns if table is not None else ():
            if column.name.lower() == "id" and column.type in (UUID_CHAR, UUID_NATIVE):
                return column.type
    return UUID_NATIVE if session.server.number >= dialect.uuid_type_since else UUID_CHAR


def _collation_clash(pair: Pair, live: tuple[Table | None, Table | None]) -> list[Finding]:
    """char(32) ids of two collations: an ALTER under foreign_key_checks=0 or a restore leaves them so."""
    sides = [
        next((column for column in table.columns if column.name.lower() == name), None) if table is not None else None
        for table, name in zip(live, ("id", "execution_id"), strict=True)
    ]
    if sides[0] is None or sides[1] is None or not (sides[0].collation and sides[1].collation):
        return []
    if sides[0].collation == sides[1].collation or sides[0].charset != sides[1].charset:
        return []  # another charset is a finding of its own
    message = f"has another collation than {pair.executions}.id: joining attempts with executions fails or passes by the index, and the foreign key cannot be made"
    values = (sides[0].collation, sides[1].collation)
    return [Finding(pair.attempts, "column", sides[1].name, "collation", ERROR, *values, message)]


def _char_uuid_hazard(
    dialect: MariaDB, session: Session, live: tuple[Table | None, Table | None], uuid_type: str
) -> list[Finding]:
    """Genuine, and a trap: SQLAlchemy 2.1 writes uuids with dashes, 36 characters, on a server that has the type."""
    if uuid_type != UUID_CHAR or session.server.number < dialect.uuid_type_since or live[0] is None:
        return []
    message = (
        "the pair has char(32) ids, as SQLAlchemy 2.0 makes them: a worker or API on SQLAlchemy 2.1 fails with "
        "\"Data too long for column 'id'\" on this server; keep SQLAlchemy below 2.1 there"
    )
    return [Finding(live[0].name, "column", "id", "generation", INFO, UUID_NATIVE, UUID_CHAR, message)]
