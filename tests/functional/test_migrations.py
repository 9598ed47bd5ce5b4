"""The guarantees of migrations beyond the conformance cases, one test each."""

from __future__ import annotations

import json
import re
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.functional.test_resets import Interrupt, before_statement, set_commit_times
from tests.support.project import Project
from tests.support.staging import (
    OPEN,
    TYPES,
    before,
    day,
    delete,
    new_version,
    stage,
    upsert,
    version,
)
from tests.support.tables import assert_same_rows, data_frame

__all__ = ["before_statement"]

pytestmark = pytest.mark.thorough

JUNE = "2024-06-01T00:00:00Z"


def write(project: Project, name: str, rows: list[dict[str, Any]], types: dict[str, str]) -> str:
    """A Delta table of the test's schema; returns its full name."""
    project.spark.sql(f"create schema if not exists {project.schema}")
    data_frame(project.spark, rows, types).write.format("delta").saveAsTable(project.table(name))
    return project.table(name)


def migrate(project: Project, operation: str, check: bool = True, **arguments: Any) -> str:
    """Run an operation; returns its messages, including a refusal."""
    run = project.dbt("run-operation", operation, "--args", json.dumps(arguments), check=check)
    assert run.success or not check
    return run.log


def version_of(project: Project, name: str) -> int:
    return int(project.log_of(name)[0]["version"])


def test_a_migration_of_rows_is_one_commit_that_records_the_operation(project: Project) -> None:
    table = write(project, "h", [version(1, "a", day(1)), version(2, "b", day(1))], TYPES)

    migrate(project, "drop_column_in_history_mode", table=table, column="v", at=JUNE, key="id")

    assert version_of(project, "h") == 1
    assert '"operation": "drop_column_in_history_mode"' in project.log_of("h")[0]["userMetadata"]


@pytest.mark.parametrize(
    ("operation", "statement", "arguments"),
    [
        ("drop_column_in_history_mode", "merge into", {"column": "v", "at": JUNE, "key": "id"}),
        ("history_to_soft_delete", "create or replace table", {"key": "id"}),
        ("soft_delete_to_history", "create or replace table", {}),
    ],
)
def test_a_migration_loses_no_value_of_a_column_that_another_writer_adds_meanwhile(
    project: Project,
    before_statement: Interrupt,
    operation: str,
    statement: str,
    arguments: dict[str, Any],
) -> None:
    """
    other writer                   color, red
    migration     columns are read            refused        again: red in all rows
    """
    if operation == "soft_delete_to_history":
        columns = {"id": "int", "_fivetran_deleted": "boolean", "_fivetran_synced": "timestamp"}
        row = {"id": 1, "_fivetran_deleted": False, "_fivetran_synced": day(1)}
        table = write(project, "h", [row], columns)
    else:
        table = write(project, "h", [version(1, "a", day(1)), version(2, "b", day(1))], TYPES)

    def add_column() -> None:
        project.spark.sql(f"alter table {table} add columns (color string)")
        project.spark.sql(f"update {table} set color = 'red'")

    before_statement(statement, 1, add_column)

    refused = migrate(project, operation, check=False, table=table, **arguments)
    assert "no row was written: the table changed between look and write" in refused
    migrate(project, operation, table=table, **arguments)

    assert {row["color"] for row in project.rows("h")} == {"red"}


def test_a_migrated_history_table_accepts_further_batches(project: Project) -> None:
    rows = [upsert(1, 1, day(1)), *new_version(2, 1, day(3), "b")]
    project.history("h", stage(project, "staged", rows[:1]))
    project.run("h")
    arguments: dict[str, Any] = {"column": "n", "default": "7", "type": "int"}
    arguments |= {"table": project.table("h"), "at": "2024-01-02", "key": ["id"]}

    migrate(project, "add_column_in_history_mode", **arguments)
    stage(project, "staged", rows)
    run = project.run("h")
    output = migrate(project, "add_column_in_history_mode", **arguments)

    assert run.message("h").startswith("1 batch: 1 added, 1 closed")
    assert "was migrated before; nothing to do" in output
    expected = [
        {**version(1, "a", day(1), before(day(2))), "n": None},
        {**version(1, "a", day(2), before(day(3))), "n": 7},
        {**version(1, "b", day(3)), "n": 7},
    ]
    assert_same_rows(project.rows("h"), expected, [*TYPES, "n"])


