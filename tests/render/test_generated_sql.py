"""The SQL of captured changes, logs, feature states and a migration, without Spark.

The macros are called as in a model or a run-operation. Their queries get canned answers, and a
query without one fails the test. `UPDATE_GOLDEN=1` rewrites the golden files.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError

from tests.render.test_named_nodes import know, node
from tests.support.markdown import blocks, page
from tests.support.rendering import Renderer

GOLDEN = Path(__file__).parent / "golden"
Answers = Mapping[str, Sequence[Mapping[str, Any]]]


def assert_golden(name: str, sql: str) -> None:
    """Compare with a golden file, named by its folder and its stem.

    Blank lines and blanks at the ends of lines do not count.
    """
    path = GOLDEN / f"{name}.sql"
    sql = "\n".join(line.rstrip() for line in sql.splitlines() if line.strip())
    if os.environ.get("UPDATE_GOLDEN") == "1":
        path.parent.mkdir(exist_ok=True)
        path.write_text(sql + "\n")
    golden = path.read_text() if path.exists() else ""
    assert golden == sql + "\n", "UPDATE_GOLDEN=1 rewrites the file"


def compile_in(call: Renderer, model: str, materialized: str = "history_append") -> None:
    """Let the macros that follow be called in this model, whose table is in the schema `golden`."""
    call.context = {
        "this": call.table(model),
        "model": {
            "resource_type": "model",
            "unique_id": f"model.shop.{model}",
            "name": model,
            "config": {"materialized": materialized},
        },
    }


# What Spark and Delta answer


def described(columns: Mapping[str, str]) -> list[dict[str, Any]]:
    """The rows of DESCRIBE, for columns as {name: type}."""
    return [
        {"col_name": name, "data_type": type_, "comment": None} for name, type_ in columns.items()
    ]


def commit(version: int, metadata: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A row of DESCRIBE HISTORY; the minute of a commit is its version."""
    return {
        "version": version,
        "timestamp": f"2024-03-03 00:{version:02}:00",
        "operation": "WRITE",
        "operationParameters": json.dumps({"mode": "Append"}),
        "operationMetrics": "{}",
        "userMetadata": json.dumps(metadata) if metadata else None,
        "userName": None,
    }


def captured(source: str, version: int, **about: Any) -> list[dict[str, Any]]:
    """The history of a table whose first batch took `source` up to `version`."""
    watermark = {"version": version, "table_id": f"id of {source}", "populated": 1709424000000000}
    record = {
        "dbt_history": "1",
        "batch": 1,
        "epoch": 0,
        "table_id": "id of the log",
        "watermarks": {f"`golden`.`{source}`": watermark},
        "about": about,
    }
    return [commit(1, record)]


def source(name: str, columns: Mapping[str, str], head: Iterable[dict[str, Any]]) -> Answers:
    """The answers of a Delta table that has a change data feed."""
    feed_columns = {"_change_type": "string", "_commit_version": "bigint"}
    feed_columns["_commit_timestamp"] = "timestamp"
    return {
        f"describe detail `golden`.`{name}`": [
            {
                "id": f"id of {name}",
                "format": "delta",
                "location": f"file:/warehouse/{name}",
                "properties": json.dumps({"delta.enableChangeDataFeed": "true"}),
            }
        ],
        f"describe history `golden`.`{name}`": list(head),
        f"describe query select * from `golden`.`{name}` version as of": described(columns),
        f"explain select * from table_changes('`golden`.`{name}`'": [{"plan": "== Plan =="}],
        f"describe query select * from table_changes('`golden`.`{name}`'": described(
            {**columns, **feed_columns}
        ),
        "select unix_micros(moment)": [{"micros": 0, "moment": "1970-01-01 00:00:00"}],
        "select version, unix_micros(": [
            {"version": version, "micros": 1709424000000000 + (version or 5) * 60_000_000}
            for version in range(9)
        ],
    }


CUSTOMERS = {"id": "bigint", "name": "string", "tags": "map<string,string>", "edited_by": "string"}
# The metadata of version 4 has the user who wrote it.
CUSTOMER_SOURCE = source(
    "customers", CUSTOMERS, [commit(5), commit(4, {"user": "anna"}), commit(3)]
)


# Capture and logs


def test_a_commit_of_another_tool_is_no_record(call: Renderer) -> None:
    """Its text may name the package, and have a number of its own kind of batch."""
    theirs = {"job": "clean after dbt_history", "batch": 900}
    ours = {"dbt_history": "1", "batch": 3}
    call.pretend_answers(
        {"describe history `golden`.`orders`": [commit(2, theirs), commit(1, ours)]}
    )
    entries = call("_delta_history_entries", relation=call.table("orders"))
    assert [entry["record"] for entry in entries] == [None, ours]


def test_changes_from_the_feed(call: Renderer) -> None:
    compile_in(call, "customer_changes")
    call.pretend_relations("customers", "customer_changes")
    call.pretend_answers(
        {
            **CUSTOMER_SOURCE,
            "describe history `golden`.`customer_changes`": captured("customers", 3),
        }
    )
    sql = call("changes", relation=call.table("customers"), key="id", changed_by="edited_by")
    assert_golden("capture/changes_from_feed", sql)


def test_changes_by_comparison_with_the_stored_state(call: Renderer) -> None:
    compile_in(call, "customer_changes")
    call.pretend_relations("customers", "customer_changes")
    stored = {**CUSTOMERS, "_change_type": "string", "_commit_version": "bigint"}
    call.pretend_answers(
        {
            **CUSTOMER_SOURCE,
            "describe history `golden`.`customer_changes`": captured("customers", 3),
            "describe `golden`.`customer_changes`": described(stored),
        }
    )
    sql = call("changes", relation=call.table("customers"), key="id", method="diff")
    assert_golden("capture/changes_by_comparison", sql)


@pytest.mark.parametrize(
    "at",
    [
        "_commit_version",
        "_commit_version + 3",
        "1000L + `_commit_version`",
        "cast(_commit_version as bigint)",
        "2 * CAST((_commit_version + 1) AS BIGINT) - 0L",
        "bigint(_commit_version)",
    ],
)
def test_a_source_that_was_made_again_with_a_lower_version_is_no_position(
    call: Renderer, at: str
) -> None:
    """Its difference would come before versions of the table, which would stay current."""
    compile_in(call, "customer_history", "history_batch")
    call.pretend_relations("customers", "customer_history")
    numbers = {"convention": "validity", "type": "bigint"}
    config = {"unique_key": "id", "meta": {"history": numbers}}
    call.context["model"]["config"].update(config)
    again = {"describe detail `golden`.`customers`": [
        {"id": "another", "format": "delta", "location": "file:/warehouse/customers",
         "properties": "{}"}
    ]}  # fmt: skip
    stored = {**CUSTOMERS, "valid_from": "bigint", "valid_to": "bigint"}
    position = f"select cast({at} as bigint) as point, newest.version from (select 5L as"
    answers: dict[str, Sequence[Mapping[str, Any]]] = {
        **CUSTOMER_SOURCE,
        **again,
        "describe history `golden`.`customer_history`": captured("customers", 3),
        "describe `golden`.`customer_history`": described(stored),
    }

    def rows(newest: int) -> Any:
        call.pretend_answers({**answers, position: [{"point": 5, "version": newest}]})
        changes = call("changes", relation=call.table("customers"), key="id")
        return call("batch_rows", changes=changes, key="id", convention=numbers, at=at)

    assert '"again_at": 5' in rows(4)
    with pytest.raises(DbtRuntimeError) as refused:
        rows(7)
    assert f"way out: at='{at.replace('`', '')} + 3' from now on" in str(refused.value)
    assert "`golden`.`customers` at 5" in str(refused.value)

    # The next commits of a source are later than those before them, without a query.
    call.pretend_answers({**answers, **CUSTOMER_SOURCE})
    changes = call("changes", relation=call.table("customers"), key="id")
    call("batch_rows", changes=changes, key="id", convention=numbers, at=at)


def test_a_difference_reads_the_log_under_the_former_names_of_columns(call: Renderer) -> None:
    """`name` became `label` in version 3, `label` became `title` in version 5; version 4 wrote it.

    The log has no column `title` yet. `label` belongs to another column since version 5.
    """
    compile_in(call, "customers_hx")
    call.pretend_relations("customers", "customers_hx")
    renamed = {"oldColumnPath": "label", "newColumnPath": "title"}
    rename = commit(5) | {
        "operation": "RENAME COLUMN",
        "operationParameters": json.dumps(renamed),
    }
    now = {"id": "bigint", "title": "bigint", "label": "bigint"}
    hx = {"id": "customers_hx_id", "key": ["id"], "renamed": {"label": ["name"]},
          "until": {"label": [1709424180000000]}}  # fmt: skip
    stored = {"id": "bigint", "name": "int", "label": "bigint", "mod_time": "timestamp",
              "deleted": "boolean", "customers_hx_id": "bigint"}  # fmt: skip
    call.pretend_answers(
        {
            **source("customers", now, [commit(6), rename, commit(4)]),
            "describe history `golden`.`customers_hx`": captured("customers", 4, hx=hx),
            "describe `golden`.`customers_hx`": described(stored),
            "select max(`customers_hx_id`)": [{"max": 40}],
        }
    )
    sql = call("hx_rows", main=call.table("customers"), key="id", method="diff")
    first, second = (f"timestamp_micros({micros}L)" for micros in (
        1709424180000000, 1709424300000000,
    ))  # fmt: skip
    assert (
        f"(select coalesce(if(`mod_time` >= {first} and `mod_time` < {second}, `label`, null),"
        f" cast(`name` as bigint)) as `title`, if(`mod_time` >= {second}, `label`, null)"
        " as `label`, `id` from"
    ) in sql


@pytest.mark.parametrize(
    ("columns", "found"),
    [
        (
            ["id", "mod_time", "mod_user", "Deleted", "Station_hx_id", "network_hx_id"],
            "Station_hx_id",
        ),
        (["station_hx_id", "mod_time", "mod_user", "deleted", "old_hx_id"], "old_hx_id"),
        (
            ["id", "mod_time", "mod_user", "deleted", "old_hx_id", "stations_hx_id"],
            "stations_hx_id",
        ),
        (["id", "deleted", "network_hx_id", "station_hx_id", "mod_time", "mod_user"], None),
        (["id", "mod_time", "mod_user", "deleted", "name", "station_hx_id"], None),
        (["id", "mod_time", "mod_user", "deleted"], None),
        (["id", "name"], None),
    ],
)
def test_the_ids_of_a_mirror_whose_commits_do_not_name_them_are_found_by_their_place(
    call: Renderer, columns: list[str], found: str | None
) -> None:
    """The main table is now `stations`; the table is a clone, or its commits have expired."""
    compile_in(call, "station_hx")
    executed = call.pretend_answers(
        {"describe `golden`.`station_hx`": described(dict.fromkeys(columns, "bigint"))}
    )
    arguments = {"log": {"about": None, "last_batch": 3}, "main": call.table("stations")}
    if found is not None:
        assert call("_own_hx_id", **arguments) == found
    else:
        with pytest.raises(DbtRuntimeError) as refused:
            call("_own_hx_id", **arguments)
        message = str(refused.value)
        assert f"got: {', '.join(columns)}" in message
        assert "expected: stations_hx_id, or mod_time, mod_user, deleted and the ids" in message
        assert "alter table `golden`.`station_hx` alter column <the ids> after" in message
    assert len(executed) == 1

    recorded = {"about": {"hx": {"id": "old_hx_id"}}, "last_batch": 3}
    for log, own in (
        (recorded, "old_hx_id"),
        (None, "stations_hx_id"),
        ({"about": {}, "last_batch": None, "is_empty": True}, "stations_hx_id"),
    ):
        assert call("_own_hx_id", log=log, main=call.table("stations")) == own
    assert len(executed) == 1


