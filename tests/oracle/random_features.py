"""Random logs of feature writes from a seed: few features, so that writes conflict."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from typing import Any

from .feature_states import MAIN, Database

ACTIONS = ("CREATE", "UPDATE", "PUT", "PUT", "DELETE", "PURGE", "WRITE", "WRITE")
IDS = ("a", "b", "it's", "")
BRANCHES = ("one", "two", "it's")
AUTHORS = (None, None, "ann", "bob", "")
VALUES = (1, 2, 1.5, None, "1", "", "ä", [1, {"k": None}], {"k": [1]}, True)
START = datetime(2024, 2, 28, 22, 30)
STRATEGIES = {
    "on_not_exists": ("CREATE", "RETAIN", "ERROR"),
    "on_exists": ("REPLACE", "RETAIN", "DELETE", "ERROR"),
    "on_version_conflict": ("ERROR", "RETAIN", "REPLACE", "MERGE", "MERGE"),
    "on_merge_conflict": ("ERROR", "RETAIN", "REPLACE"),
}


def random_database(chance: random.Random, history: str | None = None) -> Database:
    """A database with two collections, each with its own options.

    `history`: that of both, which then keep all states.
    """
    options = {
        name: {
            "auto_purge": chance.random() < 0.3,
            "history": history or ("off" if chance.random() < 0.2 else "on"),
            "keep_states": None if history else chance.choice((None, 1, 2)),
        }
        for name in ("foo", "bar")
    }
    return Database(options, chance.choice(("record", "skip")))


def random_branched_database(chance: random.Random) -> Database:
    """A database that may have branches; its space keeps its history."""
    return Database({"foo": {}, "bar": {}}, chance.choice(("record", "skip")))


def random_branch_step(
    chance: random.Random, database: Database, levels: int
) -> dict[str, Any] | None:
    """The next operation on a branch; None if none is possible. `levels`: 1 forks only main."""
    names = [*database.branches]
    free = [name for name in BRANCHES if name not in names]
    op = chance.choice(("create", "create", "merge", "merge", "merge", "rebase", "rebase", "drop"))
    if op == "create" or not names:
        if not free:
            return None
        at = None if chance.random() < 0.5 else chance.randint(database.head // 2, database.head)
        parent = chance.choice([name for name in [MAIN, *names] if database.level(name) < levels])
        return {"op": "create", "name": chance.choice(free), "from": parent, "at": at}
    if op == "drop":
        parents = {branch.parent for branch in database.branches.values()}
        leaves = [name for name in names if name not in parents]
        return {"op": op, "name": chance.choice(leaves)}
    return {"op": op, "name": chance.choice(names), "app_id": "merger", "author": "eve"}


def random_branched_transaction(
    chance: random.Random, database: Database, place: int
) -> dict[str, Any]:
    """The next transaction: on main, on a branch, or on a missing branch.

    Most writes change one attribute of existing content, so that not every merge is a conflict.
    """
    lines = [MAIN, *database.branches]
    branch = chance.choice(BRANCHES) if chance.random() < 0.1 else chance.choice(lines)
    transaction = random_transaction(chance, database, place)
    for write in transaction["writes"]:
        write["id"] = chance.choice(IDS[:3])
        live = database.live((branch, write["collection"], write["id"]))
        if live is not None and live.payload and chance.random() < 0.7:
            changed = {chance.choice(("x", "y", "z", "it's")): chance.choice(VALUES)}
            write["payload"] = {**live.payload, **changed}
    return {**transaction, "branch": branch}


def random_transaction(chance: random.Random, database: Database, place: int) -> dict[str, Any]:
    """The next transaction; its expectations are sometimes met."""
    return {
        "app_id": chance.choice(("app1", "app2", "app3") * 8 + (None, "")),
        "author": chance.choice(AUTHORS),
        "message": chance.choice((None, "why", "it's")),
        "time": START + timedelta(minutes=47 * place),
        "mode": chance.choice(("all_or_nothing", "per_row", "per_row")),
        "rolled_back": chance.random() < 0.08,
        "writes": [random_write(chance, database) for _ in range(chance.choice((1, 1, 2, 3, 5)))],
    }


def bases_of(database: Database, own: list[int]) -> list[int]:
    """The states of a feature that a merge finds in any split of the log into runs."""
    stored = {state.n for state in database.states}
    return [
        n
        for n in own
        if n in stored or database.options[database.ever[n].key[1]].get("keep_states") is None
    ]


def random_write(chance: random.Random, database: Database) -> dict[str, Any]:
    collection, id_ = chance.choice(("foo", "foo", "bar")), chance.choice(IDS)
    write: dict[str, Any] = {
        "op": chance.choice(ACTIONS),
        "collection": collection,
        "id": id_,
        "payload": {
            name: chance.choice(VALUES) for name in ("x", "y", "z", "it's") if chance.random() < 0.7
        },
    }
    own = [n for n, state in database.ever.items() if state.key[1:] == (collection, id_)]
    newest = own[-1:] or [0]
    if chance.random() < 0.15:
        write["expected_uuid"] = chance.choice([*own, *newest * 3, 0])
    if write["op"] == "WRITE":
        write |= {
            name: chance.choice(known)
            for name, known in STRATEGIES.items()
            if chance.random() < 0.6
        }
        if chance.random() < 0.7:
            write["base"] = chance.choice([*bases_of(database, own), *newest, 0])
    return write
