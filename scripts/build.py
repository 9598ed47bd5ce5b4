"""Build and test the examples with one Spark, in this process: `make build`.

    scripts/build.py [OPTION OF dbt build ...]

1. The documented example, whose table is printed: the first result.
2. The days of the examples whose tables change. Each day one of its request files is landed, as
   `dbt-history land` does, and users of the other examples change their main tables
   (`play_days.py`); then one run of dbt builds what records these changes, takes a snapshot of the
   landed history, and compares it with the documented rows of that day.
3. Everything else. What was built and tested in 1 and 2 is not repeated, unless it failed.

    day    landing  crmp  esql  naksha          one run of dbt
    1      file 1   1     1     1          ->   landed history, snapshot, mirrors, events, map
    2      file 2   2     2     2          ->   the same
    ...
    6      file 6                          ->   landed history, snapshot

What is landed and the changes of a system are repeated only if their inputs change. With options,
`dbt build` with these takes the place of 1 and 3, and of 2 only what the selected nodes read is
done. The results of all builds are written to `run_results.json`, as if they were one.
"""

from __future__ import annotations

import gc
import hashlib
import json
import logging
import os
import shutil
import sys
import threading
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, count
from pathlib import Path
from time import monotonic
from typing import Any

from dbt.artifacts.schemas.run import RunExecutionResult
from dbt.cli.main import dbtRunner
from dbt.contracts.graph.manifest import Manifest
from pyspark.sql import SparkSession

from dbt_history import summary
from dbt_history.failures import failures_command
from dbt_history.landing.command import land_command
from dbt_history.session import new_session, start_session
from scripts import landing_example, play_days
from scripts.spark_settings import ONE_TASK
from scripts.thread_sessions import thread_sessions

ROOT = Path(__file__).resolve().parent.parent
STATE = ROOT / ".state"
TARGET = STATE / "target"
IS_LOCAL = os.environ.get("DBT_HISTORY_TARGET", "local") == "local"
WAREHOUSE = STATE / ("warehouse" if IS_LOCAL else "cluster/warehouse")
# Each thread has a session of its own here; on a cluster the profile says how many there are.
THREADS = ["--threads", "2"] if IS_LOCAL else []
# Seconds of each step of the last build, from which the time left is estimated.
SECONDS = STATE / "build_seconds.json"
EXAMPLE = "dbt_history.fivetran_history"
EXAMPLE_NODES = ["--select", "+fivetran_history", "--indirect-selection", "cautious"]
LANDING_FILES = [
    ROOT / "scripts/landing_example.py",
    ROOT / "src/dbt_history/landing/writer.py",
    *sorted((ROOT / "seeds/examples/fivetran").glob("*.csv")),
    ROOT / "models/examples/fivetran/fivetran_snapshot_source.sql",
    ROOT / "snapshots/examples/fivetran_snapshot.sql",
]
# Tables that the landed batches make, dropped before the first one.
LANDED_TABLES = ("fivetran_items_landing", "fivetran_landed_history", "fivetran_snapshot")
# What the first batch builds, and what every batch does.
FIRST_LANDED_NODES = ("fivetran_history_expected", "fivetran_snapshot_source")
LANDED_NODES = (
    "fivetran_landed_history",
    "fivetran_snapshot",
    "fivetran_landed_history_is_as_documented",
    "fivetran_snapshot_is_as_documented",
)
# Expected seconds of steps that have not been timed yet.
USUAL_SECONDS = {"landing": 2.0, "day": 3.0, "model": 3.0, "snapshot": 1.5, "seed": 1.0}
USUAL_SECONDS_OF_OTHERS = 0.5
# Two steps take place at once. The first ones are slow, because Java has just started; they do not
# count alone.
AT_ONCE = 2
FIRST_SECONDS = 60.0
LONGEST_SILENCE = 10.0
SUCCEEDED = ("success", "pass", "no-op")


def kind(step: str) -> str:
    """`model` of a node's unique id `model.dbt_history.x`, `day` of `day.crmp.1_tables`."""
    return step.partition(".")[0]


def how_long(seconds: float) -> str:
    """A duration in words, without false precision."""
    if seconds >= 90:
        return f"{seconds / 60:.0f} min"
    return f"{max(10, round(seconds, -1)):.0f} s"


