"""Queries as files: headers, parameters, folders of one's own, and what is said of a file that cannot be run."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import assume, given
from hypothesis import strategies as st

from opsctl.errors import UsageError
from opsctl.queryfiles import SEARCH, Query, binds_of, escape_colons, find_query, load_catalogue, load_query
from opsctl.resources import find_resource

HEADER = """\
-- recent-failures: what failed, by kind of error
--
-- Free text:
-- when to use it.
--
-- @param since duration = 1d: how far back
-- @param task text: only this task
-- @index ix_onestep_executions_list
-- @cost reads what was
-- @cost created since then
-- @right PROCESS
-- @json error, result
-- @id execution_id
-- @limit 7
"""
BODY = """\
SELECT 1 FROM t -- no prose, not @param either
-- nor this
WHERE c >= :since
  -- @if task: AND task = :task
LIMIT :limit
"""


def load(tmp_path: Path, text: str | bytes, dialect: str = "postgresql", name: str = "recent-failures.sql") -> Query:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_query(path, dialect, own=True)


def bound(tmp_path: Path, text: str, dialect: str = "postgresql", **values: str) -> tuple[str, dict[str, Any]]:
    query = load(tmp_path, text, dialect)
    assert query.problem == ""
    return query.bind(values)


@pytest.mark.parametrize("change", [str, lambda text: text.replace("\n", "\r\n"), lambda text: f"\ufeff{text}"])
def test_header(change: Any, tmp_path: Path) -> None:
    query = load(tmp_path, change(HEADER + BODY))
    assert query.problem == ""
    assert (query.title, query.text) == ("what failed, by kind of error", "Free text:\nwhen to use it.")
    assert [(p.name, p.type, p.default, p.required, p.purpose) for p in query.params] == [
        ("since", "duration", "1d", False, "how far back"),
        ("task", "text", None, False, "only this task"),
    ]
    assert (query.index, query.cost) == ("ix_onestep_executions_list", "reads what was created since then")
    assert (query.right, query.limit, query.own) == ("PROCESS", 7, True)
    assert (query.json, query.ids) == ({"error", "result"}, {"execution_id"})


def test_conditions_stand_only_with_their_parameter(tmp_path: Path) -> None:
    assert bound(tmp_path, HEADER + BODY)[0].split() == "SELECT 1 FROM t WHERE c >= :since LIMIT :limit".split()
    statement, values = bound(tmp_path, HEADER + BODY, task="a:b", since="2h")
    assert "  AND task = :task\n" in statement
    assert values == {"since": 7200.0, "task": "a:b"}


def test_colons_in_a_header_s_values(tmp_path: Path) -> None:
    text = "-- @param at timestamp = 2026-01-01T12:30:00: from: then\nSELECT :at"
    assert load(tmp_path, text).params[0].purpose == "from: then"
    assert bound(tmp_path, text, "mysql")[1] == {"at": datetime(2026, 1, 1, 12, 30)}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"-- caf\xe9\nSELECT 1", "not UTF-8"),
        ("SELECT 1".encode("utf-16"), "not UTF-8"),
        ("", "no statement"),
        ("-- only words\n;\n", "no statement"),
        ("-- @param a text: x\n-- @if a: SELECT :a", "no statement"),
        ("SELECT 1; SELECT 2", "2 statements"),
        ("-- @param a text: x\nSELECT 1\n-- @if a: ; SELECT :a", "2 statements"),
        ("DELETE FROM t", "begins with 'DELETE'"),
        ("update t set a = 1", "begins with 'update'"),
        ("CREATE TABLE t (a int)", "begins with 'CREATE'"),
        ("EXPLAIN ANALYZE SELECT 1", "begins with 'EXPLAIN'"),
        ("(((INSERT INTO t VALUES (1))))", "a query reads"),
        ("$$SELECT$$", "begins with"),
        ("WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x", "DELETE FROM"),
        ("WITH x AS (INSERT INTO t VALUES (1) RETURNING *) SELECT * FROM x", "INTO"),
        ("SELECT * INTO copy FROM t", "INTO"),
        ("SELECT * FROM t FOR NO KEY UPDATE", "FOR NO KEY UPDATE"),
        ("SELECT * FROM t for\n share", "for share"),
        ("SELECT setval('s', 1)", "setval"),
        ("SELECT pg_catalog.Pg_Terminate_Backend (1)", "Pg_Terminate_Backend"),
        ("SELECT set_config('default_transaction_read_only', 'off', false)", "set_config"),
        ("-- @parm a text: x\nSELECT 1", "line 1: unknown @parm; was param meant?"),
        ("SELECT 1\n--  @iff a: b", "line 2: unknown @iff; was if meant?"),
        ("-- @zzzzz\nSELECT 1", r"unknown @zzzzz$"),
        ("-- @param a text: x\nSELECT :a\n-- @if a AND b", "line 3: write -- @if NAME:"),
        ("-- @param name text: x\nSELECT :nmae, :name", "uses :nmae without .*; was name meant?"),
        ("-- @param name text: x\nSELECT :name\n-- @if nam: , 1", "@if nam: .*; was name meant?"),
        ("SELECT 1\n-- @if limit: , 1", "@if limit: there is no"),
        ("-- @param a text: x\nSELECT 1", "nothing in the SQL uses :a"),
        ("-- @param a text\nSELECT :a", "write @param NAME TYPE"),
        ("-- @param A text: x\nSELECT :A", "write @param NAME TYPE"),
        ("-- @param a txt: x\nSELECT :a", "unknown type txt; known are text, int"),
        ("-- @param a duration = soon: x\nSELECT :a", "default 'soon' is no duration"),
        ("-- @param a int! = 3: x\nSELECT :a", "take the ! out"),
        ("-- @param a int: x\n-- @param a int: x\nSELECT :a", "there is one of that name"),
        ("-- @param limit int: x\nSELECT :limit", "there is one of that name"),
        ("-- @limit 0\nSELECT 1", "@limit 0: this is no number"),
        ("-- @limit 1000001\nSELECT 1", "no number of rows from 1 to 1000000"),
        ("-- @limit ²\nSELECT 1", "no number"),
        ("-- @limit many\nSELECT 1", "no number"),
    ],
)
def test_a_broken_file_says_so_and_hides_no_other(text: str | bytes, problem: str, tmp_path: Path) -> None:
    (tmp_path / "good.sql").write_text("SELECT 1")
    assert re.search(problem, load(tmp_path, text).problem)
    catalogue = load_catalogue("postgresql", [str(tmp_path)])
    assert catalogue["good"].problem == ""
    assert {"attempts", "status-counts"} < catalogue.keys()
    with pytest.raises(UsageError, match=f"recent-failures.sql: .*{problem}"):
        find_query(catalogue, "recent-failures")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("SELECT * FROM t INTO OUTFILE '/tmp/x'", "INTO"),
        ("SELECT 1 /*!50000 INTO OUTFILE '/tmp/x' */", "comment /\\*! that the server executes"),
        ("SELECT GET_LOCK('a', 1)", "GET_LOCK"),
        ("SELECT * FROM t LOCK IN SHARE MODE", "LOCK IN SHARE MODE"),
        ("SELECT 'a\\'; DROP TABLE t; -- '; DROP TABLE t", "2 statements"),
        ("SELECT 1 # ; one\n; SELECT 2", "2 statements"),
    ],
)
def test_a_broken_file_of_mysql(text: str, problem: str, tmp_path: Path) -> None:
    assert re.search(problem, load(tmp_path, text, "mysql").problem)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 'DELETE FROM t; INSERT INTO t', \"into\" FROM t -- FOR UPDATE",
        "(SELECT 1) UNION ALL (SELECT 2);",
        "TABLE t",
        "SHOW ALL",
        "VALUES (1)",
        "WITH x AS (SELECT 1) SELECT substring('abc' FOR 2), setval, nextval FROM x",
        "SELECT count(*) FROM pg_replication_slots, for_share, update",
        "/* SELECT\n; */ SELECT 1",
    ],
)
def test_what_only_looks_dangerous_is_fine(text: str, tmp_path: Path) -> None:
    assert load(tmp_path, text).problem == ""


@pytest.mark.parametrize("name", ["Upper.sql", "two words.sql", "dotted.name.sql", "-dash.sql"])
def test_a_bad_name(name: str, tmp_path: Path) -> None:
    assert "its name is no query's" in load(tmp_path, "SELECT 1", name=name).problem


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "folder.sql").mkdir()
    (tmp_path / "nowhere.sql").symlink_to(tmp_path / "gone")
    (tmp_path / ".#editor.sql").symlink_to("somebody@somewhere:1")
    found = load_catalogue("mysql", [str(tmp_path)])
    assert "cannot be read: Is a directory" in found["folder"].problem
    assert "cannot be read: No such file" in found["nowhere"].problem
    assert ".#editor" not in found


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("postgresql", "SELECT ':a', \":b\", E'\\':c', $$:d$$, $x$ :e $$ $x$, 1::int, x[1:2], :real::text -- :f"),
        ("mysql", "SELECT ':a', `:b`, '\\':c', \"\\\":d\", @v := 1, :real /* :e */ # :f"),
        ("mysql", "SELECT '12:30', 'a\\:b', '%d ? %(x)s', 5 % 2, :real"),
        ("postgresql", "SELECT payload ? 'a', payload ?| array['%s'], 5 % 2, :real, '50%' LIKE '5%'"),
    ],
)
def test_only_binds_are_binds(dialect: str, text: str, tmp_path: Path) -> None:
    """What SQLAlchemy hands to the driver is the text of the file, but for the binds."""
    statement, values = bound(tmp_path, f"-- @param real int!: x\n{text}", dialect, real="3")
    family = load(tmp_path, "SELECT 1", dialect).family
    assert binds_of(statement, family) == ["real"]
    assert values == {"real": 3}
    compiled = str(sa.text(escape_colons(statement, family)))
    assert compiled == statement


@given(st.text(alphabet="ab:'\"\\ $`@?%[]-\n", max_size=30), st.sampled_from(["mysql", "postgresql"]))
def test_escaping_colons_loses_nothing(text: str, family: str) -> None:
    assume("\\:" not in text)  # outside of a literal, where no server knows it, SQLAlchemy does
    assert str(sa.text(escape_colons(text, family)).compile()) == text


# -- parameters ------------------------------------------------------------------------------------------------------

ID = "0f8fad5b-d9cb-469f-a165-70867728950e"


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("text", "", ""),
        ("text", " a'b;% ", " a'b;% "),
        ("int", "-3", -3),
        ("number", "1e3", 1000.0),
        ("duration", "90s", 90.0),
        ("duration", "90", 90.0),
        ("duration", "1.5h", 5400.0),
        ("duration", " 2 min ", 120.0),
        ("duration", "250ms", 0.25),
        ("duration", "2w", 1209600.0),
        ("duration", "36500d", 3153600000.0),
        ("timestamp", "2026-11-30T12:00:00+02:00", datetime(2026, 11, 30, 10, tzinfo=UTC)),
        ("timestamp", "2026-11-30T12:00:00Z", datetime(2026, 11, 30, 12, tzinfo=UTC)),
        ("timestamp", "2026-11-30 12:00", datetime(2026, 11, 30, 12, tzinfo=UTC)),
        ("timestamp", "2026-11-30", datetime(2026, 11, 30, tzinfo=UTC)),
        ("uuid", ID, ID),
        ("uuid", ID.upper(), ID),
        ("uuid", ID.replace("-", ""), ID),
        ("uuid", f" {{{ID}}} ", ID),
    ],
)
def test_values(kind: str, text: str, value: Any, tmp_path: Path) -> None:
    query = f"-- @param x {kind}: y\nSELECT :x"
    assert bound(tmp_path, query, x=text)[1] == {"x": value}
    on_mysql = bound(tmp_path, query, "mysql", x=text)[1]["x"]
    assert (
        on_mysql
        == {"uuid": lambda: value.replace("-", ""), "timestamp": lambda: value.replace(tzinfo=None)}.get(
            kind, lambda: value
        )()
    )


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        ("text", ["a\0b"]),
        ("int", ["", "1.5", "x", str(2**63), "9" * 5000]),
        ("number", ["nan", "inf", "1e999", "one"]),
        ("duration", ["", "-1s", "1 year", "1s2s", "999999d", "9" * 400, "1h30m"]),
        ("timestamp", ["", "soon", "2026-13-01", "0001-01-01T00:00:00+10:00", "99999-01-01"]),
        ("uuid", ["", "1234", ID[:-1], ID + "0", "z" * 32]),
    ],
)
def test_values_that_are_none(kind: str, texts: list[str], tmp_path: Path) -> None:
    query = load(tmp_path, f"-- @param x {kind}: y\nSELECT :x")
    for text in texts:
        with pytest.raises(UsageError, match=f"this is no {kind}") as caught:
            query.bind({"x": text})
        assert caught.value.hint.startswith("write it as")


def test_parameters_that_are_missing_or_unknown(tmp_path: Path) -> None:
    query = load(tmp_path, "-- @param id uuid!: the one\n-- @param task text: y\nSELECT :id\n-- @if task: , :task")
    with pytest.raises(UsageError, match="recent-failures needs id: the one") as caught:
        query.bind({})
    assert caught.value.hint.startswith("give -p id=0f8fad5b")
    with pytest.raises(UsageError, match="no parameter 'tusk'") as caught:
        query.bind({"id": ID, "tusk": "a"})
    assert caught.value.hint == "it takes id, task; was task meant?"
    with pytest.raises(UsageError) as caught:
        load(tmp_path, "SELECT 1").bind({"a": "b"})
    assert caught.value.hint == "it takes none"


# -- folders ---------------------------------------------------------------------------------------------------------


def test_own_folders_come_first(tmp_path: Path) -> None:
    for name in ("one/attempts", "one/mysql/mine", "one/mine", "one/mariadb/maria", "two/mine", "two/other"):
        path = tmp_path / f"{name}.sql"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"-- {name}\nSELECT 1")
    directories = [str(tmp_path / "one"), str(tmp_path / "two")]
    titles = {
        dialect: {name: query.title for name, query in load_catalogue(dialect, directories).items() if query.own}
        for dialect in SEARCH
    }
    mysql = {"attempts": "one/attempts", "mine": "one/mysql/mine", "other": "two/other"}
    assert titles["mysql"] == mysql
    assert titles["mariadb"] == {**mysql, "maria": "one/mariadb/maria"}
    assert titles["postgresql"] == {**mysql, "mine": "one/mine"}


@pytest.mark.parametrize("directory", ["missing", "file.sql", "~nobody-of-that-name/queries"])
def test_a_folder_that_cannot_be_read(directory: str, tmp_path: Path) -> None:
    (tmp_path / "file.sql").write_text("SELECT 1")
    path = directory if directory.startswith("~") else str(tmp_path / directory)
    with pytest.raises(UsageError, match=r"query directory .* cannot be read: No"):
        load_catalogue("mysql", [path])


def test_names_by_their_beginning() -> None:
    catalogue = {name: Query(name, Path(name), "mysql") for name in ("locks", "lock", "workers", "work-left")}
    assert find_query(catalogue, "lock").name == "lock"
    assert find_query(catalogue, "worke").name == "workers"
    for name, hint in (("work", "was workers or work-left meant?"), ("lokcs", "was lock"), ("zzzz", "opsctl query li")):
        with pytest.raises(UsageError, match=f"no query '{name}'") as caught:
            find_query(catalogue, name)
        assert caught.value.hint.startswith(hint)
    with pytest.raises(UsageError):
        find_query(catalogue, "")


# -- the files that come with opsctl -----------------------------------------------------------------------------------

CATALOGUES = {dialect: load_catalogue(dialect) for dialect in SEARCH}
NAMES = (
    "attempts cancel-lingering cleaning expired-leases idempotency-duplicates inconsistencies index-sizes"
    " largest-rows locks oldest-queued overdue-queued poison recent-failures retry-storm sizes status-counts"
    " stuck-running transactions undecodable-errors workers"
).split()


@pytest.mark.parametrize("dialect", SEARCH)
def test_every_file_is_whole(dialect: str) -> None:
    files = {path.stem for name in SEARCH[dialect] for path in find_resource("sql").glob(f"{name}/queries/*.sql")}
    assert files == CATALOGUES[dialect].keys() >= set(NAMES)
    for query in CATALOGUES[dialect].values():
        assert query.problem == "", query.path
        assert query.body.startswith(f"-- {query.name}: "), query.path
        assert query.title, query.path
        assert query.index, f"{query.path}: no @index"
        assert query.cost, f"{query.path}: no @cost"
        assert "\t" not in query.body, query.path
        assert max(map(len, query.body.splitlines())) <= 120, query.path
        assert ":limit" in query.body or not query.body.rstrip().endswith(";"), query.path


@pytest.mark.parametrize("name", NAMES)
def test_parameters_are_the_same_everywhere(name: str) -> None:
    """Columns and their order too, but that needs a server: tests/conformance/test_queries.py."""
    queries = [CATALOGUES[dialect][name] for dialect in SEARCH]
    for query in queries[1:]:
        assert query.title == queries[0].title
        assert query.params == queries[0].params
        assert query.limit == queries[0].limit
        assert query.ids == queries[0].ids
