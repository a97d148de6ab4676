"""Grant files, the scripts made of them, and accounts as people write them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsctl.dialects.accounts import Account, parse_account
from opsctl.dialects.names import Pair
from opsctl.errors import UsageError
from opsctl.ops.grants import DIALECTS, ROLES, Place, grant_script
from opsctl.resources import find_resource
from opsctl.sqlfiles import family_of, read_sections, split_statements

MYSQL, MARIADB, POSTGRESQL = DIALECTS["mysql"], DIALECTS["mariadb"], DIALECTS["postgresql"]


def statements(dialect: str, role: str) -> list[str]:
    text = read_sections(find_resource("sql") / dialect / "grants" / f"{role}.sql")["rights"]
    return [re.sub(r"\s+", " ", statement) for statement in split_statements(text, family_of(dialect))]


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_file_says_what_it_is_and_grants_to_its_own_role_only(dialect: str, role: str) -> None:
    text = (find_resource("sql") / dialect / "grants" / f"{role}.sql").read_text(encoding="utf-8")
    header = text.partition("\n\n")[0]
    assert header.startswith(f"-- {role}: ")
    assert "Left out on purpose" in header
    assert f"GRANT onestep_{role} TO" in header
    assert text.isascii(), "the clients read it in whatever encoding their locale says"
    assert set(re.findall(r"onestep_(?:runtime|migration|monitor|operator)\b", text)) == {f"onestep_{role}"}
    assert all(f" TO onestep_{role}" in s for s in statements(dialect, role) if s.startswith("GRANT "))


def test_mariadb_is_given_what_mysql_is_but_for_what_it_has_not() -> None:
    only_mysql = {role: set(statements("mysql", role)) ^ set(statements("mariadb", role)) for role in ROLES}
    assert all("performance_schema" in statement for statement in only_mysql.pop("monitor"))
    assert not any(only_mysql.values())


@pytest.mark.parametrize(
    ("text", "account", "quoted"),
    [
        ("app", Account("app"), "`app`"),
        ("app@%", Account("app", "%"), "`app`@`%`"),
        ("app@10.0.0.0/255.0.0.0", Account("app", "10.0.0.0/255.0.0.0"), "`app`@`10.0.0.0/255.0.0.0`"),
        ("'app'@'%'", Account("app", "%"), "`app`@`%`"),
        ("'app'@localhost", Account("app", "localhost"), "`app`@`localhost`"),
        ("app@'::1'", Account("app", "::1"), "`app`@`::1`"),
        ('"app"@`%`', Account("app", "%"), "`app`@`%`"),
        ("'a@b'@'c'", Account("a@b", "c"), "`a@b`@`c`"),
        ("'a@b'", Account("a@b"), "`a@b`"),
        ("a@'b@c'", Account("a", "b@c"), "`a`@`b@c`"),
        ("'o''brien'", Account("o'brien"), "`o'brien`"),
        ("o'brien@h", Account("o'brien", "h"), "`o'brien`@`h`"),
        ("a`b", Account("a`b"), "`a``b`"),
        ("a\\'b", Account("a\\'b"), "`a\\'b`"),
        ("select", Account("select"), "`select`"),
        (" x y", Account(" x y"), "` x y`"),
        ("名前", Account("名前"), "`名前`"),
        ("u" * 32 + "@" + "h" * 255, Account("u" * 32, "h" * 255), f"`{'u' * 32}`@`{'h' * 255}`"),
        ("public@%", Account("public", "%"), "`public`@`%`"),
    ],
)
def test_account_of_mysql_and_mariadb(text: str, account: Account, quoted: str) -> None:
    for dialect in (MYSQL, MARIADB):
        assert parse_account(text, dialect) == account
        assert account.quoted(dialect) == quoted


@pytest.mark.parametrize(
    "text", ["app", "app@%", "'a'@'b'", 'a"b', "a\\b", "PUBLIC", "select", "é" * 31, "a" * 63, " ", "🚀"]
)
def test_account_of_postgresql_is_what_it_says(text: str) -> None:
    assert parse_account(text, POSTGRESQL) == Account(text)
    assert Account('a"b').quoted(POSTGRESQL) == '"a""b"'


@given(
    st.text(
        st.characters(codec="utf-8", exclude_categories=("Cc", "Cs"), max_codepoint=0xFFFF), min_size=1, max_size=20
    )
)
def test_every_account_in_quotes_is_read_back(name: str) -> None:
    for quote in "'\"`":
        text = quote + name.replace(quote, quote * 2) + quote
        assert parse_account(f"{text}@{text}", MARIADB) == Account(name, name)


@pytest.mark.parametrize(
    ("dialects", "text", "word"),
    [
        ("all", "", "empty"),
        ("all", "a\0b", "NUL"),
        ("all", "a\nb", "line break"),
        ("all", "a\x1bb", "U+001B"),
        ("all", "a\udcffb", "UTF-8"),
        ("mysql mariadb", "@%", "name is empty"),
        ("mysql mariadb", "''@'%'", "name is empty"),
        ("mysql mariadb", "a@", "host is empty"),
        ("mysql mariadb", "'a'@''", "host is empty"),
        ("mysql mariadb", "'a", "not closed"),
        ("mysql mariadb", "a@'h", "not closed"),
        ("mysql mariadb", "'a'b", "no host"),
        ("mysql mariadb", "'a'@'b'c", "behind the host"),
        ("mysql mariadb", "a@b@c", "more than one @"),
        ("mysql mariadb", "a🚀", "🚀"),
        ("mysql mariadb", "a@" + "h" * 256, "255"),
        ("mysql", "a" * 33, "32"),
        ("mysql", "a ", "space"),
        ("mysql", "' '@'%'", "space"),
        ("mariadb", "a" * 129, "128"),
        ("mariadb", "Public", "everybody"),
        ("mariadb", "none", "no role"),
        ("postgresql", "public", "everybody"),
        ("postgresql", "none", "no role"),
        ("postgresql", "é" * 32, "64 bytes"),
    ],
)
def test_account_that_would_be_another_is_refused(dialects: str, text: str, word: str) -> None:
    for name in DIALECTS if dialects == "all" else dialects.split():
        with pytest.raises(UsageError) as error:
            parse_account(text, DIALECTS[name])
        assert word in error.value.message
        assert error.value.hint


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_script_holds_the_new_names_and_no_old_one(dialect: str, role: str) -> None:
    script = grant_script(DIALECTS[dialect], role, Account("app"), Pair("Jobs", "Job_tries"), Place("d", ("s", "s")))
    assert not re.search(r"onestep_|:schemas|DBNAME|\\gset.*schemas|^-- @", script, re.MULTILINE)
    quote = DIALECTS[dialect].quote
    assert f"TO {quote('app')}" in script
    if role != "migration" or dialect != "postgresql":
        assert {quote("Jobs"), quote("Job_tries")} <= set(re.findall(r"[`\"]\w+[`\"]", script))


def test_what_is_put_in_is_not_renamed_again() -> None:
    odd = 'a:schemas :"DBNAME" onestep_executions'
    place = Place("onestep_runtime", ("onestep_executions", "onestep_runtime"))
    script = grant_script(POSTGRESQL, "runtime", Account(odd), Pair("onestep_runtime", "onestep_executions"), place)
    grants = re.findall(r"^GRANT .*$", script, re.MULTILINE)
    to = ' TO "a:schemas :""DBNAME"" onestep_executions";'
    assert grants == [
        f'GRANT SELECT, INSERT, UPDATE ON "onestep_executions"."onestep_runtime"{to}',
        f'GRANT SELECT, INSERT, UPDATE ON "onestep_runtime"."onestep_executions"{to}',
        f'GRANT CONNECT ON DATABASE "onestep_runtime"{to}',
        f'GRANT USAGE ON SCHEMA "onestep_executions", "onestep_runtime"{to}',
    ]


def test_names_that_no_table_can_have_are_refused() -> None:
    for pair in (Pair("a b", "c"), Pair("a", "A"), Pair("a" * 65, "b")):
        with pytest.raises(UsageError):
            grant_script(MYSQL, "runtime", Account("app"), pair, Place())


@pytest.mark.parametrize("dialect", DIALECTS)
def test_script_is_utf8_in_every_locale(dialect: str, cli: Callable[..., Any]) -> None:
    arguments = ("grants", "sql", "--role", "runtime", "--to", "名前", "--dialect", dialect)
    answer = cli(*arguments, env={"PYTHONIOENCODING": "ascii"})
    assert (answer.code, answer.err) == (0, "")
    assert DIALECTS[dialect].quote("名前") in answer.out
    assert "utf8" in answer.out.lower()


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("--dialect", "mysql", "--dsn", "mysql://h/d"), "--dsn"),
        (("--dialect", "mysql", "--schema", "s"), "--schema"),
        (("--dialect", "postgresql", "--executions-table", "a b"), "a b"),
        ((), "no database is named"),
    ],
)
def test_contradictions_are_refused(arguments: tuple[str, ...], word: str, cli: Callable[..., Any]) -> None:
    answer = cli("grants", "sql", "--role", "runtime", "--to", "app", *arguments)
    assert (answer.code, answer.out, word in answer.err) == (2, "", True), answer.err


def test_names_come_from_the_target(cli: Callable[..., Any], tmp_path: Any) -> None:
    file = tmp_path / "opsctl.toml"
    file.write_text('[targets.prod]\ndsn = "mysql://h/d"\nexecutions_table = "Jobs"\nattempts_table = "Tries"\n')
    answer = cli("grants", "sql", "--role", "operator", "--to", "ops", "--dialect", "mysql", "--target", "prod")
    assert (answer.code, "ON `Jobs` TO `ops`" in answer.out) == (0, True), answer.err
