"""The model that `adopt_snapshot` writes for a snapshot; no Spark."""

from __future__ import annotations

from typing import Any

import pytest

from tests.render.test_named_nodes import know
from tests.support.rendering import Renderer

OURS = {"strategy": "dbt_history.versions", "unique_key": "id", "updated_at": "at"}
FIVETRAN = {"dbt_valid_from": "_fivetran_start", "dbt_valid_to": "_fivetran_end"}
# The snapshot of docs/snapshots.md.
BY_CONVENTION = {
    **OURS,
    "snapshot_meta_column_names": FIVETRAN,
    "dbt_valid_to_current": "timestamp'9999-12-31 23:59:59.999 UTC'",
    "meta": {"history": {"convention": "fivetran"}},
}
PERIOD = ("dbt_valid_from", "dbt_valid_to")
STORED = {"id": "bigint", "city": "string", "at": "timestamp"}


def adopted(
    call: Renderer, config: dict[str, Any], *period: str, **types: str
) -> tuple[dict[str, Any], str]:
    """The settings and the file of the model that goes on with a snapshot."""
    node = {
        "unique_id": "snapshot.shop.kept", "name": "kept", "alias": "kept", "schema": "golden",
        "resource_type": "snapshot", "config": {"hard_deletes": "invalidate", **config},
        "raw_code": "{{ config(strategy='x') }}\n\nselect * from people -- all of them",
    }  # fmt: skip
    know(call, node)
    call.context["target"] = {"schema": "golden"}
    call.pretend_answers({"select unix_micros": [{"end": 253402300799999000}]})
    names = call("_names_of_snapshot", node=node)
    stored = {**STORED, **dict.fromkeys(period or PERIOD, "timestamp"), **types}
    problems: list[str] = []
    settings = call(
        "_settings_of_snapshot", node=node, names=names, stored=stored, problems=problems
    )
    assert problems == []
    sql = call("_adopted_sql", node=node, key=["id"], settings=settings, custom=None)
    return settings, sql


@pytest.mark.parametrize(
    ("schema", "config", "expected"),
    [
        ("analytics", {}, None),
        ("Analytics", {"schema": "elsewhere"}, None),
        ("analytics_snapshots", {}, "snapshots"),
        ("analytics_snapshots", {"schema": "snapshots"}, "snapshots"),
        ("snapshots", {}, "refused"),
    ],
)
def test_the_model_is_where_the_table_of_the_snapshot_is(
    call: Renderer, schema: str, config: dict[str, Any], expected: str | None
) -> None:
    """By dbt's own generate_schema_name."""
    call.context["target"] = {"schema": "analytics"}
    problems: list[str] = []
    node = {"name": "kept", "schema": schema, "package_name": "shop", "config": config}
    custom = call("_schema_of_adopted", node=node, folder="models/history", problems=problems)

    if expected != "refused":
        assert [custom, problems] == [expected, []]
        return
    (problem,) = problems
    assert "it looks in analytics without a setting schema" in problem
    assert "and in analytics_snapshots with schema: snapshots" in problem
    assert problem.endswith(
        "{% macro generate_schema_name(custom_schema_name, node) %}"
        "{{ 'snapshots' if node.name == 'kept' else"
        " default__generate_schema_name(custom_schema_name, node) }}{% endmacro %}"
    )


def test_a_new_time_alone_makes_no_version_as_in_the_strategy(call: Renderer) -> None:
    assert adopted(call, OURS)[0] == {
        "convention": "dbt_snapshot", "updated_at": "at", "except": ["at"],
    }  # fmt: skip
    named = {**OURS, "check_cols": ["city", "at"]}
    assert adopted(call, named)[0]["track_columns"] == ["city"]
    # The strategies of dbt compare it.
    for strategy, checked in (("timestamp", None), ("check", "all")):
        found = adopted(call, {**OURS, "strategy": strategy, "check_cols": checked})[0]
        assert found == {"convention": "dbt_snapshot", "updated_at": "at"}
    named["strategy"] = "check"
    assert adopted(call, named)[0]["track_columns"] == ["city", "at"]


def test_the_convention_of_a_snapshot_is_that_of_the_model(call: Renderer) -> None:
    """A history writes the active column itself, so it is left out of the SELECT."""
    settings, sql = adopted(
        call, BY_CONVENTION, "_fivetran_start", "_fivetran_end", _fivetran_active="boolean"
    )

    assert settings == {
        "convention": "fivetran", "open_end": "9999-12-31 23:59:59.999000 UTC", "updated_at": "at",
        "except": ["at"],
    }  # fmt: skip
    assert sql.endswith(
        "\n\nselect * except (`_fivetran_active`) from (\n"
        "select * from people -- all of them\n) as selected"
    )
    read = call("_history_settings", caller_name="history", node={
        "unique_id": "model.shop.kept",
        "config": {"materialized": "history", "unique_key": "id", "meta": {"history": settings}},
    })  # fmt: skip
    assert read["convention"]["active"] == "_fivetran_active"
    assert read["convention"]["gap"] == "1 millisecond"


def test_what_dbt_has_written_overrides_the_convention_of_a_snapshot(call: Renderer) -> None:
    """dbt's names, NULL while current, and no active column in the SELECT."""
    settings, sql = adopted(call, {**OURS, "meta": {"history": "fivetran"}})

    assert settings == {
        "convention": "fivetran", "start": "dbt_valid_from", "end": "dbt_valid_to",
        "active": "none", "open_end": "none", "updated_at": "at", "except": ["at"],
    }  # fmt: skip
    assert sql.endswith("\n\nselect * from people -- all of them")
    found = call("convention", convention=settings)
    assert [found["active"], found["open_end"]] == [None, None]