class Progress:
    """Prints finished steps: the number of the step, the number of all, and the time left.

    A step has the unique id of a node, or is a day or the landing. Nodes other than tests have a
    line each, and so have tests that did not pass; others have one if nothing was printed for ten
    seconds. dbt calls this from several threads. A step that is expected several times counts as
    often; its further turns are named `STEP 2`, `STEP 3`.
    """

    def __init__(self, steps: Iterable[str], known: Mapping[str, float]) -> None:
        self.expected: dict[str, float] = {}
        for step in steps:
            turn = first_free(step, self.expected)
            usual = USUAL_SECONDS.get(kind(step), USUAL_SECONDS_OF_OTHERS)
            self.expected[turn] = known.get(turn) or usual
        self.unnamed = 0
        self.seconds: dict[str, float] = {}
        self.began = self.printed = monotonic()
        self.lock = threading.Lock()

    def time_left(self, elapsed: float) -> float:
        """Expected seconds of the open steps, corrected by what the finished ones took."""
        open_ = [seconds for step, seconds in self.expected.items() if step not in self.seconds]
        finished = sum(self.expected.get(step, 1.0) for step in self.seconds)
        rate = (elapsed + FIRST_SECONDS) / (finished + AT_ONCE * FIRST_SECONDS)
        return (sum(open_) + self.unnamed) * rate

    def finish(self, step: str, seconds: float, text: str, is_line: bool = True) -> None:
        with self.lock:
            turn = first_free(step, self.seconds)
            if turn not in self.expected:
                # A node that is built again, because it failed, is counted once.
                turn = step
            if turn not in self.expected and turn not in self.seconds:
                self.unnamed = max(0, self.unnamed - 1)
            self.seconds[turn] = seconds
            now = monotonic()
            if not is_line and now - self.printed < LONGEST_SILENCE:
                return
            self.printed = now
            total = len(self.seconds.keys() | self.expected.keys()) + self.unnamed
            where = f"{len(self.seconds)} of {total}"
            if len(self.seconds) < total:
                where += f", {how_long(self.time_left(now - self.began))} left"
            print(f"  {where:<24} {text}", flush=True)

    def on_event(self, event: Any) -> None:
        """A callback of dbt."""
        if event.info.name == "NodeFinished":
            result, node = event.data.run_result, event.data.node_info
            name = node.unique_id.split(".")[2] if kind(node.unique_id) == "test" else ""
            text = f"{name or node.node_name}  {first_line(result.message) or result.status}"
            is_line = kind(node.unique_id) in USUAL_SECONDS or result.status not in SUCCEEDED
            self.finish(node.unique_id, result.execution_time, text, is_line)
        elif event.info.name == "LogStartLine" and not self.expected and not self.seconds:
            # With options, the number of nodes is known only when dbt starts the first one.
            self.unnamed = event.data.total
        elif event.info.name in ("JinjaLogInfo", "JinjaLogWarning"):
            print(event.info.msg, flush=True)


def first_line(message: str) -> str:
    return message.strip().partition("\n")[0]


def first_free(step: str, taken: Container[str]) -> str:
    """The step, or the first of its further turns that is not taken."""
    turns = (f"{step} {number}" for number in count(2))
    return next(turn for turn in chain([step], turns) if turn not in taken)


@dataclass(frozen=True)
class Once:
    """A part that is repeated only if its input files change."""

    stamp: Path
    inputs: Sequence[Path]

    def fingerprint(self) -> str:
        digest = hashlib.sha256()
        for path in self.inputs:
            data = path.read_bytes()
            digest.update(f"{path.name} {len(data)}\n".encode() + data)
        return digest.hexdigest()

    @property
    def is_done(self) -> bool:
        return self.stamp.is_file() and self.stamp.read_text() == self.fingerprint()

    def done(self) -> None:
        self.stamp.parent.mkdir(parents=True, exist_ok=True)
        self.stamp.write_text(self.fingerprint())


LANDING = Once(WAREHOUSE / ".landing_example", LANDING_FILES)
DAYS = {
    system: Once(
        WAREHOUSE / f".days_{system}",
        [ROOT / "scripts/play_days.py", *sorted(play_days.DAYS.glob(f"{system}/*.sql"))],
    )
    for system in play_days.systems()
}


