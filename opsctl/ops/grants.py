"""grants sql: the least rights of a role as a script for the server's own client.

The rights stand in sql/<dialect>/grants/<role>.sql, once; here the role that such a file makes becomes the account, and the
default names those of the pair. Nothing is granted: the script is text.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

from opsctl.db import Session
from opsctl.dialects import AnyDialect
from opsctl.dialects.accounts import Account
from opsctl.dialects.mariadb import MariaDB
from opsctl.dialects.mysql import MySQL
from opsctl.dialects.names import DEFAULT_ATTEMPTS, DEFAULT_EXECUTIONS, Pair, validate_pair
from opsctl.dialects.postgresql import PostgreSQL
from opsctl.errors import UsageError
from opsctl.resources import find_resource
from opsctl.schema.verify import require_schema
from opsctl.schema.versions import version_table
from opsctl.sqlfiles import family_of, read_sections, rename, tokens

RUNTIME = "runtime"
MIGRATION = "migration"
MONITOR = "monitor"
OPERATOR = "operator"
ROLES = (RUNTIME, MIGRATION, MONITOR, OPERATOR)

DIALECTS: dict[str, AnyDialect] = {dialect.name: dialect for dialect in (MySQL(), MariaDB(), PostgreSQL())}

_CLIENTS = {"mysql": "mysql", "mariadb": "mariadb", "postgresql": "psql"}


@dataclass(frozen=True)
class Place:
    """Where the rights are given. What is None is left to the client's connection.

    `schemas` are PostgreSQL's of the executions and of the attempts table, which mostly are one.
    """

    database: str | None = None
    schemas: tuple[str, str] | None = None


def find_grant_place(session: Session, role: str, pair: Pair, *, schema: str | None) -> Place:
    """Ask the server where the pair is. Reads only.

    Raises UsageError for a schema that does not exist, and when the search_path does not lead to tables that the role is
    to have rights on; the migration role may come before them.
    """
    if not isinstance(session.dialect, PostgreSQL):
        database = session.scalar("SELECT DATABASE()")
        if database is None:
            raise UsageError(f"{session.target}: the DSN names no database", "add it: mysql://user@host:3306/DATABASE")
        return Place(str(database))
    database = str(session.scalar("SELECT current_database()"))
    if schema is not None:
        require_schema(session, schema)
        return Place(database, (schema, schema))
    found = {row["name"]: str(row["schema"]) for row in session.rows(_VISIBLE, names=[pair.executions, pair.attempts])}
    missing = [table for table in (pair.executions, pair.attempts) if table not in found]
    if missing and role != MIGRATION:
        raise UsageError(
            f"{session.target}: the search_path leads to no table {missing[0]}",
            "give --schema, have opsctl init-tables create it first, or give --dialect postgresql and run the script later",
        )
    first = next(iter(found.values()), None) or session.scalar("SELECT current_schema()")
    if first is None:
        raise UsageError(
            f"{session.target}: the search_path names no schema that exists and may be used",
            "give --schema, or correct the role's search_path",
        )
    return Place(database, (found.get(pair.executions, str(first)), found.get(pair.attempts, str(first))))


_VISIBLE = """
SELECT c.relname AS name, n.nspname AS schema
  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relname = ANY (:names) AND c.relkind IN ('r', 'p') AND pg_catalog.pg_table_is_visible(c.oid)
"""


def grant_script(dialect: AnyDialect, role: str, account: Account, pair: Pair, place: Place) -> str:
    """Return the script that gives `account` the rights of `role` on `pair`, for the server's own client.

    Raises UsageError for names of tables that the server cannot have.
    """
    validate_pair(pair, max_length=dialect.identifier_limit)
    family = family_of(dialect.name)
    sections = read_sections(find_resource("sql") / dialect.name / "grants" / f"{role}.sql")
    schemas = place.schemas or (None, None)
    record, default_record = version_table(pair), version_table(Pair())
    names = {
        DEFAULT_EXECUTIONS: _qualified(dialect, schemas[0], pair.executions, DEFAULT_EXECUTIONS),
        DEFAULT_ATTEMPTS: _qualified(dialect, schemas[1], pair.attempts, DEFAULT_ATTEMPTS),
        default_record: _qualified(dialect, schemas[0], record, default_record),
        f"onestep_{role}": account.quoted(dialect),
    }
    body = sections["rights"].strip()
    if place.schemas is None and "schema" in sections:
        body = f"{sections['schema'].strip()}\n\n{body}"
    plain = {default_record: record} if family == "mysql" else {}
    body = _rewrite(body, names, plain, _client_variables(dialect, place), family)
    before, after = _around(dialect, place, ascii_only=f"{body}{place.database}".isascii())
    return "\n".join([*_header(dialect, role, account, pair, place), *before, "", body, *after])


def _client_variables(dialect: AnyDialect, place: Place) -> dict[str, str]:
    """Return what stands for psql's variables in the files, as far as it is known here."""
    known = {}
    if place.schemas is not None:
        known["schemas"] = ", ".join(map(dialect.quote, dict.fromkeys(place.schemas)))
    if place.database is not None:
        known["DBNAME"] = dialect.quote(place.database)
    return known


