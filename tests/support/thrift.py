"""The subset of a Spark session that the tests use, over a thrift server."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Any

import pytest
from pyhive import hive
from pyspark.sql import Row

from scripts.cluster import HOST, Cluster

# Characters; Derby's limit is 32,700.
LONGEST_VIEW = 30_000
QUERIES = ("select", "with", "values", "(")


def profile(
    cluster: Cluster, schema: str, ansi: bool = True, port: int | None = None
) -> dict[str, Any]:
    """A dbt target for the thrift server, or for a proxy at `port`.

    ANSI is on unless it is set off.
    """
    settings = {
        "spark.sql.session.timeZone": "UTC",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.sql.ansi.enabled": str(ansi).lower(),
    }
    return {
        "type": "spark",
        "method": "thrift",
        "host": HOST,
        "port": port or cluster.thrift_port,
        "user": "tests",
        "schema": schema,
        "threads": 4,
        "query_retries": 0,
        "poll_interval": 1,
        "server_side_parameters": {
            f"set:hiveconf:{name}": value for name, value in settings.items()
        },
    }


class ThriftConf:
    """Settings of this connection."""

    def __init__(self, spark: ThriftSpark) -> None:
        self.spark = spark

    def set(self, name: str, value: str) -> None:
        self.spark.run(f"set {name} = {value}")

    def unset(self, name: str) -> None:
        self.spark.run(f"reset {name}")

    def get(self, name: str, default: Any = None) -> Any:
        rows = self.spark.run(f"set {name}")
        return default if rows[0][1] == "<undefined>" else rows[0][1]


class ThriftFrame:
    """A query, run when its rows are read; its views are visible to all connections."""

    def __init__(self, spark: ThriftSpark, query: str) -> None:
        self.spark = spark
        self.query = query

    def collect(self) -> list[Row]:
        return self.spark.run(self.query)

    def first(self) -> Row | None:
        rows = self.collect()
        return rows[0] if rows else None

    def count(self) -> int:
        return len(self.collect())

    def createOrReplaceTempView(self, name: str) -> None:  # noqa: N802
        """Create a view in the default schema of the catalog.

        A table if the view's text is longer than the metastore allows.
        """
        kind = "view" if len(self.query) < LONGEST_VIEW else "table"
        using = " using delta" if kind == "table" else ""
        self.spark.run(f"create or replace {kind} default.`{name}`{using} as {self.query}")

    @property
    def write(self) -> ThriftWriter:
        return ThriftWriter(self)


class ThriftWriter:
    """Only `frame.write.format("delta").saveAsTable(name)`."""

    def __init__(self, frame: ThriftFrame) -> None:
        self.frame = frame

    def format(self, name: str) -> ThriftWriter:
        assert name == "delta", name
        return self

    def saveAsTable(self, name: str) -> None:  # noqa: N802
        self.frame.spark.run(f"create table {name} using delta as {self.frame.query}")


class ThriftSpark:
    """One connection to a thrift server."""

    def __init__(self, cluster: Cluster) -> None:
        self.connection = hive.connect(
            HOST,
            cluster.thrift_port,
            username="tests",
            configuration={"set:hiveconf:spark.sql.session.timeZone": "UTC"},
        )
        self.conf = ThriftConf(self)

    def run(self, statement: str) -> list[Row]:
        with closing(self.connection.cursor()) as cursor:
            cursor.execute(statement)
            if cursor.description is None:
                return []
            names = [column[0].rpartition(".")[2] for column in cursor.description]
            return [Row(**dict(zip(names, cells))) for cells in cursor.fetchall()]

    def sql(self, statement: str) -> ThriftFrame:
        """Run a statement now, but a query only when its rows are read, as a session does."""
        frame = ThriftFrame(self, statement)
        if not statement.strip().lower().startswith(QUERIES):
            rows = self.run(statement)
            frame.collect = lambda: rows  # type: ignore[method-assign]
        return frame

    def table(self, name: str) -> ThriftFrame:
        return ThriftFrame(self, f"select * from {name}")

    def createDataFrame(self, *arguments: Any, **options: Mapping[str, Any]) -> ThriftFrame:  # noqa: N802
        pytest.skip("rows that are no literals: a thrift server takes only SQL")

    def stop(self) -> None:
        self.connection.close()
