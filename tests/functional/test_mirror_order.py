"""A mirror and the mirror it references: which runs first, and when, so that links are correct."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from dbt.adapters.spark.session import Cursor

from tests.support.project import Project

PROPERTIES = (
    "'delta.enableChangeDataFeed' = 'true', 'delta.enableInCommitTimestamps' = 'true',"
    " 'delta.columnMapping.mode' = 'name'"
)
COLUMNS = {"a": "a_id bigint, x bigint", "b": "b_id bigint, a_id bigint, y bigint"}


def create(project: Project, name: str) -> None:
    project.spark.sql(
        f"create table {project.table(name)} ({COLUMNS[name]}) using delta"
        f" tblproperties ({PROPERTIES})"
    )


def model(
    project: Project, name: str, key: str, references: str = "", commit_delay: int = 0
) -> None:
    main = f"api.Relation.create(schema='{project.schema}', identifier='{name}')"
    options = f"references=[{references}], commit_delay={commit_delay}"
    project.model(
        f"{name}_hx",
        f"select * from {{{{ dbt_history.hx_rows({main}, '{key}', {options}) }}}}",
        materialized="history_append",
    )


def write_reference(project: Project, column: str = "a_id", commit_delay: int = 0) -> None:
    """Write the mirror of b, which references the mirror of a."""
    reference = f"{{'column': '{column}', 'key': 'a_id', 'history': ref('a_hx')}}"
    model(project, "b", "b_id", reference, commit_delay)


@pytest.fixture
def change(project: Project) -> Any:
    """Tables a and b with their mirrors; returns a function that changes a or b."""
    project.spark.sql(f"create schema if not exists {project.schema}")
    create(project, "a")
    create(project, "b")
    model(project, "a", "a_id")
    write_reference(project)

    def change(statement: str) -> None:
        name = next(part for part in statement.split() if part in COLUMNS)
        project.spark.sql(statement.replace(f" {name}", f" {project.table(name)}", 1))

    return change


def links(project: Project) -> list[tuple[Any, ...]]:
    """The rows of b's mirror: own id, item, link."""
    rows = project.rows("b_hx")
    return sorted((row["b_hx_id"], row["b_id"], row["a_hx_id"]) for row in rows)


def items(project: Project) -> list[tuple[Any, ...]]:
    """The rows of a's mirror: own id, item, value."""
    rows = project.rows("a_hx")
    return sorted((row["a_hx_id"], row["a_id"], row["x"]) for row in rows)


@pytest.mark.thorough
def test_rows_of_a_resumption_link_to_each_other_in_any_order_of_resuming(
    project: Project, change: Any
) -> None:
    change("insert into a values (1, 1)")
    change("insert into b values (1, 1, 0)")
    project.run("a_hx", "b_hx")

    project.control("suspend", "a_hx", "b_hx")
    for statement in (
        "insert into a values (5, 5)",
        "insert into b values (5, 5, 0), (7, 7, 0)",
        "insert into a values (6, 6), (7, 7)",
    ):
        change(statement)
    project.control("resume", "b_hx")
    assert "b_hx waits for" in project.run("b_hx").log, "a has nothing of the resumption yet"
    assert len(project.rows("b_hx")) == 1
    project.control("resume", "a_hx")
    change("update a set x = 70 where a_id = 7")
    change("update b set y = 1 where b_id = 7")
    project.run("a_hx", "b_hx")

    assert items(project) == [(1, 1, 1), (2, 5, 5), (3, 6, 6), (4, 7, 7), (5, 7, 70)]
    assert links(project) == [(1, 1, 1), (2, 5, 2), (3, 7, 4), (4, 7, 5)]
    moments = {row["b_hx_id"]: row["mod_time"] for row in project.rows("b_hx")}
    assert moments[1] < moments[2] == moments[3] < moments[4]


@pytest.mark.thorough
def test_a_resumption_is_captured_as_a_whole_when_its_mirror_runs_first(
    project: Project, change: Any
) -> None:
    change("insert into a values (1, 1)")
    change("insert into b values (1, 1, 0)")
    project.run("a_hx", "b_hx")

    project.control("suspend", "a_hx", "b_hx")
    for number in range(1, 4):
        change(f"update b set y = {number}")
        change(f"update a set x = {number * 10}")
    project.control("resume", "a_hx", "b_hx")
    project.run("b_hx")
    project.run("a_hx", "b_hx")

    assert items(project) == [(1, 1, 1), (2, 1, 30)]
    assert links(project) == [(1, 1, 1), (2, 1, 2)]


