"""The entry point: the group of commands, and the one place where errors become messages and exit codes."""

from __future__ import annotations

import errno
import importlib
import io
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from types import FrameType
from typing import IO, TYPE_CHECKING, Any, NoReturn, TextIO

import click

import opsctl
from opsctl import errors
from opsctl.cli import state

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

#: Command name -> module and attribute, and the line that --help shows. Nothing is imported before its command runs.
COMMANDS = {
    "init-tables": (
        "opsctl.cli.init_tables:init_tables",
        "Create the pair of tables, complete it, or adopt it.",
    ),
    "verify-schema": (
        "opsctl.cli.verify_schema:verify_schema",
        "Compare the live pair with the expected one.",
    ),
    "query": (
        "opsctl.cli.query:query",
        "Look into the live pair by ready queries, and by your own.",
    ),
    "tune": (
        "opsctl.cli.tune:tune",
        "Keep claims quick however large the tables grow.",
    ),
    "grants": (
        "opsctl.cli.grants:grants",
        "Least rights for each role, as SQL.",
    ),
    "config": (
        "opsctl.cli.config:config",
        "Show each setting and where it came from.",
    ),
    "completion": (
        "opsctl.cli.completion:completion",
        "Print what makes a shell complete opsctl's words.",
    ),
}


class ReaderGone(BaseException):
    """Whoever read stdout has closed it."""


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called, so that --help stays cheap."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order of a deployment's life."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command `cmd_name`."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        """Complete the name of a command without importing any, or an option."""
        from click.shell_completion import CompletionItem

        found = [
            CompletionItem(name, help=summary) for name, (_, summary) in COMMANDS.items() if name.startswith(incomplete)
        ]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; tell a reader that went away from an error, which click would not."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise ReaderGone from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--config", metavar="FILE", type=click.Path(), help="Configuration file.  [default: ./opsctl.toml]")
@click.option("--debug", is_flag=True, help="Add the traceback to an error.")
@click.option("-v", "--verbose", is_flag=True, help="Say on stderr which database, why this one, and how long it took.")
@click.option("-q", "--quiet", is_flag=True, help="No warnings and no progress on stderr.")
@click.option("--no-color", is_flag=True, help="No colours (NO_COLOR and FORCE_COLOR are obeyed too).")
@click.version_option(opsctl.__version__, prog_name="opsctl")
def cli(config: str | None, debug: bool, verbose: bool, quiet: bool, no_color: bool) -> None:
    """Create, check and look into the tables in which long jobs are tracked.

    \b
    Exit codes:
      0  yes                                  4   the database refused a statement
      1  the answer is no (drift, a failed    5   refused by a guard, or declined
         check)                               6   could not tell
      2  usage or configuration               70  a bug
      3  cannot reach, log in, or in time
    """
    if verbose and quiet:
        raise click.UsageError("--verbose and --quiet are both given")
    state.current.config = config
    state.current.debug = debug
    state.current.verbose = verbose
    state.current.quiet = quiet
    state.current.no_color = no_color


class Terminated(BaseException):
    """SIGTERM."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run opsctl and exit with its code."""
    signal.signal(signal.SIGTERM, _on_sigterm)
    for name in ("stdin", "stdout", "stderr"):
        setattr(sys, name, _usable(getattr(sys, name), "r" if name == "stdin" else "w"))
    code = _run(arguments)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = _broken_pipe()
    except OSError as error:
        code = _unwritable(error)
    try:
        sys.stderr.flush()
    except OSError:
        _discard(sys.stderr)  # what could not be said must not change the exit code
    sys.exit(code)


def _usable(stream: IO[str] | None, mode: str) -> IO[str]:
    """Return the stream so that it is there, takes every character, and loses nothing silently."""
    if stream is None:  # whoever started us has closed it
        return open(os.devnull, mode, encoding="utf-8")
    if isinstance(stream, io.TextIOWrapper) and mode == "w":
        if isinstance(stream.buffer, io.RawIOBase):
            # PYTHONUNBUFFERED, as in many a container: what is left of a write that a full disk or a reader that goes
            # away cuts short would be dropped without an error.
            buffered = open(stream.fileno(), "wb", closefd=False)  # noqa: SIM115 (until the process ends)
            stream = io.TextIOWrapper(buffered, encoding=stream.encoding)
        stream.reconfigure(errors="backslashreplace")  # a character that the terminal's encoding lacks is no error
    return stream


def _on_sigterm(number: int, frame: FrameType | None) -> NoReturn:
    raise Terminated


def _run(arguments: Sequence[str] | None) -> int:
    for word in sys.argv[1:] if arguments is None else arguments:
        if "://" in word:  # wherever it stands: an error could quote it
            state.add_secrets_of(word)
    try:
        result: Any = cli.main(
            args=None if arguments is None else list(arguments), prog_name="opsctl", standalone_mode=False
        )
    except errors.OpsctlError as error:
        return _fail(error.exit_code, error.message, error.hint)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return errors.UsageError.exit_code
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else "opsctl"
        return _fail(2, error.format_message(), f"{path} --help lists what it takes")
    except click.ClickException as error:
        return _fail(2, error.format_message(), "opsctl --help")
    except (ReaderGone, BrokenPipeError):
        return _broken_pipe()
    except (KeyboardInterrupt, click.Abort):
        return _fail(
            errors.EXIT_INTERRUPTED,
            "interrupted",
            "what was not committed was rolled back, what was done before stays; run it again",
        )
    except Terminated:
        return _fail(
            errors.EXIT_TERMINATED,
            "terminated",
            "what was not committed was rolled back, what was done before stays; run it again",
        )
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EIO, errno.EDQUOT):
            return _bug(error)
        return _unwritable(error)
    except Exception as error:  # noqa: BLE001 (whatever it is, it is a bug and becomes exit 70)
        return _bug(error)
    return result if isinstance(result, int) else errors.EXIT_YES


def _fail(code: int, message: str, hint: str) -> int:
    lines = [f"opsctl: {' '.join(message.split())}"]
    if hint:
        lines.append(f"  {hint}")
    if state.current.debug:
        lines.insert(0, traceback.format_exc())
    state.complain("\n".join(lines))
    return code


def _bug(error: Exception) -> int:
    hint = "this is a bug of opsctl: please report it with the output of the same command under --debug"
    return _fail(errors.EXIT_BUG, f"{type(error).__name__}: {error}", hint)


def _unwritable(error: OSError) -> int:
    code = _fail(
        errors.UsageError.exit_code, f"stdout cannot be written: {error.strerror}", "send it where there is room"
    )
    _discard(sys.stdout)
    return code


def _broken_pipe() -> int:
    _discard(sys.stdout)
    return errors.EXIT_BROKEN_PIPE


def _discard(stream: TextIO) -> None:
    """Send what is left in `stream` nowhere: the interpreter would complain about it at its end, with a code of its own."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
