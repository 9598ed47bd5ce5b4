"""The tables and fenced blocks of a Markdown page, for tests that run them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.support.project import ROOT

PAGE_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def page(path: str) -> str:
    """The text of a page, by its path in the repository."""
    return (ROOT / Path(path)).read_text()


def blocks(text: str, language: str) -> list[str]:
    """The fenced blocks in one language, in order."""
    return [body for name, body in PAGE_BLOCK.findall(text) if name == language]


def table_after(text: str, words: str) -> list[dict[str, str]]:
    """The first table after these words: one dict per row, cells as text without emphasis marks."""
    lines = iter(text[text.index(words) :].splitlines())
    rows: list[list[str]] = []
    for line in lines:
        if line.startswith("|"):
            cells = line.strip().strip("|").split("|")
            rows.append([cell.strip().strip("*`") for cell in cells])
        elif rows:
            break
    names, _, *body = rows
    return [dict(zip(names, cells, strict=True)) for cells in body]


def rows_after(text: str, words: str, types: Mapping[str, str]) -> list[dict[str, Any]]:
    """The first table after these words, its cells as Spark returns them; an empty one is NULL."""
    read: dict[str, Callable[[str], Any]] = {
        "bigint": int,
        "timestamp": datetime.fromisoformat,
        "boolean": "true".__eq__,
    }
    return [
        {
            name: read.get(types.get(name, ""), str)(cell) if cell else None
            for name, cell in row.items()
        }
        for row in table_after(text, words)
    ]
