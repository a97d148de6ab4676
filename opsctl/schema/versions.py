"""The version record of a pair: Alembic's, in a table of the pair's own, on the branches `tables` and `indexes`.

The branch `indexes` begins with the empty `indexes_0001`; each operational index is a revision of its own behind it, so that
the record says which of them stand.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from opsctl.db import Session, in_text
from opsctl.dialects import AnyDialect
from opsctl.dialects.names import Pair, derive_name
from opsctl.dialects.postgresql import PostgreSQL
from opsctl.errors import Guarded, StatementRefused
from opsctl.resources import find_resource
from opsctl.schema.operational import NAMES, revision_of

if TYPE_CHECKING:
    from alembic.config import Config

TABLES_HEAD = "tables_0001"
INDEXES_BASE = "indexes_0001"
INDEX_REVISIONS: Mapping[str, str] = {name: revision_of(name) for name in NAMES}
KNOWN_REVISIONS = frozenset((TABLES_HEAD, INDEXES_BASE, *INDEX_REVISIONS.values()))

#: PostgreSQL's limit less the `_pkc` that Alembic puts behind the name of the version table's key.
_VERSION_TABLE_LIMIT = 59


def version_table(pair: Pair) -> str:
    """Return the name of the pair's version table, the same on every server."""
    return derive_name("opsctl_rev_", pair.executions, pair.attempts, max_length=_VERSION_TABLE_LIMIT)


def read_versions(session: Session, pair: Pair, *, schema: str | None) -> frozenset[str] | None:
    """Return the revisions recorded for `pair` (one of each branch at most), None without a record table.

    `schema` is PostgreSQL's. Raises StatementRefused when the record cannot be read,
    Guarded when it names a revision that this opsctl does not have.
    """
    name = version_table(pair)
    if isinstance(session.dialect, PostgreSQL):
        exists = session.scalar(
            "SELECT EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
            " WHERE c.relname = :name AND n.nspname = :schema)",
            name=name,
            schema=schema or "",
        )
    else:
        exists = session.scalar(
            "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = :name",
            name=name,
        )
    if not exists:
        return None
    quoted = qualified(session.dialect, name, schema)
    try:
        found = session.run(f"SELECT version_num FROM {quoted}")  # noqa: S608 (quoted)
    except StatementRefused as error:
        hint = f"have SELECT on {name} granted; if it is no version record of opsctl, rename it"
        raise StatementRefused(error.message, hint) from error.__cause__
    revisions = frozenset(str(row[0]) for row in found)
    if unknown := revisions - KNOWN_REVISIONS:
        raise Guarded(
            f"{session.target}: the version record {name} names {', '.join(sorted(unknown))}, which this opsctl does not know",
            "a newer opsctl may have made it: use that one; if it is no version record of opsctl, rename it",
        )
    return revisions


def qualified(dialect: AnyDialect, name: str, schema: str | None) -> str:
    """Return `name` quoted, with its schema where one is given."""
    return f"{dialect.quote(schema)}.{dialect.quote(name)}" if schema else dialect.quote(name)


def load_alembic() -> None:
    """Import what `upgrade_tables` needs: a tenth of a second that is better spent before a lock is taken."""
    import alembic.command
    import alembic.config
    import alembic.runtime.environment  # noqa: F401


def run_given_statements() -> None:
    """The upgrade and the downgrade of a revision: run the statements that opsctl gives with it."""
    from alembic import context, op

    for statement in context.config.attributes["statements"]:
        op.execute(statement)


def upgrade_tables(session: Session, pair: Pair, statements: list[str], *, schema: str | None) -> None:
    """Run `statements` as the revision `tables_0001` and record it, in the session's transaction and under its lock.

    With no statements the tables are there already and are only recorded.
    """
    from alembic import command

    config = _config(session.dialect, pair, statements, schema)
    config.attributes["connection"] = session.connection
    with session.guarded():
        command.upgrade(config, f"tables@{TABLES_HEAD}")


def forget_tables(session: Session, pair: Pair, *, schema: str | None) -> None:
    """Take the record of the branch `tables` back: the tables that it speaks of are gone."""
    session.run(forget_sql(session.dialect, pair, schema=schema))


def forget_sql(dialect: AnyDialect, pair: Pair, *, schema: str | None) -> str:
    """Return the statement of `forget_tables`."""
    quoted = qualified(dialect, version_table(pair), schema)
    return f"DELETE FROM {quoted} WHERE version_num LIKE 'tables\\_%'"  # noqa: S608 (quoted)


def recorded_indexes(revisions: Collection[str] | None) -> frozenset[str]:
    """Return the names of the operational indexes among the revisions on record."""
    return frozenset(name for name, revision in INDEX_REVISIONS.items() if revision in (revisions or ()))


def record_indexes(session: Session, pair: Pair, names: Collection[str], *, schema: str | None) -> None:
    """Have exactly the operational indexes `names` on record, in the session's transaction; the caller commits.

    Makes the version table when there is none, as Alembic does. The branch `tables` stays as it is.
    """
    from alembic.runtime.migration import MigrationContext

    recorded = read_versions(session, pair, schema=schema)
    if recorded is None:
        options = {"version_table": version_table(pair), "version_table_schema": schema}
        with session.guarded():
            context = MigrationContext.configure(session.connection, opts=options)
            context._ensure_version_table()
    quoted = in_text(qualified(session.dialect, version_table(pair), schema))
    had = {revision for revision in recorded or () if revision == INDEXES_BASE or revision in INDEX_REVISIONS.values()}
    wanted = {INDEX_REVISIONS[name] for name in names}
    for revision in sorted(had - wanted):
        session.rows(f"DELETE FROM {quoted} WHERE version_num = :revision", revision=revision)  # noqa: S608 (quoted)
    for revision in sorted(wanted - had):
        session.rows(f"INSERT INTO {quoted} (version_num) VALUES (:revision)", revision=revision)  # noqa: S608 (quoted)


def upgrade_sql(
    dialect: AnyDialect,
    pair: Pair,
    statements: list[str],
    *,
    schema: str | None,
    record_exists: bool,
) -> str:
    """Return the SQL that `upgrade_tables` would run, record included, without a connection."""
    from alembic import command

    buffer = io.StringIO()
    config = _config(dialect, pair, statements, schema)
    config.output_buffer = buffer
    config.attributes["output_buffer"] = buffer
    command.upgrade(config, f"tables@{TABLES_HEAD}", sql=True)
    text = buffer.getvalue()
    if record_exists:
        start = text.index("CREATE TABLE")
        text = text[:start] + text[text.index(";", start) + 1 :].lstrip()
    return text


def _config(dialect: AnyDialect, pair: Pair, statements: list[str], schema: str | None) -> Config:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(find_resource("migrations")).replace("%", "%%"))
    attributes: dict[str, Any] = {
        "pair": pair,
        "statements": statements,
        "dialect_name": "postgresql" if isinstance(dialect, PostgreSQL) else "mysql",
        "version_table": version_table(pair),
        "version_schema": schema,
    }
    config.attributes.update(attributes)
    return config
