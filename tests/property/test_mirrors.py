"""Random operations on several tables, mirrored at random moments, against the oracle.

`MIRROR_SEEDS=20` runs more, `MIRROR_COMMITS=100` longer ones; a failure names its seed.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.oracle.mirrors import Commit, Key, Link, Main, Row, mirror
from tests.support.operations import cell
from tests.support.project import Project

pytestmark = pytest.mark.thorough

SEEDS = range(int(os.environ.get("MIRROR_SEEDS", "1")))
COMMITS = int(os.environ.get("MIRROR_COMMITS", "24"))
TYPES = {"id": "bigint", "a_id": "bigint", "b_id": "bigint", "up_id": "bigint", "v": "string"}
A = Main("a", ("id",))
B = Main("b", ("id",), (Link(("a_id",), "a", "a_hx_id"),))
C = Main(
    "c",
    ("id",),
    (
        Link(("a_id",), "a", "a_hx_id"),
        Link(("b_id",), "b", "b_hx_id"),
        Link(("up_id",), "c", "up_hx_id"),
    ),
)
COLUMNS = {
    "a": ("id", "v"),
    "b": ("id", "a_id", "v"),
    "c": ("id", "a_id", "b_id", "up_id", "v"),
}


class MirroredTables:
    """The same main tables in Spark and in Python."""

    def __init__(self, spark: SparkSession, schema: str, choice: random.Random) -> None:
        self.spark, self.schema, self.choice = spark, schema, choice
        self.states: dict[str, dict[Key, Row]] = {name: {} for name in COLUMNS}
        self.commits: list[Commit] = []
        spark.sql(f"create schema if not exists {schema}")
        for name, columns in COLUMNS.items():
            listed = ", ".join(f"{column} {TYPES[column]}" for column in columns)
            spark.sql(
                f"create table {schema}.{name} ({listed}) using delta tblproperties"
                " ('delta.enableChangeDataFeed' = 'true',"
                " 'delta.enableInCommitTimestamps' = 'true')"
            )

    def row(self, table: str, id_: int) -> Row:
        """A row with random values; references may be NULL or dangling."""
        number = self.choice.choice([None, 1, 2, 3, 4, 9])
        values = {column: self.choice.choice([number, 1, 2, 3]) for column in COLUMNS[table]}
        return {**values, "id": id_, "v": self.choice.choice([None, "", "NULL", "x", "y'"])}

    def values(self, table: str, rows: list[Row]) -> str:
        return " union all ".join(
            "select "
            + ", ".join(f"{cell(row[name], TYPES[name])} as {name}" for name in COLUMNS[table])
            for row in rows
        )

    def step(self) -> None:
        """Make one commit of a random kind."""
        table = self.choice.choice(["a", "a", "b", "b", "c"])
        kinds: list[Callable[[str], tuple[str, dict[Key, Row], set[Key]]]] = [
            self.insert, self.insert, self.update, self.update, self.delete,
            self.merge, self.overwrite, self.move,
        ]  # fmt: skip
        statement, after, touched = self.choice.choice(kinds)(table)
        time.sleep(0.003)
        self.spark.sql(statement.format(f"{self.schema}.{table}"))
        self.states[table] = after
        self.commits.append(Commit(table, dict(after), frozenset(touched)))

    def some(self, table: str, number: int = 2) -> list[Key]:
        there = sorted(self.states[table])
        return self.choice.sample(there, min(len(there), number))

    def new_rows(self, table: str, number: int) -> list[Row]:
        free = [id_ for id_ in range(1, 9) if (id_,) not in self.states[table]]
        return [self.row(table, id_) for id_ in self.choice.sample(free, min(len(free), number))]

    def insert(self, table: str) -> tuple[str, dict[Key, Row], set[Key]]:
        rows = self.new_rows(table, self.choice.randint(1, 3))
        if not rows:
            return self.delete(table)
        after = {**self.states[table], **{(row["id"],): row for row in rows}}
        return f"insert into {{}} {self.values(table, rows)}", after, set()

    def update(self, table: str) -> tuple[str, dict[Key, Row], set[Key]]:
        keys = self.some(table)
        if not keys:
            return self.insert(table)
        value = self.choice.choice([None, "x", "z"])
        listed = ", ".join(str(key[0]) for key in keys)
        after = dict(self.states[table]) | {
            key: {**self.states[table][key], "v": value} for key in keys
        }
        return (
            f"update {{}} set v = {cell(value, 'string')} where id in ({listed})",
            after,
            set(keys),
        )

    def delete(self, table: str) -> tuple[str, dict[Key, Row], set[Key]]:
        keys = self.some(table, 1)
        if not keys:
            return self.insert(table)
        after = {key: row for key, row in self.states[table].items() if key not in keys}
        return f"delete from {{}} where id = {keys[0][0]}", after, set()

    def merge(self, table: str) -> tuple[str, dict[Key, Row], set[Key]]:
        known = [self.row(table, key[0]) for key in self.some(table)]
        rows = [*known, *self.new_rows(table, 1)]
        if not rows:
            return self.delete(table)
        statement = (
            f"merge into {{0}} as main using ({self.values(table, rows)}) as new"
            " on main.id = new.id when matched then update set * when not matched then insert *"
        )
        after = {**self.states[table], **{(row["id"],): row for row in rows}}
        return statement, after, {(row["id"],) for row in known}

    def overwrite(self, table: str) -> tuple[str, dict[Key, Row], set[Key]]:
        """Overwrite the table: some rows unchanged, some changed, some deleted, some new."""
        rows = [row for row in self.states[table].values() if self.choice.random() < 0.6]
        rows += [self.row(table, row["id"]) for row in rows[:1]]
        rows = list({row["id"]: row for row in [*rows, *self.new_rows(table, 1)]}.values())
        if not rows:
            return self.insert(table)
        after: dict[Key, Row] = {(row["id"],): row for row in rows}
        return f"insert overwrite {{}} {self.values(table, rows)}", after, set()

    def move(self, table: str) -> tuple[str, dict[Key, Row], set[Key]]:
        """Change the key of a row: a delete under the old key, an insert under the new one."""
        keys, new = self.some(table, 1), self.new_rows(table, 1)
        if not keys or not new:
            return self.update(table)
        id_ = new[0]["id"]
        after = {key: row for key, row in self.states[table].items() if key != keys[0]}
        after[(id_,)] = {**self.states[table][keys[0]], "id": id_}
        return f"update {{}} set id = {id_} where id = {keys[0][0]}", after, set()


def write_models(project: Project, mains: str, name: str) -> list[str]:
    """Mirrors of the three tables, in their own schema."""
    names = []
    for main in (A, B, C):
        links = ", ".join(
            f"{{'column': '{link.columns[0]}', 'key': 'id', 'name': '{link.name}', 'history': "
            + ("this" if link.table == main.name else f"ref('{name}_{link.table}')")
            + "}"
            for link in main.links
        )
        relation = f"api.Relation.create(schema='{mains}', identifier='{main.name}')"
        project.model(
            f"{name}_{main.name}",
            f"select * from {{{{ dbt_history.hx_rows({relation}, 'id', references=[{links}]) }}}}",
            materialized="history_append",
        )
        names.append(f"{name}_{main.name}")
    return names


@pytest.mark.parametrize("seed", SEEDS)
def test_a_mirror_has_the_same_rows_whenever_it_runs(
    project: Project, spark: SparkSession, warehouse: Path, seed: int
) -> None:
    choice = random.Random(seed)
    mains = f"{project.schema}_main"
    main_tables = MirroredTables(spark, mains, choice)
    sets = {name: write_models(project, mains, name) for name in ("often", "seldom")}
    moments = {
        "often": {0, *choice.sample(range(1, COMMITS), 3), COMMITS},
        "seldom": {0, choice.randint(1, COMMITS - 1), COMMITS},
    }

    for number in range(COMMITS + 1):
        due = [name for name, at in moments.items() if number in at]
        # Sometimes only one table runs: the others follow later, with the links of that time.
        models = [model for name in due for model in sets[name]]
        if models and number not in (0, COMMITS) and choice.random() < 0.5:
            models = choice.sample(models, len(models) // 2)
        if models:
            project.run(*models)
        if number < COMMITS:
            main_tables.step()

    expected = mirror((A, B, C), main_tables.commits)
    for name in sets:
        for main in (A, B, C):
            own = f"{main.name}_hx_id"
            got = spark.table(project.table(f"{name}_{main.name}")).drop("mod_time", "mod_user")
            rows = [row.asDict() for row in got.orderBy(own).collect()]
            assert rows == expected[main.name], f"seed {seed}, {name}, {main.name}"
    spark.sql(f"drop schema {mains} cascade")
