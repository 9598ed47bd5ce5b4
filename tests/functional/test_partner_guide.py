"""What the partner guide asks of each call, over gRPC. docs/guides/landing.md names the tests."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from pyspark.sql import SparkSession

from dbt_history.landing.writer import NULL
from dbt_history.serve import destination_pb2 as pb
from tests.support.destination import Served, served
from tests.support.project import drop_schema
from tests.support.selection import thorough
from tests.support.writer import batch, history_batch, table

SCHEMA = "tests_guide"
END = "9999-12-31T23:59:59.999Z"
PERIOD = ("_fivetran_start", "_fivetran_end", "_fivetran_active")
LIVE = {"id": "INT", "name": "STRING", "_fivetran_synced": "UTC_DATETIME"}
HISTORY = {
    **LIVE,
    "_fivetran_start": "UTC_DATETIME",
    "_fivetran_end": "UTC_DATETIME",
    "_fivetran_active": "BOOLEAN",
}


@pytest.fixture(scope="module")
def server(
    spark: SparkSession, warehouse: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("batches"), SCHEMA) as running:
        yield running
    drop_schema(spark, SCHEMA, warehouse)


def day(number: int) -> str:
    return f"2024-01-{number:02}T00:00:00Z"


# -- types -----------------------------------------------------------------------------------------

TYPES = {
    "id": "LONG",
    "flag": "BOOLEAN",
    "small": "SHORT",
    "whole": "INT",
    "fine": ("DECIMAL", 38, 37),
    "wide": ("DECIMAL", 38, 0),
    "single": "FLOAT",
    "twice": "DOUBLE",
    "day": "NAIVE_DATE",
    "time": "NAIVE_TIME",
    "local": "NAIVE_DATETIME",
    "instant": "UTC_DATETIME",
    "bytes": "BINARY",
    "xml": "XML",
    "text": "STRING",
    "json": "JSON",
}
ODD = '"a"", \\ NULL\r\n👍 unmodified {{ 1/0 }} \'; drop'
# The text of a cell and its value. Rows: the smallest values, the largest ones, others.
EDGES: dict[str, list[tuple[str, Any]]] = {
    "id": [("-9223372036854775808", -(2**63)), ("9223372036854775807", 2**63 - 1), ("0", 0)],
    "flag": [("false", False), ("true", True), ("true", True)],
    "small": [("-32768", -32768), ("32767", 32767), ("0", 0)],
    "whole": [("-2147483648", -(2**31)), ("2147483647", 2**31 - 1), ("-0", 0)],
    "fine": [
        ("-9." + "9" * 37, Decimal("-9." + "9" * 37)),
        ("9." + "9" * 37, Decimal("9." + "9" * 37)),
        ("1E-37", Decimal("1E-37")),
    ],
    "wide": [
        ("-" + "9" * 38, Decimal("-" + "9" * 38)),
        ("9" * 38, Decimal("9" * 38)),
        ("1E+3", Decimal(1000)),
    ],
    "single": [
        ("-3.4028235E38", -3.4028234663852886e38),
        ("1.4E-45", 1.401298464324817e-45),
        ("NaN", math.nan),
    ],
    "twice": [
        ("-1.7976931348623157E308", -1.7976931348623157e308),
        ("4.9E-324", 5e-324),
        ("-Infinity", -math.inf),
    ],
    "day": [
        ("0001-01-01", date.min),
        ("9999-12-31", date.max),
        ("2024-02-29", date(2024, 2, 29)),
    ],
    "time": [
        ("00:00:00", "00:00:00"),
        ("23:59:59.999999", "23:59:59.999999"),
        ("10:15:30", "10:15:30"),
    ],
    "local": [
        ("0001-01-01T00:00:00", datetime.min),
        ("9999-12-31T23:59:59.999999", datetime.max),
        ("2007-12-03T10:15:30", datetime(2007, 12, 3, 10, 15, 30)),
    ],
    "instant": [
        ("1583-01-01T00:00:00Z", datetime(1583, 1, 1)),
        ("9999-12-31T23:59:59.999999Z", datetime.max),
        ("2007-12-03T10:15:30.123Z", datetime(2007, 12, 3, 10, 15, 30, 123000)),
    ],
    "bytes": [("", b""), ("AP8=", b"\x00\xff"), (base64.b64encode(b"\n").decode(), b"\n")],
    "xml": [("", ""), ("<a b='c'/>", "<a b='c'/>"), ("<x>\n</x>", "<x>\n</x>")],
    "text": [("", ""), (ODD, ODD), ("NULL", "NULL")],
    "json": [("{}", "{}"), ('{"a": 123}', '{"a": 123}'), ("null", "null")],
}
# What the guide's table of Parquet types sends natively; the other types are text.
NATIVE = {
    "id": pa.int64(),
    "flag": pa.bool_(),
    "small": pa.int32(),
    "whole": pa.int32(),
    "fine": pa.decimal128(38, 37),
    "wide": pa.decimal128(38, 0),
    "single": pa.float32(),
    "twice": pa.float64(),
    "bytes": pa.binary(),
}


NULLS = ["7", *[NULL] * (len(TYPES) - 1)]


def csv_rows() -> list[list[str]]:
    rows = [[EDGES[name][place][0] for name in TYPES] for place in range(3)]
    return [*rows, NULLS]


def as_parquet() -> bytes:
    """The edge values in their native types, and a row of nulls."""
    columns = {}
    for name, edges in EDGES.items():
        last = 7 if name == "id" else None
        place = 1 if name in NATIVE else 0
        cells = [*(edge[place] for edge in edges), last]
        columns[name] = pa.array(cells, NATIVE.get(name, pa.string()))
    sink = pa.BufferOutputStream()
    pyarrow.parquet.write_table(pa.table(columns), sink)
    return bytes(sink.getvalue().to_pybytes())


def comparable(row: tuple[Any, ...]) -> list[Any]:
    """NaN is unequal to itself, and Spark's bytes are a bytearray."""
    cells = (bytes(cell) if isinstance(cell, bytearray) else cell for cell in row)
    return ["NaN" if isinstance(cell, float) and math.isnan(cell) else cell for cell in cells]


