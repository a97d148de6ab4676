"""What a driver's error means: the only place that reads them."""

from __future__ import annotations

import ssl
import traceback
from collections.abc import Sequence
from typing import Any

from opsctl.dialects.base import Failure
from opsctl.dialects.mysql import explain_error
from opsctl.dialects.postgresql import explain_connect_text, explain_state
from opsctl.errors import OpsctlError, StatementRefused, Unreachable
from opsctl.target import Target


def raised_by_driver(error: BaseException) -> bool:
    """Whether PyMySQL stumbled: it checks nothing of what a server sends, and bytes that are lost make any error."""
    frames = [frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__)]
    return bool(frames) and str(frames[-1]).partition(".")[0] == "pymysql"


def translate(
    error: BaseException, target: Target, *, timed_out_after_s: float | None = None, connecting: bool = False
) -> OpsctlError:
    """Return the OpsctlError for an error of a driver: exit class, one line of cause without secrets, a remedy."""
    from sqlalchemy.exc import DBAPIError

    original = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    where = str(target)
    if connecting and (target.completed or target.remark or not target.origin.startswith("--")):
        where += f" ({target.whence})"  # which of many variables it was is half the answer
    if timed_out_after_s is not None:
        what = "connecting to" if connecting else "waiting for"
        return Unreachable(
            f"{where}: no answer after {timed_out_after_s:g} s of {what} the server",
            "see whether the server, or a proxy in front of it, hangs; raise --connect-timeout or --statement-timeout"
            if connecting
            else "look on the server what its session of application opsctl waits for; raise --statement-timeout",
        )
    failure = _explain(original, connecting=connecting)
    message = target.redact(f"{where}: {_one_line(failure.cause)}")
    gone = isinstance(error, DBAPIError) and error.connection_invalidated
    if failure.kind == "unreachable" or gone:
        return Unreachable(message, failure.hint)
    return StatementRefused(message, failure.hint)


def _explain(original: BaseException, *, connecting: bool) -> Failure:
    arguments: Sequence[Any] = getattr(original, "args", ())
    text = str(original) or type(original).__name__
    if arguments and isinstance(arguments[0], int) and not isinstance(original, OSError):  # PyMySQL: (code, text)
        code, text = arguments[0], str(arguments[1]) if len(arguments) > 1 else ""
        if isinstance(getattr(original, "original_exception", None), ssl.SSLError):
            code = 2026  # PyMySQL says 2003, host not reached, for a certificate that it does not trust
        known = explain_error(code, f"{text} (error {code})")
        if known is None and code == 0:
            known = Failure("unreachable", "the server closed the connection", "run the command again")
        if known is not None:
            return known
        text = f"{text} (error {code})"
    elif sqlstate := getattr(original, "sqlstate", None):  # psycopg
        known = explain_state(sqlstate, f"{text} (SQLSTATE {sqlstate})")
        if known is not None:
            return known
        text = f"{text} (SQLSTATE {sqlstate})"
    elif isinstance(original, OSError):
        return Failure("unreachable", text, "check that the files which the DSN's TLS options name can be read")
    elif connecting and not raised_by_driver(original):
        return explain_connect_text(text)
    elif "connection" in text.lower() or "SSL" in text:  # libpq, which has no SQLSTATE for it
        return Failure("unreachable", text, "see whether the server restarted, then run the command again")
    elif raised_by_driver(original) and not connecting:
        text = f"the server's answer makes no sense ({type(original).__name__}: {text})"
        return Failure("unreachable", text, "see what a proxy in between does, and run the command again")
    if connecting:
        if raised_by_driver(original):
            text = f"what answers does not speak the protocol ({type(original).__name__}: {text})"
        return Failure("unreachable", text, "check the DSN, and that this is the server that you meant")
    return Failure("refused", text, "run the command again with --debug for the statement and the traceback")


def _one_line(text: str) -> str:
    return " ".join(text.split())


def error_code(error: BaseException) -> int | str | None:
    """Return MySQL's error number or PostgreSQL's SQLSTATE behind an OpsctlError of a session, None without one."""
    from sqlalchemy.exc import DBAPIError

    cause = error.__cause__
    original = cause.orig if isinstance(cause, DBAPIError) else cause
    if original is None:
        return None
    if original.args and isinstance(original.args[0], int):
        return original.args[0]
    state = getattr(original, "sqlstate", None)
    return str(state) if state else None
