"""Configuration files: which there are, what they say, and what is wrong in them."""

from __future__ import annotations

import json
import os
import re
import stat
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opsctl.config.keys import DIRECTORIES, FILE, KEYS, SECONDS, TARGET_KEYS, Setting, checked, nearest
from opsctl.errors import UsageError
from opsctl.redaction import secrets_in

SYSTEM_FILE = Path("/etc/opsctl/config.toml")


@dataclass(frozen=True)
class ConfigFile:
    """A file that was read: `label` names it in messages, paths in it are relative to its own folder."""

    path: Path
    label: str
    top: Mapping[str, Setting] = field(repr=False)
    targets: Mapping[str, Mapping[str, Setting]] = field(repr=False)


@dataclass(frozen=True)
class Candidate:
    """A file that may be there: `named_by` is the flag or variable that asks for it, so that it must be."""

    path: Path
    label: str
    named_by: str = ""
    of_the_system: bool = False


def candidates(
    config_file: str | None, environment: Mapping[str, str], directory: Path, system_file: Path
) -> Iterable[Candidate]:
    """Yield the files to read, nearest first."""
    if config_file is not None:
        yield Candidate(directory / expanded(config_file), config_file, "--config")
    elif named := environment.get("OPSCTL_CONFIG"):
        yield Candidate(directory / expanded(named), named, "OPSCTL_CONFIG")
    else:
        yield Candidate(directory / "opsctl.toml", "./opsctl.toml")
    home = environment.get("HOME")
    base = environment.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(base):  # the XDG specification: a relative path is to be ignored
        base = f"{home}/.config" if home else ""
    if base:
        own = Path(base) / "opsctl/config.toml"
        yield Candidate(own, str(own))
    yield Candidate(system_file, str(system_file), of_the_system=True)


def expanded(path: str) -> Path:
    """Return `path` with ~ in it replaced; Path's own expanduser raises for a user that is not there."""
    return Path(os.path.expanduser(path))


