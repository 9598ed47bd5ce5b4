"""What the generic tests and verify_history refuse, and the SQL that they render; no Spark."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError

from tests.render.test_named_nodes import know
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


# Mirrors


@pytest.mark.parametrize("by", ["commit", "mark", "nothing"])
def test_a_link_without_a_reference_is_right_only_after_an_erasure(call: Renderer, by: str) -> None:
    call.pretend_relations("staff_hx", *(["history_marks"] if by == "mark" else []))
    know(call, model_node("staff_hx"), model={"unique_id": "test.shop.t", "resource_type": "test"})
    erasure = commit(
        2, "UPDATE",
        userMetadata=json.dumps({"history_operation": "erase_subject"}),
    )  # fmt: skip
    log = [*([erasure] if by == "commit" else []), batch(1)]
    call.pretend_answers({
        "describe history `golden`.`staff_hx`": log,
        "select count(*) from `golden`.`history_marks` where kind = 'erasure'": [{"count": 1}],
    })  # fmt: skip
    reference = {
        "column": "boss", "key": "id", "id": "staff_hx_id", "name": "led_by",
        "history": call.table("staff_hx"),
    }  # fmt: skip
    sql = call(
        "test_history_references_exist", model=call.table("staff_hx"), references=[reference]
    )
    erased = (
        "else log.`led_by` is null or coalesce((log.`boss` is null or referenced.`id` <=>"
        " log.`boss`) and referenced.`staff_hx_id` is not null, false)"
    )
    assert (erased in sql) == (by != "nothing")
    assert "else log.`led_by` is null" in sql


def test_references_of_a_filtered_mirror_are_under_their_former_names(call: Renderer) -> None:
    rows = filtered(call, "staff_hx")
    call.pretend_relations("staff_hx")
    about = {"hx": {"id": "staff_hx_id", "key": ["id"], "renamed": {"boss": ["lead"]},
                    "until": {}, "reused": []}}  # fmt: skip
    call.pretend_answers({
        "describe history `golden`.`staff_hx`": [batch(1, about), commit(0, "CREATE TABLE")],
        "describe `golden`.`staff_hx`": [
            {"col_name": name, "data_type": "bigint", "comment": None}
            for name in ("id", "boss", "lead", "staff_hx_id", "led_by")
        ],
    })  # fmt: skip
    reference = {"column": "boss", "history": call.table("staff_hx"), "name": "led_by"}
    sql = call("test_history_references_exist", model=rows, references=[reference], id="own")
    assert f"from (select * from {rows}) as log" in sql
    # The link is to the mirror itself, by the id of the argument or of its commits.
    assert "referenced.`staff_hx_id` = log.`led_by`" in sql
    assert "log.`lead`" in sql


def test_a_filtered_mirror_is_not_compared_with_its_main_table(call: Renderer) -> None:
    rows = filtered(call, "staff_hx")
    with pytest.raises(DbtRuntimeError) as refused:
        call("test_mirrors_main", model=rows, main=call.table("staff"), key="id")
    message = str(refused.value)
    assert "dbt_history.mirrors_main: the test is of a whole table" in message
    assert "way out: remove where from the test, or set it to ''" in message


# verify_history


@pytest.mark.parametrize(
    ("materialized", "operation", "is_found"),
    [
        ("snapshot", "MERGE", False),
        ("snapshot", "UPDATE", True),
        ("incremental", "MERGE", False),
        ("incremental", "WRITE", False),
        ("incremental", "DELETE", True),
        ("seed", "TRUNCATE", False),
        ("seed", "WRITE", False),
        ("seed", "MERGE", True),
        ("table", "CREATE OR REPLACE TABLE AS SELECT", False),
        ("table", "MERGE", True),
        ("history", "MERGE", True),
        ("history", "CREATE OR REPLACE TABLE AS SELECT", True),
        ("history", "DROP COLUMNS", True),
        ("history", "REPLACE COLUMNS", True),
        ("history", "ADD COLUMNS", False),
    ],
)
def test_what_dbt_itself_does_to_its_table_was_not_done_by_hand(
    call: Renderer, materialized: str, operation: str, is_found: bool
) -> None:
    """
    version   0      1               2           3
              WRITE  clean_history   operation   clean_history
    """
    cleaned = {"history_operation": "clean_history"}
    entries = [
        entry(3, "DELETE", cleaned), entry(2, operation), entry(1, "DELETE", cleaned),
        entry(0, "WRITE"),
    ]  # fmt: skip
    table = {"node": {"config": {"materialized": materialized}}}
    found = call("_foreign_commits", table=table, entries=entries)
    assert [text.split(", ")[0] for text in found] == (
        [f"commit 2 ({operation}"] if is_found else []
    )
    what = "columns" if "COLUMNS" in operation else "rows"
    assert all(text.endswith(f"changed {what} by hand") for text in found)


@pytest.mark.parametrize("name", ["change_type", "drop_column"])
def test_a_change_of_columns_by_serve_was_not_made_by_hand(call: Renderer, name: str) -> None:
    record = {"history_operation": name}
    entries = [
        entry(3, "DROP COLUMNS", record), entry(2, "UPDATE", record),
        entry(1, "MERGE", {"history_operation": "x"}),
    ]  # fmt: skip
    assert call("_foreign_commits", table={"node": None}, entries=entries) == []


@pytest.mark.parametrize(
    ("first", "lost"),
    [
        (entry(0, "CONVERT", numConvertedFiles=3), []),
        (entry(0, "WRITE"), []),
        (entry(0, "CREATE TABLE AS SELECT"), []),
        (entry(0, "CREATE TABLE AS SELECT", numOutputRows=5), ["3 rows, where its log makes 6"]),
        (entry(0, "CREATE OR REPLACE TABLE"), ["3 rows, where its log makes 1"]),
        (entry(0, "CREATE TABLE"), ["3 rows, where its log makes 1"]),
    ],
)
def test_rows_are_counted_only_if_each_commit_says_how_many_it_wrote(
    call: Renderer, first: dict[str, Any], lost: list[str]
) -> None:
    """The rows are those of the newest commit that is counted, whatever is written meanwhile."""
    call.pretend_answers({"select count(*) from `golden`.`h` version as of 1": [{"count": 3}]})
    entries = [entry(1, "WRITE", numOutputRows=1), first]
    assert call("_lost_rows", table={"relation": call.table("h")}, entries=entries) == lost


def test_a_column_may_have_the_name_of_a_column_of_the_comparison(call: Renderer) -> None:
    know(call)
    call.pretend_relations("h", "main")
    columns = [{"col_name": "side", "data_type": "int", "comment": None}]
    executed = call.pretend_answers({
        "describe ": columns, "select count_if": [{"more": 0, "less": 0}],
    })  # fmt: skip
    table = {
        "relation": call.table("h"), "log": None,
        "convention": call("convention", convention="validity"),
    }  # fmt: skip
    assert call("_differs_from", table=table, source="golden.main") == []
    assert "select 1 as `__side`, `side` as `side`" in executed[-1]
    assert "sum(`__side`)" in executed[-1]


@pytest.mark.parametrize("newest", [3, 4])
def test_a_difference_from_a_source_is_looked_for_again_if_the_table_was_written(
    call: Renderer, newest: int
) -> None:
    """Nothing says which versions of the two tables belong together."""
    know(call)
    call.pretend_relations("h", "main")
    executed = call.pretend_answers({
        "describe history `golden`.`h` limit 1": [commit(newest, "MERGE")],
        "describe ": [{"col_name": "v", "data_type": "int", "comment": None}],
        "select count_if": [{"more": 1, "less": 0}],
    })  # fmt: skip
    table = {
        "relation": call.table("h"), "log": None,
        "convention": call("convention", convention="validity"),
    }  # fmt: skip
    entries = [entry(3, "MERGE"), entry(2, "WRITE")]
    other = call("_compared_with", table=table, entries=entries, source="golden.main")
    found = call("_differences", table=table, entries=entries, other=other)
    assert found == ["1 current versions are not in golden.main, 0 rows of it are not current here"]
    compared = [sql for sql in executed if sql.startswith("select count_if")]
    assert len(compared) == newest - 2
    assert "version as of" not in compared[-1]


def test_a_log_and_its_main_table_are_compared_at_one_moment(call: Renderer) -> None:
    """The main table, at 8, has been optimized since the log read 7. The log's entries end at 4.

    A run that commits meanwhile is in neither.
    """
    know(call)
    call.pretend_relations("main_hx", "main")
    columns = {"v": "int", "id": "bigint", "main_hx_id": "bigint", "mod_time": "timestamp",
               "deleted": "boolean"}  # fmt: skip
    executed = call.pretend_answers({
        "describe history `golden`.`main`": [commit(8, "OPTIMIZE"), commit(7, "WRITE")],
        "describe detail `golden`.`main`": [
            {"id": "m", "format": "delta", "properties": "{}", "location": "/tables/main"}
        ],
        "describe ": [
            {"col_name": name, "data_type": kind, "comment": None} for name, kind in columns.items()
        ],
        "select count_if": [{"more": 0, "less": 0}],
        "select get_json_object": [],
        "select value": [],
    })  # fmt: skip
    source = "`golden`.`main`"
    log = {
        "kind": "hx", "key": ["id"], "id": "main_hx_id", "links": [], "renamed": {}, "until": {},
        "reused": [], "watermarks": {source: {"version": 7, "table_id": "m"}}, "sources": [source],
        "is_suspended": False,
    }  # fmt: skip
    table = call(
        "_log_as_table", name="main_hx", node=None, relation=call.table("main_hx"), log=log
    )
    entries = [entry(4, "WRITE"), entry(3, "WRITE")]
    other = call("_compared_with", table=table, entries=entries, source=None)
    assert other == {"name": "golden.main", "version": 8, "own": 4}

    assert call("_differences", table=table, entries=entries, other=other) == []
    assert executed[-1].startswith("select count_if")
    assert "from `golden`.`main_hx` version as of 4 as log" in executed[-1]
    assert "from `golden`.`main` version as of 8)" in executed[-1]
    assert executed[-1].count(" from `golden`.") + executed[-1].count("(`golden`.") == 2


# The convention of a snapshot


@pytest.mark.parametrize("type_", [None, "date"])
def test_the_convention_of_a_snapshot_has_its_names_and_its_open_end(
    call: Renderer, type_: str | None
) -> None:
    config = {
        "unique_key": "id", "dbt_valid_to_current": "to_date('9999-12-31')",
        "snapshot_meta_column_names": {"dbt_valid_from": "since", "dbt_valid_to": "until"},
        **({"meta": {"history": {"type": type_}}} if type_ else {}),
    }  # fmt: skip
    node = {**model_node("people", config=config), "resource_type": "snapshot"}
    know(call, node)
    number = 2932896 if type_ == "date" else 2932896 * 86_400_000_000
    cast = "select unix_date(cast(" if type_ == "date" else "select unix_micros(cast("
    call.pretend_answers({f"{cast}to_date('9999-12-31') as": [{"number": number}]})

    found = call(
        "_convention_of", relation=call.table("people"), convention=None, caller_name="as_of"
    )

    assert (found["start"], found["end"]) == ("since", "until")
    assert found["open_end"] == ("9999-12-31" if type_ else "9999-12-31 00:00:00 UTC")
    sql = call("test_period_is_well_formed", model=call.table("people"))
    assert "`since` is null" in sql
    assert "or `until` is null" in sql


def test_a_snapshot_that_names_its_convention_has_that_one(call: Renderer) -> None:
    config = {"dbt_valid_to_current": "x", "meta": {"history": "fivetran"}}
    node = {**model_node("people", config=config), "resource_type": "snapshot"}
    know(call, node)
    found = call(
        "_convention_of", relation=call.table("people"), convention=None, caller_name="as_of"
    )
    assert found["name"] == "fivetran"


# Other tests


def test_the_rows_of_an_ephemeral_model_are_not_compared(call: Renderer) -> None:
    know(call, flags=SimpleNamespace(WHICH="test"))
    ephemeral = call.relation.create(identifier="__dbt__cte__rows", type="cte")
    for sides in (
        {"model": call.table("h"), "expected": ephemeral},
        {"model": ephemeral, "expected": call.table("h")},
        {"model": call.table("h"), "expected": f"(select * from {ephemeral})"},
    ):
        with pytest.raises(DbtRuntimeError) as refused:
            call("test_matches_expected", columns=["id"], **sides)
        assert "dbt_history.matches_expected: an ephemeral model has no table" in str(refused.value)
    know(call, flags=SimpleNamespace(WHICH="compile"))
    sql = call("test_matches_expected", model=call.table("h"), expected=ephemeral)
    assert "except all" in sql


@pytest.mark.parametrize(
    ("gap", "type_", "condition"),
    [
        ("1 day 12 hours", "timestamp", None),
        ("1 week", "timestamp", None),
        (1, "timestamp", None),
        ("1 hour", "bigint", None),
        (-1, "bigint", None),
        (True, "date", None),
        ("36 hours", "timestamp", "129600000000L) >= _earlier.until"),
        ("90 minutes", "timestamp", "(`valid_from` - interval 90 minutes) >= _earlier.until"),
        (10, "bigint", "(`valid_from` - 10L) >= _earlier.until"),
        ("2 days", "date", "date_sub(`valid_from`, 2) >= _earlier.until"),
        ("0", "timestamp", "(`valid_from` - interval 1 millisecond) > _earlier.until"),
        (None, "timestamp", "(`valid_from` - interval 1 millisecond) > _earlier.until"),
    ],
)
def test_the_minimum_of_a_gap_is_one_number_with_one_unit(
    call: Renderer, gap: Any, type_: str, condition: str | None
) -> None:
    know(call)
    arguments = {
        "model": call.table("h"), "key": "id", "minimum_gap": gap,
        "convention": {"convention": "validity", "type": type_},
    }  # fmt: skip
    if condition is None:
        with pytest.raises(DbtRuntimeError, match="no_gap_between_versions: this minimum_gap"):
            call("test_no_gap_between_versions", **arguments)
    else:
        assert condition in call("test_no_gap_between_versions", **arguments)


def test_before_dbt_runs_the_minimum_of_a_gap_is_not_compared_with_an_axis(call: Renderer) -> None:
    """dbt renders the tests of a project while it parses, without the settings of its models."""
    arguments = {"model": call.table("h"), "key": "id", "minimum_gap": 10}
    call.context = {"graph": {}, "execute": False}
    assert "golden.h" in call("test_no_gap_between_versions", **arguments)
    history = {"convention": "validity", "type": "bigint"}
    know(call, model_node("h", config={"meta": {"history": history}}))
    condition = "(`valid_from` - 10L) >= _earlier.until"
    assert condition in call("test_no_gap_between_versions", **arguments)


@pytest.mark.parametrize(
    ("operation", "said", "is_reported"),
    [
        ("DROP COLUMNS", None, True),
        ("DROP COLUMNS", "drop_column", False),
        ("DROP COLUMNS", "erase_subject", True),
        ("REPLACE COLUMNS", None, True),
        ("UPDATE", "erase_subject", False),
        ("UPDATE", "drop_column", True),
        ("ADD COLUMNS", None, False),
    ],
)
def test_a_log_keeps_its_columns(
    call: Renderer, operation: str, said: str | None, is_reported: bool
) -> None:
    know(call)
    call.pretend_relations("log")
    record = json.dumps({"history_operation": said}) if said else None
    call.pretend_answers({
        "show tblproperties": [{"key": "delta.appendOnly", "value": "true"}],
        "describe history": [commit(1, operation, userMetadata=record)],
    })  # fmt: skip
    sql = call("test_is_append_only", model=call.table("log"))
    assert (f"version 1 of the table was written by {operation}" in sql) == is_reported


def test_thousands_of_changes_of_a_log_are_rows_of_one_inline_table(call: Renderer) -> None:
    """Spark's parser overflows its stack at about a thousand branches of UNION ALL."""
    know(call)
    call.pretend_relations("log")
    call.pretend_answers({
        "show tblproperties": [{"key": "delta.appendOnly", "value": "true"}],
        "describe history": [commit(number, "DELETE") for number in range(3000)],
    })  # fmt: skip
    sql = call("test_is_append_only", model=call.table("log"))
    assert "union" not in sql
    assert sql.count("of the table was written by DELETE')") == 3000


