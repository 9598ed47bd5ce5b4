"""Lands a request: checks it, reads its files in parallel, appends the rows in one commit, once."""

from __future__ import annotations

import hashlib
import json
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import reduce
from pathlib import Path

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from dbt_history.commit_log import is_conflict, is_other_key, new_record
from dbt_history.landing import rows
from dbt_history.landing.errors import BusyError, FileError, LandingError, Problem, RefusedError
from dbt_history.landing.files import Limits, StoredFile, digest_of, path_below
from dbt_history.landing.request import Request, RequestFile
from dbt_history.landing.request_log import SECOND, RequestLog
from dbt_history.landing.rows import Source
from dbt_history.landing.table import (
    LandedRecord,
    LandingTable,
    refuse_iceberg,
    staged_schema,
)

ATTEMPTS = 6
MAX_THREADS = 8
# A serialized function has some 300 bytes per file.
FILES_PER_FUNCTION = 200
LANDING_ERROR = "dbt_history.landing.errors."

# Called with the number of files read and the number of all files.
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Landed:
    """The result of landing a request. `is_new` is false if it was landed before."""

    request: Request
    table: str
    batch: int
    is_new: bool
    counts: dict[str, int]
    notes: list[str] = field(default_factory=list)
    is_dry: bool = False


def land(
    spark: SparkSession,
    request: Request,
    root: Path,
    table: LandingTable,
    *,
    batch: int | None = None,
    above: int = 0,
    new_key: bool = False,
    keep_log: bool = True,
    limits: Limits | None = None,
    dry_run: bool = False,
    progress: Progress | None = None,
    before_new_columns: Callable[[], object] | None = None,
) -> Landed:
    """Land one request completely, or raise RefusedError (nothing was landed) or BusyError.

    `root` is the folder that must contain every file of the request. `batch` is its number; None
    assigns the next one, which is greater than `above`. A request that was landed before changes
    nothing. `new_key` accepts a key that differs from that of the batch before.
    `keep_log` keeps the requests whose commits leave the table's log in a table beside it.
    `before_new_columns` is called before columns are added to an existing table: they are
    NULL in the rows landed before, and unmodified in update rows.
    """
    refuse_iceberg(spark)
    sources = find_sources(request, root, limits or Limits())
    fingerprint = fingerprint_of(request, sources)
    is_there = table.exists()
    missing = table.check(request.columns)
    log = RequestLog(table)
    read_records = log.records if keep_log else table.records
    records = read_records() if is_there else []
    known = find_landed(records, fingerprint)
    if known is not None:
        return Landed(request, str(table), known.batch, False, {})
    if not new_key:
        check_key(request, table, records)
    if is_there and keep_log and (since := log.known_since()) is not None:
        check_age(request, table, since)
        above = max(above, table.last_landed())
    number = next_batch(table, records, batch, above)
    if dry_run:
        counts = check_all(spark, request, sources, progress)
        return Landed(request, str(table), number, True, counts, is_dry=True)
    check_heads(request, sources)
    if missing and before_new_columns:
        before_new_columns()
    notes = table.prepare(request.columns) if missing or not is_there else []
    # A table registered from leftover files may already contain this request.
    records = records or read_records()
    if keep_log:
        log.keep()
    writer = Writer(spark, request, sources, table, fingerprint, progress, read_records, new_key)
    return replace(writer.write(records, batch, above), notes=notes)


def find_sources(request: Request, root: Path, limits: Limits) -> list[Source]:
    """The files of the request, found below `root` and hashed. Raises RefusedError."""
    problems: list[Problem] = []

    def find(item: tuple[int, RequestFile]) -> Source | None:
        place, file = item
        try:
            path = path_below(root, file.name)
            digest, size = digest_of(str(root), path)
        except FileError as error:
            problems.append(Problem(str(error), file.name))
            return None
        stored = StoredFile(file.name, str(root), path, request.compression, file.key, digest, size)
        return Source(
            file=stored,
            stage=file.stage,
            place=place,
            columns=request.columns,
            key=request.key,
            markers=request.markers,
            batch=0,
            limits=limits,
            has_period=request.has_period,
        )

    with ThreadPoolExecutor(MAX_THREADS) as pool:
        found = list(pool.map(find, enumerate(request.files, 1)))
    if problems:
        raise refusal(request, problems)
    return [source for source in found if source is not None]


def refusal(request: Request, problems: Sequence[Problem]) -> RefusedError:
    return RefusedError(f"{request.source}: refused; nothing of it was landed", problems)


