"""Summarizes from dbt's artifacts what a run did to the history tables. Needs no Spark."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

import click

from dbt_history.options import target_path
from dbt_history.output import aligned

VERSION_TABLES, LOG_TABLE = ("history", "history_batch"), "history_append"
COUNTS = ("added", "closed", "removed", "skipped", "replayed")
HELD = "held back"


class SummaryError(Exception):
    """An artifact is missing or invalid."""


@dataclass(frozen=True)
class TableReport:
    """The result of one run for one history table; `problem` is dbt's message if it failed.

    Logs have no batches; their rows are counted as `added`.
    """

    name: str
    batches: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    problem: str = ""
    is_log: bool = False

    @classmethod
    def from_message(cls, name: str, message: str, seconds: float, is_log: bool) -> Self:
        """Read ``2 batches: 6 added, 3 closed, 0 removed, 1 skipped, 0 replayed``.

        For a log ``12 rows appended``; other texts mean that no rows were appended. The message of
        a suspended table ends in ``2 held back``, the one of a log in ``2 rows held back``.
        """
        waiting = re.search(r"(\d+)(?: rows?)? held back$", message)
        held = {HELD: int(waiting[1]) if waiting else 0}
        if is_log:
            appended = re.match(r"(\d+) rows? appended", message)
            rows = {"added": int(appended[1]) if appended else 0, **held}
            return cls(name, 0, rows, seconds, is_log=True)
        head, _, tail = message.partition(":")
        number = re.match(r"(\d+) batch", head)
        found = {noun: int(count) for count, noun in re.findall(r"(\d+) (\w+)", tail)}
        counts = {noun: found.get(noun, 0) for noun in COUNTS} | held
        return cls(name, int(number[1]) if number else 0, counts, seconds)


@dataclass(frozen=True)
class RunReport:
    """One dbt invocation: its history tables, and all nodes counted by kind and status."""

    tables: list[TableReport]
    statuses: Mapping[str, Counter[str]]
    failures: list[str]
    seconds: float

    @property
    def is_failed(self) -> bool:
        return bool(self.failures)


def read_artifact(path: Path) -> dict[str, Any]:
    try:
        artifact: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SummaryError(f"no {path.name} in {path.parent}: run dbt first") from None
    except ValueError as error:
        raise SummaryError(f"{path} is not valid JSON: {error}") from None
    return artifact


def table_report(node: Mapping[str, Any], result: Mapping[str, Any]) -> TableReport:
    name = f"{node['schema']}.{node.get('alias') or node['name']}"
    is_log = node["config"]["materialized"] == LOG_TABLE
    if result["status"] != "success":
        lines = (result.get("message") or "").strip().splitlines()
        return TableReport(
            name,
            problem=f"{result['status']}: {lines[0]}" if lines else result["status"],
            is_log=is_log,
        )
    message = result.get("adapter_response", {}).get("_message", "")
    return TableReport.from_message(name, message, result["execution_time"], is_log)


def run_report(run_results: Mapping[str, Any], manifest: Mapping[str, Any]) -> RunReport:
    """Combine the results of a run with the manifest's nodes."""
    tables: list[TableReport] = []
    statuses: dict[str, Counter[str]] = {}
    failures: list[str] = []
    for result in run_results["results"]:
        unique_id = result["unique_id"]
        kind = unique_id.partition(".")[0]
        statuses.setdefault(kind, Counter())[result["status"]] += 1
        if result["status"] in ("error", "fail"):
            failures.append(unique_id)
        node = manifest["nodes"].get(unique_id, {})
        if node.get("config", {}).get("materialized") in (*VERSION_TABLES, LOG_TABLE):
            tables.append(table_report(node, result))
    return RunReport(tables, statuses, failures, run_results["elapsed_time"])


