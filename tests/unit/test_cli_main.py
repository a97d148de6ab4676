"""The command line without a database: help as golden files, usage errors, and what --help imports.

OPSCTL_REWRITE_GOLDEN=1 rewrites tests/unit/golden/; read the diff before it is committed.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from processes import Result, run

from opsctl.cli import main, state

GOLDEN = Path(__file__).parent / "golden"
COMMANDS = ["opsctl", *main.COMMANDS]


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
    monkeypatch.setenv("COLUMNS", "100")


@pytest.mark.parametrize("command", COMMANDS)
def test_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    result = invoke([*([] if command == "opsctl" else [command]), "--help"], capsys)
    assert (result.code, result.err) == (0, "")
    path = GOLDEN / f"{command}.txt"
    if os.environ.get("OPSCTL_REWRITE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(result.out, encoding="utf-8")
    assert result.out == path.read_text(encoding="utf-8"), (
        "if this is meant: OPSCTL_REWRITE_GOLDEN=1, and read the diff"
    )


def test_every_golden_file_has_its_command() -> None:
    assert {path.stem for path in GOLDEN.glob("*.txt")} == set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS[1:])
def test_the_short_help_of_a_command_is_the_groups_word_for_it(command: str) -> None:
    with main.cli.make_context("opsctl", [command, "--help"], resilient_parsing=True) as context:
        found = main.cli.get_command(context, command)
    assert found is not None
    assert found.name == command
    assert found.help


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["frobnicate"], "'frobnicate'"),
        (["--frobnicate"], "'--frobnicate'"),
        (["verify-schema", "--frobnicate"], "'--frobnicate'"),
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


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["frobnicate"]])
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
    assert not loaded & heavy