@pytest.mark.parametrize("convention", ["dbt_snapshot", "fivetran"])
def test_the_statement_that_ends_versions_ends_them_by_convention(
    call: Renderer, convention: str
) -> None:
    """Else the next call would find the same versions once more."""
    call.pretend_answers({"select to_json": [{"row": "{}", "is_double": False}]})
    problems: list[str] = []
    call(
        "_contradictions", relation=call.table("kept"), key=["id"],
        settings={"convention": convention}, problems=problems,
    )  # fmt: skip

    end, expected = {
        "dbt_snapshot": ("`dbt_valid_to`", "following.`__next`"),
        "fivetran": ("`_fivetran_end`", "(following.`__next` - interval 1 millisecond)"),
    }[convention]
    (problem,) = problems
    assert f"when matched and coalesce(versions.{end} > {expected}, true)" in problem
    assert problem.endswith(
        f"then update set {end} = {expected}"
        + (", `_fivetran_active` = false" if convention == "fivetran" else "")
    )


def test_the_id_of_a_version_tells_two_times_with_one_clock_apart(call: Renderer) -> None:
    """All other versions have the id that dbt's own strategies give them."""
    capture = {"columns": [{"name": "id"}], "stored": ["dbt_scd_id"]}
    number = (
        "if(try_cast(cast(`valid_from` as string) as timestamp) <=> `valid_from`,"
        " cast(`valid_from` as string),"
        " concat(cast(`valid_from` as string), ' ', unix_micros(`valid_from`)))"
    )
    for axis, text in (
        ("timestamp", f"cast({number} as string"),
        ("date", "cast(`valid_from` as"),
    ):
        convention = {"start": "valid_from", "type": axis}
        settings = {"key": ["id"], "convention": convention, "snapshot_columns": {}}
        (filled,) = call("_columns_of_snapshot", capture=capture, settings=settings)
        assert text in filled["cell"]
        assert ("unix_micros" in filled["cell"]) is (axis == "timestamp")


@pytest.mark.parametrize("is_renamed", [False, True], ids=["names_of_dbt", "other_names"])
def test_a_restored_version_has_an_id_of_its_own(call: Renderer, is_renamed: bool) -> None:
    """A version that is there now with the same values, as another version, is not restored."""
    version, changed = ("Version", "changed") if is_renamed else ("dbt_scd_id", "dbt_updated_at")
    columns = {
        "id": "bigint", "city": "string", version: "string", changed: "timestamp",
        "dbt_valid_from": "timestamp", "dbt_valid_to": "timestamp",
    }  # fmt: skip
    said = {"dbt_scd_id": "version", "dbt_updated_at": "changed"} if is_renamed else None
    meta = {"history": {"convention": "dbt_snapshot", "snapshot_columns": said}}
    convention = call("convention", convention="dbt_snapshot")
    table = {
        "relation": call.table("kept"), "key": ["id"], "to": "2024-01-01",
        "from_now": "2024-03-03 00:00:00", "convention": convention,
        "node": {"unique_id": "model.shop.kept", "config": {"meta": meta}},
    }  # fmt: skip
    call.context = {"graph": {"nodes": {}, "sources": {}}, "execute": True}

    def sql(columns: dict[str, str]) -> str:
        call.pretend_answers({
            "describe": [{"col_name": name, "data_type": type_} for name, type_ in columns.items()]
        })  # fmt: skip
        return str(call("_rewind_sql", table=table, only=None))

    restored, ended = sql(columns).split("union all")
    assert f"as `{version}`" in restored
    assert "md5(coalesce(cast(was.`id` as st" in restored
    assert f"timestamp'2024-03-03 00:00:00 UTC' as `{changed}`" in restored
    assert "was.`city` <=> is_now.`city`" in restored
    for name in (version, changed):
        assert f"was.`{name}`" not in restored
        assert f"is_now.`{name}`" in ended

    # Without the id the time is a column like others.
    del columns[version]
    assert f"was.`{changed}` <=> is_now.`{changed}`" in sql(columns)


@pytest.mark.parametrize(
    ("key", "period"), [("id", ["dbt_valid_from", "dbt_valid_to"]), ("DBT_SCD_ID", [])]
)
def test_a_history_of_a_snapshot_has_its_columns_restored(
    call: Renderer, key: str, period: list[str]
) -> None:
    columns = {
        "id": "bigint", "dbt_scd_id": "string", "dbt_updated_at": "timestamp",
        **dict.fromkeys(period, "timestamp"), "valid_from": "timestamp", "valid_to": "timestamp",
    }  # fmt: skip
    call.context = {"graph": {"nodes": {}, "sources": {}}, "execute": True}
    call.pretend_answers({
        "describe": [{"col_name": name, "data_type": type_} for name, type_ in columns.items()]
    })  # fmt: skip
    convention = call("convention", convention="validity")
    table = {
        "relation": call.table("kept"), "key": [key], "to": "2024-01-01",
        "from_now": "2024-03-03 00:00:00", "convention": convention,
    }  # fmt: skip
    restored = str(call("_rewind_sql", table=table, only=None)).split("union all")[0]
    assert "md5" not in restored
    for name in ("dbt_scd_id", "dbt_updated_at", *period):
        assert f"was.`{name}`" in restored
