"""What it costs to write rows, beside what a script would use for it: medians and ratios in one run.

    .venv/bin/python benchmarks/formats.py [--rows 10000] [--runs 5]

The script's way keeps neither NULL apart from the empty text (csv), nor JSON's digits (json), nor a terminal from escape
sequences (tabulate). Memory is the peak above the rows themselves.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import statistics
import time
import tracemalloc
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import yaml
from tabulate import tabulate

from opsctl.render import rows as formats
from opsctl.rows import Json, Rows

COLUMNS = ("execution_id", "namespace", "task_name", "status", "attempts", "created_at", "reason", "payload")


def make_rows(count: int) -> Rows:
    """Return rows as a query about executions gives them."""
    start = datetime(2026, 11, 30, tzinfo=UTC)
    return Rows(
        COLUMNS,
        tuple(
            (
                uuid.UUID(int=number),
                "orders",
                "render",
                "succeeded",
                number % 5,
                start + timedelta(seconds=number),
                None if number % 3 else 'no, "not" now',
                Json(json.dumps({"order": number, "text": "naïve 🚀", "parts": [1, 2.5, None]})),
            )
            for number in range(count)
        ),
    )


def plain(rows: Rows) -> list[dict[str, object]]:
    """Return what a script would have after loading the same rows."""
    return [
        dict(
            zip(
                rows.columns,
                (
                    json.loads(v.text) if isinstance(v, Json) else v if isinstance(v, int | None) else str(v)
                    for v in row
                ),
                strict=True,
            )
        )
        for row in rows.rows
    ]


def by_csv(found: list[dict[str, object]]) -> str:
    """Write by the csv module."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, COLUMNS)
    writer.writeheader()
    writer.writerows(found)
    return stream.getvalue()


def measure(write: Callable[[], str], runs: int) -> tuple[float, float]:
    """Return the median of its seconds and the peak of its memory in MiB."""
    took = []
    for _ in range(runs):
        started = time.perf_counter()
        write()
        took.append(time.perf_counter() - started)
    tracemalloc.start()
    write()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return statistics.median(took), peak / 2**20


def main() -> None:
    """Measure each format and its counterpart in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    rows = make_rows(arguments.rows)
    found = plain(rows)
    counterparts: dict[str, tuple[str, Callable[[], str]]] = {
        "json": ("json.dumps", lambda: json.dumps(found, ensure_ascii=False)),
        "yaml": ("yaml.dump, CSafeDumper", lambda: str(yaml.dump(found, Dumper=yaml.CSafeDumper, allow_unicode=True))),
        "csv": ("csv.DictWriter", lambda: by_csv(found)),
        "table": ("tabulate", lambda: tabulate([list(row.values()) for row in found], COLUMNS, disable_numparse=True)),
        "vertical": ("", lambda: ""),
    }
    table = []
    for name, (other, write) in counterparts.items():
        own_s, own_mib = measure(lambda name=name: formats.render_rows(rows, name), arguments.runs)  # type: ignore[misc]
        line = [name, f"{own_s * 1000:.0f}", f"{own_mib:.1f}"]
        if other:
            other_s, other_mib = measure(write, arguments.runs)
            line += [other, f"{other_s * 1000:.0f}", f"{other_mib:.1f}", f"{own_s / other_s:.2f}"]
        table.append(line)
    print(f"{arguments.rows} rows, {arguments.runs} runs, medians, {os.cpu_count()} cores")
    print(tabulate(table, ["format", "ms", "MiB", "beside", "ms", "MiB", "ratio"], disable_numparse=True))


if __name__ == "__main__":
    main()
