"""The materialization `history_append` where the SELECT is not one of `changes`."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pytest
from dbt.adapters.spark.session import Cursor

from tests.support.processes import fail_before, hold_run
from tests.support.project import Project


def log(project: Project, select: str, **config: Any) -> None:
    project.model("log", select, materialized="history_append", **config)


def values(project: Project, *names: str) -> list[tuple[Any, ...]]:
    rows = [tuple(row[name] for name in names) for row in project.rows("log")]
    return sorted(rows, key=repr)


def test_rows_already_in_the_table_are_not_appended_again(project: Project) -> None:
    log(project, "select * from values (1, 'a'), (1, 'a'), (2, null) as t (id, v)")
    assert project.run("log").message("log") == "3 rows appended"
    assert project.run("log").message("log") == "nothing new"
    commits = len(project.log_of("log"))
    log(project, "select * from values (1, 'a'), (2, null), (2, '') as t (id, v)")
    assert project.run("log").message("log") == "1 row appended"
    assert len(project.log_of("log")) == commits + 1
    assert values(project, "id", "v") == [(1, "a"), (1, "a"), (2, ""), (2, None)]


def test_a_batch_is_appended_once_and_its_number_is_not_stored(project: Project) -> None:
    log(project, "select * from values (1L, 'a'), (3L, 'b') as t (_batch, v)")
    assert project.run("log").message("log") == "2 rows appended"
    log(project, "select * from values (2L, 'late'), (3L, 'b'), (4L, 'c') as t (_batch, v)")
    assert project.run("log").message("log") == "1 row appended"
    assert values(project, "v") == [("a",), ("b",), ("c",)]
    assert project.spark.table(project.table("log")).columns == ["v"]


def test_the_table_is_append_only_and_guarded_and_columns_are_appended(project: Project) -> None:
    log(project, "select 1 as id, 'a' as v", unique_key="id")
    project.run("log")
    properties = dict(
        row[:2] for row in project.spark.sql(f"show tblproperties {project.table('log')}").collect()
    )
    assert properties["delta.appendOnly"] == "true"
    refused = project.run("log", check=False, options=["--full-refresh"])
    assert "a full refresh would replace the existing history" in refused.message("log")
    log(project, "select 2L as id, true as flag, 'b' as v", unique_key="id")
    project.run("log")
    assert project.spark.table(project.table("log")).dtypes == [
        ("id", "bigint"),
        ("flag", "boolean"),
        ("v", "string"),
    ]
    assert values(project, "id", "flag", "v") == [(1, None, "a"), (2, True, "b")]
    log(project, "select date'2024-01-01' as id, 'c' as v, 1 as n", on_schema_change="fail")
    message = project.run("log", check=False).message("log")
    assert "column id is date, the table has bigint" in message
    assert "the table differs in column n, flag (on_schema_change: fail)" in message
    log(project, "select 9L as id", meta={"history": {"allow_full_refresh": True}})
    project.run("log", options=["--full-refresh"])
    assert values(project, "id") == [(9,)]


def test_duplicate_keys_are_refused_with_samples(project: Project) -> None:
    log(project, "select * from values (1, 'a'), (1, 'b') as t (id, v)", unique_key="id")
    message = project.run("log", check=False).message("log")
    assert "several rows of the SELECT have the same key; nothing was written" in message
    assert '{"id":1,"rows":2}' in message


NUMBERED = {"convention": "validity", "type": "bigint", "append_only": True}


@pytest.mark.thorough
def test_an_append_only_version_table_is_stamped_and_read_as_of_a_version(project: Project) -> None:
    """By row, by key, by batch, and on an axis of times; the readers say no convention."""
    stamped: dict[str, dict[str, Any]] = {
        "by_row": {"meta": {"history": NUMBERED}},
        "by_key": {"meta": {"history": NUMBERED}, "unique_key": "id"},
        "by_batch": {"meta": {"history": NUMBERED}},
        "by_time": {"meta": {"history": {**NUMBERED, "type": "timestamp"}}, "unique_key": "id"},
    }

    def run(rows: str) -> None:
        for name, config in stamped.items():
            batch = "" if name == "by_batch" else " except (_batch)"
            select = f"select *{batch} from values {rows} as t (_batch, id, v)"
            project.model(name, select, materialized="history_append", **config)
        project.run(*stamped)

    def versions(name: str) -> list[tuple[Any, ...]]:
        return sorted((row["valid_from"], row["id"], row["v"]) for row in project.rows(name))

    before = datetime.now()
    run("(4L, 1, 'a'), (5L, 2, 'b')")
    assert versions("by_row") == versions("by_key") == [(1, 1, "a"), (1, 2, "b")]
    assert versions("by_batch") == [(4, 1, "a"), (5, 2, "b")]
    run("(4L, 1, 'a'), (5L, 2, 'b')")
    project.spark.sql(f"insert into {project.table('by_key')} values (8, 'x', 7)")
    run("(4L, 1, 'a'), (5L, 2, 'b'), (9L, 3, 'c')")
    assert versions("by_row") == [(1, 1, "a"), (1, 2, "b"), (2, 3, "c")]
    assert versions("by_key") == [(1, 1, "a"), (1, 2, "b"), (7, 8, "x"), (8, 3, "c")]
    assert versions("by_batch") == [(4, 1, "a"), (5, 2, "b"), (9, 3, "c")]
    times = [row[0] for row in versions("by_time")]
    assert before <= times[0] == times[1] < times[2] <= datetime.now()

    project.model("at_7", "select id from {{ dbt_history.as_of(ref('by_key'), 7) }}")
    project.model("now", "select * from {{ dbt_history.current_version(ref('by_key'), none, 0) }}")
    project.run("at_7", "now")
    assert sorted(row["id"] for row in project.rows("at_7")) == [1, 2, 8]
    assert project.rows("now") == [{"version": 8}]


@pytest.mark.thorough
def test_versions_of_the_select_are_checked_before_anything_is_written(project: Project) -> None:
    increasing = {"history": {**NUMBERED, "start": "number", "version_order": "increasing"}}
    log(project, "select 1 as id, 5L as number", unique_key="id", meta=increasing)
    project.run("log")
    rows = "select * from values (1, 5L), (2, 5L), (3, 6L), (4, null) as t (id, number)"
    log(project, rows, unique_key="id", meta=increasing)
    message = project.run("log", check=False).message("log")
    assert "number is NULL in 1 new rows" in message
    assert "1 new rows have a version that is not after the current one, 5" in message
    assert values(project, "id", "number") == [(1, 5)]
    anyhow = {"history": {**NUMBERED, "start": "number"}}
    log(project, f"{rows} where id < 4", unique_key="id", meta=anyhow)
    project.run("log")
    assert values(project, "id", "number") == [(1, 5), (2, 5), (3, 6)]
    log(project, "select 9 as id", unique_key="id", meta={"history": NUMBERED})
    message = project.run("log", check=False).message("log")
    assert "the table has no column valid_from, so the version of its rows is not known" in message
    text = "select 9 as id, 'x' as valid_from"
    log(project, text, unique_key="id", meta={"history": NUMBERED})
    assert "column valid_from is string, not bigint" in project.run("log", check=False).message(
        "log"
    )


ANY_TEXT = "a; b -- \"c\" 'd' `e` \\ \\n ${spark.sql.shuffle.partitions} $${x}\n{{ f }} 日"


def test_the_message_of_a_run_may_be_any_text(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    substitution = "spark.sql.variable.substitute"
    substituted = project.spark.conf.get(substitution)
    monkeypatch.setenv("DBT_HISTORY_MESSAGE", ANY_TEXT)
    monkeypatch.setenv("DBT_HISTORY_AUTHOR", "long " * 20_000)
    log(project, "select 1 as id")
    runs = "select * except (author) from {{ dbt_history.history_runs([ref('log')]) }} as runs"
    project.model("runs", runs, materialized="view")
    project.run("log", "runs")

    record = json.loads(project.log_of("log")[0]["userMetadata"])
    assert record["message"] == ANY_TEXT
    assert len(record["author"]) == 100_000
    assert [row["message"] for row in project.rows("runs")] == [ANY_TEXT]
    setting = "spark.databricks.delta.commitInfo.userMetadata"
    assert project.spark.conf.get(setting, None) is None
    assert project.spark.conf.get(substitution) == substituted


@pytest.mark.thorough
def test_whole_rows_are_compared_with_those_from_before_a_field_of_a_struct(
    project: Project,
) -> None:
    """A row with NULL in the new field is one that the log has."""
    rows = "select id, named_struct('a', id{}) as s from values {} as rows (id, b)"
    log(project, rows.format("", "(1, 0), (2, 0)"))
    project.run("log")
    log(project, rows.format(", 'b', b", "(1, null), (2, 7), (3, null)"))

    assert project.run("log").message("log") == "2 rows appended"

    fields = [(row["id"], row["s"]["b"]) for row in project.rows("log")]
    assert sorted(fields, key=repr) == [(1, None), (2, 7), (2, None), (3, None)]
    assert project.run("log").message("log") == "nothing new"


def test_a_log_left_unlocked_by_a_killed_full_refresh_is_locked_by_the_next_run(
    project: Project,
) -> None:
    log(project, "select 1 as id", meta={"history": {"allow_full_refresh": True}})
    project.run("log")
    with pytest.MonkeyPatch.context() as patch:
        fail_before(patch, "create or replace table")
        assert not project.run("log", check=False, options=["--full-refresh"]).success
    assert values(project, "id") == [(1,)]

    project.run("log")
    with pytest.raises(Exception, match="DELTA_CANNOT_MODIFY_APPEND_ONLY"):
        project.spark.sql(f"delete from {project.table('log')}")


@pytest.mark.thorough
@pytest.mark.parametrize("key", [{"unique_key": ["region", "id"]}, {}], ids=["key", "rows"])
def test_an_empty_text_in_a_partition_column_is_refused(
    project: Project, key: dict[str, Any]
) -> None:
    """Delta stores NULL, so that every run would append the row again."""
    log(project, "select 1 as id, 'eu' as region", partition_by="region", **key)
    project.run("log")
    rows = "select * from values (1, 'eu'), (2, '') as t (id, region)"
    log(project, rows, partition_by="region", **key)

    refused = project.run("log", check=False)

    assert "an empty text in a partition column (region)" in refused.message("log")
    log(project, rows.replace("''", "null"), partition_by="region", **key)
    assert project.run("log").message("log") == "1 row appended"
    assert project.run("log").message("log") == "nothing new"
    assert values(project, "id", "region") == [(1, "eu"), (2, None)]


@pytest.mark.thorough
def test_two_concurrent_appends_with_different_last_batches_append_every_batch_once(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both plan before either appends; the second one must not use its outdated plan."""
    log(project, "select id as _batch, id from range(1, 3) where id <= {{ var('up_to') }}")
    numbered = ["--vars", "up_to: 2"]
    project.run("log", options=numbered)
    log(project, "select id as _batch, id from range(1, 20) where id <= {{ var('up_to') }}")
    hold_run(project, monkeypatch, "up_to: 7")

    message = project.run("log", options=["--vars", "up_to: 12"]).message("log")

    assert values(project, "id") == sorted([(id,) for id in range(1, 13)], key=repr)
    assert message == "5 rows appended"