@pytest.mark.parametrize("form", ["PARQUET", thorough("CSV")])
def test_every_type_with_its_edge_values_arrives_as_it_was_sent(form: str, server: Served) -> None:
    name = f"types_{form.lower()}"
    is_csv = form == "CSV"
    columns = {**(HISTORY if is_csv else {}), **TYPES}
    writer = server.request(name, columns, compression="ZSTD", is_encrypted=True)
    creation = pb.CreateTableRequest(schema_name=SCHEMA, table=table(writer))
    assert server.client.call("CreateTable", creation).success
    if is_csv:
        header = [*TYPES, "name", "_fivetran_synced", *PERIOD]
        rows = [[*row, NULL, day(1), day(1), END, "true"] for row in csv_rows()]
        # The order of a file's columns says nothing.
        turned = [row[::-1] for row in rows]
        writer.add_csv("upsert", "u.csv", header[::-1], turned)
        assert server.client.write(writer).success
    else:
        writer.add("upsert", "u.parquet", as_parquet())
        assert server.client.call("WriteBatch", batch(writer)).success

    found = server.rows(name, ", ".join(f"`{column}`" for column in TYPES))
    wanted = [tuple(EDGES[column][place][1] for column in TYPES) for place in range(3)]
    wanted.append((7, *[None] * (len(TYPES) - 1)))
    wanted.sort(key=lambda row: row[0])
    assert [comparable(row) for row in found] == [comparable(row) for row in wanted]
    asked = pb.DescribeTableRequest(schema_name=SCHEMA, table_name=name)
    described = server.client.call("DescribeTable", asked).table.columns
    assert {
        column.name: (pb.DataType.Name(column.type), column.params.decimal.precision,
                      column.params.decimal.scale)
        for column in described if column.name in TYPES
    } == {
        column: (type_, 0, 0) if isinstance(type_, str) else type_
        for column, type_ in TYPES.items()
    }  # fmt: skip
    assert {c.name for c in described if c.primary_key} == (
        {"id", "_fivetran_start"} if is_csv else {"id"}
    )


