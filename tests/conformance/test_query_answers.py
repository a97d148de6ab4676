"""The queries' answers about what real workers, killed workers, a crash loop and hands have left in the tables."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from pairs import Answer, Opsctl, onestep_dsn
from processes import run
from servers import Database, Server

from opsctl.queryfiles import load_catalogue

pytestmark = pytest.mark.slow

STATES = Path(__file__).parents[1] / "reference/onestep_states.py"
LIVE = {"running", "cancel_requested"}
#: Rows of the story that a claim would take back, and what holds a lease.
OVERDUE = {"overdue", "overdue, delayed", "retrying, overdue"}
LEASED = {"killed", "lingering", "lease run out"}


@dataclass
class States:
    """A pair in which everything has happened, made by one release of onestep; `ids` by the names of the story."""

    release: str
    database: Database
    ids: dict[str, str]
    executions: str
    attempts: str

    @property
    def names(self) -> dict[str, str]:
        return {execution_id: name for name, execution_id in self.ids.items()}

    def rows(self, table: str) -> list[dict[str, Any]]:
        with self.database.connect().cursor() as cursor:
            cursor.execute(f"SELECT * FROM {table}")
            names = [column[0] for column in cursor.description]
            found = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        for row in found:
            for column in ("id", "execution_id"):
                if column in row:
                    row[column] = str(UUID(str(row[column])))
        return found


@pytest.fixture(scope="module", params=["newest", "oldest"])
def states(
    request: pytest.FixtureRequest,
    server: Server,
    reference_pythons: dict[str, Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[States]:
    release = request.param
    executions, attempts = {
        "newest": ("onestep_executions", "onestep_execution_attempts"),
        "oldest": ("Jobs", "order"),  # mixed case, and a reserved word
    }[release]
    database = Database(server)
    home = tmp_path_factory.mktemp("states")
    told = run([reference_pythons[release], STATES, onestep_dsn(database), executions, attempts], home, timeout=120)
    assert told.code == 0, told.err
    quoted = (
        (f'"{executions}"', f'"{attempts}"') if server.family == "postgresql" else (f"`{executions}`", f"`{attempts}`")
    )
    made = States(release, database, json.loads(told.out.splitlines()[-1]), *quoted)
    made.tables = ["--executions-table", executions, "--attempts-table", attempts]  # type: ignore[attr-defined]
    yield made
    database.drop()


@pytest.fixture
def ask(states: States, opsctl: Opsctl) -> Callable[..., list[dict[str, Any]]]:
    """ask(QUERY, PARAMETER=VALUE…): the rows of the answer."""

    def run_query(query: str, **params: str) -> list[dict[str, Any]]:
        answer = opsctl(*arguments(states, query, **params))
        assert answer.code == 0, answer
        return list(answer.json["rows"])

    return run_query


def arguments(states: States, query: str, **params: str) -> list[str]:
    given = [part for name, value in params.items() for part in ("-p", f"{name}={value}")]
    dsn = ["--dsn", states.database.dsn, "--allow-scan", "-o", "json"]
    return ["query", "run", query, *given, *dsn, *states.tables]  # type: ignore[attr-defined]


def named(states: States, rows: list[dict[str, Any]]) -> set[str]:
    return {states.names[row["execution_id"]] for row in rows}


def test_counts(states: States, ask: Callable[..., list[dict[str, Any]]]) -> None:
    stored = Counter((row["namespace"], row["task_name"], row["status"]) for row in states.rows(states.executions))
    answered = {(row["namespace"], row["task_name"], row["status"]): row["executions"] for row in ask("status-counts")}
    assert answered == stored
    assert {row["namespace"] for row in ask("status-counts", namespace="branch")} == {"branch"}
    assert {row["task_name"] for row in ask("status-counts", task="report")} == {"report"}


def test_what_holds_a_lease(states: States, ask: Callable[..., list[dict[str, Any]]]) -> None:
    stuck = ask("stuck-running", heartbeat_older="0s")
    assert named(states, stuck) == LEASED
    attempts = {(row["execution_id"], row["attempt_no"]): row for row in states.rows(states.attempts)}
    for row in stuck:
        assert attempts[row["execution_id"], row["attempt_no"]]["worker_id"] == row["worker_id"]
        assert row["reason"] == "heartbeat is old"
        assert 0 < row["heartbeat_age_s"] <= row["running_s"] < 600
        assert (row["lease_left_s"] < 0) == (states.names[row["execution_id"]] == "lease run out")
    assert ask("stuck-running", heartbeat_older="1h") == []
    assert named(states, ask("stuck-running", heartbeat_older="1h", running_longer="0.001s")) == LEASED

    (expired,) = ask("expired-leases")
    assert (states.names[expired["execution_id"]], expired["next_status"]) == ("lease run out", "retrying")
    assert expired["expired_s"] > 0

    assert named(states, ask("cancel-lingering", older_than="0s")) == {"lingering"}
    assert ask("cancel-lingering", older_than="1h") == []

    workers = {row["worker_id"]: (row["task_name"], row["leases"], row["expired_leases"]) for row in ask("workers")}
    assert workers == {"w-killed": ("long", 2, 0), "w-lost": ("short", 1, 1)}


def test_what_waits(states: States, ask: Callable[..., list[dict[str, Any]]]) -> None:
    assert named(states, ask("overdue-queued")) == OVERDUE
    waiting = [row for row in states.rows(states.executions) if row["status"] in ("queued", "retrying")]
    later = {"delayed", "overdue, delayed", "retrying later"}
    due = Counter((r["namespace"], r["task_name"]) for r in waiting if states.names[r["id"]] not in later)
    delayed = Counter((r["namespace"], r["task_name"]) for r in waiting if states.names[r["id"]] in later)
    answered = {(row["namespace"], row["task_name"]): row for row in ask("oldest-queued")}
    assert {key: row["due"] for key, row in answered.items() if row["due"]} == due
    assert {key: row["later"] for key, row in answered.items() if row["later"]} == delayed
    for row in answered.values():
        assert (row["oldest_age_s"] is not None) == (row["due"] > 0) == (row["oldest_available_at"] is not None)
        assert (row["next_available_at"] is not None) == (row["later"] > 0)


def test_what_goes_wrong(states: States, ask: Callable[..., list[dict[str, Any]]]) -> None:
    (poison,) = ask("poison")
    assert (states.names[poison["execution_id"]], poison["lost"], poison["attempts"]) == ("crashing", 3, 3)
    assert poison["last_worker_id"] == "w-crash"
    assert ask("poison", min_lost="4") == []
    assert {"crashing", "lost, to be retried late"} <= named(states, ask("poison", min_lost="1"))

    storm = {
        (row["task_name"], row["exception_type"]): row["executions"] for row in ask("retry-storm", min_attempts="1")
    }
    assert storm == {("retry", "KeyError"): 2, ("lost", None): 1, ("crash", None): 1}
    (repeated,) = ask("retry-storm")
    assert (repeated["task_name"], repeated["max_attempts"]) == ("crash", 3)

    (failure,) = ask("recent-failures")
    assert (failure["task_name"], failure["exception_type"], failure["failures"]) == ("report", "ValueError", 1)
    assert failure["last_execution_id"] == states.ids["failed"]


def test_what_has_finished(states: States, ask: Callable[..., list[dict[str, Any]]]) -> None:
    ended = [row for row in states.rows(states.executions) if row["finished_at"] is not None]
    stored = Counter((row["namespace"], row["task_name"], row["status"]) for row in ended)
    answered: Counter[tuple[str, str, str]] = Counter()
    for row in ask("throughput"):
        for status in ("succeeded", "failed", "cancelled", "expired"):
            answered[row["namespace"], row["task_name"], status] += row[status]
        assert row["finished"] == sum(row[status] for status in ("succeeded", "failed", "cancelled", "expired"))
    assert +answered == stored

    begun = [row for row in ended if row["started_at"] is not None]
    times = ask("latency")
    assert {row["task_name"]: row["runs"] for row in times} == Counter(row["task_name"] for row in begun)
    for row in times:
        longest = max(one["finished_at"] - one["started_at"] for one in begun if one["task_name"] == row["task_name"])
        assert row["run_max_s"] == pytest.approx(longest.total_seconds(), abs=0.001)
        for what in ("wait", "run"):
            found = [row[f"{what}_{name}_s"] for name in ("p50", "p90", "p99", "max")]
            assert found[0] >= 0
            assert found == sorted(found)
            assert found[-1] < 60, "of a story of seconds"


def test_what_a_claim_reads(states: States, ask: Callable[..., list[dict[str, Any]]]) -> None:
    stored = states.rows(states.executions)
    waiting = Counter((row["namespace"], row["task_name"]) for row in stored if row["status"] in ("queued", "retrying"))
    rows = ask("claim-cost")
    assert {(row["namespace"], row["task_name"]): row["waiting"] for row in rows if row["waiting"]} == waiting
    due = {(row["namespace"], row["task_name"]): row["due"] for row in ask("oldest-queued")}
    assert {(row["namespace"], row["task_name"]): row["due"] for row in rows if row["waiting"]} == due
    everything = waiting.total() if states.database.server.family == "postgresql" else len(stored)
    assert {row["overdue_reads_stock"] for row in rows} == {everything}


def test_the_attempts_of_each(states: States, ask: Callable[..., list[dict[str, Any]]]) -> None:
    stored = Counter(row["execution_id"] for row in states.rows(states.attempts))
    for name in ("crashing", "failed once", "due", "cancelled running"):
        execution_id = states.ids[name]
        rows = ask("attempts", id=execution_id)
        assert [row["attempt_no"] for row in rows] == (list(range(1, stored[execution_id] + 1)) or [None])
        assert {row["execution_id"] for row in rows} == {execution_id}
        for spelt in (execution_id.replace("-", ""), execution_id.upper(), "{" + execution_id + "}"):
            again = ask("attempts", id=spelt)
            assert [row["attempt_id"] for row in again] == [row["attempt_id"] for row in rows]
    assert [row["status"] for row in ask("attempts", id=states.ids["crashing"])] == ["lease_lost"] * 3
    assert ask("attempts", id=str(UUID(int=1))) == []
    (error,) = {json.dumps(row["error"]) for row in ask("attempts", id=states.ids["failed"])[-1:]}
    assert json.loads(error)["exception_type"] == "ValueError"


def test_what_real_onestep_leaves_is_consistent(states: States, ask: Callable[..., list[dict[str, Any]]]) -> None:
    assert ask("inconsistencies") == []
    assert ask("idempotency-duplicates") == []


def test_errors_that_an_older_onestep_cannot_read(states: States, ask: Callable[..., list[dict[str, Any]]]) -> None:
    known = {"kind", "exception_type", "stage", "backend", "operation", "connector_kind"}
    counted: Counter[tuple[str, str]] = Counter()
    for name, table in (("executions", states.executions), ("attempts", states.attempts)):
        for row in states.rows(table):
            error = json.loads(row["error"]) if isinstance(row["error"], str) else row["error"]
            if isinstance(error, dict) and (unknown := set(error) - known):
                counted[name, ",".join(sorted(unknown))] += 1
    answered: Counter[tuple[str, str]] = Counter()
    for row in ask("undecodable-errors"):
        answered[row["table_name"], row["unknown_keys"]] += row["rows_found"]
    assert answered == counted
    assert bool(answered) == (states.release == "newest")


def test_sizes(states: States, ask: Callable[..., list[dict[str, Any]]]) -> None:
    rows = ask("largest-rows")
    assert [row["total_bytes"] for row in rows] == sorted((row["total_bytes"] for row in rows), reverse=True)
    assert all(row["payload_bytes"] > 10 for row in rows)
    tables = {states.executions.strip('`"'), states.attempts.strip('`"')}
    assert {row["table_name"] for row in ask("sizes")} == tables
    indexes = ask("index-sizes")
    assert {row["table_name"] for row in indexes} == tables
    assert len(indexes) == 8
    assert all(row["index_bytes"] > 0 for row in indexes)


@pytest.mark.parametrize("query", ["locks", "sizes", "index-sizes", "workers"])
def test_a_table_that_is_not_there_is_no_empty_answer(query: str, states: States, opsctl: Opsctl) -> None:
    answer = opsctl(*arguments(states, query), "--attempts-table", "no_such_table")
    assert answer.code == 4, answer
    assert "no_such_table" in answer.err
    assert answer.out == ""


def test_the_rest_runs(states: States, ask: Callable[..., list[dict[str, Any]]]) -> None:
    for query in load_catalogue("postgresql").values():
        if query.name != "attempts":
            ask(query.name)


BY_HAND = {
    "runs without a whole lease": ("killed", "lease_expires_at = NULL"),
    "does not run and holds a lease": ("due", "worker_id = 'w'"),
    "has ended without finished_at": ("done", "finished_at = NULL"),
    "has finished_at and has not ended": ("due", "finished_at = created_at"),
    "is to be cancelled without cancel_requested_at": ("lingering", "cancel_requested_at = NULL"),
    "has cancel_requested_at and is not to be cancelled": ("due", "cancel_requested_at = created_at"),
    "runs and was never begun": ("killed", "attempts = 0"),
    "has a result of a run and was never begun": ("failed", "attempts = 0"),
    "attempts and started_at disagree": ("failed", "started_at = NULL"),
    "counts another number of attempts": ("done", "attempts = 7"),
    "its latest attempt is missing": ("killed", "attempts = 2"),
    "runs and its latest attempt does not": ("crashing", "status = 'running'"),
    "its latest attempt has another lease": ("killed", "lease_token = id"),
    "has an attempt that runs beside it": ("killed", "status = 'succeeded'"),
    "its times are out of order": ("done", "finished_at = '2001-01-01 00:00:00'"),
    "has a time in the future": ("done", "updated_at = '2101-01-01 00:00:00'"),
    "has a result and has not succeeded": ("failed", "result = '{\"a\": 1}'"),
    "has succeeded with an error": ("done", 'error = \'{"kind": "x"}\''),
}


def test_what_hands_have_done(states: States, opsctl: Opsctl) -> None:
    """Each rule broken once by hand, and the row put back."""
    for problem, (name, change) in BY_HAND.items():
        execution_id = states.ids[name] if states.database.server.family == "postgresql" else UUID(states.ids[name]).hex
        columns = change.partition(" = ")[0]
        where = f"WHERE id = '{execution_id}'"
        kept = f"kept_{abs(hash(problem)) % 10**8}"
        states.database.execute(
            f"CREATE TABLE {kept} AS SELECT * FROM {states.executions} {where}",
            f"UPDATE {states.executions} SET {change} {where}",
        )
        answer: Answer = opsctl(*arguments(states, "inconsistencies"))
        states.database.execute(
            f"UPDATE {states.executions} SET {columns} = (SELECT {columns} FROM {kept}) {where}", f"DROP TABLE {kept}"
        )
        assert answer.code == 0, answer
        found = {row["execution_id"]: row["problems"] for row in answer.json["rows"]}
        assert found.keys() == {states.ids[name]}, (problem, found)
        assert problem in found[states.ids[name]], found
