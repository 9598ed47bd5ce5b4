"""Versions with half-open periods on one axis, independent of the convention."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import groupby, pairwise
from typing import Any

from dbt_history.conventions import EPOCH, Axis, Convention

# The texts of the key columns; NULL is None.
Key = tuple[str | None, ...]


@dataclass(frozen=True)
class Version:
    """One version, `[since, until)` on the axis of its convention; until is None if it is open.

    values    data columns as text; NULL is None
    changed   column: (old value, new value) since the previous version; None for the first one
    arrived   label of the commit that added it; None if unknown
    is_late   a version with a later start was added before it
    is_back   the record was deleted before it
    """

    key: Key
    since: int
    until: int | None
    values: Mapping[str, str | None] = field(default_factory=dict)
    changed: Mapping[str, tuple[str | None, str | None]] | None = None
    order: int = 0
    arrived: str | None = None
    is_late: bool = False
    is_back: bool = False


@dataclass(frozen=True)
class Absence:
    """A period in which a record was deleted; until is None if it still is."""

    key: Key
    since: int
    until: int | None


def read_version(row: Mapping[str, Any], convention: Convention) -> Version:
    """A stored row as a version with a half-open period.

    `row` has `key` (texts), `since`, `until`, `active`, `order` and `values`; times on the axis.

        stored   [ start ---------- end ] gap [ next start        open: flag, NULL or an open end
        drawn    [ since ---------------------) until
    """
    end = row["until"]
    is_endless = convention.is_endless(end) or row["active"]
    return Version(
        key=tuple(row["key"]),
        since=row["since"],
        until=None if is_endless else end + convention.gap,
        values=row["values"],
        order=row["order"] or 0,
    )


def order_of(key: Key) -> list[tuple[bool, str]]:
    """Sorts keys, NULL first."""
    return [(part is not None, part or "") for part in key]


def is_data(column: str) -> bool:
    """Whether the column is a data column: bookkeeping columns start with _ or @."""
    return not column.startswith(("_", "@"))


def changes(before: Version, now: Version) -> dict[str, tuple[str | None, str | None]]:
    """The changed columns, NULL-aware; a missing column counts as NULL."""
    return {
        name: (before.values.get(name), value)
        for name, value in now.values.items()
        if is_data(name) and before.values.get(name) != value
    }


def is_tombstone(version: Version) -> bool:
    """Whether a row is a deletion that no version shows: an empty period without values."""
    is_empty = version.until is not None and version.until == version.since
    return is_empty and all(value is None for value in version.values.values())


def read_versions(rows: Iterable[Mapping[str, Any]], convention: Convention) -> list[Version]:
    """All versions by key and time, each compared with its predecessor; without tombstones."""
    found = sorted(
        (version for row in rows if not is_tombstone(version := read_version(row, convention))),
        key=lambda version: (order_of(version.key), version.since, version.order),
    )
    read: list[Version] = []
    for _, group in groupby(found, key=lambda version: version.key):
        before: Version | None = None
        for version in group:
            if before is not None:
                version = replace(
                    version,
                    changed=changes(before, version),
                    is_back=before.until is not None and before.until < version.since,
                )
            read.append(version)
            before = version
    return read


def absences(versions: Sequence[Version]) -> list[Absence]:
    """The periods in which records were deleted."""
    gaps: list[Absence] = []
    for key, group in groupby(versions, key=lambda version: version.key):
        of_key = list(group)
        for before, after in pairwise(of_key):
            if before.until is not None and before.until < after.since:
                gaps.append(Absence(key, before.until, after.since))
        if of_key[-1].until is not None:
            gaps.append(Absence(key, of_key[-1].until, None))
    return gaps


def format_position(value: int | None, axis: Axis) -> str:
    """A position on the axis as text; an open end is `open`."""
    if value is None:
        return "open"
    if axis == "bigint":
        return str(value)
    unit = "days" if axis == "date" else "microseconds"
    try:
        time = EPOCH + timedelta(**{unit: value})
    except OverflowError:  # a year that Python's dates do not have
        return f"{value} {unit} since 1970"
    if axis == "date":
        return time.date().isoformat()
    # Not strftime, which writes the year 1 without zeros.
    text = time.replace(tzinfo=None).isoformat(sep=" ")
    return text.rstrip("0") if time.microsecond else text
