"""Read the boolean expressions that MySQL, MariaDB and PostgreSQL print: AND, OR, NOT, =, <>, IN, IS NULL over columns.

Each server's spelling of one rule comes out as the same tree; what is outside that language is Unparsable.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

Value = str | None


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


@dataclass(frozen=True)
class Token:
    """A word, a quoted name, a literal, a number or a symbol."""

    kind: str  # word, name, literal, number, symbol
    text: str


_TOKEN = re.compile(
    r"""\s+
    | (?:_(?P<charset>[a-z0-9]+)\s*|E)?'(?P<literal>(?:[^'\\]|''|\\.)*)'
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


def tokenise(text: str) -> list[Token]:
    """Cut an expression into tokens. Raises Unparsable."""
    tokens: list[Token] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None or match.end() == position:
            raise Unparsable(f"cannot read {text[position : position + 20]!r}")
        position = match.end()
        if match["literal"] is not None:
            # In a charset of two or four bytes a letter these are other characters than the ones that stand there.
            wide = f"{match['charset']}:" if match["charset"] in ("utf16", "utf16le", "utf32", "ucs2") else ""
            tokens.append(Token("literal", wide + _ESCAPE.sub(_unescaped, match["literal"])))
        elif match["escaped"] is not None:
            tokens.append(Token("literal", match["escaped"]))
        elif match["backtick"] is not None:
            # MySQL and MariaDB, which quote so, ignore the case of a column's name.
            tokens.append(Token("name", match["backtick"].replace("``", "`").lower()))
        elif match["double"] is not None:
            tokens.append(Token("name", match["double"].replace('""', '"')))
        elif match["number"]:
            tokens.append(Token("number", match["number"]))
        elif match["word"]:
            tokens.append(Token("word", match["word"]))
        elif match["symbol"]:
            tokens.append(Token("symbol", match["symbol"]))
    return tokens


class _Parser:
    """Recursive descent over the small language: OR, AND, NOT, comparison, operand with casts."""

    def __init__(self, text: str) -> None:
        self._tokens = tokenise(text)
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

    def _atom(self, token: Token) -> Operand:
        if token.kind in ("literal", "number"):
            return Literal(token.text)
        if token.kind == "name":
            return ColumnRef(token.text)
        if token.kind == "word" and token.text.lower() == "null":
            return Literal(None)
        if token.kind == "word" and token.text.lower() not in RESERVED and not self._peek("("):
            return ColumnRef(token.text.lower())
        raise Unparsable(f"{token.text!r} cannot be evaluated")

    def _casts(self) -> None:
        """Skip ::type; only casts between text types, which change no value compared here."""
        while self._accept("::"):
            words: list[str] = []
            while (
                self._more()
                and (self._at().kind == "word" or self._at().text == ".")
                and self._at().text.lower() not in RESERVED
            ):
                words.append(self._next().text.lower())
            if self._accept("("):
                # varchar(n) truncates on an explicit cast: then the compared value can change
                raise Unparsable("a cast to a limited length")
            while self._accept("["):
                self._expect("]")
            name = " ".join(words).replace("pg_catalog . ", "")
            if name not in ("text", "character varying", "varchar"):
                raise Unparsable(f"a cast to {name}")

    def _more(self) -> bool:
        return self._position < len(self._tokens)

    def _at(self) -> Token:
        if not self._more():
            raise Unparsable("ends too early")
        return self._tokens[self._position]

    def _next(self) -> Token:
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


#: Words that are no column names.
RESERVED = frozenset(
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
