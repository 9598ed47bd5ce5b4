"""`materialized='history'`: the history of a SELECT, as small as a snapshot."""

from __future__ import annotations

import json
import os
import shutil
import time
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from dbt_history.doctor import CATALOG, FACTS
from tests.functional.test_resets import Interrupt, before_statement, fail
from tests.support.markdown import blocks, page, table_after
from tests.support.processes import hold_run, start, together
from tests.support.project import Project
from tests.support.selection import thorough

__all__ = ["before_statement"]

FEED = "tblproperties ('delta.enableChangeDataFeed' = 'true')"


def model(project: Project, name: str, sql: str, key: Any = "id", **history: Any) -> None:
    config = history.pop("config", {})
    more = {"meta": {"history": history}} if history else {}
    project.model(name, sql, materialized="history", unique_key=key, **more, **config)


def items(project: Project, options: str = FEED) -> str:
    """An empty source in the test's schema."""
    project.spark.sql(f"create schema if not exists {project.schema}")
    table = project.table("items")
    project.spark.sql(f"create table {table} (id bigint, v string) using delta {options}")
    return table


def versions(project: Project, name: str = "h") -> list[tuple[Any, ...]]:
    """Key, value and whether the version is open; without empty versions, in order of time."""
    rows = [
        row
        for row in project.rows(name)
        if row["valid_to"] is None or row["valid_to"] > row["valid_from"]
    ]
    rows.sort(key=lambda row: (row["id"], row["valid_from"]))
    for row, following in pairwise(rows):
        if row["id"] == following["id"]:
            assert row["valid_to"] is not None
            assert row["valid_to"] <= following["valid_from"]
    return [(row["id"], row["v"], row["valid_to"] is None) for row in rows]


@pytest.mark.parametrize("is_feed", [True, thorough(False)], ids=["feed", "difference"])
def test_three_lines_keep_what_happened_to_a_table(project: Project, is_feed: bool) -> None:
    """Between the runs:

    run 1   1 a                 2 b
    run 2   1 c                 2 deleted     3 d and 3 e
    run 3   nothing
    run 4   1 c                 2 b again
    """
    spark = project.spark
    table = items(project, options=FEED if is_feed else "")
    model(project, "h", f"select * from {table}")
    project.run("h")
    spark.sql(f"insert into {table} values (1, 'a'), (2, 'b')")
    project.run("h")
    spark.sql(f"update {table} set v = 'c' where id = 1")
    spark.sql(f"delete from {table} where id = 2")
    spark.sql(f"insert into {table} values (3, 'd')")
    spark.sql(f"update {table} set v = 'e' where id = 3")
    done = project.run("h")
    assert done.message("h").startswith("1 batch: ")
    between = [(3, "d", False)] if is_feed else []
    found = [(1, "a", False), (1, "c", True), (2, "b", False), *between, (3, "e", True)]
    assert versions(project) == found

    number = len(project.log_of("h"))
    assert project.run("h").message("h").startswith("no new batch")
    assert len(project.log_of("h")) == number

    spark.sql(f"insert into {table} values (2, 'b')")
    project.run("h")
    found.insert(3, (2, "b", True))
    assert versions(project) == found
    assert {*project.rows("h")[0]} == {"id", "v", "valid_from", "valid_to"}


@pytest.mark.thorough
@pytest.mark.parametrize("source", ["changes", "state"])
def test_a_column_removed_from_the_select_keeps_its_values(project: Project, source: str) -> None:
    """City of record 1; the log has all versions, and the SELECT returns them in every run:

    minute         3          5          7
    run 1          [ Bonn ---)[ Ulm ---------- open
    no city        [ Bonn ---)[ Ulm ---)[ NULL --- open
    """
    table = f"{project.schema}.cities"
    project.spark.sql(f"create schema if not exists {project.schema}")
    project.spark.sql(f"create table {table} (id bigint, v string, city string, at timestamp)")
    model(project, "h", f"select id, v, city, at from {table}", source=source, updated_at="at")
    rows = "insert into {} values (1, '{}', '{}', timestamp'2024-01-01 00:0{}:00 UTC')"
    for v, city, minute in (("a", "Bonn", 3), ("b", "Ulm", 5)):
        project.spark.sql(rows.format(table, v, city, minute))
    project.run("h")
    model(project, "h", f"select id, v, at from {table}", source=source, updated_at="at")
    project.run("h")
    found = {(row["v"], row["city"]) for row in project.rows("h")}
    assert found == {("a", "Bonn"), ("b", "Ulm")}

    project.spark.sql(rows.format(table, "c", "Kiel", 7))
    assert "1 added, 1 closed" in project.run("h").message("h")
    assert {(row["v"], row["city"]) for row in project.rows("h")} == {*found, ("c", None)}


