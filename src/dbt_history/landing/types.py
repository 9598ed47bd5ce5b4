"""The types of the partner SDK with their Arrow and Spark types."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

# In the order of the contract's enum; JSON may contain the number instead of the name.
NAMES = (
    "UNSPECIFIED", "BOOLEAN", "SHORT", "INT", "LONG", "DECIMAL", "FLOAT", "DOUBLE", "NAIVE_DATE",
    "NAIVE_DATETIME", "UTC_DATETIME", "BINARY", "XML", "STRING", "JSON", "NAIVE_TIME",
)  # fmt: skip

MAX_PRECISION = 38
DEFAULT_DECIMAL = (38, 10)

# NAIVE_TIME is stored as text because Spark has no time-of-day type.
KNOWN: dict[str, tuple[Callable[[], pa.DataType], str]] = {
    "BOOLEAN": (pa.bool_, "boolean"),
    "SHORT": (pa.int16, "smallint"),
    "INT": (pa.int32, "int"),
    "LONG": (pa.int64, "bigint"),
    "FLOAT": (pa.float32, "float"),
    "DOUBLE": (pa.float64, "double"),
    "NAIVE_DATE": (pa.date32, "date"),
    "NAIVE_TIME": (pa.string, "string"),
    "NAIVE_DATETIME": (lambda: pa.timestamp("us"), "timestamp_ntz"),
    "UTC_DATETIME": (lambda: pa.timestamp("us", "UTC"), "timestamp"),
    "BINARY": (pa.binary, "binary"),
    "XML": (pa.string, "string"),
    "STRING": (pa.string, "string"),
    "JSON": (pa.string, "string"),
}


@dataclass(frozen=True)
class ColumnType:
    """A type of the contract; `precision` and `scale` apply to DECIMAL only."""

    name: str
    precision: int = 0
    scale: int = 0

    @property
    def arrow(self) -> pa.DataType:
        if self.name == "DECIMAL":
            return pa.decimal128(self.precision, self.scale)
        return KNOWN[self.name][0]()

    @property
    def spark(self) -> str:
        if self.name == "DECIMAL":
            return f"decimal({self.precision},{self.scale})"
        return KNOWN[self.name][1]

    def __str__(self) -> str:
        decimal = f"({self.precision}, {self.scale})" if self.name == "DECIMAL" else ""
        return self.name + decimal
