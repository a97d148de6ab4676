"""The least rights of each role: enough for its work, nothing beside it, and every one of them needed.

Scripts run in the server's own client, as a DBA runs them: the files of sql/*/grants as they are, and what `opsctl grants sql`
prints. Accounts and roles belong to a whole server: what a test makes has a name of its own and is gone with it.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import psycopg
import pymysql
import pytest
from pairs import A_GOOD_LIFE, ATTEMPTS, EXECUTIONS, Answer, Opsctl
from servers import Database

from opsctl.ops.grants import ROLES
from opsctl.queryfiles import load_catalogue

SQL = Path(__file__).parents[2] / "sql"
LIFE = Path(__file__).parents[1] / "reference" / "onestep_life.py"
RECORD = f"opsctl_rev_{EXECUTIONS}_{ATTEMPTS}"
PASSWORD = "s3cret-of-grants"
#: What MySQL and MariaDB answer for want of a right.
DENIED = (1044, 1142, 1143, 1227, 1370)
E, A, R = EXECUTIONS, ATTEMPTS, RECORD


def dialect_of(database: Database) -> str:
    return {"postgresql-newest": "postgresql"}.get(database.server.name, database.server.name)


def quoted(database: Database, name: str) -> str:
    mark = '"' if database.server.family == "postgresql" else "`"
    return mark + name.replace(mark, mark * 2) + mark


class People:
    """Login accounts without any right, and the fixed roles of the files; all gone at the end."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.postgresql = database.server.family == "postgresql"
        self._made: list[str] = []

    def make(self, name: str | None = None, host: str = "%") -> str:
        """Make an account; return its name."""
        name = name or f"g_{secrets.token_hex(5)}"
        account = quoted(self.database, name) + ("" if self.postgresql else f"@{quoted(self.database, host)}")
        login = f"LOGIN PASSWORD '{PASSWORD}'" if self.postgresql else f"IDENTIFIED BY '{PASSWORD}'"
        self.database.execute(f"CREATE {'ROLE' if self.postgresql else 'USER'} {account} {login}")
        self._made.append(account)
        return name

    def dsn(self, name: str) -> str:
        parts = urlsplit(self.database.dsn)
        login = f"{quote(name, safe='')}:{PASSWORD}@{parts.hostname}:{parts.port}"
        return parts._replace(netloc=login).geturl()

    @contextlib.contextmanager
    def cursor(self, name: str) -> Iterator[Any]:
        """A new session of that account, so that its rights are those of now."""
        server = self.database.server
        login = {"host": server.host, "port": server.port, "user": name, "password": PASSWORD}
        if self.postgresql:
            connection: Any = psycopg.connect(dbname=self.database.name, autocommit=True, **login)
        else:
            connection = pymysql.connect(database=self.database.name, charset="utf8mb4", autocommit=True, **login)
        with contextlib.closing(connection), connection.cursor() as cursor:
            yield cursor

    def may(self, name: str, statement: str) -> bool:
        """Whether that account may run the statement; any error but the want of a right is the test's."""
        try:
            with self.cursor(name) as cursor:
                cursor.execute(statement)
        except psycopg.errors.InsufficientPrivilege:
            return False
        except psycopg.OperationalError as error:
            if "permission denied for database" not in str(error):
                raise
            return False
        except pymysql.MySQLError as error:
            if error.args[0] not in DENIED:
                raise
            return False
        return True

    def drop(self) -> None:
        for account in [*self._made, *(f"onestep_{role}" for role in ROLES)]:
            with contextlib.suppress(psycopg.errors.UndefinedObject):
                if self.postgresql:
                    self.database.execute(f"DROP OWNED BY {account} CASCADE")
            word = "USER" if account in self._made and not self.postgresql else "ROLE"
            self.database.execute(f"DROP {word} IF EXISTS {account}")


@pytest.fixture
def people(database: Database) -> Iterator[People]:
    people = People(database)
    yield people
    people.drop()


def run_in_client(database: Database, script: str, *options: str, code: int = 0) -> str:
    """Run a script in the server's own client, in a locale that says nothing of UTF-8; what it says on stderr."""
    server = database.server
    if server.family == "postgresql":
        program = [*server.bin("psql"), "-X", "-q", "-v", "ON_ERROR_STOP=1", *options, database.dsn]
    else:
        login = [f"--host={server.host}", f"--port={server.port}", f"--user={server.address.user}"]
        if server.address.password:
            login.append(f"--password={server.address.password}")
        client = "mariadb" if server.name == "mariadb" else "mysql"
        program = [*server.bin(client), "--no-defaults", *login, *options, database.name]
    environment = {**os.environ, "LC_ALL": "C", "LANG": "C"}
    done = subprocess.run(program, input=script.encode(), capture_output=True, timeout=60, check=False, env=environment)
    assert (done.returncode != 0) == (code != 0), done.stderr.decode() + script
    return done.stderr.decode()


