"""Cells as text become values: markers first, then the cast. Whole columns at once, in Arrow."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from dbt_history.landing.request import Markers
from dbt_history.landing.types import ColumnType

INTEGER = r"^[+-]?[0-9]+$"
DECIMAL = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?$"
FLOAT = r"(?i)^[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|nan|inf|infinity)$"
INFINITE = r"(?i)^[+-]?inf(inity)?$"
DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
CLOCK = r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,9})?)?"
ZONE = r"(Z|[+-][0-9]{2}:?[0-9]{2})"
TIME = rf"^{CLOCK}$"
NAIVE = rf"^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[T ]{CLOCK}$"
INSTANT = rf"^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[T ]{CLOCK}{ZONE}?$"
# Microseconds are what Spark keeps; what lies beyond is cut, not rounded.
BEYOND_MICROSECONDS = r"(\.[0-9]{6})[0-9]+"


@dataclass(frozen=True)
class Typed:
    """A column after the cast: its values, which cells keep their value, and the wrong cells."""

    values: pa.Array
    unmodified: pa.Array | None
    wrong: list[int]


# Values of an Arrow type, from an array of another type. Raises ValueError for what is none.
Convert = Callable[[pa.Array, pa.DataType], pa.Array]


def typed(cells: pa.Array, type_: ColumnType, markers: Markers, convert: Convert) -> Typed:
    """Cast a column of text or bytes. A cell is NULL, "unmodified" or a value, in this order."""
    unmodified = is_marker(cells, markers.unmodified)
    null = is_marker(cells, markers.null)
    for mask in (null, unmodified):
        if mask is not None:
            cells = pc.if_else(mask, pa.scalar(None, cells.type), cells)
    values, wrong = cast(cells, type_, convert)
    return Typed(values, unmodified, wrong)


def is_marker(cells: pa.Array, marker: str | None) -> pa.Array | None:
    """Which cells are the marker; None if no cell is."""
    if marker is None:
        return None
    wanted = pa.scalar(marker.encode()).cast(cells.type)
    mask = pc.fill_null(pc.equal(cells, wanted), False)
    return mask if pc.any(mask).as_py() else None


def cast(cells: pa.Array, type_: ColumnType, convert: Convert) -> tuple[pa.Array, list[int]]:
    """Values of the type, and the places of the cells that are none (NULL in the values)."""
    try:
        return convert(cells, type_.arrow), []
    except (pa.ArrowNotImplementedError, ValueError):
        pass
    values, wrong = [], []
    for place in range(len(cells)):
        value = pa.nulls(1, type_.arrow)
        if cells[place].is_valid:
            try:
                value = convert(cells.slice(place, 1), type_.arrow)
            except (pa.ArrowNotImplementedError, ValueError):
                wrong.append(place)
        values.append(value)
    return pa.concat_arrays(values), wrong


def check(text: pa.Array, pattern: str) -> None:
    """Arrow reads more than the contract writes (hexadecimal, for one)."""
    if not pc.all(pc.match_substring_regex(text, pattern), min_count=0).as_py():
        raise ValueError(pattern)


def to_boolean(text: pa.Array, arrow: pa.DataType) -> pa.Array:
    check(text, r"(?i)^(true|false)$")
    return pc.equal(pc.utf8_lower(text), "true")


def to_integer(text: pa.Array, arrow: pa.DataType) -> pa.Array:
    check(text, INTEGER)
    return pc.cast(pc.utf8_ltrim(text, "+"), arrow)


def to_decimal(text: pa.Array, arrow: pa.DataType) -> pa.Array:
    check(text, DECIMAL)
    return pc.cast(text, arrow)


def to_float(text: pa.Array, arrow: pa.DataType) -> pa.Array:
    check(text, FLOAT)
    values = pc.cast(text, arrow)
    overflown = pc.and_not(pc.is_inf(values), pc.match_substring_regex(text, INFINITE))
    if pc.any(overflown).as_py():
        raise ValueError("out of range")
    return values


def to_date(text: pa.Array, arrow: pa.DataType) -> pa.Array:
    check(text, DATE)
    return in_years(pc.cast(text, arrow))


def to_time(text: pa.Array, arrow: pa.DataType) -> pa.Array:
    check(text, TIME)
    return pc.replace_substring_regex(text, BEYOND_MICROSECONDS, r"\1")


def to_naive(text: pa.Array, arrow: pa.DataType) -> pa.Array:
    check(text, NAIVE)
    text = pc.replace_substring_regex(text, BEYOND_MICROSECONDS, r"\1")
    return in_years(pc.cast(text, arrow))


def to_instant(text: pa.Array, arrow: pa.DataType) -> pa.Array:
    check(text, INSTANT)
    text = pc.replace_substring_regex(text, BEYOND_MICROSECONDS, r"\1")
    has_zone = pc.match_substring_regex(text, ZONE + "$")
    text = pc.if_else(has_zone, text, pc.binary_join_element_wise(text, "Z", ""))
    return in_years(pc.cast(text, arrow))


def in_years(times: pa.Array) -> pa.Array:
    """The dates or timestamps as they are. Raises ValueError outside the years 1 to 9999 (UTC)."""
    naive = pa.timestamp("us") if pa.types.is_timestamp(times.type) else times.type
    first, last = (pa.scalar(limit, naive) for limit in (datetime.min, datetime.max))
    times_as_they_are = pc.cast(times, naive)
    is_outside = pc.or_(pc.less(times_as_they_are, first), pc.greater(times_as_they_are, last))
    if pc.any(is_outside).as_py():
        raise ValueError("outside the years 1 to 9999")
    return times


def to_binary(text: pa.Array, arrow: pa.DataType) -> pa.Array:
    try:
        decoded = [
            None if cell is None else base64.b64decode(cell, validate=True)
            for cell in text.to_pylist()
        ]
    except binascii.Error:
        raise ValueError("no base64") from None
    return pa.array(decoded, arrow)


def as_it_is(text: pa.Array, arrow: pa.DataType) -> pa.Array:
    return text


CASTS: dict[str, Convert] = {
    "BOOLEAN": to_boolean,
    "SHORT": to_integer,
    "INT": to_integer,
    "LONG": to_integer,
    "DECIMAL": to_decimal,
    "FLOAT": to_float,
    "DOUBLE": to_float,
    "NAIVE_DATE": to_date,
    "NAIVE_TIME": to_time,
    "NAIVE_DATETIME": to_naive,
    "UTC_DATETIME": to_instant,
    "BINARY": to_binary,
    "XML": as_it_is,
    "STRING": as_it_is,
    "JSON": as_it_is,
}
