"""The SQL of the merge under each convention, and of the small macros it uses, without Spark.

`UPDATE_GOLDEN=1` rewrites the golden files.
"""

from __future__ import annotations

import difflib
import json
import os
import re
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError
from pyspark import SparkContext

from tests.support.rendering import Renderer

GOLDEN = Path(__file__).parent / "golden"


@dataclass(frozen=True)
class MergeCase:
    """One merge to render.

    convention  as for `dbt_history.convention`
    data        the table's columns besides those of the convention: {name: type}
    key         the key columns
    bound       the least time of the batch, minus a gap
    unmodified  columns that some update row keeps, lower case
    staged      columns that the SELECT has in another type or spelling; None: it has no such column
    key_bits    the bitmap of the batch's keys from the plan, or a shorter one
    stages      the stages besides upsert of which the plan has rows
    """

    convention: Any
    data: dict[str, str]
    bound: str | int
    key: list[str] = field(default_factory=lambda: ["id"])
    unmodified: list[str] = field(default_factory=list)
    key_bits: str | None = None
    staged: dict[str, dict[str, str] | None] = field(default_factory=dict)
    update_without_base: str = "skip"
    late_events: bool = False
    tracked: list[str] = field(default_factory=list)
    batch: int | None = 7
    stages: tuple[str, ...] = ("earliest_start", "updates", "deletes")


DATA = {"id": "bigint", "v": "string", "w": "string"}
BOOKKEEPING = {
    "_stage": "string",
    "_batch": "bigint",
    "_order": "bigint",
    "_unmodified": "array<string>",
}
MAXIMUM = 9223372036854775807
CASES = {
    "fivetran": MergeCase(
        "fivetran", DATA, "2024-01-01 00:00:59.999000", unmodified=["w", "_fivetran_end"]
    ),
    # Names that are SQL keywords or contain blanks and quotes; the SELECT spells two differently.
    "own_date": MergeCase(
        {
            "start": "start",
            "end": "end",
            "active": "Is `Current`",
            "type": "date",
            "open_end": "9999-12-31",
            "gap": 1,
        },
        {"My Key": "string", "path": "string", "select": "bigint", "it's": "string"},
        "2023-12-31",
        key=["My Key", "path"],
        unmodified=["select", "it's", "end", "is `current`"],
        staged={"My Key": {"name": "MY KEY"}, "select": {"type": "int"}},
        key_bits="0000001080000000",
        update_without_base="insert",
    ),
    "upserts": MergeCase("fivetran", DATA, "2024-01-01 00:00:59.999000", stages=()),
    "column_not_selected": MergeCase(
        "fivetran",
        DATA,
        "2024-01-01 00:00:59.999000",
        unmodified=["w"],
        staged={"w": None},
        stages=("updates",),
    ),
    "late_events": MergeCase("fivetran", DATA, "2024-01-01 00:00:59.999000", late_events=True),
    "runs": MergeCase(
        "validity", DATA, "2024-01-01 00:01:00.000000", late_events=True, tracked=["v"]
    ),
}


@pytest.fixture(scope="module", autouse=True)
def gateway() -> Any:
    """The JVM connection before anything is rendered; None unless another test has opened one."""
    return SparkContext._gateway


def merge_sql(call: Renderer, case: MergeCase) -> str:
    """The statement of one batch."""
    convention = call("convention", convention=case.convention)
    types = {
        **case.data,
        convention["start"]: convention["type"],
        convention["end"]: convention["type"],
    }
    if convention["active"]:
        types[convention["active"]] = "boolean"
    columns = [{"name": name, "type": type_} for name, type_ in types.items()]
    staged = [
        {"name": name, "type": type_, **(case.staged.get(name) or {})}
        for name, type_ in {**BOOKKEEPING, **types}.items()
        if case.staged.get(name, {}) is not None
    ]
    return str(
        call(
            "_merge_sql",
            batch={
                "target": call.table("records"),
                "staged": {
                    "relation": "`staged`",
                    "view": "`staged_view`",
                    "is_table": False,
                    "columns": staged,
                    "names": {column["name"].lower(): column["name"] for column in staged},
                },
                "columns": columns,
                "settings": {
                    "key": case.key,
                    "convention": convention,
                    "update_without_base": case.update_without_base,
                    "late_events": case.late_events,
                    "has_events": case.late_events,
                    "has_repeats": bool(case.tracked),
                    "tracked": {"columns": case.tracked, "omitted": []} if case.tracked else None,
                    "max_deleted_share": 0.5,
                    "allow_full_refresh": False,
                    "on_schema_change": "append_new_columns",
                },
                "plan": {
                    "batch": case.batch,
                    "first_batch": case.batch,
                    "bound": case.bound,
                    "evaluated_at": 0,
                    "unmodified": case.unmodified,
                    "key_bits": case.key_bits,
                    **dict.fromkeys(case.stages, 1),
                },
                "rendered": {},
            },
        )
    )


@pytest.mark.parametrize("name", CASES)
def test_the_merge_equals_the_golden_sql(call: Renderer, name: str) -> None:
    path = GOLDEN / f"{name}.sql"
    sql = merge_sql(call, CASES[name]) + "\n"
    if os.environ.get("UPDATE_GOLDEN") == "1":
        path.write_text(sql)
    golden = path.read_text() if path.exists() else ""

    difference = difflib.unified_diff(
        golden.splitlines(True), sql.splitlines(True), f"golden/{path.name}", "rendered"
    )

    assert golden == sql, "UPDATE_GOLDEN=1 rewrites the file\n" + "".join(difference)


def test_every_golden_file_belongs_to_a_case() -> None:
    assert {path.stem for path in GOLDEN.glob("*.sql")} == set(CASES)


def test_fields_that_a_row_does_not_say_are_those_of_the_known_version(call: Renderer) -> None:
    kept = call(
        "_kept_fields",
        cell="new",
        known="old",
        type="struct<a:int,B b:int,in:struct<x:int,y:string>>",
        said="struct<in:struct<X:int>,a:int>",
    )
    assert kept == (
        "if(new is null or old is null, new, struct(new.`a` as `a`,"
        " coalesce(new.`B b`, old.`B b`) as `B b`,"
        " if(new.`in` is null or old.`in` is null, new.`in`, struct(new.`in`.`x` as `x`,"
        " coalesce(new.`in`.`y`, old.`in`.`y`) as `y`)) as `in`))"
    )
    types = {"type": "array<struct<a:int,b:int>>", "said": "array<struct<a:int>>"}
    less = "transform({}, item0 -> if(item0 is null, null, struct(item0.`a` as `a`)))"
    is_same = f"({less.format('new')} <=> {less.format('old')})"
    assert call("_kept_fields", cell="new", known="old", **types) == f"if({is_same}, old, new)"
    lost = call("_loses_fields", cell="new", known="old", **types)
    assert lost.startswith("(new is not null and not (old <=> transform(transform(old, item0 -> ")
    assert lost.endswith(f" and not {is_same})")
    for said in ("struct<a:int>", "string"):
        whole = {"type": said, "said": said}
        assert call("_kept_fields", cell="new", known="old", **whole) == "new"
        assert call("_loses_fields", cell="new", known="old", **whole) is None


