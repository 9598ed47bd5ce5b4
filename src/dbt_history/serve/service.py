"""The gRPC service: maps calls to operations of the destination and errors to responses."""

from __future__ import annotations

import hmac
import logging
import time
from collections.abc import Callable, Mapping
from concurrent import futures
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Never, TypeVar

import grpc
from google.protobuf.json_format import MessageToDict
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from dbt_history.conventions import FIVETRAN_DELETED, FIVETRAN_SYNCED
from dbt_history.landing.errors import BusyError, RefusedError, first_line
from dbt_history.landing.request import START, Column, Reader, read_type
from dbt_history.serve import destination_pb2 as pb
from dbt_history.serve.destination import CLIENT_WAITS, Destination
from dbt_history.serve.metrics import Metrics
from dbt_history.serve.migrations import migrate

SERVICE = pb.DESCRIPTOR.services_by_name["DestinationConnector"]
TOKEN = "token"
# More than the calls that usually wait for a table.
MAX_WORKERS = 64
CHECKS = {"spark": "Spark answers", "files": "The folder of the batch files is readable"}

log = logging.getLogger("dbt_history.serve")

Call = Callable[[Any, grpc.ServicerContext], Any]
Answer = TypeVar("Answer")


def health_service() -> health.HealthServicer:
    """Answers in a thread of its own: calls that wait for a table may occupy all others."""
    pool = futures.ThreadPoolExecutor(1, "health")
    found = health.HealthServicer(experimental_thread_pool=pool)
    # gRPC reads it from the method. The class sets it for Watch only.
    found.Check.__func__.experimental_thread_pool = pool
    return found