def table_lines(tables: list[TableReport]) -> Iterable[str]:
    built = [table for table in tables if not table.problem and not table.is_log]
    logs = [table for table in tables if not table.problem and table.is_log]
    # The column is there only if a suspended table holds something back.
    shown = [*COUNTS, *([HELD] if any(table.counts[HELD] for table in built) else [])]
    if built:
        rows = [["history table", "batches", *shown, "seconds"]]
        for table in built:
            numbers = [table.batches, *(table.counts[noun] for noun in shown)]
            rows.append(
                [table.name, *(f"{number:,}" for number in numbers), f"{table.seconds:.1f}"]
            )
        if len(built) > 1:
            sums = [sum(table.batches for table in built)]
            sums += [sum(table.counts[noun] for table in built) for noun in shown]
            seconds = sum(table.seconds for table in built)
            rows.append(["all", *(f"{number:,}" for number in sums), f"{seconds:.1f}"])
        yield from aligned(rows, numbers=True)
    if built and logs:
        yield ""
    if logs:
        nouns = ["added", *([HELD] if any(one.counts[HELD] for one in logs) else [])]
        rows = [["log", "rows", *nouns[1:], "seconds"]]
        for one in logs:
            cells = [f"{one.counts[noun]:,}" for noun in nouns]
            rows.append([one.name, *cells, f"{one.seconds:.1f}"])
        yield from aligned(rows, numbers=True)
    for table in tables:
        if table.problem:
            yield f"{table.name}  {table.problem}"
    if not tables:
        yield "No history table was built."


# dbt's statuses, in the order of the summary, with the words it uses for them.
STATUSES = {
    "success": "built",
    "pass": "passed",
    "warn": "warned",
    "fail": "failed",
    "error": "in error",
    "skipped": "skipped",
}
KINDS = {
    "model": "models",
    "seed": "seeds",
    "snapshot": "snapshots",
    "test": "tests",
    "unit_test": "unit tests",
    "exposure": "exposures",
}


def count_line(kind: str, statuses: Mapping[str, int]) -> str:
    known = [
        f"{statuses[status]} {word}" for status, word in STATUSES.items() if statuses.get(status)
    ]
    others = [f"{count} {status}" for status, count in statuses.items() if status not in STATUSES]
    return f"{KINDS.get(kind, kind) + ':':<12}{', '.join(known + others)}"


def render(report: RunReport) -> str:
    """The report as plain text for a terminal."""
    lines = ["", *table_lines(report.tables), ""]
    lines += [count_line(kind, report.statuses[kind]) for kind in KINDS if kind in report.statuses]
    lines += [
        count_line(kind, counts) for kind, counts in report.statuses.items() if kind not in KINDS
    ]
    lines.append(f"{'seconds:':<12}{report.seconds:.0f}")
    if report.is_failed:
        lines += ["", "Failed:", *(f"  {unique_id}" for unique_id in report.failures)]
    return "\n".join(lines)


def read_report(target: Path) -> RunReport:
    """Read the report of the last run from dbt's target folder."""
    return run_report(
        read_artifact(target / "run_results.json"), read_artifact(target / "manifest.json")
    )


@click.command("summary")
@target_path()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of lines.")
def summary_command(target_path: Path, as_json: bool) -> None:
    """Print the changes of the last dbt run to the history tables. Needs no Spark.

    \b
    Examples: dbt-history summary
              dbt-history summary --json | jq '.tables[] | select(.problem != "")'

    \b
    Exit codes: 0  the summary is printed, also of a run that failed
                1  there are no artifacts of dbt, or they cannot be read
                2  the options are invalid
    """
    try:
        report = read_report(target_path)
    except SummaryError as error:
        raise click.ClickException(str(error)) from None
    if as_json:
        document = {
            "tables": [asdict(table) for table in report.tables],
            "statuses": {kind: dict(counts) for kind, counts in report.statuses.items()},
            "failures": report.failures,
            "seconds": report.seconds,
        }
        click.echo(json.dumps(document, indent=2))
    else:
        click.echo(render(report))