def plan(call: Renderer, **settings: Any) -> dict[str, Any]:
    """A batch with one update row, of which only the count of what the rules skip is asked."""
    return {
        "target": call.table("records"), "caller_name": "history_batch",
        "plan": {"batch": 1, "first_batch": 1, "updates": 1_000_000, "parts": []},
        "settings": {"key": ["id"], "convention": call("convention", convention="fivetran")}
        | settings,
        "staged": {"relation": "`staged`", "view": "`staged`", "is_table": False},
        "rendered": {
            call("_quoted_relation", relation=call.table("records")): "resolved as (select 1)",
        },
    }  # fmt: skip


def test_rows_without_a_base_are_counted_in_spark_and_five_are_shown(call: Renderer) -> None:
    call.context = {"model": {"unique_id": "model.shop.records"}}
    executed = call.pretend_answers({
        "with resolved … select count(*)": [{"n": 1_000_000}],
        "with resolved … to_json": [{"row": '{"id":7}'}],
        "drop view": [],
    })  # fmt: skip
    with pytest.raises(DbtRuntimeError) as refused:
        call("_refuse_rows_without_base", batch=plan(call, update_without_base="fail"))
    assert "got: 1000000 rows" in str(refused.value)
    assert executed[1].endswith("limit 5")


@pytest.mark.parametrize(
    ("convention", "first", "bounds"),
    [
        ("naksha", 7, ["`txn` > 7L", "`txn_next` > 7L"]),
        (
            "fivetran", 1_000_000,
            [
                "`_fivetran_start` > timestamp'1970-01-01 00:00:01 UTC'",
                "`_fivetran_end` > (timestamp'1970-01-01 00:00:01 UTC' - interval 1 millisecond)"
                " and `_fivetran_end` < timestamp'9999-01-01",
            ],
        ),
    ],
)  # fmt: skip
def test_the_order_of_versions_is_checked_with_the_rows_after_the_batch(
    call: Renderer, convention: str, first: int, bounds: list[str]
) -> None:
    batch = plan(
        call, convention=call("convention", convention=convention), version_order="increasing"
    )
    batch["plan"]["min_effective_at"] = first
    for current in (None, first):
        executed = call.pretend_answers({"select": [{"version": current}]})
        call("_refuse_earlier_version", batch=batch)
        assert len(executed) == 1
        assert all(bound in executed[0] for bound in bounds), executed[0]


class Counted(dict[str, Any]):
    """Settings that count how often each is asked for."""

    asked: Counter[str]

    def get(self, name: str, default: Any = None) -> Any:
        self.asked[name] += 1
        return super().get(name, default)


def test_the_checks_of_rows_are_made_once_for_all_pending_batches(call: Renderer) -> None:
    convention = call("convention", convention="fivetran")
    settings = Counted(key=["id"], convention=convention, late_events=False, has_events=False)
    settings.asked = Counter()
    columns = [{"name": name, "type": "string"} for name in ("id", "a", "b")]
    columns += [{"name": convention[part], "type": "timestamp"} for part in ("start", "end")]
    staged = {
        "relation": "`staged`", "view": "`staged_view`", "is_table": False, "columns": columns,
        "names": {column["name"]: column["name"] for column in columns} | {"_batch": "_batch"},
    }  # fmt: skip
    planned = [
        {
            "batch": number, "rows": 2, "updates": 1, "upserts": 1, "deletes": 0, "null_key": 0,
            "earliest_start": 0, "kept_0": kept, "null_start": number,
        }
        for number, kept in enumerate((0, 2, 3))
    ]  # fmt: skip
    call.pretend_answers({"with staged": [{"batch": json.dumps(batch)} for batch in planned]})

    batches = call(
        "_plan_batches", staged=staged, columns=columns, settings=settings, last_batch=None
    )

    assert [batch["problems"] for batch in batches] == [{}, {"null_start": 1}, {"null_start": 2}]
    assert [batch["unmodified"] for batch in batches] == [[], ["b"], ["a", "b"]]
    # For the SQL and for all batches; each call of `_row_problems` asks once.
    assert settings.asked["null_if_empty"] == 2


def test_a_commit_of_several_batches_keeps_each_unmodified_column_once(call: Renderer) -> None:
    parts = [
        {
            "batch": number, "min_effective_at": 5 - number, "bound": number, "evaluated_at": 7,
            "unmodified": unmodified,
            **dict.fromkeys(
                ["rows", "earliest_start", "updates", "upserts", "deletes", "deleting"], number
            ),
        }
        for number, unmodified in enumerate((["b", "a"], [], ["c", "a"]))
    ]  # fmt: skip
    joined = call("_joined_plan", parts=parts, key_bits=None)
    assert joined["unmodified"] == ["b", "a", "c"]
    assert (joined["rows"], joined["bound"]) == (3, 2)


def test_what_follows_a_row_of_an_earlier_batch_ends_it_in_a_commit_of_several(
    call: Renderer,
) -> None:
    def base_state(parts: list[dict[str, Any]]) -> str:
        convention = call("convention", convention="fivetran")
        settings = {"convention": convention, "update_without_base": "skip"}
        plan = {"unmodified": ["w"], "parts": parts}
        sql = call("_base_state", batch={"settings": settings, "plan": plan})
        return " ".join(str(sql).split())

    followed = (
        ", if( kind <> 0 and `c__fivetran_active` is not null,"
        " (next_known - interval 1 millisecond), null )"
    )
    assert followed in base_state([{"batch": 1}, {"batch": 2}])
    assert base_state([]) == base_state([{"batch": 1}, {"batch": 2}]).replace(followed, "")


def test_rendering_starts_no_spark(call: Renderer, gateway: Any) -> None:
    merge_sql(call, CASES["fivetran"])
    assert SparkContext._gateway is gateway


# Conventions


def refusal(call: Renderer, convention: Any) -> str:
    with pytest.raises(DbtRuntimeError) as refused:
        call("convention", convention=convention)
    return str(refused.value)


