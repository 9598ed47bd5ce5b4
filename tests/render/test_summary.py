"""The summary at the end of `make build`, from artifacts made here."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from dbt_history.cli import main
from dbt_history.failures import FailedTest, failed_tests
from dbt_history.summary import COUNTS
from tests.support.markdown import blocks, page

HISTORY = "model.dbt_history.fivetran_history"
PRICES = "model.dbt_history.atoti_prices"
MIRROR = "model.dbt_history.prices_hx"


def node(name: str, materialized: str) -> dict[str, Any]:
    return {
        "name": name,
        "alias": name,
        "schema": "history",
        "config": {"materialized": materialized},
    }


MANIFEST = {
    "nodes": {
        HISTORY: node("fivetran_history", "history_batch"),
        PRICES: node("atoti_prices", "history_batch"),
        MIRROR: node("prices_hx", "history_append"),
        "model.dbt_history.current": node("current", "view"),
        "test.dbt_history.unique.1": node("unique", "test"),
    }
}


def result(unique_id: str, status: str, message: str = "", seconds: float = 1.0) -> dict[str, Any]:
    return {
        "unique_id": unique_id,
        "status": status,
        "message": message or None,
        "execution_time": seconds,
        "adapter_response": {"_message": message, "code": "history_batch", "rows_affected": 0},
    }


def summary(target: Path, *results: dict[str, Any]) -> Result:
    run_results = {"results": list(results), "elapsed_time": 12.4}
    (target / "run_results.json").write_text(json.dumps(run_results))
    (target / "manifest.json").write_text(json.dumps(MANIFEST))
    return CliRunner().invoke(main, ["summary", "--target-path", str(target)])


def test_each_history_table_has_a_line_and_there_is_a_total(tmp_path: Path) -> None:
    shown = summary(
        tmp_path,
        result(
            HISTORY,
            "success",
            "2 batches: 6 added, 3 closed, 0 removed, 1 skipped, 0 replayed",
            2.25,
        ),
        result(
            PRICES,
            "success",
            "1 batch: 1200 added, 0 closed, 10 removed, 0 skipped, 0 replayed",
        ),
        result("model.dbt_history.current", "success"),
        result("test.dbt_history.unique.1", "pass"),
    )
    assert shown.exit_code == 0
    assert shown.output.splitlines() == [
        "",
        "history table             batches  added  closed  removed  skipped  replayed  seconds",
        "history.fivetran_history        2      6       3        0        1         0      2.2",
        "history.atoti_prices            1  1,200       0       10        0         0      1.0",
        "all                             3  1,206       3       10        1         0      3.2",
        "",
        "models:     3 built",
        "tests:      1 passed",
        "seconds:    12",
    ]


def test_the_guide_of_ci_shows_what_is_printed(tmp_path: Path) -> None:
    model = "model.shop.customer_history"
    of_model = {**node("customer_history", "history"), "schema": "shop"}
    manifest = {"nodes": {model: of_model}}
    message = "1 batch: 2 added, 1 closed, 0 removed, 0 skipped, 0 replayed"
    results = [
        result(model, "success", message, 2.1),
        result("seed.shop.customers", "success"),
        result("test.shop.one.1", "pass"),
        result("test.shop.another.2", "pass"),
    ]
    run_results = {"results": results, "elapsed_time": 14.2}
    (tmp_path / "run_results.json").write_text(json.dumps(run_results))
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))

    folder = ["--target-path", str(tmp_path)]
    printed = [CliRunner().invoke(main, [name, *folder]) for name in ("summary", "failures")]
    (shown,) = blocks(page("docs/guides/ci.md"), "text")
    assert shown == "".join(one.output for one in printed).lstrip("\n")


def test_one_table_needs_no_total(tmp_path: Path) -> None:
    message = "1 batch: 6 added, 3 closed, 0 removed, 1 skipped, 0 replayed"
    assert "all " not in summary(tmp_path, result(HISTORY, "success", message)).output


@pytest.mark.parametrize(
    ("message", "rows"),
    [("1200 rows appended", "1,200"), ("1 row appended", "1"), ("nothing new", "0")],
)
def test_a_log_has_a_line_with_its_rows(tmp_path: Path, message: str, rows: str) -> None:
    batch = "1 batch: 6 added, 3 closed, 0 removed, 1 skipped, 0 replayed"
    shown = summary(
        tmp_path, result(HISTORY, "success", batch), result(MIRROR, "success", message)
    ).output.splitlines()
    assert [line.split() for line in shown[3:6]] == [
        [],
        ["log", "rows", "seconds"],
        ["history.prices_hx", rows, "1.0"],
    ]


def test_a_failed_log_shows_the_first_line_of_the_message(tmp_path: Path) -> None:
    shown = summary(tmp_path, result(MIRROR, "error", "refused\nmore lines"))
    assert "history.prices_hx  error: refused\n" in shown.output


def test_a_run_without_a_new_batch_shows_zeros(tmp_path: Path) -> None:
    message = "no new batch: 0 added, 0 closed, 0 removed, 0 skipped, 2 replayed"
    line = summary(tmp_path, result(HISTORY, "success", message)).output.splitlines()[2]
    assert line.split() == ["history.fivetran_history", "0", "0", "0", "0", "0", "2", "1.0"]


def test_what_suspended_tables_hold_back_has_a_column(tmp_path: Path) -> None:
    held = "suspended: 0 added, 0 closed, 0 removed, 0 skipped, 1 replayed, 2 held back"
    plain = "1 batch: 6 added, 3 closed, 0 removed, 1 skipped, 0 replayed"
    shown = summary(
        tmp_path,
        result(HISTORY, "success", held),
        result(PRICES, "success", plain),
        result(MIRROR, "success", "suspended: 12 rows held back"),
    ).output.splitlines()
    assert [re.split(r"  +", line) for line in shown[1:7]] == [
        ["history table", "batches", *COUNTS, "held back", "seconds"],
        ["history.fivetran_history", "0", "0", "0", "0", "0", "1", "2", "1.0"],
        ["history.atoti_prices", "1", "6", "3", "0", "1", "0", "0", "1.0"],
        ["all", "1", "6", "3", "0", "1", "1", "2", "2.0"],
        [""],
        ["log", "rows", "held back", "seconds"],
    ]
    assert re.split(r"  +", shown[7]) == ["history.prices_hx", "0", "12", "1.0"]


def test_a_failed_table_shows_the_first_line_of_the_message(tmp_path: Path) -> None:
    shown = summary(tmp_path, result(HISTORY, "error", "batch refused\nmore lines"))
    assert "history.fivetran_history  error: batch refused\n" in shown.output
    assert shown.output.endswith(f"Failed:\n  {HISTORY}\n")


def test_a_skipped_table_is_named(tmp_path: Path) -> None:
    assert (
        "history.fivetran_history  skipped\n"
        in summary(tmp_path, result(HISTORY, "skipped")).output
    )


def test_tests_are_counted_by_outcome(tmp_path: Path) -> None:
    outcomes = ("pass", "pass", "warn", "fail", "error", "skipped", "no-op")
    tests = [result(f"test.p.{number}.x", outcome) for number, outcome in enumerate(outcomes)]
    assert (
        "tests:      2 passed, 1 warned, 1 failed, 1 in error, 1 skipped, 1 no-op\n"
        in summary(tmp_path, *tests).output
    )


def test_a_run_without_history_tables_is_reported(tmp_path: Path) -> None:
    shown = summary(tmp_path, result("model.dbt_history.current", "success"))
    assert "No history table was built.\n" in shown.output


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "run dbt first"), ("{", "is not valid JSON")],
    ids=["no artifact", "half an artifact"],
)
def test_an_unreadable_artifact_is_an_error(
    tmp_path: Path, content: str | None, message: str
) -> None:
    if content is not None:
        (tmp_path / "run_results.json").write_text(content)
    shown = CliRunner().invoke(main, ["summary", "--target-path", str(tmp_path)])
    assert shown.exit_code == 1
    assert message in shown.output


def test_json_has_the_tables_and_their_counts(tmp_path: Path) -> None:
    summary(tmp_path, result(HISTORY, "success", "2 batches: 6 added, 3 closed"))
    done = CliRunner().invoke(main, ["summary", "--target-path", str(tmp_path), "--json"])
    (table,) = json.loads(done.output)["tables"]
    assert (table["name"], table["batches"], table["counts"]["added"]) == (
        "history.fivetran_history",
        2,
        6,
    )


def test_failures_are_those_of_the_projects_target_folder(tmp_path: Path) -> None:
    """Also one of a test that the manifest no longer has."""
    target = tmp_path / "target"
    target.mkdir()
    gone = {**result("test.shop.unique_id.1", "fail"), "failures": 1, "compiled_code": "select 1"}
    run_results = {"results": [gone], "elapsed_time": 1.0}
    (target / "run_results.json").write_text(json.dumps(run_results))
    (target / "manifest.json").write_text(json.dumps(MANIFEST))
    (found,) = failed_tests(run_results, MANIFEST)
    assert found == FailedTest("unique_id", (), 1, "select 1")

    shown = CliRunner(env={"DBT_TARGET_PATH": None}).invoke(
        main, ["failures", "--project-dir", str(tmp_path), "--profiles-dir", str(tmp_path)]
    )
    assert shown.exit_code == 1
    assert "run dbt first" not in shown.output
