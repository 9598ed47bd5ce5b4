"""Measures reading the past: `as_of` at five instants, cleaning, and a join of periods.

`as_of` on 5 M stored versions, compared with a handwritten filter and with a window over a log of
the same changes without stored ends; `clean_history` of half the history, compared with a DELETE;
`history_join` of two tables, compared with a join on overlapping periods. Writes
docs/measured_time_travel.md.

    bench/time_travel.py [--versions 5000000] [--joined 1000000] [--repeats 3]
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.measure import (
    Seconds,
    counted,
    in_short,
    interleaved,
    plain_project,
    run_dbt,
    say,
    start_spark,
    workspace,
)
from bench.report import seconds_table, write_page
from bench.tables import VERSIONS_A_KEY, Warehouse
from tests.support.project import ROOT, SCHEMA, Project
from tests.support.rendering import Renderer, renderer

REPORT = ROOT / "docs" / "measured_time_travel.md"
TABLES = f"{SCHEMA}_travel"
HISTORY = f"{TABLES}.history"
# Versions of a key start a day apart, the newest on 1 June 2024.
INSTANTS = ("2024-06-03", "2024-06-01 12:00:00", "2024-05-30", "2024-05-27", "2024-05-23 12:00:00")
HALF = "2024-05-28"
MICROS = "interval 1 millisecond"


def read_states(spark: SparkSession, call: Renderer, repeats: int) -> dict[str, Seconds]:
    """The state at each instant: the reader, a handwritten filter, a window over a log."""
    relation = call.relation.create(schema=TABLES, identifier="history")
    found = {}
    for at in INSTANTS:
        moment = f"timestamp'{at if ':' in at else at + ' 00:00:00'}'"
        reader = call("as_of", relation=relation, at=at)
        by_hand = (
            f"(select * from {HISTORY} where _fivetran_start <= {moment} "
            f"and _fivetran_end >= {moment})"
        )
        window = (
            f"(select * from (select *, row_number() over (partition by id order by "
            f"_fivetran_start desc) as place from {TABLES}.log where _fivetran_start <= {moment}) "
            "where place = 1)"
        )
        sources = {"as_of": reader, "filter by hand": by_hand, "window over a log": window}
        work = {name: counted(spark, source) for name, source in sources.items()}
        assert len({str(one()) for one in work.values()}) == 1, "the contenders disagree"
        found[at] = interleaved(work, repeats)
        say(f"  {at}: {in_short(found[at])}")
    return found


def clean(warehouse: Warehouse, project: Project, repeats: int) -> Seconds:
    """Remove half of the history from fresh copies of one table."""
    seconds: Seconds = {"clean_history": [], "DELETE": []}
    arguments = f"{{table: {TABLES}.cleaned, before: '{HALF}', convention: fivetran, key: id}}"
    delete = (
        f"delete from {TABLES}.cleaned where _fivetran_end + {MICROS} <= timestamp'{HALF} 00:00:00'"
    )
    for number in range(repeats):
        for name in sorted(seconds, reverse=bool(number % 2)):
            warehouse.copy(HISTORY, f"{TABLES}.cleaned")
            began = time.perf_counter()
            if name == "DELETE":
                warehouse.spark.sql(delete).collect()
            else:
                run_dbt(project, "run-operation", "clean_history", "--args", arguments)
            seconds[name].append(time.perf_counter() - began)
            warehouse.spark.sql(f"drop table {TABLES}.cleaned")
            shutil.rmtree(warehouse.folder(f"{TABLES}.cleaned"), ignore_errors=True)
            warehouse.spark.sql(f"drop table if exists {TABLES}.history_marks")
    say(f"  cleaning: {in_short(seconds)}")
    return seconds


def join(warehouse: Warehouse, call: Renderer, versions: int, repeats: int) -> Seconds:
    """Join two version tables; the versions of the second start 12 hours later."""
    spark = warehouse.spark
    keys = versions // VERSIONS_A_KEY
    warehouse.create_history(f"{TABLES}.left_side", keys, VERSIONS_A_KEY)
    spark.sql(
        f"create table {TABLES}.right_side using delta as select * except (_fivetran_start, "
        "_fivetran_end), _fivetran_start + interval 12 hours as _fivetran_start, "
        "if(_fivetran_active, _fivetran_end, _fivetran_end + interval 12 hours) as _fivetran_end "
        f"from {TABLES}.left_side"
    )
    relation = call.relation.create
    tables = {
        name: relation(schema=TABLES, identifier=f"{name}_side") for name in ("left", "right")
    }
    joined = call("history_join", tables=tables, key="id", convention="fivetran")
    by_hand = (
        f"(select 1 from {TABLES}.left_side as one inner join {TABLES}.right_side as other "
        "on one.id = other.id and one._fivetran_start <= other._fivetran_end "
        "and other._fivetran_start <= one._fivetran_end)"
    )
    sources = {"history_join": joined, "join by hand": by_hand}
    work = {name: counted(spark, source, "count(*)") for name, source in sources.items()}
    assert len({str(one()) for one in work.values()}) == 1, "the contenders disagree"
    seconds = interleaved(work, repeats)
    say(f"  join: {in_short(seconds)}")
    return seconds


def write_report(
    options: argparse.Namespace, states: Mapping[str, Seconds], cleaning: Seconds, joining: Seconds
) -> None:
    """The tables of the report."""
    lines = [
        "# Measured: reading and cleaning the past",
        "",
        "Written by `make bench` (`bench/time_travel.py`) on a machine with 2 cores; seconds, "
        f"medians of {options.repeats} rounds, interleaved. Compare the ratios. "
        f"{options.versions:,} versions, ten per key, one day apart.",
        "",
        "## The state at an instant",
        "",
        "A count of the state. By hand: the two comparisons with the stored start and end. Window: "
        "the newest row per key of a log without ends. Target: at most 1.2 of the filter by hand.",
        "",
        *seconds_table("instant", states, "filter by hand"),
        "## Half of the history cleaned",
        "",
        "The run-operation (a whole dbt command, which reads tags and horizons, counts the rows to "
        "remove and records the horizon) compared with a plain DELETE.",
        "",
        *seconds_table("cleaned", {f"before {HALF}": cleaning}, "DELETE"),
        "## Join of two version tables",
        "",
        f"{options.joined:,} versions each; by hand: equal keys and overlapping periods, without "
        "computing the resulting period.",
        "",
        *seconds_table("joined", {"all": joining}, "join by hand"),
    ]
    write_page(options.output, "\n".join(lines))


def parse() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--versions", type=int, default=5_000_000)
    parser.add_argument("--joined", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--output", type=Path, default=REPORT)
    return parser.parse_args()


def main() -> None:
    """Create the tables, measure, write the report."""
    options = parse()
    with workspace("travel") as folder:
        spark = start_spark(folder)
        warehouse = Warehouse(spark, folder / "warehouse")
        project = plain_project(folder / "project", spark)
        call = renderer()
        warehouse.drop(TABLES)
        say("tables")
        warehouse.create_history(HISTORY, options.versions // VERSIONS_A_KEY, VERSIONS_A_KEY)
        spark.sql(
            f"create table {TABLES}.log using delta as "
            f"select * except (_fivetran_end, _fivetran_active) from {HISTORY}"
        )
        say("rounds")
        states = read_states(spark, call, options.repeats)
        cleaning = clean(warehouse, project, options.repeats)
        joining = join(warehouse, call, options.joined, options.repeats)
        write_report(options, states, cleaning, joining)
        say(f"written: {options.output.name}")
        spark.stop()


if __name__ == "__main__":
    main()
