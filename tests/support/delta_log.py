"""What Delta's cleanup removes from the log of a table, without the wait for its age."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession


def expire_log(
    spark: SparkSession, table: str, before: int | None = None, files: str = "*.json"
) -> None:
    """Remove the log's files of the versions before one, else before the newest checkpoint."""
    place = spark.sql(f"describe detail {table}").collect()[0]["location"]
    log = Path(place.removeprefix("file:")) / "_delta_log"
    if before is None:
        before = max(int(file.name[:20]) for file in log.glob("*.checkpoint*.parquet"))
    for file in log.glob(files):
        if file.name[:20].isdigit() and int(file.name[:20]) < before:
            file.unlink()
    forget_logs(spark)
    spark.sql(f"refresh table {table}")


def forget_logs(spark: SparkSession) -> None:
    """Let Spark read the logs of all tables again."""
    jvm: Any = spark._jvm
    jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
