"""A pair with many finished executions, made as quickly as a server makes it, for plans that only many rows bring about.

All follows from a row's number, so that every server has the same rows. Ids lie as at random on PostgreSQL, where plans
know how the table lies; on MySQL and MariaDB, where they do not, and the table is its primary key, in order.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from pairs import ATTEMPTS, EXECUTIONS, create_pair
from servers import Database

FINISHED = 1_000_000
LIVE = 400

_STATUS = f"""CASE WHEN i > {FINISHED} THEN
    CASE i % 4 WHEN 0 THEN 'queued' WHEN 1 THEN 'running' WHEN 2 THEN 'retrying' ELSE 'cancel_requested' END
  ELSE CASE i % 20 WHEN 0 THEN 'failed' WHEN 1 THEN 'cancelled' WHEN 2 THEN 'expired' ELSE 'succeeded' END END"""
_ATTEMPT_STATUS = f"""CASE WHEN i > {FINISHED} THEN CASE i % 4 WHEN 2 THEN 'lease_lost' ELSE 'running' END
  ELSE CASE i % 20 WHEN 0 THEN 'failed' WHEN 1 THEN 'cancelled' ELSE 'succeeded' END END"""
_IS_LEASED = f"i > {FINISHED} AND i % 2 = 1"
_HAS_NOT_BEGUN = f"i > {FINISHED} AND i % 4 = 0"
_NAMESPACE = "CASE i % 3 WHEN 0 THEN 'shop' WHEN 1 THEN 'branch' ELSE 'office' END"
_TASK = "concat('task-', i % 5)"


def make_million(database: Database) -> None:
    """Create the pair with FINISHED executions over the last 29 days, LIVE others, and an attempt of each that began."""
    create_pair(database)
    rebuild = drop_indexes(database)
    with without_redo_log(database):
        fill(database, 1, FINISHED + LIVE)
        database.execute(*rebuild)
    gather_statistics(database)


@contextlib.contextmanager
def without_redo_log(database: Database) -> Iterator[None]:
    """MySQL of our own needs two thirds of the time without; one that somebody gave us is not ours to endanger."""
    if database.server.name != "mysql" or database.server.directory is None:
        yield
        return
    database.execute("ALTER INSTANCE DISABLE INNODB REDO_LOG")
    try:
        yield
    finally:
        database.execute("ALTER INSTANCE ENABLE INNODB REDO_LOG")


def gather_statistics(database: Database) -> None:
    word = "VACUUM ANALYZE" if database.server.family == "postgresql" else "ANALYZE TABLE"
    database.execute(*(f"{word} {table}" for table in (EXECUTIONS, ATTEMPTS)))


def fill(database: Database, first: int, last: int, step: int = 1) -> None:
    """Insert the executions of these numbers and their attempts; behind FINISHED every fourth is queued."""
    postgresql = database.server.family == "postgresql"

    def ago(seconds: str) -> str:
        """So long before now; the last of the finished were created an hour ago."""
        if postgresql:
            return f"now() - make_interval(secs => {seconds})"
        return f"DATE_SUB(UTC_TIMESTAMP(6), INTERVAL {seconds} SECOND)"

    def since(live_s: str, finished_s: int) -> str:
        return ago(f"(CASE WHEN i > {FINISHED} THEN {live_s} ELSE ({FINISHED} - i) * 2.5 + {finished_s} END)")

    def json(text: str) -> str:
        return f"'{text}'::jsonb" if postgresql else f"'{text}'"

    error = '{"kind": "handler", "exception_type": "KeyError"}'
    error = f"CASE WHEN i % 20 = 0 THEN {json(error)} END"
    own = "md5(i::text)::uuid" if postgresql else "concat('00000000000040008000', lpad(hex(i), 12, '0'))"
    execution = {
        "id": own,
        "namespace": _NAMESPACE,
        "task_name": _TASK,
        "status": _STATUS,
        "payload": json('{"pages": 3}'),
        "metadata": json("{}"),
        "error": error,
        "idempotency_key": "CASE WHEN i % 4 = 0 THEN concat('key-', i) END",
        "submission_digest": "CASE WHEN i % 4 = 0 THEN 'd' END",
        "attempts": f"CASE WHEN {_HAS_NOT_BEGUN} THEN 0 ELSE 1 END",
        "available_at": since("600", 3600),
        "lease_token": f"CASE WHEN {_IS_LEASED} THEN {own} END",
        "lease_expires_at": f"CASE WHEN {_IS_LEASED} THEN {ago('(i % 100 - 80)')} END",
        "worker_id": f"CASE WHEN {_IS_LEASED} THEN concat('w-', i % 7) END",
        "cancel_requested_at": f"CASE WHEN {_IS_LEASED} AND i % 4 = 3 THEN {ago('300')} END",
        "created_at": since("600", 3600),
        "updated_at": since("100", 3000),
        "started_at": f"CASE WHEN NOT ({_HAS_NOT_BEGUN}) THEN {since('500', 3500)} END",
        "finished_at": f"CASE WHEN i <= {FINISHED} THEN {since('0', 3000)} END",
        "version": "2",
    }
    attempt = {
        "id": own,
        "execution_id": own,
        "attempt_no": "1",
        "lease_token": own,
        "worker_id": "concat('w-', i % 7)",
        "status": _ATTEMPT_STATUS,
        "error": error,
        "started_at": since("500", 3500),
        "heartbeat_at": since("(i % 400)", 3000),
        "finished_at": f"CASE WHEN NOT ({_IS_LEASED}) THEN {since('100', 3000)} END",
    }

    def insert(table: str, row: dict[str, str], where: str = "") -> None:
        names, values = ", ".join(row), ", ".join(row.values())
        with database.connect().cursor() as cursor:
            if postgresql:
                series = f"generate_series({first}, {last}, {step}) AS s(i)"
                cursor.execute(f"INSERT INTO {table} ({names}) SELECT {values} FROM {series} {where}")
                return
            recursion = "max_recursive_iterations" if database.server.name == "mariadb" else "cte_max_recursion_depth"
            cursor.execute(f"SET SESSION {recursion} = 100000000, foreign_key_checks = 0")
            series = f"WITH RECURSIVE s(i) AS (SELECT {first} UNION ALL SELECT i + {step} FROM s WHERE i < {last})"
            cursor.execute(f"INSERT INTO {table} ({names}) {series} SELECT {values} FROM s {where}")

    with ThreadPoolExecutor(2) as threads:
        executions = threads.submit(insert, EXECUTIONS, execution)
        attempts = threads.submit(insert, ATTEMPTS, attempt, f"WHERE NOT ({_HAS_NOT_BEGUN})")
        for future in (executions, attempts):
            future.result()


def drop_indexes(database: Database) -> list[str]:
    """Drop what is made more quickly afterwards, foreign keys included, and return the statements that make it."""
    if database.server.family == "postgresql":
        found = database.execute(
            f"SELECT indexname, indexdef FROM pg_indexes WHERE tablename IN ('{EXECUTIONS}', '{ATTEMPTS}')"
            " AND indexname ~ '^(ix|uq_onestep_executions)'"
        )
        [(key, definition)] = database.execute(
            "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint"
            f" WHERE contype = 'f' AND conrelid = '{ATTEMPTS}'::regclass"
        )
        database.execute(f"ALTER TABLE {ATTEMPTS} DROP CONSTRAINT {key}", *(f"DROP INDEX {name}" for name, _ in found))
        return [*(index for _, index in found), f"ALTER TABLE {ATTEMPTS} ADD CONSTRAINT {key} {definition}"]
    key = f"fk_{ATTEMPTS}_execution"
    database.execute(f"ALTER TABLE {ATTEMPTS} DROP FOREIGN KEY {key}", "SET SESSION foreign_key_checks = 0")
    rebuild = []
    for table in (EXECUTIONS, ATTEMPTS):
        found = database.execute(
            "SELECT index_name, max(non_unique), group_concat(concat(column_name,"
            " CASE collation WHEN 'D' THEN ' DESC' ELSE '' END) ORDER BY seq_in_index) FROM information_schema.statistics"
            f" WHERE table_schema = DATABASE() AND table_name = '{table}' AND index_name <> 'PRIMARY' GROUP BY index_name"
        )
        database.execute(f"ALTER TABLE {table} " + ", ".join(f"DROP INDEX {name}" for name, _, _ in found))
        adds = [f"ADD {'' if plain else 'UNIQUE '}INDEX {name} ({columns})" for name, plain, columns in found]
        rebuild.append(f"ALTER TABLE {table} {', '.join(adds)}")
    reference = f"FOREIGN KEY (execution_id) REFERENCES {EXECUTIONS} (id) ON DELETE CASCADE"
    return [*rebuild, f"ALTER TABLE {ATTEMPTS} ADD CONSTRAINT {key} {reference}"]
