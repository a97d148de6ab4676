"""What the session's own account may do, read from the server."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from opsctl.db import Session
from opsctl.dialects.names import Pair
from opsctl.dialects.postgresql import PostgreSQL

_GRANT = re.compile(r"^(?P<verb>GRANT|REVOKE) (?P<privileges>.+?) ON (?P<scope>.+?) (?:TO|FROM) ", re.IGNORECASE)
_SCOPE = re.compile(r"^(?:TABLE )?(?P<schema>`(?:[^`]|``)+`|\*|[\w$%\\]+)\.(?P<table>`(?:[^`]|``)+`|\*|[\w$]+)$")

#: What ALL PRIVILEGES on a database or table holds of the rights opsctl asks about.
_ALL = frozenset(("SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "REFERENCES", "INDEX", "ALTER", "TRIGGER"))


@dataclass
class MySQLRights:
    """Rights of the current account, active roles included: for the whole database, and for single tables in it."""

    database: set[str] = field(default_factory=set)
    tables: dict[str, set[str]] = field(default_factory=dict)

    def on(self, table: str) -> set[str]:
        """Return the rights on `table`, whether or not it exists."""
        return self.database | self.tables.get(table.lower(), set())

    def missing(self, table: str, *needed: str) -> list[str]:
        """Return those of `needed` that are not held on `table`."""
        held = self.on(table)
        return [right for right in needed if right not in held]


def read_mysql_rights(session: Session) -> MySQLRights:
    """Read the grants of the current account on the current database.

    Column grants are left out: they do not give the whole-table rights that opsctl asks about.
    """
    database = str(session.scalar("SELECT DATABASE()") or "")
    statement = "SHOW GRANTS"
    roles = session.scalar("SELECT CURRENT_ROLE()")
    if session.server.product == "MySQL" and roles and roles != "NONE":
        statement = f"SHOW GRANTS FOR CURRENT_USER() USING {roles}"
    rights = MySQLRights()
    for (line,) in session.run(statement):
        match = _GRANT.match(str(line))
        scope = _SCOPE.match(match["scope"]) if match else None
        if match is None or scope is None:
            continue
        privileges = _privileges(match["privileges"])
        schema, table = _unquote(scope["schema"]), _unquote(scope["table"])
        if schema != "*" and not _matches(schema, database):
            continue
        holder = rights.database if table == "*" else rights.tables.setdefault(table.lower(), set())
        if match["verb"].upper() == "GRANT":
            holder |= privileges
        else:  # partial_revokes: a global right taken back for this database
            holder -= privileges
    return rights


def _privileges(text: str) -> set[str]:
    names = {name.strip().upper() for name in re.sub(r"\([^)]*\)", "(…)", text).split(",")}
    names = {name for name in names if "(" not in name} - {"USAGE"}  # USAGE stands for no right at all
    return set(_ALL) if names & {"ALL", "ALL PRIVILEGES"} else names


def _unquote(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name


def _matches(pattern: str, database: str) -> bool:
    """Whether a grant's database pattern (% and _ are wildcards, \\ escapes them) covers `database`."""
    regex = ""
    characters = iter(pattern)
    for character in characters:
        if character == "\\":
            regex += re.escape(next(characters, "\\"))
        elif character == "%":
            regex += ".*"
        elif character == "_":
            regex += "."
        else:
            regex += re.escape(character)
    return re.fullmatch(regex, database, re.IGNORECASE) is not None


def missing_creation_rights(
    session: Session,
    pair: Pair,
    *,
    sections: tuple[str, ...],
    record: str,
    record_exists: bool,
    schema: str | None,
) -> dict[str, list[str]]:
    """Return, for each object, the rights that creating `sections` ("executions", "attempts") and the record needs and lacks."""
    if isinstance(session.dialect, PostgreSQL):
        return _missing_on_postgresql(session, pair, sections, record, record_exists, str(schema))
    rights = read_mysql_rights(session)
    needed: dict[str, list[str]] = {record: ["SELECT", "INSERT"] + ([] if record_exists else ["CREATE"])}
    if "executions" in sections:
        needed[pair.executions] = ["CREATE", "SELECT"]
    if "attempts" in sections:
        needed[pair.attempts] = ["CREATE", "SELECT"]
        needed.setdefault(pair.executions, []).append("REFERENCES")
    missing = {table: rights.missing(table, *names) for table, names in needed.items()}
    return {table: names for table, names in missing.items() if names}


def _missing_on_postgresql(
    session: Session, pair: Pair, sections: tuple[str, ...], record: str, record_exists: bool, schema: str
) -> dict[str, list[str]]:
    missing: dict[str, list[str]] = {}
    if not record_exists or sections:
        lacking = [
            right
            for right in ("USAGE", "CREATE")
            if not session.scalar("SELECT has_schema_privilege(:schema, :privilege)", schema=schema, privilege=right)
        ]
        if lacking:
            missing[f"schema {schema}"] = lacking
    tables = {pair.executions: ["REFERENCES"]} if sections == ("attempts",) else {}
    if record_exists:
        tables[record] = ["SELECT", "INSERT"]
    for table, rights in tables.items():
        name = f"{session.dialect.quote(schema)}.{session.dialect.quote(table)}"
        lacking = [
            right
            for right in rights
            if not session.scalar("SELECT has_table_privilege(:name, :privilege)", name=name, privilege=right)
        ]
        if lacking:
            missing[table] = lacking
    return missing
