"""Rows of the oracle (dicts) as tables and views of Spark, and back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tests.oracle.convention import Convention, Row

BOOKKEEPING = {
    "_stage": "string",
    "_batch": "bigint",
    "_order": "bigint",
    "_unmodified": "array<string>",
}


def column_types(columns: Iterable[str], convention: Convention) -> dict[str, str]:
    """Types of a history table's columns: the period's, boolean for the flag, else text.

    A version id other than the start is a bigint, `_fivetran_synced` a timestamp.
    """
    types = dict.fromkeys(columns, "string")
    known: dict[str, str] = {
        convention.version_id: "bigint",
        convention.start: convention.type,
        convention.end: convention.type,
        "_fivetran_synced": "timestamp",
    }
    if convention.active is not None:
        known[convention.active] = "boolean"
    return types | {name: type_ for name, type_ in known.items() if name in types}


def data_frame(
    spark: SparkSession, rows: Iterable[Mapping[str, Any]], types: Mapping[str, str]
) -> DataFrame:
    """Rows as a DataFrame with these columns; a missing cell is NULL.

    Simple values become SQL literals, which Spark reads without a Python worker.
    """
    cells = [tuple(row.get(name) for name in types) for row in rows]
    if not all(is_simple(value) for row in cells for value in row):
        schema = ", ".join(f"`{name}` {type_}" for name, type_ in types.items())
        return spark.createDataFrame(cells, schema)
    return spark.sql(select_of(cells, types))


def select_of(cells: Sequence[Sequence[Any]], types: Mapping[str, str]) -> str:
    """Rows of simple values as a SELECT with these columns."""
    if not cells:
        nulls = ", ".join(f"cast(null as {type_}) as `{name}`" for name, type_ in types.items())
        return f"select {nulls} where false"
    values = ", ".join("(" + ", ".join(map(literal, row)) + ")" for row in cells)
    places = ", ".join(f"c{place}" for place in range(len(types)))
    casts = ", ".join(
        f"cast(c{place} as {type_}) as `{name}`"
        for place, (name, type_) in enumerate(types.items())
    )
    return f"select {casts} from values {values} as staged({places})"


def is_simple(value: Any) -> bool:
    """Whether `literal` supports the value."""
    if isinstance(value, list):
        return all(isinstance(item, str) for item in value)
    return value is None or isinstance(value, str | bool | int | date)


def literal(value: Any) -> str:
    """A value as a literal of Spark SQL; times are UTC."""
    if value is None:
        return "null"
    if isinstance(value, bool | int):
        return str(value).lower()
    if isinstance(value, datetime):
        return f"timestamp'{value} UTC'"
    if isinstance(value, date):
        return f"date'{value}'"
    if isinstance(value, list):
        return f"cast(array({', '.join(map(literal, value))}) as array<string>)"
    return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'") + "'"


def as_counter(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> Counter[str]:
    """Rows without order, each with the number of its occurrences."""
    return Counter(repr([(name, row.get(name)) for name in columns]) for row in rows)


def assert_same_rows(
    got: Iterable[Row], expected: Iterable[Row], columns: Sequence[str], what: str = ""
) -> None:
    """Fail with the missing rows and the unexpected ones."""
    there, wanted = as_counter(got, columns), as_counter(expected, columns)
    missing, unexpected = wanted - there, there - wanted
    lines = [f"- {row}" for row in missing] + [f"+ {row}" for row in unexpected]
    assert not lines, what + "\n" + "\n".join(sorted(lines)[:20])


def settings(convention: Convention) -> dict[str, Any]:
    """A convention as `meta.history`, with all fields."""
    return {
        "start": convention.start,
        "end": convention.end,
        "active": convention.active,
        "type": convention.type,
        "open_end": text_of(convention.open_end),
        "gap": gap_of(convention),
        "version_id": convention.version_id,
    }


def gap_of(convention: Convention) -> str | int:
    """A gap as in yml: microseconds as text, days and integers as a number."""
    gap = convention.gap
    if not isinstance(gap, timedelta):
        return gap
    if convention.type == "date":
        return gap.days
    return f"{round(gap / timedelta(microseconds=1))} microseconds" if gap else 0


def text_of(value: Any) -> Any:
    """A time as in yml."""
    if isinstance(value, datetime | date):
        return str(value)
    return value
