"""One Spark and one dbt project for all functional tests; one schema per test."""

from __future__ import annotations

import gc
import itertools
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.connect.dataframe import DataFrame

from scripts.cluster import Cluster
from scripts.spark_settings import ONE_TASK
from tests.support import connect, java, thrift
from tests.support.project import COMPILED, SCHEMA, Project, drop_schema
from tests.support.rendering import Renderer, renderer
from tests.support.selection import IS_ALL

NUMBERS = itertools.count(1)
# A file runs in one process. These take longest and start first, so that no process is left with
# one of them at the end.
LONGEST = [
    "conformance/test_feature_scenarios.py",
    "conformance/test_hx_mirror.py",
    "functional/test_exactly_once.py",
    "conformance/test_validity.py",
    "conformance/test_events.py",
    "functional/test_history_batch.py",
    "conformance/test_feature_states.py",
    "functional/test_changes.py",
    "functional/test_history.py",
    "functional/test_maintain.py",
    "functional/test_past_days.py",
    "functional/test_cluster.py",
    "functional/test_landing.py",
    "property/test_history_batch.py",
    "functional/test_serve.py",
    "functional/test_history_append.py",
    "functional/test_adopt.py",
    "conformance/test_auto_cdc.py",
    "functional/test_late_events.py",
]

# Each run of dbt reads its manifest, some 100,000 objects that stay. With Python's default the
# collector of garbage follows all of them several times in each run: half of dbt's own CPU time.
gc.set_threshold(100_000, 20, 100)

# PySpark reads and shows a datetime without a zone in the zone of the process.
os.environ["TZ"] = "UTC"
time.tzset()


# The settings of the checkout's own Spark (docs/decisions/0004, 0096), for a cluster's.
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    **{name: str(value) for name, value in ONE_TASK.items()},
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--on-cluster",
        choices=["thrift", "connect"],
        help="run dbt on a cluster of processes, over a thrift server or Spark Connect",
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def place(item: pytest.Item) -> int:
        name = "/".join(item.path.parts[-2:])
        return LONGEST.index(name) if name in LONGEST else len(LONGEST)

    items.sort(key=place)


def way_to_cluster(request: pytest.FixtureRequest) -> str | None:
    """How dbt reaches the cluster; None if dbt uses the session of this process."""
    way: str | None = request.config.getoption("--on-cluster")
    return way


@pytest.fixture(scope="session")
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """A cluster with its own folder and ports, started for the tests that use it.

    In `make test` it is only a server, without a master and workers.
    """
    folder = tmp_path_factory.mktemp("cluster")
    is_whole = IS_ALL or way_to_cluster(request) is not None
    cluster = Cluster(folder, {} if IS_ALL else INTERPRETED, "" if is_whole else java.QUICK)
    cluster.start(workers=1 if is_whole else 0)
    yield cluster
    cluster.stop()


@pytest.fixture(scope="session")
def warehouse(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the tests' tables."""
    if way_to_cluster(request):
        cluster: Cluster = request.getfixturevalue("cluster")
        return cluster.warehouse
    return tmp_path_factory.mktemp("warehouse")


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest, warehouse: Path) -> Iterator[SparkSession]:
    """The tests' Spark, with an in-memory catalog; dbt uses the active session.

    With `--on-cluster`, a session of Spark Connect; over thrift, dbt opens its own connections.
    """
    if way := way_to_cluster(request):
        remote = connect.start_session(request.getfixturevalue("cluster"))
        with pytest.MonkeyPatch.context() as patch:
            if way == "thrift":
                patch.setattr(DataFrame, "createOrReplaceTempView", connect.create_shared_view)
            yield remote
        remote.stop()
        return
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.sql.catalogImplementation", "in-memory")
        .config("spark.sql.warehouse.dir", str(warehouse))
        .config("spark.driver.extraJavaOptions", java.OPTIONS)
        # With every variant the tests compile statements, of several tasks each.
        .config(map=COMPILED if IS_ALL else ONE_TASK)
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="module")
def call() -> Renderer:
    """Calls macros of the package without a database; it finds no relations."""
    return renderer()


@pytest.fixture(scope="session")
def dbt_project(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, spark: SparkSession
) -> Project:
    """The one dbt project; use `project`."""
    targets = None
    if way := way_to_cluster(request):
        cluster: Cluster = request.getfixturevalue("cluster")
        ways = {"thrift": thrift.profile, "connect": connect.profile}
        targets = {way: ways[way](cluster, SCHEMA)}
    return Project.create(tmp_path_factory.mktemp("dbt") / "project", spark, targets)


@pytest.fixture
def project(dbt_project: Project, spark: SparkSession, warehouse: Path) -> Iterator[Project]:
    """The project without the models of other tests, and with a schema for this test."""
    dbt_project.schema = f"{SCHEMA}_{next(NUMBERS)}"
    yield dbt_project
    dbt_project.clear()
    drop_schema(spark, dbt_project.schema, warehouse)