def close_to_everybody(database: Database) -> None:
    """Take away what PUBLIC has on PostgreSQL, so that only what is granted counts."""
    if database.server.family == "postgresql":
        database.execute(
            "REVOKE ALL ON SCHEMA public FROM PUBLIC", f"REVOKE ALL ON DATABASE {database.name} FROM PUBLIC"
        )


def printed(opsctl: Opsctl, *arguments: str) -> str:
    answer = opsctl("grants", "sql", *arguments)
    assert (answer.code, answer.err) == (0, ""), answer
    return answer.out


# -- enough, and nothing beside it -----------------------------------------------------------------------------------


class Deployment:
    """A database whose accounts have what the files, or what `grants sql`, gives them."""

    def __init__(self, way: str, people: People, opsctl: Opsctl) -> None:
        self.people, self.opsctl, self.way = people, opsctl, way
        self.database = people.database
        self.executions, self.attempts = (E, A) if way == "files" else ("Jobs", "order")
        self.schema = "Ops x" if way != "files" and people.postgresql else None
        self.names = ["--executions-table", self.executions, "--attempts-table", self.attempts]
        if self.schema:
            self.database.execute(f'CREATE SCHEMA "{self.schema}"')
            self.names += ["--schema", self.schema]

    def give(self, role: str) -> str:
        """Give an account that role, twice over as DBAs do; return its name."""
        database, name = self.database, self.people.make()
        account = quoted(database, name)
        if self.way == "files":
            script = (SQL / dialect_of(database) / "grants" / f"{role}.sql").read_text()
            then = [f"GRANT onestep_{role} TO {account}"]
            if not self.people.postgresql:
                word = "FOR" if database.server.name == "mariadb" else "TO"
                then.append(f"SET DEFAULT ROLE onestep_{role} {word} {account}")
        else:
            script, then = printed(self.opsctl, "--role", role, "--to", name, "--dsn", database.dsn, *self.names), []
        for _ in range(2):
            run_in_client(database, script)
        database.execute(*then)
        if self.schema:  # onestep knows no schema: it goes by the search_path
            database.execute(f'ALTER ROLE {account} SET search_path = "{self.schema}"')
        return name

    def place(self, table: str) -> str:
        schema = f"{quoted(self.database, self.schema)}." if self.schema else ""
        return schema + quoted(self.database, table)

    def run(self, name: str, *arguments: str) -> Answer:
        return self.opsctl(*arguments, "--dsn", self.people.dsn(name), *self.names)


