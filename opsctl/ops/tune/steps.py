"""What `tune apply` and `tune revert` have to do on this pair: reads only, decides, and refuses what cannot be done."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from opsctl.db import Session
from opsctl.dialects import require_supported
from opsctl.dialects.mariadb import MariaDB
from opsctl.dialects.names import Pair
from opsctl.dialects.postgresql import PostgreSQL
from opsctl.errors import Guarded, StatementRefused, Undetermined, UsageError
from opsctl.schema.grants import read_mysql_rights
from opsctl.schema.model import Index, Table
from opsctl.schema.operational import Operational, load_operational
from opsctl.schema.verify import verify_pair
from opsctl.schema.versions import qualified, read_versions, recorded_indexes, version_table

CREATE = "create"
REBUILD = "rebuild"
HIDE = "hide"
SHOW = "show"
DROP = "drop"
CLEAN = "clean up"
RECORD = "record"
FORGET = "forget"


@dataclass(frozen=True)
class Change:
    """Steps that are done at once, and their statements."""

    steps: tuple[Step, ...]
    statements: tuple[str, ...]

    @property
    def what(self) -> str:
        """What is done, in one line."""
        return "; ".join(step.what for step in self.steps)


@dataclass(frozen=True)
class Live:
    """The executions table as it is, the operational indexes that its server can have, and those on record."""

    pair: Pair
    schema: str | None
    table: Table
    operational: tuple[Operational, ...]
    recorded: frozenset[str]
    has_record: bool

    def named(self, name: str) -> Index | None:
        """Return the index of this name, in whatever state it is."""
        folds = self.schema is None  # PostgreSQL takes names as they are
        return next(
            (live for live in self.table.indexes if live.name == name or (folds and live.name.lower() == name.lower())),
            None,
        )

    @property
    def off_record(self) -> list[str]:
        """The operational indexes that stand under their own names and are not on record: made by hand, or a killed run."""
        found = [item for item in self.operational if item.is_own_in(self.table) and item.holds_in(self.table)]
        return [item.name for item in found if item.name not in self.recorded]

    def choose(self, names: Collection[str]) -> list[Operational]:
        """Return the operational indexes of these names, in their order. Raises UsageError for one that is none here."""
        known = [item.name for item in self.operational]
        for name in names:
            if name not in known:
                raise UsageError(f"--only {name}: there is no such index here", f"choose from {', '.join(known)}")
        return [item for item in self.operational if item.name in names]


_TAKEN = """
SELECT count(*) > 0 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relname = :name AND n.nspname = :schema
"""


@dataclass(frozen=True)
class Step:
    """One change of one index: `statements` run in order, each by itself; none where only the record changes.

    `clause` is the same as a part of an ALTER TABLE, on MySQL and MariaDB.
    """

    item: Operational
    action: str
    statements: tuple[str, ...]
    what: str
    clause: str | None = None

    @property
    def builds(self) -> bool:
        """Whether the server reads the whole table for it."""
        return self.action in (CREATE, REBUILD)


def read_live(session: Session, pair: Pair, *, schema: str | None, with_record: bool = True) -> Live:
    """Read the executions table and the record. Raises StatementRefused when there is no such table.

    Without `with_record` a record that this account may not read is passed over: who only measures needs none.
    """
    require_supported(session.server)
    verification = verify_pair(session, pair, schema=schema)
    table = verification.live[0]
    if table is None:
        raise StatementRefused(
            f"{session.target}: there is no table {pair.executions}, or this account may not see it",
            "correct --executions-table, --schema or the DSN; opsctl init-tables creates the pair",
        )
    unread = [fact for fact in table.unread if fact.property in ("table", "definition")]
    if unread:
        raise Undetermined(
            f"{session.target}: {unread[0].object} could not be read: {unread[0].reason}", "have that granted"
        )
    if table.kind != "table":
        raise Guarded(
            f"{session.target}: {pair.executions} is a {table.kind}, no ordinary table",
            "opsctl tunes ordinary tables only",
        )
    where = table.options.get("schema") if isinstance(session.dialect, PostgreSQL) else None
    revisions: frozenset[str] | None = None
    try:
        revisions = read_versions(session, pair, schema=where)
    except (StatementRefused, Guarded):
        if with_record:
            raise
        session.rollback()
    return Live(
        pair=pair,
        schema=where,
        table=table,
        operational=load_operational(session.dialect, pair, where),
        recorded=recorded_indexes(revisions),
        has_record=revisions is not None,
    )


def plan_apply(session: Session, live: Live, names: Collection[str]) -> list[Step]:
    """Return the steps that make the operational indexes `names` hold, what a killed run left cleaned up first.

    Raises Guarded where an index of the same name is another one, and where one that is needed first is missing.
    """
    steps = [step for item in live.operational for step in _leftovers(session, live, item)]
    chosen = live.choose(names)
    for item in chosen:
        _require_needed(live, item, [other.name for other in chosen])
        step = _hide(session, live, item) if item.hides else _create(session, live, item)
        if step is not None:
            steps.append(step)
    return steps


def plan_revert(session: Session, live: Live, names: Collection[str]) -> list[Step]:
    """Return the steps that take the operational indexes `names` back; an index under another name is nobody's to drop.

    Raises Guarded where the stock claim index would stay hidden without what stands in its place.
    """
    chosen = live.choose(names)
    for item in live.operational:
        hides = item.hides and item not in chosen and item.is_hidden_in(live.table)
        if hides and item.needs in {other.name for other in chosen}:
            raise Guarded(
                f"{item.hides} is hidden, and {item.needs} stands in its place: without both no index serves a claim",
                f"revert {item.name} too, or leave {item.needs} out",
            )
    steps = []
    for item in reversed(chosen):
        steps += list(_leftovers(session, live, item))
        found = live.named(item.object)
        if item.hides:
            if item.is_hidden_in(live.table):
                steps.append(_show(session, item, item.object, f"show {item.object} again"))
            elif item.name in live.recorded:
                steps.append(Step(item, FORGET, (), f"take {item.name} off the record"))
        elif found is not None and (item.does_the_work(found) or item.name in live.recorded):
            steps.append(_drop(session, live, item, found.name))
        elif item.name in live.recorded:
            steps.append(Step(item, FORGET, (), f"take {item.name} off the record: {item.object} is gone"))
    return steps


def group_steps(session: Session, live: Live, steps: list[Step]) -> list[Change]:
    """Return what is run at once: on MySQL and MariaDB one ALTER TABLE for all, on PostgreSQL each step by itself.

    Each ALTER wants the table for itself twice, and claims that are under way pay for that; so there is one, which reads
    the table once and is done wholly or not at all.
    """
    quote = session.dialect.quote
    clauses = [step.clause for step in steps if step.clause is not None]
    if not clauses:
        return [Change((step,), step.statements) for step in steps]
    alter = f"ALTER TABLE {quote(live.pair.executions)}\n  " + ",\n  ".join([*clauses, "ALGORITHM=INPLACE, LOCK=NONE"])
    return [Change(tuple(steps), (alter,))]


def drop_sql(session: Session, live: Live, index: str) -> str:
    """Return PostgreSQL's statement that drops an index online; a try that was cut off may have done it already."""
    return f"DROP INDEX CONCURRENTLY IF EXISTS {qualified(session.dialect, index, live.schema)}"


