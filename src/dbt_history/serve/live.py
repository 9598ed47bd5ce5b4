"""Applies landed batches to a table without history: one MERGE per batch, in order, exactly once.

landed rows of a key, in order        one row per key
upsert  a, b                     }
update  a', unmodified           }->  a', b, whole          inserted or updated
delete                                deleted               deleted; an unknown key is ignored
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import Row

from dbt_history.commit_log import USER_METADATA, is_conflict, new_record
from dbt_history.landing.errors import BusyError, RefusedError, first_line
from dbt_history.landing.table import LandingTable, quoted, string_literal
from dbt_history.serve.skipped import Skipped, skipped_samples
from dbt_history.serve.tables import LAST_BATCH, Target

TXN_APP_ID = "spark.databricks.delta.write.txnAppId"
TXN_VERSION = "spark.databricks.delta.write.txnVersion"


def apply_pending(target: Target, key: Sequence[str], last: int, skipped: list[Skipped]) -> int:
    """Apply the landed batches above `last`, then delete their landed rows. Returns their number.

    Update rows of unknown keys are added to `skipped`.
    Raises BusyError if another writer committed first; batches applied before stay applied.
    Raises RefusedError if Delta skipped a batch or refused its rows; they stay landed.
    """
    landing = target.landing
    rows = target.spark.sql(
        f"select distinct `_batch` from {landing.full_name} where `_batch` > {last} order by 1"
    )
    batches = [int(row[0]) for row in rows.collect()]
    for batch in batches:
        commit = merge(target, key, batch)
        if count := skipped_keys(target, key, batch, changed_rows(commit)):
            samples = skipped_samples(target, key, f"`_batch` = {batch}")
            skipped.append(Skipped(str(target), count, samples))
    if batches:
        # Applied rows are not needed again; both logs keep the batch numbers.
        target.spark.sql(f"delete from {landing.full_name} where `_batch` <= {batches[-1]}")
    return len(batches)


def merge(target: Target, key: Sequence[str], batch: int) -> Row:
    """Merge in one commit; returns its entry in the log.

    Delta skips a batch if it or a later one was applied before. It keeps the last number longer
    than the log keeps its commit, so the pending batches may be among the skipped ones.
    """
    spark, table_id = target.spark, table_id_of(target)
    record = new_record(
        landing=uuid.uuid4().hex, request=f"batch {batch}", batch=batch, table_id=table_id
    )
    settings = {
        TXN_APP_ID: f"dbt_history:live:{table_id}",
        TXN_VERSION: str(batch),
        USER_METADATA: json.dumps(record),
    }
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        spark.sql(merge_sql(target, key, batch))
    except Exception as error:
        if is_conflict(error):
            raise BusyError(
                f"another writer changed {target}; nothing was lost, try again"
            ) from None
        if not is_data_error(error):
            raise
        # The reason may contain a value, so it is not in the first line, which is logged.
        raise target.not_applied(
            batch - 1,
            f"batch {batch} of {target} is landed and was not applied: the table does not take its"
            f" rows{condition_of(error)}\n  {reason_of(error)}",
        ) from None
    finally:
        for name in settings:
            spark.conf.unset(name)
    # Other writers may have committed since.
    for entry in spark.sql(f"describe history {target.full_name} limit 20").collect():
        if record["landing"] in (entry["userMetadata"] or ""):
            return entry
    raise RefusedError(
        f"batch {batch} of {target} is landed and was not applied: Delta knows a greater number of"
        " the table, whose commit has left the log. Drop the landing table"
        f" {target.landing}, and give the table a number that is greater: alter table {target}"
        f" set tblproperties ('{LAST_BATCH}' = '…'); the repeated call lands the batch again"
    )


def is_data_error(error: Exception) -> bool:
    """Whether the rows are the cause, so that a repeated statement fails again.

    By SQLSTATE: data exceptions such as a text for a shorter column (22), constraints (23), and
    Spark's own error for the length of a text.
    """
    # Not an error class of PySpark: Delta's exceptions of constraints have none.
    source: Any = error.java_exception if isinstance(error, Py4JJavaError) else error
    state = ""
    with suppress(AttributeError, Py4JError):
        state = source.getSqlState() or ""
    return state.startswith(("22", "23")) or state == "54006"


def reason_of(error: Exception) -> str:
    """The first line of an error, without Java's class before it. Delta lists a row below it."""
    line = first_line(error)
    return line[max(line.find("["), 0) :]


