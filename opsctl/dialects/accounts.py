"""Accounts and roles as a person writes them: read, checked against what the server can have, quoted for it."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from opsctl.dialects import AnyDialect
from opsctl.dialects.postgresql import PostgreSQL
from opsctl.errors import UsageError

#: How long a name may be: characters, on PostgreSQL bytes, of which it would cut the rest without an error.
_NAME_LIMITS = {"mysql": 32, "mariadb": 128, "postgresql": 63}
_HOST_LIMIT = 255

#: Names that mean no account, in quotes neither: on PostgreSQL as they are here, on MariaDB in any case and without a host.
_RESERVED = {"public": "everybody", "none": "no role"}

_FORM = "write NAME, NAME@HOST or 'NAME'@'HOST', with a quote inside quotes doubled"
_CONTROLS = {"\0": "a NUL character", "\n": "a line break", "\r": "a line break", "\t": "a tab"}
_QUOTES = ("'", '"', "`")


@dataclass(frozen=True)
class Account:
    """An account or a role: `host` only on MySQL and MariaDB, None for any host or for a role."""

    name: str
    host: str | None = None

    def quoted(self, dialect: AnyDialect) -> str:
        """Return it as GRANT takes it: in backticks, which mean the same under every sql_mode, or double quotes."""
        host = "" if self.host is None else f"@{dialect.quote(self.host)}"
        return dialect.quote(self.name) + host


def parse_account(text: str, dialect: AnyDialect) -> Account:
    """Read an account: `name`, on MySQL and MariaDB also `name@host` and `'name'@'host'` in quotes of any kind.

    Raises UsageError for one that this server cannot have, or would take for another.
    """
    _require(bool(text), "the account is empty", "name the account or role that is to have the rights")
    _refuse_controls(text)
    account = Account(text) if isinstance(dialect, PostgreSQL) else _with_host(text)
    size, unit = len(account.name), "characters"
    if isinstance(dialect, PostgreSQL):
        size, unit = len(account.name.encode()), "bytes"
    else:
        _check_mysql(account, dialect)
    limit = _NAME_LIMITS[dialect.name]
    _require(
        size <= limit,
        f"the name {account.name} has {size} {unit}, {dialect.product} allows {limit}",
        "correct the name: no account of this server can have it",
    )
    name = account.name.lower() if dialect.name == "mariadb" else account.name
    _require(
        dialect.name == "mysql" or name not in _RESERVED or account.host is not None,
        f"{account.name} is no account: to {dialect.product} it means {_RESERVED.get(name)}",
        "name the account or role that is to have the rights",
    )
    return account


def _require(holds: bool, message: str, hint: str) -> None:
    if not holds:
        raise UsageError(f"--to: {message}", hint)


def _refuse_controls(text: str) -> None:
    for character in text:
        category = unicodedata.category(character)
        what = _CONTROLS.get(character, f"the control character U+{ord(character):04X}")
        hint = "correct the name: that would end or garble a line of the script"
        _require(category != "Cc", f"the account has {what} in it", hint)
        _require(category != "Cs", "the account has a byte in it that is no UTF-8 text", "write the name in UTF-8")


def _with_host(text: str) -> Account:
    if text[0] in _QUOTES:
        name, rest = _unquote(text)
        _require(rest[:1] in ("", "@"), f"{text}: {rest} behind the name is no host", _FORM)
        host = rest[1:] if rest else None
    else:
        name, at, behind = text.partition("@")
        user, _, last = text.rpartition("@")
        _require(
            "@" not in behind or behind[0] in _QUOTES,
            f"{text}: it has more than one @, so where the host begins is not clear",
            f"put the name in quotes: '{user}'@'{last}'",
        )
        host = behind if at else None
    if host and host[0] in _QUOTES:
        host, rest = _unquote(host)
        _require(not rest, f"{text}: {rest} behind the host means nothing", _FORM)
    _require(bool(name), f"{text}: the name is empty, which means everybody who has no account", _FORM)
    _require(host != "", f"{text}: the host is empty", "leave the @ out, or write NAME@% for any host")
    return Account(name, host)


def _unquote(text: str) -> tuple[str, str]:
    """Return what is in the quotes that `text` begins with, and what comes behind them."""
    quote, place, inside = text[0], 1, ""
    while place < len(text):
        if text[place] != quote:
            inside += text[place]
        elif text[place : place + 2] == quote * 2:
            inside += quote
            place += 1
        else:
            return inside, text[place + 1 :]
        place += 1
    raise UsageError(f"--to: {text}: the quote at the beginning is not closed", _FORM)


def _check_mysql(account: Account, dialect: AnyDialect) -> None:
    host = account.host or ""
    beyond = next((character for character in account.name + host if ord(character) > 0xFFFF), "")
    _require(
        not beyond,
        f"the account has the character {beyond} in it, which no account of {dialect.product} can have",
        "correct the name: MySQL takes a ? for it, which may be another account",
    )
    _require(
        dialect.name != "mysql" or not account.name.endswith(" "),
        f"the name {account.name!r} ends with a space, which MySQL drops",
        "correct the name: without the space it is another account",
    )
    _require(
        len(host) <= _HOST_LIMIT,
        f"the host has {len(host)} characters, {dialect.product} allows {_HOST_LIMIT}",
        "correct the host: no account of this server can have it",
    )
