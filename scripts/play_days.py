"""The days of the examples whose main tables change: users' statements, then a run of dbt.

`scripts/days/<system>` has one SQL file per day. Directives in a file:

    -- user: NAME          user of the following commits
    -- transaction: NAME   transaction of the following commits, until the next user
    -- download: N NAME    a user downloads all observations, and the portal keeps a copy
    -- dbt: COMMAND        run dbt now
    -- refused: TEXT       the next dbt command must fail with this text in its message

A day whose last step is a statement has a run of the system's logs at its end. `play` runs the
statements; its caller runs dbt, for several systems at once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import sqlparse
from dbt.cli.main import dbtRunner
from dbt.contracts.graph.manifest import Manifest
from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parent.parent
DAYS = ROOT / "scripts/days"
MODELS = ROOT / "models/examples"
SCHEMA = "dbt_history"
USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
DIRECTIVE = re.compile(r"^-- (user|transaction|download|dbt|refused): (.+)$", re.MULTILINE)
# Folders of the models that a system's days build, if not the whole folder of the system.
MODEL_FOLDERS = {"naksha": "naksha/branches"}
COPY_DOWNLOADED_ROWS = """
    insert into crmp.downloaded_rows
    select
        {number},
        obs_raw.obs_raw_id,
        meta_network.network_name,
        meta_station.native_id,
        meta_history.station_name,
        meta_history.elevation_m,
        meta_vars.variable_name,
        meta_vars.unit,
        obs_raw.observed_at,
        obs_raw.datum
    from crmp.obs_raw
    inner join crmp.meta_vars on obs_raw.vars_id = meta_vars.vars_id
    inner join crmp.meta_history on obs_raw.history_id = meta_history.history_id
    inner join crmp.meta_station on meta_history.station_id = meta_station.station_id
    inner join crmp.meta_network on meta_station.network_id = meta_network.network_id
"""


class DayError(Exception):
    """A dbt command failed, or one that should fail did not. Has dbt's message."""


@dataclass(frozen=True)
class Statement:
    """One statement with the user metadata of its commit."""

    sql: str
    user: str
    transaction: str | None

    @property
    def metadata(self) -> str:
        fields = {"user": self.user, "transaction": self.transaction}
        return json.dumps({name: value for name, value in fields.items() if value})


@dataclass(frozen=True)
class Command:
    """The arguments of a dbt command, and the text it must fail with, if any."""

    text: str
    refusal: str | None = None

    @property
    def is_run(self) -> bool:
        return self.text.startswith("run ")

    @property
    def nodes(self) -> list[str]:
        """What a run selects."""
        return self.text.removeprefix("run --select ").split()

    @property
    def arguments(self) -> list[str]:
        if self.text.startswith("run-operation "):
            command, name, given = self.text.split(" ", 2)
            return [command, name, "--args", given]
        return self.text.split()


def steps(text: str) -> Iterator[Statement | Command]:
    """The steps of a day in order; a download consists of two statements of the portal."""
    user, transaction, refusal = "owner", None, None
    pieces = DIRECTIVE.split(text)
    for word, value, sql in zip(["", *pieces[1::3]], ["", *pieces[2::3]], pieces[::3], strict=True):
        if word == "user":
            user, transaction = value, None
        elif word == "transaction":
            transaction = value
        elif word == "refused":
            refusal = value
        elif word == "dbt":
            yield Command(value, refusal)
            refusal = None
        elif word == "download":
            number, name = value.split()
            made = f"insert into crmp.downloads select {number}, '{name}', current_timestamp()"
            yield Statement(made, "portal", None)
            yield Statement(COPY_DOWNLOADED_ROWS.format(number=number), "portal", None)
        for statement in sqlparse.split(sqlparse.format(sql, strip_comments=True)):
            if statement.strip(" ;\n"):
                yield Statement(statement.rstrip(" ;\n"), user, transaction)


def systems() -> list[str]:
    return sorted(path.name for path in DAYS.iterdir())


