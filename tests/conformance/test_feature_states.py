"""The cases of the area `feature_states` through the real macros, all in one table."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.oracle.feature_state_cases import case_names, is_scenario, read, time_of
from tests.oracle.feature_states import ERRORS, Database, sets_of
from tests.support.features import (
    COLUMNS,
    LOG,
    Space,
    changesets_of,
    create_log_view,
    state_row,
)
from tests.support.project import Project
from tests.support.selection import IS_ALL
from tests.support.tables import assert_same_rows, data_frame

# Cases that number a log of others.
SEQUENCERS = [name for name in case_names() if read(name).get("kind") == "sequencer"]
ARGUMENTS = "id=['space', 'id'], payload=['payload'], json='payload'"
STATES = "{{ dbt_history.feature_states('%s', " + ARGUMENTS + ") }}"
OUTCOMES = "{{ dbt_history.feature_outcomes('%s', " + ARGUMENTS + "%s) }}"
# The log that each table reads: all writes in one run, or in two.
LOGS = {"in_parts": "some_writes"} | ({"at_once": "all_writes"} if IS_ALL else {})
TABLES = tuple(LOGS)


@dataclass
class LoggedCase:
    """A case in the log: its oracle, and the transaction of each step."""

    case: dict[str, Any]
    space: Space
    steps: dict[int, int] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return str(self.case["id"])

    def number(self, txn: int) -> int | None:
        """The case's number of a transaction in the log."""
        numbers = {there: number for number, there in self.space.numbers.items()}
        return numbers.get(txn)

    def txn(self, number: int) -> int:
        """The transaction in the log with the case's number; above the head, the last one."""
        known = [there for there in self.space.numbers if there <= number]
        return self.space.numbers[max(known)] if known else 0


def log_case(case: dict[str, Any], first: int) -> LoggedCase:
    """Write a case's transactions as rows of the log, from transaction `first` on."""
    options = case.get("options", {})
    database = Database(case.get("collections"), options.get("noop_updates", "record"))
    logged = LoggedCase(case, Space(case["id"], database))
    for number, step in enumerate(case["steps"], 1):
        transaction = step["transaction"]
        logged.steps[number] = first + number - 1
        logged.space.transact(
            {**transaction, "time": time_of(transaction.get("time"))}, first + number - 1, number
        )
    return logged


def log_all_cases() -> list[LoggedCase]:
    cases, first = [], 1
    for name in case_names():
        case = read(name)
        if not is_scenario(case) and name not in SEQUENCERS:
            cases.append(log_case(case, first))
            first += len(case["steps"])
    return cases


LOGGED = log_all_cases()
LOGGED_BY_ID = {logged.id: logged for logged in LOGGED}
CASES = pytest.mark.parametrize("logged", LOGGED, ids=lambda logged: logged.id)


def having(part: str) -> pytest.MarkDecorator:
    """The cases with this expected part."""
    found = [logged for logged in LOGGED if part in logged.case["expected"]]
    return pytest.mark.parametrize("logged", found, ids=lambda logged: logged.id)


def asked(kind: str) -> list[tuple[LoggedCase, int]]:
    """The queries of a kind: the case, and the query's position in it."""
    return [(logged, place) for logged in LOGGED for place in range(len(logged.case.get(kind, [])))]


def space_of(logged: LoggedCase, question: dict[str, Any]) -> str:
    return f"{logged.id}:{question.get('collection', 'foo')}"


def union(selects: list[str]) -> str:
    return "\nunion all\n".join(selects)


def as_of_select(logged: LoggedCase, place: int) -> str:
    question = logged.case["as_of"][place]
    if "time" in question:
        own = (
            "'(select * from ' ~ ref('transactions') ~ "
            f"' where startswith(`table`, \\'{logged.id}:\\')) as own'"
        )
        at = f"dbt_history.transaction_at({own}, at='{question['time']}')"
    else:
        at = str(logged.txn(question["txn"]))
    return (
        f"select '{logged.id}:{place}' as question, id, payload "
        f"from {{{{ dbt_history.as_of(ref('in_parts'), {at}, 'naksha') }}}} as states "
        f"where space = '{space_of(logged, question)}'"
    )


