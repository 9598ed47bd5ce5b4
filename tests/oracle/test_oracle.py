"""The oracle on the conformance cases, and its properties on random histories."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from .cases import Case, find_cases, read_cases
from .convention import CONVENTIONS, FIVETRAN, NAKSHA, VALIDITY, Convention, Row
from .history_batch import (
    BadBatchError,
    DuplicateVersionError,
    Result,
    UpdateWithoutBase,
    UpdateWithoutBaseError,
    apply_batch,
    least_time,
    rows_by_key,
    validate,
)
from .periods import doubled, period_of, visible
from .random_histories import (
    KEY,
    Batch,
    Event,
    History,
    Profile,
    event_stream,
    is_beyond,
    is_in_order,
    merge,
    plain_batches,
    plain_events,
    random_history,
    sent_again_history,
    split,
    tag,
    truth,
)

SEEDS = range(60)
CASES = read_cases(find_cases(Path(__file__).resolve().parents[2]))
ALL_CONVENTIONS = {
    **CONVENTIONS,
    "validity_maximum": replace(VALIDITY, open_end=datetime(9999, 12, 31)),
    "validity_date": replace(VALIDITY, type="date"),
    "closed_bigint": replace(VALIDITY, type="bigint", open_end=2147483647, gap=1),
    "naksha_gap": replace(NAKSHA, gap=1),
}
every_convention = pytest.mark.parametrize(
    "convention", ALL_CONVENTIONS.values(), ids=ALL_CONVENTIONS.keys()
)
every_profile = pytest.mark.parametrize("profile", ["well_formed", "wild"])


def as_set(table: Sequence[Row]) -> Counter[str]:
    """Rows without order; 1 and True, 0.0 and 0 are kept apart."""
    return Counter(repr(sorted(row.items())) for row in table)


def last_table(history: History) -> list[Row]:
    """The table after all batches."""
    table = history.initial
    for batch in history.batches:
        table = apply_batch(table, batch, history.key, history.convention).table
    return table


def steps(
    history: History, option: UpdateWithoutBase = "skip"
) -> Iterator[tuple[list[Row], Batch, Result]]:
    """Each batch with the table before it and the oracle's result."""
    table = history.initial
    for batch in history.batches:
        result = apply_batch(table, batch, history.key, history.convention, option)
        yield table, batch, result
        table = result.table


def ended_before(batch: Batch, table: list[Row], convention: Convention) -> list[Row]:
    """The rows that the MERGE does not read: ended before the batch's least time - gap."""
    least = least_time(batch, convention)
    ends = [(row, row[convention.end]) for row in table]
    return [
        row
        for row, end in ends
        if least is None or not (convention.is_endless(end) or end >= least - convention.gap)
    ]


def apply_to_recent(
    table: list[Row], batch: Batch, history: History, option: UpdateWithoutBase = "skip"
) -> Result:
    """Apply a batch without the table's rows that ended before it; add those afterwards."""
    ended = ended_before(batch, table, history.convention)
    recent = [row for row in table if row not in ended]
    result = apply_batch(recent, batch, history.key, history.convention, option)
    return replace(result, table=[*ended, *result.table])


def same(one: Result, other: Result) -> bool:
    """Same tables as sets, same counts."""
    tables = as_set(one.table) == as_set(other.table)
    return tables and replace(one, table=[]) == replace(other, table=[])


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_case_ends_in_its_expected_table(case: Case) -> None:
    table = case.initial
    for batch in case.batches:
        table = apply_batch(table, batch, case.key, FIVETRAN).table
    assert as_set(table) == as_set(case.expected)


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_case_does_not_depend_on_the_order_of_rows_in_table_and_batch(
    case: Case,
) -> None:
    table = case.initial[::-1]
    for batch in case.batches:
        table = apply_batch(table, batch[::-1], case.key, FIVETRAN).table
    assert as_set(table) == as_set(case.expected)


def test_at_least_33_cases_are_read() -> None:
    assert len(CASES) >= 33


@every_convention
@pytest.mark.parametrize("late", [False, True], ids=["in_time", "late"])
def test_any_split_of_a_stream_gives_the_table_of_the_stream(
    convention: Convention, late: bool
) -> None:
    for seed in SEEDS:
        stream = event_stream(seed, convention, late=late)
        expected = as_set(truth(stream, convention))
        for number in range(4):
            batches = split(stream, 10 * seed + number, convention)
            history = History(("region", "id"), convention, [], batches)
            assert as_set(last_table(history)) == expected, (seed, number)


