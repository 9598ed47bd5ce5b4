"""Write docs/measured.md from its samples; shared functions of all pages of measurements.

The text of a page from the heading "Notes" on is kept.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from bench.measure import Sample, Samples, Seconds

EXPECTED = (1_000_000, 4_000_000)
NOTES = "## Notes"
MB = 1_000_000
LABELS = {
    "history": "`history_batch`, rows in a cache",
    "history_copied": "`history_batch`, rows in a table (SELECT with a WITH)",
    "history_no_vectors": "`history_batch`, deletion vectors off",
    "history_long": "`history_batch`, 10 times the closed history",
    "five": "the five statements",
    "snapshot": "`dbt snapshot`, strategy `check`",
}
SECONDS = (
    "versions",
    "contender",
    "whole",
    "MERGE",
    "around it",
    "MERGE / five statements",
    "whole / snapshot",
)
WRITTEN = (
    "versions",
    "contender",
    "files written",
    "added",
    "removed",
    "deletion vectors",
    "MB written",
)
KEPT = (
    "versions",
    "batch",
    "closed files kept",
    "files kept",
    "of files",
    "whole s",
    "MERGE s",
)
PHASES = ("versions", "contender", "MERGE", "execution", "source", "scan", "rewrite")
TEXT = """# Measured

Written by `make bench` on a machine with {machine}; Spark with 3 GiB and two threads.
Medians of {repeats} rounds. In each round all contenders process the same new batch one after
another, in a different order each round; a warm-up round is not counted. Compare the ratios: the
seconds depend on this machine, on which other processes may have run at the time.

{missing}**Table.** Ten columns, ten versions per key, one day apart, partitioned by the flag, about
125,000 rows per file, closed versions in the order in which they were closed. All contenders start
from copies of one table, and each round continues with the tables of the previous round. The
snapshot's table has the same versions, as dbt stores them. "10 times the closed history" has 100
versions per key and the same current rows.

**Batch.** 500 random keys: 400 updates (two of five cells changed; 50 of them late, earlier than
the current version and the one before it; 20 deleted one minute later), 100 upserts; one
`earliest_start` row for each.

**Contenders.** `history_batch` with `last_batch()`: a whole `dbt run` in a warm process, and its
MERGE as timed by dbt. The five statements, sent directly without dbt: delete overlapping versions,
close the active version, insert completed updates by a join, insert upserts, close deleted records.
A late row does not change the version whose period contains it. `dbt snapshot` with `check_cols`
and `hard_deletes: invalidate`, without this package's fixes, on a table of the current rows to
which the same changes were applied before.

## Targets

{targets}

## Seconds

{seconds}

{staging}

## Files and bytes

Files and bytes written are new files in the table's folder, including deletion vectors but not the
log. Files added and removed and deletion vectors are Delta's MERGE metrics (an insert has others),
summed over the commits. Bytes read are not shown, because neither Delta's metrics nor the tasks'
counters include them (a scan of 1 M rows counts less than 1 MB); see the number of files kept.

{written}

Files that remain after the merge's predicate has skipped others:

{kept}

## Where the merge spends its time

Seconds. The MERGE as timed by dbt, and Delta's metrics of the commit: total, computing the source
(the single pass), searching the target, writing rows.

{phases}
"""
Row = tuple[str, ...]


@dataclass
class Checks:
    """Checks done once per size; triples are (closed files kept, files kept, files)."""

    kept_late: tuple[int, int, int]
    kept_on_time: tuple[int, int, int]
    on_time: Sample
    closed_files_away: bool = False
    row_bytes: float = 0
    first: dict[str, Sample] = field(default_factory=dict)
    again: dict[str, Sample] = field(default_factory=dict)


@dataclass(frozen=True)
class Size:
    """The results for one size."""

    versions: int
    samples: Samples
    checks: Checks

    @property
    def title(self) -> str:
        """The size as text."""
        return f"{self.versions / 1e6:g} M" if self.versions >= MB else f"{self.versions // 1000} k"

    def of(self, name: str, value: Callable[[Sample], float | None]) -> float:
        """The median of a measured contender."""
        found = self.samples.median(name, value)
        if found is None:
            raise LookupError(f"{name} was not measured at {self.title}")
        return found


def whole(sample: Sample) -> float:
    """Seconds of the whole command."""
    return sample.seconds


def merge(sample: Sample) -> float | None:
    """Seconds of its MERGE."""
    return sample.merge


def around(sample: Sample) -> float | None:
    """Seconds of the command without the MERGE."""
    return None if sample.merge is None else sample.seconds - sample.merge


def metric(name: str) -> Callable[[Sample], float]:
    """An operation metric."""
    return lambda sample: float(sample.metric(name))


def changed_rows(sample: Sample) -> float:
    """Rows that a commit added, changed or removed."""
    names = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")
    return float(sum(sample.metric(name) for name in names))


def markdown_table(head: Row, rows: Iterable[Row]) -> str:
    """A Markdown table."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _mb(value: float) -> str:
    return f"{value / MB:.2f}"


