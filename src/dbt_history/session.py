"""The Spark session of the commands."""

from __future__ import annotations

import click
from pyspark.sql import SparkSession

from dbt_history.doctor import NO_JARS, NO_SETTINGS, explanation

# Derby's error codes for a database that another process has open.
IN_USE = ("XSDB6", "XJ040", "XBM0A")


class MetastoreInUseError(click.ClickException):
    """Another process has the embedded metastore open."""

    exit_code = 3

    def __init__(self) -> None:
        super().__init__(
            "another process has the embedded metastore open, which allows one process at a time;"
            " nothing was written. Stop that process, or configure a metastore service or a Spark"
            " server for both (docs/guides/landing.md, Beside dbt)"
        )


class NoDeltaError(click.ClickException):
    """Spark's settings have no jars of Delta, or not its extension and catalog."""

    exit_code = 3

    def __init__(self, what: str, line: str) -> None:
        super().__init__(
            f"{what}; nothing was written. Settings of the profile do not count here: write"
            f" {line.replace(': ', ' ')} in spark-defaults.conf of the folder that SPARK_CONF_DIR"
            " names (docs/guides/landing.md, Settings of Spark)"
        )


def start_session(name: str) -> SparkSession:
    """The active session, or a new one with the catalog that dbt's session mode uses.

    Master, catalog and jars come from Spark's configuration (`SPARK_CONF_DIR`, `spark-defaults`).
    Raises MetastoreInUseError, NoDeltaError.
    """
    session = SparkSession.builder.appName(name).enableHiveSupport().getOrCreate()
    try:
        return with_catalog(session)
    except Exception as error:
        raise no_delta(error) or error from None


def require_delta(session: SparkSession) -> None:
    """Raises NoDeltaError if the session has no jars of Delta."""
    try:
        session.sql("select try_reflect('io.delta.package', 'VERSION')").collect()
    except Exception as error:
        raise no_delta(error) or error from None


def no_delta(error: Exception) -> NoDeltaError | None:
    """What the error means if `doctor` knows it as one of settings without Delta."""
    known = explanation(str(error))
    return NoDeltaError(*known) if known in (NO_JARS, NO_SETTINGS) else None


def with_catalog(session: SparkSession) -> SparkSession:
    """The session with the settings of `configured`. Raises MetastoreInUseError."""
    try:
        session.catalog.databaseExists("default")
    except Exception as error:
        if is_in_use(error):
            raise MetastoreInUseError from None
        raise
    return configured(session)


def new_session(session: SparkSession) -> SparkSession:
    """A session with settings of its own, in the same Spark."""
    # Spark Connect has no newSession.
    create = getattr(session, "newSession", None) or SparkSession.builder.create
    return configured(create())


def configured(session: SparkSession) -> SparkSession:
    session.conf.set("spark.sql.session.timeZone", "UTC")
    # Keeps ${...} in names and values as text.
    session.conf.set("spark.sql.variable.substitute", "false")
    return session


def is_in_use(error: Exception) -> bool:
    """Whether Derby's code is in the error or in a cause, which only the stack trace names."""
    text = f"{error}\n{getattr(error, '_stackTrace', '')}"
    return any(code in text for code in IN_USE)
