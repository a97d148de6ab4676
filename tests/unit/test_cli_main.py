"""The command line without a database: help as golden files, usage errors, and what --help imports.

OPSCTL_REWRITE_GOLDEN=1 rewrites tests/unit/golden/; read the diff before it is committed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from processes import Result, run

from opsctl.cli import main, state

GOLDEN = Path(__file__).parent / "golden"


def commands(group: click.Group = main.cli, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every command and group by the words behind opsctl, the groups before what is in them."""
    yield path
    with click.Context(group) as context:
        for name in group.list_commands(context):
            found = group.get_command(context, name)
            if isinstance(found, click.Group):
                yield from commands(found, (*path, name))
            else:
                yield (*path, name)


PATHS = list(commands())
IDS = ["-".join(path) or "opsctl" for path in PATHS]


def invoke(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> Result:
    code = main._run(arguments)
    out, err = capsys.readouterr()
    return Result(code, out, err)


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings of the machine, no state of another test, and a terminal of one width."""
    monkeypatch.setattr(state, "current", state.State())
    for variable in list(os.environ):
        if variable.startswith(("OPSCTL_", "MYSQL_", "POSTGRES_")) and variable != "OPSCTL_REWRITE_GOLDEN":
            monkeypatch.delenv(variable)
    monkeypatch.setenv("COLUMNS", "80")


@pytest.mark.parametrize("path", PATHS, ids=IDS)
def test_help(path: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    result = invoke([*path, "--help"], capsys)
    assert (result.code, result.err) == (0, "")
    file = GOLDEN / f"{'-'.join(path) or 'opsctl'}.txt"
    if os.environ.get("OPSCTL_REWRITE_GOLDEN"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(result.out, encoding="utf-8")
    assert result.out == file.read_text(encoding="utf-8"), (
        "if this is meant: OPSCTL_REWRITE_GOLDEN=1, and read the diff"
    )
    assert max(map(len, result.out.splitlines())) <= 80


def test_every_golden_file_has_its_command() -> None:
    assert {file.stem for file in GOLDEN.glob("*.txt")} == set(IDS)


@pytest.mark.parametrize("command", main.COMMANDS)
def test_the_short_help_of_a_command_is_the_groups_word_for_it(command: str) -> None:
    with main.cli.make_context("opsctl", [command, "--help"], resilient_parsing=True) as context:
        found = main.cli.get_command(context, command)
    assert found is not None
    assert found.name == command
    assert found.help


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["config", "show"], {}),
        (["-q", "config", "show"], {"quiet": True}),
        (["config", "show", "-q"], {"quiet": True}),
        (["--debug", "-q", "--no-color", "config", "show"], {"debug": True, "quiet": True, "no_color": True}),
        (["--debug", "config", "show", "-q", "--no-color"], {"debug": True, "quiet": True, "no_color": True}),
        (["-v", "query", "list", "--debug"], {"verbose": True, "debug": True}),
        (["query", "list", "--verbose"], {"verbose": True}),
        (["query", "show", "status-counts", "-q"], {"quiet": True}),
        (["--config", "a.toml", "config", "show"], {"config": "a.toml"}),
        (["config", "show", "--config", "a.toml"], {"config": "a.toml"}),
        (["--config", "a.toml", "config", "show", "--config", "b.toml"], {"config": "b.toml"}),  # the nearer one
        (["completion", "bash", "-q", "--config", "a.toml"], {"quiet": True, "config": "a.toml"}),
    ],
)
def test_global_options_go_before_and_behind_the_command(
    arguments: list[str],
    wanted: dict[str, object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.toml", "b.toml"):
        (tmp_path / name).write_text("")
    result = invoke(arguments, capsys)
    assert result.code == 0, result.err
    found = {name: getattr(state.current, name) for name in ("debug", "quiet", "verbose", "no_color", "config")}
    assert {name: value for name, value in found.items() if value} == wanted


@pytest.mark.parametrize(
    "command", [path for path in PATHS if path[-1:] and path not in (("query",), ("config",), ("grants",), ("tune",))]
)
def test_every_command_takes_them_and_none_shows_them(
    command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    result = invoke([*command, "--debug", "-q", "--no-color", "--config", "x.toml", "--help"], capsys)
    assert (result.code, result.err) == (0, "")
    assert "--no-color" not in result.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["frobnicate"], "'frobnicate'"),
        (["--frobnicate"], "--frobnicate"),
        (["verify-schema", "--frobnicate"], "--frobnicate"),
        (["verify-schema", "extra"], "extra"),
        (["verify-schema", "--fail-on", "frob"], "frob"),
        (["verify-schema", "--lock-timeout", "soon"], "soon"),
        (["verify-schema", "--lock-timeout", "0"], "--lock-timeout"),
        (["verify-schema", "--dsn"], "--dsn"),
        (["verify-schema"], "no database is named"),
        (["verify-schema", "--dsn", "nonsense"], "--dsn is not a URL"),
        (["verify-schema", "--dsn", "a", "--dsn-file", "b"], "--dsn and --dsn-file"),
        (["verify-schema", "--dsn", "mysql://u@h/d", "--schema", "s"], "--schema"),
        (["init-tables", "--dsn-file", "/nonexistent/dsn"], "/nonexistent/dsn"),
        (["-v", "query", "list", "-q"], "--verbose and --quiet"),
        (["query", "list", "-q", "-v"], "--verbose and --quiet"),
        (["-q", "-v", "query", "list"], "--verbose and --quiet"),
        (["query", "list", "--config", "/nonexistent.toml"], "/nonexistent.toml"),
        (["query", "frob"], "'frob'"),
        (["query", "run"], "NAME"),
        (["query", "list", "-o", "frob"], "frob"),
    ],
)
def test_a_usage_error_is_exit_2_and_two_lines(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    result = invoke(arguments, capsys)
    assert (result.code, result.out) == (2, "")
    what, remedy = result.err.splitlines()
    assert what.startswith("opsctl: ")
    assert said in what
    assert remedy.startswith("  ")
    assert remedy.strip()


@pytest.mark.parametrize("debug", [[], ["--debug"]])
@pytest.mark.parametrize(
    "dsn",
    [
        "mysql://app:S3cr%65t-x@host:port/d",
        "app:S3cr%65t-x@host/d",
        "mysql://app@h/d?password=S3cr%65t-x",
        "mysql://app:S3cr%65t-x@h:1/d?ssl_mode=S3cr%65t-x",
        "oracle://app:S3cr%65t-x@h/d",
    ],
)
def test_no_error_shows_the_password(dsn: str, debug: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    result = invoke([*debug, "verify-schema", "--dsn", dsn], capsys)
    assert result.code == 2
    assert "S3cr" not in result.out + result.err
    assert ("Traceback" in result.err) == bool(debug)


def test_what_nobody_expected_is_a_bug(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(main.COMMANDS, "verify-schema", ("opsctl.cli.none:none", ""))
    result = invoke(["verify-schema"], capsys)
    assert result.code == 70
    assert "bug" in result.err
    assert len(result.err.splitlines()) == 2


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["--version"], ["frobnicate"], *([*path, "--help"] for path in PATHS if path), ["completion", "bash"]],
    ids="-".join,
)
def test_what_needs_no_database_imports_nothing_heavy(arguments: list[str], tmp_path: Path) -> None:
    """Stands in for the budget of CPU time: three times `import click`."""
    code = f"""
import sys
from opsctl.cli.main import main
try:
    main({arguments!r})
except SystemExit:
    pass
print(*sys.modules, sep="\\n", file=sys.__stdout__)
"""
    root = Path(__file__).parent.parent.parent
    result = run([sys.executable, "-c", code], tmp_path, cwd=root)
    loaded = {line.partition(".")[0] for line in result.out.splitlines() if line}
    assert {"click", "opsctl"} <= loaded, result.err
    heavy = {
        "sqlalchemy", "alembic", "pymysql", "psycopg", "cryptography", "tabulate", "prometheus_client", "redis",
        "onestep", "onestep_sql", "asyncio", "ssl", "yaml", "jinja2",
    }  # fmt: skip
    of_commands = {"ssl"} if len(arguments) > 1 else set()  # a DSN's TLS options
    assert not loaded & (heavy - of_commands)
