"""Options that commands share, and what they come to."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from opsctl.cli import state
from opsctl.config import FORMATS, KEYS, Setting, Settings
from opsctl.config.keys import FAMILY_PREFIX, check_seconds
from opsctl.dialects.base import Timeouts
from opsctl.dialects.names import DEFAULT_ATTEMPTS, DEFAULT_EXECUTIONS, Pair
from opsctl.errors import UsageError

if TYPE_CHECKING:
    from opsctl.target import Target

Function = TypeVar("Function", bound=Callable[..., Any])

#: The options whose values are settings: what the command line said goes into Settings before everything else.
_SETTING_OPTIONS = ("target", "dsn", "dsn_file", "namespace", "executions_table", "attempts_table", "schema")
_DEPLOYMENT = tuple(f"{prefix}_EXECUTION" for prefix in FAMILY_PREFIX.values())
_LIMITS = ("connect_timeout", "lock_timeout", "statement_timeout")


@dataclass(frozen=True)
class Place:
    """The database and the pair a command works on; `namespace` only when one is set."""

    target: Target
    pair: Pair
    schema: str | None
    namespace: Setting | None
    timeouts: Timeouts


def _seconds(context: click.Context, parameter: click.Parameter, value: float | None) -> str | None:
    if value is None:
        return None
    if check_seconds(str(value)) is None:
        raise click.BadParameter("give seconds, between 0.001 and 86400")
    return str(value)


class Finite(click.FloatRange):
    """A number in a range; nan and inf are none, though click takes them."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number. Raises BadParameter."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is no number of seconds", param, ctx)
        return number


