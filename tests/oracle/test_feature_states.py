"""The oracle of feature states on every part of every case."""

from __future__ import annotations

import random
from typing import Any

import pytest

from .feature_state_cases import QUESTIONS, case_names, part, read, run_case, run_sequencer
from .feature_states import is_same, reverse_patch, without_system
from .json_patch import apply_patch, random_documents

CASES = {name: read(name) for name in case_names()}
PARTS = [
    (name, expected)
    for name, case in CASES.items()
    if case.get("kind") != "sequencer"
    for expected in case["expected"]
]
QUERIES = [
    (name, kind, place)
    for name, case in CASES.items()
    for kind in QUESTIONS
    for place in range(len(case.get(kind, [])))
]


def by_n(rows: Any) -> Any:
    return sorted(rows, key=lambda row: row["n"])


@pytest.mark.parametrize(("name", "wanted"), PARTS)
def test_the_oracle_gives_every_expected_part(name: str, wanted: str) -> None:
    case = CASES[name]
    expected = case["expected"][wanted]
    got = part(run_case(case), wanted, expected)
    if wanted == "states":
        got, expected = by_n(got), by_n(expected)
    assert got == expected


@pytest.mark.parametrize(("name", "kind", "place"), QUERIES)
def test_the_oracle_answers_every_query(name: str, kind: str, place: int) -> None:
    question = CASES[name][kind][place]
    assert QUESTIONS[kind](run_case(CASES[name]).database, question) == question["expected"]


def test_a_patch_tells_no_content_from_an_empty_one_and_true_from_1() -> None:
    def patch(before: Any, after: Any) -> Any:
        return reverse_patch(without_system(before), without_system(after))

    assert patch(None, {}) == [{"op": "replace", "path": "", "value": None}]
    assert patch({}, None) == [{"op": "replace", "path": "", "value": {}}]
    assert patch(None, None) == []
    assert patch({"x": True}, {"x": 1}) == [{"op": "replace", "path": "/x", "value": True}]


def test_a_reverse_patch_can_be_applied() -> None:
    chance = random.Random(6902)
    for _ in range(500):
        before, after = random_documents(chance)
        assert is_same(apply_patch(after, reverse_patch(before, after)), before), (before, after)


@pytest.mark.parametrize(
    "name", [name for name, case in CASES.items() if case.get("kind") == "sequencer"]
)
def test_the_oracle_numbers_transactions(name: str) -> None:
    assert run_sequencer(CASES[name]) == CASES[name]["expected"]
