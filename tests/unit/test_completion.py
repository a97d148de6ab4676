"""What Tab offers: through click's protocol for every shell, and in the real shells, with a real Tab on a real terminal."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import get_completion_class
from processes import Result, clean_environment, run
from terminals import TAB, Terminal

from opsctl.cli import main, state

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
CONFIG = """
query_path = ["queries"]
[targets.prod-eu]
dsn = "mysql://app:S3cret@eu/d"
[targets.prod-us]
dsn = "postgresql://app:S3cret@us/d"
[targets."a:b"]
dsn_file = "dsn"
"""
OWN = "-- late-orders: orders that are late\n-- @param customer text!: whose\n-- @param at_least int = 1: how many\n"
OWN += "SELECT :customer, :at_least\n"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a configuration file that is not found by itself, and queries that it names."""
    (tmp_path / "ops.toml").write_text(CONFIG)
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries/late-orders.sql").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(state, "current", state.State())
    for name, value in clean_environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    for name in ("OPSCTL_CONFIG", "OPSCTL_QUERY_PATH", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def offered(line: str) -> list[str]:
    """What is offered at the end of `line`, in this process."""
    words = shlex.split(line)
    incomplete = "" if line.endswith(" ") else words.pop()
    kind = get_completion_class("bash")
    assert kind is not None
    return [
        item.value for item in kind(main.cli, {}, "opsctl", "_OPSCTL_COMPLETE").get_completions(words[1:], incomplete)
    ]


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("opsctl ", list(main.COMMANDS)),
        ("opsctl qu", ["query"]),
        ("opsctl nonsense", []),
        ("opsctl --no", ["--no-color"]),
        ("opsctl query ", ["list", "run", "show"]),
        ("opsctl config ", ["show"]),
        ("opsctl completion ", ["bash", "zsh", "fish"]),
        ("opsctl query run stat", ["status-counts"]),
        ("opsctl query show stat", ["status-counts"]),
        ("opsctl -q query run stat", ["status-counts"]),
        ("opsctl query run -o json stat", ["status-counts"]),
        ("opsctl query list -o ", ["table", "json", "yaml", "csv", "vertical"]),
        ("opsctl query list --output=j", ["json"]),
        ("opsctl query list --dialect ", ["mysql", "mariadb", "postgresql"]),
        ("opsctl query run --all", ["--allow-scan"]),
        ("opsctl verify-schema --fail-on ", ["error", "warning", "info"]),
        ("opsctl grants sql --role ", ["runtime", "migration", "monitor", "operator"]),
        ("opsctl query run attempts -p ", ["id="]),
        ("opsctl query run attempts --param=i", ["id="]),
        ("opsctl query run attempts -p id=", ["id="]),
        # Without the file nobody has named its targets and its queries.
        ("opsctl verify-schema --target ", []),
        ("opsctl query run late-", []),
        ("opsctl --config ops.toml verify-schema --target prod", ["prod-eu", "prod-us"]),
        ("opsctl --config=ops.toml init-tables --target ", ["prod-eu", "prod-us", "a:b"]),
        ("opsctl query run x --config ops.toml --target prod-e", ["prod-eu"]),
        ("opsctl --config ops.toml query run --target a", ["a:b"]),
        ("opsctl --config ops.toml config show --target a", ["a:b"]),
        ("opsctl --config ops.toml query run late-", ["late-orders"]),
        ("opsctl --config ops.toml query run late-orders -p ", ["customer=", "at_least="]),
        ("opsctl query run --query-dir queries late-", ["late-orders"]),
        ("opsctl query run --query-dir queries late-orders -p c", ["customer="]),
        ("opsctl query run --query-dir nowhere ", []),
        ("opsctl query run no-such-query -p ", []),
        ("opsctl --config nowhere.toml verify-schema --target ", []),
    ],
)
def test_what_is_offered(line: str, values: list[str], place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = offered(line)
    assert found == values
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    "line", ["opsctl --config ", "opsctl query run --query-dir ", "opsctl verify-schema --dsn-file "]
)
def test_files_are_the_shells_business(line: str, place: Path) -> None:
    kind = get_completion_class("bash")
    assert kind is not None
    completer = kind(main.cli, {}, "opsctl", "_OPSCTL_COMPLETE")
    assert [item.type for item in completer.get_completions(shlex.split(line)[1:], "")] in (["file"], ["dir"])


