"""The answer of verify-schema as text for a terminal."""

from __future__ import annotations

import shutil
import textwrap
from collections import Counter

import click

from opsctl.render.escapes import escape_controls
from opsctl.schema.expected import VERSION_TITLE
from opsctl.schema.findings import ERROR, INFO, SEVERITIES, WARNING, Finding
from opsctl.schema.verify import DRIFT, MATCH, UNKNOWN, Verification

_KINDS = {kind: f"{kind} " for kind in ("column", "index", "check", "trigger")} | {
    "foreign_key": "foreign key ",
    "table": "table ",
    "leftover": "",
}
_COLOURS = {ERROR: "red", WARNING: "yellow", INFO: "cyan"}


def render_verification(verification: Verification, fail_on: str = WARNING, *, colour: bool = False) -> str:
    """Return the answer of verify-schema: for each table what differs, what it does, and the fix; the verdict last."""
    where = f", schema {verification.schema}" if verification.schema else ""
    lines = [f"{verification.target}{where} ({verification.server})"]
    for table in (verification.pair.executions, verification.pair.attempts):
        findings = [finding for finding in verification.findings if finding.table == table]
        unread = [fact for name, fact in verification.unread if name == table]
        lines += ["", table if findings or unread else f"{table}: as expected"]
        for finding in findings:
            lines += _finding(finding, colour)
        for fact in unread:
            lines += _wrapped(f"  unread   {fact.object} {fact.property}: {fact.reason}", 11)
    return "\n".join([*lines, "", _verdict(verification, fail_on, colour)])


def _verdict(verification: Verification, fail_on: str, colour: bool) -> str:
    counts = Counter(finding.severity for finding in verification.findings)
    said = [f"{counts[name]} {_plural(name, counts[name])}" for name in SEVERITIES if counts[name]]
    if verification.unread:
        said.append(f"{len(verification.unread)} unread")
    verdict = verification.verdict
    text = (
        click.style(verdict, fg={MATCH: "green", DRIFT: "red"}.get(verdict, "yellow"), bold=True) if colour else verdict
    )
    if verification.matches_version:
        text += f": {VERSION_TITLE}"
        text += f", ids as {verification.made_by} makes them" if verification.made_by else ""
    text += f" ({', '.join(said)})" if said else ""
    if verdict == UNKNOWN:
        text += ": all that could be read is as expected"
    if verification.fails(fail_on) != (verdict == DRIFT):
        text += f"; --fail-on {fail_on} makes the exit code {int(verification.fails(fail_on))}"
    return text


def _plural(severity: str, count: int) -> str:
    return severity if count == 1 or severity == INFO else f"{severity}s"


def _finding(finding: Finding, colour: bool) -> list[str]:
    label = f"{finding.severity:<8}"
    if colour:
        label = click.style(label, fg=_COLOURS[finding.severity])
    lines = _wrapped(f"{_KINDS[finding.kind]}{finding.object}: {finding.message}", 11)
    lines[0] = f"  {label} {lines[0].lstrip()}"
    for name, value in (("expected", finding.expected), ("actual", finding.actual)):
        if finding.severity != INFO:
            lines += [f"{'':11}{name:<9}{escape_controls(value) if value is not None else '(nothing)'}"]
    if finding.fix:
        lines += [f"{'':11}{'fix':<9}{escape_controls(finding.fix)}".replace("\n", "\n" + " " * 20)]
    return lines


def _wrapped(text: str, indent: int) -> list[str]:
    width = max(40, min(shutil.get_terminal_size((120, 24)).columns, 120))
    return textwrap.wrap(
        escape_controls(text),
        width,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
        initial_indent=" " * indent if not text.startswith(" ") else "",
    )
