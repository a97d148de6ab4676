"""opsctl init-tables."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any, TextIO

import click

from opsctl import errors
from opsctl.cli import state
from opsctl.cli.options import change_options, database_options, find_audit_file, find_place
from opsctl.config import Setting
from opsctl.db import open_session
from opsctl.errors import Guarded, UsageError
from opsctl.ops.audit import Audit
from opsctl.ops.tables import NOTHING, REFUSE, Plan, apply_plan, dry_run_sql, plan_again_locked, plan_tables
from opsctl.render.terminal import use_colour
from opsctl.render.verification import render_verification

#: As long as onestep itself waits for the lock around creation.
LOCK_TIMEOUT_S = 10.0


@click.command("init-tables")
@database_options(lock_timeout_s=LOCK_TIMEOUT_S)
@change_options
def init_tables(dry_run: bool, yes: bool, audit_file: str | None, **options: Any) -> int:
    """Create the pair of tables, complete a half-made one, or adopt one that onestep made.

    Safe beside onestep and other init-tables at the same moment: it takes onestep's own locks. When all is there and
    right it does nothing (exit code 0); when a table differs it prints how, changes nothing and exits 1.
    """
    place = find_place(options, for_schema_change=True, lock_timeout_s=LOCK_TIMEOUT_S)
    with (
        _audit_stream(None if dry_run else find_audit_file(audit_file)) as stream,
        open_session(place.target, place.timeouts, read_only=dry_run) as session,
    ):
        plan = plan_tables(session, place.pair, schema=place.schema, names=dry_run)
        if plan.action == REFUSE and not dry_run:
            plan = plan_again_locked(session, place.pair, schema=place.schema)
        if dry_run and plan.action not in (NOTHING, REFUSE):
            click.echo(f"-- {place.target} ({session.server}): this would {plan.summary}")
            click.echo(dry_run_sql(session, place.pair, plan))
            return errors.EXIT_YES
        if plan.action not in (NOTHING, REFUSE):
            session.rollback()  # nothing stays open while a person thinks
            _confirm(f"{place.target} ({session.server})", plan.summary, yes=yes)
            audit = Audit(_writer(stream), "init-tables", session, place.pair)
            plan = apply_plan(session, place.pair, schema=place.schema, audit=audit)
    return _report(plan)


def _report(plan: Plan) -> int:
    if plan.action == REFUSE:
        colour = use_colour(state.current.no_color)
        click.echo(render_verification(plan.verification, colour=colour), color=colour)
        state.say(f"opsctl: {plan.summary}\n  mend what is named there, then run init-tables again")
        return errors.EXIT_NO
    click.echo(plan.done)
    return errors.EXIT_YES


def _confirm(place: str, what: str, *, yes: bool) -> None:
    """Ask on stderr. Raises Guarded when the answer is no, or when there is nobody to ask."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise Guarded(
            f"{place}: nothing was changed, there is nobody to ask whether to {what}",
            "add --yes, or --dry-run to see the SQL first",
        )
    click.echo(state.redacted(place), err=True)
    try:
        agreed = click.confirm(state.redacted(what[0].upper() + what[1:] + "?"), err=True)
    except click.Abort as answer:
        click.echo(err=True)  # ^C and ^D stay on the line of the question
        if isinstance(answer.__context__, KeyboardInterrupt):
            raise
        agreed = False
    if not agreed:
        raise Guarded("declined: nothing was changed", "--dry-run shows the SQL, --yes does not ask")


@contextlib.contextmanager
def _audit_stream(place: Setting | None) -> Iterator[TextIO]:
    """Yield the stream for audit lines, opened before anything is changed; stderr without a file."""
    if place is None:
        yield sys.stderr
        return
    try:
        file = open(place.value, "a", encoding="utf-8")  # noqa: SIM115 (closed below)
    except OSError as error:
        raise UsageError(
            f"the audit file {place.value} ({place.origin}) cannot be written: {error.strerror}",
            "name a file in a directory that exists",
        ) from None
    try:
        yield file
    finally:
        # Each line was flushed as it was written; what could not be has been said.
        with contextlib.suppress(OSError):
            file.close()


def _writer(stream: TextIO) -> Callable[[str], None]:
    def write(line: str) -> None:
        print(line, file=stream, flush=True)

    return write
