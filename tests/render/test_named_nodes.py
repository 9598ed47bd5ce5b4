"""Which node a name or a relation belongs to; no Spark."""

from __future__ import annotations

import re
from typing import Any

import pytest
from dbt_common.clients.jinja import BaseMacroGenerator
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


def convention(call: Renderer, relation: Any) -> Any:
    found = call("_convention_of", relation=relation, convention=None, caller_name="as_of")
    return found if isinstance(found, str) else found["name"]


def test_a_deferred_table_has_the_convention_and_key_of_its_model(call: Renderer) -> None:
    deferred = {"database": None, "schema": "production", "alias": "Customers"}
    customers = node("model.shop.customers", "customers", "dev", defer_relation=deferred)
    know(call, ORDERS, customers)

    production = call.relation.create(schema="production", identifier="customers")
    assert convention(call, production) == "validity"
    assert call("_key_of", relation=production, key=None, caller_name="latest") == ["id"]
    assert convention(call, call.relation.create(schema="other", identifier="customers")) == (
        "fivetran"
    )


def test_the_table_of_a_model_precedes_the_deferred_table_of_another(call: Renderer) -> None:
    own = {"materialized": "history_batch", "meta": {"history": "naksha"}}
    deferred = {"schema": "golden", "alias": "orders"}
    know(
        call,
        node("model.shop.customers", "customers", "dev", defer_relation=deferred),
        {**ORDERS, "config": own},
    )
    assert convention(call, call.table("orders")) == "naksha"


