"""Random changes of several tables, split into runs: every instant equals a replay of events."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.project import Project
from tests.support.rendering import Renderer
from tests.support.tables import assert_same_rows, data_frame, text_of

pytestmark = pytest.mark.thorough

COMMITS = 12
NUMBERS: dict[str, Any] = {"convention": "validity", "type": "bigint", "open_end": 2147483647}
FIVETRAN: dict[str, Any] = {"convention": "fivetran"}
TIMES: dict[str, Any] = {"convention": "validity"}
State = dict[str, str]


@dataclass
class Stream:
    """A table's changes.

    changes  rows of the change feed, each with its commit
    states   the table at each point of the axis by a replay: the state after its last commit
    """

    changes: list[dict[str, Any]]
    states: dict[Any, State]


def random_stream(seed: int, axis: str) -> Stream:
    """Inserts, updates and deletes of five keys; some commits have the time of the previous one."""
    dice = random.Random(seed)
    at: Any = 0 if axis == "bigint" else datetime(2024, 1, 1)
    state: State = {}
    stream = Stream([], {at: {}})
    for commit in range(1, COMMITS + 1):
        if commit == 1 or dice.random() < 0.8:
            at = commit if axis == "bigint" else at + timedelta(hours=1)
        mark = {"_commit_version": commit, "_commit_timestamp": at}
        for key in dice.sample("abcde", dice.randint(1, 4)):
            old, new = state.get(key), dice.choice([None, f"{key}{commit}", f"{key}{commit}"])
            kinds = {
                (False, True): [("insert", new)],
                (True, False): [("delete", old)],
                (True, True): [("update_preimage", old), ("update_postimage", new)],
            }.get((old is not None, new is not None), [])
            for kind, value in kinds:
                stream.changes.append({"_change_type": kind, "id": key, "v": value, **mark})
            if new is None:
                state.pop(key, None)
            else:
                state[key] = new
        stream.states[at] = dict(state)
    return stream


def create_view(spark: SparkSession, name: str, changes: list[dict[str, Any]], axis: str) -> None:
    types = {
        "id": "string",
        "v": "string",
        "_change_type": "string",
        "_commit_version": "bigint",
        "_commit_timestamp": axis,
    }
    data_frame(spark, changes, types).createOrReplaceTempView(f"{name}_changes")


def test_every_instant_equals_a_replay_of_the_events(
    project: Project, call: Renderer, spark: SparkSession
) -> None:
    tables: dict[str, tuple[str, dict[str, Any], Stream]] = {
        "numbered": ("bigint", NUMBERS, random_stream(1, "bigint")),
        "timed": ("timestamp", TIMES, random_stream(2, "timestamp")),
        "synced": ("timestamp", FIVETRAN, random_stream(3, "timestamp")),
    }
    for name, (_, convention, _) in tables.items():
        rows = f"dbt_history.batch_rows('{name}_changes', 'id', {convention})"
        project.history(
            name, f"select * from {{{{ {rows} }}}}", max_deleted_share=None, **convention
        )
    splits = sorted(random.Random(4).sample(range(1, COMMITS), 2))
    for first, last in zip([0, *splits], [*splits, COMMITS], strict=True):
        for name, (axis, _, stream) in tables.items():
            part = [row for row in stream.changes if first < row["_commit_version"] <= last]
            create_view(spark, name, part, axis)
        project.run(*tables)

    for name, (_, convention, stream) in tables.items():
        queries, expected = [], []
        for place, (at, state) in enumerate(stream.states.items()):
            query = call(
                "as_of", relation=project.table(name), at=text_of(at), convention=convention
            )
            queries.append(f"select {place} as place, id, v from {query} as found")
            expected += [{"place": place, "id": key, "v": v} for key, v in state.items()]
        found = [row.asDict() for row in spark.sql(" union all ".join(queries)).collect()]
        if convention == FIVETRAN:
            # A deleted version includes the instant of its deletion, for one millisecond.
            found, expected = without_deletions(found, stream), without_deletions(expected, stream)
        assert_same_rows(found, expected, ("place", "id", "v"), name)


def without_deletions(rows: list[dict[str, Any]], stream: Stream) -> list[dict[str, Any]]:
    """Rows except those of keys that are deleted at exactly this instant."""
    gone = {
        (row["_commit_timestamp"], row["id"])
        for row in stream.changes
        if row["_change_type"] == "delete"
    }
    points = list(stream.states)
    return [row for row in rows if (points[row["place"]], row["id"]) not in gone]
