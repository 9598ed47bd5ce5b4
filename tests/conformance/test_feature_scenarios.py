"""The cases of `feature_states` with branches, tags, retention or limits, through the macros."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.oracle.feature_state_cases import case_names, is_scenario, read
from tests.oracle.feature_states import ERRORS, sets_of
from tests.support.features import COLUMNS, changesets_of, state_row
from tests.support.project import Project
from tests.support.scenarios import ARGUMENTS, Scenario, ScenarioRunner, run_scenarios
from tests.support.selection import selected
from tests.support.tables import assert_same_rows

CASES = {
    case["id"]: case
    for case in selected([case for case in map(read, case_names()) if is_scenario(case)])
}
EACH = pytest.mark.parametrize("name", CASES)


def asked(kind: str) -> pytest.MarkDecorator:
    """The queries of a kind: the case, and the query's position in it."""
    found = [
        (name, place) for name, case in CASES.items() for place in range(len(case.get(kind, [])))
    ]
    return pytest.mark.parametrize(("name", "place"), found)


def having(part: str) -> pytest.MarkDecorator:
    """The cases with this expected part."""
    return pytest.mark.parametrize("name", [n for n, c in CASES.items() if part in c["expected"]])


@pytest.fixture(scope="module")
def scenarios(dbt_project: Project, spark: SparkSession) -> dict[str, Any]:
    """All cases after their runs, and the outcomes and transactions of the whole log."""
    dbt_project.schema = "tests_feature_scenarios"
    spark.sql("create schema if not exists tests_feature_scenarios")
    runner = ScenarioRunner(dbt_project, spark)
    done = run_scenarios(runner, CASES.values())
    dbt_project.model(
        "outcomes",
        f"{{{{ dbt_history.feature_outcomes('{runner.log}', {ARGUMENTS}, "
        f"branches='{runner.branches}') }}}}",
        materialized="table",
    )
    dbt_project.model(
        "transactions",
        "{{ dbt_history.transaction_rows(ref('outcomes'), 'space') }}",
        materialized="table",
    )
    dbt_project.run("outcomes", "transactions")
    dbt_project.clear()
    return {**done, **{table: dbt_project.rows(table) for table in ("outcomes", "transactions")}}


@EACH
def test_the_states_are_those_of_the_oracle(name: str, scenarios: dict[str, Any]) -> None:
    scenario: Scenario = scenarios[name]
    got = [state_row(row) for row in scenario.answers["states"]]
    assert_same_rows(got, scenario.space.expected_rows(), ("branch", *COLUMNS))


@having("states")
def test_the_states_are_those_of_the_case(name: str, scenarios: dict[str, Any]) -> None:
    scenario: Scenario = scenarios[name]
    database = scenario.space.database
    origins = {state.origin: n for n, state in database.ever.items()}
    uuids = {scenario.space.uuid(n): n for n in database.ever}
    got = [
        {
            **{field: row[field] for field in ("id", "version", "action", "app_id", "author")},
            "n": origins[row["i"]],
            "collection": row["space"].split(":")[1],
            "previous": None if row["puuid"] is None else uuids[row["puuid"]],
            "payload": json.loads(row["payload"]),
            "txn": scenario.number(row["txn"]),
            "closed_by": None if row["txn_next"] is None else scenario.number(row["txn_next"]),
            "author_txn": scenario.number(row["author_txn"]),
            "created_txn": scenario.number(row["created_txn"]),
            **({"resync": True} if row["resync"] else {}),
        }
        for row in map(state_row, scenario.answers["states"])
        if row["branch"] == "main"
    ]
    assert sorted(got, key=lambda row: int(row["n"])) == CASES[name]["expected"]["states"]


@having("steps")
def test_every_step_has_the_outcome_of_the_case(name: str, scenarios: dict[str, Any]) -> None:
    scenario: Scenario = scenarios[name]
    for expected in CASES[name]["expected"]["steps"]:
        number = expected["step"]
        got = {"step": number, **scenario.steps[number]}
        rows = [
            row for row in scenarios["outcomes"] if row["txn"] == scenario.txn_of_step.get(number)
        ]
        outcomes = [row["outcome"] for row in sorted(rows, key=lambda row: int(row["position"]))]
        if any(row["is_refused"] for row in rows):
            got["error"] = next(outcome for outcome in outcomes if outcome in ERRORS)
        elif rows:
            got["outcomes"] = outcomes
        assert got == expected