def test_a_column_that_was_dropped_again_can_be_added_again_at_the_same_instant(
    project: Project,
) -> None:
    """
    step     add x   repeat   drop     add x   add y   add x   set z in all rows   add x
    at T     [ x     [ x      [ NULL   [ x     [ y     [ x     [ z                 [ x
    """
    table = write(project, "h", [version(1, "a", day(1))], TYPES)

    def step(name: str, **arguments: Any) -> str:
        place: dict[str, Any] = {"table": table, "at": "2024-01-02", "key": "id"}
        return migrate(project, f"{name}_column_in_history_mode", **place, **arguments)

    found = []
    for default in ("x", "x", None, "x", "y", "x"):
        if default is None:
            step("drop", column="N")
        else:
            step("add", column="n", default=default)
        found.append([row["n"] for row in project.rows("h") if row["_fivetran_active"]])
    assert found == [["x"], ["x"], [None], ["x"], ["y"], ["x"]]
    migrate(project, "update_column_value", table=table, column="n", value="z")
    step("add", column="n", default="x")

    rows = sorted(project.rows("h"), key=lambda row: row["_fivetran_start"])
    assert [(row["_fivetran_start"], row["n"]) for row in rows] == [(day(1), "z"), (day(2), "x")]
    last = version_of(project, "h")
    assert "was migrated before; nothing to do" in step("add", column="n", default="x")
    assert version_of(project, "h") == last


@pytest.mark.parametrize("gone", ["dropped", "renamed"])
def test_a_column_added_again_after_it_was_dropped_or_renamed_has_its_default_again(
    project: Project, gone: str
) -> None:
    """
    step     add x, T   x dropped or renamed   add x, T   repeat
    at T     [ d        -                      [ d        [ d
    """
    table = write(project, "h", [version(1, "a", day(1))], TYPES)
    mapping = "('delta.columnMapping.mode' = 'name')"
    project.spark.sql(f"alter table {table} set tblproperties {mapping}")
    arguments: dict[str, Any] = {"table": table, "column": "a.X", "default": "d"}
    arguments |= {"at": "2024-01-02", "key": "id"}
    migrate(project, "add_column_in_history_mode", **arguments)
    if gone == "dropped":
        project.spark.sql(f"alter table {table} drop column `a.x`")
    else:
        migrate(project, "rename_column", table=table, from_column="a.x", to_column="y")

    migrate(project, "add_column_in_history_mode", **arguments)

    rows = sorted(project.rows("h"), key=lambda row: row["_fivetran_start"])
    assert [(row["_fivetran_start"], row["a.X"]) for row in rows] == [(day(1), None), (day(2), "d")]
    output = migrate(project, "add_column_in_history_mode", **arguments)
    assert "was migrated before; nothing to do" in output


@pytest.mark.parametrize("gone", ["dropped", "renamed", "renamed, expired"])
def test_a_default_is_set_again_after_its_column_was_dropped_or_renamed(
    project: Project, gone: str
) -> None:
    """Spark masks a property whose value is `token` (decision 134)."""
    table = write(project, "t", [{"id": 1}], {"id": "bigint"})
    arguments: dict[str, Any] = {"table": table, "column": "token", "default": "d"}
    migrate(project, "add_column_with_default_value", **arguments)
    if gone == "dropped":
        mapping = "('delta.columnMapping.mode' = 'name')"
        project.spark.sql(f"alter table {table} set tblproperties {mapping}")
        project.spark.sql(f"alter table {table} drop column token")
    else:
        migrate(project, "rename_column", table=table, from_column="Token", to_column="y")
    # A batch adds it, or a call that was killed before it set the default.
    project.spark.sql(f"alter table {table} add columns (token string)")
    if gone == "renamed, expired":
        for value in ("1", "100"):
            properties = f"('delta.checkpointInterval' = '{value}')"
            project.spark.sql(f"alter table {table} set tblproperties {properties}")
        project.expire_log("t", version_of(project, "t"))

    migrate(project, "add_column_with_default_value", **arguments)

    assert [row["token"] for row in project.rows("t")] == ["d"]
    project.spark.sql(f"update {table} set token = 'later'")
    assert "nothing to do" in migrate(project, "add_column_with_default_value", **arguments)
    assert [row["token"] for row in project.rows("t")] == ["later"]


