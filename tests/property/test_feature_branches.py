"""Random logs with branches: the real macros against the plain-Python oracle, for any runs.

A log has a few phases: transactions on main and on branches, a run of the model, then an operation
on a branch. More of them, with branches of branches (minutes, mostly Spark's planning):
`LOGS=40 LEVELS=3 PHASES=5 make test ARGS=tests/property/test_feature_branches.py`.
"""

from __future__ import annotations

import json
import os
import random
import re
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.oracle.feature_state_cases import apply_step
from tests.oracle.feature_states import Result
from tests.oracle.random_features import (
    random_branch_step,
    random_branched_database,
    random_branched_transaction,
)
from tests.support.features import COLUMNS, DAY, LOG, Space, create_log_view, number_of, state_row
from tests.support.project import Project
from tests.support.scenarios import ANSWER_MACRO, ARGUMENTS, CONFLICT, KEY
from tests.support.tables import assert_same_rows, data_frame

pytestmark = pytest.mark.thorough

LOGS = int(os.environ.get("LOGS", "6"))
SEED = int(os.environ.get("SEED", "1"))
LEVELS = int(os.environ.get("LEVELS", "1"))
PHASES = int(os.environ.get("PHASES", "3"))
TRANSACTIONS = 4
OPERATE = """
{% macro operate(calls) %}
    {% for call in calls %}{% do dbt_history[call.macro](**call.arguments) %}{% endfor %}
{% endmacro %}
"""
Step = dict[str, Any]


