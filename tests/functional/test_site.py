"""`dbt-history docs` for a project of its own: the pages say what Spark has in the tables."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from dbt_history.docs.tables import read_facts
from dbt_history.explore.project import open_project
from dbt_history.explore.tables import history_nodes
from tests.functional.test_explore import command
from tests.functional.test_history import FEED, model
from tests.support.pages import Page
from tests.support.project import Project
from tests.support.staging import TYPES, before, day, delete, stage, upsert, version
from tests.support.tables import data_frame

DESCRIBED = {
    "models": [
        {
            "name": "site_items",
            "description": "One row per item and period. ![Periods](pictures/Two%20items.PNG)",
            "columns": [
                {"name": "id", "data_tests": ["not_null"]},
                {"name": "v", "description": "What it is.", "data_tests": ["not_null"]},
                {"name": "email", "config": {"meta": {"history": {"hide": True}}}},
            ],
        }
    ]
}


@pytest.fixture
def pictures(project: Project) -> Iterator[bytes]:
    """The project has a folder that `dbt docs generate` copies, with an image in it."""
    settings = project.path / "dbt_project.yml"
    before = settings.read_text("utf-8")
    settings.write_text(json.dumps({**json.loads(before), "asset-paths": ["pictures"]}))
    project.write("pictures/Two items.PNG", "an image")
    project.write("pictures/notes.txt", "no image")
    yield b"an image"
    settings.write_text(before)


@pytest.mark.thorough
def test_the_site_of_a_project_shows_what_its_tables_have(
    project: Project, tmp_path: Path, pictures: bytes
) -> None:
    """Four versions in three runs, and a second model that is not built.

    item   run 1 --------- run 2 ------------ run 3 ------->
    1      a               c
    2      b                                  deleted
    3                      NULL
    """
    spark = project.spark
    spark.sql(f"create schema if not exists {project.schema}")
    table = project.table("items")
    spark.sql(f"create table {table} (id bigint, v string, email string) using delta {FEED}")
    model(project, "site_items", f"select * from {table}")
    model(project, "site_waiting", f"select * from {table}")
    project.write("models/site.yml", json.dumps(DESCRIBED))
    spark.sql(f"insert into {table} values (1, 'a', 'ann@example'), (2, 'b', 'bob@example')")
    project.run("site_items")
    spark.sql(f"update {table} set v = 'c' where id = 1")
    spark.sql(f"insert into {table} values (3, null, 'cy@example')")
    project.run("site_items")
    spark.sql(f"delete from {table} where id = 2")
    project.run("site_items")
    name = project.table("site_items")
    tag = {"table": name, "tag": "audit & co", "reason": "year <end>"}
    project.dbt("run-operation", "create_tag", "--args", json.dumps(tag))
    tested = project.dbt("test", "--select", "site_items", "--write-json", check=False)
    assert not tested.success, "an item has no value"
    dates = sorted({str(row["valid_from"])[:10] for row in project.rows("site_items")})

    out = tmp_path / "site"
    options = ("--out", str(out), "--target-path", str(project.path / "target"))
    done = command(project, "docs", *options)

    assert done.exit_code == 0, done.output
    assert str(out / "index.html") in done.output
    page = Page((out / "tables/site_items.html").read_text("utf-8"))
    words = " ".join(page.text)
    for fact in ("One row per item and period.", "4, 2 of them open", "audit & co", "year <end>",
                 "What it is.", dates[0], dates[-1]):  # fmt: skip
        assert fact in words, fact
    states = [str(one["class"]) for one in page.all("span") if "state" in str(one["class"])]
    assert sorted(states) == ["state failed", "state passed"]
    # Under this address dbt's page looks for it.
    assert (out / "pictures/Two items.PNG").read_bytes() == pictures
    assert not (out / "pictures/notes.txt").exists()
    waiting = Page((out / "tables/site_waiting.html").read_text("utf-8"))
    assert "Not read: " in " ".join(waiting.text)
    listed = Page((out / "tables/index.html").read_text("utf-8"))
    assert {Path(link).name for link in listed.links} >= {"site_items.html", "site_waiting.html"}
    values = ("ann@example", "bob@example", "cy@example")
    written = [
        file.read_text("utf-8") for file in out.rglob("*") if file.suffix in (".html", ".js")
    ]
    assert not [one for text in written for one in values if one in text]
    assert command(project, "docs", *options).exit_code == 0, "a site is replaced"


@pytest.mark.thorough
def test_remembered_deletions_and_repeats_are_no_versions(project: Project) -> None:
    """The table after the batch, and a repeat that is added to it:

    day    0      1      3      5      8      9
    1             [ a ---|-----)       [ b ----- open    the repeat is at 3
    2                                         |          a deletion that no version shows
    3      |                                             another one
    """
    rows = [
        upsert(1, 1, day(1)), delete(1, 1, day(5)), upsert(1, 1, day(8), "b"),
        delete(1, 2, day(9)), delete(1, 3, day(0)),
    ]  # fmt: skip
    stage(project, "staged", rows)
    project.history("h", "select * from staged", late_events=True)
    project.run("h")
    repeat = [version(1, "z", day(3), before(day(3)))]
    table = project.table("h")
    columns = project.spark.table(table).columns
    data_frame(project.spark, repeat, TYPES).select(*columns).write.insertInto(table)
    assert len(project.rows("h")) == 5

    with open_project(project.path, project.path, None) as opened:
        (node,) = [one for one in history_nodes(opened.nodes) if one["name"] == "h"]
        facts = read_facts(opened, node)

    assert (facts.problem, facts.versions, facts.current) == ("", 2, 1)
    assert (facts.first, facts.last) == ("2024-01-01", "2024-01-08")
    assert facts.per_day == (("2024-01-01", 1), ("2024-01-08", 1))
