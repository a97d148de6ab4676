"""Secrets kept out of every text: what is one, and how each of its forms is found.

A secret that is also the name of the user, the host or the database is taken away where a password stands, not where
that name does: the name says nothing of the password, and without it a message says nothing of the place.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from functools import lru_cache
from urllib.parse import unquote

MASK = "***"
_OPTION = r"(?:password|passwd|pwd|passphrase|sslpassword|ssl[_-]key[_-]password)"
#: What stands before a password: scheme://user:, password=, "password": ", IDENTIFIED BY '.
_BEFORE = rf"(?i:{_OPTION}[\"']?\s*[=:]\s*[\"']?|IDENTIFIED\s+BY\s+[\"']|\bPASSWORD\s+[\"'])|:/{{1,2}}[^\s:/@]*:"
_URL_PASSWORD = re.compile(r"(\b[A-Za-z][A-Za-z0-9+.-]{0,39}:/{1,2}[^\s:/@\"']*):(?!\*\*\*@)\S+@")
_OPTION_PASSWORD = re.compile(rf"(?i:{_OPTION})=([^&\s]+)")
#: Where the options of a DSN begin: a password may hold a ? too.
OPTIONS_BEGIN = re.compile(r"\?(?=[A-Za-z_][\w.-]*=)")


def secrets_in(text: str) -> set[str]:
    """Return the passwords in a DSN or a URL, also in one that is none: what stands before an @ or after password=."""
    found = {match[1] for match in _OPTION_PASSWORD.finditer(text)}
    rest = text.partition("://")[2] or text
    # An @ among the options is not the one before the host; where that is not clear, both are taken for it.
    for part in (rest, OPTIONS_BEGIN.split(rest, maxsplit=1)[0]):
        login, at, _ = part.rpartition("@")
        if at and ":" in login:
            found.add(login.partition(":")[2])
    return {secret for secret in found if secret.strip("/")}


def mask_urls(text: str) -> str:
    """Return `text` with the password of all in it that looks like scheme://user:password@host replaced."""
    return _URL_PASSWORD.sub(rf"\1:{MASK}@", text) if "@" in text and ":/" in text else text


def redact(text: str, secrets: Iterable[str], public: Iterable[str] = ()) -> str:
    """Return `text` without `secrets`: as they are, and as a URL, Python, JSON or SQL would write them.

    `public` are names that are shown all the same.
    """
    known = frozenset(filter(None, secrets))
    names = frozenset(filter(None, public))

    def replacement(match: re.Match[str]) -> str:
        if match["before"] is not None:
            return match["before"] + MASK
        return match[0] if match[0] in names else MASK

    return _pattern(known, names).sub(replacement, text) if known else text


@lru_cache(maxsize=32)
def _pattern(secrets: frozenset[str], public: frozenset[str]) -> re.Pattern[str]:
    """Return what finds all forms of all secrets; where several begin, the longest, or a longer public name, decides."""
    named = "|".join(_forms(secret) for secret in secrets & public)
    before = rf"(?P<before>{_BEFORE})(?:{named})(?!\w)" if named else "(?P<before>(?!))"
    forms = [(len(secret), _bounded(secret)) for secret in secrets - public]
    forms += [(len(name), rf"(?<!\w){re.escape(name)}(?!\w)") for name in public]
    return re.compile("|".join([before, *(pattern for _, pattern in sorted(forms, reverse=True))]))


def _bounded(secret: str) -> str:
    """Return the pattern of a secret; of one that is a word or a number only where it is a whole one.

    A password of three letters must not turn words that contain it into stars, nor "1234" a count.
    """
    if len(secret) > 3 and not re.fullmatch(r"[a-z]{1,12}|[0-9]{1,12}", secret):
        return _forms(secret)
    return rf"(?:(?<!\w)|(?<=%[0-9A-Fa-f]{{2}})|(?<=\\[nrtbfv]))(?:{_forms(secret)})(?!\w)"


@lru_cache(maxsize=1024)
def _forms(secret: str) -> str:
    plain = {secret, unquote(secret)} - {""}
    # A driver quotes a statement, and Python or JSON quotes the driver's message: one after the other.
    once = {form for text in plain for form in _quoted(text)}
    twice = {form for text in once for form in _quoted(text)}
    doubled = {form.replace("%", "%%") for form in once | twice}  # as a statement stands in a traceback
    patterns = {re.escape(form) for form in once | twice | doubled | {_base64(text) for text in plain}}
    patterns |= {"".join(map(_plain_or_percent, text)) for text in plain}
    return "|".join(sorted(patterns, key=len, reverse=True))


def _quoted(text: str) -> Iterator[str]:
    """Yield `text` as it stands inside a literal of Python (whose quotes may be the other ones), JSON, SQL, a shell."""
    for write in (repr, ascii):
        bare = "'".join(write('"' + part)[2:-1] for part in text.split("'"))
        yield from (bare, bare.replace("'", "\\'"))
    yield json.dumps(text)[1:-1]
    yield json.dumps(text, ensure_ascii=False)[1:-1]
    for bare in (text, text.replace("\\", "\\\\")):
        yield from (bare, bare.replace("'", "''"), bare.replace("'", "\\'"), bare.replace('"', '""'))
    yield text.replace("'", "'\"'\"'")


def _base64(text: str) -> str:
    return b64encode(_bytes(text)).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    """Return the bytes of `text`; Python hands on what is not UTF-8 in a variable or a file as lone surrogates."""
    try:
        return text.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return text.encode(errors="surrogatepass")


def _plain_or_percent(character: str) -> str:
    forms = [re.escape(character)] if character != " " else [" ", r"\+"]
    encoded = "".join(f"%{byte:02x}" for byte in _bytes(character))
    return f"(?:{'|'.join(forms)}|(?i:{encoded}))"
