"""Measures feature states: writes to a space, numbering of transactions, changesets.

100,000 writes in 1,000 transactions on a space of 1 M features, with the model and with handwritten
statements; numbers for 100,000 transactions, compared with `row_number` over the log; the last 100
transactions of 5 M states, with the readers and by hand, and the files they read. Writes
docs/measured_feature_states.md.

    bench/feature_states.py [--features 1000000] [--writes 100000] [--numbers 100000]
        [--states 5000000] [--repeats 3]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from pyspark.sql import SparkSession

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.measure import (
    Seconds,
    Statement,
    counted,
    data_files,
    in_short,
    interleaved,
    plain_project,
    run_dbt,
    say,
    start_spark,
    workspace,
)
from bench.report import MB, markdown_table, seconds_table, write_page
from bench.tables import ROWS_A_FILE, Warehouse
from tests.support.project import ROOT, SCHEMA, Project
from tests.support.rendering import Renderer, renderer

REPORT = ROOT / "docs" / "measured_feature_states.md"
TABLES = f"{SCHEMA}_features"
WRITES, STATES, BIG = f"{TABLES}.writes", f"{TABLES}.states", f"{TABLES}.big_states"
LOG, NUMBERS = f"{TABLES}.transactions", f"{TABLES}.numbers"
TRANSACTION_SIZE = 100
STATES_EACH = 5
CHANGESET_SIZE = 100  # transactions
PRIME = 7919
MODEL = (
    f"{{{{ dbt_history.feature_states('{WRITES}', id=['space', 'id'], "
    "payload=['geometry', 'properties'], json=['geometry', 'properties']) }}"
)
GEOMETRY = """concat('{"type":"Point","coordinates":[', id % 360 - 180, ',', id % 180 - 90, ']}')"""
PROPERTIES = """concat('{"name":"feature ', id, '","speed":', pmod(xxhash64(id, txn), 130), '}')"""
DAY = "timestamp'2024-03-01 00:00:00'"
UUID = "concat('0:0:{type}:2024:3:1:', {number})"


@dataclass(frozen=True)
class Read:
    """What a query reads of a table: number of scans, files and bytes."""

    files: int
    size: int


# What is written -----------------------------------------------------------------------------


def create_space(spark: SparkSession, project: Project, features: int) -> None:
    """Create a space of features: the model creates the table, the other features are inserted.

    By hand HEAD and versions of the same features, and an empty log.
    """
    txn = features // TRANSACTION_SIZE + 1
    spark.sql(f"""
        create table {WRITES} using delta as
        select
            txn, 0L as position, 'PUT' as action, 'space' as space, cast(id as string) as id,
            'bench' as app_id, 'ann' as author, {DAY} as at, {GEOMETRY} as geometry,
            {PROPERTIES} as properties
        from (select 0L as id, {txn}L as txn)
    """)
    project.history("states", MODEL, key=["space", "id"], convention="naksha")
    run_dbt(project, "run", "--select", "states")
    spark.sql(f"insert into {STATES} {_states_sql(spark, features, 1, first=1)}")
    spark.sql(f"create table {TABLES}.log using delta as select * from {WRITES} where false")
    spark.sql(
        f"create table {TABLES}.head using delta as "
        f"select space, id, geometry, properties, txn, 'ann' as author, {DAY} as at from {STATES}"
    )
    spark.sql(
        f"create table {TABLES}.versions using delta as select txn, txn_next, 'PUT' as action, "
        f"space, id, geometry, properties, 'ann' as author from {STATES}"
    )


def write(spark: SparkSession, number: int, features: int, writes: int) -> None:
    """The writes of a round: of twenty, one is a deletion, one a new feature, the rest changes."""
    first = features // TRANSACTION_SIZE + 2 + number * (writes // TRANSACTION_SIZE)
    new = features + number * writes
    spark.sql(f"""
        insert into {WRITES}
        select
            txn, position, if(kind = 0, 'DELETE', 'PUT'), 'space', cast(id as string), 'bench',
            'ann', {DAY} + make_interval(0, 0, 0, 0, 0, 0, txn), {GEOMETRY}, {PROPERTIES}
        from (
            select
                id div {TRANSACTION_SIZE} + {first} as txn,
                id % {TRANSACTION_SIZE} as position,
                id % 20 as kind,
                if(id % 20 = 1, {new} + id, pmod(xxhash64(id, {number}), {features})) as id
            from range(0, {writes}, 1, 4)
        )
    """)


def by_hand_head(newest: str) -> list[str]:
    """Append to the log and merge HEAD; no checks, and history is in the log only."""
    changed = "geometry = new.geometry, properties = new.properties, txn = new.txn, "
    return [
        f"insert into {TABLES}.log {newest}",
        f"""
        merge into {TABLES}.head as head
        using (
            select * from (
                select *, row_number() over (
                    partition by space, id order by txn desc, position desc
                ) as place
                from ({newest})
            ) where place = 1
        ) as new on head.space = new.space and head.id = new.id
        when matched and new.action = 'DELETE' then delete
        when matched then update set {changed} author = new.author, at = new.at
        when not matched and new.action <> 'DELETE' then
            insert (space, id, geometry, properties, txn, author, at) values (
                new.space, new.id, new.geometry, new.properties, new.txn, new.author, new.at
            )
        """,
    ]


def by_hand_versions(newest: str) -> list[str]:
    """Versions with their ends in one merge: no numbers, no inherited authors, no checks."""
    return [
        f"""
        merge into {TABLES}.versions as versions
        using (
            with changes as (
                select *, lead(txn) over (partition by space, id order by txn, position) as next
                from ({newest})
            )
            select space as to_space, id as to_id, min(txn) as closed_by, cast(null as bigint) as
                txn, null as txn_next, null as action, null as space, null as id,
                null as geometry, null as properties, null as author
            from changes group by space, id
            union all
            select null, null, null, txn, if(action = 'DELETE', txn, next), action, space, id,
                geometry, properties, author
            from changes
        ) as new
        on versions.space = new.to_space and versions.id = new.to_id and versions.txn_next is null
        when matched then update set txn_next = new.closed_by
        when not matched and new.to_id is null then
            insert (txn, txn_next, action, space, id, geometry, properties, author) values (
                new.txn, new.txn_next, new.action, new.space, new.id, new.geometry,
                new.properties, new.author
            )
        """
    ]


def measure_writes(
    spark: SparkSession, project: Project, options: argparse.Namespace
) -> tuple[Seconds, Seconds]:
    """Seconds of the contenders, and of the parts of the model's run."""
    create_space(spark, project, options.features)
    parts: Seconds = {}
    newest = {"sql": ""}

    def prepare(number: int) -> None:
        before = spark.table(WRITES).agg({"txn": "max"}).collect()[0][0]
        write(spark, number, options.features, options.writes)
        newest["sql"] = f"select * from {WRITES} where txn > {before}"

    def model() -> None:
        statements, message = run_dbt(project, "run", "--select", "states")
        say(f"  {message}")
        for name, value in _parts_of(statements).items():
            parts.setdefault(name, []).append(value)

    def by_hand(statements: Callable[[str], list[str]]) -> Callable[[], object]:
        return lambda: [spark.sql(sql).collect() for sql in statements(newest["sql"])]

    seconds = interleaved(
        {
            "`feature_states`": model,
            "HEAD and log by hand": by_hand(by_hand_head),
            "versions by hand": by_hand(by_hand_versions),
        },
        options.repeats,
        prepare,
    )
    _assert_same_heads(spark)
    parts = {name: values[1:] for name, values in parts.items()}
    parts["dbt before the first"] = [
        whole - sum(values[place] for values in parts.values())
        for place, whole in enumerate(seconds["`feature_states`"])
    ]
    say(f"  writes: {in_short(seconds)}; {in_short(parts)}")
    return seconds, parts


