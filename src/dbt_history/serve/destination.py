"""The operations behind the service's calls: one at a time per table, and idempotent."""

from __future__ import annotations

import json
import logging
import re
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from dbt_history.commit_log import (
    CommitLogs,
    Entry,
    batch_number,
    is_other_key,
    is_overwrite,
    normalized,
    read_log,
    read_record,
    restored_version,
    with_undone,
)
from dbt_history.landing.errors import BusyError, RefusedError, first_line
from dbt_history.landing.files import Limits
from dbt_history.landing.land import Landed, land
from dbt_history.landing.request import START, Column, Request, parse_request
from dbt_history.landing.table import quoted, string_literal
from dbt_history.serve import live
from dbt_history.serve.engine import Engine
from dbt_history.serve.skipped import Skipped, skipped_samples
from dbt_history.serve.tables import LAST_BATCH, Target, check_names, is_history
from dbt_history.session import new_session

log = logging.getLogger("dbt_history.serve")

SOURCE = "request"
COMPACT_EVERY = 100
SKIPPED = re.compile(r"\b([1-9]\d*) skipped")
# Whether the client of the current call still waits for its answer.
CLIENT_WAITS: ContextVar[Callable[[], bool]] = ContextVar("CLIENT_WAITS", default=lambda: True)


@dataclass(frozen=True)
class Written:
    """What a batch did. `warning` is empty unless rows were skipped."""

    text: str
    warning: str = ""


@dataclass(frozen=True)
class Numbers:
    """The greatest batch number in a table's log, `taken`, and the last batch that is applied.

    Batches that a later RESTORE or overwrite undid are not applied. Those of a history table are
    pending, as `last_batch()` says in the model. Landed rows of a table without history are deleted
    once they are applied, so there `check_undone` refuses. `undone_key` is the key that they were
    applied with, as RESTORE sets back the table's own; none if they had several. `undone_changes`
    are the changes of the table that were undone together with one of them.

        version    1    2    3    4             5
        commit     a    b    c    restore to 1  OPTIMIZE     c is taken, a applied, b, c undone
    """

    has_history: bool
    taken: int
    applied: int
    undone: tuple[int, ...] = ()
    undone_key: tuple[str, ...] | None = ()
    undone_changes: tuple[str, ...] = ()


