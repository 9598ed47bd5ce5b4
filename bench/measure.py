"""Measures one contender once: wall-clock seconds, Delta's metrics, and files on disk."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

from dbt.cli.main import dbtRunner
from pyspark.sql import SparkSession

from tests.support.project import COMPILED, Project

Item = TypeVar("Item")
# Seconds of each round by contender.
Seconds = dict[str, list[float]]

# Java's own compiler and collector, as a server has them. The checkout's options are for processes
# of seconds (docs/decisions/0004).
LONG_LIVED = {"spark.driver.extraJavaOptions": "-Duser.timezone=UTC"}
TICKS = os.sysconf("SC_CLK_TCK")
PRUNING = re.compile(r"\((history\.`_fivetran_end` >= .*? or history\.`_fivetran_end` is null)\)")


@dataclass(frozen=True)
class Statement:
    """A statement that dbt sent, and its duration.

    until_next  seconds until dbt sent the next one: rows fetched, and dbt's own work, included
    """

    sql: str
    seconds: float
    until_next: float = 0.0


@dataclass(frozen=True)
class Sample:
    """`seconds` of the whole, `merge` of its MERGE (None: unknown); bytes without the log."""

    seconds: float
    merge: float | None
    commits: list[Mapping[str, str]]
    files_written: int
    bytes_written: int
    reach: str | None = None
    message: str = ""

    def metric(self, name: str) -> int:
        """The sum of an operation metric over the commits."""
        return sum(int(commit.get(name, 0)) for commit in self.commits)


@dataclass
class Samples:
    """Samples by contender, in the order of the rounds."""

    taken: dict[str, list[Sample]] = field(default_factory=dict)

    def add(self, name: str, sample: Sample) -> None:
        """Add a sample."""
        self.taken.setdefault(name, []).append(sample)

    def median(self, name: str, value: Callable[[Sample], float | None]) -> float | None:
        """The median of `value` over the samples; None if there are none."""
        found = [value(sample) for sample in self.taken.get(name, [])]
        numbers = [number for number in found if number is not None]
        return median(numbers) if numbers else None


@contextmanager
def workspace(name: str) -> Iterator[Path]:
    """A temporary folder for the files of a measurement."""
    folder = Path(tempfile.mkdtemp(prefix=f"dbt_history_{name}_"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def in_turn(items: Iterable[Item], number: int) -> list[Item]:
    """All items, rotated by one in each round."""
    everyone = list(items)
    turn = number % len(everyone)
    return everyone[turn:] + everyone[:turn]


def use_utc() -> None:
    """Set the process's zone to UTC, in which PySpark returns datetimes without a zone."""
    os.environ["TZ"] = "UTC"
    time.tzset()


def start_spark(folder: Path, settings: Mapping[str, str] | None = None) -> SparkSession:
    """Start Spark with an in-memory catalog and tables in `folder`, in UTC, without logging."""
    use_utc()
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.sql.catalogImplementation", "in-memory")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config(map=COMPILED)
        .config(map=dict(settings or {}))
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    return spark


