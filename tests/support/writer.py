"""A client of the gRPC contract, and messages made from the files of a `RequestWriter`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import grpc
from google.protobuf.json_format import ParseDict

from dbt_history.landing.writer import RequestWriter
from dbt_history.serve import destination_pb2 as pb
from dbt_history.serve.service import stub
from tests.support.waiting import TIMEOUT


@dataclass
class Client:
    """Calls by their names in the contract: `client.call("CreateTable", message)`.

    A call fails after `wait` seconds.
    """

    channel: grpc.Channel
    configuration: dict[str, str] = field(default_factory=dict)
    metadata: tuple[tuple[str, str], ...] = ()
    wait: float = TIMEOUT

    @classmethod
    def at(cls, port: int, **more: Any) -> Self:
        return cls(grpc.insecure_channel(f"127.0.0.1:{port}"), **more)

    def method(self, name: str) -> Any:
        return stub(self.channel, name)

    def call(self, name: str, message: Any) -> Any:
        return self.method(name)(self.ready(message), timeout=self.wait, metadata=self.metadata)

    def start(self, name: str, message: Any) -> Any:
        """Start a call without waiting for it."""
        return self.method(name).future(self.ready(message), metadata=self.metadata)

    def ready(self, message: Any) -> Any:
        if "configuration" in message.DESCRIPTOR.fields_by_name:
            message.configuration.update(self.configuration)
        return message

    def write(self, writer: RequestWriter) -> Any:
        return self.call("WriteHistoryBatch", history_batch(writer))

    def migrate(self, schema: str, table: str, **operation: Any) -> Any:
        details = pb.MigrationDetails(schema=schema, table=table, **operation)
        return self.call("Migrate", pb.MigrateRequest(details=details))


def history_batch(writer: RequestWriter) -> pb.WriteHistoryBatchRequest:
    message = pb.WriteHistoryBatchRequest()
    ParseDict(writer.document(), message)
    return message


def batch(writer: RequestWriter) -> pb.WriteBatchRequest:
    message = pb.WriteBatchRequest()
    ParseDict(writer.document(), message)
    return message


def table(writer: RequestWriter, **more: Any) -> pb.Table:
    """The table of a request; `more`: further columns, by type."""
    columns = {**writer.columns, **more}
    listed = [ParseDict(writer.column(name, type_), pb.Column()) for name, type_ in columns.items()]
    return pb.Table(name=writer.table, columns=listed)
