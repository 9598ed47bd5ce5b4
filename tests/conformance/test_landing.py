"""Every assertion of the area `landing`: read by Spark's tasks in an unusual time zone, through
`dbt-history land`, and over gRPC through `dbt-history serve`."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from google.protobuf.json_format import ParseDict
from pyspark.sql import SparkSession

from dbt_history.landing import LandingTable, land, parse_request
from dbt_history.landing.files import Limits, StoredFile
from dbt_history.landing.land import staged
from dbt_history.landing.request import Column, Markers, Request
from dbt_history.landing.rows import Source
from dbt_history.landing.types import ColumnType
from dbt_history.landing.writer import LISTS
from dbt_history.serve import destination_pb2 as pb
from tests.support.destination import NUMBERS, Served, served
from tests.support.project import drop_schema

SCHEMA = "tests_landing_cases"
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


def with_room(type_: ColumnType, cells: Iterable[Any]) -> ColumnType:
    """The type; a decimal has 10 places, or as many as its cells need."""
    if type_.name != "DECIMAL":
        return type_
    parts = [f"{cell.copy_abs():f}".partition(".") for cell in cells if cell is not None]
    places = max((len(fraction) for _, _, fraction in parts), default=0)
    free = 38 - max((len(whole.lstrip("0")) for whole, _, _ in parts), default=0)
    return ColumnType("DECIMAL", 38, max(places, min(10, free)))


def types_of(case: dict[str, Any]) -> dict[str, ColumnType]:
    """The columns of a case; decimals have room for its cells."""
    rows = case["expect"]["rows"]
    return {
        name: with_room(TYPES[type_], [expected_value(row[name], type_) for row in rows])
        for name, type_ in case["given"]["columns"].items()
    }


def write_file(folder: Path, name: str, given: dict[str, Any]) -> StoredFile:
    """Write a file of an assertion to disk."""
    path = folder / name
    if "text" in given:
        path.write_bytes(given["text"].encode())
    elif "base64" in given:
        path.write_bytes(base64.b64decode(given["base64"]))
    else:
        columns, rows = given["parquet"]["columns"], given["parquet"]["rows"]
        cells = {
            name: [expected_value(row[place], type_) for row in rows]
            for place, (name, type_) in enumerate(columns.items())
        }
        schema = pa.schema(
            [(name, with_room(TYPES[type_], cells[name]).arrow) for name, type_ in columns.items()]
        )
        pyarrow.parquet.write_table(pa.table(cells, schema), path)
    key = base64.b64decode(given["key"]) if given.get("encryption") == "aes" else None
    return StoredFile(name, str(folder), name, given.get("compression", "off").upper(), key)


def read(spark: SparkSession, folder: Path, case: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of an assertion's files, read by Spark, in order."""
    given = case["given"]
    markers = Markers(given["null_string"], given["unmodified_string"])
    columns = tuple(Column(name, type_) for name, type_ in types_of(case).items())
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

    got = read(odd_zone, tmp_path, case)

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
        # Rows of other stages keep no values: what their file lacks is NULL.
        assert set(row["_unmodified"] or []) == (kept if given["stage"] == "update" else set())


# -- through the command and over gRPC -------------------------------------------------------------

PERIOD = {"_fivetran_start", "_fivetran_end", "_fivetran_active"}
START, END = "2020-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z"
# A value of each type in the rows before the files.
BASE = {
    "string": "before",
    "decimal": "0",
    "boolean": "true",
    "timestamp": START,
    "date": "2020-01-01",
    "binary": "AA==",
}
# L14 has markers in cells of three types; the other cases run with make test-all.
ONCE = "L14"
PLAYED = [
    pytest.param(case, id=case["id"], marks=() if case["id"] == ONCE else pytest.mark.thorough)
    for case in ASSERTIONS
]


@pytest.fixture(scope="module")
def server(
    spark: SparkSession, warehouse: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("cases"), SCHEMA) as running:
        yield running
    drop_schema(spark, SCHEMA, warehouse)


def contract_column(name: str, type_: ColumnType) -> dict[str, Any]:
    column: dict[str, Any] = {"name": name, "type": type_.name, "primary_key": name == "id"}
    if type_.name == "DECIMAL":
        column["params"] = {"decimal": {"precision": type_.precision, "scale": type_.scale}}
    return column


