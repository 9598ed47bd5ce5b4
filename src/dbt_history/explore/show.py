"""The command `dbt-history show`: rows of an instant, or changes between two, in the terminal."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click

from dbt_history.conventions import on_axis
from dbt_history.explore.export import as_text, proper, where
from dbt_history.explore.project import DbtProject, ExploreError, open_project
from dbt_history.explore.tables import HistoryTable, resolve
from dbt_history.options import project_options
from dbt_history.output import aligned
from dbt_history.sql import quoted
from dbt_history.timeline.command import read_key
from dbt_history.timeline.versions import format_position, is_data

MAX_CELL_WIDTH = 40
COLOURS = {"insert": "green", "delete": "red", "update": "yellow"}
Cells = list[str | None]


def read_cells(
    project: DbtProject,
    source: str,
    columns: Sequence[tuple[str, str]],
    condition: str,
    order: Sequence[str],
    limit: int,
    end: str,
) -> list[Cells]:
    """The first rows of a reader's sub-query as text; times in UTC. `end` can be open."""
    texts = ", ".join(as_text(name, kind) for name, kind in columns)
    found = project.rows(
        f"select to_json(array({texts})) as cells from {source} as history"
        f" where {condition} order by {', '.join(order)} limit {limit}"
    )
    rows = []
    for (text,) in found:
        cells: Cells = json.loads(text)
        for place, (name, kind) in enumerate(columns):
            value = cells[place]
            if kind == "timestamp" and value is not None:
                cells[place] = time_text(int(value), name.lower() == end.lower())
        rows.append(cells)
    return rows


def time_text(micros: int, is_end: bool) -> str:
    """A time in UTC; an end in the last day of the year 9999 or later is `open`."""
    if is_end and micros >= on_axis("9999-12-31", "timestamp"):
        return "open"
    return format_position(micros, "timestamp")


def end_of(project: DbtProject, table: HistoryTable) -> str:
    """The column of the end of a period; empty for a log, whose rows have none."""
    if table.kind in ("mirror", "events"):
        return ""
    named = project.call(
        "_convention_of", relation=table.relation, convention=table.reader, caller_name="show"
    )
    return str(project.call("convention", convention=named).get("end") or "")


def columns_of(table: HistoryTable) -> list[tuple[str, str]]:
    """The shown columns and their types, the key first."""
    key = [name for name in proper(table) if name.lower() not in table.hidden]
    others = [
        name for name in table.columns if name not in key and name.lower() not in table.hidden
    ]
    return [(name, table.columns[name]) for name in [*key, *others]]


def cell(value: str | None) -> str:
    """One line of printable characters; NULL has brackets to distinguish it from text."""
    if value is None:
        return "[NULL]"
    line = "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in value
    )
    return line if len(line) <= MAX_CELL_WIDTH else line[: MAX_CELL_WIDTH - 1] + "…"


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]], kinds: Sequence[str]) -> None:
    """Aligned columns; the kind of a row is its colour, which click leaves out of pipes."""
    first, *lines = aligned([head, *rows])
    click.secho(first, bold=True)
    for line, kind in zip(lines, kinds):
        click.secho(line, fg=COLOURS.get(kind))


def paired(
    columns: Sequence[tuple[str, str]], rows: Sequence[Cells], width: int
) -> list[dict[str, Any]]:
    """Rows of `changeset` as changes: an update has the old and the new value of each cell.

    A row is its kind, its time, the `width` values of its whole key, and the shown columns.
    """
    changes: list[dict[str, Any]] = []
    before: dict[tuple[str | None, ...], Cells] = {
        (*row[1 : 2 + width],): row for row in rows if row[0] == "update_preimage"
    }
    names = [name for name, _ in columns]
    for row in rows:
        kind = str(row[0])
        if kind == "update_preimage":
            continue
        old = before.get((*row[1 : 2 + width],)) if kind == "update_postimage" else None
        changes.append(
            {
                "change": kind.partition("_")[0],
                "at": row[1],
                "row": dict(zip(names, row[2 + width :])),
                "before": None if old is None else dict(zip(names, old[2 + width :])),
            }
        )
    return changes


def change_cells(change: dict[str, Any]) -> list[str]:
    before = change["before"] or {}
    return [change["change"], cell(change["at"])] + [
        f"{cell(before[name])} → {cell(value)}"
        if name in before and is_data(name) and before[name] != value
        else cell(value)
        for name, value in change["row"].items()
    ]


