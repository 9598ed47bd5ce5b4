"""Suspended tables that are not fed by capture: what is pending stays pending until the resume."""

from __future__ import annotations

from collections import Counter

import pytest
from pyspark.sql import SparkSession

from tests.support.processes import fail_before
from tests.support.project import Project, Run
from tests.support.tables import as_counter

BATCHES = """
select * from values
    (1, 1, 'upsert', 'a', timestamp'2024-01-01 00:00:00 UTC', cast(null as timestamp)),
    (1, 2, 'upsert', 'b', timestamp'2024-01-01 00:00:00 UTC', null),
    (2, 1, 'upsert', 'A', timestamp'2024-01-02 00:00:00 UTC', null),
    (3, 2, 'delete', null, null, timestamp'2024-01-03 00:00:00 UTC'),
    (3, 1, 'upsert', 'c', timestamp'2024-01-03 00:00:00 UTC', null)
    as batches (_batch, id, _stage, v, valid_from, valid_to)
"""
WRITES = """
select * from values
    (1, 0, 'CREATE', 'f', 'one', 'app', timestamp'2024-01-01 00:00:00 UTC'),
    (2, 0, 'UPDATE', 'f', 'two', 'app', timestamp'2024-01-02 00:00:00 UTC'),
    (3, 0, 'DELETE', 'f', null, 'app', timestamp'2024-01-03 00:00:00 UTC')
    as writes (txn, position, action, id, v, app_id, at)
"""


def write_models(project: Project, prefix: str) -> list[str]:
    """A version table, feature states, and a log by number and one by key."""
    names = [f"{prefix}_{kind}" for kind in ("versions", "states", "numbered", "keyed")]
    versions, states, numbered, keyed = names
    arrived = "select * from suspended_batches"
    project.history(
        versions, arrived, convention="validity", max_deleted_share=None, batches_per_commit=None
    )
    project.history(
        states,
        "{{ dbt_history.feature_states('suspended_writes', payload=['v']) }}",
        convention="naksha",
        max_deleted_share=None,
    )
    project.model(numbered, f"{arrived} -- by number", materialized="history_append")
    project.model(
        keyed,
        "select _batch * 10 + id as id, v from suspended_batches",
        materialized="history_append",
        unique_key="id",
    )
    return names


def rows_of(project: Project, name: str) -> Counter[str]:
    columns = project.spark.table(project.table(name)).columns
    return as_counter(project.rows(name), columns)


def arrive(spark: SparkSession, up_to: int) -> None:
    for name, rows, number in (
        ("suspended_batches", BATCHES, "_batch"),
        ("suspended_writes", WRITES, "txn"),
    ):
        spark.sql(
            f"create or replace temporary view {name} as"
            f" select * from ({rows}) where {number} <= {up_to}"
        )


@pytest.mark.thorough
def test_what_is_pending_waits_until_the_resume_and_is_then_taken(
    project: Project, spark: SparkSession
) -> None:
    """
    batches    1        2          3        -
    plain      1        2          3
    suspended  1   [   held       held   )  2 3
    """
    arrive(spark, 1)
    names = write_models(project, "held")
    project.run(*names)
    before = {name: rows_of(project, name) for name in names}
    project.control("suspend", *names)
    arrive(spark, 3)

    held = project.run(*names)

    assert {name: rows_of(project, name) for name in names} == before
    versions, states, numbered, keyed = (held.message(name) for name in names)
    nothing = "suspended: 0 added, 0 closed, 0 removed, 0 skipped"
    assert versions == f"{nothing}, 1 replayed, 2 held back"
    assert states == f"{nothing}, 0 replayed, 1 held back"
    assert numbered == keyed == "suspended: 3 rows held back"
    assert "2 batches are held back until resume_history" in held.log

    project.control("resume", *names)
    plain = write_models(project, "plain")
    project.run(*names, *plain)

    for name, other in zip(names, plain, strict=True):
        assert rows_of(project, name) == rows_of(project, other), name
    assert len(project.rows(names[0])) == 4


@pytest.mark.thorough
def test_a_truncated_table_is_still_suspended(project: Project, spark: SparkSession) -> None:
    """The log shows a reset; the table's property shows the suspension."""
    arrive(spark, 1)
    versions = write_models(project, "held")[0]
    project.run(versions)
    project.control("suspend", versions)
    spark.sql(f"truncate table {project.table(versions)}")

    assert project.run(versions).message(versions).endswith("0 replayed, 1 held back")

    project.control("resume", versions)
    project.run(versions)
    assert len(project.rows(versions)) == 2