class Logs:
    """Several logs in one log of writes, each with its oracle; they share dbt runs."""

    def __init__(self, project: Project, spark: SparkSession) -> None:
        self.project = project
        self.spark = spark
        self.last = 0
        self.merges = {"done": 0, "refused": 0}
        self.log, self.branches = project.table("log"), project.table("branches")
        self.chances = [random.Random(f"{SEED}.{place}") for place in range(LOGS)]
        self.spaces = [
            Space(f"s{place}", random_branched_database(chance))
            for place, chance in enumerate(self.chances)
        ]
        spark.sql(f"create schema if not exists {project.schema}")
        data_frame(spark, [], LOG).write.format("delta").saveAsTable(self.log)
        project.write("macros/operate.sql", OPERATE + ANSWER_MACRO)

    def model(self, name: str, log: str) -> None:
        """A table of states of a log."""
        self.project.history(
            name,
            f"{{{{ dbt_history.feature_states('{log}', {ARGUMENTS}, "
            f"branches='{self.branches}') }}}}",
            key=KEY,
            convention="naksha",
            max_deleted_share=None,
        )

    def write(self, phase: int) -> None:
        """Write transactions of all logs, alternating."""
        rows = []
        for place in range(TRANSACTIONS):
            for space, chance in zip(self.spaces, self.chances, strict=True):
                self.last += 1
                known = len(space.rows)
                at = phase * TRANSACTIONS + place
                transaction = random_branched_transaction(chance, space.database, at)
                space.transact(transaction, self.last)
                rows += space.rows[known:]
        data_frame(self.spark, rows, LOG).write.format("delta").mode("append").saveAsTable(self.log)

    def operate(self) -> None:
        """Run an operation on a branch of each log; those that succeed are one command."""
        steps = [
            random_branch_step(chance, space.database, LEVELS)
            for space, chance in zip(self.spaces, self.chances, strict=True)
        ]
        calls, refused = [], []
        done: list[tuple[Space, Result, int]] = []
        for space, step in zip(self.spaces, steps, strict=True):
            if step is None:
                continue
            call = self._call(space, step)
            known = space.database.made
            result = apply_step(space.database, "branch", step, 0)
            if isinstance(result, Result):
                done.append((space, result, known))
            if isinstance(result, Result) and result.error is not None:
                refused.append((call, result))
            else:
                assert result == "OK" or isinstance(result, Result), (step, result)
                calls.append(call)
        self.project.dbt("run-operation", "operate", "--args", json.dumps({"calls": calls}))
        self._note_merges(done)
        for call, result in refused:
            self._assert_refused(call, result)

    def _call(self, space: Space, step: Step) -> Step:
        arguments: Step = {
            "table": self.project.table("in_parts"), "convention": "naksha", "key": KEY,
            "writes": self.log, "branches": self.branches, "branch": space.branch(step["name"]),
        }  # fmt: skip
        if step["op"] == "create":
            arguments["parent"] = space.branch(step["from"])
            if step["at"] is not None:
                arguments["at"] = space.numbers[step["at"]] if step["at"] else 0
        elif step["op"] != "drop":
            # Only other logs can be ahead: those that were merged just before.
            arguments |= {"json": "payload", "at": str(DAY), "even_if_ahead": True}
            arguments |= {name: step[name] for name in ("app_id", "author")}
        return {"macro": f"{step['op']}_branch", "arguments": arguments}

    def _note_merges(self, done: list[tuple[Space, Result, int]]) -> None:
        """Add the transactions that merges and rebases wrote, which the oracle wrote too."""
        written: dict[str, dict[tuple[str, str], Any]] = {}
        for row in self.spark.table(self.log).where(f"txn > {self.last}").collect():
            prefix, collection = row["space"].split(":")
            written.setdefault(prefix, {})[collection, row["id"]] = row
            self.last = max(self.last, row["txn"])
        for space, result, known in done:
            rows = written.pop(space.prefix, {})
            made = [state for n, state in space.database.ever.items() if n > known]
            assert {state.key[1:] for state in made} == set(rows), space.prefix
            for state in made:
                row = rows[state.key[1], state.key[2]]
                state.origin = number_of(row["txn"], row["position"])
                assert row["branch"] == space.branch(state.key[0])
            if result.number is not None:
                space.numbers[result.number] = next(iter(rows.values()))["txn"]
                self.merges["done"] += 1
        assert not written

    def _assert_refused(self, call: Step, result: Result) -> None:
        """Check that the conflicts are the oracle's, and that nothing is written."""
        run = self.project.dbt(
            "run-operation", "operate", "--args", json.dumps({"calls": [call]}), check=False
        )
        assert not run.success
        assert result.conflicts
        found = {(where.split(":")[1], *what) for where, *what in CONFLICT.findall(run.log)}
        assert found == {tuple(map(str, clash.values())) for clash in result.conflicts}
        assert self.spark.table(self.log).where(f"txn > {self.last}").isEmpty()
        self.merges["refused"] += 1

    def heads(self) -> dict[tuple[str, str, str, str], Any]:
        """The content of the existing branches, by branch, space and id."""
        names = [space.branch(name) for space in self.spaces for name in space.database.branches]
        states = f"{self.project.table('in_parts')}', '{self.branches}"
        questions = {
            name: f"{{{{ dbt_history.branch_as_of('{states}', {json.dumps(name)}, id={KEY}) }}}}"
            for name in names
        }
        run = self.project.dbt(
            "run-operation", "answer", "--args", json.dumps({"questions": questions})
        )
        answers = [json.loads(line) for line in re.findall(r"ANSWER (\{.*\})", run.log)]
        assert {answer["name"] for answer in answers} == set(names)
        found = {}
        for answer in answers:
            prefix = answer["name"].split(".")[0]
            query = f"select * from {answer['sql']} where startswith(space, '{prefix}:')"
            for row in self.spark.sql(query).collect():
                content = json.loads(row["payload"])
                found[answer["name"], prefix, row["space"].split(":")[1], row["id"]] = content
        return found

    def expected_heads(self) -> dict[tuple[str, str, str, str], Any]:
        """The same from the oracle."""
        return {
            (space.branch(branch), space.prefix, collection, id_): payload
            for space in self.spaces
            for branch in space.database.branches
            for collection in ("foo", "bar")
            for id_, payload in space.database.heads(collection, branch).items()
        }


@pytest.fixture
def logs(project: Project, spark: SparkSession) -> Logs:
    return Logs(project, spark)


def test_random_logs_with_branches_agree_with_the_oracle(
    logs: Logs, project: Project, spark: SparkSession
) -> None:
    logs.model("in_parts", logs.log)
    logs.model("at_once", logs.log)
    logs.model("otherwise", "some_branched_writes")
    for phase in range(PHASES):
        logs.write(phase)
        project.run("in_parts")
        if phase < PHASES - 1:
            logs.operate()
    log = [row.asDict() for row in spark.table(logs.log).collect()]
    cut = random.Random(SEED).randint(1, logs.last - 1)
    create_log_view(spark, [row for row in log if row["txn"] <= cut], "some_branched_writes")
    project.run("otherwise")
    create_log_view(spark, log, "some_branched_writes")
    project.run("otherwise", "at_once")

    expected = [row for space in logs.spaces for row in space.expected_rows()]
    for name in ("in_parts", "at_once", "otherwise"):
        got = [state_row(row) for row in project.rows(name)]
        assert_same_rows(got, expected, ("branch", *COLUMNS), name)
    assert logs.heads() == logs.expected_heads()
    assert {state.key[0] for space in logs.spaces for state in space.database.states} - {"main"}
    assert logs.merges["done"]
    assert logs.merges["refused"]