@pytest.mark.thorough
@pytest.mark.parametrize("form", ["changes", "state", "merge_equal", "batch_rows"])
def test_a_column_dropped_between_two_runs_keeps_its_values(project: Project, form: str) -> None:
    """The feed of the second run has a part with the city and one without it. City of the versions,
    and what the source says (. is an update of v):

    minute           3          5          7         9
    run 1            1 Bonn     2 Ulm
    before the drop                        3 Kiel
    after            1 .        2 .        3 .       4 no city
    """
    table = f"{project.schema}.cities"
    project.spark.sql(f"create schema if not exists {project.schema}")
    project.spark.sql(
        f"create table {table} (id bigint, v string, `the City` string, at timestamp) using delta"
        f" {FEED[:-1]}, 'delta.columnMapping.mode' = 'name')"
    )
    if form == "batch_rows":
        project.model(
            "h",
            "select * from {{ dbt_history.batch_rows(dbt_history.changes(api.Relation.create("
            f"schema='{project.schema}', identifier='cities')), at='at') }}}}",
            materialized="history_batch", unique_key="id", meta={"history": "validity"},
        )  # fmt: skip
    else:
        model(
            project, "h", f"select * from {table}", updated_at="at",
            source="state" if form == "state" else "changes", merge_equal=form == "merge_equal",
        )  # fmt: skip
    project.run("h")
    rows = "insert into {} values ({}, '{}', {}, timestamp'2024-01-01 00:0{}:00 UTC')"
    for number, city, minute in ((1, "'Bonn'", 3), (2, "'Ulm'", 5)):
        project.spark.sql(rows.format(table, number, "a", city, minute))
    project.run("h")

    project.spark.sql(rows.format(table, 3, "a", "'Kiel'", 7))
    project.spark.sql(f"alter table {table} drop column `the City`")
    project.spark.sql(f"update {table} set v = 'b'")
    project.spark.sql(rows.format(table, 4, "a", "", 9).replace(", ,", ","))
    project.run("h")

    found = {(row["id"], row["v"], row["the City"]) for row in project.rows("h")}
    assert found == {(1, "b", "Bonn"), (2, "b", "Ulm"), (3, "b", "Kiel"), (4, "a", None)}
    project.spark.sql(f"update {table} set v = 'c'")
    project.run("h")
    found = {(row["id"], row["v"], row["the City"]) for row in project.rows("h")}
    assert found == {(1, "c", "Bonn"), (2, "c", "Ulm"), (3, "c", "Kiel"), (4, "c", None)}


@pytest.mark.thorough
def test_a_number_cut_by_a_narrower_type_is_a_change(project: Project) -> None:
    """Compared in the narrower type, the stored value would be the new one."""
    for name, wide, narrow in (
        ("digits", "cast(12.34 as decimal(10,2))", "cast(12 as decimal(8,0))"),
        ("bits", "4294967297L", "1"),
    ):
        model(project, name, f"select 1L as id, {wide} as v")
        project.run(name)
        model(project, name, f"select 1L as id, {narrow} as v")

    assert "1 added, 1 closed" in project.run("digits", "bits").message("digits")

    assert [(float(v), is_open) for _, v, is_open in versions(project, "digits")] == [
        (12.34, False), (12.0, True),
    ]  # fmt: skip
    assert versions(project, "bits") == [(1, 4294967297, False), (1, 1, True)]


@pytest.mark.thorough
def test_a_field_removed_from_a_struct_keeps_its_values(project: Project) -> None:
    """All versions are sent again in every run; the fields y, in `s`, `s.in` and `l`, are left out.

    minute         3                 5                 7
    run 1          [ 1 ---------)[ 2 ------------- open
    run 2          [ 1 ---------)[ 4, fields of 2 ---)[ 3, y NULL --- open
    run 3          another value in the array of the first version: refused
    run 4          the same, with NULL in place of y: taken
    """
    whole = (
        "named_struct('x', {0}, 'y', {0}, 'in', named_struct('x x', {0}, 'y', {0})) as s,"
        " array(named_struct('x', {1}, 'y', {1})) as l"
    )
    less = (
        "named_struct('in', named_struct('x x', {0}), 'X', {0}) as s,"
        " array(named_struct('x', {1})) as l"
    )
    nulls = less.replace("'x', {1})", "'x', {1}, 'y', cast(null as int))")

    def run(cells: str, *rows: tuple[int, int, int], check: bool = True) -> str:
        selects = [
            f"select 1L as id, timestamp'2024-01-01 00:0{minute}:00 UTC' as at,"
            f" {cells.format(in_s, in_l)}"
            for minute, in_s, in_l in rows
        ]
        model(project, "h", " union all ".join(selects), source="changes", updated_at="at")
        return project.run("h", check=check).message("h")

    def found() -> list[str]:
        rows = project.spark.sql(
            f"select to_json(struct(s, l)) as text from {project.table('h')} order by valid_from"
        )
        return [row["text"] for row in rows.collect()]

    run(whole, (3, 1, 1), (5, 2, 2))
    run(less, (3, 1, 1), (5, 4, 2), (7, 3, 3))

    kept = [
        '{"s":{"x":1,"y":1,"in":{"x x":1,"y":1}},"l":[{"x":1,"y":1}]}',
        '{"s":{"x":4,"y":2,"in":{"x x":4,"y":2}},"l":[{"x":2,"y":2}]}',
        '{"s":{"x":3,"in":{"x x":3}},"l":[{"x":3}]}',
    ]
    assert found() == kept
    refused = run(less, (3, 1, 9), (5, 4, 2), (7, 3, 3), check=False)
    assert "without fields of the structs in an array or a map" in refused
    assert '"valid_from":"2024-01-01T00:03:00.000Z"' in refused
    assert found() == kept
    assert "0 added, 0 closed, 0 removed" in run(less, (3, 1, 1), (5, 4, 2), (7, 3, 3))

    run(nulls, (3, 1, 9), (5, 4, 2), (7, 3, 3))
    assert found() == [
        kept[0].replace('{"x":1,"y":1}]', '{"x":9}]'),
        kept[1].replace('{"x":2,"y":2}]', '{"x":2}]'),
        kept[2],
    ]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("type_", "options"),
    [
        ("timestamp", ""), ("date", ""),
        # As docs/guides/batches.md advises.
        (
            "timestamp",
            ", at='date_from_unix_date(cast(floor(unix_seconds(happened) / 86400) as int))'",
        ),
    ],
)  # fmt: skip
def test_the_day_of_a_commit_is_that_of_utc(project: Project, type_: str, options: str) -> None:
    """In Tokyo it is the next day already; a commit time that is a date stays as it is."""
    zone = "spark.sql.session.timeZone"
    day = f"cast('2026-01-0{{}}{'T20:00:00Z' if type_ == 'timestamp' else ''}' as {type_})"
    feed = " union all ".join(
        f"select 'insert' as _change_type, {number}L as _commit_version,"
        f" {day.format(number)} as _commit_timestamp, {day.format(number)} as happened,"
        f" 1L as id, '{number}' as v"
        for number in (1, 3)
    )
    project.spark.sql(f"create or replace temporary view feed as {feed}")
    sql = f"select * from {{{{ dbt_history.batch_rows('feed', 'id'{options}) }}}}"
    project.history("h", sql, convention="validity", type="date")
    project.spark.conf.set(zone, "Asia/Tokyo")
    try:
        project.run("h")
    finally:
        project.spark.conf.set(zone, "UTC")
    found = {(row["v"], row["valid_from"], row["valid_to"]) for row in project.rows("h")}
    assert found == {("1", date(2026, 1, 1), date(2026, 1, 3)), ("3", date(2026, 1, 3), None)}