def changes_select(kind: str, logged: LoggedCase, place: int) -> str:
    question = logged.case[kind][place]
    arguments = [f"where=\"space = '{space_of(logged, question)}'\""]
    if "start" in question:
        is_known = question["start"] <= logged.space.database.head
        start = logged.txn(question["start"]) if is_known else 10**6
        arguments.append(f"from_txn={start}")
    if "end" in question:
        arguments.append(f"to_txn={logged.txn(question['end'])}")
    for name in ("after_time", "until_time", "author"):
        if name in question:
            arguments.append(f"{name}='{question[name]}'")
    if kind == "squashed":
        arguments.append("squash=true")
    call = f"dbt_history.feature_changes(ref('in_parts'), ['space', 'id'], {', '.join(arguments)})"
    name = f"{kind}:{logged.id}:{place}"
    return f"select '{name}' as question, txn, id, change from {{{{ {call} }}}} as changes"


def activity_select(logged: LoggedCase, place: int) -> str:
    question = logged.case["activity"][place]
    arguments = f"where=\"space = '{space_of(logged, question)}'\""
    if "from_txn" in question:
        arguments += f", from_txn={logged.txn(question['from_txn'])}"
    call = f"dbt_history.feature_activity(ref('in_parts'), ['space', 'id'], {arguments})"
    return f"select '{logged.id}:{place}' as question, i, patch from {{{{ {call} }}}} as activity"


def write_models(project: Project, last: int) -> None:
    for name, log in LOGS.items():
        project.history(
            name, STATES % log, key=["space", "id"], convention="naksha", max_deleted_share=None
        )
    later = f", states=ref('in_parts'), after={last // 3}"
    tables = {
        "outcomes": OUTCOMES % ("all_writes", ""),
        "later_outcomes": OUTCOMES % ("writes_with_history", later),
        "transaction_log": "{{ dbt_history.transaction_rows(ref('outcomes'), 'space') }}",
        "deleted": "select space, id from {{ dbt_history.deleted_features("
        "ref('in_parts'), ['space', 'id']) }} as tombstones",
        "as_of_answers": union([as_of_select(*question) for question in asked("as_of")]),
        "changes": union(
            [
                changes_select(kind, *question)
                for kind in ("changesets", "squashed")
                for question in asked(kind)
            ]
        ),
        "activity": union([activity_select(*question) for question in asked("activity")]),
    }
    for name, sql in tables.items():
        project.model(name, sql, materialized="table", file_format="delta")
    project.model(
        "transactions",
        "select * from {{ dbt_history.numbered_transactions(ref('transaction_log'), "
        "this.schema ~ '.transaction_numbers') }} as t",
        materialized="view",
    )


