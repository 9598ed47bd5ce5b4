"""The two charts as Vega specifications: versions with a movable as-of line, and batches.

The colours are from the palette of Okabe and Ito and also differ in lightness. Shapes and text
repeat what they show, so the charts work without colour: an open version ends in an arrow, a late
one has a diamond, a deletion is a dotted line.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import altair as alt
import vl_convert

from dbt_history.conventions import EPOCH, Axis
from dbt_history.sql import parts_of
from dbt_history.timeline.commits import Commit, batches
from dbt_history.timeline.errors import TimelineError
from dbt_history.timeline.table import Track
from dbt_history.timeline.versions import Absence, Key, Version, absences, format_position

BLUE, SKY, ORANGE, INK, GREY = "#0072B2", "#A9D6F0", "#D55E00", "#1b1f24", "#5f6b76"
GREEN = "#009E73"
FONT = "system-ui, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"
LANE, WIDTH = 34, 860
# Vega's default uses a 12-hour clock.
CLOCK = {
    "year": "%Y", "quarter": "%b %Y", "month": "%b %Y", "week": "%-d %b", "day": "%-d %b",
    "date": "%-d %b", "hours": "%H:%M", "minutes": "%H:%M", "seconds": "%H:%M:%S",
    "milliseconds": "%S.%L",
}  # fmt: skip
MAX_CELLS = 8
# Before the name of a data column, so that one named `state` is not the state of the bar.
CELL = "cell "


def axis_position(value: int, axis: Axis) -> float:
    """A position on the axis in Vega's units: milliseconds, or the number itself."""
    if axis == "bigint":
        return value
    return value * 86_400_000 if axis == "date" else value / 1_000


def lane(track: Track, key: Key) -> str:
    return f"{base_name(track.table)} · {', '.join(shorten(part) for part in key)}"


def base_name(table: str) -> str:
    return parts_of(table)[-1]


def shorten(value: str | None, most: int = 60) -> str:
    """The beginning of a text; NULL has brackets to distinguish it from text."""
    if value is None:
        return "[NULL]"
    return value if len(value) <= most else value[: most - 1] + "…"


def cells(version: Version) -> str:
    """The text of a bar: its first four values."""
    values = [shorten(value, 30) for name, value in version.values.items() if name[:1] not in "_@"]
    return ", ".join(values[:4])


def what_changed(version: Version) -> str:
    if version.changed is None:
        return "first version"
    moved = [
        f"{name}: {shorten(before, 30)} → {shorten(now, 30)}"
        for name, (before, now) in version.changed.items()
    ]
    back = "inserted again after a deletion; " if version.is_back else ""
    return back + ("; ".join(moved[:MAX_CELLS]) or "no data column")


def limits(tracks: Sequence[Track]) -> tuple[float, float]:
    """Both ends of the axis: all closed periods, and space for open ones."""
    known = [
        axis_position(value, track.convention.type)
        for track in tracks
        for version in track.versions
        for value in (version.since, version.until)
        if value is not None
    ]
    first, last = min(known), max(known)
    room = max((last - first) / 6, 1)
    return first - room / 8, last + room


def bar(track: Track, version: Version, last: float) -> dict[str, Any]:
    axis = track.convention.type
    return {
        "table": base_name(track.table),
        "lane": lane(track, version.key),
        "since": axis_position(version.since, axis),
        "until": last if version.until is None else axis_position(version.until, axis),
        "state": "open" if version.until is None else "closed",
        "from (inclusive)": format_position(version.since, axis),
        "to (exclusive)": format_position(version.until, axis),
        "values": cells(version),
        "changed": what_changed(version),
        "added by": version.arrived or "unknown",
        "late": "late" if version.is_late else "on time",
    } | {CELL + name: shorten(value) for name, value in list(version.values.items())[:MAX_CELLS]}


def deletion(track: Track, absence: Absence, last: float) -> dict[str, Any]:
    axis = track.convention.type
    return {
        "lane": lane(track, absence.key),
        "since": axis_position(absence.since, axis),
        "until": last if absence.until is None else axis_position(absence.until, axis),
        "period": f"deleted from {format_position(absence.since, axis)} to "
        + ("now" if absence.until is None else format_position(absence.until, axis)),
    }


def values(rows: list[dict[str, Any]]) -> alt.InlineData:
    return alt.InlineData(values=rows)


def bars(tracks: Sequence[Track]) -> list[dict[str, Any]]:
    """One row per version, for the chart and the table below it."""
    _, last = limits(tracks)
    return [bar(track, version, last) for track in tracks for version in track.versions]


def deletions(tracks: Sequence[Track]) -> list[dict[str, Any]]:
    _, last = limits(tracks)
    return [
        deletion(track, absence, last) for track in tracks for absence in absences(track.versions)
    ]


