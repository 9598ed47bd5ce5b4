"""A thrift server, its executors and dbt's connections to it, and what happens if they end."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from scripts.cluster import HOST, Cluster, started_at
from tests.conformance.test_history_batch import CASES, adopt, stage, together
from tests.support import connect, thrift
from tests.support.processes import kill
from tests.support.project import Project, profiles
from tests.support.selection import IS_ALL
from tests.support.staging import COLUMNS, batches_of_one, before, day, version
from tests.support.tables import assert_same_rows
from tests.support.thrift import ThriftSpark
from tests.support.waiting import TIMEOUT

BATCHES = 2
SELECT, EXPECTED = batches_of_one(BATCHES)
SETTINGS = (
    "spark.databricks.delta.commitInfo.userMetadata",
    "spark.databricks.delta.write.txnAppId",
    "spark.databricks.delta.write.txnVersion",
    "spark.sql.session.timeZone",
)
# After a run the profile's settings remain, and none of a commit or of the rules of a MERGE.
SHOWN = (*SETTINGS, "spark.sql.constraintPropagation.enabled")
LEFT = {"spark.sql.session.timeZone": "UTC"}
# Connect warns before each statement, since dbt-spark requests Hive.
QUIET = "ignore:Failed to set spark.sql.catalogImplementation:UserWarning"


@pytest.fixture(scope="module")
def server(cluster: Cluster) -> Iterator[ThriftSpark]:
    """A connection for the test itself."""
    spark = ThriftSpark(cluster)
    yield spark
    spark.stop()


@pytest.fixture(scope="module")
def thrift_project(
    tmp_path_factory: pytest.TempPathFactory, cluster: Cluster, server: ThriftSpark
) -> Project:
    """A project whose dbt runs over thrift, with ANSI on (the default there) or off."""
    targets = {
        "ansi": thrift.profile(cluster, "tests"),
        "lenient": thrift.profile(cluster, "tests", ansi=False),
    }
    path = tmp_path_factory.mktemp("thrift") / "project"
    return Project.create(path, server, targets)  # type: ignore[arg-type]


@pytest.fixture
def cluster_only(request: pytest.FixtureRequest) -> None:
    """Run the test only in `make test-cluster`: it takes too long for `make test`."""
    if not request.config.getoption("--on-cluster"):
        pytest.skip("a part of make test-cluster")


@pytest.fixture
def project(thrift_project: Project, request: pytest.FixtureRequest) -> Iterator[Project]:
    thrift_project.schema = f"tests_cluster_{abs(hash(request.node.name)) % 10**8}"
    thrift_project.spark.sql(f"create schema {thrift_project.schema}")
    yield thrift_project
    thrift_project.clear()
    thrift_project.spark.sql(f"drop schema {thrift_project.schema} cascade")


def numbers_in_the_log(project: Project) -> list[int]:
    records = [row["userMetadata"] for row in project.log_of("h")]
    return [
        int(record.split('"batch": ')[1].split(",")[0]) for record in reversed(records) if record
    ]


def start_dbt(
    project: Project, name: str, target: Mapping[str, Any], *models: str
) -> subprocess.Popen[str]:
    """Run `dbt run` of these models, or of `h`, in its own process."""
    folder = project.path.parent / name
    folder.mkdir(exist_ok=True)
    (folder / "profiles.yml").write_text(json.dumps(profiles({"own": target})))
    arguments = ["run", "--select", *(models or ["h"]), "--project-dir", str(project.path)]
    arguments += ["--profiles-dir", str(folder), "--target-path", str(folder / "target")]
    arguments += ["--log-path", str(folder / "logs")]
    return subprocess.Popen(
        [sys.executable, "-m", "dbt.cli.main", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONWARNINGS": QUIET},
    )


class CuttingProxy:
    """A proxy to the server that closes the connection for good once `word` has passed."""

    def __init__(self, port: int, word: bytes) -> None:
        self.port, self.word = port, word
        self.listener = socket.create_server((HOST, 0))
        self.open: list[socket.socket] = [self.listener]
        self.is_cut = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def own_port(self) -> int:
        return int(self.listener.getsockname()[1])

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                server = socket.create_connection((HOST, self.port))
                self.open += [client, server]
                for ends in ((client, server), (server, client)):
                    threading.Thread(target=self._forward, args=ends, daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
                if self.word in data:
                    # The statement is running now, and its result has not arrived yet.
                    time.sleep(0.4)
                    self.cut()

    def cut(self) -> None:
        self.is_cut.set()
        for one in self.open:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


# The records of a table whose MERGE takes some seconds, since each new row is checked slowly.
SLOW = 16
SLOW_CHECK = "v = 'v1' or levenshtein(repeat(w, 5000), repeat(v, 2500)) > 0"
SLOW_SELECT = f"""
    select
        stage as _stage, 1L as _batch, id, 'v2' as v, 'w' as w,
        timestamp'{day(2)} UTC' as _fivetran_start,
        timestamp'9999-12-31 23:59:59.999 UTC' as _fivetran_end, true as _fivetran_active
    from range(1, {SLOW + 1}) cross join values ('earliest_start'), ('upsert') as stages(stage)
