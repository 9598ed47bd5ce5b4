"""The guides: each row of a comparison has a proof, and everything they name exists."""

from __future__ import annotations

import base64
import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from dbt_history.landing.request import parse_request
from tests.support.markdown import blocks, page, table_after
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


def proven_rows(text: str) -> list[list[str]]:
    """The cells of each row of the tables that end in `shown by`."""
    found, is_inside = [], False
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        is_row = line.startswith("|")
        if is_row and is_inside and not set(line) <= set("|- "):
            found.append(cells)
        is_inside = is_row and (is_inside or cells[-1] == "shown by")
    return found


def proofs(text: str) -> list[str]:
    """The last cells of these rows."""
    return [cells[-1] for cells in proven_rows(text)]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_every_claim_of_a_comparison_is_tested_or_cited(path: Path) -> None:
    text = path.read_text("utf-8")

    named = set(re.findall(r"`(test_\w+)`", text))
    assert named - TESTS == set()
    assert [cell for cell in proofs(text) if "`test_" not in cell and "](http" not in cell] == []


# What a row of docs/systems says of this package; all but the last one need a test.
VERDICT = re.compile(r"^(same|better|more|different|omitted)\b")


def unproven(text: str, tests: set[str]) -> list[str]:
    """What is wrong with the rows of a page of docs/systems.

    A row that says what is implemented names a test. One that says what is omitted names a test of
    what is there instead, or cites a page. Every named test exists.
    """
    problems = []
    for cells in proven_rows(text):
        verdict = VERDICT.match(cells[-2])
        named = re.findall(r"`(test_\w+)`", cells[-1])
        missing = [name for name in named if name not in tests]
        if verdict is None:
            problems.append(f"{cells[0]}: no verdict: {cells[-2]}")
        elif verdict[1] == "omitted":
            if not named and "](http" not in cells[-1]:
                problems.append(f"{cells[0]}: nothing is cited")
        elif not named:
            problems.append(f"{cells[0]}: no test")
        problems += [f"{cells[0]}: there is no {name}" for name in missing]
    return problems


@pytest.mark.parametrize(
    "path", sorted((ROOT / "docs/systems").glob("*.md")), ids=lambda path: path.stem
)
def test_every_statement_of_a_documented_system_has_its_test(path: Path) -> None:
    assert unproven(path.read_text("utf-8"), TESTS) == []


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("| a | b | same | `test_known` |", None),
        ("| a | b | omitted: no engine | [page](https://example.com) |", None),
        ("| a | b | same | `test_unknown` |", "a: there is no test_unknown"),
        ("| a | b | better | `test_known`, `test_unknown` |", "a: there is no test_unknown"),
        ("| a | b | same | [page](https://example.com) |", "a: no test"),
        ("| a | b | | `test_known` |", "a: no verdict: "),
        ("| a | b | omitted: no engine | |", "a: nothing is cited"),
    ],
)
def test_a_row_without_its_proof_is_found(row: str, problem: str | None) -> None:
    page = f"| the original | dbt_history | | shown by |\n|---|---|---|---|\n{row}\n"
    assert unproven(page, {"test_known"}) == ([] if problem is None else [problem])


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


def unprefixed(tests: list[Any]) -> list[dict[str, Any]]:
    """The tests of a node by name, without the package and without names of their own."""
    named = (test if isinstance(test, dict) else {test: {}} for test in tests)
    return [
        {
            name.removeprefix("dbt_history."): {
                key: value for key, value in settings.items() if key != "name"
            }
            for name, settings in test.items()
        }
        for test in named
    ]


def test_the_tests_of_a_mirror_in_the_guide_are_those_of_the_example() -> None:
    guide = page("docs/guides/published_on_a_day.md")
    (shown,) = yaml.safe_load(blocks(guide, "yaml")[0])["models"]
    examples = yaml.safe_load(page("models/examples/crmp/_crmp__models.yml"))["models"]
    (example,) = (model for model in examples if model["name"] == shown["name"])
    assert unprefixed(shown["data_tests"]) == unprefixed(example["data_tests"])
    (column,) = shown["columns"]
    (of_example,) = (one for one in example["columns"] if one["name"] == column["name"])
    assert unprefixed(column["data_tests"]) == unprefixed(of_example["data_tests"])
    listed = {row["test"] for row in table_after(guide, "## Tests to add")}
    tests = {
        name
        for test in shown["data_tests"] + column["data_tests"]
        for name in unprefixed([test])[0]
    }
    assert tests - {"not_null"} == listed


def test_each_snapshot_that_is_shown_has_a_file_format() -> None:
    """dbt-spark makes no snapshot in its default format."""
    found = [
        config
        for path in (ROOT / "docs").rglob("*.md")
        for config in re.findall(r"config\(.*?\) *\}\}", path.read_text("utf-8"), re.DOTALL)
        if re.search(r"\bstrategy=", config)
    ]
    assert found
    assert [config for config in found if "file_format='delta'" not in config] == []


EVENTS = page("docs/guides/events.md")


def code(sql: str) -> str:
    """SQL without its lines of comment."""
    lines = sql.splitlines()
    return "\n".join(line for line in lines if line and not line.startswith("--"))


def test_each_macro_of_logs_is_in_a_block_of_a_guide_that_equals_the_example() -> None:
    printed = [block for path in PAGES for block in blocks(path.read_text("utf-8"), "sql")]
    macros = {file.stem for file in (ROOT / "macros/logs").glob("*.sql")}
    assert len(macros) >= 6
    assert [name for name in macros if not any(name in block for block in printed)] == []

    shown = blocks(EVENTS, "sql")
    assert len(shown) == 4
    for block in shown:
        path = block.splitlines()[0].removeprefix("-- ")
        assert code(block) == code(page(path)), path


def seed_rows(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(page(f"seeds/examples/esql/{name}.csv").splitlines()))


def test_the_rows_of_the_guide_of_events_are_those_of_the_example() -> None:
    changes = seed_rows("esql_column_changes_expected")
    top = table_after(EVENTS, "# Which transaction")
    assert top == [row for row in changes if row["change"] == "Modified"]

    documented = seed_rows("esql_core_history_documented")
    columns = ("trans_id", "user", "table", "event")
    expected = [{name: row[name] for name in columns} for row in documented]
    assert table_after(EVENTS, "rows of transaction 122323") == expected
    assert table_after(EVENTS, "esql_transactions.sql") == seed_rows("esql_transactions_expected")

    created, before, after = table_after(EVENTS, "The rows of x1")
    of_x1 = [row for row in changes if row["_id"] == "x1"]
    assert [row["_hist_event"] for row in (created, before, after)] == ["1", "3", "4"]
    for row in of_x1:
        first, second = (created, created) if row["change"] == "Created" else (before, after)
        assert row["_hist_user"] == second["_hist_user"]
        assert second[row["column"]] == row["to"]
        assert row["change"] == "Created" or first[row["column"]] == row["from"]
    assert {name: created[name] for name in ("name", "address", "b_id")} == {
        name: before[name] for name in ("name", "address", "b_id")
    }
    said = page("docs/guides/how_it_works.md")
    assert "**coarse log**" in said
    assert "events.md#the-coarse-log" in said
