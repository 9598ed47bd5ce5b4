"""The self-test of the destination: generated batches through the real service, then removed."""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import grpc
from google.protobuf.json_format import ParseDict

from dbt_history.landing.errors import LandingError, RefusedError, first_line
from dbt_history.landing.table import quoted
from dbt_history.landing.writer import UNMODIFIED, RequestWriter, csv_text, parquet
from dbt_history.serve import destination_pb2 as pb
from dbt_history.serve.service import TOKEN, Service, start, stub

COLUMNS = {"id": "LONG", "name": "STRING", "_fivetran_synced": "UTC_DATETIME"}
HEADER = (*COLUMNS, "_fivetran_start", "_fivetran_end", "_fivetran_active")
END = "9999-12-31T23:59:59.999Z"
SECONDS = 600

# id, name, day of the start, is current
#
#           day 1              day 2
# key 1     [ first -----------) [ second ---- open
# key 2     [ removed ---------)               deleted
EXPECTED = [(1, "first", 1, False), (1, "second", 2, True), (2, "removed", 1, False)]


@dataclass(frozen=True)
class Step:
    """A part of the self-test. `problem` is empty if it succeeded."""

    name: str
    problem: str = ""


@dataclass
class SelfTest:
    """Writes two tables in a schema of its own, and removes them."""

    service: Service
    schema: str = field(default_factory=lambda: f"dbt_history_check_{uuid.uuid4().hex[:8]}")
    requests: int = 0

    def steps(self) -> Iterator[Step]:
        """Runs the steps until one fails. Raises nothing that a step can report."""
        destination = self.service.destination
        with temporary_folder(destination.root) as folder:
            self.folder = folder
            own = Service(replace(destination, root=folder), self.service.token)
            server, port = start(own, "127.0.0.1:0")
            try:
                with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
                    self.channel = channel
                    for name, work in self.parts():
                        step = attempted(name, work)
                        yield step
                        if step.problem:
                            break
            finally:
                server.stop(None).wait()
                yield attempted("tables removed", self.remove)

    def parts(self) -> list[tuple[str, Callable[[], object]]]:
        first = self.request("items", "ZSTD", {
            "earliest_start": csv_text(("id", "_fivetran_start"), [("1", day(1)), ("2", day(1))]),
            "upsert": csv_text(HEADER, [version("1", "first", 1), version("2", "removed", 1)]),
        })  # fmt: skip
        second = self.request("items", "GZIP", {
            "earliest_start": parquet(("id", "_fivetran_start"), [("1", day(2))]),
            "update": parquet(HEADER, [version("1", "second", 2)]),
            "delete": parquet(("id", "_fivetran_end"), [("2", day(2))]),
        })  # fmt: skip
        plain = self.request("live", "ZSTD", {
            "upsert": csv_text(tuple(COLUMNS), [("1", "first", day(1))]),
            "update": csv_text(tuple(COLUMNS), [("1", UNMODIFIED, day(2))]),
        })  # fmt: skip
        damaged = self.request("items", "ZSTD", {"delete": csv_text(("id",), [("1",)])})
        damaged.keys = {name: bytes(32) for name in damaged.keys}
        return [
            ("Spark answers", lambda: self.passes("spark")),
            ("the folder of the batch files is readable", self.root_is_readable),
            ("a table is created and described", lambda: self.create(first)),
            ("an encrypted batch of CSV files is applied", lambda: self.write(first)),
            ("an encrypted batch of Parquet files is applied", lambda: self.write(second)),
            ("a repeated call changes nothing", lambda: self.write(first)),
            ("a batch with a wrong key is refused", lambda: self.is_refused(damaged)),
            ("the history has the expected versions", self.compare),
            ("a batch for a table without history is applied", lambda: self.write_live(plain)),
        ]

    # -- requests ----------------------------------------------------------------------------------

    def request(self, table: str, compression: str, files: dict[str, bytes]) -> RequestWriter:
        self.requests += 1
        writer = RequestWriter(
            self.folder, COLUMNS, schema=self.schema, table=table, compression=compression,
            is_encrypted=True,
        )  # fmt: skip
        for stage, data in files.items():
            writer.add(stage, f"{self.requests}_{stage}.aes", data)
        return writer

    def call(self, name: str, message: Any) -> Any:
        message.configuration[TOKEN] = self.service.token or ""
        response = stub(self.channel, name)(message, timeout=SECONDS)
        if response.WhichOneof("response") == "task":
            raise RefusedError(response.task.message)
        return response

    def passes(self, test: str) -> None:
        if failure := self.call("Test", pb.TestRequest(name=test)).failure:
            raise RefusedError(failure)

    def root_is_readable(self) -> None:
        root = self.service.destination.root
        next(root.iterdir(), None)
        if not os.access(root, os.R_OK | os.X_OK):
            raise RefusedError(f"{root} is not readable")

    def create(self, writer: RequestWriter) -> None:
        columns = {**writer.columns, "_fivetran_start": "UTC_DATETIME",
                   "_fivetran_end": "UTC_DATETIME", "_fivetran_active": "BOOLEAN"}  # fmt: skip
        listed = [ParseDict(writer.column(*column), pb.Column()) for column in columns.items()]
        table = pb.Table(name=writer.table, columns=listed)
        self.call("CreateTable", pb.CreateTableRequest(schema_name=self.schema, table=table))
        asked = pb.DescribeTableRequest(schema_name=self.schema, table_name=writer.table)
        found = {column.name for column in self.call("DescribeTable", asked).table.columns}
        if found != set(columns):
            raise RefusedError(f"described as {sorted(found)}, expected {sorted(columns)}")

    def write(self, writer: RequestWriter) -> None:
        message = ParseDict(writer.document(), pb.WriteHistoryBatchRequest())
        self.call("WriteHistoryBatch", message)

    def is_refused(self, writer: RequestWriter) -> None:
        try:
            self.write(writer)
        except RefusedError as error:
            if "wrong key" not in str(error):
                raise
        else:
            raise RefusedError("it was accepted")

    def compare(self) -> None:
        found = self.rows("items", "id, name, day(_fivetran_start), _fivetran_active")
        if found != EXPECTED:
            raise RefusedError(f"it has {found}, expected {EXPECTED}")

    def write_live(self, writer: RequestWriter) -> None:
        self.call("WriteBatch", ParseDict(writer.document(), pb.WriteBatchRequest()))
        found = self.rows("live", "id, name, day(_fivetran_synced)")
        if found != [(1, "first", 2)]:
            raise RefusedError(f"it has {found}, expected {[(1, 'first', 2)]}")

    def rows(self, table: str, columns: str) -> list[tuple[Any, ...]]:
        name = f"{quoted(self.schema)}.{quoted(table)}"
        rows = self.service.destination.spark.sql(f"select {columns} from {name}").collect()
        return sorted(tuple(row) for row in rows)

    def remove(self) -> None:
        spark = self.service.destination.spark
        spark.sql(f"drop schema if exists {quoted(self.schema)} cascade")


def attempted(name: str, work: Callable[[], object]) -> Step:
    try:
        work()
    except grpc.RpcError as error:
        return Step(name, f"{error.code().name}: {error.details()}")
    except LandingError as error:
        return Step(name, str(error))
    except Exception as error:
        return Step(name, first_line(error))
    return Step(name)


@contextmanager
def temporary_folder(root: Path) -> Iterator[Path]:
    """A folder below the root, which all executors can read; elsewhere if the root is read-only."""
    inside = root if os.access(root, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix=".dbt_history_check_", dir=inside) as folder:
        yield Path(folder)


def day(number: int) -> str:
    return f"2024-01-{number:02}T00:00:00Z"


def version(key: str, name: str, start: int) -> Sequence[str]:
    return key, name, day(start), day(start), END, "true"