@pytest.mark.thorough
@pytest.mark.parametrize("is_timed", [False, True], ids=["run", "updated_at"])
def test_the_day_of_a_run_is_that_of_utc(project: Project, is_timed: bool) -> None:
    """The runs' sessions are in a zone that has another day at this hour."""
    zone = "Pacific/Kiritimati" if datetime.now(UTC).hour >= 11 else "Etc/GMT+12"
    table = items(project, options="")
    sql = f"select id, v, date'2024-01-01' as at from {table}"
    history: dict[str, Any] = {"updated_at": "at"} if is_timed else {}
    model(project, "h", sql, convention="validity", type="date", **history)
    name = "spark.sql.session.timeZone"
    project.spark.conf.set(name, zone)
    try:
        for change in ("insert into {} values (1, 'a')", "delete from {}"):
            project.spark.sql(change.format(table))
            days = {datetime.now(UTC).date()}
            project.run("h")
            days.add(datetime.now(UTC).date())
    finally:
        project.spark.conf.set(name, "UTC")
    assert {row["valid_to"] for row in project.rows("h")} <= days
    if not is_timed:
        assert {row["valid_from"] for row in project.rows("h")} <= days


# What the source shows before each run: id, value, minute of updated_at.
STATES = [
    [(1, "a", 10), (2, "b", 10), (3, "c", 10)],
    # 1 changes, 2 is deleted, the time of 3 goes back, 4 appears.
    [(1, "a2", 11), (3, "late", 5), (4, "d", 1)],
    # 1 has another value at the same time, 2 reappears as it was, 4 is deleted.
    [(1, "a3", 11), (2, "b", 10), (3, "c2", 30)],
    [],
    # All reappear with times before their deletion.
    [(1, "a3", 11), (2, "b", 10), (3, "c2", 30), (4, "d", 1)],
    # 1 changes at the same time, 2 at a later one; the time of 3 goes back.
    [(1, "a4", 11), (2, "b2", 12), (3, "early", 4), (4, "d", 1)],
]
# Several versions of a record in one result, in any order.
MORE = [
    [(5, "x", 20)], [(5, "x", 20), (5, "y", 15)], [(5, "z", 40), (5, "x", 20)], [],
    [(5, "x", 20), (5, "z", 40)], [(5, "x", 20), (5, "z", 41)],
]  # fmt: skip


def expected(states: list[list[tuple[int, str, int]]]) -> set[tuple[int, str, int]]:
    """Id, value and begin of every version; what run n deletes or finds again is at 1000 * n."""
    points: dict[int, dict[int, str | None]] = {}
    current: dict[int, tuple[str, int]] = {}
    for number, rows in enumerate(states, 1):
        newest = {id_: at for id_, _, at in sorted(rows, key=lambda row: row[2])}
        before = {id_: max(own) for id_, own in points.items()}
        for id_, value, at in rows:
            own = points.setdefault(id_, {})
            last = before.get(id_, 0)
            is_open = bool(own.get(last))
            if is_open and current[id_] == (value, at):
                continue
            since = current[id_][1] if is_open else 0
            is_moved = since <= at < last if is_open else bool(last) and at <= last
            point = 1000 * number if is_moved and at == newest[id_] else at
            own[point] = value
            if point == max(own):
                current[id_] = (value, at)
        for id_, own in points.items():
            if id_ not in newest and own[max(own)] is not None:
                own[1000 * number] = None
    return {(id_, value, at) for id_, own in points.items() for at, value in own.items() if value}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("convention", "is_feed"),
    [("validity", False), ("fivetran", True)],
    ids=["diff", "feed"],
)
def test_updated_at_gives_the_time_also_of_late_and_reappearing_rows(
    project: Project, convention: str, is_feed: bool
) -> None:
    """Compared with a dictionary of points of each record; a period ends at the next point."""
    spark = project.spark
    start, end = ("valid_from", "valid_to") if convention == "validity" else (
        "_fivetran_start", "_fivetran_end",
    )  # fmt: skip
    spark.sql(f"create schema {project.schema}")
    table = project.table("items")
    spark.sql(
        f"create table {table} (id bigint, v string, at timestamp) using delta"
        + (f" {FEED}" if is_feed else "")
    )
    model(
        project, "h", f"select * from {table}", convention=convention, config={"updated_at": "at"}
    )
    epoch = datetime(2024, 1, 1)
    states = STATES if is_feed else [one + more for one, more in zip(STATES, MORE, strict=True)]
    clocks: list[datetime] = []

    def place(moment: datetime) -> int:
        """A minute of updated_at, or the run that gave the time."""
        minutes = (moment - epoch) / timedelta(minutes=1)
        later = sum(moment > clock for clock in clocks)
        return int(minutes) if minutes < 1000 else 1000 * (later + 1)

    for number, rows in enumerate(states, 1):
        cells = [f"({id_}, '{v}', timestamp'2024-01-01 00:{at:02}:00')" for id_, v, at in rows]
        spark.sql(
            f"insert overwrite {table} "
            + (f"values {', '.join(cells)}" if cells else f"select * from {table} where false")
        )
        # A feed gives the times of the commits, several of which are taken by one run.
        if is_feed:
            clocks.append(datetime.now())
            if number not in (1, 3, 6):
                continue
        project.run("h")
        found = sorted(project.rows("h"), key=lambda row: (row["id"], row[start]))
        shown = [row for row in found if row[end] is None or row[end] > row[start]]
        seen = [(row["id"], row["v"], place(row[start])) for row in shown]
        assert len(seen) == len({*seen})
        assert {*seen} == expected(states[:number])
        open_ = {row["id"] for row in shown if row[end] is None or row[end].year == 9999}
        assert open_ == {id_ for id_, _, _ in rows}
        if not is_feed:
            clocks.append(datetime.now())


