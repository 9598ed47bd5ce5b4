"""Every case of the area `history_batch` through the materialization.

Cases with the same key are one table, and every batch comes twice; `make test-all` also gives each
case a table of its own.
"""

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
    """Create a view of batches, numbered from 1, for the case's model."""
    numbered = [
        {**row, "_batch": number} for number, batch in enumerate(batches, 1) for row in batch
    ]
    types = {**BOOKKEEPING, **column_types(case.columns, FIVETRAN)}
    data_frame(spark, numbered, types).createOrReplaceTempView(f"staged_{case.id}")


@pytest.fixture(scope="module")
def own_tables(dbt_project: Project, spark: SparkSession) -> dict[str, list[dict[str, Any]]]:
    """The table of each case after its batches, several in one commit."""
    dbt_project.schema = "tests_conformance"
    spark.sql("create schema if not exists tests_conformance")
    for case in CASES:
        stage(spark, case, case.batches)
        adopt(dbt_project, spark, case)
        dbt_project.history(
            case.id,
            f"select * from staged_{case.id}",
            key=case.key,
            max_deleted_share=None,
            batches_per_commit=None,
        )
    dbt_project.run(*(case.id for case in CASES))
    dbt_project.clear()
    return {case.id: dbt_project.rows(case.id) for case in CASES}


def adopt(project: Project, spark: SparkSession, case: Case, file_format: str = "delta") -> None:
    """Write the case's initial table; if it has no rows, the first batch creates it."""
    if case.initial:
        initial = data_frame(spark, case.initial, column_types(case.columns, FIVETRAN))
        initial.write.format(file_format).saveAsTable(project.table(case.id))


@pytest.fixture(scope="module")
def replayed(dbt_project: Project, spark: SparkSession) -> dict[str, list[dict[str, Any]]]:
    """The rows of each case after its batches, each in its own commit and repeated."""
    dbt_project.schema = "tests_conformance_replayed"
    tables = run_together(dbt_project, spark, "delta")
    dbt_project.clear()
    found: dict[str, list[dict[str, Any]]] = {case.id: [] for case in CASES}
    for table in tables:
        for row in dbt_project.rows(table.id):
            found[row["case"]].append(row)
    return found


EACH = pytest.mark.parametrize("case", CASES, ids=[f"{case.id} {case.title}" for case in CASES])


@EACH
def test_every_batch_replayed_changes_nothing(case: Case, replayed: dict[str, Any]) -> None:
    assert_same_rows(replayed[case.id], case.expected, case.columns)


@pytest.mark.thorough
@EACH
def test_case_ends_in_its_expected_rows(case: Case, own_tables: dict[str, Any]) -> None:
    assert_same_rows(own_tables[case.id], case.expected, case.columns)


def together(cases: list[Case], name: str, times: int = 2) -> Case:
    """Cases with the same key as one table, separated by `case`; every batch comes twice."""
    columns = tuple(dict.fromkeys(name for case in cases for name in case.columns))

    def mark(rows: list[dict[str, Any]], case: Case) -> list[dict[str, Any]]:
        return [{**row, "case": case.id} for row in rows]

    batches = []
    for place in range(max(len(case.batches) for case in cases)):
        rows = [
            row
            for case in cases
            if place < len(case.batches)
            for row in mark(case.batches[place], case)
        ]
        batches += [rows] * times
    return Case(
        id=name,
        title=name,
        key=("case", *cases[0].key),
        columns=("case", *columns),
        decisions=(),
        initial=[row for case in cases for row in mark(case.initial, case)],
        batches=batches,
        expected=[row for case in cases for row in mark(case.expected, case)],
    )


def run_together(project: Project, spark: SparkSession, file_format: str) -> list[Case]:
    """Run all cases, one table per kind of key; returns the cases with the expected tables."""
    keys = sorted({case.key for case in CASES})
    tables = [
        together([case for case in CASES if case.key == key], f"replayed_{place}")
        for place, key in enumerate(keys)
    ]
    spark.sql(f"create schema if not exists {project.schema}")
    for case in tables:
        stage(spark, case, case.batches)
        adopt(project, spark, case, file_format)
        project.history(
            case.id,
            f"select * from staged_{case.id}",
            key=case.key,
            max_deleted_share=None,
            config={"file_format": file_format},
        )
    project.run(*(case.id for case in tables))
    return tables