def _parts_of(statements: list[Statement]) -> dict[str, float]:
    """Seconds of the run by kind of statement, each until the next statement."""
    kinds = dict.fromkeys(("MERGE", "failing transactions", "rows staged", "rest"), 0.0)
    for statement in statements:
        sql = statement.sql.lower()
        kind = "rest"
        if "merge into" in sql:
            kind = "MERGE"
        elif "select distinct outcome.txn" in sql:
            kind = "failing transactions"
        elif "aggregate(" in sql or ("create table" in sql and "__batches_" in sql):
            kind = "rows staged"
        kinds[kind] += statement.until_next
        if statement.until_next > 1:
            shown = " ".join(sql.partition("*/")[2].split())
            say(f"    {statement.until_next:.1f} {shown[:100]}")
    return kinds


def _assert_same_heads(spark: SparkSession) -> None:
    heads = [
        spark.sql(f"select count(*), sum(xxhash64(id, properties)) from {source}").collect()[0]
        for source in (
            f"{STATES} where txn_next is null",
            f"{TABLES}.versions where txn_next is null",
            f"{TABLES}.head",
        )
    ]
    assert len(set(heads)) == 1, f"the contenders disagree: {heads}"


# Numbers -------------------------------------------------------------------------------------


def measure_numbers(
    spark: SparkSession, project: Project, waiting: int, behind: int, repeats: int
) -> Seconds:
    """Number `waiting` transactions, with `behind` others already numbered."""
    entries = f"range(1, {waiting + behind + 1}, 1, 4)"
    spark.sql(
        f"create or replace table {LOG} using delta as "
        f"select id as txid, 'naksha' as `schema`, 'space' as `table` from {entries} union all "
        f"select id, 'COMMIT_MSG', cast(id as string) from {entries} where id % 10 = 0"
    )
    inserts: list[float] = []

    def known(number: int) -> None:
        spark.sql(
            f"create or replace table {NUMBERS} using delta as "
            f"select id as txid, id, current_timestamp() as ts from range(1, {behind + 1}, 1, 4)"
        )

    def operation() -> None:
        arguments = f"{{transactions: {LOG}, numbers: {NUMBERS}}}"
        statements, _ = run_dbt(
            project, "run-operation", "number_transactions", "--args", arguments
        )
        inserts.append(sum(one.seconds for one in statements if "row_number()" in one.sql))

    by_hand = (
        f"create or replace table {NUMBERS}_by_hand using delta as "
        "select txid, row_number() over (order by txid) as id, current_timestamp() as ts "
        f"from (select distinct txid from {LOG} where `schema` <> 'COMMIT_MSG')"
    )
    seconds = interleaved(
        {
            "`number_transactions`": operation,
            "row_number by hand": lambda: spark.sql(by_hand).collect(),
        },
        repeats,
        known,
    )
    tables = [f"select txid, id from {NUMBERS}{suffix}" for suffix in ("", "_by_hand")]
    assert spark.sql(f"{tables[0]} except {tables[1]}").isEmpty(), "the contenders disagree"
    seconds = {"its INSERT": inserts[1:], **seconds}
    say(f"  numbers behind {behind:,}: {in_short(seconds)}")
    return seconds