def test_a_difference_with_the_rows_of_several_sources_is_refused(call: Renderer) -> None:
    """A note `is_sole` says that the known state was taken for that of one source."""
    compile_in(call, "events")
    notes = [
        {"source": source, "number": 2, "before": {"version": 1}, "after": {"version": 2},
         "about": {}}
        for source in ("a", "b")
    ]  # fmt: skip
    captured = call("_captured_sources", select_sql=noted(notes))
    assert captured["watermarks"] == {"a": {"version": 2}, "b": {"version": 2}}
    notes[1]["is_sole"] = "event_rows"
    with pytest.raises(DbtRuntimeError, match=r"event_rows: a difference is needed(.|\n)*a, b"):
        call("_captured_sources", select_sql=noted(notes))
    assert call("_captured_sources", select_sql=noted(notes[1:]))["number"] == 2


SOURCE = {"item": "source.shop.item", "stg_items": "model.shop.stg_items"}


@pytest.mark.parametrize(
    ("code", "depends_on", "state"),
    [
        # Another name, a view, a comment, an alias.
        ("{{ dbt_history.changes(ref('stg_items')) }}", ["stg_items"], True),
        ("select * from {{ changes(ref('stg_items')) }} as items -- of items", [], True),
        ("{# instead of ref('items') #} {{ changes(ref('stg_items')) }}", ["stg_items"], True),
        # Added to the former source: by ref, by text, by the name of a source.
        ("{{ changes(ref('items')) }} {{ changes(ref('stg_items')) }}", ["stg_items"], False),
        ("{% for name in [\"items\", 'stg_items'] %}", [], False),
        ("{{ load_relation('golden.`Items`') }}", [], False),
        ("{{ source('shop', 'item') }} {{ ref('stg_items') }}", ["stg_items", "item"], False),
    ],
)
def test_a_source_in_place_of_the_former_one_is_compared_with_the_table(
    call: Renderer, code: str, depends_on: list[str], state: bool
) -> None:
    compile_in(call, "stored", "history_batch")
    call.context["model"]["config"].update(
        {"unique_key": "id", "meta": {"history": {"convention": "validity"}}}
    )
    ids = [SOURCE[name] for name in depends_on]
    call.context["model"] |= {"raw_code": code, "depends_on": {"nodes": ids}}
    call.context["graph"] = {
        "nodes": {SOURCE["stg_items"]: {"alias": "stg_items", "schema": "golden"}},
        "sources": {SOURCE["item"]: {"identifier": "items", "schema": "golden"}},
    }
    call.pretend_relations("stored", "stg_items")
    stored = {**CUSTOMERS, "valid_from": "timestamp", "valid_to": "timestamp"}
    call.pretend_answers(
        {
            **source("stg_items", CUSTOMERS, [commit(5)]),
            "describe history `golden`.`stored`": captured("items", 3),
            "describe `golden`.`stored`": described(stored),
        }
    )
    sql = call("changes", relation=call.table("stg_items"), key="id")
    assert ("from `golden`.`stored`" in sql) is state
    note = call("_notes", name="capture", select_sql=sql)[0]
    former = ["`golden`.`items`"]
    if state:
        assert note["is_sole"] == "changes"
        assert note["replaces"] == former
    else:
        assert note["added_to"] == former

    # The whole SELECT has to agree with it.
    read = note | {"source": "`golden`.`items`", "before": {"version": 3}, "after": {"version": 4}}
    for name in ("is_sole", "replaces", "added_to"):
        read.pop(name, None)
    agreed, other = ([note], [note, read]) if state else ([note, read], [note])
    call("_captured_sources", select_sql=noted(agreed))
    with pytest.raises(DbtRuntimeError, match="added to the model or replaces") as refused:
        call("_captured_sources", select_sql=noted(other))
    assert (
        "does not name `golden`.`items`, which the SELECT reads; new is `golden`.`stg_items`"
        if state
        else "names `golden`.`items`, which the SELECT does not read; new is `golden`.`stg_items`"
    ) in str(refused.value)


@pytest.mark.parametrize(
    ("depends_on", "deferred", "is_named"),
    [
        (["new"], None, False),
        (["new"], "golden", False),
        (["new", "old"], None, True),
    ],
    ids=["in its place", "deferred to before", "beside it"],
)
def test_a_source_of_the_same_name_in_another_schema_is_known_by_its_place(
    call: Renderer, depends_on: list[str], deferred: str | None, is_named: bool
) -> None:
    sources = {name: {"identifier": "items", "schema": name} for name in ("new", "old")}
    sources["old"]["schema"] = "golden"
    if deferred:
        sources["new"]["defer_relation"] = {"identifier": "Items", "schema": deferred}  # type: ignore[assignment]
    call.context["model"] = {
        "raw_code": "{{ source('shop', 'items') }}", "depends_on": {"nodes": depends_on},
    }  # fmt: skip
    call.context["graph"] = {"nodes": {}, "sources": sources}
    new = call.relation.create(schema="new", identifier="Items")
    assert call("_is_named_in_code", relation=call.table("items"), new=new) is is_named


def test_a_log_of_changes_without_their_columns_cannot_be_compared(call: Renderer) -> None:
    """It is refused in the first run over a source without a feed, before it is written."""
    compile_in(call, "customer_changes")
    call.pretend_relations(views=["seen"])
    call.pretend_answers(
        {
            "describe extended `golden`.`seen`": [],
            "describe `golden`.`seen`": described(CUSTOMERS),
            "select unix_micros(": [{"micros": 1709424000000000, "moment": "2024-03-03 00:00:00"}],
        }
    )
    first = call("changes", relation=call.table("seen"), key="id")
    log = call("_captured_sources", select_sql=first)
    call.context["invocation_args_dict"] = {"empty": True}
    assert call("_check_compared_columns", captured=log, staged={"names": ["id", "v"]}) == []
    call.context["invocation_args_dict"] = {}
    problems = call("_check_compared_columns", captured=log, staged={"names": ["id", "v"]})
    assert [text.split()[1] for text in problems] == ["_change_type", "_commit_version"]
    staged = {"names": ["id", "_change_type", "_commit_version"]}
    assert call("_check_compared_columns", captured=log, staged=staged) == []

    call.pretend_relations("customers", "customer_changes")
    answers = {
        **CUSTOMER_SOURCE,
        "describe history `golden`.`customer_changes`": captured("customers", 3),
    }
    stored = {**CUSTOMERS, "_commit_version": "bigint"}
    call.pretend_answers(answers | {"describe `golden`.`customer_changes`": described(stored)})
    with pytest.raises(DbtRuntimeError) as refused:
        call("changes", relation=call.table("customers"), key="id", method="diff")
    assert "way out: return these columns in the SELECT and begin with the rows" in str(
        refused.value
    )
    stored |= {"_change_type": "string"}
    call.pretend_answers(answers | {"describe `golden`.`customer_changes`": described(stored)})
    sql = call("changes", relation=call.table("customers"), key="id", method="diff")
    assert "if(`_change_type` is null, raise_error(" in sql
    of_feed = call("changes", relation=call.table("customers"), key="id")
    for later in (sql, of_feed):
        assert not call("_captured_sources", select_sql=later)["is_compared"]

    # The versions of another source tell nothing about the order of the stored rows.
    replaced = {"caller_name": "changes", "taken": {"replaced": ["`golden`.`former`"]}}
    with pytest.raises(DbtRuntimeError, match="_commit_version, _commit_timestamp, of one source"):
        call("_layout_of_changes", capture=replaced, there=list(stored))
    layout = call(
        "_layout_of_changes", capture=replaced, there=[*stored, "_commit_timestamp"],
    )  # fmt: skip
    assert layout["order"] == ["_commit_timestamp", "_commit_version"]


def test_a_renamed_key_column_is_the_one_at_its_place(call: Renderer) -> None:
    compile_in(call, "customers_hx")

    def refusal(known: list[str], key: list[str], stored: Iterable[str] = ()) -> str:
        described_log = described(dict.fromkeys(stored or known, "bigint"))
        call.pretend_answers({"describe `golden`.`customers_hx`": described_log})
        taken = {"about": {"hx": {"key": known}}, "has_rows": True}
        capture = {"taken": taken, "key": key, "layout": {}, "caller_name": "hx_rows"}
        with pytest.raises(DbtRuntimeError) as refused:
            call("_refuse_renamed_key", capture=capture)
        return str(refused.value)

    both = ["region", "id"]
    assert "rename column `id` to `code`" in refusal(both, ["region", "code"])
    assert "`region` to" not in refusal(both, ["region", "code"])
    assert "`region` to `r`; alter" in refusal(both, ["r", "code"])
    # Another order, another number of columns, a column that the log does not have.
    assert "rename column" not in refusal(both, ["code", "region"])
    assert "rename column" not in refusal(both, ["code"])
    assert "rename column" not in refusal(both, ["r", "code"], ["region"])

    # Another key of columns that the log has; a key that was renamed in the log, too, goes on.
    for key in (["id", "part"], ["part"]):
        assert "the log was written with another key" in refusal(["id"], key, ["id", "part"])
    assert "the log was written with another key" in refusal(["id", "part"], ["id"])
    call.pretend_answers({"describe `golden`.`customers_hx`": described({"code": "bigint"})})
    taken = {"about": {"hx": {"key": ["id"]}}, "has_rows": True}
    capture = {"taken": taken, "key": ["code"], "layout": {}, "caller_name": "hx_rows"}
    call("_refuse_renamed_key", capture=capture)


def noted(notes: Iterable[Mapping[str, Any]]) -> str:
    return "select ".join(f"/* dbt_history:capture {json.dumps(note)} */" for note in notes)


def test_a_mirror_keeps_the_ids_of_its_log(call: Renderer) -> None:
    """Also if its main table was `clients` when the log was made."""
    compile_in(call, "clients_hx")
    call.pretend_relations("customers", "clients_hx")
    about = {"id": "clients_hx_id", "key": ["id"]}
    call.pretend_answers(
        {
            **CUSTOMER_SOURCE,
            "describe history `golden`.`clients_hx`": captured("customers", 3, hx=about),
            "select max(`clients_hx_id`)": [{"max": 40}],
        }
    )
    sql = call("hx_rows", main=call.table("customers"), key="id")
    assert "as `clients_hx_id`" in sql
    assert "customers_hx_id" not in sql


def test_a_difference_leaves_out_columns_that_the_log_ignores(call: Renderer) -> None:
    compile_in(call, "customer_events")
    setting = {"on_schema_change": "ignore"}
    call.context["model"]["unrendered_config"] = setting
    call.context["model"]["config"].update(setting)
    call.pretend_relations("customers", "customer_events")
    stored = {"id": "bigint", "name": "string", "tags": "map<string,string>"}
    stored |= {"_hist_time": "timestamp", "_hist_event": "int"}
    call.pretend_answers(
        {
            **CUSTOMER_SOURCE,
            "describe history `golden`.`customer_events`": captured("customers", 3),
            "describe `golden`.`customer_events`": described(stored),
            "explain extended select": [{"plan": ""}],
        }
    )
    sql = call("event_rows", main=call.table("customers"), key="id", method="diff")
    assert "`old_row`.`c_name` <=> `new_row`.`c_name`" in sql
    assert "`old_row`.`c_edited_by`" not in sql


