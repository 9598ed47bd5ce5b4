"""Key and convention are said once: by the table's model, source, constraints or tests."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.project import Project

CUSTOMERS = [(1, "Bonn"), (2, "Kiel")]
PRINT_KEYS = """
{% macro print_keys() %}
    {% for node in graph.nodes.values() | list + graph.sources.values() | list
        if node.resource_type in ['model', 'source'] %}
        {% do print('KEY ' ~ node.name ~ ' ' ~ tojson(dbt_history._key_of_node(node))) %}
    {% endfor %}
{% endmacro %}
"""


def test_what_says_the_key_of_a_table(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """A table each; of several that say a key, the first in this order counts."""
    both = ["unique", "not_null"]
    tested = [{"name": "id", "data_tests": both}]
    primary = {"type": "primary_key", "columns": ["region", "Id"]}
    models: dict[str, dict[str, Any]] = {
        "named": {"unique_key": ["a b", "c"], "meta": {"history": {"key": "other"}}},
        "in_meta": {"meta": {"history": {"key": "id"}}},
        "constrained": {},
        "column_constrained": {},
        "tested": {},
        "one_test": {},
        "two_candidates": {},
        "filtered": {},
    }
    for name, config in models.items():
        project.model(name, "select 1 as id", **config)
    described = [
        {"name": "constrained", "constraints": [primary], "columns": tested},
        {"name": "column_constrained",
         "columns": [{"name": "id", "constraints": [{"type": "primary_key"}]}]},
        {"name": "tested", "columns": [*tested, {"name": "city", "data_tests": ["not_null"]}]},
        {"name": "one_test", "columns": [{"name": "id", "data_tests": ["unique"]}]},
        {"name": "two_candidates", "columns": [
            {"name": name, "data_tests": both} for name in ("id", "mail")
        ]},
        {"name": "filtered", "columns": [
            {"name": "id", "data_tests": [{"unique": {"config": {"where": "id > 1"}}}, "not_null"]}
        ]},
    ]  # fmt: skip
    source = {"name": "shop", "schema": "x", "tables": [{"name": "orders", "columns": tested}]}
    project.write(
        "models/said.yml",
        json.dumps({"version": 2, "models": described, "sources": [source]}),
    )
    project.write("macros/print_keys.sql", PRINT_KEYS)

    project.dbt("run-operation", "print_keys")

    lines = [line.split(" ", 2) for line in capsys.readouterr().out.splitlines() if "KEY " in line]
    assert {name: json.loads(key) for _, name, key in lines} == {
        "named": ["a b", "c"],
        "in_meta": ["id"],
        "constrained": ["region", "Id"],
        "column_constrained": ["id"],
        "tested": ["id"],
        "one_test": [],
        "two_candidates": [],
        "filtered": [],
        "orders": ["id"],
    }


@pytest.mark.thorough
def test_macros_and_tests_take_key_and_convention_from_the_model(project: Project) -> None:
    """The customers say their key; the history its key and convention; nobody says them again."""
    spark = project.spark
    spark.sql(f"create schema if not exists {project.schema}")
    spark.sql(
        f"create table {project.table('customers')} (`Customer-Id` bigint, city string) using delta"
        " tblproperties ('delta.enableChangeDataFeed' = 'true')"
    )
    spark.sql(f"insert into {project.table('customers')} values (1, 'Bonn'), (2, 'Kiel')")
    key, customers = "Customer-Id", "source('shop', 'customers')"
    project.history(
        "h",
        f"select * from {{{{ dbt_history.batch_rows(dbt_history.changes({customers})) }}}}",
        key=key,
        convention="fivetran",
    )
    for name, rows in (("customers_hx", "hx_rows"), ("customers_history", "event_rows")):
        project.model(
            name, f"select * from {{{{ dbt_history.{rows}({customers}) }}}}",
            materialized="history_append",
        )  # fmt: skip
    other = {"convention": "dbt_snapshot"}
    project.model("v", f"select * from {{{{ {customers} }}}}", materialized="history",
                  unique_key=key, meta={"history": other})  # fmt: skip
    project.model(
        "joined",
        "select `Customer-Id`, h.city as city, v.city as same from"
        " {{ dbt_history.history_join({'h': ref('h'), 'v': ref('v')}) }} as both",
    )
    names = (
        "active_matches_open_end", "one_active_version", "period_is_well_formed",
        "periods_do_not_overlap", "no_gap_between_versions",
    )  # fmt: skip
    mirrored = {"dbt_history.mirrors_main": {"arguments": {"main": customers}}}
    described = [
        {"name": "h", "data_tests": [f"dbt_history.{name}" for name in names]},
        {"name": "v", "data_tests": [f"dbt_history.{name}" for name in names[1:]]},
        {"name": "customers_hx", "data_tests": [mirrored]},
    ]
    column = {"name": key, "quote": True, "constraints": [{"type": "primary_key"}]}
    source = {
        "name": "shop", "schema": project.schema,
        "tables": [{"name": "customers", "columns": [column]}],
    }  # fmt: skip
    project.write(
        "models/said.yml", json.dumps({"version": 2, "models": described, "sources": [source]})
    )

    run = project.dbt("build")

    tests = [name for name, found in run.results.items() if found.node.resource_type == "test"]
    assert len(tests) == len(names) + len(names) - 1 + 1
    assert {(row[key], row["city"]) for row in project.rows("h")} == set(CUSTOMERS)
    assert {(row[key], row["city"], row["same"]) for row in project.rows("joined")} == {
        (id_, city, city) for id_, city in CUSTOMERS
    }
    assert [row["customers_hx_id"] for row in project.rows("customers_hx")] == [1, 2]
    assert len(project.rows("customers_history")) == len(CUSTOMERS)


def test_a_key_that_nobody_says_is_asked_for(project: Project) -> None:
    """Before anything is written; the ways to say it are named."""
    project.model("main", "select 1L as id, 'a' as v", materialized="table")
    project.model(
        "log", "select * from {{ dbt_history.changes(ref('main')) }}",
        materialized="history_append",
    )  # fmt: skip
    project.model(
        "batch", "select * from {{ dbt_history.batch_rows('feed', 'id') }}", materialized="view"
    )
    project.run("main")

    run = project.run("log", "batch", check=False)

    assert (
        "key is empty: name the columns that tell rows apart, or let the table say them" in run.log
    )
    assert "a primary key constraint, or the tests unique and not_null of one column" in run.log
    assert "dbt_history.batch_rows: the model has no convention" in run.log
    assert not project.spark.catalog.tableExists(project.table("log"))


@pytest.mark.thorough
def test_filtered_tests_and_deferred_refs_take_key_and_convention_from_the_model(
    project: Project, tmp_path: Path
) -> None:
    """The text of a filtered table, and the table of another environment, are the model's, too."""
    project.model("v", "select 1L as id, 'a' as city", materialized="history", unique_key="id")
    project.model("log", "select 1L as id, 2L as x", materialized="history_append")
    where = {"config": {"where": "id > 0"}}
    filtered = [
        {f"dbt_history.{name}": where} for name in ("one_active_version", "period_is_well_formed")
    ]
    described = [
        {"name": "v", "data_tests": filtered},
        {"name": "log", "data_tests": [{"dbt_history.is_append_only": where}]},
    ]
    project.write("models/said.yml", json.dumps({"models": described}))

    run = project.dbt("build", check=False)

    failed = [name for name, found in run.results.items() if found.status == "error"]
    assert [name.split("_log_")[0] for name in failed] == ["dbt_history_is_append_only"]
    assert "dbt_history.is_append_only: the test is of a whole table" in run.log
    assert "way out: remove where from the test, or set it to ''" in run.log

    where["config"] = {"where": ""}
    project.write("models/said.yml", json.dumps({"models": described}))
    project.dbt("test", "--write-json")

    shutil.copytree(project.path / "target", tmp_path / "state")
    project.model("v", "select 1L as id", materialized="history", unique_key="id", schema="other")
    reader = "dbt_history.as_of(ref('v'), 'current_timestamp()')"
    project.model("now", f"select city from {{{{ {reader} }}}} as v")
    project.dbt("run", "--select", "now", "--defer", "--state", str(tmp_path / "state"))


