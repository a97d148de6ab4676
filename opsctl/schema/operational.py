"""The operational indexes: what makes onestep's claims, and opsctl's own reads, cost what is live and not what is stored.

sql/<dialect>/indexes/ holds one file for each, whose header says what it is for:

    -- ready: what a claim looks for, apart from what is finished
    --
    -- Free text: what it does and when it pays.
    --
    -- @serves claim, counts
    -- @needs another
    -- @optional
    -- @hides ix_onestep_executions_claim
    -- @writes submit 1, claim 2, heartbeat 0, complete 2
    CREATE INDEX …

`@writes` counts the index entries that one act of onestep writes more (a moved entry is two). Which indexes stand here,
and why, is decided in docs/adr/0009-operational-indexes.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from opsctl.dialects import AnyDialect
from opsctl.dialects.names import Pair, derive_name
from opsctl.dialects.postgresql import PostgreSQL
from opsctl.errors import OpsctlError
from opsctl.resources import find_resource
from opsctl.schema.expressions import same_meaning
from opsctl.schema.model import Index, IndexPart, Table
from opsctl.sqlfiles import family_of, rename, split_statements

#: In the order in which they are applied: what hides an index comes behind what takes its place.
NAMES = ("ready", "overdue", "finished", "hide-claim")
ACTS = ("submit", "claim", "heartbeat", "complete")

_CREATE = re.compile(
    r"CREATE INDEX (?:CONCURRENTLY )?(?P<name>\w+)\s+ON \w+ \((?P<columns>[^)]+)\)(?:\s+WHERE (?P<predicate>.+))?(?:\s+ALGORITHM.*)?",
    re.DOTALL,
)


def revision_of(name: str) -> str:
    """Return the revision of the operational index `name` in Alembic's branch `indexes`."""
    return f"indexes_{name.replace('-', '_')}_0001"


@dataclass(frozen=True)
class Operational:
    """One operational index of a pair, or the hiding of a stock index (`hides` and no `index`).

    `statement` makes it online, with the names of the pair; `writes` are index entries more for each act of onestep;
    `needs` names the other that must be there first; an `optional` one pays in some deployments only; `folds`: the
    server takes names in other letter case for the same.
    """

    name: str
    title: str
    purpose: str
    statement: str
    serves: tuple[str, ...]
    writes: Mapping[str, int]
    index: Index | None = None
    hides: str | None = None
    needs: str | None = None
    optional: bool = False
    folds: bool = True

    @property
    def object(self) -> str:
        """The name of the index that it makes or hides."""
        return self.index.name if self.index is not None else str(self.hides)

    @property
    def revision(self) -> str:
        """Its revision in Alembic's branch `indexes`."""
        return revision_of(self.name)

    def found_in(self, table: Table) -> Index | None:
        """Return the index of `table` that does its work, whatever its name: the same columns, or these and more behind.

        One that is invalid or hidden does no work, and is not returned.
        """
        if self.index is None:
            return None
        candidates = [live for live in table.indexes if live.valid and live.visible and self.does_the_work(live)]
        return min(candidates, key=lambda live: (live.name != self.index.name, len(live.parts)), default=None)  # type: ignore[union-attr]

    def is_own_in(self, table: Table) -> bool:
        """Whether it holds under its own name, and not by somebody else's index."""
        return (
            self.is_hidden_in(table)
            if self.hides
            else any(self.is_called(live.name) and self.does_the_work(live) for live in table.indexes)
        )

    def does_the_work(self, live: Index) -> bool:
        """Whether `live` has its columns first, in order, and holds the same rows; its validity is not looked at."""
        assert self.index is not None
        wanted, have = self.index.parts, live.parts[: len(self.index.parts)]
        same = [(part.name.lower(), part.descending, part.prefix, part.expression) for part in wanted]
        return (
            same == [(part.name.lower(), part.descending, part.prefix, part.expression) for part in have]
            and live.method == "btree"
            and not live.unique
            and same_meaning(self.index.predicate, live.predicate)
        )

    def is_hidden_in(self, table: Table) -> bool:
        """Whether the index that it hides is there and hidden."""
        return any(self.is_called(live.name) and not live.visible for live in table.indexes)

    def is_called(self, name: str) -> bool:
        """Whether `name` is that of the index that it makes or hides."""
        return name.lower() == self.object.lower() if self.folds else name == self.object

    def holds_in(self, table: Table) -> bool:
        """Whether there is nothing left to do for it."""
        return self.is_hidden_in(table) if self.hides else self.found_in(table) is not None


def load_operational(dialect: AnyDialect, pair: Pair, schema: str | None = None) -> tuple[Operational, ...]:
    """Return the operational indexes of `pair`, in the order in which they are applied. `schema` is PostgreSQL's."""
    folder = find_resource("sql") / dialect.name / "indexes"
    found = []
    for name in NAMES:
        path = folder / f"{name}.sql"
        if path.exists():
            found.append(_for_pair(_parse(name, path.read_text(encoding="utf-8"), dialect), dialect, pair, schema))
    return tuple(found)


def _parse(name: str, text: str, dialect: AnyDialect) -> Operational:
    header = [line[2:].strip() for line in text.splitlines() if line.startswith("--")]
    facts = dict(line[1:].partition(" ")[::2] for line in header if line.startswith("@"))
    [statement] = split_statements(text, family_of(dialect.name))
    begun, _, title = header[0].partition(": ")
    if begun != name:
        raise OpsctlError(f"sql/{dialect.name}/indexes/{name}.sql begins with {begun!r}", "reinstall opsctl")
    writes = dict(part.split() for part in facts["writes"].split(", "))
    return Operational(
        name=name,
        title=title,
        purpose=" ".join(line for line in header[1:] if line and not line.startswith("@")),
        statement=statement,
        serves=tuple(facts["serves"].split(", ")),
        writes={act: int(writes[act]) for act in ACTS},
        index=None if "hides" in facts else _index(statement, dialect),
        hides=facts.get("hides"),
        needs=facts.get("needs"),
        optional="optional" in facts,
        folds=not isinstance(dialect, PostgreSQL),
    )


def _index(statement: str, dialect: AnyDialect) -> Index:
    match = _CREATE.fullmatch(statement)
    assert match is not None, statement
    nulls_first = False if isinstance(dialect, PostgreSQL) else None
    parts = tuple(IndexPart(column.strip(), nulls_first=nulls_first) for column in match["columns"].split(","))
    return Index(match["name"], parts, predicate=match["predicate"])


def _for_pair(found: Operational, dialect: AnyDialect, pair: Pair, schema: str | None) -> Operational:
    names = dict(dialect.derived_names(pair))
    if found.index is not None:
        own = derive_name("ix_", pair.executions, found.name, max_length=dialect.identifier_limit)
        names[found.index.name] = own
    place = f"{dialect.quote(schema)}." if schema else ""
    quoted = {old: dialect.quote(new) for old, new in names.items()}
    # An index of PostgreSQL is made beside its table: only the table takes the schema.
    quoted = {old: new if old.startswith(("ix_", "uq_")) else place + new for old, new in quoted.items()}
    changed = pair != Pair() or schema is not None
    return replace(
        found,
        statement=rename(found.statement, quoted, lambda name: name, family_of(dialect.name))
        if changed
        else found.statement,
        index=replace(found.index, name=names[found.index.name]) if found.index is not None else None,
        hides=names[found.hides] if found.hides else None,
    )
