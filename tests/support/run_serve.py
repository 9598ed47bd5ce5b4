"""A destination in a process of its own: `run_serve WAREHOUSE ROOT`; it prints its port.

The catalog is in memory, so that several processes can work on the same files.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession

from dbt_history.serve.destination import Destination
from dbt_history.serve.engine import Engine
from dbt_history.serve.service import Service, start
from dbt_history.session import start_session
from tests.support.project import ROOT


def main(warehouse: str, root: str) -> None:
    builder = (
        SparkSession.builder.master("local[1]")
        .config("spark.sql.catalogImplementation", "in-memory")
        .config("spark.sql.warehouse.dir", warehouse)
    )
    builder.getOrCreate().sparkContext.setLogLevel("OFF")
    destination = Destination(start_session("killed"), Path(root), Engine(ROOT))
    _, port = start(Service(destination), "127.0.0.1:0")
    print(f"port {port}", flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main(*sys.argv[1:])
