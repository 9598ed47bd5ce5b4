"""The landing table: a Delta table whose commits record the requests that were landed."""

from __future__ import annotations

import json
import logging
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType, DecimalType, StructType

from dbt_history.commit_log import (
    CommitLogs,
    Entry,
    batch_number,
    is_conflict,
    read_log,
    read_record,
    restored_version,
    with_undone,
)
from dbt_history.landing.errors import BusyError, Problem, RefusedError
from dbt_history.landing.request import Column
from dbt_history.sql import quoted as quoted
from dbt_history.sql import string_literal as string_literal

BOOKKEEPING_TYPES = {
    "_batch": "bigint",
    "_stage": "string",
    "_order": "bigint",
    "_unmodified": "array<string>",
}
# A landed request is recognized as long as its commit is in the log.
RETENTION = "delta.logRetentionDuration"
LOG_RETENTION = "interval 90 days"
# Property: the last batch whose landed rows lost a column.
EMPTIED = "dbt_history.emptied_until"
TABLE_NAME = re.compile("[A-Za-z0-9_]+")
NOT_IN_PARQUET = set(" ,;{}()\n\t=")
# Type changes that Delta applies without rewriting rows.
WIDENINGS = {
    "smallint": ("int", "bigint"),
    "int": ("bigint",),
    "float": ("double",),
}
# Error classes for existing files in the location of a new table.
EXISTING_FILES = ("DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION", "LOCATION_ALREADY_EXISTS")
# Error class for a table in the catalog whose files are gone.
FILES_GONE = "DELTA_PATH_DOES_NOT_EXIST"
# Property: the table's name in the catalog since it was renamed; empty once it was dropped.
CATALOG_NAME = "dbt_history.catalog_name"
# Property: the name that it had before.
FORMER_NAME = "dbt_history.former_name"
# What Spark shows instead of a property whose name or value matches its redaction patterns.
MASKED = "*********(redacted)"
FIRST_NUMBER = (
    "its numbers begin at 1 without --batch: a history that has taken batches of another landing"
    " table takes only numbers above its last one"
)
ICEBERG_PACKAGE = "org.apache.iceberg."

log = logging.getLogger("dbt_history.landing")


def refuse_iceberg(spark: SparkSession) -> None:
    """Raises RefusedError if the current catalog creates Iceberg tables: landing needs Delta."""
    catalog = spark.catalog.currentCatalog()
    kind = spark.conf.get(f"spark.sql.catalog.{catalog}", None)
    if kind and kind.startswith(ICEBERG_PACKAGE):
        raise RefusedError(
            f"the catalog {catalog} creates Iceberg tables, and Delta tables are required;"
            " nothing was written. Start it with spark.sql.defaultCatalog=spark_catalog"
        )


@dataclass(frozen=True)
class LandedRecord:
    """A request in the table's log. `is_present` is false if its rows were undone later.

    `key` is empty in records of earlier versions of this package.
    """

    request: str
    batch: int
    landing: str
    table_id: str
    is_present: bool
    key: tuple[str, ...] = ()


def staged_types(columns: Iterable[Column]) -> dict[str, str]:
    """The landing table's columns and their Spark types."""
    return BOOKKEEPING_TYPES | {column.name: column.type.spark for column in columns}


def staged_schema(columns: Iterable[Column]) -> StructType:
    schema = StructType()
    for name, type_ in staged_types(columns).items():
        schema.add(name, DataType.fromDDL(type_))
    return schema


