"""Draw the README's picture: one record, as a dbt snapshot and as dbt_history keep it.

    python scripts/picture.py      writes docs/pictures/one_record.svg

The days and rows are data. `tests/functional/test_picture.py` runs dbt on `ARRIVALS` and compares
what the two tables contain with `SNAPSHOT` and `HISTORY`; `tests/render/test_picture.py` compares
the file with what this script draws.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "docs/pictures/one_record.svg"


@dataclass(frozen=True)
class Arrival:
    """A row of the source: the day it arrives, and the city since a day; None is a deletion."""

    day: int
    city: str | None
    since: int

    @property
    def is_late(self) -> bool:
        return self.day > self.since


@dataclass(frozen=True)
class Version:
    """A version of the record, `[since, until)` in days; until is None if it is current."""

    city: str
    since: int
    until: int | None


ARRIVALS = [
    Arrival(1, "Bonn", 1),
    Arrival(3, "Rome", 3),
    Arrival(7, "Oslo", 7),
    Arrival(9, "Kiel", 5),
    Arrival(16, None, 16),
]
RUNS = [2, 8, 10, 12, 14, 18]
# The source is empty during this run.
EMPTY = 12
LAST = 20
SNAPSHOT = [Version("Bonn", 1, 7), Version("Oslo", 7, 12)]
HISTORY = [
    Version("Bonn", 1, 3),
    Version("Rome", 3, 5),
    Version("Kiel", 5, 7),
    Version("Oslo", 7, 16),
]

WIDTH, HEIGHT = 560, 372
LEFT, DAY = 32, 26
ARRIVED, RAN, SNAPPED, KEPT, AXIS = 74, 148, 216, 286, 334
BAR = 30
# Colours in the light theme and in the dark one.
COLOURS = {
    "page": ("#ffffff", "#0d1117"),
    "ink": ("#1b1f24", "#e6edf3"),
    "grey": ("#57606a", "#9da7b1"),
    "line": ("#d0d7de", "#30363d"),
    "closed": ("#a9d6f0", "#1f4e6e"),
    "open": ("#0072b2", "#4aa3df"),
    "late": ("#d55e00", "#ff9b50"),
}


def place(day: float) -> float:
    return LEFT + (day - 1) * DAY


def style() -> str:
    """The classes, and their colours where the reader prefers a dark page."""
    light = "".join(f"--{name}:{colours[0]};" for name, colours in COLOURS.items())
    dark = "".join(f"--{name}:{colours[1]};" for name, colours in COLOURS.items())
    return (
        f"svg{{{light}}}@media(prefers-color-scheme:dark){{svg{{{dark}}}}}"
        "text{font:15px system-ui,'Segoe UI',Helvetica,Arial,sans-serif;fill:var(--ink)}"
        ".head{font-weight:600}.grey{fill:var(--grey);font-size:14px}.mid{text-anchor:middle}"
        ".page{fill:var(--page)}.run{stroke:var(--line);stroke-dasharray:3 4}"
        ".bar{fill:var(--closed)}.late{fill:var(--late)}.dot{fill:var(--open)}"
        ".back{fill:none;stroke:var(--late);stroke-width:1.5}.rule{stroke:var(--grey)}"
        ".none{fill:none;stroke:var(--grey);stroke-dasharray:4 3}"
    )


def text(x: float, y: float, words: str, kind: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" class="{kind}">{escape(words)}</text>'


def arrivals() -> Iterator[str]:
    """A dot for each row on the day it arrives; an arrow from a late one to its day."""
    for one in ARRIVALS:
        x, back = place(one.day), place(one.since)
        kind = "late" if one.is_late else "dot"
        yield f'<circle cx="{x:g}" cy="{ARRIVED}" r="5" class="{kind}"/>'
        if one.is_late:
            middle, low = (x + back) / 2, ARRIVED + 30
            yield (
                f'<path class="back" marker-end="url(#tip)"'
                f' d="M{x:g} {ARRIVED + 7}Q{middle:g} {low} {back:g} {ARRIVED + 5}"/>'
            )
            words = f"late: in {one.city} since day {one.since}"
            yield text(middle, low + 8, words, "mid grey")
        yield text(x, ARRIVED - 12, one.city or "deleted", "mid")


def runs() -> Iterator[str]:
    for number, day in enumerate(RUNS, 1):
        x = place(day)
        top = RAN + (24 if day == EMPTY else 6)
        yield f'<line x1="{x:g}" y1="{top}" x2="{x:g}" y2="{AXIS}" class="run"/>'
        yield text(x, RAN, str(number), "mid grey")
        if day == EMPTY:
            yield text(x, RAN + 18, "empty load", "mid grey")


def bars(versions: list[Version], y: int) -> Iterator[str]:
    """A bar for each version; the days without one are outlined."""
    covered = {day for one in versions for day in range(one.since, one.until or LAST)}
    for one in HISTORY:
        if not set(range(one.since, one.until or LAST)) <= covered:
            first = min(set(range(one.since, one.until or LAST)) - covered)
            x, end = place(first), place(one.until or LAST)
            yield (
                f'<rect x="{x:g}" y="{y}" width="{end - x:g}" height="{BAR}" rx="3" class="none"/>'
            )
            yield text((x + end) / 2, y + 20, "missing", "mid grey")
    for one in versions:
        x, end = place(one.since), place(one.until or LAST)
        yield (
            f'<rect x="{x + 1:g}" y="{y}" width="{end - x - 2:g}" height="{BAR}" rx="3"'
            ' class="bar"/>'
        )
        yield text(x + 6, y + 20, one.city)


def draw() -> str:
    """The picture as SVG."""
    days = [1, 5, 10, 15, 20]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
        f' width="{WIDTH}" height="{HEIGHT}" role="img" aria-labelledby="title">',
        '<title id="title">The city of one customer, as it arrived, as a dbt snapshot keeps it'
        " and as dbt_history keeps it</title>",
        f"<style>{style()}</style>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8"'
        ' markerHeight="8" orient="auto"><path class="late" d="M0 0L8 4L0 8z"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="8" class="page"/>',
        text(LEFT, 28, "Rows of one customer, on the day they arrive", "head"),
        *arrivals(),
        text(LEFT - 14, RAN, "run", "grey"),
        *runs(),
        text(LEFT, SNAPPED - 10, "A dbt snapshot after run 6", "head"),
        *bars(SNAPSHOT, SNAPPED),
        text(LEFT, KEPT - 10, "dbt_history after run 6", "head"),
        *bars(HISTORY, KEPT),
        f'<line x1="{LEFT}" y1="{AXIS}" x2="{place(LAST):g}" y2="{AXIS}" class="rule"/>',
        *(text(place(day), AXIS + 20, f"day {day}", "mid grey") for day in days),
        "</svg>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


if __name__ == "__main__":
    FILE.parent.mkdir(parents=True, exist_ok=True)
    FILE.write_text(draw(), encoding="utf-8")
