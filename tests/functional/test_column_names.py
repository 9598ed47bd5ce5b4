"""Columns with any name are kept, although DESCRIBE writes its own headers between them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from tests.support.project import Project

ODD = ("# Partition Information", "# col_name", "#x", "Mixed", "b`t", " ", "null", "1")
WIDE = ", ".join(f"{number} as f{number}" for number in range(30))


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def select(batch: int, value: str) -> str:
    """An upsert of one record, its start on the batch's day; each odd column has `value`."""
    cells = ", ".join(f"'{value}' as {quoted(name)}" for name in ODD)
    return (
        f"select 'upsert' as _stage, {batch}L as _batch, 1L as `#k`, {cells},"
        f" named_struct('w', struct({WIDE})) as wide,"
        f" timestamp'2024-01-0{batch} 00:00:00 UTC' as valid_from,"
        " cast(null as timestamp) as valid_to"
    )


def cells(rows: list[dict[str, Any]]) -> list[list[Any]]:
    """The odd columns of the rows, ordered by time."""
    ordered = sorted(rows, key=lambda row: row["valid_from"])
    return [[row[name] for name in ODD] for row in ordered]


@pytest.mark.thorough
def test_a_column_whose_name_begins_with_a_hash_is_kept_in_a_new_table(project: Project) -> None:
    by = "# col_name"
    project.history("h", select(1, "a"), "#k", convention="validity", config={"partition_by": by})
    project.model(
        "log", "select 1L as `#k`, 'a' as `#x`, 'b' as b", materialized="history_append",
        unique_key="#k",
    )  # fmt: skip
    project.run("h", "log")
    project.history("h", select(2, "b"), "#k", convention="validity", config={"partition_by": by})

    run = project.run("h", "log")

    assert run.message("h") == "1 batch: 1 added, 1 closed, 0 removed, 0 skipped, 0 replayed"
    assert cells(project.rows("h")) == [["a"] * len(ODD), ["b"] * len(ODD)]
    assert project.rows("h")[0]["wide"]["w"]["f29"] == 29
    assert project.rows("log") == [{"#k": 1, "#x": "a", "b": "b"}]


@pytest.mark.thorough
def test_an_adopted_table_keeps_every_column_after_one_that_begins_with_a_hash(
    project: Project,
) -> None:
    project.spark.sql(f"create schema if not exists {project.schema}")
    columns = ", ".join(f"{quoted(name)} string" for name in ODD)
    project.spark.sql(
        f"create table {project.table('h')} ({columns}, id bigint, after string,"
        " valid_from timestamp, valid_to timestamp) using delta partitioned by (`#x`)"
        " tblproperties ('delta.columnMapping.mode' = 'name')"
    )
    old = ", ".join("'old'" for _ in ODD)
    project.spark.sql(
        f"insert into {project.table('h')} values ({old},"
        " 1, 'kept', timestamp'2024-01-01 00:00:00 UTC', null)"
    )
    update = (
        "select 'update' as _stage, 2L as _batch, 1L as id, 'new' as `#x`,"
        " timestamp'2024-01-02 00:00:00 UTC' as valid_from, cast(null as timestamp) as valid_to"
    )
    project.history("h", update, convention="validity")

    project.run("h")

    new = ["new" if name == "#x" else "old" for name in ODD]
    assert cells(project.rows("h")) == [["old"] * len(ODD), new]
    assert [row["after"] for row in project.rows("h")] == ["kept", "kept"]


@pytest.mark.thorough
def test_get_columns_in_relation_lists_columns_that_begin_with_a_hash(project: Project) -> None:
    project.write(
        "macros/show_columns.sql",
        "{% macro show_columns(schema, name) %}"
        "{% set relation = api.Relation.create(schema=schema, identifier=name) %}"
        "{% for column in get_columns_in_relation(relation) %}"
        "{% do log(column.name ~ ':' ~ column.data_type ~ ';', info=true) %}"
        "{% endfor %}{% endmacro %}",
    )
    project.spark.sql(f"create schema if not exists {project.schema}")
    project.spark.sql(
        f"create table {project.table('t')} (a int, `#b` string, c decimal(5,2)) using delta"
        " partitioned by (a)"
    )

    arguments = f"{{schema: {project.schema}, name: t}}"
    run = project.dbt("run-operation", "show_columns", "--args", arguments)

    shown = [line for line in run.log.split("\n") if line.endswith(";")]
    assert shown == ["a:int;", "#b:string;", "c:decimal(5,2);"]


