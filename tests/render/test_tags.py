"""The names of tags; no Spark."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError

from tests.render.test_generic_tests import commit
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
    for name, arguments in (("drop_tag", {}), ("move_tag", {"at": 7})):
        with pytest.raises(DbtRuntimeError, match=f"(?s)no table has a tag.*expected: {tag}"):
            call(name, tag="unknown", table="orders", **arguments)


def test_a_tag_is_created_moved_and_dropped_without_a_write_in_a_dry_run(
    call: Renderer,
) -> None:
    know(call, node("model.shop.orders", "orders"))
    call.pretend_relations("orders", "history_marks")
    executed = call.pretend_answers(
        {
            "select kind": [{"kind": "tag", "name": "old", "number": 5}],
            "select unix_micros": [{"number": 7}],
        }
    )
    call("create_tag", tag="new", table="orders", dry_run=True)
    call("drop_tag", tag="old", table="orders", dry_run=True)
    call("move_tag", tag="old", table="orders", at="2024-01-01", dry_run=True)
    with pytest.raises(DbtRuntimeError, match="the tag exists already"):
        call("create_tag", tag="old", table="orders", dry_run=True)

    assert {sql.split()[0] for sql in executed} == {"select"}


def marked(call: Renderer, *tags: tuple[str, int], **more: list[dict[str, Any]]) -> list[str]:
    """A table of states that has these tags; the statements executed."""
    call.pretend_relations("states", "history_marks")
    rows = [{"kind": "tag", "name": name, "number": number} for name, number in tags]
    counted: dict[str, list[dict[str, Any]]] = {"select count(*)": [{"count": 3}]}
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


def test_of_two_calls_that_set_a_tag_at_once_the_one_that_sees_both_points_gives_its_own_up(
    call: Renderer, states: dict[str, Any]
) -> None:
    """The tag was at 5; this call has moved it to 17, another one to 18."""
    states.update({"instant": "17", "points": ["5"], "ends_of_spaces": []})
    for points, refused in (([17, 5], False), ([18, 17, 5], True)):
        executed = marked(
            call, *(("released", point) for point in points), **{"select name, kind": []}
        )
        problems: list[str] = []
        call("_look_at_tag_again", tables=[states], tag="released", problems=problems)
        said = "another call has set the tag to 18 meanwhile; run this one again if it has to be 17"
        assert problems == [f"states: {said}"] * refused
        removed = [one for one in executed if one.startswith("delete")]
        assert [one.endswith("and instant = '17'") for one in removed] == [True] * refused


def test_a_tag_of_states_that_are_being_removed_is_refused(
    call: Renderer, states: dict[str, Any]
) -> None:
    """A space was off after transaction 3; while the tag was written, another after 9 or 12."""
    for since, instant, refused in ((9, "9", False), (9, "8", True), (12, "10", True)):
        states.update({"instant": instant, "points": [], "ends_of_spaces": [3]})
        ends = [
            {"name": "a", "kind": "space_off", "since": 3},
            {"name": "b", "kind": "space_off", "since": since},
        ]
        marked(call, ("first", int(instant)), **{"select name, kind": ends})
        problems: list[str] = []
        call("_look_at_tag_again", tables=[states], tag="first", problems=problems)
        assert len(problems) == refused


def test_states_of_a_tag_that_was_made_meanwhile_are_left(
    call: Renderer, states: dict[str, Any]
) -> None:
    executed = marked(
        call, ("first", 5),
        **{"set": [], "begin": [], "describe history": [], "insert into": []},
    )  # fmt: skip
    call("_remove_recorded", table=states, spaces=[{"name": "a", "since": "7"}], caller_name="off")
    (removing,) = [one for one in executed if "delete from" in one]
    assert "and not ((`txn` <= 5L and `txn_next` > 5L))" in removing


@pytest.mark.parametrize(
    ("owner", "former", "marks", "is_moved"),
    [
        ("model.shop.Orders", None, 2, True),
        ("model.shop.orders.v1", None, 2, True),
        ("model.shop.orders", None, 0, False),
        ("model.shop.orders", "table", 2, False),
        ("model.shop.sales", None, 2, False),
        ("model.shop.other", None, 2, False),
        (None, None, 2, False),
    ],
)
def test_marks_of_a_renamed_table_are_moved_unless_another_has_its_name(
    call: Renderer, owner: str | None, former: str | None, marks: int, is_moved: bool
) -> None:
    executed, logged = taken_over(call, owner, former, {"select count(*)": [{"count": marks}]})
    name = "orders_v1" if str(owner).endswith("v1") else "orders"
    update = "update `golden`.`history_marks` set table_name = 'sales' where table_name = "
    assert (f"{update}'{name}'" in executed) is is_moved
    assert any(sql.startswith(("update", "insert")) for sql in executed) is is_moved
    stay = "does not take the tags, horizon and other marks of orders: a table has this name"
    assert any(stay in line for line in logged) is (former == "table")


@pytest.mark.parametrize("copied", [0, 1])
def test_marks_of_a_renamed_table_are_copied_once_if_a_view_has_its_name(
    call: Renderer, copied: int
) -> None:
    counts = {
        f"select count(*) from `golden`.`history_marks` where {kind}": [{"count": count}]
        for kind, count in (("kind = 'continues'", copied), ("table_name = ", 2))
    }
    executed, logged = taken_over(call, "model.shop.orders", "view", counts)
    inserted = [sql for sql in executed if sql.startswith(("insert", "update"))]
    assert [sql.split("(")[0] for sql in inserted] == (
        [] if copied else ["insert into `golden`.`history_marks` "]
    )
    assert len(logged) == len(inserted)


def taken_over(
    call: Renderer, owner: str | None, former: str | None, counts: dict[str, Any]
) -> tuple[list[str], list[str]]:
    """The statements and log lines of taking over, where `orders` is a table or a view."""
    logged: list[str] = []
    call.context = {"execute": True, "log": lambda text, info=False: logged.append(text)}
    call.pretend_relations(
        "sales",
        "history_marks",
        *(["orders"] if former == "table" else []),
        views=["orders"] if former == "view" else [],
    )
    executed = call.pretend_answers(counts | {"insert": [], "update": []})
    call(
        "_take_over_marks",
        relation=call.table("sales"),
        owner=owner,
        continues=["model.shop." + name for name in ("Orders", "orders", "orders.v1", "sales")],
    )
    return executed, logged


def control(version: int, suspended: bool) -> dict[str, Any]:
    """The commit of `suspend_history` or `resume_history`."""
    record = {"dbt_history": "1", "control": {"suspended": suspended}}
    return commit(version, "SET TBLPROPERTIES", userMetadata=json.dumps(record))


def restore(version: int, to: int) -> dict[str, Any]:
    return commit(version, "RESTORE", operationParameters=json.dumps({"version": str(to)}))


WRITES = [commit(version, "WRITE") for version in (4, 3, 2, 1, 0)]
SUSPENDED, RESUMED = ("suspension", 51, 5), ("resumption", 61, 6)


@pytest.mark.parametrize(
    ("commits", "marks", "is_suspended", "frames"),
    [
        ([control(5, True), *WRITES], [SUSPENDED], True, [[50, None]]),
        ([control(6, False), control(5, True), *WRITES], [SUSPENDED, RESUMED], False, [[50, 60]]),
        # The mark of a resumption is missing: its call was killed.
        ([control(6, False), control(5, True), *WRITES], [SUSPENDED], False, [[50, 60]]),
        # RESTORE, and resume_history after it, which finds nothing to resume.
        ([restore(6, 4), control(5, True), *WRITES], [SUSPENDED], False, []),
        ([restore(6, 4), control(5, True), *WRITES], [SUSPENDED, RESUMED], False, []),
        (
            [restore(7, 5), control(6, False), control(5, True), *WRITES],
            [SUSPENDED, RESUMED], True, [[50, None]],
        ),
        # The commits before 8 have expired.
        ([commit(9, "WRITE"), commit(8, "WRITE")], [SUSPENDED, RESUMED], False, [[51, 61]]),
        ([restore(9, 4), commit(8, "WRITE")], [SUSPENDED, RESUMED], False, []),
        ([control(9, False), commit(8, "WRITE")], [SUSPENDED], False, [[51, 90]]),
        # The table was made again, or emptied while it was suspended.
        ([commit(1, "WRITE"), commit(0, "CREATE TABLE")], [SUSPENDED], False, []),
        ([commit(6, "TRUNCATE"), control(5, True), *WRITES], [SUSPENDED], True, [[51, None]]),
        ([], [], False, []),
    ],
)  # fmt: skip
def test_a_suspension_counts_where_the_log_or_nothing_but_the_mark_knows_it(
    call: Renderer, commits: list[Any], marks: list[Any], is_suspended: bool, frames: list[Any]
) -> None:
    """A commit has the time of its version times ten; without marks the log is not read."""
    call.context = {"execute": True}
    call.pretend_relations("visits", "history_marks")
    names = ("kind", "micros", "table_version")
    times = [{"version": one["version"], "micros": one["version"] * 10} for one in commits]
    call.pretend_answers(
        {
            "select kind, unix_micros": [dict(zip(names, mark, strict=True)) for mark in marks],
            "describe history": commits,
            "select version, unix_micros": times,
            "select unix_micros": [{"micros": 100, "moment": "2024-03-03 00:00:00"}],
        }
    )
    table = {"relation": call.table("visits"), "log": {"is_suspended": is_suspended}}

    assert call("_suspended_frames", table=table) == frames


def test_a_point_of_a_suspended_log_is_refused_with_the_call_that_makes_later_ones_known(
    call: Renderer,
) -> None:
    call.context = {"execute": True}
    call.pretend_relations("visits", "history_marks")
    call.pretend_answers(
        {
            "select kind, unix_micros": [{"kind": "suspension", "micros": 51, "version": 5}],
            "describe history": [control(5, True), *WRITES],
            "select version, unix_micros": [
                {"version": 5, "micros": 50},
                {"version": 0, "micros": 0},
            ],
            "select unix_micros(current_timestamp())": [{"micros": 100, "moment": "2024"}],
            "select unix_micros": [{"micros": 70}],
            "select date_format": [{"text": "1970-01-01 00:00:00.00005"}],
        }
    )
    log = {"is_suspended": True, "watermarks": {"m": {"populated": 1}}, "kind": "hx"}
    table = {
        "relation": call.table("visits"), "log": log, "source": "m",
        "convention": call("convention", convention="validity"),
    }  # fmt: skip
    (reason,) = call("_unknown_at", table=table, instant="1970-01-01 00:00:00.00007")

    assert reason.startswith("1970-01-01 00:00:00.00007 is after 1970-01-01 00:00:00.00005")
    assert reason.endswith(", when it was suspended; points after resume_history are known again")
