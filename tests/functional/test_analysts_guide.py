"""The guide for analysts: its two tables, its five questions and their answers, run."""

from __future__ import annotations

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
