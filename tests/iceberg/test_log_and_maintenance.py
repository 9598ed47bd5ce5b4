"""Logs, captures and run-operations on Iceberg."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import pytest
from dbt.adapters.spark.session import Cursor
from pyspark.sql import SparkSession

from tests.support.iceberg import Catalog, numbers, ready, refs
from tests.support.markdown import blocks, page
from tests.support.processes import last_line, release
from tests.support.project import Project
from tests.support.staging import (
    COLUMNS,
    before,
    day,
    earliest,
    new_version,
    stage,
    upsert,
    version,
)
from tests.support.tables import assert_same_rows

pytestmark = pytest.mark.thorough

ICEBERG = {"file_format": "iceberg"}
TAKEN = (
    "select * from {{ dbt_history.changes(api.Relation.create(schema='%s', identifier='source'),"
    " 'id') }}"
)


def values(project: Project, name: str, *columns: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row[c] for c in columns) for row in project.rows(name)), key=repr)


def test_a_log_appends_rows_and_changes_once_and_gains_columns(
    project: Project, spark: SparkSession
) -> None:
    """By whole rows, by number, and by comparison with the newest known state."""
    source = project.table("source")
    spark.sql(f"create schema if not exists {project.schema}")
    spark.sql(f"create table {source} using iceberg as select 1 as id, 'a' as v")
    taken = TAKEN % project.schema
    numbered = "select * from values (1L, 'a'), (3L, 'b') as t (_batch, v)"

    def models(rows: str, batches: str) -> None:
        project.model("whole", rows, materialized="history_append", **ICEBERG)
        project.model("numbered", batches, materialized="history_append", **ICEBERG)
        project.model("taken", taken, materialized="history_append", **ICEBERG)

    models("select * from values (1, 'a'), (1, 'a'), (2, null) as t (id, v)", numbered)
    project.run("whole", "numbered", "taken")
    again = project.run("whole", "numbered", "taken")
    assert {again.message(name) for name in ("whole", "numbered", "taken")} == {"nothing new"}

    spark.sql(f"insert overwrite {source} values (1, 'b'), (2, 'c')")
    models(
        "select 1L as id, 0 as flag, 'a' as v union all select 2L, 1, ''",
        numbered.replace("(3L, 'b')", "(2L, 'late'), (4L, 'c')"),
    )
    project.run("whole", "numbered", "taken")

    assert values(project, "whole", "id", "flag", "v") == [
        (1, 0, "a"), (1, None, "a"), (1, None, "a"), (2, 1, ""), (2, None, None),
    ]  # fmt: skip
    assert spark.table(project.table("whole")).schema["id"].dataType.simpleString() == "bigint"
    assert values(project, "numbered", "v") == [("a",), ("b",), ("c",)]
    assert values(project, "taken", "id", "v", "_change_type") == [
        (1, "a", "insert"), (1, "a", "update_preimage"), (1, "b", "update_postimage"),
        (2, "c", "insert"),
    ]  # fmt: skip
    assert numbers(spark, project.table("taken")) == [1, 2]
    assert refs(spark, project.table("taken")) == ["main"]

    refused = project.run("whole", check=False, options=["--full-refresh"])
    assert "a full refresh would replace the existing history" in refused.message("whole")
    models("select date'2024-01-01' as id, 'c' as v", numbered)
    refused = project.run("whole", check=False)
    assert "column id is date, the table has bigint" in refused.message("whole")
    project.model("taken", taken.replace("'id')", "'id', 'feed')"), materialized="history_append")
    refused = project.run("taken", check=False)
    assert "cannot be used: the relation is not a Delta table" in refused.message("taken")


def test_rows_that_another_first_run_appended_meanwhile_are_left_to_it(
    project: Project,
    spark: SparkSession,
    catalog: Catalog,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """
    this run    makes the table, reads its log             reads it again, to write
    other run                                   appends 1
    """
    spark.sql(f"create schema if not exists {project.schema}")
    spark.sql(f"create table {project.table('source')} using iceberg as select 1 as id, 'a' as v")
    taken = TAKEN % project.schema
    log = {"materialized": "history_append"}
    project.model("h", taken, **log, **ICEBERG)
    other = ready(tmp_path / "other", catalog, project.schema, taken, log)
    execute, readings = Cursor.execute, itertools.count(1)

    def held(cursor: Cursor, sql: str, *parameters: object) -> None:
        if "`h`.snapshots" in sql and next(readings) == 2:
            release(other)
            assert last_line(other) == "1 row appended"
        execute(cursor, sql, *parameters)

    with monkeypatch.context() as patch:
        patch.setattr(Cursor, "execute", held)
        message = project.run("h").message("h")

    assert message == "applied by another run"
    assert values(project, "h", "id", "v", "_change_type") == [(1, "a", "insert")]
    assert numbers(spark, project.table("h")) == [1]


def test_run_operations_work_on_iceberg_tables(project: Project, spark: SparkSession) -> None:
    rows = [row for id_ in (1, 2) for row in (earliest(1, id_, day(1)), upsert(1, id_, day(1)))]
    rows += [*new_version(2, 1, day(3), "b"), *new_version(3, 1, day(5), "c")]
    project.history("h", stage(project, "staged_h", rows), config=ICEBERG)
    project.run("h")
    table = project.table("h")

    def operation(name: str, arguments: str) -> Any:
        arguments = f"{{table: h, {arguments}}}"
        return project.dbt("run-operation", name, "--args", arguments)

    operation("verify_history", "")
    operation("create_tag", "tag: third, at: '2024-01-03 12:00:00'")
    operation("clean_history", "before: '2024-02-01'")
    kept = [
        version(1, "b", day(3), before(day(5))), version(1, "c", day(5)), version(2, "a", day(1)),
    ]  # fmt: skip
    assert_same_rows(project.rows("h"), kept, COLUMNS)
    select = "select id, v from {{ dbt_history.as_of(ref('h'), '%s', 'fivetran') }}"
    project.model("at_tag", select % "tag:third", materialized="table", **ICEBERG)
    project.model("too_early", select % "2024-01-02", materialized="table", **ICEBERG)
    done = project.run("at_tag", "too_early", check=False)
    assert values(project, "at_tag", "id", "v") == [(1, "b"), (2, "a")]
    assert "the history of" in done.message("too_early")
    assert "was cleaned" in done.message("too_early")

    # The last batch is known after its snapshot has expired; a suspension is a snapshot, too.
    operation("rewind", "to: 'tag:third', only: {id: 1}")
    now = [row for row in project.rows("h") if row["_fivetran_active"]]
    assert sorted((row["id"], row["v"]) for row in now) == [(1, "b"), (2, "a")]
    done = operation("compact_history", "vacuum_hours: 0")
    many, few = re.findall(r"(\d+) files are now (\d+), older files vacuumed", done.log)[0]
    assert int(few) < int(many)
    assert spark.sql(f"select * from {table}.snapshots").count() == 1
    assert "no new batch" in project.run("h").message("h")
    operation("verify_history", "")
    operation("drop_tag", "tag: third")
    operation("suspend_history", "")
    operation("resume_history", "")
    assert "no new batch" in project.run("h").message("h")


def test_the_incremental_strategy_gives_the_same_rows_and_a_subject_can_be_erased(
    project: Project, spark: SparkSession
) -> None:
    rows = [row for id_ in (1, 2) for row in (earliest(1, id_, day(1)), upsert(1, id_, day(1)))]
    select = stage(project, "staged_h", [*rows, *new_version(2, 1, day(3), "b")])
    project.write("macros/shim.sql", blocks(page("docs/incremental_strategy.md"), "sql")[1])
    project.model(
        "h",
        select,
        materialized="incremental",
        incremental_strategy="history_batch",
        unique_key="id",
        meta={"history": {"convention": "fivetran", "batches_per_commit": 1}},
        **ICEBERG,
    )
    mirror = "select 1L as id, 'a' as v, 'kept' as other union all select 2L, 'c', 'kept'"
    project.model("mirror", mirror, materialized="history_append", **ICEBERG)
    two = version(2, "a", day(1))
    for _ in range(2):
        project.run("h", "mirror")
        there = [version(1, "a", day(1), before(day(3))), version(1, "b", day(3)), two]
        assert_same_rows(project.rows("h"), there, COLUMNS)
        assert numbers(spark, project.table("h")) == [1, 2]
    assert refs(spark, project.table("h")) == ["main"]

    arguments = f"{{table: h, only: {{id: 1}}, columns: [v], mirrors: [{project.table('mirror')}]}}"
    project.dbt("run-operation", "erase_subject", "--args", arguments)
    project.run("h")

    erased = [version(1, None, day(1), before(day(3))), version(1, None, day(3)), two]
    assert_same_rows(project.rows("h"), erased, COLUMNS)
    assert values(project, "mirror", "id", "v", "other") == [(1, None, "kept"), (2, "c", "kept")]
    assert numbers(spark, project.table("h")) == [1, 2]
