"""
A field that a struct of the source gets is added to the tables that keep its history, also while
changes from before it are still to be taken.
"""

import json

import pytest
from pyspark.sql import SparkSession

from tests.support.project import Project

MODELS = {
    "hx": "select * from {{{{ dbt_history.hx_rows({source}, 'id') }}}}",
    "events": "select * from {{{{ dbt_history.event_rows({source}, 'id') }}}}",
    "versions": "select * from {{{{ {source} }}}}",
}


@pytest.fixture
def main(project: Project, spark: SparkSession) -> str:
    """A source with a struct in a column, in an array and in a map, and its three histories."""
    main = project.table("main")
    spark.sql(f"create schema if not exists {project.schema}")
    spark.sql(
        f"create table {main} (id bigint, s struct<a: int, `in`: struct<x: string>>,"
        " l array<struct<a: int>>, m map<string, struct<a: int>>) using delta tblproperties"
        " ('delta.enableChangeDataFeed' = 'true', 'delta.columnMapping.mode' = 'name',"
        " 'delta.enableInCommitTimestamps' = 'true')"
    )
    spark.sql(
        f"insert into {main} values (1, named_struct('a', 1, 'in', named_struct('x', 'one')),"
        " array(named_struct('a', 1)), map('k', named_struct('a', 1))), (2, null, null, null)"
    )
    source = f"api.Relation.create(schema='{project.schema}', identifier='main')"
    for name, sql in MODELS.items():
        config = (
            {"materialized": "history", "unique_key": "id"}
            if name == "versions"
            else {"materialized": "history_append"}
        )
        project.model(name, sql.format(source=source), **config)
    project.run(*MODELS)
    return main


def texts(project: Project, name: str, order: str) -> list[str]:
    """The columns of the source in all rows as JSON, in order; JSON leaves out what is NULL."""
    rows = project.spark.sql(
        f"select to_json(struct(id, s, l, m)) as text from {project.table(name)} order by {order}"
    )
    return [row["text"] for row in rows.collect()]


def states(project: Project) -> dict[str, list[str]]:
    """The rows of each history in the order of their time: all rows that the source ever had."""
    return {
        "hx": texts(project, "hx", "main_hx_id"),
        "events": texts(project, "events", "_hist_time, id, _hist_event"),
        "versions": texts(project, "versions", "valid_from, id"),
    }


@pytest.mark.thorough
def test_a_field_that_a_struct_gets_is_kept_with_the_changes_before_it(
    project: Project, spark: SparkSession, main: str
) -> None:
    spark.sql(f"update {main} set s.a = 2 where id = 1")
    spark.sql(
        f"alter table {main} add columns (s.b int, s.`in`.`odd y` int, l.element.c int,"
        " m.value.c int)"
    )
    spark.sql(
        f"update {main} set s = named_struct('a', 3, 'in', named_struct('x', 'two', 'odd y', 5),"
        " 'b', 4), l = array(named_struct('a', 6, 'c', 7)),"
        " m = map('k', named_struct('a', 8, 'c', 9)) where id = 2"
    )

    project.run(*MODELS)

    first = '{"id":1,"s":{"a":1,"in":{"x":"one"}},"l":[{"a":1}],"m":{"k":{"a":1}}}'
    second = '{"id":1,"s":{"a":2,"in":{"x":"one"}},"l":[{"a":1}],"m":{"k":{"a":1}}}'
    third = (
        '{"id":2,"s":{"a":3,"in":{"x":"two","odd y":5},"b":4},"l":[{"a":6,"c":7}],'
        '"m":{"k":{"a":8,"c":9}}}'
    )
    found = states(project)
    assert found["hx"] == [first, '{"id":2}', second, third]
    assert found["versions"] == [first, '{"id":2}', second, third]
    assert {first, second, third, '{"id":2}'} == set(found["events"])