"""
SLOW_BEFORE = SLOW_SELECT.replace("'v2'", "'v1'").replace(str(day(2)), str(day(1)))
SLOW_EXPECTED = [
    row
    for id_ in range(1, SLOW + 1)
    for row in (version(id_, "v1", day(1), before(day(2))), version(id_, "v2", day(2)))
]


def write_slowly(project: Project) -> None:
    """Write the model `h` of one batch, over an existing table whose MERGE takes seconds."""
    name = project.table("h")
    project.spark.sql(
        f"create table {name} using delta as select * except (_stage, _batch) from ({SLOW_BEFORE})"
        " where _stage = 'upsert'"
    )
    project.spark.sql(f"alter table {name} add constraint is_slow check ({SLOW_CHECK})")
    project.history("h", SLOW_SELECT, batches_per_commit=1)


def driver_api(cluster: Cluster, what: str) -> Any:
    """The REST API of the driver for its application."""
    address = f"http://{HOST}:{cluster.record()['ports']['driver_ui']}/api/v1/applications"
    with urllib.request.urlopen(address, timeout=TIMEOUT) as page:
        application = json.load(page)[0]["id"]
    with urllib.request.urlopen(f"{address}/{application}/{what}", timeout=TIMEOUT) as page:
        return json.load(page)


def merging(cluster: Cluster, process: subprocess.Popen[str]) -> int:
    """Wait until the tasks of a MERGE have run for a second; returns their stage."""
    since: dict[int, float] = {}
    deadline = time.monotonic() + TIMEOUT
    while True:
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline
        for active in driver_api(cluster, "stages?status=active"):
            # Connect's jobs do not have the statement as their description.
            if "merge" in (active["details"] + active.get("description", "")).lower():
                first = since.setdefault(active["stageId"], time.monotonic())
                if time.monotonic() - first > 1:
                    return int(active["stageId"])
        time.sleep(0.1)


def executors(cluster: Cluster) -> list[int]:
    """The executor processes that the workers started."""
    workers = {one.pid for one in cluster.processes() if one.name.startswith("worker")}
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and started_at(int(entry.name)):
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                if parent in workers:
                    found.append(int(entry.name))
    return found


@pytest.mark.thorough
@pytest.mark.parametrize("target", ["ansi", "lenient"])
def test_the_cases_of_history_batch_end_in_the_same_rows_over_thrift(
    project: Project, server: ThriftSpark, target: str, request: pytest.FixtureRequest
) -> None:
    # With ANSI off one table is enough; with it on, several, so that models run concurrently.
    # `make test` leaves out the key of most cases.
    keys = sorted({case.key for case in CASES})
    if target == "lenient":
        keys = keys[-1:]
    elif not (IS_ALL or request.config.getoption("--on-cluster")):
        keys.remove(("id",))
    tables = [
        together([case for case in CASES if case.key == key], f"cases_{place}", times=1)
        for place, key in enumerate(keys)
    ]
    for case in tables:
        stage(server, case, case.batches)  # type: ignore[arg-type]
        select = f"select * from staged_{case.id}"
        project.history(case.id, select, key=case.key, max_deleted_share=None)
        adopt(project, server, case)  # type: ignore[arg-type]

    project.run("cases_*", options=("--target", target))

    for case in tables:
        assert_same_rows(project.rows(case.id), case.expected, case.columns, case.id)


def test_batches_applied_over_connect_are_not_applied_again_over_thrift(
    project: Project, cluster: Cluster
) -> None:
    project.history("h", SELECT)

    process = start_dbt(project, "connect", connect.profile(cluster, "tests"))
    output = process.communicate(timeout=TIMEOUT)[0]

    assert process.returncode == 0, output
    assert_same_rows(project.rows("h"), EXPECTED, COLUMNS)
    assert "no new batch" in project.run("h").message("h")
    assert numbers_in_the_log(project) == list(range(1, BATCHES + 1))


@pytest.mark.thorough
def test_two_concurrent_runs_on_one_server_apply_every_batch_once(
    project: Project, cluster: Cluster
) -> None:
    project.history("h", SELECT, batches_per_commit=1)

    target = thrift.profile(cluster, "tests")
    both = [start_dbt(project, name, target) for name in ("one", "two")]
    output = [process.communicate(timeout=TIMEOUT)[0] for process in both]

    assert [process.returncode for process in both] == [0, 0], output
    assert_same_rows(project.rows("h"), EXPECTED, COLUMNS)
    assert numbers_in_the_log(project) == list(range(1, BATCHES + 1))


@pytest.mark.thorough
def test_a_batch_whose_connection_was_cut_in_the_merge_is_finished_by_the_next_run(
    project: Project, cluster: Cluster
) -> None:
    project.history("h", SELECT, batches_per_commit=1)
    proxy = CuttingProxy(cluster.thrift_port, b"merge into")

    cut = start_dbt(project, "cut", thrift.profile(cluster, "tests", port=proxy.own_port))
    output = cut.communicate(timeout=TIMEOUT)[0]

    assert proxy.is_cut.is_set(), output
    assert cut.returncode != 0, output
    project.run("h")
    assert_same_rows(project.rows("h"), EXPECTED, COLUMNS)
    assert numbers_in_the_log(project) == list(range(1, BATCHES + 1))


@pytest.mark.thorough
def test_an_executor_killed_between_batches_loses_and_duplicates_nothing(
    project: Project, cluster: Cluster
) -> None:
    project.history("h", SELECT, batches_per_commit=1)
    commit = cluster.warehouse / f"{project.schema}.db" / "h" / "_delta_log" / f"{1:020}.json"

    process = start_dbt(project, "killed", thrift.profile(cluster, "tests"))
    deadline = time.monotonic() + TIMEOUT
    while not commit.exists():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.01)
    before_it = executors(cluster)
    assert before_it
    for pid in before_it:
        os.kill(pid, signal.SIGKILL)
    output = process.communicate(timeout=TIMEOUT)[0]

    # The staged rows were lost with the executor: they are computed again, or the run refuses them.
    assert process.returncode == 0 or "changed between the plan and the merge" in output, output
    project.run("h")
    assert_same_rows(project.rows("h"), EXPECTED, COLUMNS)
    assert numbers_in_the_log(project) == list(range(1, BATCHES + 1))
    assert executors(cluster) != before_it


@pytest.mark.thorough
def test_an_executor_killed_in_the_tasks_of_a_merge_loses_and_duplicates_nothing(
    project: Project, cluster: Cluster, cluster_only: None
) -> None:
    write_slowly(project)

    process = start_dbt(project, "killed_in_merge", thrift.profile(cluster, "tests"))
    at = merging(cluster, process)
    for pid in executors(cluster):
        os.kill(pid, signal.SIGKILL)
    output = process.communicate(timeout=TIMEOUT)[0]

    lost = driver_api(cluster, f"stages/{at}")
    assert sum(attempt["numFailedTasks"] for attempt in lost) > 0, lost
    assert process.returncode == 0 or "changed between the plan and the merge" in output, output
    project.run("h")
    assert_same_rows(project.rows("h"), SLOW_EXPECTED, COLUMNS)
    assert numbers_in_the_log(project) == [1]


@pytest.mark.thorough
def test_a_batch_whose_connect_client_was_killed_in_the_merge_is_finished_by_the_next_run(
    project: Project, cluster: Cluster
) -> None:
    write_slowly(project)
    target = connect.profile(cluster, "tests")

    killed = start_dbt(project, "killed_client", target)
    merging(cluster, killed)
    kill(killed)
    # The server may continue the MERGE of the killed client: then two runs are concurrent.
    again = start_dbt(project, "next", target)
    output = again.communicate(timeout=TIMEOUT)[0]

    assert again.returncode == 0, output
    assert "no new batch" in project.run("h").message("h")
    assert_same_rows(project.rows("h"), SLOW_EXPECTED, COLUMNS)
    assert numbers_in_the_log(project) == [1]


def write_models_that_show_settings(project: Project) -> None:
    """Two history models that log the settings after their run, and three of the time zone."""
    project.write(
        "macros/show_settings.sql",
        "{% macro show_settings(name) %}{% if execute %}"
        f"{{% set found = dbt_history._session_settings({list(SHOWN)}) %}}"
        "{% do log('SETTINGS ' ~ name ~ ' ' ~ tojson(found), info=true) %}"
        "{% endif %}{% endmacro %}",
    )
    for name in ("h", "other"):
        project.history(name, SELECT, config={"post_hook": "{{ show_settings('" + name + "') }}"})
    project.model(
        "tokyo",
        "select current_timezone() as zone",
        materialized="table",
        file_format="delta",
        pre_hook="set spark.sql.session.timeZone = Asia/Tokyo",
    )
    for number in range(2):
        project.model(
            f"beside_{number}",
            "select current_timezone() as zone",
            materialized="table",
            file_format="delta",
        )


def settings_shown(log: str) -> dict[str, Any]:
    """Those of SHOWN that are set after each model, by its name."""
    lines = [line.split("SETTINGS ")[1] for line in log.splitlines() if "SETTINGS" in line]
    return {name: json.loads(shown) for name, shown in (line.split(" ", 1) for line in lines)}


def test_a_run_over_connect_is_applied_once_and_leaves_no_setting(
    project: Project, cluster: Cluster, server: ThriftSpark, cluster_only: None
) -> None:
    write_models_that_show_settings(project)

    for name in ("first", "again"):
        target = connect.profile(cluster, "tests")
        process = start_dbt(project, name, target, "h", "other", "tokyo")
        output = process.communicate(timeout=TIMEOUT)[0]
        assert process.returncode == 0, output
        assert settings_shown(output) == {"h": LEFT, "other": LEFT}

    assert output.count("no new batch") == 2, output
    for name in ("h", "other"):
        assert_same_rows(project.rows(name), EXPECTED, COLUMNS, name)
    assert numbers_in_the_log(project) == list(range(1, BATCHES + 1))
    assert project.log_of("tokyo")[0]["userMetadata"] is None
    others = [server.conf.get(name) for name in SETTINGS]
    assert others == [None, None, None, "UTC"]


@pytest.mark.thorough
def test_settings_do_not_affect_concurrent_or_later_models(project: Project) -> None:
    write_models_that_show_settings(project)

    run = project.run("h", "other", "tokyo", "beside_*")

    assert settings_shown(run.log) == {"h": LEFT, "other": LEFT}
    zones = {"beside_0": "UTC", "beside_1": "UTC", "tokyo": "Asia/Tokyo"}
    for name, zone in zones.items():
        assert project.rows(name) == [{"zone": zone}], name
        assert project.log_of(name)[0]["userMetadata"] is None, name
