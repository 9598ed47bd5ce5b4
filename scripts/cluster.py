"""A small Spark cluster on this machine: a standalone master, workers, a thrift and Connect server.

    scripts/cluster.py start [--workers N] [--cores N]     does nothing if it is running
    scripts/cluster.py stop
    scripts/cluster.py status

All processes listen on the loopback address, on ports that are free at start. The state is in
`.state/cluster` (or `--folder`): logs, conf, warehouse, metastore, `env.sh` with the ports, and
`cluster.json` with the processes. Only these processes are ended, identified by their ids and start
times. Uses only the standard library, and the programs installed by `make setup`.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
STATE = ROOT / ".state"
FOLDER = STATE / "cluster"
HOST = "127.0.0.1"
JAVA = "-XX:+UseSerialGC -XX:ReservedCodeCacheSize=512m -Duser.timezone=UTC"
# Seconds until all servers must answer (13 on two idle cores), and until a
# process must end.
START_TIMEOUT = 900
STOP_TIMEOUT = 60
PORTS = ("master", "master_ui", "worker_ui", "driver_ui", "thrift", "connect")
LOGGING = """# Failures with their cause: clients receive only the message.
rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n
"""


class ClusterError(Exception):
    """The cluster does not start, or the checkout is not set up."""


@dataclass(frozen=True)
class Process:
    """A process of the cluster. `started` distinguishes it from a later one with the same id."""

    name: str
    pid: int
    started: str

    def is_running(self) -> bool:
        return started_at(self.pid) == self.started

    def end(self) -> None:
        """Terminate the process; kill it if it does not end in time."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if not self.is_running():
                return
            os.kill(self.pid, number)
            deadline = time.monotonic() + STOP_TIMEOUT
            while self.is_running() and time.monotonic() < deadline:
                time.sleep(0.1)


def started_at(pid: int) -> str | None:
    """The start time of a process, in the system's unit; None if it does not run.

    A zombie counts as ended.
    """
    if Path("/proc/self/stat").exists():
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return None
        # The second field is a name in parentheses that may contain any character.
        fields = stat.rpartition(")")[2].split()
        return None if fields[0] in "ZX" else fields[19]
    command = ["ps", "-o", "stat=,lstart=", "-p", str(pid)]
    output = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
    return " ".join(output[1:]) if output and not output[0].startswith("Z") else None


def free_ports(count: int) -> list[int]:
    """Distinct free ports."""
    held = []
    try:
        for _ in range(count):
            held.append(socket.socket())
            held[-1].bind((HOST, 0))
        return [one.getsockname()[1] for one in held]
    finally:
        for one in held:
            one.close()


def is_listening(port: int) -> bool:
    try:
        with socket.create_connection((HOST, port), timeout=2):
            return True
    except OSError:
        return False


def run_environment() -> dict[str, str]:
    """The variables that `scripts/run` sets. Raises ClusterError if nothing is set up."""
    if not (STATE / "env.sh").is_file():
        raise ClusterError("nothing is set up here yet; run: make setup")
    command = ["sh", "-c", '. "$1" && env -0', "sh", str(STATE / "env.sh")]
    output = subprocess.run(command, capture_output=True, check=True).stdout.decode()
    return dict(line.split("=", 1) for line in output.split("\0") if "=" in line)


