"""`dbt-history serve` in its own process: `run_serve WAREHOUSE ROOT SPARK OPTION…`, at a free port.

SPARK is the folder of Spark's event log and temporary files. The environment variable JAVA_OPTIONS
replaces the checkout's options of Java.
The catalog is in memory, so that several processes can work on the same files.
"""

from __future__ import annotations

import os
import sys

from pyspark.sql import SparkSession

from dbt_history.cli import main as command


def main(warehouse: str, root: str, folder: str, *options: str) -> None:
    builder = (
        SparkSession.builder.master("local[1]")
        .config("spark.sql.catalogImplementation", "in-memory")
        .config("spark.sql.warehouse.dir", warehouse)
        .config("spark.eventLog.enabled", "true")
        .config("spark.eventLog.dir", f"file://{folder}")
        .config("spark.local.dir", folder)
    )
    if options_of_java := os.environ.get("JAVA_OPTIONS"):
        builder = builder.config("spark.driver.extraJavaOptions", options_of_java)
    # The command uses the active session.
    builder.getOrCreate().sparkContext.setLogLevel("OFF")
    command(["serve", "--root", root, "--port", "0", *options])


if __name__ == "__main__":
    main(*sys.argv[1:])
