"""The measured tables and batches, made by Spark alone: `spark.range` and SQL, no file is read.

A key's versions start a day apart, each at the key's own second of the day:

    age        2           1           0
    start      T0 - 2 d    T0 - 1 d    T0           (+ the key's second)
    batch                  L                O_r     late: an hour before age 1; on time: day r
"""

from __future__ import annotations

import random
import shutil
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

INPUT = "bench_input"
ROWS_A_FILE = 125_000
KEYS, LATE, UPDATES, DELETES = 500, 50, 400, 20  # the rest of the keys are upserts

DATA = ("name", "city", "status", "amount", "quantity")
TYPES = {
    "id": "bigint",
    "name": "string",
    "city": "string",
    "status": "string",
    "amount": "decimal(12,2)",
    "quantity": "int",
    "_fivetran_synced": "timestamp",
    "_fivetran_start": "timestamp",
    "_fivetran_end": "timestamp",
    "_fivetran_active": "boolean",
}
COLUMNS = tuple(TYPES)
DATA_SQL = """
    concat('name of ', id, ' ', substr(sha2(cast(id as string), 256), 1, 12)) as name,
    concat('city ', pmod(xxhash64(id, 1), 5000)) as city,
    concat('status ', pmod(xxhash64(id, {age}, 2), 7)) as status,
    cast(pmod(xxhash64(id, {age}, 3), 100000000) / 100 as decimal(12, 2)) as amount,
    cast(pmod(xxhash64(id, {age}, 4), 1000) as int) as quantity
"""
T0 = "timestamp'2024-06-01 00:00:00'"
OPEN = "timestamp'9999-12-31 23:59:59.999'"
SECOND = "make_interval(0, 0, 0, 0, 0, 0, pmod(xxhash64(id, 5), 86400))"


@dataclass(frozen=True)
class Warehouse:
    """Where the tables lie; one folder a table, so that it is copied with its files and its log."""

    spark: SparkSession
    path: Path

    def folder(self, table: str) -> Path:
        """The folder of a table `schema.name`."""
        schema, name = table.split(".")
        return self.path / f"{schema}.db" / name

    def create_history(self, table: str, keys: int, versions: int) -> None:
        """A fivetran history of `keys` × `versions` rows, deletion vectors on.

        Partitioned by the flag as `history_batch` does it; closed versions lie in the order in
        which they were closed.
        """
        columns = ", ".join(f"{name} {TYPES[name]}" for name in COLUMNS)
        self.spark.sql(
            f"create table {table} ({columns}) using delta "
            f"partitioned by (_fivetran_active) location '{self.folder(table)}' "
            "tblproperties ('delta.enableDeletionVectors' = 'true')"
        )
        for active, rows in ((False, keys * (versions - 1)), (True, keys)):
            files = max(1, round(rows / ROWS_A_FILE))
            by = "id" if active else "_fivetran_end"
            self.spark.sql(
                f"insert into {table} select /*+ repartition_by_range({files}, {by}) */ * "
                f"from ({_versions_sql(keys, versions, active)})"
            )

    def copy(self, source: str, target: str, deletion_vectors: bool = True) -> None:
        """A table with the same files, in a folder of its own."""
        shutil.copytree(self.folder(source), self.folder(target))
        self.spark.sql(f"create table {target} using delta location '{self.folder(target)}'")
        if not deletion_vectors:
            self.spark.sql(
                f"alter table {target} set tblproperties ('delta.enableDeletionVectors' = 'false')"
            )

    def create_source(self, history: str, table: str) -> None:
        """The current state of a history, as a source that a snapshot reads."""
        self.spark.sql(
            f"create table {table} using delta location '{self.folder(table)}' as "
            f"select id, {', '.join(DATA)} from {history} where _fivetran_active"
        )

    def create_snapshot(self, history: str, table: str) -> None:
        """The same versions as dbt stores them in a snapshot: no partitions, no properties."""
        self.spark.sql(
            f"create table {table} using delta location '{self.folder(table)}' as "
            f"select id, {', '.join(DATA)}, md5(concat(id, '|', _fivetran_start)) as dbt_scd_id, "
            "_fivetran_start as dbt_updated_at, _fivetran_start as dbt_valid_from, "
            f"if(_fivetran_active, null, _fivetran_end) as dbt_valid_to from {history}"
        )

    def stage(self, table: str, keys: int, number: int, late: bool = True) -> None:
        """Batch `number`: 500 random keys, replacing what the staged table held."""
        chosen = random.Random(f"{table} {number} {late}").sample(range(keys), KEYS)
        rows = list(enumerate(chosen))
        self.spark.createDataFrame(rows, "position int, id bigint").createOrReplaceTempView(
            "chosen"
        )
        select = _staged_sql(number, late)
        if self.spark.catalog.tableExists(table):
            self.spark.sql(f"insert overwrite {table} {select}")
        else:
            where = f"using delta location '{self.folder(table)}'"
            self.spark.sql(f"create table {table} {where} as {select}")

    def update_source(self, source: str, staged: str) -> None:
        """Bring a snapshot's source to the state after the batch."""
        assigned = ", ".join(f"{name} = rows.{name}" for name in DATA)
        values = ", ".join(f"rows.{name}" for name in DATA)
        self.spark.sql(f"""
            merge into {source} as source
            using (
                select rows.*, gone.id is not null as is_gone from {staged} as rows
                left join {staged} as gone on gone.id = rows.id and gone._stage = 'delete'
                where rows._stage in ('update', 'upsert')
            ) as rows on source.id = rows.id
            when matched and is_gone then delete
            when matched and _stage = 'update' then
                update set status = rows.status, amount = rows.amount
            when matched then update set {assigned}
            when not matched and _stage = 'upsert' then
                insert (id, {", ".join(DATA)}) values (rows.id, {values})
        """)

    def drop(self, *schemas: str) -> None:
        """Remove schemas with their files."""
        for schema in schemas:
            self.spark.sql(f"drop schema if exists {schema} cascade")
            shutil.rmtree(self.path / f"{schema}.db", ignore_errors=True)
            self.spark.sql(f"create schema {schema}")


