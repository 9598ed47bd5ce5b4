"""Runs run-operations of the dbt package, with the dbt of the same environment."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


class OperationError(Exception):
    """dbt did not finish. Has its output."""


def dbt_options(profiles: Path | None, target: str | None) -> list[str]:
    """The profile and the target as options of dbt, which may run in another folder."""
    options = ["--profiles-dir", str(profiles.resolve())] if profiles else []
    return options + (["--target", target] if target else [])


def dbt_program() -> str:
    """The dbt beside this Python, because its environment may not be activated."""
    beside = Path(sys.executable).with_name("dbt")
    return str(beside) if beside.is_file() else "dbt"


def run_operation(
    project: Path, macro: str, arguments: Mapping[str, Any], options: Sequence[str]
) -> str:
    """The output of `dbt run-operation`. Raises OperationError."""
    command = [dbt_program(), "--quiet", "--no-use-colors", "run-operation", macro]
    try:
        done = subprocess.run(
            [*command, "--args", json.dumps(arguments), *options],
            cwd=project,
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        raise OperationError("dbt is not installed") from None
    if done.returncode:
        raise OperationError(done.stdout + done.stderr)
    return done.stdout
