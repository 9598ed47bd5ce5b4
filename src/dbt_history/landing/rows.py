"""Reads a file of a request as staged rows. Runs on Spark's executors, one file per task."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from operator import add

import pyarrow as pa
import pyarrow.compute as pc

from dbt_history.conventions import KNOWN
from dbt_history.landing import csv_cells, parquet_cells
from dbt_history.landing.cells import CastColumn
from dbt_history.landing.errors import FileError, Problem, RefusedError, abbreviated
from dbt_history.landing.files import Limits, Readable, StoredFile, open_content
from dbt_history.landing.native_cells import cast_cells
from dbt_history.landing.request import ACTIVE, END, START, Column, Markers

# `_order` of the rows of file n: n * ORDERS_PER_FILE + 1, n * ORDERS_PER_FILE + 2, …
ORDERS_PER_FILE = 10**12
MAX_REPORTED_PROBLEMS = 100
CONVENTION = KNOWN["fivetran"]
NOT_BEFORE_OPEN_END = "is not before the open end, 9999-12-31T23:59:59.999Z"

# Maps the index of a row in a batch to its line in the file.
LineOf = Callable[[int], int]


@dataclass(frozen=True)
class Source:
    """A file and everything an executor needs to read it. `place` is its number, from 1.

    `unlisted` are columns of the landing table that the request does not list.
    """

    file: StoredFile
    stage: str
    place: int
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    markers: Markers
    batch: int
    limits: Limits
    has_period: bool = True
    unlisted: tuple[str, ...] = ()

    @property
    def required(self) -> tuple[str, ...]:
        """Columns that the file must have and that must not be NULL."""
        if not self.has_period:
            return self.key
        return (*self.key, END if self.stage == "delete" else START)

    @property
    def expected(self) -> tuple[str, ...]:
        """Columns that the header must name."""
        more = (END, ACTIVE) if self.stage == "upsert" and self.has_period else ()
        return self.required + more

    @property
    def identity_columns(self) -> set[str]:
        """Columns that identify a version; they are never unmodified."""
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
class FileReader:
    """Reads one file and collects its problems, including the one that ends the reading."""

    source: Source
    problems: list[Problem] = field(default_factory=list)
    rows: int = 0

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the staged rows until the first problem; continue reading to find more problems."""
        name = self.source.file.name
        try:
            with open_content(self.source.file, self.source.limits) as content:
                head = content.read(len(parquet_cells.MAGIC))
                is_parquet = head == parquet_cells.MAGIC
                whole = PrefixedReader(head, content)
                for batch in self.read_parquet(whole) if is_parquet else self.read_csv(whole):
                    self.rows += batch.num_rows
                    if not self.problems:
                        yield batch
                    if len(self.problems) >= MAX_REPORTED_PROBLEMS:
                        return
        except FileError as error:
            self.problems.append(Problem(self.with_key_hint(str(error)), name))

    def with_key_hint(self, text: str) -> str:
        """Mention the key: one wrong key in 256 yields valid padding, so other errors follow."""
        if self.source.file.key is None or "wrong key" in text:
            return text
        return f"{text} (or this is the wrong key)"

    def read_csv(self, content: Readable) -> Iterator[pa.RecordBatch]:
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
            raise FileError("is empty: it has no header")

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

    def read_parquet(self, content: Readable) -> Iterator[pa.RecordBatch]:
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
                # A Parquet file has no lines; rows are counted from 1.
                yield self.staged(cells, batch.num_rows, partial(add, before + 1))
                before += batch.num_rows

    def check_header(self, names: list[str]) -> bool:
        """Check that the columns are known and unique and include the required ones."""
        known = {column.name for column in self.source.columns}
        seen: set[str] = set()
        found = []
        for name in names:
            if name in seen:
                found.append(Problem("occurs twice in the header", column=abbreviated(name)))
            elif name not in known:
                found.append(Problem("is not a column of the table", column=abbreviated(name)))
            seen.add(name)
        for name in dict.fromkeys(self.source.expected):
            if name not in seen:
                text = f"is missing in the header of a file of {self.source.stage} rows"
                found.append(Problem(text, column=name))
        self.problems += [
            Problem(self.with_key_hint(problem.text), self.source.file.name, 1, problem.column)
            for problem in found
        ]
        return not found

    def staged(self, cells: dict[str, pa.Array], rows: int, line_of: LineOf) -> pa.RecordBatch:
        """Cells of a file as rows of the landing table."""
        columns: dict[str, CastColumn] = {}
        for column in self.source.columns:
            if column.name in cells:
                columns[column.name] = self.column(column, cells[column.name], line_of)
        if self.source.has_period:
            self.check_period(columns, line_of)
        first = self.source.place * ORDERS_PER_FILE + self.rows + 1
        arrays = [
            pa.array([self.source.batch] * rows, pa.int64()),
            pa.array([self.source.stage] * rows, pa.string()),
            pa.array(range(first, first + rows), pa.int64()),
            self.unmodified(columns, rows),
        ]
        for column in self.source.columns:
            found = columns.get(column.name)
            arrays.append(found.values if found else pa.nulls(rows, column.type.arrow))
        schema = arrow_schema(self.source.columns)
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def column(self, column: Column, cells: pa.Array, line_of: LineOf) -> CastColumn:
        if pa.types.is_dictionary(cells.type):
            cells = cells.dictionary_decode()
        self.check_size(column, cells, line_of)
        found = cast_cells(cells, column.type, self.source.markers)
        for row in found.invalid:
            self.add_problem(
                f"{cell_text(cells[row])} is not a valid {column.type}", line_of(row), column.name
            )
        self.check_markers(column, found, line_of)
        return found

    def check_size(self, column: Column, cells: pa.Array, line_of: LineOf) -> None:
        if not parquet_cells.is_bytes(cells.type):
            return
        too_long = pc.greater(pc.binary_length(cells), self.source.limits.cell)
        if pc.any(too_long).as_py():
            for row in true_indexes(too_long):
                limit = f"is longer than {self.source.limits.cell:,} bytes"
                self.add_problem(limit, line_of(row), column.name)

    def check_markers(self, column: Column, found: CastColumn, line_of: LineOf) -> None:
        """Refuse markers in cells that must have a value: the text could be an actual value."""
        name = column.name.lower()
        if found.unmodified is not None:
            is_refused = self.source.stage == "upsert" or name in self.source.identity_columns
            if is_refused or column.name in self.source.required:
                text = f"is the unmodified marker, not allowed in {self.source.stage} rows"
                for row in true_indexes(found.unmodified):
                    self.add_problem(text, line_of(row), column.name)
                return
        if column.name in self.source.required and found.values.null_count > len(found.invalid):
            for row in true_indexes(pc.is_null(found.values)):
                if row not in found.invalid:
                    self.add_problem("must not be NULL", line_of(row), column.name)

    def check_period(self, columns: Mapping[str, CastColumn], line_of: LineOf) -> None:
        """Refuse periods that `history_batch` refuses: landed, they would block later batches.

                      gap
        end before  |-----| start       more than one gap: refused; up to one: an empty period
        start >= open end               refused
        """
        if self.source.stage == "delete" or START not in columns:
            return
        starts = pc.cast(columns[START].values, pa.int64())
        found = {START: (pc.greater_equal(starts, CONVENTION.open_end), NOT_BEFORE_OPEN_END)}
        if END in columns and self.source.stage != "earliest_start":
            ends = pc.cast(columns[END].values, pa.int64())
            too_early = pc.less(ends, pc.subtract(starts, CONVENTION.gap))
            found[END] = (too_early, f"is more than one millisecond before {START}")
        for name, (mask, text) in found.items():
            if pc.any(mask).as_py():
                for row in true_indexes(mask):
                    self.add_problem(text, line_of(row), name)

    def add_problem(self, text: str, line: int, column: str) -> None:
        if len(self.problems) < MAX_REPORTED_PROBLEMS:
            self.problems.append(Problem(text, self.source.file.name, line, column))

    def unmodified(self, columns: dict[str, CastColumn], rows: int) -> pa.Array:
        """For update rows, the columns that are marked, or missing from the file or the request."""
        type_ = pa.list_(pa.string())
        if self.source.stage != "update":
            return pa.nulls(rows, type_)
        absent = [
            column.name
            for column in self.source.columns
            if column.name not in columns
            and column.name.lower() not in self.source.identity_columns
        ]
        absent += self.source.unlisted
        marked = {
            name: found.unmodified
            for name, found in columns.items()
            if found.unmodified is not None
        }
        if not marked:
            return pa.array([absent] * rows, type_)
        # There are few distinct patterns: build each list once and take it by index.
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


