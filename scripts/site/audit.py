"""Coverage of descriptions and tests, from dbt's manifest and the macro files."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from statistics import median
from typing import Any

from dbt_history.docs.manifest import Node, Project

COMMENT = re.compile(r"{#.*?#}", re.DOTALL)


@dataclass(frozen=True)
class Share:
    """The share of things that have a property; `missing` names the others."""

    what: str
    has: int
    all: int
    missing: tuple[str, ...]


def share(what: str, things: list[tuple[str, bool]]) -> Share:
    missing = tuple(name for name, has in things if not has)
    return Share(what, len(things) - len(missing), len(things), missing)


def has_text(thing: Any) -> bool:
    return bool((thing.get("description") or "").strip())


def described(project: Project) -> list[Share]:
    nodes = list(project.nodes.values())
    # A private macro is described by the comment above it.
    macros = [one for one in project.macros if not one["name"].startswith("_")]
    arguments = [
        (f"{macro['name']}({argument['name']})", argument)
        for macro in macros
        # dbt lists the languages of a materialization as an argument.
        if not macro["name"].startswith("materialization_")
        for argument in macro["arguments"]
    ]
    columns = [
        (f"{node['name']}.{name}", has_text(column))
        for node in nodes
        for name, column in (node.get("columns") or {}).items()
    ]
    built = [
        (f"{node['name']}.{name}", name.lower() in {one.lower() for one in node["columns"]})
        for unique_id, node in project.nodes.items()
        for name in (columns_built(project, unique_id))
    ]
    kinds = {"models": "model", "seeds": "seed", "snapshots": "snapshot", "sources": "source"}
    return [
        share("public macros described", [(one["name"], has_text(one)) for one in macros]),
        share("arguments described", [(name, has_text(one)) for name, one in arguments]),
        share("arguments typed", [(name, bool(one["type"])) for name, one in arguments]),
        *(
            share(
                f"{plural} described",
                [(one["name"], has_text(one)) for one in nodes if one["resource_type"] == kind],
            )
            for plural, kind in {**kinds, "exposures": "exposure"}.items()
        ),
        share("columns in yml described", columns),
        share("columns of built tables in yml", built),
    ]


def columns_built(project: Project, unique_id: str) -> list[str]:
    """The columns in dbt's catalog; empty for nodes that are not built."""
    for kind in ("nodes", "sources"):
        found = project.catalog[kind].get(unique_id)
        if found:
            return list(found["columns"])
    return []


def length(macro: Node) -> int:
    """Lines of a macro without comments and empty lines."""
    text = COMMENT.sub("", macro["macro_sql"])
    return sum(bool(line.strip()) for line in text.splitlines())


def lengths(project: Project) -> list[tuple[int, str]]:
    """Macros by length, longest first."""
    return sorted(((length(macro), macro["name"]) for macro in project.macros), reverse=True)


def median_length(project: Project) -> float:
    return float(median(lines for lines, _ in lengths(project)))


def tests_by_kind(project: Project) -> list[tuple[str, int]]:
    """Tests by generic test, or as singular and unit tests; most frequent first."""
    kinds = Counter[str]()
    for test in project.tests:
        if test["resource_type"] == "unit_test":
            kinds["unit test"] += 1
        else:
            kinds[(test.get("test_metadata") or {}).get("name") or "singular test"] += 1
    return kinds.most_common()


def markdown(project: Project) -> str:
    """The audit as a page."""
    rows = [
        f"| {one.what} | {one.has} | {one.all} | "
        f"{', '.join(f'`{name}`' for name in one.missing[:12])}"
        f"{' …' if len(one.missing) > 12 else ''} |"
        for one in described(project)
    ]
    longest = [f"| `{name}` | {lines} |" for lines, name in lengths(project)[:5]]
    kinds = [f"| {name} | {count} |" for name, count in tests_by_kind(project)]
    return "\n".join(
        [
            "# Audit",
            "",
            "Counted by `make docs` from dbt's manifest and catalog.",
            "",
            "## Described and typed",
            "",
            "| | with | total | missing |",
            "|---|---|---|---|",
            *rows,
            "",
            "## Length of macros",
            "",
            f"{len(project.macros)} macros; the median length is {median_length(project):g} lines,"
            " not counting comments and empty lines. The longest:",
            "",
            "| macro | lines |",
            "|---|---|",
            *longest,
            "",
            "## Tests of the examples, by kind",
            "",
            "| kind | tests |",
            "|---|---|",
            *kinds,
            f"| **all** | {len(project.tests)} |",
        ]
    )
