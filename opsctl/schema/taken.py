"""Names that the tables of a pair would need and that something else already has."""

from __future__ import annotations

from opsctl.db import Session
from opsctl.dialects.names import Pair
from opsctl.dialects.postgresql import PostgreSQL

_POSTGRESQL = """
SELECT c.relname AS name,
       CASE c.relkind WHEN 'i' THEN 'an index' WHEN 'I' THEN 'an index' WHEN 'S' THEN 'a sequence' WHEN 'v' THEN 'a view'
                      WHEN 'm' THEN 'a materialized view' WHEN 'c' THEN 'a type' ELSE 'a table' END AS kind
  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname = :schema AND c.relname = ANY (:names)
UNION
SELECT t.typname, 'a type'
  FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
 WHERE n.nspname = :schema AND t.typname = ANY (:tables) AND t.typrelid = 0
 ORDER BY 1
"""
_MYSQL = """
SELECT constraint_name AS name,
       CONCAT('a ', LOWER(constraint_type), ' constraint of ', table_name) AS kind
  FROM information_schema.table_constraints
 WHERE constraint_schema = DATABASE() AND constraint_type IN ({types})
 ORDER BY 1
"""


def taken_names(session: Session, pair: Pair, creates: tuple[str, ...], *, schema: str | None) -> dict[str, str]:
    """Return what stands under a name that creating the tables `creates` needs: name -> what it is.

    On PostgreSQL indexes, sequences, views and types share the tables' names; on MySQL CHECKs and foreign keys have names
    that are unique in a database, on MariaDB foreign keys. What the account may not see is not found here; the server
    then refuses the statement.
    """
    if not creates:
        return {}
    derived = session.dialect.derived_names(pair)
    ours = {derived[default] for default in derived if any(_belongs(default, table, pair) for table in creates)}
    if isinstance(session.dialect, PostgreSQL):
        rows = session.rows(_POSTGRESQL, schema=schema, names=sorted(ours), tables=sorted(creates))
        return {row["name"]: row["kind"] for row in rows}
    types = "'FOREIGN KEY'" if session.server.product == "MariaDB" else "'FOREIGN KEY', 'CHECK'"
    folded = {name.lower() for name in ours}
    found = session.rows(_MYSQL.format(types=types))
    return {row["name"]: row["kind"] for row in found if str(row["name"]).lower() in folded}


def _belongs(default_name: str, table: str, pair: Pair) -> bool:
    """Whether the object of the default pair with this name belongs to the default twin of `table`."""
    of_attempts = "onestep_execution_attempts" in default_name
    return of_attempts == (table == pair.attempts)