def _show(session: Session, item: Operational, index: str, what: str) -> Step:
    words = "NOT IGNORED" if isinstance(session.dialect, MariaDB) else "VISIBLE"
    return Step(item, SHOW, (), what, f"ALTER INDEX {session.dialect.quote(index)} {words}")


def _drop(session: Session, live: Live, item: Operational, index: str) -> Step:
    if isinstance(session.dialect, PostgreSQL):
        return Step(item, DROP, (drop_sql(session, live, index),), f"drop {index}")
    return Step(item, DROP, (), f"drop {index}", f"DROP INDEX {session.dialect.quote(index)}")


def require_changeable(session: Session, live: Live) -> None:
    """Refuse, before anything is changed, a server or an account with which it would not work.

    Raises Guarded for a replica, a read-only server and a Galera cluster, StatementRefused naming the rights that are
    missing.
    """
    if isinstance(session.dialect, PostgreSQL):
        _require_primary(session)
        lacks = _lacks_on_postgresql(session, live)
    else:
        _require_writable(session)
        lacks = _lacks_on_mysql(session, live)
    if lacks:
        account = session.scalar("SELECT CURRENT_USER")
        raise StatementRefused(
            f"{session.target}: the account {account} lacks {'; '.join(lacks)}",
            "have that granted (or ALTER TABLE … OWNER TO it), or use the DSN of an account that has it (OPSCTL_MIGRATION_DSN)",
        )


def _require_needed(live: Live, item: Operational, chosen: list[str]) -> None:
    if item.needs is None or item.needs in chosen:
        return
    needed = next(other for other in live.operational if other.name == item.needs)
    if not needed.holds_in(live.table):
        raise Guarded(
            f"{item.name} would leave claims without an index: {needed.object} is not there",
            f"apply {item.needs} first, or both: --only {item.needs} --only {item.name}",
        )


def _hide(session: Session, live: Live, item: Operational) -> Step | None:
    if item.is_hidden_in(live.table):
        return (
            None if item.name in live.recorded else Step(item, RECORD, (), f"put on record that {item.hides} is hidden")
        )
    if live.named(item.object) is None:
        raise Guarded(f"{item.hides} is not there to be hidden", "opsctl verify-schema says what else is missing")
    word = "IGNORED" if isinstance(session.dialect, MariaDB) else "INVISIBLE"
    clause = f"ALTER INDEX {session.dialect.quote(item.object)} {word}"
    return Step(item, HIDE, (), f"hide {item.hides} from the optimizer", clause)