def shown(project: Project, sql: str, name: str = "source") -> str:
    """Let the source, a view of the session, return these rows."""
    project.spark.sql(f"create or replace temporary view {name} as {sql}")
    return f"select * from {name}"


@pytest.mark.thorough
def test_rows_with_a_time_are_evaluated_once(project: Project, tmp_path: Path) -> None:
    """Each evaluation of a row adds a line to a file.

    run 1    1 a
    run 2    1 b    2 b
    """
    seen = tmp_path / "seen"

    def evaluated(number: int) -> int:
        with seen.open("a") as file:
            file.write(f"{number}\n")
        return number

    project.spark.udf.register("evaluated", evaluated, "bigint")
    columns = "evaluated(n) as id, v, timestamp_seconds(60 * at) as at, rand() as chance"
    model(project, "h", f"select {columns} from source", updated_at="at")
    shown(project, "select 1L as n, 'a' as v, 1 as at")
    project.run("h")
    shown(project, "select n, 'b' as v, 2 as at from values (1L), (2L) as rows(n)")
    seen.unlink()

    assert "2 added, 1 closed" in project.run("h").message("h")

    assert sorted(seen.read_text().split()) == ["1", "2"]
    assert versions(project) == [(1, "a", False), (1, "b", True), (2, "b", True)]


@pytest.mark.thorough
def test_a_source_of_changes_keeps_what_is_missing(project: Project) -> None:
    """
    run 1    1 a at 1    2 b at 1    3 c at 1
    run 2    1 d at 2    2 deleted at 3            3 is missing, 4 is deleted before it is known
    run 3    the same result again
    """
    columns = "as rows(id, v, gone, at)"
    times = "select id, v, gone, timestamp_seconds(60 * at) as at from values "
    sql = shown(
        project, times + f"(1, 'a', false, 1), (2, 'b', null, 1), (3, 'c', false, 1) {columns}"
    )
    model(project, "timed", sql, source="changes", deleted="gone", updated_at="at")
    model(project, "h", "select id, v, gone from source", source="changes", deleted="gone")
    project.run("timed", "h")
    shown(
        project,
        times + f"(1, 'd', false, 2), (2, 'x', true, 3), (4, 'y', true, 1), (3, 'c', false, 1)"
        f" {columns} where id <> 3",
    )
    project.run("timed", "h")
    found = [(1, "a", False), (1, "d", True), (2, "b", False), (3, "c", True)]
    for _ in range(2):
        assert versions(project, "h") == versions(project, "timed") == found
        ends = [row["valid_to"] for row in project.rows("timed") if row["v"] == "b"]
        assert ends == [datetime(1970, 1, 1, 0, 3)]
        done = project.run("timed", "h")
        assert done.message("h").startswith("no new batch")
    assert "gone" not in project.rows("h")[0]


@pytest.mark.thorough
def test_the_name_of_a_time_of_events_may_contain_commit(project: Project) -> None:
    """
    last_commit_at    1      5      9
    versions          [ a --)[ b --)[ c ---- open      all rows of one run
    """
    rows = "(1, 'a', 1), (1, 'b', 5), (1, 'c', 9) as rows(id, v, at)"
    sql = f"select id, v, timestamp_seconds(60 * at) as last_commit_at from values {rows}"
    model(project, "h", sql, source="changes", updated_at="last_commit_at")

    project.run("h")

    assert versions(project) == [(1, "a", False), (1, "b", False), (1, "c", True)]
    starts = {row["valid_from"] for row in project.rows("h")}
    assert starts == {datetime(1970, 1, 1, 0, minute) for minute in (1, 5, 9)}


@pytest.mark.thorough
def test_a_column_that_differs_in_every_run_stores_a_row_per_run_unless_left_out(
    project: Project,
) -> None:
    """Two records, three runs: with `except` a version each, and an empty row per further run."""
    filters = {
        path: page(path).split("`where ")[1].split("`")[0].replace("dbt_valid", "valid")
        for path in ("docs/guides/history.md", "docs/guides/adopt.md")
    }
    assert {*filters.values()} == {"valid_from < valid_to or valid_to is null"}
    model(project, "h", "select * from source", **{"except": ["loaded_at"]})
    model(project, "left_out", "select * except (loaded_at) from source")
    for number in range(3):
        shown(project, f"select id, 'a' as v, {number} as loaded_at from range(2)")
        project.run("h", "left_out")

    assert len(project.rows("left_out")) == 2
    assert len(project.rows("h")) == 2 + 2 * 2
    seen = project.spark.table(project.table("h")).where(*{*filters.values()}).collect()
    assert [(row["v"], row["loaded_at"], row["valid_to"]) for row in seen] == [("a", 2, None)] * 2


