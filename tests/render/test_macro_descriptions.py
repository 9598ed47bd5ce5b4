"""Every public macro and argument is described and typed, and no description is stale."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

MACROS = Path(__file__).parents[2] / "macros"
COMMENT = re.compile(r"{#.*?#}", re.DOTALL)
DEFINITION = re.compile(r"{%-?\s*(macro|test|data_test|materialization)\s+(.*?)\s*-?%}", re.DOTALL)
ADAPTER = re.compile(r"adapter\s*=\s*['\"](\w+)['\"]")
TYPE = re.compile(r"[a-z]+|[\[\],]")
# The types that dbt supports (`validate_macro_args`), with the number of their parameters.
TYPES = {
    **dict.fromkeys(("str", "string", "bool", "int", "integer", "float", "any"), 0),
    **dict.fromkeys(("relation", "column"), 0),
    **dict.fromkeys(("optional", "list"), 1),
    "dict": 2,
}


def split_arguments(text: str) -> list[str]:
    """The names in `a, b='x, y', c=[1, 2]`; a default is left out."""
    names, depth, quote, name = [], 0, "", ""
    for character in text + ",":
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif character == "," and depth == 0:
            names.append(name.partition("=")[0].strip())
            name = ""
            continue
        name += character
    return [name for name in names if name]


def signature(kind: str, text: str) -> tuple[str, list[str] | None]:
    """A macro's name in dbt, with its arguments; None for a materialization, which has none."""
    if kind == "materialization":
        adapter = ADAPTER.search(text)
        name = text.split(",")[0].strip()
        return f"materialization_{name}_{adapter[1] if adapter else 'default'}", None
    name, _, arguments = text.partition("(")
    prefix = "test_" if kind.endswith("test") else ""
    return prefix + name.strip(), split_arguments(arguments.rpartition(")")[0])


def defined() -> dict[str, list[str] | None]:
    """All macros of the package, by name."""
    found: dict[str, list[str] | None] = {}
    for path in sorted(MACROS.rglob("*.sql")):
        for kind, text in DEFINITION.findall(COMMENT.sub("", path.read_text())):
            found.update([signature(kind, text)])
    return found


def descriptions() -> list[dict[str, Any]]:
    """All macros as the yml files describe them."""
    return [
        macro
        for path in sorted(MACROS.rglob("*.yml"))
        for macro in yaml.safe_load(path.read_text())["macros"]
    ]


def is_type(text: str) -> bool:
    """Whether dbt accepts the text as a type, such as `optional[list[string]]`."""
    tokens = TYPE.findall(text)
    if "".join(tokens) != text.replace(" ", ""):
        return False

    def read() -> bool:
        number = TYPES.get(tokens.pop(0)) if tokens else None
        if not number:
            return number == 0
        for place in range(number):
            if not tokens or tokens.pop(0) != ("," if place else "[") or not read():
                return False
        return bool(tokens) and tokens.pop(0) == "]"

    return read() and not tokens


DEFINED = defined()
PUBLIC = {name for name in DEFINED if not name.startswith("_")}
DESCRIBED = {macro["name"]: macro for macro in descriptions()}


def test_every_public_macro_is_described_once() -> None:
    times = Counter(macro["name"] for macro in descriptions())
    assert sorted(PUBLIC - set(times)) == [], "public macros without a description"
    assert sorted(set(times) - PUBLIC) == [], "descriptions without a public macro"
    assert [name for name, number in times.items() if number > 1] == []


@pytest.mark.parametrize("name", sorted(set(DEFINED) & set(DESCRIBED)))
def test_a_description_matches_the_macro(name: str) -> None:
    described = DESCRIBED[name]
    arguments = described.get("arguments") or []
    assert described.get("description", "").strip(), "no description"
    assert [argument["name"] for argument in arguments] == (DEFINED[name] or [])
    for argument in arguments:
        assert argument.get("description", "").strip(), f"{argument['name']} is not described"
        assert is_type(argument.get("type", "")), f"{argument['name']} has no type that dbt knows"


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("macro", "f()", ("f", [])),
        ("macro", "f(a, b='x, (y', c=[1, 2],\n    d=none)", ("f", ["a", "b", "c", "d"])),
        ("test", "holds(model, key=f(1))", ("test_holds", ["model", "key"])),
        ("materialization", "m, adapter='spark'", ("materialization_m_spark", None)),
        ("materialization", "m, default", ("materialization_m_default", None)),
    ],
)
def test_a_signature_is_parsed_as_by_dbt(
    kind: str, text: str, expected: tuple[str, list[str] | None]
) -> None:
    assert signature(kind, text) == expected


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("any", True),
        ("optional[list[string]]", True),
        ("dict[string, list[any]]", True),
        ("boolean", False),
        ("list", False),
        ("dict[string]", False),
        ("list[string]]", False),
        ("list[string] or none", False),
        ("", False),
    ],
)
def test_a_type_is_one_that_dbt_supports(text: str, known: bool) -> None:
    assert is_type(text) is known


OPERATIONS = (
    "clean_history", "compact_history", "create_tag", "drop_tag", "rewind", "suspend_history",
    "resume_history", "verify_history", "erase_subject", "generate_history",
)  # fmt: skip


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_takes_a_table_and_a_dry_run(name: str) -> None:
    text = COMMENT.sub("", (MACROS / "maintain" / f"{name}.sql").read_text())
    macro = next(found for found in DEFINITION.finditer(text) if found[2].startswith(name + "("))

    arguments = signature(macro[1], macro[2])[1] or []

    assert {"table", "dry_run"} <= set(arguments)
    assert re.search(r"dry_run\s*=\s*false", macro[2])


def test_operations_on_tables_of_all_kinds_say_so() -> None:
    described = yaml.safe_load((MACROS / "maintain" / "_macros.yml").read_text())["macros"]
    taking = [
        macro
        for macro in described
        if "_tables_of_all_kinds" in (MACROS / "maintain" / f"{macro['name']}.sql").read_text()
    ]
    assert len(taking) >= 5
    for macro in taking:
        (table,) = (one for one in macro["arguments"] if one["name"] == "table")
        assert "mirrors and event tables" in " ".join(table["description"].split()), macro["name"]
