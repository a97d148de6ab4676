"""A table as data, the same for every server: what the readers return and the diff compares.

Types, defaults and expressions are in the reader's canonical spelling for its server. A property that a server does
not have stays at its default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Column:
    """One column. `default` and `generated` are canonical expressions, None where there is none."""

    name: str
    type: str
    nullable: bool
    default: str | None = None
    charset: str | None = None
    collation: str | None = None
    generated: str | None = None
    identity: str | None = None
    auto_increment: bool = False
    on_update: str | None = None
    invisible: bool = False
    comment: str | None = None

    @property
    def filled_by_server(self) -> bool:
        """Whether an INSERT may leave the column out."""
        return (
            self.nullable
            or (self.default is not None and self.default.lower() != "null")
            or self.generated is not None
            or self.identity is not None
            or self.auto_increment
        )


@dataclass(frozen=True)
class IndexPart:
    """A key part: a column or an expression. `descending` and `nulls_first` as the server sorts them."""

    name: str
    expression: bool = False
    descending: bool = False
    nulls_first: bool | None = None
    prefix: int | None = None
    opclass: str | None = None
    collation: str | None = None

    def __str__(self) -> str:
        text = f"({self.name})" if self.expression else self.name
        text += f"({self.prefix})" if self.prefix else ""
        text += f" COLLATE {self.collation}" if self.collation else ""
        text += f" {self.opclass}" if self.opclass else ""
        text += " DESC" if self.descending else ""
        if self.nulls_first is not None and self.nulls_first != self.descending:
            text += " NULLS FIRST" if self.nulls_first else " NULLS LAST"
        return text


@dataclass(frozen=True)
class Index:
    """An index, a unique constraint or a primary key.

    `meaning` says what goes wrong without it; `server_named` that its name was never chosen by anybody.
    """

    name: str
    parts: tuple[IndexPart, ...]
    unique: bool = False
    primary: bool = False
    constraint: bool = False
    method: str = "btree"
    include: tuple[str, ...] = ()
    predicate: str | None = None
    nulls_not_distinct: bool = False
    visible: bool = True
    valid: bool = True
    deferrable: bool = False
    comment: str | None = None
    meaning: str = ""
    server_named: bool = False

    @property
    def definition(self) -> str:
        """One line that says what the index is, its name left out."""
        kind = "PRIMARY KEY" if self.primary else "UNIQUE" if self.unique else "INDEX"
        text = f"{kind} ({', '.join(map(str, self.parts))})"
        text += f" USING {self.method}" if self.method != "btree" else ""
        text += f" INCLUDE ({', '.join(self.include)})" if self.include else ""
        text += " NULLS NOT DISTINCT" if self.nulls_not_distinct else ""
        text += f" WHERE {self.predicate}" if self.predicate else ""
        text += " DEFERRABLE" if self.deferrable else ""
        text += "" if self.visible else " INVISIBLE"
        text += "" if self.valid else " INVALID"
        return text


@dataclass(frozen=True)
class Check:
    """A CHECK constraint with the text the server prints for it."""

    name: str
    expression: str
    enforced: bool = True
    validated: bool = True


@dataclass(frozen=True)
class ForeignKey:
    """A foreign key. `ref_table` is the bare name for a table beside this one, else schema.table."""

    name: str
    columns: tuple[str, ...]
    ref_table: str
    ref_columns: tuple[str, ...]
    on_delete: str = "NO ACTION"
    on_update: str = "NO ACTION"
    match: str = "SIMPLE"
    validated: bool = True
    enforced: bool = True
    deferrable: bool = False
    triggers_enabled: bool = True
    server_named: bool = False

    @property
    def definition(self) -> str:
        """One line that says what the key is, its name left out."""
        text = f"FOREIGN KEY ({', '.join(self.columns)}) REFERENCES {self.ref_table} ({', '.join(self.ref_columns)})"
        text += f" ON DELETE {self.on_delete}" if self.on_delete != "NO ACTION" else ""
        text += f" ON UPDATE {self.on_update}" if self.on_update != "NO ACTION" else ""
        text += f" MATCH {self.match}" if self.match != "SIMPLE" else ""
        text += " DEFERRABLE" if self.deferrable else ""
        text += "" if self.validated else " NOT VALID"
        text += "" if self.enforced else " NOT ENFORCED"
        text += "" if self.triggers_enabled else " (its triggers are disabled)"
        return text


@dataclass(frozen=True)
class Trigger:
    """A trigger, a rewrite rule or a row level security policy (`kind`)."""

    name: str
    definition: str
    kind: str = "trigger"
    enabled: bool = True


@dataclass(frozen=True)
class Unread:
    """A fact that could not be read: of which object and property, and why."""

    object: str
    property: str
    reason: str


@dataclass(frozen=True)
class Table:
    """A table as it is or should be.

    `kind` is "table", or what stands in its place ("view", "partitioned table", …). `options` hold what belongs to the
    table as a whole (engine, charset, persistence …) by name. `beside` names tables beside it that an online schema
    change of this one left behind.
    """

    name: str
    kind: str = "table"
    columns: tuple[Column, ...] = ()
    indexes: tuple[Index, ...] = ()
    checks: tuple[Check, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    triggers: tuple[Trigger, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    beside: tuple[str, ...] = ()
    unread: tuple[Unread, ...] = ()
