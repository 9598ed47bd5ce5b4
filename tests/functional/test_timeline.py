"""`dbt-history timeline` on tables that dbt has built: its drawings and its refusals."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

from dbt_history.cli import main
from dbt_history.conventions import from_settings
from dbt_history.sql import quoted
from dbt_history.timeline import table
from dbt_history.timeline.chart import lanes
from dbt_history.timeline.commits import batches
from dbt_history.timeline.errors import TimelineError
from dbt_history.timeline.table import read_track
from tests.support.pages import Page
from tests.support.project import Project
from tests.support.staging import day, delete, earliest, new_version, stage, upsert


def rows() -> list[dict[str, Any]]:
    """Record 1: a, c, and between them b, which is late. Record 2 is deleted and inserted again."""
    return [
        upsert(1, 1, day(1), "a"), upsert(1, 2, day(1), "x"),
        *new_version(2, 1, day(5), "c"), delete(2, 2, day(3)),
        earliest(3, 1, day(3)), upsert(3, 1, day(3), "b"), upsert(3, 1, day(5), "c"),
        upsert(3, 2, day(6), "y"),
    ]  # fmt: skip


def command(project: Project, *arguments: str) -> Result:
    folders = ["--project-dir", str(project.path), "--profiles-dir", str(project.path)]
    return CliRunner().invoke(main, ["timeline", *arguments, *folders])


@pytest.mark.thorough
def test_a_history_is_drawn_with_the_records_of_its_commits(
    project: Project, tmp_path: Path
) -> None:
    project.history("things", stage(project, "timeline_rows", rows()), batches_per_commit=1)
    project.model(
        "numbers",
        "select 1L as id, 'n' as v, n as valid_from, nullif(n + 1, 3) as valid_to"
        " from values (1L), (2L) as numbers(n)",
        materialized="table",
        file_format="delta",
    )
    project.model(
        "links_hx",
        "select n as links_hx_id, 7L as link_id, 1L as id, n = 3 as deleted,"
        " timestamp'2024-01-01 00:00:00 UTC' + make_dt_interval(n) as mod_time"
        " from values (1L), (2L), (3L) as numbers(n)",
        materialized="table",
    )
    project.run("things", "numbers", "links_hx", options=["--write-json"])

    track = read_track(project.spark, project.table("things"), ["id"])
    versions = [
        (one.key, one.values["v"], one.until is None, one.arrived, one.is_late, one.is_back)
        for one in track.versions
    ]
    assert versions == [
        (("1",), "a", False, "batch 1", False, False),
        (("1",), "b", False, "batch 3", True, False),
        (("1",), "c", True, "batch 2", False, False),
        (("2",), "x", False, "batch 1", False, False),
        (("2",), "y", True, "batch 3", False, True),
    ]
    assert [(one.batch, one.added) for one in batches(track.commits)] == [(1, 2), (2, 1), (3, 2)]

    page = tmp_path / "things.html"
    done = command(
        project, "things", project.table("links_hx"), "--key", "id=1",
        "--records", f"{project.table('links_hx')}=link_id", "--output", str(page),
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert done.output == f"5 versions in {page}\n"
    shown = Page(page.read_text(encoding="utf-8"))
    assert shown.fetched == []
    records = [text for text in shown.text if text in ("things · 1", "links_hx · 7")]
    assert records[-5:] == ["things · 1"] * 3 + ["links_hx · 7"] * 2
    assert "Batches of things" in shown.text

    picture = tmp_path / "numbers.svg"
    done = command(
        project, project.table("numbers"), "--key", "id", "--at", "1", "--output", str(picture)
    )
    assert done.exit_code == 0, done.output
    assert picture.read_text(encoding="utf-8").startswith("<svg")

    for arguments, words in (
        (["nowhere.table", "--key", "id"], "table nowhere.table does not exist"),
        ([project.table("numbers")], "name its key with --key"),
        ([project.table("numbers"), "--key", "gone=1"], "has no column gone"),
        ([project.table("numbers"), "--key", "id=2"], "has no version of the selected records"),
        (["things", project.table("numbers"), "--key", "id"], "draw them separately"),
    ):
        done = command(project, *arguments)
        assert (done.exit_code, words in done.output) == (1, True), done.output


@pytest.mark.thorough
def test_records_are_found_by_any_key_and_a_log_ends_with_rows_that_do_not_match(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of an odd name, too; NULL is another key than the text NULL, and a time is one in UTC."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    spark.sql(
        "create or replace temporary view `timeline odd.hx` as select * from values"
        " (1L, timestamp'2024-01-01 00:00:00 UTC', false, null, 'Bonn'),"
        " (2L, timestamp'2024-01-02 00:00:00 UTC', false, null, 'Rome'),"
        " (3L, timestamp'2024-01-03 00:00:00 UTC', false, 'NULL', 'Bonn')"
        " as rows(`timeline odd.hx_id`, mod_time, deleted, `a key`, city)"
    )
    spark.sql(
        "create or replace temporary view timeline_times as select timestamp_seconds(n) as at,"
        " 'x' as v, n as valid_from, cast(null as bigint) as valid_to, 'ann' as mail"
        " from range(25) as numbers(n)"
    )
    try:
        name = quoted("timeline odd.hx")
        city = read_track(spark, name, ["a key"], [{"city": "Bonn"}])
        assert [(one.key, one.until is None) for one in city.versions] == [
            ((None,), False), (("NULL",), True),
        ]  # fmt: skip
        assert [one.key for one in read_track(spark, name, ["a key"]).versions] == [
            (None,), (None,), ("NULL",),
        ]  # fmt: skip
        assert lanes([city]) == ["timeline odd.hx · [NULL]", "timeline odd.hx · NULL"]

        numbers = from_settings({"convention": "validity", "type": "bigint"})
        times = read_track(spark, "timeline_times", ["at"], (), numbers, {"mail"})
        assert (len(times.versions), times.is_cut) == (20, True)
        assert (times.versions[0].values, times.hidden) == ({"v": "x"}, ("mail",))
        monkeypatch.setattr(table, "MAX_VERSIONS", 3)
        by_value = read_track(spark, "timeline_times", ["v", "at"], (), numbers)
        assert (len(by_value.versions), by_value.is_cut) == (3, True)
        with pytest.raises(TimelineError, match="has more than 3 versions"):
            read_track(spark, "timeline_times", ["v"], (), numbers)
        with pytest.raises(TimelineError, match="no version of the selected records"):
            read_track(spark, "timeline_times", ["at"], [{"at": "no time"}], numbers)
    finally:
        spark.catalog.dropTempView("timeline odd.hx")
        spark.catalog.dropTempView("timeline_times")
        monkeypatch.undo()
        time.tzset()
