"""Where each value comes from: flags, the environment, files, targets; and what is wrong in them. No server."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opsctl.config import FORMATS, KEYS, Key, NoDatabase, Setting, Settings
from opsctl.config.keys import CHOICE, DIRECTORIES, FAMILY_PREFIX, FILE, SECONDS, TARGET_KEYS
from opsctl.errors import UsageError

ALL_OF_MYSQL = {
    "OPSCTL_MIGRATION_DSN": "own-migration",
    "OPSCTL_DSN": "own",
    "MYSQL_EXECUTION_MIGRATION_DSN": "mysql-migration",
    "MYSQL_EXECUTION_DSN": "mysql",
}
#: In order of precedence for a command that changes the schema; an ordinary command knows the last two only.
FOR_SCHEMA_CHANGE = ("OPSCTL_MIGRATION_DSN", "MYSQL_EXECUTION_MIGRATION_DSN", "OPSCTL_DSN", "MYSQL_EXECUTION_DSN")
ORDINARY = ("OPSCTL_DSN", "MYSQL_EXECUTION_DSN")
BOTH = {"MYSQL_EXECUTION_DSN": "m", "POSTGRES_EXECUTION_DSN": "p"}
BOTH_FAMILIES = [
    BOTH,
    {"MYSQL_EXECUTION_MIGRATION_DSN": "m", "POSTGRES_EXECUTION_DSN": "p"},
    {"MYSQL_EXECUTION_DSN": "m", "POSTGRES_EXECUTION_MIGRATION_DSN": "p"},
    {"MYSQL_EXECUTION_MIGRATION_DSN": "m", "POSTGRES_EXECUTION_MIGRATION_DSN": "p"},
]


class Machine:
    """A working directory, a home and an /etc of its own; `read` is what a command there would see."""

    def __init__(self, root: Path) -> None:
        self.directory, self.home, self.etc = root / "work", root / "home", root / "etc"
        for path in (self.directory, self.home, self.etc):
            path.mkdir()

    def write(self, text: str, *, place: str = "project", mode: int = 0o600) -> Path:
        """Write a configuration file: of the project (./opsctl.toml), the user, the system, or another name."""
        path = {
            "project": self.directory / "opsctl.toml",
            "user": self.home / ".config/opsctl/config.toml",
            "system": self.etc / "config.toml",
        }.get(place, self.directory / place)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(mode)
        return path

    def read(self, environment: dict[str, str] | None = None, config: str | None = None, **flags: str) -> Settings:
        return Settings(
            flags,
            {"HOME": str(self.home), **(environment or {})},
            config_file=config,
            directory=self.directory,
            system_file=self.etc / "config.toml",
        )

    def refused(self, environment: dict[str, str] | None = None, config: str | None = None) -> UsageError:
        with pytest.raises(UsageError) as caught:
            self.read(environment, config)
        return checked(caught.value)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def checked(error: UsageError) -> UsageError:
    """Two lines of text, nothing chained, exit 2."""
    assert error.exit_code == 2
    assert error.message
    assert error.hint
    assert "\n" not in error.message + error.hint
    assert error.__cause__ is None
    return error


def find(environment: dict[str, str], *, for_schema_change: bool = False, **flags: str) -> Setting:
    nowhere = Path("/nonexistent")
    found = Settings(flags, environment, directory=nowhere, system_file=nowhere / "none.toml")
    return found.find_dsn(for_schema_change=for_schema_change)


def refused(environment: dict[str, str], **options: object) -> str:
    with pytest.raises(UsageError) as caught:
        find(environment, **options)  # type: ignore[arg-type]
    return checked(caught.value).message


# -- DSNs of flags and variables -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("for_schema_change", "order"), [(True, FOR_SCHEMA_CHANGE), (False, ORDINARY)])
def test_the_first_of_the_order_that_is_set_is_used(for_schema_change: bool, order: tuple[str, ...]) -> None:
    environment = dict(ALL_OF_MYSQL)
    assert find(environment, dsn="flag", for_schema_change=for_schema_change) == Setting("flag", "--dsn")
    for variable in order:
        assert find(environment, for_schema_change=for_schema_change) == Setting(environment[variable], variable)
        del environment[variable]
    assert "no database is named" in refused(environment, for_schema_change=for_schema_change)


@pytest.mark.parametrize(("for_schema_change", "value"), [(True, "postgres-migration"), (False, "postgres")])
def test_the_postgresql_twins(for_schema_change: bool, value: str) -> None:
    environment = {"POSTGRES_EXECUTION_DSN": "postgres", "POSTGRES_EXECUTION_MIGRATION_DSN": "postgres-migration"}
    assert find(environment, for_schema_change=for_schema_change).value == value


def test_an_empty_variable_is_one_that_is_not_set() -> None:
    environment = dict.fromkeys(ALL_OF_MYSQL, "") | {"OPSCTL_DSN_FILE": "", "POSTGRES_EXECUTION_DSN": "p"}
    environment |= {"OPSCTL_CONFIG": "", "OPSCTL_TARGET": ""}
    assert find(environment, for_schema_change=True) == Setting("p", "POSTGRES_EXECUTION_DSN")


@pytest.mark.parametrize("environment", BOTH_FAMILIES)
def test_both_families_are_refused(environment: dict[str, str]) -> None:
    message = refused(environment, for_schema_change=True)
    assert "MYSQL_EXECUTION" in message
    assert "POSTGRES_EXECUTION" in message


@pytest.mark.parametrize("for_schema_change", [True, False])
@pytest.mark.parametrize("environment", BOTH_FAMILIES)
def test_both_families_do_not_matter_beside_what_says_which(
    machine: Machine, environment: dict[str, str], for_schema_change: bool
) -> None:
    path = machine.write("own", place="own.dsn")
    machine.write('[targets.t]\ndsn = "target"\n')

    def found(more: dict[str, str], **flags: str) -> str:
        return machine.read(environment | more, **flags).find_dsn(for_schema_change=for_schema_change).value

    assert found({}, dsn="flag") == "flag"
    assert found({}, dsn_file=str(path)) == "own"
    assert found({}, target="t") == "target"
    assert found({"OPSCTL_TARGET": "t"}) == "target"
    assert found({"OPSCTL_DSN": "own"}) == "own"
    assert found({"OPSCTL_DSN_FILE": str(path)}) == "own"


def test_two_answers_to_one_question_are_refused(machine: Machine) -> None:
    path = str(machine.write("mysql://file", place="dsn"))
    machine.write('[targets.t]\ndsn = "x"\n')
    for environment, flags, said in (
        ({}, {"dsn": "a", "dsn_file": path}, "--dsn and --dsn-file"),
        ({}, {"target": "t", "dsn": "a"}, "--target and --dsn"),
        ({}, {"target": "t", "dsn_file": path}, "--target and --dsn-file"),
        ({"OPSCTL_DSN": "a", "OPSCTL_DSN_FILE": path}, {}, "OPSCTL_DSN and OPSCTL_DSN_FILE"),
        ({"OPSCTL_DSN": "a", "OPSCTL_TARGET": "t"}, {}, "OPSCTL_TARGET and OPSCTL_DSN"),
    ):
        with pytest.raises(UsageError) as caught:
            machine.read(environment, **flags).find_dsn(for_schema_change=False)
        assert said in checked(caught.value).message
    for text, said in (
        ('target = "t"\ndsn = "x"\n[targets.t]\n', "target and dsn"),
        ('[targets.t]\ndsn = "x"\ndsn_file = "y"\n', "dsn and dsn_file in ./opsctl.toml [targets.t]"),
    ):
        machine.write(text)
        with pytest.raises(UsageError) as caught:
            machine.read(**({"target": "t"} if "x" in said or "[" in said else {})).find_dsn(for_schema_change=False)
        assert said in checked(caught.value).message


# -- DSN files -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        b"mysql://u:p@h/d",
        b"mysql://u:p@h/d\n",
        b"\n  mysql://u:p@h/d  \n\n",
        b"# the worker's\r\nmysql://u:p@h/d\r\n",
        b"\xef\xbb\xbfmysql://u:p@h/d\r\n",  # as Windows editors save it
    ],
)
def test_a_dsn_file(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "dsn"
    path.write_bytes(content)
    assert find({}, dsn_file=str(path)) == Setting("mysql://u:p@h/d", f"--dsn-file {path}")
    assert find({"OPSCTL_DSN_FILE": str(path)}) == Setting("mysql://u:p@h/d", f"OPSCTL_DSN_FILE {path}")


def test_a_dsn_file_keeps_what_is_no_end_of_line(tmp_path: Path) -> None:
    path = tmp_path / "dsn"
    path.write_text("mysql://u:é\u2028\x85\x0bx#y@h/d\n", encoding="utf-8")
    assert find({}, dsn_file=str(path)).value == "mysql://u:é\u2028\x85\x0bx#y@h/d"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "0 DSNs"),
        (b"# mysql://u:s3cret@h/d\n", "0 DSNs"),
        (b"mysql://u:s3cret@h/d\nmysql://u:s3cret@h/e\n", "2 DSNs"),
        (b"mysql://u:s3cret\xff@h/d\n", "UTF-8"),
    ],
)
@pytest.mark.parametrize("place", ["flag", "variable", "file"])
def test_a_wrong_dsn_file_is_named_without_its_content(content: bytes, said: str, place: str, machine: Machine) -> None:
    path = machine.directory / "dsn"
    path.write_bytes(content)
    if place == "file":
        machine.write('[targets.t]\ndsn_file = "dsn"\n')
    flags = {"flag": {"dsn_file": str(path)}, "file": {"target": "t"}}.get(place, {})
    environment = {"OPSCTL_DSN_FILE": str(path)} if place == "variable" else {}
    with pytest.raises(UsageError) as caught:
        machine.read(environment, **flags).find_dsn(for_schema_change=False)
    message = checked(caught.value).message
    assert said in message
    assert str(path) in message
    assert {"flag": "--dsn-file", "variable": "OPSCTL_DSN_FILE", "file": "[targets.t]"}[place] in message
    assert "s3cret" not in message


def test_a_dsn_file_that_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "directory" in refused({}, dsn_file=str(tmp_path))
    assert "No such file" in refused({}, dsn_file=str(tmp_path / "none"))
    assert "--dsn-file names no file" in refused({}, dsn_file="")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert "No such file" in refused({"OPSCTL_DSN_FILE": "~/none"})
    (tmp_path / "own.dsn").write_text("mysql://h/d")
    assert find({"OPSCTL_DSN_FILE": "~/own.dsn"}).value == "mysql://h/d"


# -- table names and the deployment's variables ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "own", "mysql", "postgresql"),
    [
        ("executions_table", "OPSCTL_EXECUTIONS_TABLE", "MYSQL_EXECUTIONS_TABLE", "POSTGRES_EXECUTIONS_TABLE"),
        (
            "attempts_table",
            "OPSCTL_ATTEMPTS_TABLE",
            "MYSQL_EXECUTION_ATTEMPTS_TABLE",
            "POSTGRES_EXECUTION_ATTEMPTS_TABLE",
        ),
        ("namespace", "OPSCTL_NAMESPACE", "MYSQL_EXECUTION_NAMESPACE", "POSTGRES_EXECUTION_NAMESPACE"),
    ],
)
def test_where_a_name_of_the_deployment_comes_from(
    machine: Machine, name: str, own: str, mysql: str, postgresql: str
) -> None:
    environment = {own: "own", mysql: "m", postgresql: "p"}

    def found(family: str, **flags: str) -> Setting | None:
        return machine.read(environment, **flags).find(name, family=family)

    assert found("mysql", **{name: "flag"}) == Setting("flag", f"--{name.replace('_', '-')}")
    assert found("postgresql") == Setting("own", own)
    environment[own] = ""
    assert found("mysql") == Setting("m", mysql)
    assert found("postgresql") == Setting("p", postgresql)
    # they are the deployment's: a target that is used has the last word about itself, a file has not
    machine.write(f'{name} = "top"\n[targets.t]\n{name} = "t"\ndsn = "x"\n')
    assert found("mysql") == Setting("m", mysql)
    assert found("mysql", target="t") == Setting("t", "./opsctl.toml [targets.t]")
    environment.clear()
    assert found("mysql") == Setting("top", "./opsctl.toml")
    machine.write("")
    default = KEYS[name].default
    assert found("mysql") == (None if default is None else Setting(default, "default"))


# -- the nearest place wins ------------------------------------------------------------------------------------------

PLACES = ("flag", "variable", "project", "user", "system")


def toml(key: Key, place: str) -> tuple[str, str]:
    """What stands for `key` in a file of this place, and what it comes to there."""
    if key.kind == SECONDS:
        return f"{PLACES.index(place) + 1}", f"{PLACES.index(place) + 1}"
    if key.kind == CHOICE:
        value = FORMATS[PLACES.index(place)]
        return f'"{value}"', value
    if key.kind == DIRECTORIES:
        return f'["/{place}/a", "/{place}/b"]', f"/{place}/a{os.pathsep}/{place}/b"
    value = f"/{place}/x" if key.kind == FILE else place
    return f'"{value}"', value


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(which=st.dictionaries(st.sampled_from([name for name in KEYS if name != "target" and "dsn" not in name]), st.sets(st.sampled_from(PLACES)), min_size=1), explicit=st.sampled_from([None, "flag", "variable"]))  # fmt: skip
def test_the_nearest_place_wins(machine: Machine, which: dict[str, set[str]], explicit: str | None) -> None:
    labels = {"project": "./opsctl.toml" if explicit is None else "other.toml"}
    for place in ("project", "user", "system"):
        lines = [f"{name} = {toml(KEYS[name], place)[0]}\n" for name, places in which.items() if place in places]
        name = "other.toml" if place == "project" and explicit else place
        path = machine.write("".join(lines), place=name)
        labels.setdefault(place, str(path))
    if explicit:
        machine.write('namespace = "not this"\n')
    environment = {
        KEYS[name].variable: toml(KEYS[name], "variable")[1] for name, places in which.items() if "variable" in places
    }
    environment |= {"OPSCTL_CONFIG": "other.toml"} if explicit == "variable" else {}
    flags = {name: toml(KEYS[name], "flag")[1] for name, places in which.items() if "flag" in places}
    found = machine.read(environment, "other.toml" if explicit == "flag" else None, **flags)
    for name, places in which.items():
        key = KEYS[name]
        origins = labels | {"flag": key.flag, "variable": key.variable}
        nearest = next((place for place in PLACES if place in places), None)
        if nearest is not None:
            assert found.find(name) == Setting(toml(key, nearest)[1], origins[nearest])
        else:
            assert found.find(name) == (None if key.default is None else Setting(key.default, "default"))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sets(st.sampled_from(PLACES)), st.sets(st.sampled_from(PLACES[1:])), st.booleans(), st.booleans())
def test_the_nearest_dsn_wins(
    machine: Machine, dsns: set[str], migration: set[str], deployment: bool, for_schema_change: bool
) -> None:
    for place in PLACES[2:]:
        lines = [f'{name} = "{place}-{name}"\n' for name, places in (("dsn", dsns), ("migration_dsn", migration)) if place in places]  # fmt: skip
        machine.write("".join(lines), place=place)
    prefix = "MYSQL_EXECUTION_" if deployment else "OPSCTL_"
    environment = {f"{prefix}DSN": "variable-dsn"} if "variable" in dsns else {}
    environment |= {f"{prefix}MIGRATION_DSN": "variable-migration_dsn"} if "variable" in migration else {}
    found = machine.read(environment, **({"dsn": "flag-dsn"} if "flag" in dsns else {}))
    if not for_schema_change:
        migration = set()
    expected = next((f"{p}-{k}" for p in PLACES for k, ps in (("migration_dsn", migration), ("dsn", dsns)) if p in ps), None)  # fmt: skip
    if "flag" in dsns:
        expected = "flag-dsn"
    if expected is None:
        with pytest.raises(NoDatabase):
            found.find_dsn(for_schema_change=for_schema_change)
    else:
        assert found.find_dsn(for_schema_change=for_schema_change).value == expected


def test_every_file_is_looked_for_where_it_should_be(machine: Machine, tmp_path: Path) -> None:
    machine.write('namespace = "user"', place="user")
    assert machine.read().find("namespace") == Setting("user", f"{machine.home}/.config/opsctl/config.toml")
    xdg = tmp_path / "xdg"
    (xdg / "opsctl").mkdir(parents=True)
    (xdg / "opsctl/config.toml").write_text('namespace = "xdg"')
    assert machine.read({"XDG_CONFIG_HOME": str(xdg)}).find("namespace") == Setting("xdg", f"{xdg}/opsctl/config.toml")
    # by the XDG specification a relative one is none
    assert machine.read({"XDG_CONFIG_HOME": "xdg"}).find("namespace") == machine.read().find("namespace")
    assert machine.read({"HOME": ""}).find("namespace") is None
    # one that is named takes the place of ./opsctl.toml only
    machine.write('namespace = "project"')
    machine.write("lock_timeout = 7", place="other.toml")
    found = machine.read({"OPSCTL_CONFIG": "other.toml"})
    assert [file.label for file in found.files] == ["other.toml", f"{machine.home}/.config/opsctl/config.toml"]
    assert machine.read({"OPSCTL_CONFIG": "nosuch.toml"}, "other.toml").files[0].label == "other.toml"


def test_nothing_set_works(machine: Machine) -> None:
    found = machine.read()
    assert not found.files
    assert not found.warnings
    assert found.target is None
    for name, key in KEYS.items():
        setting = found.find(name)
        assert (setting and setting.value) == key.default


# -- targets ---------------------------------------------------------------------------------------------------------

TARGETS = """
target = "staging"
namespace = "top"
migration_dsn = "top-migration"
[targets.staging]
dsn = "staging"
[targets.prod]
dsn = "prod"
migration_dsn = "prod-migration"
namespace = "prod"
lock_timeout = 2.5
[targets."a.b"]
dsn_file = "dsns/ab"
[targets."Größe 1"]
dsn = "groesse"
[targets.empty]
namespace = "x"
"""


def test_which_target_is_used(machine: Machine) -> None:
    machine.write(TARGETS)

    def used(environment: dict[str, str] | None = None, **flags: str) -> Setting | None:
        return machine.read(environment, **flags).target

    assert used() == Setting("staging", "./opsctl.toml")
    assert used(target="prod") == Setting("prod", "--target")
    assert used({"OPSCTL_TARGET": "prod"}) == Setting("prod", "OPSCTL_TARGET")
    assert used({"OPSCTL_TARGET": "staging"}, target="prod") == Setting("prod", "--target")
    # whatever names a database nearer than the file's `target` does
    for variable in ("OPSCTL_DSN", "OPSCTL_DSN_FILE", "MYSQL_EXECUTION_DSN", "POSTGRES_EXECUTION_DSN"):
        assert used({variable: "x"}) is None
    assert used({"OPSCTL_TARGET": "prod"}, dsn="x") is None
    machine.write('dsn = "x"', place="near.toml")
    machine.write(TARGETS, place="user")
    assert machine.read(config="near.toml").target is None
    assert machine.read(config="near.toml").find_dsn(for_schema_change=False).value == "x"


def test_what_a_target_says(machine: Machine) -> None:
    machine.write(TARGETS)
    machine.write("ab-dsn", place="dsns/ab")

    def dsn(target: str, *, changes: bool = False, **environment: str) -> Setting:
        return machine.read(environment, target=target).find_dsn(for_schema_change=changes)

    assert dsn("prod") == Setting("prod", "./opsctl.toml [targets.prod]")
    assert dsn("prod", changes=True).value == "prod-migration"
    assert dsn("staging", changes=True).value == "staging"  # not the one at the top: that is another database's
    path = machine.directory / "dsns/ab"
    assert dsn("a.b") == Setting("ab-dsn", f'{path} (dsn_file in ./opsctl.toml [targets."a.b"])')
    assert dsn("Größe 1") == Setting("groesse", './opsctl.toml [targets."Größe 1"]')
    # the migration DSN of the environment comes before the target's, its ordinary one after it
    assert dsn("prod", changes=True, OPSCTL_MIGRATION_DSN="env").value == "env"
    assert dsn("prod", changes=True, MYSQL_EXECUTION_MIGRATION_DSN="env").value == "env"
    assert dsn("prod", MYSQL_EXECUTION_DSN="env").value == "prod"
    assert dsn("prod", OPSCTL_DSN="env").value == "prod"
    with pytest.raises(NoDatabase, match=r"\[targets.empty\] names no database"):
        dsn("empty")


def test_other_values_of_a_target(machine: Machine) -> None:
    machine.write(TARGETS)
    found = machine.read(target="prod")
    assert found.seconds("lock_timeout") == found.seconds("lock_timeout", default=9) == 2.5
    assert found.find("namespace") == Setting("prod", "./opsctl.toml [targets.prod]")
    assert machine.read(target="staging").find("namespace") == Setting("top", "./opsctl.toml")
    assert machine.read(target="staging").seconds("lock_timeout", default=9) == 9
    assert machine.read({"OPSCTL_NAMESPACE": "env"}, target="prod").find("namespace").value == "env"  # type: ignore[union-attr]


def test_a_target_in_several_files(machine: Machine) -> None:
    machine.write('[targets.prod]\nnamespace = "near"\n')
    machine.write('[targets.prod]\nnamespace = "far"\ndsn = "far"\n[targets.other]\n', place="user")
    found = machine.read(target="prod")
    assert found.target_names == ["prod", "other"]
    assert {name: setting.value for name, setting in found.of_target("prod").items()} == {
        "namespace": "near",
        "dsn": "far",
    }


@pytest.mark.parametrize("named_by", ["--target", "OPSCTL_TARGET", "./opsctl.toml"])
def test_a_target_that_is_not_there(machine: Machine, named_by: str) -> None:
    machine.write(('target = "prd"\n' if named_by[0] == "." else "") + '[targets.prod]\n[targets."a.b"]\n')
    environment = {"OPSCTL_TARGET": "prd"} if named_by == "OPSCTL_TARGET" else {}
    found = machine.read(environment, **({"target": "prd"} if named_by == "--target" else {}))
    with pytest.raises(UsageError) as caught:
        found.find_dsn(for_schema_change=False)
    error = checked(caught.value)
    assert error.message == f"there is no target 'prd' ({named_by})"
    assert "was prod meant?" in error.hint
    machine.write("")
    with pytest.raises(UsageError) as caught:
        machine.read(target="a.b").find_dsn(for_schema_change=False)
    assert '[targets."a.b"]' in caught.value.hint


# -- wrong files -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said", "remedy"),
    [
        ('dns = "S3cret"', "'dns'", "was dsn meant?"),
        ('executions-table = "x"', "'executions-table'", "was executions_table meant?"),
        ('[targets.t]\nmigration-dsn = "S3cret"', "[targets.t]: unknown key 'migration-dsn'", "was migration_dsn"),
        ('[targets.t]\noutput = "json"', "it stands at the top of a file", "known are"),
        ("[database]\nx = 1", "'database'", "known are"),
        ('targets = "S3cret"', "targets is no table", "[targets.NAME]"),
        ("[[targets]]\nx = 1", "targets is no table", "[targets.NAME]"),
        ('[targets]\ndsn = "S3cret"', "dsn stands in [targets] itself", "[targets.NAME]"),
        ('[target.prod]\ndsn = "S3cret"', "[target] is a table", "with an s"),
        ('[targets.a.b]\ndsn = "S3cret"', "[targets.a]: unknown key 'b'", '[targets."a.b"]'),
        ("dsn = 3", "dsn is not a string", 'dsn = "…"'),
        ('dsn = ["S3cret"]', "dsn is not a string", 'dsn = "…"'),
        ("dsn = {}", "dsn is not a string", 'dsn = "…"'),
        ('lock_timeout = "5"', "lock_timeout is not a number", "lock_timeout = 5"),
        ("lock_timeout = true", "lock_timeout is not a number", "lock_timeout = 5"),
        ("lock_timeout = 0", "lock_timeout is no time limit", "between"),
        ("lock_timeout = -1", "lock_timeout is no time limit", "between"),
        ("lock_timeout = nan", "lock_timeout is no time limit", "between"),
        ("lock_timeout = inf", "lock_timeout is no time limit", "between"),
        ("query_path = [1]", "query_path is not a list of directories", "["),
        ('output = "jsn"', "'jsn' is no format", "was json meant?"),
        ('dsn = ""', "dsn is empty", "leave the line out"),
        ("query_path = []", "query_path is empty", "leave the line out"),
        ('query_path = [""]', "query_path is empty", "leave the line out"),
        ('dsn = "S3cret\\u0000"', "dsn has a NUL", "take it out"),
        ('dsn_file = "S3cret\\u0000"', "dsn_file has a NUL", "take it out"),
        ("dsn = mysql://u:S3cret@h/d", "line 1, column 7", "quotes"),
        ('namespace = "a"\ndsn = "mysql://u:S3"cret@h/d"', "is not TOML, line 2", "%22"),
        ('dsn = "mysql://u:S3cret', "./opsctl.toml is not TOML", "quotes"),
        ("S3cret", "./opsctl.toml is not TOML", "quotes"),
        ('dsn = "S3cret"\ndsn = "S3cret"', "there twice", "keep one"),
        ("[targets.S3cret]\n[targets.S3cret]", "there twice", "keep one"),
    ],
)
def test_what_is_wrong_in_a_file_is_said_without_its_values(
    machine: Machine, text: str, said: str, remedy: str
) -> None:
    machine.write(text)
    error = machine.refused()
    assert said in error.message
    assert remedy in error.hint
    assert "./opsctl.toml" in error.message
    assert "S3" not in error.message + error.hint


def test_files_that_are_no_files(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    error = machine.refused(config="none.toml")
    assert error.message == "the configuration file none.toml (--config) does not exist"
    assert str(machine.directory / "none.toml") in error.hint
    assert "(OPSCTL_CONFIG) does not exist" in machine.refused({"OPSCTL_CONFIG": "none.toml"}).message
    assert "--config names no file" in machine.refused(config="").message
    assert "does not exist" in machine.refused(config="~nobody-here/x").message
    assert "is a directory" in machine.refused(config=str(machine.home)).message
    (machine.directory / "opsctl.toml").mkdir()
    assert "./opsctl.toml cannot be read: is a directory" in machine.refused().message
    (machine.directory / "opsctl.toml").rmdir()
    (machine.directory / "opsctl.toml").write_bytes(b'dsn = "\xff"')
    assert "not UTF-8" in machine.refused().message
    (machine.directory / "opsctl.toml").write_bytes(b'\xef\xbb\xbfnamespace = "bom"\r\n')
    assert machine.read().find("namespace").value == "bom"  # type: ignore[union-attr]
    monkeypatch.setenv("HOME", str(machine.home))
    machine.write("", place=str(machine.home / "own.toml"))
    assert machine.read(config="~/own.toml").files[0].label == "~/own.toml"


def test_a_file_that_may_not_be_read(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.write('namespace = "user"', place="user")
    system = machine.write('namespace = "system"', place="system")
    real = Path.read_text
    denied = {system}

    def read_text(self: Path, encoding: str | None = None) -> str:
        if self in denied:
            raise PermissionError(13, "Permission denied")  # root may read everything
        return real(self, encoding=encoding)

    monkeypatch.setattr(Path, "read_text", read_text)
    # Nobody but root can mend the system's, and commands must go on without it.
    found = machine.read()
    assert found.find("namespace").value == "user"  # type: ignore[union-attr]
    assert found.warnings == [f"the configuration file {system} is passed over: you may not read it"]
    denied.add(machine.write("", place="project"))
    assert "./opsctl.toml cannot be read: permission denied" in machine.refused().message


# -- what is odd -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "mode", "warned"),
    [
        ('dsn = "mysql://u:S3cret@h/d"', 0o644, True),
        ('[targets.t]\nredis_url = "redis://:S3cret@h"', 0o604, True),
        ('migration_dsn = "postgresql:///d?password=S3cret"', 0o644, True),
        ('dsn = "mysql://u:S3cret@h/d"', 0o600, False),
        ('dsn = "mysql://u:S3cret@h/d"', 0o640, False),  # a group is made on purpose
        ('dsn = "mysql://u@h:3306/d"', 0o644, False),
        ('namespace = "a:b@c"', 0o644, False),
    ],
)
def test_a_password_that_every_user_can_read_is_warned_about(
    machine: Machine, text: str, mode: int, warned: bool
) -> None:
    machine.write(text, mode=mode)
    warnings = machine.read().warnings
    assert bool(warnings) == warned
    assert not any("S3cret" in warning for warning in warnings)


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("OPSCTL_NAMESPCE", "OPSCTL_NAMESPACE"),
        ("OPSCTL_MIGRATIONS_DSN", "OPSCTL_MIGRATION_DSN"),
        ("OPSCTL_SOMETHING_ELSE", None),
        ("OPSCTL_CONFIG", None),
    ],
)
def test_a_variable_that_is_misspelt(machine: Machine, variable: str, meant: str | None) -> None:
    machine.write("", place="x.toml")
    warnings = machine.read({variable: "x.toml"}).warnings
    assert [f"was {meant} meant?" in warning for warning in warnings] == ([True] if meant else [])


def test_a_variable_with_a_value_that_it_cannot_hold(machine: Machine) -> None:
    for variable, value, name in (
        ("OPSCTL_LOCK_TIMEOUT", "soon", "lock_timeout"),
        ("OPSCTL_LOCK_TIMEOUT", "nan", "lock_timeout"),
        ("OPSCTL_OUTPUT", "jsn", "output"),
    ):
        with pytest.raises(UsageError, match=variable):
            machine.read({variable: value}).find(name)


def test_paths_in_a_file_are_relative_to_it(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(machine.home))
    machine.write('audit_file = "a.log"\nquery_path = ["q", "/abs", "~/own"]\ndsn = "x"\n', place="sub/c.toml")
    found = machine.read(config="sub/c.toml")
    sub = machine.directory / "sub"
    assert found.find("audit_file").value == str(sub / "a.log")  # type: ignore[union-attr]
    assert found.find("query_path").value.split(os.pathsep) == [str(sub / "q"), "/abs", f"{machine.home}/own"]  # type: ignore[union-attr]
    assert found.find_dsn(for_schema_change=False).directory == sub


def test_the_table_of_keys_is_whole() -> None:
    assert set(FAMILY_PREFIX.values()) == {"MYSQL", "POSTGRES"}
    assert {name for name in KEYS if name not in TARGET_KEYS} == {"target", "output", "pager", "query_path"}
    assert {key.name for key in KEYS.values() if key.secret} == {"dsn", "migration_dsn", "redis_url"}
