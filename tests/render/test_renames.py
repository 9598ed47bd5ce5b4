"""The names that columns of a source have in its versions; no Spark."""

from __future__ import annotations

import json
from typing import Any

from tests.support.rendering import Renderer


def test_a_restore_undoes_all_renames_since_its_version(call: Renderer) -> None:
    """Two columns change names; the run before this one took the versions up to 6.

    version         4    5    6    7    8 (restored to 4)
    columns now v   v    v    x    x    v
    columns now x   x    t    t    v    x
    """

    def commit(number: int, operation: str, **parameters: Any) -> dict[str, Any]:
        return {
            "version": number, "timestamp": "2024-01-01 00:00:00", "operation": operation,
            "operationParameters": parameters, "operationMetrics": {}, "userMetadata": None,
            "userName": None,
        }  # fmt: skip

    def rename(number: int, old: str, new: str) -> dict[str, Any]:
        return commit(number, "RENAME COLUMN", oldColumnPath=old, newColumnPath=new)

    log = [
        commit(8, "RESTORE", version="4"), rename(7, "t", "v"), rename(6, "v", "x"),
        rename(5, "x", "t"), rename(3, "w", "v"),
    ]  # fmt: skip
    call.pretend_answers({"describe history `golden`.`items`": log})
    relation = call.table("items")
    capture: dict[str, Any] = {
        "relation": relation, "entries": [], "fixed": ["v"],
        "taken": {"watermark": {"version": 6, "table_id": "a"}},
        "head": {
            "version": 8, "table_id": "a",
            "entries": [
                {"version": 8, "operation": "RESTORE", "parameters": {"version": "4"}},
                {"version": 7, "operation": "RENAME COLUMN",
                 "parameters": {"oldColumnPath": "t", "newColumnPath": "v"}},
            ],
        },
    }  # fmt: skip
    capture["renames"] = call("_pending_renames", capture=capture)

    assert [tuple(rename.values()) for rename in capture["renames"]] == [
        (8, "t", "x"), (8, "x", "v"), (8, "v", "t"), (7, "t", "v"),
    ]  # fmt: skip

    def names(macro: str, name: str, *versions: int) -> list[str]:
        return [call(macro, capture=capture, name=name, version=version) for version in versions]

    assert names("_name_at", "v", 6, 7, 8) == ["x", "x", "v"]
    assert names("_name_at", "x", 6, 7, 8) == ["t", "v", "x"]
    assert names("_name_after", "x", 6, 7, 8) == ["x", "x", "v"]
    assert names("_name_after", "t", 6, 7, 8) == ["t", "v", "x"]
    capture["columns"] = [{"name": name} for name in ("v", "x", "t")]
    capture["fixed"] = ["id"]
    cell = call("_reference_cell", capture=capture, name="x", own_id="items_hx_id")
    assert cell == (
        "case when numbered.`__version` < 7L then numbered.`t`"
        " when numbered.`__version` < 8L then numbered.`v` else numbered.`x` end"
    )

    capture["head"]["entries"] = capture["head"]["entries"][1:]
    assert call("_pending_renames", capture=capture) == [{"version": 7, "old": "t", "new": "v"}]


