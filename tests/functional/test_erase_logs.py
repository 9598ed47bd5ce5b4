"""The erasure of a subject where only logs exist: mirrors, event tables, other logs."""

from __future__ import annotations

import json

import pytest
import yaml  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from tests.support.project import Project, Run

FEED = "tblproperties ('delta.enableChangeDataFeed' = 'true')"
LOGS = ["people_hx", "people_history", "people_log", "visits_hx"]


def write_models(project: Project) -> None:
    """A mirror, an event table and a log of one source, and a mirror of another one."""

    def main(name: str) -> str:
        return f"api.Relation.create(schema='{project.schema}', identifier='{name}')"

    reference = "{'column': 'boss', 'history': this, 'name': 'led_by'}"
    for name, rows in (
        ("people_hx", f"hx_rows({main('people')}, 'id', references=[{reference}])"),
        ("people_history", f"event_rows({main('people')}, 'id')"),
        ("people_log", f"changes({main('people')}, 'id')"),
        ("visits_hx", f"hx_rows({main('visits')}, 'id')"),
    ):
        project.model(
            name, f"select * from {{{{ dbt_history.{rows} }}}}", materialized="history_append"
        )
    tests = [
        {"name": name, "data_tests": [{"dbt_history.is_append_only": {"name": f"{name}_kept"}}]}
        for name in LOGS
    ]
    project.write("models/tests.yml", yaml.safe_dump({"version": 2, "models": tests}))


def outcomes(project: Project) -> dict[str, str]:
    results = project.dbt("test", "--select", *LOGS, check=False).results
    return {name: str(result.status) for name, result in results.items()}


@pytest.fixture
def recorded(project: Project, spark: SparkSession) -> Project:
    """Two people and a visit, all with a change."""
    people, visits = project.table("people"), project.table("visits")
    spark.sql(f"create schema if not exists {project.schema}")
    spark.sql(f"create table {people} (id bigint, boss bigint, name string) using delta {FEED}")
    spark.sql(f"create table {visits} (id bigint, place string) using delta {FEED}")
    spark.sql(f"insert into {people} values (1, null, 'Ada'), (2, 1, 'Ben')")
    spark.sql(f"insert into {visits} values (1, 'Rome')")
    write_models(project)
    project.run(*LOGS)
    spark.sql(f"update {people} set name = concat(name, '!')")
    project.run(*LOGS)
    spark.sql(f"update {people} set name = null, boss = null where id = 1")
    return project


@pytest.mark.thorough
def test_a_subject_is_erased_in_all_logs_of_its_source(
    recorded: Project, spark: SparkSession
) -> None:
    arguments = {"table": "people_hx", "only": {"id": 1}, "mirrors": "all", "reason": "request"}
    erasing = ["run-operation", "erase_subject", "--args", json.dumps(arguments)]
    # The next run would append the name that the source had.
    refused = recorded.dbt(*erasing, check=False).log
    assert "`people_history`: it has not read 1 changes of this key in " in refused
    assert ("Ada!", 1) in {(row["name"], row["id"]) for row in recorded.rows("people_hx")}
    recorded.run(*LOGS)
    before = {name: len(recorded.rows(name)) for name in LOGS}

    run = recorded.dbt(*erasing)
    recorded.run(*LOGS)

    for name, count in {"people_hx": 3, "people_history": 5, "people_log": 5}.items():
        assert f"`{name}`: {count} versions erased" in run.log
        names = {(row["id"], row["name"]) for row in recorded.rows(name)}
        assert names == {(1, None), (2, "Ben"), (2, "Ben!")}
    assert {name: len(recorded.rows(name)) for name in LOGS} == before
    assert [row["place"] for row in recorded.rows("visits_hx")] == ["Rome"]
    mirror = sorted(recorded.rows("people_hx"), key=lambda row: row["people_hx_id"])
    assert [(row["id"], row["boss"], row["led_by"]) for row in mirror] == [
        (1, None, None),
        (2, 1, 1),
        (1, None, None),
        (2, 1, 3),
        (1, None, None),
    ]
    assert all(row["mod_time"] and row["deleted"] is False for row in mirror)
    assert [row["kind"] for row in recorded.rows("history_marks")] == ["erasure"]

    assert set(outcomes(recorded).values()) == {"pass"}
    log = recorded.table("people_history")
    spark.sql(f"alter table {log} set tblproperties ('delta.appendOnly' = 'false')")
    spark.sql(f"update {log} set name = 'forged' where id = 2")
    spark.sql(f"alter table {log} set tblproperties ('delta.appendOnly' = 'true')")
    failed = [name for name, status in outcomes(recorded).items() if status != "pass"]
    assert failed == ["people_history_kept"]


