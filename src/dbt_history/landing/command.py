"""The command `dbt-history land`."""

from __future__ import annotations

import locale
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain, groupby
from pathlib import Path

import click
from pyspark.sql import SparkSession

from dbt_history.landing.errors import LandingError, RefusedError, first_line
from dbt_history.landing.files import Limits
from dbt_history.landing.land import Landed, land
from dbt_history.landing.request import read_request
from dbt_history.landing.table import LandingTable, refuse_iceberg
from dbt_history.landing.verify import verify_landing
from dbt_history.session import no_delta, require_delta, start_session

UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
REFUSED, FAILED = 1, 3
# A sort key of names.
Order = Callable[[str], str]


class Size(click.ParamType[int]):
    """A number of bytes: 1048576, 1M, 16g."""

    name = "size"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        found = re.fullmatch(r"(\d+)\s*([kmgt]?)i?b?", str(value).strip().lower())
        if not found or not int(found[1]):
            self.fail(f"{value!r} is not a size such as 16M or 64G", param, ctx)
        return int(found[1]) * UNITS[found[2]]


def find_requests(paths: tuple[Path, ...]) -> list[Path]:
    """The requests in landing order: as given; of a folder or pattern by their paths."""
    found: list[Path] = []
    for are_files, group in groupby(paths, key=Path.is_file):
        part = list(group)
        found += without_shell_order(part) if are_files else chain(*map(listed, part))
    return list(dict.fromkeys(found))


def listed(path: Path) -> list[Path]:
    """The requests in a folder or that match a pattern."""
    if path.is_dir():
        inside = sorted(path.glob("*.json"), key=natural_order)
        if not inside:
            raise click.UsageError(f"no *.json in {path}")
        return inside
    if not path.exists() and any(letter in str(path) for letter in "*?["):
        anchor = Path(path.anchor) if path.is_absolute() else Path()
        matching = sorted(anchor.glob(str(path.relative_to(path.anchor))), key=natural_order)
        if not matching:
            raise click.UsageError(f"nothing matches {path}")
        return matching
    return [path]


def without_shell_order(files: list[Path]) -> list[Path]:
    """Files as given; if they are in the order of a shell's pattern, request_2 before request_10.

    land b/*.json a/*.json      b/1 b/10 b/2   a/1 a/10 a/2
    landed                      b/1 b/2 b/10   a/1 a/2 a/10
    """
    folders = (list(group) for _, group in groupby(files, key=lambda file: file.parent))
    parts = [files] if shell_order(files) else folders
    return [file for part in parts for file in by_numbers(part)]


def shell_order(files: list[Path]) -> Order | None:
    """The order in which a shell would list the files as they are, by code points or in its locale.

    code points   A.json   B.json   a.json
    locale        a.json   A.json   B.json
    """
    names = [str(file) for file in files]
    orders: tuple[Order, ...] = (str, locale.strxfrm)
    return next((order for order in orders if names == sorted(names, key=order)), None)


def by_numbers(files: list[Path]) -> list[Path]:
    """Files in the order of a shell with request_2 before request_10; others as given.

    Only numbers change the order: in a locale, initial.json stays before Update.json.
    """
    order = shell_order(files)
    return sorted(files, key=lambda file: order(padded(str(file)))) if order else files


def natural_order(path: Path) -> tuple[str, str]:
    """Sort key that orders request_2 before request_10, and folders in the same way.

    Equal names are in the order of their folders: day_9/request.json, day_10/request.json.
    """
    return padded("\0".join(path.parts)), str(path)


def padded(text: str) -> str:
    """The text with 255 digits in each number: as many as the longest name of a file."""
    return re.sub(r"\d+", lambda number: f"{int(number[0]):0255}", text)


def summary_lines(landed: Landed) -> Iterator[str]:
    for note in landed.notes:
        yield f"  {note}"
    name = Path(landed.request.source).name
    if not landed.is_new:
        yield f"{name}: landed before as batch {landed.batch} of {landed.table}; nothing to do"
        return
    stages = ", ".join(f"{count:,} {stage}" for stage, count in sorted(landed.counts.items()))
    what = "valid, would be landed as" if landed.is_dry else "landed as"
    rows = f"{sum(landed.counts.values()):,} rows"
    yield f"{name}: {what} batch {landed.batch} of {landed.table}: {rows}" + (
        f" ({stages})" if stages else ""
    )


def start_delta_session(name: str) -> SparkSession:
    """The session of `start_session`. Raises RefusedError, NoDeltaError, MetastoreInUseError."""
    spark = start_session(name)
    refuse_iceberg(spark)
    require_delta(spark)
    return spark


def reason(error: Exception) -> str:
    """The first line of the message, or what the settings lack."""
    return first_line(no_delta(error) or error)


