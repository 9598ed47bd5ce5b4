"""Conventions: which columns of a version table are its period (DESIGN, section 2).

A time is one value of the convention's type: a naive `datetime` in UTC with microseconds
(`timestamp`), an `int` (`bigint`) or a `date` (`date`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal, TypeAlias

Time: TypeAlias = Any
Gap: TypeAlias = timedelta | int
Row: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Convention:
    """Column names and rules of a version table.

    start, end   columns of the period
    active       column of the flag; None if an open end alone marks an open version
    type         type of start and end
    open_end     the end of an open version; None: NULL
    gap          distance between a closed end and the next start; 0: half-open
    version_id   column that orders versions of one key with the same start; default: the start
    """

    start: str
    end: str
    active: str | None
    type: Literal["timestamp", "bigint", "date"]
    open_end: Time | None
    gap: Gap
    version_id: str

    def columns(self) -> tuple[str, ...]:
        """The columns of the convention, without repetition."""
        names = (self.version_id, self.start, self.end, self.active)
        return tuple(dict.fromkeys(name for name in names if name is not None))

    def identity(self, row: Row) -> tuple[Time, Any]:
        """Identifies a version within its key, and orders versions: (start, version_id)."""
        return (row[self.start], row[self.version_id])

    def is_endless(self, end: Time | None) -> bool:
        """Whether an end means "until further notice": NULL, or at least the open end."""
        return end is None or (self.open_end is not None and bool(end >= self.open_end))

    def is_open(self, row: Row) -> bool:
        """Whether a version is open: active is true; without a flag, its end is endless."""
        if self.active is not None:
            return row[self.active] is True
        return self.is_endless(row[self.end])

    def is_untouchable(self, row: Row) -> bool:
        """A version whose flag is NULL; it is never closed, clipped, sealed or deleted (rule 8)."""
        return self.active is not None and row[self.active] is None


FIVETRAN = Convention(
    start="_fivetran_start",
    end="_fivetran_end",
    active="_fivetran_active",
    type="timestamp",
    open_end=datetime(9999, 12, 31, 23, 59, 59, 999000),
    gap=timedelta(milliseconds=1),
    version_id="_fivetran_start",
)
VALIDITY = Convention(
    start="valid_from",
    end="valid_to",
    active=None,
    type="timestamp",
    open_end=None,
    gap=timedelta(0),
    version_id="valid_from",
)
VALIDITY_BIGINT = Convention(
    start="valid_from",
    end="valid_to",
    active=None,
    type="bigint",
    open_end=None,
    gap=0,
    version_id="valid_from",
)
NAKSHA = Convention(
    start="txn",
    end="txn_next",
    active=None,
    type="bigint",
    open_end=None,
    gap=0,
    version_id="i",
)
DBT_SNAPSHOT = Convention(
    start="dbt_valid_from",
    end="dbt_valid_to",
    active=None,
    type="timestamp",
    open_end=None,
    gap=timedelta(0),
    version_id="dbt_valid_from",
)
AUTO_CDC = replace(DBT_SNAPSHOT, start="__START_AT", end="__END_AT", version_id="__START_AT")

CONVENTIONS: dict[str, Convention] = {
    "fivetran": FIVETRAN,
    "validity": VALIDITY,
    "validity_bigint": VALIDITY_BIGINT,
    "naksha": NAKSHA,
    "dbt_snapshot": DBT_SNAPSHOT,
}
