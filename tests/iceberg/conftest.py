"""The tests of Iceberg: a Spark whose default catalog is an Iceberg catalog (see `make test`)."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support import java
from tests.support.iceberg import SETTINGS, Catalog, drop_tables, is_configured
from tests.support.project import SCHEMA, Project

NUMBERS = itertools.count(1)

# Spark reads its settings when its JVM starts; without Iceberg's settings nothing can be tested.
collect_ignore_glob = [] if is_configured(os.environ) else ["test_*.py"]


@pytest.fixture(scope="session")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    """The folder of the tests' catalog and tables."""
    return Catalog(tmp_path_factory.mktemp("iceberg"))


@pytest.fixture(scope="session")
def spark(catalog: Catalog, warehouse: Path) -> Iterator[SparkSession]:
    """Like the other tests' Spark, with its own catalog."""
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.sql.catalogImplementation", "in-memory")
        .config("spark.sql.warehouse.dir", str(warehouse))
        .config("spark.driver.extraJavaOptions", java.OPTIONS)
        .config(map={SETTINGS + name: value for name, value in catalog.settings.items()})
    )
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture
def project(dbt_project: Project, spark: SparkSession) -> Iterator[Project]:
    """The project without the models of other tests, and with a schema for this test."""
    dbt_project.schema = f"{SCHEMA}_{next(NUMBERS)}"
    yield dbt_project
    dbt_project.clear()
    drop_tables(spark, dbt_project.schema)
