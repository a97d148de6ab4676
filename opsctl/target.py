"""A database to work on: every DSN form of a deployment, read once, and its secrets kept out of every text."""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from opsctl.errors import UsageError

_FAMILIES = {
    "mysql": "mysql",
    "mariadb": "mysql",
    "postgres": "postgresql",
    "postgresql": "postgresql",
}
_FORMS = "mysql://user@host:3306/database or postgresql://user@host:5432/database"

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
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,39}")
_TRUE = frozenset(("1", "true", "yes", "on"))
_FALSE = frozenset(("0", "false", "no", "off", ""))
_SECRET_OPTIONS = frozenset(("password", "sslpassword", "ssl_key_password"))


@dataclass(frozen=True)
class Target:
    """A parsed DSN. `url` carries the driver that opsctl uses; `connect_args` go to that driver as they are."""

    family: str
    url: URL
    connect_args: Mapping[str, Any] = field(repr=False)
    origin: str
    secrets: frozenset[str] = field(repr=False)
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        """The DSN without its password and without its options, fit for output."""
        bare = URL.create(
            self.family,
            username=self.url.username,
            host=self.url.host,
            port=self.url.port,
            database=self.url.database,
        )
        return self.redact(bare.render_as_string(hide_password=True))

    def redact(self, text: str) -> str:
        """Return `text` with every form of every secret of this target replaced by ***."""
        return redact(text, self.secrets)


def parse_dsn(dsn: str, *, origin: str) -> Target:
    """Read `dsn`, which came from `origin` (a flag, a file, an environment variable).

    Raises UsageError, which never contains the password, for what is not a DSN of MySQL, MariaDB or PostgreSQL.
    """
    dsn = dsn.strip()
    scheme, separator, rest = dsn.partition("://")
    if not separator:
        raise UsageError(f"the DSN from {origin} is not a URL", f"write it as {_FORMS}")
    base = scheme.lower().partition("+")[0]
    family = _FAMILIES.get(base)
    if family is None:
        # A DSN that lacks its scheme can have :// in its password: only what is a scheme may be shown.
        named = f"begins with {scheme}://" if _SCHEME.fullmatch(scheme) else "begins with no scheme"
        raise UsageError(
            f"the DSN from {origin} {named}, which is no database that opsctl operates",
            f"write it as {_FORMS}",
        )
    # A password may hold a ? too, so the options begin at the first ? that a name and a = follow.
    if re.split(r"\?(?=[A-Za-z_][\w.-]*=)", rest, maxsplit=1)[0].count("@") > 1:
        raise UsageError(
            f"the DSN from {origin} has an @ in its user or password that is not escaped",
            "write @ as %40 there",
        )
    try:
        parsed = make_url(f"{family}://{rest}")
    except (ArgumentError, ValueError):
        # The exception's own text may hold the password: say only where the DSN came from.
        raise UsageError(
            f"the DSN from {origin} cannot be read as a URL",
            f"write it as {_FORMS}; escape special characters of the password (@ as %40, / as %2F, : as %3A)",
        ) from None
    if parsed.port is not None and not 0 < parsed.port < 65536:
        raise UsageError(f"the DSN from {origin} has port {parsed.port}", "use a port from 1 to 65535")
    password = None if parsed.password is None else str(parsed.password)
    query = {key: value if isinstance(value, str) else value[-1] for key, value in parsed.query.items()}
    secrets = {password} if password else set()
    secrets |= {query[key] for key in _SECRET_OPTIONS if query.get(key)}
    warnings: list[str] = []
    if base == "mariadb":
        warnings.append(
            f"the DSN from {origin} begins with mariadb: onestep given such a DSN makes tables without microseconds, "
            "without a lock and without utf8mb4; give onestep mysql+asyncmy://"
        )
    if family == "mysql":
        args = _mysql_arguments(query, origin, warnings)
        url = parsed.set(drivername="mysql+pymysql", query={})
    else:
        args = _postgresql_arguments(query, origin, warnings)
        url = parsed.set(
            drivername="postgresql+psycopg",
            query={k: v for k, v in parsed.query.items() if k in ("host", "port")},
        )
        for key in url.query:
            args.pop(key, None)
    return Target(
        family=family,
        url=url,
        connect_args=args,
        origin=origin,
        secrets=frozenset(secrets),
        warnings=tuple(warnings),
    )


def redact(text: str, secrets: Iterable[str]) -> str:
    """Return `text` without `secrets`: as they are, and as a URL, Python, JSON or SQL would write them."""
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = _every_form(secret).sub("***", text)
    return text


@lru_cache
def _every_form(secret: str) -> re.Pattern[str]:
    plain = {secret, unquote(secret)} - {""}
    # A driver quotes a statement, and Python or JSON quotes the driver's message: one after the other.
    once = {form for text in plain for form in _quoted(text)}
    twice = {form for text in once for form in _quoted(text)}
    patterns = {re.escape(form) for form in once | twice} | {"".join(map(_plain_or_percent, text)) for text in plain}
    pattern = "|".join(sorted(patterns, key=len, reverse=True))
    # A password of three letters must not turn words that contain it into stars.
    return re.compile(pattern if len(secret) > 3 else rf"(?<!\w)(?:{pattern})(?!\w)")


