"""Cases with steps other than transactions, run through the real macros.

All cases share a log, a table of states and a table of branches. Each goes on until it needs the
states up to date, and then one run of the model brings them up to date for all that wait.

Tags and horizons are points of the whole table, so cases are played one after the other: the next
one begins when the steps of the one before are done, and its first writes share a run with the last
ones of that case. Limits set a horizon in a run of the model, so a case with them begins after the
queries of the one before. Cases with branches have neither; they are played last, all together.

    case A    writes | tags  writes | queries
    case B                   writes | cleans  writes | queries
    case C (limits)                                            writes | queries
    runs             ^              ^                ^                ^
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pyspark.sql import SparkSession

from tests.oracle.feature_state_cases import apply_step, time_of
from tests.oracle.feature_states import Database
from tests.support.features import DAY, LOG, Space
from tests.support.project import Project, Run
from tests.support.tables import data_frame, literal

T = TypeVar("T")
# A part of a case: it yields where it needs the states up to date.
Part = Generator[None, None, T]
KEY = ["branch", "space", "id"]
ARGUMENTS = f"id={KEY}, payload=['payload'], json='payload'"
CONFLICT = re.compile(r"^ +(\S+) (\S+) payload (\S+)$", re.MULTILINE)
ANSWER_MACRO = """
{% macro answer(questions) %}
    {% for name, sql in questions.items() %}
        {% do print('ANSWER ' ~ tojson({'name': name, 'sql': render(sql)})) %}
    {% endfor %}
{% endmacro %}
"""


@dataclass
class Scenario:
    """A case after its run: its transactions in the log, and the answers to its queries."""

    case: dict[str, Any]
    space: Space
    steps: dict[int, dict[str, Any]] = field(default_factory=dict)
    txn_of_step: dict[int, int] = field(default_factory=dict)
    answers: dict[str, Any] = field(default_factory=dict)
    tags: dict[str, int] = field(default_factory=dict)
    horizon: int = 0
    first: int = 0

    @property
    def id(self) -> str:
        return str(self.case["id"])

    def txn(self, number: int) -> int:
        """The transaction with the case's number; beyond the head, as far beyond the last one."""
        numbers, head = self.space.numbers, self.space.database.head
        if number > head:
            return max(numbers.values(), default=self.first) + number - head
        return numbers[number] if number > 0 else self.first + number

    def number(self, txn: int) -> int:
        """The case's number of a transaction in the log."""
        numbers, head = self.space.numbers, self.space.database.head
        last = max(numbers.values(), default=self.first)
        if txn > last:
            return head + txn - last
        return max((number for number, there in numbers.items() if there <= txn), default=0)


class ScenarioRunner:
    """The tables that the cases run on."""

    def __init__(self, project: Project, spark: SparkSession) -> None:
        self.project = project
        self.spark = spark
        self.last = 0
        self.is_ahead = False
        self.unwritten: list[dict[str, Any]] = []
        self.log, self.states = project.table("scenario_log"), project.table("scenarios")
        self.branches = project.table("scenario_branches")
        data_frame(spark, [], LOG).write.format("delta").saveAsTable(self.log)
        # dbt renders the queries, and Spark runs them here, so that a refusal fails only one query.
        project.write("macros/answer.sql", ANSWER_MACRO)
        project.history(
            "scenarios",
            f"{{{{ dbt_history.feature_states('{self.log}', {ARGUMENTS}, "
            f"branches='{self.branches}') }}}}",
            key=KEY,
            convention="naksha",
            max_deleted_share=None,
        )

    def write(self, rows: list[dict[str, Any]]) -> None:
        """Add rows to the log, by one statement for all transactions up to the next operation."""
        self.unwritten += rows
        self.is_ahead = True

    def flush(self) -> None:
        if self.unwritten:
            rows = data_frame(self.spark, self.unwritten, LOG)
            rows.write.format("delta").mode("append").saveAsTable(self.log)
            self.unwritten = []

    def catch_up(self) -> None:
        self.flush()
        if self.is_ahead or not self.spark.catalog.tableExists(self.states):
            self.project.run("scenarios")
            self.is_ahead = False

    def operate(self, name: str, **arguments: Any) -> Part[Run]:
        self.flush()
        # Naming a point needs only an existing table; other operations need the states up to date.
        names_a_point = name in ("create_branch", "drop_tag") or (
            name in ("create_tag", "move_tag") and arguments.get("at") is not None
        )
        if not (names_a_point and self.spark.catalog.tableExists(self.states)):
            yield
        # Another case may have appended to the log in this round; these refuse to run then.
        while self.is_ahead and name in ("merge_branch", "rebase_branch"):
            yield
        return self.project.dbt(
            "run-operation",
            name,
            "--args",
            json.dumps({"table": self.states, "convention": "naksha", "key": KEY, **arguments}),
            check=False,
        )


