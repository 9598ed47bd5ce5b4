"""Cases whose steps are more than transactions, played through the real macros.

All cases share a log, a table of states and a table of branches; each is played to its end,
questions included, before the next begins, because a horizon is one of the whole table.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import SparkSession

from tests.oracle.feature_state_cases import play_step, time_of
from tests.oracle.feature_states import Database
from tests.support.features import DAY, LOG, Space
from tests.support.project import Project, Run
from tests.support.tables import data_frame

KEY = ["branch", "space", "id"]
ARGUMENTS = f"id={KEY}, payload=['payload'], json='payload'"
CONFLICT = re.compile(r"^ +(\S+) (\S+) payload (\S+)$", re.MULTILINE)
READERS = """
{% macro answer(questions) %}
    {% for name, sql in questions.items() %}
        {% do print('ANSWER ' ~ tojson({'name': name, 'sql': render(sql)})) %}
    {% endfor %}
{% endmacro %}
"""


@dataclass
class Scene:
    """A played case: its numbers of transactions in the log, and all that it was asked."""

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
        """The transaction with the case's number; beyond the head as far beyond the last one."""
        numbers, head = self.space.numbers, self.space.database.head
        if number > head:
            return max(numbers.values(), default=self.first) + number - head
        return numbers[number] if number > 0 else self.first + number

    def number(self, txn: int) -> int:
        """The case's number of a point of the log."""
        numbers, head = self.space.numbers, self.space.database.head
        last = max(numbers.values(), default=self.first)
        if txn > last:
            return head + txn - last
        return max((number for number, there in numbers.items() if there <= txn), default=0)


class Stage:
    """The tables that the cases are played on."""

    def __init__(self, project: Project, spark: SparkSession) -> None:
        self.project = project
        self.spark = spark
        self.last = 0
        self.is_ahead = False
        self.log, self.states = project.table("scene_log"), project.table("scenes")
        self.branches = project.table("scene_branches")
        data_frame(spark, [], LOG).write.format("delta").saveAsTable(self.log)
        # What is asked is rendered by dbt and run here, so that a refusal is one answer only.
        project.write("macros/answer.sql", READERS)
        project.history(
            "scenes",
            f"{{{{ dbt_history.feature_states('{self.log}', {ARGUMENTS}, "
            f"branches='{self.branches}') }}}}",
            key=KEY,
            convention="naksha",
            max_deleted_share=None,
        )

    def write(self, rows: list[dict[str, Any]]) -> None:
        data_frame(self.spark, rows, LOG).write.format("delta").mode("append").saveAsTable(self.log)
        self.is_ahead = True

    def catch_up(self) -> None:
        if self.is_ahead or not self.spark.catalog.tableExists(self.states):
            self.project.run("scenes")
            self.is_ahead = False

    def operate(self, name: str, **arguments: Any) -> Run:
        # What names a point needs only that there is a table; the rest needs what the log says.
        names_a_point = name in ("create_branch", "drop_tag") or (
            name in ("create_tag", "move_tag") and arguments.get("at") is not None
        )
        if not (names_a_point and self.spark.catalog.tableExists(self.states)):
            self.catch_up()
        return self.project.dbt(
            "run-operation",
            name,
            "--args",
            json.dumps({"table": self.states, "convention": "naksha", "key": KEY, **arguments}),
            check=False,
        )


def play(stage: Stage, case: dict[str, Any]) -> Scene:
    """A case from its first step to its last question."""
    options = case.get("options", {})
    database = Database(case.get("collections"), options.get("noop_updates", "record"))
    scene = Scene(case, Space(case["id"], database), first=stage.last)
    for number, step in enumerate(case["steps"], 1):
        ((kind, given),) = step.items()
        if kind == "transaction":
            _write(stage, scene, given, number)
        else:
            _do(stage, scene, kind, given, number)
    stage.catch_up()
    _look(stage, scene)
    return scene


def _write(stage: Stage, scene: Scene, transaction: dict[str, Any], number: int) -> None:
    space = scene.space
    stage.last += 1
    scene.txn_of_step[number] = stage.last
    known = len(space.rows)
    result = space.transact(
        {**transaction, "time": time_of(transaction.get("time"))}, stage.last, number
    )
    scene.steps[number] = {"number": result.number}
    stage.write(space.rows[known:])