def _qualified(dialect: AnyDialect, schema: str | None, name: str, default: str) -> str:
    if schema is not None:
        return f"{dialect.quote(schema)}.{dialect.quote(name)}"
    return name if name == default else dialect.quote(name)


def _rewrite(
    text: str, names: Mapping[str, str], plain: Mapping[str, str], variables: Mapping[str, str], family: str
) -> str:
    """Put names and psql's variables in, all in one pass, so that nothing that was put in is taken for more of them.

    A literal is renamed too: it holds a name as the catalog has it (`plain`), or SQL.
    """
    parts: list[str] = []
    for match in tokens(text, family):
        token = match[0]
        if match["literal"]:
            new = plain.get(token[1:-1]) or rename(token[1:-1], names, lambda name: name, family)
            token = token if new == token[1:-1] else _literal(new, family)
        elif match["bind"]:
            token = variables.get(token[1:], token)
        elif match["quoted"] and parts and parts[-1] == ":":
            if token[1:-1] in variables:
                parts[-1], token = "", variables[token[1:-1]]
        elif match["word"] or match["quoted"]:
            token = names.get(token if match["word"] else token[1:-1], token)
        parts.append(token)
    return "".join(parts)


def _literal(text: str, family: str) -> str:
    """Return `text` as a literal that means the same whatever the server takes a backslash for."""
    doubled = text.replace("'", "''")
    if "\\" not in text:
        return f"'{doubled}'"
    if family == "mysql":
        return f"_utf8mb4 X'{text.encode().hex()}'"
    return "E'" + doubled.replace("\\", "\\\\") + "'"


def _header(dialect: AnyDialect, role: str, account: Account, pair: Pair, place: Place) -> list[str]:
    where = "the deployment's database" if place.database is None else f"the database {_shown(place.database)}"
    needed = "the account" if account.host is not None else "the account or role"
    needed += " has to be there" if role == MIGRATION else " and both tables have to be there"
    return [
        f"-- Rights for {account.quoted(dialect)}, as {role}, on {pair.executions} and {pair.attempts}; {dialect.product}.",
        f"-- Run this in {_CLIENTS[dialect.name]}, as an administrator, in {where}; {needed}.",
        f"-- Again does no harm. What is left out on purpose, and why: sql/{dialect.name}/grants/{role}.sql of opsctl.",
    ]


def _shown(name: str) -> str:
    """Return a name that a server gave as it may stand in a comment."""
    return "".join("?" if unicodedata.category(character) in ("Cc", "Cs") else character for character in name)


def _around(dialect: AnyDialect, place: Place, *, ascii_only: bool) -> tuple[list[str], list[str]]:
    """Return what goes before and after the rights: the transaction or database, and what keeps names what they are."""
    if isinstance(dialect, PostgreSQL):
        encoding = [] if ascii_only else ["SET LOCAL client_encoding TO 'UTF8';"]
        return ["BEGIN;", *encoding], ["", "COMMIT;"]
    before = [] if ascii_only else ["SET NAMES utf8mb4;"]
    if place.database is not None:
        before.append(f"USE {dialect.quote(place.database)};")
    if isinstance(dialect, MariaDB):
        before.append("-- Without this mode, GRANT makes an account that is not there, and one without a password.")
        before.append("SET SESSION sql_mode = CONCAT(@@SESSION.sql_mode, ',NO_AUTO_CREATE_USER');")
    return before, []
