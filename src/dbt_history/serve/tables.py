"""Tables of the destination: describes, creates and alters them."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql.types import DataType, DecimalType

from dbt_history.commit_log import (
    USER_METADATA,
    is_other_key,
    new_record,
    read_log,
    read_record,
    restored_version,
    with_undone,
)
from dbt_history.landing import cells
from dbt_history.landing.errors import Problem, RefusedError
from dbt_history.landing.request import ACTIVE, PERIOD, RESERVED_BY_DELTA, START, Column
from dbt_history.landing.table import (
    BOOKKEEPING_TYPES,
    CatalogTable,
    LandingTable,
    create_or_register,
    definitions,
    is_wider,
    needs_mapping,
    property_list,
    quoted,
    register_files,
    string_literal,
)
from dbt_history.landing.types import ColumnType

LANDING_SUFFIX = "__landing"
# A folder's name has at most 255 bytes, and that of a landing table may have a second suffix.
MAX_NAME = 255 - len(f"{LANDING_SUFFIX}__01234567")
# Prefix of a column with a new type until it replaces the old column.
NEW_PREFIX = "__new_"
KEY, TYPES, LAST_BATCH = "dbt_history.key", "dbt_history.types", "dbt_history.last_batch"
COPIED_FROM = "dbt_history.copied_from"
# Prefix of the properties that tell which migrations a table contains; the value is the column.
MIGRATION = "dbt_history.migration."
# The column of the last type change, with its prefix.
CHANGING = "dbt_history.changing"

# Contract types by Spark type. Types without a Spark equivalent are recorded in a table property.
FROM_SPARK = {
    "boolean": "BOOLEAN", "tinyint": "SHORT", "smallint": "SHORT", "int": "INT", "bigint": "LONG",
    "float": "FLOAT", "double": "DOUBLE", "date": "NAIVE_DATE", "timestamp_ntz": "NAIVE_DATETIME",
    "timestamp": "UTC_DATETIME", "binary": "BINARY", "string": "STRING",
}  # fmt: skip
RECORDED_TYPES = ("XML", "JSON", "NAIVE_TIME")
# The texts of a type in a batch, as patterns. Spark's casts also accept others.
PATTERNS = {
    "boolean": cells.BOOLEAN, "smallint": cells.INTEGER, "int": cells.INTEGER,
    "bigint": cells.INTEGER, "decimal": cells.DECIMAL, "float": cells.FLOAT,
    "double": cells.FLOAT, "date": cells.DATE, "timestamp_ntz": cells.NAIVE,
    "timestamp": cells.INSTANT,
}  # fmt: skip
GREATEST_LONG = 2**63 - 1
# In the error classes of a change of a column that a constraint or a generated column uses.
DEPENDENT = "DEPENDENT_COLUMN_CHANGE"
# Digits that Spark does not store.
NANOSECONDS = "[.][0-9]{6}0*[1-9]"

log = logging.getLogger("dbt_history.serve")


@dataclass(frozen=True)
class Target(CatalogTable):
    """A table that may not exist. Raises RefusedError for an invalid or reserved name."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.name.lower().endswith(LANDING_SUFFIX):
            raise RefusedError(f"names that end with {LANDING_SUFFIX} are for landing tables")
        if len(self.name) > MAX_NAME:
            raise RefusedError(
                f"{self.name!r} is not a valid name: it has {len(self.name)} characters, more than"
                f" {MAX_NAME}"
            )

    @cached_property
    def landing(self) -> LandingTable:
        return LandingTable(self.spark, self.schema, self.name + LANDING_SUFFIX, self.logs)

    def exists(self) -> bool:
        """Whether the table exists. Raises RefusedError if it is not a Delta table."""
        if not self.spark.catalog.tableExists(self.full_name):
            return False
        if (self.details().get("Provider") or "").lower() != "delta":
            raise RefusedError(f"{self} exists and is not a Delta table")
        return True

    def ensure_registered(self) -> bool:
        """Whether the table exists. Registers one that a killed call has left in its folder."""
        return self.exists() or register_files(self.spark, self.schema, self.name)

    def fields(self) -> dict[str, DataType]:
        """The columns by name."""
        return {field.name: field.dataType for field in self.spark.table(self.full_name).schema}

    def is_history(self) -> bool:
        return is_history(self.fields())

    def key(self) -> list[str]:
        """The record's key, without the start column; empty if it is not recorded."""
        found: list[str] = json.loads(self.properties().get(KEY, "[]"))
        return found

    def columns(self) -> list[tuple[Column, bool]]:
        """The columns in the contract's types, and whether they belong to the primary key."""
        properties = self.properties()
        types = json.loads(properties.get(TYPES, "{}"))
        key = {name.lower() for name in json.loads(properties.get(KEY, "[]"))}
        key |= {START}
        return [
            (Column(name, contract_type(type_, types.get(name))), name.lower() in key)
            for name, type_ in self.fields().items()
            if not name.startswith(NEW_PREFIX)
        ]

    def set_properties(self, properties: Mapping[str, str]) -> None:
        existing = self.properties()
        missing = {name: value for name, value in properties.items() if existing.get(name) != value}
        if missing:
            listed = property_list(missing)
            self.spark.sql(f"alter table {self.full_name} set tblproperties ({listed})")

    # -- create and alter --------------------------------------------------------------------------

    def create(self, columns: Sequence[Column], key: Sequence[str]) -> None:
        """Create an empty table; drop the landing table of an earlier table with this name.

        The table is not in the catalog. Files left over from a killed call are registered with the
        columns that they have.
        """
        if register_files(self.spark, self.schema, self.name):
            return
        self.landing.drop()
        types = {column.name: column.type.spark for column in columns}
        active = [name for name in types if name.lower() == ACTIVE]
        properties = {
            "delta.enableDeletionVectors": "true",
            # Allows columns of this type to be added later.
            "delta.feature.timestampNtz": "supported",
            **own_properties(columns, key),
        }
        if needs_mapping(types):
            properties["delta.columnMapping.mode"] = "name"
        # Lets an on-time batch skip the files of closed versions.
        layout = f" partitioned by ({quoted(active[0])})" if active else ""
        ordered = {name: types[name] for name in (*(names_without(types, active)), *active)}
        create_or_register(
            self.spark,
            self.schema,
            self.name,
            f"({definitions(ordered)}) using delta{layout}",
            f"tblproperties ({property_list(properties)})",
        )

    def matches(self, columns: Sequence[Column], key: Sequence[str]) -> bool:
        """Whether the table is empty and has exactly these columns and this key."""
        same = {name.lower(): t.simpleString() for name, t in self.fields().items()} == {
            column.name.lower(): column.type.spark for column in columns
        }
        return same and self.key() == list(key) and self.spark.table(self.full_name).isEmpty()

    def add(self, columns: Iterable[Column], fields: Mapping[str, DataType]) -> None:
        """Add columns that are not among the `fields` of the table.

        Raises RefusedError if an existing one has another type.
        """
        existing = {name.lower(): type_ for name, type_ in fields.items()}
        missing, problems = [], []
        for column in columns:
            type_ = existing.get(column.name.lower())
            if type_ is None:
                missing.append(column)
            elif type_.simpleString() != column.type.spark:
                got = f"is {column.type.spark} in the request, {type_.simpleString()} in {self}"
                problems.append(Problem(f"{got}: alter the table first", column=column.name))
        if problems:
            raise RefusedError(f"the request does not fit {self}", problems)
        if missing:
            types = {column.name: column.type.spark for column in missing}
            self.enable_for(types)
            self.spark.sql(f"alter table {self.full_name} add columns ({definitions(types)})")
            self.record_types(missing)

    def alter(self, columns: Sequence[Column], key: Sequence[str], drop: bool) -> None:
        """Give the table these columns and this key; with `drop`, remove all others.

        Every step is idempotent, so repeating the call completes a killed one. Landed batches must
        be applied before. Raises RefusedError for an empty key beside a recorded one: without it
        the next batch could bring any key, and the stored rows would not be compared with it.
        """
        if not key and (recorded := self.key()):
            raise RefusedError(
                f"{self}: no column is marked as primary_key; nothing was changed. The table has"
                f" the key {', '.join(recorded)}: mark these columns, or those of another key"
            )
        fields = self.finish_changes(self.fields())
        existing = {name.lower(): (name, type_) for name, type_ in fields.items()}
        wanted = {column.name.lower(): column for column in columns}
        changed = [
            (existing[name][0], existing[name][1].simpleString(), column)
            for name, column in wanted.items()
            if name in existing and existing[name][1].simpleString() != column.type.spark
        ]
        if fixed := [name for name, _, _ in changed if name.lower() in PERIOD]:
            raise RefusedError(f"the type of {', '.join(fixed)} cannot be changed")
        dropped = [
            name
            for lower, (name, _) in existing.items()
            if drop and lower not in wanted and lower not in PERIOD
        ]
        for name, before, column in changed:
            self.check_change(name, before, column.type.spark)
        self.check_key(fields, key, {name: column.type.spark for name, _, column in changed})
        self.check_new_key(key)
        with self.undone_if_depended_on():
            for name in dropped:
                self.drop_column(name)
            for name, before, column in changed:
                self.change_type(name, before, column.type.spark)
        self.add(columns, self.fields())
        self.record_types(columns)
        self.set_key(key)

    @contextmanager
    def undone_if_depended_on(self) -> Iterator[None]:
        """Undo a change that Delta refuses because a constraint or generated column uses a column.

        Raises RefusedError with the reason; columns dropped before stay dropped.
        """
        try:
            yield
        except AnalysisException as error:
            if DEPENDENT not in (error.getCondition() or ""):
                raise
            self.finish_changes(self.fields())
            raise RefusedError(
                f"{self}: {str(error).strip()}\n"
                "  drop what uses it (alter table … drop constraint …), then repeat the call"
            ) from None

    def set_key(self, key: Sequence[str]) -> None:
        """Record the key; that of a history with batches in the commit, too, as batches do.

        A batch is refused if the newest record of the log has another key.

        version   4                5                                    6
                  batch 1, key a   alter table: property and key a, b   batch 2, key a, b
        """
        if self.key() == list(key):
            return
        record = self.recorded(new_record(key=list(key)))
        with record if self.is_keyed_history() else nullcontext():
            self.set_properties({KEY: json.dumps(list(key))})

    @contextmanager
    def recorded(self, record: Mapping[str, Any]) -> Iterator[None]:
        """Write the record into the commits of the block."""
        self.spark.conf.set(USER_METADATA, json.dumps(record))
        try:
            yield
        finally:
            self.spark.conf.unset(USER_METADATA)

    def is_keyed_history(self) -> bool:
        """Whether a commit of this history, one that was not undone, records the key.

        A table without the property is not `serve`'s own: the key in its log is left as it is.
        """
        if not self.key() or not self.is_history():
            return False
        return bool(self.logged_key())

    def logged_key(self) -> tuple[str, ...]:
        """The key in the newest commit that records one and was not undone; empty if none does."""
        log = read_log(self.spark, self.full_name)
        for entry, is_undone in with_undone(
            log, partial(restored_version, self.spark, self.full_name)
        ):
            key = (read_record(entry["userMetadata"]) or {}).get("key")
            if key and not is_undone:
                return tuple(key)
        return ()

    def check_logged_key(self, key: Sequence[str]) -> None:
        """Raises RefusedError if the batches in the log of a history have another key."""
        logged = self.logged_key()
        if is_other_key(logged, key):
            raise RefusedError(
                f"{self}: the key cannot become {', '.join(key)}: its batches have the key"
                f" {', '.join(logged)}, and the table has no property {KEY}. Send the rows with"
                " that key first, or to another table"
            )

    def record_types(self, columns: Iterable[Column]) -> None:
        types = json.loads(self.properties().get(TYPES, "{}"))
        for column in columns:
            types.pop(column.name, None)
            if column.type.name in RECORDED_TYPES:
                types[column.name] = column.type.name
        self.set_properties({TYPES: json.dumps(types)})

    def rename_recorded(self, before: str, after: str) -> None:
        """Rename a column in the recorded key and types."""
        properties = self.properties()

        def renamed(name: str) -> str:
            return after if name.lower() == before.lower() else name

        key = [renamed(name) for name in self.key()]
        types = json.loads(properties.get(TYPES, "{}"))
        types = {renamed(name): type_ for name, type_ in types.items()}
        self.set_properties({KEY: json.dumps(key), TYPES: json.dumps(types)})

    def drop_column(self, name: str) -> None:
        """Drop a column; in the landing table first, else the next batch would add it again."""
        self.drop_landed(name)
        self.enable("delta.columnMapping.mode", "name")
        self.forget_migrations(name)
        log.warning("%s: drops the column %s with its values", self, quoted(name))
        self.drop_of(self.full_name, quoted(name))

    def drop_of(self, table: str, column: str) -> None:
        """Drop a column, both quoted, with a record: a drop without one was made by hand."""
        with self.recorded(operation_record("drop_column")):
            self.spark.sql(f"alter table {table} drop column {column}")

    def forget_migrations(self, name: str) -> None:
        """Remove the properties of migrations of a column: a later column of the name is another.

        The run-operation `add_column_with_default_value` has set them.
        """
        found = self.properties().items()
        marks = [mark for mark, of in found if mark.startswith(MIGRATION) and of == name.lower()]
        if marks:
            listed = ", ".join(map(string_literal, marks))
            self.spark.sql(f"alter table {self.full_name} unset tblproperties ({listed})")

    def drop_landed(self, name: str) -> None:
        landing = self.landing
        if not landing.exists():
            return
        fields = {field.name.lower(): field.name for field in self.landed_fields()}
        if name.lower() in fields:
            if not landing.has_mapping():
                landing.set_property("delta.columnMapping.mode", "name")
            landing.set_emptied()
            self.drop_of(landing.full_name, quoted(fields[name.lower()]))

    def not_applied(self, applied: int, reason: str) -> RefusedError:
        """The refusal of the landed batches above `applied`, with the way to send them again.

        All of them go together: none may be applied before an earlier one. A restore undoes their
        commits, too, by which a repeated call would count as landed; a DELETE of the rows does not.

        landing   batch 2, refused   batch 3   restore to before 2   batch 4: the call of 2 or 3
        """
        landing = self.landing
        rows = self.spark.sql(
            f"select distinct `_batch` from {landing.full_name} where `_batch` > {applied}"
            " order by 1"
        ).collect()
        if not rows:
            return RefusedError(reason)
        listed = ", ".join(str(row[0]) for row in rows)
        lines = [reason, f"  landed, not applied: batch {listed} of {self}"]
        lines.append("  the next call applies them if the cause is removed")
        if (version := landing.version_before(rows[0][0])) is not None:
            lines[-1] += (
                ". To send them again instead, with other files:"
                f" restore table {landing.full_name} to version as of {version}; then repeat their"
                " calls, in order"
            )
        return RefusedError("\n".join(lines))

    def landed_fields(self) -> Any:
        return self.spark.table(self.landing.full_name).schema

    def check_change(self, name: str, before: str, after: str) -> None:
        """Raises RefusedError if the new type cannot hold a value of the column."""
        column = quoted(name)
        try:
            lost = self.spark.sql(
                f"select count(*) from {self.full_name}"
                f" where {column} is not null and {is_lost(column, before, after)}"
            ).collect()[0][0]
        except AnalysisException:
            raise RefusedError(
                f"{self}: column {name} cannot change from {before} to {after}"
            ) from None
        if lost:
            raise RefusedError(
                f"{self}: column {name} cannot change from {before} to {after}:"
                f" {lost:,} values would be lost"
            )

    def check_key(
        self, fields: Iterable[str], key: Sequence[str], types: Mapping[str, str]
    ) -> None:
        """Raises RefusedError if new types give records the same key, such as '1' and '01'."""
        wanted = {name.lower() for name in key}
        names = [name for name in fields if name.lower() in wanted]
        if not types.keys() & set(names):
            return
        by = (
            f"try_cast({quoted(name)} as {types[name]})" if name in types else quoted(name)
            for name in names
        )
        before = ", ".join(map(quoted, names))
        found = self.spark.sql(
            f"select count(*) from (select 1 from {self.full_name} group by {', '.join(by)}"
            f" having count(distinct struct({before})) > 1) as same"
        )
        if same := found.collect()[0][0]:
            raise RefusedError(
                f"{self}: the type of {', '.join(types)} cannot be changed:"
                f" {same:,} keys would be those of several records"
            )

    def check_new_key(self, key: Sequence[str]) -> None:
        """Raises RefusedError if stored rows do not fit a new key.

        Those of a history are its active versions: with NULL in the key, no batch would close them.
        In a table without history no batch would match such a row, and each would overwrite all
        rows of one key.

        key          id         id, region
        stored       1          1, NULL
        next batch              1, north        another record; the version would stay active

        key          id, region               id
        stored       1, north   1, south      1   1
        next batch                            1       without history: two equal rows

        A table that another tool made records no key. Its rows are checked as for a new one; of a
        history the key of the newest batch counts, as in the materialization.
        """
        before = self.key()
        if not key or before == list(key):
            return
        has_history = self.is_history()
        if has_history and not before:
            self.check_logged_key(key)
        if has_history and not self.is_keyed_history():
            return
        if not has_history and before and not is_other_key(before, key):
            return
        existing = {name.lower() for name in self.fields()}
        missing = [f"{quoted(name)} is null" for name in key if name.lower() in existing]
        # A column that is still to be added is NULL in all of them.
        missing += ["true" for name in key if name.lower() not in existing]
        lacking = " or ".join(missing)
        rows = f"{quoted(ACTIVE)} and ({lacking})" if has_history else lacking
        found = self.spark.sql(f"select 1 from {self.full_name} where {rows}")
        if not found.isEmpty():
            kind = "active versions" if has_history else "rows"
            where = "the history" if has_history else "the rows"
            raise RefusedError(
                f"{self}: the key cannot become {', '.join(key)}: the table has {kind}"
                f" without a value in it; set the values first, or send {where} to another table"
            )
        if not has_history:
            self.check_narrower_key(key)

    def check_narrower_key(self, key: Sequence[str]) -> None:
        """Raises RefusedError if several rows of a table without history have one new key."""
        wanted = {name.lower() for name in key}
        by = ", ".join(quoted(name) for name in self.fields() if name.lower() in wanted)
        before = {name.lower() for name in self.key()}
        if (before and wanted >= before) or not by:
            return
        found = self.spark.sql(
            f"select count(*) from (select 1 from {self.full_name} group by {by}"
            " having count(*) > 1) as same"
        )
        if same := found.collect()[0][0]:
            raise RefusedError(
                f"{self}: the key cannot become {', '.join(key)}: {same:,} keys would be those of"
                " several rows; delete all but one of each, or send the rows to another table"
            )

    def change_type(self, name: str, before: str, after: str) -> None:
        """Change a column's type, by type widening if possible, else by a new column."""
        self.drop_landed(name)
        if is_wider(before, after):
            self.enable("delta.enableTypeWidening", "true")
            self.spark.sql(f"alter table {self.full_name} alter column {quoted(name)} type {after}")
            return
        self.enable("delta.columnMapping.mode", "name")
        self.enable_for({name: after})
        new, old = quoted(NEW_PREFIX + name), quoted(name)
        self.set_properties({CHANGING: NEW_PREFIX + name})
        self.spark.sql(f"alter table {self.full_name} add columns ({new} {after})")
        with self.recorded(operation_record("change_type")):
            self.spark.sql(
                f"update {self.full_name} set {new} = try_cast({old} as {after})"
                f" where {old} is not null"
            )
        self.drop_of(self.full_name, old)
        self.spark.sql(f"alter table {self.full_name} rename column {new} to {old}")

    def finish_changes(self, fields: dict[str, DataType]) -> dict[str, DataType]:
        """Complete or undo a type change that was interrupted; returns the columns after it."""
        if not any(name.startswith(NEW_PREFIX) for name in fields):
            return fields
        new = self.properties().get(CHANGING)
        if new not in fields:
            return fields
        old = new.removeprefix(NEW_PREFIX)
        if old in fields:
            self.drop_of(self.full_name, quoted(new))
        else:
            self.spark.sql(
                f"alter table {self.full_name} rename column {quoted(new)} to {quoted(old)}"
            )
        return self.fields()

    def enable(self, property_: str, value: str) -> None:
        """Set a table property that old readers do not support, with a warning in the log."""
        if self.properties().get(property_) != value:
            log.warning("%s: switches on %s = %s", self, property_, value)
            self.set_properties({property_: value})

    def enable_for(self, types: Mapping[str, str]) -> None:
        """Switch on what Delta requires for columns with these names and types."""
        if needs_mapping(types):
            self.enable("delta.columnMapping.mode", "name")
        if "timestamp_ntz" in types.values():
            self.enable("delta.feature.timestampNtz", "supported")