def test_a_column_is_not_added_or_dropped_before_a_change_within_an_active_version(
    project: Project,
) -> None:
    """Equal changes of record 1 are one version; record 2 has ended:

    day    1          5        6                9
    1      [ a ----------------------------------- open
           [ a ----------------)[ a, red -------- open      not at day 3 or 5
    2      [ a -------------------------------- )
    """
    rows = [
        version(id_, "a", start, end)
        for id_, last in ((1, OPEN), (2, before(day(9))))
        for start, end in ((day(1), last), (day(5), before(day(5))))
    ]
    table = write(project, "h", rows, TYPES)
    tracked = "tblproperties ('dbt_history.tracked' = 'null')"
    project.spark.sql(f"alter table {table} set {tracked}")
    place: dict[str, Any] = {"table": table, "key": ["ID"]}
    add = {**place, "column": "color", "default": "red"}

    for name, arguments in [
        ("add", {**add, "at": "2024-01-03"}),
        ("add", {**add, "at": "2024-01-05"}),
        ("drop", {**place, "column": "v", "at": "2024-01-05"}),
    ]:
        refused = migrate(project, f"{name}_column_in_history_mode", check=False, **arguments)
        assert "1 changes of active versions (repeats) start at or after" in refused
        assert "the latest at 2024-01-05 00:00:00" in refused
    assert_same_rows(project.rows("h"), rows, list(TYPES))
    migrate(project, "add_column_in_history_mode", **add, at="2024-01-06")

    found = {(row["_fivetran_start"], row["color"]) for row in project.rows("h") if row["id"] == 1}
    assert found == {(day(1), None), (day(5), None), (day(6), "red")}


def run_history_of(project: Project, source: str) -> None:
    """Write the model `h`, the history of the source, and run it."""
    project.model(
        "h",
        f"select * from {source}",
        materialized="history",
        unique_key="id",
        meta={"history": {"convention": "fivetran"}},
    )
    project.run("h")


def vat_of(project: Project) -> dict[str, Any]:
    """The arguments that add a column to `h`, without the instant."""
    return {
        "table": project.table("h"), "key": "id", "column": "vat", "type": "int", "default": 7,
    }  # fmt: skip


@pytest.mark.parametrize("moment", ["suspended", "made again"])
def test_a_column_is_not_added_before_a_change_that_the_table_has_not_read(
    project: Project, moment: str
) -> None:
    """The version that it makes would hide the change for ever:

    source    5 (read)      6                  now
    table     [ 5 ---------------------------- open     not at `now`, but at the time of 6
    """
    project.spark.sql(f"create schema if not exists {project.schema}")
    source = project.table("prices")
    create = (
        f"create table {source} using delta tblproperties (delta.enableChangeDataFeed = true)"
        " as select 1 as id, {} as price"
    )
    project.spark.sql(create.format(5))
    run_history_of(project, source)
    if moment == "suspended":
        project.control("suspend", "h")
        project.spark.sql(f"update {source} set price = 6")
    else:
        # Its version is 0, as that of the table that was read.
        project.spark.sql(f"drop table {source}")
        project.spark.sql(create.format(6))
    add = vat_of(project)
    now = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S.%fZ}"

    refused = migrate(project, "add_column_in_history_mode", check=False, at=now, **add)
    found = re.search(r"it has not read version \d of .* choose at up to (.*) UTC", refused)
    assert found, refused
    migrate(project, "add_column_in_history_mode", at=found[1] + "Z", **add)
    if moment == "suspended":
        project.control("resume", "h")
    project.run("h")

    current = [row["price"] for row in project.rows("h") if row["_fivetran_active"]]
    assert current == [6]


