"""A warm process with its own Spark and dbt: a job a line on stdin, its answer a line on stdout.

The catalog is in memory, so that several workers can work on the same files. A job is JSON:

folder    folder of the tables; each table that has a commit is registered
files     the files of the dbt project's models, by path
steps     what to do, in order: {"sql": …}, {"dbt": [arguments]}, {"land": folder of requests},
          {"serve": folder of requests}
queries   SQL by name, run after the steps
wait      whether to wait for a line between the preparation and the steps

The answer has `outcomes`, for each step `null` or its error, then the errors of queries, and `rows`
by the name of a query.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from pyspark.sql import SparkSession

from dbt_history.cli import main as command
from dbt_history.serve.destination import Destination
from dbt_history.serve.engine import Engine, find_package
from tests.support.project import ROOT, SCHEMA, Project


def say(answer: Any) -> None:
    print(json.dumps(answer, default=str), flush=True)


def open_folder(spark: SparkSession, folder: Path) -> None:
    """The schema with the folder's tables. Dropping it removes the previous job's folder."""
    spark.sql(f"drop schema if exists {SCHEMA} cascade")
    spark.sql(f"create schema {SCHEMA} location '{folder}'")
    for log in sorted(folder.glob("*/_delta_log")):
        if (log / "00000000000000000000.json").exists():
            name = log.parent.name
            spark.sql(f"create table {SCHEMA}.{name} using delta location '{log.parent}'")


def run_step(spark: SparkSession, project: Project, step: dict[str, Any]) -> str | None:
    """Do one step; returns its error."""
    if "dbt" in step:
        done = project.dbt(*step["dbt"], check=False)
        return None if done.success else done.log
    try:
        if "land" in step:
            landed = CliRunner().invoke(command, ["land", step["land"], "--schema", SCHEMA])
            return None if landed.exit_code == 0 else f"{landed.output} {landed.exception}"
        if "serve" in step:
            return serve(spark, Path(step["serve"]))
        spark.sql(step["sql"])
    except Exception as error:
        return str(error).splitlines()[0]
    return None


def serve(spark: SparkSession, folder: Path) -> str | None:
    """Write the folder's requests one by one, as calls of `WriteHistoryBatch` do."""
    destination = Destination(spark, folder, Engine(find_package(ROOT), max_deleted_share=None))
    try:
        for request in sorted(folder.glob("*.json")):
            destination.write(json.loads(request.read_text()), has_period=True)
    finally:
        destination.close()
    return None


def main(path: str) -> None:
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.sql.catalogImplementation", "in-memory")
        .config("spark.sql.warehouse.dir", f"{path}/warehouse")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    project = Project.create(Path(path) / "project", spark)
    say("ready")
    for line in sys.stdin:
        job = json.loads(line)
        project.clear()
        for file, text in job["files"].items():
            project.write(file, text)
        open_folder(spark, Path(job["folder"]))
        if job["wait"]:
            say("waiting")
            sys.stdin.readline()
        outcomes = [run_step(spark, project, step) for step in job["steps"]]
        rows: dict[str, list[dict[str, Any]]] = {}
        for name, query in job["queries"].items():
            try:
                rows[name] = [row.asDict() for row in spark.sql(query).collect()]
            except Exception as error:
                rows[name] = []
                outcomes.append(f"{name} cannot be read: {str(error).splitlines()[0]}")
        say({"outcomes": outcomes, "rows": rows})


if __name__ == "__main__":
    main(*sys.argv[1:])