@pytest.mark.thorough
def test_a_full_refresh_does_not_end_a_suspension(project: Project) -> None:
    project.model("l", "select 1 as _batch, 1 as id", materialized="history_append",
                  meta={"history": {"allow_full_refresh": True}})  # fmt: skip
    project.run("l")
    project.control("suspend", "l")

    refused = project.run("l", "--full-refresh", check=False)

    assert "a full refresh would end the suspension" in refused.message("l")
    project.control("resume", "l")
    assert project.run("l", "--full-refresh").message("l") == "1 row appended"


@pytest.mark.thorough
def test_a_history_of_a_table_takes_a_suspension_as_one_step(
    project: Project, spark: SparkSession
) -> None:
    """
    people     1 a   2 x        1 b   2 gone   1 c                    1 d
    history    1 a   2 x   [    not read                )   1 c       1 d
    """
    people = project.table("people")
    spark.sql(f"create schema if not exists {project.schema}")
    spark.sql(
        f"create table {people} (id bigint, v string) using delta"
        " tblproperties ('delta.enableChangeDataFeed' = 'true')"
    )
    spark.sql(f"insert into {people} values (1, 'a'), (2, 'x'), (3, 'kept')")
    source = f"{{{{ api.Relation.create(schema='{project.schema}', identifier='people') }}}}"
    project.model("kept_people", f"select * from {source}", materialized="history", unique_key="id")
    project.run("kept_people")
    project.control("suspend", "kept_people")
    spark.sql(f"update {people} set v = 'b' where id = 1")
    spark.sql(f"delete from {people} where id = 2")
    before = rows_of(project, "kept_people")

    suspended = project.run("kept_people")
    assert "kept_people is suspended" in suspended.log
    assert suspended.message("kept_people").startswith("suspended: 0 added")
    assert rows_of(project, "kept_people") == before

    spark.sql(f"update {people} set v = 'c' where id = 1")
    project.control("resume", "kept_people")
    spark.sql(f"update {people} set v = 'd' where id = 1")
    project.run("kept_people")

    versions = sorted(project.rows("kept_people"), key=lambda row: (row["id"], row["valid_from"]))
    assert [(row["id"], row["v"], row["valid_to"] is None) for row in versions] == [
        (1, "a", False), (1, "c", False), (1, "d", True), (2, "x", False), (3, "kept", True),
    ]  # fmt: skip
    assert versions[0]["valid_to"] == versions[1]["valid_from"] == versions[3]["valid_to"]


@pytest.mark.thorough
def test_columns_renamed_or_dropped_after_a_resumption_keep_what_it_compared(
    project: Project, spark: SparkSession
) -> None:
    """The compared version has columns that the table of the next run does not have.

    main   1: k 1   2: k 1 | k 2, c 7, d 8 of 1 |      k renamed to k2, c to c2, d dropped   2: k2 5
    logs   run             suspend              resume                                       run
    """
    main = project.table("main")
    spark.sql(f"create schema if not exists {project.schema}")
    spark.sql(
        f"create table {main} (id bigint, k int) using delta tblproperties"
        " ('delta.enableChangeDataFeed' = 'true', 'delta.columnMapping.mode' = 'name',"
        " 'delta.enableInCommitTimestamps' = 'true')"
    )
    spark.sql(f"insert into {main} values (1, 1), (2, 1)")
    source = f"api.Relation.create(schema='{project.schema}', identifier='main')"
    logs = {"hx": "hx_rows", "events": "event_rows"}
    for name, macro in logs.items():
        call = f"dbt_history.{macro}({source}, 'id')"
        project.model(name, f"select * from {{{{ {call} }}}}", materialized="history_append")
    project.model(
        "versions", f"select * from {{{{ {source} }}}}", materialized="history", unique_key="id"
    )
    names = [*logs, "versions"]
    project.run(*names)
    project.control("suspend", *names)
    spark.sql(f"alter table {main} add columns (c int, d int)")
    spark.sql(f"update {main} set k = 2, c = 7, d = 8 where id = 1")
    project.control("resume", *names)
    spark.sql(f"alter table {main} rename column k to k2")
    spark.sql(f"alter table {main} rename column c to c2")
    spark.sql(f"alter table {main} drop column d")
    spark.sql(f"update {main} set k2 = 5 where id = 2")

    project.run(*names)

    columns = ("id", "k", "c", "d", "k2", "c2")
    mirror = sorted(project.rows("hx"), key=lambda row: row["main_hx_id"])
    assert [tuple(row[name] for name in columns) for row in mirror] == [
        (1, 1, None, None, None, None), (2, 1, None, None, None, None),
        (1, 2, 7, 8, None, None), (2, None, None, None, 5, None),
    ]  # fmt: skip
    rows = sorted(project.rows("versions"), key=lambda row: (row["id"], row["valid_from"]))
    assert [tuple(row[name] for name in columns) for row in rows] == [
        (1, 1, None, None, None, None), (1, 2, 7, 8, None, None), (1, None, None, 8, 2, 7),
        (2, 1, None, None, None, None), (2, None, None, None, 1, None),
        (2, None, None, None, 5, None),
    ]  # fmt: skip
    events = [row for row in project.rows("events") if row["id"] == 1]
    assert (2, 7, 8) in [(row["k"], row["c"], row["d"]) for row in events]