@dataclass(frozen=True)
class CatalogTable:
    """A table that may not exist yet. A long process passes the `logs` that it has read.

    Raises RefusedError for an invalid name.
    """

    spark: SparkSession
    schema: str
    name: str
    logs: CommitLogs = field(default_factory=CommitLogs, compare=False)
    way_out_of_name: ClassVar[str] = ""

    def __post_init__(self) -> None:
        for name in (self.schema, self.name):
            if not TABLE_NAME.fullmatch(name):
                raise RefusedError(
                    f"{name!r} is not a valid name: use only letters, digits and _"
                    f"{self.way_out_of_name}"
                )

    @property
    def full_name(self) -> str:
        return f"{quoted(self.schema)}.{quoted(self.name)}"

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"

    def properties(self) -> dict[str, str]:
        """The properties of the table, also those that Spark masks (a column `token_id` in them).

        DESCRIBE DETAIL does not mask, and is slower (decision 134).
        """
        rows = self.spark.sql(f"show tblproperties {self.full_name}").collect()
        found: dict[str, str] = {row[0]: row[1] for row in rows}
        if MASKED in found.values():
            detail = self.spark.sql(f"describe detail {self.full_name}").collect()[0]
            found |= detail["properties"]
        return found

    def details(self) -> dict[str, str]:
        """What the catalog knows of the table, such as `Provider` and `Type`."""
        rows = self.spark.sql(f"describe extended {self.full_name}").collect()
        return {row[0]: row[1] for row in rows}

    def drop(self) -> None:
        """Drop the table, if it exists; files that stay are not registered again."""
        register_files(self.spark, self.schema, self.name)
        self.set_catalog_name("")
        self.spark.sql(f"drop table if exists {self.full_name}")

    def rename(self, to: CatalogTable) -> None:
        """Rename the table; files that stay in its folder are not registered with the old name.

        A kill may leave the old name in the catalog after the files were moved; a repeat completes
        the rename. Raises RefusedError if the new folder is in use.

                     killed                    repeated
        catalog   a  |  a                      b
        folder    a  |  b, with CATALOG_NAME   b
        """
        if self.has_lost_files():
            if not register_files(self.spark, to.schema, to.name):
                raise RefusedError(f"{self} is in the catalog, and its files are gone")
            self.spark.sql(f"drop table {self.full_name}")
            return
        if self.details().get("Type") == "MANAGED":
            to.free_folder()
        former = {FORMER_NAME: catalog_name(self.schema, self.name)}
        self.set_catalog_name(catalog_name(to.schema, to.name), former)
        self.spark.sql(f"alter table {self.full_name} rename to {to.full_name}")

    def is_renamed(self, former: CatalogTable) -> bool:
        """Whether `rename` gave the table its name, and it had that of `former` before.

        A rename by an earlier version of this package has not recorded that one.
        """
        before, now = (catalog_name(table.schema, table.name) for table in (former, self))
        properties = self.properties()
        is_named = properties.get(CATALOG_NAME) == now
        return is_named and properties.get(FORMER_NAME, before) == before

    def has_lost_files(self) -> bool:
        """Whether the table is in the catalog and its files are gone."""
        try:
            self.spark.catalog.tableExists(self.full_name)
        except AnalysisException as error:
            if error.getCondition() != FILES_GONE:
                raise
            return True
        return False

    def free_folder(self) -> None:
        """Move files that block the folder of a new table to another folder, where they are kept.

        Only for a name that is not in the catalog and that `register_files` does not find. Raises
        RefusedError if the files are those of a table that has another name now.
        """
        jvm: Any = getattr(self.spark, "_jvm", None)
        if jvm is None:
            # On Spark Connect the statement of the new table fails instead.
            return
        location = default_location(self.spark, self.schema, self.name)
        path, java = jvm.org.apache.hadoop.fs.Path(location), self.spark._jsparkSession
        files = path.getFileSystem(java.sessionState().newHadoopConf())
        if not files.exists(path):
            return
        owner = (folder_properties(self.spark, location) or {}).get(CATALOG_NAME)
        if owner and self.spark.catalog.tableExists(owner):
            raise RefusedError(
                f"the folder of {self} contains the table {owner}; nothing was changed. Copy it"
                f" first: create table … as select * from {owner}; drop table {owner}"
            )
        beside = f"{location}__{uuid.uuid4().hex[:8]}"
        log.warning("%s: moves leftover files of its folder to %s", self, beside)
        if not files.rename(path, jvm.org.apache.hadoop.fs.Path(beside)):
            raise OSError(f"{location} cannot be moved to {beside}")
        jvm.org.apache.spark.sql.delta.DeltaLog.invalidateCache(java, path)

    def set_catalog_name(self, value: str, more: Mapping[str, str] | None = None) -> None:
        """Set `CATALOG_NAME`, unless the table or its files are gone; `more`: other properties."""
        listed = property_list({CATALOG_NAME: value, **(more or {})})
        try:
            if self.spark.catalog.tableExists(self.full_name):
                self.spark.sql(f"alter table {self.full_name} set tblproperties ({listed})")
        except AnalysisException as error:
            if error.getCondition() != FILES_GONE:
                raise


