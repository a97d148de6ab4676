"""Where a value comes from.

Files, nearest first: the one of --config or OPSCTL_CONFIG, else ./opsctl.toml; $XDG_CONFIG_HOME/opsctl/config.toml;
/etc/opsctl/config.toml. Each value comes from the nearest place that has it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path

from opsctl.config.files import SYSTEM_FILE, ConfigFile, candidates, exposed_secret, read_dsn_file, read_file, table_of
from opsctl.config.keys import FAMILY_PREFIX, KEYS, TARGET_KEYS, Setting, checked, nearest
from opsctl.errors import UsageError

#: Variables of opsctl that are no key of a file.
_OTHER_VARIABLES = frozenset(("OPSCTL_CONFIG",))
_OWN_DSN = ("OPSCTL_DSN", "OPSCTL_DSN_FILE")


class NoDatabase(UsageError):
    """Nothing names a database."""


class Settings:
    """All places that a value can come from, read once. Every problem is a UsageError that names the place."""

    def __init__(
        self,
        flags: Mapping[str, str | None],
        environment: Mapping[str, str],
        *,
        config_file: str | None = None,
        directory: Path | None = None,
        system_file: Path = SYSTEM_FILE,
    ) -> None:
        self.flags = {name: value for name, value in flags.items() if value is not None}
        self.environment = environment
        self.warnings: list[str] = list(_misspelt_variables(environment))
        self.files: list[ConfigFile] = []
        for candidate in candidates(config_file, environment, directory or Path.cwd(), system_file):
            if file := read_file(candidate, self.warnings):
                self.files.append(file)
                self.warnings += exposed_secret(file)

    # -- one value ---------------------------------------------------------------------------------------------------

    def find(self, name: str, *, family: str | None = None) -> Setting | None:
        """Return the setting `name` (not a DSN, which find_dsn knows about), None when nothing says it.

        `family` ("mysql", "postgresql") chooses among the deployment's own variables. A chosen target's own value comes
        before those: they speak of the deployment's database, which may be another.
        """
        key = KEYS[name]
        if name in self.flags:
            return Setting(self.flags[name], key.flag)
        if value := self.environment.get(key.variable):
            return Setting(checked(value, key, key.variable), key.variable)
        if key.in_target and self.target is not None and (setting := self._of_target(self.target.value, name)):
            return setting
        if key.deployment and family:
            variable = FAMILY_PREFIX[family] + key.deployment
            if value := self.environment.get(variable):
                return Setting(value, variable)
        for file in self.files:
            if name in file.top:
                return file.top[name]
        return None if key.default is None else Setting(key.default, "default")

    def seconds(self, name: str, *, default: float | None = None) -> float:
        """Return a time limit; `default` is a command's own, before the general one."""
        setting = self.find(name)
        assert setting is not None
        return default if setting.origin == "default" and default is not None else float(setting.value)

    # -- targets -----------------------------------------------------------------------------------------------------

    @property
    def target_names(self) -> list[str]:
        """The [targets.NAME] of all files, nearest first."""
        return list(dict.fromkeys(name for file in self.files for name in file.targets))

    @cached_property
    def target(self) -> Setting | None:
        """The target that is used: named by flag or variable, or by a file when nothing nearer names a database."""
        if "target" in self.flags:
            if both := sorted({"dsn", "dsn_file"} & set(self.flags)):
                raise UsageError(f"--target and {KEYS[both[0]].flag} are both given", "give one of them")
            return self._known_target(Setting(self.flags["target"], "--target"))
        if "dsn" in self.flags or "dsn_file" in self.flags:
            return None
        if name := self.environment.get("OPSCTL_TARGET"):
            if both := [own for own in _OWN_DSN if self.environment.get(own)]:
                raise UsageError(f"OPSCTL_TARGET and {both[0]} are both set", "unset one of them, or give --target")
            return self._known_target(Setting(name, "OPSCTL_TARGET"))
        ordinary = [*_OWN_DSN, *(f"{p}_EXECUTION_DSN" for p in FAMILY_PREFIX.values())]
        if any(self.environment.get(variable) for variable in ordinary):
            return None
        for file in self.files:
            named = [name for name in ("target", "dsn", "dsn_file") if name in file.top]
            if "target" in named and len(named) > 1:
                raise UsageError(f"{file.label} has both target and {named[1]}", "keep one of them")
            if named:
                return self._known_target(file.top["target"]) if "target" in named else None
        return None

    def of_target(self, target: str) -> dict[str, Setting]:
        """Return what the files say of `target`, each value from the nearest file that has it."""
        found = {name: self._of_target(target, name) for name in TARGET_KEYS}
        return {name: setting for name, setting in found.items() if setting}

    def _of_target(self, target: str, name: str) -> Setting | None:
        for file in self.files:
            if name in file.targets.get(target, {}):
                return file.targets[target][name]
        return None

    def _known_target(self, target: Setting) -> Setting:
        if target.value in self.target_names:
            return target
        if self.target_names:
            hint = f"known are {', '.join(self.target_names)}{nearest(target.value, self.target_names)}"
        else:
            hint = f"write [{table_of(target.value)}] with a dsn or dsn_file into opsctl.toml, or name its file by --config FILE"
        raise UsageError(f"there is no target {target.value!r} ({target.origin})", hint)

    # -- the database ------------------------------------------------------------------------------------------------

    def find_dsn(self, *, for_schema_change: bool) -> Setting:
        """Return the DSN to use.

        Order: --dsn or --dsn-file; for a command that changes the schema the migration DSN of the environment
        (OPSCTL_MIGRATION_DSN, then the deployment's), then the target's; --target; OPSCTL_TARGET, OPSCTL_DSN or
        OPSCTL_DSN_FILE; the deployment's DSN; the files. Raises UsageError when there is none, when two contradict each
        other, or when a file cannot be read.
        """
        named = self.target if "target" in self.flags else None  # raises beside --dsn
        if not named and (setting := _one_of(self._flag_settings(), "dsn", "dsn_file", "given")):
            return setting
        kinds = ("migration_dsn", "dsn") if for_schema_change else ("dsn",)
        if for_schema_change and (setting := self._from_environment("migration_dsn")):
            return setting
        if self.target is not None:
            own = self.of_target(self.target.value)
            for kind in kinds:
                if setting := _one_of(own, kind, f"{kind}_file", "set"):
                    return setting
            raise NoDatabase(
                f"[{table_of(self.target.value)}] names no database", "give it a dsn, or a dsn_file with one in it"
            )
        if setting := self._from_environment("dsn"):
            return setting
        for file in self.files:
            for kind in kinds:
                if setting := _one_of(file.top, kind, f"{kind}_file", "set"):
                    return setting
        raise NoDatabase(
            "no database is named",
            "give --dsn-file FILE, or set OPSCTL_DSN, MYSQL_EXECUTION_DSN or POSTGRES_EXECUTION_DSN,"
            " or write a dsn into opsctl.toml",
        )

    def _flag_settings(self) -> dict[str, Setting]:
        return {name: Setting(value, KEYS[name].flag) for name, value in self.flags.items()}

    def _from_environment(self, kind: str) -> Setting | None:
        """Return the DSN of this kind ("dsn", "migration_dsn") that the environment names: opsctl's own or else the deployment's."""
        own = {
            name: Setting(value, KEYS[name].variable)
            for name in (kind, f"{kind}_file")
            if (value := self.environment.get(KEYS[name].variable))
        }
        return _one_of(own, kind, f"{kind}_file", "set") or self._deployment_dsn(kind)

    def _deployment_dsn(self, kind: str) -> Setting | None:
        suffix = KEYS[kind].deployment or ""
        names = [f"{p}{suffix}" for p in FAMILY_PREFIX.values() if self.environment.get(f"{p}{suffix}")]
        families = [
            prefix
            for prefix in FAMILY_PREFIX.values()
            if self.environment.get(f"{prefix}_EXECUTION_DSN")
            or self.environment.get(f"{prefix}_EXECUTION_MIGRATION_DSN")
        ]
        if names and len(families) > 1:
            named = [self.flags.get("target"), *map(self.environment.get, ("OPSCTL_TARGET", *_OWN_DSN))]
            if any(named):
                return None  # that says which database is meant, and neither family does
            raise UsageError(
                "MYSQL_EXECUTION_… and POSTGRES_EXECUTION_… are both set, so the database is not clear",
                "give --target, --dsn-file FILE or --dsn, set OPSCTL_DSN, or unset the family that is not meant",
            )
        return Setting(self.environment[names[0]], names[0]) if names else None