@pytest.mark.thorough
def test_odd_names_a_key_of_two_columns_and_values_that_look_equal(project: Project) -> None:
    """NULL, '' and 'NULL' are three values; a new column is appended, a dropped one stays."""
    columns = "as rows(`Customer id`, `select`, `a.b`, `m`)"
    rows = "select * from values "
    sql = shown(project, rows + f"(1, 'x', null, map(1, 'a')), (1, '', 'NULL', null) {columns}")
    model(project, "h", sql, key=["customer ID", "select"], convention="fivetran")
    project.run("h")
    shown(project, rows + f"(1, 'x', '', map(1, 'a')), (1, '', 'NULL', null) {columns}")
    assert "1 added, 1 closed" in project.run("h").message("h")
    shown(
        project,
        "select *, if(`select` = '', null, 7) as `new one` from (select `Customer id`, `select`,"
        f" `m` from values (1, 'x', null, map(1, 'a')), (1, '', 'NULL', null) {columns})",
    )
    assert "1 added, 1 closed" in project.run("h").message("h")
    assert project.run("h").message("h").startswith("no new batch")
    found = sorted(
        (row["select"], row["_fivetran_start"], row["a.b"], row["new one"], row["_fivetran_active"])
        for row in project.rows("h")
    )
    assert [row[:1] + row[2:] for row in found] == [
        ("", "NULL", None, True), ("x", None, None, False), ("x", "", None, False),
        ("x", None, 7, True),
    ]  # fmt: skip


def test_a_clock_that_goes_back_loses_no_change(project: Project) -> None:
    """The versions of the adopted table, and later those of a run, begin after the next run."""
    spark = project.spark
    spark.sql(f"create schema {project.schema}")
    soon = "current_timestamp() + interval 2 hours"
    spark.sql(
        f"create table {project.table('h')} using delta as select cast(id as bigint) as id, v,"
        f" {soon} as valid_from, cast(null as timestamp) as valid_to"
        " from values (1, 'a'), (2, 'b') as rows(id, v)"
    )
    rows = "select cast(id as bigint) as id, v from values "
    model(project, "h", shown(project, rows + "(1, 'c') as rows(id, v)"))
    project.run("h")
    assert versions(project) == [(1, "a", False), (1, "c", True), (2, "b", False)]
    shown(project, rows + "(1, 'd'), (2, 'b') as rows(id, v)")
    project.run("h")
    found = [(1, "a", False), (1, "c", False), (1, "d", True), (2, "b", False), (2, "b", True)]
    assert versions(project) == found


@pytest.mark.thorough
def test_a_clock_that_goes_back_loses_no_change_of_batch_rows(project: Project) -> None:
    """The record of the first run has a time that the clock of the second run has not reached."""
    rows = "select cast(id as bigint) as id, v from values "
    shown(project, rows + "(1, 'a') as rows(id, v)", "state")
    project.model("state_table", "select * from state", materialized="table")
    captured = "dbt_history.changes(ref('state_table'), 'id', method='diff')"
    project.history(
        "h",
        f"select * from {{{{ dbt_history.batch_rows({captured}, 'id', 'validity') }}}}",
        convention="validity",
    )
    project.run("state_table", "h")
    record = json.loads(next(e["userMetadata"] for e in project.log_of("h") if e["userMetadata"]))
    later = record["about"]["times"]["latest"] + 7_200_000_000
    record["about"]["times"]["latest"] = later
    metadata = "spark.databricks.delta.commitInfo.userMetadata"
    project.spark.conf.set(metadata, json.dumps(record))
    project.spark.sql(f"alter table {project.table('h')} set tblproperties ('moved' = '1')")
    project.spark.conf.unset(metadata)

    shown(project, rows + "(1, 'b') as rows(id, v)", "state")
    project.run("state_table", "h")

    starts = project.spark.sql(
        f"select v, unix_micros(valid_from), valid_to is null from {project.table('h')}"
    )
    found = {row[0]: (row[1], row[2]) for row in starts.collect()}
    assert found["b"] == (later + 1, True)
    assert not found["a"][1]


@pytest.mark.thorough
def test_a_restored_table_and_a_killed_run_take_the_changes_again(
    project: Project, before_statement: Interrupt
) -> None:
    table = items(project)
    model(project, "feed", f"select * from {table}")
    model(project, "h", f"select * from {table} where true")
    spark = project.spark
    spark.sql(f"insert into {table} values (1, 'a'), (2, 'b')")
    project.run("feed", "h")
    spark.sql(f"update {table} set v = 'c' where id = 1")
    project.run("feed", "h")
    for name in ("feed", "h"):
        last = project.log_of(name)[0]["version"]
        spark.sql(f"restore table {project.table(name)} to version as of {last - 1}")
    spark.sql(f"delete from {table} where id = 2")
    before_statement("merge into", 1, fail)
    assert not project.run("feed", "h", check=False).success
    project.run("feed", "h")
    found = [(1, "a", False), (1, "c", True), (2, "b", False)]
    assert versions(project, "feed") == versions(project, "h") == found

    spark.sql(f"create or replace table {table} using delta {FEED} as select 1L as id, 'e' as v")
    spark.sql(f"drop table {table}")
    items(project)
    spark.sql(f"insert into {table} values (1, 'c'), (2, 'b')")
    project.run("feed", "h")
    found.append((2, "b", True))
    assert versions(project, "feed") == versions(project, "h") == found


