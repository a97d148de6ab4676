"""CHECKs and predicates by meaning. The oracle for SQL's three-valued logic is SQLite, which shares no code with us."""

from __future__ import annotations

import itertools
import sqlite3
from dataclasses import dataclass
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from opsctl.schema.expected import ATTEMPT_STATUSES, EXECUTION_STATUSES
from opsctl.schema.expressions import Unparsable, normalise, parse, rejected_values, same_check, same_meaning


def mysql_in(column: str, values: tuple[str, ...]) -> str:
    items = ",".join(f"_utf8mb4{value!r}" for value in values)
    return f"(`{column}` in ({items}))"


def mariadb_in(column: str, values: tuple[str, ...]) -> str:
    return f"`{column}` in ({','.join(map(repr, values))})"


def postgresql_in(column: str, values: tuple[str, ...]) -> str:
    items = ", ".join(f"{value!r}::character varying" for value in values)
    return f"((({column})::text = ANY ((ARRAY[{items}])::text[])))"


def restored_in(column: str, values: tuple[str, ...]) -> str:
    """As PostgreSQL prints it after a dump and restore."""
    items = ", ".join(f"({value!r}::character varying)::text" for value in values)
    return f"((({column})::text = ANY (ARRAY[{items}])))"


def array_literal(column: str, values: tuple[str, ...]) -> str:
    return f"(({column})::text = ANY ('{{{','.join(values)}}}'::text[]))"


def or_chain(column: str, values: tuple[str, ...]) -> str:
    return " OR ".join(f"({column} = {value!r})" for value in values)


def plain_in(column: str, values: tuple[str, ...]) -> str:
    return f"{column} IN ({', '.join(map(repr, values))})"


IN_LISTS = (plain_in, mysql_in, mariadb_in, postgresql_in, restored_in, array_literal, or_chain)
IDEMPOTENCY = (
    "(idempotency_key IS NULL AND submission_digest IS NULL)"
    " OR (idempotency_key IS NOT NULL AND submission_digest IS NOT NULL)",
    "(((`idempotency_key` is null) and (`submission_digest` is null))"
    " or ((`idempotency_key` is not null) and (`submission_digest` is not null)))",
    "`idempotency_key` is null and `submission_digest` is null"
    " or `idempotency_key` is not null and `submission_digest` is not null",
    "((((idempotency_key IS NULL) AND (submission_digest IS NULL))"
    " OR ((idempotency_key IS NOT NULL) AND (submission_digest IS NOT NULL))))",
    "(idempotency_key IS NULL) = (submission_digest IS NULL)",
    "NOT ((`idempotency_key` is null) <> (`submission_digest` is null))",
)
NOT_NULL = ("idempotency_key IS NOT NULL", "(idempotency_key IS NOT NULL)", "(NOT (idempotency_key IS NULL))")


@pytest.mark.parametrize("values", [EXECUTION_STATUSES, ATTEMPT_STATUSES, ("queued", "retrying")], ids=str)
def test_every_spelling_of_a_list_is_the_same_and_another_list_is_not(values: tuple[str, ...]) -> None:
    wrong = [
        values[1:],
        values[:-1],
        (*values, "paused"),
        (values[0].title(), *values[1:]),
        (f"{values[0]} ", *values[1:]),
        (values[0][:-1], *values[1:]),
    ]
    for left, right in itertools.product(IN_LISTS, repeat=2):
        expected = left("status", values)
        assert same_check(expected, right("status", values))
        assert same_meaning(expected, right("status", values[::-1]))
        assert not same_check(expected, right("state", values))
        for other in wrong:
            assert not same_check(expected, right("status", other))
            assert not same_meaning(expected, right("status", other))


@pytest.mark.parametrize("spelling", [mysql_in, mariadb_in, postgresql_in])
def test_the_opposite_of_a_list_is_not_the_list(spelling: object) -> None:
    assert callable(spelling)
    text = spelling("status", EXECUTION_STATUSES)
    opposite = text.replace(" in ", " not in ").replace("= ANY", "<> ALL")
    assert opposite != text
    assert not same_check(text, opposite)
    assert same_check(opposite, f"NOT ({plain_in('status', EXECUTION_STATUSES)})")


def test_every_spelling_of_the_idempotency_rule_is_the_same() -> None:
    for left, right in itertools.product(IDEMPOTENCY, repeat=2):
        assert same_check(left, right)
        assert same_meaning(left, right)


