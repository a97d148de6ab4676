"""MariaDB: only what differs from MySQL."""

from __future__ import annotations

from opsctl.dialects.base import Version
from opsctl.dialects.mysql import MySQL


class MariaDB(MySQL):
    """MariaDB 10.6 and later, which onestep reaches through a mysql+…:// DSN."""

    name = "mariadb"
    product = "MariaDB"
    minimum: Version = (10, 6)
    minimum_reason = "before 10.6 there is no FOR UPDATE SKIP LOCKED, which every claim uses"

    #: The type uuid came with 10.7; SQLAlchemy 2.1 uses it from there on and char(32) before.
    uuid_type_since: Version = (10, 7)

    def statement_timeout(self, seconds: float) -> str:
        """Return the assignment that limits a statement, in seconds; MariaDB's covers every statement."""
        return f"SESSION max_statement_time = {max(0.001, round(seconds, 3))}"
