"""The page around the data: one file that loads nothing from the network."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from string import Template
from typing import Any

from dbt_history.embedded import as_json
from dbt_history.output import asset
from dbt_history.timeline.page import vega_bundle

# Blocks all requests, also those of a value that would become markup. Vega's expressions are
# interpreted, so 'unsafe-eval' is not needed.
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
)
FILE = (
    "Read from the tables at {made_at} UTC by dbt_history. This page loads nothing and sends"
    " nothing."
)
SERVED = (
    "Asks the tables through dbt_history on this machine, each time for what is shown. The server"
    " was started at {made_at} UTC."
)
LICENCES = (
    "Charts: Vega, Vega-Lite and vega-embed (BSD 3-Clause, University of Washington Interactive"
    " Data Lab), as bundled by the Python package vl-convert-python (BSD 3-Clause)."
)


def page(data: Mapping[str, Any]) -> str:
    """The page of the data of `compact`; one that asks its server if they are `served`."""
    title = escape(f"History of {data['project']}")
    origin = (SERVED if data.get("served") else FILE).format(made_at=data["made_at"])
    policy = POLICY + ("; connect-src 'self'" if data.get("served") else "")
    body = Template(asset("explore", "explore.html")).substitute(
        title=title, origin=escape(origin), licences=escape(LICENCES)
    )
    style, script = asset("explore", "explore.css"), asset("explore", "explore.js")
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{style}</style></head>\n<body>{body}"
        f'<script id="explore-data" type="application/json">{as_json(data)}</script>\n'
        f"<script>{vega_bundle()}</script>\n<script>{script}</script></body></html>\n"
    )
