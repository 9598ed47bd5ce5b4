"""Runs with `--empty` and `--sample`, which hide rows of the sources from dbt's models."""

from __future__ import annotations

from typing import Any

import pytest

from tests.functional.test_changes import source
from tests.functional.test_history import model as history
from tests.functional.test_history import versions
from tests.support.project import Project

SAMPLE = ["--sample", "1 day"]
VERSIONS = {"unique_key": "id", "meta": {"history": {"convention": "validity"}}}


def cities(project: Project, name: str, materialized: str) -> str:
    """A model of captured orders, joined with a table that dbt may hide; returns the orders."""
    project.model("regions", "select 1L as region, 'Bonn' as v", materialized="table")
    table = source(project, "id bigint, region bigint", name="orders")
    orders = f"api.Relation.create(schema='{project.schema}', identifier='orders')"
    rows = f"dbt_history.changes({orders}, 'id')"
    config: dict[str, Any] = {}
    if materialized == "history_batch":
        rows, config = f"dbt_history.batch_rows({rows})", VERSIONS
    sql = f"select changed.*, regions.v from {{{{ {rows} }}}} as changed"
    sql += " join {{ ref('regions') }} as regions using (region)"
    project.model(name, sql, materialized=materialized, **config)
    return table


@pytest.mark.thorough
@pytest.mark.parametrize("materialized", ["history_batch", "history_append"])
def test_changes_that_an_empty_run_has_read_are_taken_by_the_next_run(
    project: Project, materialized: str
) -> None:
    """
    orders      1            2
    run         --empty      --empty    whole: 1 and 2
    """
    orders = cities(project, "h", materialized)
    project.run("regions")
    for number in (1, 2):
        project.spark.sql(f"insert into {orders} values ({number}, 1)")
        project.run("h", options=["--empty"])
        assert project.rows("h") == []

    refused = project.run("h", options=SAMPLE, check=False).message("h")
    project.run("h")

    assert f"dbt_history.{materialized}: --sample hides rows" in refused
    assert "way out: run dbt without --sample, or with --exclude h" in refused
    assert sorted((row["id"], row["v"]) for row in project.rows("h")) == [(1, "Bonn"), (2, "Bonn")]


@pytest.mark.thorough
@pytest.mark.parametrize("materialized", ["history_batch", "history_append"])
def test_a_batch_that_a_sample_hides_is_not_skipped(project: Project, materialized: str) -> None:
    """
    staged      batch 5, three years old     batch 6, today
    run         --empty: none     --sample: refused     whole: 5 and 6
    """
    sql = (
        "select 'upsert' as _stage, _batch, _batch as id, at as valid_from,"
        " cast(null as timestamp) as valid_to"
        " from values (5L, timestamp'2023-01-01'), (6L, current_timestamp()) as staged(_batch, at)"
    )
    project.model("staged", sql, materialized="table", event_time="valid_from")
    select = "select * from {{ ref('staged') }} where _batch > {{ dbt_history.last_batch() }}"
    config = VERSIONS if materialized == "history_batch" else {}
    project.model("h", select, materialized=materialized, **config)
    project.run("staged")

    project.run("h", options=["--empty"])
    refused = project.run("h", options=SAMPLE, check=False).message("h")
    assert project.rows("h") == []
    project.run("h")

    assert f"dbt_history.{materialized}: --sample hides rows" in refused
    assert sorted(row["id"] for row in project.rows("h")) == [5, 6]


@pytest.mark.thorough
@pytest.mark.parametrize("is_filtered", [False, True], ids=["whole", "filtered"])
def test_the_feed_is_left_to_the_next_whole_run(project: Project, is_filtered: bool) -> None:
    """
    feed      1: a     1: b, 1: c                   1: a, b, c, each once
    run       whole    --sample: nothing   whole
    """
    sql = "select 1L as id, 'a' as v, current_timestamp() as at"
    options = {"file_format": "delta", "tblproperties": {"delta.enableChangeDataFeed": "true"}}
    event_time = {"event_time": "at"} if is_filtered else {}
    project.model("items", sql, materialized="table", **options, **event_time)
    history(project, "h", "select * from {{ ref('items') }}")
    project.run("items", "h")
    for value in ("b", "c"):
        project.spark.sql(f"update {project.table('items')} set v = '{value}'")

    project.run("h", options=SAMPLE)
    assert versions(project) == [(1, "a", True)]
    project.run("h")

    assert versions(project) == [(1, "a", False), (1, "b", False), (1, "c", True)]
