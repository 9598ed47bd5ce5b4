"""The command `dbt-history serve`."""

from __future__ import annotations

import ipaddress
import logging
import os
import signal
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from dbt_history.extras import not_installed
from dbt_history.landing.command import Size, start_delta_session
from dbt_history.landing.errors import RefusedError
from dbt_history.landing.files import Limits

if TYPE_CHECKING:
    from dbt_history.serve.service import Service

log = logging.getLogger("dbt_history.serve")

TOKEN_VARIABLE = "DBT_HISTORY_TOKEN"
GRACE_SECONDS = 600
PROBE_SECONDS = 30
SPARK_ENDED = 3
LOOPBACK = "127.0.0.1"


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def read_token(path: Path | None) -> str | None:
    """The token from a file or the environment; command lines are visible to other users."""
    if path is None:
        return os.environ.get(TOKEN_VARIABLE) or None
    token = path.read_text(encoding="utf-8").strip()
    if not token:
        raise click.UsageError(f"{path} contains no token")
    return token


def address_of(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host and not host.startswith("[") else f"{host}:{port}"


class Address(click.ParamType[tuple[str, int]]):
    """HOST:PORT, or a port of the loopback address."""

    name = "host:port"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        host, _, port = str(value).rpartition(":")
        if not port.isdigit() or not 0 < int(port) < 1 << 16:
            self.fail(f"{value!r} is not an address such as 9090 or 0.0.0.0:9090", param, ctx)
        return host.strip("[]") or LOOPBACK, int(port)


@click.command("serve")
@click.option("--port", type=click.IntRange(0, 65535), default=50052, show_default=True,
              help="Port to listen on; 0 selects a free one.")  # fmt: skip
@click.option("--host", default=LOOPBACK, show_default=True,
              help="Address to listen on; all but loopback require TLS and a token.")  # fmt: skip
@click.option(
    "--root",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    required=True,
    help="Folder that must contain all batch files.",
)
@click.option(
    "--project-dir",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    default=".",
    show_default=True,
    help="A dbt project that has the package dbt_history installed.",
)
@click.option("--tls-key", type=click.Path(dir_okay=False, exists=True, path_type=Path),
              help="Private key of the server, PEM.")  # fmt: skip
@click.option("--tls-cert", type=click.Path(dir_okay=False, exists=True, path_type=Path),
              help="Certificate chain of the server, PEM.")  # fmt: skip
@click.option(
    "--token-file",
    type=click.Path(dir_okay=False, exists=True, path_type=Path),
    help=f"File with the token that calls must contain.  [default: ${TOKEN_VARIABLE}]",
)
@click.option("--max-deleted-share", type=click.FloatRange(0, 1), default=0.5, show_default=True,
              help="Refuse a batch that leaves more of the current records without a version;"
              " 1 refuses none.")  # fmt: skip
@click.option("--max-file-size", type=Size(), default="64G", show_default=True,
              help="Refuse a file that expands further.")  # fmt: skip
@click.option("--max-ratio", type=click.IntRange(2), default=1000, show_default=True,
              help="Refuse a file that expands more times than this.")  # fmt: skip
@click.option("--max-cell-size", type=Size(), default="16M", show_default=True,
              help="Refuse a longer cell.")  # fmt: skip
@click.option("--compact-every", type=click.IntRange(0), default=100, show_default=True,
              help="Compact a table after so many batches; 0: never.")  # fmt: skip
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text",
              show_default=True, help="text to stderr, or json to stdout.")  # fmt: skip
@click.option("--metrics", type=Address(),
              help="Serve metrics in Prometheus' format over HTTP at this address.")  # fmt: skip
@click.option("--reflection", is_flag=True, help="Describe the calls to clients such as grpcurl.")
@click.option("--check", is_flag=True,
              help="Write, compare and remove two tables of generated batches.")  # fmt: skip