def test_a_difference_leaves_out_columns_that_a_version_table_ignores(call: Renderer) -> None:
    """Only if the SELECT returns them, so that no other column of the table comes from them."""
    compile_in(call, "customer_history", "history_batch")
    stored = {"id": "bigint", "name": "string", "tags": "map<string,string>"}
    stored |= {"valid_from": "timestamp", "valid_to": "timestamp"}
    call.context["model"]["config"].update(
        {"unique_key": "id", "meta": {"history": {"convention": "validity"}}}
    )
    call.pretend_relations("customers", "customer_history")
    call.pretend_answers(
        {
            **CUSTOMER_SOURCE,
            "describe history `golden`.`customer_history`": captured("customers", 3),
            "describe `golden`.`customer_history`": described(stored),
        }
    )
    compared = "`old_row`.`c_edited_by` <=> `new_row`.`c_edited_by`"

    def changes(on_schema_change: str) -> str:
        setting = {"on_schema_change": on_schema_change}
        call.context["model"]["unrendered_config"] = setting
        call.context["model"]["config"].update(setting)
        sql: str = call("changes", relation=call.table("customers"), key="id", method="diff")
        assert "`old_row`.`c_name` <=> `new_row`.`c_name`" in sql
        assert '"unstored": ["edited_by"]' in sql
        return sql

    assert compared in changes("append_new_columns")
    sql = changes("ignore")
    assert compared not in sql

    def problems(names: list[str], **settings: Any) -> Any:
        return call(
            "_check_unstored_columns",
            captured={"unstored": ["edited_by"]}, staged={"names": names}, settings=settings,
        )  # fmt: skip

    ignored = {"on_schema_change": "ignore"}
    assert problems(["id", "edited_by"], **ignored) == []
    assert "every record counts as changed" in problems(["id"])[0]
    assert problems(["id"], tracked={"omitted": []}) == []
    for settings in (ignored, {**ignored, "tracked": {"omitted": []}}):
        assert "neither stored nor compared" in problems(["id"], **settings)[0]

    call("batch_rows", changes=sql, delete_when="name = 'edited_by'")
    with pytest.raises(DbtRuntimeError, match="deletions would be missed") as refused:
        call("batch_rows", changes=sql, delete_when="Edited_By = 'D'")
    assert "edited_by, with on_schema_change: ignore" in str(refused.value)


def test_stored_rows_have_the_fields_that_a_struct_is_to_get(call: Renderer) -> None:
    compile_in(call, "orders")
    stored = {"id": "int", "s": "struct<a:int>"}
    call.pretend_answers({"describe `golden`.`orders`": described(stored)})
    staged = [
        {"name": "ID", "type": "bigint"},
        {"name": "s", "type": "struct<a:int,b:int>"},
        {"name": "new", "type": "int"},
    ]
    cells = call(
        "_stored_cells",
        target=call.table("orders"),
        staged={"columns": staged},
        names=["id", "s", "new"],
    )
    assert cells == (
        "`id`, if(`s` is null, null, struct(`s`.`a` as `a`, cast(null as int) as `b`)), null"
    )


def test_a_difference_is_taken_in_the_wider_type_of_a_number(call: Renderer) -> None:
    """A SELECT of `history` with a narrower type than the table: 12.34 is not 12."""
    compile_in(call, "prices", materialized="history")
    stored = {"id": "bigint", "v": "decimal(10,2)"}
    call.pretend_answers(
        {
            "describe `golden`.`prices`": described(stored),
            "select unix_micros(moment)": [{"micros": 0, "moment": "1970-01-01 00:00:00"}],
        }
    )
    taken = {"number": 2, "has_rows": True, "watermark": {"version": None}, "is_suspended": False}
    columns = [{"name": "id", "type": "int"}, {"name": "v", "type": "decimal(8,0)"}]
    capture: dict[str, Any] = {
        "taken": taken, "layout": {"is_versions": True}, "columns": columns, "segments": [],
        "is_same": False,
    }  # fmt: skip
    call("_plan_rows_of_select", capture=capture)
    assert {column["name"]: column["type"] for column in capture["columns"]} == stored


def test_rows_of_an_event_table(call: Renderer) -> None:
    compile_in(call, "customer_events")
    call.pretend_relations("customers", "customer_events")
    call.pretend_answers(
        {
            **CUSTOMER_SOURCE,
            "describe history `golden`.`customer_events`": captured("customers", 3),
            "explain extended select": [
                {"plan": "== Optimized Logical Plan ==\nProject [false AS __null_0#1]"}
            ],
        }
    )
    sql = call("event_rows", main=call.table("customers"), key="id", codes="letters")
    assert_golden("logs/event_rows", sql)


def test_the_coarse_log_in_integers_and_its_drain(call: Renderer) -> None:
    compile_in(call, "core")
    inbox = call.table("inbox")
    assert_golden("logs/core_history", call("core_history", temp=inbox))
    drain = call("drain_core_temp_history", temp=inbox, core=call.table("core"))
    assert_golden("logs/drain_core_temp_history", drain)
    words = call("core_history", temp=inbox, codes="words")
    assert "temp.event as event" in words
    assert "case" not in words
    with pytest.raises(DbtRuntimeError, match=r"core_history: there are no such codes(.|\n)*words"):
        call("core_history", temp=inbox, codes="numbers")


def rows_of_a_mirror(
    call: Renderer, metrics: Mapping[str, int], column: str = "bigint", key: str | None = None
) -> str:
    """The SQL of a mirror with a reference.

    metrics        those of the last of the two new commits
    column, key    the types of the referencing column, and of the key if it may be asked
    """
    compile_in(call, "stations_hx")
    last = {**commit(7), "operationMetrics": json.dumps(metrics)}
    call.pretend_relations("stations", "stations_hx", "networks", "networks_hx")
    stations = {"id": "bigint", "network": column, "mod_time": "timestamp", "mod_user": "string"}
    call.pretend_answers(
        {
            **({"describe `golden`.`networks_hx`": described({"id": key})} if key else {}),
            **source("stations", stations, [last, commit(6), commit(5)]),
            "describe history `golden`.`stations_hx`": captured(
                "stations", 5, hx={"id": "stations_hx_id", "key": ["id"]}
            ),
            "describe history `golden`.`networks_hx`": captured(
                "networks", 2, hx={"id": "networks_hx_id", "key": ["id"]}
            ),
            "describe history `golden`.`networks`": [commit(2), commit(1)],
            "describe detail `golden`.`networks`": [
                {"id": "id of networks", "format": "delta", "properties": "{}", "location": ""}
            ],
            "select max(`stations_hx_id`) from `golden`.`stations_hx`": [{"max": 40}],
        }
    )
    sql: str = call(
        "hx_rows",
        main=call.table("stations"),
        key="id",
        references=[{"column": "network", "history": call.table("networks_hx")}],
        mod_user="mod_user",
    )
    return sql


def test_rows_of_a_mirror(call: Renderer) -> None:
    assert_golden("logs/hx_rows", rows_of_a_mirror(call, {}))


@pytest.mark.parametrize(
    ("column", "key", "condition"),
    [
        ("bigint", None, "case when typeof({0}) = 'string' then try_cast({0} as bigint) = {1}"
         " else {0} = {1} end"),
        ("string", "bigint", "{0} = try_cast({1} as bigint)"),
        ("varchar(3)", "decimal(9,2)", "{0} = try_cast({1} as decimal(9,2))"),
        ("string", "varchar(3)", "{0} = {1}"),
        ("array<int>", None, "{0} = {1}"),
    ],
)  # fmt: skip
def test_a_text_is_read_in_the_type_of_the_other_side_of_a_reference(
    call: Renderer, column: str, key: str | None, condition: str
) -> None:
    """With ANSI mode a bare comparison of '1' or 'n/a' with 1 is an error. Only for a text the
    type of the key is asked."""
    sql = rows_of_a_mirror(call, {}, column, key)
    said = condition.format("referenced.`__key_1`", "numbered.`network`")
    assert f"and {said}\n" in sql


@pytest.mark.parametrize(("rows", "is_broadcast"), [(1_000_000, True), (1_000_001, False)])
def test_many_changed_rows_are_not_broadcast(call: Renderer, rows: int, is_broadcast: bool) -> None:
    sql = rows_of_a_mirror(call, {"numOutputRows": rows})
    assert ("broadcast" in sql) is is_broadcast


@pytest.mark.parametrize(
    ("columns", "said", "known", "key"),
    [
        ("boss", None, ["id"], ["id"]),
        ("boss", None, None, ["boss"]),
        ("boss", "staff_id", ["id"], ["staff_id"]),
        (["a", "b"], ["b", "a"], ["a", "b"], ["b", "a"]),
        (["a", "b"], None, ["B", "A"], ["A", "B"]),
        (["station", "network_id"], None, ["Network_Id", "id"], ["id", "Network_Id"]),
        (["x", "y"], None, ["a", "b"], ["a", "b"]),
        (["a", "b"], None, ["a"], ["a"]),
    ],
)
def test_a_key_that_a_reference_names_is_taken_by_position_a_recorded_one_by_names_first(
    call: Renderer, columns: Any, said: Any, known: Any, key: list[str]
) -> None:
    columns = call("_key_columns", key=columns)
    assert call("_referenced_key", columns=columns, said=said, known=known) == key


STAFF = {"id": "bigint", "boss": "bigint"}


def test_a_reference_to_the_mirror_itself_joins_its_key(call: Renderer) -> None:
    """In the mirror by the key of the call, in the test by the one that its commits record."""
    compile_in(call, "staff_hx")
    call.pretend_relations("staff", "staff_hx")
    about = {"id": "staff_hx_id", "key": ["id"]}
    call.pretend_answers(
        {
            **source("staff", STAFF, [commit(5), commit(4)]),
            "describe history `golden`.`staff_hx`": captured("staff", 4, hx=about),
            "select max(`staff_hx_id`)": [{"max": 40}],
        }
    )
    own = {"column": "boss", "history": call.table("staff_hx"), "name": "led_by"}
    sql = call("hx_rows", main=call.table("staff"), key="ID", references=[own])
    assert "select `ID` as `__key_1`, `staff_hx_id` as `__id`, `mod_time`" in sql
    assert "else referenced.`__key_1` = numbered.`boss` end" in sql
    test = call("test_history_references_exist", model=call.table("staff_hx"), references=[own])
    assert "case when referenced.`staff_hx_id` is not null then referenced.`id` <=> log" in test


def test_a_key_column_that_the_mirror_replaces_is_refused(call: Renderer) -> None:
    """The values of mod_time and mod_user are the mirror's own, so they identify no item."""
    compile_in(call, "readings_hx")
    call.pretend_relations("readings", "readings_hx")
    columns = {"id": "bigint", "Mod_Time": "timestamp", "mod_user": "string"}
    call.pretend_answers(
        {
            **source("readings", columns, [commit(5), commit(4)]),
            "describe history `golden`.`readings_hx`": captured("readings", 4),
            "describe `golden`.`readings_hx`": described({**columns, "readings_hx_id": "bigint"}),
            "select max(`readings_hx_id`)": [{"max": 40}],
        }
    )
    for name in ("Mod_Time", "MOD_USER"):
        with pytest.raises(DbtRuntimeError, match=f"key column {name} of .*readings has a name"):
            call("hx_rows", main=call.table("readings"), key=["id", name])
    sql = call("hx_rows", main=call.table("readings"), key="id")
    assert "`_commit_timestamp` as `mod_time`" in sql
    assert "numbered.`Mod_Time`" not in sql


def test_names_and_references_that_do_not_fit_a_mirror_are_refused_together(call: Renderer) -> None:
    compile_in(call, "staff_hx")
    call.pretend_relations("staff", "staff_hx")
    about = {"id": "staff_hx_id", "key": ["id"]}
    call.pretend_answers(
        {
            **source("staff", STAFF, [commit(5), commit(4)]),
            "describe history `golden`.`staff_hx`": captured("staff", 4, hx=about),
        }
    )
    one = {"column": "chief", "history": call.table("staff_hx"), "name": "boss"}
    two = {"columns": ["boss", "id"], "history": call.table("staff_hx"), "name": "pair"}
    with pytest.raises(DbtRuntimeError) as refused:
        call("hx_rows", main=call.table("staff"), key="id", references=[one, two])
    problems = str(refused.value).partition("got:")[2].partition("expected:")[0].split("\n")
    assert [line.strip() for line in problems if line.strip()] == [
        "column boss of golden.staff has the name of a link: give the reference another name",
        "a reference names column chief, which does not exist",
        "the reference to golden.staff_hx has 2 columns for a key of 1 (id)",
    ]