@pytest.mark.thorough
def test_two_concurrent_stamped_appends_never_share_a_version(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both plan version 2; the second one to commit plans again, and appends version 3."""
    select = "select id from range(1, 20) where id <= {{ var('up_to') }}"
    log(project, select, unique_key="id", meta={"history": NUMBERED})
    project.run("log", options=["--vars", "up_to: 2"])
    hold_run(project, monkeypatch, "up_to: 3")

    message = project.run("log", options=["--vars", "up_to: 5"]).message("log")

    assert message == "2 rows appended"
    assert values(project, "id", "valid_from") == [(1, 1), (2, 1), (3, 2), (4, 3), (5, 3)]


@pytest.mark.thorough
@pytest.mark.parametrize("moment", ["create temporary view", "insert into"])
def test_outcomes_that_another_run_appends_meanwhile_are_appended_once(
    project: Project, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """All outcomes of a run have one number, which does not tell which of them are known."""
    for last in (1, 2, 4):
        project.spark.sql(
            f"create or replace temporary view writes_to_{last} as select id as txn, 0 as position,"
            " 'PUT' as action, 'f' as id, 'app' as app_id, timestamp'2024-01-01' as at, id as n"
            f" from range(1, {last + 1})"
        )
    log(
        project,
        "{{ dbt_history.feature_outcomes('writes_to_' ~ var('up_to'), states=ref('states'),"
        " after=dbt_history.last_batch(), payload='n') }}",
    )
    project.history(
        "states",
        "{{ dbt_history.feature_states('writes_to_4', payload='n') }}",
        convention="naksha",
    )
    project.run("states")
    project.run("log", options=["--vars", "up_to: 1"])
    hold_run(project, monkeypatch, "up_to: 2", until=moment)

    project.run("log", options=["--vars", "up_to: 4"])

    assert values(project, "txn") == [(txn,) for txn in (1, 2, 3, 4)]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("kind", "on_schema_change"),
    [
        ("history_append", "append_new_columns"),
        ("history_append", "fail"),
        ("history_batch", "fail"),
    ],
)
def test_a_column_that_comes_with_a_batch_after_the_run_began_is_taken(
    project: Project, monkeypatch: pytest.MonkeyPatch, kind: str, on_schema_change: str
) -> None:
    """No table is made before, which would not have the column.

    landing    a                a, b and batch 2
    this run      view of a                        its rows, with b
    """
    landing = project.table("landing")
    project.spark.sql(f"create schema if not exists {project.schema}")
    project.spark.sql(
        f"create table {landing} using delta as select 1L as _batch, 'upsert' as _stage, 1 as id,"
        " 'a' as a, timestamp'2024-01-01' as valid_from, cast(null as timestamp) as valid_to"
    )
    history = {"convention": "validity"} if kind == "history_batch" else {}
    project.model(
        "log",
        f"select * from {landing}",
        materialized=kind,
        unique_key="id",
        on_schema_change=on_schema_change,
        meta={"history": history},
    )
    execute = Cursor.execute

    def grown(cursor: Cursor, sql: str, *parameters: Any) -> None:
        execute(cursor, sql, *parameters)
        if "create temporary view" in sql and project.spark.table(landing).count() == 1:
            project.spark.sql(f"alter table {landing} add columns (b string)")
            project.spark.sql(
                f"insert into {landing} values"
                " (2, 'upsert', 2, 'a', timestamp'2024-01-02', null, 'b')"
            )

    with monkeypatch.context() as patch:
        patch.setattr(Cursor, "execute", grown)
        project.run("log")
    project.run("log")

    assert values(project, "id", "a", "b") == [(1, "a", None), (2, "a", "b")]
