"""opsctl config show."""

from __future__ import annotations

import os
from typing import Any

import click

from opsctl import errors
from opsctl.cli import state
from opsctl.cli.options import common_options, complete_target, find_output, find_settings, open_dsn, output_option
from opsctl.cli.output import show_rows
from opsctl.config import KEYS, NoDatabase, Setting, Settings
from opsctl.config.files import table_of
from opsctl.config.keys import DIRECTORIES, FAMILY_PREFIX
from opsctl.errors import UsageError
from opsctl.redaction import MASK, mask_urls, secrets_in
from opsctl.rows import Rows


@click.group("config")
def config() -> None:
    """Show what is set, and where."""


@config.command("show", short_help="Print each setting as a command would use it now.")
@click.option("--origin", is_flag=True, help="Add where each value came from: flag, variable, file, default.")
@click.option(
    "--target", metavar="NAME", shell_complete=complete_target, help="As a command with this --target would see it."
)
@output_option
@common_options
def show_config(origin: bool, output: str | None, target: str | None) -> int:
    """Print each setting as a command would use it now; secrets are masked.

    Values come from: flag, environment, --config FILE or ./opsctl.toml, $XDG_CONFIG_HOME/opsctl/config.toml,
    /etc/opsctl/config.toml, default. Targets of the files follow as targets.NAME. When no command could use a DSN as it
    is, the rest is shown, and the exit code is 2.
    """
    settings = find_settings({"target": target, "output": output})
    shown = _Shown(settings)
    rows = [*shown.effective(), *shown.of_targets()]
    columns = ("setting", "value", "origin")[: 3 if origin else 2]
    # A DSN may have gone astray into any value or name.
    cells = tuple(tuple(None if cell is None else mask_urls(cell) for cell in row[: len(columns)]) for row in rows)
    show_rows(Rows(columns, cells), find_output(output), {})
    if shown.problem is not None:
        raise shown.problem
    return errors.EXIT_YES


class _Shown:
    """The rows of config show, and the first reason why a command could not work with them."""

    def __init__(self, settings: Settings) -> None:
        self.problem: UsageError | None = None
        self._settings = settings
        self._family: str | None = None

    def effective(self) -> list[tuple[Any, ...]]:
        """Return every setting in the order of KEYS; both DSNs as they are chosen, of their files only the outcome."""
        dsns = {"dsn": self._dsn(for_schema_change=False), "migration_dsn": self._dsn(for_schema_change=True)}
        rows: list[tuple[Any, ...]] = []
        for name in KEYS:
            if name in dsns:
                rows.append((name, *dsns[name]))
            elif name == "target":
                rows.append((name, *_value_and_origin(name, self._settings.target)))
            elif not name.endswith("dsn_file"):
                rows.append((name, *_value_and_origin(name, self._find(name))))
        return rows

    def of_targets(self) -> list[tuple[Any, ...]]:
        """Return what the files say of each target, whether it can be used or not."""
        rows: list[tuple[Any, ...]] = []
        for target in self._settings.target_names:
            for name, setting in self._settings.of_target(target).items():
                shown = _value_and_origin(name, setting)
                if name.endswith("dsn"):
                    try:
                        shown = str(open_dsn(setting)), setting.origin
                    except UsageError as error:
                        if self.problem is None or error.message != self.problem.message:
                            state.warn(error.message)
                rows.append((f"{table_of(target)}.{name}", *shown))
        return rows

    def _dsn(self, *, for_schema_change: bool) -> tuple[str | None, str | None]:
        setting = None
        try:
            setting = self._settings.find_dsn(for_schema_change=for_schema_change)
            found = open_dsn(setting)
        except NoDatabase:
            return None, None
        except UsageError as error:
            self.problem = self.problem or error
            return _value_and_origin("dsn", setting)
        for warning in found.warnings:
            state.warn(warning)
        self._family = self._family or found.family
        return str(found), found.whence.removeprefix("from ")

    def _find(self, name: str) -> Setting | None:
        found = self._settings.find(name, family=self._family)
        deployment = KEYS[name].deployment
        if self._family is None and deployment and (found is None or found.origin == "default"):
            # Without a database it is not clear whose variables count: show the one that is set.
            for prefix in FAMILY_PREFIX.values():
                if value := self._settings.environment.get(prefix + deployment):
                    return Setting(value, prefix + deployment)
        return found


def _value_and_origin(name: str, setting: Setting | None) -> tuple[str | None, str | None]:
    if setting is None:
        return None, None
    value = setting.value
    if KEYS[name].secret:
        value = mask_urls(value)
        # Of what has no form that is known nothing is shown.
        value = value if "://" in value and not secrets_in(value) - {MASK} else MASK
    elif KEYS[name].kind == DIRECTORIES:
        value = mask_urls(value).replace(os.pathsep, " ")
    return value, setting.origin
