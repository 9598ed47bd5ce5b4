"""The guides: each row of a comparison has a proof, and everything they name exists."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]

from dbt_history.landing.request import parse_request
from tests.support.markdown import blocks, page
from tests.support.project import ROOT

PAGES = sorted(
    [
        *(ROOT / "docs/guides").glob("*.md"),
        *(ROOT / "docs/systems").glob("*.md"),
        *(ROOT / name for name in ("README.md", "docs/cluster.md")),
    ]
)
TESTS = {
    name
    for file in (ROOT / "tests").rglob("test_*.py")
    for name in re.findall(r"^def (test_\w+)\(", file.read_text("utf-8"), re.MULTILINE)
}
OPERATION = re.compile(r"^(?:\$ )?dbt run-operation (\w+) --args '(.*)'$", re.MULTILINE)


def proofs(text: str) -> list[str]:
    """The last cell of each row of the tables that end in `shown by`."""
    found, is_inside = [], False
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        is_row = line.startswith("|")
        if is_row and is_inside and not set(line) <= set("|- "):
            found.append(cells[-1])
        is_inside = is_row and (is_inside or cells[-1] == "shown by")
    return found


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_every_claim_of_a_comparison_is_tested_or_cited(path: Path) -> None:
    text = path.read_text("utf-8")

    named = set(re.findall(r"`(test_\w+)`", text))
    assert named - TESTS == set()
    assert [cell for cell in proofs(text) if "`test_" not in cell and "](http" not in cell] == []


def test_each_seed_system_and_each_alternative_has_a_comparison() -> None:
    for name in ("fivetran", "crmp", "esql", "naksha", "atoti"):
        assert len(proofs((ROOT / f"docs/systems/{name}.md").read_text("utf-8"))) >= 8
    assert len(proofs((ROOT / "docs/guides/comparison.md").read_text("utf-8"))) >= 15


def test_the_guides_call_run_operations_with_their_arguments() -> None:
    described = {
        macro["name"]: {argument["name"] for argument in macro.get("arguments") or []}
        for file in (ROOT / "macros").glob("*/_macros.yml")
        for macro in yaml.safe_load(file.read_text("utf-8"))["macros"]
    }
    calls = [call for path in PAGES for call in OPERATION.findall(path.read_text("utf-8"))]

    assert len(calls) >= 5
    for name, arguments in calls:
        assert yaml.safe_load(arguments).keys() <= described[name], name


def test_the_shim_of_the_guide_is_the_one_of_the_consumer_project() -> None:
    _, shim = blocks(page("docs/incremental_strategy.md"), "sql")
    run = page("integration_tests/macros/incremental_history_batch.sql")

    assert "".join(shim.split()) in "".join(run.split())


def test_landing_accepts_the_request_of_the_guide() -> None:
    (text,) = blocks(page("docs/guides/landing.md"), "json")
    document = json.loads(text)
    document["keys"] = dict.fromkeys(document["keys"], base64.b64encode(bytes(32)).decode())

    request = parse_request(document, "the guide")

    assert [column.name for column in request.columns][:2] == ["id", "price"]
    assert [file.name for file in request.files] == document["update_files"]
