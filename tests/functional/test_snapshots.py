"""The snapshots of `snapshots/examples`, taken after each of several loads."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.project import ROOT, SCHEMA, Project, Run
from tests.support.staging import OPEN
from tests.support.tables import assert_same_rows, data_frame

EXAMPLES = ROOT / "snapshots/examples"
EXPECTED = ROOT / "seeds/examples/fivetran/fivetran_history_expected.csv"
RUN = datetime(2025, 1, 1)
TYPES = {
    "id": "bigint",
    "col1": "string",
    "col2": "bigint",
    "changed_at": "timestamp",
    "_fivetran_active": "boolean",
}
STATIONS = {"network_id": "bigint", "native_id": "string", "station_id": "bigint"}


def time(text: str) -> datetime:
    return datetime.fromisoformat(text.removesuffix("Z"))


def documented(batch: int) -> list[dict[str, Any]]:
    """The rows of the seed after a batch."""
    with EXPECTED.open(encoding="utf-8", newline="") as file:
        cells = [row for row in csv.DictReader(file) if int(row["after_batch"]) == batch]
    return [
        {
            "id": int(row["id"]),
            "col1": row["col1"],
            "col2": None if row["col2"] == "null" else int(row["col2"]),
            "changed_at": time(row["_fivetran_start"]),
            "_fivetran_start": time(row["_fivetran_start"]),
            "_fivetran_end": time(row["_fivetran_end"]),
            "_fivetran_active": row["_fivetran_active"] == "true",
            "snapshot_end": row["snapshot_end"],
        }
        for row in cells
    ]


def in_snapshot(batch: int) -> list[dict[str, Any]]:
    """The versions that the snapshot has; an end at the time of a run is `RUN`."""
    versions = [row for row in documented(batch) if row["snapshot_end"] != "null"]
    ends = [RUN if row["snapshot_end"] == "run" else time(row["snapshot_end"]) for row in versions]
    return [{**row, "_fivetran_end": end} for row, end in zip(versions, ends, strict=True)]


def run_as_one_time(row: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The row with `RUN` as time of every run; the other times are in 2024 or open."""
    value = row[name]
    return {**row, name: RUN if value is not None and RUN < value < OPEN else value}


class Loads:
    """A project whose snapshots read tables that the test replaces before each run."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.schema = project.schema.removeprefix(SCHEMA + "_")
        self.tables: set[str] = set()

    def snapshot(self, path: Path) -> None:
        """Write a snapshot of the examples, reading the test's tables."""
        text = path.read_text(encoding="utf-8")
        for reference in ("ref('fivetran_snapshot_source')", "source('crmp', 'meta_station')"):
            text = text.replace(reference, "source('loads', '" + reference.split("'")[-2] + "')")
        text = text.replace("config(", f"config(schema='{self.schema}', file_format='delta',", 1)
        self.project.write(f"snapshots/{path.name}", text)

    def view(self, path: Path) -> None:
        """Write a view of the examples."""
        text = path.read_text(encoding="utf-8").partition("}}")[2]
        self.project.model(path.stem, text, materialized="view")

    def load(self, name: str, rows: Iterable[Mapping[str, Any]], types: Mapping[str, str]) -> None:
        """Replace the content of a table."""
        table = self.project.table(name)
        self.project.spark.sql(f"create schema if not exists {self.project.schema}")
        frame = data_frame(self.project.spark, rows, types)
        frame.write.format("delta").mode("overwrite").saveAsTable(table)
        self.tables.add(name)
        tables = [{"name": one} for one in sorted(self.tables)]
        source = {"name": "loads", "schema": self.project.schema, "tables": tables}
        self.project.write("models/loads.yml", json.dumps({"version": 2, "sources": [source]}))

    def take(self, *names: str, check: bool = True) -> Run:
        return self.project.dbt("snapshot", "--select", *names, check=check)


@pytest.fixture
def loads(project: Project) -> Loads:
    return Loads(project)


@pytest.mark.thorough
def test_the_example_has_the_documented_rows_that_a_snapshot_can_know(loads: Loads) -> None:
    """Stored by `versions`; of `timestamp`, through a view that adds the flag."""
    loads.snapshot(EXAMPLES / "fivetran_snapshot.sql")
    loads.snapshot(EXAMPLES / "fivetran_by_timestamp.sql")
    loads.view(ROOT / "models/examples/fivetran/fivetran_snapshot_versions.sql")
    columns = ["id", "col1", "col2", "changed_at"]
    columns += ["_fivetran_start", "_fivetran_end", "_fivetran_active"]
    for batch in (1, 2, 3, 4, 5):
        current = [row for row in documented(batch) if row["_fivetran_active"]]
        loads.load("fivetran_snapshot_source", current, TYPES)
        loads.take("fivetran_snapshot", "fivetran_by_timestamp")
        if batch == 1:
            loads.project.run("fivetran_snapshot_versions")
        for name in ("fivetran_snapshot", "fivetran_snapshot_versions"):
            rows = [run_as_one_time(row, "_fivetran_end") for row in loads.project.rows(name)]
            assert_same_rows(rows, in_snapshot(batch), columns, f"{name} after batch {batch}")
    assert "dbt_scd_id" not in rows[0]


