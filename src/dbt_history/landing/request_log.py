"""The log of a landing table, with the entries that Delta has removed from it.

A landed request is known by its commit, and Delta removes commits that are older than the table's
log retention. Before that, they are copied to a table beside it, `<landing table>_requests`.

version                    0 … 30 … 60                    … 90
log of items_landing            |—————————————————————————————
items_landing_requests     ——————————————
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from functools import cached_property

from dbt_history.commit_log import Entry, read_record, restored_version
from dbt_history.landing.errors import RefusedError
from dbt_history.landing.table import (
    LOG_RETENTION,
    RETENTION,
    CatalogTable,
    LandedRecord,
    LandingTable,
    create_or_register,
    definitions,
    landed_records,
    string_literal,
)

SUFFIX = "_requests"
TYPES = {
    "table_id": "string",
    "version": "bigint",
    "at": "bigint",
    "operation": "string",
    "operationParameters": "map<string,string>",
    "userMetadata": "string",
}
SECOND = 1_000_000
# Entries are copied once the first one that is not is as old, with all later ones; at half the
# table's log retention if that is earlier.
KEEP_AFTER = 14 * 24 * 3600 * SECOND
# Of a record; not the digests of its files.
KEPT_FIELDS = ("dbt_history", "request", "batch", "landing", "table_id", "key")


@dataclass
class RequestLog:
    """The requests that were landed in a table, also those whose commits have left its log.

    `logged` are the entries of the log, newest first, as `records` has read them.
    """

    landing: LandingTable
    logged: list[Entry] = field(default_factory=list)

    def records(self) -> list[LandedRecord]:
        """The landed requests, newest first."""
        self.logged = self.landing.logs.read(self.landing.spark, self.landing.full_name)
        return list(landed_records(self.entries(), self.restored_version))

    def entries(self) -> list[Entry]:
        """The entries, newest first; those that are not in the log from the table beside it."""
        if not (oldest := self.logged[-1]["version"]):
            return self.logged
        return self.logged + [entry for entry in self.kept if entry["version"] < oldest]

    def known_since(self) -> int | None:
        """The time, in microseconds, before which requests are not known; None if all are.

        version    0 … 30    60 … 90
        known      ——————    ———————    since 60
        """
        entries = self.entries()
        first = entries[0]
        for entry in entries[1:]:
            if entry["version"] < first["version"] - 1:
                break
            first = entry
        return int(first["at"]) if first["version"] else None

    def keep(self) -> None:
        """Copy the entries that will leave the log, if any of them is old."""
        limit = time.time() * SECOND - self.keep_after()
        if self.logged[-1]["at"] > limit:
            return
        last = self.kept[0]["version"] if self.kept else -1
        missing = [entry for entry in self.logged if entry["version"] > last]
        if not missing or missing[-1]["at"] > limit:
            return
        rows = [
            (
                self.table_id,
                entry["version"],
                entry["at"],
                entry["operation"],
                self.kept_parameters(entry),
                kept_record(entry),
            )
            for entry in missing
        ]
        spark, table = self.landing.spark, self.table
        if not spark.catalog.tableExists(table.full_name):
            create_or_register(
                spark, table.schema, table.name, f"({definitions(TYPES)}) using delta", ""
            )
        frame = spark.createDataFrame(rows, definitions(TYPES))
        frame.write.format("delta").mode("append").saveAsTable(table.full_name)

    def keep_after(self) -> int:
        """The age, in microseconds, from which an entry is copied."""
        retention = self.landing.properties().get(RETENTION, LOG_RETENTION)
        if retention == LOG_RETENTION:
            return KEEP_AFTER
        interval = f"cast({string_literal(retention)} as interval)"
        rows = self.landing.spark.sql(f"select unix_micros(timestamp_micros(0) + {interval})")
        return min(KEEP_AFTER, int(rows.collect()[0][0]) // 2)

    @property
    def table(self) -> CatalogTable:
        return CatalogTable(
            self.landing.spark, self.landing.schema, self.landing.name + SUFFIX, self.landing.logs
        )

    @cached_property
    def kept(self) -> list[Entry]:
        """The copied entries, newest first. Raises RefusedError if the table is another one."""
        spark, table = self.landing.spark, self.table
        if not spark.catalog.tableExists(table.full_name):
            return []
        names = {name.lower() for name in spark.table(table.full_name).columns}
        if lacking := [name for name in TYPES if name.lower() not in names]:
            raise RefusedError(
                f"{table} exists and has no column {', '.join(lacking)}; nothing was landed."
                f" Rename it: its name is used for the requests of {self.landing}"
            )
        rows = spark.sql(
            f"select * from {table.full_name} where table_id = {string_literal(self.table_id)}"
        ).collect()
        # Two processes may have copied the same entries.
        by_version = {row["version"]: row.asDict() for row in rows}
        return [by_version[version] for version in sorted(by_version, reverse=True)]

    @cached_property
    def table_id(self) -> str:
        """Delta's id: a later table of the same name has another."""
        return self.landing.table_id([])

    def restored_version(self, entry: Entry) -> int:
        return restored_version(self.landing.spark, self.landing.full_name, entry)

    def kept_parameters(self, entry: Entry) -> dict[str, str]:
        """The parameters; of a restore to a time, the version, which only the log's files tell."""
        if entry["operation"] == "RESTORE":
            return {"version": str(self.restored_version(entry))}
        return dict(entry["operationParameters"] or {})


def kept_record(entry: Entry) -> str | None:
    record = read_record(entry["userMetadata"])
    if record is None:
        return None
    return json.dumps({name: record[name] for name in KEPT_FIELDS if name in record})
