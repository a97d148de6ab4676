"""opsctl config show: what a command would use, and where it comes from. Nothing is contacted."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from processes import FOREIGN, Result

from opsctl.cli import main, state
from opsctl.config import FORMATS, KEYS, files, settings

Show = Callable[..., Result]
SECRETS = ("S3cr%65t-1", "S3cret-1", "S3cret-2", "S3cret-3", "S3cret-4", "S3cret-5")
CONFIG = """
namespace = "top"
output = "table"
query_path = ["q", "r"]
redis_url = "redis://:S3cret-4@redis/0"
[targets."a.b"]
dsn = "mysql://app:S3cr%65t-1@db.example:3307/jobs"
migration_dsn = "postgresql+asyncpg://ddl:S3cret-2@pg.example/jobs?sslpassword=S3cret-3"
lock_timeout = 2.5
[targets."Größe"]
dsn_file = "groesse.dsn"
redis_url = "S3cret-5"
"""


@pytest.fixture
def show(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Show:
    """show(*arguments, **environment): `opsctl config show` in an empty directory and home, checked for secrets."""
    monkeypatch.setattr(settings, "SYSTEM_FILE", tmp_path / "etc.toml")
    monkeypatch.setattr(settings.Settings.__init__, "__kwdefaults__", {**settings.Settings.__init__.__kwdefaults__, "system_file": tmp_path / "etc.toml"})  # fmt: skip
    for variable in [name for name in os.environ if name.startswith(FOREIGN)]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "250")
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, **environment: str) -> Result:
        monkeypatch.setattr(state, "current", state.State())
        with monkeypatch.context() as context:
            for name, value in environment.items():
                context.setenv(name, value)
            code = main._run(["config", "show", *arguments])
        out, err = capsys.readouterr()
        for secret in SECRETS:
            assert secret not in out + err
        return Result(code, out, err)

    return run


def rows(result: Result) -> dict[str, tuple[Any, Any]]:
    assert result.code == 0, result
    return {row["setting"]: (row["value"], row["origin"]) for row in result.json["rows"]}


def write(text: str, name: str = "opsctl.toml") -> None:
    Path(name).write_text(text, encoding="utf-8")
    Path(name).chmod(0o600)


def test_without_any_file(show: Show) -> None:
    found = rows(show("--origin", OPSCTL_OUTPUT="json"))
    assert found.pop("output") == ("json", "OPSCTL_OUTPUT")
    assert list(found) == [name for name in KEYS if name != "output" and not name.endswith("dsn_file")]
    for name, (value, origin) in found.items():
        assert (value, origin) == ((KEYS[name].default, "default") if KEYS[name].default else (None, None))


@pytest.mark.parametrize("debug", [[], ["--debug"], ["-v"]])
@pytest.mark.parametrize("output", FORMATS)
def test_every_format_masks(show: Show, output: str, debug: list[str]) -> None:
    write(CONFIG)
    write("mysql://g:S3cret-5@h/d", "groesse.dsn")
    for target in ("a.b", "Größe"):
        result = show("--origin", "--target", target, "-o", output, *debug)
        assert (result.code, result.err) == (0, "")
        assert "mysql://app@db.example:3307/jobs" in result.out
        assert ("redis://:***@redis/0" in result.out) == (target == "a.b")
    reader = {"json": json.loads, "yaml": yaml.safe_load, "csv": lambda text: list(csv.reader(io.StringIO(text)))}
    if output in reader:
        assert reader[output](result.out)


def test_values_and_origins_of_a_target(show: Show, tmp_path: Path) -> None:
    write(CONFIG)
    write("mysql://g:S3cret-5@h/d", "groesse.dsn")
    found = rows(show("--origin", "--target", "a.b", "-o", "json", OPSCTL_NAMESPACE="env"))
    place = './opsctl.toml [targets."a.b"]'
    assert found["target"] == ("a.b", "--target")
    assert found["dsn"] == ("mysql://app@db.example:3307/jobs", place)
    assert found["migration_dsn"] == ("postgresql://ddl@pg.example/jobs", place)
    assert found["namespace"] == ("env", "OPSCTL_NAMESPACE")
    assert found["lock_timeout"] == ("2.5", place)
    assert found["output"] == ("json", "--output")
    assert found["query_path"] == (f"{tmp_path}/q {tmp_path}/r", "./opsctl.toml")
    assert found["redis_url"] == ("redis://:***@redis/0", "./opsctl.toml")
    assert found['targets."Größe".dsn_file'] == (f"{tmp_path}/groesse.dsn", './opsctl.toml [targets."Größe"]')
    assert found['targets."Größe".redis_url'][0] == "***"
    found = rows(show("--origin", "--target", "Größe", "-o", "json"))
    dsn = ("mysql://g@h/d", f'{tmp_path}/groesse.dsn (dsn_file in ./opsctl.toml [targets."Größe"])')
    assert (found["dsn"], found["migration_dsn"]) == (dsn, dsn)


def test_without_origin(show: Show) -> None:
    header, *_ = show("-o", "csv").out.splitlines()
    assert header == "setting,value"


@pytest.mark.parametrize("prefix", ["MYSQL", "POSTGRES"])
def test_the_deployments_variables_are_shown(show: Show, prefix: str) -> None:
    scheme = {"MYSQL": "mysql", "POSTGRES": "postgresql"}[prefix]
    names = {f"{prefix}_EXECUTIONS_TABLE": "jobs", f"{prefix}_EXECUTION_NAMESPACE": "orders"}
    for dsn in ({}, {f"{prefix}_EXECUTION_DSN": f"{scheme}://u:S3cret-1@h/d"}):
        found = rows(show("--origin", "-o", "json", **names, **dsn))
        assert found["executions_table"] == ("jobs", f"{prefix}_EXECUTIONS_TABLE")
        assert found["namespace"] == ("orders", f"{prefix}_EXECUTION_NAMESPACE")
    assert found["dsn"] == (f"{scheme}://u@h/d", f"{prefix}_EXECUTION_DSN")
    # those of the other family do not count
    other = "POSTGRES" if prefix == "MYSQL" else "MYSQL"
    found = rows(show("--origin", "-o", "json", **dsn, **{f"{other}_EXECUTIONS_TABLE": "x"}))
    assert found["executions_table"] == (KEYS["executions_table"].default, "default")


def test_what_other_places_add_is_named(show: Show, tmp_path: Path) -> None:
    write("[client]\nuser=alice\npassword=S3cret-1\nssl-mode=REQUIRED\n", ".my.cnf")
    found = rows(show("--origin", "-o", "json", OPSCTL_DSN="mysql://db/jobs"))
    origin = "OPSCTL_DSN; user, password and ssl-mode from ~/.my.cnf [client]"
    assert found["dsn"] == ("mysql://alice@db/jobs", origin)
    found = rows(show("--origin", "-o", "json", OPSCTL_DSN="mysql://bob@db/jobs", MYSQL_PWD="S3cret-2"))
    assert found["dsn"][1] == "OPSCTL_DSN; password from MYSQL_PWD; ssl-mode from ~/.my.cnf [client]"
    found = rows(show("--origin", "-o", "json", OPSCTL_DSN="postgresql:///jobs", PGHOST="pg", PGPASSWORD="S3cret-3"))
    assert found["dsn"] == ("postgresql://pg/jobs", "OPSCTL_DSN; password from PGPASSWORD; host from PGHOST")


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"OPSCTL_DSN_FILE": "none.dsn"}, "OPSCTL_DSN_FILE none.dsn cannot be read: No such file"),
        ({"OPSCTL_DSN": "app:S3cret-1@h/d"}, "OPSCTL_DSN is not a URL"),
        ({"OPSCTL_DSN": "mysql://u:S3cret-1@h/d?ssl_ca=/nonexistent"}, "ssl_ca /nonexistent in the DSN"),
        ({"OPSCTL_TARGET": "t"}, "dsn_file"),
        ({"MYSQL_EXECUTION_DSN": "mysql://h/d", "POSTGRES_EXECUTION_DSN": "postgresql://h/d"}, "both set"),
    ],
)
def test_a_dsn_that_cannot_be_used_is_said_and_the_rest_is_shown(
    show: Show, environment: dict[str, str], said: str
) -> None:
    write('namespace = "n"\n[targets.t]\ndsn_file = "none.dsn"\n')
    result = show("--origin", "-o", "json", **environment)
    assert result.code == 2
    what, remedy = result.err.splitlines()
    assert what.startswith("opsctl: ")
    assert said in what
    assert remedy.startswith("  ")
    found = {row["setting"]: row["value"] for row in result.json["rows"]}
    assert found["namespace"] == "n"
    assert found["dsn"] in (None, "***", "mysql://u:***@h/d?ssl_ca=/nonexistent")


def test_another_target_that_is_broken_is_warned_about(show: Show) -> None:
    write('dsn = "mysql://h/d"\n[targets.t]\ndsn = "app:S3cret-1@h"\n[targets.u]\ndsn = "mysql://u:S3cret-1@h:x/d"')
    result = show("-o", "json")
    assert result.code == 0
    assert [line[:16] for line in result.err.splitlines()] == ["opsctl: warning:"] * 2
    found = {row["setting"]: row["value"] for row in result.json["rows"]}
    assert (found["targets.t.dsn"], found["targets.u.dsn"]) == ("***", "mysql://u:***@h:x/d")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("dsn = mysql://u:S3cret-1@h/d", "is not TOML, line 1"),
        ('dns = "mysql://u:S3cret-1@h/d"', "unknown key 'dns'"),
        ('output = "redis://:S3cret-1@h"', "is no format"),
        ('target = "nosuch"', "there is no target 'nosuch' (./opsctl.toml)"),
        ('target = "mysql://u:S3cret-1@h/d"', "there is no target"),
    ],
)
@pytest.mark.parametrize("debug", [[], ["--debug"]])
def test_a_broken_file_is_two_lines(show: Show, text: str, said: str, debug: list[str]) -> None:
    write(text)
    result = show(*debug)
    assert (result.code, result.out) == (2, "")
    *_, what, remedy = result.err.splitlines()
    assert said in what
    assert remedy.startswith("  ")
    assert debug or len(result.err.splitlines()) == 2


def test_the_place_of_the_system_file() -> None:
    assert str(files.SYSTEM_FILE) == "/etc/opsctl/config.toml"
