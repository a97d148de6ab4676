"""What no terminal may get as it is: controls, and what turns, hides or breaks a line; and how it is written instead."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

#: Controls, what is invisible or changes the direction, line breaks that are none of ASCII, halves of surrogate pairs.
_FORMATTING = (
    "\\x7f-\\x9f\\xad\\u061c\\u180e\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u2064\\u2066-\\u206f"
    "\\ud800-\\udfff\\ufeff\\ufff9-\\ufffb\\U000e0001\\U000e0020-\\U000e007f"
)
#: Joiners hold emoji, and letters of some scripts, together; anywhere else they only hide.
_JOINERS = "\u200c\u200d"
_JOINED = re.compile(
    "[\\xae-\\u061b\\u061d-\\u180d\\u180f-\\u1fff\\u2070-\\ud7ff\\ue000-\\ufefe\\U00010000-\\U000dffff]"
)
_BEYOND_ASCII = re.compile(f"[{_FORMATTING}]")
_UNSAFE = re.compile(f"[\\x00-\\x1f{_FORMATTING}]")
_UNSAFE_OR_BACKSLASH = re.compile(f"[\\x00-\\x1f\\\\{_FORMATTING}]")
_NOT_ASCII = re.compile(r"[^\x00-\x7e]")
_SHORT = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def has_unsafe(text: str) -> bool:
    """Whether anything in `text` may not reach a terminal; a newline may not either."""
    return any(not _holds_together(match) for match in _UNSAFE.finditer(text))


def escape_c(text: str, *, ascii_only: bool = False) -> str:
    """Return `text` on one line, with C's escapes: a backslash is doubled, so it can be read back."""
    text = _UNSAFE_OR_BACKSLASH.sub(_unless_joined(_c_escape), text)
    return _NOT_ASCII.sub(lambda match: _c_escape(match[0]), text) if ascii_only else text


def escape_controls(text: str) -> str:
    """Return `text` with its lines, and C's escapes for what else is unsafe: for eyes only, a backslash stays single."""
    return _UNSAFE.sub(
        _unless_joined(lambda character: character if character in "\n\t" else _c_escape(character)), text
    )


def escape_json(text: str, *, ascii_only: bool = False) -> str:
    """Return JSON text with JSON's escapes for what its texts may hold and a terminal may not get."""
    if ascii_only:
        return _NOT_ASCII.sub(lambda match: _json_escape(match[0]), text)
    return _BEYOND_ASCII.sub(_unless_joined(_json_escape), text)


def escape_yaml(text: str) -> str:
    """Return YAML with YAML's escapes for what is unsafe, where all of it stands in double quotes."""
    return _BEYOND_ASCII.sub(_unless_joined(_wide_escape), text)


def _unless_joined(escape: Callable[[str], str]) -> Callable[[re.Match[str]], str]:
    return lambda match: match[0] if _holds_together(match) else escape(match[0])


def _holds_together(match: re.Match[str]) -> bool:
    """Whether this is a joiner between what can be joined."""
    if match[0] not in _JOINERS:
        return False
    before, after = match.string[match.start() - 1 : match.start()], match.string[match.end() : match.end() + 1]
    return _JOINED.match(before) is not None and _JOINED.match(after) is not None


def _c_escape(character: str) -> str:
    if short := _SHORT.get(character):
        return short
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else _wide_escape(character)


def _json_escape(character: str) -> str:
    return json.dumps(character)[1:-1]


def _wide_escape(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
