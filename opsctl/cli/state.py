"""What the global options said, and the secrets that no output may hold."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from opsctl.target import Target


@dataclass
class State:
    """The state of this process's one command."""

    debug: bool = False
    quiet: bool = False
    verbose: bool = False
    no_color: bool = False
    config: str | None = None
    secrets: set[str] = field(default_factory=set)
    targets: list[Target] = field(default_factory=list)  # whose secrets may grow when they connect
    warned: set[str] = field(default_factory=set)


current = State()


def add_secrets_of(text: str) -> None:
    """Remember the password in a DSN or URL, also when it turns out to be none."""
    from opsctl.redaction import secrets_in

    current.secrets |= secrets_in(text)


def redacted(text: str) -> str:
    """Return `text` without any secret that this command has seen, and without what looks like one in a URL."""
    from opsctl.redaction import mask_urls, redact

    secrets = current.secrets.union(*(target.secrets for target in current.targets))
    names = {name for target in current.targets for name in target.names}
    return mask_urls(redact(text, secrets, names))


def complain(text: str) -> None:
    """Write to stderr, without secrets and without what would act on a terminal: a server's words can hold anything."""
    from opsctl.render.escapes import escape_controls

    with contextlib.suppress(OSError):  # a full stderr must not change the exit code
        click.echo(escape_controls(redacted(text)), err=True)


def say(text: str) -> None:
    """Progress and notes: stderr, unless --quiet."""
    if not current.quiet:
        complain(text)


def warn(text: str) -> None:
    """A warning, once: stderr, unless --quiet."""
    if text not in current.warned:
        current.warned.add(text)
        say(f"opsctl: warning: {text}")


def explain(text: str) -> None:
    """What --verbose adds: where a value came from, how long it took."""
    if current.verbose:
        say(f"opsctl: {text}")
