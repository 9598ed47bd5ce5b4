"""A dbt run in its own process: `run_dbt PROJECT WAREHOUSE SCHEMA MODEL`.

The catalog is in memory, so that several processes can work on the same files at the same time.
The files beside the project are `model.sql`, optionally `config.json` (the model's settings;
without it the model is a `history_batch` with one batch per commit) and optionally `setup.sql`
(statements that register sources, one per line). With `operation.json` instead of a model, MODEL is
a run-operation and the file has its arguments.
"""

from __future__ import annotations

import json
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
    folder = Path(path).parent
    if (folder / "setup.sql").exists():
        for statement in (folder / "setup.sql").read_text().splitlines():
            spark.sql(statement)
    operation = folder / "operation.json"
    if operation.exists():
        print("ready", flush=True)
        sys.stdin.readline()
        project.dbt("run-operation", model, "--args", operation.read_text())
        print("done", flush=True)
        return
    select = (folder / "model.sql").read_text()
    if (folder / "config.json").exists():
        project.model("h", select, **json.loads((folder / "config.json").read_text()))
    else:
        project.history("h", select, batches_per_commit=1)
    print("ready", flush=True)
    sys.stdin.readline()
    print(project.run(model).message(model), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
