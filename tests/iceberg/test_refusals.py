"""Features that Iceberg tables do not support are refused, and nothing is written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from dbt_history.cli import main
from tests.support.landing import small
from tests.support.project import Project
from tests.support.staging import day, stage, upsert

BRANCH = "writes='h', branches='branches', branch='draft'"
# Operations on the Iceberg table `h`, with arguments that are valid for Delta.
CALLS = {
    "add_column_in_history_mode": "'x', none, at='2024-02-01', key='id'",
    "add_column_with_default_value": "'x', 'a'",
    "copy_table_to_history_mode": "to='copy'",
    "drop_column_in_history_mode": "'w', at='2024-02-01', key='id'",
    "history_to_soft_delete": "key='id'",
    "rename_column": "'w', 'x'",
    "soft_delete_to_history": "'w'",
    "truncate_before": "'2024-02-01'",
    "update_column_value": "'w', 'a'",
    "create_branch": BRANCH,
    "merge_branch": f"{BRANCH}, app_id='app'",
    "rebase_branch": f"{BRANCH}, app_id='app'",
    "drop_branch": BRANCH,
    "number_transactions": "numbers='numbers'",
    "resync_features": "states='h', snapshot='h', app_id='app'",
}
NUMBERED = """
{% if execute %}
    {% set place = 'spark_catalog.in_delta' %}
    {% do dbt_history.number_transactions(place ~ '.log', place ~ '.numbers') %}
{% endif %}
select txid, id from spark_catalog.in_delta.numbers
"""


@pytest.fixture
def in_delta(spark: SparkSession) -> Iterator[str]:
    """A schema of Spark's own catalog, where Delta tables are, with a log of one transaction."""
    name = "spark_catalog.in_delta"
    spark.sql(f"create schema {name}")
    spark.sql(
        f"create table {name}.log using delta as select 7L as txid, 's' as schema, 't' as table"
    )
    yield name
    spark.sql(f"drop schema {name} cascade")


def commits(spark: SparkSession, schema: str) -> dict[str, int]:
    """The tables of the schema, each with the number of its commits, including metadata commits."""
    names = [row["tableName"] for row in spark.sql(f"show tables in {schema}").collect()]
    return {name: spark.table(f"{schema}.{name}.metadata_log_entries").count() for name in names}


def test_operations_that_need_delta_are_refused_unless_their_tables_are_delta(
    project: Project, spark: SparkSession, in_delta: str
) -> None:
    select = stage(project, "staged_h", [upsert(1, 1, day(1))])
    project.history("h", select, config={"file_format": "iceberg"})
    project.run("h")
    table, states = project.table("h"), project.table("states")
    spark.sql(
        f"create table {states} using iceberg as select 'a' as id, 1L as txn,"
        " cast(null as bigint) as txn_next,"
        " named_struct('action', 'CREATE', 'version', 1L, 'updatedAt', 1L) as xyz"
    )
    calls = {name: f"{name}('{table}', {arguments})" for name, arguments in CALLS.items()}
    calls["rewind"] = (
        f"rewind('{states}', 1, convention='naksha', key='id', writes='h', app_id='a')"
    )
    for name, call in calls.items():
        project.model(
            f"call_{name}", f"{{% if execute %}}{{% do dbt_history.{call} %}}{{% endif %}} select 1"
        )
    project.model("numbered", NUMBERED, materialized="table", file_format="iceberg")
    before = commits(spark, project.schema)

    done = project.run("numbered", *(f"call_{name}" for name in calls), check=False)

    for name in CALLS:
        message = done.message(f"call_{name}")
        assert f"dbt_history.{name}: Iceberg tables do not support this; nothing was" in message
        assert f"{'numbers' if name == 'number_transactions' else 'h'}, an Iceberg table" in message
    message = done.message("call_rewind")
    assert "dbt_history.rewind: this cannot be rewound; nothing was done" in message
    assert "a log of writes, which has to be a Delta table" in message
    assert [(row["txid"], row["id"]) for row in project.rows("numbered")] == [(7, 1)]
    after = commits(spark, project.schema)
    assert {name: after[name] for name in after if name != "numbered"} == before


def test_landing_and_serve_refuse_an_iceberg_catalog(spark: SparkSession, tmp_path: Path) -> None:
    request = small(tmp_path, table="items").write()
    schemas = spark.sql("show schemas").count()

    landed = CliRunner().invoke(main, ["land", str(request), "--schema", "landed_there"])
    served = CliRunner().invoke(main, ["serve", "--root", str(tmp_path), "--port", "0"])

    for done in (landed, served):
        assert done.exit_code == 1
        assert "the catalog iceberg creates Iceberg tables" in done.output
        assert "nothing was written" in done.output
    assert spark.sql("show schemas").count() == schemas
