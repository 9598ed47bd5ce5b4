"""What a table's own log tells: its batches, and with which of them a version came."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dbt_history.timeline.versions import Version

# What a version of the table is about: its record, its start, and which of those that start there.
Identity = tuple[tuple[str, ...], int, int]
WITHOUT_ROWS = (
    "OPTIMIZE",
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
    """One commit: its version of the table, time (microseconds since 1970 UTC), batch and counts.

    batch is None where the commit carries no number: another tool, or a batch without one.
    """

    version: int
    at: int
    operation: str
    batch: int | None = None
    is_ours: bool = False
    added: int = 0
    closed: int = 0
    removed: int = 0

    @property
    def label(self) -> str:
        return f"batch {self.batch}" if self.batch is not None else f"commit {self.version}"

    @property
    def changes_rows(self) -> bool:
        return self.added + self.closed + self.removed > 0 or (
            not self.operation.startswith(WITHOUT_ROWS) and self.operation != "CREATE TABLE"
        )


def own_record(metadata: str | None) -> dict[str, Any] | None:
    """The JSON record that dbt_history writes into its commits; None for anything else."""
    if not metadata or not metadata.startswith("{") or "dbt_history" not in metadata:
        return None
    try:
        record = json.loads(metadata)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def recorded_key(metadata: Iterable[str | None]) -> tuple[str, ...]:
    """The key that a mirror's or an event table's commits record, newest first; else empty."""
    for text in metadata:
        about = (own_record(text) or {}).get("about") or {}
        key = (about.get("hx") or about.get("events") or {}).get("key")
        if key:
            return tuple(key)
    return ()


def read_commit(entry: Mapping[str, Any]) -> Commit:
    """A row of DESCRIBE HISTORY, its time as microseconds in `at`."""
    metrics = entry["operationMetrics"] or {}
    record = own_record(entry["userMetadata"])

    def count(*names: str) -> int:
        return next((int(metrics[name]) for name in names if metrics.get(name)), 0)

    return Commit(
        version=int(entry["version"]),
        at=int(entry["at"]),
        operation=entry["operation"],
        batch=None if record is None or record.get("batch") is None else int(record["batch"]),
        is_ours=record is not None and "model" in record,
        added=count("numTargetRowsInserted", "numOutputRows"),
        closed=count("numTargetRowsUpdated", "numUpdatedRows"),
        removed=count("numTargetRowsDeleted", "numDeletedRows"),
    )


def batches(commits: Iterable[Commit]) -> list[Commit]:
    """The commits of ours that changed rows, oldest first."""
    return sorted(
        (commit for commit in commits if commit.is_ours and commit.changes_rows),
        key=lambda commit: commit.version,
    )


def identity(version: Version) -> Identity:
    return version.key, version.since, version.order


def with_arrivals(
    versions: Sequence[Version],
    seen: Mapping[int, set[Identity]],
    commits: Sequence[Commit],
) -> list[Version]:
    """Say of each version when it came, and whether that was late.

    `seen`: what stood in the table after each commit, by the commit's number. The oldest commit
    there is only knows that something was there with it or before.

        axis       T1       T4          T5
        commit 4   [ abc ---------------[ def ---      uvw arrives after def, which starts later:
        commit 5   [ abc ---[ uvw ------[ def ---      it is late
    """
    known = [
        commit for commit in sorted(commits, key=lambda one: one.version) if commit.version in seen
    ]
    arrived: list[Version] = []
    for version in versions:
        me = identity(version)
        places = [place for place, commit in enumerate(known) if me in seen[commit.version]]
        if not places:
            arrived.append(version)
            continue
        first = places[0]
        before = seen[known[first - 1].version] if first else set()
        is_late = any(key == version.key and since > version.since for key, since, _ in before)
        label = known[first].label
        is_oldest = first == 0 and known[0].version > 1
        arrived.append(
            replace(version, arrived=f"{label} or before" if is_oldest else label, is_late=is_late)
        )
    return arrived
