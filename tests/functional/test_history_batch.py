"""The guarantees of the materialization beyond the ten rules, one test each."""

from __future__ import annotations

import json
import shutil
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from dbt.adapters.spark.session import Cursor

from tests.support.markdown import blocks, page
from tests.support.project import Project
from tests.support.selection import thorough
from tests.support.staging import (
    COLUMNS,
    OPEN,
    TYPES,
    before,
    day,
    delete,
    earliest,
    new_version,
    stage,
    update,
    upsert,
    version,
)
from tests.support.tables import assert_same_rows, data_frame

COMMIT_SETTINGS = (
    "spark.databricks.delta.write.txnAppId",
    "spark.databricks.delta.write.txnVersion",
    "spark.databricks.delta.commitInfo.userMetadata",
    "spark.sql.legacy.storeAnalyzedPlanForView",
)


def assert_table(project: Project, name: str, *expected: dict[str, Any]) -> None:
    assert_same_rows(project.rows(name), expected, COLUMNS)


MANY = ", ".join(f"{number} as n{number}" for number in range(30))


def settings_of(project: Project) -> list[str | None]:
    return [project.spark.conf.get(name, None) for name in COMMIT_SETTINGS]


def adopt(project: Project, name: str, rows: list[dict[str, Any]], form: str = "delta") -> None:
    project.spark.sql(f"create schema if not exists {project.schema}")
    data_frame(project.spark, rows, TYPES).write.format(form).saveAsTable(project.table(name))


@pytest.mark.thorough
def test_at_one_start_an_update_completes_the_upsert_of_its_file(project: Project) -> None:
    rows = [upsert(1, 1, day(1), "a", w="base"), upsert(1, 2, day(1), "a", w="base")]
    rows += [earliest(2, 1, day(2)), earliest(2, 2, day(2))]
    # Record 1: both at one start; record 2: the update later. The updates are first, as in the
    # older guide.
    rows += [
        update(2, 1, day(2), "updated"),
        update(2, 2, day(3), "updated"),
        upsert(2, 1, day(2), "replaced", w="replaced"),
        upsert(2, 2, day(2), "replaced", w="replaced"),
    ]
    project.history("h", stage(project, "staged", rows), batches_per_commit=None)

    project.run("h")

    found = project.rows("h")
    assert len(found) == 5
    assert {
        (row["id"], row["_fivetran_start"]): (row["v"], row["w"], row["_fivetran_end"])
        for row in found
    } == {
        (1, day(1)): ("a", "base", before(day(2))),
        (1, day(2)): ("updated", "replaced", OPEN),
        (2, day(1)): ("a", "base", before(day(2))),
        (2, day(2)): ("replaced", "replaced", before(day(3))),
        (2, day(3)): ("updated", "replaced", OPEN),
    }


def test_a_batch_is_one_commit_with_a_record_of_the_batch(project: Project) -> None:
    rows = [upsert(4, 1, day(1)), *new_version(7, 1, day(2), "b")]
    project.history("h", stage(project, "staged", rows))

    run = project.run("h")

    assert run.message("h") == "2 batches: 2 added, 1 closed, 0 removed, 0 skipped, 0 replayed"
    newest, older, created = project.log_of("h")
    assert '"batch": 7' in newest["userMetadata"]
    assert '"earliest_start": 1' in newest["userMetadata"]
    assert '"batch": 4' in older["userMetadata"]
    assert created["operation"] == "CREATE TABLE"


def test_a_batch_number_is_applied_only_once(project: Project) -> None:
    project.history("h", stage(project, "staged", [upsert(5, 1, day(1), "first")]))
    project.run("h")
    stage(project, "staged", [upsert(5, 1, day(1), "second"), upsert(3, 2, day(1))])

    run = project.run("h")

    assert run.message("h").endswith("2 replayed")
    assert_table(project, "h", version(1, "first", day(1)))


@pytest.mark.thorough
def test_filtering_by_last_batch_skips_old_batches_and_changes_no_result(project: Project) -> None:
    select = stage(project, "staged", [upsert(1, 1, day(1))])
    project.history("h", select + " where _batch > {{ dbt_history.last_batch() }}")
    project.run("h")
    stage(project, "staged", [upsert(1, 1, day(1)), *new_version(2, 1, day(3), "b")])

    run = project.run("h")

    assert run.message("h") == "1 batch: 1 added, 1 closed, 0 removed, 0 skipped, 0 replayed"
    assert_table(project, "h", version(1, "a", day(1), before(day(3))), version(1, "b", day(3)))


