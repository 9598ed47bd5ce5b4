"""The explorer on a table that this project did not make: the countries of `gapminder`.

142 countries, 12 loads five years apart. Run 1 sees the first load, run 2 all others in one result.

country  1952 ------ 1957 ------ 1962 ---- … ---- 2007 ------>
run         1           2           2                2
"""

from __future__ import annotations

import csv
import json
from datetime import datetime
from importlib.metadata import distribution
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.functional.test_explore import command, micros
from tests.functional.test_history import model
from tests.support.browser import needs_browser, played
from tests.support.project import Project

pytestmark = pytest.mark.thorough

VALUES = ("continent", "lifeExp", "pop", "gdpPercap")
TYPES = "country string, continent string, lifeExp string, pop string, gdpPercap string"


def countries() -> list[dict[str, str]]:
    # Not by import, which needs pkg_resources.
    path = Path(str(distribution("gapminder").locate_file("gapminder/gapminder.csv")))
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def state_at(rows: list[dict[str, str]], year: int) -> dict[str, tuple[str, ...]]:
    """The last load of each country up to a year."""
    loads = sorted((row for row in rows if int(row["year"]) <= year), key=lambda row: row["year"])
    return {row["country"]: tuple(row[name] for name in VALUES) for row in loads}


@needs_browser
def test_the_page_has_the_countries_of_each_year(
    project: Project, spark: SparkSession, tmp_path: Path
) -> None:
    rows = countries()
    years = sorted({int(row["year"]) for row in rows})
    spark.sql(f"create schema if not exists {project.schema}")
    source = project.table("countries")
    spark.sql(f"create table {source} ({TYPES}, load timestamp) using delta")
    model(
        project, "country_history", f"select * from {source}", key="country",
        updated_at="load", source="changes",
    )  # fmt: skip
    for loads in (years[:1], years[1:]):
        frame = spark.createDataFrame(
            [
                (row["country"], *(row[name] for name in VALUES), datetime(int(row["year"]), 1, 1))
                for row in rows
                if int(row["year"]) in loads
            ],
            f"{TYPES}, load timestamp",
        )
        frame.write.mode("overwrite").insertInto(source)
        project.run("country_history")

    out = tmp_path / "countries.html"
    done = command(project, "explore", "country_history", "--out", str(out))
    assert done.exit_code == 0, done.output
    assert f"{len(rows)} versions of 1 table" in done.output, done.output
    asked = sorted({year + more for year in years for more in (-1, 0, 1)})
    instants = [str(micros(datetime(year, 1, 1))) for year in asked]
    seen, _ = played(
        out.read_text("utf-8"),
        tmp_path,
        f"""return {json.dumps(instants)}.map(function (at) {{
            window.explore.moveTo(at); return window.explore.csv()[0]; }});""",
    )
    for year, text in zip(asked, seen, strict=True):
        lines = list(csv.DictReader(text.splitlines()))
        shown = {line["country"]: tuple(line[name] for name in VALUES) for line in lines}
        assert shown == state_at(rows, year), year