def test_an_unknown_convention_is_refused_with_a_list_of_the_known_ones(call: Renderer) -> None:
    message = refusal(call, "fivetrn")
    assert "dbt_history.convention: no convention has this name\n" in message
    assert "got: fivetrn\n" in message
    assert "expected: fivetran, validity, naksha, dbt_snapshot, auto_cdc, or a mapping" in message


@pytest.mark.parametrize(
    "convention",
    [
        {"start": "a"},
        {"end": "b"},
        {"start": "a", "end": "b", "type": "string"},
        {"convention": "validity", "type": None},
        {},
        None,
    ],
    ids=str,
)
def test_a_mapping_without_start_end_and_a_type_is_refused(call: Renderer, convention: Any) -> None:
    message = refusal(call, convention)
    assert "dbt_history.convention: a convention needs a start column, an end column" in message
    assert f"got: {convention or {}}\n" in message
    assert "expected: start and end columns; type timestamp, bigint or date" in message


def test_a_mapping_overrides_the_convention_it_names(call: Renderer) -> None:
    convention = call("convention", convention={"convention": "fivetran", "open_end": None})
    assert convention["open_end"] is None
    assert convention["start"] == convention["version_id"] == "_fivetran_start"


def test_a_custom_convention_is_half_open_timestamps_by_default(call: Renderer) -> None:
    assert call("convention", convention={"start": "a", "end": "b"}) == {
        "start": "a",
        "end": "b",
        "active": None,
        "type": "timestamp",
        "open_end": None,
        "gap": 0,
        "name": "own",
        "version_id": "a",
    }


# Points on the axis

TIME, DATE, NUMBER = ({"type": type_} for type_ in ("timestamp", "date", "bigint"))
DAY = 86400000000


@pytest.mark.parametrize(
    ("value", "literal"),
    [
        ("2024-01-01 10:00:00", "timestamp'2024-01-01 10:00:00 UTC'"),
        ("2024-01-01", "timestamp'2024-01-01 00:00:00 UTC'"),
        ("2024-01-01 10:00", "timestamp'2024-01-01 10:00:00 UTC'"),
        ("2024-01-01T10:00Z", "timestamp'2024-01-01T10:00:00Z'"),
        ("2024-01-01 10:00-05:30", "timestamp'2024-01-01 10:00:00-05:30'"),
        ("2024-01-01 10:00 Etc/GMT+5", "timestamp'2024-01-01 10:00:00 Etc/GMT+5'"),
        ("9999-12-31 UTC", "timestamp'9999-12-31 00:00:00 UTC'"),
        ("2024-01-01 +02:00", "timestamp'2024-01-01 00:00:00 +02:00'"),
        ("2024-01-01z", "timestamp'2024-01-01 00:00:00Z'"),
        ("+10000-01-01", "timestamp'+10000-01-01 00:00:00 UTC'"),
        ("+10000-01-01 10:00", "timestamp'+10000-01-01 10:00:00 UTC'"),
        ("-0044-03-15 10:00:00.5", "timestamp'-0044-03-15 10:00:00.5 UTC'"),
        ("2024-01-01 10:00:00 UTC", "timestamp'2024-01-01 10:00:00 UTC'"),
        ("2024-01-01T10:00:00Z", "timestamp'2024-01-01T10:00:00Z'"),
        ("2024-01-01 10:00:00+02:00", "timestamp'2024-01-01 10:00:00+02:00'"),
        ("2024-01-01 10:00:00.123456 -5:30", "timestamp'2024-01-01 10:00:00.123456 -5:30'"),
    ],
)
def test_a_time_is_utc_unless_it_names_a_zone(call: Renderer, value: str, literal: str) -> None:
    assert call("_literal", value=value, convention=TIME) == literal


@pytest.mark.parametrize(
    ("value", "convention", "literal"),
    [
        ("2024-01-01", DATE, "date'2024-01-01'"),
        (MAXIMUM, NUMBER, f"{MAXIMUM}L"),
        ("-5", NUMBER, "-5L"),
        (None, NUMBER, "cast(null as bigint)"),
        (None, TIME, "cast(null as timestamp)"),
    ],
)
def test_a_literal_has_the_type_of_the_axis(
    call: Renderer, value: Any, convention: dict[str, str], literal: str
) -> None:
    assert call("_literal", value=value, convention=convention) == literal


@pytest.mark.parametrize(
    ("type_", "open_end", "first"),
    [
        ("timestamp", None, "timestamp'9999-01-01 00:00:00 UTC'"),
        ("timestamp", "9999-12-31 23:59:59.999", "timestamp'9999-01-01 00:00:00 UTC'"),
        ("timestamp", "2099-12-31 23:59", "timestamp'2099-12-31 23:59:00 UTC'"),
        ("date", None, "date'9999-01-01'"),
        ("date", "9999-12-31", "date'9999-01-01'"),
        ("date", "2099-12-31", "date'2099-12-31'"),
        ("bigint", None, None),
        ("bigint", 99, "99L"),
    ],
)
def test_an_end_is_open_from_the_open_end_or_the_year_9999(
    call: Renderer, type_: str, open_end: Any, first: str | None
) -> None:
    convention = call(
        "convention", convention={"convention": "validity", "type": type_, "open_end": open_end}
    )
    assert call("_has_open_end", convention=convention) == (
        f"(`valid_to` is null or `valid_to` >= {first})" if first else "(`valid_to` is null)"
    )


@pytest.mark.parametrize(
    ("number", "convention", "value"),
    [
        (0, TIME, "1970-01-01 00:00:00"),
        (1704067259999000, TIME, "2024-01-01 00:00:59.999000"),
        (-1, TIME, "1969-12-31 23:59:59.999999"),
        (253402300799999999, TIME, "9999-12-31 23:59:59.999999"),
        (19723, DATE, "2024-01-01"),
        (-1, DATE, "1969-12-31"),
        (2932896, DATE, "9999-12-31"),
        (-5, NUMBER, -5),
        (MAXIMUM, NUMBER, MAXIMUM),
    ],
)
def test_a_number_of_the_axis_becomes_an_exact_value(
    call: Renderer, number: int, convention: dict[str, str], value: str | int
) -> None:
    assert call("_axis_value", number=number, convention=convention) == value


@pytest.mark.parametrize(
    ("number", "convention", "value"),
    [
        (253402300800000000, TIME, "+10000-01-01 00:00:00"),
        (-62135596800000001, TIME, "0000-12-31 23:59:59.999999"),
        (-735525 * 86400000000 + 1, TIME, "-0044-03-15 00:00:00.000001"),
        (2932897, DATE, "+10000-01-01"),
        (-719163, DATE, "0000-12-31"),
        (-735525, DATE, "-0044-03-15"),
    ],
)
def test_a_number_outside_the_years_1_to_9999_is_written_with_its_own_year(
    call: Renderer, number: int, convention: dict[str, str], value: str
) -> None:
    assert call("_axis_value", number=number, convention=convention) == value