def days(system: str) -> list[Path]:
    return sorted((DAYS / system).glob("*.sql"))


def folder_of(system: str) -> Path:
    """The folder of the models that a system's days build, in the project."""
    return (MODELS / MODEL_FOLDERS.get(system, system)).relative_to(ROOT)


def drop_tables(spark: SparkSession, system: str) -> None:
    """Drop the main tables, the models' tables and their marks."""
    spark.sql(f"drop database if exists {system} cascade")
    drop_models(spark, {path.stem for path in (ROOT / folder_of(system)).glob("*.sql")})


def drop_models(spark: SparkSession, made: Collection[str]) -> None:
    """Drop tables of the examples' schema and their marks."""
    spark.sql(f"create database if not exists {SCHEMA}")
    for row in spark.sql(f"show tables in {SCHEMA}").collect():
        if row.tableName in made:
            kind = spark.catalog.getTable(f"{SCHEMA}.{row.tableName}").tableType
            spark.sql(f"drop {'view' if kind == 'VIEW' else 'table'} {SCHEMA}.{row.tableName}")
        elif row.tableName == "history_marks":
            names = ", ".join(f"'{name}'" for name in sorted(made))
            spark.sql(f"delete from {SCHEMA}.history_marks where table_name in ({names})")


def commit(spark: SparkSession, statement: Statement) -> None:
    """Run a user's statement."""
    spark.conf.set(USER_METADATA, statement.metadata)
    try:
        spark.sql(statement.sql)
    finally:
        spark.conf.unset(USER_METADATA)


def run_dbt(command: Command, manifest: Manifest | None, options: Sequence[str]) -> None:
    """Run a dbt command on the project as parsed, or parse it. Raises DayError."""
    errors: list[str] = []

    def keep_error(event: Any) -> None:
        if event.info.level == "error":
            errors.append(event.info.msg)

    runner = dbtRunner(manifest, callbacks=[keep_error])
    # A refusal that is expected must not look like an error on the terminal. Nobody reads the
    # manifest of a day.
    given = ["--log-level", "none", "--no-write-json"]
    done = runner.invoke([*given, *command.arguments, *options])
    if isinstance(done.exception, KeyboardInterrupt):
        raise done.exception
    if done.exception is not None:
        errors.append(str(done.exception))
    output = "\n".join(errors).strip()
    if command.refusal is None and not done.success:
        raise DayError(f"{command.text}\n{output}")
    if command.refusal is not None and (done.success or command.refusal not in output):
        raise DayError(f"{command.text}\ndid not fail with: {command.refusal}\n{output}")


def steps_of(system: str, path: Path) -> list[Statement | Command]:
    """The steps of a day, with the run of dbt at its end."""
    day = list(steps(path.read_text(encoding="utf-8")))
    if not isinstance(day[-1], Command):
        # Views and tables derived from the histories are built after the last day.
        day.append(Command(f"run --select {' '.join(logs(system))}"))
    return day


def nodes_of_day(system: str, path: Path) -> list[str]:
    """The names of the nodes that a day's runs of dbt build, once for each run."""
    commands = [step for step in steps_of(system, path) if isinstance(step, Command)]
    return [name for command in commands if command.is_run for name in command.nodes]


def logs(system: str) -> list[str]:
    """The names of the models that a run of the system's logs builds."""
    models = sorted((ROOT / folder_of(system)).glob("*.sql"))
    return [path.stem for path in models if "materialized='history_append'" in path.read_text()]


def play(
    spark: SparkSession, system: str, played: Callable[[Path, int, float], None]
) -> Iterator[Command]:
    """Run the users' statements of a system, up to each dbt command, which the caller runs.

    played  is told the day, and the number and the seconds of the statements before a command
    """
    for path in days(system):
        began, count = monotonic(), 0
        for step in steps_of(system, path):
            if isinstance(step, Statement):
                commit(spark, step)
                count += 1
                continue
            if count:
                played(path, count, monotonic() - began)
            yield step
            began, count = monotonic(), 0