def test_an_unspecified_type_is_refused_in_every_call(server: Served) -> None:
    writer = server.request("untyped", {"id": "INT", "odd": "UNSPECIFIED"})
    writer.add_csv("upsert", "u.csv", ["id", "odd"], [["1", "x"]])
    column = {"column": "odd", "default_value": "x"}
    in_history = pb.AddColumnInHistoryMode(**column, operation_timestamp=day(1))
    with_default = pb.AddColumnWithDefaultValue(**column)
    client = server.client
    answers = [
        client.call("CreateTable", pb.CreateTableRequest(schema_name=SCHEMA, table=table(writer))),
        client.call("AlterTable", pb.AlterTableRequest(schema_name=SCHEMA, table=table(writer))),
        client.call("WriteBatch", batch(writer)),
        client.call("WriteHistoryBatch", history_batch(writer)),
        client.migrate(SCHEMA, "untyped", add=pb.AddOperation(
            add_column_in_history_mode=in_history)),
        client.migrate(SCHEMA, "untyped", add=pb.AddOperation(
            add_column_with_default_value=with_default)),
    ]  # fmt: skip

    for answer in answers:
        assert "column odd" in answer.task.message
        assert "UNSPECIFIED" in answer.task.message
    assert not server.destination.spark.catalog.tableExists(f"{SCHEMA}.untyped")


# -- tables ----------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_alter_table_changes_the_key_and_the_type_of_a_key_column(server: Served) -> None:
    first = server.request("altered", LIVE)
    first.add_csv("upsert", "u.csv", list(LIVE), [["1", "a", day(1)], ["2", "b", day(1)]])
    assert server.client.call("WriteBatch", batch(first)).success

    # The key gets a second column, and a wider type; no column is dropped.
    wider = {"id": "LONG", "name": "STRING"}
    second = server.request("altered", wider, key=["id", "name"])
    change = pb.AlterTableRequest(schema_name=SCHEMA, table=table(second))
    assert server.client.call("AlterTable", change).success
    second.columns = {**wider, "_fivetran_synced": "UTC_DATETIME"}
    second.add_csv("upsert", "u.csv", list(LIVE), [["1", "z", day(2)], ["5000000000", "c", day(2)]])
    second.add_csv("delete", "d.csv", ["id", "name"], [["2", "b"], ["1", "other"]])
    assert server.client.call("WriteBatch", batch(second)).success
    assert server.rows("altered", "id, name", "id, name") == [
        (1, "a"), (1, "z"), (5_000_000_000, "c"),
    ]  # fmt: skip
    asked = pb.DescribeTableRequest(schema_name=SCHEMA, table_name="altered")
    columns = server.client.call("DescribeTable", asked).table.columns
    assert [(c.name, pb.DataType.Name(c.type), c.primary_key) for c in columns] == [
        ("id", "LONG", True), ("name", "STRING", True), ("_fivetran_synced", "UTC_DATETIME", False),
    ]  # fmt: skip


@pytest.mark.thorough
def test_a_new_key_that_rows_without_history_do_not_fit_is_refused(server: Served) -> None:
    columns = {**LIVE, "region": "STRING"}
    first = server.request("narrower", columns, key=["id", "name"])
    rows = [["1", "a", day(1), "x"], ["1", "b", day(1), "null"], ["2", "b", day(1), "y"]]
    first.null = "null"
    first.add_csv("upsert", "u.csv", list(columns), rows)
    assert server.client.call("WriteBatch", batch(first)).success

    for key, reason in (
        (["id"], "1 keys would be those of several rows"),
        (["id", "name", "region"], "the table has rows without a value in it"),
        (["id", "name", "new"], "the table has rows without a value in it"),
    ):
        other = server.request("narrower", {**columns, "new": "STRING"}, key=key)
        change = pb.AlterTableRequest(schema_name=SCHEMA, table=table(other))
        refusal = f"the key cannot become {', '.join(key)}: {reason}"
        assert refusal in server.client.call("AlterTable", change).task.message
        assert refusal in server.client.call("WriteBatch", batch(other)).task.message
    stored = server.rows("narrower", "*", "id, name")
    assert [row[:2] for row in stored] == [(1, "a"), (1, "b"), (2, "b")]
    assert len(stored[0]) == len(columns)


