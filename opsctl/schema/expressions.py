"""CHECKs and predicates by meaning: read what a server prints, decide whether two say the same.

The servers print one rule in many ways: an IN list as IN, as = ANY (ARRAY[…]) with the cast on the array or on each
element, with introducers, with redundant parentheses. Inside the small language of AND, OR, NOT, =, <>, IN, IS NULL over
columns and literals two rules are equal exactly when they give the same answer for every combination of values that
either of them names, one that neither names, and NULL; so they are evaluated, not compared as text. What is outside that
language is compared as normalised text, in which the case of literals, operators and grouping stay.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

Value = str | None
Truth = bool | None

#: Stands for every value that neither rule names; where columns are compared with each other, there is one for each.
OTHER = "\0other"

_MAX_COMBINATIONS = 20_000


class Unparsable(ValueError):
    """The expression is outside the language that can be evaluated."""


@dataclass(frozen=True)
class Literal:
    """A constant; None is NULL."""

    value: Value


@dataclass(frozen=True)
class ColumnRef:
    """The value of a column."""

    name: str


Operand = Literal | ColumnRef


@dataclass(frozen=True)
class IsNull:
    """operand IS NULL."""

    operand: Operand


@dataclass(frozen=True)
class Compare:
    """operand IN choices; equality is a list of one."""

    operand: Operand
    choices: tuple[Operand, ...]


@dataclass(frozen=True)
class Not:
    """NOT inner."""

    inner: Expression


@dataclass(frozen=True)
class Junction:
    """AND or OR of its parts."""

    conjunction: bool
    parts: tuple[Expression, ...]


Expression = IsNull | Compare | Not | Junction


def parse(text: str) -> Expression:
    """Parse a boolean expression as MySQL, MariaDB or PostgreSQL prints it. Raises Unparsable."""
    parser = _Parser(text)
    try:
        expression = parser.disjunction()
    except RecursionError:
        raise Unparsable("nested too deeply") from None
    parser.expect_end()
    return expression


def same_meaning(left: str | None, right: str | None) -> bool:
    """Whether two expressions are the same rule; None stands for no expression."""
    if left is None or right is None:
        return left is right
    try:
        return not _differences(parse(left), parse(right), as_check=False)
    except Unparsable:
        return normalise(left) == normalise(right)


def same_check(left: str, right: str) -> bool:
    """Whether two CHECKs admit the same rows (NULL passes a CHECK, as true does)."""
    try:
        return not _differences(parse(left), parse(right), as_check=True)
    except Unparsable:
        return normalise(left) == normalise(right)


def rejected_values(expected: str, actual: str) -> tuple[list[str], list[str]]:
    """Return what `actual` rejects though `expected` admits it, and the reverse, as "column = value" texts.

    Both lists are empty when either expression cannot be evaluated.
    """
    try:
        differences = _differences(parse(expected), parse(actual), as_check=True)
    except Unparsable:
        return [], []
    rejected = [_say(row) for row, wanted in differences if wanted]
    admitted = [_say(row) for row, wanted in differences if not wanted]
    return rejected, admitted


def describe(text: str) -> str:
    """Return `text` in one plain spelling, without the casts and introducers that servers add, or as it is."""
    try:
        return _print(parse(text))
    except Unparsable:
        return text


def normalise(text: str) -> str:
    """Return `text` in one spelling of white space, keyword case, quotes and outer parentheses; literals untouched.

    A text that cannot even be cut into tokens comes back as it is.
    """
    try:
        tokens = [_spelled(token) for token in _tokens(text)]
    except Unparsable:
        return text.strip()
    while len(tokens) > 2 and tokens[0] == "(" and _closes(tokens) == len(tokens) - 1:
        tokens = tokens[1:-1]
    return " ".join(tokens)


def _spelled(token: _Token) -> str:
    if token.kind == "literal":
        return "'" + token.text.replace("'", "''") + "'"
    if token.kind == "name":
        plain = re.fullmatch(r"[a-z_][a-z0-9_$]*", token.text) and token.text not in _RESERVED
        return token.text if plain else f"`{token.text}`"
    return token.text.lower() if token.kind == "word" else token.text


def _closes(tokens: list[str]) -> int:
    depth = 0
    for position, token in enumerate(tokens):
        depth += (token == "(") - (token == ")")
        if depth == 0:
            return position
    return -1


def _say(row: Mapping[str, Value]) -> str:
    def shown(value: Value) -> str:
        if value is None:
            return "NULL"
        return "any other value" if value.startswith(OTHER) else f"'{value}'"

    return " and ".join(f"{name} = {shown(value)}" for name, value in sorted(row.items()))


def _print(expression: Expression) -> str:
    if isinstance(expression, IsNull):
        return f"{_print_operand(expression.operand)} IS NULL"
    if isinstance(expression, Compare):
        choices = ", ".join(map(_print_operand, expression.choices))
        return f"{_print_operand(expression.operand)} " + (
            f"= {choices}" if len(expression.choices) == 1 else f"IN ({choices})"
        )
    if isinstance(expression, Not):
        inner = expression.inner
        if isinstance(inner, IsNull):
            return f"{_print_operand(inner.operand)} IS NOT NULL"
        return f"NOT ({_print(inner)})"
    word = " AND " if expression.conjunction else " OR "
    return word.join(f"({_print(part)})" if isinstance(part, Junction) else _print(part) for part in expression.parts)


def _print_operand(operand: Operand) -> str:
    if isinstance(operand, ColumnRef):
        return operand.name
    return "NULL" if operand.value is None else "'" + operand.value.replace("'", "''") + "'"


def _differences(expected: Expression, actual: Expression, *, as_check: bool) -> list[tuple[Mapping[str, Value], bool]]:
    """Return the value combinations for which the two disagree, with what `expected` says."""
    values: dict[str, set[Value]] = {}
    literals: set[Value] = {None, OTHER}
    for expression in (expected, actual):
        for operand in _operands(expression):
            if isinstance(operand, ColumnRef):
                values.setdefault(operand.name, set())
            elif operand.value is not None:
                literals.add(operand.value)
    names = sorted(values)
    if any(_compares_columns(expression) for expression in (expected, actual)):
        literals |= {OTHER + str(number) for number in range(1, len(names))}
    if len(literals) ** len(names) > _MAX_COMBINATIONS:
        # Columns compared with no literal behave alike for every value that is not NULL.
        literals = {None, OTHER} if not _compares(expected) and not _compares(actual) else literals
        if len(literals) ** len(names) > _MAX_COMBINATIONS:
            raise Unparsable("too many combinations")
    ordered = sorted(literals, key=lambda value: (value is None, (value or "").startswith(OTHER), value or ""))
    result: list[tuple[Mapping[str, Value], bool]] = []
    for combination in itertools.product(ordered, repeat=len(names)):
        row = dict(zip(names, combination, strict=True))
        left, right = _evaluate(expected, row), _evaluate(actual, row)
        if as_check:
            left, right = left is not False, right is not False
        else:  # a predicate selects a row only when it is true
            left, right = left is True, right is True
        if left != right:
            result.append((row, left))
    return result


def _compares(expression: Expression) -> bool:
    if isinstance(expression, Junction):
        return any(_compares(part) for part in expression.parts)
    if isinstance(expression, Not):
        return _compares(expression.inner)
    return isinstance(expression, Compare)


def _compares_columns(expression: Expression) -> bool:
    if isinstance(expression, Junction):
        return any(_compares_columns(part) for part in expression.parts)
    if isinstance(expression, Not):
        return _compares_columns(expression.inner)
    if isinstance(expression, IsNull):
        return False
    return sum(isinstance(operand, ColumnRef) for operand in (expression.operand, *expression.choices)) > 1


def _operands(expression: Expression) -> Iterator[Operand]:
    if isinstance(expression, Junction):
        for part in expression.parts:
            yield from _operands(part)
    elif isinstance(expression, Not):
        yield from _operands(expression.inner)
    elif isinstance(expression, IsNull):
        yield expression.operand
    else:
        yield expression.operand
        yield from expression.choices


def _evaluate(expression: Expression, row: Mapping[str, Value]) -> Truth:
    """SQL's three-valued logic."""
    if isinstance(expression, IsNull):
        return _value(expression.operand, row) is None
    if isinstance(expression, Not):
        inner = _evaluate(expression.inner, row)
        return None if inner is None else not inner
    if isinstance(expression, Compare):
        value = _value(expression.operand, row)
        choices = [_value(choice, row) for choice in expression.choices]
        if not choices:
            return False
        if value is None:
            return None
        if value in choices:
            return True
        return None if None in choices else False
    truths = [_evaluate(part, row) for part in expression.parts]
    deciding = not expression.conjunction
    if deciding in truths:
        return deciding
    return None if None in truths else not deciding


