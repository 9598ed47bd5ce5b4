"""A history table is reset, or has another owner: nothing is lost silently."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from dbt.adapters.spark.session import Cursor

from dbt_history.landing.table import LandingTable
from tests.support.project import Project
from tests.support.selection import thorough
from tests.support.staging import (
    COLUMNS,
    TYPES,
    batches_of_one,
    before,
    day,
    earliest,
    stage,
    update,
    upsert,
    version,
)
from tests.support.tables import assert_same_rows, data_frame

SELECT, EXPECTED = batches_of_one(4)
# In New York, 01:00 to 02:00 comes twice on this day: until 06:00 UTC, and after it.
CLOCKS_GO_BACK = datetime(2025, 11, 2, 6, tzinfo=UTC)


Interrupt = Callable[[str, int, Callable[[], Any]], None]


@pytest.fixture
def before_statement(monkeypatch: pytest.MonkeyPatch) -> Interrupt:
    """Calls a function once, right before dbt sends the n-th statement with this text."""
    execute = Cursor.execute

    def install(text: str, number: int, act: Callable[[], Any]) -> None:
        seen: list[str] = []

        def executed(cursor: Cursor, sql: str, *parameters: Any) -> None:
            if text in sql:
                seen.append(sql)
                if len(seen) == number:
                    act()
            execute(cursor, sql, *parameters)

        monkeypatch.setattr(Cursor, "execute", executed)

    return install


def fail() -> None:
    raise RuntimeError("killed")


def time_of(project: Project, version: int) -> str:
    """The commit time of a version of `h`, in Java's time zone."""
    log = project.spark.sql(f"describe history {project.table('h')}")
    texts = log.selectExpr("version", "cast(timestamp as string) as at").collect()
    return next(str(row["at"]) for row in texts if row["version"] == version)


def set_commit_times(project: Project, name: str, *minutes: int) -> None:
    """Set the commit times of a table to so many minutes after the clocks went back."""
    place = project.spark.sql(f"describe detail {project.table(name)}").collect()[0]["location"]
    for place_in_log, number in enumerate(minutes):
        at = (CLOCKS_GO_BACK + timedelta(minutes=number)).timestamp()
        commit = Path(place.removeprefix("file:")) / "_delta_log" / f"{place_in_log:020}.json"
        os.utime(commit, (at, at))


def commits(project: Project, name: str) -> list[Any]:
    """The commits of the table, oldest first: batch numbers, or else operations."""
    found = []
    for row in reversed(project.log_of(name)):
        record = json.loads(row["userMetadata"]) if row["userMetadata"] else {}
        found.append(record.get("batch") or row["operation"])
    return found


def statement(kind: str, table: str) -> str:
    return {
        "restore": f"restore table {table} to version as of 1",
        "truncate": f"truncate table {table}",
        "replace": f"create or replace table {table} using delta as select * from {table} limit 0",
    }[kind]


