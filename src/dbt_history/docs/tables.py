"""The page of a history table: what a row is, its time, its tests, what it is made from."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import vl_convert

from dbt_history.docs.dbt_docs import address
from dbt_history.docs.manifest import Node, Project
from dbt_history.docs.markdown import relative
from dbt_history.explore.answers import clock
from dbt_history.explore.export import DAY, read_marks
from dbt_history.explore.project import DbtProject, ExploreError
from dbt_history.explore.tables import hidden_columns, resolve
from dbt_history.timeline.versions import format_position

MAX_DAYS = 400
MAX_NODES = 40
SIGNS = '[](){}<>|`;"#&'
STATES = {"pass": "passed", "success": "passed", "fail": "failed", "error": "error",
          "runtime error": "error", "warn": "warned", "skipped": "skipped"}  # fmt: skip
KINDS = {
    "versions": "version table: a version has a start and an end",
    "features": "states of features: a state has a transaction and the next one",
    "mirror": "mirror: rows are appended, one per change",
    "events": "event table: rows are appended, one or two per change",
}


@dataclass(frozen=True)
class Facts:
    """What Spark knows of a history table; positions are texts. `problem`: why nothing is known."""

    problem: str = ""
    kind: str = ""
    key: tuple[str, ...] = ()
    convention: str = ""
    period: str = ""
    is_time: bool = True
    versions: int = 0
    current: int = 0
    first: str = ""
    last: str = ""
    horizon: str = ""
    tags: tuple[tuple[str, str, str], ...] = ()
    suspended_since: str = ""
    per_day: tuple[tuple[str, int], ...] = field(default=())


def position(value: str | int | None, is_time: bool) -> str:
    if value is None:
        return ""
    if not is_time:
        return str(value)
    seconds = int(value) // 1_000_000
    return format_position(seconds * 1_000_000, "timestamp").removesuffix(" 00:00:00")


def convention_of(project: DbtProject, table: Any) -> tuple[str, str]:
    """The name of the convention, and its period in words."""
    if table.kind in ("mirror", "events"):
        column = "mod_time" if table.kind == "mirror" else "_hist_time"
        return ("hx" if table.kind == "mirror" else "events"), f"from `{column}` to the next row"
    named = project.call(
        "_convention_of", relation=table.relation, convention=table.reader, caller_name="docs"
    )
    record = project.call("convention", convention=named)
    gap = "" if str(record["gap"]) == "0" else f", which is {record['gap']} before the next start"
    return str(
        record.get("name") or "its own"
    ), f"from `{record['start']}` to `{record['end']}`{gap}"


def read_facts(project: DbtProject, node: Node) -> Facts:
    """The facts of a table, or why there are none: it is not built, or has no key."""
    try:
        table = resolve(project, str(node["name"]), (), False, node)
        convention, words = convention_of(project, table)
        period = project.call("_stored_periods", relation=table.relation, convention=table.reader)
        is_time = period["type"] != "bigint"
        scale = DAY if period["type"] == "date" else 1
        since, until = period["since"], period["until"]
        # An empty period is a remembered deletion or a repeat, which no reader returns.
        versions_of = (
            f" from {period['from']} as history"
            f" where {since} is not null and ({until} is null or {since} < {until})"
        )
        ((versions, current, first, last),) = project.rows(
            f"select count(*), count_if({period['is_open']}), min({since}), max({since})"
            + versions_of
        )
        days: list[tuple[Any, ...]] = []
        if is_time:
            micros = f"({since}) * {scale}L"
            days = project.rows(
                f"select left({clock(micros, 'UTC')}, 10) as day, count(*)"
                + versions_of
                + " group by 1 order by 1"
            )
        marks = read_marks(project, table, period["type"], scale)
    except ExploreError as error:
        return Facts(problem=error.message)
    suspended = [since for since, until in marks["suspensions"] if until is None]
    return Facts(
        kind=KINDS[table.kind],
        key=tuple(table.key),
        convention=convention,
        period=words,
        is_time=is_time,
        versions=versions,
        current=current,
        first=position(None if first is None else first * scale, is_time),
        last=position(None if last is None else last * scale, is_time),
        horizon=position(marks["horizon"], is_time),
        tags=tuple(
            (tag["name"], position(tag["at"], is_time), tag["reason"] or "")
            for tag in marks["tags"]
        ),
        suspended_since=position(suspended[-1], True) if suspended else "",
        per_day=tuple((str(each), int(count)) for each, count in days),
    )


def last_results(target: Path) -> dict[str, str]:
    """The result of each test in the last run of dbt, by unique id; empty if it ran none."""
    try:
        results = json.loads((target / "run_results.json").read_text("utf-8"))["results"]
    except (OSError, ValueError, KeyError):
        return {}
    return {
        one["unique_id"]: STATES.get(one["status"], one["status"])
        for one in results
        if one["unique_id"].startswith(("test.", "unit_test."))
    }


# -- the page --------------------------------------------------------------------------------------


def grouped(days: Sequence[tuple[str, int]]) -> tuple[str, list[tuple[str, int]]]:
    """Versions per day; per month or year where there are too many days for bars."""
    for unit, length in (("day", 10), ("month", 7), ("year", 4)):
        sums: dict[str, int] = {}
        for day, count in days:
            sums[day[:length]] = sums.get(day[:length], 0) + count
        if len(sums) <= MAX_DAYS:
            return unit, list(sums.items())
    return "year", list(sums.items())


def bar_chart(days: Sequence[tuple[str, int]]) -> str:
    """The versions that began per day as an SVG in the colours of the page."""
    unit, rows = grouped(days)
    grey = "var(--soft)"
    format_ = {"day": "%-d %b %Y", "month": "%b %Y", "year": "%Y"}[unit]
    spec = {
        "width": 720, "height": 120, "padding": 4,
        "data": [{"name": "days", "values": [{"day": day, "rows": count} for day, count in rows],
                  "transform": [{"type": "formula", "as": "at", "expr":
                                 "utc(+slice(datum.day, 0, 4), +(slice(datum.day, 5, 7) || 1) - 1,"
                                 " +(slice(datum.day, 8, 10) || 1))"},
                                {"type": "formula", "as": "until", "expr":
                                 f"utcOffset('{unit}', datum.at, 1)"}]}],
        "scales": [
            {"name": "x", "type": "utc", "range": "width",
             "domain": {"data": "days", "fields": ["at", "until"]}},
            {"name": "y", "range": "height", "nice": True, "zero": True,
             "domain": {"data": "days", "field": "rows"}}],
        "axes": [
            {"orient": "bottom", "scale": "x", "format": format_, "labelOverlap": True,
             "tickCount": 6, "labelColor": grey, "domainColor": grey, "tickColor": grey},
            {"orient": "left", "scale": "y", "tickCount": 3, "tickMinStep": 1, "format": "~s",
             "grid": True, "title": f"versions per {unit}", "titleFontWeight": "normal",
             "titleColor": grey,
             "labelColor": grey, "gridColor": "var(--line)", "domain": False, "ticks": False}],
        "marks": [{"type": "rect", "from": {"data": "days"}, "encode": {"enter": {
            "x": {"scale": "x", "field": "at"},
            "x2": {"signal": "max(scale('x', datum.until) - 1, scale('x', datum.at) + 1)"},
            "y": {"scale": "y", "field": "rows"}, "y2": {"scale": "y", "value": 0},
            "fill": {"value": "var(--bar)"},
            "tooltip": {"signal": "datum.day + ': ' + datum.rows"}}}}],
    }  # fmt: skip
    drawing: str = vl_convert.vega_to_svg(spec)
    first, last = rows[0][0], rows[-1][0]
    words = f"Versions per {unit}, from {first} to {last}"
    listed = (
        f'<div class="wide"><table><thead><tr><th>{unit}</th><th>versions</th></tr></thead><tbody>'
        + "".join(f"<tr><td>{escape(day)}</td><td>{count:,}</td></tr>" for day, count in rows)
        + "</tbody></table></div>"
    )
    if len(rows) == 1:
        return listed
    return (
        f'<figure class="bars" role="img" aria-label="{escape(words)}">{drawing}</figure>\n'
        f'<details class="steps"><summary>The same as a table</summary>{listed}</details>'
    )


def code(text: str) -> str:
    return f"<code>{escape(text)}</code>"


def in_words(text: str) -> str:
    """Text in which `…` is code."""
    parts = text.split("`")
    return "".join(code(part) if place % 2 else escape(part) for place, part in enumerate(parts))


def link(node: Node, page: str, tables: Mapping[str, str]) -> str:
    """A node's name, linked to its page here, or to dbt's."""
    target = tables.get(node["unique_id"]) or address(node)
    return f'<a class="name" href="{escape(relative(target, page))}">{code(label_of(node))}</a>'


def label_of(node: Node) -> str:
    return str(node.get("label") or node["name"])


def fact_list(rows: Iterable[tuple[str, str]]) -> str:
    listed = "".join(f"<dt>{escape(name)}</dt><dd>{html}</dd>" for name, html in rows if html)
    return f'<dl class="facts">{listed}</dl>'


def relatives(
    project: Project, unique_id: str, page: str, tables: Mapping[str, str]
) -> tuple[str, str, str]:
    """What a node reads, what reads it, and the exposures that do."""
    above = [link(project.nodes[name], page, tables) for name in project.parents(unique_id)]
    below = [project.nodes[name] for name in project.children[unique_id]]
    readers = [link(node, page, tables) for node in below if node["resource_type"] != "exposure"]
    questions = [link(node, page, tables) for node in below if node["resource_type"] == "exposure"]
    return ", ".join(above), ", ".join(readers), ", ".join(questions)


def lineage(project: Project, unique_id: str) -> str:
    """All nodes above and below a node as a Mermaid flow chart; empty if there are too many."""

    def reached(start: str, step: Mapping[str, Sequence[str]]) -> list[str]:
        found, pending = [start], [start]
        while pending:
            for name in step[pending.pop()]:
                if name not in found:
                    found.append(name)
                    pending.append(name)
        return found

    above = {name: project.parents(name) for name in project.nodes}
    nodes = [*reached(unique_id, above), *reached(unique_id, project.children)[1:]]
    if not 1 < len(nodes) <= MAX_NODES:
        return ""
    number = {name: f"n{place}" for place, name in enumerate(nodes)}
    lines = ["flowchart LR"]
    for name in nodes:
        # No sign of Mermaid's own.
        label = "".join(sign for sign in label_of(project.nodes[name]) if sign not in SIGNS)
        lines.append(f"    {number[name]}[{label or 'node'}]")
    for name in nodes:
        lines += [
            f"    {number[parent]} --> {number[name]}" for parent in above[name] if parent in number
        ]
    return "\n".join([*lines, ""])


def test_list(project: Project, unique_id: str, page: str, states: Mapping[str, str]) -> str:
    """The tests of a table with their results, each linked to its page in dbt's documentation."""
    rows = []
    for test in project.tests_of(unique_id):
        state = states.get(test["unique_id"], "not run")
        name = (test.get("test_metadata") or {}).get("name") or test["name"]
        column = test.get("column_name")
        words = f"{name} of {column}" if column else str(name)
        target = escape(relative(address(test), page))
        rows.append(
            f'<li><span class="state {escape(state.replace(" ", "-"))}">{escape(state)}</span> '
            f'<a href="{target}" title="{escape(str(test["name"]))}">{escape(words)}</a></li>'
        )
    return f'<ul class="tests">{"".join(rows)}</ul>' if rows else "<p>It has no tests.</p>"


