"""Input that a history cannot store is refused by the package before anything is created."""

from __future__ import annotations

from typing import Any

import pytest

from dbt_history.session import new_session
from scripts.thread_sessions import thread_sessions
from tests.support.project import Project


def select(batch: int = 1, day: int = 2, **cells: str) -> str:
    """One upsert of the convention `validity`; `cells` are SQL by column name."""
    columns = "".join(f", {sql} as `{name}`" for name, sql in cells.items())
    return (
        f"select 'upsert' as _stage, {batch}L as _batch{columns},"
        f" timestamp'2024-01-{day:02} 00:00:00 UTC' as valid_from,"
        " cast(null as timestamp) as valid_to"
    )


def create(project: Project, name: str, columns: str, properties: str = "") -> None:
    project.spark.sql(f"create schema if not exists {project.schema}")
    project.spark.sql(
        f"create table {project.table(name)} ({columns}, valid_from timestamp, valid_to timestamp)"
        f" using delta {properties}"
    )


def refuse_new(project: Project) -> dict[str, tuple[str, ...]]:
    """Models of tables that do not exist yet, with their messages."""

    def model(name: str, sql: str, key: Any = "id", **meta: Any) -> None:
        project.history(name, sql, key, **{"convention": "validity", **meta})

    model("variants", select(id="1L", v="parse_json('1')", a="array(parse_json('1'))"))
    model("keys", select(k="map(1, 2)", p="parse_json('1')"), ["k", "p"])
    model("reserved", select(id="1L", __Evaluated_At="1L"))
    model("unknown", select(id="1L"), convention="validty")
    model("listed", select(id="1L"), convention=["validity"])
    model("open_ends", select(id="1L"), open_end="for ever")
    stated = {"materialized": "history", "unique_key": "id"}
    project.model("parquet", "select 1L as id", **stated, file_format="parquet")
    project.model("parts", "select 1L as id, 'a' as city", **stated, partition_by=["id", "citty"])
    project.model("twice", "select 1L as id, 'a' as city, 'b' as city", **stated)
    project.model("inner_nulls", "select 1L as id, array() as a, struct(null as x) as s", **stated)
    for name, sql in {
        "variant_log": "select 1L as id, parse_json('1') as v",
        "mirror": "select * from {{ dbt_history.hx_rows(source('lost', 'main'), 'id') }}",
        "variant_changes": "select * from {{ dbt_history.changes(source('lost', 'odd'), 'm') }}",
    }.items():
        project.model(name, sql, materialized="history_append")
    project.write(
        "models/lost.yml",
        f"sources: [{{name: lost, schema: {project.schema},"
        " tables: [{name: main}, {name: odd}]}]",
    )
    return {
        "variants": ("column v is variant, which cannot", "column a is array<variant>, which"),
        "keys": ("key column k is map<int,int>, which cannot identify rows", "column p is variant"),
        "reserved": ("column __evaluated_at has a name that is reserved for the staged rows",),
        "unknown": ("no convention has this name", "model.history_tests.unknown", "mean validity?"),
        "listed": ("this is not the name of a convention", "model.history_tests.listed"),
        "open_ends": ("open_end is for ever, which is not a timestamp", "tests.open_ends"),
        "parquet": ("file_format is parquet: delta (the default) or iceberg",),
        "parts": ("partition_by names citty, which is no column of the table, did you mean city?",),
        "twice": ("several columns are named city", "way out: name each column once"),
        "inner_nulls": ("column a is array<void>: cast it", "column s is struct<x:void>: cast it"),
        "variant_log": ("column v is a variant, which cannot be looked for",),
        "mirror": ("hx_rows: the table whose changes are read does not exist", "tests.mirror"),
        "variant_changes": ("column v is variant, which", "key column m is map<int,int>, which"),
    }


def refuse_adopted(project: Project) -> dict[str, tuple[str, ...]]:
    """Models of existing tables of another writer, with their messages."""
    create(
        project,
        "made",
        "id char(4), n bigint generated always as identity, v string, city char(10),"
        " g string generated always as (upper(v))",
    )
    project.spark.sql(
        f"insert into {project.table('made')} (id, v, valid_from) values ('a', 'v', null)"
    )
    create(project, "locked", "id bigint", "tblproperties ('delta.appendOnly' = 'true')")
    create(project, "short", "id bigint, v varchar(3)")
    project.spark.sql(f"create table {project.table('plain')} using delta as select 1L as id")
    project.model("plain", "select 1L as id", materialized="history", unique_key="id")
    project.spark.sql(f"create table {project.table('codes')} (code char(4), l string) using delta")
    codes = "select 'a' as code, 'x' as l"
    project.model("codes", codes, materialized="history_append", unique_key="code")
    project.history("made", select(id="'a'", v="'v'"), convention="validity")
    project.history("locked", select(id="1L"), convention="validity")
    project.history("short", select(id="1L", v="'too long'"), convention="validity")
    return {
        "made": (
            "the existing table cannot be adopted; nothing was written",
            "column id is char(4), which pads texts with blanks",
            "column city is char(10), which pads texts with blanks",
            "column n is an identity column",
            "column g is generated (upper(v))",
            "valid_from is NULL in some rows",
        ),
        "codes": (
            "the existing table cannot be adopted; nothing was written",
            "column code is char(4), which pads texts with blanks",
        ),
        "locked": ("the table is append-only, and a batch closes and removes rows",),
        "plain": (
            "the table that exists has no column valid_from, valid_to (convention validity",
            "way out: to go on with the table, name its key in unique_key and its period in meta",
        ),
        "short": ("was not applied: a text is too long for its column",),
    }