@pytest.mark.thorough
@pytest.mark.parametrize("later", [1, 40])
def test_a_table_whose_files_were_set_back_is_compared(
    project: Project, warehouse: Path, tmp_path: Path, later: int
) -> None:
    """The table keeps its id, and the version that was read exists, but is another one.

    version      1            2                 3
    read         1 a, 2 b     1 x
    set back     1 a, 2 b     9 n inserted      2 B, once or several times
    """
    spark, table = project.spark, items(project)
    model(project, "h", f"select * from {table}")
    spark.sql(f"insert into {table} values (1, 'a'), (2, 'b')")
    place = warehouse / f"{project.schema}.db" / "items"
    shutil.copytree(place, tmp_path / "saved")
    spark.sql(f"update {table} set v = 'x' where id = 1")
    project.run("h")

    shutil.rmtree(place)
    shutil.copytree(tmp_path / "saved", place)
    project.forget_logs()
    spark.sql(f"refresh table {table}")
    spark.sql(f"insert into {table} values (9, 'n')")
    for number in range(later):
        spark.sql(f"update {table} set v = '{'B' if number == later - 1 else number}' where id = 2")
    project.run("h")

    found = [(1, "x", False), (1, "a", True), (2, "b", False), (2, "B", True), (9, "n", True)]
    assert versions(project) == found
    assert project.run("h").message("h").startswith("no new batch")


@pytest.mark.thorough
def test_a_commit_without_a_time_of_its_own_does_not_set_the_table_back(
    project: Project, warehouse: Path
) -> None:
    """Delta shows a commit not later than the one before it a millisecond after that.

    version         1 ... 2              3 ... 10      11 ... 36
    file's time     now   in an hour     now           now
    shown           now   in an hour     ... + n ms    now: the newest 30 begin after 2
    """
    spark, table = project.spark, items(project)
    model(project, "h", f"select * from {table}")
    spark.sql(f"insert into {table} values (1, 'a'), (2, 'b')")
    spark.sql(f"update {table} set v = 'x' where id = 1")
    log = warehouse / f"{project.schema}.db" / "items" / "_delta_log"
    later = time.time() + 3600
    os.utime(log / f"{2:020}.json", (later, later))
    for number in range(8):
        spark.sql(f"alter table {table} set tblproperties ('touched' = '{number}')")
    project.forget_logs()
    project.run("h")
    spark.sql(f"insert into {table} values (3, 'c')")
    spark.sql(f"delete from {table} where id = 3")
    for number in range(24):
        spark.sql(f"alter table {table} set tblproperties ('touched' = '{number}')")
    project.run("h")

    assert versions(project) == [(1, "x", True), (2, "b", True), (3, "c", False)]


@pytest.mark.thorough
def test_two_runs_at_once_make_each_version_once(
    project: Project, warehouse: Path, tmp_path: Path
) -> None:
    config = {"materialized": "history", "unique_key": "id"}
    select = "select * from values (1, 'a'), (2, 'b') as rows(id, v)"
    both = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.sql").write_text(select)
        (tmp_path / name / "config.json").write_text(json.dumps(config))
        both.append(start(tmp_path / name, warehouse, project.schema))

    together(both)

    model(project, "h", select)
    assert project.run("h").message("h").startswith("no new batch")
    assert versions(project) == [(1, "a", True), (2, "b", True)]


def test_input_that_cannot_be_a_history_is_refused_with_a_way_out(project: Project) -> None:
    rows = "select cast(id as bigint) as id, v, at, w as {} from values {} as rows(id, v, at, w)"
    one = "(1, 'a', timestamp'2024-01-01', 1)"
    cases = {
        "doubles": (rows.format("w", one + ", (1, 'b', null, 1)"), {}, [
            "several rows of the source have the same key", "one row per key (id) of the SELECT",
            "meta.history.updated_at",
        ]),
        "copies": (rows.format("w", one + ", " + one), {"updated_at": "at"}, [
            "one row per key (id, at) of the SELECT",
        ]),
        "no_time": (rows.format("w", one + ", (1, 'b', null, 1)"), {"updated_at": "at"}, [
            "1 rows: valid_from is NULL (updated_at: at)", '"id": 1',
        ]),
        "no_key": (rows.format("w", one + ", (null, 'b', null, 1)"), {}, [
            "1 rows: a key column is NULL",
        ]),
        "own_name": (rows.format("`Valid_To`", one), {}, [
            "column Valid_To has the name of a column of the period (convention validity)",
            "way out: rename the column in the SELECT, or give the period other names",
        ]),
        "reserved": (rows.format("_batch", one), {"updated_at": "att"}, [
            "column _batch has a name that the history needs",
            "updated_at is att, and the SELECT has no such column, did you mean at?",
        ]),
        "no_type": (rows.format("w", one), {"updated_at": "v", "source": "changes",
                                            "deleted": "w"}, [
            "updated_at is v, which is string, not timestamp: cast it in the SELECT",
            "deleted is w, which is int, not boolean",
        ]),
    }  # fmt: skip
    for name, (sql, history, _) in cases.items():
        model(project, name, sql, **history)
    run = project.run(*cases, check=False)
    for name, (_, _, texts) in cases.items():
        for text in ["dbt_history.history: ", *texts]:
            assert text in run.message(name), (name, run.message(name))
        assert not project.spark.catalog.tableExists(project.table(name)), name


@pytest.mark.parametrize("option", ["--empty", thorough("--sample=1 day")])
def test_rows_that_dbt_hides_were_not_deleted(project: Project, option: str) -> None:
    sql = "select cast(id as bigint) as id, v, day from values (1, 'a', date'2024-01-01')"
    project.model("items", f"{sql} as rows(id, v, day)", materialized="table", event_time="day")
    model(project, "h", "select * from {{ ref('items') }}")
    project.run("items", "h")

    project.run("h", options=option.split("=") if "=" in option else [option])

    assert versions(project) == [(1, "a", True)]


