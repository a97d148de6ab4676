"""Names of a pair of tables and of the objects derived from them: onestep's own rules.

Source: onestep-sql 0.4.0 to 0.7.1, `_shared/execution/dialect.py` (validate_sql_identifier, derive_object_name) and the
two `execution_schema.py`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from opsctl.errors import UsageError

DEFAULT_EXECUTIONS = "onestep_executions"
DEFAULT_ATTEMPTS = "onestep_execution_attempts"

_BARE_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_HASH_DIGITS = 12


@dataclass(frozen=True)
class Pair:
    """The names of an executions table and its attempts table, as onestep is configured with them."""

    executions: str = DEFAULT_EXECUTIONS
    attempts: str = DEFAULT_ATTEMPTS

    def __str__(self) -> str:
        return f"{self.executions}, {self.attempts}"


def validate_pair(pair: Pair, *, max_length: int) -> None:
    """Raise UsageError unless both names are bare identifiers of at most `max_length` characters and differ."""
    for flag, name in (("--executions-table", pair.executions), ("--attempts-table", pair.attempts)):
        if not _BARE_IDENTIFIER.fullmatch(name):
            raise UsageError(
                f"{flag} {name!r} is not a bare identifier",
                "use letters, digits and underscores, not beginning with a digit: onestep takes nothing else",
            )
        if len(name) > max_length:
            raise UsageError(
                f"{flag} {name!r} has {len(name)} characters, this server allows {max_length}",
                "choose a shorter name, the same in opsctl and in onestep's configuration",
            )
    if pair.executions.lower() == pair.attempts.lower():
        raise UsageError(f"executions and attempts table are both {pair.executions!r}", "name two different tables")


def derive_name(prefix: str, table: str, suffix: str, *, max_length: int) -> str:
    """Return `<prefix><table>_<suffix>`; when that is too long, its beginning, `_` and 12 hex digits of its sha256."""
    name = f"{prefix}{table}_{suffix}"
    if len(name) <= max_length:
        return name
    digest = hashlib.sha256(name.encode("ascii")).hexdigest()[:_HASH_DIGITS]
    return f"{name[: max_length - _HASH_DIGITS - 1]}_{digest}"


#: prefix and suffix of the derived names of each table's objects.
EXECUTIONS_OBJECTS = (
    ("uq_", "idempotency"),
    ("ix_", "claim"),
    ("ix_", "lease"),
    ("ix_", "list"),
    ("ck_", "status"),
    ("ck_", "idempotency"),
)
ATTEMPTS_OBJECTS = (
    ("uq_", "execution_attempt"),
    ("ix_", "execution"),
    ("ck_", "status"),
    ("fk_", "execution"),
)


def derived_names(pair: Pair, prefixes: tuple[str, ...], *, max_length: int) -> Mapping[str, str]:
    """Map the default pair's table and object names to those of `pair`, for objects whose prefix is in `prefixes`."""
    names = {DEFAULT_EXECUTIONS: pair.executions, DEFAULT_ATTEMPTS: pair.attempts}
    for default, table, objects in (
        (DEFAULT_EXECUTIONS, pair.executions, EXECUTIONS_OBJECTS),
        (DEFAULT_ATTEMPTS, pair.attempts, ATTEMPTS_OBJECTS),
    ):
        for prefix, suffix in objects:
            if prefix in prefixes:
                names[f"{prefix}{default}_{suffix}"] = derive_name(prefix, table, suffix, max_length=max_length)
    return names
