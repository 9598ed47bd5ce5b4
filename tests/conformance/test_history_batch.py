"""Every case of the area `history_batch` through the real materialization, and once more replayed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.oracle.cases import Case, find_cases, read_cases
from tests.oracle.convention import FIVETRAN
from tests.support.project import Project
from tests.support.tables import BOOKKEEPING, assert_same_rows, column_types, data_frame

CASES = read_cases(find_cases(Path(__file__).parents[2]))


def stage(spark: SparkSession, case: Case, batches: list[list[dict[str, Any]]]) -> None:
    """Offer batches, numbered from 1, to the case's model."""
    numbered = [
        {**row, "_batch": number} for number, batch in enumerate(batches, 1) for row in batch
    ]
    types = {**BOOKKEEPING, **column_types(case.columns, FIVETRAN)}
    data_frame(spark, numbered, types).createOrReplaceTempView(f"staged_{case.id}")


@pytest.fixture(scope="module")
def tables(
    dbt_project: Project, spark: SparkSession
) -> dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]]:
    """The table of each case after its batches, and after each batch once more replayed.

    The replay sends every batch again right behind itself, under a number of its own.
    """
    dbt_project.schema = "tests_conformance"
    spark.sql("create schema if not exists tests_conformance")
    found = {}
    for case in CASES:
        types = column_types(case.columns, FIVETRAN)
        for name in (f"case_{case.id}", f"replayed_{case.id}"):
            if case.initial:
                data_frame(spark, case.initial, types).write.format("delta").saveAsTable(
                    dbt_project.table(name)
                )
            dbt_project.history(
                name, f"select * from staged_{case.id}", key=case.key, max_deleted_share=None
            )
    for prefix, times in (("case", 1), ("replayed", 2)):
        for case in CASES:
            stage(spark, case, [batch for batch in case.batches for _ in range(times)])
        dbt_project.run(*(f"{prefix}_{case.id}" for case in CASES))
    for case in CASES:
        found[case.id] = (
            dbt_project.rows(f"case_{case.id}"),
            dbt_project.rows(f"replayed_{case.id}"),
        )
    dbt_project.clear()
    return found


@pytest.mark.parametrize("case", CASES, ids=[f"{case.id} {case.title}" for case in CASES])
def test_case_ends_in_its_expected_rows(case: Case, tables: dict[str, Any]) -> None:
    assert_same_rows(tables[case.id][0], case.expected, case.columns)


@pytest.mark.parametrize("case", CASES, ids=[f"{case.id} {case.title}" for case in CASES])
def test_a_replay_of_each_batch_changes_nothing(case: Case, tables: dict[str, Any]) -> None:
    assert_same_rows(tables[case.id][1], case.expected, case.columns)
