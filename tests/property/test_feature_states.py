"""Random logs of writes: the real macros against the plain-Python oracle, in one run and in parts.

`LOGS=400 make test ARGS=tests/property/test_feature_states.py` runs more of them.
"""

from __future__ import annotations

import json
import os
import random
from collections import defaultdict
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.oracle.feature_states import ERRORS, Result
from tests.oracle.random_features import random_database, random_transaction
from tests.support.features import COLUMNS, Space, create_log_view, state_row
from tests.support.project import Project
from tests.support.tables import assert_same_rows

pytestmark = pytest.mark.thorough

LOGS = int(os.environ.get("LOGS", "40"))
TRANSACTIONS = 14
ARGUMENTS = "id=['space', 'id'], payload='payload', json=['payload']"


def random_logs(seed: int) -> tuple[list[Space], dict[int, Result]]:
    """Several logs with alternating transactions, and the oracle's result of each."""
    chances = [random.Random(f"{seed}.{place}") for place in range(LOGS)]
    spaces = [Space(f"s{place}", random_database(chance)) for place, chance in enumerate(chances)]
    results = {}
    for place in range(TRANSACTIONS):
        for number, (space, chance) in enumerate(zip(spaces, chances, strict=True)):
            txn = place * LOGS + number + 1
            transaction = random_transaction(chance, space.database, place)
            results[txn] = space.transact(transaction, txn)
    return spaces, results


def assert_outcomes(rows: list[dict[str, Any]], results: dict[int, Result]) -> None:
    """Every write has the oracle's outcome, and each transaction changes something or nothing."""
    found: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row["position"]):
        found[row["txn"]].append(row)
    assert set(found) == set(results)
    for txn, result in results.items():
        outcomes = [row["outcome"] for row in found[txn]]
        if result.error is not None:
            assert all(row["is_refused"] for row in found[txn]), txn
            assert next(outcome for outcome in outcomes if outcome in ERRORS) == result.error, txn
        elif result.outcomes is None:
            assert set(outcomes) == {"ROLLED_BACK"}, txn
        else:
            assert outcomes == result.outcomes, txn
        changes = any(row["has_state"] or row["outcome"] == "PURGED" for row in found[txn])
        assert changes == (result.number is not None), txn


def test_random_logs_agree_with_the_oracle(project: Project, spark: SparkSession) -> None:
    spaces, results = random_logs(seed=6)
    rows = [row for space in spaces for row in space.rows]
    expected = [row for space in spaces for row in space.expected_rows()]
    create_log_view(spark, rows, "all_random_writes")
    select = "{{ dbt_history.feature_states('%s', " + ARGUMENTS + ") }}"
    for name, log in (("at_once", "all_random_writes"), ("in_parts", "some_random_writes")):
        project.history(
            name, select % log, key=["space", "id"], convention="naksha", max_deleted_share=None
        )
    project.model(
        "outcomes",
        "{{ dbt_history.feature_outcomes('all_random_writes', " + ARGUMENTS + ") }}",
        materialized="table",
    )
    for part, models in ((0.3, ["in_parts"]), (0.6, ["in_parts"]), (1.0, [])):
        until = int(part * TRANSACTIONS * LOGS)
        create_log_view(spark, [row for row in rows if row["txn"] <= until], "some_random_writes")
        project.run(*(models or ["in_parts", "at_once", "outcomes"]))

    for name in ("at_once", "in_parts"):
        got = [state_row(row) for row in project.rows(name)]
        assert_same_rows(got, expected, COLUMNS, name)
    assert_outcomes(project.rows("outcomes"), results)


SWITCHES = (4, 8, 11)
STATES = ("on", "suspended", "off")


def operate(project: Project, name: str, kind: str, spaces: list[str]) -> None:
    if spaces:
        given = {"table": name, "writes": project.table("switched_writes"), "space": spaces}
        operation = f"{ {'on': 'enable', 'suspended': 'suspend', 'off': 'disable'}[kind] }"
        project.dbt("run-operation", f"{operation}_space_history", "--args", json.dumps(given))


def test_random_switches_of_spaces_agree_with_the_oracle(
    project: Project, spark: SparkSession
) -> None:
    """At three places of the log some spaces change their state.

    `in_parts` runs at more places, `at_once` only there, because `off` needs the writes before it;
    in the end it is built again from the whole log.
    """
    chance = random.Random("switches")
    chances = [random.Random(f"switches.{place}") for place in range(LOGS)]
    spaces = [Space(f"s{n}", random_database(one, history="on")) for n, one in enumerate(chances)]
    present: dict[str, str] = {}
    for name in ("at_once", "in_parts"):
        project.history(
            name,
            "{{ dbt_history.feature_states('" + project.table("switched_writes") + "', "
            + ARGUMENTS + ") }}",
            key=["space", "id"],
            convention="naksha",
            max_deleted_share=None,
        )  # fmt: skip
    spark.sql(f"create schema if not exists {project.schema}")

    def arrive() -> None:
        rows = [row for space in spaces for row in space.rows]
        create_log_view(spark, rows, "all_switched_writes")
        spark.sql(
            f"create or replace table {project.table('switched_writes')} using delta as"
            " select * except (history) from all_switched_writes"
        )

    for place in range(TRANSACTIONS):
        if place in SWITCHES:
            arrive()
            project.run("in_parts", "at_once")
            changed: dict[str, list[str]] = {state: [] for state in STATES}
            for space in spaces:
                for collection in ("foo", "bar"):
                    name = f"{space.prefix}:{collection}"
                    before = present.get(name, "on")
                    is_there = any(row["space"] == name for row in space.rows)
                    after = chance.choice(STATES)
                    if is_there and after != before and (before, after) != ("off", "suspended"):
                        space.database.switch_history(collection, after)
                        present[name] = after
                        changed[after].append(name)
            for kind, names in changed.items():
                operate(project, "at_once", kind, names)
                operate(project, "in_parts", kind, names)
        for number, (space, one) in enumerate(zip(spaces, chances, strict=True)):
            transaction = random_transaction(one, space.database, place)
            space.transact(transaction, place * LOGS + number + 1)
        if place in (5, 9):
            arrive()
            project.run("in_parts")
    arrive()
    project.run("in_parts")
    spark.sql(f"drop table {project.table('at_once')}")
    project.run("at_once")

    expected = [row for space in spaces for row in space.expected_rows()]
    for name in ("at_once", "in_parts"):
        got = [state_row(row) for row in project.rows(name)]
        assert_same_rows(got, expected, COLUMNS, name)
