"""init-tables: create the pair, complete a half-made one, adopt one that onestep made.

The same locks as onestep's own creation, so both can run at the same moment. On PostgreSQL all of it is one transaction.
On MySQL and MariaDB each CREATE TABLE is atomic and carries its indexes, so a killed run leaves whole tables only, which
the next run completes and records.
"""

from __future__ import annotations

from dataclasses import dataclass

from opsctl.db import Session
from opsctl.dialects import require_supported
from opsctl.dialects.mariadb import MariaDB
from opsctl.dialects.names import Pair
from opsctl.dialects.postgresql import PostgreSQL
from opsctl.errors import Guarded, StatementRefused, Undetermined, UsageError
from opsctl.failures import error_code
from opsctl.ops.audit import Audit
from opsctl.ops.ddl_locks import ddl_locks_of, lock_seconds
from opsctl.ops.table_indexes import is_mended, lacks_for_indexes, plan_indexes, recommended_indexes
from opsctl.schema.expected import UUID_CHAR, VERSION_TITLE
from opsctl.schema.findings import WARNING, at_least
from opsctl.schema.grants import missing_creation_rights
from opsctl.schema.operational import Operational
from opsctl.schema.taken import taken_names
from opsctl.schema.verify import DRIFT, Verification, uuid_type_of, verify_pair
from opsctl.schema.versions import (
    INDEX_REVISIONS,
    TABLES_HEAD,
    forget_sql,
    forget_tables,
    load_alembic,
    qualified,
    read_versions,
    record_indexes,
    recorded_indexes,
    upgrade_sql,
    upgrade_tables,
    version_table,
)
from opsctl.sqlfiles import load_schema_file

SCHEMA_FILE = "V1__tracked_execution.sql"

CREATE = "create"
COMPLETE = "complete"
ADOPT = "adopt"
INDEX = "index"
NOTHING = "nothing"
REFUSE = "refuse"

#: "already exists", from servers where a process that does not take onestep's lock came in between.
_EXISTS = (1050, "42P07", "23505")
_ATTEMPTS_AT_RACE = 2


@dataclass(frozen=True)
class Plan:
    """What init-tables has to do. `action` is create, complete, adopt, index, nothing or refuse.

    `statements` are the DDL of the tables without the record; `indexes` the operational indexes that were asked for and
    do not hold, `on_record` those that will be on record; `schema` is where they go on PostgreSQL; `recorded` the revisions on
    record, None without a record table; `stale_record` that the record speaks of tables which are gone.
    """

    action: str
    verification: Verification
    creates: tuple[str, ...]
    statements: tuple[str, ...]
    schema: str | None
    recorded: frozenset[str] | None
    stale_record: bool
    indexes: tuple[Operational, ...] = ()
    on_record: frozenset[str] = frozenset()

    @property
    def index_statements(self) -> tuple[str, ...]:
        """The statements of `indexes`: on a new or a small table nothing needs CONCURRENTLY, which no transaction takes."""
        return tuple(item.statement.replace("CREATE INDEX CONCURRENTLY", "CREATE INDEX") for item in self.indexes)

    @property
    def summary(self) -> str:
        """What is to be done, or why nothing is, in one line for the operator."""
        pair = self.verification.pair
        both = f"{pair.executions} and {pair.attempts}{self._where}"
        return self._with_indexes(
            {
                INDEX: f"give {both} operational indexes",
                CREATE: f"create {both}, as {VERSION_TITLE}, and the version record {self.record}",
                COMPLETE: f"create {', '.join(self.creates)}{self._where}, as {VERSION_TITLE}: the other of the pair is right",
                ADOPT: f"adopt {both}: they are right, their version goes on record in {self.record}",
                NOTHING: f"nothing to do: {both} are there, right and on record as {VERSION_TITLE}",
                REFUSE: f"{both} differ from {VERSION_TITLE}; nothing was changed",
            }[self.action]
        )

    @property
    def done(self) -> str:
        """What was done, in one line."""
        pair = self.verification.pair
        both = f"{pair.executions} and {pair.attempts}{self._where}"
        if self.action in (NOTHING, REFUSE):
            return self.summary
        return self._with_indexes(
            {
                INDEX: f"{both} have their operational indexes; on record in {self.record}",
                CREATE: f"created {both}, as {VERSION_TITLE}; on record in {self.record}",
                COMPLETE: f"created {', '.join(self.creates)}{self._where}, as {VERSION_TITLE}; on record in {self.record}",
                ADOPT: f"adopted {both}: on record as {VERSION_TITLE} in {self.record}",
            }[self.action]
        )

    def _with_indexes(self, text: str) -> str:
        return f"{text}; indexes: {', '.join(item.name for item in self.indexes)}" if self.indexes else text

    @property
    def record(self) -> str:
        """The name of the version table."""
        return version_table(self.verification.pair)

    @property
    def _where(self) -> str:
        return f" in schema {self.schema}" if self.schema else ""


