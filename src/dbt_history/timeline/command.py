"""The command `dbt-history timeline`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from dbt_history.conventions import Convention, from_settings, on_axis, split, split_terms
from dbt_history.explore.project import open_project
from dbt_history.extras import not_installed
from dbt_history.options import project_options
from dbt_history.output import write_file
from dbt_history.timeline.errors import TimelineError
from dbt_history.timeline.settings import settings_of


def read_key(texts: Sequence[str]) -> tuple[list[str], list[dict[str, str]]]:
    """Parse filters such as `id=1` and `space=roads,id=r 1`; `id` only names a key column.

    A comma that no `=` follows belongs to the value: `name=Smith, John`.
    """
    names: list[str] = []
    filters: list[dict[str, str]] = []
    for text in texts:
        one: dict[str, str] = {}
        for part in split_terms(text) if "=" in text else split(text):
            name, equals, value = part.partition("=")
            names.append(name.strip())
            if equals:
                one[name.strip()] = value.strip()
        if one:
            filters.append(one)
    return list(dict.fromkeys(names)), filters


def read_records(texts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Parse `contracts=contract_id` into key columns by table."""
    records = {}
    for text in texts:
        table, equals, names = text.partition("=")
        if not equals or not split(names):
            raise click.UsageError(f"--records {text}: write TABLE=COLUMN[,COLUMN]")
        records[table.strip()] = tuple(split(names))
    return records


def read_convention(text: str | None) -> Convention | None:
    """Parse a name, or a mapping as in `meta.history` in JSON."""
    if text is None:
        return None
    try:
        settings: Any = json.loads(text) if text.startswith("{") else {"convention": text}
    except ValueError:
        raise click.UsageError(f"--convention {text}: neither a name nor valid JSON") from None
    return from_settings(settings)


@click.command("timeline")
@click.argument("tables", nargs=-1, required=True, metavar="TABLE...")
@click.option(
    "--key",
    "keys",
    multiple=True,
    metavar="COLUMN[=VALUE][,…]",
    help="The record: id=1, or space=roads,id=7. Repeatable. Without a value: the first 20.",
)
@click.option(
    "--records",
    multiple=True,
    metavar="TABLE=COLUMN[,…]",
    help="Key of a related table whose records --key selects by other columns.",
)
@click.option(
    "--convention",
    help="A name, or a mapping as in meta.history. Default: from the project or the columns.",
)
@click.option("--at", help="Initial position of the as-of line: a timestamp, or a version number.")
@click.option(
    "--output",
    default="timeline.html",
    show_default=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="The page; with the suffix .svg, the chart only.",
)
@click.option("--show-hidden", is_flag=True, help="Include hidden and personal columns.")
@project_options
def timeline_command(
    tables: tuple[str, ...],
    keys: tuple[str, ...],
    records: tuple[str, ...],
    convention: str | None,
    at: str | None,
    output: Path,
    show_hidden: bool,
    project_dir: Path,
    profiles_dir: Path | None,
    target: str | None,
) -> None:
    """Draw the versions of records of TABLE and of related tables on one time axis.

    Columns with meta {history: {hide: true}} or the tag personal or pii are left out.

    Reads with Spark itself: the session of the project's profile. Where the profile names a server
    (thrift, http), the session is configured by Spark's own settings, SPARK_CONF_DIR or
    SPARK_REMOTE.

    \b
    Examples: dbt-history timeline customer_history --key customer_id=1
              dbt-history timeline customers contracts --key customer_id=1 --output both.svg

    \b
    Exit codes: 0  the page is written
                1  no dbt project with the package, a table cannot be read or has no known
                   convention, or an extra is missing
                2  the options are invalid
                3  another process has the embedded metastore open
    """
    try:
        from dbt_history.timeline.page import render
    except ImportError as error:
        raise click.ClickException(not_installed(str(error.name), "timeline")) from None
    from dbt_history.timeline.chart import axis_position, base_name
    from dbt_history.timeline.table import read_recorded_key, read_track

    named, filters = read_key(keys)
    own = read_records(records)
    try:
        chosen = read_convention(convention)
        with open_project(project_dir, profiles_dir, target) as project:
            spark = project.session("dbt-history timeline")
            nodes, tracks = project.nodes, []
            for table in tables:
                known = settings_of(nodes, table)
                key = own.get(table) or known.key or read_recorded_key(spark, known.name)
                if not key and not named:
                    raise TimelineError(f"{table}: name its key with --key")
                hidden = frozenset() if show_hidden else known.hidden
                track = read_track(
                    spark, known.name, key or named, filters, chosen or known.convention, hidden
                )
                tracks.append(track)
        axis = tracks[0].convention.type
        line = None if at is None else axis_position(on_axis(at, axis), axis)
        write_file(output, render(output.name, tracks, line))
    except (TimelineError, ValueError) as error:
        raise click.ClickException(str(error)) from None
    for track in tracks:
        if track.hidden:
            click.echo(f"{base_name(track.table)}: without {', '.join(track.hidden)}", err=True)
    click.echo(f"{sum(len(track.versions) for track in tracks)} versions in {output}")
