"""`dbt-history serve` in a process of its own: `run_serve WAREHOUSE ROOT`, at a free port.

The catalog is in memory, so that several processes can work on the same files.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

from dbt_history.cli import main as command


def main(warehouse: str, root: str) -> None:
    builder = (
        SparkSession.builder.master("local[1]")
        .config("spark.sql.catalogImplementation", "in-memory")
        .config("spark.sql.warehouse.dir", warehouse)
    )
    # The command takes the session that is there.
    builder.getOrCreate().sparkContext.setLogLevel("OFF")
    command(["serve", "--root", root, "--port", "0"])


if __name__ == "__main__":
    main(*sys.argv[1:])
