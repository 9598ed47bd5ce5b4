"""A key column that is renamed in a source (column mapping) while changes are pending.

main       1 a, 2 b    update 1 to c    rename id to The Key    delete 2
first run  ]           second run: refused until the log's column has the new name, then all
"""

from __future__ import annotations

import re

import pytest

from tests.support.project import Project

MAIN = "api.Relation.create(schema='{}', identifier='main')"


def create_main(project: Project, column: str) -> None:
    """The main table, whose columns can be renamed: `id` and another one."""
    project.spark.sql(f"create schema if not exists {project.schema}")
    project.spark.sql(
        f"create table {project.table('main')} (id bigint, {column}) using delta tblproperties"
        " ('delta.enableChangeDataFeed' = 'true', 'delta.columnMapping.mode' = 'name',"
        " 'delta.enableInCommitTimestamps' = 'true')"
    )


def write_logs(project: Project, key: str) -> None:
    main = MAIN.format(project.schema)
    for name in ("hx_rows", "event_rows"):
        call = f"dbt_history.{name}({main}, '{key}')"
        project.model(name, f"select * from {{{{ {call} }}}}", materialized="history_append")


@pytest.mark.thorough
def test_a_renamed_key_is_refused_until_it_is_renamed_in_the_log(project: Project) -> None:
    spark, main = project.spark, project.table("main")
    create_main(project, "v string")
    spark.sql(f"insert into {main} values (1, 'a'), (2, 'b')")
    write_logs(project, "id")
    project.run("hx_rows", "event_rows")
    spark.sql(f"update {main} set v = 'c' where id = 1")
    spark.sql(f"alter table {main} rename column id to `The Key`")
    spark.sql(f"delete from {main} where `The Key` = 2")

    old = project.run("hx_rows", "event_rows", check=False)
    for name in ("hx_rows", "event_rows"):
        assert "there is no column id, it was renamed to The Key" in old.message(name)
    write_logs(project, "The Key")

    refused = project.run("hx_rows", "event_rows", check=False)
    for name in ("hx_rows", "event_rows"):
        message = refused.message(name)
        assert "the log has no key column of this name; nothing was written" in message
        assert "the key that the log was written with: id" in message
        told = re.search("rename it in the log too: (.*)", message)
        assert told
        assert "The Key" not in spark.table(project.table(name)).columns
        for statement in told[1].split("; "):
            spark.sql(statement)

    project.run("hx_rows", "event_rows")
    rows = sorted((row["main_hx_id"], row["The Key"], row["v"]) for row in project.rows("hx_rows"))
    assert rows[:2] == [(1, 1, "a"), (2, 2, "b")]
    assert sorted(row[1:] for row in rows[2:]) == [(1, "c"), (2, "b")]
    events = [(row["_hist_event"], row["The Key"], row["v"]) for row in project.rows("event_rows")]
    assert sorted(events) == [
        (1, 1, "a"), (1, 2, "b"), (2, 2, "b"), (3, 1, "a"), (4, 1, "c"),
    ]  # fmt: skip
    assert project.run("hx_rows").message("hx_rows") == "nothing new"


@pytest.mark.thorough
def test_a_renamed_key_is_refused_until_it_is_renamed_in_the_history(project: Project) -> None:
    spark, main = project.spark, project.table("main")
    create_main(project, "v string")
    spark.sql(f"insert into {main} values (1, 'a'), (2, 'b')")

    def write(key: str) -> None:
        project.model("h", f"select * from {main}", materialized="history", unique_key=key)

    write("id")
    project.run("h")
    spark.sql(f"update {main} set v = 'c' where id = 1")
    spark.sql(f"alter table {main} rename column id to `The Key`")
    spark.sql(f"delete from {main} where `The Key` = 2")
    assert "there is no column id, it was renamed to The Key" in (
        project.run("h", check=False).message("h")
    )
    write("The Key")

    message = project.run("h", check=False).message("h")

    assert "the table that exists has no column The Key" in message
    told = re.search("way out: .*: dbt run-operation rename_column --args '(.*)'", message)
    assert told
    project.dbt("run-operation", "rename_column", "--args", told[1])
    project.run("h")
    rows = [(row["The Key"], row["v"], row["valid_to"] is None) for row in project.rows("h")]
    assert sorted(rows) == [(1, "a", False), (1, "c", True), (2, "b", False)]


