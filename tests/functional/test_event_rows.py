"""Event tables beyond the cases: letters, NOT NULL, altered tables, a drain that was killed."""

from __future__ import annotations

import csv
from typing import Any

import pytest

from tests.support.coarse_log import write_coarse_log
from tests.support.processes import fail_before
from tests.support.project import ROOT, Project

FEED = (
    "'delta.enableChangeDataFeed' = 'true', 'delta.columnMapping.mode' = 'name',"
    " 'delta.enableTypeWidening' = 'true'"
)
# A plan shows 25 columns.
MANY = [f"n{number}" for number in range(30)]
ATTRIBUTES = ["_hist_trans_id", "_hist_user", "_hist_event", "_hist_time"]


def source(project: Project, columns: str, name: str = "items") -> str:
    table = project.table(name)
    project.spark.sql(f"create schema if not exists {project.schema}")
    project.spark.sql(f"create table {table} ({columns}) using delta tblproperties ({FEED})")
    return table


def events(project: Project, options: str = "") -> None:
    relation = f"api.Relation.create(schema='{project.schema}', identifier='items')"
    project.model(
        "items_history",
        f"select * from {{{{ dbt_history.event_rows({relation}, 'id'{options}) }}}}",
        materialized="history_append",
    )


def rows(project: Project, *columns: str) -> list[tuple[Any, ...]]:
    found = sorted(
        project.rows("items_history"), key=lambda row: (row["_hist_time"], str(row["_hist_event"]))
    )
    return [(row["_hist_event"], *(row.get(name) for name in columns)) for row in found]


@pytest.mark.thorough
def test_letter_codes_not_null_and_altered_columns_are_carried_over(project: Project) -> None:
    spark = project.spark
    many = " int, ".join(MANY)
    table = source(project, f"id bigint not null, {many} int, w string not null, v string, n int")
    events(project, ", codes='letters'")
    project.run("items_history")
    history = spark.table(project.table("items_history"))
    assert [field.name for field in history.schema if not field.nullable] == ["id", "w"]
    assert history.columns == ["id", *MANY, "w", "v", "n", *ATTRIBUTES]
    spark.sql(f"insert into {table} (id, w, v, n) values (1, 'w', 'a', 1)")
    project.run("items_history")
    for statement in (
        "alter table {} drop column w",
        "alter table {} rename column v to renamed",
        "alter table {} alter column n type bigint",
        "alter table {} add columns (more string)",
        "update {} set n = 3000000000, more = 'm'",
        "delete from {}",
    ):
        spark.sql(statement.format(table))

    project.run("items_history")

    assert rows(project, "id", "w", "v", "renamed", "n", "more") == [
        ("I", 1, "w", "a", None, 1, None),
        ("F", 1, None, None, "a", 1, None),
        ("T", 1, None, None, "a", 3000000000, "m"),
        ("D", 1, None, None, "a", 3000000000, "m"),
    ]
    # A new column is added after its predecessor in the source.
    altered = ["id", *MANY, "renamed", "w", "v", "n", "more", *ATTRIBUTES]
    assert spark.table(project.table("items_history")).columns == altered
    assert {row["_hist_user"] for row in project.rows("items_history")} == {None}
    trans_ids = {row["_hist_trans_id"] for row in project.rows("items_history")}
    assert all(trans_id.startswith(f"{project.schema}.items:") for trans_id in trans_ids)
    assert len(trans_ids) == 3


