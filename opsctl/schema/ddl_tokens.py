"""Cut a CREATE TABLE that the server printed into tokens, and walk along them."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Token:
    """A name in backticks, a string, a word or a symbol, and where it stands in the source."""

    kind: str  # name (backticked), string, word, symbol
    text: str
    start: int
    end: int


_TOKEN = re.compile(
    r"""\s+
    | `(?P<name>(?:[^`]|``)*)`
    | '(?P<string>(?:[^'\\]|''|\\.)*)'
    | /\*M?!\d*|\*/
    | (?P<word>[\w$@.]+)
    | (?P<symbol><=>|<>|!=|<=|>=|\|\||&&|->>|->|[^\s\w])
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "0": "\0", "Z": "\x1a"}


class Cursor:
    """A position in a list of tokens."""

    def __init__(self, tokens: list[Token], source: str) -> None:
        self.tokens = tokens
        self.source = source
        self.position = 0

    def more(self) -> bool:
        """Whether a token is left."""
        return self.position < len(self.tokens)

    def next(self) -> Token:
        """Take the next token. Raises ValueError at the end."""
        if not self.more():
            raise ValueError("ends too early")
        token = self.tokens[self.position]
        self.position += 1
        return token

    def peek(self, *words: str) -> bool:
        """Whether `words` come next."""
        ahead = self.tokens[self.position : self.position + len(words)]
        return len(ahead) == len(words) and all(
            token.kind in ("word", "symbol") and token.text.upper() == word
            for token, word in zip(ahead, words, strict=True)
        )

    def accept(self, *words: str) -> bool:
        """Take `words` if they come next; say whether they did."""
        if self.peek(*words):
            self.position += len(words)
            return True
        return False

    def expect(self, *words: str) -> None:
        """Take `words`. Raises ValueError when something else comes."""
        if not self.accept(*words):
            raise ValueError(f"{' '.join(words)} expected")

    def name(self) -> str:
        """Take a name, in backticks or bare."""
        token = self.next()
        if token.kind not in ("name", "word"):
            raise ValueError(f"a name expected, not {token.text!r}")
        return token.text

    def string(self) -> str:
        """Take a string."""
        token = self.next()
        if token.kind != "string":
            raise ValueError(f"a string expected, not {token.text!r}")
        return token.text

    def parenthesised(self) -> str:
        """Return the source text inside the parenthesis that comes next."""
        return self.source[slice(*self._inside())].strip()

    def parenthesised_cursor(self) -> Cursor:
        """Take the parenthesis that comes next; return a cursor over its inside."""
        first = self.position + 1
        self._inside()
        return Cursor(self.tokens[first : self.position - 1], self.source)

    def _inside(self) -> tuple[int, int]:
        self.expect("(")
        start = self.tokens[self.position - 1].end
        depth = 1
        while depth:
            token = self.next()
            if token.kind == "symbol":
                depth += (token.text == "(") - (token.text == ")")
        return start, self.tokens[self.position - 1].start

    def split(self) -> list[Cursor]:
        """Cut at top-level commas."""
        parts: list[list[Token]] = [[]]
        depth = 0
        for token in self.tokens:
            if token.kind == "symbol":
                depth += (token.text == "(") - (token.text == ")")
                if token.text == "," and depth == 0:
                    parts.append([])
                    continue
            parts[-1].append(token)
        return [Cursor(part, self.source) for part in parts if part]

    def rest(self) -> str:
        """Return the source text that is left."""
        if not self.more():
            return ""
        return self.source[self.tokens[self.position].start : self.tokens[-1].end]


def tokenise(text: str) -> list[Token]:
    """Cut `text` into tokens; version comments (/*!80023 … */) count as their content."""
    tokens: list[Token] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        assert match is not None  # the last alternative takes any character
        kind = match.lastgroup
        if kind == "name":
            tokens.append(Token(kind, match["name"].replace("``", "`"), match.start(), match.end()))
        elif kind == "string":
            value = re.sub(
                r"''|\\(.)",
                lambda found: "'" if found[1] is None else _ESCAPES.get(found[1], found[1]),
                match["string"],
                flags=re.DOTALL,
            )
            tokens.append(Token(kind, value, match.start(), match.end()))
        elif kind is not None:
            tokens.append(Token(kind, match[kind], match.start(), match.end()))
        position = match.end()
    return tokens