def _seconds_rows(size: Size) -> list[Row]:
    five, snapshot = size.of("five", whole), size.of("snapshot", whole)
    rows: list[Row] = []
    for name, label in LABELS.items():
        seconds = size.samples.median(name, whole)
        if seconds is None:
            continue
        alone = size.samples.median(name, merge)
        rows.append(
            (
                size.title,
                label,
                _seconds(seconds),
                _seconds(alone),
                _seconds(size.samples.median(name, around)),
                _seconds(alone / five if alone and name != "snapshot" else None),
                _seconds(seconds / snapshot if name != "five" else None),
            )
        )
    return rows


def _bytes_rows(size: Size) -> list[Row]:
    rows: list[Row] = []
    for name, label in LABELS.items():
        if name not in size.samples.taken:
            continue
        values = [
            size.of(name, lambda one: float(one.files_written)),
            size.of(name, metric("numTargetFilesAdded")),
            size.of(name, metric("numTargetFilesRemoved")),
            size.of(name, metric("numTargetDeletionVectorsAdded")),
        ]
        rows.append(
            (
                size.title,
                label,
                *(f"{value:g}" for value in values),
                _mb(size.of(name, lambda one: float(one.bytes_written))),
            )
        )
    return rows


def _phase_rows(size: Size) -> list[Row]:
    names = ("executionTimeMs", "materializeSourceTimeMs", "scanTimeMs", "rewriteTimeMs")
    return [
        (
            size.title,
            LABELS[name],
            _seconds(size.samples.median(name, merge)),
            *(_seconds(size.of(name, metric(part)) / 1000) for part in names),
        )
        for name in LABELS
        if name in size.samples.taken and name != "five"
    ]


def _verdict(target: str, text: str, is_met: bool) -> Row:
    return target, text, "met" if is_met else "**missed**"


def _ratio(target: str, most: float, value: float) -> Row:
    return _verdict(target, f"{value:.2f}", value <= most)


def _size_targets(size: Size) -> list[Row]:
    at = f" ({size.title})"
    checks = size.checks
    away = "succeeds" if checks.closed_files_away else "fails"
    closed, files, total = checks.kept_on_time
    rows = [
        _ratio(
            f"the merge, at most 0.35 of the five statements{at}",
            0.35,
            size.of("history", merge) / size.of("five", whole),
        ),
        _ratio(
            f"whole `dbt run`, at most 0.6 of a whole `dbt snapshot`{at}",
            0.6,
            size.of("history", whole) / size.of("snapshot", whole),
        ),
        _ratio(
            f"dbt and plan around the merge, at most 1.2 s warm{at}",
            1.2,
            size.of("history", around),
        ),
        _verdict(
            f"no closed file is read when nothing is late{at}",
            f"{files} of {total} files kept, {closed} of them closed; "
            f"without the closed files the run {away}",
            closed == 0 and checks.closed_files_away,
        ),
    ]
    for name in ("history", "history_no_vectors"):
        limit = 3 * size.of(name, changed_rows) * checks.row_bytes + MB
        written = size.of(name, lambda one: float(one.bytes_written))
        vectors = "off" if name == "history_no_vectors" else "on"
        text = (
            f"bytes written, at most 3 × changed rows + 1 MB = {_mb(limit)} MB, "
            f"deletion vectors {vectors}{at}"
        )
        rows.append(_verdict(text, f"{_mb(written)} MB", written <= limit))
    return rows