def test_a_column_of_a_table_that_captures_is_added_at_up_to_the_present(
    project: Project,
) -> None:
    """What is captured after the migration is not hidden by its version: neither before an `at` in
    the future, which is refused, nor after a commit whose clock is behind.

    table     [ 5 ------------- migrated: )[ 5, vat 7 --)[ 6 -- open
    source    5         6 (its clock)             6 is read
    """
    project.spark.sql(f"create schema if not exists {project.schema}")
    source = project.table("prices")
    project.spark.sql(
        f"create table {source} using delta tblproperties (delta.enableChangeDataFeed = true)"
        " as select 1 as id, 5 as price"
    )
    set_commit_times(project, "prices", -60)
    run_history_of(project, source)
    add = vat_of(project)
    now = datetime.now(UTC)

    refused = migrate(
        project, "add_column_in_history_mode", check=False, at=f"{now + timedelta(hours=1)}", **add
    )
    assert "is in the future, and the table captures changes" in refused
    refused = migrate(
        project, "drop_column_in_history_mode", check=False, at=f"{now + timedelta(hours=1)}",
        **{name: add[name] for name in ("table", "key")}, column="price",
    )  # fmt: skip
    assert "is in the future, and the table captures changes" in refused
    migrate(project, "add_column_in_history_mode", at=f"{now}", **add)
    project.spark.sql(f"update {source} set price = 6")
    set_commit_times(project, "prices", -60, -50)
    project.run("h")

    rows = sorted(project.rows("h"), key=lambda row: row["_fivetran_start"])
    assert [(row["price"], row["vat"], row["_fivetran_active"]) for row in rows] == [
        (5, None, False), (5, 7, False), (6, None, True),
    ]  # fmt: skip
    assert rows[1]["_fivetran_start"] == rows[1]["_fivetran_end"] == now.replace(tzinfo=None)


def test_a_version_that_starts_then_and_has_ended_gets_the_default_in_place(
    project: Project,
) -> None:
    """
    day    1        3                        5
    1               [ a --------------------- )
    1               [ late, another end --------- )    two rows of it are equal
    2      [ b ------)[ b, red -------------- open
    3               tombstone of late_events
    4      [ c ------------------------------ )
    """
    late = version(1, "late", day(3), before(day(6)))
    rows = [
        version(1, "a", day(3), before(day(5))), late, late, version(2, "b", day(1)),
        {**version(3, None, day(3), before(day(3))), "w": None},
        version(4, "c", day(1), before(day(5))),
    ]  # fmt: skip
    table = write(project, "h", rows, TYPES)
    ended = write(project, "ended", rows[:1], TYPES)
    add: dict[str, Any] = {"key": "id", "column": "color", "default": "red", "at": "2024-01-03"}

    for name in (table, ended, table):
        output = migrate(project, "add_column_in_history_mode", table=name, **add)

    assert "was migrated before" in output
    red = [
        {**row, "color": None if row["id"] in (3, 4) else "red"} for row in rows if row["id"] != 2
    ]
    red += [
        {**version(2, "b", day(1), before(day(3))), "color": None},
        {**version(2, "b", day(3)), "color": "red"},
    ]
    assert_same_rows(project.rows("h"), red, [*TYPES, "color"])
    assert_same_rows(project.rows("ended"), red[:1], [*TYPES, "color"])


def test_a_soft_delete_has_the_version_and_not_a_change_within_it(project: Project) -> None:
    """
    day    1            5                  9
    1      [ new -------------------------------- open      repeat at 5: old
    2      [ new --------------------------)                repeat at 5: old
    3                   empty: the record ended where it began
    4      [ first ----)empty: last
    """
    rows = [
        version(1, "new", day(1)), version(1, "old", day(5), before(day(5))),
        version(2, "new", day(1), before(day(9))), version(2, "old", day(5), before(day(5))),
        version(3, "only", day(5), before(day(5))),
        version(4, "first", day(1), before(day(5))), version(4, "last", day(5), before(day(5))),
    ]  # fmt: skip
    table = write(project, "h", rows, TYPES)

    migrate(project, "history_to_soft_delete", table=table, key="id")

    assert {(row["id"], row["v"], row["_fivetran_deleted"]) for row in project.rows("h")} == {
        (1, "new", False), (2, "new", True), (3, "only", True), (4, "last", True),
    }  # fmt: skip


