"""Cases of the area `history_migrations`, step by step, and all steps again at the end."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import col

from tests.support.project import Project
from tests.support.selection import selected
from tests.support.tables import data_frame

FOLDER = Path(__file__).parent / "cases/history_migrations"
ALL: list[dict[str, Any]] = [
    *(json.loads(path.read_text()) for path in sorted(FOLDER.glob("[A-Z]*.json"))),
    *json.loads((FOLDER / "assertions.json").read_text())["assertions"],
]
SCHEMA = "tests_migrations"
OPEN = "9999-12-31T23:59:59.999Z"
NEEDS_KEY = {
    "add_column_in_history_mode",
    "drop_column_in_history_mode",
    "history_to_soft_delete",
}
# Runs several operations in one invocation, so that Spark and dbt start only once.
RUN_STEPS = """
{% macro run_steps(steps) %}
    {% for step in steps %}
        {% do context['dbt_history'][step.operation](**step.arguments) %}
    {% endfor %}
{% endmacro %}
"""


def rules(case: dict[str, Any]) -> list[str]:
    """What the case touches; these cases do not name their rules."""
    steps = [step["op"] + " refused" * step.get("refused", False) for step in case["steps"]]
    is_empty = not case["initial"]["rows"]
    return [*steps, *["no rows"] * is_empty, f"{len(case['key'])} key columns"]


CASES = selected([{**case, "rules": rules(case)} for case in ALL])


def operation(case: dict[str, Any], step: dict[str, Any]) -> dict[str, Any]:
    """The run-operation for a step."""
    arguments = {name: value for name, value in step.items() if name not in ("op", "refused")}
    arguments["table"] = f"{SCHEMA}.{case['id']}"
    if "from" in arguments:
        del arguments["from"]
        arguments["to"] = f"{SCHEMA}.{case['id']}_history"
    if step["op"] in NEEDS_KEY:
        arguments["key"] = case["key"]
    return {"operation": step["op"], "arguments": arguments}


def write_table(spark: SparkSession, case: dict[str, Any]) -> None:
    columns, rows = case["initial"]["columns"], case["initial"]["rows"]
    named = [
        {name: instant(cell) if type_ == "timestamp" else cell for name, type_, cell in cells}
        for cells in (zip(columns, columns.values(), row) for row in rows)
    ]
    table = f"{SCHEMA}.{case['id']}"
    data_frame(spark, named, columns).write.format("delta").saveAsTable(table)


def instant(cell: str | None) -> datetime | None:
    return datetime.fromisoformat((OPEN if cell == "TMAX" else cell).rstrip("Z")) if cell else None


def shown(cell: Any, type_: str) -> Any:
    """A time in Spark's text form: Python's range of times does not include the least one."""
    if type_ != "timestamp" or cell is None:
        return cell
    text = str(instant(cell))
    return text.rstrip("0") if "." in text else text


def content(spark: SparkSession, table: str) -> tuple[dict[str, str], Counter[str]]:
    """The columns of a table with their types, and its rows by column name, times as text."""
    frame = spark.table(f"{SCHEMA}.{table}")
    types = {field.name: field.dataType.simpleString() for field in frame.schema}
    texts = [
        col(name).cast("string").alias(name) if type_ == "timestamp" else col(name)
        for name, type_ in types.items()
    ]
    rows = [sorted(row.asDict().items()) for row in frame.select(*texts).collect()]
    return types, Counter(map(repr, rows))


def wanted(case: dict[str, Any], part: str) -> tuple[dict[str, str], Counter[str]]:
    columns, rows = case[part]["columns"], case[part]["rows"]
    named = [
        sorted((name, shown(cell, type_)) for (name, type_), cell in zip(columns.items(), row))
        for row in rows
    ]
    return columns, Counter(map(repr, named))


@pytest.fixture(scope="module")
def tables(dbt_project: Project, spark: SparkSession) -> dict[str, Any]:
    """Each case's table after its steps, and after all of its steps again."""
    spark.sql(f"create schema {SCHEMA}")
    dbt_project.write("macros/run_steps.sql", RUN_STEPS)
    for case in CASES:
        write_table(spark, case)

    def run(steps: list[dict[str, Any]], check: bool = True) -> bool:
        arguments = json.dumps({"steps": steps})
        return dbt_project.dbt(
            "run-operation", "run_steps", "--args", arguments, check=check
        ).success

    refused = {}
    for place in range(max(len(case["steps"]) for case in CASES)):
        due = [(case, case["steps"][place]) for case in CASES if place < len(case["steps"])]
        run([operation(case, step) for case, step in due if not step.get("refused")])
        for case, step in due:
            if step.get("refused"):
                before = content(spark, case["id"])
                succeeded = run([operation(case, step)], check=False)
                refused[case["id"]] = not succeeded and content(spark, case["id"]) == before
    found = {case["id"]: content(spark, result_of(case)) for case in CASES}
    sources = {case["id"]: content(spark, case["id"]) for case in CASES}
    # A round trip cannot be repeated as a whole: only its last step is.
    repeats = [
        operation(case, step)
        for case in CASES
        for step in (
            case["steps"][-1:] if len({s["op"] for s in case["steps"]}) > 1 else case["steps"]
        )
        if not step.get("refused")
    ]
    run(repeats)
    repeated = {case["id"]: content(spark, result_of(case)) for case in CASES}
    dbt_project.clear()
    spark.sql(f"drop schema {SCHEMA} cascade")
    return {"found": found, "sources": sources, "refused": refused, "repeated": repeated}


def result_of(case: dict[str, Any]) -> str:
    is_copy = any(step["op"] == "copy_table_to_history_mode" for step in case["steps"])
    return f"{case['id']}_history" if is_copy else str(case["id"])


@pytest.mark.parametrize("case", CASES, ids=[f"{case['id']} {case['title']}" for case in CASES])
def test_steps_end_in_the_expected_table(case: dict[str, Any], tables: dict[str, Any]) -> None:
    types, rows = tables["found"][case["id"]]
    expected_types, expected_rows = wanted(case, "expected")

    assert types == expected_types
    assert rows == expected_rows
    assert tables["repeated"][case["id"]] == (types, rows), "the same steps once more"


@pytest.mark.parametrize(
    "case", [case for case in CASES if any(step.get("refused") for step in case["steps"])],
    ids=lambda case: case["id"],
)  # fmt: skip
def test_a_refused_step_changes_nothing(case: dict[str, Any], tables: dict[str, Any]) -> None:
    assert tables["refused"][case["id"]] is True


@pytest.mark.parametrize(
    "case", [case for case in CASES if result_of(case) != case["id"]], ids=lambda case: case["id"]
)
def test_a_copy_does_not_change_its_source(case: dict[str, Any], tables: dict[str, Any]) -> None:
    assert tables["sources"][case["id"]] == wanted(case, "initial")