@dataclass
class Destination:
    """The tables that the service writes. `root` is the folder that must contain all files.

    After every `compact_every` batches a table is compacted between its calls; 0 is never.

    Calls for one table are serialized. Calls for different tables run at the same time, each in a
    Spark session of its own, because Delta takes the record of a commit from the session's
    settings. Only the runs of dbt, in the session `spark`, are one after the other.

    table a   [ land ][ dbt ]
    table b   [ land ]       [ dbt ]
    table c      [ land ][ merge ]            without history
    """

    spark: SparkSession
    root: Path
    engine: Engine
    limits: Limits = field(default_factory=Limits)
    compact_every: int = COMPACT_EVERY
    locks: dict[str, threading.Lock] = field(default_factory=dict, init=False)
    locking: threading.Lock = field(default_factory=threading.Lock, init=False)
    sessions: list[SparkSession] = field(default_factory=list, init=False)
    logs: CommitLogs = field(default_factory=CommitLogs, init=False)
    maintenance: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, "maintenance"), init=False
    )

    @contextmanager
    def exclusive(self, schema: str, *names: str) -> Iterator[list[Target]]:
        """Tables that no other call changes meanwhile, in a session that no other call uses.

        Raises BusyError if the client has left while its call waited: the client may have repeated
        the call since, and made later ones.
        """
        places = {str(Target(self.spark, schema, name)).lower() for name in names}
        with ExitStack() as stack:
            # In one order, so that two calls never wait for each other.
            for place in sorted(places):
                with self.locking:
                    lock = self.locks.setdefault(place, threading.Lock())
                stack.enter_context(lock)
            if not CLIENT_WAITS.get()():
                raise BusyError("the client has ended the call; nothing was done")
            spark = stack.enter_context(self.own_session())
            yield [Target(spark, schema, name, self.logs) for name in names]

    @contextmanager
    def own_session(self) -> Iterator[SparkSession]:
        with self.locking:
            session = self.sessions.pop() if self.sessions else None
        session = session or new_session(self.spark)
        yield session
        # Not after an error: its settings are unknown then.
        self.sessions.append(session)

    # -- batches -----------------------------------------------------------------------------------

    def write(self, document: Mapping[str, Any], *, has_period: bool) -> Written:
        """Land a request and apply it.

        Raises RefusedError if nothing was landed, or if the landed batch cannot be applied; in the
        second case the next call applies it after the cause is fixed.
        """
        request = parse_request(document, SOURCE, has_period=has_period)
        with self.exclusive(request.schema, request.table) as (target,):
            check_names(request.columns)
            numbers = self.prepare(target, request)
            landed = land(
                target.spark,
                request,
                self.root,
                target.landing,
                above=numbers.taken,
                limits=self.limits,
                # `prepare` has checked the key.
                new_key=True,
                # A call is repeated at once, not after months.
                keep_log=False,
                before_new_columns=lambda: self.apply_all(target),
            )
            if not landed.is_new and not self.is_pending(target, numbers):
                return Written(f"{landed_text(landed)}; was applied before")
            skipped: list[Skipped] = []
            last = landed.batch if landed.is_new and landed.counts else None
            result = self.apply(target, request.key, skipped, numbers, last)
        if self.compact_every and landed.batch % self.compact_every == 0:
            self.maintenance.submit(self.compact, target.schema, target.name)
        warning = "\n".join(str(found) for found in skipped)
        return Written(f"{landed_text(landed)}; {result}", warning)

    def compact(self, schema: str, name: str) -> None:
        """Combine the small files of a table and of its landing table.

        Landed rows stay: after a RESTORE of the table its batches are applied again from them.
        """
        try:
            with self.exclusive(schema, name) as (target,):
                if not target.exists():
                    return
                target.spark.sql(f"optimize {target.full_name}").collect()
                if target.landing.exists():
                    target.spark.sql(f"optimize {target.landing.full_name}").collect()
        except Exception as error:
            # The batches are applied; the next compaction does the work of this one, too.
            log.warning("%s.%s was not compacted: %s", schema, name, first_line(error))
        else:
            log.info("compacted %s.%s", schema, name)

    def close(self) -> None:
        """Finish a running compaction and drop the waiting ones."""
        self.maintenance.shutdown(cancel_futures=True)
        self.engine.close()

    def prepare(self, target: Target, request: Request) -> Numbers:
        """Make the table ready for the request; returns the numbers of its batches."""
        columns, key = request.columns, request.key
        if not target.exists():
            target.create(columns, key)
        fields = target.fields()
        if is_history(fields) != request.has_period:
            mode = "is not" if request.has_period else "is"
            raise RefusedError(f"{target} {mode} in history mode: the batch is of the other kind")
        fields = target.finish_changes(fields)
        recorded = target.key()
        if recorded != list(key):
            # Landed batches have the key of before. Without one, that of the request is theirs.
            if recorded:
                self.apply_all(target)
            target.check_new_key(key)
            fields = target.fields()
        numbers = self.numbers(target, has_history=request.has_period)
        self.check_undone(target, numbers, key)
        target.add(columns, fields)
        target.set_key(key)
        return numbers

    def numbers(self, target: Target, *, has_history: bool) -> Numbers:
        """The numbers of batches in the table's log, or recorded from a dropped landing table.

        If the log keeps no batch, those in Delta's checkpoints, as the materialization reads them.
        """
        recorded = int(target.properties().get(LAST_BATCH, "0"))
        taken, kept = [recorded], [recorded]
        # Numbers increase, so the newest commits usually suffice.
        for limit in (50, None):
            log = read_log(target.spark, target.full_name, limit)
            found = list(
                with_undone(log, partial(restored_version, target.spark, target.full_name))
            )
            for entry, is_undone in found:
                if (number := batch_number(entry["userMetadata"])) is not None:
                    taken.append(number)
                    kept += [] if is_undone else [number]
            if len(kept) > 1 or len(log) < (limit or 0):
                break
        if len(kept) == 1 and log[-1]["version"] > 0:
            taken_before, kept_before = numbers_in_checkpoints(target, found)
            taken.append(taken_before)
            kept.append(kept_before)
        applied = max(kept)
        undone = tuple(sorted({number for number in taken if number > applied}))
        # A batch that was landed and never applied may have the key that a commit alone records.
        has_later = bool(undone) and target.landing.exists()
        has_later = has_later and target.landing.last_landed() > max(taken)
        key = key_of_undone(found, undone, has_later=has_later)
        changes = undone_changes(found, undone) if undone else ()
        return Numbers(has_history, max(taken), applied, undone, key, changes)

    def check_undone(self, target: Target, numbers: Numbers, key: Sequence[str]) -> None:
        """Raises RefusedError if batches cannot be applied again from their landed rows.

        A change of mode drops the landing table, and a change of columns empties them in it, also
        for a table that somebody recreated, whose log has none of its batches. Those of a table
        without history are deleted once they are applied. With another `key` than that of before,
        a batch would end versions of other records. A batch that follows an undone change of the
        table does not fit the table from before it.
        """
        landing, undone = target.landing, numbers.undone
        is_there = landing.exists()
        emptied = landing.emptied_batches(numbers.applied) if is_there else set()
        if not undone and not emptied:
            return
        whole = landing.whole_batches(undone) if is_there and undone else set()
        if gone := sorted({*undone, *emptied} - whole):
            why = " since a change of columns or of the mode" if numbers.has_history else ""
            reason = f"its landed rows are gone{why}"
        elif numbers.undone_key is None or is_other_key(numbers.undone_key, key):
            gone, reason = list(undone), f"it had another key than {', '.join(key)}"
        elif numbers.undone_changes:
            listed = ", ".join(numbers.undone_changes)
            gone, reason = list(undone), f"so was a change of the table with it: {listed}"
        else:
            return
        listed, last = ", ".join(map(str, gone)), gone[-1]
        steps = [f"alter table {target} set tblproperties ('{LAST_BATCH}' = '{last}')"]
        if landing.exists():
            steps.insert(0, f"delete from {landing} where `_batch` <= {last}")
        what, way_out = "is landed and not in the table's log", "If the table has its rows, go"
        if set(gone) <= set(undone):
            what = "was undone by a restore or an overwrite"
            way_out = f"Restore the table to a version with batch {last}, or go"
        raise RefusedError(
            f"{target}: batch {listed} {what}, and {reason}; nothing was landed."
            f" {way_out} on without: {'; '.join(steps)}"
        )

    def apply(
        self,
        target: Target,
        key: Sequence[str],
        skipped: list[Skipped],
        numbers: Numbers,
        last: int | None = None,
    ) -> str:
        """Apply the pending batches; returns the result as text, and the skipped rows.

        `numbers` are those of the table before, and `last` is the last batch that has landed rows,
        if the caller knows it. Raises RefusedError if that batch is not applied.
        """
        if not numbers.has_history:
            count = live.apply_pending(target, key, numbers.applied, skipped)
            return f"{count} batches" if count != 1 else "1 batch"
        try:
            result = self.engine.merge(target.schema, target.name, target.landing, key)
        except RefusedError as error:
            # Earlier batches of this merge may be applied, one by one.
            applied = self.numbers(target, has_history=True).applied
            raise target.not_applied(applied, str(error)) from None
        if found := SKIPPED.search(result):
            samples = skipped_samples(target, (*key, START), f"`_batch` > {numbers.applied}")
            skipped.append(Skipped(str(target), int(found[1]), samples))
        # A suspended history, for example, holds batches back without an error.
        last = last or target.landing.last_landed()
        if self.numbers(target, has_history=True).applied < last:
            raise RefusedError(f"batch {last} of {target} is landed and was not applied: {result}")
        return result

    def apply_all(self, target: Target) -> None:
        """Apply pending batches before the table is changed."""
        if not target.landing.exists():
            return
        numbers = self.numbers(target, has_history=target.is_history())
        own = target.key()
        key = list(numbers.undone_key or own)
        self.check_undone(target, numbers, key)
        if is_other_key(key, own):
            target.check_new_key(key)
            target.set_key(key)
        if self.is_pending(target, numbers):
            self.apply(target, key, [], numbers)

    def is_pending(self, target: Target, numbers: Numbers) -> bool:
        """Whether batches are landed that are not applied; `numbers` are those of the table."""
        landing = target.landing
        if not landing.exists():
            return False
        return landing.last_batch(landing.records()) > numbers.applied

    def drop_landing(self, target: Target) -> None:
        """Drop the landing table before a change of mode; batch numbers continue."""
        if target.landing.exists():
            self.apply_all(target)
            numbers = self.numbers(target, has_history=target.is_history())
            target.set_properties({LAST_BATCH: str(numbers.taken)})
            target.landing.drop()

    # -- tables ------------------------------------------------------------------------------------

    def describe(self, schema: str, name: str) -> list[tuple[Column, bool]] | None:
        target = Target(self.spark, schema, name)
        return target.columns() if target.exists() else None

    def create(self, schema: str, name: str, columns: Sequence[Column], key: Sequence[str]) -> str:
        """Create a table. Raises RefusedError if it exists and is not an identical empty table."""
        check_names(columns)
        with self.exclusive(schema, name) as (target,):
            is_new = not target.exists()
            if is_new:
                target.create(columns, key)
            if not target.matches(columns, key):
                raise RefusedError(f"{target} exists already")
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
        """Delete or mark the rows that were synced before `at`; do nothing without a table."""
        with self.exclusive(schema, name) as (target,):
            if not target.exists():
                return "does not exist; nothing to do"
            self.apply_all(target)
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
        """An existing table for an exclusive change, with all batches applied."""
        with self.exclusive(schema, name) as (target,):
            self.make_ready(target)
            yield target

    def make_ready(self, target: Target) -> None:
        """Complete changes and apply all batches. Raises RefusedError without a table."""
        if not target.exists():
            raise RefusedError(f"table {target} does not exist")
        target.finish_changes(target.fields())
        self.apply_all(target)


