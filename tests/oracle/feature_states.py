"""Feature states in plain Python: writes become states, one transaction at a time.

The reference for the SQL. The rules are those in the README of the cases `feature_states`; a
payload is a JSON object (a dict), a write is a dict in the form of the cases.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias

Payload: TypeAlias = dict[str, Any]
Write: TypeAlias = Mapping[str, Any]
# Branch, collection, id.
Key: TypeAlias = tuple[str, str, str]

MAIN = "main"
# Suffix of a branch's name after the branch is dropped.
DROPPED = "\n"
CREATED, UPDATED, DELETED = "CREATED", "UPDATED", "DELETED"
PURGED, RETAINED = "PURGED", "RETAINED"
CONFLICT, NOT_FOUND, ERROR = "CONFLICT", "NOT_FOUND", "ERROR"
ERRORS = (CONFLICT, NOT_FOUND, ERROR)
COUNTERS = {CREATED: "created", UPDATED: "updated", DELETED: "deleted"}
ABSENT: Any = object()


class HorizonError(ValueError):
    """As-of before the oldest kept state."""


@dataclass
class State:
    """One state of a feature; `n` numbers all states ever made, in order of creation."""

    n: int
    key: Key
    version: int
    action: str
    previous: int | None
    txn: int
    closed_by: int | None
    app_id: str
    author: str
    author_txn: int
    created_txn: int
    payload: Payload | None
    resync: bool = False
    origin: int | None = None

    @property
    def is_tombstone(self) -> bool:
        return self.action == "DELETE"


@dataclass
class Transaction:
    """A transaction that changed something; its number is its position among them."""

    number: int
    step: int
    app_id: str
    message: str | None
    time: datetime | None
    collections: dict[str, dict[str, int]] = field(default_factory=dict)


@dataclass
class Branch:
    """A branch: the parent as of a point, and the states written on the branch since.

    bases  the points, each with the transaction from which on it holds; a rebase adds one
    """

    parent: str
    bases: list[tuple[int, int]]

    @property
    def at(self) -> int:
        """The current base."""
        return self.bases[-1][1]

    def at_point(self, txn: int) -> int:
        """The base in force at a transaction; before the fork, the first base."""
        known = [at for since, at in self.bases if since <= txn]
        return min(txn, known[-1] if known else self.bases[0][1])


@dataclass
class Result:
    """The outcome of a transaction; `number` is None if it changed nothing."""

    number: int | None
    outcomes: list[str] | None = None
    error: str | None = None
    conflicts: list[dict[str, str | None]] | None = None


def is_same(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON: Python takes True for 1, JSON does not."""
    if one is ABSENT or other is ABSENT:
        return one is other
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def merge_attributes(
    base: Payload | None, mine: Payload | None, theirs: Payload | None
) -> tuple[Payload, list[str]]:
    """Three-way merge by top-level attribute: `mine` applied to `theirs`, and the conflicts."""
    base, mine, theirs = base or {}, mine or {}, theirs or {}
    merged, clashes = dict(theirs), []
    for name in {*base, *mine, *theirs}:
        was, wanted, there = (side.get(name, ABSENT) for side in (base, mine, theirs))
        if is_same(wanted, was) or is_same(wanted, there):
            continue
        if not is_same(there, was):
            clashes.append(name)
        elif wanted is ABSENT:
            merged.pop(name)
        else:
            merged[name] = wanted
    return merged, sorted(clashes)


def single_writes(writes: Iterable[Write]) -> list[dict[str, Any]]:
    """The writes, one per id: `id_range` is the first and the last id, such as [1, 9], [f1, f9]."""
    single: list[dict[str, Any]] = []
    for write in writes:
        if "id_range" not in write:
            single.append({**write})
            continue
        rest = {name: value for name, value in write.items() if name != "id_range"}
        ends = [re.fullmatch(r"(.*?)([0-9]+)", str(end)) for end in write["id_range"]]
        (name, first), (_, last) = (end.groups() for end in ends if end)
        single += [
            {**rest, "id": f"{name}{number:0{len(first)}}"}
            for number in range(int(first), int(last) + 1)
        ]
    return single


