"""Any table as a version table, pinned versions, points in time, and two axes of time."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.project import Project
from tests.support.rendering import Renderer
from tests.support.tables import assert_same_rows, data_frame, literal

NUMBERS: dict[str, Any] = {"convention": "validity", "type": "bigint", "open_end": 2147483647}
TIMES: dict[str, Any] = {"convention": "validity"}
MAXIMUM = 2147483647


def relation(schema: str, name: str) -> str:
    return f"api.Relation.create(schema='{schema}', identifier='{name}')"


@pytest.mark.thorough
def test_tables_become_version_tables_and_a_pinned_version_does_not_change(
    project: Project, spark: SparkSession
) -> None:
    spark.sql(f"create schema {project.schema}")
    products, sales = project.table("products"), project.table("sales")
    feed = "using delta tblproperties ('delta.enableChangeDataFeed' = 'true')"
    spark.sql(f"create table {products} {feed} as select 1L as id, 'pen' as name")
    spark.sql(f"create table {sales} {feed} as select 7L as id, 1L as product_id, 5 as pieces")
    for name, convention, at in [
        ("products", NUMBERS, "_commit_version"),
        ("sales", TIMES, "_commit_timestamp"),
    ]:
        changes = f"dbt_history.changes({relation(project.schema, name)}, 'id')"
        rows = f"dbt_history.batch_rows({changes}, 'id', {convention}, at='{at}')"
        project.history(
            f"{name}_history",
            f"select * from {{{{ {rows} }}}}",
            version_order="increasing",
            max_deleted_share=None,
            **convention,
        )
    both = ("products_history", "sales_history")
    project.model(
        "published",
        f"select {{{{ dbt_history.current_version(ref('products_history'), {NUMBERS}) }}}} as"
        f" products, {{{{ dbt_history.current_version(ref('sales_history'), {TIMES}) }}}} as sales",
        materialized="table",
    )
    for name, convention in [("products", NUMBERS), ("sales", TIMES)]:
        pinned = "'(select ' ~ '" + name + "' ~ ' from ' ~ ref('published') ~ ')'"
        reader = f"dbt_history.as_of(ref('{name}_history'), {pinned}, {convention})"
        # Without valid_to: it shows that the version has ended since.
        select = f"select * except (valid_to) from {{{{ {reader} }}}}"
        project.model(f"{name}_pinned", select, materialized="view")
    spark.sql(f"update {products} set name = 'pencil'")
    project.run(*both, "published", "products_pinned", "sales_pinned")
    seen = [project.rows("products_pinned"), project.rows("sales_pinned")]
    assert [row["name"] for row in seen[0]] == ["pencil"]
    assert [row["pieces"] for row in seen[1]] == [5]

    spark.sql(f"update {products} set name = 'ink'")
    spark.sql(f"insert into {products} values (2, 'cap'), (3, 'gone')")
    spark.sql(f"delete from {products} where id in (1, 3)")
    spark.sql(f"update {sales} set pieces = pieces + 1")
    project.run(*both)

    assert [project.rows("products_pinned"), project.rows("sales_pinned")] == seen
    history = project.rows("products_history")
    names = {(row["name"], row["valid_to"] == MAXIMUM) for row in history}
    assert names == {("pencil", False), ("ink", False), ("cap", True), ("gone", False)}
    # An update, an insert, a delete: three commits, and each is a version.
    starts = sorted({row["valid_from"] for row in history})
    assert [start - starts[0] for start in starts] == [0, 1, 2]
    assert max(row["valid_to"] for row in history if row["valid_to"] != MAXIMUM) == starts[-1] + 1
    assert sorted(row["pieces"] for row in project.rows("sales_history")) == [5, 6]
    replay = project.run(*both)
    assert replay.message("products_history").startswith("no new batch")


@pytest.mark.thorough
def test_numbers_of_a_source_that_was_made_again_continue(
    project: Project, spark: SparkSession
) -> None:
    spark.sql(f"create schema {project.schema}")
    products = project.table("products")
    feed = "using delta tblproperties ('delta.enableChangeDataFeed' = 'true')"
    changes = f"dbt_history.changes({relation(project.schema, 'products')}, 'id')"

    def history(at: str) -> None:
        rows = f"dbt_history.batch_rows({changes}, at='{at}')"
        project.history("numbered", f"select * from {{{{ {rows} }}}}", **NUMBERS)

    history("_commit_version")
    spark.sql(f"create table {products} {feed} as select 1L as id, 'a' as name union select 2, 'b'")
    project.run("numbered")
    spark.sql(f"update {products} set name = 'x' where id = 1")
    project.run("numbered")
    spark.sql(f"drop table {products}")
    spark.sql(f"create table {products} {feed} as select 1L as id, 'y' as name")

    refused = project.run("numbered", check=False)
    assert "way out: at='_commit_version + 2' from now on" in refused.message("numbered")
    history("_commit_version + 2")
    project.run("numbered")
    spark.sql(f"update {products} set name = 'z'")
    project.run("numbered")

    found = [
        tuple(row[name] for name in ("id", "name", "valid_from", "valid_to"))
        for row in project.rows("numbered")
    ]
    assert sorted(found) == [
        (1, "a", 0, 1), (1, "x", 1, 2), (1, "y", 2, 3), (1, "z", 3, MAXIMUM), (2, "b", 0, 2),
    ]  # fmt: skip


@pytest.mark.thorough
def test_changes_are_netted_per_point_and_starts_never_decrease_for_a_record(
    call: Renderer, spark: SparkSession
) -> None:
    rows = [
        ("insert", 1, "a", "a1", 10), ("insert", 1, "b", "b1", 10), ("insert", 2, "c", "c1", 11),
        ("update_preimage", 3, "a", "a1", 12), ("update_postimage", 3, "a", "a2", 12),
        ("delete", 4, "a", "a2", 12), ("delete", 5, "b", "b1", 9), ("insert", 6, "b", "b2", 13),
        ("delete", 6, "c", "c1", 13), ("insert", 6, "c", "c2", 13),
    ]  # fmt: skip
    names = ("_change_type", "_commit_version", "id", "v", "_commit_timestamp")
    types = dict(zip(names, ("string", "bigint", "string", "string", "bigint"), strict=True))
    changes = [dict(zip(names, row, strict=True)) for row in rows]
    data_frame(spark, changes, types).createOrReplaceTempView("netted")

    query = call("batch_rows", changes="netted", key="id", convention=NUMBERS)
    found = [tuple(row) for row in spark.sql(
        f"select _stage, id, v, valid_from, valid_to from {query}").collect()]  # fmt: skip

    assert sorted(found, key=str) == [
        ("delete", "a", "a2", None, 12),  # the update at 12 is never visible
        ("delete", "b", "b1", None, 10),  # its commit time is 9; it counts at 10, the insert's time
        ("upsert", "a", "a1", 10, MAXIMUM),
        ("upsert", "b", "b2", 13, MAXIMUM),
        ("upsert", "c", "c1", 11, MAXIMUM),
        ("upsert", "c", "c2", 13, MAXIMUM),
    ]


def test_a_folder_of_views_shows_the_database_on_that_day(
    project: Project, spark: SparkSession
) -> None:
    spark.sql(f"create schema {project.schema}")
    for name in ("g", "h"):
        spark.sql(
            f"create table {project.table(name)} using delta as select 'x' as id, 1L as valid_from,"
            " 5L as valid_to union all select 'y', 5L, 2147483647L"
        )
        project.history(name, "select 1", **NUMBERS)
    day = f"{project.schema}_then"
    arguments = json.dumps({"schema": day, "at": 4})

    project.dbt("run-operation", "create_point_in_time", "--args", arguments)

    try:
        for name in ("g", "h"):
            assert [row["id"] for row in spark.table(f"{day}.{name}").collect()] == ["x"]
        cleaning = json.dumps({"table": "h", "before": 9})
        project.dbt("run-operation", "clean_history", "--args", cleaning)
        assert [row["id"] for row in spark.table(f"{day}.g").collect()] == ["x"]
        with pytest.raises(Exception, match="was cleaned"):
            spark.table(f"{day}.h").collect()
    finally:
        spark.sql(f"drop schema {day} cascade")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("at", "message"),
    [(None, "at has no value"), ("cast(null as timestamp)", "at is NULL; nothing was")],
)
def test_a_folder_of_views_is_refused_at_no_point(
    at: str | None, message: str, project: Project, spark: SparkSession
) -> None:
    spark.sql(f"create schema {project.schema}")
    spark.sql(
        f"create table {project.table('h')} using delta as"
        " select 'x' as id, timestamp'2024-03-03' as valid_from, timestamp'9999-12-31' as valid_to"
    )
    project.history("h", "select 1", **TIMES)
    then = f"{project.schema}_then"
    arguments = json.dumps({"schema": then, "at": at, "table": "h"})

    run = project.dbt("run-operation", "create_point_in_time", "--args", arguments, check=False)

    assert not run.success
    assert message in run.log
    assert not spark.catalog.databaseExists(then)
    assert not spark.catalog.tableExists(project.table("history_marks"))


# valid at, known at: the price believed
BITEMPORAL = [
    ("2024-01-15", "2024-02-15", None),  # nothing was known yet
    ("2024-01-15", "2024-03-15", 10),
    ("2024-03-15", "2024-03-15", 10),
    ("2024-07-15", "2024-03-15", None),  # no longer valid
    ("2024-03-15", "2024-04-30", 10),  # the correction is late
    ("2024-03-15", "2024-05-01", 12),  # and counts from when it was known
    ("2024-01-15", "2024-06-15", 10),
    ("2024-02-01", "2024-06-15", 12),
    ("2024-07-01", "2024-06-15", None),
]


def test_a_late_correction_is_visible_only_from_when_it_was_known(
    call: Renderer, spark: SparkSession
) -> None:
    def day(month: int) -> datetime:
        return datetime(2024, month, 1)

    rows: list[dict[str, Any]] = [
        {
            "price": price,
            "holds_from": holds,
            "holds_to": until,
            "valid_from": known,
            "valid_to": to,
        }
        for price, holds, until, known, to in [
            (10, day(1), day(7), day(3), day(5)),
            (10, day(1), day(2), day(5), None),
            (12, day(2), day(7), day(5), None),
        ]
    ]
    types = {
        "price": "int",
        **dict.fromkeys(("holds_from", "holds_to", "valid_from", "valid_to"), "timestamp"),
    }
    data_frame(spark, rows, types).createOrReplaceTempView("prices")
    valid = {"start": "holds_from", "end": "holds_to"}
    parts = [
        f"select {place} as place, price from "
        + call("bitemporal", relation="prices", valid_at=at, known_at=known, valid=valid)
        for place, (at, known, _) in enumerate(BITEMPORAL)
    ]

    found = [row.asDict() for row in spark.sql(" union all ".join(parts)).collect()]

    expected = [
        {"place": place, "price": price}
        for place, (_, _, price) in enumerate(BITEMPORAL)
        if price is not None
    ]
    assert_same_rows(found, expected, ["place", "price"])


NUMBERED = {"convention": "validity", "type": "bigint", "version_order": "increasing"}


def rows_of(*rows: tuple[Any, ...]) -> str:
    """Staged rows (stage, batch, id, v, from, to) as a SELECT; without numbers if they are None."""
    names = ("_stage", "_batch", "id", "v", "valid_from", "valid_to")
    types = ("string", "bigint", "bigint", "string", "bigint", "bigint")
    values = ", ".join(f"({', '.join(literal(cell) for cell in row)})" for row in rows)
    is_numbered = rows[0][1] is not None
    columns = ", ".join(
        f"cast({name} as {type_}) as {name}"
        for name, type_ in zip(names, types, strict=True)
        if is_numbered or name != "_batch"
    )
    return f"select {columns} from values {values} as staged({', '.join(names)})"


@pytest.mark.thorough
def test_rows_without_numbers_may_be_repeated_where_versions_increase(project: Project) -> None:
    a, b = ("upsert", None, 1, "a", 1, 3), ("upsert", None, 1, "b", 3, None)
    other, late = ("upsert", None, 1, "other", 1, 3), ("upsert", None, 2, "late", 2, None)
    next_ = ("upsert", None, 1, "c", 5, None)
    project.history("h", rows_of(a, b), **NUMBERED)
    project.run("h")

    again = project.run("h")

    assert again.message("h") == "1 batch: 0 added, 0 closed, 0 removed, 0 skipped, 0 replayed"
    for rows in ((other, b), (a, b, late), (("delete", None, 1, None, None, 2), b)):
        project.history("h", rows_of(*rows), **NUMBERED)
        refused = project.run("h", check=False)
        assert "has a row before the current version" in refused.message("h"), rows
    project.history("h", rows_of(a, b, next_), **NUMBERED)
    grown = project.run("h")
    assert grown.message("h") == "1 batch: 1 added, 1 closed, 0 removed, 0 skipped, 0 replayed"
    periods = [(row["v"], row["valid_from"], row["valid_to"]) for row in project.rows("h")]
    assert sorted(periods) == [("a", 1, 3), ("b", 3, 5), ("c", 5, None)]


@pytest.mark.thorough
@pytest.mark.parametrize("way", ["--full-refresh", "drop"])
def test_a_cleaned_table_is_built_again_where_versions_increase(project: Project, way: str) -> None:
    """The horizon is 3. The second commit is below it too, and a late batch is refused again."""
    batches = [("upsert", n, 1, f"v{n}", n, None) for n in (1, 2, 3, 5)]
    project.history("h", rows_of(*batches), allow_full_refresh=True, **NUMBERED)
    project.run("h")
    project.dbt("run-operation", "clean_history", "--args", "{table: h, before: 4}")
    assert len(project.rows("h")) == 2

    if way == "drop":
        project.spark.sql(f"drop table {project.table('h')}")
    project.run("h", options=["--full-refresh"] if way != "drop" else [])

    periods = [(row["valid_from"], row["valid_to"]) for row in project.rows("h")]
    assert sorted(periods) == [(1, 2), (2, 3), (3, 5), (5, None)]
    project.history("h", rows_of(*batches, ("upsert", 6, 1, "late", 4, None)), **NUMBERED)
    assert "has a row before the current version" in project.run("h", check=False).message("h")


@pytest.mark.thorough
def test_a_table_that_cleaning_has_emptied_keeps_its_horizon(project: Project) -> None:
    """Rows without numbers are sent again on every run; below the horizon they are gone."""
    rows = [("upsert", None, 1, "a", 1, None), ("delete", None, 1, None, None, 3)]
    project.history("h", rows_of(*rows), **NUMBERED)
    project.run("h")
    project.dbt("run-operation", "clean_history", "--args", "{table: h, before: 4}")
    assert project.rows("h") == []

    refused = project.run("h", check=False)

    assert "has a row before the current version" in refused.message("h")
    assert project.rows("h") == []


@pytest.mark.thorough
def test_a_late_numbered_batch_is_refused_even_if_it_would_change_nothing(
    project: Project,
) -> None:
    project.history("h", rows_of(("upsert", 1, 1, "a", 3, None)), **NUMBERED)
    project.run("h")
    for late in (("delete", 2, 1, None, None, 2), ("earliest_start", 2, 9, None, 2, None)):
        project.history("h", rows_of(late), **NUMBERED)
        refused = project.run("h", check=False)
        assert "has a row before the current version" in refused.message("h")

    project.history("h", rows_of(("delete", 2, 1, None, None, 4)), **NUMBERED)

    assert project.run("h").message("h").startswith("1 batch: 0 added, 1 closed")


@pytest.mark.thorough
def test_the_point_of_a_deletion_is_a_gap_after_its_end(project: Project) -> None:
    """
    axis                 8    9   10        gap 1: the current version is 10
    1    a   [ --------------)
         b   [ --------------- open
    2    delete b at 9       )              it changes b from 10 on
    3    delete c at 8   )                  refused: 9 is before 10
    4    upsert c at 9   [                  refused
    """
    settings: dict[str, Any] = {**NUMBERED, "gap": 1}
    first: list[tuple[Any, ...]] = [("upsert", 1, key, "v", 1, None) for key in (1, 2, 3)]
    batches: list[list[tuple[Any, ...]]] = [
        [*first, ("delete", 1, 1, None, None, 9)],
        [("delete", 2, 2, None, None, 9)],
        [("delete", 3, 3, None, None, 8)],
        [("upsert", 3, 3, "w", 9, None)],
    ]
    for place, rows in enumerate(batches):
        project.history("h", rows_of(*rows), **settings)
        run = project.run("h", check=place < 2)
        if place >= 2:
            assert "has a row before the current version" in run.message("h")
            assert "got: 9" in run.message("h")
            assert "expected: 10 or later" in run.message("h")

    assert {row["id"]: row["valid_to"] for row in project.rows("h")} == {1: 9, 2: 9, 3: None}