def _create(session: Session, live: Live, item: Operational) -> Step | None:
    assert item.index is not None
    own = live.named(item.object)
    if own is not None and not item.does_the_work(own):
        raise Guarded(
            f"{session.target}: an index {own.name} is there and is another one: {own.definition}",
            f"rename or drop it; opsctl makes {item.index.definition} under that name",
        )
    if own is not None and not own.valid:
        statements = (drop_sql(session, live, own.name), item.statement)
        return Step(item, REBUILD, statements, f"build {own.name} anew: a build that did not end left it invalid")
    if own is not None and not own.visible:
        return _show(session, item, own.name, f"show {own.name}, which is hidden")
    if own is not None:
        return (
            None if item.name in live.recorded else Step(item, RECORD, (), f"put {own.name}, which is there, on record")
        )
    if item.found_in(live.table) is not None:
        return None  # under another name, somebody else's
    _require_free_name(session, live, item)
    what = f"build {item.object} {item.index.definition.removeprefix('INDEX ')}"
    if isinstance(session.dialect, PostgreSQL):
        return Step(item, CREATE, (item.statement,), what)
    columns = ", ".join(session.dialect.quote(part.name) for part in item.index.parts)
    return Step(item, CREATE, (), what, f"ADD INDEX {session.dialect.quote(item.object)} ({columns})")


def _require_free_name(session: Session, live: Live, item: Operational) -> None:
    """On PostgreSQL an index shares its name with every table, view and index of the schema."""
    taken = live.schema is not None and session.scalar(_TAKEN, name=item.object, schema=live.schema)
    if taken:
        raise Guarded(
            f"{session.target}: the name {item.object} is needed and another object of schema {live.schema} has it",
            "rename or drop that one",
        )


def _leftovers(session: Session, live: Live, item: Operational) -> list[Step]:
    """What a REINDEX CONCURRENTLY of the index left behind: the server names it after the index, cut where needed."""
    if item.index is None:
        return []
    found = [
        other.name
        for other in live.table.indexes
        if not other.valid
        and other.name != item.object
        and "_cc" in other.name
        and item.object.startswith(other.name.rpartition("_cc")[0])
        and item.does_the_work(other)
    ]
    return [
        Step(item, CLEAN, (drop_sql(session, live, name),), f"drop {name}, which a rebuild left invalid")
        for name in found
    ]


def _require_primary(session: Session) -> None:
    if session.scalar("SELECT pg_is_in_recovery()"):
        raise Guarded(
            f"{session.target}: this is a standby, which takes its indexes from the primary",
            "use the DSN of the primary",
        )
    if session.scalar("SHOW default_transaction_read_only") == "on":
        raise Guarded(
            f"{session.target}: default_transaction_read_only is on for this role, database or server",
            "use the DSN of the primary, or have it turned off",
        )


def _require_writable(session: Session) -> None:
    names = ("read_only", "super_read_only", "innodb_read_only", "transaction_read_only", "tx_read_only", "wsrep_on")
    rows = session.rows("SHOW GLOBAL VARIABLES WHERE Variable_name IN :names".replace(":names", str(names)))
    on = {str(row.values[0]).lower() for row in rows if str(row.values[1]).upper() in ("ON", "1")}
    if "wsrep_on" in on:
        raise Guarded(
            f"{session.target}: this is a node of a Galera cluster, where an ALTER stops the writes of every node",
            "have it made node by node with wsrep_OSU_method=RSU; opsctl tune advise says which indexes",
        )
    if on:
        raise Guarded(
            f"{session.target}: {', '.join(sorted(on))} is on: a replica, or a server that is not to be written to",
            "use the DSN of the primary; its replicas get the indexes from it",
        )


def _lacks_on_mysql(session: Session, live: Live) -> list[str]:
    rights = read_mysql_rights(session)
    record = version_table(live.pair)
    needed = {live.pair.executions: ["SELECT", "ALTER", "INDEX"], record: ["SELECT", "INSERT", "DELETE"]}
    if not live.has_record:
        needed[record].append("CREATE")
    missing = {table: rights.missing(table, *names) for table, names in needed.items()}
    return [f"{', '.join(names)} on {table}" for table, names in missing.items() if names]


def _lacks_on_postgresql(session: Session, live: Live) -> list[str]:
    lacks = []
    table = qualified(session.dialect, live.pair.executions, live.schema)
    owns = "SELECT pg_has_role(relowner, 'USAGE') FROM pg_catalog.pg_class WHERE oid = to_regclass(:table)"
    if not session.scalar(owns, table=table):
        lacks.append(f"the ownership of {live.pair.executions} (CREATE INDEX takes no less)")
    # A table's indexes are made in its schema, with the right of its owner there.
    if not session.scalar("SELECT has_schema_privilege(:schema, 'CREATE')", schema=live.schema):
        lacks.append(f"CREATE on schema {live.schema}")
    record = qualified(session.dialect, version_table(live.pair), live.schema)
    if session.scalar("SELECT to_regclass(:record) IS NOT NULL", record=record):
        rights = ("SELECT", "INSERT", "DELETE")
        missing = [
            r for r in rights if not session.scalar("SELECT has_table_privilege(:record, :r)", record=record, r=r)
        ]
        lacks += [f"{', '.join(missing)} on {version_table(live.pair)}"] if missing else []
    return lacks
