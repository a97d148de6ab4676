"""Configuration files and targets: the nearest place that has a value wins, and what is wrong in a file is said."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as configured
from hypothesis import strategies as st

from opsctl.config import KEYS, Setting, Settings
from opsctl.config.keys import CHOICE, DIRECTORIES, SECONDS
from opsctl.errors import UsageError

PLACES = ("flag", "environment", "near", "user", "system")


class Home:
    """A machine with the three files, as far as they are written."""

    def __init__(self, root: Path) -> None:
        self.near = root / "work/opsctl.toml"
        self.user = root / "xdg/opsctl/config.toml"
        self.system = root / "etc/opsctl/config.toml"
        self.environment = {"XDG_CONFIG_HOME": str(root / "xdg")}
        for path in (self.near, self.user, self.system):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)

    def settings(self, config_file: str | None = None, **flags: str) -> Settings:
        return Settings(
            flags,
            self.environment,
            config_file=config_file,
            directory=self.near.parent,
            system_file=self.system,
        )


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def value_of(name: str, number: int) -> str:
    kind = KEYS[name].kind
    if kind == SECONDS:
        return str(number + 1)
    if kind == CHOICE:
        return ("json", "yaml", "csv", "vertical", "table")[number]
    return f"/{name}/{number}"


def toml(name: str, value: str) -> str:
    if KEYS[name].kind == SECONDS:
        return f"{name} = {value}\n"
    return f'{name} = ["{value}"]\n' if KEYS[name].kind == DIRECTORIES else f'{name} = "{value}"\n'


PLAIN_KEYS = sorted(name for name in KEYS if not name.startswith(("dsn", "migration_dsn", "target")))


@configured(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(PLAIN_KEYS), having=st.sets(st.sampled_from(PLACES)))
def test_the_nearest_place_that_has_a_value_wins(name: str, having: set[str], tmp_path: Path) -> None:
    home = Home(tmp_path)
    flags = {}
    for number, place in enumerate(PLACES):
        if place not in having:
            continue
        value = value_of(name, number)
        if place == "flag":
            flags[name] = value
        elif place == "environment":
            home.environment[KEYS[name].variable] = value
        else:
            getattr(home, place).write_text(toml(name, value))
    found = home.settings(**flags).find(name)
    first = next((place for place in PLACES if place in having), None)
    if first is None:
        assert found == (Setting(KEYS[name].default, "default") if KEYS[name].default else None)
        return
    origins = {
        "flag": KEYS[name].flag,
        "environment": KEYS[name].variable,
        "near": "./opsctl.toml",
        "user": str(home.user),
        "system": str(home.system),
    }
    assert found is not None
    assert (float(found.value) if KEYS[name].kind == SECONDS else found.value) == (
        float(value_of(name, PLACES.index(first)))
        if KEYS[name].kind == SECONDS
        else value_of(name, PLACES.index(first))
    )
    assert found.origin == origins[first]


def test_a_named_file_takes_the_place_of_the_one_in_the_folder(home: Home, tmp_path: Path) -> None:
    home.near.write_text('namespace = "near"\n')
    home.user.write_text('namespace = "user"\nschema = "user"\n')
    (tmp_path / "named.toml").write_text('namespace = "named"\n')
    for found in (home.settings(config_file=str(tmp_path / "named.toml")), None):
        if found is None:
            home.environment["OPSCTL_CONFIG"] = str(tmp_path / "named.toml")
            found = home.settings()
        assert found.find("namespace") == Setting("named", str(tmp_path / "named.toml"))
        assert found.find("schema") == Setting("user", str(home.user))
    with pytest.raises(UsageError, match=r"none\.toml"):
        home.settings(config_file="none.toml")


def test_paths_are_relative_to_their_file(home: Home) -> None:
    (home.user.parent / "prod.dsn").write_text("mysql://u@h/d\n")
    home.user.write_text('dsn_file = "prod.dsn"\nquery_path = ["q", "/r"]\n')
    found = home.settings()
    assert found.find_dsn(for_schema_change=False).value == "mysql://u@h/d"
    query_path = found.find("query_path")
    assert query_path is not None
    assert query_path.value.split(os.pathsep) == [str(home.user.parent / "q"), "/r"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('namespce = "x"', ["namespce", "namespace"]),
        ('[targets.a]\ndns = "x"', ["[targets.a]", "dns", "dsn"]),
        ('[targets.a]\npager = "x"', ["[targets.a]", "pager"]),
        ("connect_timeout = true", ["connect_timeout", "seconds"]),
        ('connect_timeout = "5"', ["connect_timeout", "seconds"]),
        ("connect_timeout = 0", ["connect_timeout"]),
        ("connect_timeout = nan", ["connect_timeout"]),
        ("namespace = 5", ["namespace"]),
        ('namespace = ""', ["namespace", "empty"]),
        ('output = "jsno"', ["output", "json"]),
        ('targets = "x"', ["targets"]),
        ('targets = {a = "x"}', ["targets"]),
        ("query_path = [1]", ["query_path"]),
        ('a = "b', ["TOML"]),
        ('dsn = "mysql://u:s3cret"x@h/d"', ["TOML", "line 1"]),
        ('dsn = "mysql://u:s3cret@h/d"\ndsn = "mysql://u:s3cret@h/d"', ["twice"]),
    ],
)
def test_what_is_wrong_in_a_file_is_said_without_its_secrets(text: str, said: list[str], home: Home) -> None:
    home.near.write_text(text)
    with pytest.raises(UsageError) as caught:
        home.settings()
    whole = f"{caught.value.message}\n{caught.value.hint}"
    assert caught.value.hint
    assert "opsctl.toml" in whole
    for word in said:
        assert word in whole
    assert "s3cret" not in whole


@pytest.mark.parametrize("content", [b"namespace = '\xff'", None])
def test_a_file_that_is_no_text_file(content: bytes | None, home: Home) -> None:
    if content is None:
        home.near.mkdir()
    else:
        home.near.write_bytes(content)
    with pytest.raises(UsageError, match=r"opsctl\.toml"):
        home.settings()


def test_a_password_that_others_can_read_is_warned_about(home: Home) -> None:
    home.near.write_text('[targets.a]\ndsn = "mysql://u:s3cret@h/d"\n')
    home.near.chmod(0o644)
    (warning,) = home.settings().warnings
    assert "chmod o-r" in warning
    assert "s3cret" not in warning
    home.near.chmod(0o600)
    assert home.settings().warnings == []


def test_a_misspelt_variable_is_warned_about(home: Home) -> None:
    home.environment["OPSCTL_NAMESPCE"] = "x"
    home.environment["OPSCTL_TEST_MYSQL_DSN"] = "x"
    (warning,) = home.settings().warnings
    assert "OPSCTL_NAMESPACE" in warning


# -- targets -----------------------------------------------------------------------------------------------------------

TARGETS = """
[targets.prod]
dsn = "mysql://prod@h/d"
migration_dsn = "mysql://prod-migration@h/d"
namespace = "prod"
executions_table = "prod_executions"