def _versions_sql(keys: int, versions: int, active: bool) -> str:
    """The current versions (age 0), or all closed ones."""
    first, count = (0, 1) if active else (1, versions - 1)
    start = f"{T0} - make_interval(0, 0, 0, {{age}}) + {SECOND}"
    end = OPEN if active else start.format(age="(age - 1)") + " - interval 1 millisecond"
    return f"""
        select
            id, {DATA_SQL.format(age="age")},
            {start.format(age="age")} as _fivetran_synced,
            {start.format(age="age")} as _fivetran_start,
            {end} as _fivetran_end,
            {str(active).lower()} as _fivetran_active
        from (
            select id div {count} as id, cast({first} + id % {count} as int) as age
            from range(0, {keys * count}, 1, 2)
        )
    """


def _staged_sql(number: int, late: bool) -> str:
    """Staged rows: a row `earliest_start` a key, its new version, and a delete for some."""
    is_late = f"position < {LATE if late else 0}"
    at = (
        f"if({is_late}, {T0} - interval 1 day - interval 1 hour + {SECOND}, "
        f"{T0} + make_interval(0, 0, 0, {number + 1}) + {SECOND})"
    )
    stage = f"if(position < {UPDATES}, 'update', 'upsert')"
    kept = "array('name', 'city', 'quantity')"
    empty = ", ".join(f"cast(null as {TYPES[name]}) as {name}" for name in DATA)
    deleted = f"position >= {UPDATES - DELETES} and position < {UPDATES}"
    return f"""
        with rows as (
            select *, {at} as at, {stage} as stage, {DATA_SQL.format(age=-number - 1)} from chosen
        )
        select
            stage as _stage, cast({number} as bigint) as _batch, cast(null as bigint) as _order,
            if(stage = 'update', {kept}, cast(null as array<string>)) as _unmodified,
            id, if(stage = 'update', null, name) as name, if(stage = 'update', null, city) as city,
            status, amount, if(stage = 'update', null, quantity) as quantity,
            at as _fivetran_synced, at as _fivetran_start,
            {OPEN} as _fivetran_end, true as _fivetran_active
        from rows
        union all
        select 'earliest_start', {number}, null, null, id, {empty}, null, at, null, null from rows
        union all
        select 'delete', {number}, null, null, id, {empty}, null, null, at + interval 1 minute, null
        from rows where {deleted}
    """