@pytest.mark.thorough
def test_fields_added_and_dropped_after_a_resumption_keep_the_difference(
    project: Project, spark: SparkSession, main: str
) -> None:
    project.control("suspend", *MODELS)
    spark.sql(f"update {main} set s.a = 5 where id = 1")
    project.control("resume", *MODELS)
    spark.sql(f"alter table {main} add columns (s.c int, l.element.c int)")
    spark.sql(f"alter table {main} drop column s.`in`")
    spark.sql(f"update {main} set s = named_struct('a', 6, 'c', 7) where id = 2")

    project.run(*MODELS)

    first = '{"id":1,"s":{"a":1,"in":{"x":"one"}},"l":[{"a":1}],"m":{"k":{"a":1}}}'
    second = '{"id":1,"s":{"a":5,"in":{"x":"one"}},"l":[{"a":1}],"m":{"k":{"a":1}}}'
    third = '{"id":2,"s":{"a":6,"c":7}}'
    found = states(project)
    assert found["hx"] == [first, '{"id":2}', second, third]
    assert found["versions"] == [first, '{"id":2}', second, third]

    spark.sql(f"update {main} set s.a = 8 where id = 1")
    project.run(*MODELS)
    found = states(project)
    last = '{"id":1,"s":{"a":8},"l":[{"a":1}],"m":{"k":{"a":1}}}'
    assert found["hx"][4:] == [last]
    assert found["versions"][4:] == [last]


@pytest.mark.thorough
def test_a_field_dropped_and_added_again_is_null_from_the_drop_on(
    project: Project, spark: SparkSession, main: str
) -> None:
    spark.sql(f"alter table {main} add columns (l.element.b int)")
    spark.sql(f"alter table {main} drop columns (l.element.a, s.a)")
    spark.sql(f"alter table {main} add columns (s.a int, l.element.a int)")

    project.run("versions")

    first = '{"id":1,"s":{"a":1,"in":{"x":"one"}},"l":[{"a":1}],"m":{"k":{"a":1}}}'
    second = '{"id":1,"s":{"in":{"x":"one"}},"l":[{}],"m":{"k":{"a":1}}}'
    assert states(project)["versions"] == [first, '{"id":2}', second]


@pytest.mark.thorough
def test_verification_compares_fields_by_name(
    project: Project, spark: SparkSession, main: str
) -> None:
    """
    main table     s: a, in      s: b, a           the histories keep `in`, and `b` is the last one
    """
    spark.sql(f"alter table {main} add columns (s.b int first, l.element.c int first)")
    spark.sql(f"alter table {main} drop column s.`in`")
    spark.sql(f"update {main} set s.b = 7 where id = 1")
    project.run(*MODELS)

    def verify(table: str, check: bool = True) -> str:
        source = {"source": f"{project.schema}.main"} if table == "versions" else {}
        said = json.dumps({"table": table, **source})
        return project.dbt("run-operation", "verify_history", "--args", said, check=check).log

    for name in MODELS:
        assert "no differences" in verify(name)
    # The mirror is compared with the version of the main table that it has read.
    spark.sql(f"update {main} set s.b = 8 where id = 1")
    assert "1 current versions are not in" in verify("versions", check=False)
    project.run("versions")
    assert "no differences" in verify("versions")
    spark.sql(f"alter table {project.table('hx')} unset tblproperties ('delta.appendOnly')")
    project.run("hx")
    spark.sql(f"update {project.table('hx')} set s.b = 9 where s.b = 8")
    assert "hx: 1 current versions are not in" in verify("hx", check=False)


@pytest.mark.thorough
def test_fields_are_not_added_where_the_model_forbids_it(
    project: Project, spark: SparkSession, main: str
) -> None:
    for name, sql in MODELS.items():
        config = {"materialized": "history_append", "on_schema_change": "fail"}
        if name == "versions":
            config |= {"materialized": "history", "unique_key": "id"}
        source = f"api.Relation.create(schema='{project.schema}', identifier='main')"
        project.model(name, sql.format(source=source), **config)
    before = states(project)
    spark.sql(f"alter table {main} add columns (s.b int)")
    spark.sql(f"update {main} set s.b = 2 where id = 1")

    done = project.run(*MODELS, check=False)

    for name in MODELS:
        assert "the columns of the SELECT do not fit this table" in done.message(name)
    assert states(project) == before


@pytest.mark.thorough
def test_the_name_of_a_field_may_have_a_colon(project: Project) -> None:
    fields = "'dc:title', '{}', 'xml:lang', named_struct('x:y', 1), 'm', map('k', 1)"
    for title in ("a", "a", "b"):
        sql = f"select 1L as id, named_struct({fields.format(title)}) as s"
        project.model("h", sql, materialized="history", unique_key="id")
        project.run("h")
    rows = project.spark.sql(
        "select s.`dc:title` as title, valid_to is null as is_open"
        f" from {project.table('h')} order by valid_from"
    ).collect()
    assert [tuple(row) for row in rows] == [("a", False), ("b", True)]