@pytest.mark.parametrize("way", ["files", "grants sql"])
def test_a_deployment_lives_by_these_rights(
    way: str, database: Database, people: People, opsctl: Opsctl, onestep: Callable[..., Any]
) -> None:
    close_to_everybody(database)
    deployment = Deployment(way, people, opsctl)
    migration = deployment.give("migration")
    init = ("init-tables", "--yes", "--audit-file", os.devnull)
    created, again = deployment.run(migration, *init), deployment.run(migration, *init)
    assert (created.code, created.out[:8], again.code, again.out[:13]) == (0, "created ", 0, "nothing to do"), created
    executions, attempts = deployment.place(deployment.executions), deployment.place(deployment.attempts)
    drop_index = f"DROP INDEX ix_extra ON {executions}"
    if people.postgresql:
        drop_index = f"DROP INDEX {deployment.place('ix_extra')}"
    for statement in (f"CREATE INDEX ix_extra ON {executions} (worker_id)", drop_index):
        assert people.may(migration, statement), statement
    if not people.postgresql:  # there the tables are its own
        for statement in (f"DROP TABLE {attempts}", f"TRUNCATE TABLE {attempts}", f"DELETE FROM {executions}"):
            assert not people.may(migration, statement), statement

    runtime = deployment.give("runtime")
    scheme = "postgresql+psycopg" if people.postgresql else "mysql+asyncmy"
    dsn = f"{scheme}://{people.dsn(runtime).partition('://')[2]}"
    for release in ("newest", "oldest") if way == "files" else ("newest",):
        database.execute(f"DELETE FROM {deployment.place(deployment.executions)}")
        life = onestep(release, LIFE, "life", dsn, deployment.executions, deployment.attempts)
        assert life.code == 0, life.err
        assert life.json == A_GOOD_LIFE

    monitor = deployment.give("monitor")
    operator = deployment.give("operator")
    update, delete = "UPDATE {} SET status = status", "DELETE FROM {}"
    insert = "INSERT INTO {0} SELECT * FROM {0} WHERE 1 = 0"
    ddl = [
        f"CREATE TABLE {quoted(database, 'another')} (a int)",
        f"ALTER TABLE {executions} ADD COLUMN more int",
        f"CREATE INDEX ix_more ON {attempts} (worker_id)",
        f"DROP TABLE {attempts}",
        f"TRUNCATE TABLE {attempts}",
    ]
    both = (executions, attempts)
    for name, refused in ((runtime, [delete]), (monitor, [insert, update, delete]), (operator, [insert])):
        for statement in [*ddl, *(one.format(table) for one in refused for table in both)]:
            assert not people.may(name, statement), (name, statement)

    for statement in (update.format(executions), update.format(attempts)):
        assert people.may(operator, statement)
    with people.cursor(operator) as cursor:
        cursor.execute(f"SELECT execution_id FROM {attempts} ORDER BY started_at LIMIT 1")
        (oldest,) = cursor.fetchone()
        cursor.execute(f"DELETE FROM {attempts} WHERE execution_id = %s", (oldest,))  # attempts first, as a purge does
        cursor.execute(f"DELETE FROM {executions} WHERE id = %s", (oldest,))
        cursor.execute(f"DELETE FROM {executions} WHERE attempts > 0")  # and by cascade
        cursor.execute(f"SELECT count(*) FROM {attempts}")
        assert cursor.fetchone() == (0,)

    report = deployment.run(monitor, "verify-schema", "-o", "json")
    assert (report.code, report.json["verdict"], report.json["unread"]) == (0, "match", []), report
    plant_leftovers(deployment)
    report = deployment.run(monitor, "verify-schema", "-o", "json")
    found = {finding["object"] for finding in report.json["findings"]}
    assert (report.code, report.json["unread"]) == (1, [])
    assert {f"_{deployment.executions}_new", "pt_osc_extra"} <= found, found


def plant_leftovers(deployment: Deployment) -> None:
    """Leave what an online schema change leaves when it is killed."""
    database, table = deployment.database, deployment.executions
    schema = deployment.schema or "public"
    if deployment.people.postgresql:
        database.execute(
            f'CREATE TABLE "{schema}"."_{table}_new" (a int)',
            f'CREATE FUNCTION "{schema}".nothing() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN NEW; END$$',
            f'CREATE TRIGGER pt_osc_extra AFTER INSERT ON "{schema}"."{table}"'
            f' FOR EACH ROW EXECUTE FUNCTION "{schema}".nothing()',
        )
    else:
        database.execute(
            f"CREATE TABLE `_{table}_new` (a int)",
            f"CREATE TRIGGER pt_osc_extra AFTER INSERT ON `{table}` FOR EACH ROW SET @extra = 1",
        )


def test_monitor_may_run_every_query(database: Database, people: People, opsctl: Opsctl) -> None:
    close_to_everybody(database)
    assert opsctl.init(database).code == 0
    name = people.make()
    run_in_client(database, printed(opsctl, "--role", "monitor", "--to", name, "--dsn", database.dsn))
    values = {"text": "x", "int": "1", "number": "1", "duration": "1h", "timestamp": "2026-01-01T00:00:00Z"}
    values["uuid"] = "0f8fad5b-d9cb-469f-a165-70867728950e"
    dialect = dialect_of(database)
    catalogue = load_catalogue(dialect)
    listed = [row["name"] for row in opsctl("query", "list", "--dialect", dialect, "-o", "json").json["rows"]]
    assert len(listed) >= 2
    refused = {}
    for query in listed:
        params = [f"-p{p.name}={values[p.type]}" for p in catalogue[query].params if p.required]
        answer = opsctl("query", "run", query, *params, "--allow-scan", "--dsn", people.dsn(name))
        if answer.code != 0:
            refused[query] = answer.err
    assert refused == {}


# -- nothing that is not needed --------------------------------------------------------------------------------------

