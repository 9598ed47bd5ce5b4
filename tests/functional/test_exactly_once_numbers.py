"""Numbers of transactions from concurrent jobs, and from killed jobs: real processes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import kill_when, start, together
from tests.support.project import Project

pytestmark = pytest.mark.thorough

FIRST, ALL = 20, 50


class Jobs:
    """A log of transactions, the table of their numbers, and the jobs that fill the table."""

    def __init__(self, project: Project, warehouse: Path, folder: Path) -> None:
        self.project = project
        self.warehouse = warehouse
        self.folder = folder
        self.log, self.numbers = project.table("log"), project.table("numbers")
        self.place = warehouse / f"{project.schema}.db" / "numbers"
        self.arguments = json.dumps(
            {"transactions": self.log, "numbers": self.numbers, "visible": "visible"}
        )
        project.spark.sql(f"create schema if not exists {project.schema}")
        self.write(FIRST)

    def write(self, number: int) -> None:
        """Write a log of this many transactions; later ones are visible earlier, or not yet."""
        self.project.spark.sql(
            f"create or replace table {self.log} using delta as select id as txid, "
            "if(id % 10 = 3, 'COMMIT_MSG', 'public') as `schema`, 'foo' as `table`, "
            f"if(id = {ALL - 1}, null, timestamp_millis(10000 - id)) as visible "
            f"from range({number})"
        )

    def ready(self, name: str) -> subprocess.Popen[str]:
        """A process that has registered the tables and is ready to run the job."""
        folder = self.folder / name
        folder.mkdir()
        (folder / "operation.json").write_text(self.arguments)
        known = [f"create schema if not exists {self.project.schema}"]
        for table in ("log", "numbers"):
            place = self.place.parent / table
            if place.exists():
                known.append(
                    f"create table {self.project.table(table)} using delta location '{place}'"
                )
        (folder / "setup.sql").write_text("\n".join(known))
        return start(folder, self.warehouse, self.project.schema, "number_transactions")

    def run(self) -> dict[int, tuple[int, Any]]:
        """Run a job in this process; returns each transaction's number and its time."""
        self.project.dbt("run-operation", "number_transactions", "--args", self.arguments)
        return self.known()

    def known(self) -> dict[int, tuple[int, Any]]:
        """The committed numbers."""
        self.project.spark.catalog.refreshTable(self.numbers)
        rows = self.project.rows("numbers")
        found = {row["txid"]: (row["id"], row["ts"]) for row in rows}
        assert len(found) == len(rows)
        return found

    def commit(self, version: int) -> Path:
        return self.place / "_delta_log" / f"{version:020}.json"

    def files(self) -> set[Path]:
        """The data files, including uncommitted ones."""
        return set(self.place.glob("part-*"))


@pytest.fixture
def jobs(project: Project, warehouse: Path, tmp_path: Path) -> Jobs:
    return Jobs(project, warehouse, tmp_path)


def assert_numbered(
    numbers: dict[int, tuple[int, Any]], jobs: Jobs, before: dict[int, tuple[int, Any]]
) -> None:
    """Each visible transaction has one number, 1 to n, after those assigned before."""
    visible = {txid for txid in range(ALL - 1) if txid % 10 != 3}
    assert set(numbers) == visible
    assert sorted(number for number, _ in numbers.values()) == list(range(1, len(visible) + 1))
    assert {txid: numbers[txid] for txid in before} == before
    waiting = sorted((number, txid) for txid, (number, _) in numbers.items() if txid not in before)
    assert [txid for _, txid in waiting] == sorted(visible - set(before), reverse=True)
    assert all(time is not None for _, time in numbers.values())
    # The log has number, time and space together, or none of them.
    jobs.project.model(
        "transactions",
        f"select * from {{{{ dbt_history.numbered_transactions('{jobs.log}', '{jobs.numbers}') }}}}"
        " as numbered",
        materialized="table",
    )
    jobs.project.run("transactions")
    rows = jobs.project.rows("transactions")
    shown = {row["txid"] for row in rows if None not in (row["id"], row["ts"], row["space"])}
    bare = {row["txid"] for row in rows if {row["id"], row["ts"], row["space"]} == {None}}
    assert shown == visible
    assert bare == set(range(ALL)) - visible


MOMENTS: dict[str, Callable[[Jobs, set[Path]], bool]] = {
    "started": lambda jobs, files: True,
    "rows written": lambda jobs, files: jobs.files() != files,
    "committed": lambda jobs, files: jobs.commit(2).exists(),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_killed_job_leaves_no_gap_and_no_duplicate_number(jobs: Jobs, moment: str) -> None:
    before = jobs.run()
    jobs.write(ALL)
    files = jobs.files()

    kill_when(jobs.ready("killed"), lambda: MOMENTS[moment](jobs, files))

    left = jobs.known()
    assert {txid: left[txid] for txid in before} == before
    assert jobs.commit(2).exists() == (len(left) > len(before))
    # The time between the job's first row and its end is a matter of milliseconds.
    assert moment == "rows written" or (len(left) > len(before)) == (moment == "committed")
    numbers = jobs.run()
    assert {txid: numbers[txid] for txid in left} == left
    assert_numbered(numbers, jobs, before)


def test_a_job_killed_while_it_creates_the_table_is_finished_by_the_next(jobs: Jobs) -> None:
    jobs.write(ALL)

    kill_when(jobs.ready("killed"), jobs.commit(0).exists)

    # The catalog does not have the table, as after a kill between the write and its registration.
    assert not jobs.project.spark.catalog.tableExists(jobs.numbers)
    assert_numbered(jobs.run(), jobs, {})


def test_two_concurrent_jobs_number_every_transaction_once(jobs: Jobs) -> None:
    before = jobs.run()
    jobs.write(ALL)

    together([jobs.ready(name) for name in ("one", "two")])

    numbers = jobs.known()
    assert_numbered(numbers, jobs, before)
    assert jobs.run() == numbers
