"""A mirror run by two processes concurrently, or killed: real processes on the same files."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.support.processes import kill_at, start, together
from tests.support.project import Project

ROWS = 40


def select(schema: str) -> str:
    return (
        "select * from {{ dbt_history.hx_rows("
        f"api.Relation.create(schema='{schema}', identifier='items'), 'id') }}}}"
    )


@pytest.fixture
def items(project: Project) -> str:
    """A source with rows, half of which are then changed."""
    table = project.table("items")
    project.spark.sql(f"create schema if not exists {project.schema}")
    project.spark.sql(
        f"create table {table} (id bigint, v string) using delta"
        " tblproperties ('delta.enableChangeDataFeed' = 'true')"
    )
    project.spark.sql(f"insert into {table} select id, 'a' from range({ROWS})")
    return table


def ready(tmp_path: Path, warehouse: Path, schema: str, name: str) -> subprocess.Popen[str]:
    """A process that has registered the source and is ready to run the mirror."""
    folder = tmp_path / name
    folder.mkdir()
    (folder / "model.sql").write_text(select(schema))
    (folder / "config.json").write_text(json.dumps({"materialized": "history_append"}))
    location = warehouse / f"{schema}.db" / "items"
    (folder / "setup.sql").write_text(
        f"create schema if not exists {schema}\n"
        f"create table {schema}.items using delta location '{location}'"
    )
    if (warehouse / f"{schema}.db" / "h").exists():
        with (folder / "setup.sql").open("a") as file:
            file.write(
                f"\ncreate table {schema}.h using delta location"
                f" '{warehouse / f'{schema}.db' / 'h'}'"
            )
    return start(folder, warehouse, schema)


def run_mirror(project: Project) -> str:
    """Run the mirror in this process."""
    project.model("h", select(project.schema), materialized="history_append")
    return project.run("h").message("h")


def assert_mirrored_once(project: Project, rows: int) -> None:
    """Check that ids start at 1 without gaps, and that the newest rows equal the source."""
    history = project.rows("h")
    assert sorted(row["items_hx_id"] for row in history) == list(range(1, rows + 1))
    newest = {row["id"]: row["v"] for row in sorted(history, key=lambda row: row["items_hx_id"])}
    assert newest == {row["id"]: row["v"] for row in project.rows("items")}


@pytest.mark.thorough
def test_two_concurrent_mirror_runs_capture_every_change_once(
    project: Project, items: str, warehouse: Path, tmp_path: Path
) -> None:
    run_mirror(project)
    project.spark.sql(f"update {items} set v = 'b' where id % 2 = 0")
    both = [ready(tmp_path, warehouse, project.schema, name) for name in ("one", "two")]

    messages = sorted(together(both))

    project.spark.sql(f"refresh table {project.table('h')}")
    assert messages[0] == f"{ROWS // 2} rows appended"
    assert messages[1] in ("applied by another run", "nothing new")
    assert run_mirror(project) == "nothing new"
    assert_mirrored_once(project, ROWS + ROWS // 2)


@pytest.mark.thorough
@pytest.mark.parametrize("version", [0, 1], ids=["created", "appended"])
def test_a_mirror_killed_after_a_commit_is_finished_by_the_next(
    project: Project, items: str, warehouse: Path, tmp_path: Path, version: int
) -> None:
    commit = warehouse / f"{project.schema}.db" / "h" / "_delta_log" / f"{version:020}.json"
    kill_at(ready(tmp_path, warehouse, project.schema, "killed"), commit)

    run_mirror(project)

    assert_mirrored_once(project, ROWS)
