"""The rows of `changes` after each kind of change of a source."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.operations import METADATA
from tests.support.project import Project
from tests.support.selection import thorough
from tests.support.tables import as_counter

FEED = "'delta.enableChangeDataFeed' = 'true'"
MAPPED = FEED + ", 'delta.columnMapping.mode' = 'name'"


def source(project: Project, columns: str, properties: str = FEED, name: str = "items") -> str:
    """Create the empty source table; returns its full name."""
    project.spark.sql(f"create schema if not exists {project.schema}")
    table = project.table(name)
    project.spark.sql(f"create table {table} ({columns}) using delta tblproperties ({properties})")
    return table


def mirror(
    project: Project,
    arguments: str = "'id'",
    name: str = "items",
    model: str = "log",
    **config: Any,
) -> None:
    """Write the model that stores the rows of `changes`."""
    project.model(
        model,
        "select * from {{ dbt_history.changes(api.Relation.create("
        f"schema='{project.schema}', identifier='{name}'), {arguments}) }}}}",
        materialized="history_append",
        **config,
    )


def taken(project: Project, *columns: str, model: str = "log") -> list[tuple[Any, ...]]:
    """The log in order: change type without `update_`, then the columns."""
    rows = sorted(
        project.rows(model),
        key=lambda row: (
            row["_commit_version"],
            repr(row["id"]),
            row["_change_type"][7:] == "postimage",
        ),
    )
    return [
        (row["_change_type"].removeprefix("update_"), *(row[name] for name in columns))
        for row in rows
    ]


def run(project: Project) -> str:
    return project.run("log").message("log")


@pytest.fixture
def items(project: Project) -> str:
    """A source with two rows that the model has captured."""
    table = source(project, "id bigint, v string")
    project.spark.sql(f"insert into {table} values (1, 'a'), (2, 'b')")
    mirror(project)
    assert run(project) == "2 rows appended"
    return table


POPULATED = [("insert", 1, "a"), ("insert", 2, "b")]


def test_a_run_reads_the_changes_since_the_previous_run(project: Project, items: str) -> None:
    project.spark.sql(f"update {items} set v = 'A' where id = 1")
    project.spark.sql(f"delete from {items} where id = 2")
    project.spark.sql(f"insert into {items} values (3, null)")

    assert run(project) == "4 rows appended"
    assert run(project) == "nothing new"
    assert taken(project, "id", "v") == [
        *POPULATED,
        ("preimage", 1, "a"),
        ("postimage", 1, "A"),
        ("delete", 2, "b"),
        ("insert", 3, None),
    ]
    assert len(project.log_of("log")) == 3


@pytest.mark.thorough
def test_a_run_without_a_new_version_makes_no_commit(project: Project, items: str) -> None:
    commits = len(project.log_of("log"))
    assert run(project) == "nothing new"
    assert len(project.log_of("log")) == commits


@pytest.mark.thorough
def test_optimize_and_vacuum_between_runs_change_nothing(project: Project, items: str) -> None:
    project.spark.sql(f"insert into {items} values (3, 'c')")
    project.spark.sql(f"optimize {items}")
    project.spark.sql(f"vacuum {items}")

    assert run(project) == "1 row appended"
    project.spark.sql(f"optimize {items}")
    assert run(project) in ("0 rows appended", "nothing new")
    assert taken(project, "id", "v") == [*POPULATED, ("insert", 3, "c")]


@pytest.mark.parametrize(
    "statement",
    [
        "insert overwrite {} values (1, 'a'), (2, 'B'), (3, 'c')",
        thorough(
            "create or replace table {} using delta tblproperties (" + FEED + ") as select * from"
            " values (1L, 'a'), (2L, 'B'), (3L, 'c') as items (id, v)"
        ),
    ],
    ids=["overwrite", "create or replace"],
)
def test_an_overwrite_gives_only_the_rows_that_changed(
    project: Project, items: str, statement: str
) -> None:
    project.spark.sql(statement.format(items))

    run(project)

    assert taken(project, "id", "v") == [
        *POPULATED,
        ("preimage", 2, "b"),
        ("postimage", 2, "B"),
        ("insert", 3, "c"),
    ]


@pytest.mark.thorough
def test_a_replace_that_disables_the_feed_is_compared(project: Project, items: str) -> None:
    project.spark.sql(
        f"create or replace table {items} using delta as"
        " select * from values (2L, 'b'), (3L, 'c') as kept (id, v)"
    )
    run(project)
    project.spark.sql(f"delete from {items} where id = 3")
    run(project)
    assert taken(project, "id", "v") == [
        *POPULATED,
        ("delete", 1, "a"),
        ("insert", 3, "c"),
        ("delete", 3, "c"),
    ]


@pytest.mark.thorough
def test_a_truncate_deletes_every_row(project: Project, items: str) -> None:
    project.spark.sql(f"truncate table {items}")
    run(project)
    assert taken(project, "id", "v") == [*POPULATED, ("delete", 1, "a"), ("delete", 2, "b")]


@pytest.mark.thorough
def test_a_restore_gives_only_the_rows_that_changed(project: Project, items: str) -> None:
    project.spark.sql(f"update {items} set v = 'A' where id = 1")
    run(project)
    project.spark.sql(f"restore table {items} to version as of 1")
    run(project)
    assert taken(project, "id", "v")[-2:] == [("preimage", 1, "A"), ("postimage", 1, "a")]
    assert len(taken(project)) == 6


def test_a_table_dropped_and_recreated_is_compared(project: Project, items: str) -> None:
    project.spark.sql(f"drop table {items}")
    source(project, "id bigint, v string")
    for value in ((2, "b"), (4, "d"), (5, "e")):
        project.spark.sql(f"insert into {items} values {value}")
    run(project)
    assert sorted(taken(project, "id", "v"))[:1] == [("delete", 1, "a")]
    assert sorted(taken(project, "id", "v"))[-2:] == [("insert", 4, "d"), ("insert", 5, "e")]
    assert len(taken(project)) == 5


@pytest.mark.thorough
def test_a_table_swapped_with_another_is_compared(project: Project, items: str) -> None:
    """The other table has as many versions, made by the same statements."""
    other = source(project, "id bigint, v string", name="other")
    project.spark.sql(f"insert into {other} values (1, 'a'), (9, 'z')")
    project.spark.sql(f"alter table {items} rename to {project.table('former')}")
    project.spark.sql(f"alter table {other} rename to {items}")

    run(project)

    assert sorted(taken(project, "id", "v")) == [
        ("delete", 2, "b"), *POPULATED, ("insert", 9, "z"),
    ]  # fmt: skip


@pytest.mark.thorough
def test_a_feed_enabled_later_is_used_from_then_on(project: Project) -> None:
    table = source(project, "id bigint, v string", "'delta.enableChangeDataFeed' = 'false'")
    project.spark.sql(f"insert into {table} values (1, 'a'), (2, 'b')")
    mirror(project)
    run(project)
    project.spark.sql(f"update {table} set v = 'x' where id = 1")
    project.spark.sql(f"update {table} set v = 'y' where id = 1")
    project.spark.sql(f"alter table {table} set tblproperties ({FEED})")
    project.spark.sql(f"update {table} set v = 'z' where id = 1")
    project.spark.sql(f"update {table} set v = 'zz' where id = 1")

    run(project)

    assert taken(project, "id", "v") == [
        *POPULATED,
        ("preimage", 1, "a"),
        ("postimage", 1, "y"),
        ("preimage", 1, "y"),
        ("postimage", 1, "z"),
        ("preimage", 1, "z"),
        ("postimage", 1, "zz"),
    ]


def test_columns_may_be_added_dropped_renamed_and_widened(project: Project) -> None:
    table = source(
        project,
        "id bigint, v string, w string, n int",
        MAPPED + ", 'delta.enableTypeWidening' = 'true'",
    )
    project.spark.sql(f"insert into {table} values (1, 'a', 'w', 1)")
    mirror(project)
    run(project)
    for statement in (
        "update {} set v = 'b'",
        "alter table {} add columns (more string)",
        "update {} set more = 'm'",
        "alter table {} drop column w",
        "update {} set v = 'c'",
        "alter table {} rename column v to renamed",
        "update {} set renamed = 'd'",
        "alter table {} alter column n type bigint",
        "update {} set n = 3000000000",
    ):
        project.spark.sql(statement.format(table))

    run(project)

    after = [
        row
        for row in taken(project, "id", "v", "w", "more", "renamed", "n")
        if row[0] != "preimage"
    ]
    assert after == [
        ("insert", 1, "a", "w", None, None, 1),
        ("postimage", 1, "b", "w", None, None, 1),
        ("postimage", 1, "b", "w", "m", None, 1),
        ("postimage", 1, "c", None, "m", None, 1),
        ("postimage", 1, None, None, "m", "d", 1),
        ("postimage", 1, None, None, "m", "d", 3000000000),
    ]


@pytest.mark.thorough
def test_a_type_widened_without_column_mapping_is_compared_up_to_the_change(
    project: Project,
) -> None:
    table = source(project, "id bigint, v int", FEED + ", 'delta.enableTypeWidening' = 'true'")
    project.spark.sql(f"insert into {table} values (1, 1)")
    mirror(project)
    run(project)
    project.spark.sql(f"update {table} set v = 2")
    project.spark.sql(f"alter table {table} alter column v type bigint")
    project.spark.sql(f"update {table} set v = 3000000000")

    run(project)

    assert [row for row in taken(project, "v") if row[0] != "preimage"] == [
        ("insert", 1),
        ("postimage", 2),
        ("postimage", 3000000000),
    ]


@pytest.mark.thorough
def test_a_type_changed_by_an_overwrite_is_compared_up_to_the_change(project: Project) -> None:
    """
    version   1                2           3                4
    v         5, 3000000000    5 to 6      int: 6, 7, 8     9
    feed      ] not readable --------------] readable
    """
    spark = project.spark
    table = source(project, "id bigint, v bigint")

    def overwrite(type_: str) -> None:
        values = f"select id, cast(id + 5 as {type_}) as v from range(1, 4)"
        frame = spark.sql(values).write.format("delta").mode("overwrite")
        frame.option("overwriteSchema", "true").saveAsTable(table)

    spark.sql(f"insert into {table} values (1, 5), (2, 3000000000)")
    mirror(project)
    project.model("h", f"select * from {table}", materialized="history", unique_key="id")
    project.run("log", "h")
    spark.sql(f"update {table} set v = 6 where id = 1")
    overwrite("int")
    spark.sql(f"update {table} set v = 9 where id = 3")

    project.run("log", "h")
    overwrite("smallint")
    project.run("log", "h")

    assert taken(project, "id", "v") == [
        ("insert", 1, 5), ("insert", 2, 3000000000), ("preimage", 1, 5), ("postimage", 1, 6),
        ("preimage", 2, 3000000000), ("postimage", 2, 7), ("insert", 3, 8),
        ("preimage", 3, 8), ("postimage", 3, 9), ("preimage", 3, 9), ("postimage", 3, 8),
    ]  # fmt: skip
    versions = sorted((row["id"], row["valid_from"], row["v"]) for row in project.rows("h"))
    assert [(id_, v) for id_, _, v in versions] == [
        (1, 5), (1, 6), (2, 3000000000), (2, 7), (3, 8), (3, 9), (3, 8),
    ]  # fmt: skip

    overwrite("string")
    refused = project.run("log", "h", check=False)
    for name in ("log", "h"):
        assert "column v is string, the table has bigint" in refused.message(name)


def expire(project: Project, items: str) -> None:
    """Change the source, and vacuum the files of the changes."""
    spark = project.spark
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    spark.sql(f"update {items} set v = 'A' where id = 1")
    spark.sql(f"delete from {items} where id = 2")
    spark.sql(f"vacuum {items} retain 0 hours")
    spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")


def test_an_expired_range_is_refused_with_the_way_out(project: Project, items: str) -> None:
    expire(project, items)

    failed = project.run("log", check=False)

    assert not failed.success
    assert "are not there any more (VACUUM)" in failed.message("log"), failed.message("log")
    assert "--vars 'dbt_history_capture: diff'" in failed.message("log")
    assert taken(project, "id", "v") == POPULATED


@pytest.mark.thorough
def test_the_way_out_of_an_expired_range_compares_once(project: Project, items: str) -> None:
    expire(project, items)

    project.run("log", options=["--vars", "dbt_history_capture: diff"])
    project.spark.sql(f"insert into {items} values (3, 'c')")
    run(project)
    assert taken(project, "id", "v") == [
        *POPULATED,
        ("preimage", 1, "a"),
        ("postimage", 1, "A"),
        ("delete", 2, "b"),
        ("insert", 3, "c"),
    ]


@pytest.mark.thorough
def test_a_log_without_the_type_of_a_change_is_made_anew(project: Project, items: str) -> None:
    """The columns that a difference needs cannot be added later: the earlier rows lack them."""
    spark = project.spark
    narrow = "select id, v, _commit_version from {{{{ {} }}}}"
    mirrored = f"api.Relation.create(schema='{project.schema}', identifier='items')"
    changes = f"dbt_history.changes({mirrored}, 'id')"
    project.model("log", narrow.format(changes), materialized="history_append", alias="narrow")
    run(project)
    spark.sql(f"alter table {items} set tblproperties ('delta.enableChangeDataFeed' = 'false')")
    spark.sql(f"update {items} set v = 'A' where id = 1")

    message = run_and_fail(project)

    assert "way out: return these columns in the SELECT" in message
    assert "give the model another alias" in message

    # Added to the table, the column is NULL in its rows: these may be deletions.
    narrow_log = project.table("narrow")
    spark.sql(f"alter table {narrow_log} add columns (_change_type string)")
    mirror(project, alias="narrow")
    assert "the model's table has rows without _change_type; no row was written" in (
        run_and_fail(project)
    )
    assert len(project.rows("narrow")) == 2

    # The way out, which the first run of such a SELECT is refused without.
    project.model("log", narrow.format(changes), materialized="history_append", alias="anew")
    assert "column _change_type is missing: the source has no change data feed" in (
        run_and_fail(project)
    )
    assert not spark.catalog.tableExists(project.table("anew"))
    mirror(project, alias="anew")
    run(project)
    spark.sql(f"delete from {items} where id = 2")
    run(project)
    assert taken(project, "id", "v", model="anew") == [
        ("insert", 1, "A"), ("insert", 2, "b"), ("delete", 2, "b"),
    ]  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("form", ["view", "parquet"])
def test_a_view_and_a_parquet_table_are_compared(project: Project, form: str) -> None:
    spark = project.spark
    spark.sql(f"create schema if not exists {project.schema}")
    name = project.table("items")

    def replace_source(values: str) -> None:
        select = f"select * from values {values} as items (id, v)"
        if form == "view":
            spark.sql(f"create or replace view {name} as {select}")
        else:
            spark.sql(f"drop table if exists {name}")
            spark.sql(f"create table {name} using parquet as {select}")

    replace_source("(1L, 'a'), (2L, 'b')")
    mirror(project)
    run(project)
    assert run(project) == "nothing new"
    replace_source("(1L, 'A'), (3L, 'c')")
    run(project)
    assert run(project) == "nothing new"
    assert taken(project, "id", "v") == [
        *POPULATED,
        ("preimage", 1, "a"),
        ("postimage", 1, "A"),
        ("delete", 2, "b"),
        ("insert", 3, "c"),
    ]


def test_special_values_are_compared_exactly(project: Project) -> None:
    table = source(
        project,
        "id string, `a b` double, s struct<`x y`: int, z: string>, l array<int>,"
        " m map<string, int>",
        "'delta.columnMapping.mode' = 'name'",
    )
    spark = project.spark
    rows = (
        "('', 0.0, null, null, null), ('NULL', double('NaN'), named_struct('x y', 1, 'z', null),"
        " array(1, null), map('a', 1, 'b', null)), (null, null, null, array(), map())"
    )
    spark.sql(f"insert into {table} values {rows}")
    mirror(project, "['id'], method='diff'")
    assert run(project) == "3 rows appended"
    spark.sql(f"insert overwrite {table} values {rows.replace('0.0', '-0.0')}")
    assert run(project) == "0 rows appended"
    spark.sql(f"update {table} set l = array() where id = ''")
    spark.sql(f"update {table} set m = map('b', null, 'a', 2) where id = 'NULL'")
    spark.sql(f"update {table} set `a b` = double('NaN') where id is null")

    assert run(project) == "6 rows appended"


@pytest.mark.thorough
def test_an_update_without_change_is_recorded_by_the_feed_unless_skipped(
    project: Project,
) -> None:
    table = source(project, "id bigint, v string")
    project.spark.sql(f"insert into {table} values (1, 'a')")
    mirror(project)
    mirror(project, "'id', noop_updates='skip'", model="strict")
    project.run("log", "strict")
    project.spark.sql(f"update {table} set v = v")

    project.run("log", "strict")

    assert len(taken(project)) == 3
    assert len(taken(project, model="strict")) == 1


@pytest.mark.thorough
def test_a_key_that_changes_is_a_delete_and_an_insert(project: Project, items: str) -> None:
    project.spark.sql(f"update {items} set id = id + 1")
    run(project)
    assert taken(project, "id", "v") == [
        *POPULATED,
        ("delete", 1, "a"),
        ("preimage", 2, "b"),
        ("postimage", 2, "a"),
        ("insert", 3, "b"),
    ]


@pytest.mark.parametrize("method", ["feed", thorough("diff")])
def test_duplicate_keys_of_a_source_are_refused_with_samples(project: Project, method: str) -> None:
    table = source(project, "id bigint, v string")
    mirror(project, f"'id', method='{method}'")
    run(project)
    project.spark.sql(f"insert into {table} values (1, 'a'), (7, 'one'), (7, 'other')")

    failed = project.run("log", check=False)

    assert not failed.success
    message = failed.message("log")
    assert "dbt_history.changes: several rows of the source have the same key" in message
    assert '"c_v":"one"' in message
    assert '"c_v":"other"' in message
    assert taken(project) == []


def commit(spark: SparkSession, metadata: str | None, statement: str) -> None:
    """A statement of a writer who gives its commit this metadata."""
    if metadata is not None:
        spark.conf.set(METADATA, metadata)
    try:
        spark.sql(statement)
    finally:
        spark.conf.unset(METADATA)


@pytest.mark.thorough
def test_changed_by_is_the_named_column_the_commit_or_null(project: Project) -> None:
    """The user of the run is written only where the model asks for it."""
    table = source(project, "id bigint, editor string")
    mirror(project, "'id', changed_by='editor'")
    mirror(project, model="plain")
    mirror(project, model="runner", meta={"history": {"mod_user": "invocation"}})
    models = ("log", "plain", "runner")
    project.run(*models)
    for metadata, row in (
        ('{"user": "Zoë", "transaction": "t1"}', "(1, 'ed')"),
        ("O'Brien", "(2, null)"),
        (None, "(3, null)"),
        ('{"message": "nightly"}', "(4, null)"),
        ('{"dbt_history": "1", "author": "ann"}', "(5, null)"),
    ):
        commit(project.spark, metadata, f"insert into {table} values {row}")

    project.run(*models)

    (runner,) = project.spark.sql("select current_user()").first()  # type: ignore[misc]
    users = {name: [row[1] for row in taken(project, "_changed_by", model=name)] for name in models}
    assert users == {
        "log": ["ed", "O'Brien", None, None, "ann"],
        "plain": ["Zoë", "O'Brien", None, None, "ann"],
        "runner": ["Zoë", "O'Brien", runner, runner, "ann"],
    }


@pytest.mark.thorough
def test_users_of_rows_found_without_a_feed(project: Project) -> None:
    """The first rows and a difference: by row tracking, or by the only commit; else NULL.

    source   1 ann   2 bob   3 -     | run |   4 cem   | run |   5 dan (row 1)   6 eve (row 2 goes)
    tracked  ann, bob, NULL                    cem                 dan              NULL
    plain    NULL                              cem                 NULL             NULL
    """
    off = "'delta.enableChangeDataFeed' = 'false'"
    properties = {"tracked": f"{off}, 'delta.enableRowTracking' = 'true'", "plain": off}
    for name, chosen in properties.items():
        source(project, "id bigint, v string", chosen, f"{name}_items")
        mirror(project, name=f"{name}_items", model=name)

    def write(user: str | None, statement: str) -> None:
        metadata = json.dumps({"user": user}) if user else None
        for name in properties:
            commit(project.spark, metadata, statement.format(project.table(f"{name}_items")))

    write("ann", "insert into {} values (1, 'a')")
    write("bob", "insert into {} values (2, 'b')")
    write(None, "insert into {} values (3, 'c')")
    write("admin", "optimize {}")
    project.run(*properties)
    write("cem", "update {} set v = 'C' where id = 3")
    project.run(*properties)
    write("dan", "update {} set v = 'A' where id = 1")
    write("eve", "delete from {} where id = 2")
    project.run(*properties)

    users = {
        name: [
            (kind, *row)
            for kind, *row in taken(project, "id", "_changed_by", model=name)
            if kind != "preimage"
        ]
        for name in properties
    }
    changes = [("insert", 1), ("insert", 2), ("insert", 3), ("postimage", 3), ("postimage", 1)]
    changes.append(("delete", 2))
    assert users == {
        name: [(*change, user) for change, user in zip(changes, named, strict=True)]
        for name, named in {
            "tracked": ["ann", "bob", None, "cem", "dan", None],
            "plain": [None, None, None, "cem", None, None],
        }.items()
    }


@pytest.mark.thorough
def test_rows_from_before_row_tracking_have_no_user(project: Project) -> None:
    """Enabling it gives them the version of the commit that enabled it, whoever made that one."""
    table = source(project, "id bigint, v string")
    spark = project.spark
    mirror(project)
    commit(spark, "ann", f"insert into {table} values (1, 'a')")
    track = f"alter table {table} set tblproperties ('delta.enableRowTracking' = '{{}}')"
    commit(spark, "admin", track.format("true"))
    commit(spark, "bob", f"insert into {table} values (2, 'b')")

    run(project)

    assert taken(project, "id", "_changed_by") == [("insert", 1, None), ("insert", 2, "bob")]


@pytest.mark.thorough
def test_method_feed_is_refused_where_the_feed_is_disabled(project: Project) -> None:
    table = source(project, "id bigint", "'delta.enableChangeDataFeed' = 'false'")
    mirror(project, "'id', method='feed'")
    run(project)
    project.spark.sql(f"insert into {table} values (1)")
    message = project.run("log", check=False).message("log")
    assert "the change data feed of" in message
    assert "way out: compare once" in message


def test_all_problems_of_a_capture_are_reported_together(project: Project) -> None:
    source(project, "id bigint")
    project.model(
        "log",
        "select * from {{ dbt_history.changes(this, [], method='fed') }}",
        materialized="view",
    )
    message = project.run("log", check=False).message("log")
    for problem in ("method is fed", "key is empty", "the model is a view"):
        assert problem in message


@pytest.mark.thorough
def test_a_restored_log_captures_again_what_the_restore_removed(
    project: Project, items: str
) -> None:
    project.spark.sql(f"insert into {items} values (3, 'c')")
    run(project)
    project.spark.sql(
        f"alter table {project.table('log')} set tblproperties ('delta.appendOnly' = 'false')"
    )
    project.spark.sql(f"restore table {project.table('log')} to version as of 1")
    run(project)
    assert taken(project, "id", "v") == [*POPULATED, ("insert", 3, "c")]


@pytest.mark.thorough
def test_two_sources_of_one_model_have_separate_watermarks(project: Project) -> None:
    for name in ("items", "others"):
        source(project, "id bigint", name=name)
    part = (
        "select id from {{{{ dbt_history.changes("
        "api.Relation.create(schema='{}', identifier='{}'), 'id') }}}}"
    )
    project.model(
        "log",
        "\nunion all\n".join(part.format(project.schema, name) for name in ("items", "others")),
        materialized="history_append",
    )
    run(project)
    for number, name in enumerate(("items", "others", "items", "items")):
        project.spark.sql(f"insert into {project.table(name)} values ({number})")
        if number:
            assert run(project) == ("2 rows appended" if number == 1 else "1 row appended")
    assert as_counter(project.rows("log"), ["id"]) == as_counter(
        [{"id": n} for n in range(4)], ["id"]
    )


@pytest.mark.thorough
def test_duplicate_keys_are_no_error_once_the_source_is_repaired(
    project: Project, items: str
) -> None:
    """All changes of a key while it was duplicated are one change; other rows are unaffected."""
    spark = project.spark
    spark.sql(f"update {items} set v = 'A' where id = 1")
    spark.sql(f"insert into {items} values (1, 'second'), (5, 'one'), (5, 'other'), (6, 'f')")
    assert "several rows of the source have the same key" in run_and_fail(project)
    spark.sql(f"update {items} set v = 'F' where id = 6")
    spark.sql(f"delete from {items} where v in ('A', 'one')")
    spark.sql(f"update {items} set v = 'later' where id = 1")

    run(project)

    assert sorted(taken(project, "id", "v")[2:], key=lambda row: row[1]) == [
        ("preimage", 1, "a"),
        ("postimage", 1, "A"),
        ("preimage", 1, "A"),
        ("postimage", 1, "second"),
        ("preimage", 1, "second"),
        ("postimage", 1, "later"),
        ("insert", 5, "other"),
        ("insert", 6, "f"),
        ("preimage", 6, "f"),
        ("postimage", 6, "F"),
    ]


@pytest.mark.thorough
def test_two_times_of_a_double_key_are_two_changes(project: Project, items: str) -> None:
    """A writer that inserts the new row first, and a key that is gone in between.

    version      a     A     b added   A gone   c added   b gone   c gone   d, e   e gone
    rows of 1    1     1     2         1        2         1        0        2      1
    """
    insert, delete = f"insert into {items} values", f"delete from {items} where id = 1"
    for statement in (
        f"update {items} set v = 'A' where id = 1",
        f"{insert} (1, 'b')", f"{delete} and v = 'A'",
        f"{insert} (1, 'c')", f"{delete} and v = 'b'",
        delete, f"{insert} (1, 'd'), (1, 'e')", f"{delete} and v = 'e'",
    ):  # fmt: skip
        project.spark.sql(statement)

    run(project)

    assert taken(project, "_commit_version", "v")[2:] == [
        ("preimage", 2, "a"), ("postimage", 2, "A"),
        ("preimage", 4, "A"), ("postimage", 4, "b"),
        ("preimage", 6, "b"), ("postimage", 6, "c"),
        ("delete", 7, "c"), ("insert", 9, "d"),
    ]  # fmt: skip


def run_and_fail(project: Project) -> str:
    failed = project.run("log", check=False)
    assert not failed.success
    return failed.message("log")


def test_columns_of_a_source_are_not_taken_for_bookkeeping(project: Project) -> None:
    """An updated row with an old number of its own would count as applied."""
    project.model("main", "select 1L as id, 3L as _batch, 'a' as v", materialized="table")
    project.model("renamed", "select * except (_batch), _batch as load from {{ ref('main') }}")
    for name, source in [("h", "main"), ("good", "renamed")]:
        changes = f"dbt_history.changes(ref('{source}'), 'id', method='diff')"
        project.history(
            name,
            f"select * from {{{{ dbt_history.batch_rows({changes}, 'id', 'validity') }}}}",
            convention="validity",
        )
    project.run("main", "renamed")

    run = project.run("h", "good", check=False)

    assert "column _batch of the source has a name that staged rows need" in run.log
    assert not project.spark.catalog.tableExists(project.table("h"))
    assert [row["load"] for row in project.rows("good")] == [3]


@pytest.mark.thorough
def test_a_difference_needs_every_column_of_the_source(project: Project) -> None:
    """Without `seen` in the table, every run would find every record changed."""
    records = "select 1L as id, 'a' as v, 7 as seen union all select 2L, 'b', 7"
    project.model("items", records, materialized="view")
    rows = "dbt_history.changes(ref('items'), 'id')"
    batch = {
        "materialized": "history_batch", "unique_key": "id",
        "meta": {"history": {"convention": "validity"}},
    }  # fmt: skip
    for name, options in (("plain", ""), ("wide", ""), ("merged", ", merge_equal=true")):
        staged = f"{{{{ dbt_history.batch_rows({rows}{options}) }}}}"
        project.model(name, f"select * except (seen) from {staged}", **batch)
    project.model("log", f"select * except (seen) from {{{{ {rows} }}}}",
                  materialized="history_append")  # fmt: skip
    project.run("items", "plain", "wide", "merged", "log")

    run = project.run("plain", "merged", "log", check=False)

    for name in ("plain", "log"):
        message = run.message(name)
        assert "column seen of the source is compared, and not stored" in message, message
    assert [len(project.rows(name)) for name in ("plain", "log")] == [2, 2]
    ends = [(row["valid_from"], row["valid_to"]) for row in project.rows("merged")]
    assert len([end for start, end in ends if end is None or end > start]) == 2

    # Both ways out of the message. Record 2 is deleted in the same run.
    project.model("items", "select 1L as id, 'a' as v, 7 as seen", materialized="view")
    project.model("narrow", "select id, v from {{ ref('items') }}", materialized="view")
    project.model("wide", f"select * from {{{{ dbt_history.batch_rows({rows}) }}}}", **batch)
    rows = rows.replace("items", "narrow")
    project.model("plain", f"select * from {{{{ dbt_history.batch_rows({rows}) }}}}", **batch)
    project.model("log", f"select * from {{{{ {rows} }}}}", materialized="history_append")
    project.run("items", "narrow", "plain", "wide", "log")
    project.run("plain", "wide", "log")

    def versions(name: str) -> list[tuple[Any, ...]]:
        return sorted(
            (row["id"], row["valid_to"] is None, row.get("seen")) for row in project.rows(name)
        )

    assert versions("plain") == [(1, True, None), (2, False, None)]
    assert versions("wide") == [(1, False, None), (1, True, 7), (2, False, None)]
    changes = [("delete", 2, "b"), ("insert", 1, "a"), ("insert", 2, "b")]
    assert sorted(taken(project, "id", "v")) == changes

    # Back to `items`; the code names the former source, too, so that it may be left out.
    project.model(
        "log",
        "-- 'narrow'\nselect * except (seen) from {{ dbt_history.changes(ref('items'), 'id') }}",
        materialized="history_append",
    )
    message = project.run("log", check=False).message("log")
    assert "`narrow`, which the SELECT does not read; new is" in message
    assert sorted(taken(project, "id", "v")) == changes


@pytest.mark.thorough
def test_a_column_that_a_version_table_ignores_makes_no_differences(project: Project) -> None:
    """`plain` returns `seen`; `renamed` could store it under another name, so it is refused."""
    changes = "dbt_history.changes(ref('items'), 'id')"

    def model(name: str, columns: str = "*") -> None:
        project.history(
            name,
            f"select {columns} from {{{{ dbt_history.batch_rows({changes}) }}}}",
            convention="validity",
            config={"on_schema_change": "ignore"},
        )

    def items(*rows: str) -> None:
        project.model("items", " union all ".join(rows), materialized="view")
        project.run("items")

    items("select 1L as id, 'a' as v", "select 2L, 'b'")
    model("plain")
    model("renamed")
    project.run("plain", "renamed")
    model("renamed", "* except (seen), seen as w")
    for seen in (7, 8):
        items(f"select 1L as id, 'a' as v, {seen} as seen", f"select 2L, 'b', {seen}")
        project.run("plain")
    refused = project.run("renamed", check=False).message("renamed")
    items("select 1L as id, 'A' as v, 9 as seen", "select 2L, 'b', 9")
    project.run("plain")

    assert "column seen of the source is neither stored nor compared" in refused
    assert sorted(
        (row["id"], row["v"], row["valid_to"] is None) for row in project.rows("plain")
    ) == [(1, "A", True), (1, "a", False), (2, "b", True)]
    assert len(project.rows("renamed")) == 2
