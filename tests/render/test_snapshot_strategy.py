"""The columns that the snapshot strategy compares, and those of a period; no Spark."""

from __future__ import annotations

from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError

from tests.support.rendering import Renderer

SELECT = "select * from people -- those of today"
NODE: dict[str, Any] = {
    "unique_id": "snapshot.shop.people",
    "name": "people",
    "compiled_code": SELECT,
    "config": {},
}


def select_columns(call: Renderer, **config: Any) -> list[str]:
    """The SELECT has `id, name, City, seen_at`; the statements executed."""
    call.context = {"execute": True, "config": {"unique_key": "id", **config}}
    columns = {"id": "bigint", "name": "string", "City": "string", "seen_at": "timestamp"}
    rows = [
        {"col_name": name, "data_type": type_, "comment": None} for name, type_ in columns.items()
    ]
    return call.pretend_answers({"describe query": rows})


def checked(call: Renderer, check_cols: Any, updated_at: str | None = None) -> list[str]:
    statements = select_columns(call, check_cols=check_cols)
    found = call("_checked_columns", node=NODE, keys=["id"], updated_at=updated_at)
    assert statements == [f"describe query select * from (\n{SELECT}\n)"]
    return list(found)


def test_check_cols_is_a_name_a_list_or_all(call: Renderer) -> None:
    assert checked(call, "city") == ["City"]
    assert checked(call, ["name", "CITY"]) == ["name", "City"]
    assert checked(call, "all", "seen_at") == checked(call, None, "seen_at") == ["name", "City"]
    assert checked(call, ["seen_at"], "seen_at") == ["seen_at"]


@pytest.mark.parametrize(
    ("check_cols", "missing"), [("town", "town"), (["name", "town", "zip"], "town, zip")]
)
def test_check_cols_that_the_select_does_not_have_are_refused_in_the_first_run(
    call: Renderer, check_cols: Any, missing: str
) -> None:
    select_columns(call, check_cols=check_cols)
    with pytest.raises(DbtRuntimeError) as refused:
        call(
            "snapshot_versions_strategy", node=NODE, snapshotted_rel="stored", current_rel="new",
            model_config={}, target_exists=False,
        )  # fmt: skip
    message = str(refused.value)
    assert "the SELECT has no column that check_cols names" in message
    assert f"got: {missing}\n" in message
    assert "all, or columns of the SELECT: id, name, City, seen_at" in message


def test_the_id_of_a_version_tells_two_times_with_one_clock_apart(call: Renderer) -> None:
    sql = call("_id_of_version", keys=["id", "part no"], starts_at="seen_at")
    cells = ["`id`", "`part no`", "seen_at", "unix_micros(try_cast(seen_at as timestamp))"]
    assert sql == call("spark__snapshot_hash_arguments", args=cells)


@pytest.mark.parametrize(
    ("start", "end", "problems"),
    [
        ("timestamp", "timestamp", []),
        ("date", "date", []),
        ("timestamp_ntz", "timestamp_ntz", ["dbt_valid_from", "ends"]),
        ("timestamp", "string", ["ends"]),
    ],
)
def test_a_snapshot_is_adopted_if_its_period_has_types_of_a_history(
    call: Renderer, start: str, end: str, problems: list[str]
) -> None:
    call.context = {"execute": True}
    names = dict.fromkeys(["dbt_scd_id", "dbt_updated_at", "dbt_is_deleted"], "other")
    names |= {"dbt_valid_from": "dbt_valid_from", "dbt_valid_to": "ends"}
    found: list[str] = []
    call(
        "_settings_of_snapshot", node=NODE | {"config": {"strategy": "check"}}, names=names,
        stored={"dbt_valid_from": start, "ends": end}, problems=found,
    )  # fmt: skip
    assert [problem.split(" is ")[0] for problem in found] == problems
    assert all("a history has a timestamp or a date there" in problem for problem in found)
