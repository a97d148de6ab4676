"""Settings and where each came from: flag, then environment, then default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from opsctl.errors import UsageError

#: The deployment's own environment names, by DSN family.
_FAMILY_PREFIX = {"mysql": "MYSQL", "postgresql": "POSTGRES"}


@dataclass(frozen=True)
class Setting:
    """A value and the flag, variable or file that it came from."""

    value: str
    origin: str


@dataclass(frozen=True)
class Flags:
    """What the command line said; None where it said nothing."""

    dsn: str | None = None
    dsn_file: str | None = None
    executions_table: str | None = None
    attempts_table: str | None = None


def find_dsn(flags: Flags, environment: Mapping[str, str], *, for_schema_change: bool) -> Setting:
    """Return the DSN to use.

    Order: --dsn or --dsn-file; for a command that changes the schema OPSCTL_MIGRATION_DSN and the deployment's
    migration DSN; OPSCTL_DSN or OPSCTL_DSN_FILE; the deployment's DSN. Raises UsageError when there is none, when two
    contradict each other, or when a file cannot be read.
    """
    if flags.dsn is not None and flags.dsn_file is not None:
        raise UsageError("--dsn and --dsn-file are both given", "give one of them")
    if flags.dsn is not None:
        return Setting(flags.dsn, "--dsn")
    if flags.dsn_file is not None:
        return Setting(_read_dsn_file(flags.dsn_file, "--dsn-file"), f"--dsn-file {flags.dsn_file}")
    if for_schema_change and (migration := environment.get("OPSCTL_MIGRATION_DSN")):
        return Setting(migration, "OPSCTL_MIGRATION_DSN")
    own, own_file = environment.get("OPSCTL_DSN"), environment.get("OPSCTL_DSN_FILE")
    if own and own_file:
        raise UsageError("OPSCTL_DSN and OPSCTL_DSN_FILE are both set", "unset one of them")
    # The migration DSN of the deployment comes before every ordinary DSN, but only when its family is plain.
    if for_schema_change and (setting := _deployment(environment, "_EXECUTION_MIGRATION_DSN")):
        return setting
    if own:
        return Setting(own, "OPSCTL_DSN")
    if own_file:
        return Setting(_read_dsn_file(own_file, "OPSCTL_DSN_FILE"), f"OPSCTL_DSN_FILE {own_file}")
    if setting := _deployment(environment, "_EXECUTION_DSN"):
        return setting
    raise UsageError(
        "no database is named",
        "give --dsn-file FILE, or set OPSCTL_DSN, MYSQL_EXECUTION_DSN or POSTGRES_EXECUTION_DSN",
    )


def find_table(flags: Flags, environment: Mapping[str, str], *, which: str, family: str, default: str) -> Setting:
    """Return the name of the `which` ("executions" or "attempts") table, from flag, OPSCTL_… or family's variable."""
    flag = flags.executions_table if which == "executions" else flags.attempts_table
    if flag is not None:
        return Setting(flag, f"--{which}-table")
    prefix = _FAMILY_PREFIX[family]
    variables = {
        "executions": ("OPSCTL_EXECUTIONS_TABLE", f"{prefix}_EXECUTIONS_TABLE"),
        "attempts": ("OPSCTL_ATTEMPTS_TABLE", f"{prefix}_EXECUTION_ATTEMPTS_TABLE"),
    }[which]
    for variable in variables:
        if value := environment.get(variable):
            return Setting(value, variable)
    return Setting(default, "default")


def _deployment(environment: Mapping[str, str], suffix: str) -> Setting | None:
    names = [f"{prefix}{suffix}" for prefix in _FAMILY_PREFIX.values() if environment.get(f"{prefix}{suffix}")]
    families = [
        prefix
        for prefix in _FAMILY_PREFIX.values()
        if environment.get(f"{prefix}_EXECUTION_DSN") or environment.get(f"{prefix}_EXECUTION_MIGRATION_DSN")
    ]
    if names and len(families) > 1:
        raise UsageError(
            "MYSQL_EXECUTION_… and POSTGRES_EXECUTION_… are both set, so the database is not clear",
            "give --dsn-file FILE or --dsn, or unset the family that is not meant",
        )
    return Setting(environment[names[0]], names[0]) if names else None


def _read_dsn_file(path: str, origin: str) -> str:
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageError(
            f"{origin} {path} cannot be read: {reason}", "give a readable file with one DSN in it"
        ) from None
    lines = [line.strip() for line in text.split("\n")]
    lines = [line for line in lines if line and not line.startswith("#")]
    if len(lines) != 1:
        raise UsageError(f"{origin} {path} holds {len(lines)} DSNs", "write one DSN into it, on a line of its own")
    return lines[0]