@pytest.mark.thorough
def test_rows_joined_to_hidden_ones_are_not_taken(project: Project) -> None:
    """
    days      1 in 2024    2 an hour ago
    sample    hidden       2: a row of its own, and not a join or an aggregate of all days
    """
    project.model("items", "select 1L as id", materialized="table")
    day = "select 1L as id, timestamp'2024-01-01' as day"
    project.model("days", day, materialized="table", event_time="day")
    join = "select i.id, d.day from {{ ref('items') }} as i left join {{ ref('days') }} as d"
    model(project, "h", f"{join} on i.id = d.id")
    model(project, "n", "select 1L as id, count(*) as n from {{ ref('days') }}")
    project.model(
        "counted", "select count(*) as n from {{ ref('days') }}", materialized="ephemeral"
    )
    model(project, "e", "select 1L as id, n from {{ ref('counted') }}")
    rows = "with days as (select * from {{ ref('days') }}) select id, day from days where id > 0"
    model(project, "w", rows)
    tables = ["h", "n", "e"]
    project.run("items", "days", "w", *tables)
    before = [project.rows(table) for table in tables]
    hour = "current_timestamp() - interval 1 hour"
    project.spark.sql(f"insert into {project.table('days')} values (2, {hour})")

    project.run(*tables, options=["--empty"])
    run = project.run("w", *tables, options=["--sample", "1 day"], check=False)

    for table, operator in zip(tables, ["Join", "Aggregate", "Aggregate"], strict=True):
        assert "dbt_history.history: --sample hides rows" in run.message(table)
        assert f"got: a SELECT with {operator}" in run.message(table)
    assert [project.rows(table) for table in tables] == before
    assert sorted(row["id"] for row in project.rows("w") if row["valid_to"] is None) == [1, 2]