@pytest.mark.thorough
def test_a_mirror_waits_for_a_suspended_reference(project: Project, change: Any) -> None:
    change("insert into a values (1, 1)")
    project.run("a_hx", "b_hx")

    project.control("suspend", "a_hx")
    change("insert into b values (1, 1, 0)")
    change("insert into a values (2, 2)")
    change("insert into b values (2, 2, 0)")
    waited = project.run("b_hx")
    assert links(project) == [(1, 1, 1)], "what lies before the first change of a is taken"
    assert "b_hx waits for" in waited.log
    assert "suspended" in waited.log
    change("update a set x = 3 where a_id = 2")
    project.control("resume", "a_hx")
    project.run("a_hx", "b_hx")

    assert items(project) == [(1, 1, 1), (2, 2, 3)]
    assert links(project) == [(1, 1, 1), (2, 2, 2)]


@pytest.mark.thorough
def test_a_mirror_waits_for_a_missing_or_empty_reference(project: Project, change: Any) -> None:
    change("insert into a values (1, 1), (2, 2), (2, 2)")
    change("insert into b values (1, 1, 0), (2, 2, 0)")
    waited = project.run("b_hx")
    assert waited.message("b_hx") == "nothing new"
    assert "does not exist" in waited.log

    assert not project.run("a_hx", check=False).success, "it has doubles"
    assert project.rows("a_hx") == []
    waited = project.run("b_hx")
    assert waited.message("b_hx") == "nothing new"
    assert "b_hx waits for" in waited.log

    project.spark.sql(f"drop table {project.table('a')}")
    create(project, "a")
    change("insert into a values (1, 1), (2, 2)")
    project.run("a_hx", "b_hx")
    assert links(project) == [(1, 1, 1), (2, 2, 2)]


@pytest.mark.thorough
def test_a_mirror_waits_for_a_reference_whose_main_table_was_recreated(
    project: Project, change: Any
) -> None:
    change("insert into a values (1, 1)")
    for number in range(3):
        change(f"update a set x = {number}")
    change("insert into b values (1, 1, 0)")
    project.run("a_hx", "b_hx")
    assert links(project) == [(1, 1, 1)], "a had one row when it was populated"

    project.spark.sql(f"drop table {project.table('a')}")
    create(project, "a")
    change("insert into b values (3, 3, 0)")
    change("insert into a values (1, 2), (3, 3)")
    change("insert into b values (4, 3, 0)")
    waited = project.run("b_hx")
    assert waited.message("b_hx") == "nothing new"
    assert "made again" in waited.log
    project.run("a_hx", "b_hx")

    newest = {a_id: own_id for own_id, a_id, _ in items(project)}
    assert links(project) == [(1, 1, 1), (2, 3, newest[3]), (3, 4, newest[3])]


@pytest.mark.thorough
def test_a_reference_column_is_renamed_while_changes_are_pending(
    project: Project, change: Any
) -> None:
    change("insert into a values (1, 1), (2, 2)")
    change("insert into b values (1, 1, 0)")
    project.run("a_hx", "b_hx")
    change("update b set a_id = 2 where b_id = 1")
    change("insert into b values (2, 1, 0)")
    change("alter table b rename column a_id to a_ref")
    change("insert into b values (3, 2, 0)")

    failed = project.run("b_hx", check=False)
    assert "column a_id, which was renamed: write a_ref" in failed.log
    write_reference(project, "a_ref")
    project.run("b_hx")
    assert links(project) == [(1, 1, 1), (2, 1, 2), (3, 2, 1), (4, 3, 2)]

    references = [{"column": "a_ref", "key": "a_id", "history": "ref('a_hx')"}]
    main = {"main": "source('mains', 'b')", "key": "b_id", "id": "b_hx_id"}
    tests = {
        "history_references_exist": {"name": "linked", "arguments": {"references": references}},
        "mirrors_main": {"name": "mirrored", "arguments": main},
    }
    mirrors = {
        "name": "b_hx",
        "data_tests": [{f"dbt_history.{name}": test} for name, test in tests.items()],
    }
    mains = {"name": "mains", "schema": project.schema, "tables": [{"name": "b"}]}
    project.write("models/b.yml", json.dumps({"models": [mirrors], "sources": [mains]}))
    project.dbt("test")
    log = project.table("b_hx")
    project.spark.sql(f"alter table {log} set tblproperties ('delta.appendOnly' = 'false')")
    project.spark.sql(f"update {log} set a_hx_id = null where b_hx_id = 2")
    project.spark.sql(f"update {log} set a_id = 9 where b_hx_id = 3")
    tested = project.dbt("test", check=False)
    assert tested.results["linked"].failures == 2
    assert tested.results["mirrored"].failures == 1