def operate(project: Project, kind: str, name: str, check: bool = True) -> Run:
    arguments = f"{{table: {project.table(name)}}}"
    return project.dbt("run-operation", f"{kind}_history", "--args", arguments, check=check)


def write_logs_of_main(project: Project) -> list[str]:
    """A mirror, an event table and a version table of a main table with a feed; all have a = 1."""
    main = project.table("main")
    project.spark.sql(f"create schema if not exists {project.schema}")
    project.spark.sql(
        f"create table {main} (id string, v int) using delta tblproperties"
        " ('delta.enableChangeDataFeed' = 'true', 'delta.enableInCommitTimestamps' = 'true')"
    )
    project.spark.sql(f"insert into {main} values ('a', 1)")
    source = f"api.Relation.create(schema='{project.schema}', identifier='main')"
    for name, macro in {"hx": "hx_rows", "events": "event_rows"}.items():
        call = f"dbt_history.{macro}({source}, 'id')"
        project.model(name, f"select * from {{{{ {call} }}}}", materialized="history_append")
    project.model(
        "versions", f"select * from {{{{ {source} }}}}", materialized="history", unique_key="id"
    )
    names = ["hx", "events", "versions"]
    project.run(*names)
    return names


def values_of(project: Project, name: str) -> list[tuple[str, int]]:
    """What a log or a version table has recorded of each id, in order; of a mirror all rows."""
    order = {"hx": "main_hx_id", "events": "_hist_trans_id", "versions": "valid_from"}[name]
    rows = sorted(project.rows(name), key=lambda row: (row["id"], str(row[order]).zfill(40)))
    return [(row["id"], row["v"]) for row in rows]


def marks_of(project: Project, name: str) -> list[str]:
    """The kinds of a table's marks, in the order of their instants."""
    marks = project.spark.sql(
        f"select kind from {project.table('history_marks')} where table_name = '{name}'"
        " order by cast(instant as timestamp)"
    )
    return [row["kind"] for row in marks.collect()]


@pytest.mark.thorough
def test_resuming_a_table_that_is_not_suspended_changes_nothing(
    project: Project, spark: SparkSession
) -> None:
    """
    main     a 1 |  a 2   a 3   b 1   - b          | a 4   a 5       a 6   a 7          |
    logs     run                           resume  run  suspend  resume       resume    run
                 '- all of it is read one by one       '- one step   '- one by one
    """
    names = write_logs_of_main(project)
    main = project.table("main")
    spark.sql(f"update {main} set v = 2")
    spark.sql(f"update {main} set v = 3")
    spark.sql(f"insert into {main} values ('b', 1)")
    spark.sql(f"delete from {main} where id = 'b'")
    commits = {name: len(project.log_of(name)) for name in names}

    for name in names:
        assert "is not suspended; nothing to do" in operate(project, "resume", name).log
    assert {name: len(project.log_of(name)) for name in names} == commits
    project.run(*names)

    changes = [("a", 1), ("a", 2), ("a", 3)]
    assert values_of(project, "hx") == [*changes, ("b", 1), ("b", 1)]
    assert values_of(project, "versions") == [*changes, ("b", 1)]
    assert [value for value in values_of(project, "events") if value[0] == "b"]

    project.control("suspend", *names)
    spark.sql(f"update {main} set v = 4")
    spark.sql(f"update {main} set v = 5")
    project.control("resume", *names)
    spark.sql(f"update {main} set v = 6")
    spark.sql(f"update {main} set v = 7")
    project.control("resume", *names)
    project.run(*names)

    for name in names:
        found = {v for key, v in values_of(project, name) if key == "a"}
        assert found == {1, 2, 3, 5, 6, 7}, name
        assert marks_of(project, name) == ["suspension", "resumption"], name


