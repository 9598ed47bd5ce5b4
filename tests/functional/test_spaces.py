"""Spaces of features whose history is enabled, suspended and disabled by operations."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.project import Project

# What each transaction sets, by space and feature; None deletes it.
ROADS: dict[int, dict[str, str | None]] = {
    1: {"a": "1", "b": "1"},
    2: {"a": "2", "c": "2"},
    3: {"b": None, "d": "3"},
    4: {"a": "4", "c": None, "e": "4"},
    5: {"a": "5"},
    6: {"a": "6", "d": "6", "e": "6"},
    7: {"a": "7"},
    8: {"d": None},
    9: {"a": "9"},
}
State = tuple[str, int, int | None]
DRAFTS_KEY = ["branch", "space", "id"]


def arrive(project: Project, up_to: int) -> None:
    """Create the log up to a transaction; the space `it's` changes its feature `a` in each."""
    lines = []
    for txn in range(1, up_to + 1):
        written = [("roads", id_, v) for id_, v in ROADS[txn].items()] + [("it's", "a", str(txn))]
        for position, (space, id_, v) in enumerate(written):
            action = "DELETE" if v is None else "PUT"
            value = "null" if v is None else f"'{v}'"
            lines.append(f"({txn}, {position}, '{action}', {json.dumps(space)}, '{id_}', {value})")
    project.spark.sql(f"create schema if not exists {project.schema}")
    project.spark.sql(
        f"create or replace view {project.table('edits')} as"
        " select *, 'app' as app_id, timestamp'2024-01-01 00:00:00 UTC' as at"
        f" from values {', '.join(lines)} as log(txn, position, action, space, id, v)"
    )


def states(project: Project, name: str, space: str = "roads") -> list[State]:
    """Feature, transaction and end of each state."""
    rows = [row for row in project.rows(name) if row.get("space", space) == space]
    return sorted(
        ((row["id"], row["txn"], row["txn_next"]) for row in rows),
        key=lambda state: (state[0], state[1], state[2] is None),
    )


def add_states(project: Project, name: str) -> None:
    project.history(
        name,
        "{{ dbt_history.feature_states('" + project.table("edits") + "', id=['space', 'id'],"
        " payload=['v']) }}",
        key=["space", "id"],
        convention="naksha",
        max_deleted_share=None,
    )


def switch(project: Project, kind: str, *names: str, check: bool = True, **more: Any) -> str:
    given = {"writes": project.table("edits"), "space": "roads", **more}
    lines = []
    for name in names:
        arguments = json.dumps({"table": name, **given})
        run = project.dbt(
            "run-operation", f"{kind}_space_history", "--args", arguments, check=check
        )
        lines.append(run.log)
    return "\n".join(lines)


@pytest.mark.thorough
def test_a_space_is_suspended_enabled_and_disabled_at_a_place_of_the_log(
    project: Project, spark: SparkSession
) -> None:
    """
    txn     1      2      3    | 4      5    | 6      7    | 8      9
    roads   on                 | suspended   | on          | off
    a       [ 1 --)                    [ 5 --)[ 6 --)[ 7 --   2 and 4 were replaced
    b       [ 1 ---------)|tombstone
    c                                                         2 was replaced by a deletion
    d                    [ 3 ----------------)[ 6 --
    e                           [ 4 ---------)[ 6 --
    off                                            a, d, e    only what is in force at 7 is left
    then                                              e   [ 9 --

    `late` runs before the operations and before `off`, which needs the writes so far; `stepwise`
    also in between.
    """
    for name in ("stepwise", "late"):
        add_states(project, name)
    arrive(project, 1)
    project.run("stepwise", "late")
    arrive(project, 3)
    project.run("stepwise")
    logged = switch(project, "suspend", "stepwise", "late")
    for name in ("stepwise", "late"):
        assert f"the history of space roads in {name} is suspended after transaction 3" in logged
    arrive(project, 5)
    project.run("stepwise")

    kept: list[State] = [("a", 1, 2), ("b", 1, 3), ("b", 3, 3)]
    suspended: list[State] = [("a", 5, None), ("d", 3, None), ("e", 4, None)]
    assert states(project, "stepwise") == sorted(kept + suspended, key=str)
    refused = switch(project, "suspend", "stepwise", check=False, space=["roads", "rods"])
    assert "is suspended after transaction 3 already" in refused
    assert "no write and no state is of space rods, did you mean roads?" in refused
    assert "  expected: " in refused

    switch(project, "enable", "stepwise", "late")
    arrive(project, 7)
    project.run("stepwise")
    enabled: list[State] = [
        ("a", 1, 2), ("a", 5, 6), ("a", 6, 7), ("a", 7, None), ("b", 1, 3), ("b", 3, 3),
        ("d", 3, 6), ("d", 6, None), ("e", 4, 6), ("e", 6, None),
    ]  # fmt: skip
    assert states(project, "stepwise") == enabled

    refused = switch(project, "disable", "late", check=False)
    assert "18 writes up to transaction 7 are not applied yet: run its model" in refused
    project.run("late")
    assert states(project, "late") == enabled

    # Killed after the fact was written, and repeated after a run.
    switch(project, "disable", "late")
    spark.sql(
        f"insert into {project.table('history_marks')} select kind, 'stepwise', name, instant,"
        " table_version, author, reason, recorded_at, invocation_id from"
        f" {project.table('history_marks')} where kind = 'space_off'"
    )
    arrive(project, 8)
    project.run("stepwise")
    assert "closed states removed: 7" in switch(project, "disable", "stepwise")
    assert states(project, "stepwise") == [("a", 7, None), ("e", 6, None)]
    assert "is off after transaction 7 already" in switch(
        project, "disable", "stepwise", check=False
    )
    arrive(project, 9)
    project.run("stepwise", "late")

    left: list[State] = [("a", 9, None), ("e", 6, None)]
    recorded: list[State] = [("a", txn, txn + 1 if txn < 9 else None) for txn in range(1, 10)]
    for name in ("stepwise", "late"):
        assert states(project, name) == left, name
        assert states(project, name, "it's") == recorded, name
    spark.sql(f"drop table {project.table('stepwise')}")
    project.run("stepwise")
    assert states(project, "stepwise") == left, "built again from the log"


@pytest.mark.thorough
def test_a_table_of_one_space_is_suspended_as_a_whole(project: Project) -> None:
    """The log of roads alone, without the column `space` in the key; tags keep their states."""
    edits = f"(select * from {project.table('edits')} where space = 'roads')"
    project.history(
        "alone",
        f'{{{{ dbt_history.feature_states("{edits}", payload=["v"]) }}}}',
        convention="naksha",
        max_deleted_share=None,
    )
    arrive(project, 3)
    project.run("alone")
    assert "its key has no column space" in switch(project, "suspend", "alone", check=False)
    assert "the history of alone would be suspended" in switch(
        project, "suspend", "alone", space=None, dry_run=True
    )
    switch(project, "suspend", "alone", space=None)
    arrive(project, 5)
    project.run("alone")
    assert states(project, "alone") == [
        ("a", 1, 2), ("a", 5, None), ("b", 1, 3), ("b", 3, 3), ("d", 3, None), ("e", 4, None),
    ]  # fmt: skip

    tag = ["create_tag", "--args", json.dumps({"tag": "first", "table": "alone", "at": 1})]
    project.dbt("run-operation", *tag)
    refused = switch(project, "disable", "alone", check=False, space=None)
    assert "the tag first of alone names 2 states that would be removed: drop_tag first" in refused
    project.dbt("run-operation", "drop_tag", "--args", json.dumps({"tag": "first"}))
    switch(project, "disable", "alone", space=None)
    assert states(project, "alone") == [("a", 5, None), ("d", 3, None), ("e", 4, None)]


@pytest.mark.thorough
def test_a_rewind_needs_only_the_writes_and_states_of_its_own_features(project: Project) -> None:
    """
    `roads` and `twin` hold the same space of a log, `pois` another one.

        txn     1      2      3    | 4        5
        roads   f, g          g    | no f
        pois           f           |          f
        history on                 | of roads in `roads` suspended
    """
    edits = project.table("edits")
    project.spark.sql(f"create schema if not exists {project.schema}")
    project.spark.sql(
        f"create table {edits} (txn bigint, position bigint, action string, space string,"
        " id string, v string, app_id string, author string, message string, at timestamp)"
        " using delta"
    )

    def write(*writes: tuple[int, str, str, str]) -> None:
        rows = [
            f"({txn}, {position}, '{'PUT' if v else 'DELETE'}', '{space}', '{id_}', '{v}', 'app',"
            " null, null, timestamp'2024-01-01')"
            for position, (txn, space, id_, v) in enumerate(writes)
        ]
        project.spark.sql(f"insert into {edits} values {', '.join(rows)}")
        project.run("roads", "twin", "pois")

    def rewind(table: Any, to: int, check: bool = True, **only: str) -> str:
        arguments = {"table": table, "to": to, "only": only, "writes": edits, "app_id": "undo"}
        run = project.dbt("run-operation", "rewind", "--args", json.dumps(arguments), check=check)
        return run.log

    for name, space in (("roads", "roads"), ("twin", "roads"), ("pois", "pois")):
        project.history(
            name,
            f'{{{{ dbt_history.feature_states("(select * from {edits} where space = '
            f"'{space}')\", id=['space', 'id'], payload=['v']) }}}}",
            key=["space", "id"],
            convention="naksha",
            max_deleted_share=None,
        )
    write((1, "roads", "f", "1"), (1, "roads", "g", "1"), (2, "pois", "f", "2"),
          (3, "roads", "g", "3"))  # fmt: skip
    switch(project, "suspend", "roads")
    write((4, "roads", "f", ""), (5, "pois", "f", "5"))

    refused = rewind("roads", 1, check=False, space="roads")
    assert '1 features, such as {"space":"roads","id":"f"}; they are stored from transaction 4' in (
        refused
    )
    refused = rewind(["roads", "twin"], 4, check=False)
    assert "roads: 1 writes that the states lack" in refused
    assert "twin: 1 writes that the states lack" in refused
    logged = rewind(["roads", "twin"], 1, space="roads", id="g")
    assert "roads is rewound to 1: 1 writes, transaction 6" in logged
    assert "twin is rewound to 1: 1 writes, transaction 7" in logged
    added = [row for row in project.rows("edits") if row["txn"] > 5]
    assert {(row["txn"], row["id"], row["v"]) for row in added} == {(6, "g", "1"), (7, "g", "1")}


@pytest.mark.thorough
def test_tables_and_logs_that_cannot_be_switched_are_refused(
    project: Project, spark: SparkSession
) -> None:
    arrive(project, 1)
    edits = project.table("edits")
    spark.sql(
        f"create or replace view {project.table('drafts')} as"
        f" select *, 'main' as branch, 'on' as history from {edits}"
    )
    project.history(
        "drafted",
        "{{ dbt_history.feature_states('" + project.table("drafts") + "',"
        " id=['space', 'branch', 'id'], payload=['v'], branches='nowhere.branches') }}",
        key=["space", "branch", "id"],
        convention="naksha",
    )
    add_states(project, "published")
    project.run("drafted", "published")

    refused = switch(
        project, "suspend", "drafted", check=False, writes=project.table("drafts"), space=None
    )
    for problem in (
        "drafted: its key has the column branch: a branch reads its base from the history of main",
        "drafted: it holds several spaces: name one",
        "its column history switches the history of spaces already",
    ):
        assert problem in refused

    # The log gets a column `history` later.
    switch(project, "suspend", "published")
    values = "(2, 0, 'PUT', 'roads', 'a', '2', 'app', timestamp'2024-01-02 00:00:00 UTC', 'on')"
    spark.sql(
        f"create or replace view {edits} as select * from values {values}"
        " as log(txn, position, action, space, id, v, app_id, at, history)"
    )
    message = project.run("published", check=False).message("published")
    assert "the history of spaces is switched in two ways" in message
    assert "in model: model.history_tests.published" in message


def write_drafts(project: Project, *writes: str) -> None:
    """Create the log `drafts`: transaction, branch, space, action, id, value and history."""
    project.spark.sql(f"create schema if not exists {project.schema}")
    project.spark.sql(
        f"create or replace view {project.table('drafts')} as"
        " select *, if(space = 'maps', 0, 1) as position, 'app' as app_id,"
        f" timestamp'2024-01-01 00:00:00 UTC' as at from values {', '.join(writes)}"
        " as log(txn, branch, space, action, id, v, history)"
    )


def add_drafts(project: Project, name: str) -> None:
    project.history(
        name,
        f"{{{{ dbt_history.feature_states('{project.table('drafts')}', id={DRAFTS_KEY},"
        f" payload=['v'], branches='{project.table('branches')}') }}}}",
        key=DRAFTS_KEY,
        convention="naksha",
        max_deleted_share=None,
    )


def test_a_space_with_branches_and_writes_without_history_is_refused(project: Project) -> None:
    add_drafts(project, "drafted")
    write_drafts(
        project,
        "(1, 'main', 'maps', 'PUT', 'f', '1', 'on')",
        "(2, 'main', 'maps', 'PUT', 'f', '2', 'off')",
        "(3, 'draft', 'maps', 'PUT', 'f', '3', null)",
        "(4, 'draft', 'roads', 'PUT', 'f', '4', 'on')",
        "(5, null, 'quiet', 'PUT', 'f', '5', 'off')",
    )
    message = project.run("drafted", check=False).message("drafted")
    assert "space maps: 1 writes without history, 1 on branches" in message
    assert "space roads" not in message
    assert "space quiet" not in message
    assert not project.spark.catalog.tableExists(project.table("drafted"))


@pytest.mark.thorough
def test_a_purge_without_history_finds_the_tombstone_beside_a_space_with_branches(
    project: Project,
) -> None:
    """
    txn         1        2        3        4        5
    maps   f    [ 1 ------------------------------------
           draft           base   [ 3 ------------------
    quiet  g    [ 1 --)| 2        off      off      purges the tombstone of 2
    """
    writes = [
        "(1, 'main', 'maps', 'PUT', 'f', '1', 'on')",
        "(1, 'main', 'quiet', 'PUT', 'g', '1', 'on')",
        "(2, 'main', 'quiet', 'DELETE', 'g', null, 'on')",
        "(3, 'draft', 'maps', 'PUT', 'f', '3', 'on')",
        "(3, 'main', 'quiet', 'PUT', 'g', '3', 'off')",
        "(4, 'main', 'quiet', 'DELETE', 'g', null, 'off')",
        "(5, 'main', 'quiet', 'PURGE', 'g', null, 'off')",
    ]

    def stored(name: str) -> list[tuple[Any, ...]]:
        names = ("branch", "space", "id", "v", "txn", "txn_next", "purged_txn")
        rows = [tuple(row[column] for column in names) for row in project.rows(name)]
        return sorted(rows, key=lambda row: (row[4], row[5] is None, row))

    add_drafts(project, "drafted")
    add_drafts(project, "late")
    write_drafts(project, *writes[:3])
    project.run("drafted")
    arguments = {
        "table": project.table("drafted"), "writes": project.table("drafts"), "branch": "draft",
        "branches": project.table("branches"), "convention": "naksha", "key": DRAFTS_KEY,
    }  # fmt: skip
    project.dbt("run-operation", "create_branch", "--args", json.dumps(arguments))
    for arrived in (5, 6, 7):
        write_drafts(project, *writes[:arrived])
        project.run("drafted", *(["late"] if arrived == 7 else []))

    expected: list[tuple[Any, ...]] = [
        ("main", "quiet", "g", "1", 1, 2, None),
        ("main", "maps", "f", "1", 1, None, None),
        ("main", "quiet", "g", "1", 2, 2, 5),
        ("draft", "maps", "f", "3", 3, None, None),
    ]
    assert stored("drafted") == expected
    assert stored("late") == expected