@pytest.mark.parametrize("spelling", IDEMPOTENCY[:4])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (" or ", " and "),
        (" and ", " or "),
        ("is not null", "is null"),
        ("is null", "is not null"),
        ("submission_digest", "idempotency_key"),
        ("submission_digest", "worker_id"),
    ],
)
def test_no_single_change_of_the_idempotency_rule_is_the_same(spelling: str, old: str, new: str) -> None:
    lower = spelling.lower()
    places = [place for place in range(len(lower)) if lower.startswith(old, place)]
    assert places
    for place in places:
        changed = lower[:place] + new + lower[place + len(old) :]
        assert not same_check(IDEMPOTENCY[0], changed), changed


def test_predicates() -> None:
    for left, right in itertools.product(NOT_NULL, repeat=2):
        assert same_meaning(left, right)
    assert same_meaning(None, None)
    for other in (None, "(idempotency_key IS NULL)", "(task_name IS NOT NULL)", "(idempotency_key <> ''::text)"):
        assert not same_meaning(NOT_NULL[0], other)
        assert not same_meaning(other, NOT_NULL[0])


def test_null_passes_a_check_and_fails_a_predicate() -> None:
    assert same_check("a = 'x'", "a = 'x' OR a IS NULL")
    assert not same_meaning("a = 'x'", "a = 'x' OR a IS NULL")
    assert same_meaning("a = 'x'", "a = 'x' AND a IS NOT NULL")
    assert not same_check("a = 'x'", "a = 'x' AND a IS NOT NULL")


def test_columns_compared_with_each_other_can_differ_in_values_that_no_rule_names() -> None:
    assert not same_meaning("a = b", "a IS NOT NULL AND b IS NOT NULL")
    assert not same_check("a <> 'x' AND b <> 'x' AND a = b", "a <> 'x' AND b <> 'x'")
    assert not same_meaning("a = b OR a = c OR b = c", "a IS NOT NULL AND b IS NOT NULL AND c IS NOT NULL")
    assert same_meaning("a = b", "NOT (b <> a)")


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ("`Status` = 'x'", "`status` = 'x'", True),  # MySQL and MariaDB fold names
        ("STATUS = 'x'", "status = 'x'", True),
        ("\"Status\" = 'x'", "status = 'x'", False),  # PostgreSQL does not
        ("a = 'it''s'", "a = _utf8mb4'it\\'s'", True),
        ("a = 'a\\nb'", "a = 'a\nb'", True),
        ("a = 'a\\nb'", "a = 'anb'", False),
        ("a = 'a\\xb'", "a = 'axb'", False),
        ("a = _utf8mb4\\'x\\'", "a = 'x'", True),  # information_schema
        ("a = 1", "a = 2", False),
        ("a = 1", "(a = 1)", True),
        ("a <> ALL ('{}'::text[])", "a IS NULL OR a IS NOT NULL", True),
        ("a = ANY ('{x,NULL}'::text[])", "a = 'x' OR a = NULL", True),
        ("a = ANY ('{x,NULL}'::text[])", "a IN ('x', 'NULL')", False),
        ("NOT a = 'x' AND b = 'y'", "(NOT (a = 'x')) AND (b = 'y')", True),
        ("NOT a = 'x' AND b = 'y'", "NOT (a = 'x' AND b = 'y')", False),
        ("a = 'x' OR b = 'y' AND c = 'z'", "a = 'x' OR (b = 'y' AND c = 'z')", True),
        ("a = 'x' OR b = 'y' AND c = 'z'", "(a = 'x' OR b = 'y') AND c = 'z'", False),
        ("(a IS NULL) <> (b IS NULL)", "a IS NULL AND b IS NOT NULL OR a IS NOT NULL AND b IS NULL", True),
        # of one rule both spellings, whether or not it can be evaluated
        ("char_length(a) > 3", "(CHAR_LENGTH( a )>3)", True),
        ("char_length(a) > 3", "char_length(a) > 4", False),
        ("a LIKE 'X%'", "(a like 'X%')", True),
        ("a LIKE 'X%'", "a like 'x%'", False),
        ("(a)::varchar(3) = 'abc'", "a = 'abc'", False),
        ("a = (b)::integer", "a = b", False),
        ("a = 'x' COLLATE \"C\"", "a = 'x'", False),
        ("f('a'' , ''b')", "f('a' , 'b')", False),
        ("f(`null`)", "f(null)", False),
        ("f(`a`)", "f(a)", True),
        ("a BETWEEN 'x' AND 'y'", "a between 'x' and 'y'", True),
        ("a BETWEEN 'x' AND 'y'", "a between 'x' and 'z'", False),
        ("(a = 'x') = (b = 'y')", "(a = 'x') = (b = 'z')", False),
    ],
)
def test_spellings(left: str, right: str, same: bool) -> None:
    assert same_check(left, right) is same
    assert same_check(right, left) is same