def complete(shell: str, words: str, word: str, place: Path, *, code: str = "") -> Result:
    """Ask as a shell's script asks: `words` so far, and for fish the word itself, for others its number."""
    cli = f"import sys; from opsctl.cli.main import main; {code or 'main()'}"
    env = {"_OPSCTL_COMPLETE": f"{shell}_complete", "COMP_WORDS": words, "COMP_CWORD": word}
    return run([sys.executable, "-c", cli], place, env={**env, "PYTHONPATH": str(ROOT)}, cwd=place)


@pytest.mark.parametrize(
    ("shell", "answer"),
    [
        ("bash", "plain,customer=\nplain,at_least="),
        ("zsh", "plain\ncustomer=\nwhose\nplain\nat_least=\nhow many"),
        ("fish", "plain,customer=\twhose\nplain,at_least=\thow many"),
    ],
)
def test_what_the_scripts_read(shell: str, answer: str, place: Path) -> None:
    words = "opsctl --config ops.toml query run late-orders -p "
    result = complete(shell, words, "" if shell == "fish" else "7", place)
    assert (result.code, result.out.rstrip("\n"), result.err) == (0, answer, "")


@pytest.mark.parametrize(
    "words",
    [
        "opsctl ",
        "opsctl query run ",
        "opsctl query run attempts -p ",
        "opsctl --config ops.toml query run --target ",
        "opsctl --config ops.toml verify-schema --target ",
        "opsctl --config ops.toml init-tables --target ",
        "opsctl --config ops.toml grants sql --target ",
    ],
)
def test_tab_imports_nothing_heavy(words: str, place: Path) -> None:
    code = "import atexit; atexit.register(lambda: print('|', *sys.modules)); main()"
    result = complete("bash", words, "999", place, code=code)
    answer, _, modules = result.out.partition("|")
    assert answer.startswith("plain,")
    loaded = {name.partition(".")[0] for name in modules.split()}
    assert "opsctl" in loaded
    assert not loaded & {"sqlalchemy", "alembic", "pymysql", "psycopg", "cryptography", "yaml", "asyncio", "onestep"}


def test_a_broken_file_keeps_tab_silent(place: Path) -> None:
    """What is written on a terminal that waits for Tab lands in the command line."""
    (place / "odd.toml").write_text(
        '[targets.x]\ndsn = "mysql://u:S3cret@h/d"\n'
    )  # others can read it: a warning elsewhere
    (place / "bad.toml").write_text("nonsense = 1\n")
    for file, answer in (("odd.toml", "plain,x\n"), ("bad.toml", "\n")):
        result = complete("bash", f"opsctl --config {file} verify-schema --target ", "5", place)
        assert (result.code, result.out, result.err) == (0, answer, "")


# -- the shells themselves -------------------------------------------------------------------------------------------

_CALL = r"""
source <(opsctl completion bash)
compopt() { options+=" $*"; }
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE=$LINE COMP_POINT=${#LINE} options=
_opsctl_completion opsctl "${COMP_WORDS[COMP_CWORD]}"
printf '%s\n' "${COMPREPLY[@]}" "$options"
"""


