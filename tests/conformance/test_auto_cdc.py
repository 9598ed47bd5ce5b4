"""The cases of SCD type 2 of Spark's own tests of AUTO CDC, played through `batch_rows`.

Their names are those of `Scd2ForeachBatchHandlerSuite` (org.apache.spark.sql.pipelines.autocdc),
their random streams those of `AutoCdcOutOfOrderConvergenceSuite`. AUTO CDC joins equal neighbours
always, so `merge_equal` is on. What is not here has no counterpart: a crash between the merges of
its two tables (here there is one commit, see tests/functional/test_exactly_once.py), the rows of
its second table, and `spark.sql.caseSensitive`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import groupby, zip_longest
from typing import Any, NamedTuple

import pytest

from tests.support.project import Project
from tests.support.tables import data_frame

CONVENTION = {"convention": "validity", "type": "bigint"}
COLUMNS = {
    "_change_type": "string", "_commit_version": "bigint", "_commit_timestamp": "timestamp",
    "case": "bigint", "id": "string", "value": "string", "score": "bigint", "seq": "bigint",
    "is_delete": "boolean",
}  # fmt: skip


class Event(NamedTuple):
    id: str
    seq: int | None
    value: str | None
    score: int | None
    is_delete: bool


def upsert(value: str | None, seq: int | None, id_: Any = 1, score: int | None = None) -> Event:
    return Event(str(id_), seq, value, score, False)


def delete(seq: int, id_: Any = 1) -> Event:
    return Event(str(id_), seq, None, None, True)


class Case(NamedTuple):
    """Microbatches, and the versions that readers see: (value, start, end, id, score)."""

    name: str
    batches: list[list[Event]]
    versions: list[tuple[Any, ...]]


def version(
    value: str | None, start: int, end: int | None = None, id_: Any = 1, score: int | None = None
) -> tuple[Any, ...]:
    return (str(id_), value, score, start, end)


A10 = [upsert("a", 10)]
ALICE = [upsert("Alice", seq) for seq in (5, 10, 15)]
CASES = [
    Case("an empty microbatch with both tables non-empty leaves both unchanged",
        [A10, []],
        [version("a", 10)]),
    Case("inserting a new key creates an open current record",
        [A10],
        [version("a", 10)]),
    Case("two updates to a key in one batch produce a closed record followed by the open record",
        [[upsert("a", 10), upsert("b", 20)]],
        [version("a", 10, 20), version("b", 20)]),
    Case("an insert and a later delete in the same batch leave a single closed record",
        [[upsert("a", 10), delete(20)]],
        [version("a", 10, 20)]),
    Case("an insert, update, delete, and re-insert for one key in a batch build the full history",
        [[upsert("a", 10), upsert("b", 20), delete(30), upsert("c", 40)]],
        [version("a", 10, 20), version("b", 20, 30), version("c", 40)]),
    Case("repeating a key's value keeps one current record effective from its first occurrence",
        [[upsert("a", 10), upsert("a", 20)]],
        [version("a", 10)]),
    Case("deleting a key that has no current record leaves the dimension table empty",
        [[delete(5)]],
        []),
    Case("updating an existing key closes its current record and opens a new one",
        [A10, [upsert("b", 20)]],
        [version("a", 10, 20), version("b", 20)]),
    Case("deleting an existing key closes its current record with no open record remaining",
        [A10, [delete(20)]],
        [version("a", 10, 20)]),
    Case("an update preserves already-closed historical records",
        [[upsert("a", 5), upsert("b", 10)], [upsert("c", 20)]],
        [version("a", 5, 10), version("b", 10, 20), version("c", 20)]),
    Case("a late event older than all existing history is inserted as the earliest record",
        [A10, [upsert("b", 5)]],
        [version("b", 5, 10), version("a", 10)]),
    Case("a late update landing inside an existing record splits it around the new value",
        [[upsert("a", 10), upsert("c", 20)], [upsert("b", 15)]],
        [version("a", 10, 15), version("b", 15, 20), version("c", 20)]),
    Case("a late delete landing inside an existing record shortens it to end at the deletion",
        [[upsert("a", 10), upsert("b", 30)], [delete(20)]],
        [version("a", 10, 20), version("b", 30)]),
    Case("a late delete bisecting a trailing closed record promotes the surviving tail to a "
        "tombstone",
        [[upsert("a", 10), delete(20)], [delete(15)], [upsert("b", 17)]],
        [version("a", 10, 15), version("b", 17, 20)]),
    Case("a late delete bisecting a trailing closed record is replay-stable",
        [[upsert("a", 10), delete(20)], [delete(15)], [delete(15)]],
        [version("a", 10, 15)]),
    Case("two late events in one batch each bisect a distinct closed target row",
        [
            [upsert(value, seq) for value, seq in (("a", 1), ("b", 5), ("c", 10), ("d", 20))],
            [upsert("x", 7), upsert("y", 15)],
        ],
        [
            version("a", 1, 5), version("b", 5, 7), version("x", 7, 10), version("c", 10, 15),
            version("y", 15, 20), version("d", 20),
        ]),
    Case("re-inserting a key after it was deleted opens a new current record",
        [[delete(20)], [upsert("x", 30)]],
        [version("x", 30)]),
    Case("a value repeated across batches stays one record until a later change closes it",
        [A10, [upsert("a", 20)], [upsert("b", 30)]],
        [version("a", 10, 30), version("b", 30)]),
    Case("a late event arriving within an unchanged period splits the surrounding history",
        [ALICE, [upsert("Charlie", 20)], [upsert("Bob", 12)]],
        [
            version("Alice", 5, 12), version("Bob", 12, 15), version("Alice", 15, 20),
            version("Charlie", 20),
        ]),
    Case("reprocessing an update microbatch leaves both tables unchanged",
        [A10, [upsert("b", 20)], [upsert("b", 20)]],
        [version("a", 10, 20), version("b", 20)]),
    Case("reprocessing a delete microbatch leaves both tables unchanged",
        [A10, [delete(20)], [delete(20)]],
        [version("a", 10, 20)]),
    Case("reprocessing a microbatch of repeated values leaves both tables unchanged",
        [[upsert("a", seq) for seq in (10, 20, 30)]] * 2,
        [version("a", 10)]),
    Case("reprocessing a delete of an unknown key leaves both tables unchanged",
        [[delete(5)], [delete(5)]],
        []),
    Case("the auxiliary merge's own writes do not duplicate the rows the target merge reads",
        [[upsert("a", 5), upsert("a", 10), upsert("b", 20)], [upsert("a", 15)]],
        [version("a", 5, 20), version("b", 20)]),
    Case("a demoted row's two copies reconcile even when they disagree on where the run starts",
        [[upsert("a", 10), upsert("b", 20)], [upsert("a", 5), upsert("a", 15)]],
        [version("a", 5, 20), version("b", 20)]),
    Case("duplicate events at the same key and sequence in one microbatch collapse to one record",
        [[upsert("a", 10), upsert("a", 10)]],
        [version("a", 10)]),
    Case("an upsert and a delete at the same sequence resolve in favor of the delete",
        [[upsert("a", 10), delete(10)]],
        []),
    Case("redelivering the same event in a later microbatch leaves both tables unchanged",
        [A10, A10],
        [version("a", 10)]),
    # Their tests accept either value; here the event that arrived last counts.
    Case("a later microbatch event sharing key and sequence but differing in value is absorbed",
        [A10, [upsert("b", 10)]],
        [version("b", 10)]),
    Case("a late event predating a recorded deletion becomes a record ending at the deletion",
        [[delete(20)], [upsert("x", 10)]],
        [version("x", 10, 20)]),
    Case("a logically-deleted tombstone is physically garbage-collected by a later unrelated batch",
        [[delete(20)], [upsert("x", 10)], [upsert("y", 30, 2)]],
        [version("x", 10, 20), version("y", 30, None, 2)]),
    Case("updates, deletes, and inserts for different keys in one batch reconcile independently",
        [
            [upsert("a", 10), upsert("p", 10, 2)],
            [upsert("b", 20), delete(20, 2), upsert("z", 20, 3)],
        ],
        [
            version("a", 10, 20), version("b", 20), version("p", 10, 20, 2),
            version("z", 20, None, 3),
        ]),
    Case("an event after a deletion leaves the run the deletion closed exactly as it was",
        [[upsert("a", 10), upsert("a", 11)], [delete(12)], [upsert("b", 20)]],
        [version("a", 10, 12), version("b", 20)]),
    Case("multiple new keys in one batch each build their own history independently",
        [[upsert("a", 10), upsert("p", 10, 2), upsert("b", 20), upsert("p", 20, 2)]],
        [version("a", 10, 20), version("b", 20), version("p", 10, None, 2)]),
    # The key of all these cases is composite: the case, and the id within it.
    Case("a composite key distinguishes rows that share a single key component",
        [[upsert("100", 10, "US"), upsert("200", 10, "CA"), upsert("150", 20, "US")]],
        [
            version("100", 10, 20, "US"), version("150", 20, None, "US"),
            version("200", 10, None, "CA"),
        ]),
]  # fmt: skip
TRACKED = [
    Case("a closed run of untracked-only changes is one record holding the last event's values",
        [
            [upsert("alice", 39, score=39)], [upsert("alice", 41, score=41)],
            [upsert("bob", 42, score=42)], [upsert("carol", 43, score=43)],
        ],
        [
            version("alice", 39, 42, score=41), version("bob", 42, 43, score=42),
            version("carol", 43, score=43),
        ]),
    Case("changing only an untracked column updates the current record without adding history",
        [
            [upsert("alice", 10, score=100), upsert("alice", 20, score=200)],
            [upsert("alice", 30, score=300)],
        ],
        [version("alice", 10, score=300)]),
    Case("changing a tracked column opens a new historical record",
        [
            [upsert("alice", 10, score=100), upsert("bob", 20, score=100)],
            [upsert("carol", 30, score=100)],
        ],
        [
            version("alice", 10, 20, score=100), version("bob", 20, 30, score=100),
            version("carol", 30, score=100),
        ]),
]  # fmt: skip


def write_model(project: Project, name: str, feed: str, options: str) -> None:
    """A history of the events in the view `feed`; its key is written in capitals."""
    rows = (
        f"dbt_history.batch_rows('{feed}', ['CASE', 'ID'], {CONVENTION}, at='seq',"
        f" delete_when='is_delete', {options})"
    )
    project.history(
        name, f"select * except (seq, is_delete) from {{{{ {rows} }}}}", key=["case", "id"],
        batches_per_commit=None, **CONVENTION,
    )  # fmt: skip


def arrive(project: Project, feed: str, events: list[tuple[int, Event]]) -> None:
    """Let events arrive: (number of the case, event)."""
    rows = [
        {"_change_type": "insert", "_commit_version": 1, "case": case, **event._asdict()}
        for case, event in events
    ]
    data_frame(project.spark, rows, COLUMNS).createOrReplaceTempView(feed)


def versions_by_case(project: Project, name: str) -> dict[int, list[tuple[Any, ...]]]:
    """What readers see of each case, in the order of starts."""
    rows = project.spark.sql(
        f"select `case`, id, value, score, valid_from, valid_to from {project.table(name)}"
        " where valid_from < valid_to or valid_to is null order by `case`, id, valid_from"
    ).collect()
    return {
        case: [tuple(row)[1:] for row in found]
        for case, found in groupby(rows, key=lambda row: row[0])
    }


def microbatches(cases: list[Case]) -> Iterator[list[tuple[int, Event]]]:
    """The first microbatches of all cases together, then the second ones, and so on."""
    for batches in zip_longest(*(case.batches for case in cases), fillvalue=[]):
        yield [(number, event) for number, batch in enumerate(batches) for event in batch]


def test_named_cases_end_in_their_versions(project: Project) -> None:
    """One table holds all cases: each has keys of its own. Table `tracked` tracks one column."""
    played = {
        "everything": ("merge_equal=true", CASES),
        "tracked": ("track_columns='value'", TRACKED),
    }
    for name, (options, _) in played.items():
        write_model(project, name, f"feed_{name}", options)
    steps = zip_longest(*(microbatches(cases) for _, cases in played.values()), fillvalue=[])
    for arrivals in steps:
        arrived = {name: events for name, events in zip(played, arrivals, strict=True) if events}
        for name, events in arrived.items():
            arrive(project, f"feed_{name}", events)
        project.run(*arrived)

    for name, (_, cases) in played.items():
        stored = versions_by_case(project, name)
        found = {case.name: stored.get(number, []) for number, case in enumerate(cases)}
        assert found == {case.name: sorted(case.versions, key=in_order) for case in cases}


def in_order(row: tuple[Any, ...]) -> tuple[str, int]:
    return row[0], row[3]


@pytest.mark.thorough
def test_an_event_without_a_key_or_a_sequence_fails_its_microbatch(project: Project) -> None:
    """An empty first microbatch makes an empty table."""
    write_model(project, "h", "feed", "merge_equal=true")
    arrive(project, "feed", [])
    project.run("h")
    assert project.rows("h") == []
    arrive(project, "feed", [(1, event) for event in A10])
    project.run("h")
    before = project.log_of("h")

    arrive(project, "feed", [(1, upsert("bad", None)), (1, Event(None, 30, "bad", None, False))])  # type: ignore[arg-type]
    run = project.run("h", check=False)

    assert not run.success
    assert "valid_from is NULL" in run.log
    assert "a key column is NULL" in run.log
    assert project.log_of("h") == before


@pytest.mark.thorough
@pytest.mark.parametrize("is_joined", [False, True])
def test_random_streams_converge_in_any_order(project: Project, is_joined: bool) -> None:
    """Six streams of five keys with up to 80 events each, a fifth of them deletions.

    15 % of the events arrive twice. In AUTO CDC's suite the sequence is a column of the table, so
    that no two versions are equal; with `is_joined` it is not.
    """
    events = [
        (stream, event) for stream in range(6) for event in random_stream(random.Random(stream))
    ]
    shuffled = random.Random(99).sample(events, len(events))
    tables = {"in_order": [events], "shuffled": [shuffled[place::8] for place in range(8)]}
    for name, batches in tables.items():
        write_model(project, name, f"feed_{name}", "merge_equal=true")
        for batch in batches:
            arrive(project, f"feed_{name}", [
                (stream, event if is_joined else event._replace(score=event.seq))
                for stream, event in batch
            ])  # fmt: skip
            project.run(name)

    found = {name: versions_by_case(project, name) for name in tables}
    assert found["in_order"] == found["shuffled"]
    assert sorted(found["in_order"]) == list(range(6))
    expected = dict(enumerate(versions_of(stream, events, is_joined) for stream in range(6)))
    assert found["in_order"] == expected


def random_stream(source: random.Random) -> Iterator[Event]:
    sequence = 0
    for key in range(5):
        for _ in range(source.randint(1, 80)):
            value = source.choice(["red", "blue", "green", "yellow", None])
            event = delete(sequence, key) if source.random() < 0.2 else upsert(value, sequence, key)
            sequence += 1
            yield event
            if source.random() < 0.15:
                yield event


def versions_of(
    stream: int, events: list[tuple[int, Event]], is_joined: bool
) -> list[tuple[Any, ...]]:
    """The versions of a stream, from its events in their order."""
    versions: list[list[Any]] = []
    for _, event in sorted({found for found in events if found[0] == stream}, key=by_sequence):
        last = versions[-1] if versions else None
        is_open = last is not None and last[0] == event.id and last[4] is None
        if last and is_open and event.is_delete:
            last[4] = event.seq
        if event.is_delete or (last and is_open and is_joined and last[1] == event.value):
            continue
        if last and is_open:
            last[4] = event.seq
        score = None if is_joined else event.seq
        versions.append([event.id, event.value, score, event.seq, None])
    return [tuple(row) for row in versions]


def by_sequence(found: tuple[int, Event]) -> tuple[str, int]:
    assert found[1].seq is not None
    return found[1].id, found[1].seq