@having("head")
def test_the_head_is_the_set_of_open_states(name: str, scenarios: dict[str, Any]) -> None:
    rows = [row for row in scenarios[name].answers["states"] if row["branch"] == "main"]
    for collection, expected in CASES[name]["expected"]["head"].items():
        own = [row for row in rows if row["space"].split(":")[1] == collection]
        got = {row["id"]: json.loads(row["payload"]) for row in own if row["txn_next"] is None}
        assert got == expected


@having("branch_heads")
def test_a_branch_shows_its_own_states_and_those_of_its_base(
    name: str, scenarios: dict[str, Any]
) -> None:
    for branch, heads in CASES[name]["expected"]["branch_heads"].items():
        for collection, expected in heads.items():
            rows = scenarios[name].answers[f"branch:{branch}"]
            own = [row for row in rows if row["space"].split(":")[1] == collection]
            assert {row["id"]: json.loads(row["payload"]) for row in own} == expected


@having("deleted")
def test_deleted_features_stay_until_they_are_purged(name: str, scenarios: dict[str, Any]) -> None:
    rows = [row for row in scenarios[name].answers["deleted"] if row["branch"] == "main"]
    for collection, expected in CASES[name]["expected"]["deleted"].items():
        own = [row["id"] for row in rows if row["space"].split(":")[1] == collection]
        assert sorted(own) == expected


@having("transactions")
def test_transactions_are_counted(name: str, scenarios: dict[str, Any]) -> None:
    scenario: Scenario = scenarios[name]
    steps = {txn: step for step, txn in scenario.txn_of_step.items()}
    rows = [row for row in scenarios["transactions"] if row["txid"] in steps]
    messages = {row["txid"]: row["commit_msg"] for row in rows if row["schema"] == "COMMIT_MSG"}
    got: dict[int, dict[str, Any]] = {}
    for row in sorted(rows, key=lambda row: int(row["txid"])):
        if row["schema"] == "COMMIT_MSG":
            continue
        counts = json.loads(row["commit_json"])
        app_id, _ = counts.pop("app_id"), counts.pop("author", None)
        entry = got.setdefault(
            row["txid"],
            {
                "number": scenario.number(row["txid"]), "step": steps[row["txid"]],
                "app_id": app_id, "message": messages.get(row["txid"]), "collections": {},
            },
        )  # fmt: skip
        entry["collections"][row["table"].split(":")[1]] = counts
    assert list(got.values()) == CASES[name]["expected"]["transactions"]


@having("tags")
def test_tags_name_the_numbers_of_the_case(name: str, scenarios: dict[str, Any]) -> None:
    assert scenarios[name].tags == CASES[name]["expected"]["tags"]


@having("horizon")
def test_the_retention_horizon_is_that_of_the_case(name: str, scenarios: dict[str, Any]) -> None:
    assert set(CASES[name]["expected"]["horizon"].values()) == {scenarios[name].horizon}


@asked("as_of")
def test_as_of_gives_the_states_or_is_refused(
    name: str, place: int, scenarios: dict[str, Any]
) -> None:
    question = CASES[name]["as_of"][place]
    rows = scenarios[name].answers[f"as_of:{place}"]
    if question["expected"].get("refused"):
        assert rows == "refused"
        return
    own = [row for row in rows if row["space"].endswith(":" + question.get("collection", "foo"))]
    got = {row["id"]: json.loads(row["payload"]) for row in own}
    assert {"rows": got} == question["expected"]


@asked("squashed")
def test_a_squashed_range_has_one_entry_per_feature(
    name: str, place: int, scenarios: dict[str, Any]
) -> None:
    rows = scenarios[name].answers[f"squashed:{place}"]
    got = {c: sorted(row["id"] for row in rows if row["change"] == c) for c in sets_of([])}
    assert got == CASES[name]["squashed"][place]["expected"]


@asked("changesets")
def test_changesets_list_what_each_transaction_did(
    name: str, place: int, scenarios: dict[str, Any]
) -> None:
    scenario: Scenario = scenarios[name]
    got = changesets_of(scenario.answers[f"changesets:{place}"], scenario.number)
    assert got == CASES[name]["changesets"][place]["expected"]


@asked("activity")
def test_the_activity_log_has_a_reverse_patch_to_each_predecessor(
    name: str, place: int, scenarios: dict[str, Any]
) -> None:
    scenario: Scenario = scenarios[name]
    question = CASES[name]["activity"][place]
    space = f"{name}:{question.get('collection', 'foo')}"
    origins = {state.origin: n for n, state in scenario.space.database.ever.items()}
    entries = [
        {"n": origins[row["i"]], "patch": row["patch"] and json.loads(row["patch"])}
        for row in sorted(scenario.answers[f"activity:{place}"], key=lambda row: -int(row["i"]))
        if row["space"] == space
    ]
    assert {"entries": entries} == question["expected"]
