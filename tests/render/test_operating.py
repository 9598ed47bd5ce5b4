"""The guide, the unit and the Containerfile of the destination agree with the command."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import threading
import time
import tomllib
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import click
import grpc
import pytest
from dbt.config.utils import parse_cli_yaml_string
from flit_core import buildapi  # type: ignore[import-untyped]
from grpc_health.v1 import health_pb2, health_pb2_grpc

from dbt_history import commit_log
from dbt_history.commit_log import Entry
from dbt_history.landing.errors import RefusedError, first_line
from dbt_history.landing.types import ColumnType
from dbt_history.options import HELP
from dbt_history.serve import destination_pb2 as pb
from dbt_history.serve import engine, service
from dbt_history.serve.command import serve_command
from dbt_history.serve.destination import CLIENT_WAITS, Destination
from dbt_history.serve.engine import find_package, yaml_text
from dbt_history.serve.migrations import MIGRATIONS, migrated_value
from dbt_history.serve.service import SERVICE
from dbt_history.serve.tables import Target
from tests.support.markdown import blocks, page, table_after
from tests.support.project import ROOT
from tests.support.waiting import TIMEOUT

GUIDE = "docs/guides/landing.md"
CONTAINERFILE = "Containerfile"


def parsed(arguments: list[str], folder: Path) -> dict[str, object]:
    """The options of `dbt-history serve …`; the paths are created below the folder."""
    paths = {"--root", "--project-dir", "--tls-key", "--tls-cert", "--token-file"}
    found = list(arguments)
    for index, argument in enumerate(found[:-1]):
        if argument in paths:
            path = folder / found[index + 1].strip("/").replace("/", "_")
            path.mkdir() if argument in ("--root", "--project-dir") else path.touch()
            found[index + 1] = str(path)
    # Click keeps the help option of a command's first context, and other tests ask with `-h`.
    return serve_command.make_context("serve", found, None, **HELP).params


def test_the_guide_lists_every_option_of_serve() -> None:
    part = page(GUIDE).split("## gRPC destination")[1].split("## What the partner guide asks")[0]
    described = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", part))
    options = {
        name
        for parameter in serve_command.params
        if isinstance(parameter, click.Option)
        for name in parameter.opts
    }
    others = {"--rm", "--stop-timeout"}
    assert options - described == set()
    assert described - options - others == set()


def test_the_commands_of_the_unit_and_the_containers_are_valid(tmp_path: Path) -> None:
    (unit,) = blocks(page(GUIDE), "ini")
    settings = dict(re.findall(r"^(\w+)=((?:.*\\\n)*.*)$", unit, re.M))
    _, called, *arguments = shlex.split(settings["ExecStart"].replace("\\\n", " "))
    (tmp_path / "unit").mkdir()
    assert called == "serve"
    assert parsed(arguments, tmp_path / "unit")["metrics"] == ("127.0.0.1", 9090)
    assert settings["KillMode"] == "mixed"
    own = "%C/" + settings["CacheDirectory"]
    assert f"\nEnvironment=TMPDIR={own} SPARK_LOCAL_DIRS={own}\n" in unit

    (entry,) = re.findall(r"^ENTRYPOINT \[(.*)\]$", page(CONTAINERFILE), re.M)
    own = [part.strip().strip('"') for part in entry.split(",")][2:]
    runs = re.findall(r"^podman run (?:.*\\\n)*.*$", page(GUIDE), re.M)
    assert len(runs) == 2
    for number, run in enumerate(runs):
        after = shlex.split(run.replace("\\\n", " "))
        more = after[after.index("dbt-history") + 1 :]
        (tmp_path / str(number)).mkdir()
        assert parsed(own + more, tmp_path / str(number))["root"]


def test_the_image_has_the_locked_jars_and_what_the_package_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = page(CONTAINERFILE).replace("\\\n", " ")
    locked = [line.split()[0].split(":") for line in page("requirements/jars.lock").splitlines()]
    delta = {
        f"{group}_{name}-{version}.jar"
        for group, name, version in (parts for parts in locked if parts[0] == "io.delta")
    }
    assert {*re.findall(r"[.]state/jars/(\S+)", text)} == delta
    assert {*re.findall(r"file:///opt/jars/([^\s,']+)", text)} == delta
    ignored = page(".dockerignore")

    for sources, folder in re.findall(r"^COPY (.*) (/opt/\S+)$", text, re.M):
        for source in sources.split():
            assert f"!{source}\n" in ignored or source.startswith(".state/jars/io.delta_")
            to = tmp_path / folder.removeprefix("/opt/").strip("/")
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, to, dirs_exist_ok=True)
            else:
                to.mkdir(exist_ok=True)
                shutil.copy(ROOT / source, to)
    package = tmp_path / "dbt_history"
    assert find_package(package) == package
    monkeypatch.chdir(package)
    with zipfile.ZipFile(tmp_path / buildapi.build_wheel(str(tmp_path))) as wheel:
        assert "dbt_history/serve/command.py" in wheel.namelist()


def test_the_image_has_the_locked_packages_of_the_destination() -> None:
    def locked(name: str) -> dict[str, str]:
        return dict(re.findall(r"^([\w-]+)==([\w.]+)", page(f"requirements/{name}.lock"), re.M))

    project = tomllib.loads(page("pyproject.toml"))["project"]
    extras = project["optional-dependencies"]
    needed = [*project["dependencies"], *extras["dbt"], *extras["serve"]]
    names = {re.split(r"[^\w-]", text)[0].lower() for text in needed} - {"dbt-history"}
    assert names <= locked("serve").keys()
    assert locked("serve").items() <= locked("dev").items()
    # pip would fetch it from elsewhere (docs/decisions/0001).
    assert "dbt-core-experimental-parser" not in locked("serve")
    assert "--no-deps --require-hashes" in page(CONTAINERFILE)


def test_every_call_and_migration_is_in_the_table_of_the_guide_with_tests_that_exist() -> None:
    rows = table_after(page(GUIDE), "## What the partner guide asks")
    tests = {row["test"] for row in rows}
    files = (ROOT / "tests/functional").glob("test_*.py")
    text = "".join(file.read_text() for file in files)
    written = set(re.findall(r"^def (test_\w+)", text, re.M))
    assert tests - written == set()

    named = set(re.findall(r"\w+", " ".join(row["call"] for row in rows)))
    assert {method.name for method in SERVICE.methods} - named == set()
    migrations = {name.upper() for name in MIGRATIONS} - {"SYNC_MODE_MIGRATION"}
    modes = set(pb.SyncModeMigrationType.keys())
    assert migrations | modes <= named


@pytest.mark.thorough
def test_the_image_can_be_built_and_passes_its_self_test() -> None:
    builder = next((name for name in ("podman", "docker") if shutil.which(name)), None)
    if builder is None or subprocess.run([builder, "info"], capture_output=True).returncode:
        pytest.skip("no builder of images answers")
    command = [builder, "build", "--quiet", "--file", CONTAINERFILE, "."]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    image = built.stdout.split()[-1]
    checked = subprocess.run([builder, "run", "--rm", image], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert {line.split()[0] for line in checked.stdout.splitlines()} == {"ok"}


def log_of(name: str, *versions: int) -> list[Entry]:
    """A log, newest first."""
    return [
        {"version": version, "at": version, "operation": name, "operationParameters": {}}
        | {"userMetadata": f"{name} {version}", "operationMetrics": {}}
        for version in sorted(versions, reverse=True)
    ]


@pytest.mark.parametrize(
    ("log", "limits"),
    [
        pytest.param(log_of("a", *range(40)), [20], id="10 more commits"),
        pytest.param(log_of("a", *range(51)), [20, None], id="21 more commits"),
        pytest.param(log_of("b", *range(40)), [20, None], id="another table with this name"),
        pytest.param(log_of("a", *range(25, 31)), [20], id="cleaned up, one more"),
        pytest.param(log_of("a", *range(5)), [20, None], id="shorter"),
    ],
)
def test_a_log_that_was_read_before_is_read_from_its_newest_commits(
    monkeypatch: pytest.MonkeyPatch, log: list[Entry], limits: list[int | None]
) -> None:
    asked: list[int | None] = []
    now = log_of("a", *range(30))

    def read(_spark: object, _table: str, limit: int | None = None) -> list[Entry]:
        asked.append(limit)
        return now[:limit]

    monkeypatch.setattr(commit_log, "read_log", read)
    logs = commit_log.CommitLogs()
    spark: Any = None
    first = logs.read(spark, "t")
    now = log
    again = logs.read(spark, "t")

    assert [entry["userMetadata"] for entry in first] == [f"a {n}" for n in range(29, -1, -1)]
    assert [entry["userMetadata"] for entry in again] == [entry["userMetadata"] for entry in log]
    assert asked == [None, *limits]


class LockedUntilTheClientHasLeft:
    """In place of the lock of a table."""

    def __init__(self) -> None:
        self.is_waiting = threading.Event()

    def __enter__(self) -> None:
        self.is_waiting.set()
        while CLIENT_WAITS.get()():
            time.sleep(0.01)

    def __exit__(self, *_: object) -> None:
        pass


def test_a_waiting_call_blocks_no_health_check_and_does_nothing_once_its_client_has_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "MAX_WORKERS", 1)
    none: Any = None
    destination = Destination(none, tmp_path, none)
    lock: Any = LockedUntilTheClientHasLeft()
    destination.locks["shop.items"] = lock
    own = service.Service(destination)
    server, port = service.start(own, "127.0.0.1:0")
    columns = [pb.Column(name="id", type=pb.DataType.INT)]
    request = pb.CreateTableRequest(
        schema_name="shop", table=pb.Table(name="items", columns=columns)
    )
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        waiting = service.stub(channel, "CreateTable").future(request)
        assert lock.is_waiting.wait(TIMEOUT)
        check = health_pb2_grpc.HealthStub(channel).Check
        status = check(health_pb2.HealthCheckRequest(), timeout=TIMEOUT / 20).status
        waiting.cancel()
        while own.metrics.registry.get_sample_value("dbt_history_calls_in_progress"):
            time.sleep(0.01)
        server.stop(None).wait()

    assert status == health_pb2.HealthCheckResponse.SERVING
    labels = {"call": "CreateTable", "outcome": "unavailable"}
    assert own.metrics.registry.get_sample_value("dbt_history_calls_total", labels) == 1


def test_a_table_whose_landing_table_has_too_long_a_name_is_refused() -> None:
    spark: Any = None
    assert Target(spark, "shop", "a" * 236).landing.name.endswith("a__landing")
    with pytest.raises(RefusedError, match="it has 237 characters, more than 236"):
        Target(spark, "shop", "a" * 237)


def test_a_log_is_forgotten_after_a_day_and_its_digests_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[str, int | None]] = []
    now = 0.0
    record = commit_log.new_record(batch=7, digests=[["a.csv", "f0"]])
    (entry,) = log_of("a", 5)
    log = [{**entry, "userMetadata": json.dumps(record)}, *log_of("a", *range(5))]

    def read(_spark: object, table: str, limit: int | None = None) -> list[Entry]:
        asked.append((table, limit))
        return log

    monkeypatch.setattr(commit_log, "read_log", read)
    monkeypatch.setattr("time.monotonic", lambda: now)
    logs = commit_log.CommitLogs()
    spark: Any = None
    for hour in (0.0, 23.0, 25.0):
        now = hour * 3600
        newest = logs.read(spark, "t")[0]
    now = 50 * 3600.0
    logs.read(spark, "u")

    assert commit_log.batch_number(newest["userMetadata"]) == 7
    assert "digests" not in newest["userMetadata"]
    assert asked == [("t", None), ("t", 20), ("t", None), ("u", None)]
    assert list(logs.known) == ["u"]


def test_a_migration_passes_every_character_of_its_arguments_to_dbt() -> None:
    letters = [chr(code) for code in range(0x11000) if not 0xD800 <= code <= 0xDFFF]
    arguments = {"value": "".join([*letters, "\U0001f600", "\U0010ffff"]), "key": ["a", None, True]}

    text = yaml_text(arguments)

    assert parse_cli_yaml_string(text, "args") == arguments
    assert text.isascii()
    assert "\n" not in text


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        (ColumnType("DECIMAL", 5, 2), "1.50", "1.50"),
        (ColumnType("DECIMAL", 5, 2), "1.239", None),
        (ColumnType("UTC_DATETIME"), "2005-05-23T20:57:00Z", "2005-05-23T20:57:00Z"),
        (ColumnType("UTC_DATETIME"), "10:00", None),
        (ColumnType("NAIVE_TIME"), "10:00:00.1234567", "10:00:00.123456"),
        (ColumnType("BOOLEAN"), "yes", None),
        (ColumnType("BINARY"), "Zm9v", "foo"),
        (ColumnType("BINARY"), "foo", None),
        (ColumnType("STRING"), "", ""),
    ],
    ids=str,
)
def test_a_value_of_a_migration_is_one_that_a_batch_can_have(
    type_: ColumnType, text: str, value: str | None
) -> None:
    if value is not None:
        assert migrated_value("c", text, type_) == value
        return
    with pytest.raises(RefusedError, match=re.escape(f"c: {text!r} is not a valid {type_}")) as no:
        migrated_value("c", text, type_)
    assert text not in first_line(no.value)


def test_a_binary_value_of_a_migration_must_be_text() -> None:
    with pytest.raises(RefusedError, match="a migration that is not UTF-8 cannot be set"):
        migrated_value("c", "/w==", ColumnType("BINARY"))


def test_arguments_that_dbt_refuses_are_in_no_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "yaml_text", lambda arguments: "[a secret")
    running = engine.Engine(find_package(ROOT))

    with pytest.raises(engine.EngineError) as failed:
        running.run_operation("update_column_value", {})

    running.close()
    assert str(failed.value) == "dbt refused the arguments of its command"


class RecordingSession:
    """A session that keeps its statements, each with the record that its commit would have."""

    def __init__(self) -> None:
        self.record: str | None = None
        self.statements: list[tuple[str, str | None]] = []
        self.conf = SimpleNamespace(set=self.set, unset=self.unset)

    def set(self, name: str, value: str) -> None:
        assert name == commit_log.USER_METADATA
        self.record = value

    def unset(self, name: str) -> None:
        assert name == commit_log.USER_METADATA
        self.record = None

    def sql(self, statement: str) -> None:
        self.statements.append((statement, self.record))


def test_what_serve_does_to_the_rows_and_columns_of_a_table_is_recorded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`verify_history` takes an update or a drop without a record for a change by hand."""
    session = RecordingSession()
    target = Target(cast(Any, session), "shop", "items")
    for name in ("drop_landed", "enable", "enable_for", "set_properties", "forget_migrations"):
        monkeypatch.setattr(Target, name, lambda *_: None)

    target.change_type("n", "double", "string")
    target.drop_column("m")

    found = [
        (statement.split("`items` ")[1].split("`")[0], json.loads(record or "{}"))
        for statement, record in session.statements
    ]
    assert [(begin, record.get("history_operation")) for begin, record in found] == [
        ("add columns (", None),
        ("set ", "change_type"),
        ("drop column ", "drop_column"),
        ("rename column ", None),
        ("drop column ", "drop_column"),
    ]
    # It is no record of a batch: what it says of the table's batches does not change.
    assert not any(commit_log.read_record(record) for _, record in session.statements)