# Changesets ----------------------------------------------------------------------------------


def _states_sql(spark: SparkSession, features: int, states_per_feature: int, first: int = 0) -> str:
    """States from number `first`, consecutive for each feature, all features in turn.

    txn    1 … features / 100    …    each transaction changes 100 features
    """
    turn = features // TRANSACTION_SIZE
    xyz = f"""
        named_struct(
            'action', if(turn = 0, 'CREATE', 'UPDATE'), 'version', turn + 1,
            'author', 'ann', 'app_id', 'bench',
            'puuid', if(turn = 0, null, {UUID.format(type="feature", number="i - 1")}),
            'uuid', {UUID.format(type="feature", number="i")},
            'txn', {UUID.format(type="transaction", number="txn")},
            'createdAt', 0L, 'updatedAt', 1000 * txn, 'rtcts', 0L, 'rtuts', 1000 * txn
        )
    """
    values = {
        "space": "'space'", "id": "cast(id as string)", "i": "i", "txn": "txn",
        "txn_next": f"if(turn = {states_per_feature - 1}, null, txn + {turn})",
        "geometry": GEOMETRY, "properties": PROPERTIES, "author_txn": "txn",
        "created_txn": "created_txn", "purged_txn": "null", "resync": "false",
        "@ns:com:here:xyz": xyz,
    }  # fmt: skip
    columns = spark.table(STATES).columns
    return f"""
        select {", ".join(f"{values[name]} as `{name}`" for name in columns)}
        from (
            select *, txn * 1048576 + position as i
            from (
                select
                    pmod(id * {PRIME}, {features}) as id,
                    id div {features} as turn,
                    id div {TRANSACTION_SIZE} + 1 as txn,
                    id % {features} div {TRANSACTION_SIZE} + 1 as created_txn,
                    id % {TRANSACTION_SIZE} as position
                from range({first}, {features * states_per_feature}, 1, 4)
            )
        )
    """


