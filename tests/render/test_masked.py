"""Values that Spark masks in its answers (decision 134); no Spark."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any, cast

import pytest
from dbt_common.exceptions import DbtRuntimeError
from pyspark.sql import SparkSession

from dbt_history.landing.table import CatalogTable
from tests.support.rendering import Renderer

MASKED = "*********(redacted)"
# The words of spark.redaction.regex and spark.sql.redaction.options.regex, by default.
WORDS = re.compile("(?i)url|secret|password|token|access[.]?key|credential")
METADATA = "spark.databricks.delta.commitInfo.userMetadata"
APP_ID = "spark.databricks.delta.write.txnAppId"
VERSION = "spark.databricks.delta.write.txnVersion"


def shown(properties: dict[str, str]) -> list[dict[str, str]]:
    """The properties as SHOW TBLPROPERTIES shows them."""
    return [
        {"key": key, "value": MASKED if WORDS.search(key + " " + value) else value}
        for key, value in properties.items()
    ]


def pretend_properties(call: Renderer, **properties: str) -> list[str]:
    names = {name.replace("__", "."): value for name, value in properties.items()}
    return call.pretend_answers(
        {
            "show tblproperties": shown(names),
            "describe detail": [{"properties": names}],
            "alter table": [],
        }
    )


@pytest.mark.parametrize(
    "value",
    [None, [], {"columns": ["token", "page url"], "omitted": []}, [{"key": ["Größe", "'\"\\"]}]],
)
def test_a_property_with_names_in_it_is_never_masked(call: Renderer, value: Any) -> None:
    text = call("_property_text", value=value)

    assert not WORDS.search(text)
    assert call("_property_value", text=text) == value


def test_a_property_may_have_the_form_of_earlier_releases(call: Renderer) -> None:
    for text, value in (
        ('{"columns": ["a"]}', {"columns": ["a"]}), ("null", None), (None, None), (MASKED, None),
    ):  # fmt: skip
        assert call("_property_value", text=text) == value


def test_a_masked_property_of_a_delta_table_is_read_from_its_detail(call: Renderer) -> None:
    executed = pretend_properties(call, token="a", other="b")

    assert call("_table_property", relation=call.table("t"), name="other") == "b"
    assert len(executed) == 1
    assert call("_table_property", relation=call.table("t"), name="token") == "a"
    assert call("_table_property", relation=call.table("t"), name="missing") is None


def test_a_migrated_table_keeps_properties_that_are_masked(call: Renderer) -> None:
    found = {"delta__constraints__c": "url like 'http%'", "dbt_history__key": '["token_id"]'}
    pretend_properties(call, **found)

    assert call("_kept_properties", relation=call.table("t")) == {
        "delta.enableDeletionVectors": "true",
        "delta.constraints.c": "url like 'http%'",
        "dbt_history.key": '["token_id"]',
    }


def test_the_migrations_of_a_column_whose_name_is_masked_are_forgotten(call: Renderer) -> None:
    executed = pretend_properties(
        call, dbt_history__migration__1="token", dbt_history__migration__2="other"
    )

    call("_forget_migrations", relation=call.table("t"), columns=["Token"])

    assert executed[-1].endswith("unset tblproperties ('dbt_history.migration.1')")


def test_a_constraint_that_is_masked_is_checked_before_an_erasure(call: Renderer) -> None:
    relation = call.table("t")
    executed = call.pretend_answers(
        {
            "select count(*), count_if": [{"rows": 1, "changed": 1}],
            "explain": [{"plan": "== Optimized Logical Plan =="}],
            "show tblproperties": shown({"delta.constraints.c": "url is not null"}),
            "describe detail": [
                {"properties": {"delta.constraints.c": "url is not null"}, "location": "/tables/t"}
            ],
            "select count": [{"count": 1}],
            "select get_json_object": [{"schema": '{"fields": []}'}],
            "select true": [{"a": True, "b": True}],
        }
    )
    problems: list[str] = []
    columns = [{"name": "url", "type": "string"}]
    place = {
        "name": "`golden`.`t`", "relation": relation, "columns": columns,
        "there": [{"name": "id", "type": "string"}, *columns],
    }  # fmt: skip
    call("_check_place", place=place, only={"id": "7"}, problems=problems)

    assert problems == ["`golden`.`t`: the constraint c (url is not null) would refuse 1 rows"]
    assert any("where not coalesce((url is not null), false)" in sql for sql in executed)


def test_columns_that_a_rewind_cannot_read_are_refused(call: Renderer) -> None:
    table = call.table("t").incorporate(is_iceberg=True)
    call.pretend_answers({"show tblproperties": [{"key": "dbt_history.tracked", "value": MASKED}]})
    settings = {"convention": call("convention", convention="validity"), "tracked": "recorded"}

    with pytest.raises(DbtRuntimeError, match="the tracked columns of the table cannot be read"):
        call("_with_repeats", settings=settings, target=table)


def test_masked_columns_are_recorded_again_by_a_run(call: Renderer) -> None:
    table = call.table("t").incorporate(is_iceberg=True)
    executed = call.pretend_answers(
        {
            "show tblproperties": [{"key": "dbt_history.tracked", "value": MASKED}],
            "alter table": [],
        }
    )
    tracked = {"columns": ["url"], "omitted": []}
    settings = {"convention": call("convention", convention="validity"), "tracked": tracked}

    assert call("_with_repeats", settings=settings, target=table)["has_repeats"]
    text = executed[-1].split("'")[-2]
    assert call("_property_value", text=text) == tracked


def test_masked_columns_are_recorded_again_by_a_run_without_a_batch(call: Renderer) -> None:
    table = call.table("t").incorporate(is_iceberg=True)
    tracked = {"columns": ["url"], "omitted": []}
    text = call("_property_text", value=tracked)
    for value, of_run, is_recorded in (
        (MASKED, tracked, True), (MASKED, "recorded", False), (text, tracked, False),
        (MASKED, None, False),
    ):  # fmt: skip
        executed = call.pretend_answers(
            {
                "show tblproperties": [{"key": "dbt_history.tracked", "value": value}],
                "alter table": [],
            }
        )
        call("_record_masked_columns", settings={"tracked": of_run}, relation=table)
        written = [one.split("'")[-2] for one in executed if one.startswith("alter table")]
        assert written == ([text] if is_recorded else [])


def test_records_of_an_iceberg_table_in_any_form_are_read(call: Renderer) -> None:
    table = call.table("t").incorporate(is_iceberg=True)
    record = {"batch": 1, "model": "model.shop.page_urls"}
    for text, kept in (
        (call("_property_text", value=[record]), [record]),
        ('{"batch": 1}', [{"batch": 1}]),
        (MASKED, []),
    ):
        call.pretend_answers(
            {"show tblproperties": [{"key": "dbt_history.last_batch", "value": text}]}
        )
        assert call("_kept_records", relation=table) == kept


@pytest.mark.parametrize("masked", [METADATA, APP_ID])
def test_a_masked_setting_of_a_commit_is_reset_and_never_set_again(
    call: Renderer, masked: str
) -> None:
    """The number belongs to the masked name of the writer, and goes with it."""
    values = {METADATA: "ann", APP_ID: "mine", VERSION: "7", masked: MASKED}
    executed = call.pretend_answers(
        {"set": [{"key": name, "value": value} for name, value in values.items()], "reset": []}
    )
    gone = {METADATA} if masked == METADATA else {APP_ID, VERSION}

    found = call("_session_settings", keys=[METADATA, APP_ID, VERSION])

    assert set(found) == set(values) - gone
    assert {statement.removeprefix("reset ") for statement in executed[1:]} == gone


def test_landing_and_serve_read_masked_properties() -> None:
    """Calls for a table whose key is `token_id` read its key from a property."""
    properties = {"dbt_history.key": '["token_id"]', "n": "1"}

    def sql(statement: str) -> SimpleNamespace:
        rows: list[Any] = [tuple(row.values()) for row in shown(properties)]
        if statement.startswith("describe detail"):
            rows = [{"properties": properties}]
        return SimpleNamespace(collect=lambda: rows)

    spark = cast(SparkSession, SimpleNamespace(sql=sql))

    assert CatalogTable(spark, "shop", "visits").properties() == properties