@pytest.mark.parametrize("is_ahead", [True, False])
def test_a_mirror_that_was_set_back_waits_for_a_reference_that_was_set_back(
    call: Renderer, is_ahead: bool
) -> None:
    """Rows of a difference come after the rows that the mirror has.

    networks_hx     ... 00:10 | its difference is later than 00:10
    stations_hx     ... 00:08 |     or     00:20 | waits
    """
    compile_in(call, "stations_hx")
    call.pretend_relations("stations", "stations_hx", "networks", "networks_hx")
    columns = {"id": "bigint", "network": "bigint"}
    stored = {**columns, "mod_time": "timestamp", "deleted": "boolean", "stations_hx_id": "bigint"}
    minutes = {"networks_hx": 10, "stations_hx": 20 if is_ahead else 8}
    call.pretend_answers(
        {
            **source("stations", columns, [commit(3), commit(2)]),
            **source("networks", {"id": "bigint"}, [commit(2), commit(1)]),
            "describe history `golden`.`stations_hx`": captured("stations", 7),
            "describe history `golden`.`networks_hx`": captured(
                "networks", 7, hx={"id": "networks_hx_id", "key": ["id"]}
            ),
            "describe `golden`.`stations_hx`": described(stored),
            "select max(`stations_hx_id`)": [{"max": 40}],
            **{
                f"select unix_micros(max(`mod_time`)) from `golden`.`{name}`": [
                    {"micros": 1709424000000000 + minute * 60_000_000}
                ]
                for name, minute in minutes.items()
            },
        }
    )
    sql = call(
        "hx_rows", main=call.table("stations"), key="id",
        references=[{"column": "network", "history": call.table("networks_hx")}],
    )  # fmt: skip
    assert ('"after": null' in sql) == is_ahead
    assert ("from numbered where 1 = 0" in sql) == is_ahead
    assert ("timestamp_micros(1709424480000001L)" in sql) == (not is_ahead)


def test_the_coarse_log_takes_the_key_from_the_table(call: Renderer) -> None:
    compile_in(call, "inbox")
    call.pretend_relations("customers", "inbox")
    call.pretend_answers(
        {**CUSTOMER_SOURCE, "describe history `golden`.`inbox`": captured("customers", 3)}
    )
    customers = call.table("customers")
    said = call("core_temp_history", tables=[{"main": customers, "key": "id"}])

    def inbox(unique_key: str | None, **context: Any) -> str:
        config = {"materialized": "table", "unique_key": unique_key}
        node = {"unique_id": "model.shop.customers", "resource_type": "model", "config": config,
                "schema": "golden", "alias": "customers"}  # fmt: skip
        graph = {"nodes": {"model.shop.customers": node}, "sources": {}}
        call.context = {**call.context, "graph": graph, **context}
        return str(call("core_temp_history", tables=customers))

    assert inbox("id") == said
    with pytest.raises(DbtRuntimeError, match=r"core_temp_history: no key is known(.|\n)*custom"):
        inbox(None)
    assert "where 1 = 0" in inbox(None, execute=False)
    unit_test = {**call.context["model"], "resource_type": "unit_test"}
    assert "where 1 = 0" in inbox("id", execute=True, model=unit_test)
    with pytest.raises(DbtRuntimeError, match=r"core_temp_history: dbt's unit tests do not show"):
        inbox(None, model=unit_test)
    call.pretend_relations("inbox")
    compile_in(call, "inbox")
    assert '"after": null' in inbox("id")


@pytest.mark.parametrize(
    ("kind", "plan"),
    [
        ("all_rows", {"kind": "captured", "batch": 2}),
        ("by_batch", {"kind": "batch", "from": 1, "batch": 3, "stored": 40}),
        ("by_key", {"kind": "key", "key": ["id", "at"]}),
        ("by_row", {"kind": "rows"}),
        ("stamped", {"kind": "rows", "start": "valid_from", "stamp": "7L"}),
        (
            "stamped_by_batch",
            {"kind": "batch", "from": 1, "batch": 3, "stored": 40, "start": "valid_from",
             "stamp": "`_batch`"},
        ),
    ],
)  # fmt: skip
def test_an_append(call: Renderer, kind: str, plan: dict[str, Any]) -> None:
    compile_in(call, "orders")
    call.pretend_answers({"describe `golden`.`orders`": described({"id": "int", "at": "date"})})
    names = {name.lower(): name for name in ["Id", "at", "note", "_batch"]}
    staged = {"view": "`staged_view`", "names": names}
    sql = call(
        "_append_sql",
        target=call.table("orders"),
        staged=staged,
        names=["id", "at", "note"],
        plan=plan,
    )
    assert_golden(f"logs/append_{kind}", sql)


# Feature states

# What the probe of the writes finds, without `last`.
NOTHING_SPECIAL = {
    "last": None,
    "purges": 0,
    "bases": 0,
    "all_or_nothing": 0,
    "without_transaction": 0,
    "doubles": 0,
    "branches": None,
    "limits": 0,
    "without_history": 0,
}


def test_feature_states(call: Renderer) -> None:
    compile_in(call, "topology", materialized="history_batch")
    call.pretend_relations("topology_writes", "topology")
    writes = {
        "txn": "bigint",
        "position": "int",
        "action": "string",
        "app_id": "string",
        "at": "timestamp",
        "author": "string",
        "expected_uuid": "string",
        "id": "string",
        "Geometry": "binary",
        "properties": "string",
    }
    batch = {"dbt_history": "1", "batch": 41, "epoch": 0, "table_id": "id of the states"}
    # Five writes after transaction 41, all or nothing; transaction 44 fails.
    probe = {**NOTHING_SPECIAL, "last": 45, "all_or_nothing": 5}
    call.pretend_answers(
        {
            "describe `golden`.`topology_writes`": described(writes),
            "describe `golden`.`topology`": described(
                {"id": "string", "Geometry": "binary", "properties": "string"}
            ),
            "describe history `golden`.`topology`": [commit(3, batch)],
            "select\n        cast(max(`txn`) as bigint) as last": [probe],
            "show tables in": [],
            "with": [{"txn": 44}],
        }
    )
    sql = call(
        "feature_states", writes=call.table("topology_writes"), json="properties", database_id=3
    )
    assert_golden("features/feature_states", sql)


@pytest.mark.parametrize("option", ["empty", "sample", None])
def test_a_run_that_hides_rows_publishes_no_horizon(call: Renderer, option: str | None) -> None:
    """It commits nothing, so no state is removed."""
    compile_in(call, "topology", materialized="history_batch")
    call.context["flags"] = SimpleNamespace(WHICH="run")
    call.context["invocation_args_dict"] = {option: True} if option else {}
    call.pretend_relations("topology_writes", "topology", "history_marks")
    writes = {
        "txn": "bigint", "position": "int", "action": "string", "app_id": "string",
        "at": "timestamp", "id": "string", "v": "int",
    }  # fmt: skip
    batch = {"dbt_history": "1", "batch": 41, "epoch": 0, "table_id": "id of the states"}
    executed = call.pretend_answers(
        {
            "describe `golden`.`topology_writes`": described(writes),
            "describe `golden`.`topology`": described({"id": "string", "v": "int"}),
            "describe history `golden`.`topology`": [commit(3, batch)],
            "select\n        cast(max(`txn`) as bigint) as last": [
                {**NOTHING_SPECIAL, "last": 45, "limits": 1}
            ],
            "show tables in": [],
            "with … select max(array_max(transform(gone": [{"horizon": 30}],
            "select kind, name": [{"kind": "horizon", "name": None, "number": 20}],
            "select name, kind": [],
            "insert into `golden`.`history_marks`": [],
        }
    )
    call("feature_states", writes=call.table("topology_writes"), payload="v", keep_states=2)

    published = [sql for sql in executed if sql.startswith(("with", "insert"))]
    assert len(published) == (0 if option else 2)
    if option is None:
        assert "select 'horizon', 'topology', cast(null as string), '30'" in published[1]


def test_branches_that_ended_before_the_pending_writes_are_not_in_their_sql(
    call: Renderer,
) -> None:
    """The last batch is transaction 41.

    old       fork at 5 -- drop at 20
    now       fork at 30 ------------- rebase at 41 -------
    late      fork at 38 ------------------- drop at 43
    """
    compile_in(call, "topology", materialized="history_batch")
    call.pretend_relations("topology_writes", "topology", "topology_branches")
    writes = {
        "txn": "bigint", "position": "int", "action": "string", "app_id": "string",
        "at": "timestamp", "branch": "string", "id": "string", "v": "int",
    }  # fmt: skip
    batch = {"dbt_history": "1", "batch": 41, "epoch": 0, "table_id": "id of the states"}
    facts = [
        ("fork", "old", 5), ("drop", "old", 20), ("fork", "now", 30), ("fork", "late", 38),
        ("rebase", "now", 41), ("drop", "late", 43),
    ]  # fmt: skip
    call.pretend_answers(
        {
            "describe `golden`.`topology_writes`": described(writes),
            "describe `golden`.`topology`": described({"branch": "string", **writes}),
            "describe history `golden`.`topology`": [commit(3, batch)],
            "select\n        cast(max(`txn`) as bigint) as last": [
                {**NOTHING_SPECIAL, "last": 45, "branches": 2}
            ],
            "select `fact`, `kind`": [
                {
                    "fact": number, "kind": kind, "branch": branch, "parent": "main", "at": since,
                    "since": since,
                }
                for number, (kind, branch, since) in enumerate(facts)
            ],
            "show tables in": [],
        }
    )  # fmt: skip
    sql = call(
        "feature_states", writes=call.table("topology_writes"), id=["branch", "id"],
        database_id=3, branches=call.table("topology_branches"),
    )  # fmt: skip
    assert "'old'" not in sql
    assert "('now', 30L," not in sql
    assert "('late', 38L, 43L, " in sql
    assert "('now', 41L, 9223372036854775807L, " in sql
    assert "or stored.`txn_next` > 38L" in sql


@pytest.mark.parametrize(
    ("after", "applied", "more", "horizon", "base", "known"),
    [
        (7, 9, {}, None, 7, None),
        (7, 7, {"history": "string"}, None, 7, None),
        # The states are suspended, or their run failed: 6 and 7 are evaluated again.
        (7, 5, {}, 5, 5, 7),
        (7, 5, {"history": "string"}, None, 5, 7),
        # The states of 7, or all, are not there: the whole log is evaluated.
        (7, 9, {}, 8, -1, 7),
        (7, 9, {"history": "string"}, None, -1, 7),
        (7, None, {}, None, -1, 7),
        (-1, 9, {}, None, -1, None),
        (None, 9, {}, None, -1, None),
    ],
)
def test_outcomes_are_evaluated_on_the_states_that_are_there(
    call: Renderer,
    after: int | None,
    applied: int | None,
    more: dict[str, str],
    horizon: int | None,
    base: int,
    known: int | None,
) -> None:
    """`applied`: the last batch of the states; None where there is no table."""
    compile_in(call, "outcomes")
    relations = {"writes": True, "states": applied is not None, "history_marks": bool(horizon)}
    call.pretend_relations(*(name for name, is_there in relations.items() if is_there))
    writes = {
        "txn": "bigint", "position": "int", "action": "string", "id": "string",
        "app_id": "string", "at": "timestamp", "v": "int", **more,
    }  # fmt: skip
    batch = {"dbt_history": "1", "batch": applied, "epoch": 0, "table_id": "id of the states"}
    mark = {"kind": "horizon", "name": None, "number": horizon}
    call.pretend_answers(
        {
            "describe `golden`.`writes`": described(writes),
            "describe `golden`.`states`": described({"id": "string", "v": "int"}),
            "describe history `golden`.`states`": [commit(3, batch)],
            # The last writes made no state.
            "select coalesce(max(`txn`), -1) from `golden`.`states`": [{"txn": 4}],
            "select kind, name,": [mark],
            "select name, kind,": [],
            "show tables in": [],
            "select\n        cast(max(`txn`) as bigint) as last": [{**NOTHING_SPECIAL, "last": 11}],
            "with": [],
        }
    )
    sql = call(
        "feature_outcomes",
        writes=call.table("writes"), states=call.table("states"), after=after, payload="v",
    )  # fmt: skip
    assert f"where `txn` > {base}L\n" in sql
    assert ("`golden`.`states`" in sql) == (base >= 0)
    filters = "" if known is None else f"\nwhere outcome.txn > {known}L"
    assert sql.endswith(f"\nfrom outcomes{filters}")


