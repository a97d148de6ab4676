"""Values of every type, from a real table through `query run` into every format and back; and a terminal that looks on."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from expected_rows import JSONS, TEXTS, check_written
from pairs import Opsctl, create_pair
from processes import clean_environment
from readers import read_csv, read_json, read_table, read_yaml
from servers import Database
from terminals import CTRL_C, Terminal

from opsctl.rows import Json, Rows

FORMATS = ("table", "json", "yaml", "csv", "vertical")
OPSCTL = Path(sys.executable).parent / "opsctl"
TEXT_ID = UUID("0f8fad5b-d9cb-469f-a165-70867728950e")

#: Type, a value as the server's SQL has it, and the value in Rows. The second row holds NULL throughout.
POSTGRESQL: list[tuple[str, str, Any]] = [
    ("boolean", "true", True),
    ("smallint", "-32768", -32768),
    ("bigint", "9223372036854775807", 2**63 - 1),
    (
        "numeric",
        "1180591620717411303424.000000000000000000010",
        Decimal("1180591620717411303424.000000000000000000010"),
    ),
    ("numeric", "'NaN'", Decimal("NaN")),
    ("numeric", "1e400", Decimal("1" + "0" * 400)),
    ("real", "0.1", 0.1),
    ("double precision", "1e-300", 1e-300),
    ("double precision", "'-Infinity'", float("-inf")),
    ("double precision", "'NaN'", float("nan")),
    ("bytea", r"'\x00ff5c0a'", b"\x00\xff\\\n"),
    ("bytea", "''", b""),
    ("char(4)", "'ab'", "ab  "),
    ("name", "'a name'", "a name"),
    ("uuid", f"'{TEXT_ID}'", TEXT_ID),
    ("timestamptz", "'2026-11-30 13:00:00.123456+01'", datetime(2026, 11, 30, 12, 0, 0, 123456, tzinfo=UTC)),
    ("timestamptz", "'infinity'", "infinity"),
    ("timestamptz", "'-infinity'", "-infinity"),
    ("timestamptz", "'20000-01-01 00:00+00'", "20000-01-01 00:00:00+00"),
    ("timestamptz", "'0044-03-15 12:00+00 BC'", "0044-03-15 12:00:00+00 BC"),
    ("timestamp", "'2026-11-30 12:00'", datetime(2026, 11, 30, 12)),
    ("timestamp", "'infinity'", "infinity"),
    ("date", "'2026-11-30'", "2026-11-30"),
    ("date", "'infinity'", "infinity"),
    ("time", "'24:00'", "24:00:00"),
    ("timetz", "'12:00+05:30'", "12:00:00+05:30"),
    ("interval", "'1 year 2 mons 3 days 04:05:06.789'", "1 year 2 mons 3 days 04:05:06.789"),
    ("interval", "'-1 day +02:00'", "-1 days +02:00:00"),
    ("bit(5)", "B'10110'", "10110"),
    ("inet", "'192.168.0.1/24'", "192.168.0.1/24"),
    ("macaddr", "'08:00:2b:01:02:03'", "08:00:2b:01:02:03"),
    ("int4range", "'[1,5)'", "[1,5)"),
    ("tstzrange", "'[2026-01-01 00:00+00,)'", '["2026-01-01 00:00:00+00",)'),
    ("numrange", "'(,1.50]'", "(,1.50]"),
    ("point", "'(1,2)'", "(1,2)"),
    ("xml", "'<a b=\"c\"/>'", '<a b="c"/>'),
    ("tsvector", "'a b'", "'a' 'b'"),
    ("regclass", "'pg_class'", "pg_class"),
    ("pg_lsn", "'0/16B3748'", "0/16B3748"),
    ("oid", "4294967295", 2**32 - 1),
    ("mood", "'so so'", "so so"),
]
#: What CSV of opsctl's is JSON for, and not PostgreSQL's own text.
POSTGRESQL_ARRAYS: list[tuple[str, str, Any]] = [
    ("int[]", "'{{1,NULL},{3,4}}'", [[1, None], [3, 4]]),
    ("text[]", "ARRAY['', 'NULL', NULL, E'a\"\\n\\x1b', '日本']", ["", "NULL", None, 'a"\n\x1b', "日本"]),
    ("text[]", "'{}'", []),
    ("numeric[]", "'{1.50,NaN}'", [Decimal("1.50"), Decimal("NaN")]),
    ("date[]", "'{2026-11-30,infinity}'", ["2026-11-30", "infinity"]),
    ("timestamptz[]", "'{infinity,2026-11-30 12:00+00}'", ["infinity", datetime(2026, 11, 30, 12, tzinfo=UTC)]),
    ("interval[]", "'{1 mon}'", ["1 mon"]),
    ("jsonb[]", """ARRAY['{"a": 1.50}', 'null', NULL]::jsonb[]""", [Json('{"a": 1.50}'), Json("null"), None]),
    ("uuid[]", f"'{{{TEXT_ID}}}'", [TEXT_ID]),
    ("boolean[]", "'{t,f}'", [True, False]),
]
MYSQL: list[tuple[str, str, Any]] = [
    ("boolean", "true", 1),
    ("tinyint unsigned", "255", 255),
    ("bigint unsigned", "18446744073709551615", 2**64 - 1),
    ("bigint", "-9223372036854775808", -(2**63)),
    ("decimal(65,30)", "12345678901234567890123456789012345.000000000000000000000000000010", Decimal("12345678901234567890123456789012345.000000000000000000000000000010")),
    ("double", "1e-300", 1e-300),
    ("double", "0.1", 0.1),
    ("float", "0.1", 0.1),
    ("bit(9)", "b'101000001'", b"\x01\x41"),
    ("binary(3)", "x'00ff'", b"\x00\xff\x00"),
    ("varbinary(9)", "''", b""),
    ("blob", "x'005c0a1b'", b"\x00\\\n\x1b"),
    ("char(4)", "'ab'", "ab"),
    ("varchar(9) CHARACTER SET latin1", "'naïve'", "naïve"),
    ("enum('so so','good')", "'so so'", "so so"),
    ("set('a','b')", "'a,b'", "a,b"),
    ("year", "2026", 2026),
    ("date", "'2026-11-30'", "2026-11-30"),
    ("date", "'0000-00-00'", "0000-00-00"),
    ("date", "'2026-00-00'", "2026-00-00"),
    ("datetime(6)", "'2026-11-30 12:00:00.123456'", datetime(2026, 11, 30, 12, 0, 0, 123456, tzinfo=UTC)),
    ("datetime", "'9999-12-31 23:59:59'", datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)),
    ("datetime", "'0000-00-00 00:00:00'", "0000-00-00 00:00:00"),
    ("timestamp(6) NULL", "'2026-11-30 12:00:00'", datetime(2026, 11, 30, 12, tzinfo=UTC)),
    ("time", "'-838:59:59'", "-838:59:59"),
    ("time(6)", "'-00:00:00.000001'", "-00:00:00.000001"),
    ("time(6)", "'26:03:04.5'", "26:03:04.500000"),
    ("geometry", "POINT(1, 2)", bytes.fromhex("000000000101000000000000000000f03f0000000000000040")),
]  # fmt: skip


@pytest.fixture
def look(database: Database, opsctl: Opsctl, tmp_path: Path) -> Callable[..., str]:
    """look(SQL, FORMAT): what `query run` writes for a query of one's own."""

    def run(sql: str, output: str, *, header: str = "", limit: int = 100, dsn: str = database.dsn) -> str:
        (tmp_path / "own.sql").write_text(f"-- own: mine\n{header}{sql}\n", encoding="utf-8")
        options = ("--query-dir", str(tmp_path), "--dsn", dsn, "--limit", str(limit), "-o", output)
        answer = opsctl("query", "run", "own", *options)
        assert (answer.code, answer.err) == (0, ""), answer
        return answer.out

    return run


