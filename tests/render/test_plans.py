"""What is read from the plan of a statement, which shows 25 columns; no Spark."""

from __future__ import annotations

import pytest
from dbt_common.exceptions import DbtRuntimeError

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


def tree(*operators: str, under: str = "") -> str:
    """Lines of a plan, each operator below the one that reads it; `under`: their indent."""
    lines = [f"{under}{'   ' * depth}+- {text}\n" for depth, text in enumerate(operators)]
    return "".join(lines)


DAYS = ("Filter (day#2 >= 2024-01-01)", "SubqueryAlias days", "Relation s.days[id#1L] parquet")
VIEW = ("View (`s`.`v`, [n#3L])", "Aggregate [count(1)]", "Relation s.t[id#4L] parquet")
REFERENCE = ("SubqueryAlias days", "CTERelationRef 0, true, [id#1L], false, false")
WITH = tree("WithCTE") + "   :- CTERelationDef 0, false\n" + tree(*DAYS, under="   :  ")
INNER, OUTER = "      :  ", "      "


@pytest.mark.parametrize(
    ("plan", "found"),
    [
        (tree(*DAYS), []),
        (tree(*VIEW), []),
        (tree("OneRowRelation"), []),
        (tree("Sort [id#1L ASC], true", "Generate explode(xs#1)", *DAYS), []),
        (WITH + tree("Project [id#1L]", *REFERENCE, under="   "), []),
        (tree("Aggregate [1 AS id#1, count(1) AS n#2]", *DAYS), ["Aggregate"]),
        (tree("Window [row_number()]", *DAYS), ["Window"]),
        (tree("Distinct", *DAYS), ["Distinct"]),
        (tree("GlobalLimit 3", "LocalLimit 3", *DAYS), ["GlobalLimit", "LocalLimit"]),
        (
            tree("Join LeftOuter")
            + "   :- View (`s`.`v`)\n"
            + tree(*VIEW[1:], under="   :  ")
            + tree(*DAYS, under="   "),
            ["Join"],
        ),
        (
            tree("Project [id#1L]", "Filter id#1L IN (list#2 [])")
            + tree(*VIEW, under=INNER)
            + tree(*DAYS, under=OUTER),
            ["several tables"],
        ),
        (
            WITH
            + tree("Filter id#1L IN (list#2 [])", under="   ")
            + tree(*REFERENCE, under=INNER)
            + tree(*REFERENCE, under=OUTER),
            ["a WITH that is read several times"],
        ),
    ],
)
def test_a_row_is_made_of_several_where_the_plan_has_more_than_a_chain_of_row_by_row_operators(
    call: Renderer, plan: str, found: list[str]
) -> None:
    parsed = "== Parsed Logical Plan ==\n'Project [*]\n+- 'Aggregate\n"
    text = f"{parsed}== Analyzed Logical Plan ==\nid: bigint\nProject [id#1L]\n{plan}\n"
    assert call("_what_mixes_rows", plan=text) == found


def test_a_sample_of_rows_that_are_made_of_several_is_refused(call: Renderer) -> None:
    plan = "Project [id#1L]\n" + tree("Distinct", *DAYS)
    executed = call.pretend_answers({"explain": [{"plan": plan}]})
    node = {"name": "h", "unique_id": "model.shop.h", "depends_on": {"nodes": ["model.shop.days"]}}
    call.context = {"model": node}
    with pytest.raises(DbtRuntimeError) as refused:
        call("_refuse_untrue_sample", select_sql="select distinct id from days")
    message = str(refused.value)
    assert "dbt_history.history: --sample hides rows, and rows that are made without" in message
    assert "got: a SELECT with Distinct" in message
    assert "way out: run dbt without --sample, or with --exclude h" in message
    assert executed == [
        "explain extended select * from (\nselect distinct id from days\n) as selected where false"
    ]

    # dbt hides rows of ref and source alone.
    call.context = {"model": {**node, "depends_on": {"nodes": []}}}
    call("_refuse_untrue_sample", select_sql="select distinct id from s.days")
    assert len(executed) == 1
