"""Measures what a run costs before it touches data: CPU seconds of the process tree, statements.

Tables of ten rows. Beside the package's runs, in the same process, stand a bare one-row MERGE, a
bare INSERT and a whole `dbt snapshot` of a tiny table. CPU seconds hardly change when other work
shares the machine; seconds by the clock do. Writes docs/measured_fixed_cost.md; its notes stay.

    scripts/run python bench/fixed_cost.py [--repeats 3] [--versions 1000000]

With `--before`, the package of another checkout is measured in turn with this one, in the same
process, also on large tables:

    git worktree add /tmp/earlier COMMIT
    scripts/run python bench/fixed_cost.py --before /tmp/earlier --large 1000000 5000000
"""

from __future__ import annotations

import argparse
import csv
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1]))

from pyspark.sql import SparkSession

from bench.measure import cpu_seconds, in_turn, plain_project, run_dbt, say, start_spark, workspace
from bench.report import machine, markdown_table, write_page
from bench.tables import DATA_SQL, INPUT, LAST, OPEN, T0, VERSIONS_A_KEY, Warehouse
from tests.support.project import ROOT, Project, install_package

REPORT = ROOT / "docs" / "measured_fixed_cost.md"
WRITES = ROOT / "seeds" / "examples" / "naksha" / "naksha_writes.csv"
SCHEMA = "tests_cost"
BATCHES = 6
HISTORY = "`history`, one of ten rows changed"
EVENTS_OF_TEN = "`batch_rows`, ten events"
JOINED = "`batch_rows`, ten events without a change, `merge_equal`"
LATER = {HISTORY, EVENTS_OF_TEN, JOINED}
MANY_BATCHES, ROWS_A_BATCH = 2_000, 5
# `number` is the first batch of the view, `count` how many it has.
STAGED = """
create or replace temporary view staged as
select
    stage as _stage, batch as _batch, id, concat('v', batch) as v,
    timestamp'2024-01-01' + make_dt_interval(cast(batch as int)) as _fivetran_start,
    timestamp'9999-12-31 23:59:59.999' as _fivetran_end, true as _fivetran_active
from (select explode(sequence({number}, {number} + {count} - 1)) as batch)
cross join (select id from range(10))
cross join (values ('earliest_start'), ('upsert')) as stages (stage)
"""
# Ten events; their time is their own.
EVENTS = """
create or replace temporary view events as
select
    'insert' as _change_type, 1L as _commit_version, current_timestamp() as _commit_timestamp,
    id, 'a' as v, timestamp'2024-01-01' + make_dt_interval({number}) as happened
from range(10)
"""
OPTIONS = "id=['space', 'id'], payload=['geometry', 'properties'], json=['geometry', 'properties']"
TEXT = """# What a run costs before it touches data

Written by `bench/fixed_cost.py` on a machine with {machine}; Spark with two threads, one process.
CPU seconds of the process tree, Java's compiler included: medians of {repeats} rounds in which all
take turns; a round before them warms up. "Cold" is the first time in the process, after Spark
started. Statements are those that dbt sends. The last column compares with the bare MERGE.{before}

{table}

## Many pending batches

{batches:,} pending batches of {rows} upserts with keys of their own, and one batch of the same
{all_rows:,} rows, each into its own copy of a table of {versions:,} versions, in turn. The whole
`dbt run`, medians of {repeats} rounds after one that warms up.

{many}
{large}"""
LARGE = """
## Large tables

One batch of 500 keys into a copy of a table of that many versions for each package, in turn. The
whole `dbt run`, medians of {repeats} rounds after one that warms up.

{table}
"""
BEFORE = """
"Before" is warm with the package at commit {commit}, in turn with the others in one process."""
# Keys in an order that spreads them over the table; each row has its own.
MANY = """
select
    'upsert' as _stage, {first} + position div {rows} as _batch, id, {data},
    {t0} as _fivetran_synced,
    {t0} + make_dt_interval({day}, 0, 0, position) as _fivetran_start,
    {end} as _fivetran_end, true as _fivetran_active
from (
    select pmod(id * 7919 + {day}, {keys}) as id, cast(id as int) as position
    from range({all_rows})
)
"""


@dataclass
class Work:
    """Something to measure: `prepare` is not counted, `run` says how many statements it sent."""

    run: Callable[[], int]
    prepare: Callable[[], object] = lambda: None
    cold: float = 0.0
    warm: list[float] = field(default_factory=list)
    statements: int = 0


