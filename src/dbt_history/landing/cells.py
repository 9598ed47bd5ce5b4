"""Cells as text become values: markers first, then the cast. Whole columns at once, in Arrow."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass

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


def typed(text: pa.Array, type_: ColumnType, markers: Markers) -> Typed:
    """Cast a column of text. A cell is NULL, "unmodified" or a value, decided in this order."""
    unmodified = is_marker(text, markers.unmodified)
    null = is_marker(text, markers.null)
    for mask in (null, unmodified):
        if mask is not None:
            text = pc.if_else(mask, pa.scalar(None, pa.string()), text)
    values, wrong = cast(text, type_)
    return Typed(values, unmodified, wrong)


def is_marker(text: pa.Array, marker: str | None) -> pa.Array | None:
    """Which cells are the marker; None if no cell is."""
    if marker is None:
        return None
    mask = pc.fill_null(pc.equal(text, marker), False)
    return mask if pc.any(mask).as_py() else None


def cast(text: pa.Array, type_: ColumnType) -> tuple[pa.Array, list[int]]:
    """Values of the type, and the places of the cells that are none (NULL in the values)."""
    convert = CASTS[type_.name]
    try:
        return convert(text, type_.arrow), []
    except (pa.ArrowInvalid, ValueError):
        pass
    values, wrong = [], []
    for place in range(len(text)):
        try:
            values.append(convert(text.slice(place, 1), type_.arrow))
        except (pa.ArrowInvalid, ValueError):
            wrong.append(place)
            values.append(pa.nulls(1, type_.arrow))
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
    check_year(text)
    return pc.cast(text, arrow)


def to_time(text: pa.Array, arrow: pa.DataType) -> pa.Array:
    check(text, TIME)
    return pc.replace_substring_regex(text, BEYOND_MICROSECONDS, r"\1")


def to_naive(text: pa.Array, arrow: pa.DataType) -> pa.Array:
    check(text, NAIVE)
    check_year(text)
    return pc.cast(pc.replace_substring_regex(text, BEYOND_MICROSECONDS, r"\1"), arrow)


def to_instant(text: pa.Array, arrow: pa.DataType) -> pa.Array:
    check(text, INSTANT)
    check_year(text)
    text = pc.replace_substring_regex(text, BEYOND_MICROSECONDS, r"\1")
    has_zone = pc.match_substring_regex(text, ZONE + "$")
    return pc.cast(pc.if_else(has_zone, text, pc.binary_join_element_wise(text, "Z", "")), arrow)


def check_year(text: pa.Array) -> None:
    if pc.any(pc.starts_with(text, "0000")).as_py():
        raise ValueError("there is no year 0")


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


CASTS: dict[str, Callable[[pa.Array, pa.DataType], pa.Array]] = {
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