def is_postgresql(database: Database) -> bool:
    return database.server.family == "postgresql"


def test_every_type_in_every_format(database: Database, look: Callable[..., str]) -> None:
    if is_postgresql(database):
        database.execute("CREATE TYPE mood AS ENUM ('so so', 'good')")
        values = POSTGRESQL + POSTGRESQL_ARRAYS
    else:
        values = MYSQL
        database.execute("SET sql_mode = ''", "SET time_zone = '+00:00'")
    names = [f"c{number}" for number in range(len(values))]
    columns = ", ".join(f"{name} {kind}" for name, (kind, *_) in zip(names, values, strict=True))
    database.execute(
        f"CREATE TABLE f (n int, {columns})",
        f"INSERT INTO f VALUES (1, {', '.join(sql for _, sql, _ in values)})",
        "INSERT INTO f (n) VALUES (2)",
    )
    rows = Rows(tuple(names), (tuple(wanted for *_, wanted in values), (None,) * len(values)))
    for output in FORMATS:
        check_written(look(f"SELECT {', '.join(names)} FROM f ORDER BY n", output), output, rows)


@pytest.mark.servers("postgresql")
def test_postgresql_reads_the_csv(database: Database, look: Callable[..., str]) -> None:
    """COPY takes it into a table of the same types, with what every text and JSON has in it, and it is the same table."""
    database.execute("CREATE TYPE mood AS ENUM ('so so', 'good')")
    names = [f"c{number}" for number in range(len(POSTGRESQL))]
    columns = ", ".join(f"{name} {kind}" for name, (kind, *_) in zip(names, POSTGRESQL, strict=True))
    database.execute(
        f"CREATE TABLE f (n int, {columns}, t text, j json, b jsonb)",
        f"INSERT INTO f VALUES (1, {', '.join(sql for _, sql, _ in POSTGRESQL)})",
    )
    one_line = [text for text in jsons(strict=False) if not re.search(r"[\t\r\n]|^ ", text)]  # others lose layout
    connection = database.connect()
    with connection.cursor() as cursor:
        cursor.executemany("INSERT INTO f (n, t) VALUES (%s, %s)", [*enumerate(texts(), 2), (1000, "x" * 2**20)])
        cursor.executemany("INSERT INTO f (n, j) VALUES (%s, %s)", list(enumerate(one_line, 2000)))
        written = look("SELECT * FROM f ORDER BY n", "csv", limit=10_000)
        cursor.execute("CREATE TABLE g (LIKE f)")
        with cursor.copy("COPY g FROM STDIN (FORMAT csv, HEADER)") as copy:
            for start in range(0, len(written), 1000):
                copy.write(written[start : start + 1000])
        for one, other in (("f", "g"), ("g", "f")):
            cursor.execute(f"SELECT {one}::text FROM {one} EXCEPT ALL SELECT {other}::text FROM {other}")
            assert cursor.fetchall() == []
        cursor.execute("SELECT count(*), (SELECT count(*) FROM g) FROM f")
        (both,) = cursor.fetchall()
    assert both[0] == both[1] > 100


