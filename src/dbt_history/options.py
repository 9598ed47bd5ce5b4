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