@every_convention
@every_profile
@pytest.mark.parametrize("option", ["skip", "insert"])
def test_versions_that_ended_before_a_batch_do_not_affect_it(
    convention: Convention, profile: Profile, option: UpdateWithoutBase
) -> None:
    pruned = 0
    for seed in SEEDS:
        history = random_history(seed, convention, profile, update_without_base=option)
        for number, (table, batch, result) in enumerate(steps(history, option), start=1):
            assert same(apply_to_recent(table, batch, history, option), result), (
                seed,
                number,
            )
            pruned += bool(batch and ended_before(batch, table, convention))
    assert pruned > len(SEEDS) / 2


@every_convention
def test_pruning_is_correct_on_every_table_in_order(convention: Convention) -> None:
    in_order: Counter[bool] = Counter()
    for seed in SEEDS:
        history = random_history(seed, convention, in_order=False)
        for number, (table, batch, result) in enumerate(steps(history), start=1):
            in_order[is_in_order(table, history.key, convention)] += 1
            pruned = apply_to_recent(table, batch, history)
            assert same(pruned, result) or not is_in_order(table, history.key, convention), (
                seed,
                number,
            )
    assert min(in_order[True], in_order[False]) > 5


@every_convention
@every_profile
@pytest.mark.parametrize("option", ["skip", "insert"])
def test_a_batch_applied_again_changes_nothing(
    convention: Convention, profile: Profile, option: UpdateWithoutBase
) -> None:
    for seed in SEEDS:
        history = random_history(seed, convention, profile, update_without_base=option)
        for number, (_, batch, result) in enumerate(steps(history, option), start=1):
            if any(contradicts_itself(row, convention) for row in batch):
                continue
            again = apply_batch(result.table, batch, history.key, convention, option)
            before, after = (one_open_end(each.table, convention) for each in (result, again))
            assert as_set(after) == as_set(before), (seed, number)
            assert again.skipped == result.skipped
            if as_set(again.table) == as_set(result.table):
                assert same(replace(result, added=0, closed=0, replaced=0, removed=0), again)


def contradicts_itself(row: Row, convention: Convention) -> bool:
    """Whether an update or upsert row is active and has a finite end.

    Validation accepts it, but as a base it is "open" with a finite end: an update in the same
    batch that keeps the end uses that one; a replay finds its own version, closed since, and uses
    the open end.
    """
    if convention.active is None or row["_stage"] in ("earliest_start", "delete"):
        return False
    kept = row["_unmodified"] or []
    goes_on = convention.active in kept or row[convention.active] is True
    return goes_on and convention.end not in kept and not is_beyond(row[convention.end], convention)


def one_open_end(table: list[Row], convention: Convention) -> list[Row]:
    """The table with one value for all endless ends.

    If a table has other open ends than the convention's, a replay may replace one by the other: see
    `test_a_replay_may_replace_another_open_end_by_the_conventions`.
    """
    return [
        {**row, convention.end: "open"} if is_beyond(row[convention.end], convention) else row
        for row in table
    ]


@every_convention
@every_profile
def test_a_random_history_is_valid_and_stays_in_order(
    convention: Convention, profile: Profile
) -> None:
    for seed in SEEDS:
        history = random_history(seed, convention, profile)
        assert is_in_order(history.initial, history.key, convention)
        for _, batch, result in steps(history):
            assert validate(batch, history.key, convention) == []
            assert is_in_order(result.table, history.key, convention)
            identities = [
                (*(row[name] for name in history.key), *convention.identity(row))
                for row in result.table
            ]
            assert len(set(identities)) == len(identities)


@every_convention
@pytest.mark.parametrize("option", ["skip", "insert"])
def test_no_batch_makes_versions_of_a_key_overlap(
    convention: Convention, option: UpdateWithoutBase
) -> None:
    for seed in SEEDS:
        history = random_history(seed, convention, update_without_base=option)
        assert doubled(history.initial, history.key, convention) == []
        for _, _, result in steps(history, option):
            assert doubled(result.table, history.key, convention) == [], seed


@every_convention
@every_profile
def test_counts_add_up_to_the_rows_of_the_table(convention: Convention, profile: Profile) -> None:
    for seed in SEEDS:
        for table, _, result in steps(random_history(seed, convention, profile)):
            assert len(result.table) == len(table) + result.added - result.removed
            unchanged = as_set(table) & as_set(result.table)
            changed = result.closed + result.replaced + result.removed
            assert unchanged.total() == len(table) - changed


@every_convention
def test_versions_sent_again_are_seldom_the_base_of_the_update(convention: Convention) -> None:
    updates = bases = 0
    for seed in SEEDS:
        history = sent_again_history(seed, convention)
        (_, _, again), (_, batch, result) = steps(history)
        rows = [row for row in batch if row["_stage"] == "update"]
        updates += len(rows)
        bases += len(rows) - result.skipped
        assert again.skipped == 0
        assert is_in_order(result.table, KEY, convention)
    assert 0 < bases < updates / 2


