"""Which conformance cases are played: by default the fewest that touch every rule of an area.

With ALL_VARIANTS (`make test-all`) all of them, with their variants.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import pytest

IS_ALL = bool(os.environ.get("ALL_VARIANTS"))
# Ids of cases; without any, the cases are selected as above.
CHOSEN = os.environ.get("CASES", "").split()


def selected(cases: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The cases to play, in their order."""
    if CHOSEN:
        return [case for case in cases if case["id"] in CHOSEN]
    if IS_ALL:
        return list(cases)
    chosen = covering(cases)
    return [case for case in cases if case["id"] in chosen]


def covering(cases: Sequence[dict[str, Any]]) -> set[str]:
    """The ids of cases that touch every rule; each case adds the most rules for its cost."""
    missing = {rule for case in cases for rule in case["rules"]}
    chosen: set[str] = set()
    while missing:
        case = max(cases, key=lambda case: len(missing & {*case["rules"]}) / _cost(case))
        chosen.add(case["id"])
        missing -= {*case["rules"]}
    return chosen


def _cost(case: dict[str, Any]) -> float:
    """Runs of models cost more than statements."""
    return len(case.get("tables", ())) + 0.3 * len(case.get("steps", ())) + 1


def thorough(*values: Any) -> Any:
    """A parameter set that only `make test-all` plays."""
    return pytest.param(*values, marks=pytest.mark.thorough)
