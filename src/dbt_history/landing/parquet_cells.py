"""Parquet files as record batches, a few MB at once, however far a dictionary would expand."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from dbt_history.landing.errors import FileError
from dbt_history.landing.files import CHUNK, RATIO_CHECKED_FROM, ByteStream, Limits, Readable

MAGIC = b"PAR1"
BATCH_ROWS = 4096
BATCH_BYTES = 8 << 20


@contextmanager
def spooled(content: Readable) -> Iterator[IO[bytes]]:
    """Parquet is read from its end, so the plain bytes go to a file that has no name."""
    with tempfile.TemporaryFile() as file:
        shutil.copyfileobj(ByteStream(content), file, CHUNK)
        file.seek(0)
        yield file


@contextmanager
def open_parquet(file: IO[bytes]) -> Iterator[pyarrow.parquet.ParquetFile]:
    """A Parquet file whose texts stay in their dictionaries.

    An INT96 time is read in microseconds: nanoseconds do not reach beyond the years 1677 to 2262.
    """
    with refused_if_damaged():
        with pyarrow.parquet.ParquetFile(file) as parquet:
            fields = list(parquet.schema_arrow)
        texts = [field.name for field in fields if is_bytes(field.type)]
        file.seek(0)
        parquet = pyarrow.parquet.ParquetFile(
            file,
            read_dictionary=texts,
            pre_buffer=False,
            coerce_int96_timestamp_unit="us",
            page_checksum_verification=True,
        )
    with parquet:
        yield parquet


@contextmanager
def refused_if_damaged() -> Iterator[None]:
    """Around calls of pyarrow: what damaged bytes make it raise can be any exception."""
    try:
        yield
    except Exception:
        raise FileError("is damaged, or is no whole Parquet file") from None


def is_bytes(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_binary(type_))


def record_batches(
    parquet: pyarrow.parquet.ParquetFile, limits: Limits, stored: int
) -> Iterator[pa.RecordBatch]:
    """Its rows, no more than `BATCH_BYTES` at once. `stored`: size of the file, 0 if not known."""
    limit = min(
        limits.expanded,
        max(RATIO_CHECKED_FROM, limits.ratio * stored) if stored else limits.expanded,
    )
    expanded = rows = 0
    batches = parquet.iter_batches(batch_size=BATCH_ROWS)
    while True:
        with refused_if_damaged():
            batch = next(batches, None)
            if batch is None:
                break
            # Text that is no UTF-8, a place outside a dictionary: Arrow would read on.
            batch.validate(full=True)
            expanded += expanded_size(batch)
        if expanded > limit:
            raise FileError(f"expands to more than {limit:,} bytes")
        rows += batch.num_rows
        yield from small_batches(batch)
    if rows != parquet.metadata.num_rows:
        raise FileError(f"is damaged: it has {rows:,} rows, not {parquet.metadata.num_rows:,}")


def small_batches(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """A batch in halves, until each is small enough or a single row."""
    if batch.num_rows <= 1 or expanded_size(batch) <= BATCH_BYTES:
        yield batch
        return
    half = batch.num_rows // 2
    yield from small_batches(batch.slice(0, half))
    yield from small_batches(batch.slice(half))


def expanded_size(batch: pa.RecordBatch) -> int:
    """Bytes of the cells as they will be, each text written out."""
    size = 0
    for column in batch.columns:
        if pa.types.is_dictionary(column.type):
            lengths = pc.take(pc.binary_length(column.dictionary), column.indices)
            size += pc.sum(pc.cast(lengths, pa.int64())).as_py() or 0
        else:
            size += column.nbytes
    return size
