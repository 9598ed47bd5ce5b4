"""A `WriteHistoryBatchRequest` in protobuf's JSON form: read, and all problems told at once."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dbt_history.landing.errors import Problem, RefusedError
from dbt_history.landing.types import (
    DEFAULT_DECIMAL,
    GREATEST_PRECISION,
    KNOWN,
    NAMES,
    ColumnType,
)

START, END, ACTIVE = "_fivetran_start", "_fivetran_end", "_fivetran_active"
PERIOD = {
    START: ColumnType("UTC_DATETIME"),
    END: ColumnType("UTC_DATETIME"),
    ACTIVE: ColumnType("BOOLEAN"),
}
BOOKKEEPING = ("_stage", "_batch", "_order", "_unmodified")
KEPT_BY_DELTA = ("_metadata", "_tmp_metadata_row_index")

# The lists of files in the order of the stages; the contract says replace, its guide also upsert.
STAGES = {
    "earliest_start_files": "earliest_start",
    "replace_files": "upsert",
    "upsert_files": "upsert",
    "update_files": "update",
    "delete_files": "delete",
}
FIELDS = {"schema_name", "table", "keys", "file_params", "configuration", *STAGES}
COMPRESSIONS = ("OFF", "ZSTD", "GZIP")
ENCRYPTIONS = ("NONE", "AES")
KEY_BYTES = 32


@dataclass(frozen=True)
class Column:
    """A column of the target table."""

    name: str
    type: ColumnType


@dataclass(frozen=True)
class Markers:
    """The texts that stand for NULL and for "keeps its value"; None: the request has none."""

    null: str | None
    unmodified: str | None


@dataclass(frozen=True)
class RequestFile:
    """A file of the request: its name there, and what its rows do."""

    name: str
    stage: str
    key: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Request:
    """What a request says. `key` is the record's key: the primary key without the start column.

    `has_period` is false for a batch of a table without history: no periods, no earliest starts.
    """

    source: str
    schema: str
    table: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    files: tuple[RequestFile, ...]
    compression: str
    encryption: str
    markers: Markers
    has_period: bool = True

    def describe(self) -> dict[str, Any]:
        """What makes this request the one it is, without its keys and its place on disk."""
        return {
            "schema": self.schema,
            "table": self.table,
            "columns": [[column.name, str(column.type)] for column in self.columns],
            "key": list(self.key),
            "compression": self.compression,
            "encryption": self.encryption,
            "markers": [self.markers.null, self.markers.unmodified],
        }


def read_request(path: Path) -> Request:
    """Read and check a request. Raises RefusedError with every problem found."""
    try:
        document = json.loads(path.read_bytes(), object_pairs_hook=unique_keys)
    except OSError as error:
        raise RefusedError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        # The text of a JSON error holds a position and no content.
        raise RefusedError(f"{path}: is no JSON request: {error}") from None
    if not isinstance(document, dict):
        raise RefusedError(f"{path}: is no request: a JSON object is expected")
    return parse_request(document, str(path))


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice in one object")
    return found


def parse_request(document: Mapping[str, Any], source: str, *, has_period: bool = True) -> Request:
    """The request in a parsed JSON document; `source` names it in messages."""
    reader = Reader(snake_case(document))
    table = reader.object("table")
    columns = tuple(read_columns(reader, table))
    keys = read_keys(reader)
    params = snake_case(reader.object("file_params"))
    compression = read_choice(reader, params, "compression", COMPRESSIONS)
    encryption = read_choice(reader, params, "encryption", ENCRYPTIONS)
    markers = Markers(
        read_marker(reader, params, "null_string"),
        read_marker(reader, params, "unmodified_string"),
    )
    request = Request(
        source=source,
        schema=reader.text(reader.document, "schema_name"),
        table=reader.text(table, "name", "table."),
        columns=columns + tuple(period_columns(reader, columns) if has_period else ()),
        key=tuple(name for name in primary_key(table) if name.lower() != START),
        files=tuple(read_files(reader, keys, encryption)),
        compression=compression,
        encryption=encryption,
        markers=markers,
        has_period=has_period,
    )
    for name in sorted(set(reader.document) - FIELDS):
        reader.problem(f"there is no field {name} in a request")
    reader.problems += [Problem(text) for text in contradictions(request)]
    if reader.problems:
        raise RefusedError(f"{source}: the request is not right", reader.problems)
    return request


class Reader:
    """Takes values out of the document and keeps what is wrong with them."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document = document
        self.problems: list[Problem] = []

    def problem(self, text: str) -> None:
        self.problems.append(Problem(text))

    def object(self, name: str) -> Mapping[str, Any]:
        value = self.document.get(name)
        if not isinstance(value, dict):
            self.problem(f"{name} is missing" if value is None else f"{name} is no object")
            return {}
        return value

    def text(self, values: Mapping[str, Any], name: str, prefix: str = "") -> str:
        value = values.get(name)
        if not isinstance(value, str) or not value:
            self.problem(f"{prefix}{name} is missing, or no text")
            return ""
        return value

    def list(self, values: Mapping[str, Any], name: str) -> list[Any]:
        value = values.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            self.problem(f"{name} is no list")
            return []
        return value


def snake_case(values: Mapping[str, Any]) -> dict[str, Any]:
    """Protobuf writes `schemaName` and reads `schema_name` too."""

    def snake(name: str) -> str:
        return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)

    return {snake(name): value for name, value in values.items()}


