"""The generic tests of mirrors and logs: each passes on a valid table and fails on a broken one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.project import Project, Run, drop_schema

SCHEMA = "tests_mirror_tests"
TIME = "timestamp'2024-01-0{} 00:00:00 UTC'"


@dataclass(frozen=True)
class Broken:
    """A test, its arguments, the table as a query, and the expected number of failing rows."""

    test: str
    sentence: str
    table: str
    failures: int
    arguments: dict[str, Any] = field(default_factory=dict)
    column: str | None = None


def rows(columns: str, *values: str) -> str:
    return f"select * from values {', '.join(values)} as log ({columns})"


def networks(*values: str) -> str:
    return rows("id, v, deleted, networks_hx_id", *values)


def stations(*values: str) -> str:
    return rows("id, network_id, stations_hx_id, networks_hx_id", *values)


def ids(*values: str) -> str:
    return rows(
        "hx_id, mod_time", *(value.format(*map(TIME.format, range(1, 4))) for value in values)
    )


# The rows of the main table and of the referenced history.
NETWORKS = rows("id, v", "(1, 'a')", "(2, cast(null as string))")
HISTORY = networks("(1, 'a', false, 1)", "(2, null, false, 2)", "(3, 'gone', true, 3)")
MAIN = {"main": "source('broken', 'networks')", "key": "id", "id": "networks_hx_id"}
LINKS = {
    "references": [
        {
            "column": "network_id",
            "key": "id",
            "id": "networks_hx_id",
            "history": "source('broken', 'networks_hx')",
        }
    ]
}
# The mirror keeps `gone`; its fields have another order and wider types.
PLACES = (
    "select 1 as id, named_struct('c', date'2024-01-02', 'a', 1) as s,"
    " array(named_struct('b', 2)) as l, map('k', named_struct('b', 3)) as m"
)
PLACED = {"main": "source('broken', 'places')", "key": "id", "id": "places_hx_id"}


def places(s: str, b: int = 3) -> str:
    return (
        f"select 1 as id, named_struct({s}) as s, array(named_struct('gone', 1, 'b', 2)) as l,"
        f" map('k', named_struct('gone', 1, 'b', {b}L)) as m, false as deleted, 1 as places_hx_id"
    )


RIGHT = ("(1, 'old', false, 1)", "(1, 'a', false, 2)", "(2, null, false, 3)")
LINKED = "history_references_exist"
CASES = [
    Broken("mirrors_main", "the newest live rows are the main table", networks(*RIGHT), 0, MAIN),
    Broken(
        "mirrors_main",
        "a deleted item is not in the main table",
        networks(*RIGHT, "(3, 'x', false, 4)", "(3, 'x', true, 5)"),
        0,
        MAIN,
    ),
    Broken("mirrors_main", "a row is missing", networks(*RIGHT[:2]), 1, MAIN),
    Broken(
        "mirrors_main", "there is an extra row", networks(*RIGHT, "(3, 'x', false, 4)"), 1, MAIN
    ),
    Broken("mirrors_main", "NULL is not ''", networks(*RIGHT[:2], "(2, '', false, 3)"), 1, MAIN),
    Broken(
        "mirrors_main", "an older row is newest", networks(*RIGHT, "(1, 'old', false, 4)"), 1, MAIN
    ),
    Broken(
        "mirrors_main",
        "fields are compared by name",
        places("'a', 1L, 'gone', 'x', 'c', date'2024-01-02'"),
        0,
        PLACED,
    ),
    Broken(
        "mirrors_main",
        "a field differs",
        places("'a', 4294967297, 'gone', 'x', 'c', date'2024-01-02'"),
        1,
        PLACED,
    ),
    Broken(
        "mirrors_main",
        "a field of a map differs",
        places("'a', 1L, 'gone', 'x', 'c', date'2024-01-02'", b=4),
        1,
        PLACED,
    ),
    Broken("mirrors_main", "a field is missing", places("'a', 1L, 'gone', 'x'"), 1, PLACED),
    Broken(LINKED, "all links exist", stations("(1, 1, 1, 1)", "(2, null, 2, null)"), 0, LINKS),
    Broken(LINKED, "the item is unknown", stations("(1, 9, 1, null)"), 1, LINKS),
    Broken(LINKED, "the link references a missing row", stations("(1, 1, 1, 7)"), 1, LINKS),
    Broken(LINKED, "the link is another item's", stations("(1, 1, 1, 2)"), 1, LINKS),
    Broken(LINKED, "a link without a reference", stations("(1, null, 1, 2)"), 1, LINKS),
    Broken("ids_increase", "ids increase", ids("(1, {0})", "(2, {0})", "(4, {1})"), 0, {}, "hx_id"),
    Broken("ids_increase", "an id is repeated", ids("(1, {0})", "(1, {1})"), 1, {}, "hx_id"),
    Broken("ids_increase", "an id is NULL", ids("(1, {0})", "(null, {0})"), 1, {}, "hx_id"),
    Broken("ids_increase", "an id is 0", ids("(0, {0})", "(1, {0})"), 1, {}, "hx_id"),
    Broken(
        "ids_increase",
        "a greater id has an earlier time",
        ids("(1, {0})", "(2, {2})", "(3, {1})"),
        1,
        {},
        "hx_id",
    ),
]


def in_yml(place: int, case: Broken) -> dict[str, Any]:
    name = f"case_{place}"
    test = {f"dbt_history.{case.test}": {"name": f"{name}_test", "arguments": case.arguments}}
    if case.column:
        return {"name": name, "columns": [{"name": case.column, "data_tests": [test]}]}
    return {"name": name, "data_tests": [test]}


@pytest.fixture(scope="module")
def run(dbt_project: Project, spark: SparkSession, warehouse: Path) -> Iterator[Run]:
    """All cases in one `dbt test`; the tables are views, except for those of is_append_only."""
    spark.sql(f"create schema {SCHEMA}")
    spark.sql(f"create view {SCHEMA}.networks as {NETWORKS}")
    spark.sql(f"create view {SCHEMA}.networks_hx as {HISTORY}")
    spark.sql(f"create view {SCHEMA}.places as {PLACES}")
    for name, properties in (("right", "true"), ("open", "false")):
        table = f"{SCHEMA}.{name}"
        spark.sql(
            f"create table {table} (id bigint) using delta"
            f" tblproperties ('delta.appendOnly' = '{properties}')"
        )
        spark.sql(f"insert into {table} values (1)")
    spark.sql(f"delete from {SCHEMA}.open")
    names = ("networks", "networks_hx", "places")
    tables: list[dict[str, Any]] = [{"name": name} for name in names]
    for name in ("right", "open"):
        test = {"dbt_history.is_append_only": {"name": f"{name}_test"}}
        tables.append({"name": name, "data_tests": [test]})
    for place, case in enumerate(CASES):
        spark.sql(f"create view {SCHEMA}.case_{place} as {case.table}")
        tables.append(in_yml(place, case))
    sources = [{"name": "broken", "schema": SCHEMA, "tables": tables}]
    dbt_project.write("models/broken.yml", json.dumps({"sources": sources}))
    yield dbt_project.dbt("test", "--select", "source:broken", check=False)
    dbt_project.clear()
    drop_schema(spark, SCHEMA, warehouse)


@pytest.mark.parametrize(
    ("place", "case"),
    list(enumerate(CASES)),
    ids=[f"{case.test}: {case.sentence}" for case in CASES],
)
def test_the_number_of_failing_rows_is_the_number_of_violations(
    place: int, case: Broken, run: Run
) -> None:
    result = run.results[f"case_{place}_test"]
    assert result.failures == case.failures, result.message


def test_is_append_only_fails_on_a_table_that_can_be_or_was_changed(run: Run) -> None:
    assert run.results["right_test"].failures == 0
    assert run.results["open_test"].failures == 2, "the property, and the delete"