#: What is tried: SQL, or a command of opsctl; or one of the words that Trial knows.
VERIFY = "opsctl verify-schema"
#: For each right of a script, by dialect and role: what fails without it.
ROW_RIGHTS = {
    "SELECT": "SELECT id FROM {0} FOR UPDATE",
    "INSERT": "INSERT INTO {0} SELECT * FROM {0} WHERE 1 = 0",
    "UPDATE": "UPDATE {0} SET status = status WHERE 1 = 0",
    "DELETE": "DELETE FROM {0} WHERE 1 = 0",
}
RUNTIME = {(r, t): ROW_RIGHTS[r].format(t) for r in ("SELECT", "INSERT", "UPDATE") for t in (E, A)}
OPERATOR = {(r, t): ROW_RIGHTS[r].format(t) for r in ("SELECT", "UPDATE", "DELETE") for t in (E, A)}
WAY_IN = {("CONNECT", "DATABASE"): f"SELECT 1 FROM public.{E}", ("USAGE", "SCHEMA"): f"SELECT 1 FROM public.{E}"}
MONITOR = {
    ("SELECT", E): "opsctl query run status-counts --allow-scan",
    ("SELECT", A): "opsctl query run workers --allow-scan",
    ("SELECT", R): f"SELECT version_num FROM {R}",
}
MONITOR_MYSQL = MONITOR | {
    ("TRIGGER", E): VERIFY,
    ("TRIGGER", A): VERIFY,
    ("SHOW VIEW", "*"): VERIFY,
    ("PROCESS", "*.*"): "opsctl query run cleaning",
    ("SELECT", "performance_schema.session_connect_attrs"): "opsctl query run transactions",
    ("SELECT", "mysql.innodb_index_stats"): "opsctl query run index-sizes",
    ("SELECT", "performance_schema.table_io_waits_summary_by_index_usage"): "opsctl query run index-sizes",
}
LOCK_TABLES = ("data_locks", "data_lock_waits", "metadata_locks", "threads")
MIGRATION_MYSQL = {
    ("CREATE", E): "create",
    ("CREATE", A): "create",
    ("CREATE", R): "create",
    ("SELECT", E): "create",
    ("SELECT", A): "create",
    ("REFERENCES", E): "create",
    ("SELECT", R): "create",
    ("INSERT", R): "create",
    ("DELETE", R): "create again",
    ("UPDATE", R): f"UPDATE {R} SET version_num = version_num",  # as Alembic does at the next version
    ("ALTER", E): f"ALTER TABLE {E} ALTER COLUMN attempts SET DEFAULT 0",
    ("ALTER", A): f"ALTER TABLE {A} ALTER COLUMN status DROP DEFAULT",
    ("INDEX", E): f"CREATE INDEX ix_extra ON {E} (worker_id)",
    ("INDEX", A): f"CREATE INDEX ix_extra ON {A} (worker_id)",
}
NEEDED = {
    ("mysql", "runtime"): RUNTIME,
    ("mysql", "operator"): OPERATOR,
    ("mysql", "monitor"): MONITOR_MYSQL
    | {("SELECT", f"performance_schema.{table}"): "opsctl query run locks" for table in LOCK_TABLES},
    ("mysql", "migration"): MIGRATION_MYSQL,
    ("mariadb", "runtime"): RUNTIME,
    ("mariadb", "operator"): OPERATOR,
    ("mariadb", "monitor"): MONITOR_MYSQL,
    ("mariadb", "migration"): MIGRATION_MYSQL,
    ("postgresql", "runtime"): RUNTIME | WAY_IN,
    ("postgresql", "operator"): OPERATOR | WAY_IN,
    ("postgresql", "monitor"): MONITOR
    | {("CONNECT", "DATABASE"): VERIFY, ("USAGE", "SCHEMA"): VERIFY, ("pg_read_all_stats", ""): "sessions"},
    ("postgresql", "migration"): {
        ("CREATE", "SCHEMA"): "create",
        ("USAGE", "SCHEMA"): "create",
        ("CONNECT", "DATABASE"): "create",
    },
}


def rights_of(script: str) -> dict[tuple[str, str], tuple[str, str]]:
    """The rights in a script as NEEDED names them, each with the GRANT and the REVOKE of it alone, up to TO and FROM."""
    text = re.sub(r"^--.*$", "", script, flags=re.MULTILINE)
    rights = {}
    for names, place in re.findall(r"GRANT ([\w ,]+?)(?: ON (\S+(?: \"\S+\")?))? TO ", text):
        known = re.sub(r"(DATABASE|SCHEMA) .*", r"\1", place)
        known = known if known in ("DATABASE", "SCHEMA") else known.replace('"public".', "").replace('"', "")
        for right in names.split(", "):
            one = f"{right} ON {place}" if place else right
            rights[right, known] = (f"GRANT {one}", f"REVOKE {one}")
    return rights


