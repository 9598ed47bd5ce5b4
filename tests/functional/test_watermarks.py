"""The watermark of a source is kept: without rows, without changes, and after a gap."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.project import Project

FEED = "tblproperties ('delta.enableChangeDataFeed' = 'true')"


def changes(project: Project, name: str) -> str:
    relation = f"api.Relation.create(schema='{project.schema}', identifier='{name}')"
    return f"dbt_history.changes({relation}, 'id')"


def of_changes(project: Project, model: str, name: str = "items", sql: str = "{}") -> None:
    """A version table of what changed in a source."""
    rows = f"{{{{ dbt_history.batch_rows({changes(project, name)}, 'id', 'validity') }}}}"
    project.history(model, "select * from " + sql.format(rows), convention="validity")


def watermarks(project: Project, model: str) -> dict[str, Any]:
    """The watermarks in the newest commit, by the name of the source's table."""
    record = json.loads(project.log_of(model)[0]["userMetadata"])
    return {name.split("`")[-2]: mark for name, mark in record["watermarks"].items()}


def versions(project: Project, model: str) -> list[tuple[Any, ...]]:
    """Key, value and whether the version is open, in order of time."""
    rows = sorted(project.rows(model), key=lambda row: (row["id"], row["valid_from"]))
    return [(row["id"], row["v"], row["valid_to"] is None) for row in rows]


@pytest.mark.thorough
def test_a_source_that_is_empty_at_first_has_a_watermark(project: Project) -> None:
    spark = project.spark
    items, others = project.table("items"), project.table("others")
    spark.sql(f"create schema {project.schema}")
    for table in (items, others):
        spark.sql(f"create table {table} (id bigint, v string) using delta {FEED}")
    spark.sql(f"create view {project.table('seen')} as select * from {items}")
    of_changes(project, "h")
    of_changes(project, "numbered", sql="(select *, 7 as _batch from {} as found) as rows")
    of_changes(project, "of_view", name="seen")
    project.model(
        "log",
        f"select * from {{{{ {changes(project, 'seen')} }}}}",
        materialized="history_append",
    )
    both = " union all select * from ".join(
        f"{{{{ {changes(project, name)} }}}} as {name}" for name in ("items", "others")
    )
    project.history(
        "both",
        "select * from {{ dbt_history.batch_rows('(select * from "
        + both.replace("{{ ", "' ~ ").replace(" }}", " ~ '")
        + ")', 'id', 'validity') }}",
        convention="validity",
    )
    models = ("h", "numbered", "of_view", "log", "both")
    project.run(*models)
    first = {model: watermarks(project, model)["seen"] for model in ("of_view", "log")}
    spark.sql(f"insert into {items} values (1, 'a'), (2, 'x')")
    spark.sql(f"insert into {others} values (3, 'o')")
    spark.sql(f"update {items} set v = 'b' where id = 1")
    spark.sql(f"delete from {items} where id = 2")

    project.run(*models)

    found = [(1, "a", False), (1, "b", True), (2, "x", False)]
    assert versions(project, "h") == found
    assert versions(project, "both") == [*found, (3, "o", True)]
    assert versions(project, "numbered") == found
    assert versions(project, "of_view") == [(1, "b", True)]
    assert first == {model: watermarks(project, model)["seen"] for model in first}
    assert all(mark["populated"] for mark in first.values())


@pytest.mark.thorough
def test_commits_without_changes_are_read_once_and_cause_no_empty_commits(
    project: Project,
) -> None:
    spark = project.spark
    items = project.table("items")
    spark.sql(f"create schema {project.schema}")
    spark.sql(f"create table {items} (id bigint, v string) using delta {FEED}")
    spark.sql(f"insert into {items} values (1, 'a')")
    of_changes(project, "h")
    of_changes(project, "numbered", sql="(select *, 7 as _batch from {} as found) as rows")
    project.run("h", "numbered")
    spark.sql(f"alter table {items} set tblproperties ('a' = 'b')")
    spark.sql(f"optimize {items}")

    project.run("h", "numbered")

    newest = project.log_of("items")[0]["version"]
    commits = {}
    for model in ("h", "numbered"):
        assert watermarks(project, model)["items"]["version"] == newest
        commits[model] = len(project.log_of(model))
    again = project.run("h", "numbered")
    assert again.message("h").startswith("no new batch")
    assert commits == {model: len(project.log_of(model)) for model in commits}
    of_changes(project, "numbered", sql="(select *, 8 as _batch from {} as found) as rows")
    spark.sql(f"update {items} set v = 'b'")
    project.run("h", "numbered")
    for model in ("h", "numbered"):
        assert versions(project, model) == [(1, "a", False), (1, "b", True)]
