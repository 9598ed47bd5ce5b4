"""What becomes a history table, and how `copy_table_to_history_mode` makes it; no Spark."""

from __future__ import annotations

from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError

from tests.support.rendering import Renderer


def statements(call: Renderer, failed: str | None) -> list[str]:
    """The scripts that are executed where each of them fails in this way."""
    executed = call.pretend_answers(
        {
            "describe detail": [{"partitionColumns": "[]"}],
            "show tblproperties": [],
            "set": [{"key": "", "value": ""}],
            "select java_method": [],
            "describe schema": [{"info_name": "Location", "info_value": "file:/w/golden.db"}],
            "begin": [{"failed": failed}] if failed else [],
        }
    )
    arguments: dict[str, Any] = {
        "wanted": call.table("copy"), "migrated": {"relation": call.table("items")},
        "history": {"sql": "select 1 as id", "columns": ["id"]}, "operation": {"operation": "copy"},
        "caller_name": "copy_table_to_history_mode",
    }  # fmt: skip
    if failed:
        with pytest.raises(DbtRuntimeError, match="no row was written"):
            call("_make_copy", **arguments)
    else:
        call("_make_copy", **arguments)
    return [one for one in executed if one.startswith("begin")]


def test_a_copy_is_one_statement(call: Renderer) -> None:
    (made,) = statements(call, None)
    assert "create table `golden`.`copy`" in made
    assert " location " not in made


def test_files_that_a_killed_copy_has_left_are_registered_or_the_copy_is_made_beside_them(
    call: Renderer,
) -> None:
    first, *registered, beside = statements(call, "exists")
    assert " location " not in first
    assert len(registered) == 5
    assert all("create table if not exists `golden`.`copy`" in one for one in registered)
    assert all("location 'file:/w/golden.db/copy'" in one for one in registered)
    assert "location 'file:/w/golden.db/copy__" in beside


def test_the_column_of_deletions_may_be_named_or_be_none(call: Renderer) -> None:
    call.pretend_answers({"select count": [{"count": 1}]})

    def problems(deleted: str | None, **types: str) -> list[str]:
        migrated = {"relation": call.table("items"), "types": types}
        return list(call("_soft_delete_problems", migrated=migrated, deleted=deleted))

    (message,) = problems("_fivetran_deleted", id="bigint", _fivetran_synced="timestamp")
    assert "no boolean column _fivetran_deleted" in message
    assert "set deleted_column: null if all rows are active" in message
    assert problems(None, id="bigint", _fivetran_synced="timestamp") == []
    (message,) = problems(None, id="bigint")
    assert "a model with materialized='history' keeps the history of any table" in message