def not_null(project: Project) -> list[str]:
    schema = project.spark.table(project.table("items_history")).schema
    return [field.name for field in schema if not field.nullable]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("statements", "found", "kept"),
    [
        (
            [
                "alter table {} alter column c drop not null",
                "insert into {} values (2, null)",
                "restore table {} to version as of 1",
                "insert into {} values (3, 'c')",
            ],
            [(1, 1, "a", None), (1, 3, "c", None)],
            ["id", "c"],
        ),
        (
            [
                "alter table {} alter column c drop not null",
                "insert into {} values (2, null)",
                "run",
                "restore table {} to version as of 1",
            ],
            [(1, 1, "a", None), (1, 2, None, None), (2, 2, None, None)],
            ["id"],
        ),
        (
            [
                "alter table {} rename column c to d",
                "insert into {} values (2, 'b')",
                "alter table {} rename column d to c",
            ],
            [(1, 1, "a", None), (1, 2, None, "b")],
            ["id"],
        ),
    ],
    ids=["restored", "taken and restored", "renamed"],
)
def test_a_column_that_is_not_null_again_stops_no_run(
    project: Project, statements: list[str], found: list[Any], kept: list[str]
) -> None:
    """
    c        not null | nullable, or named d: a NULL    not null
    taken    run 1    | run 2
    """
    table = source(project, "id bigint not null, c string not null")
    project.spark.sql(f"insert into {table} values (1, 'a')")
    events(project)
    project.run("items_history")
    assert not_null(project) == ["id", "c"]
    for statement in [*statements, "run"]:
        if statement == "run":
            project.run("items_history")
        else:
            project.spark.sql(statement.format(table))

    assert rows(project, "id", "c", "d") == found
    assert not_null(project) == kept
    assert project.run("items_history").message("items_history") == "nothing new"


@pytest.mark.thorough
def test_a_column_that_became_nullable_after_the_first_run_was_killed_is_nullable(
    project: Project,
) -> None:
    table = source(project, "id bigint not null, c string not null")
    project.spark.sql(f"insert into {table} values (1, 'a')")
    events(project)
    with pytest.MonkeyPatch.context() as patch:
        fail_before(patch, "insert into")
        assert not project.run("items_history", check=False).success
    assert not_null(project) == ["id", "c"]
    project.spark.sql(f"alter table {table} alter column c drop not null")
    project.spark.sql(f"update {table} set c = null")

    project.run("items_history")

    assert rows(project, "id", "c") == [(1, 1, None)]
    assert not_null(project) == ["id"]


@pytest.mark.thorough
@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
def test_a_column_that_one_of_two_sources_has_nullable_is_nullable(
    project: Project, order: tuple[str, str]
) -> None:
    parts = []
    for name in order:
        constraint = " not null" if name == "b" else ""
        table = source(project, f"id bigint not null, c string{constraint}", name)
        project.spark.sql(f"insert into {table} values (1, {'null' if name == 'a' else 1})")
        relation = f"api.Relation.create(schema='{project.schema}', identifier='{name}')"
        parts.append(f"select * from {{{{ dbt_history.event_rows({relation}, 'id') }}}}")
    project.model("items_history", " union all ".join(parts), materialized="history_append")

    project.run("items_history")

    assert sorted(str(row["c"]) for row in project.rows("items_history")) == ["1", "None"]
    assert not_null(project) == ["id"]


@pytest.mark.parametrize(
    ("codes", "events"),
    [
        ("", [1, 3]),
        pytest.param(", codes='letters'", ["I", "U"], marks=pytest.mark.thorough),
        pytest.param(", codes='words'", ["insert", "update"], marks=pytest.mark.thorough),
    ],
    ids=["integer", "letters", "words"],
)
def test_a_drain_killed_before_it_empties_the_inbox_loses_and_duplicates_nothing(
    project: Project, codes: str, events: list[Any]
) -> None:
    spark = project.spark
    table = source(project, "id bigint, v string")
    relation = f"api.Relation.create(schema='{project.schema}', identifier='items')"
    project.model(
        "inbox",
        "select * from {{ dbt_history.core_temp_history("
        f"[{{'main': {relation}, 'key': 'id'}}]) }}}}",
        materialized="history_append",
        tblproperties={"delta.appendOnly": "false"},
    )
    select = f"select * from {{{{ dbt_history.core_history(ref('inbox'){codes}) }}}}"
    key = ["trans_id", "table", "event"]
    project.model("core", select, materialized="history_append", unique_key=key)
    spark.sql(f"insert into {table} values (1, 'a')")
    project.run("inbox", "core")
    assert len(project.rows("inbox")) == 1, "without the hook, as if killed before it"
    spark.sql(f"update {table} set v = 'b'")
    project.run("inbox")
    drain = "{{ dbt_history.drain_core_temp_history(ref('inbox'), this) }}"
    project.model("core", select, materialized="history_append", unique_key=key, post_hook=drain)

    project.run("core")

    assert project.rows("inbox") == []
    assert sorted(row["event"] for row in project.rows("core")) == events
    assert {row["table"] for row in project.rows("core")} == {"items"}


