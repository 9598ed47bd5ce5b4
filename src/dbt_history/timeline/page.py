"""The page around the charts: one file that loads nothing from the network."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from html import escape
from typing import Any

import vl_convert

from dbt_history.embedded import as_json
from dbt_history.output import asset
from dbt_history.timeline.chart import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    SKY,
    bars,
    base_name,
    batch_chart,
    limits,
    svg,
    version_chart,
)
from dbt_history.timeline.table import Track

# Blocks all requests, including those injected by a data value.
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; "
    "style-src 'unsafe-inline'; img-src data:"
)

LEGEND = f"""
<div class="tl-key" aria-label="Key">
<span><svg width="34" height="14"><rect width="24" height="14" rx="2" fill="{BLUE}"/>
<path d="M24 0 L34 7 L24 14 Z" fill="{BLUE}"/></svg>current</span>
<span><svg width="30" height="14"><rect width="30" height="14" rx="2" fill="{SKY}"/></svg>closed
</span>
<span><svg width="30" height="14"><path d="M0 7 H30" stroke="{GREY}" stroke-width="2"
stroke-dasharray="2 4"/></svg>deleted</span>
<span><svg width="14" height="14"><path d="M7 0 L14 7 L7 14 L0 7 Z" fill="{ORANGE}"/></svg>late:
added after a version with a later start</span>
<span><svg width="8" height="14"><path d="M4 0 V14" stroke="#1b1f24" stroke-width="1.5"/></svg>as
of</span>
</div>
"""

BATCH_LEGEND = f"""
<div class="tl-key" aria-label="Key, from left to right">
<span><svg width="14" height="14"><rect width="14" height="14" fill="{GREEN}"/></svg>added</span>
<span><svg width="14" height="14"><rect width="14" height="14" fill="{SKY}"/></svg>closed</span>
<span><svg width="14" height="14"><rect width="14" height="14" fill="{ORANGE}"/></svg>removed</span>
</div>
"""


@functools.cache
def vega_bundle() -> str:
    """Vega and vega-embed as one script, bundled by vl-convert."""
    # None, which the type hints of vl-convert do not allow, returns the whole bundle.
    text: str = vl_convert.javascript_bundle(None)  # type: ignore[arg-type]
    return text.replace("</script", "<\\/script")


def number(value: float | None) -> str:
    return "" if value is None else repr(float(value))


def version_rows(tracks: Sequence[Track]) -> str:
    """The table below the chart: every version, as an accessible alternative to the chart."""
    lines = []
    for row in bars(tracks):
        late = ' <span class="tl-late">◆ late</span>' if row["late"] == "late" else ""
        until = None if row["state"] == "open" else row["until"]
        lines.append(
            f'<tr data-since="{number(row["since"])}" data-until="{number(until)}">'
            f"<td>{escape(row['lane'])}</td>"
            f'<td class="tl-time">{escape(row["from (inclusive)"])}</td>'
            f'<td class="tl-time">{escape(row["to (exclusive)"])}</td>'
            f"<td>{escape(row['values'])}</td><td>{escape(row['changed'])}</td>"
            f"<td>{escape(row['added by'])}{late}</td></tr>"
        )
    return (
        '<div class="tl-rows"><table id="version-rows"><thead><tr><th>record</th><th>from</th>'
        "<th>to, exclusive</th><th>values</th><th>what changed</th><th>added by</th></tr></thead>"
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def body(tracks: Sequence[Track], at: float | None = None) -> str:
    """The charts as HTML for a page that includes `vega_bundle` and the style sheet."""
    versions = version_chart(tracks, at)
    charts = [(track, spec) for track in tracks if (spec := batch_chart(track.commits)) is not None]
    signals = {one["name"]: one for one in versions["signals"]}
    first, last = limits(tracks)
    data = {
        "numbers": tracks[0].convention.type == "bigint",
        "versions": versions,
        "batches": [spec for _, spec in charts],
    }
    notes = [
        f"<p class='tl-note'>{escape(base_name(track.table))}: only the first "
        f"{len({version.key for version in track.versions})} records.</p>"
        for track in tracks
        if track.is_cut
    ]
    parts = [
        LEGEND,
        f'<div class="tl-picture" id="versions">{svg(versions)}</div>',
        '<div class="tl-at"><label for="as-of">As of</label><output id="as-of-text"></output>'
        f'<input type="range" id="as-of" min="{first}" max="{last}" step="any" '
        f'value="{float(signals["as_of"]["value"])}">'
        '<span class="tl-note tl-hint">drag the line in the chart, or this</span></div>',
        *notes,
        version_rows(tracks),
    ]
    for place, (track, spec) in enumerate(charts):
        parts += [
            f"<h2>Batches of {escape(base_name(track.table))}</h2>",
            "<p class='tl-note'>Rows that each batch added, closed and removed, "
            "from the table's own commits.</p>",
            BATCH_LEGEND,
            f'<div class="tl-picture" id="batches-{place}">{svg(spec)}</div>',
        ]
    parts.append(f'<script type="application/json" id="timeline-data">{as_json(data)}</script>')
    return "\n".join(parts)


def page(tracks: Sequence[Track], at: float | None = None) -> str:
    """The whole page, including Vega."""
    title = f"Versions of {', '.join(base_name(track.table) for track in tracks)}"
    style = asset("timeline", "page.css") + asset("timeline", "timeline.css")
    script = asset("timeline", "timeline.js")
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{style}</style></head>\n"
        f"<body><h1>{escape(title)}</h1>\n{body(tracks, at)}\n"
        f"<script>{vega_bundle()}</script>\n<script>{script}</script></body></html>\n"
    )


def render(name: str, tracks: Sequence[Track], at: float | None) -> str:
    """The content of the output file: the chart alone for `.svg`, else the page."""
    if name.lower().endswith(".svg"):
        spec: dict[str, Any] = version_chart(tracks, at)
        return svg(spec)
    return page(tracks, at)