def fingerprint_of(request: Request, sources: Sequence[Source]) -> str:
    """Identifies a request by its content and the content of its files, without encryption keys."""
    files = [[source.file.name, source.stage, source.file.digest] for source in sources]
    content = json.dumps([request.describe(), files], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()


def find_landed(records: Sequence[LandedRecord], fingerprint: str) -> LandedRecord | None:
    for record in records:
        if record.is_present and record.request == fingerprint:
            return record
    return None


def check_key(request: Request, table: LandingTable, records: Sequence[LandedRecord]) -> None:
    """Raises RefusedError if the key is not that of the newest landed request that records one.

    batch 1   key id           (1, north)               a history by id
    batch 2   key id, region   (1, north)  (1, south)   two records, of which it would keep one
    """
    last = next((record for record in records if record.is_present and record.key), None)
    if last and is_other_key(last.key, request.key):
        raise RefusedError(
            f"{request.source}: its key is {', '.join(request.key)}, that of batch {last.batch} of"
            f" {table} is {', '.join(last.key)}; nothing was landed. A history by the former key"
            " would merge the rows of several records. If only a column was renamed, build the"
            " history with what is landed, then land the request with --new-key (in Python"
            " new_key=True), and after rename_column change the history's unique_key. Else land a"
            " full sync in another table, for another history: landed deletions lack the new key"
        )


def check_age(request: Request, table: LandingTable, since: int) -> None:
    """Raises RefusedError for a file older than `since`, before which requests are not known.

    It may have been landed: a later number would make an old request the newest.
    """
    try:
        modified = Path(request.source).stat().st_mtime
    except (OSError, ValueError):
        return
    if modified * SECOND < since:
        day = datetime.fromtimestamp(since / SECOND, UTC).date()
        raise RefusedError(
            f"{request.source}: is older than {day}, and the earlier commits of {table} are no"
            " longer in its log, so it is not known whether it was landed; nothing was landed."
            " If it was, move it to another folder; if not, give the file a new time (touch)"
        )


def next_batch(
    table: LandingTable, records: list[LandedRecord], batch: int | None, above: int
) -> int:
    """The batch's number. Raises RefusedError unless it exceeds all numbers in use."""
    last = table.last_batch(records) if records or table.exists() else 0
    if batch is None:
        return max(last, above) + 1
    if batch <= last:
        raise RefusedError(
            f"batch {batch} is not greater than {last}, the last batch of {table};"
            " nothing was landed"
        )
    return batch


def check_heads(request: Request, sources: Sequence[Source]) -> None:
    """Check the start of every file before the table is changed."""
    with ThreadPoolExecutor(MAX_THREADS) as pool:
        found = list(pool.map(rows.check_head, sources))
    problems = [problem for problems in found for problem in problems]
    if problems:
        raise refusal(request, problems)


def staged(spark: SparkSession, request: Request, sources: Sequence[Source]) -> DataFrame:
    """The rows of all files."""
    schema = staged_schema(request.columns)
    if not sources:
        return spark.createDataFrame([], schema)
    return read_each(spark, sources, rows.staged_rows, schema)


def read_each(
    spark: SparkSession,
    sources: Sequence[Source],
    read: Callable[[Source], Iterator[pa.RecordBatch]],
    schema: StructType,
) -> DataFrame:
    """What a function returns for each file, one task per file.

    Encryption keys are in the serialized functions only, so query plans do not show them. Spark
    writes a function of more than 1 MB to its temporary folder, so one has a part of the files.
    """
    starts = range(0, len(sources), FILES_PER_FUNCTION)
    parts = (sources[first : first + FILES_PER_FUNCTION] for first in starts)
    frames = (read_part(spark, part, read, schema) for part in parts)
    return reduce(lambda before, frame: before.unionAll(frame), frames)


def read_part(
    spark: SparkSession,
    part: Sequence[Source],
    read: Callable[[Source], Iterator[pa.RecordBatch]],
    schema: StructType,
) -> DataFrame:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for place in batch.column(0).to_pylist():
                yield from read(part[place])

    count = len(part)
    return spark.range(0, count, 1, count).mapInArrow(run, schema)


def report(source: Source) -> Iterator[pa.RecordBatch]:
    """The place of a file, its number of rows and its problems, as JSON."""
    reading = rows.checked(source)
    found = [[p.text, p.file, p.line, p.column] for p in reading.problems]
    text = json.dumps([source.place, reading.rows, found])
    yield pa.RecordBatch.from_pydict({"report": [text]})


def check_all(
    spark: SparkSession, request: Request, sources: Sequence[Source], progress: Progress | None
) -> dict[str, int]:
    """Read all files completely and report all problems. Returns the number of rows by stage."""
    if not sources:
        return {}
    reports = read_each(spark, sources, report, StructType().add("report", "string"))
    with shown_progress(spark, len(sources), progress):
        found = sorted(json.loads(row[0]) for row in reports.collect())
    problems = [Problem(*values) for _, _, listed in found for values in listed]
    if problems:
        raise refusal(request, problems)
    counts: dict[str, int] = {}
    stages = {source.place: source.stage for source in sources}
    for place, number, _ in found:
        stage = stages[place]
        counts[stage] = counts.get(stage, 0) + number
    return counts


@dataclass(frozen=True)
class Writer:
    """Writes a request's rows; retries with the next number if another writer took it."""

    spark: SparkSession
    request: Request
    sources: Sequence[Source]
    table: LandingTable
    fingerprint: str
    progress: Progress | None
    read_records: Callable[[], list[LandedRecord]]
    new_key: bool

    def write(self, records: list[LandedRecord], wanted: int | None, above: int) -> Landed:
        for attempt in range(ATTEMPTS):
            if attempt:
                records = self.read_records()
            known = find_landed(records, self.fingerprint)
            if known is not None:
                return Landed(self.request, str(self.table), known.batch, False, {})
            if not self.new_key:
                check_key(self.request, self.table, records)
            number = next_batch(self.table, records, wanted, above)
            if self.commit(number, self.table.table_id(records)):
                counts = self.table.count(number)
                return Landed(self.request, str(self.table), number, True, counts)
        raise BusyError(
            f"{self.request.source}: other writers changed {self.table} {ATTEMPTS} times;"
            " nothing was landed, try again"
        )

    def commit(self, number: int, table_id: str) -> bool:
        """Try once; returns False if another writer committed first."""
        landing = uuid.uuid4().hex
        record = new_record(
            landing=landing,
            request=self.fingerprint,
            batch=number,
            table_id=table_id,
            key=list(self.request.key),
            digests=[[source.file.name, source.file.digest] for source in self.sources],
        )
        listed = {column.name.lower() for column in self.request.columns}
        unlisted = tuple(name for name in self.table.data_columns() if name.lower() not in listed)
        sources = [replace(source, batch=number, unlisted=unlisted) for source in self.sources]
        data = staged(self.spark, self.request, sources)
        try:
            with shown_progress(self.spark, len(sources), self.progress):
                self.table.append(data, table_id, number, record)
        except (PySparkException, Py4JError) as error:
            if is_conflict(error):
                return False
            if LANDING_ERROR in str(error):
                # Read all files again to report every problem.
                check_all(self.spark, self.request, sources, self.progress)
                raise LandingError(
                    f"{self.request.source}: a file could not be read at first but can be read now;"
                    " nothing was landed, try again"
                ) from None
            raise
        if not any(found.landing == landing for found in self.table.records(50)):
            return False
        known = {*listed, *(name.lower() for name in unlisted)}
        self.keep_values(
            number, [name for name in self.table.data_columns() if name.lower() not in known]
        )
        return True

    def keep_values(self, number: int, added: Sequence[str]) -> None:
        """Mark columns that another writer added before the append as unmodified.

        this run      reads the columns                  append, with color NULL   color unmodified
        another run                        adds color
        """
        if not added:
            return
        for _ in range(ATTEMPTS):
            with suppress(BusyError):
                self.table.keep_values(number, added)
                return
        raise BusyError(
            f"{self.request.source}: is landed as batch {number} of {self.table}, and other writers"
            f" changed it {ATTEMPTS} times. Before the batch is applied, add {', '.join(added)} to"
            " _unmodified of its update rows"
        )


@contextmanager
def shown_progress(spark: SparkSession, total: int, progress: Progress | None) -> Iterator[None]:
    """Report every two seconds how many files are read. Not available on Spark Connect."""
    context = None
    if progress is not None:
        with suppress(PySparkException):
            context = spark.sparkContext
    if context is None or progress is None:
        yield
        return
    tracker = context.statusTracker()
    before = set(tracker.getJobIdsForGroup())
    finished = threading.Event()

    def done() -> int:
        number = 0
        for job in set(tracker.getJobIdsForGroup()) - before:
            info = tracker.getJobInfo(job)
            for stage in info.stageIds if info else []:
                found = tracker.getStageInfo(stage)
                if found is not None and found.numTasks == total:
                    number = max(number, found.numCompletedTasks)
        return number

    def report() -> None:
        while not finished.wait(2):
            progress(done(), total)

    reporter = threading.Thread(target=report, daemon=True)
    reporter.start()
    try:
        yield
    finally:
        finished.set()
        reporter.join()
