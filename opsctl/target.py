"""A database to work on: every DSN form of a deployment, read once, and what the clients' own files add to it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from opsctl.dsnoptions import SECRET_OPTIONS, DsnOption, mysql_arguments, postgresql_arguments
from opsctl.errors import UsageError
from opsctl.optionfile import Login, find_login
from opsctl.redaction import OPTIONS_BEGIN, redact

if TYPE_CHECKING:  # it takes a quarter of a second, which neither --help nor Tab has
    from sqlalchemy.engine import URL

__all__ = ["Target", "parse_dsn", "redact"]

_FAMILIES = {
    "mysql": "mysql",
    "mariadb": "mysql",
    "postgres": "postgresql",
    "postgresql": "postgresql",
}
_FORMS = "mysql://user@host:3306/database or postgresql://user@host:5432/database"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,39}")
_DEFAULT_PORT = {"mysql": 3306, "postgresql": 5432}
#: TLS options of ~/.my.cnf. What opsctl cannot do is among them, to be said.
_TLS_OF_FILES = "ssl ssl-mode ssl-ca ssl-capath ssl-cert ssl-key ssl-passphrase ssl-cipher ssl-verify-server-cert ssl-crl ssl-crlpath".split()


@dataclass(frozen=True)
class Target:
    """A parsed DSN. `url` carries the driver that opsctl uses; `connect_args` go to that driver as they are.

    `completed` names what the DSN left out and another place had: ("password", "~/.my.cnf [client]").
    """

    family: str
    url: URL
    connect_args: Mapping[str, Any] = field(repr=False)
    origin: str
    secrets: set[str] = field(repr=False)
    warnings: tuple[str, ...] = ()
    completed: tuple[tuple[str, str], ...] = ()
    remark: str = ""
    #: Whether a password stands in the DSN itself.
    tells_secret: bool = False
    #: What the driver finds out by itself: where it goes, and as whom.
    _found: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def __str__(self) -> str:
        """The DSN with no more in it than which place this is, fit for output."""
        from sqlalchemy.engine import URL

        host, port = self.url.host or self._found.get("host"), self.url.port or self._found.get("port")
        options = []
        if path := self.connect_args.get("unix_socket"):
            options, host, port = [("unix_socket", path)], None, None
        elif host and host[0] in "/@":
            options, host, port = [("host", host), *([("port", port)] if port else [])], None, None
        elif not host:
            options = [(name, one) for name in ("host", "port") for one in _all_of(self.url.query.get(name))]
        database = self.url.database or self._found.get("database")
        text = URL.create(
            self.family,
            username=self.url.username or self._found.get("username"),
            host=host,
            port=port,
            database=database or ("" if options else self.url.database),
        ).render_as_string()
        return text + "?" * bool(options) + "&".join(f"{name}={value}" for name, value in options)

    @property
    def names(self) -> set[str]:
        """The names in it that output shows, whatever the password is."""
        parts = (self.url.username, self.url.host, self.url.database)
        return {str(part) for part in (*parts, *self._found.values()) if part}

    @property
    def whence(self) -> str:
        """Where it comes from: "from OPSCTL_DSN; user and password from ~/.my.cnf [client]"."""
        by_origin: dict[str, list[str]] = {}
        for name, origin in self.completed:
            by_origin.setdefault(origin, []).append(name)
        parts = [self.origin, *(f"{_listed(names)} from {origin}" for origin, names in by_origin.items()), self.remark]
        return f"from {'; '.join(filter(None, parts))}"

    def redact(self, text: str) -> str:
        """Return `text` with every form of every secret of this target replaced by ***."""
        return redact(text, self.secrets, self.names)

    def learn(self, *, username: str, password: str, host: str, port: int, database: str) -> None:
        """Take over what a connection says of itself, where the DSN did not: the driver has places of its own to look."""
        if password:
            self.secrets.add(password)
        shown_port = port if port != _DEFAULT_PORT[self.family] else None
        self._found.update(username=username, database=database, host=host, port=shown_port)


def parse_dsn(
    dsn: str, *, origin: str, environment: Mapping[str, str] | None = None, directory: Path | None = None
) -> Target:
    """Read `dsn`, which came from `origin` (a flag, a file, an environment variable).

    What it leaves out comes from ~/.my.cnf or MYSQL_PWD of `environment`; libpq has such places of its own. Relative
    paths in it start in `directory`. Raises UsageError, which never contains the password, for what is not a DSN of
    MySQL, MariaDB or PostgreSQL, and for files that cannot be used.
    """
    scheme, family, parsed = _parse(dsn.strip(), origin)
    password = None if parsed.password is None else str(parsed.password)
    query = {key: value if isinstance(value, str) else value[-1] for key, value in parsed.query.items()}
    secrets = {password} if password else set()
    secrets |= {query[key] for key in SECRET_OPTIONS if query.get(key)}
    tells_secret = bool(secrets)
    warnings: list[str] = []
    if scheme.lower().startswith("mariadb"):
        warnings.append(
            f"the DSN from {origin} begins with mariadb: onestep given such a DSN makes tables without microseconds, "
            "without a lock and without utf8mb4; give onestep mysql+asyncmy://"
        )
    found: dict[str, Any] = {}
    place = f"the DSN from {origin}"
    start = directory or Path()
    if family == "mysql":
        file, group = query.pop("read_default_file", None), query.pop("read_default_group", None)
        path = None if file is None else str(start / Path(file).expanduser())
        login = find_login(environment or {}, path=path, group=group)
        secrets |= login.secrets
        warnings += login.warnings
        own = [DsnOption(name, value, place) for name, value in query.items()]
        filled = _Filled(parsed.set(drivername="mysql+pymysql", query={}), login)
        filled.take_login(environment or {})
        filled.take_place(strictly=file is not None, socket="unix_socket" in query)
        url, completed, remark = filled.url, filled.completed, filled.remark
        if url.password:
            secrets.add(str(url.password))
        args = mysql_arguments([*filled.options(), *own], start, warnings)
        if "unix_socket" not in args:
            found["host"] = "localhost"  # where PyMySQL goes without one
    else:
        args = postgresql_arguments([DsnOption(*pair, place) for pair in query.items()], start, warnings)
        url = parsed.set(
            drivername="postgresql+psycopg",
            query={k: v for k, v in parsed.query.items() if k in ("host", "port")},
        )
        for key in url.query:
            args.pop(key, None)
        found, completed = _of_libpq(url, args, environment or {}, secrets)
        remark = ""
    return Target(
        family=family,
        url=url,
        connect_args=args,
        origin=origin,
        secrets=secrets,
        warnings=tuple(warnings),
        completed=tuple(completed),
        remark=remark,
        tells_secret=tells_secret,
        _found=found,
    )


def _parse(dsn: str, origin: str) -> tuple[str, str, URL]:
    """Return the scheme as it stands, the family, and the URL without a driver."""
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    scheme, separator, rest = dsn.partition("://")
    if not separator:
        raise UsageError(f"the DSN from {origin} is not a URL", f"write it as {_FORMS}")
    family = _FAMILIES.get(scheme.lower().partition("+")[0])
    if family is None:
        # A DSN that lacks its scheme can have :// in its password: only what is a scheme may be shown.
        named = f"begins with {scheme}://" if _SCHEME.fullmatch(scheme) else "begins with no scheme"
        raise UsageError(
            f"the DSN from {origin} {named}, which is no database that opsctl operates",
            f"write it as {_FORMS}",
        )
    # A password may hold a ? too, so the options begin at the first ? that a name and a = follow.
    if OPTIONS_BEGIN.split(rest, maxsplit=1)[0].count("@") > 1:
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
    if "\0" in f"{parsed.username}{parsed.password}{parsed.database}{parsed.host}{parsed.query}" or "%00" in rest:
        raise UsageError(f"the DSN from {origin} has a NUL character in it", "take it out: no server takes one")
    if parsed.host and (host := unquote(parsed.host))[:1] == "/":  # as libpq writes a socket's directory
        socket = "host" if family == "postgresql" else "unix_socket"
        parsed = parsed.set(host="").update_query_dict({socket: host})
    return scheme, family, parsed


class _Filled:
    """A MySQL URL with what it left out taken from an option file, and what that was."""

    def __init__(self, url: URL, login: Login) -> None:
        self.url = url
        self.completed: list[tuple[str, str]] = []
        self.remark = ""
        self._login = login
        self._socket: DsnOption | None = None

    def take_login(self, environment: Mapping[str, str]) -> None:
        """The user and the password. A file's password belongs to its user: no other one gets it."""
        own, theirs = self.url.username or None, self._login.get("user") or None
        if own is None and theirs:
            self.url = self.url.set(username=self._taken("user"))
        if self.url.password is not None:
            return
        option = self._login.options.get("password")
        if option is not None and (own is None or theirs in (None, own)):
            self.url = self.url.set(password=self._taken("password"))
        elif value := environment.get("MYSQL_PWD"):
            self.completed.append(("password", "MYSQL_PWD"))
            self.url = self.url.set(password=value)
        elif option is not None:
            self.remark = f"the password in {option.origin} is for the user {theirs}"

    def take_place(self, *, strictly: bool, socket: bool) -> None:
        """Host, port or socket, and database. A file's port belongs to its host, unless the DSN itself named the file."""
        host = self.url.host or None
        theirs = self._login.get("host") or None
        if host is None and not socket and theirs:
            self.url = self.url.set(host=self._taken("host"))
        near = (self.url.host or "localhost") == "localhost" and (host is None or strictly)
        protocol = (self._login.get("protocol") or "").upper()
        if near and not socket and self._login.get("socket") and protocol != "TCP":
            option = self._login.options["socket"]
            self._socket = DsnOption("unix_socket", self._taken("socket"), option.origin)
        elif self.url.port is None and not socket and self._login.get("port") and (strictly or host in (None, theirs)):
            option = self._login.options["port"]
            if not (option.value or "").isdecimal() or not 0 < int(option.value or 0) < 65536:
                raise UsageError(f"{option.path} line {option.line}: port is none", "use a port from 1 to 65535")
            self.url = self.url.set(port=int(self._taken("port")))
        if not self.url.database and self._login.get("database"):
            self.url = self.url.set(database=self._taken("database"))

    def options(self) -> list[DsnOption]:
        """The socket and what is said of TLS, to stand before the DSN's own options."""
        found = [self._socket] if self._socket else []
        for name in _TLS_OF_FILES:
            if name in self._login.options:
                option = self._login.options[name]
                spelt = "ssl_key_password" if name == "ssl-passphrase" else name
                found.append(DsnOption(spelt, self._taken(name), option.origin))
        return found

    def _taken(self, name: str) -> str:
        option = self._login.options[name]
        self.completed.append((name, option.origin))
        return option.value or ""