def _do(stage: Stage, scene: Scene, kind: str, given: dict[str, Any], number: int) -> None:
    """A step that is no transaction: the operation, and the oracle's step beside it."""
    if kind in ("configure", "suspend"):
        play_step(scene.space.database, kind, given, number)
        scene.steps[number] = {"outcome": "OK"}
        return
    run = OPERATIONS[kind](stage, scene, given)
    if kind == "resume" or given.get("op") in ("merge", "rebase"):
        _combined(stage, scene, kind, given, number, run)
        return
    play_step(scene.space.database, kind, given, number)
    missing = re.search(r"no table has a tag|there is no branch", run.log)
    outcome = "OK" if run.success else ("NOT_FOUND" if missing else "ERROR")
    scene.steps[number] = {"outcome": outcome}


def _combined(
    stage: Stage, scene: Scene, kind: str, given: dict[str, Any], number: int, run: Run
) -> None:
    """An operation that appends a transaction to the log: the oracle writes the same one."""
    log = stage.spark.table(stage.log).where(f"txn > {stage.last}").collect()
    rows = {(row["space"].split(":")[1], row["id"]): row for row in log}
    database = scene.space.database
    before = database.made
    result = play_step(database, kind, given, number)
    assert not isinstance(result, str)
    for state in database.states:
        if state.n > before:
            row = rows[state.key[1], state.key[2]]
            state.origin = row["txn"] * (1 << 20) + row["position"]
    if rows:
        stage.last += 1
        scene.txn_of_step[number] = stage.last
        stage.is_ahead = True
        if result.number is not None:
            scene.space.numbers[result.number] = stage.last
    found: dict[str, Any] = {"number": result.number}
    if not run.success:
        conflicts = [
            {"collection": space.split(":")[1], "id": id_, "attribute": attribute}
            for space, id_, attribute in CONFLICT.findall(run.log)
        ]
        found |= {"error": "CONFLICT" if conflicts else run.log, "conflicts": conflicts}
    scene.steps[number] = found


def _tag(stage: Stage, scene: Scene, given: dict[str, Any]) -> Run:
    name = f"{given['name']}" if given["name"] else ""
    version = given.get("version")
    at = {} if version is None else {"at": scene.txn(version) if version >= 0 else version}
    if given["op"] == "delete":
        run = stage.operate("drop_tag", tag=name)
        if run.success:
            scene.tags.pop(name)
        return run
    if given["op"] == "update":
        run = stage.operate("move_tag", tag=name, **(at or {"at": None}))
    else:
        run = stage.operate("create_tag", tag=name, **at)
    if run.success:
        scene.tags[name] = 0
    return run


def _retain(stage: Stage, scene: Scene, given: dict[str, Any]) -> Run:
    if "keep_versions" in given:
        pairs = [f"({txn}L, {number}L)" for number, txn in scene.space.numbers.items()]
        # Version 0 of the case: what was there before its first transaction.
        values = ", ".join([f"({scene.first}L, 0L)", *pairs])
        limit = {
            "keep_transactions": given["keep_versions"],
            "transactions": f"(select * from values {values} as v(txid, id))",
        }
    else:
        before = given["delete_before"]
        limit = {"up_to": scene.txn(before) if before >= 0 else before}
    return stage.operate("clean_history", **limit)


def _branch(stage: Stage, scene: Scene, given: dict[str, Any]) -> Run:
    arguments: dict[str, Any] = {
        "writes": stage.log, "branches": stage.branches, "branch": f"{scene.id}.{given['name']}",
    }  # fmt: skip
    if given["op"] == "create":
        parent, at = given.get("from", "main"), given.get("at")
        arguments["parent"] = parent if parent == "main" else f"{scene.id}.{parent}"
        if at is not None:
            arguments["at"] = scene.txn(at) if at >= 0 else at
        return stage.operate("create_branch", **arguments)
    if given["op"] in ("drop", "delete"):
        return stage.operate("drop_branch", **arguments)
    said = {name: given.get(name) for name in ("app_id", "author", "message")}
    said["at"] = given.get("time") or str(DAY)
    return stage.operate(f"{given['op']}_branch", **arguments, **said, json="payload")


def _resume(stage: Stage, scene: Scene, given: dict[str, Any]) -> Run:
    space = f"{scene.id}:{given['collection']}"
    rows = [
        f"('main', '{space}', '{row['id']}', '{json.dumps(row.get('payload'))}')"
        for row in given["snapshot"]
    ]
    values = ", ".join(rows) or "(null, null, null, null)"
    stage.catch_up()
    arguments = {
        "writes": stage.log, "states": stage.states, "id": KEY, "payload": "payload",
        "json": "payload", "where": f"space = '{space}'",
        "snapshot": f"(select * from values {values} as s(branch, space, id, payload))",
        **{name: given.get(name) for name in ("app_id", "author", "message")},
        "at": given.get("time") or str(DAY),
    }  # fmt: skip
    return stage.project.dbt(
        "run-operation", "resync_features", "--args", json.dumps(arguments), check=False
    )