@pytest.mark.thorough
def test_a_column_that_needs_a_feature_of_the_format_is_added(project: Project) -> None:
    """A later column of a history table, an append-only table and a mirror."""
    table = project.table("main")
    project.spark.sql(f"create schema if not exists {project.schema}")
    project.spark.sql(
        f"create table {table} (id bigint, v string) using delta tblproperties"
        " ('delta.enableChangeDataFeed' = 'true', 'delta.columnMapping.mode' = 'name')"
    )
    project.spark.sql(f"insert into {table} values (1, 'a')")
    relation = f"api.Relation.create(schema='{project.schema}', identifier='main')"
    project.model(
        "mirror",
        f"select * from {{{{ dbt_history.hx_rows({relation}, 'id') }}}}",
        materialized="history_append",
    )
    times = (
        "timestamp'2024-01-0{0} 00:00:00 UTC' as valid_from, cast(null as timestamp) as valid_to"
    )
    upsert = "select 'upsert' as _stage, {0}L as _batch, {0}L as id, " + times
    project.history("h", upsert.format(1), convention="validity")
    project.model("log", "select 1L as id", materialized="history_append", unique_key="id")
    extended = {"materialized": "history_append", "unique_key": "id"}
    project.model("fields", "select 1L as id, named_struct('a', 1) as s", **extended)
    project.run("h", "log", "mirror", "fields")

    odd = ", 'x' as `odd name`, timestamp_ntz'2024-01-01 00:00:00' as ntz"
    nested = ", named_struct('a b', array(timestamp_ntz'2024-01-01 00:00:00')) as nested"
    fields = "named_struct('a', 1, 'b', timestamp_ntz'2024-01-01 00:00:00') as s"
    project.history("h", upsert.format(2) + odd, convention="validity")
    project.model("log", "select 2L as id" + nested, materialized="history_append", unique_key="id")
    project.spark.sql(f"alter table {table} add columns (`odd name` string)")
    project.spark.sql(f"insert into {table} values (2, 'b', 'x')")
    project.model("fields", f"select 2L as id, {fields}", **extended)
    run = project.run("h", "log", "mirror", "fields")

    assert [row["odd name"] for row in by_id(project, "h")] == [None, "x"]
    day = datetime(2024, 1, 1)
    none, new = [row["nested"] for row in by_id(project, "log")]
    assert (none, new["a b"]) == (None, [day])
    assert [row["s"]["b"] for row in by_id(project, "fields")] == [None, day]
    assert sorted(str(row["odd name"]) for row in project.rows("mirror")) == ["None", "x"]
    assert "gets column mapping (delta.columnMapping.mode = name)" in run.log
    assert run.log.count("gets times without a zone (delta.feature.timestampNtz = supported)") == 3


def by_id(project: Project, name: str) -> list[dict[str, Any]]:
    return sorted(project.rows(name), key=lambda row: int(row["id"]))


@pytest.mark.thorough
def test_keys_with_a_collation_find_their_versions(project: Project) -> None:
    """'ab' and 'AB' are one record, which two batches in one commit change."""

    def rows(*batches: int) -> str:
        keys = {1: "ab", 2: "AB", 3: "Ab"}
        return " union all ".join(
            f"select 'upsert' as _stage, {batch}L as _batch,"
            f" '{keys[batch]}' collate UTF8_LCASE as id, {batch} as v,"
            f" timestamp'2024-01-0{batch} 00:00:00 UTC' as valid_from,"
            " cast(null as timestamp) as valid_to"
            for batch in batches
        )

    check = "spark.databricks.delta.schema.typeCheck.enabled"  # Delta's own tables refuse them
    project.spark.conf.set(check, "false")
    try:
        project.history("h", rows(1), convention="validity")
        project.run("h")
        project.history("h", rows(2, 3), convention="validity")
        run = project.run("h")
    finally:
        project.spark.conf.unset(check)

    assert run.message("h").startswith("2 batches: 2 added, 2 closed")
    ordered = sorted(project.rows("h"), key=lambda row: row["valid_from"])
    assert [row["v"] for row in ordered] == [1, 2, 3]
    assert [row["valid_to"] for row in ordered] == [
        *(row["valid_from"] for row in ordered[1:]), None,
    ]  # fmt: skip