def _once_targets(size: Size) -> list[Row]:
    rows: list[Row] = []
    if "history_long" in size.samples.taken:
        for text, value in (("whole run", whole), ("merge", merge)):
            ratio = size.of("history_long", value) / size.of("history", value)
            rows.append(
                _ratio(
                    f"cost at 10 × closed history, at most 1.1, {text} ({size.title})", 1.1, ratio
                )
            )
    for name, sample in size.checks.again.items():
        kind = "with its number" if name == "replay_numbered" else "without a number"
        first = size.checks.first[name].seconds
        text = (
            f"{len(sample.commits)} commits, {sample.files_written} files; "
            f"{sample.seconds:.2f} s, first run {first:.2f} s"
        )
        target = f"a replay {kind} writes nothing ({size.title})"
        rows.append(_verdict(target, text, not sample.commits and not sample.files_written))
    return rows


def machine() -> str:
    """A description of the machine."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} cores and {memory:.0f} GiB of memory"


def _kept_rows(size: Size) -> list[Row]:
    late, on_time = size.checks.kept_late, size.checks.kept_on_time
    sample = size.checks.on_time
    times = (_seconds(sample.seconds), _seconds(sample.merge))
    history = (
        _seconds(size.of("history", whole)),
        _seconds(size.of("history", merge)),
    )
    return [
        (size.title, "50 of 500 keys late", *(str(n) for n in late), *history),
        (size.title, "nothing late (one run)", *(str(n) for n in on_time), *times),
    ]


def _staging(size: Size) -> str:
    cached, copied = size.of("history", whole), size.of("history_copied", whole)
    before, after = size.of("history", around), size.of("history_copied", around)
    return (
        f"At {size.title}, staged rows in a cache: whole run {cached:.2f} s, "
        f"around the merge {before:.2f} s. "
        f"In a table: {copied:.2f} s and {after:.2f} s."
    )


def _missing(sizes: list[Size]) -> str:
    done = [size.versions for size in sizes]
    lacking = [f"{versions / 1e6:g} M" for versions in EXPECTED if versions not in done]
    return f"**Not measured yet: {', '.join(lacking)} versions.**\n\n" if lacking else ""


def _text(sizes: list[Size], repeats: int) -> str:
    first = sizes[0]
    targets = [row for size in sizes for row in _size_targets(size)] + _once_targets(first)
    parts = {
        "targets": markdown_table(("target", "result", ""), targets),
        "seconds": markdown_table(SECONDS, [row for size in sizes for row in _seconds_rows(size)]),
        "staging": _staging(first),
        "written": markdown_table(WRITTEN, [row for size in sizes for row in _bytes_rows(size)]),
        "kept": markdown_table(KEPT, [row for size in sizes for row in _kept_rows(size)]),
        "phases": markdown_table(PHASES, [row for size in sizes for row in _phase_rows(size)]),
    }
    return TEXT.format(machine=machine(), repeats=repeats, missing=_missing(sizes), **parts)


def write_report(path: Path, sizes: list[Size], repeats: int) -> None:
    """Write docs/measured.md."""
    write_page(path, _text(sizes, repeats))


def write_page(path: Path, text: str) -> None:
    """Write a page, keeping its notes."""
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    notes = "\n" + old[old.index(NOTES) :] if NOTES in old else ""
    path.write_text(text.rstrip() + "\n" + notes, encoding="utf-8")


def seconds_table(head: str, rows: Mapping[str, Seconds], against: str) -> list[str]:
    """A table of medians, each with its ratio to one contender, and an empty line."""
    names = list(next(iter(rows.values())))
    others = [name for name in names if name != against]
    titles = names + [f"{name} / {against}" for name in others]
    lines = []
    for title, seconds in rows.items():
        found = {name: median(values) for name, values in seconds.items()}
        ratios = [found[name] / found[against] for name in others]
        lines.append((title, *(f"{value:.2f}" for value in [*found.values(), *ratios])))
    return [markdown_table((head, *titles), lines), ""]
