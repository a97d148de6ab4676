"""What README.md and docs/ say about commands, options, queries and exit codes is so; the reference is the tool's own words."""

from __future__ import annotations

import importlib.util
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import click
import pytest

from opsctl import errors
from opsctl.cli.main import COMMANDS, cli
from opsctl.queryfiles import load_catalogue

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs/reference").glob("*.md")])
#: Options in the pages that are other programs': pytest's, mypy's, pip's.
FOREIGN = {"--db", "--strict", "--user", "--single-transaction"}


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_reference", ROOT / "docs/reference/generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    path = list(sys.path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "100")
        spec.loader.exec_module(module)
    sys.path[:] = path
    return module


def leaves(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from leaves(command, (*path, name))
        else:
            yield (*path, name), command


def command_lines() -> list[tuple[str, list[str]]]:
    """Every `opsctl …` line of a console block, without pipes and redirections, and its page."""
    found = []
    for page in PAGES:
        for block in re.findall(r"```(?:console|sh|bash)\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            for line in re.sub(r"\\\n\s*", " ", block).splitlines():
                if match := re.match(r"(?:\$ )?(?:\w+=\S+ )*opsctl (.*)$", line):
                    words = shlex.split(re.split(r" [|>] | > |\s#\s", match[1])[0])
                    found.append((page.name, words))
    return found


def test_the_reference_is_what_the_tool_says(generator: ModuleType) -> None:
    for page, render in generator.PAGES.items():
        written = (ROOT / "docs/reference" / page).read_text(encoding="utf-8")
        assert written == render(), f"{page} is old: python docs/reference/generate.py"


@pytest.mark.parametrize(("page", "words"), command_lines(), ids=lambda value: str(value)[:60])
def test_every_command_line_parses(page: str, words: list[str]) -> None:
    context = cli.make_context("opsctl", [*words], resilient_parsing=False)
    rest = [*context._protected_args, *context.args] if hasattr(context, "_protected_args") else list(context.args)
    command: click.Command = cli
    while isinstance(command, click.Group):
        name, *rest = rest
        found = command.get_command(context, name)
        assert found is not None, name
        command = found
    with command.make_context(name, list(rest), parent=context) as made:
        query = made.params.get("name")
    if query is not None:
        assert any(query in load_catalogue(dialect) for dialect in ("mysql", "postgresql")) or query == "late-orders"


def test_the_readme_shows_every_command() -> None:
    shown = {word for page, words in command_lines() if page == "README.md" for word in words[:2]}
    assert set(COMMANDS) <= shown, set(COMMANDS) - shown


def test_every_option_named_exists() -> None:
    known = {flag for parameter in cli.params for flag in parameter.opts} | FOREIGN
    known |= {flag for _, command in leaves(cli) for parameter in command.params for flag in parameter.opts}
    for page in PAGES:
        named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", page.read_text(encoding="utf-8")))
        assert named <= known | {"--help", "--version"}, (page.name, named - known)


def test_every_query_named_exists() -> None:
    known = set(load_catalogue("postgresql"))
    for page in PAGES:
        for name in re.findall(r"opsctl query (?:run|show) ([a-z][\w-]*)", page.read_text(encoding="utf-8")):
            assert name in known, (page.name, name)


def test_exit_codes_are_those_of_the_errors() -> None:
    listed = {int(code) for code in re.findall(r"^\| (\d+) \|", README, re.MULTILINE)}
    classes = errors.OpsctlError.__subclasses__()
    assert listed == {0, 1, 70} | {error.exit_code for error in classes}


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for link in re.findall(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), (page.name, link)
