"""The guarantees of `dbt-history serve`, through a real gRPC client over loopback."""

from __future__ import annotations

import json
import logging
import os
import shutil
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import grpc
import pytest
from click.testing import CliRunner
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from google.protobuf.timestamp_pb2 import Timestamp
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from pyspark.sql import SparkSession

from dbt_history.cli import main
from dbt_history.commit_log import Entry, new_record
from dbt_history.landing.errors import RefusedError
from dbt_history.landing.table import CATALOG_NAME
from dbt_history.landing.writer import NULL, UNMODIFIED, RequestWriter
from dbt_history.serve import destination_pb2 as pb
from dbt_history.serve.certificates import Certificates
from dbt_history.serve.check import SelfTest
from dbt_history.serve.destination import Destination, key_of_undone, undone_changes
from dbt_history.serve.engine import Engine, find_package
from dbt_history.serve.logs import JsonFormatter
from dbt_history.serve.service import SERVICE, Service, start
from dbt_history.serve.tables import is_lost
from dbt_history.session import start_session
from tests.support.delta_log import expire_log, forget_logs
from tests.support.destination import NUMBERS, FolderWriter
from tests.support.landing import END, HEADER, START
from tests.support.project import ROOT, drop_schema
from tests.support.secrets import files_with
from tests.support.selection import thorough
from tests.support.waiting import TIMEOUT
from tests.support.writer import Client, batch, history_batch, table

SCHEMA = "tests_serve"
COLUMNS = {
    "id": "LONG",
    "name": "STRING",
    "amount": ("DECIMAL", 10, 2),
    "_fivetran_start": "UTC_DATETIME",
    "_fivetran_end": "UTC_DATETIME",
    "_fivetran_active": "BOOLEAN",
    "_fivetran_synced": "UTC_DATETIME",
}
LIVE = {"id": "INT", "name": "STRING", "data": "JSON", "_fivetran_synced": "UTC_DATETIME"}
ROW = (*HEADER, "_fivetran_synced")


@pytest.fixture(scope="module")
def destination(
    spark: SparkSession, warehouse: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Destination]:
    engine = Engine(find_package(ROOT))
    root = tmp_path_factory.mktemp("batches")
    yield Destination(start_session("tests"), root, engine)
    engine.close()
    drop_schema(spark, SCHEMA, warehouse)


@pytest.fixture(scope="module")
def port(destination: Destination) -> Iterator[int]:
    server, port = start(Service(destination), "127.0.0.1:0")
    yield port
    server.stop(None).wait()


@pytest.fixture
def client(port: int) -> Client:
    return Client.at(port)


def request(
    destination: Destination, table: str, columns: dict[str, Any] = COLUMNS, **how: Any
) -> FolderWriter:
    """A request with its files in its own folder below the root."""
    folder = destination.root / f"{table}_{next(NUMBERS)}"
    folder.mkdir()
    return FolderWriter(folder, columns, schema=SCHEMA, table=table, **how)


def versions(destination: Destination, name: str) -> list[tuple[Any, ...]]:
    """(id, name, amount, day of the start, day of the end or None), ordered."""
    rows = destination.spark.table(f"{SCHEMA}.{name}").orderBy("id", "_fivetran_start").collect()
    return [
        (r.id, r.name, r.amount, r._fivetran_start.day,
         None if r._fivetran_active else r._fivetran_end.day)
        for r in rows
    ]  # fmt: skip


def numbers(destination: Destination, name: str) -> list[int]:
    """The batches in a table's log, oldest first."""
    log = destination.spark.sql(f"describe history {SCHEMA}.{name}").collect()
    records = [row.userMetadata for row in log if row.userMetadata]
    return [int(text.split('"batch": ')[1].split(",")[0]) for text in records[::-1]]


def at(day: int) -> str:
    return f"2024-01-{day:02}T00:00:00Z"


def upserts(writer: RequestWriter, *rows: tuple[str, str, str, int]) -> RequestWriter:
    cells = [[*row[:3], at(row[3]), END, "true", at(row[3])] for row in rows]
    earliest = [[row[0], at(row[3])] for row in rows]
    writer.add_csv("earliest_start", "earliest.csv", ["id", "_fivetran_start"], earliest)
    writer.add_csv("upsert", "upsert.csv", ROW, cells)
    return writer


def updates(writer: RequestWriter, *rows: tuple[str, str, str, int]) -> RequestWriter:
    cells = [[*row[:3], at(row[3]), END, "true", at(row[3])] for row in rows]
    earliest = [[row[0], at(row[3])] for row in rows]
    writer.add_csv("earliest_start", "earliest.csv", ["id", "_fivetran_start"], earliest)
    writer.add_csv("update", "update.csv", ROW, cells)
    return writer


def test_a_sync_with_repeated_batches_is_applied_once(
    destination: Destination, client: Client, port: int, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture, warehouse: Path,
) -> None:  # fmt: skip
    caplog.set_level(logging.INFO)
    first = request(destination, "items", compression="ZSTD", is_encrypted=True)
    upserts(first, ("1", "a", "1.5", 1), ("2", "b", "2", 1))
    second = request(destination, "items", compression="GZIP", is_encrypted=True)
    updates(second, ("1", UNMODIFIED, "7", 2))
    third = request(destination, "items")
    third.add_csv("delete", "d.csv", ["id", "_fivetran_end"], [["2", at(3)]])
    described = pb.DescribeTableRequest(schema_name=SCHEMA, table_name="items")

    assert client.call("DescribeTable", described).not_found
    creation = pb.CreateTableRequest(schema_name=SCHEMA, table=table(first))
    assert [client.call("CreateTable", creation).success for _ in range(2)] == [True, True]
    assert client.write(first).success

    # The connection breaks while the second batch is written, and the writer sends it again.
    begun, apply = threading.Event(), Engine.merge

    def slow(*arguments: Any) -> str:
        begun.set()
        time.sleep(0.3)
        return apply(*arguments)

    monkeypatch.setattr(Engine, "merge", slow)
    broken = Client.at(port)
    call = broken.start("WriteHistoryBatch", history_batch(second))
    assert begun.wait(120)
    broken.channel.close()
    assert call.code() == grpc.StatusCode.CANCELLED
    assert client.write(second).success

    # The server fails between landing and merge; nothing is lost, and the repeated call applies it.
    def fail(*arguments: Any) -> str:
        raise RuntimeError("out of memory\nand more")

    monkeypatch.setattr(Engine, "merge", fail)
    with pytest.raises(grpc.RpcError) as failed:
        client.write(third)
    assert (failed.value.code(), failed.value.details()) == (
        grpc.StatusCode.INTERNAL, "out of memory",
    )  # fmt: skip
    monkeypatch.setattr(Engine, "merge", apply)
    assert client.write(third).success
    assert client.write(third).success

    assert versions(destination, "items") == [
        (1, "a", Decimal("1.50"), 1, 1),
        (1, "a", Decimal("7.00"), 2, None),
        (2, "b", Decimal("2.00"), 1, 3),
    ]
    assert numbers(destination, "items") == [1, 2, 3]
    answer = client.call("DescribeTable", described).table
    assert {c.name: (pb.DataType.Name(c.type), c.primary_key) for c in answer.columns} == {
        name: (type_ if isinstance(type_, str) else type_[0], name in ("id", "_fivetran_start"))
        for name, type_ in COLUMNS.items()
    }
    decimal = next(c for c in answer.columns if c.name == "amount").params.decimal
    assert (decimal.precision, decimal.scale) == (10, 2)
    assert "landed before as batch 3" in caplog.text

    # A wrong key is refused. Keys are neither logged, answered, nor in a file.
    wrong = request(destination, "items", compression="ZSTD", is_encrypted=True)
    updates(wrong, ("1", "x", "8", 4))
    wrong.keys = {name: os.urandom(32) for name in wrong.keys}
    refusal = client.write(wrong).task.message
    assert "wrong key" in refusal
    secrets = [*first.keys.values(), *second.keys.values(), *wrong.keys.values()]
    folders = [destination.engine.path, destination.root, warehouse / f"{SCHEMA}.db"]
    assert files_with(secrets, folders, caplog.text, refusal) == []
    assert files_with(secrets[-1:], [], str(wrong.document()))


@pytest.mark.thorough
def test_batches_that_a_restore_undid_are_applied_again_by_the_next_call(
    destination: Destination, client: Client
) -> None:
    """
    version    0       1           2           3              4
    commit     create  1: a at 1   2: b at 2   restore to 1   2: b at 2, by a repeated call
    """
    first = upserts(request(destination, "undone"), ("1", "a", "1", 1))
    second = updates(request(destination, "undone"), ("1", "b", UNMODIFIED, 2))
    assert client.write(first).success
    applied = destination.spark.sql(f"describe history {SCHEMA}.undone limit 1").collect()
    assert client.write(second).success
    expected = versions(destination, "undone")
    assert [row[1] for row in expected] == ["a", "b"]
    destination.spark.sql(
        f"restore table {SCHEMA}.undone to version as of {applied[0].version}"
    ).collect()
    assert [row[1] for row in versions(destination, "undone")] == ["a"]

    assert client.write(second).success

    assert versions(destination, "undone") == expected
    assert numbers(destination, "undone") == [1, 2, 2]


@pytest.mark.thorough
@pytest.mark.parametrize("keys", [["id, name", "id, name"], ["id, name", "id"]])
def test_batches_that_a_restore_undid_are_applied_again_with_their_key(
    destination: Destination, client: Client, keys: list[str]
) -> None:
    """
    version    1              2                4                 5
    key        id             id, name         keys[1]           id
    commit     1: (1, a)      2: (1, b), too   3: (1, c), too    restore to 1
    """
    name = f"rekeyed_{keys[1]}".replace(", ", "_")

    def sent(key: str, value: str, day: int) -> Any:
        writer = request(destination, name, key=key.split(", "))
        earliest = {"id": "1", "name": value, "_fivetran_start": at(day)}
        names = [*key.split(", "), "_fivetran_start"]
        writer.add_csv("earliest_start", "e.csv", names, [[earliest[part] for part in names]])
        writer.add_csv("upsert", "u.csv", ROW, [["1", value, "1", at(day), END, "true", at(day)]])
        return writer

    assert client.write(upserts(request(destination, name), ("1", "a", "1", 1))).success
    (applied,) = destination.spark.sql(f"describe history {SCHEMA}.{name} limit 1").collect()
    batches = [sent(key, value, day) for key, value, day in zip(keys, "bc", (2, 3), strict=True)]
    assert all(client.write(each).success for each in batches)
    expected = versions(destination, name)
    restore = f"restore table {SCHEMA}.{name} to version as of {applied.version}"
    destination.spark.sql(restore).collect()

    answer = client.write(batches[-1])

    if keys[0] == keys[1]:
        assert answer.success
        assert versions(destination, name) == expected
        assert [row[-1] for row in expected] == [None, None, None]
    else:
        assert "batch 2, 3 was undone by a restore or an overwrite" in answer.task.message
        assert [row[1] for row in versions(destination, name)] == ["a"]