def condition_of(error: Exception) -> str:
    """The name of an error, such as DELTA_NOT_NULL_CONSTRAINT_VIOLATED, for a message."""
    found = re.match(r"\[([A-Z0-9_.]+)\]", reason_of(error))
    return f" ({found[1]})" if found else ""


def skipped_keys(target: Target, key: Sequence[str], batch: int, changed: int) -> int:
    """The number of keys that have only update rows and are not in the table after the merge.

    The table is read only if the merge `changed` fewer rows than the batch has keys.
    """
    by = ", ".join(map(quoted, key))
    listed = ", ".join(f"{quoted(name)} as {prefixed(name)}" for name in key)
    keys = (
        f"select {listed}, bool_and(`_stage` = 'update') as is_update"
        f" from {target.landing.full_name} where `_batch` = {batch} group by {by}"
    )
    spark = target.spark
    numbers = spark.sql(f"select count(*), count_if(is_update) from ({keys}) as keys").collect()[0]
    if not numbers[1] or changed >= numbers[0]:
        return 0
    same = " and ".join(f"stored.{quoted(name)} <=> keys.{prefixed(name)}" for name in key)
    found = spark.sql(
        f"select count(*) from ({keys}) as keys"
        f" left anti join {target.full_name} as stored on {same} where keys.is_update"
    )
    return int(found.collect()[0][0])


def changed_rows(commit: Row) -> int:
    """The rows that a commit inserted, updated and deleted."""
    metrics = commit["operationMetrics"]
    kinds = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")
    return sum(int(metrics.get(kind, 0)) for kind in kinds)


def table_id_of(target: Target) -> str:
    """Delta's id of the table, so that a recreated table starts with new batches."""
    return str(target.spark.sql(f"describe detail {target.full_name}").collect()[0]["id"])


def merge_sql(target: Target, key: Sequence[str], batch: int) -> str:
    """The MERGE of one batch. Cells are structs, to distinguish NULL from unmodified."""
    landed = landed_columns(target.landing)
    names = [name for name in target.fields() if name.lower() in landed]
    keys = [name for name in names if name.lower() in {column.lower() for column in key}]
    others = [name for name in names if name not in keys]
    cells = ",\n    ".join(last_modified_cell(landed[name.lower()]) for name in others)
    grouped = ", ".join(f"{quoted(landed[name.lower()])} as {prefixed(name)}" for name in keys)
    by = ", ".join(quoted(landed[name.lower()]) for name in keys)
    on = " and ".join(f"stored.{quoted(name)} <=> changes.{prefixed(name)}" for name in keys)
    values = [f"changes.{prefixed(name)}" for name in keys]
    values += [f"changes.{prefixed(name.lower())}.v" for name in others]
    updates = [
        f"stored.{column} = if({cell} is null, stored.{column}, {cell}.v)"
        for column, cell in ((quoted(name), f"changes.{prefixed(name.lower())}") for name in others)
    ]
    update = f"when matched then update set {', '.join(updates)}\n" if updates else ""
    return (
        f"merge into {target.full_name} as stored using (\n"
        f"  select {grouped},\n"
        "    max_by(`_stage` = 'delete', `_order`) as is_deleted,\n"
        "    bool_or(`_stage` = 'upsert') as is_whole"
        f"{',' if cells else ''}\n    {cells}\n"
        f"  from {target.landing.full_name} where `_batch` = {batch} group by {by}\n"
        f") as changes on {on}\n"
        "when matched and changes.is_deleted then delete\n"
        f"{update}"
        "when not matched and changes.is_whole and not changes.is_deleted then"
        f" insert ({', '.join(map(quoted, keys + others))}) values ({', '.join(values)})"
    )


def landed_columns(landing: LandingTable) -> dict[str, str]:
    """The data columns of the landing table: name by lower-case name."""
    return {name.lower(): name for name in landing.data_columns()}


def last_modified_cell(name: str) -> str:
    """The last cell of a column that is not unmodified, as a struct; NULL if all are."""
    names = "transform(`_unmodified`, column -> lower(column))"
    marked = f"coalesce(array_contains({names}, {string_literal(name.lower())}), false)"
    return (
        f"max_by(named_struct('v', {quoted(name)}), `_order`)"
        f" filter (where `_stage` <> 'delete' and not {marked}) as {prefixed(name.lower())}"
    )


def prefixed(name: str) -> str:
    """The name with a prefix, to avoid conflicts with names that Delta reserves."""
    return quoted("c_" + name)
