"""What may be done to tables with numbered versions and to feature states beside writing them."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import SparkSession

from tests.support.project import Project

FEED = """(
    select * from values
        ('a', 'one', 'insert', 1L), ('b', 'two', 'insert', 1L),
        ('a', 'three', 'update_postimage', 2L), ('a', 'one', 'update_preimage', 2L),
        ('b', 'two', 'delete', 3L), ('c', 'four', 'insert', 3L)
    as feed(id, v, _change_type, _commit_version)
    lateral view explode(array(timestamp'2024-01-01')) times as _commit_timestamp
)"""


def test_changes_become_numbered_versions_and_can_be_rewound(
    project: Project, spark: SparkSession
) -> None:
    feed = " ".join(FEED.split())
    project.history(
        "numbered",
        f'select * from {{{{ dbt_history.batch_rows("{feed}", "id", "naksha", '
        'at="_commit_version") }} as staged',
        convention="naksha",
        max_deleted_share=None,
    )
    project.run("numbered")
    columns = ("id", "v", "txn", "txn_next")
    before = {tuple(row[name] for name in columns) for row in project.rows("numbered")}
    arguments = {"table": "numbered", "to": 1}
    project.dbt("run-operation", "rewind", "--args", json.dumps(arguments))

    rows = project.rows("numbered")
    assert before == {
        ("a", "one", 1, 2), ("b", "two", 1, 3), ("a", "three", 2, None), ("c", "four", 3, None),
    }  # fmt: skip
    now = {(row["id"], row["v"], row["txn"]) for row in rows if row["txn_next"] is None}
    assert now == {("a", "one", 4), ("b", "two", 4)}
    # History remains, and every version of a record has a number of its own.
    assert {row["v"] for row in rows} == {"one", "two", "three", "four"}
    assert len({(row["id"], row["i"]) for row in rows}) == len(rows) == 6


def test_a_run_that_writes_several_tables_is_one_transaction(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.history(
        "versions",
        "select 'upsert' as _stage, 1 as id, timestamp'2024-01-01' as valid_from, "
        "cast(null as timestamp) as valid_to",
        convention="validity",
    )
    project.model("entries", "select 1 as id union all select 2", materialized="history_append")
    project.model(
        "runs",
        "select * from {{ dbt_history.history_runs([ref('versions'), ref('entries')]) }} as runs",
        materialized="table",
    )
    monkeypatch.setenv("DBT_HISTORY_AUTHOR", "ann")
    monkeypatch.setenv("DBT_HISTORY_APPLICATION", "nightly")
    monkeypatch.setenv("DBT_HISTORY_MESSAGE", "it's the first load")
    project.run("versions", "entries", "runs")

    rows = project.rows("runs")
    assert len({row["invocation_id"] for row in rows}) == 1
    said = {(row["author"], row["application"], row["message"]) for row in rows}
    assert said == {("ann", "nightly", "it's the first load")}
    counts = {row["table"]: (row["commits"], row["inserted"], row["deleted"]) for row in rows}
    assert counts == {"versions": (1, 1, 0), "entries": (1, 2, 0)}


NESTED = [
    ("x", 1, "CREATE", None, "u1", '{"id": "x", "a": {"b": [1, {"c": 1}], "~/": 1}, "n": 1}'),
    ("x", 2, "UPDATE", "u1", "u2", '{"id": "y", "a": {"b": [1, {"c": null}, 3]}, "n": "1"}'),
    ("x", 3, "UPDATE", "u2", "u3", '{"a": {"b": {"c": 1}}, "o": {"p": 1}}'),
    ("x", 4, "DELETE", "u3", "u4", '{"a": 1}'),
    ("x", 5, "UPDATE", "gone", "u5", '{"a": 1}'),
    ("x", 6, "UPDATE", "u5", "u6", '{"a": 1}'),
]


def test_a_patch_leads_back_to_the_predecessor(project: Project, spark: SparkSession) -> None:
    rows = ", ".join(
        f"('{id_}', {txn}L, named_struct('action', '{action}', 'puuid', "
        f"{'null' if puuid is None else repr(puuid)}, 'uuid', '{uuid}'), '{payload}')"
        for id_, txn, action, puuid, uuid, payload in NESTED
    )
    spark.sql(
        "create or replace temporary view nested_states as select id, txn, txn as i, "
        f"`@ns:com:here:xyz`, payload from values {rows} "
        "as s(id, txn, `@ns:com:here:xyz`, payload)"
    )
    project.model(
        "activity",
        "select i, patch from {{ dbt_history.feature_activity('nested_states') }} as activity",
        materialized="table",
    )
    project.run("activity")

    got = {row["i"]: row["patch"] and json.loads(row["patch"]) for row in project.rows("activity")}
    assert got == {
        1: None,
        2: [
            {"op": "replace", "path": "/a/b/1/c", "value": 1},
            {"op": "remove", "path": "/a/b/2"},
            {"op": "add", "path": "/a/~0~1", "value": 1},
            {"op": "replace", "path": "/n", "value": 1},
        ],
        3: [
            {"op": "replace", "path": "/a/b", "value": [1, {"c": None}, 3]},
            {"op": "add", "path": "/n", "value": "1"},
            {"op": "remove", "path": "/o"},
        ],
        4: None,
        5: None,
        6: [],
    }