@pytest.mark.parametrize(
    ("keys", "has_later", "expected"),
    [
        # (batch, key), oldest first; batch 1 is not undone. A change of the key alone has no batch.
        ([(1, "id"), (2, "id, name"), (3, "NAME, id")], False, ("NAME", "id")),
        ([(1, "id"), (2, "id, name"), (3, "id")], False, None),
        ([(1, "id"), (2, "id"), (3, "id"), (None, "id, name")], False, ("id",)),
        ([(1, "id"), (2, "id"), (3, "id"), (None, "id, name")], True, None),
        ([(1, "id"), (2, None), (3, None)], False, ()),
    ],
)
def test_the_key_of_undone_batches_is_known_if_they_had_one(
    keys: list[tuple[int | None, str | None]], has_later: bool, expected: tuple[str, ...] | None
) -> None:
    log: list[tuple[Entry, bool]] = [({"userMetadata": None}, False)]
    for number, key in reversed(keys):
        about = {"batch": number, "key": key and key.split(", ")}
        log.append(({"userMetadata": json.dumps(new_record(**about))}, number != 1))
    assert key_of_undone(log, (2, 3), has_later=has_later) == expected


def test_changes_of_a_table_are_found_that_were_undone_with_a_batch() -> None:
    """The rename and the drop that were undone without a batch in question do not count."""
    commits = [
        ("MERGE", new_record(batch=5), False),
        ("RENAME COLUMN", None, True),
        ("MERGE", new_record(batch=6), True),
        ("RESTORE", None, False),
        ("UPDATE", {"history_migration": {"operation": "update_column_value"}}, True),
        ("UPDATE", None, True),
        ("MERGE", new_record(batch=7), True),
        ("DROP COLUMNS", None, True),
        ("RESTORE", None, False),
        ("DROP COLUMNS", None, True),
        ("RESTORE", None, False),
    ]
    log: list[tuple[Entry, bool]] = [
        ({"version": version, "operation": operation, "userMetadata": json.dumps(record)}, undone)
        for version, (operation, record, undone) in enumerate(commits)
    ]

    assert undone_changes(reversed(log), (7,)) == (
        "update_column_value (version 4)", "DROP COLUMNS (version 7)",
    )  # fmt: skip
    assert undone_changes(reversed(log), (8,)) == ()


@pytest.mark.thorough
def test_batches_are_not_applied_to_a_table_from_before_a_change_of_columns(
    destination: Destination, client: Client
) -> None:
    """
    version   1         2                3          4              5 restore to 3
    commit    batch 1   name -> title    batch 2    restore to 1   batch 3
    landed    batch 1 without its name

    Then the table is recreated by hand, and its log has no batch.
    """
    spark, name = destination.spark, f"{SCHEMA}.rebuilt"
    renamed = {("title" if n == "name" else n): type_ for n, type_ in COLUMNS.items()}

    def sent(value: str, day: int) -> RequestWriter:
        writer = request(destination, "rebuilt", renamed)
        names = ["title" if part == "name" else part for part in ROW]
        writer.add_csv("earliest_start", "e.csv", ["id", "_fivetran_start"], [["1", at(day)]])
        writer.add_csv(
            "update", "u.csv", names, [["1", UNMODIFIED, value, at(day), END, "true", at(day)]]
        )
        return writer

    def restore(version: int) -> None:
        spark.sql(f"restore table {name} to version as of {version}").collect()

    def latest() -> int:
        return int(spark.sql(f"describe history {name} limit 1").collect()[0].version)

    def stored() -> list[tuple[Any, ...]]:
        rows = spark.table(name).orderBy("_fivetran_start").collect()
        return [(row.title, row.amount) for row in rows]

    assert client.write(upserts(request(destination, "rebuilt"), ("1", "a", "1", 1))).success
    before = latest()
    moving = pb.RenameColumn(from_column="name", to_column="title")
    assert client.migrate(
        SCHEMA, "rebuilt", rename=pb.RenameOperation(rename_column=moving)
    ).success
    second = sent("2", 2)
    assert client.write(second).success
    after = latest()

    restore(before)
    message = client.write(second).task.message
    assert "batch 2 was undone by a restore or an overwrite, and so was" in message
    assert "RENAME COLUMN" in message
    assert "title" not in spark.table(name).columns
    restore(after)
    assert client.write(sent("3", 3)).success
    expected = [("a", Decimal(number)) for number in (1, 2, 3)]
    assert stored() == expected

    spark.sql(f"create table {name}_2 using delta as select * from {name}")
    spark.sql(f"drop table {name}")
    spark.sql(f"alter table {name}_2 rename to {name}")
    last = sent("4", 4)
    message = client.write(last).task.message
    assert "batch 1 is landed and not in the table's log" in message
    assert stored() == expected
    for statement in message.split("go on without: ")[1].split("; "):
        spark.sql(statement)
    answer = client.write(last)
    assert answer.success, answer.task.message
    assert stored() == [*expected, ("a", Decimal(4))]


def test_a_call_waits_for_the_call_on_its_table_and_for_no_other(
    destination: Destination, port: int, client: Client
) -> None:
    mine, other = (
        request(destination, name, LIVE).add_row(["1", "a", "{}", at(1)])
        for name in ("busy", "free")
    )
    with destination.exclusive(SCHEMA, "BUSY"):
        waiting = Client.at(port).start("WriteBatch", batch(mine))
        assert client.call("WriteBatch", batch(other)).success
        described = pb.DescribeTableRequest(schema_name=SCHEMA, table_name="busy")
        assert client.call("DescribeTable", described).not_found
        assert not waiting.done()
    assert waiting.result(timeout=TIMEOUT).success
    assert live_rows(destination, "busy") == live_rows(destination, "free") == [(1, "a", "{}")]


@pytest.mark.thorough
def test_a_table_is_compacted_after_some_batches_and_keeps_its_numbers(
    destination: Destination,
) -> None:
    own = replace(destination, compact_every=1)
    server, port = start(Service(own), "127.0.0.1:0")
    client = Client.at(port)
    first = upserts(request(own, "compacted"), ("1", "a", "1.5", 1), ("2", "b", "2", 1))
    second = updates(request(own, "compacted"), ("1", "c", UNMODIFIED, 2))
    assert [client.write(writer).success for writer in (first, second)] == [True, True]
    own.maintenance.submit(int).result(timeout=TIMEOUT)

    # A repeat changes nothing.
    assert client.write(first).success
    server.stop(None).wait()
    assert versions(own, "compacted") == [
        (1, "a", Decimal("1.50"), 1, 1), (1, "c", Decimal("1.50"), 2, None),
        (2, "b", Decimal("2.00"), 1, None),
    ]  # fmt: skip
    for name in ("compacted", "compacted__landing"):
        log = own.spark.sql(f"describe history {SCHEMA}.{name}").collect()
        assert "OPTIMIZE" in [row.operation for row in log]
    assert numbers(own, "compacted") == numbers(own, "compacted__landing") == [1, 2]


