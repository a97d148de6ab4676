"""Locks that another session really holds."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import psycopg
import pymysql
from faults.harness import wait_until
from servers import Database

from opsctl.dialects.mysql import MySQL
from opsctl.dialects.names import Pair
from opsctl.dialects.postgresql import PostgreSQL

PAIR = Pair()
MYSQL_LOCKS = MySQL().ddl_locks(PAIR)
POSTGRESQL_LOCK = PostgreSQL().ddl_lock(PAIR)


@contextlib.contextmanager
def session(database: Database, *statements: str) -> Iterator[Any]:
    """A connection that has run `statements`, and is closed afterwards with whatever it holds."""
    connection = database.connect()
    try:
        with connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
        yield connection
    finally:
        # The server may be gone, on purpose.
        with contextlib.suppress(pymysql.Error, psycopg.Error, OSError):
            connection.close()


def number_of(connection: Any) -> int:
    """The id of a connection on its server."""
    if isinstance(connection, psycopg.Connection):
        return connection.info.backend_pid
    return int(connection.thread_id())


@contextlib.contextmanager
def creation_lock(database: Database, which: int = 0) -> Iterator[int]:
    """onestep's lock around creation (MySQL and MariaDB have two); yields the holder's id."""
    if database.server.family == "postgresql":
        statement = f"SELECT pg_advisory_lock({POSTGRESQL_LOCK})"
    else:
        statement = f"SELECT GET_LOCK('{MYSQL_LOCKS[which]}', 10)"
    with session(database, statement) as connection:
        yield number_of(connection)


@contextlib.contextmanager
def blocked_table(database: Database, table: str) -> Iterator[int]:
    """`table` locked against every use, as in the last moment of an ALTER TABLE; yields the holder's id."""
    if database.server.family == "postgresql":
        with session(database, "BEGIN", f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE") as holder:
            yield number_of(holder)
        return
    # LOCK TABLES … WRITE lets SHOW CREATE TABLE pass; a RENAME that has one table and waits for the next does not.
    database.execute("CREATE TABLE zz_last (a int)")
    with session(database, "BEGIN", "SELECT * FROM zz_last"), session(database) as holder:
        rename = f"RENAME TABLE {table} TO renamed, zz_last TO zz_renamed"
        thread = threading.Thread(target=_run_until_ended, args=(holder, rename))
        thread.start()
        try:
            waiting = f"SELECT state FROM information_schema.processlist WHERE id = {number_of(holder)}"
            wait_until(lambda: "metadata lock" in str(database.execute(waiting)), 10)
            yield number_of(holder)
        finally:
            # The answer comes when it has given up; after a KILL of the whole session it might still get its lock.
            database.execute(f"KILL QUERY {number_of(holder)}")
            thread.join()
    database.execute("DROP TABLE zz_last")


def _run_until_ended(connection: pymysql.Connection[Any], statement: str) -> None:
    with contextlib.suppress(pymysql.Error, OSError), connection.cursor() as cursor:
        cursor.execute(statement)
