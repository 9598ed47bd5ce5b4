"""The readers in plain Python: a period is [start, until), `until` is None while it is open.

    p overlaps q     they share an instant           touching periods do not
    p contains q     every instant of q is in p
    p precedes x     p has ended at x                its last instant is before x

An empty period holds no instant: it overlaps, contains and precedes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from .convention import Convention, Row, Time


@dataclass(frozen=True)
class Period:
    """[start, until); `until` None: without an end."""

    start: Time
    until: Time | None

    @property
    def is_empty(self) -> bool:
        return self.until is not None and bool(self.until <= self.start)

    def holds(self, instant: Time) -> bool:
        return bool(self.start <= instant) and (self.until is None or bool(instant < self.until))

    def overlaps(self, other: Period) -> bool:
        if self.is_empty or other.is_empty:
            return False
        return (other.until is None or self.start < other.until) and (
            self.until is None or other.start < self.until
        )

    def contains(self, other: Period) -> bool:
        if self.is_empty or other.is_empty:
            return False
        ends_first = self.until is not None and (other.until is None or other.until > self.until)
        return bool(self.start <= other.start) and not ends_first

    def precedes(self, instant: Time) -> bool:
        return not self.is_empty and self.until is not None and bool(self.until <= instant)


def period_of(row: Row, convention: Convention) -> Period:
    """The period of a stored version."""
    end = row[convention.end]
    return Period(
        row[convention.start], None if convention.is_endless(end) else end + convention.gap
    )


def visible(rows: Iterable[Row], convention: Convention) -> list[Row]:
    """The versions that contain an instant."""
    return [row for row in rows if not period_of(row, convention).is_empty]


def as_of(rows: Iterable[Row], at: Time, convention: Convention) -> list[Row]:
    """The versions in force at an instant."""
    return [row for row in rows if period_of(row, convention).holds(at)]


def doubled(
    rows: Iterable[Row], key: Sequence[str], convention: Convention
) -> list[tuple[Row, Row]]:
    """Pairs of versions of one key that overlap; a flag of NULL is ignored (rule 8).

    [ a -------)
            [ b -------)     both are in force at the start of b
    """
    versions = [
        (row, period_of(row, convention)) for row in rows if not convention.is_untouchable(row)
    ]
    return [
        (row, other)
        for (row, period), (other, another) in combinations(versions, 2)
        if all(row[name] == other[name] for name in key) and period.overlaps(another)
    ]


def changeset(
    rows: Iterable[Row], key: Sequence[str], first: Time, last: Time, convention: Convention
) -> list[Row]:
    """Starts and ends in [first, last): insert, delete, and the two images of an update."""
    found: list[tuple[str, Time, Row]] = []
    for row in rows:
        period = period_of(row, convention)
        if period.is_empty:
            continue
        if first <= period.start < last:
            found.append(("insert", period.start, row))
        if period.until is not None and first <= period.until < last:
            found.append(("delete", period.until, row))
    sides: dict[Any, set[str]] = {}
    for kind, at, row in found:
        sides.setdefault((*(row[name] for name in key), at), set()).add(kind)
    names = {"insert": "update_postimage", "delete": "update_preimage"}
    return [
        {
            "_change_type": names[kind]
            if len(sides[(*(row[name] for name in key), at)]) == 2
            else kind,
            "_changed_at": at,
            **row,
        }
        for kind, at, row in found
    ]


def refine(tables: Sequence[Iterable[Row]], key: str, convention: Convention) -> list[Row]:
    """All tables as one, `valid_from` to `valid_to`; position of a table to its row, or None.

    A period ends where any table's version of the key starts or ends; periods without a version in
    any table are left out.
    """
    versions = [
        [
            (row, period_of(row, convention))
            for row in rows
            if not period_of(row, convention).is_empty
        ]
        for rows in tables
    ]
    refined: list[Row] = []
    for value in sorted({row[key] for table in versions for row, _ in table}):
        mine = [[pair for pair in table if pair[0][key] == value] for table in versions]
        points = sorted(
            {period.start for table in mine for _, period in table}
            | {p.until for table in mine for _, p in table if p.until is not None}
        )
        for place, point in enumerate(points):
            there = [next((row for row, p in table if p.holds(point)), None) for table in mine]
            if any(row is not None for row in there):
                after = points[place + 1] if place + 1 < len(points) else None
                refined.append({key: value, "valid_from": point, "valid_to": after, "rows": there})
    return refined
