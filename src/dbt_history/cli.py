"""The `dbt-history` command."""

from __future__ import annotations

from pathlib import Path

import click

from dbt_history import __version__, summary
from dbt_history.failures import failures_command
from dbt_history.generate import generate_command
from dbt_history.landing.command import land_command
from dbt_history.options import target_path
from dbt_history.serve.command import serve_command
from dbt_history.timeline.command import timeline_command


@click.group()
@click.version_option(__version__, prog_name="dbt-history")
def main() -> None:
    """History tables on Spark."""


@main.command("summary")
@target_path()
def summary_command(target_path: Path) -> None:
    """Print the changes of the last dbt run to the history tables."""
    try:
        report = summary.read_report(target_path)
    except summary.SummaryError as error:
        raise click.ClickException(str(error)) from None
    click.echo(summary.render(report))


main.add_command(failures_command)
main.add_command(generate_command)
main.add_command(land_command)
main.add_command(serve_command)
main.add_command(timeline_command)
