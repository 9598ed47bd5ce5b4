"""The guide for writers: its three writers and the event table that it shows, run."""

from __future__ import annotations

import json

import pytest
import yaml  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from tests.support.markdown import blocks, page, rows_after
from tests.support.operations import METADATA
from tests.support.project import SESSION, Project, profiles

pytestmark = pytest.mark.thorough

GUIDE = page("docs/guides/writers.md")
TYPES = {"_hist_event": "bigint", "id": "bigint"}


def run_as_nightly(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Build the table `items` by dbt with the guide's profile."""
    (said,) = blocks(GUIDE, "yaml")
    target = {**SESSION, **yaml.safe_load(said)}
    project.write("nightly/profiles.yml", json.dumps(profiles({"session": target})))
    monkeypatch.setenv("WRITER", "nightly")
    try:
        project.run("items", options=["--profiles-dir", str(project.path / "nightly")])
    finally:
        project.spark.conf.unset(METADATA)


def test_the_writers_of_the_guide_are_recorded(
    project: Project, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracked = {"delta.enableChangeDataFeed": "true", "delta.enableRowTracking": "true"}
    project.model(
        "items",
        "select 1L as id, 'chair' as name",
        materialized="table",
        file_format="delta",
        tblproperties=tracked,
    )
    project.model(
        "items_history",
        "select * from {{ dbt_history.event_rows(ref('items'), 'id') }} as history",
        materialized="history_append",
    )
    (sql,), (python,) = blocks(GUIDE, "sql"), blocks(GUIDE, "python")
    table = project.table("items")

    run_as_nightly(project, monkeypatch)
    project.run("items_history")
    for statement in sql.replace("shop.items", table).split(";\n"):
        if statement.strip():
            spark.sql(statement)
    exec(python.replace("shop.items", table), {"spark": spark})  # the guide's own text
    spark.sql(f"insert into {table} values (4, 'desk')")
    project.run("items_history")

    expected = rows_after(GUIDE.replace("shop.items", table), "# Who changed it", TYPES)
    rows = project.rows("items_history")
    rows.sort(key=lambda row: (row["_hist_time"], row["_hist_event"]))
    assert [{name: row[name] for name in expected[0]} for row in rows] == expected
    said = [
        json.loads(row["userMetadata"] or "{}").get("message") for row in project.log_of("items")
    ]
    first = "a first order"
    assert said == [None, "a file of the supplier", first, first, "every night"]
    assert spark.conf.get(METADATA, None) is None
