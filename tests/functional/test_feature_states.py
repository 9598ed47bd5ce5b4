"""Feature states beyond the cases: special names, any session, messages, pages."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
from dbt.adapters.spark.session import Cursor
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from tests.support.project import Project, Run
from tests.support.rendering import Renderer

ODD_LOG = """
select * from values
    (1, 0, 'CREATE', 'start', 'k1', 'app', null, timestamp'2024-02-28 23:30:00 UTC',
        map('a', 1, 'b', 2), '{"x": 1, "y": 1}', 'NULL'),
    (2, 0, 'PUT', 'start', 'k1', 'app', 'ann', timestamp'2024-02-29 23:59:59.999 UTC',
        map('b', 2, 'a', 1), '{"y":1,"x":1.0}', 'NULL'),
    (3, 0, 'PUT', 'start', 'k1', 'app', '', timestamp'2024-03-01 00:00:00 UTC',
        map('b', 2, 'a', 1), '{"y":null,"x":1}', null),
    (4, 0, 'DELETE', 'start', 'k1', 'app', null, timestamp'2024-03-01 00:00:01 UTC',
        null, null, ''),
    (4, 1, 'CREATE', '', 'k1', 'app', null, timestamp'2024-03-01 00:00:01 UTC',
        null, 'no json', '')
    as log(`Batch Id`, position, action, `end`, `the key`, app_id, author, `at`,
        path, `My Json`, `v``v`)
