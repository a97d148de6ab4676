"""What the session's own account may do, read from the server."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from opsctl.db import Session
from opsctl.dialects.names import Pair
from opsctl.dialects.postgresql import PostgreSQL

_GRANT = re.compile(
    r"^(?P<verb>GRANT|REVOKE) (?P<privileges>.+?) ON (?P<scope>.+?) (?:TO|FROM) (?P<grantee>\S+)", re.IGNORECASE
)
_SCOPE = re.compile(r"^(?:TABLE )?(?P<schema>`(?:[^`]|``)+`|\*|[\w$%\\]+)\.(?P<table>`(?:[^`]|``)+`|\*|[\w$]+)$")

#: What ALL PRIVILEGES on a database or table holds of the rights opsctl asks about.
_ALL = frozenset(("SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "REFERENCES", "INDEX", "ALTER", "TRIGGER"))

#: The rights on a database that show which tables it has; PROCESS or LOCK TABLES show none. Measured, each alone.
_SHOW_TABLES = _ALL | {"CREATE VIEW", "SHOW VIEW", "DELETE HISTORY"}


@dataclass
class MySQLRights:
    """Rights of the current account, active roles included: for the whole database, and for single tables in it."""

    database: set[str]
    tables: dict[str, set[str]]
    fold: Callable[[str], str]

    @property
    def sees_all_tables(self) -> bool:
        """Whether the server tells of every table in the database."""
        return bool(self.database & _SHOW_TABLES)

    def on(self, table: str) -> set[str]:
        """Return the rights on `table`, whether or not it exists."""
        return self.database | self.tables.get(self.fold(table), set())

    def missing(self, table: str, *needed: str) -> list[str]:
        """Return those of `needed` that are not held on `table`."""
        held = self.on(table)
        return [right for right in needed if right not in held]


def read_mysql_rights(session: Session) -> MySQLRights:
    """Read the grants of the current account on the current database, as the server would apply them.

    Of several entries that cover a database the server takes one alone, the most specific: the entry with the very name,
    or else one of those with wildcards. Which one of these is not told, so only what all of them give counts. Column
    grants are left out: they do not give the whole-table rights that opsctl asks about.
    """
    database = str(session.scalar("SELECT DATABASE()") or "")
    folds = session.scalar("SELECT @@lower_case_table_names") != 0
    wildcards = session.server.product != "MySQL" or not session.scalar("SELECT @@GLOBAL.partial_revokes")
    statement = "SHOW GRANTS"
    roles = session.scalar("SELECT CURRENT_ROLE()")
    if session.server.product == "MySQL" and roles and roles != "NONE":
        statement = f"SHOW GRANTS FOR CURRENT_USER() USING {roles}"
    grants = _Grants(database, str.lower if folds else str, wildcards=wildcards)
    for (line,) in session.run(statement):
        grants.add(str(line))
    return grants.rights()


class _Grants:
    """The lines of SHOW GRANTS, sorted by how the server looks at them."""

    def __init__(self, database: str, fold: Callable[[str], str], *, wildcards: bool) -> None:
        self._database = fold(database)
        self._fold = fold
        self._wildcards = wildcards
        self._everywhere: set[str] = set()
        self._revoked: set[str] = set()
        self._exact: dict[str, list[set[str]]] = {}
        self._by_pattern: dict[str, list[set[str]]] = {}
        self._tables: dict[str, set[str]] = {}

    def add(self, line: str) -> None:
        """Take one line in; lines about other databases, routines and roles are passed over."""
        match = _GRANT.match(line)
        scope = _SCOPE.match(match["scope"]) if match else None
        if match is None or scope is None:
            return
        privileges = _privileges(match["privileges"])
        schema, table = _unquote(scope["schema"]), _unquote(scope["table"])
        name = schema if table != "*" else _unescaped(schema, wildcards=self._wildcards)
        exact = self._fold(name) == self._database
        if match["verb"].upper() == "REVOKE":  # partial_revokes: a global right taken back for one database
            self._revoked |= privileges if exact else set()
        elif schema == "*":
            self._everywhere |= privileges
        elif table != "*":
            self._tables.setdefault(self._fold(table), set()).update(privileges if exact else ())
        elif exact:
            self._exact.setdefault(match["grantee"], []).append(privileges)
        elif self._wildcards and _matches(self._fold(schema), self._database):
            self._by_pattern.setdefault(match["grantee"], []).append(privileges)

    def rights(self) -> MySQLRights:
        """Return what all lines come to: each grantee (the account, on MariaDB also its role) adds its own."""
        database = self._everywhere - self._revoked
        for grantee in {*self._exact, *self._by_pattern}:
            candidates = self._exact.get(grantee) or self._by_pattern[grantee]
            database |= set.intersection(*candidates)
        return MySQLRights(database, self._tables, self._fold)


def _privileges(text: str) -> set[str]:
    names = {name.strip().upper() for name in re.sub(r"\([^)]*\)", "(…)", text).split(",")}
    names = {name for name in names if "(" not in name} - {"USAGE"}  # USAGE stands for no right at all
    return set(_ALL) if names & {"ALL", "ALL PRIVILEGES"} else names


def _unquote(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name


def _unescaped(pattern: str, *, wildcards: bool) -> str:
    """Return the one name that a pattern without wildcards means; one that has some stays as it is."""
    plain = pattern.replace("\\_", "").replace("\\%", "")
    if wildcards and ("_" in plain or "%" in plain):
        return pattern
    return pattern.replace("\\_", "_").replace("\\%", "%")


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
    return re.fullmatch(regex, database) is not None


def missing_creation_rights(
    session: Session,
    pair: Pair,
    *,
    sections: tuple[str, ...],
    record: str,
    record_exists: bool,
    stale_record: bool,
    schema: str | None,
) -> dict[str, list[str]]:
    """Return, for each object, the rights that creating `sections` ("executions", "attempts") and the record needs and lacks."""
    if isinstance(session.dialect, PostgreSQL):
        return _missing_on_postgresql(session, pair, sections, record, record_exists, stale_record, str(schema))
    rights = read_mysql_rights(session)
    needed: dict[str, list[str]] = {record: ["SELECT", "INSERT"] + ([] if record_exists else ["CREATE"])}
    if stale_record:
        needed[record].append("DELETE")
    if "executions" in sections:
        needed[pair.executions] = ["CREATE", "SELECT"]
    if "attempts" in sections:
        needed[pair.attempts] = ["CREATE", "SELECT"]
        needed.setdefault(pair.executions, []).append("REFERENCES")
    missing = {table: rights.missing(table, *names) for table, names in needed.items()}
    return {table: names for table, names in missing.items() if names}


def _missing_on_postgresql(
    session: Session,
    pair: Pair,
    sections: tuple[str, ...],
    record: str,
    record_exists: bool,
    stale_record: bool,
    schema: str,
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
        tables[record] = ["SELECT", "INSERT", "DELETE"] if stale_record else ["SELECT", "INSERT"]
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