def texts() -> list[str]:
    return [text for text in TEXTS if "\0" not in text]


def jsons(*, strict: bool) -> list[str]:
    """JSON as servers take it; `strict`: only what all of them do."""
    return [
        text for text in JSONS if not strict or (len(text) < 4000 and not re.search(r"(?i)\\ud800|\\u0000|e400", text))
    ]


def test_every_text(database: Database, look: Callable[..., str]) -> None:
    found = texts() if is_postgresql(database) else TEXTS
    kind = "text" if is_postgresql(database) else "longtext CHARACTER SET utf8mb4"
    database.execute(f"CREATE TABLE t (n int, v {kind})")
    with database.connect().cursor() as cursor:
        cursor.executemany("INSERT INTO t VALUES (%s, %s)", [*enumerate(found), (998, None), (999, "é\n" * 2**17)])
    wanted = Rows(("n", "v"), (*enumerate(found), (998, None), (999, "é\n" * 2**17)))
    for output in FORMATS:
        check_written(look("SELECT n, v FROM t ORDER BY n", output, limit=1000), output, wanted)


def test_every_json(database: Database, look: Callable[..., str]) -> None:
    """To the last digit of what the server keeps; MariaDB's JSON is text, and a query's header names it."""
    kinds = ["json", "jsonb"] if is_postgresql(database) else ["json"]
    for kind in kinds:
        keeps_text = database.server.name == "mariadb" or (kind == "json" and is_postgresql(database))
        found = jsons(strict=not keeps_text)
        if database.server.name == "mariadb":  # JSON_VALID takes no lone half of a pair
            found = [text for text in found if "\\ud800" not in text]
        database.execute("DROP TABLE IF EXISTS j", f"CREATE TABLE j (n int, v {kind})")
        with database.connect().cursor() as cursor:
            cursor.executemany("INSERT INTO j VALUES (%s, %s)", [*enumerate(found), (999, None)])
            cast = "v::text" if is_postgresql(database) else "CAST(v AS CHAR)"
            cursor.execute(f"SELECT n, {cast} FROM j ORDER BY n")
            stored = [(n, None if text is None else Json(text)) for n, text in cursor.fetchall()]
        if keeps_text:
            assert [one.text for _, one in stored if one] == found
        rows = Rows(("n", "v"), tuple(stored))
        for output in FORMATS:
            check_written(
                look("SELECT n, v FROM j ORDER BY n", output, header="-- @json v\n", limit=1000), output, rows
            )