"""
ODD_STATES = (
    "{{ dbt_history.feature_states('odd_log', id=['end', 'the key'], "
    "payload=['path', 'My Json', 'v`v'], json='my json', columns={'txn': 'Batch Id'}, "
    "noop_updates='skip', database_id=7) }}"
)


def test_every_message_of_a_transaction_is_kept(project: Project, spark: SparkSession) -> None:
    """
    In the order of the writes, each with the client's own JSON; a message that changed nothing is
    not one of the transaction.
    """
    spark.sql(
        """
        create or replace temporary view message_outcomes as
        select *, 'app' as app_id, 'ann' as author, true as has_state,
            timestamp'2024-03-01 00:00:00 UTC' as at from values
            (7, 0, 'roads', 'CREATED', false, 'z: first', null),
            (7, 1, 'rails', 'CREATED', false, null, null),
            (7, 2, 'roads', 'CREATED', false, 'a: second', '{"ticket": "A-1"}'),
            (7, 3, 'roads', 'CREATED', false, 'z: first', null),
            (7, 4, 'roads', 'ERROR', true, 'refused', '{"no": 1}'),
            (8, 0, 'roads', 'CREATED', false, 'NULL', null),
            (9, 0, 'roads', 'UPDATED', false, null, 'no json')
            as outcomes (txn, position, space, outcome, is_refused, message, commit_json)
        """
    )
    project.model(
        "transaction_log",
        "{{ dbt_history.transaction_rows('message_outcomes', 'space') }}",
        materialized="history_append",
    )

    project.run("transaction_log")

    rows = sorted(project.rows("transaction_log"), key=lambda row: int(row["i"]))
    messages = [
        (row["txid"], row["commit_msg"], row["commit_json"])
        if row["schema"] == "COMMIT_MSG"
        else (row["txid"], row["table"], json.loads(row["commit_json"])["created"])
        for row in rows
    ]
    assert messages == [
        (7, "z: first", None),
        (7, "rails", 1),
        (7, "roads", 3),
        (7, "a: second", '{"ticket": "A-1"}'),
        (8, "NULL", None),
        (8, "roads", 1),
        (9, None, "no json"),
        (9, "roads", 0),
    ]


def test_special_names_and_types_give_the_same_states_in_any_session(
    project: Project, spark: SparkSession
) -> None:
    spark.sql(f"create or replace temporary view odd_log as {ODD_LOG}")
    project.history("odd", ODD_STATES, key=["end", "the key"], convention="naksha")
    project.run("odd")
    rows = sorted(project.rows("odd"), key=lambda row: int(row["i"]))
    compiled = next((project.path / "target/compiled").rglob("odd.sql")).read_text()
    changed = {"spark.sql.ansi.enabled": "true", "spark.sql.session.timeZone": "Pacific/Auckland"}
    before = {name: str(spark.conf.get(name)) for name in changed}
    plain = [row.asDict(recursive=True) for row in spark.sql(compiled).collect()]
    try:
        for name, value in changed.items():
            spark.conf.set(name, value)
        strict = [row.asDict(recursive=True) for row in spark.sql(compiled).collect()]
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)

    xyz = [row["@ns:com:here:xyz"] for row in rows]
    # The second write has the content of the first and differs only in its author: it is skipped.
    assert [row["txn"] for row in rows] == [1, 3, 4, 4]
    assert [state["action"] for state in xyz] == ["CREATE", "UPDATE", "DELETE", "CREATE"]
    assert [row["v`v"] for row in rows] == ["NULL", None, None, ""]
    assert [row["My Json"] for row in rows][-1] == "no json"
    assert xyz[0]["uuid"].endswith("-8182-e10000000007")
    assert xyz[1]["uuid"].endswith("-8183-090000000007")
    assert sorted(map(repr, plain)) == sorted(map(repr, strict))


def test_all_problems_of_a_log_of_writes_are_reported_together(
    project: Project, spark: SparkSession
) -> None:
    spark.sql(
        "create or replace temporary view poor_log as select 1 as txn, 'a' as id, 1 as resync"
    )
    project.history(
        "poor",
        "{{ dbt_history.feature_states('poor_log', payload=['nothing', 'txn_next'], json='more', "
        "columns={'when': 'at'}, mode='maybe', history='none') }}",
        convention="naksha",
    )

    message = project.run("poor", check=False).message("poor")

    for problem in (
        "columns names when", "no column position", "no column action", "no column app_id",
        "no column at", "no column nothing", "json names more",
        "txn_next is a column of the states",
        "mode is maybe", "history is none", "in model: model.history_tests.poor", "way out:",
    ):  # fmt: skip
        assert problem in message


@pytest.mark.thorough
def test_the_argument_keep_states_holds_where_the_log_has_an_empty_column(
    project: Project, spark: SparkSession
) -> None:
    spark.sql(
        "create or replace temporary view limited_log as select txn, 0 as position,"
        " 'PUT' as action, 'f' as id, 'app' as app_id, timestamp'2024-01-01' as at, txn as v,"
        " cast(null as bigint) as keep_states from range(1, 5) as writes(txn)"
    )
    project.history(
        "limited",
        "{{ dbt_history.feature_states('limited_log', payload='v', keep_states=1) }}",
        convention="naksha",
    )

    project.run("limited")

    kept = {row["txn"]: row["txn_next"] for row in project.rows("limited")}
    assert kept == {3: 4, 4: None}


def test_a_write_that_would_keep_less_than_one_state_is_an_error_and_removes_nothing(
    project: Project, spark: SparkSession
) -> None:
    spark.sql(
        "create or replace temporary view unlimited_log as select *, 0 as position,"
        " 'app' as app_id, timestamp'2024-01-01 00:00:00 UTC' as at, txn as v from values"
        " (1, 'f', 'CREATE', null), (2, 'f', 'UPDATE', 1), (3, 'f', 'UPDATE', -1),"
        " (4, 'f', 'DELETE', 0), (5, 'g', 'CREATE', -1) as log(txn, id, action, keep_states)"
    )
    project.history(
        "unlimited", "{{ dbt_history.feature_states('unlimited_log', payload='v') }}",
        convention="naksha",
    )  # fmt: skip
    project.model(
        "unlimited_outcomes",
        "{{ dbt_history.feature_outcomes('unlimited_log', payload='v') }}",
        materialized="table",
    )

    project.run("unlimited", "unlimited_outcomes")

    kept = {(row["id"], row["txn"]): row["txn_next"] for row in project.rows("unlimited")}
    refused = {
        row["txn"]: (row["outcome"], str(row["reason"]).split(":")[0])
        for row in project.rows("unlimited_outcomes")
        if row["is_refused"]
    }
    assert kept == {("f", 1): 2, ("f", 2): None}
    assert refused == dict.fromkeys((3, 4, 5), ("ERROR", "keep_states is less than 1"))


def write_states_and_outcomes(project: Project, log: str, options: str) -> None:
    """Write the models `states` and `outcomes` of a log; the outcomes go on after the last run."""
    project.history(
        "states", f"{{{{ dbt_history.feature_states('{log}', {options}) }}}}", convention="naksha"
    )
    project.model(
        "outcomes",
        f"{{{{ dbt_history.feature_outcomes('{log}', states=ref('states'),"
        f" after=dbt_history.last_batch(), {options}) }}}}",
        materialized="history_append",
    )


@pytest.mark.thorough
def test_outcomes_do_not_depend_on_states_that_keep_states_has_removed(
    project: Project, spark: SparkSession
) -> None:
    """The outcomes are one run behind the states, which keep one closed state."""

    def run(last: int) -> None:
        spark.sql(
            "create or replace temporary view kept_log as select txn, 0 as position,"
            " if(txn = 1, 'CREATE', 'UPDATE') as action, 'f' as id, 'app' as app_id,"
            f" timestamp'2024-01-01' as at, txn as v from range(1, {last + 1}) as writes(txn)"
        )
        project.run("states", "outcomes")

    options = "payload='v', keep_states=1"
    write_states_and_outcomes(project, "kept_log", options)
    run(1)
    run(4)
    run(4)
    run(6)

    assert sorted((row["txn"], row["outcome"]) for row in project.rows("outcomes")) == [
        (1, "CREATED"), *((txn, "UPDATED") for txn in range(2, 7)),
    ]  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("case", ["purge", "merge"])
def test_outcomes_agree_with_states_that_the_same_build_has_trimmed(
    project: Project, spark: SparkSession, call: Renderer, case: str
) -> None:
    """
    What a write needs had ended before the build that applies the write and removes it.

        txn      1         2            | 3                    4         5
        purge    CREATE    DELETE       | PURGE of 2           CREATE    UPDATE: 2 is removed
        merge    {x: 1}    {x: 2}       | WRITE {y: 5} on 1: 1 is removed
    """
    first = call("uuid_of", object_id="1048576L", date="date'2024-01-01'")
    uuid = spark.sql(f"select {first}").collect()[0][0]
    writes = {
        "purge": [
            "(1, 'CREATE', '1', null)", "(2, 'DELETE', null, null)", "(3, 'PURGE', null, null)",
            "(4, 'CREATE', '4', null)", "(5, 'UPDATE', '5', null)",
        ],
        "merge": [
            """(1, 'CREATE', '{"x":1,"y":1}', null)""", """(2, 'UPDATE', '{"x":2,"y":1}', null)""",
            f"""(3, 'WRITE', '{{"x":1,"y":5}}', '{uuid}')""",
        ],
    }[case]  # fmt: skip
    options = "payload='v', json='v', keep_states=1"
    write_states_and_outcomes(project, "trimmed_log", options)
    for last in (2, len(writes)):
        spark.sql(
            "create or replace temporary view trimmed_log as select *, 0 as position, 'f' as id,"
            " 'MERGE' as on_version_conflict, 'app' as app_id, timestamp'2024-01-01' as at"
            f" from values {', '.join(writes[:last])} as log(txn, action, v, base_uuid)"
        )
        project.run("states", "outcomes")

    outcomes = [row["outcome"] for row in sorted(project.rows("outcomes"), key=lambda r: r["txn"])]
    newest = max(project.rows("states"), key=lambda row: row["txn"])
    if case == "purge":
        assert outcomes == ["CREATED", "DELETED", "PURGED", "CREATED", "UPDATED"]
    else:
        assert newest["v"] == '{"x":2,"y":5}'
        assert outcomes == ["CREATED", "UPDATED", "UPDATED"]


@pytest.mark.thorough
def test_outcomes_ahead_of_the_states_are_decided_once_and_on_all_earlier_writes(
    project: Project, spark: SparkSession
) -> None:
    """
    run         outcomes   outcomes   states   outcomes           all
    log up to   1          2          1        4                  5
    states      none       none       1                           5
    decided     1          2                   3, 4 after 2       5: the states of 4 are gone
    """

    def run(last: int, *models: str) -> None:
        writes = [
            "(1, 'CREATE', 'f', 'on')", "(2, 'CREATE', 'g', 'on')", "(3, 'UPDATE', 'g', 'on')",
            "(4, 'CREATE', 'f', 'on')", "(5, 'UPDATE', 'g', 'off')",
        ]  # fmt: skip
        spark.sql(
            "create or replace temporary view lagging_log as select *, 0 as position,"
            " 'app' as app_id, timestamp'2024-01-01 00:00:00 UTC' as at, txn as v"
            f" from values {', '.join(writes[:last])} as log(txn, action, id, history)"
        )
        project.run(*models)

    project.history(
        "states", "{{ dbt_history.feature_states('lagging_log', payload='v') }}",
        convention="naksha",
    )  # fmt: skip
    project.model(
        "outcomes",
        "{{ dbt_history.feature_outcomes('lagging_log', states=ref('states'),"
        " after=dbt_history.last_batch(), payload='v') }}",
        materialized="history_append",
    )
    run(1, "outcomes")
    run(2, "outcomes")
    run(1, "states")
    run(4, "outcomes")
    run(5, "states", "outcomes")

    rows = sorted((row["txn"], row["outcome"]) for row in project.rows("outcomes"))
    assert rows == [
        (1, "CREATED"), (2, "CREATED"), (3, "UPDATED"), (4, "CONFLICT"), (5, "UPDATED"),
    ]  # fmt: skip


def test_writes_without_a_unique_position_are_refused(
    project: Project, spark: SparkSession
) -> None:
    spark.sql(
        "create or replace temporary view placeless_log as "
        "select *, 'PUT' as action, 'app' as app_id, timestamp'2024-01-01' as at, id as v "
        "from values "
        "(1, 0, 'a'), (1, 0, 'b'), (null, 1, 'c'), (-1, 2, 'd'), (2, null, 'e'), (2, null, 'f') "
        "as log(txn, position, id)"
    )
    project.history(
        "placeless", "{{ dbt_history.feature_states('placeless_log') }}", convention="naksha"
    )

    message = project.run("placeless", check=False).message("placeless")

    assert "2 writes have no transaction" in message
    assert "1 writes have the transaction and the position of another one" in message


def log_of_transactions(spark: SparkSession, table: str, number: int) -> None:
    spark.sql(
        f"create or replace table {table} using delta as select id as txid, "
        "'public' as `schema`, 'foo' as `table`, timestamp_millis(10000 - id % 7) as visible "
        f"from range({number})"
    )


def test_two_concurrent_numbering_jobs_give_each_number_once(
    project: Project, spark: SparkSession
) -> None:
    spark.sql(f"create schema if not exists {project.schema}")
    log, numbers = project.table("log"), project.table("numbers")
    arguments: dict[str, Any] = {"transactions": log, "numbers": numbers, "visible": "visible"}
    log_of_transactions(spark, log, 20)
    project.dbt("run-operation", "number_transactions", "--args", json.dumps(arguments))
    run = project.dbt(
        "run-operation", "number_transactions", "--args", json.dumps({**arguments, "dry_run": True})
    )
    insert = run.log[run.log.index("insert into") :].rsplit(";", 1)[0]
    log_of_transactions(spark, log, 50)
    setting = "spark.databricks.delta.optimizeMetadataQuery.enabled"

    def job(_: int) -> bool:
        session = spark.newSession()
        session.conf.set(setting, "false")
        try:
            session.sql(insert).collect()
        except Py4JJavaError as error:
            if "DELTA_CONCURRENT" not in str(error):
                raise
            return False
        return True

    with ThreadPoolExecutor(4) as jobs:
        done = list(jobs.map(job, range(4)))

    assert any(done)
    rows = project.rows("numbers")
    assert sorted(row["id"] for row in rows) == list(range(1, 51))
    assert sorted(row["txid"] for row in rows) == list(range(50))
    first = sorted((-(row["txid"] % 7), row["txid"]) for row in rows if row["txid"] < 20)
    by_id = {row["id"]: row["txid"] for row in rows}
    assert [by_id[number] for number in range(1, 21)] == [txid for _, txid in first]


def test_a_range_of_changes_is_read_page_by_page(project: Project, spark: SparkSession) -> None:
    spark.sql(
        "create or replace temporary view paged_states as select id % 4 as id, id as i, "
        "id as txn, named_struct('action', 'UPDATE', 'author', 'ann', 'updatedAt', id) as xyz "
        "from range(1, 11)"
    )
    call = "{{{{ dbt_history.feature_changes('paged_states', namespace='xyz', to_txn=9, {}) }}}}"
    pages = {"one": "limit=4", "two": "limit=4, after=4", "three": "limit=4, after=8"}
    for name, arguments in pages.items():
        project.model(name, f"select i from {call.format(arguments)} as c", materialized="table")

    project.run(*pages)

    got = [sorted(int(row["i"]) for row in project.rows(name)) for name in pages]
    assert got == [[1, 2, 3, 4], [5, 6, 7, 8], [9]]


@pytest.mark.thorough
def test_a_purge_is_a_change_in_its_own_transaction(call: Renderer, spark: SparkSession) -> None:
    spark.sql(
        "create or replace temporary view purged_states as select id, i, txn, purged_txn,"
        " named_struct('action', action, 'author', 'ann', 'updatedAt', i) as xyz from values"
        " ('a', 1, 1, null, 'CREATE'), ('a', 2, 2, 4, 'DELETE'), ('b', 3, 2, null, 'CREATE'),"
        " ('b', 4, 3, 3, 'DELETE') as states(id, i, txn, purged_txn, action)"
    )

    def found(**bounds: Any) -> list[tuple[Any, ...]]:
        changes = call("feature_changes", states="purged_states", namespace="xyz", **bounds)
        rows = spark.sql(f"select id, i, change from {changes} as changes").collect()
        return sorted(tuple(row) for row in rows)

    assert found(purges=True, from_txn=2) == [
        ("a", 2, "deleted"),
        ("a", 2, "purged"),
        ("b", 3, "inserted"),
        ("b", 4, "purged"),  # deleted and purged in one transaction: its last change
    ]
    assert found(purges=True, to_txn=3, squash=True) == [("a", 2, "deleted"), ("b", 4, "purged")]
    assert [row[2] for row in found(from_txn=3)] == ["deleted"]
    with pytest.raises(Exception, match="of a purge only the transaction is known"):
        found(purges=True, author="ann")


@pytest.mark.thorough
def test_a_time_of_changes_means_the_last_transaction_not_later(
    call: Renderer, spark: SparkSession
) -> None:
    """Transaction 3 has an earlier time than 2."""
    spark.sql(
        "create or replace temporary view timed_states as select *, txn as i,"
        " named_struct('action', 'UPDATE', 'updatedAt', hour * 3600000) as xyz"
        " from values ('a', 1, 10), ('b', 2, 12), ('c', 3, 11), ('d', 4, 13) as t(id, txn, hour)"
    )

    def found(**times: str) -> list[str]:
        changes = call(
            "feature_changes", states="timed_states", namespace="xyz", where="id <> 'c'", **times
        )
        return sorted(row.id for row in spark.sql(f"select id from {changes} as changes").collect())

    assert found(until_time="1970-01-01 11:30:00") == ["a", "b"]
    assert found(after_time="1970-01-01 11:30:00") == ["d"]
    assert found(until_time="1970-01-01 09:00:00") == []
    assert found(after_time="1970-01-01 09:00:00") == ["a", "b", "d"]


@pytest.mark.thorough
def test_bases_and_uuids_of_writes(project: Project, spark: SparkSession, call: Renderer) -> None:
    """
    A base counts for WRITE only, and UUIDs in any case. `first` has no JSON; both sides set some.

        txn     1        2                   3                4                       5
        f       first    UPDATE, of first    WRITE, of 2      UPDATE, expecting 3     DELETE
        g       first    {"a": 1}            WRITE {"b": 2}, of first: merged
    """
    uuid = call("uuid_of", object_id="base * 1048576L + place", date="date'2024-01-01'")
    spark.sql(
        f"""
        create or replace temporary view based_log as
        select *, 'app' as app_id, timestamp'2024-01-01' as at, place as position,
            if(txn = 4, null, upper({uuid})) as base_uuid,
            if(txn = 4, upper({uuid}), null) as expected_uuid,
            if(id = 'g', 'MERGE', 'ERROR') as on_version_conflict
        from values
            (1, 0, 'CREATE', 'f', '1', null), (1, 1, 'CREATE', 'g', null, null),
            (2, 0, 'UPDATE', 'f', '2', 1), (2, 1, 'UPDATE', 'g', '{{"a":1}}', null),
            (3, 0, 'WRITE', 'f', '3', 2), (3, 1, 'WRITE', 'g', '{{"b":2}}', 1),
            (4, 0, 'UPDATE', 'f', '4', 3), (5, 0, 'DELETE', 'f', null, 1)
            as log(txn, place, action, id, v, base)
        """
    )
    project.history(
        "based",
        "{{ dbt_history.feature_states('based_log', payload='v', json='v', mode='per_row') }}",
        convention="naksha",
    )

    project.run("based")

    found = sorted((row["id"], row["txn"], row["v"]) for row in project.rows("based"))
    assert found == [
        ("f", 1, "1"), ("f", 2, "2"), ("f", 3, "3"), ("f", 4, "4"), ("f", 5, "4"),
        ("g", 1, None), ("g", 2, '{"a":1}'), ("g", 3, '{"a":1,"b":2}'),
    ]  # fmt: skip


@pytest.mark.thorough
def test_a_new_column_and_a_narrower_type_of_the_log_keep_stored_values(
    project: Project, spark: SparkSession
) -> None:
    """The tombstone of f has the content of the state before it."""
    log = (
        "create or replace temporary view growing_log as select *, 0 as position, 'app' as app_id,"
        " timestamp'2024-01-01' as at from values {} as log(txn, action, id, price{})"
    )
    project.history(
        "growing", "{{ dbt_history.feature_states('growing_log') }}", convention="naksha"
    )
    spark.sql(log.format("(1, 'CREATE', 'f', cast(12.34 as decimal(10,2)))", ""))
    project.run("growing")
    spark.sql(
        log.format(
            "(2, 'DELETE', 'f', cast(null as decimal(8,0)), null),"
            " (3, 'CREATE', 'g', cast(5 as decimal(8,0)), 'new')",
            ", note",
        )
    )

    project.run("growing")

    rows = sorted(project.rows("growing"), key=lambda row: int(row["i"]))
    assert [(row["id"], str(row["price"]), row["note"]) for row in rows] == [
        ("f", "12.34", None), ("f", "12.34", None), ("g", "5.00", "new"),
    ]  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("splits", [(3, 7), tuple(range(1, 8))])
def test_history_switched_off_and_on_gives_the_same_states_in_one_run_and_in_many(
    project: Project, spark: SparkSession, splits: tuple[int, ...]
) -> None:
    """
    The write that ends a state decides whether the state stays.

    txn       1      2      3      4      5      6      7
    history   on     on     off    on     on     off    on
    f         [ 1 --)       [ 3 --)[ 4 --)       [ 6 --)[ 7    2 and 5 were replaced
    g                       deleted, no tombstone        [ 7    1 was replaced
    h                              [ 4 --)|tombstone
    """
    writes = """
        select *, 'app' as app_id, timestamp'2024-01-01 00:00:00 UTC' as at from values
            (1, 0, 'PUT', 'f', '1', 'on'), (1, 1, 'PUT', 'g', '1', 'on'),
            (2, 0, 'PUT', 'f', '2', 'on'), (3, 0, 'PUT', 'f', '3', 'off'),
            (3, 1, 'DELETE', 'g', null, 'off'), (4, 0, 'PUT', 'f', '4', null),
            (4, 1, 'PUT', 'h', '4', null), (5, 0, 'PUT', 'f', '5', 'on'),
            (5, 1, 'DELETE', 'h', null, 'on'), (6, 0, 'PUT', 'f', '6', 'off'),
            (6, 1, 'PURGE', 'h', null, 'off'), (7, 0, 'PUT', 'f', '7', 'on'),
            (7, 1, 'PUT', 'g', '7', 'on')
            as log(txn, position, action, id, v, history)
    """

    def arrive(up_to: int) -> None:
        spark.sql(
            "create or replace temporary view switched as"
            f" select * from ({writes}) where txn <= {up_to}"
        )

    def states(name: str) -> list[tuple[Any, ...]]:
        rows = sorted(project.rows(name), key=lambda row: (row["id"], row["i"]))
        return [
            (row["id"], row["v"], row["txn"], row["txn_next"], row["@ns:com:here:xyz"].action)
            for row in rows
        ]

    for name in ("at_once", "split"):
        project.history(
            name,
            "{{ dbt_history.feature_states('switched', payload=['v']) }}",
            convention="naksha",
            max_deleted_share=None,
        )
    for up_to in splits:
        arrive(up_to)
        project.run("split", *(["at_once"] if up_to == 7 else []))

    assert states("split") == [
        ("f", "1", 1, 2, "CREATE"),
        ("f", "3", 3, 4, "UPDATE"),
        ("f", "4", 4, 5, "UPDATE"),
        ("f", "6", 6, 7, "UPDATE"),
        ("f", "7", 7, None, "UPDATE"),
        ("g", "7", 7, None, "CREATE"),
        ("h", "4", 4, 5, "CREATE"),
        ("h", "4", 5, 5, "DELETE"),
    ]
    assert states("at_once") == states("split")


def test_a_view_over_several_spaces_shows_each_feature_of_the_first_layer_that_has_it(
    project: Project, spark: SparkSession
) -> None:
    """
    txn        1      2      3      4
    edits      f: e1  .      h: e3  h deleted
    map        f: m1  g: m2  h: m3  .
    """
    for name, sql in {
        "layers_edits": "select * from values ('edits', 'f', 'e1', 1, null),"
        " ('edits', 'h', 'e3', 3, 4), ('edits', 'h', 'e3', 4, 4), ('other', 'f', 'o1', 1, null)"
        " as states(space, `the id`, v, txn, txn_next)",
        "layers_map": "select * from values (1, null, 'map', 'm1', 'f'),"
        " (2, null, 'map', 'm2', 'g'), (3, null, 'map', 'm3', 'h')"
        " as states(txn, txn_next, Space, v, `the id`)",
        "layers_thin": "select `the id`, txn, txn_next from layers_map",
    }.items():
        spark.sql(f"create or replace temporary view {name} as {sql}")
    edits = "{'states': 'layers_edits', 'where': \"space = 'edits'\"}"
    for name, arguments in {
        "now": f"[{edits}, 'layers_map'], id='the id'",
        "at_3": f"[{edits}, 'layers_map'], id='the id', at=3",
        "map_at_1": f"['layers_map', {edits}], id='the id', at=1",
        "unlike": "['layers_edits', 'layers_thin'], id=['the id', 'v']",
    }.items():
        call = f"{{{{ dbt_history.layered_features({arguments}) }}}}"
        project.model(
            name, f"select _layer, `the id` as id, v from {call} as v", materialized="table"
        )

    done = project.run("now", "at_3", "map_at_1", "unlike", check=False)

    def shown(name: str) -> list[tuple[Any, ...]]:
        return sorted(tuple(row.values()) for row in project.rows(name))

    assert shown("now") == [(1, "f", "e1"), (2, "g", "m2"), (2, "h", "m3")]
    assert shown("at_3") == [(1, "f", "e1"), (1, "h", "e3"), (2, "g", "m2")]
    assert shown("map_at_1") == [(1, "f", "m1")]
    assert "layer 2 and layer 1 differ in column space, v" in done.message("unlike")
    assert "layer 2 has no column v" in done.message("unlike")


@pytest.mark.thorough
def test_a_resync_beside_another_writer_takes_no_number_twice(
    project: Project, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark.sql(f"create schema if not exists {project.schema}")
    log, states, now = (project.table(name) for name in ("log", "states", "now"))
    spark.sql(
        f"create table {log} (txn bigint, position bigint, action string, id string, app_id string,"
        " author string, message string, at timestamp, resync boolean, v string) using delta"
    )
    spark.sql(
        f"create table {states} (id string, v string, txn bigint, txn_next bigint) using delta"
    )
    spark.sql(
        f"create table {now} using delta as select * from values ('a', '1'), ('b', '2') t(id, v)"
    )
    common = {
        "writes": log,
        "states": states,
        "snapshot": now,
        "app_id": "app",
        "payload": "v",
    }
    execute = Cursor.execute

    def resync(meanwhile: Callable[[str], object], **more: Any) -> Run:
        def run(self: Cursor, sql: str, *arguments: Any) -> None:
            if "insert into" in sql:
                meanwhile(sql)
            execute(self, sql, *arguments)

        monkeypatch.setattr(Cursor, "execute", run)
        arguments = json.dumps(common | more)
        return project.dbt("run-operation", "resync_features", "--args", arguments, check=False)

    def another(_: str) -> None:
        spark.sql(
            f"insert into {log} (txn, position, action, id, v) values (1, 0, 'PUT', 'x', '9')"
        )

    def at_once(sql: str) -> None:
        def job(_: int) -> None:
            with suppress(Py4JJavaError):
                spark.newSession().sql(sql).collect()

        with ThreadPoolExecutor(4) as jobs:
            list(jobs.map(job, range(4)))

    refused = resync(another)
    assert "the log was written by another one at the same time" in refused.log
    assert [(row["txn"], row["id"]) for row in project.rows("log")] == [(1, "x")]

    resync(at_once, even_if_ahead=True)
    found = sorted((row["txn"], row["id"]) for row in project.rows("log"))
    assert found == [(1, "x"), (2, "a"), (2, "b")]


@pytest.mark.thorough
def test_a_resync_of_main_leaves_the_branches(call: Renderer, spark: SparkSession) -> None:
    """Of a branch that the snapshot names, too, what it lacks is deleted."""
    states = [("main", "f"), ("main", "g"), ("draft", "h"), ("old", "h")]
    spark.createDataFrame(states, "branch string, id string").selectExpr(
        "*", "'1' as v", "cast(null as bigint) as txn_next"
    ).createOrReplaceTempView("branched_states")
    spark.sql("create or replace temporary view branched_log as select 7L as txn")
    columns = {"branch": "string", "id": "string", "v": "string"}
    call.pretend_answers(
        {
            "describe branched_states": [
                {"col_name": name, "data_type": type_, "comment": None}
                for name, type_ in columns.items()
            ]
        }
    )
    arguments = {
        "writes": "branched_log", "states": "branched_states", "app_id": "app", "author": None,
        "message": None, "key": ["Branch", "id"], "payload": ["v"], "json": [], "at": None,
        "where": "true", "head": 7,
    }  # fmt: skip

    def writes(snapshot: str) -> list[tuple[str, str, str]]:
        now = f"(select * from values {snapshot} as now(branch, id, v))"
        sql = call("_resync_writes", call={**arguments, "snapshot": now}, txn=8, is_resync=True)
        found = spark.sql(sql).selectExpr("action", "branch", "id").collect()
        return sorted((row.action, row.branch, row.id) for row in found)

    on_main = [("DELETE", "main", "g")]
    assert writes("('main', 'f', '1')") == on_main
    assert writes("(null, 'f', '1')") == on_main
    on_draft = [("DELETE", "draft", "h"), *on_main, ("PUT", "draft", "i")]
    assert writes("('main', 'f', '1'), ('draft', 'i', '1')") == on_draft
    assert writes("('main', 'f', '1'), ('main', 'g', '1')") == []


@pytest.mark.thorough
def test_features_whose_states_were_not_kept_are_found(call: Renderer, spark: SparkSession) -> None:
    """
    txn      1         3             5          7
    f        [ ---- no history ------ 5 --------        not stored at 4
    g        [ 1 ---------------------------------
    h                                [ 5 -------        did not exist at 4
    k        [ 1 ------)deleted      [ 5 -------        did not exist at 4
    old      [ 1 -)tombstone
    gone     [ ---- no history ------ 5, tombstone      not stored at 4
    """
    rows = "('f', 5, null, 1), ('g', 1, null, 1), ('h', 5, null, 5), ('k', 1, 3, 1),"
    rows += " ('k', 3, 3, 1), ('k', 5, null, 5), ('old', 1, 2, 1), ('old', 2, 2, 1),"
    rows += " ('gone', 5, 5, 1)"
    spark.sql(f"select * from values {rows} as s(id, txn, txn_next, created_txn)").selectExpr(
        "*", "id as `Key-Id`"
    ).createOrReplaceTempView("kept_states")

    def unkept(to: int, where: str = "true", **more: str) -> list[tuple[str, int, int]]:
        snapshot = f"(select * from kept_states where txn <= {to} and {to} < coalesce(txn_next, 9))"
        sql = call(
            "_unkept_states_sql", states="kept_states", snapshot=snapshot, to=str(to),
            key=["Key-Id", "id"], where=where, **more,
        )  # fmt: skip
        return [(json.loads(row[0])["id"], row[1], row[2]) for row in spark.sql(sql).collect()]

    assert unkept(4) == unkept(2) == [("f", 2, 5), ("gone", 2, 5)]
    deleted = "select 'z', 'z', 6L union all select 'g', 'g', 6L"
    assert unkept(4, deleted=deleted) == [("f", 3, 6), ("gone", 3, 6), ("z", 3, 6)]
    assert unkept(5) == unkept(0) == unkept(4, "`Key-Id` = 'g'") == []


@pytest.mark.thorough
def test_a_merge_of_missing_content_has_each_conflict_and_no_other(
    call: Renderer, spark: SparkSession
) -> None:
    """
    txn      1         2        3
    main     base               theirs     none: the feature does not exist
    draft    base 1    mine
    """
    clash_of_all, clash_of_x = [("name", None)], [("properties", "x")]
    # The contents as (name, properties), then what is merged, or the conflicts.
    cases: dict[str, tuple[Any, ...]] = {
        "deleted here": (("a", "{}"), None, (None, "{}"), clash_of_all),
        "deleted there": (("a", "{}"), (None, None), None, clash_of_all),
        "all of it": (("a", "{}"), None, ("b", '{"x":1}'), clash_of_all + clash_of_x),
        "set there": (("a", None), ("b", None), ("a", '{"x":1}'), ("b", '{"x":1}')),
        "set here": (("a", None), ("a", '{"x":1}'), ("b", None), ("b", '{"x":1}')),
        "set twice": (("a", None), ("b", '{"x":1}'), ("a", '{"y":1}'), ("b", '{"y":1,"x":1}')),
        "unlike": (("a", None), ("b", '{"x":1}'), ("a", '{"x":2}'), clash_of_x),
        "removed": (("a", '{"x":1}'), ("a", None), ("b", '{"x":1}'), ("b", None)),
        "removed, set": (
            ("a", '{"x":1}'), ("b", None), ("a", '{"x":2}'), [("properties", None)],
        ),
        "created": (None, ("a", None), ("a", '{"x":1}'), ("a", '{"x":1}')),
        "created twice": (None, ("a", '{"x":1}'), ("a", '{"y":1}'), ("a", '{"y":1,"x":1}')),
    }  # fmt: skip
    states = []
    for id_, (base, mine, theirs, _) in cases.items():
        if base is not None:
            states.append(("main", id_, 1, 3, "CREATE", *base))
        for branch, txn, content in (("draft", 2, mine), ("main", 3, theirs)):
            action, end = ("DELETE", txn) if content is None else ("UPDATE", None)
            states.append((branch, id_, txn, end, action, *(content or ("a", "{}"))))
    types = "branch string, id string, txn long, txn_next long, action string"
    spark.createDataFrame(states, f"{types}, name string, properties string").selectExpr(
        "*", "txn as i", "named_struct('action', action, 'uuid', id) as xyz"
    ).createOrReplaceTempView("sided_states")
    features = call(
        "_features_of",
        columns=[
            {"name": name, "type": "string"} for name in ("branch", "id", "name", "properties")
        ],
        key=["branch", "id"],
        json=["properties"],
    ) | {"namespace": "xyz"}
    epoch = {"branch": "draft", "fork": 1, "since": 1, "until": None, "parent": "main"}
    epoch |= {"epoch": 0, "at": 1, "chain": [{"branch": "main", "at": 1, "fork": -1}]}
    ctes = call(
        "_sides_ctes", features=features, states="sided_states", epochs=[epoch], epoch=epoch
    )

    found = {
        row.id: [tuple(clash) for clash in row.clashes] or (row.merged and tuple(row.merged))
        for row in spark.sql(f"with {ctes} select * from sides").collect()
    }

    assert found == {id_: expected for id_, (*_, expected) in cases.items()}


@pytest.mark.thorough
def test_a_statement_that_would_write_too_much_in_one_transaction_fails(
    call: Renderer, spark: SparkSession
) -> None:
    position = call("_position_of_write", order=["`id`"], caller_name="resync_features")
    sql = f"select {position} as position from range(3)"
    assert " > 1048576," in sql

    assert sorted(row.position for row in spark.sql(sql).collect()) == [0, 1, 2]
    with pytest.raises(Exception, match="too many writes for one transaction"):
        spark.sql(sql.replace(" > 1048576,", " > 2,")).collect()
