"""What claims of onestep cost with the stock indexes and with opsctl's, side by side in one run.

    .venv/bin/python benchmarks/claims [--server mysql] [--finished 50000,1000000] [--queued 0,200,20000]
        [--workers 16] [--seconds 10] [--buffer-pool 64M] [--durable] [--data DIR] [--plot FILE.svg] [--json FILE]

It starts a server of its own and builds a table for each number of finished rows: claims that find nothing and claims of
four by onestep's own backend, then what many of its workers do in a second. With --durable the server keeps a binary log
and loses nothing in a power cut, as in production; without, writes cost less than they would there.
The tuned set is the recommended one: all of sql/<dialect>/indexes/ that is not optional, or --indexes NAME,NAME.
"""

from __future__ import annotations

import argparse
import json
import platform
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlsplit

from latency import Latency, time_claims
from pairs import EXECUTIONS
from plot import draw
from servers import Database, Server
from servers.server import local_server
from table import Shape, build, clear_live, gather_statistics, queue
from tabulate import tabulate
from workers import run_workers

from opsctl.dialects import AnyDialect
from opsctl.dialects.mariadb import MariaDB
from opsctl.dialects.mysql import MySQL
from opsctl.dialects.names import Pair
from opsctl.dialects.postgresql import PostgreSQL
from opsctl.schema.operational import load_operational

DIALECTS: dict[str, AnyDialect] = {
    "mysql": MySQL(),
    "mariadb": MariaDB(),
    "postgresql": PostgreSQL(),
    "postgresql-newest": PostgreSQL(),
}
STOCK, TUNED = "stock", "tuned"


def options_of(name: str, buffer_pool: str, *, durable: bool) -> tuple[str, ...]:
    """The server's options: those of the tests, with another pool, and with what a production server has on."""
    if name.startswith("postgresql"):
        safe = ("-c", "fsync=on", "-c", "full_page_writes=on", "-c", "synchronous_commit=on") if durable else ()
        return ("-c", f"shared_buffers={buffer_pool}B", *safe)
    options = [
        f"--innodb-buffer-pool-size={buffer_pool}",
        f"--innodb-{'redo-log-capacity' if name == 'mysql' else 'log-file-size'}=512M",
    ]
    if durable:
        options += ["--log-bin=binlog", "--server-id=1", "--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1"]
        options += ["--innodb-flush-method=fsync", "--innodb-doublewrite=ON"]
    return tuple(options)


class Bench:
    """One server and the measurements on it."""

    def __init__(self, server: Server, arguments: argparse.Namespace) -> None:
        self.server = server
        self.arguments = arguments
        self.dialect = DIALECTS[server.name]
        wanted = arguments.indexes.split(",") if arguments.indexes else None
        self.items = [
            item
            for item in load_operational(self.dialect, Pair())
            if (item.name in wanted if wanted else not item.optional)
        ]
        self.rows: list[dict[str, Any]] = []

    def run(self) -> None:
        """Measure each number of finished rows, and print as it goes."""
        for finished in numbers(self.arguments.finished):
            with fresh_database(self.server) as database:
                build(
                    database,
                    Shape(
                        finished,
                        tasks=self.arguments.tasks,
                        expiring=self.arguments.expiring,
                        payload=self.arguments.payload,
                    ),
                )
                size = table_bytes(database)
                print(
                    f"\n{finished:,} finished rows, {self.arguments.tasks} tasks, {size / 2**20:,.0f} MiB of table and indexes",
                    flush=True,
                )
                for queued in numbers(self.arguments.queued):
                    self.compare_latency(database, finished, queued)
                if self.arguments.seconds > 0:
                    self.compare_throughput(database, finished)

    def compare_latency(self, database: Database, finished: int, queued: int) -> None:
        """Claims that find nothing and claims of four, by one worker, with each set of indexes."""
        clear_live(database)
        queue(
            database,
            queued,
            scattered=self.server.family == "postgresql",
            expiring=self.arguments.expiring,
            payload=self.arguments.payload,
        )
        cells: dict[str, dict[str, Latency]] = {}
        for indexes in (STOCK, TUNED):
            self.set_indexes(database, indexes)
            gather_statistics(database)
            found = {"empty": time_claims(self.client_dsn(database), task="task-1", runs=self.arguments.runs)}
            if queued:
                found["of four"] = time_claims(self.client_dsn(database), task="task-0", runs=self.arguments.runs)
            cells[indexes] = found
        for kind, stock in cells[STOCK].items():
            tuned = cells[TUNED][kind]
            self.add("claim, " + kind, finished, queued, stock.median_ms, tuned.median_ms, "ms")

    def compare_throughput(self, database: Database, finished: int) -> None:
        """Many workers: what they claim and complete, and each kind of write apart, stock and tuned in turn."""
        workers, seconds = self.arguments.workers, self.arguments.seconds
        found: dict[str, dict[str, list[float]]] = {STOCK: {}, TUNED: {}}
        for indexes in (STOCK, TUNED) * self.arguments.rounds:
            clear_live(database)
            queue(database, 20_000)
            self.set_indexes(database, indexes)
            dsn = self.client_dsn(database)
            run_workers("writes", dsn, workers=workers, seconds=1)  # what is read first comes from the disk
            rates = run_workers("writes", dsn, workers=workers, seconds=seconds)
            drained = run_workers("drain", dsn, workers=workers, seconds=seconds)
            rates["claim of 4 and complete, 20,000 queued"] = drained.get("completed", 0.0)
            for kind, rate in rates.items():
                found[indexes].setdefault(kind, []).append(rate)
        for kind, stock in found[STOCK].items():
            self.add(f"{kind}, {workers} workers", finished, None, median(stock), median(found[TUNED][kind]), "/s")

    def add(self, what: str, finished: int, queued: int | None, stock: float, tuned: float, unit: str) -> None:
        """Keep and print one comparison."""
        better = stock / tuned if unit == "ms" else tuned / stock if stock else float("inf")
        row = {
            "what": what,
            "finished": finished,
            "queued": queued,
            "stock": stock,
            "tuned": tuned,
            "unit": unit,
            "ratio": better,
        }
        self.rows.append(row)
        print(
            f"  {what}, {queued if queued is not None else '-'} queued: {stock:.1f} {unit} stock, {tuned:.1f} tuned ({better:.2f} times)",
            flush=True,
        )

    def set_indexes(self, database: Database, which: str) -> None:
        """Have the stock indexes alone, or the operational ones beside them."""
        if which == TUNED:
            database.execute(*(item.statement for item in self.items))
            return
        for item in reversed(self.items):
            if item.hides and not self.stands(database, "ready"):
                continue
            if item.hides:
                database.execute(item.statement.replace("INVISIBLE", "VISIBLE").replace(" IGNORED", " NOT IGNORED"))
            elif self.stands(database, item.name):
                place = "" if self.server.family == "postgresql" else f" ON {EXECUTIONS}"
                database.execute(f"DROP INDEX {item.object}{place}")

    def stands(self, database: Database, name: str) -> bool:
        """Whether the operational index of this name is there."""
        index = next(item.object for item in self.items if item.name == name)
        catalog = (
            "SELECT count(*) FROM pg_indexes WHERE indexname = '{}'"
            if self.server.family == "postgresql"
            else "SELECT count(*) FROM information_schema.statistics WHERE table_schema = DATABASE() AND index_name = '{}'"
        )
        return bool(database.execute(catalog.format(index))[0][0])

    def client_dsn(self, database: Database) -> str:
        """The DSN as onestep takes it."""
        driver = "postgresql+psycopg" if self.server.family == "postgresql" else "mysql+asyncmy"
        return urlsplit(database.dsn)._replace(scheme=driver).geturl()

    def report(self) -> str:
        """Everything as a table in Markdown, with what it was measured on."""
        arguments = self.arguments
        head = f"{self.server.product} {self.server.version}, {platform.machine()} with {cores()} cores, buffer pool {arguments.buffer_pool}"
        head += ", durable, binary log on" if arguments.durable else ", not durable"
        head += f"; tuned: {', '.join(item.name for item in self.items)}; {arguments.tasks} tasks"
        rows = [
            [row["what"], f"{row['finished']:,}", "" if row["queued"] is None else f"{row['queued']:,}",
             f"{row['stock']:,.1f} {row['unit']}", f"{row['tuned']:,.1f} {row['unit']}", f"{row['ratio']:,.2f}"]
            for row in self.rows
        ]  # fmt: skip
        headers = ["", "finished", "queued", "stock", "tuned", "times better"]
        return f"{head}\n\n{tabulate(rows, headers, tablefmt='github', disable_numparse=True, colalign=('left', *['right'] * 5))}"


