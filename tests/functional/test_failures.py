"""`dbt-history failures`: the rows behind dbt's count of failures."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner, Result

from dbt_history.cli import main
from tests.support.project import Project

# Record 1 overlaps itself from 5 to 9, record 2 is valid, record `` `s` `` has a two-line text.
ROWS = """
    select * from values
        ('1', 'old', 1L, 9L), ('1', 'new', 5L, null), ('2', 'x', 1L, null),
        ('`s`', null, 3L, 2L), ('NULL', 'a\\nb', 4L, 1L)
    as versions(id, `a value`, valid_from, valid_to)
"""
ARGUMENTS = {"key": "id", "convention": {"convention": "validity", "type": "bigint"}}


def failures(target: Path, *options: str) -> Result:
    return CliRunner().invoke(main, ["failures", "--target-path", str(target), *options])


def test_a_failing_test_shows_the_offending_versions(project: Project) -> None:
    project.model("versions", ROWS, materialized="table")
    tests = [
        {f"dbt_history.{test}": {"name": name, "arguments": ARGUMENTS}}
        for test, name in (
            ("periods_do_not_overlap", "versions_do_not_overlap"),
            ("period_is_well_formed", "versions_are_well_formed"),
            ("one_active_version", "versions_are_active_once"),
        )
    ]
    project.write(
        "models/_versions.yml",
        json.dumps({"models": [{"name": "versions", "data_tests": tests}]}),
    )
    run = project.dbt("build", "--select", "versions", "--write-json", check=False)
    assert not run.success

    shown = failures(project.path / "target")

    assert shown.exit_code == 0, shown.output
    by_test = {
        block.splitlines()[0]: block.splitlines()[1:]
        for block in shown.output.strip().split("\n\n")
    }
    assert by_test["versions_are_well_formed: 2 rows of versions"] == [
        "  id    valid_from  valid_to",
        "  NULL  4           1",
        "  `s`   3           2",
    ]
    (overlap,) = [lines for name, lines in by_test.items() if "do_not_overlap" in name]
    assert [line.split()[0] for line in overlap[1:]] == ["1"]
    assert len(by_test) == 2

    one = failures(project.path / "target", "--limit", "1").output
    assert "  … 1 more" in one


def test_no_failures_and_no_run_are_reported(tmp_path: Path) -> None:
    assert "run dbt first" in failures(tmp_path).output
    (tmp_path / "run_results.json").write_text(json.dumps({"results": []}))
    (tmp_path / "manifest.json").write_text("{}")
    assert failures(tmp_path).output == "no test failed\n"