def test_all_problems_of_a_migration_are_reported_together_and_nothing_is_written(
    project: Project,
) -> None:
    table = write(project, "h", [version(1, "a", day(1))], TYPES)

    output = migrate(
        project, "add_column_in_history_mode", check=False,
        table=table, column="v", default="x", type="int", at="soon", key=["id", "nope"],
    )  # fmt: skip

    for reason in (
        "the table has no column nope, named as key",
        "column v exists as string, not int",
        "at is not a point in time: soon",
    ):
        assert reason in output
    output = migrate(
        project, "add_column_in_history_mode", check=False,
        table=table, column="n", default="x", type="int", at=JUNE, key="id",
    )  # fmt: skip
    assert "the value x is no int" in output
    assert version_of(project, "h") == 0


@pytest.mark.thorough
def test_a_value_that_the_type_of_the_column_cannot_hold_exactly_is_refused(
    project: Project,
) -> None:
    types = {"id": "bigint", "price": "decimal(10,2)", "day": "date", "seen": "timestamp"}
    table = write(project, "t", [{**dict.fromkeys(types), "id": 1}], types)

    for column, value, type_ in (
        ("price", "1.239", "decimal(10,2)"),
        ("day", "2024-03-01 delivered", "date"),
        ("seen", "10:00", "timestamp"),
    ):
        output = migrate(
            project, "update_column_value", check=False, table=table, column=column, value=value
        )
        assert f"the value {value} is no {type_}" in output
    assert version_of(project, "t") == 0
    migrate(project, "update_column_value", table=table, column="price", value="1.2300")
    migrate(project, "update_column_value", table=table, column="seen", value="2024-06-01")

    [row] = project.rows("t")
    assert (str(row["price"]), row["seen"]) == ("1.23", datetime(2024, 6, 1))


def test_a_dry_run_reports_and_writes_nothing(project: Project) -> None:
    table = write(project, "h", [version(1, "a", day(1))], TYPES)

    output = migrate(
        project, "drop_column_in_history_mode", table=table, column="v", at=JUNE, key="id",
        dry_run=True,
    )  # fmt: skip

    assert "would end v in 1 current versions" in output
    assert version_of(project, "h") == 0


def test_special_names_and_values_are_quoted(project: Project) -> None:
    types = {"select": "string", "Start": "string", **TYPES}
    rows = [{"select": "k'1", "Start": "s", **version(1, "a", day(1))}]
    project.spark.sql(f"create schema if not exists {project.schema}")
    data_frame(project.spark, rows, types).write.format("delta").option(
        "delta.columnMapping.mode", "name"
    ).saveAsTable(project.table("h"))

    migrate(
        project, "add_column_in_history_mode", table=project.table("h"), column="a b; drop",
        default="it's \\ \"x\"; ${y}", at=JUNE, key="select",
    )  # fmt: skip

    new = [row for row in project.rows("h") if row["_fivetran_active"]]
    assert [row["a b; drop"] for row in new] == ['it\'s \\ "x"; ${y}']
    assert len(project.rows("h")) == 2


def test_a_rename_keeps_past_values_and_reports_what_it_enables(project: Project) -> None:
    table = write(project, "h", [version(1, "a", day(1), day(2)), version(1, "b", day(2))], TYPES)
    arguments: dict[str, Any] = {"table": table, "from_column": "v", "to_column": "Value"}

    first = migrate(project, "rename_column", **arguments)
    again = migrate(project, "rename_column", **arguments)

    assert "gets column mapping (delta.columnMapping.mode = name)" in first
    assert "has Value and no v; nothing to do" in again
    assert sorted(row["Value"] for row in project.rows("h")) == ["a", "b"]
    output = migrate(
        project, "rename_column", check=False, table=table, from_column="w", to_column="VALUE"
    )
    assert "the table has a column VALUE already" in output


