"""Reads the cases of the area `feature_states` and runs them through the oracle."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from .feature_states import (
    Database,
    HorizonError,
    Result,
    number_rows,
    sets_of,
    squash,
)

FOLDER = Path(__file__).parents[1] / "conformance/cases/feature_states"


@dataclass
class CaseResult:
    """A case after its steps: the database, and the result of each step."""

    database: Database
    steps: list[dict[str, Any]] = field(default_factory=list)


def read(name: str) -> Any:
    return json.loads((FOLDER / f"{name}.json").read_text())


def case_names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.json") if path.stem != "uuid_vectors")


def is_scenario(case: Any) -> bool:
    """Whether a case has steps other than transactions, or collections with `keep_states`."""
    collections = case.get("collections", {}).values()
    is_more = any("transaction" not in step for step in case.get("steps", []))
    return is_more or any("keep_states" in options for options in collections)


def time_of(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def run_case(case: dict[str, Any]) -> CaseResult:
    """Run all steps of a case in order."""
    database = Database(
        case.get("collections"), case.get("options", {}).get("noop_updates", "record")
    )
    case_result = CaseResult(database)
    for number, step in enumerate(case["steps"], 1):
        ((kind, given),) = step.items()
        result = apply_step(database, kind, given, number)
        if isinstance(result, str):
            case_result.steps.append({"step": number, "outcome": result})
        else:
            filled = {name: value for name, value in asdict(result).items() if value is not None}
            case_result.steps.append({"step": number, "number": None, "outcomes": None, **filled})
    return case_result


def apply_step(database: Database, kind: str, step: dict[str, Any], number: int) -> Result | str:
    if kind == "transaction":
        return database.transact({**step, "time": time_of(step.get("time"))}, number)
    if kind == "configure":
        options = {name: value for name, value in step.items() if name != "collection"}
        database.options.setdefault(step["collection"], {}).update(options)
        return "OK"
    if kind == "retention":
        return database.retain(**step)
    if kind == "tag":
        return database.tag(**step)
    if kind == "suspend":
        return "OK"
    if kind == "resume":
        return database.resume(step, number)
    if step["op"] == "create":
        return database.create_branch(step["name"], step.get("from", "main"), step.get("at"))
    if step["op"] in ("drop", "delete"):
        return database.drop_branch(step["name"])
    return database.combine(step["name"], step, number)


def answer_as_of(database: Database, question: dict[str, Any]) -> dict[str, Any]:
    if "time" in question:
        at = database.number_at(datetime.fromisoformat(question["time"]))
    elif "tag" in question:
        at = database.tags[question["tag"]]
    else:
        at = question["txn"]
    try:
        return {"rows": database.as_of(at, question.get("collection", "foo"))}
    except HorizonError:
        return {"refused": True}


def range_of(database: Database, question: dict[str, Any]) -> tuple[int, int | None]:
    """The numbers of a range: by number both ends are inside, by time the start is outside."""
    start, end = question.get("start", 1), question.get("end")
    if "after_time" in question:
        start = database.number_at(datetime.fromisoformat(question["after_time"])) + 1
    if "until_time" in question:
        end = database.number_at(datetime.fromisoformat(question["until_time"]))
    return start, end


def answer_changesets(database: Database, question: dict[str, Any]) -> dict[str, Any]:
    start, end = range_of(database, question)
    states = database.last_states(
        start, end, question.get("collection", "foo"), question.get("author")
    )
    numbers = sorted({state.txn for state in states})
    return {
        "first": numbers[0] if numbers else None,
        "last": numbers[-1] if numbers else None,
        "sets": [
            {"txn": txn, **sets_of([state for state in states if state.txn == txn])}
            for txn in numbers
        ],
    }


def answer_squashed(database: Database, question: dict[str, Any]) -> dict[str, Any]:
    start, end = range_of(database, question)
    return squash(database.last_states(start, end, question.get("collection", "foo")))


def answer_activity(database: Database, question: dict[str, Any]) -> dict[str, Any]:
    return {
        "entries": database.activity(question.get("collection", "foo"), question.get("from_txn", 0))
    }


QUESTIONS = {
    "as_of": answer_as_of,
    "changesets": answer_changesets,
    "squashed": answer_squashed,
    "activity": answer_activity,
}


def part(case_result: CaseResult, name: str, expected: Any) -> Any:
    """A part of `expected` from the oracle, in the form of the cases."""
    database = case_result.database
    if name == "steps":
        wanted = {step["step"]: step for step in expected}
        return [
            {key: step.get(key) for key in wanted[step["step"]]}
            for step in case_result.steps
            if step["step"] in wanted
        ]
    if name == "states":
        return [state_row(state) for state in database.states]
    if name == "head":
        return {collection: database.heads(collection) for collection in expected}
    if name == "branch_heads":
        return {
            branch: {collection: database.heads(collection, branch) for collection in heads}
            for branch, heads in expected.items()
        }
    if name == "deleted":
        return {collection: database.deleted_ids(collection) for collection in expected}
    if name == "transactions":
        return [
            {name: value for name, value in asdict(transaction).items() if name != "time"}
            for transaction in database.transactions
        ]
    if name == "tags":
        return database.tags
    return {collection: database.horizon.get(collection, 0) for collection in expected}


def state_row(state: Any) -> dict[str, Any]:
    row = {name: value for name, value in asdict(state).items() if name not in ("key", "origin")}
    if not row.pop("resync"):
        return {**row, "collection": state.key[1], "id": state.key[2]}
    return {**row, "collection": state.key[1], "id": state.key[2], "resync": True}


def run_sequencer(case: dict[str, Any]) -> list[dict[str, int]]:
    """The numbers after each run of a case of kind `sequencer`."""
    numbers: dict[int, int] = {}
    after = []
    for run in case["runs"]:
        numbers = number_rows(numbers, run["rows"], run["known_collections"])
        after.append({str(txid): number for txid, number in numbers.items()})
    return after
