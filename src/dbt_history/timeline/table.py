"""Reads from Spark what a chart shows: some records of a table, and the table's log."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark's own guide uses
from pyspark.sql.types import ArrayType, BinaryType, MapType, StructType

from dbt_history.commit_log import Entry, read_log, read_record, recorded_key
from dbt_history.conventions import Convention, detect_convention, missing
from dbt_history.explore.tables import hidden_values
from dbt_history.sql import parts_of
from dbt_history.timeline.commits import Commit, Identity, read_commit, with_arrivals
from dbt_history.timeline.errors import TimelineError
from dbt_history.timeline.versions import Version, order_of, read_versions

MAX_RECORDS = 20
MAX_VERSIONS = 500
MAX_COMMITS = 40
# Texts by column; NULL is None.
Filter = Mapping[str, str | None]


@dataclass(frozen=True)
class Track:
    """One table in the chart: its records and commits (empty if it has no log).

    table    its name in SQL
    is_cut   whether the table has more records than are shown
    hidden   columns that are left out
    """

    table: str
    key: tuple[str, ...]
    convention: Convention
    versions: tuple[Version, ...]
    commits: tuple[Commit, ...]
    is_cut: bool = False
    hidden: tuple[str, ...] = ()


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


def as_periods(
    frame: DataFrame, convention: Convention, key: Sequence[str], filters: Sequence[Filter]
) -> DataFrame:
    """The columns that `read_version` reads: key, since, until, active, order.

    Of the rows that match one of the filters. A row of a log ends with the next one of its record,
    which may not match:

        rows of a log     [ city Bonn --)[ city Rome -------        filter: city=Bonn
        result            [ city Bonn --)
    """
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
        frame = frame.where(matches(kinds, filters, quoted))
        end = axis_value(quoted(convention.end), kinds[convention.end.lower()])
    active = quoted(convention.active) if convention.active else F.lit(None).cast("boolean")
    periods = frame.select(
        F.array(*(as_text(frame, name) for name in key)).alias("key"),
        start.alias("since"),
        end.alias("until"),
        active.alias("active"),
        order.alias("order"),
        begins.alias("begins"),
        F.struct("*").alias("stored"),
    )
    periods = periods.where("begins and since is not null")
    if convention.end is None:
        periods = periods.where(matches(kinds, filters, F.col("stored").getField))
    return periods


def matches(
    kinds: Mapping[str, str], filters: Sequence[Filter], column: Callable[[str], Column]
) -> Column:
    """The condition that a row matches one of the filters; without any all rows do."""
    condition = F.lit(not filters)
    for one in filters:
        terms = F.lit(True)
        for name, value in one.items():
            wanted = F.lit(value).try_cast(kinds[name.lower()])
            is_equal = column(name) == wanted
            terms = terms & (column(name).isNull() if value is None else is_equal)
        condition = condition | terms
    return condition


def read_rows(
    frame: DataFrame,
    convention: Convention,
    key: Sequence[str],
    filters: Sequence[Filter],
    hidden: Set[str],
) -> list[dict[str, Any]]:
    """The stored rows in the form that `read_version` reads, one more than are shown."""
    left_out = convention.bookkeeping() | {name.lower() for name in key} | hidden
    names = [name for name in frame.columns if name.lower() not in left_out]
    values = F.array(*(as_text(frame, name) for name in names)) if names else F.array()
    periods = as_periods(frame.withColumn("__values", values), convention, key, filters)
    found = periods.select("key", "since", "until", "active", "order", "stored.__values")
    return [
        {
            "key": row["key"],
            "since": row["since"],
            "until": row["until"],
            "active": row["active"],
            "order": row["order"],
            "values": dict(zip(names, row["__values"])),
        }
        for row in found.orderBy("key", "since", "order").limit(MAX_VERSIONS + 1).collect()
    ]


def whole_records(rows: list[dict[str, Any]], table: str) -> list[dict[str, Any]]:
    """The rows without the last record, if there are more rows than are shown.

    Without its last versions a record would look deleted. Raises TimelineError if it is the only
    one.
    """
    if len(rows) <= MAX_VERSIONS:
        return rows
    whole = [row for row in rows if row["key"] != rows[-1]["key"]]
    if not whole:
        raise TimelineError(
            f"{table}: a record has more than {MAX_VERSIONS} versions; dbt-history explore shows it"
        )
    return whole


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
    return recorded_key(
        read_record(entry["userMetadata"]) for entry in newest_entries(spark, table)
    )


def read_present(
    spark: SparkSession,
    track: Track,
    filters: Sequence[Filter],
) -> dict[int, set[Identity]]:
    """The versions in the table after each commit; empty if a state is no longer available."""
    states = []
    try:
        for commit in track.commits:
            if commit.changes_rows:
                state = spark.sql(f"select * from {track.table} version as of {commit.version}")
                periods = as_periods(state, track.convention, track.key, filters)
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
        present[row["at"]].add((tuple(row["key"]), row["since"], row["order"]))
    return present


def first_records(frame: DataFrame, key: Sequence[str]) -> tuple[list[Filter], bool]:
    """Filters for the first records of a table, and whether there are more."""
    rows = frame.select(*map(quoted, key)).distinct().orderBy(*map(quoted, key))
    # As text in Spark: in Python a timestamp would be in the time zone of the process.
    texts = [quoted(name).cast("string") for name in key]
    found = rows.limit(MAX_RECORDS + 1).select(*texts).collect()
    filters: list[Filter] = [dict(zip(key, row)) for row in found[:MAX_RECORDS]]
    return filters, len(found) > MAX_RECORDS


def read_track(
    spark: SparkSession,
    table: str,
    key: Sequence[str],
    filters: Sequence[Filter] = (),
    convention: Convention | None = None,
    hidden: Set[str] = frozenset(),
) -> Track:
    """Read the versions of some records, by default of the first 20. `table` is a name in SQL.

    Raises TimelineError if the table or a key column does not exist, or if no version is found.
    """
    name = ".".join(parts_of(table))
    try:
        frame = spark.table(table)
    except PySparkException:
        raise TimelineError(f"table {name} does not exist") from None
    absent = missing(frame.columns, [*key, *(column for one in filters for column in one)])
    if absent:
        raise TimelineError(f"{name} has no column {', '.join(absent)}")
    chosen = convention or detect_convention(columns_of(frame), name)
    period = [column for column in (chosen.start, chosen.end) if column]
    absent = missing(frame.columns, period)
    if absent:
        raise TimelineError(f"{name} has no column {', '.join(absent)}: wrong convention?")
    is_cut = False
    if not filters:
        filters, is_cut = first_records(frame, key)
    found = read_rows(frame, chosen, key, filters, hidden)
    rows = whole_records(found, name)
    versions = read_versions(rows, chosen)
    if not versions:
        raise TimelineError(f"{name} has no version of the selected records")
    track = Track(
        table, tuple(key), chosen, tuple(versions), read_commits(spark, table),
        is_cut or len(rows) < len(found),
        tuple(column for column in frame.columns if column.lower() in hidden),
    )  # fmt: skip
    arrived = with_arrivals(versions, read_present(spark, track, filters), track.commits)
    return replace(track, versions=tuple(with_hidden_keys(track, arrived)))


def with_hidden_keys(track: Track, versions: Sequence[Version]) -> list[Version]:
    """The versions with numbers in random order in place of the values of hidden key columns."""
    hidden = {name.lower() for name in track.hidden}
    found = list(versions)
    for place, name in enumerate(track.key):
        if name.lower() in hidden:
            number = hidden_values(version.key[place] for version in found)
            found = [
                replace(one, key=(*one.key[:place], number[one.key[place]], *one.key[place + 1 :]))
                for one in found
            ]
    return sorted(found, key=lambda one: (order_of(one.key), one.since, one.order))
