"""Reader of the conformance cases of the area `history_batch`.

One CSV is one case: the initial table, the batches, the expected table. The README of the cases
defines the stages and cell markers.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from .convention import Row

NULL = "\\N"
UNMODIFIED = "\\U"
NO_COLUMN = "\\-"
OPEN_END = "TMAX"
TIME_COLUMNS = ("_fivetran_start", "_fivetran_end", "_fivetran_synced")
ACTIVE_COLUMN = "_fivetran_active"
STAGES = {
    "earliest": "earliest_start",
    "update": "update",
    "replace": "replace",
    "delete": "delete",
}


class CaseError(ValueError):
    """A case file that does not follow its README."""


@dataclass(frozen=True)
class Case:
    """One case.

    key        key columns, without the start
    columns    all columns of the table, in file order
    decisions  the optional rules that the case depends on
    initial    the table before the batches; rows {column: value}
    batches    staged rows of each batch; `_order` is the row's position in the batch in the file
    expected   the table after the last batch
    """

    id: str
    title: str
    key: tuple[str, ...]
    columns: tuple[str, ...]
    decisions: tuple[str, ...]
    initial: list[Row]
    batches: list[list[Row]]
    expected: list[Row]


def find_cases(repository: Path) -> Path:
    """The folder of the cases: the project's copy, or the shared one beside the checkout."""
    copy = repository / "tests/conformance/cases/history_batch"
    return copy if copy.is_dir() else repository.parent / "shared/conformance/history_batch"


def read_cases(folder: Path) -> list[Case]:
    """All cases that `index.csv` in the folder lists. Raises CaseError, OSError."""
    with (folder / "index.csv").open(encoding="utf-8", newline="") as file:
        return [read_case(folder / f"{line['id']}.csv", line) for line in csv.DictReader(file)]


def read_case(path: Path, index_line: dict[str, str]) -> Case:
    """One case file, with its line of `index.csv`."""
    with path.open(encoding="utf-8", newline="") as file:
        header, *lines = list(csv.reader(file))
    if header[0] != "stage" or any(len(line) != len(header) for line in lines):
        raise CaseError(f"{path.name}: no stage column, or lines of different length")
    columns = tuple(header[1:])
    tables: dict[str, list[Row]] = {"initial": [], "expected": []}
    batches: dict[int, list[Row]] = {}
    for stage, *cells in lines:
        if stage in tables:
            tables[stage].append(table_row(columns, cells))
            continue
        match = re.fullmatch(r"b(\d+)\.(\w+)", stage)
        if match is None or match[2] not in STAGES:
            raise CaseError(f"{path.name}: unknown stage {stage}")
        number = int(match[1])
        batch = batches.setdefault(number, [])
        batch.append(staged_row(columns, cells, STAGES[match[2]], number, len(batch) + 1))
    return Case(
        id=index_line["id"],
        title=index_line["title"],
        key=tuple(index_line["key"].split("+")),
        columns=columns,
        decisions=tuple(index_line["decisions"].split()),
        initial=tables["initial"],
        batches=[batches[number] for number in sorted(batches)] or [[]],
        expected=tables["expected"],
    )


def table_row(columns: tuple[str, ...], cells: list[str]) -> Row:
    """A row of the initial or expected table."""
    return {name: value(name, cell) for name, cell in zip(columns, cells, strict=True)}


def staged_row(
    columns: tuple[str, ...], cells: list[str], stage: str, batch: int, order: int
) -> Row:
    """A row of a batch. Cells missing from an update row are NULL and named in `_unmodified`."""
    kept = [
        name
        for name, cell in zip(columns, cells, strict=True)
        if stage == "update" and cell in (UNMODIFIED, NO_COLUMN)
    ]
    return {
        **table_row(columns, cells),
        "_stage": stage,
        "_batch": batch,
        "_order": order,
        "_unmodified": kept or None,
    }


def value(column: str, cell: str) -> Any:
    """A cell: None for NULL and for a missing value, else by column type."""
    if cell in (NULL, UNMODIFIED, NO_COLUMN):
        return None
    if column in TIME_COLUMNS:
        return time(cell)
    if column == ACTIVE_COLUMN:
        return {"true": True, "false": False}[cell]
    return cell


def time(cell: str) -> datetime:
    """A naive UTC time; digits after microseconds are dropped."""
    if cell == OPEN_END:
        cell = "9999-12-31T23:59:59.999Z"
    match = re.fullmatch(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?Z", cell)
    if match is None:
        raise CaseError(f"not a time: {cell}")
    microsecond = int((match[2] or "0")[:6].ljust(6, "0"))
    return datetime.fromisoformat(match[1]).replace(microsecond=microsecond)
