"""The guide for engineers: its commands and their output, run on its table."""

from __future__ import annotations

import re
import shlex
from datetime import datetime
from typing import Any

import pytest
from click.testing import CliRunner

from dbt_history.cli import main
from tests.support.markdown import page, table_after
from tests.support.project import Project
from tests.support.tables import data_frame

pytestmark = pytest.mark.thorough

GUIDE = page("docs/guides/engineers.md")
SESSION = re.compile(r"^\$ (.+)\n((?:(?!\$ |```).*\n)*)", re.MULTILINE)
MARK = "dbt_history: "
TYPES = {
    "_stage": "string", "_batch": "bigint", "customer_id": "bigint", "city": "string",
    "valid_from": "timestamp", "valid_to": "timestamp",
}  # fmt: skip


def staged() -> list[dict[str, Any]]:
    """The guide's batches as staged rows; an update closes the previous version."""
    rows = []
    for row in table_after(GUIDE, "three batches"):
        key = {"_batch": int(row["batch"]), "customer_id": int(row["customer_id"])}
        at = datetime.fromisoformat(row["at"])
        if row["city"]:
            rows.append({**key, "_stage": "upsert", "city": row["city"], "valid_from": at})
        else:
            rows.append({**key, "_stage": "delete", "valid_to": at})
    return [{name: row.get(name) for name in TYPES} for row in rows]


def printed(project: Project, command: str) -> list[str]:
    """The package's output of a command of the guide, without dbt's lines and times."""
    program, *arguments = shlex.split(command)
    if program == "dbt-history":
        done = CliRunner().invoke(main, arguments, env={"DBT_TARGET_PATH": "target"})
        assert done.exit_code == 0, done.output
        return done.output.splitlines()
    lines = project.dbt(*arguments).log.splitlines()
    return [line.partition(MARK)[2] for line in lines if MARK in line]


def test_the_commands_of_the_guide_print_what_it_shows(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    data_frame(project.spark, staged(), TYPES).createOrReplaceTempView("engineers_customers")
    project.history(
        "customers", "select * from engineers_customers", key="customer_id", convention="validity"
    )
    project.run("customers", options=["--write-json"])
    monkeypatch.chdir(project.path)
    sessions = SESSION.findall(GUIDE)

    assert len(sessions) >= 5
    for command, shown in sessions:
        assert printed(project, command) == shown.splitlines(), command
