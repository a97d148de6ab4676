"""Write the reference from the tool itself: python docs/reference/generate.py. A test holds the two together."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
WIDTH = 100

sys.path.insert(0, str(ROOT))
os.environ["COLUMNS"] = str(WIDTH)

import click  # noqa: E402

from opsctl import errors  # noqa: E402
from opsctl.cli.main import cli  # noqa: E402
from opsctl.config.keys import FAMILY_PREFIX, KEYS  # noqa: E402
from opsctl.queryfiles import Query, load_catalogue  # noqa: E402

NOTE = "<!-- Written by docs/reference/generate.py; a test compares it with the tool. -->\n"
DIALECTS = {"mysql": "MySQL", "mariadb": "MariaDB", "postgresql": "PostgreSQL"}
MEANINGS = {
    0: "yes: it is so, or it was done, or there was nothing to do",
    1: "the answer is no: drift, a failed check, findings",
    2: "usage or configuration: a flag, a variable, a file, a name; nothing was contacted",
    3: "the database cannot be reached, does not let us in, or did not answer in time",
    4: "the database refused a statement: a right that is missing, a table that is not there",
    5: "a guard of opsctl refused (a server that is too old, a large table without `--allow-scan`, nobody to ask), or you declined",
    6: "could not tell: a fact that the answer needs could not be read; 1 wins over 6",
    70: "a bug of opsctl: please report it",
    130: "Ctrl-C",
    141: "whoever read the output closed it",
    143: "SIGTERM",
}


def commands() -> Iterator[tuple[str, click.Command]]:
    """Yield every command and subcommand with its whole name."""

    def below(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
        context = click.Context(group)
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert command is not None
            yield f"{path} {name}", command
            if isinstance(command, click.Group):
                yield from below(command, f"{path} {name}")

    yield "opsctl", cli
    yield from below(cli, "opsctl")


def help_of(path: str, command: click.Command) -> str:
    """Return what `<path> --help` prints."""
    context = click.Context(
        command, info_name=path, terminal_width=WIDTH, max_content_width=WIDTH, help_option_names=["-h", "--help"]
    )
    return command.get_help(context)


def commands_page() -> str:
    """Return commands.md."""
    parts = ["# Commands", NOTE.strip()]
    for path, command in commands():
        parts.append(f"## {path}\n\n```text\n{help_of(path, command).rstrip()}\n```")
    return "\n\n".join(parts) + "\n"


def exit_codes_page() -> str:
    """Return exit-codes.md."""
    lines = ["# Exit codes", "", NOTE.strip(), "", "| code | meaning |", "|---|---|"]
    lines += [f"| {code} | {meaning} |" for code, meaning in MEANINGS.items()]
    lines += [
        "",
        "Every error is two lines on stderr: what failed, naming the object, and what to do. `--debug` adds the traceback.",
        "stdout holds data only, so a script may trust that what it read is whole when the code is 0 or 1.",
    ]
    assert {error.exit_code for error in errors.OpsctlError.__subclasses__()} <= set(MEANINGS)
    return "\n".join(lines) + "\n"


def configuration_page() -> str:
    """Return configuration.md: the table of keys inside the text that stands in configuration.in.md."""
    lines = ["| key | option | variables | in a target | default | what it is |", "|---|---|---|---|---|---|"]
    for key in KEYS.values():
        variables = [f"`{key.variable}`"]
        if key.deployment:
            variables += [f"`{prefix}{key.deployment}`" for prefix in FAMILY_PREFIX.values()]
        option = f"`{key.flag}`" if _has_option(key.flag) else ""
        default = f"`{key.default}`" if key.default else ""
        lines.append(
            f"| `{key.name}` | {option} | {', '.join(variables)} | {'yes' if key.in_target else ''} | {default} | {key.purpose} |"
        )
    text = (HERE / "configuration.in.md").read_text(encoding="utf-8")
    return NOTE + "\n" + text.replace("@KEYS@", "\n".join(lines))


def _has_option(flag: str) -> bool:
    return any(flag in parameter.opts for _, command in commands() for parameter in command.params)


def queries_page() -> str:
    """Return queries.md."""
    catalogues = {dialect: load_catalogue(dialect) for dialect in DIALECTS}
    lines = ["# Queries", "", NOTE.strip(), "", (HERE / "queries.in.md").read_text(encoding="utf-8").strip(), ""]
    lines += [f"- [{name}](#{name}): {query.title}" for name, query in catalogues["postgresql"].items()]
    for name, query in catalogues["postgresql"].items():
        lines += ["", f"## {name}", "", f"{query.title[:1].upper()}{query.title[1:]}.", "", query.text]
        if query.params:
            lines += ["", "| parameter | type | default | what it is |", "|---|---|---|---|"]
            lines += [
                f"| `{param.name}` | {param.type} | {'must be given' if param.required else param.default or ''} | {param.purpose} |"
                for param in query.params
            ]
        lines.append("")
        for label, attribute in (("Index", "index"), ("Cost", "cost"), ("Rights beside SELECT on the pair", "right")):
            lines += _by_dialect(label, attribute, {dialect: found[name] for dialect, found in catalogues.items()})
    return "\n".join(lines).rstrip() + "\n"


def _by_dialect(label: str, attribute: str, queries: dict[str, Query]) -> Iterator[str]:
    """Yield one line when all dialects agree, else one for each group of them that does."""
    groups: dict[str, list[str]] = {}
    for dialect, query in queries.items():
        groups.setdefault(getattr(query, attribute), []).append(DIALECTS[dialect])
    if groups.keys() == {""}:
        return
    for text, names in groups.items():
        where = "" if len(groups) == 1 else f" ({', '.join(names)})"
        yield f"- {label}{where}: {text or 'none'}"


PAGES = {
    "commands.md": commands_page,
    "configuration.md": configuration_page,
    "exit-codes.md": exit_codes_page,
    "queries.md": queries_page,
}

if __name__ == "__main__":
    for page, render in PAGES.items():
        (HERE / page).write_text(render(), encoding="utf-8")
        print(f"wrote {HERE / page}")
