"""What a terminal gets, and what a pipe gets: a real pty of a given size, the real entry point, rows made here."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from processes import Result, clean_environment, run
from readers import read_csv, read_json, read_table, read_text_cell, read_vertical, read_yaml
from terminals import CTRL_C, Terminal, full_device
from wcwidth import wcswidth

#: opsctl with one command more, which shows the rows that stand in the file `rows` as Python writes them.
PROGRAM = """
import sys, types
from datetime import *
from uuid import UUID
import click
from opsctl.cli import main, options, output, progress
from opsctl.rows import Json, Rows

@click.command("fake")
@options.output_option
@click.option("--watching", is_flag=True)
@click.option("--wait", is_flag=True)
@options.common_options
def fake(output, watching, wait):
    rows = eval(open("rows", encoding="utf-8").read())
    if wait:
        with progress.Progress("looking at \\x1b[31m" + "everything " * 20):
            sys.stdin.readline()
    for _ in range(1 + watching):
        show_rows(rows, options.find_output(output), {"query": "fake"}, watching=watching)
    if wait:
        print("done")

show_rows = output.show_rows
module = types.ModuleType("fake")
module.fake = fake
sys.modules["fake"] = module
main.COMMANDS["fake"] = ("fake:fake", "Show rows.")
main.main()
"""
ROWS = """Rows(("id", "count", "message", "note"), (
    (UUID(int=2**127), 12345, "something went wrong: " * 9, "naïve 日本語 😀 \\\\ \\x1b[31m" * 3),
    (UUID(int=1), -1, None, "x"),
))"""
MANY = 'Rows(("n", "v"), tuple((n, f"value {n}") for n in range(20000)))'
SOME = 'Rows(("n", "v"), tuple((n, f"value {n}") for n in range(30)))'
ONE = 'Rows(("n", "v"), ((1, None),))'
STYLE = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "opsctl.py").write_text(PROGRAM)
    (tmp_path / "rows").write_text(ROWS, encoding="utf-8")
    return tmp_path


@pytest.fixture
def argv(home: Path) -> Callable[..., list[object]]:
    return lambda *arguments: [sys.executable, "-P", home / "opsctl.py", *arguments]


Argv = Callable[..., list[object]]


def put_program(home: Path, name: str, text: str) -> Path:
    """A program in the folder bin, which comes first in PATH when the test says so."""
    (home / "bin").mkdir(exist_ok=True)
    path = home / "bin" / name
    path.write_text(text)
    path.chmod(0o755)
    return path


# -- width -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("columns", "form"), [(200, "table"), (80, "table"), (40, "vertical"), (20, "vertical")])
def test_rows_fit_the_terminal(columns: int, form: str, home: Path, argv: Argv) -> None:
    with (home / "stderr").open("wb") as stderr:
        arguments = argv("--no-color", "fake")
        with Terminal(arguments, home, columns=columns, lines=99, stderr=stderr.fileno()) as terminal:
            assert terminal.wait() == 0
        lines = terminal.output.rstrip("\n").split("\n")
    note = (home / "stderr").read_text()
    assert "\x1b" not in terminal.output
    assert "80000000-0000-0000-0000-000000000000" in terminal.output
    if form == "vertical":
        assert lines[0].startswith("-[ row 1 ]")
        assert (len(lines), note) == (10, "")
        assert "something went wrong: " * 8 in terminal.output
    else:
        assert max(map(wcswidth, lines)) <= columns
        assert len(lines) == 4
        assert "12345" in lines[2]
        assert "…" in lines[2]
        assert note == "values were cut to the width of the terminal (…): -o vertical shows them whole\n"


def test_quiet_keeps_the_note_back_and_columns_is_honoured(home: Path, argv: Argv) -> None:
    with (home / "stderr").open("wb") as stderr:
        arguments = argv("fake", "-q", "--no-color")
        with Terminal(arguments, home, columns=200, env={"COLUMNS": "90"}, stderr=stderr.fileno()) as terminal:
            assert terminal.wait() == 0
    assert max(map(wcswidth, terminal.output.split("\n"))) == 90
    assert (home / "stderr").read_text() == ""


def test_a_pipe_gets_everything_whole(home: Path, argv: Argv) -> None:
    result = run(argv("fake"), home, env={"COLUMNS": "40"})
    assert (result.code, result.err) == (0, "")
    _, cells = read_table(result.out.rstrip("\n"))
    assert read_text_cell(cells[0][2] or "") == "something went wrong: " * 9


# -- colours ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("env", "arguments", "on_terminal", "in_pipe"),
    [
        ({}, [], True, False),
        ({"NO_COLOR": "1"}, [], False, False),
        ({"NO_COLOR": ""}, [], True, False),
        ({"FORCE_COLOR": "1"}, [], True, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, [], False, False),
        ({"FORCE_COLOR": "1"}, ["--no-color"], False, False),
        ({}, ["--no-color"], False, False),
        ({"TERM": "dumb"}, [], False, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, [], True, True),
    ],
)
def test_colours(
    env: dict[str, str], arguments: list[str], on_terminal: bool, in_pipe: bool, home: Path, argv: Argv
) -> None:
    (home / "rows").write_text(ONE)
    for form in ("table", "vertical"):
        with Terminal(argv("fake", "-o", form, *arguments), home, env=env) as terminal:
            assert terminal.wait() == 0
        assert bool(STYLE.search(terminal.output)) == on_terminal
        assert bool(STYLE.search(run(argv("fake", "-o", form, *arguments), home, env=env).out)) == in_pipe
        assert "NULL" in terminal.plain


@pytest.mark.parametrize("form", ["json", "yaml", "csv"])
def test_formats_for_programs_have_no_colours(form: str, home: Path, argv: Argv) -> None:
    with Terminal(argv("fake", "-o", form), home, lines=99, env={"FORCE_COLOR": "1"}) as terminal:
        assert terminal.wait() == 0
    assert "\x1b" not in terminal.output


def test_what_csv_holds_reaches_a_pipe_but_no_terminal(home: Path, argv: Argv) -> None:
    result = run(argv("fake", "-o", "csv"), home)
    assert "\x1b[31m" in result.out
    assert (read_csv(result.out)[1][0][3] or "").count("\x1b[31m") == 3
    with Terminal(argv("fake", "-o", "csv"), home) as terminal:
        assert terminal.wait() == 0
    assert "\\x1b[31m" in terminal.output


# -- progress --------------------------------------------------------------------------------------------------------


def test_progress_is_shown_and_gone(home: Path, argv: Argv) -> None:
    (home / "rows").write_text(ONE)
    with Terminal(argv("fake", "--wait", "--no-color"), home, columns=40) as terminal:
        terminal.expect(r"\r\x1b\[Klooking at \\x1b\[31meverything")
        terminal.send("\n")
        assert terminal.wait() == 0
    shown, _, after = terminal.output.rpartition("\r\x1b[K")
    assert after == "n  v\n-  ----\n1  NULL\ndone\n"
    assert all(len(line) < 40 for line in shown.replace("\n", "").split("\r\x1b[K"))


@pytest.mark.parametrize(("arguments", "env"), [(["-q"], {}), ([], {"TERM": "dumb"})])
def test_no_progress_where_it_is_not_wanted(arguments: list[str], env: dict[str, str], home: Path, argv: Argv) -> None:
    (home / "rows").write_text(ONE)
    with Terminal(argv("fake", "--wait", "--no-color", *arguments), home, env=env) as terminal:
        terminal.send("\n")
        assert terminal.wait() == 0
    assert terminal.output == "\nn  v\n-  ----\n1  NULL\ndone\n"


def test_no_progress_in_a_file(home: Path, argv: Argv) -> None:
    (home / "rows").write_text(ONE)
    arguments = argv("fake", "--wait")
    with (home / "stderr").open("wb") as stderr, Terminal(arguments, home, stderr=stderr.fileno()) as terminal:
        terminal.send("\n")
        assert terminal.wait() == 0
    assert (home / "stderr").read_text() == ""


# -- pager -----------------------------------------------------------------------------------------------------------

TEE = 'echo "LESS=$LESS" >"$PAGED"; cat >>"$PAGED"'
#: Shows what it got first, says so to each Ctrl-C, and leaves at q with most of it unread.
KEYS = """#!{python}
import os, signal, sys
signal.signal(signal.SIGINT, lambda *_: print("INT", flush=True))
print("GOT", sys.stdin.readline().strip(), flush=True)
with open("/dev/tty") as keys:
    while not keys.readline().startswith("q"):
        pass