@pytest.mark.parametrize(
    "text",
    [
        "", "(", ")", "a", "a =", "a IN", "a IN (", "a = 'x", "a = `x", "a = \\", "$1 = a", "é = 'x'", "a IS", "NOT",
        "a = ANY (b)", "a = ANY ('{\"x\"}'::text[])", "a = 'x'::integer", "f(a) = 'x'", "a LIKE 'x'", "a = 'x' b",
        "(" * 400 + "a" + ")" * 400, "NOT " * 1_500 + "a = 'x'",
    ],
    ids=range(22),
)  # fmt: skip
def test_what_cannot_be_evaluated_is_compared_as_text(text: str) -> None:
    with pytest.raises(Unparsable):
        parse(text)
    assert same_check(text, f" {text}\n")
    assert same_meaning(text, text)
    assert not same_check(text, "a = 'x'")
    assert not same_meaning(f"{text} x", text)
    assert rejected_values(text, "a = 'x'") == ([], [])


def test_rejected_and_admitted_values_are_named() -> None:
    expected, narrow = plain_in("status", EXECUTION_STATUSES), mysql_in("status", EXECUTION_STATUSES[:-1])
    assert rejected_values(expected, narrow) == (["status = 'expired'"], [])
    assert rejected_values(narrow, expected) == ([], ["status = 'expired'"])
    assert rejected_values(expected, "status IS NULL OR status IS NOT NULL") == ([], ["status = any other value"])
    assert rejected_values(expected, expected) == ([], [])
    half = "idempotency_key IS NULL OR submission_digest IS NOT NULL"
    assert rejected_values(IDEMPOTENCY[0], half)[1] == [
        "idempotency_key = NULL and submission_digest = any other value"
    ]


@given(st.text(max_size=30))
@example("_x'")
def test_any_text_is_the_same_as_itself(text: str) -> None:
    assert same_check(text, text)
    assert same_meaning(text, text)
    assert normalise(normalise(text)) == normalise(text)


# -- random rules, three servers' spellings, SQLite as the judge -----------------------------------------------

COLUMNS = ("a", "b", "c")
LITERALS = ("x", "X", "it's", "", "é ")


@dataclass(frozen=True)
class Rule:
    """`kind` is null, in, same (two columns), null_same, not, and, or."""

    kind: str
    columns: tuple[str, ...] = ()
    literals: tuple[str, ...] = ()
    parts: tuple[Rule, ...] = ()
    negated: bool = False


columns = st.sampled_from(COLUMNS)
leaves = st.one_of(
    st.builds(Rule, st.just("null"), st.tuples(columns), negated=st.booleans()),
    st.builds(
        Rule,
        st.just("in"),
        st.tuples(columns),
        st.lists(st.sampled_from(LITERALS), min_size=1, max_size=3, unique=True).map(tuple),
        negated=st.booleans(),
    ),
    st.builds(Rule, st.sampled_from(["same", "null_same"]), st.tuples(columns, columns), negated=st.booleans()),
)
rules = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(lambda part: Rule("not", parts=(part,)), inner),
        st.builds(
            lambda kind, parts: Rule(kind, parts=tuple(parts)),
            st.sampled_from(["and", "or"]),
            st.lists(inner, min_size=2, max_size=3),
        ),
    ),
    max_leaves=5,
)
randoms = st.randoms(use_true_random=False)


