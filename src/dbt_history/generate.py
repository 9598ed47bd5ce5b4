"""Writes the models that a run-operation such as `generate_history` prints."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import click

from dbt_history.operations import OperationError, dbt_options, run_operation
from dbt_history.options import project_options
from dbt_history.output import write_file

FILE = re.compile(r"^-- file: ([^\n]+)\n(.*?)^-- end of file$", re.MULTILINE | re.DOTALL)


class GenerateError(Exception):
    """The run-operation printed a path outside the project."""


def read_files(output: str) -> dict[str, str]:
    """The files in the output of the run-operation: text by path."""
    return dict(FILE.findall(output))


def write_files(project: Path, files: Mapping[str, str]) -> list[str]:
    """Write the files that are new or different below `project`; returns their paths.

    Raises GenerateError, before anything is written, for a path outside the project.
    """
    root = project.resolve()
    for name in files:
        if not (root / name).resolve().is_relative_to(root):
            raise GenerateError(f"{name} is not in the project")
    written = []
    for name, text in files.items():
        path = root / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            write_file(path, text)
            written.append(name)
    return written


@click.command("generate")
@click.option(
    "--folder",
    default="models/history",
    show_default=True,
    help="Folder for the files, relative to the project.",
)
@project_options
def generate_command(
    folder: str, project_dir: Path, profiles_dir: Path | None, target: str | None
) -> None:
    """Write a history model for each model, seed and source with `meta: {history: true}`.

    \b
    Examples: dbt-history generate
              dbt-history generate --project-dir shop --folder models/mirrors

    \b
    Exit codes: 0  the files are written, or were as they should be
                1  dbt failed, or a table cannot be tracked; nothing is written
                2  the options are invalid
    """
    try:
        options = dbt_options(profiles_dir, target)
        arguments = {"folder": folder}
        files = read_files(run_operation(project_dir, "generate_history", arguments, options))
        written = write_files(project_dir, files)
    except (GenerateError, OperationError) as error:
        raise click.ClickException(str(error)) from None
    for name in written:
        click.echo(f"wrote {name}")
    click.echo(f"{len(written)} of {len(files)} files were new or different")
