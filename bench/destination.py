"""Measures a destination over many batches of one history table: seconds, memory, files.

Starts `dbt-history serve` in its own process and sends batches that change records over gRPC:
encrypted CSV files, compressed with ZSTD. Writes docs/measured_destination.md and keeps its notes.

    bench/destination.py [--batches 2000] [--rows 100] [--keys 2000] [--compact-every 100]
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.measure import LONG_LIVED, cpu_seconds
from bench.report import NOTES, machine, markdown_table
from dbt_history.landing.writer import RequestWriter
from tests.support.landing import COLUMNS, END, HEADER
from tests.support.processes import java_of, start_python
from tests.support.project import ROOT
from tests.support.writer import Client, history_batch

REPORT = ROOT / "docs" / "measured_destination.md"
PARTS = 10
MB = 1 << 20
TITLES = (
    *("batches", "seconds, median", "seconds, largest", "CPU seconds per batch"),
    *("MB, Python", "MB, JVM"),
    *("files of the table", "files of the landing table", "commits in the log"),
)


@dataclass(frozen=True)
class Part:
    """A tenth of the batches, and the state after it; `cpu` seconds of the server for all of it."""

    last: int
    seconds: list[float]
    cpu: float
    python: int
    java: int
    files: tuple[int, int]
    commits: int

    def row(self) -> tuple[str, ...]:
        first = self.last - len(self.seconds) + 1
        return (
            f"{first:,} – {self.last:,}",
            f"{median(self.seconds):.2f}",
            f"{max(self.seconds):.2f}",
            f"{self.cpu / len(self.seconds):.2f}",
            f"{self.python / MB:.0f}",
            f"{self.java / MB:.0f}",
            *(f"{count:,}" for count in self.files),
            f"{self.commits:,}",
        )


def resident(process: int) -> int:
    """Resident memory of a process in bytes."""
    status = Path(f"/proc/{process}/status").read_text()
    found = re.search(r"^VmRSS:\s+(\d+) kB", status, re.M)
    return int(found[1]) * 1024 if found else 0


def files_in(folder: Path) -> int:
    """The data files in a folder and its partitions, also those of earlier versions only."""
    return sum("_delta_log" not in path.parts for path in folder.rglob("*.parquet"))


def request(root: Path, number: int, rows: int, keys: int) -> RequestWriter:
    """Batch `number`: a new version of `rows` of the keys, chosen in turn."""
    folder = root / f"batch_{number}"
    writer = RequestWriter(
        root, COLUMNS, schema="bench", table="items", compression="ZSTD", is_encrypted=True
    )
    start = (datetime(2024, 1, 1, tzinfo=UTC) + timedelta(minutes=number)).isoformat()
    start = start.replace("+00:00", "Z")
    chosen = [str((number * rows + place) % keys) for place in range(rows)]
    cells = [[key, f"name {number}", f"{number}.5", start, END, "true"] for key in chosen]
    earliest = [[key, start] for key in chosen]
    writer.add_csv("earliest_start", f"{folder.name}_e", ["id", "_fivetran_start"], earliest)
    writer.add_csv("upsert", f"{folder.name}_u", HEADER, cells)
    return writer


def measure(options: argparse.Namespace, folder: Path) -> list[Part]:
    for name in ("batches", "spark", "warehouse"):
        (folder / name).mkdir()
    arguments = [str(folder / name) for name in ("warehouse", "batches", "spark")]
    more = ["--compact-every", str(options.compact_every)]
    os.environ["JAVA_OPTIONS"] = LONG_LIVED["spark.driver.extraJavaOptions"]
    process, line = start_python("tests.support.run_serve", *arguments, *more, ready="serving at ")
    try:
        client = Client.at(int(line.rsplit(":", 1)[1]))
        java = java_of(process.pid)
        parts, seconds, cpu = [], [], cpu_seconds(process.pid)
        size = max(1, options.batches // PARTS)
        for number in range(1, options.batches + 1):
            writer = request(folder / "batches", number, options.rows, options.keys)
            began = time.monotonic()
            answer = client.call("WriteHistoryBatch", history_batch(writer))
            seconds.append(time.monotonic() - began)
            if not answer.success:
                raise SystemExit(f"batch {number}: {answer}")
            if number % size == 0 or number == options.batches:
                table = folder / "warehouse/bench.db/items"
                landing = table.with_name("items__landing")
                commits = sum(1 for _ in (table / "_delta_log").glob("*.json"))
                parts.append(
                    Part(
                        number,
                        seconds,
                        cpu_seconds(process.pid) - cpu,
                        resident(process.pid),
                        resident(java),
                        (files_in(table), files_in(landing)),
                        commits,
                    )
                )
                print("  ".join(parts[-1].row()), flush=True)
                seconds, cpu = [], cpu_seconds(process.pid)
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
    return parts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=2000)
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--keys", type=int, default=2000)
    parser.add_argument("--compact-every", type=int, default=100)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="dbt_history_bench_") as folder:
        parts = measure(options, Path(folder))
    notes = REPORT.read_text().partition(NOTES)[2] if REPORT.exists() else "\n"
    table = markdown_table(TITLES, [part.row() for part in parts])
    REPORT.write_text(f"{text(options)}\n{table}\n\n{NOTES}{notes}")


def text(options: argparse.Namespace) -> str:
    keys, rows, every = options.keys, options.rows, options.compact_every
    return f"""# Measured: many batches through the destination

Written by `bench/destination.py` on a machine with {machine()}. One history table of {keys:,}
records; each batch is one `WriteHistoryBatch` that changes {rows:,} of them, with two encrypted CSV
files; a compaction after every {every:,} batches. Java has its own compiler and collector, as in a
server. CPU seconds are those of the server with its Java, compactions included. Files are those on
disk, including those that only earlier versions need.
"""


if __name__ == "__main__":
    main()
