"""What the session's own account may do, read from the server."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from opsctl.db import Session

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
    names = {name for name in names if "(" not in name}
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
