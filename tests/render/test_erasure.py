"""What an erasure finds and records; no Spark."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from typing import Any

import pytest

from tests.render.test_named_nodes import know, node
from tests.support.rendering import Renderer


def test_a_subject_whose_key_is_a_day_or_a_time_is_recorded(call: Renderer) -> None:
    """dbt reads an unquoted 2024-03-01 of --args as a date, which JSON does not have."""
    days = [date(2024, 3, 1), date(2024, 3, 2), datetime(2024, 3, 1, 12), "2024-03-01", 7, "7"]
    found = [call("_subject_hash", only={"day": day}, salt="run") for day in days]

    assert found[0] == found[3]
    assert len(set(found)) == 5


@pytest.mark.parametrize(
    ("value", "places", "is_one"),
    [
        (7, 0, True),
        (7.0, 0, True),
        ("+07.00 ", 0, True),
        ("7.", 0, True),
        ("1e2", 0, True),
        ("1.5E1", 0, True),
        ("25e-1", 1, True),
        ("0.00e-9", 0, True),
        (1e20, 0, False),
        (7.4, 0, False),
        ("7.5", 0, False),
        ("1e-3", 2, False),
        ("0.001", 2, False),
        ("100e-3", 0, False),
        ("100e-3", 1, True),
        ("12345678901234567.5", 1, True),
        (12345678901234567.5, 1, False),
        ("Infinity", 2, False),
    ],
)
def test_a_decimal_key_is_not_rounded_to_the_key_of_another_record(
    call: Renderer, value: object, places: int, is_one: bool
) -> None:
    """Spark casts 7.4 to the decimal(38,0) 7; a number of YAML has 15 digits that are certain."""
    call.pretend_answers({"select": [{"is_true": True, "is_null": False}]})
    column = {"name": "id", "type": f"decimal(38,{places})"}
    problems = call("_key_problems", only={"ID": value}, columns=[column])
    assert (not problems) is is_one


@pytest.mark.parametrize(
    ("value", "is_one"),
    [
        (date(2024, 1, 1), True),
        ("2024-01-01", True),
        (" 2024-1-1 ", True),
        (datetime(2024, 1, 1), True),
        ("2024-01-01T00:00", True),
        ("2024-01-01 10:00", False),
        (datetime(2024, 1, 1, 10), False),
        ("2024-01-01T", False),
        ("2024-01-01 00:00:00.5", False),
        ("2024-01-01 00:00+02:00", False),
        ("2024-01", False),
        (2024, False),
    ],
)
def test_a_time_is_not_cut_to_the_day_of_another_record(
    call: Renderer, value: object, is_one: bool
) -> None:
    """Spark casts 2024 and 2024-01-01 10:00 to the day 2024-01-01."""
    call.pretend_answers({"select": [{"is_true": True, "is_null": False}]})
    columns = [{"name": "day", "type": "date"}, {"name": "at", "type": "timestamp"}]
    problems = call("_key_problems", only={"Day": value}, columns=columns)
    assert problems == ([] if is_one else [f"only: Day is no date: {value}"])
    call.pretend_answers({"select": [{"is_true": True, "is_null": False}]})
    assert call("_key_problems", only={"at": value}, columns=columns) == []


@pytest.mark.parametrize(
    ("value", "is_one"),
    [
        (date(2024, 1, 1), True),
        ("2024-1-1", True),
        (datetime(2024, 1, 1, 10, 0, 0, 5), True),
        (" 2024-01-01T10:00 ", True),
        ("2024-01-01 10:00:00.5", True),
        (2024, False),
        ("2024-05", False),
        ("2024-01-01T10", False),
        ("10:00:00", False),
        ("2024-01-01 10:00:00+02:00", False),
        ("2024-01-01 10:00:00Z", False),
        (datetime(2024, 1, 1, 10, tzinfo=UTC), False),
        ("2024-01-01 10:00 Europe/Berlin", False),
    ],
)
def test_a_time_without_a_zone_is_not_cut_to_that_of_another_record(
    call: Renderer, value: object, is_one: bool
) -> None:
    """Spark casts 2024-05 to 2024-05-01 00:00 and 10:00+02:00 to 10:00."""
    call.pretend_answers({"select": [{"is_true": True, "is_null": False}]})
    columns = [{"name": "at", "type": "timestamp_ntz"}]
    problems = call("_key_problems", only={"at": value}, columns=columns)
    assert problems == ([] if is_one else [f"only: at is no timestamp_ntz: {value}"])


@pytest.mark.parametrize("type_", ["timestamp", "timestamp_ntz"])
@pytest.mark.parametrize(
    ("places", "is_one"),
    [("", True), (".123456", True), (".1234560", True), (".1234567", False), (".12345601", False)],
)
def test_a_time_is_not_cut_to_the_microsecond_of_another_record(
    call: Renderer, type_: str, places: str, is_one: bool
) -> None:
    call.pretend_answers({"select": [{"is_true": True, "is_null": False}]})
    column = {"name": "at", "type": type_}
    for zone in ("", "Z") if type_ == "timestamp" else ("",):
        value = f"2024-01-01 10:00:00{places}{zone}"
        problems = call("_key_problems", only={"at": value}, columns=[column])
        assert (not problems) is is_one


def test_a_write_without_a_branch_is_erased_with_those_of_main(call: Renderer) -> None:
    """A branch in any other table, such as one of a bank, is a value like others."""
    of_log = ["txn", "position", "action", "app_id", "at"]

    def filter_of(branch: str, names: list[str]) -> str:
        columns = [{"name": name, "type": "string"} for name in [*names, "branch", "id"]]
        return str(call("_rows_of_subject", only={"Branch": branch, "id": "f"}, columns=columns))

    id_ = "`id` <=> cast('f' as string)"
    assert filter_of("main", of_log) == f"{id_} and (`branch` = 'main' or `branch` is null)"
    for branch, names in (("draft", of_log), ("main", of_log[1:])):
        filtered = filter_of(branch, names)
        assert filtered == f"`Branch` <=> cast('{branch}' as string) and {id_}"


def test_columns_that_delta_fills_itself_are_refused_with_all_other_reasons(
    call: Renderer,
) -> None:
    """`kept` is of a column that is not erased; `free` is NULL where `v` is."""
    place: dict[str, Any] = {
        "name": "`golden`.`log`", "relation": call.table("log"),
        "there": [{"name": name, "type": "string"} for name in ("k", "v", "Id", "day", "free")],
    }  # fmt: skip
    place["columns"] = place["there"][1:]
    generated = {"day": "upper(k)", "free": "upper(v)"}
    fields = [
        {"name": "k", "metadata": {"delta.generationExpression": "never asked"}},
        {"name": "v", "metadata": {}},
        {"name": "Id", "metadata": {"delta.identity.start": 1}},
        *({"name": name, "metadata": {"delta.generationExpression": expression}}
          for name, expression in generated.items()),
    ]  # fmt: skip
    counted = "select count(*) from (select `k`, cast(null as string) as `v`"
    executed = call.pretend_answers(
        {
            "describe detail": [{"location": "/tables/log"}],
            "select get_json_object": [{"schema": json.dumps({"fields": fields})}],
            f"{counted} … where k = 1) as erased where (upper(k)) is not null": [{"number": 2}],
            f"{counted} … (upper(v)) is not null": [{"number": 0}],
        }
    )
    problems = ["another one"]
    call("_check_computed_columns", place=place, filter=" where k = 1", problems=problems)

    way_out = "name the columns to erase, without it (columns)"
    assert problems == [
        "another one",
        f"`golden`.`log`: Id is an identity column, which cannot be updated: {way_out}",
        f"`golden`.`log`: day is generated (upper(k)), and would not be NULL in 2 rows: {way_out}",
    ]
    assert len(executed) == 4


def test_a_copy_of_a_batch_that_has_the_record_is_named(call: Renderer) -> None:
    """The copy is named after the model, whose table has another name here; 9 digits are no id."""
    know(call, node("model.shop.customers", "dim_customers"))
    copies = [
        "customers__batches_0123abcd", "customers__batches_0123abcd9", "orders__batches_0123abcd",
    ]  # fmt: skip
    tables = [{"tableName": name, "isTemporary": False} for name in copies]
    # A view of this session, which is listed in every schema.
    tables.append({"tableName": "customers__batches_89abcdef", "isTemporary": True})
    executed = call.pretend_answers(
        {
            "show tables in `golden`": tables,
            "describe": [{"name": "id", "type": "bigint", "comment": None}],
            "select count": [{"count": 2}],
        }
    )
    problems: list[str] = []
    place: dict[str, Any] = {"relation": call.table("dim_customers")}
    main = {"key": ["ID"]}
    call("_check_copies", main=main, places=[place], only={"ID": 7}, problems=problems)

    assert problems == [
        "`golden`.`customers__batches_0123abcd` has 2 rows of this key; it is the copy of a batch:"
        " wait for the run that made it, or drop it if that run was killed"
    ]
    assert sum(statement.startswith("select count") for statement in executed) == 1


def unread(
    call: Renderer,
    answers: dict[str, list[dict[str, Any]]],
    newest: int = 6,
    is_log: bool = True,
    **recorded: Any,
) -> tuple[list[str], list[str]]:
    """The problems of a table that has read version 4 of its source; the statements executed."""
    watermarks = {"`golden`.`people`": {"version": 4, "table_id": "a"}}
    record = {
        "dbt_history": "1", "model": "people_hx", "batch": 1, "epoch": 0, "table_id": "t",
        "watermarks": watermarks, **recorded,
    }  # fmt: skip
    commit = {**COMMIT, "version": 9, "userMetadata": json.dumps(record)}
    call.pretend_relations("people", "people_hx")
    executed = call.pretend_answers(
        {
            "describe history `golden`.`people_hx`": [commit],
            "describe history `golden`.`people` limit 30": [{**COMMIT, "version": newest}],
            "describe `golden`.`people`": [{"name": "id", "type": "bigint", "comment": None}],
            "show tblproperties": [],
            **answers,
            "describe detail": [
                {"format": "delta", "location": "", "id": "a", "properties": "{}"}
                | answers.get("describe detail", [{}])[0]
            ],
        }
    )
    problems: list[str] = []
    place = {
        "name": "`golden`.`people_hx`", "relation": call.table("people_hx"), "is_log": is_log,
        "columns": [{"name": "Mail", "type": "string"}],
    }  # fmt: skip
    call("_check_unread", place=place, only={"ID": 7}, problems=problems)
    return problems, executed


COMMIT = {
    "version": 5, "timestamp": "2024-01-01 00:00:09", "operation": "WRITE",
    "operationParameters": "{}", "operationMetrics": "{}", "userName": None, "userMetadata": None,
}  # fmt: skip


def test_a_change_that_a_log_has_not_read_is_named(call: Renderer) -> None:
    """The log has read version 4 of its main table, whose newest is 6."""
    answers: dict[str, list[dict[str, Any]]] = {
        "explain": [{"plan": "== Physical Plan =="}],
        "select count": [{"count": 1}],
    }
    problems, executed = unread(call, answers)

    assert problems == [
        "`golden`.`people_hx`: it has not read 1 changes of this key in `golden`.`people`, and"
        " would record the values before them: run it first"
    ]
    (counting,) = [one for one in executed if one.startswith("select count")]
    assert "from table_changes('`golden`.`people`', 5, 6) as feed" in counting
    assert counting.endswith("('update_preimage', 'delete') and `ID` <=> cast('7' as bigint)")
    assert unread(call, answers, newest=4)[0] == []


def test_a_new_value_that_a_version_table_has_not_read_is_named(call: Renderer) -> None:
    """
    The source updated the record, then deleted it; the next run would make a version of both.

    feed                 5: update 7 -> Eve        6: delete 7
    after the erasure    [ 7 erased ----------)[ Eve ----)
    """
    names = [{"name": one, "type": "bigint", "comment": None} for one in ("id", "mail")]
    answers: dict[str, list[dict[str, Any]]] = {
        "explain": [{"plan": "== Physical Plan =="}],
        "describe `golden`.`people`": names,
        "select true, try_cast": [{"a": True, "b": False}],
        "select count": [{"count": 1}],
    }
    problems, executed = unread(call, answers, is_log=False)

    assert problems == [
        "`golden`.`people_hx`: it has not read 1 changes of this key in `golden`.`people`, and"
        " would write their values: run it first"
    ]
    # A source that was erased, too, has no value left, and the call can be repeated.
    (counting,) = [one for one in executed if one.startswith("select count")]
    assert counting.endswith(
        "('insert', 'update_postimage') and (`Mail` is not null) and `ID` <=> cast('7' as bigint)"
    )
    assert unread(call, answers, newest=4, is_log=False)[0] == []
    # Suspended, it does not read them.
    assert unread(call, answers, is_log=False, unseen_control={"suspended": True})[0] == []


@pytest.mark.parametrize("columns", [["key", "mail"], ["id", "name"]])
def test_the_source_of_a_version_table_may_name_its_columns_otherwise(
    columns: list[str], call: Renderer
) -> None:
    """A SELECT may rename the key, which then is not known, or a column that is erased."""
    answers: dict[str, list[dict[str, Any]]] = {
        "explain": [{"plan": "== Physical Plan =="}],
        "describe `golden`.`people`": [
            {"name": one, "type": "bigint", "comment": None} for one in columns
        ],
        "select true, try_cast": [{"a": True, "b": False}],
        "select count": [{"count": 1}],
    }
    problems, executed = unread(call, answers, is_log=False)

    (counting,) = [one for one in executed if one.startswith("select count")]
    assert len(problems) == 1
    assert ("which may be of this key" in problems[0]) == ("id" not in columns)
    assert ("`ID`" in counting, "`Mail`" in counting) == ("id" in columns, "mail" in columns)


def test_changes_that_cannot_be_counted_are_refused_if_the_log_reads_them(call: Renderer) -> None:
    """The main table was altered in version 5; the key column may have another name since."""
    error = "Error occurred during query planning: DELTA_CHANGE_DATA_FEED_INCOMPATIBLE"
    refused = [
        "`golden`.`people_hx`: it has not read the versions 5 to 6 of `golden`.`people`, and may"
        " record values of this key: run it first"
    ]
    other_key = [{"name": "key", "type": "bigint", "comment": None}]
    for plan, columns, operation, id_, feed, expected in (
        (error, None, "WRITE", "a", "true", refused),
        (error, None, "WRITE", "a", "false", []),
        (error, None, "WRITE", "b", "true", []),
        ("", other_key, "RENAME COLUMN", "a", "true", refused),
        ("", other_key, "WRITE", "a", "true", []),
    ):
        properties = json.dumps({"delta.enableChangeDataFeed": feed})
        answers: dict[str, list[dict[str, Any]]] = {
            "explain": [{"plan": plan}],
            "describe detail": [{"id": id_, "properties": properties}],
            "describe history `golden`.`people`": [{**COMMIT, "operation": operation}],
        }
        if columns:
            answers["describe `golden`.`people`"] = columns
        assert unread(call, answers)[0] == expected, (plan, columns, operation, id_, feed)


@pytest.mark.parametrize("kind", ["hx", "events", "changes"])
def test_the_former_names_of_a_column_are_erased_with_it(call: Renderer, kind: str) -> None:
    """Former names are those of the main table; deleted is stored under another name in a mirror.

    log    mail of email     deleted of gone     place of home, then of a column of its own
    """
    stored = "main_deleted" if kind == "hx" else "deleted"
    renamed = {"email": ["mail"], "gone": ["deleted"], "home": ["place", "house"], "place": [""]}
    about = {kind: {"key": ["id"], "renamed": renamed, "reused": ["place"]}}
    record = {"dbt_history": "1", "batch": 1, "epoch": 0, "table_id": "t", "about": about}
    call.pretend_relations("people_log")
    columns = ("id", "mail", "email", stored, "gone", "home", "place")
    call.pretend_answers(
        {
            "describe history": [{**COMMIT, "userMetadata": json.dumps(record)}],
            "describe": [{"name": one, "type": "string", "comment": None} for one in columns],
            "show tblproperties": [{"key": "delta.appendOnly", "value": "true"}],
        }
    )
    table = call("_erased_log", name="golden.people_log")

    def erased(*named: str) -> tuple[list[str], list[str]]:
        problems: list[str] = []
        found = call(
            "_with_former_names", table=table, erased=list(named), there=list(columns),
            problems=problems,
        )  # fmt: skip
        return found, problems

    assert erased("email", "gone") == (["email", "gone", "mail", "deleted"], [])
    assert erased("home", "place") == (["home", "place"], [])
    assert erased("home")[1] == [
        "golden.people_log: home was called place, which is the name of another column, too: erase"
        " this table with columns home and place"
    ]


def made_from(name: str, *ids: str, **config: str) -> dict[str, Any]:
    """A node that reads others; a history_batch model unless `config` says something else."""
    made = node(name, name.split(".")[2], depends_on={"nodes": list(ids)})
    return {**made, "config": {**made["config"], **config}}


STRATEGY = {"materialized": "incremental", "incremental_strategy": "history_batch"}


def know_models_and_snapshots(call: Renderer) -> None:
    """
    source people --- model main                    source products --- snapshot taken_of_products
                   '- model by_strategy
                   '- view stg_people --- snapshot taken
    """
    source = {"resource_type": "source", "schema": "golden"}
    tables = {
        f"source.shop.erp.{name}": {**source, "identifier": name} for name in ("people", "products")
    }
    people, products = tables
    nodes = [
        made_from("model.shop.main", people),
        made_from("model.shop.by_strategy", people, **STRATEGY),
        made_from("model.shop.of_products", products, **STRATEGY),
        made_from("model.shop.other", people, materialized="incremental"),
        made_from("model.shop.stg_people", people, materialized="view"),
        made_from("snapshot.shop.taken", "model.shop.stg_people", materialized="snapshot"),
        made_from("snapshot.shop.taken_of_products", products, materialized="snapshot"),
    ]
    know(call, *nodes)
    call.context["graph"]["sources"] = tables
    call.pretend_relations(
        "main", "by_strategy", "of_products", "other", "taken", "taken_of_products", "people"
    )

    def commit(source: str) -> dict[str, Any]:
        record = {
            "dbt_history": "1", "batch": 1, "epoch": 0, "table_id": "t",
            "watermarks": {f"`golden`.`{source}`": {"version": 4}},
        }  # fmt: skip
        return {**COMMIT, "userMetadata": json.dumps(record)}

    call.pretend_answers(
        {
            "describe history `golden`.`of_products`": [commit("products")],
            "describe history": [commit("people")],
            "describe": [{"name": "id", "type": "bigint", "comment": None}],
            "show tblproperties": [],
        }
    )


def test_a_table_of_the_incremental_strategy_is_a_mirror_of_its_source(call: Renderer) -> None:
    know_models_and_snapshots(call)
    problems: list[str] = []
    main = {"name": "main", "relation": call.table("main"), "key": ["id"]}

    assert call("_same_source", main=main, named=[], problems=problems) == ["by_strategy"]
    assert problems == []


def test_a_log_of_writes_has_its_states_in_the_incremental_strategy(call: Renderer) -> None:
    know(call, made_from("model.shop.states", "model.shop.edits", **STRATEGY),
         node("model.shop.edits", "edits"))  # fmt: skip
    call.pretend_relations("edits", "states")
    main = {"name": "edits", "relation": call.table("edits"), "is_log_of_writes": True}
    problems: list[str] = []

    found = call("_tables_of_subject", main=main, named=[], problems=problems)
    assert (found, problems) == (["golden.states"], [])


def test_snapshots_of_the_same_source_are_named_as_not_erased(call: Renderer) -> None:
    know_models_and_snapshots(call)
    main = {"name": "main", "relation": call.table("main"), "key": ["id"]}

    def left(*places: str) -> list[str]:
        return list(call("_not_erased", main=main, places=[{"name": one} for one in places]))

    people = "golden.people, which main is made from"
    assert left("`golden`.`main`") == [people, "golden.taken, a snapshot of the same rows"]
    assert left("`golden`.`main`", "`golden`.`taken`") == [people]
