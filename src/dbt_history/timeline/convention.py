"""Conventions: which columns of a table carry its periods, and how.

The same names, columns, ends and gaps as the macro `convention` knows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from dbt_history.timeline.errors import TimelineError

Axis = Literal["timestamp", "bigint", "date"]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
}


@dataclass(frozen=True)
class Convention:
    """Column names and rules of a history table.

    start, end   columns of the period; a log has no end
    active       column of the flag, None where the end alone tells an open version
    type         type of start and end
    open_end     the end of an open version, on the axis; None: NULL
    gap          how far a closed end lies before the end of the period, on the axis
    version_id   column that orders versions of one key that start together
    begins       of a log: SQL, true for a row that begins a version

    On the axis a timestamp is microseconds since 1970 UTC, a date is days since then.
    """

    name: str
    start: str
    end: str | None
    active: str | None = None
    type: Axis = "timestamp"
    open_end: int | None = None
    gap: int = 0
    version_id: str | None = None
    begins: str | None = None

    def bookkeeping(self) -> set[str]:
        """The columns that say when, in lower case; all others say what."""
        names = (self.start, self.end, self.active, self.version_id)
        return {name.lower() for name in names if name}


KNOWN = {
    "fivetran": Convention(
        "fivetran",
        "_fivetran_start",
        "_fivetran_end",
        "_fivetran_active",
        open_end=253_402_300_799_999_000,
        gap=1_000,
    ),
    "validity": Convention("validity", "valid_from", "valid_to"),
    "naksha": Convention("naksha", "txn", "txn_next", type="bigint", version_id="i"),
    "dbt_snapshot": Convention("dbt_snapshot", "dbt_valid_from", "dbt_valid_to"),
}


def on_axis(value: Any, axis: Axis) -> int:
    """A value of the convention's type, such as '2099-12-31', as a number on the axis."""
    if axis == "bigint":
        return int(value)
    time = datetime.fromisoformat(str(value)).replace(tzinfo=UTC)
    return (time - EPOCH) // (timedelta(days=1) if axis == "date" else timedelta(microseconds=1))


def gap_units(gap: Any, axis: Axis) -> int:
    """`1 millisecond`, `0`, `1 day` as a number on the axis."""
    found = re.fullmatch(r"(\d+)(?: ([a-z]+?)s?)?", str(gap).strip())
    if not found:
        raise TimelineError(f"gap is {gap}: 0, or such as 1 millisecond")
    return int(found[1]) * (MICROS[found[2]] if axis == "timestamp" and found[2] else 1)


def from_settings(settings: Mapping[str, Any]) -> Convention:
    """The convention that a model's `meta.history` names, with what it overrides."""
    name = settings.get("convention") or ("own" if settings.get("start") else "fivetran")
    if name != "own" and name not in KNOWN:
        raise TimelineError(f"no convention is called {name}; known: {', '.join(KNOWN)}")
    base = KNOWN.get(name, Convention("own", "", None))
    axis: Axis = settings.get("type", base.type)
    fields: dict[str, Any] = {"type": axis}
    fields |= {
        field: settings[field]
        for field in ("start", "end", "active", "version_id")
        if field in settings
    }
    if "open_end" in settings:
        value = settings["open_end"]
        fields["open_end"] = None if value is None else on_axis(value, axis)
    if "gap" in settings:
        fields["gap"] = gap_units(settings["gap"], axis)
    record = replace(base, **fields)
    if not record.start or not record.end:
        raise TimelineError("a convention of one's own names its start and end columns")
    return record


def log_of(columns: Mapping[str, str], table: str) -> Convention | None:
    """An `_hx` or event table, read as versions: each row lasts until the record's next one."""
    if {"mod_time", "deleted"} <= columns.keys():
        own_id = f"{table.rpartition('.')[2]}_id".lower()
        begins = "not coalesce(deleted, false)"
        found = own_id if own_id in columns else None
        return Convention("hx", "mod_time", None, version_id=found, begins=begins)
    if {"_hist_event", "_hist_time"} <= columns.keys():
        begins = "cast(_hist_event as string) in ('1', '4', 'I', 'T')"
        return Convention("events", "_hist_time", None, version_id="_hist_trans_id", begins=begins)
    return None


def found_in(columns: Mapping[str, str], table: str) -> Convention:
    """Tell the convention of a table by its columns (lower case name: Spark's type)."""
    for known in KNOWN.values():
        if known.start in columns and known.end in columns:
            kind = columns[known.start]
            axis: Axis = "bigint" if kind in ("bigint", "int") else known.type
            return replace(known, type="date" if kind == "date" else axis)
    log = log_of(columns, table)
    if log is None:
        raise TimelineError(
            f"{table} has none of the known period columns: name its convention with --convention"
        )
    return log


def split(names: str) -> list[str]:
    """`a, b` as a list of names."""
    return [name.strip() for name in names.split(",") if name.strip()]


def missing(columns: Iterable[str], wanted: Iterable[str]) -> list[str]:
    """The wanted columns that are not there, whatever the case of their letters."""
    there = {column.lower() for column in columns}
    return [name for name in wanted if name.lower() not in there]