class Printer:
    """Prints a rule as one server does, with more parentheses than needed where `random` says so."""

    def __init__(self, server: str, random: Random) -> None:
        self.server, self.random = server, random

    def __call__(self, rule: Rule) -> str:
        """A rule that may stand beside AND, OR and NOT only."""
        text = self._text(rule)
        return f"({text})" if self.server != "mariadb" or self.random.random() < 0.3 else text

    def _text(self, rule: Rule) -> str:
        if rule.kind == "not":
            return f"NOT ({self(rule.parts[0])})"
        if rule.kind in ("and", "or"):
            return f" {rule.kind} ".join(self._inner(rule, part) for part in rule.parts)
        if rule.kind == "null":
            return f"{self._column(rule)} IS {'NOT ' if rule.negated else ''}NULL"
        operator = "<>" if rule.negated else "="
        if rule.kind == "same":
            return f"{self._column(rule)} {operator} {self._column(rule, 1)}"
        if rule.kind == "null_same":
            return f"({self._column(rule)} IS NULL) {operator} ({self._column(rule, 1)} IS NULL)"
        if len(rule.literals) == 1 and self.random.random() < 0.7:
            return f"{self._column(rule)} {operator} {self._literal(rule.literals[0])}"
        items = ", ".join(map(self._literal, rule.literals))
        if self.server != "postgresql":
            return f"{self._column(rule)} {'not ' if rule.negated else ''}in ({items})"
        array = self.random.choice((f"(ARRAY[{items}])::text[]", f"ARRAY[{items}]"))
        return f"{self._column(rule)} {'<> ALL' if rule.negated else '= ANY'} ({array})"

    def _inner(self, rule: Rule, part: Rule) -> str:
        return f"({self(part)})" if rule.kind == "and" and part.kind == "or" else self(part)

    def _column(self, rule: Rule, which: int = 0) -> str:
        name = rule.columns[which]
        if self.server == "sqlite":
            return name
        return f"({name})::text" if self.server == "postgresql" else f"`{name}`"

    def _literal(self, value: str) -> str:
        quoted = "'" + value.replace("'", "''") + "'"
        if self.server == "mysql":
            return "_utf8mb4'" + value.replace("'", self.random.choice(("\\'", "''"))) + "'"
        if self.server == "postgresql":
            return self.random.choice((f"{quoted}::text", f"{quoted}::character varying", f"({quoted})::text"))
        return quoted


def rewritten(rule: Rule, random: Random) -> Rule:
    """Another rule that means the same: De Morgan, lists as chains, other order."""
    if rule.kind in ("and", "or"):
        parts = [rewritten(part, random) for part in rule.parts]
        random.shuffle(parts)
        if random.random() < 0.5:
            return Rule(rule.kind, parts=tuple(parts))
        opposite = "or" if rule.kind == "and" else "and"
        return Rule("not", parts=(Rule(opposite, parts=tuple(Rule("not", parts=(part,)) for part in parts)),))
    if rule.kind == "not":
        return Rule("not", parts=(rewritten(rule.parts[0], random),))
    if rule.kind == "in" and len(rule.literals) > 1 and random.random() < 0.5:
        singles = tuple(Rule("in", rule.columns, (value,), negated=rule.negated) for value in rule.literals)
        return Rule("and" if rule.negated else "or", parts=singles)
    if random.random() < 0.3:
        return Rule("not", parts=(Rule(rule.kind, rule.columns, rule.literals, negated=not rule.negated),))
    return rule


@pytest.fixture(scope="module")
def rows() -> sqlite3.Connection:
    """Every combination of NULL, each literal, and as many values that no rule names as there are columns."""
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE rows (a, b, c)")
    values = (None, *LITERALS, "other 1", "other 2", "other 3")
    connection.executemany("INSERT INTO rows VALUES (?, ?, ?)", itertools.product(values, repeat=3))
    yield connection
    connection.close()


def equal_in_sqlite(rows: sqlite3.Connection, left: Rule, right: Rule, *, null: int) -> bool:
    texts = [f"coalesce({Printer('sqlite', Random(0))(rule)}, {null})" for rule in (left, right)]
    return rows.execute(f"SELECT NOT EXISTS (SELECT 1 FROM rows WHERE {texts[0]} <> {texts[1]})").fetchone() == (1,)


servers = st.sampled_from(["mysql", "mariadb", "postgresql"])


@given(rules, rules, servers, servers, randoms)
def test_two_rules_are_the_same_exactly_when_sqlite_cannot_tell_them_apart(
    rows: sqlite3.Connection, left: Rule, right: Rule, left_server: str, right_server: str, random: Random
) -> None:
    texts = Printer(left_server, random)(left), Printer(right_server, random)(right)
    assert same_check(*texts) == equal_in_sqlite(rows, left, right, null=1), texts
    assert same_meaning(*texts) == equal_in_sqlite(rows, left, right, null=0), texts


@given(rules, servers, servers, randoms)
def test_a_rule_is_the_same_in_every_spelling(rule: Rule, left: str, right: str, random: Random) -> None:
    texts = Printer(left, random)(rule), Printer(right, random)(rewritten(rule, random))
    assert same_check(*texts), texts
    assert same_meaning(*texts), texts


@given(rules, randoms)
def test_the_rewritten_rule_of_these_tests_means_the_same(rows: sqlite3.Connection, rule: Rule, random: Random) -> None:
    other = rewritten(rule, random)
    assert equal_in_sqlite(rows, rule, other, null=0)
    assert equal_in_sqlite(rows, rule, other, null=1)
