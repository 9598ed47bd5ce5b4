"""What the generic tests and verify_history refuse, and the SQL that they render; no Spark."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError

from tests.support.rendering import Renderer

KEYED = ["periods_do_not_overlap", "one_active_version", "no_gap_between_versions"]


def model_node(name: str, **more: Any) -> dict[str, Any]:
    return {
        "unique_id": f"model.shop.{name}", "name": name, "resource_type": "model",
        "database": None, "schema": "golden", "alias": name, "config": {}, **more,
    }  # fmt: skip


def column_test(name: str, column: str, tested: str) -> dict[str, Any]:
    return {
        "unique_id": f"test.shop.{name}_{column}", "resource_type": "test", "config": {},
        "test_metadata": {"name": name}, "column_name": column,
        "depends_on": {"nodes": [f"model.shop.{tested}"]},
    }  # fmt: skip


def know(call: Renderer, *nodes: dict[str, Any], **context: Any) -> None:
    graph = {"nodes": {one["unique_id"]: one for one in nodes}, "sources": {}}
    call.context = {"graph": graph, "execute": True, **context}


def filtered(call: Renderer, name: str, *nodes: dict[str, Any]) -> str:
    """The rows that dbt gives a generic test with `where`."""
    test = {
        "unique_id": "test.shop.t", "resource_type": "test",
        "attached_node": f"model.shop.{name}", "config": {"where": "id > 1"},
        "depends_on": {"nodes": []},
    }  # fmt: skip
    know(call, model_node(name), *nodes, model=test)
    return f"(select * from golden.{name} where id > 1) dbt_subquery"


def commit(version: int, operation: str, **more: Any) -> dict[str, Any]:
    """A row of DESCRIBE HISTORY."""
    return {
        "version": version, "timestamp": f"2024-03-03 00:{version:02}:00", "operation": operation,
        "operationParameters": "{}", "operationMetrics": "{}", "userMetadata": None,
        "userName": "ann", **more,
    }  # fmt: skip


def batch(version: int, about: Any = None) -> dict[str, Any]:
    """The commit of a batch of a log."""
    record = {
        "dbt_history": "1", "batch": 1, "epoch": 0, "table_id": "a", "watermarks": {},
        "about": about or {},
    }  # fmt: skip
    return commit(version, "WRITE", userMetadata=json.dumps(record))


def entry(version: int, operation: str, said: Any = None, **metrics: int) -> dict[str, Any]:
    """An entry of `_history_entries`."""
    return {
        "version": version, "timestamp": "", "operation": operation, "parameters": {},
        "metrics": metrics, "record": None, "said": json.dumps(said) if said else None,
        "user": "ann",
    }  # fmt: skip


# The key of a table of versions


@pytest.mark.parametrize("says", ["tests", "constraint of a column", "constraint"])
def test_a_column_that_is_unique_is_no_key_of_a_table_of_versions(
    call: Renderer, says: str
) -> None:
    """
    customer_sk    customer_id    valid_from    valid_to
    1              A              March         NULL
    2              A              April         NULL        two open versions of A
    """
    primary: dict[str, Any] = {"type": "primary_key"}
    tests = [column_test(name, "customer_sk", "customers") for name in ("unique", "not_null")]
    said: dict[str, dict[str, Any]] = {
        "tests": {},
        "constraint of a column": {
            "columns": {"customer_sk": {"name": "customer_sk", "constraints": [primary]}}
        },
        "constraint": {"constraints": [{**primary, "columns": ["customer_sk"]}]},
    }
    customers = model_node("customers", **said[says])
    know(call, customers, *(tests if says == "tests" else []))
    table = call.table("customers")
    assert call("_key_of", relation=table, key=None, caller_name="changes") == ["customer_sk"]
    for test in KEYED:
        with pytest.raises(DbtRuntimeError) as refused:
            call(f"test_{test}", model=table, convention="validity")
        message = str(refused.value)
        assert f"dbt_history.{test}: no key is known" in message
        assert "said of the table by unique_key or meta.history.key" in message
        sql = call(f"test_{test}", model=table, convention="validity", key="customer_id")
        assert "`customer_id`" in sql
    with pytest.raises(DbtRuntimeError, match="history_join: no key is known"):
        call("history_join", tables={"a": table, "b": table}, convention="validity")
    settings = call(
        "_table_settings", node=customers, convention="validity", key=None,
        caller_name="verify_history",
    )  # fmt: skip
    assert settings["key"] == []


def test_a_column_of_the_period_is_no_part_of_the_key(call: Renderer) -> None:
    customers = model_node("customers", config={"unique_key": ["customer_id", "Valid_From"]})
    know(call, customers)
    for test in KEYED:
        with pytest.raises(DbtRuntimeError) as refused:
            call(f"test_{test}", model=call.table("customers"), convention="validity")
        message = str(refused.value)
        assert f"dbt_history.{test}: the key contains a column of the period: Valid_From" in message
    call.pretend_relations("customers")
    with pytest.raises(DbtRuntimeError, match="customers: the key names Valid_From, a column of"):
        call(
            "_maintained", table="customers", convention="validity", key=None,
            caller_name="verify_history",
        )  # fmt: skip
