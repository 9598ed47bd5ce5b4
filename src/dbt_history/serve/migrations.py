"""The migrations of the contract, implemented by the package's run-operations or Delta statements.

All are idempotent, because a client repeats a call when it did not receive the response.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from dbt_history.conventions import FIVETRAN_DELETED
from dbt_history.landing.cells import CASTS
from dbt_history.landing.errors import Problem, RefusedError, abbreviated
from dbt_history.landing.request import ACTIVE, PERIOD, Column
from dbt_history.landing.table import create_or_register, property_list, quoted
from dbt_history.landing.types import DEFAULT_DECIMAL, KNOWN, ColumnType
from dbt_history.serve import destination_pb2 as pb
from dbt_history.serve.destination import Destination
from dbt_history.serve.live import table_id_of
from dbt_history.serve.tables import COPIED_FROM, KEY, TYPES, check_names

TEXTS = ("STRING", "XML", "JSON", "NAIVE_TIME")
# The guide writes the value into SQL: NULL without quotes is NULL. With them it is the word.
VALUES = {"NULL": None, "'NULL'": "NULL"}


def migrate(destination: Destination, details: pb.MigrationDetails) -> str | None:
    """Run a migration and return what was done; None if it is not supported."""
    name = details.WhichOneof("operation")
    operation = getattr(details, name) if name else None
    if operation is not None and "entity" in operation.DESCRIPTOR.oneofs_by_name:
        name = operation.WhichOneof("entity")
        operation = getattr(operation, name) if name else None
    found = MIGRATIONS.get(name or "")
    return found(destination, details, operation) if found else None


def column_type(column: str, number: int) -> ColumnType:
    """The type of a column that a migration adds. Raises RefusedError for an unspecified one."""
    name: str = pb.DataType.Name(number)
    if name == "DECIMAL":
        return ColumnType(name, *DEFAULT_DECIMAL)
    if name not in KNOWN:
        raise RefusedError(f"column {column}: its type is {name}")
    return ColumnType(name)


def check_new_name(name: str) -> None:
    """Raises RefusedError for the name of a new column that is reserved or invalid."""
    check_names([Column(name, ColumnType("STRING"))])


def default_value(column: str, text: str, type_: ColumnType) -> str | None:
    """A default for the macros; an empty text is None except for text types."""
    return migrated_value(column, text, type_) if text or type_.name in TEXTS else None


def migrated_value(column: str, text: str, type_: ColumnType) -> str:
    """A value for the macros, as a batch has it in a cell. Raises RefusedError for another text.

    Spark's cast, by which the macros write it, would round a decimal and complete a time:

    '1.239' as DECIMAL(5, 2)   1.24       '10:00' as UTC_DATETIME   today     both are refused
    'Zm9v' as BINARY           foo, whose bytes the macros take from a text
    """
    problem = f"{abbreviated(text)} is not a valid {type_}"
    try:
        value = CASTS[type_.name](pa.array([text]), type_.arrow)[0].as_py()
        if type_.name == "BINARY":
            problem = "a BINARY value of a migration that is not UTF-8 cannot be set"
            return str(value.decode())
    except (pa.ArrowNotImplementedError, ValueError):
        raise RefusedError("the value is refused", [Problem(problem, column=column)]) from None
    return str(value) if type_.name in TEXTS else text


def drop_table(destination: Destination, details: pb.MigrationDetails, wanted: bool) -> str:
    if not wanted:
        raise RefusedError("drop_table is false: nothing to do")
    with destination.exclusive(details.schema, details.table) as (target,):
        if not target.has_lost_files():
            target.exists()
        target.landing.drop()
        target.drop()
    return "dropped"


def drop_column_in_history_mode(
    destination: Destination, details: pb.MigrationDetails, operation: pb.DropColumnInHistoryMode
) -> str:
    with destination.changing(details.schema, details.table) as target:
        arguments = {
            "table": str(target),
            "column": operation.column,
            "at": operation.operation_timestamp,
            "key": target.key(),
        }
        destination.engine.run_operation("drop_column_in_history_mode", arguments)
    return "ended a column"


def add_column(
    destination: Destination,
    details: pb.MigrationDetails,
    operation: pb.AddColumnInHistoryMode | pb.AddColumnWithDefaultValue,
) -> str:
    """A column of all rows or, in history mode, of those from the operation's time on."""
    type_ = column_type(operation.column, operation.column_type)
    check_new_name(operation.column)
    with destination.changing(details.schema, details.table) as target:
        name = "add_column_with_default_value"
        arguments: dict[str, Any] = {
            "table": str(target),
            "column": operation.column,
            "default": default_value(operation.column, operation.default_value, type_),
            "type": type_.spark,
        }
        if isinstance(operation, pb.AddColumnInHistoryMode):
            name = "add_column_in_history_mode"
            arguments |= {"at": operation.operation_timestamp, "key": target.key()}
        destination.engine.run_operation(name, arguments)
        target.record_types([Column(operation.column, type_)])
    return "added a column"


