"""Reads a `WriteHistoryBatchRequest` in protobuf's JSON form; reports all problems at once."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dbt_history.conventions import FIVETRAN_ACTIVE, FIVETRAN_END, FIVETRAN_START
from dbt_history.landing.errors import Problem, RefusedError
from dbt_history.landing.types import (
    DEFAULT_DECIMAL,
    KNOWN,
    MAX_PRECISION,
    NAMES,
    ColumnType,
)

START, END, ACTIVE = FIVETRAN_START, FIVETRAN_END, FIVETRAN_ACTIVE
PERIOD = {
    START: ColumnType("UTC_DATETIME"),
    END: ColumnType("UTC_DATETIME"),
    ACTIVE: ColumnType("BOOLEAN"),
}
BOOKKEEPING = ("_stage", "_batch", "_order", "_unmodified")
RESERVED_BY_DELTA = ("_metadata", "_tmp_metadata_row_index")

# File lists in stage order. The contract uses replace, its guide also upsert.
STAGES = {
    "earliest_start_files": "earliest_start",
    "replace_files": "upsert",
    "upsert_files": "upsert",
    "update_files": "update",
    "delete_files": "delete",
}
# The fields of the messages: the request, a table, a column, its parameters and the files'.
FIELDS = {"schema_name", "table", "keys", "file_params", "configuration", *STAGES}
TABLE_FIELDS = {"name", "columns"}
# An older version of the contract has the numbers of a decimal next to the type.
COLUMN_FIELDS = {"name", "type", "primary_key", "params", "decimal"}
TYPE_FIELDS = {"decimal", "string_byte_length"}
DECIMAL_FIELDS = {"precision", "scale"}
FILE_FIELDS = {"compression", "encryption", "null_string", "unmodified_string"}
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
    """The texts for NULL and for an unmodified cell; None if the request defines none."""

    null: str | None
    unmodified: str | None


@dataclass(frozen=True)
class RequestFile:
    """A file of the request: its name and the stage of its rows."""

    name: str
    stage: str
    key: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Request:
    """A checked request. `key` is the record's key: the primary key without the start column.

    `has_period` is false for a table without history, which has no periods and earliest starts.
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
        """The request's content, without encryption keys and its location on disk."""
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
        # The text of a JSON error contains a position but no content.
        raise RefusedError(f"{path}: is not valid JSON: {error}") from None
    if not isinstance(document, dict):
        raise RefusedError(f"{path}: is not a request: expected a JSON object")
    return parse_request(document, str(path))


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name occurs twice in one object")
    return found


def parse_request(document: Mapping[str, Any], source: str, *, has_period: bool = True) -> Request:
    """The request in a parsed JSON document; `source` names it in messages."""
    reader = Reader({})
    reader.document = reader.fields(document, FIELDS)
    table = reader.fields(reader.object("table"), TABLE_FIELDS, "table.")
    key: list[str] = []
    columns = tuple(read_columns(reader, table, key))
    keys = read_keys(reader)
    params = reader.fields(reader.object("file_params"), FILE_FIELDS, "file_params.")
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
        key=tuple(name for name in key if name.lower() != START),
        files=tuple(read_files(reader, keys, encryption)),
        compression=compression,
        encryption=encryption,
        markers=markers,
        has_period=has_period,
    )
    reader.problems += [Problem(text) for text in inconsistencies(request)]
    if reader.problems:
        raise RefusedError(f"{source}: the request is invalid", reader.problems)
    return request


