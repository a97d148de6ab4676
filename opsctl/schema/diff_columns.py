"""Compare columns: what each difference does to submit, claim, heartbeat, complete and list."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from opsctl.schema.comparison import Comparison
from opsctl.schema.findings import ERROR, INFO, WARNING, Finding
from opsctl.schema.fix import Fixer
from opsctl.schema.model import Column, Table

_EMPTY_OBJECTS = frozenset(("json_object()", "'{}'", "cast('{}' as json)"))


def compare_columns(c: Comparison) -> Iterator[Finding]:
    """Yield what differs in the columns."""
    expected, live, fixer, fold = c.expected, c.live, c.fixer, c.fold
    there = {fold(column.name): column for column in live.columns}
    for wanted in expected.columns:
        column = there.pop(fold(wanted.name), None)
        if column is None:
            message = "is missing: every statement of onestep that names it fails"
            yield Finding(
                live.name,
                "column",
                wanted.name,
                "existence",
                ERROR,
                _describe(wanted),
                None,
                message,
                fixer.add_column(wanted),
            )
        elif fold(wanted.name) not in c.unread:
            yield from _compare(wanted, column, live, fixer, postgresql=c.postgresql)
    for column in there.values():
        yield _extra(column, live, fixer)


def _extra(column: Column, live: Table, fixer: Fixer) -> Finding:
    if column.filled_by_server:
        message = "is a column that onestep does not know and need not fill"
        return Finding(live.name, "column", column.name, "existence", INFO, None, _describe(column), message)
    message = "is a column that onestep does not know and that has no default: every INSERT of onestep fails"
    return Finding(
        live.name,
        "column",
        column.name,
        "existence",
        ERROR,
        None,
        _describe(column),
        message,
        fixer.make_nullable(column),
    )


def _compare(wanted: Column, column: Column, live: Table, fixer: Fixer, *, postgresql: bool) -> Iterator[Finding]:
    # The fix rewrites the whole column on MySQL, so each finding of one column carries the same.
    fix = fixer.change_column(wanted, column) if _mendable(wanted, column, postgresql=postgresql) else None

    def finding(property_: str, severity: str, values: tuple[str | None, str | None], message: str) -> Finding:
        return Finding(live.name, "column", column.name, property_, severity, values[0], values[1], message, fix)

    if column.type != wanted.type:
        severity, message = _type_meaning(wanted.type, column.type)
        yield finding("type", severity, (wanted.type, column.type), message)
    if column.nullable != wanted.nullable:
        if wanted.nullable:
            message = "may not be NULL: writes of onestep that leave it empty fail"
            yield finding("nullable", ERROR, ("NULL", "NOT NULL"), message)
        else:
            message = "may be NULL: a row without it can be written, which onestep cannot read"
            yield finding("nullable", WARNING, ("NOT NULL", "NULL"), message)
    if not _same_default(wanted, column):
        values = (wanted.default, column.default)
        if column.default is None:
            yield finding("default", ERROR, values, "has lost its default: an INSERT that leaves it out fails")
        else:
            yield finding("default", WARNING, values, "has another default: an INSERT that leaves it out stores that")
    if column.generated is not None or column.identity is not None or column.auto_increment:
        actual = column.generated or column.identity or "AUTO_INCREMENT"
        message = "is computed by the server: the value that onestep writes is refused or lost"
        yield finding("generated", ERROR, (None, actual), message)
    if column.on_update is not None:
        message = "changes itself with every update of its row: onestep's own value is lost"
        yield finding("on_update", ERROR, (None, column.on_update), message)
    if column.invisible:
        message = "is invisible: SELECT * and INSERT without a column list pass it by"
        yield finding("invisible", WARNING, ("visible", "invisible"), message)
    yield from _text_findings(wanted, column, live, finding, postgresql=postgresql)
    if column.comment:
        yield replace(finding("comment", INFO, (None, column.comment), "has a comment"), fix=None)


def _mendable(wanted: Column, column: Column, *, postgresql: bool) -> bool:
    """Whether one ALTER of the column does it: not for computed values, nor for a type that a foreign key holds."""
    if column.generated is not None and not (postgresql and column.generated.endswith("STORED")):
        return False
    return column.type == wanted.type or wanted.name not in ("id", "execution_id")


def _text_findings(
    wanted: Column, column: Column, live: Table, finding: Callable[..., Finding], *, postgresql: bool
) -> Iterator[Finding]:
    if postgresql:
        if column.collation is not None:
            message = "has a collation of its own: comparing it with another text column fails, and its index order is another"
            yield finding("collation", WARNING, (None, column.collation), message)
        return
    table_charset, table_collation = live.options.get("charset", ""), live.options.get("collation", "")
    if wanted.type == column.type == "json" and column.collation is not None:
        message = f"holds its JSON in {column.collation}, not in utf8mb4_bin: what that cannot hold is refused or stored changed"
        yield finding("collation", WARNING, ("utf8mb4_bin", column.collation), message)
    if column.charset is None or wanted.charset is None:
        return
    if column.charset not in (wanted.charset, table_charset):
        message = f"has character set {column.charset}: what that cannot hold is refused or stored changed"
        yield finding("charset", ERROR, (wanted.charset, column.charset), message)
    elif column.charset == wanted.charset != table_charset or column.collation == table_collation:
        return
    else:
        message = "has a collation that is not its table's: keys and names fold in another way, and joins with it can fail or pass by an index"
        yield finding("collation", WARNING, (table_collation, column.collation), message)


def _same_default(wanted: Column, column: Column) -> bool:
    if wanted.default == column.default:
        return True
    if wanted.default in _EMPTY_OBJECTS and column.default is not None:
        return re.sub(r"\s+|_utf8mb4|_utf8mb3", "", column.default.lower()) in {
            form.replace(" ", "") for form in _EMPTY_OBJECTS
        }
    return False


_LENGTH = re.compile(r"^(?:varchar|character varying|char|character)\((\d+)\)$")


def _type_meaning(wanted: str, actual: str) -> tuple[str, str]:
    if wanted.startswith("datetime") and actual.startswith("datetime"):
        digits = actual[9:-1] or "0"
        return ERROR, (
            f"is rounded to {digits} digits of a second: a time can come out later than it was written, so a fresh row is "
            "briefly not due and a lease does not match"
        )
    if wanted == "timestamp with time zone" and actual.startswith("timestamp"):
        if "without" in actual:
            return ERROR, "has no time zone: what a session in another zone writes is off by hours"
        return (
            ERROR,
            "is rounded: a time can come out later than it was written, so a fresh row is briefly not due",
        )
    if wanted == "bigint" and actual.startswith(("int", "integer", "smallint", "mediumint")):
        return ERROR, "is too small for what onestep counts in it: writes fail when it runs over"
    wanted_length, actual_length = _LENGTH.match(wanted), _LENGTH.match(actual)
    if wanted_length and actual_length:
        if int(actual_length[1]) < int(wanted_length[1]):
            return ERROR, f"is too short: a value of more than {actual_length[1]} characters is refused"
        return WARNING, "is longer than onestep's: values pass that onestep and the other tools refuse"
    if wanted == "uuid" or wanted == "char(32)":
        return (
            ERROR,
            "is no uuid column as onestep's: comparing it with an id or lease token fails or finds nothing",
        )
    if wanted == "json" and actual == "longtext":
        return (
            WARNING,
            "has lost its CHECK json_valid: text that is no JSON can be written, which onestep cannot read",
        )
    if wanted in ("json", "jsonb"):
        return ERROR, "is not the JSON type that onestep reads and writes"
    return ERROR, "is another type than onestep's: its values can be refused or come back changed"


def _describe(column: Column) -> str:
    text = f"{column.type} {'NULL' if column.nullable else 'NOT NULL'}"
    text += f" DEFAULT {column.default}" if column.default is not None else ""
    text += f" GENERATED ALWAYS AS {column.generated}" if column.generated else ""
    return text
