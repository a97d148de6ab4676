"""MySQL: names, session, errors, what it can do."""

from __future__ import annotations

from collections.abc import Mapping

from opsctl.dialects.base import Failure, Timeouts, Version
from opsctl.dialects.names import Pair, derive_name, derived_names

#: onestep takes this lock first for every pair, then one named after the pair (mysql/execution_schema.py).
GLOBAL_DDL_LOCK = "lock_onestep_execution_ddl"
_LOCK_NAME_LIMIT = 64

#: A mode of our own: with ANSI_QUOTES or NO_FIELD_OPTIONS in the server's, SHOW CREATE TABLE prints another dialect.
SQL_MODE = "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ZERO_DATE,NO_ZERO_IN_DATE,NO_ENGINE_SUBSTITUTION"


class MySQL:
    """MySQL 8.0.16 and later, and what speaks as it does."""

    name = "mysql"
    product = "MySQL"
    identifier_limit = 64
    minimum: Version = (8, 0, 16)
    minimum_reason = "before 8.0.16 CHECK constraints are parsed and never enforced"
    transactional_ddl = False

    def quote(self, identifier: str) -> str:
        """Return `identifier` in backticks, which every sql_mode understands."""
        return "`" + identifier.replace("`", "``") + "`"

    def derived_names(self, pair: Pair) -> Mapping[str, str]:
        """Map the default pair's object names to those of `pair`; constraint names are unique in a database."""
        return derived_names(pair, ("uq_", "ix_", "ck_", "fk_"), max_length=self.identifier_limit)

    def ddl_locks(self, pair: Pair) -> tuple[str, str]:
        """Return onestep's two GET_LOCK names, in the order in which they are taken."""
        return GLOBAL_DDL_LOCK, derive_name("lock_", pair.executions, pair.attempts, max_length=_LOCK_NAME_LIMIT)

    def session_setup(self, timeouts: Timeouts, *, read_only: bool) -> list[str]:
        """Return the SET statements of a session: UTC, READ COMMITTED, timeouts, quoting as the readers expect it.

        A session that writes leaves transaction_read_only as it is: a server that has it on is not to be written to.
        """
        lock_s = max(1, round(timeouts.lock_s))
        statements = [
            f"SET SESSION time_zone = '+00:00',"
            f" SESSION sql_quote_show_create = 1, SESSION lock_wait_timeout = {lock_s},"
            f" SESSION innodb_lock_wait_timeout = {lock_s}, {self.statement_timeout(timeouts.longest_s)}",
            "SET SESSION sql_select_limit = 18446744073709551615, SESSION sql_safe_updates = 0",
            "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
        ]
        return [*statements, "SET SESSION TRANSACTION READ ONLY"] if read_only else statements

    def statement_timeout(self, seconds: float) -> str:
        """Return the assignment that limits a statement; MySQL's covers only SELECT, the client ends the rest."""
        return f"SESSION max_execution_time = {max(1, round(seconds * 1000))}"


def explain_error(code: int, text: str) -> Failure | None:
    """Return what MySQL's or MariaDB's error `code` means, or None for one that opsctl has no word for."""
    if code in _UNREACHABLE:
        return Failure("unreachable", text, _UNREACHABLE[code])
    if code in _REFUSED:
        return Failure("refused", text, _REFUSED[code])
    return None


_CHECK_HOST = "check host and port, that the server runs, and that a firewall lets this machine through"
_RETRY_LOCK = "find the holder with SHOW PROCESSLIST, let it finish, and run the command again; or raise --lock-timeout"
_GRANT = "have the right that the message names granted to this account, or use the migration account's DSN"
_RETRY = "see whether the server restarted, then run the command again: it resumes where it was"

#: Client (2xxx) and server codes that mean: not reached, not let in, or not in time.
_UNREACHABLE: dict[int, str] = {
    1040: "the server has no connection left: close idle ones or raise max_connections",
    1044: "have access to this database granted to the account, or correct the database's name in the DSN",
    1045: "check user and password of the DSN, and from which hosts the account may log in",
    1046: "name a database in the DSN: mysql://user@host:3306/DATABASE",
    1049: "correct the database's name in the DSN, or have it created: opsctl creates tables, never a database",
    1053: _RETRY,
    1129: "the server blocks this host after too many failures: run FLUSH HOSTS there",
    1130: "have the account created for this host",
    1152: _RETRY,
    1158: _RETRY,
    1159: _RETRY,
    1205: _RETRY_LOCK,
    1213: "two transactions blocked each other: run the command again",
    1226: "the account's own limit of connections is reached: close idle ones or raise it",
    1251: "install the package `cryptography`, or let the account use caching_sha2_password",
    1317: "somebody ended the statement: run the command again",
    1698: "this account logs in through the socket only: use one with a password",
    1820: "the account's password has expired: change it with ALTER USER",
    1862: "the account's password has expired: change it with ALTER USER",
    1927: "somebody ended the connection: run the command again",
    1969: "the statement ran into its time limit: raise --statement-timeout or look what holds the server up",
    2002: _CHECK_HOST,
    2003: _CHECK_HOST,
    2005: _CHECK_HOST,
    2006: _RETRY,
    2012: "check the TLS options in the DSN against the server's certificate",
    2013: _RETRY,
    2014: _RETRY,
    2026: "check the TLS options in the DSN against the server's certificate",
    2027: _RETRY,
    3024: "the statement ran into its time limit: raise --statement-timeout or look what holds the server up",
    3118: "the account is locked: ALTER USER … ACCOUNT UNLOCK",
    3159: "the server wants TLS: add ssl_ca=FILE or ssl_mode=REQUIRED to the DSN",
    3168: _RETRY,
    4031: _RETRY,
    4151: "the account is locked: ALTER USER … ACCOUNT UNLOCK",
}

_READ_ONLY = "this server is read only (a replica?): use the DSN of the primary, or have it made writable"

#: Server codes that mean: understood, and refused.
_NAME_TAKEN = (
    "a constraint has that name on another table of this database, where such names are unique: rename that one"
)

_REFUSED: dict[int, str] = {
    1021: "the server's disk is full: free space there first",
    1005: _NAME_TAKEN,
    1022: _NAME_TAKEN,
    1054: "opsctl verify-schema says where the tables are not those of onestep",
    1050: "another process made it in this moment: run the command again",
    1114: "the server's tablespace or disk is full: free space there first",
    1142: _GRANT,
    1146: "correct --executions-table, --attempts-table or the DSN's database; opsctl init-tables creates the pair",
    1143: _GRANT,
    1227: _GRANT,
    1290: _READ_ONLY,
    1370: _GRANT,
    1410: _GRANT,
    1709: "innodb_default_row_format is an old one, in which no index of this length fits: have it set to DYNAMIC",
    1792: "transaction_read_only is on for this server: use the DSN of the primary, or have it turned off",
    1836: _READ_ONLY,
    3100: "the server's replication plugin refused: read its error log",
    3750: "sql_require_primary_key is on: this is a bug of opsctl, please report it",
    1826: _NAME_TAKEN,
    3822: _NAME_TAKEN,
    3819: "a CHECK refuses the value: opsctl verify-schema shows whether it is the right one",
}
