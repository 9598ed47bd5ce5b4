"""A file of a request as staged rows: what runs on Spark's executors, one file a task."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from operator import add

import pyarrow as pa
import pyarrow.compute as pc

from dbt_history.landing import csv_cells, parquet_cells
from dbt_history.landing.cells import Typed
from dbt_history.landing.errors import FileError, Problem, RefusedError, shown
from dbt_history.landing.files import Limits, Readable, StoredFile, open_content
from dbt_history.landing.native_cells import typed_cells
from dbt_history.landing.request import ACTIVE, END, START, Column, Markers

# Rows of file n have the orders n * ORDERS + 1, n * ORDERS + 2, …
ORDERS = 10**12
MAX_REPORTED_PROBLEMS = 100

# The line in the file for a row of a batch.
LineOf = Callable[[int], int]


@dataclass(frozen=True)
class Source:
    """A file with all that is needed to read it, as it is sent to an executor."""

    file: StoredFile
    stage: str
    place: int
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    markers: Markers
    batch: int
    limits: Limits
    has_period: bool = True

    @property
    def required(self) -> tuple[str, ...]:
        """Columns that the file must have, and that are never NULL in it."""
        if not self.has_period:
            return self.key
        return (*self.key, END if self.stage == "delete" else START)

    @property
    def expected(self) -> tuple[str, ...]:
        """Columns that the header must name."""
        more = (END, ACTIVE) if self.stage == "upsert" and self.has_period else ()
        return self.required + more

    @property
    def fixed(self) -> set[str]:
        """What tells a version from others: it is never unmodified."""
        return {name.lower() for name in (*self.key, START)}


def arrow_schema(columns: Iterable[Column]) -> pa.Schema:
    """The landing table's columns in order."""
    return pa.schema(
        [
            ("_batch", pa.int64()),
            ("_stage", pa.string()),
            ("_order", pa.int64()),
            ("_unmodified", pa.list_(pa.string())),
            *((column.name, column.type.arrow) for column in columns),
        ]
    )


@dataclass
class Reading:
    """Reads one file. Wrong cells are collected; what ends the reading is a problem too."""

    source: Source
    problems: list[Problem] = field(default_factory=list)
    rows: int = 0

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The staged rows, as long as there is no problem."""
        name = self.source.file.name
        try:
            with open_content(self.source.file, self.source.limits) as content:
                head = content.read(len(parquet_cells.MAGIC))
                is_parquet = head == parquet_cells.MAGIC
                whole = Prefixed(head, content)
                for batch in self.of_parquet(whole) if is_parquet else self.of_csv(whole):
                    self.rows += batch.num_rows
                    if not self.problems:
                        yield batch
                    if len(self.problems) >= MAX_REPORTED_PROBLEMS:
                        return
        except FileError as error:
            self.problems.append(Problem(self.told(str(error)), name))

    def told(self, text: str) -> str:
        """One wrong key in 256 ends in padding that looks right: then the content is to blame."""
        if self.source.file.key is None or "wrong key" in text:
            return text
        return f"{text} (or this is the wrong key)"

    def of_csv(self, content: Readable) -> Iterator[pa.RecordBatch]:
        names: list[str] | None = None
        for piece in csv_cells.pieces(content, self.source.limits):
            if names is None:
                names, piece = csv_cells.split_header(piece)
                if not self.check_header(names):
                    return
            if csv_cells.is_blank(piece, len(names)):
                continue
            try:
                table = csv_cells.read_cells(piece, len(names))
            except (pa.ArrowInvalid, ValueError):
                self.problems += csv_cells.find_problems(piece, names, self.source.file.name)
                continue
            yield self.stage_piece(table, names, piece)
        if names is None:
            raise FileError("is empty: not even a header")

    def stage_piece(
        self, table: pa.Table, names: list[str], piece: csv_cells.Piece
    ) -> pa.RecordBatch:
        cells = {name: one_array(table.column(place)) for place, name in enumerate(names)}
        lines: list[int] = []

        def line_of(row: int) -> int:
            if not lines:
                lines.extend(line for line, _ in csv_cells.rows_with_lines(piece, len(names)))
            return lines[row]

        return self.staged(cells, table.num_rows, line_of)

    def of_parquet(self, content: Readable) -> Iterator[pa.RecordBatch]:
        with (
            parquet_cells.spooled(content) as file,
            parquet_cells.open_parquet(file) as parquet,
        ):
            names = list(parquet.schema_arrow.names)
            if not self.check_header(names):
                return
            before = 0
            limits, stored = self.source.limits, self.source.file.size
            for batch in parquet_cells.record_batches(parquet, limits, stored):
                cells = dict(zip(names, batch.columns))
                # A Parquet file has no lines: its rows are counted from 1.
                yield self.staged(cells, batch.num_rows, partial(add, before + 1))
                before += batch.num_rows

    def check_header(self, names: list[str]) -> bool:
        """Whether the file's columns are known, each once, and the needed ones among them."""
        known = {column.name for column in self.source.columns}
        seen: set[str] = set()
        found = []
        for name in names:
            if name in seen:
                found.append(Problem("the header names it twice", column=shown(name)))
            elif name not in known:
                found.append(Problem("the table has no such column", column=shown(name)))
            seen.add(name)
        for name in dict.fromkeys(self.source.expected):
            if name not in seen:
                text = f"the header of a file of {self.source.stage} rows must name it"
                found.append(Problem(text, column=name))
        self.problems += [
            Problem(self.told(problem.text), self.source.file.name, 1, problem.column)
            for problem in found
        ]
        return not found

    def staged(self, cells: dict[str, pa.Array], rows: int, line_of: LineOf) -> pa.RecordBatch:
        """Cells of a file as rows of the landing table."""
        columns: dict[str, Typed] = {}
        for column in self.source.columns:
            if column.name in cells:
                columns[column.name] = self.column(column, cells[column.name], line_of)
        first = self.source.place * ORDERS + self.rows + 1
        arrays = [
            pa.array([self.source.batch] * rows, pa.int64()),
            pa.array([self.source.stage] * rows, pa.string()),
            pa.array(range(first, first + rows), pa.int64()),
            self.unmodified(columns, rows),
        ]
        for column in self.source.columns:
            there = columns.get(column.name)
            arrays.append(there.values if there else pa.nulls(rows, column.type.arrow))
        schema = arrow_schema(self.source.columns)
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def column(self, column: Column, cells: pa.Array, line_of: LineOf) -> Typed:
        if pa.types.is_dictionary(cells.type):
            cells = cells.dictionary_decode()
        self.check_size(column, cells, line_of)
        found = typed_cells(cells, column.type, self.source.markers)
        for row in found.wrong:
            self.tell(f"{cell_text(cells[row])} is no {column.type}", line_of(row), column.name)
        self.check_markers(column, found, line_of)
        return found

    def check_size(self, column: Column, cells: pa.Array, line_of: LineOf) -> None:
        if not parquet_cells.is_bytes(cells.type):
            return
        too_long = pc.greater(pc.binary_length(cells), self.source.limits.cell)
        if pc.any(too_long).as_py():
            for row in places(too_long):
                limit = f"is longer than {self.source.limits.cell:,} bytes"
                self.tell(limit, line_of(row), column.name)

    def check_markers(self, column: Column, found: Typed, line_of: LineOf) -> None:
        """A marker where it cannot be meant is a value that looks like one: nothing may be lost."""
        name = column.name.lower()
        if found.unmodified is not None:
            is_refused = self.source.stage == "upsert" or name in self.source.fixed
            if is_refused or column.name in self.source.required:
                text = f"is the unmodified marker, in a file of {self.source.stage} rows"
                for row in places(found.unmodified):
                    self.tell(text, line_of(row), column.name)
                return
        if column.name in self.source.required and found.values.null_count > len(found.wrong):
            for row in places(pc.is_null(found.values)):
                if row not in found.wrong:
                    self.tell("is NULL, and must not be", line_of(row), column.name)

    def tell(self, text: str, line: int, column: str) -> None:
        if len(self.problems) < MAX_REPORTED_PROBLEMS:
            self.problems.append(Problem(text, self.source.file.name, line, column))

    def unmodified(self, columns: dict[str, Typed], rows: int) -> pa.Array:
        """For update rows the names of the columns that are marked, or that the file lacks."""
        type_ = pa.list_(pa.string())
        if self.source.stage != "update":
            return pa.nulls(rows, type_)
        absent = [
            column.name
            for column in self.source.columns
            if column.name not in columns and column.name.lower() not in self.source.fixed
        ]
        marked = {
            name: found.unmodified
            for name, found in columns.items()
            if found.unmodified is not None
        }
        if not marked:
            return pa.array([absent] * rows, type_)
        # Rows have few patterns: each is written once, and taken by number.
        names = list(marked)
        flags = [
            pc.if_else(mask, str(place), pa.scalar(None, pa.string()))
            for place, mask in enumerate(marked.values())
        ]
        joined = pc.binary_join_element_wise(*flags, ",", null_handling="replace")
        patterns = joined.dictionary_encode()
        lists = [
            absent + [names[int(place)] for place in pattern.split(",") if place]
            for pattern in patterns.dictionary.to_pylist()
        ]
        return pa.array(lists, type_).take(patterns.indices)


