"""Shows the rows for which tests failed; dbt only counts them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.functions import col

from dbt_history.options import target_path
from dbt_history.session import start_session
from dbt_history.summary import SummaryError, read_artifact

MAX_CELL_WIDTH = 40
FAILED_STATUSES = ("fail", "warn")


@dataclass(frozen=True)
class FailedTest:
    """A test that found rows: its name, the tested nodes, the number of rows, and its query."""

    name: str
    tested: tuple[str, ...]
    rows: int
    query: str


def failed_tests(
    run_results: Mapping[str, Any], manifest: Mapping[str, Any]
) -> Iterable[FailedTest]:
    """The tests of the last run that failed or warned, in dbt's order; not those in error."""
    for result in run_results["results"]:
        unique_id = str(result["unique_id"])
        if not unique_id.startswith("test.") or result["status"] not in FAILED_STATUSES:
            continue
        node = manifest["nodes"][unique_id]
        # Stored failures are those of the run; otherwise the query runs again.
        stored = result.get("relation_name")
        query = f"select * from {stored}" if stored else result.get("compiled_code")
        parents = (node.get("depends_on") or {}).get("nodes", [])
        tested = tuple(parent.rpartition(".")[2] for parent in parents)
        if query:
            yield FailedTest(node["name"], tested, int(result["failures"] or 0), query)


def cell(value: str | None) -> str:
    """One line of at most 40 characters; NULL has brackets to distinguish it from text."""
    if value is None:
        return "[NULL]"
    line = value.replace("\n", "\\n")
    return line if len(line) <= MAX_CELL_WIDTH else line[: MAX_CELL_WIDTH - 1] + "…"


def table(rows: Sequence[Sequence[str]]) -> Iterable[str]:
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        yield "  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip()


def failure_lines(spark: SparkSession, test: FailedTest, limit: int) -> Iterable[str]:
    """A heading for a test, and its first rows ordered by their columns."""
    count = f"{test.rows:,} row{'' if test.rows == 1 else 's'}"
    looked_at = f" of {', '.join(test.tested)}" if test.tested else ""
    yield f"{test.name}: {count}{looked_at}"
    try:
        found = spark.sql(test.query)
        cells = found.select(
            *(col(f"`{name.replace('`', '``')}`").cast("string") for name in found.columns)
        )
        rows = cells.orderBy(*range(1, len(found.columns) + 1)).limit(limit).collect()
    except PySparkException as error:
        yield f"  not shown: {str(error).splitlines()[0]}"
        return
    lines = [found.columns, *([cell(value) for value in row] for row in rows)]
    yield from (f"  {line}" for line in table(lines))
    if not rows:
        yield "  no rows: the tested data has changed since the run"
    elif test.rows > len(rows):
        yield f"  … {test.rows - len(rows):,} more"


@click.command("failures")
@target_path()
@click.option(
    "--limit", default=5, show_default=True, type=click.IntRange(min=1), help="Rows per test."
)
def failures_command(target_path: Path, limit: int) -> None:
    """Show the rows for which the tests of the last dbt run failed.

    Reads stored failures, or runs the test's query again. Writes nothing.

    \b
    Examples: dbt-history failures
              dbt-history failures --limit 20

    \b
    Exit codes: 0  the rows are printed, or no test failed
                1  there are no artifacts of dbt, or they cannot be read
                2  the options are invalid
    """
    try:
        run_results = read_artifact(target_path / "run_results.json")
        manifest = read_artifact(target_path / "manifest.json")
    except SummaryError as error:
        raise click.ClickException(str(error)) from None
    failed = list(failed_tests(run_results, manifest))
    if not failed:
        click.echo("no test failed")
        return
    spark = start_session("dbt-history failures")
    for test in failed:
        click.echo("\n".join(["", *failure_lines(spark, test, limit)]))