@pytest.mark.parametrize("method", ["auto", "diff"])
def test_the_changes_of_an_ephemeral_model_are_refused(call: Renderer, method: str) -> None:
    know(call)
    call.context |= {
        "execute": True,
        "model": {**model_node("h"), "config": {"materialized": "history_batch"}},
    }
    ephemeral = call.relation.create(identifier="__dbt__cte__x", type="cte")
    with pytest.raises(DbtRuntimeError) as refused:
        call("changes", relation=ephemeral, key="id", method=method)
    assert "is an ephemeral model, which has no table: make it a view" in str(refused.value)
    # In a unit test each model is a CTE.
    call.context["model"] = {**model_node("h"), "resource_type": "unit_test"}
    assert "__dbt__cte__x" in call("changes", relation=ephemeral, key="id", method=method)


@pytest.mark.parametrize("is_unit_test", [False, True], ids=["model", "unit_test"])
def test_a_call_that_looks_up_a_table_refuses_an_ephemeral_model(
    call: Renderer, is_unit_test: bool
) -> None:
    kind = "unit_test" if is_unit_test else "model"
    know(call, model={**model_node("h"), "resource_type": kind}, this=call.table("h"))
    ephemeral = call.relation.create(identifier="__dbt__cte__x", type="cte")
    reference = [{"column": "id", "history": ephemeral}]
    for caller, macro, arguments in (
        ("column_changes", "column_changes", {"events": ephemeral}),
        ("history_runs", "history_runs", {"tables": [ephemeral]}),
        ("rows_with_runs", "rows_with_runs", {"relation": ephemeral, "runs": "runs"}),
        ("hx_rows", "_hx_links", {"references": reference, "own_id": "id", "own": call.table("h")}),
    ):
        if is_unit_test:
            assert call(macro, **arguments), macro
            continue
        with pytest.raises(DbtRuntimeError) as refused:
            call(macro, **arguments)
        assert f"dbt_history.{caller}: an ephemeral model has no table" in str(refused.value)
        assert "in model: model.shop.h" in str(refused.value)
        assert "way out: give the model another materialization" in str(refused.value)