@click.command("show")
@click.argument("table")
@click.option(
    "--key", "keys", multiple=True, metavar="VALUE or COLUMN=VALUE[,…]",
    help="The record: 1, or space=roads,id=7. Repeatable. A column alone: the key of a table"
    " that records none.",
)  # fmt: skip
@click.option("--at", help="A timestamp (UTC), date or version number, or tag:NAME. Default: now.")
@click.option("--between", nargs=2, metavar="FROM TO", help="Show what changed in [FROM, TO).")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per row.")
@click.option("--limit", default=100, show_default=True, type=click.IntRange(min=1), help="Rows.")
@click.option("--show-hidden", is_flag=True, help="Include hidden and personal columns.")
@project_options
def show_command(
    table: str,
    keys: tuple[str, ...],
    at: str | None,
    between: tuple[str, str] | None,
    as_json: bool,
    limit: int,
    show_hidden: bool,
    project_dir: Any,
    profiles_dir: Any,
    target: str | None,
) -> None:
    """Show the rows of TABLE as of an instant, or what changed between two.

    Runs the readers as_of and changeset. TABLE is a model, a snapshot or schema.table.

    \b
    Examples: dbt-history show customers --key 1 --at 2024-03-02
              dbt-history show customers --between 2024-03-01 2024-04-01 --json

    \b
    Exit codes: 0  done, also without any row
                1  no dbt project with the package, or the table cannot be read
                2  the options are invalid
                3  another process has the embedded metastore open
    """
    if at and between:
        raise click.UsageError("--at and --between exclude each other")
    with open_project(project_dir, profiles_dir, target) as project:
        found, filters = resolve_with_keys(project, table, keys, show_hidden)
        condition = where(found, filters_of(found, filters))
        columns = columns_of(found)
        order = [quoted(name) for name in proper(found)]
        reader = {"relation": found.relation, "convention": found.reader}
        if between:
            source = project.call(
                "changeset", from_at=between[0], to_at=between[1], key=proper(found), **reader
            )
            kind = project.call(
                "_stored_periods", relation=found.relation, convention=found.reader
            )["type"]
            key = [(name, found.columns[name]) for name in proper(found)]
            leading = [("_change_type", "string"), ("_changed_at", kind), *key]
            order = ["_changed_at", *order]
        else:
            source = project.call("as_of", at=at or "now", **reader)
            leading = []
        # Both sides of an update are next to each other.
        count = (limit + 1) * (2 if between else 1)
        end = end_of(project, found)
        rows = read_cells(project, source, [*leading, *columns], condition, order, count, end)
    names = [name for name, _ in columns]
    if between:
        shown = paired(columns, rows, len(found.key))
        is_cut, shown = len(shown) > limit, shown[:limit]
        lines = [json.dumps(one, ensure_ascii=False) for one in shown]
        cells, kinds = [change_cells(one) for one in shown], [one["change"] for one in shown]
        names = ["change", "at", *names]
    else:
        is_cut, rows = len(rows) > limit, rows[:limit]
        lines = [json.dumps(dict(zip(names, row)), ensure_ascii=False) for row in rows]
        cells, kinds = [[cell(value) for value in row] for row in rows], [""] * len(rows)
    if as_json:
        click.echo("".join(line + "\n" for line in lines), nl=False)
    else:
        print_table(names, cells, kinds)
    if found.hidden:
        click.echo(f"not shown: {', '.join(sorted(found.hidden))}", err=True)
    if is_cut:
        click.echo(f"only the first {limit} rows: see --limit", err=True)


def resolve_with_keys(
    project: DbtProject, table: str, keys: Sequence[str], show_hidden: bool
) -> tuple[HistoryTable, Sequence[str]]:
    """The table, and those of --key that select rows.

    If the table records no key, the columns in --key are its key, and `id` alone is no value.
    """
    try:
        return resolve(project, table, (), show_hidden), keys
    except ExploreError as error:
        named, _ = read_key(keys)
        if not named or "--key" not in error.message:
            raise
    found = resolve(project, table, tuple(named), show_hidden)
    return found, [text for text in keys if "=" in text]


def filters_of(table: HistoryTable, keys: Sequence[str]) -> list[dict[str, str]]:
    """`1` is the value of a key of one column; `id=1` names the column."""
    plain = [text for text in keys if "=" not in text]
    if plain and len(table.key) != 1:
        raise ExploreError(f"the key of {table.name} is {', '.join(table.key)}: use COLUMN=VALUE")
    _, filters = read_key([text for text in keys if "=" in text])
    return [*filters, *({table.key[0]: text} for text in plain)]
