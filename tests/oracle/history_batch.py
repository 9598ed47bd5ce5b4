"""The rules of the four-stage history batch, applied one by one, a key at a time.

An independent implementation: it loops over rows where the SQL uses windows. Rules: DESIGN section
3 and the README of the conformance area `history_batch`; the numbers below are those of DESIGN.

    time ->        1         E         5         9          D
    stored         [----- v1 -------------------------------...     open
    earliest_start           E
    after rule 2   [-- v1 --]                                       ends at E - gap
    update                   [------------------------------...     takes v1's values
    upsert                             [--------------------...
    after rules 6, 6b        [--------][--------------------...     ends at next start - gap
    delete                                                  D
    after rule 7             [--------][-------------------]        ends at D, no gap

Rule 7b (`late_events`), a delete that no version shows is kept as a tombstone, an empty version
without values, and ends the upsert that arrives after it:

    time ->        1         5         9
    batch 1: delete at 9               |                            tombstone
    batch 2: upsert at 1     [---------)                            the tombstone is not needed
    batch 3: delete at 5     [---)     |                            and now it is

Where the rules do not decide, this module does:

* A version's identity is (key, start, version_id). "Greatest start" is greatest (start,
  version_id).
* A stored version that is no base because it had ended hides nothing: an older one may then be the
base.
* An update without a base is skipped even if it supplies every column.
* An open base gives the end it had before rule 2 (9999-12-31T23:59:59.999999 is kept unchanged),
whether or not this batch deletes it.
* A NULL end is after all times, whatever the flag.
* A cell that an update row neither has nor names in `_unmodified` is NULL.
* Rows are duplicates if they are equal in all relevant columns, `_order` included.
* A batch row whose active flag is NULL is neither sealed nor deleted, like a stored one.
* With `late_events`, a delete row whose start is its end + gap ends a version that starts there,
too.
* Rule 7b: an end counts as a deletion if no stored version starts before it; an upsert row's own
end counts, too. With a gap of 0, an upsert that starts where an earlier batch ended the record is a
new beginning. Versions with several numbers at one start have no late events.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, TypeAlias

from .convention import Convention, Row, Time

Key: TypeAlias = tuple[Any, ...]
UpdateWithoutBase: TypeAlias = Literal["skip", "insert", "fail"]

STAGE_COLUMNS = ("_stage", "_batch", "_order", "_unmodified")
STAGES = ("earliest_start", "update", "upsert", "replace", "delete")


class BadBatchError(ValueError):
    """The batch was refused before anything was applied; `problems` lists the reasons."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = list(problems)


class UpdateWithoutBaseError(ValueError):
    """An update row has no base version, and the option is `fail`."""


class DuplicateVersionError(ValueError):
    """The table before the batch has two versions with one identity."""


@dataclass(frozen=True)
class Result:
    """The table after the batch, and the numbers of changed rows.

    added     identities that were not in the table
    closed    stored versions whose end or active flag changed
    replaced  identities that were in the table and are different after the batch
    removed   identities that are no longer in the table
    skipped   update rows without a base

    A stored version that ends up unchanged is not counted, even if rule 1 removed it and the batch
    added it again. The order of `table` does not matter.
    """

    table: list[Row]
    added: int
    closed: int
    replaced: int
    removed: int
    skipped: int


@dataclass(frozen=True, order=True)
class Delete:
    """A delete row: it closes the version with the greatest start <= at, at `end`."""

    at: Time
    end: Time


@dataclass
class Version:
    """A version while its key is processed.

    row     its current content
    stored  its content before the batch; None if it came with the batch
    """

    row: Row
    stored: Row | None