@pytest.mark.thorough
def test_a_control_that_was_killed_before_its_mark_is_completed_by_a_repeat(
    project: Project, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    main       a 1          a 2               a 3   a 4
    calls      run  suspend    |    resume               | resume
                    killed  suspend killed               '- the mark of the first resume
    """
    write_logs_of_main(project)
    main = project.table("main")

    def killed(kind: str) -> None:
        with monkeypatch.context() as patch:
            fail_before(patch, "insert into")
            assert not operate(project, kind, "hx", check=False).success

    project.control("suspend", "events")
    killed("suspend")
    spark.sql(f"update {main} set v = 2")
    assert "is suspended already; nothing to do" in operate(project, "suspend", "hx").log
    assert marks_of(project, "hx") == ["suspension"]
    killed("resume")
    assert marks_of(project, "hx") == ["suspension"]
    spark.sql(f"update {main} set v = 3")
    moment = spark.sql("select current_timestamp() as moment").collect()[0]["moment"]
    spark.sql(f"update {main} set v = 4")
    for _ in range(2):
        assert "is not suspended; nothing to do" in operate(project, "resume", "hx").log
        assert marks_of(project, "hx") == ["suspension", "resumption"]
    project.run("hx")

    assert values_of(project, "hx") == [("a", 1), ("a", 2), ("a", 3), ("a", 4)]
    ends = spark.sql(
        f"select cast(instant as timestamp) as instant from {project.table('history_marks')}"
        " where table_name = 'hx' and kind = 'resumption'"
    )
    assert [row["instant"] < moment for row in ends.collect()] == [True]


@pytest.mark.thorough
@pytest.mark.parametrize("now", ["gone", "view", "table"])
def test_a_table_whose_main_table_is_gone_or_of_another_kind_can_be_resumed(
    project: Project, spark: SparkSession, now: str
) -> None:
    names = write_logs_of_main(project)
    project.control("suspend", *names)
    main, other = project.table("main"), project.table("other")
    spark.sql(f"update {main} set v = 2")
    spark.sql(f"alter table {main} rename to {other}")
    if now != "gone":
        parquet = " using parquet" if now == "table" else ""
        spark.sql(f"create {now} {main}{parquet} as select * from {other}")

    project.control("resume", *names)

    for name in names:
        assert "is not suspended" in operate(project, "resume", name).log
    if now != "gone":
        project.run("hx")
        assert values_of(project, "hx") == [("a", 1), ("a", 2)]


@pytest.mark.thorough
def test_the_feed_after_a_resumption_is_read_where_a_column_marks_deletions(
    project: Project,
) -> None:
    """
    items      1 a, 2 b |          |    1 c          |    2 gone |
    history             run    suspend           resume          run
    """
    items = project.table("items")
    project.spark.sql(f"create schema if not exists {project.schema}")
    project.spark.sql(
        f"create table {items} (id bigint, v string, gone boolean) using delta"
        " tblproperties ('delta.enableChangeDataFeed' = 'true')"
    )
    project.spark.sql(f"insert into {items} values (1, 'a', false), (2, 'b', false)")
    project.model(
        "h", f"select * from {items}", materialized="history", unique_key="id",
        meta={"history": {"source": "changes", "deleted": "gone"}},
    )  # fmt: skip
    project.run("h")
    project.control("suspend", "h")
    project.spark.sql(f"update {items} set v = 'c' where id = 1")
    project.control("resume", "h")
    project.spark.sql(f"update {items} set gone = true where id = 2")
    project.run("h")

    rows = sorted(project.rows("h"), key=lambda row: (row["id"], row["valid_from"]))
    assert [(row["v"], row["valid_to"] is None) for row in rows] == [
        ("a", False), ("c", True), ("b", False),
    ]  # fmt: skip
