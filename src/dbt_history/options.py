"""Options shared by several commands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

# Inherited by the subcommands.
HELP = {"help_option_names": ["-h", "--help"]}


def target_path(what_for: str = "") -> Callable[[Any], Any]:
    """`--target-path`: dbt's target folder; `what_for` continues the help text."""
    return click.option(
        "--target-path",
        envvar="DBT_TARGET_PATH",
        default="target",
        show_default=True,
        type=click.Path(file_okay=False, path_type=Path),
        help=f"dbt's target folder{what_for}.",
    )


def project_options(command: Any) -> Any:
    """`--project-dir`, `--profiles-dir` and `--target` of a command, as dbt has them."""
    folder = click.Path(file_okay=False, exists=True, path_type=Path)
    for option in (
        click.option("--target", help="Target of the profile."),
        click.option("--profiles-dir", type=folder, help="Folder of profiles.yml."),
        click.option(
            "--project-dir",
            type=folder,
            default=".",
            show_default=True,
            help="A dbt project that has the package dbt_history installed.",
        ),
    ):
        command = option(command)
    return command
