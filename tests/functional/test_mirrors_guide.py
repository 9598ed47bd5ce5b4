"""The guide on what was published on a day: its mirrors, queries and answers, run."""

from __future__ import annotations

import pytest

from tests.support.markdown import blocks, page, rows_after
from tests.support.project import Project
from tests.support.tables import assert_same_rows, data_frame

pytestmark = pytest.mark.thorough

GUIDE = page("docs/guides/published_on_a_day.md")
MIRRORS = ("meta_network_hx", "meta_station_hx", "obs_raw_hx")
IDS = ("station_id", "network_id", "obs_raw_id", "elevation", "_previous_hx_id")
TYPES = {
    **dict.fromkeys((*IDS, *(f"{name}_id" for name in MIRRORS)), "bigint"),
    "mod_time": "timestamp",
    "deleted": "boolean",
}


def test_every_query_has_the_answer_that_the_guide_shows(project: Project) -> None:
    _, *queries = blocks(GUIDE, "sql")
    assert len(queries) == 4
    for name in MIRRORS:
        rows = rows_after(GUIDE, f"**{name}**", TYPES)
        types = {column: TYPES.get(column, "string") for column in rows[0]}
        data_frame(project.spark, rows, types).createOrReplaceTempView(f"guide_{name}")
        project.model(
            name, f"select * from guide_{name}", materialized="table", file_format="delta"
        )
    for number, query in enumerate(queries):
        project.model(f"query_{number}", query, materialized="table", file_format="delta")

    project.run(*MIRRORS, *(f"query_{number}" for number in range(len(queries))))

    for number, query in enumerate(queries):
        expected = rows_after(GUIDE, query, TYPES)
        assert_same_rows(project.rows(f"query_{number}"), expected, list(expected[0]), query)


def test_the_mirror_of_the_guide_captures_existing_rows_and_changes(project: Project) -> None:
    mirror, *_ = blocks(GUIDE, "sql")
    feed = "using delta tblproperties (delta.enableChangeDataFeed = true)"
    main = project.table("meta_station")
    project.spark.sql(f"create schema if not exists {project.schema}")
    project.spark.sql(f"create table {main} (station_id bigint, network_id bigint) {feed}")
    project.spark.sql(f"insert into {main} values (1, 1), (2, 2)")
    project.model(
        "meta_network_hx",
        "select n as meta_network_hx_id, n as network_id, timestamp'2024-01-01' as mod_time,"
        " 'import' as mod_user, false as deleted from values (1L), (2L) as numbers(n)",
        materialized="table",
        file_format="delta",
    )
    schema = project.schema.removeprefix("tests_")
    project.write(
        "models/meta_station_hx.sql", mirror.replace("config(", f"config(schema='{schema}', ")
    )
    project.write(
        "models/_crmp.yml",
        f"sources: [{{name: crmp, schema: {project.schema}, tables: [{{name: meta_station}}]}}]",
    )

    project.run("meta_network_hx", "meta_station_hx")
    project.spark.sql(f"update {main} set network_id = 2 where station_id = 1")
    project.run("meta_station_hx")

    found = sorted(
        (row["meta_station_hx_id"], row["station_id"], row["meta_network_hx_id"])
        for row in project.rows("meta_station_hx")
    )
    assert found == [(1, 1, 1), (2, 2, 2), (3, 1, 2)]
