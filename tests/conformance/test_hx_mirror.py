"""Every case of the area `hx_mirror`, with its variants, through `hx_rows` and `history_append`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.operations import Tables, read_json_cases
from tests.support.playing import Player, main_schema, play
from tests.support.project import Project, drop_schema

CHOSEN = os.environ.get("CASES", "").split()
CASES = [case for case in read_json_cases("hx_mirror") if not CHOSEN or case["id"] in CHOSEN]
# All moments of all cases take long: else those where tables refer to each other, and fewer.
IS_ALL = bool(os.environ.get("ALL_VARIANTS"))


def thinned(variant: Mapping[str, Any]) -> dict[str, Any]:
    after = variant["mirror_after_statements"]
    return {**variant, "mirror_after_statements": after if IS_ALL else after[-1:]}


def all_players() -> list[Player]:
    found = []
    for case in CASES:
        found.append(Player(case, "base", None, case["expected"]))
        for number, other in enumerate(case.get("alternatives", [])):
            found.append(Player(case, f"o{number}", None, other["expected"], other["options"]))
        if IS_ALL or (len(case["tables"]) > 1 and not CHOSEN):
            for number, variant in enumerate(case.get("variants", [])):
                found.append(Player(case, f"v{number}", thinned(variant), case["expected"]))
    return found


PLAYERS = all_players()


def write_models(project: Project, player: Player) -> None:
    """One model a table, all in the schema of the case and variant."""

    def model(table: str) -> str:
        return f"{player.id}__{table}_hx"

    for table in player.case["tables"]:
        links = []
        for reference in table["references"]:
            name = f", 'name': '{reference['hx_column']}'" if "hx_column" in reference else ""
            history = f"ref('{model(reference['table'])}')"
            links.append(f"{{'column': '{reference['column']}', 'history': {history}{name}}}")
        main = f"api.Relation.create(schema='{player.tables}', identifier='{table['name']}')"
        options = "".join(f", {name}='{value}'" for name, value in player.options.items())
        project.model(
            model(table["name"]),
            f"select * from {{{{ dbt_history.hx_rows({main}, {table['key']!r},"
            f" references=[{', '.join(links)}]{options}) }}}}",
            materialized="history_append",
            alias=f"{table['name']}_hx",
            schema=player.id,
        )
        player.models.append(model(table["name"]))


@pytest.fixture(scope="module")
def finished(dbt_project: Project, spark: SparkSession, warehouse: Path) -> Iterator[None]:
    """All cases have been played; each mirror's tables are there."""

    def control(player: Player, kind: str) -> None:
        for table in player.case["tables"]:
            arguments = f"{{table: {player.schema}.{table['name']}_hx}}"
            dbt_project.dbt("run-operation", f"{kind}_history", "--args", arguments)

    tables = {}
    for case in CASES:
        listed = [{**table, "needs": case.get("needs", [])} for table in case["tables"]]
        tables[case["id"]] = Tables(spark, main_schema(case), listed)
    dbt_project.schema = "tests"
    for player in PLAYERS:
        write_models(dbt_project, player)
    play(dbt_project, PLAYERS, tables, control)
    yield
    dbt_project.clear()
    for player in PLAYERS:
        drop_schema(spark, player.schema, warehouse)
        drop_schema(spark, player.tables, warehouse)


@pytest.mark.parametrize("player", PLAYERS, ids=[player.id for player in PLAYERS])
def test_a_case_ends_in_its_expected_rows(
    finished: None, spark: SparkSession, player: Player
) -> None:
    for table, expected in player.expected.items():
        mirror = spark.table(f"{player.schema}.{table}")
        got = [row.asDict() for row in mirror.orderBy(f"{table}_id").collect()]
        columns = list(expected[0]) if expected else mirror.columns
        assert [{name: row[name] for name in columns} for row in got] == expected, table
        assert set(mirror.columns) - set(columns) <= {"mod_time", "mod_user"}
        check_system_columns(got, player.case.get("system_columns", {}).get(table, {}))


def check_system_columns(rows: list[dict[str, Any]], rules: Mapping[str, Any]) -> None:
    """They are there, in order, and never what somebody delivered."""
    times = [row["mod_time"] for row in rows]
    assert times == sorted(times)
    assert all(row["mod_user"] for row in rows)
    for name, values in rules.get("never", {}).items():
        assert not {str(row[name]).replace(" ", "T") for row in rows} & set(values)


def test_a_suspension_leaves_its_marks(finished: None, spark: SparkSession) -> None:
    suspended = [player for player in PLAYERS if ("suspend", None) in player.steps]
    assert suspended or CHOSEN
    for player in suspended:
        marks = spark.table(f"{player.schema}.history_marks").orderBy("recorded_at").collect()
        for table in player.case["tables"]:
            kinds = [row.kind for row in marks if row.table_name == f"{table['name']}_hx"]
            assert kinds == ["suspension", "resumption"], player.id


def test_live_rows_equal_the_main_table(finished: None, spark: SparkSession) -> None:
    for player in PLAYERS:
        for table in player.case["tables"] if not player.options else []:
            name, key = table["name"], ", ".join(f"`{part}`" for part in table["key"])
            main = spark.table(f"{player.tables}.{name}")
            columns = [column for column in main.columns if column not in ("mod_time", "mod_user")]
            live = spark.sql(
                f"select * from (select *, row_number() over (partition by {key} order by"
                f" {name}_hx_id desc) as place from {player.schema}.{name}_hx)"
                " where place = 1 and not deleted"
            )
            assert sorted(map(repr, live.select(*columns).collect())) == sorted(
                map(repr, main.select(*columns).collect())
            ), f"{player.id} {name}"
