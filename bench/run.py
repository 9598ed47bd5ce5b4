"""`make bench`: measures the batch merge, compared with the alternatives.

Writes docs/measured.md with results and targets. A missed target is not a failure.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.measure import (
    Sample,
    Samples,
    dbt_work,
    in_turn,
    kept_files,
    log_files,
    measured,
    plain_project,
    quoted,
    say,
    sql_work,
    start_spark,
    workspace,
)
from bench.report import Checks, Size, write_report
from bench.statements import five_statements
from bench.tables import DATA, INPUT, LAST, VERSIONS_A_KEY, Warehouse
from tests.support.project import ROOT, SCHEMA, Project

OUTPUT = f"{SCHEMA}_bench"
REPORT = ROOT / "docs" / "measured.md"
STAGED = f"{INPUT}.staged"
SOURCE = f"{INPUT}.current_rows"
FIVE = f"{INPUT}.five_statements"
SELECT = f"select * from {STAGED}"
SNAPSHOT = f"""{{% snapshot snapshot_rows %}}
{{{{ config(
    schema='bench', unique_key='id', strategy='check', check_cols={list(DATA)},
    hard_deletes='invalidate', file_format='delta'
) }}}}
select * from {SOURCE}
{{% endsnapshot %}}
"""
MODELS = {
    "history": f"{SELECT} {LAST}",
    "history_copied": f"with batch as ({SELECT} {LAST}) select * from batch",
    "history_no_vectors": f"{SELECT} {LAST}",
    "history_long": f"{SELECT} {LAST}",
    "replay_numbered": SELECT,
    "replay_unnumbered": f"select * except (_batch) from {STAGED}",
}
REPLAYS = ("replay_numbered", "replay_unnumbered")
Work = Callable[[], tuple[float | None, str | None, str]]


@contextmanager
def benched(folder: Path) -> Iterator[tuple[Warehouse, Project]]:
    """A Spark, and a dbt project with the models."""
    spark = start_spark(folder)
    project = plain_project(folder / "project", spark)
    project.schema = OUTPUT
    for name, sql in MODELS.items():
        config = {}
        if name == "history_no_vectors":
            config = {"tblproperties": {"delta.enableDeletionVectors": "false"}}
        project.history(name, sql, config=config)
    project.write("snapshots/snapshot_rows.sql", SNAPSHOT)
    yield Warehouse(spark, folder / "warehouse"), project
    spark.stop()


def create_tables(warehouse: Warehouse, keys: int, is_first: bool) -> None:
    """Create the tables as copies; for the first size also with ten times the closed rows."""
    warehouse.drop(INPUT, OUTPUT)
    history = f"{OUTPUT}.history"
    warehouse.create_history(history, keys, VERSIONS_A_KEY)
    warehouse.copy(history, FIVE)
    warehouse.copy(history, f"{OUTPUT}.history_no_vectors", deletion_vectors=False)
    warehouse.create_source(history, SOURCE)
    warehouse.create_snapshot(history, f"{OUTPUT}.snapshot_rows")
    if is_first:
        for name in ("history_copied", *REPLAYS):
            warehouse.copy(history, f"{OUTPUT}.{name}")
        say("  10 times the closed history")
        warehouse.create_history(f"{OUTPUT}.history_long", keys, VERSIONS_A_KEY * 10)
    say("  made")


def contenders(
    warehouse: Warehouse, project: Project, is_first: bool
) -> dict[str, tuple[str, Work]]:
    """The contenders: the table that is written, and the work."""
    names = ["history", "history_no_vectors"]
    if is_first:
        names += ["history_copied", "history_long"]
    found = {name: (f"{OUTPUT}.{name}", dbt_work(project, "run", name)) for name in names}
    found["five"] = (FIVE, sql_work(warehouse.spark, five_statements(FIVE, STAGED)))
    snapshot = dbt_work(project, "snapshot", "snapshot_rows")
    found["snapshot"] = (f"{OUTPUT}.snapshot_rows", snapshot)
    return found


def take(warehouse: Warehouse, table: str, work: Work) -> Sample:
    """Measure one contender once."""
    return measured(warehouse.spark, table, warehouse.folder(table), work)


def take_rounds(
    warehouse: Warehouse, project: Project, keys: int, repeats: int, is_first: bool
) -> Samples:
    """Run a fresh batch for every contender in turn; the first round is a discarded warm-up."""
    samples = Samples()
    everyone = contenders(warehouse, project, is_first)
    for number in range(1, repeats + 2):
        warehouse.stage(STAGED, keys, number)
        warehouse.update_source(SOURCE, STAGED)
        line = []
        for name, (table, work) in in_turn(everyone.items(), number):
            sample = take(warehouse, table, work)
            line.append(f"{name} {sample.seconds:.1f}")
            if number > 1:
                samples.add(name, sample)
        say(f"  round {number - 1}: {', '.join(line)}")
    return samples


def kept(warehouse: Warehouse, table: str, sample: Sample) -> tuple[int, int, int]:
    """(closed files kept, files kept, all files) by the predicate of the last commit's merge."""
    if sample.reach is None:
        return 0, 0, 0
    version = log_files(warehouse.folder(table)) - 2
    files, total = kept_files(warehouse.spark, table, version, sample.reach)
    return sum("_fivetran_active=false" in file for file in files), len(files), total


