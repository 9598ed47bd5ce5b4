"""Reads CSV as the writer produces it: RFC 4180, UTF-8, doubled quotes, no escape character.

A file is read in pieces of whole rows. A line break ends a row if an even number of quotes precede
it. A row longer than a chunk extends its piece.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.csv

from dbt_history.landing.errors import FileError, Problem
from dbt_history.landing.files import CHUNK, Limits, Readable

# A quoted cell with doubled quotes inside; used to locate misplaced quotes for messages.
QUOTED = re.compile(rb'(?:^|(?<=[,\r\n]))"(?:[^"]++|"")*+"(?=[,\r\n]|$)')
QUOTE = ord('"')
SEPARATORS = np.frombuffer(b",\r\n", np.uint8)
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Piece:
    """Whole rows of a file; `line` is the line on which the first one starts, from 1."""

    data: bytes
    line: int


def pieces(content: Readable, limits: Limits) -> Iterator[Piece]:
    """Split the file into pieces of about one chunk; the last row may lack its line break."""
    rest, quotes, line = b"", 0, 1
    while data := content.read(CHUNK):
        end = end_of_rows(data, quotes)
        if end:
            piece = rest + data[:end]
            yield Piece(piece, line)
            line += piece.count(b"\n")
            rest, quotes = data[end:], data.count(b'"', end)
        else:
            rest, quotes = rest + data, quotes + data.count(b'"')
        if len(rest) > limits.row:
            raise FileError(f"line {line:,}: a row is longer than {limits.row:,} bytes")
    if quotes % 2:
        raise FileError(f"line {line:,}: a quote is not closed; the file is truncated or not CSV")
    if rest:
        yield Piece(rest, line)


def end_of_rows(data: bytes, before: int) -> int:
    """The position after the last line break outside quotes, 0 if there is none.

    `before` is the number of quotes between the start of the row and `data`.
    """
    quotes, end = before + data.count(b'"'), len(data)
    while (place := data.rfind(b"\n", 0, end)) >= 0:
        quotes -= data.count(b'"', place, end)
        if quotes % 2 == 0:
            return place + 1
        # All line breaks back to the previous quote are in the same cell.
        end = data.rfind(b'"', 0, place) + 1
    return 0


def split_header(piece: Piece) -> tuple[list[str], Piece]:
    """The names in the first row, and the rest of the piece. Raises FileError if it is not CSV."""
    data = piece.data.removeprefix(BYTE_ORDER_MARK)
    end = data.find(b"\n")
    while end >= 0 and data.count(b'"', 0, end) % 2:
        end = data.find(b"\n", end + 1)
    head = data if end < 0 else data[: end + 1]
    try:
        text = head.decode("utf-8")
    except UnicodeDecodeError:
        raise FileError("line 1: the header is not UTF-8") from None
    rows = list(csv.reader(io.StringIO(text, newline=""), strict=True)) if is_strict(head) else []
    if len(rows) != 1 or not rows[0]:
        raise FileError("line 1: no CSV header found")
    return rows[0], Piece(data[len(head) :], piece.line + head.count(b"\n"))


def is_strict(data: bytes) -> bool:
    """Whether every quote starts or ends a cell, or is doubled inside one.

    , " a b " , " c " " d " ,    0, 2, 4 open: after a separator, or after a closing one
      0     1   2   3 4   5      1, 3, 5 close: before a separator, or an opening one
    """
    if b'"' not in data:
        return True
    cells = np.frombuffer(data, np.uint8)
    quotes = np.flatnonzero(cells == QUOTE)
    if len(quotes) % 2:
        return False
    opening, closing = quotes[0::2], quotes[1::2]
    is_doubled = opening[1:] == closing[:-1] + 1
    begins = (opening == 0) | np.isin(cells[opening - 1], SEPARATORS)
    ends = (closing == len(cells) - 1) | np.isin(cells[(closing + 1) % len(cells)], SEPARATORS)
    begins[1:] |= is_doubled
    ends[:-1] |= is_doubled
    return bool(begins.all() and ends.all())


def read_cells(piece: Piece, width: int) -> pa.Table:
    """The rows of a piece as text columns named by index. Raises ArrowInvalid or ValueError."""
    names = [str(place) for place in range(width)]
    if not is_strict(piece.data):
        raise ValueError("a quote inside a cell")
    # Arrow removes one mark from the start, which would else be one of the first cell.
    data = BYTE_ORDER_MARK + piece.data
    return pyarrow.csv.read_csv(
        pa.BufferReader(data),
        pyarrow.csv.ReadOptions(column_names=names, use_threads=False, block_size=len(data) + 1),
        pyarrow.csv.ParseOptions(
            double_quote=True,
            escape_char=False,
            newlines_in_values=True,
            # With a single column, an empty line is a row with an empty cell.
            ignore_empty_lines=width > 1,
        ),
        pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
        ),
    )


def is_blank(piece: Piece, width: int) -> bool:
    return not piece.data if width == 1 else not piece.data.strip(b"\r\n")


def find_problems(piece: Piece, names: list[str], file: str) -> list[Problem]:
    """Find by line and column why a piece cannot be parsed; slow, used for the message only."""
    problems = []
    for line, row in rows_with_lines(piece, len(names)):
        if len(row) != len(names):
            text = f"the row has {len(row)} cells, the header {len(names)}"
            problems.append(Problem(text, file, line))
            continue
        for name, cell in zip(names, row):
            if any("\udc80" <= letter <= "\udcff" for letter in cell):
                problems.append(Problem("is not UTF-8", file, line, name))
    if not problems:
        problems.append(Problem(f"is not CSV: {misplaced_quote(piece)}", file, piece.line))
    return problems


def misplaced_quote(piece: Piece) -> str:
    rest = QUOTED.sub(lambda found: b"\n" * found[0].count(b"\n"), piece.data)
    place = rest.find(b'"')
    if place < 0:
        return "a row cannot be read"
    return f"line {piece.line + rest.count(chr(10).encode(), 0, place):,} has a quote inside a cell"


def rows_with_lines(piece: Piece, width: int) -> Iterator[tuple[int, list[str]]]:
    """Each row with its first line; bytes that are not UTF-8 become surrogates."""
    csv.field_size_limit(1 << 30)
    reader = csv.reader(io.StringIO(piece.data.decode("utf-8", "surrogateescape"), newline=""))
    line = piece.line
    for row in reader:
        if row or width == 1:
            yield line, row or [""]
        line = piece.line + reader.line_num