def test_without_a_number_the_select_is_one_batch_and_a_replay_writes_no_file(
    project: Project,
) -> None:
    rows = [upsert(None, 1, day(1)), *new_version(None, 1, day(2), "b")]  # type: ignore[arg-type]
    project.history("h", stage(project, "staged", rows))
    project.run("h")
    before_replay = project.rows("h")

    run = project.run("h")

    assert run.message("h") == "1 batch: 0 added, 0 closed, 0 removed, 0 skipped, 0 replayed"
    assert_same_rows(project.rows("h"), before_replay, COLUMNS)
    metrics = project.log_of("h")[0]["operationMetrics"]
    assert metrics.get("numTargetFilesAdded", "0") == "0" or len(project.log_of("h")) == 2


def test_all_problems_of_a_batch_are_reported_together_and_nothing_is_written(
    project: Project,
) -> None:
    rows = [
        {**upsert(1, 1, day(1)), "_stage": "upsertt"},
        upsert(1, None, day(1)),
        {**upsert(1, 2, day(1)), "_fivetran_start": None},
        delete(1, 3, None),  # type: ignore[arg-type]
        update(1, 4, day(1), _unmodified=["no_such_column"]),
        upsert(1, 5, datetime(9999, 12, 31, 23, 59, 59, 999500)),
        upsert(1, 6, day(2), _fivetran_end=day(1), _fivetran_active=False),
        upsert(1, 7, day(1), "one"),
        upsert(1, 7, day(1), "other"),
        # The first row has no order, so it does not say which of the others it precedes.
        upsert(1, 10, day(1), "one"),
        upsert(1, 10, day(1), "one", _order=1),
        upsert(1, 10, day(1), "other", _order=2),
        upsert(1, 8, day(1)),
        upsert(1, 9, day(1), None, _unmodified=["v"]),
        {**delete(1, 8, day(2)), "_unmodified": ["not read in a delete row"]},
    ]
    project.history("h", stage(project, "staged", rows))

    run = project.run("h", check=False)

    assert not run.success
    message = run.message("h")
    for reason in (
        "1 rows: _stage is not",
        "1 rows: a key column is NULL",
        "1 rows: _fivetran_start is NULL",
        "1 rows: _fivetran_end of a delete row is NULL",
        "1 rows: _unmodified contains a name that is no column",
        "1 rows: _unmodified is for update rows: an upsert row supplies every column",
        "1 rows: _fivetran_start is not before the open end",
        "1 rows: _fivetran_end is more than one gap before _fivetran_start",
        "2 rows: two different rows of one stage have the same key and start",
        "in model: model.history_tests.h",
    ):
        assert reason in message, message
    assert not project.spark.catalog.tableExists(project.table("h"))


def test_invalid_columns_are_reported_together(project: Project) -> None:
    project.history(
        "h",
        "select 1 as _stage, 'x' as _batch, 1L as id, '2024-01-01' as _fivetran_start,"
        " true as _fivetran_active, 1 as _metadata",
    )

    message = project.run("h", check=False).message("h")

    for problem in (
        "column _fivetran_end is missing",
        "column _stage is int, not string",
        "column _batch is string, not bigint",
        "column _fivetran_start is string, not timestamp",
        "column _metadata has a name that Delta reserves",
    ):
        assert problem in message, message


def test_invalid_settings_are_reported_together(project: Project) -> None:
    project.history("h", "select 1 as id", key=[], max_deleted_shar=1, update_without_base="drop")

    message = project.run("h", check=False).message("h")

    assert "unique_key is missing" in message
    assert "has no setting max_deleted_shar" in message
    assert "update_without_base is drop" in message


def test_equal_rows_collapse_and_order_decides_between_different_ones(
    project: Project,
) -> None:
    rows = [
        upsert(1, 1, day(1)),
        upsert(1, 1, day(1)),
        upsert(1, 2, day(1), "last", _order=2),
        upsert(1, 2, day(1), "first", _order=1),
        upsert(1, 3, day(1)),
        # The cells of a column that is left unmodified are not read.
        update(1, 3, day(2), w="one"),
        update(1, 3, day(2), w="other"),
    ]
    project.history("h", stage(project, "staged", rows))

    project.run("h")

    assert_table(
        project,
        "h",
        version(1, "a", day(1)),
        version(2, "last", day(1)),
        version(3, "a", day(1), before(day(2))),
        version(3, "b", day(2)),
    )


@pytest.mark.thorough
@pytest.mark.parametrize("with_", ["", "with rows as (select 1) "])
def test_untyped_nulls_and_empty_arrays_get_the_type_of_the_table(
    project: Project, with_: str
) -> None:
    select = f"""
        {with_}select
            'upsert' as _stage, {{}}L as _batch, 1L as id, {{}} as tags, {{}} as parts,
            {{}} as _unmodified,
            timestamp'{{}} UTC' as _fivetran_start,
            timestamp'9999-12-31 23:59:59.999 UTC' as _fivetran_end, true as _fivetran_active
    """
    parts = "array(named_struct('n', 1))"
    project.history("h", select.format(1, "array('a')", parts, "null", day(1)))
    project.run("h")
    project.history("h", select.format(2, "null", "array()", "array()", day(3)))

    project.run("h")

    found = {row["_fivetran_start"]: (row["tags"], len(row["parts"])) for row in project.rows("h")}
    assert found == {day(1): (["a"], 1), day(3): (None, 0)}


