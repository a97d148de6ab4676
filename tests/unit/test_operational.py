"""The operational indexes as files, and what a comparison says of each state of one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from opsctl.dialects import AnyDialect
from opsctl.dialects.mariadb import MariaDB
from opsctl.dialects.mysql import MySQL
from opsctl.dialects.names import Pair
from opsctl.dialects.postgresql import PostgreSQL
from opsctl.schema.diff import compare_table
from opsctl.schema.expected import expected_pair
from opsctl.schema.findings import INFO, WARNING, Finding
from opsctl.schema.model import Index, IndexPart, Table
from opsctl.schema.operational import NAMES, Operational, load_operational
from opsctl.schema.versions import INDEX_REVISIONS, INDEXES_BASE, KNOWN_REVISIONS, TABLES_HEAD, recorded_indexes

DIALECTS: dict[str, AnyDialect] = {"mysql": MySQL(), "mariadb": MariaDB(), "postgresql": PostgreSQL()}
MY, PG, ALL = ("mysql", "mariadb"), ("postgresql",), ("mysql", "mariadb", "postgresql")
RECORDED = frozenset(NAMES)


def items(dialect: str) -> dict[str, Operational]:
    return {item.name: item for item in load_operational(DIALECTS[dialect], Pair())}


def built(item: Operational, **changes: object) -> Index:
    assert item.index is not None
    return replace(item.index, **changes)  # type: ignore[arg-type]


def wanted(dialect: str) -> Table:
    return expected_pair(DIALECTS[dialect], Pair(), uuid_type="char(32)" if dialect == "mysql" else "uuid")[0]


def table(dialect: str, *extra: Index, hidden: bool = False) -> Table:
    """The executions table as read, with `extra` indexes; the stock claim index hidden or not."""
    made = wanted(dialect)
    if dialect in MY:
        columns = tuple(replace(c, collation="utf8mb4_general_ci" if c.charset else None) for c in made.columns)
        made = replace(made, columns=columns, options={**made.options, "collation": "utf8mb4_general_ci"})
    stock = tuple(replace(i, visible=not (hidden and i.name.endswith("_claim"))) for i in made.indexes)
    return replace(made, indexes=(*stock, *extra))


def compare(dialect: str, found: Table, recorded: frozenset[str] | None = frozenset()) -> list[Finding]:
    operational = load_operational(DIALECTS[dialect], Pair())
    return compare_table(DIALECTS[dialect], wanted(dialect), found, operational, recorded)


# -- the files -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", ALL)
def test_the_files_are_whole(dialect: str) -> None:
    for item in items(dialect).values():
        assert item.title, item
        assert item.purpose, item
        assert item.serves, item
        assert (item.index is None) == (item.hides is not None)
        assert item.needs is None or item.needs in items(dialect)
        assert item.revision in KNOWN_REVISIONS
        assert item.optional == (item.name == "overdue" and dialect in MY)
        online = "LOCK=NONE" if dialect in MY else "CONCURRENTLY"
        assert item.hides or online in item.statement


@pytest.mark.parametrize("dialect", ALL)
def test_names_of_full_length_stay_apart(dialect: str) -> None:
    limit = DIALECTS[dialect].identifier_limit
    pairs = [Pair("e" * (limit - 1) + end, "f" * limit) for end in "xy"]
    names = [{item.object for item in load_operational(DIALECTS[dialect], pair)} for pair in pairs]
    assert all(len(name) <= limit for made in names for name in made)
    assert not names[0] & names[1]


def test_a_schema_is_the_tables_alone() -> None:
    for item in load_operational(DIALECTS["postgresql"], Pair(), 'an "odd" one'):
        assert 'ON "an ""odd"" one".' in item.statement
        assert item.statement.count("odd") == 1


def test_the_record_speaks_of_indexes_alone() -> None:
    assert recorded_indexes(None) == frozenset()
    assert recorded_indexes({TABLES_HEAD, INDEXES_BASE}) == frozenset()
    assert recorded_indexes({TABLES_HEAD, *INDEX_REVISIONS.values()}) == RECORDED


# -- what does the work ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", ALL)
def test_what_does_the_work(dialect: str) -> None:
    item = items(dialect)["finished"]
    nulls_first = None if dialect in MY else False
    more = (*built(item).parts, IndexPart("id", nulls_first=nulls_first))
    assert item.found_in(table(dialect)) is None
    assert item.found_in(table(dialect, built(item, name="mine", parts=more))) is not None
    both = table(dialect, built(item, name="a", parts=more), built(item))
    assert item.found_in(both) == built(item), "its own name first"
    for changes in (
        {"valid": False},
        {"visible": False},
        {"parts": tuple(reversed(more))},
        {"parts": tuple(replace(part, descending=True) for part in more)},
        {"method": "hash"},
    ):
        assert item.found_in(table(dialect, built(item, name="mine", **changes))) is None, changes


# -- what is said ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", ALL)
@pytest.mark.parametrize("name", ["finished", "overdue"])
def test_one_that_is_right_is_info(dialect: str, name: str) -> None:
    item = items(dialect)[name]
    for index in (built(item), built(item, name="mine")):
        [found] = compare(dialect, table(dialect, index))
        assert (found.severity, found.object, found.fix) == (INFO, index.name, None)
        assert item.serves[0] in found.message
        assert "beside onestep's" not in found.message


@pytest.mark.parametrize("dialect", ALL)
@pytest.mark.parametrize(
    ("changes", "about"),
    [({"valid": False}, "valid"), ({"visible": False}, "visible"), ({"parts": (IndexPart("worker_id"),)}, "columns")],
)
def test_one_that_is_wrong_is_a_warning(dialect: str, changes: dict[str, object], about: str) -> None:
    item = items(dialect)["finished"]
    for recorded in (frozenset[str](), frozenset(("finished",)), None):
        [found] = compare(dialect, table(dialect, built(item, **changes)), recorded)
        assert (found.severity, found.object, found.property) == (WARNING, item.object, about)
        assert found.fix, found
        assert item.object in found.fix


@pytest.mark.parametrize("dialect", PG)
def test_another_predicate_is_a_warning(dialect: str) -> None:
    item = items(dialect)["finished"]
    [found] = compare(dialect, table(dialect, built(item, predicate="finished_at IS NULL")))
    assert (found.severity, found.property) == (WARNING, "columns")


@pytest.mark.parametrize("dialect", ALL)
def test_one_on_record_that_is_missing(dialect: str) -> None:
    item = items(dialect)["finished"]
    [found] = compare(dialect, table(dialect), frozenset(("finished",)))
    assert (found.severity, found.object, found.property) == (WARNING, item.object, "existence")
    assert found.message.startswith("is on record and missing")
    assert found.fix == f"{item.statement};"
    assert not compare(dialect, table(dialect), None), "a record that was not read says nothing"
    [other] = compare(dialect, table(dialect, built(item, name="mine")), frozenset(("finished",)))
    assert other.severity == INFO, "another does its work"


@pytest.mark.parametrize("dialect", MY)
def test_a_hidden_claim_index(dialect: str) -> None:
    known = items(dialect)
    ready, claim = built(known["ready"]), known["hide-claim"].object

    def said(recorded: frozenset[str] | None, *extra: Index, hidden: bool = True) -> Finding:
        found = compare(dialect, table(dialect, *extra, hidden=hidden), recorded)
        return next(finding for finding in found if finding.object == claim)

    on_record = frozenset(("ready", "hide-claim"))
    assert said(on_record, ready).severity == INFO
    assert said(on_record, replace(ready, name="mine")).severity == INFO, "whatever the name of what took its place"
    no_record = said(frozenset(), ready)
    assert (no_record.severity, "no record" in no_record.message) == (WARNING, True)
    for gone in ((), (replace(ready, visible=False),), (replace(ready, parts=ready.parts[1:]),)):
        no_place = said(on_record, *gone)
        assert (no_place.severity, "does not stand in its place" in no_place.message) == (WARNING, True)
    assert said(None, ready).severity == INFO, "an unread fact decides then"
    shown = said(on_record, ready, hidden=False)
    assert (shown.severity, shown.property) == (WARNING, "visible")
    assert shown.fix == f"{known['hide-claim'].statement};"