@pytest.fixture
def new_york(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Python, unlike Java, is in the zone of New York; the function restores the zone."""

    def restore_zone() -> None:
        monkeypatch.undo()
        time.tzset()

    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    yield restore_zone
    restore_zone()


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("kind", "after"),
    [
        ("restore", ["RESTORE", 3, "RESTORE", 2, 3, 4]),
        ("truncate", ["TRUNCATE", 3, "RESTORE", 1, 2, 3, 4]),
    ],
)
def test_a_reset_right_before_a_merge_makes_the_run_plan_again(
    project: Project, before_statement: Interrupt, kind: str, after: list[Any]
) -> None:
    project.history("h", SELECT, batches_per_commit=1)
    table = project.table("h")
    before_statement("merge into", 3, lambda: project.spark.sql(statement(kind, table)))

    first = project.run("h")

    assert_same_rows(project.rows("h"), EXPECTED, COLUMNS)
    assert commits(project, "h") == ["CREATE TABLE", 1, 2, *after]
    assert "was reset by another writer" in first.log
    assert project.run("h").message("h").startswith("no new batch")


@pytest.mark.thorough
@pytest.mark.parametrize("moment", ["create temporary view", "merge into", "killed"])
def test_a_change_captured_before_a_rewind_and_merged_after_it_is_later_than_it(
    project: Project, before_statement: Interrupt, moment: str
) -> None:
    """The rewind had looked for unread changes before the source got a3.

    source   a1     a2      a3                  time of a3
    h        [ a1 -)[ a2 ------- rewound: )[ a1 )[ a3 -- open
    run                     captured               captured again

    A run that is killed after its merge leaves the merge to the next run.
    """
    project.spark.sql(f"create schema if not exists {project.schema}")
    source, h = project.table("records"), project.table("h")
    project.spark.sql(
        f"create table {source} using delta tblproperties (delta.enableChangeDataFeed = true)"
        " as select 1 as id, 'a1' as v"
    )
    project.history(
        "h",
        "{% set source = dbt_history.changes(api.Relation.create("
        f"schema='{project.schema}', identifier='records'), 'id') %}}\n"
        "select * from {{ dbt_history.batch_rows(source, 'id') }} as records",
        convention="validity",
    )
    project.run("h")
    for value in ("a2", "a3"):
        project.spark.sql(f"update {source} set v = '{value}'")
        if value == "a2":
            project.run("h")

    def rewind() -> None:
        record = json.loads(project.log_of("h")[0]["userMetadata"])
        now = project.spark.sql("select unix_micros(current_timestamp())").collect()[0][0]
        said = {**record, "invocation_id": "rewind", "batch": None, "copies_watermarks": True,
                "model": "operation.rewind", "begun": now}  # fmt: skip
        name = "spark.databricks.delta.commitInfo.userMetadata"
        project.spark.conf.set(name, json.dumps(said))
        project.spark.sql(
            f"merge into {h} as h using (select explode(array(null, 1)) as key) as changes"
            " on h.id = changes.key and h.valid_to is null"
            f" when matched then update set valid_to = timestamp_micros({now})"
            " when not matched then insert (id, v, valid_from, valid_to)"
            f" values (1, 'a1', timestamp_micros({now}), null)"
        )
        project.spark.conf.unset(name)

    def rewind_and_kill() -> None:
        rewind()
        before_statement("describe", 1, fail)

    if moment == "killed":
        before_statement("merge into", 1, rewind_and_kill)
        project.run("h", check=False)
    else:
        before_statement(moment, 1, rewind)
    run = project.run("h")

    rows = sorted(project.rows("h"), key=lambda row: row["valid_from"])
    assert [(row["v"], row["valid_to"] is None) for row in rows] == [
        ("a1", False), ("a2", False), ("a1", False), ("a3", True),
    ]  # fmt: skip
    assert "planning again" in run.log
    assert project.run("h").message("h").startswith("no new batch")


@pytest.mark.thorough
@pytest.mark.parametrize("number", [2, None])
def test_a_column_added_right_before_a_merge_makes_the_run_plan_again(
    project: Project, before_statement: Interrupt, number: int | None
) -> None:
    """An update row keeps the value of a column that the run had not seen.

    table     [ a ---------------)[ b -- open        color is red in all of them
    run       columns are read      merge
    other                     color
    """
    rows = [earliest(number and 1, 1, day(1)), upsert(number and 1, 1, day(1), "a")]
    project.history("h", stage(project, "staged", rows))
    project.run("h")
    stage(project, "staged", [earliest(number, 1, day(5)), update(number, 1, day(5), "b")])

    def add_column() -> None:
        project.spark.sql(f"alter table {project.table('h')} add columns (color string)")
        project.spark.sql(f"update {project.table('h')} set color = 'red'")

    before_statement("merge into", 1, add_column)
    run = project.run("h")

    assert "by a new column, color" in run.log
    expected = [version(1, "a", day(1), before(day(5))), version(1, "b", day(5))]
    red = [{**row, "color": "red"} for row in expected]
    assert_same_rows(project.rows("h"), red, (*COLUMNS, "color"))


@pytest.mark.thorough
def test_a_batch_without_a_number_that_another_run_overtook_is_staged_again(
    project: Project, before_statement: Interrupt
) -> None:
    """The first run has staged the rows before the other replaces them and merges its own.

    staged        1: a from 1      1: a from 1, b from 3
    other run                      merged: [ a -)[ b -
    this run      staged           would merge: E at 1 removes b
    """
    first = [earliest(None, 1, day(1)), upsert(None, 1, day(1), "a")]
    project.history("h", stage(project, "staged", first))
    project.run("h")
    table = project.table("h")
    record = json.loads(project.log_of("h")[0]["userMetadata"])

    def overtake() -> None:
        stage(project, "staged", [*first, upsert(None, 1, day(3), "b")])
        name = "spark.databricks.delta.commitInfo.userMetadata"
        project.spark.conf.set(name, json.dumps({**record, "invocation_id": "other"}))
        rows = [version(1, "a", day(1), before(day(3))), version(1, "b", day(3))]
        data_frame(project.spark, rows, TYPES).createOrReplaceTempView("both")
        project.spark.sql(f"insert into {table} replace where id = 1 select * from both")
        project.spark.conf.unset(name)

    before_statement("describe history", 2, overtake)

    run = project.run("h")

    assert "another run applied a batch meanwhile" in run.log
    assert_same_rows(
        project.rows("h"),
        [version(1, "a", day(1), before(day(3))), version(1, "b", day(3))],
        COLUMNS,
    )


@pytest.mark.thorough
def test_a_rewind_that_a_batch_overtook_changes_nothing_and_can_be_repeated(
    project: Project, before_statement: Interrupt
) -> None:
    """The other run ends the version that the rewind has read.

    stored       [ a -)[ b ---------
    rewind       to a: staged            would be merged as if c did not exist
    other run                  [ c -
    """
    rows = [earliest(None, 1, day(1)), upsert(None, 1, day(1), "a"), upsert(None, 1, day(3), "b")]
    project.history("h", stage(project, "staged", rows))
    project.run("h")
    table = project.table("h")
    record = json.loads(project.log_of("h")[0]["userMetadata"])
    left = [version(1, "a", day(1), before(day(3))), version(1, "b", day(3), before(day(5)))]

    def overtake() -> None:
        name = "spark.databricks.delta.commitInfo.userMetadata"
        other = {**record, "invocation_id": "other", "model": "model.other"}
        project.spark.conf.set(name, json.dumps(other))
        versions = [*left, version(1, "c", day(5))]
        data_frame(project.spark, versions, TYPES).createOrReplaceTempView("three")
        project.spark.sql(f"insert into {table} replace where id = 1 select * from three")
        project.spark.conf.unset(name)

    before_statement("create table", 1, overtake)
    arguments = {"table": "h", "to": "2024-01-02"}
    rewinding = ["run-operation", "rewind", "--args", json.dumps(arguments)]

    refused = project.dbt(*rewinding, check=False)
    assert "another run has applied a batch to the table since the rows" in refused.log
    assert_same_rows(project.rows("h"), [*left, version(1, "c", day(5))], COLUMNS)

    assert project.dbt(*rewinding).success
    (current,) = [row for row in project.rows("h") if row["_fivetran_active"]]
    assert current["v"] == "a"
    assert len(project.rows("h")) == 4


@pytest.mark.thorough
def test_a_batch_that_a_killed_run_committed_after_a_reset_is_undone_by_the_next(
    project: Project, before_statement: Interrupt
) -> None:
    project.history(
        "h",
        f"select * from ({SELECT}) where _batch > {{{{ dbt_history.last_batch() }}}}",
        batches_per_commit=1,
    )
    table = project.table("h")

    def replace_and_fail_after() -> None:
        project.spark.sql(statement("replace", table))
        before_statement("describe history", 1, fail)

    before_statement("merge into", 3, replace_and_fail_after)

    assert not project.run("h", check=False).success
    assert commits(project, "h") == ["CREATE TABLE", 1, 2, "CREATE OR REPLACE TABLE AS SELECT", 3]
    before_statement("nothing has this in it", 1, fail)
    project.run("h")

    assert_same_rows(project.rows("h"), EXPECTED, COLUMNS)
    assert commits(project, "h")[5:] == ["RESTORE", 1, 2, 3, 4]


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["restore", "truncate"])
def test_the_ids_of_a_mirror_go_on_after_a_misplaced_batch_was_undone(
    project: Project, before_statement: Interrupt, kind: str
) -> None:
    """
    version   1          2       3                 4                  5             6
    ids       1 and 2    3       restored: to 2    misplaced: 4       undo: to 2    3 and 4
                                                   '- its run is killed
    """
    main, mirror = project.table("main"), project.table("main_hx")
    project.spark.sql(f"create schema if not exists {project.schema}")
    project.spark.sql(
        f"create table {main} (id bigint, v string) using delta"
        " tblproperties ('delta.enableChangeDataFeed' = 'true')"
    )
    source = f"api.Relation.create(schema='{project.schema}', identifier='main')"
    project.model(
        "main_hx",
        f"select * from {{{{ dbt_history.hx_rows({source}, 'id') }}}}",
        materialized="history_append",
        tblproperties={"delta.appendOnly": "false"},
    )
    project.spark.sql(f"insert into {main} values (1, 'a'), (2, 'a')")
    project.run("main_hx")
    project.spark.sql(f"update {main} set v = 'b' where id = 1")
    project.run("main_hx")
    project.spark.sql(f"insert into {main} values (3, 'c')")

    def reset_and_fail_after() -> None:
        project.spark.sql(statement(kind, mirror))
        before_statement("describe history", 1, fail)

    before_statement("insert into", 1, reset_and_fail_after)
    assert not project.run("main_hx", check=False).success
    before_statement("nothing has this in it", 1, fail)

    project.run("main_hx")

    found = sorted((row["main_hx_id"], row["id"], row["v"]) for row in project.rows("main_hx"))
    if kind == "restore":
        assert found == [(1, 1, "a"), (2, 2, "a"), (3, 1, "b"), (4, 3, "c")]
    else:
        assert found == [(1, 1, "b"), (2, 2, "a"), (3, 3, "c")]
        newest = json.loads(project.log_of("main_hx")[0]["userMetadata"])
        assert [mark["populated"] is None for mark in newest["watermarks"].values()] == [False]
    assert project.run("main_hx").message("main_hx") == "nothing new"


def suspend(project: Project) -> None:
    """What the run-operation `suspend_history` does, between the statements of another run."""
    spark = project.spark
    setting = "spark.databricks.delta.commitInfo.userMetadata"
    before = spark.conf.get(setting, None)
    spark.conf.set(setting, json.dumps({"dbt_history": "1", "control": {"suspended": True}}))
    spark.sql(
        f"alter table {project.table('h')} set tblproperties ('dbt_history.suspended' = 'true')"
    )
    spark.conf.unset(setting) if before is None else spark.conf.set(setting, before)


@pytest.mark.thorough
@pytest.mark.parametrize("commit", [2, 4])
def test_a_table_suspended_during_a_run_is_suspended_after_it(
    project: Project, before_statement: Interrupt, commit: int
) -> None:
    """
    version    1          2          3          4          5          run ends
               batch 1    suspend    batch 2    batch 3    batch 4
    """
    project.history("h", SELECT, batches_per_commit=1)
    before_statement("merge into", commit, lambda: suspend(project))
    assert project.run("h").message("h").startswith("4 batches")
    project.history("h", batches_of_one(5)[0], batches_per_commit=1)

    assert project.run("h").message("h").endswith("4 replayed, 1 held back")

    project.control("resume", "h")
    assert project.run("h").message("h").startswith("1 batch:")
    assert project.run("h").message("h").startswith("no new batch")


@pytest.mark.thorough
def test_a_suspension_just_before_the_newest_commits_that_are_read_first_is_found(
    project: Project, before_statement: Interrupt
) -> None:
    """
    version    4          5          6                   7 ... 35
               (newest)   suspend    batch 1, seen 4     the newest 30 begin at 6
    """
    project.history("h", batches_of_one(1)[0])
    before_statement("merge into", 1, lambda: suspend(project))
    project.run("h")
    touch(project, 29)
    assert project.log_of("h")[29]["operation"] == "MERGE"
    project.history("h", batches_of_one(2)[0])

    assert project.run("h").message("h").endswith("1 replayed, 1 held back")


@pytest.mark.thorough
@pytest.mark.parametrize("macro", ["hx_rows", "event_rows"])
def test_a_capture_suspended_after_it_was_compiled_takes_nothing(
    project: Project, before_statement: Interrupt, macro: str
) -> None:
    spark = project.spark
    spark.sql(f"create schema if not exists {project.schema}")
    main = project.table("main")
    spark.sql(f"create table {main} using delta as select 1L as id, 'a' as v")
    source = f"api.Relation.create(schema='{project.schema}', identifier='main')"
    select = f"select * from {{{{ dbt_history.{macro}({source}, 'id') }}}}"
    project.model("h", select, materialized="history_append")
    project.run("h")
    first = len(project.rows("h"))
    spark.sql(f"insert into {main} values (2, 'b')")
    before_statement("create temporary view", 1, lambda: suspend(project))

    assert project.run("h").message("h") == "nothing new"
    assert project.run("h").message("h") == "nothing new"

    project.control("resume", "h")
    project.run("h")
    assert len(project.rows("h")) == first + 1


def write_log_with_checkpoints(project: Project, up_to: int) -> None:
    """A numbered log with one row in each batch and a checkpoint at every third commit."""
    properties = {
        "delta.appendOnly": "false", "delta.checkpointInterval": "3",
        "delta.enableExpiredLogCleanup": "false",
    }  # fmt: skip
    project.model(
        "h",
        f"select id as _batch, id from range(1, {up_to + 1})",
        materialized="history_append",
        tblproperties=properties,
    )
    project.run("h")


def touch(project: Project, times: int) -> None:
    for number in range(times):
        project.spark.sql(
            f"alter table {project.table('h')} set tblproperties ('touched' = '{number}')"
        )


@pytest.mark.thorough
def test_an_expired_log_that_was_restored_appends_the_undone_batches_only(project: Project) -> None:
    """
    version   1            2 3 4       5          6                 7            8
              batch 1, 2   properties  batch 3    properties (3)    restore to 4 batch 3
                           |- checkpoint          |- checkpoint, the log begins here
    """
    write_log_with_checkpoints(project, 2)
    touch(project, 3)
    version = project.log_of("h")[0]["version"]
    write_log_with_checkpoints(project, 3)
    project.expire_log("h", 3)
    project.spark.sql(f"restore table {project.table('h')} to version as of {version}")

    write_log_with_checkpoints(project, 3)

    assert sorted(row["id"] for row in project.rows("h")) == [1, 2, 3]


@pytest.mark.thorough
@pytest.mark.parametrize("is_new", [True, False])
def test_a_log_whose_last_batch_is_unknown_is_refused_until_it_is_said(
    project: Project, is_new: bool
) -> None:
    """The commits and the checkpoints up to the restored version have expired.

    The user says the number in one run, which records it even if it appends no row.
    """
    write_log_with_checkpoints(project, 2)
    version = project.log_of("h")[0]["version"]
    write_log_with_checkpoints(project, 3)
    project.spark.sql(f"restore table {project.table('h')} to version as of {version}")
    touch(project, 5)
    commits = project.log_of("h")
    restored = next(row["version"] for row in commits if row["operation"] == "RESTORE")
    project.expire_log("h", restored, "*")

    refused = project.run("h", check=False)

    assert "the number of the last batch is not known any more" in refused.message("h")
    assert "2 rows; the commits" in refused.message("h")
    assert "--vars 'dbt_history_last_batch: 7'" in refused.message("h")
    said = ["--vars", "dbt_history_last_batch: 2"]
    if not is_new:
        select = "select id as _batch, id from range(1, {})"
        project.model("h", select.format(3), materialized="history_append")
        assert project.run("h", options=said).message("h") == "nothing new"
        assert project.run("h").message("h") == "nothing new"
        project.model("h", select.format(4), materialized="history_append")
        said = []
    assert project.run("h", options=said).message("h") == "1 row appended"
    assert project.run("h").message("h") == "nothing new"
    assert sorted(row["id"] for row in project.rows("h")) == [1, 2, 3]


@pytest.mark.thorough
def test_a_clone_made_by_dbt_goes_on_as_a_table_of_its_own(
    project: Project, tmp_path: Path
) -> None:
    """The log of a shallow clone begins with it: no number and no watermark is known.

    So its first run applies all staged batches again, and a version that was cleaned returns.
    """
    staged, _ = batches_of_one(2)
    on = {"file_format": "delta", "tblproperties": {"delta.enableChangeDataFeed": "true"}}

    def write(schema: str, number: int = 1) -> None:
        other = {"file_format": "delta", "schema": schema}
        project.model("main", "select 1L as id, 'a' as city", materialized="table", **on)
        for name in ("h", "cleaned"):
            project.history(name, staged, config=other)
        for name, sql in {
            "v": "select * from {{ ref('main') }}",
            "main_hx": "select * from {{ dbt_history.hx_rows(ref('main'), 'id') }}",
            "taken": "select * from {{ dbt_history.changes(ref('main'), 'id') }}",
            "numbered": f"select explode(sequence(1L, {number}L)) as _batch, 'x' as text",
        }.items():
            kind = {"materialized": "history", "unique_key": "id"} if name == "v" else {
                "materialized": "history_append"
            }  # fmt: skip
            project.model(name, sql, **kind, **other)

    names = ("h", "v", "main_hx", "taken", "numbered")
    own = project.schema.removeprefix("tests_")
    write(own)
    project.dbt("run", "--write-json")
    clean = ["clean_history", "--args", "{table: cleaned, before: '2024-01-03'}"]
    project.dbt("run-operation", *clean)
    shutil.copytree(project.path / "target", tmp_path / "state")
    write(own + "_clone")

    def rows(schema: str) -> dict[str, list[Any]]:
        return {
            name: sorted(project.spark.table(f"{schema}.{name}").collect(), key=str)
            for name in names
        }

    def cleaned(schema: str) -> list[str]:
        return sorted(row["v"] for row in project.spark.table(f"{schema}.cleaned").collect())

    clone = project.schema + "_clone"
    try:
        project.dbt("clone", "--select", *names, "cleaned", "--state", str(tmp_path / "state"))
        assert rows(clone) == rows(project.schema)
        assert cleaned(clone) == ["v2"]
        run = project.run(*names, "cleaned", check=False)
        assert cleaned(clone) == ["v1", "v2"]
        project.dbt("run-operation", *clean)
        assert cleaned(clone) == cleaned(project.schema) == ["v2"]
        assert rows(clone) == rows(project.schema)
        assert [name for name in names if run.results[name].status == "error"] == ["numbered"]
        message = run.message("numbered")
        assert "the number of the last batch is not known any more" in message
        assert "or the table is a clone" in message

        write(own + "_clone", number=2)
        project.spark.sql(f"update {project.table('main')} set city = 'b'")
        said = ["--vars", "dbt_history_last_batch: 1"]
        project.run("v", "main_hx", "taken", "numbered", options=said)

        added = {name: len(rows(clone)[name]) - len(rows(project.schema)[name]) for name in names}
        assert added == {"h": 0, "v": 1, "main_hx": 1, "taken": 2, "numbered": 1}
    finally:
        project.spark.sql(f"drop schema if exists {clone} cascade")


@pytest.mark.thorough
def test_a_clone_of_a_mirror_keeps_its_ids_if_the_main_table_was_renamed(
    project: Project, tmp_path: Path
) -> None:
    spark = project.spark
    spark.sql(f"create schema if not exists {project.schema}")
    spark.sql(
        f"create table {project.table('station')} using delta"
        " tblproperties ('delta.enableChangeDataFeed' = 'true') as select 1L as id, 'a' as v"
    )

    def write(main: str, schema: str) -> None:
        source = f"api.Relation.create(schema='{project.schema}', identifier='{main}')"
        select = f"select * from {{{{ dbt_history.hx_rows({source}, 'id') }}}}"
        config = {"materialized": "history_append", "file_format": "delta", "schema": schema}
        project.model("station_hx", select, **config)

    own = project.schema.removeprefix("tests_")
    write("station", own)
    project.dbt("run", "--write-json")
    shutil.copytree(project.path / "target", tmp_path / "state")
    spark.sql(f"alter table {project.table('station')} rename to {project.table('stations')}")
    write("stations", own + "_clone")
    clone = project.schema + "_clone"
    try:
        project.dbt("clone", "--select", "station_hx", "--state", str(tmp_path / "state"))
        spark.sql(f"insert into {project.table('stations')} values (2, 'b')")
        for _ in range(2):
            project.run("station_hx")
            rows = [row.asDict() for row in spark.table(f"{clone}.station_hx").collect()]
            assert sorted((row["id"], row["station_hx_id"]) for row in rows) == [(1, 1), (2, 2)]
            assert "stations_hx_id" not in rows[0]
    finally:
        spark.sql(f"drop schema if exists {clone} cascade")


@pytest.mark.thorough
def test_a_table_is_suspended_after_its_log_has_expired(project: Project) -> None:
    write_log_with_checkpoints(project, 2)
    project.control("suspend", "h")
    touch(project, 5)
    project.expire_log("h", 6)
    project.model("h", "select id as _batch, id from range(1, 4)", materialized="history_append")

    assert project.run("h").message("h") == "suspended: 1 row held back"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("moment", "number"), [("describe history", 2), ("create temporary view", 1)]
)
def test_a_reset_after_last_batch_was_read_makes_the_run_compile_again(
    project: Project, before_statement: Interrupt, moment: str, number: int
) -> None:
    select = f"select * from ({SELECT}) where _batch <= {{}} and _batch > "
    last = "{{ dbt_history.last_batch() }}"
    project.history("h", select.format(3) + last, batches_per_commit=1)
    project.run("h")
    project.history("h", select.format(4) + last)
    table = project.table("h")
    before_statement(moment, number, lambda: project.spark.sql(statement("restore", table)))

    run = project.run("h")

    assert run.message("h").startswith("3 batches")
    assert_same_rows(project.rows("h"), EXPECTED, COLUMNS)


@pytest.mark.thorough
def test_a_pre_hook_that_resets_the_table_is_seen_by_last_batch(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = f"select * from ({SELECT}) where _batch > {{{{ dbt_history.last_batch() }}}}"
    sent: list[str] = []
    execute = Cursor.execute

    def executed(cursor: Cursor, sql: str, *parameters: Any) -> None:
        sent.append(sql)
        execute(cursor, sql, *parameters)

    def reads_of_the_log() -> int:
        number = sum("describe history" in sql for sql in sent)
        sent.clear()
        return number

    project.history("h", sql)
    project.run("h")
    monkeypatch.setattr(Cursor, "execute", executed)
    assert project.run("h").message("h").startswith("no new batch")
    without_hook = reads_of_the_log()

    hook = {"pre_hook": ["restore table {{ this }} to version as of 2"]}
    project.history("h", sql, config=hook)
    run = project.run("h")

    # Compiled before the hook and again behind it, with a log read for each.
    assert reads_of_the_log() > without_hook
    assert run.message("h").startswith("2 batches")
    assert_same_rows(project.rows("h"), EXPECTED, COLUMNS)


@pytest.mark.parametrize("name", ["b", thorough("access_tokens")])
def test_settings_left_by_a_failed_statement_are_reset_before_the_next_write(
    project: Project, name: str
) -> None:
    """Spark masks settings with token in their values (decision 134)."""
    prefix = "spark.databricks.delta."
    left = {
        f"{prefix}write.txnAppId": f"dbt_history:model.a.{name}:some-table:0",
        f"{prefix}write.txnVersion": "7",
        f"{prefix}commitInfo.userMetadata": f'{{"dbt_history": "1", "model": "{name}"}}',
        "spark.sql.constraintPropagation.enabled": "false",
    }
    for key, value in left.items():
        project.spark.conf.set(key, value)
    try:
        project.history("h", SELECT, batches_per_commit=None)
        project.run("h")
        found = {row["key"] for row in project.spark.sql("set").collect()}
        assert found & set(left) == set()
    finally:
        for key in left:
            project.spark.conf.unset(key)
    assert_same_rows(project.rows("h"), EXPECTED, COLUMNS)


@pytest.mark.thorough
@pytest.mark.parametrize("moment", ["insert into", "create temporary view"])
def test_changes_undone_by_a_reset_of_the_log_during_a_run_are_captured_again(
    project: Project, before_statement: Interrupt, moment: str
) -> None:
    items, log = project.table("items"), project.table("log")
    project.spark.sql(f"create schema if not exists {project.schema}")
    project.spark.sql(
        f"create table {items} (id bigint) using delta"
        " tblproperties ('delta.enableChangeDataFeed' = 'true')"
    )
    project.model(
        "log",
        "select * from {{ dbt_history.changes(api.Relation.create("
        f"schema='{project.schema}', identifier='items'), 'id') }}}}",
        materialized="history_append",
        tblproperties={"delta.appendOnly": "false"},
    )
    for number in (1, 2):
        project.spark.sql(f"insert into {items} values ({number})")
        project.run("log")
    project.spark.sql(f"insert into {items} values (3)")
    before_statement(moment, 1, lambda: project.spark.sql(statement("restore", log)))

    run = project.run("log")

    assert "was reset by another writer" in run.log
    assert sorted(row["id"] for row in project.rows("log")) == [1, 2, 3]
    assert project.run("log").message("log") == "nothing new"


@pytest.mark.thorough
@pytest.mark.parametrize("moment", ["create temporary view", "merge into"])
def test_transactions_undone_by_a_reset_after_a_macro_asked_last_batch_are_applied_again(
    project: Project, before_statement: Interrupt, moment: str
) -> None:
    """
    The SELECT of the third run begins after transaction 2, which the table then lacks.

        run          1     2     3: compiled     restored     applied
        table        1     2     2               1            1, and then 2 and 3
    """
    writes = """
        create or replace temporary view writes as
        select *, 'app' as app_id, timestamp'2024-01-01 00:00:00 UTC' as at from values
            (1, 0, 'PUT', 'f', '1'), (2, 0, 'PUT', 'g', '2'), (3, 0, 'PUT', 'f', '3')
            as log(txn, position, action, id, v)
        where txn <= {}
    """
    project.history(
        "h", "{{ dbt_history.feature_states('writes', payload=['v']) }}", convention="naksha"
    )
    for number in (1, 2):
        project.spark.sql(writes.format(number))
        project.run("h")
    project.spark.sql(writes.format(3))
    table = project.table("h")
    before_statement(moment, 1, lambda: project.spark.sql(statement("restore", table)))

    run = project.run("h")

    assert "was reset by another writer" in run.log
    found = sorted((row["txn"], row["id"], row["v"], row["txn_next"]) for row in project.rows("h"))
    assert found == [(1, "f", "1", 3), (2, "g", "2", None), (3, "f", "3", None)]


@pytest.mark.thorough
def test_a_batch_of_another_run_after_the_compilation_loses_no_write(
    project: Project, before_statement: Interrupt
) -> None:
    """
    Without history the other run removes the state that this run was compiled for.

        txn          1              2            3
        f            [ v1 ---------)[ v2 -------)[ v3
        other run                   v1 is gone
        this run     compiled       evaluated
    """
    project.history(
        "h",
        "{{ dbt_history.feature_states('writes', payload=['v'], history='off') }}",
        convention="naksha",
    )

    def write(last: int) -> None:
        project.spark.sql(
            "create or replace temporary view writes as select txn, 0 as position,"
            " if(txn = 1, 'CREATE', 'UPDATE') as action, 'f' as id, 'app' as app_id,"
            f" timestamp'2024-01-01' as at, txn as v from range(1, {last + 1}) as log(txn)"
        )

    write(1)
    project.run("h")
    place = project.spark.sql(f"describe detail {project.table('h')}").collect()[0]["location"]
    folder = Path(place.removeprefix("file:")) / "_delta_log"
    known = set(folder.iterdir())
    write(2)
    project.run("h")
    commits_of_other = [path for path in folder.iterdir() if path not in known]
    assert [path.name for path in commits_of_other if path.suffix == ".json"] != []

    def move(source: Path, target: Path) -> None:
        for path in commits_of_other:
            (source / path.name).rename(target / path.name)
        project.forget_logs()

    aside = project.path / "aside"
    aside.mkdir()
    move(folder, aside)
    write(3)
    before_statement("using parquet as", 1, lambda: move(aside, folder))

    run = project.run("h")

    assert "by a batch of another run" in run.log
    assert [(row["v"], row["txn_next"]) for row in project.rows("h")] == [(3, None)]


@pytest.mark.parametrize("moment", ["insert into", thorough("create temporary view")])
def test_numbered_rows_undone_by_a_reset_after_last_batch_was_read_are_appended_again(
    project: Project, before_statement: Interrupt, moment: str
) -> None:
    def model(up_to: int) -> None:
        project.model(
            "log",
            f"select id as _batch, id from range(1, {up_to + 1})"
            " where id > {{ dbt_history.last_batch() }}",
            materialized="history_append",
            tblproperties={"delta.appendOnly": "false"},
        )

    for number in (1, 2):
        model(number)
        project.run("log")
    model(4)
    log = project.table("log")
    before_statement(moment, 1, lambda: project.spark.sql(statement("restore", log)))

    run = project.run("log")

    assert "was reset by another writer" in run.log
    assert sorted(row["id"] for row in project.rows("log")) == [1, 2, 3, 4]


@pytest.mark.thorough
def test_batches_after_a_restored_time_are_applied_again_in_any_time_zone(
    project: Project, new_york: Callable[[], None]
) -> None:
    project.history("h", SELECT, batches_per_commit=1)
    project.run("h")
    project.spark.sql(
        f"restore table {project.table('h')} to timestamp as of '{time_of(project, 2)}'"
    )

    again = project.run("h")

    new_york()
    assert again.message("h").startswith("2 batches")
    assert_same_rows(project.rows("h"), EXPECTED, COLUMNS)


@pytest.mark.thorough
def test_a_request_after_a_restored_time_is_landed_again_in_any_time_zone(
    project: Project, new_york: Callable[[], None]
) -> None:
    table = LandingTable(project.spark, project.schema, "h")
    table.create([])
    for number, request in enumerate("ab", 1):
        rows = project.spark.sql(
            f"select {number}L as `_batch`, 'upsert' as `_stage`, 1L as `_order`,"
            " cast(null as array<string>) as `_unmodified`"
        )
        record = {"request": request, "batch": number, "landing": request, "table_id": "x"}
        table.append(rows, "x", number, {"dbt_history": "1", **record})
    project.spark.sql(
        f"restore table {project.table('h')} to timestamp as of '{time_of(project, 1)}'"
    )

    assert [(record.request, record.is_present) for record in table.records()] == [
        ("b", False),
        ("a", True),
    ]


@pytest.mark.thorough
def test_a_mirror_waits_for_an_earlier_change_when_local_time_repeats_an_hour(
    project: Project, new_york: Callable[[], None]
) -> None:
    spark = project.spark
    spark.sql(f"create schema if not exists {project.schema}")
    for name, columns in (("a", "a_id bigint"), ("b", "b_id bigint, a_id bigint")):
        spark.sql(
            f"create table {project.table(name)} ({columns}) using delta"
            " tblproperties ('delta.enableChangeDataFeed' = 'true',"
            " 'delta.logRetentionDuration' = 'interval 36500 days',"
            " 'delta.deletedFileRetentionDuration' = 'interval 36500 days')"
        )
    relation = f"api.Relation.create(schema='{project.schema}', identifier='%s')"
    project.model(
        "a_hx", f"select * from {{{{ dbt_history.hx_rows({relation % 'a'}, 'a_id') }}}}",
        materialized="history_append",
    )  # fmt: skip
    project.model(
        "b_hx",
        f"select * from {{{{ dbt_history.hx_rows({relation % 'b'}, 'b_id', references=["
        "{'column': 'a_id', 'history': ref('a_hx')}]) }}",
        materialized="history_append",
    )
    spark.sql(f"insert into {project.table('a')} values (1)")
    spark.sql(f"insert into {project.table('b')} values (1, 1)")
    set_commit_times(project, "a", -60, -50)
    set_commit_times(project, "b", -60, -50)
    project.run("a_hx", "b_hx")
    spark.sql(f"insert into {project.table('a')} values (2)")
    spark.sql(f"insert into {project.table('b')} values (2, 2)")
    set_commit_times(project, "a", -60, -50, -10)
    set_commit_times(project, "b", -60, -50, 10)

    assert project.run("b_hx").message("b_hx") == "nothing new"
    project.run("a_hx", "b_hx")

    assert sorted((row["b_id"], row["a_hx_id"]) for row in project.rows("b_hx")) == [(1, 1), (2, 2)]


@pytest.mark.thorough
def test_a_table_with_numbered_batches_of_another_model_is_refused_unless_continued(
    project: Project,
) -> None:
    project.history("h", SELECT, batches_per_commit=None)
    project.run("h")
    project.clear()
    five, expected = batches_of_one(5)
    here = {"alias": "h"}
    project.history("renamed", five, config=here)

    refused = project.run("renamed", check=False)

    message = refused.message("renamed")
    assert "holds the batches of another model" in message
    assert "continues: model.history_tests.h" in message
    assert_same_rows(project.rows("h"), EXPECTED, COLUMNS)
    project.history("renamed", five, continues="model.history_tests.h", config=here)
    taken = project.run("renamed").message("renamed")
    assert taken.startswith("1 batch: 1 added")
    assert taken.endswith("4 replayed")
    assert_same_rows(project.rows("h"), expected, COLUMNS)
    project.clear()
    # Batches without numbers cannot be mistaken for applied ones.
    project.history("bare", f"select * except (_batch) from ({five})", config=here)
    project.run("bare")


@pytest.mark.thorough
@pytest.mark.parametrize("has_view", [False, True])
def test_a_tag_of_a_renamed_table_belongs_to_the_model_that_continues_it(
    project: Project, has_view: bool
) -> None:
    project.history("h", SELECT, batches_per_commit=None)
    project.run("h")
    for tag in ("closing", "dropped later"):
        arguments = json.dumps({"tag": tag, "table": "h"})
        project.dbt("run-operation", "create_tag", "--args", arguments)
    project.spark.sql(f"alter table {project.table('h')} rename to {project.table('renamed')}")
    if has_view:
        project.spark.sql(
            f"create view {project.table('h')} as select * from {project.table('renamed')}"
        )
    project.clear()
    project.history("renamed", SELECT, continues="model.history_tests.h")
    project.run("renamed")
    drop = json.dumps({"tag": "dropped later", "table": "renamed"})
    project.dbt("run-operation", "drop_tag", "--args", drop)
    project.run("renamed")
    five, _ = batches_of_one(5)
    project.history("renamed", five, continues="model.history_tests.h")
    project.run("renamed")

    marks = {(row["name"], row["table_name"]) for row in project.rows("history_marks")}
    of_view = {("closing", "h"), ("dropped later", "h"), ("h", "renamed")}
    assert marks == {("closing", "renamed")} | (of_view if has_view else set())


@pytest.mark.thorough
def test_a_renamed_model_is_refused_until_its_table_is_renamed(project: Project) -> None:
    """`git mv h.sql renamed.sql`: dbt looks for a table of the new name."""
    project.history("h", SELECT, batches_per_commit=None)
    project.run("h")
    project.clear()
    five, expected = batches_of_one(5)
    project.history("renamed", five, continues="model.history_tests.h")

    message = project.run("renamed", check=False).message("renamed")

    assert "has another name, and a new history would begin; nothing was written" in message
    assert not project.spark.catalog.tableExists(project.table("renamed"))
    told = re.search("way out: (alter table .*); or keep its name with alias: h;", message)
    assert told
    project.spark.sql(told[1])
    assert project.run("renamed").message("renamed").startswith("1 batch: 1 added")
    assert_same_rows(project.rows("renamed"), expected, COLUMNS)


@pytest.mark.thorough
def test_the_view_of_the_latest_version_never_takes_the_place_of_a_history(
    project: Project,
) -> None:
    """
    h       of the model `h`
    h_v1    the same model with a version; dbt makes a view `h` of it, if it is told to
    """
    project.history("h", SELECT, batches_per_commit=None)
    project.run("h")
    project.clear()
    five, expected = batches_of_one(5)

    def versioned(pointer: dict[str, Any], **settings: Any) -> None:
        project.history("h", five, config={"latest_version_pointer": pointer}, **settings)
        described = {"name": "h", "latest_version": 1, "versions": [{"v": 1, "defined_in": "h"}]}
        project.write("models/h.yml", json.dumps({"version": 2, "models": [described]}))

    former = "model.history_tests.h"
    versioned({"enabled": True}, continues=former)
    refused = project.run("h", check=False).message("h")
    assert "dbt would drop a table for the view that shows the latest version" in refused

    versioned({"enabled": False})
    refused = project.run("h", check=False).message("h")
    told = re.search(
        "way out: set meta.history.continues: (.*), and (alter table .*); or keep", refused
    )
    assert told
    assert told[1] == former
    project.spark.sql(told[2])

    versioned({"enabled": True}, continues=former)
    assert project.run("h").message("h").startswith("1 batch: 1 added")
    assert_same_rows(project.rows("h_v1"), expected, COLUMNS)
    assert_same_rows(project.rows("h"), expected, COLUMNS)


@pytest.mark.thorough
def test_a_log_with_rows_of_another_model_is_refused_unless_continued(
    project: Project,
) -> None:
    select = "select id as _batch, id from range({})"
    project.model("l", select.format(3), materialized="history_append")
    project.run("l")
    project.clear()
    more = {"materialized": "history_append", "alias": "l"}
    project.model("renamed", select.format(5), **more)

    assert "holds the batches of another model" in project.run("renamed", check=False).message(
        "renamed"
    )
    assert len(project.rows("l")) == 3
    project.model(
        "renamed",
        select.format(5),
        meta={"history": {"continues": ["model.history_tests.l"]}},
        **more,
    )
    assert project.run("renamed").message("renamed") == "2 rows appended"
    assert sorted(row["id"] for row in project.rows("l")) == [0, 1, 2, 3, 4]
