"""The Spark session of the commands."""

from __future__ import annotations

from pyspark.sql import SparkSession


def start_session(name: str) -> SparkSession:
    """The active session, or a new one with the catalog that dbt's session mode uses.

    Master, catalog and jars come from Spark's configuration (`SPARK_CONF_DIR`, `spark-defaults`).
    """
    session = SparkSession.builder.appName(name).enableHiveSupport().getOrCreate()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    # Keeps ${...} in names and values as text.
    session.conf.set("spark.sql.variable.substitute", "false")
    return session
