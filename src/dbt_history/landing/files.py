"""The bytes of a file: found safely, decrypted and decompressed in chunks, within limits."""

from __future__ import annotations

import hashlib
import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Protocol

import pyarrow as pa
from cryptography.hazmat.primitives import padding
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from dbt_history.landing.errors import FileError

CHUNK = 1 << 20
BLOCK = 16


@dataclass(frozen=True)
class Limits:
    """What a file may grow to. Sizes in bytes.

    `ratio` (expanded to stored) is checked from `RATIO_CHECKED_FROM` expanded bytes on: small files
    compress far.
    """

    expanded: int = 64 << 30
    ratio: int = 1000
    cell: int = 16 << 20
    row: int = 64 << 20


RATIO_CHECKED_FROM = 64 << 20


@dataclass(frozen=True)
class StoredFile:
    """A file as it lies on disk. `path` is below `root`, relative to it; `digest` is SHA-256."""

    name: str
    root: str
    path: str
    compression: str
    key: bytes | None = field(default=None, repr=False)
    digest: str = ""
    size: int = 0


class Readable(Protocol):
    def read(self, size: int) -> bytes: ...


def place_below(root: Path, name: str) -> str:
    """The path of a file below `root`, relative to it. Raises FileError for a path outside."""
    path = PurePosixPath(name)
    if path.is_absolute():
        try:
            path = path.relative_to(PurePosixPath(root.absolute()))
        except ValueError:
            raise FileError("lies outside the folder of the request") from None
    if ".." in path.parts or not path.parts:
        raise FileError("lies outside the folder of the request")
    return str(path)


@contextmanager
def open_below(root: str, path: str) -> Iterator[io.BufferedReader]:
    """Open a regular file below `root`; no part of the path may be a link.

    Folder after folder by descriptor, so that nobody can put a link there between look and use.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        *folders, last = PurePosixPath(path).parts
        for part in folders:
            inner = os.open(part, flags | os.O_DIRECTORY, dir_fd=folder)
            os.close(folder)
            folder = inner
        # Without O_NONBLOCK a named pipe would wait for a writer for ever.
        descriptor = os.open(last, flags | os.O_NONBLOCK, dir_fd=folder)
    except FileNotFoundError:
        raise FileError("is not there") from None
    except OSError as error:
        if is_link(root, path):
            raise FileError("is a symbolic link, or lies behind one") from None
        raise FileError(f"cannot be opened: {error.strerror}") from None
    finally:
        os.close(folder)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise FileError("is no regular file")
    with os.fdopen(descriptor, "rb") as file:
        yield file


def is_link(root: str, path: str) -> bool:
    parts = PurePosixPath(path).parts
    return any(Path(root, *parts[:count]).is_symlink() for count in range(1, len(parts) + 1))


def digest_of(root: str, path: str) -> tuple[str, int]:
    """SHA-256 and size of the bytes on disk."""
    with open_below(root, path) as file:
        digest = hashlib.file_digest(file, "sha256")
        return digest.hexdigest(), file.tell()


class Hashed:
    """Hands bytes on and takes their digest on the way."""

    def __init__(self, source: Readable) -> None:
        self.source = source
        self.digest = hashlib.sha256()

    def read(self, size: int) -> bytes:
        data = self.source.read(size)
        self.digest.update(data)
        return data


class Decrypted:
    """AES-256-CBC with PKCS padding; the first 16 bytes are the IV."""

    def __init__(self, source: Readable, key: bytes) -> None:
        self.source = source
        iv = source.read(BLOCK)
        if len(iv) < BLOCK:
            raise FileError("is cut: it is shorter than the IV")
        self.cipher = Cipher(algorithms.AES(key), modes.CBC(iv)).decryptor()
        self.padding = padding.PKCS7(BLOCK * 8).unpadder()
        self.pending = b""
        self.is_done = False

    def read(self, size: int) -> bytes:
        while not self.pending and not self.is_done:
            data = self.source.read(CHUNK)
            if data:
                self.pending = self.padding.update(self.cipher.update(data))
                continue
            self.is_done = True
            try:
                self.pending = self.padding.update(self.cipher.finalize()) + self.padding.finalize()
            except ValueError:
                raise FileError("cannot be decrypted: wrong key, or the file is cut") from None
        data, self.pending = self.pending[:size], self.pending[size:]
        return data


class ByteStream(io.RawIOBase):
    """What pyarrow needs to read from a `Readable`."""

    def __init__(self, source: Readable) -> None:
        self.source = source

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        return self.source.read(CHUNK if size < 0 else size)


class Decompressed:
    """gzip or zstd; never more than the asked size is expanded at once."""

    def __init__(self, source: Readable, method: str, hint: str) -> None:
        self.hint = hint
        self.stream = pa.CompressedInputStream(pa.PythonFile(ByteStream(source)), method.lower())

    def read(self, size: int) -> bytes:
        try:
            data: bytes = self.stream.read(size)
        except (OSError, pa.ArrowException):
            raise FileError(f"cannot be decompressed: {self.hint}") from None
        return data


class Limited:
    """Refuses a file that expands too far. `is_at_end`: there is nothing more to read."""

    def __init__(self, source: Readable, limits: Limits, stored: int) -> None:
        self.source = source
        self.limits = limits
        self.stored = stored
        self.expanded = 0
        self.is_at_end = False

    def read(self, size: int) -> bytes:
        data = self.source.read(size)
        self.is_at_end = not data
        self.expanded += len(data)
        if self.expanded > self.limits.expanded:
            raise FileError(f"expands to more than {self.limits.expanded:,} bytes")
        if self.expanded > max(RATIO_CHECKED_FROM, self.limits.ratio * self.stored):
            raise FileError(f"expands to more than {self.limits.ratio:,} times its size")
        return data


@contextmanager
def open_content(file: StoredFile, limits: Limits) -> Iterator[Readable]:
    """The content of a file: decrypted, decompressed, limited; checked against its digest."""
    with open_below(file.root, file.path) as raw:
        size = os.fstat(raw.fileno()).st_size
        hashed = Hashed(raw)
        source: Readable = hashed
        if file.key is not None:
            if size % BLOCK or size < 2 * BLOCK:
                raise FileError("is cut: an encrypted file is whole blocks of 16 bytes")
            source = Decrypted(source, file.key)
        if file.compression != "OFF":
            hint = "wrong key, " if file.key is not None else ""
            hint += f"not {file.compression}, or the file is cut"
            source = Decompressed(source, file.compression, hint)
        content = Limited(source, limits, size)
        yield content
        if file.digest and content.is_at_end:
            # Bytes after the end of a compressed stream belong to the digest, too.
            while hashed.read(CHUNK):
                pass
            if hashed.digest.hexdigest() != file.digest:
                raise FileError("changed while it was being landed")