@pytest.mark.thorough
def test_commit_delay_waits_for_commits_that_become_visible_late(
    project: Project, change: Any, tmp_path: Path
) -> None:
    """The commit of a comes before that of b, and can be read after it.

    time         1       2              3
    main a       c .................... c is visible
    main b               d
    b_hx                 no commit_delay: takes d here, links it to the row before c
                         with commit_delay: waits, takes d when c is visible, links it to c
    """
    change("insert into a values (5, 0)")
    project.run("a_hx", "b_hx")
    change("update a set x = 1 where a_id = 5")
    change("insert into b values (1, 5, 0)")
    write_reference(project, commit_delay=3600)
    detail = project.spark.sql(f"describe detail {project.table('a')}").collect()[0]
    log = Path(detail["location"].removeprefix("file:")) / "_delta_log"
    commit = max(log.glob("*.json"))
    hidden = [file.rename(tmp_path / file.name) for file in log.glob(f"{commit.stem}*")]
    project.forget_logs()
    waited = project.run("b_hx")
    assert "earlier commits may become visible within 3600 s (commit_delay)" in waited.log
    assert links(project) == []

    for file in hidden:
        file.rename(log / file.name)
    project.forget_logs()
    project.run("a_hx")
    change("insert into a values (6, 0)")
    project.run("b_hx")
    assert links(project) == [], "a later change that a_hx has not taken does not lift the bound"

    write_reference(project)
    project.run("a_hx", "b_hx")
    assert links(project) == [(1, 1, 2)]


@pytest.mark.thorough
def test_ids_stay_unique_in_a_mirror_that_leaves_rows_out(project: Project) -> None:
    """The number of rows of a commit then says nothing about the last id."""
    project.spark.sql(f"create schema if not exists {project.schema}")
    create(project, "a")
    main = f"api.Relation.create(schema='{project.schema}', identifier='a')"
    project.model(
        "a_hx",
        f"select * from {{{{ dbt_history.hx_rows({main}, 'a_id') }}}}\nwhere x <> 1",
        materialized="history_append",
    )
    for number in range(3):
        values = ", ".join(f"({10 * number + x}, {x})" for x in range(3))
        project.spark.sql(f"insert into {project.table('a')} values {values}")
        project.run("a_hx")

    ids = sorted(row["a_hx_id"] for row in project.rows("a_hx"))
    assert len(ids) == len(set(ids)) == 6
    assert ids == [1, 3, 4, 6, 7, 9]


@pytest.mark.thorough
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_a_reference_that_the_type_of_the_key_cannot_hold_has_no_link(
    project: Project, monkeypatch: pytest.MonkeyPatch, ansi: str
) -> None:
    """
    b         b_id   1    2    3    4         its key    1         -> 1
              a_id   1   n/a   8   NULL       a_id       n/a, 8    no link, the test reports them
    """
    project.spark.sql(f"create schema if not exists {project.schema}")
    for name, columns in (("a", "a_id bigint, x bigint"), ("b", "b_id bigint, a_id string")):
        project.spark.sql(
            f"create table {project.table(name)} ({columns}) using delta"
            f" tblproperties ({PROPERTIES})"
        )
    project.spark.sql(f"create table {project.table('c')} (c_id string) using delta")
    project.spark.sql(f"insert into {project.table('c')} values ('1'), ('n/a')")
    project.spark.sql(f"insert into {project.table('a')} values (1, 1), (9, 2)")
    project.spark.sql(f"insert into {project.table('b')} values (1, '1')")
    model(project, "c", "c_id")
    model(project, "a", "a_id", "{'column': 'a_id', 'key': 'c_id', 'history': ref('c_hx')}")
    write_reference(project)
    references = [{"column": "a_id", "key": "a_id", "history": "ref('a_hx')"}]
    linked = {"name": "linked", "arguments": {"references": references}}
    tested = {"name": "b_hx", "data_tests": [{"dbt_history.history_references_exist": linked}]}
    project.write("models/b.yml", json.dumps({"models": [tested]}))
    execute = Cursor.execute

    def run(self: Cursor, sql: str, *arguments: Any) -> None:
        # The adapter sets its own parameters before each statement.
        settings = {**self.server_side_parameters, "spark.sql.ansi.enabled": ansi}
        self.server_side_parameters = settings
        execute(self, sql, *arguments)

    try:
        with monkeypatch.context() as patch:
            patch.setattr(Cursor, "execute", run)
            project.run("a_hx", "b_hx", "c_hx")
            project.spark.sql("set spark.sql.ansi.enabled = false")
            project.spark.sql(
                f"insert into {project.table('b')} values (2, 'n/a'), (3, '8'), (4, null)"
            )
            project.run("b_hx")
            test = project.dbt("test", check=False)
    finally:
        project.spark.conf.set("spark.sql.ansi.enabled", "false")

    assert links(project) == [(1, 1, 1), (2, 2, None), (3, 3, None), (4, 4, None)]
    linked_to_c = {row["a_id"]: row["c_hx_id"] for row in project.rows("a_hx")}
    assert linked_to_c == {1: 1, 9: None}
    assert test.results["linked"].failures == 2