def plan_tables(session: Session, pair: Pair, *, schema: str | None, names: bool, with_indexes: bool = False) -> Plan:
    """Look, and decide what is to be done. Reads only.

    `names`: look too whether something else has a name that is needed. Without the locks, another process that makes the
    pair in this moment can look like that. `with_indexes`: the recommended operational indexes are to stand as well.

    Raises Guarded for a server that is too old, for a name that something else has, and where indexes are asked for on a
    table that has many rows already; UsageError for a schema that does not exist, Undetermined when a fact
    that decides could not be read, StatementRefused naming the rights that are missing.
    """
    require_supported(session.server)
    verification = verify_pair(session, pair, schema=schema)
    where = _schema(session, verification, schema)
    recorded = read_versions(session, pair, schema=where)
    executions, attempts = verification.live
    missing = [table for table in (executions, attempts) if table is None]
    wanted = recommended_indexes(session, pair, where) if with_indexes else ()
    differences = [
        finding
        for finding in verification.findings
        if at_least(finding.severity, WARNING)
        and (finding.kind, finding.property) != ("table", "existence")
        and not is_mended(finding, wanted)
    ]
    unread = [fact for _, fact in verification.unread if fact.property in ("table", "definition")]
    if unread:
        raise Undetermined(
            f"{session.target}: {unread[0].object} could not be read: {unread[0].reason}",
            "use the migration account's DSN (--dsn-file, OPSCTL_MIGRATION_DSN)",
        )
    sections: tuple[str, ...] = ()
    if differences:
        action = REFUSE
    elif len(missing) == 2:
        action, sections = CREATE, ("executions", "attempts")
    elif missing:
        action, sections = COMPLETE, ("executions",) if executions is None else ("attempts",)
    else:
        action = NOTHING if recorded and TABLES_HEAD in recorded else ADOPT
    indexes, on_record = (
        plan_indexes(session, pair, executions, recorded, where) if with_indexes and action != REFUSE else ((), None)
    )
    if action == NOTHING and on_record is not None and (indexes or on_record - recorded_indexes(recorded)):
        action = INDEX
    plan = Plan(
        action=action,
        verification=verification,
        creates=tuple({"executions": pair.executions, "attempts": pair.attempts}[section] for section in sections),
        statements=_statements(session, pair, verification, sections),
        schema=where,
        recorded=recorded,
        stale_record=bool(sections) and bool(recorded) and TABLES_HEAD in (recorded or ()),
        indexes=indexes,
        on_record=recorded_indexes(recorded) if on_record is None else on_record,
    )
    if names and (taken := taken_names(session, pair, plan.creates, schema=where)):
        name, kind = next(iter(taken.items()))
        raise Guarded(
            f"{session.target}: the name {name} is needed and {kind} has it",
            "rename or drop that, or choose other table names",
        )
    if action in (CREATE, COMPLETE, ADOPT, INDEX):
        _require_rights(session, pair, plan, sections)
    return plan


def plan_again_locked(session: Session, pair: Pair, *, schema: str | None, with_indexes: bool = False) -> Plan:
    """Look again while nobody creates the pair: onestep makes a table first and its indexes after, one by one.

    A difference seen without the locks may be such a moment. Raises Unreachable when a lock is not had in time.
    """
    with ddl_locks_of(session, pair):
        return plan_tables(session, pair, schema=schema, names=True, with_indexes=with_indexes)