def apply_batch(
    table: Sequence[Row],
    batch: Sequence[Row],
    key: Sequence[str],
    convention: Convention,
    update_without_base: UpdateWithoutBase = "skip",
    late_events: bool = False,
) -> Result:
    """Apply one batch of staged rows to a table; neither argument is modified.

    table  rows with the key, data and convention columns; (key, start, version_id) is unique
    batch  rows with the same columns and `_stage`, `_order`, `_unmodified`; `_batch` is ignored
    key    names of the key columns, without the start

    Raises BadBatchError, DuplicateVersionError, UpdateWithoutBaseError.
    """
    columns = table_columns(table, batch)
    problems = validate(batch, key, convention, columns)
    if problems:
        raise BadBatchError(problems)
    stored_by_key = rows_by_key(table, key)
    batch_by_key = rows_by_key(batch, key)
    result = Result([], 0, 0, 0, 0, 0)
    for key_values in dict.fromkeys([*stored_by_key, *batch_by_key]):
        stored = stored_by_key.get(key_values, [])
        refuse_duplicates(stored, convention)
        if key_values in batch_by_key:
            rows = batch_by_key[key_values]
            part = apply_to_key(
                stored, rows, columns, key, convention, update_without_base, late_events
            )
        else:
            part = Result([dict(row) for row in stored], 0, 0, 0, 0, 0)
        result = add_results(result, part)
    return result


def apply_to_key(
    stored: Sequence[Row],
    batch: Sequence[Row],
    columns: Sequence[str],
    key: Sequence[str],
    convention: Convention,
    update_without_base: UpdateWithoutBase,
    late_events: bool,
) -> Result:
    """Apply the rules in order to the versions of one key."""
    changes = sort_changes(collapse_equal_rows(batch, columns, convention), convention)
    deletes = sorted(
        delete_of(row, convention, late_events) for row in batch if row["_stage"] == "delete"
    )
    earliest = earliest_start(batch, convention)

    versions = [Version(full_row(row, columns), full_row(row, columns)) for row in stored]
    tombstones = [one for one in versions if late_events and is_tombstone(one.row, key, convention)]
    versions = [version for version in versions if version not in tombstones]
    versions = remove_versions_from(versions, earliest, convention)
    ends = known_ends(versions, tombstones, changes, earliest, convention) if late_events else []
    close_survivors(versions, earliest, convention)
    skipped = 0
    for change in changes:
        row = complete_change(
            change,
            versions,
            deletes,
            earliest,
            columns,
            convention,
            update_without_base,
        )
        if row is None:
            skipped += 1
        else:
            versions = place(versions, row, convention)
    seal(versions, convention)
    cut(versions, convention)
    delete(versions, deletes, convention)
    if late_events:
        end_late_rows(versions, ends, convention)
        key_values = {name: batch[0][name] for name in key}
        versions += [
            tombstone(end, key_values, stored, columns, convention)
            for end in deletions_to_keep(versions, tombstones, deletes, ends, convention)
        ]
    return count(stored, versions, skipped, columns, convention)


def earliest_start(batch: Sequence[Row], convention: Convention) -> Time | None:
    """E: the least start of the key's earliest_start rows; None without such a row."""
    starts = [row[convention.start] for row in batch if row["_stage"] == "earliest_start"]
    return min(starts, default=None)


def remove_versions_from(
    versions: Sequence[Version], earliest: Time | None, convention: Convention
) -> list[Version]:
    """Rule 1: remove versions with start >= E, whatever their flag. The rest are the survivors."""
    if earliest is None:
        return list(versions)
    return [version for version in versions if version.row[convention.start] < earliest]


def close_survivors(
    survivors: Sequence[Version], earliest: Time | None, convention: Convention
) -> None:
    """Rule 2: open survivors end at E - gap; an inactive latest one is clipped to it.

    E - gap is used even if it is before the version's own start. Only the latest survivor is
    clipped, and only if its end >= E: a deletion gap stays.

        latest, end >= E    [------------|--]      ->  [-----------]|
        latest, end < E     [-------]    |             unchanged
                                         E
    """
    if earliest is None or not survivors:
        return
    for version in survivors:
        if convention.is_open(version.row):
            close(version.row, earliest - convention.gap, convention)
    latest = max(survivors, key=lambda version: convention.identity(version.row)).row
    if not convention.is_untouchable(latest) and lasts_until(latest[convention.end], earliest):
        close(latest, earliest - convention.gap, convention)


def delete_of(row: Row, convention: Convention, late_events: bool) -> Delete:
    """A delete row: its end, and the point up to which a version is deleted by it."""
    end, start = row[convention.end], row.get(convention.start)
    is_event = late_events and start == end + convention.gap
    return Delete(start if is_event else end, end)


