"""Compare a live table with the expected one: what differs, and what that does to claim, submit, heartbeat, list, purge.

Severity by consequence: error, a write of onestep fails or a promise to its users is gone; warning, a safety net is gone,
a read is slow, or something stands on the table that can reject a write; info, nothing changes for onestep.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from opsctl.dialects import AnyDialect
from opsctl.dialects.postgresql import PostgreSQL
from opsctl.schema.diff_columns import compare_columns
from opsctl.schema.expressions import rejected_values, same_check, same_meaning
from opsctl.schema.findings import ERROR, INFO, WARNING, Finding
from opsctl.schema.fix import Fixer
from opsctl.schema.model import Check, ForeignKey, Index, IndexPart, Table, Unread

#: Table options that change nothing for onestep, on any server.
_COSMETIC = frozenset(
    [
        "comment",
        "row_format",
        "stats_persistent",
        "stats_auto_recalc",
        "stats_sample_pages",
        "key_block_size",
        "compression",
        "encryption",
        "encrypted",
        "encryption_key_id",
        "tablespace",
        "avg_row_length",
        "max_rows",
        "min_rows",
        "checksum",
        "delay_key_write",
        "pack_keys",
        "page_compressed",
        "page_compression_level",
        "transactional",
        "engine_attribute",
        "secondary_engine_attribute",
        "auto_increment",
        "autoextend_size",
        "fillfactor",
        "toast_tuple_target",
        "parallel_workers",
        "log_autovacuum_min_duration",
        "page_checksum",
        "schema",
        "charset",
        "collation",
        "engine",
        "persistence",
    ]
)


def compare_table(dialect: AnyDialect, expected: Table, live: Table | None) -> list[Finding]:
    """Return every difference of `live` (None: it does not exist) from `expected`, gravest first."""
    if live is None:
        return [_missing_table(expected)]
    if any(fact.property == "table" for fact in live.unread):
        return []
    if live.kind != "table":
        message = f"a {live.kind} stands where onestep needs an ordinary table"
        return [Finding(live.name, "table", live.name, "kind", ERROR, "table", live.kind, message)]
    comparison = _Comparison(dialect, expected, live)
    return sorted(comparison.findings(), key=lambda finding: (ERROR, WARNING, INFO).index(finding.severity))


def _missing_table(expected: Table) -> Finding:
    message = f"the table {expected.name} is missing: no execution can be submitted or claimed"
    return Finding(
        expected.name,
        "table",
        expected.name,
        "existence",
        ERROR,
        "present",
        None,
        message,
        "opsctl init-tables",
    )


class _Comparison:
    def __init__(self, dialect: AnyDialect, expected: Table, live: Table) -> None:
        self.expected = expected
        self.live = live
        self.fixer = Fixer(dialect, live)
        self.postgresql = isinstance(dialect, PostgreSQL)
        unread = {fact.object for fact in live.unread if fact.property == "definition"}
        self.unread = {self.fold(name) for name in unread}

    def fold(self, name: str) -> str:
        """Column, index and constraint names: MySQL and MariaDB ignore case in them."""
        return name if self.postgresql else name.lower()

    def findings(self) -> Iterator[Finding]:
        """Yield differences in an order in which their fixes can be applied."""
        yield from self._options()
        yield from compare_columns(
            self.expected,
            self.live,
            self.fixer,
            fold=self.fold,
            unread=self.unread,
            postgresql=self.postgresql,
        )
        yield from self._indexes()
        yield from self._checks()
        yield from self._foreign_keys()
        yield from self._triggers()
        yield from self._leftovers()

    def _finding(
        self,
        kind: str,
        name: str,
        property_: str,
        severity: str,
        values: tuple[str | None, str | None],
        message: str,
        fix: str | None = None,
    ) -> Finding:
        return Finding(self.live.name, kind, name, property_, severity, values[0], values[1], message, fix)

    # -- the table as a whole ---------------------------------------------------------------------------------------

    def _options(self) -> Iterator[Finding]:
        live, name = self.live.options, self.live.name
        if not self.postgresql:
            yield from self._mysql_options()
        elif live["persistence"] != "logged":
            message = (
                f"the table is {live['persistence']}: a crash of the server empties it, and a standby has none of it"
            )
            yield self._finding(
                "table",
                name,
                "persistence",
                ERROR,
                ("logged", live["persistence"]),
                message,
                self.fixer.alter("SET LOGGED"),
            )
        for option, value in live.items():
            if option == "row level security":
                message = (
                    "row level security is on: for a role other than the owner rows are invisible to claim, get and list, "
                    "and its writes are refused, unless a policy lets them through"
                )
                yield self._finding(
                    "table",
                    name,
                    option,
                    ERROR,
                    ("off", value),
                    message,
                    self.fixer.alter("DISABLE ROW LEVEL SECURITY"),
                )
            elif option.endswith("autovacuum_enabled") and value.lower() in ("false", "off", "0", "no"):
                message = "autovacuum is off: every claim and heartbeat leaves dead rows that are never cleaned, so reads slow down for ever"
                yield self._finding(
                    "table",
                    name,
                    option,
                    WARNING,
                    ("on", value),
                    message,
                    self.fixer.alter(f"RESET ({option})"),
                )
            elif option == "inheritance":
                message = "the table takes part in inheritance: keys and foreign keys do not reach over its parts, and reads take in the children's rows"
                yield self._finding("table", name, option, WARNING, ("none", value), message)
            elif option == "partitions":
                message = "the table is partitioned: foreign keys and unique keys over all rows are not possible"
                yield self._finding("table", name, option, WARNING, (None, value), message)
            elif option == "system versioning":
                message = "system versioning keeps every old version of every row: each claim and heartbeat makes the table grow"
                yield self._finding(
                    "table",
                    name,
                    option,
                    WARNING,
                    ("off", value),
                    message,
                    self.fixer.alter("DROP SYSTEM VERSIONING"),
                )
            elif option not in _COSMETIC and option not in self.expected.options:
                autovacuum = option.startswith(("autovacuum_", "toast.", "vacuum_"))
                severity, word = (
                    (INFO, "changes nothing for onestep") if autovacuum else (WARNING, "is not known to be harmless")
                )
                yield self._finding(
                    "table",
                    name,
                    option,
                    severity,
                    (None, value),
                    f"the table option {option} = {value} {word}",
                )
            elif option in _COSMETIC and option not in (*_STRUCTURAL, *self.expected.options):
                yield self._finding("table", name, option, INFO, (None, value), f"the table has {option} = {value}")

    def _mysql_options(self) -> Iterator[Finding]:
        live, expected, name = self.live.options, self.expected.options, self.live.name
        engine = live.get("engine", "")
        if engine.lower() != expected["engine"].lower():
            message = f"engine {engine} has no row locks, transactions and foreign keys as InnoDB has: two workers can claim one execution"
            yield self._finding(
                "table",
                name,
                "engine",
                ERROR,
                (expected["engine"], engine),
                message,
                self.fixer.engine(expected["engine"]),
            )
        charset = live.get("charset", "")
        if charset != expected["charset"]:
            message = f"character set {charset} cannot hold every character: such a name, key or worker id is refused or stored changed"
            yield self._finding(
                "table",
                name,
                "charset",
                ERROR,
                (expected["charset"], charset),
                message,
                self.fixer.convert_charset(expected["charset"]),
            )

    # -- indexes ----------------------------------------------------------------------------------------------------

    def _indexes(self) -> Iterator[Finding]:
        by_name = {self.fold(index.name): index for index in self.live.indexes}
        taken: set[str] = set()
        open_: list[Index] = []
        for wanted in self.expected.indexes:
            same = by_name.get(self._index_key(wanted))
            if same is not None and self._same_index(wanted, same):
                taken.add(self.fold(same.name))
                yield from self._index_details(wanted, same)
            elif self.fold(wanted.name) not in self.unread:
                open_.append(wanted)
        for wanted in open_:
            others = (index for name, index in by_name.items() if name not in taken)
            other = next((index for index in others if self._same_index(wanted, index)), None)
            named = by_name.get(self._index_key(wanted))
            if other is not None:
                taken.add(self.fold(other.name))
                if not wanted.server_named:
                    yield self._finding(
                        "index",
                        other.name,
                        "name",
                        INFO,
                        (wanted.name, other.name),
                        f"does the work of {wanted.name} under another name",
                    )
            elif named is not None:
                taken.add(self.fold(named.name))
                yield self._changed_index(wanted, named)
            else:
                yield self._missing_index(wanted)
        for name, index in by_name.items():
            if name not in taken:
                yield self._extra_index(index)

    def _index_key(self, wanted: Index) -> str:
        """A primary key is found by being one, whatever it is called."""
        if wanted.primary:
            return next((self.fold(i.name) for i in self.live.indexes if i.primary), "")
        return self.fold(wanted.name)

    def _same_index(self, wanted: Index, live: Index) -> bool:
        return not self._index_differences(wanted, live)

    def _index_differences(self, wanted: Index, live: Index) -> list[str]:
        differences = []
        if wanted.unique != live.unique:
            differences.append("unique")
        if self._parts(wanted.parts) != self._parts(live.parts):
            differences.append("columns")
        if not same_meaning(wanted.predicate, live.predicate):
            differences.append("predicate")
        for name in ("primary", "method", "nulls_not_distinct", "visible", "valid", "deferrable"):
            if getattr(wanted, name) != getattr(live, name):
                differences.append(name)
        if live.include:
            # A large value in it no longer fits into the index, and the write is refused.
            differences.append("include")
        return differences

    def _parts(self, parts: Sequence[IndexPart]) -> list[IndexPart]:
        return [replace(part, name=self.fold(part.name)) for part in parts]

    def _index_details(self, wanted: Index, live: Index) -> Iterator[Finding]:
        if live.comment:
            yield self._finding("index", live.name, "comment", INFO, (None, live.comment), "has a comment")
        if wanted.constraint != live.constraint and not wanted.primary:
            forms = tuple("a constraint" if index.constraint else "an index" for index in (wanted, live))
            message = f"the same rule as {forms[1]} where onestep makes it as {forms[0]}"
            yield self._finding("index", live.name, "constraint", INFO, (forms[0], forms[1]), message)

    def _changed_index(self, wanted: Index, live: Index) -> Finding:
        differences = self._index_differences(wanted, live)
        if differences == ["visible"]:
            message = f"is hidden from the optimizer: {wanted.meaning}"
        elif differences == ["valid"]:
            message = f"is invalid, left by a build that failed or is still under way: {wanted.meaning}"
        else:
            message = f"is another index than onestep's ({', '.join(differences)} differ): {wanted.meaning}"
        severity = ERROR if wanted.unique else WARNING
        values = (wanted.definition, live.definition)
        return self._finding(
            "index",
            live.name,
            differences[0],
            severity,
            values,
            message,
            self.fixer.replace_index(wanted, live),
        )

    def _missing_index(self, wanted: Index) -> Finding:
        severity = ERROR if wanted.unique else WARNING
        what = "the primary key" if wanted.primary else "it"
        return self._finding(
            "index",
            wanted.name,
            "existence",
            severity,
            (wanted.definition, None),
            f"{what} is missing: {wanted.meaning}",
            self.fixer.create_index(wanted),
        )

    def _extra_index(self, live: Index) -> Finding:
        values = (None, live.definition)
        if live.name.endswith(("_ccnew", "_ccold")) or ("_ccnew" in live.name and not live.valid):
            message = "is what a REINDEX CONCURRENTLY left behind: it slows every write and serves no read"
            return self._finding(
                "leftover", live.name, "existence", WARNING, values, message, self.fixer.drop_index(live)
            )
        if not live.valid:
            message = (
                "is invalid, left by a build that failed or is still under way: it slows every write and serves no read"
            )
            return self._finding("index", live.name, "valid", WARNING, values, message, self.fixer.drop_index(live))
        if live.unique:
            message = "is a unique index that onestep does not know: a submit, claim or attempt that repeats its columns is refused"
            return self._finding("index", live.name, "existence", ERROR, values, message, self.fixer.drop_index(live))
        return self._finding(
            "index",
            live.name,
            "existence",
            INFO,
            values,
            "is an index beside onestep's: it costs each write a little",
        )

    # -- CHECKs -----------------------------------------------------------------------------------------------------

    def _checks(self) -> Iterator[Finding]:
        by_name = {self.fold(check.name): check for check in self.live.checks}
        taken: set[str] = set()
        for wanted in self.expected.checks:
            key = self.fold(wanted.name)
            named = by_name.get(key)
            if key in self.unread:
                continue
            if named is None or not same_check(wanted.expression, named.expression):
                other = next(
                    (c for k, c in by_name.items() if k not in taken and same_check(wanted.expression, c.expression)),
                    None,
                )
                if other is not None:
                    taken.add(self.fold(other.name))
                    yield self._finding(
                        "check",
                        other.name,
                        "name",
                        INFO,
                        (wanted.name, other.name),
                        f"is the rule {wanted.name} under another name",
                    )
                    yield from self._check_state(wanted, other)
                    continue
            if named is None:
                message = f"it is missing: {_unchecked(wanted)}"
                yield self._finding(
                    "check",
                    wanted.name,
                    "existence",
                    WARNING,
                    (wanted.expression, None),
                    message,
                    self.fixer.add_check(wanted),
                )
                continue
            taken.add(key)
            if same_check(wanted.expression, named.expression):
                yield from self._check_state(wanted, named)
            else:
                yield self._changed_check(wanted, named)
        for key, check in by_name.items():
            if key not in taken:
                message = "is a CHECK that onestep does not know: it refuses writes that onestep makes when they do not meet it"
                severity = WARNING if check.enforced else INFO
                yield self._finding(
                    "check",
                    check.name,
                    "existence",
                    severity,
                    (None, check.expression),
                    message,
                    self.fixer.drop_check(check),
                )

    def _check_state(self, wanted: Check, live: Check) -> Iterator[Finding]:
        fix = self.fixer.replace_check(wanted, live, same_rule=True)
        if not live.enforced:
            message = f"is not enforced: {_unchecked(wanted)}"
            yield self._finding("check", live.name, "enforced", WARNING, ("enforced", "not enforced"), message, fix)
        elif not live.validated:
            message = "is not validated: rows from before may break it"
            yield self._finding("check", live.name, "validated", WARNING, ("validated", "not validated"), message, fix)

    def _changed_check(self, wanted: Check, live: Check) -> Finding:
        rejected, admitted = rejected_values(wanted.expression, live.expression)
        said = []
        if rejected:
            said.append(f"{_some(rejected)} will be rejected")
        if admitted:
            said.append(f"{_some(admitted)} will be accepted")
        message = "; ".join(said) or "is another rule than onestep's: it can refuse what onestep writes"
        severity = WARNING if admitted and not rejected else ERROR
        fix = self.fixer.replace_check(wanted, live, same_rule=False)
        return self._finding(
            "check", live.name, "expression", severity, (wanted.expression, live.expression), message, fix
        )

    # -- foreign keys, triggers, leftovers --------------------------------------------------------------------------

    def _foreign_keys(self) -> Iterator[Finding]:
        by_name = {self.fold(key.name): key for key in self.live.foreign_keys}
        taken: set[str] = set()
        for wanted in self.expected.foreign_keys:
            same = next((k for k in by_name.values() if _same_key(wanted, k, self.fold)), None)
            named = by_name.get(self.fold(wanted.name))
            # On PostgreSQL nobody named the key, so what joins the same columns is meant to be it.
            near = named or next((k for k in by_name.values() if k.columns == wanted.columns), None)
            if same is not None:
                taken.add(self.fold(same.name))
                if self.fold(same.name) != self.fold(wanted.name) and not wanted.server_named:
                    yield self._finding(
                        "foreign_key",
                        same.name,
                        "name",
                        INFO,
                        (wanted.name, same.name),
                        f"is the key {wanted.name} under another name",
                    )
            elif near is not None:
                taken.add(self.fold(near.name))
                yield self._finding(
                    "foreign_key",
                    near.name,
                    "definition",
                    WARNING,
                    (wanted.definition, near.definition),
                    _key_meaning(wanted, near),
                    self.fixer.replace_key(wanted, near),
                )
            elif self.fold(wanted.name) not in self.unread:
                message = "it is missing: attempts of executions that do not exist can be written, and a purge leaves attempts behind"
                yield self._finding(
                    "foreign_key",
                    wanted.name,
                    "existence",
                    WARNING,
                    (wanted.definition, None),
                    message,
                    self.fixer.add_key(wanted),
                )
        for name, key in by_name.items():
            if name not in taken:
                message = "is a foreign key that onestep does not know: it refuses writes whose value is not in the other table"
                yield self._finding("foreign_key", key.name, "existence", WARNING, (None, key.definition), message)

    def _triggers(self) -> Iterator[Finding]:
        for trigger in self.live.triggers:
            values = (None, trigger.definition)
            if trigger.name.lower().startswith("pt_osc_"):
                message = "is what pt-online-schema-change left behind (or has at work now): every write goes twice, and fails once its copy is gone"
                yield self._finding(
                    "leftover",
                    trigger.name,
                    "existence",
                    WARNING,
                    values,
                    message,
                    self.fixer.drop_trigger(trigger.name, trigger.kind),
                )
            elif trigger.kind == "policy":
                severity = ERROR if "row level security" in self.live.options else INFO
                yield self._finding(
                    "trigger",
                    trigger.name,
                    "policy",
                    severity,
                    values,
                    "is a row level security policy on this table",
                )
            elif not trigger.enabled:
                yield self._finding(
                    "trigger",
                    trigger.name,
                    trigger.kind,
                    INFO,
                    values,
                    f"is a {trigger.kind} that is disabled",
                )
            else:
                message = f"is a {trigger.kind} that onestep does not know: it runs with every write it names and can change or refuse it"
                yield self._finding(
                    "trigger",
                    trigger.name,
                    trigger.kind,
                    WARNING,
                    values,
                    message,
                    self.fixer.drop_trigger(trigger.name, trigger.kind),
                )

    def _leftovers(self) -> Iterator[Finding]:
        for name in self.live.beside:
            message = f"is a table that an online schema change of {self.live.name} left behind (or has at work now): drop it once no such tool runs"
            yield self._finding("leftover", name, "existence", WARNING, (None, "present"), message)


#: Options that other code compares, or that place the table rather than change it.
_STRUCTURAL = ("schema", "charset", "collation", "engine", "persistence", "auto_increment")


def _unchecked(check: Check) -> str:
    if "status" in check.expression.split(" ")[0]:
        return "a status that no worker and no list knows can be written"
    return "a key without its digest can be written, which then conflicts with every replay"


def _some(values: list[str], most: int = 4) -> str:
    listed = ", ".join(values[:most])
    return listed if len(values) <= most else f"{listed} and {len(values) - most} more"


def _same_key(wanted: ForeignKey, live: ForeignKey, fold: object) -> bool:
    assert callable(fold)
    return (
        [fold(c) for c in live.columns] == [fold(c) for c in wanted.columns]
        and fold(live.ref_table) == fold(wanted.ref_table)
        and [fold(c) for c in live.ref_columns] == [fold(c) for c in wanted.ref_columns]
        and (live.on_delete, live.validated, live.enforced, live.triggers_enabled)
        == (wanted.on_delete, wanted.validated, wanted.enforced, wanted.triggers_enabled)
        and _harmless_update(live)
    )


def _harmless_update(live: ForeignKey) -> bool:
    """onestep never changes an id, so ON UPDATE, MATCH and DEFERRABLE of one column could differ; still: another key."""
    return live.on_update in ("NO ACTION", "RESTRICT") and not live.deferrable


def _key_meaning(wanted: ForeignKey, live: ForeignKey) -> str:
    if live.ref_table.lower() != wanted.ref_table.lower():
        return f"points to {live.ref_table}: an attempt of an execution in {wanted.ref_table} is refused"
    if live.on_delete != wanted.on_delete:
        return f"ON DELETE {wanted.on_delete} is lost: deleting an execution that has attempts is refused or leaves them behind"
    if not live.enforced or not live.triggers_enabled:
        return "is not enforced: attempts of executions that do not exist can be written, and a purge leaves attempts behind"
    if not live.validated:
        return "is not validated: attempts from before may belong to no execution"
    return "is another key than onestep's"


def unread_facts(table: Table | None) -> tuple[Unread, ...]:
    """Return what could not be read of `table`."""
    return table.unread if table is not None else ()
