"""Conventions: the period columns of a history table and their rules.

The names, columns, open ends and gaps are those of the macro `convention`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

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


# The columns of Fivetran's tables.
FIVETRAN_START = "_fivetran_start"
FIVETRAN_END = "_fivetran_end"
FIVETRAN_ACTIVE = "_fivetran_active"
FIVETRAN_SYNCED = "_fivetran_synced"
FIVETRAN_DELETED = "_fivetran_deleted"


class ConventionError(ValueError):
    """A convention is unknown or invalid, or a table's columns match none."""


@dataclass(frozen=True)
class Convention:
    """Column names and rules of a history table.

    start, end   columns of the period; a log and an append-only table have no end
    active       column of the flag; None if the end alone marks an open version
    type         type of start and end
    open_end     the end of an open version, on the axis; None for NULL
    gap          distance from a closed end to the next start, on the axis
    version_id   column that orders versions of one key with the same start
    begins       SQL condition for rows of a log that begin a version

    On the axis, a timestamp is in microseconds and a date in days since 1970 UTC.
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
        """The columns of the period in lower case; all others are data columns."""
        names = (self.start, self.end, self.active, self.version_id)
        return {name.lower() for name in names if name}

    def is_endless(self, end: int | None) -> bool:
        """Whether an end is open: NULL, or `_first_open_end` of the macros or later.

        On an axis of times or days each end in the year 9999 or later is open.
        """
        open_ends = [] if self.open_end is None else [self.open_end]
        if self.type != "bigint":
            open_ends.append(on_axis("9999-01-01", self.type))
        return end is None or any(end >= open_end for open_end in open_ends)


KNOWN = {
    "fivetran": Convention(
        "fivetran",
        FIVETRAN_START,
        FIVETRAN_END,
        FIVETRAN_ACTIVE,
        open_end=253_402_300_799_999_000,
        gap=1_000,
    ),
    "validity": Convention("validity", "valid_from", "valid_to"),
    "naksha": Convention("naksha", "txn", "txn_next", type="bigint", version_id="i"),
    "dbt_snapshot": Convention("dbt_snapshot", "dbt_valid_from", "dbt_valid_to"),
    "auto_cdc": Convention("auto_cdc", "__START_AT", "__END_AT"),
}


def on_axis(value: Any, axis: Axis) -> int:
    """A value of the convention's type, such as '2099-12-31', as a number on the axis.

    A time is in UTC unless it names a zone.
    """
    if axis == "bigint":
        return int(value)
    time = instant(str(value))
    return (time - EPOCH) // (timedelta(days=1) if axis == "date" else timedelta(microseconds=1))


def instant(text: str) -> datetime:
    """A time as text, in UTC unless it names a zone. Raises ValueError."""
    time = datetime.fromisoformat(text.removesuffix(" UTC"))
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def gap_units(gap: Any, axis: Axis) -> int:
    """`1 millisecond`, `0`, `1 day` as a number on the axis."""
    found = re.fullmatch(r"(\d+)(?: ([a-z]+?)s?)?", str(gap).strip())
    if not found:
        raise ConventionError(f"gap is {gap}, expected 0 or a duration such as 1 millisecond")
    return int(found[1]) * (MICROS[found[2]] if axis == "timestamp" and found[2] else 1)


def is_none(value: Any) -> bool:
    """Whether a setting is none; in yml, `none` is a text."""
    return value is None or (isinstance(value, str) and value.strip().lower() == "none")


def history_settings(node: Mapping[str, Any]) -> dict[str, Any]:
    """`meta.history` of a dbt node as a mapping; a text is the name of a convention.

    Raises ConventionError for a list or a number.
    """
    value = (node["config"].get("meta") or {}).get("history")
    if isinstance(value, str) and value:
        return {"convention": value}
    if isinstance(value, dict):
        return value
    if value is None or isinstance(value, bool):
        return {}
    raise ConventionError(
        f"meta.history of {node['name']} is {value!r},"
        " expected the name of a convention, a mapping or true"
    )


def from_settings(settings: Mapping[str, Any]) -> Convention:
    """The convention that a model's `meta.history` names, with its overrides."""
    name = settings.get("convention") or ("own" if settings.get("start") else "fivetran")
    if name != "own" and name not in KNOWN:
        raise ConventionError(f"unknown convention {name}; known: {', '.join(KNOWN)}")
    base = KNOWN.get(name, Convention("own", "", None))
    axis: Axis = settings.get("type", base.type)
    # The axis of `validity` is one of times or of integers.
    if name == "validity" and "type" not in settings and type(settings.get("open_end")) is int:
        axis = "bigint"
    fields: dict[str, Any] = {"type": axis}
    fields |= {
        field: None if field == "active" and is_none(settings[field]) else settings[field]
        for field in ("start", "end", "active", "version_id")
        if field in settings
    }
    if "open_end" in settings:
        value = settings["open_end"]
        fields["open_end"] = None if is_none(value) else on_axis(value, axis)
    if "gap" in settings:
        fields["gap"] = gap_units(settings["gap"], axis)
    record = replace(base, **fields)
    is_append_only = bool(settings.get("append_only"))
    if is_append_only:
        record = replace(record, end=None, open_end=None)
    if not record.start or not (record.end or is_append_only):
        raise ConventionError("a custom convention must name its start and end columns")
    return record


def detect_log(columns: Mapping[str, str], table: str) -> Convention | None:
    """The convention of an `_hx` or event table: a row is valid until the record's next one."""
    if {"mod_time", "deleted"} <= columns.keys():
        own_id = f"{table.rpartition('.')[2]}_id".lower()
        begins = "not coalesce(deleted, false)"
        found = own_id if own_id in columns else None
        return Convention("hx", "mod_time", None, version_id=found, begins=begins)
    if {"_hist_event", "_hist_time"} <= columns.keys():
        begins = "cast(_hist_event as string) in ('1', '4', 'I', 'T')"
        return Convention("events", "_hist_time", None, version_id="_hist_trans_id", begins=begins)
    return None


def detect_convention(columns: Mapping[str, str], table: str) -> Convention:
    """Detect the convention of a table from its columns (lower-case name: Spark type)."""
    for known in KNOWN.values():
        if known.start in columns and known.end in columns:
            kind = columns[known.start]
            axis: Axis = "bigint" if kind in ("bigint", "int") else known.type
            return replace(known, type="date" if kind == "date" else axis)
    log = detect_log(columns, table)
    if log is None:
        raise ConventionError(f"{table} has no known period columns; pass --convention")
    return log


def split(names: str) -> list[str]:
    """`a, b` as a list of names."""
    return [name.strip() for name in names.split(",") if name.strip()]


def split_terms(text: str) -> list[str]:
    """`space=roads, id=7` as its terms; a comma that no `=` follows belongs to the value."""
    return re.split(",(?=[^,=]*=)", text)


def missing(columns: Iterable[str], wanted: Iterable[str]) -> list[str]:
    """The wanted columns that do not exist, compared without case."""
    existing = {column.lower() for column in columns}
    return [name for name in wanted if name.lower() not in existing]