@pytest.fixture(scope="module")
def tables(dbt_project: Project, spark: SparkSession) -> dict[str, list[dict[str, Any]]]:
    """All tables after all cases."""
    dbt_project.schema = "tests_feature_states"
    spark.sql("create schema if not exists tests_feature_states")
    rows = [row for logged in LOGGED for row in logged.space.rows]
    last = max(row["txn"] for row in rows)
    create_log_view(spark, rows, "all_writes")
    create_log_view(spark, [row for row in rows if row["txn"] <= last // 2], "some_writes")
    # With writes without history the whole log would be evaluated, because the states are ahead.
    spark.sql(
        "create or replace temporary view writes_with_history as "
        "select * except (history) from all_writes where space not like 'ND10:%'"
    )
    write_models(dbt_project, last)
    dbt_project.run(*TABLES, "outcomes", "transaction_log")
    create_log_view(spark, rows, "some_writes")
    for _ in range(2):
        dbt_project.dbt(
            "run-operation",
            "number_transactions",
            "--args",
            json.dumps(
                {
                    "transactions": dbt_project.table("transaction_log"),
                    "numbers": dbt_project.table("transaction_numbers"),
                }
            ),
        )
    answers = ("later_outcomes", "deleted", "transactions", "as_of_answers", "changes", "activity")
    dbt_project.run("in_parts", *answers)
    dbt_project.clear()
    return {name: dbt_project.rows(name) for name in (*TABLES, "outcomes", *answers)}


def rows_of(
    logged: LoggedCase, rows: list[dict[str, Any]], column: str = "space"
) -> list[dict[str, Any]]:
    return [row for row in rows if row[column].split(":")[0] == logged.id]


def test_every_case_is_played() -> None:
    scenarios = {name for name in case_names() if is_scenario(read(name))}
    assert {*LOGGED_BY_ID, *SEQUENCERS, *scenarios} == set(case_names())


@pytest.mark.parametrize("table", TABLES)
@CASES
def test_the_table_has_the_states_of_the_oracle(
    logged: LoggedCase, table: str, tables: dict[str, Any]
) -> None:
    got = [state_row(row) for row in rows_of(logged, tables[table])]
    assert_same_rows(got, logged.space.expected_rows(), COLUMNS)


@having("states")
def test_the_table_has_the_expected_states(logged: LoggedCase, tables: dict[str, Any]) -> None:
    origins = {state.origin: n for n, state in logged.space.database.ever.items()}
    uuids = {logged.space.uuid(n): n for n in logged.space.database.ever}
    got = []
    for row in map(state_row, rows_of(logged, tables["in_parts"])):
        wanted = {name: row[name] for name in ("id", "version", "action", "app_id", "author")}
        numbers = {
            "txn": row["txn"], "closed_by": row["txn_next"], "author_txn": row["author_txn"],
            "created_txn": row["created_txn"],
        }  # fmt: skip
        got.append(
            {
                **wanted,
                **{
                    name: None if txn is None else logged.number(txn)
                    for name, txn in numbers.items()
                },
                "n": origins[row["i"]],
                "collection": row["space"].split(":")[1],
                "previous": None if row["puuid"] is None else uuids[row["puuid"]],
                "payload": json.loads(row["payload"]),
                **({"resync": True} if row["resync"] else {}),
            }
        )
    assert sorted(got, key=lambda row: row["n"]) == logged.case["expected"]["states"]


@having("steps")
@pytest.mark.parametrize("table", ["outcomes", "later_outcomes"])
def test_every_write_has_its_outcome(
    logged: LoggedCase, table: str, tables: dict[str, Any]
) -> None:
    later = min(row["txn"] for row in tables["later_outcomes"])
    found: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for row in sorted(rows_of(logged, tables[table]), key=lambda row: row["position"]):
        found[row["txn"]].append(row)
    for expected in logged.case["expected"]["steps"]:
        txn = logged.steps[expected["step"]]
        rows = found[txn]
        if table == "later_outcomes" and (txn < later or logged.id == "ND10"):
            continue
        got: dict[str, Any] = {"step": expected["step"], "number": logged.number(txn)}
        errors = [row["outcome"] for row in rows if row["outcome"] in ERRORS]
        if any(row["outcome"] == "ROLLED_BACK" for row in rows):
            got["outcomes"] = None
        elif any(row["is_refused"] for row in rows):
            got["error"] = errors[0]
        else:
            got["outcomes"] = [row["outcome"] for row in rows]
        assert got == expected
        assert all(row["reason"] for row in rows if row["outcome"] in (*ERRORS, "UNDONE"))


@having("transactions")
def test_transactions_are_numbered_and_counted(logged: LoggedCase, tables: dict[str, Any]) -> None:
    rows = rows_of(
        logged, [row for row in tables["transactions"] if row["schema"] != "COMMIT_MSG"], "table"
    )
    messages = {
        row["txid"]: row["commit_msg"]
        for row in tables["transactions"]
        if row["schema"] == "COMMIT_MSG"
    }
    ids = sorted({row["id"] for row in rows})
    steps = {txn: step for step, txn in logged.steps.items()}
    got: dict[int, dict[str, Any]] = {}
    for row in rows:
        counts = json.loads(row["commit_json"])
        app_id, _ = counts.pop("app_id"), counts.pop("author", None)
        assert row["space"] == row["table"]
        entry = got.setdefault(
            ids.index(row["id"]) + 1,
            {
                "number": ids.index(row["id"]) + 1, "step": steps[row["txid"]], "app_id": app_id,
                "message": messages.get(row["txid"]), "collections": {},
            },
        )  # fmt: skip
        entry["collections"][row["table"].split(":")[1]] = counts
    assert [got[number] for number in sorted(got)] == logged.case["expected"]["transactions"]


def test_numbers_have_no_gaps(tables: dict[str, Any]) -> None:
    ids = {row["id"] for row in tables["transactions"] if row["id"] is not None}
    assert ids == set(range(1, len(ids) + 1))
    assert len(ids) == sum(len(logged.space.numbers) for logged in LOGGED)


@having("head")
def test_the_head_is_the_set_of_open_states(logged: LoggedCase, tables: dict[str, Any]) -> None:
    rows = [row for row in rows_of(logged, tables["in_parts"]) if row["txn_next"] is None]
    for collection, expected in logged.case["expected"]["head"].items():
        own = [row for row in rows if row["space"].split(":")[1] == collection]
        assert {row["id"]: json.loads(row["payload"]) for row in own} == expected


@having("deleted")
def test_deleted_features_stay_until_they_are_purged(
    logged: LoggedCase, tables: dict[str, Any]
) -> None:
    for collection, expected in logged.case["expected"]["deleted"].items():
        rows = rows_of(logged, tables["deleted"])
        assert (
            sorted(row["id"] for row in rows if row["space"].split(":")[1] == collection)
            == expected
        )


@pytest.mark.parametrize(
    ("logged", "place"), [pytest.param(*q, id=f"{q[0].id}-{q[1]}") for q in asked("as_of")]
)
def test_as_of_shows_the_states_in_force(
    logged: LoggedCase, place: int, tables: dict[str, Any]
) -> None:
    rows = [row for row in tables["as_of_answers"] if row["question"] == f"{logged.id}:{place}"]
    got = {row["id"]: json.loads(row["payload"]) for row in rows}
    assert {"rows": got} == logged.case["as_of"][place]["expected"]


@pytest.mark.parametrize(
    ("logged", "place"), [pytest.param(*q, id=f"{q[0].id}-{q[1]}") for q in asked("changesets")]
)
def test_changesets_list_what_each_transaction_did(
    logged: LoggedCase, place: int, tables: dict[str, Any]
) -> None:
    rows = [
        row for row in tables["changes"] if row["question"] == f"changesets:{logged.id}:{place}"
    ]
    expected = logged.case["changesets"][place]["expected"]
    assert changesets_of(rows, logged.number) == expected


@pytest.mark.parametrize(
    ("logged", "place"), [pytest.param(*q, id=f"{q[0].id}-{q[1]}") for q in asked("squashed")]
)
def test_a_squashed_range_has_one_entry_per_feature(
    logged: LoggedCase, place: int, tables: dict[str, Any]
) -> None:
    rows = [row for row in tables["changes"] if row["question"] == f"squashed:{logged.id}:{place}"]
    got = {
        change: sorted(row["id"] for row in rows if row["change"] == change)
        for change in sets_of([])
    }
    assert got == logged.case["squashed"][place]["expected"]


@pytest.mark.parametrize(
    ("logged", "place"), [pytest.param(*q, id=f"{q[0].id}-{q[1]}") for q in asked("activity")]
)
def test_the_activity_log_has_a_reverse_patch_to_each_predecessor(
    logged: LoggedCase, place: int, tables: dict[str, Any]
) -> None:
    rows = [row for row in tables["activity"] if row["question"] == f"{logged.id}:{place}"]
    origins = {state.origin: n for n, state in logged.space.database.ever.items()}
    entries = [
        {"n": origins[row["i"]], "patch": row["patch"] and json.loads(row["patch"])}
        for row in sorted(rows, key=lambda row: -int(row["i"]))
    ]
    assert {"entries": entries} == logged.case["activity"][place]["expected"]


@pytest.mark.parametrize("name", SEQUENCERS)
def test_numbered_transactions_gives_the_numbers_of_the_case(
    name: str, project: Project, spark: SparkSession
) -> None:
    case = read(name)
    spark.sql(f"create schema if not exists {project.schema}")
    for run, expected in zip(case["runs"], case["expected"], strict=True):
        rows = [
            {
                "txid": row["txid"],
                "schema": row["collection"] if row["collection"] == "COMMIT_MSG" else "public",
                "table": row["collection"],
                "visible": None
                if row["visible"] is None
                else time_of(row["visible"]).replace(tzinfo=None),  # type: ignore[union-attr]
            }
            for row in run["rows"]
        ]
        types = {"txid": "bigint", "schema": "string", "table": "string", "visible": "timestamp"}
        table = project.table("log_of_others")
        data_frame(spark, rows, types).write.format("delta").mode("overwrite").saveAsTable(table)
        arguments = {
            "transactions": table, "numbers": project.table("numbers"),
            "spaces": run["known_collections"], "visible": "visible",
        }  # fmt: skip
        project.dbt("run-operation", "number_transactions", "--args", json.dumps(arguments))
        assert {str(row["txid"]): row["id"] for row in project.rows("numbers")} == expected


@pytest.mark.thorough
def test_a_suspended_space_is_resumed_without_a_gap(project: Project, spark: SparkSession) -> None:
    case = read("NP9")
    first, _, resumed, last = case["steps"]
    spark.sql(f"create schema if not exists {project.schema}")
    log, states = project.table("log"), project.table("states")
    space = Space("NP9", Database())
    space.transact(first["transaction"], 1)
    data_frame(spark, space.rows, LOG).write.format("delta").saveAsTable(log)
    project.history("states", STATES % log, key=["space", "id"], convention="naksha")
    project.run("states")
    (feature,) = resumed["resume"]["snapshot"]
    content = json.dumps(feature["payload"])
    snapshot = f"(select 'NP9:foo' as space, '{feature['id']}' as id, '{content}' as payload)"
    arguments = {
        "writes": log, "states": states, "snapshot": snapshot, "id": ["space", "id"],
        "payload": "payload", "json": "payload", "where": "space = 'NP9:foo'",
        **{name: resumed["resume"][name] for name in ("app_id", "author", "message")},
    }  # fmt: skip
    operation = ("run-operation", "resync_features", "--args", json.dumps(arguments))
    project.dbt(*operation)
    refused = project.dbt(*operation, check=False)
    project.run("states")
    later = Space("NP9", Database())
    later.transact(last["transaction"], 3)
    data_frame(spark, later.rows, LOG).write.format("delta").mode("append").saveAsTable(log)
    project.run("states")

    assert "the log is ahead of the states" in refused.log
    got = [state_row(row) for row in sorted(project.rows("states"), key=lambda row: int(row["i"]))]
    places = {row["uuid"]: place for place, row in enumerate(got, 1)}
    same = ("id", "version", "action", "txn", "app_id", "author", "author_txn", "created_txn")
    assert [
        {
            **{name: row[name] for name in same},
            "n": places[row["uuid"]],
            "previous": places.get(row["puuid"]),
            "closed_by": row["txn_next"],
            "collection": "foo",
            "payload": json.loads(row["payload"]),
            **({"resync": True} if row["resync"] else {}),
        }
        for row in got
    ] == case["expected"]["states"]