@dataclass(frozen=True)
class LandingTable(CatalogTable):
    """A landing table, which may not exist yet."""

    way_out_of_name: ClassVar[str] = "; give another one (--schema, --table)"

    def exists(self) -> bool:
        return self.spark.catalog.tableExists(self.full_name)

    def drop(self) -> None:
        """Drop the table, if it exists. Raises RefusedError for a table that is not of landing."""
        if not self.has_lost_files() and self.exists():
            names = {name.lower() for name in self.spark.table(self.full_name).columns}
            if lacking := [name for name in BOOKKEEPING_TYPES if name not in names]:
                raise RefusedError(
                    f"{self} exists and is not a landing table: missing {', '.join(lacking)};"
                    " nothing was changed. Rename it: its name is used for the landed rows"
                )
        super().drop()

    def check(self, columns: Iterable[Column]) -> dict[str, str]:
        """The missing columns and their types. Raises RefusedError if the rows do not fit."""
        if not self.exists():
            return {}
        if (self.details().get("Provider") or "").lower() != "delta":
            raise RefusedError(f"{self} exists and is not a Delta table")
        there = {field.name.lower(): field for field in self.spark.table(self.full_name).schema}
        missing, problems = {}, []
        for name, type_ in staged_types(columns).items():
            field = there.get(name.lower())
            if field is None:
                missing[name] = type_
            elif field.dataType.simpleString() != type_:
                before = field.dataType.simpleString()
                got = f"is {type_} in the request, {before} in {self}"
                way_out = self.widening(field.name, type_) if is_wider(before, type_) else ""
                problems.append(Problem(got + way_out, column=name))
        lacking = [name for name in missing if name in BOOKKEEPING_TYPES]
        if lacking:
            problems.append(Problem(f"{self} is not a landing table: missing {', '.join(lacking)}"))
        if problems:
            raise RefusedError(f"the rows do not fit {self}", problems)
        return missing

    def widening(self, name: str, type_: str) -> str:
        """The statements that give a column a wider type, as the way out of a message."""
        table = f"alter table {self.full_name}"
        return (
            ". To widen it there, and in the history that reads it with the same statements:"
            f" {table} set tblproperties ('delta.enableTypeWidening' = 'true');"
            f" {table} alter column {quoted(name)} type {type_}"
        )

    def prepare(self, columns: Iterable[Column]) -> list[str]:
        """Create the table, or add missing columns. Returns what was done, as messages."""
        columns = list(columns)
        notes = []
        if not self.exists():
            is_new = self.create(columns)
            notes += (
                [f"created {self}", FIRST_NUMBER]
                if is_new
                else [f"registered {self}, left over from a killed run"]
            )
        missing = self.check(columns)
        if not missing:
            return notes
        if needs_mapping(missing) and not self.has_mapping():
            self.set_property("delta.columnMapping.mode", "name")
            notes.append(f"switched on column mapping in {self}")
        self.add(missing)
        return [*notes, f"added {', '.join(missing)} to {self}"]

    def add(self, missing: Mapping[str, str]) -> None:
        """Add columns; the update rows landed before keep the values of the history in them.

        One commit, so that no update row has a new column without its name in `_unmodified`.
        Raises BusyError if another writer committed first.

        _stage   _unmodified                _unmodified   color
        update   [name]              ->     [name, color] NULL
        upsert   NULL                       NULL          NULL
        """
        nulls = (f"cast(null as {type_}) as {quoted(name)}" for name, type_ in missing.items())
        cells = (f"{quoted(name)} = missing.{quoted(name)}" for name in missing)
        self.run(
            f"merge with schema evolution into {self.full_name} as landed"
            f" using (select {', '.join(nulls)}) as missing on landed.`_stage` = 'update'"
            f" when matched then update set {with_unmodified(missing)}, {', '.join(cells)}"
        )

    def keep_values(self, batch: int, names: Iterable[str]) -> None:
        """Mark columns as unmodified in the update rows of a batch; BusyError as for `add`."""
        self.run(
            f"update {self.full_name} as landed set {with_unmodified(names)}"
            f" where landed.`_batch` = {batch} and landed.`_stage` = 'update'"
        )

    def run(self, statement: str) -> None:
        """Run a statement. Raises BusyError if another writer committed first."""
        try:
            self.spark.sql(statement)
        except PySparkException as error:
            if is_conflict(error):
                raise BusyError(
                    f"another writer changed {self}; nothing was landed, try again"
                ) from None
            raise

    def create(self, columns: Iterable[Column]) -> bool:
        """Create the table. Returns False if it was registered from existing files instead."""
        types = staged_types(columns)
        properties = {
            RETENTION: LOG_RETENTION,
            # Allows columns of this type to be added later.
            "delta.feature.timestampNtz": "supported",
        }
        if needs_mapping(types):
            properties["delta.columnMapping.mode"] = "name"
        return create_or_register(
            self.spark,
            self.schema,
            self.name,
            f"({definitions(types)}) using delta",
            f"tblproperties ({property_list(properties)})",
        )

    def data_columns(self) -> list[str]:
        """The columns without those of the landing."""
        names = self.spark.table(self.full_name).columns
        return [name for name in names if name not in BOOKKEEPING_TYPES]

    def has_mapping(self) -> bool:
        return self.properties().get("delta.columnMapping.mode", "none") != "none"

    def set_property(self, name: str, value: str) -> None:
        self.spark.sql(
            f"alter table {self.full_name} set tblproperties ({property_list({name: value})})"
        )

    def records(self, limit: int | None = None) -> list[LandedRecord]:
        """The requests in the log, newest first; `limit`: read only that many commits."""
        entries = (
            read_log(self.spark, self.full_name, limit)
            if limit
            else self.logs.read(self.spark, self.full_name)
        )
        return list(landed_records(entries, partial(restored_version, self.spark, self.full_name)))

    def table_id(self, records: list[LandedRecord]) -> str:
        """Delta's id of the table; taken from a record if possible, as DESCRIBE DETAIL is slow."""
        if records:
            return records[0].table_id
        return str(self.spark.sql(f"describe detail {self.full_name}").collect()[0]["id"])

    def last_batch(self, records: list[LandedRecord]) -> int:
        """The greatest number in use. Numbers of undone requests are not reused."""
        if records:
            return max(record.batch for record in records)
        return self.last_landed()

    def last_landed(self) -> int:
        """The greatest number that has rows, 0 without rows."""
        rows = self.spark.sql(f"select max(`_batch`) from {self.full_name}").collect()
        return rows[0][0] or 0

    def set_emptied(self) -> None:
        """Record that the rows landed until now lost a column; see `whole_batches`."""
        if last := self.last_landed():
            self.set_property(EMPTIED, str(last))

    def whole_batches(self, numbers: Iterable[int]) -> set[int]:
        """Those of the batches whose rows are there with all their columns."""
        emptied = int(self.properties().get(EMPTIED, "0"))
        listed = ", ".join(map(str, numbers))
        found = self.spark.sql(
            f"select distinct `_batch` from {self.full_name}"
            f" where `_batch` in ({listed}) and `_batch` > {emptied}"
        )
        return {row[0] for row in found.collect()}

    def emptied_batches(self, last: int) -> set[int]:
        """The batches above `last` that have rows and whose rows lost a column."""
        emptied = int(self.properties().get(EMPTIED, "0"))
        if emptied <= last:
            return set()
        found = self.spark.sql(
            f"select distinct `_batch` from {self.full_name}"
            f" where `_batch` > {last} and `_batch` <= {emptied}"
        )
        return {row[0] for row in found.collect()}

    def append(self, rows: DataFrame, table_id: str, batch: int, record: Mapping[str, Any]) -> None:
        """Append in one commit. Delta skips it if this number or a higher one was landed before."""
        (
            rows.write.format("delta")
            .mode("append")
            .option("txnAppId", f"dbt_history:landing:{table_id}")
            .option("txnVersion", batch)
            .option("userMetadata", json.dumps(record))
            .saveAsTable(self.full_name)
        )

    def version_before(self, batch: int) -> int | None:
        """The version before a batch was landed; None if its commit has left the log."""
        for entry in read_log(self.spark, self.full_name):
            if batch_number(entry["userMetadata"]) == batch:
                return int(entry["version"]) - 1
        return None

    def count(self, batch: int) -> dict[str, int]:
        """The number of rows of a batch by stage."""
        rows = self.spark.sql(
            f"select `_stage`, count(*) from {self.full_name} where `_batch` = {batch} group by 1"
        )
        return {row[0]: row[1] for row in rows.collect()}