def test_full_refresh_is_refused_unless_allowed(project: Project) -> None:
    select = stage(project, "staged", [upsert(1, 1, day(1))])
    project.history("h", select)
    project.run("h")

    refused = project.run("h", check=False, options=["--full-refresh"])
    assert "a full refresh would replace the existing history" in refused.message("h")
    assert "way out: set full_refresh: false on the model" in refused.message("h")
    assert_table(project, "h", version(1, "a", day(1)))
    project.history("h", select, config={"full_refresh": False})
    stage(project, "staged", [upsert(1, 2, day(1))])
    project.run("h", options=["--full-refresh"])
    assert_table(project, "h", version(1, "a", day(1)))


@pytest.mark.thorough
def test_full_refresh_replaces_the_table_if_allowed(project: Project) -> None:
    select = stage(project, "staged", [upsert(1, 1, day(1))])
    project.history("h", select)
    project.run("h")

    project.history("h", select, allow_full_refresh=True)
    stage(project, "staged", [upsert(1, 2, day(1))])
    project.run("h", options=["--full-refresh"])
    assert_table(project, "h", version(2, "a", day(1)))


@pytest.mark.thorough
def test_a_full_refresh_that_is_refused_can_be_undone(project: Project) -> None:
    """
    commits     1              2
    first       no base                 refused before the table is replaced
    second      applied        no base  refused after it: the message has the way back
    """
    alone = update(1, 2, day(1), "alone")
    project.history(
        "h", stage(project, "staged", [upsert(1, 1, day(1))]), allow_full_refresh=True,
        update_without_base="fail", batches_per_commit=1,
    )  # fmt: skip
    project.run("h")

    stage(project, "staged", [upsert(1, 1, day(1), "b"), alone])
    message = project.run("h", check=False, options=["--full-refresh"]).message("h")
    assert "update rows have no version" in message
    assert "restore table" not in message
    assert_table(project, "h", version(1, "a", day(1)))

    rows = [{**row, "_batch": n} for n, row in enumerate([upsert(1, 1, day(1), "b"), alone], 1)]
    stage(project, "staged", rows)
    message = project.run("h", check=False, options=["--full-refresh"]).message("h")
    assert "update rows have no version" in message
    assert_table(project, "h", version(1, "b", day(1)))
    project.spark.sql("restore table" + message.split("restore table")[1].split("\n")[0])
    assert_table(project, "h", version(1, "a", day(1)))


@pytest.mark.thorough
@pytest.mark.parametrize("conflicts", [1, 6])
def test_a_full_refresh_that_loses_a_conflict_is_repeated_and_never_skipped(
    project: Project, monkeypatch: pytest.MonkeyPatch, conflicts: int
) -> None:
    execute = Cursor.execute
    lost: list[str] = []

    def lose(cursor: Cursor, sql: str, *parameters: Any) -> None:
        is_lost = "create or replace table" in sql and len(lost) < conflicts
        lost.extend([sql] if is_lost else [])
        execute(cursor, "select 'conflict' as failed" if is_lost else sql, *parameters)

    select = stage(project, "staged", [upsert(1, 1, day(1))])
    project.history("h", select, allow_full_refresh=True)
    project.run("h")
    stage(project, "staged", [upsert(1, 2, day(1))])
    monkeypatch.setattr(Cursor, "execute", lose)

    run = project.run("h", check=False, options=["--full-refresh"])

    if conflicts == 1:
        assert_table(project, "h", version(2, "a", day(1)))
    else:
        assert "the table was not replaced" in run.message("h")
        assert "run the full refresh again" in run.message("h")
        assert_table(project, "h", version(1, "a", day(1)))


@pytest.mark.parametrize("share", [0.5, thorough(0.9)])
def test_mass_delete_is_refused(project: Project, share: float) -> None:
    rows = [upsert(1, number, day(1)) for number in range(150)]
    project.history("h", stage(project, "staged", rows), max_deleted_share=share)
    project.run("h")
    stage(project, "staged", [*rows, *(delete(2, number, day(2)) for number in range(110))])

    run = project.run("h", check=False)

    assert run.success == (share == 0.9)
    if share == 0.5:
        assert "110 of 150 current records" in run.message("h")
        assert len(project.log_of("h")) == 2


