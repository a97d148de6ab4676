"""One change of the expected pair gives exactly one finding: the right object, property and severity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from opsctl.dialects import AnyDialect
from opsctl.dialects.mariadb import MariaDB
from opsctl.dialects.mysql import MySQL
from opsctl.dialects.names import Pair
from opsctl.dialects.postgresql import PostgreSQL
from opsctl.schema.diff import compare_table
from opsctl.schema.expected import expected_pair
from opsctl.schema.findings import ERROR, INFO, WARNING, Finding
from opsctl.schema.model import Check, Column, ForeignKey, Index, IndexPart, Table, Trigger, Unread

MYSQL, MARIADB, POSTGRESQL = MySQL(), MariaDB(), PostgreSQL()
DIALECTS: dict[str, AnyDialect] = {"mysql": MYSQL, "mariadb": MARIADB, "postgresql": POSTGRESQL}
MY, PG, ALL = ("mysql", "mariadb"), ("postgresql",), ("mysql", "mariadb", "postgresql")
COLLATION = "utf8mb4_general_ci"
Change = Callable[[Table], Table]


def expected(dialect: AnyDialect, pair: Pair = Pair()) -> tuple[Table, Table]:  # noqa: B008 (frozen)
    return expected_pair(dialect, pair, uuid_type="char(32)" if dialect is MYSQL else "uuid")


def live(dialect: AnyDialect, table: Table) -> Table:
    """The expected table as a reader returns it: with collations, and without what only an expectation holds."""
    if dialect is not POSTGRESQL:
        columns = tuple(replace(c, collation=COLLATION if c.charset else None) for c in table.columns)
        table = replace(table, columns=columns, options={**table.options, "collation": COLLATION})
    return replace(
        table,
        indexes=tuple(replace(index, meaning="", server_named=False) for index in table.indexes),
        foreign_keys=tuple(replace(key, server_named=False) for key in table.foreign_keys),
    )


# -- changes ---------------------------------------------------------------------------------------------------


def column(name: str, **changes: object) -> Change:
    return lambda table: replace(
        table, columns=tuple(replace(c, **changes) if c.name == name else c for c in table.columns)
    )


def index(suffix: str, **changes: object) -> Change:
    return lambda table: replace(
        table, indexes=tuple(replace(i, **changes) if i.name.endswith(suffix) else i for i in table.indexes)
    )


def check(suffix: str, **changes: object) -> Change:
    return lambda table: replace(
        table, checks=tuple(replace(c, **changes) if c.name.endswith(suffix) else c for c in table.checks)
    )


def key(**changes: object) -> Change:
    return lambda table: replace(table, foreign_keys=(replace(table.foreign_keys[0], **changes),))


def without(kind: str, suffix: str) -> Change:
    return lambda table: replace(
        table, **{kind: tuple(thing for thing in getattr(table, kind) if not thing.name.endswith(suffix))}
    )


def extra(kind: str, thing: object) -> Change:
    return lambda table: replace(table, **{kind: (*getattr(table, kind), thing)})


def option(name: str, value: str) -> Change:
    return lambda table: replace(table, options={**table.options, name: value})


def parts(*names: str, dialect_nulls: bool | None = None) -> tuple[IndexPart, ...]:
    return tuple(IndexPart(name, nulls_first=dialect_nulls) for name in names)


def turned(suffix: str) -> Change:
    def change(table: Table) -> Table:
        found = next(i for i in table.indexes if i.name.endswith(suffix))
        return index(suffix, parts=found.parts[::-1])(table)

    return change


def part_changed(suffix: str, which: int, **changes: object) -> Change:
    def change(table: Table) -> Table:
        found = next(i for i in table.indexes if i.name.endswith(suffix))
        changed = tuple(replace(p, **changes) if n == which else p for n, p in enumerate(found.parts))
        return index(suffix, parts=changed)(table)

    return change


def narrowed(table: Table) -> Table:
    """The status CHECK without its last value."""
    old = next(c for c in table.checks if c.name.endswith("_status")).expression
    return check("_status", expression=old[: old.rindex(",")] + ")")(table)


def widened(table: Table) -> Table:
    old = next(c for c in table.checks if c.name.endswith("_status")).expression
    return check("_status", expression=old[:-1] + ", 'paused')")(table)


EXECUTIONS, ATTEMPTS = 0, 1
IX, UQ = "ix_onestep_executions_", "uq_onestep_executions_idempotency"
STATUS_CHECK = {"mysql": "ck_onestep_executions_status", "mariadb": "ck_onestep_executions_status",
                "postgresql": "ck_onestep_execution_status"}  # fmt: skip
KEY = {"mysql": "fk_onestep_execution_attempts_execution", "mariadb": "fk_onestep_execution_attempts_execution",
       "postgresql": "onestep_execution_attempts_execution_id_fkey"}  # fmt: skip
PRIMARY = {"mysql": "PRIMARY", "mariadb": "PRIMARY", "postgresql": "onestep_executions_pkey"}


@dataclass(frozen=True)
class Case:
    products: tuple[str, ...]
    change: Change
    kind: str
    object: str | dict[str, str]
    property: str
    severity: str
    word: str = ""
    table: int = EXECUTIONS


CASES = {
    # columns
    "column lost": Case(ALL, without("columns", "worker_id"), "column", "worker_id", "existence", ERROR, "missing"),
    "time rounded": Case(MY, column("created_at", type="datetime"), "column", "created_at", "type", ERROR, "0 digits"),
    "no zone": Case(
        PG, column("created_at", type="timestamp without time zone"), "column", "created_at", "type", ERROR, "time zone"
    ),
    "too short": Case(MY, column("task_name", type="varchar(64)"), "column", "task_name", "type", ERROR, "64 characters"),
    "too short, pg": Case(
        PG, column("task_name", type="character varying(64)"), "column", "task_name", "type", ERROR, "64 characters"
    ),
    "longer": Case(MY, column("task_name", type="varchar(300)"), "column", "task_name", "type", WARNING, "longer"),
    "text for uuid": Case(PG, column("id", type="text"), "column", "id", "type", ERROR, "uuid"),
    "too small": Case(ALL, column("version", type="int"), "column", "version", "type", ERROR, "too small"),
    "no JSON": Case(ALL, column("payload", type="text"), "column", "payload", "type", ERROR, "JSON"),
    "JSON unchecked": Case(MY, column("payload", type="longtext"), "column", "payload", "type", WARNING, "json_valid"),
    "not null": Case(ALL, column("worker_id", nullable=False), "column", "worker_id", "nullable", ERROR, "NULL"),
    "null": Case(ALL, column("status", nullable=True), "column", "status", "nullable", WARNING, "NULL"),
    "default lost": Case(ALL, column("attempts", default=None), "column", "attempts", "default", ERROR, "lost"),
    "default changed": Case(ALL, column("attempts", default="1"), "column", "attempts", "default", WARNING, "another"),
    "computed": Case(ALL, column("worker_id", generated="('x') STORED"), "column", "worker_id", "generated", ERROR),
    "identity": Case(PG, column("version", identity="ALWAYS"), "column", "version", "generated", ERROR),
    "counts itself": Case(MY, column("version", auto_increment=True), "column", "version", "generated", ERROR),
    "changes itself": Case(
        MY, column("updated_at", on_update="current_timestamp(6)"), "column", "updated_at", "on_update", ERROR
    ),
    "hidden column": Case(MY, column("error", invisible=True), "column", "error", "invisible", WARNING, "invisible"),
    "charset": Case(
        MY, column("task_name", charset="latin1", collation="latin1_bin"), "column", "task_name", "charset", ERROR, "latin1"
    ),
    "collation": Case(MY, column("task_name", collation="utf8mb4_bin"), "column", "task_name", "collation", WARNING),
    "collation, pg": Case(PG, column("task_name", collation="de-x-icu"), "column", "task_name", "collation", WARNING),
    "column comment": Case(ALL, column("error", comment="see wiki"), "column", "error", "comment", INFO),
    "extra column": Case(ALL, extra("columns", Column("note", "text", True)), "column", "note", "existence", INFO),
    "extra column that must be filled": Case(
        ALL, extra("columns", Column("note", "text", False)), "column", "note", "existence", ERROR, "INSERT"
    ),
    "extra column with a default": Case(
        ALL, extra("columns", Column("note", "text", False, default="''")), "column", "note", "existence", INFO
    ),
    # indexes
    "index lost": Case(ALL, without("indexes", "_claim"), "index", f"{IX}claim", "existence", WARNING, "claim"),
    "unique lost": Case(ALL, without("indexes", "_idempotency"), "index", UQ, "existence", ERROR, "two submits"),
    "key lost": Case(
        ALL, lambda t: replace(t, indexes=tuple(i for i in t.indexes if not i.primary)), "index", PRIMARY, "existence", ERROR
    ),
    "order": Case(ALL, turned("_lease"), "index", f"{IX}lease", "columns", WARNING, "columns differ"),
    "ascending": Case(
        MY, part_changed("_list", 1, descending=False), "index", f"{IX}list", "columns", WARNING, "columns differ"
    ),
    "ascending, pg": Case(
        PG, part_changed("_list", 1, descending=False, nulls_first=False), "index", f"{IX}list", "columns", WARNING
    ),
    "nulls last": Case(PG, part_changed("_list", 1, nulls_first=False), "index", f"{IX}list", "columns", WARNING),
    "prefix": Case(MY, part_changed("_claim", 0, prefix=10), "index", f"{IX}claim", "columns", WARNING),
    "opclass": Case(
        PG, part_changed("_claim", 0, opclass="varchar_pattern_ops"), "index", f"{IX}claim", "columns", WARNING
    ),
    "key part's collation": Case(PG, part_changed("_claim", 0, collation="C"), "index", f"{IX}claim", "columns", WARNING),
    "no longer unique": Case(ALL, index("_idempotency", unique=False), "index", UQ, "unique", ERROR),
    "hidden index": Case(MY, index("_claim", visible=False), "index", f"{IX}claim", "visible", WARNING, "hidden"),
    "invalid index": Case(PG, index("_claim", valid=False), "index", f"{IX}claim", "valid", WARNING, "invalid"),
    "method": Case(PG, index("_lease", method="hash"), "index", f"{IX}lease", "method", WARNING),
    "predicate lost": Case(PG, index("_claim", predicate=None), "index", f"{IX}claim", "predicate", WARNING),
    "predicate narrower": Case(
        PG, index("_claim", predicate="status = 'queued'"), "index", f"{IX}claim", "predicate", WARNING
    ),
    "predicate of the key": Case(
        PG, index("_idempotency", predicate="idempotency_key IS NULL"), "index", UQ, "predicate", ERROR
    ),
    "nulls not distinct": Case(PG, index("_idempotency", nulls_not_distinct=True), "index", UQ, "nulls_not_distinct", ERROR),
    "deferrable": Case(
        PG, index("_execution_attempt", deferrable=True), "index",
        "uq_onestep_execution_attempts_execution_attempt", "deferrable", ERROR, table=ATTEMPTS,
    ),
    "other name": Case(ALL, index("_claim", name="dba_1"), "index", "dba_1", "name", INFO, f"{IX}claim"),
    "index comment": Case(ALL, index("_claim", comment="see wiki"), "index", f"{IX}claim", "comment", INFO),
    "unique index for the constraint": Case(
        PG, index("_execution_attempt", constraint=False), "index",
        "uq_onestep_execution_attempts_execution_attempt", "constraint", INFO, table=ATTEMPTS,
    ),
    "extra index": Case(
        ALL, extra("indexes", Index("dba_1", parts("worker_id"))), "index", "dba_1", "existence", INFO
    ),
    "extra unique index": Case(
        ALL, extra("indexes", Index("dba_1", parts("worker_id"), unique=True)), "index", "dba_1", "existence", ERROR
    ),
    "extra invalid index": Case(
        PG, extra("indexes", Index("dba_1", parts("worker_id"), valid=False)), "index", "dba_1", "valid", WARNING
    ),
    "REINDEX leftover": Case(
        PG, extra("indexes", Index("x_ccnew", parts("worker_id"), valid=False)), "leftover", "x_ccnew", "existence", WARNING
    ),
    # CHECKs
    "check lost": Case(ALL, without("checks", "_status"), "check", STATUS_CHECK, "existence", WARNING, "status"),
    "check narrower": Case(
        ALL, narrowed, "check", STATUS_CHECK, "expression", ERROR, "status = 'expired' will be rejected"
    ),
    "check wider": Case(ALL, widened, "check", STATUS_CHECK, "expression", WARNING, "status = 'paused' will be accepted"),
    "check in another case": Case(
        ALL, check("_status", expression="status IN ('Queued')"), "check", STATUS_CHECK, "expression", ERROR, "rejected"
    ),
    "check beyond us": Case(
        ALL, check("_status", expression="f(status) > 3"), "check", STATUS_CHECK, "expression", ERROR, "another rule"
    ),
    "check off": Case(("mysql", *PG), check("_status", enforced=False), "check", STATUS_CHECK, "enforced", WARNING),
    "check not validated": Case(PG, check("_status", validated=False), "check", STATUS_CHECK, "validated", WARNING),
    "check under another name": Case(ALL, check("_status", name="dba_1"), "check", "dba_1", "name", INFO),
    "extra check": Case(
        ALL, extra("checks", Check("dba_1", "version < 5")), "check", "dba_1", "existence", WARNING, "refuses writes"
    ),
    "extra check that is off": Case(
        ("mysql", *PG), extra("checks", Check("dba_1", "version < 5", enforced=False)), "check", "dba_1", "existence", INFO
    ),
    # foreign keys
    "foreign key lost": Case(
        ALL, without("foreign_keys", ""), "foreign_key", KEY, "existence", WARNING, "missing", table=ATTEMPTS
    ),
    "cascade lost": Case(
        ALL, key(on_delete="NO ACTION"), "foreign_key", KEY, "definition", WARNING, "CASCADE", table=ATTEMPTS
    ),
    "on update": Case(ALL, key(on_update="CASCADE"), "foreign_key", KEY, "definition", WARNING, table=ATTEMPTS),
    "to another table": Case(
        ALL, key(ref_table="old_executions"), "foreign_key", KEY, "definition", WARNING, "old_executions", table=ATTEMPTS
    ),
    "key not validated": Case(
        PG, key(validated=False), "foreign_key", KEY, "definition", WARNING, "not validated", table=ATTEMPTS
    ),
    "key not enforced": Case(
        PG, key(enforced=False), "foreign_key", KEY, "definition", WARNING, "not enforced", table=ATTEMPTS
    ),
    "key's triggers off": Case(
        PG, key(triggers_enabled=False), "foreign_key", KEY, "definition", WARNING, "not enforced", table=ATTEMPTS
    ),
    "key deferrable": Case(PG, key(deferrable=True), "foreign_key", KEY, "definition", WARNING, table=ATTEMPTS),
    "key under another name": Case(MY, key(name="dba_1"), "foreign_key", "dba_1", "name", INFO, table=ATTEMPTS),
    "extra key": Case(
        ALL, extra("foreign_keys", ForeignKey("dba_1", ("worker_id",), "workers", ("id",))),
        "foreign_key", "dba_1", "existence", WARNING, "refuses writes",
    ),
    # what else stands on the table or beside it
    "trigger": Case(ALL, extra("triggers", Trigger("t1", "BEFORE INSERT …")), "trigger", "t1", "trigger", WARNING),
    "rule": Case(PG, extra("triggers", Trigger("r1", "ON INSERT …", kind="rule")), "trigger", "r1", "rule", WARNING),
    "policy": Case(PG, extra("triggers", Trigger("p1", "USING …", kind="policy")), "trigger", "p1", "policy", INFO),
    "pt-osc": Case(MY, extra("triggers", Trigger("pt_osc_d_t_ins", "…")), "leftover", "pt_osc_d_t_ins", "existence", WARNING),
    "gh-ost": Case(MY, extra("beside", "_x_gho"), "leftover", "_x_gho", "existence", WARNING),
    "engine": Case(MY, option("engine", "MyISAM"), "table", "onestep_executions", "engine", ERROR, "MyISAM"),
    "table charset": Case(MY, option("charset", "latin1"), "table", "onestep_executions", "charset", ERROR, "latin1"),
    "unlogged": Case(PG, option("persistence", "unlogged"), "table", "onestep_executions", "persistence", ERROR, "crash"),
    "row security": Case(
        PG, option("row level security", "on"), "table", "onestep_executions", "row level security", ERROR
    ),
    "no autovacuum": Case(
        PG, option("autovacuum_enabled", "false"), "table", "onestep_executions", "autovacuum_enabled", WARNING
    ),
    "inheritance": Case(PG, option("inheritance", "child"), "table", "onestep_executions", "inheritance", WARNING),
    "partitions": Case(MY, option("partitions", "HASH (`id`)"), "table", "onestep_executions", "partitions", WARNING),
    "versioning": Case(
        ("mariadb",), option("system versioning", "on"), "table", "onestep_executions", "system versioning", WARNING
    ),
    "unknown option": Case(ALL, option("frob", "1"), "table", "onestep_executions", "frob", WARNING, "not know"),
    "row format": Case(MY, option("row_format", "DYNAMIC"), "table", "onestep_executions", "row_format", INFO),
    "fillfactor": Case(PG, option("fillfactor", "80"), "table", "onestep_executions", "fillfactor", INFO),
    "table comment": Case(ALL, option("comment", "jobs"), "table", "onestep_executions", "comment", INFO),
    "view": Case(ALL, lambda t: replace(t, kind="view"), "table", "onestep_executions", "kind", ERROR, "view"),
}  # fmt: skip
RUNS = [(name, product) for name, case in CASES.items() for product in case.products]


def compare(product: str, change: Change, table: int = EXECUTIONS) -> list[Finding]:
    dialect = DIALECTS[product]
    wanted = expected(dialect)[table]
    return compare_table(dialect, wanted, change(live(dialect, wanted)))


@pytest.mark.parametrize(("name", "product"), RUNS, ids=lambda value: value)
def test_one_change_gives_its_one_finding(name: str, product: str) -> None:
    case = CASES[name]
    found = compare(product, case.change, case.table)
    assert len(found) == 1, found
    (finding,) = found
    object_ = case.object if isinstance(case.object, str) else case.object[product]
    assert (finding.kind, finding.object, finding.property, finding.severity) == (
        case.kind, object_, case.property, case.severity
    )  # fmt: skip
    assert case.word in finding.message
    assert len(finding.message.split()) > 2
    assert finding.expected != finding.actual
    assert finding.table == expected(DIALECTS[product])[case.table].name


@pytest.mark.parametrize(("name", "product"), RUNS, ids=lambda value: value)
def test_a_fix_is_of_this_table_and_ends_as_a_statement(name: str, product: str) -> None:
    case = CASES[name]
    (finding,) = compare(product, case.change, case.table)
    if finding.fix is not None:
        assert finding.fix.endswith(";")
        assert finding.fix.startswith(("ALTER ", "CREATE ", "DROP ", "REINDEX ", "-- "))
        for line in finding.fix.splitlines():
            if line.startswith(("-- ", "SET SESSION foreign_key_checks")):
                continue
            assert DIALECTS[product].quote(finding.table) in line or DIALECTS[product].quote(finding.object) in line


@pytest.mark.parametrize("pair", [Pair(), Pair("order", "select"), Pair("e" * 63, "e" * 62)], ids=str)
@pytest.mark.parametrize("product", ALL)
def test_the_expected_pair_is_as_expected(product: str, pair: Pair) -> None:
    dialect = DIALECTS[product]
    for wanted in expected(dialect, pair):
        assert compare_table(dialect, wanted, live(dialect, wanted)) == []


@pytest.mark.parametrize("product", ALL)
def test_other_orders_and_another_collation_of_the_whole_are_no_findings(product: str) -> None:
    def turn(table: Table) -> Table:
        table = replace(table, columns=table.columns[::-1], indexes=table.indexes[::-1], checks=table.checks[::-1])
        if product == "postgresql":
            return table
        columns = tuple(replace(c, collation="utf8mb4_bin" if c.charset else None) for c in table.columns)
        return replace(table, columns=columns, options={**table.options, "collation": "utf8mb4_bin"})

    for which in (EXECUTIONS, ATTEMPTS):
        assert compare(product, turn, which) == []


@pytest.mark.parametrize("product", MY)
def test_mysql_and_mariadb_fold_names(product: str) -> None:
    def shout(table: Table) -> Table:
        return replace(
            table,
            columns=tuple(replace(c, name=c.name.upper()) for c in table.columns),
            indexes=tuple(
                replace(i, name=i.name.upper(), parts=tuple(replace(p, name=p.name.upper()) for p in i.parts))
                for i in table.indexes
            ),
            checks=tuple(replace(c, name=c.name.upper()) for c in table.checks),
        )

    assert compare(product, shout) == []


@pytest.mark.parametrize("product", MY)
@pytest.mark.parametrize("default", ["json_object()", "cast('{}' as json)", "'{}'", "JSON_OBJECT( )"])
def test_every_empty_object_is_the_default(product: str, default: str) -> None:
    assert compare(product, column("metadata", default=default)) == []


@pytest.mark.parametrize("product", ALL)
def test_a_missing_table_is_the_only_finding(product: str) -> None:
    dialect = DIALECTS[product]
    wanted = expected(dialect)[0]
    (finding,) = compare_table(dialect, wanted, None)
    assert (finding.kind, finding.property, finding.severity) == ("table", "existence", "error")


@pytest.mark.parametrize(
    ("unread", "change"),
    [
        (Unread("onestep_executions", "table", "no right"), without("columns", "")),
        (Unread("ix_onestep_executions_claim", "definition", "?"), without("indexes", "_claim")),
        (Unread("CK_onestep_executions_status", "definition", "?"), without("checks", "_status")),
        (Unread("worker_id", "definition", "?"), column("worker_id", type="frob")),
    ],
)
@pytest.mark.parametrize("product", MY)
def test_what_could_not_be_read_is_no_difference(product: str, unread: Unread, change: Change) -> None:
    assert compare(product, lambda table: replace(change(table), unread=(unread,))) == []
    assert compare(product, change) != []


def test_the_gravest_comes_first() -> None:
    def spoil(table: Table) -> Table:
        for change in (CASES["row format"], CASES["index lost"], CASES["unique lost"], CASES["column comment"]):
            table = change.change(table)
        return table

    assert [finding.severity for finding in compare("mysql", spoil)] == ["error", "warning", "info", "info"]


@pytest.mark.parametrize("product", ALL)
def test_a_policy_matters_once_row_security_is_on(product: str) -> None:
    def change(table: Table) -> Table:
        return option("row level security", "on")(CASES["policy"].change(table))

    assert [finding.severity for finding in compare(product, change)] == ["error", "error"]