@every_convention
def test_the_order_of_rows_does_not_matter(convention: Convention) -> None:
    for seed in SEEDS:
        rng = random.Random(seed)
        for table, batch, result in steps(random_history(seed, convention)):
            shuffled = rng.sample(table, len(table)), rng.sample(batch, len(batch))
            again = apply_batch(*shuffled, ("region", "id"), convention)
            assert same(again, result), seed


@every_convention
@every_profile
def test_histories_in_one_table_do_not_affect_each_other(
    convention: Convention, profile: Profile
) -> None:
    histories = [tag(random_history(seed, convention, profile), seed) for seed in range(40)]
    expected = [row for history in histories for row in last_table(history)]
    assert as_set(last_table(merge(histories))) == as_set(expected)


@every_convention
def test_a_key_that_is_not_in_the_batch_does_not_change(
    convention: Convention,
) -> None:
    for seed in SEEDS:
        history = random_history(seed, convention)
        for table, batch, result in steps(history):
            named = rows_by_key(batch, history.key)
            before = {k: v for k, v in rows_by_key(table, history.key).items() if k not in named}
            after = rows_by_key(result.table, history.key)
            assert {k: after[k] for k in before} == before


@every_convention
@every_profile
def test_a_seed_always_gives_the_same_history(convention: Convention, profile: Profile) -> None:
    histories = [random_history(7, convention, profile) for _ in range(2)]
    assert repr(histories[0]) == repr(histories[1])
    assert repr(histories[0]) != repr(random_history(8, convention, profile))


@every_profile
@pytest.mark.parametrize("key", [("id",), ("region", "site", "id")], ids=["one", "three"])
def test_keys_may_have_any_number_of_columns(profile: Profile, key: tuple[str, ...]) -> None:
    for seed in range(40):
        history = random_history(seed, FIVETRAN, profile, key=key, keys=6)
        for table, batch, result in steps(history):
            assert all(set(key) <= set(row) for row in result.table)
            assert same(apply_to_recent(table, batch, history), result), seed


@every_convention
def test_wild_histories_contain_every_documented_situation(convention: Convention) -> None:
    seen: Counter[str] = Counter()
    for seed in SEEDS:
        history = random_history(seed, convention)
        seen["empty table"] += not history.initial
        for table, batch, result in steps(history):
            seen.update(situations(table, batch, result, convention))
    expected = {
        "empty table", "skipped", "added", "closed", "replaced", "removed",
        "late", "several stages", "chain", "no earliest row", "earliest row alone",
        "delete alone", "stale delete", "deletion gap", "insert after deletion", "end unmodified",
        "closed row", "open row", "equal identities", "NULL", "empty text", "text NULL",
        "at the gap", "no order", "inside a closed version", "beyond the next start",
    }  # fmt: skip
    if convention.active is not None:
        expected |= {"active NULL", "active unmodified", "other open end"}
    if convention.version_id != convention.start:
        expected.add("equal starts")
    assert {name for name in expected if seen[name] < 3} == set()


def situations(
    table: list[Row], batch: Batch, result: Result, convention: Convention
) -> Iterator[str]:
    """Names of the situations in a step."""
    start, end = convention.start, convention.end
    gap: Any = convention.gap
    yield from (name for name in vars(result) if name != "table" and getattr(result, name))
    stored_by_key = rows_by_key(table, ("region", "id"))
    for key, rows in rows_by_key(batch, ("region", "id")).items():
        stored = stored_by_key.get(key, [])
        stages = Counter(row["_stage"] for row in rows)
        changes = [row for row in rows if row["_stage"] in ("update", "upsert", "replace")]
        earliest = [row[start] for row in rows if row["_stage"] == "earliest_start"]
        deletes = [row[end] for row in rows if row["_stage"] == "delete"]
        times = [row[start] for row in stored]
        ends = [row[end] for row in stored if not convention.is_endless(row[end])]
        closed = [row for row in stored if not convention.is_open(row)]
        if earliest and times and min(earliest) <= max(times):
            yield "late"
        if len(stages) > 2:
            yield "several stages"
        if sum(bool(row["_unmodified"]) for row in changes) > 1:
            yield "chain"
        if changes and not earliest:
            yield "no earliest row"
        if stages.keys() == {"earliest_start"}:
            yield "earliest row alone"
        if stages.keys() == {"delete"}:
            yield "delete alone"
        if any(at < max(times) for at in deletes if times):
            yield "stale delete"
        if ends and len(closed) == len(stored) and any(row[start] > max(ends) for row in changes):
            yield "insert after deletion"
        if any(
            after - gap > before
            for before, after in zip(sorted(ends), sorted(times)[1:], strict=False)
        ):
            yield "deletion gap"
        if any(abs(row[start] - at) in (gap, gap + gap) for row in changes for at in times + ends):
            yield "at the gap"
        slots = Counter((row["_stage"], convention.identity(row)) for row in changes)
        if max(slots.values(), default=0) > 1:
            yield "equal identities"
        if max(Counter(row[start] for row in changes).values(), default=0) > 1:
            yield "equal starts"
        if any(row["_order"] is None for row in rows):
            yield "no order"
        for row in changes:
            kept = row["_unmodified"] or []
            if any(period_of(one, convention).holds(row[start]) for one in closed):
                yield "inside a closed version"
            is_ended = end not in kept and not is_beyond(row[end], convention)
            if is_ended and any(row[start] < at < row[end] for at in times):
                yield "beyond the next start"
            if end in kept:
                yield "end unmodified"
            if convention.active is not None and convention.active in kept:
                yield "active unmodified"
            yield "open row" if convention.is_open(row) else "closed row"
            if convention.is_untouchable(row):
                yield "active NULL"
            if convention.is_open(row) and row[end] != convention.open_end:
                yield "other open end"
            for value, name in (
                (None, "NULL"),
                ("", "empty text"),
                ("NULL", "text NULL"),
            ):
                if row["name"] == value and "name" not in kept:
                    yield name