@pytest.mark.parametrize("choice", ["append", thorough("fail"), thorough("ignore")])
def test_a_new_column_is_appended_refused_or_ignored(project: Project, choice: str) -> None:
    first = [upsert(1, 1, day(1))]
    wide = {**TYPES, "added": "int"}
    # Without the setting, columns are appended.
    config = {} if choice == "append" else {"on_schema_change": choice}
    project.history("h", stage(project, "staged", first), config=config)
    project.run("h")
    second = [{**row, "added": 7} for row in new_version(2, 1, day(2), "b")]
    if choice == "ignore":
        second[1]["_unmodified"] = ["w", "added"]
    stage(project, "staged", [*first, *second], wide)

    run = project.run("h", check=False)

    rows = project.rows("h")
    if choice == "append":
        assert sorted(str(row["added"]) for row in rows) == ["7", "None"]
    elif choice == "fail":
        assert "the table has no column added" in run.message("h")
        narrow = {name: type_ for name, type_ in TYPES.items() if name != "w"}
        stage(project, "staged", first, narrow)
        message = project.run("h", check=False).message("h")
        assert "the SELECT has no column w, which the table has (on_schema_change: fail" in message
    else:
        assert "added" not in rows[0]
        assert len(rows) == 2


@pytest.mark.thorough
def test_a_column_missing_from_the_select_keeps_its_value(project: Project) -> None:
    project.history("h", stage(project, "staged", [upsert(1, 1, day(1), w="kept")]))
    project.run("h")
    narrow = {name: type_ for name, type_ in TYPES.items() if name != "w"}
    stage(project, "staged", [earliest(2, 1, day(2)), update(2, 1, day(2), _unmodified=[])], narrow)

    project.run("h")

    assert {row["w"] for row in project.rows("h")} == {"kept"}


@pytest.mark.thorough
@pytest.mark.parametrize("with_earliest", [False, True])
def test_versions_sent_again_keep_a_column_that_the_select_lacks(
    project: Project, with_earliest: bool
) -> None:
    """Column w of record 1; the rows have no batch number, so all of them are sent in every run:

    day          1         3         5         7
    first run    [ one ---)[ three -)[ five ------- open
    without w    [ one ---)[ three -)[ five --)[ NULL -- open        also with E at 2
    """
    rows = [
        upsert(None, 1, day(1), w="one"), upsert(None, 1, day(3), w="three"),
        update(None, 1, day(5), w="five", _unmodified=[]),
        *([earliest(None, 1, day(2))] if with_earliest else []),
    ]  # fmt: skip
    project.history("h", stage(project, "staged", rows))
    project.run("h")
    narrow = {name: type_ for name, type_ in TYPES.items() if name != "w"}
    stage(project, "staged", [*rows, upsert(None, 1, day(7))], narrow)

    project.run("h")

    found = {row["_fivetran_start"]: row["w"] for row in project.rows("h")}
    assert found == {day(1): "one", day(3): "three", day(5): "five", day(7): None}
    if not with_earliest:
        assert "0 added, 0 closed, 0 removed" in project.run("h").message("h")


@pytest.mark.thorough
def test_batches_without_a_column_give_the_same_table_in_one_commit(project: Project) -> None:
    """Column w; the batches lack it:

    day          1         3         5
    record 1     [ one ---)[ three -)[ five ---     2: E at 3          3: upsert at 5
    becomes      [ one ---)          [ NULL ---
    record 2     [ one ---)[ three -)[ five ---     2: E, upsert at 3  3: E, upsert at 3
    becomes      [ one ---)[ three ------------
    record 3     [ one ---)[ three -)[ five ---     2: upsert at 3     3: E at 3, update at 3
    becomes      [ one ---)[ three ------------
    """
    first = [
        upsert(1, id_, day(on), w=w)
        for id_ in (1, 2, 3)
        for on, w in ((1, "one"), (3, "three"), (5, "five"))
    ]
    later = [
        earliest(2, 1, day(3)), upsert(3, 1, day(5)),
        earliest(2, 2, day(3)), upsert(2, 2, day(3)), earliest(3, 2, day(3)), upsert(3, 2, day(3)),
        upsert(2, 3, day(3)), earliest(3, 3, day(3)), update(3, 3, day(3)),
    ]  # fmt: skip
    narrow = {name: type_ for name, type_ in TYPES.items() if name != "w"}
    tables = {}
    for name, most in (("one", 1), ("all", None)):
        select = stage(project, "staged", first)
        project.history(name, select, batches_per_commit=most)
        project.run(name)
        stage(project, "staged", [*first, *later], narrow)
        project.run(name)
        tables[name] = {(row["id"], row["_fivetran_start"]): row["w"] for row in project.rows(name)}

    assert tables["one"] == tables["all"] == {
        **{(id_, day(1)): "one" for id_ in (1, 2, 3)},
        (1, day(5)): None, (2, day(3)): "three", (3, day(3)): "three",
    }  # fmt: skip


