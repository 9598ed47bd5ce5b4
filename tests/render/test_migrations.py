"""What the migrations refuse before they write; no Spark."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError

from tests.render.test_named_nodes import know
from tests.support.rendering import Renderer


@pytest.mark.parametrize("lock", ["closed", "open", None])
@pytest.mark.parametrize(
    ("operation", "way_out", "arguments"),
    [
        ("add_column_with_default_value", "add the column to", {"column": "w", "default": "x"}),
        ("update_column_value", "change", {"column": "v", "value": "x"}),
        ("truncate_before", "truncate", {"at": "2024-01-01", "synced_column": "at"}),
    ],
)
def test_a_log_is_refused_with_what_changes_it_instead(
    call: Renderer, operation: str, way_out: str, arguments: dict[str, Any], lock: str | None
) -> None:
    """`open`: a killed erasure has left the lock off. Any other table is migrated."""
    know(call, target=SimpleNamespace(schema="golden"))
    call.pretend_relations("l")
    columns = {"id": "bigint", "v": "string", "at": "timestamp"}
    locks = {"closed": {"delta.appendOnly": "true"}, "open": {"dbt_history.is_open": "true"}}
    properties = {"delta.minReaderVersion": "1", **locks.get(lock or "", {})}
    shown = [{"key": key, "value": value} for key, value in properties.items()]
    described = [{"name": name, "type": kind, "comment": ""} for name, kind in columns.items()]
    executed = call.pretend_answers(
        {
            "describe": described,
            "show tblproperties": shown,
            "select count(*)": [{"rows": 0}],
            "select": [{"is_null": False}],
        }
    )
    arguments = {"table": "l", "dry_run": True, **arguments}
    if lock is None:
        call(operation, **arguments)
    else:
        with pytest.raises(DbtRuntimeError) as refused:
            call(operation, **arguments)
        message = str(refused.value)
        reason = f"the table is a log, whose rows never change: {way_out} the table whose changes"
        assert f"dbt_history.{operation}: the migration is not possible; nothing was" in message
        assert reason in message
        names = operation != "add_column_with_default_value"
        assert ("erase_subject makes values of one key NULL" in message) is names
    assert not [sql for sql in executed if sql.startswith(("alter", "update", "delete"))]
