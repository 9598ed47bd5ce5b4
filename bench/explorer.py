"""Measures the page of `dbt-history explore` with many versions, in headless Chromium.

The first view is the time from the start of the page's script, after the libraries, until its
rows and controls are in the document; a move is the time until the rows of another instant are laid
out. No virtual time: the browser's clock is the real one.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import statistics
import subprocess
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from dbt_history.explore.export import Exported, Row, compact
from dbt_history.explore.page import page
from dbt_history.explore.tables import HistoryTable
from tests.support.browser import BROWSER

MOVES = 60
DAY = 86_400_000_000
SCRIPT = f"""<script>
(function () {{
  var range = window.explore.range().map(BigInt), times = [];
  for (var move = 0; move < {MOVES}; move++) {{
    var at = range[0] + (range[1] - range[0]) * BigInt((move * 37) % {MOVES}) / BigInt({MOVES});
    var start = performance.now();
    window.explore.moveTo(String(at));
    void document.body.offsetHeight;
    times.push(performance.now() - start);
  }}
  document.documentElement.dataset.moves = JSON.stringify(times);
}})();
</script></body>"""


def random_table(versions: int) -> Exported:
    """Records of ten versions each over ten years, with six columns; one in ten is deleted."""
    chance = random.Random(1)
    columns = {"id": "bigint", **dict.fromkeys(("name", "city", "state", "note"), "string")}
    columns |= {"amount": "decimal(10,2)", "updated_at": "timestamp"}
    table = HistoryTable("many", "s", None, "versions", ("id",), "validity", "", columns)
    rows = []
    for key in range(versions // 10):
        starts = sorted(chance.sample(range(1_420_000_000, 1_735_000_000), 11))
        for place, (since, until) in enumerate(pairwise(starts)):
            is_open = place == 9 and key % 10 > 0
            cells = [f"name {key}", f"city {chance.randrange(500)}", chance.choice("abcdef"),
                     f"note {chance.randrange(10**6)}", f"{chance.randrange(10**6) / 100:.2f}",
                     str(since * 10**6)]  # fmt: skip
            rows.append(
                Row((str(key),), since * 10**6, None if is_open else until * 10**6, is_open, 0,
                    list(cells))
            )  # fmt: skip
    shown = [(name, kind) for name, kind in columns.items() if name != "id"]
    marks: dict[str, Any] = {"tags": [], "horizon": None, "suspensions": []}
    return Exported(table, "time", "timestamp", shown, rows, [], marks)


def measure(versions: int) -> None:
    start = time.perf_counter()
    before, _, after = page(compact([random_table(versions)], "bench", "")).rpartition("</body>")
    made = time.perf_counter() - start
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "page.html"
        file.write_text(before + SCRIPT + after, encoding="utf-8")
        done = subprocess.run(
            [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
             f"--user-data-dir={folder}/user", "--window-size=1400,1000", "--dump-dom",
             file.as_uri()],
            capture_output=True, text=True, check=True, timeout=300,
        )  # fmt: skip
        size = file.stat().st_size
    first = re.search(r'data-first="([0-9.]+)"', done.stdout)
    moves = re.search(r'data-moves="([^"]+)"', done.stdout)
    assert first is not None
    assert moves is not None
    times = sorted(json.loads(moves[1]))
    print(
        f"{versions:,} versions: page {size / 1e6:.1f} MB, made in {made:.1f} s;"
        f" first view {float(first[1]):.0f} ms; move of the line: median"
        f" {statistics.median(times):.0f} ms, 95 % {times[int(len(times) * 0.95)]:.0f} ms,"
        f" longest {times[-1]:.0f} ms"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--versions", type=int, nargs="*", default=[10_000, 100_000, 300_000])
    for count in parser.parse_args().versions:
        measure(count)
