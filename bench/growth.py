"""Measures how a batch's cost grows with the table, on Delta and on Iceberg.

Tables of 1, 5 and 20 M versions; a batch a hundred times larger; and a table with few rows in as
many files as 2,000 M versions would have, which isolates the cost of the number of files. Writes
docs/measured_growth.md and keeps its notes.

    bench/growth.py [--versions 1000000 5000000 20000000] [--many-files 16000] [--repeats 3]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.engine import Cost, Remote, Size, check_same_rows, engines, middle
from bench.measure import in_turn, say, workspace
from bench.report import MB, machine, markdown_table, write_page
from bench.tables import KEYS, LATE, ROWS_A_FILE, VERSIONS_A_KEY
from tests.support.project import ROOT

REPORT = ROOT / "docs" / "measured_growth.md"
FORMATS = {"session": "Delta", "iceberg": "Iceberg"}
LARGER = 100
TABLES = ("versions", "format", "files", "MB", "MB searched")
COSTS = (
    *("versions", "format", "whole", "MERGE", "MERGE / smallest table's"),
    *("tasks", "seconds of tasks", "MB shuffled", "files written", "MB written"),
)


@dataclass(frozen=True)
class Table:
    """One of the measured tables."""

    name: str
    title: str
    versions: int
    rows_a_file: float = ROWS_A_FILE


@dataclass(frozen=True)
class Kind:
    """A kind of batch: whether 50 of 500 keys are late, and a factor for the number of rows."""

    late: bool
    times: int = 1

    @property
    def title(self) -> str:
        rows = f"{KEYS * self.times:,} keys"
        return f"{rows}, {LATE * self.times:,} late" if self.late else f"{rows}, on time"


@dataclass
class Point:
    """One table with one kind of batch in one format."""

    table: Table
    kind: Kind
    format: str
    costs: list[Cost] = field(default_factory=list)

    def row(self, smallest: Point) -> tuple[str, ...]:
        """A line of the report."""
        ratio = middle(self.costs, "merge") / middle(smallest.costs, "merge")
        return (
            self.table.title,
            FORMATS[self.format],
            f"{middle(self.costs, 'seconds'):.2f}",
            f"{middle(self.costs, 'merge'):.2f}",
            f"{ratio:.2f}",
            f"{middle(self.costs, 'tasks'):g}",
            f"{middle(self.costs, 'busy'):.2f}",
            f"{middle(self.costs, 'shuffled') / MB:.2f}",
            f"{middle(self.costs, 'files_written'):g}",
            f"{middle(self.costs, 'bytes_written') / MB:.2f}",
        )


Sizes = dict[tuple[str, str], Size]


def create(up: Mapping[str, Remote], tables: Sequence[Table]) -> Sizes:
    """All tables in all formats: (files, bytes) by table and format."""
    sizes = {}
    for one in tables:
        for name, engine in up.items():
            size = engine.create(one.name, one.versions, VERSIONS_A_KEY, one.rows_a_file)
            sizes[one.name, name] = size
            say(f"  {one.title}, {FORMATS[name]}: {size.files} files, {size.bytes / MB:.0f} MB")
    return sizes


def measure(
    up: Mapping[str, Remote], tables: Sequence[Table], kind: Kind, rounds: range
) -> list[Point]:
    """Run rounds of a batch for every table and format in turn; the first is a warm-up."""
    points = {(one.name, name): Point(one, kind, name) for one in tables for name in up}
    for number in rounds:
        line = []
        for one in tables:
            for name, engine in in_turn(up.items(), number):
                cost = engine.batch(one.name, number, kind.late, kind.times)
                line.append(f"{one.title} {FORMATS[name]} {cost.merge:.1f}")
                if number > 1:
                    points[one.name, name].costs.append(cost)
        say(f"  {kind.title}, round {number}: {', '.join(line)}")
    return list(points.values())


def size_rows(found: Sequence[Point], sizes: Sizes) -> list[tuple[str, ...]]:
    """Each table in each format, as created."""
    rows = {}
    for point in found:
        size = sizes[point.table.name, point.format]
        rows[point.table.name, point.format] = (
            point.table.title,
            FORMATS[point.format],
            f"{size.files:,}",
            f"{size.bytes / MB:.0f}",
            f"{size.searched / MB:.2f}",
        )
    return list(rows.values())


def text(options: argparse.Namespace, found: Sequence[Point], sizes: Sizes) -> str:
    """The report without its notes."""
    smallest: dict[tuple[str, bool], Point] = {}
    rows: dict[str, list[tuple[str, ...]]] = {}
    for point in found:
        first = smallest.setdefault((point.format, point.kind.late), point)
        rows.setdefault(point.kind.title, []).append(point.row(first))
    parts = [
        "# Measured: how a batch's cost grows with the table",
        "Written by `make bench` (`bench/growth.py`) on a machine with "
        f"{machine()}, one session per format; medians of {options.repeats} rounds, all tables "
        "and formats in turn; seconds. Compare the ratios. The batches are those of "
        "[measured.md](measured.md).",
        "## The tables",
        f"Ten versions per key, about {ROWS_A_FILE:,} rows per file, with the layout that "
        "`history_batch` creates. The table in many files has as many files as a table 100 times "
        "the size of the largest; it shows the cost of the number of files. `MB searched` is the "
        "compressed size of the key and the period of the open rows, from the files' footers: the "
        "data that a batch on time scans.",
        markdown_table(TABLES, size_rows(found, sizes)),
    ]
    for title, lines in rows.items():
        parts += [f"## {title}", markdown_table(COSTS, lines)]
    return "\n\n".join(parts) + "\n"


def parse() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--versions", type=int, nargs="+", default=[1_000_000, 5_000_000, 20_000_000]
    )
    parser.add_argument("--many-files", type=int, default=16_000, help="0: leave that table out")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--output", type=Path, default=REPORT)
    return parser.parse_args()


def chosen(options: argparse.Namespace) -> list[Table]:
    """The tables, the smallest first."""
    tables = [
        Table(f"history_{versions}", f"{versions / MB:g} M", versions)
        for versions in sorted(options.versions)
    ]
    if options.many_files:
        least = min(options.versions)
        title = f"{least / MB:g} M in many files"
        tables.append(Table("history_files", title, least, least / options.many_files))
    return tables


def main() -> None:
    """Create all tables, measure them in turn, write the report."""
    options = parse()
    tables = chosen(options)
    largest = max(tables, key=lambda one: one.versions)
    # Even the larger batch touches a minority of the keys.
    times = min(LARGER, largest.versions // VERSIONS_A_KEY // (4 * KEYS))
    plan = [
        (Kind(late=False), tables, options.repeats + 1),
        (Kind(late=True), tables, options.repeats),
        (Kind(late=False, times=times), [largest], options.repeats),
    ]
    found: list[Point] = []
    with workspace("growth") as folder:
        with engines(tuple(FORMATS), folder) as up:
            say("tables")
            sizes = create(up, tables)
            first = 1
            for kind, some, rounds in plan:
                found += measure(up, some, kind, range(first, first + rounds))
                first += rounds
            for one in tables:
                check_same_rows(up, one.name)
        write_page(options.output, text(options, found, sizes))
        say(f"written: {options.output.name}")


if __name__ == "__main__":
    main()
