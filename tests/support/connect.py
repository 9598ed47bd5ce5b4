"""A cluster's Spark as the tests see it: a session of Spark Connect."""

from __future__ import annotations

from typing import Any

import pyspark.sql.connect.dataframe as connect
from pyspark.sql import SparkSession

from scripts.cluster import Cluster

# Characters; Derby ends at 32,700.
LONGEST_VIEW = 30_000


def profile(cluster: Cluster, schema: str) -> dict[str, Any]:
    """A target of dbt that reaches the cluster by Connect; dbt-spark sets ANSI off there."""
    return {
        "type": "spark",
        "method": "session",
        "host": "unused",
        "schema": schema,
        "threads": 1,
        "server_side_parameters": {
            "spark.remote": cluster.remote,
            "spark.sql.session.timeZone": "UTC",
        },
    }


def start_session(cluster: Cluster) -> SparkSession:
    """The session of this process, which dbt shares if it reaches the cluster by Connect, too."""
    session = SparkSession.builder.remote(cluster.remote).getOrCreate()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    return session


def offer(frame: connect.DataFrame, name: str) -> None:
    """Offer rows to all connections, as a view or table of the schema that they begin in.

    In the place of `createOrReplaceTempView`, whose view only this session would see.
    """
    session, place = frame.sparkSession, f"default.`{name}`"
    relation = frame._plan.to_proto(session.client).root
    is_view = relation.WhichOneof("rel_type") == "sql" and len(relation.sql.query) < LONGEST_VIEW
    if session.catalog.tableExists(place):
        was_view = session.catalog.getTable(place).tableType == "VIEW"
        if was_view != is_view:
            session.sql(f"drop {'view' if was_view else 'table'} {place}")
    if is_view:
        session.sql(f"create or replace view {place} as {relation.sql.query}")
    else:
        writer = frame.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
        writer.saveAsTable(place)