@pytest.mark.parametrize(
    ("gap", "convention", "units"),
    [
        (0, TIME, 0),
        ("1 microsecond", TIME, 1),
        ("1 millisecond", TIME, 1000),
        ("2 seconds", TIME, 2000000),
        ("3 minutes", TIME, 180000000),
        ("1 hour", TIME, DAY // 24),
        ("2 days", TIME, 2 * DAY),
        ("1 day", DATE, 1),
        (1, DATE, 1),
        (0, NUMBER, 0),
        (10, NUMBER, 10),
    ],
)
def test_a_gap_counts_in_units_of_the_axis(
    call: Renderer, gap: Any, convention: dict[str, str], units: int
) -> None:
    assert call("_gap_units", convention={**convention, "gap": gap}) == units


@pytest.mark.parametrize(
    ("lost", "share", "current", "is_more"),
    [
        (29, 0.29, 100, False),
        (30, 0.29, 100, True),
        (57, 0.57, 100, False),
        (5700000, 0.57, 10000000, False),
        (5700001, 0.57, 10000000, True),
        (1, 0.333, 3, True),
        (1, 0.334, 3, False),
        (0, 0, 100, False),
        (1, 0, 100, True),
        (100, 1, 100, False),
        (0, 0.5, 0, False),
    ],
)
def test_a_share_of_records_is_compared_exactly(
    call: Renderer, lost: int, share: float, current: int, is_more: bool
) -> None:
    assert call("_is_more_than", lost=lost, share=share, current=current) == is_more


# Types


@pytest.mark.parametrize("type_", ["string", "array<int>", "struct<a:int,b:array<string>>"])
def test_a_type_without_a_map_is_compared_directly(call: Renderer, type_: str) -> None:
    assert call("_comparable", expression="c", type=type_) == "c"


def entries(column: str, item: str, key: str, value: str) -> str:
    """A map as its sorted entries."""
    entry = f"struct({key} as key, {value} as value)"
    return f"array_sort(transform(map_entries({column}), {item} -> {entry}))"


def test_a_map_is_compared_by_its_sorted_entries(call: Renderer) -> None:
    expected = entries("c", "item0", "item0.key", "item0.value")
    assert call("_comparable", expression="c", type="map<string,struct<a:int,b:int>>") == expected


def test_a_map_in_a_map_is_compared_by_its_entries_too(call: Renderer) -> None:
    inner = entries("item0.value", "item1", "item1.key", "item1.value")
    expected = entries("c", "item0", "item0.key", inner)
    type_ = "map<decimal(10,2),map<string,int>>"
    assert call("_comparable", expression="c", type=type_) == expected


def test_a_map_in_an_array_of_structs_is_compared_by_its_entries(call: Renderer) -> None:
    inner = entries("item0.`My b`", "item2", "item2.key", "item2.value")
    fields = f"struct(item0.`a` as `a`, {inner} as `My b`)"
    expected = f"transform(c, item0 -> if(item0 is null, null, {fields}))"
    type_ = "array<struct<a:int,`My b`:map<string,int>>>"
    assert call("_comparable", expression="c", type=type_) == expected


def test_a_type_is_written_with_its_field_names_quoted(call: Renderer) -> None:
    written = call("_ddl_type", type="array<struct<end:decimal(5,2),m:map<string,struct<a:int>>>>")
    assert written == "array<struct<`end`: decimal(5,2), `m`: map<string, struct<`a`: int>>>>"


ODD_FIELDS = [
    ("dc:title:string", "dc:title", "string"),
    ("a:b:decimal(10,2)", "a:b", "decimal(10,2)"),
    ("xml:lang:struct<x:y:int>", "xml:lang", "struct<x:y:int>"),
    ("m:map<string,struct<b:int>>", "m", "map<string,struct<b:int>>"),
    ("f(x): int", "f(x)", "int"),
    ("`My b`: array<int>", "My b", "array<int>"),
    ("g:geography(OGC:CRS84)", "g", "geography(OGC:CRS84)"),
]


@pytest.mark.parametrize(("part", "name", "type_"), ODD_FIELDS)
def test_a_field_has_the_name_before_the_last_colon_of_its_type(
    call: Renderer, part: str, name: str, type_: str
) -> None:
    fields = call("_fields_of", type=f"struct<id:int,{part},z:string>")
    assert [field["name"] for field in fields] == ["id", name, "z"]
    assert fields[1]["type"] == type_


def test_names_with_a_colon_are_quoted(call: Renderer) -> None:
    type_ = "struct<dc:title:string,m:map<string,int>>"
    assert call("_ddl_type", type=type_) == ("struct<`dc:title`: string, `m`: map<string, int>>")
    compared = call("_comparable", expression="c", type=type_)
    assert compared.startswith("if(c is null, null, struct(c.`dc:title` as `dc:title`, array_sort(")


@pytest.mark.parametrize("type_", ["struct<a,b:int>", "struct<p)q:int,z:int>", "struct<n<x:int>"])
def test_a_name_that_cannot_be_told_from_types_is_refused(call: Renderer, type_: str) -> None:
    with pytest.raises(DbtRuntimeError, match="cannot be told from their types") as refused:
        call("_ddl_type", type=type_)
    assert f"got: {type_}" in str(refused.value)


def test_a_revert_and_an_erasure_cast_to_types_with_quoted_field_names(call: Renderer) -> None:
    column = {"name": "size", "type": "struct<x y:int,a-b:int>"}
    type_ = "struct<`x y`: int, `a-b`: int>"
    erased = {"columns": [column], "there": [{"name": "id", "type": "int"}, column]}

    cells = call("_side_cells", columns=[column], prefix="c_")
    assert cells == f"cast(`size` as {type_}) as `c_size`"
    assert call("_changed_meanwhile", column=column).endswith(f" as {type_})")
    assert call("_cells_without", place=erased) == ["`id`", f"cast(null as {type_}) as `size`"]


FITTING = [
    ("string", "STRING"),
    ("void", "decimal(5,2)"),
    ("array<void>", "array<string>"),
    ("int", "bigint"),
    ("tinyint", "double"),
    ("float", "double"),
    ("varchar(5)", "string"),
    ("string", "char(3)"),
    ("decimal(5,2)", "decimal(10, 2)"),
    ("decimal(5,2)", "decimal(6,3)"),
    ("struct<a: int>", "struct<a:int>"),
]
UNFIT = [
    ("bigint", "int"),
    ("int", "float"),
    ("bigint", "double"),
    ("double", "float"),
    ("int", "string"),
    ("string", "int"),
    ("date", "timestamp"),
    ("timestamp", "timestamp_ntz"),
    ("decimal(5,2)", "decimal(5,3)"),
    ("decimal(5,2)", "decimal(10,1)"),
    ("array<int>", "array<bigint>"),
    ("array<void>", "string"),
]


@pytest.mark.parametrize(
    ("source", "target", "fits"),
    [(*pair, True) for pair in FITTING] + [(*pair, False) for pair in UNFIT],
)
def test_a_type_fits_where_no_value_is_lost(
    call: Renderer, source: str, target: str, fits: bool
) -> None:
    assert call("_type_fits", source=source, target=target) is fits


@pytest.mark.parametrize(
    ("stored", "target", "delta", "iceberg"),
    [
        ("tinyint", "int", True, False),
        ("smallint", "bigint", True, False),
        ("int", "bigint", True, True),
        ("int", "double", True, False),
        ("float", "double", True, True),
        ("tinyint", "float", False, False),
        ("smallint", "float", False, False),
        ("decimal(5,2)", "decimal(8,2)", True, True),
        ("decimal(5,2)", "decimal(8,5)", True, False),
        ("decimal(5,2)", "decimal(5,1)", False, False),
        ("varchar(3)", "string", False, False),
    ],
)
def test_a_column_of_a_log_is_widened_only_as_its_format_can(
    call: Renderer, stored: str, target: str, delta: bool, iceberg: bool
) -> None:
    for is_iceberg, can in ((False, delta), (True, iceberg)):
        found = call("_widening", stored=stored, type=target, is_iceberg=is_iceberg)
        assert found == ("widened" if can else "wrong"), is_iceberg


@pytest.mark.parametrize(
    ("column_type", "is_needed"),
    [
        ("TIMESTAMP_NTZ", True),
        ("array<timestamp_ntz>", True),
        ("map<string, timestamp_ntz>", True),
        ("struct<a: int, b: struct<c: timestamp_ntz>>", True),
        ("struct<timestamp_ntz: timestamp>", False),
        ("timestamp", False),
    ],
)
def test_a_new_column_may_have_times_without_a_zone_at_any_depth(
    call: Renderer, column_type: str, is_needed: bool
) -> None:
    executed = call.pretend_answers({"show tblproperties": [], "alter table": []})
    columns = [{"name": "id", "type": "int"}, {"name": "v", "type": column_type}]
    table = call.context["this"] = call.table("h")
    call("_support_columns", relation=table, columns=columns, caller_name="test")
    assert any("delta.feature.timestampNtz" in sql for sql in executed) is is_needed


# The log of a table


def commit(number: int, operation: str = "MERGE", **parameters: Any) -> dict[str, Any]:
    """An entry as `_history_entries` returns it, without a record of a batch."""
    return {
        "version": number,
        "timestamp": f"2024-01-01 00:00:{number:02}",
        "operation": operation,
        "parameters": parameters,
        "metrics": {},
        "record": None,
    }


def merged(number: int, batch: int | None, epoch: int = 0) -> dict[str, Any]:
    """The commit of a batch."""
    return {**commit(number), "record": {"dbt_history": "1", "batch": batch, "epoch": epoch}}


def walk(call: Renderer, *newest_first: dict[str, Any]) -> tuple[bool, int | None, int | None]:
    found = call("_find_last_batch", entries=list(newest_first))
    return found["is_final"], found["epoch"], found["last_batch"]


@pytest.mark.parametrize(
    ("said", "transaction", "user"),
    [
        ('{"user": 0, "transaction": 0}', "0", "0"),
        ('{"user": "", "transaction": ""}', None, "platform"),
        ('{"user": null, "transaction": null}', None, "platform"),
        ('{"dbt_history": "1", "author": "ann"}', None, "ann"),
        ('{"message": "nightly"}', None, "platform"),
        ("0", None, "0"),
        (None, None, "platform"),
    ],
)
def test_a_commit_may_name_the_transaction_0(
    call: Renderer, said: str | None, transaction: str | None, user: str
) -> None:
    entry = {"version": 3, "said": said, "user": "platform"}
    capture = {"segments": [{"from": 3}], "entries": [entry], "head": {"version": 3}}
    for name, text in (("transaction", transaction), ("user", user)):
        found = call("_attribution_of_versions", capture=capture, field=name)
        assert found == ({} if text is None else {3: text})


def test_the_newest_record_is_the_last_batch(call: Renderer) -> None:
    entries = [commit(9, "OPTIMIZE"), merged(8, 5, epoch=2), merged(7, 4, epoch=2)]
    assert walk(call, *entries) == (True, 2, 5)


def test_a_run_of_a_renamed_model_goes_on_with_the_id_of_the_run_beside_it(call: Renderer) -> None:
    """
    batches      5 by `new` as `old`     6, 7 by the same run
    second run                 reads 5                         6: Delta compares it with 7
    """
    log = {"app": "model.a.b.old", "table_id": "some-table", "epoch": 0}
    log["app_id"] = f"dbt_history:{log['app']}:some-table:0"
    call.context = {"model": {"unique_id": "model.a.b.new"}, "invocation_id": "first"}
    record = call("_commit_record", plan={"batch": 5, "stages": {}}, log=log)
    history = [
        {
            "version": 8,
            "timestamp": "2024-01-01 00:00:08",
            "operation": "MERGE",
            "operationParameters": "{}",
            "operationMetrics": "{}",
            "userMetadata": json.dumps(record),
            "userName": None,
        }
    ]
    call.pretend_answers({"describe history": history})
    read = call("_delta_commit_log", relation=call.table("new"), node_id="model.a.b.new")
    assert read["owner"] == "model.a.b.new"
    assert read["app_id"] == log["app_id"]
    assert call("_commit_record", plan={"batch": 6, "stages": {}}, log=read)["app"] == log["app"]

    # Of a model under its own name the record names no other.
    log["app"] = "model.a.b.new"
    assert "app" not in call("_commit_record", plan={"batch": 5, "stages": {}}, log=log)


def test_a_batch_without_a_number_is_skipped(call: Renderer) -> None:
    assert walk(call, merged(8, None), merged(7, 4)) == (True, 0, 4)


@pytest.mark.parametrize(
    "reset",
    [
        commit(8, "CREATE OR REPLACE TABLE AS SELECT"),
        commit(8, "REPLACE TABLE"),
        commit(8, "TRUNCATE"),
        commit(8, "CLONE"),
        commit(8, "WRITE", mode="Overwrite"),
    ],
    ids=lambda entry: str(entry["operation"]),
)
def test_a_reset_after_the_records_hides_them_and_is_the_epoch(
    call: Renderer, reset: dict[str, Any]
) -> None:
    assert walk(call, reset, merged(7, 4)) == (True, 8, None)


def test_of_a_clone_the_last_batch_is_not_known(call: Renderer) -> None:
    for entries, is_clone in (
        ([commit(0, "CLONE")], True),
        ([merged(9, 5), commit(8, "CLONE")], False),
        ([commit(8, "TRUNCATE"), commit(7, "CLONE")], False),
    ):
        assert call("_find_last_batch", entries=entries)["is_clone"] is is_clone


@pytest.mark.parametrize(
    "write",
    [
        commit(8, "WRITE", mode="Append"),
        commit(8, "WRITE", mode="Overwrite", predicate="id = 1"),
        commit(8, "DELETE"),
    ],
    ids=lambda entry: str(entry["operation"]),
)
def test_a_write_that_keeps_rows_is_no_reset(call: Renderer, write: dict[str, Any]) -> None:
    assert walk(call, write, merged(7, 4)) == (True, 0, 4)


def test_a_record_after_a_reset_gives_batch_and_epoch(call: Renderer) -> None:
    entries = [merged(9, 1, epoch=8), commit(8, "TRUNCATE"), merged(7, 4)]
    assert walk(call, *entries) == (True, 8, 1)


def test_a_restore_by_version_skips_the_commits_it_undid(call: Renderer) -> None:
    entries = [
        commit(4, "RESTORE", version="1"),
        commit(3, "TRUNCATE"),
        merged(2, 2),
        merged(1, 1),
    ]
    assert walk(call, *entries) == (True, 4, 1)


def test_a_batch_committed_after_a_reset_its_run_had_not_read_does_not_count(
    call: Renderer,
) -> None:
    misplaced = merged(9, 5, epoch=0)
    misplaced["record"]["seen"] = 7
    entries = [misplaced, commit(8, "RESTORE", version="6"), merged(7, 4), merged(6, 3)]
    assert walk(call, *entries) == (True, 8, 3)
    assert call("_find_last_batch", entries=entries)["misplaced"]["version"] == 9
    misplaced["record"]["seen"] = 8
    assert walk(call, *entries) == (True, 0, 5)


def test_the_versions_of_an_operation_since_the_last_batch_begin_before_later_changes(
    call: Renderer,
) -> None:
    """
    version   3          4          5                    6           7          8
              rewind     batch 2    migration (unseen)   batch 3     rewind     restore to 6 or 7
              begun 90              begun 50             seen 4      begun 70
    """
    rewinds = {number: merged(number, None) for number in (3, 7)}
    rewinds[3]["record"]["begun"], rewinds[7]["record"]["begun"] = 90, 70
    said = json.dumps({"history_migration": {"operation": "add"}, "begun": 50})
    newest = merged(6, 3)
    newest["record"]["seen"] = 4
    entries = [rewinds[7], newest, {**commit(5), "said": said}, merged(4, 2), rewinds[3]]
    for restored, begun in ((6, 50), (7, 70)):
        restore = commit(8, "RESTORE", version=str(restored))
        found = call("_find_last_batch", entries=[restore, *entries])
        assert (found["last_batch"], found["begun"]) == (3, begun)
    assert call("_find_last_batch", entries=[newest, merged(4, 2)])["begun"] is None

    for latest, floor in ((60, 70), (80, 80)):
        taken = {"about": {"times": {"latest": latest}}, "begun": 70, "number": 4}
        capture = {"taken": taken, "head": {"is_delta": False}, "watermark": None}
        call("_let_times_increase", capture=capture)
        assert capture["floor"] == floor


@pytest.mark.parametrize("operation", ["rewind", "drop_column"])
def test_a_batch_of_captured_changes_that_an_operation_would_hide_is_misplaced(
    call: Renderer, operation: str
) -> None:
    """
    version   7          8            9
              batch 4    operation    batch 5, seen 7
              read to 3  begun 70     read to 4: the time of its changes may be before 70
    """
    begun = merged(8, None)
    begun["record"].update(begun=70, copies_watermarks=True)
    if operation != "rewind":
        said = json.dumps({"history_migration": {"operation": operation}, "begun": 70})
        begun = {**commit(8), "said": said}
    captured = {"watermarks": {"source": {"version": 4}}, "staged_rows": {"upsert": 1}, "seen": 7}
    batch = merged(9, 5)
    batch["record"] |= captured
    entries = [batch, begun, merged(7, 4)]
    log = {"seen": {"version": 7, "timestamp": entries[2]["timestamp"]}}

    found = call("_find_last_batch", entries=entries)
    assert (found["misplaced"]["version"], found["last_batch"], found["begun"]) == (9, 4, 70)
    reset = call("_reset_since", log=log, entries=entries, plan=captured)
    assert reset == f"{operation}, version 8"
    reset = call("_reset_since", log=log, entries=entries[1:], plan=captured)
    assert reset == f"{operation}, version 8"

    # Neither the times of other batches nor an empty one depend on it.
    others: list[dict[str, Any]] = [
        {"copies_watermarks": True}, {"watermarks": {}}, {"staged_rows": {}},
    ]  # fmt: skip
    for other in others:
        batch["record"] = merged(9, 5)["record"] | captured | other
        assert call("_find_last_batch", entries=entries)["last_batch"] == 5
        if "staged_rows" not in other:
            assert call("_reset_since", log=log, entries=entries, plan=batch["record"]) is None
    assert call("_reset_since", log=log, entries=entries, plan={"watermarks": {}}) is None


def test_rows_captured_before_an_operation_are_captured_again(call: Renderer) -> None:
    """The log that the pipeline reads has an operation that the compiled SELECT did not know."""
    comments = []
    for source, after, begun in (("a", {"version": 4}, 50), ("b", None, None)):
        note = {"source": source, "number": 5, "before": {"version": 3}, "about": {}}
        note |= {"after": after} | ({"begun": begun} if begun else {})
        comments.append(call("_note", name="capture", value=note))
    captured = call("_captured_sources", select_sql="\n".join(comments) + " select 1")
    watermarks = {"a": {"version": 3}, "b": {"version": 3}}
    for begun, is_outdated in ((50, False), (70, True), (None, True)):
        log = {"last_batch": 4, "watermarks": watermarks, "begun": begun}
        arguments = {"captured": captured, "log": log}
        assert call("_is_compiled_before_reset", **arguments) is is_outdated


def test_an_iceberg_table_that_was_rewound_since_its_last_batch_copies_watermarks(
    call: Renderer,
) -> None:
    """
    snapshot     6           7          8                            expired
                 batch 1     rewind     batch without a number       6 and 7, or all
    """
    table = call.table("t").incorporate(is_iceberg=True)
    copied = {"copies_watermarks": True, "batch": None, "dbt_history": "1"}
    entries = [
        {**commit(number), "parent": number - 1, "micros": number, "record": record,
         "replaces_all": False, "is_first": False, "may_be_update": False}
        for number, record in ((8, copied), (7, {**copied, "begun": 70}), (6, {"batch": 1}))
    ]  # fmt: skip
    for cut, expected in ((0, True), (1, True), (2, False)):
        found = call("_last_record", chain={"entries": entries[cut:]})
        assert (found["copies_watermarks"], found["record"]) == (expected, {"batch": 1})

    snapshots = []
    for entry in entries:
        record = {**entry["record"], "parent": entry["parent"]}
        snapshots.append({
            "snapshot": json.dumps({
                "version": entry["version"], "parent": entry["parent"], "micros": entry["micros"],
                "operation": "append", "summary": {"dbt_history": json.dumps(record)},
                "is_head": entry["version"] == 8,
            })
        })  # fmt: skip
    executed = call.pretend_answers(
        {"select to_json(struct(": snapshots, "show tblproperties": [], "alter table": []}
    )
    call("_keep_records", relation=table)
    text = re.search("'([0-9a-f]+)'", executed[-1])
    assert text
    assert [record["version"] for record in json.loads(bytes.fromhex(text[1]))] == [8, 7, 6]


def test_a_misplaced_batch_below_the_newest_one_is_found(call: Renderer) -> None:
    """
    version   7          8          9                  10
              batch 4    restore    batch 5, seen 7    batch 4, seen 8
                                    '- misplaced       '- its run had not seen it
    """
    misplaced, newest = merged(9, 5), merged(10, 4)
    misplaced["record"]["seen"], newest["record"]["seen"] = 7, 8
    entries = [newest, misplaced, commit(8, "RESTORE", version="6"), merged(7, 4), merged(6, 3)]
    assert call("_find_last_batch", entries=entries)["misplaced"]["version"] == 9
    # Not whole without version 8, after which the misplaced batch's run has to be looked at.
    assert call("_find_last_batch", entries=entries[:3])["is_whole"]
    assert not call("_find_last_batch", entries=entries[:2])["is_whole"]

    log = {"seen": {"version": 8, "timestamp": entries[2]["timestamp"]}}
    assert "before batch 5 of another run" in call("_reset_since", log=log, entries=entries)
    misplaced["record"]["seen"] = 8
    assert call("_find_last_batch", entries=entries)["misplaced"] is None
    assert call("_reset_since", log=log, entries=entries) is None


def test_commits_before_the_last_of_a_run_keep_what_was_known_of_its_sources(
    call: Renderer,
) -> None:
    """Else the next run would set the times of the rest after those that this run had seen."""
    captured = {
        "number": 7,
        "watermarks": {"s": 9},
        "before": {"s": 6},
        "about": {"times": {"latest": 3}},
    }
    batches: list[dict[str, Any]] = [{"batch": 7}, {"batch": 8}]
    call("_number_captured", batches=batches, captured=captured)
    assert batches[0] == {"batch": 7, "watermarks": {"s": 6}, "about": None}
    assert batches[1] == {"batch": 8, "watermarks": {"s": 9}, "about": captured["about"]}


@pytest.mark.parametrize(
    ("app_id", "is_left"),
    [
        ("dbt_history:model.a.b:some-table:0", True),
        ("dbt_history_watermarks:model.a.b", True),
        ("of the user", False),
    ],
)
def test_a_number_that_a_failed_statement_left_is_known_by_its_id(
    call: Renderer, app_id: str, is_left: bool
) -> None:
    prefix = "spark.databricks.delta.write."
    found = {f"{prefix}txnAppId": app_id, f"{prefix}txnVersion": "7"}
    assert call("_left_settings", found=found) == (list(found) if is_left else [])


@pytest.mark.parametrize(
    ("failed", "reason", "way_out"),
    [
        ("conflict", "other writers changed the table six times during the merge", "run it again"),
        ("too long", "a text is too long for its column (varchar or char)", "shorten the text"),
        ("refused", "of the caller", "its own way out"),
        ("error", "Spark could not finish the merge", "correct it and run it again"),
        ("no delta", "Spark could not finish the merge", "correct it and run it again"),
    ],
)
def test_a_failed_statement_has_a_reason_and_a_way_out(
    call: Renderer, failed: str, reason: str, way_out: str
) -> None:
    own = {"refused": ["of the caller", "its own way out"]}

    found = call("_failure_reason", failed=failed, action="merge", again="run it again", own=own)

    assert found[0] == reason
    assert found[1].endswith(way_out)


@pytest.mark.parametrize("conflict", [None, ["another writer", "wait"]])
def test_the_reason_of_a_caller_comes_before_the_common_one(
    call: Renderer, conflict: list[str] | None
) -> None:
    own = {"conflict": conflict} if conflict else {}
    found = call("_failure_reason", failed="conflict", action="append", again="again", own=own)
    assert (found == conflict) == (conflict is not None)


def test_a_run_restores_all_settings_of_its_commits(call: Renderer) -> None:
    """Iceberg's property is the package's own: a value of it was left by a failed statement."""
    property_of_snapshots = call("_snapshot_property")
    used = [
        "spark.databricks.delta.commitInfo.userMetadata",
        "spark.databricks.delta.write.txnAppId",
        "spark.databricks.delta.write.txnVersion",
        *call("_settings_of_interpretation"),
        *call("_settings_without_derived_conditions"),
        *call("_defaults_of_tasks"),
        "spark.sql.legacy.storeAnalyzedPlanForView",
    ]
    rows = [{"key": key, "value": "of the user"} for key in [*used, property_of_snapshots, "other"]]
    statements = call.pretend_answers({"set": rows, "reset": []})

    before = call("_settings_before_commits")

    assert before == dict.fromkeys(used, "of the user")
    assert statements == ["set", f"reset `{property_of_snapshots}`"]


@pytest.mark.parametrize("number", [7, -1])
def test_a_number_that_the_user_says_is_recorded_without_a_row(call: Renderer, number: int) -> None:
    """Delta leaves out a commit with the number -1: no number is its -1."""
    call.context = {
        "model": {"unique_id": "model.shop.log", "config": {}},
        "run_started_at": datetime(2024, 1, 1, tzinfo=UTC),
    }
    statements = call.pretend_answers({"begin": []})
    log = {"app_id": "of the table", "table_id": "t", "epoch": 2, "last_batch": None}

    call(
        "_record_said_number", target=call.table("log"), staged={}, plan={"from": number},
        log=log, before={}, caller_name="history_append",
    )  # fmt: skip

    (script,) = statements
    assert "insert into `golden`.`log` select * from `golden`.`log` where 1 = 0;" in script
    assert f'"batch": {number}' in script
    app_id, version = ("of the table", "7") if number > 0 else (
        "dbt_history_said:model.shop.log", "1704067200000000"
    )  # fmt: skip
    assert f"txnAppId = `{app_id}`" in script or f"txnAppId` = `{app_id}`" in script
    assert f"txnVersion = `{version}`" in script or f"txnVersion` = `{version}`" in script


@pytest.mark.parametrize("is_iceberg", [False, True])
def test_a_recorded_statement_restores_the_setting_of_its_record(
    call: Renderer, is_iceberg: bool
) -> None:
    relation = call.table("records").incorporate(is_iceberg=is_iceberg)
    (setting,) = call("_record_setting", relation=relation, record={"batch": 7})
    rows = [{"key": setting, "value": "of the user"}]
    statements = call.pretend_answers({"set": rows, "reset": [], "begin": []})

    call("_recorded_statement", relation=relation, statement="select 1", record={"batch": 7})

    script = statements[-1]
    assert setting == call("_snapshot_property" if is_iceberg else "_user_metadata")
    assert f"execute immediate 'set `{setting}` = `{{" in script
    quoted = f"`{setting}`" if is_iceberg else setting
    restored = f"'reset {quoted}'" if is_iceberg else f"'set `{setting}` = `of the user`'"
    assert script.index("select 1") < script.rindex(f"execute immediate {restored}")
    assert script.count(f"execute immediate {restored}") == script.count("handler for") + 1


def test_a_batch_before_the_one_that_was_read_shows_a_reset(call: Renderer) -> None:
    assert call("_is_set_back", last=7, log={"last_batch": 6})
    assert call("_is_set_back", last=7, log={"last_batch": None})
    assert not call("_is_set_back", last=7, log={"last_batch": 7})
    assert not call("_is_set_back", last=None, log={"last_batch": None})


def test_a_batch_whose_run_did_not_see_a_suspension_does_not_end_it(call: Renderer) -> None:
    """The run read the log at 7, the table was suspended at 8, and the run committed at 9."""
    unaware, suspension = merged(9, 5), commit(8, "SET TBLPROPERTIES")
    unaware["record"]["seen"] = 7
    suspension["record"] = {"dbt_history": "1", "control": {"suspended": True}}
    entries = [unaware, suspension, merged(7, 4)]
    assert call("_find_last_batch", entries=entries)["control"] == {"suspended": True}
    unaware["record"]["seen"] = 8
    assert call("_find_last_batch", entries=entries)["control"] is None


def test_a_restore_to_a_version_after_a_restore_skips_the_commits_of_both(call: Renderer) -> None:
    entries = [
        commit(6, "RESTORE", version="4"),
        merged(5, 3, epoch=4),
        commit(4, "RESTORE", version="1"),
        merged(3, 3),
        merged(2, 2),
        merged(1, 1),
    ]
    assert walk(call, *entries) == (True, 6, 1)


def test_a_log_without_a_record_is_final_only_if_read_to_its_first_commit(call: Renderer) -> None:
    assert walk(call, commit(8, "OPTIMIZE"), commit(7, "DELETE")) == (False, None, None)
    assert walk(call, commit(1, "OPTIMIZE"), commit(0, "CREATE TABLE")) == (True, None, None)


def test_a_restore_to_a_version_before_the_entries_is_not_final(call: Renderer) -> None:
    entries = [commit(8, "RESTORE", version="1"), merged(7, 7)]
    assert walk(call, *entries) == (False, 8, None)


# Messages


@pytest.mark.parametrize(
    ("batches", "start"), [(0, "no new batch: "), (1, "1 batch: "), (2, "2 batches: ")]
)
def test_the_message_of_a_run_counts_batches_and_rows(
    call: Renderer, batches: int, start: str
) -> None:
    counts = {"added": 5, "closed": 4, "removed": 3, "skipped": 2, "replayed": 1}
    message = call("_result_message", result={"batches": batches, **counts})
    assert message == start + "5 added, 4 closed, 3 removed, 2 skipped, 1 replayed"


def test_a_message_has_one_form(call: Renderer) -> None:
    message = call(
        "_message",
        caller_name="as_of",
        problem="wrong",
        got="a",
        expected="b",
        way_out="c",
        node="model.p.m",
    )
    assert message.splitlines() == [
        "dbt_history.as_of: wrong",
        "  got: a",
        "  expected: b",
        "  in model: model.p.m",
        "  way out: c",
    ]


@pytest.mark.parametrize(
    ("value", "mapping"),
    [
        (None, {}),
        ({"mode": "Append"}, {"mode": "Append"}),
        ('{"version":"3","timestamp":null}', {"version": "3", "timestamp": None}),
        (
            '{"mode":"Overwrite","partitionBy":"["day"]","predicate":null}',
            {"mode": "Overwrite", "partitionBy": '["day"]', "predicate": None},
        ),
        (
            '{"note":"say "x", {"a":"b"}","delta.enableChangeDataFeed":"true"}',
            {"note": 'say "x", {"a":"b"}', "delta.enableChangeDataFeed": "true"},
        ),
    ],
    ids=["null", "mapping", "JSON", "quotes inside", "braces inside"],
)
def test_a_map_column_of_any_connection_becomes_a_mapping(
    call: Renderer, value: Any, mapping: dict[str, Any]
) -> None:
    assert call("_as_mapping", value=value) == mapping


@pytest.mark.parametrize(("keys", "is_list"), [(64, True), (65, False)])
def test_the_hashes_of_few_keys_are_listed(call: Renderer, keys: int, is_list: bool) -> None:
    bitmap = f"{(1 << keys) - 1:0128x}"
    words = "".join(bitmap[place : place + 8] for place in range(len(bitmap) - 8, -1, -8))
    settings = {"key": ["Id"]}
    predicate = call("_key_bitmap_predicate", bitmap=words, settings=settings, alias="history")
    listed = f"pmod(xxhash64(history.`Id`), 32768) in ({', '.join(map(str, range(keys)))})"
    assert (predicate == listed) == is_list
    assert ("getbit(" in predicate) != is_list


def test_keys_with_a_collation_have_no_bitmap(call: Renderer) -> None:
    def bit(type_: str) -> object:
        column = {"name": "id", "type": type_}
        return call("_key_bitmap_place", settings={"key": ["Id"]}, columns=[column])

    assert bit("string") == "pmod(xxhash64(`c_Id`), 32768) ^ 24"
    assert bit("string collate UTF8_LCASE") == "cast(null as bigint)"