def test_names_of_columns(database: Database, look: Callable[..., str]) -> None:
    names = [
        "a b",
        'say "x"',
        "it's",
        "l1\nl2",
        "tab\there",
        "ünï日本",
        "50%",
        "a:b",
        ":limit",
        "NULL",
        "yes",
        "1",
        "back\\slash",
        "a,b",
        "{}",
        "#",
    ]
    quote = (lambda name: '"' + name.replace('"', '""') + '"') if is_postgresql(database) else lambda name: f"`{name}`"
    sql = f"SELECT {', '.join(f'{n} AS {quote(name)}' for n, name in enumerate(names))}"
    rows = Rows(tuple(names), (tuple(range(len(names))),))
    for output in FORMATS:
        check_written(look(sql, output), output, rows)


def test_ids_without_dashes(database: Database, look: Callable[..., str]) -> None:
    written = look(f"SELECT '{TEXT_ID.hex}' AS id, 'none' AS other", "json", header="-- @id id other\n")
    assert read_json(written)["rows"] == [{"id": str(TEXT_ID), "other": "none"}]


# -- a terminal that looks on ----------------------------------------------------------------------------------------

SLOW = """
WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 900)
SELECT count(*) AS sums FROM n a, n b, n c, n d WHERE a.i + b.i + c.i + d.i = 0
"""


@pytest.fixture
def queries(tmp_path: Path) -> Path:
    folder = tmp_path / "queries"
    folder.mkdir()
    (folder / "slow.sql").write_text(f"-- slow: takes minutes{SLOW}")
    (folder / "quick.sql").write_text("-- quick: is done at once\nSELECT 1 AS one, 'x' AS two, NULL AS three\n")
    return folder


def running(database: Database) -> int:
    """How many statements of `slow` the server works on."""
    if is_postgresql(database):  # whose query is the FETCH of a cursor
        sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'opsctl'"
        sql += " AND state = 'active'"
    else:
        sql = "SELECT count(*) FROM information_schema.processlist WHERE db = DATABASE() AND info LIKE '%a.i + b.i%'"
        sql += " AND id <> CONNECTION_ID()"
    return int(database.execute(sql)[0][0])


def wait_until(condition: Callable[[], bool], timeout_s: float = 30) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it did not come so"
        time.sleep(0.05)


def test_ctrl_c_ends_a_query_on_the_server_too(database: Database, queries: Path, tmp_path: Path) -> None:
    argv = [OPSCTL, "query", "run", "slow", "--query-dir", queries, "--dsn", database.dsn, "--allow-scan"]
    with Terminal(argv, tmp_path) as terminal:
        terminal.expect(r"slow: \d+ s \(Ctrl-C ends it\)")
        assert running(database) == 1
        terminal.send(CTRL_C)
        assert terminal.wait() == 130
    assert re.match(r"(\^C)?\nopsctl: interrupted\n  ", terminal.output.rpartition("\r\x1b[K")[2])
    assert "Traceback" not in terminal.output
    wait_until(lambda: running(database) == 0)