def run_scenarios(runner: ScenarioRunner, cases: Iterable[dict[str, Any]]) -> dict[str, Scenario]:
    """Run cases from their first steps to their last queries."""
    done: dict[str, Scenario] = {}
    unanswered: list[Scenario] = []

    def has_steps_left(part: Part[Scenario]) -> bool:
        try:
            next(part)
        except StopIteration as end:
            unanswered.append(end.value)
            return False
        return True

    def catch_up_and_answer() -> None:
        runner.catch_up()
        for scenario in unanswered:
            _read_answers(runner, scenario)
            done[scenario.id] = scenario
        unanswered.clear()

    for turn in _turns(cases):
        if unanswered and any(_has(case, "configure", "branch") for case in turn):
            catch_up_and_answer()
        parts = [run_steps(runner, case) for case in turn]
        while parts := [part for part in parts if has_steps_left(part)]:
            catch_up_and_answer()
    catch_up_and_answer()
    return done


def _turns(cases: Iterable[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The cases that are played one after the other, and at last those that are played together.

    Once there are branches, a run of the states takes twice as long.
    """
    branched = [case for case in cases if _has(case, "branch")]
    return [*([case] for case in cases if case not in branched), branched]


def _has(case: dict[str, Any], *kinds: str) -> bool:
    return any(kind in step for step in case["steps"] for kind in kinds)


def run_steps(runner: ScenarioRunner, case: dict[str, Any]) -> Part[Scenario]:
    """All steps of a case; its queries are still to be answered."""
    options = case.get("options", {})
    database = Database(case.get("collections"), options.get("noop_updates", "record"))
    scenario = Scenario(case, Space(case["id"], database), first=runner.last)
    for number, step in enumerate(case["steps"], 1):
        ((kind, given),) = step.items()
        if kind == "transaction":
            _write(runner, scenario, given, number)
        else:
            yield from _run_step(runner, scenario, kind, given, number)
    return scenario


def _write(
    runner: ScenarioRunner, scenario: Scenario, transaction: dict[str, Any], number: int
) -> None:
    space = scenario.space
    runner.last += 1
    scenario.txn_of_step[number] = runner.last
    known = len(space.rows)
    result = space.transact(
        {**transaction, "time": time_of(transaction.get("time"))}, runner.last, number
    )
    scenario.steps[number] = {"number": result.number}
    runner.write(space.rows[known:])


def _run_step(
    runner: ScenarioRunner, scenario: Scenario, kind: str, given: dict[str, Any], number: int
) -> Part[None]:
    """Run a step that is no transaction: the operation, and the same step in the oracle."""
    if kind in ("configure", "suspend"):
        apply_step(scenario.space.database, kind, given, number)
        scenario.steps[number] = {"outcome": "OK"}
        return
    run = yield from OPERATIONS[kind](runner, scenario, given)
    if kind == "resume" or given.get("op") in ("merge", "rebase"):
        _run_appending_step(runner, scenario, kind, given, number, run)
        return
    apply_step(scenario.space.database, kind, given, number)
    missing = re.search(r"no table has a tag|there is no branch", run.log)
    outcome = "OK" if run.success else ("NOT_FOUND" if missing else "ERROR")
    scenario.steps[number] = {"outcome": outcome}


def _run_appending_step(
    runner: ScenarioRunner,
    scenario: Scenario,
    kind: str,
    given: dict[str, Any],
    number: int,
    run: Run,
) -> None:
    """An operation that appends a transaction to the log; the oracle makes the same one."""
    log = runner.spark.table(runner.log).where(f"txn > {runner.last}").collect()
    rows = {(row["space"].split(":")[1], row["id"]): row for row in log}
    database = scenario.space.database
    before = database.made
    result = apply_step(database, kind, given, number)
    assert not isinstance(result, str)
    for state in database.states:
        if state.n > before:
            row = rows[state.key[1], state.key[2]]
            state.origin = row["txn"] * (1 << 20) + row["position"]
    if rows:
        runner.last += 1
        scenario.txn_of_step[number] = runner.last
        runner.is_ahead = True
        if result.number is not None:
            scenario.space.numbers[result.number] = runner.last
    found: dict[str, Any] = {"number": result.number}
    if not run.success:
        conflicts = [
            {"collection": space.split(":")[1], "id": id_, "attribute": attribute}
            for space, id_, attribute in CONFLICT.findall(run.log)
        ]
        found |= {"error": "CONFLICT" if conflicts else run.log, "conflicts": conflicts}
    scenario.steps[number] = found


def _tag(runner: ScenarioRunner, scenario: Scenario, given: dict[str, Any]) -> Part[Run]:
    name = f"{given['name']}" if given["name"] else ""
    version = given.get("version")
    at = {} if version is None else {"at": scenario.txn(version) if version >= 0 else version}
    if given["op"] == "delete":
        run = yield from runner.operate("drop_tag", tag=name)
        if run.success:
            scenario.tags.pop(name)
        return run
    if given["op"] == "update":
        run = yield from runner.operate("move_tag", tag=name, **(at or {"at": None}))
    else:
        run = yield from runner.operate("create_tag", tag=name, **at)
    if run.success:
        scenario.tags[name] = 0
    return run


def _retain(runner: ScenarioRunner, scenario: Scenario, given: dict[str, Any]) -> Part[Run]:
    if "keep_versions" in given:
        pairs = [f"({txn}L, {number}L)" for number, txn in scenario.space.numbers.items()]
        # Version 0 of the case: the state before its first transaction.
        values = ", ".join([f"({scenario.first}L, 0L)", *pairs])
        limit = {
            "keep_transactions": given["keep_versions"],
            "transactions": f"(select * from values {values} as v(txid, id))",
        }
    else:
        before = given["delete_before"]
        limit = {"up_to": scenario.txn(before) if before >= 0 else before}
    return (yield from runner.operate("clean_history", **limit))


def _branch(runner: ScenarioRunner, scenario: Scenario, given: dict[str, Any]) -> Part[Run]:
    arguments: dict[str, Any] = {
        "writes": runner.log, "branches": runner.branches,
        "branch": f"{scenario.id}.{given['name']}",
    }  # fmt: skip
    if given["op"] == "create":
        parent, at = given.get("from", "main"), given.get("at")
        arguments["parent"] = parent if parent == "main" else f"{scenario.id}.{parent}"
        if at is not None:
            arguments["at"] = scenario.txn(at) if at >= 0 else at
        return (yield from runner.operate("create_branch", **arguments))
    if given["op"] in ("drop", "delete"):
        return (yield from runner.operate("drop_branch", **arguments))
    attribution = {name: given.get(name) for name in ("app_id", "author", "message")}
    attribution["at"] = given.get("time") or str(DAY)
    return (
        yield from runner.operate(
            f"{given['op']}_branch", **arguments, **attribution, json="payload"
        )
    )


def _resume(runner: ScenarioRunner, scenario: Scenario, given: dict[str, Any]) -> Part[Run]:
    space = f"{scenario.id}:{given['collection']}"
    rows = [
        f"('main', '{space}', {literal(row['id'])}, {literal(json.dumps(row.get('payload')))})"
        for row in given["snapshot"]
    ]
    values = ", ".join(rows) or "(null, null, null, null)"
    yield
    runner.flush()
    arguments = {
        "writes": runner.log, "states": runner.states, "id": KEY, "payload": "payload",
        "json": "payload", "where": f"space = '{space}'",
        "snapshot": f"(select * from values {values} as s(branch, space, id, payload))",
        **{name: given.get(name) for name in ("app_id", "author", "message")},
        "at": given.get("time") or str(DAY),
    }  # fmt: skip
    return runner.project.dbt(
        "run-operation", "resync_features", "--args", json.dumps(arguments), check=False
    )


OPERATIONS = {"tag": _tag, "retention": _retain, "branch": _branch, "resume": _resume}


def _read_answers(runner: ScenarioRunner, scenario: Scenario) -> None:
    """Run all queries of the case, and read its states, tags and retention horizon."""
    questions = {"deleted": _deleted(runner)}
    for place, question in enumerate(scenario.case.get("as_of", [])):
        questions[f"as_of:{place}"] = _as_of(runner, scenario, question)
    for place, question in enumerate(scenario.case.get("activity", [])):
        questions[f"activity:{place}"] = _activity(runner, scenario, question)
    for kind in ("changesets", "squashed"):
        for place, question in enumerate(scenario.case.get(kind, [])):
            questions[f"{kind}:{place}"] = _changes(runner, scenario, question, kind)
    for branch in scenario.space.database.branches:
        questions[f"branch:{branch}"] = (
            f"select * from {{{{ dbt_history.branch_as_of('{runner.states}', "
            f"'{runner.branches}', '{scenario.id}.{branch}', id={KEY}) }}}} as states"
        )
    run = runner.project.dbt(
        "run-operation", "answer", "--args", json.dumps({"questions": questions})
    )
    for line in re.findall(r"ANSWER (\{.*\})", run.log):
        asked = json.loads(line)
        scenario.answers[asked["name"]] = _answer(runner, scenario, asked["sql"])
    rows = runner.spark.table(runner.states).where(f"startswith(space, '{scenario.id}:')").collect()
    scenario.answers["states"] = [row.asDict() for row in rows]
    marks = runner.project.table("history_marks")
    if runner.spark.catalog.tableExists(marks):
        for row in runner.spark.table(marks).where("table_name = 'scenarios'").collect():
            if row["kind"] == "tag" and row["name"] in scenario.tags:
                scenario.tags[row["name"]] = scenario.number(int(row["instant"]))
            if row["kind"] == "horizon" and int(row["instant"]) > scenario.first:
                scenario.horizon = max(scenario.horizon, scenario.number(int(row["instant"])))
    if scenario.tags:
        runner.spark.sql(f"delete from {marks} where table_name = 'scenarios' and kind = 'tag'")


def _answer(runner: ScenarioRunner, scenario: Scenario, sql: str) -> Any:
    try:
        rows = runner.spark.sql(sql).where(f"startswith(space, '{scenario.id}:')").collect()
    except Exception as error:
        if "was cleaned" not in str(error):
            raise
        return "refused"
    return [row.asDict() for row in rows]


def _reader(runner: ScenarioRunner, call: str) -> str:
    schema, name = runner.states.split(".")
    relation = f"api.Relation.create(schema='{schema}', identifier='{name}')"
    return f"select * from {{{{ dbt_history.{call.replace('STATES', relation)} }}}} as answer"


def _deleted(runner: ScenarioRunner) -> str:
    return _reader(runner, f"deleted_features(STATES, {KEY})")


def _as_of(runner: ScenarioRunner, scenario: Scenario, question: dict[str, Any]) -> str:
    if "tag" in question:
        at = f"'tag:{question['tag']}'"
    elif "time" in question:
        number = scenario.space.database.number_at(time_of(question["time"]))  # type: ignore[arg-type]
        at = str(scenario.txn(number))
    else:
        at = str(scenario.txn(question["txn"]))
    return _reader(runner, f"as_of(STATES, {at}, 'naksha')") + " where branch = 'main'"


def _activity(runner: ScenarioRunner, scenario: Scenario, question: dict[str, Any]) -> str:
    start = f", from_txn={scenario.txn(question['from_txn'])}" if "from_txn" in question else ""
    return _reader(runner, f"feature_activity(STATES, {KEY}{start})") + " where branch = 'main'"


def _changes(
    runner: ScenarioRunner, scenario: Scenario, question: dict[str, Any], kind: str
) -> str:
    space = f"{scenario.id}:{question.get('collection', 'foo')}"
    arguments = [f"where=\"space = '{space}' and branch = 'main'\""]
    if "start" in question:
        arguments.append(f"from_txn={scenario.txn(question['start'])}")
    if "end" in question:
        arguments.append(f"to_txn={scenario.txn(question['end'])}")
    for name in ("after_time", "until_time", "author"):
        if name in question:
            arguments.append(f"{name}='{question[name]}'")
    if kind == "squashed":
        arguments.append("squash=true")
    return _reader(runner, f"feature_changes(STATES, {KEY}, {', '.join(arguments)})")