def _value(operand: Operand, row: Mapping[str, Value]) -> Value:
    return row[operand.name] if isinstance(operand, ColumnRef) else operand.value


@dataclass(frozen=True)
class _Token:
    kind: str  # word, name, literal, number, symbol
    text: str


_TOKEN = re.compile(
    r"""\s+
    | (?:_[a-z0-9]+\s*|E)?'(?P<literal>(?:[^'\\]|''|\\.)*)'
    | (?:_[a-z0-9]+\s*)?\\'(?P<escaped>[^'\\]*)\\'
    | `(?P<backtick>(?:[^`]|``)*)`
    | "(?P<double>(?:[^"]|"")*)"
    | (?P<number>\d+(?:\.\d+)?)
    | (?P<word>[A-Za-z_][A-Za-z0-9_$]*)
    | (?P<symbol>::|<>|!=|<=|>=|\|\||&&|[-+*/%<>=(),.\[\]~!@#&|^?:;{}])
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"''|\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", "0": "\0", "b": "\b", "Z": "\x1a", "'": "'", '"': '"', "\\": "\\"}


def _unescaped(match: re.Match[str]) -> str:
    return "'" if match[1] is None else _ESCAPED.get(match[1], match[0])


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None or match.end() == position:
            raise Unparsable(f"cannot read {text[position : position + 20]!r}")
        position = match.end()
        if match["literal"] is not None:
            tokens.append(_Token("literal", _ESCAPE.sub(_unescaped, match["literal"])))
        elif match["escaped"] is not None:
            tokens.append(_Token("literal", match["escaped"]))
        elif match["backtick"] is not None:
            # MySQL and MariaDB, which quote so, ignore the case of a column's name.
            tokens.append(_Token("name", match["backtick"].replace("``", "`").lower()))
        elif match["double"] is not None:
            tokens.append(_Token("name", match["double"].replace('""', '"')))
        elif match["number"]:
            tokens.append(_Token("number", match["number"]))
        elif match["word"]:
            tokens.append(_Token("word", match["word"]))
        elif match["symbol"]:
            tokens.append(_Token("symbol", match["symbol"]))
    return tokens


class _Parser:
    """Recursive descent over the small language: OR, AND, NOT, comparison, operand with casts."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._position = 0

    def disjunction(self) -> Expression:
        return self._junction("or", self._conjunction, conjunction=False)

    def _conjunction(self) -> Expression:
        return self._junction("and", self._negation, conjunction=True)

    def _junction(self, word: str, part: object, *, conjunction: bool) -> Expression:
        assert callable(part)
        parts = [part()]
        while self._accept(word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else Junction(conjunction, tuple(parts))

    def _negation(self) -> Expression:
        if self._accept("not") or self._accept("!"):
            return Not(self._negation())
        return self._predicate()

    def _predicate(self) -> Expression:
        if self._peek("("):
            # Either a boolean expression in parentheses or an operand in them: try the first, then step back.
            start = self._position
            try:
                self._accept("(")
                inner = self.disjunction()
                self._expect(")")
            except Unparsable:
                self._position = start
            else:
                return self._after_boolean(inner)
        operand = self._operand()
        if self._accept("is"):
            negated = self._accept("not")
            self._expect("null")
            return self._after_boolean(Not(IsNull(operand)) if negated else IsNull(operand))
        negated = self._accept("not")
        if self._accept("in"):
            self._expect("(")
            choices = self._list(")")
            compared: Expression = Compare(operand, choices)
            return Not(compared) if negated else compared
        if negated:
            raise Unparsable("NOT before something other than IN")
        if self._accept("="):
            if self._accept("any"):
                return Compare(operand, self._array())
            return Compare(operand, (self._operand(),))
        if self._accept("<>") or self._accept("!="):
            if self._accept("all"):
                return Not(Compare(operand, self._array()))
            return Not(Compare(operand, (self._operand(),)))
        raise Unparsable("not a comparison that can be evaluated")

    def _after_boolean(self, inner: Expression) -> Expression:
        """`(a IS NULL) = (b IS NULL)`: an equality of two truths, which here are never NULL."""
        for symbol, equal in (("=", True), ("<>", False), ("!=", False)):
            if self._peek(symbol):
                self._accept(symbol)
                if not self._peek("("):  # without parentheses MariaDB means (a IS NULL = b) IS NULL
                    raise Unparsable("a comparison of truths without parentheses")
                other = self._predicate()
                if not (_never_null(inner) and _never_null(other)):
                    raise Unparsable("a comparison of truths that may be NULL")
                both = Junction(True, (inner, other))
                neither = Junction(True, (Not(inner), Not(other)))
                same = Junction(False, (both, neither))
                return same if equal else Not(same)
        return inner

    def _array(self) -> tuple[Operand, ...]:
        """ARRAY[…] in any number of parentheses, with casts behind it; or a '{…}' literal with a cast."""
        opened = 0
        while self._accept("("):
            opened += 1
        if self._accept("array"):
            self._expect("[")
            choices = self._list("]")
        else:
            literal = self._operand()
            if not isinstance(literal, Literal) or literal.value is None or not literal.value.startswith("{"):
                raise Unparsable("ANY of something other than an array")
            body = literal.value[1:-1]
            if any(character in body for character in '"\\{}'):
                raise Unparsable("an array literal with quotes")
            items = body.split(",") if body else []
            choices = tuple(Literal(None if item.upper() == "NULL" else item) for item in items)
        self._casts()
        while opened:
            self._expect(")")
            self._casts()
            opened -= 1
        return choices

    def _list(self, end: str) -> tuple[Operand, ...]:
        choices: list[Operand] = []
        while not self._accept(end):
            choices.append(self._operand())
            if not self._peek(end):
                self._expect(",")
        return tuple(choices)

    def _operand(self) -> Operand:
        if self._accept("("):
            operand = self._operand()
            self._expect(")")
            self._casts()
            return operand
        token = self._next()
        operand = self._atom(token)
        self._casts()
        return operand

    def _atom(self, token: _Token) -> Operand:
        if token.kind in ("literal", "number"):
            return Literal(token.text)
        if token.kind == "name":
            return ColumnRef(token.text)
        if token.kind == "word" and token.text.lower() == "null":
            return Literal(None)
        if token.kind == "word" and token.text.lower() not in _RESERVED and not self._peek("("):
            return ColumnRef(token.text.lower())
        raise Unparsable(f"{token.text!r} cannot be evaluated")

    def _casts(self) -> None:
        """Skip ::type; only casts between text types, which change no value compared here."""
        while self._accept("::"):
            words: list[str] = []
            while (
                self._more()
                and (self._at().kind == "word" or self._at().text == ".")
                and self._at().text.lower() not in _RESERVED
            ):
                words.append(self._next().text.lower())
            if self._accept("("):
                # varchar(n) truncates on an explicit cast: then the compared value can change
                raise Unparsable("a cast to a limited length")
            while self._accept("["):
                self._expect("]")
            name = " ".join(words).replace("pg_catalog . ", "")
            if name not in ("text", "character varying", "varchar", "bpchar"):
                raise Unparsable(f"a cast to {name}")

    def _more(self) -> bool:
        return self._position < len(self._tokens)

    def _at(self) -> _Token:
        if not self._more():
            raise Unparsable("ends too early")
        return self._tokens[self._position]

    def _next(self) -> _Token:
        token = self._at()
        self._position += 1
        return token

    def _peek(self, text: str) -> bool:
        if not self._more():
            return False
        token = self._at()
        return token.kind in ("word", "symbol") and token.text.lower() == text

    def _accept(self, text: str) -> bool:
        if self._peek(text):
            self._position += 1
            return True
        return False

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            raise Unparsable(f"{text!r} expected")

    def expect_end(self) -> None:
        if self._more():
            raise Unparsable(f"{self._at().text!r} left over")


_RESERVED = frozenset(
    [
        "and",
        "or",
        "not",
        "in",
        "is",
        "null",
        "any",
        "all",
        "array",
        "like",
        "between",
        "case",
        "when",
        "then",
        "else",
        "end",
        "collate",
        "xor",
    ]
)


def _never_null(expression: Expression) -> bool:
    if isinstance(expression, IsNull):
        return True
    if isinstance(expression, Not):
        return _never_null(expression.inner)
    return isinstance(expression, Junction) and all(_never_null(part) for part in expression.parts)