class Bench:
    """A project with one model for each kind of run."""

    def __init__(self, spark: SparkSession, project: Project, has_later: bool = True) -> None:
        """Without `has_later`, what an earlier package does not have (`LATER`) is not measured."""
        self.spark, self.project, self.has_later = spark, project, has_later
        self.next_batch = 1
        self.spark.sql(f"create schema {project.schema}")
        for table in ("bare", "source"):
            spark.sql(
                f"create table {project.table(table)} using delta as"
                " select id, 'a' as v from range(10)"
            )
        self._models()

    def _models(self) -> None:
        staged = "select * from staged where _batch > {{ dbt_history.last_batch() }}"
        for name, most in (("versions", None), ("six", None), ("six_alone", 1)):
            self.project.history(name, staged, batches_per_commit=most)
        if self.has_later:
            self._later_models()
        self.project.model(
            "appended",
            "select * from appended_rows where _batch > {{ dbt_history.last_batch() }}",
            materialized="history_append",
        )
        self.project.model(
            "states",
            "{{ dbt_history.feature_states('writes', " + OPTIONS + ") }}",
            materialized="history_batch",
            unique_key=["space", "id"],
            meta={"history": {"convention": "naksha"}},
        )
        self.project.model(
            "outcomes",
            "{{ dbt_history.feature_outcomes('writes', states=ref('states'),"
            " after=dbt_history.last_batch(), " + OPTIONS + ") }}",
            materialized="history_append",
        )
        self.project.write(
            "snapshots/taken.sql",
            "{% snapshot taken %}{{ config(target_schema='"
            + self.project.schema
            + "', unique_key='id', strategy='check', check_cols=['v'], file_format='delta') }}"
            + f"select * from {self.project.table('source')}"
            + "{% endsnapshot %}",
        )
        with WRITES.open(encoding="utf-8") as lines:
            rows = [[cell or None for cell in row] for row in csv.reader(lines)]
        types = {"txn": "bigint", "position": "int"}
        schema = ", ".join(f"`{name}` {types.get(str(name), 'string')}" for name in rows[0])
        values = [
            [int(cell) if name in types and cell else cell for name, cell in zip(rows[0], row)]
            for row in rows[1:]
        ]
        frame = self.spark.createDataFrame(values, schema)
        frame.withColumn("at", frame["at"].cast("timestamp")).createOrReplaceTempView("writes")

    def _later_models(self) -> None:
        for name, option in (("events", ""), ("events_joined", ", merge_equal=true")):
            call = f"dbt_history.batch_rows('events', 'id', 'fivetran', at='happened'{option})"
            self.project.history(name, f"select * except (happened) from {{{{ {call} }}}}")
        self.project.model(
            "three_lines",
            f"select id, v from {self.project.table('source')}",
            materialized="history",
            unique_key="id",
        )

    def stage(self, count: int) -> None:
        """Offer the next batches of ten keys."""
        self.spark.sql(STAGED.format(number=self.next_batch, count=count))
        self.next_batch += count

    def stage_anew(self, name: str) -> None:
        """Offer six batches to a model whose table is gone."""
        self.drop(name)
        self.stage(BATCHES)

    def append(self) -> None:
        """Offer one row more."""
        self.next_batch += 1
        self.spark.sql(
            "create or replace temporary view appended_rows as"
            f" select {self.next_batch}L as _batch, {self.next_batch}L as id"
        )

    def happen(self) -> None:
        """Offer one more event of each of ten keys; all have the same value."""
        self.next_batch += 1
        self.spark.sql(EVENTS.format(number=self.next_batch))

    def change(self) -> None:
        self.next_batch += 1
        self.spark.sql(
            f"update {self.project.table('source')} set v = '{self.next_batch}' where id = 1"
        )

    def drop(self, *names: str) -> None:
        for name in names:
            self.spark.sql(f"drop table if exists {self.project.table(name)}")

    def sql(self, statement: str) -> int:
        self.spark.sql(statement.format(table=self.project.table("bare"))).collect()
        return 1

    def dbt(self, *nodes: str, command: str = "run") -> int:
        return len(run_dbt(self.project, command, "--no-write-json", "--select", *nodes)[0])

    def works(self) -> dict[str, Work]:
        """All that is measured, by its name on the page."""
        merge = (
            "merge into {table} as t using (select 1L as id, uuid() as v) as s on t.id = s.id"
            " when matched then update set v = s.v when not matched then insert *"
        )
        read = "select count(*) as number from {{ dbt_history.%s }} as found"
        versions = self.project.table("versions")
        readers = {
            "as_of": f"as_of('{versions}', '2024-01-02')",
            "changeset": f"changeset('{versions}', '2024-01-02', '2024-01-03', key='id')",
            "current_version": f"current_version('{versions}')",
        }
        for name, call in readers.items():
            self.project.model(f"reader_{name}", read % call, materialized="view")
        works = {
            "a bare MERGE of one row": Work(lambda: self.sql(merge)),
            "a bare INSERT of one row": Work(
                lambda: self.sql("insert into {table} values (11, 'b')")
            ),
            "`dbt snapshot`, one of ten rows changed": Work(
                lambda: self.dbt("taken", command="snapshot"), self.change
            ),
            "`history_batch`, one batch of ten keys": Work(
                lambda: self.dbt("versions"), lambda: self.stage(1)
            ),
            "`history_batch`, nothing new": Work(lambda: self.dbt("versions")),
            "`history_batch`, six batches into a new table": Work(
                lambda: self.dbt("six"), lambda: self.stage_anew("six")
            ),
            "the same with `batches_per_commit: 1`": Work(
                lambda: self.dbt("six_alone"), lambda: self.stage_anew("six_alone")
            ),
            EVENTS_OF_TEN: Work(lambda: self.dbt("events"), self.happen),
            JOINED: Work(lambda: self.dbt("events_joined"), self.happen),
            HISTORY: Work(lambda: self.dbt("three_lines"), self.change),
            "`history_append`, one row": Work(lambda: self.dbt("appended"), self.append),
            "`history_append`, nothing new": Work(lambda: self.dbt("appended")),
            "`feature_states` of 26 writes into a new table": Work(
                lambda: self.dbt("states"), lambda: self.drop("states", "outcomes")
            ),
            "`feature_outcomes` of 26 writes": Work(lambda: self.dbt("outcomes")),
            **{
                f"reader `{name}`, as a view": Work(partial(self.dbt, f"reader_{name}"))
                for name in readers
            },
        }
        return {name: work for name, work in works.items() if self.has_later or name not in LATER}