class Reader:
    """Reads values from the document and collects problems."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document = document
        self.problems: list[Problem] = []

    def problem(self, text: str) -> None:
        self.problems.append(Problem(text))

    def fields(
        self, values: Mapping[str, Any], known: Collection[str], path: str = "", where: str = ""
    ) -> dict[str, Any]:
        """The values by the names of their fields: `schemaName` and `schema_name` are one field.

        As protobuf's own reader, refuses other names, and a field in both spellings.
        """
        found: dict[str, Any] = {}
        for name, value in values.items():
            field_name = snake_case(name)
            if field_name in found:
                self.problem(f"{where}{path}{field_name} occurs in two spellings")
            elif field_name not in known:
                self.problem(f"{where}unknown field {path}{name}")
            found[field_name] = value
        return found

    def object(self, name: str) -> Mapping[str, Any]:
        value = self.document.get(name)
        if not isinstance(value, dict):
            self.problem(f"{name} is missing" if value is None else f"{name} is not an object")
            return {}
        return value

    def text(self, values: Mapping[str, Any], name: str, prefix: str = "") -> str:
        value = values.get(name)
        if not isinstance(value, str) or not value:
            self.problem(f"{prefix}{name} is missing or not a text")
            return ""
        return value

    def list(self, values: Mapping[str, Any], name: str) -> list[Any]:
        value = values.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            self.problem(f"{name} is not a list")
            return []
        return value


def snake_case(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


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
        reader.problem(f"file_params.{name} is not a text")
        return None
    # Protobuf encodes an unset field as an empty text.
    return value or None


def read_columns(reader: Reader, table: Mapping[str, Any], key: list[str]) -> Iterator[Column]:
    """The columns with a valid type; the names of the primary key are added to `key`."""
    seen: dict[str, str] = {}
    for place, value in enumerate(reader.list(table, "columns"), 1):
        if not isinstance(value, dict) or not isinstance(value.get("name"), str):
            reader.problem(f"table.columns: entry {place} has no name")
            continue
        name = value["name"]
        if not name or not name.isprintable():
            reader.problem(f"table.columns: entry {place} has an empty or unprintable name")
        elif name.lower() in (*BOOKKEEPING, *RESERVED_BY_DELTA):
            reader.problem(f"column {name}: this name is reserved for the landing table")
        elif name.lower() in seen:
            reader.problem(f"column {name} is listed twice (Spark ignores case)")
        seen[name.lower()] = name
        value = reader.fields(value, COLUMN_FIELDS, where=f"column {name}: ")
        if read_flag(reader, name, value):
            key.append(name)
        type_ = read_type(reader, name, value)
        if type_ is not None:
            yield Column(name, type_)


def read_flag(reader: Reader, name: str, value: Mapping[str, Any]) -> bool:
    """Whether a column is marked as part of the primary key."""
    flag = value.get("primary_key")
    if flag is not None and not isinstance(flag, bool):
        reader.problem(f"column {name}: primary_key is {flag!r}, not true or false")
    return flag is True


def read_type(reader: Reader, name: str, value: Mapping[str, Any]) -> ColumnType | None:
    type_name = value.get("type", "UNSPECIFIED")
    params = value.get("params")
    if isinstance(params, dict):
        reader.fields(params, TYPE_FIELDS, "params.", f"column {name}: ")
    elif params is not None:
        reader.problem(f"column {name}: params is not an object")
    if (
        isinstance(type_name, int)
        and not isinstance(type_name, bool)
        and 0 <= type_name < len(NAMES)
    ):
        type_name = NAMES[type_name]
    if type_name == "DECIMAL":
        return read_decimal(reader, name, value)
    if isinstance(type_name, str) and type_name in KNOWN:
        return ColumnType(type_name)
    reader.problem(f"column {name} has an unknown type: {type_name!r}")
    return None


def read_decimal(reader: Reader, name: str, value: Mapping[str, Any]) -> ColumnType | None:
    params = value.get("params")
    found = (params if isinstance(params, dict) else {}).get("decimal", value.get("decimal"))
    if found is None:
        return ColumnType("DECIMAL", *DEFAULT_DECIMAL)
    if isinstance(found, dict):
        found = reader.fields(found, DECIMAL_FIELDS, "decimal.", f"column {name}: ")
    numbers = [found.get("precision", 0), found.get("scale", 0)] if isinstance(found, dict) else []
    if all(type(number) is int for number in numbers) and numbers:
        precision, scale = numbers
        if 0 <= scale <= precision and 1 <= precision <= MAX_PRECISION:
            return ColumnType("DECIMAL", precision, scale)
    reader.problem(f"column {name}: precision 1 to {MAX_PRECISION} and scale 0 to precision")
    return None


def period_columns(reader: Reader, columns: tuple[Column, ...]) -> Iterator[Column]:
    """The period columns that the table does not list. Listed ones must have the right type."""
    listed = {column.name.lower(): column for column in columns}
    for name, type_ in PERIOD.items():
        if name not in listed:
            yield Column(name, type_)
        elif listed[name].type != type_:
            reader.problem(f"column {name} is {listed[name].type}, not {type_}")


def read_keys(reader: Reader) -> dict[str, bytes]:
    """The encryption key of each file. Messages name the file, never the key."""
    keys = reader.document.get("keys", {})
    if not isinstance(keys, dict):
        reader.problem("keys is not an object")
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
            reader.problems.append(Problem("its key is not 32 bytes in base64", file=name))
    return found


def read_files(reader: Reader, keys: Mapping[str, bytes], encryption: str) -> Iterator[RequestFile]:
    seen: set[str] = set()
    for field_name, stage in STAGES.items():
        for name in reader.list(reader.document, field_name):
            if not isinstance(name, str) or not name or "\0" in name:
                reader.problem(f"{field_name} contains an entry that is not a path")
                continue
            if name in seen:
                reader.problems.append(Problem("the request names it twice", file=name))
            seen.add(name)
            is_keyless = encryption == "AES" and name not in keys
            if is_keyless and name not in (reader.document.get("keys") or {}):
                reader.problems.append(Problem("has no key in keys", file=name))
            yield RequestFile(name, stage, keys.get(name) if encryption == "AES" else None)


def inconsistencies(request: Request) -> Iterator[str]:
    if not request.columns[len(PERIOD) if request.has_period else 0 :] and not request.key:
        yield "table.columns names no column"
    elif not request.key and not request.has_period:
        yield "no column is marked as primary_key"
    elif not request.key:
        yield "no column other than _fivetran_start is marked as primary_key"
    if request.markers.null is not None and request.markers.null == request.markers.unmodified:
        yield "null_string and unmodified_string are the same text"
    if not request.has_period and any(file.stage == "earliest_start" for file in request.files):
        yield "earliest_start_files are for tables in history mode"
