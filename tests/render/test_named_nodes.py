"""Which node a name or a relation belongs to; no Spark."""

from __future__ import annotations

from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError

from tests.support.rendering import Renderer


def node(unique_id: str, alias: str, schema: str = "golden", **more: Any) -> dict[str, Any]:
    return {
        "unique_id": unique_id,
        "name": unique_id.split(".")[2],
        "resource_type": unique_id.split(".")[0],
        "database": None,
        "schema": schema,
        "alias": alias,
        "config": {
            "materialized": "history_batch",
            "unique_key": "id",
            "meta": {"history": "validity"},
        },
        **more,
    }


V1 = node("model.shop.customers.v1", "customers_v1")
V2 = node("model.shop.customers.v2", "customers_v2")
ORDERS = node("model.shop.orders", "orders")


@pytest.fixture
def versions(call: Renderer) -> Renderer:
    """The macros in a project that has two versions of the model customers."""
    know(call, V1, V2, ORDERS)
    call.pretend_relations("customers_v1", "customers_v2", "orders")
    call.pretend_answers({"describe": []})
    return call


def know(call: Renderer, *nodes: dict[str, Any], **context: Any) -> None:
    graph = {"nodes": {one["unique_id"]: one for one in nodes}, "sources": {}}
    call.context = {"graph": graph, "execute": True, **context}


def tables(call: Renderer, table: Any) -> list[str]:
    found = call("_maintained", table=table, convention=None, key=None, caller_name="rewind")
    return [one["relation"].identifier for one in found]


def test_a_name_that_two_versions_of_a_model_have_is_refused_with_their_tables(
    versions: Renderer,
) -> None:
    for macro, arguments in (
        ("_maintained", {"table": "customers", "convention": None, "key": None}),
        ("_maintained", {"table": ["orders", "customers"], "convention": None, "key": None}),
        ("_history_named", {"table": "customers"}),
    ):
        with pytest.raises(DbtRuntimeError) as refused:
            versions(macro, caller_name="rewind", **arguments)
        message = str(refused.value)
        assert "dbt_history.rewind: several nodes of the project have this name" in message
        assert "expected: one of golden.customers_v1, golden.customers_v2" in message
        assert "way out: name the table as schema.table" in message


def test_two_versions_of_a_model_are_told_apart_by_their_tables(versions: Renderer) -> None:
    assert tables(versions, "golden.customers_v2") == ["customers_v2"]
    assert tables(versions, "model.shop.customers.v2") == ["customers_v2"]
    for name in ("golden.customers_v2", "customers_v2"):
        found = versions("_history_named", table=name, caller_name="suspend_history")
        assert found.identifier == "customers_v2"


def test_all_takes_each_version_of_a_model_once(versions: Renderer) -> None:
    assert tables(versions, "all") == ["customers_v1", "customers_v2", "orders"]


def test_the_name_of_a_model_precedes_the_alias_of_another(versions: Renderer) -> None:
    know(versions, node("model.shop.stg_orders", "orders", "raw"), ORDERS)
    found = versions("_history_named", table="orders", caller_name="suspend_history")
    assert found.schema == "golden"