def sort_changes(batch: Iterable[Row], convention: Convention) -> list[Row]:
    """Rule 3, the order: by start and version_id, upserts before updates, then `_order`."""

    def position(row: Row) -> tuple[Any, ...]:
        return (
            *convention.identity(row),
            row["_stage"] == "update",
            row.get("_order") or 0,
        )

    return sorted((row for row in batch if is_change(row)), key=position)


def complete_change(
    change: Row,
    versions: Sequence[Version],
    deletes: Sequence[Delete],
    earliest: Time | None,
    columns: Sequence[str],
    convention: Convention,
    update_without_base: UpdateWithoutBase,
) -> Row | None:
    """Rules 3 and 4: the version for an update or upsert row; None: skipped."""
    row = full_row(change, columns)
    if change["_stage"] != "update":
        return row
    base = find_base(change, versions, deletes, earliest, convention)
    if base is None and update_without_base == "skip":
        return None
    if base is None and update_without_base == "fail":
        raise UpdateWithoutBaseError(f"no version to complete {change!r} from")
    for name in unmodified(change):
        row[name] = kept_value(name, base, convention)
    return row


def find_base(
    change: Row,
    versions: Sequence[Version],
    deletes: Sequence[Delete],
    earliest: Time | None,
    convention: Convention,
) -> Row | None:
    """Rule 3, the base: the version that gives an update row its unmodified columns.

    The greatest version at or before the row, whatever its flag, among the survivors that lasted
    until the change and the rows of this batch already applied, which always count. A survivor is
    used as stored, before rule 2.
    """
    at = convention.identity(change)
    start = change[convention.start]
    until = (start if earliest is None else min(earliest, start)) - convention.gap
    candidates = [
        version
        for version in versions
        if convention.identity(version.row) <= at
        and (version.stored is None or lasted(version, versions, deletes, until, convention))
    ]
    base = max(candidates, key=lambda version: convention.identity(version.row), default=None)
    if base is None:
        return None
    return base.row if base.stored is None else base.stored


def lasted(
    survivor: Version,
    versions: Sequence[Version],
    deletes: Sequence[Delete],
    until: Time,
    convention: Convention,
) -> bool:
    """Rule 3: whether a survivor had not ended at `until` = min(E, start) - gap.

    Its end is the stored one, shortened by the batch's deletes of it: those at which it is the
    greatest version among survivors and applied rows. Rows after the change are not applied yet;
    that makes no difference, as deletes at or after the change are beyond `until` anyway.
    """
    stored = survivor.stored
    assert stored is not None
    end = stored[convention.end]
    hits = [row.end for row in deletes if version_at(versions, row.at, convention) is survivor]
    if convention.is_untouchable(stored) or not hits:
        return convention.is_open(stored) or lasts_until(end, until)
    return lasts_until(shorter(end, min(hits)), until)


def kept_value(name: str, base: Row | None, convention: Convention) -> Any:
    """The value of an unmodified column; NULL without a base.

    End and active are decided separately: the base's if the base is open, else the open value.
    """
    if name not in (convention.end, convention.active):
        return None if base is None else base[name]
    if base is not None and convention.is_open(base):
        return base[name]
    return convention.open_end if name == convention.end else True


def place(versions: Sequence[Version], row: Row, convention: Convention) -> list[Version]:
    """Rule 5: (key, start, version_id) is unique; the last row replaces earlier ones."""
    identity = convention.identity(row)
    others = [version for version in versions if convention.identity(version.row) != identity]
    return [*others, Version(row, None)]


def seal(versions: Sequence[Version], convention: Convention) -> None:
    """Rule 6: an open version that has a later one ends at the next start - gap."""
    ordered = sorted(versions, key=lambda version: convention.identity(version.row))
    for version, following in pairwise(ordered):
        if convention.is_open(version.row):
            close(
                version.row,
                following.row[convention.start] - convention.gap,
                convention,
            )