def _quoted(text: str) -> Iterator[str]:
    """Yield `text` as it stands inside a literal of Python (whose quotes may be the other ones), JSON and SQL."""
    for write in (repr, ascii):
        bare = "'".join(write('"' + part)[2:-1] for part in text.split("'"))
        yield from (bare, bare.replace("'", "\\'"))
    yield json.dumps(text)[1:-1]
    yield json.dumps(text, ensure_ascii=False)[1:-1]
    for bare in (text, text.replace("\\", "\\\\")):
        yield from (bare, bare.replace("'", "''"), bare.replace("'", "\\'"), bare.replace('"', '""'))


def _plain_or_percent(character: str) -> str:
    forms = [re.escape(character)] if character != " " else [" ", r"\+"]
    encoded = "".join(f"%{byte:02x}" for byte in character.encode(errors="surrogatepass"))
    return f"(?:{'|'.join(forms)}|(?i:{encoded}))"


def _unknown(option: str, origin: str) -> str:
    return f"option {option!r} in the DSN from {origin} means nothing to opsctl and is ignored"


def _mysql_arguments(query: Mapping[str, str], origin: str, warnings: list[str]) -> dict[str, Any]:
    """Return PyMySQL's arguments: TLS options in the spellings of PyMySQL, asyncmy, aiomysql and the mysql client."""
    args: dict[str, Any] = {}
    files: dict[str, str] = {}
    verify: dict[str, bool] = {}
    mode = ""
    for raw, value in query.items():
        option = raw.replace("-", "_").lower()
        if option == "unix_socket":
            args[option] = value
        elif option in _TLS_FILES:
            files[option] = value
        elif option in ("ssl_verify_cert", "ssl_verify_identity"):
            verify[option] = _boolean(value, raw, origin)
        elif option in ("ssl_check_hostname", "ssl_verify_server_cert"):
            verify["ssl_verify_identity"] = _boolean(value, raw, origin)
        elif option == "ssl_disabled":
            mode = "DISABLED" if _boolean(value, raw, origin) else mode
        elif option in ("ssl_mode", "sslmode"):
            mode = value.upper().replace("-", "_")
        elif option in ("ssl", "tls"):
            mode = "REQUIRED" if _boolean(value, raw, origin) else "DISABLED"
        elif option in ("password", "passwd"):
            raise UsageError(f"the DSN from {origin} has its password among the options", "write user:password@host")
        elif option not in _MYSQL_IGNORED:
            warnings.append(_unknown(raw, origin))
    if mode not in (
        "",
        "DISABLED",
        "DISABLE",
        "PREFERRED",
        "PREFER",
        "REQUIRED",
        "REQUIRE",
        "VERIFY_CA",
        "VERIFY_IDENTITY",
    ):
        raise UsageError(
            f"ssl_mode in the DSN from {origin} is none of MySQL's",
            "use DISABLED, PREFERRED, REQUIRED, VERIFY_CA or VERIFY_IDENTITY",
        )
    if mode.startswith("VERIFY"):
        verify |= {"ssl_verify_cert": True, "ssl_verify_identity": mode == "VERIFY_IDENTITY"}
    if mode.startswith("DISABLE"):
        args["ssl_disabled"] = True
    elif files or any(verify.values()) or mode.startswith("REQUIRE"):
        args["ssl"] = _tls_context(files, verify, origin)
    return args


def _tls_context(files: Mapping[str, str], verify: Mapping[str, bool], origin: str) -> ssl.SSLContext:
    """Return a context that checks what the options ask for: nothing unless they ask or name a CA, as the mysql client.

    PyMySQL's own, made from the same options, checks no host name unless a CA file is given.
    """
    identity = verify.get("ssl_verify_identity", False)
    has_ca = "ssl_ca" in files or "ssl_capath" in files
    try:
        context = ssl.create_default_context(cafile=files.get("ssl_ca"), capath=files.get("ssl_capath"))
        if "ssl_cert" in files or "ssl_key" in files:
            certificate = files.get("ssl_cert", files.get("ssl_key", ""))
            context.load_cert_chain(certificate, files.get("ssl_key"), lambda: files.get("ssl_key_password", ""))
        if "ssl_cipher" in files:
            context.set_ciphers(files["ssl_cipher"])
    except OSError as error:  # ssl.SSLError is one
        named = ", ".join(sorted(set(files) - {"ssl_key_password"}))
        raise UsageError(
            f"{named} in the DSN from {origin} cannot be used: {error.strerror or 'not what TLS expects'}",
            "name readable PEM files and the key's password",
        ) from None
    # The certificates that MySQL makes for itself do not meet the strict rules of X.509.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.check_hostname = identity
    checked = identity or verify.get("ssl_verify_cert", has_ca)
    context.verify_mode = ssl.CERT_REQUIRED if checked else ssl.CERT_NONE
    return context


def _postgresql_arguments(query: Mapping[str, str], origin: str, warnings: list[str]) -> dict[str, Any]:
    """Return libpq's arguments; asyncpg's `ssl` becomes `sslmode`."""
    import psycopg.pq

    known = {option.keyword.decode() for option in psycopg.pq.Conninfo.get_defaults()}
    args: dict[str, Any] = {}
    for option, value in query.items():
        if option == "ssl":
            lowered = value.lower()
            args["sslmode"] = "require" if lowered in _TRUE else "disable" if lowered in _FALSE else lowered
        elif option in known:
            args[option] = value
        elif option not in _POSTGRESQL_IGNORED:
            warnings.append(_unknown(option, origin))
    return args


def _boolean(value: str, option: str, origin: str) -> bool:
    lowered = value.lower()
    if lowered in _TRUE or lowered in _FALSE:
        return lowered in _TRUE
    raise UsageError(f"option {option!r} in the DSN from {origin} is neither true nor false", "write true or false")