def _of_libpq(
    url: URL, args: Mapping[str, Any], environment: Mapping[str, str], secrets: set[str]
) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Return what libpq will take from PGHOST, PGSERVICE and their like: what is shown of it, and where it is from."""
    found = {"username": args.get("user"), "database": args.get("dbname"), "host": args.get("hostaddr")}
    if "service" in args:
        return found, [("the rest", f"the service {args['service']}")]
    service = environment.get("PGSERVICE")
    completed = [("the rest", f"PGSERVICE {service}")] if service else []
    if not any(name.startswith("PG") for name in environment):
        return found, completed
    import psycopg.pq

    own: dict[str, Any] = {"user": url.username, "password": url.password, "dbname": url.database}
    own |= {"host": url.host, "port": url.port, **url.query, **args}
    shown = {"user": "username", "dbname": "database", "host": "host", "hostaddr": "host", "port": "port"}
    for option in psycopg.pq.Conninfo.get_defaults():
        name, variable = option.keyword.decode(), (option.envvar or b"").decode()
        value = (option.val or b"").decode(errors="surrogateescape")
        if not value or name not in (*shown, "password"):
            continue
        if name == "password":
            secrets.add(value)
        if not own.get(name) and (service or environment.get(variable)):
            if name in shown and (name, value) != ("port", "5432"):
                found[shown[name]] = value
            if not service:
                completed.append((name, variable))
    return found, completed


def _all_of(value: str | tuple[str, ...] | None) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else value or ()


def _listed(names: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
