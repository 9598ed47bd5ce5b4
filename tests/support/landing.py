"""Requests for tests of landing: columns `id`, `name` and `amount`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dbt_history.landing import Limits, RefusedError
from dbt_history.landing import read_request as read
from dbt_history.landing.land import check_heads, find_sources
from dbt_history.landing.rows import checked
from dbt_history.landing.writer import RequestWriter

START, END = "2024-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z"
COLUMNS = {"id": "LONG", "name": "STRING", "amount": ("DECIMAL", 10, 2)}
HEADER = ("id", "name", "amount", "_fivetran_start", "_fivetran_end", "_fivetran_active")


def upserts(*cells: tuple[str, str, str]) -> list[list[str]]:
    return [[*row, START, END, "true"] for row in cells]


def small(folder: Path, **how: Any) -> RequestWriter:
    """A request with one upsert file of one row."""
    writer = RequestWriter(folder, COLUMNS, **how)
    writer.add_csv("upsert", "upsert.csv", HEADER, upserts(("1", "a", "1.5")))
    return writer


def problems(path: Path, limits: Limits | None = None) -> str:
    """All problems of a request and its files, found without Spark."""
    try:
        request = read(path)
        sources = find_sources(request, path.parent, limits or Limits())
        check_heads(request, sources)
    except RefusedError as error:
        return str(error)
    found = [str(problem) for source in sources for problem in checked(source).problems]
    return "\n".join(found)


def one_file(folder: Path, data: bytes, stage: str = "upsert", **how: Any) -> Path:
    """A request with one file that has this content."""
    columns = how.pop("columns", COLUMNS)
    writer = RequestWriter(folder, columns, **how)
    writer.add(stage, "rows.csv", data)
    return writer.write()
