"""`generate_history`: one line of metadata makes a history model; a second run changes nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from dbt.cli.main import dbtRunner

from dbt_history.generate import GenerateError, read_files, write_files
from tests.support.project import NAME, ROOT, Project

YML = """
models:
  - name: orders
    config:
      unique_key: order_id
      meta:
        history:
          references:
            - {column: customer_id, history: customers_hx}
sources:
  - name: shop
    tables:
      - name: customers
        config: {meta: {history: {key: customer_id}}}
      - name: prices
        config: {meta: {history: {kind: events, key: [item, day]}}}
      - name: untracked
"""
ORDERS = """{{ config(materialized='history_append') }}

select * from {{ dbt_history.hx_rows(
    ref('orders'),
    key=["order_id"],
    references=[
        {'column': "customer_id", 'history': ref('customers_hx')},
    ],
) }} as history
"""


def printed(project: Project, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    capsys.readouterr()
    project.dbt("run-operation", "generate_history")
    return read_files(capsys.readouterr().out)


def test_a_node_with_the_metadata_gets_a_model_that_dbt_parses(
    project: Project, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    project.model("orders", "select 1L as order_id, 2L as customer_id", unique_key="order_id")
    project.write("models/tracked.yml", YML)

    files = printed(project, capsys)

    folder = "models/history"
    assert sorted(files) == [
        f"{folder}/_history__models.yml",
        *(f"{folder}/{name}.sql" for name in ("customers_hx", "orders_hx", "prices_history")),
    ]
    assert files[f"{folder}/orders_hx.sql"] == ORDERS
    assert sorted(write_files(tmp_path, files)) == sorted(files)
    assert write_files(tmp_path, files) == []
    for name, text in files.items():
        project.write(name, text)
    project.dbt("parse")
    assert printed(project, capsys) == files

    def generate(**arguments: Any) -> str:
        said = json.dumps(arguments)
        return project.dbt("run-operation", "generate_history", "--args", said, check=False).log

    capsys.readouterr()
    dry = generate(table="orders", dry_run=True)
    assert f"{folder}/orders_hx.sql would be the history of ref('orders')" in dry
    assert "customers_hx" not in dry
    assert read_files(capsys.readouterr().out) == {}
    assert "order: no model, seed or source of this name is tracked" in generate(table="order")


STATED_KEYS = """
models:
  - name: pairs
    config: {meta: {history: {kind: events}}}
    columns: [{name: x, data_type: int}, {name: y, data_type: int}]
    constraints: [{type: primary_key, columns: [x, y]}]
  - name: lines
    config: {meta: {history: true}}
    columns: [{name: line_id, data_type: int, constraints: [{type: primary_key}]}]
sources:
  - name: shop
    tables:
      - name: persons
        config: {meta: {history: true}}
        columns:
          - {name: person_id, data_tests: [unique, not_null]}
          - {name: email, data_tests: [unique]}
"""


def test_the_key_comes_from_constraints_and_tests(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("pairs", "lines"):
        project.model(name, "select 1 as x, 2 as y, 3 as line_id")
    project.write("models/tracked.yml", STATED_KEYS)

    files = printed(project, capsys)

    keys = {"pairs_history": '["x", "y"]', "lines_hx": '["line_id"]', "persons_hx": '["person_id"]'}
    for name, key in keys.items():
        assert f"    key={key}," in files[f"models/history/{name}.sql"]

    unclear = STATED_KEYS.replace("data_tests: [unique]", "data_tests: [unique, not_null]")
    project.write("models/tracked.yml", unclear)
    assert (
        "shop.persons: it has no key"
        in project.dbt("run-operation", "generate_history", check=False).log
    )


FOLDERS = """
models:
  - name: x
    config: {unique_key: id, meta: {history: true}}
  - name: y
    config: {unique_key: id, meta: {history: {kind: hx}}}
sources:
  - name: shop
    config: {meta: {history_kind: events}}
    tables:
      - name: z
        config: {meta: {history: true}}
        columns: [{name: id, constraints: [{type: primary_key}]}]
"""


def test_the_kind_is_set_once_for_a_folder_or_a_source(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("folder/x", "folder/y"):
        project.write(f"models/{name}.sql", "select 1 as id")
    project.write("models/tracked.yml", FOLDERS)
    settings = project.path / "dbt_project.yml"
    before = settings.read_text()
    folder = {"models": {NAME: {"folder": {"+meta": {"history_kind": "events"}}}}}
    settings.write_text(json.dumps(json.loads(before) | folder))
    try:
        files = printed(project, capsys)
    finally:
        settings.write_text(before)

    names = {Path(name).stem for name in files if name.endswith(".sql")}
    assert names == {"x_history", "y_hx", "z_history"}


def test_all_nodes_that_cannot_be_tracked_are_reported_together(project: Project) -> None:
    project.model("a", "select 1 as id", meta={"history": True})
    project.model("b", "select 1 as id", meta={"history": {"kind": "x", "key": "id", "kee": 1}})
    run = project.dbt("run-operation", "generate_history", check=False)
    assert not run.success
    for problem in ("history_tests.a: it has no key", "kind is x", "has no setting kee"):
        assert problem in run.log


def test_no_file_is_written_outside_the_project(tmp_path: Path) -> None:
    with pytest.raises(GenerateError):
        write_files(tmp_path / "project", {"ok.sql": "", "../out.sql": ""})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.thorough
def test_the_example_model_equals_the_generated_one(capsys: pytest.CaptureFixture[str]) -> None:
    folder = "models/examples/esql"
    capsys.readouterr()
    arguments = ["generate_history", "--args", json.dumps({"folder": folder})]
    places = ["--project-dir", str(ROOT), "--profiles-dir", str(ROOT)]
    done = dbtRunner().invoke(["--quiet", "run-operation", *arguments, *places])
    assert done.success, done.exception
    files = read_files(capsys.readouterr().out)
    assert set(files) == {f"{folder}/_history__models.yml"} | {
        f"{folder}/{name}_history.sql" for name in "abx"
    }
    for name, text in files.items():
        if name.endswith(".sql"):
            assert (ROOT / name).read_text() == text
