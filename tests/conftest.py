"""One Spark and one dbt project for all functional tests; a schema a test."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.project import SCHEMA, Project, drop_schema

NUMBERS = itertools.count(1)

# PySpark reads and shows a datetime without a zone in the zone of the process.
os.environ["TZ"] = "UTC"
time.tzset()


@pytest.fixture(scope="session")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the tests' tables lie."""
    return tmp_path_factory.mktemp("warehouse")


@pytest.fixture(scope="session")
def spark(warehouse: Path) -> Iterator[SparkSession]:
    """The tests' Spark, with a catalog in memory; dbt takes the session that is there."""
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
def dbt_project(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Project:
    """The one dbt project; use `project`."""
    return Project.create(tmp_path_factory.mktemp("dbt") / "project", spark)


@pytest.fixture
def project(dbt_project: Project, spark: SparkSession, warehouse: Path) -> Iterator[Project]:
    """The project with no model of another test, and a schema of the test's own."""
    dbt_project.schema = f"{SCHEMA}_{next(NUMBERS)}"
    yield dbt_project
    dbt_project.clear()
    drop_schema(spark, dbt_project.schema, warehouse)