@pytest.mark.thorough
def test_an_old_version_sent_again_is_no_base_after_the_records_end(project: Project) -> None:
    """Batch 2 sends version a again, without an earliest row; batch 3 updates the record:

    day          1         3         5      7    8
    records 1, 2 [ a ------)[ b -----)           2: upsert at 1     3: update at 8, 2 with E at 7
    becomes      [ a2 -----)[ b -----)           no version lasts until the update
    record 3     [ a ------)[ b ------------
    becomes      [ a2 -----)[ b ------------)[ c ---
    """
    first = [upsert(1, id_, day(on), v, w=v) for id_ in (1, 2, 3) for on, v in ((1, "a"), (3, "b"))]
    first += [delete(1, 1, day(5)), delete(1, 2, day(5))]
    later = [upsert(2, id_, day(1), "a2", w="a2") for id_ in (1, 2, 3)]
    later += [update(3, id_, day(8), "c") for id_ in (1, 2, 3)] + [earliest(3, 2, day(7))]
    choices = {"one": (1, "skip"), "all": (None, "skip"), "refused": (None, "fail")}
    select = stage(project, "staged", first)
    for name, (most, choice) in choices.items():
        project.history(name, select, batches_per_commit=most, update_without_base=choice)
    project.run(*choices)
    stage(project, "staged", [*first, *later])

    run = project.run(*choices, check=False)

    sent_again = [{**version(id_, "a2", day(1), before(day(3))), "w": "a2"} for id_ in (1, 2, 3)]
    deleted = [
        {**version(id_, "b", day(3), day(5)), "w": "b", "_fivetran_active": False} for id_ in (1, 2)
    ]
    updated = [
        {**version(3, "b", day(3), before(day(8))), "w": "b"},
        {**version(3, "c", day(8)), "w": "b"},
    ]
    for name in ("one", "all"):
        assert_table(project, name, *sent_again, *deleted, *updated)
        assert "2 skipped" in run.message(name)
    assert json.loads(project.log_of("all")[0]["userMetadata"])["batches"] == 2
    assert "update rows have no version" in run.message("refused")


@pytest.mark.thorough
def test_a_table_of_another_writer_is_adopted(project: Project) -> None:
    adopt(project, "h", [version(1, "old", day(1)), version(2, "other", day(1))])
    project.history("h", stage(project, "staged", new_version(1, 1, day(5), "new")))

    project.run("h")

    assert_table(
        project,
        "h",
        version(1, "old", day(1), before(day(5))),
        version(1, "new", day(5)),
        version(2, "other", day(1)),
    )


def test_a_table_that_cannot_be_adopted_is_refused(project: Project) -> None:
    adopt(project, "doubles", [version(1, "x", day(1)), version(1, "y", day(1))])
    adopt(project, "inverted", [version(1, "x", day(5), day(2)), version(2, "y", day(1))])
    adopt(project, "parquet_table", [version(1, "x", day(1))], form="parquet")
    project.spark.sql(f"create view {project.table('a_view')} as select 1 as id")
    select = stage(project, "staged", new_version(1, 1, day(5), "new"))
    names = ("doubles", "inverted", "parquet_table", "a_view")
    for name in names:
        project.history(name, select)

    run = project.run(*names, check=False)

    assert "several versions with the same key and start" in run.message("doubles")
    inverted = run.message("inverted")
    assert "_fivetran_end is more than one gap before _fivetran_start" in inverted
    assert '"id":1' in inverted
    assert '"id":2' not in inverted
    assert "the target is not a Delta table" in run.message("parquet_table")
    assert "the target is a view" in run.message("a_view")


def test_types_that_do_not_fit_the_table_are_refused(project: Project) -> None:
    project.history("h", stage(project, "staged", [upsert(1, 1, day(1))]))
    project.run("h")
    stage(project, "staged", [upsert(2, "1", day(2))], {**TYPES, "id": "string"})

    run = project.run("h", check=False)

    assert "column id is string, the table has bigint" in run.message("h")


# Conformance cases skip them, random histories skip and insert them.
@pytest.mark.parametrize("choice", [thorough("skip"), thorough("insert"), "fail"])
def test_updates_without_a_base_are_skipped_inserted_or_refused(
    project: Project, choice: str
) -> None:
    rows = [upsert(1, 1, day(1)), update(1, 2, day(1), "alone")]
    project.history("h", stage(project, "staged", rows), update_without_base=choice)

    message = project.run("h", check=False).message("h")

    if choice == "skip":
        assert message == "1 batch: 1 added, 0 closed, 0 removed, 1 skipped, 0 replayed"
    elif choice == "insert":
        inserted = [row for row in project.rows("h") if row["id"] == 2]
        assert [(row["v"], row["w"]) for row in inserted] == [("alone", None)]
    else:
        assert "update rows have no version" in message
        assert '"id":2' in message.replace("\\", "").replace(" ", "")


