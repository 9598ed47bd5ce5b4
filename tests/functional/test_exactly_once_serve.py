"""A destination that is killed or stopped during a call: real processes."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from pyspark.sql import SparkSession

from dbt_history.landing.writer import RequestWriter
from dbt_history.serve.destination import Destination
from dbt_history.serve.engine import Engine
from dbt_history.serve.service import Service, start
from dbt_history.session import start_session
from tests.support.landing import COLUMNS, END, HEADER, START, small
from tests.support.processes import descendants, free_port, kill, start_python
from tests.support.project import ROOT, drop_schema
from tests.support.secrets import files_with
from tests.support.waiting import TIMEOUT
from tests.support.writer import Client, history_batch

pytestmark = pytest.mark.thorough

ROWS = 60_000
METRICS = free_port()
# The files in the landing table's folder at the moment of the kill.
MOMENTS = {
    "while_landing": "*.parquet",
    "between_landing_and_merge": "_delta_log/00000000000000000001.json",
}


@pytest.fixture
def process(warehouse: Path, tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A destination in its own process, and its port."""
    folder = tmp_path / "spark"
    folder.mkdir()
    options = ("--log-format", "json", "--metrics", str(METRICS), "--reflection")
    arguments = (str(warehouse), str(tmp_path), str(folder), *options)
    started, line = start_python("tests.support.run_serve", *arguments, ready="serving at ")
    yield started, int(json.loads(line)["message"].rsplit(":", 1)[1])
    started.kill()
    started.wait()


def many_rows(folder: Path, schema: str) -> RequestWriter:
    writer = RequestWriter(folder, COLUMNS, schema=schema, compression="ZSTD", is_encrypted=True)
    rows = [[str(n), "x", "1.5", START, END, "true"] for n in range(ROWS)]
    writer.add_csv("upsert", "many.csv", HEADER, rows)
    return writer


def wait_for(moment: str, landing: Path, call: Any) -> None:
    deadline = time.monotonic() + TIMEOUT
    while not any(landing.glob(MOMENTS[moment])):
        assert not call.done(), call.exception()
        assert time.monotonic() < deadline
        time.sleep(0.005)


def register_table(spark: SparkSession, schema: str, folder: Path) -> None:
    """Register a table that another session created, if it exists."""
    if (folder / "_delta_log/00000000000000000000.json").exists():
        spark.sql(f"create table {schema}.{folder.name} using delta location '{folder}'")


def limit_files(process: int, size: int) -> None:
    """Limit the files of all processes that a process started to this number of bytes."""
    for child in descendants(process):
        _, most = resource.prlimit(child, resource.RLIMIT_FSIZE)
        resource.prlimit(child, resource.RLIMIT_FSIZE, (size, most))


def register(spark: SparkSession, schema: str, warehouse: Path) -> None:
    """Register the tables that the destination's session has in a schema."""
    spark.sql(f"create schema if not exists {schema}")
    for name in ("items", "items__landing"):
        register_table(spark, schema, warehouse / f"{schema}.db" / name)


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_call_to_a_killed_destination_is_finished_by_its_repeat(
    moment: str, process: tuple[subprocess.Popen[str], int], spark: SparkSession,
    warehouse: Path, tmp_path: Path,
) -> None:  # fmt: skip
    killed, port = process
    schema = f"tests_killed_{moment}"
    writer = many_rows(tmp_path, schema)
    landing = warehouse / f"{schema}.db" / "items__landing"

    call = Client.at(port).start("WriteHistoryBatch", history_batch(writer))
    wait_for(moment, landing, call)
    kill(killed)
    assert call.code() == grpc.StatusCode.UNAVAILABLE

    register(spark, schema, warehouse)
    assert spark.table(f"{schema}.items").isEmpty()
    landed = spark.table(f"{schema}.items__landing").count()
    assert landed in ((0, ROWS) if moment == "while_landing" else (ROWS,))
    engine = Engine(ROOT)
    server, port = start(
        Service(Destination(start_session("tests"), tmp_path, engine)), "127.0.0.1:0"
    )
    client = Client.at(port)
    assert [client.write(writer).success for _ in range(2)] == [True, True]
    server.stop(None).wait()
    engine.close()

    assert spark.table(f"{schema}.items__landing").count() == ROWS
    found = spark.table(f"{schema}.items")
    assert (found.count(), found.select("id").distinct().count()) == (ROWS, ROWS)
    drop_schema(spark, schema, warehouse)


