"""Findings: what differs, what it does to the workload, and how to mend it."""

from __future__ import annotations

from dataclasses import asdict, dataclass

ERROR = "error"
WARNING = "warning"
INFO = "info"
SEVERITIES = (ERROR, WARNING, INFO)


@dataclass(frozen=True)
class Finding:
    """One difference between a live table and the expected one.

    `kind` is "table", "column", "index", "check", "foreign_key", "trigger" or "leftover"; `object` the thing's own name;
    `fix` statements that mend it, None where a person has to decide.
    """

    table: str
    kind: str
    object: str
    property: str
    severity: str
    expected: str | None
    actual: str | None
    message: str
    fix: str | None = None

    def as_dict(self) -> dict[str, str | None]:
        """The finding in the form of the JSON contract."""
        return asdict(self)


def at_least(severity: str, threshold: str) -> bool:
    """Whether `severity` is as grave as `threshold` or graver."""
    return SEVERITIES.index(severity) <= SEVERITIES.index(threshold)
