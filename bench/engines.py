"""Measures the same batches on a session, on clusters of processes, and on Iceberg.

All engines run at once and take turns with a batch of the same rows, each on its own copy of the
table. Writes docs/measured_engines.md and keeps its notes.

    bench/engines.py [--versions 1000000] [--repeats 5] [--engines session cluster_1 …]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.engine import NAMES, Cost, Remote, check_same_rows, engines, middle
from bench.measure import in_turn, say, workspace
from bench.report import MB, machine, markdown_table, write_page
from bench.tables import ROWS_A_FILE, VERSIONS_A_KEY
from tests.support.project import ROOT

REPORT = ROOT / "docs" / "measured_engines.md"
TABLE = "history"
LABELS = {
    "session": "session (dbt's own process), Delta",
    "cluster_1": "thrift server, 1 executor of 2 cores, Delta",
    "cluster_2": "thrift server, 2 executors of 1 core, Delta",
    "iceberg": "session, Iceberg",
}
Costs = dict[str, list[Cost]]


def rounds(up: Mapping[str, Remote], repeats: int, late: bool, first: int) -> Costs:
    """Run a batch on each engine in turn; the first round is a warm-up and is discarded."""
    costs: Costs = {name: [] for name in up}
    for number in range(first, first + repeats + 1):
        line = []
        for name, engine in in_turn(up.items(), number):
            cost = engine.batch(TABLE, number, late)
            line.append(f"{name} {cost.seconds:.1f} ({cost.merge:.1f})")
            if number > first:
                costs[name].append(cost)
        check_same_rows(up, TABLE)
        say(f"  round {number - first}: {', '.join(line)}")
    return costs


def seconds_rows(costs: Costs) -> list[tuple[str, ...]]:
    """Whole runs and their MERGE, each compared with the session."""
    against = costs["session"]
    rows: list[tuple[str, ...]] = []
    for name, taken in costs.items():
        whole, merge = middle(taken, "seconds"), middle(taken, "merge")
        rows.append(
            (
                LABELS[name],
                f"{whole:.2f}",
                f"{merge:.2f}",
                f"{whole - merge:.2f}",
                f"{whole / middle(against, 'seconds'):.2f}",
                f"{merge / middle(against, 'merge'):.2f}",
            )
        )
    return rows


def counter_rows(costs: Costs) -> list[tuple[str, ...]]:
    """Spark's counters, and the files in the table's folder."""
    return [
        (
            LABELS[name],
            f"{middle(taken, 'tasks'):g}",
            f"{middle(taken, 'busy'):.2f}",
            f"{middle(taken, 'shuffled') / MB:.2f}",
            f"{middle(taken, 'files_written'):g}",
            f"{middle(taken, 'bytes_written') / MB:.2f}",
        )
        for name, taken in costs.items()
    ]


SECONDS = ("engine", "whole", "MERGE", "around it", "whole / session", "MERGE / session")
COUNTERS = ("engine", "tasks", "seconds of tasks", "MB shuffled", "files written", "MB written")


def text(options: argparse.Namespace, late: Costs, on_time: Costs) -> str:
    """The report without its notes."""
    parts = [
        "# Measured: engines and formats",
        "Written by `make bench` (`bench/engines.py`) on a machine with "
        f"{machine()}; all engines on this machine, started at the same time, with only one "
        f"active. Medians of {options.repeats} rounds, interleaved; compare the ratios. "
        f"{options.versions:,} versions, ten per key; the batch is that of "
        "[measured.md](measured.md): 500 random keys. After every round all engines have the same "
        "numbers of rows and of open rows.",
        "`whole` is a `dbt run` of one `history_batch` model in a warm process, MERGE is that "
        "statement as timed by dbt. Over thrift dbt polls once a second for the end of a statement "
        "(`poll_interval: 1`, the lowest value that is not a busy loop), so the time of every "
        "statement is rounded up to whole seconds; `seconds of tasks` does not include this.",
        "## A batch with 50 late keys",
        markdown_table(SECONDS, seconds_rows(late)),
        markdown_table(COUNTERS, counter_rows(late)),
        "## A batch on time",
        markdown_table(SECONDS, seconds_rows(on_time)),
        markdown_table(COUNTERS, counter_rows(on_time)),
    ]
    return "\n\n".join(parts) + "\n"


def parse() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--versions", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--engines", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--output", type=Path, default=REPORT)
    return parser.parse_args()


def main() -> None:
    """Start the engines, create the tables, measure, write the report."""
    options = parse()
    with workspace("engines") as folder:
        say(f"starting {', '.join(options.engines)}")
        with engines(tuple(options.engines), folder) as up:
            for name, engine in up.items():
                size = engine.create(TABLE, options.versions, VERSIONS_A_KEY, ROWS_A_FILE)
                say(f"  {name}: {size.files} files, {size.bytes / MB:.0f} MB")
            late = rounds(up, options.repeats, late=True, first=1)
            on_time = rounds(up, options.repeats, late=False, first=options.repeats + 2)
        write_page(options.output, text(options, late, on_time))
        say(f"written: {options.output.name}")


if __name__ == "__main__":
    main()
