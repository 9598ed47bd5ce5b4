"""`materialized='history'` on Iceberg."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.iceberg import numbers
from tests.support.project import Project

pytestmark = pytest.mark.thorough

ICEBERG = {"materialized": "history", "unique_key": "id", "file_format": "iceberg"}


def shows(spark: SparkSession, rows: str) -> None:
    """Let the source return these rows."""
    spark.sql(f"create or replace temporary view shown as select * from values {rows}")


def versions(project: Project, name: str) -> list[tuple[Any, ...]]:
    """Id, value, and whether the version is current; each ends where the next one starts."""
    rows = sorted(project.rows(name), key=lambda row: (row["id"], row["valid_from"]))
    return [(row["id"], row["v"], row["valid_to"] is None) for row in rows]


def test_a_history_keeps_what_a_select_returned(project: Project, spark: SparkSession) -> None:
    """
    run 1    1 a    2 b
    run 2    1 c              3 NULL
    run 3    the same
    run 4    1 c    2 b       3 ''
    """
    project.model("h", "select id, v from shown", **ICEBERG)
    shows(spark, "(1, 'a'), (2, 'b') as s(id, v)")
    project.run("h")
    shows(spark, "(1, 'c'), (3, cast(null as string)) as s(id, v)")
    project.run("h")
    assert project.run("h").message("h").startswith("no new batch")
    shows(spark, "(1, 'c'), (2, 'b'), (3, '') as s(id, v)")
    project.run("h")

    assert versions(project, "h") == [
        (1, "a", False), (1, "c", True), (2, "b", False), (2, "b", True),
        (3, None, False), (3, "", True),
    ]  # fmt: skip
    assert numbers(spark, project.table("h")) == [1, 2, 3]


def test_masked_tracked_columns_are_recorded_again_by_a_run_with_nothing_new(
    project: Project, spark: SparkSession
) -> None:
    """As a release before this one recorded them: Spark masks a value with the word url."""
    project.model(
        "h", "select * from shown", meta={"history": {"track_columns": ["url"]}}, **ICEBERG
    )
    shows(spark, "(1, 'a', 1) as s(id, url, n)")
    project.run("h")

    def recorded() -> str:
        shown = spark.sql(f"show tblproperties {project.table('h')}").collect()
        return str(dict(tuple(row) for row in shown)["dbt_history.tracked"])

    text = recorded()
    former = bytes.fromhex(text).decode()
    spark.sql(
        f"alter table {project.table('h')} set tblproperties ('dbt_history.tracked' = '{former}')"
    )
    assert recorded() == "*********(redacted)"

    assert project.run("h").message("h").startswith("no new batch")

    assert recorded() == text


def test_a_field_that_a_struct_gets_is_added(project: Project, spark: SparkSession) -> None:
    project.model("h", "select id, v from shown", **ICEBERG)
    shows(spark, "(1, named_struct('a', 1)), (2, named_struct('a', 2)) as s(id, v)")
    project.run("h")
    shows(
        spark,
        "(1, named_struct('a', 1, 'b', cast(null as int))), (2, named_struct('a', 2, 'b', 3))"
        " as s(id, v)",
    )
    project.run("h")

    assert versions(project, "h") == [
        (1, (1, None), True), (2, (2, None), False), (2, (2, 3), True),
    ]  # fmt: skip


def test_a_time_of_a_row_gives_its_place(project: Project, spark: SparkSession) -> None:
    """
    minute   5           10          20
    run 1                a ----------
    run 2    late -------a ----------b ----
    """
    project.model("h", "select * from shown", updated_at="at", **ICEBERG)
    rows = "(1, 'a', timestamp'2024-01-01 00:10:00')"
    shows(spark, f"{rows} as s(id, v, at)")
    project.run("h")
    more = "(1, 'late', timestamp'2024-01-01 00:05:00'), (1, 'b', timestamp'2024-01-01 00:20:00')"
    shows(spark, f"{rows}, {more} as s(id, v, at)")
    project.run("h")

    found = sorted(project.rows("h"), key=lambda row: row["valid_from"])
    start = datetime(2024, 1, 1)
    points = [start + timedelta(minutes=minute) for minute in (5, 10, 20)]
    assert [(row["v"], row["valid_from"], row["valid_to"]) for row in found] == [
        ("late", points[0], points[1]), ("a", points[1], points[2]), ("b", points[2], None),
    ]  # fmt: skip
