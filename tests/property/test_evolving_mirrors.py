"""Random streams of tables that change their form, mirrored: every known state is in the mirror.

Columns are added, renamed, dropped and widened, keys change, the feed is switched off and on, the
history is suspended and resumed, tables are restored and recreated. One run of dbt takes the
tables of all streams. MIRROR_STREAMS and MIRROR_RUNS of the environment play more.

main     c1 --- c2 --- alter --- c3      | feed off --- c4 --- recreated |
mirror   first run     rows of c1 to c3  | one difference                |
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.operations import cell
from tests.support.project import Project

pytestmark = pytest.mark.thorough

STREAMS = int(os.environ.get("MIRROR_STREAMS", "8"))
RUNS = int(os.environ.get("MIRROR_RUNS", "6"))
SEED = int(os.environ.get("SEED", "1"))
TEXTS = (None, "", "NULL", "x", "y'")


@dataclass(eq=False)
class Column:
    """names: all it had, the present one last. The mirror has a column for each."""

    names: list[str]
    type: str

    @property
    def name(self) -> str:
        return self.names[-1]


Values = dict[Column, Any]
State = dict[int, Values]


class Stream:
    """A main table in Spark and in Python; the rows by id, without it.

    states    after each commit since the last run that changed rows
    is_whole  whether the mirror has each of them, not only the last
    """

    def __init__(self, spark: SparkSession, table: str, dice: random.Random) -> None:
        self.spark, self.table, self.dice = spark, table, dice
        self.is_mapped = dice.random() < 0.6
        self.columns = [Column(["v"], "string"), Column(["n"], "int")]
        self.names = 0
        self.rows: State = {}
        self.states: list[State] = []
        self.is_whole = True
        self.is_suspended = False
        self.has_feed = True
        self.restorable: dict[int, State] = {}
        self.create()

    def create(self) -> None:
        listed = ", ".join(f"`{column.name}` {column.type}" for column in self.columns)
        options = {
            "delta.enableChangeDataFeed": "true",
            "delta.enableInCommitTimestamps": "true",
            "delta.enableTypeWidening": "true",
        }
        if self.is_mapped:
            options["delta.columnMapping.mode"] = "name"
        properties = ", ".join(f"'{name}' = '{value}'" for name, value in options.items())
        self.spark.sql(
            f"create table {self.table} (id bigint, {listed}) using delta"
            f" tblproperties ({properties})"
        )
        self.rows, self.has_feed = {}, True
        self.restorable = {0: {}}

    def value(self, type_: str) -> Any:
        if type_ == "string":
            return self.dice.choice(TEXTS)
        return self.dice.choice([None, 0, 7, *([2**40] if type_ == "bigint" else [])])

    def listed(self, ids: list[int]) -> tuple[str, State]:
        """New rows as SQL and in Python."""
        rows = {id_: {column: self.value(column.type) for column in self.columns} for id_ in ids}
        text = " union all ".join(
            f"select {id_}L as id, "
            + ", ".join(f"{cell(row[one], one.type)} as `{one.name}`" for one in self.columns)
            for id_, row in rows.items()
        )
        return text, rows

    def write(self, statement: str, after: State) -> None:
        self.spark.sql(statement)
        if after != self.rows:
            self.states.append(after)
        self.rows = after
        last = self.spark.sql(f"describe history {self.table} limit 1").collect()[0].version
        self.restorable[last] = after

    def change(self) -> None:
        ids = self.dice.sample(range(1, 7), self.dice.randint(1, 3))
        kind = self.dice.choice(["merge", "merge", "delete", "update", "overwrite", "key"])
        there = sorted(self.rows)
        if kind == "merge" or not there:
            text, rows = self.listed(ids)
            self.write(
                f"merge into {self.table} as t using ({text}) as s on t.id = s.id"
                " when matched then update set * when not matched then insert *",
                {**self.rows, **rows},
            )
        elif kind == "delete":
            gone = self.dice.choice(there)
            left = {id_: row for id_, row in self.rows.items() if id_ != gone}
            self.write(f"delete from {self.table} where id = {gone}", left)
        elif kind == "update":
            column = self.dice.choice(self.columns)
            value = self.value(column.type)
            picked = ", ".join(map(str, ids))
            self.write(
                f"update {self.table} set `{column.name}` = {cell(value, column.type)}"
                f" where id in ({picked})",
                {
                    id_: {**row, column: value} if id_ in ids else row
                    for id_, row in self.rows.items()
                },
            )
        elif kind == "overwrite":
            text, rows = self.listed(ids)
            self.write(f"insert overwrite {self.table} {text}", rows)
        else:
            old, new = self.dice.choice(there), 10 + self.dice.randint(1, 3)
            if new not in self.rows:
                after = {id_: row for id_, row in self.rows.items() if id_ != old}
                after[new] = self.rows[old]
                self.write(f"update {self.table} set id = {new} where id = {old}", after)

    def evolve(self) -> None:
        """Add, widen, rename or drop a column."""
        numbers = [column for column in self.columns if column.type == "int"]
        kinds = ["add", *(["widen"] if numbers else [])]
        if self.is_mapped:
            kinds += ["rename", *(["drop"] if len(self.columns) > 2 else [])]
        kind = self.dice.choice(kinds)
        # A new name differs from all former ones, unless it is one of the same column; some need
        # quotes.
        self.names += 1
        is_odd = self.is_mapped and self.dice.random() < 0.5
        fresh = f"{'Odd ' if is_odd else ''}c{self.names}"
        if kind == "add":
            column = Column([fresh], self.dice.choice(["string", "int"]))
            self.spark.sql(f"alter table {self.table} add columns (`{fresh}` {column.type})")
            self.columns.append(column)
            self.rows = {id_: {**row, column: None} for id_, row in self.rows.items()}
        elif kind == "widen":
            column = self.dice.choice(numbers)
            self.spark.sql(f"alter table {self.table} alter column `{column.name}` type bigint")
            column.type = "bigint"
            # Without column mapping the feed cannot be read across the change.
            self.is_whole = self.is_whole and self.is_mapped
        elif kind == "rename":
            column = self.dice.choice(self.columns)
            former = [name for name in column.names if name != column.name]
            if former and self.dice.random() < 0.5:
                fresh = self.dice.choice(former)
            self.spark.sql(f"alter table {self.table} rename column `{column.name}` to `{fresh}`")
            column.names.append(fresh)
        else:
            column = self.columns.pop(self.dice.randrange(len(self.columns)))
            self.spark.sql(f"alter table {self.table} drop column `{column.name}`")
            self.rows = {
                id_: {one: value for one, value in row.items() if one is not column}
                for id_, row in self.rows.items()
            }
        self.restorable = {}

    def disturb(self) -> None:
        """Restore, switch the feed, or recreate the table: only the result is known."""
        kind = self.dice.choice(["restore", "feed", "recreate"])
        if kind == "restore" and self.restorable:
            version = self.dice.choice(sorted(self.restorable))
            self.write(
                f"restore table {self.table} to version as of {version}", self.restorable[version]
            )
        elif kind == "feed":
            self.has_feed = not self.has_feed
            self.restorable = {}
            self.spark.sql(
                f"alter table {self.table} set tblproperties"
                f" ('delta.enableChangeDataFeed' = '{str(self.has_feed).lower()}')"
            )
        else:
            self.spark.sql(f"drop table {self.table}")
            self.create()
            self.states.append({})
            self.change()
        self.is_whole = False

    def step(self) -> None:
        kind = self.dice.random()
        if kind < 0.65:
            self.change()
        elif kind < 0.9:
            self.evolve()
        else:
            self.disturb()
        time.sleep(0.003)


Row = dict[str, Any]


def prefixes(rows: list[Row]) -> Iterator[dict[int, Row]]:
    """The newest row of each item after each row of the mirror, without deleted items."""
    state: dict[int, Row] = {}
    for row in rows:
        if row["deleted"]:
            state.pop(row["id"], None)
        else:
            state[row["id"]] = row
        yield dict(state)


def value_of(row: Row, column: Column) -> Any:
    """A row of the mirror has the value under the name of its time."""
    return next((row[name] for name in column.names if row.get(name) is not None), None)


def shows(state: dict[int, Row], expected: State) -> bool:
    """Whether the items are the same, with the same values in the columns of the expected rows."""
    return state.keys() == expected.keys() and all(
        value_of(state[id_], column) == value
        for id_, row in expected.items()
        for column, value in row.items()
    )


def test_a_mirror_has_every_state_of_a_table_that_changes_its_form(
    project: Project, spark: SparkSession
) -> None:
    dice = random.Random(SEED)
    spark.sql(f"create schema {project.schema}")
    streams = {}
    for place in range(STREAMS):
        name = f"evolving_{place}"
        streams[name] = Stream(spark, project.table(f"main_{place}"), dice)
        relation = f"api.Relation.create(schema='{project.schema}', identifier='main_{place}')"
        project.model(
            f"{name}_hx",
            f"select * from {{{{ dbt_history.hx_rows({relation}, 'id') }}}}",
            materialized="history_append",
        )
    seen = dict.fromkeys(streams, 0)
    checked = whole = 0
    for number in range(RUNS):
        for name, stream in streams.items():
            if number and dice.random() < 0.15:
                kind = "resume" if stream.is_suspended else "suspend"
                stream.is_suspended = not stream.is_suspended
                stream.is_whole = False
                project.dbt(
                    "run-operation", f"{kind}_history",
                    "--args", f"{{table: {project.table(name)}_hx}}",
                )  # fmt: skip
            for _ in range(dice.randint(0, 4)):
                stream.step()
        project.run(*(f"{name}_hx" for name in streams))
        verified = project.dbt("run-operation", "verify_history", check=False)
        assert verified.success, f"seed {SEED}, run {number + 1}: {verified.log}"
        for name, stream in streams.items():
            what = f"seed {SEED}, {name}, run {number + 1}"
            own = f"main_{name.rpartition('_')[2]}_hx_id"
            rows = sorted(project.rows(f"{name}_hx"), key=lambda row: row[own])
            assert [row[own] for row in rows] == list(range(1, len(rows) + 1)), what
            if stream.is_suspended:
                assert len(rows) == seen[name], what
                continue
            states = [{}, *prefixes(rows)]
            checked += 1
            assert shows(states[-1], stream.rows), f"{what}: {states[-1]}, not {stream.rows}"
            if number and stream.is_whole and stream.has_feed:
                # The first run has no row for what changed before it.
                place = seen[name]
                for expected in stream.states:
                    found = [at for at in range(place, len(states)) if shows(states[at], expected)]
                    assert found, f"{what}: no row has the state {expected}"
                    place = found[0]
                    whole += 1
            # No commit is recorded twice.
            commits = sorted((row["mod_time"], row["id"]) for row in rows)
            assert all(one != other for one, other in pairwise(commits)), what
            stream.states, stream.is_whole = [], stream.has_feed
            seen[name] = len(rows)
    assert checked > STREAMS
    assert whole > STREAMS // 2