@pytest.mark.thorough
def test_the_link_of_a_reference_that_was_erased_is_right(
    recorded: Project, spark: SparkSession
) -> None:
    """A filtered test, too; a link to a row that does not exist fails as before."""
    reference = {"column": "boss", "history": "ref('people_hx')", "name": "led_by"}
    tests = [
        {"dbt_history.history_references_exist": {
            "name": name, "arguments": {"references": [reference]}, "config": {"where": where},
        }}
        for name, where in (("all", ""), ("of_1", "id = 1"), ("of_2", "id = 2"))
    ]  # fmt: skip
    models = [{"name": "people_hx", "data_tests": tests}]
    recorded.write("models/tests.yml", yaml.safe_dump({"version": 2, "models": models}))
    recorded.run(*LOGS)
    assert outcomes(recorded) == {"all": "pass", "of_1": "pass", "of_2": "pass"}

    arguments = {"table": "people_hx", "only": {"id": 2}, "reason": "request"}
    recorded.dbt("run-operation", "erase_subject", "--args", json.dumps(arguments))

    found = {(row["boss"], row["led_by"]) for row in recorded.rows("people_hx") if row["id"] == 2}
    assert found == {(None, 1), (None, 3)}
    assert outcomes(recorded) == {"all": "pass", "of_1": "pass", "of_2": "pass"}
    log = recorded.table("people_hx")
    spark.sql(f"alter table {log} set tblproperties ('delta.appendOnly' = 'false')")
    spark.sql(f"update {log} set led_by = 99 where led_by = 3")
    assert outcomes(recorded) == {"all": "fail", "of_1": "pass", "of_2": "fail"}


@pytest.mark.thorough
def test_what_makes_a_row_of_a_log_is_not_erased(recorded: Project) -> None:
    columns = ["people_hx_id", "led_by", "mod_time", "deleted", "name"]
    arguments = {"table": "people_hx", "only": {"id": 1}, "columns": columns}

    run = recorded.dbt(
        "run-operation", "erase_subject", "--args", json.dumps(arguments), check=False
    )

    for column in columns[:-1]:
        assert f"{column} belongs to the log itself" in run.log
    assert "name belongs" not in run.log
    assert {row["name"] for row in recorded.rows("people_hx")} == {"Ada", "Ada!", "Ben", "Ben!"}


@pytest.mark.thorough
def test_a_renamed_column_is_erased_under_all_its_names(
    project: Project, spark: SparkSession
) -> None:
    """
    people   7 a, 8 b |   8 gone   mail renamed to email   7 c |   column mail added, 9 d m |
    logs             run                                      run                          run
    """
    people = project.table("people")
    spark.sql(f"create schema if not exists {project.schema}")
    mapped = FEED[:-1] + ", 'delta.columnMapping.mode' = 'name')"
    spark.sql(f"create table {people} (id bigint, mail string) using delta {mapped}")
    spark.sql(f"insert into {people} values (7, 'a'), (8, 'b')")
    relation = f"api.Relation.create(schema='{project.schema}', identifier='people')"
    logs = {"people_hx": "hx_rows", "people_history": "event_rows", "people_log": "changes"}
    for name, macro in logs.items():
        call = f"select * from {{{{ dbt_history.{macro}({relation}, 'id') }}}}"
        project.model(name, call, materialized="history_append")
    project.run(*logs)

    def erase(id_: int, *columns: str) -> Run:
        arguments = {
            "table": "people_hx", "only": {"id": id_}, "mirrors": "all",
            "columns": list(columns) or None,
        }  # fmt: skip
        return project.dbt(
            "run-operation", "erase_subject", "--args", json.dumps(arguments), check=False
        )

    def left(id_: int) -> set[tuple[str | None, ...]]:
        rows = [row for name in logs for row in project.rows(name) if row["id"] == id_]
        return {(row["mail"], row["email"]) for row in rows}

    spark.sql(f"delete from {people} where id = 8")
    spark.sql(f"alter table {people} rename column mail to email")
    # The feed cannot be read across the change; each log would append the deleted row.
    refused = erase(8).log
    for name in logs:
        assert f"`{name}`: it has not read the versions 2 to 3 of " in refused
    spark.sql(f"update {people} set email = 'c' where id = 7")
    project.run(*logs)
    assert left(7) == {("a", None), (None, "a"), (None, "c")}

    assert erase(7, "email").success
    assert left(7) == {(None, None)}
    assert left(8) == {("b", None)}

    spark.sql(f"alter table {people} add columns (mail string)")
    spark.sql(f"insert into {people} values (9, 'd', 'm')")
    project.run(*logs)
    refused = erase(8, "email").log
    for name in logs:
        assert f"{name}: email was called mail, which is the name of another column, too" in refused
    assert left(8) == {("b", None)}
    assert erase(8, "email", "mail").success
    assert left(8) == {(None, None)}