@pytest.mark.thorough
def test_the_documented_tables_and_transaction_come_out_as_documented(project: Project) -> None:
    """ESQL's X and X.History, and the rows of its `_core.history`, as in the seeds."""
    spark = project.spark
    tables = {
        "a": "a_id bigint not null, code string",
        "b": "_id string not null, price int",
        "x": "_id string not null, name string not null, address string, b_id string",
    }
    for name, columns in tables.items():
        source(project, columns, name)
    spark.sql(f"insert into {project.table('b')} values ('b1', 1)")
    relation = f"api.Relation.create(schema='{project.schema}', identifier="
    project.model(
        "x_history",
        f"select * from {{{{ dbt_history.event_rows({relation}'x'), '_id') }}}}",
        materialized="history_append",
    )
    write_coarse_log(project, {name: columns.split()[0] for name, columns in tables.items()})
    project.run("x_history", "inbox", "core")
    metadata = "spark.databricks.delta.commitInfo.userMetadata"
    spark.conf.set(metadata, '{"user": "xyz", "transaction": "122323"}')
    spark.sql(f"insert into {project.table('a')} values (1, 'A1')")
    spark.sql(f"delete from {project.table('b')}")
    spark.conf.unset(metadata)

    project.run("x_history", "inbox", "core")

    types = {"uuid": "string", "datetime": "timestamp"}
    documented: dict[str, list[tuple[str, str]]] = {"X": [], "X.History": []}
    for row in seed("esql_tables_documented"):
        documented[row["table"]].append((row["column"], types.get(row["type"], row["type"])))
    assert spark.table(project.table("x")).dtypes == documented["X"]
    assert spark.table(project.table("x_history")).dtypes == documented["X.History"]
    core = spark.table(project.table("core"))
    assert core.columns == ["trans_id", "user", "table", "event", "at"]
    found = [tuple(map(str, row[:4])) for row in core.where("trans_id = '122323'").collect()]
    assert sorted(found) == [
        (row["trans_id"], row["user"], row["table"], row["event"])
        for row in seed("esql_core_history_documented")
    ]


def seed(name: str) -> list[dict[str, str]]:
    path = ROOT / f"seeds/examples/esql/{name}.csv"
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.thorough
def test_a_gap_in_the_feed_of_one_table_is_marked_and_does_not_stop_the_others(
    project: Project,
) -> None:
    spark = project.spark
    tables = {name: source(project, "id bigint, v string", name) for name in ("a", "b")}
    relation = f"api.Relation.create(schema='{project.schema}', identifier="
    listed = ", ".join(f"{{'main': {relation}'{name}'), 'key': 'id'}}" for name in tables)
    project.model(
        "inbox",
        f"select * from {{{{ dbt_history.core_temp_history([{listed}]) }}}}",
        materialized="history_append",
    )
    for table in tables.values():
        spark.sql(f"insert into {table} values (1, 'one'), (2, 'two')")
    project.run("inbox")

    def feed(value: str) -> None:
        properties = f"('delta.enableChangeDataFeed' = '{value}')"
        spark.sql(f"alter table {tables['a']} set tblproperties {properties}")

    feed("false")
    spark.sql(f"delete from {tables['a']} where id = 2")
    feed("true")
    spark.sql(f"update {tables['a']} set v = 'later'")
    spark.sql(f"update {tables['b']} set v = 'later' where id = 1")

    project.run("inbox")

    events = [(row["table"], row["event"]) for row in project.rows("inbox")]
    assert sorted(events) == [
        ("a", "delete"),
        ("a", "gap"),
        ("a", "insert"),
        ("a", "update"),
        ("b", "insert"),
        ("b", "update"),
    ]
    assert project.run("inbox").message("inbox") == "nothing new"
    spark.sql(f"drop table {tables['a']}")
    source(project, "id bigint, v string", "a")
    spark.sql(f"insert into {tables['a']} values (9, 'new')")
    spark.sql(f"delete from {tables['b']}")
    project.run("inbox")
    later = sorted((row["table"], row["event"]) for row in project.rows("inbox"))
    for event in set(events):
        later.remove(event)
    assert later == [("a", "gap"), ("a", "insert"), ("b", "delete")]