def test_a_history_continues_with_the_new_name_of_its_key_column(project: Project) -> None:
    """
    version    1                2               3            4              5
               batch 1, key id  column mapping  id -> name   batch 2, name  restore to 3 or 2
    """
    project.history("h", stage(project, "staged", [upsert(1, 1, day(1))]))
    project.run("h")
    name = 'the "$ {Item}'
    arguments: dict[str, Any] = {"table": project.table("h"), "to_column": name}
    migrate(project, "rename_column", from_column="ID", **arguments)
    named = version_of(project, "h")
    settings = [row["key"] for row in project.spark.sql("set").collect()]
    assert "spark.databricks.delta.commitInfo.userMetadata" not in settings

    rows = [{**row, name: 1} for row in new_version(2, 1, day(3), "b")]
    for row in rows:
        del row["id"]
    types = {name: "bigint", **{key: type_ for key, type_ in TYPES.items() if key != "id"}}
    project.history("h", stage(project, "staged", rows, types), key=name)
    for restored in (named, named - 1):
        assert project.run("h").message("h").startswith("1 batch: 1 added, 1 closed")
        assert sorted((row[name], row["v"]) for row in project.rows("h")) == [(1, "a"), (1, "b")]
        project.spark.sql(f"restore table {project.table('h')} to version as of {restored}")
    project.history("h", stage(project, "staged", new_version(2, 1, day(3), "b")))
    assert project.run("h").message("h").startswith("1 batch: 1 added, 1 closed")


def test_a_renamed_column_of_a_table_without_batches_is_still_checked_for_adoption(
    project: Project,
) -> None:
    table = write(project, "h", [version(1, "a", day(1)), version(1, "b", day(1))], TYPES)
    migrate(project, "rename_column", table=table, from_column="id", to_column="item")
    migrate(project, "rename_column", table=table, from_column="item", to_column="id")
    project.history("h", stage(project, "staged", [upsert(1, 1, day(2))]))

    assert "cannot be adopted" in project.run("h", check=False).message("h")


def test_a_value_for_all_rows_is_set_and_unset(project: Project) -> None:
    table = write(project, "h", [version(1, "a", day(1), day(2)), version(1, None, day(2))], TYPES)

    migrate(project, "update_column_value", table=table, column="v", value="NULL")
    assert [row["v"] for row in project.rows("h")] == ["NULL", "NULL"]
    output = migrate(project, "update_column_value", table=table, column="v", value="NULL")
    assert "changes v in 0 rows" in output
    assert version_of(project, "h") == 1
    migrate(project, "update_column_value", table=table, column="v", value=None)
    assert [row["v"] for row in project.rows("h")] == [None, None]


def test_a_default_is_set_in_every_row_and_a_repeat_keeps_later_values(project: Project) -> None:
    table = write(project, "t", [{"id": 1}, {"id": 2}], {"id": "bigint"})
    arguments: dict[str, Any] = {"table": table, "column": "at", "type": "timestamp"}
    arguments["default"] = "2024-01-01 12:00:00"
    project.spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        migrate(project, "add_column_with_default_value", **arguments)
    finally:
        project.spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert {row["at"] for row in project.rows("t")} == {datetime(2024, 1, 1, 12)}

    project.spark.sql(f"update {table} set at = null where id = 1")
    output = migrate(project, "add_column_with_default_value", **arguments)

    assert "nothing to do" in output
    assert {row["at"] for row in project.rows("t")} == {datetime(2024, 1, 1, 12), None}


@pytest.mark.parametrize("moment", ["restored", "expired", "empty"])
def test_a_repeated_default_keeps_later_values_whatever_the_log_still_says(
    project: Project, moment: str
) -> None:
    """
    version     1         2          3                  4          5
                default   property   v = 'later'        delete     restore to 3
                '- has expired, or the table was empty
    """
    rows = [] if moment == "empty" else [{"id": 1, "v": None}, {"id": 2, "v": None}]
    table = write(project, "t", rows, {"id": "bigint", "v": "string"})
    arguments: dict[str, Any] = {"table": table, "column": "v", "default": "first"}
    migrate(project, "add_column_with_default_value", **arguments)
    if moment == "empty":
        project.spark.sql(f"insert into {table} values (1, 'first'), (2, 'first')")
    project.spark.sql(f"update {table} set v = 'later' where id = 1")
    kept = version_of(project, "t")
    if moment == "restored":
        project.spark.sql(f"delete from {table}")
        project.spark.sql(f"restore table {table} to version as of {kept}")
    elif moment == "expired":
        for value in ("1", "100"):
            properties = f"('delta.checkpointInterval' = '{value}')"
            project.spark.sql(f"alter table {table} set tblproperties {properties}")
        project.expire_log("t", kept + 1)

    assert "nothing to do" in migrate(project, "add_column_with_default_value", **arguments)
    assert {row["v"] for row in project.rows("t")} == {"first", "later"}

    if moment == "restored":
        project.spark.sql(f"restore table {table} to version as of 0")
        migrate(project, "add_column_with_default_value", **arguments)
        assert {row["v"] for row in project.rows("t")} == {"first"}


