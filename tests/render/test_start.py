"""The files that guides give to copy are valid, and agree with each other and the package."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from dbt_history.cli import main
from tests.support.guide_files import steps
from tests.support.markdown import blocks, page
from tests.support.project import ROOT

START, CI = page("docs/guides/start.md"), page("docs/guides/ci.md")
FILES = dict[str, str]()
for path, text in steps(START):
    if path is not None:
        FILES.setdefault(path, text)
INSTALL = re.compile(r'"dbt-core\S+" "dbt-spark\S+" "pyspark\S+"')
PACKAGES, ACTIONS, GITLAB = (yaml.load(text, yaml.BaseLoader) for text in blocks(CI, "yaml"))


def commands() -> dict[str, list[str]]:
    """The shell commands of both jobs, in order."""
    steps_of_job: list[dict[str, Any]] = ACTIONS["jobs"]["build"]["steps"]
    job = GITLAB["history"]
    return {
        "actions": [step["run"] for step in steps_of_job if "run" in step],
        "gitlab": [*job["before_script"], *job["script"], *job["after_script"]],
    }


def test_the_guide_for_a_first_project_gives_valid_files() -> None:
    assert [*FILES] == [
        "dbt_project.yml", "packages.yml", "profiles.yml", "seeds/customers.csv",
        "models/customer_history.sql", "models/customer_history.yml",
    ]  # fmt: skip
    project, profile = (
        yaml.safe_load(FILES[f"{name}.yml"]) for name in ("dbt_project", "profiles")
    )
    target = profile[project["profile"]]["outputs"]["local"]
    settings = target["server_side_parameters"]
    locked = page("requirements/jars.lock")
    assert settings["spark.jars.packages"] in locked
    assert settings["spark.sql.extensions"] == "io.delta.sql.DeltaSparkSessionExtension"
    model = FILES["models/customer_history.sql"].replace(
        "ref('customers')", "source('shop', 'customers')"
    )
    assert model == blocks(page("README.md"), "sql")[0]
    (tested,) = yaml.safe_load(FILES["models/customer_history.yml"])["models"]
    for test in tested["data_tests"]:
        (name,) = test
        assert (ROOT / f"macros/generic_tests/{name.removeprefix('dbt_history.')}.sql").is_file()


def test_the_profile_of_the_readme_has_the_settings_of_the_guide() -> None:
    readme = yaml.safe_load(blocks(page("README.md"), "yaml")[1])["shop"]["outputs"]["local"]
    guide = yaml.safe_load(FILES["profiles.yml"])["shop"]["outputs"]["local"]
    quiet = ("spark.log.level", "spark.ui.showConsoleProgress")
    settings = guide.pop("server_side_parameters")
    assert readme.pop("server_side_parameters") == {
        name: value for name, value in settings.items() if name not in quiet
    }
    assert readme == guide


def test_the_commands_of_landing_have_the_settings_of_the_profile() -> None:
    (text,) = blocks(page("docs/guides/landing.md"), "properties")
    found = dict(line.split() for line in text.splitlines())
    guide = yaml.safe_load(FILES["profiles.yml"])["shop"]["outputs"]["local"]
    assert found == guide["server_side_parameters"]


def test_every_page_installs_the_same_versions() -> None:
    found = {INSTALL.findall(text)[0] for text in (page("README.md"), START)}
    found |= set(INSTALL.findall(CI))
    assert len(found) == 1


@pytest.mark.parametrize("job", ["actions", "gitlab"])
def test_the_commands_of_a_job_are_valid_and_exist(job: str) -> None:
    script = "\n".join(commands()[job])
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)
    words = [shlex.split(line, comments=True) for line in script.splitlines()]
    called = [line[1] for line in words if line[:1] == ["dbt-history"]]
    assert called == ["summary", "failures"]
    assert set(called) <= set(main.commands)
    assert ["dbt", "build", "--profiles-dir", "."] in words


@pytest.mark.parametrize("job", ["actions", "gitlab"])
def test_the_comment_of_a_job_has_the_summary_as_it_is_printed(job: str, tmp_path: Path) -> None:
    """In a fence, because Markdown would join the lines of its table."""
    steps_of_job = {step.get("name"): step for step in ACTIONS["jobs"]["build"]["steps"]}
    *lines, comment = GITLAB["history"]["after_script"]
    script, post = {
        "actions": (steps_of_job["Summary"]["run"], steps_of_job["Comment"]["run"]),
        "gitlab": ("\n".join(lines), comment),
    }[job]
    stub = "dbt-history() { echo; echo $1; }\n"
    subprocess.run(["bash", "-e"], input=stub + script, text=True, check=True, cwd=tmp_path)
    (file,) = tmp_path.iterdir()
    assert file.read_text() == "```text\n\nsummary\n\nfailures\n```\n"
    assert file.name in post


def test_the_package_and_the_command_come_from_the_same_commit() -> None:
    """A job has no checkout of the package: `dbt deps` gets it from git, as pip does."""
    (package,) = PACKAGES["packages"]
    address = f"git+{package['git']}@{package['revision']}"
    assert [*re.findall(r"dbt-history @ (\S+?)\"", CI)] == [address] * 2
    of_readme = yaml.safe_load(blocks(page("README.md"), "yaml")[0])["packages"]
    of_start = FILES["packages.yml"].replace("\n# ", "\n  ").partition("  - git")
    assert yaml.safe_load("packages:\n" + "".join(of_start[1:]))["packages"] == of_readme


def test_the_jobs_have_the_parts_that_their_systems_require() -> None:
    assert {"on", "permissions", "jobs"} <= ACTIONS.keys()
    steps_of_job = ACTIONS["jobs"]["build"]["steps"]
    assert all(("uses" in step) != ("run" in step) for step in steps_of_job)
    assert ACTIONS["permissions"]["pull-requests"] == "write"
    job = GITLAB["history"]
    assert {"image", "rules", "script", "artifacts"} <= job.keys()
    assert job["artifacts"]["when"] == "always"
