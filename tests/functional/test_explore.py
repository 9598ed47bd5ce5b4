"""`dbt-history explore` and `show` on real tables: the page's rows are those of the readers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

from dbt_history.cli import main
from dbt_history.explore.export import compact, read_table
from dbt_history.explore.page import page
from dbt_history.explore.project import DbtProject, ExploreError, open_project
from dbt_history.explore.tables import HistoryTable, resolve
from tests.oracle.cases import find_cases, read_cases
from tests.support.browser import needs_browser, opened, played
from tests.support.pages import Page
from tests.support.project import Project
from tests.support.rendering import Renderer
from tests.support.staging import day, delete, earliest, new_version, stage, upsert

CASES = read_cases(find_cases(Path(__file__).parents[2]))
EPOCH = datetime(1970, 1, 1)
FIVETRAN_OPEN = datetime(9999, 12, 31, 23, 59, 59, 999000)
MILLISECOND = timedelta(milliseconds=1)
MAX_BIGINT = 2**63 - 1


class ViewProject(DbtProject):
    """The package's macros on temporary views."""

    def __init__(self, call: Renderer, spark: SparkSession) -> None:
        super().__init__(call._adapter, call._manifest)
        self.spark = spark

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.spark.sql(sql).collect()]

    def look_for(self, schema: str, name: str) -> None:
        """Views have no marks."""


def periods() -> list[tuple[str, int, datetime, datetime | None]]:
    """The half-open periods of the expected tables of all cases, each with a number.

    None for an open end.
    """
    found = []
    for case in CASES:
        for number, row in enumerate(case.expected):
            end = row["_fivetran_end"]
            until = None if end.year == 9999 else end + MILLISECOND
            found.append((case.id, number, row["_fivetran_start"], until))
    return found


def micros(time: datetime) -> int:
    return (time - EPOCH) // timedelta(microseconds=1)


def timestamp(time: datetime) -> str:
    return f"timestamp'{time.isoformat(sep=' ')} UTC'"


def stored(name: str) -> tuple[str, Any]:
    """SQL of the stored rows of the same periods in a convention, and the convention.

    The axis of numbers is in microseconds.
    """
    lines = []
    for case, number, since, until in periods():
        start, end = timestamp(since), "null"
        if name == "gap of a millisecond":
            end = timestamp(FIVETRAN_OPEN if until is None else until - MILLISECOND)
        elif name == "open end NULL" and until is not None:
            end = timestamp(until)
        elif name == "open end in year 9999":
            end = timestamp(datetime(9999, 12, 31) if until is None else until)
        elif name.startswith("numbers"):
            gap = 5 if "gap" in name else 0
            start, end = f"{micros(since)}L", f"{MAX_BIGINT}L"
            if until is not None:
                end = f"{micros(until) - gap}L"
        active = "true" if until is None else "false"
        lines.append(f"('{case}', {number}, {start}, {end}, {active})")
    conventions: dict[str, Any] = {
        "gap of a millisecond": {
            "start": "s", "end": "e", "active": "a", "gap": "1 millisecond",
            "open_end": "9999-12-31 23:59:59.999",
        },
        "open end NULL": {"start": "s", "end": "e"},
        "open end in year 9999": {"start": "s", "end": "e", "open_end": "9999-12-31"},
        "numbers, maximum": {
            "start": "s", "end": "e", "type": "bigint", "open_end": MAX_BIGINT,
        },
        "numbers, gap and maximum": {
            "start": "s", "end": "e", "type": "bigint", "open_end": MAX_BIGINT, "gap": 5,
        },
    }  # fmt: skip
    text = f"select * from values {', '.join(lines)} as rows(case_id, number, s, e, a)"
    return text, conventions[name]


CONVENTIONS = (
    "gap of a millisecond",
    "open end NULL",
    "open end in year 9999",
    "numbers, maximum",
    "numbers, gap and maximum",
)