class Cluster:
    """A cluster with its state in `folder`.

    settings    of Spark, beyond the usual ones
    java        further options of Java
    """

    def __init__(
        self, folder: Path, settings: Mapping[str, str] | None = None, java: str = ""
    ) -> None:
        self.folder = folder.resolve()
        self.settings = dict(settings or {})
        self.java = f"{JAVA} {java}".strip()

    @property
    def warehouse(self) -> Path:
        return self.folder / "warehouse"

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """A lock, so that only one process starts or stops the cluster at a time."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def record(self) -> dict[str, Any]:
        """The cluster: {'processes', 'ports', 'workers', 'cores'}; empty if there is none."""
        path = self.folder / "cluster.json"
        found: dict[str, Any] = json.loads(path.read_text()) if path.is_file() else {}
        return found

    def processes(self) -> list[Process]:
        return [Process(**one) for one in self.record().get("processes", [])]

    def is_up(self) -> bool:
        """Whether all processes run and the servers answer."""
        processes, ports = self.processes(), self.record().get("ports", {})
        return (
            bool(processes)
            and all(process.is_running() for process in processes)
            and is_listening(ports["thrift"])
            and is_listening(ports["connect"])
        )

    @property
    def thrift_port(self) -> int:
        return int(self.record()["ports"]["thrift"])

    @property
    def remote(self) -> str:
        """The address for Spark Connect."""
        return f"sc://{HOST}:{self.record()['ports']['connect']}"

    def start(self, workers: int, cores: int = 2) -> bool:
        """Start the cluster and wait until it answers; False if it was already running.

        The `workers` have one executor each and share the `cores`; without workers there is no
        master either, and the server itself runs the tasks. Raises ClusterError after ending all
        started processes.
        """
        with self._locked():
            if self.is_up():
                return False
            self._end_all()
            ports = dict(zip(PORTS, free_ports(len(PORTS)), strict=True))
            record: dict[str, Any] = {"ports": ports, "workers": workers, "cores": cores}
            self._write_settings(ports, cores)
            try:
                self._start_all(record)
            except BaseException:
                self._end_all()
                raise
            self._write("env.sh", self._environment(ports))
            return True

    def stop(self) -> bool:
        """End all processes; False if none was running."""
        with self._locked():
            return self._end_all()

    def _write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def _environment(self, ports: Mapping[str, int]) -> str:
        """A shell file that `scripts/run` reads while the cluster is up."""
        variables = {
            "DBT_HISTORY_THRIFT_PORT": ports["thrift"],
            "DBT_HISTORY_CONNECT": f"sc://{HOST}:{ports['connect']}",
        }
        # A value set by the caller has priority: it may name another cluster.
        return "".join(f'export {n}="${{{n}:-{value}}}"\n' for n, value in variables.items())

    def _write_settings(self, ports: Mapping[str, int], cores: int) -> None:
        """Write Spark's settings; docs/decisions/0070 gives the reason for each."""
        for name in ("logs", "work", "warehouse", "metastore"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        jars = STATE / "jars" / "*"
        settings = {
            "spark.driver.extraClassPath": jars,
            "spark.executor.extraClassPath": jars,
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.sql.warehouse.dir": self.warehouse.as_uri(),
            "spark.driver.memory": "2g",
            "spark.executor.memory": "1g",
            "spark.driver.extraJavaOptions":
                f'{self.java} "-Dderby.system.home={self.folder / "metastore"}"',
            "spark.executor.extraJavaOptions": self.java,
            "spark.driver.host": HOST,
            "spark.driver.bindAddress": HOST,
            "spark.ui.port": ports["driver_ui"],
            "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
            "spark.connect.grpc.binding.address": HOST,
            "spark.connect.grpc.binding.port": ports["connect"],
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.shuffle.partitions": cores,
            "spark.sql.sources.parallelPartitionDiscovery.parallelism": cores,
            "spark.hadoop.hive.metastore.disallow.incompatible.col.type.changes": "false",
            "spark.databricks.delta.snapshotPartitions": 2,
            "spark.databricks.delta.changeDataFeed.timestampOutOfRange.enabled": "true",
            **self.settings,
        }  # fmt: skip
        lines = (f"{name} {value}\n" for name, value in settings.items())
        self._write("conf/spark-defaults.conf", "".join(lines))
        self._write("conf/log4j2.properties", LOGGING)

    def _start_all(self, record: dict[str, Any]) -> None:
        ports, workers, cores = record["ports"], record["workers"], record["cores"]
        master = f"spark://{HOST}:{ports['master']}" if workers else f"local[{cores}]"
        deploy = "org.apache.spark.deploy"
        commands: list[tuple[str, list[str], int]] = []
        if workers:
            own = ["--host", HOST, "--port", str(ports["master"])]
            own += ["--webui-port", str(ports["master_ui"])]
            commands.append(
                ("master", ["spark-class", f"{deploy}.master.Master", *own], ports["master"])
            )
        for number in range(1, workers + 1):
            # The web pages of further workers use the next free port.
            own = ["--host", HOST, "--webui-port", str(ports["worker_ui"])]
            own += ["--cores", str(max(1, cores // workers)), "--memory", "1g"]
            own += ["--work-dir", str(self.folder / "work"), master]
            commands.append(
                (f"worker_{number}", ["spark-class", f"{deploy}.worker.Worker", *own], 0)
            )
        server = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"
        hive = ["--hiveconf", f"hive.server2.thrift.bind.host={HOST}"]
        hive += ["--hiveconf", f"hive.server2.thrift.port={ports['thrift']}"]
        submit = ["spark-submit", "--class", server, "--name", "dbt_history", "--master", master]
        commands.append(("server", [*submit, "spark-internal", *hive], ports["thrift"]))

        record["processes"] = []
        deadline = time.monotonic() + START_TIMEOUT
        for name, command, port in commands:
            if name == "server" and workers:
                self._wait(record, deadline, "master", lambda: alive_workers(ports) == workers)
            process = self._launch(name, command)
            record["processes"].append(asdict(process))
            self._write("cluster.json", json.dumps(record, indent=2) + "\n")
            if port:
                self._wait(record, deadline, name, lambda port=port: is_listening(port))
        self._wait(record, deadline, "server", lambda: is_listening(ports["connect"]))

    def _launch(self, name: str, command: list[str]) -> Process:
        environment = run_environment()
        environment |= {
            "SPARK_CONF_DIR": str(self.folder / "conf"),
            "SPARK_LOCAL_DIRS": str(self.folder / "work"),
            "SPARK_DAEMON_MEMORY": "512m",
            # The master and the workers only manage processes.
            "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        }
        program = Path(environment["SPARK_HOME"]) / "bin" / command[0]
        with (self.folder / "logs" / f"{name}.log").open("w") as log:
            process = subprocess.Popen(
                [str(program), *command[1:]],
                cwd=self.folder / "work",
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return Process(name, process.pid, started_at(process.pid) or "")

    def _wait(self, record: Mapping[str, Any], deadline: float, name: str, ready: Any) -> None:
        """Wait for `ready()`. Raises ClusterError at the deadline, or if a process has ended."""
        while not ready():
            gone = [one["name"] for one in record["processes"] if not Process(**one).is_running()]
            if gone or time.monotonic() > deadline:
                name = gone[0] if gone else name
                log = self.folder / "logs" / f"{name}.log"
                tail = "\n".join(log.read_text(errors="replace").splitlines()[-30:])
                what = "has ended" if gone else f"does not answer after {START_TIMEOUT} seconds"
                raise ClusterError(f"the {name} {what}; the end of {log}:\n{tail}")
            time.sleep(0.2)

    def _end_all(self) -> bool:
        """End the server first, so that its executors exit on their own."""
        running = [process for process in self.processes() if process.is_running()]
        for process in reversed(running):
            process.end()
        for name in ("cluster.json", "env.sh"):
            (self.folder / name).unlink(missing_ok=True)
        shutil.rmtree(self.folder / "work", ignore_errors=True)
        return bool(running)


def alive_workers(ports: Mapping[str, int]) -> int:
    """The number of workers registered with the master."""
    try:
        with urllib.request.urlopen(f"http://{HOST}:{ports['master_ui']}/json/", timeout=5) as page:
            return int(json.load(page)["aliveworkers"])
    except (OSError, ValueError, KeyError):
        return 0


def describe(cluster: Cluster) -> str:
    record = cluster.record()
    ports = record["ports"]
    return "\n".join(
        [
            f"thrift     {HOST}:{ports['thrift']}    make build TARGET=cluster",
            f"connect    {cluster.remote}    make build TARGET=connect",
            f"workers    {record['workers']}, {record['cores']} cores together",
            f"pages      http://{HOST}:{ports['driver_ui']} (queries)"
            + (f", http://{HOST}:{ports['master_ui']} (workers)" if record["workers"] else ""),
            f"logs       {cluster.folder / 'logs'}",
            "stop       make cluster-stop",
        ]
    )


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="scripts/cluster.py", description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=["start", "stop", "status"])
    parser.add_argument("--folder", type=Path, default=FOLDER, help="folder of its state")
    parser.add_argument(
        "--workers", type=int, default=1, help="executors; 0: the server runs the tasks"
    )
    parser.add_argument("--cores", type=int, default=2, help="cores of all workers together")
    asked = parser.parse_args(arguments)
    cluster = Cluster(asked.folder)
    if asked.action == "stop":
        print("cluster: stopped" if cluster.stop() else "cluster: was not running")
        return 0
    if asked.action == "status":
        is_up = cluster.is_up()
        print(describe(cluster) if is_up else "cluster: is not running")
        return 0 if is_up else 1
    started = time.monotonic()
    try:
        is_new = cluster.start(asked.workers, asked.cores)
    except ClusterError as error:
        print(f"cluster: {error}", file=sys.stderr)
        return 1
    seconds = time.monotonic() - started
    print(f"cluster: up after {seconds:.0f} s" if is_new else "cluster: is already running")
    print(describe(cluster))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
