"""Which conformance cases are played: by default the fewest that touch every rule of an area.

With ALL_VARIANTS (`make test-all`) all of them, with their variants.
"""

from __future__ import annotations

import os
from collections.abc import Sequence, Set
from typing import Any

import pytest

IS_ALL = bool(os.environ.get("ALL_VARIANTS"))
# Ids of cases; without any, the cases are selected as above.
CHOSEN = os.environ.get("CASES", "").split()


def selected(
    cases: Sequence[dict[str, Any]], elsewhere: Sequence[dict[str, Any]] = ()
) -> list[dict[str, Any]]:
    """The cases to play, in their order; rules of the cases `elsewhere` are touched by those."""
    if CHOSEN:
        return [case for case in cases if case["id"] in CHOSEN]
    if IS_ALL:
        return list(cases)
    chosen = covering(cases, {rule for case in elsewhere for rule in case["rules"]})
    return [case for case in cases if case["id"] in chosen]


def covering(cases: Sequence[dict[str, Any]], known: Set[str]) -> set[str]:
    """The ids of cases that touch every rule but the known ones.

    Each case adds the most rules for its cost.
    """
    missing = every = {rule for case in cases for rule in case["rules"]} - known
    chosen: list[dict[str, Any]] = []
    while missing:
        case = max(cases, key=lambda case: len(missing & {*case["rules"]}) / _cost(case))
        chosen.append(case)
        missing = missing - {*case["rules"]}
    # Later cases may have added all rules of an earlier one.
    for case in sorted(chosen, key=_cost, reverse=True):
        others = [other for other in chosen if other is not case]
        if every <= {rule for other in others for rule in other["rules"]}:
            chosen = others
    return {case["id"] for case in chosen}


def _cost(case: dict[str, Any]) -> float:
    """Runs of models cost more than statements."""
    return len(case.get("tables", ())) + 0.3 * len(case.get("steps", ())) + 1


def thorough(*values: Any) -> Any:
    """A parameter set that only `make test-all` plays."""
    return pytest.param(*values, marks=pytest.mark.thorough)