def expire(project: Project, name: str) -> None:
    """Add a checkpoint, and remove all commits before it."""
    table = project.table(name)
    spark = project.spark
    spark.sql(f"alter table {table} set tblproperties ('delta.checkpointInterval' = '1')")
    spark.sql(f"alter table {table} set tblproperties ('touched' = 'true')")
    project.expire_log(name, int(project.log_of(name)[0]["version"]))


@pytest.mark.thorough
def test_selects_of_other_tables_are_no_mirrors_of_a_subject(
    project: Project, spark: SparkSession
) -> None:
    """Compared SELECTs record no table: their source is that of dbt's lineage."""
    spark.sql(f"create schema if not exists {project.schema}")
    for name, value in (("people", "Ada"), ("products", "Pen")):
        spark.sql(
            f"create table {project.table(name)} (id bigint, name string, boss bigint)"
            f" using delta {FEED}"
        )
        spark.sql(
            f"insert into {project.table(name)} values (7, '{value}', null), (8, '{value}', 7)"
        )
        project.model(
            f"{name}_h",
            f"select id, name from {{{{ ref('stg_{name}') }}}}",
            materialized="history",
            unique_key="id",
        )
        source = f"{{{{ source('shop', '{name}') }}}}"
        project.model(f"stg_{name}", f"select * from {source}", materialized="view")
    sources = {
        "name": "shop",
        "schema": project.schema,
        "tables": [{"name": "people"}, {"name": "products"}],
    }
    project.write("models/shop.yml", yaml.safe_dump({"version": 2, "sources": [sources]}))
    link = "{'column': 'boss', 'history': this, 'key': 'id', 'name': 'led_by'}"
    project.model(
        "people_hx",
        f"select * from {{{{ dbt_history.hx_rows(source('shop', 'people'), 'id',"
        f" references=[{link}]) }}}}",
        materialized="history_append",
    )
    project.run("stg_people", "stg_products", "people_h", "products_h", "people_hx")

    def erase(**arguments: object) -> Run:
        operation = {"mirrors": "all", **arguments}
        return project.dbt(
            "run-operation", "erase_subject", "--args", json.dumps(operation), check=False
        )

    def names(table: str) -> dict[int, str]:
        return {row["id"]: row["name"] for row in project.rows(table)}

    assert erase(table="people_h", only={"id": 7}).success
    assert names("products_h") == {7: "Pen", 8: "Pen"}
    assert names("people_h") == names("people_hx") == {7: None, 8: "Ada"}
    expire(project, "people_h")
    expire(project, "people_hx")
    refused = erase(table="people_h", only={"id": 8})
    assert "the commits that name its links have expired: name the columns" in refused.log
    assert names("people_h") == names("people_hx") == {7: None, 8: "Ada"}
    assert erase(table="people_hx", only={"id": 8}, columns="name", key="id").success
    assert names("people_h") == names("people_hx") == {7: None, 8: None}
    assert [row["led_by"] for row in project.rows("people_hx") if row["boss"] == 7] == [1]

    project.model(
        "both_h",
        "select people.id, products.name from {{ ref('stg_people') }} as people"
        " join {{ ref('stg_products') }} as products using (id)",
        materialized="history",
        unique_key="id",
    )
    project.run("both_h")
    refused = erase(table="products_h", only={"id": 7})
    assert "mirrors: all is not certain which table is the source of both_h" in refused.log
    assert erase(table="products_h", only={"id": 7}, mirrors=["all", "both_h"]).success
    assert names("products_h") == names("both_h") == {7: None, 8: "Pen"}


WRITES = """
    (1, 0, 'CREATE', 'map', 'f', 'Ada', 'app', timestamp'2024-01-01 00:00:00 UTC'),
    (1, 1, 'CREATE', 'map', 'g', 'Ben', 'app', timestamp'2024-01-01 00:00:00 UTC'),
    (2, 0, 'UPDATE', 'map', 'f', 'Ada Lovelace', 'app', timestamp'2024-01-02 00:00:00 UTC')
"""


