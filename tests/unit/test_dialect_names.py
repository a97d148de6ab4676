"""Derived names and locks: onestep-sql's own, computed by it, are the reference."""

from __future__ import annotations

import hashlib

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st
from onestep_sql.mysql import execution_backend as mysql_backend
from onestep_sql.mysql import execution_schema as mysql_schema
from onestep_sql.postgres import execution_schema as postgres_schema

from opsctl.dialects.mariadb import MariaDB
from opsctl.dialects.mysql import MySQL
from opsctl.dialects.names import DEFAULT_ATTEMPTS, DEFAULT_EXECUTIONS, Pair, validate_pair
from opsctl.dialects.postgresql import PostgreSQL
from opsctl.errors import UsageError
from opsctl.schema.expected import expected_pair

identifiers = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,62}", fullmatch=True)


def pair_of_length(length: int) -> Pair:
    """Two names of `length` that differ at their ends only, where cutting them could make them one."""
    return Pair("e" * (length - 1) + "1", "e" * (length - 1) + "2")


PAIRS = [
    Pair(),
    Pair("jobs", "job_runs"),
    Pair("Order", "select"),
    Pair("_", "__"),
    *map(pair_of_length, range(40, 64)),
]


def names_of(tables: object, *, with_keys: bool) -> set[str]:
    """Every name that SQLAlchemy would put into the DDL of onestep's two tables."""
    names: set[str] = set()
    for table in (tables.executions, tables.attempts):  # type: ignore[attr-defined]
        assert isinstance(table, sa.Table)
        names |= {table.name, *(str(index.name) for index in table.indexes)}
        for constraint in table.constraints:
            named = constraint.name is not None and not isinstance(constraint, sa.PrimaryKeyConstraint)
            if named and (with_keys or isinstance(constraint, sa.UniqueConstraint)):
                names.add(str(constraint.name))
    return names


@pytest.mark.parametrize("dialect", [MySQL(), MariaDB()], ids=["mysql", "mariadb"])
@pytest.mark.parametrize("pair", [*PAIRS, pair_of_length(64)], ids=str)
def test_names_on_mysql_are_onesteps(dialect: MySQL, pair: Pair) -> None:
    reference = mysql_schema.build_execution_tables(executions_table=pair.executions, attempts_table=pair.attempts)
    derived = dialect.derived_names(pair)
    assert set(derived.values()) == names_of(reference, with_keys=True)
    assert len(set(derived.values())) == len(derived)
    assert all(len(name) <= 64 for name in derived.values())


@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_names_on_postgresql_are_onesteps(pair: Pair) -> None:
    reference = postgres_schema.build_execution_tables(executions_table=pair.executions, attempts_table=pair.attempts)
    derived = PostgreSQL().derived_names(pair)
    assert set(derived.values()) == names_of(reference, with_keys=False)
    assert all(len(name) <= 63 for name in derived.values())


@pytest.mark.parametrize("dialect", [MySQL(), PostgreSQL()], ids=["mysql", "postgresql"])
def test_each_object_of_the_default_pair_maps_to_its_own_counterpart(dialect: MySQL | PostgreSQL) -> None:
    """Sets of names could agree and be crossed: the expected tables put each name on its own index."""
    assert all(default == name for default, name in dialect.derived_names(Pair()).items())
    pair = pair_of_length(60)
    build = (mysql_schema if isinstance(dialect, MySQL) else postgres_schema).build_execution_tables
    reference = build(executions_table=pair.executions, attempts_table=pair.attempts)
    uuid = "char(32)" if isinstance(dialect, MySQL) else "uuid"
    for expected, table in zip(
        expected_pair(dialect, pair, uuid_type=uuid), (reference.executions, reference.attempts), strict=True
    ):
        ours = {index.name: [part.name for part in index.parts] for index in expected.indexes if not index.primary}
        theirs = {
            str(index.name): [column.name for column in index.columns]
            for index in (*table.indexes, *(c for c in table.constraints if isinstance(c, sa.UniqueConstraint)))
        }
        assert ours == theirs
        checks = {str(c.name) for c in table.constraints if isinstance(c, sa.CheckConstraint)}
        assert {check.name for check in expected.checks} == checks


