"""Write the documented example as six requests, as a writer would send them.

The rows come from `seeds/examples/fivetran`. The columns of every file are shuffled, and the
requests differ in format, compression and encryption. The output is deterministic.

    scripts/landing_example.py FOLDER
"""

from __future__ import annotations

import csv
import hashlib
import random
import sys
from pathlib import Path

from dbt_history.landing.writer import RequestWriter, csv_text, parquet

SEEDS = Path(__file__).resolve().parent.parent / "seeds/examples/fivetran"
COLUMNS = {
    "id": "LONG",
    "col1": "STRING",
    "col2": "LONG",
    "_fivetran_start": "UTC_DATETIME",
    "_fivetran_end": "UTC_DATETIME",
    "_fivetran_active": "BOOLEAN",
    "_fivetran_synced": "UTC_DATETIME",
}
STAGES = ("earliest_start", "upsert", "update", "delete")
# Format, compression and encryption, by batch.
FORMS = {
    1: ("csv", "ZSTD", True),
    2: ("csv", "GZIP", True),
    3: ("csv", "OFF", True),
    4: ("parquet", "OFF", False),
    5: ("parquet", "ZSTD", True),
    6: ("csv", "GZIP", False),
}


def seed(name: str) -> list[dict[str, str]]:
    with (SEEDS / f"fivetran_{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write_request(folder: Path, batch: int, null: str, unmodified: str) -> None:
    form, compression, is_encrypted = FORMS[batch]
    writer = RequestWriter(
        folder,
        COLUMNS,
        table="fivetran_items",
        schema="shop",
        compression=compression,
        is_encrypted=is_encrypted,
        null=null,
        unmodified=unmodified,
    )
    for stage in STAGES:
        rows = [row for row in seed(f"{stage}_files") if int(row["_batch"]) == batch]
        if not rows:
            continue
        name = f"files/{batch}_{stage}.{form}"
        header = [column for column in rows[0] if column not in ("_batch", "_line")]
        random.Random(name).shuffle(header)
        rows.sort(key=lambda row: int(row["_line"]))
        cells = [[row[column] for column in header] for row in rows]
        data = csv_text(header, cells) if form == "csv" else parquet(header, cells)
        # The key is fixed to make the output deterministic; real writers use random keys.
        writer.add(stage, name, data, hashlib.sha256(name.encode()).digest())
    writer.write(f"request_{batch}.json")


def main(folder: str) -> None:
    for row in seed("requests"):
        write_request(
            Path(folder), int(row["_batch"]), row["null_string"], row["unmodified_string"]
        )


if __name__ == "__main__":
    main(sys.argv[1])
