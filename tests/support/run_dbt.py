"""A dbt run in a process of its own: `run_dbt PROJECT WAREHOUSE SCHEMA MODEL`.

The catalog is in memory, so that several processes can work on the same files at once. Beside the
project lie `model.sql`, and where they are wanted `config.json` (the model's settings; without it
the model is a `history_batch`) and `setup.sql` (statements that make sources known, one a line).
With `operation.json` instead of a model it is a run-operation: MODEL, with these arguments.
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
        project.history("h", select)
    print("ready", flush=True)
    sys.stdin.readline()
    print(project.run(model).message(model), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
