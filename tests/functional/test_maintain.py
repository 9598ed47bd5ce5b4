"""Cleaning with a retention horizon, tags, rewind, verification and erasure."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from dbt.adapters.spark.session import Cursor
from pyarrow import parquet
from pyspark.sql import SparkSession

from tests.functional.test_readers import ALL, random_versions
from tests.functional.test_resets import set_commit_times
from tests.oracle.convention import FIVETRAN, Convention
from tests.oracle.periods import as_of, period_of
from tests.oracle.random_histories import scale_of
from tests.support.processes import fail_before
from tests.support.project import Project, Run
from tests.support.rendering import Renderer
from tests.support.selection import thorough
from tests.support.staging import before
from tests.support.tables import assert_same_rows, column_types, data_frame, settings, text_of

COLUMNS = ("id", "v", "valid_from", "valid_to")
VERSIONS = {"convention": "validity", "type": "bigint"}
Operation = Callable[..., Run]


@pytest.fixture
def operate(project: Project) -> Operation:
    """A function that runs a run-operation."""

    def run(name: str, check: bool = True, **arguments: Any) -> Run:
        return project.dbt("run-operation", name, "--args", json.dumps(arguments), check=check)

    return run


def make_table(
    project: Project, name: str, rows: list[dict[str, Any]], convention: Convention
) -> tuple[str, ...]:
    """A table of another writer, and the model for it."""
    columns = ("id", "v", *convention.columns())
    project.spark.sql(f"create schema if not exists {project.schema}")
    frame = data_frame(project.spark, rows, column_types(columns, convention))
    frame.write.format("delta").saveAsTable(project.table(name))
    project.history(name, f"select * from {name}_staged", **settings(convention))
    return columns


def make_versions(project: Project, name: str, *rows: tuple[str, str, int, int | None]) -> None:
    """A table of versions (id, v, valid_from, valid_to)."""
    types = {"id": "string", "v": "string", "valid_from": "bigint", "valid_to": "bigint"}
    cells = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
    project.spark.sql(f"create schema if not exists {project.schema}")
    frame = data_frame(project.spark, cells, types)
    frame.write.format("delta").saveAsTable(project.table(name))
    project.history(name, f"select * from {name}_staged", **VERSIONS)


def versions(project: Project, name: str) -> list[tuple[Any, ...]]:
    rows = project.rows(name)
    return sorted(
        (tuple(row[column] for column in COLUMNS) for row in rows), key=lambda row: str(row[:3])
    )


def read_as_of(
    call: Renderer, project: Project, name: str, at: Any, convention: Any
) -> list[dict[str, Any]]:
    call.pretend_relations("history_marks", schema=project.schema)
    relation = call.relation.create(schema=project.schema, identifier=name)
    query = call("as_of", relation=relation, at=at, convention=convention)
    return [row.asDict() for row in project.spark.sql(f"select * from {query}").collect()]


@pytest.mark.parametrize("name", ["fivetran", thorough("bigint_maximum"), thorough("days")])
def test_cleaning_changes_no_state_at_or_after_the_horizon_or_at_a_tag(
    name: str, project: Project, call: Renderer, operate: Operation
) -> None:
    convention, scale = ALL[name], scale_of(ALL[name])
    rows = [
        {**row, "id": f"{seed} {row['id']}"}
        for seed in range(12)
        for row in random_versions(seed, convention)
    ]
    columns = make_table(project, "h", rows, convention)
    tagged, cutoff = scale.at(3), scale.at(8)
    operate("create_tag", tag="kept", table="h", at=text_of(tagged), reason="audit")

    run = operate("clean_history", table="h", before=text_of(cutoff))

    gone = [
        (row, period)
        for row in rows
        if (period := period_of(row, convention)).until is not None
        and period.until < cutoff
        and not period.holds(tagged)
    ]
    seen = [period for _, period in gone if not period.is_empty]
    horizon = max(period.until for period in seen if period.until is not None)
    assert f"{len(seen)} of {len(rows)} versions dropped" in run.log
    left = project.rows("h")
    assert len(rows) - len(gone) <= len(left) <= len(rows) - len(seen)
    points = sorted({scale.at(tick) + nudge for tick in range(13) for nudge in scale.offsets()})
    asked = [*[at for at in points if at >= horizon][:6], points[-1], horizon, tagged]
    for at in asked:
        found = read_as_of(call, project, "h", text_of(at), settings(convention))
        assert_same_rows(found, as_of(rows, at, convention), columns, str(at))
    found = read_as_of(call, project, "h", "tag:kept", settings(convention))
    assert_same_rows(found, as_of(rows, tagged, convention), columns, "tag")
    for at in [horizon - scale.least, points[0]]:
        if at != tagged:
            with pytest.raises(
                Exception, match=rf"(?s){project.schema}.h was cleaned.*horizon, "
            ) as refused:
                read_as_of(call, project, "h", text_of(at), settings(convention))
            assert str(horizon) in str(refused.value)
            assert f"got: {at}" in str(refused.value)


@pytest.mark.thorough
def test_versions_to_clean_are_limited_by_age_by_number_and_by_reference(
    project: Project, operate: Operation
) -> None:
    rows = [("a", f"a{n}", n, n + 1) for n in range(1, 6)] + [
        ("a", "a6", 6, None),
        ("b", "b", 1, 3),
    ]
    make_versions(project, "h", *rows)
    project.spark.sql(
        f"create table {project.table('orders')} as select 'a' as id, 2L as customer_version"
    )
    reference = {
        "table": f"{project.schema}.orders",
        "columns": {"id": "id", "customer_version": "valid_from"},
    }
    limits: dict[str, Any] = {"table": "h", "keep_versions": 2, "keep_referenced": [reference]}

    dry = operate("clean_history", **limits, dry_run=True)
    assert "3 of 7 versions would be dropped, horizon 5" in dry.log
    assert len(project.rows("h")) == 7
    assert len(project.log_of("h")) == 1

    done = operate("clean_history", **limits)
    assert "3 of 7 versions dropped, horizon 5" in done.log
    assert [row[1] for row in versions(project, "h")] == ["a2", "a5", "a6", "b"]
    assert '"history_operation": "clean_history"' in project.log_of("h")[0]["userMetadata"]

    both = operate("clean_history", table="h", before=4, keep_versions=1)
    assert "1 of 4 versions dropped, horizon 3" in both.log

    refused = operate("clean_history", table="h", age="3 days", keep_versions=0, check=False)
    assert not refused.success
    for problem in ("counts versions, so its versions have no age", "keep_versions is 0"):
        assert problem in refused.log
    nothing = operate("clean_history", table="no_such", check=False)
    assert "no model, snapshot or seed has this name" in nothing.log


@pytest.mark.thorough
def test_a_view_created_before_a_cleaning_fails_after_it(
    project: Project, operate: Operation, spark: SparkSession
) -> None:
    make_versions(project, "h", ("a", "old", 1, 4), ("a", "new", 4, None))
    for at in (3, 4):
        project.model(
            f"at_{at}",
            f"select * from {{{{ dbt_history.as_of(ref('h'), {at}, {VERSIONS}) }}}}",
            materialized="view",
        )
    project.run("at_3", "at_4")
    assert [row["v"] for row in project.rows("at_3")] == ["old"]

    operate("clean_history", table="all", before=5)

    with pytest.raises(Exception, match=rf"as_of: the history of {project.schema}.h was cleaned"):
        project.rows("at_3")
    assert [row["v"] for row in project.rows("at_4")] == ["new"]


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["fivetran", "validity_bigint", "days"])
def test_a_join_of_periods_begins_at_the_greatest_horizon_of_its_tables(
    name: str, project: Project, operate: Operation
) -> None:
    """
    a            [ a1 -----)[ a2 -----------------
    b            [ b1 -----------)[ b2 -----------
    horizons               ^ of a ^ of b            the join of all kinds begins at that of b
    """
    convention, scale = ALL[name], scale_of(ALL[name])
    tables = {table: random_versions(seed, convention) for seed, table in enumerate("ab", 1)}
    for table, rows in tables.items():
        make_table(project, table, rows, convention)
    arguments = f"{{'a': ref('a'), 'b': ref('b')}}, 'id', {settings(convention)}"
    kinds = ("inner", "left", "full")
    for kind in kinds:
        sql = f"select * from {{{{ dbt_history.history_join({arguments}, kind='{kind}') }}}}"
        project.model(f"{kind}_view", sql, materialized="view")
    project.run(*(f"{kind}_view" for kind in kinds))

    def joined(kind: str, horizon: Any = None) -> list[str]:
        """The periods that last beyond the horizon, cut there."""
        rows = project.rows(f"{kind}_view")
        if horizon is not None:
            rows = [
                {**row, "valid_from": max(row["valid_from"], horizon)}
                for row in rows
                if row["valid_to"] is None or row["valid_to"] > horizon
            ]
        return sorted(str(sorted(row.items())) for row in rows)

    cutoffs = {"a": scale.at(6), "b": scale.at(8)}
    horizon = max(
        period.until
        for table, rows in tables.items()
        for period in (period_of(row, convention) for row in rows)
        if period.until is not None and not period.is_empty and period.until < cutoffs[table]
    )
    expected = {kind: joined(kind, horizon) for kind in kinds}

    for table, cutoff in cutoffs.items():
        operate("clean_history", table=table, before=text_of(cutoff))

    for kind in kinds:
        assert joined(kind) == expected[kind] != [], kind


@pytest.mark.thorough
def test_tags_name_points_of_many_tables_and_protect_them_until_dropped(
    project: Project, call: Renderer, operate: Operation
) -> None:
    make_versions(project, "g", ("a", "g1", 1, 2), ("a", "g2", 2, None))
    make_versions(project, "h", ("a", "h1", 1, 5), ("a", "h2", 5, 7), ("b", "hb", 6, None))
    project.history("not_built", "select 1", **VERSIONS)
    run = operate("create_tag", tag="first", at={"g": 1, "h": 1}, author="me", reason="why")
    assert "not_built is left out" in run.log
    dry = operate("create_tag", tag="now", table=["g", "h"], dry_run=True)
    assert "tag now of g would be 2" in dry.log
    operate("create_tag", tag="now", table=["g", "h"])

    operate("clean_history", table="all", before=100)
    assert [row[1] for row in versions(project, "g")] == ["g1", "g2"]
    assert [row[1] for row in versions(project, "h")] == ["h1", "hb"]
    assert [row["v"] for row in read_as_of(call, project, "h", "tag:now", VERSIONS)] == ["hb"]
    assert [row["v"] for row in read_as_of(call, project, "h", {"tag": "first"}, VERSIONS)] == [
        "h1"
    ]
    with pytest.raises(Exception, match="there is no tag of this name"):
        read_as_of(call, project, "h", "tag:other", VERSIONS)

    again = operate("create_tag", tag="now", table="all", check=False)
    assert "g: the tag exists already" in again.log
    assert "h: the tag exists already" in again.log
    low = operate("create_tag", tag="low", table="h", at=6, check=False)
    assert "6 lies below the horizon 7" in low.log
    marks = project.rows("history_marks")
    assert {(row["author"], row["reason"]) for row in marks if row["name"] == "first"} == {
        ("me", "why")
    }

    operate("drop_tag", tag="first")
    operate("clean_history", table="all", before=100)
    assert [row[1] for row in versions(project, "g") + versions(project, "h")] == ["g2", "hb"]
    assert "no table has a tag" in operate("drop_tag", tag="first", check=False).log


@pytest.mark.thorough
def test_both_points_of_a_tag_are_protected_until_it_is_moved(
    project: Project, call: Renderer, operate: Operation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    number    1        2        3        4
    a         [ old --)[ mid --)[ late -)[ new ---
    tag                ^ to     ^ from              the move dies, then everything is cleaned
    """
    rows = [("a", "old", 1, 2), ("a", "mid", 2, 3), ("a", "late", 3, 4), ("a", "new", 4, None)]
    make_versions(project, "h", *rows)
    operate("create_tag", tag="released", table="h", at=3)
    with monkeypatch.context() as patch:
        fail_before(patch, "delete from")
        assert not operate("move_tag", tag="released", at=2, check=False).success

    operate("clean_history", table="h", before=100)
    assert [row[1] for row in versions(project, "h")] == ["late", "mid", "new"]
    shown = read_as_of(call, project, "h", "tag:released", VERSIONS)
    assert [row["v"] for row in shown] == ["late"]
    refused = operate("move_tag", tag="released", at=1, check=False)
    assert "1 lies below the horizon 2" in refused.log
    operate("move_tag", tag="released", at=2)
    operate("clean_history", table="h", before=100)
    assert [row[1] for row in versions(project, "h")] == ["mid", "new"]


@pytest.mark.thorough
def test_a_point_that_is_null_is_refused_before_anything_is_written(
    project: Project, operate: Operation
) -> None:
    """A sub-query without rows is NULL: neither "no limit" for a cleaning, nor a point of a tag."""
    rows = [("a", "old", 1, 2), ("a", "mid", 2, 4), ("a", "new", 4, None)]
    make_versions(project, "g", *rows)
    make_versions(project, "h", *rows)
    operate("create_tag", tag="released", table="g", at=3)
    nothing = f"(select max(valid_from) from {project.table('h')} where v = 'approved')"

    for name, argument, others in (
        ("clean_history", "before", {}),
        ("clean_history", "before", {"keep_versions": 1}),
        ("create_tag", "at", {"tag": "other"}),
        ("move_tag", "at", {"tag": "released"}),
        ("rewind", "to", {}),
        ("rewind", "at", {"to": 1}),
    ):
        refused = operate(name, table="g", **{argument: nothing}, **others, check=False)
        assert f"dbt_history.{name}: {argument} is NULL" in refused.log
    other = operate("clean_history", table=["g", "h"], before="tag:released", check=False)
    assert not other.success

    assert set(versions(project, "g")) == set(versions(project, "h")) == set(rows)
    marks = [(row["kind"], row["name"], row["instant"]) for row in project.rows("history_marks")]
    assert marks == [("tag", "released", "3")]


@pytest.mark.thorough
def test_a_rewind_of_a_suspended_table_is_refused_before_anything_is_written(
    project: Project, operate: Operation
) -> None:
    rows = [("a", "a1", 1, 3), ("a", "a2", 3, None)]
    make_versions(project, "g", *rows)
    make_versions(project, "h", *rows)
    operate("suspend_history", table="h")
    refused = operate("rewind", table=["g", "h"], to=2, check=False)
    assert "h: it is suspended, and the restored state would be held back" in refused.log
    assert len(versions(project, "g")) == len(versions(project, "h")) == 2
    operate("resume_history", table="h")
    operate("rewind", table=["g", "h"], to=2)
    assert len(versions(project, "g")) == len(versions(project, "h")) == 3


def test_a_rewind_restores_a_state_and_can_be_rewound(
    project: Project, call: Renderer, operate: Operation
) -> None:
    rows = [
        ("a", "a1", 1, 3),
        ("a", "a2", 3, None),
        ("b", "b1", 1, 4),
        ("c", "c1", 4, None),
        ("d", "d", 1, None),
    ]
    make_versions(project, "h", *rows)

    dry = operate("rewind", table="h", to=2, dry_run=True)
    assert "would be rewound to 2: records restored 2, ended 1" in dry.log
    operate("rewind", table="h", to=2)

    assert versions(project, "h") == [
        ("a", "a1", 1, 3),
        ("a", "a1", 5, None),
        ("a", "a2", 3, 5),
        ("b", "b1", 1, 4),
        ("b", "b1", 5, None),
        ("c", "c1", 4, 5),
        ("d", "d", 1, None),
    ]
    state = {row["id"]: row["v"] for row in read_as_of(call, project, "h", 5, VERSIONS)}
    assert state == {"a": "a1", "b": "b1", "d": "d"}

    operate("rewind", table="h", to=4)
    state = {row["id"]: row["v"] for row in read_as_of(call, project, "h", 6, VERSIONS)}
    assert state == {"a": "a2", "c": "c1", "d": "d"}
    assert {row["v"] for row in read_as_of(call, project, "h", 5, VERSIONS)} == {"a1", "b1", "d"}

    operate("rewind", table="h", to=5, only={"id": "b"})
    state = {row["id"]: row["v"] for row in read_as_of(call, project, "h", "now", VERSIONS)}
    assert state == {"a": "a2", "b": "b1", "c": "c1", "d": "d"}
    assert (
        "only names v, which is not a key column"
        in operate("rewind", table="h", to=5, only={"v": "b"}, check=False).log
    )
    assert "no differences" in operate("verify_history", table="h").log


@pytest.mark.thorough
def test_a_rewind_that_would_begin_before_stored_versions_is_refused(
    project: Project, operate: Operation
) -> None:
    """
    version   1          3          4
    a         [ a1 -----)[ a2 -----------
    c                               [ c1      `at` 3 would replace a2, and end c before it begins
    d         [ d -----------------------     `at` 2 is after everything stored of d
    """
    rows = [("a", "a1", 1, 3), ("a", "a2", 3, None), ("c", "c1", 4, None), ("d", "d", 1, None)]
    make_versions(project, "g", ("a", "a1", 1, None))
    make_versions(project, "h", *rows)

    for at in (3, 4, "2 + 2"):
        refused = operate("rewind", table=["g", "h"], to=2, at=at, check=False)
        assert "h: it would begin at" in refused.log, at
        assert "and can begin at 5" in refused.log
        assert "g: it would begin" not in refused.log
    assert versions(project, "h") == rows
    assert versions(project, "g") == [("a", "a1", 1, None)]
    assert operate("rewind", table="h", to=2, at=3, dry_run=True, check=False).success is False

    operate("rewind", table="h", to=0, at=2, only={"id": "d"})
    for at in (5, 5):
        operate("rewind", table=["g", "h"], to=2, at=at)
    assert versions(project, "h") == [
        ("a", "a1", 1, 3), ("a", "a1", 5, None), ("a", "a2", 3, 5), ("c", "c1", 4, 5),
        ("d", "d", 1, 2),
    ]  # fmt: skip
    operate("rewind", table="h", to=3, at="now")
    newest = {row[0]: row[1] for row in versions(project, "h") if row[3] is None}
    assert newest == {"a": "a2"}


@pytest.mark.thorough
def test_a_rewind_of_times_that_would_begin_before_stored_versions_is_refused(
    project: Project, operate: Operation
) -> None:
    """
    day   1 Jan        1 Mar
    a     [ a1 -------)[ a2 ------      `at` 15 Feb: sealed at 1 Mar, a2 would stay in force
    """
    settings = {"convention": "validity"}
    march = "timestamp'2024-03-01 00:00:00 UTC'"
    project.spark.sql(f"create schema if not exists {project.schema}")
    project.spark.sql(
        f"create table {project.table('h')} using delta as select * from values"
        f" ('a', 'a1', timestamp'2024-01-01 00:00:00 UTC', {march}), ('a', 'a2', {march}, null)"
        " as versions (id, v, valid_from, valid_to)"
    )
    project.history("h", "select * from h_staged", **settings)

    refused = operate("rewind", table="h", to="2024-02-01", at="2024-02-15", check=False)
    assert "it would begin at 2024-02-15 00:00:00 UTC" in refused.log
    assert "can begin at 2024-03-01 00:00:00.000001 UTC" in refused.log
    assert len(project.rows("h")) == 2
    operate("rewind", table="h", to="2024-02-01", at="2024-03-01 00:00:00.000001 UTC")
    operate("rewind", table="h", to="2024-03-01")
    newest = sorted(project.rows("h"), key=lambda row: row["valid_from"])
    assert [row["v"] for row in newest] == ["a1", "a2", "a1", "a2"]


@pytest.mark.thorough
def test_a_rewind_of_days_begins_on_a_day_without_stored_versions(
    project: Project, operate: Operation, spark: SparkSession
) -> None:
    """
    day   1 Jan       today                  the rewound state would replace a2: refused, until
    a     [ a1 ------)[ a2 ------            tomorrow or with `at`
    b     [ b1 ------)                       and with b1 again today its end would be lost
    c     [ c1 ---)[ c2 ---------            can begin today: the day in UTC, also where the
                                             session's day is another
    """
    settings = {"convention": "validity", "type": "date"}
    hour = datetime.now(UTC).hour
    zone = "Pacific/Kiritimati" if hour >= 12 else "Etc/GMT+12"
    project.spark.sql(f"create schema if not exists {project.schema}")
    today, tomorrow = (str(datetime.now(UTC).date() + timedelta(days=days)) for days in (0, 1))
    project.spark.sql(
        f"create table {project.table('h')} using delta as select * from values"
        f" ('a', 'a1', date'2024-01-01', date'{today}'), ('a', 'a2', date'{today}', null),"
        f" ('b', 'b1', date'2024-01-01', date'{today}'),"
        " ('c', 'c1', date'2024-01-01', date'2024-02-01'), ('c', 'c2', date'2024-02-01', null)"
        " as versions (id, v, valid_from, valid_to)"
    )
    project.history("h", "select * from h_staged", **settings)
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        for only in (None, {"id": "a"}, {"id": "b"}):
            refused = operate("rewind", table="h", to="2024-01-15", only=only, check=False)
            assert f"h: it would begin at {today}, and can begin at {tomorrow}" in refused.log
            assert "on that day or later" in refused.log
        assert len(project.rows("h")) == 5
        for _ in range(2):
            operate("rewind", table="h", to="2024-01-15", only={"id": "c"})
        operate("rewind", table="h", to="2024-01-15", only={"id": "a"}, at=tomorrow)
        operate("rewind", table="h", to="2024-01-15", only={"id": "b"}, at=tomorrow)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")

    rows = sorted(project.rows("h"), key=lambda row: (row["id"], row["valid_from"]))
    assert [(row["v"], *(str(row[name]) for name in COLUMNS[2:])) for row in rows] == [
        ("a1", "2024-01-01", today), ("a2", today, tomorrow), ("a1", tomorrow, "None"),
        ("b1", "2024-01-01", today), ("b1", tomorrow, "None"),
        ("c1", "2024-01-01", "2024-02-01"), ("c2", "2024-02-01", today), ("c1", today, "None"),
    ]  # fmt: skip


@pytest.mark.thorough
def test_changes_after_a_rewind_are_later_than_it(project: Project, operate: Operation) -> None:
    """The clock of the source may be behind: its next commit is no change of the past.

    source    a1     a2      a3 (its clock)       now
    table     [ a1 -)[ a2 ----------------------- rewound: [ a1 --)[ a3 -- open

    In the future, before which a table would capture more changes, no restored state begins;
    several tables have one present.
    """
    project.spark.sql(f"create schema if not exists {project.schema}")
    source = project.table("records")
    project.spark.sql(
        f"create table {source} using delta tblproperties (delta.enableChangeDataFeed = true)"
        " as select 1 as id, 'a1' as v"
    )
    for name in ("g", "h"):
        project.model(
            name,
            f"select * from {source}",
            materialized="history",
            unique_key="id",
            meta={"history": {"convention": "validity"}},
        )
    set_commit_times(project, "records", -60)
    project.run("g", "h")
    project.spark.sql(f"update {source} set v = 'a2'")
    set_commit_times(project, "records", -60, -50)
    project.run("g", "h")

    to, now = "2025-11-02 05:05:00", datetime.now(UTC)
    refused = operate("rewind", table="h", to=to, at=f"{now + timedelta(hours=1)}", check=False)
    assert "h: it would begin at " in refused.log
    assert "in the future" in refused.log
    operate("rewind", table="h", to=to, at="current_timestamp()", dry_run=True)
    operate("rewind", table=["g", "h"], to=to)
    project.spark.sql(f"update {source} set v = 'a3'")
    set_commit_times(project, "records", -60, -50, -40)
    for _ in range(2):
        project.run("g", "h")

    restored = set()
    for name in ("g", "h"):
        rows = sorted(project.rows(name), key=lambda row: row["valid_from"])
        assert [row["v"] for row in rows] == ["a1", "a2", "a1", "a3"]
        assert [row["valid_to"] is None for row in rows] == [False, False, False, True]
        restored.add(rows[2]["valid_from"])
    assert len(restored) == 1


@pytest.mark.thorough
def test_a_rewind_of_numbers_leaves_room_for_the_next_commit_of_the_source(
    project: Project, operate: Operation
) -> None:
    """A commit of the source has the number after the newest one of the table.

    source    0      1           2
    table     [ a1 -)[ a2 )[ rewound: 2 )[ rewound again: 3 --      commit 2 would be hidden

    So it is with a later `at`, and with another table whose numbers are greater.
    """
    project.spark.sql(f"create schema if not exists {project.schema}")
    for name in ("g", "h"):
        source = project.table(f"{name}_records")
        project.spark.sql(
            f"create table {source} using delta tblproperties (delta.enableChangeDataFeed = true)"
            " as select 1 as id, 'a1' as v"
        )
        project.model(
            name,
            "{% set source = dbt_history.changes("
            f"api.Relation.create(schema=schema, identifier='{name}_records'), 'id') %}}\n"
            "select * from {{ dbt_history.batch_rows(source, at='_commit_version') }} as rows",
            materialized="history_batch",
            unique_key="id",
            meta={"history": {"convention": "validity", "type": "bigint"}},
        )
    project.run("g", "h")
    for name, values in (("g", ["a2", "a3"]), ("h", ["a2"])):
        for v in values:
            project.spark.sql(f"update {project.table(f'{name}_records')} set v = '{v}'")
    project.run("g", "h")
    before = versions(project, "h")

    for said in ({"table": "h", "at": 3}, {"table": ["g", "h"]}):
        refused = operate("rewind", to=0, **said, check=False)
        assert "h: it would begin at 3, and has to begin at 2 or earlier" in refused.log, said
        assert "g: it would" not in refused.log
    assert versions(project, "h") == before
    operate("rewind", table="h", to=0)
    operate("rewind", table="h", to=0)
    refused = operate("rewind", table="h", to=1, check=False)
    assert "h: it would begin at 3, and was rewound since the newest change" in refused.log

    project.spark.sql(f"update {project.table('h_records')} set v = 'a3'")
    project.run("h")
    assert versions(project, "h") == [*before[:-1], (1, "a2", 1, 2), (1, "a3", 2, None)]
    operate("rewind", table="h", to=1)
    assert versions(project, "h")[-2:] == [(1, "a2", 3, None), (1, "a3", 2, 3)]


@pytest.mark.thorough
def test_a_rewind_of_times_begins_at_one_instant_for_all_tables(
    project: Project, call: Renderer, operate: Operation
) -> None:
    """In `g` another system has written the open ends, without milliseconds."""

    def row(id_: str, v: str, start: datetime, end: datetime | None, open_end: Any) -> Any:
        return {
            "id": id_,
            "v": v,
            "_fivetran_start": start,
            "_fivetran_end": open_end if end is None else before(end),
            "_fivetran_active": end is None,
        }

    first, second = datetime(2024, 1, 1), datetime(2024, 1, 2)
    for name, open_end in (("g", datetime(9999, 12, 31, 23, 59, 59)), ("h", FIVETRAN.open_end)):
        rows = [
            row("a", "old", first, second, open_end),
            row("a", "new", second, None, open_end),
            row("b", "later", second, None, open_end),
        ]
        make_table(project, name, rows, FIVETRAN)

    operate("rewind", table=["g", "h"], to="2024-01-01 12:00:00")

    starts = set()
    for name in ("g", "h"):
        found = sorted(
            project.rows(name), key=lambda found: (found["id"], found["_fivetran_start"])
        )
        begins = found[2]["_fivetran_start"]
        assert begins < datetime(9999, 1, 1)
        ends = [each["_fivetran_end"] for each in found]
        assert ends == [before(second), before(begins), FIVETRAN.open_end, before(begins)]
        assert [(each["v"], each["_fivetran_active"]) for each in found] == [
            ("old", False), ("new", False), ("old", True), ("later", False),
        ]  # fmt: skip
        starts.add(begins)
        just_before = begins.replace(microsecond=0)
        seen = read_as_of(call, project, name, str(just_before), "fivetran")
        assert sorted(each["v"] for each in seen) == ["later", "new"]
    assert len(starts) == 1
    assert "no differences" in operate("verify_history", table=["g", "h"]).log


def test_verification_finds_changes_by_other_writers(
    project: Project, operate: Operation, spark: SparkSession
) -> None:
    make_versions(project, "h", ("a", "a1", 1, 3), ("a", "a2", 3, None), ("b", "b1", 1, None))
    name = project.table("h")
    spark.sql(f"create table {project.table('main')} as select 'a' as id, 'a2' as v")

    run = operate("verify_history", table="h", source=f"{project.schema}.main", check=False)
    assert "1 current versions are not in" in run.log
    assert "0 rows of it are not current here" in run.log

    spark.sql(f"insert into {project.table('main')} select 'b', 'b1'")
    operate("verify_history", table="h", source=f"{project.schema}.main")
    spark.sql(f"insert into {name} values ('a', 'a0', 2L, 9L), ('b', 'b2', 5L, null)")
    run = operate("verify_history", table="h", check=False)
    assert "versions that overlap" in run.log
    assert "1 records with several open versions" in run.log


@pytest.mark.thorough
def test_verification_finds_a_value_that_was_changed_by_hand(
    project: Project, operate: Operation, spark: SparkSession
) -> None:
    staged = [
        {"_stage": "upsert", "_batch": batch, "id": id_, "v": v, "valid_from": batch}
        for batch, id_, v in ((1, "a", "a1"), (1, "b", "b1"), (2, "a", "a2"))
    ]
    types = {"_stage": "string", "_batch": "bigint", "id": "string", "v": "string"}
    types |= {"valid_from": "bigint", "valid_to": "bigint"}
    rows = [{name: row.get(name) for name in types} for row in staged]
    data_frame(spark, rows, types).createOrReplaceTempView("edited_rows")
    project.history("h", "select * from edited_rows", **VERSIONS)
    project.run("h")
    operate("erase_subject", table="h", only={"id": "b"})
    operate("clean_history", table="h", before=3)
    assert "no differences" in operate("verify_history", table="h").log

    spark.sql(f"update {project.table('h')} set v = 'other' where id = 'a'")
    run = operate("verify_history", table="h", check=False)
    assert "(UPDATE, " in run.log
    assert "changed rows by hand" in run.log

    spark.sql(f"restore table {project.table('h')} to version as of {before_last(project, 'h')}")
    assert "no differences" in operate("verify_history", table="h").log


@pytest.mark.thorough
def test_verification_finds_a_table_that_was_emptied_or_replaced_by_hand(
    project: Project, operate: Operation, spark: SparkSession
) -> None:
    """The package's full refresh and migrations carry a record; dbt's own rebuilds are expected.

    h     batches 1, 2   full refresh   truncate   batches 1, 2   restore   replace   restore
    """
    spark.sql(
        "create or replace temporary view reset_rows as select 'upsert' as _stage, _batch, id,"
        " concat(id, _batch) as v, _batch as valid_from, cast(null as bigint) as valid_to from"
        " values (1L, 'a'), (1L, 'b'), (2L, 'a') as rows(_batch, id)"
    )
    project.history("h", "select * from reset_rows", allow_full_refresh=True, **VERSIONS)
    project.run("h")
    name = project.table("h")
    kept = versions(project, "h")
    project.run("h", options=["--full-refresh"])
    assert versions(project, "h") == kept
    assert "no differences" in operate("verify_history", table="h").log

    last = int(project.log_of("h")[0]["version"])
    spark.sql(f"truncate table {name}")
    assert "(TRUNCATE, " in operate("verify_history", table="h", check=False).log
    project.run("h")
    assert versions(project, "h") == kept
    run = operate("verify_history", table="h", check=False)
    assert "(TRUNCATE, " in run.log
    assert "rows, where its log makes" not in run.log
    spark.sql(f"restore table {name} to version as of {last}")
    assert "no differences" in operate("verify_history", table="h").log

    spark.sql(f"create or replace table {name} using delta as select * from {name} limit 1")
    run = operate("verify_history", table="h", check=False)
    assert "(CREATE OR REPLACE TABLE AS SELECT, " in run.log
    spark.sql(f"restore table {name} to version as of {last}")
    assert "no differences" in operate("verify_history", table="h").log

    rebuilt = "select 'a' as id, 'x' as v, 1L as valid_from, 5L as valid_to"
    project.model("rebuilt", rebuilt, materialized="table", file_format="delta")
    project.run("rebuilt")
    reading = {"table": "rebuilt", "key": "id", "convention": VERSIONS}
    operate("clean_history", before=3, **reading)
    project.run("rebuilt")
    assert "no differences" in operate("verify_history", **reading).log


def before_last(project: Project, name: str) -> int:
    return int(project.log_of(name)[1]["version"])


def test_erasing_a_subject_leaves_keys_periods_and_counts(
    project: Project, operate: Operation, spark: SparkSession
) -> None:
    make_versions(
        project, "h", ("a", "secret", 1, 3), ("a", "more", 3, None), ("b", "kept", 1, None)
    )
    mirror = project.table("main_hx")
    spark.sql(
        f"create table {mirror} using delta as select 'a' as id, 'secret' as v, 1L as main_hx_id"
    )
    spark.sql(f"alter table {mirror} set tblproperties ('delta.appendOnly' = 'true')")
    other = project.table("other")
    spark.sql(f"create table {other} using delta as select 'a' as id, 'x' as v, 'y' as Mail")
    names = [f"{project.schema}.main_hx", f"{project.schema}.other"]
    arguments = {"table": "h", "only": {"id": "a"}, "mirrors": names}

    would = operate("erase_subject", **arguments, dry_run=True).log
    assert "2 versions would be erased" in would
    assert "1 versions would be erased, columns v, not erased: mail" in would
    reason = "request 12; 'a' `b` \\ ${spark.sql.shuffle.partitions}\nc"
    operate("erase_subject", **arguments, reason=reason)

    assert versions(project, "h") == [
        ("a", None, 1, 3),
        ("a", None, 3, None),
        ("b", "kept", 1, None),
    ]
    assert [(row["id"], row["v"], row["main_hx_id"]) for row in project.rows("main_hx")] == [
        ("a", None, 1)
    ]
    with pytest.raises(Exception, match="DELTA_CANNOT_MODIFY_APPEND_ONLY"):
        spark.sql(f"delete from {mirror}")
    mark = next(row for row in project.rows("history_marks") if row["kind"] == "erasure")
    assert mark["reason"] == reason
    assert mark["name"] not in (None, "a")
    assert (
        "belongs to the key or the period"
        in operate(
            "erase_subject", table="h", only={"id": "a"}, columns=["valid_to"], check=False
        ).log
    )


@pytest.mark.thorough
def test_an_impossible_erasure_is_refused_with_every_reason_and_changes_nothing(
    project: Project, operate: Operation, spark: SparkSession
) -> None:
    make_versions(project, "h", ("a", "secret", 1, None))
    other, log = project.table("other"), project.table("main_hx")
    spark.sql(f"create table {other} (v string) using delta")
    spark.sql(
        f"create table {log} (id string, v string not null, w string, n bigint generated always as"
        " identity, g string generated always as (coalesce(w, 'x')), u string generated always as"
        " (upper(w))) using delta"
    )
    spark.sql(f"alter table {log} add constraint filled check (length(w) > 0 and w <> 'url')")
    spark.sql(f"insert into {log} (id, v, w) values ('a', 'secret', 'secret')")
    spark.sql(f"alter table {log} set tblproperties ('delta.appendOnly' = 'true')")
    spark.sql(f"alter table {project.table('h')} add columns (w string)")
    names = [f"{project.schema}.{name}" for name in ("other", "nowhere", "main_hx")]

    def refused(**arguments: Any) -> str:
        return operate("erase_subject", table="h", check=False, **arguments).log

    message = refused(only={"ID": None, "x": 1}, columns=["vv", "valid_to"], mirrors=names)
    assert "only: ID has no value" in message
    assert "x is not a key column" in message
    assert "h has no column vv" in message
    assert "valid_to belongs to the key or the period" in message
    assert f"{project.schema}.other: has no key column id" in message
    assert f"mirror {names[1]}: there is no such table" in message
    message = refused(only={"id": "nobody"}, mirrors=names[2])
    assert "no table has a row of this key" in message
    copy = f"{project.schema}.h__batches_0123abcd"
    spark.sql(f"create table {copy} using parquet as select 'a' as id, 'secret' as v")
    spark.sql("create or replace temporary view h__batches_89abcdef as select 'a' as id")
    message = refused(only={"id": "a"}, mirrors=names[2:])
    spark.sql("drop view h__batches_89abcdef")
    spark.sql(f"drop table {copy}")
    assert "`h__batches_0123abcd` has 1 rows of this key; it is the copy of a batch" in message
    assert "v is NOT NULL" in message
    assert "alter column `v` drop not null" in message
    assert "the constraint filled (" in message
    assert ") would refuse 1 rows" in message
    assert "n is an identity column, which cannot be updated: name the columns" in message
    assert "g is generated (coalesce(w, 'x')), and would not be NULL in 1 rows" in message
    assert "u is generated" not in message
    assert [row["v"] for row in project.rows("h")] == ["secret"]
    assert not spark.catalog.tableExists(project.table("history_marks"))

    spark.sql(f"alter table {log} alter column `v` drop not null")
    message = operate(
        "erase_subject", table="h", only={"id": "a"}, columns="v", mirrors=names[2:]
    ).log
    assert "1 versions erased, columns v" in message
    assert [(row["v"], row["w"]) for row in project.rows("main_hx")] == [(None, "secret")]
    assert [row["v"] for row in project.rows("h")] == [None]


@pytest.mark.thorough
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_a_key_is_compared_in_the_type_of_its_column(
    ansi: str, project: Project, operate: Operation, spark: SparkSession
) -> None:
    """For Spark the texts 7, 07 and, without ANSI mode, 7.9 equal the number 7."""
    mode = str(spark.conf.get("spark.sql.ansi.enabled"))
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    rows = [(key, f"{key} {n}", n, n + 1) for key in ("7", "07", "7.9") for n in (1, 2)]
    make_versions(project, "h", *rows)
    mirror = project.table("main_hx")
    spark.sql(
        f"create table {mirror} using delta as select * from values"
        " (7.00BD, 'secret'), (null, 'kept'), (7.01BD, 'kept') as main_hx (id, v)"
    )
    long_hx = f"{project.schema}.long_hx"
    spark.sql(f"create table {long_hx} using delta as select 7BD::decimal(38) as id, 'kept' as v")
    try:
        restored = operate("rewind", table="h", to=1, only={"id": 7})
        assert "records restored 1, ended 0" in restored.log
        erased: dict[str, Any] = {"table": "h", "mirrors": [f"{project.schema}.main_hx"]}
        run = operate("erase_subject", only={"id": 7}, **erased)
        assert "`h`: 3 versions erased" in run.log
        assert "`main_hx`: 1 versions erased" in run.log
        kept = {row["v"] for row in project.rows("h") if row["id"] != "7"}
        assert kept == {value for key, value, *_ in rows if key != "7"}
        for key in ("07a", "7.001"):
            refused = operate("erase_subject", only={"id": key}, **erased, check=False)
            assert f"only: id is no decimal(3,2): {key}" in refused.log
        erased["mirrors"] = [long_hx]
        refused = operate("erase_subject", only={"id": 7.4}, **erased, check=False)
        assert "only: id is no decimal(38,0): 7.4" in refused.log
        assert [row["v"] for row in project.rows("long_hx")] == ["kept"]
    finally:
        spark.conf.set("spark.sql.ansi.enabled", mode)
    assert sorted(row["v"] or "" for row in project.rows("main_hx")) == ["", "kept", "kept"]


@pytest.mark.thorough
@pytest.mark.parametrize("moment", ["update `", "'delta.appendOnly' = 'true'", "insert into"])
def test_a_killed_erasure_is_finished_by_the_next_and_its_log_is_locked_again(
    moment: str, project: Project, operate: Operation, spark: SparkSession
) -> None:
    make_versions(project, "h", ("a", "secret", 1, None))
    mirror = project.table("main_hx")
    spark.sql(f"create table {mirror} using delta as select 'a' as id, 'secret' as v")
    spark.sql(f"alter table {mirror} set tblproperties ('delta.appendOnly' = 'true')")
    arguments = {"table": "h", "only": {"id": "a"}, "mirrors": [f"{project.schema}.main_hx"]}
    with pytest.MonkeyPatch.context() as patch:
        # The update of the main table itself is executed.
        fail_before(patch, moment if moment != "update `" else f"update {mirror_name(project)}")
        assert not operate("erase_subject", **arguments, check=False).success

    for _ in range(2):
        operate("erase_subject", **arguments)
        assert [row["v"] for row in project.rows("main_hx")] == [None]
        assert [row["kind"] for row in project.rows("history_marks")] == ["erasure"]
        with pytest.raises(Exception, match="DELTA_CANNOT_MODIFY_APPEND_ONLY"):
            spark.sql(f"delete from {mirror}")


@pytest.mark.thorough
def test_an_erasure_opens_a_log_again_that_a_run_has_locked_meanwhile(
    project: Project, operate: Operation, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_versions(project, "h", ("a", "secret", 1, None))
    mirror = project.table("main_hx")
    spark.sql(f"create table {mirror} using delta as select 'a' as id, 'secret' as v")
    lock = "('delta.appendOnly' = 'true', 'dbt_history.is_open' = 'false')"
    spark.sql(f"alter table {mirror} set tblproperties {lock}")
    execute = Cursor.execute
    updates: list[str] = []

    def lock_before_the_first_update(self: Cursor, sql: str, *arguments: Any) -> None:
        if f"update {mirror_name(project)}" in sql:
            updates.append(sql)
            if len(updates) == 1:
                spark.sql(f"alter table {mirror} set tblproperties {lock}")
        execute(self, sql, *arguments)

    names = [f"{project.schema}.main_hx"]
    monkeypatch.setattr(Cursor, "execute", lock_before_the_first_update)
    run = operate("erase_subject", table="h", only={"id": "a"}, mirrors=names)

    assert "`main_hx`: 1 versions erased" in run.log
    assert len(updates) == 2
    assert [row["v"] for row in project.rows("main_hx")] == [None]
    with pytest.raises(Exception, match="DELTA_CANNOT_MODIFY_APPEND_ONLY"):
        spark.sql(f"delete from {mirror}")


def mirror_name(project: Project) -> str:
    return f"`{project.schema}`.`main_hx`"


@pytest.mark.thorough
def test_compaction_combines_small_files(
    project: Project, operate: Operation, warehouse: Path
) -> None:
    make_versions(project, "h", ("a", "a1", 1, 3))
    for number in range(3, 7):
        project.spark.sql(
            f"insert into {project.table('h')} values ('a', 'x', {number}L, {number + 1}L)"
        )
    run = operate("compact_history", table="h")
    assert "files are now 1" in run.log
    assert len(project.rows("h")) == 5


@pytest.mark.thorough
def test_compaction_removes_what_an_erasure_has_left_in_the_files(
    project: Project, operate: Operation, spark: SparkSession, warehouse: Path
) -> None:
    """A deletion vector hides one row of a hundred: OPTIMIZE alone leaves the file."""
    make_versions(project, "h", *((f"{n}", f"value {n}", 1, None) for n in range(100)))
    events = "select 1 as _batch, id, concat('value ', id) as v from range(100)"
    project.model("events", events, materialized="history_append")
    project.run("events")
    for name in ("h", "events"):
        spark.sql(
            f"alter table {project.table(name)} set tblproperties"
            " ('delta.enableDeletionVectors' = 'true')"
        )
    operate("erase_subject", table="h", only={"id": 7}, mirrors=["events"])

    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    try:
        operate("compact_history", table="h", vacuum_hours=0)
        assert "events: " in operate("compact_history", table="all", vacuum_hours=0).log
        assert "events: " in operate("compact_history", table="events").log
    finally:
        spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")

    for name in ("h", "events"):
        assert len(project.rows(name)) == 100
        files = (warehouse / f"{project.schema}.db" / name).glob("**/*.parquet")
        stored = [row for file in files for row in parquet.read_table(file).to_pylist()]
        assert [row["v"] for row in stored if str(row["id"]) == "7"] == [None]
