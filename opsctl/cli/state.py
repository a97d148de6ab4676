"""What the global options said, and the secrets that no output may hold."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass, field

import click


@dataclass
class State:
    """The state of this process's one command."""

    debug: bool = False
    quiet: bool = False
    verbose: bool = False
    no_color: bool = False
    config: str | None = None
    secrets: set[str] = field(default_factory=set)
    warned: set[str] = field(default_factory=set)


current = State()


def add_secrets_of(dsn: str) -> None:
    """Remember the password in `dsn`, also when it turns out not to be a DSN."""
    user, separator, _ = dsn.partition("://")[2].rpartition("@")
    if separator and ":" in user:
        current.secrets.add(user.partition(":")[2])
    for match in re.finditer(r"(?:password|passwd|pwd)=([^&\s]+)", dsn, re.IGNORECASE):
        current.secrets.add(match[1])


def redacted(text: str) -> str:
    """Return `text` without any secret that this command has seen."""
    if not current.secrets:
        return text
    from opsctl.target import redact

    return redact(text, current.secrets)


def say(text: str) -> None:
    """Progress and notes: stderr, unless --quiet."""
    if not current.quiet:
        with contextlib.suppress(OSError):
            click.echo(redacted(text), err=True)


def warn(text: str) -> None:
    """A warning, once: stderr, unless --quiet."""
    if text not in current.warned:
        current.warned.add(text)
        say(f"opsctl: warning: {text}")


def explain(text: str) -> None:
    """What --verbose adds: where a value came from, how long it took."""
    if current.verbose:
        say(f"opsctl: {text}")