def dry_run_sql(session: Session, pair: Pair, plan: Plan) -> str:
    """Return the exact SQL that `apply_plan` would send for `plan`, locks and record included."""
    dialect = session.dialect
    record = ""
    if plan.action != INDEX:  # then the tables are on record already
        record = upgrade_sql(
            dialect,
            pair,
            list(plan.statements),
            schema=plan.schema,
            record_exists=plan.recorded is not None,
        ).strip()
    if plan.indexes or plan.on_record - recorded_indexes(plan.recorded):
        statements = (*plan.index_statements, *_record_statements(session, pair, plan))
        record = "\n\n".join((*([record] if record else []), *(f"{statement};" for statement in statements)))
    if plan.stale_record:
        record = f"{forget_sql(dialect, pair, schema=plan.schema)};\n\n{record}"
    if isinstance(dialect, PostgreSQL):
        path = f"SET LOCAL search_path TO {dialect.quote(plan.schema or '')};\n\n"
        lock = f"SELECT pg_advisory_xact_lock({dialect.ddl_lock(pair)});\n\n"
        return f"BEGIN;\n\n{lock}{path}{record}\n\nCOMMIT;\n"
    locks = dialect.ddl_locks(pair)
    take = "".join(f"SELECT GET_LOCK('{name}', {lock_seconds(session)});\n\n" for name in locks)
    give = "".join(f"SELECT RELEASE_LOCK('{name}');\n\n" for name in reversed(locks))
    return f"{take}{record}\n\n{give}".rstrip() + "\n"


def _record_statements(session: Session, pair: Pair, plan: Plan) -> list[str]:
    new = sorted(INDEX_REVISIONS[name] for name in plan.on_record - recorded_indexes(plan.recorded))
    table = qualified(session.dialect, version_table(pair), plan.schema)
    return [f"INSERT INTO {table} (version_num) VALUES ('{revision}')" for revision in new]  # noqa: S608 (own names)


def apply_plan(session: Session, pair: Pair, *, schema: str | None, audit: Audit, with_indexes: bool = False) -> Plan:
    """Take onestep's locks, look again, and do what is then to be done; return that plan.

    Raises Unreachable when a lock is not had within the session's lock timeout. On any error PostgreSQL is as before;
    MySQL and MariaDB may have whole tables more, which the next run completes.
    """
    load_alembic()
    for attempt in range(1, _ATTEMPTS_AT_RACE + 1):
        try:
            with ddl_locks_of(session, pair):
                return _apply_locked(session, pair, schema=schema, audit=audit, with_indexes=with_indexes)
        except StatementRefused as error:
            audit.record("failed", error=error.message)
            if error_code(error) not in _EXISTS or attempt == _ATTEMPTS_AT_RACE:
                raise
            session.rollback()
        except BaseException as error:
            audit.record("failed", error=str(error) or type(error).__name__)
            raise
    raise AssertionError("unreachable")


def _apply_locked(session: Session, pair: Pair, *, schema: str | None, audit: Audit, with_indexes: bool) -> Plan:
    plan = plan_tables(session, pair, schema=schema, names=True, with_indexes=with_indexes)
    before = sorted(plan.recorded or ())
    if plan.action in (NOTHING, REFUSE):
        return plan
    audit.record(
        "begin",
        action=plan.action,
        schema=plan.schema,
        creates=list(plan.creates),
        indexes=[item.object for item in plan.indexes],
        record=plan.record,
        versions_before=before,
    )
    if isinstance(session.dialect, PostgreSQL):
        session.run(f"SET LOCAL search_path TO {session.dialect.quote(plan.schema or '')}")
    if plan.stale_record:
        forget_tables(session, pair, schema=plan.schema)
    upgrade_tables(session, pair, list(plan.statements), schema=plan.schema)
    for statement in plan.index_statements:
        session.run(statement)
    if plan.on_record != recorded_indexes(plan.recorded):
        record_indexes(session, pair, plan.on_record, schema=plan.schema)
    after = verify_pair(session, pair, schema=plan.schema)
    if after.verdict == DRIFT:
        if session.dialect.transactional_ddl:
            session.rollback()
        raise StatementRefused(
            f"{session.target}: the tables came out other than asked for: {after.findings[0].object} {after.findings[0].message}",
            "opsctl verify-schema shows all of it; a setting or an event trigger of the server changes what is created",
        )
    session.commit()
    audit.record(
        "committed",
        action=plan.action,
        versions_after=sorted({*before, TABLES_HEAD, *(INDEX_REVISIONS[name] for name in plan.on_record)}),
    )
    return plan