def test_session_settings_are_restored_after_success_and_after_failure(project: Project) -> None:
    kept = "spark.databricks.delta.commitInfo.userMetadata"
    adopt(project, "refusing", [version(1, "x", day(1))])
    project.spark.sql(
        f"alter table {project.table('refusing')} add constraint never_bad check (v <> 'bad')"
    )
    select = stage(project, "staged", new_version(1, 1, day(2), "bad"))
    project.history("refusing", select)
    project.history("fine", stage(project, "fine_rows", [upsert(1, 1, day(1))]))
    project.spark.conf.set(kept, "mine")
    wanted = settings_of(project)
    try:
        run = project.run("refusing", "fine", check=False)
        assert settings_of(project) == wanted
    finally:
        project.spark.conf.unset(kept)
    assert "violates a constraint of the table" in run.message("refusing")
    assert run.results["fine"].status == "success"
    assert len(project.rows("refusing")) == 1


@pytest.mark.thorough
@pytest.mark.parametrize("escape", [False, True])
def test_metadata_that_spark_masks_is_reset_unless_it_has_an_escape(
    project: Project, escape: bool
) -> None:
    """Spark masks a value with url in it, the user b.hurley (decision 134)."""
    kept = "spark.databricks.delta.commitInfo.userMetadata"
    user = "b.h\\u0075rley" if escape else "b.hurley"
    said = f'{{"user": "{user}", "transaction": "t1"}}'
    project.history("h", stage(project, "staged", [upsert(1, 1, day(1))]))
    project.spark.conf.set(kept, said)
    try:
        run = project.run("h")
        found = project.spark.conf.get(kept, None)
    finally:
        project.spark.conf.unset(kept)

    assert found == (said if escape else None)
    assert ("Spark masks its value" in run.log) == (not escape)
    assert len(project.rows("h")) == 1


@pytest.mark.thorough
@pytest.mark.parametrize("reset", ["restore", "truncate", "replace"])
def test_batches_undone_by_a_reset_are_applied_again(project: Project, reset: str) -> None:
    rows = [
        upsert(1, 1, day(1)),
        *new_version(2, 1, day(2), "b"),
        *new_version(3, 1, day(3), "c"),
    ]
    project.history("h", stage(project, "staged", rows))
    project.run("h")
    expected = project.rows("h")
    table = project.table("h")
    project.spark.sql(
        {
            "restore": f"restore table {table} to version as of 1",
            "truncate": f"truncate table {table}",
            "replace": f"create or replace table {table} using delta as"
            f" select * from {table} limit 0",
        }[reset]
    )

    again = project.run("h")
    third = project.run("h")

    assert again.message("h").startswith("2 batches" if reset == "restore" else "3 batches")
    assert third.message("h").startswith("no new batch")
    assert_same_rows(project.rows("h"), expected, COLUMNS)


@pytest.mark.thorough
def test_the_last_batch_is_found_when_the_log_has_expired(project: Project) -> None:
    properties = {"delta.checkpointInterval": "3", "delta.enableExpiredLogCleanup": "false"}
    rows = [upsert(number, number, day(1)) for number in range(1, 6)]
    project.history(
        "h",
        stage(project, "staged", rows),
        batches_per_commit=None,
        config={"tblproperties": properties},
    )
    project.run("h")
    table = project.table("h")
    for number in range(3):
        project.spark.sql(f"alter table {table} set tblproperties ('touched' = '{number}')")
    project.expire_log("h")
    stage(project, "staged", [*rows, upsert(6, 6, day(1))])

    run = project.run("h")

    assert run.message("h") == "1 batch: 1 added, 0 closed, 0 removed, 0 skipped, 5 replayed"


@pytest.mark.thorough
@pytest.mark.parametrize(
    "volatile",
    [
        "select *, cast(rand() as string) as w from staged",
        "select *, cast(uuid() as string) as w from staged",
        "select *, cast(current_timestamp() as string) as w from staged",
        # EXPLAIN shows 25 columns.
        f"select *, {MANY}, cast(current_timestamp() as string) as w from staged",
    ],
    ids=["rand", "uuid", "now", "now, behind many columns"],
)
def test_the_select_is_evaluated_once(project: Project, volatile: str) -> None:
    narrow = {name: type_ for name, type_ in TYPES.items() if name != "w"}
    rows = [upsert(number, number, day(1)) for number in (1, 2, 3)]
    stage(project, "staged", rows, narrow)
    project.history("h", volatile)

    def staged(schema: str) -> set[str]:
        """Tables of the schema and temporary views, which a failed run of another test leaves."""
        found = project.spark.sql(f"show tables in {schema} like 'h__*'").collect()
        return {row.tableName for row in found}

    before = staged("default")
    project.run("h")

    assert len(project.rows("h")) == 3
    assert staged(project.schema) == before


@pytest.mark.thorough
def test_the_select_may_read_the_models_own_table(project: Project) -> None:
    adopt(project, "h", [version(0, "x", day(1))])
    stage(project, "staged", [upsert(number, number, day(1)) for number in (1, 2, 3)])
    project.history(
        "h", "select * from staged where id > (select max(id) from {{ this }} as known)"
    )

    run = project.run("h")

    assert run.message("h").startswith("3 batches: 3 added")