def test_ctrl_c_at_the_question(database: Database, tmp_path: Path) -> None:
    argv = [OPSCTL, "init-tables", "--dsn", database.dsn]
    for key, code, said in ((CTRL_C, 130, "interrupted"), ("n\n", 5, "declined"), ("\x04", 5, "declined")):
        with Terminal(argv, tmp_path) as terminal:
            terminal.expect(r"\? \[y/N\]: ")
            assert terminal.press_until_the_end(key) == code
        assert f"opsctl: {said}" in terminal.output
        assert "Traceback" not in terminal.output


def test_watching_on_a_terminal(database: Database, queries: Path, tmp_path: Path) -> None:
    argv = [OPSCTL, "query", "run", "quick", "--query-dir", queries, "--dsn", database.dsn, "--watch", "0.2"]
    with Terminal([*argv, "--no-color"], tmp_path) as terminal:
        for _ in range(3):
            terminal.expect(r"\x1b\[H\x1b\[2Jquick on \S+, \d\d:\d\d:\d\d UTC\r\n")
            terminal.expect("  1  x    +NULL")
        terminal.send(CTRL_C)
        assert terminal.wait() == 130
    assert "\x1b[3J" not in terminal.output  # what was on the screen before can still be scrolled to
    with Terminal(argv, tmp_path, env={"TERM": "dumb"}) as terminal:
        for _ in range(2):
            terminal.expect(r"quick on \S+, \d\d:\d\d:\d\d UTC\r\n")
        terminal.send(CTRL_C)
        assert terminal.wait() == 130
    assert "\x1b" not in terminal.output


@pytest.mark.parametrize("output", FORMATS)
@pytest.mark.servers("postgresql-newest", "mariadb")
def test_watching_in_a_pipe(output: str, database: Database, queries: Path, tmp_path: Path) -> None:
    argv = [OPSCTL, "query", "run", "quick", "--query-dir", queries, "--dsn", database.dsn, "--watch", "0.1"]
    process = subprocess.Popen(
        [*map(str, argv), "-o", output],
        env=clean_environment(tmp_path),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with contextlib.ExitStack() as stack:
        stack.callback(process.kill)
        assert process.stdout is not None
        lines_each = {"json": 1, "csv": 2, "table": 4, "vertical": 4, "yaml": 19}[output]
        lines = [process.stdout.readline() for _ in range(3 * lines_each)]
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=30)
    assert (process.returncode, err.splitlines()[0]) == (143, "opsctl: terminated")
    parts = ["".join(lines[n * lines_each : (n + 1) * lines_each]) for n in range(3)]
    assert parts[0] == parts[1] == parts[2]
    if output == "json":
        assert json.loads(parts[1])["rows"] == [{"one": 1, "two": "x", "three": None}]
    elif output == "yaml":
        assert parts[1].startswith("---\n")
        assert read_yaml(parts[1])["rows"] == [{"one": 1, "two": "x", "three": None}]
    elif output == "csv":
        assert read_csv(parts[1]) == (["one", "two", "three"], [("1", "x", None)])
    elif output == "table":
        assert parts[1].endswith("\n\n")
        assert read_table(parts[1].rstrip("\n")) == (["one", "two", "three"], [("1", "x", "NULL")])


def test_what_verbose_adds_and_quiet_takes(database: Database, queries: Path, opsctl: Opsctl) -> None:
    create_pair(database)
    arguments = ("query", "run", "status-counts", "--dsn", database.dsn)
    usual, verbose, quiet = (opsctl(*arguments, *more) for more in ((), ("-v",), ("-q",)))
    assert (usual.err, quiet.err) == ("no rows\n", "")
    assert "opsctl: database " in verbose.err
    assert re.search(r"opsctl: 0 rows in \d\.\d{3} s", verbose.err)
    more = opsctl("query", "run", "many", "--query-dir", str(queries), "--dsn", database.dsn)
    assert more.code == 2
    (queries / "many.sql").write_text("-- many: rows\nSELECT 1 AS n UNION ALL SELECT 2 UNION ALL SELECT 3\n")
    more = opsctl(
        "query", "run", "many", "--query-dir", str(queries), "--dsn", database.dsn, "--limit", "2", "-o", "json"
    )
    assert read_json(more.out)["more"] is True
    assert len(read_json(more.out)["rows"]) == 2
    assert "more than these 2 rows" in more.err
