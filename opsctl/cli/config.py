"""opsctl config show."""

from __future__ import annotations

from typing import Any

import click

from opsctl import errors
from opsctl.cli.options import common_options, find_output, find_settings, open_dsn, output_option
from opsctl.cli.output import show_rows
from opsctl.config import KEYS, Setting, Settings
from opsctl.config.keys import FAMILY_PREFIX
from opsctl.errors import UsageError
from opsctl.rows import Rows


@click.group("config")
def config() -> None:
    """Show what is set, and where."""


@config.command("show")
@click.option("--origin", is_flag=True, help="Add where each value came from: flag, variable, file, default.")
@click.option("--target", metavar="NAME", help="As a command with this --target would see it.")
@output_option
@common_options
def show_config(origin: bool, output: str | None, target: str | None) -> int:
    """Print each setting as a command would use it now; secrets are masked.

    Values come from: flag, environment, --config FILE or ./opsctl.toml, $XDG_CONFIG_HOME/opsctl/config.toml,
    /etc/opsctl/config.toml, default. Targets of the files follow as targets.NAME.
    """
    settings = find_settings({"target": target, "output": output})
    rows = [(name, *_shown(name, setting)) for name, setting in _effective(settings)]
    for name in settings.target_names:
        rows += [(f"targets.{name}.{key}", *_shown(key, value)) for key, value in settings.of_target(name).items()]
    columns = ("setting", "value", "origin")[: 3 if origin else 2]
    show_rows(Rows(columns, tuple(row[: len(columns)] for row in rows)), find_output(output), {})
    return errors.EXIT_YES


def _effective(settings: Settings) -> list[tuple[str, Setting | None]]:
    """Return every setting in the order of KEYS; both DSNs as they are chosen, of their files only the outcome."""
    found: dict[str, Setting | None] = {"target": settings.target}
    for name, changes in (("dsn", False), ("migration_dsn", True)):
        try:
            found[name] = settings.find_dsn(for_schema_change=changes)
        except UsageError as error:
            if not error.message.startswith(("no database", "[targets.")):
                raise
            found[name] = None
    dsn = found["dsn"] or found["migration_dsn"]
    family = open_dsn(dsn).family if dsn else None
    for name, key in KEYS.items():
        if name not in found and not name.endswith("dsn_file"):
            found[name] = settings.find(name, family=family)
            if found[name] is None and family is None and key.deployment:
                found[name] = _of_deployment(settings, key.deployment)
    return [(name, found[name]) for name in KEYS if name in found]


def _of_deployment(settings: Settings, suffix: str) -> Setting | None:
    """Without a database it is not clear whose variables count: show the one that is set."""
    for prefix in FAMILY_PREFIX.values():
        if value := settings.environment.get(prefix + suffix):
            return Setting(value, prefix + suffix)
    return None


def _shown(name: str, setting: Setting | None) -> tuple[Any, Any]:
    if setting is None:
        return None, None
    value = setting.value
    if KEYS[name].secret:
        value = masked(name, setting)
    elif name == "query_path":
        value = value.replace(":", " ")
    return value, setting.origin


def masked(name: str, setting: Setting) -> str:
    """Return a DSN or a URL without what is secret in it."""
    if name.endswith("dsn"):
        return str(open_dsn(setting))
    scheme, separator, rest = setting.value.partition("://")
    user, at, host = rest.rpartition("@")
    return (
        f"{scheme}{separator}{user.partition(':')[0]}{':***' if ':' in user else ''}{at}{host}" if separator else "***"
    )
