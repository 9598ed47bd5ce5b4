"""A short form of `make torture`: one job of each writer is interrupted, two races, MariaDB."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.support.project import ROOT

pytestmark = pytest.mark.thorough


def played(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tests.torture", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_short_campaign_finds_no_problem() -> None:
    shown = played("--kills", "48", "--races", "2", "--comparisons", "0")
    assert "**0 problems**" in shown


def test_every_kind_of_table_agrees_with_mariadb() -> None:
    shown = played("--kills", "0", "--races", "0", "--comparisons", "1")
    if left_out := re.search("MariaDB is left out: .*", shown):
        pytest.skip(left_out[0])
    assert "**0 differences**" in shown
