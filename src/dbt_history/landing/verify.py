"""Compares the batches of a landing table with what their commits recorded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from dbt_history.commit_log import (
    batch_number,
    read_log,
    read_record,
    restored_version,
    with_undone,
)
from dbt_history.landing.errors import FileError, RefusedError
from dbt_history.landing.files import digest_of, path_below
from dbt_history.landing.table import LandingTable

MISSING = "does not exist"


@dataclass(frozen=True)
class Unknown:
    """A batch with rows that no commit in the log records, so that nothing can be compared."""

    batch: int
    is_as_landed = True

    def __str__(self) -> str:
        return f"{'unknown':<8}batch {self.batch}: its commit is no longer in the log"


@dataclass(frozen=True)
class Verified:
    """A batch: its files by the digest in the commit, and its rows by the commit's metrics.

    `changed` names files that have another content now, or cannot be read. Files that are gone are
    only counted, because writers remove them. `rows` is 0 if the batch's rows were deleted, which
    is allowed once they are applied.
    """

    batch: int
    same: int
    missing: int
    changed: list[str] = field(default_factory=list)
    rows: int = 0
    landed_rows: int = 0

    @property
    def is_as_landed(self) -> bool:
        return not self.changed and self.rows in (0, self.landed_rows)

    def __str__(self) -> str:
        parts = [f"{self.same} of {self.same + self.missing + len(self.changed)} files as landed"]
        parts += [f"{self.missing} missing"] if self.missing else []
        parts += [f"changed: {', '.join(self.changed)}"] if self.changed else []
        parts += [f"{self.rows:,} of {self.landed_rows:,} landed rows"]
        return f"{'ok' if self.is_as_landed else 'failed':<8}batch {self.batch}: " + ", ".join(
            parts
        )


def verify_landing(table: LandingTable, root: Path) -> Iterator[Verified | Unknown]:
    """The batches with rows that the log does not name, then those in it that were not undone.

    Both oldest first. Raises RefusedError.
    """
    if not table.exists():
        raise RefusedError(f"table {table} does not exist")
    spark = table.spark
    counted = spark.sql(f"select `_batch`, count(*) from {table.full_name} group by 1").collect()
    rows = {row[0]: row[1] for row in counted}
    entries = read_log(spark, table.full_name)
    found = list(with_undone(entries, partial(restored_version, spark, table.full_name)))
    named = {batch_number(entry["userMetadata"]) for entry in entries}
    yield from (Unknown(batch) for batch in sorted(rows.keys() - named))
    for entry, is_undone in reversed(found):
        record = read_record(entry["userMetadata"])
        if is_undone or record is None or "digests" not in record:
            continue
        states = {name: state_of(root, name, digest) for name, digest in record["digests"]}
        kinds = Counter(states.values())
        yield Verified(
            batch=int(record["batch"]),
            same=kinds["same"],
            missing=kinds["missing"],
            changed=[name for name, state in states.items() if state == "changed"],
            rows=rows.get(int(record["batch"]), 0),
            landed_rows=int(entry["operationMetrics"].get("numOutputRows", 0)),
        )


def state_of(root: Path, name: str, digest: str) -> str:
    """Whether a file is the `same`, `changed` or `missing`."""
    try:
        found, _ = digest_of(str(root), path_below(root, name))
    except FileError as error:
        return "missing" if str(error) == MISSING else "changed"
    return "same" if found == digest else "changed"