def test_stored_content_keeps_its_values_in_the_types_of_the_log(call: Renderer) -> None:
    """The log got a column and a field, and a narrower price; the states have a field more."""
    types_of_log = {
        "New": "int", "price": "decimal(8,0)", "note": "string", "s": "struct<a:int,c:int>",
    }  # fmt: skip
    states = {"Price": "decimal(10,2)", "note": "string", "s": "struct<a:int,b:int>"}
    features: dict[str, Any] = {"payload": list(types_of_log)}
    features["types_of_log"] = list(types_of_log.values())
    columns = [{"name": name, "type": type_} for name, type_ in states.items()]

    features |= call("_content_with_stored", features=features, columns_of_states=columns)

    content = (
        "struct<p0: int, p1: decimal(10,2), p2: string, p3: struct<`a`: int, `b`: int, `c`: int>>"
    )
    assert features["content_type"] == content
    assert call("_stored_content", features=features) == (
        "cast(named_struct('p0', cast(null as int), 'p1', stored.`price`, 'p2', stored.`note`,"
        " 'p3', if(stored.`s` is null, null, struct(stored.`s`.`a` as `a`, stored.`s`.`b` as `b`,"
        f" cast(null as int) as `c`))) as {content})"
    )


def test_the_history_of_spaces(call: Renderer) -> None:
    """`off` at 7 removes what was before; a fact without a space needs no column `space`."""
    facts = [
        {"space": "it's", "state": "suspended", "since": 3},
        {"space": None, "state": "off", "since": 4},
        {"space": "it's", "state": "on", "since": 5},
        {"space": "roads", "state": "suspended", "since": 6},
        {"space": "it's", "state": "off", "since": 7},
        {"space": "it's", "state": "on", "since": 9},
    ]
    of = [
        call("_history_by_space", facts=facts, key=key, txn="txn", default="'on'")
        for key in (["Space", "id"], ["id"])
    ]
    assert of == [
        "case"
        " when cast(`Space` as string) = 'it\\'s' then"
        " case when txn <= 3L then 'on' when txn <= 5L then 'off' when txn <= 7L then 'on'"
        " when txn <= 9L then 'off' else 'on' end"
        " when cast(`Space` as string) = 'roads' then"
        " case when txn <= 6L then 'on' else 'off' end"
        " else 'on' end",
        "case when txn <= 4L then 'on' else 'off' end",
    ]
    assert call("_removals_by_space", facts=facts, key=["Space", "id"]) == (
        "case when cast(`Space` as string) = 'it\\'s' then array(7L) end"
    )
    assert call("_removals_by_space", facts=facts, key=["id"]) == (
        "case when true then array(4L) end"
    )


@pytest.mark.parametrize("payload", ["name", ["NAME", "height"], [], None])
@pytest.mark.parametrize("operation", ["resync_features", "merge_branch", "rewind"])
def test_a_payload_without_content_that_the_log_has_is_refused(
    call: Renderer, operation: str, payload: Any
) -> None:
    """The model of the states computes `upper_name` and `app_id`: no write has them."""
    content = {"name": "string", "Height": "int"}
    states = {
        "branch": "string", "Id": "string", "i": "bigint", "txn": "bigint", "txn_next": "bigint",
        **content, "upper_name": "string", "app_id": "string",
        "xyz": "struct<action:string,version:bigint,uuid:string>",
    }  # fmt: skip
    log = {
        "txn": "bigint", "position": "bigint", "action": "string", "branch": "string",
        "id": "string", "app_id": "string", "at": "timestamp", **content,
    }  # fmt: skip
    call.pretend_relations()
    executed = call.pretend_answers(
        {
            "select current_catalog()": [{"catalog": "spark_catalog"}],
            "set": [],
            "describe `golden`.`states`": described(states),
            "describe `golden`.`edits`": described(log),
            "select coalesce(max(`txn`), -1) from": [{"txn": 7}],
            "select coalesce(max(`txn`), 0), count_if(": [{"txn": 7, "ahead": 0}],
            "select max(`txn`) from": [{"txn": 7}],
            "select count(*) from": [{"ahead": 0}],
        }
    )
    key, naksha = ["branch", "id"], call("convention", convention="naksha")
    table = {"name": "s", "relation": call.table("states"), "key": key, "convention": naksha}
    said = {"app_id": "editor", "author": None, "message": None, "at": None}
    branch: dict[str, Any] = {
        "caller_name": operation,
        "branch": "draft",
        "problems": [],
        "epochs": [],
    }
    chain = [{"branch": "main", "at": 1, "fork": -1}]
    epoch = {"epoch": 0, "branch": "draft", "fork": 1, "since": 1, "parent": "main", "at": 1}

    def operate() -> None:
        if operation == "resync_features":
            call(
                operation, writes="golden.edits", states="golden.states", snapshot="golden.now",
                app_id="app", id=key, payload=payload, dry_run=True,
            )  # fmt: skip
        elif operation == "rewind":
            said.update({"writes": "golden.edits", "payload": payload})
            call("_check_rewind", tables=[table], only=None, said=said)
        else:
            branch.update({"table": table, "epoch": {**epoch, "chain": chain}})
            call(
                "_merge_or_rebase", call=branch, writes="golden.edits", kind="merge",
                payload=payload, json=[], said=said, even_if_ahead=False, dry_run=True,
            )  # fmt: skip

    if payload == "name":
        with pytest.raises(DbtRuntimeError, match="payload lacks Height: a write is the whole"):
            operate()
    elif operation == "merge_branch":
        # The first statement after the checks compares the contents.
        with pytest.raises(DbtRuntimeError, match="a statement without an answer: with items"):
            operate()
    else:
        operate()
    assert not [sql for sql in executed if sql.startswith("insert")]


@pytest.mark.parametrize("of", ["ref", "text"])
def test_events_of_a_relation_have_times_of_their_own(call: Renderer, of: str) -> None:
    relation = call.table("events")
    changes = relation if of == "ref" else str(relation)
    sql = call("batch_rows", changes=changes, key="id", convention="validity", at="happened")
    assert f"from {relation} as `changes`" in sql
    assert "_unmodified" not in sql


@pytest.mark.parametrize(
    ("states", "log", "payload", "content", "problem"),
    [
        ("name Height upper_name author", "author height NAME", [], "name Height", ""),
        ("name Height upper_name author", "author height NAME", "name", "name", "lacks Height"),
        # Only the key can be a branch.
        ("name branch", "name branch", [], "name branch", ""),
        ("name History", "name history", [], "name History", "History in states and log can be"),
        ("name History", "name history", ["name"], "name", ""),
        ("name History", "name history", ["history"], "history", "lacks name"),
        # A view renamed geo.
        ("name geometry", "name geo", [], "name", "log has geo, and the states have geometry"),
        ("name geometry", "name geo", ["name"], "name", ""),
        # `columns` names another column as the write's author.
        ("name author", "name author editor", [], "name", "log has editor, and the states have"),
        ("geometry", "mode", [], "", "the log has no column of the content"),
    ],
)
def test_a_write_has_the_content_that_states_and_log_have(
    call: Renderer, states: str, log: str, payload: str | list[str], content: str, problem: str
) -> None:
    def columns(names: str) -> list[dict[str, str]]:
        return [{"name": name, "type": "string"} for name in names.split()]

    arguments = {
        "columns_of_states": columns(f"Id txn {states}"),
        "columns_of_log": columns(f"id txn {log}"),
        "key": ["id"],
        "payload": payload,
    }
    assert call("_payload_of", **arguments) == content.split()
    found = call("_payload_problem", **arguments)
    assert problem in found if problem else found is None


@pytest.mark.parametrize("operation", ["resync_features", "merge_branch", "rewind"])
def test_more_writes_than_a_transaction_can_hold_are_refused(
    call: Renderer, operation: str
) -> None:
    call("_refuse_too_many_writes", number=1 << 20, caller_name=operation)
    with pytest.raises(DbtRuntimeError, match=f"dbt_history.{operation}: these are too many"):
        call("_refuse_too_many_writes", number=(1 << 20) + 1, caller_name=operation)


@pytest.mark.parametrize(
    ("reader", "bounds", "point"),
    [
        ("feature_changes", {"from_txn": 4, "to_txn": 9}, "4L"),
        ("feature_changes", {"to_txn": 9}, "9L"),
        ("feature_changes", {"after_time": "2024-03-03"}, "{after} + 1L"),
        ("feature_changes", {"after_time": "2024-03-03", "from_txn": 4},
         "greatest(4L, {after} + 1L)"),
        ("feature_changes", {"squash": True}, None),
        ("feature_activity", {"from_txn": 4}, "4L"),
        ("feature_activity", {"to_txn": 9}, "9L"),
        # What is left; a patch to a state that was cleaned is NULL.
        ("feature_activity", {}, None),
        # The way out of the message.
        ("feature_changes", {"where": "`txn` >= 4"}, None),
        ("feature_activity", {"where": "`txn` >= 4"}, None),
    ],
)  # fmt: skip
def test_changes_below_the_retention_horizon_are_refused(
    call: Renderer, reader: str, bounds: dict[str, Any], point: str | None
) -> None:
    call.pretend_relations("history_marks")
    sql = call(reader, states=call.table("states"), **bounds)
    assert call(reader, states="golden.states", **bounds) == sql
    horizon = "max(if(kind = 'horizon', try_cast(instant as bigint), null)) >= "
    assert sql.count("history_marks") == sql.count(horizon) == (point is not None)
    if point is not None:
        after = (
            "(select coalesce(max(`txn`), -1L) from golden.states where `@ns:com:here:xyz`."
            "`updatedAt` <= unix_millis(timestamp'2024-03-03 00:00:00 UTC'))"
        )
        assert f"{horizon}{point.format(after=after)},\n" in sql
        assert "way out: where: \\'`txn` >= 4\\', without from_txn, to_txn or a time," in sql


FACTS = [
    {"fact": 1, "kind": "fork", "branch": "draft", "parent": "main", "at": 3, "since": 3},
    {"fact": 2, "kind": "fork", "branch": "other", "parent": "main", "at": 4, "since": 4},
]
BRANCHED_STATES = {
    "branch": "string", "id": "string", "i": "bigint", "txn": "bigint", "txn_next": "bigint",
    "v": "int", "@ns:com:here:xyz": "struct<action:string,version:bigint,uuid:string>",
}  # fmt: skip


@pytest.mark.parametrize("reader", ["branch_as_of", "branch_changes", "branch_conflicts"])
def test_a_view_of_a_branch_fails_after_a_rebase_or_a_drop(call: Renderer, reader: str) -> None:
    call.pretend_relations("states", "branches")
    call.pretend_answers(
        {
            "describe `golden`.`states`": described(BRANCHED_STATES),
            "select `fact`, `kind`,": FACTS,
        }
    )
    arguments = {"states": call.table("states"), "branches": call.table("branches")}
    sql = call(reader, branch="draft", id=["branch", "id"], **arguments)
    assert f"dbt_history.{reader}: the branch was rebased or dropped after" in sql
    assert "`kind` <> 'fork' or `branch` = 'draft'\n" in sql
    assert " = 1,\n" in sql


def test_a_branch_forked_again_at_the_same_end_of_the_log_has_only_its_new_bases(
    call: Renderer,
) -> None:
    """The log ends at 4. Before the fork, a branch has the base that it was forked with.

    draft     fork from main at 1, drop, fork at 3, rebase to 4
    detail                                   fork from draft at 3
    """
    facts = [
        ("fork", "draft", "main", 1), ("drop", "draft", None, None), ("fork", "draft", "main", 3),
        ("fork", "detail", "draft", 3), ("rebase", "draft", "main", 4),
    ]  # fmt: skip
    epochs = call(
        "_branch_epochs",
        facts=[
            {"kind": kind, "branch": branch, "parent": parent, "at": at, "since": 4}
            for kind, branch, parent, at in facts
        ],
    )

    def bases(branch: str, at: int | None = None) -> list[tuple[str, int]]:
        links = call("_links_of", epochs=epochs, branch=branch, at=at)
        return [(link["branch"], link["at"]) for link in links[1:]]

    assert bases("detail") == [("draft", 3), ("main", 3)]
    assert bases("draft") == bases("draft", at=4) == [("main", 4)]
    assert bases("draft", at=3) == [("main", 3)]


