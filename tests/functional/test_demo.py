"""`dbt-history demo`: from an empty folder to the page, in a process of its own."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.project import ROOT

EXPECTED = ROOT / "seeds/examples/fivetran/fivetran_history_expected.csv"


@pytest.mark.thorough
def test_the_demo_shows_the_documented_versions_in_a_page(tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("dbt-history")
    done = subprocess.run(
        [str(program), "demo", "--no-open"],
        env=os.environ | {"TMPDIR": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    (folder,) = tmp_path.glob("dbt_history_demo_*")
    lines = done.stdout.splitlines()
    assert lines == [
        f"building a history in {folder}",
        "items: 5 batches: 10 added, 7 closed, 0 removed, 0 skipped, 0 replayed",
        f"10 versions of 1 tables in {folder / 'history.html'}",
    ]
    html = (folder / "history.html").read_text("utf-8")
    data = json.loads(html.split('type="application/json">', 1)[1].split("</script>", 1)[0])
    (items,) = data["tables"]
    assert [commit["batch"] for commit in items["commits"]] == [f"batch {n}" for n in range(1, 6)]
    assert items["late"] == [3], "uvw arrived after def"
    with EXPECTED.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["after_batch"] == "5"]
    rows.sort(key=lambda row: (row["id"], row["_fivetran_start"]))
    documented = [(row["id"], row["col1"], row["col2"]) for row in rows]
    cells = [
        ["null" if place < 0 else column["values"][place] for place in column["places"]]
        for column in items["cells"]
    ]
    ids = [items["keys"][place][0] for place in items["of"]]
    assert list(zip(ids, *cells[:2], strict=True)) == documented
    assert not list(tmp_path.glob("*.log"))
