"""Measures `dbt-history explore` with many versions: its page in headless Chromium, or `--serve`.

The first view is the time from the start of the page's script, after the libraries, until its
rows and controls are in the document; a move is the time until the rows of another instant are laid
out. No virtual time: the browser's clock is the real one.

With --serve: how long the server takes to answer a question of the page from a Delta table, the
median of three different questions of a kind. The table has ten versions per record, an open and a
closed part, and is sorted by key.
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
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from bench.measure import LONG_LIVED, start_spark, workspace
from dbt_history.explore.answers import Answers, Served
from dbt_history.explore.export import Exported, Row, compact
from dbt_history.explore.page import page
from dbt_history.explore.project import DbtProject, open_project
from dbt_history.explore.tables import HistoryTable, resolve
from tests.support.browser import BROWSER
from tests.support.project import ROOT

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


def delta_table(project: DbtProject, versions: int) -> str:
    """A Delta table like `random_table`, made by Spark; its name."""
    name = f"explored_{versions}"
    seconds = "cast(1420070400 + place * 31536000 + pmod(hash(id, place), 31000000) as bigint)"
    project.rows("create schema if not exists bench")
    project.rows(
        f"create or replace table bench.{name} using delta partitioned by (is_open) as"
        " select *, valid_to is null as is_open from (select id, concat('name ', id) as name,"
        " concat('city ', pmod(hash(id, place), 500)) as city,"
        " substring('abcdef', pmod(hash(place, id), 6) + 1, 1) as state,"
        " concat('note ', pmod(hash(id, place, 1), 1000000)) as note,"
        " cast(pmod(hash(id, place, 2), 1000000) / 100 as decimal(10, 2)) as amount,"
        " timestamp_seconds(since) as valid_from,"
        " if(place = 9 and id % 10 > 0, null, timestamp_seconds(coalesce(until, since + 86400)))"
        " as valid_to from (select *, lead(since) over (partition by id order by place) as until"
        f" from (select *, {seconds} as since from (select id div 10 as id, id % 10 as place"
        f" from range({versions})) as numbers) as starts)) as versions order by is_open, id"
    )
    return f"bench.{name}"


def measure_served(sizes: Sequence[int]) -> None:
    """Measure tables of these sizes, in one Spark."""
    with workspace("explorer") as folder:
        start_spark(folder, LONG_LIVED)
        for versions in sizes:
            # Opened for each, because dbt remembers which tables there are.
            with open_project(ROOT, None, None) as project:
                measure_questions(project, versions)


def measure_questions(project: DbtProject, versions: int) -> None:
    """Print the seconds of each kind of question to a table of that size."""
    name = delta_table(project, versions)
    table = resolve(project, name, ("id",), False)
    answers = Answers(project, [Served.of(project, table)])
    second, year = 10**6, 31_536_000 * 10**6
    start = 1_420_070_400 * second + 2 * year
    times = [start + place * year + place * 86_400 * second for place in (1, 3, 5)]
    rows: list[dict[str, Any]] = [{"ask": "rows", "table": name, "at": at} for at in times]
    ids = [versions // 10 // part for part in (2, 3, 7)]
    versions_of = [
        {"ask": "versions", "table": name, "tables": [name], "key": [str(key)]} for key in ids
    ]
    week = 7 * 86_400 * second
    between = {"ask": "changes", "tables": [name], "counts": True}
    kinds: dict[str, list[dict[str, Any]]] = {
        "opening the page": [],
        "move of the line": [{**one, "counts": True} for one in rows],
        "scrolling to the middle": [{**one, "first": versions // 20} for one in rows],
        "key that begins with": [{**one, "counts": True, "find": "77"} for one in rows],
        "exact key": [
            {**one, "counts": True, "find": str(key), "match": "exact"}
            for one, key in zip(rows, ids)
        ],
        "sorted by a column": [{**one, "sort": {"column": 5}} for one in rows],
        "second date, a week apart": [
            {**one, "counts": True, "than": one["at"] - week} for one in rows
        ],
        "only changed rows, a week": [
            {**one, "counts": True, "only": True, "than": one["at"] - week} for one in rows
        ],
        "only changed rows, a year": [
            {**one, "counts": True, "only": True, "than": one["at"] - year} for one in rows
        ],
        "versions of a record": versions_of,
        "which batch wrote them": [{**one, "ask": "written"} for one in versions_of],
        "changes of a week": [{**between, "from": at - week, "to": at} for at in times],
        "next change": [{"ask": "step", "tables": [name], "at": at, "by": 1} for at in times],
    }
    answers.about()
    answers.answer(rows[0])
    for kind, questions in kinds.items():
        seconds = []
        for question in questions or [{}, {}, {}]:
            begin = time.perf_counter()
            answers.answer(question) if question else answers.about()
            seconds.append(time.perf_counter() - begin)
        print(
            f"{versions:,} versions: {kind}: {statistics.median(seconds):.2f} s"
            f" (longest {max(seconds):.2f})",
            flush=True,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--versions", type=int, nargs="*", default=[10_000, 100_000, 300_000])
    parser.add_argument("--serve", action="store_true", help="Measure the server.")
    given = parser.parse_args()
    if given.serve:
        measure_served(given.versions)
    else:
        for count in given.versions:
            measure(count)
