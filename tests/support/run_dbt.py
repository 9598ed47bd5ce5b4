"""A dbt run in a process of its own: `run_dbt PROJECT WAREHOUSE SCHEMA MODEL`.

The catalog is in memory, so that several processes can work on the same files at once.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession

from tests.support.project import Project


def main(path: str, warehouse: str, schema: str, model: str) -> None:
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.sql.catalogImplementation", "in-memory")
        .config("spark.sql.warehouse.dir", warehouse)
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    project = Project.create(Path(path), spark)
    project.schema = schema
    project.history("h", (Path(path).parent / "model.sql").read_text())
    print("ready", flush=True)
    sys.stdin.readline()
    print(project.run(model).message(model), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
