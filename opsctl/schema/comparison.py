"""What the comparisons of columns, indexes, rules and table options share."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from opsctl.dialects import AnyDialect
from opsctl.dialects.postgresql import PostgreSQL
from opsctl.schema.findings import Finding
from opsctl.schema.fix import Fixer
from opsctl.schema.model import Table
from opsctl.schema.operational import Operational


class Comparison:
    """An expected and a live table, and how names compare and fixes are written on their server."""

    def __init__(
        self,
        dialect: AnyDialect,
        expected: Table,
        live: Table,
        operational: Sequence[Operational] = (),
        recorded: Collection[str] | None = None,
    ) -> None:
        #: The operational indexes of this table, and those that the version record names; None: it could not be read.
        self.operational = operational
        self.recorded = recorded
        self.expected = expected
        self.live = live
        self.fixer = Fixer(dialect, live)
        self.postgresql = isinstance(dialect, PostgreSQL)
        unread = {fact.object for fact in live.unread if fact.property == "definition"}
        #: Objects that were not read whole: nothing is said about them but that.
        self.unread = {self.fold(name) for name in unread}

    def fold(self, name: str) -> str:
        """Column, index and constraint names: MySQL and MariaDB ignore case in them."""
        return name if self.postgresql else name.lower()

    def finding(
        self,
        kind: str,
        name: str,
        property_: str,
        severity: str,
        values: tuple[str | None, str | None],
        message: str,
        fix: str | None = None,
    ) -> Finding:
        """Return a finding about this table; `values` are expected and actual."""
        return Finding(self.live.name, kind, name, property_, severity, values[0], values[1], message, fix)