@pytest.mark.parametrize("reader", ["branch_changes", "branch_conflicts"])
def test_the_guide_of_branches_compares_json_by_attribute(call: Renderer, reader: str) -> None:
    call.pretend_relations("states", "branches")
    states = {name: kind for name, kind in BRANCHED_STATES.items() if name != "v"}
    call.pretend_answers(
        {
            "describe `golden`.`states`": described({**states, "payload": "string"}),
            "select `fact`, `kind`,": FACTS,
        }
    )
    arguments = {"states": call.table("states"), "branches": call.table("branches")}

    def rendered(of: Any) -> Any:
        return call(reader, branch="draft", id=["branch", "id"], json=of, **arguments)

    assert rendered("payload") == rendered(["payload"])
    if reader == "branch_conflicts":
        assert rendered("payload") != rendered([])
    guide = page("docs/guides/feature_branches.md")
    (shown,) = (block for block in blocks(guide, "sql") if f"{reader}(" in block)
    assert "'draft', id=['branch', 'id'], json='payload'\n" in shown
    for operation in ("merge_branch", "rebase_branch"):
        (printed,) = re.findall(
            f"^dbt run-operation {operation} --args '(.*)'$", guide, re.MULTILINE
        )
        assert "json: payload, app_id: editor}" in printed


@pytest.mark.parametrize(
    ("at", "applied", "head", "base"),
    [(3, 7, 7, 7), (3, 5, 7, 5), (6, 5, 7, 6)],
)
def test_a_rebased_branch_is_based_on_what_was_compared(
    call: Renderer, at: int, applied: int, head: int, base: int
) -> None:
    """The states are behind the log; a base that they have not reached stays.

    The fact is added only if nobody has written to the log since.
    """
    call.pretend_relations("states", "branches", "history_marks")
    log = {
        "txn": "bigint", "position": "bigint", "action": "string", "branch": "string",
        "id": "string", "app_id": "string", "at": "timestamp", "v": "int",
        "expected_uuid": "string", "mode": "string",
    }  # fmt: skip
    batch = {"dbt_history": "1", "batch": applied, "epoch": 0, "table_id": "id of the states"}
    executed = call.pretend_answers(
        {
            "select current_catalog()": [{"catalog": "spark_catalog"}],
            "set": [],
            "create table": [],
            "begin": [{"failed": None}],
            "insert into `golden`.`history_marks`": [],
            "describe `golden`.`states`": described(BRANCHED_STATES),
            "describe `golden`.`edits`": described(log),
            "describe history": [commit(2, batch)],
            "select `fact`, `kind`,": [{**FACTS[0], "at": at}],
            "select coalesce(max(`txn`), -1) from": [{"txn": applied}],
            "select coalesce(max(`txn`), 0), count_if(": [{"txn": head, "ahead": head - applied}],
            "select kind, name,": [],
            # No conflict, nothing to write; the fact was added.
            "with items … select count(*) from sides": [{"changes": 0}],
            "with items": [],
            "select count(*)": [{"number": 1}],
            "select (select coalesce(max(`txn`), 0)": [{"txn": head}],
        }
    )
    call(
        "rebase_branch", table="golden.states", writes="golden.edits", branches="golden.branches",
        branch="draft", app_id="editor", even_if_ahead=True, convention="naksha",
        key=["branch", "id"],
    )  # fmt: skip
    (fact,) = (sql for sql in executed if "'rebase'" in sql)
    assert f"{base}L,\n            {head}L,\n" in fact
    assert f"(select coalesce(max(`txn`), 0) from `golden`.`edits`) = {head}L" in fact


@pytest.mark.parametrize("operation", ["merge_branch", "rebase_branch"])
@pytest.mark.parametrize("lacking", ["expected_uuid", "mode"])
@pytest.mark.parametrize("ahead", [0, 2])
def test_writes_of_a_merge_that_pending_ones_may_precede_name_the_states_that_they_expect(
    call: Renderer, operation: str, lacking: str, ahead: int
) -> None:
    """Otherwise the merge would overwrite them, or be applied in part."""
    log = {
        "txn": "bigint", "position": "bigint", "action": "string", "branch": "string",
        "id": "string", "app_id": "string", "at": "timestamp", "v": "int",
        "expected_uuid": "string", "mode": "string",
    }  # fmt: skip
    log.pop(lacking)
    call.pretend_relations("states", "branches")
    batch = {"dbt_history": "1", "batch": 7, "epoch": 0, "table_id": "id of the states"}
    call.pretend_answers(
        {
            "select current_catalog()": [{"catalog": "spark_catalog"}],
            "describe `golden`.`states`": described(BRANCHED_STATES),
            "describe `golden`.`edits`": described(log),
            "describe history": [commit(2, batch)],
            "select `fact`, `kind`,": FACTS,
            "select coalesce(max(`txn`), -1) from": [{"txn": 7}],
            "select coalesce(max(`txn`), 0), count_if(": [{"txn": 7 + ahead, "ahead": ahead}],
        }
    )
    # Without a problem the next statement compares the contents.
    refused = f"even_if_ahead: the log has no column {lacking} and is ahead of the states by 2"
    with pytest.raises(
        DbtRuntimeError, match=refused if ahead else "a statement without an answer: with items"
    ):
        call(
            operation, table="golden.states", writes="golden.edits", branches="golden.branches",
            branch="draft", app_id="editor", even_if_ahead=True, convention="naksha",
            key=["branch", "id"], dry_run=True,
        )  # fmt: skip


def test_a_first_branch_or_mark_of_another_process_is_found(call: Renderer) -> None:
    """dbt has listed the schema before. A temporary view of the name is another one."""
    call.pretend_relations("states")
    call.pretend_answers(
        {
            "show databases": [{"namespace": "golden"}],
            "show tables in `golden` like 'branches'": [
                {"namespace": "", "tableName": "branches", "isTemporary": True},
                {"namespace": "golden", "tableName": "branches", "isTemporary": False},
            ],
            "show tables in `golden` like 'history_marks'": [
                {"namespace": "golden", "tableName": "history_marks", "isTemporary": False}
            ],
            "select `fact`, `kind`,": FACTS,
            "select name, kind,": [{"name": "roads", "kind": "space_off", "since": 4}],
        }
    )
    branches = call.table("branches")
    assert call("_branch_facts", branches=branches) == []
    assert call("_branch_facts", branches=branches, is_sought=True) == FACTS
    assert call("_branch_facts", branches="nowhere.branches", is_sought=True) == []
    states = call.table("states")
    assert call("_space_facts", relation=states) == []
    assert call("_space_facts", relation=states, is_sought=True) == [
        {"space": "roads", "state": "off", "since": 4}
    ]


# Maintenance


def test_a_rewind_of_days_is_refused_where_it_would_replace_a_version(call: Renderer) -> None:
    """The default is the day in UTC; where it can begin is asked of the records to be rewound."""
    columns = {"Key-Id": "string", "v": "int", "from": "date", "to": "date"}
    executed = call.pretend_answers(
        {
            "describe `golden`.`records`": described(columns),
            "select unix_date(date'2024-01-15')": [{"number": 19737}],
            "select coalesce(": [{"next": 19884, "present": 19884, "begins": None}],
            "select\n": [{"begins": 19884, "can_begin": 19885, "versions": 2}],
        }
    )
    said = {"start": "from", "end": "to", "type": "date"}
    table = {
        "name": "records", "relation": call.table("records"), "key": ["Key-Id"], "namespace": None,
        "convention": call("convention", convention=said),
    }  # fmt: skip
    arguments = {"tables": [table], "to": "2024-01-15", "at": None, "only": {"Key-Id": "it's"}}
    with pytest.raises(DbtRuntimeError, match="begin at 2024-06-10, and can begin at 2024-06-11"):
        call("_rewind_points", **arguments)

    (default,) = (sql for sql in executed if sql.startswith("select coalesce("))
    today = "date_from_unix_date(cast(floor(unix_seconds(current_timestamp()) / 86400) as int))"
    assert f"unix_date(version) + 0, 0), unix_date({today})" in default
    assert_golden("maintain/rewind_begin", executed[-1])


@pytest.mark.parametrize(
    ("convention", "has_ended"),
    [
        ("fivetran", "(`_fivetran_end` <= (current_timestamp() - interval 1 millisecond) and"),
        ({"start": "from", "end": "to", "type": "date"}, "`to` <= date_from_unix_date(cast("),
        ({"start": "from", "end": "to", "type": "bigint"}, "not (`to` is null)\n"),
    ],
)
def test_cleaning_by_number_keeps_versions_in_force_and_null_keys(
    call: Renderer, convention: Any, has_ended: str
) -> None:
    """The newest version may start in the future. A snapshot's key may be NULL."""
    executed = call.pretend_answers({"begin": [], "set": []})
    call.pretend_relations()
    table = {
        "relation": call.table("records"), "key": ["id", "part"],
        "convention": call("convention", convention=convention),
    }  # fmt: skip
    start = f"`{table['convention']['start']}`"
    limit = {"keep_versions": 1, "keep_referenced": []}
    plan = {"retention_horizon": "7" if "bigint" in str(convention) else "2024-01-15"}
    call("_remove_versions", table=table, limit=limit, plan=plan)

    merge = executed[-1]
    assert has_ended in merge
    assert "`__place` > 1" in merge
    for name in ("`id`", "`part`", start):
        assert f"and history.{name} <=> gone.{name}" in merge


@pytest.mark.parametrize(
    ("value", "type_", "condition"),
    [
        ("1.239", "decimal(10, 2)", None),
        ("1.5", "decimal(38,0)", None),
        ("4e-11", "decimal(38,10)", None),
        ("-1.2300", "decimal(38,2)", "try_cast('-1.2300' as decimal(38,2)) is null"),
        ("12.5E1", "decimal(10,0)", "try_cast('12.5E1' as decimal(10,0)) is null"),
        ("x", "decimal(10,2)", "try_cast('x' as decimal(10,2)) is null"),
        ("x", "int", "try_cast('x' as int) is null"),
        (True, "boolean", "try_cast('true' as boolean) is null"),
        ("2024-03-01", "date", "try_cast('2024-03-01' as date) is null"),
        ("2024-03-01", "timestamp", "try_cast('2024-03-01 00:00:00 UTC' as timestamp) is null"),
        ("2024-03-01T10:00", "timestamp",
         "try_cast('2024-03-01T10:00:00 UTC' as timestamp) is null"),
        ("2024-03-01 10:00 Europe/Berlin", "timestamp",
         "try_cast('2024-03-01 10:00:00 Europe/Berlin' as timestamp) is null"),
        ("10:00", "timestamp", None),
        ("10:00", "timestamp_ntz", None),
        ("2024", "date", None),
        ("2024-03-01 delivered", "date", None),
        ("2024-03-01 10:00", "date", None),
    ],
)  # fmt: skip
def test_a_value_of_a_migration_is_neither_rounded_nor_completed(
    call: Renderer, value: Any, type_: str, condition: str | None
) -> None:
    executed = call.pretend_answers({"select": [{"is_refused": False}]})
    problems: list[str] = []
    call("_migration_value", value=value, type=type_, problems=problems)
    assert executed == ([] if condition is None else [f"select {condition}"])
    assert problems == ([f"the value {value} is no {type_}"] if condition is None else [])