def with_unmodified(names: Iterable[str]) -> str:
    """SQL: adds columns to `_unmodified` of the table `landed`."""
    listed = f"array({', '.join(map(string_literal, names))})"
    return f"`_unmodified` = array_union(coalesce(landed.`_unmodified`, array()), {listed})"


def create_or_register(
    spark: SparkSession, schema: str, name: str, columns: str, properties: str, query: str = ""
) -> bool:
    """Create a Delta table and its schema; False if the table was registered from existing files.

    Files without a commit and those of a table that was dropped or renamed are kept; the new table
    gets another location.
    """
    spark.sql(f"create schema if not exists {quoted(schema)}")
    create = f"create table if not exists {quoted(schema)}.{quoted(name)}"
    try:
        spark.sql(f"{create} {columns} {properties} {query}")
    except Exception as error:
        if not any(code in str(error) for code in EXISTING_FILES):
            raise
    else:
        return True
    if register_files(spark, schema, name):
        return False
    beside = f"{default_location(spark, schema, name)}__{uuid.uuid4().hex[:8]}"
    spark.sql(f"{create} {columns} location {string_literal(beside)} {properties} {query}")
    return True


def register_files(spark: SparkSession, schema: str, name: str) -> bool:
    """Register the table that is in the folder of this name; False if there is none.

    A process that was killed between the first commit of a table and its catalog entry leaves such
    a folder. DROP and RENAME leave the folder of a registered table as it is, and a kill may leave
    any; `CATALOG_NAME` tells that it is no longer the table of this name.

    folder items   commit   killed   registered as items   RENAME to sold   CREATE items
    CATALOG_NAME                                           sold             another folder
    """
    try:
        location = default_location(spark, schema, name)
    except AnalysisException:
        return False
    properties, own = folder_properties(spark, location), catalog_name(schema, name)
    if properties is None or properties.get(CATALOG_NAME, own) != own:
        return False
    spark.sql(
        f"create table if not exists {quoted(schema)}.{quoted(name)} using delta"
        f" location {string_literal(location)}"
    )
    return True