@dataclass
class Service:
    """The calls of the contract. Without a token, every client that can connect may write."""

    destination: Destination
    token: str | None = None
    metrics: Metrics = field(default_factory=Metrics)
    health: health.HealthServicer = field(default_factory=health_service)

    # -- calls without a token ---------------------------------------------------------------------

    def configuration_form(
        self, request: pb.ConfigurationFormRequest, context: grpc.ServicerContext
    ) -> pb.ConfigurationFormResponse:
        field = pb.FormField(
            name=TOKEN,
            label="Token",
            required=self.token is not None,
            description="The token that dbt-history serve was started with",
            text_field=pb.TextField.Password,
        )
        tests = [pb.ConfigurationTest(name=name, label=label) for name, label in CHECKS.items()]
        return pb.ConfigurationFormResponse(
            schema_selection_supported=True,
            table_selection_supported=True,
            fields=[field],
            tests=tests,
        )

    def capabilities(
        self, request: pb.CapabilitiesRequest, context: grpc.ServicerContext
    ) -> pb.CapabilitiesResponse:
        # CSV is read, too. Parquet is preferred because it has native types.
        return pb.CapabilitiesResponse(batch_file_format=pb.BatchFileFormat.PARQUET)

    # -- calls that require the token --------------------------------------------------------------

    def test(self, request: pb.TestRequest, context: grpc.ServicerContext) -> pb.TestResponse:
        self.check_token(request.configuration, context)
        try:
            if request.name == "spark":
                self.destination.spark.sql("select 1").collect()
            elif request.name == "files":
                next(self.destination.root.iterdir(), None)
            else:
                return pb.TestResponse(failure=f"unknown test {request.name!r}")
        except Exception as error:
            return pb.TestResponse(failure=first_line(error))
        return pb.TestResponse(success=True)

    def describe_table(
        self, request: pb.DescribeTableRequest, context: grpc.ServicerContext
    ) -> pb.DescribeTableResponse:
        found: list[pb.Table] = []

        def work() -> str:
            columns = self.destination.describe(request.schema_name, request.table_name)
            if columns is not None:
                listed = [column_message(column, is_key) for column, is_key in columns]
                found.append(pb.Table(name=request.table_name, columns=listed))
            return "described" if found else "does not exist"

        problem = self.perform(request, context, work)
        if problem:
            return pb.DescribeTableResponse(task=pb.Task(message=problem))
        if not found:
            return pb.DescribeTableResponse(not_found=True)
        return pb.DescribeTableResponse(table=found[0])

    def create_table(
        self, request: pb.CreateTableRequest, context: grpc.ServicerContext
    ) -> pb.CreateTableResponse:
        def work() -> str:
            columns, key = columns_of(request.table)
            name = request.table.name
            return self.destination.create(request.schema_name, name, columns, key)

        return answer(pb.CreateTableResponse, self.perform(request, context, work))

    def alter_table(
        self, request: pb.AlterTableRequest, context: grpc.ServicerContext
    ) -> pb.AlterTableResponse:
        def work() -> str:
            columns, key = columns_of(request.table)
            name, drop = request.table.name, request.drop_columns
            return self.destination.alter(request.schema_name, name, columns, key, drop)

        return answer(pb.AlterTableResponse, self.perform(request, context, work))

    def truncate(
        self, request: pb.TruncateRequest, context: grpc.ServicerContext
    ) -> pb.TruncateResponse:
        def work() -> str:
            if not request.HasField("utc_delete_before"):
                raise RefusedError("utc_delete_before is missing")
            at = instant(request.utc_delete_before.seconds, request.utc_delete_before.nanos)
            synced = request.synced_column or FIVETRAN_SYNCED
            # Without a name it is not a truncation that deletes rows.
            is_soft = request.HasField("soft")
            deleted = (request.soft.deleted_column or FIVETRAN_DELETED) if is_soft else None
            schema, name = request.schema_name, request.table_name
            return self.destination.truncate(schema, name, at, synced, deleted)

        return answer(pb.TruncateResponse, self.perform(request, context, work))

    def write_batch(
        self, request: pb.WriteBatchRequest, context: grpc.ServicerContext
    ) -> pb.WriteBatchResponse:
        return self.write(request, context, has_period=False)

    def write_history_batch(
        self, request: pb.WriteHistoryBatchRequest, context: grpc.ServicerContext
    ) -> pb.WriteBatchResponse:
        return self.write(request, context, has_period=True)

    def write(
        self, request: Any, context: grpc.ServicerContext, *, has_period: bool
    ) -> pb.WriteBatchResponse:
        warning = ""

        def work() -> str:
            nonlocal warning
            written = self.destination.write(document_of(request), has_period=has_period)
            warning = written.warning
            return written.text

        problem = self.perform(request, context, work)
        if warning and not problem:
            return pb.WriteBatchResponse(warning=pb.Warning(message=warning))
        return answer(pb.WriteBatchResponse, problem)

    def migrate(
        self, request: pb.MigrateRequest, context: grpc.ServicerContext
    ) -> pb.MigrateResponse:
        is_known = True

        def work() -> str:
            nonlocal is_known
            result = migrate(self.destination, request.details)
            is_known = result is not None
            return result or "is not a supported migration"

        problem = self.perform(request, context, work)
        if not is_known:
            return pb.MigrateResponse(unsupported=True)
        return answer(pb.MigrateResponse, problem)

    # -- common to all calls -----------------------------------------------------------------------

    def perform(self, request: Any, context: grpc.ServicerContext, work: Callable[[], str]) -> str:
        """Do the work of a call. Returns the reason if it was refused, else an empty text."""
        self.check_token(request.configuration, context)
        CLIENT_WAITS.set(context.is_active)
        name, table = type(request).__name__.removesuffix("Request"), table_name_of(request)
        began = time.monotonic()

        def record(level: int, outcome: str, text: str) -> None:
            seconds = round(time.monotonic() - began, 3)
            fields = {"call": name, "table": table, "outcome": outcome, "seconds": seconds}
            message = f"{name} {table!r}: {one_line(text)} ({seconds:.1f} s)"
            log.log(level, "%s", message, extra=fields)

        try:
            result = work()
        except RefusedError as error:
            # Further lines may contain rows, so they are not logged.
            record(logging.WARNING, "refused", f"refused: {first_line(error)}")
            return str(error)
        except BusyError as error:
            record(logging.WARNING, "busy", str(error))
            abort_call(context, grpc.StatusCode.UNAVAILABLE, str(error))
        except Exception as error:
            # The first line is the error; the rest is a Java stack trace.
            record(logging.ERROR, "failed", first_line(error))
            abort_call(context, grpc.StatusCode.INTERNAL, first_line(error))
        record(logging.INFO, "success", result)
        return ""

    def check_token(self, configuration: Mapping[str, str], context: grpc.ServicerContext) -> None:
        """Accept the token in the configuration, or as a bearer token in the call's metadata."""
        if self.token is None:
            return
        metadata = {str(key): str(value) for key, value in context.invocation_metadata() or ()}
        header = metadata.get("authorization", "").removeprefix("Bearer ")
        for candidate in (configuration.get(TOKEN, ""), header):
            if hmac.compare_digest(candidate.encode(), self.token.encode()):
                return
        log.warning(
            "rejected a call with a missing or wrong token from %s", one_line(str(context.peer()))
        )
        abort_call(context, grpc.StatusCode.UNAUTHENTICATED, "the token is missing or wrong")

    def handlers(self) -> grpc.GenericRpcHandler:
        """The handlers by the contract's names of the calls."""
        found = {}
        for method in SERVICE.methods:
            call: Call = getattr(self, snake_case(method.name))
            found[method.name] = grpc.unary_unary_rpc_method_handler(
                self.metrics.measured(method.name, call),
                request_deserializer=message_class(method.input_type).FromString,
                response_serializer=message_class(method.output_type).SerializeToString,
            )
        return grpc.method_handlers_generic_handler(SERVICE.full_name, found)