def _statements(session: Session, pair: Pair, verification: Verification, sections: tuple[str, ...]) -> tuple[str, ...]:
    dialect = session.dialect
    file = load_schema_file(dialect.name, SCHEMA_FILE).renamed(dialect.derived_names(pair), dialect.quote)
    statements = [statement for section in sections for statement in file.sections[section]]
    if isinstance(dialect, MariaDB) and uuid_type_of(dialect, session, verification.live) == UUID_CHAR:
        # 10.6 has no type uuid, and a half-made pair of SQLAlchemy 2.0 is completed as it was begun.
        statements = [_char_uuids(statement) for statement in statements]
    return tuple(statements)


def _char_uuids(statement: str) -> str:
    return "\n".join(
        line.replace(" uuid ", f" {UUID_CHAR} ", 1) if " uuid " in line else line for line in statement.splitlines()
    )


def _schema(session: Session, verification: Verification, schema: str | None) -> str | None:
    """Return the PostgreSQL schema to work in: the given one, the present half's, else the first of the search_path."""
    if not isinstance(session.dialect, PostgreSQL):
        return None
    if schema is not None:
        return schema  # verify_pair has seen that it exists
    present = [
        table.options["schema"] for table in verification.live if table is not None and "schema" in table.options
    ]
    current = present[0] if present else session.scalar("SELECT current_schema()")
    if current is None:
        closed = session.rows(_CLOSED_SCHEMAS)
        if closed:
            account = session.scalar("SELECT CURRENT_USER")
            raise StatementRefused(
                f"{session.target}: the account {account} lacks USAGE, CREATE on schema {closed[0]['name']}",
                "have that granted, or use the migration account's DSN (--dsn-file, OPSCTL_MIGRATION_DSN)",
            )
        raise UsageError(
            f"{session.target}: the search_path names no schema that exists and may be used, so there is no place for tables",
            "give --schema, or correct the role's search_path",
        )
    return str(current)


#: Schemas that the search_path names and the role may not use.
_CLOSED_SCHEMAS = """
SELECT n.nspname AS name
  FROM unnest(string_to_array(current_setting('search_path'), ',')) WITH ORDINALITY AS p (entry, place)
  JOIN pg_catalog.pg_namespace n
    ON n.nspname = replace(trim(both ' ' from replace(p.entry, '"', '')), '$user', current_user::text)
 WHERE NOT has_schema_privilege(n.oid, 'USAGE')
 ORDER BY p.place
"""


def _require_rights(session: Session, pair: Pair, plan: Plan, sections: tuple[str, ...]) -> None:
    missing = missing_creation_rights(
        session,
        pair,
        sections=sections,
        record=version_table(pair),
        record_exists=plan.recorded is not None,
        stale_record=plan.stale_record,
        schema=plan.schema,
    )
    exists = plan.verification.live[0] is not None
    for table, rights in lacks_for_indexes(session, pair, plan.indexes, exists=exists, schema=plan.schema).items():
        missing.setdefault(table, []).extend(rights)
    if not missing:
        return
    account = session.scalar("SELECT CURRENT_USER")
    lacks = "; ".join(f"{', '.join(rights)} on {where}" for where, rights in missing.items())
    raise StatementRefused(
        f"{session.target}: the account {account} lacks {lacks}",
        "have that granted, or use the migration account's DSN (--dsn-file, OPSCTL_MIGRATION_DSN)",
    )