"""


@pytest.mark.parametrize(
    ("env", "config", "paged"),
    [
        ({}, "", True),  # less, which this test puts there
        ({"PAGER": "tee-pager"}, "", True),
        ({"PAGER": "cat"}, "", False),
        ({"PAGER": ""}, "", False),
        ({"PAGER": "cat", "OPSCTL_PAGER": "tee-pager"}, "", True),
        ({"PAGER": "tee-pager", "OPSCTL_PAGER": "cat"}, "", False),
        ({"PAGER": "tee-pager", "OPSCTL_PAGER": ""}, "", False),
        ({"PAGER": "cat"}, 'pager = "tee-pager"\n', True),
        ({"PAGER": "tee-pager"}, 'pager = "cat"\n', False),
        ({"PAGER": "cat", "OPSCTL_PAGER": "tee-pager"}, 'pager = "cat"\n', True),
        ({"PAGER": "FOO=bar tee-pager | cat"}, "", True),
        ({"TERM": "dumb"}, "", False),
    ],
)
def test_which_pager(env: dict[str, str], config: str, paged: bool, home: Path, argv: Argv) -> None:
    (home / "rows").write_text(SOME)
    (home / "opsctl.toml").write_text(config)
    for name in ("tee-pager", "less"):
        put_program(home, name, f"#!/bin/sh\n{TEE}\n")
    env = {**env, "PATH": f"{home / 'bin'}:{os.environ['PATH']}", "PAGED": str(home / "paged")}
    with Terminal(argv("fake", "--no-color"), home, lines=20, env=env) as terminal:
        assert terminal.wait() == 0
    whole = run(argv("fake"), home).out
    assert terminal.output == ("" if paged else whole)
    if paged:
        assert (home / "paged").read_text() == f"LESS=-RSX\n{whole}"
    else:
        assert not (home / "paged").exists()


@pytest.mark.parametrize(
    ("rows", "form", "paged"),
    [
        (SOME, "table", True),
        (ONE, "table", False),
        ('Rows(("v",), (("x" * 5000,),))', "vertical", True),  # one line that takes the whole screen and more
        (SOME, "json", True),
    ],
)
def test_when_there_is_a_pager(rows: str, form: str, paged: bool, home: Path, argv: Argv) -> None:
    (home / "rows").write_text(rows)
    put_program(home, "tee-pager", f"#!/bin/sh\n{TEE}\n")
    env = {"PATH": f"{home / 'bin'}:{os.environ['PATH']}", "PAGED": str(home / "paged"), "PAGER": "tee-pager"}
    with Terminal(argv("fake", "-o", form, "--no-color"), home, lines=20, env={**env, "LESS": "-M"}) as terminal:
        assert terminal.wait() == 0
    assert (home / "paged").exists() == paged
    if paged:
        assert (home / "paged").read_text().startswith("LESS=-M\n")  # the user's own comes first


@pytest.mark.parametrize("stream", ["stdin", "stdout"])
def test_no_pager_without_a_terminal_on_both_sides(stream: str, home: Path, argv: Argv) -> None:
    (home / "rows").write_text(SOME)
    with (home / "other").open("w+b") as other:
        arguments: dict[str, Any] = {stream: other.fileno()}
        with Terminal(argv("fake"), home, lines=10, env={"PAGER": "false"}, **arguments) as terminal:
            assert terminal.wait() == 0
    assert "value 29" in terminal.output + (home / "other").read_text()


@pytest.mark.parametrize("pager", ["no-such-pager", "no-such-pager | cat $X", "/etc/passwd"])
def test_a_pager_that_cannot_be_had(pager: str, home: Path, argv: Argv) -> None:
    (home / "rows").write_text(SOME)
    with Terminal(argv("fake", "--no-color"), home, lines=10, env={"PAGER": pager}) as terminal:
        assert terminal.wait() == 0
    if "|" not in pager:  # there the shell has run something, and cat has shown all it got
        assert "value 29" in terminal.output
    assert "Traceback" not in terminal.output
    assert pager.split(" ")[0] in terminal.output


def test_a_pager_that_is_left_early(home: Path, argv: Argv) -> None:
    (home / "rows").write_text(MANY)
    pager = put_program(home, "keys", KEYS.format(python=sys.executable))
    with Terminal(argv("fake", "-o", "csv"), home, env={"PAGER": str(pager)}) as terminal:
        terminal.expect("GOT n,v")
        terminal.send(CTRL_C)
        terminal.expect("INT")  # the pager's business, not opsctl's
        terminal.send("q\n")
        assert terminal.wait() == 0
    assert "Traceback" not in terminal.output
    assert "interrupted" not in terminal.output


def test_the_end_of_opsctl_is_the_end_of_its_pager(home: Path, argv: Argv) -> None:
    (home / "rows").write_text(MANY)
    pager = put_program(home, "keys", KEYS.format(python=sys.executable))
    with Terminal(argv("fake", "-o", "csv"), home, env={"PAGER": str(pager)}) as terminal:
        terminal.expect("GOT n,v")
        terminal.process.send_signal(signal.SIGTERM)
        assert terminal.wait() == 143  # the terminal ends only when the pager has let it go
    assert "terminated" in terminal.output


# -- watching --------------------------------------------------------------------------------------------------------


def test_documents_one_after_the_other(home: Path, argv: Argv) -> None:
    def watched(form: str) -> str:
        result = run(argv("fake", "-o", form, "--watching"), home)
        assert (result.code, result.err) == (0, "")
        return result.out

    once = run(argv("fake", "-o", "json"), home).json
    assert [json.loads(line) for line in watched("json").splitlines()] == [once, once]
    assert [read_yaml(part) for part in watched("yaml").split("---\n")[1:]] == [read_json(json.dumps(once))] * 2
    tables = watched("table").split("\n\n")
    assert [read_table(part)[0] for part in tables[:2]] == [["id", "count", "message", "note"]] * 2
    assert len(read_csv(watched("csv"))[1]) == 5  # the header stands between


# -- ends ------------------------------------------------------------------------------------------------------------


def piped(home: Path, argv: Argv, tail: str, *arguments: str, env: dict[str, str] | None = None) -> Result:
    """`opsctl fake … TAIL` in a shell: the code is opsctl's, not that of the last in the pipe."""
    done = subprocess.run(
        ["bash", "-c", f'"$@" {tail}; exit ${{PIPESTATUS[0]}}', "bash", *map(str, argv("fake", *arguments))],
        cwd=home,
        env=clean_environment(home, env),
        text=True,
        capture_output=True,
        timeout=60,
        check=False,
    )
    return Result(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("form", ["table", "json", "yaml", "csv", "vertical"])
def test_whoever_reads_goes_away(form: str, unbuffered: str, home: Path, argv: Argv) -> None:
    """Unbuffered, Python would drop what is left of a write that was cut short, and say nothing."""
    (home / "rows").write_text(MANY)
    result = piped(home, argv, "| head -1", "-o", form, env={"PYTHONUNBUFFERED": unbuffered})
    assert (result.code, result.err) == (141, "")
    assert result.out.count("\n") == 1


@pytest.mark.parametrize("rows", [ONE, MANY])
def test_no_room_for_stdout(rows: str, home: Path, argv: Argv) -> None:
    (home / "rows").write_text(rows)
    result = piped(home, argv, ">/dev/full")
    assert result.code == 2
    assert result.err.splitlines()[0] == "opsctl: stdout cannot be written: No space left on device"
    assert len(result.err.splitlines()) == 2


def test_no_room_for_stderr_and_progress(home: Path, argv: Argv) -> None:
    (home / "rows").write_text(ROWS, encoding="utf-8")
    with full_device() as full, Terminal(argv("fake"), home, stderr=full) as terminal:
        assert terminal.wait() == 0
    assert "12345" in terminal.output


@pytest.mark.parametrize("tail", [">&-", "2>&-", ">&- 2>&-", "<&-"])
def test_a_stream_is_closed(tail: str, home: Path, argv: Argv) -> None:
    result = piped(home, argv, tail)
    assert (result.code, result.err) == (0, "")
    assert ("12345" in result.out) == (not tail.startswith(">"))


@pytest.mark.parametrize(
    "env",
    [
        {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
        {"PYTHONIOENCODING": "latin-1"},
        {"PYTHONIOENCODING": "ascii:strict"},
    ],
)
def test_a_stdout_that_lacks_characters(env: dict[str, str], home: Path, argv: Argv) -> None:
    note = "naïve 日本語 😀 \\ \x1b[31m" * 3

    def written(form: str) -> str:
        result = piped(home, argv, "", "-o", form, env=env)
        assert (result.code, result.err) == (0, "")
        assert result.out.isascii()
        return result.out

    env = {**env, "LANG": "C"}
    assert read_json(written("json"))["rows"][0]["note"] == note
    assert read_yaml(written("yaml"))["rows"][0]["note"] == note
    assert read_text_cell(read_table(written("table").rstrip("\n"))[1][0][3] or "") == note
    assert read_text_cell(read_vertical(written("vertical").rstrip("\n"))[1][0][3] or "") == note
    with Terminal(argv("fake", "--no-color"), home, env=env) as terminal:
        assert terminal.wait() == 0
    lines = terminal.output.split("\n")
    assert max(map(len, lines[:4])) <= 80
    assert "~" in lines[2]


def test_the_plain_locale_of_a_container_takes_every_character(home: Path, argv: Argv) -> None:
    for env in ({"LC_ALL": "C"}, {"LANG": "C"}, {"LC_ALL": "POSIX"}):
        assert "日本語 😀" in run(argv("fake", "-o", "csv"), home, env=env).out
