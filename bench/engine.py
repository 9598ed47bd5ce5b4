"""Engines that run the same batches: a session, clusters of processes, a session on Iceberg.

Each runs in a separate process with its own Spark, so that all run at once and take turns:

    round 1    session   cluster_1   cluster_2   iceberg
    round 2    cluster_1   cluster_2   iceberg   session
"""

from __future__ import annotations

import json
import multiprocessing
import os
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any

from pyarrow import parquet
from pyspark.sql import SparkSession

from bench.measure import data_files, dbt_work, plain_project, start_spark, use_utc
from bench.tables import INPUT, LAST, Warehouse
from scripts.cluster import HOST, JAVA, Cluster
from tests.support.iceberg import SETTINGS, Catalog
from tests.support.project import ROOT, SCHEMA, Project
from tests.support.thrift import profile

OUTPUT = f"{SCHEMA}_bench"
# The settings of a cluster's processes, with the web page that has the counters.
WITH_PAGE = {
    "spark.driver.extraJavaOptions": JAVA,
    "spark.ui.enabled": "true",
    "spark.ui.port": "0",
}
SEARCHED = ("id", "_fivetran_start", "_fivetran_end")
NAMES = ("session", "cluster_1", "cluster_2", "iceberg")


@dataclass(frozen=True)
class Cost:
    """A batch: seconds of the whole `dbt run` and of its MERGE; files and bytes without the log.

    `tasks`, `shuffled` (bytes) and `busy` (seconds of all tasks) are Spark's own counters.
    """

    seconds: float
    merge: float
    files_written: int
    bytes_written: int
    tasks: int
    shuffled: int
    busy: float


@dataclass(frozen=True)
class Size:
    """A table's data files and their bytes; `searched`: bytes of the open rows' key and period.

    These columns are what a MERGE has to look through to find the rows of a batch on time.
    """

    files: int
    bytes: int
    searched: int


class Page:
    """The counters of an application in Spark's REST API."""

    def __init__(self, address: str) -> None:
        with urllib.request.urlopen(f"{address}/api/v1/applications", timeout=30) as answer:
            self.address = f"{address}/api/v1/applications/{json.load(answer)[0]['id']}"

    def stages(self) -> dict[int, Mapping[str, Any]]:
        """The last attempt of each stage by stage id."""
        with urllib.request.urlopen(f"{self.address}/stages", timeout=30) as answer:
            found = sorted(json.load(answer), key=lambda one: one["attemptId"])
        return {one["stageId"]: one for one in found}

    def newest(self) -> int:
        """The id of the newest stage; -1 if there is none."""
        return max(self.stages(), default=-1)

    def since(self, newest: int) -> list[Mapping[str, Any]]:
        """The stages with greater ids."""
        return [one for number, one in self.stages().items() if number > newest]


class Engine:
    """A Spark with history tables, and a dbt project with a model for each of them."""

    def __init__(self, warehouse: Warehouse, project: Project, page: Page) -> None:
        self.warehouse, self.project, self.page = warehouse, project, page
        self.keys: dict[str, int] = {}
        project.schema = OUTPUT
        warehouse.drop(INPUT, OUTPUT)

    def create(self, name: str, versions: int, versions_a_key: int, rows_a_file: float) -> Size:
        """Create a history table with dbt and fill it with Spark."""
        config = {"file_format": "iceberg"} if self.warehouse.format == "iceberg" else {}
        self.project.history(name, f"select * from {INPUT}.{name} {LAST}", config=config)
        self.warehouse.stage_nothing(f"{INPUT}.{name}")
        dbt_work(self.project, "run", name)()
        self.keys[name] = versions // versions_a_key
        table = f"{OUTPUT}.{name}"
        self.warehouse.fill_history(table, self.keys[name], versions_a_key, rows_a_file)
        files = self._files(name)
        folder = self.warehouse.folder(table)
        opened = [folder / path for path in files if "_fivetran_active=true" in path]
        return Size(len(files), sum(files.values()), sum(map(_searched, opened)))

    def batch(self, name: str, number: int, late: bool, times: int = 1) -> Cost:
        """Stage a batch of 500 × `times` keys and run the model."""
        self.warehouse.stage(f"{INPUT}.{name}", self.keys[name], number, late, times)
        before, newest = self._files(name), self.page.newest()
        began = time.perf_counter()
        merge, _, _ = dbt_work(self.project, "run", name)()
        seconds = time.perf_counter() - began
        if merge is None:
            raise RuntimeError("the run sent no MERGE")
        written = {path: size for path, size in self._files(name).items() if path not in before}
        stages = self.page.since(newest)
        return Cost(
            seconds,
            merge,
            len(written),
            sum(written.values()),
            sum(one["numCompleteTasks"] for one in stages),
            sum(one["shuffleWriteBytes"] for one in stages),
            sum(one["executorRunTime"] for one in stages) / 1000,
        )

    def rows(self, name: str) -> tuple[int, int]:
        """Number of rows and open rows, to compare the engines' results."""
        query = f"select count(*), count_if(_fivetran_active) from {OUTPUT}.{name}"
        found = self.warehouse.spark.sql(query).collect()[0]
        return int(found[0]), int(found[1])

    def _files(self, name: str) -> dict[str, int]:
        return {
            path: size
            for path, size in data_files(self.warehouse.folder(f"{OUTPUT}.{name}")).items()
            if not path.startswith("metadata/")
        }


