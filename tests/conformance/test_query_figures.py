"""throughput, latency and claim-cost about rows whose figures are known: the same answer on every server."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from pairs import EXECUTIONS, Opsctl, create_pair
from servers import Database

Row = dict[str, Any]
NAMES = ("p50", "p90", "p99", "max")
#: Of the claim that onestep sends: the search for one row of a task that is due, and that for overdue rows.
READY = (
    f"SELECT id FROM {EXECUTIONS} FORCE INDEX (ix_{EXECUTIONS}_claim) WHERE namespace = 'shop' AND task_name = '{{}}'"
    " AND status IN ('queued', 'retrying') AND available_at <= UTC_TIMESTAMP(6) ORDER BY available_at, created_at, id LIMIT 1"
)
OVERDUE = (
    f"SELECT id FROM {EXECUTIONS} WHERE status IN ('queued', 'retrying') AND expires_at <= UTC_TIMESTAMP(6) LIMIT 100"
)


class Hand:
    """Rows written by hand; times are seconds after `start`, two hours ago."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.start = datetime.now(UTC) - timedelta(hours=2)
        self.rows: list[Row] = []

    def add(self, task: str, status: str = "succeeded", namespace: str = "shop", **times: float) -> None:
        row: Row = {
            "id": UUID(int=len(self.rows) + 1).hex,
            "namespace": namespace,
            "task_name": task,
            "status": status,
            "payload": "{}",
            "metadata": "{}",
            "updated_at": self.at(0),
            "created_at": self.at(0),
            "available_at": self.at(0),
        }
        self.rows.append(row | {name: self.at(seconds) for name, seconds in times.items()})

    def at(self, seconds: float) -> str:
        return (self.start + timedelta(seconds=seconds)).strftime("%Y-%m-%d %H:%M:%S.%f")

    def write(self) -> None:
        create_pair(self.database)
        with self.database.connect().cursor() as cursor:
            if self.database.server.family == "postgresql":
                cursor.execute("SET TIME ZONE 'UTC'")
            for row in self.rows:
                places = ", ".join(["%s"] * len(row))
                cursor.execute(f"INSERT INTO {EXECUTIONS} ({', '.join(row)}) VALUES ({places})", list(row.values()))


@pytest.fixture
def hand(database: Database) -> Hand:
    return Hand(database)


@pytest.fixture
def ask(database: Database, opsctl: Opsctl) -> Callable[..., dict[str, Row]]:
    """ask(QUERY, PARAMETER=VALUE…): the rows of the answer by their task."""

    def run_query(query: str, **params: str) -> dict[str, Row]:
        given = [part for name, value in params.items() for part in ("-p", f"{name}={value}")]
        answer = opsctl("query", "run", query, *given, "--dsn", database.dsn, "--allow-scan", "-o", "json")
        assert answer.code == 0, answer.err
        return {row["task_name"]: row for row in answer.json["rows"]}

    return run_query


def figures(row: Row, what: str) -> list[float]:
    return [row[f"{what}_{name}_s"] for name in NAMES]


def test_percentiles_are_times_that_occurred(hand: Hand, ask: Callable[..., dict[str, Row]]) -> None:
    """By nearest rank: of n the first that has its share of n behind it, itself counted."""
    for runs in (1, 2, 3, 10, 11, 100, 101):
        numbers = random.Random(runs).sample(range(1, runs + 1), runs)
        for wait, run in zip(numbers, reversed(numbers), strict=True):
            begun = 4000 + wait / 1000
            hand.add(f"of {runs}", available_at=4000, started_at=begun, finished_at=begun + run)
    hand.write()
    ranks = {1: (1, 1, 1), 2: (1, 2, 2), 3: (2, 3, 3), 10: (5, 9, 10), 11: (6, 10, 11), 100: (50, 90, 99)}
    ranks[101] = (51, 91, 100)
    answer = ask("latency")
    assert {task: row["runs"] for task, row in answer.items()} == {f"of {runs}": runs for runs in ranks}
    for runs, places in ranks.items():
        assert figures(answer[f"of {runs}"], "run") == [*places, runs]
        assert figures(answer[f"of {runs}"], "wait") == [place / 1000 for place in (*places, runs)]
    assert list(answer) == ["of 101", "of 100", "of 11", "of 10", "of 3", "of 2", "of 1"], (
        "the longest waits come first"
    )


