"""Renders a Mermaid flow chart as a drawing, and as a list of steps with their successors.

The chart is drawn when the site is generated, so a page needs no script. The list is for phones
and screen readers; it omits unlabelled exits to the next step (docs/decisions/0062).
"""

from __future__ import annotations

import hashlib
import re
from html import escape
from pathlib import Path

import mermaidx

from dbt_history.output import write_file

LOOK = {
    "theme": "base",
    "htmlLabels": False,
    "flowchart": {"htmlLabels": False, "nodeSpacing": 28, "rankSpacing": 34, "wrappingWidth": 320},
    "themeVariables": {
        "fontFamily": "sans-serif",
        "fontSize": "15px",
        "primaryColor": "#f6f8f9",
        "primaryBorderColor": "#0072B2",
        "primaryTextColor": "#1b1f24",
        "lineColor": "#5f6b76",
        "edgeLabelBackground": "#ffffff",
    },
}

NODE = re.compile(r"(\w+)\s*(?:([\[({>]+)(.*?)([\])}]+))?\s*$", re.DOTALL)
ARROW = re.compile(r"\s*(?:--\s*(.+?)\s*)?-->\s*(?:\|(.+?)\|\s*)?")


def read(chart: str) -> tuple[dict[str, str], list[tuple[str, str, str]]]:
    """Texts by node, in the order in which they appear; and (from, label, to)."""
    texts: dict[str, str] = {}
    ways: list[tuple[str, str, str]] = []
    for line in chart.splitlines()[1:]:
        parts = ARROW.split(line.strip())
        before = ""
        for place in range(0, len(parts), 3):
            found = NODE.match(parts[place])
            if not found:
                continue
            name, text = found[1], found[3]
            if text is not None or name not in texts:
                texts[name] = (text or texts.get(name, name)).replace("<br/>", " ")
            if before:
                label = parts[place - 2] or parts[place - 1] or ""
                ways.append((before, label.replace("<br/>", " "), name))
            before = name
    return texts, ways


def drawing(chart: str, cache: Path) -> str:
    """The chart as SVG; redrawn (some seconds) only if it, the style or the library changed."""
    made_from = repr((chart, LOOK, mermaidx.__version__))
    file = cache / f"{hashlib.sha256(made_from.encode()).hexdigest()}.svg"
    if not file.is_file():
        write_file(file, str(mermaidx.render(chart, config=LOOK).svg()))
    return file.read_text("utf-8")


def html(chart: str, prefix: str, image: str) -> str:
    """The drawing at the address `image`, and below it the steps as a collapsible list.

    `prefix` keeps the anchors of two charts of a page apart.
    """
    return (
        f'<figure class="chart"><img src="{escape(image)}" loading="lazy" '
        f'alt="Flow chart; a list of its steps follows"></figure>\n'
        f'<details class="steps"><summary>List of the steps</summary>\n'
        f"{steps(chart, prefix)}</details>\n"
    )


def steps(chart: str, prefix: str) -> str:
    """The steps as an ordered list."""
    texts, ways = read(chart)
    order = list(texts)
    lines = [f'<ol class="flow" aria-label="{escape(prefix)}">']
    for place, name in enumerate(order):
        exits = []
        for start, label, end in ways:
            if start != name:
                continue
            is_next = place + 1 < len(order) and order[place + 1] == end
            if is_next and not label:
                continue
            mark = f"<b>{escape(label)}</b> " if label else ""
            exits.append(f'<li>{mark}→ <a href="#{prefix}-{end}">{escape(texts[end])}</a></li>')
        kind = "question" if texts[name].rstrip().endswith("?") else "step"
        kind = kind if any(start == name for start, _, _ in ways) else "end"
        inside = f"<ul>{''.join(exits)}</ul>" if exits else ""
        lines.append(f'<li id="{prefix}-{name}" class="{kind}">{escape(texts[name])}{inside}</li>')
    return "\n".join([*lines, "</ol>", ""])
