"""What commands that change something share: the question before, the record of it, where that is written."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import TextIO

import click

from opsctl.cli import state
from opsctl.config import Setting
from opsctl.errors import Guarded, UsageError


def confirm(place: str, what: str, *, yes: bool) -> None:
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
def audit_stream(place: Setting | None) -> Iterator[TextIO]:
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


def line_writer(stream: TextIO) -> Callable[[str], None]:
    """Return what writes a line to `stream` at once."""

    def write(line: str) -> None:
        print(line, file=stream, flush=True)

    return write
