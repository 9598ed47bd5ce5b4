"""Random changes of tables, whose `materialized='history'` shows the states from before.

One run of dbt takes all tables of a test. RUNS and HISTORIES of the environment play more.
"""

from __future__ import annotations

import os
import random
import time
from datetime import datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.functional.test_history import FEED, expected, model
from tests.support.project import Project
from tests.support.tables import literal

pytestmark = pytest.mark.thorough

TABLES = int(os.environ.get("HISTORIES", "6"))
RUNS = int(os.environ.get("RUNS", "5"))
SEED = int(os.environ.get("SEED", "1"))
CONVENTIONS = {
    "validity": ("valid_from", "valid_to"),
    "fivetran": ("_fivetran_start", "_fivetran_end"),
}
VALUES = (None, "", "NULL", "a", "b", "it's")
EPOCH = datetime(2024, 1, 1)
State = list[tuple[int, str | None, int | None]]


def holds(row: dict[str, Any], convention: str, at: datetime) -> bool:
    """Whether the version holds at an instant; the ends of `fivetran` belong to the period."""
    start, end = CONVENTIONS[convention]
    until = row[end]
    return row[start] <= at and (
        until is None or at < until or (convention == "fivetran" and at == until)
    )


def change(spark: SparkSession, table: str, dice: random.Random) -> None:
    """One statement that changes the table."""
    id_, value, number = dice.randint(1, 5), literal(dice.choice(VALUES)), dice.choice("01")
    kind = dice.random()
    if kind < 0.4:
        spark.sql(
            f"merge into {table} as t using (select {id_}L as id, cast({value} as string) as v,"
            f" {number} as n) as s on t.id = s.id when matched then update set *"
            " when not matched then insert *"
        )
    elif kind < 0.6:
        spark.sql(f"delete from {table} where id = {id_}")
    elif kind < 0.7:
        spark.sql(f"update {table} set v = {value} where id <= {id_}")
    elif kind < 0.75:
        spark.sql(f"delete from {table}")
    elif kind < 0.85:
        rows = [
            f"({key}L, cast({literal(dice.choice(VALUES))} as string), cast(null as int))"
            for key in dice.sample(range(1, 6), dice.randint(1, 5))
        ]
        spark.sql(f"insert overwrite {table} values {', '.join(rows)}")
    elif kind < 0.92:
        last = spark.sql(f"describe history {table} limit 1").collect()[0].version
        spark.sql(f"restore table {table} to version as of {dice.randint(0, last)}")
    else:
        spark.sql(f"optimize {table}")


def state_of(spark: SparkSession, table: str) -> State:
    return sorted(map(tuple, spark.sql(f"select id, v, n from {table}").collect()), key=repr)


def seen_states(
    spark: SparkSession, table: str, first: datetime, last: datetime
) -> list[tuple[datetime, State]]:
    """What Delta's own log says of each commit between two runs; those at one time have no order.

    commits   .--- c1 ------ c2 c2' ------ c3 ---.
    states    |    c1        -             c3    |
    run       first                              last
    """
    log = sorted(spark.sql(f"describe history {table}").collect(), key=lambda row: row.version)
    times = [row.timestamp for row in log]
    return [
        (row.timestamp, state_of(spark, f"{table} version as of {row.version}"))
        for row in log
        if first < row.timestamp < last and times.count(row.timestamp) == 1
    ]


