"""The reads that are measured, as files; and what is concluded from a measurement."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from opsctl.dialects import AnyDialect
from opsctl.dialects.mariadb import MariaDB
from opsctl.dialects.mysql import MySQL
from opsctl.dialects.names import Pair
from opsctl.dialects.postgresql import PostgreSQL
from opsctl.ops.tune import plans
from opsctl.ops.tune.measure import CLAIM, Measured, Measurement, keeps_live_apart
from opsctl.ops.tune.share import share_of_workers
from opsctl.ops.tune.steps import Live
from opsctl.ops.tune.workload import NAMES, load_workload
from opsctl.resources import find_resource
from opsctl.schema.expected import expected_pair
from opsctl.schema.operational import load_operational

DIALECTS: dict[str, AnyDialect] = {"mysql": MySQL(), "mariadb": MariaDB(), "postgresql": PostgreSQL()}
MY, PG, ALL = ("mysql", "mariadb"), ("postgresql",), tuple(DIALECTS)


def live_pair(dialect: str, *, tuned: bool = False) -> Live:
    """The pair as it is made, with or without the operational indexes."""
    items = load_operational(DIALECTS[dialect], Pair())
    table = expected_pair(DIALECTS[dialect], Pair(), uuid_type="char(32)")[0]
    more = tuple(item.index for item in items if item.index is not None) if tuned else ()
    return Live(Pair(), None, replace(table, indexes=(*table.indexes, *more)), items, frozenset(), has_record=False)


@pytest.mark.parametrize("dialect", ALL)
def test_each_file_is_a_read_for_any_pair(dialect: str) -> None:
    reads = load_workload(DIALECTS[dialect], Pair("order", "Select_Attempts"), "s p" if dialect in PG else None)
    assert [read.name for read in reads] == list(NAMES)
    assert {path.stem for path in (find_resource("sql") / "workload").iterdir()} == set(NAMES)
    assert [read.name for read in reads if read.of_claim] == list(NAMES[:4])
    for read in reads:
        assert read.title
        assert read.sender in ("onestep", "opsctl")
        assert read.statement.startswith("SELECT ")
        assert "onestep" not in read.statement, "the names of the pair are put in everywhere"
        assert "FOR UPDATE" not in read.statement, "measuring locks nothing"
        assert set(read.binds) <= {"now", "before", "namespace", "task"}
        assert DIALECTS[dialect].quote("order") in read.statement


@pytest.mark.parametrize("dialect", ALL)
def test_which_indexes_keep_finished_rows_out_of_the_way(dialect: str) -> None:
    stock, tuned = live_pair(dialect), live_pair(dialect, tuned=True)
    assert keeps_live_apart(stock, "ix_onestep_executions_lease")
    assert keeps_live_apart(stock, "ix_onestep_executions_claim") == (dialect in PG)
    for name in ("ix_onestep_executions_list", plans.WHOLE_TABLE, "PRIMARY", "ix_onestep_executions_ready"):
        assert not keeps_live_apart(stock, name), name
    assert keeps_live_apart(tuned, "ix_onestep_executions_overdue")
    assert not keeps_live_apart(tuned, "ix_onestep_executions_finished")
    if dialect in MY:
        assert keeps_live_apart(tuned, "ix_onestep_executions_ready")
        assert keeps_live_apart(tuned, "ix_onestep_executions_ready|ix_onestep_executions_list")


def scan(kind: str, **more: Any) -> dict[str, Any]:
    return {"Node Type": kind, **more}


def test_the_index_of_a_plan_of_postgresql() -> None:
    first, second = (scan("Bitmap Index Scan", **{"Index Name": name}) for name in ("a", "b"))
    both = scan("BitmapAnd", Plans=[first, second])
    heap = scan("Bitmap Heap Scan", **{"Relation Name": "t", "Plans": [both]})
    whole = scan("Seq Scan", **{"Relation Name": "t", "Plans": [scan("Index Scan", **{"Index Name": "of a subplan"})]})
    assert plans._index_of([heap]) == "a"
    assert plans._index_of([whole]) == plans.WHOLE_TABLE
    assert plans._index_of([]) == plans.WHOLE_TABLE


def test_what_reads_all_before_its_first_row() -> None:
    index = scan("Index Scan")
    assert not plans._sorts(scan("Limit", Plans=[scan("Incremental Sort", Plans=[index])]))
    for kind in ("Sort", "Aggregate"):
        assert plans._sorts(scan("Limit", Plans=[scan(kind, Plans=[index])]))


def test_workers_claim_and_then_sleep() -> None:
    share = share_of_workers(1000, workers=6, poll_s=2)
    assert (share.claims_s, share.part) == (2.0, 2.0)
    assert str(share).startswith("claims take 2.0 cores, 2.0 claims a second")
    assert str(share_of_workers(10, workers=1, poll_s=0.99)).startswith("claims take 1.0% of one core, 1.0 claims")
    unknown = share_of_workers(10_000, workers=1, poll_s=1, at_least=True)
    assert unknown.claims_s is None
    assert "and more" in str(unknown)


def test_a_measurement_is_found_by_its_name() -> None:
    one = Measurement(CLAIM, "onestep", None, 1, 1, 1.0, 1.0)
    measured = Measured("t", None, None, None, 0, (one,), None)  # type: ignore[arg-type]
    assert measured.find(CLAIM) is one
    assert measured.find("nothing") is None