class PrefixedReader:
    """Reads bytes that were already consumed, then the rest."""

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
    """A cell for a message. Some have no Python value, such as a time after the year 9999."""
    try:
        return abbreviated(str(cell.as_py()))
    except (ValueError, OverflowError):
        return abbreviated(str(pc.cast(cell, pa.string())))


def true_indexes(mask: pa.Array) -> list[int]:
    """The indexes at which a mask is true, at most as many as are reported."""
    found: list[int] = pc.indices_nonzero(mask).slice(0, MAX_REPORTED_PROBLEMS).to_pylist()
    return found


def staged_rows(source: Source) -> Iterator[pa.RecordBatch]:
    """All rows of a file. Raises RefusedError at the first problem, without cell values in it."""
    reading = FileReader(source)
    for batch in reading.batches():
        yield batch
        if reading.problems:
            break
    if reading.problems:
        raise RefusedError(f"{source.file.name}: cannot be landed")


def checked(source: Source) -> FileReader:
    """Read a file completely to find its problems and count its rows."""
    reading = FileReader(source)
    for _ in reading.batches():
        pass
    return reading


def check_head(source: Source) -> list[Problem]:
    """Problems at the start of a file: key, compression, header."""
    reading = FileReader(source)
    try:
        with open_content(source.file, source.limits) as content:
            head = content.read(len(parquet_cells.MAGIC))
            if head != parquet_cells.MAGIC:
                for piece in csv_cells.pieces(PrefixedReader(head, content), source.limits):
                    reading.check_header(csv_cells.split_header(piece)[0])
                    return reading.problems
                raise FileError("is empty: it has no header")
    except FileError as error:
        reading.problems.append(Problem(reading.with_key_hint(str(error)), source.file.name))
    return reading.problems