class Database:
    """Collections of features with all their states."""

    def __init__(
        self,
        collections: Mapping[str, Mapping[str, Any]] | None = None,
        noop_updates: str = "record",
    ) -> None:
        self.options: dict[str, dict[str, Any]] = {
            name: dict(options) for name, options in (collections or {"foo": {}}).items()
        }
        self.noop_updates = noop_updates
        self.states: list[State] = []
        self.ever: dict[int, State] = {}
        self.current: dict[Key, State] = {}
        self.deleted: set[Key] = set()
        # The purging transaction by tombstone.
        self.purged: dict[int, int] = {}
        self.transactions: list[Transaction] = []
        self.branches: dict[str, Branch] = {}
        self.tags: dict[str, int] = {}
        self.horizon: dict[str, int] = {}
        self.made = 0

    # -- transactions ---------------------------------------------------------------------------

    @property
    def head(self) -> int:
        return len(self.transactions)

    def transact(self, transaction: Mapping[str, Any], step: int) -> Result:
        """Apply one: `app_id`, `author`, `message`, `time`, `mode`, `branch`, `writes`."""
        if transaction.get("rolled_back"):
            return Result(None)
        if not transaction.get("app_id"):
            return Result(None, error=ERROR)
        before = self._copy()
        number = self.head + 1
        log = Transaction(
            number,
            step,
            transaction["app_id"],
            transaction.get("message"),
            transaction.get("time"),
        )
        outcomes = []
        for write in single_writes(transaction["writes"]):
            outcome = self._write(write, transaction, log)
            outcomes.append(outcome)
            if outcome in ERRORS and transaction.get("mode", "all_or_nothing") == "all_or_nothing":
                self.__dict__ = before
                return Result(None, error=outcome)
        if not log.collections:
            return Result(None, outcomes)
        self.transactions.append(log)
        return Result(number, outcomes)

    def _copy(self) -> dict[str, Any]:
        return copy.deepcopy(self.__dict__)

    def _write(self, write: Write, transaction: Mapping[str, Any], log: Transaction) -> str:
        branch = transaction.get("branch") or MAIN
        key = (branch, write.get("collection", "foo"), write["id"])
        if branch != MAIN and branch not in self.branches:
            return ERROR
        outcome, payload = self._decide(write, self.live(key), key)
        if outcome in (*ERRORS, RETAINED):
            return outcome
        counts = log.collections.setdefault(
            key[1], {"created": 0, "updated": 0, "deleted": 0, "purged": 0}
        )
        is_live = self.live(key) is not None
        if outcome == PURGED:
            counts["purged"] += 1
        if outcome != PURGED or is_live:
            action = {CREATED: "CREATE", UPDATED: "UPDATE"}.get(outcome, "DELETE")
            counts[{"CREATE": "created", "UPDATE": "updated", "DELETE": "deleted"}[action]] += 1
            self._add(key, action, payload, write, transaction, log.number)
        if outcome == PURGED or self.options.get(key[1], {}).get("auto_purge"):
            if (present := self.current[key]).is_tombstone:
                self.purged[present.n] = log.number
            self.deleted.discard(key)
        self._trim(key, log.number)
        self._find_tombstone(key)
        return outcome

    def _find_tombstone(self, key: Key) -> None:
        """A deletion without history leaves no tombstone: the last one that was kept counts."""
        present = self.current.get(key)
        if present is None or not present.is_tombstone or present in self.states:
            return
        kept = [state for state in self.states if state.key == key and state.is_tombstone]
        self.deleted.discard(key)
        if kept:
            self.current[key] = kept[-1]
            if kept[-1].n not in self.purged:
                self.deleted.add(key)
        else:
            del self.current[key]

    def _decide(self, write: Write, live: State | None, key: Key) -> tuple[str, Payload | None]:
        """The outcome of a write, and the content of the state it makes."""
        action, payload = write["op"], write.get("payload")
        expected = write.get("expected_uuid")
        if action == "WRITE":
            return self._decide_by_strategy(write, live, key)
        current = live or (self.current[key] if key in self.deleted and action == "PURGE" else None)
        if current is None and action in ("DELETE", "PURGE"):
            return RETAINED, None
        if live is None and action == "UPDATE":
            return NOT_FOUND, None
        if live is not None and action == "CREATE":
            return CONFLICT, None
        if expected is not None and (current is None or current.n != expected):
            return CONFLICT, None
        if action in ("DELETE", "PURGE"):
            return (DELETED if action == "DELETE" else PURGED), None
        return self._put(payload, live)

    def _put(self, payload: Payload | None, live: State | None) -> tuple[str, Payload | None]:
        if live is None:
            return CREATED, payload
        if self.noop_updates == "skip" and is_same(live.payload, payload):
            return RETAINED, None
        return UPDATED, payload

    def _decide_by_strategy(
        self, write: Write, live: State | None, key: Key
    ) -> tuple[str, Payload | None]:
        payload, expected = write.get("payload"), write.get("expected_uuid")
        if live is None:
            chosen = write.get("on_not_exists", "CREATE")
            outcome = {"CREATE": CREATED, "RETAIN": RETAINED, "ERROR": NOT_FOUND}[chosen]
            return (CONFLICT if outcome == CREATED and expected is not None else outcome), payload
        if expected is not None and expected != live.n:
            return CONFLICT, None
        base = write.get("base")
        if base is not None and base != live.n:
            chosen = write.get("on_version_conflict", "ERROR")
            if chosen == "MERGE":
                known = self.ever.get(base)
                is_known = (
                    known is not None
                    and known.key[1:] == key[1:]
                    and known.key[0] in self._line(key[0])
                )
                merged, clashes = merge_attributes(
                    known.payload if known else None, payload, live.payload
                )
                if is_known and not clashes:
                    return self._put(merged, live)
                chosen = write.get("on_merge_conflict", "ERROR")
                if chosen == "REPLACE":
                    return self._put(payload, live)
            if chosen in ("ERROR", "RETAIN"):
                return (CONFLICT if chosen == "ERROR" else RETAINED), None
        chosen = write.get("on_exists", "REPLACE")
        if chosen == "REPLACE":
            return self._put(payload, live)
        return {"RETAIN": RETAINED, "DELETE": DELETED, "ERROR": CONFLICT}[chosen], None

    def _add(
        self,
        key: Key,
        action: str,
        payload: Payload | None,
        write: Write,
        transaction: Mapping[str, Any],
        number: int,
    ) -> None:
        before = self.live(key)
        author = transaction.get("author")
        self.made += 1
        state = State(
            n=self.made,
            key=key,
            version=1 if before is None else before.version + 1,
            action=action,
            previous=None if before is None else before.n,
            txn=number,
            closed_by=number if action == "DELETE" else None,
            app_id=transaction["app_id"],
            author=author or (before.author if before else transaction["app_id"]),
            author_txn=number if author or before is None else before.author_txn,
            created_txn=number if before is None else before.created_txn,
            payload=before.payload if before is not None and action == "DELETE" else payload,
            resync=bool(write.get("resync")),
            origin=write.get("origin"),
        )
        if before is not None and before.key == key:
            before.closed_by = number
        self.states.append(state)
        self.ever[state.n] = state
        self.current[key] = state
        (self.deleted.add if action == "DELETE" else self.deleted.discard)(key)

    def _trim(self, key: Key, number: int) -> None:
        """`keep_states`: keeps the newest closed states of a feature.

        Without history the state that the transaction `number` ended is dropped; earlier ones,
        recorded with history, stay.
        """
        options = self.options.get(key[1], {})
        keep = options.get("keep_states")
        closed = [
            state for state in self.states if state.key == key and state.closed_by is not None
        ]
        if options.get("history") in ("off", "suspended"):
            self._drop(state for state in closed if state.closed_by == number)
        elif keep is not None:
            dropped = closed[: max(0, len(closed) - keep)]
            self._drop(dropped)
            if dropped:
                limit = max(max(one.closed_by or 0, self.purged.get(one.n, 0)) for one in dropped)
                self.horizon[key[1]] = max(self.horizon.get(key[1], 0), limit)

    def switch_history(self, collection: str, state: str) -> None:
        """`on`, `suspended` or `off` from the next transaction on; `off` drops closed states."""
        self.options.setdefault(collection, {})["history"] = state
        if state == "off":
            self._drop(
                one for one in self.states if one.key[1] == collection and one.closed_by is not None
            )
            for key in [key for key in self.current if key[1] == collection]:
                self._find_tombstone(key)

    def _drop(self, dropped: Iterable[State]) -> None:
        gone = {state.n for state in dropped}
        self.states = [state for state in self.states if state.n not in gone]

    # -- branches -------------------------------------------------------------------------------

    def live(self, key: Key) -> State | None:
        """The current state of a feature on a branch."""
        own = self.current.get(key)
        if own is not None:
            return None if own.is_tombstone else own
        branch = self.branches.get(key[0])
        return self._visible((branch.parent, *key[1:]), branch.at) if branch else None

    def _line(self, name: str) -> list[str]:
        """A branch and its ancestors."""
        branch = self.branches.get(name)
        return [name, *(self._line(branch.parent) if branch else [])]

    def level(self, name: str) -> int:
        """The number of forks between main and a branch; 0 is main."""
        return len(self._line(name)) - 1

    def _visible(self, key: Key, at: int) -> State | None:
        for state in self.states:
            if state.key == key and state.txn <= at < (state.closed_by or at + 1):
                return state
        branch = self.branches.get(key[0])
        if branch is None or any(s.key == key and s.txn <= at for s in self.states):
            return None
        return self._visible((branch.parent, *key[1:]), branch.at_point(at))

    def create_branch(self, name: str, parent: str, at: int | None) -> str:
        if name in self.branches or name == MAIN or (at is not None and not 0 <= at <= self.head):
            return ERROR
        self.branches[name] = Branch(parent, [(self.head, self.head if at is None else at)])
        return "OK"

    def drop_branch(self, name: str) -> str:
        """Keep its states under an unused name, so that a branch forked again does not get them."""
        if name not in self.branches:
            return NOT_FOUND
        if any(branch.parent == name for branch in self.branches.values()):
            return ERROR
        del self.branches[name]
        aside = f"{name}{DROPPED}{self.made}"
        for state in self.ever.values():
            state.key = (aside if state.key[0] == name else state.key[0], *state.key[1:])
        self.current = {state.key: state for state in self.current.values()}
        self.deleted = {(aside if key[0] == name else key[0], *key[1:]) for key in self.deleted}
        return "OK"

    def combine(self, name: str, step: Mapping[str, Any], number: int) -> Result:
        """`merge` applies a branch's changes to its parent, `rebase` the parent's to the branch."""
        branch = self.branches[name]
        to = branch.parent if step["op"] == "merge" else name
        writes: list[dict[str, Any]] = []
        conflicts: list[dict[str, str | None]] = []
        for _, collection, id_ in sorted(key for key in self.current if key[0] == name):
            base = self._visible((branch.parent, collection, id_), branch.at)
            own = self.live((name, collection, id_))
            parent = self.live((branch.parent, collection, id_))
            merged, clashes = self._three_way(base, own, parent)
            conflicts += [
                {"collection": collection, "id": id_, "attribute": clash} for clash in clashes
            ]
            there = parent if step["op"] == "merge" else own
            if not clashes and not is_same(merged, there.payload if there else None):
                op = "DELETE" if merged is None else "PUT"
                writes.append({"op": op, "collection": collection, "id": id_, "payload": merged})
        if conflicts:
            return Result(None, error=CONFLICT, conflicts=conflicts)
        at = self.head
        result = self.transact({**step, "branch": to, "writes": writes}, number)
        if step["op"] == "rebase":
            self.branches[name].bases.append((self.head, at))
        return result

    @staticmethod
    def _three_way(
        base: State | None, own: State | None, parent: State | None
    ) -> tuple[Payload | None, Sequence[str | None]]:
        """The merged content, and the conflicts: attributes, None for the whole content."""
        was, mine, theirs = (side.payload if side else None for side in (base, own, parent))
        if is_same(mine, was) or is_same(mine, theirs):
            return theirs, []
        if is_same(theirs, was):
            return mine, []
        if mine is None or theirs is None:
            return None, sorted({*(mine or {}), *(theirs or {})}) or [None]
        return merge_attributes(was, mine, theirs)

    # -- suspend, tags, retention ---------------------------------------------------------------

    def resume(self, step: Mapping[str, Any], number: int) -> Result:
        """One state for each feature that differs from the snapshot, in one transaction."""
        collection = step["collection"]
        snapshot = {row["id"]: row.get("payload") for row in step["snapshot"]}
        heads = self.heads(collection)
        writes = [
            {"op": "PUT", "id": id_, "payload": payload}
            for id_, payload in snapshot.items()
            if id_ not in heads or not is_same(heads[id_], payload)
        ] + [{"op": "DELETE", "id": id_} for id_ in heads if id_ not in snapshot]
        marked = [{**write, "collection": collection, "resync": True} for write in writes]
        return self.transact({**step, "writes": marked}, number)

    def tag(self, op: str, name: str, version: int | None = None) -> str:
        if op == "delete":
            return "OK" if self.tags.pop(name, None) is not None else NOT_FOUND
        if op == "update" and name not in self.tags:
            return NOT_FOUND
        is_wrong = not name or name[0].isdigit() or name[0] == "*" or (version or 0) < 0
        if (
            is_wrong
            or (op == "create" and name in self.tags)
            or (op == "update" and version is None)
        ):
            return ERROR
        self.tags[name] = self.head if version is None else version
        return "OK"

    def retain(self, delete_before: int | None = None, keep_versions: int | None = None) -> str:
        if keep_versions is not None:
            limit = min([max(0, self.head - keep_versions + 1), *self.tags.values()])
        else:
            limit = delete_before or 0
        if not 0 <= limit <= self.head:
            return ERROR
        self._drop(
            [
                state
                for state in self.states
                if state.closed_by is not None
                and max(state.closed_by, self.purged.get(state.n, 0)) <= limit
                and not (state.key in self.deleted and self.current[state.key] is state)
            ]
        )
        for collection in self.options:
            self.horizon[collection] = max(self.horizon.get(collection, 0), limit)
        return "OK"

    # -- queries --------------------------------------------------------------------------------

    def heads(self, collection: str, branch: str = MAIN) -> dict[str, Payload | None]:
        """The current content by id."""
        keys = [*self.current]
        line = self.branches.get(branch)
        while line is not None:
            keys += [(branch, *key[1:]) for key in self.current if key[0] == line.parent]
            line = self.branches.get(line.parent)
        found = {key: self.live(key) for key in keys if key[0] == branch and key[1] == collection}
        return {key[2]: state.payload for key, state in found.items() if state is not None}

    def deleted_ids(self, collection: str) -> list[str]:
        return sorted(key[2] for key in self.deleted if key[:2] == (MAIN, collection))

    def as_of(self, txn: int, collection: str = "foo") -> dict[str, Payload | None]:
        if txn < self.horizon.get(collection, 0):
            raise HorizonError(txn)
        return {
            state.key[2]: state.payload
            for state in self.states
            if state.key[:2] == (MAIN, collection)
            and state.txn <= txn
            and (state.closed_by is None or state.closed_by > txn)
        }

    def number_at(self, time: datetime) -> int:
        """The last transaction at or before `time`."""
        numbers = [t.number for t in self.transactions if t.time is not None and t.time <= time]
        return max(numbers, default=0)

    def last_states(
        self, start: int, end: int | None, collection: str, author: str | None = None
    ) -> list[State]:
        """The last state of each feature and transaction of a range, oldest first."""
        last = {
            (state.txn, state.key): state
            for state in self.states
            if state.key[:2] == (MAIN, collection)
            and start <= state.txn <= (self.head if end is None else end)
            and author in (None, state.author)
        }
        return sorted(last.values(), key=lambda state: (state.txn, state.n))

    def activity(self, collection: str, from_txn: int) -> list[dict[str, Any]]:
        """States newest first, updates with a patch to their predecessor."""
        return [
            {"n": state.n, "patch": self._patch(state)}
            for state in reversed(self.states)
            if state.key[:2] == (MAIN, collection) and state.txn >= from_txn
        ]

    def _patch(self, state: State) -> list[dict[str, Any]] | None:
        if state.action != "UPDATE" or state.previous is None:
            return None
        return reverse_patch(
            without_system(self.ever[state.previous].payload), without_system(state.payload)
        )


