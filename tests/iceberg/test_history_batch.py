"""The guarantees of `history_batch` on Iceberg."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from dbt.adapters.spark.session import Cursor
from pyspark.sql import SparkSession

from tests.conformance.test_history_batch import run_together
from tests.support.iceberg import Catalog, numbers, ready, records, refs
from tests.support.processes import kill, last_line, release
from tests.support.project import Project
from tests.support.staging import (
    COLUMNS,
    batches_of_one,
    before,
    day,
    delete,
    earliest,
    new_version,
    stage,
    update,
    upsert,
    version,
)
from tests.support.tables import assert_same_rows
from tests.support.waiting import TIMEOUT

ICEBERG = {"file_format": "iceberg"}
FIRST = [
    *(row for id_ in (1, 2) for row in (earliest(1, id_, day(1)), upsert(1, id_, day(1)))),
    *new_version(2, 1, day(3), "b"),
]
AFTER_FIRST = [
    version(1, "a", day(1), before(day(3))),
    version(1, "b", day(3)),
    version(2, "a", day(1)),
]


@pytest.mark.thorough
def test_every_case_with_every_batch_replayed_ends_in_its_expected_rows(
    project: Project, spark: SparkSession
) -> None:
    tables = run_together(project, spark, "iceberg")
    for case in tables:
        assert_same_rows(project.rows(case.id), case.expected, case.columns, case.id)
        assert numbers(spark, project.table(case.id))[-1] == len(case.batches)


def write_model(project: Project, *rows: dict[str, object], **config: object) -> None:
    """Write the model with these staged rows."""
    select = stage(project, "staged_h", [*FIRST, *rows])
    project.history("h", select, batches_per_commit=1, config=ICEBERG | config)


def test_a_batch_is_one_snapshot_with_a_record_and_is_applied_only_once(
    project: Project, spark: SparkSession
) -> None:
    write_model(project)
    assert project.run("h").message("h") == (
        "2 batches: 3 added, 1 closed, 0 removed, 0 skipped, 0 replayed"
    )
    table = project.table("h")
    assert_same_rows(project.rows("h"), AFTER_FIRST, COLUMNS)
    assert [record["staged_rows"]["update"] for record in records(spark, table)] == [0, 1]
    assert refs(spark, table) == ["main"]

    # A batch without effect is recorded, an update without a base is counted, and a lower batch
    # number is skipped.
    write_model(
        project, delete(5, 99, day(9)), update(6, 77, day(5)), *new_version(4, 2, day(2), "late")
    )
    assert "3 batches: 1 added, 1 closed, 0 removed, 1 skipped" in project.run("h").message("h")
    assert numbers(spark, table) == [1, 2, 4, 5, 6]
    write_model(project, *new_version(3, 1, day(9), "too late"))
    assert "no new batch" in project.run("h").message("h")

    # After compaction and expiry of snapshots, the records of the batches are gone with them.
    options = "options => map('rewrite-all', 'true')"
    spark.sql(f"call system.rewrite_data_files(table => '{table}', {options})")
    now = spark.sql("select current_timestamp()").collect()[0][0]
    limits = f"older_than => timestamp'{now}', retain_last => 1"
    spark.sql(f"call system.expire_snapshots(table => '{table}', {limits})")
    assert numbers(spark, table) == []
    assert "no new batch" in project.run("h").message("h")
    keys = [row["key"] for row in spark.sql("set").collect()]
    assert not [key for key in keys if "snapshot-property" in key]


@pytest.mark.thorough
def test_batches_undone_by_a_rollback_or_a_truncate_are_applied_again(
    project: Project, spark: SparkSession
) -> None:
    write_model(project)
    project.run("h")
    table = project.table("h")
    of_batch = {record["batch"]: record["parent"] for record in records(spark, table)}
    spark.sql(f"call system.rollback_to_snapshot('{table}', {of_batch[2]})")
    assert numbers(spark, table) == [1]
    assert "1 batch: 1 added, 1 closed" in project.run("h").message("h")
    assert_same_rows(project.rows("h"), AFTER_FIRST, COLUMNS)
    spark.sql(f"truncate table {table}")
    assert "2 batches: 3 added" in project.run("h").message("h")
    assert_same_rows(project.rows("h"), AFTER_FIRST, COLUMNS)


@pytest.mark.thorough
def test_destructive_or_impossible_runs_are_refused_before_anything_is_written(
    project: Project, spark: SparkSession
) -> None:
    write_model(project)
    project.run("h")
    table = project.table("h")
    snapshots = f"select count(*) from {table}.snapshots"
    there = spark.sql(snapshots).collect()[0][0]

    def refused(message: str, *options: str) -> None:
        found = project.run("h", check=False, options=options).message("h")
        assert message in found
        assert "Spark" not in found

    refused("a full refresh would replace the existing history", "--full-refresh")
    write_model(project, file_format="delta")
    refused("the target is an Iceberg table, and the model has file_format: delta")
    project.history("h", "select *, 'x' as _file from staged_h", config=ICEBERG)
    refused("column _file has a name that Iceberg reserves")
    write_model(project, {**upsert(7, 3, day(1)), "_stage": "insert"})
    refused("_stage is not earliest_start, update, upsert, replace or delete")
    done = project.dbt(
        "run-operation", "drop_column_in_history_mode", "--args",
        f"{{table: {table}, column: w, operation_time: '2024-02-01'}}", check=False,
    )  # fmt: skip
    assert not done.success
    assert spark.sql(snapshots).collect()[0][0] == there

    project.history("h", stage(project, "staged_h", FIRST), allow_full_refresh=True, config=ICEBERG)
    project.run("h", options=["--full-refresh"])
    assert_same_rows(project.rows("h"), AFTER_FIRST, COLUMNS)


@pytest.mark.thorough
def test_a_table_of_another_writer_is_adopted_and_keeps_its_write_mode(
    project: Project, spark: SparkSession
) -> None:
    table = project.table("h")
    spark.sql(f"create schema if not exists {project.schema}")
    select = stage(project, "staged_h", FIRST)
    spark.sql(
        f"create table {table} using iceberg as select id, v, w, _fivetran_start, _fivetran_end,"
        " _fivetran_active from staged_h where _batch = 1 and _stage = 'upsert' and id = 2"
    )
    project.history("h", f"{select} where id = 1", config=ICEBERG)
    assert "3 added" not in project.run("h").message("h")
    assert_same_rows(project.rows("h"), AFTER_FIRST, COLUMNS)
    properties = {row["key"] for row in spark.sql(f"show tblproperties {table}").collect()}
    assert "write.merge.mode" not in properties


BATCHES = 4
SELECT, EXPECTED = batches_of_one(BATCHES)


HISTORY: dict[str, Any] = {
    "materialized": "history_batch",
    "unique_key": "id",
    "meta": {"history": {"convention": "fivetran", "batches_per_commit": 1}},
}


@pytest.mark.thorough
def test_two_concurrent_runs_apply_every_batch_once(
    project: Project, spark: SparkSession, catalog: Catalog, tmp_path: Path
) -> None:
    both = [
        ready(tmp_path / name, catalog, project.schema, SELECT, HISTORY) for name in ("one", "two")
    ]
    for process in both:
        release(process)
    # The loser of a simultaneous commit ends with an error; it has written nothing.
    ended = [process.communicate(timeout=TIMEOUT) and process.returncode for process in both]
    assert 0 in ended

    project.history("h", SELECT, batches_per_commit=1, config=ICEBERG)
    after = project.run("h").message("h")
    if ended == [0, 0]:
        assert after == "no new batch: 0 added, 0 closed, 0 removed, 0 skipped, 4 replayed"
    assert_same_rows(project.rows("h"), EXPECTED, COLUMNS)
    assert numbers(spark, project.table("h")) == [1, 2, 3, 4]
    assert len({record["invocation_id"] for record in records(spark, project.table("h"))}) >= 1


@pytest.mark.thorough
def test_all_batches_that_another_run_applied_meanwhile_are_left_to_it(
    project: Project,
    spark: SparkSession,
    catalog: Catalog,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """
    this run    plans 1 to 4                     merges 1, and reads the log again
    other run                 applies 1 to 4
    """
    project.history("h", SELECT, batches_per_commit=1, config=ICEBERG)
    other = ready(tmp_path / "other", catalog, project.schema, SELECT, HISTORY)
    execute = Cursor.execute

    def held(cursor: Cursor, sql: str, *parameters: object) -> None:
        if "merge into" in sql and other.poll() is None:
            release(other)
            assert "4 batches" in last_line(other)
        execute(cursor, sql, *parameters)

    with monkeypatch.context() as patch:
        patch.setattr(Cursor, "execute", held)
        message = project.run("h").message("h")

    assert message == "no new batch: 0 added, 0 closed, 0 removed, 0 skipped, 4 replayed"
    assert_same_rows(project.rows("h"), EXPECTED, COLUMNS)
    assert numbers(spark, project.table("h")) == [1, 2, 3, 4]


@pytest.mark.thorough
def test_a_reset_after_a_macro_asked_for_the_last_batch_is_seen(project: Project) -> None:
    """Where the model itself does not call last_batch(), it is not compiled again behind hooks."""
    sql = f"select * from ({SELECT}) where _batch > {{{{ dbt_history['last_batch']() }}}}"
    project.history("h", sql, config=ICEBERG)
    project.run("h")

    project.history("h", sql, config={**ICEBERG, "pre_hook": ["truncate table {{ this }}"]})

    assert project.run("h").message("h").startswith("4 batches")
    assert_same_rows(project.rows("h"), EXPECTED, COLUMNS)


@pytest.mark.thorough
def test_a_run_overtaken_before_its_commit_is_reported_and_old_branches_are_dropped(
    project: Project, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_model(project)
    project.run("h")
    table = project.table("h")
    write_model(project, *new_version(3, 1, day(5), "c"))
    execute = Cursor.execute

    def overtaken(cursor: Cursor, sql: str, *parameters: object) -> None:
        if "fast_forward" in sql:
            spark.sql(f"insert into {table} select * from {table} where false")
        execute(cursor, sql, *parameters)

    with monkeypatch.context() as patch:
        patch.setattr(Cursor, "execute", overtaken)
        message = project.run("h", check=False).message("h")
    assert "dbt_history.history_batch: batch 3 was not applied" in message
    assert "way out: run the model again" in message
    assert "fast_forward" not in message
    assert_same_rows(project.rows("h"), AFTER_FIRST, COLUMNS)

    # The run's branch stays, as its run may still be active. Branches older than a day are dropped.
    (young,) = set(refs(spark, table)) - {"main"}
    for name in ("dbt_history_1700000000_0123456789ab", "dbt_history_mine", "mine"):
        spark.sql(f"alter table {table} create branch {name}")
    assert "no new batch" not in project.run("h").message("h")
    assert numbers(spark, table) == [1, 2, 3]
    assert refs(spark, table) == sorted([young, "dbt_history_mine", "main", "mine"])


@pytest.mark.thorough
@pytest.mark.parametrize("commits", [1, 8], ids=["created", "between batches"])
def test_a_killed_run_is_finished_by_the_next(
    project: Project, spark: SparkSession, catalog: Catalog, tmp_path: Path, commits: int
) -> None:
    process = ready(tmp_path / "killed", catalog, project.schema, SELECT, HISTORY)
    release(process)
    metadata = catalog.folder / "tables" / project.schema / "h" / "metadata"
    deadline = time.monotonic() + TIMEOUT
    while len(list(metadata.glob("*.metadata.json"))) < commits:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.005)
    kill(process)
    project.history("h", SELECT, batches_per_commit=1, config=ICEBERG)

    project.run("h")

    assert_same_rows(project.rows("h"), EXPECTED, COLUMNS)
    assert numbers(spark, project.table("h")) == [1, 2, 3, 4]
