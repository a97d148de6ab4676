"""What is written reads back the same, in every format, and nothing in it acts on a terminal."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
import yaml
from expected_rows import JSONS, TEXTS, check_written, same
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from readers import read_csv, read_json, read_table, read_yaml, unescape_c
from wcwidth import wcswidth

from opsctl.render import documents
from opsctl.render.rows import render_rows
from opsctl.rows import Json, Rows

MOMENT = datetime(2026, 11, 30, 12, 0, 0, 123456, tzinfo=UTC)
ODD_JSONS = ["", "nonsense", "NaN", "{'a': 1}", "[1,", "[" * 100_000]

text = st.text(
    st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from(list('\x1b\n\r\t "\\|,\u200d\u202e')))
)
text = st.one_of(st.sampled_from(TEXTS), text)
json_value = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)
json_text = st.one_of(
    st.sampled_from(JSONS),
    st.builds(json.dumps, json_value, ensure_ascii=st.booleans(), indent=st.sampled_from([None, 2])),
)
scalar = st.one_of(
    text,
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.decimals(allow_nan=False),
    st.just(Decimal("NaN")),
    st.binary(max_size=20),
    st.uuids(),
    st.datetimes(timezones=st.just(UTC)),
    st.datetimes(),
    st.builds(Json, json_text),
)
value = scalar | st.lists(scalar.filter(lambda v: not isinstance(v, bytes)), max_size=3)
names = st.lists(text.filter(lambda name: " |" not in name), min_size=1, max_size=4, unique=True)
table = names.flatmap(
    lambda found: st.builds(
        Rows,
        st.just(tuple(found)),
        st.lists(st.tuples(*[value] * len(found)), min_size=1, max_size=4).map(tuple),
    )
)
lean = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def column(*values: Any, name: str = "v") -> Rows:
    return Rows((name,), tuple((one,) for one in values))


EVERYTHING = Rows(
    ("id", "a b", 'say "x"', "l1\nl2", "", "ünï", "n", "\x1b[1m"),
    (
        (1, UUID(int=7), Decimal("1.50"), MOMENT, b"\x00\xff", True, 1.5, Json('{"a": 1e400}')),
        (-(2**70), None, Decimal("1E+30"), datetime(1, 1, 1, tzinfo=UTC), b"", False, 1e300, Json("null")),
        (None, None, Decimal("NaN"), None, None, None, math.inf, None),
        (0, UUID(int=0), Decimal("-Infinity"), MOMENT, b"\\", None, math.nan, Json("[]")),
    ),
)


def check_reads_back(rows: Rows, *, ascii_only: bool = False) -> None:
    for output in ("json", "yaml", "table", "vertical", *(() if ascii_only else ("csv",))):
        out = render_rows(rows, output, ascii_only=ascii_only).text + "\n"
        check_written(out.encode("ascii", "backslashreplace").decode() if ascii_only else out, output, rows)
    line = render_rows(rows, "json", ascii_only=ascii_only, compact=True).text
    assert "\n" not in line
    check_written(line, "json", rows)


# -- tests -----------------------------------------------------------------------------------------------------------


@lean
@given(table)
@example(EVERYTHING)
@example(column(*TEXTS))
@example(column(*map(Json, JSONS)))
@example(column(*map(Json, ODD_JSONS)))
@example(column(list(TEXTS), [[1, None], [Decimal("1.0")]], [], [MOMENT, UUID(int=1), True], [Json('{"a": "\x9b"}')]))
@example(Rows(tuple(name for name in TEXTS if " |" not in name and name != "~"), ()))
@example(Rows(("only",), ((None,), ("",), (None,))))
def test_every_format_reads_back(rows: Rows) -> None:
    if not rows.rows:
        columns, _ = read_table(render_rows(rows, "table").text)
        assert columns == list(rows.columns)
        return
    check_reads_back(rows)


@lean
@given(table)
@example(EVERYTHING)
@example(column(*TEXTS))
@example(column(*map(Json, JSONS)))
def test_so_it_does_through_a_stdout_that_knows_ascii_only(rows: Rows) -> None:
    for output in ("json", "yaml", "table", "vertical"):
        assert render_rows(rows, output, ascii_only=True, width=None).text.isascii()
    check_reads_back(rows, ascii_only=True)


@lean
@given(text)
def test_csv_in_ascii_is_csv_with_escapes(one: str) -> None:
    written = (render_rows(column(one), "csv").text + "\n").encode("ascii", "backslashreplace").decode()
    (_, ((cell,),)) = read_csv(written)
    escaped = re.sub(r"\\(?!x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})", r"\\\\", cell or "")
    assert unescape_c(escaped) == one or "\\" in one


@lean
@given(table, st.sampled_from([20, 40, 80, 200]), st.booleans())
@example(column(*TEXTS), 80, False)
@example(column(*map(Json, JSONS)), 40, False)
@example(EVERYTHING, 200, True)
def test_nothing_acts_on_a_terminal(rows: Rows, width: int, colour: bool) -> None:
    for output in ("table", "vertical", "json", "yaml", "csv"):
        written = render_rows(rows, output, width=width, colour=colour).text
        if colour and output in ("table", "vertical"):
            written = re.sub(r"\x1b\[[0-9]*m", "", written)
        for place, character in enumerate(written):
            if character in "\u200c\u200d":  # these hold together what stands around them
                assert min(written[place - 1], written[place + 1]) > "\xa0"
            else:
                kind = unicodedata.category(character)
                harmless = character == "\n" or (output == "csv" and character == "\t")
                visible = (
                    unicodedata.bidirectional(character) in ("AN", "AL", "ON", "L") and character not in "\u061c\u180e"
                )
                assert harmless or kind not in ("Cc", "Cf", "Zl", "Zp", "Cs") or visible, (output, ascii(character))


@lean
@given(table, st.integers(10, 120), st.booleans())
@example(column(*TEXTS), 20, False)
def test_a_table_keeps_to_the_width_or_is_vertical(rows: Rows, width: int, ascii_only: bool) -> None:
    found = render_rows(rows, "table", width=width, ascii_only=ascii_only)
    if found.text.startswith("-[ row 1 ]"):
        assert found == render_rows(rows, "vertical", ascii_only=ascii_only)
        return
    lines = found.text.split("\n")
    assert all(wcswidth(line) <= width for line in lines)
    whole = render_rows(rows, "table", ascii_only=ascii_only)
    assert bool(found.note) == (found.text != whole.text)


def wide(length: int) -> Rows:
    row = (
        UUID(int=2**127),
        "word " * length,
        12345678901234567890,
        MOMENT,
        "日本" * length,
        Json(f'["{"x" * length}"]'),
    )
    return Rows(("id", "message", "count", "at", "title", "payload"), (row,))


def test_ids_numbers_and_moments_are_never_cut() -> None:
    found = render_rows(wide(50), "table", width=140)
    cells = found.text.split("\n")[2]
    assert str(UUID(int=2**127)) in cells
    assert "12345678901234567890" in cells
    assert MOMENT.isoformat() in cells
    assert cells.count("…") == 3
    assert "-o vertical" in found.note
    assert 139 <= wcswidth(cells) <= 140  # a cut text of wide characters may end a column early
    assert render_rows(wide(50), "table", width=100).text.startswith("-[ row 1 ]")


def test_narrow_columns_stay_whole_where_wide_ones_can_give_way() -> None:
    rows = Rows(("a", "b", "c"), (("x" * 20, "y" * 200, "z" * 300),))
    line = render_rows(rows, "table", width=84).text.split("\n")[2]
    assert [len(cell) for cell in line.split("  ")] == [20, 30, 30]


@pytest.mark.parametrize(
    "long", ["x" * 2**20, "日" * 2**20, "\x1b" * 2**18, "e\u0301" * 2**19, '"' * 2**16, "a b\n" * 2**18]
)
def test_a_large_value_is_whole_in_every_format(long: str) -> None:
    rows = Rows(("id", "v", "j", "b"), ((1, long, Json(json.dumps(long)), long.encode()[: 2**20]),))
    check_reads_back(rows)
    cut = render_rows(rows, "table", width=80).text.split("\n")
    assert max(map(wcswidth, cut)) <= 80


def test_one_large_value_does_not_make_every_line_as_long() -> None:
    rows = Rows(("id", "v"), tuple((n, "x" * (2**20 if n == 500 else 1)) for n in range(1000)))
    found = render_rows(rows, "table")
    assert found.text.startswith("-[ row 1 ]")
    assert len(found.text) < 2**21
    assert "vertical" in found.note


def test_json_is_set_in_as_it_came() -> None:
    document = '{"b":1e400,  "a":[0.1000000000000000000001, 1.50]}'
    assert document in render_rows(column(Json(document)), "json").text
    assert render_rows(column(Json("{\n}")), "json", compact=True).text.count("\n") == 0


def test_json_null_is_not_null() -> None:
    rows = Rows(("p", "q"), ((Json("null"), None), (None, Json("1")), (Json(" null "), Json("null"))))
    found = read_json(render_rows(rows, "json").text)
    assert found["json_nulls"] == {"p": [0, 2], "q": [2]}
    assert read_csv(render_rows(rows, "csv").text + "\n")[1] == [("null", None), (None, "1"), ("null", "null")]
    assert "json_nulls" not in read_json(render_rows(column(None, Json("1")), "json").text)


def test_the_columns_have_types() -> None:
    rows = Rows(
        ("j", "b", "i", "f", "d", "t", "u", "x", "a", "s", "n"),
        ((Json("1"), True, 1, 1.5, Decimal(1), MOMENT, UUID(int=1), b"", [], "", None), (None,) * 11),
    )
    kinds = [found["type"] for found in read_json(render_rows(rows, "json").text)["columns"]]
    assert kinds == "json boolean integer number number timestamp uuid bytes array text null".split()


@lean
@given(table)
@example(EVERYTHING)
@example(column(*TEXTS))
@example(column(*map(Json, JSONS)))
def test_yaml_is_the_same_without_libyaml(rows: Rows) -> None:
    assert hasattr(yaml, "CSafeDumper"), "this PyYAML has no libyaml: the other tests tried the fallback alone"
    fast = render_rows(rows, "yaml").text
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(yaml, "CSafeDumper")
        documents._dumper.cache_clear()
        slow = render_rows(rows, "yaml").text
    documents._dumper.cache_clear()
    assert same(read_yaml(fast + "\n"), read_yaml(slow + "\n"))
    assert same(read_yaml(fast + "\n", libyaml=True), read_yaml(slow + "\n", libyaml=True))


def test_long_errors_read_well_in_yaml() -> None:
    written = render_rows(column("Traceback:\n  line 1\nValueError: x\n"), "yaml").text
    assert written.endswith("rows:\n- v: |\n    Traceback:\n      line 1\n    ValueError: x")


def test_moments_without_a_zone_claim_none() -> None:
    written = render_rows(
        column(datetime(2026, 1, 1), datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=1)), "csv"
    ).text
    assert written.split("\n")[1:] == ["2026-01-01T00:00:00.000000", "2026-01-02T00:00:00.000000+00:00"]
