"""The readers of `_hx` tables on the rows of the area `hx_mirror`: latest, tuples, brackets."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.rendering import Renderer
from tests.support.tables import assert_same_rows, data_frame

SCHEMA = "tests_hx_readers"
FOLDER = Path(__file__).parent / "cases" / "hx_mirror"
Rows = list[dict[str, Any]]


def read_cases() -> list[dict[str, Any]]:
    cases = [json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))]
    return [case for case in cases if {"as_of", "tuples", "brackets"} & set(case)]


def link_of(reference: dict[str, Any]) -> str:
    return str(reference.get("hx_column") or f"{reference['table']}_hx_id")


CASES = read_cases()


class Histories:
    """The history tables of one case as views of their expected rows."""

    def __init__(self, case: dict[str, Any], call: Renderer, spark: SparkSession) -> None:
        self.case, self.call, self.spark = case, call, spark
        self.tables = {f"{table['name']}_hx": table for table in case["tables"]}
        spark.sql(f"create schema if not exists {SCHEMA}")
        for name, table in self.tables.items():
            links = [link_of(reference) for reference in table["references"]]
            ids = dict.fromkeys([f"{name}_id", *links], "bigint")
            types = {**table["columns"], **ids, "deleted": "boolean", "mod_time": "timestamp"}
            rows = [
                {**row, "mod_time": datetime(2024, 1, 1) + timedelta(days=row[f"{name}_id"])}
                for row in case["expected"][name]
            ]
            frame = data_frame(spark, rows, types)
            frame.write.format("parquet").mode("overwrite").saveAsTable(f"{SCHEMA}.{name}")

    def relation(self, name: str) -> Any:
        return self.call.relation.create(schema=SCHEMA, identifier=name)

    def rows(self, macro: str, **arguments: Any) -> Rows:
        query = f"select * from {self.call(macro, **arguments)}"
        return [row.asDict() for row in self.spark.sql(query).collect()]

    def latest(self, name: str, up_to: int | None, after: int | None = None) -> Rows:
        return self.rows(
            "latest", hx=self.relation(name), key=self.tables[name]["key"], up_to=up_to, after=after
        )

    def columns(self, name: str) -> list[str]:
        return list(self.tables[name]["columns"])

    def collections(self) -> Rows:
        return [
            {
                "history": self.relation(name),
                "references": [
                    {
                        "history": self.relation(f"{reference['table']}_hx"),
                        "name": link_of(reference),
                    }
                    for reference in table["references"]
                ],
            }
            for name, table in self.tables.items()
        ]


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_latest_rows_at_bounds(case: dict[str, Any], call: Renderer, spark: SparkSession) -> None:
    histories = Histories(case, call, spark)
    for question in case.get("as_of", []):
        name = question["table"]
        found = histories.latest(name, question["hx_id_up_to"], question.get("hx_id_after"))
        assert_same_rows(found, question["rows"], histories.columns(name), str(question))
        if "hx_id_after" not in question:
            # Row n was written on day n, so that the bounds by time are the same.
            at = str(datetime(2024, 1, 1) + timedelta(days=question["hx_id_up_to"]))
            convention = {"convention": "hx", "key": histories.tables[name]["key"]}
            found = histories.rows(
                "as_of", relation=histories.relation(name), at=at, convention=convention
            )
            assert_same_rows(found, question["rows"], histories.columns(name), at)


@pytest.mark.parametrize(
    "case", [case for case in CASES if "tuples" in case], ids=lambda case: case["id"]
)
def test_tuples_and_brackets(case: dict[str, Any], call: Renderer, spark: SparkSession) -> None:
    histories = Histories(case, call, spark)
    for question in case["tuples"]:
        found = histories.rows(
            "is_consistent", collections=histories.collections(), bounds=question["tuple"]
        )
        assert found == [{"is_consistent": question["valid"]}], question
        for name, rows in question.get("live", {}).items():
            live = histories.latest(name, question["tuple"][name])
            assert_same_rows(live, rows, histories.columns(name), str(question))
    for question in case.get("brackets", []):
        name, begin, end = question["table"], question["begin"], question["end"]
        live = histories.latest(name, end[name], begin[name])
        assert_same_rows(live, question["rows"], histories.columns(name))
        for linked, ids in question["linked"].items():
            assert sorted({row[f"{linked}_id"] for row in live}) == ids
        for linked, rows in question["as_of_end"].items():
            assert_same_rows(histories.latest(linked, end[linked]), rows, histories.columns(linked))

    ids_of_tuples = {id_ for question in case["tuples"] for id_ in question["tuple"].values()}
    for number in sorted(ids_of_tuples):
        # Row n was written on day n: the tuple of that day has the rows up to n.
        at = str(datetime(2024, 1, 1) + timedelta(days=number, hours=12))
        bounds = histories.rows("history_tuple", collections=histories.collections(), at=at)
        expected = {
            f"{name}_id": max(
                (row[f"{name}_id"] for row in rows if row[f"{name}_id"] <= number), default=0
            )
            for name, rows in case["expected"].items()
        }
        assert bounds == [expected], at