def test_what_is_a_wait_and_what_a_run(hand: Hand, ask: Callable[..., dict[str, Row]]) -> None:
    hand.add("delayed", created_at=0, available_at=4000, started_at=4002, finished_at=4003)
    hand.add("retried", created_at=3990, available_at=4010, started_at=4000, finished_at=4020)
    hand.add("at once", available_at=4000, started_at=4000, finished_at=4000)
    hand.add("by other clocks", created_at=4005, available_at=4010, started_at=4000, finished_at=3999)
    hand.add("half", available_at=4000, started_at=4000.0005, finished_at=4001.23495)
    hand.add("failed", "failed", available_at=4000, started_at=4001, finished_at=4002)
    hand.add("never begun", "expired", finished_at=4000)
    hand.add("runs", "running", available_at=4000, started_at=4001)
    hand.add("long ago", available_at=0, started_at=1, finished_at=2)
    hand.write()
    answer = ask("latency")
    found = {task: (row["wait_max_s"], row["run_max_s"]) for task, row in answer.items()}
    assert found == {
        "delayed": (2, 1),
        "retried": (10, 20),
        "at once": (0, 0),
        "by other clocks": (0, 0),
        "half": (0.001, 1.234),
        "failed": (1, 1),
    }
    assert ask("latency", status="failed").keys() == {"failed"}
    assert ask("latency", task="half").keys() == {"half"}
    assert ask("latency", namespace="branch") == {}
    assert ask("latency", since="3h").keys() == found.keys() | {"long ago"}
    assert ask("latency", since="0s") == {}


def test_what_has_finished_counts_when_it_did(hand: Hand, ask: Callable[..., dict[str, Row]]) -> None:
    for status, times in (("succeeded", 5), ("failed", 3), ("cancelled", 2), ("expired", 1)):
        for number in range(times):
            hand.add("report", status, finished_at=4000 + number)
    hand.add("report", finished_at=100)
    hand.add("report", "running", started_at=4000)
    hand.add("order", namespace="branch", finished_at=5000)
    hand.add("idle", "queued")
    hand.write()
    answer = ask("throughput")
    assert list(answer) == ["report", "order"]
    assert answer["report"] == {
        "namespace": "shop",
        "task_name": "report",
        "finished": 11,
        "succeeded": 5,
        "failed": 3,
        "cancelled": 2,
        "expired": 1,
        "per_minute": 0.183,
        "last_finished_at": hand.at(4004).replace(" ", "T") + "+00:00",
    }
    assert ask("throughput", namespace="branch").keys() == {"order"}
    [wider] = ask("throughput", since="150m", task="report").values()
    assert (wider["finished"], wider["per_minute"]) == (12, 0.08)
    assert ask("throughput", since="0s") == {}


def test_what_a_claim_reads_in_vain(hand: Hand, ask: Callable[..., dict[str, Row]]) -> None:
    hour = 3600.0
    for number, status in enumerate(("succeeded", "failed", "cancelled", "expired", "running", "cancel_requested")):
        hand.add("busy", status, available_at=number)
    hand.add("busy", "cancelled", available_at=5 * hour)  # before it was due
    for number, status in enumerate(("queued", "queued", "retrying")):
        hand.add("busy", status, available_at=10 + number)
    hand.add("busy", "queued", available_at=5 * hour)
    for number in range(4):
        hand.add("idle", available_at=number)
    hand.add("later", "retrying", available_at=5 * hour)
    hand.add("elsewhere", "queued", namespace="branch")
    hand.write()
    answer = ask("claim-cost")
    if hand.database.server.family == "postgresql":
        whole, passes = 6, {"busy": 0, "later": 0, "elsewhere": 0}  # what waits, and no row besides
    else:
        whole, passes = len(hand.rows), {"busy": 6, "idle": 4, "later": 0, "elsewhere": 0}
    assert {task: row["passes_stock"] for task, row in answer.items()} == passes
    waiting = {"busy": (4, 3), "idle": (0, 0), "later": (1, 0), "elsewhere": (1, 1)}
    assert {task: (row["waiting"], row["due"]) for task, row in answer.items()} == {
        task: waiting[task] for task in passes
    }
    assert {row["overdue_reads_stock"] for row in answer.values()} == {whole}
    assert ask("claim-cost", namespace="branch") == {"elsewhere": answer["elsewhere"]}
    assert ask("claim-cost", task="busy") == {"busy": answer["busy"]}


@pytest.mark.servers("mysql", "mariadb")
def test_a_claim_reads_what_claim_cost_says(hand: Hand, ask: Callable[..., dict[str, Row]]) -> None:
    """By the server's own count of the rows that it reads for the searches of a claim."""
    for number in range(300):
        hand.add("busy" if number % 3 else "idle", available_at=number)
    hand.add("busy", "queued", available_at=1000)
    hand.write()
    answer = ask("claim-cost")
    with hand.database.connect().cursor() as cursor:

        def reads(statement: str) -> int:
            cursor.execute("FLUSH STATUS")
            cursor.execute(statement)
            cursor.execute(
                "SHOW SESSION STATUS WHERE variable_name IN ('Handler_read_key', 'Handler_read_next',"
                " 'Handler_read_rnd_next')"
            )
            return sum(int(count) for _, count in cursor.fetchall())

        for task, passed in (("busy", 200), ("idle", 100)):
            assert answer[task]["passes_stock"] == passed
            # One more: the row that is due, or the end that is looked for.
            assert passed <= reads(READY.format(task)) <= passed + 1
        assert answer["busy"]["overdue_reads_stock"] == 301 <= reads(OVERDUE) <= 303