def folder_properties(spark: SparkSession, location: str) -> dict[str, str] | None:
    """The properties of the Delta table in a folder; None if there is none."""
    try:
        detail = spark.sql(f"describe detail delta.{quoted(location)}").collect()[0]
    except AnalysisException:
        return None
    return dict(detail["properties"])


def catalog_name(schema: str, name: str) -> str:
    return f"{schema}.{name}".lower()


def default_location(spark: SparkSession, schema: str, name: str) -> str:
    """The folder that Spark gives a table of this name."""
    described = spark.sql(f"describe schema {quoted(schema)}").collect()
    folder: str = next(row[1] for row in described if row[0] == "Location")
    return f"{folder.rstrip('/')}/{name.lower()}"


def property_list(properties: Mapping[str, str]) -> str:
    pairs = ((string_literal(name), string_literal(value)) for name, value in properties.items())
    return ", ".join(f"{name} = {value}" for name, value in pairs)


def definitions(types: Mapping[str, str]) -> str:
    return ", ".join(f"{quoted(name)} {type_}" for name, type_ in types.items())


def is_wider(before: str, after: str) -> bool:
    """Whether Delta changes a column to the type in place, and each value stays the same."""
    if before.startswith("decimal") and after.startswith("decimal"):
        old, new = (DataType.fromDDL(type_) for type_ in (before, after))
        assert isinstance(old, DecimalType)
        assert isinstance(new, DecimalType)
        more_scale = new.scale - old.scale
        return more_scale >= 0 and new.precision - old.precision >= more_scale
    return after in WIDENINGS.get(before, ())


def needs_mapping(names: Iterable[str]) -> bool:
    """Whether a name is invalid in Parquet, so that column mapping is required."""
    return any(NOT_IN_PARQUET & set(name) for name in names)


def landed_records(
    entries: Iterable[Entry], restored_version: Callable[[Entry], int]
) -> Iterator[LandedRecord]:
    """The landed requests in a log, newest first."""
    for entry, is_undone in with_undone(entries, restored_version):
        record = read_record(entry["userMetadata"])
        if record and {"request", "batch", "landing", "table_id"} <= record.keys():
            yield LandedRecord(
                record["request"],
                int(record["batch"]),
                record["landing"],
                record["table_id"],
                not is_undone,
                tuple(record.get("key") or ()),
            )
