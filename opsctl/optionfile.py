"""Option files of MySQL and MariaDB (~/.my.cnf), by the rules of their own clients.

The rules are those of mysys/my_default.cc, which both share; tests hold them against my_print_defaults. Three are kinder
here: a UTF-8 byte order mark is no option, the last byte of an unquoted "à" is no space, and lines have no longest length.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from opsctl.errors import UsageError

#: What [client] is to the programs of MySQL, the next two to those of MariaDB, and the last one to opsctl alone.
GROUPS = ("client", "client-server", "client-mariadb", "opsctl")

_SPACE = b" \t\n\v\f\r"
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "s": " ", '"': '"', "'": "'", "\\": "\\"}
_DEEPEST_INCLUDE = 10
#: Options that speak of the connection and must have a value.
_WITH_VALUE = frozenset(
    "host port socket user database protocol ssl-ca ssl-capath ssl-cert ssl-key ssl-cipher ssl-crl ssl-mode ssl-passphrase".split()
)
_SWITCHES = frozenset(("ssl", "ssl-verify-server-cert"))
_SECRETS = frozenset(("password", "ssl-passphrase"))


@dataclass(frozen=True)
class Option:
    """A line of an option file: the name as it stands, None for a line without =, the group and the file it is in."""

    name: str
    value: str | None = field(repr=False)
    group: str
    path: str
    line: int

    @property
    def origin(self) -> str:
        """Where it stands, for messages."""
        return f"{self.path} [{self.group}]"


@dataclass
class OptionFile:
    """What a file says in the groups asked for, those that it includes too, in order; and what is odd about it."""

    options: list[Option] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def read_option_file(
    path: str, groups: Collection[str], *, required: bool = True, label: str | None = None
) -> OptionFile:
    """Read the file at `path`, which messages call `label`. `required`: it was asked for by name.

    As for the clients, a file that everybody may write is ignored with a warning. Raises UsageError, which quotes
    nothing of it, for one that the clients would refuse, and for one that is required and cannot be read.
    """
    found = OptionFile()
    wanted = frozenset(group.lower() for group in groups)
    _read(_expanded(path), label or path, wanted, found, 0, required=required)
    return found


def _read(path: Path, label: str, groups: Collection[str], found: OptionFile, depth: int, *, required: bool) -> None:
    try:
        mode = path.stat().st_mode
    except OSError as error:
        if required:
            raise _unreadable(label, error) from None
        return  # the clients pass over it too, wherever it cannot even be looked for
    if stat.S_ISREG(mode) and mode & stat.S_IWOTH:
        found.warnings.append(
            f"{label} is ignored, as by the mysql client, since everybody may write it: chmod o-w {path}"
        )
        return
    try:
        content = path.read_bytes()
    except OSError as error:
        if required:
            raise _unreadable(label, error) from None
        found.warnings.append(f"{label} cannot be read: {error.strerror}")
        return
    group: str | None = None
    for number, raw in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        line = raw.partition(b"\0")[0].strip(_SPACE).decode(errors="surrogateescape")
        if not line or line[0] in "#;":
            continue
        if line[0] == "!":
            _include(line[1:], f"{label} line {number}", groups, found, depth)
        elif line[0] == "[":
            name, bracket, _ = line[1:].partition("]")
            if not bracket:
                raise UsageError(f"{label} line {number}: the name of a group has no ]", "write it as [client]")
            group = name.rstrip()
        elif group is None:
            raise UsageError(
                f"{label} line {number}: an option stands before the first group", "write [client] above it"
            )
        elif group.lower() in groups:
            name, value = _split(line)
            found.options.append(Option(name, value, group, label, number))


def _expanded(path: str) -> Path:
    return Path(os.path.expanduser(path))


def _unreadable(label: str, error: OSError) -> UsageError:
    return UsageError(
        f"the option file {label} cannot be read: {error.strerror}", "name a readable file, as ~/.my.cnf is one"
    )


def _include(directive: str, place: str, groups: Collection[str], found: OptionFile, depth: int) -> None:
    """Follow !include FILE and !includedir DIRECTORY; the clients pass over any other directive."""
    words = directive.split(None, 1)
    if not words or words[0] not in ("include", "includedir"):
        return
    if len(words) == 1:
        raise UsageError(f"{place}: !{words[0]} names nothing", f"write !{words[0]} and a path, or take the line away")
    if depth >= _DEEPEST_INCLUDE:
        found.warnings.append(f"{place}: !{words[0]} is ignored, it is {_DEEPEST_INCLUDE} files deep")
        return
    path = _expanded(words[1])
    paths = [path]
    if words[0] == "includedir":
        try:
            paths = sorted(one for one in path.iterdir() if one.suffix == ".cnf")
        except OSError as error:
            raise UsageError(
                f"{place}: the directory {path} cannot be read: {error.strerror}",
                "correct !includedir, or take it away",
            ) from None
    for one in paths:
        _read(one, str(one), groups, found, depth + 1, required=False)


def _split(line: str) -> tuple[str, str | None]:
    """Return an option's name and value, without comment, quotes and escapes."""
    name, equals, value = _without_comment(line).partition("=")
    name = name.rstrip(" \t\v\f\r")
    if not equals:
        return name, None
    value = value.strip(" \t\v\f\r")
    if len(value) > 1 and value[0] in "\"'" and value[-1] == value[0]:
        value = value[1:-1]
    return name, "".join(_unescaped(value))


