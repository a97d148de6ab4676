"""opsctl tune: measure here; advise, apply, revert in tune_change."""

from __future__ import annotations

from typing import Any

import click

from opsctl import errors
from opsctl.cli import state
from opsctl.cli.options import Finite, database_options, find_output, find_place, output_option
from opsctl.cli.output import show_rows
from opsctl.cli.progress import Progress
from opsctl.cli.tune_change import advise, apply, limit_option, revert, task_option
from opsctl.db import open_session
from opsctl.ops.tune.measure import Measured, measure_pair
from opsctl.rows import Rows


@click.group("tune")
def tune() -> None:
    """Keep claims quick however large the tables grow: measure, advise, apply, revert."""


@tune.command("measure")
@database_options()
@task_option
@limit_option
@click.option(
    "--workers", metavar="N", type=click.IntRange(1), help="How many workers poll, for their share of a core."
)
@click.option(
    "--poll",
    "poll_s",
    metavar="S",
    type=Finite(0.001),
    default=1.0,
    show_default=True,
    help="Seconds between their polls.",
)
@output_option
def measure(
    task: str | None, limit_s: float, workers: int | None, poll_s: float, output: str | None, **options: Any
) -> int:
    """Measure what claims, lists, counts and purge cost on this database now.

    Reads only, by the very searches that onestep sends, each within a limit of time: the index that serves it, rows passed
    for rows wanted, milliseconds, and what they will be at ten times the finished rows. The share of the server's work comes
    from performance_schema or pg_stat_statements, or from --workers and --poll.
    """
    form = find_output(output)
    place = find_place(options, for_schema_change=False)
    namespace = place.namespace.value if place.namespace else None
    with open_session(place.target, place.timeouts, read_only=True) as session, Progress("measuring"):
        measured = measure_pair(
            session,
            place.pair,
            schema=place.schema,
            namespace=namespace,
            task=task,
            limit_s=limit_s,
            workers=workers,
            poll_s=poll_s,
        )
    show_rows(_rows(measured), form, _facts(measured))
    for line in _summary(measured):
        state.say(line)
    return errors.EXIT_YES


def _rows(measured: Measured) -> Rows:
    columns = ("operation", "sender", "time_ms", "at_ten_times_ms", "passed", "wanted", "served_by", "note")
    rows = tuple(
        (
            one.operation,
            one.sender,
            _rounded(one.time_ms),
            _rounded(one.at_ten_times_ms),
            one.passed,
            one.wanted,
            one.index,
            one.note,
        )
        for one in measured.measurements
    )
    return Rows(columns, rows)


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 1)


def _facts(measured: Measured) -> dict[str, Any]:
    share = measured.share
    return {
        "measure": 1,
        "target": measured.target,
        "server": {"product": measured.server.product, "version": measured.server.version},
        "namespace": measured.namespace,
        "task": measured.task,
        "rows_estimate": measured.rows_estimate,
        "share": None
        if share is None
        else {
            "part": round(share.part, 6),
            "of": share.of,
            "source": share.source,
            "claims_per_second": share.claims_s,
        },
    }


def _summary(measured: Measured) -> list[str]:
    what = f"{measured.server} at {measured.target}, about {measured.rows_estimate:,} executions"
    if measured.task is not None:
        what += f"; claims of task {measured.task} in namespace {measured.namespace}"
    unknown = "what part of the server's time claims take is not known: give --workers and --poll, or have performance_schema or pg_stat_statements on and readable"
    return [what, str(measured.share or unknown)]


for command in (advise, apply, revert):
    tune.add_command(command)
