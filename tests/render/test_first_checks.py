"""What a materialization refuses before it evaluates anything; no Spark."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError

from tests.support.rendering import Renderer

CONTINUES: dict[str, Any] = {"continues": ["model.shop.customer_history", "model.shop.clients.v1"]}


def check(call: Renderer, caller: str = "history", existing: Any = None, **settings: Any) -> Any:
    """Whether the table is to be replaced, for the model `client_history`."""
    call.context |= {
        "model": {"unique_id": "model.shop.client_history", "config": {"materialized": caller}},
        "target": SimpleNamespace(threads=1),
        "this": call.table("client_history"),
        "execute": True,
    }
    settings = {"allow_full_refresh": False, **settings}
    return call("_full_refresh", existing=existing, settings=settings, caller_name=caller)


def pretend_batch_of(call: Renderer, owner: str | None) -> None:
    """Each table's log has one commit: a batch of the model `owner`; if none, of a table of dbt."""
    record = {"dbt_history": "1", "model": owner, "batch": 3, "table_id": "t", "epoch": 0}
    commit = {
        "version": 0, "timestamp": "2024-01-01 00:00:09", "operationParameters": "{}",
        "operation": "CREATE TABLE AS SELECT", "operationMetrics": "{}", "userName": None,
        "userMetadata": json.dumps(record) if owner else None,
    }  # fmt: skip
    call.pretend_answers(
        {
            "describe history": [commit],
            "describe detail": [{"id": "t", "numFiles": 1, "location": "", "properties": "{}"}],
            "set": [], "execute immediate": [], "begin": [],
        }
    )  # fmt: skip


@pytest.mark.parametrize(
    "caller", ["history", "history_batch", "history_append", "prepare_incremental_history"]
)
@pytest.mark.parametrize("former", ["customer_history", "clients_v1"])
def test_a_model_is_refused_while_the_table_that_it_continues_has_the_former_name(
    call: Renderer, caller: str, former: str
) -> None:
    call.pretend_relations(former, "other")
    pretend_batch_of(call, "model.shop.customer_history")

    with pytest.raises(DbtRuntimeError) as refused:
        check(call, caller, **CONTINUES)

    message = str(refused.value)
    assert f"dbt_history.{caller}: the table of the model that this one continues has" in message
    assert (
        f"way out: alter table `golden`.`{former}` rename to `golden`.`client_history`; or keep its"
        f" name with alias: {former}; or"
    ) in message


def test_a_model_with_its_own_table_or_without_a_former_one_goes_on(call: Renderer) -> None:
    call.pretend_relations("customer_history")
    assert check(call) is False
    assert check(call, existing=call.table("client_history"), **CONTINUES) is False
    call.pretend_relations("other", views=["customer_history"])
    assert check(call, **CONTINUES) is False


def check_version(call: Renderer, nodes: dict[str, Any], *, is_on: bool, **pointer: Any) -> Any:
    """The same for the model `clients.v2`, the latest version; the project's flag is `is_on`."""
    call.context |= {
        "model": {
            "unique_id": "model.shop.clients.v2", "name": "clients", "schema": "golden",
            "version": 2, "latest_version": 2,
            "config": {"materialized": "history", "latest_version_pointer": pointer},
        },
        "target": SimpleNamespace(threads=1),
        "this": call.table("clients_v2"),
        "graph": {"nodes": nodes},
        "execute": True,
        "invocation_args_dict": {"latest_version_pointer_enabled_by_default": is_on},
    }  # fmt: skip
    settings = {"allow_full_refresh": False}
    return call("_full_refresh", existing=None, settings=settings, caller_name="history")


def test_a_model_that_gets_versions_is_refused_while_its_table_has_the_former_name(
    call: Renderer,
) -> None:
    call.pretend_relations("clients")
    pretend_batch_of(call, "model.shop.clients")

    with pytest.raises(DbtRuntimeError) as refused:
        check_version(call, {}, is_on=False)

    assert (
        "way out: set meta.history.continues: model.shop.clients, and alter table"
        " `golden`.`clients` rename to `golden`.`clients_v2`; or keep its name with alias: clients;"
    ) in str(refused.value)


def test_the_table_of_another_version_is_not_continued(call: Renderer) -> None:
    call.pretend_relations("clients")
    pretend_batch_of(call, "model.shop.clients")
    first = {"alias": "clients", "schema": "golden"}
    assert check_version(call, {"model.shop.clients.v1": first}, is_on=False) is False