def start(
    service: Service,
    address: str,
    credentials: grpc.ServerCredentials | None = None,
    *,
    with_reflection: bool = False,
) -> tuple[grpc.Server, int]:
    """Serve at `host:port`; port 0 selects a free one.

    Returns the server and its port. Raises RefusedError if it cannot listen on the address.
    """
    # Only one server may write, so another must not share the port.
    options = [("grpc.so_reuseport", 0)]
    server = grpc.server(futures.ThreadPoolExecutor(MAX_WORKERS), options=options)
    server.add_generic_rpc_handlers((service.handlers(),))
    health_pb2_grpc.add_HealthServicer_to_server(service.health, server)
    if with_reflection:
        names = (SERVICE.full_name, health.SERVICE_NAME, reflection.SERVICE_NAME)
        reflection.enable_server_reflection(names, server)
    try:
        if credentials is not None:
            port = server.add_secure_port(address, credentials)
        else:
            port = server.add_insecure_port(address)
    except RuntimeError:
        raise RefusedError(f"{address} is not available to listen on") from None
    server.start()
    service.health.set(SERVICE.full_name, health_pb2.HealthCheckResponse.SERVING)
    return server, port


def stub(channel: grpc.Channel, name: str) -> Any:
    """A call of the contract, for clients."""
    method = SERVICE.methods_by_name[name]
    return channel.unary_unary(
        f"/{SERVICE.full_name}/{name}",
        request_serializer=message_class(method.input_type).SerializeToString,
        response_deserializer=message_class(method.output_type).FromString,
    )


# -- messages --------------------------------------------------------------------------------------


def message_class(descriptor: Any) -> Any:
    return getattr(pb, descriptor.name)


def snake_case(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")


def answer(response: Callable[..., Answer], problem: str) -> Answer:
    """A response of success, or of a task that describes the problem."""
    return response(task=pb.Task(message=problem)) if problem else response(success=True)


def document_of(request: Any) -> dict[str, Any]:
    """A batch in protobuf's JSON form, as landing reads it, without the configuration."""
    document: dict[str, Any] = MessageToDict(request, preserving_proto_field_name=True)
    document.pop("configuration", None)
    document.setdefault("file_params", {})
    return document


def columns_of(table: pb.Table) -> tuple[list[Column], list[str]]:
    """The columns of a table and its record key. Raises RefusedError for unknown types."""
    reader = Reader({})
    columns = []
    for message in table.columns:
        document = MessageToDict(message, preserving_proto_field_name=True)
        type_ = read_type(reader, message.name, document)
        if type_ is not None:
            columns.append(Column(message.name, type_))
    if reader.problems:
        raise RefusedError(f"table {table.name}", reader.problems)
    key = [c.name for c in table.columns if c.primary_key and c.name.lower() != START]
    return columns, key


def column_message(column: Column, is_key: bool) -> pb.Column:
    message = pb.Column(
        name=column.name, type=pb.DataType.Value(column.type.name), primary_key=is_key
    )
    if column.type.name == "DECIMAL":
        message.params.decimal.precision = column.type.precision
        message.params.decimal.scale = column.type.scale
    return message


def table_name_of(request: Any) -> str:
    """The table of a call for the log, which must not contain configuration, keys or files."""
    if isinstance(request, pb.MigrateRequest):
        return f"{request.details.schema}.{request.details.table}"
    name = request.table_name if hasattr(request, "table_name") else request.table.name
    return f"{request.schema_name}.{name}"


def instant(seconds: int, nanos: int) -> str:
    """A protobuf timestamp as text, truncated to microseconds."""
    try:
        moment = datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)
    except (ValueError, OverflowError, OSError):
        raise RefusedError("utc_delete_before is out of range") from None
    return moment.replace(microsecond=nanos // 1000).isoformat() + "Z"


def abort_call(context: grpc.ServicerContext, code: grpc.StatusCode, details: str) -> Never:
    context.abort(code, one_line(details)[:2000])
    raise AssertionError  # abort raises


def one_line(result: str) -> str:
    return " ".join(result.split())