def test_unsupported_columns_and_keys_are_refused_before_anything_is_created(
    project: Project,
) -> None:
    new = refuse_new(project)
    create(project, "odd", "m map<int, int>, v variant")
    messages = new | refuse_adopted(project)

    run = project.run(*messages, check=False)

    for name, parts in messages.items():
        message = run.message(name)
        for part in ("dbt_history.", *parts):
            assert part in message, (name, message)
    for name in new:
        assert not project.spark.catalog.tableExists(project.table(name)), name
    assert project.rows("codes") == project.rows("locked") == project.rows("short") == []
    assert [row["v"] for row in project.rows("made")] == ["v"]


@pytest.mark.thorough
def test_a_session_whose_timestamps_have_no_zone_is_refused_before_anything_is_created(
    project: Project,
) -> None:
    create(project, "main", "id bigint")
    kind = "spark.sql.timestampType"
    project.history("batch", select(id="1L"), convention="validity")
    project.model(
        "stated", f"select id from {project.table('main')}", materialized="history", unique_key="id"
    )
    project.model("log", "select 1L as id", materialized="history_append", unique_key="id")
    project.spark.conf.set(kind, "TIMESTAMP_NTZ")
    try:
        run = project.run("batch", "stated", "log", check=False)
    finally:
        project.spark.conf.unset(kind)

    for name in ("batch", "stated", "log"):
        assert f"expected: {kind} = TIMESTAMP_LTZ (the default)" in run.message(name)
        assert not project.spark.catalog.tableExists(project.table(name)), name
    project.run("batch", "stated", "log")


@pytest.mark.thorough
def test_a_table_keeps_the_key_it_was_written_with(project: Project) -> None:
    def write(key: Any, *, batch: int, log_key: Any = "id", **meta: Any) -> None:
        rows = select(batch, batch, id="1L", part="'p'")
        project.history("h", rows, key, convention="validity", **meta)
        plain = rows.replace(f"{batch}L as _batch, ", "")
        project.history("plain", plain, key, convention="validity", **meta)
        project.model(
            "log", f"select {batch}L as id, 'p' as part", materialized="history_append",
            unique_key=log_key, meta={"history": meta} if meta else {},
        )  # fmt: skip

    write(["id", "part"], batch=1)
    project.run("h", "plain", "log")
    write(["PART", "Id"], batch=2, log_key=["ID"])
    project.run("h", "plain", "log")

    write("id", batch=3, log_key="part")
    run = project.run("h", "plain", "log", check=False)

    for name, known in (("h", "id, part"), ("plain", "id, part"), ("log", "id")):
        message = run.message(name)
        assert "the table was written with another unique_key; nothing was written" in message
        assert f"expected: {known}" in message.replace("PART, Id", known).replace("ID", "id")
        assert len(project.rows(name)) == 2
    write("id", batch=3, log_key="part", allow_full_refresh=True)
    project.run("h", "plain", "log", options=["--full-refresh"])
    assert [len(project.rows(name)) for name in ("h", "plain", "log")] == [1, 1, 1]


@pytest.mark.thorough
def test_an_empty_text_in_a_partition_column_is_refused(project: Project) -> None:
    """Delta stores it as NULL, so the next row of the record would not find it."""
    keyed = {"convention": "validity", "config": {"partition_by": "Part"}}
    create(project, "adopted", "id bigint, v string", "partitioned by (v)")
    project.history("keyed", select(id="1L", part="''"), ["part", "id"], **keyed)
    project.history("adopted", select(id="1L", v="''"), convention="validity")
    project.model(
        "stated", "select 1L as id, '' as v", materialized="history", unique_key="id",
        partition_by=["v"],
    )  # fmt: skip

    run = project.run("keyed", "adopted", "stated", check=False)

    for name, column in (("keyed", "part"), ("adopted", "v"), ("stated", "v")):
        message = run.message(name)
        text = f"1 rows: an empty text in a partition column ({column}), which Delta stores as NULL"
        assert "cannot be applied; nothing was written" in message, message
        assert text in message, message
        assert project.spark.catalog.tableExists(project.table(name)) == (name == "adopted")
    project.history("keyed", select(id="1L", part="'x'"), ["part", "id"], **keyed)
    project.run("keyed")
    assert [row["part"] for row in project.rows("keyed")] == ["x"]


@pytest.mark.thorough
def test_several_threads_with_one_session_are_refused_before_anything_is_written(
    project: Project,
) -> None:
    """`--threads 1` is the way out; so are threads that have sessions of their own."""
    for name in ("v", "w"):
        project.model(name, "select 1L as id, 'a' as x", materialized="history", unique_key="id")

    run = project.run("v", "w", check=False, options=["--threads", "2"])

    assert run.log.count("dbt_history.history: the threads of session mode share one") >= 2
    assert not project.spark.catalog.tableExists(project.table("v"))
    project.run("v", options=["--threads", "1"])
    with thread_sessions(lambda: new_session(project.spark)):
        project.run("v", "w", options=["--threads", "2"])
    assert len(project.rows("w")) == 1
