"""Play the days of the examples whose main tables change: users' statements, then dbt, by day.

    scripts/play_days.py [SYSTEM ...]

`scripts/days/<system>` holds one SQL file a day. Lines of it that speak to this script:

    -- user: NAME          who commits from here on
    -- transaction: NAME   the transaction that they belong to; until the next user
    -- download: N NAME    somebody downloads all observations, and the portal keeps a copy

Playing begins from nothing each time: the main tables and the models' tables are dropped first.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlparse
from dbt.cli.main import dbtRunner
from pyspark.sql import SparkSession

from dbt_history.session import start_session

ROOT = Path(__file__).resolve().parent.parent
DAYS = ROOT / "scripts/days"
MODELS = ROOT / "models/examples"
SCHEMA = "dbt_history"
METADATA = "spark.databricks.delta.commitInfo.userMetadata"
WORD = re.compile(r"^-- (user|transaction|download): (.+)$", re.MULTILINE)
DOWNLOADED = """
    insert into crmp.downloaded_rows
    select
        {number},
        obs_raw.obs_raw_id,
        meta_network.network_name,
        meta_station.native_id,
        meta_history.station_name,
        meta_history.elevation_m,
        meta_vars.variable_name,
        meta_vars.unit,
        obs_raw.observed_at,
        obs_raw.datum
    from crmp.obs_raw
    inner join crmp.meta_vars on obs_raw.vars_id = meta_vars.vars_id
    inner join crmp.meta_history on obs_raw.history_id = meta_history.history_id
    inner join crmp.meta_station on meta_history.station_id = meta_station.station_id
    inner join crmp.meta_network on meta_station.network_id = meta_network.network_id
"""


class DayError(Exception):
    """A run of dbt failed; the message is dbt's."""


@dataclass(frozen=True)
class Statement:
    """One statement, and what its commit says of itself."""

    sql: str
    user: str
    transaction: str | None

    @property
    def metadata(self) -> str:
        said = {"user": self.user, "transaction": self.transaction}
        return json.dumps({name: value for name, value in said.items() if value})


def statements(text: str) -> Iterator[Statement]:
    """The statements of a day in order; a download is the two statements of the portal."""
    user, transaction = "owner", None
    pieces = WORD.split(text)
    for word, value, sql in zip(["", *pieces[1::3]], ["", *pieces[2::3]], pieces[::3], strict=True):
        if word == "user":
            user, transaction = value, None
        elif word == "transaction":
            transaction = value
        elif word == "download":
            number, name = value.split()
            made = f"insert into crmp.downloads select {number}, '{name}', current_timestamp()"
            yield Statement(made, "portal", None)
            yield Statement(DOWNLOADED.format(number=number), "portal", None)
        for statement in sqlparse.split(sqlparse.format(sql, strip_comments=True)):
            if statement.strip(" ;\n"):
                yield Statement(statement.rstrip(" ;\n"), user, transaction)


def forget(spark: SparkSession, system: str) -> None:
    """Drop the main tables and what dbt made of them."""
    spark.sql(f"drop database if exists {system} cascade")
    spark.sql(f"create database if not exists {SCHEMA}")
    made = {path.stem for path in (MODELS / system).glob("*.sql")}
    for row in spark.sql(f"show tables in {SCHEMA}").collect():
        if row.tableName in made:
            kind = spark.catalog.getTable(f"{SCHEMA}.{row.tableName}").tableType
            spark.sql(f"drop {'view' if kind == 'VIEW' else 'table'} {SCHEMA}.{row.tableName}")


def play(spark: SparkSession, path: Path) -> int:
    """Run the statements of a day; returns how many."""
    count = 0
    for statement in statements(path.read_text(encoding="utf-8")):
        spark.conf.set(METADATA, statement.metadata)
        try:
            spark.sql(statement.sql)
        finally:
            spark.conf.unset(METADATA)
        count += 1
    return count


def run_models(system: str) -> list[str]:
    """`dbt run` of the example's logs; returns what they say. Raises DayError."""
    said: list[str] = []

    def keep_error(event: Any) -> None:
        if event.info.level == "error":
            said.append(event.info.msg)

    runner = dbtRunner(callbacks=[keep_error])
    # What is read from the histories can wait for the build.
    selected = f"path:models/examples/{system},config.materialized:history_append"
    done = runner.invoke(["--quiet", "run", "--select", selected])
    if not done.success:
        raise DayError("\n".join([*said, str(done.exception or "")]).strip())
    results = done.result.results  # type: ignore[union-attr]
    return [f"{result.node.name} {str(result.message).split(' ')[0]}" for result in results]


def main(systems: list[str]) -> None:
    logging.getLogger("py4j").setLevel(logging.ERROR)
    spark = start_session("dbt_history days")
    for system in systems or sorted(path.name for path in DAYS.iterdir()):
        forget(spark, system)
        for path in sorted((DAYS / system).glob("*.sql")):
            count = play(spark, path)
            # What the run says of itself in the commits of the histories.
            os.environ |= {"DBT_HISTORY_APPLICATION": "days", "DBT_HISTORY_MESSAGE": path.stem}
            rows = ", ".join(run_models(system))
            print(f"{system:<12} {path.stem}: {count} statements; rows: {rows}", flush=True)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except DayError as error:
        sys.exit(f"play_days: {error}")
