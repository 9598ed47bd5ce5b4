"""Every vector of `feature_states/uuid_vectors.json` through `uuid_of` and `uuid_parts`."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from tests.oracle.feature_state_cases import read
from tests.support.project import Project, Run
from tests.support.tables import data_frame

VECTORS = read("uuid_vectors")
GOOD = [vector for vector in VECTORS["vectors"] if "uuid" in vector]
BAD = [vector for vector in VECTORS["vectors"] if vector.get("error")]
OTHERS = [
    *VECTORS["not_state_uuids"],
    "00000000-0000-4005-8170-310000000007",  # month 0
    "00000000-0000-4005-817d-310000000007",  # month 13
    "00000000-0000-4005-8172-f10000000007",  # 30 February
    "00000000-0000-4005-8173-31000000000",
    r"00000000-0000-4005-8173-310000000007\n",
    "",
    "NULL",
]
TYPES = {
    "place": "bigint",
    "object_id": "bigint",
    "date": "date",
    "type": "int",
    "database_id": "bigint",
    "uuid": "string",
}
BUILD = "{{ dbt_history.uuid_of('object_id', 'date', 'type', 'database_id') }}"


def create_view(project: Project, name: str, vectors: list[dict[str, Any]]) -> None:
    rows = [
        {**vector, "place": place, "date": date.fromisoformat(vector["date"])}
        for place, vector in enumerate(vectors)
    ]
    data_frame(project.spark, rows, TYPES).createOrReplaceTempView(name)


@pytest.fixture
def built(project: Project) -> list[dict[str, Any]]:
    create_view(project, "uuid_vectors", GOOD)
    select = (
        f"select place, built, parts.* from (select place, {BUILD} as built, "
        "{{ dbt_history.uuid_parts('uuid') }} as parts from uuid_vectors) as read_back"
    )
    project.model("uuids", select, materialized="table")
    project.run("uuids")
    return sorted(project.rows("uuids"), key=lambda row: int(row["place"]))


def test_a_uuid_has_the_documented_bits_and_is_read_back(built: list[dict[str, Any]]) -> None:
    for row, vector in zip(built, GOOD, strict=True):
        assert row["built"] == vector["uuid"]
        assert row["object_id"] == vector["object_id"]
        assert row["date"] == date.fromisoformat(vector["date"])
        assert row["type"] == vector["type"]
        assert row["database_id"] == vector["database_id"]


def test_uuids_sort_by_their_bytes() -> None:
    for ordered in VECTORS["byte_order"]:
        assert sorted(ordered) == ordered
        assert sorted(ordered, key=lambda text: bytes.fromhex(text.replace("-", ""))) == ordered


def test_values_out_of_range_and_invalid_texts_are_refused(project: Project) -> None:
    for place, vector in enumerate(BAD):
        create_view(project, f"uuid_bad_{place}", [vector])
        project.model(
            f"bad_{place}", f"select {BUILD} as u from uuid_bad_{place}", materialized="table"
        )
    for place, text in enumerate(OTHERS):
        parts = "{{ dbt_history.uuid_parts(\"'" + text + "'\") }}"
        project.model(f"other_{place}", f"select {parts} as parts", materialized="table")
    lenient = " union all ".join(
        "select {{ dbt_history.uuid_parts(\"'" + text + "'\", otherwise='null') }} as parts"
        for text in OTHERS
    )
    project.model("lenient", lenient, materialized="table")

    run = project.dbt("run", check=False)

    for place in range(len(BAD)):
        assert "dbt_history.uuid_of: the" in message(run, f"bad_{place}")
    for place in range(len(OTHERS)):
        assert "dbt_history.uuid_parts: this is no UUID" in message(run, f"other_{place}")
    assert [row["parts"] for row in project.rows("lenient")] == [None] * len(OTHERS)


def message(run: Run, name: str) -> str:
    assert run.results[name].status == "error", name
    return run.message(name)


def test_null_gives_null(project: Project) -> None:
    project.model(
        "nothing",
        "select {{ dbt_history.uuid_of('cast(null as bigint)', \"date'2024-01-01'\") }} as uuid, "
        "{{ dbt_history.uuid_parts('cast(null as string)') }} as parts, "
        "{{ dbt_history.uuid_of(5, \"date'2023-03-06'\", 'transaction', 7) }} as transaction",
        materialized="table",
    )

    project.run("nothing")

    assert project.rows("nothing") == [
        {"uuid": None, "parts": None, "transaction": GOOD[1]["uuid"]}
    ]
