"""The seeds of documented tables have the rows of the conformance cases from the same documents."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.project import ROOT

CASES = Path(ROOT) / "tests/conformance/cases/validity"
SEEDS = Path(ROOT) / "seeds/examples/atoti"


def seed(name: str) -> list[dict[str, str]]:
    with (SEEDS / f"{name}.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def as_text(rows: list[dict[str, Any]]) -> list[dict[str, str]]:
    return [{name: str(value) for name, value in row.items()} for row in rows]


def in_order(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    return sorted(rows, key=lambda row: (row["id"], row["valid_from"]))


@pytest.mark.parametrize(
    ("case", "example"),
    [
        ("T1", "atoti_insert_documented"), ("T2", "atoti_delete_documented"),
        ("T3", "atoti_update_documented"), ("T4", "atoti_append_only_expected"),
    ],
)  # fmt: skip
def test_atotis_documented_tables_are_seeds_with_their_rows(case: str, example: str) -> None:
    given = json.loads((CASES / f"{case}.json").read_text(encoding="utf-8"))
    assert given["source_status"] == "documented"
    assert in_order(seed(example)) == in_order(as_text(given["expected"]["rows"]["t"]))
