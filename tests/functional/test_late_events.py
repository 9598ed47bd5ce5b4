"""Rule 7b: upserts and deletes in any order of arrival; the tombstones of early deletions."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.support.markdown import blocks, page
from tests.support.project import Project
from tests.support.staging import (
    COLUMNS,
    TYPES,
    before,
    day,
    delete,
    stage,
    update,
    upsert,
    version,
)
from tests.support.tables import assert_same_rows, data_frame


def tombstone(id_: Any, end: Any) -> dict[str, Any]:
    """The row of a deletion that no version shows: it starts a gap after its end, and is empty."""
    return {
        "id": id_, "v": None, "w": None, "_fivetran_start": end + timedelta(milliseconds=1),
        "_fivetran_end": end, "_fivetran_active": False,
    }  # fmt: skip


def deletion(batch: int, id_: int, at: datetime) -> dict[str, Any]:
    """A delete row of `batch_rows`: it starts at the time of the deletion."""
    return {**delete(batch, id_, before(at)), "_fivetran_start": at}


@pytest.mark.thorough
def test_a_deletion_is_kept_until_its_version_arrives(project: Project) -> None:
    """The table after each batch:

    day          3        5        7        9        12
    1: delete                               |              tombstone at 9
    2: upsert    [ a -----------------------)              it is not needed any more
    3: delete    [ a -----)                 |              and now it is
    4: upsert    [ a -----)        [ b -----)
    5: upsert    [ a -----)        [ b -----)        [ c ------ open
    """
    rows = [
        delete(1, 1, day(9)),
        upsert(2, 1, day(3)),
        delete(3, 1, day(5)),
        upsert(4, 1, day(7), "b"),
        upsert(5, 1, day(12), "c"),
    ]
    a, b = version(1, "a", day(3), day(5)), version(1, "b", day(7), day(9))
    tables = [
        [tombstone(1, day(9))],
        [version(1, "a", day(3), day(9))],
        [a, tombstone(1, day(9))],
        [a, b],
        [a, b, version(1, "c", day(12))],
    ]
    stage(project, "arrived", rows)
    project.history("h", "select * from arrived", late_events=True)

    project.run("h")

    log = project.log_of("h")
    commits = [entry["version"] for entry in log if "batch" in (entry["userMetadata"] or "")]
    for commit, expected in zip(sorted(commits), tables, strict=True):
        found = project.spark.sql(f"select * from {project.table('h')} version as of {commit}")
        assert_same_rows([row.asDict() for row in found.collect()], expected, COLUMNS, f"{commit}")


@pytest.mark.thorough
def test_an_update_that_hides_a_deletion_adds_its_tombstone_too(project: Project) -> None:
    """An update row with an end of its own; the commit of its batch adds two rows.

    day          2        5   6        9
    1: both      [ a -----------------)
    2: update    [ a -----)[ b )      |     tombstone at 9
    """
    ended = update(2, 1, day(5), _fivetran_end=day(6), _fivetran_active=False)
    stage(project, "ended_update", [upsert(1, 1, day(2)), delete(1, 1, day(9)), ended])
    project.history("h", "select * from ended_update", late_events=True)

    assert project.run("h").message("h").startswith("2 batches: 3 added")

    expected = [
        version(1, "a", day(2), before(day(5))),
        version(1, "b", day(5), day(6)),
        tombstone(1, day(9)),
    ]
    assert_same_rows(project.rows("h"), expected, COLUMNS)


@pytest.mark.thorough
@pytest.mark.parametrize("late", [False, True], ids=["file", "event"])
def test_only_an_event_deletes_the_version_that_starts_a_gap_after_its_end(
    project: Project, late: bool
) -> None:
    """A delete row with start 5 and end 5 - gap:

    day          3         5
    stored       [ a -----)[ b ------ open
    file         [ a -----)[ b ------ open     its end counts: it hits a
    event        [ a -----)[ b )               its start counts: it hits b, before b begins
    """
    row = deletion(2, 1, day(5))
    stage(project, "arrived", [upsert(1, 1, day(3)), upsert(1, 1, day(5), "b"), row])
    project.history("h", "select * from arrived", late_events=late)

    project.run("h")

    end = {"end": before(day(5))} if late else {}
    expected = [version(1, "a", day(3), before(day(5))), version(1, "b", day(5), **end)]
    assert_same_rows(project.rows("h"), expected, COLUMNS)


@pytest.mark.thorough
def test_no_reader_or_test_finds_a_tombstone_and_cleaning_removes_it(project: Project) -> None:
    rows = [
        upsert(1, 1, day(1)), delete(1, 1, day(3)), delete(1, 1, day(5)), delete(1, 2, day(5)),
        upsert(1, 1, day(8), "b"), upsert(1, 3, day(1)), delete(1, 3, day(6)),
    ]  # fmt: skip
    stage(project, "staged", rows)
    project.history("h", "select * from staged", late_events=True)
    project.run("h")
    seen = [version(1, "a", day(1), day(3)), version(3, "a", day(1), day(6))]
    seen.append(version(1, "b", day(8)))
    dead = [tombstone(1, day(5)), tombstone(2, day(5))]
    assert_same_rows(project.rows("h"), seen + dead, COLUMNS)

    readers = {
        "instant": "as_of(ref('h'), '2024-01-05')",
        "later": "as_of(ref('h'), '2024-01-05 00:00:00.001')",
        "within": "between(ref('h'), '2024-01-01', '2024-01-07')",
        "changed": "changeset(ref('h'), '2024-01-04', '2024-01-07', key='id')",
    }
    for name, reader in readers.items():
        project.model(
            name, f"select * from {{{{ dbt_history.{reader} }}}} as found", materialized="table"
        )
    tests = [
        "periods_do_not_overlap", "one_active_version", "period_is_well_formed",
        "active_matches_open_end", "no_gap_between_versions",
    ]  # fmt: skip
    project.write("models/h.yml", json.dumps({"version": 2, "models": [{
        "name": "h",
        "data_tests": [{f"dbt_history.{name}": {"arguments": {"key": "id"}}} for name in tests],
    }]}))  # fmt: skip
    project.run(*readers)
    assert {name: len(project.rows(name)) for name in readers} == {
        "instant": 1, "later": 1, "within": 2, "changed": 1,
    }  # fmt: skip
    assert len(project.dbt("test", "--select", "h").results) == len(tests)

    def operation(name: str, **arguments: Any) -> None:
        project.dbt("run-operation", name, "--args", json.dumps(arguments))

    operation("verify_history", table="h")
    operation("clean_history", table="h", keep_versions=2)
    assert_same_rows(project.rows("h"), seen + dead, COLUMNS)
    operation("clean_history", table="h", before="2024-01-07")
    assert_same_rows(project.rows("h"), seen[2:], COLUMNS)


@pytest.mark.thorough
def test_a_late_event_keeps_its_time_whatever_the_name_of_its_column(project: Project) -> None:
    """
    git_commit_time    5                10
    commit             2                1
    becomes            [ b ------------)[ a ---- open
    """
    rows = (
        "(select 'insert' as _change_type, n as _commit_version, current_timestamp() as"
        " _commit_timestamp, 1 as id, v, make_timestamp(2024, 1, d, 0, 0, 0) as git_commit_time"
        " from values (1L, 'a', 10), (2L, 'b', 5) as rows(n, v, d))"
    )
    sql = f'dbt_history.batch_rows("{rows}", "id", "validity", at="git_commit_time")'
    project.history("h", f"select * from {{{{ {sql} }}}}", convention="validity")

    project.run("h")

    found = {(row["v"], row["valid_from"], row["valid_to"]) for row in project.rows("h")}
    assert found == {("b", day(5), day(10)), ("a", day(10), None)}


@pytest.mark.thorough
@pytest.mark.parametrize("convention", ["fivetran", "validity"])
def test_changes_arrive_in_any_order_unless_the_model_refuses_late_events(
    project: Project, convention: str
) -> None:
    """A feed that is read in two parts, with the time of each change in `happened`.

    first part     delete at 9, insert at 12      second part     insert at 3
    becomes        [ 3 ---------)        [ 12 ------ open
    """
    start, end = ("_fivetran_start", "_fivetran_end") if convention == "fivetran" else (
        "valid_from", "valid_to",
    )  # fmt: skip
    types = {
        "_change_type": "string", "_commit_version": "bigint", "_commit_timestamp": "timestamp",
        "id": "bigint", "happened": "timestamp",
    }  # fmt: skip

    def feed(*rows: tuple[str, int, int]) -> None:
        changes = [
            dict(zip(types, (kind, number, day(20 + number), 1, day(on)), strict=True))
            for kind, number, on in rows
        ]
        data_frame(project.spark, changes, types).createOrReplaceTempView("feed")

    rows = f"dbt_history.batch_rows('feed', 'id', '{convention}', at='happened')"
    for name, late in [("any_order", None), ("in_order", False)]:
        more: Any = {} if late is None else {"late_events": late}
        sql = f"select * from {{{{ {rows} }}}}"
        project.history(name, sql, convention=convention, **more)
    feed(("delete", 1, 9), ("insert", 2, 12))
    project.run("any_order", "in_order")
    feed(("insert", 3, 3))
    project.run("any_order", "in_order")

    gap = timedelta(milliseconds=1) if convention == "fivetran" else timedelta(0)
    ends = {
        name: {row[start]: row[end] for row in project.rows(name)}
        for name in ("any_order", "in_order")
    }
    assert ends["any_order"][day(3)] == day(9) - gap
    assert ends["in_order"][day(3)] == day(12) - gap
    assert set(ends["any_order"]) == {day(3), day(12)}
    reader = f"dbt_history.as_of(ref('any_order'), '2024-01-09', '{convention}')"
    project.model("found", f"select * from {{{{ {reader} }}}} as found", materialized="table")
    project.run("found")
    assert project.rows("found") == []


@pytest.mark.thorough
def test_a_delete_at_the_start_of_a_version_ends_it_also_with_a_gap(project: Project) -> None:
    """The time of a deletion is the record's last `happened`: the start of its version."""
    types = {
        "_change_type": "string", "_commit_version": "bigint", "_commit_timestamp": "timestamp",
        "id": "bigint", "happened": "timestamp",
    }  # fmt: skip
    rows = "dbt_history.batch_rows('feed', 'id', 'fivetran', at='happened')"
    project.history("h", f"select * from {{{{ {rows} }}}}")
    for number, kind in enumerate(["insert", "delete"]):
        change = dict(zip(types, (kind, number, day(20), 1, day(5)), strict=True))
        data_frame(project.spark, [change], types).createOrReplaceTempView("feed")
        project.run("h")

    [row] = project.rows("h")
    assert (row["_fivetran_start"], row["_fivetran_end"]) == (day(5), before(day(5)))
    assert row["_fivetran_active"] is False


@pytest.mark.thorough
def test_deletions_one_gap_apart_are_kept_once_each(project: Project) -> None:
    """Events of three records, the number n n milliseconds after the start of the day; the table:

    record    1             1, again        1             2: D5     2            2: b at 4
    batch     D4, D5        D4, D5          a at 3                  a at 3, D4
    [ a )                                   3 to 3                  3 to 3       3 to 3
    [ b )                                                                        4 to 4
    D4        kept          kept
    D5        kept          kept            kept          kept      kept

    record    3: D10    3: a at 9, D9
    [ a )               9 to 8
    D10       kept      kept
    """

    def at(number: int) -> datetime:
        return day(5) + timedelta(milliseconds=number)

    rows = [
        deletion(1, 1, at(4)), deletion(1, 1, at(5)), deletion(1, 2, at(5)), deletion(1, 3, at(10)),
        deletion(2, 1, at(4)), deletion(2, 1, at(5)), upsert(2, 2, at(3)), deletion(2, 2, at(4)),
        upsert(2, 3, at(9)), deletion(2, 3, at(9)),
        upsert(3, 1, at(3)), upsert(3, 2, at(3)), deletion(3, 2, at(4)),
        upsert(4, 2, at(4), "b"),
    ]  # fmt: skip
    stage(project, "arrived", rows)
    project.history("h", "select * from arrived", late_events=True, batches_per_commit=1)

    project.run("h")

    expected = [
        version(1, "a", at(3), at(3)), tombstone(1, at(4)),
        version(2, "a", at(3), at(3)), version(2, "b", at(4), at(4)),
        version(3, "a", at(9), at(8)), tombstone(3, at(9)),
    ]  # fmt: skip
    assert_same_rows(project.rows("h"), expected, COLUMNS)


def test_no_tombstone_has_the_start_of_a_version_with_active_null(project: Project) -> None:
    """A version that is never closed, of a table of another tool:

    day          3         5
    stored                 [ a ------ active NULL
    1: delete              |                          a ends earlier versions there itself
    2: upsert    [ b -----)[ a ------ active NULL
    """
    stored = {**version(1, "a", day(5)), "_fivetran_active": None}
    project.spark.sql(f"create schema if not exists {project.schema}")
    data_frame(project.spark, [stored], TYPES).write.format("delta").saveAsTable(project.table("h"))
    stage(project, "arrived", [deletion(1, 1, day(5)), upsert(2, 1, day(3), "b")])
    project.history("h", "select * from arrived", late_events=True, batches_per_commit=1)

    project.run("h")

    expected = [version(1, "b", day(3), before(day(5))), stored]
    assert_same_rows(project.rows("h"), expected, COLUMNS)


@pytest.mark.thorough
def test_events_are_ordered_by_several_columns_and_deleted_by_a_condition(
    project: Project,
) -> None:
    """Events that arrive in any order, within and between the parts of the feed:

    happened    3, 1    3, 2         5          9           12
    op          I a     U b          U c        D           I d
    becomes             [ b --------)[ c ------)            [ d ---- open
    """
    types = {
        "_change_type": "string", "_commit_version": "bigint", "_commit_timestamp": "timestamp",
        "id": "bigint", "happened": "timestamp", "line": "bigint", "op": "string", "v": "string",
    }  # fmt: skip
    parts: list[list[Any]] = [
        [(7, 12, 1, "I", "d"), (7, 9, 1, "D", None)],
        [(8, 5, 1, "U", "c"), (8, 3, 2, "U", "b"), (9, 3, 1, "I", "a")],
    ]
    rows = (
        "dbt_history.batch_rows('feed', 'id', 'validity', sequence=['happened', 'line'],"
        " delete_when=\"op = 'D'\")"
    )
    project.history("h", f"select * from {{{{ {rows} }}}}", convention="validity")

    for part in parts:
        changes = [
            dict(zip(types, ("insert", commit, day(20), 1, day(on), *more), strict=True))
            for commit, on, *more in part
        ]
        data_frame(project.spark, changes, types).createOrReplaceTempView("feed")
        project.run("h")

    found = {(row["v"], row["valid_from"], row["valid_to"]) for row in project.rows("h")}
    assert found == {("b", day(3), day(5)), ("c", day(5), day(9)), ("d", day(12), None)}


@pytest.mark.thorough
@pytest.mark.parametrize("is_feed", [True, False], ids=["feed", "difference"])
def test_the_models_of_the_guide_make_the_history_of_an_event_table(
    project: Project, is_feed: bool
) -> None:
    """Each run has several events of a record; the last has two at one time, which need `line`:

    happened    3         5         7         9         12
    run 1       I a       U b
    run 2       deleted             U c       D
    run 3                                               I d, U e
    versions    [ a -----)[ b -----)[ c -----)          [ e ---- open

    Without the filter of the guide, the event that is deleted takes its version with it.
    """
    long, short = (text for text in blocks(page("docs/guides/batches.md"), "sql") if "op =" in text)
    schema = project.schema.removeprefix("tests_")
    unfiltered = long.replace(" where _change_type <> 'delete'", "")
    for name, text in {"long": long, "short": short, "unfiltered": unfiltered}.items():
        text = text.replace("config(", f"config(schema='{schema}', ", 1)
        project.write(f"models/{name}.sql", text)
    source = {"name": "shop", "schema": project.schema, "tables": [{"name": "events"}]}
    project.write("models/sources.yml", json.dumps({"version": 2, "sources": [source]}))
    events = project.table("events")
    project.spark.sql(f"create schema if not exists {project.schema}")
    project.spark.sql(
        f"create table {events} (id bigint, happened timestamp, line bigint, op string, v string)"
        f" using delta tblproperties ('delta.enableChangeDataFeed' = '{is_feed}')"
    )

    def happen(*rows: tuple[int, int, str, str | None]) -> None:
        types = {"id": "bigint", "happened": "timestamp", "line": "bigint", "op": "string"}
        cells = [
            {"id": 1, "happened": day(on), "line": line, "op": op, "v": v}
            for on, line, op, v in rows
        ]
        frame = data_frame(project.spark, cells, types | {"v": "string"})
        frame.write.insertInto(events)

    def versions(name: str) -> list[tuple[Any, ...]]:
        rows = [(row["v"], row["valid_from"], row["valid_to"]) for row in project.rows(name)]
        return sorted(rows, key=lambda row: row[1])

    models = ["long", "short", *(["unfiltered"] if is_feed else [])]
    happen((3, 1, "I", "a"), (5, 1, "U", "b"))
    project.run(*models)
    expected = [("a", day(3), day(5)), ("b", day(5), None)]
    assert versions("long") == versions("short") == expected

    happen((7, 1, "U", "c"), (9, 1, "D", None))
    project.spark.sql(f"delete from {events} where happened < '2024-01-05'")
    project.run(*models)
    expected[1:] = [("b", day(5), day(7)), ("c", day(7), day(9))]
    assert versions("long") == versions("short") == expected
    if is_feed:
        assert versions("unfiltered")[0] == ("a", day(3), day(3))

    happen((12, 1, "I", "d"), (12, 2, "U", "e"))
    project.run("long")
    assert versions("long") == [*expected, ("e", day(12), None)]


def test_an_update_of_an_events_time_is_no_deletion(project: Project) -> None:
    """The feed of a table whose rows carry the time of their last change."""
    types = {
        "_change_type": "string", "_commit_version": "bigint", "_commit_timestamp": "timestamp",
        "id": "bigint", "happened": "timestamp", "v": "string",
    }  # fmt: skip
    changes = [
        dict(zip(types, row, strict=True))
        for row in [
            ("insert", 1, day(20), 1, day(3), "a"),
            ("update_preimage", 2, day(21), 1, day(3), "a"),
            ("update_postimage", 2, day(21), 1, day(5), "b"),
        ]
    ]
    data_frame(project.spark, changes, types).createOrReplaceTempView("feed")
    rows = "dbt_history.batch_rows('feed', 'id', 'validity', at='happened')"
    project.history("h", f"select * from {{{{ {rows} }}}}", convention="validity")

    project.run("h")

    found = {(row["v"], row["valid_from"], row["valid_to"]) for row in project.rows("h")}
    assert found == {("a", day(3), day(5)), ("b", day(5), None)}


@pytest.mark.thorough
def test_late_events_may_be_switched_on_for_an_existing_table(project: Project) -> None:
    """A closed version ends a late upsert; a deletion that was ignored before stays unknown.

    day              3        5        9
    before           [ a --------------)        delete at 12 was ignored
    then                      upsert            and an upsert at 11
    """
    rows = [upsert(1, 1, day(3)), delete(1, 1, day(9)), delete(2, 1, day(12))]
    project.history("h", stage(project, "first", rows))
    project.run("h")
    later = [upsert(3, 1, day(5), "b"), upsert(3, 1, day(11), "c")]
    stage(project, "second", later)
    project.history("h", "select * from second", late_events=True)

    project.run("h")

    expected = [
        version(1, "a", day(3), before(day(5))),
        version(1, "b", day(5), day(9)),
        version(1, "c", day(11)),
    ]
    assert_same_rows(project.rows("h"), expected, COLUMNS)