def update_column_value(
    destination: Destination,
    details: pb.MigrationDetails,
    operation: pb.UpdateColumnValueOperation,
) -> str:
    with destination.changing(details.schema, details.table) as target:
        types = {column.name.lower(): column.type for column, _ in target.columns()}
        type_ = types.get(operation.column.lower())
        value = VALUES.get(operation.value, operation.value)
        # The macro refuses a column that does not exist, or has a type that no batch has.
        if value is not None and type_ is not None and type_.name in CASTS:
            value = migrated_value(operation.column, value, type_)
        arguments = {"table": str(target), "column": operation.column, "value": value}
        destination.engine.run_operation("update_column_value", arguments)
    return "set a column"


def rename_column(
    destination: Destination, details: pb.MigrationDetails, operation: pb.RenameColumn
) -> str:
    before, after = operation.from_column, operation.to_column
    with destination.changing(details.schema, details.table) as target:
        if before.lower() in PERIOD:
            raise RefusedError("a column of the period cannot be renamed")
        check_new_name(after)
        arguments = {"table": str(target), "from_column": before, "to_column": after}
        destination.engine.run_operation("rename_column", {**arguments, "dry_run": True})
        # All landed rows are applied. A column left in the landing table would be added again.
        target.drop_landed(before)
        destination.engine.run_operation("rename_column", arguments)
        target.rename_recorded(before, after)
    return "renamed a column"


def copy_column(
    destination: Destination, details: pb.MigrationDetails, operation: pb.CopyColumn
) -> str:
    before, after = operation.from_column, operation.to_column
    with destination.changing(details.schema, details.table) as target:
        columns = {column.name.lower(): column for column, _ in target.columns()}
        source = columns.get(before.lower())
        if source is None:
            raise RefusedError(f"{target} has no column {before}")
        check_new_name(after)
        if after.lower() in columns:
            differ = f"not ({quoted(before)} <=> {quoted(after)}) and {quoted(after)} is not null"
            found = target.spark.table(target.full_name).where(differ)
            if columns[after.lower()].type != source.type or not found.isEmpty():
                raise RefusedError(f"{target} has a column {after} that is not a copy of {before}")
        target.add([Column(after, source.type)], target.fields())
        target.spark.sql(
            f"update {target.full_name} set {quoted(after)} = {quoted(before)}"
            f" where not ({quoted(before)} <=> {quoted(after)})"
        )
    return "copied a column"


