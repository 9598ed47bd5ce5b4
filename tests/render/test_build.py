"""The progress and the parts of `make build`, without Spark."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from scripts import build, play_days
from scripts.thread_sessions import ThreadSessions
from tests.support.project import ROOT
from tests.support.waiting import TIMEOUT

VIEW, TABLE = "model.dbt_history.a_view", "model.dbt_history.a_table"
TEST = "test.dbt_history.not_null_a_table_id.1f2e3d"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The time that `build` sees; a test moves it."""
    now = SimpleNamespace(seconds=1000.0)
    monkeypatch.setattr(build, "monotonic", lambda: now.seconds)
    return now


def finished(unique_id: str, seconds: float, status: str = "success", message: str = "") -> Any:
    """dbt's event of a finished node."""
    node = SimpleNamespace(unique_id=unique_id, node_name=unique_id.split(".")[2])
    result = SimpleNamespace(status=status, message=message, execution_time=seconds)
    data = SimpleNamespace(node_info=node, run_result=result)
    return SimpleNamespace(info=SimpleNamespace(name="NodeFinished", msg=""), data=data)


def test_each_model_has_a_line_with_its_number_and_the_time_left(
    clock: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    progress = build.Progress([TABLE, VIEW, TEST], {TABLE: 60.0, VIEW: 120.0, TEST: 60.0})
    clock.seconds += 60
    progress.on_event(finished(TABLE, 58.0, message="2 batches: 6 added\nmore"))
    clock.seconds += 300
    progress.on_event(finished(VIEW, 290.0, message="OK"))
    assert capsys.readouterr().out.splitlines() == [
        # Two steps take place at once: the other 180 s take less time.
        "  1 of 3, 2 min left       a_table  2 batches: 6 added",
        # 360 s instead of 90 so far, with the first minute of each: 60 s become 84 s.
        "  2 of 3, 80 s left        a_view  OK",
    ]
    assert progress.seconds == {TABLE: 58.0, VIEW: 290.0}


def test_a_passed_test_has_a_line_only_after_ten_silent_seconds_and_a_failed_one_always(
    clock: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    tests = [f"test.dbt_history.t{number}.0" for number in range(4)]
    progress = build.Progress(tests, {})
    for name, status in zip(tests, ("pass", "fail", "pass", "pass"), strict=True):
        clock.seconds += 6
        progress.on_event(finished(name, 1.0, status, "got 3 results" if status == "fail" else ""))
    assert capsys.readouterr().out.splitlines() == [
        "  2 of 4, 10 s left        t1  got 3 results",
        "  4 of 4                   t3  pass",
    ]


def test_with_options_the_number_of_nodes_is_that_of_dbts_first_line(
    clock: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    progress = build.Progress([], {})
    start = SimpleNamespace(info=SimpleNamespace(name="LogStartLine", msg=""))
    for number, name in enumerate((TABLE, VIEW), 1):
        start.data = SimpleNamespace(index=number, total=2)
        progress.on_event(start)
        clock.seconds += 1
        progress.on_event(finished(name, 1.0, message="OK"))
    lines = capsys.readouterr().out.splitlines()
    numbers = [line[:26].partition(",")[0].strip() for line in lines]
    assert numbers == ["1 of 2", "2 of 2"]


def test_a_node_that_several_days_build_counts_as_often(
    clock: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    progress = build.Progress([TABLE, TABLE, VIEW], {TABLE: 30.0, f"{TABLE} 2": 6.0, VIEW: 6.0})
    for name, seconds in ((TABLE, 30.0), (TABLE, 6.0), (TABLE, 6.0), (VIEW, 6.0)):
        clock.seconds += seconds
        progress.on_event(finished(name, seconds, message="OK"))
    lines = capsys.readouterr().out.splitlines()
    numbers = [line[:26].partition(",")[0].strip() for line in lines]
    # The third time the table had failed, and was not expected.
    assert numbers == ["1 of 3", "2 of 3", "2 of 3", "3 of 3"]
    assert progress.seconds == {TABLE: 6.0, f"{TABLE} 2": 6.0, VIEW: 6.0}


def test_a_node_that_is_built_again_is_counted_once(
    clock: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    progress = build.Progress([TABLE, VIEW], {})
    for name in (TABLE, TABLE, VIEW):
        progress.on_event(finished(name, 1.0, message="OK"))
    lines = capsys.readouterr().out.splitlines()
    numbers = [line[:26].partition(",")[0].strip() for line in lines]
    assert numbers == ["1 of 2", "1 of 2", "2 of 2"]


@pytest.mark.parametrize(
    ("seconds", "words"), [(0, "10 s"), (44, "40 s"), (89, "90 s"), (95, "2 min"), (200, "3 min")]
)
def test_the_time_left_is_rounded(seconds: float, words: str) -> None:
    assert build.how_long(seconds) == words


def artifact(**statuses: str) -> dict[str, Any]:
    results = [{"unique_id": name, "status": status} for name, status in statuses.items()]
    return {"metadata": {}, "results": results, "elapsed_time": 1.0}


def test_results_of_several_builds_become_one_and_a_later_result_replaces_an_earlier() -> None:
    results = build.Results()
    results.add(artifact(seed="success", model="error", test="skipped"))
    assert results.finished == ["seed"]
    results.add(artifact(model="success", test="warn", other="fail"))
    assert results.finished == ["seed", "model"]
    merged = results.merged(9.5)
    assert merged["elapsed_time"] == 9.5
    statuses = {one["unique_id"]: one["status"] for one in merged["results"]}
    assert statuses == {"seed": "success", "model": "success", "test": "warn", "other": "fail"}


def test_a_part_is_repeated_only_if_its_files_change(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("1\n")
    part = build.Once(tmp_path / "warehouse" / ".rows", [tmp_path / "rows.csv"])
    assert not part.is_done
    part.done()
    assert part.is_done
    (tmp_path / "rows.csv").write_text("2\n")
    assert not part.is_done


@dataclass
class Runs:
    """Stands for dbt: writes the results of each run, and keeps its arguments."""

    statuses: list[dict[str, str]]
    arguments: list[list[str]] = field(default_factory=list)

    def __call__(self, manifest: Any, callbacks: Any) -> Runs:
        return self

    def invoke(self, arguments: list[str]) -> SimpleNamespace:
        self.arguments.append(arguments)
        statuses = self.statuses.pop(0)
        text = json.dumps(artifact(**statuses))
        (build.TARGET / "run_results.json").write_text(text)
        success = "fail" not in statuses.values()
        return SimpleNamespace(success=success, exception=None, result=None)


def manifest(names: list[str]) -> Any:
    nodes = {
        unique_id: SimpleNamespace(name=unique_id.split(".")[2], fqn=unique_id.split(".")[1:3])
        for unique_id in names
    }
    return SimpleNamespace(nodes=nodes, unit_tests={}, exposures={})


@pytest.mark.parametrize("last_status", ["pass", "fail"])
def test_the_last_build_excludes_what_succeeded_and_its_status_is_that_of_the_whole(
    last_status: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    runs = Runs([{TABLE: "success", TEST: "fail"}, {TEST: last_status, VIEW: "success"}])
    shown: list[Any] = []
    for name, value in {
        "TARGET": tmp_path,
        "SECONDS": tmp_path / "seconds.json",
        "dbtRunner": runs,
        "prepare": lambda *_: None,
        "steps_before": lambda *_: [TABLE],
    }.items():
        monkeypatch.setattr(build, name, value)
    command = SimpleNamespace(main=lambda *arguments, **_: shown.append(arguments))
    monkeypatch.setattr(build, "failures_command", command)
    (tmp_path / "manifest.json").write_text(json.dumps({"nodes": {}}))

    assert build.build_all(manifest([TABLE, VIEW, TEST])) == (last_status == "pass")
    assert runs.arguments == [
        ["--quiet", "--no-write-json", "build", *build.THREADS, *build.EXAMPLE_NODES],
        [
            *["--quiet", "--write-json", "build", *build.THREADS],
            *["--exclude", "fqn:dbt_history.a_table"],
            *["--indirect-selection", "empty"],
        ],
    ]
    text = capsys.readouterr().out
    assert "models:     2 built" in text
    assert f"tests:      1 {last_status}ed" in text
    assert bool(shown) == (last_status == "fail")


@pytest.mark.parametrize("system", play_days.systems())
def test_every_day_ends_with_a_command_of_dbt(system: str) -> None:
    for path in play_days.days(system):
        assert isinstance(play_days.steps_of(system, path)[-1], play_days.Command), path.name


def test_the_steps_of_the_days_are_nodes_of_the_project(monkeypatch: pytest.MonkeyPatch) -> None:
    none = SimpleNamespace(is_done=False)
    monkeypatch.setattr(build, "LANDING", none)
    monkeypatch.setattr(build, "DAYS", dict.fromkeys(build.DAYS, none))
    files = [
        path
        for folder in ("models", "seeds", "snapshots", "tests/data")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".sql", ".csv")
    ]
    steps = build.steps_before(manifest([f"node.x.{path.stem}" for path in files]), ["landing"])
    assert steps.count("landing.6") == 1
    assert steps.count("node.x.fivetran_snapshot") == 6
    assert steps.count("node.x.fivetran_snapshot_source") == 1

    steps = build.steps_before(manifest([f"node.x.{path.stem}" for path in files]), build.DAYS)
    assert steps.count("node.x.naksha_map") == 5
    logs = [
        path
        for path in files
        if {"crmp", "esql"} & {*path.parts} and "materialized='history_append'" in path.read_text()
    ]
    assert len(logs) > 8
    assert {steps.count(f"node.x.{path.stem}") for path in logs} == {4}


@pytest.mark.parametrize("is_failed", [False, True])
def test_the_parts_of_a_day_share_a_run_of_dbt(
    is_failed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = "fail" if is_failed else "success"
    runs = Runs([{TABLE: "success"}, {TABLE: last}, {VIEW: "success"}])
    done: list[str] = []
    operations: list[tuple[str, str | None]] = []
    for name, value in {
        "TARGET": tmp_path,
        "dbtRunner": runs,
        "DAYS": {"crmp": SimpleNamespace(done=lambda: done.append("crmp"))},
        "LANDING": SimpleNamespace(done=lambda: done.append("landing")),
        "summary": SimpleNamespace(
            read_report=lambda _: SimpleNamespace(is_failed=False), render=lambda _: ""
        ),
    }.items():
        monkeypatch.setattr(build, name, value)

    def run_dbt(command: play_days.Command, *_: Any) -> None:
        operations.append((command.text, os.environ.get("DBT_HISTORY_MESSAGE")))

    def commands(*texts: str) -> Iterator[play_days.Command]:
        yield from map(play_days.Command, texts)

    monkeypatch.setattr(play_days, "run_dbt", run_dbt)
    parts = {
        "landing": commands("run --select a", "run --select b", "run --select c d"),
        "crmp": commands("run --select x", "run-operation tag {}", "run --select y"),
    }
    one_build = build.Build(build.Progress([], {}), None)
    if is_failed:
        with pytest.raises(SystemExit, match="the run of day 2 failed"):
            build.play(one_build, parts)
    else:
        build.play(one_build, parts)
    selected = [run[run.index("--select") + 1 : -2] for run in runs.arguments]
    assert selected == [["a", "x"], ["b", "y"], ["c", "d"]][: 2 if is_failed else 3]
    assert operations == [("run-operation tag {}", "day 2")]
    assert done == ([] if is_failed else ["crmp", "landing"])
    assert "DBT_HISTORY_MESSAGE" not in os.environ


def test_a_part_goes_on_as_soon_as_its_own_nodes_are_built() -> None:
    worked: list[int] = []

    def commands() -> Iterator[play_days.Command]:
        for day in (1, 2):
            worked.append(day)
            yield play_days.Command("run --select a b")

    with ThreadPoolExecutor(1) as threads:
        part = build.Part(commands(), threads)
        first = part.command.result()
        assert first is not None
        part.building = set(first.nodes)
        for name, status in (("b", "success"), ("other", "success"), ("a", "error")):
            part.on_event(finished(f"model.dbt_history.{name}", 1.0, status))
        assert part.command.result() is first
        part.on_event(finished("model.dbt_history.a", 1.0, "success"))
        assert part.command.result() is not first
        assert worked == [1, 2]
        part.end_run()
        assert part.command.result() is not None


class Listing:
    """A stand-in for dbt that lists nodes; `nodes` is None where dbt fails."""

    def __init__(self, nodes: list[str] | None) -> None:
        self.nodes = nodes

    def __call__(self, *_: Any) -> Any:
        return self

    def invoke(self, _: list[str]) -> Any:
        if self.nodes is None:
            return SimpleNamespace(success=False, result=None)
        lines = [json.dumps({"unique_id": name}) for name in self.nodes]
        return SimpleNamespace(success=True, result=lines)


@pytest.mark.parametrize(
    ("nodes", "parts"),
    [
        (["model.dbt_history.fivetran_history"], []),
        (["model.dbt_history.landed"], ["landing"]),
        (["model.dbt_history.report"], ["esql"]),
        (["model.dbt_history.report", "model.dbt_history.landed"], ["landing", "esql"]),
        (None, ["landing", "crmp", "esql", "naksha"]),
    ],
)
def test_a_selection_prepares_only_what_its_nodes_read(
    nodes: list[str] | None, parts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    parents = {
        "model.dbt_history.landed": ["source.dbt_history.landing.items"],
        "model.dbt_history.report": ["model.dbt_history.events"],
        "model.dbt_history.events": ["source.dbt_history.esql.a"],
        "model.dbt_history.fivetran_history": ["seed.dbt_history.files"],
    }
    project: Any = SimpleNamespace(parent_map=parents)
    monkeypatch.setattr(build, "dbtRunner", Listing(nodes))
    assert build.parts_read(project, ["--select", "x"]) == parts


def test_a_day_that_was_played_with_the_same_files_is_not_played_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    once = {name: build.Once(tmp_path / name, []) for name in ("crmp", "esql")}
    monkeypatch.setattr(build, "DAYS", once)
    once["crmp"].done()
    assert build.systems_to_play(["crmp", "esql"]) == ["esql"]
    assert build.systems_to_play(["crmp"]) == []


def test_each_thread_has_a_session_of_its_own_and_a_later_thread_one_that_is_free() -> None:
    made: list[Any] = []

    def make() -> Any:
        made.append(object())
        return made[-1]

    sessions = ThreadSessions(make)
    both, used = threading.Barrier(2), {}

    def ask(name: str) -> None:
        used[name] = sessions.builder.enableHiveSupport().getOrCreate()
        assert used[name] is sessions.getOrCreate()
        both.wait(timeout=TIMEOUT)

    for names in (("first", "second"), ("third", "fourth")):
        threads = [threading.Thread(target=ask, args=[name]) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert used["first"] is not used["second"]
    assert {used["third"], used["fourth"]} == {used["first"], used["second"]} == {*made}
