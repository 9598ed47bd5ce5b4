"""The command `dbt-history explore`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from dbt_history.explore.project import ExploreError, open_project
from dbt_history.extras import not_installed
from dbt_history.options import project_options
from dbt_history.output import write_file
from dbt_history.timeline.command import read_key


@click.command("explore")
@click.argument("tables", nargs=-1, metavar="[TABLE]...")
@click.option(
    "--key",
    "keys",
    multiple=True,
    metavar="COLUMN[=VALUE][,…]",
    help="Key columns of a table that does not record its key; with values, only these records.",
)
@click.option(
    "--show-hidden", is_flag=True, help="Include hidden and personal columns in the page."
)
@click.option(
    "--out",
    default="history.html",
    show_default=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="The page: one file that needs no network.",
)
@click.option(
    "--serve",
    is_flag=True,
    help="Serve the page on this machine and read the tables page by page, instead of writing it.",
)
@click.option(
    "--port",
    default=0,
    type=click.IntRange(0, 65535),
    help="Port of --serve. Default: a free one.",
)
@project_options
def explore_command(
    tables: tuple[str, ...],
    keys: tuple[str, ...],
    show_hidden: bool,
    out: Path,
    serve: bool,
    port: int,
    project_dir: Path,
    profiles_dir: Path | None,
    target: str | None,
) -> None:
    """Write a page to look at history tables: the rows of an instant, versions, changes.

    TABLE is a model, a snapshot, a source or schema.table; without one, all history tables of the
    project.
    Columns with meta {history: {hide: true}} or the tag personal or pii are left out.

    --serve is for tables too large for a page. It prints an address with a token, which can be
    opened on this machine only; Ctrl-C ends it.

    \b
    Examples: dbt-history explore customers contracts --out history.html
              dbt-history explore --key id=7
              dbt-history explore --serve

    \b
    Exit codes: 0  the page is written, or the server was stopped
                1  no dbt project with the package, or a table cannot be read
                2  the options are invalid
                3  another process has the embedded metastore open
    """
    try:
        from dbt_history.explore.page import page

        if serve:
            from dbt_history.explore.server import serve_tables
    except ImportError as error:
        raise click.ClickException(not_installed(str(error.name), "explore")) from None
    from dbt_history.explore.answers import Answers, Served
    from dbt_history.explore.export import Exported, compact, read_table
    from dbt_history.explore.tables import history_nodes, model_name, resolve

    named, filters = read_key(keys)
    if serve and filters:
        raise click.UsageError("--serve shows all records; --key only names key columns there")
    with open_project(project_dir, profiles_dir, target) as project:
        found: list[Exported] = []
        served: list[Served] = []
        problems = []
        histories = [(model_name(node), node) for node in history_nodes(project.nodes)]
        for name, node in [(name, None) for name in tables] or histories:
            try:
                table = resolve(project, name, tuple(named), show_hidden, node)
                if serve:
                    served.append(Served.of(project, table))
                else:
                    found.append(read_table(project, table, filters))
            except ExploreError as error:
                problems.append(error.message)
        if problems and tables:
            raise ExploreError("\n".join(problems))
        for problem in problems:
            click.echo(f"left out: {problem}", err=True)
        if not found and not served:
            raise ExploreError("the project has no history table that can be read")
        for table in [*(one.table for one in found), *(one.table for one in served)]:
            if table.hidden:
                click.echo(f"{table.name}: without {', '.join(sorted(table.hidden))}", err=True)
        if serve:
            answers = Answers(project, served)
            serve_tables(answers, port, lambda address: click.echo(f"open {address}"))
            return
        now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")
        text = page(compact(found, project.name, now))
    write_file(out, text)
    click.echo(f"{sum(len(one.rows) for one in found)} versions of {len(found)} tables in {out}")