def numbers_in_checkpoints(target: Target, log: Sequence[tuple[Entry, bool]]) -> tuple[int, int]:
    """The greatest batch number in the checkpoints, and the greatest that is applied; 0 for none.

    For a `log` whose commits of batches have expired; Delta keeps transaction ids. A restore does
    not remove them, so after one only the checkpoints up to its version count.

    version   2         10             11           12          13
    commit    batch 1   checkpoint: 1  restore to 10   OPTIMIZE  checkpoint: 1
    """
    spark, name = target.spark, target.full_name
    detail = spark.sql(f"describe detail {name}").collect()[0]
    pattern = f"^dbt_history:(live:{detail['id']}|.+:{detail['id']}:[0-9]+)$"
    path = f"{detail['location']}/_delta_log/*.checkpoint*.parquet"
    rows = spark.sql(
        "select cast(left(_metadata.file_name, 20) as bigint), max(txn.version)"
        f" from parquet.{quoted(path)} where txn.appId rlike {string_literal(pattern)} group by 1"
    ).collect()
    present = [entry for entry, is_undone in log if not is_undone]
    if any(
        is_overwrite(entry["operation"], entry["operationParameters"] or {}) for entry in present
    ):
        latest = -1
    else:
        restores = (entry for entry in present if entry["operation"] == "RESTORE")
        latest = min(
            (restored_version(spark, name, entry) for entry in restores),
            default=log[0][0]["version"],
        )
    taken = max((row[1] for row in rows), default=0)
    return taken, max((row[1] for row in rows if row[0] <= latest), default=0)


