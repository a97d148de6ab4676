"""PostgreSQL: names, session, errors."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from opsctl.dialects.base import Failure, Timeouts, Version
from opsctl.dialects.names import Pair, derived_names


class PostgreSQL:
    """PostgreSQL 13 and later."""

    name = "postgresql"
    product = "PostgreSQL"
    identifier_limit = 63
    minimum: Version = (13,)
    minimum_reason = "older releases get no security fixes and opsctl is not tested on them"
    transactional_ddl = True

    def quote(self, identifier: str) -> str:
        """Return `identifier` in double quotes."""
        return '"' + identifier.replace('"', '""') + '"'

    def derived_names(self, pair: Pair) -> Mapping[str, str]:
        """Map the default pair's object names to those of `pair`; CHECK names are fixed, the FK's is the server's."""
        return derived_names(pair, ("uq_", "ix_"), max_length=self.identifier_limit)

    def ddl_lock(self, pair: Pair) -> int:
        """Return onestep's advisory lock key: the first 8 bytes, big-endian and signed, of sha256(executions NUL attempts)."""
        digest = hashlib.sha256(f"{pair.executions}\0{pair.attempts}".encode()).digest()
        return int.from_bytes(digest[:8], byteorder="big", signed=True)

    def server_constraint_name(self, table: str, column: str, label: str) -> str:
        """Return the name the server gives an unnamed constraint: the longer of table and column is cut first.

        Source: makeObjectName in PostgreSQL's src/backend/commands/indexcmds.c.
        """
        room = self.identifier_limit - len(label) - 2
        while len(table) + len(column) > room:
            table, column = (table[:-1], column) if len(table) > len(column) else (table, column[:-1])
        return f"{table}_{column}_{label}"

    def session_setup(self, timeouts: Timeouts, *, read_only: bool) -> list[str]:
        """Return one SELECT of set_config calls, which a pooler in session mode passes on."""
        settings = {
            "timezone": "UTC",
            "default_transaction_isolation": "read committed",
            "lock_timeout": f"{max(1, round(timeouts.lock_s * 1000))}ms",
            "statement_timeout": f"{max(1, round(timeouts.longest_s * 1000))}ms",
            "client_min_messages": "warning",
            "quote_all_identifiers": "off",  # the readers compare what the server deparses
            "cursor_tuple_fraction": "1",  # what is read through a cursor is planned as EXPLAIN shows it
        }
        if read_only:  # else as it is: who turned it on for a database or a role does not want it written to
            settings["default_transaction_read_only"] = "on"
        calls = ", ".join(f"set_config('{name}', '{value}', false)" for name, value in settings.items())
        return [f"SELECT {calls}"]


_RETRY = "see whether the server restarted, then run the command again: it resumes where it was"
_CHECK_HOST = "check host and port, that the server runs, and that a firewall lets this machine through"
_CREDENTIALS = "check user and password of the DSN, ~/.pgpass, and the server's pg_hba.conf"
_DATABASE = "correct the database's name in the DSN, or have it created: opsctl creates tables, never a database"

_IN_THE_WAY = "another object has that name: rename or drop it, or choose other table names"

_STATES: dict[str, tuple[str, str]] = {
    "08": ("unreachable", _RETRY),
    "28": ("unreachable", _CREDENTIALS),
    "3D": ("unreachable", _DATABASE),
    "53300": ("unreachable", "the server has no connection left: close idle ones or raise max_connections"),
    "53400": ("refused", "a limit of the server's configuration: raise the one that the message names, for this role"),
    "53100": ("refused", "the server's disk is full: free space there first"),
    "57014": (
        "unreachable",
        "the statement ran into its time limit or somebody ended it: raise --statement-timeout or look at pg_stat_activity",
    ),
    "57P": ("unreachable", _RETRY),
    "25P": ("unreachable", _RETRY),
    "40": ("unreachable", "two transactions blocked each other: run the command again"),
    "55P03": (
        "unreachable",
        "find the holder with pg_blocking_pids() and pg_stat_activity, let it finish, and run the command again; or raise --lock-timeout",
    ),
    "42P01": (
        "refused",
        "correct --executions-table, --attempts-table, --schema or the DSN; opsctl init-tables creates the pair",
    ),
    "42703": ("refused", "opsctl verify-schema says where the tables are not those of onestep"),
    "42P07": ("refused", _IN_THE_WAY),
    "42710": ("refused", _IN_THE_WAY),
    "23505": ("refused", _IN_THE_WAY),
    "25006": (
        "refused",
        "a standby, or default_transaction_read_only is on for it: use the DSN of the primary, or have it made writable",
    ),
    "42501": (
        "refused",
        "have the right that the message names granted to this role, or use the migration role's DSN",
    ),
}

#: libpq gives no SQLSTATE when a connection fails, only its text (English whatever lc_messages says, but for the
#: server's own part; an unknown text falls through to the general word).
_CONNECT_TEXTS: tuple[tuple[str, str], ...] = (
    ("password authentication failed", _CREDENTIALS),
    ("no password supplied", _CREDENTIALS),
    (
        "no pg_hba.conf entry",
        "have a line for this user, database and host added to the server's pg_hba.conf",
    ),
    ("pg_hba.conf rejects", "have a line for this user, database and host added to the server's pg_hba.conf"),
    ("permission denied for database", "have CONNECT on the database granted to the role"),
    ('role "', "correct the user's name in the DSN, or have the role created"),
    ('database "', _DATABASE),
    ("too many clients", "the server has no connection left: close idle ones or raise max_connections"),
    (
        "remaining connection slots",
        "the server has no connection left: close idle ones or raise max_connections",
    ),
    ("certificate", "check the TLS options in the DSN against the server's certificate"),
    ("SSL", "check the TLS options of the DSN (ssl or sslmode, sslrootcert) against what the server offers"),
    ("starting up", "the server is starting or recovering: run the command again in a moment"),
    ("shutting down", "the server is shutting down: use another, or wait for it"),
    ("definition of service", "check PGSERVICE and the service file"),
)


def explain_state(sqlstate: str, text: str) -> Failure | None:
    """Return what a SQLSTATE means (full code, else its first three or two characters), or None."""
    for length in (5, 3, 2):
        if sqlstate[:length] in _STATES:
            kind, hint = _STATES[sqlstate[:length]]
            return Failure(kind, text, hint)
    return None


def explain_connect_text(text: str) -> Failure:
    """Return what libpq's text of a failed connection means."""
    for fragment, hint in _CONNECT_TEXTS:
        if fragment in text:
            return Failure("unreachable", text, hint)
    return Failure("unreachable", text, _CHECK_HOST)
