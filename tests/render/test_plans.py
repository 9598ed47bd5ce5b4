"""What is read from the plan of a statement, which shows 25 columns; no Spark."""

from __future__ import annotations

from tests.support.rendering import Renderer

LIMIT = "spark.sql.debug.maxToStringFields"


def test_a_plan_that_leaves_columns_out_is_asked_for_whole(call: Renderer) -> None:
    analysed, end = "== Analyzed Logical Plan ==\nProject [a, {}]\n", "== Optimized Logical Plan =="
    whole = call.pretend_answers({"explain": [{"plan": analysed.format("b") + end + "x"}]})
    assert call("_analysed_plan", select_sql="select 1") == analysed.format("b")
    assert len(whole) == 1

    for own in ("25", None):
        executed = call.pretend_answers(
            {
                "explain": [{"plan": analysed.format("... 5 more fields") + end}],
                "set `": [],
                "set": [{"key": LIMIT if own else "other", "value": own}],
                "reset": [],
            }
        )
        call("_analysed_plan", select_sql="select 1")
        assert executed == [
            "explain extended select 1",
            "set",
            f"set `{LIMIT}` = `1000000`",
            "explain extended select 1",
            f"set `{LIMIT}` = `25`" if own else f"reset {LIMIT}",
        ]


def test_columns_that_cannot_be_null_are_found_among_many(call: Renderer) -> None:
    columns = [{"name": f"c{number}", "source": None} for number in range(45)]
    executed = call.pretend_answers(
        {
            "explain": [
                {"plan": "== Optimized Logical Plan ==\nProject [false AS __null_3#1, isnull(a)]"}
            ]
        }
    )

    assert call("_not_null_in", table="t", columns=columns) == ["c3", "c23", "c43"]
    assert [statement.count(" is null as ") for statement in executed] == [20, 20, 5]