@pytest.mark.parametrize(
    ("macro", "arguments"),
    [
        ("feature_changes", {"states": "states"}),
        ("feature_changes", {"states": "states", "purges": True}),
        ("deleted_features", {"states": "states"}),
        ("_visible", {"states": "states", "item": ["id"], "namespace": "xyz",
                      "links": [{"branch": "main", "at": None, "fork": -1}]}),
        ("layered_features", {"layers": ["golden.edits", "golden.map"]}),
        ("changeset", {"relation": "states", "key": "id", "convention": "naksha",
                       "from_at": 1, "to_at": 2}),
        ("_ranked_versions", {
            "table": {"key": ["id"], "namespace": "xyz"},
            "limit": {"keep_versions": 1,
                      "keep_referenced": [{"table": "shop.orders", "columns": {"hx": "i"}}]},
        }),
    ],
)  # fmt: skip
def test_columns_beside_those_of_a_table_have_names_with_two_underscores(
    call: Renderer, macro: str, arguments: dict[str, Any]
) -> None:
    """A data column of the same name would be ambiguous; some of these names are documented."""
    call.context = {"execute": True, "graph": {"nodes": {}, "sources": {}}}
    call.pretend_relations()
    columns = {"id": "string", "txn": "bigint", "txn_next": "bigint", "_place": "string"}
    call.pretend_answers({"describe": described(columns)})
    if macro == "_ranked_versions":
        convention = call("convention", convention="naksha")
        table = {"relation": call.table("states"), "convention": convention}
        arguments = {**arguments, "table": {**arguments["table"], **table}}
    sql = call(macro, **arguments)
    added = set(re.findall(r"as `(_\w+)`", sql)) - {"_change_type", "_changed_at", "_layer"}
    assert added
    assert [name for name in added if not name.startswith("__")] == ["_newest"] * (
        macro == "_ranked_versions"
    )


def test_a_rewind_is_refused_where_it_would_delete_a_feature_without_history(
    call: Renderer,
) -> None:
    columns = {
        "branch": "string", "Id": "string", "i": "bigint", "txn": "bigint", "txn_next": "bigint",
        "created_txn": "bigint", "xyz": "struct<action:string,version:bigint,uuid:string>",
    }  # fmt: skip
    found = [{"feature": '{"Id":"f"}', "features": 2, "stored_from": 5}]
    executed = call.pretend_answers(
        {"describe `golden`.": described(columns), "select\n        to_json": found}
    )
    table = {
        "name": "states", "relation": call.table("states"), "key": ["branch", "Id"], "to": "4",
        "namespace": "xyz", "convention": call("convention", convention="naksha"),
    }  # fmt: skip
    refused = 'states: 2 features, such as {"Id":"f"}; they are stored from transaction 5 on'
    with pytest.raises(DbtRuntimeError, match=refused):
        call("_refuse_unkept_states", tables=[table], only={"branch": "main"}, writes="golden.log")
    condition = "(`branch` <=> cast('main' as string) and coalesce(`branch`, 'main') = 'main')"
    assert f"and `created_txn` <= 4L and {condition}" in executed[-1]

    call.pretend_answers({"describe `golden`.": described(columns), "select\n        to_json": []})
    tables = [table, {**table, "namespace": None}]
    call("_refuse_unkept_states", tables=tables, only=None, writes="golden.log")


def test_a_rewind_of_features_counts_only_their_own_writes_in_the_log(call: Renderer) -> None:
    columns = {"space": "string", "id": "string", "txn": "bigint", "txn_next": "bigint"}
    answers = {
        "describe": described(columns),
        "select coalesce(max(`txn`), -1)": [{"newest": 3}],
        "select coalesce(max(`txn`), 0)": [{"txn": 5, "ahead": 0}],
    }
    executed = call.pretend_answers(answers)
    tables = [
        {"name": name, "relation": call.table(name), "key": ["space", "id"], "namespace": "xyz"}
        for name in ("roads", "twin")
    ]
    arguments = {"tables": tables, "only": {"space": "roads"}, "writes": "golden.edits"}
    assert call("_end_of_rewound_log", **arguments) == 5
    assert "count_if(`txn` > 3L and (`space` <=> cast('roads' as string)))" in executed[-1]

    answers["select coalesce(max(`txn`), 0)"] = [{"txn": 5, "ahead": 2}]
    call.pretend_answers(answers)
    both = "roads: 2 writes that the states lack\n *twin: 2 writes that the states lack"
    with pytest.raises(DbtRuntimeError, match=both):
        call("_end_of_rewound_log", **arguments)


@pytest.mark.parametrize("is_operation", [True, False])
def test_a_batch_of_another_run_is_noticed_before_a_rewind_is_merged(
    call: Renderer, is_operation: bool
) -> None:
    """A model notices its own batches only; the rewind has read version 3 of the log."""
    model = {"unique_id": "model.shop.records", **({} if is_operation else {"raw_code": "select"})}
    call.context = {"model": model, "invocation_id": "this"}
    found = {}
    for other, invocation in (("model.shop.other", "that"), ("model.shop.other", "this"),
                              ("model.shop.records", "that")):  # fmt: skip
        record = {"dbt_history": "1", "batch": 4, "model": other, "invocation_id": invocation}
        call.pretend_answers({"describe history": [commit(4, record), commit(3, record)]})
        log = {"seen": {"version": 3, "timestamp": "2024-03-03 00:03:00"}}
        found[other, invocation] = call("_is_overtaken", target=call.table("records"), log=log)
        log["seen"]["version"] = 4
        assert not call("_is_overtaken", target=call.table("records"), log=log)

    assert list(found.values()) == [is_operation, False, True]


@pytest.mark.parametrize(
    ("newest_first", "first"),
    [
        ([(4, "WRITE")], None),
        ([(7, "OPTIMIZE"), (6, "ADD COLUMNS"), (5, "OPTIMIZE"), (4, "WRITE")], None),
        ([(7, "OPTIMIZE"), (6, "MERGE"), (5, "UPDATE"), (4, "WRITE")], 5),
        ([(7, "OPTIMIZE"), (6, "OPTIMIZE")], 5),
        ([(1, "WRITE"), (0, "CREATE TABLE")], 1),
    ],
)
def test_a_commit_of_a_source_is_unread_if_it_may_have_changed_rows(
    call: Renderer, newest_first: list[tuple[int, str]], first: int | None
) -> None:
    """Read up to version 4; entries have expired, or the table was made again."""
    rows = [{**commit(version), "operation": operation} for version, operation in newest_first]
    call.pretend_relations("main", "parquet")
    parquet = {"id": None, "format": "parquet", "location": "", "properties": "{}"}
    call.pretend_answers({**source("main", {}, rows), "describe detail": [parquet]})
    name = "`golden`.`main`"
    watermarks = {
        name: {"version": 4, "table_id": "id of main"},
        "(select)": {"version": None},
        "`golden`.`gone`": {"version": 1},
        "`golden`.`parquet`": {"version": 1, "table_id": "id of parquet"},
    }
    found = call("_unread_commits_of", log={"watermarks": watermarks})

    assert found == (f"version {first} of {name} (last read: 4)" if first is not None else None)
    assert call("_unread_commits_of", log=None) is None


@pytest.mark.parametrize(
    ("newest_first", "first"),
    [
        ([(4, "WRITE")], None),
        ([(7, "VACUUM END"), (6, "SET TBLPROPERTIES"), (5, "OPTIMIZE"), (4, "WRITE")], None),
        ([(7, "OPTIMIZE"), (6, "RENAME COLUMN"), (5, "OPTIMIZE"), (4, "WRITE")], 6),
        ([(6, "UPDATE"), (5, "ADD COLUMNS"), (4, "WRITE")], 5),
        ([(1, "WRITE"), (0, "CREATE TABLE")], 1),
    ],
)
def test_a_log_has_not_read_a_commit_that_may_have_changed_rows_or_columns(
    call: Renderer, newest_first: list[tuple[int, str]], first: int | None
) -> None:
    rows = [{**commit(version), "operation": operation} for version, operation in newest_first]
    call.pretend_relations("main")
    call.pretend_answers(source("main", {}, rows))
    name = "`golden`.`main`"
    log = {
        "source": name,
        "log": {"watermarks": {name: {"version": 4, "table_id": "id of main"}}},
    }

    found = call("_unread_commits", table=log)

    assert found == (f"version {first} of {name} (last read: 4)" if first is not None else None)
    assert call("_unread_commits", table={"source": None, "log": {"watermarks": {}}}) is None


def assert_not_rewound(call: Renderer, refused: str) -> None:
    """The check of a rewind of the table `log` ends with a message like `refused`."""
    table = {
        "name": "log", "relation": call.table("log"), "key": ["id"],
        "convention": call("convention", convention="validity"),
    }  # fmt: skip
    with pytest.raises(DbtRuntimeError, match=refused):
        call("_check_rewind", tables=[table], only=None, said={})


def test_a_rewind_with_changes_to_read_is_refused(call: Renderer) -> None:
    call.pretend_relations("main", "log")
    call.pretend_answers(
        {
            **source("main", {}, [commit(5), commit(4)]),
            "describe history `golden`.`log`": captured("main", 4),
            "describe `golden`.`log`": described({"id": "bigint", "v": "string"}),
            "show tblproperties": [],
        }
    )
    refused = (
        "log: it has not read version 5 of `golden`.`main` .last read: 4., and would follow it"
        " after the rewind: stop the writers of the source, run log, and rewind then"
    )
    assert_not_rewound(call, refused)


def history_with_a_misplaced_batch() -> list[dict[str, Any]]:
    """Batch 3 was committed after the table was restored, and its run had not seen that."""
    batch = {"dbt_history": "1", "epoch": 0, "table_id": "id of log"}
    return [
        commit(4, {**batch, "batch": 3, "seen": 2}),
        {**commit(3), "operation": "RESTORE", "operationParameters": '{"version": "1"}'},
        commit(2, {**batch, "batch": 2, "seen": 1}),
        commit(1, {**batch, "batch": 1, "seen": 0}),
    ]


def test_a_rewind_is_refused_and_restores_nothing_if_a_batch_has_to_be_undone(
    call: Renderer,
) -> None:
    call.pretend_relations("log")
    executed = call.pretend_answers(
        {
            "describe history `golden`.`log`": history_with_a_misplaced_batch(),
            "describe `golden`.`log`": described({"id": "bigint", "v": "string"}),
            "show tblproperties": [],
        }
    )
    refused = (
        "log: it was reset while batch 3 was being written: run log, which undoes that batch, and"
        " rewind then"
    )
    assert_not_rewound(call, refused)
    assert executed
    assert not [statement for statement in executed if "restore" in statement.lower()]


def test_a_misplaced_batch_is_undone_again_if_a_run_has_locked_the_log_meanwhile(
    call: Renderer,
) -> None:
    """Each time another run locks it between the two statements."""
    call.context = {"model": {"unique_id": "model.shop.log"}, "invocation_id": "second"}
    call.pretend_relations("log")
    entry = {"version": 4, "record": {"batch": 3}}
    executed = call.pretend_answers(
        {
            "describe history `golden`.`log`": history_with_a_misplaced_batch(),
            "show tblproperties": [{"key": "delta.appendOnly", "value": "true"}],
            "set": [{"key": "spark.dbt_history.sessionOfThread", "value": "true"}],
            "begin … alter table `golden`.`log` … restore table": [{"failed": "locked"}],
        }
    )
    with pytest.raises(DbtRuntimeError, match="other writers changed the table five times"):
        call(
            "_log_to_write", relation=call.table("log"), caller_name="history_append",
            log={"misplaced": entry},
        )  # fmt: skip
    assert len([statement for statement in executed if statement.startswith("begin")]) == 5


