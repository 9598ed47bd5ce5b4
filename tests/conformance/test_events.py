"""Cases of the area `events` through `event_rows`, `core_history` and `column_changes`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.case_runs import CaseRun, main_schema, run_cases
from tests.support.operations import Case, Tables, read_json_cases, statements_of, value_of
from tests.support.project import Project, drop_schema
from tests.support.selection import IS_ALL, selected
from tests.support.tables import data_frame

# What events have in common with mirrors is what captures the changes of a table.
ALL = selected(read_json_cases("events"), elsewhere=read_json_cases("hx_mirror"))
REPORTS = [case for case in ALL if case.get("kind") == "report"]
CASES = [case for case in ALL if case.get("kind") != "report"]
# Some cases again, with writers that name themselves, but no transaction: each statement is one.
WITHOUT_METADATA = [
    {**case, "id": f"{case['id']}_plain", "variants": []}
    for case in CASES
    if case["id"] in (("ED1", "ED11") if IS_ALL else ("ED1",))
]
Row = dict[str, Any]
Types = dict[str, str]


def all_case_runs() -> list[CaseRun]:
    found = []
    for case in [*CASES, *WITHOUT_METADATA]:
        found.append(CaseRun(case, "base", None, case["expected"]))
        for number, variant in enumerate(case.get("variants", []) if IS_ALL else []):
            found.append(CaseRun(case, f"v{number}", variant, case["expected"]))
        for number, other in enumerate(case.get("alternatives", [])):
            expected = {**case["expected"], **other["expected"]}
            found.append(CaseRun(case, f"o{number}", None, expected, other["options"]))
    return found


CASE_RUNS = all_case_runs()


def is_plain(case: Case) -> bool:
    return bool(case["id"].endswith("_plain"))


def options_of(case_run: CaseRun) -> str:
    return "".join(f", {name}='{value}'" for name, value in case_run.options.items())


def main_table(case_run: CaseRun, table: dict[str, Any]) -> str:
    return f"api.Relation.create(schema='{case_run.tables}', identifier='{table['name']}')"


def write_event_tables(project: Project, case_run: CaseRun) -> None:
    """An event table for each tracked table."""
    for table in case_run.case["tables"]:
        if table["history"]:
            name = f"{case_run.id}__{table['name']}_history"
            main = main_table(case_run, table)
            project.model(
                name,
                "select * from {{ dbt_history.event_rows("
                f"{main}, {table['key']!r}{options_of(case_run)}) }}}}",
                materialized="history_append",
                alias=f"{table['name']}_history",
                schema=case_run.id,
            )
            case_run.models.append(name)


def coarse_schema(case_run: CaseRun) -> str:
    return f"core_{case_run.name}"


def write_coarse_logs(project: Project) -> None:
    """One coarse log of all cases that run at the same points with the same options.

    It names their tables <id of the case>.<table>.
    """
    for schema, group in groupby(sorted(CASE_RUNS, key=coarse_schema), coarse_schema):
        runs = list(group)
        tracked = ", ".join(
            f"{{'main': {main_table(run, table)}, 'key': {table['key']!r},"
            f" 'name': '{run.id}.{table['name']}'}}"
            for run in runs
            for table in run.case["tables"]
        )
        (options,) = {options_of(run) for run in runs}
        project.model(
            f"{schema}__temp",
            f"select * from {{{{ dbt_history.core_temp_history([{tracked}]{options}) }}}}",
            materialized="history_append",
            alias="core_temp_history",
            schema=schema,
            tblproperties={"delta.appendOnly": "false"},
        )
        project.model(
            f"{schema}__core",
            f"select * from {{{{ dbt_history.core_history(ref('{schema}__temp')) }}}}",
            materialized="history_append",
            alias="core_history",
            schema=schema,
            unique_key=["trans_id", "table", "event"],
            post_hook=f"{{{{ dbt_history.drain_core_temp_history(ref('{schema}__temp'), this) }}}}",
        )
        for run in runs:
            run.models += [f"{schema}__temp", f"{schema}__core"]


def metadata(case: Case, transaction: int) -> str | None:
    if is_plain(case):
        return f"user of {transaction}"
    return json.dumps({"transaction": f"t{transaction}", "user": f"user of {transaction}"})


@pytest.fixture(scope="module")
def finished(dbt_project: Project, spark: SparkSession, warehouse: Path) -> Iterator[None]:
    """All cases have run."""

    def control(case_run: CaseRun, kind: str) -> None:
        raise AssertionError(kind)

    cases = [*CASES, *WITHOUT_METADATA]
    tables = {case["id"]: Tables(spark, main_schema(case), case["tables"]) for case in cases}
    dbt_project.schema = "tests"
    for case_run in CASE_RUNS:
        write_event_tables(dbt_project, case_run)
    write_coarse_logs(dbt_project)
    run_cases(dbt_project, CASE_RUNS, tables, control, metadata)
    yield
    dbt_project.clear()
    for case_run in CASE_RUNS:
        drop_schema(spark, case_run.schema, warehouse)
        drop_schema(spark, case_run.tables, warehouse)
        drop_schema(spark, f"tests_{coarse_schema(case_run)}", warehouse)


def statement_at(spark: SparkSession, case: Case) -> dict[tuple[str, datetime], tuple[int, int]]:
    """The transaction and statement of each commit, by table and time."""
    found: dict[tuple[str, datetime], tuple[int, int]] = {}
    for table in case["tables"]:
        commits = spark.sql(f"describe history {main_schema(case)}.`{table['name']}`").collect()
        made = [
            (what[0], what[1])
            for kind, what in statements_of(case, None)
            if kind == "run" and what[2]["table"] == table["name"] and not what[2].get("fails")
        ]
        # The oldest commits create the table and its checks; one without rows may make none.
        written = [
            row["timestamp"]
            for row in sorted(commits, key=lambda row: row["version"])
            if row["operation"] not in ("CREATE TABLE", "ADD CONSTRAINT")
        ]
        if len(written) == len(made):
            found |= {(table["name"], at): place for at, place in zip(written, made, strict=True)}
    return found


@pytest.mark.parametrize("case_run", CASE_RUNS, ids=[case_run.id for case_run in CASE_RUNS])
def test_events_are_as_expected(finished: None, spark: SparkSession, case_run: CaseRun) -> None:
    places = statement_at(spark, case_run.case)
    for table, expected in case_run.expected["events"].items():
        history = spark.table(f"{case_run.schema}.{table}_history")
        assert history.columns[-4:] == ["_hist_trans_id", "_hist_user", "_hist_event", "_hist_time"]
        key = next(t["key"] for t in case_run.case["tables"] if t["name"] == table)
        got = [row.asDict() for row in history.orderBy("_hist_time", *key, "_hist_event").collect()]
        names = [n for n in (expected[0] if expected else {}) if n not in ATTRIBUTES]
        types = dict(history.dtypes)
        assert [{"event": row["_hist_event"], **pick(row, names, types)} for row in got] == [
            {"event": row["event"], **pick(row, names, types)} for row in expected
        ], table
        assert all(row["_hist_user"] for row in got)
        if not is_plain(case_run.case):
            assert [row["_hist_trans_id"] for row in got] == [
                f"t{r['transaction']}" for r in expected
            ]
            assert [row["_hist_user"] for row in got] == [
                f"user of {row['transaction']}" for row in expected
            ]
        for row, wanted in zip(got, expected, strict=True):
            place = places.get((table, row["_hist_time"]))
            assert place in (None, (wanted["transaction"], wanted["statement"]))


ATTRIBUTES = ("transaction", "statement", "event")


def pick(row: Row, names: list[str], types: Types) -> Row:
    return {name: value_of(row[name], types[name]) for name in names}


@pytest.mark.parametrize("case_run", CASE_RUNS, ids=[case_run.id for case_run in CASE_RUNS])
def test_the_coarse_log_is_as_expected(
    finished: None, spark: SparkSession, case_run: CaseRun
) -> None:
    logs = f"tests_{coarse_schema(case_run)}"
    core = [
        {**row.asDict(), "table": row["table"].removeprefix(f"{case_run.id}.")}
        for row in spark.table(f"{logs}.core_history").collect()
        if row["table"].startswith(f"{case_run.id}.")
    ]
    wanted = case_run.expected[
        "core_history_by_statement" if is_plain(case_run.case) else "core_history"
    ]
    got = sorted((row["trans_id"], row["table"], WORDS[row["event"]]) for row in core)
    if is_plain(case_run.case):
        assert sorted(row[1:] for row in got) == sorted((r["table"], r["event"]) for r in wanted)
        assert len({row[0] for row in got}) == len({row["transaction"] for row in wanted})
    else:
        assert got == sorted((f"t{r['transaction']}", r["table"], r["event"]) for r in wanted)
        flags = {
            (row[0], row[1]): {
                kind: any((*row[:2], kind) == other for other in got) for kind in KINDS
            }
            for row in got
        }
        assert flags == {
            (f"t{r['transaction']}", r["table"]): {kind: r[f"{kind}s"] for kind in KINDS}
            for r in case_run.expected["notifications"]
        }
    assert spark.table(f"{logs}.core_temp_history").count() == 0


KINDS = ("insert", "update", "delete")
WORDS = {1: "insert", 2: "delete", 3: "update"}


def reports(project: Project, asked: Sequence[tuple[str, str]]) -> list[list[Row]]:
    """The rows of `column_changes` for each table and its further arguments, by one run."""
    names = [f"report_{place}" for place in range(len(asked))]
    for name, (events, arguments) in zip(names, asked, strict=True):
        schema, table = events.split(".")
        relation = f"api.Relation.create(schema='{schema}', identifier='{table}')"
        project.model(
            name,
            f"select * from {{{{ dbt_history.column_changes({relation}{arguments}) }}}}",
            materialized="view",
        )
    project.run(*names)
    return [project.rows(name) for name in names]


def as_reported(rows: list[Row], key: list[str], types: Types) -> list[str]:
    return as_texts(
        ((str(row["_hist_trans_id"]), pick(row, key, types), row) for row in rows), types
    )


def as_expected(rows: list[Row], types: Types, prefix: str = "t") -> list[str]:
    return as_texts(
        (
            (f"{prefix}{row['transaction']}", pick(row["key"], [*row["key"]], types), row)
            for row in rows
        ),
        types,
    )


def as_texts(rows: Iterable[tuple[str, Row, Row]], types: Types) -> list[str]:
    """Rows of a report, each with its transaction and key, in a form to compare."""
    found = []
    for transaction, key, row in rows:
        ends = [None if row[end] is None else str(row[end]) for end in ("from", "to")]
        values = [value_of(text, types[row["column"]]) for text in ends]
        found.append(repr((transaction, [*key.values()], row["change"], row["column"], *values)))
    return sorted(found)


REPORTED = [p for p in CASE_RUNS if p.name == "base" and not is_plain(p.case)]


def test_column_changes_reports_who_changed_which_column(
    finished: None, project: Project, spark: SparkSession
) -> None:
    asked = [
        (case_run, table) for case_run in REPORTED for table in case_run.expected.get("report", {})
    ]
    tables = [(f"{case_run.schema}.{table}_history", "") for case_run, table in asked]
    for (case_run, table), rows in zip(asked, reports(project, tables), strict=True):
        types = dict(spark.table(f"{case_run.schema}.{table}_history").dtypes)
        key = next(t["key"] for t in case_run.case["tables"] if t["name"] == table)
        expected = case_run.expected["report"][table]
        assert as_reported(rows, key, types) == as_expected(expected, types), case_run.id


@pytest.mark.parametrize("case", REPORTS, ids=[case["id"] for case in REPORTS])
def test_column_changes_of_given_events(project: Project, spark: SparkSession, case: Case) -> None:
    (table,) = case["tables"]
    types = {
        "_hist_trans_id": "string",
        "_hist_statement": "int",
        "_hist_event": "int",
        "_hist_user": "string",
        "_hist_time": "timestamp",
        **table["columns"],
    }
    events = [
        {
            **row,
            "_hist_trans_id": str(row["transaction"]),
            "_hist_statement": row["statement"],
            "_hist_event": row["event"],
            "_hist_user": "somebody",
            "_hist_time": datetime.fromisoformat(row["time"]),
        }
        for row in case["given_events"]
    ]
    spark.sql(f"create schema if not exists {project.schema}")
    data_frame(spark, events, types).write.format("delta").saveAsTable(project.table("events"))
    asked = []
    for query in case["queries"]:
        show = f", show={query['show']!r}" if "show" in query else ""
        bounds = [f", {end}_day='{query[end]}'" for end in ("from", "to") if query.get(end)]
        asked.append((project.table("events"), f"{''.join(bounds)}, key={table['key']!r}{show}"))
    for query, rows in zip(case["queries"], reports(project, asked), strict=True):
        expected = as_expected(query["expected"], types, "")
        assert as_reported(rows, table["key"], types) == expected, query