def create_big(warehouse: Warehouse, states: int) -> None:
    """Many states, in the files that batches would have written: each file has the states that a
    batch closed, or those that it opened and that are still open."""
    spark = warehouse.spark
    features = states // STATES_EACH
    columns = spark.sql(f"describe {STATES}").collect()
    ddl = ", ".join(f"`{row['col_name']}` {row['data_type']}" for row in columns)
    spark.sql(
        f"create table {BIG} ({ddl}) using delta location '{warehouse.folder(BIG)}' "
        "tblproperties ('delta.enableDeletionVectors' = 'true')"
    )
    files = max(20, states // ROWS_A_FILE)
    spark.sql(
        f"insert into {BIG} select /*+ repartition_by_range({files}, batch) */ * except (batch) "
        f"from (select *, coalesce(txn_next, txn) as batch "
        f"from ({_states_sql(spark, features, STATES_EACH)}))"
    )


def changeset_sources(call: Renderer, last: int) -> dict[str, str]:
    """Four queries for the same result: the changes of the last transactions."""
    first, until = last - CHANGESET_SIZE + 1, last + 1
    states = call.relation.create(schema=TABLES, identifier="big_states")
    reader = {"relation": states, "from_at": first, "to_at": until, "convention": "naksha"}
    began = f"txn >= {first} and txn < {until}"
    ended = f"txn_next >= {first} and txn_next < {until} and txn_next > txn"
    return {
        "`changeset`": call("changeset", key=["space", "id"], **reader),
        "both ends by hand": f"(select * from {BIG} where {began} union all "
        f"select * from {BIG} where {ended})",
        "`or` by hand": f"(select * from {BIG} where {began} or {ended})",
        "`feature_changes`": call(
            "feature_changes", states=BIG, id=["space", "id"], from_txn=first, to_txn=last
        ),
        "newest by hand": f"(select * from (select *, row_number() over (partition by space, id, "
        f"txn order by i desc) as place from {BIG} where {began}) where place = 1)",
        "ends from a log by hand": f"(select * from (select *, lead(txn) over (partition by space, "
        f"id order by i) as next from {BIG}) where {began} "
        f"or next >= {first} and next < {until})",
    }


def measure_changesets(
    warehouse: Warehouse, call: Renderer, options: argparse.Namespace
) -> tuple[Seconds, dict[str, Read], Read]:
    """Seconds per contender, what each of them reads, and the size of the table."""
    spark = warehouse.spark
    create_big(warehouse, options.states)
    last = options.states // TRANSACTION_SIZE
    sources = changeset_sources(call, last)
    cells = "count(*), count(distinct id), max(properties)"
    work = {name: counted(spark, source, cells) for name, source in sources.items()}
    ids = {name: one()[0][1] for name, one in work.items()}  # type: ignore[index]
    assert len(set(ids.values())) == 1, f"the contenders disagree: {ids}"
    sizes = data_files(warehouse.folder(BIG))
    read = {name: read_of(spark, source, sizes) for name, source in sources.items()}
    seconds = interleaved(work, options.repeats)
    say(f"  changesets: {in_short(seconds)}; {read}")
    return seconds, read, Read(len(sizes), sum(sizes.values()))


def read_of(spark: SparkSession, source: str, sizes: Mapping[str, int]) -> Read:
    """The files that remain in a query's plan after pruning."""
    found = {path.rpartition("/")[2] for path in spark.sql(f"select * from {source}").inputFiles()}
    kept = [size for path, size in sizes.items() if path.rpartition("/")[2] in found]
    return Read(len(kept), sum(kept))


# The page ------------------------------------------------------------------------------------


def write_report(
    options: argparse.Namespace,
    writes: tuple[Seconds, Seconds],
    numbers: Mapping[str, Seconds],
    changesets: tuple[Seconds, dict[str, Read], Read],
) -> None:
    """The tables of the report."""
    seconds, parts = writes
    asked, read, table = changesets
    lines = [
        "# Measured: feature states",
        "",
        "Written by `make bench` (`bench/feature_states.py`) on a machine with 2 cores; seconds, "
        f"medians of {options.repeats} rounds, interleaved, with minimum and maximum. "
        "Compare the ratios.",
        "",
        f"## {options.writes:,} writes in {options.writes // TRANSACTION_SIZE:,} transactions",
        "",
        f"In a space of {options.features:,} features. Of twenty writes one is a deletion, one is "
        "a new feature, the others change a random feature. `feature_states`: a whole `dbt run` in "
        "a warm process. By hand, only the statements, without dbt: the writes are inserted into a "
        "log and merged into a HEAD table; or merged into a table of versions with their ends. "
        "Both check no conflicts or failing transactions, and compute no version numbers or UUIDs.",
        "",
        *seconds_table("writes", {f"{options.writes:,}": seconds}, "versions by hand"),
        *_spread(seconds),
        "Parts of the model's run:",
        "",
        *_listed(parts),
        f"## Numbers for {options.numbers:,} transactions",
        "",
        "`number_transactions` (a whole dbt command, and its INSERT alone) compared with rewriting "
        "the table with `row_number` over the whole log. The log has ten rows of tables for each "
        "message.",
        "",
        *seconds_table("numbered before", numbers, "row_number by hand"),
        *_spread(next(iter(numbers.values()))),
        f"## What the last {CHANGESET_SIZE} transactions changed",
        "",
        f"Of {options.states:,} states, {STATES_EACH} per feature, laid out as batches write "
        "them: the states closed by a batch, and those it added that are still open, are "
        "together. The table has no partitions; files are skipped by the statistics of `txn` and "
        "`txn_next`. Files and MB are those that the plan reads.",
        "",
        *_changes_table(asked, read, table),
    ]
    write_page(options.output, "\n".join(lines))


def _spread(seconds: Seconds) -> list[str]:
    """Minimum and maximum: smaller differences are noise."""
    found = [f"{name} {min(values):.2f} to {max(values):.2f}" for name, values in seconds.items()]
    return [f"Minimum and maximum: {', '.join(found)}.", ""]


def _listed(seconds: Seconds) -> list[str]:
    rows = [(name, f"{median(values):.2f}") for name, values in seconds.items()]
    return [markdown_table(("part", "seconds"), rows), ""]


def _changes_table(asked: Seconds, read: Mapping[str, Read], table: Read) -> list[str]:
    rows = [
        (name, f"{median(values):.2f}", f"{min(values):.2f}-{max(values):.2f}",
         str(read[name].files), f"{read[name].size / MB:.1f}")
        for name, values in asked.items()
    ]  # fmt: skip
    rows.append(("the whole table", "", "", str(table.files), f"{table.size / MB:.1f}"))
    return [markdown_table(("asked by", "seconds", "from - to", "files", "MB"), rows), ""]


def parse() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--features", type=int, default=1_000_000)
    parser.add_argument("--writes", type=int, default=100_000)
    parser.add_argument("--numbers", type=int, default=100_000)
    parser.add_argument("--states", type=int, default=5_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--output", type=Path, default=REPORT)
    return parser.parse_args()


def main() -> None:
    """Create the tables, measure, write the report."""
    options = parse()
    with workspace("features") as folder:
        spark = start_spark(folder)
        warehouse = Warehouse(spark, folder / "warehouse")
        project = plain_project(folder / "project", spark)
        project.schema = TABLES
        warehouse.drop(TABLES)
        say("writes")
        writes = measure_writes(spark, project, options)
        say("numbers")
        numbers = {
            f"{behind:,}": measure_numbers(spark, project, options.numbers, behind, options.repeats)
            for behind in (0, 10 * options.numbers)
        }
        say("changesets")
        changesets = measure_changesets(warehouse, renderer(), options)
        write_report(options, writes, numbers, changesets)
        say(f"written: {options.output.name}")
        spark.stop()


if __name__ == "__main__":
    main()
