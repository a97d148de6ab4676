"""Which DSN and which table names a command uses, and where they came from."""

from __future__ import annotations

from pathlib import Path

import pytest

from opsctl.config import Setting, Settings
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


def settings(environment: dict[str, str], **flags: str) -> Settings:
    """Settings without any file."""
    nowhere = Path("/nonexistent")
    return Settings(flags, environment, directory=nowhere, system_file=nowhere / "config.toml")


def find(environment: dict[str, str], *, for_schema_change: bool = False, **flags: str) -> Setting:
    return settings(environment, **flags).find_dsn(for_schema_change=for_schema_change)


def refused(environment: dict[str, str], **options: object) -> str:
    with pytest.raises(UsageError) as caught:
        find(environment, **options)  # type: ignore[arg-type]
    assert caught.value.exit_code == 2
    assert caught.value.hint
    return caught.value.message


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
    assert find(environment, for_schema_change=True) == Setting("p", "POSTGRES_EXECUTION_DSN")


@pytest.mark.parametrize(
    "environment",
    [
        BOTH,
        {"MYSQL_EXECUTION_MIGRATION_DSN": "m", "POSTGRES_EXECUTION_DSN": "p"},
        {"MYSQL_EXECUTION_DSN": "m", "POSTGRES_EXECUTION_MIGRATION_DSN": "p"},
        {"MYSQL_EXECUTION_MIGRATION_DSN": "m", "POSTGRES_EXECUTION_MIGRATION_DSN": "p"},
    ],
)
def test_both_families_are_refused(environment: dict[str, str]) -> None:
    message = refused(environment, for_schema_change=True)
    assert "MYSQL_EXECUTION" in message
    assert "POSTGRES_EXECUTION" in message


def test_both_families_do_not_matter_beside_a_flag() -> None:
    assert find(BOTH, dsn="flag").value == "flag"


def test_two_answers_to_one_question_are_refused(tmp_path: Path) -> None:
    (tmp_path / "dsn").write_text("mysql://file")
    assert "--dsn and --dsn-file" in refused({}, dsn="a", dsn_file=str(tmp_path / "dsn"))
    assert "OPSCTL_DSN_FILE" in refused({"OPSCTL_DSN": "a", "OPSCTL_DSN_FILE": str(tmp_path / "dsn")})


# -- DSN files -----------------------------------------------------------------------------------------------


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
@pytest.mark.parametrize("by_flag", [True, False])
def test_a_wrong_dsn_file_is_named_without_its_content(
    content: bytes, said: str, by_flag: bool, tmp_path: Path
) -> None:
    path = tmp_path / "dsn"
    path.write_bytes(content)
    message = refused({}, dsn_file=str(path)) if by_flag else refused({"OPSCTL_DSN_FILE": str(path)})
    assert said in message
    assert str(path) in message
    assert "s3cret" not in message


def test_a_dsn_file_that_is_none(tmp_path: Path) -> None:
    assert "directory" in refused({}, dsn_file=str(tmp_path))
    assert "No such file" in refused({}, dsn_file=str(tmp_path / "none"))


# -- table names ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("which", "own", "mysql", "postgresql"),
    [
        ("executions", "OPSCTL_EXECUTIONS_TABLE", "MYSQL_EXECUTIONS_TABLE", "POSTGRES_EXECUTIONS_TABLE"),
        (
            "attempts",
            "OPSCTL_ATTEMPTS_TABLE",
            "MYSQL_EXECUTION_ATTEMPTS_TABLE",
            "POSTGRES_EXECUTION_ATTEMPTS_TABLE",
        ),
    ],
)
def test_where_a_table_name_comes_from(which: str, own: str, mysql: str, postgresql: str) -> None:
    environment = {own: "own", mysql: "m", postgresql: "p"}
    name = f"{which}_table"

    def found(family: str, **flags: str) -> Setting | None:
        return settings(environment, **flags).find(name, family=family)

    assert found("mysql", **{name: "flag"}) == Setting("flag", f"--{which}-table")
    assert found("postgresql") == Setting("own", own)
    environment[own] = ""
    assert found("mysql") == Setting("m", mysql)
    assert found("postgresql") == Setting("p", postgresql)
    environment.clear()
    default = {"executions": "onestep_executions", "attempts": "onestep_execution_attempts"}[which]
    assert found("mysql") == Setting(default, "default")
