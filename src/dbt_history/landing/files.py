"""Opens files below a root folder and decrypts and decompresses them in chunks, within limits."""

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
    """Limits on the expansion of a file. Sizes are in bytes.

    `ratio` (expanded to stored size) is checked only above `RATIO_CHECKED_FROM` expanded bytes,
    because small files can have very high ratios.
    """

    expanded: int = 64 << 30
    ratio: int = 1000
    cell: int = 16 << 20
    row: int = 64 << 20


RATIO_CHECKED_FROM = 64 << 20


@dataclass(frozen=True)
class StoredFile:
    """A file on disk. `path` is relative to `root`; `digest` is SHA-256."""

    name: str
    root: str
    path: str
    compression: str
    key: bytes | None = field(default=None, repr=False)
    digest: str = ""
    size: int = 0


class Readable(Protocol):
    def read(self, size: int) -> bytes: ...


def path_below(root: Path, name: str) -> str:
    """The path of a file relative to `root`. Raises FileError if it is outside `root`."""
    path = PurePosixPath(name)
    if path.is_absolute():
        # The writer may know the folder by a symbolic link, or by its real path.
        for folder in (root.absolute(), root.resolve()):
            if path.is_relative_to(folder):
                path = path.relative_to(folder)
                break
        else:
            raise FileError("is outside the folder of the request")
    if ".." in path.parts or not path.parts:
        raise FileError("is outside the folder of the request")
    return str(path)


@contextmanager
def open_below(root: str, path: str) -> Iterator[io.BufferedReader]:
    """Open a regular file below `root`; no part of the path may be a symbolic link.

    Opens one folder after the other by descriptor, so that no link can be inserted between the
    check and the use.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        *folders, last = PurePosixPath(path).parts
        for part in folders:
            inner = os.open(part, flags | os.O_DIRECTORY, dir_fd=folder)
            os.close(folder)
            folder = inner
        # Without O_NONBLOCK, opening a named pipe would block until a writer opens it.
        descriptor = os.open(last, flags | os.O_NONBLOCK, dir_fd=folder)
    except FileNotFoundError:
        raise FileError("does not exist") from None
    except OSError as error:
        if is_link(root, path):
            raise FileError("is a symbolic link or below one") from None
        raise FileError(f"cannot be opened: {error.strerror}") from None
    finally:
        os.close(folder)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise FileError("is not a regular file")
    with os.fdopen(descriptor, "rb") as file:
        yield file


def is_link(root: str, path: str) -> bool:
    parts = PurePosixPath(path).parts
    paths = (Path(root, *parts[:count]) for count in range(1, len(parts) + 1))
    # Path.is_symlink raises OSError, for example for a name that is too long.
    return any(os.path.islink(found) for found in paths)  # noqa: PTH114


def digest_of(root: str, path: str) -> tuple[str, int]:
    """SHA-256 and size of the bytes on disk."""
    with open_below(root, path) as file:
        digest = hashlib.file_digest(file, "sha256")
        return digest.hexdigest(), file.tell()


class HashingReader:
    """Computes the digest of the bytes it reads."""

    def __init__(self, source: Readable) -> None:
        self.source = source
        self.digest = hashlib.sha256()

    def read(self, size: int) -> bytes:
        data = self.source.read(size)
        self.digest.update(data)
        return data


class DecryptingReader:
    """Decrypts AES-256-CBC with PKCS padding; the first 16 bytes are the IV."""

    def __init__(self, source: Readable, key: bytes) -> None:
        self.source = source
        iv = source.read(BLOCK)
        if len(iv) < BLOCK:
            raise FileError("is truncated: it is shorter than the IV")
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
                raise FileError(
                    "cannot be decrypted: wrong key, or the file is truncated"
                ) from None
        data, self.pending = self.pending[:size], self.pending[size:]
        return data


class ByteStream(io.RawIOBase):
    """Adapts a `Readable` for pyarrow."""

    def __init__(self, source: Readable) -> None:
        self.source = source

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        return self.source.read(CHUNK if size < 0 else size)


class DecompressingReader:
    """Decompresses gzip or zstd; never expands more than the requested size at once."""

    def __init__(self, source: Readable, method: str, hint: str) -> None:
        self.hint = hint
        self.stream = pa.CompressedInputStream(pa.PythonFile(ByteStream(source)), method.lower())

    def read(self, size: int) -> bytes:
        try:
            data: bytes = self.stream.read(size)
        except (OSError, pa.ArrowException):
            raise FileError(f"cannot be decompressed: {self.hint}") from None
        return data


class LimitedReader:
    """Refuses a file that expands beyond the limits. `is_at_end`: all content was read."""

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
    """Open a file's content: decrypted, decompressed, limited, and checked against its digest."""
    with open_below(file.root, file.path) as raw:
        size = os.fstat(raw.fileno()).st_size
        hashed = HashingReader(raw)
        source: Readable = hashed
        if file.key is not None:
            if size % BLOCK or size < 2 * BLOCK:
                raise FileError("is truncated: its size is not a multiple of 16 bytes")
            source = DecryptingReader(source, file.key)
        if file.compression != "OFF":
            hint = "wrong key, " if file.key is not None else ""
            hint += f"not {file.compression}, or the file is truncated"
            source = DecompressingReader(source, file.compression, hint)
        content = LimitedReader(source, limits, size)
        yield content
        if file.digest and content.is_at_end:
            # The digest includes bytes after the end of a compressed stream.
            while hashed.read(CHUNK):
                pass
            if hashed.digest.hexdigest() != file.digest:
                raise FileError("changed while it was being landed")
