"""onestep's own locks around the creation of a pair, and who holds an advisory lock of PostgreSQL."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from opsctl.db import Session
from opsctl.dialects.mariadb import MariaDB
from opsctl.dialects.mysql import MySQL
from opsctl.dialects.names import Pair
from opsctl.dialects.postgresql import PostgreSQL
from opsctl.errors import Unreachable
from opsctl.failures import error_code

#: Who holds a given advisory lock of one 64-bit key in this database.
_ADVISORY_HOLDER = """
SELECT pid FROM pg_catalog.pg_locks
 WHERE locktype = 'advisory' AND granted AND objsubid = 1
   AND database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
   AND ((classid::bigint << 32) | objid::bigint) = :key
"""


def advisory_holder(session: Session, key: int) -> object:
    """Return the session that holds the advisory lock `key`, None when nobody does any more."""
    return session.scalar(_ADVISORY_HOLDER, key=key)


def lock_seconds(session: Session) -> int:
    """Return how long GET_LOCK is to wait, which takes whole seconds."""
    return max(1, round(session.timeouts.lock_s))


@contextlib.contextmanager
def ddl_locks_of(session: Session, pair: Pair) -> Iterator[None]:
    """Hold onestep's own locks for creating `pair`."""
    dialect = session.dialect
    session.rollback()
    if isinstance(dialect, PostgreSQL):
        _take_advisory_lock(session, dialect.ddl_lock(pair))
        try:
            yield
        finally:
            with contextlib.suppress(Unreachable):
                session.rollback()  # what is not committed by now is not wanted; the lock goes with it
        return
    held: list[str] = []
    try:
        for name in dialect.ddl_locks(pair):
            _get_lock(session, dialect, name)
            held.append(name)
        yield
    finally:
        for name in reversed(held):
            with contextlib.suppress(Unreachable):  # the connection is gone, and its locks with it
                session.scalar("SELECT RELEASE_LOCK(:name)", name=name)


def _take_advisory_lock(session: Session, key: int) -> None:
    try:
        session.scalar("SELECT pg_advisory_xact_lock(:key)", key=key)
    except Unreachable as error:
        if error_code(error) != "55P03":
            raise
        session.rollback()
        raise _held(session, f"advisory lock {key}", advisory_holder(session, key), "pg_stat_activity") from None


def _held(session: Session, lock: str, holder: object, where: str) -> Unreachable:
    who = f"session {holder}" if holder else "another session"
    return Unreachable(
        f"{session.target}: the {lock} is held by {who}, waited {session.timeouts.lock_s:g} s for it",
        f"onestep or another init-tables creates tables there: see {where}, then run it again; or raise --lock-timeout",
    )


def _get_lock(session: Session, dialect: MySQL | MariaDB, name: str) -> None:
    seconds = lock_seconds(session)
    if session.scalar("SELECT GET_LOCK(:name, :seconds)", name=name, seconds=seconds) == 1:
        return
    holder = session.scalar("SELECT IS_USED_LOCK(:name)", name=name)
    raise _held(session, f"lock {name}", holder, "SHOW PROCESSLIST")