@pytest.mark.parametrize(
    ("line", "words", "replies", "options"),
    [
        ("opsctl query run stat", "opsctl query run stat", ["status-counts"], ""),
        ("opsctl query run attempts -p ", "opsctl query run attempts -p ''", ["id="], " -o nospace"),
        # bash makes three words of what is one to the command, and replaces the last alone.
        (
            "opsctl query list --output=",
            "opsctl query list --output =",
            ["table", "json", "yaml", "csv", "vertical"],
            "",
        ),
        ("opsctl query list --output=js", "opsctl query list --output = js", ["json"], ""),
        ("opsctl verify-schema --config ops.toml --target a:", "opsctl x --config ops.toml --target a :", ["b"], ""),
        # Where = was taken out of COMP_WORDBREAKS it is one word.
        ("opsctl query list --output=js", "opsctl query list --output=js", ["--output=json"], ""),
        ("opsctl --config ", "opsctl --config ''", [], " -o default"),
    ],
)
def test_the_function_of_bash(line: str, words: str, replies: list[str], options: str, place: Path) -> None:
    environment = {**clean_environment(place), "LINE": line, "PATH": f"{BIN}:/usr/bin:/bin"}
    done = subprocess.run(
        ["bash", "--norc", "-c", _CALL, "bash", *shlex.split(words)],
        env=environment,
        cwd=place,
        text=True,
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert (done.stdout.split("\n")[:-2], done.stdout.split("\n")[-2], done.stderr) == (replies, options, "")


SHELLS: dict[str, tuple[list[object], str]] = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], 'PS1="> "; eval "$(opsctl completion bash)"'),
    "zsh": (
        [ROOT / "tests/servers/shell", "zsh"],
        'PS1="> "; autoload -Uz compinit && compinit -u -D && eval "$(opsctl completion zsh)"',
    ),
    "fish": ([ROOT / "tests/servers/shell", "fish"], "opsctl completion fish | source"),
}


def start_shell(name: str, place: Path) -> Terminal:
    """That shell in a terminal, with completion set up for an opsctl that prints its words instead of running them."""
    fake = place / "bin/opsctl"
    fake.parent.mkdir()
    answer = f'[ -n "$_OPSCTL_COMPLETE" ] || [ "$1" = completion ] && exec {BIN}/opsctl "$@"'
    fake.write_text(f"#!/bin/sh\n{answer}\nprintf '<%s>' \"$@\"\n")
    fake.chmod(0o755)
    argv, setup = SHELLS[name]
    argv = [*argv, place] if len(argv) == 2 else argv
    terminal = Terminal(argv, place, columns=200, env={"PATH": f"{fake.parent}:/usr/bin:/bin"}, timeout_s=60)
    terminal.send(setup + "\n")
    terminal.send("echo rea''dy\n")
    terminal.expect(r"[\r\n]ready\r?\n")
    return terminal


@pytest.fixture(params=["zsh", "fish"])
def unpacked_shell(request: pytest.FixtureRequest) -> str:
    """A shell that few machines have: it is unpacked beside the test servers, and left out by --db none as they are."""
    return str(request.param)


def test_a_real_tab(unpacked_shell: str, place: Path) -> None:
    check_tab(unpacked_shell, place)


def test_a_real_tab_in_bash(place: Path) -> None:
    check_tab("bash", place)


def check_tab(shell: str, place: Path) -> None:
    """An X typed behind what Tab completed shows whether a space was put there."""
    with start_shell(shell, place) as terminal:
        for typed, words in (
            ("opsctl que", "opsctl query X"),
            ("opsctl query run stat", "opsctl query run status-counts X"),
            ("opsctl query list --output=js", "opsctl query list --output=json X"),
            ("opsctl query list --output js", "opsctl query list --output json X"),
            ("opsctl query run attempts -p i", "opsctl query run attempts -p id=X"),
            (
                "opsctl query run --query-dir queries late-orders -p at",
                "opsctl query run --query-dir queries late-orders -p at_least=X",
            ),
            (
                "opsctl --config ops.toml verify-schema --target prod-e",
                "opsctl --config ops.toml verify-schema --target prod-eu X",
            ),
            (
                "opsctl --config ops.toml verify-schema --target a",
                "opsctl --config ops.toml verify-schema --target a:b X",
            ),
            ("opsctl --config op", "opsctl --config ops.toml X"),
        ):
            terminal.send(f"{typed}{TAB}X\n")
            terminal.expect(re.escape("".join(f"<{word}>" for word in words.split()[1:])))