@pytest.mark.parametrize(("tables", "batches"), [thorough(4, 3), thorough(20, 50)])
def test_many_tables_are_written_at_once(
    tables: int, batches: int, destination: Destination, port: int
) -> None:
    """Every other table has a history. Each log has the table's own batches and no others."""
    problems: list[str] = []

    def sync(place: int) -> None:
        # Calls of all tables share the machine, and a run of dbt waits for those of other tables.
        name, own = f"many_{tables}_{place}", Client.at(port, wait=3600.0)
        for number in range(1, batches + 1):
            text = f"{name} {number}"
            if place % 2:
                writer = request(destination, name, LIVE).add_row(["1", text, "{}", at(1)])
                answer = own.call("WriteBatch", batch(writer))
            else:
                writer = request(destination, name, compression="ZSTD", is_encrypted=True)
                day = datetime(2024, 1, 1, tzinfo=UTC) + timedelta(days=number)
                start = day.isoformat().replace("+00:00", "Z")
                writer.add_csv("earliest_start", "e.csv", ["id", "_fivetran_start"], [["1", start]])
                writer.add_csv(
                    "upsert", "u.csv", ROW, [["1", text, "1", start, END, "true", start]]
                )
                answer = own.write(writer)
            if not answer.success:
                problems.append(f"{text}: {answer}")

    threads = [threading.Thread(target=sync, args=[place]) for place in range(tables)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert problems == []
    every = list(range(1, batches + 1))
    for place in range(tables):
        name = f"many_{tables}_{place}"
        found = destination.spark.table(f"{SCHEMA}.{name}").orderBy("name").collect()
        wanted = every[-1:] if place % 2 else every
        assert sorted(row.name for row in found) == sorted(f"{name} {n}" for n in wanted)
        assert numbers(destination, name) == every
        assert numbers(destination, f"{name}__landing") == every
        if not place % 2:
            assert [row._fivetran_active for row in found].count(True) == 1


@pytest.mark.thorough
def test_names_that_contain_sql_or_jinja_are_quoted_or_refused(
    destination: Destination, client: Client
) -> None:
    odd = ["x`; drop table y; --", "{{ 1/0 }}", "it's", '"}} {% raw %}', "a.b", "${env}"]
    columns = {"k`'{{ no }}": "INT", **dict.fromkeys(odd, "STRING"), "_fivetran_synced": "STRING"}
    key = next(iter(columns))
    writer = request(destination, "odd", columns, key=[key])
    header = [key, *odd, "_fivetran_start", "_fivetran_end", "_fivetran_active"]
    writer.add_csv("upsert", "u.csv", header, [["1", *"abcdef", START, END, "true"]])

    assert client.write(writer).success
    row = destination.spark.table(f"{SCHEMA}.odd").collect()[0].asDict()
    assert [row[name] for name in (key, *odd)] == [1, *"abcdef"]
    renamed = client.migrate(
        SCHEMA, "odd", rename=pb.RenameOperation(
            rename_column=pb.RenameColumn(from_column=odd[0], to_column="y`; --{{ 2 }}")
        ),
    )  # fmt: skip
    assert renamed.success
    assert "y`; --{{ 2 }}" in destination.spark.table(f"{SCHEMA}.odd").columns

    for name in ("a; drop table odd", "`x`", "../x", "x.y", "odd__landing", "a\nb", "{{ x }}"):
        writer.table = name
        assert "name" in client.write(writer).task.message
        for call, message in (
            ("DescribeTable", pb.DescribeTableRequest(schema_name=SCHEMA, table_name=name)),
            ("CreateTable", pb.CreateTableRequest(schema_name=name, table=table(writer))),
            ("Truncate", pb.TruncateRequest(
                schema_name=SCHEMA, table_name=name, utc_delete_before=Timestamp(seconds=1))),
        ):  # fmt: skip
            assert client.call(call, message).task.message
    writer.table, writer.files["replace_files"] = "odd", ["/etc/passwd"]
    assert "outside the folder" in client.write(writer).task.message
    synced = pb.TruncateRequest(
        schema_name=SCHEMA, table_name="odd", synced_column="a` or true; --",
        utc_delete_before=Timestamp(seconds=1),
    )  # fmt: skip
    assert "no timestamp column" in client.call("Truncate", synced).task.message
    assert destination.spark.table(f"{SCHEMA}.odd").count() == 1


def live_rows(destination: Destination, name: str) -> list[tuple[Any, ...]]:
    rows = destination.spark.table(f"{SCHEMA}.{name}").orderBy("id").collect()
    return [(row.id, row.name, row.data) for row in rows]


@pytest.mark.thorough
def test_a_table_without_history_supports_batches_truncates_and_column_changes(
    destination: Destination, client: Client
) -> None:
    first = request(destination, "live", LIVE, compression="ZSTD", is_encrypted=True)
    first.add_csv("upsert", "u.csv", list(LIVE), [
        ["1", "a", "{}", at(1)], ["2", "b", NULL, at(1)], ["3", "c", "[]", at(1)],
    ])  # fmt: skip
    second = request(destination, "live", LIVE)
    second.add_csv("upsert", "u.csv", list(LIVE), [["2", "B", "[1]", at(2)]])
    second.add_csv("update", "p.csv", list(LIVE), [
        ["1", NULL, UNMODIFIED, at(2)], ["2", UNMODIFIED, "[2]", at(2)], ["9", "x", "x", at(2)],
    ])  # fmt: skip
    second.add_csv("delete", "d.csv", ["id"], [["3"], ["8"]])

    def write(writer: RequestWriter) -> Any:
        return client.call("WriteBatch", batch(writer))

    creation = pb.CreateTableRequest(schema_name=SCHEMA, table=table(first))
    assert client.call("CreateTable", creation).success
    assert write(first).success
    # One row has no base. It is skipped, and the answer says so.
    assert write(second).warning.message.splitlines() == [
        f"{SCHEMA}.live: 1 update row was skipped, because the table has no version to change",
        "  id '9'",
    ]
    # A repeat after a later batch changes nothing.
    assert write(first).success
    assert live_rows(destination, "live") == [(1, None, "{}"), (2, "B", "[2]")]
    assert numbers(destination, "live") == [1, 2]
    assert "exists already" in client.call("CreateTable", creation).task.message
    assert "not in history mode" in client.write(first).task.message

    # Types and columns: changed in the log only, by a new column, and dropped.
    other = request(destination, "live", {**LIVE, "id": "LONG", "data": "STRING", "more": "INT"})
    alteration = pb.AlterTableRequest(schema_name=SCHEMA, table=table(other))
    assert client.call("AlterTable", alteration).success
    assert client.call("AlterTable", alteration).success
    wrong = pb.AlterTableRequest(
        schema_name=SCHEMA, table=table(request(destination, "live", {**LIVE, "name": "INT"}))
    )
    assert "1 values would be lost" in client.call("AlterTable", wrong).task.message
    cells = [["5000000000", "e", "text", at(3), "7"], ["1", "12", "t", at(3), NULL]]
    other.add_csv("upsert", "u.csv", [*LIVE, "more"], cells)
    assert write(other).success
    gone = request(destination, "live", {"id": "LONG", "name": "STRING", "data": "STRING",
                                         "_fivetran_synced": "UTC_DATETIME"})  # fmt: skip
    dropped = pb.AlterTableRequest(schema_name=SCHEMA, table=table(gone), drop_columns=True)
    assert client.call("AlterTable", dropped).success
    assert live_rows(destination, "live") == [
        (1, "12", "t"), (2, "B", "[2]"), (5_000_000_000, "e", "text"),
    ]  # fmt: skip
    assert "more" not in destination.spark.table(f"{SCHEMA}.live").columns

    # Truncate: no table, rows synced before a time, and rows marked as deleted.
    def truncate(day: int, name: str = "live", **more: Any) -> Any:
        moment = Timestamp(seconds=int(datetime(2024, 1, day, tzinfo=UTC).timestamp()))
        return client.call("Truncate", pb.TruncateRequest(
            schema_name=SCHEMA, table_name=name, synced_column="_fivetran_synced",
            utc_delete_before=moment, **more))  # fmt: skip

    assert truncate(3, "nowhere").success
    assert truncate(3).success
    assert [row[0] for row in live_rows(destination, "live")] == [1, 5_000_000_000]

    # To history and back, with a batch of each kind: numbers continue.
    mode = pb.SyncModeMigrationOperation(type=pb.SyncModeMigrationType.LIVE_TO_HISTORY)
    assert client.migrate(SCHEMA, "live", sync_mode_migration=mode).success
    later = request(destination, "live", {**gone.columns, "_fivetran_start": "UTC_DATETIME"})
    later.add_csv("earliest_start", "e.csv", ["id", "_fivetran_start"], [["1", at(4)]])
    header = ["id", "name", "data", "_fivetran_synced", *HEADER[3:]]
    later.add_csv("update", "p.csv", header, [
        ["1", "new", UNMODIFIED, at(4), at(4), END, "true"]])  # fmt: skip
    assert client.write(later).success
    found = destination.spark.table(f"{SCHEMA}.live").orderBy("id", "_fivetran_start").collect()
    assert [(r.id, r.name, r.data, r._fivetran_active) for r in found] == [
        (1, "12", "t", False), (1, "new", "t", True), (5_000_000_000, "e", "text", True),
    ]  # fmt: skip
    back = pb.SyncModeMigrationOperation(
        type=pb.SyncModeMigrationType.HISTORY_TO_SOFT_DELETE, soft_deleted_column="gone"
    )
    assert client.migrate(SCHEMA, "live", sync_mode_migration=back).success
    assert [field.name for field in destination.spark.table(f"{SCHEMA}.live").schema][-2:] == [
        "gone", "_fivetran_deleted",
    ]  # fmt: skip
    untyped = pb.AddColumnWithDefaultValue(column="more", default_value="x")
    refused = client.migrate(SCHEMA, "live", add=pb.AddOperation(
        add_column_with_default_value=untyped))  # fmt: skip
    assert "column more: its type is UNSPECIFIED" in str(refused)
    gone.columns = {**gone.columns, "gone": "BOOLEAN"}
    gone.add_csv("upsert", "u.csv", list(gone.columns), [["6", "f", "t", at(5), "false"]])
    assert write(gone).success
    assert truncate(4, soft=pb.SoftTruncate(deleted_column="gone")).success
    found = destination.spark.table(f"{SCHEMA}.live").orderBy("id").collect()
    assert [(r.id, r.name, r.gone) for r in found] == [
        (1, "new", False), (6, "f", False), (5_000_000_000, "e", True),
    ]  # fmt: skip


@pytest.mark.thorough
def test_a_column_that_a_request_does_not_list_keeps_its_value(
    destination: Destination, client: Client
) -> None:
    whole = request(destination, "fewer", LIVE)
    whole.add_csv("upsert", "u.csv", list(LIVE), [["1", "a", "{}", at(1)]])
    fewer = {name.upper(): type_ for name, type_ in LIVE.items() if name != "data"}
    part = request(destination, "fewer", fewer, key=["ID"])
    part.add_csv("update", "p.csv", list(fewer), [["1", UNMODIFIED, at(2)]])
    assert client.call("WriteBatch", batch(whole)).success
    assert client.call("WriteBatch", batch(part)).success
    assert live_rows(destination, "fewer") == [(1, "a", "{}")]

    first = upserts(request(destination, "fewer_hx"), ("1", "a", "1.00", 1))
    columns = {name: type_ for name, type_ in COLUMNS.items() if name != "amount"}
    second = request(destination, "fewer_hx", columns)
    second.add_csv("earliest_start", "e.csv", ["id", "_fivetran_start"], [["1", at(2)]])
    second.add_csv("update", "p.csv", list(columns), [["1", "b", at(2), END, "true", at(2)]])
    assert client.write(first).success
    assert client.write(second).success
    assert versions(destination, "fewer_hx") == [
        (1, "a", Decimal(1), 1, 1), (1, "b", Decimal(1), 2, None),
    ]  # fmt: skip


@pytest.mark.thorough
def test_a_type_that_would_change_a_value_is_refused(
    destination: Destination, client: Client
) -> None:
    """Each column has one value, and two new types: one that holds it, and one that does not."""
    cases = {
        "fraction": ("DOUBLE", "1.9", "STRING", "INT"),
        "whole": ("DOUBLE", "2.0", "LONG", "BOOLEAN"),
        "scale": (("DECIMAL", 10, 4), "1.2345", "DOUBLE", ("DECIMAL", 10, 2)),
        "moment": ("UTC_DATETIME", at(1).replace("00:00", "10:00", 1), "STRING", "NAIVE_DATE"),
        "midnight": ("UTC_DATETIME", at(1), "NAIVE_DATE", "BINARY"),
        "large": ("LONG", str(2**53 + 1), "STRING", "DOUBLE"),
        "flag": ("INT", "1", "BOOLEAN", "NAIVE_DATE"),
        "text": ("STRING", "1.999", ("DECIMAL", 10, 3), ("DECIMAL", 10, 2)),
        "day": ("STRING", "2024-01-02T10:00:00", "NAIVE_DATETIME", "NAIVE_DATE"),
        "note": ("STRING", "2024-03-01 delivered", "STRING", "NAIVE_DATE"),
        "long": ("STRING", "123456789012345678901.239", ("DECIMAL", 38, 3), ("DECIMAL", 38, 2)),
        "most": ("LONG", str(2**63 - 1), "STRING", "DOUBLE"),
        "above": ("DOUBLE", str(2**63), "STRING", "LONG"),
        "most_int": ("INT", str(2**31 - 1), "DOUBLE", "FLOAT"),
    }
    before = {name: type_ for name, (type_, *_) in cases.items()}
    columns = {"id": "INT", **before, "_fivetran_synced": "UTC_DATETIME"}
    first = request(destination, "types", columns)
    cells = [value for _, value, *_ in cases.values()]
    first.add_csv("upsert", "u.csv", list(columns), [["1", *cells, at(1)]])
    assert client.call("WriteBatch", batch(first)).success
    stored = destination.spark.table(f"{SCHEMA}.types").collect()

    def alter(types: dict[str, Any]) -> Any:
        wanted = table(request(destination, "types", {**columns, **types}))
        message = pb.AlterTableRequest(schema_name=SCHEMA, table=wanted)
        return client.call("AlterTable", message)

    answers = {name: alter({name: wrong}).task.message for name, (*_, wrong) in cases.items()}
    assert [name for name, message in answers.items() if "cannot change" not in message] == []
    assert destination.spark.table(f"{SCHEMA}.types").collect() == stored
    assert alter({name: right for name, (_, _, right, _) in cases.items()}).success
    row = destination.spark.table(f"{SCHEMA}.types").collect()[0]
    assert (row.fraction, row.whole, row.scale, row.flag) == ("1.9", 2, 1.2345, True)
    assert (str(row.midnight), row.large, str(row.text)) == (
        "2024-01-01", "9007199254740993", "1.999",
    )  # fmt: skip
    assert str(row.long) == "123456789012345678901.239"


@pytest.mark.thorough
def test_a_text_is_kept_by_a_type_only_if_a_batch_can_have_it_with_all_its_digits(
    spark: SparkSession,
) -> None:
    """Spark's casts also accept other texts, and change them."""
    kept = {
        "boolean": ["true", "False"],
        "int": ["01", "-7", "+2147483647"],
        "bigint": ["9007199254740993"],
        "decimal(10,0)": ["12.50e1", "7.0", "1E+3"],
        "decimal(38,3)": ["123456789012345678901.239", ".5", "5."],
        "float": ["0.1", "16777216", "-1.50e-3"],
        "double": ["+0.10", "-0", "9007199254740992", "1e300", "NaN", "-Infinity"],
        "date": ["2024-02-29"],
        "timestamp_ntz": ["2024-01-01T00:00", "2024-01-01 00:00:00.123456000"],
        "timestamp": ["2024-01-01T00:00:00+05:00", "2024-01-01T00:00:00Z", "2024-01-01 00:00"],
    }
    lost = {
        "boolean": ["yes", "t", "1", "0", " true"],
        "int": ["1.5", "1.0", " 1", "1\n", "2147483648", "0x1F"],
        "decimal(10,0)": ["12.5", "1e-30", "1e10", "1e400"],
        "decimal(38,2)": ["123456789012345678901.239", "1e-30", "NaN"],
        "float": ["16777217", "1e39"],
        "double": ["9007199254740993", "1e400", "1e-400", "1d", " 1"],
        "date": ["2024-03-01 delivered", "2024-03-01T00:00:00", "2024", "10:00", "2023-02-29"],
        "timestamp_ntz": [
            "2024-01-01T00:00:00+05:00", "2024-01-01T00:00:00.1234567", "2024-01-01", "10:00",
        ],
        "timestamp": ["10:00", "2024-01-01", "2024-01-01T00:00:00Z[UTC]"],
    }  # fmt: skip

    def lost_of(cases: dict[str, list[str]]) -> dict[str, list[str]]:
        found = {}
        for type_, texts in cases.items():
            rows = spark.createDataFrame([[text] for text in texts], "value string")
            found[type_] = [
                row.value for row in rows.where(is_lost("`value`", "string", type_)).collect()
            ]
        return found

    assert lost_of(kept) == {type_: [] for type_ in kept}
    assert lost_of(lost) == lost


@pytest.mark.thorough
@pytest.mark.parametrize("step", ["update", "drop column", "rename column"])
@pytest.mark.parametrize("repeat", ["the alteration", "a batch"])
def test_a_type_change_that_stopped_half_way_loses_no_value(
    destination: Destination, client: Client, step: str, repeat: str
) -> None:
    """The next call completes it, or takes it back, and the table has one column of the name.

    n: 1.5      __new_n added      filled: "1.5"      n dropped      renamed to n
                            |- update          |- drop column |- rename column
    """
    name = f"half_{step}_{repeat}".replace(" ", "_")
    columns = {"id": "INT", "n": "DOUBLE", "_fivetran_synced": "UTC_DATETIME"}
    first = request(destination, name, columns)
    first.add_csv("upsert", "u.csv", list(columns), [["1", "1.5", at(1)]])
    assert client.call("WriteBatch", batch(first)).success
    wanted = table(request(destination, name, {**columns, "n": "STRING"}))
    alteration = pb.AlterTableRequest(schema_name=SCHEMA, table=wanted)
    run = SparkSession.sql

    full = f"`{SCHEMA}`.`{name}`"
    begin = f"update {full}" if step == "update" else f"alter table {full} {step}"

    def stop(session: SparkSession, sql: str, *arguments: Any, **named: Any) -> Any:
        if sql.startswith(begin):
            raise OSError("stopped")
        return run(session, sql, *arguments, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SparkSession, "sql", stop)
        with pytest.raises(grpc.RpcError, match="stopped"):
            client.call("AlterTable", alteration)

    is_changed = step == "rename column"
    if repeat == "a batch":
        second = request(destination, name, {**columns, "n": "STRING" if is_changed else "DOUBLE"})
        second.add_csv("upsert", "u.csv", list(columns), [["2", "2.5", at(2)]])
        assert client.call("WriteBatch", batch(second)).success
    assert client.call("AlterTable", alteration).success

    stored = destination.spark.table(f"{SCHEMA}.{name}").orderBy("id")
    assert set(stored.columns) == set(columns)
    found = [row.n for row in stored.collect()]
    assert found == (["1.5", "2.5"] if repeat == "a batch" else ["1.5"])


@pytest.mark.thorough
def test_batches_of_a_suspended_history_are_refused_and_kept(
    destination: Destination, client: Client
) -> None:
    first = upserts(request(destination, "held"), ("1", "a", "1.00", 1))
    second = upserts(request(destination, "held"), ("2", "b", "2.00", 2))
    name = {"table": f"{SCHEMA}.held"}
    assert client.write(first).success
    destination.engine.run_operation("suspend_history", name)
    mode = pb.SyncModeMigrationOperation(type=pb.SyncModeMigrationType.HISTORY_TO_SOFT_DELETE)
    for answer in (
        client.write(second),
        client.write(second),
        client.migrate(SCHEMA, "held", sync_mode_migration=mode),
    ):
        assert "batch 2 of tests_serve.held is landed and was not applied" in answer.task.message
    assert [row[0] for row in versions(destination, "held")] == [1]

    destination.engine.run_operation("resume_history", name)
    assert client.write(second).success
    assert [row[0] for row in versions(destination, "held")] == [1, 2]


@pytest.mark.thorough
def test_a_refused_batch_does_not_name_an_earlier_one_that_its_call_applied(
    destination: Destination, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A deletion that was too large is applied, with another limit, by the next call."""
    spark = destination.spark
    first = upserts(request(destination, "partly"), *((str(n), "a", "1", 1) for n in range(120)))
    assert client.write(first).success
    spark.sql(f"alter table {SCHEMA}.partly add constraint short check (length(name) < 5)")
    deletions, wrong = (request(destination, "partly") for _ in range(2))
    rows = [[str(n), at(2)] for n in range(110)]
    deletions.add_csv("delete", "d.csv", ["id", "_fivetran_end"], rows)
    updates(wrong, ("119", "too long", "3", 3))
    assert not client.write(deletions).success

    monkeypatch.setattr(destination.engine, "max_deleted_share", 1.0)
    message = client.write(wrong).task.message
    assert f"landed, not applied: batch 3 of {SCHEMA}.partly" in message
    assert numbers(destination, "partly") == [1, 2]
    spark.sql(message.split("with other files: ")[1].split("; then")[0]).collect()
    updates(corrected := request(destination, "partly"), ("119", "b", "3", 3))
    assert client.write(corrected).success
    assert sum(row[4] is None for row in versions(destination, "partly")) == 10


@pytest.mark.thorough
def test_a_batch_that_the_history_refuses_is_sent_again_after_the_statement_of_its_answer(
    destination: Destination, client: Client
) -> None:
    spark, landing = destination.spark, f"{SCHEMA}.sent_again__landing"
    first = upserts(
        request(destination, "sent_again"), *((str(n), "a", "1", 1) for n in range(120))
    )
    assert client.write(first).success

    # A period that no history takes is not even landed.
    wrong = request(destination, "sent_again")
    wrong.add_csv("upsert", "u.csv", ROW, [["1", "b", "1", at(3), at(2), "false", at(3)]])
    message = client.write(wrong).task.message
    assert "u.csv, line 2, column _fivetran_end: is more than one millisecond before" in message

    deletions, later = (request(destination, "sent_again") for _ in range(2))
    rows = [[str(n), at(2)] for n in range(110)]
    deletions.add_csv("delete", "d.csv", ["id", "_fivetran_end"], rows)
    updates(later, ("119", "c", "3", 3))
    message = client.write(deletions).task.message
    assert "110 of 120 current records" in message
    assert f"landed, not applied: batch 2 of {SCHEMA}.sent_again" in message
    message = client.write(later).task.message
    assert f"landed, not applied: batch 2, 3 of {SCHEMA}.sent_again" in message

    statement = message.split("with other files: ")[1].split("; then")[0]
    assert statement.startswith(
        "restore table `tests_serve`.`sent_again__landing` to version as of "
    )
    spark.sql(statement).collect()
    corrected = request(destination, "sent_again")
    corrected.add_csv("delete", "d.csv", ["id", "_fivetran_end"], rows[:1])
    assert client.write(corrected).success
    # It was not applied, so it is landed again and not answered as known.
    for _ in range(2):
        assert client.write(later).success
    assert numbers(destination, "sent_again") == [1, 4, 5]
    assert spark.table(landing).where("_batch > 1").count() == 3
    found = versions(destination, "sent_again")
    assert [row for row in found if row[0] in (0, 1, 119)] == [
        (0, "a", Decimal("1.00"), 1, 2), (1, "a", Decimal("1.00"), 1, None),
        (119, "a", Decimal("1.00"), 1, 2), (119, "c", Decimal("3.00"), 3, None),
    ]  # fmt: skip


@pytest.mark.thorough
def test_undone_batches_whose_landed_rows_are_gone_are_named(
    destination: Destination, client: Client
) -> None:
    """
    version    1     2     3              4
    commit     1: a  2: b  restore to 1   the columns of the landed rows: emptied before 3
    """
    spark, name = destination.spark, f"{SCHEMA}.gap"
    writers = [
        upserts(request(destination, "gap"), (str(day), "x", "1.00", day)) for day in (1, 2, 3)
    ]
    assert client.write(writers[0]).success
    version = spark.sql(f"describe history {name} limit 1").collect()[0].version
    assert client.write(writers[1]).success
    refused = pb.SyncModeMigrationOperation(
        type=pb.SyncModeMigrationType.HISTORY_TO_SOFT_DELETE, soft_deleted_column="id"
    )
    assert client.migrate(SCHEMA, "gap", sync_mode_migration=refused).task.message
    spark.sql(f"restore table {name} to version as of {version}").collect()
    # What was refused has changed nothing: the next call applies the batch again.
    assert client.write(writers[1]).success
    assert [row[0] for row in versions(destination, "gap")] == [1, 2]

    wide = {**COLUMNS, "name": "JSON", "amount": ("DECIMAL", 12, 2)}
    wider = pb.AlterTableRequest(schema_name=SCHEMA, table=table(request(destination, "gap", wide)))
    assert client.call("AlterTable", wider).success
    spark.sql(f"restore table {name} to version as of {version}").collect()
    message = client.write(writers[2]).task.message
    assert "batch 2 was undone" in message
    assert "batch 2 was undone" in client.call("AlterTable", wider).task.message
    assert [row[0] for row in versions(destination, "gap")] == [1]

    for statement in message.split("go on without: ")[1].split("; "):
        spark.sql(statement)
    assert client.write(writers[2]).success
    assert [row[0] for row in versions(destination, "gap")] == [1, 3]


@pytest.mark.thorough
def test_a_restore_of_a_table_without_history_is_refused_with_the_undone_batches(
    destination: Destination, client: Client
) -> None:
    """Landed rows are deleted once they are applied, so a batch cannot be applied again.

    version    1     2     3
    commit     1: a  2: b  restore to 1
    """
    spark, name = destination.spark, f"{SCHEMA}.live_gap"
    writers = [
        request(destination, "live_gap", LIVE).add_row([str(day), "x", "{}", at(day)])
        for day in (1, 2, 3)
    ]

    def write(writer: RequestWriter) -> Any:
        return client.call("WriteBatch", batch(writer))

    assert write(writers[0]).success
    version = spark.sql(f"describe history {name} limit 1").collect()[0].version
    assert write(writers[1]).success
    restore = f"restore table {name} to version as of {version}"
    spark.sql(restore).collect()
    for writer in writers[1:]:
        message = write(writer).task.message
        assert "batch 2 was undone" in message
    assert [row[0] for row in live_rows(destination, "live_gap")] == [1]

    # Both ways out.
    spark.sql(restore.replace(str(version), str(version + 1))).collect()
    assert write(writers[1]).success
    assert [row[0] for row in live_rows(destination, "live_gap")] == [1, 2]
    spark.sql(restore).collect()
    message = write(writers[2]).task.message
    for statement in message.split("go on without: ")[1].split("; "):
        spark.sql(statement)
    assert write(writers[2]).success
    assert [row[0] for row in live_rows(destination, "live_gap")] == [1, 3]


@pytest.mark.thorough
def test_a_copy_to_history_mode_has_no_batch_of_an_earlier_table_with_its_name(
    destination: Destination, client: Client
) -> None:
    period = dict.fromkeys(HEADER[3:5], "UTC_DATETIME") | {HEADER[5]: "BOOLEAN"}
    columns = {**LIVE, **period}
    old, new, newer = (request(destination, "copied", columns) for _ in range(3))
    for writer, key, day in ((old, "7", 1), (new, "8", 2), (newer, "9", 3)):
        cells = [key, "x", "{}", at(day), at(day), END, "true"]
        writer.add_csv("upsert", "u.csv", list(columns), [cells])
    live = request(destination, "copied_live", LIVE).add_row(["1", "a", "{}", at(1)])
    copying = pb.CopyOperation(copy_table_to_history_mode=pb.CopyTableToHistoryMode(
        from_table="copied_live", to_table="copied"))  # fmt: skip
    assert client.write(old).success
    destination.spark.sql(f"drop table {SCHEMA}.copied")
    assert client.call("WriteBatch", batch(live)).success

    assert client.migrate(SCHEMA, "copied_live", copy=copying).success
    assert client.write(new).success
    # A repeat leaves the landed rows of the copy.
    assert client.migrate(SCHEMA, "copied_live", copy=copying).success
    assert client.write(newer).success

    assert [row[0] for row in live_rows(destination, "copied")] == [1, 8, 9]
    landed = destination.spark.table(f"{SCHEMA}.copied__landing").orderBy("id").collect()
    assert [row.id for row in landed] == [8, 9]


@pytest.mark.thorough
def test_an_update_that_is_applied_again_keeps_a_column_that_it_did_not_have(
    destination: Destination, client: Client
) -> None:
    """
    version    1     2, 3         4     5            6
    commit     1: a  color = red  2: b  3: has color restore to 3
    """
    spark, name = destination.spark, f"{SCHEMA}.later"
    first = upserts(request(destination, "later"), ("1", "a", "1", 1))
    second = updates(request(destination, "later"), ("1", "b", UNMODIFIED, 2))
    third = request(destination, "later", {**COLUMNS, "color": "STRING"})
    third.add_csv("earliest_start", "e.csv", ["id", "_fivetran_start"], [["2", at(3)]])
    third.add_csv("upsert", "u.csv", [*ROW, "color"], [
        ["2", "c", "3", at(3), END, "true", at(3), "blue"]])  # fmt: skip
    adding = pb.AddOperation(add_column_with_default_value=pb.AddColumnWithDefaultValue(
        column="color", column_type=pb.DataType.STRING, default_value="red"))  # fmt: skip
    assert client.write(first).success
    assert client.migrate(SCHEMA, "later", add=adding).success
    version = spark.sql(f"describe history {name} limit 1").collect()[0].version
    assert client.write(second).success
    assert client.write(third).success

    def colors() -> list[tuple[Any, ...]]:
        rows = spark.table(name).orderBy("id", "_fivetran_start").collect()
        return [(row.id, row.name, row.color) for row in rows]

    expected = colors()
    assert expected == [(1, "a", "red"), (1, "b", "red"), (2, "c", "blue")]
    spark.sql(f"restore table {name} to version as of {version}").collect()

    assert client.write(third).success

    assert colors() == expected


@pytest.mark.thorough
def test_a_batch_that_delta_skips_keeps_its_landed_rows(
    destination: Destination, client: Client
) -> None:
    """Delta keeps the last number of the table longer than the log keeps its commit."""
    first, second = (request(destination, "idle", LIVE) for _ in range(2))
    first.add_csv("upsert", "u.csv", list(LIVE), [["1", "a", "{}", at(1)]])
    second.add_csv("upsert", "u.csv", list(LIVE), [["2", "b", "{}", at(2)]])
    assert client.call("WriteBatch", batch(first)).success
    spark, name = destination.spark, f"{SCHEMA}.idle"
    table_id = spark.sql(f"describe detail {name}").collect()[0].id
    with_number = {"txnAppId": f"dbt_history:live:{table_id}", "txnVersion": "9"}
    spark.table(name).where("false").write.options(**with_number).format("delta").mode(
        "append"
    ).saveAsTable(name)

    message = client.call("WriteBatch", batch(second)).task.message
    assert "batch 2 of tests_serve.idle is landed and was not applied" in message
    assert spark.table(f"{name}__landing").count() == 1
    spark.sql(f"drop table {name}__landing")
    statement = message.split("greater: ")[1].split("; ")[0]
    spark.sql(statement.replace("…", "9"))
    assert client.call("WriteBatch", batch(second)).success
    assert [row[0] for row in live_rows(destination, "idle")] == [1, 2]


@pytest.mark.thorough
def test_rows_that_a_table_without_history_does_not_take_are_a_task(
    destination: Destination, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    """A constraint, NOT NULL and the length of a text: a repeated call would fail again."""
    spark, name = destination.spark, f"{SCHEMA}.constrained"
    spark.sql(
        f"create table {name} (id int, name varchar(6), data string not null,"
        " _fivetran_synced timestamp) using delta"
    )
    spark.sql(f"alter table {name} add constraint positive check (id > 0)")

    def write(*rows: list[str]) -> Any:
        writer = request(destination, "constrained", LIVE)
        writer.add_csv("upsert", "u.csv", list(LIVE), rows)
        return client.call("WriteBatch", batch(writer))

    for number, row, reason in (
        (1, ["-7", "a", "{}"], "CHECK constraint positive (id > 0) violated"),
        (2, ["1", "a", NULL], "NOT NULL constraint violated for column: data"),
        (3, ["1", "sesame!", "{}"], "exceeds char/varchar type length limitation"),
    ):
        message = write([*row, at(1)]).task.message
        assert message.startswith(f"batch {number} of {name} is landed and was not applied")
        assert reason in message
        assert "-7" not in message
        assert f"landed, not applied: batch {number} of {name}" in message
        spark.sql(message.split("with other files: ")[1].split("; then")[0]).collect()
    assert "sesame!" not in caplog.text
    assert write(["1", "a", "{}", at(1)]).success
    assert live_rows(destination, "constrained") == [(1, "a", "{}")]

    # Its column can neither be dropped nor get another type, by a new column or in place.
    def alter(columns: dict[str, Any], key: list[str]) -> Any:
        wanted = table(request(destination, "constrained", columns, key=key))
        return client.call("AlterTable", pb.AlterTableRequest(
            schema_name=SCHEMA, table=wanted, drop_columns=True))  # fmt: skip

    spark.sql(f"alter table {name} add constraint short check (length(name) < 6)")
    for type_ in ("LONG", "STRING"):
        message = alter({**LIVE, "id": type_}, ["id"]).task.message
        assert "id because this column is referenced by the following check" in message
    message = alter({"id": "INT", "data": "JSON"}, ["id"]).task.message
    assert "name because this column is referenced by the following check" in message
    assert spark.table(name).columns == list(LIVE)
    assert write(["2", "b", "{}", at(1)]).success
    spark.sql(f"alter table {name} drop constraint positive")
    assert alter({**LIVE, "id": "LONG"}, ["id"]).success


@pytest.mark.thorough
def test_a_column_with_the_prefix_of_a_type_change_is_refused_and_never_dropped(
    destination: Destination, client: Client
) -> None:
    columns = {"id": "INT", "name": "STRING", "a b": "STRING", "_fivetran_synced": "UTC_DATETIME"}
    writer = request(destination, "prefixed", columns)
    writer.add_csv("upsert", "u.csv", list(columns), [["1", "a", "x", at(1)]])
    assert client.call("WriteBatch", batch(writer)).success
    reserved = request(destination, "prefixed", {**columns, "__new_name": "STRING"})
    assert "this name is reserved" in client.call("WriteBatch", batch(reserved)).task.message
    for operation in (
        {"rename": pb.RenameOperation(rename_column=pb.RenameColumn(
            from_column="name", to_column="__new_name"))},
        {"copy": pb.CopyOperation(copy_column=pb.CopyColumn(
            from_column="name", to_column="__new_name"))},
        {"add": pb.AddOperation(add_column_with_default_value=pb.AddColumnWithDefaultValue(
            column="__new_name", column_type=pb.DataType.STRING, default_value="x"))},
    ):  # fmt: skip
        refused = client.migrate(SCHEMA, "prefixed", **operation)
        assert "this name is reserved" in refused.task.message

    # A column of the owner's.
    spark, name = destination.spark, f"{SCHEMA}.prefixed"
    spark.sql(f"alter table {name} add columns (__new_name string)")
    spark.sql(f"update {name} set __new_name = 'kept'")
    assert client.call("WriteBatch", batch(writer)).success
    assert client.migrate(SCHEMA, "prefixed", add=pb.AddOperation(
        add_column_with_default_value=pb.AddColumnWithDefaultValue(
            column="more", column_type=pb.DataType.STRING, default_value="x"))).success  # fmt: skip
    assert [row["__new_name"] for row in spark.table(name).collect()] == ["kept"]


@pytest.mark.thorough
def test_repeated_migrations_over_grpc_change_nothing(
    destination: Destination, client: Client
) -> None:
    writer = upserts(request(destination, "moved"), ("1", "a", "1.5", 1))
    assert client.write(writer).success
    adding = pb.AddOperation(
        add_column_in_history_mode=pb.AddColumnInHistoryMode(
            column="color", column_type=pb.DataType.JSON, default_value="red",
            operation_timestamp=at(2),
        )
    )  # fmt: skip
    copying = pb.CopyOperation(copy_column=pb.CopyColumn(from_column="name", to_column="alias"))
    setting = pb.UpdateColumnValueOperation(column="amount", value="NULL")
    moving = pb.RenameOperation(rename_table=pb.RenameTable(from_table="moved", to_table="removed"))
    cloning = pb.CopyOperation(copy_table=pb.CopyTable(from_table="removed", to_table="cloned"))

    for _ in range(2):
        assert client.migrate(SCHEMA, "moved", add=adding).success
        assert client.migrate(SCHEMA, "moved", copy=copying).success
        assert client.migrate(SCHEMA, "moved", update_column_value=setting).success
    for _ in range(2):
        assert client.migrate(SCHEMA, "moved", rename=moving).success
        assert client.migrate(SCHEMA, "removed", copy=cloning).success
    # The next batch finds its table and its number under the new name.
    later = request(destination, "removed", {**COLUMNS, "color": "JSON", "alias": "STRING"})
    assert client.write(updates(later, ("1", "b", "2", 3))).success

    rows = destination.spark.table(f"{SCHEMA}.removed").orderBy("_fivetran_start").collect()
    assert [(r.name, r.amount, r.color, r.alias, r._fivetran_active) for r in rows] == [
        ("a", None, None, "a", False),
        ("a", None, "red", "a", False),
        ("b", Decimal("2.00"), "red", "a", True),
    ]
    assert len(versions(destination, "cloned")) == 2
    described = pb.DescribeTableRequest(schema_name=SCHEMA, table_name="removed")
    columns = client.call("DescribeTable", described).table.columns
    assert next(c.type for c in columns if c.name == "color") == pb.DataType.JSON

    early = pb.DropOperation(
        drop_column_in_history_mode=pb.DropColumnInHistoryMode(
            column="color", operation_timestamp=at(2)
        )
    )
    refused = client.migrate(SCHEMA, "removed", drop=early)
    assert "1 active versions start after" in refused.task.message
    unknown = pb.SyncModeMigrationOperation(type=pb.SyncModeMigrationType.HISTORY_TO_LIVE)
    assert client.migrate(SCHEMA, "removed", sync_mode_migration=unknown).unsupported
    for _ in range(2):
        assert client.migrate(SCHEMA, "removed", drop=pb.DropOperation(drop_table=True)).success
    assert client.call("DescribeTable", described).not_found
    # A table created again under the name has no rows or batches of the dropped one.
    assert client.write(upserts(request(destination, "removed"), ("5", "z", "1", 1))).success
    assert [row[0] for row in versions(destination, "removed")] == [5]


def certificate() -> tuple[bytes, bytes]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return private, made.public_bytes(serialization.Encoding.PEM)


def test_a_call_without_the_token_is_refused_and_tls_is_supported(
    destination: Destination, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    caplog.set_level(logging.INFO)
    token = "a-secret-that-is-long"
    certificates, public = certificate_files(tmp_path)
    service = Service(destination, token)
    server, port = start(service, "127.0.0.1:0", certificates.credentials())
    channel = secure_channel(port, public)
    asked = pb.DescribeTableRequest(schema_name=SCHEMA, table_name="nothing")
    writer = upserts(request(destination, "nothing"), ("1", "a", "1", 1))
    right = [
        Client(channel, {"token": token}),
        Client(channel, {}, (("authorization", f"Bearer {token}"),)),
    ]
    wrong = [
        Client(channel),
        Client(channel, {"token": token[:-1]}),
        Client(channel, {}, (("authorization", "Bearer wrong"),)),
    ]

    form = wrong[0].call("ConfigurationForm", pb.ConfigurationFormRequest())
    assert [(field.name, field.required) for field in form.fields] == [("token", True)]
    assert wrong[0].call("Capabilities", pb.CapabilitiesRequest()).batch_file_format == 1
    for client in wrong:
        calls: list[tuple[str, Any]] = [
            ("DescribeTable", asked),
            ("WriteHistoryBatch", history_batch(writer)),
            ("Test", pb.TestRequest(name="spark")),
            ("Migrate", pb.MigrateRequest()),
        ]
        for name, message in calls:
            message.ClearField("configuration")
            with pytest.raises(grpc.RpcError) as refused:
                client.call(name, message)
            assert refused.value.code() == grpc.StatusCode.UNAUTHENTICATED
    for client in right:
        asked.ClearField("configuration")
        assert client.call("DescribeTable", asked).not_found
        tests = [client.call("Test", pb.TestRequest(name=test.name)) for test in form.tests]
        assert [answer.success for answer in tests] == [True, True]
    assert right[0].call("Test", pb.TestRequest(name="x")).failure
    with pytest.raises(grpc.RpcError):
        Client.at(port, configuration={"token": token}).method("DescribeTable")(asked, timeout=5)
    server.stop(None).wait()
    assert token not in caplog.text
    assert metric(service, "calls_total", call="DescribeTable", outcome="success") == 2
    assert metric(service, "calls_total", call="DescribeTable", outcome="unauthenticated") == 3
    assert metric(service, "calls_total", call="Test", outcome="refused") == 1
    assert metric(service, "calls_in_progress") == 0
    assert not destination.spark.catalog.tableExists(f"{SCHEMA}.nothing")


def metric(service: Service, name: str, **labels: str) -> float | None:
    return service.metrics.registry.get_sample_value(f"dbt_history_{name}", labels)


def certificate_files(folder: Path) -> tuple[Certificates, bytes]:
    """Files of a new key and its certificate, and the certificate."""
    private, public = certificate()
    (folder / "key").write_bytes(private)
    (folder / "cert").write_bytes(public)
    return Certificates(folder / "key", folder / "cert"), public


def secure_channel(port: int, root: bytes) -> grpc.Channel:
    # Channels with equal arguments share their connections.
    options = [("grpc.use_local_subchannel_pool", 1)]
    return grpc.secure_channel(f"localhost:{port}", grpc.ssl_channel_credentials(root), options)


def test_certificates_are_reloaded_and_health_and_reflection_need_no_token(
    destination: Destination, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    certificates, first = certificate_files(tmp_path)
    service = Service(destination, "a-secret")
    server, port = start(service, "127.0.0.1:0", certificates.credentials(), with_reflection=True)

    def status(root: bytes, name: str = "") -> int:
        with secure_channel(port, root) as channel:
            stub = health_pb2_grpc.HealthStub(channel)
            request = health_pb2.HealthCheckRequest(service=name)
            return int(stub.Check(request, timeout=TIMEOUT).status)

    serving = health_pb2.HealthCheckResponse.SERVING
    assert [status(first, name) for name in ("", SERVICE.full_name)] == [serving] * 2
    with secure_channel(port, first) as channel:
        listed = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo(
            iter([reflection_pb2.ServerReflectionRequest(list_services="")]), timeout=TIMEOUT
        )
        names = [found.name for found in next(listed).list_services_response.service]
    assert SERVICE.full_name in names

    # While the key is replaced and the certificate is not, the first pair stays in use.
    private, second = certificate()
    (tmp_path / "key").write_bytes(private)
    assert status(first) == serving
    assert "not reloaded" in caplog.text
    (tmp_path / "cert").write_bytes(second)
    assert status(second) == serving
    with pytest.raises(grpc.RpcError):
        status(first)
    assert "reloaded the certificate" in caplog.text
    (tmp_path / "cert").write_bytes(first)
    with pytest.raises(RefusedError, match="is for another key"):
        Certificates(tmp_path / "key", tmp_path / "cert")

    service.health.enter_graceful_shutdown()
    assert status(second) == health_pb2.HealthCheckResponse.NOT_SERVING
    server.stop(None).wait()


def test_a_certificate_that_is_replaced_with_its_size_and_time_is_reloaded(tmp_path: Path) -> None:
    certificates, public = certificate_files(tmp_path)
    before = (tmp_path / "cert").stat()
    assert certificates.changed() is None
    (tmp_path / "cert").write_bytes(public)
    os.utime(tmp_path / "cert", ns=(before.st_atime_ns, before.st_mtime_ns))

    assert certificates.changed() is not None
    assert certificates.changed() is None


def test_a_log_record_of_a_call_is_the_json_object_of_the_guide(
    destination: Destination, caplog: pytest.LogCaptureFixture
) -> None:
    server, port = start(Service(destination), "127.0.0.1:0")
    caplog.set_level(logging.INFO)
    bad = pb.DescribeTableRequest(schema_name=SCHEMA, table_name="a`\n{")
    assert Client.at(port).call("DescribeTable", bad).task.message
    server.stop(None).wait()

    line = JsonFormatter().format(caplog.records[-1])
    assert "\n" not in line
    found = json.loads(line)
    assert "is not a valid name" in found.pop("message")
    assert found.pop("seconds") >= 0
    assert datetime.fromisoformat(found.pop("time")).tzinfo is not None
    assert found == {
        "level": "WARNING", "message-origin": "sdk_destination", "call": "DescribeTable",
        "table": f"{SCHEMA}.a`\n{{", "outcome": "refused",
    }  # fmt: skip


@pytest.mark.thorough
def test_the_self_test_passes_on_a_destination_that_works(destination: Destination) -> None:
    steps = list(SelfTest(Service(destination, "a-secret")).steps())
    assert [step for step in steps if step.problem] == []
    assert len(steps) == 10


@pytest.mark.thorough
def test_the_self_test_reports_a_batch_that_is_not_applied_and_removes_its_tables(
    destination: Destination, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {row[0] for row in destination.spark.sql("show schemas").collect()}
    monkeypatch.setattr(Engine, "merge", lambda *_: "1 batch")
    *_, failed, removed = SelfTest(Service(destination)).steps()
    assert "is landed and was not applied" in failed.problem
    assert (failed.name, removed.problem) == ("an encrypted batch of CSV files is applied", "")
    assert {row[0] for row in destination.spark.sql("show schemas").collect()} == before
    assert list(destination.root.glob(".dbt_history_check_*")) == []


def test_the_command_requires_tls_and_a_token_except_on_loopback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DBT_HISTORY_TOKEN", raising=False)
    private, public = certificate()
    (tmp_path / "key").write_bytes(private)
    (tmp_path / "cert").write_bytes(public)
    root = ["serve", "--root", str(tmp_path)]
    tls = ["--tls-key", str(tmp_path / "key"), "--tls-cert", str(tmp_path / "cert")]

    for options in (["--host", "0.0.0.0"], ["--host", "::", *tls], tls[:2]):
        done = CliRunner().invoke(main, [*root, *options])
        assert done.exit_code == 2, done.output
    shutil.rmtree(tmp_path)


def lose_catalog_entry(destination: Destination, warehouse: Path, *names: str) -> None:
    """Leave tables only in their folders, as a kill between commit and catalog entry does."""
    for name in names:
        place = warehouse / f"{SCHEMA}.db" / name
        shutil.copytree(place, place.with_name(f"{name}_kept"))
        destination.spark.sql(f"drop table {SCHEMA}.{name}")
        shutil.move(place.with_name(f"{name}_kept"), place)


@pytest.mark.thorough
@pytest.mark.parametrize("migration", ["drop", "rename"])
def test_a_table_found_in_its_folder_is_not_found_again_by_an_old_name(
    migration: str, destination: Destination, client: Client, warehouse: Path
) -> None:
    """
    folder        rows 1   catalog entry lost   batch 2      drop or rename   batch 3, a new table
    rows in it    1                             1, 2         1, 2             1, 2
    """
    name = f"found_{migration}"
    first, second, third = (
        upserts(request(destination, name), (key, key, "1", int(key))) for key in "123"
    )
    assert client.write(first).success
    lose_catalog_entry(destination, warehouse, name, f"{name}__landing")
    assert client.write(second).success
    assert numbers(destination, name) == [1, 2]

    if migration == "drop":
        assert client.migrate(SCHEMA, name, drop=pb.DropOperation(drop_table=True)).success
    else:
        renaming = pb.RenameTable(from_table=name, to_table=f"{name}_new")
        renamed = pb.RenameOperation(rename_table=renaming)
        assert client.migrate(SCHEMA, name, rename=renamed).success
        assert [row[0] for row in versions(destination, f"{name}_new")] == [1, 2]
    assert client.write(third).success

    assert [row[0] for row in versions(destination, name)] == [3]
    assert numbers(destination, name) == [1]
    landed = destination.spark.table(f"{SCHEMA}.{name}__landing").collect()
    assert {row.id for row in landed} == {3}


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["copy_table", "copy_table_to_history_mode"])
def test_a_copy_killed_before_its_catalog_entry_is_finished_by_its_repeat(
    kind: str, destination: Destination, client: Client, warehouse: Path
) -> None:
    source, to = f"whole_{kind}", f"copy_{kind}"
    rows = request(destination, source, LIVE).add_row(["1", "a", "{}", at(1)])
    assert client.call("WriteBatch", batch(rows)).success
    copying = copy_of(kind, source, to)
    assert client.migrate(SCHEMA, source, copy=copying).success
    lose_catalog_entry(destination, warehouse, to)

    assert client.migrate(SCHEMA, source, copy=copying).success

    assert [row[0] for row in live_rows(destination, to)] == [1]


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["copy_table", "copy_table_to_history_mode"])
def test_a_copy_of_a_later_table_with_the_same_name_is_refused(
    kind: str, destination: Destination, client: Client
) -> None:
    name = f"twice_{kind}"
    rows = request(destination, name, LIVE).add_row(["1", "a", "{}", at(1)])
    copying = copy_of(kind, name, f"{name}_copied")
    assert client.call("WriteBatch", batch(rows)).success
    assert client.migrate(SCHEMA, name, copy=copying).success
    assert client.migrate(SCHEMA, name, copy=copying).success
    assert client.migrate(SCHEMA, name, rename=renaming(name, f"{name}_before")).success
    rows = request(destination, name, LIVE).add_row(["2", "b", "{}", at(2)])
    assert client.call("WriteBatch", batch(rows)).success

    assert "exists already" in client.migrate(SCHEMA, name, copy=copying).task.message


def copy_of(kind: str, source: str, to: str) -> pb.CopyOperation:
    made = {"copy_table": pb.CopyTable, "copy_table_to_history_mode": pb.CopyTableToHistoryMode}
    return pb.CopyOperation(**{kind: made[kind](from_table=source, to_table=to)})


def renaming(source: str, to: str) -> pb.RenameOperation:
    return pb.RenameOperation(rename_table=pb.RenameTable(from_table=source, to_table=to))


@pytest.mark.thorough
@pytest.mark.parametrize("moved", ["", "__landing"])
def test_a_rename_killed_after_its_files_were_moved_is_completed_by_its_repeat(
    moved: str, destination: Destination, client: Client, warehouse: Path
) -> None:
    """
    catalog   a, a__landing   a, a__landing   or   b, a__landing   b, b__landing
    folder    a, a__landing   b, a__landing        b, b__landing   b, b__landing
                              | killed             | killed        repeated
    """
    name, to = f"killed{moved}_from", f"killed{moved}_to"
    spark, folder = destination.spark, warehouse / f"{SCHEMA}.db"
    first, second = (upserts(request(destination, name), (key, "x", "1", int(key))) for key in "12")
    assert client.write(first).success
    if moved:
        listed = f"'{CATALOG_NAME}' = '{SCHEMA}.{to}'"
        spark.sql(f"alter table {SCHEMA}.{name} set tblproperties ({listed})")
        spark.sql(f"alter table {SCHEMA}.{name} rename to {SCHEMA}.{to}")
    spark.sql(
        f"alter table {SCHEMA}.{name}{moved} set tblproperties"
        f" ('{CATALOG_NAME}' = '{SCHEMA}.{to}{moved}')"
    )
    shutil.move(folder / f"{name}{moved}", folder / f"{to}{moved}")
    forget_logs(spark)

    for _ in range(2):
        assert client.migrate(SCHEMA, name, rename=renaming(name, to)).success
    first.table = second.table = to
    assert client.write(second).success

    assert [row[0] for row in versions(destination, to)] == [1, 2]
    assert numbers(destination, to) == numbers(destination, f"{to}__landing") == [1, 2]
    assert spark.sql(f"show tables in {SCHEMA} like '{name}*'").collect() == []
    asked = pb.DescribeTableRequest(schema_name=SCHEMA, table_name=name)
    assert client.call("DescribeTable", asked).not_found
    unknown = client.migrate(SCHEMA, "nowhere", rename=renaming("nowhere", "busy_name"))
    assert "nowhere does not exist" in unknown.task.message


@pytest.mark.thorough
def test_leftover_files_in_the_folder_of_a_new_name_are_moved_and_kept(
    destination: Destination, client: Client, warehouse: Path
) -> None:
    """
    folder            of a killed call   of a dropped table   of a table with another name
    rename, copy to   moves them         moves them           refused
    """
    spark, folder = destination.spark, warehouse / f"{SCHEMA}.db"
    killed, dropped, used = (folder / f"left_{name}" for name in ("killed", "dropped", "used"))
    killed.mkdir()
    (killed / "part.parquet").write_text("not committed")
    for place, owner in ((dropped, ""), (used, f"{SCHEMA}.left_owner")):
        spark.sql(
            f"create table {SCHEMA}.{place.name} using delta location '{place}'"
            f" tblproperties ('{CATALOG_NAME}' = '{owner}') as select 7 as id"
        )
    spark.sql(f"drop table {SCHEMA}.{dropped.name}")
    spark.sql(f"alter table {SCHEMA}.{used.name} rename to {SCHEMA}.left_owner")

    for place in (killed, dropped):
        for copy in (False, True):
            name = f"from_{place.name}_{copy}".lower()
            rows = request(destination, name, LIVE).add_row(["1", "a", "{}", at(1)])
            assert client.call("WriteBatch", batch(rows)).success
            if copy:
                copying = copy_of("copy_table_to_history_mode", name, place.name)
                assert client.migrate(SCHEMA, name, copy=copying).success
                assert live_rows(destination, place.name) == [(1, "a", "{}")]
                continue
            assert client.migrate(SCHEMA, name, rename=renaming(name, place.name)).success
            later = request(destination, place.name, LIVE).add_row(["2", "b", "{}", at(2)])
            assert client.call("WriteBatch", batch(later)).success
            assert [row[0] for row in live_rows(destination, place.name)] == [1, 2]
            # Leave files in the folder again, for the copy.
            spark.sql(f"drop table {SCHEMA}.{place.name}")
            place.mkdir(exist_ok=True)
            (place / "part.parquet").write_text("not committed")
    assert {path.name for path in folder.glob("left_killed__*/part.parquet")} == {"part.parquet"}
    assert spark.table(f"delta.`{next(folder.glob('left_dropped__*/_delta_log')).parent}`").count()

    assert client.call("WriteBatch", batch(request(destination, "from_used", LIVE).add_row(
        ["1", "a", "{}", at(1)]))).success  # fmt: skip
    for message in (
        client.migrate(SCHEMA, "from_used", rename=renaming("from_used", used.name)),
        client.migrate(SCHEMA, "from_used", copy=copy_of(
            "copy_table_to_history_mode", "from_used", used.name)),
    ):  # fmt: skip
        assert f"contains the table {SCHEMA}.left_owner" in message.task.message
    assert [row.id for row in spark.table(f"{SCHEMA}.left_owner").collect()] == [7]
    # The name of a table that was not renamed is no repeated rename.
    unknown = client.migrate(SCHEMA, "nowhere", rename=renaming("nowhere", "from_used"))
    assert "nowhere does not exist" in unknown.task.message


@pytest.mark.thorough
def test_a_table_of_another_owner_with_the_name_of_a_landing_table_is_kept(
    destination: Destination, client: Client
) -> None:
    spark = destination.spark
    spark.sql(f"create table {SCHEMA}.mine__landing using delta as select 7 as id")
    rows = request(destination, "mine", LIVE).add_row(["1", "a", "{}", at(1)])
    dropping = pb.DropOperation(drop_table=True)
    for answer in (
        client.call("WriteBatch", batch(rows)),
        client.call("CreateTable", pb.CreateTableRequest(schema_name=SCHEMA, table=table(rows))),
        client.migrate(SCHEMA, "mine", drop=dropping),
    ):
        assert "mine__landing exists and is not a landing table" in answer.task.message
    assert [row.id for row in spark.table(f"{SCHEMA}.mine__landing").collect()] == [7]

    spark.sql(f"alter table {SCHEMA}.mine__landing rename to {SCHEMA}.mine_again")
    assert client.call("WriteBatch", batch(rows)).success


@pytest.mark.thorough
def test_a_soft_truncation_without_a_column_marks_rows_and_deletes_none(
    destination: Destination, client: Client
) -> None:
    columns = {**LIVE, "_fivetran_deleted": "BOOLEAN"}
    rows = request(destination, "soft", columns).add_row(["1", "a", "{}", at(1), "false"])
    assert client.call("WriteBatch", batch(rows)).success
    message = pb.TruncateRequest(
        schema_name=SCHEMA, table_name="soft", soft=pb.SoftTruncate(),
        utc_delete_before=Timestamp(seconds=int(datetime(2024, 1, 2, tzinfo=UTC).timestamp())),
    )  # fmt: skip
    assert client.call("Truncate", message).success
    found = destination.spark.table(f"{SCHEMA}.soft").collect()
    assert [(row.id, row._fivetran_deleted) for row in found] == [(1, True)]


@pytest.mark.thorough
def test_a_type_that_gives_two_records_the_same_key_is_refused(
    destination: Destination, client: Client
) -> None:
    """`is_update`: also the name of a column in the statement that counts skipped rows."""
    columns = {"is_update": "STRING", "id": "STRING", "_fivetran_synced": "UTC_DATETIME"}
    key = ["is_update", "id"]
    writer = request(destination, "same", columns, key=key)
    writer.add_csv("upsert", "u.csv", list(columns), [["a", "1", at(1)], ["a", "01", at(1)]])
    assert client.call("WriteBatch", batch(writer)).success
    unknown = request(destination, "same", columns, key=key)
    unknown.add_csv("update", "u.csv", list(columns), [["a", "2", at(1)]])
    skipped = client.call("WriteBatch", batch(unknown)).warning.message
    assert skipped.splitlines()[1:] == ["  is_update 'a', id '2'"]

    wanted = request(destination, "same", {**columns, "id": "LONG"}, key=key)
    alteration = pb.AlterTableRequest(schema_name=SCHEMA, table=table(wanted))
    answer = client.call("AlterTable", alteration)
    assert "1 keys would be those of several records" in answer.task.message
    destination.spark.sql(f"update {SCHEMA}.same set is_update = 'b' where id = '01'")
    assert client.call("AlterTable", alteration).success
    found = destination.spark.table(f"{SCHEMA}.same").orderBy("is_update").collect()
    assert [(row.is_update, row.id) for row in found] == [("a", 1), ("b", 1)]


@pytest.mark.thorough
def test_a_key_column_renamed_by_its_old_name_in_other_letters_stays_the_key(
    destination: Destination, client: Client
) -> None:
    rows = request(destination, "letters", LIVE).add_row(["1", "a", "{}", at(1)])
    assert client.call("WriteBatch", batch(rows)).success
    for before, after in (("ID", "number"), ("Data", "text")):
        moving = pb.RenameColumn(from_column=before, to_column=after)
        renamed = pb.RenameOperation(rename_column=moving)
        assert client.migrate(SCHEMA, "letters", rename=renamed).success
    asked = pb.DescribeTableRequest(schema_name=SCHEMA, table_name="letters")
    columns = client.call("DescribeTable", asked).table.columns
    assert [column.name for column in columns if column.primary_key] == ["number"]
    assert [column.name for column in columns if column.type == pb.DataType.JSON] == ["text"]


@pytest.mark.thorough
def test_a_history_table_continues_after_its_key_was_renamed_or_altered(
    destination: Destination, client: Client
) -> None:
    """key id -> item, by the migration; -> item and name, by AlterTable; -> item, by a batch."""
    assert client.write(upserts(request(destination, "keyed"), ("1", "a", "1", 1))).success
    moving = pb.RenameColumn(from_column="id", to_column="item")
    for _ in range(2):
        renamed = pb.RenameOperation(rename_column=moving)
        assert client.migrate(SCHEMA, "keyed", rename=renamed).success
    columns = {"item": "LONG", **{name: type_ for name, type_ in COLUMNS.items() if name != "id"}}

    def write(key: list[str], name: str, day: int) -> Any:
        writer = request(destination, "keyed", columns, key=key)
        earliest = {"item": "1", "name": name, "_fivetran_start": at(day)}
        names = [*key, "_fivetran_start"]
        writer.add_csv("earliest_start", "e.csv", names, [[earliest[part] for part in names]])
        row = ["1", name, "1", at(day), END, "true", at(day)]
        writer.add_csv("upsert", "u.csv", ["item", *ROW[1:]], [row])
        return client.write(writer)

    def stored() -> list[tuple[Any, ...]]:
        rows = destination.spark.table(f"{SCHEMA}.keyed").orderBy("_fivetran_start").collect()
        return [(row.item, row.name, row._fivetran_active) for row in rows]

    assert write(["item"], "b", 2).success
    assert stored() == [(1, "a", False), (1, "b", True)]
    wanted = request(destination, "keyed", columns, key=["item", "name"])
    alteration = pb.AlterTableRequest(schema_name=SCHEMA, table=table(wanted))
    for _ in range(2):
        assert client.call("AlterTable", alteration).success
    assert write(["item", "name"], "c", 3).success
    assert stored() == [(1, "a", False), (1, "b", True), (1, "c", True)]
    assert write(["item"], "d", 4).success
    assert stored() == [(1, "a", False), (1, "b", False), (1, "c", False), (1, "d", True)]

    # No active version has the region: a batch would begin each record anew.
    columns |= {"region": "STRING"}
    wider = request(destination, "keyed", columns, key=["item", "region"])
    alteration = pb.AlterTableRequest(schema_name=SCHEMA, table=table(wider))
    refusal = "the key cannot become item, region: the table has active versions without a value"
    assert refusal in client.call("AlterTable", alteration).task.message
    assert refusal in client.write(wider).task.message
    assert "region" not in destination.spark.table(f"{SCHEMA}.keyed").columns
    adding = pb.AddColumnInHistoryMode(
        column="region",
        column_type=pb.DataType.STRING,
        default_value="x",
        operation_timestamp=at(5),
    )
    added = pb.AddOperation(add_column_in_history_mode=adding)
    assert client.migrate(SCHEMA, "keyed", add=added).success
    assert client.call("AlterTable", alteration).success


@pytest.mark.thorough
def test_a_default_is_set_in_a_column_that_was_dropped_and_added_by_a_batch(
    destination: Destination, client: Client
) -> None:
    """The property that tells a repeat goes with the column: the log's entries expire.

    Spark masks properties with the names token and url in them (decision 134).
    """
    key = ["token_id"]
    columns = {"token_id": "INT", "_fivetran_synced": "UTC_DATETIME"}
    adding = pb.AddOperation(
        add_column_with_default_value=pb.AddColumnWithDefaultValue(
            column="url", column_type=pb.DataType.STRING, default_value="d"
        )
    )

    def marks() -> list[str]:
        rows = destination.spark.sql(f"show tblproperties {SCHEMA}.again").collect()
        return [row[0] for row in rows if row[0].startswith("dbt_history.migration.")]

    for day in (1, 2):
        rows = request(destination, "again", columns, key=key).add_row([str(day), at(day)])
        assert client.call("WriteBatch", batch(rows)).success
        assert client.migrate(SCHEMA, "again", add=adding).success
        assert len(marks()) == 1
        if day == 1:
            dropping = table(request(destination, "again", columns, key=key))
            message = pb.AlterTableRequest(schema_name=SCHEMA, table=dropping, drop_columns=True)
            assert client.call("AlterTable", message).success
            assert marks() == []
            wider = request(destination, "again", {**columns, "url": "STRING"}, key=key)
            assert client.call("WriteBatch", batch(wider.add_row(["3", at(1), "own"]))).success
    found = destination.spark.table(f"{SCHEMA}.again").collect()
    assert [(row.token_id, row.url) for row in sorted(found)] == [(1, "d"), (2, "d"), (3, "d")]


@pytest.mark.thorough
def test_skipped_rows_are_shown_with_times_of_any_year_in_utc(
    destination: Destination, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = {"at": "UTC_DATETIME", "bytes": "BINARY", "_fivetran_synced": "UTC_DATETIME"}
    rows = [[text, "/w==", at(1)] for text in ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59.9Z")]
    for zone in ("Asia/Tokyo", "America/New_York"):
        writer = request(destination, "zone", columns, key=["at", "bytes"])
        writer.add_csv("update", "u.csv", list(columns), rows)
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        try:
            answer = client.call("WriteBatch", batch(writer))
        finally:
            monkeypatch.undo()
            time.tzset()
        shown = answer.warning.message.splitlines()[1:]
        assert [line.split(", bytes ")[0] for line in shown] == [
            "  at '0001-01-01 00:00:00'", "  at '9999-12-31 23:59:59.9'",
        ]  # fmt: skip
        assert all("xff" in line for line in shown)


@pytest.mark.thorough
def test_a_rename_or_copy_that_was_not_made_is_no_repeat(
    destination: Destination, client: Client
) -> None:
    """
    names     a1 -> b1     items1 -> c1 (copy) -> h1 (copy in history mode), c1 -> d1
    refused   x1 -> b1     items1 -> h1, items1 -> d1
    """
    for name in ("a1", "items1"):
        rows = request(destination, name, LIVE).add_row(["1", "a", "{}", at(1)])
        assert client.call("WriteBatch", batch(rows)).success

    def renamed(source: str, to: str) -> Any:
        return client.migrate(SCHEMA, source, rename=renaming(source, to))

    def copied(kind: str, source: str, to: str) -> Any:
        return client.migrate(SCHEMA, source, copy=copy_of(kind, source, to))

    for _ in range(2):
        assert renamed("a1", "b1").success
        assert copied("copy_table", "items1", "c1").success
        assert copied("copy_table_to_history_mode", "c1", "h1").success
    assert "table tests_serve.x1 does not exist" in renamed("x1", "b1").task.message
    assert "exists already" in copied("copy_table", "items1", "h1").task.message
    assert renamed("c1", "d1").success
    assert "exists already" in copied("copy_table", "items1", "d1").task.message
    assert renamed("b1", "x1").success
    assert renamed("b1", "x1").success
    assert renamed("x1", "b1").success
    assert renamed("x1", "b1").success
    assert "does not exist" in renamed("a1", "b1").task.message


@pytest.mark.thorough
def test_a_table_that_another_tool_created_gets_times_without_a_zone(
    destination: Destination, client: Client
) -> None:
    spark = destination.spark
    spark.sql(
        f"create table {SCHEMA}.adopted (id int, name string, data string,"
        " _fivetran_synced timestamp) using delta"
    )
    columns = {**LIVE, "local": "NAIVE_DATETIME"}
    writer = request(destination, "adopted", columns)
    writer.add_row(["1", "a", "2024-01-01T00:00:00", at(1), "2024-01-01T10:00:00"])
    assert client.call("WriteBatch", batch(writer)).success
    changed = request(destination, "adopted", {**columns, "data": "NAIVE_DATETIME"})
    alteration = pb.AlterTableRequest(schema_name=SCHEMA, table=table(changed))
    assert client.call("AlterTable", alteration).success
    row = spark.table(f"{SCHEMA}.adopted").collect()[0]
    assert (row.data, row.local) == (datetime(2024, 1, 1), datetime(2024, 1, 1, 10))


@pytest.mark.thorough
@pytest.mark.parametrize("has_history", [True, False])
def test_a_table_whose_batches_have_left_the_log_takes_the_next_ones(
    has_history: bool, destination: Destination, client: Client
) -> None:
    """
    version   0        1         ...                             12 and later
    commit    create   batch 1   properties, with checkpoints    the log begins here
    """
    name = f"expired_{has_history}".lower()
    columns: dict[str, Any] = COLUMNS if has_history else LIVE

    def write(day: int, **more: str) -> Any:
        writer = request(destination, name, {**columns, **dict.fromkeys(more, "STRING")})
        period = [at(day), END, "true"] if has_history else []
        cells = [str(day), "x", "1" if has_history else "{}", *period, at(day), *more.values()]
        header = [*(ROW if has_history else LIVE), *more]
        if has_history:
            writer.add_csv(
                "earliest_start", "e.csv", ["id", "_fivetran_start"], [[str(day), at(day)]]
            )
        writer.add_csv("upsert", "u.csv", header, [cells])
        message = (history_batch if has_history else batch)(writer)
        return client.call("WriteHistoryBatch" if has_history else "WriteBatch", message)

    assert write(1).success
    spark, full_name = destination.spark, f"{SCHEMA}.{name}"
    for number in range(11):
        spark.sql(f"alter table {full_name} set tblproperties ('n' = '{number}')")
    expire_log(spark, full_name)
    assert numbers(destination, name) == []

    answer = write(2, color="red")
    assert answer.success, answer.task.message

    found = spark.table(full_name).orderBy("id").collect()
    assert [(row.id, row.color) for row in found] == [(1, None), (2, "red")]
    assert numbers(destination, name) == [2]
