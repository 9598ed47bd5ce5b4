"""The guide for analysts: its two tables, its five questions and their answers, run."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import SparkSession

from tests.support.markdown import blocks, page, rows_after
from tests.support.project import Project
from tests.support.tables import assert_same_rows, data_frame

pytestmark = pytest.mark.thorough

GUIDE = page("docs/guides/analysts.md")
TYPES = {
    "customer_id": "bigint",
    "contract_id": "bigint",
    "fee": "bigint",
    "valid_from": "timestamp",
    "valid_to": "timestamp",
    "_changed_at": "timestamp",
}
HEADINGS = [line for line in GUIDE.splitlines() if line.startswith("## ") and line[3].isdigit()]


def test_every_question_has_the_answer_that_the_guide_shows(
    project: Project, spark: SparkSession
) -> None:
    queries = blocks(GUIDE, "sql")
    assert len(queries) == len(HEADINGS) == 5
    for name in ("customers", "contracts"):
        rows = rows_after(GUIDE, f"**{name}**", TYPES)
        types = {column: TYPES.get(column, "string") for column in rows[0]}
        data_frame(spark, rows, types).createOrReplaceTempView(f"guide_{name}")
        project.model(
            name,
            f"select * from guide_{name}",
            materialized="table",
            file_format="delta",
            unique_key=next(iter(types)),
        )
    for number, query in enumerate(queries, 1):
        project.model(f"question_{number}", query, materialized="table", file_format="delta")

    project.run("customers", "contracts", *(f"question_{number}" for number in range(1, 6)))

    for number, heading in enumerate(HEADINGS, 1):
        expected = rows_after(GUIDE, heading, TYPES)
        assert_same_rows(project.rows(f"question_{number}"), expected, list(expected[0]), heading)


def test_a_row_that_arrives_late_changes_what_a_tag_returns(project: Project) -> None:
    """As "Keeping a state" says; a history of what was known keeps the answer.

                    own time of the row    run
    Bonn            5 January              1
    tag year_end                           between both
    Rome, late      9 January              2
    """
    models = ["told", "known"]
    for name, history in {"told": {"updated_at": "moved"}, "known": {}}.items():
        project.model(
            name,
            "select * from moves",
            materialized="history",
            unique_key="id",
            meta={"history": history},
        )
        reader = f"dbt_history.as_of(ref('{name}'), 'tag:year_end')"
        project.model(f"{name}_then", f"select city from {{{{ {reader} }}}} as found")

    def run_with(city: str, date: str) -> None:
        project.spark.sql(
            f"create or replace temporary view moves as select 1 as id, '{city}' as city,"
            f" timestamp'{date}' as moved"
        )
        project.run(*models)

    run_with("Bonn", "2024-01-05")
    tag = json.dumps({"tag": "year_end", "table": models})
    project.dbt("run-operation", "create_tag", "--args", tag)
    project.run("told_then", "known_then")
    for name in models:
        assert project.rows(f"{name}_then") == [{"city": "Bonn"}]

    run_with("Rome", "2024-01-09")

    after = {name: project.rows(f"{name}_then") for name in models}
    assert after == {"told": [{"city": "Rome"}], "known": [{"city": "Bonn"}]}
