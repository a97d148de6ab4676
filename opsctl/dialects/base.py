"""What differs between servers, behind one small Protocol: data and pure functions, no connection."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from opsctl.dialects.names import Pair

Version = tuple[int, ...]


@dataclass(frozen=True)
class Timeouts:
    """Limits in seconds for connecting, for waiting on a lock and for one statement."""

    connect_s: float = 5.0
    lock_s: float = 5.0
    statement_s: float = 30.0

    @property
    def longest_s(self) -> float:
        """How long one statement may take in all: waiting for a lock is part of it."""
        return max(self.statement_s, self.lock_s)


@dataclass(frozen=True)
class Server:
    """What the server says it is: `product` ("MySQL", "MariaDB", "PostgreSQL"), `version` as it prints it."""

    product: str
    version: str

    @property
    def number(self) -> Version:
        """The leading numbers of the version, (8, 0, 36) for "8.0.36-28-log", (19,) for "19beta1"."""
        leading = re.match(r"\d+(?:\.\d+)*", self.version)
        return tuple(map(int, leading[0].split("."))) if leading else ()

    def __str__(self) -> str:
        """Product and version without a packager's additions: MariaDB 10.11.19."""
        return f"{self.product} {'.'.join(map(str, self.number)) or self.version}"


@dataclass(frozen=True)
class Failure:
    """What a driver's error means: an exit class ("unreachable", "refused"), the cause and the remedy."""

    kind: str
    cause: str
    hint: str


class Dialect(Protocol):
    """One server family. `name` is also the directory under sql/."""

    name: str
    product: str
    identifier_limit: int
    minimum: Version
    minimum_reason: str
    transactional_ddl: bool

    def quote(self, identifier: str) -> str:
        """Return `identifier` quoted, whatever it contains."""
        ...

    def derived_names(self, pair: Pair) -> Mapping[str, str]:
        """Map each object name in sql/ (those of the default pair) to its name for `pair`."""
        ...

    def session_setup(self, timeouts: Timeouts, *, read_only: bool) -> list[str]:
        """Return the statements that give a new session its zone, isolation, timeouts and mode."""
        ...
