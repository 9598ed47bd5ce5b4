"""A project with any refs and sources in its readers parses; a ref has no real name by then."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

from tests.support.project import Project

A, B, S = "ref('a_hx')", "ref('b_hx')", "source('shop', 'c_hx')"
LINKED = f"{{'history': {B}, 'references': [{{'history': {A}}}, {{'history': {S}}}]}}"
READERS = {
    "history_tuple": f"[{A}, {LINKED}, {S}], at='2024-03-03'",
    "is_consistent": f"[{A}, {LINKED}, {S}], {{'a_hx': 1, 'b_hx': 2, 'c_hx': 3}}",
    "history_join": f"{{'a': {A}, 'b': {{'relation': {B}, 'key': 'b'}}, 'c': {S}}}, 'id'",
    "history_runs": f"[{A}, {B}, {S}]",
    "rows_with_runs": f"{A}, {B}",
    "hx_rows": f"{S}, key='id', references=[{{'column': 'a', 'history': {A}}},"
    f" {{'columns': ['b', 'c'], 'history': {B}}}, {{'column': 'c', 'history': {S}}}]",
    "event_rows": f"{S}, key='id'",
    "core_temp_history": f"[{{'main': {A}, 'key': 'id'}}, {{'main': {S}, 'key': 'id'}}]",
    "core_history": A,
    "changes": f"{S}, key='id'",
    "batch_rows": f"dbt_history.changes({S}, 'id'), key='id', convention='validity'",
    "as_of": f"{S}, at='2024-03-03'",
    "between": f"{A}, '2024-03-03', '2024-04-03'",
    "changeset": f"{A}, '2024-03-03', '2024-04-03'",
    "latest": f"{S}, 'id'",
    "find_changes": f"{A}, 'id', column=['v']",
    "column_changes": S,
    "feature_changes": A,
    "deleted_features": A,
    "feature_activity": f"{A}, content='v'",
    "transaction_at": f"{A}, 5",
    "branch_as_of": f"{A}, {B}, 'draft'",
    "layered_features": f"[{A}, {{'states': {B}, 'where': 'true'}}]",
}
TESTS: list[Any] = [
    {
        "dbt_history.history_references_exist": {
            "arguments": {"references": [{"column": "b", "history": B}, {"history": S}]}
        }
    },
    {"dbt_history.mirrors_main": {"arguments": {"main": S, "key": "id"}}},
    {"dbt_history.matches_expected": {"arguments": {"expected": A}}},
]


def test_refs_and_sources_in_lists_and_mappings_of_readers_and_tests_parse(
    tmp_path: Path,
) -> None:
    project = Project.create(tmp_path / "project", cast(Any, None))
    for name in ("a_hx", "b_hx"):
        project.model(name, "select 1 as id")
    models = [{"name": "a_hx", "data_tests": TESTS}]
    sources = [{"name": "shop", "schema": "shop", "tables": [{"name": "c_hx"}]}]
    project.write("models/shop.yml", json.dumps({"models": models, "sources": sources}))
    for name, arguments in READERS.items():
        project.model(f"m_{name}", f"select * from {{{{ dbt_history.{name}({arguments}) }}}} as m")

    project.dbt("parse")
