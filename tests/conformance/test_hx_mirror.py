"""Every case of the area `hx_mirror`, with its variants, through `hx_rows` and `history_append`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.case_runs import CaseRun, main_schema, run_cases
from tests.support.operations import Case, Tables, read_json_cases, statements_of, value_of
from tests.support.project import Project, drop_schema
from tests.support.selection import CHOSEN, IS_ALL, selected

Rows = list[dict[str, Any]]
CASES = selected(read_json_cases("hx_mirror"))


def all_case_runs() -> list[CaseRun]:
    found = []
    for case in CASES:
        found.append(CaseRun(case, "base", None, case["expected"]))
        for number, other in enumerate(case.get("alternatives", [])):
            found.append(CaseRun(case, f"o{number}", None, other["expected"], other["options"]))
        for number, variant in enumerate(case.get("variants", []) if IS_ALL else []):
            found.append(CaseRun(case, f"v{number}", variant, case["expected"]))
    return found


CASE_RUNS = all_case_runs()


def write_models(project: Project, case_run: CaseRun) -> None:
    """One model per table, all in the schema of the case and variant."""

    def model(table: str) -> str:
        return f"{case_run.id}__{table}_hx"

    for table in case_run.case["tables"]:
        links = []
        for reference in table["references"]:
            name = f", 'name': '{reference['hx_column']}'" if "hx_column" in reference else ""
            is_own = reference["table"] == table["name"]
            history = "this" if is_own else f"ref('{model(reference['table'])}')"
            name += f", 'key': {table['key']!r}" if is_own else ""
            links.append(f"{{'column': '{reference['column']}', 'history': {history}{name}}}")
        main = f"api.Relation.create(schema='{case_run.tables}', identifier='{table['name']}')"
        options = "".join(f", {name}='{value}'" for name, value in case_run.options.items())
        project.model(
            model(table["name"]),
            f"select * from {{{{ dbt_history.hx_rows({main}, {table['key']!r},"
            f" references=[{', '.join(links)}]{options}) }}}}",
            materialized="history_append",
            alias=f"{table['name']}_hx",
            schema=case_run.id,
        )
        case_run.models.append(model(table["name"]))


def user_of(case: Case, transaction: int) -> str:
    """The metadata of a commit: its user as plain text."""
    return f"user of {transaction}"


def needs_of(case: Case) -> list[str]:
    """With row tracking, the users of rows that no feed has are known."""
    kinds = {kind for kind, _ in statements_of(case, None)}
    tracked = ["row_tracking"] if kinds & {"populate", "suspend"} else []
    return [*case.get("needs", []), *tracked]


@pytest.fixture(scope="module")
def finished(dbt_project: Project, spark: SparkSession, warehouse: Path) -> Iterator[None]:
    """All cases have run, and the tables of each mirror exist."""

    def control(case_run: CaseRun, kind: str) -> None:
        for table in case_run.case["tables"]:
            arguments = f"{{table: {case_run.schema}.{table['name']}_hx}}"
            dbt_project.dbt("run-operation", f"{kind}_history", "--args", arguments)

    tables = {}
    for case in CASES:
        listed = [{**table, "needs": needs_of(case)} for table in case["tables"]]
        tables[case["id"]] = Tables(spark, main_schema(case), listed)
    dbt_project.schema = "tests"
    for case_run in CASE_RUNS:
        write_models(dbt_project, case_run)
    run_cases(dbt_project, CASE_RUNS, tables, control, user_of)
    yield
    dbt_project.clear()
    for case_run in CASE_RUNS:
        drop_schema(spark, case_run.schema, warehouse)
        drop_schema(spark, case_run.tables, warehouse)


@pytest.fixture(scope="module")
def mirror(finished: None, spark: SparkSession) -> Callable[[CaseRun, str], Rows]:
    """The rows of a mirror in the order of their ids, read once."""

    @cache
    def read(schema: str, table: str) -> Rows:
        rows = [row.asDict() for row in spark.table(f"{schema}.{table}").collect()]
        return sorted(rows, key=lambda row: int(row[f"{table}_id"]))

    return lambda case_run, table: read(case_run.schema, table)


@pytest.mark.parametrize("case_run", CASE_RUNS, ids=[case_run.id for case_run in CASE_RUNS])
def test_a_case_ends_in_its_expected_rows(
    mirror: Callable[[CaseRun, str], Rows], spark: SparkSession, case_run: CaseRun
) -> None:
    for table, expected in case_run.expected.items():
        got = mirror(case_run, table)
        types = dict(spark.table(f"{case_run.schema}.{table}").dtypes)
        existing = list(types)
        columns = list(expected[0]) if expected else existing
        found, wanted = (
            [{name: value_of(row[name], types[name]) for name in columns} for row in rows]
            for rows in (got, expected)
        )
        assert found == wanted, table
        assert set(existing) - set(columns) <= {"mod_time", "mod_user"}
        check_system_columns(got, case_run, table)


def check_system_columns(rows: list[dict[str, Any]], case_run: CaseRun, table: str) -> None:
    """They exist, are in order, and never have a value from the source.

    The user is the one of a commit; who deleted a row during a suspension is not known.
    """
    times = [row["mod_time"] for row in rows]
    assert times == sorted(times)
    users = {user_of(case_run.case, what[0]) for kind, what in case_run.steps if kind == "run"}
    is_suspended = ("suspend", None) in case_run.steps
    for row in rows:
        is_unknown = row["mod_user"] is None and row["deleted"] and is_suspended
        assert row["mod_user"] in users or is_unknown, row
    never = case_run.case.get("system_columns", {}).get(table, {}).get("never", {})
    for name, values in never.items():
        assert not {str(row[name]).replace(" ", "T") for row in rows} & set(values)


def test_suspensions_and_resumptions_are_recorded(finished: None, spark: SparkSession) -> None:
    suspended = [case_run for case_run in CASE_RUNS if ("suspend", None) in case_run.steps]
    assert suspended or CHOSEN
    for case_run in suspended:
        marks = spark.table(f"{case_run.schema}.history_marks").orderBy("recorded_at").collect()
        for table in case_run.case["tables"]:
            kinds = [row.kind for row in marks if row.table_name == f"{table['name']}_hx"]
            assert kinds == ["suspension", "resumption"], case_run.id


def test_the_rows_of_a_resumption_are_those_of_the_case(
    mirror: Callable[[CaseRun, str], Rows], spark: SparkSession
) -> None:
    for case_run in CASE_RUNS:
        for table, ids in case_run.case.get("resync", {}).items() if not case_run.options else []:
            marks = spark.sql(
                "select kind, cast(instant as timestamp) as at"
                f" from {case_run.schema}.history_marks where table_name = '{table}'"
            )
            at = {row["kind"]: row["at"] for row in marks.collect()}
            rows = [
                row[f"{table}_id"]
                for row in mirror(case_run, table)
                if at["suspension"] < row["mod_time"] <= at["resumption"]
            ]
            assert rows == ids, case_run.id


@pytest.mark.thorough
def test_current_rows_equal_the_main_table(
    mirror: Callable[[CaseRun, str], Rows], spark: SparkSession
) -> None:
    for case_run in CASE_RUNS:
        for table in case_run.case["tables"] if not case_run.options else []:
            name = table["name"]
            main = spark.table(f"{case_run.tables}.{name}")
            columns = [column for column in main.columns if column not in ("mod_time", "mod_user")]
            newest = {
                tuple(row[part] for part in table["key"]): row
                for row in mirror(case_run, f"{name}_hx")
            }
            live = [[row[column] for column in columns] for row in newest.values()
                    if not row["deleted"]]  # fmt: skip
            current = [list(row) for row in main.select(*columns).collect()]
            assert sorted(map(repr, live)) == sorted(map(repr, current)), f"{case_run.id} {name}"
