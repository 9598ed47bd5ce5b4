"""Operations of the conformance cases on mirrors and events, as SQL on Delta tables."""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.tables import literal

ROOT = Path(__file__).parents[2]
METADATA = "spark.databricks.delta.commitInfo.userMetadata"
Case = dict[str, Any]


def read_json_cases(area: str) -> list[Case]:
    """All cases of an area from the project's copy, ordered by id."""
    folder = ROOT / "tests/conformance/cases" / area
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]


def cell(value: Any, type_: str) -> str:
    """A value of a case as SQL; times are UTC."""
    if type_ == "timestamp" and value is not None:
        return f"timestamp'{value} UTC'"
    return f"cast({literal(value)} as {type_})"


def value_of(cell: Any, type_: str) -> Any:
    """A cell of a case, a table or a report as the value that it is in the type; times are UTC."""
    kind = type_.split("(")[0]
    if cell is None:
        return None
    if kind == "boolean":
        return str(cell).lower() == "true"
    if kind in ("float", "double"):
        number = float(cell)
        return struct.unpack("f", struct.pack("f", number))[0] if kind == "float" else number
    if kind == "decimal":
        # Equal decimals get one text, too; 38 digits are all that Spark has.
        return Decimal(str(cell)).normalize(Context(prec=38))
    if kind == "date":
        return date.fromisoformat(str(cell)[:10])
    if kind in ("timestamp", "timestamp_ntz"):
        at = datetime.fromisoformat(str(cell))
        return at.astimezone(UTC).replace(tzinfo=None) if at.tzinfo else at
    return cell


class Tables:
    """The main tables of a case, in their own schema; commits are `pause` seconds apart."""

    def __init__(
        self, spark: SparkSession, schema: str, tables: Iterable[Mapping[str, Any]]
    ) -> None:
        self.spark = spark
        self.schema = schema
        self.types = {table["name"]: dict(table["columns"]) for table in tables}
        self.keys = {table["name"]: list(table["key"]) for table in tables}
        spark.sql(f"create schema if not exists {schema}")
        for table in tables:
            self._create(table)

    def _create(self, table: Mapping[str, Any]) -> None:
        columns = ", ".join(f"`{name}` {type_}" for name, type_ in table["columns"].items())
        properties = {
            "delta.enableChangeDataFeed": "true",
            "delta.enableInCommitTimestamps": "true",
        }
        if "column_mapping" in table.get("needs", []):
            properties["delta.columnMapping.mode"] = "name"
        if "row_tracking" in table.get("needs", []):
            properties["delta.enableRowTracking"] = "true"
        listed = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
        name = self.name(table["name"])
        self.spark.sql(f"create table {name} ({columns}) using delta tblproperties ({listed})")
        for number, check in enumerate(table.get("checks", [])):
            self.spark.sql(f"alter table {name} add constraint check_{number} check ({check})")

    def name(self, table: str) -> str:
        return f"{self.schema}.`{table}`"

    def rows_sql(self, table: str, rows: Iterable[Mapping[str, Any]]) -> str:
        types = self.types[table]
        lines = [
            "select " + ", ".join(f"{cell(row.get(n), t)} as `{n}`" for n, t in types.items())
            for row in rows
        ]
        return " union all ".join(lines)

    def condition(self, table: str, where: Mapping[str, Any]) -> str:
        terms = ["true"]
        for column, value in where.items():
            values = value if isinstance(value, list) else [value]
            cells = ", ".join(cell(item, self.types[table][column]) for item in values)
            terms.append(f"`{column}` in ({cells})")
        return " and ".join(terms)

    def sql(self, operation: Mapping[str, Any]) -> str:
        """An operation as one SQL statement."""
        table, op = operation["table"], operation["op"]
        name, types = self.name(table), self.types[table]
        if op == "insert":
            return f"insert into {name} {self.rows_sql(table, operation['rows'])}"
        if op == "update":
            pairs = []
            for column, value in operation["set"].items():
                sql = value["expr"] if isinstance(value, dict) else cell(value, types[column])
                pairs.append(f"`{column}` = {sql}")
            return (
                f"update {name} set {', '.join(pairs)}"
                f" where {self.condition(table, operation['where'])}"
            )
        if op == "delete":
            return f"delete from {name} where {self.condition(table, operation['where'])}"
        if op == "truncate":
            return f"truncate table {name}"
        if op == "upsert":
            return self._upsert(operation)
        if op == "add_column":
            types[operation["column"]] = operation["type"]
            return f"alter table {name} add columns (`{operation['column']}` {operation['type']})"
        if op == "drop_column":
            del types[operation["column"]]
            return f"alter table {name} drop column `{operation['column']}`"
        raise ValueError(f"no such operation: {op}")

    def _upsert(self, operation: Mapping[str, Any]) -> str:
        table = operation["table"]
        on = " and ".join(f"main.`{n}` <=> new.`{n}`" for n in self.keys[table])
        matched = "when matched then update set *" if operation["on_match"] == "update" else ""
        return (
            f"merge into {self.name(table)} as main"
            f" using ({self.rows_sql(table, operation['rows'])}) as new on {on}"
            f" {matched} when not matched then insert *"
        )

    def run(self, operation: Mapping[str, Any], metadata: str | None = None) -> None:
        """Run one operation; one marked `fails` must raise. Commit times increase strictly."""
        time.sleep(0.003)
        statement = self.sql(operation)
        if metadata is not None:
            self.spark.conf.set(METADATA, metadata)
        try:
            if operation.get("fails"):
                with pytest.raises(Exception, match=r"CHECK constraint|CONSTRAINT"):
                    self.spark.sql(statement)
            else:
                self.spark.sql(statement)
        finally:
            self.spark.conf.unset(METADATA)


def statements_of(case: Case, variant: Mapping[str, Any] | None) -> list[tuple[str, Any]]:
    """A case as steps: ('run', (transaction, number, operation)), ('mirror', None), ('suspend', …).

    In a variant the mirror runs after the named statements, and at the end.
    """
    steps: list[tuple[str, Any]] = []
    after = set(variant["mirror_after_statements"]) if variant is not None else None
    number = transaction = 0
    for step in case["steps"]:
        if "transaction" in step:
            transaction += 1
            for operation in step["transaction"]:
                number += 1
                steps.append(("run", (transaction, number, operation)))
                if after is not None and number in after:
                    steps.append(("mirror", None))
        elif "mirror" not in step or after is None:
            steps.append((next(iter(step)), None))
    return steps if after is None else [*steps, ("mirror", None)]