def without_closed_files(warehouse: Warehouse, project: Project, table: str) -> bool:
    """Whether an on-time batch succeeds while the files of closed versions are moved away."""
    folder = warehouse.folder(table) / "_fivetran_active=false"
    away = folder.with_name("away")
    folder.rename(away)
    try:
        take(warehouse, table, dbt_work(project, "run", table.split(".")[1]))
    except RuntimeError as error:
        say(f"  without the closed files: {error}")
        return False
    finally:
        folder.mkdir(exist_ok=True)
        for file in away.iterdir():
            file.rename(folder / file.name)
        away.rmdir()
    return True


def check(
    warehouse: Warehouse, project: Project, keys: int, number: int, is_first: bool, late: Sample
) -> Checks:
    """Checks done once per size: files that the predicate keeps, an on-time batch, replays."""
    table = f"{OUTPUT}.history"
    kept_late = kept(warehouse, table, late)
    warehouse.stage(STAGED, keys, number, late=False)
    on_time = take(warehouse, table, dbt_work(project, "run", "history"))
    checks = Checks(kept_late, kept(warehouse, table, on_time), on_time)
    warehouse.stage(STAGED, keys, number + 1, late=False)
    checks.closed_files_away = without_closed_files(warehouse, project, table)
    rows = warehouse.spark.sql(f"describe detail {quoted(table)}").collect()[0]
    count = warehouse.spark.table(table).count()
    checks.row_bytes = rows["sizeInBytes"] / count
    if is_first:
        warehouse.stage(STAGED, keys, number + 2)
        for name in REPLAYS:
            work = dbt_work(project, "run", name)
            checks.first[name] = take(warehouse, f"{OUTPUT}.{name}", work)
            checks.again[name] = take(warehouse, f"{OUTPUT}.{name}", work)
    return checks


def measure_size(
    warehouse: Warehouse, project: Project, versions: int, repeats: int, is_first: bool
) -> Size:
    """Run all measurements of one size."""
    keys = versions // VERSIONS_A_KEY
    say(f"{versions:,} versions: tables")
    create_tables(warehouse, keys, is_first)
    samples = take_rounds(warehouse, project, keys, repeats, is_first)
    # The table's last commit is from the last round.
    late = samples.taken["history"][-1]
    say("  checks")
    checks = check(warehouse, project, keys, repeats + 2, is_first, late)
    return Size(versions, samples, checks)


def parse() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--versions", type=int, nargs="+", default=[1_000_000, 4_000_000])
    parser.add_argument(
        "--repeats", type=int, default=5, help="rounds a size, after one to warm up"
    )
    parser.add_argument("--quick", action="store_true", help="50,000 versions, 2 rounds")
    parser.add_argument("--output", type=Path, default=REPORT, help="the report")
    options = parser.parse_args()
    if options.quick:
        options.versions, options.repeats = [50_000], 2
    return options


def main() -> None:
    """Measure each size in turn; write the report after each."""
    options = parse()
    sizes: list[Size] = []
    with workspace("bench") as folder, benched(folder) as (warehouse, project):
        for versions in options.versions:
            is_first = not sizes
            sizes.append(measure_size(warehouse, project, versions, options.repeats, is_first))
            write_report(options.output, sizes, options.repeats)
            say(f"written: {options.output.name}")


if __name__ == "__main__":
    main()