def measure(work: Work) -> float:
    """CPU seconds of one turn."""
    work.prepare()
    began = cpu_seconds()
    work.statements = work.run()
    return cpu_seconds() - began


def main() -> None:
    """Measure all of it and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--versions", type=int, default=1_000_000)
    parser.add_argument("--before", type=Path, help="a checkout of an earlier state")
    parser.add_argument(
        "--large", type=int, nargs="+", default=[], help="sizes of large tables, with --before"
    )
    options = parser.parse_args()
    repeats = options.repeats
    with workspace("fixed_cost") as folder:
        spark = start_spark(folder)
        works = Bench(spark, project_of(ROOT, folder / "project", spark)).works()
        earlier = {}
        if options.before:
            project = project_of(options.before, folder / "before", spark)
            has_later = (options.before / "macros" / "versions" / "history.sql").exists()
            earlier = Bench(spark, project, has_later).works()
        for number in range(repeats + 2):
            # The first round finds no table, the second warms up.
            measure_round(works, number)
            measure_round(earlier, number)
        many = measure_many(spark, folder, options.versions, repeats)
        large = measure_large(spark, folder, options) if options.before and options.large else ""
        write(works, earlier, many, large, options)


def project_of(package: Path, path: Path, spark: SparkSession) -> Project:
    """A dbt project that uses the package in a checkout, with a schema of its own."""
    project = Project.create(path, spark)
    shutil.rmtree(path / "dbt_packages")
    install_package(path, package)
    return replace(project, schema=f"{SCHEMA}_{path.name}")


def measure_round(works: dict[str, Work], number: int) -> None:
    """One turn of each; the first is cold, the second not kept."""
    for name, work in works.items():
        seconds = measure(work)
        say(f"{number} {name}: {seconds:.2f} CPU s, {work.statements} statements")
        if not number:
            work.cold = seconds
        elif number > 1:
            work.warm.append(seconds)


def measure_many(spark: SparkSession, folder: Path, versions: int, repeats: int) -> str:
    """Many batches in one run, beside one batch of the same rows, as a table."""
    warehouse = Warehouse(spark, folder / "warehouse")
    project = plain_project(folder / "many", spark)
    project.schema = "tests_many"
    spark.sql("create schema tests_many")
    spark.sql(f"create schema if not exists {INPUT}")
    keys, all_rows = versions // VERSIONS_A_KEY, MANY_BATCHES * ROWS_A_BATCH
    warehouse.create_history("tests_many.one", keys, VERSIONS_A_KEY)
    warehouse.copy("tests_many.one", "tests_many.many")
    for name in ("one", "many"):
        project.history(name, f"select * from {INPUT}.{name} {LAST}", batches_per_commit=None)
    costs: dict[str, list[tuple[float, float]]] = {"one": [], "many": []}
    for number in range(1, repeats + 2):
        for name in in_turn(costs, number):
            rows = all_rows if name == "one" else ROWS_A_BATCH
            select = MANY.format(
                first=number * MANY_BATCHES,
                rows=rows,
                data=DATA_SQL.format(age=-number),
                t0=T0,
                day=number,
                end=OPEN,
                keys=keys,
                all_rows=all_rows,
            )
            spark.sql(f"create or replace table {INPUT}.{name} using delta as {select}")
            cpu, began = cpu_seconds(), time.perf_counter()
            _, message = run_dbt(project, "run", "--no-write-json", "--select", name)
            cost = (time.perf_counter() - began, cpu_seconds() - cpu)
            say(f"{number} {name}: {cost[0]:.1f} s, {cost[1]:.1f} CPU s, {message}")
            if number > 1:
                costs[name].append(cost)
    seconds = {name: [median(values) for values in zip(*cost)] for name, cost in costs.items()}
    labels = {"one": "one batch", "many": f"{MANY_BATCHES:,} batches"}
    lines = [
        (
            labels[name],
            f"{whole:.1f}",
            f"{cpu:.1f}",
            f"{whole / seconds['one'][0]:.2f}",
            f"{cpu / seconds['one'][1]:.2f}",
        )
        for name, (whole, cpu) in seconds.items()
    ]
    return markdown_table(("", "s", "CPU s", "s / one batch", "CPU s / one batch"), lines)


def measure_large(spark: SparkSession, folder: Path, options: argparse.Namespace) -> str:
    """One batch of 500 keys, on time and late, with both packages, each into its own table."""
    lines = []
    spark.sql(f"create schema if not exists {INPUT}")
    for versions in options.large:
        warehouse = Warehouse(spark, folder / f"large_{versions}")
        keys = versions // VERSIONS_A_KEY
        projects = {}
        for name, package in (("before", options.before), ("now", ROOT)):
            project = project_of(package, folder / f"large_{versions}_{name}", spark)
            spark.sql(f"create schema {project.schema}")
            project.history("versions", f"select * from {INPUT}.large {LAST}")
            projects[name] = project
        warehouse.create_history(projects["before"].table("versions"), keys, VERSIONS_A_KEY)
        warehouse.copy(projects["before"].table("versions"), projects["now"].table("versions"))
        costs: dict[tuple[str, bool], list[tuple[float, float]]] = {}
        for number in range(1, 2 * options.repeats + 3):
            late = number % 2 == 0
            warehouse.stage(f"{INPUT}.large", keys, number, late)
            for name in in_turn(projects, number // 2):
                cpu, began = cpu_seconds(), time.perf_counter()
                _, message = run_dbt(
                    projects[name], "run", "--no-write-json", "--select", "versions"
                )
                cost = (time.perf_counter() - began, cpu_seconds() - cpu)
                say(f"{versions} {number} {name}: {cost[0]:.1f} s, {cost[1]:.1f} CPU s, {message}")
                if number > 2:
                    costs.setdefault((name, late), []).append(cost)
        for late in (False, True):
            before, now = (
                [median(values) for values in zip(*costs[name, late])] for name in projects
            )
            lines.append(
                (
                    f"{versions:,}",
                    "late" if late else "on time",
                    *(f"{value:.1f}" for pair in zip(before, now) for value in pair),
                    f"{now[0] / before[0]:.2f}",
                    f"{now[1] / before[1]:.2f}",
                )
            )
        for project in projects.values():
            spark.sql(f"drop table {project.table('versions')}")
    head = ("versions", "batch", "s before", "s", "CPU s before", "CPU s", "s ratio", "CPU ratio")
    return LARGE.format(repeats=options.repeats, table=markdown_table(head, lines))


def commit_of(checkout: Path) -> str:
    command = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(
        command, cwd=checkout, capture_output=True, check=True, text=True
    ).stdout.strip()


def write(
    works: dict[str, Work],
    earlier: dict[str, Work],
    many: str,
    large: str,
    options: argparse.Namespace,
) -> None:
    base = median(next(iter(works.values())).warm)
    rows = [
        (
            name,
            f"{work.cold:.1f}",
            *([f"{median(earlier[name].warm):.2f}" if name in earlier else "–"] if earlier else []),
            f"{median(work.warm):.2f}",
            str(work.statements),
            f"{median(work.warm) / base:.2f}",
        )
        for name, work in works.items()
    ]
    head = ("", "cold", *(["before"] if earlier else []), "warm", "statements", "warm / bare MERGE")
    text = TEXT.format(
        machine=machine(),
        repeats=options.repeats,
        before=BEFORE.format(commit=commit_of(options.before)) if earlier else "",
        table=markdown_table(head, rows),
        batches=MANY_BATCHES,
        rows=ROWS_A_BATCH,
        all_rows=MANY_BATCHES * ROWS_A_BATCH,
        versions=options.versions,
        many=many,
        large=large,
    )
    write_page(REPORT, text)


if __name__ == "__main__":
    main()
