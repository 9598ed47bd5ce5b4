"""Every generic test on every case of `generic_test_cases`, in one `dbt test`: failing rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.functional.generic_test_cases import CASES, GenericTestCase
from tests.support.project import Project, Run, drop_schema

SCHEMA = "tests_generic"
IDS = [f"{case.test}: {case.sentence}" for case in CASES]


def source_table(name: str, case: GenericTestCase) -> dict[str, Any]:
    """The case's table in yml, with its test; the test is named after the table."""
    arguments = dict(case.arguments)
    if case.expected is not None:
        arguments["expected"] = f"source('cases', '{name}_expected')"
    test = {f"dbt_history.{case.test}": {"name": f"{name}_test", "arguments": arguments}}
    config = {"config": {"meta": {"history": case.history}}} if case.history else {}
    return {"name": name, "data_tests": [test], **config}


@pytest.fixture(scope="module")
def run(dbt_project: Project, spark: SparkSession, warehouse: Path) -> Iterator[Run]:
    """All cases in one run. Their tables are views, which need no files."""
    spark.sql(f"create schema {SCHEMA}")
    tables: list[dict[str, Any]] = []
    for place, case in enumerate(CASES):
        name = f"case_{place}"
        spark.sql(f"create view {SCHEMA}.{name} as {case.table}")
        tables.append(source_table(name, case))
        if case.expected is not None:
            spark.sql(f"create view {SCHEMA}.{name}_expected as {case.expected}")
            tables.append({"name": f"{name}_expected"})
    sources = [{"name": "cases", "schema": SCHEMA, "tables": tables}]
    dbt_project.write("models/cases.yml", json.dumps({"sources": sources}))
    yield dbt_project.dbt("test", "--select", "source:cases", check=False)
    dbt_project.clear()
    drop_schema(spark, SCHEMA, warehouse)


@pytest.mark.parametrize(("place", "case"), list(enumerate(CASES)), ids=IDS)
def test_the_number_of_failing_rows_is_the_number_of_violations(
    place: int, case: GenericTestCase, run: Run
) -> None:
    result = run.results[f"case_{place}_test"]
    assert result.failures == case.failures, result.message
    assert result.status == ("fail" if case.failures else "pass")


def test_rows_match_in_ansi_mode_as_without(
    run: Run, spark: SparkSession, request: pytest.FixtureRequest
) -> None:
    request.addfinalizer(lambda: spark.conf.set("spark.sql.ansi.enabled", "false"))
    spark.conf.set("spark.sql.ansi.enabled", "true")
    for place, case in enumerate(CASES):
        if case.test == "matches_expected":
            compiled = run.results[f"case_{place}_test"].node.compiled_code
            assert spark.sql(compiled).count() == case.failures, case.sentence


def test_matches_expected_compiles_before_its_tables_are_built(project: Project) -> None:
    project.model("built_later", "select 1 as id", materialized="table")
    project.write(
        "models/_built_later.yml",
        "models: [{name: built_later, data_tests: [{dbt_history.matches_expected:"
        " {name: later, arguments: {expected: \"ref('built_later')\"}}}]}]",
    )

    compiled = project.dbt("compile", "--select", "later")

    assert "except all" in compiled.results["later"].node.compiled_code