def complete_target(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the targets of the configuration files that begin with what is typed."""
    prepare_completion(context)
    try:
        settings = find_settings({})
    except UsageError:
        return []
    names = [name for name in settings.target_names if name.startswith(incomplete)]
    places = {name: sorted({setting.origin for setting in settings.of_target(name).values()}) for name in names}
    return [CompletionItem(name, help=", ".join(places[name])) for name in names]


def prepare_completion(context: click.Context) -> None:
    """Take --config from the line that is being completed, and say nothing on a terminal that waits for Tab."""
    state.current.quiet = True
    if state.current.config is None:
        state.current.config = context.find_root().params.get("config")


def _set_state(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def callback(context: click.Context, parameter: click.Parameter, value: Any) -> None:
        if value:
            setattr(state.current, name, value)
        if state.current.verbose and state.current.quiet and not context.resilient_parsing:
            raise click.UsageError("--verbose and --quiet are both given")

    return callback


def common_options(function: Function) -> Function:
    """Take the global options behind the command's name too, where people write them; the group's help lists them."""
    return _with(
        tuple(
            click.option(
                *flags,
                name,
                is_flag=name != "config",
                type=click.Path() if name == "config" else None,
                hidden=True,
                expose_value=False,
                callback=_set_state(name),
            )
            for flags, name in (
                (("--config",), "config"),
                (("--debug",), "debug"),
                (("-v", "--verbose"), "verbose"),
                (("-q", "--quiet"), "quiet"),
                (("--no-color",), "no_color"),
            )
        )
    )(function)


def database_options(*, lock_timeout_s: float = 5.0) -> Callable[[Function], Function]:
    """Add the options that name a database, a pair and the limits of a session."""

    def limit(flag: str, default_s: float, text: str) -> Callable[[Function], Function]:
        return click.option(flag, metavar="S", type=float, callback=_seconds, help=f"{text}  [default: {default_s:g}]")

    options = (
        click.option(
            "--target",
            metavar="NAME",
            shell_complete=complete_target,
            help="The database of [targets.NAME] in the configuration file.",
        ),
        click.option("--dsn", metavar="URL", help="The database. Others can read a password here: prefer --dsn-file."),
        click.option("--dsn-file", metavar="FILE", type=click.Path(), help="A file with the DSN on a line of its own."),
        click.option("--namespace", metavar="NS", help="Only this namespace, in queries."),
        click.option("--executions-table", metavar="T", help=f"Default: {DEFAULT_EXECUTIONS}."),
        click.option("--attempts-table", metavar="T", help=f"Default: {DEFAULT_ATTEMPTS}."),
        click.option("--schema", metavar="S", help="PostgreSQL; default: where the search_path finds the tables."),
        limit("--connect-timeout", 5.0, "Seconds to connect and log in."),
        limit("--lock-timeout", lock_timeout_s, "Seconds to wait for another session's lock."),
        limit("--statement-timeout", 30.0, "Seconds for one statement."),
    )
    return lambda function: common_options(_with(options)(function))


def output_option(function: Function) -> Function:
    """Add -o/--output for a command from which rows come out."""
    return click.option(
        "-o",
        "--output",
        metavar="FORMAT",
        type=click.Choice(FORMATS),
        help=f"{', '.join(FORMATS[:-1])} or {FORMATS[-1]}.  [default: table]",
    )(function)


def change_options(function: Function) -> Function:
    """Add the options of every command that changes something."""
    return _with(
        (
            click.option("--dry-run", is_flag=True, help="Print the SQL that would run; write nothing, lock nothing."),
            click.option("-y", "--yes", is_flag=True, help="Do not ask."),
            click.option(
                "--audit-file",
                metavar="FILE",
                type=click.Path(),
                help="Append the record of the change there. Default: stderr.",
            ),
        )
    )(function)


def _with(options: tuple[Callable[[Function], Function], ...]) -> Callable[[Function], Function]:
    def decorate(function: Function) -> Function:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def find_settings(flags: dict[str, Any]) -> Settings:
    """Read all places that settings come from, say what is odd about them, and remember every secret in them."""
    for name, value in os.environ.items():
        if name.startswith(("OPSCTL_", *_DEPLOYMENT)) and _holds_secret(value):
            state.add_secrets_of(value)
    settings = Settings(flags, os.environ, config_file=state.current.config)
    for table in (table for file in settings.files for table in (file.top, *file.targets.values())):
        for name, setting in table.items():
            if KEYS[name].secret or _holds_secret(setting.value):
                state.add_secrets_of(setting.value)
    for warning in settings.warnings:
        state.warn(warning)
    return settings


def _holds_secret(value: str) -> bool:
    """Whether it could be a DSN or a URL, wherever it stands."""
    return "@" in value or "password=" in value.lower()


def find_place(options: dict[str, Any], *, for_schema_change: bool, lock_timeout_s: float = 5.0) -> Place:
    """Turn the shared options, taken out of `options`, and all other settings into a Place. Raises UsageError."""
    settings = find_settings({name: options.pop(name) for name in (*_SETTING_OPTIONS, *_LIMITS)})
    setting = settings.find_dsn(for_schema_change=for_schema_change)
    target = open_dsn(setting)
    if setting.origin == "--dsn" and target.tells_secret:
        state.warn("other users of this machine can read the password on the command line; use --dsn-file")
    if settings.target is not None and setting.origin.endswith("MIGRATION_DSN"):
        state.warn(f"{setting.origin} comes before the target {settings.target.value}'s own: the database is {target}")
    for warning in target.warnings:
        state.warn(warning)
    if settings.flags.get("schema") is not None and target.family != "postgresql":
        raise UsageError("--schema is given for a MySQL DSN", "leave it out: the DSN names the database")
    found = {
        name: value
        for name in ("executions_table", "attempts_table", "schema", "namespace")
        if (value := settings.find(name, family=target.family))
    }
    timeouts = Timeouts(
        connect_s=settings.seconds("connect_timeout"),
        lock_s=settings.seconds("lock_timeout", default=lock_timeout_s),
        statement_s=settings.seconds("statement_timeout"),
    )
    state.explain(f"database {target}, {target.whence}")
    return Place(
        target,
        Pair(found["executions_table"].value, found["attempts_table"].value),
        found["schema"].value if "schema" in found and target.family == "postgresql" else None,
        found.get("namespace"),
        timeouts,
    )


def open_dsn(setting: Setting) -> Target:
    """Parse a DSN, and remember its secrets before anything can be said about it."""
    state.add_secrets_of(setting.value)
    from opsctl.target import parse_dsn

    target = parse_dsn(setting.value, origin=setting.origin, environment=os.environ, directory=setting.directory)
    state.current.targets.append(target)
    return target


def find_audit_file(given: str | None) -> Setting | None:
    """Return where records of changes go: the option, OPSCTL_AUDIT_FILE, a file's audit_file; None for stderr."""
    return find_settings({"audit_file": given}).find("audit_file")


def find_output(given: str | None) -> str:
    """Return the format of rows: the option, OPSCTL_OUTPUT, a file, or a table."""
    setting = find_settings({"output": given}).find("output")
    assert setting is not None
    return setting.value