def test_special_names_and_nested_types_are_supported(project: Project) -> None:
    types = {
        "Key One": "string",
        "end": "date",
        "start": "map<string, array<int>>",
        "path": "struct<a: int, `b c`: map<string, int>>",
        "filePath": "array<struct<x: double>>",
        "_row_id_": "binary",
        "_stage_like": "decimal(20,3)",
        "op": "string",
        "at": "string",
        "_fivetran_start": "timestamp",
        "_fivetran_end": "timestamp",
        "_fivetran_active": "boolean",
    }
    first = {
        "_stage": "upsert", "_batch": 1, "Key One": "", "end": date(2024, 2, 29),
        "start": {"k": [1, 2]}, "path": (1, {"x": 1}), "filePath": [(1.5,)], "_row_id_": b"\x00",
        "_stage_like": Decimal("1.250"), "op": "NULL", "at": None, "_fivetran_start": day(1),
        "_fivetran_end": OPEN, "_fivetran_active": True,
    }  # fmt: skip
    kept = ["start", "PATH", "filePath", "_row_id_", "_stage_like", "op"]
    again = {**first, "_batch": 2}
    changed = {
        **dict.fromkeys(first), "_stage": "update", "_batch": 3, "Key One": "",
        "end": date(2024, 2, 29), "at": "x", "_fivetran_start": day(2), "_fivetran_end": OPEN,
        "_fivetran_active": True, "_unmodified": kept,
    }  # fmt: skip
    project.history(
        "h", stage(project, "staged", [first, again, changed], types), key=["Key One", "end"]
    )

    run = project.run("h")

    assert run.message("h") == "3 batches: 2 added, 1 closed, 0 removed, 0 skipped, 0 replayed"
    old, new = sorted(project.rows("h"), key=lambda row: row["_fivetran_start"])
    for name in ("Key One", "end", "start", "path", "filePath", "_row_id_", "_stage_like", "op"):
        assert old[name] == new[name], name
    assert (old["at"], new["at"]) == (None, "x")


@pytest.mark.thorough
def test_keys_of_every_supported_type(project: Project) -> None:
    values = {
        "string": ("", "NULL"),
        "int": (-1, 0),
        "date": (date(1, 1, 1), date(2024, 1, 1)),
        "timestamp": (day(1), day(2)),
        "decimal(38,10)": (Decimal("0.0000000001"), Decimal(2)),
        "boolean": (True, False),
        "binary": (b"", b"\x00"),
    }
    types = {f"k{place}": type_ for place, type_ in enumerate(values)} | {
        name: type_ for name, type_ in TYPES.items() if name != "id"
    }
    keys = [f"k{place}" for place in range(len(values))]
    rows = []
    for side in (0, 1):
        key = {f"k{place}": pair[side] for place, pair in enumerate(values.values())}
        rows.append({**upsert(1, 0, day(1)), **key})
        rows.append({**earliest(2, 0, day(2)), **key})
        rows.append({**update(2, 0, day(2)), **key})
    project.history("h", stage(project, "staged", rows, types), key=keys)

    run = project.run("h")

    assert run.message("h") == "2 batches: 4 added, 2 closed, 0 removed, 0 skipped, 0 replayed"


@pytest.mark.thorough
def test_equal_keys_with_different_bytes_are_one_key(project: Project) -> None:
    rows = [upsert(1, -0.0, day(1)), earliest(2, 0.0, day(2)), upsert(2, 0.0, day(2))]
    project.history("h", stage(project, "staged", rows, TYPES | {"id": "double"}))

    run = project.run("h")

    assert run.message("h") == "2 batches: 2 added, 1 closed, 0 removed, 0 skipped, 0 replayed"


@pytest.mark.thorough
def test_a_table_of_200_columns(project: Project) -> None:
    wide = {f"c{number}": "string" for number in range(200)}
    names = list(wide)
    first = {**upsert(1, 1, day(1)), **{name: name for name in names}}
    second = {**update(2, 1, day(2), _unmodified=names[1:]), "c0": "new"}
    types = {"id": "bigint", **wide, **TYPES}
    rows = [first, earliest(2, 1, day(2)), second]
    project.history("h", stage(project, "staged", rows, types))

    project.run("h")

    newest = max(project.rows("h"), key=lambda row: row["_fivetran_start"])
    assert newest["c0"] == "new"
    assert all(newest[name] == name for name in names[1:])