def _without_comment(line: str) -> str:
    quote = ""
    escaped = False
    for position, character in enumerate(line):
        if character in "\"'" and not escaped:
            quote = character if not quote else "" if quote == character else quote
        if not quote and character == "#":
            return line[:position]
        escaped = bool(quote) and character == "\\" and not escaped
    return line


def _unescaped(value: str) -> Iterator[str]:
    position = 0
    while position < len(value):
        character = value[position]
        if character == "\\" and position + 1 < len(value):
            position += 1
            character = _ESCAPES.get(value[position], "\\" + value[position])
        yield character
        position += 1


# -- what a connection needs of it -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Login:
    """What option files say of a connection: names with dashes and without prefixes, the last value of each."""

    options: Mapping[str, Option] = field(default_factory=dict)
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    warnings: tuple[str, ...] = ()

    def get(self, name: str) -> str | None:
        """Return the value of an option, None when no file has it."""
        option = self.options.get(name)
        return None if option is None else option.value


def find_login(environment: Mapping[str, str], *, path: str | None = None, group: str | None = None) -> Login:
    """Return what the option file says to a client: the one at `path`, else ~/.my.cnf, which need not be there.

    Its groups are GROUPS, or `group` alone as for PyMySQL; with MYSQL_GROUP_SUFFIX those with the suffix too. Raises
    UsageError for a file that cannot be used.
    """
    required = path is not None
    if path is None:
        home = environment.get("HOME")
        if not home:
            return Login()
        path = os.path.join(home, ".my.cnf")
    groups = [group] if group else list(GROUPS)
    if suffix := environment.get("MYSQL_GROUP_SUFFIX"):
        groups += [name + suffix for name in groups]
    found = read_option_file(path, groups, required=required, label=None if required else "~/.my.cnf")
    options: dict[str, Option] = {}
    secrets = set()
    for option in found.options:
        name, value = _meaning(option)
        if name in _SECRETS and value:
            secrets.add(value)
        if value is not None:
            options[name] = replace(option, name=name, value=value)
        elif name == "password":
            options.pop(name, None)  # without a value it means "ask me", and opsctl does not
        elif name in _WITH_VALUE:
            raise UsageError(
                f"{option.path} line {option.line}: {name} has no value", f"write {name}=…, or take it away"
            )
    return Login(options, frozenset(secrets), tuple(found.warnings))


def _meaning(option: Option) -> tuple[str, str | None]:
    """Return the name with dashes and without prefixes, and the value; of a switch 1 or 0."""
    name = option.name.lower().replace("_", "-").removeprefix("loose-")
    for prefix, value in (("skip-", "0"), ("disable-", "0"), ("enable-", "1")):
        bare = name.removeprefix(prefix)
        if bare != name and bare in _SWITCHES:
            return bare, value
    if name in ("skip-password", "disable-password"):
        return "password", ""
    if name in _SWITCHES and option.value is None:
        return name, "1"
    return {"pass": "password"}.get(name, name), option.value
