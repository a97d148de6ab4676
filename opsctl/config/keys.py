"""What can be set: one table of keys, from which files, variables, flags and the reference are read."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from opsctl.errors import UsageError

#: The deployment's own environment names, by DSN family.
FAMILY_PREFIX = {"mysql": "MYSQL", "postgresql": "POSTGRES"}

TEXT, SECONDS, FILE, DIRECTORIES, CHOICE = "text", "seconds", "file", "directories", "choice"
FORMATS = ("table", "json", "yaml", "csv", "vertical")


@dataclass(frozen=True)
class Key:
    """A setting: its name in a file, what it holds, its variables beside OPSCTL_<NAME>, and what it is for.

    `deployment` is the suffix of the deployment's own variable (behind MYSQL or POSTGRES); `in_target` whether
    [targets.NAME] may hold it; `secret` whether its value may be shown only masked.
    """

    name: str
    kind: str
    purpose: str
    in_target: bool = True
    secret: bool = False
    deployment: str | None = None
    default: str | None = None

    @property
    def variable(self) -> str:
        """The environment variable of opsctl's own."""
        return f"OPSCTL_{self.name.upper()}"

    @property
    def flag(self) -> str:
        """The option of the command line."""
        return {"query_path": "--query-dir"}.get(self.name, f"--{self.name.replace('_', '-')}")


KEYS = {
    key.name: key
    for key in (
        Key("target", TEXT, "the [targets.NAME] to use when nothing else names a database", in_target=False),
        Key("dsn", TEXT, "the database", secret=True, deployment="_EXECUTION_DSN"),
        Key("dsn_file", FILE, "a file with the DSN on a line of its own"),
        Key(
            "migration_dsn",
            TEXT,
            "the database, logged in as the account that may change the schema",
            secret=True,
            deployment="_EXECUTION_MIGRATION_DSN",
        ),
        Key("migration_dsn_file", FILE, "a file with that DSN"),
        Key("namespace", TEXT, "queries look at this namespace only", deployment="_EXECUTION_NAMESPACE"),
        Key(
            "executions_table",
            TEXT,
            "the name of the executions table",
            deployment="_EXECUTIONS_TABLE",
            default="onestep_executions",
        ),
        Key(
            "attempts_table",
            TEXT,
            "the name of the attempts table",
            deployment="_EXECUTION_ATTEMPTS_TABLE",
            default="onestep_execution_attempts",
        ),
        Key("schema", TEXT, "PostgreSQL: the tables' schema; without it the search_path decides"),
        Key("connect_timeout", SECONDS, "seconds to connect and log in", default="5"),
        Key("lock_timeout", SECONDS, "seconds to wait for another session's lock (init-tables: 10)", default="5"),
        Key("statement_timeout", SECONDS, "seconds for one statement", default="30"),
        Key("output", CHOICE, f"the format of rows: {', '.join(FORMATS)}", in_target=False, default="table"),
        Key("pager", TEXT, "the program that shows long output on a terminal; cat for none", in_target=False),
        Key("query_path", DIRECTORIES, "directories with queries of your own", in_target=False),
        Key("audit_file", FILE, "where records of changes are appended; without it stderr"),
        Key("redis_url", TEXT, "the Redis control plane", secret=True),
    )
}
TARGET_KEYS = [name for name, key in KEYS.items() if key.in_target]


@dataclass(frozen=True)
class Setting:
    """A value and the flag, variable or file that it came from; relative paths inside a file's DSN start at `directory`."""

    value: str
    origin: str
    directory: Path | None = field(default=None, compare=False)


def check_seconds(text: str) -> float | None:
    """Return a time limit between a millisecond and a day, None for anything else ("nan" and "inf" are floats too)."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0.001 <= value <= 86_400 else None


def checked(text: str, key: Key, place: str) -> str:
    """Return `text`, which `place` gives for `key`; raises UsageError when the key cannot hold it."""
    if key.kind == SECONDS and check_seconds(text) is None:
        raise UsageError(f"{place} is no time limit", "give seconds, between 0.001 and 86400")
    if key.kind == CHOICE and text not in FORMATS:
        raise UsageError(
            f"{place} {text!r} is no format", f"use one of {', '.join(FORMATS)}{nearest(text, list(FORMATS))}"
        )
    return text


def nearest(name: str, known: Iterable[str]) -> str:
    """Return "; was X meant?" for the known name that looks most like `name`, nothing when none does."""
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"; was {near[0]} meant?" if near else ""
