"""Sources that are made again, renamed, added or narrowed between two runs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.coarse_log import write_coarse_log
from tests.support.project import Project

FEED = "tblproperties ('delta.enableChangeDataFeed' = 'true')"


def source(project: Project, name: str, rows: str, properties: str = FEED) -> str:
    """Create a table of id and v, each of `rows` in its own commit; returns its full name."""
    table = project.table(name)
    project.spark.sql(f"create schema if not exists {project.schema}")
    project.spark.sql(f"create table {table} (id bigint, v string) using delta {properties}")
    for row in rows.split("; ") if rows else ():
        project.spark.sql(f"insert into {table} values {row}")
    return table


def made_again(project: Project, name: str, rows: str) -> str:
    project.spark.sql(f"drop table {project.table(name)}")
    return source(project, name, rows)


def relation(project: Project, name: str) -> str:
    return f"api.Relation.create(schema='{project.schema}', identifier='{name}')"


def changes(project: Project, name: str) -> str:
    return f"dbt_history.changes({relation(project, name)}, 'id')"


def log(
    project: Project, macro: str, names: Sequence[str] = ("items",), model: str = "log"
) -> None:
    """A log of one of the macros; of several sources, their union."""
    parts = [
        f"select * from {{{{ dbt_history.{macro}({relation(project, name)}, 'id') }}}}"
        for name in names
    ]
    project.model(model, "\nunion all\n".join(parts), materialized="history_append")


def log_by_difference(project: Project) -> None:
    items = relation(project, "items")
    project.model(
        "log",
        f"select * from {{{{ dbt_history.changes({items}, 'id', method='diff') }}}}",
        materialized="history_append",
    )


def both(project: Project) -> None:
    """A version table of two sources."""
    parts = " union all select * from ".join(
        f"' ~ {changes(project, name)} ~ ' as {name}" for name in ("items", "others")
    )
    project.history(
        "both",
        f"select * from {{{{ dbt_history.batch_rows('(select * from {parts})', 'id', 'validity')"
        " }}",
        convention="validity",
    )


def forget_commits(project: Project, model: str) -> None:
    """As if the commits of the table up to now had expired."""
    table = project.table(model)
    last = project.log_of(model)[0]["version"]
    project.spark.sql(f"alter table {table} set tblproperties ('delta.checkpointInterval' = '2')")
    for number in range(3):
        project.spark.sql(f"alter table {table} set tblproperties ('touched' = '{number}')")
    project.expire_log(model, last + 1)


def open_rows(project: Project, model: str) -> list[tuple[Any, ...]]:
    return sorted((row["id"], row["v"]) for row in project.rows(model) if row["valid_to"] is None)


def taken(project: Project) -> list[tuple[Any, ...]]:
    """The kinds of change of a log of `changes`, without the rows before an update."""
    return sorted(
        (row["_change_type"].removeprefix("update_"), row["id"], row["v"])
        for row in project.rows("log")
        if row["_change_type"] != "update_preimage"
    )


@pytest.mark.thorough
@pytest.mark.parametrize("case", ["made again", "feed off", "diff"])
def test_a_difference_of_one_of_two_sources_is_refused(project: Project, case: str) -> None:
    items = source(project, "items", "(1, 'a'), (2, 'x')")
    source(project, "others", "(3, 'o')")
    both(project)
    project.run("both")
    options: tuple[str, ...] = ()
    if case == "made again":
        made_again(project, "items", "(1, 'a')")
    elif case == "feed off":
        project.spark.sql(
            f"alter table {items} set tblproperties ('delta.enableChangeDataFeed' = 'false')"
        )
        project.spark.sql(f"update {items} set v = 'b' where id = 1")
    else:
        project.spark.sql(f"update {items} set v = 'b' where id = 1")
        options = ("--vars", "dbt_history_capture: diff")
    commits = len(project.log_of("both"))

    failed = project.run("both", options=options, check=False)

    message = failed.message("both")
    assert "does not record which of its rows come from which source" in message
    assert len(project.log_of("both")) == commits
    assert open_rows(project, "both") == [(1, "a"), (2, "x"), (3, "o")]


@pytest.mark.thorough
@pytest.mark.parametrize("model", ["both", "log"])
def test_a_difference_of_two_sources_is_refused_if_nothing_is_recorded_of_them(
    project: Project, model: str
) -> None:
    source(project, "items", "(1, 'a')")
    source(project, "others", "(3, 'o')")
    both(project)
    log(project, "changes", ("items", "others"))
    project.run(model)
    forget_commits(project, model)
    project.spark.sql(f"insert into {project.table('items')} values (4, 'd')")

    failed = project.run(model, check=False)

    message = failed.message(model)
    assert "does not record which of its rows come from which source" in message
    assert len(project.rows(model)) == 2


@pytest.mark.thorough
@pytest.mark.parametrize("is_added", [True, False], ids=["added", "made again"])
def test_a_difference_of_one_of_two_sources_of_an_event_table_is_refused(
    project: Project, is_added: bool
) -> None:
    source(project, "items", "(1, 'a')")
    source(project, "others", "(3, 'o')")
    log(project, "event_rows", ("items",) if is_added else ("items", "others"))
    project.run("log")
    if is_added:
        log(project, "event_rows", ("items", "others"))
    else:
        made_again(project, "items", "(1, 'b')")
    before = sorted((row["id"], row["_hist_event"]) for row in project.rows("log"))

    message = project.run("log", check=False).message("log")

    assert "event_rows: a difference is needed" in message
    assert sorted((row["id"], row["_hist_event"]) for row in project.rows("log")) == before
    assert before == ([(1, 1)] if is_added else [(1, 1), (3, 1)])


@pytest.mark.thorough
def test_the_coarse_log_has_the_changes_of_a_table_that_was_made_again(project: Project) -> None:
    items = source(project, "items", "(1, 'a')")
    write_coarse_log(project, {"items": "id"}, codes="words")
    project.run("inbox", "core")
    for value in "bc":
        made_again(project, "items", f"(1, '{value}')")
        project.run("inbox", "core")
    project.spark.sql(f"update {items} set v = 'd'")

    project.run("inbox", "core")

    name = f"{project.schema}.items"
    assert sorted((row["trans_id"], row["event"]) for row in project.rows("core")) == [
        (f"{name}#2:1", "gap"),
        (f"{name}#2:1", "insert"),
        (f"{name}#3:1", "gap"),
        (f"{name}#3:1", "insert"),
        (f"{name}#3:2", "update"),
        (f"{name}:1", "insert"),
    ]


@pytest.mark.thorough
def test_an_event_table_does_not_give_one_transaction_two_meanings(project: Project) -> None:
    source(project, "items", "(1, 'a')")
    log(project, "event_rows")
    project.run("log")
    made_again(project, "items", "(1, 'b')")

    project.run("log")

    name = f"{project.schema}.items"
    rows = project.rows("log")
    assert {(row["v"], row["_hist_event"], row["_hist_trans_id"]) for row in rows} == {
        ("a", 1, f"{name}:1"), ("a", 3, f"{name}#2:1"), ("b", 4, f"{name}#2:1"),
    }  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("name_is_used", [False, True])
def test_a_renamed_source_is_read_on(project: Project, name_is_used: bool) -> None:
    items = source(project, "items", "(1, 'a'), (2, 'b')")
    log(project, "changes")
    project.run("log")
    project.spark.sql(f"alter table {items} rename to {project.table('renamed')}")
    project.spark.sql(f"delete from {project.table('renamed')} where id = 2")
    if name_is_used:
        source(project, "items", "(1, 'other')")
    log(project, "changes", ["renamed"])

    project.run("log")

    assert taken(project) == [("delete", 2, "b"), ("insert", 1, "a"), ("insert", 2, "b")]
    record = json.loads(project.log_of("log")[0]["userMetadata"])
    assert list(record["watermarks"]) == [f"`{project.schema}`.`renamed`"]


@pytest.mark.thorough
def test_a_mirror_of_a_renamed_table_keeps_its_ids(project: Project) -> None:
    items = source(project, "items", "(1, 'a'), (2, 'b')")
    log(project, "hx_rows")
    project.run("log")
    project.spark.sql(f"alter table {items} rename to {project.table('renamed')}")
    project.spark.sql(f"update {project.table('renamed')} set v = 'c' where id = 2")
    log(project, "hx_rows", ["renamed"])

    project.run("log")

    rows = sorted(project.rows("log"), key=lambda row: row["items_hx_id"])
    assert [(row["items_hx_id"], row["id"], row["v"]) for row in rows] == [
        (1, 1, "a"), (2, 2, "b"), (3, 2, "c"),
    ]  # fmt: skip
    assert "renamed_hx_id" not in rows[0]
    verified = project.dbt("run-operation", "verify_history").log
    assert "no differences" in verified
    made_again(project, "renamed", "(1, 'a')")
    project.run("log")
    assert {(row["items_hx_id"], row["id"], row["deleted"]) for row in project.rows("log")} == {
        (1, 1, False), (2, 2, False), (3, 2, False), (4, 2, True),
    }  # fmt: skip


@pytest.mark.thorough
def test_a_column_that_a_log_ignores_makes_no_differences(project: Project) -> None:
    items = source(project, "items", "(1, 'a'), (2, 'b')", properties="")
    logs = {"hx": "hx_rows", "events": "event_rows", "changed": "changes"}
    for name, macro in logs.items():
        call = f"select * from {{{{ dbt_history.{macro}({relation(project, 'items')}, 'id') }}}}"
        project.model(name, call, materialized="history_append", on_schema_change="ignore")
    project.run(*logs)
    project.spark.sql(f"alter table {items} add columns (w string)")
    project.spark.sql(f"update {items} set w = 'new'")
    project.spark.sql(f"update {items} set v = 'c' where id = 2")

    project.run(*logs)
    project.spark.sql(f"insert into {items} values (3, 'd', 'new')")
    project.run(*logs)

    assert sorted((row["id"], row["v"]) for row in project.rows("hx")) == [
        (1, "a"), (2, "b"), (2, "c"), (3, "d"),
    ]  # fmt: skip
    assert [len(project.rows(name)) for name in logs] == [4, 5, 5]


@pytest.mark.thorough
def test_the_newest_row_of_a_log_is_found_after_the_versions_began_again(
    project: Project,
) -> None:
    source(project, "items", "(1, 'a'); (2, 'b'); (3, 'c')")
    log_by_difference(project)
    project.run("log")
    items = made_again(project, "items", "(1, 'x'), (2, 'b')")
    project.run("log")
    project.spark.sql(f"insert into {items} values (4, 'd')")

    project.run("log")

    assert taken(project) == [
        ("delete", 3, "c"),
        ("insert", 1, "a"),
        ("insert", 2, "b"),
        ("insert", 3, "c"),
        ("insert", 4, "d"),
        ("postimage", 1, "x"),
    ]


@pytest.mark.thorough
@pytest.mark.parametrize("macro", ["event_rows", "hx_rows"])
def test_the_times_of_a_log_increase_after_its_source_was_set_back(
    project: Project, warehouse: Path, macro: str
) -> None:
    """
    version    1      2      2
    v          a      b      | a copy of the files as of version 1, with their times, then c
    """
    spark = project.spark
    items = source(project, "items", "(1, 'a')")
    files = warehouse / f"{project.schema}.db" / "items"
    copy = warehouse / f"{project.schema}.db" / "copy"
    shutil.copytree(files, copy)
    log(project, macro)
    project.run("log")
    spark.sql(f"update {items} set v = 'b'")
    project.run("log")
    shutil.rmtree(files)
    copy.rename(files)
    project.forget_logs()
    spark.sql(f"refresh table {items}")

    project.run("log")

    time = "mod_time" if macro == "hx_rows" else "_hist_time"
    rows = [row for row in project.rows("log") if row.get("_hist_event") != 3]
    assert [row["v"] for row in sorted(rows, key=lambda row: row[time])] == ["a", "b", "a"]
    assert len({row[time] for row in rows}) == 3


@pytest.mark.thorough
def test_a_table_is_added_to_the_coarse_log_and_may_be_missing_for_a_run(project: Project) -> None:
    a = source(project, "a", "(1, 'a')")
    write_coarse_log(project, {"a": "id"}, codes="words")
    project.run("inbox")
    source(project, "b", "(1, 'b')")
    write_coarse_log(project, {"a": "id", "b": "id"}, codes="words")
    project.run("inbox")
    events = sorted((row["table"], row["event"]) for row in project.rows("inbox"))
    assert events == [("a", "insert"), ("b", "insert")]
    project.spark.sql(f"drop table {project.table('b')}")
    project.spark.sql(f"update {a} set v = 'A'")
    project.run("inbox")
    source(project, "b", "(1, 'b'); (2, 'b')")

    project.run("inbox")

    events = sorted((row["table"], row["event"]) for row in project.rows("inbox"))
    assert events == [
        ("a", "insert"), ("a", "update"), ("b", "gap"), ("b", "insert"), ("b", "insert"),
    ]  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("macro", ["event_rows", "hx_rows", "changes"])
def test_a_narrower_type_of_the_source_changes_no_value_of_the_log(
    project: Project, macro: str
) -> None:
    spark = project.spark
    items = project.table("items")
    spark.sql(f"create schema {project.schema}")
    spark.sql(f"create table {items} (id bigint, v bigint) using delta")
    spark.sql(f"insert into {items} values (1, 3000000000), (2, 2)")
    log(project, macro)
    project.run("log")
    spark.sql(f"create or replace table {items} (id bigint, v int) using delta")
    spark.sql(f"insert into {items} values (2, 2)")

    project.run("log")

    values = sorted((row["id"], row["v"]) for row in project.rows("log"))
    assert values == [(1, 3000000000), (1, 3000000000), (2, 2)]


@pytest.mark.thorough
def test_a_difference_finds_a_null_under_the_new_name_of_a_column(project: Project) -> None:
    """A row of a log has the name that its column had when the row was written.

    items  1 a, 2 b, 3 c, 4 NULL, 5 e |    v is now w: 1 NULL, no 3 |    2 NULL |    again: 5 NULL
    logs                             run                           run         run             run
    feed   `off`: never; `fed`: up to here - - - - - - - - - - - -  |
    """
    spark = project.spark
    for name in ("off", "fed"):
        mapped = "'delta.columnMapping.mode' = 'name'"
        if name == "fed":
            mapped += ", 'delta.enableChangeDataFeed' = 'true'"
        source(project, name, "(1, 'a'), (2, 'b'), (3, 'c'), (4, null), (5, 'e')",
               f"tblproperties ({mapped})")  # fmt: skip
    log(project, "hx_rows", ["off"], "off_hx")
    log(project, "event_rows", ["off"], "off_events")
    log(project, "changes", ["off"], "off_changes")
    log(project, "hx_rows", ["fed"], "fed_hx")
    logs = ("off_hx", "off_events", "off_changes", "fed_hx")
    project.run(*logs)

    def play(statement: str) -> None:
        for name in ("off", "fed"):
            spark.sql(statement.format(project.table(name)))

    play("alter table {} rename column v to w")
    play("update {} set w = null where id = 1")
    play("delete from {} where id = 3")
    project.run(*logs)
    spark.sql(f"alter table {project.table('fed')} unset tblproperties"
              " ('delta.enableChangeDataFeed')")  # fmt: skip
    play("update {} set w = null where id = 2")
    project.run(*logs)
    play("create or replace table {} (id bigint, w string) using delta")
    play("insert into {} values (1, null), (2, null), (4, null), (5, null)")
    project.run(*logs)

    for name in ("off_hx", "fed_hx"):
        rows = sorted(project.rows(name), key=lambda row: row[f"{name}_id"])
        assert [(row["id"], row["w"], row["deleted"]) for row in rows[5:]] == [
            (1, None, False), (3, "c", True), (2, None, False), (5, None, False),
        ]  # fmt: skip
    inserts = [(1, "a"), (2, "b"), (3, "c"), (4, None), (5, "e")]
    updates = [(1, "a", None), (2, "b", None), (5, "e", None)]
    events = [(row["_hist_event"], row["id"], row["w"]) for row in project.rows("off_events")]
    assert sorted(events, key=str) == sorted(
        [(1, id_, None) for id_, _ in inserts]
        + [(2, 3, "c")]
        + [(3, id_, old) for id_, old, _ in updates]
        + [(4, id_, new) for id_, _, new in updates],
        key=str,
    )
    kinds = {"insert": 1, "delete": 2, "update_preimage": 3, "update_postimage": 4}
    assert sorted(
        ((kinds[row["_change_type"]], row["id"], row["w"]) for row in project.rows("off_changes")),
        key=str,
    ) == sorted(events, key=str)


@pytest.mark.thorough
def test_a_difference_of_the_coarse_log_is_compared_under_the_new_name(project: Project) -> None:
    """
    items    1 a, 2 b |     v renamed to w |     renamed back, 1 NULL |
    inbox            run                  run                        run
    """
    spark = project.spark
    mapped = "tblproperties ('delta.columnMapping.mode' = 'name')"
    items = source(project, "items", "(1, 'a'), (2, 'b')", mapped)
    write_coarse_log(project, {"items": "id"}, codes="words")
    project.run("inbox")
    spark.sql(f"alter table {items} rename column v to w")
    project.run("inbox")
    assert sorted(row["event"] for row in project.rows("inbox")) == ["gap", "insert"]
    spark.sql(f"alter table {items} rename column w to v")
    spark.sql(f"update {items} set v = null where id = 1")
    project.run("inbox")
    assert sorted(row["event"] for row in project.rows("inbox")) == [
        "gap", "gap", "insert", "update",
    ]  # fmt: skip


@pytest.mark.thorough
def test_values_that_the_present_type_of_a_column_has_not_are_refused(project: Project) -> None:
    """
    items    1, 2 |    n 1.50    n dropped    n int    n 8 of 1 |          |    n 9 |
    run           1                                             refused    diff     3
    """
    mapped = f"{FEED[:-1]}, 'delta.columnMapping.mode' = 'name')"
    items = source(project, "items", "(1, 'a'), (2, 'b')", mapped)
    log(project, "hx_rows", model="hx")
    project.model("h", f"select * from {items}", materialized="history", unique_key="id")
    project.run("hx", "h")
    for statement in (
        "alter table {} add columns (n decimal(10, 2))", "update {} set n = 1.50",
        "alter table {} drop column n", "alter table {} add columns (n int)",
        "update {} set n = 8 where id = 1",
    ):  # fmt: skip
        project.spark.sql(statement.format(items))

    refused = project.run("hx", "h", check=False)
    for name in ("hx", "h"):
        assert "column n was decimal(10,2) and is int" in refused.message(name)
        assert "--vars 'dbt_history_capture: diff'" in refused.message(name)
    project.run("hx", "h", options=["--vars", "dbt_history_capture: diff"])
    project.spark.sql(f"update {items} set n = 9 where id = 1")
    project.run("hx", "h")

    for name, time in (("hx", "mod_time"), ("h", "valid_from")):
        rows = sorted(project.rows(name), key=lambda row: (row["id"], row[time]))
        assert [(row["id"], row["n"]) for row in rows] == [(1, None), (1, 8), (1, 9), (2, None)]
