"""The guide for a first project, followed in a new environment: plain pip, and Delta by Spark."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from tests.support.guide_files import steps
from tests.support.markdown import page
from tests.support.project import ROOT

pytestmark = pytest.mark.thorough

GUIDE = page("docs/guides/start.md")
# The oldest dbt-core that pip installs with dbt-spark 1.11, and the newest that it installs without
# a download from elsewhere.
VERSIONS = {"newest": ">=1.10.9,<1.12", "oldest": "==1.10.9"}


@pytest.mark.parametrize("end", VERSIONS)
def test_the_guide_makes_a_history_in_a_new_environment(tmp_path: Path, end: str) -> None:
    """Customer 1 moves between the two runs, 2 is deleted and 3 is new."""
    project = tmp_path / "shop"
    project.mkdir()
    # A link would make dbt read the checkout's environment.
    left_out = shutil.ignore_patterns(".*", "docs", "tests", "bench", "scripts")
    shutil.copytree(
        ROOT,
        tmp_path / "dbt_history",
        ignore=lambda folder, names: left_out(folder, names) if Path(folder) == ROOT else set(),
    )
    java = os.environ.get("JAVA_HOME", "")
    env = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("DBT_", "SPARK", "PYSPARK", "VIRTUAL_ENV"))
    }
    shown = looked_at = ""
    for path, text in steps(GUIDE):
        if path is not None:
            (project / path).parent.mkdir(parents=True, exist_ok=True)
            (project / path).write_text(text)
            continue
        done = subprocess.run(
            ["bash", "-ec", text.replace(VERSIONS["newest"], VERSIONS[end])],
            cwd=project,
            env=env | ({"JAVA_HOME": java} if java else {}),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        shown = done.stdout if "dbt show" in text else shown
        looked_at = done.stdout if "dbt-history show" in text else looked_at
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in shown.splitlines()
        if re.match(r"\| +\d", line)
    ]
    versions = [(int(row[0]), row[1], row[3] in ("", "None")) for row in rows]
    assert versions == [
        (1, "Bonn", False), (1, "Rome", True), (2, "Oslo", False), (3, "Graz", True),
    ]  # fmt: skip
    now = [line for line in looked_at.splitlines() if re.search(r"Rome|Graz|Bonn|Oslo", line)]
    assert len(now) == 2, looked_at
    assert "Rome" in now[0], looked_at
    assert "Graz" in now[1], looked_at
    assert "Rome" in (project / "history.html").read_text()
    assert "Rome" in (project / "timeline.html").read_text()
    asked = [str(project / "env/bin/pip"), "show", "dbt-core"]
    installed = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    version = re.search(r"^Version: (\S+)$", installed, re.MULTILINE)
    assert version, installed
    assert version[1] in SpecifierSet(VERSIONS[end]), "the extra replaced the dbt of the project"
