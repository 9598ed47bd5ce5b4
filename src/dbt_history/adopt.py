"""Writes `history` models that go on with the tables of snapshots."""

from __future__ import annotations

from pathlib import Path

import click

from dbt_history.generate import GenerateError, read_files, write_files
from dbt_history.operations import OperationError, dbt_options, run_operation
from dbt_history.options import project_options


@click.command("adopt")
@click.argument("snapshots", nargs=-1, required=True, metavar="SNAPSHOT…")
@click.option(
    "--folder",
    default="models/history",
    show_default=True,
    help="Folder for the files, relative to the project.",
)
@project_options
def adopt_command(
    snapshots: tuple[str, ...],
    folder: str,
    project_dir: Path,
    profiles_dir: Path | None,
    target: str | None,
) -> None:
    """Write a history model that goes on with the table of each SNAPSHOT.

    The table is checked, and not changed.

    \b
    Examples: dbt-history adopt customers_snapshot
              dbt-history adopt --project-dir shop customers_snapshot orders_snapshot

    \b
    Exit codes: 0  the files are written, or were as they should be
                1  dbt failed, or a snapshot cannot be adopted; nothing is written
                2  the options are invalid
    """
    arguments = {"snapshot": list(snapshots), "folder": folder}
    try:
        options = dbt_options(profiles_dir, target)
        files = read_files(run_operation(project_dir, "adopt_snapshot", arguments, options))
        written = write_files(project_dir, files)
    except (GenerateError, OperationError) as error:
        raise click.ClickException(str(error)) from None
    for name in written:
        click.echo(f"wrote {name}")
    click.echo(
        "next: remove the definitions of these snapshots (dbt accepts one node of a name), then run"
        f" dbt run --select {' '.join(snapshots)}"
    )
