"""JSON patches, applied as RFC 6902 describes the three operations that reverse patches have."""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from typing import Any

NAMES = ("a", "b", "~/", "", "0", "1")
VALUES: tuple[Any, ...] = (1, 2, "1", None, True, [], {})


def apply_patch(document: Any, patch: Sequence[dict[str, Any]]) -> Any:
    """The document after all operations, each applied to the result of the one before it.

    AssertionError if a place to remove or to replace is missing, or if an element would be added
    after the first place that is free.
    """
    whole = [copy.deepcopy(document)]
    for step in patch:
        # The document is the only element of a list, so that it has a place, too.
        *parents, last = [0, *map(unescaped, step["path"].split("/")[1:])]
        container: Any = whole
        for name in parents:
            container = container[place_in(container, name)]
        place = place_in(container, last)
        there = range(len(container)) if isinstance(container, list) else container
        if step["op"] == "add" and isinstance(container, list):
            assert place in [*there, len(container)], step["path"]
            container.insert(place, copy.deepcopy(step["value"]))
            continue
        assert step["op"] == "add" or place in there, step["path"]
        if step["op"] == "remove":
            del container[place]
        else:
            container[place] = copy.deepcopy(step["value"])
    return whole[0]


def place_in(container: Any, name: Any) -> Any:
    return int(name) if isinstance(container, list) else name


def unescaped(name: str) -> str:
    return name.replace("~1", "/").replace("~0", "~")


def random_documents(chance: random.Random) -> tuple[Any, Any]:
    """Two documents of the same form, most of whose members are in both."""
    first = {name: random_value(chance, 3) for name in chance.sample(NAMES, 3)}
    return first, changed(chance, first, 3)


def random_value(chance: random.Random, depth: int) -> Any:
    kind = chance.choice(("value", "list", "list", "object")) if depth > 0 else "value"
    if kind == "value":
        return copy.copy(chance.choice(VALUES))
    if kind == "list":
        # More than ten: as text, place 10 is before place 9.
        return [random_value(chance, depth - 1) for _ in range(chance.choice((0, 1, 3, 12)))]
    return {name: random_value(chance, depth - 1) for name in chance.sample(NAMES, 2)}


def changed(chance: random.Random, value: Any, depth: int) -> Any:
    if chance.random() < 0.2 or not isinstance(value, list | dict):
        return value if chance.random() < 0.5 else random_value(chance, depth)
    if isinstance(value, dict):
        kept = {name: changed(chance, item, depth - 1) for name, item in value.items()}
        return {name: item for name, item in kept.items() if chance.random() < 0.8}
    size = max(0, len(value) + chance.choice((-4, -2, 0, 2, 4)))
    kept_items = [changed(chance, item, depth - 1) for item in value[:size]]
    return kept_items + [random_value(chance, 0) for _ in range(size - len(kept_items))]
