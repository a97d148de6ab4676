"""Compare indexes, unique constraints and the primary key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from opsctl.schema.comparison import Comparison
from opsctl.schema.diff_operational import about_hidden, is_operational
from opsctl.schema.expressions import describe, same_meaning
from opsctl.schema.findings import ERROR, INFO, WARNING, Finding
from opsctl.schema.model import Index, IndexPart


def compare_indexes(c: Comparison) -> Iterator[Finding]:
    """Yield what differs in the indexes: first those under their own name, then by what they do."""
    by_name = {c.fold(index.name): index for index in c.live.indexes}
    taken: set[str] = set()
    open_: list[Index] = []
    for wanted in c.expected.indexes:
        same = by_name.get(_index_key(c, wanted))
        if same is not None and _same_index(c, wanted, same):
            taken.add(c.fold(same.name))
            yield from _index_details(c, wanted, same)
        elif c.fold(wanted.name) not in c.unread:
            open_.append(wanted)
    for wanted in open_:
        others = (index for name, index in by_name.items() if name not in taken)
        other = next((index for index in others if _same_index(c, wanted, index)), None)
        named = by_name.get(_index_key(c, wanted))
        if other is not None:
            taken.add(c.fold(other.name))
            if not wanted.server_named:
                yield c.finding(
                    "index",
                    other.name,
                    "name",
                    INFO,
                    (wanted.name, other.name),
                    f"does the work of {wanted.name} under another name",
                )
        elif named is not None:
            taken.add(c.fold(named.name))
            yield _changed_index(c, wanted, named)
        else:
            yield _missing_index(c, wanted)
    for name, index in by_name.items():
        if name not in taken and not is_operational(c, index):
            yield _extra_index(c, index)


def _definition(live: Index) -> str:
    """What the index is, its predicate in the plain spelling."""
    return replace(live, predicate=describe(live.predicate)).definition if live.predicate else live.definition


def _index_key(c: Comparison, wanted: Index) -> str:
    """A primary key is found by being one, whatever it is called."""
    if wanted.primary:
        return next((c.fold(i.name) for i in c.live.indexes if i.primary), "")
    return c.fold(wanted.name)


def _same_index(c: Comparison, wanted: Index, live: Index) -> bool:
    return not _index_differences(c, wanted, live)


def _index_differences(c: Comparison, wanted: Index, live: Index) -> list[str]:
    differences = []
    if wanted.unique != live.unique:
        differences.append("unique")
    if _parts(c, wanted.parts) != _parts(c, live.parts):
        differences.append("columns")
    if not same_meaning(wanted.predicate, live.predicate):
        differences.append("predicate")
    for name in ("primary", "method", "nulls_not_distinct", "visible", "valid", "deferrable"):
        if getattr(wanted, name) != getattr(live, name):
            differences.append(name)
    if live.include:
        # A large value in it no longer fits into the index, and the write is refused.
        differences.append("include")
    return differences


def _parts(c: Comparison, parts: Sequence[IndexPart]) -> list[IndexPart]:
    return [replace(part, name=c.fold(part.name)) for part in parts]


def _index_details(c: Comparison, wanted: Index, live: Index) -> Iterator[Finding]:
    if live.comment:
        yield c.finding("index", live.name, "comment", INFO, (None, live.comment), "has a comment")
    if wanted.constraint != live.constraint and not wanted.primary:
        forms = tuple("a constraint" if index.constraint else "an index" for index in (wanted, live))
        message = f"the same rule as {forms[1]} where onestep makes it as {forms[0]}"
        yield c.finding("index", live.name, "constraint", INFO, (forms[0], forms[1]), message)


def _changed_index(c: Comparison, wanted: Index, live: Index) -> Finding:
    differences = _index_differences(c, wanted, live)
    if differences == ["visible"] and (hidden := about_hidden(c, wanted, live)) is not None:
        return hidden
    if differences == ["visible"]:
        message = f"is hidden from the optimizer: {wanted.meaning}"
    elif differences == ["valid"]:
        message = f"is invalid, left by a build that failed or is still under way: {wanted.meaning}"
    else:
        message = f"is another index than onestep's ({', '.join(differences)} differ): {wanted.meaning}"
    severity = ERROR if wanted.unique else WARNING
    values = (wanted.definition, _definition(live))
    return c.finding(
        "index",
        live.name,
        differences[0],
        severity,
        values,
        message,
        None if wanted.primary else c.fixer.replace_index(wanted, live),
    )


def _missing_index(c: Comparison, wanted: Index) -> Finding:
    severity = ERROR if wanted.unique else WARNING
    return c.finding(
        "index",
        wanted.name,
        "existence",
        severity,
        (wanted.definition, None),
        f"is missing: {wanted.meaning}",
        c.fixer.create_index(wanted),
    )


def _extra_index(c: Comparison, live: Index) -> Finding:
    values = (None, _definition(live))
    if live.name.endswith(("_ccnew", "_ccold")) or ("_ccnew" in live.name and not live.valid):
        message = "is what a REINDEX CONCURRENTLY left behind: it slows every write and serves no read"
        return c.finding("leftover", live.name, "existence", WARNING, values, message, c.fixer.drop_index(live))
    if not live.valid:
        message = (
            "is invalid, left by a build that failed or is still under way: it slows every write and serves no read"
        )
        return c.finding("index", live.name, "valid", WARNING, values, message, c.fixer.drop_index(live))
    if live.unique:
        message = "is a unique index that onestep does not know: a submit, claim or attempt that repeats its columns is refused"
        return c.finding("index", live.name, "existence", ERROR, values, message, c.fixer.drop_index(live))
    return c.finding(
        "index",
        live.name,
        "existence",
        INFO,
        values,
        "is an index beside onestep's: it costs each write a little",
    )
