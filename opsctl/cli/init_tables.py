"""opsctl init-tables."""

from __future__ import annotations

from typing import Any

import click

from opsctl import errors
from opsctl.cli import state
from opsctl.cli.changing import audit_stream, confirm, line_writer
from opsctl.cli.options import change_options, database_options, find_audit_file, find_place
from opsctl.db import open_session
from opsctl.ops.audit import Audit
from opsctl.ops.tables import NOTHING, REFUSE, Plan, apply_plan, dry_run_sql, plan_again_locked, plan_tables
from opsctl.render.terminal import use_colour
from opsctl.render.verification import render_verification

#: As long as onestep itself waits for the lock around creation.
LOCK_TIMEOUT_S = 10.0


@click.command("init-tables")
@database_options(lock_timeout_s=LOCK_TIMEOUT_S)
@click.option(
    "--with-indexes", is_flag=True, help="The recommended operational indexes too; a table with rows wants tune apply."
)
@change_options
def init_tables(with_indexes: bool, dry_run: bool, yes: bool, audit_file: str | None, **options: Any) -> int:
    """Create the pair of tables, complete a half-made one, or adopt one that onestep made.

    Safe beside onestep and other init-tables at the same moment: it takes onestep's own locks. When all is there and
    right it does nothing (exit code 0); when a table differs it prints how, changes nothing and exits 1.
    """
    place = find_place(options, for_schema_change=True, lock_timeout_s=LOCK_TIMEOUT_S)
    with (
        audit_stream(None if dry_run else find_audit_file(audit_file)) as stream,
        open_session(place.target, place.timeouts, read_only=dry_run) as session,
    ):
        plan = plan_tables(session, place.pair, schema=place.schema, names=dry_run, with_indexes=with_indexes)
        if plan.action == REFUSE and not dry_run:
            plan = plan_again_locked(session, place.pair, schema=place.schema, with_indexes=with_indexes)
        if dry_run and plan.action not in (NOTHING, REFUSE):
            click.echo(f"-- {place.target} ({session.server}): this would {plan.summary}")
            click.echo(dry_run_sql(session, place.pair, plan))
            return errors.EXIT_YES
        if plan.action not in (NOTHING, REFUSE):
            session.rollback()  # nothing stays open while a person thinks
            confirm(f"{place.target} ({session.server})", plan.summary, yes=yes)
            audit = Audit(line_writer(stream), "init-tables", session, place.pair)
            plan = apply_plan(session, place.pair, schema=place.schema, audit=audit, with_indexes=with_indexes)
    return _report(plan)


def _report(plan: Plan) -> int:
    if plan.action == REFUSE:
        colour = use_colour(state.current.no_color)
        click.echo(render_verification(plan.verification, colour=colour), color=colour)
        state.say(f"opsctl: {plan.summary}\n  mend what is named there, then run init-tables again")
        return errors.EXIT_NO
    click.echo(plan.done)
    return errors.EXIT_YES
