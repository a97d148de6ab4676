"""The files of sql/: sections, statements, and renaming for a custom pair."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsctl.dialects import AnyDialect
from opsctl.dialects.mariadb import MariaDB
from opsctl.dialects.mysql import MySQL
from opsctl.dialects.names import Pair
from opsctl.dialects.postgresql import PostgreSQL
from opsctl.errors import OpsctlError
from opsctl.sqlfiles import load_schema_file, rename, split_statements

V1 = "V1__tracked_execution.sql"
DIALECTS: list[AnyDialect] = [MySQL(), MariaDB(), PostgreSQL()]
backticks = MySQL().quote


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_v1_has_both_tables_each_created_first_in_its_section(dialect: AnyDialect) -> None:
    sections = load_schema_file(dialect.name, V1).sections
    assert list(sections) == ["executions", "attempts"]
    postgresql = dialect.name == "postgresql"
    assert [len(statements) for statements in sections.values()] == ([5, 2] if postgresql else [1, 1])
    assert sections["executions"][0].startswith("CREATE TABLE onestep_executions (")
    assert sections["attempts"][0].startswith("CREATE TABLE onestep_execution_attempts (")
    for statement in (statement for statements in sections.values() for statement in statements):
        assert not re.search(r"--|;|/\*|\bBEGIN\b|\bCOMMIT\b", statement)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_v1_renamed_for_a_pair_holds_every_new_name_and_no_old_one(dialect: AnyDialect) -> None:
    names = dialect.derived_names(Pair("order", "select"))
    file = load_schema_file(dialect.name, V1).renamed(names, dialect.quote)
    text = "\n".join(statement for statements in file.sections.values() for statement in statements)
    # CHECK names of PostgreSQL are fixed, and are no names of the default pair's tables
    assert not re.search(r"onestep_(executions|execution_attempts)", text)
    for name in names.values():
        assert dialect.quote(name) in text
    assert f"REFERENCES {dialect.quote('order')} (" in text
    assert "'queued', 'running', 'retrying'" in text


def test_a_missing_file_is_a_damaged_installation() -> None:
    with pytest.raises(OpsctlError, match="V9__none"):
        load_schema_file("mysql", "V9__none.sql")


@pytest.mark.parametrize(
    ("statement", "renamed"),
    [
        ("SELECT a FROM a", "SELECT `b` FROM `b`"),
        ("SELECT a.x, `a`.`x` FROM a, b", "SELECT `b`.x, `b`.`x` FROM `b`, `a`"),  # swapped, not merged
        ('SELECT "a".`b`', 'SELECT "a".`a`'),  # "…" is text on MySQL
        ("SELECT 'a', 'it''s a', a", "SELECT 'a', 'it''s a', `b`"),
        ("SELECT a -- of a, don't\n, a", "SELECT `b` -- of a, don't\n, `b`"),
        ("SELECT /* a's */ a /* b */", "SELECT /* a's */ `b` /* b */"),
        ("SELECT aa, a_b, a1, xa, $a, A", "SELECT aa, a_b, a1, xa, $`b`, A"),
        ("SELECT `a``b`, `x a`", "SELECT `a``b`, `x a`"),
        ("SELECT old", "SELECT `order`"),
    ],
)
def test_rename(statement: str, renamed: str) -> None:
    assert rename(statement, {"a": "b", "b": "a", "old": "order"}, backticks, "mysql") == renamed


@given(
    st.lists(st.sampled_from(["a", "b", "'a'", "-- a\n", "/* b */", "`a`", "(", ",", ".", " ", "x", "'"]), max_size=20)
)
def test_renaming_back_gives_what_was(parts: list[str]) -> None:
    statement = " ".join(parts)
    there = rename(statement, {"a": "new_a", "b": "new_b"}, lambda name: name, "mysql")
    back = rename(there, {"new_a": "a", "new_b": "b"}, lambda name: name, "mysql")
    assert back == rename(statement, {"a": "c", "b": "d"}, lambda name: {"c": "a", "d": "b"}[name], "mysql")
    assert rename(statement, {}, backticks, "mysql") == statement


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("", []),
        (" ;; \n;", []),
        ("A; B", ["A", "B"]),
        ("A;\nB;\n", ["A", "B"]),
        ("A ';' \";\";B", ["A ';' \";\"", "B"]),
        ("DO $x$ a; $y$ b; $x$; $$;$$", ["DO $x$ a; $y$ b; $x$", "$$;$$"]),
        ("E'\\';'; '\\'; B", ["E'\\';'", "'\\'", "B"]),
        ("A 'it''s; x' ;B", ["A 'it''s; x'", "B"]),
        ("A -- one; two\nB; C /* ; */ D", ["A \nB", "C   D"]),
        ("-- only a comment;\n", []),
        ("A -- at the end", ["A"]),
    ],
)
def test_split_statements(text: str, statements: list[str]) -> None:
    assert split_statements(text, "postgresql") == statements


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("A `;`; 5--3; B # one; two\n; C", ["A `;`", "5--3", "B", "C"]),
        ("A '\\';'; \"\\\";\" B", ["A '\\';'", '"\\";" B']),
        ("SELECT /*+ hint; */ 1 /* ; */", ["SELECT /*+ hint; */ 1"]),
    ],
)
def test_split_statements_of_mysql(text: str, statements: list[str]) -> None:
    assert split_statements(text, "mysql") == statements


@given(st.text(alphabet="ab;'`\"-/*\n ", max_size=40))
def test_splitting_never_fails_and_drops_only_comments(text: str) -> None:
    statements = split_statements(text, "postgresql")
    assert all(statement == statement.strip() != "" for statement in statements)
    if "--" not in text and "/*" not in text:
        assert re.sub(r"[;\s]", "", "".join(statements)) == re.sub(r"[;\s]", "", text)