def cut(versions: Sequence[Version], convention: Convention) -> None:
    """Rule 6b: an inactive version ends a gap before a row of the batch that starts in its period.

    A stored version ends before the first following row of the batch. A row of the batch ends
    before the version that follows it, stored or not. Two stored versions are not changed against
    each other.

        stored      [ a -------------)          [ c ---
        batch                [ b ------------------)
        after       [ a ----)[ b --------------)[ c ---
    """
    ordered = sorted(versions, key=lambda version: convention.identity(version.row))
    for place, version in enumerate(ordered):
        following = next(
            (later for later in ordered[place + 1 :] if None in (version.stored, later.stored)),
            None,
        )
        if following is not None and not convention.is_untouchable(version.row):
            limit = following.row[convention.start] - convention.gap
            close(version.row, shorter(version.row[convention.end], limit), convention)


def delete(versions: Sequence[Version], deletes: Sequence[Delete], convention: Convention) -> None:
    """Rule 7: a delete at D closes the version with the greatest start <= D at min(end, D).

    A version that is inactive and ended at or before D is unchanged, as is one with active NULL.
    """
    for row in deletes:
        version = version_at(versions, row.at, convention)
        if version is not None and not convention.is_untouchable(version.row):
            close(version.row, shorter(version.row[convention.end], row.end), convention)


def is_tombstone(row: Row, key: Sequence[str], convention: Convention) -> bool:
    """Whether a stored row is a tombstone: an empty closed period and no value.

    start = D + gap, end = D        no reader finds it, as it contains no instant
    """
    names = {*key, *convention.columns()}
    return (
        has_ended(row, convention)
        and row[convention.end] == row[convention.start] - convention.gap
        and all(value is None for name, value in row.items() if name not in names)
    )


def tombstone(
    end: Time,
    key_values: Row,
    stored: Sequence[Row],
    columns: Sequence[str],
    convention: Convention,
) -> Version:
    """The tombstone of a deletion, as it is stored or as a new row."""
    row: Row = dict.fromkeys(columns) | key_values
    row[convention.start] = end + convention.gap
    close(row, end, convention)
    olds = [full_row(old, columns) for old in stored]
    return Version(row, row if row in olds else None)


def has_ended(row: Row, convention: Convention) -> bool:
    """Whether a version is closed at a finite end; one whose active flag is NULL is not."""
    end = row[convention.end]
    closed = convention.active is None or row[convention.active] is False
    return closed and not convention.is_endless(end)


def begins_before(start: Time, end: Time, convention: Convention) -> bool:
    """Whether a version with this start is in force before a known end; with a gap, at it."""
    return bool(start <= end and start < end + convention.gap)


def known_ends(
    survivors: Sequence[Version],
    tombstones: Sequence[Version],
    changes: Sequence[Row],
    earliest: Time | None,
    convention: Convention,
) -> list[Time]:
    """Rule 7b: the deletions that the table knows, and the own ends of the batch's upserts.

    An end of a version is none if a later stored version begins before it. The source sends what is
    at or after E again.
    """
    starts = [version.row[convention.start] for version in survivors]

    def ends(rows: Iterable[Row]) -> list[Time]:
        return [
            row[convention.end]
            for row in rows
            if has_ended(row, convention)
            and not any(
                row[convention.start] < start
                and begins_before(start, row[convention.end], convention)
                for start in starts
            )
        ]

    known = [version.row[convention.end] for version in tombstones]
    known += ends(version.row for version in survivors)
    if earliest is not None:
        known = [end for end in known if end + convention.gap < earliest]
    return sorted({*known, *ends(row for row in changes if row["_stage"] != "update")})


def end_late_rows(
    versions: Sequence[Version], ends: Sequence[Time], convention: Convention
) -> None:
    """Rule 7b: a row of the batch ends where the record is known to have been deleted after it.

    stored      [ a -----------------)
    batch                [ b ------------ open
    after       [ a ----)[ b --------)
    """
    for end in ends:
        version = latest(
            (one for one in versions if begins_before(one.row[convention.start], end, convention)),
            convention,
        )
        if version is None or version.stored is not None:
            continue
        if not convention.is_untouchable(version.row):
            close(version.row, shorter(version.row[convention.end], end), convention)


