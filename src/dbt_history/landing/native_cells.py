"""Casts the columns of a Parquet file, which may be text, bytes or native types.

A native value is refused if CSV would refuse its text, or if the cast would change it.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from dbt_history.landing.cells import CASTS, CastColumn, Convert, cast, cast_column, check_years
from dbt_history.landing.request import Markers
from dbt_history.landing.types import ColumnType


def cast_cells(cells: pa.Array, type_: ColumnType, markers: Markers) -> CastColumn:
    """Cast a column of any type that Arrow reads."""
    if is_text(cells.type):
        return cast_column(pc.cast(cells, pa.string()), type_, markers, CASTS[type_.name])
    if is_bytes(cells.type):
        return cast_column(pc.cast(cells, pa.binary()), type_, markers, from_bytes(type_))
    values, invalid = cast(cells, type_, from_native(type_))
    return CastColumn(values, None, invalid)


def is_text(type_: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_null(type_)
    )


def is_bytes(type_: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(type_)
        or pa.types.is_large_binary(type_)
        or pa.types.is_fixed_size_binary(type_)
    )


def from_bytes(type_: ColumnType) -> Convert:
    """Bytes stay bytes for BINARY; for other types they are text without the text annotation."""

    def convert(cells: pa.Array, arrow: pa.DataType) -> pa.Array:
        if pa.types.is_binary(arrow):
            return cells
        return CASTS[type_.name](pc.cast(cells, pa.string()), arrow)

    return convert


def from_native(type_: ColumnType) -> Convert:
    def convert(cells: pa.Array, arrow: pa.DataType) -> pa.Array:
        # Arrow casts an integer only to a decimal that holds every integer of its type, and a
        # decimal to one of more decimal places modulo 2^128.
        is_to_decimal = kind_of(cells.type) == "number" and pa.types.is_decimal(arrow)
        # Its cast of a decimal to a float is not the nearest one: 66023.68 -> 66023.68000000001.
        is_to_float = pa.types.is_decimal(cells.type) and pa.types.is_floating(arrow)
        if is_to_float or (is_to_decimal and cells.type != arrow):
            return CASTS[type_.name](number_text(cells), arrow)
        if pa.types.is_string(arrow):
            return CASTS[type_.name](pc.cast(cells, pa.string()), arrow)
        if kind_of(cells.type) != kind_of(arrow):
            raise ValueError("another kind of value")
        return to_time(cells, arrow) if kind_of(arrow) == "time" else to_number(cells, arrow)

    return convert


def number_text(cells: pa.Array) -> pa.Array:
    """Numbers as text; decimals without zeros at the end, with which they may exceed 38 digits.

    decimal(76, 38)   12.50000000000000000000000000000000000000 -> 12.5
                      1.0000000000000000000000000000000E-7      -> 1E-7
    """
    text = pc.cast(cells, pa.string())
    if not pa.types.is_decimal(cells.type):
        return text
    zeros = r"^(-?[0-9]+(\.[0-9]*[1-9])?)\.?0*(E.*)?$"
    return pc.replace_substring_regex(text, zeros, r"\1\3")


def kind_of(type_: pa.DataType) -> str:
    """Casts are allowed within a kind only: an integer is neither a time nor a boolean."""
    if pa.types.is_date(type_) or pa.types.is_timestamp(type_):
        return "time"
    if pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_):
        return "number"
    return str(type_)


def to_number(cells: pa.Array, arrow: pa.DataType) -> pa.Array:
    values = pc.cast(cells, arrow)
    if pa.types.is_floating(arrow):
        overflown = pc.and_not(pc.is_inf(values), pc.is_inf(cells))
        if pc.any(overflown).as_py():
            raise ValueError("out of range")
    return values


def to_time(cells: pa.Array, arrow: pa.DataType) -> pa.Array:
    """Truncate to microseconds. Raises ValueError if a date would lose a time of day."""
    if pa.types.is_timestamp(cells.type) and cells.type.unit == "ns":
        # In UTC: a local time of the hour that autumn repeats is ambiguous.
        utc = pc.cast(cells, pa.timestamp("ns", "UTC")) if cells.type.tz else cells
        floored = pc.cast(pc.floor_temporal(utc, unit="microsecond"), cells.type)
        # Arrow wraps the first microsecond of nanoseconds, in 1677, to the last one.
        if pc.any(pc.greater(floored, cells)).as_py():
            raise ValueError("out of range")
        cells = floored
    values = pc.cast(cells, arrow)
    if pa.types.is_date(arrow) and pa.types.is_timestamp(cells.type):
        midnights = pc.cast(pc.cast(values, pa.timestamp("us")), cells.type)
        if pc.any(pc.not_equal(midnights, cells)).as_py():
            raise ValueError("a time of day")
    return check_years(values)