class Trial:
    """Tries as one account what its role is for."""

    def __init__(self, people: People, opsctl: Opsctl, name: str) -> None:
        self.people, self.opsctl, self.name = people, opsctl, name
        self.database = people.database

    def succeeds(self, what: str) -> bool:
        if what.startswith("create"):
            self._drop_tables(E, A, *([R] if what == "create" else []))
            return self._command("init-tables", "--yes", "--schema", "public", "--audit-file", os.devnull)
        if what == "sessions":
            return self._sees_sessions()
        if what.startswith("opsctl "):
            return self._command(*what.split()[1:])
        made = self.people.may(self.name, what)
        if made and what.startswith("CREATE INDEX"):
            self.database.execute(re.sub(r"CREATE (INDEX \w+ ON \w+).*", r"DROP \1", what))
        return made

    def _command(self, *arguments: str) -> bool:
        if not self.people.postgresql:
            arguments = tuple(part for part in arguments if part not in ("--schema", "public"))
        answer = self.opsctl(*arguments, "--dsn", self.people.dsn(self.name))
        assert answer.code in (0, 3, 4, 6), answer
        return answer.code == 0

    def _drop_tables(self, *tables: str) -> None:
        for table in sorted(tables, key=[A, E, R].index):
            self.database.execute(f"DROP TABLE IF EXISTS {table}")

    def _sees_sessions(self) -> bool:
        with self.database.connect().cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute(f"SELECT count(*) FROM {E}")
            answer = self.opsctl(
                *("query", "run", "transactions", "-p", "older_than=0s", "-o", "json"),
                *("--dsn", self.people.dsn(self.name)),
            )
            assert answer.code == 0, answer
            cursor.execute("ROLLBACK")
        return f"FROM {E}" in json.dumps(answer.json)


@pytest.mark.parametrize("role", ROLES)
def test_every_right_is_needed(role: str, database: Database, people: People, opsctl: Opsctl) -> None:
    close_to_everybody(database)
    if role != "migration":
        assert opsctl.init(database).code == 0
    name = people.make()
    script = printed(opsctl, "--role", role, "--to", name, "--dsn", database.dsn)
    run_in_client(database, script)
    needed = NEEDED[dialect_of(database), role]
    rights = rights_of(script)
    assert set(rights) == set(needed)
    trial, account = Trial(people, opsctl, name), quoted(database, name)
    for what in dict.fromkeys(needed.values()):
        assert trial.succeeds(what), what
    for right, (grant, revoke) in rights.items():
        database.execute(f"{revoke} FROM {account}")
        assert not trial.succeeds(needed[right]), f"{needed[right]} does without {right}"
        if needed[right].startswith("create"):
            assert opsctl.init(database).code == 0, "a right on a table that is not there cannot be given"
        database.execute(f"{grant} TO {account}")
    assert trial.succeeds(needed[next(iter(rights))]), "all is as before"


# -- accounts of every name ------------------------------------------------------------------------------------------

ODD = ["o'b\"r`i\\e''n", " a b", "a@b%c", "sélect 名前", "select", "--x /*y*/ #z;", "$$ :schemas $x$", "%s {0} \\g"]


def odd_names(database: Database) -> list[str]:
    """Names that nobody else has on the server, of every kind and of the greatest length."""
    longest = {"mysql": 32, "mariadb": 128}.get(database.server.name, 63)
    names = [secrets.token_hex(3) + name for name in ODD if name != "select"] + ["select"]
    if database.server.family == "postgresql":
        names.append(secrets.token_hex(3) + "🚀")
    return [*names, (secrets.token_hex(3) + "x" * longest)[:longest]]


def test_accounts_of_every_name(database: Database, people: People, opsctl: Opsctl) -> None:
    assert opsctl.init(database).code == 0
    dialect = dialect_of(database)
    modes = [()]
    if not people.postgresql:
        modes.append(("--init-command=SET SESSION sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'",))
    for options in modes:
        for odd in odd_names(database):
            name = people.make(odd)
            to = odd if people.postgresql else "'" + odd.replace("'", "''") + "'"
            run_in_client(database, printed(opsctl, "--role", "monitor", "--to", to, "--dialect", dialect), *options)
            for statement in (f"SELECT count(*) FROM {E}", f"SELECT version_num FROM {R}"):
                assert people.may(name, statement), name
        people.drop()
        people._made.clear()