class Prefixed:
    """Bytes that were read already, and then the rest."""

    def __init__(self, head: bytes, rest: Readable) -> None:
        self.head = head
        self.rest = rest

    def read(self, size: int) -> bytes:
        if self.head:
            data, self.head = self.head[:size], self.head[size:]
            return data
        return self.rest.read(size)


def one_array(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def cell_text(cell: pa.Scalar) -> str:
    """A cell for a message. Python has no value for some, such as a time after the year 9999."""
    try:
        return shown(str(cell.as_py()))
    except (ValueError, OverflowError):
        return shown(str(pc.cast(cell, pa.string())))


def places(mask: pa.Array) -> list[int]:
    """Where a mask is true, no more than are ever told."""
    found: list[int] = pc.indices_nonzero(mask).slice(0, MAX_REPORTED_PROBLEMS).to_pylist()
    return found


def staged_rows(source: Source) -> Iterator[pa.RecordBatch]:
    """All rows of a file, or RefusedError at the first problem, without a cell in its text."""
    reading = Reading(source)
    for batch in reading.batches():
        yield batch
        if reading.problems:
            break
    if reading.problems:
        raise RefusedError(f"{source.file.name}: cannot be landed")


def checked(source: Source) -> Reading:
    """Read a file to its end for its problems and its number of rows."""
    reading = Reading(source)
    for _ in reading.batches():
        pass
    return reading


def check_head(source: Source) -> list[Problem]:
    """What is wrong with the beginning of a file: key, compression, header."""
    reading = Reading(source)
    try:
        with open_content(source.file, source.limits) as content:
            head = content.read(len(parquet_cells.MAGIC))
            if head != parquet_cells.MAGIC:
                for piece in csv_cells.pieces(Prefixed(head, content), source.limits):
                    reading.check_header(csv_cells.split_header(piece)[0])
                    return reading.problems
                raise FileError("is empty: not even a header")
    except FileError as error:
        reading.problems.append(Problem(reading.told(str(error)), source.file.name))
    return reading.problems
