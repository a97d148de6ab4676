"""Statements that bring one object of a live table to its expected form, for the server's own client."""

from __future__ import annotations

from opsctl.dialects import AnyDialect
from opsctl.dialects.mariadb import MariaDB
from opsctl.dialects.postgresql import PostgreSQL
from opsctl.schema.model import Check, Column, ForeignKey, Index, IndexPart, Table

#: What a fix costs, said in front of it.
_COPIES = "-- may copy the whole table while writes wait: run it when no worker runs, or with pt-online-schema-change"
_REWRITES = "-- rewrites the whole table and shuts everybody out meanwhile: run it when no worker runs"


class Fixer:
    """Writes the statements for one live table."""

    def __init__(self, dialect: AnyDialect, live: Table) -> None:
        self._dialect = dialect
        self._q = dialect.quote
        self._postgresql = isinstance(dialect, PostgreSQL)
        schema = live.options.get("schema") if self._postgresql else None
        self._prefix = f"{self._q(schema)}." if schema else ""
        self._table = self._prefix + self._q(live.name)

    def add_column(self, column: Column) -> str:
        """A column that is missing."""
        return f"ALTER TABLE {self._table} ADD COLUMN {self._column(column)};"

    def make_nullable(self, live: Column) -> str | None:
        """A column of somebody else's that every INSERT would have to fill; None where its domain says so."""
        if live.type.startswith("domain "):
            return None
        if self._postgresql:
            return f"ALTER TABLE {self._table} ALTER COLUMN {self._q(live.name)} DROP NOT NULL;"
        text = f" CHARACTER SET {live.charset} COLLATE {live.collation}" if live.charset else ""
        return f"ALTER TABLE {self._table} MODIFY COLUMN {self._q(live.name)} {live.type}{text} NULL;"

    def change_column(self, column: Column, live: Column) -> str:
        """A column of another type, null, default or collation."""
        if not self._postgresql:
            return f"{_COPIES}\nALTER TABLE {self._table} MODIFY COLUMN {self._column(column)};"
        name = self._q(column.name)
        steps: list[str] = []
        if live.generated:
            steps.append(f"ALTER COLUMN {name} DROP EXPRESSION")
        if live.identity:
            steps.append(f"ALTER COLUMN {name} DROP IDENTITY")
        if live.default is not None and live.type != column.type:
            steps.append(f"ALTER COLUMN {name} DROP DEFAULT")
        if live.type != column.type or live.collation:
            steps.append(f"ALTER COLUMN {name} TYPE {column.type} USING {self._conversion(name, column, live)}")
        if column.default is not None and (live.default != column.default or live.type != column.type):
            steps.append(f"ALTER COLUMN {name} SET DEFAULT {column.default}")
        if column.default is None and live.default is not None:
            steps.append(f"ALTER COLUMN {name} DROP DEFAULT")
        if live.nullable != column.nullable:
            steps.append(f"ALTER COLUMN {name} {'DROP' if column.nullable else 'SET'} NOT NULL")
        statement = f"ALTER TABLE {self._table} {', '.join(dict.fromkeys(steps))};"
        rewrites = live.type != column.type or live.generated
        return f"{_REWRITES}\n{statement}" if rewrites else statement

    def _conversion(self, name: str, column: Column, live: Column) -> str:
        if live.type == "timestamp without time zone" and column.type == "timestamp with time zone":
            return f"{name} AT TIME ZONE 'UTC'"
        return f"{name}::{column.type}"

    def _column(self, column: Column) -> str:
        text = f"{self._q(column.name)} {column.type}"
        text += " NULL" if column.nullable else " NOT NULL"
        if column.default is not None:
            default = column.default
            text += f" DEFAULT ({default})" if default.endswith(")") else f" DEFAULT {default}"
        return text

    def create_index(self, index: Index) -> str:
        """An index or unique constraint that is missing."""
        if not self._postgresql:
            return f"ALTER TABLE {self._table} ADD {self._mysql_index(index)};"
        if index.primary:
            return f"ALTER TABLE {self._table} ADD PRIMARY KEY ({self._key(index)});"
        if index.constraint:
            return f"ALTER TABLE {self._table} ADD CONSTRAINT {self._q(index.name)} UNIQUE ({self._key(index)});"
        unique = "UNIQUE " if index.unique else ""
        where = f" WHERE {index.predicate}" if index.predicate else ""
        return f"CREATE {unique}INDEX CONCURRENTLY {self._q(index.name)} ON {self._table} ({self._key(index)}){where};"

    def replace_index(self, index: Index, live: Index) -> str:
        """An index that is there and different."""
        if not live.visible and _same_but_visibility(index, live):
            word = "NOT IGNORED" if isinstance(self._dialect, MariaDB) else "VISIBLE"
            return f"ALTER TABLE {self._table} ALTER INDEX {self._q(live.name)} {word};"
        if self._postgresql:
            if not live.valid and _same_but_visibility(index, live):
                return f"REINDEX INDEX CONCURRENTLY {self._prefix}{self._q(live.name)};"
            drop = (
                f"ALTER TABLE {self._table} DROP CONSTRAINT {self._q(live.name)};"
                if live.constraint
                else f"DROP INDEX CONCURRENTLY {self._prefix}{self._q(live.name)};"
            )
            return f"{drop}\n{self.create_index(index)}"
        drop = "DROP PRIMARY KEY" if live.primary else f"DROP INDEX {self._q(live.name)}"
        return f"ALTER TABLE {self._table} {drop}, ADD {self._mysql_index(index)};"

    def drop_index(self, live: Index) -> str:
        """An index that should not be there."""
        if not self._postgresql:
            return f"ALTER TABLE {self._table} DROP INDEX {self._q(live.name)};"
        if live.constraint:
            return f"ALTER TABLE {self._table} DROP CONSTRAINT {self._q(live.name)};"
        return f"DROP INDEX CONCURRENTLY {self._prefix}{self._q(live.name)};"

    def _mysql_index(self, index: Index) -> str:
        if index.primary:
            return f"PRIMARY KEY ({self._key(index)})"
        return f"{'UNIQUE ' if index.unique else ''}INDEX {self._q(index.name)} ({self._key(index)})"

    def _key(self, index: Index) -> str:
        return ", ".join(map(self._part, index.parts))

    def _part(self, part: IndexPart) -> str:
        return self._q(part.name) + (" DESC" if part.descending else "")

    def add_check(self, check: Check) -> str:
        """A CHECK that is missing."""
        add = f"ALTER TABLE {self._table} ADD CONSTRAINT {self._q(check.name)} CHECK ({check.expression})"
        if not self._postgresql:
            return f"{add};"
        # NOT VALID takes its lock for a moment; VALIDATE reads the table while others write.
        return f"{add} NOT VALID;\n{self._validate(check.name)}"

    def replace_check(self, check: Check, live: Check, *, same_rule: bool) -> str:
        """A CHECK that says something else, or the same without being enforced or validated."""
        if same_rule and self._postgresql and live.enforced:
            return self._validate(live.name)
        if same_rule and not self._postgresql:
            return f"ALTER TABLE {self._table} ALTER CHECK {self._q(live.name)} ENFORCED;"
        return f"{self.drop_check(live)}\n{self.add_check(check)}"

    def drop_check(self, live: Check) -> str:
        """A CHECK that should not be there."""
        word = "CONSTRAINT" if self._postgresql or isinstance(self._dialect, MariaDB) else "CHECK"
        return f"ALTER TABLE {self._table} DROP {word} {self._q(live.name)};"

    def _validate(self, name: str) -> str:
        return f"ALTER TABLE {self._table} VALIDATE CONSTRAINT {self._q(name)};"

    def add_key(self, key: ForeignKey) -> str:
        """A foreign key that is missing."""
        columns = ", ".join(map(self._q, key.columns))
        target = f"{self._prefix}{self._q(key.ref_table)} ({', '.join(map(self._q, key.ref_columns))})"
        text = (
            f"ALTER TABLE {self._table} ADD CONSTRAINT {self._q(key.name)} FOREIGN KEY ({columns}) REFERENCES {target}"
        )
        text += f" ON DELETE {key.on_delete}"
        return f"{text} NOT VALID;\n{self._validate(key.name)}" if self._postgresql else f"{text};"

    def replace_key(self, key: ForeignKey, live: ForeignKey) -> str:
        """A foreign key that says something else, or the same without being enforced."""
        # Disabled triggers come back with a new key; ENABLE TRIGGER ALL would wake triggers that somebody put to sleep.
        if (
            self._postgresql
            and not live.validated
            and live.enforced
            and live.triggers_enabled
            and live.on_delete == key.on_delete
        ):
            return self._validate(live.name)
        word = "CONSTRAINT" if self._postgresql else "FOREIGN KEY"
        return f"ALTER TABLE {self._table} DROP {word} {self._q(live.name)};\n{self.add_key(key)}"

    def drop_trigger(self, name: str, kind: str) -> str:
        """A trigger, rule or policy that should not be there."""
        on = f" ON {self._table}" if self._postgresql else ""
        return f"DROP {kind.upper()} {self._prefix if not on else ''}{self._q(name)}{on};"

    def engine(self, name: str) -> str:
        """Another storage engine."""
        return f"{_COPIES}\nALTER TABLE {self._table} ENGINE={name};"

    def convert_charset(self, name: str, live: Table) -> str:
        """Another character set of the table: of its columns too, or only what new columns would get."""
        if all(column.charset in (None, name) for column in live.columns):
            return f"ALTER TABLE {self._table} DEFAULT CHARACTER SET {name};"
        # The server refuses to convert one end of a foreign key, though both ends are converted in the end.
        convert = f"ALTER TABLE {self._table} CONVERT TO CHARACTER SET {name};"
        return f"{_COPIES}\nSET SESSION foreign_key_checks = 0;\n{convert}\nSET SESSION foreign_key_checks = 1;"

    def alter(self, clause: str) -> str:
        """Any other ALTER TABLE of this table."""
        return f"ALTER TABLE {self._table} {clause};"


def _same_but_visibility(index: Index, live: Index) -> bool:
    return index.unique == live.unique and [(p.name.lower(), p.descending) for p in index.parts] == [
        (p.name.lower(), p.descending) for p in live.parts
    ]
