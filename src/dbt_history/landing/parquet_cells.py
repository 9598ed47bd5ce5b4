"""Reads Parquet files as record batches of a few MB, even if dictionaries expand much further."""

from __future__ import annotations

import io
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes

from dbt_history.landing.errors import FileError
from dbt_history.landing.files import CHUNK, RATIO_CHECKED_FROM, ByteStream, Limits, Readable

MAGIC = b"PAR1"
BATCH_ROWS = 4096
BATCH_BYTES = 8 << 20
BYTES = (
    pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view,
    pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view,
)  # fmt: skip


@contextmanager
def spooled(content: Readable) -> Iterator[IO[bytes]]:
    """Copy to an unnamed temporary file, because reading Parquet needs random access."""
    with SealedFile() as file:
        shutil.copyfileobj(ByteStream(content), file, CHUNK)
        file.seek(0)
        yield cast(IO[bytes], file)


class SealedFile(io.RawIOBase):
    """An unnamed temporary file, encrypted with a key that exists in memory only.

    The partner guide does not allow decrypted batches on disk. AES in counter mode can be decrypted
    from any position. Written once from the start, then read.
    """

    def __init__(self) -> None:
        self.disk = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - closed by close
        self.key = os.urandom(32)
        self.encryptor = self.cipher_at(0)

    def cipher_at(self, position: int) -> CipherContext:
        """The key stream from a position; the counter starts at 0 because a key is used once."""
        block, skipped = divmod(position, 16)
        cipher = Cipher(algorithms.AES(self.key), modes.CTR(block.to_bytes(16, "big")))
        stream = cipher.encryptor()
        stream.update(bytes(skipped))
        return stream

    def write(self, data: bytes) -> int:  # type: ignore[override]
        rest = memoryview(self.encryptor.update(data))
        while rest:
            rest = rest[self.disk.write(rest) :]
        return len(data)

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        stream = self.cipher_at(self.disk.tell())
        data = self.disk.read(len(buffer))
        buffer[: len(data)] = stream.update(data)
        return len(data)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self.disk.seek(offset, whence)

    def tell(self) -> int:
        return self.disk.tell()

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        self.disk.close()
        super().close()


@contextmanager
def open_parquet(file: IO[bytes]) -> Iterator[pyarrow.parquet.ParquetFile]:
    """Open a Parquet file; columns of text and bytes are read as dictionaries of string or binary.

    JSON, which is an extension in Arrow, is read as text. INT96 times are read in microseconds:
    nanoseconds only cover the years 1677 to 2262.
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
            arrow_extensions_enabled=False,
            page_checksum_verification=True,
        )
    with parquet:
        yield parquet


@contextmanager
def refused_if_damaged() -> Iterator[None]:
    """Turn any exception into FileError: damaged bytes can make pyarrow raise any class."""
    try:
        yield
    except Exception:
        raise FileError("is damaged or not a complete Parquet file") from None


def is_bytes(type_: pa.DataType) -> bool:
    """Whether cells are text or bytes of any length, in any of Arrow's layouts."""
    if isinstance(type_, pa.BaseExtensionType):
        return is_bytes(type_.storage_type)
    if pa.types.is_dictionary(type_):
        return is_bytes(type_.value_type)
    return any(test(type_) for test in BYTES)


def record_batches(
    parquet: pyarrow.parquet.ParquetFile, limits: Limits, stored: int
) -> Iterator[pa.RecordBatch]:
    """The rows, at most `BATCH_BYTES` at once. `stored`: size of the file, 0 if unknown."""
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
            # Otherwise Arrow accepts invalid UTF-8 and indexes outside a dictionary.
            batch.validate(full=True)
            expanded += expanded_size(batch)
        if expanded > limit:
            raise FileError(f"expands to more than {limit:,} bytes")
        rows += batch.num_rows
        yield from small_batches(batch)
    if rows != parquet.metadata.num_rows:
        raise FileError(f"is damaged: it has {rows:,} rows, not {parquet.metadata.num_rows:,}")


def small_batches(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Halve a batch until each part is small enough or a single row."""
    if batch.num_rows <= 1 or expanded_size(batch) <= BATCH_BYTES:
        yield batch
        return
    half = batch.num_rows // 2
    yield from small_batches(batch.slice(0, half))
    yield from small_batches(batch.slice(half))


def expanded_size(batch: pa.RecordBatch) -> int:
    """Size of the cells in bytes after dictionaries are expanded."""
    size = 0
    for column in batch.columns:
        if pa.types.is_dictionary(column.type):
            lengths = pc.take(pc.binary_length(column.dictionary), column.indices)
            size += pc.sum(pc.cast(lengths, pa.int64())).as_py() or 0
        else:
            size += column.nbytes
    return size