def document_of(folder: Path, table: str, case: dict[str, Any]) -> dict[str, Any]:
    """The request of an assertion; the files of a request have one compression."""
    given = case["given"]
    files = [write_file(folder, f"{table}_{n}", file) for n, file in enumerate(given["files"])]
    compressions = {file.compression for file in files}
    assert len(compressions) == 1
    keys = {file.name: base64.b64encode(file.key).decode() for file in files if file.key}
    return {
        "schema_name": SCHEMA,
        "table": {
            "name": table,
            "columns": [contract_column(*column) for column in types_of(case).items()],
        },
        "keys": keys,
        LISTS[STAGES[given["stage"]]]: [file.name for file in files],
        "file_params": {
            "compression": compressions.pop(),
            "encryption": "AES" if keys else "NONE",
            "null_string": given["null_string"],
            "unmodified_string": given["unmodified_string"],
        },
    }


def values(case: dict[str, Any], base: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """The expected rows; cells that are unmodified or absent keep the value of the base."""
    types, found = case["given"]["columns"], []
    for row in case["expect"]["rows"]:
        kept = {n for n, cell in row.items() if cell in ({"unmodified": True}, {"absent": True})}
        assert base is not None or not kept
        found.append({
            name: (base or {})[name] if name in kept else expected_value(row[name], type_)
            for name, type_ in types.items()
        })  # fmt: skip
    return found


def base_value(text: str, type_: str) -> Any:
    """The value of a cell of the rows before the files; ids differ and are never kept."""
    if type_ == "boolean":
        return text == "true"
    return expected_value({"base64": text} if type_ == "binary" else text, type_)


@pytest.mark.parametrize("case", PLAYED)
def test_files_arrive_in_a_landing_table_and_in_a_table_over_grpc(
    case: dict[str, Any], server: Served
) -> None:
    given, types = case["given"], case["given"]["columns"]
    table, root = f"case_{case['id'].lower()}", server.destination.root
    spark, has_period = server.destination.spark, bool(PERIOD & types.keys())
    document = document_of(root, table, case)
    ids = sorted(row["id"] for row in case["expect"]["rows"])

    landing = LandingTable(spark, SCHEMA, f"{table}_by_command")
    request = parse_request(document, "the case", has_period=has_period)
    assert land(spark, request, root, landing).is_new
    landed = spark.table(landing.full_name).orderBy("_order").collect()
    assert [row.id for row in landed] == [row["id"] for row in case["expect"]["rows"]]

    # Over gRPC. Every record of the files has a version before, and a further record has one.
    message = pb.WriteHistoryBatchRequest if has_period else pb.WriteBatchRequest
    call = message.DESCRIPTOR.name.removesuffix("Request")
    before = {**types, **(dict.fromkeys(PERIOD, "timestamp") if has_period else {})}
    if has_period:
        before["_fivetran_active"] = "boolean"
    cells = {name: BASE.get(type_, "") for name, type_ in before.items()}
    cells |= {"_fivetran_end": END} if has_period else {}
    header, rows = list(before), []
    for key in [*ids, 99]:
        rows.append([str(key) if name == "id" else cells[name] for name in header])
    first = server.request(table, {})
    first.add_csv("upsert", f"base_{next(NUMBERS)}.csv", header, rows)
    base_document = first.document()
    columns = {name: TYPES[type_] for name, type_ in before.items()} | types_of(case)
    base_document["table"]["columns"] = [contract_column(*column) for column in columns.items()]
    for sent in (base_document, document):
        answer = server.client.call(call, ParseDict(sent, message()))
        assert answer.success, answer

    found = {
        (row["id"], row["_fivetran_active"] if has_period else True): row.asDict()
        for row in spark.table(f"{SCHEMA}.{table}").collect()
    }
    base = {name: base_value(text, types[name]) for name, text in cells.items() if name in types}
    assert (99, True) in found
    if given["stage"] == "earliest":
        # The versions before end there: nothing is open.
        for row in values(case):
            closed = found[row["id"], False]
            assert closed["_fivetran_end"] == row["_fivetran_start"] - timedelta(milliseconds=1)
            assert (row["id"], True) not in found
        return
    for row in values(case, base):
        got = found[row["id"], True]
        assert {name: got[name] for name in types} == row
    assert sum(is_active for _, is_active in found) == len(ids) + 1