@pytest.mark.parametrize("batch", [2, None])
@pytest.mark.parametrize(
    ("is_copied", "reads", "raw_code", "is_asked"),
    [
        (True, ["model.shop.other"], "select * from {{ ref('other') }}", False),
        (True, ["model.shop.between"], "select * from {{ ref('between') }}", True),
        (True, ["model.shop.main"], "{{ changes(ref(name)) }}", True),
        (True, [], "{{ changes('golden.Main') }}", True),
        (False, ["model.shop.other"], "select * from {{ ref('other') }}", True),
    ],
)
def test_a_source_that_a_model_no_longer_reads_has_nothing_to_read(
    call: Renderer, is_copied: bool, reads: list[str], raw_code: str, is_asked: bool,
    batch: int | None,
) -> None:  # fmt: skip
    """A batch of another SELECT copies how far the source was read."""
    call.context = {"model": {"unique_id": "model.shop.log"}, "invocation_id": "second"}
    watermarks = {"`golden`.`main`": {"version": 4, "table_id": "id of main"}}
    record = call(
        "_commit_record",
        plan={"batch": 2, "stages": {}} | ({} if is_copied else {"watermarks": watermarks}),
        log={"table_id": "id of the log", "epoch": 0, "watermarks": watermarks},
    )
    ephemeral: dict[str, Any] = {"config": {"materialized": "ephemeral"}}
    know(
        call,
        node("model.shop.log", "log", raw_code=raw_code, depends_on={"nodes": reads}),
        node("model.shop.main", "main"),
        node("model.shop.other", "other", depends_on={"nodes": ["model.shop.main"]}),
        node("model.shop.between", "", depends_on={"nodes": ["model.shop.main"]}, **ephemeral),
    )
    call.pretend_relations("main", "log")
    record["batch"] = batch
    call.pretend_answers(
        {
            **source("main", {}, [commit(5), commit(4)]),
            "describe history `golden`.`log`": [commit(2, record), *captured("main", 4)],
        }
    )
    log = call("_delta_commit_log", relation=call.table("log"), node_id="")
    found = call("_unread_commits_of", log=log, relation=call.table("log"))
    assert (found is not None) is is_asked
    assert call("_unread_commits_of", log=log) is not None


# Migrations


@pytest.mark.parametrize(
    ("head", "state", "at", "problem"),
    [
        ([7, 5, 4], {}, 5, None),
        ([4], {"is_future": True}, 8, "is in the future, and the table captures … the present"),
        ([7, 5, 4], {}, 6, "version 5 … before: run its model first, or choose at up to 5"),
        ([7, 6], {}, 5, "version 5 … may be from before: run its model first"),
        ([4], {"table_id": "another"}, 4, None),
        ([4], {"table_id": "another"}, 5, "version 4 … choose at up to 4"),
        ([7, 5, 4], {"is_suspended": True}, 7, None),
        ([7, 5, 4], {"is_suspended": True}, 8, "version 5 … resume_history, … at up to 7"),
        ([5, 4], {"property": "true"}, 6, "version 5 … resume_history, … at up to 5"),
        ([7, 5, 4], {"raw_code": "batch_rows(changes(), at = 'day')"}, 1, "version 5 … may be"),
        (
            [7, 5, 4],
            {"raw_code": "batch_rows(changes(), 'id', 'hx', 'day')"},
            1,
            "version 5 … may be",
        ),
        ([7, 5, 4], {"raw_code": "batch_rows(changes())"}, 5, None),
        ([7, 5, 4], {"raw_code": "batch_rows(changes(a, b), key=['c', 'd'], e=f)"}, 5, None),
    ],
)
def test_a_migration_before_changes_to_read_is_refused(
    call: Renderer, head: list[int], state: dict[str, Any], at: int, problem: str | None
) -> None:
    """The log has read version 4 of its source; the minute of a commit is its version."""
    know(call, node("model.shop.log", "log", raw_code=state.get("raw_code", "")))
    call.pretend_relations("main", "log")
    control = {"dbt_history": "1", "control": {"suspended": True}}
    rows = captured("main", 4)
    if state.get("is_suspended"):
        rows.insert(0, commit(3, control))
    # The entries that the run of the batch had not seen have expired.
    record = json.loads(rows[-1]["userMetadata"]) | {"seen": -2}
    properties = {"key": "dbt_history.suspended", "value": state.get("property")}
    answers: dict[str, Any] = {
        **source("main", {}, [commit(version) for version in head]),
        "describe history `golden`.`log`": [commit(1, record)] if "property" in state else rows,
        "show tblproperties `golden`.`log`": [properties] if "property" in state else [],
        "select unix_micros(ti": [{"at": 1709424000000000 + at * 60_000_000}],
        "select timestamp'at' > current_timestamp()": [{"is_future": "is_future" in state}],
    }
    if "table_id" in state:
        answers["describe detail `golden`.`main`"][0]["id"] = state["table_id"]
    call.pretend_answers(answers)
    found = call(
        "_unread_change_problems", migrated={"relation": call.table("log")}, at="timestamp'at'"
    )
    assert len(found) == (problem is not None)
    for part in (problem or "").replace(" up to ", " up to 2024-03-03 00:0").split(" … "):
        assert part in "".join(found)


def test_a_migration_of_a_table_without_sources_is_not_refused(call: Renderer) -> None:
    call.pretend_relations("log")
    call.pretend_answers({"describe history": [commit(1)], "show tblproperties": []})
    migrated = {"relation": call.table("log")}
    assert call("_unread_change_problems", migrated=migrated, at="timestamp'at'") == []


def test_a_column_added_in_history_mode(call: Renderer) -> None:
    call.pretend_relations("records")
    # The table has the column already, as after a run that was killed before the MERGE.
    table = {
        "id": "bigint",
        "Path": "string",
        "state": "string",
        "_fivetran_start": "timestamp",
        "_fivetran_end": "timestamp",
        "_fivetran_active": "boolean",
    }
    executed = call.pretend_answers(
        {
            "describe history `golden`.`records`": [commit(8), commit(7)],
            "describe `golden`.`records`": described(table),
            "show tblproperties `golden`.`records`": [],
            "select try_cast('new' as string) is null": [{"is_null": False}],
            "select count(*), cast(max(`_fivetran_start`)": [{"count": 0, "max": None}],
            "select count(*) from": [{"count": 2}],
            "select unix_micros(timestamp'2024-03-03": [{"micros": 1709424000000000}],
            "set": [],
            "begin": [],
        }
    )
    call(
        "add_column_in_history_mode",
        table="golden.records",
        column="state",
        default="new",
        at="2024-03-03T00:00:00Z",
        key=["ID", "path"],
    )
    # The last statement is a script: handlers and settings around the MERGE.
    script = executed[-1]
    merge = script[script.index("merge into") : script.rindex(";\n        execute immediate")]
    # Later captures begin after the gap.
    assert '"begun": 1709424000000999' in script.replace("\\", "")
    assert_golden("migrate/add_column_in_history_mode", merge)


@pytest.mark.parametrize(
    ("left", "right", "is_same"),
    [
        ("decimal(10,0)", "decimal", True), ("decimal(10,0)", "DEC( 10 )", True),
        ("decimal(8,2)", "numeric(8, 2)", True), ("decimal(10,0)", "decimal(9)", False),
        ("timestamp", "timestamp_ltz", True), ("timestamp", "timestamp_ntz", False),
        ("int", "Integer", True), ("char(3)", "character(3)", True), ("int", "bigint", False),
    ],
)  # fmt: skip
def test_a_type_has_several_names(call: Renderer, left: str, right: str, is_same: bool) -> None:
    assert call("_is_same_type", left=left, right=right) == is_same


def test_every_golden_file_belongs_to_a_case() -> None:
    rooms = ["capture", "logs", "features", "maintain", "migrate"]
    found = {f"{room}/{path.stem}" for room in rooms for path in (GOLDEN / room).glob("*.sql")}
    assert found == {
        "capture/changes_from_feed",
        "capture/changes_by_comparison",
        "logs/core_history",
        "logs/drain_core_temp_history",
        "logs/event_rows",
        "logs/hx_rows",
        "logs/append_all_rows",
        "logs/append_by_batch",
        "logs/append_by_key",
        "logs/append_by_row",
        "logs/append_stamped",
        "logs/append_stamped_by_batch",
        "features/feature_states",
        "maintain/rewind_begin",
        "migrate/add_column_in_history_mode",
    }


# Commits


@pytest.mark.parametrize(
    ("rows", "bytes_", "is_interpreted"),
    [(10_000, 4 << 20, True), (10_001, 0, False), (10, (4 << 20) + 1, False), (None, 0, False)],
)
def test_only_a_merge_of_few_rows_into_a_small_table_is_interpreted(
    call: Renderer, rows: int | None, bytes_: int, is_interpreted: bool
) -> None:
    call.pretend_answers({"describe detail `golden`.`h`": [{"sizeInBytes": bytes_}], "begin": []})
    settings = settings_of_small_merge(call, rows, is_empty=False)
    assert bool(settings) == is_interpreted
    assert set(settings.values()) <= {"false", "NO_CODEGEN"}


def test_the_size_of_an_empty_table_is_not_asked(call: Renderer) -> None:
    call.pretend_answers({})
    assert settings_of_small_merge(call, 10, is_empty=True)


def settings_of_small_merge(call: Renderer, rows: int | None, is_empty: bool) -> Any:
    return call(
        "_settings_of_small_merge",
        target=call.table("h"), plan={"rows": rows}, log={"is_empty": is_empty}, before={},
    )  # fmt: skip


@pytest.mark.parametrize(("meanwhile", "asked"), [(0, ["limit 102"]), (2, ["limit 102", ""])])
def test_the_log_of_a_source_is_read_back_to_the_watermark(
    call: Renderer, meanwhile: int, asked: list[str]
) -> None:
    """The newest version of the 30 that are known is 200; the source was read up to 100.

    Two commits made meanwhile push two others out of the limit: the log is read whole.
    """
    commits = [
        {**commit(0), "version": number, "timestamp": f"2024-03-03 {number // 60:02}:{number % 60}"}
        for number in range(200 + meanwhile, -1, -1)
    ]
    facts: dict[str, Any] = {
        "table_id": "id", "is_marked": False,
        "entries": [{"version": number} for number in range(200, 170, -1)],
    }  # fmt: skip
    source = call.table("source")
    executed = call.pretend_answers(
        {
            "describe history `golden`.`source` limit 102": commits[:102],
            "describe history": commits,
            "select unix_micros(moment)": [{"micros": 0, "moment": "1970"}],
            "select version, unix_micros": [{"v": 100, "m": 7}],
        }
    )
    watermark = {"version": 100, "table_id": "id", "micros": 7}
    assert call("_is_as_read", table=source, facts=facts, watermark=watermark)
    read = [sql for sql in executed if sql.startswith("describe history")]
    assert read == [f"describe history `golden`.`source` {limit}".strip() for limit in asked]
    assert facts["entries"][-1]["version"] <= 99

    # The commits that a run takes, and those that a mirror waits for.
    executed.clear()
    entries = [{"version": number} for number in range(200, 170, -1)]
    capture = {"relation": source, "head": {"entries": entries}}
    found = call("_entries_since", capture=capture, last=100)
    assert found[-1]["version"] <= 99
    assert [sql for sql in executed if sql.startswith("describe history")] == read


@pytest.mark.parametrize(
    ("former", "present", "is_kept"),
    [
        ("string", "int", False), ("decimal(10,2)", "int", False), ("timestamp", "date", False),
        ("bigint", "int", False), ("int", "decimal(11,2)", False), ("date", "timestamp", False),
        ("int", "bigint", True), ("int", "decimal(12,2)", True), ("date", "timestamp_ntz", True),
        ("int", "string", True), ("binary", "string", False), ("void", "int", True),
        ("string", "string collate UTF8_LCASE", True),
    ],
)  # fmt: skip
def test_a_type_that_has_not_the_values_from_before_is_refused(
    call: Renderer, former: str, present: str, is_kept: bool
) -> None:
    """A column that was dropped, and added again with another type, since the last run."""
    compile_in(call, "customers_hx")
    capture: dict[str, Any] = {
        "columns": [{"name": "V", "type": present}], "layout": {}, "diff": None,
        "segments": [{"columns": [{"name": "v", "type": former}]}],
        "caller_name": "hx_rows", "relation": call.table("customers"),
    }  # fmt: skip
    if is_kept:
        call("_refuse_retyped_columns", capture=capture)
        return
    with pytest.raises(DbtRuntimeError) as refused:
        call("_refuse_retyped_columns", capture=capture)
    assert f"column v was {former} and is {present}" in str(refused.value)
    assert "dbt run --select customers_hx --vars 'dbt_history_capture: diff'" in str(refused.value)