def deletions_to_keep(
    versions: Sequence[Version],
    tombstones: Sequence[Version],
    deletes: Sequence[Delete],
    ends: Sequence[Time],
    convention: Convention,
) -> list[Time]:
    """Rule 7b: the deletions that need a tombstone, as no version shows them.

    versions    [ a ----)   |            [ b ---)[ c ------
    deletions           1   2   3        |      4
                            '---'- after another deletion: kept      1, 4: ends of versions

    Only a row of the batch makes a stored tombstone unnecessary. A version that starts at most a
    gap after the end ends earlier ones there itself, so no tombstone has the start of a version.
    """
    stored = {version.row[convention.end] for version in tombstones}
    kept = []
    for end in sorted({*ends, *(row.end for row in deletes)}):
        able = [one for one in versions if one.stored is None or end not in stored]
        starts = [one.row[convention.start] for one in able]
        before = [
            one
            for one, start in zip(able, starts, strict=True)
            if begins_before(start, end, convention)
        ]
        version = latest(before, convention)
        is_shown = (
            version is not None
            and version.row[convention.end] == end
            and not convention.is_untouchable(version.row)
        )
        is_followed = any(
            start <= end + convention.gap and not begins_before(start, end, convention)
            for start in starts
        )
        if not is_shown and not is_followed:
            kept.append(end)
    return kept


def latest(versions: Iterable[Version], convention: Convention) -> Version | None:
    """The version with the greatest identity."""
    return max(versions, key=lambda version: convention.identity(version.row), default=None)


def version_at(versions: Sequence[Version], at: Time, convention: Convention) -> Version | None:
    """The version with the greatest (start, version_id) among those with start <= at."""
    begun = [version for version in versions if version.row[convention.start] <= at]
    return max(begun, key=lambda version: convention.identity(version.row), default=None)


def close(row: Row, end: Time, convention: Convention) -> None:
    """Set the end of a version and make it inactive."""
    row[convention.end] = end
    if convention.active is not None:
        row[convention.active] = False


def lasts_until(end: Time | None, time: Time) -> bool:
    """Whether an end is at or after a time; NULL is after all times."""
    return end is None or bool(end >= time)


def shorter(end: Time | None, at: Time) -> Time:
    """The smaller of an end and a time; NULL is after all times."""
    return at if end is None else min(end, at)


def unmodified(row: Row) -> list[str]:
    """The columns that an update row leaves unmodified; rows of other stages have none."""
    return list(row.get("_unmodified") or []) if row["_stage"] == "update" else []


def is_change(row: Row) -> bool:
    """Whether a staged row makes a version."""
    return row["_stage"] in ("update", "upsert", "replace")


def content(row: Row, columns: Sequence[str]) -> tuple[Any, ...]:
    """The relevant cells of an update or upsert row, without `_order`."""
    kept = unmodified(row)
    cells = tuple(None if name in kept else row.get(name) for name in columns)
    return (row["_stage"] == "update", frozenset(kept), *cells)


def collapse_equal_rows(
    batch: Sequence[Row], columns: Sequence[str], convention: Convention
) -> list[Row]:
    """Update and upsert rows without duplicates."""
    distinct = {
        (*convention.identity(row), row.get("_order"), content(row, columns)): row
        for row in batch
        if is_change(row)
    }
    return list(distinct.values())


def count(
    stored: Sequence[Row],
    versions: Sequence[Version],
    skipped: int,
    columns: Sequence[str],
    convention: Convention,
) -> Result:
    """The outcome of one key."""
    before = {convention.identity(row): full_row(row, columns) for row in stored}
    after = {convention.identity(version.row): version for version in versions}
    changed = [
        version
        for identity, version in after.items()
        if identity in before and version.row != before[identity]
    ]
    ordered = sorted(versions, key=lambda version: convention.identity(version.row))
    return Result(
        table=[version.row for version in ordered],
        added=len(after.keys() - before.keys()),
        closed=sum(version.stored is not None for version in changed),
        replaced=sum(version.stored is None for version in changed),
        removed=len(before.keys() - after.keys()),
        skipped=skipped,
    )


def add_results(one: Result, other: Result) -> Result:
    """Both tables, and the sums of the counts."""
    return Result(
        table=[*one.table, *other.table],
        added=one.added + other.added,
        closed=one.closed + other.closed,
        replaced=one.replaced + other.replaced,
        removed=one.removed + other.removed,
        skipped=one.skipped + other.skipped,
    )


