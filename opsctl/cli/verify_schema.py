"""opsctl verify-schema."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from opsctl import errors
from opsctl.cli import state
from opsctl.cli.options import database_options, find_place
from opsctl.db import open_session
from opsctl.render import render_verification, use_colour
from opsctl.schema.findings import SEVERITIES, WARNING
from opsctl.schema.verify import verify_pair


@click.command("verify-schema")
@database_options(lock_timeout_s=5.0)
@click.option(
    "--fail-on",
    type=click.Choice(SEVERITIES),
    default=WARNING,
    show_default=True,
    help="The least severity that makes the exit code 1.",
)
@click.option("-o", "--output", type=click.Choice(("table", "json")), default="table", show_default=True)
def verify_schema(fail_on: str, output: str, **options: Any) -> int:
    """Compare the live pair of tables with the one that onestep needs, and say what each difference does.

    Reads only. Exit code 0: they match. 1: drift. 6: no drift was seen, but a fact could not be read.
    """
    place = find_place(options, for_schema_change=False)
    with open_session(place.target, place.timeouts, read_only=True) as session:
        verification = verify_pair(session, place.pair, schema=place.schema)
    if output == "json":
        click.echo(json.dumps(verification.as_dict(), indent=2, ensure_ascii=not _utf8_stdout()))
    else:
        colour = use_colour(state.current.no_color)
        click.echo(render_verification(verification, fail_on, colour=colour), color=colour)
    if verification.fails(fail_on):
        return errors.EXIT_NO
    return errors.Undetermined.exit_code if verification.unread else errors.EXIT_YES


def _utf8_stdout() -> bool:
    return sys.stdout.encoding.lower().replace("-", "") == "utf8"