def test_a_default_for_a_column_that_exists_is_set_in_every_row(project: Project) -> None:
    table = write(
        project, "t", [{"id": 1, "n": 5}, {"id": 2, "n": None}], {"id": "bigint", "n": "int"}
    )
    arguments: dict[str, Any] = {"table": table, "column": "N", "type": "int"}
    migrate(project, "add_column_with_default_value", default=None, **arguments)
    assert [row["n"] for row in project.rows("t")] == [5, None]

    migrate(project, "add_column_with_default_value", default="7", **arguments)

    assert [row["n"] for row in project.rows("t")] == [7, 7]
    other = migrate(
        project, "add_column_with_default_value", check=False, default="x",
        **{**arguments, "type": "string"},
    )  # fmt: skip
    assert "column N exists as int, not string" in other


@pytest.mark.parametrize("is_new", [True, False], ids=["added", "updated"])
def test_a_value_for_all_rows_leaves_out_remembered_deletions(
    project: Project, is_new: bool
) -> None:
    """
    day          3        5        9
    stored       [ a -----)        | tombstone, which remains without values
    """
    stage(project, "staged", [delete(1, 1, day(9)), upsert(2, 1, day(3)), delete(3, 1, day(5))])
    project.history("h", "select * from staged", late_events=True)
    project.run("h")
    arguments: dict[str, Any] = {"table": project.table("h"), "column": "w"}
    value = "5"
    if is_new:
        arguments = {**arguments, "column": "color", "default": "red"}
        output = migrate(project, "add_column_with_default_value", **arguments)
        assert "with its default in 1 rows" in output
        value = "red"
    else:
        output = migrate(project, "update_column_value", value=value, **arguments)
        assert "changes w in 1 rows" in output

    migrate(project, "history_to_soft_delete", table=project.table("h"), key="id")

    [row] = project.rows("h")
    found = (row["v"], str(row[arguments["column"]]), row["_fivetran_deleted"])
    assert found == ("a", value, True)


def test_an_empty_period_in_a_table_of_another_tool_gets_the_value(project: Project) -> None:
    """Without a recorded key no row is a remembered deletion."""
    empty = {**version(1, None, day(2), before(day(2))), "w": None}
    table = write(project, "t", [empty], TYPES)

    migrate(project, "update_column_value", table=table, column="w", value="5")

    assert [row["w"] for row in project.rows("t")] == ["5"]


def test_rows_synced_before_a_time_are_removed_or_marked(project: Project) -> None:
    types = {"id": "bigint", "gone": "boolean", "_fivetran_synced": "timestamp"}
    rows: list[dict[str, Any]] = [
        {"id": 1, "gone": False, "_fivetran_synced": day(1)},
        {"id": 2, "gone": None, "_fivetran_synced": before(day(2))},
        {"id": 3, "gone": False, "_fivetran_synced": day(2)},
        {"id": 4, "gone": False, "_fivetran_synced": None},
    ]
    soft, hard = write(project, "soft", rows, types), write(project, "hard", rows, types)
    at = "2024-01-02T00:00:00Z"

    migrate(project, "truncate_before", table=soft, at=at, deleted_column="gone")
    migrate(project, "truncate_before", table=hard, at=at)
    output = migrate(project, "truncate_before", table=project.table("nothing"), at=at)

    assert {row["id"] for row in project.rows("soft") if row["gone"]} == {1, 2}
    assert {row["id"] for row in project.rows("hard")} == {3, 4}
    assert "does not exist; nothing to do" in output


