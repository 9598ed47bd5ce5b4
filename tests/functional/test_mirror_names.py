"""A main table whose columns have the names of a mirror's own columns.

main    (1, deleted no)   (1, deleted yes)   1 removed, 2 added   column main_deleted added
mirror  main_deleted no   main_deleted yes   deleted (its own)    main_main_deleted
"""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.project import Project, Run

FEED = "'delta.enableChangeDataFeed' = 'true', 'delta.enableInCommitTimestamps' = 'true'"
MIRRORS = {"items_hx": "feed", "compared": "diff"}
OF_THE_MAIN_TABLE = ("main_Deleted", "main_items_hx_id", "v")


def operate(project: Project, name: str, **arguments: Any) -> Run:
    return project.dbt("run-operation", name, "--args", json.dumps(arguments))


def write_models(project: Project) -> None:
    main = f"api.Relation.create(schema='{project.schema}', identifier='items')"
    for name, method in MIRRORS.items():
        call = f"dbt_history.hx_rows({main}, 'id', method='{method}')"
        project.model(name, f"select * from {{{{ {call} }}}}", materialized="history_append")
    call = f"dbt_history.event_rows({main}, 'id')"
    project.model("items_events", f"select * from {{{{ {call} }}}}", materialized="history_append")
    mirrors = [
        {
            "name": name,
            "data_tests": [
                {
                    "dbt_history.mirrors_main": {
                        "name": f"{name}_mirrors",
                        "arguments": {"main": "source('mains', 'items')", "key": "id"},
                    }
                }
            ],
        }
        for name in MIRRORS
    ]
    mains = [{"name": "mains", "schema": project.schema, "tables": [{"name": "items"}]}]
    project.write("models/mirrors.yml", json.dumps({"models": mirrors, "sources": mains}))


def mirrored(project: Project, name: str) -> list[tuple[Any, ...]]:
    rows = sorted(project.rows(name), key=lambda row: row["items_hx_id"])
    return [(row["id"], *(row[column] for column in OF_THE_MAIN_TABLE), row["deleted"])
            for row in rows]  # fmt: skip


def read(project: Project, reader: str) -> list[dict[str, Any]]:
    project.model("found", f"select * from {{{{ dbt_history.{reader} }}}} as found")
    project.run("found")
    return project.rows("found")


@pytest.mark.thorough
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_an_item_is_found_in_the_type_of_the_key(
    ansi: str, project: Project, spark: SparkSession
) -> None:
    keys: dict[str, tuple[list[Any], list[tuple[str, Any]]]] = {
        "string": (["7", "07", "x"], [("7", "7"), ("'7'", "7"), ("'07'", "07"), ("7.5", None)]),
        "bigint": ([7, 8], [("7", 7), ("'7'", 7), ("'a'", "is no bigint: a"),
                            ("'7.5'", "is no bigint: 7.5")]),
        "timestamp": (["2024-03-03 01:00:00 UTC"], [("'2024-03-03 01:00:00'", True),
                                                    ("'2024-03-03T02:00:00+01:00'", True)]),
    }  # fmt: skip
    for type_, (values, _) in keys.items():
        rows = ", ".join(f"('{value}', {place})" for place, value in enumerate(values))
        spark.sql(f"create schema if not exists {project.schema}")
        spark.sql(
            f"create table {project.table(type_ + '_hx')} using delta as select cast(id as {type_})"
            f" as id, cast(n as bigint) as {type_}_hx_id, false as deleted, 'ann' as mod_user,"
            f" current_timestamp() as mod_time from values {rows} as rows (id, n)"
        )
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        for type_, (_, searches) in keys.items():
            table = f"api.Relation.create(schema='{project.schema}', identifier='{type_}_hx')"
            for item, expected in searches:
                sql = f"select * from {{{{ dbt_history.find_changes({table}, 'id', {item}) }}}}"
                project.model("found", sql, materialized="table")
                run = project.dbt("run", "--select", "found", check=False)
                if isinstance(expected, str) and expected.startswith("is no"):
                    assert f"item: id {expected}" in run.log, item
                    continue
                found = [row["id"] for row in project.rows("found")]
                if type_ == "timestamp":
                    assert len(found) == 1, item
                else:
                    assert found == ([] if expected is None else [expected]), item
    finally:
        spark.conf.set("spark.sql.ansi.enabled", "false")
        spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.thorough
def test_columns_named_as_those_of_a_mirror_are_kept_beside_them(
    project: Project, spark: SparkSession
) -> None:
    items, logs = project.table("items"), [*MIRRORS, "items_events"]
    spark.sql(f"create schema if not exists {project.schema}")
    spark.sql(
        f"create table {items} (id bigint, Deleted boolean, items_hx_id string, v string)"
        f" using delta tblproperties ({FEED})"
    )
    spark.sql(f"insert into {items} values (1, false, 'x', 'a'), (2, null, null, 'b')")
    write_models(project)
    project.run(*logs)
    time.sleep(0.01)
    first = spark.sql("select cast(current_timestamp() as string)").collect()[0][0] + " UTC"
    time.sleep(0.01)
    spark.sql(f"update {items} set deleted = true where id = 1")
    project.run(*logs)
    spark.sql(f"delete from {items} where id = 1")
    spark.sql(f"insert into {items} values (3, true, 'y', 'c')")
    project.run(*logs)

    changes = [
        (1, False, "x", "a", False), (2, None, None, "b", False),
        (1, True, "x", "a", False),
        (1, True, "x", "a", True), (3, True, "y", "c", False),
    ]  # fmt: skip
    for name in MIRRORS:
        assert mirrored(project, name) == changes
    reader = "latest(ref('items_hx'), 'id')"
    assert sorted(row["id"] for row in read(project, reader)) == [2, 3]
    reader = "find_changes(ref('items_hx'), 'id', column='main_Deleted', item=1)"
    found = sorted((row["items_hx_id"], row["_change_type"]) for row in read(project, reader))
    assert found == [(1, "insert"), (3, "update"), (4, "delete")]
    reader = f"as_of(ref('items_hx'), '{first}')"
    held = sorted((row["id"], row["main_Deleted"]) for row in read(project, reader))
    assert held == [(1, False), (2, None)]
    assert project.dbt("test").results["items_hx_mirrors"].status == "pass"

    day = f"{project.schema}_day"
    operate(project, "create_point_in_time", schema=day, at=first, table="items_hx")
    seen = sorted(tuple(row) for row in spark.table(f"{day}.items").collect())
    assert seen == [(1, False, "x", "a"), (2, None, None, "b")]
    spark.sql(f"drop schema {day} cascade")

    spark.sql(f"alter table {items} add column main_deleted string")
    spark.sql(f"update {items} set main_deleted = 'new' where id = 3")
    project.run(*logs)
    newest = max(project.rows("items_hx"), key=lambda row: row["items_hx_id"])
    assert (newest["main_Deleted"], newest["main_main_deleted"]) == (True, "new")
    assert not newest["deleted"]
    tested = project.dbt("test").results
    assert {tested[f"{name}_mirrors"].status for name in MIRRORS} == {"pass"}

    operate(
        project, "erase_subject", table="items_events", only={"id": 1}, columns=["deleted"],
        mirrors="all", reason="request",
    )  # fmt: skip
    for name in MIRRORS:
        erased = [row for row in mirrored(project, name) if row[0] == 1]
        assert erased == [(1, None, "x", "a", False), (1, None, "x", "a", False),
                          (1, None, "x", "a", True)]  # fmt: skip