@contextmanager
def fresh_database(server: Server) -> Iterator[Database]:
    """A database that is gone afterwards."""
    database = Database(server)
    try:
        yield database
    finally:
        database.drop()


def table_bytes(database: Database) -> int:
    """What the executions table and its indexes take."""
    if database.server.family == "postgresql":
        return int(database.execute(f"SELECT pg_total_relation_size('{EXECUTIONS}')")[0][0])
    sql = "SELECT data_length + index_length FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = "
    return int(database.execute(f"{sql}'{EXECUTIONS}'")[0][0])


def numbers(text: str) -> list[int]:
    """Numbers apart by commas."""
    return [int(part.replace("_", "")) for part in text.split(",")]


def cores() -> int:
    """The cores that this process may use."""
    import os

    return len(os.sched_getaffinity(0))


def main() -> None:
    """Start the server, measure, print."""
    parser = argparse.ArgumentParser(
        prog="benchmarks/claims", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--server", default="mysql", choices=DIALECTS)
    parser.add_argument("--finished", default="50000,1000000")
    parser.add_argument("--queued", default="0,200,20000")
    parser.add_argument("--tasks", type=int, default=5)
    parser.add_argument("--expiring", type=float, default=0.0, help="share of rows with an expires_at")
    parser.add_argument("--payload", type=int, default=200, help="characters in each payload, and each result")
    parser.add_argument("--indexes", help="names, apart by commas")
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=10.0, help="0: no throughput")
    parser.add_argument("--rounds", type=int, default=2, help="stock and tuned in turn, so often")
    parser.add_argument("--runs", type=int, default=7, help="claims of each kind")
    parser.add_argument("--buffer-pool", default="64M")
    parser.add_argument("--durable", action="store_true")
    parser.add_argument("--data", type=Path, help="where the server keeps its data; default: a temporary folder")
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="opsctl-claims-", dir=arguments.data) as folder:
        Path(folder).chmod(0o711)
        server = local_server(
            arguments.server,
            Path(folder) / "server",
            options_of(arguments.server, arguments.buffer_pool, durable=arguments.durable),
        )
        server.start()
        try:
            bench = Bench(server, arguments)
            bench.run()
        finally:
            server.discard()
    print("\n" + bench.report())
    if arguments.json:
        arguments.json.write_text(json.dumps(bench.rows, indent=1))
    if arguments.plot:
        arguments.plot.write_text(draw(bench.rows, title=f"{server.product} {server.version}"))
