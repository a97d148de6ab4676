"""Options that commands share, and what they come to."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from opsctl.cli import state
from opsctl.config import Flags, find_dsn, find_table
from opsctl.dialects.base import Timeouts
from opsctl.dialects.names import DEFAULT_ATTEMPTS, DEFAULT_EXECUTIONS, Pair
from opsctl.errors import UsageError
from opsctl.target import Target, parse_dsn

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Place:
    """The database and the pair a command works on."""

    target: Target
    pair: Pair
    schema: str | None
    timeouts: Timeouts


def _seconds(context: click.Context, parameter: click.Parameter, value: float) -> float:
    """Take a time limit between a millisecond and a day; "nan" and "inf" are floats too."""
    if not 0.001 <= value <= 86_400:
        raise click.BadParameter("give seconds, between 0.001 and 86400")
    return value


def database_options(*, lock_timeout_s: float) -> Callable[[Function], Function]:
    """Add the options that name a database, a pair and the limits of a session."""

    def limit(flag: str, default_s: float, text: str) -> Callable[[Function], Function]:
        help_text = f"{text}  [default: {default_s:g}]"
        return click.option(flag, metavar="S", type=float, default=default_s, callback=_seconds, help=help_text)

    options = (
        click.option("--dsn", metavar="URL", help="The database. Others can read a password here: prefer --dsn-file."),
        click.option("--dsn-file", metavar="FILE", help="A file with the DSN on a line of its own."),
        click.option("--executions-table", metavar="T", help=f"Default: {DEFAULT_EXECUTIONS}."),
        click.option("--attempts-table", metavar="T", help=f"Default: {DEFAULT_ATTEMPTS}."),
        click.option("--schema", metavar="S", help="PostgreSQL; default: where the search_path finds the tables."),
        limit("--connect-timeout", 5.0, "Seconds to connect and log in."),
        limit("--lock-timeout", lock_timeout_s, "Seconds to wait for another session's lock."),
        limit("--statement-timeout", 30.0, "Seconds for one statement."),
    )

    def decorate(function: Function) -> Function:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def find_place(options: dict[str, Any], *, for_schema_change: bool) -> Place:
    """Turn the shared options, taken out of `options`, and the environment into a Place. Raises UsageError."""
    flags = Flags(
        dsn=options.pop("dsn"),
        dsn_file=options.pop("dsn_file"),
        executions_table=options.pop("executions_table"),
        attempts_table=options.pop("attempts_table"),
    )
    schema = options.pop("schema")
    timeouts = Timeouts(
        connect_s=options.pop("connect_timeout"),
        lock_s=options.pop("lock_timeout"),
        statement_s=options.pop("statement_timeout"),
    )
    setting = find_dsn(flags, os.environ, for_schema_change=for_schema_change)
    state.add_secrets_of(setting.value)
    target = parse_dsn(setting.value, origin=setting.origin)
    state.current.secrets |= target.secrets
    if setting.origin == "--dsn" and target.secrets:
        state.say(
            "opsctl: warning: other users of this machine can read the password on the command line; use --dsn-file"
        )
    for warning in target.warnings:
        state.say(f"opsctl: warning: {warning}")
    if schema is not None and target.family != "postgresql":
        raise UsageError("--schema is given for a MySQL DSN", "leave it out: the DSN names the database")
    tables = (
        find_table(flags, os.environ, which=which, family=target.family, default=default).value
        for which, default in (("executions", DEFAULT_EXECUTIONS), ("attempts", DEFAULT_ATTEMPTS))
    )
    return Place(target, Pair(*tables), schema, timeouts)
