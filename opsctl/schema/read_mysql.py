"""Read tables from MySQL and MariaDB: SHOW CREATE TABLE is the truth, the catalog adds triggers and leftovers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from opsctl.db import Session
from opsctl.errors import OpsctlError
from opsctl.failures import error_code
from opsctl.schema.grants import MySQLRights, read_mysql_rights
from opsctl.schema.model import Table, Trigger, Unread
from opsctl.schema.show_create import parse_show_create

_NO_SUCH_TABLE = (1146, 1051)
_DENIED = (1142, 1143, 1044, 1227)

#: What pt-online-schema-change and gh-ost leave beside a table when they are killed.
_BESIDE = ("_{}_new", "_{}_old", "_{}_gho", "_{}_ghc", "_{}_del")

_TRIGGERS = """
SELECT event_object_table AS tab, trigger_name AS name,
       CONCAT(action_timing, ' ', event_manipulation, ' FOR EACH ROW ', action_statement) AS definition
  FROM information_schema.triggers
 WHERE event_object_schema = DATABASE() AND LOWER(event_object_table) = LOWER(:name)
 ORDER BY trigger_name
"""
_TABLES = """
SELECT table_name AS name FROM information_schema.tables
 WHERE table_schema = DATABASE() AND LOWER(table_name) IN :names ORDER BY table_name
"""


def read_tables(session: Session, names: Iterable[str]) -> dict[str, Table | None]:
    """Read the tables `names` of the current database; None for one that does not exist.

    What the account may not see becomes an unread fact of its table. Waits for a metadata lock up to the lock timeout.
    """
    rights = read_mysql_rights(session)
    collations: dict[str, str] = {}
    return {name: _read_table(session, name, rights, collations) for name in names}


def _read_table(session: Session, name: str, rights: MySQLRights, collations: dict[str, str]) -> Table | None:
    try:
        row = session.run(f"SHOW CREATE TABLE {session.dialect.quote(name)}")[0]
    except OpsctlError as error:
        code = error_code(error)
        if code in _NO_SUCH_TABLE:
            return None
        if code in _DENIED:
            reason = (
                "the account has no SELECT on this table, so SHOW CREATE TABLE is refused (or the table does not exist)"
            )
            return Table(name, unread=(Unread(name, "table", reason),))
        raise
    if str(row[1]).lstrip().upper().startswith("CREATE TABLE"):
        try:
            table = parse_show_create(
                str(row[1]), default_collation=lambda charset: _default(session, charset, collations)
            )
        except ValueError as error:
            reason = f"opsctl cannot read what SHOW CREATE TABLE prints: {error}"
            return Table(name, unread=(Unread(name, "table", reason),))
    else:
        return Table(name, kind="sequence" if "SEQUENCE" in str(row[1]).upper()[:20] else "view")
    if table.options.get("sequence") == "1":  # MariaDB prints a sequence as a table
        return Table(name, kind="sequence")
    triggers = tuple(Trigger(found["name"], found["definition"]) for found in session.rows(_TRIGGERS, name=name))
    unread = list(table.unread)
    if not triggers and "TRIGGER" not in rights.on(name):
        unread.append(
            Unread(
                name,
                "triggers",
                "the account has no TRIGGER right, and without it the server shows none: have TRIGGER granted on the database",
            )
        )
    if not rights.sees_all_tables:
        unread.append(
            Unread(
                name,
                "leftovers",
                "the account has rights on single tables only and sees no others, so what an online change left beside them is not known",
            )
        )
    leftovers = [pattern.format(name).lower() for pattern in _BESIDE]
    beside = tuple(str(found[0]) for found in session.run(_in_list(_TABLES, leftovers)))
    return replace(table, name=name, triggers=triggers, beside=beside, unread=tuple(unread))


def _in_list(sql: str, names: Iterable[str]) -> str:
    # Table names of a pair are bare identifiers (names.validate_pair), so quoting them is safe.
    return sql.replace(":names", "(" + ", ".join(f"'{name}'" for name in names) + ")")


def _default(session: Session, charset: str, collations: dict[str, str]) -> str:
    if not collations:
        for row in session.rows(
            "SELECT character_set_name AS charset, default_collate_name AS collation_name"
            " FROM information_schema.character_sets"
        ):
            collations[row["charset"]] = row["collation_name"]
    return collations.get(charset, "")
