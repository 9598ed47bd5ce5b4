"""The README's API index: no public macro is missing, and no removed one is named."""

from __future__ import annotations

import re

from tests.support.markdown import page
from tests.support.project import ROOT

FOLDERS = (
    *("_core", "capture", "read", "versions", "logs", "features"),
    *("maintain", "migrate", "generic_tests"),
)
INDEX = page("README.md").split("## API", 1)[1]


def public_names() -> set[str]:
    return {
        file.stem
        for folder in FOLDERS
        for file in (ROOT / "macros" / folder).glob("*.sql")
        if not file.stem.startswith("_")
    }


def test_the_readme_names_every_public_macro() -> None:
    named = set(re.findall(r"`(\w+)", INDEX))

    assert public_names() - named == set()


def test_the_readme_names_no_removed_macro() -> None:
    rows = [line for line in INDEX.splitlines() if line.startswith("|")]
    mentioned = {name for row in rows for name in re.findall(r"`(\w+)(?:\([^`]*\))?`", row)}
    defined = {
        name
        for file in (ROOT / "macros").rglob("*.sql")
        for name in re.findall(r"{%-?\s*(?:macro|test|materialization)\s+(\w+)", file.read_text())
    }

    assert {name for name in mentioned - defined if not name.startswith("_")} == set()
