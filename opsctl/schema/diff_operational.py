"""Compare what stands of the operational indexes with what they should be, and with the record of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from opsctl.schema.comparison import Comparison
from opsctl.schema.expressions import describe
from opsctl.schema.findings import INFO, WARNING, Finding
from opsctl.schema.model import Index
from opsctl.schema.operational import Operational

APPLY = "opsctl tune apply makes it"


def is_operational(c: Comparison, live: Index) -> bool:
    """Whether `live` is an operational index by its name, or does the work of one; compare_operational speaks of it."""
    return any(_belongs(c, item, live) for item in c.operational)


def about_hidden(c: Comparison, wanted: Index, live: Index) -> Finding | None:
    """Return what a hidden stock index is: info when opsctl hid it and its replacement stands; None for any other."""
    item = next((item for item in c.operational if item.hides and c.fold(item.hides) == c.fold(live.name)), None)
    if item is None:
        return None
    place = next(other for other in c.operational if other.name == item.needs)
    values = (wanted.definition, live.definition)
    if not place.holds_in(c.live):
        message = f"is hidden from the optimizer, and {place.object} does not stand in its place: {wanted.meaning}"
    elif c.recorded is None:
        return c.finding("index", live.name, "visible", INFO, values, f"is hidden; {place.object} stands in its place")
    elif item.name not in c.recorded:
        message = (
            f"is hidden from the optimizer and no record says that opsctl did it; {place.object} stands in its place: "
            "opsctl tune apply --only hide-claim puts it on record"
        )
    else:
        return c.finding(
            "index", live.name, "visible", INFO, values, f"is hidden on purpose: {place.object} stands in its place"
        )
    return c.finding("index", live.name, "visible", WARNING, values, message, c.fixer.replace_index(wanted, live))


def compare_operational(c: Comparison) -> Iterator[Finding]:
    """Yield what there is to say of each operational index: there (info), not what it should be, or gone."""
    for item in c.operational:
        found = [live for live in c.live.indexes if _belongs(c, item, live)]
        yield from (_about(c, item, live) for live in found)
        if item.name in (c.recorded or ()) and not item.holds_in(c.live):
            if item.hides and any(c.fold(live.name) == c.fold(item.hides) for live in c.live.indexes):
                message = "was hidden by opsctl tune and is in sight again: claims walk past finished rows as soon as some rows wait"
                yield c.finding(
                    "index", item.hides, "visible", WARNING, ("hidden", "visible"), message, f"{item.statement};"
                )
            elif item.index is not None and not found:
                message = (
                    f"is on record and missing: {', '.join(item.serves)} read far more rows than they want; {APPLY}"
                )
                values = (item.index.definition, None)
                yield c.finding("index", item.object, "existence", WARNING, values, message, f"{item.statement};")


def _belongs(c: Comparison, item: Operational, live: Index) -> bool:
    if item.index is None or live.unique:
        return False
    return c.fold(live.name) == c.fold(item.object) or (
        live.valid and live.visible and not _is_stock(c, live) and item.does_the_work(live)
    )


def _is_stock(c: Comparison, live: Index) -> bool:
    return any(c.fold(live.name) == c.fold(wanted.name) for wanted in c.expected.indexes)


def _about(c: Comparison, item: Operational, live: Index) -> Finding:
    assert item.index is not None
    actual = (replace(live, predicate=describe(live.predicate)) if live.predicate else live).definition
    serves = ", ".join(item.serves)
    if not item.does_the_work(live):
        message = f"is another index than opsctl makes under that name, for {serves}; every write pays for it"
        values = (item.index.definition, actual)
        return c.finding("index", live.name, "columns", WARNING, values, message, c.fixer.drop_index(live))
    if not live.valid:
        message = f"is invalid, left by a build that failed or is still under way: it slows every write and serves nothing; {APPLY} anew"
        return c.finding(
            "index", live.name, "valid", WARNING, (item.index.definition, actual), message, c.fixer.drop_index(live)
        )
    if not live.visible:
        message = f"is hidden from the optimizer: it slows every write and serves nothing; {APPLY} visible"
        return c.finding(
            "index", live.name, "visible", WARNING, (item.index.definition, actual), message, c.fixer.drop_index(live)
        )
    other = "" if c.fold(live.name) == c.fold(item.object) else f", as {item.object} would"
    message = f"is an operational index: it serves {serves}{other}"
    return c.finding("index", live.name, "existence", INFO, (None, actual), message)
