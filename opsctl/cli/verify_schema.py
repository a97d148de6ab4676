"""opsctl verify-schema."""

from __future__ import annotations

from typing import Any

import click

from opsctl import errors
from opsctl.cli import state
from opsctl.cli.options import database_options, find_output, find_place, output_option
from opsctl.cli.output import show, show_document
from opsctl.db import open_session
from opsctl.render.terminal import use_colour
from opsctl.render.verification import render_verification
from opsctl.rows import Rows
from opsctl.schema.findings import SEVERITIES, WARNING
from opsctl.schema.verify import Verification, verify_pair


@click.command("verify-schema")
@database_options()
@click.option(
    "--fail-on",
    type=click.Choice(SEVERITIES),
    default=WARNING,
    show_default=True,
    help="The least severity that makes the exit code 1.",
)
@output_option
def verify_schema(fail_on: str, output: str | None, **options: Any) -> int:
    """Compare the live pair of tables with the one that onestep needs, and say what each difference does.

    Reads only. Exit code 0: they match. 1: drift. 6: no drift was seen, but a fact could not be read.
    """
    form = find_output(output)
    place = find_place(options, for_schema_change=False)
    with open_session(place.target, place.timeouts, read_only=True) as session:
        verification = verify_pair(session, place.pair, schema=place.schema)
    if form == "table":
        colour = use_colour(state.current.no_color)
        show(render_verification(verification, fail_on, colour=colour))
    else:
        show_document(verification.as_dict(), _rows(verification), form)
    if verification.fails(fail_on):
        return errors.EXIT_NO
    return errors.Undetermined.exit_code if verification.unread else errors.EXIT_YES


def _rows(verification: Verification) -> Rows:
    """Return findings, and what is unread as rows of severity "unread", for the formats that hold rows only."""
    document = verification.as_dict()
    columns = ("severity", "table", "kind", "object", "property", "expected", "actual", "message", "fix")
    found = [*document["findings"]]
    found += [{**fact, "severity": "unread", "message": fact["reason"]} for fact in document["unread"]]
    return Rows(columns, tuple(tuple(finding.get(name) for name in columns) for finding in found))
