"""The log of a Delta table, and the records that dbt_history writes into its commits.

A record is a JSON object in a commit's user metadata; its key `dbt_history` names the writer's
version.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark's own guide uses

from dbt_history import __version__

# The setting of a session that gives its commits a record.
USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"

# One of these is in the message of an error if a concurrent writer committed first.
CONFLICTS = ("DELTA_CONCURRENT", "ConcurrentTransaction", "ConcurrentAppend", "MetadataChanged")

# A row of DESCRIBE HISTORY, with its time in `at` as microseconds since 1970 UTC.
Entry = Mapping[str, Any]


def is_conflict(error: Exception) -> bool:
    """Whether a statement failed because another writer committed first."""
    return any(name in str(error) for name in CONFLICTS)


def new_record(**fields: Any) -> dict[str, Any]:
    return {"dbt_history": __version__, **fields}


def read_record(metadata: str | None) -> dict[str, Any] | None:
    """The record in a commit's user metadata; None if dbt_history did not write it."""
    if not metadata or not metadata.startswith("{") or "dbt_history" not in metadata:
        return None
    try:
        record = json.loads(metadata)
    except ValueError:
        return None
    return record if isinstance(record, dict) and "dbt_history" in record else None


def batch_number(metadata: str | None) -> int | None:
    """The batch number in a commit's record; None for other commits and unnumbered batches."""
    number = (read_record(metadata) or {}).get("batch")
    return number if isinstance(number, int) else None


def recorded_key(records: Iterable[Mapping[str, Any] | None]) -> tuple[str, ...]:
    """The key that the newest commits of a mirror or an event table record; empty if none does."""
    for record in records:
        about = (record or {}).get("about") or {}
        key = (about.get("hx") or about.get("events") or {}).get("key")
        if key:
            return tuple(key)
    return ()


def normalized(key: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(name.lower() for name in key))


def is_other_key(one: Iterable[str], other: Iterable[str]) -> bool:
    """Whether two recorded keys differ; one that is not recorded does not."""
    before, after = normalized(one), normalized(other)
    return bool(before) and bool(after) and before != after


def read_log(spark: SparkSession, table: str, limit: int | None = None) -> list[Entry]:
    """The commits of a table, newest first; at most `limit`. `table` is a quoted name."""
    newest = f" limit {limit}" if limit else ""
    log = spark.sql(f"describe history {table}{newest}")
    return [row.asDict() for row in log.withColumn("at", F.unix_micros("timestamp")).collect()]


# The number of commits that a table that was read before usually has fewer of since then.
NEWEST = 20
REMEMBERED = ("version", "at", "operation", "operationParameters", "userMetadata")
# The seconds after which a log is read as a whole again.
REMEMBERED_FOR = 24 * 3600


@dataclass
class CommitLogs:
    """Logs of tables, for a process that reads them again and again.

    Of a log that was read before, only the newest commits are read, if the last known commit is
    among them and the same. Otherwise, for example of a new table with this name, all are read.

    known     0  1  2  3  4
    newest          2  3  4  5  6    4 is the same in both, so the log is 0 1 and 2 to 6

    A log is forgotten a day after it was read as a whole, with the commits that Delta has removed
    since, and the logs of tables that were dropped.
    """

    # By table: when its log was read as a whole, and the commits.
    known: dict[str, tuple[float, list[Entry]]] = field(default_factory=dict)

    def read(self, spark: SparkSession, table: str) -> list[Entry]:
        """The commits of a table, newest first, with the columns `REMEMBERED`.

        The records are without the digests of files, which are most of their size.
        """
        self.forget()
        read_at, known = self.known.get(table, (0.0, []))
        found = _remembered(read_log(spark, table, NEWEST)) if known else []
        if known and known[0] in found:
            # Fewer commits than asked for are the whole log: older ones were cleaned up.
            oldest = found[-1]["version"] if len(found) == NEWEST else 0
            found += [entry for entry in known if entry["version"] < oldest]
        else:
            read_at = time.monotonic()
            found = _remembered(read_log(spark, table))
        self.known[table] = read_at, found
        return found

    def forget(self) -> None:
        # A copy, because calls for several tables read at the same time.
        for table, (read_at, _) in list(self.known.items()):
            if time.monotonic() - read_at > REMEMBERED_FOR:
                self.known.pop(table, None)


