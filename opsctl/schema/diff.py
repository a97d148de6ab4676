"""Compare a live table with the expected one: what differs, and what that does to claim, submit, heartbeat, list, purge.

Severity by consequence: error, a write of onestep fails or a promise to its users is gone; warning, a safety net is
gone, a read is slow, or something stands on the table that can reject a write; info, nothing changes for onestep.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from opsctl.dialects import AnyDialect
from opsctl.schema.comparison import Comparison
from opsctl.schema.diff_columns import compare_columns
from opsctl.schema.diff_indexes import compare_indexes
from opsctl.schema.diff_operational import compare_operational
from opsctl.schema.diff_options import compare_leftovers, compare_options
from opsctl.schema.diff_rules import compare_checks, compare_foreign_keys, compare_triggers
from opsctl.schema.findings import ERROR, SEVERITIES, Finding
from opsctl.schema.model import Table
from opsctl.schema.operational import Operational

#: In an order in which the fixes can be applied.
_COMPARISONS = (
    compare_options,
    compare_columns,
    compare_indexes,
    compare_operational,
    compare_checks,
    compare_foreign_keys,
    compare_triggers,
    compare_leftovers,
)


def compare_table(
    dialect: AnyDialect,
    expected: Table,
    live: Table | None,
    operational: Sequence[Operational] = (),
    recorded: Collection[str] | None = None,
) -> list[Finding]:
    """Return every difference of `live` (None: it does not exist) from `expected`, gravest first.

    `operational` are the indexes that may stand beside those of `expected`, `recorded` the names of those on record.
    """
    if live is None:
        return [_missing_table(expected)]
    if any(fact.property == "table" for fact in live.unread):
        return []
    if live.kind != "table":
        message = f"a {live.kind} stands where onestep needs an ordinary table"
        return [Finding(live.name, "table", live.name, "kind", ERROR, "table", live.kind, message)]
    comparison = Comparison(dialect, expected, live, operational, recorded)
    findings = [finding for compare in _COMPARISONS for finding in compare(comparison)]
    return sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))


def _missing_table(expected: Table) -> Finding:
    message = "is missing: no execution can be submitted or claimed"
    return Finding(expected.name, "table", expected.name, "existence", ERROR, "present", None, message)
