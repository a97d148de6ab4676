"""Compare what belongs to the table as a whole, and what an online change left beside it."""

from __future__ import annotations

from collections.abc import Iterator

from opsctl.schema.comparison import Comparison
from opsctl.schema.findings import ERROR, INFO, WARNING, Finding

#: Options that are compared by name below, or that say where a table is and not what it is like.
_COMPARED = frozenset("schema persistence engine charset collation auto_increment".split())

#: Options of any server that change nothing for onestep.
_HARMLESS = frozenset(
    (
        *"comment row_format stats_persistent stats_auto_recalc stats_sample_pages key_block_size compression".split(),
        *"encryption encrypted encryption_key_id tablespace avg_row_length max_rows min_rows checksum".split(),
        *"page_checksum delay_key_write pack_keys page_compressed page_compression_level transactional".split(),
        *"engine_attribute secondary_engine_attribute autoextend_size fillfactor toast_tuple_target".split(),
        *"parallel_workers log_autovacuum_min_duration user_catalog_table secondary_engine".split(),
        "data directory",
        "index directory",
    )
)

#: What is wrong with an option that a table of onestep must not have: severity, expected value, meaning, ALTER clause.
_MEANING: dict[str, tuple[str, str, str, str | None]] = {
    "row level security": (
        ERROR,
        "off",
        "row level security is on: for a role other than the owner rows are invisible to claim, get and list, "
        "and its writes are refused, unless a policy lets them through",
        "DISABLE ROW LEVEL SECURITY",
    ),
    "replica identity": (
        ERROR,
        "default",
        "is published without a replica identity: every UPDATE and DELETE of it is refused",
        "REPLICA IDENTITY DEFAULT",
    ),
    "inheritance": (
        WARNING,
        "none",
        "takes part in inheritance: keys and foreign keys do not reach over its parts, and reads take in the children's rows",
        None,
    ),
    "partitions": (
        WARNING,
        "none",
        "is partitioned (partitions are listed as actual): foreign keys and unique keys over all rows are not possible",
        None,
    ),
    "system versioning": (
        WARNING,
        "off",
        "system versioning keeps every old version of every row: each claim and heartbeat makes the table grow",
        "DROP SYSTEM VERSIONING",
    ),
}


def compare_options(c: Comparison) -> Iterator[Finding]:
    """Yield what differs in the table as a whole."""
    yield from _persistence(c) if c.postgresql else _engine_and_charset(c)
    for option, value in c.live.options.items():
        if option in _MEANING:
            severity, wanted, message, clause = _MEANING[option]
            fix = c.fixer.alter(clause) if clause else None
            yield _finding(c, option, severity, (wanted, value), message, fix)
        elif option.endswith("autovacuum_enabled"):
            if value.lower() in ("false", "off", "0", "no"):
                message = "autovacuum is off: every claim and heartbeat leaves dead rows that are never cleaned, so reads slow down for ever"
                yield _finding(c, option, WARNING, ("on", value), message, c.fixer.alter(f"RESET ({option})"))
        elif option in _HARMLESS or option.startswith(("autovacuum_", "vacuum_", "toast.")):
            yield _finding(c, option, INFO, (None, value), f"has {option} = {value}, which changes nothing for onestep")
        elif option not in _COMPARED:
            message = f"has {option} = {value}, which opsctl does not know to be harmless"
            yield _finding(c, option, WARNING, (None, value), message)


def compare_leftovers(c: Comparison) -> Iterator[Finding]:
    """Yield the tables that an online change of this one left behind."""
    for name in c.live.beside:
        message = (
            f"is a table that an online schema change of {c.live.name} left behind (or has at work now): "
            "drop it once no such tool runs"
        )
        yield c.finding("leftover", name, "existence", WARNING, (None, "present"), message)


def _finding(
    c: Comparison,
    option: str,
    severity: str,
    values: tuple[str | None, str],
    message: str,
    fix: str | None = None,
) -> Finding:
    return c.finding("table", c.live.name, option, severity, values, message, fix)


def _persistence(c: Comparison) -> Iterator[Finding]:
    actual = c.live.options["persistence"]
    if actual != "logged":
        message = f"is {actual}: a crash of the server empties it, and a standby has none of it"
        yield _finding(c, "persistence", ERROR, ("logged", actual), message, c.fixer.alter("SET LOGGED"))


def _engine_and_charset(c: Comparison) -> Iterator[Finding]:
    if any(fact.property == "options" for fact in c.live.unread):
        return
    wanted = c.expected.options
    engine, charset = c.live.options.get("engine", ""), c.live.options.get("charset", "")
    if engine.lower() != wanted["engine"].lower():
        message = f"engine {engine} has no row locks, transactions and foreign keys as InnoDB has: two workers can claim one execution"
        fix = c.fixer.engine(wanted["engine"])
        yield _finding(c, "engine", ERROR, (wanted["engine"], engine), message, fix)
    if charset != wanted["charset"]:
        message = f"character set {charset} cannot hold every character: such a name, key or worker id is refused or stored changed"
        fix = c.fixer.convert_charset(wanted["charset"], c.live)
        yield _finding(c, "charset", ERROR, (wanted["charset"], charset), message, fix)