def test_a_table_that_changes_its_mode_keeps_layout_and_properties(project: Project) -> None:
    types = {"id": "bigint", "region": "string", "is_gone": "boolean"}
    types["_fivetran_synced"] = "timestamp"
    row = {"id": 1, "region": "x", "is_gone": True, "_fivetran_synced": day(3)}
    project.spark.sql(f"create schema if not exists {project.schema}")
    table = project.table("t")
    data_frame(project.spark, [row], types).write.format("delta").partitionBy("region").option(
        "delta.enableChangeDataFeed", "true"
    ).saveAsTable(table)
    # Spark masks the value (decision 134).
    project.spark.sql(f"alter table {table} set tblproperties ('read.by' = 'token service')")

    migrate(project, "soft_delete_to_history", table=table, deleted_column="is_gone",
            least="1900-01-01")  # fmt: skip

    least = datetime(1900, 1, 1)
    assert project.rows("t") == [
        {**row, "_fivetran_start": least, "_fivetran_end": least, "_fivetran_active": False}
    ]
    detail = project.spark.sql(f"describe detail {table}").collect()[0]
    assert detail["partitionColumns"] == ["region"]
    assert detail["properties"]["delta.enableChangeDataFeed"] == "true"
    assert detail["properties"]["read.by"] == "token service"
    migrate(project, "history_to_soft_delete", table=table, key="id", deleted_column="is_gone")
    # The guide of the partner SDK adds _fivetran_deleted with the default false in any case.
    assert project.rows("t") == [{**row, "_fivetran_deleted": False}]


@pytest.mark.thorough
def test_a_table_without_soft_deletes_keeps_its_column_with_that_name(project: Project) -> None:
    types = {"id": "bigint", "_fivetran_deleted": "boolean", "_fivetran_synced": "timestamp"}
    row = {"id": 1, "_fivetran_deleted": True, "_fivetran_synced": day(3)}
    project.spark.sql(f"create schema if not exists {project.schema}")
    table = project.table("t")
    data_frame(project.spark, [row], types).write.format("delta").saveAsTable(table)

    migrate(project, "copy_table_to_history_mode", table=table, to=project.table("copy"))

    (copied,) = project.rows("copy")
    assert {name: copied[name] for name in row} == row
    assert copied["_fivetran_active"]


@pytest.mark.thorough
@pytest.mark.parametrize("left", ["table", "files"])
def test_a_copy_is_made_where_a_killed_call_has_left_its_folder(
    left: str, project: Project, warehouse: Path
) -> None:
    project.spark.sql(f"create schema if not exists {project.schema}")
    table, copy = project.table("t"), project.table("copy")
    rows = [{"id": 1, "_fivetran_synced": day(3)}]
    types = {"id": "bigint", "_fivetran_synced": "timestamp"}
    data_frame(project.spark, rows, types).write.format("delta").saveAsTable(table)
    folder = warehouse / f"{project.schema}.db" / "copy"
    if left == "table":
        migrate(project, "copy_table_to_history_mode", table=table, to=copy)
        kept = shutil.copytree(folder, folder.with_name("kept"))
        project.spark.sql(f"drop table {copy}")
        shutil.move(kept, folder)
    else:
        folder.mkdir()
        (folder / "part-0.parquet").write_text("half")

    for _ in range(2):
        migrate(project, "copy_table_to_history_mode", table=table, to=copy)
        assert [(row["id"], row["_fivetran_active"]) for row in project.rows("copy")] == [(1, True)]
    assert (folder / "part-0.parquet").exists() == (left == "files")


@pytest.mark.parametrize("operation", ["soft_delete_to_history", "copy_table_to_history_mode"])
def test_a_history_table_cannot_become_a_history_table_again(
    operation: str, project: Project
) -> None:
    table = write(project, "h", [version(1, "a", day(1))], TYPES)
    more: dict[str, Any] = {"to": table} if operation == "copy_table_to_history_mode" else {}

    output = migrate(project, operation, check=False, table=table, **more)

    assert "it is in history mode" in output
    assert "no timestamp column _fivetran_synced" in output
    assert ("is not a copy made by this migration" in output) == bool(more)
    assert version_of(project, "h") == 0
