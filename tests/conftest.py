"""One Spark and one dbt project for all functional tests; a schema a test."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from scripts.cluster import Cluster
from tests.support.project import SCHEMA, Project, drop_schema
from tests.support.thrift import ThriftSpark, profile

NUMBERS = itertools.count(1)

# PySpark reads and shows a datetime without a zone in the zone of the process.
os.environ["TZ"] = "UTC"
time.tzset()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--on-cluster",
        action="store_true",
        help="run dbt over a thrift server of processes, and look at its tables through it",
    )


def is_on_cluster(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--on-cluster"))


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster of processes with a folder and ports of its own, for the tests that ask for it."""
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    cluster.start()
    yield cluster
    cluster.stop()


@pytest.fixture(scope="session")
def warehouse(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the tests' tables lie."""
    if is_on_cluster(request):
        cluster: Cluster = request.getfixturevalue("cluster")
        return cluster.warehouse
    return tmp_path_factory.mktemp("warehouse")


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest, warehouse: Path) -> Iterator[SparkSession]:
    """The tests' Spark, with a catalog in memory; dbt takes the session that is there.

    With `--on-cluster` a connection to the thrift server, which does what the tests need of it.
    """
    if is_on_cluster(request):
        reader = ThriftSpark(request.getfixturevalue("cluster"))
        yield reader  # type: ignore[misc]
        reader.stop()
        return
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.sql.catalogImplementation", "in-memory")
        .config("spark.sql.warehouse.dir", str(warehouse))
        # A long-lived process: unlike a build, it gains from the slower, better compiler.
        .config("spark.driver.extraJavaOptions", "-XX:+UseSerialGC -Duser.timezone=UTC")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def dbt_project(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, spark: SparkSession
) -> Project:
    """The one dbt project; use `project`."""
    targets = None
    if is_on_cluster(request):
        cluster: Cluster = request.getfixturevalue("cluster")
        targets = {"thrift": profile(cluster.thrift_port, SCHEMA)}
    return Project.create(tmp_path_factory.mktemp("dbt") / "project", spark, targets)


@pytest.fixture
def project(dbt_project: Project, spark: SparkSession, warehouse: Path) -> Iterator[Project]:
    """The project with no model of another test, and a schema of the test's own."""
    dbt_project.schema = f"{SCHEMA}_{next(NUMBERS)}"
    yield dbt_project
    dbt_project.clear()
    drop_schema(spark, dbt_project.schema, warehouse)
