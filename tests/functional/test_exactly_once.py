"""Concurrent runs, and runs that are killed: real processes on the same files."""

from __future__ import annotations

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.processes import kill, kill_at, last_line, run_until, start, together, wait_until
from tests.support.project import Project
from tests.support.staging import COLUMNS, batches_of_one
from tests.support.tables import assert_same_rows

BATCHES = 4
SELECT, EXPECTED = batches_of_one(BATCHES)


def ready(tmp_path: Path, warehouse: Path, schema: str, name: str) -> subprocess.Popen[str]:
    """A process that is ready to run the model."""
    (tmp_path / name).mkdir()
    (tmp_path / name / "model.sql").write_text(SELECT)
    return start(tmp_path / name, warehouse, schema)


def numbers_in_the_log(project: Project) -> list[int]:
    records = [row["userMetadata"] for row in project.log_of("h")]
    return [
        int(record.split('"batch": ')[1].split(",")[0]) for record in reversed(records) if record
    ]


def commit_of(project: Project, warehouse: Path, number: int) -> Path:
    """A file of the table's log."""
    return warehouse / f"{project.schema}.db" / "h" / "_delta_log" / f"{number:020}.json"


def check_that_every_batch_is_there_once(project: Project) -> None:
    after = project.run("h")
    assert after.message("h") == "no new batch: 0 added, 0 closed, 0 removed, 0 skipped, 4 replayed"
    assert_same_rows(project.rows("h"), EXPECTED, COLUMNS)
    assert numbers_in_the_log(project) == [1, 2, 3, 4]


def check_that_every_batch_was_added_once(project: Project, messages: list[str]) -> None:
    check_that_every_batch_is_there_once(project)
    added = [int(message.split(": ")[1].split(" added")[0]) for message in messages]
    assert sum(added) == BATCHES


def test_a_run_beside_one_that_is_killed_applies_every_batch_once(
    project: Project, warehouse: Path, tmp_path: Path
) -> None:
    """
    commits       1         2     3     4
    other run     | ------------- | killed
    this run      begins --------------- |
    """
    project.history("h", SELECT, batches_per_commit=1)
    other = ready(tmp_path, warehouse, project.schema, "other")
    run_until(other, commit_of(project, warehouse, 1).exists)

    def end_other() -> None:
        wait_until(other, commit_of(project, warehouse, 3).exists)
        kill(other)

    with ThreadPoolExecutor() as beside:
        ended = beside.submit(end_other)
        project.run("h")
        ended.result()

    check_that_every_batch_is_there_once(project)


@pytest.mark.thorough
def test_two_concurrent_runs_apply_every_batch_once(
    project: Project, warehouse: Path, tmp_path: Path
) -> None:
    """This process joins in when the other one, whose Java has just started, has applied one."""
    project.history("h", SELECT, batches_per_commit=1)
    other = ready(tmp_path, warehouse, project.schema, "other")
    run_until(other, commit_of(project, warehouse, 1).exists)

    messages = [project.run("h").message("h"), last_line(other)]

    check_that_every_batch_was_added_once(project, messages)


@pytest.mark.thorough
def test_two_runs_at_once_create_the_table_once(
    project: Project, warehouse: Path, tmp_path: Path
) -> None:
    both = [ready(tmp_path, warehouse, project.schema, name) for name in ("one", "two")]

    messages = together(both)

    project.history("h", SELECT, batches_per_commit=1)
    check_that_every_batch_was_added_once(project, messages)


@pytest.mark.thorough
def test_two_runs_at_once_that_cut_the_batches_otherwise_apply_every_batch_once(
    project: Project, warehouse: Path, tmp_path: Path
) -> None:
    both = []
    for most in (2, 3):
        folder = tmp_path / str(most)
        folder.mkdir()
        (folder / "model.sql").write_text(SELECT)
        config = {
            "materialized": "history_batch",
            "unique_key": "id",
            "meta": {"history": {"convention": "fivetran", "batches_per_commit": most}},
        }
        (folder / "config.json").write_text(json.dumps(config))
        both.append(start(folder, warehouse, project.schema))

    together(both)

    project.history("h", SELECT)
    assert project.run("h").message("h").startswith("no new batch")
    assert_same_rows(project.rows("h"), EXPECTED, COLUMNS)
    assert numbers_in_the_log(project)[-1] == BATCHES


@pytest.mark.thorough
@pytest.mark.parametrize("number", [0, 2], ids=["created", "batch 2"])
def test_a_run_killed_after_a_commit_is_finished_by_the_next(
    project: Project, warehouse: Path, tmp_path: Path, number: int
) -> None:
    commit = commit_of(project, warehouse, number)
    kill_at(ready(tmp_path, warehouse, project.schema, "killed"), commit)
    project.history("h", SELECT, batches_per_commit=1)

    project.run("h")

    assert_same_rows(project.rows("h"), EXPECTED, COLUMNS)
    assert numbers_in_the_log(project) == [1, 2, 3, 4]


@pytest.mark.thorough
def test_uncommitted_files_are_ignored(project: Project, warehouse: Path) -> None:
    commit = commit_of(project, warehouse, 0)
    left = commit.with_name(f".{commit.name}.tmp")
    left.parent.mkdir(parents=True)
    left.write_text("half")
    project.history("h", SELECT, batches_per_commit=1)

    project.run("h")

    assert left.read_text() == "half"
    assert_same_rows(project.rows("h"), EXPECTED, COLUMNS)