OPERATIONS = {"tag": _tag, "retention": _retain, "branch": _branch, "resume": _resume}


def _look(stage: Stage, scene: Scene) -> None:
    """Ask everything that the case asks, and read its states, tags and horizon."""
    questions = {"deleted": _deleted(stage)}
    for place, question in enumerate(scene.case.get("as_of", [])):
        questions[f"as_of:{place}"] = _as_of(stage, scene, question)
    for place, question in enumerate(scene.case.get("activity", [])):
        questions[f"activity:{place}"] = _activity(stage, scene, question)
    for kind in ("changesets", "squashed"):
        for place, question in enumerate(scene.case.get(kind, [])):
            questions[f"{kind}:{place}"] = _changes(stage, scene, question, kind)
    for branch in scene.space.database.branches:
        questions[f"branch:{branch}"] = (
            f"select * from {{{{ dbt_history.branch_as_of('{stage.states}', "
            f"'{stage.branches}', '{scene.id}.{branch}', id={KEY}) }}}} as states"
        )
    run = stage.project.dbt(
        "run-operation", "answer", "--args", json.dumps({"questions": questions})
    )
    for line in re.findall(r"ANSWER (\{.*\})", run.log):
        asked = json.loads(line)
        scene.answers[asked["name"]] = _answer(stage, scene, asked["sql"])
    rows = stage.spark.table(stage.states).where(f"startswith(space, '{scene.id}:')").collect()
    scene.answers["states"] = [row.asDict() for row in rows]
    marks = stage.project.table("history_marks")
    if stage.spark.catalog.tableExists(marks):
        for row in stage.spark.table(marks).where("table_name = 'scenes'").collect():
            if row["kind"] == "tag" and row["name"] in scene.tags:
                scene.tags[row["name"]] = scene.number(int(row["instant"]))
            if row["kind"] == "horizon" and int(row["instant"]) > scene.first:
                scene.horizon = max(scene.horizon, scene.number(int(row["instant"])))
    for tag in list(scene.tags):
        stage.operate("drop_tag", tag=tag)


def _answer(stage: Stage, scene: Scene, sql: str) -> Any:
    try:
        rows = stage.spark.sql(sql).where(f"startswith(space, '{scene.id}:')").collect()
    except Exception as error:
        if "was cleaned" not in str(error):
            raise
        return "refused"
    return [row.asDict() for row in rows]


def _reader(stage: Stage, call: str) -> str:
    schema, name = stage.states.split(".")
    relation = f"api.Relation.create(schema='{schema}', identifier='{name}')"
    return f"select * from {{{{ dbt_history.{call.replace('STATES', relation)} }}}} as answer"


def _deleted(stage: Stage) -> str:
    return _reader(stage, f"deleted_features(STATES, {KEY})")


def _as_of(stage: Stage, scene: Scene, question: dict[str, Any]) -> str:
    if "tag" in question:
        at = f"'tag:{question['tag']}'"
    elif "time" in question:
        number = scene.space.database.number_at(time_of(question["time"]))  # type: ignore[arg-type]
        at = str(scene.txn(number))
    else:
        at = str(scene.txn(question["txn"]))
    return _reader(stage, f"as_of(STATES, {at}, 'naksha')") + " where branch = 'main'"


def _activity(stage: Stage, scene: Scene, question: dict[str, Any]) -> str:
    start = f", from_txn={scene.txn(question['from_txn'])}" if "from_txn" in question else ""
    return _reader(stage, f"feature_activity(STATES, {KEY}{start})") + " where branch = 'main'"


def _changes(stage: Stage, scene: Scene, question: dict[str, Any], kind: str) -> str:
    space = f"{scene.id}:{question.get('collection', 'foo')}"
    arguments = [f"where=\"space = '{space}' and branch = 'main'\""]
    if "start" in question:
        arguments.append(f"from_txn={scene.txn(question['start'])}")
    if "end" in question:
        arguments.append(f"to_txn={scene.txn(question['end'])}")
    for name in ("after_time", "until_time", "author"):
        if name in question:
            arguments.append(f"{name}='{question[name]}'")
    if kind == "squashed":
        arguments.append("squash=true")
    return _reader(stage, f"feature_changes(STATES, {KEY}, {', '.join(arguments)})")
