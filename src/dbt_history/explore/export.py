"""Reads history tables into the compact form that the page evaluates.

All positions of an axis are in one sorted list, and a version holds two places in it. Whether a
version is in force is a comparison of small integers, which is exact also for numbers that are
greater than 2^53 and for microseconds.

    points    0: T1      1: T2      2: T3      3: T4
    version   [since = 0 ---------- until = 2)            in force from T1 up to, not including, T3
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dbt_history.conventions import on_axis
from dbt_history.explore.project import DbtProject, ExploreError
from dbt_history.explore.tables import ANY_USER, HistoryTable, hidden_values
from dbt_history.sql import quoted, string_literal
from dbt_history.timeline.commits import METADATA_OPERATIONS
from dbt_history.timeline.versions import is_data

MAX_VERSIONS = 300_000
MAX_COMMITS = 40
DAY = 86_400_000_000
MARKS = "history_marks"


@dataclass
class Row:
    """A version: its key and cells as text, its period on the axis; until None without an end.

    ended_by    the user of the log's row that ended it; None in tables of versions
    """

    key: tuple[str | None, ...]
    since: int
    until: int | None
    is_open: bool
    order: int
    cells: list[str | None]
    ended_by: str | None = None
    arrived: int = -1
    is_late: bool = False


@dataclass
class Exported:
    """The content of one table; positions are microseconds since 1970, or numbers."""

    table: HistoryTable
    axis: str
    point_type: str
    columns: list[tuple[str, str]]
    rows: list[Row]
    commits: list[dict[str, Any]] = field(default_factory=list)
    marks: dict[str, Any] = field(default_factory=dict)


def as_text(name: str, kind: str) -> str:
    """A column as text in any time zone of the session: timestamps are microseconds since 1970."""
    column = quoted(name)
    if kind == "timestamp":
        return f"cast(unix_micros({column}) as string)"
    if kind == "binary":
        return f"base64({column})"
    if kind.startswith(("struct", "array", "map")):
        return f"to_json({column})"
    return f"cast({column} as string)"


def value_of(value: str, kind: str) -> str:
    """The text of an option as SQL of a type; a timestamp without a zone is in UTC."""
    if kind != "timestamp":
        return f"cast({string_literal(value)} as {kind})"
    try:
        return f"timestamp_micros({on_axis(value, 'timestamp')}L)"
    except ValueError:
        raise ExploreError(f"{value!r} is not a timestamp such as 2024-03-02 12:00:00") from None


def where(table: HistoryTable, filters: Sequence[Mapping[str, str]]) -> str:
    """The condition that a row matches one of the filters; each value is cast to its column."""
    types = {name.lower(): kind for name, kind in table.columns.items()}
    alternatives = []
    for one in filters:
        unknown = [name for name in one if name.lower() not in types]
        if unknown:
            raise ExploreError(f"{table.name} has no column {', '.join(unknown)}")
        terms = [
            f"{quoted(name)} = {value_of(value, types[name.lower()])}"
            for name, value in one.items()
        ]
        alternatives.append("(" + " and ".join(terms) + ")")
    return " or ".join(alternatives) or "true"


def shown_columns(table: HistoryTable, period: set[str]) -> list[tuple[str, str]]:
    """The columns besides the key and the period that are not hidden, with their types."""
    left_out = period | {name.lower() for name in table.key} | table.hidden
    return [(name, kind) for name, kind in table.columns.items() if name.lower() not in left_out]


def order_and_columns(
    project: DbtProject, table: HistoryTable, period: Mapping[str, Any]
) -> tuple[str, list[tuple[str, str]]]:
    """SQL that orders versions with one start, and the columns shown besides key and period."""
    if period["key"]:
        return "0", shown_columns(table, set())
    named = project.call(
        "_convention_of", relation=table.relation, convention=table.reader, caller_name="explore"
    )
    convention = project.call("convention", convention=named)
    names = {convention.get(part) for part in ("start", "end", "active")} - {None}
    columns = shown_columns(table, {str(name).lower() for name in names})
    order = convention.get("version_id")
    if order is None or order == convention.get("start"):
        return "0", columns
    return f"coalesce(try_cast({quoted(order)} as bigint), 0)", columns


def marks_of(project: DbtProject, table: HistoryTable) -> Any:
    """The table of marks in the schema of the table; None without one."""
    return project.adapter.get_relation(database=None, schema=table.schema, identifier=MARKS)


def period_texts(period: Mapping[str, Any], order: str, ended_by: str) -> list[str]:
    """SQL of the first texts of `row_of`; the key and the cells follow."""
    parts = [period["since"], period["until"], period["is_open"], order]
    return [f"cast({part} as string)" for part in parts] + [ended_by]


def row_of(text: str, width: int, scale: int) -> Row:
    """A version from its JSON text, with a key of `width` columns and `scale` units per point."""
    since, until, is_open, place, ended_by, *values = json.loads(text)
    return Row(
        tuple(values[:width]),
        int(since) * scale,
        None if until is None else int(until) * scale,
        is_open == "true" or until is None,
        int(place),
        values[width:],
        ended_by,
    )


def with_ended_by(project: DbtProject, table: HistoryTable) -> tuple[dict[str, Any], str]:
    """The arguments of a reader, and SQL of the user who ended a version.

    In a log it is the user of the record's next row; a version table does not have it.

    log         insert by ann --- delete by bob
    versions    [------------- ended by bob)
    """
    same = {"relation": table.relation, "convention": table.reader}
    who = table.user_column
    if table.kind not in ("mirror", "events") or who is None:
        return same, "cast(null as string)"
    log = project.call("_log_settings", **same, caller_name="explore")
    key, order = ", ".join(quoted(name) for name in proper(table)), ", ".join(log["order"])
    source = (
        f"(select *, lead({quoted(who)}) over (partition by {key} order by {order})"
        f" as _page_ended_by from {project.call('_read_from', relation=table.relation)} as log)"
    )
    convention = dict(table.reader if isinstance(table.reader, Mapping) else {})
    if table.kind == "mirror":  # named after the table, which a sub-query does not tell
        convention["id"] = project.call(
            "_hx_id", relation=table.relation, said=convention.get("id"), caller_name="explore"
        )
    return {"relation": source, "convention": convention}, "cast(_page_ended_by as string)"


def read_table(
    project: DbtProject, table: HistoryTable, filters: Sequence[Mapping[str, str]] = ()
) -> Exported:
    """All versions of a table, its commits and marks. Raises ExploreError."""
    source, ended_by = with_ended_by(project, table)
    period = project.call("_stored_periods", **source)
    order_sql, columns = order_and_columns(project, table, period)
    condition = f"{period['since']} is not null and ({where(table, filters)})"
    condition += f" and {not_erased(project, table, columns)}"
    texts = period_texts(period, order_sql, ended_by)
    texts += [as_text(name, table.columns[name]) for name in proper(table)]
    texts += [as_text(name, kind) for name, kind in columns]
    found = project.rows(
        f"select to_json(array({', '.join(texts)})) as version from {period['from']} as history"
        f" where {condition}"
        f" limit {MAX_VERSIONS + 1}"
    )
    if len(found) > MAX_VERSIONS:
        raise ExploreError(
            f"{table.name} has more than {MAX_VERSIONS:,} versions: select records with --key"
        )
    scale = DAY if period["type"] == "date" else 1
    versions = (row_of(text, len(table.key), scale) for (text,) in found)
    rows = [row for row in versions if not is_tombstone(row, columns)]
    axis = "number" if period["type"] == "bigint" else "time"
    exported = Exported(table, axis, period["type"], columns, rows)
    exported.commits = read_commits(project, table)
    read_arrivals(
        project, exported, start_of(period, axis), order_sql, where(table, filters), scale
    )
    exported.marks = read_marks(project, table, period["type"], scale)
    hide_keys(exported)
    rows.sort(key=lambda row: (sort_key(row.key), row.since, row.order))
    return exported


def not_erased(project: DbtProject, table: HistoryTable, columns: Sequence[tuple[str, str]]) -> str:
    """The condition that a row is not one that `erase_subject` left: a key and a period.

    Only in a schema with an erasure, which is recorded without the key. Users and ids of a log are
    kept, too.
    """
    own = {*ANY_USER, "mod_time", "deleted", f"{table.name.lower()}_id"}
    data = [name for name, _ in columns if is_data(name) and name.lower() not in own]
    # A hidden column may have a value.
    hidden = table.hidden - {name.lower() for name in table.key}
    data += [name for name in table.columns if name.lower() in hidden]
    if not data or not has_erasures(project, table):
        return "true"
    return "(" + " or ".join(f"{quoted(name)} is not null" for name in data) + ")"


def has_erasures(project: DbtProject, table: HistoryTable) -> bool:
    """Whether a record of the table's schema was erased."""
    marks = marks_of(project, table)
    erasures = "where kind = 'erasure' limit 1"
    return marks is not None and bool(project.rows(f"select 1 from {marks.render()} {erasures}"))