@needs_browser
def test_the_pages_rows_of_an_instant_are_those_of_the_reader(
    call: Renderer, spark: SparkSession, tmp_path: Path
) -> None:
    """At each start and end of the conformance cases, and one unit before and after it."""
    project = ViewProject(call, spark)
    instants = sorted(
        {
            at + near
            for _, _, since, until in periods()
            for at in (micros(since), *([] if until is None else [micros(until)]))
            for near in (-1, 0, 1)
        }
        # Around open ends, and after them.
        | {
            micros(at) + near
            for at in (datetime(9999, 12, 31), FIVETRAN_OPEN)
            for near in (-1000, -1, 0, 1, 1000)
        }
        | {MAX_BIGINT // 2}
    )
    tables, expected = [], {}
    for place, name in enumerate(CONVENTIONS):
        sql, convention = stored(name)
        view = f"explored_{place}"
        spark.sql(sql).createOrReplaceTempView(view)
        columns = dict(spark.table(view).dtypes)
        table = HistoryTable(
            view, "v", view, "versions", ("case_id", "number"), convention, "", columns
        )
        tables.append(read_table(project, table))
        is_number = convention.get("type") == "bigint"
        # One query for all instants: the reader takes any expression as its point.
        point = "at" if is_number else "timestamp_micros(at)"
        reader = call("as_of", relation=view, at=point, convention=convention)
        points = ", ".join(f"({at}L)" for at in instants)
        found = spark.sql(
            f"select at, case_id, number from values {points} as points(at),"
            f" lateral (select case_id, number from {reader} as history)"
        ).collect()
        rows: dict[str, list[list[str]]] = {str(at): [] for at in instants}
        for row in found:
            rows[str(row[0])].append([row[1], str(row[2])])
        expected[f"v.{view}"] = {at: sorted(keys) for at, keys in rows.items()}

    html = page(compact(tables, "cases", ""))
    script = f"""
        var found = {{}};
        {json.dumps(list(expected))}.forEach(function (id) {{
            found[id] = {{}};
            {json.dumps([str(at) for at in instants])}.forEach(function (at) {{
                found[id][at] = window.explore.rows(id, at).sort();
            }});
        }});
        return found;
    """
    seen, _ = played(html, tmp_path, script)

    assert sum(map(len, expected["v.explored_0"].values())) > 500
    for id_, by_instant in expected.items():
        assert {at: sorted(keys) for at, keys in seen[id_].items()} == by_instant, id_


def command(project: Project, *arguments: str) -> Result:
    places = ("--project-dir", str(project.path), "--profiles-dir", str(project.path))
    return CliRunner().invoke(main, [*arguments, *places])


def data_of(html: str) -> Mapping[str, Any]:
    text = html.split('type="application/json">', 1)[1].split("</script>", 1)[0]
    data: Mapping[str, Any] = json.loads(text)
    return data


@pytest.mark.thorough
def test_a_projects_histories_are_explored_and_shown_without_hidden_columns(
    project: Project, tmp_path: Path
) -> None:
    rows = [
        upsert(1, 1, day(1), "a"), upsert(1, 2, day(1), "x"),
        *new_version(2, 1, day(5), "c"), delete(2, 2, day(3)),
        earliest(3, 1, day(3)), upsert(3, 1, day(3), "b"), upsert(3, 1, day(5), "c"),
    ]  # fmt: skip
    # Columns as a mirror has them do not make it one.
    select = stage(project, "explored_rows", rows).replace("*", "*, 'x' as mod_time, 0 as deleted")
    project.history("explored_things", select)
    project.model(
        "explored_log_hx",
        "select n as explored_log_hx_id, 1L as id, if(n = 1, 'secret', 'b') as v, n = 3 as deleted,"
        " 'ann' as mod_user, timestamp'2024-01-01 00:00:00 UTC' + make_dt_interval(n) as mod_time"
        " from values (1L), (2L), (3L) as numbers(n)"
        " -- depends_on: {{ ref('explored_things') }}",
        materialized="table",
    )
    project.write(
        "models/explored.yml",
        json.dumps(
            {
                "models": [
                    {
                        "name": "explored_things",
                        "columns": [{"name": "v", "config": {"meta": {"history": {"hide": True}}}}],
                    }
                ],
                # The same table, described once more.
                "sources": [
                    {
                        "name": "elsewhere",
                        "schema": project.schema,
                        "tables": [
                            {
                                "name": "explored_things",
                                "columns": [{"name": "w", "config": {"tags": ["pii"]}}],
                            }
                        ],
                    }
                ],
            }
        ),
    )
    project.run("explored_things", "explored_log_hx")
    project.dbt(
        "run-operation", "create_tag",
        "--args", json.dumps({"table": "explored_things", "tag": "audit", "at": "2024-01-03"}),
    )  # fmt: skip

    out = tmp_path / "history.html"
    done = command(
        project, "explore", "explored_things", "explored_log_hx", "--key", "id", "--out", str(out)
    )
    assert done.exit_code == 0, done.output
    assert "explored_log_hx: without v" in done.output, "hidden in the table it was made from"
    assert done.output.endswith(f"6 versions of 2 tables in {out}\n")
    html = out.read_text("utf-8")
    assert Page(html).fetched == []
    data = data_of(html)
    assert "secret" not in json.dumps(data)
    things, log = data["tables"]
    assert (things["key"], things["hidden"]) == (["id"], ["v", "w"])
    assert [things["commits"][place]["batch"] for place in things["arrived"]] == [
        "batch 1", "batch 3", "batch 2", "batch 1",
    ]  # fmt: skip
    assert things["late"] == [1]
    assert all(one["run"] for one in things["commits"])
    assert [tag["name"] for tag in things["tags"]] == ["audit"]
    assert (log["kind"], log["who"], log["open"]) == ("mirror", "mod_user", [0, 0])

    done = command(project, "show", "explored_things", "--at", "tag:audit", "--json")
    assert done.exit_code == 0, done.output
    *lines_of_rows, note = done.output.splitlines()
    # Record 2 was deleted at this instant: its last version ends a gap later.
    assert [json.loads(line)["id"] for line in lines_of_rows] == ["1", "2"]
    assert note == "not shown: v, w"

    done = command(
        project, "show", "explored_things", "--between", "2024-01-02", "2024-01-10", "--show-hidden"
    )
    assert done.exit_code == 0, done.output
    lines = [line.split("  ") for line in done.output.splitlines()[1:]]
    assert [line[0] for line in lines] == ["update", "delete", "update"]
    assert "a → b" in done.output
    assert "b → c" in done.output

    with open_project(project.path, project.path, None) as opened:
        things_shown = read_table(opened, resolve(opened, "explored_things", (), True))
        values = [row.cells[0] for row in things_shown.rows]
        assert values == ["a", "b", "c", "x"]
        assert things_shown.columns[0] == ("v", "string")
        for name, words in (
            ("nothing", "no model, snapshot, seed or source has this name"),
            ("nowhere.t", "table nowhere.t does not exist"),
            ("explored_log_hx", "name its key with --key"),
        ):
            with pytest.raises(ExploreError, match=words):
                resolve(opened, name, (), False)
        with pytest.raises(ExploreError, match="not a point on the axis"):
            opened.call("as_of", relation=things_shown.table.relation, at="1")


@needs_browser
@pytest.mark.thorough
def test_an_erased_subject_is_in_no_page_and_copied_calls_run(
    project: Project, tmp_path: Path
) -> None:
    rows = [upsert(1, 1, day(1), "a"), upsert(1, 2, day(1), "z-erased")]
    rows += new_version(2, 1, day(5), "c")
    project.history("erased_things", stage(project, "erased_rows", rows))
    project.run("erased_things")

    def explored(name: str) -> str:
        out = tmp_path / name
        done = command(project, "explore", "erased_things", "--out", str(out), "--show-hidden")
        assert done.exit_code == 0, done.output
        return out.read_text("utf-8")

    before = explored("before.html")
    assert "z-erased" in before
    arguments = {"table": "erased_things", "only": {"id": 2}, "reason": "a request"}
    project.dbt("run-operation", "erase_subject", "--args", json.dumps(arguments))
    after = explored("after.html")
    assert [table["keys"] for table in data_of(after)["tables"]] == [[["1"]]]
    assert "z-erased" not in after

    with opened((tmp_path / "after.html").as_uri()) as page:
        page.fill("#at", "2024-01-09")
        page.keyboard.press("Enter")
        page.fill("#than", "2024-01-02")
        page.keyboard.press("Enter")
        page.click("#rows button.key")
        page.wait_for_selector("html[data-drawn]")
        calls = [page.text_content(name) or "" for name in ("#version-code", "#change-code")]
    for number, sql in enumerate(calls):
        project.model(f"copied_{number}", sql, materialized="table")
    project.run("copied_0", "copied_1")
    # Both versions of record 1, and its update after the second day as two rows.
    assert [len(project.rows(f"copied_{number}")) for number in (0, 1)] == [2, 2]


def test_days_and_times_have_one_line(call: Renderer, spark: SparkSession) -> None:
    """A table of days is in microseconds on the page: a day begins at its midnight in UTC."""
    spark.sql(
        "select 1 as id, date'2024-01-01' as s, date'2024-01-03' as e union all"
        " select 1, date'2024-01-04', cast(null as date)"
    ).createOrReplaceTempView("explored_days")
    convention = {"start": "s", "end": "e", "type": "date", "gap": "1 day"}
    columns = dict(spark.table("explored_days").dtypes)
    table = HistoryTable(
        "explored_days", "v", "explored_days", "versions", ("id",), convention, "", columns
    )
    found = read_table(ViewProject(call, spark), table)

    fourth = int(datetime.combine(date(2024, 1, 4), datetime.min.time(), UTC).timestamp()) * 10**6
    assert [(row.since, row.until) for row in found.rows] == [
        (fourth - 3 * 86_400 * 10**6, fourth),
        (fourth, None),
    ]
