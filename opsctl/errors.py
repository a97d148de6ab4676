"""One exception tree: each class has the exit code that SPEC promises, each error a cause and a remedy.

Exit codes: 0 yes, 1 the answer is no, 2 usage or configuration, 3 cannot reach, log in or in time, 4 the database
refused a statement, 5 refused by a guard or declined, 6 could not tell, 70 a bug, 130/141/143 signals.
"""

from __future__ import annotations

EXIT_YES = 0
EXIT_NO = 1
EXIT_BUG = 70
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141
EXIT_TERMINATED = 143


class OpsctlError(Exception):
    """Something an operator can act on: `message` says what failed, `hint` what to do next (one line each)."""

    exit_code = EXIT_BUG

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(OpsctlError):
    """A flag, an environment value or a name is wrong; nothing was contacted."""

    exit_code = 2


class Unreachable(OpsctlError):
    """The database cannot be reached, does not let us in, or did not answer in time."""

    exit_code = 3


class StatementRefused(OpsctlError):
    """The database answered, and refused: a missing right, a read-only server, a syntax it does not know."""

    exit_code = 4


class Guarded(OpsctlError):
    """A guard of opsctl refused, or the operator declined."""

    exit_code = 5


class Undetermined(OpsctlError):
    """A fact that the answer needs could not be read."""

    exit_code = 6