[targets."a.b"]
dsn = "postgresql://ab@h/d"

[targets.empty]
namespace = "x"

[targets.both]
dsn = "mysql://a@h/d"
dsn_file = "x"
"""


def test_a_target_names_the_database_and_its_own_settings(home: Home) -> None:
    home.near.write_text('namespace = "file"\nattempts_table = "file_attempts"\n' + TARGETS)
    home.environment |= {
        "OPSCTL_DSN": "mysql://env@h/d",
        "MYSQL_EXECUTION_DSN": "mysql://deployment@h/d",
        "MYSQL_EXECUTION_NAMESPACE": "deployment",
        "MYSQL_EXECUTIONS_TABLE": "deployment_executions",
    }
    found = home.settings(target="prod")
    place = "./opsctl.toml [targets.prod]"
    assert found.find_dsn(for_schema_change=False) == Setting("mysql://prod@h/d", place)
    assert found.find_dsn(for_schema_change=True) == Setting("mysql://prod-migration@h/d", place)
    assert found.find("namespace", family="mysql") == Setting("prod", place)
    assert found.find("executions_table", family="mysql") == Setting("prod_executions", place)
    assert found.find("attempts_table", family="mysql") == Setting("file_attempts", "./opsctl.toml")
    home.environment["OPSCTL_NAMESPACE"] = "own"
    assert home.settings(target="prod").find("namespace", family="mysql") == Setting("own", "OPSCTL_NAMESPACE")
    assert home.settings(target="a.b").find_dsn(for_schema_change=True).value == "postgresql://ab@h/d"


def test_the_migration_dsn_of_the_environment_comes_before_a_targets(home: Home) -> None:
    home.near.write_text(TARGETS)
    home.environment["MYSQL_EXECUTION_MIGRATION_DSN"] = "mysql://deployment@h/d"
    assert home.settings(target="prod").find_dsn(for_schema_change=True).value == "mysql://deployment@h/d"
    home.environment["OPSCTL_MIGRATION_DSN"] = "mysql://own@h/d"
    assert home.settings(target="prod").find_dsn(for_schema_change=True).value == "mysql://own@h/d"
    assert home.settings(target="prod").find_dsn(for_schema_change=False).value == "mysql://prod@h/d"
    assert home.settings(dsn="mysql://flag@h/d").find_dsn(for_schema_change=True).value == "mysql://flag@h/d"


def test_a_files_own_target_is_the_last_to_be_asked(home: Home) -> None:
    home.user.write_text('target = "prod"\n' + TARGETS)
    assert home.settings().find_dsn(for_schema_change=False).value == "mysql://prod@h/d"
    home.near.write_text('dsn = "mysql://near@h/d"\n')
    assert home.settings().find_dsn(for_schema_change=False).value == "mysql://near@h/d"
    assert home.settings().target is None
    home.environment["OPSCTL_TARGET"] = "a.b"
    assert home.settings().find_dsn(for_schema_change=False).value == "postgresql://ab@h/d"
    del home.environment["OPSCTL_TARGET"]
    home.environment["POSTGRES_EXECUTION_DSN"] = "postgresql://deployment@h/d"
    assert home.settings().find_dsn(for_schema_change=False).value == "postgresql://deployment@h/d"
    home.environment["OPSCTL_DSN"] = "mysql://own@h/d"
    assert home.settings().find_dsn(for_schema_change=False).value == "mysql://own@h/d"


def test_both_families_do_not_matter_beside_a_target(home: Home) -> None:
    home.near.write_text(TARGETS)
    home.environment |= {"MYSQL_EXECUTION_DSN": "m", "POSTGRES_EXECUTION_DSN": "p"}
    assert home.settings(target="prod").find_dsn(for_schema_change=False).value == "mysql://prod@h/d"
    with pytest.raises(UsageError, match="POSTGRES_EXECUTION"):
        home.settings().find_dsn(for_schema_change=False)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"target": "prdo"}, ["prdo", "prod"]),
        ({"target": "empty"}, ["empty", "dsn"]),
        ({"target": "both"}, ["dsn", "dsn_file"]),
        ({"target": "prod", "dsn": "mysql://h/d"}, ["--target", "--dsn"]),
        ({"target": "prod", "dsn_file": "x"}, ["--target", "--dsn-file"]),
    ],
)
def test_a_target_that_is_none_or_names_no_database(flags: dict[str, str], said: list[str], home: Home) -> None:
    home.near.write_text(TARGETS)
    with pytest.raises(UsageError) as caught:
        home.settings(**flags).find_dsn(for_schema_change=False)
    for word in said:
        assert word in caught.value.message + caught.value.hint


def test_a_target_in_two_files_is_read_value_by_value(home: Home) -> None:
    home.near.write_text('[targets.prod]\nnamespace = "near"\n')
    home.user.write_text(TARGETS)
    found = home.settings(target="prod")
    assert found.find("namespace") == Setting("near", "./opsctl.toml [targets.prod]")
    assert found.find_dsn(for_schema_change=False).origin == f"{home.user} [targets.prod]"
