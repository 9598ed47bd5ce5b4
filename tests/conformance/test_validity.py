"""Every case of the area `validity`: `batch_rows` and `history_batch`, cleaning, as-of."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.project import Project
from tests.support.rendering import Renderer
from tests.support.selection import selected
from tests.support.tables import assert_same_rows, data_frame

SCHEMA = "tests_validity"
FOLDER = Path(__file__).parent / "cases" / "validity"
BEGINS = {"insert": "insert", "update": "update_postimage"}


@dataclass
class Table:
    """A table of a case; `name` is that of its model."""

    name: str
    given: dict[str, Any]
    commits: int = 0

    @property
    def axis(self) -> str:
        return {"integer": "bigint", "timestamp": "timestamp"}[self.given["version_type"]]

    @property
    def convention(self) -> dict[str, Any]:
        open_end = self.given["sentinel"]
        settings = {"convention": "validity", "type": self.axis, "open_end": open_end}
        if isinstance(open_end, str):
            settings["open_end"] = open_end.replace("T", " ")
        return {**settings, "append_only": True} if self.is_append_only else settings

    @property
    def is_append_only(self) -> bool:
        return bool(self.given.get("append_only"))

    @property
    def columns(self) -> dict[str, str]:
        period = ["valid_from"] if self.is_append_only else ["valid_from", "valid_to"]
        return {**self.given["columns"], **dict.fromkeys(period, self.axis)}

    def point(self, value: Any) -> Any:
        """A version as Spark returns it."""
        return datetime.fromisoformat(value) if isinstance(value, str) else value

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        period = ("valid_from", "valid_to")
        return {name: self.point(row[name]) if name in period else row[name] for name in row}


@dataclass
class Case:
    """A case, its tables by their names in it, and the results of its steps."""

    given: dict[str, Any]
    tables: dict[str, Table] = field(default_factory=dict)
    outcomes: list[Any] = field(default_factory=list)

    @property
    def id(self) -> str:
        return str(self.given["id"])


def read_cases() -> list[Case]:
    cases = []
    for given in selected([json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))]):
        tables = {
            table["name"]: Table(f"{given['id']}_{table['name']}".lower(), table)
            for table in given["tables"]
        }
        cases.append(Case(given, tables))
    return cases


def feed(table: Table, step: dict[str, Any], valid: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The operations as a change feed, each in its own commit, all at the step's version."""
    alive = [{name: row[name] for name in table.given["columns"]} for row in valid]
    changes: list[dict[str, Any]] = []
    for op in step["ops"]:
        table.commits += 1
        mark = {"_commit_version": table.commits, "_commit_timestamp": table.point(step["version"])}
        hit = [row for row in alive if op["op"] != "insert" and op["where"].items() <= row.items()]
        for row in [op["row"]] if op["op"] == "insert" else hit:
            after = {**row, **op.get("set", {})}
            if op["op"] != "insert":
                before = "delete" if op["op"] == "delete" else "update_preimage"
                changes.append({**row, **mark, "_change_type": before})
                alive.remove(row)
            if op["op"] != "delete":
                changes.append({**after, **mark, "_change_type": BEGINS[op["op"]]})
                alive.append(after)
    return changes


class CaseRunner:
    """Runs all cases together, one step of each at a time."""

    def __init__(self, project: Project, spark: SparkSession) -> None:
        self.project, self.spark = project, spark

    def create_view(self, table: Table, changes: list[dict[str, Any]]) -> None:
        types = {
            **table.given["columns"],
            "_change_type": "string",
            "_commit_version": "bigint",
            "_commit_timestamp": table.axis,
        }
        data_frame(self.spark, changes, types).createOrReplaceTempView(f"changes_{table.name}")

    def set_up(self, table: Table) -> None:
        rows = [table.row(row) for row in table.given["initial_rows"]]
        initial = data_frame(self.spark, rows, table.columns)
        initial.write.format("delta").saveAsTable(self.project.table(table.name))
        self.create_view(table, [])
        source = f"'changes_{table.name}', {table.given['key']!r}, {table.convention!r}"
        if not table.is_append_only:
            self.project.history(
                table.name,
                f"select * from {{{{ dbt_history.batch_rows({source}) }}}}",
                key=table.given["key"],
                version_order="increasing",
                max_deleted_share=None,
                **table.convention,
            )

    def valid(self, table: Table) -> list[dict[str, Any]]:
        sentinel = table.point(table.given["sentinel"])
        return [row for row in self.project.rows(table.name) if row["valid_to"] == sentinel]

    def round(self, cases: list[Case], number: int) -> None:
        """Run step `number` of every case that has one."""
        batches: dict[str, Case] = {}
        for case in cases:
            step = case.given["steps"][number]
            table = case.tables[step["table"]]
            if "clean" in step:
                case.outcomes.append(self.clean(table, step["clean"]["valid_to_before"]))
            elif table.is_append_only:
                case.outcomes.append(self.append(table, step))
            else:
                self.create_view(table, feed(table, step, self.valid(table)))
                batches[table.name] = case
        if batches:
            run = self.project.run(*batches, check=False)
            for name, case in batches.items():
                is_done = str(run.results[name].status) == "success"
                refusal = "" if is_done else run.message(name)
                assert is_done or "has a row before the current version" in refusal, refusal
                case.outcomes.append("ok" if is_done else "refused")

    def clean(self, table: Table, before: Any) -> Any:
        given: dict[str, Any] = {"table": table.name, "before": before}
        if table.is_append_only:
            own = {"convention": table.convention, "key": table.given["key"]}
            given |= {"table": self.project.table(table.name), **own}
        run = self.project.dbt(
            "run-operation",
            "clean_history",
            "--args",
            json.dumps(given),
            check=not table.is_append_only,
        )
        if "it is append-only" in run.log:
            return "refused"
        found = re.search(r"(\d+) of \d+ versions dropped", run.log)
        assert found is not None, run.log
        return {"dropped": int(found[1])}

    def append(self, table: Table, step: dict[str, Any]) -> str:
        """Append inserts; Delta refuses everything else."""
        name = self.project.table(table.name)
        self.spark.sql(f"alter table {name} set tblproperties ('delta.appendOnly' = 'true')")
        for op in step["ops"]:
            if op["op"] == "insert":
                rows = [{**op["row"], "valid_from": table.point(step["version"])}]
                added = data_frame(self.spark, rows, table.columns)
                added.write.format("delta").mode("append").saveAsTable(name)
                continue
            where = " and ".join(f"{column} = {value!r}" for column, value in op["where"].items())
            with pytest.raises(Exception, match="DELTA_CANNOT_MODIFY_APPEND_ONLY"):
                self.spark.sql(f"delete from {name} where {where}")
            return "refused"
        return "ok"