def start_of(period: Mapping[str, Any], axis: str) -> str:
    """The start of a stored row as a number, without the columns that a log's reader adds."""
    if not period["key"]:
        return str(period["since"])
    return f"unix_micros({period['time']})" if axis == "time" else str(period["time"])


def proper(table: HistoryTable) -> list[str]:
    """The key columns in the case of the table."""
    by_name = {name.lower(): name for name in table.columns}
    return [by_name[name.lower()] for name in table.key]


def is_tombstone(row: Row, columns: Sequence[tuple[str, str]]) -> bool:
    """Whether a row is a deletion that no version shows: an empty period without values."""
    is_empty = row.until is not None and row.until <= row.since
    data = [cell for (name, _), cell in zip(columns, row.cells) if is_data(name)]
    return is_empty and bool(data) and all(cell is None for cell in data)


def sort_key(key: Sequence[str | None]) -> list[tuple[int, int, str]]:
    """Numbers by value, then texts; NULL first. No two keys are equal.

    The rows of a key are neighbours in the sorted list, also if its number is that of another key:
    `7` and `007`.
    """
    return [
        (0, 0, "")
        if part is None
        else (1, int(part), part)
        if re.fullmatch("-?[0-9]{1,19}", part)
        else (2, 0, part)
        for part in key
    ]