# tables that are not in order, and on which pruning gives wrong results


def interval(start: int, end: int | None) -> Row:
    """A version with integer validity."""
    return {"id": 1, "valid_from": start, "valid_to": end}


@pytest.mark.parametrize(
    ("table", "batch"),
    [
        # the delete at 60 finds [2, 3), which has ended; pruned, it finds [1, 100)
        ([interval(1, 100), interval(2, 3)], [("delete", 0, 60)]),
        # the latest survivor is [2, 3), which needs no clip; pruned, it is [1, 100)
        ([interval(1, 100), interval(2, 3)], [("earliest_start", 60, None)]),
    ],
)
def test_pruning_is_wrong_where_a_version_outlasts_a_later_one(
    table: list[Row], batch: list[tuple[str, int, int | None]]
) -> None:
    convention = ALL_CONVENTIONS["validity_bigint"]
    rows = [staged(stage, interval(start, end)) for stage, start, end in batch]
    history = History(("id",), convention, table, [rows])
    assert not is_in_order(table, ("id",), convention)
    result = apply_batch(table, rows, ("id",), convention)
    assert not same(apply_to_recent(table, rows, history), result)


def test_pruning_loses_an_active_version_that_has_ended() -> None:
    table = [version(DAY, DAY + HOUR, True)]
    batch = [deletion(DAY + 2 * HOUR)]
    history = History(("id",), FIVETRAN, table, [batch])
    assert not is_in_order(table, ("id",), FIVETRAN)
    pruned = apply_to_recent(table, batch, history)
    assert not same(pruned, apply_batch(table, batch, ("id",), FIVETRAN))


# rules that no conformance case covers

HOUR = timedelta(hours=1)
DAY = datetime(2024, 1, 1)
MILLISECOND = timedelta(milliseconds=1)
MICROSECOND = timedelta(microseconds=1)
TMAX = FIVETRAN.open_end


def version(
    start: datetime,
    end: datetime | None = TMAX,
    active: bool | None = True,
    name: str = "v",
) -> Row:
    """A row of a fivetran table."""
    return {
        "id": 1, "name": name,
        "_fivetran_start": start, "_fivetran_end": end, "_fivetran_active": active,
    }  # fmt: skip


def staged(stage: str, row: Row, order: int | None = None, *kept: str) -> Row:
    """A row of a batch."""
    return {
        **row,
        "_stage": stage,
        "_batch": 1,
        "_order": order,
        "_unmodified": list(kept),
    }


def earliest(start: datetime) -> Row:
    return staged("earliest_start", version(start))


def deletion(at: datetime) -> Row:
    return staged("delete", version(DAY, at))


def outcome(table: list[Row], batch: Batch, option: UpdateWithoutBase = "skip") -> list[Row]:
    """The table after the batch, by start."""
    result = apply_batch(table, batch, ("id",), FIVETRAN, option)
    return sorted(result.table, key=FIVETRAN.identity)


@pytest.mark.parametrize(
    ("end", "is_base"),
    [
        (DAY + HOUR - MILLISECOND, True),
        (DAY + HOUR - MILLISECOND - MICROSECOND, False),
        (DAY + HOUR, True),
    ],
)
def test_a_base_lasts_until_one_gap_before_the_change(end: datetime, is_base: bool) -> None:
    update = staged("update", version(DAY + HOUR), None, "name")
    table = outcome([version(DAY, end, False, "old")], [update])
    assert [row["name"] for row in table] == ["old"] * (2 if is_base else 1)


