"""What an erasure finds and records; no Spark."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

from tests.render.test_named_nodes import know, node
from tests.support.rendering import Renderer


def test_a_subject_whose_key_is_a_day_or_a_time_is_recorded(call: Renderer) -> None:
    """dbt reads an unquoted 2024-03-01 of --args as a date, which JSON does not have."""
    days = [date(2024, 3, 1), date(2024, 3, 2), datetime(2024, 3, 1, 12), "2024-03-01", 7, "7"]
    found = [call("_subject_hash", only={"day": day}, salt="run") for day in days]

    assert found[0] == found[3]
    assert len(set(found)) == 5


def test_a_copy_of_a_batch_that_has_the_record_is_named(call: Renderer) -> None:
    """The copy is named after the model, whose table has another name here; 9 digits are no id."""
    know(call, node("model.shop.customers", "dim_customers"))
    copies = [
        "customers__batches_0123abcd", "customers__batches_0123abcd9", "orders__batches_0123abcd",
    ]  # fmt: skip
    executed = call.pretend_answers(
        {
            "show tables in `golden`": [{"tableName": name} for name in copies],
            "describe": [{"name": "id", "type": "bigint", "comment": None}],
            "select count": [{"count": 2}],
        }
    )
    problems: list[str] = []
    place: dict[str, Any] = {"relation": call.table("dim_customers")}
    main = {"key": ["ID"]}
    call("_check_copies", main=main, places=[place], only={"ID": 7}, problems=problems)

    assert problems == [
        "`golden`.`customers__batches_0123abcd` has 2 rows of this key; it is the copy of a batch:"
        " wait for the run that made it, or drop it if that run was killed"
    ]
    assert sum(statement.startswith("select count") for statement in executed) == 1