def sets_of(states: Sequence[State]) -> dict[str, list[str]]:
    """Ids by the action on them."""
    names = {"CREATE": "inserted", "UPDATE": "updated", "DELETE": "deleted"}
    sets: dict[str, list[str]] = {name: [] for name in names.values()}
    for state in states:
        sets[names[state.action]].append(state.key[2])
    return {name: sorted(ids) for name, ids in sets.items()}


def squash(states: Sequence[State]) -> dict[str, list[str]]:
    """One entry per feature, by its last state."""
    return sets_of(list({state.key: state for state in states}.values()))


def without_system(payload: Payload | None) -> Payload | None:
    """Content without the system's attributes: the id, and the namespace except for its tags.

    No content is the JSON value null.
    """
    if payload is None:
        return None
    content = copy.deepcopy(payload)
    content.pop("id", None)
    namespace = (content.get("properties") or {}).get("@ns:com:here:xyz")
    if isinstance(namespace, dict):
        content["properties"]["@ns:com:here:xyz"] = {
            name: value for name, value in namespace.items() if name == "tags"
        }
    return content


def reverse_patch(before: Any, after: Any, path: str = "") -> list[dict[str, Any]]:
    """JSON patch from `after` to `before`, sorted by path; arrays by position.

    Elements of an array are removed from its end.
    """
    pairs: Iterable[tuple[Any, Any, Any]]
    if isinstance(before, dict) and isinstance(after, dict):
        names: Iterable[Any] = sorted({*before, *after})
        pairs = [(name, before.get(name, ABSENT), after.get(name, ABSENT)) for name in names]
    elif isinstance(before, list) and isinstance(after, list):
        common = min(len(before), len(after))
        pairs = [
            *zip(range(common), before, after, strict=False),
            *((place, before[place], ABSENT) for place in range(common, len(before))),
            *((place, ABSENT, after[place]) for place in reversed(range(common, len(after)))),
        ]
    else:
        return [] if is_same(before, after) else [{"op": "replace", "path": path, "value": before}]
    patch: list[dict[str, Any]] = []
    for name, was, now in pairs:
        here = f"{path}/{str(name).replace('~', '~0').replace('/', '~1')}"
        if was is ABSENT:
            patch.append({"op": "remove", "path": here})
        elif now is ABSENT:
            patch.append({"op": "add", "path": here, "value": was})
        else:
            patch += reverse_patch(was, now, here)
    return patch


def number_rows(
    numbers: dict[int, int], rows: Iterable[Mapping[str, Any]], known: Iterable[str]
) -> dict[int, int]:
    """The numbering job: new rows, ordered by (visible, txid), continue after the last number."""
    collections = set(known)
    waiting = {
        (row["visible"], row["txid"])
        for row in rows
        if row["visible"] is not None
        and row["collection"] in collections
        and row["txid"] not in numbers
    }
    last = max(numbers.values(), default=0)
    ranked = enumerate(sorted(waiting), last + 1)
    return {**numbers, **{txid: number for number, (_, txid) in ranked}}