def test_the_node_of_a_table_is_found_with_one_call_in_a_project_of_thousands(
    call: Renderer, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    original = BaseMacroGenerator.call_macro

    def counted(macro: BaseMacroGenerator, *args: Any, **kwargs: Any) -> Any:
        calls.append(macro.get_name())
        return original(macro, *args, **kwargs)

    monkeypatch.setattr(BaseMacroGenerator, "call_macro", counted)
    others = [node(f"model.shop.m{number}", f"m{number}") for number in range(3000)]
    know(call, *others, node("model.shop.customers", "customers"), ORDERS)

    found = call("_node_of_relation", relation=call.table("Customers"))

    assert found["unique_id"] == "model.shop.customers"
    assert calls == ["_node_of_relation"]


@pytest.mark.parametrize(
    ("said", "starts"),
    [
        ({"convention": "validity", "start": "recorded_from", "end": "recorded_to"},
         "`recorded_from` <= timestamp'2024-04-30"),
        ("fivetran", "`_fivetran_start` <= timestamp'2024-04-30"),
        (None, "`valid_from` <= timestamp'2024-04-30"),
    ],
)  # fmt: skip
def test_what_was_known_is_read_by_the_convention_of_the_model(
    call: Renderer, said: Any, starts: str
) -> None:
    know(call, node("model.shop.prices", "prices", config={"meta": {"history": said}}))
    call.pretend_answers({"describe": []})
    arguments = {
        "relation": call.table("prices"), "valid_at": "2024-03-15", "known_at": "2024-04-30",
        "valid": {"start": "holds_from", "end": "holds_to"},
    }  # fmt: skip
    sql = call("bitemporal", **arguments)
    assert starts in sql
    assert "`holds_from` <= timestamp'2024-03-15" in sql
    given = call("bitemporal", **arguments, known="dbt_snapshot")
    assert "`dbt_valid_from` <= timestamp'2024-04-30" in given
    assert starts not in given


@pytest.mark.parametrize("relation", ["table", "text"])
def test_one_period_is_not_read_as_two_axes(call: Renderer, relation: str) -> None:
    know(call, node("model.shop.other", "other"))
    with pytest.raises(DbtRuntimeError) as refused:
        call(
            "bitemporal",
            relation=call.table("prices") if relation == "table" else "(select 1)",
            valid_at="2024-03-15",
            known_at="2024-04-30",
            valid={"start": "Valid_From", "end": "valid_to"},
        )
    message = str(refused.value)
    assert "dbt_history.bitemporal: valid and known are the same period" in message
    assert "way out: give the convention of the history as known" in message


def test_before_dbt_runs_the_axes_of_a_ref_are_not_compared(call: Renderer) -> None:
    know(call, execute=False)
    sql = call(
        "bitemporal", relation=call.table("prices"), valid_at="2024-03-15", known_at=7,
        valid="validity",
    )  # fmt: skip
    assert "golden.prices" in sql


@pytest.mark.parametrize("log", ["hx", "events"])
def test_before_dbt_runs_the_key_that_a_log_records_is_not_asked_for(
    call: Renderer, log: str
) -> None:
    arguments = {
        "relation": call.table("customers_log"), "at": "2024-03-15",
        "convention": {"convention": log},
    }  # fmt: skip
    know(call, execute=False)
    assert "golden.customers_log" in call("as_of", **arguments)
    know(call)
    with pytest.raises(DbtRuntimeError, match="a log is read by the key of its items"):
        call("as_of", **arguments)


@pytest.mark.parametrize("schema", ["golden", "production"])
def test_a_filtered_table_of_a_generic_test_has_the_convention_and_key_of_its_model(
    call: Renderer, schema: str
) -> None:
    customers = {**ORDERS, "defer_relation": {"schema": "production", "alias": "orders"}}
    test = {
        "unique_id": "test.shop.t",
        "resource_type": "test",
        "attached_node": ORDERS["unique_id"],
        "config": {"where": "id > 1"},
        "depends_on": {"nodes": [ORDERS["unique_id"], V1["unique_id"]]},
    }
    know(call, customers, V1, model=test)
    filtered = f"(select * from `{schema}`.`orders` where id > 1) dbt_subquery"

    assert convention(call, filtered) == "validity"
    assert call("_key_of", relation=filtered, key=None, caller_name="latest") == ["id"]
    assert convention(call, "(select * from golden.orders_2 where id > 1) dbt_subquery") == (
        "fivetran"
    )


def test_a_unit_test_says_that_dbt_hides_the_settings_of_models(call: Renderer) -> None:
    unit_test = {"unique_id": "unit_test.shop.t", "resource_type": "unit_test", "config": {}}
    call.context = {"graph": {}, "execute": True, "model": unit_test}
    relation = call.table("__dbt__cte__orders")
    for macro, arguments in (
        ("_own_settings", {"key": None, "convention": None}),
        ("_key_of", {"relation": relation, "key": None, "or_own": True}),
    ):
        with pytest.raises(DbtRuntimeError) as refused:
            call(macro, caller_name="changes", **arguments)
        assert "dbt's unit tests do not show the settings of models" in str(refused.value)
        assert "as an argument of the call in the model" in str(refused.value)
    assert call("_key_of", relation=relation, key="id", caller_name="changes") == ["id"]


def test_a_changeset_pairs_the_versions_by_the_key_of_the_model(call: Renderer) -> None:
    call.pretend_answers({"describe": []})

    def keys(node: dict[str, Any], relation: Any = None, **key: Any) -> list[str]:
        know(call, node)
        found = call(
            "changeset", relation=relation or call.table("orders"), from_at="2024-03-01",
            to_at="2024-04-01", **key,
        )  # fmt: skip
        return re.findall(r"partition by (.*), `_changed_at`", found)

    assert keys(ORDERS) == ["`id`"]
    assert keys(ORDERS, key="part") == ["`part`"]
    assert keys(ORDERS, key=[]) == []
    assert keys(ORDERS, relation="golden.orders") == []
    assert keys(node("model.shop.others", "others")) == []
    # A unique column identifies a version.
    named = {"meta": {"history": {"convention": "validity", "key": ["id", "part"]}}}
    assert keys({**ORDERS, "config": named}) == ["`id`, `part`"]
    assert keys({**ORDERS, "config": {"meta": {"history": "validity"}}}) == []
    for unique_key, expected in (
        (["id", "part"], ["`id`, `part`"]), ("id", ["`id`"]), ("concat(id, part)", []),
    ):  # fmt: skip
        snapshot = node("snapshot.shop.orders", "orders", config={"unique_key": unique_key})
        assert keys(snapshot) == expected


def test_a_changeset_of_a_log_pairs_by_its_key_unless_it_is_given(call: Renderer) -> None:
    reader = {"log": {"key": ["id"]}}
    for key, expected in ((None, ["id"]), ("part", ["part"]), ([], [])):
        assert call("_key_of_changes", relation="golden.log", key=key, reader=reader) == expected


def test_a_changeset_in_a_unit_test_needs_its_key(call: Renderer) -> None:
    unit_test = {"unique_id": "unit_test.shop.t", "resource_type": "unit_test", "config": {}}
    call.context = {"graph": {}, "execute": True, "model": unit_test}
    given = {"relation": call.table("__dbt__cte__orders"), "convention": "validity"}
    given |= {"from_at": "2024-03-01", "to_at": "2024-04-01"}
    with pytest.raises(DbtRuntimeError, match="changeset: dbt's unit tests do not show"):
        call("changeset", **given)
    assert "update_postimage" in call("changeset", key="id", **given)
    assert "update_postimage" not in call("changeset", key=[], **given)


def test_one_table_is_a_list_of_one(call: Renderer) -> None:
    know(call)
    table = call.table("customers_hx")
    for macro, argument in (("history_runs", "tables"), ("history_tuple", "collections")):
        expected = call(macro, **{argument: [table]})
        assert call(macro, **{argument: table}) == expected, macro
    call.context["execute"] = False
    for tables in (table, [table], {"main": table, "key": "id"}):
        assert "trans_id" in call("core_temp_history", tables=tables)
    call.pretend_relations()
    know(call)
    nothing = call("history_runs", tables="golden.none")
    assert "from values\n        (null, null, " in nothing
    assert "where `invocation_id` is not null" in nothing


@pytest.mark.parametrize("execute", [True, False])
def test_arguments_that_name_no_tables_are_refused(call: Renderer, execute: bool) -> None:
    know(call, execute=execute, model=ORDERS, this=call.table("orders"))
    table = call.table("customers")
    link = "expected: references such as [{'column': 'network_id', 'history': ref("
    for macro, arguments, expected in (
        ("history_join", {"tables": [table, table]}, "{'customers': ref('customer_history')"),
        ("hx_rows", {"main": table, "key": "id", "references": "stations"}, link),
        ("hx_rows", {"main": table, "key": "id", "references": [table]}, link),
        ("hx_rows", {"main": table, "key": "id", "references": {"station_id": table}}, link),
        ("hx_rows", {"main": table, "key": "id", "references": [{"history": "hx"}]}, link),
        ("column_changes", {"events": table, "show": ["created"]}, "Created, Modified or Deleted"),
    ):
        with pytest.raises(DbtRuntimeError) as refused:
            call(macro, **arguments)
        message = str(refused.value)
        assert f"dbt_history.{macro}: " in message
        assert expected in message
        assert "in model: model.shop.orders" in message


def test_changes_of_a_text_are_refused(call: Renderer) -> None:
    log = {**ORDERS, "config": {"materialized": "history_append"}}
    know(call, model=log, this=call.table("orders"))
    with pytest.raises(DbtRuntimeError, match="the table is a text: name it by ref or source"):
        call("changes", relation="shop.customers", key="id")


def test_changes_in_a_model_that_keeps_no_place_name_the_materializations_that_do(
    call: Renderer,
) -> None:
    expected = "a model with materialized history, history_append, history_batch or incremental"
    view = {**ORDERS, "config": {"materialized": "view"}}
    know(call, model=view, this=call.table("orders"))
    with pytest.raises(DbtRuntimeError, match=expected):
        call("changes", relation=call.table("customer_history"), key="id")