def test_a_test_or_a_model_that_reads_commits_refuses_an_ephemeral_model(call: Renderer) -> None:
    know(call, model=model_node("h"), this=call.table("h"))
    ephemeral = call.relation.create(identifier="__dbt__cte__x", type="cte")
    main = call.table("staff")
    for caller, macro, arguments in (
        ("is_append_only", "test_is_append_only", {"model": ephemeral}),
        ("mirrors_main", "test_mirrors_main", {"model": ephemeral, "main": main, "key": "id"}),
        (
            "history_references_exist",
            "test_history_references_exist",
            {"model": ephemeral, "references": [{"column": "id", "history": main}]},
        ),
        ("last_batch", "last_batch", {"relation": ephemeral}),
        ("feature_states", "feature_states", {"writes": ephemeral}),
        ("feature_outcomes", "feature_outcomes", {"writes": ephemeral}),
    ):
        with pytest.raises(DbtRuntimeError) as refused:
            call(macro, **arguments)
        assert f"dbt_history.{caller}: an ephemeral model has no table" in str(refused.value)
    call.pretend_answers({"describe `golden`.`edits`": [
        {"col_name": name, "data_type": type_, "comment": None}
        for name, type_ in (
            ("txn", "bigint"), ("position", "bigint"), ("action", "string"), ("id", "string"),
            ("app_id", "string"), ("at", "timestamp"), ("v", "string"),
        )
    ]})  # fmt: skip
    with pytest.raises(DbtRuntimeError, match="feature_outcomes: an ephemeral model has no table"):
        call("feature_outcomes", writes=call.table("edits"), states=ephemeral)


def test_a_log_that_is_an_ephemeral_model_records_nothing(call: Renderer) -> None:
    know(call)
    ephemeral = call.relation.create(identifier="__dbt__cte__x", type="cte")
    assert call("_recorded_log", relation=ephemeral) is None
    with pytest.raises(DbtRuntimeError, match="as_of: a log is read by the key of its items"):
        call("as_of", relation=ephemeral, at="now", convention={"convention": "hx"})
