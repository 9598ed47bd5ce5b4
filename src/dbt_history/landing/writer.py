"""Write a `WriteHistoryBatchRequest` with its files, as a writer of history mode does.

Used by `dbt-history serve --check`, the example, the tests and the benchmarks.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
from cryptography.hazmat.primitives import padding
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

NULL = "null-m8yilkvPsNulehxl2G6pmSQ3G3WWdLP"
UNMODIFIED = "unmod-NcK9NIjPUutCsz4mjOQQztbnwnE1sY3"
NEEDS_QUOTES = re.compile('[",\r\n]')
LISTS = {
    "earliest_start": "earliest_start_files",
    "upsert": "replace_files",
    "update": "update_files",
    "delete": "delete_files",
}


def csv_text(header: Sequence[str], rows: Sequence[Sequence[str]]) -> bytes:
    """Rows of text as CSV: quoted where needed, quotes doubled, LF at the end of each row."""
    lines = (",".join(map(csv_cell, row)) + "\n" for row in (header, *rows))
    return "".join(lines).encode()


def csv_cell(cell: str) -> str:
    # Python's csv.writer does not quote a CR.
    return '"' + cell.replace('"', '""') + '"' if NEEDS_QUOTES.search(cell) else cell


def parquet(header: Sequence[str], rows: Sequence[Sequence[str]]) -> bytes:
    """Text columns, as the writer uses for columns that can contain markers."""
    sink = pa.BufferOutputStream()
    cells = {name: [row[index] for row in rows] for index, name in enumerate(header)}
    pyarrow.parquet.write_table(pa.table(cells), sink)
    return bytes(sink.getvalue().to_pybytes())


def compress(data: bytes, compression: str) -> bytes:
    """`compression`: OFF, ZSTD or GZIP."""
    if compression == "OFF":
        return data
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, compression.lower()) as out:
        out.write(data)
    return bytes(sink.getvalue().to_pybytes())


def encrypt(data: bytes, key: bytes, iv: bytes) -> bytes:
    """The IV, followed by the data in AES-256-CBC with PKCS padding."""
    padder = padding.PKCS7(128).padder()
    cipher = Cipher(algorithms.AES(key), modes.CBC(iv)).encryptor()
    padded = padder.update(data) + padder.finalize()
    return iv + cipher.update(padded) + cipher.finalize()


@dataclass
class RequestWriter:
    """Collects the files of one request in `folder`; `columns` maps a name to its SDK type."""

    folder: Path
    columns: Mapping[str, Any]
    key: Sequence[str] = ("id",)
    schema: str = "shop"
    table: str = "items"
    compression: str = "OFF"
    is_encrypted: bool = False
    null: str | None = NULL
    unmodified: str | None = UNMODIFIED
    keys: dict[str, bytes] = field(default_factory=dict)
    files: dict[str, list[str]] = field(default_factory=dict)

    def add_csv(
        self, stage: str, name: str, header: Sequence[str], rows: Sequence[Sequence[str]]
    ) -> Path:
        """Add a CSV file of text cells, compressed and encrypted as the request specifies."""
        return self.add(stage, name, csv_text(header, rows))

    def add(self, stage: str, name: str, data: bytes, key: bytes | None = None) -> Path:
        """Add a file by its plain content. `key`: 32 bytes, chosen at random if not given."""
        data = compress(data, self.compression)
        if self.is_encrypted:
            key = key or os.urandom(32)
            # Deterministic for a given key; real writers use a random IV for every file.
            data = encrypt(data, key, key[:16])
            self.keys[name] = key
        self.files.setdefault(LISTS[stage], []).append(name)
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def document(self) -> dict[str, Any]:
        """The request in protobuf's JSON form."""
        columns = [self.column(name, type_) for name, type_ in self.columns.items()]
        return {
            "schemaName": self.schema,
            "table": {"name": self.table, "columns": columns},
            "keys": {name: base64.b64encode(key).decode() for name, key in self.keys.items()},
            **self.files,
            "fileParams": {
                "compression": self.compression,
                "encryption": "AES" if self.is_encrypted else "NONE",
                "nullString": self.null or "",
                "unmodifiedString": self.unmodified or "",
            },
        }

    def column(self, name: str, type_: Any) -> dict[str, Any]:
        """`type_`: a name, or (DECIMAL, precision, scale)."""
        is_key = name in self.key or name == "_fivetran_start"
        column: dict[str, Any] = {"name": name, "type": type_}
        if not isinstance(type_, str):
            column["type"], precision, scale = type_
            column["params"] = {"decimal": {"precision": precision, "scale": scale}}
        return {**column, "primaryKey": True} if is_key else column

    def write(self, name: str = "request.json") -> Path:
        """Write the request itself."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self.document(), indent=1))
        return path
