"""A flow chart in Mermaid's notation as a list of steps, with the ways out of each.

The plain way to the next step goes without saying. A list reads on a phone, in print and aloud,
and needs no script (docs/decisions/0061).
"""

from __future__ import annotations

import re
from html import escape

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


def html(chart: str, prefix: str) -> str:
    """The steps as an ordered list; `prefix` keeps the anchors of two charts of a page apart."""
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