@pytest.mark.thorough
def test_changes_of_two_runs_at_once_are_all_kept(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both plan batch 2; the second one to commit plans again, because its rows are others."""
    for day in range(3):
        shown(project, f"select cast({day} as bigint) as id, 'v{day}' as v", f"day_{day}")
    model(project, "h", "select * from day_{{ var('day') }}", source="changes")
    project.run("h", options=["--vars", "day: 0"])
    hold_run(project, monkeypatch, "day: 1", until="merge into", name="h")

    project.run("h", options=["--vars", "day: 2"])

    assert [row[0] for row in versions(project)] == [0, 1, 2]


@pytest.mark.thorough
def test_a_run_without_rows_does_not_count_as_read(project: Project) -> None:
    """
    feed      1: a   2: b   --empty   3: c, 9   4: without 9      all of it in the next run
    """
    sql = "select 1L as id, 'a' as v"
    options = {"file_format": "delta", "tblproperties": {"delta.enableChangeDataFeed": "true"}}
    project.model("items", sql, materialized="table", **options)
    model(project, "h", "select * from {{ ref('items') }}")
    project.run("items", "h")
    table = project.table("items")
    project.spark.sql(f"update {table} set v = 'b'")
    project.run("h", options=["--empty"])
    project.spark.sql(f"update {table} set v = 'c'")
    project.spark.sql(f"insert into {table} values (9, 'x')")
    project.spark.sql(f"delete from {table} where id = 9")

    project.run("h")

    assert versions(project) == [
        (1, "a", False), (1, "b", False), (1, "c", True), (9, "x", False),
    ]  # fmt: skip


@pytest.mark.thorough
def test_the_model_of_the_readme_and_of_the_guide_makes_the_table_of_the_guide(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    guide = page("docs/guides/history.md")
    sql, timed = blocks(guide, "sql")
    assert sql == blocks(page("README.md"), "sql")[0]
    schema = project.schema.removeprefix("tests_")
    for name, text in {"customer_versions": sql, "timed": timed}.items():
        text = text.replace("config(", f"config(schema='{schema}', ", 1)
        project.write(f"models/{name}.sql", text)
    source = {"name": "shop", "schema": project.schema, "tables": [{"name": "customers"}]}
    project.write("models/sources.yml", json.dumps({"version": 2, "sources": [source]}))
    project.spark.sql(f"create schema {project.schema}")
    customers = project.table("customers")
    row = f"(customer_id bigint, city string, changed_at timestamp) using delta {FEED}"
    project.spark.sql(f"create table {customers} {row}")
    at = "timestamp'2024-01-01'"
    clocks = []
    for rows in (f"(1, 'Bonn', {at}), (2, 'Kiel', {at})", f"(1, 'Ulm', {at}), (3, 'Jena', {at})"):
        project.spark.sql(f"insert overwrite {customers} values {rows}")
        clocks.append(datetime.now())
        project.run("customer_versions", "timed")

    def run_of(moment: datetime | None) -> str:
        return f"run {sum(moment > clock for clock in clocks) + 1}" if moment else ""

    found = [
        {
            "customer_id": str(row["customer_id"]),
            "city": row["city"],
            "valid_from": run_of(row["valid_from"]),
            "valid_to": run_of(row["valid_to"]),
        }
        for row in project.rows("customer_versions")
    ]
    found.sort(key=lambda row: (row["customer_id"], row["valid_from"]))
    assert found == table_after(guide, "true before")

    # Readers and tests take the convention from the model.
    reader = "dbt_history.as_of(ref('customer_versions'), 'now')"
    project.model("current", f"select city from {{{{ {reader} }}}} as found", materialized="table")
    rule = {"dbt_history.one_active_version": {"arguments": {"key": "customer_id"}}}
    tested = {"name": "customer_versions", "data_tests": [rule]}
    project.write("models/tests.yml", json.dumps({"version": 2, "models": [tested]}))
    project.run("current")
    assert sorted(row["city"] for row in project.rows("current")) == ["Jena", "Ulm"]
    assert project.dbt("test", "--select", "customer_versions").results
    assert sorted(row["city"] for row in project.rows("timed") if not row["valid_to"]) == [
        "Jena", "Ulm",
    ]  # fmt: skip

    # What `dbt-history doctor` reads.
    capsys.readouterr()
    project.dbt("run-operation", "dbt_history._doctor_facts")
    found_facts = FACTS.search(capsys.readouterr().out)
    assert found_facts
    facts = json.loads(found_facts[1])
    assert (facts["delta"], facts["threads"]) == ("4.4.0", 1)
    assert facts["settings"]["spark.sql.catalog.spark_catalog"] == CATALOG
    assert [(one["table"], one["feed"]) for one in facts["sources"]] == [(customers, True)]


@pytest.mark.thorough
def test_a_run_says_once_which_settings_make_small_tables_slow(project: Project) -> None:
    names = ("spark.sql.shuffle.partitions", "spark.databricks.delta.snapshotPartitions")
    advice = "writing a small table takes several times as long"
    before = {name: str(project.spark.conf.get(name)) for name in names}
    for name in ("one", "two"):
        project.model(name, "select 1 as id, 'a' as v", materialized="history", unique_key="id")
    try:
        for name in names:
            project.spark.conf.unset(name)
        slow = project.run("one", "two")
        again = project.run("one", "two")
        project.model("two", "select 1 as id, 'b' as v", materialized="history", unique_key="id")
        changed = project.run("two")
    finally:
        for name, value in before.items():
            project.spark.conf.set(name, value)
    project.model("one", "select 1 as id, 'b' as v", materialized="history", unique_key="id")
    quick = project.run("one")

    assert [run.log.count(advice) for run in (slow, again, changed, quick)] == [1, 0, 1, 0]
    for name in names:
        assert f"write: {name}: " in slow.log


@pytest.mark.thorough
def test_columns_that_are_renamed_make_versions_of_records_that_do_not_change(
    project: Project,
) -> None:
    """
    items    three records |    1 Bern    city to town, a and b swapped    1 Rome |
    runs                    1                                                      2
    items    town dropped    2 has b n    town added |
    runs                                              3
    """
    table = f"{project.schema}.items"
    project.spark.sql(f"create schema if not exists {project.schema}")
    project.spark.sql(
        f"create table {table} (id bigint, city string, a string, b string) using delta"
        f" {FEED[:-1]}, 'delta.columnMapping.mode' = 'name')"
    )
    model(project, "h", f"select * from {table}")
    project.model(
        "b",
        "select * from {{ dbt_history.batch_rows(dbt_history.changes(api.Relation.create("
        f"schema='{project.schema}', identifier='items'))) }}}}",
        materialized="history_batch", unique_key="id", meta={"history": "validity"},
    )  # fmt: skip

    def play(*statements: str) -> None:
        for statement in statements:
            project.spark.sql(statement.format(table))
        project.run("h", "b")

    def of(id_: int, name: str) -> list[tuple[Any, ...]]:
        rows = [row for row in project.rows(name) if row["id"] == id_]
        rows.sort(key=lambda row: row["valid_from"])
        assert [row["valid_to"] for row in rows[:-1]] == [row["valid_from"] for row in rows[1:]]
        assert rows[-1]["valid_to"] is None
        return [(row["city"], row["town"], row["a"], row["b"]) for row in rows]

    play("insert into {} values (1, 'Bonn', 'a', 'b'), (2, 'Oslo', 'p', 'q'), (3, null, 'c', 'c')")
    play(
        "update {} set city = 'Bern' where id = 1", "alter table {} rename column city to town",
        "alter table {} rename column a to x", "alter table {} rename column b to a",
        "alter table {} rename column x to b", "update {} set town = 'Rome' where id = 1",
    )  # fmt: skip
    play(
        "alter table {} drop column town", "update {} set b = 'n' where id = 2",
        "alter table {} add columns (town string)",
    )  # fmt: skip

    for name in ("h", "b"):
        assert "x" not in project.spark.table(project.table(name)).columns
        assert of(1, name) == [
            ("Bonn", None, "a", "b"), ("Bern", None, "a", "b"), (None, "Bern", "b", "a"),
            (None, "Rome", "b", "a"), (None, None, "b", "a"),
        ]  # fmt: skip
        assert of(2, name) == [
            ("Oslo", None, "p", "q"), (None, "Oslo", "q", "p"), (None, None, "q", "p"),
            (None, None, "q", "n"),
        ]  # fmt: skip
        assert of(3, name) == [(None, None, "c", "c")]


@pytest.mark.thorough
def test_a_column_renamed_in_the_source_and_in_the_table_makes_no_versions(
    project: Project,
) -> None:
    """
    items    1 a, 2 b |    1 c    v to w                      |    1 v again (restored: w to v) |
    runs              1           the table's column, too     2                                 3
    """
    table = items(project, f"{FEED[:-1]}, 'delta.columnMapping.mode' = 'name')")
    project.spark.sql(f"insert into {table} values (1, 'a'), (2, 'b')")
    model(project, "h", f"select * from {table}")
    project.run("h")
    project.spark.sql(f"update {table} set v = 'c' where id = 1")
    project.spark.sql(f"alter table {table} rename column v to w")
    renamed = json.dumps({"table": project.table("h"), "from_column": "v", "to_column": "w"})
    project.dbt("run-operation", "rename_column", "--args", renamed)
    project.run("h")

    def found(*names: str) -> list[tuple[Any, ...]]:
        rows = sorted(project.rows("h"), key=lambda row: (row["id"], row["valid_from"]))
        return [tuple(row[name] for name in ("id", *names)) for row in rows]

    assert "v" not in project.spark.table(project.table("h")).columns
    assert found("w") == [(1, "a"), (1, "c"), (2, "b")]

    project.spark.sql(f"restore table {table} to version as of 1")
    project.run("h")
    assert found("w", "v") == [(1, "a", None), (1, "c", None), (1, None, "a"), (2, "b", None),
                               (2, None, "b")]  # fmt: skip