@pytest.mark.thorough
def test_a_key_is_never_replaced_by_none_or_by_one_that_stored_rows_do_not_fit(
    server: Served,
) -> None:
    """Without a recorded key, one row (1, z) of the key id would overwrite two rows."""
    client, spark = server.client, server.destination.spark
    unset = "alter table {} unset tblproperties ('dbt_history.key')"

    def write(key: list[str], *names: str) -> Any:
        writer = server.request("unkeyed", LIVE, key=key)
        writer.add_csv("upsert", "u.csv", list(LIVE), [["1", name, day(1)] for name in names])
        return client.call("WriteBatch", batch(writer))

    assert write(["id", "name"], "a", "b").success
    keyless = table(server.request("unkeyed", LIVE, key=[]))
    change = pb.AlterTableRequest(schema_name=SCHEMA, table=keyless)
    message = client.call("AlterTable", change).task.message
    assert "no column is marked as primary_key" in message
    assert "has the key id, name" in message
    spark.sql(unset.format(f"{SCHEMA}.unkeyed"))
    refusal = "the key cannot become id: 1 keys would be those of several rows"
    assert refusal in write(["id"], "z").task.message
    assert refusal in client.call("AlterTable", pb.AlterTableRequest(
        schema_name=SCHEMA, table=table(server.request("unkeyed", LIVE)))).task.message  # fmt: skip
    assert server.rows("unkeyed", "id, name", "name") == [(1, "a"), (1, "b")]
    assert write(["id", "name"], "b", "c").success
    assert server.rows("unkeyed", "id, name", "name") == [(1, "a"), (1, "b"), (1, "c")]

    # A table that another tool made.
    spark.sql(
        f"create table {SCHEMA}.foreign_rows using delta as select * from values"
        " (1, 'a', timestamp '2024-01-01'), (2, null, timestamp '2024-01-01')"
        " as made(id, name, _fivetran_synced)"
    )
    for key, problem in ((["name"], "rows without a value in it"), (["id"], "")):
        writer = server.request("foreign_rows", LIVE, key=key)
        writer.add_csv("upsert", "u.csv", list(LIVE), [["1", "b", day(1)]])
        answer = client.call("WriteBatch", batch(writer))
        assert problem in answer.task.message
        assert answer.success == (not problem)
    assert server.rows("foreign_rows", "id, name") == [(1, "b"), (2, None)]

    def write_history(key: list[str], name: str, at: str) -> Any:
        writer = server.request("unkeyed_history", HISTORY, key=key)
        writer.add_csv("upsert", "u.csv", list(HISTORY), [["1", name, at, at, END, "true"]])
        return client.write(writer)

    assert write_history(["id"], "a", day(1)).success
    keyless = table(server.request("unkeyed_history", HISTORY, key=[]))
    change = pb.AlterTableRequest(schema_name=SCHEMA, table=keyless)
    message = client.call("AlterTable", change).task.message
    assert "no column is marked as primary_key" in message
    spark.sql(unset.format(f"{SCHEMA}.unkeyed_history"))
    message = write_history(["id", "name"], "b", day(2)).task.message
    assert "the key cannot become id, name: its batches have the key id" in message
    # It was not landed, so it does not block the table.
    assert write_history(["id"], "c", day(2)).success
    assert write_history(["id", "name"], "d", day(3)).success
    assert server.rows("unkeyed_history", "name, _fivetran_active", "name") == [
        ("a", False), ("c", True), ("d", True),
    ]  # fmt: skip


