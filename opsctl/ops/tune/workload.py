"""The reads that are measured: onestep's own, kept equal to what it sends by a test, and opsctl's.

sql/workload/ holds one file for each, the same on every server. `@sender` says who sends it, `@claim` that it is part of a
claim. Binds: :now and :before (thirty days ago), :namespace, :task.
"""

from __future__ import annotations

from dataclasses import dataclass

from opsctl.db import in_text
from opsctl.dialects import AnyDialect
from opsctl.dialects.names import DEFAULT_ATTEMPTS, DEFAULT_EXECUTIONS, Pair
from opsctl.queryfiles import binds_of
from opsctl.resources import find_resource
from opsctl.schema.versions import qualified
from opsctl.sqlfiles import family_of, rename, split_statements

NAMES = (
    "overdue-search",
    "cancel-search",
    "lease-search",
    "ready-search",
    "list",
    "list-failed",
    "waiting",
    "counts",
    "purge",
)


@dataclass(frozen=True)
class Read:
    """One statement with its :name binds, for one pair."""

    name: str
    title: str
    sender: str
    of_claim: bool
    statement: str
    binds: tuple[str, ...]

    @property
    def of_live(self) -> bool:
        """Whether it asks for rows that have not ended, and for no others."""
        return self.of_claim or self.name == "waiting"


def load_workload(dialect: AnyDialect, pair: Pair, schema: str | None) -> tuple[Read, ...]:
    """Return the reads for `pair`, those of a claim first and in the order in which it sends them."""
    family = family_of(dialect.name)
    names = {
        DEFAULT_EXECUTIONS: in_text(qualified(dialect, pair.executions, schema)),
        DEFAULT_ATTEMPTS: in_text(qualified(dialect, pair.attempts, schema)),
    }
    found = []
    for name in NAMES:
        text = (find_resource("sql") / "workload" / f"{name}.sql").read_text(encoding="utf-8")
        header = [line[2:].strip() for line in text.splitlines() if line.startswith("--")]
        [body] = split_statements(text, family)
        statement = rename(body, names, lambda new: new, family)
        sender = next(line.split()[1] for line in header if line.startswith("@sender"))
        title = header[0].partition(": ")[2]
        found.append(Read(name, title, sender, "@claim" in header, statement, tuple(binds_of(statement, family))))
    return tuple(found)
