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


def marked(call: Renderer, *tags: tuple[str, int], **more: list[dict[str, Any]]) -> list[str]:
    """A table of states that has these tags; the statements executed."""
    call.pretend_relations("states", "history_marks")
    rows = [{"kind": "tag", "name": name, "number": number} for name, number in tags]
    counted = {"select count(*)": [{"count": 3}]}
    answers = {"select kind": rows, "delete from `golden`.`history_marks`": [], **counted, **more}
    return call.pretend_answers(answers)


@pytest.fixture
def states(call: Renderer) -> dict[str, Any]:
    return {
        "name": "states", "relation": call.table("states"), "space_column": "Space",
        "convention": call("convention", convention="naksha"),
    }  # fmt: skip


def test_a_space_whose_states_in_force_have_a_tag_keeps_its_history(
    call: Renderer, states: dict[str, Any]
) -> None:
    """Without history, the next write of a feature would remove the state that the tag names."""
    executed = marked(call, ("first", 100))
    space = {"name": "it's", "about": "space it's in states", "since": "120"}
    problems: list[str] = []
    call(
        "_check_states_in_force", table=states, space=space, states="`golden`.`states`",
        problems=problems,
    )  # fmt: skip

    assert problems == [
        "the tag first of states names 3 states of space it's in states that the next writes would"
        " remove: drop_tag first"
    ]
    assert executed[-1].endswith(
        "where `txn_next` is null and `txn` <= 100L and cast(`Space` as string) = 'it\\'s'"
    )
