"""Measures landing, compared with `spark.read.csv`, and from files to a tested history table.

Writes docs/measured_landing.md: rows and MB per second, and the peak memory of Java and of the
Python workers.

    bench/landing.py [--megabytes 1000] [--files 8] [--rows 10000000] [--history-files 100]
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.measure import LONG_LIVED, start_spark
from bench.report import write_page
from dbt_history.landing import LandingTable, land, read_request
from dbt_history.landing.writer import RequestWriter, csv_text
from tests.support.processes import descendants
from tests.support.project import ROOT, Project

REPORT = ROOT / "docs" / "measured_landing.md"
START, END = "2024-01-01T00:00:00.123456789Z", "9999-12-31T23:59:59.999Z"
COLUMNS = {
    "id": "LONG",
    "name": "STRING",
    "note": "STRING",
    "price": ("DECIMAL", 18, 4),
    "weight": "DOUBLE",
    "day": "NAIVE_DATE",
    "_fivetran_start": "UTC_DATETIME",
    "_fivetran_end": "UTC_DATETIME",
    "_fivetran_active": "BOOLEAN",
    "_fivetran_synced": "UTC_DATETIME",
}
SPARK_SCHEMA = (
    "id bigint, name string, note string, price decimal(18,4), weight double, day date,"
    " _fivetran_start timestamp, _fivetran_end timestamp, _fivetran_active boolean,"
    " _fivetran_synced timestamp"
)
MEGABYTE = 1 << 20


@dataclass(frozen=True)
class Result:
    """One measured run: seconds, and the peak resident memory in MB."""

    name: str
    rows: int
    seconds: float
    java: int
    worker: int


def rows(first: int, count: int) -> list[list[str]]:
    r = random.Random(first)
    return [
        [
            str(number), f"name {r.getrandbits(40):x}", f'a "note", {r.getrandbits(80):x}',
            f"{r.getrandbits(40) / 10_000:.4f}", repr(r.uniform(0, 1000)), "2024-02-29",
            START, END, "true", "2024-01-02T00:00:00Z",
        ]
        for number in range(first, first + count)
    ]  # fmt: skip


def write_files(folder: Path, count: int, files: int, distinct: int) -> tuple[Path, int]:
    """A request of `files` compressed, encrypted files, and the same rows as plain files.

    Of the about `count` rows in all a file has no more than `distinct` different ones.
    """
    writer = RequestWriter(folder / "request", COLUMNS, compression="ZSTD", is_encrypted=True)
    distinct = min(distinct, count // files)
    repeats = count // files // distinct
    (folder / "plain").mkdir(parents=True)
    for number in range(files):
        head = csv_text(tuple(COLUMNS), [])
        block = csv_text(tuple(COLUMNS), rows(number * distinct, distinct)).removeprefix(head)
        data = head + block * repeats
        (folder / "plain" / f"{number}.csv").write_bytes(data)
        writer.add("upsert", f"{number}.csv.zst.aes", data)
    return writer.write(), distinct * repeats * files


def row_size() -> float:
    """Size of a row as CSV in bytes."""
    return len(csv_text(tuple(COLUMNS), rows(0, 1000))) / 1000


def memory(process: int) -> int:
    """Resident memory of a process in MB; 0 if it has ended."""
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") // MEGABYTE


@contextmanager
def watched() -> Iterator[dict[str, int]]:
    """The peak memory of Java and of any Python worker while the block runs."""
    peak = {"java": 0, "python": 0}
    finished = threading.Event()

    def watch() -> None:
        while not finished.wait(0.3):
            for process, name in descendants(os.getpid()).items():
                kind = "java" if name.startswith("java") else "python"
                peak[kind] = max(peak[kind], memory(process))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield peak
    finally:
        finished.set()
        watcher.join()


def measure(name: str, count: int, work: Callable[[], object]) -> Result:
    with watched() as peak:
        started = time.monotonic()
        work()
        seconds = time.monotonic() - started
    print(f"{name}: {seconds:.1f} s", flush=True)
    return Result(name, count, seconds, peak["java"], peak["python"])


def plain_files(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.read.csv(
        str(folder / "plain"), SPARK_SCHEMA, header=True, quote='"', escape='"', multiLine=True
    )


def run(folder: Path, megabytes: int, files: int) -> list[Result]:
    spark = start_spark(folder, LONG_LIVED)
    request, count = write_files(folder, int(megabytes * MEGABYTE / row_size()), files, 20_000)

    def landing(name: str, path: Path) -> Callable[[], object]:
        table = LandingTable(spark, "bench", name)
        return lambda: land(spark, read_request(path), path.parent, table)

    def plain(name: str) -> Callable[[], object]:
        read = plain_files(spark, folder)
        return lambda: read.write.format("delta").saveAsTable(f"bench.{name}")

    # Warm up both with little data, to exclude the start of Java and the workers.
    warm, _ = write_files(folder / "warm", 1000, 2, 1000)
    landing("warm", warm)()
    spark.read.csv(str(folder / "warm/plain"), SPARK_SCHEMA).write.format("delta").saveAsTable(
        "bench.warm_plain"
    )
    return [
        measure("`dbt-history land`, zstd and AES", count, landing("landed", request)),
        measure("`spark.read.csv`, plain files", count, plain("plain")),
    ]


def from_files_to_history(folder: Path, count: int, files: int) -> list[Result]:
    """Make a history table of one batch of upserts; and by a MERGE of the same rows, plain."""
    spark = start_spark(folder, LONG_LIVED)
    path, number = write_files(folder / "history", count, files, count)
    table = LandingTable(spark, "bench", "items_landing")
    project = Project.create(folder / "project", spark)
    project.schema = "tests_bench"
    project.history("items", f"select * from {table.full_name}")
    columns = ", ".join(f"{name}" for name in COLUMNS)
    spark.sql(f"create table bench.merged ({SPARK_SCHEMA}) using delta")

    def merge() -> None:
        plain_files(spark, folder / "history").createOrReplaceTempView("plain")
        spark.sql(
            f"merge into bench.merged as history using (select {columns} from plain) as versions"
            " on history.id = versions.id and history._fivetran_start = versions._fivetran_start"
            " when matched then update set * when not matched then insert *"
        )

    landed = measure(
        "files → landing table", number, lambda: land(spark, read_request(path), path.parent, table)
    )
    applied = measure("landing table → history", number, lambda: project.run("items"))
    return [
        both("files → landing table → history", landed, applied),
        landed,
        applied,
        measure("`spark.read.csv` of plain files → `MERGE`", number, merge),
    ]


def both(name: str, first: Result, second: Result) -> Result:
    """Two works, one after the other."""
    return Result(
        name,
        first.rows,
        first.seconds + second.seconds,
        max(first.java, second.java),
        max(first.worker, second.worker),
    )


def worker(result: Result) -> str:
    # Plain CSV is read by Java only, without Python workers.
    return "–" if "spark.read" in result.name else f"{result.worker:,}"


def report(results: list[Result], options: argparse.Namespace) -> str:
    lines = [
        "# Measured: landing",
        "",
        f"Written by `bench/landing.py` on {os.cpu_count()} cores, Spark with two parallel tasks.",
        "One run each; other work may have run on the machine. Ten columns: an integer, strings",
        "with quotes and commas, decimal, double, date, times. The first two rows of the table:",
        f"{options.megabytes:,} MB of CSV in {options.files} files, written to Delta. Landing",
        "reads them compressed and encrypted, `spark.read.csv` uncompressed (with `multiLine`, for",
        "line breaks in cells); each file repeats 20,000 different rows. The other rows: from",
        f"{options.history_files} files, whose rows all differ, to a history table of one batch in",
        "one commit, and its two parts; beside it one `MERGE` of the plain files by key and start",
        "into an empty table. Memory is the maximum resident size, of Java and of one Python",
        "worker.",
        "",
        "| | rows | seconds | rows per second | Java MB | worker MB |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for result in results:
        lines.append(
            f"| {result.name} | {result.rows:,} | {result.seconds:.1f}"
            f" | {result.rows / result.seconds:,.0f} | {result.java:,} | {worker(result)} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--megabytes", type=int, default=1000, help="CSV before compression")
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--rows", type=int, default=10_000_000, help="of the history table")
    parser.add_argument("--history-files", type=int, default=100, help="of the history table")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="bench_landing_"))
    try:
        results = run(folder, options.megabytes, options.files)
        results += from_files_to_history(folder, options.rows, options.history_files)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    write_page(REPORT, report(results, options))
    print(REPORT.read_text())


if __name__ == "__main__":
    main()
