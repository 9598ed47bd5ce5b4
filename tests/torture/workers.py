"""Worker processes as the campaign sees them: given jobs, paused, killed."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.project import ROOT

Step = Mapping[str, Any]
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Job:
    """What a worker does in a folder of tables; see tests/torture/worker.py."""

    steps: Sequence[Step]
    files: Mapping[str, str] = field(default_factory=dict)
    queries: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """The error of each step, None if it succeeded, and the rows of each query as text."""

    outcomes: list[str | None]
    rows: dict[str, Rows]


class Worker:
    """A process with Spark and dbt in its own process group; `folder` has its project."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.torture.worker", str(folder)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        self.is_ready = False

    def read(self) -> Any:
        assert self.process.stdout is not None
        while line := self.process.stdout.readline():
            if line.startswith(("{", '"ready"', '"waiting"')):
                return json.loads(line)
        raise RuntimeError("the worker ended")

    def write(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def prepare(self, folder: Path, job: Job) -> None:
        """Give it a job; it waits before the first step."""
        if not self.is_ready:
            assert self.read() == "ready"
            self.is_ready = True
        shown = {"steps": list(job.steps), "files": dict(job.files), "queries": dict(job.queries)}
        self.write(json.dumps({**shown, "folder": str(folder), "wait": True}, default=str))
        assert self.read() == "waiting"

    def go(self) -> None:
        self.write("")

    def answer(self) -> Answer:
        found = self.read()
        return Answer(found["outcomes"], found["rows"])

    def do(self, folder: Path, job: Job) -> Answer:
        self.prepare(folder, job)
        self.go()
        return self.answer()

    def signal(self, number: int) -> None:
        """Send a signal to Python and Java."""
        os.killpg(self.process.pid, number)

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        self.process.wait()

    def interrupt(
        self, tables: Path, copies: Sequence[Path], moments: Sequence[Callable[[], bool]]
    ) -> int:
        """Let a prepared job run, and copy its tables at each moment; the processes are stopped.

        What a copy has is what a SIGKILL at that moment leaves: neither closes a file, and Delta
        writes no file twice. Returns the number of copies made before the job ended.
        """
        self.go()
        for made, (copy, is_now) in enumerate(zip(copies, moments, strict=True)):
            while not is_now():
                if self._has_answered():
                    return made
                time.sleep(0.001)
            self.signal(signal.SIGSTOP)
            shutil.copytree(tables, copy)
            self.signal(signal.SIGCONT)
        return len(copies)

    def _has_answered(self) -> bool:
        assert self.process.stdout is not None
        return bool(select.select([self.process.stdout], [], [], 0)[0])
