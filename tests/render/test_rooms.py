"""The rooms of `macros/`: calls go one way, between rooms and between files.

macros/README.md defines what each room may call.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.render.test_macro_descriptions import COMMENT, DEFINITION, signature

MACROS = Path(__file__).parents[2] / "macros"
CALL = re.compile(r"\bdbt_history\.(\w+)\(")
ROW = re.compile(r"^\| `(\w+)/` \| .* \|(.*)\|$", re.MULTILINE)

Graph = Mapping[str, set[str]]


def files() -> list[Path]:
    return sorted(MACROS.rglob("*.sql"))


def room_of(file: str) -> str:
    return file.split("/")[0]


def calls_between_files() -> dict[str, set[str]]:
    """Each file with the other files whose macros it calls; paths are relative to `macros/`."""
    texts = {str(path.relative_to(MACROS)): COMMENT.sub("", path.read_text()) for path in files()}
    places = {
        signature(kind, text)[0]: name
        for name, code in texts.items()
        for kind, text in DEFINITION.findall(code)
    }
    found: dict[str, set[str]] = defaultdict(set)
    for name, code in texts.items():
        found[name] |= {places[called] for called in CALL.findall(code) if called in places}
        found[name].discard(name)
    return found


def calls_between_rooms() -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for name, called in calls_between_files().items():
        found[room_of(name)] |= {room_of(one) for one in called} - {room_of(name)}
    return found


def circle(graph: Graph) -> list[str]:
    """A path that returns to its start; empty if there is none."""
    finished: set[str] = set()

    def search(name: str, path: list[str]) -> list[str]:
        if name in path:
            return [*path[path.index(name) :], name]
        if name in finished:
            return []
        for called in sorted(graph.get(name, ())):
            if found := search(called, [*path, name]):
                return found
        finished.add(name)
        return []

    return next((found for name in sorted(graph) if (found := search(name, []))), [])


def documented() -> dict[str, set[str]]:
    """The rooms of macros/README.md, each with the rooms that it may call."""
    rows: Iterable[tuple[str, str]] = ROW.findall((MACROS / "README.md").read_text())
    return {room: set(re.findall(r"`(\w+)/`", allowed)) for room, allowed in rows}


def test_files_do_not_call_each_other_in_a_circle() -> None:
    assert circle(calls_between_files()) == []


def test_rooms_do_not_call_each_other_in_a_circle() -> None:
    assert circle(calls_between_rooms()) == []


def test_a_circle_is_found() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    assert circle({"a": {"b", "c"}, "b": {"c"}}) == []


def test_every_room_is_documented_with_the_rooms_it_calls() -> None:
    assert documented().keys() == {room_of(str(path.relative_to(MACROS))) for path in files()}
    for room, called in calls_between_rooms().items():
        assert called == documented()[room], room


def test_a_public_macro_has_its_own_file_and_a_private_one_is_in_a_private_folder() -> None:
    several = {
        # Two macros of one contract: the strategy, and the macro that its shim calls first.
        "versions/get_incremental_history_batch_sql.sql",
        "root_project/dbt_spark_incremental.sql",
    }
    for path in files():
        name = str(path.relative_to(MACROS))
        kinds = DEFINITION.findall(COMMENT.sub("", path.read_text()))
        public = [text for kind, text in kinds if not signature(kind, text)[0].startswith("_")]
        if any(part.startswith("_") for part in path.relative_to(MACROS).parts[1:]):
            assert public == [], name
        elif name not in several and not name.startswith(("_", "dispatch/")):
            assert len(public) == 1, name
            assert re.match(rf"{path.stem}\b", public[0]), name


def test_every_private_macro_is_called() -> None:
    root = MACROS.parent
    code = [COMMENT.sub("", path.read_text()) for path in files()]
    used = set(re.findall(r"\bdbt_history\.(_\w+)", "".join(code)))
    # The command line calls some by their names.
    for path in (root / "src").rglob("*.py"):
        used |= set(re.findall(r"\b(_\w+)\b", path.read_text()))
    private = {signature(kind, text)[0] for one in code for kind, text in DEFINITION.findall(one)}
    assert {name for name in private if name.startswith("_")} - used == set()