@pytest.mark.parametrize(
    ("zone", "ansi"), [("America/St_Johns", "true"), thorough("Asia/Tokyo", "false")]
)
def test_any_session_time_zone_and_ansi_mode_gives_the_same_rows(
    project: Project, zone: str, ansi: str
) -> None:
    edge = datetime(2024, 3, 10, 5, 30, 0, 1)
    rows = [upsert(1, 1, day(1)), *new_version(2, 1, edge, "b"), delete(3, 1, day(80))]
    project.history("h", stage(project, "staged", rows), batches_per_commit=None)
    conf = project.spark.conf
    was = {
        name: str(conf.get(name))
        for name in ("spark.sql.session.timeZone", "spark.sql.ansi.enabled")
    }
    try:
        conf.set("spark.sql.session.timeZone", zone)
        conf.set("spark.sql.ansi.enabled", ansi)
        project.run("h")
    finally:
        for name, value in was.items():
            conf.set(name, value)
    assert_table(
        project, "h", version(1, "a", day(1), before(edge)), version(1, "b", edge, day(80))
    )


@pytest.mark.thorough
def test_an_on_time_batch_reads_no_file_of_closed_versions(
    project: Project, warehouse: Path
) -> None:
    rows = [
        upsert(1, 1, day(1)),
        *new_version(2, 1, day(2), "b"),
        *new_version(3, 1, day(3), "c"),
    ]
    project.history("h", stage(project, "staged", rows))
    project.run("h")
    closed = warehouse / f"{project.schema}.db" / "h" / "_fivetran_active=false"
    assert closed.is_dir()
    shutil.rmtree(closed)
    stage(project, "staged", [*rows, *new_version(4, 1, day(9), "d")])

    assert project.run("h").message("h").startswith("1 batch: 1 added, 1 closed")


@pytest.mark.thorough
def test_persisted_docs_and_hooks_work_and_make_no_second_commit(
    project: Project,
) -> None:
    config = {
        "persist_docs": {"relation": True, "columns": True},
        "pre_hook": ["create table if not exists {{ this.schema }}.hooked (x int) using delta"],
        "post_hook": ["insert into {{ this.schema }}.hooked values (1)"],
    }
    project.history("h", stage(project, "staged", [upsert(1, 1, day(1))]), config=config)
    project.write(
        "models/h.yml",
        'models: [{name: h, description: "it\'s one", columns: [{name: V, description: the v}]}]',
    )
    project.run("h")
    commits = len(project.log_of("h"))
    project.run("h")

    detail = project.spark.sql(f"describe detail {project.table('h')}").collect()[0]
    assert detail.description == "it's one"
    assert len(project.log_of("h")) == commits
    assert len(project.rows("hooked")) == 2
    comments = {
        row.col_name: row.comment
        for row in project.spark.sql(f"describe {project.table('h')}").collect()
    }
    assert comments["v"] == "the v"


@pytest.mark.thorough
def test_a_pre_hook_of_the_incremental_strategy_runs_once_and_before_the_select(
    project: Project,
) -> None:
    staged = stage(project, "staged", [upsert(1, 1, day(1), "a")])
    project.spark.sql(f"create schema if not exists {project.schema}")
    project.spark.sql(f"create table {project.table('hooked')} (x int) using delta")
    project.write("macros/shim.sql", blocks(page("docs/incremental_strategy.md"), "sql")[1])
    project.model(
        "h",
        "select * from feed",
        materialized="incremental",
        incremental_strategy="history_batch",
        file_format="delta",
        unique_key="id",
        meta={"history": "fivetran"},
        pre_hook=[
            f"create or replace temporary view feed as {staged}",
            "insert into {{ this.schema }}.hooked values (1)",
        ],
    )
    for runs in (1, 2):
        project.run("h")
        assert_table(project, "h", version(1, "a", day(1)))
        assert len(project.rows("hooked")) == runs


@pytest.mark.thorough
def test_times_outside_the_years_1_to_9999_are_supported(project: Project) -> None:
    def versions(type_: str) -> str:
        def point(text: str) -> str:
            return f"{type_}'{text}{' 00:00:00 UTC' if type_ == 'timestamp' else ''}'"

        periods = [("-0044-03-15", "-0030-01-01"), ("-0030-01-01", "0014-08-19"),
                   ("+12000-01-01", "+12001-01-01")]  # fmt: skip
        return " union all ".join(
            f"select 'upsert' as _stage, 1L as id, {place} as v,"
            f" {point(start)} as valid_from, {point(end)} as valid_to"
            for place, (start, end) in enumerate(periods)
        )

    for type_ in ("timestamp", "date"):
        project.history(f"{type_}s", versions(type_), convention="validity", type=type_)
    project.run("timestamps", "dates")

    again = project.run("timestamps", "dates")

    for name in ("timestamps", "dates"):
        nothing = "1 batch: 0 added, 0 closed, 0 removed, 0 skipped, 0 replayed"
        assert again.message(name) == nothing
        found = project.spark.sql(
            f"select v, year(valid_from), year(valid_to) from {project.table(name)} order by v"
        )
        years = [(0, -44, -30), (1, -30, 14), (2, 12000, 12001)]
        assert [tuple(row) for row in found.collect()] == years