def copy_table(
    destination: Destination, details: pb.MigrationDetails, operation: pb.CopyTable
) -> str:
    names = operation.from_table, operation.to_table
    with destination.exclusive(details.schema, *names) as (source, to):
        destination.make_ready(source)
        # A later table with the source's name has another id; the copy may be renamed.
        copied_from = f"{source} {table_id_of(source)} {to}"
        if to.ensure_registered():
            if to.properties().get(COPIED_FROM) == copied_from:
                return "was copied before"
            raise RefusedError(f"{to} exists already")
        to.landing.drop()
        columns = list(source.fields())
        active = [name for name in columns if name.lower() == ACTIVE]
        kept = ("delta.columnMapping.mode", "delta.enableDeletionVectors", KEY, TYPES)
        properties = {n: v for n, v in source.properties().items() if n in kept}
        properties |= {COPIED_FROM: copied_from, "delta.feature.timestampNtz": "supported"}
        layout = f" partitioned by ({quoted(active[0])})" if active else ""
        ordered = [name for name in columns if name not in active] + active
        create_or_register(
            source.spark,
            to.schema,
            to.name,
            f"using delta{layout}",
            f"tblproperties ({property_list(properties)})",
            f"as select {', '.join(map(quoted, ordered))} from {source.full_name}",
        )
    return "copied"


def rename_table(
    destination: Destination, details: pb.MigrationDetails, operation: pb.RenameTable
) -> str:
    names = operation.from_table, operation.to_table
    with destination.exclusive(details.schema, *names) as (source, to):
        if source.has_lost_files():
            # A rename was killed.
            source.rename(to)
        elif to.ensure_registered():
            if source.exists():
                raise RefusedError(f"{to} exists already")
            if not to.is_renamed(source):
                raise RefusedError(f"table {source} does not exist")
        elif not source.ensure_registered():
            raise RefusedError(f"table {source} does not exist")
        else:
            source.finish_changes(source.fields())
            destination.apply_all(source)
            to.landing.drop()
            source.rename(to)
        landing = source.landing
        if landing.has_lost_files() or (landing.exists() and not to.landing.exists()):
            landing.rename(to.landing)
    return "renamed"


def copy_table_to_history_mode(
    destination: Destination, details: pb.MigrationDetails, operation: pb.CopyTableToHistoryMode
) -> str:
    names = operation.from_table, operation.to_table
    with destination.exclusive(details.schema, *names) as (source, to):
        destination.make_ready(source)
        arguments = {
            "table": str(source),
            "to": str(to),
            "deleted_column": operation.soft_deleted_column or None,
        }
        name = "copy_table_to_history_mode"
        if not to.ensure_registered():
            if to.landing.exists():
                # The batches of an earlier table with this name; a repeated call finds the copy.
                destination.engine.run_operation(name, {**arguments, "dry_run": True})
                to.landing.drop()
            to.free_folder()
        destination.engine.run_operation(name, arguments)
    return "copied to history mode"


def sync_mode_migration(
    destination: Destination,
    details: pb.MigrationDetails,
    operation: pb.SyncModeMigrationOperation,
) -> str | None:
    kind: str = pb.SyncModeMigrationType.Name(operation.type)
    deleted = operation.soft_deleted_column or FIVETRAN_DELETED
    if kind not in ("SOFT_DELETE_TO_HISTORY", "LIVE_TO_HISTORY", "HISTORY_TO_SOFT_DELETE"):
        return None
    with destination.changing(details.schema, details.table) as target:
        arguments: dict[str, Any] = {"table": str(target), "deleted_column": deleted}
        if kind == "LIVE_TO_HISTORY":
            arguments["deleted_column"] = None
        name = "soft_delete_to_history"
        if kind == "HISTORY_TO_SOFT_DELETE":
            arguments["key"] = target.key()
            name = "history_to_soft_delete"
        destination.engine.run_operation(name, {**arguments, "dry_run": True})
        # The table is recreated, and its landed rows have other columns.
        destination.drop_landing(target)
        destination.engine.run_operation(name, arguments)
    return kind.lower().replace("_", " ")


MIGRATIONS: dict[str, Callable[[Destination, pb.MigrationDetails, Any], str | None]] = {
    "drop_table": drop_table,
    "drop_column_in_history_mode": drop_column_in_history_mode,
    "add_column_in_history_mode": add_column,
    "add_column_with_default_value": add_column,
    "update_column_value": update_column_value,
    "rename_column": rename_column,
    "copy_column": copy_column,
    "copy_table": copy_table,
    "rename_table": rename_table,
    "copy_table_to_history_mode": copy_table_to_history_mode,
    "sync_mode_migration": sync_mode_migration,
}