def table_columns(table: Iterable[Row], batch: Iterable[Row]) -> list[str]:
    """Columns of the table after the batch, without the stage columns."""
    names = dict.fromkeys(name for row in [*table, *batch] for name in row)
    return [name for name in names if name not in STAGE_COLUMNS]


def full_row(row: Row, columns: Sequence[str]) -> Row:
    """The table columns of a row; a missing cell is NULL."""
    return {name: row.get(name) for name in columns}


def rows_by_key(rows: Iterable[Row], key: Sequence[str]) -> dict[Key, list[Row]]:
    """Rows grouped by key, in order of first appearance."""
    groups: dict[Key, list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in key), []).append(row)
    return groups


def refuse_duplicates(stored: Sequence[Row], convention: Convention) -> None:
    """Raise DuplicateVersionError unless the identities of one key are unique."""
    identities = [convention.identity(row) for row in stored]
    if len(set(identities)) < len(identities):
        raise DuplicateVersionError(f"two versions with one identity: {identities}")


def least_time(batch: Iterable[Row], convention: Convention) -> Time | None:
    """The least time of a batch: of earliest starts, starts and delete ends; None if empty."""
    times = [
        row[convention.end if row["_stage"] == "delete" else convention.start] for row in batch
    ]
    return min(times, default=None)


def validate(
    batch: Sequence[Row],
    key: Sequence[str],
    convention: Convention,
    columns: Sequence[str] | None = None,
) -> list[str]:
    """The problems of a batch; empty if it can be applied (DESIGN 3, "Bad input").

    columns: columns of the table; default: those of the batch's rows. Types and the target's format
    are not checked, as a plain table of Python values has none. Beyond the list in DESIGN, it
    refuses a NULL version_id, and an `_unmodified` that names the key, the start or the version_id:
    no base can supply them.
    """
    if columns is None:
        columns = table_columns([], batch)
    problems: list[str] = []
    for row in batch:
        found = row_problems(row, key, convention, columns)
        problems += [f"{problem}: {row!r}" for problem in found]
    if not problems:
        problems += order_problems(batch, key, convention, columns)
    return problems


def row_problems(
    row: Row, key: Sequence[str], convention: Convention, columns: Sequence[str]
) -> list[str]:
    """Problems of a single row."""
    stage = row.get("_stage")
    if stage not in STAGES:
        return [f"unknown _stage {stage!r}"]
    needed = [*key, convention.end if stage == "delete" else convention.start]
    if is_change(row):
        needed.append(convention.version_id)
    nulls = [name for name in dict.fromkeys(needed) if row.get(name) is None]
    if nulls:
        return [f"{name} is NULL in {stage}" for name in nulls]
    if stage == "delete":
        return []
    problems = []
    if stage in ("upsert", "replace") and row.get("_unmodified"):
        problems.append("_unmodified in an upsert row, which gives every column")
    start = row[convention.start]
    if convention.open_end is not None and start >= convention.open_end:
        problems.append("start at or after the open end")
    fixed = {*key, convention.start, convention.version_id}
    for name in unmodified(row):
        if name not in columns or name in fixed:
            problems.append(f"_unmodified names {name}, which is no column that could be kept")
    end = row.get(convention.end)
    given = is_change(row) and convention.end not in unmodified(row) and end is not None
    if given and end < start - convention.gap:
        problems.append("end more than one gap before the start")
    return problems


def order_problems(
    batch: Sequence[Row],
    key: Sequence[str],
    convention: Convention,
    columns: Sequence[str],
) -> list[str]:
    """Different rows of one stage and identity whose order `_order` does not decide."""
    groups: dict[Any, set[tuple[Any, ...]]] = {}
    for row in batch:
        if is_change(row):
            who = tuple(row[name] for name in key)
            slot = (who, convention.identity(row), row["_stage"] == "update")
            entry = (row.get("_order"), content(row, columns))
            groups.setdefault(slot, set()).add(entry)
    problems = []
    for (who, identity, is_update), entries in groups.items():
        contents = {entry[1] for entry in entries}
        orders = [entry[0] for entry in entries]
        if len(contents) > 1 and (None in orders or len(set(orders)) < len(orders)):
            stage = "update" if is_update else "upsert"
            problems.append(f"different {stage} rows without order: {who} at {identity}")
    return problems