def test_a_base_deleted_in_the_same_batch_does_not_count() -> None:
    update = staged("update", version(DAY + 2 * HOUR), None, "name")
    assert len(outcome([version(DAY)], [update, deletion(DAY + HOUR)])) == 1


def test_a_delete_after_the_change_leaves_the_base() -> None:
    update = staged("update", version(DAY + HOUR), None, "name")
    table = outcome([version(DAY)], [update, deletion(DAY + 2 * HOUR)])
    assert table[1] == version(DAY + HOUR, DAY + 2 * HOUR, False)


def test_a_base_with_active_null_lasts_through_a_delete() -> None:
    update = staged("update", version(DAY + 2 * HOUR), None, "name")
    table = outcome([version(DAY, TMAX, None, "old")], [update, deletion(DAY + HOUR)])
    assert [row["name"] for row in table] == ["old", "old"]


def test_a_delete_of_an_applied_row_does_not_affect_the_older_base() -> None:
    table = [version(DAY, DAY + 4 * HOUR, False, "old")]
    batch = [
        staged("upsert", version(DAY + HOUR, DAY + HOUR, False, "new")),
        deletion(DAY + 2 * HOUR),
        staged("update", version(DAY + 5 * HOUR), None, "name"),
    ]
    assert [row["name"] for row in outcome(table, batch)] == ["old", "new", "new"]


def test_an_older_version_is_the_base_if_the_newer_one_had_ended() -> None:
    table = [
        version(DAY, DAY + 4 * HOUR, False, "long"),
        version(DAY + HOUR, DAY + 2 * HOUR, False, "short"),
    ]
    update = staged("update", version(DAY + 3 * HOUR), None, "name")
    assert outcome(table, [update])[2]["name"] == "long"


def test_an_unmodified_end_is_that_of_the_open_base() -> None:
    far = datetime(9999, 12, 31, 23, 59, 59, 999999)
    row = version(DAY + HOUR, None, None)
    batch = [
        earliest(DAY + HOUR),
        staged("update", row, None, "name", "_fivetran_end", "_fivetran_active"),
    ]
    assert outcome([version(DAY, far)], batch)[1] == version(DAY + HOUR, far)


def test_an_unmodified_end_without_an_open_base_is_the_open_end() -> None:
    row = version(DAY + HOUR, None, None)
    update = staged("update", row, None, "_fivetran_end", "_fivetran_active")
    assert outcome([version(DAY, DAY + HOUR, False)], [update])[1] == version(DAY + HOUR)


def test_a_replay_may_replace_another_open_end_by_the_conventions() -> None:
    """The base is open at first, and closed by E when the batch is repeated."""
    far = datetime(9999, 12, 31, 23, 59, 59, 999999)
    update = staged("update", version(DAY + HOUR, None), None, "_fivetran_end")
    batch = [earliest(DAY + HOUR), update]
    once = outcome([version(DAY, far)], batch)
    assert [once[1], outcome(once, batch)[1]] == [
        version(DAY + HOUR, far),
        version(DAY + HOUR, TMAX),
    ]


def test_end_and_active_are_kept_independently() -> None:
    only_end = staged("update", version(DAY + HOUR, None, False), None, "_fivetran_end")
    assert outcome([version(DAY)], [only_end])[1] == version(DAY + HOUR, TMAX, False)
    end = DAY + 2 * HOUR
    only_active = staged("update", version(DAY + HOUR, end, None), None, "_fivetran_active")
    assert outcome([version(DAY)], [only_active])[1] == version(DAY + HOUR, end, True)


@pytest.mark.parametrize(
    ("batch", "expected"),
    [
        # a row of the batch, open or closed, starts in the period of [10, 20)
        ([("upsert", 15, None)], [(10, 15), (15, 30), (30, None)]),
        ([("upsert", 15, 18)], [(10, 15), (15, 18), (30, None)]),
        ([("update", 15, 18)], [(10, 15), (15, 18), (30, None)]),
        # its own end reaches beyond the start of a stored version, or of a row of the batch
        ([("upsert", 25, 40)], [(10, 20), (25, 30), (30, None)]),
        ([("upsert", 22, 40), ("upsert", 24, 26)], [(10, 20), (22, 24), (24, 26), (30, None)]),
        # before E, in an open version that ends at E
        ([("earliest_start", 50, None), ("upsert", 40, 60)], [(10, 20), (30, 40), (40, 60)]),
        # a skipped update starts no version
        ([("update", 25, 28)], [(10, 20), (30, None)]),
    ],
)
def test_a_version_ends_where_a_row_of_the_batch_starts(
    batch: list[tuple[str, int, int | None]], expected: list[tuple[int, int | None]]
) -> None:
    convention = ALL_CONVENTIONS["validity_bigint"]
    table = [interval(10, 20), interval(30, None)]
    rows = [staged(stage, interval(start, end)) for stage, start, end in batch]
    result = apply_batch(table, rows, ("id",), convention).table
    assert [(row["valid_from"], row["valid_to"]) for row in result] == expected
    again = apply_batch(result, rows, ("id",), convention)
    assert again.table == result