def test_every_state_that_a_run_or_the_feed_saw_is_shown(
    project: Project, spark: SparkSession
) -> None:
    dice = random.Random(SEED)
    spark.sql(f"create schema {project.schema}")
    kinds = {
        f"h{place}": (dice.random() < 0.7, dice.choice(list(CONVENTIONS)))
        for place in range(TABLES)
    }
    for name, (has_feed, convention) in kinds.items():
        table = project.table(f"source_{name}")
        options = FEED if has_feed else ""
        spark.sql(f"create table {table} (id bigint, v string, n int) using delta {options}")
        history: dict[str, Any] = {"convention": convention, "max_deleted_share": None}
        model(project, name, f"select * from {table}", **history)
    states: dict[str, list[tuple[datetime, State]]] = {name: [] for name in kinds}
    for _ in range(RUNS):
        for name in kinds:
            for _ in range(dice.randint(0, 3)):
                change(spark, project.table(f"source_{name}"), dice)
        chosen = [name for name in kinds if dice.random() < 0.8] or list(kinds)
        project.run(*chosen)
        now = spark.sql("select current_timestamp()").collect()[0][0]
        for name in chosen:
            states[name].append((now, state_of(spark, project.table(f"source_{name}"))))
        time.sleep(0.01)

    for name, (has_feed, convention) in kinds.items():
        runs = states[name]
        if has_feed and runs:
            table = project.table(f"source_{name}")
            runs += seen_states(spark, table, runs[0][0], runs[-1][0])
        rows = project.rows(name) if runs else []
        for at, state in runs:
            found = [row for row in rows if holds(row, convention, at)]
            shown = sorted(((row["id"], row["v"], row["n"]) for row in found), key=repr)
            assert shown == state, f"seed {SEED}, {name}, feed {has_feed}, {at}"


def random_states(dice: random.Random) -> list[list[tuple[int, str, int]]]:
    """What a source shows before each run: id, value, minute; some rows stay from before."""
    states: list[list[tuple[int, str, int]]] = []
    for _ in range(RUNS):
        rows = [row for row in states[-1] if dice.random() < 0.5] if states else []
        taken = {(id_, at) for id_, _, at in rows}
        for id_ in range(1, 5):
            for at in dice.sample(range(1, 30), dice.choice((0, 1, 1, 1, 2))):
                if (id_, at) not in taken:
                    rows.append((id_, dice.choice("abc"), at))
        states.append(dice.sample(rows, len(rows)))
    return states


def test_random_times_of_rows_find_their_places(project: Project, spark: SparkSession) -> None:
    """With `updated_at`, compared with a dictionary of points of each record."""
    dice = random.Random(SEED)
    spark.sql(f"create schema {project.schema}")
    kinds = {f"h{place}": dice.choice(list(CONVENTIONS)) for place in range(TABLES)}
    streams = {name: random_states(dice) for name in kinds}
    for name, convention in kinds.items():
        table = project.table(f"source_{name}")
        spark.sql(f"create table {table} (id bigint, v string, at timestamp) using delta")
        history: dict[str, Any] = {"convention": convention, "max_deleted_share": None}
        model(project, name, f"select * from {table}", **history, config={"updated_at": "at"})
    clocks: list[datetime] = []

    def place(moment: datetime) -> int:
        """A minute of `updated_at`, or 1000 times the run that gave the time."""
        minutes = (moment - EPOCH) / timedelta(minutes=1)
        return int(minutes) if minutes < 1000 else 1000 * (sum(moment > c for c in clocks) + 1)

    for number in range(RUNS):
        for name, states in streams.items():
            cells = [
                f"({id_}, '{value}', timestamp'2024-01-01 00:{at:02}:00')"
                for id_, value, at in states[number]
            ]
            table = project.table(f"source_{name}")
            rows = f"values {', '.join(cells)}" if cells else f"select * from {table} where false"
            spark.sql(f"insert overwrite {table} {rows}")
        project.run(*kinds)
        for name, states in streams.items():
            start, end = CONVENTIONS[kinds[name]]
            found = [row for row in project.rows(name) if row[end] is None or row[end] > row[start]]
            seen = sorted((row["id"], row["v"], place(row[start])) for row in found)
            what = f"seed {SEED}, {name}, run {number}"
            assert seen == sorted(expected(states[: number + 1])), what
            current = {row["id"] for row in found if row[end] is None or row[end].year == 9999}
            assert current == {id_ for id_, _, _ in states[number]}, what
        clocks.append(datetime.now())
