"""Processes that run dbt beside the tests: started, released together, killed."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from dbt.adapters.spark.session import Cursor

from tests.support.project import ROOT, Project
from tests.support.waiting import TIMEOUT


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


def start_python(module: str, *arguments: str, ready: str) -> tuple[subprocess.Popen[str], str]:
    """Start a Python process; returns it and its line that contains `ready`."""
    process = subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    while ready not in (line := process.stdout.readline()):
        assert line, "the process ended before it was ready"
    return process, line


def start(folder: Path, warehouse: Path, schema: str, model: str = "h") -> subprocess.Popen[str]:
    """A process that waits to run a model or operation; `folder` has the input of run_dbt."""
    arguments = (str(folder / "project"), str(warehouse), schema, model)
    return start_python("tests.support.run_dbt", *arguments, ready="ready")[0]


def release(process: subprocess.Popen[str]) -> None:
    """Let the process run the model."""
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def last_line(process: subprocess.Popen[str]) -> str:
    """The last line of its output; it must have succeeded."""
    output, _ = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0, output
    return output.strip().splitlines()[-1]


def together(processes: Sequence[subprocess.Popen[str]]) -> list[str]:
    """Let all of them run concurrently; returns their last lines."""
    for process in processes:
        release(process)
    return [last_line(process) for process in processes]


def descendants(process: int) -> dict[int, str]:
    """The processes that a process and its children started, with their names."""
    parents, names = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            head, _, tail = path.read_text().rpartition(")")
        except OSError:
            continue
        found = int(head.split(" ", 1)[0])
        names[found], parents[found] = head.partition("(")[2], int(tail.split()[1])

    def is_below(found: int) -> bool:
        while found := parents.get(found, 0):
            if found == process:
                return True
        return False

    return {found: names[found] for found in parents if is_below(found)}


def java_of(process: int) -> int:
    """The JVM that a process started."""
    return next(child for child, name in descendants(process).items() if name == "java")


def kill(process: subprocess.Popen[str]) -> None:
    """Send SIGKILL, which allows no cleanup."""
    process.send_signal(signal.SIGKILL)
    process.wait()


def kill_at(process: subprocess.Popen[str], commit: Path) -> None:
    """Let it run, and kill it as soon as this file of a Delta log exists."""
    kill_when(process, commit.exists)


def kill_when(process: subprocess.Popen[str], happened: Callable[[], bool]) -> None:
    """Let it run, and kill it as soon as the condition is true."""
    run_until(process, happened)
    kill(process)


def run_until(process: subprocess.Popen[str], happened: Callable[[], bool]) -> None:
    """Let it run, and return as soon as the condition is true; it runs on."""
    release(process)
    wait_until(process, happened)


def wait_until(process: subprocess.Popen[str], happened: Callable[[], bool]) -> None:
    """Return as soon as the condition is true, which it becomes while the process runs."""
    deadline = time.monotonic() + TIMEOUT
    while not happened():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.005)


def fail_before(patch: pytest.MonkeyPatch, statement: str) -> None:
    """Fail every statement of dbt from the first one that contains this text."""
    execute = Cursor.execute
    failing = False

    def run(self: Cursor, sql: str, *arguments: Any) -> None:
        nonlocal failing
        failing = failing or statement in sql
        if failing:
            raise RuntimeError("killed")
        execute(self, sql, *arguments)

    patch.setattr(Cursor, "execute", run)


def hold_run(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    variables: str,
    until: str = "insert into",
    name: str = "log",
) -> None:
    """Plan a run of a model, and hold its first statement with `until` until the next run's."""
    held: list[str] = []
    execute = Cursor.execute

    def hold(cursor: Cursor, sql: str, *parameters: Any) -> None:
        """Stop the first run before it writes; its staged rows stay for the statement."""
        if until in sql.lower():
            held.append(sql)
        if held:
            raise RuntimeError("held")
        execute(cursor, sql)

    def release(cursor: Cursor, sql: str, *parameters: Any) -> None:
        """When the second run comes to this statement, let the first run's INSERT finish first."""
        if until in sql.lower() and held:
            execute(cursor, held.pop())
        execute(cursor, sql)

    monkeypatch.setattr(Cursor, "execute", hold)
    project.run(name, options=["--vars", variables], check=False)
    assert len(held) == 1
    monkeypatch.setattr(Cursor, "execute", release)