@dataclass
class Results:
    """The results of several builds; a later result of a node replaces an earlier one."""

    artifact: dict[str, Any] = field(default_factory=dict)
    by_node: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add(self, artifact: dict[str, Any]) -> None:
        self.artifact = artifact
        for result in artifact["results"]:
            self.by_node.pop(result["unique_id"], None)
            self.by_node[result["unique_id"]] = result

    def merged(self, seconds: float) -> dict[str, Any]:
        results = list(self.by_node.values())
        return {**self.artifact, "results": results, "elapsed_time": seconds}

    @property
    def finished(self) -> list[str]:
        """The nodes that need no other build."""
        return [name for name, one in self.by_node.items() if one["status"] in SUCCEEDED]


class Build:
    """The builds of this process: one project as parsed once, one Spark, one list of results."""

    def __init__(self, progress: Progress, manifest: Manifest | None) -> None:
        self.began = monotonic()
        self.progress = progress
        self.manifest = manifest
        self.results = Results()
        # Beside the progress, what the parts of a day do when their nodes are built.
        self.callbacks: list[Callable[[Any], None]] = []

    def run(self, *options: str, is_last: bool = False) -> bool:
        """Run `dbt build`, and add its results. Returns whether it succeeded.

        Only the last run writes the manifest, which has what all of them compiled.
        """
        artifact = TARGET / "run_results.json"
        artifact.unlink(missing_ok=True)
        runner = dbtRunner(self.manifest, callbacks=[self.progress.on_event, *self.callbacks])
        json_option = "--write-json" if is_last else "--no-write-json"
        done = runner.invoke(["--quiet", json_option, "build", *THREADS, *options])
        if isinstance(done.exception, KeyboardInterrupt):
            raise done.exception
        if done.exception is not None:
            sys.exit(f"build: {done.exception}")
        if not is_last and isinstance(done.result, RunExecutionResult):
            done.result.write(str(artifact))
        if artifact.exists():
            self.results.add(json.loads(artifact.read_text(encoding="utf-8")))
        return done.success

    def end(self) -> None:
        """Write the results of all builds, and print their summary and the rows of failed tests."""
        if self.results.by_node:
            merged = self.results.merged(monotonic() - self.began)
            (TARGET / "run_results.json").write_text(json.dumps(merged), encoding="utf-8")
            report = summary.read_report(TARGET)
            print(summary.render(report), flush=True)
            if report.is_failed:
                options = ["--target-path", str(TARGET), "--project-dir", str(ROOT)]
                failures_command.main(options, standalone_mode=False)


def say(text: str) -> None:
    print(f"build: {text}", flush=True)


def land(build: Build) -> Iterator[play_days.Command]:
    """Land the batches one by one; after each, the caller runs dbt with its nodes and tests."""
    folder = STATE / "landing_example"
    shutil.rmtree(folder, ignore_errors=True)
    landing_example.main(str(folder))
    schema = EXAMPLE.partition(".")[0]
    for number, request in enumerate(sorted(folder.glob("*.json"))):
        began = monotonic()
        land_command.main([str(request), "--schema", schema, "--quiet"], standalone_mode=False)
        build.progress.finish(f"landing.{number + 1}", monotonic() - began, request.stem)
        nodes = (*FIRST_LANDED_NODES, *LANDED_NODES) if number == 0 else LANDED_NODES
        yield play_days.Command(f"run --select {' '.join(nodes)}")


def report_day(build: Build, system: str, day: Path, statements: int, seconds: float) -> None:
    text = f"{system}, {day.stem}: {statements} statement{'s' if statements > 1 else ''}"
    build.progress.finish(step_of(day), seconds, text)


