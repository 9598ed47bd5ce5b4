"""The rows of the README's picture are those that dbt writes."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from scripts.picture import ARRIVALS, EMPTY, HISTORY, RUNS, SNAPSHOT, Version
from tests.support.project import Project

pytestmark = pytest.mark.thorough

FIRST = datetime(2024, 3, 1)
NEWEST = """
{% snapshot customer_snapshot %}
{{ config(target_schema=SCHEMA, unique_key='customer_id', strategy='timestamp',
    updated_at='changed_at', hard_deletes='invalidate', file_format='delta') }}
select customer_id, city, changed_at
from (
    select *, row_number() over (partition by customer_id order by changed_at desc) as place
    from SOURCE
) as newest
where place = 1 and not is_deleted
{% endsnapshot %}
"""


def instant(day: int) -> datetime:
    return FIRST + timedelta(days=day - 1)


def now() -> datetime:
    """The time as Spark returns it: UTC, without a zone."""
    return datetime.now(UTC).replace(tzinfo=None)


def arrive(spark: SparkSession, table: str, run: int) -> None:
    """The source as run `run` finds it: all rows that have arrived, or none."""
    rows = [
        f"(1, {repr(one.city) if one.city else 'null'}, timestamp'{instant(one.since)}',"
        f" {str(one.city is None).lower()})"
        for one in ARRIVALS
        if one.day <= run and run != EMPTY
    ]
    source = f"values {', '.join(rows)}" if rows else "select 1, 'none', now(), false where false"
    spark.sql(f"insert overwrite {table} {source}")


def test_the_picture_shows_the_rows_that_dbt_writes(spark: SparkSession, tmp_path: Path) -> None:
    schema = "tests_picture"
    project = Project.create(tmp_path / "project", spark)
    settings = json.loads((project.path / "dbt_project.yml").read_text())
    # dbt-spark's own snapshot, without the fixes of this package.
    del settings["dispatch"]
    project.write("dbt_project.yml", json.dumps(settings))
    project.schema = schema
    spark.sql(f"create schema {schema}")
    source = f"{schema}.customer_changes"
    columns = "customer_id int, city string, changed_at timestamp, is_deleted boolean"
    spark.sql(f"create table {source} ({columns}) using delta")
    snapshot = NEWEST.replace("SCHEMA", repr(schema)).replace("SOURCE", source)
    project.write("snapshots/customer_snapshot.sql", snapshot)
    meta = {"source": "changes", "updated_at": "changed_at", "deleted": "is_deleted"}
    project.model(
        "customer_history",
        f"select * from {source}",
        materialized="history",
        unique_key="customer_id",
        meta={"history": meta},
    )
    clock: list[tuple[datetime, datetime]] = []
    try:
        for run in RUNS:
            arrive(spark, source, run)
            began = now()
            project.dbt("snapshot")
            project.run("customer_history")
            clock.append((began, now()))

        def day(time: datetime | None) -> int | None:
            if time is None:
                return None
            runs = [run for run, (began, ended) in zip(RUNS, clock) if began <= time <= ended]
            return runs[0] if runs else (time - FIRST).days + 1

        for table, start, end, expected in (
            ("customer_snapshot", "dbt_valid_from", "dbt_valid_to", SNAPSHOT),
            ("customer_history", "valid_from", "valid_to", HISTORY),
        ):
            rows = project.rows(table)
            found = [Version(row["city"], day(row[start]) or 0, day(row[end])) for row in rows]
            assert sorted(found, key=lambda one: one.since) == expected, table
    finally:
        spark.sql(f"drop schema {schema} cascade")