CASES = read_cases()


@pytest.fixture(scope="module")
def done(dbt_project: Project, spark: SparkSession) -> dict[str, Case]:
    """All cases after their steps."""
    dbt_project.schema = SCHEMA
    spark.sql(f"create schema if not exists {SCHEMA}")
    runner = CaseRunner(dbt_project, spark)
    for case in CASES:
        for table in case.tables.values():
            runner.set_up(table)
    for number in range(max(len(case.given["steps"]) for case in CASES)):
        runner.round([case for case in CASES if number < len(case.given["steps"])], number)
    dbt_project.clear()
    return {case.id: case for case in CASES}


def relation_of(call: Renderer, table: Table, spark: SparkSession) -> Any:
    if spark.catalog.tableExists(f"{SCHEMA}.history_marks"):
        call.pretend_relations("history_marks", schema=SCHEMA)
    return call.relation.create(schema=SCHEMA, identifier=table.name)


@pytest.mark.parametrize("case_id", [case.id for case in CASES])
def test_case_ends_in_its_expected_rows(
    case_id: str, done: dict[str, Case], call: Renderer, spark: SparkSession
) -> None:
    case = done[case_id]
    expected = case.given["expected"]
    assert case.outcomes == expected["outcomes"]
    for name, table in case.tables.items():
        rows = [row.asDict() for row in spark.table(f"{SCHEMA}.{table.name}").collect()]
        seen = [row for row in rows if row["valid_from"] != row.get("valid_to")]
        wanted = [table.row(row) for row in expected["rows"][name]]
        assert_same_rows(seen, wanted, list(table.columns), name)
        relation = relation_of(call, table, spark)
        version = call(
            "current_version",
            relation=relation,
            convention=table.convention,
            empty_table_version=table.given["empty_table_version"],
        )
        found = spark.sql(f"select * from {version}").collect()[0][0]
        assert found == table.point(expected["discovered_version"][name])
        assert horizon(table, spark) == table.point(expected["horizon"][name])


def horizon(table: Table, spark: SparkSession) -> Any:
    if not spark.catalog.tableExists(f"{SCHEMA}.history_marks"):
        return None
    return spark.sql(
        f"select max(cast(instant as {table.axis})) from {SCHEMA}.history_marks"
        f" where kind = 'horizon' and table_name = '{table.name}'"
    ).collect()[0][0]


@pytest.mark.parametrize("case_id", [case.id for case in CASES])
def test_case_reads_as_of_a_version(
    case_id: str, done: dict[str, Case], call: Renderer, spark: SparkSession
) -> None:
    case = done[case_id]
    for question in case.given["as_of"]:
        versions = question.get("versions") or {question["table"]: question["version"]}
        answers = (
            question["expected"]
            if "versions" in question
            else {question["table"]: question["expected"]}
        )
        for name, version in versions.items():
            table = case.tables[name]
            relation = relation_of(call, table, spark)
            query = call("as_of", relation=relation, at=version, convention=table.convention)
            if answers[name].get("refused"):
                with pytest.raises(
                    Exception, match=f"dbt_history.as_of.*{table.name}.*was cleaned"
                ):
                    spark.sql(f"select * from {query}").collect()
                continue
            rows = [row.asDict() for row in spark.sql(f"select * from {query}").collect()]
            assert_same_rows(
                rows, answers[name]["rows"], list(table.given["columns"]), str(question)
            )