class Part:
    """The landing, or a system whose users change its tables, on its days.

    Its own work up to its next dbt command is done in a thread. It begins as soon as the nodes of
    its last run are built, beside those of other parts:

        landing  file 1  | nodes 1 | file 2                | nodes 2 | ...
        crmp     users 1 | nodes 1               | users 2 | nodes 2      | ...
                         | one run of dbt        |         | one run of dbt

    building  names of the nodes of its run that are not built yet
    """

    def __init__(self, commands: Iterator[play_days.Command], threads: Executor) -> None:
        self.commands = commands
        self.threads = threads
        self.building: set[str] = set()
        self.lock = threading.Lock()
        self.work()

    def work(self) -> None:
        """Work up to the next command, which is None at the end."""
        self.command = self.threads.submit(next, self.commands, None)

    def on_event(self, event: Any) -> None:
        """A callback of dbt, from several threads."""
        if event.info.name != "NodeFinished" or event.data.run_result.status not in SUCCEEDED:
            return
        with self.lock:
            is_built = self.building == {event.data.node_info.node_name}
            self.building.discard(event.data.node_info.node_name)
        if is_built:
            self.work()

    def end_run(self) -> None:
        """Go on also if dbt has told nothing of some of the nodes."""
        if self.building:
            self.building.clear()
            self.work()


def play(build: Build, parts: Mapping[str, Iterator[play_days.Command]]) -> None:
    """Play the days of all parts at once, each day with one run of dbt for all of them.

    parts  the dbt commands of each part, which does its own work when it is asked for the next.
           Its work is done when it has none. Operations are run at once, one after the other.
    """
    given = dict(os.environ)
    try:
        with ThreadPoolExecutor(len(parts)) as threads:
            open_ = {name: Part(commands, threads) for name, commands in parts.items()}
            for day in count(1):
                message = {"DBT_HISTORY_APPLICATION": "days", "DBT_HISTORY_MESSAGE": f"day {day}"}
                os.environ |= message
                nodes = nodes_of_day(build, open_)
                if not open_:
                    break
                say(f"day {day}: one run of dbt for {', '.join(open_)}")
                build.callbacks = [part.on_event for part in open_.values()]
                if not build.run("--select", *nodes, "--indirect-selection", "empty"):
                    build.end()
                    sys.exit(f"build: the run of day {day} failed, or a table is not as documented")
                for part in open_.values():
                    part.end_run()
    finally:
        build.callbacks = []
        os.environ.clear()
        os.environ.update(given)


def nodes_of_day(build: Build, open_: dict[str, Part]) -> list[str]:
    """Wait for each part's next run of dbt. Returns what these runs select.

    Removes the parts that have no more commands.
    """
    nodes: list[str] = []
    for name, part in list(open_.items()):
        while (command := part.command.result()) is not None and not command.is_run:
            play_days.run_dbt(command, build.manifest, THREADS)
            part.work()
        if command is None:
            del open_[name]
            (DAYS | {"landing": LANDING})[name].done()
        else:
            part.building = set(command.nodes)
            nodes += command.nodes
    return nodes


def step_of(day: Path) -> str:
    return f"day.{day.parent.name}.{day.stem}"


def steps_of(manifest: Manifest) -> list[str]:
    """The nodes that `dbt build` runs: those of the project, without analyses and hooks."""
    kinds = ("model", "seed", "snapshot", "test")
    nodes = [name for name in manifest.nodes if kind(name) in kinds]
    return [*nodes, *manifest.unit_tests, *manifest.exposures]


def start_spark() -> SparkSession:
    return with_one_task(start_session("dbt_history build"))


def session_of_thread() -> SparkSession:
    return with_one_task(new_session(start_session("dbt_history build")))


def with_one_task(session: SparkSession) -> SparkSession:
    if IS_LOCAL:
        for name, value in ONE_TASK.items():
            session.conf.set(name, str(value))
    return session


def parse() -> Manifest:
    done = dbtRunner().invoke(["--quiet", "parse"])
    if not isinstance(done.result, Manifest):
        sys.exit(f"build: dbt cannot read the project\n{done.exception or ''}")
    return done.result


