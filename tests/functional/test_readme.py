"""Run the README's questions, the documented example, and the smallest model of batches."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.render.test_readme import QUESTIONS
from tests.support.markdown import blocks, page, table_after
from tests.support.project import Project
from tests.support.staging import OPEN, stage
from tests.support.tables import assert_same_rows

EXAMPLE = page("docs/examples.md")
BATCHES = page("docs/guides/batches.md")
TYPES = {
    "id": "int",
    "col1": "string",
    "col2": "string",
    "_fivetran_synced": "timestamp",
    "_fivetran_start": "timestamp",
    "_fivetran_end": "timestamp",
    "_fivetran_active": "boolean",
}


def instant(cell: str) -> datetime:
    """`T5-1`: five minutes after the first instant, less a millisecond."""
    if cell == "open":
        return OPEN
    minutes, _, before = cell.removeprefix("T").partition("-")
    time = datetime(2024, 1, 1) + timedelta(minutes=int(minutes))
    return time - timedelta(milliseconds=1) if before else time


def version(row: dict[str, str]) -> dict[str, Any]:
    """A row of one of the example's tables."""
    return {
        "id": int(row["id"]),
        "col1": row["col1"],
        "col2": row["col2"],
        "_fivetran_synced": instant(row["synced"]),
        "_fivetran_start": instant(row["start"]),
        "_fivetran_end": instant(row["end"]),
        "_fivetran_active": row["active"] == "true",
    }


def update_row(row: dict[str, str]) -> dict[str, Any]:
    """A row of the update file: `~` marks cells that keep their value."""
    kept = [name for name in ("col1", "col2") if row[name] == "~"]
    staged = {**version(row), **dict.fromkeys(kept)}
    return {**staged, "_stage": "update", "_batch": 2, "_unmodified": kept}


def after(words: str) -> list[dict[str, Any]]:
    return [version(row) for row in table_after(EXAMPLE, words)]


@pytest.mark.thorough
def test_the_documented_example_gives_the_tables_it_shows(project: Project) -> None:
    first = [{**row, "_stage": "upsert", "_batch": 1} for row in after("**After batch 1**")]
    updates = [update_row(row) for row in table_after(EXAMPLE, "The update file contains")]
    earliest = [
        {"_stage": "earliest_start", "_batch": 2, "id": 1, "_fivetran_start": instant("T3")},
        {"_stage": "earliest_start", "_batch": 2, "id": 2, "_fivetran_start": instant("T4")},
    ]

    project.history("h", stage(project, "story", first, TYPES))
    project.run("h")
    assert_same_rows(project.rows("h"), after("**After batch 1**"), list(TYPES))

    stage(project, "story", first + earliest, TYPES)
    project.history("h2", "select * from story")
    project.run("h2")
    assert_same_rows(project.rows("h2"), after("**Batch 2** starts with"), list(TYPES))

    stage(project, "story", first + earliest + updates, TYPES)
    project.run("h")
    assert_same_rows(project.rows("h"), after("**After batch 2**"), list(TYPES))


def test_the_smallest_model_keeps_every_version(project: Project) -> None:
    sql = blocks(BATCHES, "sql")[0]
    schema = project.schema.removeprefix("tests_")
    project.write("models/customers.sql", sql.replace("config(", f"config(schema='{schema}', ", 1))
    project.model(
        "staged_customers",
        """
        select 'upsert' as _stage, 1L as _batch, 7 as customer_id, 'Ada' as name,
            timestamp'2024-01-01 00:00:00 UTC' as valid_from, cast(null as timestamp) as valid_to
        union all
        select 'upsert', 2L, 7, 'Ada L.', timestamp'2024-02-01 00:00:00 UTC', null
        """,
        materialized="table",
    )

    project.run("staged_customers", "customers")

    assert_same_rows(
        project.rows("customers"),
        [
            {
                "customer_id": 7,
                "name": "Ada",
                "valid_from": datetime(2024, 1, 1),
                "valid_to": datetime(2024, 2, 1),
            },
            {
                "customer_id": 7,
                "name": "Ada L.",
                "valid_from": datetime(2024, 2, 1),
                "valid_to": None,
            },
        ],
        ["customer_id", "name", "valid_from", "valid_to"],
    )


@pytest.mark.thorough
def test_the_five_questions_of_the_readme_have_answers(project: Project) -> None:
    for name, column in {"customer_history": "city", "contract_history": "fee"}.items():
        project.model(
            name,
            f"""
            select customer_id, {column}, at from values
                (1, 'a', timestamp'2024-01-10 00:00:00 UTC'),
                (1, 'b', timestamp'2024-03-03 00:00:00 UTC') as rows(customer_id, {column}, at)
            """,
            materialized="history",
            unique_key="customer_id",
            meta={"history": {"updated_at": "at"}},
        )
    names = [f"question_{number}" for number in range(1, 6)]
    for name, query in zip(names, QUESTIONS, strict=True):
        project.model(name, f"select * from {query} as answer", materialized="table")

    project.run("customer_history", "contract_history")
    project.run(*names)

    assert [row["city"] for row in project.rows("question_1")] == ["b"]
    assert [row["city"] for row in project.rows("question_2")] == ["a"]
    kinds = [row["_change_type"] for row in project.rows("question_3")]
    assert sorted(kinds) == ["update_postimage", "update_preimage"]
    (run,) = project.rows("question_4")
    assert (run["table"], run["inserted"], run["commits"]) == ("customer_history", 2, 1)
    together = [(row["a"]["city"], row["b"]["fee"]) for row in project.rows("question_5")]
    assert sorted(together) == [("a", "a"), ("b", "b")]
