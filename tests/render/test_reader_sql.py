"""The SQL of the readers, without Spark. `UPDATE_GOLDEN=1` rewrites the golden files."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError

from tests.support.rendering import Renderer

GOLDEN = Path(__file__).parent / "golden" / "readers"
NUMBERS = {"convention": "validity", "type": "bigint", "open_end": 2147483647}
ODD = {"start": "start", "end": "end", "active": "Is `Current`", "type": "date", "gap": 1}
HX = {"convention": "hx", "key": "customer_id"}
EVENTS = {"convention": "events", "key": ["customer_id", "path"]}

# file: (macro, tables among the arguments by name, other arguments, whether history_marks exists)
CASES: dict[str, tuple[str, dict[str, str], dict[str, Any], bool]] = {
    "as_of_fivetran": ("as_of", {"relation": "records"}, {"at": "2024-03-03"}, False),
    "as_of_after_cleaning": ("as_of", {"relation": "records"}, {"at": "2024-03-03"}, True),
    "as_of_version": ("as_of", {"relation": "records"}, {"at": 7, "convention": NUMBERS}, True),
    "as_of_tag": (
        "as_of",
        {"relation": "records"},
        {"at": "tag:year's end", "convention": "validity"},
        True,
    ),
    "as_of_hx": ("as_of", {"relation": "customers_hx"}, {"at": "now", "convention": HX}, False),
    "as_of_events": (
        "as_of",
        {"relation": "events"},
        {"at": "2024-03-03 12:00:00", "convention": EVENTS},
        False,
    ),
    "between_events": (
        "between",
        {"relation": "events"},
        {"from_at": "2024-03-03", "to_at": "now", "convention": EVENTS},
        False,
    ),
    "overlaps_odd_names": (
        "overlaps",
        {"relation": "my records"},
        {"from_at": "2024-03-03", "to_at": "2024-03-04", "convention": ODD},
        False,
    ),
    "contains": (
        "contains",
        {"relation": "records"},
        {"from_at": 3, "to_at": 7, "convention": NUMBERS},
        False,
    ),
    "precedes_after_cleaning": (
        "precedes",
        {"relation": "records"},
        {"at": "2024-03-03"},
        True,
    ),
    "changeset": (
        "changeset",
        {"relation": "records"},
        {"from_at": 3, "to_at": 7, "convention": NUMBERS},
        False,
    ),
    "changeset_with_key": (
        "changeset",
        {"relation": "records"},
        {"from_at": "2024-03-03", "to_at": "2024-03-04", "key": ["id", "end"]},
        True,
    ),
    "rows_with_runs": ("rows_with_runs", {"relation": "records", "runs": "runs"}, {}, False),
    "latest": ("latest", {"hx": "customers_hx"}, {"key": "id", "up_to": 5, "after": 2}, False),
    "latest_with_an_id_of_another_name": (
        "latest",
        {"hx": "customers_mirror"},
        {"key": "id", "up_to": 5, "id": "customers_hx_id"},
        False,
    ),
    "latest_by_time": (
        "latest",
        {"hx": "customers_hx"},
        {"key": "id", "up_to": "2024-03-03", "by": "mod_time"},
        False,
    ),
    "find_changes": (
        "find_changes",
        {"hx": "customers_hx"},
        {"key": "id", "from_at": "2024-03-03", "to_at": "now", "kind": ["update", "delete"]},
        False,
    ),
    "find_changes_of_an_item": (
        "find_changes",
        {"hx": "customers_hx"},
        {"key": "id", "item": 7, "user": "o'neil", "column": ["path", "Is `Current`"]},
        False,
    ),
    "current_version": (
        "current_version",
        {"relation": "records"},
        {"convention": NUMBERS, "empty_table_version": 0},
        True,
    ),
}


def assert_golden(name: str, sql: str) -> None:
    path = GOLDEN / f"{name}.sql"
    if os.environ.get("UPDATE_GOLDEN") == "1":
        path.parent.mkdir(exist_ok=True)
        path.write_text(sql + "\n")
    golden = path.read_text() if path.exists() else ""
    assert golden == sql + "\n", "UPDATE_GOLDEN=1 rewrites the file"


@pytest.mark.parametrize("name", CASES)
def test_a_reader_equals_the_golden_sql(name: str, call: Renderer) -> None:
    macro, tables, arguments, is_marked = CASES[name]
    call.pretend_relations(*(["history_marks"] if is_marked else []))
    named = {argument: call.table(table) for argument, table in tables.items()}
    assert_golden(name, call(macro, **named, **arguments))


@pytest.mark.parametrize(
    ("name", "kind"),
    [("inner", "inner"), ("left", "left"), ("inner_after_cleaning", "inner"),
     ("left_after_cleaning", "left")],
)  # fmt: skip
def test_a_join_of_periods_equals_the_golden_sql(name: str, kind: str, call: Renderer) -> None:
    call.pretend_relations(*(["history_marks"] if name != kind else []))
    tables = {
        "customers": call.table("customers"),
        "orders": {
            "relation": call.table("orders"),
            "key": "buyer",
            "convention": "validity",
        },
    }
    assert_golden(f"history_join_{name}", call("history_join", tables=tables, key="id", kind=kind))


def test_a_log_is_joined_by_the_key_that_it_has(call: Renderer) -> None:
    orders = {"relation": call.table("orders"), "key": "buyer", "convention": "validity"}
    customers = {"relation": call.table("customers_hx"), "convention": HX}
    tables = {"customers": customers, "orders": orders}
    on = "on\n            `customers`.`{}` = `orders`.`buyer` and"
    assert on.format("customer_id") in call("history_join", tables=tables)
    customers["key"] = "id"
    assert on.format("id") in call("history_join", tables=tables)


def test_tuples_of_histories_equal_the_golden_sql(call: Renderer) -> None:
    customers, orders = call.table("customers_hx"), call.table("orders_hx")
    collections = [
        {"history": orders, "references": [{"history": customers}]},
        {"history": customers, "id": "own id"},
    ]
    bounds = {"orders_hx": 5, "customers_hx": "(select max(n) from bounds)"}
    assert_golden("history_tuple", call("history_tuple", collections=collections, at="2024-03-03"))
    assert_golden("is_consistent", call("is_consistent", collections=collections, bounds=bounds))


def test_the_rows_of_a_change_feed_equal_the_golden_sql(call: Renderer) -> None:
    feed = call.table("customer_changes")
    numbered = call("batch_rows", changes=feed, key="id", convention=NUMBERS, at="_commit_version")
    assert_golden("batch_rows_validity", numbered)
    timed = call("batch_rows", changes="(select 1)", key=["id", "end"], convention="fivetran")
    assert_golden("batch_rows_fivetran", timed)


@pytest.mark.parametrize(
    ("at", "is_of_commit"),
    [
        ("_commit_timestamp", True),
        ("date_trunc('day', `changes`.`_COMMIT_TIMESTAMP`)", True),
        ("greatest(last_commit_at, _commit_timestamp)", True),
        ("10 * _commit_version", True),
        ("`last_commit_at`", False),
        ("git_commit_time", False),
        ("old_commit_timestamp", False),
        ("`my _commit_timestamp`", False),
        ("to_timestamp(happened, '_commit_version')", False),
    ],
)
def test_only_a_column_of_the_commits_is_the_position_of_a_commit(
    call: Renderer, at: str, is_of_commit: bool
) -> None:
    sql = call("batch_rows", changes="(select 1)", key="id", convention="validity", at=at)

    assert ("max(cast(" in sql) is is_of_commit


def test_a_truncation_ends_records_in_the_gap_after_their_stored_end(call: Renderer) -> None:
    """A stored end of 10 January with a gap of a day: in force on the 10th, until the 11th."""
    call.context = {"this": call.table("records"), "execute": True}
    call.pretend_relations("records")
    columns = {"id": "bigint", "op": "string", "happened": "date", "_change_type": "string"}
    described = [{"col_name": name, "data_type": type_, "comment": None}
                 for name, type_ in columns.items()]  # fmt: skip
    call.pretend_answers({"describe query": described})
    arguments = {"changes": "feed", "key": "id", "at": "happened", "truncate_when": "op = 'T'"}
    first = "(select min(cast(happened as date)) from feed as `changes` where "
    first += "coalesce((op = 'T'), false))"
    for gap, limit in [(1, f"date_sub({first}, 1)"), (0, first)]:
        sql = call("batch_rows", convention=ODD | {"gap": gap}, **arguments)
        assert f"or `end` > {limit}" in " ".join(sql.split())


def test_two_axes_equal_the_golden_sql(call: Renderer) -> None:
    call.pretend_relations("history_marks")
    valid = {"start": "holds_from", "end": "holds_to"}
    prices = call.table("prices")
    sql = call(
        "bitemporal", relation=prices, valid_at="2024-03-15", known_at="2024-04-30", valid=valid
    )
    assert_golden("bitemporal", sql)


def test_every_golden_file_belongs_to_a_case() -> None:
    others = {"batch_rows_validity", "batch_rows_fivetran", "bitemporal"}
    others |= {"history_join_inner", "history_join_left", "history_tuple", "is_consistent"}
    others |= {"history_join_inner_after_cleaning", "history_join_left_after_cleaning"}
    assert {path.stem for path in GOLDEN.glob("*.sql")} == set(CASES) | others


@pytest.mark.parametrize(
    "at", ["2024-3-2", "2024-03", "02.03.2024", "3/2/2024", "2024-03-02 7:00", "2024-03-02T10"]
)
def test_a_text_that_is_almost_a_date_is_refused(call: Renderer, at: str) -> None:
    """As SQL, 2024-3-2 would be a number."""
    for convention in ("validity", NUMBERS, ODD):
        with pytest.raises(DbtRuntimeError) as refused:
            call("as_of", relation=call.table("records"), at=at, convention=convention)
        assert "dbt_history.as_of: this is not a point on the axis" in str(refused.value)
        assert "way out: write a date as 2024-03-02" in str(refused.value)


@pytest.mark.parametrize("text", ["golden.records", "`golden`.`records`"])
def test_the_name_of_a_table_as_text_is_checked_as_its_relation_is(
    call: Renderer, text: str
) -> None:
    """Tags and the retention horizon are those of the table."""
    call.pretend_relations("history_marks")
    for macro, arguments in (
        ("as_of", {"at": "2024-03-03"}),
        ("as_of", {"at": "tag:year_end"}),
        ("precedes", {"at": "2024-03-03"}),
        ("changeset", {"from_at": "2024-03-03", "to_at": "2024-03-04"}),
        ("current_version", {}),
    ):
        found = call(macro, relation=text, convention="fivetran", **arguments)
        of_relation = call(
            macro, relation=call.table("records"), convention="fivetran", **arguments
        )
        assert "history_marks" in found
        assert found.replace("`golden`.`records`", "golden.records") == of_relation


def test_thousands_of_runs_are_rows_of_one_inline_table(call: Renderer) -> None:
    """Spark's parser overflows its stack at about a thousand branches of UNION ALL."""
    call.context = {"graph": {}, "execute": True}
    call.pretend_relations("records")
    numbers = range(2999, -1, -1)
    record = {"dbt_history": "1", "author": "o'neil", "message": "\\"}
    call.pretend_answers({
        "describe history": [
            {
                "version": number, "timestamp": "2024-03-03", "operation": "MERGE",
                "operationParameters": "{}", "operationMetrics": '{"numTargetRowsInserted":"4"}',
                "userMetadata": json.dumps(record | {"invocation_id": f"run {number // 2}"}),
                "userName": "ann",
            }
            for number in numbers
        ],
        "select unix_micros(moment)": [{"micros": 0, "moment": "1970-01-01"}],
        "select version, unix_micros": [{"v": number, "m": 10 * number} for number in numbers],
    })  # fmt: skip
    sql = call("history_runs", tables=call.table("records"))
    assert "union" not in sql
    lines = [line.strip() for line in sql.splitlines() if "'run " in line]
    assert len(lines) == 1500
    assert lines[-1] == (
        "('run 0', 'golden', 'records', 'o\\'neil', null, '\\\\', 2, 8, 0, 0, 0, 1, '0,1', 10)"
    )


@pytest.mark.parametrize(
    "text", ["records", "(select * from golden.records)", "golden.records version as of 3"]
)
def test_other_text_has_no_horizon(call: Renderer, text: str) -> None:
    """A sub-query, a CTE or a temporary view may have other rows than the table."""
    call.pretend_relations("history_marks")
    sql = call("as_of", relation=text, at="2024-03-03", convention="fivetran")
    assert f"from {text}" in sql
    assert "history_marks" not in sql


def test_a_time_may_name_a_region(call: Renderer) -> None:
    sql = call(
        "as_of", relation=call.table("records"), at="2024-03-02 10:00 Europe/Berlin",
        convention="validity",
    )  # fmt: skip
    assert "timestamp'2024-03-02 10:00:00 Europe/Berlin'" in sql