@pytest.mark.thorough
def test_models_of_histories_have_unit_tests_in_the_short_form(project: Project) -> None:
    """The rows of the input are inserts; only the columns that are named are compared."""
    project.model("main", "select 1L as id, 'a' as city", materialized="table")
    rows = "dbt_history.batch_rows(dbt_history.changes(ref('main'), 'id'), 'id', 'validity')"
    staged = (
        "select 'upsert' as _stage, id as _batch, id, city, timestamp'2024-01-01' as valid_from,"
        " cast(null as timestamp) as valid_to from {{ ref('main') }}"
        " where id > {{ dbt_history.last_batch() }}"
    )
    mirror = "dbt_history.hx_rows(ref('main'), 'id', [{'column': 'id', 'history': ref('main')}])"
    batch = {"materialized": "history_batch", "meta": {"history": "validity"}}
    for name, sql, config in (
        ("v", "select id, upper(city) as city from {{ ref('main') }}", {"materialized": "history"}),
        ("staged", staged, batch),
        ("events", f"select * from {{{{ {rows} }}}}", batch),
        ("main_hx", f"select * from {{{{ {mirror} }}}}", {"materialized": "history_append"}),
        (
            "log",
            "select * from {{ dbt_history.event_rows(ref('main'), 'id') }}",
            {"materialized": "history_append"},
        ),
        ("now", "select * from {{ dbt_history.as_of(ref('v'), 'now', 'validity') }}", {}),
    ):
        project.model(name, sql, unique_key="id", **config)
    project.run("main", "v")
    given = [{"id": 1, "city": "Bonn"}, {"id": 2, "city": "Rome"}]
    periods = [
        {"id": 1, "city": "Bonn", "valid_from": "2024-01-01", "valid_to": None},
        {"id": 2, "city": "Rome", "valid_from": "2024-01-01", "valid_to": "2024-02-01"},
    ]
    first = {"_stage": "upsert", "valid_from": "1970-01-01", "valid_to": None}
    cases: dict[str, tuple[str, Any, Any]] = {
        "v": ("main", given, [{"id": 1, "city": "BONN"}, {"id": 2, "city": "ROME"}]),
        "staged": ("main", given, [{"_stage": "upsert", **row} for row in given]),
        "events": ("main", given, [{**first, **row} for row in given]),
        "main_hx": ("main", given, given),
        "log": ("main", given, given),
        "now": ("v", periods, given[:1]),
    }
    tests = [
        {
            "name": f"{model}_is_right",
            "model": model,
            "given": [{"input": f"ref('{source}')", "rows": rows}],
            "expect": {"rows": expected},
        }
        for model, (source, rows, expected) in cases.items()
    ]
    project.write("models/units.yml", json.dumps({"unit_tests": tests}))

    run = project.dbt("test", "--select", "test_type:unit", check=False)

    statuses = {name: result.status for name, result in run.results.items()}
    assert statuses == {f"{model}_is_right": "pass" for model in cases}, run.log
