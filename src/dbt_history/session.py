"""The Spark that the command works on."""

from __future__ import annotations

from pyspark.sql import SparkSession


def start_session(name: str) -> SparkSession:
    """The session that is there, or a new one with the catalog that dbt's session mode uses.

    Master, catalog and jars come from Spark's own settings (`SPARK_CONF_DIR`, `spark-defaults`).
    """
    session = SparkSession.builder.appName(name).enableHiveSupport().getOrCreate()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    # A name or a value with ${...} in it is not to be filled in.
    session.conf.set("spark.sql.variable.substitute", "false")
    return session
