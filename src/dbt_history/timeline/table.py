"""Reads from Spark what a chart shows: some records of a table, and the table's log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark's own guide uses
from pyspark.sql.types import ArrayType, BinaryType, MapType, StructType

from dbt_history.commit_log import Entry, read_log, recorded_key
from dbt_history.conventions import Convention, detect_convention, missing
from dbt_history.timeline.commits import Commit, Identity, read_commit, with_arrivals
from dbt_history.timeline.errors import TimelineError
from dbt_history.timeline.versions import Version, read_versions

MAX_RECORDS = 20
MAX_VERSIONS = 500
MAX_COMMITS = 40


@dataclass(frozen=True)
class Track:
    """One table in the chart: its records and commits (empty if it has no log).

    is_cut is true if the table has more records than are shown.
    """

    table: str
    key: tuple[str, ...]
    convention: Convention
    versions: tuple[Version, ...]
    commits: tuple[Commit, ...]
    is_cut: bool = False


def quoted(name: str) -> Column:
    return F.col(f"`{name.replace('`', '``')}`")


def axis_value(column: Column, kind: str) -> Column:
    """A period column as a number on the axis."""
    if kind.startswith("timestamp"):
        return F.unix_micros(column.cast("timestamp"))
    return F.unix_date(column) if kind == "date" else column.cast("bigint")


def as_text(frame: DataFrame, name: str) -> Column:
    kind = frame.schema[name].dataType
    if isinstance(kind, StructType | ArrayType | MapType):
        return F.to_json(quoted(name))
    return F.base64(quoted(name)) if isinstance(kind, BinaryType) else quoted(name).cast("string")


def columns_of(frame: DataFrame) -> dict[str, str]:
    """Spark types by lower-case name."""
    return {name.lower(): kind for name, kind in frame.dtypes}


def as_periods(frame: DataFrame, convention: Convention, key: Sequence[str]) -> DataFrame:
    """The columns that `read_version` reads: key, since, until, active, order."""
    kinds = columns_of(frame)
    start = axis_value(quoted(convention.start), kinds[convention.start.lower()])
    order = (
        F.coalesce(quoted(convention.version_id).try_cast("bigint"), F.lit(0))
        if convention.version_id
        else F.lit(0)
    )
    begins = F.lit(True)
    if convention.end is None:
        begins = F.expr(convention.begins or "true")
        of_record = Window.partitionBy(*map(quoted, key)).orderBy(start, order, begins)
        end = F.lead(start).over(of_record)
    else:
        end = axis_value(quoted(convention.end), kinds[convention.end.lower()])
    active = quoted(convention.active) if convention.active else F.lit(None).cast("boolean")
    return frame.select(
        F.array(*(as_text(frame, name) for name in key)).alias("key"),
        start.alias("since"),
        end.alias("until"),
        active.alias("active"),
        order.alias("order"),
        begins.alias("begins"),
        F.struct("*").alias("stored"),
    ).where("begins and since is not null")


def matching(frame: DataFrame, filters: Sequence[Mapping[str, str]]) -> DataFrame:
    """The rows that match one of the filters; all rows if there are none."""
    if not filters:
        return frame
    kinds = columns_of(frame)
    condition = F.lit(False)
    for one in filters:
        terms = F.lit(True)
        for name, value in one.items():
            terms = terms & (quoted(name) == F.lit(value).cast(kinds[name.lower()]))
        condition = condition | terms
    return frame.where(condition)


def read_rows(
    frame: DataFrame, convention: Convention, key: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """The stored rows in the form that `read_version` reads."""
    when = convention.bookkeeping() | {name.lower() for name in key}
    names = [name for name in frame.columns if name.lower() not in when]
    values = F.array(*(as_text(frame, name) for name in names)) if names else F.array()
    periods = as_periods(frame.withColumn("__values", values), convention, key)
    found = periods.select("key", "since", "until", "active", "order", "stored.__values")
    for row in found.orderBy("key", "since", "order").limit(MAX_VERSIONS).collect():
        yield {
            "key": ["NULL" if part is None else part for part in row["key"]],
            "since": row["since"],
            "until": row["until"],
            "active": row["active"],
            "order": row["order"],
            "values": dict(zip(names, row["__values"])),
        }


def newest_entries(spark: SparkSession, table: str) -> list[Entry]:
    """The newest commits of a Delta table, newest first; empty for any other relation."""
    try:
        return read_log(spark, table, MAX_COMMITS)
    except PySparkException:
        return []


def read_commits(spark: SparkSession, table: str) -> tuple[Commit, ...]:
    """The newest commits of a Delta table, oldest first; empty for any other relation."""
    return tuple(read_commit(entry) for entry in reversed(newest_entries(spark, table)))


def read_recorded_key(spark: SparkSession, table: str) -> tuple[str, ...]:
    """The key of a mirror or an event table; empty if its commits do not record one."""
    return recorded_key(entry["userMetadata"] for entry in newest_entries(spark, table))


def read_present(
    spark: SparkSession,
    track: Track,
    filters: Sequence[Mapping[str, str]],
) -> dict[int, set[Identity]]:
    """The versions in the table after each commit; empty if a state is no longer available."""
    states = []
    try:
        for commit in track.commits:
            if commit.changes_rows:
                state = spark.sql(f"select * from {track.table} version as of {commit.version}")
                periods = as_periods(matching(state, filters), track.convention, track.key)
                states.append(
                    periods.select(F.lit(commit.version).alias("at"), "key", "since", "order")
                )
        rows = reduce(DataFrame.unionAll, states).collect() if states else []
    except (PySparkException, KeyError):
        return {}
    present: dict[int, set[Identity]] = {
        commit.version: set() for commit in track.commits if commit.changes_rows
    }
    for row in rows:
        key = tuple("NULL" if part is None else part for part in row["key"])
        present[row["at"]].add((key, row["since"], row["order"]))
    return present


def first_records(frame: DataFrame, key: Sequence[str]) -> tuple[list[dict[str, str]], bool]:
    """Filters for the first records of a table, and whether there are more."""
    rows = frame.select(*map(quoted, key)).distinct().orderBy(*map(quoted, key))
    found = rows.limit(MAX_RECORDS + 1).collect()
    filters = [
        {name: str(value) for name, value in row.asDict().items() if value is not None}
        for row in found[:MAX_RECORDS]
    ]
    return filters, len(found) > MAX_RECORDS


def read_track(
    spark: SparkSession,
    table: str,
    key: Sequence[str],
    filters: Sequence[Mapping[str, str]] = (),
    convention: Convention | None = None,
) -> Track:
    """Read the versions of some records, by default of the first 20.

    Raises TimelineError if the table or a key column does not exist, or if no version is found.
    """
    try:
        frame = spark.table(table)
    except PySparkException:
        raise TimelineError(f"table {table} does not exist") from None
    absent = missing(frame.columns, [*key, *(name for one in filters for name in one)])
    if absent:
        raise TimelineError(f"{table} has no column {', '.join(absent)}")
    chosen = convention or detect_convention(columns_of(frame), table)
    period = [name for name in (chosen.start, chosen.end) if name]
    absent = missing(frame.columns, period)
    if absent:
        raise TimelineError(f"{table} has no column {', '.join(absent)}: wrong convention?")
    is_cut = False
    if not filters:
        filters, is_cut = first_records(frame, key)
    versions = read_versions(read_rows(matching(frame, filters), chosen, key), chosen)
    if not versions:
        raise TimelineError(f"{table} has no version of the selected records")
    track = Track(table, tuple(key), chosen, tuple(versions), read_commits(spark, table), is_cut)
    present = read_present(spark, track, filters)
    arrived = tuple(with_arrivals(versions, present, track.commits))
    return Track(table, tuple(key), chosen, arrived, track.commits, is_cut)