def lanes(tracks: Sequence[Track]) -> list[str]:
    """The rows of the chart, one table below the other."""
    return list(
        dict.fromkeys(lane(track, version.key) for track in tracks for version in track.versions)
    )


class Axes(NamedTuple):
    """The encodings of the layers: time from left to right, one row per record.

    since, until    both ends of a bar
    end             a mark at the end of a bar
    as_of           the movable line
    """

    since: alt.X
    until: alt.X2
    end: alt.X
    lane: alt.Y
    as_of: alt.XDatum


def axes(tracks: Sequence[Track]) -> Axes:
    numbers = tracks[0].convention.type == "bigint"
    kind, title = ("Q", "version") if numbers else ("T", "time, UTC")
    domain = list(limits(tracks))
    scale = (
        alt.Scale(domain=domain, nice=False)
        if numbers
        else alt.Scale(domain=domain, nice=False, type="utc")
    )
    axis = alt.Axis(
        title=title,
        labelFlush=True,
        labelOverlap=True,
        tickCount=8,
        format="d" if numbers else CLOCK,
    )
    return Axes(
        since=alt.X(f"since:{kind}", scale=scale, axis=axis),
        until=alt.X2("until"),
        end=alt.X(f"until:{kind}", scale=scale, axis=axis),
        lane=alt.Y(
            "lane:N",
            sort=lanes(tracks),
            axis=alt.Axis(title=None, domain=False, ticks=False, labelLimit=210, labelPadding=8),
        ),
        as_of=alt.XDatum(
            alt.expr("as_of"), type="quantitative" if numbers else "temporal", scale=scale
        ),
    )


def tooltip(rows: Sequence[Mapping[str, Any]]) -> list[alt.Tooltip]:
    """What is told of a version: its period, what changed, and its values."""
    told = ("from (inclusive)", "to (exclusive)", "changed", "added by")
    cells_of = dict.fromkeys(name for row in rows for name in row if name.startswith(CELL))
    return [
        alt.Tooltip("lane:N", title="record"),
        *(
            alt.Tooltip(escaped(name) + ":N", title=name.removeprefix(CELL))
            for name in (*told, *cells_of)
        ),
        alt.Tooltip("late:N", title="arrived"),
    ]


def text_limit(margin: int) -> Any:
    """The width of a bar without a margin: a longer text is cut."""
    return alt.expr(f"max(1, scale('x', datum.until) - scale('x', datum.since) - {margin})")


def deletion_layers(tracks: Sequence[Track], on: Axes) -> list[alt.Chart]:
    data = values(deletions(tracks))
    return [
        alt.Chart(data)
        .mark_rule(strokeDash=[2, 4], strokeWidth=2, color=GREY)
        .encode(
            x=on.since,
            x2=on.until,
            y=on.lane,
            tooltip=[alt.Tooltip("period:N", title="deleted")],
        ),
        alt.Chart(data)
        .mark_text(
            text="deleted",
            align="left",
            dx=6,
            dy=-8,
            fontSize=10,
            fontStyle="italic",
            color=GREY,
            limit=text_limit(8),
        )
        .encode(x=on.since, y=on.lane),
    ]


def version_layers(tracks: Sequence[Track], on: Axes) -> list[alt.Chart]:
    """Bars; ticks of empty versions, arrows of open ones, values, diamonds of late ones."""
    rows = bars(tracks)
    data, tip = values(rows), tooltip(rows)
    return [
        alt.Chart(data)
        .mark_bar(height=22, cornerRadius=2, stroke="white", strokeWidth=1.5)
        .encode(
            x=on.since,
            x2=on.until,
            y=on.lane,
            tooltip=tip,
            color=alt.Color(
                "state:N",
                legend=None,
                scale=alt.Scale(domain=["open", "closed"], range=[BLUE, SKY]),
            ),
        ),
        alt.Chart(data)
        .transform_filter("datum.since === datum.until")
        .mark_tick(thickness=3, height=22, color=INK)
        .encode(x=on.since, y=on.lane, tooltip=tip),
        alt.Chart(data)
        .transform_filter("datum.state === 'open'")
        .mark_point(shape="triangle-right", filled=True, size=330, color=BLUE, opacity=1, xOffset=4)
        .encode(x=on.end, y=on.lane, tooltip=tip),
        alt.Chart(data)
        .mark_text(align="left", dx=7, fontSize=12, limit=text_limit(26))
        .encode(
            x=on.since,
            y=on.lane,
            text="values:N",
            tooltip=tip,
            color=alt.condition("datum.state === 'open'", alt.value("white"), alt.value(INK)),
        ),
        alt.Chart(data)
        .transform_filter("datum.late === 'late'")
        .mark_point(
            shape="diamond",
            filled=True,
            size=120,
            color=ORANGE,
            stroke="white",
            strokeWidth=1.5,
            opacity=1,
            yOffset=-12,
        )
        .encode(x=on.since, y=on.lane, tooltip=tip),
    ]