@click.command("land")
@click.argument("requests", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--schema", help="Schema of the landing table.  [default: the request's schema]")
@click.option("--table", help="Name of the landing table.  [default: <table>_landing]")
@click.option("--batch", type=click.IntRange(1), help="Batch number; only with a single request.")
@click.option(
    "--root",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    help="Folder that must contain all files.  [default: the request's folder]",
)
@click.option("--new-key", is_flag=True,
              help="Accept a primary key other than that of the batch before.")  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Read and check everything, write nothing.")
@click.option("--max-file-size", type=Size(), default="64G", show_default=True,
              help="Refuse a file that expands further.")  # fmt: skip
@click.option("--max-ratio", type=click.IntRange(2), default=1000, show_default=True,
              help="Refuse a file that expands more times than this.")  # fmt: skip
@click.option("--max-cell-size", type=Size(), default="16M", show_default=True,
              help="Refuse a longer cell.")  # fmt: skip
@click.option("--quiet", is_flag=True, help="No progress.")
def land_command(
    requests: tuple[Path, ...],
    schema: str | None,
    table: str | None,
    batch: int | None,
    root: Path | None,
    new_key: bool,
    dry_run: bool,
    max_file_size: int,
    max_ratio: int,
    max_cell_size: int,
    quiet: bool,
) -> None:
    """Land history-mode batches as staged rows in a Delta table.

    REQUESTS are WriteHistoryBatchRequest files in protobuf's JSON form, folders of such files, or
    patterns. They are landed in order, each as one batch in one commit. A request that was landed
    before changes nothing; a refused request lands nothing.

    Those of a folder or pattern are landed in the order of their paths, request_2 before
    request_10. Files in alphabetical order, as a shell expands a pattern, keep this order, but
    request_2 is before request_10; files in any other order are landed as given.

    \b
    Examples: dbt-history land requests/
              dbt-history land request.json --schema raw --dry-run

    \b
    Exit codes: 0  all requests are landed, now or earlier; with --dry-run, all are valid
                1  a request was refused; the requests before it are landed
                2  the options are invalid
                3  Spark failed, or concurrent writers won every attempt
    """
    with suppress(locale.Error):
        locale.setlocale(locale.LC_COLLATE, "")
    paths = find_requests(requests)
    if batch is not None and len(paths) > 1:
        raise click.UsageError(f"--batch is only for a single request, got {len(paths)}")
    limits = Limits(max_file_size, max_ratio, max_cell_size, max(4 * max_cell_size, Limits.row))

    def progress(done: int, total: int) -> None:
        click.echo(f"  {done} of {total} files read", err=True)

    spark = None
    for path in paths:
        try:
            request = read_request(path)
            spark = spark or start_delta_session("dbt-history land")
            target = LandingTable(
                spark, schema or request.schema, table or default_name(request.table)
            )
            done = land(
                spark,
                request,
                root or path.resolve().parent,
                target,
                batch=batch,
                new_key=new_key,
                limits=limits,
                dry_run=dry_run,
                progress=None if quiet else progress,
            )
        except RefusedError as error:
            click.echo(f"dbt-history land: {error}", err=True)
            raise SystemExit(REFUSED) from None
        except LandingError as error:
            click.echo(f"dbt-history land: {error}", err=True)
            raise SystemExit(FAILED) from None
        except Exception as error:
            click.echo(f"dbt-history land: {path}: {reason(error)}", err=True)
            raise SystemExit(FAILED) from None
        for line in summary_lines(done):
            click.echo(line)


@click.command("verify-landing")
@click.argument("table")
@click.option(
    "--root",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    required=True,
    help="Folder that contains the files, as when they were landed.",
)
def verify_command(table: str, root: Path) -> None:
    """Compare landed batches with their commits: files by digest, rows by number.

    TABLE is a landing table, as schema.table. Each commit contains the SHA-256 of the batch's
    files. Files that are gone are counted; rows may be deleted once they are applied. Delta removes
    commits after 90 days: a batch whose commit is gone is listed as unknown and not compared.

    \b
    Examples: dbt-history verify-landing shop.items_landing --root requests/

    \b
    Exit codes: 0  every batch in the log is as landed
                1  a file was changed, rows are missing, or the table does not exist
                2  the options are invalid
                3  Spark failed
    """
    schema, _, name = table.rpartition(".")
    if not schema:
        raise click.UsageError(f"{table!r} is not of the form schema.table")
    try:
        landing = LandingTable(start_delta_session("dbt-history verify-landing"), schema, name)
        found = list(verify_landing(landing, root))
    except RefusedError as error:
        click.echo(f"dbt-history verify-landing: {error}", err=True)
        raise SystemExit(REFUSED) from None
    except Exception as error:
        click.echo(f"dbt-history verify-landing: {table}: {reason(error)}", err=True)
        raise SystemExit(FAILED) from None
    for batch in found:
        click.echo(batch)
    if not all(batch.is_as_landed for batch in found):
        raise SystemExit(REFUSED)


def default_name(table: str) -> str:
    return f"{table}_landing"