def read_choice(
    reader: Reader, params: Mapping[str, Any], name: str, choices: tuple[str, ...]
) -> str:
    value = params.get(name, choices[0])
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(choices):
        return choices[value]
    if isinstance(value, str) and value.upper() in choices:
        return value.upper()
    reader.problem(f"file_params.{name} is {value!r}, not one of {', '.join(choices)}")
    return choices[0]


def read_marker(reader: Reader, params: Mapping[str, Any], name: str) -> str | None:
    value = params.get(name)
    if value is not None and not isinstance(value, str):
        reader.problem(f"file_params.{name} is no text")
        return None
    # An empty text is how protobuf says that the field is not set.
    return value or None


def read_columns(reader: Reader, table: Mapping[str, Any]) -> Iterator[Column]:
    seen: dict[str, str] = {}
    for place, value in enumerate(reader.list(table, "columns"), 1):
        if not isinstance(value, dict) or not isinstance(value.get("name"), str):
            reader.problem(f"table.columns: entry {place} has no name")
            continue
        name = value["name"]
        if not name or not name.isprintable():
            reader.problem(f"table.columns: entry {place} has an empty or unprintable name")
        elif name.lower() in (*BOOKKEEPING, *KEPT_BY_DELTA):
            reader.problem(f"column {name}: this name is kept for the landing table's own use")
        elif name.lower() in seen:
            reader.problem(f"column {name} stands twice (Spark compares names without case)")
        seen[name.lower()] = name
        type_ = read_type(reader, name, snake_case(value))
        if type_ is not None:
            yield Column(name, type_)


def read_type(reader: Reader, name: str, value: Mapping[str, Any]) -> ColumnType | None:
    said = value.get("type", "UNSPECIFIED")
    if isinstance(said, int) and not isinstance(said, bool) and 0 <= said < len(NAMES):
        said = NAMES[said]
    if said == "DECIMAL":
        return read_decimal(reader, name, value)
    if isinstance(said, str) and said in KNOWN:
        return ColumnType(said)
    reader.problem(f"column {name} has no type that is known: {said!r}")
    return None


def read_decimal(reader: Reader, name: str, value: Mapping[str, Any]) -> ColumnType | None:
    params = value.get("params") if isinstance(value.get("params"), dict) else {}
    # An older form of the contract has the two numbers beside the type.
    found = (params or {}).get("decimal", value.get("decimal"))
    if found is None:
        return ColumnType("DECIMAL", *DEFAULT_DECIMAL)
    numbers = [found.get("precision", 0), found.get("scale", 0)] if isinstance(found, dict) else []
    if all(type(number) is int for number in numbers) and numbers:
        precision, scale = numbers
        if 0 <= scale <= precision and 1 <= precision <= GREATEST_PRECISION:
            return ColumnType("DECIMAL", precision, scale)
    reader.problem(f"column {name}: precision 1 to {GREATEST_PRECISION} and scale 0 to precision")
    return None


def period_columns(reader: Reader, columns: tuple[Column, ...]) -> Iterator[Column]:
    """The columns of the period that the table does not list; those it lists have its types."""
    listed = {column.name.lower(): column for column in columns}
    for name, type_ in PERIOD.items():
        if name not in listed:
            yield Column(name, type_)
        elif listed[name].type != type_:
            reader.problem(f"column {name} is {listed[name].type}, not {type_}")


def primary_key(table: Mapping[str, Any]) -> Iterator[str]:
    columns = table.get("columns")
    for value in columns if isinstance(columns, list) else []:
        if isinstance(value, dict) and snake_case(value).get("primary_key") is True:
            yield str(value.get("name"))


def read_keys(reader: Reader) -> dict[str, bytes]:
    """The key of each file; a message names the file and never the key."""
    keys = reader.document.get("keys", {})
    if not isinstance(keys, dict):
        reader.problem("keys is no object")
        return {}
    found = {}
    for name, text in keys.items():
        try:
            key = base64.b64decode(text, validate=True) if isinstance(text, str) else b""
        except (binascii.Error, ValueError):
            key = b""
        if len(key) == KEY_BYTES:
            found[name] = key
        else:
            reader.problems.append(Problem("its key is not base64 of 32 bytes", file=name))
    return found


def read_files(reader: Reader, keys: Mapping[str, bytes], encryption: str) -> Iterator[RequestFile]:
    seen: set[str] = set()
    for field_name, stage in STAGES.items():
        for name in reader.list(reader.document, field_name):
            if not isinstance(name, str) or not name or "\0" in name:
                reader.problem(f"{field_name} names a file that is no path")
                continue
            if name in seen:
                reader.problems.append(Problem("the request names it twice", file=name))
            seen.add(name)
            is_keyless = encryption == "AES" and name not in keys
            if is_keyless and name not in (reader.document.get("keys") or {}):
                reader.problems.append(Problem("there is no key for it in keys", file=name))
            yield RequestFile(name, stage, keys.get(name) if encryption == "AES" else None)


def contradictions(request: Request) -> Iterator[str]:
    if not request.columns[len(PERIOD) if request.has_period else 0 :] and not request.key:
        yield "table.columns names no column"
    elif not request.key and not request.has_period:
        yield "no column is marked as primary_key"
    elif not request.key:
        yield "no column beside _fivetran_start is marked as primary_key"
    if request.markers.null is not None and request.markers.null == request.markers.unmodified:
        yield "null_string and unmodified_string are the same text"
    if not request.has_period and any(file.stage == "earliest_start" for file in request.files):
        yield "earliest_start_files are for tables in history mode"