@pytest.mark.parametrize(
    ("is_on", "pointer", "name"),
    [
        (True, {}, "clients"),
        (True, {"enabled": None}, "clients"),
        (False, {"enabled": True}, "clients"),
        (False, {"enabled": True, "alias": "newest"}, "newest"),
    ],
)
def test_a_table_that_dbt_would_drop_for_the_view_of_the_latest_version_is_kept(
    call: Renderer, is_on: bool, pointer: dict[str, Any], name: str
) -> None:
    """v1 has the former table by its alias, and v2 is new."""
    first = {"model.shop.clients.v1": {"alias": "clients", "schema": "golden"}}
    call.pretend_relations(name)

    with pytest.raises(DbtRuntimeError, match=f"got: latest_version_pointer, and a table .*{name}"):
        check_version(call, first, is_on=is_on, **pointer)

    assert check_version(call, first, is_on=is_on, enabled=False) is False
    call.pretend_relations("other", views=[name])
    assert check_version(call, first, is_on=is_on, **pointer) is False


@pytest.mark.parametrize("owner", ["model.shop.other", None])
def test_a_table_that_only_has_the_former_name_is_no_history_to_continue(
    call: Renderer, owner: str | None
) -> None:
    """In a new schema another model may have the former name."""
    call.pretend_relations("customer_history")
    pretend_batch_of(call, owner)
    assert check(call, **CONTINUES) is False


@pytest.mark.parametrize(
    ("source", "end"),
    [
        ("state", "; it begins with the rows of today, because the SELECT returns what there is"
         " now, and the past cannot be built again from it"),
        ("changes", ", if the SELECT still returns all batches since the first"),
        (None, ", if the SELECT still returns all batches since the first"),
    ],
)  # fmt: skip
def test_a_full_refresh_names_the_setting_of_dbt_that_leaves_the_history_as_it_is(
    call: Renderer, source: str | None, end: str
) -> None:
    call.context["should_full_refresh"] = lambda: True
    existing = call.table("client_history")

    with pytest.raises(DbtRuntimeError) as refused:
        check(call, existing=existing, source=source)

    assert (
        "way out: set full_refresh: false on the model, which dbt prefers to the option: then"
        " --full-refresh leaves it as it is, and builds the others; to replace the history, set"
        f" meta.history.allow_full_refresh: true{end}\n"
    ) in str(refused.value)
    assert check(call, existing=existing, allow_full_refresh=True) is True


@pytest.mark.parametrize("kind", ["timestamp_ntz", "TIMESTAMP_LTZ", None])
def test_a_session_whose_timestamps_have_no_zone_is_refused(
    call: Renderer, kind: str | None
) -> None:
    config = {"materialized": "history_append"}
    call.context["model"] = {"unique_id": "model.shop.log", "config": config}
    name = "spark.sql.timestampType" if kind else "other"
    executed = call.pretend_answers({"set": [{"key": name, "value": kind}]})
    if kind != "timestamp_ntz":
        call("_settings_before_commits")
    else:
        with pytest.raises(DbtRuntimeError) as refused:
            call("_settings_before_commits")
        message = str(refused.value)
        assert "dbt_history.history_append: the session takes timestamp for a time" in message
        assert "got: spark.sql.timestampType = timestamp_ntz" in message
        assert "in model: model.shop.log" in message
    assert executed == ["set"]


@pytest.mark.parametrize("macro", ["_refuse_padded_log", "_refuse_adoption"])
def test_a_table_of_another_writer_is_refused_by_its_columns(call: Renderer, macro: str) -> None:
    """An append fills what Delta fills itself; a batch, which merges, cannot."""
    call.context["model"] = {"unique_id": "model.shop.codes"}
    names = {
        "code": {"__CHAR_VARCHAR_TYPE_STRING": "char(4)"},
        "n": {"delta.identity.start": 1},
        "day": {"delta.generationExpression": "cast(at as date)"},
    }
    fields = [{"name": name, "metadata": metadata} for name, metadata in names.items()]
    executed = call.pretend_answers(
        {
            "describe detail": [{"location": "/tables/codes"}],
            "select get_json_object": [{"schema": json.dumps({"fields": fields})}],
            "select kind, to_json": [],
            "select count(*), min(": [{"number": 0, "least": None}],
            "show tblproperties": [{"key": "delta.minReaderVersion", "value": "1"}],
            "drop": [],
        }
    )
    arguments: dict[str, Any] = {"relation": call.table("codes"), "caller_name": "history"}
    arguments["staged"] = {"relation": "codes__rows", "view": "codes__rows"}
    if macro == "_refuse_adoption":
        convention = call("convention", convention="validity")
        arguments["settings"] = {"convention": convention, "key": ["code"]}

    with pytest.raises(DbtRuntimeError) as refused:
        call(macro, **arguments)

    message = str(refused.value)
    is_log = macro == "_refuse_padded_log"
    expected = "a table without CHAR columns" if is_log else "one row per key and valid_from"
    assert "dbt_history.history: the existing table cannot be adopted; nothing was" in message
    assert expected in message
    assert "column code is char(4), which pads texts with blanks" in message
    assert ("column n is an identity column" in message) is not is_log
    assert ("column day is generated (cast(at as date))" in message) is not is_log
    assert "in model: model.shop.codes" in message
    assert executed[-1] == "drop view if exists codes__rows"
