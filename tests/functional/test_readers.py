"""The readers on real rows: truth tables, and random tables against plain Python."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError
from pyspark.sql import SparkSession

from tests.oracle.convention import CONVENTIONS, VALIDITY, VALIDITY_BIGINT, Convention
from tests.oracle.periods import Period, as_of, changeset, period_of, refine
from tests.oracle.random_histories import scale_of
from tests.support.rendering import Renderer
from tests.support.selection import thorough
from tests.support.tables import assert_same_rows, column_types, data_frame, settings, text_of

VALID = {"convention": "validity"}
NUMBERS = {"convention": "validity", "type": "bigint"}
TIME, DAY = "timestamp'2024-01-01'", "date'2024-01-01'"
ALL = {
    **CONVENTIONS,
    "bigint_maximum": replace(VALIDITY_BIGINT, open_end=2147483647),
    "days": replace(VALIDITY, type="date", open_end=date(9999, 12, 31), gap=timedelta(days=1)),
    "own_flag": Convention(
        start="Start", end="until when", active="is-current", type="timestamp",
        open_end=datetime(2999, 12, 31), gap=timedelta(seconds=1), version_id="Start",
    ),
}  # fmt: skip
# What `make test` plays of them.
QUICK = ("fivetran", "validity_bigint", "days", "own_flag")
Read = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def read(call: Renderer, spark: SparkSession) -> Read:
    """A function that runs a reader and returns its rows."""

    def rows(name: str, **arguments: Any) -> list[dict[str, Any]]:
        found = spark.sql("select * from " + call(name, **arguments)).collect()
        return [row.asDict(recursive=True) for row in found]

    return rows


def numbers(spark: SparkSession, name: str, *rows: tuple[Any, Any, int, int | None]) -> str:
    """A view of versions (id, v, valid_from, valid_to)."""
    types = {"id": "bigint", "v": "string", "valid_from": "bigint", "valid_to": "bigint"}
    cells = [dict(zip(types, row, strict=True)) for row in rows]
    data_frame(spark, cells, types).createOrReplaceTempView(name)
    return name


# Truth tables. The version is [3, 7), or open from 3, or empty.

CLOSED, OPEN, EMPTY = (3, 7), (3, None), (3, 3)
AS_OF = [(CLOSED, 2, 0), (CLOSED, 3, 1), (CLOSED, 6, 1), (CLOSED, 7, 0), (OPEN, 2, 0), (OPEN, 3, 1),
         (OPEN, 99, 1), (EMPTY, 3, 0)]  # fmt: skip
OVERLAPS = [
    (CLOSED, (1, 3), 0),  # touches at the start
    (CLOSED, (7, 9), 0),  # touches at the end
    (CLOSED, (1, 4), 1),
    (CLOSED, (6, 9), 1),
    (CLOSED, (3, 7), 1),  # equal
    (CLOSED, (4, 5), 1),  # inside
    (CLOSED, (1, 9), 1),  # around
    (CLOSED, (1, 2), 0),
    (CLOSED, (8, 9), 0),
    (CLOSED, (5, 5), 0),  # an empty range
    (CLOSED, (5, 4), 0),  # an invalid range
    (OPEN, (1, 3), 0),
    (OPEN, (1, 4), 1),
    (OPEN, (90, 99), 1),
    (EMPTY, (1, 9), 0),
    (EMPTY, (3, 4), 0),
]
CONTAINS = [
    (CLOSED, (3, 7), 1),
    (CLOSED, (4, 6), 1),
    (CLOSED, (2, 7), 0),
    (CLOSED, (3, 8), 0),
    (CLOSED, (1, 3), 0),
    (CLOSED, (5, 5), 0),
    (OPEN, (3, 99), 1),
    (OPEN, (2, 99), 0),
    (EMPTY, (3, 4), 0),
]
PRECEDES = [(CLOSED, 6, 0), (CLOSED, 7, 1), (CLOSED, 8, 1), (OPEN, 99, 0), (EMPTY, 9, 0)]


def counts(spark: SparkSession, queries: list[str]) -> list[int]:
    """The number of rows of each query, in one statement."""
    parts = [f"select {n} as n from {query} as found" for n, query in enumerate(queries)]
    found = [row[0] for row in spark.sql(" union all ".join(parts)).collect()]
    return [found.count(number) for number in range(len(queries))]


def one(period: tuple[int, int | None]) -> str:
    """A table of one version."""
    until = "cast(null as bigint)" if period[1] is None else f"{period[1]}L"
    return f"(select 1 as id, {period[0]}L as valid_from, {until} as valid_to)"


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_truth_tables_of_the_readers(ansi: str, call: Renderer, spark: SparkSession) -> None:
    queries: list[str] = []
    expected: list[int] = []

    def case(name: str, period: Any, answer: int, **more: Any) -> None:
        queries.append(call(name, relation=one(period), convention=NUMBERS, **more))
        expected.append(answer)

    for period, at, answer in AS_OF:
        case("as_of", period, answer, at=at)
        assert Period(*period).holds(at) == bool(answer)
    for period, span, answer in OVERLAPS:
        case("overlaps", period, answer, from_at=span[0], to_at=span[1])
        case("between", period, answer, from_at=span[0], to_at=span[1])
        assert Period(*period).overlaps(Period(*span)) == bool(answer)
    for period, span, answer in CONTAINS:
        case("contains", period, answer, from_at=span[0], to_at=span[1])
        assert Period(*period).contains(Period(*span)) == bool(answer)
    for period, at, answer in PRECEDES:
        case("precedes", period, answer, at=at)
        assert Period(*period).precedes(at) == bool(answer)

    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        assert counts(spark, queries) == expected
    finally:
        spark.conf.set("spark.sql.ansi.enabled", "false")


# Random tables of every convention


def random_versions(seed: int, convention: Convention) -> list[dict[str, Any]]:
    """Versions of three keys: adjacent, with deletion gaps, empty ones, the last open or closed."""
    dice, scale = random.Random(seed), scale_of(convention)
    rows = []
    for key in ("a", "b", "NULL"):
        ticks = sorted(dice.sample(range(1, 12), dice.randint(1, 6)))
        for number, tick in enumerate(ticks):
            is_last = number + 1 == len(ticks)
            following = None if is_last else scale.at(ticks[number + 1])
            until = dice.choice(
                [following, following, scale.at(tick), None if is_last else following]
            )
            if until is not None and dice.random() < 0.2 and tick + 1 < 12:
                until = min(until, scale.at(tick) + scale.least)
            end = convention.open_end if until is None else until - convention.gap
            row = {
                "id": key,
                "v": f"{key}{number}",
                convention.start: scale.at(tick),
                convention.end: end,
            }
            if convention.version_id != convention.start:
                row[convention.version_id] = number
            if convention.active is not None:
                row[convention.active] = until is None
            rows.append(row)
    return rows


def table_of(
    spark: SparkSession, name: str, rows: list[dict[str, Any]], convention: Convention
) -> tuple[str, ...]:
    columns = ("id", "v", *convention.columns())
    data_frame(spark, rows, column_types(columns, convention)).createOrReplaceTempView(name)
    return columns


@pytest.mark.parametrize("name", [name if name in QUICK else thorough(name) for name in ALL])
def test_readers_of_random_tables_agree_with_the_definitions(
    name: str, call: Renderer, spark: SparkSession, request: pytest.FixtureRequest
) -> None:
    convention, scale = ALL[name], scale_of(ALL[name])
    rows = random_versions(11, convention)
    columns = table_of(spark, "versions", rows, convention)
    spark.conf.set("spark.sql.session.timeZone", "Asia/Kathmandu")
    request.addfinalizer(lambda: spark.conf.set("spark.sql.session.timeZone", "UTC"))
    given = {"relation": "versions", "convention": settings(convention)}
    points = sorted({scale.at(tick) + nudge for tick in range(13) for nudge in scale.offsets()})
    points = random.Random(3).sample(points, min(len(points), 24))
    ranges = [tuple(random.Random(n).sample(points, 2)) for n in range(8)]

    # One query for all points, with one sub-query each.
    def numbered(queries: list[str]) -> list[dict[str, Any]]:
        parts = [
            f"select {number} as n, found.* from {query} as found"
            for number, query in enumerate(queries)
        ]
        return [row.asDict() for row in spark.sql(" union all ".join(parts)).collect()]

    found = numbered([call("as_of", at=text_of(at), **given) for at in points])
    expected = [
        {"n": n, **row} for n, at in enumerate(points) for row in as_of(rows, at, convention)
    ]
    assert_same_rows(found, expected, ("n", *columns), "as_of")

    wanted: dict[str, list[dict[str, Any]]] = {
        "overlaps": [],
        "between": [],
        "contains": [],
        "changeset": [],
    }
    for n, (first, last) in enumerate(ranges):
        span = Period(first, last)
        for row in rows:
            period = period_of(row, convention)
            if period.overlaps(span):
                wanted["overlaps"].append({"n": n, **row})
                wanted["between"].append({"n": n, **row})
            if period.contains(span):
                wanted["contains"].append({"n": n, **row})
        wanted["changeset"] += [
            {"n": n, **row} for row in changeset(rows, ["id"], first, last, convention)
        ]
    for reader, expected in wanted.items():
        more = {"key": "id"} if reader == "changeset" else {}
        found = numbered(
            [
                call(reader, from_at=text_of(first), to_at=text_of(last), **given, **more)
                for first, last in ranges
            ]
        )
        first_columns = ("_change_type", "_changed_at") if more else ()
        assert_same_rows(found, expected, ("n", *first_columns, *columns), reader)

    version = spark.sql("select * from " + call("current_version", **given)).collect()[0][0]
    ends = [p.until for p in (period_of(row, convention) for row in rows) if p.until is not None]
    assert version == max([row[convention.start] for row in rows] + ends)


@pytest.mark.parametrize(
    ("convention", "first", "last", "at"),
    [
        ("fivetran", TIME, "timestamp'9999-12-31 23:59:59'", "9999-12-31 23:59:59.5"),
        ("fivetran", TIME, "timestamp'9999-12-31 23:59:59.999999'", "+10000-01-01"),
        ("validity", TIME, "timestamp'9999-12-31'", "9999-12-31"),
        (VALID | {"open_end": "2999-01-01"}, TIME, "timestamp'2999-01-01'", "2999-01-01"),
        (VALID | {"type": "date", "open_end": "9999-12-31"}, DAY, "date'9999-12-31'", "9999-12-31"),
        (VALID | {"type": "date"}, DAY, "date'9999-12-31'", "9999-12-31"),
        (NUMBERS | {"open_end": 99}, "5L", "99L", 99),
        (NUMBERS | {"gap": 1}, "5L", f"{2**63 - 1}L", 2**63 - 2),
    ],
)
def test_an_open_end_is_no_end(
    convention: Any, first: str, last: str, at: Any, read: Read, call: Renderer, spark: SparkSession
) -> None:
    """
    version   [ first ----------------- last
    at                                     ^     not ended: `last` means until further notice
    """
    columns = call("convention", convention=convention)
    spark.sql(
        f"create or replace temp view lasting as select 1 as id, {first} as {columns['start']},"
        f" {last} as {columns['end']}, true as _fivetran_active"
    )
    (version,) = spark.sql("select * from lasting").collect()
    given = {"relation": "lasting", "convention": convention}

    assert read("precedes", at=at, **given) == []
    assert read("current_version", **given) == [{"version": version[columns["start"]]}]
    tables = {"a": "lasting", "b": "lasting"}
    (joined,) = read("history_join", tables=tables, key="id", convention=convention)
    assert joined["valid_to"] is None


@pytest.mark.parametrize(
    "name", ["fivetran", thorough("validity_bigint"), "bigint_maximum", thorough("own_flag")]
)
def test_a_join_of_periods_is_the_common_refinement(
    name: str, call: Renderer, spark: SparkSession
) -> None:
    convention = ALL[name]
    tables = [random_versions(seed, convention) for seed in (1, 2, 3)]
    for place, rows in enumerate(tables):
        table_of(spark, f"side_{place}", rows, convention)
    given = {f"the {place}": f"side_{place}" for place in range(3)}
    refined = refine(tables, "id", convention)
    wanted = {
        "full": refined,
        "left": [row for row in refined if row["rows"][0] is not None],
        "inner": [row for row in refined if None not in row["rows"]],
    }
    assert all(wanted.values())
    for kind, expected in wanted.items():
        query = call(
            "history_join", tables=given, key="id", convention=settings(convention), kind=kind
        )
        found = [
            row.asDict(recursive=True) for row in spark.sql(f"select * from {query}").collect()
        ]
        named = [
            {**row, **{f"the {place}": there for place, there in enumerate(row["rows"])}}
            for row in expected
        ]
        columns = ("id", "valid_from", "valid_to", *given)
        assert_same_rows(in_order(found, columns), in_order(named, columns), columns, kind)


def in_order(rows: list[dict[str, Any]], columns: tuple[str, ...]) -> list[dict[str, Any]]:
    """Rows with the fields of structs ordered by name, so that they can be compared."""
    return [
        {
            name: sorted(row[name].items()) if isinstance(row[name], dict) else row[name]
            for name in columns
        }
        for row in rows
    ]


# Values of `at`


def test_at_may_be_a_literal_an_expression_or_now(read: Read, spark: SparkSession) -> None:
    change = datetime(2024, 3, 3, 1)
    rows = [
        {"id": 1, "v": "first", "valid_from": datetime(1, 1, 1), "valid_to": datetime(2, 1, 1)},
        {"id": 1, "v": "old", "valid_from": datetime(2020, 1, 1), "valid_to": change},
        {"id": 1, "v": "new", "valid_from": change, "valid_to": None},
        {"id": 1, "v": "to come", "valid_from": datetime(2999, 1, 1), "valid_to": None},
    ]
    types = {"id": "bigint", "v": "string", "valid_from": "timestamp", "valid_to": "timestamp"}
    data_frame(spark, rows, types).createOrReplaceTempView("times")
    expected = {
        "2024-03-03": "old",
        "2024-03-03 01:00:00": "new",
        "2024-03-03T00:59:59.999999Z": "old",
        "2024-03-03T02:30:00+02:00": "old",
        "timestamp'2024-03-03 01:00:00 UTC' - interval 1 second": "old",
        "current_timestamp()": "new",
        "now": "new",
    }
    for at, value in expected.items():
        found = read("as_of", relation="times", at=at, convention="validity")
        assert [row["v"] for row in found] == [value], at
    assert read("as_of", relation="times", at="-0044-03-15", convention="validity") == []


def test_now_on_an_axis_of_versions_selects_open_versions(read: Read, spark: SparkSession) -> None:
    table = numbers(spark, "one", (1, "a", 1, 5), (1, "b", 5, None), (2, "c", 1, 3))
    assert [row["v"] for row in read("as_of", relation=table, at="now", convention=NUMBERS)] == [
        "b"
    ]


def test_latest_within_bounds_of_a_column_is_the_row_with_the_greatest_own_id(
    read: Read, spark: SparkSession
) -> None:
    spark.sql(
        "create or replace temp view orders_hx as select * from values"
        " (1L, 'a', 5L, false), (2L, 'a', 3L, false), (3L, 'b', 7L, false), (4L, 'b', 6L, true),"
        " (5L, 'c', 1L, false), (6L, 'c', 9L, false)"
        " as orders_hx (orders_hx_id, id, units_hx_id, deleted)"
    )
    found = read("latest", hx="orders_hx", key="id", id="orders_hx_id", up_to=7, by="units_hx_id")
    assert sorted(row["orders_hx_id"] for row in found) == [2, 5]


def test_an_append_only_table_has_no_end(read: Read, spark: SparkSession) -> None:
    spark.sql("create or replace temp view added as select id, id as valid_from from range(1, 6)")
    convention = {**NUMBERS, "append_only": True}
    found = read("as_of", relation="added", at=3, convention=convention)
    assert sorted(row["id"] for row in found) == [1, 2, 3]
    version = read("current_version", relation="added", convention=convention)
    assert version == [{"version": 5}]


A, B = {"a": "a"}, {"a": "a", "b": "b"}
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("as_of", {"relation": "t", "at": "2024-01-01", "convention": NUMBERS}, "not a point on the"),
    ("as_of", {"relation": "t", "at": 5, "convention": {"convention": "hx"}}, "key of its items"),
    ("as_of", {"relation": "t", "at": "tag:x"}, "there is no tag of this name"),
    (
        "overlaps", {"relation": "t", "from_at": 1, "to_at": "now", "convention": NUMBERS},
        "cannot bound a range",
    ),
    ("latest", {"hx": "(select 1)", "key": "id"}, "has no name to derive"),
    ("latest", {"hx": "(select 1)", "key": "id", "by": "unit_hx_id"}, "has no name to derive"),
    ("is_consistent", {"collections": ["x"], "bounds": {}}, "has no name to derive"),
    ("history_join", {"tables": A, "key": "id"}, "cannot be joined"),
    ("history_join", {"tables": B, "key": "id", "kind": "right"}, "cannot be joined"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "arguments", "message"), REFUSED)
def test_invalid_arguments_of_readers_are_refused_with_the_macro_name(
    name: str, arguments: dict[str, Any], message: str, call: Renderer
) -> None:
    with pytest.raises(DbtRuntimeError, match=message) as refused:
        call(name, **arguments)
    assert f"dbt_history.{name}: " in str(refused.value)


# Files


def test_as_of_now_reads_only_files_of_open_versions(
    call: Renderer, spark: SparkSession, warehouse: Path
) -> None:
    spark.sql("create schema if not exists readers")
    spark.sql("drop table if exists readers.h")
    spark.sql(
        "create table readers.h (id bigint, _fivetran_start timestamp, _fivetran_end timestamp,"
        " _fivetran_active boolean) using delta partitioned by (_fivetran_active)"
    )
    for day in range(1, 6):
        spark.sql(
            f"insert into readers.h select id, timestamp'2024-01-0{day} 00:00:00',"
            f" timestamp'2024-01-0{day + 1}' - interval 1 millisecond, false from range(10)"
        )
    spark.sql(
        "insert into readers.h select id, timestamp'2024-01-06 00:00:00',"
        " timestamp'9999-12-31 23:59:59.999', true from range(10)"
    )

    def files(at: str) -> set[str]:
        query = call("as_of", relation="readers.h", at=at)
        return {
            str(file).rsplit("/", 2)[1] for file in spark.sql(f"select * from {query}").inputFiles()
        }

    everything = spark.table("readers.h").inputFiles()
    assert len(everything) >= 6
    assert files("now") == files("current_timestamp()") == {"_fivetran_active=true"}
    assert files("2024-03-03") == {"_fivetran_active=true"}
    assert files("2024-01-03 12:00:00") == {"_fivetran_active=false"}
    query = call("as_of", relation="readers.h", at="2024-01-03 12:00:00")
    assert len(spark.sql(f"select * from {query}").inputFiles()) < len(everything) / 3
    # A NULL end beside a maximum, as dbt and other tools leave it, is open: no more files are read.
    spark.sql("insert into readers.h select 99, timestamp'2024-01-06 00:00:00', null, true")
    assert files("2024-03-03") == {"_fivetran_active=true"}
    found = spark.sql(f"select id from {call('as_of', relation='readers.h', at='2024-03-03')}")
    assert {row["id"] for row in found.collect()} == {*range(10), 99}
    spark.sql("drop schema readers cascade")


def test_a_changeset_reads_no_files_of_earlier_batches(call: Renderer, spark: SparkSession) -> None:
    # In a batch without partitions, closed and open versions share files: not every end is NULL.
    spark.sql("create schema if not exists readers")
    spark.sql("drop table if exists readers.s")
    spark.sql(
        "create table readers.s (id bigint, valid_from bigint, valid_to bigint) using delta"
        " tblproperties ('delta.enableDeletionVectors' = 'true')"
    )
    for batch in range(1, 7):
        spark.sql(
            f"insert into readers.s select /*+ coalesce(1) */ id, if(id < 9, {batch - 1}, {batch}),"
            f" if(id < 9, {batch}, null) from range(11)"
        )
    spark.sql("delete from readers.s where id = 10 and valid_from < 3")

    query = call("changeset", relation="readers.s", from_at=6, to_at=7, convention=NUMBERS)
    rows = [row.asDict() for row in spark.sql(f"select * from {query}").collect()]

    assert len(spark.table("readers.s").inputFiles()) == 6
    assert len(set(spark.sql(f"select * from {query}").inputFiles())) == 1
    assert sorted((row["_change_type"], row["id"]) for row in rows) == [
        *(("delete", number) for number in range(9)), ("insert", 9), ("insert", 10),
    ]  # fmt: skip
    spark.sql("drop schema readers cascade")


LOG = """
    select
        *,
        timestamp'2024-03-01 00:00:00 UTC' + make_interval(0, 0, 0, cast(hx_id as int)) as mod_time
    from values
        (1, 'a', 1, 'ann', false, 1L),
        (1, 'a', 2, 'ann', false, 2L),
        (2, null, 1, 'bob', false, 3L),
        (1, null, 2, 'bob', false, 4L),
        (1, null, 2, 'bob', true, 5L),
        (2, null, 1, 'ann', false, 6L),
        (1, 'z', 2, 'ann', false, 7L)
        as log (id, `path`, n, mod_user, deleted, hx_id)
"""
SEARCHES: list[tuple[dict[str, Any], list[tuple[int, str, int | None]]]] = [
    ({}, [(1, "insert", None), (2, "update", 1), (3, "insert", None), (4, "update", 2),
          (5, "delete", 4), (6, "update", 3), (7, "insert", None)]),
    ({"item": 2}, [(3, "insert", None), (6, "update", 3)]),
    ({"item": {"id": 2}, "kind": "update"}, [(6, "update", 3)]),
    ({"kind": ["delete", "update"], "user": "bob"}, [(4, "update", 2), (5, "delete", 4)]),
    # NULL is a value; a no-op update changes no column, and neither does deleting a NULL.
    ({"column": "path"}, [(1, "insert", None), (4, "update", 2), (7, "insert", None)]),
    ({"column": ["n"]}, [(1, "insert", None), (2, "update", 1), (3, "insert", None),
                         (5, "delete", 4), (7, "insert", None)]),
    ({"from_at": "2024-03-05", "to_at": "2024-03-07"}, [(4, "update", 2), (5, "delete", 4)]),
]  # fmt: skip


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_find_changes_finds_the_changes_of_a_mirror(
    ansi: str, read: Read, spark: SparkSession
) -> None:
    spark.sql(LOG).createOrReplaceTempView("searched")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        for arguments, expected in SEARCHES:
            rows = read("find_changes", hx="searched", key="id", id="hx_id", **arguments)
            found = [(row["hx_id"], row["_change_type"], row["_previous_hx_id"]) for row in rows]
            assert sorted(found) == expected, arguments
    finally:
        spark.conf.set("spark.sql.ansi.enabled", "false")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "rename"}, "unknown kind rename"),
        ({"item": {"name": 1}}, "item is not a value for each of id"),
        ({"item": {"id": None}}, "item: id has no value"),
    ],
)
def test_invalid_arguments_of_find_changes_are_refused(
    arguments: dict[str, Any], message: str, call: Renderer
) -> None:
    with pytest.raises(DbtRuntimeError, match=message):
        call("find_changes", hx="searched", key="id", id="hx_id", **arguments)


@pytest.mark.thorough
def test_days_and_gaps_have_24_hours_also_where_clocks_change(
    spark: SparkSession, call: Renderer
) -> None:
    """In Berlin the last day of March 2024 has 23 hours."""
    midnight = "timestamp'2024-03-31 00:00:00 UTC'"
    day = {"type": "timestamp", "gap": "1 day"}
    shifted = call("_shift_by_gap", expression=midnight, convention=day, sign="+")
    where = call("_within_days", from_day="2024-03-31", to_day="2024-03-31")
    times = "(timestamp'2024-03-31 23:30:00 UTC'), (timestamp'2024-04-01 00:00:00 UTC')"
    sql = f"select count(*), max({shifted}) = timestamp'2024-04-01 00:00:00 UTC'"
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        found = spark.sql(f"{sql} from values {times} as t(`_hist_time`) where {where}")
        assert tuple(found.collect()[0]) == (1, True)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.thorough
@pytest.mark.parametrize("zone", ["Asia/Tokyo", "Europe/Berlin"])
def test_column_changes_shows_times_in_utc(zone: str, spark: SparkSession, call: Renderer) -> None:
    """In Berlin there is no 02:30 on the last day of March 2024."""
    struct = "struct<at: timestamp, n: int, all: array<timestamp>, by: map<timestamp, date>>"
    types = {
        "due": "timestamp",
        "nested": spark.sql(f"select cast(null as {struct}) as x").dtypes[0][1],
        "local": "timestamp_ntz",
    }
    cells = [call("_changed_cell", column={"name": n, "type": t}) for n, t in types.items()]

    def image(at: str) -> str:
        time = f"timestamp'{at} UTC'"
        nested = f"named_struct('at', {time}, 'n', 1, 'all', array({time}, null), 'by', "
        nested += f"map({time}, date'2024-03-31'))"
        local = f"timestamp_ntz'{at}'"
        return f"named_struct('c_due', {time}, 'c_nested', {nested}, 'c_local', {local})"

    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        old, new = image("2024-03-31 02:30:00"), image("2024-03-31 03:30:00.5")
        sql = f"select explode(array({', '.join(cells)})) as cell from"
        sql += f" (select {old} as `__old`, null as `__new` union all select null, {new})"
        found = [tuple(row["cell"]) for row in spark.sql(sql).collect()]
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")

    before, after = "2024-03-31 02:30:00", "2024-03-31 03:30:00.5"
    nested_text = "{{{0}, 1, [{0}, null], {{{0} -> 2024-03-31}}}}"
    assert found == [
        ("due", before, after),
        ("nested", nested_text.format(before), nested_text.format(after)),
        ("local", before, after),
    ]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("zone", "now", "day"),
    [
        # At 23:30 in UTC there is no 23:30 in Nuuk.
        ("America/Nuuk", "2024-03-30 23:30:00", "2024-03-30"),
        ("Asia/Tokyo", "2024-03-03 20:00:00", "2024-03-03"),
        ("America/New_York", "2024-03-03 02:00:00", "2024-03-03"),
    ],
)
def test_now_on_an_axis_of_days_is_the_day_in_utc(
    zone: str, now: str, day: str, spark: SparkSession, call: Renderer
) -> None:
    reader = {"convention": {"type": "date"}, "table": None}
    point = call("_point", at="now", reader=reader, caller_name="as_of")
    point = point.replace("current_timestamp()", f"timestamp'{now} UTC'")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        found = spark.sql(f"select cast({point} as string)").collect()[0][0]
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert found == day