def is_history(names: Iterable[str]) -> bool:
    """Whether a table with these columns is in history mode."""
    return START in {name.lower() for name in names}


def names_without(names: Iterable[str], others: Sequence[str]) -> list[str]:
    return [name for name in names if name not in others]


def operation_record(name: str) -> dict[str, str]:
    """The record of a change that is no batch; `verify_history` and `is_append_only` know it."""
    return {"history_operation": name}


def own_properties(columns: Iterable[Column], key: Sequence[str]) -> dict[str, str]:
    types = {c.name: c.type.name for c in columns if c.type.name in RECORDED_TYPES}
    return {KEY: json.dumps(list(key)), TYPES: json.dumps(types)}


def is_lost(column: str, before: str, after: str) -> str:
    """SQL: whether a value that is not NULL is another one in the new type.

    A text is kept if a batch can have it as the new type, and all its digits are kept: '01' is the
    integer 1, '1.5' is not. Every other value must be the same after the way back.

    12.0  double -> int 12 -> double 12.0    kept
    12.5  double -> int 12 -> double 12.0    lost

    The way back of a float above the greatest bigint ends at that one, which no float is:

    2^63 - 1  bigint -> double 2^63 -> bigint 2^63 - 1      lost
    2^63      double -> bigint 2^63 - 1 -> double 2^63      lost
    """
    new = f"try_cast({column} as {after})"
    if after == "string":
        return f"{new} is null"
    if before != "string":
        is_other = f"not ({column} <=> try_cast({new} as {before}))"
        if "bigint" in (before, after) and {before, after} & {"float", "double"}:
            whole = column if before == "bigint" else new
            return f"({is_other} or {whole} = {GREATEST_LONG})"
        return is_other
    kind = after.split("(")[0]
    rules = [f"{new} is not null"]
    if kind in PATTERNS:
        rules.append(matches(column, PATTERNS[kind]))
    if kind.startswith("timestamp"):
        rules.append(f"not {matches(column, NANOSECONDS)}")
    if kind == "decimal":
        type_ = DataType.fromDDL(after)
        assert isinstance(type_, DecimalType)
        rules.append(f"{decimal_places(column)} <= {type_.scale}")
    if kind in ("float", "double"):
        same = f"{digits(column)} = {digits(f'cast({new} as string)')}"
        rules.append(f"({same} or isnan({new}) or {matches(column, cells.INFINITE)})")
    return f"not ({' and '.join(rules)})"


