"""MySQL as the tests of this project have it, for one demo: there is no wheel with MySQL in it."""

from __future__ import annotations

import importlib
import sys
import threading
from pathlib import Path
from typing import Any

import pymysql

import opsctl
from opsctl.demo.database import Database, last_line
from opsctl.demo.stage import Stage
from opsctl.errors import Unreachable, UsageError


def start_mysql(stage: Stage) -> Database:
    """Return an empty database on the server that OPSCTL_TEST_MYSQL_DSN names, or else on one started here.

    Raises OpsctlError with the reason.
    """
    tests = Path(opsctl.__file__).resolve().parents[1] / "tests"
    if not (tests / "servers" / "__init__.py").is_file():
        raise UsageError(
            "--db mysql takes its server as opsctl's tests do, and this opsctl is not a checkout with its tests",
            "run it in a checkout of opsctl, or leave --db mysql out",
        )
    sys.path.insert(0, str(tests))
    servers = importlib.import_module("servers")
    try:
        server = servers.given_server("mysql") or _start_in_thread(stage, servers)
        with stage.interrupts.held():
            database = servers.Database(server, "demo" if server.directory else None)
            if server.directory is None:
                stage.clearing.callback(_drop, database)
    except (servers.ServerError, pymysql.Error) as error:
        reason = " ".join(str(error).partition("\n")[0].split())
        if "\n" in str(error):
            reason += f" {last_line(str(error))}"
        raise Unreachable(
            f"MySQL cannot be had: {reason}",
            "let OPSCTL_TEST_MYSQL_DSN name one (a database is made there and dropped), or leave --db mysql out",
        ) from None
    return Database("mysql", database.dsn, f"{server.product} {server.version}")


def _start_in_thread(stage: Stage, servers: Any) -> Any:
    """Start the tests' server where no signal comes between its process and the knowledge of it."""
    server = servers.local_server("mysql", stage.directory / "server")
    errors: list[BaseException] = []

    def start() -> None:
        try:
            server.start()
        except BaseException as error:  # noqa: BLE001 (raised again by the main thread)
            errors.append(error)

    thread = threading.Thread(target=start)

    def discard() -> None:
        server.discard()
        while thread.is_alive():  # it may only now come to its process
            thread.join(0.05)
            server.discard()

    with stage.interrupts.held():
        stage.clearing.callback(discard)
        thread.start()
    while thread.is_alive():
        thread.join(0.05)
    if errors:
        raise errors[0]
    return server


def _drop(database: Any) -> None:
    try:
        database.drop()
    except pymysql.Error as error:
        raise Unreachable(
            f"the database {database.name} could not be dropped: {error.args[-1]}", "drop it by hand"
        ) from None