def _one_of(settings: Mapping[str, Setting], value: str, file: str, verb: str) -> Setting | None:
    """Return the DSN that `settings` has as a value or in a file; raises UsageError when it has both."""
    if value in settings and file in settings:
        first, second = settings[value].origin, settings[file].origin
        names = f"{first} and {second}" if first != second else f"{value} and {file} in {first}"
        raise UsageError(f"{names} are both {verb}", "keep one of them")
    if value in settings:
        return settings[value]
    if file in settings:
        path, origin = settings[file].value, settings[file].origin
        if origin[:1] == "-" or origin.isupper():  # an option or a variable, which names the file by itself
            return Setting(read_dsn_file(path, f"{origin} {path}"), f"{origin} {path}")
        return Setting(read_dsn_file(path, f"{file} {path} ({origin})"), f"{path} ({file} in {origin})")
    return None


def _misspelt_variables(environment: Mapping[str, str]) -> Iterable[str]:
    known = {key.variable for key in KEYS.values()} | _OTHER_VARIABLES
    for variable in sorted(environment):
        if variable.startswith("OPSCTL_") and variable not in known:
            near = difflib.get_close_matches(variable, sorted(known), n=1, cutoff=0.85)
            if near:
                yield f"the variable {variable} means nothing to opsctl; was {near[0]} meant?"