def matches(text: str, pattern: str) -> str:
    """SQL: whether a text matches. Java's `$` also matches before a line break at the end."""
    end = "\\z" if pattern.endswith("$") else ""
    return f"{text} rlike {string_literal(pattern.removesuffix('$') + end)}"


def decimal_places(text: str) -> str:
    """SQL: the digits that a decimal in a text needs after the point: 1 for 1.50, 0 for 1.50e1."""
    fraction = f"regexp_extract({text}, '[.]([0-9]*?)0*([eE]|$)', 1)"
    exponent = f"try_cast(regexp_extract({text}, '[eE](.*)', 1) as int)"
    return f"length({fraction}) - coalesce({exponent}, 0)"


def digits(text: str) -> str:
    """SQL: the digits of a number in a text, without the zeros around them: 15 for -0.150e3."""
    mantissa = f"regexp_replace({text}, '[eE].*|[-+.]', '')"
    return f"regexp_replace({mantissa}, '^0+|0+$', '')"


def contract_type(type_: DataType, recorded: str | None) -> ColumnType:
    name = type_.simpleString()
    if isinstance(type_, DecimalType):
        return ColumnType("DECIMAL", type_.precision, type_.scale)
    if name == "string" and recorded in RECORDED_TYPES:
        return ColumnType(recorded or "STRING")
    return ColumnType(FROM_SPARK.get(name, "UNSPECIFIED"))


def check_names(columns: Sequence[Column]) -> None:
    """Raises RefusedError for invalid column names."""
    seen: set[str] = set()
    problems = []
    for column in columns:
        lower = column.name.lower()
        if not column.name or not column.name.isprintable():
            problems.append(Problem("a column has an empty or unprintable name"))
        elif lower in (*BOOKKEEPING_TYPES, *RESERVED_BY_DELTA) or lower.startswith(NEW_PREFIX):
            problems.append(Problem("this name is reserved", column=column.name))
        elif lower in seen:
            problems.append(Problem("is listed twice (Spark ignores case)", column=lower))
        seen.add(lower)
    if not columns:
        problems.append(Problem("the table has no column"))
    if problems:
        raise RefusedError("the columns are refused", problems)
