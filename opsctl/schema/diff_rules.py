"""Compare what can refuse or change a write: CHECKs, foreign keys, triggers, rules, policies."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from opsctl.schema.comparison import Comparison
from opsctl.schema.expressions import describe, rejected_values, same_check
from opsctl.schema.findings import ERROR, INFO, WARNING, Finding
from opsctl.schema.model import Check, ForeignKey


def compare_checks(c: Comparison) -> Iterator[Finding]:
    """Yield what differs in the CHECKs, by what they admit and refuse."""
    by_name = {c.fold(check.name): check for check in c.live.checks}
    taken: set[str] = set()
    for wanted in c.expected.checks:
        key = c.fold(wanted.name)
        named = by_name.get(key)
        if key in c.unread:
            continue
        if named is None or not same_check(wanted.expression, named.expression):
            other = next(
                (c for k, c in by_name.items() if k not in taken and same_check(wanted.expression, c.expression)),
                None,
            )
            if other is not None:
                taken.add(c.fold(other.name))
                yield c.finding(
                    "check",
                    other.name,
                    "name",
                    INFO,
                    (wanted.name, other.name),
                    f"is the rule {wanted.name} under another name",
                )
                yield from _check_state(c, wanted, other)
                continue
        if named is None:
            message = f"is missing: {_unchecked(wanted)}"
            yield c.finding(
                "check",
                wanted.name,
                "existence",
                WARNING,
                (wanted.expression, None),
                message,
                c.fixer.add_check(wanted),
            )
            continue
        taken.add(key)
        if same_check(wanted.expression, named.expression):
            yield from _check_state(c, wanted, named)
        else:
            yield _changed_check(c, wanted, named)
    for key, check in by_name.items():
        if key not in taken:
            yield _extra_check(c, check)


def _extra_check(c: Comparison, check: Check) -> Finding:
    values = (None, describe(check.expression))
    if not check.enforced:
        return c.finding(
            "check", check.name, "existence", INFO, values, "is a CHECK beside onestep's that is not enforced"
        )
    if any(same_check(wanted.expression, check.expression) for wanted in c.expected.checks):
        message = "is onestep's own CHECK once more: it refuses nothing further"
        return c.finding("check", check.name, "existence", INFO, values, message)
    message = "is a CHECK that onestep does not know: it refuses writes that onestep makes when they do not meet it"
    # MariaDB names a CHECK that stands in a column after the column, and drops it only with a MODIFY of that.
    in_column = not c.postgresql and c.fold(check.name) in {c.fold(column.name) for column in c.live.columns}
    fix = None if in_column else c.fixer.drop_check(check)
    return c.finding("check", check.name, "existence", WARNING, values, message, fix)


def _check_state(c: Comparison, wanted: Check, live: Check) -> Iterator[Finding]:
    fix = c.fixer.replace_check(wanted, live, same_rule=True)
    if not live.enforced:
        message = f"is not enforced: {_unchecked(wanted)}"
        yield c.finding("check", live.name, "enforced", WARNING, ("enforced", "not enforced"), message, fix)
    elif not live.validated:
        message = "is not validated: rows from before may break it"
        yield c.finding("check", live.name, "validated", WARNING, ("validated", "not validated"), message, fix)


def _changed_check(c: Comparison, wanted: Check, live: Check) -> Finding:
    rejected, admitted = rejected_values(wanted.expression, live.expression)
    said = []
    if rejected:
        said.append(f"{_some(rejected)} will be rejected")
    if admitted:
        said.append(f"{_some(admitted)} will be accepted")
    message = "; ".join(said) or "is another rule than onestep's: it can refuse what onestep writes"
    severity = WARNING if admitted and not rejected else ERROR
    fix = c.fixer.replace_check(wanted, live, same_rule=False)
    return c.finding(
        "check", live.name, "expression", severity, (wanted.expression, describe(live.expression)), message, fix
    )


def compare_foreign_keys(c: Comparison) -> Iterator[Finding]:
    """Yield what differs in the foreign keys of this table."""
    by_name = {c.fold(key.name): key for key in c.live.foreign_keys}
    taken: set[str] = set()
    for wanted in c.expected.foreign_keys:
        named_first = sorted(by_name.values(), key=lambda key: c.fold(key.name) != c.fold(wanted.name))
        same = next((key for key in named_first if _same_key(wanted, key, c.fold)), None)
        named = by_name.get(c.fold(wanted.name))
        # On PostgreSQL nobody named the key, so what joins the same columns is meant to be it.
        near = named or next((k for k in by_name.values() if k.columns == wanted.columns), None)
        if same is not None:
            taken.add(c.fold(same.name))
            if c.fold(same.name) != c.fold(wanted.name) and not wanted.server_named:
                yield c.finding(
                    "foreign_key",
                    same.name,
                    "name",
                    INFO,
                    (wanted.name, same.name),
                    f"is the key {wanted.name} under another name",
                )
        elif near is not None:
            taken.add(c.fold(near.name))
            yield c.finding(
                "foreign_key",
                near.name,
                "definition",
                WARNING,
                (wanted.definition, near.definition),
                _key_meaning(wanted, near),
                c.fixer.replace_key(wanted, near),
            )
        elif c.fold(wanted.name) not in c.unread:
            message = "is missing: attempts of executions that do not exist can be written, and a purge leaves attempts behind"
            yield c.finding(
                "foreign_key",
                wanted.name,
                "existence",
                WARNING,
                (wanted.definition, None),
                message,
                c.fixer.add_key(wanted),
            )
    for name, key in by_name.items():
        if name not in taken and any(_same_key(wanted, key, c.fold) for wanted in c.expected.foreign_keys):
            message = "is onestep's own foreign key once more: it refuses nothing further"
            yield c.finding("foreign_key", key.name, "existence", INFO, (None, key.definition), message)
        elif name not in taken:
            message = (
                "is a foreign key that onestep does not know: it refuses writes whose value is not in the other table"
            )
            yield c.finding("foreign_key", key.name, "existence", WARNING, (None, key.definition), message)


def compare_triggers(c: Comparison) -> Iterator[Finding]:
    """Yield triggers, rules and policies: onestep makes none."""
    for trigger in c.live.triggers:
        values = (None, trigger.definition)
        if trigger.name.lower().startswith("pt_osc_"):
            message = "is what pt-online-schema-change left behind (or has at work now): every write goes twice, and fails once its copy is gone"
            yield c.finding(
                "leftover",
                trigger.name,
                "existence",
                WARNING,
                values,
                message,
                c.fixer.drop_trigger(trigger.name, trigger.kind),
            )
        elif trigger.kind == "policy":
            severity = ERROR if "row level security" in c.live.options else INFO
            yield c.finding(
                "trigger",
                trigger.name,
                "policy",
                severity,
                values,
                "is a row level security policy on this table",
            )
        elif not trigger.enabled:
            yield c.finding(
                "trigger",
                trigger.name,
                trigger.kind,
                INFO,
                values,
                f"is a {trigger.kind} that is disabled",
            )
        else:
            message = f"is a {trigger.kind} that onestep does not know: it runs with every write it names and can change or refuse it"
            yield c.finding(
                "trigger",
                trigger.name,
                trigger.kind,
                WARNING,
                values,
                message,
                c.fixer.drop_trigger(trigger.name, trigger.kind),
            )


def _unchecked(check: Check) -> str:
    if "status" in check.expression.split(" ")[0]:
        return "a status that no worker and no list knows can be written"
    return "a key without its digest can be written, which then conflicts with every replay"


def _some(values: list[str], most: int = 4) -> str:
    listed = ", ".join(values[:most])
    return listed if len(values) <= most else f"{listed} and {len(values) - most} more"


def _same_key(wanted: ForeignKey, live: ForeignKey, fold: Callable[[str], str]) -> bool:
    return (
        [fold(c) for c in live.columns] == [fold(c) for c in wanted.columns]
        and fold(live.ref_table) == fold(wanted.ref_table)
        and [fold(c) for c in live.ref_columns] == [fold(c) for c in wanted.ref_columns]
        and (live.on_delete, live.validated, live.enforced, live.triggers_enabled)
        == (wanted.on_delete, wanted.validated, wanted.enforced, wanted.triggers_enabled)
        and _harmless_update(live)
    )


def _harmless_update(live: ForeignKey) -> bool:
    """onestep never changes an id, so ON UPDATE, MATCH and DEFERRABLE of one column could differ; still: another key."""
    return live.on_update in ("NO ACTION", "RESTRICT") and not live.deferrable


def _key_meaning(wanted: ForeignKey, live: ForeignKey) -> str:
    if live.ref_table.lower() != wanted.ref_table.lower():
        return f"points to {live.ref_table}: an attempt of an execution in {wanted.ref_table} is refused"
    if live.on_delete != wanted.on_delete:
        return f"ON DELETE {wanted.on_delete} is lost: deleting an execution that has attempts is refused or leaves them behind"
    if not live.enforced or not live.triggers_enabled:
        return "is not enforced: attempts of executions that do not exist can be written, and a purge leaves attempts behind"
    if not live.validated:
        return "is not validated: attempts from before may belong to no execution"
    return "is another key than onestep's"
