"""Transactions of the cases and of random logs as rows of a log of writes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import SparkSession

from tests.oracle.feature_states import DROPPED, MAIN, Database, Result, sets_of, single_writes
from tests.oracle.uuids import uuid_of
from tests.support.tables import data_frame

LOG = {
    "txn": "bigint", "position": "bigint", "action": "string", "space": "string", "id": "string",
    "app_id": "string", "author": "string", "message": "string", "at": "timestamp",
    "expected_uuid": "string", "base_uuid": "string", "on_not_exists": "string",
    "on_exists": "string", "on_version_conflict": "string", "on_merge_conflict": "string",
    "rolled_back": "boolean", "mode": "string", "noop_updates": "string", "auto_purge": "boolean",
    "history": "string", "keep_states": "bigint", "resync": "boolean", "branch": "string",
    "payload": "string",
}  # fmt: skip
STRATEGIES = ("on_not_exists", "on_exists", "on_version_conflict", "on_merge_conflict")
DAY = datetime(2024, 1, 1)
PLACES = 1 << 20


def create_log_view(spark: SparkSession, rows: Iterable[dict[str, Any]], name: str) -> None:
    """Create a view of rows of a log."""
    data_frame(spark, rows, LOG).createOrReplaceTempView(name)


def number_of(txn: int, position: int) -> int:
    """The `i` of a state: the position of its write in the log."""
    return txn * PLACES + position


class Space:
    """One database of a case or a random log: the oracle, and the log rows of its transactions.

    prefix  separates its collections from those of others in one table: `prefix:collection`
    """

    def __init__(self, prefix: str, database: Database) -> None:
        self.prefix = prefix
        self.database = database
        self.rows: list[dict[str, Any]] = []
        self.numbers: dict[int, int] = {}

    def transact(self, transaction: dict[str, Any], txn: int, step: int = 0) -> Result:
        """Apply a transaction to the oracle and add it to the log as transaction `txn`."""
        time = transaction.get("time") or DAY
        time = time.astimezone(UTC).replace(tzinfo=None) if time.tzinfo else time
        writes = []
        for position, write in enumerate(single_writes(transaction["writes"])):
            self.rows.append(self._row(transaction, write, txn, position, time))
            writes.append({**write, "origin": number_of(txn, position)})
        result = self.database.transact({**transaction, "writes": writes}, step)
        if result.number is not None:
            self.numbers[result.number] = txn
        return result

    def branch(self, name: str | None) -> str:
        """A branch's name in a log that several spaces share."""
        return MAIN if name in (None, MAIN) else f"{self.prefix}.{str(name).split(DROPPED)[0]}"

    def uuid(self, n: int | None) -> str | None:
        """The UUID of state `n` of the oracle."""
        state = None if n is None else self.database.ever.get(n)
        if state is None or state.origin is None:
            return None
        time = (
            self.database.transactions[state.txn - 1].time
            if state.txn <= self.database.head
            else None
        )
        time = time or DAY
        return uuid_of(state.origin, (time.astimezone(UTC) if time.tzinfo else time).date())

    def _row(
        self,
        transaction: dict[str, Any],
        write: dict[str, Any],
        txn: int,
        position: int,
        at: datetime,
    ) -> dict[str, Any]:
        collection = write.get("collection", "foo")
        options = self.database.options.get(collection, {})
        payload = write.get("payload")
        expected, base = write.get("expected_uuid"), write.get("base")
        return {
            **{name: transaction.get(name) for name in ("app_id", "author", "message", "mode")},
            **{name: write.get(name) for name in STRATEGIES},
            "txn": txn,
            "position": position,
            "at": at,
            "action": write["op"],
            "space": f"{self.prefix}:{collection}",
            "id": write["id"],
            "payload": None if payload is None else json.dumps(payload),
            "rolled_back": transaction.get("rolled_back"),
            "expected_uuid": None if expected is None else self.uuid(expected) or "unknown",
            "base_uuid": None if base is None else self.uuid(base) or "unknown",
            "noop_updates": self.database.noop_updates,
            "auto_purge": options.get("auto_purge"),
            "history": options.get("history"),
            "keep_states": options.get("keep_states"),
            "branch": self.branch(transaction.get("branch")),
            "resync": write.get("resync"),
        }

    def expected_rows(self) -> list[dict[str, Any]]:
        """The oracle's states as rows of the table of states, in the form of `state_row`."""
        return [
            {
                "branch": self.branch(state.key[0]),
                "space": f"{self.prefix}:{state.key[1]}",
                "id": state.key[2],
                "i": state.origin,
                "txn": self.numbers[state.txn],
                "txn_next": None if state.closed_by is None else self.numbers[state.closed_by],
                "action": state.action,
                "version": state.version,
                "author": state.author,
                "app_id": state.app_id,
                "uuid": self.uuid(state.n),
                "puuid": self.uuid(state.previous),
                "author_txn": self.numbers[state.author_txn],
                "created_txn": self.numbers[state.created_txn],
                "resync": state.resync,
                "payload": json.dumps(state.payload, sort_keys=True),
            }
            for state in self.database.states
        ]


COLUMNS = (
    "space", "id", "i", "txn", "txn_next", "action", "version", "author", "app_id", "uuid",
    "puuid", "author_txn", "created_txn", "resync", "payload",
)  # fmt: skip


def state_row(row: dict[str, Any]) -> dict[str, Any]:
    """A row of the table of states, in the form of `expected_rows`."""
    xyz = row["@ns:com:here:xyz"].asDict()
    content = None if row["payload"] is None else json.loads(row["payload"])
    flat = {**row, **{name: value for name, value in xyz.items() if name != "txn"}}
    return {**flat, "payload": json.dumps(content, sort_keys=True)}


def changesets_of(
    rows: Iterable[dict[str, Any]], number: Callable[[int], int | None]
) -> dict[str, Any]:
    """Rows of `feature_changes` as the answer of a case; `number` gives a transaction's number."""
    sets: dict[Any, dict[str, list[str]]] = {}
    for row in sorted(rows, key=lambda row: (row["txn"], row["id"])):
        sets.setdefault(number(row["txn"]), sets_of([]))[row["change"]].append(row["id"])
    return {
        "first": min(sets, default=None),
        "last": max(sets, default=None),
        "sets": [{"txn": txn, **sets[txn]} for txn in sorted(sets)],
    }
