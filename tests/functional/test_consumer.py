"""A project that installs the package gets no node of it, and can use the materialization."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONSUMER = "dbt_history_integration_tests"

Dbt = Callable[..., str]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the consumer, so that a run leaves nothing in the checkout."""
    project = tmp_path_factory.mktemp("consumer") / "project"
    ignored = shutil.ignore_patterns("dbt_packages", "target", "logs", "package-lock.yml")
    shutil.copytree(ROOT / "integration_tests", project, ignore=ignored)
    (project / "packages.yml").write_text(json.dumps({"packages": [{"local": str(ROOT)}]}))
    return project


@pytest.fixture(scope="module")
def dbt(project: Path) -> Dbt:
    """Run dbt in its own process, as a user does, and return its output."""

    state = {
        "DBT_TARGET_PATH": str(project / "target"),
        "DBT_LOG_PATH": str(project / "logs"),
        "CONSUMER_WAREHOUSE": str(project / "warehouse"),
    }

    def run(*arguments: str) -> str:
        done = subprocess.run(
            ["dbt", "--no-use-colors", *arguments],
            cwd=project,
            env=os.environ | state,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("deps")
    return run


def test_a_consumer_sees_no_node_of_the_package(dbt: Dbt) -> None:
    listed = dbt("ls", "--quiet", "--output", "json", "--output-keys", "package_name")
    packages = {json.loads(line)["package_name"] for line in listed.splitlines()}
    assert packages == {CONSUMER}


@pytest.mark.thorough
def test_a_consumer_builds_a_history_table(dbt: Dbt, project: Path) -> None:
    dbt("build")
    results = json.loads((project / "target" / "run_results.json").read_text())["results"]
    statuses = {result["unique_id"].split(".")[2]: result["status"] for result in results}
    assert statuses["customer_history"] == "success"
    assert statuses["customer_history_incremental"] == "success"
    # The consumer's own test compares the rows, in the session that built them.
    assert statuses["customer_history_is_as_expected"] == "pass"
