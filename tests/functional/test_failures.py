"""`dbt-history failures`: the rows behind dbt's count of failures."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from click.testing import CliRunner, Result

from dbt_history.cli import main
from tests.support.guide_files import steps
from tests.support.markdown import page
from tests.support.project import ROOT, Project, install_package

# Record 1 overlaps itself from 5 to 9, record 2 is valid, record `` `s` `` has a two-line text.
ROWS = """
    select * from values
        ('1', 'old', 1L, 9L), ('1', 'new', 5L, null), ('2', 'x', 1L, null),
        ('`s`', null, 3L, 2L), ('NULL', 'a\\nb', 4L, 1L)
    as versions(id, `a value`, valid_from, valid_to)
"""
ARGUMENTS = {"key": "id", "convention": {"convention": "validity", "type": "bigint"}}


def failures(project: Path, *options: str) -> Result:
    folders = ["--project-dir", str(project), "--profiles-dir", str(project)]
    target = ["--target-path", str(project / "target")]
    return CliRunner().invoke(main, ["failures", *folders, *target, *options])


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

    shown = failures(project.path)

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

    one = failures(project.path, "--limit", "1").output
    assert "  … 1 more" in one


def test_no_failures_and_no_run_are_reported(tmp_path: Path) -> None:
    assert "run dbt first" in failures(tmp_path).output
    (tmp_path / "target").mkdir()
    (tmp_path / "target/run_results.json").write_text(json.dumps({"results": []}))
    (tmp_path / "target/manifest.json").write_text("{}")
    assert failures(tmp_path).output == "no test failed\n"


@pytest.mark.thorough
def test_tables_of_the_first_project_are_read_with_its_profile(tmp_path: Path) -> None:
    """Only the profile configures Spark, as in docs/guides/start.md."""
    for path, text in steps(page("docs/guides/start.md")):
        if path is not None and path != "packages.yml" and not (tmp_path / path).exists():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)
    profile: dict[str, Any] = yaml.safe_load((tmp_path / "profiles.yml").read_text())
    settings = profile["shop"]["outputs"]["local"]["server_side_parameters"]
    # Spark would download them; these are the same.
    del settings["spark.jars.packages"]
    settings["spark.jars"] = ",".join(map(str, sorted((ROOT / ".state/jars").glob("io.delta*"))))
    (tmp_path / "profiles.yml").write_text(json.dumps(profile))
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/nobody_is_in_oslo.sql").write_text(
        "select customer_id, city from {{ ref('customer_history') }} where city = 'Oslo' -- none"
    )
    install_package(tmp_path)
    (tmp_path / "packages.yml").write_text(json.dumps({"packages": [{"local": str(ROOT)}]}))
    env = {name: value for name, value in os.environ.items() if not name.startswith("DBT_")}
    env |= {"SPARK_CONF_DIR": str(tmp_path / "no_conf"), "DBT_SEND_ANONYMOUS_USAGE_STATS": "0"}

    def run(*command: str) -> tuple[int, str]:
        done = subprocess.run(
            command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout + ("" if done.returncode == 0 else done.stderr)

    code, output = run("dbt", "build")
    assert (code, "ERROR=1" in output) == (1, True), output
    code, output = run("dbt-history", "failures")
    assert code == 0, output
    assert "nobody_is_in_oslo: 1 row of customer_history" in output
    assert output.splitlines()[-2:] == ["  customer_id  city", "  2            Oslo"]
    code, output = run(
        "dbt-history", "timeline", "customer_history", "--key", "customer_id=1",
        "--output", "one.svg",
    )  # fmt: skip
    assert (code, output.splitlines()[-1:]) == (0, ["1 versions in one.svg"]), output