def hide_keys(exported: Exported) -> None:
    """Replace the values of a hidden key column by numbers in random order."""
    table = exported.table
    for place, name in enumerate(table.key):
        if name.lower() not in table.hidden:
            continue
        number = hidden_values(row.key[place] for row in exported.rows)
        for row in exported.rows:
            row.key = (*row.key[:place], number[row.key[place]], *row.key[place + 1 :])


def read_commits(project: DbtProject, table: HistoryTable) -> list[dict[str, Any]]:
    """The newest commits that changed rows, oldest first; empty without a log."""
    try:
        entries = project.call("_history_entries", relation=table.relation, limit=MAX_COMMITS)
    except ExploreError:
        return []
    found = []
    for entry in reversed(entries):
        if str(entry["operation"]).startswith((*METADATA_OPERATIONS, "CREATE TABLE")):
            continue
        record = entry["record"] or {}
        first, last = record.get("first_batch"), record.get("batch")
        batch = "" if last is None else f"batch {last}"
        if last is not None and first is not None and first != last:
            batch = f"batches {first} to {last}"
        found.append(
            {
                "version": int(entry["version"]),
                "batch": batch,
                "run": record.get("invocation_id"),
                "author": record.get("author") or entry["user"],
                "message": record.get("message"),
            }
        )
    return found


def read_arrivals(
    project: DbtProject,
    exported: Exported,
    start: str,
    order: str,
    condition: str,
    scale: int,
) -> None:
    """Set for each version the commit that added it, and whether it is late.

    A version is late if the commit before had a version of the same key with a later start. Both
    are read from the states of the table after each commit; nothing is set if one is gone (VACUUM),
    or if they have far more versions than the table, which was cleaned.
    """
    commits, table = exported.commits, exported.table
    if not commits:
        return
    key = ", ".join(as_text(name, table.columns[name]) for name in proper(table))
    name = table.relation.render()
    states = " union all ".join(
        f"select to_json(array({key}, cast({start} as string), cast({order} as string)))"
        " as version,"
        f" {place} as place from {name} version as of {commit['version']}"
        f" where {start} is not null and ({condition})"
        for place, commit in enumerate(commits)
    )
    try:
        found = project.rows(
            f"select version, min(place), max(place) from ({states}) as states group by version"
            f" limit {2 * MAX_VERSIONS + 1}"
        )
    except ExploreError:
        exported.commits = []
        return
    if len(found) > 2 * MAX_VERSIONS:
        exported.commits = []
        return
    by_key: dict[tuple[Any, ...], list[tuple[int, int, int, int]]] = defaultdict(list)
    for text, first, last in found:
        *values, since, number = json.loads(text)
        by_key[tuple(values)].append((int(since) * scale, int(number), first, last))
    arrivals: dict[tuple[Any, ...], tuple[int, bool]] = {}
    for values_of_key, versions in by_key.items():
        later: set[tuple[int, int]] = set()
        versions.sort(reverse=True)
        at_this_start: list[tuple[int, int]] = []
        previous: int | None = None
        for since, number, first, last in versions:
            if since != previous:
                later |= set(at_this_start)
                at_this_start, previous = [], since
            at_this_start.append((first, last))
            is_late = any(one < first and first - 1 <= end for one, end in later)
            arrivals[(values_of_key, since, number)] = (first, is_late)
    for row in exported.rows:
        row.arrived, row.is_late = arrivals.get((row.key, row.since, row.order), (-1, False))


