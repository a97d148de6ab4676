"""What README.md claims about commands, options and exit codes is so."""

from __future__ import annotations

import re
from pathlib import Path

import click

from opsctl import errors
from opsctl.cli.main import COMMANDS, cli

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def test_every_command_line_parses() -> None:
    lines = re.findall(r"^\$ (?:export .*|(opsctl [^|\n]*))", README, re.MULTILINE)
    commands = [line.split() for line in lines if line]
    assert {words[1] for words in commands} == set(COMMANDS), "the tour shows every command"
    for _, name, *arguments in commands:
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        command.make_context(name, list(arguments), parent=click.Context(cli, **cli.context_settings))


def test_every_option_named_exists() -> None:
    known = {"--db"}  # pytest's
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        known |= {flag for parameter in command.params for flag in parameter.opts}
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", README)) - {"--strict"}
    assert named <= known, named - known


def test_exit_codes_are_those_of_the_errors() -> None:
    listed = {int(code) for code in re.findall(r"^\| (\d+) \|", README, re.MULTILINE)}
    classes = errors.OpsctlError.__subclasses__()
    assert listed == {0, 1, 70} | {error.exit_code for error in classes}


def test_links_lead_somewhere() -> None:
    root = Path(__file__).parents[2]
    for link in re.findall(r"\]\((?!https?:)([^)#]+)\)", README):
        assert (root / link).exists(), link
