"""opsctl grants sql."""

from __future__ import annotations

import io
import sys
from typing import Any

import click

from opsctl import errors
from opsctl.cli import state
from opsctl.cli.options import database_options, find_place, find_settings
from opsctl.cli.output import show
from opsctl.db import open_session
from opsctl.dialects.accounts import parse_account
from opsctl.dialects.names import Pair
from opsctl.errors import UsageError
from opsctl.ops.grants import DIALECTS, ROLES, Place, find_grant_place, grant_script


@click.group("grants")
def grants() -> None:
    """Least rights for each role, as SQL."""


@grants.command("sql", short_help="Print the SQL that gives an account the rights for a role.")
@click.option("--role", type=click.Choice(ROLES), required=True, help="Whose work the rights are for.")
@click.option(
    "--to",
    "account",
    metavar="ACCOUNT",
    required=True,
    help="The account or role that is to have them: NAME, on MySQL and MariaDB also NAME@HOST or 'NAME'@'HOST'.",
)
@click.option(
    "--dialect",
    type=click.Choice(tuple(DIALECTS)),
    help="Connect to nothing, and print the script for this product.  [default: ask the server]",
)
@database_options()
def sql(role: str, account: str, dialect: str | None, **options: Any) -> int:
    """Print the SQL that gives an account the least rights for a role; nothing is granted.

    \b
    runtime    the API and the workers: SELECT, INSERT, UPDATE on both tables
    migration  init-tables, version record, indexes: DDL on the pair
    monitor    verify-schema, the exporter, the queries: reading
    operator   cancel, reclaim, purge: SELECT, UPDATE, DELETE on both tables

    An administrator runs the script in the server's own client. Where a role is to have the rights first, and accounts by
    that role, there are files for it: sql/<dialect>/grants/.
    """
    if dialect is not None:
        script = _without_server(dialect, role, account, options)
    else:
        place = find_place(options, for_schema_change=False)
        with open_session(place.target, place.timeouts, read_only=True) as session:
            where = find_grant_place(session, role, place.pair, schema=place.schema)
            script = grant_script(session.dialect, role, parse_account(account, session.dialect), place.pair, where)
    if not script.isascii() and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")  # as the script tells the server, whatever the locale says
    show(script)
    return errors.EXIT_YES


def _without_server(dialect: str, role: str, account: str, options: dict[str, Any]) -> str:
    """Return the script with the names that flags, environment and files say, for a server that nobody asks."""
    for flag in ("dsn", "dsn_file"):
        if options[flag] is not None:
            raise UsageError(
                f"--dialect connects to nothing, and --{flag.replace('_', '-')} names a database",
                "leave one of them out",
            )
    chosen = DIALECTS[dialect]
    family = "postgresql" if dialect == "postgresql" else "mysql"
    settings = find_settings(
        {name: options[name] for name in ("target", "executions_table", "attempts_table", "schema")}
    )
    if settings.flags.get("schema") is not None and family == "mysql":
        raise UsageError(f"--schema is given for {chosen.product}", "leave it out: the client names the database")
    found = {
        name: setting.value
        for name in ("executions_table", "attempts_table", "schema")
        if (setting := settings.find(name, family=family))
    }
    schema = found.get("schema") if family == "postgresql" else None
    where = Place(schemas=None if schema is None else (schema, schema))
    state.explain(f"for {chosen.product}, without asking a server")
    return grant_script(
        chosen,
        role,
        parse_account(account, chosen),
        Pair(found["executions_table"], found["attempts_table"]),
        where,
    )