def test_a_row_with_active_null_is_neither_sealed_nor_deleted() -> None:
    batch = [
        staged("upsert", version(DAY, TMAX, None)),
        staged("upsert", version(DAY + 2 * HOUR)),
        deletion(DAY + HOUR),
    ]
    assert outcome([], batch) == [version(DAY, TMAX, None), version(DAY + 2 * HOUR)]


def test_no_version_is_clipped_if_the_latest_survivor_has_active_null() -> None:
    table = [version(DAY, DAY + 5 * HOUR, False), version(DAY + HOUR, TMAX, None)]
    assert outcome(table, [earliest(DAY + 2 * HOUR)]) == table


def test_an_active_survivor_that_has_ended_is_still_closed() -> None:
    table = [version(DAY, DAY + HOUR, True)]
    at = DAY + 2 * HOUR
    assert outcome(table, [earliest(at)]) == [version(DAY, at - MILLISECOND, False)]


def test_a_delete_inside_the_gap_before_the_next_start_comes_after_the_seal() -> None:
    following = staged("upsert", version(DAY + HOUR))
    table = outcome([version(DAY)], [following, deletion(DAY + HOUR - MICROSECOND)])
    assert table[0] == version(DAY, DAY + HOUR - MILLISECOND, False)


def test_an_end_inside_the_gap_before_e_is_not_clipped() -> None:
    at = DAY + HOUR
    inside = version(DAY, at - MICROSECOND, False)
    assert outcome([inside], [earliest(at)]) == [inside]
    assert outcome([version(DAY, at, False)], [earliest(at)]) == [
        version(DAY, at - MILLISECOND, False)
    ]


def test_of_two_rows_with_one_start_the_greater_order_wins() -> None:
    batch = [
        staged("upsert", version(DAY, name=name), order) for name, order in (("b", 2), ("a", 1))
    ]
    assert outcome([], batch) == [version(DAY, name="b")]


def test_an_upsert_comes_before_an_update_at_the_same_start() -> None:
    row = {**version(DAY), "note": "new"}
    batch = [
        staged("update", row, 1, "name"),
        staged("upsert", {**version(DAY, name="base"), "note": "old"}, 2),
    ]
    assert outcome([], batch) == [{**version(DAY, name="base"), "note": "new"}]


def test_versions_with_one_start_are_told_apart_by_version_id() -> None:
    def state(txn: int, number: int, txn_next: int | None, name: str) -> Row:
        return {"id": 1, "name": name, "txn": txn, "txn_next": txn_next, "i": number}

    batch = [
        staged("update", state(5, 3, None, ""), None, "name"),
        staged("upsert", state(5, 2, None, "b")),
        staged("delete", state(0, 0, 7, "")),
    ]
    result = apply_batch([state(1, 1, None, "a")], batch, ("id",), NAKSHA)
    assert sorted(result.table, key=NAKSHA.identity) == [
        state(1, 1, 5, "a"),
        state(5, 2, 5, "b"),
        state(5, 3, 7, "b"),
    ]


def test_options_for_an_update_without_a_base() -> None:
    update = staged("update", version(DAY), None, "name")
    whole = staged("update", version(DAY - HOUR))
    assert outcome([], [update]) == outcome([], [whole]) == []
    assert apply_batch([], [update, update, whole], ("id",), FIVETRAN).skipped == 2
    kept = staged("update", version(DAY, None, None), None, "name", *FIVETRAN.columns()[1:])
    assert outcome([], [kept], "insert") == [{**version(DAY), "name": None}]
    with pytest.raises(UpdateWithoutBaseError):
        outcome([], [update], "fail")


def test_counts_of_a_batch() -> None:
    table = [
        version(DAY),
        version(DAY + 5 * HOUR, name="same"),
        version(DAY + 6 * HOUR),
    ]
    table[0] = version(DAY, DAY + 5 * HOUR - MILLISECOND, False)
    table[1] = version(DAY + 5 * HOUR, DAY + 6 * HOUR - MILLISECOND, False, "same")
    batch = [
        earliest(DAY + HOUR),
        staged("upsert", version(DAY + HOUR)),
        staged("upsert", table[1]),
        staged("update", version(DAY - HOUR), None, "name"),
    ]
    result = apply_batch(table, batch, ("id",), FIVETRAN)
    assert replace(result, table=[]) == Result([], 1, 1, 0, 1, 1)
    replaced = apply_batch(
        [version(DAY)], [staged("upsert", version(DAY, name="n"))], ("id",), FIVETRAN
    )
    assert replace(replaced, table=[]) == Result([], 0, 0, 1, 0, 0)