@pytest.mark.thorough
def test_operations_on_records_and_tables_that_do_not_exist_are_ignored(server: Served) -> None:
    client = server.client
    moment = Timestamp(seconds=1_800_000_000)
    for name in ("never", "emptied"):
        truncate = pb.TruncateRequest(
            schema_name=SCHEMA, table_name=name, synced_column="_fivetran_synced",
            utc_delete_before=moment)  # fmt: skip
        assert client.call("Truncate", truncate).success

    plain = server.request("emptied", LIVE)
    plain.add_csv("upsert", "u.csv", list(LIVE), [["1", "a", day(1)]])
    assert client.call("WriteBatch", batch(plain)).success
    assert client.call("Truncate", truncate).success
    absent = server.request("emptied", LIVE)
    absent.add_csv("update", "p.csv", list(LIVE), [["1", "b", day(2)]])
    absent.add_csv("delete", "d.csv", ["id"], [["2"]])
    answer = client.call("WriteBatch", batch(absent))
    assert "1 update row was skipped" in answer.warning.message
    assert client.call("WriteBatch", batch(absent)).success
    assert server.rows("emptied") == []

    kept = server.request("kept", HISTORY)
    kept.add_csv("upsert", "u.csv", list(HISTORY), [["1", "a", day(1), day(1), END, "true"]])
    assert client.write(kept).success
    unknown = server.request("kept", HISTORY)
    unknown.add_csv("earliest_start", "e.csv", ["id", "_fivetran_start"], [["9", day(2)]])
    unknown.add_csv("delete", "d.csv", ["id", "_fivetran_end"], [["8", day(2)]])
    rows = [[str(key), "x", day(2), day(2), END, "true"] for key in range(11, 18)]
    unknown.add_csv("update", "p.csv", list(HISTORY), rows)
    warning = client.write(unknown).warning.message.splitlines()
    assert warning[0] == (
        f"{SCHEMA}.kept: 7 update rows were skipped, because the table has no version to change"
    )
    assert warning[1:] == [
        f"  id '{key}', _fivetran_start '2024-01-02 00:00:00'" for key in range(11, 16)
    ]
    assert server.rows("kept", "id, name, _fivetran_active") == [(1, "a", True)]


# -- migrations ------------------------------------------------------------------------------------


def migrate(server: Served, name: str, **operation: Any) -> None:
    """Migrate twice: a repeated call succeeds, too."""
    for _ in range(2):
        assert server.client.migrate(SCHEMA, name, **operation).success


