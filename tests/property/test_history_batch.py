"""Random histories: the real materialization against the plain-Python oracle, batch by batch.

`HISTORIES=10000 make test-all ARGS=tests/property` runs more of them.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Collection, Iterator
from dataclasses import replace
from datetime import date, datetime, timedelta
from itertools import product
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.oracle.convention import CONVENTIONS, VALIDITY, Convention
from tests.oracle.equal_versions import with_runs
from tests.oracle.history_batch import UpdateWithoutBase, apply_batch
from tests.oracle.periods import doubled, visible
from tests.oracle.random_histories import (
    DATA_COLUMNS,
    KEY,
    History,
    Profile,
    event_stream,
    merge,
    plain_batches,
    plain_events,
    random_history,
    sent_again_history,
    split,
    tag,
    truth,
)
from tests.support.project import Project
from tests.support.selection import IS_ALL, thorough
from tests.support.tables import (
    BOOKKEEPING,
    assert_same_rows,
    column_types,
    data_frame,
    settings,
)

HISTORIES = int(os.environ.get("HISTORIES", "320"))
BATCHES = 4
LATE = int(os.environ.get("LATE", "8"))
RUNS = int(os.environ.get("RUNS", "12" if IS_ALL else "3"))
JOINED = int(os.environ.get("JOINED", "12" if IS_ALL else "6"))
ALL_CONVENTIONS = {
    **CONVENTIONS,
    "validity_maximum": replace(VALIDITY, open_end=datetime(9999, 12, 31)),
    "bigint_maximum": replace(CONVENTIONS["validity_bigint"], open_end=2147483647),
    "days": replace(
        VALIDITY, type="date", open_end=date(9999, 12, 31), gap=timedelta(days=1)
    ),
    "own_flag": Convention(
        start="from", end="until-When", active="is-current", type="timestamp",
        open_end=datetime(2999, 12, 31), gap=timedelta(seconds=1), version_id="from",
    ),
}  # fmt: skip
PROFILES: tuple[Profile, ...] = ("wild", "well_formed")


def many(
    convention: Convention, profile: Profile, seed: int, number: int, late_events: bool = False
) -> History:
    """`number` histories in one table, each with its own keys."""
    histories = [
        tag(
            random_history(seed + i, convention, profile, batches=BATCHES, late_events=late_events),
            i,
        )
        for i in range(number)
    ]
    return merge(histories)


def staged_rows(history: History) -> Iterator[dict[str, Any]]:
    for number, batch in enumerate(history.batches, 1):
        for row in batch:
            yield {**row, "_batch": number}


def write_table(
    history: History, project: Project, spark: SparkSession, name: str = "history"
) -> None:
    """The table before the first batch, and the view `staged_histories` of all batches."""
    convention = history.convention
    columns = (*KEY, *DATA_COLUMNS, *convention.columns())
    types = column_types(columns, convention) | {"amount": "bigint"}
    spark.sql(f"create schema if not exists {project.schema}")
    if history.initial:
        initial = data_frame(spark, history.initial, types)
        initial.write.format("delta").saveAsTable(project.table(name))
    staged = data_frame(spark, staged_rows(history), {**BOOKKEEPING, **types})
    staged.createOrReplaceTempView("staged_histories")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "profile", "batches_per_commit"), [*product(ALL_CONVENTIONS, PROFILES, [1, None])]
)
def test_random_histories_agree_with_the_oracle(
    name: str,
    profile: Profile,
    batches_per_commit: int | None,
    project: Project,
    spark: SparkSession,
) -> None:
    convention = ALL_CONVENTIONS[name]
    number = max(1, HISTORIES // (len(ALL_CONVENTIONS) * len(PROFILES)))
    history = many(convention, profile, seed=hash_of(name), number=number)
    columns = (*KEY, *DATA_COLUMNS, *convention.columns())
    write_table(history, project, spark)
    project.history(
        "history",
        "select * from staged_histories",
        key=KEY,
        max_deleted_share=None,
        batches_per_commit=batches_per_commit,
        **settings(convention),
    )

    run = project.run("history")

    table = history.initial
    skipped = 0
    for batch in history.batches:
        result = apply_batch(table, batch, KEY, convention)
        table, skipped = result.table, skipped + result.skipped
    stored = project.rows("history")
    assert_same_rows(stored, table, columns, what=f"seed {hash_of(name)}")
    assert doubled(stored, KEY, convention) == []
    # The oracle counts repeated rows once, the merge each of them.
    counted = int(run.message("history").split(" skipped")[0].rsplit(" ", 1)[1])
    assert skipped <= counted <= skipped + repeated_rows(history)


@pytest.mark.parametrize(
    ("name", "profile", "update_without_base"),
    [
        ("fivetran", "wild", "skip"),
        thorough("fivetran", "well_formed", "insert"),
        thorough("validity", "wild", "insert"),
        thorough("days", "well_formed", "skip"),
        thorough("naksha", "wild", "skip"),
        thorough("naksha", "well_formed", "insert"),
        thorough("own_flag", "well_formed", "skip"),
        thorough("own_flag", "wild", "insert"),
    ],
)
def test_several_batches_in_one_commit_give_the_table_of_one_by_one(
    name: str,
    profile: Profile,
    update_without_base: UpdateWithoutBase,
    project: Project,
    spark: SparkSession,
) -> None:
    convention = ALL_CONVENTIONS[name]
    seed = hash_of(name) + 50_000
    # The batches of one history after those of another: what is malformed in one cuts the run there
    # and nowhere else.
    histories = [
        tag(random_history(seed + i, convention, profile, keys=2, batches=BATCHES), i)
        for i in range(JOINED)
    ]
    drawn = sum(1 for history in histories for batch in history.batches if batch)
    histories += [tag(sent_again_history(seed + i, convention), JOINED + i) for i in range(JOINED)]
    batches = [batch for history in histories for batch in history.batches if batch]
    history = History(KEY, convention, merge(histories).initial, batches)
    write_table(history, project, spark, "joined")
    project.history(
        "joined",
        "select * from staged_histories",
        key=KEY,
        max_deleted_share=None,
        batches_per_commit=None,
        update_without_base=update_without_base,
        **settings(convention),
    )

    project.run("joined")

    table = history.initial
    for batch in history.batches:
        table = apply_batch(table, batch, KEY, convention, update_without_base).table
    columns = (*KEY, *DATA_COLUMNS, *convention.columns())
    assert_same_rows(project.rows("joined"), table, columns, what=f"seed {seed}")
    records = [json.loads(row["userMetadata"] or "{}") for row in project.log_of("joined")]
    numbers = [record for record in records if "batch" in record]
    assert sum(record.get("batches", 1) for record in numbers) == len(batches)
    firsts = [record.get("first_batch", record["batch"]) for record in numbers]
    assert len([first for first in firsts if first <= drawn]) < drawn
    assert len([first for first in firsts if first > drawn]) <= 1


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["fivetran", "validity"])
def test_any_split_of_a_stream_into_batches_gives_the_same_table(
    name: str, project: Project, spark: SparkSession
) -> None:
    convention = CONVENTIONS[name]
    stream = event_stream(7, convention, keys=4, events=4)
    columns = (*KEY, *DATA_COLUMNS, *convention.columns())
    types = {**BOOKKEEPING, **column_types(columns, convention), "amount": "bigint"}
    splits = [split(stream, seed, convention) for seed in (1, 2)]
    for place, batches in enumerate(splits):
        history = History(KEY, convention, [], batches)
        view = f"staged_split_{place}"
        data_frame(spark, staged_rows(history), types).createOrReplaceTempView(view)
        project.history(
            f"split_{place}",
            f"select * from {view}",
            key=KEY,
            max_deleted_share=None,
            batches_per_commit=None,
            **settings(convention),
        )

    project.run("split_0", "split_1")

    expected = truth(stream, convention)
    for place in range(len(splits)):
        assert_same_rows(project.rows(f"split_{place}"), expected, columns, f"split {place}")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "batches_per_commit"),
    [
        ("validity", 1),
        *((name, None) for name in ("fivetran", "validity", "days", "own_flag", "bigint_maximum")),
    ],
)
def test_late_events_agree_with_the_oracle(
    name: str, batches_per_commit: int | None, project: Project, spark: SparkSession
) -> None:
    convention = ALL_CONVENTIONS[name]
    seed = hash_of(name) + 70_000
    wild = many(convention, "wild", seed, LATE, late_events=True)
    plain = [tag(plain_history(seed + i, convention), LATE + i) for i in range(LATE)]
    history = merge([wild, *plain])
    table = "one_by_one" if batches_per_commit else "joined"
    write_table(history, project, spark, table)
    project.history(
        table,
        "select * from staged_histories",
        key=KEY,
        max_deleted_share=None,
        batches_per_commit=batches_per_commit,
        late_events=True,
        **settings(convention),
    )

    project.run(table)

    expected = history.initial
    for batch in history.batches:
        expected = apply_batch(expected, batch, KEY, convention, late_events=True).table
    columns = (*KEY, *DATA_COLUMNS, *convention.columns())
    stored = project.rows(table)
    assert_same_rows(stored, expected, columns, what=f"seed {seed}")
    assert doubled(stored, KEY, convention) == []


@pytest.mark.parametrize(
    ("name", "options", "batches_per_commit"),
    [
        thorough("validity", {"track_columns": ["name"]}, None),
        thorough("fivetran", {"track_columns": ["name"]}, 1),
        thorough("validity", {"merge_equal": True}, 1),
        *(
            thorough(name, {"except": ["amount", "note"]}, None)
            for name in ("fivetran", "days", "own_flag", "bigint_maximum")
        ),
    ],
)
def test_runs_of_equal_versions_do_not_depend_on_the_order_of_arrival(
    name: str,
    options: dict[str, Any],
    batches_per_commit: int | None,
    project: Project,
    spark: SparkSession,
) -> None:
    """The rows are those of the changes in order, joined to runs; repeats are compared, too."""
    convention = ALL_CONVENTIONS[name]
    seed = hash_of(name) + 90_000
    tracked = DATA_COLUMNS if "merge_equal" in options else ("name",)
    plain = [tag(few_values(plain_history(seed + i, convention), tracked), i) for i in range(RUNS)]
    history = merge(plain)
    write_table(history, project, spark)
    table = "joined_runs"
    project.history(
        table,
        "select * from staged_histories"
        f" {{{{ dbt_history._plain_events_comment({row_options(options)!r}) }}}}",
        key=KEY,
        max_deleted_share=None,
        batches_per_commit=batches_per_commit,
        **settings(convention),
    )

    project.run(table)

    expected = history.initial
    for batch in history.batches:
        expected = apply_batch(expected, batch, KEY, convention, late_events=True).table
    changes, expected = expected, with_runs(expected, KEY, convention, tracked)
    assert len(visible(expected, convention)) < len(visible(changes, convention))
    columns = (*KEY, *DATA_COLUMNS, *convention.columns())
    assert_same_rows(project.rows(table), expected, columns, what=f"seed {seed}")


def few_values(history: History, tracked: Collection[str]) -> History:
    """The history with two values in each tracked column, so that many versions are equal."""

    def few(row: dict[str, Any]) -> dict[str, Any]:
        return row | {
            name: (len(repr(row[name])) % 2 if name == "amount" else "ab"[len(repr(row[name])) % 2])
            for name in tracked
            if row.get(name) is not None
        }

    batches = [[few(row) for row in batch] for batch in history.batches]
    return History(history.key, history.convention, history.initial, batches)


def row_options(options: dict[str, Any]) -> dict[str, Any]:
    """What `batch_rows` writes into its SQL for these arguments."""
    tracked = {"columns": options.get("track_columns"), "omitted": options.get("except", [])}
    return {"tracked": tracked, "fills": False}


def plain_history(seed: int, convention: Convention) -> History:
    """Upserts and deletes in any order, in batches; every second one deletes by events."""
    stream = plain_events(seed, convention)
    batches = plain_batches(stream, seed, convention, as_events=seed % 2 == 0)
    return History(KEY, convention, [], batches)


def repeated_rows(history: History) -> int:
    """The number of staged rows that are equal to another one of their batch."""
    return sum(len(batch) - len({repr(row) for row in batch}) for batch in history.batches)


def hash_of(name: str) -> int:
    """A seed that is the same in every run."""
    return zlib.crc32(name.encode()) % 100_000