def test_two_stored_versions_with_one_identity_are_refused() -> None:
    with pytest.raises(DuplicateVersionError):
        outcome([version(DAY), version(DAY)], [])


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (staged("merge", version(DAY)), "unknown _stage 'merge'"),
        (staged("upsert", {**version(DAY), "id": None}), "id is NULL"),
        (
            staged("update", {**version(DAY), "_fivetran_start": None}),
            "_fivetran_start is NULL",
        ),
        (
            staged("earliest_start", {**version(DAY), "_fivetran_start": None}),
            "_start is NULL",
        ),
        (staged("delete", version(DAY, None)), "_fivetran_end is NULL"),
        (staged("update", version(DAY), None, "nmae"), "_unmodified names nmae"),
        (staged("update", version(DAY), None, "id"), "_unmodified names id"),
        (staged("upsert", version(DAY), None, "name"), "_unmodified in an upsert row"),
        (staged("replace", version(DAY), None, "name"), "_unmodified in an upsert row"),
        (staged("upsert", version(datetime.max)), "start at or after the open end"),
        (
            staged("upsert", version(DAY, DAY - MILLISECOND - MICROSECOND)),
            "more than one gap",
        ),
    ],
)
def test_an_invalid_row_is_refused_with_the_reason(row: Row, problem: str) -> None:
    good = staged("upsert", version(DAY + HOUR))
    problems = validate([good, row], ("id",), FIVETRAN)
    assert len(problems) == 1
    assert problem in problems[0]
    with pytest.raises(BadBatchError):
        outcome([], [good, row])


@pytest.mark.parametrize(
    "row",
    [
        staged("upsert", version(DAY, DAY - MILLISECOND, False)),
        staged("update", version(DAY, DAY - HOUR), None, "_fivetran_end"),
        staged("delete", {"id": 1, "_fivetran_end": DAY}),
        staged("delete", version(DAY, DAY), None, "not read in a delete row"),
    ],
)
def test_an_unusual_but_valid_row_is_accepted(row: Row) -> None:
    assert validate([row], ("id",), FIVETRAN) == []


@pytest.mark.parametrize(
    ("orders", "names", "refused"),
    [
        ((None, None), ("a", "b"), True),
        ((1, 1), ("a", "b"), True),
        ((1, None), ("a", "b"), True),
        ((1, 2), ("a", "b"), False),
        ((None, None), ("a", "a"), False),
    ],
)
@pytest.mark.parametrize("stages", [("upsert", "replace"), ("update", "update")])
def test_different_rows_of_one_stage_and_start_need_an_order(
    orders: tuple[int | None, int | None],
    names: tuple[str, str],
    refused: bool,
    stages: tuple[str, str],
) -> None:
    drawn = zip(stages, names, orders, strict=True)
    batch = [staged(stage, version(DAY, name=name), order) for stage, name, order in drawn]
    assert bool(validate(batch, ("id",), FIVETRAN)) == refused


def test_an_upsert_and_an_update_at_one_start_need_no_order() -> None:
    batch = [staged("upsert", version(DAY)), staged("update", version(DAY, name="b"))]
    assert validate(batch, ("id",), FIVETRAN) == []


def test_date_periods_are_half_open_days() -> None:
    convention = ALL_CONVENTIONS["validity_date"]
    old = {"id": 1, "valid_from": date(2024, 1, 1), "valid_to": None}
    new = {"id": 1, "valid_from": date(2024, 2, 1), "valid_to": None}
    result = apply_batch([old], [staged("upsert", new)], ("id",), convention)
    assert result.table == [{**old, "valid_to": date(2024, 2, 1)}, new]


ONE_NUMBER = {
    name: convention
    for name, convention in ALL_CONVENTIONS.items()
    if convention.version_id == convention.start
}


as_rows_or_events = pytest.mark.parametrize("as_events", [False, True], ids=["rows", "events"])


def played_in_any_order(
    stream: Sequence[Event], seed: int, number: int, convention: Convention, as_events: bool
) -> list[Row]:
    """The table after the events in a random order and in random batches."""
    table: list[Row] = []
    order = random.Random(number).sample(stream, len(stream))
    for batch in plain_batches(order, 10 * seed + number, convention, as_events):
        table = apply_batch(table, batch, KEY, convention, late_events=True).table
    return table


