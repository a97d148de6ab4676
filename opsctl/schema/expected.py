"""What a pair of onestep's tables should be, for each server.

Source: the tables that onestep-sql 0.4.0 to 0.7.1 create (on PostgreSQL also 0.3.0 and onestep-postgres 0.4.0), which are
all the same. sql/<dialect>/schema/V1__tracked_execution.sql says the same as DDL; a test on every server holds the two
and onestep's own tables together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from opsctl.dialects import AnyDialect
from opsctl.dialects.names import Pair
from opsctl.dialects.postgresql import PostgreSQL
from opsctl.schema.model import Check, Column, ForeignKey, Index, IndexPart, Table

VERSION = "V1"
VERSION_TITLE = "V1 (onestep-sql 0.4.0 to 0.7.1)"

EXECUTION_STATUSES = (
    "queued",
    "running",
    "retrying",
    "succeeded",
    "failed",
    "cancel_requested",
    "cancelled",
    "expired",
)
ATTEMPT_STATUSES = ("running", "succeeded", "retrying", "failed", "cancelled", "lease_lost")

#: Two genuine forms of the uuid columns: 32 hex digits, or the server's own type.
UUID_CHAR = "char(32)"
UUID_NATIVE = "uuid"


@dataclass(frozen=True)
class _Types:
    uuid: str
    json: str
    time: str
    integer: str
    empty_object: str
    text_charset: str | None

    def varchar(self, length: int) -> str:
        return f"{'varchar' if self.text_charset else 'character varying'}({length})"


def expected_pair(dialect: AnyDialect, pair: Pair, *, uuid_type: str) -> tuple[Table, Table]:
    """Return the expected executions and attempts table of `pair`, every object under its derived name.

    `uuid_type` is UUID_NATIVE on PostgreSQL, UUID_CHAR on MySQL, and on MariaDB the one that the live table has.
    """
    if isinstance(dialect, PostgreSQL):
        types = _Types(UUID_NATIVE, "jsonb", "timestamp with time zone", "integer", "'{}'", None)
    else:
        types = _Types(uuid_type, "json", "datetime(6)", "int", "json_object()", "utf8mb4")
    names = dialect.derived_names(pair)
    return _executions(dialect, pair, types, names), _attempts(dialect, pair, types, names)


def _executions(dialect: AnyDialect, pair: Pair, types: _Types, name: Mapping[str, str]) -> Table:
    columns = (
        _column("id", types.uuid, types),
        _column("namespace", types.varchar(255), types),
        _column("task_name", types.varchar(255), types),
        _column("status", types.varchar(32), types),
        _column("payload", types.json, types),
        _column("metadata", types.json, types, default=types.empty_object),
        _column("result", types.json, types, nullable=True),
        _column("error", types.json, types, nullable=True),
        _column("idempotency_key", types.varchar(255), types, nullable=True),
        _column("submission_digest", types.varchar(64), types, nullable=True),
        _column("attempts", types.integer, types, default="0"),
        _column("available_at", types.time, types),
        _column("lease_token", types.uuid, types, nullable=True),
        _column("lease_expires_at", types.time, types, nullable=True),
        _column("worker_id", types.varchar(255), types, nullable=True),
        _column("cancel_reason", types.varchar(500), types, nullable=True),
        _column("cancel_requested_at", types.time, types, nullable=True),
        _column("expires_at", types.time, types, nullable=True),
        _column("created_at", types.time, types),
        _column("updated_at", types.time, types),
        _column("started_at", types.time, types, nullable=True),
        _column("finished_at", types.time, types, nullable=True),
        _column("version", "bigint", types, default="0"),
    )
    partial = isinstance(dialect, PostgreSQL)
    checks = (
        ("ck_onestep_execution_status", "ck_onestep_execution_idempotency")
        if partial
        else (name["ck_onestep_executions_status"], name["ck_onestep_executions_idempotency"])
    )
    return Table(
        name=pair.executions,
        columns=columns,
        indexes=(
            _primary(pair.executions, partial),
            Index(
                name["uq_onestep_executions_idempotency"],
                _parts(partial, "namespace", "task_name", "idempotency_key"),
                unique=True,
                meaning="two submits with one idempotency key can make two executions",
                predicate="idempotency_key IS NOT NULL" if partial else None,
            ),
            Index(
                name["ix_onestep_executions_claim"],
                _parts(partial, "namespace", "task_name", "available_at", "created_at", "id"),
                meaning="every claim of every worker reads and sorts far more rows than are due",
                predicate="status IN ('queued', 'retrying')" if partial else None,
            ),
            Index(
                name["ix_onestep_executions_lease"],
                _parts(partial, "lease_expires_at", "id"),
                meaning="the search for run-out leases, which begins every claim, reads the whole table",
                predicate="status IN ('running', 'cancel_requested')" if partial else None,
            ),
            Index(
                name["ix_onestep_executions_list"],
                _parts(partial, "namespace", "created_at DESC", "id DESC"),
                meaning="every page of a list sorts all executions of the namespace",
            ),
        ),
        checks=(
            Check(checks[0], _in_list("status", EXECUTION_STATUSES)),
            Check(
                checks[1],
                "(idempotency_key IS NULL AND submission_digest IS NULL)"
                " OR (idempotency_key IS NOT NULL AND submission_digest IS NOT NULL)",
            ),
        ),
        options=_options(types),
    )


def _attempts(dialect: AnyDialect, pair: Pair, types: _Types, name: Mapping[str, str]) -> Table:
    partial = isinstance(dialect, PostgreSQL)
    return Table(
        name=pair.attempts,
        columns=(
            _column("id", types.uuid, types),
            _column("execution_id", types.uuid, types),
            _column("attempt_no", types.integer, types),
            _column("lease_token", types.uuid, types),
            _column("worker_id", types.varchar(255), types),
            _column("status", types.varchar(32), types),
            _column("error", types.json, types, nullable=True),
            _column("started_at", types.time, types),
            _column("heartbeat_at", types.time, types),
            _column("finished_at", types.time, types, nullable=True),
        ),
        indexes=(
            _primary(pair.attempts, partial),
            Index(
                name["uq_onestep_execution_attempts_execution_attempt"],
                _parts(partial, "execution_id", "attempt_no"),
                unique=True,
                constraint=partial,
                meaning="two attempts of one execution can carry the same number",
            ),
            Index(
                name["ix_onestep_execution_attempts_execution"],
                _parts(partial, "execution_id", "attempt_no DESC"),
                meaning="finding an execution's latest attempt sorts all its attempts",
            ),
        ),
        checks=(
            Check(
                "ck_onestep_attempt_status" if partial else name["ck_onestep_execution_attempts_status"],
                _in_list("status", ATTEMPT_STATUSES),
            ),
        ),
        foreign_keys=(
            ForeignKey(
                dialect.server_constraint_name(pair.attempts, "execution_id", "fkey")
                if isinstance(dialect, PostgreSQL)
                else name["fk_onestep_execution_attempts_execution"],
                ("execution_id",),
                pair.executions,
                ("id",),
                on_delete="CASCADE",
                server_named=partial,
            ),
        ),
        options=_options(types),
    )


def _column(name: str, type_: str, types: _Types, *, nullable: bool = False, default: str | None = None) -> Column:
    charset = types.text_charset if type_.startswith(("varchar", "char")) else None
    return Column(name, type_, nullable, default=default, charset=charset)


def _parts(postgresql: bool, *columns: str) -> tuple[IndexPart, ...]:
    """PostgreSQL sorts NULL first when descending and last otherwise, and says so; MySQL has no choice."""
    parts = []
    for column in columns:
        name, _, direction = column.partition(" ")
        descending = direction == "DESC"
        parts.append(IndexPart(name, descending=descending, nulls_first=descending if postgresql else None))
    return tuple(parts)


def _primary(table: str, postgresql: bool) -> Index:
    return Index(
        f"{table[:58]}_pkey" if postgresql else "PRIMARY",
        _parts(postgresql, "id"),
        unique=True,
        primary=True,
        constraint=postgresql,
        meaning="an id can stand twice, and every get, heartbeat and complete reads the whole table",
        server_named=True,
    )


def _options(types: _Types) -> dict[str, str]:
    if types.text_charset is None:
        return {"persistence": "logged"}
    return {"engine": "InnoDB", "charset": types.text_charset}


def _in_list(column: str, values: tuple[str, ...]) -> str:
    return f"{column} IN ({', '.join(repr(value) for value in values)})"