def _remembered(log: Iterable[Entry]) -> list[Entry]:
    return [
        {name: entry[name] for name in REMEMBERED}
        | {"userMetadata": without_digests(entry["userMetadata"])}
        for entry in log
    ]


def without_digests(metadata: str | None) -> str | None:
    record = read_record(metadata)
    if not record or "digests" not in record:
        return metadata
    return json.dumps({name: value for name, value in record.items() if name != "digests"})


def with_undone(
    entries: Iterable[Entry], restored_version: Callable[[Entry], int]
) -> Iterator[tuple[Entry, bool]]:
    """Each entry, newest first, and whether a later restore or overwrite removed its rows.

    version   0       1    2    3         4             5
              create  a    b    optimize  restore to 1  c        b is undone
    """
    resume_at: int | None = None
    is_reset = False
    for entry in entries:
        version, operation = entry["version"], entry["operation"]
        is_undone = is_reset or (resume_at is not None and version > resume_at)
        if not is_undone and operation == "RESTORE":
            resume_at = restored_version(entry)
        elif not is_undone and is_overwrite(operation, entry["operationParameters"] or {}):
            is_reset = True
        yield entry, is_undone


def is_overwrite(operation: str, parameters: Mapping[str, str]) -> bool:
    """Whether the operation removes all rows of earlier commits."""
    is_whole = operation == "WRITE" and parameters.get("mode") == "Overwrite"
    return (
        (is_whole and not parameters.get("predicate"))
        or operation in ("TRUNCATE", "CLONE")
        or "REPLACE TABLE" in operation
    )


def restored_version(spark: SparkSession, table: str, entry: Entry) -> int:
    """The version that a RESTORE went back to.

    A restore to a timestamp does not record it: the log has the time in the zone of the JVM that
    wrote it, and Delta reads it in the session's zone. It is the newest version with the same
    files.
    """
    version = int(entry["version"])
    named = entry["operationParameters"].get("version")
    if named and str(named).isdigit():
        return int(named)
    location = spark.sql(f"describe detail {table}").collect()[0]["location"]
    file = "struct<path: string, deletionVector: struct<pathOrInlineDv: string, offset: int>>"
    rows = spark.sql(
        "select version, to_json(coalesce(action.add, action.remove)) as file,"
        " action.add is not null as is_added from (select"
        " cast(left(_metadata.file_name, 20) as bigint) as version,"
        f" from_json(value, 'add {file}, remove {file}') as action"
        f" from text.`{location}/_delta_log/[0-9]*.json`"
        " where _metadata.file_name rlike '^[0-9]{20}[.]json$') as actions"
        f" where version <= {version} and coalesce(action.add, action.remove) is not null"
    ).collect()
    return same_files_before(version, [(row[0], row[1], row[2]) for row in rows])


def same_files_before(version: int, changes: Iterable[tuple[int, str, bool]]) -> int:
    """The newest version before `version` with the same files; 0 if there is none.

    `changes` are (version, file, whether the version adds or removes it).
    """
    by_version: dict[int, list[tuple[str, bool]]] = {}
    for number, file, is_added in changes:
        by_version.setdefault(number, []).append((file, is_added))
    final: dict[str, bool] = {}
    different: set[str] = set()
    for candidate in range(version - 1, -1, -1):
        for file, is_added in by_version.get(candidate + 1, []):
            if final.setdefault(file, is_added) == is_added:
                different.add(file)
            else:
                different.discard(file)
        if not different:
            return candidate
    return 0