def known_seconds() -> dict[str, float]:
    try:
        return dict(json.loads(SECONDS.read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError):
        return {}


def build_all(manifest: Manifest) -> bool:
    """Build everything, the documented example first."""
    known = known_seconds()
    before = steps_before(manifest, ["landing", *DAYS])
    after = [name for name in steps_of(manifest) if name not in before]
    build = Build(Progress([*before, *after], known), manifest)
    say("the documented example of Fivetran's history mode")
    if build.run(*EXAMPLE_NODES):
        tests = sum(kind(name) == "test" for name in build.results.finished)
        print(f"\n{EXAMPLE}, six batches in one commit, {tests} tests passed:\n", flush=True)
        versions = start_session("dbt_history build").table(EXAMPLE)
        versions.orderBy("id", "_fivetran_start").show(100, truncate=False)
    prepare(build)
    say("all other models, snapshots, seeds and tests")
    nodes = {**manifest.nodes, **manifest.unit_tests, **manifest.exposures}
    done = ["fqn:" + ".".join(nodes[name].fqn) for name in build.results.finished]
    success = build.run("--exclude", *done, "--indirect-selection", "empty", is_last=True)
    SECONDS.write_text(json.dumps(known | build.progress.seconds), encoding="utf-8")
    build.end()
    return success


def build_selected(options: list[str]) -> bool:
    if "--indirect-selection" not in options:
        # A test that also reads other nodes would fail where these are not built.
        options = [*options, "--indirect-selection", "cautious"]
    manifest = parse()
    parts = parts_read(manifest, options)
    prepare(Build(Progress(steps_before(manifest, parts), known_seconds()), None), parts)
    build = Build(Progress([], {}), None)
    say(f"dbt build {' '.join(options)}")
    success = build.run(*options, is_last=True)
    build.end()
    return success


def parts_read(manifest: Manifest, options: list[str]) -> list[str]:
    """Of the landing and the systems with days, those that the nodes of `dbt build` read.

    All of them if dbt cannot list the nodes with these options.
    """
    everything = ["landing", *DAYS]
    listing = ["--quiet", "ls", *options, "--output", "json", "--output-keys", "unique_id"]
    done = dbtRunner(manifest).invoke(["--log-level", "none", *listing])
    if not done.success or not isinstance(done.result, list):
        return everything
    read = {str(json.loads(line)["unique_id"]) for line in done.result}
    parents = manifest.parent_map or {}
    pending = list(read)
    while pending:
        found = set(parents.get(pending.pop(), [])) - read
        read |= found
        pending.extend(found)
    sources = {name.split(".")[2] for name in read if kind(name) == "source"}
    return [part for part in everything if part in sources]


def steps_before(manifest: Manifest, parts: Iterable[str]) -> list[str]:
    """The steps of the landing and of the days that are still to be done, for the progress.

    A node has one for each day that builds it.
    """
    steps, names = [], []
    if "landing" in parts and not LANDING.is_done:
        steps = [f"landing.{one + 1}" for one in range(len(landing_example.seed("requests")))]
        names = [*FIRST_LANDED_NODES, *(LANDED_NODES * len(steps))]
    for system in systems_to_play(parts):
        for day in play_days.days(system):
            steps.append(step_of(day))
            names += play_days.nodes_of_day(system, day)
    unique_ids = {node.name: unique_id for unique_id, node in manifest.nodes.items()}
    return steps + [unique_ids[name] for name in names]


def systems_to_play(parts: Iterable[str]) -> list[str]:
    return [system for system, once in DAYS.items() if system in parts and not once.is_done]


def prepare(build: Build, parts: Sequence[str] = ("landing", *DAYS)) -> None:
    """Land the batches and play the days, unless that was done with the same inputs."""
    spark = start_session("dbt_history build")
    open_: dict[str, Iterator[play_days.Command]] = {}
    if "landing" in parts and not LANDING.is_done:
        play_days.drop_models(spark, LANDED_TABLES)
        open_["landing"] = land(build)
    for system in systems_to_play(parts):
        play_days.drop_tables(spark, system)
        report = partial(report_day, build, system)
        open_[system] = play_days.play(session_of_thread(), system, report)
    if open_:
        say("the days of the examples whose tables change: request files, and users' statements")
        play(build, open_)


def main(options: list[str]) -> int:
    logging.getLogger("py4j").setLevel(logging.ERROR)
    # The collector of garbage would follow the objects of dbt's manifest several times in each run.
    gc.set_threshold(100_000, 20, 100)
    say("starting Spark and reading the project")
    # Spark's Java starts while dbt reads the project.
    with ThreadPoolExecutor(1) as other_thread:
        spark = other_thread.submit(start_spark)
        manifest = None if options else parse()
        spark.result()
    try:
        with thread_sessions(session_of_thread) if IS_LOCAL else nullcontext():
            success = build_all(manifest) if manifest else build_selected(options)
    except play_days.DayError as error:
        sys.exit(f"build: {error}")
    return 0 if success else 1


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit("build: interrupted")