@given(identifiers, identifiers)
def test_locks_on_mysql_are_onesteps(executions: str, attempts: str) -> None:
    first, second = MySQL().ddl_locks(Pair(executions, attempts))
    assert first == mysql_backend._MYSQL_EXECUTION_DDL_GLOBAL_LOCK
    assert second == mysql_schema.mysql_ddl_lock_name(executions_table=executions, attempts_table=attempts)
    assert len(second) <= 64


@given(identifiers, identifiers)
def test_the_lock_on_postgresql_is_onesteps(executions: str, attempts: str) -> None:
    # as in onestep_sql/postgres/execution_backend.py, create_tables
    reference = int.from_bytes(hashlib.sha256(f"{executions}\0{attempts}".encode()).digest()[:8], "big", signed=True)
    assert PostgreSQL().ddl_lock(Pair(executions, attempts)) == reference


def test_the_lock_of_the_default_pair_on_postgresql() -> None:
    """The number itself, which another process with onestep holds: see pg_locks."""
    assert PostgreSQL().ddl_lock(Pair()) == -4001340406995615597


@pytest.mark.parametrize(
    ("table", "column", "name"),
    [
        ("onestep_execution_attempts", "execution_id", "onestep_execution_attempts_execution_id_fkey"),
        ("t" * 63, "execution_id", "t" * 45 + "_execution_id_fkey"),
        ("t" * 45, "execution_id", "t" * 45 + "_execution_id_fkey"),
        ("t" * 46, "execution_id", "t" * 45 + "_execution_id_fkey"),
        ("t" * 40, "c" * 40, "t" * 29 + "_" + "c" * 28 + "_fkey"),
    ],
)
def test_the_name_that_postgresql_gives_a_constraint(table: str, column: str, name: str) -> None:
    assert PostgreSQL().server_constraint_name(table, column, "fkey") == name
    assert len(name) <= 63


# -- what names a pair may have ------------------------------------------------------------------------------


@given(st.text(max_size=70), st.sampled_from([63, 64]))
def test_names_are_valid_exactly_where_onestep_takes_them(name: str, limit: int) -> None:
    build = (mysql_schema if limit == 64 else postgres_schema).build_execution_tables
    try:
        build(executions_table=name, attempts_table="other_attempts")
    except ValueError:
        with pytest.raises(UsageError, match="--executions-table"):
            validate_pair(Pair(name, "other_attempts"), max_length=limit)
    else:
        validate_pair(Pair(name, "other_attempts"), max_length=limit)


@pytest.mark.parametrize("name", ["", "1a", "a b", "a-b", "a.b", "a`b", "a;b", "tabelle_ä", "a\n", "١", "a" * 64])
def test_a_wrong_name_is_refused_for_either_table(name: str) -> None:
    with pytest.raises(UsageError, match="--executions-table"):
        validate_pair(Pair(name, DEFAULT_ATTEMPTS), max_length=63)
    with pytest.raises(UsageError, match="--attempts-table"):
        validate_pair(Pair(DEFAULT_EXECUTIONS, name), max_length=63)


@pytest.mark.parametrize("limit", [63, 64])
def test_the_longest_names_are_taken(limit: int) -> None:
    validate_pair(pair_of_length(limit), max_length=limit)
    with pytest.raises(UsageError, match=f"{limit + 1} characters"):
        validate_pair(pair_of_length(limit + 1), max_length=limit)


def test_two_tables_need_two_names() -> None:
    with pytest.raises(UsageError, match="are both"):
        validate_pair(Pair("jobs", "Jobs"), max_length=64)


@given(st.text())
def test_a_quoted_identifier_is_one_token(name: str) -> None:
    for dialect, mark in ((MySQL(), "`"), (PostgreSQL(), '"')):
        quoted = dialect.quote(name)
        assert quoted[0] == quoted[-1] == mark
        assert quoted[1:-1].replace(mark * 2, "") == name.replace(mark, "")
        assert mark not in quoted[1:-1].replace(mark * 2, "")