def test_a_stopped_destination_finishes_the_current_call(
    process: tuple[subprocess.Popen[str], int],
    spark: SparkSession,
    warehouse: Path,
    tmp_path: Path,
) -> None:
    stopped, port = process
    schema = "tests_stopped"
    landing = warehouse / f"{schema}.db" / "items__landing"

    writer = many_rows(tmp_path, schema)
    call = Client.at(port).start("WriteHistoryBatch", history_batch(writer))
    wait_for("between_landing_and_merge", landing, call)
    with urllib.request.urlopen(f"http://127.0.0.1:{METRICS}/metrics") as page:
        metrics = page.read().decode()
    stopped.send_signal(signal.SIGTERM)

    assert call.result(timeout=TIMEOUT).success
    output, _ = stopped.communicate(timeout=TIMEOUT)
    assert stopped.returncode == 0
    logged = [json.loads(line) for line in output.splitlines()]
    assert [(line["level"], line["message-origin"]) for line in logged] == [
        ("INFO", "sdk_destination")
    ] * 2
    assert logged[0]["message"] == "stopping after calls in progress"
    assert (logged[1]["call"], logged[1]["outcome"]) == ("WriteHistoryBatch", "success")
    assert "dbt_history_calls_in_progress 1.0" in metrics
    keys = list(writer.keys.values())
    assert files_with(keys, [tmp_path, landing.parent], metrics, output) == []
    spark.sql(f"create schema if not exists {schema}")
    register_table(spark, schema, landing.parent / "items")
    assert spark.table(f"{schema}.items").count() == ROWS
    drop_schema(spark, schema, warehouse)


def test_a_call_fails_on_a_full_disk_and_its_repeat_succeeds(
    process: tuple[subprocess.Popen[str], int], spark: SparkSession, warehouse: Path,
    tmp_path: Path,
) -> None:  # fmt: skip
    """A limit on the size of files replaces the full disk: both fail a write in its middle."""
    serving, port = process
    schema = "tests_full_disk"
    writer = many_rows(tmp_path, schema)
    client = Client.at(port)
    # Java writes the library that compresses files to disk when it is used first.
    first = small(tmp_path, schema=schema, table="first")
    assert client.write(first).success

    limit_files(serving.pid, 40_000)
    with pytest.raises(grpc.RpcError) as failed:
        client.write(writer)
    limit_files(serving.pid, resource.RLIM_INFINITY)

    assert failed.value.code() == grpc.StatusCode.INTERNAL
    assert "TASK_WRITE_FAILED" in str(failed.value.details())
    assert [client.write(writer).success for _ in range(2)] == [True, True]
    register(spark, schema, warehouse)
    landed = spark.table(f"{schema}.items__landing")
    found = spark.table(f"{schema}.items")
    assert (landed.count(), found.count(), found.select("id").distinct().count()) == (ROWS,) * 3
    drop_schema(spark, schema, warehouse)


def test_a_second_process_with_the_same_embedded_metastore_is_refused(tmp_path: Path) -> None:
    settings = Path(os.environ["SPARK_CONF_DIR"])
    shutil.copytree(settings, tmp_path / "conf")
    defaults = tmp_path / "conf/spark-defaults.conf"
    home = re.sub(
        r'derby.system.home=[^" ]+', f"derby.system.home={tmp_path}", defaults.read_text()
    )
    defaults.write_text(home)
    variables = {**os.environ, "SPARK_CONF_DIR": str(tmp_path / "conf")}
    serve = [str(Path(sys.executable).with_name("dbt-history")), "serve", "--root", str(tmp_path)]

    with subprocess.Popen(
        [*serve, "--port", "0"], env=variables, stdout=subprocess.PIPE, text=True
    ) as first:
        assert first.stdout is not None
        assert "serving at" in first.stdout.readline()
        second = subprocess.run([*serve, "--check"], env=variables, capture_output=True, text=True)
        first.terminate()
        assert first.wait(60) == 0
    assert second.returncode == 3, second.stderr
    assert "another process has the embedded metastore open" in second.stderr
    assert "Traceback" not in second.stderr
