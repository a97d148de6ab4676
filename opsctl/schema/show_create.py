"""Read what SHOW CREATE TABLE prints, on MySQL and MariaDB, into a Table.

The session prints it with backticks (sql_quote_show_create=1, no ANSI_QUOTES: dialects/mysql.py). What this reader does
not know it does not guess: the object it stands in becomes an Unread fact.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from opsctl.schema.ddl_tokens import Cursor, tokenise
from opsctl.schema.model import Check, Column, ForeignKey, Index, IndexPart, Table, Unread


def parse_show_create(text: str, *, default_collation: Callable[[str], str]) -> Table:
    """Return the table that `text` creates. `default_collation` maps a charset to its default collation.

    Raises ValueError when `text` is not the CREATE TABLE of a base table.
    """
    return _Reader(text, default_collation).table()


@dataclass
class _Parts:
    columns: list[Column] = field(default_factory=list)
    indexes: list[Index] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    keys: list[ForeignKey] = field(default_factory=list)
    unread: list[Unread] = field(default_factory=list)
    json_columns: set[str] = field(default_factory=set)


def _label(part: Cursor) -> str:
    """Return the name of what `part` defines; the words before the parenthesis for what has no name."""
    if part.tokens[0].kind == "word" and part.tokens[0].text.upper() == "PRIMARY":
        return "PRIMARY"
    words: list[str] = []
    for token in part.tokens:
        if token.kind == "name":
            return token.text
        if token.text == "(":
            break
        words.append(token.text)
    return " ".join(words) or part.tokens[0].text


class _Reader:
    def __init__(self, text: str, default_collation: Callable[[str], str]) -> None:
        self._cursor = Cursor(tokenise(text), text)
        self._default_collation = default_collation
        self._parts = _Parts()

    def table(self) -> Table:
        cursor = self._cursor
        cursor.expect("CREATE")
        cursor.accept("TEMPORARY")
        cursor.expect("TABLE")
        name = cursor.name()
        body = cursor.parenthesised_cursor()
        for part in body.split():
            self._part(part)
        options: dict[str, str] = {}
        try:
            while cursor.more():
                self._option(cursor, options)
        except ValueError as error:
            self._parts.unread.append(Unread(name, "options", str(error)))
        charset = options.get("charset", "")
        collation = options.setdefault("collation", self._default_collation(charset) if charset else "")
        parts = self._parts
        columns = [self._finish(column, charset, collation) for column in parts.columns]
        return Table(
            name=name,
            columns=tuple(columns),
            indexes=tuple(parts.indexes),
            checks=tuple(parts.checks),
            foreign_keys=tuple(parts.keys),
            options=options,
            unread=tuple(parts.unread),
        )

    def _part(self, part: Cursor) -> None:
        first = part.tokens[0]
        try:
            if first.kind == "name":
                self._column(part)
            else:
                self._key_or_constraint(part)
            if part.more():
                raise ValueError(f"{part.rest()!r} is unknown to this version of opsctl")
        except ValueError as error:
            label = _label(part)
            self._parts.unread.append(Unread(label, "definition", str(error)))

    def _column(self, part: Cursor) -> None:
        name = part.name()
        column = Column(name, _column_type(part), nullable=True)
        # An unknown attribute leaves the column half read: keep what is known, and say so.
        self._parts.columns.append(column)
        try:
            while part.more():
                column = self._attribute(column, part)
        finally:
            self._parts.columns[-1] = column

    def _attribute(self, column: Column, part: Cursor) -> Column:
        if part.accept("NOT", "NULL"):
            return replace(column, nullable=False)
        if part.accept("NULL"):
            return replace(column, nullable=True)
        if part.accept("CHARACTER", "SET"):
            return replace(column, charset=part.name())
        if part.accept("COLLATE"):
            return replace(column, collation=part.name())
        if part.accept("GENERATED", "ALWAYS", "AS", "ROW"):
            return replace(column, generated=f"ROW {part.name().upper()}")
        if part.accept("GENERATED", "ALWAYS", "AS") or part.accept("AS"):
            expression = part.parenthesised()
            kind = "STORED" if part.accept("STORED") or part.accept("PERSISTENT") else "VIRTUAL"
            part.accept("VIRTUAL")
            return replace(column, generated=f"({expression}) {kind}")
        if part.accept("WITHOUT", "SYSTEM", "VERSIONING") or part.accept("WITH", "SYSTEM", "VERSIONING"):
            return column  # says only whether a versioned table keeps this column's history
        if part.accept("DEFAULT"):
            return replace(column, default=_default(part))
        if part.accept("ON", "UPDATE"):
            return replace(column, on_update=_function(part))
        if part.accept("AUTO_INCREMENT"):
            return replace(column, auto_increment=True)
        if part.accept("COLUMN_FORMAT") or part.accept("STORAGE") or part.accept("SRID"):
            part.next()
            return column
        if part.accept("NOT", "SECONDARY") or part.accept("COMPRESSED"):
            return column
        if part.accept("INVISIBLE"):
            return replace(column, invisible=True)
        if part.accept("COMMENT"):
            return replace(column, comment=part.string())
        if part.accept("CHECK"):
            expression = part.parenthesised()
            json = _JSON_CHECK.fullmatch(expression)
            if json is not None and json["name"].lower() == column.name.lower() and column.type == "longtext":
                self._parts.json_columns.add(column.name)
            else:
                self._parts.checks.append(Check(column.name, expression))
            return column
        raise ValueError(f"{part.rest()!r} is unknown to this version of opsctl")

    def _key_or_constraint(self, part: Cursor) -> None:
        name = part.name() if part.accept("CONSTRAINT") else ""
        if part.accept("PRIMARY", "KEY"):
            self._parts.indexes.append(_index(part, "PRIMARY", unique=True, primary=True))
        elif part.accept("UNIQUE", "KEY") or part.accept("UNIQUE", "INDEX"):
            self._parts.indexes.append(_index(part, part.name(), unique=True))
        elif part.accept("FULLTEXT", "KEY"):
            self._parts.indexes.append(_index(part, part.name(), method="fulltext"))
        elif part.accept("SPATIAL", "KEY"):
            self._parts.indexes.append(_index(part, part.name(), method="spatial"))
        elif part.accept("VECTOR", "KEY"):
            self._parts.indexes.append(_index(part, part.name(), method="vector"))
        elif part.accept("KEY") or part.accept("INDEX"):
            self._parts.indexes.append(_index(part, part.name()))
        elif part.accept("FOREIGN", "KEY"):
            self._parts.keys.append(_foreign_key(part, name))
        elif part.accept("CHECK"):
            expression = part.parenthesised()
            enforced = not part.accept("NOT", "ENFORCED")
            self._parts.checks.append(Check(name, expression, enforced=enforced))
        else:
            raise ValueError(f"{part.rest()!r} is unknown to this version of opsctl")

    def _option(self, cursor: Cursor, options: dict[str, str]) -> None:
        if cursor.accept("PARTITION", "BY"):
            options["partitions"] = cursor.rest()
            cursor.position = len(cursor.tokens)
            return
        if cursor.accept("WITH", "SYSTEM", "VERSIONING"):
            options["system versioning"] = "on"
            return
        cursor.accept("DEFAULT")
        key = cursor.name().lower()
        if key == "character" and cursor.accept("SET"):
            key = "charset"
        if key in ("data", "index") and cursor.accept("DIRECTORY"):
            key += " directory"
        cursor.accept("=")
        options[{"collate": "collation"}.get(key, key)] = _option_value(cursor)

    def _finish(self, column: Column, table_charset: str, table_collation: str) -> Column:
        """Give a text column the charset and collation that it inherits, and JSON its name on MariaDB."""
        # Only MariaDB prints a CHECK in the column, and only there is json this longtext.
        if column.name in self._parts.json_columns:
            column = replace(column, type="json")
            # utf8mb4_bin, unless somebody converted the whole table: then JSON goes with it.
            if (column.charset or table_charset) == "utf8mb4" and column.collation in (
                None,
                "utf8mb4_bin",
                table_collation,
            ):
                return replace(column, charset=None, collation=None)
        elif not column.type.startswith(_TEXT_TYPES):
            return replace(column, charset=None, collation=None)
        collation = column.collation
        if collation is None:
            collation = self._default_collation(column.charset) if column.charset else table_collation
        charset = column.charset or (collation.split("_")[0] if column.collation else table_charset)
        return replace(column, charset=charset, collation=collation)


_JSON_CHECK = re.compile(r"\(*json_valid\(`(?P<name>[^`]+)`\)\)*", re.IGNORECASE)
_TEXT_TYPES = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set")
_DISPLAY_WIDTH = re.compile(r"^(?!tinyint\(1\)$)(tinyint|smallint|mediumint|int|bigint)\(\d+\)")


def _column_type(part: Cursor) -> str:
    text = part.next().text.lower()
    if text == "double" and part.accept("PRECISION"):
        text = "double"
    if part.peek("("):
        # White space in the values of an enum stays.
        text += (
            "("
            + re.sub(r"('(?:[^'\\]|''|\\.)*')|\s+", lambda m: m[1] or "", part.parenthesised(), flags=re.DOTALL)
            + ")"
        )
    # A display width (int(11)) says nothing about what the column holds, but for tinyint(1), by custom a boolean.
    text = _DISPLAY_WIDTH.sub(r"\1", text)
    for word in ("UNSIGNED", "ZEROFILL"):
        if part.accept(word):
            text += f" {word.lower()}"
    return text


def _default(part: Cursor) -> str | None:
    if part.accept("NULL"):
        return None
    if part.peek("("):
        return _bare(part.parenthesised())
    token = part.next()
    if token.kind == "string":
        return token.text if re.fullmatch(r"-?\d+", token.text) else _literal(token.text)
    if token.text in ("-", "+"):
        return token.text + part.next().text
    if token.kind == "word" and part.peek("("):
        return f"{token.text.lower()}({part.parenthesised()})"
    if token.kind == "word" and part.more() and part.tokens[part.position].kind == "string":
        # an introducer says nothing; b'0' and x'00' are other values than '0' and '00'
        value = _literal(part.string())
        return value if token.text.startswith("_") else token.text.lower() + value
    if token.kind not in ("word", "name"):
        raise ValueError(f"the default {token.text!r} is unknown to this version of opsctl")
    return token.text.lower()


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _bare(expression: str) -> str:
    """A default expression without the parentheses and introducers that the server adds."""
    text = expression.strip()
    while text.startswith("(") and text.endswith(")") and text.count("(") == text.count(")"):
        depth = 0
        for position, character in enumerate(text):
            depth += (character == "(") - (character == ")")
            if depth == 0 and position < len(text) - 1:
                return text
        text = text[1:-1].strip()
    return re.sub(r"^_[a-z0-9]+(?=')", "", text)


def _function(part: Cursor) -> str:
    text = part.next().text.lower()
    return f"{text}({part.parenthesised()})" if part.peek("(") else text


def _index(part: Cursor, name: str, *, unique: bool = False, primary: bool = False, method: str = "btree") -> Index:
    if part.accept("USING"):
        method = part.name().lower()
    index = Index(
        name,
        tuple(_index_part(p) for p in part.parenthesised_cursor().split()),
        unique,
        primary,
        method=method,
    )
    while part.more():
        if part.accept("USING"):
            index = replace(index, method=part.name().lower())
        elif part.accept("INVISIBLE") or part.accept("IGNORED"):
            index = replace(index, visible=False)
        elif part.accept("VISIBLE") or part.accept("NOT", "IGNORED"):
            pass
        elif part.accept("COMMENT"):
            index = replace(index, comment=part.string())
        elif (
            part.accept("KEY_BLOCK_SIZE")
            or part.accept("ENGINE_ATTRIBUTE")
            or part.accept("SECONDARY_ENGINE_ATTRIBUTE")
        ):
            part.accept("=")
            part.next()
        elif part.accept("WITH", "PARSER"):
            part.name()
        else:
            raise ValueError(f"{part.rest()!r} is unknown to this version of opsctl")
    return index


def _index_part(part: Cursor) -> IndexPart:
    if part.peek("("):
        result = IndexPart(_bare(part.parenthesised()), expression=True)
    else:
        result = IndexPart(part.name())
        if part.peek("("):
            result = replace(result, prefix=int(part.parenthesised()))
    if part.accept("DESC"):
        result = replace(result, descending=True)
    part.accept("ASC")
    if part.more():
        raise ValueError(f"{part.rest()!r} is unknown to this version of opsctl")
    return result


def _foreign_key(part: Cursor, name: str) -> ForeignKey:
    columns = tuple(p.name() for p in part.parenthesised_cursor().split())
    part.expect("REFERENCES")
    table = part.name()
    if part.accept("."):
        table = f"{table}.{part.name()}"
    ref_columns = tuple(p.name() for p in part.parenthesised_cursor().split())
    actions = {"DELETE": "NO ACTION", "UPDATE": "NO ACTION"}
    while part.accept("ON"):
        event = part.name().upper()
        if event not in actions:
            raise ValueError(f"ON {event} is unknown to this version of opsctl")
        words = [part.name().upper()]
        if words[0] in ("SET", "NO"):
            words.append(part.name().upper())
        # InnoDB checks at once: RESTRICT and NO ACTION are one.
        action = " ".join(words)
        actions[event] = "NO ACTION" if action == "RESTRICT" else action
    return ForeignKey(name, columns, table, ref_columns, on_delete=actions["DELETE"], on_update=actions["UPDATE"])


def _option_value(cursor: Cursor) -> str:
    if cursor.peek("("):
        return f"({cursor.parenthesised()})"
    return cursor.next().text