def cpu_seconds(process: int | None = None) -> float:
    """CPU seconds of a process (None: this one) and its descendants so far, user and system."""
    times: dict[int, tuple[int, int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        # Fields 4, 14 to 17 of proc(5): parent, own time, time of children that have ended.
        times[int(stat.parent.name)] = (int(fields[1]), sum(map(int, fields[11:15])))
    total, found = 0, {process or os.getpid()}
    while found:
        total += sum(times[pid][1] for pid in found if pid in times)
        found = {pid for pid, (parent, _) in times.items() if parent in found}
    return total / TICKS


def plain_project(
    folder: Path, spark: SparkSession, targets: Mapping[str, Any] | None = None
) -> Project:
    """A dbt project without the package's fixes for dbt-spark."""
    project = Project.create(folder, spark, targets)
    settings = project.path / "dbt_project.yml"
    plain = json.loads(settings.read_text())
    plain.pop("dispatch")
    settings.write_text(json.dumps(plain))
    return project


def say(text: str) -> None:
    """Print a progress message with the time of day."""
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def interleaved(
    work: Mapping[str, Callable[[], object]],
    repeats: int,
    before: Callable[[int], object] = lambda number: None,
) -> Seconds:
    """Seconds of each contender in turn, in another order each round; `before` prepares its input.

    The first round, number 0, warms up and is not kept.
    """
    seconds: Seconds = {name: [] for name in work}
    for number in range(repeats + 1):
        before(number)
        for name in in_turn(work, number):
            began = time.perf_counter()
            work[name]()
            if number:
                seconds[name].append(time.perf_counter() - began)
    return seconds


def counted(
    spark: SparkSession, source: str, cells: str = "count(*), sum(amount), max(name)"
) -> Callable[[], object]:
    """A query that must read all rows but returns few."""
    query = f"select {cells} from {source}"
    return lambda: spark.sql(query).collect()


def in_short(seconds: Seconds) -> str:
    """The medians on one line."""
    return ", ".join(f"{name} {median(values):.2f}" for name, values in seconds.items())


def data_files(folder: Path) -> dict[str, int]:
    """Sizes of the table's data and deletion-vector files by path."""
    return {
        str(path.relative_to(folder)): path.stat().st_size
        for path in folder.rglob("*")
        if path.is_file() and "_delta_log" not in path.parts and path.suffix != ".crc"
    }


def log_files(folder: Path) -> int:
    """The number of commits in the table's log."""
    return len(list((folder / "_delta_log").glob("*[0-9].json")))


def quoted(table: str) -> str:
    """Quote the name: `history` is a keyword in Delta's commands."""
    return ".".join(f"`{part}`" for part in table.split("."))


def new_commits(spark: SparkSession, table: str, known: int) -> list[Mapping[str, str]]:
    """Operation metrics of the commits after the first `known` ones."""
    rows = spark.sql(f"describe history {quoted(table)}").collect()
    return [row["operationMetrics"] or {} for row in rows if row["version"] >= known]


def measured(
    spark: SparkSession,
    table: str,
    folder: Path,
    work: Callable[[], tuple[float | None, str | None, str]],
) -> Sample:
    """Do the work (returns seconds of its merge, its predicate, a message) and record its cost."""
    files, commits = data_files(folder), log_files(folder)
    began = time.perf_counter()
    merge, reach, message = work()
    seconds = time.perf_counter() - began
    after = data_files(folder)
    written = {name: size for name, size in after.items() if name not in files}
    return Sample(
        seconds,
        merge,
        new_commits(spark, table, commits),
        len(written),
        sum(written.values()),
        reach,
        message,
    )


def run_dbt(project: Project, *arguments: str) -> tuple[list[Statement], str]:
    """Run a dbt command in this process; returns its statements and the node's message."""
    sent: list[tuple[str, float]] = []
    elapsed: dict[int, float] = {}

    def listen(event: Any) -> None:
        if event.info.name == "SQLQuery":
            sent.append((event.data.sql, time.perf_counter()))
        elif event.info.name == "SQLQueryStatus" and sent:
            elapsed[len(sent) - 1] = float(event.data.elapsed)

    path = str(project.path)
    places = ("--project-dir", path, "--profiles-dir", path)
    outputs = ("--log-path", f"{path}/logs", "--target-path", f"{path}/target", "--quiet")
    done = dbtRunner(callbacks=[listen]).invoke([*arguments, *places, *outputs])
    results = getattr(done.result, "results", None) or []
    messages = [str(result.message) for result in results]
    if not done.success:
        raise RuntimeError(f"dbt {' '.join(arguments)} failed: {done.exception} {messages}")
    ends = [began for _, began in sent[1:]] + [time.perf_counter()]
    statements = [
        Statement(sql, elapsed[place], ends[place] - began)
        for place, (sql, began) in enumerate(sent)
        if place in elapsed
    ]
    return statements, "; ".join(messages)


def dbt_work(
    project: Project, command: str, node: str
) -> Callable[[], tuple[float | None, str | None, str]]:
    """`dbt run` or `dbt snapshot` of one node, with its MERGE measured separately."""

    def work() -> tuple[float | None, str | None, str]:
        statements, message = run_dbt(project, command, "--select", node)
        merges = [one for one in statements if re.search(r"\bmerge into\b", one.sql, re.IGNORECASE)]
        found = PRUNING.search(merges[0].sql) if merges else None
        reach = found[1] if found else None
        return sum(one.seconds for one in merges) if merges else None, reach, message

    return work


def sql_work(
    spark: SparkSession, statements: Iterable[str]
) -> Callable[[], tuple[float | None, str | None, str]]:
    """Statements in sequence, each in its own commit."""

    def work() -> tuple[float | None, str | None, str]:
        for statement in statements:
            spark.sql(statement).collect()
        return None, None, ""

    return work


def kept_files(spark: SparkSession, table: str, version: int, reach: str) -> tuple[list[str], int]:
    """Files of a table version that the merge's predicate keeps, and the number of all files."""
    whole = spark.sql(f"select * from {table} version as of {version} as history")
    return list(whole.where(reach.replace("history.", "")).inputFiles()), len(whole.inputFiles())
