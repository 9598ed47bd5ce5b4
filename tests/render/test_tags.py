"""The names of tags; no Spark."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError

from tests.render.test_named_nodes import know, node
from tests.support.rendering import Renderer


@pytest.fixture(params=[(2024, "2024"), (date(2024, 12, 31), "2024-12-31"), ("a", "a")])
def tag(call: Renderer, request: pytest.FixtureRequest) -> Any:
    """A tag as dbt reads it from --args, which a table has already."""
    said, name = request.param
    know(call, node("model.shop.orders", "orders"))
    call.pretend_relations("orders", "history_marks")
    call.pretend_answers(
        {
            "select kind": [{"kind": "tag", "name": name, "number": 5}],
            "select unix_micros(current_timestamp())": [{"now": 7}],
            "select unix_micros": [{"number": 7}],
            "delete from `golden`.`history_marks`": [],
        }
    )
    return said


def test_a_tag_that_looks_like_a_number_or_a_day_is_found_by_its_name(
    call: Renderer, tag: Any
) -> None:
    with pytest.raises(DbtRuntimeError, match="the tag exists already"):
        call("create_tag", tag=tag, table="orders")
    call("drop_tag", tag=tag, table="orders")
    with pytest.raises(DbtRuntimeError, match="at is missing"):
        call("move_tag", tag=tag, table="orders", at=None)
