"""The command `dbt-history serve`."""

from __future__ import annotations

import ipaddress
import logging
import os
import signal
import threading
from pathlib import Path

import click

from dbt_history.landing.command import Size
from dbt_history.landing.errors import RefusedError
from dbt_history.landing.files import Limits
from dbt_history.landing.table import refuse_iceberg
from dbt_history.session import start_session

TOKEN_VARIABLE = "DBT_HISTORY_TOKEN"
GRACE_SECONDS = 600
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
) -> None:
    """Serve as a gRPC destination that writes history tables.

    Tables are created in the catalog of Spark's settings, in the schemas that the writer names. A
    batch answered with success is in its table exactly once, however often the call is repeated.

    \b
    Examples: dbt-history serve --root /batches
              dbt-history serve --root /batches --host 0.0.0.0 --tls-key key.pem
              --tls-cert cert.pem --token-file token

    \b
    Exit codes: 0  stopped by a signal after finishing calls in progress
                1  the dbt package is missing, or the address is not available
                2  the options are invalid
    """
    token = read_token(token_file)
    if (tls_key is None) != (tls_cert is None):
        raise click.UsageError("--tls-key and --tls-cert must be used together")
    if not is_loopback(host) and (tls_key is None or token is None):
        raise click.UsageError(f"{host} is not a loopback address: TLS and a token are required")
    try:
        from dbt_history.serve.destination import Destination
        from dbt_history.serve.engine import Engine, find_package
        from dbt_history.serve.service import Service, start
    except ImportError as error:
        raise click.ClickException(
            f"{error.name} is not installed: pip install 'dbt-history[serve]'"
        ) from None
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("dbt_history.serve").setLevel(logging.INFO)
    limits = Limits(max_file_size, max_ratio, max_cell_size, max(4 * max_cell_size, Limits.row))
    try:
        engine = Engine(find_package(project_dir), max_deleted_share)
        spark = start_session("dbt-history serve")
        refuse_iceberg(spark)
        service = Service(Destination(spark, root.resolve(), engine, limits), token)
        certificate = None
        if tls_key is not None and tls_cert is not None:
            certificate = (tls_key.read_bytes(), tls_cert.read_bytes())
        server, bound_port = start(service, address_of(host, port), certificate)
    except RefusedError as error:
        raise click.ClickException(str(error)) from None
    click.echo(f"serving at {address_of(host, bound_port)}" + (" with TLS" if tls_key else ""))
    wait_for_signal()
    click.echo("stopping after calls in progress")
    server.stop(GRACE_SECONDS).wait()
    engine.close()


def wait_for_signal() -> None:
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    stopped.wait()
