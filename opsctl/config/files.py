"""Configuration files: which there are, what they say, and what is wrong in them."""

from __future__ import annotations

import os
import stat
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opsctl.config.keys import DIRECTORIES, FILE, KEYS, SECONDS, TARGET_KEYS, Setting, checked, nearest
from opsctl.errors import UsageError

SYSTEM_FILE = Path("/etc/opsctl/config.toml")


@dataclass(frozen=True)
class ConfigFile:
    """A file that was read: `label` names it in messages, paths in it are relative to its own folder."""

    path: Path
    label: str
    top: Mapping[str, Setting] = field(repr=False)
    targets: Mapping[str, Mapping[str, Setting]] = field(repr=False)


def candidates(
    config_file: str | None, environment: Mapping[str, str], directory: Path, system_file: Path
) -> Iterable[tuple[Path, str, bool]]:
    """Yield path, name in messages, and whether it must exist."""
    if config_file is not None:
        yield directory / Path(config_file).expanduser(), config_file, True
    elif named := environment.get("OPSCTL_CONFIG"):
        yield directory / Path(named).expanduser(), named, True
    else:
        yield directory / "opsctl.toml", "./opsctl.toml", False
    if base := environment.get("XDG_CONFIG_HOME") or ((home := environment.get("HOME")) and f"{home}/.config"):
        own = Path(base) / "opsctl/config.toml"
        yield own, str(own), False
    yield system_file, str(system_file), False


def read_file(path: Path, label: str, *, required: bool) -> ConfigFile | None:
    """Return what the file says, None when it is not there and need not be."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (FileNotFoundError, NotADirectoryError):
        if required:
            raise UsageError(f"the configuration file {label} does not exist", "correct --config FILE") from None
        return None
    except OSError as error:
        raise UsageError(
            f"the configuration file {label} cannot be read: {error.strerror}", "make it readable, or move it away"
        ) from None
    except UnicodeDecodeError:
        raise UsageError(f"the configuration file {label} is not UTF-8 text", "save it as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        # Only where it is wrong: the text around it may be a DSN.
        at = str(error).rpartition("(")[2].rstrip(")") if "(at " in str(error) else "somewhere"
        raise UsageError(
            f"the configuration file {label} is not TOML: {at}",
            'write key = "value" lines, and strings in quotes; in a DSN use %22 for a quote',
        ) from None
    targets = document.pop("targets", {})
    if not isinstance(targets, dict) or not all(isinstance(value, dict) for value in targets.values()):
        raise UsageError(f"{label}: targets is no table of tables", 'write [targets.NAME] and below it dsn = "…"')
    top = {name: _setting(name, value, label, path, list(KEYS)) for name, value in document.items()}
    by_target = {
        target: {
            name: _setting(name, value, f"{label} [targets.{target}]", path, TARGET_KEYS)
            for name, value in table.items()
        }
        for target, table in targets.items()
    }
    return ConfigFile(path, label, top, by_target)


def _setting(name: str, value: Any, place: str, path: Path, known: list[str]) -> Setting:
    if name not in known:
        where = "" if name not in KEYS else " (it stands at the top of a file, not in a target)"
        raise UsageError(f"{place}: unknown key {name!r}{where}", f"known are {', '.join(known)}{nearest(name, known)}")
    key = KEYS[name]
    if key.kind == SECONDS and isinstance(value, int | float) and not isinstance(value, bool):
        text = repr(value)
    elif key.kind == DIRECTORIES and isinstance(value, list) and all(isinstance(part, str) for part in value):
        text = os.pathsep.join(str(path.parent / Path(part).expanduser()) for part in value)
    elif key.kind != SECONDS and isinstance(value, str):
        text = str(path.parent / Path(value).expanduser()) if key.kind in (FILE, DIRECTORIES) else value
    else:
        wanted = {SECONDS: "a number of seconds", DIRECTORIES: "a list of directories"}.get(key.kind, "a string")
        example = {SECONDS: "5", DIRECTORIES: '["queries"]'}.get(key.kind, '"…"')
        raise UsageError(f"{place}: {name} is not {wanted}", f"write {name} = {example}")
    if text == "":
        raise UsageError(f"{place}: {name} is empty", "give it a value, or leave the line out")
    return Setting(checked(text, key, f"{place}: {name}"), place)


def exposed_secret(file: ConfigFile) -> Iterable[str]:
    """Warn of a file that other users of the machine can read although a password stands in it."""
    tables = [file.top, *file.targets.values()]
    secrets = [setting.value for table in tables for name, setting in table.items() if KEYS[name].secret]
    if any(":" in value.partition("://")[2].rpartition("@")[0] for value in secrets):
        mode = file.path.stat().st_mode
        if mode & (stat.S_IRGRP | stat.S_IROTH):
            yield f"{file.label} holds a password and other users can read it: chmod 600 {file.path}"


def read_dsn_file(path: str, origin: str) -> str:
    """Return the one DSN in the file at `path`, which `origin` named; lines with # are comments."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageError(
            f"{origin} {path} cannot be read: {reason}", "give a readable file with one DSN in it"
        ) from None
    lines = [line.strip() for line in text.split("\n")]
    lines = [line for line in lines if line and not line.startswith("#")]
    if len(lines) != 1:
        raise UsageError(f"{origin} {path} holds {len(lines)} DSNs", "write one DSN into it, on a line of its own")
    return lines[0]