def read_marks(project: DbtProject, table: HistoryTable, kind: str, scale: int) -> dict[str, Any]:
    """Tags and the retention horizon on the table's axis, and suspensions in time."""
    marks = marks_of(project, table)
    found: dict[str, Any] = {"tags": [], "horizon": None, "suspensions": []}
    if marks is None:
        return found
    number = {"timestamp": "unix_micros", "date": "unix_date", "bigint": ""}[kind]
    for what, name, at, recorded, author, reason in project.rows(
        f"select kind, name, cast({number}(try_cast(instant as {kind})) as string),"
        f" cast(unix_micros(recorded_at) as string), author, reason from {marks.render()}"
        f" where table_name = {string_literal(table.name.lower())}"
        " and kind in ('tag', 'horizon', 'suspension', 'resumption')"
        " order by recorded_at"
    ):
        is_suspended = found["suspensions"] and found["suspensions"][-1][1] is None
        if what == "suspension" and not is_suspended:
            found["suspensions"].append([recorded, None])
        elif what == "resumption" and is_suspended:
            found["suspensions"][-1][1] = recorded
        elif what == "horizon" and at is not None:
            found["horizon"] = str(max(int(found["horizon"] or at), int(at) * scale))
        elif what == "tag" and at is not None:
            tags = [tag for tag in found["tags"] if tag["name"] != name]
            tag = {"name": name, "at": str(int(at) * scale), "author": author, "reason": reason}
            found["tags"] = [*tags, tag]
    return found


# -- the compact form ------------------------------------------------------------------------------


def encoded(values: Iterable[str | None]) -> dict[str, list[Any]]:
    """A column as its distinct values and a place for each row; -1 is NULL."""
    places: dict[str, int] = {}
    indexes = [-1 if value is None else places.setdefault(value, len(places)) for value in values]
    return {"values": list(places), "places": indexes}


def as_deltas(points: Sequence[int]) -> list[int | str]:
    """Sorted numbers as differences; a difference that JavaScript cannot hold is a text."""
    deltas: list[int | str] = []
    before = 0
    for point in points:
        step = point - before
        deltas.append(step if abs(step) < 2**53 else str(step))
        before = point
    return deltas


def compact(tables: Sequence[Exported], project_name: str, made_at: str) -> dict[str, Any]:
    """The data of the page."""
    points: dict[str, list[int]] = {}
    for axis in ("time", "number"):
        known = {
            value
            for table in tables
            if table.axis == axis
            for row in table.rows
            for value in (row.since, row.until)
            if value is not None
        }
        points[axis] = sorted(known)
    return {
        "format": 1,
        "project": project_name,
        "made_at": made_at,
        "points": {axis: as_deltas(known) for axis, known in points.items()},
        "tables": [compact_table(table, points[table.axis]) for table in tables],
    }


def compact_table(exported: Exported, points: Sequence[int]) -> dict[str, Any]:
    table, rows = exported.table, exported.rows

    def place(value: int | None) -> int:
        return -1 if value is None else bisect_left(points, value)

    keys: dict[tuple[str | None, ...], int] = {}
    of_row = [keys.setdefault(row.key, len(keys)) for row in rows]
    return {
        "name": table.name,
        "schema": table.schema,
        "kind": table.kind,
        "axis": exported.axis,
        "pointType": exported.point_type,
        "call": table.call,
        "reader": table.reader,
        "key": list(table.key),
        "keyTypes": [table.columns[name] for name in proper(table)],
        "columns": [{"name": name, "type": kind} for name, kind in exported.columns],
        "who": table.user_column,
        "hidden": sorted(name for name in table.columns if name.lower() in table.hidden),
        "keys": [list(key) for key in keys],
        "of": of_row,
        "since": [place(row.since) for row in rows],
        "until": [place(row.until) for row in rows],
        "open": [int(row.is_open) for row in rows],
        "cells": [
            encoded(row.cells[column] for row in rows) for column in range(len(exported.columns))
        ],
        "endedBy": encoded(row.ended_by for row in rows)
        if any(row.ended_by is not None for row in rows)
        else None,
        "arrived": [row.arrived for row in rows],
        "late": [index for index, row in enumerate(rows) if row.is_late],
        "commits": exported.commits,
        **exported.marks,
    }
