"""Every assertion of the area `landing`, read by Spark's tasks, in an unusual time zone."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession

from dbt_history.landing.files import Limits, StoredFile
from dbt_history.landing.land import staged
from dbt_history.landing.request import Column, Markers, Request
from dbt_history.landing.rows import Source
from dbt_history.landing.types import ColumnType

PATH = Path(__file__).parent / "cases/landing/assertions.json"
ASSERTIONS = json.loads(PATH.read_text(encoding="utf-8"))["assertions"]
TYPES = {
    "int": ColumnType("INT"),
    "string": ColumnType("STRING"),
    "decimal": ColumnType("DECIMAL", 38, 10),
    "boolean": ColumnType("BOOLEAN"),
    "timestamp": ColumnType("UTC_DATETIME"),
    "date": ColumnType("NAIVE_DATE"),
    "binary": ColumnType("BINARY"),
}
STAGES = {"earliest": "earliest_start", "replace": "upsert", "update": "update", "delete": "delete"}


def write_file(folder: Path, name: str, given: dict[str, Any]) -> StoredFile:
    """Write a file of an assertion to disk."""
    path = folder / name
    if "text" in given:
        path.write_bytes(given["text"].encode())
    elif "base64" in given:
        path.write_bytes(base64.b64decode(given["base64"]))
    else:
        columns, rows = given["parquet"]["columns"], given["parquet"]["rows"]
        cells = {name: [row[place] for row in rows] for place, name in enumerate(columns)}
        arrow = {"int": pa.int32(), "string": pa.string(), "boolean": pa.bool_()}
        schema = pa.schema([(name, arrow[type_]) for name, type_ in columns.items()])
        pyarrow.parquet.write_table(pa.table(cells, schema), path)
    key = base64.b64decode(given["key"]) if given.get("encryption") == "aes" else None
    return StoredFile(name, str(folder), name, given.get("compression", "off").upper(), key)


def read(spark: SparkSession, folder: Path, given: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of an assertion's files, read by Spark, in order."""
    markers = Markers(given["null_string"], given["unmodified_string"])
    columns = tuple(Column(name, TYPES[type_]) for name, type_ in given["columns"].items())
    sources = [
        Source(
            file=write_file(folder, f"file_{place}", file),
            stage=STAGES[given["stage"]],
            place=place,
            columns=columns,
            key=(),
            markers=markers,
            batch=1,
            limits=Limits(),
            has_period=False,
        )
        for place, file in enumerate(given["files"], 1)
    ]
    request = Request("r", "s", "t", columns, (), (), "OFF", "NONE", markers)
    rows = staged(spark, request, sources).orderBy("_order").collect()
    return [row.asDict() for row in rows]


def expected_value(cell: Any, type_: str) -> Any:
    if isinstance(cell, dict):
        return None if "base64" not in cell else base64.b64decode(cell["base64"])
    if type_ == "timestamp" and cell is not None:
        return datetime.fromisoformat(cell).astimezone(UTC).replace(tzinfo=None)
    if type_ == "date" and cell is not None:
        return datetime.fromisoformat(cell).date()
    return Decimal(cell) if type_ == "decimal" and cell is not None else cell


@pytest.fixture(scope="module")
def odd_zone(spark: SparkSession) -> Iterator[SparkSession]:
    """A session with a time zone far from UTC; PySpark shows times in the process's zone, UTC."""
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    yield spark
    spark.conf.set("spark.sql.session.timeZone", str(before))


@pytest.mark.parametrize("case", ASSERTIONS, ids=[f"{a['id']} {a['title']}" for a in ASSERTIONS])
def test_files_give_their_expected_rows(
    case: dict[str, Any], odd_zone: SparkSession, tmp_path: Path
) -> None:
    given, expected = case["given"], case["expect"]["rows"]

    got = read(odd_zone, tmp_path, given)

    types = given["columns"]
    assert [{name: row[name] for name in types} for row in got] == [
        {name: expected_value(row[name], type_) for name, type_ in types.items()}
        for row in expected
    ]
    for row, wanted in zip(got, expected, strict=True):
        kept = {
            name
            for name, cell in wanted.items()
            if cell in ({"unmodified": True}, {"absent": True})
        }
        assert set(row["_unmodified"] or []) == kept
