"""A pair of tables with many finished executions, built as quickly as the server can.

Ids lie evenly over the whole range, in no order of time, as those of onestep do: the row numbered i gets an id in the
order of i, and the moment numbered (i * a large prime) modulo the number of rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from million import drop_indexes, gather_statistics, without_redo_log
from pairs import ATTEMPTS, EXECUTIONS, create_pair
from servers import Database

_PRIME = 7_368_787
_BATCH = 500_000
_WINDOW_S = 30 * 86400


@dataclass(frozen=True)
class Shape:
    """How the table looks: `finished` rows over the last 30 days, of `tasks` tasks in each of `namespaces` namespaces.

    A share `expiring` of them, and of those queued later, carries an expires_at.
    """

    finished: int
    tasks: int = 5
    namespaces: int = 1
    expiring: float = 0.0
    payload: int = 200


def build(database: Database, shape: Shape) -> None:
    """Create the pair and its finished rows, each with one attempt, and gather statistics."""
    create_pair(database)
    rebuild = drop_indexes(database)
    with without_redo_log(database):
        for first in range(0, shape.finished, _BATCH):
            _insert(database, shape, first, min(shape.finished, first + _BATCH))
        database.execute(*rebuild)
    gather_statistics(database)


def clear_live(database: Database) -> None:
    """Take away what queue() and workers left that has not ended."""
    leased = "status IN ('queued', 'retrying', 'running', 'cancel_requested')"
    database.execute(f"DELETE FROM {EXECUTIONS} WHERE {leased}")


def queue(
    database: Database,
    count: int,
    task: str = "task-0",
    namespace: str = "ns-0",
    expiring: float = 0.0,
    scattered: bool = False,
    payload: int = 200,
) -> None:
    """Add `count` queued executions of one task, due since a moment ago, in random order of ids.

    `scattered` (PostgreSQL): into room that as many finished rows left all over the table, as retention does.
    """
    if scattered and count:
        some = f"SELECT id FROM {EXECUTIONS} WHERE finished_at IS NOT NULL ORDER BY md5(id::text) LIMIT {count}"
        database.execute(f"DELETE FROM {EXECUTIONS} WHERE id IN ({some})", f"VACUUM {EXECUTIONS}", f"VACUUM {ATTEMPTS}")
    postgresql = database.server.family == "postgresql"
    ago = (
        "now() - make_interval(secs => 60 + i * 0.001)"
        if postgresql
        else "UTC_TIMESTAMP(6) - INTERVAL 60000000 - i * 1000 MICROSECOND"
    )
    later = "now() + interval '1 day'" if postgresql else "UTC_TIMESTAMP(6) + INTERVAL 1 DAY"
    uuid = "gen_random_uuid()" if postgresql else "insert(insert(lower(hex(random_bytes(16))), 13, 1, '4'), 17, 1, '8')"
    row = {
        "id": uuid,
        "namespace": f"'{namespace}'",
        "task_name": f"'{task}'",
        "status": "'queued'",
        "payload": _payload(payload, postgresql=postgresql),
        "metadata": "'{}'",
        "attempts": "0",
        "available_at": ago,
        "created_at": ago,
        "updated_at": ago,
        "expires_at": f"CASE WHEN i % 100 < {expiring * 100:.0f} THEN {later} END",
        "version": "0",
    }
    _run(database, EXECUTIONS, row, 0, count)
    gather_statistics(database)


def _insert(database: Database, shape: Shape, first: int, last: int) -> None:
    postgresql = database.server.family == "postgresql"
    moment = f"((i * {_PRIME}) % {shape.finished})"
    age = f"(3600 + ({shape.finished} - {moment}) * {_WINDOW_S / shape.finished:.9f})"

    def at(plus: float) -> str:
        if postgresql:
            return f"now() - make_interval(secs => {age} - {plus})"
        return f"UTC_TIMESTAMP(6) - INTERVAL ROUND(({age} - {plus}) * 1000000) MICROSECOND"

    step = 0xFFFFFFFFFFF // max(1, shape.finished)
    hexed = f"lpad(to_hex(i * {step}), 11, '0')" if postgresql else f"lpad(lower(hex(i * {step})), 11, '0')"
    uuid = (
        f"({hexed} || '040008000' || lpad(to_hex(i), 12, '0'))::uuid"
        if postgresql
        else (f"concat({hexed}, '040008000', lpad(lower(hex(i)), 12, '0'))")
    )
    status = (
        f"CASE {moment} % 20 WHEN 0 THEN 'failed' WHEN 1 THEN 'cancelled' WHEN 2 THEN 'expired' ELSE 'succeeded' END"
    )
    text = _payload(shape.payload, postgresql=postgresql)
    execution = {
        "id": uuid,
        "namespace": f"concat('ns-', i % {shape.namespaces})",
        "task_name": f"concat('task-', (i div {shape.namespaces}) % {shape.tasks})".replace(
            " div ", " / " if postgresql else " div "
        ),
        "status": status,
        "payload": text,
        "metadata": "'{}'",
        "result": text,
        "attempts": "1",
        "available_at": at(0),
        "created_at": at(0),
        "updated_at": at(3),
        "expires_at": f"CASE WHEN i % 100 < {shape.expiring * 100:.0f} THEN {at(600)} END",
        "started_at": at(1),
        "finished_at": at(3),
        "version": "2",
    }
    attempt = {
        "id": uuid,
        "execution_id": uuid,
        "attempt_no": "1",
        "lease_token": uuid,
        "worker_id": "concat('w-', i % 7)",
        "status": "'succeeded'",
        "started_at": at(1),
        "heartbeat_at": at(2),
        "finished_at": at(3),
    }
    _run(database, EXECUTIONS, execution, first, last)
    _run(database, ATTEMPTS, attempt, first, last)


def _payload(characters: int, *, postgresql: bool) -> str:
    """An object with so many characters in it, no two the same to a compressor that looks at one row."""
    noise = "md5((i + n)::text)" if postgresql else "'x'"
    if postgresql:
        parts = f"(SELECT string_agg({noise}, '') FROM generate_series(1, {max(1, characters // 32)}) AS r(n))"
        return f"jsonb_build_object('text', {parts})"
    return f"concat('{{\"text\": \"', repeat({noise}, {characters}), '\"}}')"


def _run(database: Database, table: str, row: dict[str, str], first: int, last: int) -> None:
    """Insert a row for each i from `first` up to but not `last`."""
    names, values = ", ".join(row), ", ".join(row.values())
    if last <= first:
        return
    if database.server.family == "postgresql":
        database.execute(
            f"INSERT INTO {table} ({names}) SELECT {values} FROM generate_series({first}::bigint, {last - 1}) AS s(i)"
        )
        return
    recursion = "max_recursive_iterations" if database.server.name == "mariadb" else "cte_max_recursion_depth"
    series = f"WITH RECURSIVE s(i) AS (SELECT {first} UNION ALL SELECT i + 1 FROM s WHERE i < {last - 1})"
    database.execute(
        f"SET SESSION {recursion} = 100000000, foreign_key_checks = 0, unique_checks = 0",
        f"INSERT INTO {table} ({names}) {series} SELECT {values} FROM s",
    )