@as_rows_or_events
@pytest.mark.parametrize("convention", ONE_NUMBER.values(), ids=ONE_NUMBER.keys())
def test_late_events_in_any_order_and_split_give_the_table_of_their_times(
    convention: Convention, as_events: bool
) -> None:
    kept = 0
    for seed in SEEDS:
        stream = plain_events(seed, convention)
        expected = as_set(truth(stream, convention, as_events))
        for number in range(4):
            table = played_in_any_order(stream, seed, number, convention, as_events)
            assert as_set(visible(table, convention)) == expected, (seed, number)
            kept += len(table) - sum(expected.values())
    assert kept > len(SEEDS)


@as_rows_or_events
@pytest.mark.parametrize("convention", ONE_NUMBER.values(), ids=ONE_NUMBER.keys())
def test_late_events_leave_no_tombstone_where_every_delete_ended_a_version(
    convention: Convention, as_events: bool
) -> None:
    for seed in SEEDS:
        stream = without_idle_deletes(plain_events(seed, convention))
        expected = as_set(truth(stream, convention, as_events))
        for number in range(3):
            table = played_in_any_order(stream, seed, number, convention, as_events)
            assert as_set(table) == expected, (seed, number)


def event(time: int, v: str | None = None) -> Row:
    """An upsert row, or without a value a delete row, of the convention `closed_bigint`."""
    stage, end = ("upsert", 2147483647) if v else ("delete", time - 1)
    return {"_stage": stage, "id": 1, "v": v, "valid_from": time, "valid_to": end}


@pytest.mark.parametrize(
    ("batches", "expected"),
    [
        ([[event(4), event(5)]] * 2, {(4, 3, None), (5, 4, None)}),
        ([[event(3, "a"), event(4), event(5)]] * 2, {(3, 3, "a"), (5, 4, None)}),
        ([[event(5)], *[[event(3, "a"), event(4)]] * 2], {(3, 3, "a"), (5, 4, None)}),
        (
            [[event(5)], *[[event(3, "a"), event(4)]] * 2, [event(4, "b")]],
            {(3, 3, "a"), (4, 4, "b")},
        ),
        ([[event(10)], [event(9, "a"), event(9)]], {(9, 8, "a"), (10, 9, None)}),
    ],
    ids=["deletions", "after_a_version", "before_a_version", "new_version", "at_one_time"],
)
def test_deletions_one_gap_apart_are_kept_once_each(
    batches: list[Batch], expected: set[tuple[Any, ...]]
) -> None:
    convention = ALL_CONVENTIONS["closed_bigint"]
    table: list[Row] = []
    for batch in batches:
        table = apply_batch(table, batch, ("id",), convention, late_events=True).table

    rows = [(row["valid_from"], row["valid_to"], row["v"]) for row in table]
    assert len(rows) == len(expected)
    assert set(rows) == expected


def test_no_tombstone_has_the_start_of_a_version_with_active_null() -> None:
    stored = version(DAY, active=None)
    deletion = staged("delete", version(DAY, end=DAY - MILLISECOND, active=False))
    late = version(DAY - timedelta(days=2), name="b")

    table = [stored]
    for row in (deletion, staged("upsert", late)):
        table = apply_batch(table, [row], ("id",), FIVETRAN, late_events=True).table

    closed = version(DAY - timedelta(days=2), end=DAY - MILLISECOND, active=False, name="b")
    assert as_set(table) == as_set([closed, stored])


def without_idle_deletes(stream: Sequence[Event]) -> list[Event]:
    """Events without the deletes that do not follow a version of their key."""
    alive: dict[Any, bool] = {}
    kept = []
    for event in sorted(stream, key=lambda event: event.time):
        if event.is_version or alive.get(event.key):
            kept.append(event)
        alive[event.key] = event.is_version
    return kept


@pytest.mark.parametrize("convention", ONE_NUMBER.values(), ids=ONE_NUMBER.keys())
def test_late_events_depend_on_no_version_that_ended_before_the_batch(
    convention: Convention,
) -> None:
    pruned = 0
    for seed in SEEDS:
        history = random_history(seed, convention, late_events=True)
        table = history.initial
        for number, batch in enumerate(history.batches, start=1):
            result = apply_batch(table, batch, KEY, convention, late_events=True)
            ended = ended_before(batch, table, convention)
            recent = [row for row in table if row not in ended]
            part = apply_batch(recent, batch, KEY, convention, late_events=True)
            part = replace(part, table=[*ended, *part.table])
            assert same(part, result), (seed, number)
            assert doubled(result.table, KEY, convention) == [], (seed, number)
            pruned += bool(batch and ended)
            table = result.table
    assert pruned > len(SEEDS) / 2
