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

from tests.support.iceberg import drop_tables

INPUT = "bench_input"
LAST = "where _batch > {{ dbt_history.last_batch() }}"
ROWS_A_FILE = 125_000
VERSIONS_A_KEY = 10
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
    """Where the tables lie; one folder a table, so that it is copied with its files and its log.

    On Iceberg `path` is the catalog's warehouse, which chooses the folders itself.
    """

    spark: SparkSession
    path: Path
    format: str = "delta"

    def folder(self, table: str) -> Path:
        """The folder of a table `schema.name`."""
        schema, name = table.split(".")
        return self.path / (schema if self.format == "iceberg" else f"{schema}.db") / name

    def _using(self, table: str) -> str:
        place = "" if self.format == "iceberg" else f" location '{self.folder(table)}'"
        return f"using {self.format}{place}"

    def create_history(self, table: str, keys: int, versions: int) -> None:
        """A fivetran history of `keys` × `versions` rows, deletion vectors on.

        Partitioned by the flag as `history_batch` does it; closed versions lie in the order in
        which they were closed.
        """
        columns = ", ".join(f"{name} {TYPES[name]}" for name in COLUMNS)
        self.spark.sql(
            f"create table {table} ({columns}) {self._using(table)} "
            "partitioned by (_fivetran_active) "
            "tblproperties ('delta.enableDeletionVectors' = 'true')"
        )
        self.fill_history(table, keys, versions)

    def fill_history(
        self, table: str, keys: int, versions: int, rows_a_file: float = ROWS_A_FILE
    ) -> None:
        """The rows of `create_history`, for an empty table that dbt has made."""
        for active, rows in ((False, keys * (versions - 1)), (True, keys)):
            files = max(1, round(rows / rows_a_file))
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

    def stage(self, table: str, keys: int, number: int, late: bool = True, times: int = 1) -> None:
        """Batch `number`: 500 × `times` random keys, replacing what the staged table held."""
        chosen = random.Random(f"{table} {number} {late}").sample(range(keys), KEYS * times)
        rows = list(enumerate(chosen))
        self.spark.createDataFrame(rows, "position int, id bigint").createOrReplaceTempView(
            "chosen"
        )
        select = _staged_sql(number, late, times)
        if self.spark.catalog.tableExists(table):
            self.spark.sql(f"insert overwrite {table} {select}")
        else:
            self.spark.sql(f"create table {table} {self._using(table)} as {select}")

    def stage_nothing(self, table: str) -> None:
        """The staged table without a row: a run on it makes an empty history."""
        self.stage(table, KEYS, 0)
        self.spark.sql(f"delete from {table}")

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
        """Remove schemas with their files, and make them again, empty."""
        for schema in schemas:
            if self.format == "iceberg":
                drop_tables(self.spark, schema)
            self.spark.sql(f"drop schema if exists {schema} cascade")
            shutil.rmtree(self.folder(f"{schema}.any").parent, ignore_errors=True)
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


def _staged_sql(number: int, late: bool, times: int) -> str:
    """Staged rows: a row `earliest_start` a key, its new version, and a delete for some."""
    is_late = f"position < {LATE * times if late else 0}"
    at = (
        f"if({is_late}, {T0} - interval 1 day - interval 1 hour + {SECOND}, "
        f"{T0} + make_interval(0, 0, 0, {number + 1}) + {SECOND})"
    )
    updates, deletes = UPDATES * times, DELETES * times
    stage = f"if(position < {updates}, 'update', 'upsert')"
    kept = "array('name', 'city', 'quantity')"
    empty = ", ".join(f"cast(null as {TYPES[name]}) as {name}" for name in DATA)
    deleted = f"position >= {updates - deletes} and position < {updates}"
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
