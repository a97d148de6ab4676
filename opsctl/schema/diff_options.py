"""Compare what belongs to the table as a whole, and what an online change left beside it."""

from __future__ import annotations

from collections.abc import Iterator

from opsctl.schema.comparison import Comparison
from opsctl.schema.findings import ERROR, INFO, WARNING, Finding

#: Table options that change nothing for onestep, on any server.
_COSMETIC = frozenset(
    [
        "comment",
        "row_format",
        "stats_persistent",
        "stats_auto_recalc",
        "stats_sample_pages",
        "key_block_size",
        "compression",
        "encryption",
        "encrypted",
        "encryption_key_id",
        "tablespace",
        "avg_row_length",
        "max_rows",
        "min_rows",
        "checksum",
        "delay_key_write",
        "pack_keys",
        "page_compressed",
        "page_compression_level",
        "transactional",
        "engine_attribute",
        "secondary_engine_attribute",
        "auto_increment",
        "autoextend_size",
        "fillfactor",
        "toast_tuple_target",
        "parallel_workers",
        "log_autovacuum_min_duration",
        "page_checksum",
        "schema",
        "charset",
        "collation",
        "engine",
        "persistence",
    ]
)

#: Options that other code compares, or that place the table rather than change it.
_STRUCTURAL = ("schema", "charset", "collation", "engine", "persistence", "auto_increment")


def compare_options(c: Comparison) -> Iterator[Finding]:
    """Yield what differs in the table as a whole."""
    live, name = c.live.options, c.live.name
    if not c.postgresql:
        yield from _mysql_options(c)
    elif live["persistence"] != "logged":
        message = f"the table is {live['persistence']}: a crash of the server empties it, and a standby has none of it"
        yield c.finding(
            "table",
            name,
            "persistence",
            ERROR,
            ("logged", live["persistence"]),
            message,
            c.fixer.alter("SET LOGGED"),
        )
    for option, value in live.items():
        if option == "row level security":
            message = (
                "row level security is on: for a role other than the owner rows are invisible to claim, get and list, "
                "and its writes are refused, unless a policy lets them through"
            )
            yield c.finding(
                "table",
                name,
                option,
                ERROR,
                ("off", value),
                message,
                c.fixer.alter("DISABLE ROW LEVEL SECURITY"),
            )
        elif option.endswith("autovacuum_enabled") and value.lower() in ("false", "off", "0", "no"):
            message = "autovacuum is off: every claim and heartbeat leaves dead rows that are never cleaned, so reads slow down for ever"
            yield c.finding(
                "table",
                name,
                option,
                WARNING,
                ("on", value),
                message,
                c.fixer.alter(f"RESET ({option})"),
            )
        elif option == "inheritance":
            message = "the table takes part in inheritance: keys and foreign keys do not reach over its parts, and reads take in the children's rows"
            yield c.finding("table", name, option, WARNING, ("none", value), message)
        elif option == "partitions":
            message = "the table is partitioned: foreign keys and unique keys over all rows are not possible"
            yield c.finding("table", name, option, WARNING, (None, value), message)
        elif option == "system versioning":
            message = (
                "system versioning keeps every old version of every row: each claim and heartbeat makes the table grow"
            )
            yield c.finding(
                "table",
                name,
                option,
                WARNING,
                ("off", value),
                message,
                c.fixer.alter("DROP SYSTEM VERSIONING"),
            )
        elif option not in _COSMETIC and option not in c.expected.options:
            autovacuum = option.startswith(("autovacuum_", "toast.", "vacuum_"))
            severity, word = (
                (INFO, "changes nothing for onestep") if autovacuum else (WARNING, "is not known to be harmless")
            )
            yield c.finding(
                "table",
                name,
                option,
                severity,
                (None, value),
                f"the table option {option} = {value} {word}",
            )
        elif option in _COSMETIC and option not in (*_STRUCTURAL, *c.expected.options):
            yield c.finding("table", name, option, INFO, (None, value), f"the table has {option} = {value}")


def _mysql_options(c: Comparison) -> Iterator[Finding]:
    live, expected, name = c.live.options, c.expected.options, c.live.name
    engine = live.get("engine", "")
    if engine.lower() != expected["engine"].lower():
        message = f"engine {engine} has no row locks, transactions and foreign keys as InnoDB has: two workers can claim one execution"
        yield c.finding(
            "table",
            name,
            "engine",
            ERROR,
            (expected["engine"], engine),
            message,
            c.fixer.engine(expected["engine"]),
        )
    charset = live.get("charset", "")
    if charset != expected["charset"]:
        message = f"character set {charset} cannot hold every character: such a name, key or worker id is refused or stored changed"
        yield c.finding(
            "table",
            name,
            "charset",
            ERROR,
            (expected["charset"], charset),
            message,
            c.fixer.convert_charset(expected["charset"]),
        )


def compare_leftovers(c: Comparison) -> Iterator[Finding]:
    """Yield the tables that an online change of this one left behind."""
    for name in c.live.beside:
        message = f"is a table that an online schema change of {c.live.name} left behind (or has at work now): drop it once no such tool runs"
        yield c.finding("leftover", name, "existence", WARNING, (None, "present"), message)


#: Options that other code compares, or that place the table rather than change it.
_STRUCTURAL = ("schema", "charset", "collation", "engine", "persistence", "auto_increment")