def serve_command(
    port: int,
    host: str,
    root: Path,
    project_dir: Path,
    tls_key: Path | None,
    tls_cert: Path | None,
    token_file: Path | None,
    max_deleted_share: float,
    max_file_size: int,
    max_ratio: int,
    max_cell_size: int,
    compact_every: int,
    log_format: str,
    metrics: tuple[str, int] | None,
    reflection: bool,
    check: bool,
) -> None:
    """Serve as a gRPC destination that writes history tables.

    Tables are created in the catalog of Spark's settings, in the schemas that the writer names. A
    batch answered with success is in its table exactly once, however often the call is repeated.

    \b
    Examples: dbt-history serve --root /batches --check
              dbt-history serve --root /batches
              dbt-history serve --root /batches --host 0.0.0.0 --tls-key key.pem
              --tls-cert cert.pem --token-file token

    \b
    Exit codes: 0  stopped by a signal after finishing calls in progress; --check succeeded
                1  the dbt package is missing, an address is not available, the certificate cannot
                   be used, or a step of --check failed
                2  the options are invalid
                3  Spark ended or has no Delta, or another process has the embedded metastore open
    """
    token = read_token(token_file)
    if (tls_key is None) != (tls_cert is None):
        raise click.UsageError("--tls-key and --tls-cert must be used together")
    if not is_loopback(host) and (tls_key is None or token is None):
        raise click.UsageError(f"{host} is not a loopback address: TLS and a token are required")
    try:
        from dbt_history.serve.certificates import Certificates
        from dbt_history.serve.destination import Destination
        from dbt_history.serve.engine import Engine, find_package
        from dbt_history.serve.logs import start_logging
        from dbt_history.serve.service import Service, start
    except ImportError as error:
        raise click.ClickException(not_installed(str(error.name), "serve")) from None
    start_logging(log_format, logging.ERROR if check else logging.INFO)
    stopped = threading.Event()
    if not check:
        stop_on_signals(stopped)
    limits = Limits(max_file_size, max_ratio, max_cell_size, max(4 * max_cell_size, Limits.row))
    certificates = None
    try:
        if tls_key is not None and tls_cert is not None:
            certificates = Certificates(tls_key, tls_cert)
        engine = Engine(find_package(project_dir), max_deleted_share)
        spark = start_delta_session("dbt-history serve")
        destination = Destination(spark, root.absolute(), engine, limits, compact_every)
        service = Service(destination, token)
        if check:
            run_check(service)
        # Again, because Spark sets its own handler for SIGINT.
        stop_on_signals(stopped)
        if metrics is not None:
            service.metrics.serve(*metrics)
        server, bound_port = start(
            service,
            address_of(host, port),
            certificates.credentials() if certificates else None,
            with_reflection=reflection,
        )
    except RefusedError as error:
        raise click.ClickException(str(error)) from None
    announce = log.info if log_format == "json" else click.echo
    announce(f"serving at {address_of(host, bound_port)}" + (" with TLS" if certificates else ""))
    has_spark = wait_until_stopped(stopped, lambda: spark.sql("select 1").collect())
    service.health.enter_graceful_shutdown()
    if has_spark:
        announce("stopping after calls in progress")
    server.stop(GRACE_SECONDS if has_spark else 0).wait()
    destination.close()
    if not has_spark:
        raise SystemExit(SPARK_ENDED)


def stop_on_signals(stopped: threading.Event) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())


def wait_until_stopped(stopped: threading.Event, probe: Callable[[], object]) -> bool:
    """Wait for a signal. Returns False if Spark does not answer, so that a supervisor restarts."""
    while not stopped.wait(PROBE_SECONDS):
        try:
            probe()
        except Exception as error:
            log.error("Spark ended: %s", type(error).__name__)
            return False
    return True


def run_check(service: Service) -> NoReturn:
    """Print the steps of the self-test and exit."""
    from dbt_history.serve.check import SelfTest

    failed = False
    for step in SelfTest(service).steps():
        failed = failed or bool(step.problem)
        click.echo(f"{'failed' if step.problem else 'ok':<7}{step.name}")
        if step.problem:
            click.echo(textwrap.indent(step.problem, " " * 7))
    service.destination.close()
    raise SystemExit(1 if failed else 0)