@pytest.mark.thorough
def test_a_restore_renames_back(project: Project) -> None:
    """The names of the columns in each version; a reference is read by the name of its time.

    version  1          2   3   4              5                6        7               8
    main     id, boss   k   chief  7 added     restored to 1    chief    8 added         to 5
    run                 |                                   |        |                       |
    """
    spark, main = project.spark, project.table("main")
    create_main(project, "boss bigint")

    def run(reference: str, *statements: str) -> list[tuple[object, ...]]:
        for statement in statements:
            spark.sql(statement.format(main))
        relation = MAIN.format(project.schema)
        link = f"{{'column': '{reference}', 'history': this, 'key': 'id', 'name': 'led_by'}}"
        for name, options in (("hx_rows", f", references=[{link}]"), ("event_rows", "")):
            call = f"dbt_history.{name}({relation}, 'id'{options})"
            project.model(name, f"select * from {{{{ {call} }}}}", materialized="history_append")
        project.run("hx_rows", "event_rows")
        rows = sorted(project.rows("hx_rows"), key=lambda row: row["main_hx_id"])
        return [
            (row["id"], row["boss"], row.get("chief"), row["led_by"], row["deleted"])
            for row in rows
        ]

    rows = run("boss", "insert into {} values (1, null), (2, 1)")
    rows = run(
        "boss",
        "alter table {} rename column id to k", "alter table {} rename column boss to chief",
        "insert into {} values (7, 1)", "restore table {} to version as of 1",
    )  # fmt: skip
    assert rows[2:] == [(7, None, 1, 1, False), (7, 1, None, 1, True)]
    assert "k" not in project.rows("hx_rows")[0]
    events = [(row["_hist_event"], row["id"]) for row in project.rows("event_rows")]
    assert sorted(events) == [(1, 1), (1, 2), (1, 7), (2, 7)]

    run("chief", "alter table {} rename column boss to chief")
    rows = run(
        "boss", "insert into {} values (8, 1)", "restore table {} to version as of 5",
    )  # fmt: skip
    assert rows[4:] == [(8, None, 1, 1, False), (8, 1, None, 1, True)]


@pytest.mark.thorough
def test_the_renamed_column_of_a_composite_key_is_the_one_at_its_place(project: Project) -> None:
    spark, main = project.spark, project.table("main")
    spark.sql(f"create schema if not exists {project.schema}")
    spark.sql(
        f"create table {main} (region string, id bigint) using delta"
        " tblproperties ('delta.columnMapping.mode' = 'name')"
    )
    spark.sql(f"insert into {main} values ('n', 1), ('s', 1)")

    def run(key: list[str], check: bool = True) -> str:
        call = f"dbt_history.hx_rows({MAIN.format(project.schema)}, {key})"
        project.model("hx_rows", f"select * from {{{{ {call} }}}}", materialized="history_append")
        return project.run("hx_rows", check=check).message("hx_rows")

    run(["region", "id"])
    spark.sql(f"alter table {main} rename column id to code")
    spark.sql(f"delete from {main} where region = 's'")

    told = re.search("rename it in the log too: (.*)", run(["region", "code"], check=False))

    assert told
    assert "rename column `id` to `code`" in told[1]
    assert "region" not in told[1]
    for statement in told[1].split("; "):
        spark.sql(statement)
    run(["region", "code"])
    assert sorted(
        (row["region"], row["code"], row["deleted"]) for row in project.rows("hx_rows")
    ) == [("n", 1, False), ("s", 1, False), ("s", 1, True)]


@pytest.mark.thorough
def test_the_time_and_the_deletion_of_a_record_are_known_by_their_former_names(
    project: Project,
) -> None:
    """
    main    1 a, 2 b at 1 |    1 is gone, at 5    renamed: is_gone to gone, at to changed    2 x at 7 |
    runs                  1                                                                           2
    """  # noqa: E501
    spark, main = project.spark, project.table("main")
    create_main(project, "v string, is_gone boolean, at timestamp")

    def minute(number: int) -> str:
        return f"timestamp'2024-01-01 00:0{number}:00 UTC'"

    def run(deleted: str, updated_at: str) -> None:
        settings = {
            "marked": {"source": "changes", "deleted": deleted},
            "timed": {"updated_at": updated_at},
            "both": {"source": "changes", "deleted": deleted, "updated_at": updated_at},
        }
        for name, history in settings.items():
            project.model(
                name, f"select * from {main}", materialized="history", unique_key="id",
                meta={"history": history},
            )  # fmt: skip
        project.history(
            "batch",
            "select * from {{ dbt_history.batch_rows("
            f"dbt_history.changes({MAIN.format(project.schema)}, 'id'), 'id', 'validity',"
            f" at='{updated_at}', delete_when='{deleted}') }}}}",
            convention="validity",
        )
        project.run(*settings, "batch")

    spark.sql(f"insert into {main} values (1, 'a', false, {minute(1)})")
    spark.sql(f"insert into {main} values (2, 'b', null, {minute(1)})")
    run("is_gone", "at")
    spark.sql(f"update {main} set is_gone = true, at = {minute(5)} where id = 1")
    spark.sql(f"alter table {main} rename column is_gone to gone")
    spark.sql(f"alter table {main} rename column at to changed")
    spark.sql(f"update {main} set v = 'x', changed = {minute(7)} where id = 2")
    run("gone", "changed")

    def versions(name: str) -> set[tuple[object, ...]]:
        rows = project.spark.sql(
            f"select id, v, minute(valid_from), minute(valid_to) from {project.table(name)}"
        )
        return {tuple(row) for row in rows.collect()}

    for name in ("both", "batch"):
        assert versions(name) == {(1, "a", 1, 5), (2, "b", 1, 7), (2, "x", 7, None)}
    assert versions("timed") == {
        (1, "a", 1, 5), (1, "a", 5, None), (2, "b", 1, 7), (2, "x", 7, None),
    }  # fmt: skip
    current = project.spark.sql(
        f"select id, v from {project.table('marked')} where valid_to is null"
    )
    assert [tuple(row) for row in current.collect()] == [(2, "x")]
