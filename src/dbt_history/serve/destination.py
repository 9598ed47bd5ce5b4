"""What the calls of the service do: one at a time, and each the same when it is repeated."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from dbt_history.landing.errors import RefusedError
from dbt_history.landing.files import Limits
from dbt_history.landing.land import Landed, land
from dbt_history.landing.request import START, Column, Request, parse_request
from dbt_history.serve import live
from dbt_history.serve.engine import Engine
from dbt_history.serve.tables import KEY, LAST, Target, check_names

SOURCE = "request"


@dataclass
class Destination:
    """The tables that the service writes. `root` is the folder that all files must lie in.

    One write at a time: dbt and the settings of a commit are the session's, which all calls share.
    """

    spark: SparkSession
    root: Path
    engine: Engine
    limits: Limits = field(default_factory=Limits)
    writing: threading.Lock = field(default_factory=threading.Lock)

    def target(self, schema: str, name: str) -> Target:
        return Target(self.spark, schema, name)

    # -- batches -----------------------------------------------------------------------------------

    def write(self, document: Mapping[str, Any], *, has_period: bool) -> str:
        """Land a request and apply it; returns what was done.

        Raises RefusedError: nothing was landed, or it was landed and cannot be applied as it is;
        then the next call applies it, once what is in its way is gone.
        """
        request = parse_request(document, SOURCE, has_period=has_period)
        target = self.target(request.schema, request.table)
        with self.writing:
            self.make_ready(target, request)
            number = self.number(target)
            landed = land(
                self.spark, request, self.root, target.landing, batch=number, limits=self.limits
            )
            is_due = landed.is_new or self.is_pending(target)
            told = self.apply(target, request.key) if is_due else "was applied before"
            if landed.is_new and landed.counts and self.last_taken(target) < landed.batch:
                raise RefusedError(
                    f"batch {landed.batch} of {target} is landed and was not applied: {told}"
                )
        return f"{landed_text(landed)}; {told}"

    def make_ready(self, target: Target, request: Request) -> None:
        columns, key = request.columns, request.key
        if not target.exists():
            target.create(columns, key)
        if target.is_history() != request.has_period:
            mode = "is" if target.is_history() else "is not"
            raise RefusedError(f"{target} {mode} in history mode: this is the other kind of batch")
        target.finish_changes()
        target.add(columns)
        if target.key() != list(key):
            self.set_key(target, key)

    def number(self, target: Target) -> int | None:
        """A batch number that neither table has seen; None where the landing table knows best."""
        taken = self.last_taken(target)
        landing = target.landing
        landed = landing.last_batch(landing.records()) if landing.exists() else 0
        return None if landed >= taken else taken + 1

    def last_taken(self, target: Target) -> int:
        """The greatest number in the table's log, or what is remembered of a landing table gone."""
        remembered = int(target.properties().get(LAST, "0"))
        # Numbers rise, so the newest commits mostly tell.
        for newest in (" limit 50", ""):
            rows = self.spark.sql(f"describe history {target.full_name}{newest}")
            numbers = [n for row in rows.select("userMetadata").collect() for n in batch_in(row[0])]
            if numbers:
                return max(remembered, *numbers)
        return remembered

    def apply(self, target: Target, key: Sequence[str]) -> str:
        """Apply what is landed and not yet applied."""
        if target.is_history():
            return self.engine.merge(target.schema, target.name, target.landing, key)
        count = live.apply_pending(target, key, self.last_taken(target))
        return f"{count} batches" if count != 1 else "1 batch"

    def settle(self, target: Target) -> None:
        """Before a table changes, what is landed for it is applied."""
        if self.is_pending(target):
            self.apply(target, target.key())

    def is_pending(self, target: Target) -> bool:
        landing = target.landing
        if not landing.exists():
            return False
        return landing.last_batch(landing.records()) > self.last_taken(target)

    def forget_landing(self, target: Target) -> None:
        """Drop the landing table of a table that is about to change its mode; numbers go on."""
        if target.landing.exists():
            self.settle(target)
            taken = self.last_taken(target)
            target.set_properties({LAST: str(taken)})
            self.spark.sql(f"drop table if exists {target.landing.full_name}")

    # -- tables ------------------------------------------------------------------------------------

    def describe(self, schema: str, name: str) -> list[tuple[Column, bool]] | None:
        target = self.target(schema, name)
        return target.columns() if target.exists() else None

    def create(self, schema: str, name: str, columns: Sequence[Column], key: Sequence[str]) -> str:
        """Create a table. Raises RefusedError if it is there, unless it is just this one, empty."""
        target = self.target(schema, name)
        check_names(columns)
        with self.writing:
            is_new = not target.exists()
            if is_new:
                target.create(columns, key)
            if not target.is_as(columns, key):
                raise RefusedError(f"{target} is there already")
            return "created" if is_new else "was created before"

    def alter(
        self, schema: str, name: str, columns: Sequence[Column], key: Sequence[str], drop: bool
    ) -> str:
        with self.changing(schema, name) as target:
            check_names(columns)
            target.alter(columns, key, drop)
        return "altered"

    def truncate(
        self, schema: str, name: str, at: str, synced_column: str, deleted_column: str | None
    ) -> str:
        """Remove or mark the rows that were synced before `at`; no table, no rows."""
        target = self.target(schema, name)
        with self.writing:
            if not target.exists():
                return "is not there; nothing to do"
            self.settle(target)
            arguments = {
                "table": str(target),
                "at": at,
                "synced_column": synced_column,
                "deleted_column": deleted_column,
            }
            self.engine.run_operation("truncate_before", arguments)
        return f"truncated before {at}"

    @contextmanager
    def changing(self, schema: str, name: str) -> Iterator[Target]:
        """The table for a change of it: there, alone, and with all batches applied."""
        target = self.target(schema, name)
        with self.writing:
            if not target.exists():
                raise RefusedError(f"there is no table {target}")
            target.finish_changes()
            self.settle(target)
            yield target

    def set_key(self, target: Target, key: Sequence[str]) -> None:
        target.set_properties({KEY: json.dumps(list(key))})


def landed_text(landed: Landed) -> str:
    if not landed.is_new:
        return f"landed before as batch {landed.batch}"
    return f"landed as batch {landed.batch} ({sum(landed.counts.values()):,} rows)"


def batch_in(metadata: str | None) -> list[int]:
    """The batch number in a commit's record, if it has one."""
    if not metadata or "batch" not in metadata:
        return []
    try:
        record = json.loads(metadata)
    except ValueError:
        return []
    number = record.get("batch") if isinstance(record, dict) and "dbt_history" in record else None
    return [number] if isinstance(number, int) else []


def record_key(columns: Sequence[tuple[Column, bool]]) -> list[str]:
    """The key of the record among a table's columns: without the start column."""
    return [column.name for column, is_key in columns if is_key and column.name.lower() != START]
