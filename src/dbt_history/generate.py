"""Writes the models that the run-operation `generate_history` prints."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import click

FILE = re.compile(r"^-- file: (\S+)\n(.*?)^-- end of file$", re.MULTILINE | re.DOTALL)


class GenerateError(Exception):
    """The run-operation failed, or printed a path outside the project."""


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
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            written.append(name)
    return written


def run_operation(project: Path, folder: str) -> str:
    """The output of `dbt run-operation generate_history`. Raises GenerateError."""
    arguments = json.dumps({"folder": folder})
    done = subprocess.run(
        ["dbt", "--quiet", "run-operation", "generate_history", "--args", arguments],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise GenerateError(done.stdout + done.stderr)
    return done.stdout


@click.command("generate")
@click.option(
    "--project-dir",
    default=".",
    show_default=True,
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    help="The dbt project.",
)
@click.option(
    "--folder",
    default="models/history",
    show_default=True,
    help="Folder for the files, relative to the project.",
)
def generate_command(project_dir: Path, folder: str) -> None:
    """Write a history model for each model and source with `meta: {history: true}`."""
    try:
        files = read_files(run_operation(project_dir, folder))
        written = write_files(project_dir, files)
    except GenerateError as error:
        raise click.ClickException(str(error)) from None
    for name in written:
        click.echo(f"wrote {name}")
    click.echo(f"{len(written)} of {len(files)} files were new or different")