@pytest.mark.thorough
@pytest.mark.parametrize("table", ["states", "log"])
def test_a_feature_is_erased_in_its_states_and_in_the_log_of_writes(
    project: Project, spark: SparkSession, table: str
) -> None:
    """The next write of the feature continues its states."""
    edits = project.table("edits")
    spark.sql(f"create schema if not exists {project.schema}")
    spark.sql(
        f"create table {edits} (txn bigint, position bigint, action string, space string,"
        " id string, `Full-Name` string, app_id string, at timestamp) using delta"
    )
    spark.sql(f"insert into {edits} values {WRITES}")
    sources = [{"name": "maps", "schema": project.schema, "tables": [{"name": "edits"}]}]
    project.write("models/maps.yml", yaml.safe_dump({"version": 2, "sources": sources}))
    project.model("stg_edits", "select * from {{ source('maps', 'edits') }}", materialized="view")
    project.history(
        "states",
        "{{ dbt_history.feature_states(ref('stg_edits'), id=['space', 'id'],"
        " payload=['Full-Name']) }}",
        key=["space", "id"],
        convention="naksha",
        max_deleted_share=None,
    )
    project.run("stg_edits", "states")
    spark.sql(f"alter table {edits} set tblproperties ('delta.appendOnly' = 'true')")
    arguments = {
        "table": edits if table == "log" else "states",
        "only": {"space": "map", "id": "f"},
        "mirrors": "all",
        **({"key": ["space", "id"]} if table == "log" else {}),
    }

    alone = json.dumps({**arguments, "mirrors": [], "dry_run": True})
    left = project.dbt("run-operation", "erase_subject", "--args", alone)
    said = f"{project.schema}.edits, which states is made from, is not erased"
    assert (said in left.log) == (table == "states")
    run = project.dbt("run-operation", "erase_subject", "--args", json.dumps(arguments))
    assert "is not erased" not in run.log
    spark.sql(
        f"insert into {edits} values"
        " (3, 0, 'UPDATE', 'map', 'f', 'new', 'app', timestamp'2024-01-03 00:00:00 UTC')"
    )
    project.run("states")

    assert run.log.count("2 versions erased, columns Full-Name") == 2
    writes = sorted(project.rows("edits"), key=lambda row: (row["txn"], row["position"]))
    assert [(row["txn"], row["action"], row["id"], row["Full-Name"]) for row in writes] == [
        (1, "CREATE", "f", None),
        (1, "CREATE", "g", "Ben"),
        (2, "UPDATE", "f", None),
        (3, "UPDATE", "f", "new"),
    ]
    states = sorted(project.rows("states"), key=lambda row: int(row["i"]))
    found = [(row["id"], row["@ns:com:here:xyz"].version, row["Full-Name"]) for row in states]
    assert found == [("f", 1, None), ("g", 1, "Ben"), ("f", 2, None), ("f", 3, "new")]


@pytest.mark.thorough
def test_a_log_of_writes_outside_the_lineage_must_be_named(
    project: Project, spark: SparkSession
) -> None:
    """A write without a branch is one on main."""
    edits, key = project.table("edits"), ["branch", "space", "id"]
    spark.sql(f"create schema if not exists {project.schema}")
    spark.sql(
        f"create table {edits} using delta as"
        f" select *, if(txn = 1, null, 'main') as branch from values {WRITES}"
        " as log(txn, position, action, space, id, v, app_id, at)"
    )
    project.history(
        "states",
        f"{{{{ dbt_history.feature_states('{edits}', id={key},"
        f" branches='{project.schema}.branches') }}}}",
        key=key,
        convention="naksha",
        max_deleted_share=None,
    )
    project.run("states")

    def erase(mirrors: object) -> Run:
        only = {"branch": "main", "space": "map", "id": "f"}
        arguments = {"table": "states", "only": only, "mirrors": mirrors}
        operation = ("run-operation", "erase_subject", "--args", json.dumps(arguments))
        return project.dbt(*operation, check=False)

    refused = erase("all")

    assert "mirrors: all finds no log of writes of states in the lineage" in refused.log
    assert {row["v"] for row in project.rows("states")} == {"Ada", "Ben", "Ada Lovelace"}

    assert erase(["all", edits]).success
    for name in ("states", "edits"):
        assert {row["v"] for row in project.rows(name)} == {None, "Ben"}