@pytest.mark.thorough
def test_values_of_columns_are_migrated(server: Served) -> None:
    writer = server.request("valued", {**LIVE, "amount": "DOUBLE"})
    writer.add_csv("upsert", "u.csv", ["id", "name", "amount", "_fivetran_synced"], [
        ["1", "a", "1.5", day(1)], ["2", NULL, "2", day(1)]])  # fmt: skip
    assert server.client.call("WriteBatch", batch(writer)).success

    def with_default(column: str, type_: pb.DataType, value: str) -> dict[str, Any]:
        added = pb.AddColumnWithDefaultValue(
            column=column, column_type=type_, default_value=value)  # fmt: skip
        return {"add": pb.AddOperation(add_column_with_default_value=added)}

    migrate(server, "valued", **with_default("at", pb.UTC_DATETIME, "2005-05-23T20:57:00Z"))
    # Of a column that exists: every row is updated.
    migrate(server, "valued", **with_default("name", pb.STRING, "it's"))
    assert server.rows("valued", "id, name, at") == [
        (1, "it's", datetime(2005, 5, 23, 20, 57)), (2, "it's", datetime(2005, 5, 23, 20, 57)),
    ]  # fmt: skip

    migrate(server, "valued", **with_default("raw", pb.BINARY, "Zm9v"))
    assert server.rows("valued", "distinct raw", "raw") == [(b"foo",)]
    for added in (("no", pb.UTC_DATETIME, "10:00"), ("no", pb.DECIMAL, "0.12345678901")):
        answer = server.client.migrate(SCHEMA, "valued", **with_default(*added))
        assert f"column no: {added[2]!r} is not a valid" in answer.task.message
    to_minute = pb.UpdateColumnValueOperation(column="at", value="10:00")
    answer = server.client.migrate(SCHEMA, "valued", update_column_value=to_minute)
    assert "column at: '10:00' is not a valid UTC_DATETIME" in answer.task.message

    def update(column: str, value: str) -> list[tuple[Any, ...]]:
        operation = pb.UpdateColumnValueOperation(column=column, value=value)
        migrate(server, "valued", update_column_value=operation)
        return server.rows("valued", f"distinct {column}", column)

    assert update("amount", "202.57") == [(202.57,)]
    assert update("amount", "NULL") == [(None,)]
    assert update("name", "'NULL'") == [("NULL",)]
    assert update("name", "NULL") == [(None,)]
    assert update("name", "") == [("",)]
    odd = "\U0001f600 \x7f\x85\u2028\ufeff\uffff '\"\\ {{ x }}\n# : -"
    assert update("name", odd) == [(odd,)]
    renamed = pb.RenameColumn(from_column="amount", to_column="amount renamed")
    migrate(server, "valued", rename=pb.RenameOperation(rename_column=renamed))
    assert server.rows("valued", "`amount renamed`") == [(None,), (None,)]


@pytest.mark.thorough
def test_modes_of_tables_are_migrated(server: Served) -> None:
    columns = {**LIVE, "gone": "BOOLEAN"}
    writer = server.request("soft", columns)
    writer.add_csv("upsert", "u.csv", ["id", "name", "gone", "_fivetran_synced"], [
        ["1", "a", "false", day(1)], ["2", "b", "true", day(1)]])  # fmt: skip
    assert server.client.call("WriteBatch", batch(writer)).success

    copied = pb.CopyTableToHistoryMode(
        from_table="soft", to_table="copied", soft_deleted_column="gone")  # fmt: skip
    migrate(server, "soft", copy=pb.CopyOperation(copy_table_to_history_mode=copied))
    kind = pb.SyncModeMigrationType
    mode = pb.SyncModeMigrationOperation(
        type=kind.SOFT_DELETE_TO_HISTORY, soft_deleted_column="gone"
    )
    migrate(server, "soft", sync_mode_migration=mode)
    versions = "id, name, year(_fivetran_end), _fivetran_active"
    for name in ("soft", "copied"):
        (first, second) = server.rows(name, versions)
        assert first == (1, "a", 9999, True)
        assert (second[0], second[3]) == (2, False)

    # From day 5 on the column has no value, and the versions before keep theirs.
    ended = pb.DropColumnInHistoryMode(column="name", operation_timestamp=day(5))
    dropped = pb.DropOperation(drop_column_in_history_mode=ended)
    migrate(server, "copied", drop=dropped)
    order = "id, _fivetran_start"
    assert server.rows("copied", "id, name, _fivetran_active", order) == [
        (1, "a", False), (1, None, True), (2, "b", False),
    ]  # fmt: skip

    back = pb.SyncModeMigrationOperation(type=kind.HISTORY_TO_SOFT_DELETE)
    migrate(server, "soft", sync_mode_migration=back)
    assert server.rows("soft", "id, name, _fivetran_deleted") == [(1, "a", False), (2, "b", True)]
    for unsupported in (kind.HISTORY_TO_LIVE, kind.SOFT_DELETE_TO_LIVE, kind.LIVE_TO_SOFT_DELETE):
        operation = pb.SyncModeMigrationOperation(type=unsupported)
        answer = server.client.migrate(SCHEMA, "soft", sync_mode_migration=operation)
        assert answer.unsupported
    assert len(server.rows("soft")) == 2
