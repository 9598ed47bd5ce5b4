"""Settings of Spark sessions in the checkout beyond those of `setup.py`."""

from __future__ import annotations

# An interpreted task deserializes its whole plan, and the examples and tests have few rows
# (docs/decisions/0096).
ONE_TASK: dict[str, bool | float | int | str | None] = {
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
}
