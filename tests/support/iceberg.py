"""The Iceberg catalog of the tests, and the batch records in its tables."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tests.support.processes import start

SETTINGS = "spark.sql.catalog.iceberg."


def is_configured(environment: Mapping[str, str]) -> bool:
    """Whether Spark, started with these variables, has an Iceberg catalog."""
    defaults = Path(environment.get("SPARK_CONF_DIR", "")) / "spark-defaults.conf"
    return defaults.is_file() and SETTINGS in defaults.read_text()


@dataclass(frozen=True)
class Catalog:
    """A catalog in SQLite, which processes can share, and its tables, both in one folder."""

    folder: Path

    @property
    def settings(self) -> dict[str, str]:
        return {
            "uri": f"jdbc:sqlite:{self.folder / 'catalog.db'}?busy_timeout=20000",
            "warehouse": (self.folder / "tables").as_uri(),
        }

    def setup_sql(self) -> str:
        """Statements that configure another session for this catalog, one per line."""
        return "\n".join(f"set {SETTINGS}{name}={value}" for name, value in self.settings.items())


def ready(
    folder: Path, catalog: Catalog, schema: str, select: str, config: Mapping[str, Any]
) -> subprocess.Popen[str]:
    """A process that is ready to run a model `h` on the tests' catalog."""
    folder.mkdir()
    (folder / "model.sql").write_text(select)
    (folder / "setup.sql").write_text(catalog.setup_sql())
    (folder / "config.json").write_text(json.dumps({**config, "file_format": "iceberg"}))
    return start(folder, folder / "warehouse", schema)


def records(spark: SparkSession, table: str) -> list[dict[str, Any]]:
    """The records of the batches in the snapshots that lead to the current one, oldest first."""
    rows = spark.sql(
        f"select summary['dbt_history'] as record from {table}.snapshots left semi join"
        f" (select snapshot_id from {table}.history where is_current_ancestor) as past"
        " using (snapshot_id) order by committed_at"
    ).collect()
    found = [json.loads(row["record"]) for row in rows if row["record"]]
    return [record for record in found if record.get("batch") is not None]


def numbers(spark: SparkSession, table: str) -> list[int]:
    """The numbers of the batches that led to the current snapshot, in order."""
    return [int(record["batch"]) for record in records(spark, table)]


def refs(spark: SparkSession, table: str) -> list[str]:
    return sorted(row["name"] for row in spark.sql(f"select name from {table}.refs").collect())


def drop_tables(spark: SparkSession, schema: str) -> None:
    """Drop all tables of a schema; the catalog does not support `drop schema … cascade`."""
    if spark.catalog.databaseExists(schema):
        for row in spark.sql(f"show tables in {schema}").collect():
            spark.sql(f"drop table {schema}.{row['tableName']} purge")
