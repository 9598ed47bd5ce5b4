"""`merge_equal`, `track_columns` and `except`: equal versions are one version."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pytest

from tests.support.project import Project
from tests.support.staging import day
from tests.support.tables import data_frame

TYPES = {
    "_change_type": "string", "_commit_version": "bigint", "_commit_timestamp": "timestamp",
    "id": "bigint", "happened": "timestamp", "name": "string", "seen": "bigint",
}  # fmt: skip
TESTS = (
    "periods_do_not_overlap", "one_active_version", "period_is_well_formed",
    "no_gap_between_versions",
)  # fmt: skip
Found = set[tuple[Any, ...]]


def feed(project: Project, *changes: tuple[int, str | None, int]) -> None:
    """Changes of record 1: day, name (None: deleted), seen."""
    rows = [
        dict(zip(
            TYPES,
            ("insert" if name else "delete", number, day(30), 1, day(on), name, seen), strict=True,
        ))
        for number, (on, name, seen) in enumerate(changes, 1)
    ]  # fmt: skip
    data_frame(project.spark, rows, TYPES).createOrReplaceTempView("feed")


def model(project: Project, options: str, **settings: Any) -> None:
    sql = f"dbt_history.batch_rows('feed', 'id', 'validity', at='happened'{options})"
    project.history(
        "h", f"select * except (happened) from {{{{ {sql} }}}}", convention="validity", **settings
    )


def operate(project: Project, name: str, check: bool = True, **arguments: Any) -> str:
    """The log of a run-operation."""
    return project.dbt("run-operation", name, "--args", json.dumps(arguments), check=check).log


def stored(project: Project, where: str = "true") -> Found:
    sql = f"select name, seen, valid_from, valid_to from {project.table('h')} where {where}"
    return {tuple(row) for row in project.spark.sql(sql).collect()}


def seen_versions(project: Project) -> Found:
    return stored(project, "valid_from < valid_to or valid_to is null")


@pytest.mark.thorough
def test_a_change_of_other_columns_updates_the_version_in_place(project: Project) -> None:
    """Names of record 1; `seen` is not tracked:

    day          1         3         5         7          9         12
    first run    a, 10               a, 50     a, 70                b, 120
    stored       [ a, 70 ----------------------------------------- [ b, 120 ---- open
    repeats                          a, 10     a, 50
    late                   x, 30                          deleted
    stored       [ a, 10 -)[ x, 30 -)[ a, 70 ------------)         [ b, 120 ---- open
    repeats                                    a, 50
    """
    model(project, ", track_columns='NAME'")
    feed(project, (1, "a", 10), (12, "b", 120), (5, "a", 50), (7, "a", 70))
    project.run("h")
    assert stored(project) == {
        ("a", 70, day(1), day(12)), ("a", 10, day(5), day(5)), ("a", 50, day(7), day(7)),
        ("b", 120, day(12), None),
    }  # fmt: skip
    readers = {
        "instant": ("as_of(ref('h'), '2024-01-05', 'validity')", 1),
        "within": ("between(ref('h'), '2024-01-02', '2024-01-08', 'validity')", 1),
        "changed": ("changeset(ref('h'), '2024-01-02', '2024-01-08', 'validity', key='id')", 0),
    }
    for name, (reader, _) in readers.items():
        project.model(
            name, f"select * from {{{{ dbt_history.{reader} }}}} as found", materialized="table"
        )
    arguments = {"key": "id", "convention": "validity"}
    tests = [{f"dbt_history.{name}": {"arguments": arguments}} for name in TESTS]
    described = {"version": 2, "models": [{"name": "h", "data_tests": tests}]}
    project.write("models/h.yml", json.dumps(described))
    project.run(*readers)
    assert {name: len(project.rows(name)) for name in readers} == {
        name: rows for name, (_, rows) in readers.items()
    }
    assert len(project.dbt("test", "--select", "h").results) == len(TESTS)

    feed(project, (9, None, 0), (3, "x", 30))
    project.run("h")

    assert stored(project) == {
        ("a", 10, day(1), day(3)), ("x", 30, day(3), day(5)), ("a", 70, day(5), day(9)),
        ("a", 50, day(7), day(7)), ("b", 120, day(12), None),
    }  # fmt: skip


@pytest.mark.thorough
def test_equal_versions_are_joined_until_the_option_is_removed(project: Project) -> None:
    """Equal values around a deletion are two versions:

    day          1      3      5      8
    changes      a      a      -      a
    versions     [ a ---------)       [ a ---- open
    without      [ a --)[ a --)       [ a --)[ b ---- open      from the next change of the record
    """
    joined: Found = {("a", 1, day(1), day(5)), ("a", 1, day(8), None)}
    model(project, ", merge_equal=true")
    feed(project, (1, "a", 1), (3, "a", 1), (5, None, 0), (8, "a", 1))
    project.run("h")
    assert seen_versions(project) == joined

    model(project, "")
    feed(project, (2, "a", 1), (9, "b", 1))
    project.run("h")

    periods: list[tuple[int, datetime | None]] = [
        (1, day(2)), (2, day(3)), (3, day(5)), (8, day(9)),
    ]  # fmt: skip
    assert seen_versions(project) == {
        *(("a", 1, day(start), end) for start, end in periods), ("b", 1, day(9), None),
    }  # fmt: skip


@pytest.mark.thorough
def test_repeats_stay_in_order_when_late_events_are_switched_off(project: Project) -> None:
    """The second run has no `track_columns`; what ended before its first change stays as it is:

    day          1         5         9
    first run    [ a, 50 ------------------- open      repeat at 5: a, 10
    second run   [ a, 50 ------------)[ b, 90 ---- open
    """
    model(project, ", track_columns='name'")
    feed(project, (1, "a", 10), (5, "a", 50))
    project.run("h")
    model(project, "", late_events=False)
    feed(project, (9, "b", 90))

    project.run("h")

    assert stored(project) == {
        ("a", 50, day(1), day(9)), ("a", 10, day(5), day(5)), ("b", 90, day(9), None),
    }  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("option", ["track_columns='name'", "except='seen'"])
def test_a_rewind_joins_equal_versions_also_after_a_rename(project: Project, option: str) -> None:
    """`seen` is not tracked; the rewinds begin in 2100 and 2101:

    day          1          5         9         2100      2101
    first run    a, 10      a, 50     b, 90
    stored       [ a, 50 -------------[ b, 90 -- open
    to day 6     [ a, 50 -------------[ b, 90 --)[ a, 50 -- open
    to day 10    [ a, 50 -------------[ b, 90 --)[ a, 50 --)[ b, 90 -- open
    repeat                  a, 10
    """
    model(project, f", {option}")
    feed(project, (1, "a", 10), (5, "a", 50), (9, "b", 90))
    project.run("h")

    operate(project, "rewind", table="h", to="2024-01-06", at="2100-01-01")
    old = "name" if "name" in option else "seen"
    table = project.table("h")
    operate(project, "rename_column", table=table, from_column=old, to_column="New url")
    operate(project, "rewind", table="h", to="2024-01-10", at="2101-01-01")

    rewound = [datetime(2100, 1, 1), datetime(2101, 1, 1)]
    expected = {
        ("a", 50, day(1), day(9)), ("a", 10, day(5), day(5)), ("b", 90, day(9), rewound[0]),
        ("a", 50, rewound[0], rewound[1]), ("b", 90, rewound[1], None),
    }  # fmt: skip
    operate(project, "rename_column", table=table, from_column="New url", to_column=old)
    assert stored(project) == expected

    project.spark.sql(f"alter table {table} rename column {old} to other")
    refused = operate(project, "rewind", check=False, table="h", to="2024-01-06", at="2102-01-01")

    assert f"h: track_columns or except names {old}, which is no column of the table" in refused
    project.spark.sql(f"alter table {table} rename column other to {old}")
    assert stored(project) == expected


@pytest.mark.thorough
@pytest.mark.parametrize("options", [", track_columns='name'", ", except='seen'"])
def test_changes_sent_again_keep_a_column_that_the_select_lacks(
    project: Project, options: str
) -> None:
    """`seen` is not tracked, and the second SELECT lacks it:

    day          1         5         7         12
    changes      a, 10     a, 50     a, 70     b, 120      all of them again, and x at 3
    stored       [ a, 10 -)[ x, NULL )[ a, 70 ---- [ b, 120 ---- open
    """
    model(project, options)
    changes = ((1, "a", 10), (5, "a", 50), (7, "a", 70), (12, "b", 120))
    feed(project, *changes)
    project.run("h")
    found = stored(project)
    sql = "dbt_history.batch_rows('feed', 'id', 'validity', at='happened'{})"
    project.history(
        "h", f"select * except (happened, seen) from {{{{ {sql.format(options)} }}}}",
        convention="validity",
    )  # fmt: skip
    project.run("h")
    assert stored(project) == found

    feed(project, *changes, (3, "x", 30))
    project.run("h")

    assert seen_versions(project) == {
        ("a", 10, day(1), day(3)), ("x", None, day(3), day(5)), ("a", 70, day(5), day(12)),
        ("b", 120, day(12), None),
    }  # fmt: skip


@pytest.mark.thorough
def test_null_keeps_a_value_and_a_truncation_ends_every_record(project: Project) -> None:
    """Events of three records; op T has no key:

    day          1            3, 1       3, 2      5         7          9
    op           I            U          U         T         I          U
    record 1     a, 10        b, NULL    NULL, 30            c, NULL    d, 90
    becomes      [ a, 10 -----)[ b, 30 ------------)         [ c, NULL -[ d, 90 ---- open
    record 2     [ a, 10 --------------------------)
    late         record 3 at 6, and T at 8 of the same run
    becomes      record 1     [ c, NULL --)[ d, 90 ----      record 3  6 to 8
    """
    types = {
        "_change_type": "string", "_commit_version": "bigint", "_commit_timestamp": "timestamp",
        "id": "bigint", "happened": "timestamp", "line": "bigint", "op": "string",
        "name": "string", "it's": "bigint",
    }  # fmt: skip

    def arrive(*events: tuple[Any, ...]) -> None:
        changes = [
            dict(zip(types, ("insert", 1, day(30), id_, day(on), *more), strict=True))
            for id_, on, *more in events
        ]
        data_frame(project.spark, changes, types).createOrReplaceTempView("feed")

    rows = (
        "dbt_history.batch_rows('feed', 'id', 'validity', sequence=['happened', 'line'],"
        " ignore_null_updates=['name', \"it's\"], truncate_when=\"op = 'T'\")"
    )
    project.history(
        "h", f"select * except (happened, line, op) from {{{{ {rows} }}}}", convention="validity"
    )
    arrive(
        (1, 3, 2, "U", None, 30), (1, 1, 1, "I", "a", 10), (1, 3, 1, "U", "b", None),
        (2, 1, 1, "I", "a", 10), (None, 5, 1, "T", None, None),
        (1, 7, 1, "I", "c", None), (1, 9, 1, "U", "d", 90),
    )  # fmt: skip
    project.run("h")
    first = {
        (1, "a", 10, day(1), day(3)), (1, "b", 30, day(3), day(5)), (1, "c", None, day(7), day(9)),
        (1, "d", 90, day(9), None), (2, "a", 10, day(1), day(5)),
    }  # fmt: skip
    assert everything(project) == first

    arrive((3, 6, 1, "I", "x", 60), (None, 8, 1, "T", None, None))
    project.run("h")

    assert everything(project) == {
        *(first - {(1, "c", None, day(7), day(9))}), (1, "c", None, day(7), day(8)),
        (3, "x", 60, day(6), day(8)),
    }  # fmt: skip


@pytest.mark.thorough
def test_a_history_keeps_one_version_while_no_tracked_column_changes(project: Project) -> None:
    """Days of `changed`; each run reads the whole state:

    run       1         2          3          4
    state     a, 10     a, 50      b, 50      -
    day       1         5          9
    stored    [ a, 50 -------------[ b, 50 ---)     ends at the time of run 4
    """
    types = {"id": "bigint", "name": "string", "seen": "bigint", "changed": "timestamp"}

    def state(*rows: tuple[Any, ...]) -> None:
        found = [dict(zip(types, row, strict=True)) for row in rows]
        data_frame(project.spark, found, types).createOrReplaceTempView("state")

    project.model(
        "h", "select id, name, seen, changed from state", materialized="history",
        unique_key="id",
        meta={"history": {"updated_at": "changed", "except": ["seen"]}},
    )  # fmt: skip
    for row in [(1, "a", 10, day(1)), (1, "a", 50, day(5)), (1, "b", 50, day(9))]:
        state(row)
        project.run("h")
    assert seen_versions(project) == {("a", 50, day(1), day(9)), ("b", 50, day(9), None)}

    state()
    project.run("h")

    assert {row[3] is None for row in seen_versions(project)} == {False}


def everything(project: Project) -> Found:
    sql = f"select id, name, `it's`, valid_from, valid_to from {project.table('h')}"
    return {
        tuple(row)
        for row in project.spark.sql(sql).collect()
        if row.valid_to is None or row.valid_from < row.valid_to
    }


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (", track_columns=['nme']", "names nme, which is no column of the table"),
        (", track_columns='name', except='seen'", "track_columns and except: name one of them"),
        (", except='valid_from'", "valid_from is a column of the key or of the period"),
        (", merge_equal='yes'", 'merge_equal is "yes": true or false'),
    ],
)
def test_options_that_do_not_fit_are_refused(project: Project, options: str, reason: str) -> None:
    model(project, options)
    feed(project, (1, "a", 1))

    run = project.run("h", check=False)

    assert reason in run.log
    assert not project.spark.catalog.tableExists(project.table("h"))
