"""Load files of sql/: cut them into statements, rename them for a custom pair.

With the default names a file runs as it is in the server's own client; the tool renames whole identifiers, outside
literals and comments, all at once, so that one new name cannot turn into another.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from opsctl.errors import OpsctlError
from opsctl.resources import find_resource

#: MySQL knows # comments and backslashes in literals, and takes "…" for one; PostgreSQL knows $tag$…$tag$ and E'…'.
_TOKENS = {
    family: re.compile(
        rf"""(?P<comment>{comment}|/\*(?![+!]).*?\*/)
    | (?P<hint>/\*[+!].*?\*/)
    | (?P<literal>{literal})
    | (?P<quoted>{quoted})
    | (?P<word>[A-Za-z_][A-Za-z0-9_$]*)
    | (?P<bind>(?<![:\w]):[A-Za-z_]\w*)
    | (?P<other>::|.)
    """,
        re.VERBOSE | re.DOTALL,
    )
    for family, comment, literal, quoted in (
        (
            "mysql",
            r"(?:--(?=\s)|\#)[^\n]*(?:\n|$)",
            r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"",
            r"`(?:[^`]|``)*`",
        ),
        (
            "postgresql",
            r"--[^\n]*(?:\n|$)",
            r"(?<!\w)[Ee]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|(?<![\w$])\$(?P<tag>[A-Za-z_]\w*|)\$.*?\$(?P=tag)\$",
            r"\"(?:[^\"]|\"\")*\"",
        ),
    )
}
_SECTION = re.compile(r"^--\s*@(?P<name>\w+)\s*$")


@dataclass(frozen=True)
class SchemaFile:
    """A DDL file: for each section ("executions", "attempts") its statements, in order, without the semicolon."""

    path: Path
    family: str
    sections: Mapping[str, tuple[str, ...]]

    def renamed(self, names: Mapping[str, str], quote: Callable[[str], str]) -> SchemaFile:
        """Return the file with each identifier of `names` replaced by its quoted new name."""
        return SchemaFile(
            self.path,
            self.family,
            {
                section: tuple(rename(statement, names, quote, self.family) for statement in statements)
                for section, statements in self.sections.items()
            },
        )


def load_schema_file(dialect: str, name: str) -> SchemaFile:
    """Load sql/<dialect>/schema/<name>. What stands before the first section and after `-- @end` is for the client only."""
    path = find_resource("sql") / dialect / "schema" / name
    family = family_of(dialect)
    sections = {section: tuple(split_statements(text, family)) for section, text in read_sections(path).items()}
    return SchemaFile(path, family, sections)


def read_sections(path: Path) -> dict[str, str]:
    """Return the text of each section of a file of sql/, comments included. Raises OpsctlError when it cannot be read."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise OpsctlError(
            f"{path} cannot be read: {error.strerror}", "reinstall opsctl: its installation is damaged"
        ) from None
    sections: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in text.splitlines(keepends=True):
        if match := _SECTION.match(line):
            current = None if match["name"] == "end" else sections.setdefault(match["name"], [])
        elif current is not None:
            current.append(line)
    return {name: "".join(lines) for name, lines in sections.items()}


def family_of(dialect: str) -> str:
    """Return whose rules of writing SQL a directory of sql/ follows: MariaDB's are MySQL's."""
    return "postgresql" if dialect == "postgresql" else "mysql"


def tokens(text: str, family: str) -> Iterator[re.Match[str]]:
    """Yield the tokens of `text` (groups comment, literal, quoted, word, bind, other) by the rules of "mysql" or "postgresql"."""
    return _TOKENS[family].finditer(text)


def split_statements(text: str, family: str) -> list[str]:
    """Cut `text` at semicolons outside literals, quoted names and comments; comments are dropped."""
    statements: list[str] = []
    current: list[str] = []
    for match in tokens(text, family):
        if match["other"] == ";":
            statements.append("".join(current).strip())
            current = []
        elif match["comment"] is None:
            current.append(match[0])
        else:
            current.append("\n" if match[0].endswith("\n") else " ")
    statements.append("".join(current).strip())
    return [statement for statement in statements if statement]


def rename(statement: str, names: Mapping[str, str], quote: Callable[[str], str], family: str) -> str:
    """Replace each bare or quoted identifier that `names` maps to another one."""

    def replacement(match: re.Match[str]) -> str:
        if match["word"] is None and match["quoted"] is None:
            return match[0]
        identifier = match["word"] or match["quoted"][1:-1]
        new = names.get(identifier, identifier)
        return match[0] if new == identifier else quote(new)

    return _TOKENS[family].sub(replacement, statement)
