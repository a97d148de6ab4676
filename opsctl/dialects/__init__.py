"""What differs between servers. The server says what it is, never the DSN's scheme."""

from __future__ import annotations

from opsctl.dialects.base import Server
from opsctl.dialects.mariadb import MariaDB
from opsctl.dialects.mysql import MySQL
from opsctl.dialects.postgresql import PostgreSQL
from opsctl.errors import Guarded

AnyDialect = MySQL | MariaDB | PostgreSQL

_BY_PRODUCT: dict[str, AnyDialect] = {d.product: d for d in (MySQL(), MariaDB(), PostgreSQL())}


def dialect_of(server: Server) -> AnyDialect:
    """Return the dialect of `server`."""
    return _BY_PRODUCT[server.product]


def require_supported(server: Server) -> None:
    """Raise Guarded when `server` is older than tracked execution works on, saying why."""
    dialect = dialect_of(server)
    if server.number < dialect.minimum:
        least = ".".join(map(str, dialect.minimum))
        raise Guarded(
            f"{server} is too old: {dialect.minimum_reason}",
            f"use {dialect.product} {least} or later",
        )
