"""Measures mirrors: 10,000 changes of a main table of 1 M rows with three references.

With the feed, with the difference, and with the feed into a mirror with ten times the history,
compared with dbt's snapshot (strategy `check`) of the same table; then the state of five tables as
of a day. Writes docs/measured_mirrors.md.

    bench/mirrors.py [--rows 1000000] [--changes 10000] [--repeats 3]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median

from pyspark.sql import SparkSession

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.measure import (
    Seconds,
    interleaved,
    plain_project,
    run_dbt,
    say,
    start_spark,
    workspace,
)
from bench.report import write_page
from tests.support.project import ROOT, SCHEMA, Project
from tests.support.rendering import Renderer, renderer

REPORT = ROOT / "docs" / "measured_mirrors.md"
INPUT, OUTPUT = "bench_mirrors", f"{SCHEMA}_mirrors"
REFERENCED = {"places": 1_000, "units": 100, "people": 5_000}
FEED = (
    "tblproperties ('delta.enableChangeDataFeed' = 'true', "
    "'delta.enableInCommitTimestamps' = 'true')"
)
LINKS = ", ".join(f"{{'column': '{name}_id', 'history': ref('{name}_hx')}}" for name in REFERENCED)
COLUMNS = ("places_id", "units_id", "people_id", "amount", "note")
SNAPSHOT = f"""{{% snapshot main_snapshot %}}
{{{{ config(
    schema='mirrors', unique_key='main_id', strategy='check', check_cols={list(COLUMNS)},
    hard_deletes='invalidate', file_format='delta'
) }}}}
select * from {INPUT}.main
{{% endsnapshot %}}
"""
# The contenders: the dbt command and its node.
CONTENDERS = {
    "feed": ("run", "main_hx"),
    "feed, 10 times the history": ("run", "main_long_hx"),
    "difference": ("run", "main_diff_hx"),
    "dbt snapshot": ("snapshot", "main_snapshot"),
}
# The tables of a state: name, key, mirror.
STATE = [("main", "main_id", "main_hx")]
STATE += [(name, f"{name}_id", f"{name}_hx") for name in REFERENCED]
STATE += [("remarks", "remarks_id", "remarks_hx")]


def write_models(project: Project) -> None:
    """Mirrors of the referenced tables, three of the main table, and one of another table."""
    project.schema = OUTPUT
    for name in [*REFERENCED, "remarks"]:
        project.model(f"{name}_hx", _hx(name, f"{name}_id", ""), materialized="history_append")
    for node, method in (("main_hx", "feed"), ("main_long_hx", "feed"), ("main_diff_hx", "diff")):
        sql = _hx("main", "main_id", f"references=[{LINKS}], method='{method}'")
        project.model(node, sql, materialized="history_append")
    project.write("snapshots/main_snapshot.sql", SNAPSHOT)
    tables = "".join(f"\n      - name: {name}" for name in ["main", *REFERENCED, "remarks"])
    project.write("models/sources.yml", f"sources:\n  - name: {INPUT}\n    tables:{tables}\n")


def _hx(name: str, key: str, arguments: str) -> str:
    main = f"source('{INPUT}', '{name}')"
    return f"select * from {{{{ dbt_history.hx_rows({main}, '{key}', {arguments}) }}}}"


def create_tables(spark: SparkSession, rows: int) -> None:
    """Create the main and referenced tables, with a feed, from `range`."""
    spark.sql(f"create schema {INPUT}")
    for name, count in {**REFERENCED, "remarks": 100_000}.items():
        spark.sql(
            f"create table {INPUT}.{name} using delta {FEED} as "
            f"select id as {name}_id, concat('{name} ', id) as label from range({count})"
        )
    links = ", ".join(
        f"pmod(xxhash64(id, '{name}'), {count}) as {name}_id" for name, count in REFERENCED.items()
    )
    spark.sql(
        f"create table {INPUT}.main using delta {FEED} as select id as main_id, {links}, "
        "cast(pmod(xxhash64(id), 100000) as double) as amount, concat('note ', id) as note "
        f"from range(0, {rows}, 1, 8)"
    )


def lengthen(spark: SparkSession, times: int, rows: int) -> None:
    """Add older rows with smaller ids to one mirror: `times` as many as the main table has."""
    table = f"{OUTPUT}.main_long_hx"
    spark.sql(
        f"insert into {table} select {_older(spark, table, rows)} "
        f"from {table} as log cross join range({times}) as past"
    )


def _older(spark: SparkSession, table: str, rows: int) -> str:
    """The columns of a mirror, in order, with times moved into the past."""
    moved = {
        "mod_time": "mod_time - make_interval(0, 0, 0, cast(past.id + 1 as int))",
        "main_hx_id": f"main_hx_id - (past.id + 1) * {rows}",
    }
    return ", ".join(moved.get(name, name) for name in spark.table(table).columns)


def change(spark: SparkSession, number: int, changes: int, rows: int) -> None:
    """Update nine of ten changed rows; delete the others and insert as many."""
    step = rows // changes
    chosen = f"select id * {step} + {number} as main_id, id from range({changes})"
    spark.sql(
        f"merge into {INPUT}.main as main using ({chosen}) as chosen "
        "on main.main_id = chosen.main_id "
        "when matched and chosen.id % 20 = 0 then delete "
        f"when matched then update set amount = amount + 1, note = 'changed {number}'"
    )
    spark.sql(
        f"insert into {INPUT}.main select {rows} * {number + 1} + id, 1, 1, 1, 0, 'new' "
        f"from range({changes // 20})"
    )


def measure(project: Project, changes: int, rows: int, repeats: int) -> Seconds:
    """Seconds per contender, with the same number of changes before each round."""

    def contender(name: str, command: str, node: str) -> Callable[[], object]:
        def work() -> None:
            _, message = run_dbt(project, command, "--select", node)
            say(f"  {name}: {message}")

        return work

    work = {name: contender(name, *command) for name, command in CONTENDERS.items()}
    return interleaved(
        work, repeats, lambda number: change(project.spark, number + 1, changes, rows)
    )


def measure_state(call: Renderer, spark: SparkSession, repeats: int) -> Seconds:
    """Seconds to count the join of five tables: the current ones, and their past states."""
    at = spark.sql("select cast(current_timestamp() as string)").collect()[0][0]
    now = [f"{INPUT}.{name}" for name, _, _ in STATE]
    relation = call.relation.create
    then = [
        call(
            "latest",
            hx=relation(schema=OUTPUT, identifier=mirror),
            key=key,
            up_to=at,
            by="mod_time",
        )
        for _, key, mirror in STATE
    ]
    tables = {"the tables themselves": now, "the mirrors as of a day": then}
    queries = {name: _state_sql(found) for name, found in tables.items()}
    work = {name: lambda sql=sql: spark.sql(sql).collect() for name, sql in queries.items()}
    return interleaved(work, repeats)


def _state_sql(tables: list[str]) -> str:
    joins = "".join(
        f" left join {table} as {name} on main.{name}_id = {name}.{name}_id"
        for table, name in zip(tables[1:4], REFERENCED, strict=True)
    )
    labels = ", ".join(f"max({name}.label)" for name in REFERENCED)
    return (
        f"select count(*), max(main.amount), {labels}, (select count(*) from {tables[4]}) "
        f"from {tables[0]} as main{joins}"
    )


def write_report(
    path: Path,
    options: argparse.Namespace,
    seconds: Seconds,
    state: Seconds,
) -> None:
    """The tables of the report."""
    found = {name: median(values) for name, values in seconds.items()}
    snapshot, feed = found["dbt snapshot"], found["feed"]
    lines = [
        "# Measured: mirrors",
        "",
        "Written by `make bench` (`bench/mirrors.py`) on a machine with 2 cores. A main table of "
        f"{options.rows:,} rows with three references; {options.changes:,} of its rows change "
        f"before each round. A whole `dbt run` or `dbt snapshot` in a warm process, medians of "
        f"{options.repeats} rounds, in a different order each round. Compare the ratios.",
        "",
        "| contender | seconds | / dbt snapshot | / feed |",
        "| --- | --- | --- | --- |",
        *(
            f"| {name} | {value:.2f} | {value / snapshot:.2f} | {value / feed:.2f} |"
            for name, value in found.items()
        ),
        "",
        "Target: with 10 times the history, at most 1.1 times the seconds of the feed: "
        f"{found['feed, 10 times the history'] / feed:.2f}.",
        "",
        "## The state of five tables on a day",
        "",
        "A count of the main table joined to its three references, and of a fifth table; the "
        "mirrors are read up to an instant after all changes.",
        "",
        "| read | seconds |",
        "| --- | --- |",
        *(f"| {name} | {median(values):.2f} |" for name, values in state.items()),
    ]
    write_page(path, "\n".join(lines))


def main() -> None:
    """Create the tables, measure, write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--changes", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--output", type=Path, default=REPORT)
    options = parser.parse_args()
    with workspace("mirrors") as folder:
        spark = start_spark(folder)
        project = plain_project(folder / "project", spark)
        write_models(project)
        say("tables")
        create_tables(spark, options.rows)
        run_dbt(project, "run")
        run_dbt(project, "snapshot")
        lengthen(spark, 9, options.rows)
        say("rounds")
        seconds = measure(project, options.changes, options.rows, options.repeats)
        state = measure_state(renderer(), spark, options.repeats)
        write_report(options.output, options, seconds, state)
        say(f"written: {options.output.name}")
        spark.stop()


if __name__ == "__main__":
    main()