@pytest.mark.thorough
def test_versions_that_start_at_one_clock_of_the_session_are_two(loads: Loads) -> None:
    """Summer time ends: 00:30 and 01:30 UTC are both 02:30 in Berlin."""
    loads.snapshot(EXAMPLES / "fivetran_snapshot.sql")
    zone = "spark.sql.session.timeZone"
    first, second = datetime(2024, 10, 27, 0, 30), datetime(2024, 10, 27, 1, 30)
    for text, at in (("a", first), ("b", second)):
        row = {"id": 1, "col1": text, "col2": 1, "changed_at": at, "_fivetran_active": True}
        loads.load("fivetran_snapshot_source", [row], TYPES)
        loads.project.spark.conf.set(zone, "Europe/Berlin")
        try:
            loads.take("fivetran_snapshot")
        finally:
            loads.project.spark.conf.set(zone, "UTC")
    rows = loads.project.rows("fivetran_snapshot")
    found = sorted((row["col1"], row["_fivetran_start"], row["_fivetran_active"]) for row in rows)
    assert found == [("a", first, False), ("b", second, True)]
    assert len({row["dbt_scd_id"] for row in rows}) == 2


def test_dbts_strategies_keep_keys_nulls_and_deletions_as_their_examples_say(loads: Loads) -> None:
    loads.snapshot(EXAMPLES / "fivetran_by_timestamp.sql")
    loads.snapshot(EXAMPLES / "crmp_stations_by_check.sql")
    names = ("fivetran_by_timestamp", "crmp_stations_by_check")
    first, second, third = datetime(2024, 1, 1), datetime(2024, 1, 2), datetime(2024, 1, 3)

    def item(key: int, text: str | None, at: datetime) -> dict[str, Any]:
        return {"id": key, "col1": text, "changed_at": at}

    def station(native: str | None, number: int | None) -> dict[str, Any]:
        return {"network_id": 1, "native_id": native, "station_id": number}

    items = [
        [item(1, "a", first), item(2, "x", first), item(2, "y", first)],
        # The change of 1 has the time of the stored version; 2 changes from '' to NULL.
        [item(1, "b", first), item(2, "", second)],
        [item(1, "b", first)],
        [item(1, "b", first), item(2, None, third)],
    ]
    stations = [
        [station("a", None), station("a|", 1), station("", 2), station(None, 3)],
        [station("a", 0), station("a|", 1), station(None, 3)],
        [station("a", 0), station("a|", 1), station("", 5)],
        [station("a", 0), station("a|", 1), station("", 5)],
    ]
    for some_items, some_stations in zip(items, stations, strict=True):
        loads.load("fivetran_snapshot_source", some_items, TYPES)
        loads.load("meta_station", some_stations, STATIONS)
        loads.take(*names)

    def version(row: Mapping[str, Any]) -> dict[str, Any]:
        return run_as_one_time(run_as_one_time(row, "dbt_valid_from"), "dbt_valid_to")

    by_time = [version(row) for row in loads.project.rows("fivetran_by_timestamp")]
    period = ["dbt_valid_from", "dbt_valid_to"]
    deleted = {"id": 2, "col1": "", "changed_at": second, "dbt_is_deleted": "True"}
    kept = [
        # A tie is not noticed.
        {**item(1, "a", first), "dbt_valid_from": first},
        {**item(2, "y", first), "dbt_valid_from": first, "dbt_valid_to": second},
        {**item(2, "", second), "dbt_valid_from": second, "dbt_valid_to": RUN},
        # The new version starts in the source's time, before the run that found the deletion.
        {**deleted, "dbt_valid_from": RUN, "dbt_valid_to": third},
        {**item(2, None, third), "dbt_valid_from": third},
    ]
    expected = [{"dbt_is_deleted": "False", **row} for row in kept]
    assert_same_rows(by_time, expected, ["id", "col1", "changed_at", *period, "dbt_is_deleted"])

    by_check = [version(row) for row in loads.project.rows("crmp_stations_by_check")]
    kept = [
        {**station("a", None), "dbt_valid_to": RUN},
        station("a", 0),
        station("a|", 1),
        # It was missing in the second load and is the same version.
        {**station("", 2), "dbt_valid_to": RUN},
        station("", 5),
    ]
    expected = [{"dbt_valid_from": RUN, **row} for row in kept]
    assert_same_rows(by_check, expected, [*STATIONS, *period])
    assert "dbt_unique_key_1" not in by_check[0]


@pytest.mark.thorough
def test_a_snapshot_goes_on_after_an_erasure_and_is_not_rewound(project: Project) -> None:
    """
    people    1 Ada, DE      1 NULL, DE      erased
    known     v1             v1, v2          v1, v2 without a country; then v3: DE again
    """
    spark, people = project.spark, project.table("people")
    spark.sql(f"create schema if not exists {project.schema}")
    spark.sql(f"create table {people} (id bigint, name string, country string) using delta")
    spark.sql(f"insert into {people} values (1, 'Ada', 'DE')")
    settings = (
        "strategy='check', check_cols=['name', 'country'], unique_key='id', file_format='delta',"
        f" target_schema='{project.schema}'"
    )
    project.write(
        "snapshots/known.sql",
        f"{{% snapshot known %}}{{{{ config({settings}) }}}} select * from {people}"
        " {% endsnapshot %}",
    )
    project.dbt("snapshot")
    spark.sql(f"update {people} set name = null")
    project.dbt("snapshot")

    refused = project.dbt(
        "run-operation", "rewind", "--args", "{table: known, to: '2024-01-01'}", check=False
    )
    assert "it is a snapshot of dbt" in refused.log
    project.dbt("run-operation", "erase_subject", "--args", "{table: known, only: {id: 1}}")
    for _ in range(2):
        project.dbt("snapshot")

    rows = project.rows("known")
    assert len({row["dbt_scd_id"] for row in rows}) == len(rows) == 3
    assert [row["country"] for row in rows if row["dbt_valid_to"] is None] == ["DE"]