def key_of_undone(
    log: Iterable[tuple[Entry, bool]], undone: Sequence[int], *, has_later: bool
) -> tuple[str, ...] | None:
    """The key that the newest commits of undone batches record; None if they record several.

    `log` has the commits, newest first, and whether they were undone. Empty if no key is recorded.
    With later landed batches, `has_later`, a change of the key counts, too.

    version   1              2        3                   4        5
    commit    batch 1, id    key a    batch 2, key a      key b    restore to 1        batch 2: a
    """
    keys: dict[tuple[str, ...], tuple[str, ...]] = {}
    missing = set(undone)
    for entry, is_undone in log:
        if not missing:
            break
        record = read_record(entry["userMetadata"]) or {}
        number, key = record.get("batch"), record.get("key")
        if is_undone and key and (has_later or number in missing):
            keys.setdefault(normalized(key), tuple(key))
        missing.discard(number)
    return next(iter(keys.values()), ()) if len(keys) < 2 else None


def undone_changes(log: Iterable[tuple[Entry, bool]], undone: Collection[int]) -> tuple[str, ...]:
    """The migrations, renames and drops of columns undone together with a batch, oldest first.

    `log` has the commits, newest first, and whether they were undone; `undone` are the batches.

    version   10        11       12        13              14        15        16
    commit    batch 5   rename   batch 6   restore to 10   batch 7   batch 8   restore to 14
    undone              -----------------                            -------
    """
    found: list[str] = []
    for is_undone, part in groupby(log, lambda item: item[1]):
        entries = [entry for entry, _ in part] if is_undone else []
        if any(batch_number(entry["userMetadata"]) in undone for entry in entries):
            found += [change for entry in entries if (change := change_of(entry))]
    return tuple(reversed(found))


def change_of(entry: Entry) -> str:
    """What a migration, or a rename or drop of a column is called; empty for other commits."""
    version, operation = entry["version"], entry["operation"]
    text = entry["userMetadata"] or ""
    if '"history_migration"' in text:
        with suppress(ValueError, KeyError, TypeError):
            return f"{json.loads(text)['history_migration']['operation']} (version {version})"
    moves = operation == "RENAME COLUMN" or operation.startswith("DROP COLUMN")
    return f"{operation} (version {version})" if moves else ""


def landed_text(landed: Landed) -> str:
    if not landed.is_new:
        return f"landed before as batch {landed.batch}"
    return f"landed as batch {landed.batch} ({sum(landed.counts.values()):,} rows)"
