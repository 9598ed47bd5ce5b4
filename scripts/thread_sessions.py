"""A Spark session for each of dbt's threads, so that a build can use several.

dbt-spark asks PySpark for the session of the process before each statement. A setting sent with one
statement would be in force for those of other threads, and their temporary views would replace each
other. In sessions of their own in one Spark, threads share only the catalog.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from unittest.mock import patch

from dbt.adapters.spark import session as dbt_spark
from pyspark.sql import SparkSession


class ThreadSessions:
    """Stands in for PySpark's `SparkSession` in dbt-spark: `builder…getOrCreate()`.

    make   makes a session; one whose thread has ended is used again
    """

    def __init__(self, make: Callable[[], SparkSession]) -> None:
        self.make = make
        self.owners: dict[threading.Thread, SparkSession] = {}
        self.lock = threading.Lock()

    @property
    def builder(self) -> ThreadSessions:
        return self

    def enableHiveSupport(self) -> ThreadSessions:  # noqa: N802
        return self

    def config(self, name: str, value: str) -> ThreadSessions:
        self.getOrCreate().conf.set(name, value)
        return self

    def getOrCreate(self) -> SparkSession:  # noqa: N802
        thread = threading.current_thread()
        with self.lock:
            if thread not in self.owners:
                ended = next((other for other in self.owners if not other.is_alive()), None)
                self.owners[thread] = self.owners.pop(ended) if ended else self.make()
            return self.owners[thread]


def thread_sessions(make: Callable[[], SparkSession]) -> AbstractContextManager[object]:
    """While it is open, each thread of dbt-spark's `method: session` has a session of its own."""

    def make_own() -> SparkSession:
        session = make()
        # A model would refuse several threads (macros/_commits/_guarded_statement.sql).
        session.conf.set("spark.dbt_history.sessionOfThread", "true")
        return session

    return patch.object(dbt_spark, "SparkSession", ThreadSessions(make_own))
