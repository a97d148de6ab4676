"""opsctl tune advise, apply, revert."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import click

from opsctl import errors
from opsctl.cli import state
from opsctl.cli.changing import audit_stream, confirm, line_writer
from opsctl.cli.options import (
    Finite,
    Place,
    change_options,
    database_options,
    find_audit_file,
    find_output,
    find_place,
    output_option,
)
from opsctl.cli.output import show_rows
from opsctl.cli.progress import Progress
from opsctl.db import Session, open_session
from opsctl.dialects.postgresql import PostgreSQL
from opsctl.ops.audit import Audit
from opsctl.ops.tune.advise import Advised, advise_indexes
from opsctl.ops.tune.change import Done, apply_indexes, estimate_demand, require_room, revert_indexes
from opsctl.ops.tune.online import Patience
from opsctl.ops.tune.replicas import find_replicas, may_see_replicas
from opsctl.ops.tune.room import format_bytes
from opsctl.ops.tune.steps import (
    RECORD,
    Change,
    Live,
    group_steps,
    plan_apply,
    plan_revert,
    read_live,
    require_changeable,
)
from opsctl.rows import Rows
from opsctl.schema.operational import NAMES

#: The application waits as long behind a change on MySQL and MariaDB: less than onestep's heartbeat takes.
LOCK_TIMEOUT_S = 5.0

_only = click.option(
    "--only",
    "names",
    metavar="NAME",
    type=click.Choice(NAMES),
    multiple=True,
    help=f"{', '.join(NAMES)}; may be repeated.",
)
task_option = click.option(
    "--task", metavar="TASK", help="Measure claims of this task. Default: the one with the most rows."
)
limit_option = click.option(
    "--limit-time", "limit_s", metavar="S", type=Finite(0.1, 3600), default=10.0, show_default=True,
    help="Seconds for each statement that is measured.",
)  # fmt: skip


def _patience(function: Any) -> Any:
    for option in (
        click.option(
            "--retry-for", "retry_for_s", metavar="S", type=Finite(0, 86400), default=600.0, show_default=True,
            help="Seconds to go on trying while others hold the table.",
        ),
        click.option(
            "--build-timeout", "build_s", metavar="S", type=Finite(1, 86400), default=14400.0, show_default=True,
            help="Seconds for building one index.",
        ),
    ):  # fmt: skip
        function = option(function)
    return function


@click.command("advise")
@database_options()
@task_option
@limit_option
@output_option
def advise(task: str | None, limit_s: float, output: str | None, **options: Any) -> int:
    """Say which operational indexes pay on this database, what each costs, and whether retention is the better answer.

    Reads only: it measures as `opsctl tune measure` does. Exit code 1: something pays that is not there. 0: nothing does.
    """
    form = find_output(output)
    place = find_place(options, for_schema_change=False)
    advised = _advise(place, task, limit_s)
    columns = ("name", "advice", "size_bytes", "rows", "writes", "why")
    rows = tuple(
        (one.name, one.verdict, one.size.bytes if one.size else None, one.size.rows if one.size else None,
         one.writes, one.why) for one in advised.advice
    )  # fmt: skip
    facts = {"target": str(place.target), "namespace": advised.measured.namespace, "task": advised.measured.task}
    show_rows(Rows(columns, rows), form, {"advice": 1, **facts})
    if advised.paying:
        state.say(f"opsctl tune apply makes {', '.join(advised.paying)}")
    return errors.EXIT_NO if any(one.pays for one in advised.advice) else errors.EXIT_YES


@click.command("apply")
@_only
@database_options(lock_timeout_s=LOCK_TIMEOUT_S)
@_patience
@task_option
@limit_option
@click.option("--no-measure", is_flag=True, help="Do not measure before and after; wants --only.")
@change_options
def apply(
    names: tuple[str, ...], task: str | None, limit_s: float, no_measure: bool, retry_for_s: float, build_s: float,
    dry_run: bool, yes: bool, audit_file: str | None, **options: Any,
) -> int:  # fmt: skip
    """Make the operational indexes that pay, or those named with --only, while the application works.

    Online, on PostgreSQL one after the other, on MySQL and MariaDB in one ALTER TABLE; what a run that was ended left is
    finished or cleaned up. On MySQL and MariaDB the ALTER wants the table for itself for a moment at its beginning and at its
    end: the application waits behind it for the lock timeout at most, and a claim that is under way may have to be made again,
    which onestep's worker does at its next poll.
    """
    if no_measure and not names:
        raise errors.UsageError("--no-measure is given without --only", "name the indexes: without measuring none pays")
    place = find_place(options, for_schema_change=True, lock_timeout_s=LOCK_TIMEOUT_S)
    with (
        audit_stream(None if dry_run else find_audit_file(audit_file)) as stream,
        open_session(place.target, place.timeouts, read_only=False) as session,
    ):
        require_changeable(session, read_live(session, place.pair, schema=place.schema, with_record=False))
        live = read_live(session, place.pair, schema=place.schema)
        before = None if no_measure else _advise(place, task, limit_s)
        chosen = names or tuple(dict.fromkeys([*(before.paying if before else ()), *live.off_record]))
        steps = plan_apply(session, live, chosen)
        if not steps:
            click.echo(_nothing(live, chosen, named=bool(names)))
            return errors.EXIT_YES
        demand = estimate_demand(session, live, steps)
        require_room(session, demand)
        notes = [f"{name}: {size}, {size.rows:,} entries" for name, size in demand.sizes.items()]
        if demand.sizes and demand.room.free is None:
            notes.append(
                f"needs {format_bytes(demand.needed)} of disk on the server, whose free space cannot be seen from here"
            )
        _prepare(session, place, group_steps(session, live, steps), notes, dry_run=dry_run, yes=yes)
        if dry_run:
            return errors.EXIT_YES
        patience = Patience(place.timeouts.lock_s, build_s, retry_for_s)
        audit = Audit(line_writer(stream), "tune apply", session, place.pair)
        _change(apply_indexes, session, place, chosen, patience, audit)
        if before is not None:
            after = _advise(place, task or before.measured.task, limit_s)
            for line in after.gains(before):
                click.echo(line)
            if after.is_worse_than(before):
                back = " ".join(f"--only {step.item.name}" for step in steps if step.action != RECORD)
                state.warn(f"a claim costs more than before: opsctl tune revert {back} takes it back")
    return errors.EXIT_YES


@click.command("revert")
@_only
@database_options(lock_timeout_s=LOCK_TIMEOUT_S)
@_patience
@change_options
def revert(
    names: tuple[str, ...],
    retry_for_s: float,
    build_s: float,
    dry_run: bool,
    yes: bool,
    audit_file: str | None,
    **options: Any,
) -> int:
    """Take the operational indexes back, all of them or those named with --only, while the application works."""
    place = find_place(options, for_schema_change=True, lock_timeout_s=LOCK_TIMEOUT_S)
    with (
        audit_stream(None if dry_run else find_audit_file(audit_file)) as stream,
        open_session(place.target, place.timeouts, read_only=False) as session,
    ):
        live = read_live(session, place.pair, schema=place.schema)
        chosen = names or tuple(item.name for item in live.operational)
        steps = plan_revert(session, live, chosen)
        if not steps:
            click.echo(f"nothing to do: {live.pair.executions} has none of {', '.join(chosen)}")
            return errors.EXIT_YES
        require_changeable(session, live)
        _prepare(session, place, group_steps(session, live, steps), [], dry_run=dry_run, yes=yes)
        if dry_run:
            return errors.EXIT_YES
        patience = Patience(place.timeouts.lock_s, build_s, retry_for_s)
        audit = Audit(line_writer(stream), "tune revert", session, place.pair)
        _change(revert_indexes, session, place, chosen, patience, audit)
    return errors.EXIT_YES


def _advise(place: Place, task: str | None, limit_s: float) -> Advised:
    """Measure on a connection that may only read."""
    namespace = place.namespace.value if place.namespace else None
    with open_session(place.target, place.timeouts, read_only=True) as session, Progress("measuring what claims cost"):
        return advise_indexes(session, place.pair, schema=place.schema, namespace=namespace, task=task, limit_s=limit_s)


def _prepare(
    session: Session, place: Place, changes: list[Change], notes: list[str], *, dry_run: bool, yes: bool
) -> None:
    """Show what would be done; without --dry-run, ask."""
    where = f"{place.target} ({session.server})"
    replicas = find_replicas(session)
    notes += [f"replica {replica.name}: {replica.effect}" for replica in replicas]
    if not replicas and not may_see_replicas(session):
        notes.append(
            "replicas, if there are any, cannot be seen without PROCESS; each runs the change after this server"
        )
    if not isinstance(session.dialect, PostgreSQL) and any(change.statements for change in changes):
        notes.append(
            "claims that are under way in the moment when it begins or ends may get error 1213; workers claim again"
        )
    session.rollback()  # nothing stays open while a person thinks
    if dry_run:
        click.echo(f"-- {where}: this would")
        for note in notes:
            click.echo(f"-- {note}")
        for change in changes:
            click.echo("")
            for step in change.steps:
                click.echo(f"-- {step.what}")
            for statement in change.statements:
                click.echo(f"{statement};")
        return
    for note in notes:
        state.say(note)
    confirm(where, "; ".join(change.what for change in changes), yes=yes)


def _change(
    change: Callable[..., Iterable[Done]],
    session: Session,
    place: Place,
    chosen: tuple[str, ...],
    patience: Patience,
    audit: Audit,
) -> None:
    """Apply or revert, and say what was done as it is done."""
    nothing = True
    with Progress("tune") as progress:
        for one in change(
            session, place.pair, chosen, schema=place.schema, patience=patience, audit=audit, report=progress.say
        ):
            nothing = False
            progress.note(f"done in {one.seconds:.1f} s: {one.change.what}")
        if nothing:
            progress.note("nothing was left to do: another run has done it meanwhile")


def _nothing(live: Live, chosen: tuple[str, ...], *, named: bool) -> str:
    if not named and not chosen:
        return f"nothing to do: no operational index pays on {live.pair.executions} now (opsctl tune advise says why)"
    return f"nothing to do: {', '.join(chosen)} of {live.pair.executions} in place and on record"
