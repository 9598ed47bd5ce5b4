"""Shows the rows for which tests failed; dbt only counts them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from dbt_history.explore.project import DbtProject, ExploreError, open_project
from dbt_history.explore.show import cell
from dbt_history.options import project_options, target_path
from dbt_history.output import aligned
from dbt_history.sql import quoted
from dbt_history.summary import SummaryError, read_artifact

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
        # The project may have been parsed again since the run.
        node = manifest["nodes"].get(unique_id) or {"name": unique_id.split(".")[2]}
        # Stored failures are those of the run; otherwise the query runs again.
        stored = result.get("relation_name")
        query = f"select * from {stored}" if stored else result.get("compiled_code")
        parents = (node.get("depends_on") or {}).get("nodes", [])
        tested = tuple(parent.rpartition(".")[2] for parent in parents)
        if query:
            yield FailedTest(node["name"], tested, int(result["failures"] or 0), query)


def first_rows(
    project: DbtProject, query: str, limit: int
) -> tuple[list[str], list[tuple[str | None, ...]]]:
    """Columns of a query, and its first rows as text, ordered by their columns."""
    names = [name for name, *_ in project.rows(f"describe query {query}")]
    texts = (f"cast({quoted(name)} as string) as {quoted(name)}" for name in names)
    rows = project.rows(
        # A line of its own: the query may end with a comment.
        f"select {', '.join(texts)} from (\n{query}\n) as failures"
        f" order by {', '.join(str(place + 1) for place in range(len(names)))} limit {limit}"
    )
    return names, rows


def failure_lines(project: DbtProject, test: FailedTest, limit: int) -> Iterable[str]:
    """A heading for a test, and its first rows."""
    count = f"{test.rows:,} row{'' if test.rows == 1 else 's'}"
    looked_at = f" of {', '.join(test.tested)}" if test.tested else ""
    yield f"{test.name}: {count}{looked_at}"
    try:
        names, rows = first_rows(project, test.query, limit)
    except ExploreError as error:
        yield f"  not shown: {error.message.splitlines()[0]}"
        return
    lines = [names, *([cell(value) for value in row] for row in rows)]
    yield from (f"  {line}" for line in aligned(lines))
    if not rows:
        yield "  no rows: the tested data has changed since the run"
    elif test.rows > len(rows):
        yield f"  … {test.rows - len(rows):,} more"


@click.command("failures")
@target_path(" in the project")
@click.option(
    "--limit", default=5, show_default=True, type=click.IntRange(min=1), help="Rows per test."
)
@project_options
def failures_command(
    target_path: Path, limit: int, project_dir: Path, profiles_dir: Path | None, target: str | None
) -> None:
    """Show the rows for which the tests of the last dbt run failed.

    Reads stored failures, or runs the test's query again, over the connection of the project's
    profile. Writes no table.

    \b
    Examples: dbt-history failures
              dbt-history failures --limit 20

    \b
    Exit codes: 0  the rows are printed, or no test failed
                1  there are no artifacts of dbt, or no dbt project with the package, or Spark
                   cannot be reached
                2  the options are invalid
                3  another process has the embedded metastore open
    """
    try:
        results = project_dir / target_path
        run_results = read_artifact(results / "run_results.json")
        manifest = read_artifact(results / "manifest.json")
    except SummaryError as error:
        raise click.ClickException(str(error)) from None
    failed = list(failed_tests(run_results, manifest))
    if not failed:
        click.echo("no test failed")
        return
    with open_project(project_dir, profiles_dir, target) as project:
        project.rows("show schemas")  # fails once here if Spark cannot be reached, not per test
        for test in failed:
            click.echo("\n".join(["", *failure_lines(project, test, limit)]))
