"""The Spark of a cluster for the tests: a session of Spark Connect."""

from __future__ import annotations

from typing import Any

import pyspark.sql.connect.dataframe as connect
from pyspark.sql import SparkSession

from scripts.cluster import Cluster

# Characters; Derby's limit is 32,700.
LONGEST_VIEW = 30_000


def profile(cluster: Cluster, schema: str) -> dict[str, Any]:
    """A dbt target that reaches the cluster by Connect; dbt-spark turns ANSI off there."""
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
    """The session of this process; dbt shares it if it also uses Connect."""
    session = SparkSession.builder.remote(cluster.remote).getOrCreate()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    return session


def create_shared_view(frame: connect.DataFrame, name: str) -> None:
    """Create a view or table of these rows in the default schema, for all connections.

    It replaces `createOrReplaceTempView`, whose view is visible to this session only.
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