def test_renames_are_compared_between_the_parts_of_the_feed(call: Renderer) -> None:
    """
    version   5       6        7              8         9       10      11        12       13
    commit    write   a to x   ADD COLUMNS    b to a    write   write   drop x    drop t   add x
    parts     feed  ( compared: 6 to 8               )  feed           ( compared )  feed
    """
    operations = {
        5: "WRITE", 6: "RENAME COLUMN", 7: "ADD COLUMNS", 8: "RENAME COLUMN", 9: "WRITE",
        10: "WRITE", 11: "DROP COLUMNS", 12: "DROP COLUMNS", 13: "ADD COLUMNS",
    }  # fmt: skip
    dropped = {11: '["`x`"]', 12: '["t"]'}
    entries = [
        {"version": version, "operation": operation,
         "parameters": {"columns": dropped[version]} if version in dropped else {}}
        for version, operation in operations.items()
    ]  # fmt: skip
    call.pretend_answers(
        {
            "describe query select * from `golden`.`items` version as of 13": [
                {"col_name": name, "data_type": "string", "comment": None} for name in ("id", "X")
            ]
        }
    )

    def parts(diff_at: int | None, fixed: list[str]) -> tuple[int | None, list[tuple[Any, ...]]]:
        capture: dict[str, Any] = {
            "entries": entries[::-1], "head": {"version": 13}, "table": "`golden`.`items`",
            "fixed": fixed, "segments": [{"from": 5, "to": 5}, {"from": 6, "to": 13}],
            "renames": [{"version": 8, "old": "b", "new": "a"},
                        {"version": 6, "old": "a", "new": "x"}],
        }  # fmt: skip
        diff_at = call("_add_compared_parts", capture=capture, last=4, diff_at=diff_at)
        return diff_at, [
            (part["from"], part["to"], part.get("is_compared", False))
            for part in capture["segments"]
        ]

    assert parts(None, ["id"]) == (
        None,
        [(5, 5, False), (6, 8, True), (9, 10, False), (11, 11, True), (12, 13, False)],
    )
    # The difference up to 7 is one up to 8, and the feed follows it; one up to 5 is of the names
    # before.
    assert parts(7, ["id"])[0] == 8
    assert parts(5, ["id"])[0] == 5
    assert (6, 8, True) in parts(5, ["id"])[1]
    # A column with its current name in all rows needs no comparison.
    assert parts(None, ["id", "a", "x"])[1] == [
        (5, 5, False), (6, 10, False), (11, 11, True), (12, 13, False),
    ]  # fmt: skip


def test_what_was_dropped_and_is_there_again_is_compared_at_each_drop(call: Renderer) -> None:
    dropped = {5: ["x", "s.x"], 7: ["x"], 8: ["s.y"], 9: ["l.element.`a.b`"], 10: ["gone", "g.x"]}
    type_ = {"s": "struct<X: int>", "l": "array<struct<`a.b`: int>>", "x": "int", "g": "int"}
    call.pretend_answers(
        {
            "describe query select * from `golden`.`items` version as of 11": [
                {"col_name": name, "data_type": type_[name], "comment": None} for name in type_
            ]
        }
    )
    capture: dict[str, Any] = {
        "head": {"version": 11}, "table": "`golden`.`items`", "fixed": [], "renames": [],
        "entries": [
            {"version": version, "operation": "DROP COLUMNS",
             "parameters": {"columns": json.dumps(paths)}}
            for version, paths in dropped.items()
        ],
    }  # fmt: skip
    found = call("_compared_versions", capture=capture, last=4)
    assert sorted(set(found)) == [5, 7, 9]


def test_batch_rows_reads_a_renamed_column_by_its_name_in_each_change(call: Renderer) -> None:
    """
    version   5 to 7     8 (compared)          9
    at        v          old: v, new: w        w
    """
    capture: dict[str, Any] = {
        "fixed": ["id"], "diff": None, "taken": {"watermark": {"version": 4}},
        "renames": [{"version": 8, "old": "v", "new": "W"}],
        "segments": [{"from": 5, "to": 7}, {"from": 8, "to": 8, "is_compared": True},
                     {"from": 9, "to": 9}],
        "head_columns": [{"name": "id"}, {"name": "W"}],
        "columns": [{"name": "id"}, {"name": "W"}, {"name": "v"}],
    }  # fmt: skip
    before = "`_commit_version` between 5 and 7"
    old = "`_commit_version` = 8 and `_change_type` in ('delete', 'update_preimage')"
    renamed = call("_columns_under_former_names", capture=capture)
    assert renamed == [
        {"name": "W", "former": [{"name": "v", "where": old}, {"name": "v", "where": before}]}
    ]
    note = call("_note", name="capture", value={"source": "items", "renamed": renamed})
    source = f"({note} select 1)"
    call.pretend_answers(
        {
            f"describe query select * from {source} as changes": [
                {"col_name": name, "data_type": "string", "comment": None}
                for name in ("id", "W", "v")
            ]
        }
    )
    assert call("_with_current_names", source=source, used=["w"]) == {
        "sql": f"(select `id`, case when {old} then `v` when {before} then `v` else `w` end as `W`,"
        f" if({old} or {before}, null, `v`) as `v` from {source} as `changes`)",
        "moved": ["w", "v"],
    }
    assert call("_with_current_names", source=source, used=["id"])["sql"] == source
