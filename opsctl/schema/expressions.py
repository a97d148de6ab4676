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

from opsctl.schema.expression_parser import (
    RESERVED,
    ColumnRef,
    Compare,
    Expression,
    IsNull,
    Junction,
    Not,
    Operand,
    Token,
    Unparsable,
    Value,
    parse,
    tokenise,
)

Truth = bool | None

#: Stands for every value that neither rule names; where columns are compared with each other, there is one for each.
OTHER = "\0other"

_MAX_COMBINATIONS = 20_000


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
        tokens = [_spelled(token) for token in tokenise(text)]
    except Unparsable:
        return text.strip()
    while len(tokens) > 2 and tokens[0] == "(" and _closes(tokens) == len(tokens) - 1:
        tokens = tokens[1:-1]
    return " ".join(tokens)


def _spelled(token: Token) -> str:
    if token.kind == "literal":
        return "'" + token.text.replace("'", "''") + "'"
    if token.kind == "name":
        plain = re.fullmatch(r"[a-z_][a-z0-9_$]*", token.text) and token.text not in RESERVED
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
