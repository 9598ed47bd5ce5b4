"""Update rows that were skipped because the table has no row that they could change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql.types import BinaryType

from dbt_history.landing.errors import abbreviated
from dbt_history.landing.table import quoted
from dbt_history.serve.tables import Target

SAMPLES = 5


@dataclass(frozen=True)
class Skipped:
    """The number of skipped rows, and some of them."""

    table: str
    count: int
    samples: list[str]

    def __str__(self) -> str:
        rows = "1 update row was" if self.count == 1 else f"{self.count:,} update rows were"
        title = f"{self.table}: {rows} skipped, because the table has no version to change"
        return "\n".join([title, *(f"  {sample}" for sample in self.samples)])


def skipped_samples(target: Target, names: Sequence[str], condition: str) -> list[str]:
    """Landed update rows that are not in the table by these columns, in their order.

    Spark writes the values as text: Python has fewer years, and shows times in its own zone.
    """
    types = {field.name.lower(): field.dataType for field in target.landed_fields()}
    listed = ", ".join(
        # Bytes need not be a text.
        f"landed.{quoted(name)}"
        if types[name.lower()] == BinaryType()
        else f"cast(landed.{quoted(name)} as string)"
        for name in names
    )
    same = " and ".join(f"stored.{quoted(name)} <=> landed.{quoted(name)}" for name in names)
    rows = target.spark.sql(
        f"select {listed} from {target.landing.full_name} as landed"
        f" left anti join {target.full_name} as stored on {same}"
        f" where landed.`_stage` = 'update' and landed.{condition}"
        f" order by landed.`_batch`, landed.`_order` limit {SAMPLES}"
    ).collect()
    return [
        ", ".join(f"{name} {abbreviated(str(value))}" for name, value in zip(names, row))
        for row in rows
    ]