def column_table(project: Project, node: Node, facts: Facts) -> str:
    """The columns of yml and catalog with types and descriptions."""
    hidden = hidden_columns(project.nodes, node)
    built = (project.catalog["nodes"].get(node["unique_id"]) or {"columns": {}})["columns"]
    types = {name.lower(): column["type"] for name, column in built.items()}
    described = {name.lower(): column for name, column in node["columns"].items()}
    names = {name.lower(): name for name in [*built, *node["columns"]]}
    if not names:
        return ""
    keys = {name.lower() for name in facts.key}
    rows = []
    for lower, name in names.items():
        column = described.get(lower, {})
        notes = [
            word for word, is_so in (("key", lower in keys), ("hidden", lower in hidden)) if is_so
        ]
        mark = "".join(f' <span class="mark">{word}</span>' for word in notes)
        kind = types.get(lower) or column.get("data_type") or ""
        rows.append(
            f'<tr><td data-label="column">{code(name)}{mark}</td>'
            f'<td data-label="type">{escape(kind)}</td>'
            f'<td data-label="meaning">{in_words(str(column.get("description") or ""))}</td></tr>'
        )
    return (
        '<h2 id="columns">Columns</h2><div class="wide"><table><thead><tr><th>column</th>'
        f"<th>type</th><th>meaning</th></tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def overview_table(
    project: Project, facts: Mapping[str, Facts], page: str, tables: Mapping[str, str]
) -> str:
    """All history tables in one list."""
    rows = []
    for node in project.histories:
        known = facts.get(node["unique_id"], Facts())
        what = str(node.get("description") or "").strip().partition("\n\n")[0]
        cells = {
            "table": link(node, page, tables),
            "what a row is": in_words(what),
            "key": ", ".join(map(code, known.key)),
            "versions": f"{known.versions:,}" if not known.problem else "",
            "first": escape(known.first),
            "last": escape(known.last),
        }
        rows.append(
            "<tr>"
            + "".join(f'<td data-label="{name}">{html}</td>' for name, html in cells.items())
            + "</tr>"
        )
    if not rows:
        return "<p>The project has no history tables.</p>"
    heads = "".join(f"<th>{name}</th>" for name in cells)
    return (
        f'<div class="wide"><table><thead><tr>{heads}</tr></thead><tbody>{"".join(rows)}'
        "</tbody></table></div>"
    )
