"""The batches in a table's log, and the batch that added each version."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from dbt_history.commit_log import Entry, batch_number, read_record
from dbt_history.timeline.versions import Key, Version

# Identifies a version: key, start, and order among versions with the same start.
Identity = tuple[Key, int, int]
METADATA_OPERATIONS = (
    "OPTIMIZE",
    "REORG",
    "VACUUM",
    "SET ",
    "UNSET ",
    "ADD ",
    "RENAME",
    "CHANGE",
    "ALTER",
    "UPGRADE",
)


@dataclass(frozen=True)
class Commit:
    """One commit: version, time (microseconds since 1970 UTC), batch and row counts.

    batch        the last batch in the commit; None for commits of other tools and for batches
                 without a number
    first_batch  the first batch, if the commit has several
    """

    version: int
    at: int
    operation: str
    batch: int | None = None
    is_ours: bool = False
    added: int = 0
    closed: int = 0
    removed: int = 0
    first_batch: int | None = None

    @property
    def label(self) -> str:
        if self.batch is None:
            return f"commit {self.version}"
        if self.first_batch is None:
            return f"batch {self.batch}"
        return f"batches {self.first_batch} to {self.batch}"

    @property
    def changes_rows(self) -> bool:
        return self.added + self.closed + self.removed > 0 or (
            not self.operation.startswith(METADATA_OPERATIONS) and self.operation != "CREATE TABLE"
        )


def read_commit(entry: Entry) -> Commit:
    """A commit from an entry of the log."""
    metrics = entry["operationMetrics"] or {}
    record = read_record(entry["userMetadata"])

    def count(*names: str) -> int:
        return next((int(metrics[name]) for name in names if metrics.get(name)), 0)

    return Commit(
        version=int(entry["version"]),
        at=int(entry["at"]),
        operation=entry["operation"],
        batch=batch_number(entry["userMetadata"]),
        first_batch=None if record is None else record.get("first_batch"),
        is_ours=record is not None and "model" in record,
        added=count("numTargetRowsInserted", "numOutputRows"),
        closed=count("numTargetRowsUpdated", "numUpdatedRows"),
        removed=count("numTargetRowsDeleted", "numDeletedRows"),
    )


def batches(commits: Iterable[Commit]) -> list[Commit]:
    """The commits by dbt_history that changed rows, oldest first."""
    return sorted(
        (commit for commit in commits if commit.is_ours and commit.changes_rows),
        key=lambda commit: commit.version,
    )


def identity(version: Version) -> Identity:
    return version.key, version.since, version.order


def with_arrivals(
    versions: Sequence[Version],
    present: Mapping[int, set[Identity]],
    commits: Sequence[Commit],
) -> list[Version]:
    """Set for each version the commit that added it, and whether it arrived late.

    `present` has the versions in the table after each commit, by commit version. Versions in the
    oldest commit may have been added by it or before.

        axis       T1       T4          T5
        commit 4   [ abc ---------------[ def ---      uvw arrives after def, which starts later:
        commit 5   [ abc ---[ uvw ------[ def ---      it is late
    """
    known = [
        commit
        for commit in sorted(commits, key=lambda one: one.version)
        if commit.version in present
    ]
    arrived: list[Version] = []
    for version in versions:
        own = identity(version)
        indexes = [index for index, commit in enumerate(known) if own in present[commit.version]]
        if not indexes:
            arrived.append(version)
            continue
        first = indexes[0]
        before = present[known[first - 1].version] if first else set()
        is_late = any(key == version.key and since > version.since for key, since, _ in before)
        label = known[first].label
        is_oldest = first == 0 and known[0].version > 1
        arrived.append(
            replace(version, arrived=f"{label} or before" if is_oldest else label, is_late=is_late)
        )
    return arrived