@pytest.mark.thorough
def test_the_report_lists_the_key_and_pairs_the_rows_of_a_statement(project: Project) -> None:
    """The statements of one transaction, all at one time:

    statement    1         2         3         4
    record       1         1         1         2
    a            - -> 5    5 -> 6    6 -> 7    9 -> -
    """
    project.spark.sql(f"create schema if not exists {project.schema}")
    values = [(1, 1, 1, 5), (3, 2, 1, 5), (4, 2, 1, 6), (3, 3, 1, 6), (4, 3, 1, 7), (2, 4, 2, 9)]
    project.spark.sql(
        f"create table {project.table('given')} using delta as select id, a, 't' as _hist_trans_id,"
        " 'ann' as _hist_user, event as _hist_event, statement as _hist_statement,"
        " timestamp'2024-05-01 12:00:00' as _hist_time"
        f" from values {', '.join(map(str, values))} as given(event, statement, id, a)"
    )
    relation = f"api.Relation.create(schema='{project.schema}', identifier='given')"
    project.model(
        "report", f"select * from {{{{ dbt_history.column_changes({relation}, key='id') }}}}"
    )

    project.run("report")

    names = ("id", "change", "column", "from", "to")
    assert sorted(tuple(str(row[name]) for name in names) for row in project.rows("report")) == [
        ("1", "Created", "a", "None", "5"),
        ("1", "Created", "id", "None", "1"),
        ("1", "Modified", "a", "5", "6"),
        ("1", "Modified", "a", "6", "7"),
        ("2", "Deleted", "a", "9", "None"),
        ("2", "Deleted", "id", "2", "None"),
    ]


@pytest.mark.thorough
def test_a_report_without_a_column_or_a_kind_of_change_has_no_rows(project: Project) -> None:
    project.spark.sql(f"create schema if not exists {project.schema}")
    for name, note in (("hidden", "_note"), ("shown", "note")):
        project.spark.sql(
            f"create table {project.table(name)} using delta as select 1 as _id, 'x' as {note},"
            " 't' as _hist_trans_id, 'ann' as _hist_user, 1 as _hist_event,"
            " timestamp'2024-05-01 12:00:00' as _hist_time"
        )
    for report, name, show in (("r1", "hidden", ""), ("r2", "shown", ", show=[]")):
        relation = f"api.Relation.create(schema='{project.schema}', identifier='{name}')"
        call = f"dbt_history.column_changes({relation}, key='_id'{show})"
        project.model(report, f"select * from {{{{ {call} }}}}", materialized="table")

    project.run("r1", "r2")

    columns = ["_hist_trans_id", "_hist_user", "_hist_time", "_id", "change", "column"]
    for report in ("r1", "r2"):
        frame = project.spark.table(project.table(report))
        assert frame.columns == [*columns, "from", "to"]
        assert dict(frame.dtypes)["from"] == dict(frame.dtypes)["to"] == "string"
        assert frame.count() == 0
