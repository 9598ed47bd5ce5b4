"""What a table knows of its batches after their snapshots have expired."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.functional.test_resets import Interrupt, before_statement, fail
from tests.support.iceberg import numbers, records
from tests.support.project import Project
from tests.support.staging import COLUMNS, batches_of_one
from tests.support.tables import assert_same_rows

__all__ = ["before_statement"]

pytestmark = pytest.mark.thorough


def write_log(project: Project, up_to: int, name: str = "h") -> None:
    project.model(
        name,
        f"select id as _batch, id from range(1, {up_to + 1})",
        materialized="history_append",
        file_format="iceberg",
    )


def ids(project: Project, name: str = "h") -> list[int]:
    return sorted(row["id"] for row in project.rows(name))


def rewrite(project: Project, name: str = "h") -> None:
    """Write all rows to one file."""
    table, options = project.table(name), "options => map('rewrite-all', 'true')"
    project.spark.sql(f"call system.rewrite_data_files(table => '{table}', {options})")


def expire(project: Project, name: str = "h") -> int:
    """Rewrite all files and let the snapshots before that expire; returns the one left."""
    spark, table = project.spark, project.table(name)
    rewrite(project, name)
    now = spark.sql("select current_timestamp()").collect()[0][0]
    limits = f"older_than => timestamp'{now}', retain_last => 1"
    spark.sql(f"call system.expire_snapshots(table => '{table}', {limits})")
    snapshots = spark.sql(f"select snapshot_id from {table}.snapshots").collect()
    assert len(snapshots) == 1
    return int(snapshots[0][0])


def test_a_log_rolled_back_past_its_expired_records_appends_the_undone_batch_only(
    project: Project,
) -> None:
    """
    s1 --- s2 --- s3 ------- s4          expired: s1 and s2; then s4 is rolled back
    1      2      rewrite    batch 3
    """
    for up_to in (1, 2):
        write_log(project, up_to)
        project.run("h")
    left = expire(project)
    write_log(project, 3)
    project.run("h")
    project.spark.sql(f"call system.rollback_to_snapshot('{project.table('h')}', {left})")

    assert project.run("h").message("h") == "1 row appended"

    assert ids(project) == [1, 2, 3]


def test_records_of_a_model_whose_name_spark_masks_are_kept(project: Project) -> None:
    """SHOW TBLPROPERTIES masks a value with url in it (decision 134)."""
    name = "page_urls"
    for up_to in (1, 2):
        write_log(project, up_to, name)
        assert project.run(name).message(name) == "1 row appended"
    expire(project, name)
    write_log(project, 3, name)

    assert project.run(name).message(name) == "1 row appended"

    assert ids(project, name) == [1, 2, 3]


def test_a_batch_undone_before_a_compaction_is_applied_again(project: Project) -> None:
    """When the snapshots expire, the record of the undone batch is no longer kept."""
    config = {"file_format": "iceberg"}
    project.history("h", batches_of_one(2)[0], config=config)
    project.run("h")
    left = expire(project)
    select, expected = batches_of_one(3)
    project.history("h", select, config=config)
    project.run("h")
    project.spark.sql(f"call system.rollback_to_snapshot('{project.table('h')}', {left})")
    arguments = f"{{table: {project.table('h')}, vacuum_hours: 0}}"
    project.dbt("run-operation", "compact_history", "--args", arguments)

    assert project.run("h").message("h").startswith("1 batch:")
    assert_same_rows(project.rows("h"), expected, COLUMNS)


def test_a_batch_undone_before_another_tool_compacts_and_expires_is_applied_again(
    project: Project,
) -> None:
    """
    s1 --- s2 --- s3          s3 is rolled back; s4 is a compaction, the others expire
    1      2      3
           '----- s4          has no record, but the parent s2
    """
    for up_to in (1, 2, 3):
        write_log(project, up_to)
        project.run("h")
    table = project.table("h")
    second = records(project.spark, table)[-1]["parent"]
    project.spark.sql(f"call system.rollback_to_snapshot('{table}', {second})")
    expire(project)

    assert project.run("h").message("h") == "1 row appended"

    assert ids(project) == [1, 2, 3]


def test_a_run_killed_before_it_kept_its_record_is_completed_by_the_next(
    project: Project, before_statement: Interrupt
) -> None:
    write_log(project, 2)
    project.run("h")
    write_log(project, 3)
    before_statement("'dbt_history.last_batch'", 1, fail)
    assert not project.run("h", check=False).success
    assert ids(project) == [1, 2, 3]

    assert project.run("h").message("h") == "nothing new"
    expire(project)

    assert project.run("h").message("h") == "nothing new"
    assert ids(project) == [1, 2, 3]


def test_a_log_whose_last_batch_is_unknown_is_refused_until_it_is_said(project: Project) -> None:
    """Once, also if that run has no new row."""
    write_log(project, 2)
    project.run("h")
    project.spark.sql(
        f"alter table {project.table('h')} unset tblproperties ('dbt_history.last_batch')"
    )
    expire(project)

    refused = project.run("h", check=False).message("h")

    assert "the number of the last batch is not known any more" in refused
    said = ["--vars", "dbt_history_last_batch: 2"]
    assert project.run("h", options=said).message("h") == "nothing new"
    assert project.run("h").message("h") == "nothing new"
    write_log(project, 3)
    assert project.run("h").message("h") == "1 row appended"
    assert project.run("h").message("h") == "nothing new"


def test_a_table_is_suspended_after_its_snapshots_have_expired(project: Project) -> None:
    write_log(project, 2)
    project.run("h")
    project.control("suspend", "h", "h")
    expire(project)
    write_log(project, 3)

    assert project.run("h").message("h") == "suspended: 1 row held back"

    project.control("resume", "h", "h")
    marks = project.spark.table(project.table("history_marks")).orderBy("recorded_at").collect()
    assert [row["kind"] for row in marks] == ["suspension", "resumption"]
    expire(project)
    assert project.run("h").message("h") == "1 row appended"


@pytest.mark.parametrize("number", [2, 4])
def test_a_table_suspended_during_a_run_is_suspended_after_it(
    project: Project, spark: SparkSession, before_statement: Interrupt, number: int
) -> None:
    def suspend() -> None:
        setting = "spark.sql.iceberg.snapshot-property.dbt_history"
        before = spark.conf.get(setting, None)
        table = project.table("h")
        named = "`" + table.replace(".", "`.`") + "`"
        record = {"dbt_history": "1", "control": {"suspended": True}, "table": named}
        spark.conf.set(setting, json.dumps(record))
        spark.sql(f"insert into {table} select * from {table} where false")
        spark.conf.unset(setting) if before is None else spark.conf.set(setting, before)

    act: Callable[[], Any] = suspend
    config = {"file_format": "iceberg"}
    project.history("h", batches_of_one(4)[0], batches_per_commit=1, config=config)
    before_statement("merge into", number, act)
    project.run("h")
    assert numbers(spark, project.table("h")) == [1, 2, 3, 4]
    expire(project)
    project.history("h", batches_of_one(5)[0], batches_per_commit=1, config=config)

    assert project.run("h").message("h").endswith("4 replayed, 1 held back")

    project.control("resume", "h")
    assert project.run("h").message("h").startswith("1 batch:")


def test_a_change_captured_before_a_rewind_and_published_after_it_is_later_than_it(
    project: Project, spark: SparkSession, before_statement: Interrupt
) -> None:
    """
    table     [ a1 -)[ a2 ------- rewound: )[ a1 )[ a3 -- open
    run                  a3 captured           captured again
    """
    spark.sql(f"create schema if not exists {project.schema}")
    source, h = project.table("source"), project.table("h")
    spark.sql(f"create table {source} using iceberg as select 1 as id, 'a1' as v")
    project.history(
        "h",
        "{% set source = dbt_history.changes(api.Relation.create("
        f"schema='{project.schema}', identifier='source'), 'id') %}}\n"
        "select * from {{ dbt_history.batch_rows(source, 'id') }} as records",
        convention="validity",
        config={"file_format": "iceberg"},
    )
    for value in ("a1", "a2", "a3"):
        spark.sql(f"insert overwrite {source} values (1, '{value}')")
        if value != "a3":
            project.run("h")

    def rewind() -> None:
        record = records(spark, h)[-1]
        now = spark.sql("select unix_micros(current_timestamp())").collect()[0][0]
        head = spark.sql(f"select snapshot_id from {h}.refs where name = 'main'").collect()[0][0]
        said = {**record, "invocation_id": "rewind", "batch": None, "copies_watermarks": True,
                "model": "operation.rewind", "begun": now, "parent": head}  # fmt: skip
        setting = "spark.sql.iceberg.snapshot-property.dbt_history"
        former = spark.conf.get(setting, None)
        spark.conf.set(setting, json.dumps(said))
        spark.sql(
            f"merge into {h} as h using (select explode(array(null, 1)) as key) as changes"
            " on h.id = changes.key and h.valid_to is null"
            f" when matched then update set valid_to = timestamp_micros({now})"
            " when not matched then insert (id, v, valid_from, valid_to)"
            f" values (1, 'a1', timestamp_micros({now}), null)"
        )
        spark.conf.unset(setting) if former is None else spark.conf.set(setting, former)

    before_statement("merge into", 1, rewind)
    run = project.run("h")

    assert "rewind, version" in run.log
    rows = sorted(project.rows("h"), key=lambda row: row["valid_from"])
    assert [(row["v"], row["valid_to"] is None) for row in rows] == [
        ("a1", False), ("a2", False), ("a1", False), ("a3", True),
    ]  # fmt: skip


def test_a_table_of_numbers_is_rewound_once_between_two_changes(
    project: Project, spark: SparkSession
) -> None:
    """Its next change may have the number of the restored state; one after that would hide it."""
    spark.sql(f"create schema if not exists {project.schema}")
    source = project.table("source")
    spark.sql(f"create table {source} using iceberg as select 1 as id, 'a1' as v")
    project.history(
        "h",
        "{% set source = dbt_history.changes(api.Relation.create("
        f"schema='{project.schema}', identifier='source'), 'id') %}}\n"
        "select * from {{ dbt_history.batch_rows(source, 'id', at='_commit_version') }} as records",
        convention="validity",
        type="bigint",
        config={"file_format": "iceberg"},
    )
    project.run("h")
    spark.sql(f"insert overwrite {source} values (1, 'a2')")
    project.run("h")

    def rewind(to: int, check: bool) -> str:
        arguments = f"{{table: h, to: {to}}}"
        return project.dbt("run-operation", "rewind", "--args", arguments, check=check).log

    rewind(1, check=True)
    for _ in range(2):
        assert "was rewound since the newest change that it has read" in rewind(2, check=False)
        expire(project)


def test_a_truncated_table_is_still_suspended(project: Project) -> None:
    config = {"file_format": "iceberg"}
    project.history("h", batches_of_one(2)[0], config=config)
    project.run("h")
    project.control("suspend", "h")
    project.spark.sql(f"truncate table {project.table('h')}")

    assert project.run("h").message("h").endswith("2 held back")
    expire(project)
    assert project.run("h").message("h").endswith("2 held back")

    project.control("resume", "h")
    assert project.run("h").message("h").startswith("2 batches")


def test_an_update_that_rewrites_the_only_file_of_a_log_appends_nothing_again(
    project: Project,
) -> None:
    """Copy-on-write: its snapshot looks like that of an overwrite."""
    write_log(project, 2)
    project.run("h")
    rewrite(project)
    table = project.table("h")
    modes = ", ".join(f"'write.{kind}.mode' = 'copy-on-write'" for kind in ("update", "delete"))
    project.spark.sql(f"alter table {table} set tblproperties ({modes})")
    project.spark.sql(f"update {table} set id = 7 where id = 2")
    write_log(project, 3)

    refused = project.run("h", check=False).message("h")

    assert "the number of the last batch is not known any more" in refused
    said = ["--vars", "dbt_history_last_batch: 2"]
    assert project.run("h", options=said).message("h") == "1 row appended"
    assert ids(project) == [1, 3, 7]
