"""The command `dbt-history doctor`, on facts made here; test_history.py runs their macro."""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from click.testing import CliRunner, Result

from dbt_history import doctor, operations
from dbt_history.cli import main
from dbt_history.operations import OperationError
from tests.support.markdown import blocks, page, table_after
from tests.support.rendering import Renderer

WELL: dict[str, Any] = {
    "spark": "4.1.4 abcdef",
    "delta": "4.4.0",
    "settings": {
        "spark.sql.extensions": f"org.other.Extension,{doctor.EXTENSION}",
        "spark.sql.catalog.spark_catalog": doctor.CATALOG,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.timestampType": "TIMESTAMP_LTZ",
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "2",
    },
    "threads": 1,
    "method": "session",
    "sources": [{"table": "shop.c", "is_table": True, "is_delta": True, "feed": True}],
}


def examine(monkeypatch: pytest.MonkeyPatch, *options: str, **facts: Any) -> Result:
    def fake(*_: Any) -> str:
        return f"noise\n-- facts: {json.dumps(WELL | facts)}\n"

    monkeypatch.setattr(doctor, "run_operation", fake)
    return CliRunner().invoke(main, ["doctor", *options])


def test_a_working_session_has_no_problem_and_no_line_to_write(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done = examine(monkeypatch)
    assert done.exit_code == 0, done.output
    assert done.output.splitlines()[-1] == "0 problems, 0 notes"
    assert "write:" not in done.output


def test_each_missing_part_has_the_line_to_write(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = dict.fromkeys(WELL["settings"]) | {
        "spark.sql.extensions": "org.other.Extension",
        "spark.sql.session.timeZone": "Europe/Berlin",
        "spark.sql.timestampType": "timestamp_ntz",
    }
    source = {"table": "shop.c", "is_table": True, "is_delta": True, "feed": False}
    done = examine(monkeypatch, delta=None, settings=settings, threads=4, sources=[source])

    assert done.exit_code == 1
    lines = [line.split("write: ")[1] for line in done.output.splitlines() if "write: " in line]
    assert lines == [
        f"spark.sql.extensions: org.other.Extension,{doctor.EXTENSION}",
        f"spark.sql.catalog.spark_catalog: {doctor.CATALOG}",
        "spark.sql.session.timeZone: UTC",
        "spark.sql.timestampType: TIMESTAMP_LTZ",
        "spark.sql.shuffle.partitions: <number of cores>",
        "spark.databricks.delta.snapshotPartitions: 2",
        "threads: 1",
        "alter table shop.c set tblproperties ('delta.enableChangeDataFeed' = 'true')",
    ]
    assert done.output.splitlines()[-1] == "4 problems, 5 notes"


def test_partitions_that_the_platform_chooses_need_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = WELL["settings"] | {"spark.sql.shuffle.partitions": "auto"}
    done = examine(monkeypatch, settings=settings)

    assert done.output.splitlines()[-1] == "0 problems, 0 notes"


def test_json_has_the_same_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    done = examine(monkeypatch, "--json", threads=4)
    document = json.loads(done.output)
    assert done.exit_code == 1
    assert document["ok"] is False
    wrong = [one for one in document["findings"] if one["level"] == "problem"]
    assert [(one["what"], one["line"]) for one in wrong] == [("threads", "threads: 1")]


def test_a_select_that_is_compared_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    done = examine(monkeypatch, compared=["customer_history"], sources=[])
    assert done.exit_code == 0
    (line,) = [line for line in done.output.splitlines() if "model customer_history" in line]
    assert line.startswith("note ")
    assert line.endswith("only the state at each run is known")


FROM = "from {{ source('shop', 'customers') }}"


@pytest.mark.parametrize(
    ("code", "history", "reads_feed", "is_compared"),
    [
        (f"select * {FROM}", None, True, False),
        (f"{{# all of it #}}\nSELECT *\n  {FROM} -- now", "fivetran", True, False),
        ("{% set one = ref('a') %} select * from {{ one }}", None, True, False),
        (f"with rows as (select * {FROM}) select * from rows", None, False, True),
        (f"select id, city {FROM}", {"updated_at": "changed_at"}, False, True),
        (f"select * {FROM} where id > 0", None, False, True),
        (f"select id, city {FROM}", {"source": "changes"}, False, False),
    ],
)
def test_the_feed_of_a_source_counts_only_for_a_select_that_reads_it(
    call: Renderer, caplog: pytest.LogCaptureFixture,
    code: str, history: Any, reads_feed: bool, is_compared: bool,
) -> None:  # fmt: skip
    """The other SELECTs are compared in each run, whatever their sources have."""
    node = {
        "resource_type": "model", "name": "h", "depends_on": {"nodes": ["source.shop"]},
        "config": {"materialized": "history", "meta": {"history": history} if history else {}},
        "raw_code": "{{ config(materialized='history', unique_key=('id')) }}\n" + code,
    }  # fmt: skip
    source = {"resource_type": "source", "schema": "golden", "identifier": "customers"}
    facts = facts_of(call, caplog, {"nodes": {"h": node}, "sources": {"source.shop": source}})
    assert [bool(facts["sources"]), facts["compared"]] == [reads_feed, ["h"] * is_compared]


@pytest.mark.parametrize(
    ("materialized", "code", "macros", "reads_feed"),
    [
        ("history_append", f"select * {FROM}", [], False),
        ("history_append", f"select * {FROM} where _batch > 1", ["last_batch"], False),
        ("history_append", "select * from {{ hx_rows() }}", ["hx_rows"], True),
        ("history_append", "select * from {{ events() }}", ["event_rows"], True),
        ("history_append", "select * from {{ inbox() }}", ["core_temp_history"], True),
        ("history_batch", f"select * {FROM}", ["last_batch"], False),
        ("history_batch", "select * from {{ rows() }}", ["batch_rows", "changes"], True),
        ("incremental", "select * from {{ rows() }}", ["batch_rows", "changes"], True),
        ("table", f"select * {FROM}", [], False),
    ],
)
def test_the_feed_counts_for_a_model_that_calls_a_macro_which_reads_it(
    call: Renderer, caplog: pytest.LogCaptureFixture,
    materialized: str, code: str, macros: list[str], reads_feed: bool,
) -> None:  # fmt: skip
    depends_on = {
        "nodes": ["source.shop"],
        "macros": [f"macro.dbt_history.{name}" for name in macros],
    }
    node = {
        "resource_type": "model", "name": "h", "depends_on": depends_on,
        "config": {"materialized": materialized, "meta": {}}, "raw_code": code,
    }  # fmt: skip
    source = {"resource_type": "source", "schema": "golden", "identifier": "customers"}
    facts = facts_of(call, caplog, {"nodes": {"h": node}, "sources": {"source.shop": source}})
    assert [bool(facts["sources"]), facts["compared"]] == [reads_feed, []]


def facts_of(call: Renderer, caplog: pytest.LogCaptureFixture, graph: Any) -> Any:
    call.context = {"graph": graph, "execute": True}
    call.pretend_relations("customers")
    setting = {"key": "", "value": "<undefined>"}
    call.pretend_answers(
        {"select version()": [{"v": "4.1.4"}], "select try": [{"v": "4.4.0"}], "set ": [setting]}
    )
    call("_doctor_facts")
    told = next(message for message in caplog.messages if message.startswith("-- facts"))
    return json.loads(told.partition(": ")[2])


def test_the_macro_tells_the_method_as_dbt_has_read_it_from_the_profile(
    call: Renderer, caplog: pytest.LogCaptureFixture
) -> None:
    facts = facts_of(call, caplog, {"nodes": {}, "sources": {}})
    assert (facts["method"], facts["threads"]) == ("session", 1)
    assert facts["settings"].keys() == WELL["settings"].keys()


def test_several_threads_are_no_problem_where_each_has_its_own_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert examine(monkeypatch, method="thrift", threads=4).exit_code == 0


@pytest.mark.parametrize(
    ("output", "line"),
    [
        ("RuntimeError: [JAVA_GATEWAY_EXITED] Java gateway process exited", "export JAVA_HOME"),
        ("dbt could not find a macro with the name '_doctor_facts'", "dbt deps --upgrade"),
        ("run 'dbt deps' to install package dependencies", "dbt deps"),
        ("Cannot resolve ...: class io.delta.package not found.", "spark.jars.packages"),
        ("Cannot find catalog plugin class for catalog 'spark_catalog'", "spark.jars.packages"),
        ("Failed to find the data source: delta. Make sure", "spark.jars.packages"),
    ],
)
def test_a_run_of_dbt_that_fails_is_explained(
    monkeypatch: pytest.MonkeyPatch, output: str, line: str
) -> None:
    def fail(*_: Any) -> str:
        raise OperationError(output)

    monkeypatch.setattr(doctor, "run_operation", fail)
    done = CliRunner().invoke(main, ["doctor", "--json"])
    (found,) = [one for one in json.loads(done.output)["findings"] if one["what"] == "dbt"]
    assert done.exit_code == 1
    assert found["line"].startswith(line)


def test_each_message_of_the_guide_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = table_after(page("docs/guides/start.md"), "## If something fails")
    messages = [text for row in rows for text in row["message"].replace("`", "").split(", ")]
    assert {"unresolved dependency", "JAVA_GATEWAY_EXITED", "SCHEMA_NOT_FOUND"} <= {*messages}
    for message in messages:
        found = doctor.failure(f"Runtime Error\n  {message} somewhere\n  last line")
        assert found.line, message
    # Java exits because of the jars.
    both = "[JAVA_GATEWAY_EXITED] Java gateway process exited\nunresolved dependency: io.delta#x"
    assert doctor.failure(both).line == doctor.JARS


class WithoutDelta:
    """A session that fails as Spark does without the jars, from `failing` on."""

    def __init__(self, failing: str) -> None:
        self.failing = failing
        self.conf = SimpleNamespace(set=lambda *_: None, get=lambda _, default: default)
        self.catalog = SimpleNamespace(
            databaseExists=lambda _: self.fail("catalog", "Cannot find catalog plugin class for"),
            currentCatalog=lambda: "spark_catalog",
        )
        # The builder of SparkSession.
        self.appName = self.enableHiveSupport = lambda *_: self
        self.getOrCreate = lambda: self

    def fail(self, step: str, message: str) -> None:
        if self.failing == step:
            raise RuntimeError(f"{message} 'spark_catalog'\n\tat java.base")

    def sql(self, text: str) -> SimpleNamespace:
        self.fail("query", "Cannot resolve: class io.delta.package not found.")
        return SimpleNamespace(collect=lambda: [text])


@pytest.mark.parametrize("failing", ["catalog", "query"])
def test_commands_of_landing_name_the_settings_that_lack_delta(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, failing: str
) -> None:
    session = WithoutDelta(failing)
    monkeypatch.setattr("dbt_history.session.SparkSession", SimpleNamespace(builder=session))
    monkeypatch.setattr("dbt_history.serve.engine.find_package", lambda _: tmp_path)
    (request,) = blocks(page("docs/guides/landing.md"), "json")
    document = json.loads(request)
    document["keys"] = dict.fromkeys(document["keys"], base64.b64encode(bytes(32)).decode())
    (tmp_path / "r.json").write_text(json.dumps(document))
    root = ["--root", str(tmp_path)]
    for command in (
        ["land", str(tmp_path / "r.json")],
        ["verify-landing", "shop.items_landing", *root],
        ["serve", *root, "--check"],
    ):
        done = CliRunner().invoke(main, command)
        assert done.exit_code == 3, done.output
        assert doctor.NO_JARS[0] in done.output
        assert doctor.JARS.replace(": ", " ") in done.output
        heading = done.output.strip().rpartition("(docs/guides/landing.md, ")[2].rstrip(")")
        assert f"\n## {heading}\n" in page("docs/guides/landing.md")


def test_versions_outside_the_supported_range_are_named() -> None:
    versions = {"dbt-core": "1.9.4", "dbt-spark": None, "pyspark": "4.1.4"}
    found = {one.what: (one.level, one.found) for one in doctor.packages(versions)}
    assert found["dbt-core"] == ("problem", "1.9.4, not between 1.10.6 and 3")
    assert found["dbt-spark"] == ("problem", "not installed")
    assert found["pyspark"] == ("ok", "4.1.4")


def test_the_ranges_are_those_of_the_project() -> None:
    project = yaml.safe_load(page("dbt_project.yml"))["require-dbt-version"]
    lowest, above = (tuple(map(int, end.strip("<>=").split("."))) for end in project)
    assert doctor.SUPPORTED["dbt-core"][0] == lowest
    assert doctor.SUPPORTED["dbt-core"][1] == above[:1]
    assert '"pyspark>=4.1,<4.2"' in page("pyproject.toml")
    assert doctor.JARS.removeprefix("spark.jars.packages: ") + " " in page("requirements/jars.lock")


def test_the_line_for_a_missing_package_is_that_of_the_readme() -> None:
    assert f"\n{doctor.INSTALL}\n" in page("README.md")
    found = [one for one in doctor.packages({"pyspark": "3.5.0"}) if one.level == "problem"]
    assert {one.what: one.line for one in found} == dict.fromkeys(doctor.SUPPORTED, doctor.INSTALL)


@pytest.mark.parametrize("command", [["generate"], ["adopt", "customers"], ["doctor"]])
def test_run_operations_of_commands_use_the_named_profile_and_target(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: list[str]
) -> None:
    asked: list[str] = []

    def run(arguments: list[str], **_: Any) -> SimpleNamespace:
        asked.extend(arguments)
        return SimpleNamespace(returncode=0, stdout="", stderr="")

    monkeypatch.setattr("dbt_history.operations.subprocess.run", run)
    folders = ["--project-dir", str(tmp_path), "--profiles-dir", str(tmp_path)]
    CliRunner().invoke(main, [*command, *folders, "--target", "prod"])
    assert asked[-4:] == ["--profiles-dir", str(tmp_path.resolve()), "--target", "prod"]


def test_every_command_has_examples_exit_codes_and_a_row_in_its_page() -> None:
    documented = page("docs/commands.md")
    assert main.commands
    for name in main.commands:
        shown = CliRunner().invoke(main, [name, "-h"])
        assert shown.exit_code == 0
        assert f"Examples: dbt-history {name}" in shown.output, name
        assert "Exit codes: 0  " in shown.output, name
        assert f"| `dbt-history {name}" in documented, name


def test_generate_and_doctor_use_the_dbt_of_their_own_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "dbt"
    program.write_text("")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert operations.dbt_program() == str(program)
    program.unlink()
    assert operations.dbt_program() == "dbt"