@pytest.mark.servers("mysql", "mariadb")
def test_host_of_an_account_counts(database: Database, people: People, opsctl: Opsctl) -> None:
    assert opsctl.init(database).code == 0
    name = people.make(host="10.1.2.3")
    people.make(name, "it's.example")
    for to in (f"{name}@10.1.2.3", f"'{name}'@'it''s.example'"):
        run_in_client(database, printed(opsctl, "--role", "runtime", "--to", to, "--dsn", database.dsn))
    for host in ("10.1.2.3", "it''s.example"):
        shown = str(database.execute(f"SHOW GRANTS FOR '{name}'@'{host}'"))
        assert f"`{database.name}`.`{E}`" in shown
    script = printed(opsctl, "--role", "runtime", "--to", f"{name}@elsewhere", "--dsn", database.dsn)
    run_in_client(database, script, code=1)


@pytest.mark.servers("mysql", "mariadb")
def test_no_account_is_made(database: Database, people: People, opsctl: Opsctl) -> None:
    """MariaDB makes one without a password when the server's sql_mode does not say otherwise."""
    assert opsctl.init(database).code == 0
    name = f"g_{secrets.token_hex(5)}"
    script = printed(opsctl, "--role", "runtime", "--to", name, "--dsn", database.dsn)
    run_in_client(database, script, "--init-command=SET SESSION sql_mode = ''", code=1)
    assert list(database.execute(f"SELECT user FROM mysql.user WHERE user = '{name}'")) == []


@pytest.mark.servers("mysql", "mariadb")
def test_a_role_may_be_named(database: Database, people: People, opsctl: Opsctl) -> None:
    assert opsctl.init(database).code == 0
    role, name = f"r_{secrets.token_hex(5)}", people.make()
    word = "FOR" if database.server.name == "mariadb" else "TO"
    database.execute(f"CREATE ROLE {role}", f"GRANT {role} TO `{name}`", f"SET DEFAULT ROLE {role} {word} `{name}`")
    run_in_client(database, printed(opsctl, "--role", "runtime", "--to", role, "--dsn", database.dsn))
    assert people.may(name, f"SELECT count(*) FROM {E}")
    database.execute(f"DROP ROLE {role}")


# -- where the tables are --------------------------------------------------------------------------------------------


@pytest.mark.servers("postgresql")
def test_schema_is_where_the_search_path_finds_the_tables(database: Database, people: People, opsctl: Opsctl) -> None:
    close_to_everybody(database)
    schema = 'o"dd :schemas'
    inside = '"o""dd :schemas"'
    database.execute(f"CREATE SCHEMA {inside}", f"ALTER DATABASE {database.name} SET search_path = {inside}")
    database.close()
    name = people.make()
    arguments = ("--to", name, "--dsn", database.dsn)
    answer = opsctl("grants", "sql", "--role", "runtime", *arguments)
    assert (answer.code, E in answer.err, "--schema" in answer.err) == (2, True, True)
    assert f"SCHEMA {inside}" in printed(opsctl, "--role", "migration", *arguments)
    assert opsctl.init(database).code == 0
    connected = printed(opsctl, "--role", "runtime", *arguments)
    assert f"ON {inside}." in connected
    assert printed(opsctl, "--role", "runtime", *arguments, "--schema", schema) == connected
    offline = printed(opsctl, "--role", "monitor", "--to", name, "--dialect", "postgresql")
    assert inside not in offline
    run_in_client(database, offline)
    run_in_client(database, connected)
    for statement in (f"INSERT INTO {E} SELECT * FROM {E} WHERE false", f"SELECT * FROM {R}"):
        assert people.may(name, statement)
    assert opsctl("grants", "sql", "--role", "runtime", *arguments, "--schema", "none").code == 2


@pytest.mark.servers("mysql", "mariadb")
def test_script_brings_its_database_with_it(database: Database, people: People, opsctl: Opsctl) -> None:
    """It is run while another database is the client's."""
    assert opsctl.init(database).code == 0
    other, name = Database(database.server), people.make()
    try:
        run_in_client(other, printed(opsctl, "--role", "runtime", "--to", name, "--dsn", database.dsn))
        assert people.may(name, f"INSERT INTO {E} SELECT * FROM {E} WHERE 1 = 0")
        run_in_client(other, printed(opsctl, "--role", "runtime", "--to", name, "--dialect", dialect_of(other)), code=1)
    finally:
        other.drop()