def _searched(file: Path) -> int:
    """Compressed bytes of the columns in the MERGE's condition, from the file's footer."""
    footer = parquet.read_metadata(file)
    columns = (
        footer.row_group(group).column(place)
        for group in range(footer.num_row_groups)
        for place in range(footer.num_columns)
    )
    return sum(one.total_compressed_size for one in columns if one.path_in_schema in SEARCHED)


@contextmanager
def _session(folder: Path) -> Iterator[Engine]:
    spark = start_spark(folder, WITH_PAGE)
    project = plain_project(folder / "project", spark)
    yield Engine(Warehouse(spark, folder / "warehouse"), project, Page(_address(spark)))
    spark.stop()


@contextmanager
def _iceberg(folder: Path) -> Iterator[Engine]:
    os.environ["SPARK_CONF_DIR"] = str(ROOT / ".state" / "conf_iceberg")
    catalog = Catalog(folder)
    places = {SETTINGS + name: value for name, value in catalog.settings.items()}
    spark = start_spark(folder, WITH_PAGE | places)
    # Write the number of files that the load requests, as Delta does.
    spark.conf.set("spark.sql.iceberg.distribution-mode", "none")
    project = plain_project(folder / "project", spark)
    warehouse = Warehouse(spark, folder / "tables", "iceberg")
    yield Engine(warehouse, project, Page(_address(spark)))
    spark.stop()


@contextmanager
def _cluster(folder: Path, executors: int) -> Iterator[Engine]:
    """dbt over thrift; the tables are created over Connect."""
    use_utc()
    cluster = Cluster(folder / "cluster")
    cluster.start(workers=executors, cores=2)
    try:
        spark = SparkSession.builder.remote(cluster.remote).getOrCreate()
        targets = {"thrift": profile(cluster, SCHEMA)}
        project = plain_project(folder / "project", spark, targets)
        page = Page(f"http://{HOST}:{cluster.record()['ports']['driver_ui']}")
        yield Engine(Warehouse(spark, cluster.warehouse), project, page)
        spark.stop()
    finally:
        cluster.stop()


def _address(spark: SparkSession) -> str:
    address = spark.sparkContext.uiWebUrl
    if address is None:
        raise RuntimeError("Spark has no page")
    return str(address)


def _start(name: str, folder: Path) -> Any:
    if name.startswith("cluster_"):
        return _cluster(folder, int(name.removeprefix("cluster_")))
    return {"session": _session, "iceberg": _iceberg}[name](folder)


def _serve(name: str, folder: Path, line: Connection) -> None:
    """In the engine's process: serve requests from the connection until it sends None."""
    folder.mkdir(parents=True)
    with _start(name, folder) as engine:
        line.send(None)
        while asked := line.recv():
            method, arguments = asked
            line.send(getattr(engine, method)(*arguments))


class Remote:
    """An engine in a separate process."""

    def __init__(self, name: str, folder: Path) -> None:
        # Not a fork, which would share the parent's JVM; settings are read when the JVM starts.
        context = multiprocessing.get_context("spawn")
        self.line, other = context.Pipe()
        self.process = context.Process(target=_serve, args=(name, folder, other))
        self.process.start()
        other.close()
        self._answer()

    def create(self, name: str, versions: int, versions_a_key: int, rows_a_file: float) -> Size:
        found: Size = self._ask("create", name, versions, versions_a_key, rows_a_file)
        return found

    def batch(self, name: str, number: int, late: bool, times: int = 1) -> Cost:
        found: Cost = self._ask("batch", name, number, late, times)
        return found

    def rows(self, name: str) -> tuple[int, int]:
        found: tuple[int, int] = self._ask("rows", name)
        return found

    def close(self) -> None:
        """End the engine and all its processes."""
        if self.process.is_alive():
            self.line.send(None)
        self.process.join()

    def _ask(self, method: str, *arguments: object) -> Any:
        self.line.send((method, arguments))
        return self._answer()

    def _answer(self) -> Any:
        try:
            return self.line.recv()
        except EOFError:
            self.process.join()
            raise RuntimeError(f"an engine has ended with {self.process.exitcode}") from None


def check_same_rows(up: Mapping[str, Remote], name: str) -> None:
    """Raises RuntimeError if the engines' tables differ in their numbers of rows."""
    ends = {engine: one.rows(name) for engine, one in up.items()}
    if len(set(ends.values())) > 1:
        raise RuntimeError(f"the engines end with different rows: {ends}")


def middle(costs: Sequence[Cost], name: str) -> float:
    """The median of one cost."""
    return float(median(getattr(cost, name) for cost in costs))


@contextmanager
def engines(names: tuple[str, ...], folder: Path) -> Iterator[dict[str, Remote]]:
    """Start the engines, each in its own process."""
    up: dict[str, Remote] = {}
    try:
        for name in names:
            up[name] = Remote(name, folder / name)
        yield up
    finally:
        for one in up.values():
            one.close()
