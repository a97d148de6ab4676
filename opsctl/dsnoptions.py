"""The options of a DSN, in the spellings of every driver and client, as arguments of the drivers that opsctl uses."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opsctl.errors import UsageError

#: Query options of PyMySQL, asyncmy and aiomysql that change nothing for opsctl: it sets its own session.
_MYSQL_IGNORED = frozenset(
    [
        "charset",
        "use_unicode",
        "autocommit",
        "connect_timeout",
        "read_timeout",
        "write_timeout",
        "init_command",
        "sql_mode",
        "local_infile",
        "program_name",
        "binary_prefix",
        "echo",
        "pool_recycle",
        "pool_size",
        "max_overflow",
        "pool_timeout",
        "pool_pre_ping",
        "minsize",
        "maxsize",
        "collation",
    ]
)
#: The same for asyncpg and for SQLAlchemy's own dialects.
_POSTGRESQL_IGNORED = frozenset(
    [
        "command_timeout",
        "timeout",
        "statement_cache_size",
        "prepared_statement_cache_size",
        "prepared_statement_name_func",
        "server_settings",
        "max_cached_statement_lifetime",
        "max_cacheable_statement_size",
        "prepare_threshold",
        "autocommit",
        "pool_size",
        "max_overflow",
        "pool_timeout",
        "pool_recycle",
        "pool_pre_ping",
        "async_fallback",
    ]
)
_TLS_FILES = frozenset(("ssl_ca", "ssl_capath", "ssl_cert", "ssl_key", "ssl_key_password", "ssl_cipher"))
_POSTGRESQL_FILES = frozenset(("sslrootcert", "sslcert", "sslkey", "sslcrl", "sslcrldir", "passfile", "servicefile"))
_TRUE = frozenset(("1", "true", "yes", "on"))
_FALSE = frozenset(("0", "false", "no", "off", ""))
#: The modes of MySQL; MariaDB and PostgreSQL have some of them by other names.
_MODES = {
    "DISABLED": "DISABLED",
    "DISABLE": "DISABLED",
    "PREFERRED": "PREFERRED",
    "PREFER": "PREFERRED",
    "REQUIRED": "REQUIRED",
    "REQUIRE": "REQUIRED",
    "VERIFY_CA": "VERIFY_CA",
    "VERIFY_IDENTITY": "VERIFY_IDENTITY",
    "VERIFY_FULL": "VERIFY_IDENTITY",
}
SECRET_OPTIONS = frozenset(("password", "sslpassword", "ssl_key_password"))


@dataclass(frozen=True)
class DsnOption:
    """An option and the place that has it, for messages: "the DSN from --dsn", "~/.my.cnf [client]"."""

    name: str
    value: str
    place: str


def mysql_arguments(options: list[DsnOption], directory: Path, warnings: list[str]) -> dict[str, Any]:
    """Return PyMySQL's arguments; of options that contradict each other the later counts.

    TLS options may be spelt as PyMySQL, asyncmy, aiomysql, the mysql client and MariaDB's spell them; relative paths
    start in `directory`. Raises UsageError for a value that means nothing and for files that TLS cannot use.
    """
    args: dict[str, Any] = {}
    files: dict[str, DsnOption] = {}
    verify: dict[str, bool] = {}
    mode = ""
    for option in options:
        name = option.name.replace("-", "_").lower()
        if name == "unix_socket":
            args[name] = option.value
        elif name in _TLS_FILES:
            files[name] = option
        elif name in ("ssl_verify_cert", "ssl_verify_identity"):
            verify[name] = _boolean(option)
        elif name in ("ssl_check_hostname", "ssl_verify_server_cert"):
            verify["ssl_verify_identity"] = _boolean(option)
        elif name == "ssl_disabled":
            mode = "DISABLED" if _boolean(option) else mode
        elif name in ("ssl_mode", "sslmode"):
            mode = _mode(option)
        elif name in ("ssl", "tls"):
            mode = "REQUIRED" if _boolean(option) else "DISABLED"
        elif name in ("password", "passwd"):
            raise UsageError(f"{option.place} has its password among the options", "write user:password@host")
        elif name not in _MYSQL_IGNORED:
            warnings.append(_unknown(option))
    if mode.startswith("VERIFY"):
        verify |= {"ssl_verify_cert": True, "ssl_verify_identity": mode == "VERIFY_IDENTITY"}
    if mode == "DISABLED":
        args["ssl_disabled"] = True
    elif files or any(verify.values()) or mode == "REQUIRED":
        args["ssl"] = _tls_context(files, verify, directory)
    return args


def postgresql_arguments(options: list[DsnOption], directory: Path, warnings: list[str]) -> dict[str, Any]:
    """Return libpq's arguments; asyncpg's `ssl` becomes `sslmode`, and relative paths start in `directory`."""
    import psycopg.pq

    known = {option.keyword.decode() for option in psycopg.pq.Conninfo.get_defaults()}
    args: dict[str, Any] = {}
    for option in options:
        if option.name == "ssl":
            lowered = option.value.lower()
            args["sslmode"] = "require" if lowered in _TRUE else "disable" if lowered in _FALSE else lowered
        elif option.name in _POSTGRESQL_FILES and option.value not in ("", "system"):
            args[option.name] = _path(option.value, directory)
        elif option.name in known:
            args[option.name] = option.value
        elif option.name not in _POSTGRESQL_IGNORED:
            warnings.append(_unknown(option))
    return args


def _tls_context(files: Mapping[str, DsnOption], verify: Mapping[str, bool], directory: Path) -> ssl.SSLContext:
    """Return a context that checks what the options ask for: nothing unless they ask or name a CA, as the mysql client.

    PyMySQL's own, made from the same options, checks no host name unless a CA file is given.
    """
    identity = verify.get("ssl_verify_identity", False)
    has_ca = "ssl_ca" in files or "ssl_capath" in files
    texts = ("ssl_cipher", "ssl_key_password")
    given = {name: one.value if name in texts else _path(one.value, directory) for name, one in files.items()}
    try:
        context = ssl.create_default_context(cafile=given.get("ssl_ca"), capath=given.get("ssl_capath"))
        if "ssl_cert" in given or "ssl_key" in given:
            certificate = given.get("ssl_cert", given.get("ssl_key", ""))
            context.load_cert_chain(certificate, given.get("ssl_key"), lambda: given.get("ssl_key_password", ""))
        if "ssl_cipher" in given:
            context.set_ciphers(given["ssl_cipher"])
    except OSError as error:  # ssl.SSLError is one
        named = (
            ", ".join(f"{name} {value}" for name, value in sorted(given.items()) if name not in texts) or "ssl_cipher"
        )
        places = " and ".join(dict.fromkeys(one.place for one in files.values()))
        raise UsageError(
            f"{named} in {places} cannot be used: {error.strerror or 'not what TLS expects'}",
            "name readable PEM files and the key's password",
        ) from None
    # The certificates that MySQL makes for itself do not meet the strict rules of X.509.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.check_hostname = identity
    checked = identity or verify.get("ssl_verify_cert", has_ca)
    context.verify_mode = ssl.CERT_REQUIRED if checked else ssl.CERT_NONE
    return context


def _path(value: str, directory: Path) -> str:
    return str(directory / os.path.expanduser(value))


def _unknown(option: DsnOption) -> str:
    return f"option {option.name!r} in {option.place} means nothing to opsctl and is ignored"


def _mode(option: DsnOption) -> str:
    try:
        return _MODES[option.value.upper().replace("-", "_")]
    except KeyError:
        raise UsageError(
            f"{option.name} in {option.place} is none of MySQL's",
            "use DISABLED, PREFERRED, REQUIRED, VERIFY_CA or VERIFY_IDENTITY",
        ) from None


def _boolean(option: DsnOption) -> bool:
    lowered = option.value.lower()
    if lowered in _TRUE or lowered in _FALSE:
        return lowered in _TRUE
    raise UsageError(f"option {option.name!r} in {option.place} is neither true nor false", "write true or false")
