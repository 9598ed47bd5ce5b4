"""The `dbt-history` command."""

from __future__ import annotations

import click

from dbt_history import __version__
from dbt_history.adopt import adopt_command
from dbt_history.demo.command import demo_command
from dbt_history.docs.command import docs_command
from dbt_history.doctor import doctor_command
from dbt_history.explore.command import explore_command
from dbt_history.explore.show import show_command
from dbt_history.failures import failures_command
from dbt_history.generate import generate_command
from dbt_history.landing.command import land_command, verify_command
from dbt_history.options import HELP
from dbt_history.serve.command import serve_command
from dbt_history.summary import summary_command
from dbt_history.timeline.command import timeline_command


@click.group(context_settings=HELP)
@click.version_option(__version__, prog_name="dbt-history")
def main() -> None:
    """History tables on Spark."""


for command in (
    adopt_command,
    demo_command,
    docs_command,
    doctor_command,
    explore_command,
    failures_command,
    generate_command,
    land_command,
    serve_command,
    show_command,
    summary_command,
    timeline_command,
    verify_command,
):
    main.add_command(command)