def with_signal(spec: dict[str, Any], first: float, last: float) -> dict[str, Any]:
    """The specification whose signal `as_of` follows the pointer between both ends."""
    signal = next(one for one in spec["signals"] if one["name"] == "as_of")
    signal["on"] = [
        {
            "events": "pointerdown, [pointerdown, window:pointerup] > window:pointermove!",
            "update": f"clamp(+invert('x', clamp(x(), 0, width)), {first}, {last})",
        }
    ]
    return spec


def version_chart(tracks: Sequence[Track], at: float | None = None) -> dict[str, Any]:
    """All versions of all tables on one axis, as a Vega specification with the signal `as_of`.

    `at` is the initial position of the line. Raises TimelineError if some tables have times and
    others version numbers.
    """
    if len({track.convention.type == "bigint" for track in tracks}) > 1:
        raise TimelineError("some tables have version numbers, others times: draw them separately")
    first, last = limits(tracks)
    on = axes(tracks)
    line = alt.Chart(values([{}])).mark_rule(color=INK, strokeWidth=1.5).encode(x=on.as_of)
    as_of = alt.param(name="as_of", value=(first + last * 3) / 4 if at is None else at)
    chart = (
        alt.layer(*deletion_layers(tracks, on), *version_layers(tracks, on), line)
        .add_params(as_of)
        .properties(width=WIDTH, height={"step": LANE})
    )
    return with_signal(to_vega(chart), first, last)


def escaped(name: str) -> str:
    """A column's name with the characters escaped that Vega reads as a path."""
    return "".join("\\" + sign if sign in ".[]:\\'" else sign for sign in name)


def batch_rows(commits: Iterable[Commit]) -> list[dict[str, Any]]:
    """One row per batch and kind of change."""
    return [
        {
            "batch": commit.label,
            "at": (EPOCH + datetime.timedelta(microseconds=commit.at)).strftime(
                "%Y-%m-%d %H:%M:%S"
            ),
            "what": what,
            "rows": rows if what != "removed" else -rows,
            "count": rows,
        }
        for commit in batches(commits)
        for what, rows in (
            ("added", commit.added),
            ("closed", commit.closed),
            ("removed", commit.removed),
        )
    ]


def batch_chart(commits: Sequence[Commit]) -> dict[str, Any] | None:
    """What each batch added, closed and removed; None for a table without batches."""
    rows = batch_rows(commits)
    if not rows:
        return None
    names = list(dict.fromkeys(row["batch"] for row in rows))
    kinds = ["added", "closed", "removed"]
    x = alt.X(
        "batch:N",
        sort=names,
        axis=alt.Axis(title=None, labelAngle=0, labelOverlap=True, labelPadding=16),
    )
    offset = alt.XOffset("what:N", sort=kinds)
    tip = [alt.Tooltip(name + ":N") for name in ("batch", "at", "what", "count")]
    base = alt.Chart(values(rows))
    columns = base.mark_bar(stroke=INK, strokeWidth=0.5).encode(
        x=x,
        xOffset=offset,
        y=alt.Y("rows:Q", axis=alt.Axis(title="rows", tickMinStep=1, format="~s")),
        color=alt.Color(
            "what:N", legend=None, scale=alt.Scale(domain=kinds, range=[GREEN, SKY, ORANGE])
        ),
        tooltip=tip,
    )
    counts = (
        base.transform_filter("datum.count > 0")
        .mark_text(fontSize=11, color=INK, dy=alt.expr("datum.rows < 0 ? 9 : -7"))
        .encode(x=x, xOffset=offset, y="rows:Q", text="count:Q", tooltip=tip)
    )
    width = min(WIDTH, max(240, 70 * len(names)))
    return to_vega((columns + counts).properties(width=width, height=130))


def to_vega(chart: Any) -> dict[str, Any]:
    """Compile the chart to Vega, with the project's style."""
    styled = (
        chart.configure(font=FONT, background="white")
        .configure_view(stroke=None)
        .configure_axis(
            labelColor=INK,
            titleColor=GREY,
            labelFontSize=12,
            titleFontWeight="normal",
            grid=True,
            gridColor="#e6e9ec",
            domainColor=GREY,
            tickColor=GREY,
        )
    )
    spec: dict[str, Any] = vl_convert.vegalite_to_vega(styled.to_dict())
    return spec


def svg(spec: dict[str, Any]) -> str:
    """Render the chart without a browser."""
    text: str = vl_convert.vega_to_svg(spec)
    return text
