"""The days of the examples whose main tables change: users' statements, then a run of dbt.

`scripts/days/<system>` has one SQL file per day. Directives in a file:

    -- user: NAME          user of the following commits
    -- transaction: NAME   transaction of the following commits, until the next user
    -- download: N NAME    a user downloads all observations, and the portal keeps a copy
    -- dbt: COMMAND        run dbt now; such a day has no run of dbt at its end
    -- refused: TEXT       the next dbt command must fail with this text in its message

The main tables and the models' tables are dropped before the first day (`drop_tables`). The last
day has no run of dbt at its end: `build.py` builds the system's models then.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
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
# What the runs write into the commits of the history tables.
ENVIRONMENT = ("DBT_HISTORY_APPLICATION", "DBT_HISTORY_MESSAGE")
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
    refusal: str | None

    @property
    def arguments(self) -> list[str]:
        if self.text.startswith("run-operation "):
            command, name, given = self.text.split(" ", 2)
            return [command, name, "--args", given]
        return self.text.split()


@dataclass
class Output:
    """The output of a dbt command: one line per model, and errors."""

    rows: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return "\n".join(self.errors).strip()


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


def run_dbt(command: Command, manifest: Manifest | None, options: Sequence[str]) -> Output:
    """Run a dbt command on the project as parsed, or parse it. Raises DayError."""
    output = Output()

    def keep_error(event: Any) -> None:
        if event.info.level == "error":
            output.errors.append(event.info.msg)

    runner = dbtRunner(manifest, callbacks=[keep_error])
    # A refusal that is expected must not look like an error on the terminal. Nobody reads the
    # manifest of a day.
    given = ["--log-level", "none", "--no-write-json"]
    done = runner.invoke([*given, *command.arguments, *options])
    if isinstance(done.exception, KeyboardInterrupt):
        raise done.exception
    if done.exception is not None:
        output.errors.append(str(done.exception))
    if command.refusal is None and not done.success:
        raise DayError(f"{command.text}\n{output}")
    if command.refusal is not None and (done.success or command.refusal not in str(output)):
        raise DayError(f"{command.text}\ndid not fail with: {command.refusal}\n{output}")
    if command.refusal is None and command.arguments[0] == "run":
        for result in done.result.results:  # type: ignore[union-attr]
            output.rows.append(f"{result.node.name} {str(result.message).split(' ')[0]}")
    return output


def steps_of(system: str, path: Path) -> list[Statement | Command]:
    """The steps of a day, with the run of dbt at its end."""
    day = list(steps(path.read_text(encoding="utf-8")))
    if not any(isinstance(step, Command) for step in day) and path != days(system)[-1]:
        # Views and tables derived from the histories are built after the last day.
        logs = f"path:{folder_of(system)},config.materialized:history_append"
        day.append(Command(f"run --select {logs}", None))
    return day


def play(
    spark: SparkSession,
    system: str,
    path: Path,
    manifest: Manifest | None,
    options: Sequence[str] = (),
) -> str:
    """Run the steps of a day, with options of dbt.

    Returns the number of statements and the models' results.
    """
    os.environ |= dict(zip(ENVIRONMENT, ("days", path.stem), strict=True))
    day = steps_of(system, path)
    rows: list[str] = []
    for step in day:
        if isinstance(step, Command):
            rows += run_dbt(step, manifest, options).rows
        else:
            commit(spark, step)
    count = sum(isinstance(step, Statement) for step in day)
    return f"{count} statements" + (f"; rows: {', '.join(rows)}" if rows else "")
