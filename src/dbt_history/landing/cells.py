"""Casts columns of text to Arrow arrays, after replacing the NULL and unmodified markers."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from dbt_history.landing.request import Markers
from dbt_history.landing.types import MAX_PRECISION, ColumnType

BOOLEAN = r"(?i)^(true|false)$"
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
# Spark stores microseconds; further digits are truncated, not rounded.
BEYOND_MICROSECONDS = r"(\.[0-9]{6})[0-9]+"


@dataclass(frozen=True)
class CastColumn:
    """A cast column: its values, the mask of unmodified cells, the indexes of invalid cells."""

    values: pa.Array
    unmodified: pa.Array | None
    invalid: list[int]


# Converts an array to an Arrow type. Raises ValueError if a value does not fit the type.
Convert = Callable[[pa.Array, pa.DataType], pa.Array]


def cast_column(
    cells: pa.Array, type_: ColumnType, markers: Markers, convert: Convert
) -> CastColumn:
    """Cast a column of text or bytes. The NULL marker is tested first, then unmodified."""
    unmodified = is_marker(cells, markers.unmodified)
    null = is_marker(cells, markers.null)
    for mask in (null, unmodified):
        if mask is not None:
            cells = pc.if_else(mask, pa.scalar(None, cells.type), cells)
    values, invalid = cast(cells, type_, convert)
    return CastColumn(values, unmodified, invalid)


def is_marker(cells: pa.Array, marker: str | None) -> pa.Array | None:
    """Mask of the cells that equal the marker; None if there are none."""
    if marker is None:
        return None
    wanted = pa.scalar(marker.encode()).cast(cells.type)
    mask = pc.fill_null(pc.equal(cells, wanted), False)
    return mask if pc.any(mask).as_py() else None


def cast(cells: pa.Array, type_: ColumnType, convert: Convert) -> tuple[pa.Array, list[int]]:
    """The values, and the indexes of cells that cannot be cast (NULL in the values)."""
    try:
        return convert(cells, type_.arrow), []
    except (pa.ArrowNotImplementedError, ValueError):
        pass
    values, invalid = [], []
    for index in range(len(cells)):
        value = pa.nulls(1, type_.arrow)
        if cells[index].is_valid:
            try:
                value = convert(cells.slice(index, 1), type_.arrow)
            except (pa.ArrowNotImplementedError, ValueError):
                invalid.append(index)
        values.append(value)
    return pa.concat_arrays(values), invalid


def check_pattern(text: pa.Array, pattern: str) -> None:
    """Raise ValueError for text that Arrow accepts but the contract does not, such as 0x1F."""
    if not pc.all(pc.match_substring_regex(text, pattern), min_count=0).as_py():
        raise ValueError(pattern)


def to_boolean(text: pa.Array, arrow: pa.DataType) -> pa.Array:
    check_pattern(text, BOOLEAN)
    return pc.equal(pc.utf8_lower(text), "true")


def to_integer(text: pa.Array, arrow: pa.DataType) -> pa.Array:
    check_pattern(text, INTEGER)
    return pc.cast(pc.utf8_ltrim(text, "+"), arrow)


def to_decimal(text: pa.Array, arrow: pa.DataType) -> pa.Array:
    """Arrow computes modulo 2^128, so cells that may exceed it are compared exactly.

    340282366920938463463374607431768211457   2^128 + 1, which Arrow casts to 1
    5e35                                      as DECIMAL(38, 10): 5 * 10^45 units
    """
    check_pattern(text, DECIMAL)
    values = pc.cast(text, arrow)
    is_long = pc.greater(pc.binary_length(text), MAX_PRECISION - arrow.scale)
    may_exceed = pc.or_(is_long, pc.match_substring(text, "e", ignore_case=True))
    exact = map(Decimal, pc.filter(text, may_exceed).to_pylist())
    if list(exact) != pc.filter(values, may_exceed).to_pylist():
        raise ValueError("out of range")
    return values


def to_float(text: pa.Array, arrow: pa.DataType) -> pa.Array:
    check_pattern(text, FLOAT)
    values = pc.cast(text, arrow)
    overflown = pc.and_not(pc.is_inf(values), pc.match_substring_regex(text, INFINITE))
    if pc.any(overflown).as_py():
        raise ValueError("out of range")
    return values


def to_date(text: pa.Array, arrow: pa.DataType) -> pa.Array:
    check_pattern(text, DATE)
    return check_years(pc.cast(text, arrow))


def to_time(text: pa.Array, arrow: pa.DataType) -> pa.Array:
    check_pattern(text, TIME)
    return pc.replace_substring_regex(text, BEYOND_MICROSECONDS, r"\1")


def to_naive(text: pa.Array, arrow: pa.DataType) -> pa.Array:
    check_pattern(text, NAIVE)
    text = pc.replace_substring_regex(text, BEYOND_MICROSECONDS, r"\1")
    return check_years(pc.cast(text, arrow))


def to_instant(text: pa.Array, arrow: pa.DataType) -> pa.Array:
    check_pattern(text, INSTANT)
    text = pc.replace_substring_regex(text, BEYOND_MICROSECONDS, r"\1")
    has_zone = pc.match_substring_regex(text, ZONE + "$")
    text = pc.if_else(has_zone, text, pc.binary_join_element_wise(text, "Z", ""))
    return check_years(pc.cast(text, arrow))


def check_years(times: pa.Array) -> pa.Array:
    """Return the dates or timestamps. Raises ValueError outside the years 1 to 9999 (UTC)."""
    naive = pa.timestamp("us") if pa.types.is_timestamp(times.type) else times.type
    first, last = (pa.scalar(limit, naive) for limit in (datetime.min, datetime.max))
    naive_times = pc.cast(times, naive)
    is_outside = pc.or_(pc.less(naive_times, first), pc.greater(naive_times, last))
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


def unchanged(text: pa.Array, arrow: pa.DataType) -> pa.Array:
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
    "XML": unchanged,
    "STRING": unchanged,
    "JSON": unchanged,
}
