"""A short form of `make torture`: one job of each writer is interrupted, and two races."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.project import ROOT

pytestmark = pytest.mark.thorough


def test_a_short_campaign_finds_no_problem() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.torture", "--kills", "48", "--races", "2"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "**0 problems**" in done.stdout