def read_file(candidate: Candidate, warnings: list[str]) -> ConfigFile | None:
    """Return what the file says, None when it is not there and need not be."""
    path, label = candidate.path, candidate.label
    if candidate.named_by and label == "":
        raise UsageError(f"{candidate.named_by} names no file", f"write {candidate.named_by} FILE, or leave it out")
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (FileNotFoundError, NotADirectoryError):
        if candidate.named_by:
            raise UsageError(
                f"the configuration file {label} ({candidate.named_by}) does not exist",
                f"correct {candidate.named_by}: it is looked for at {path}",
            ) from None
        return None
    except PermissionError:
        if candidate.of_the_system:
            # Whoever may not read it cannot mend that either, and has files of their own.
            warnings.append(f"the configuration file {label} is passed over: you may not read it")
            return None
        raise UsageError(
            f"the configuration file {label} cannot be read: permission denied",
            f"chmod u+r {path}, or move it away",
        ) from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        remedy = "name a file, not its directory" if candidate.named_by else "make it a readable file, or move it away"
        raise UsageError(f"the configuration file {label} cannot be read: {reason}", remedy) from None
    except UnicodeDecodeError as error:
        raise UsageError(
            f"the configuration file {label} is not UTF-8 text (byte {error.start + 1})", "save it as UTF-8"
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise _no_toml(label, error) from None
    return _checked_file(document, path, label)


def _no_toml(label: str, error: tomllib.TOMLDecodeError) -> UsageError:
    """Say only where it is wrong and nothing of what stands there: it may be a DSN."""
    what, _, at = str(error).rpartition(" (at ")
    where = f"{at.rstrip(')')}" if what else "somewhere"
    if "overwrite" in what or "twice" in what:
        return UsageError(
            f"the configuration file {label}, {where}: a key or a table is there twice", "keep one of them"
        )
    return UsageError(
        f"the configuration file {label} is not TOML, {where}",
        'write key = "value" lines, and every string in quotes; in a DSN write %22 for a quote',
    )


def _checked_file(document: dict[str, Any], path: Path, label: str) -> ConfigFile:
    targets = document.pop("targets", {})
    if not isinstance(targets, dict):
        raise UsageError(f"{label}: targets is no table", 'write [targets.NAME] and below it dsn = "…"')
    for name, value in targets.items():
        if not isinstance(value, dict):
            raise UsageError(
                f"{label}: {name} stands in [targets] itself, not in a target",
                f'write [targets.NAME] and below it {name if name in TARGET_KEYS else "dsn"} = "…"',
            )
    if isinstance(document.get("target"), dict):
        raise UsageError(f"{label}: [target] is a table", "write [targets.NAME], with an s")
    top = {name: _setting(name, value, label, path, list(KEYS)) for name, value in document.items()}
    by_target = {
        target: {
            name: _setting(name, value, f"{label} [{table_of(target)}]", path, TARGET_KEYS)
            for name, value in table.items()
        }
        for target, table in targets.items()
    }
    return ConfigFile(path, label, top, by_target)


def table_of(target: str) -> str:
    """Return the name of a target's table as TOML writes it."""
    if re.fullmatch(r"[A-Za-z0-9_-]+", target):
        return f"targets.{target}"
    return f"targets.{json.dumps(target, ensure_ascii=False)}"


def _setting(name: str, value: Any, place: str, path: Path, known: list[str]) -> Setting:
    if name not in known:
        where = "" if name not in KEYS else " (it stands at the top of a file, not in a target)"
        remedy = f"known are {', '.join(known)}{nearest(name, known)}"
        if isinstance(value, dict) and known is TARGET_KEYS:
            target = place.rpartition("[targets.")[2].rstrip("]")
            remedy = f'a target with a dot in its name stands in quotes: [targets."{target}.{name}"]'
        raise UsageError(f"{place}: unknown key {name!r}{where}", remedy)
    key = KEYS[name]
    texts = value if isinstance(value, list) else [value]
    if any(isinstance(text, str) and "\0" in text for text in texts):
        raise UsageError(f"{place}: {name} has a NUL character in it", "take it out")
    if value in ("", []) or any(text == "" for text in texts):
        raise UsageError(f"{place}: {name} is empty", "give it a value, or leave the line out")
    if key.kind == SECONDS and isinstance(value, int | float) and not isinstance(value, bool):
        text = repr(value)
    elif key.kind == DIRECTORIES and isinstance(value, list) and all(isinstance(part, str) for part in value):
        text = os.pathsep.join(str(path.parent / expanded(part)) for part in value)
    elif key.kind != SECONDS and isinstance(value, str):
        text = str(path.parent / expanded(value)) if key.kind in (FILE, DIRECTORIES) else value
    else:
        wanted = {SECONDS: "a number of seconds", DIRECTORIES: "a list of directories"}.get(key.kind, "a string")
        example = {SECONDS: "5", DIRECTORIES: '["queries"]'}.get(key.kind, '"…"')
        raise UsageError(f"{place}: {name} is not {wanted}", f"write {name} = {example}")
    return Setting(checked(text, key, f"{place}: {name}"), place, path.parent)


def exposed_secret(file: ConfigFile) -> Iterable[str]:
    """Warn of a file that every user of the machine can read although a password stands in it."""
    tables = [file.top, *file.targets.values()]
    secrets = [setting.value for table in tables for name, setting in table.items() if KEYS[name].secret]
    if any(secrets_in(value) for value in secrets) and file.path.stat().st_mode & stat.S_IROTH:
        yield f"{file.label} holds a password and every user can read it: chmod o-r {file.path}"


def read_dsn_file(path: str, named: str) -> str:
    """Return the one DSN in the file at `path`, which messages call `named`; lines with # are comments."""
    if not path:
        raise UsageError(f"{named.strip()} names no file", "give a readable file with one DSN in it")
    try:
        text = expanded(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = (error.strerror or str(error)) if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageError(f"{named} cannot be read: {reason}", "give a readable file with one DSN in it") from None
    lines = [line.strip() for line in text.split("\n")]
    lines = [line for line in lines if line and not line.startswith("#")]
    if len(lines) != 1:
        raise UsageError(f"{named} holds {len(lines)} DSNs", "write one DSN into it, on a line of its own")
    return lines[0]
