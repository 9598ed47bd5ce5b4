"""Two or four processes that work on one history table at the same time.

Each runs the model, or a statement of another kind. One of them may lose and fail; after a quiet
run the table must be that of the oracle, and no batch may be applied twice.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from tests.oracle.convention import FIVETRAN
from tests.oracle.random_histories import DATA_COLUMNS, KEY, History
from tests.support.project import SCHEMA
from tests.torture.workers import Answer, Job
from tests.torture.works import (
    COLUMNS,
    CONTENT,
    a_history,
    after,
    dbt,
    differences,
    doubled_batches,
    history_model,
    operation,
)

TABLE = f"{SCHEMA}.h"
RUN = dbt("run", "--select", "h")
ERASED = "torture"
NOBODY, SUBJECT = dict.fromkeys(KEY, ERASED), dict.fromkeys(KEY, "subject")

# The subject has two versions, both of the first batch; the first ended before CLEANED, no version
# of any record before EARLIEST.
#
#   1970               1971      1972        1973
#   EARLIEST
#     [ 7 ) ENDED        CLEANED   [ 8 BEGUN --------->
#                                            [ 7 AGAIN ->    after a rewind to before ENDED
EARLIEST = datetime(1970, 1, 1)
ENDED, CLEANED, BEGUN = datetime(1970, 3, 1), datetime(1971, 1, 1), datetime(1972, 1, 1)
AGAIN = datetime(1973, 1, 1)
VERSIONS = [
    {
        **SUBJECT, "name": "n", "note": "", "amount": amount, "_stage": "upsert",
        "_fivetran_start": start, "_fivetran_end": end or FIVETRAN.open_end,
        "_fivetran_active": end is None, "_fivetran_synced": None,
        "_order": None, "_unmodified": None,
    }
    for amount, start, end in ((7, ENDED - timedelta(days=9), ENDED), (8, BEGUN, None))
]  # fmt: skip


def sql(text: str) -> dict[str, Any]:
    return {"sql": text.format(TABLE)}


OPPONENTS: dict[str, Callable[[random.Random], dict[str, Any]]] = {
    "run": lambda choice: RUN,
    "compact": lambda choice: operation("compact_history", table="h"),
    "optimize": lambda choice: sql("optimize {}"),
    "vacuum": lambda choice: sql("vacuum {}"),
    "restore": lambda choice: sql(f"restore table {{}} to version as of {choice.randint(0, 1)}"),
    "truncate": lambda choice: sql("truncate table {}"),
    "add column": lambda choice: sql("alter table {} add columns (further string)"),
    "set property": lambda choice: sql("alter table {} set tblproperties ('torture' = 'yes')"),
    "tag": lambda choice: operation("create_tag", tag="torture", table="h"),
    "erase nobody": lambda choice: operation("erase_subject", table="h", only=NOBODY),
    "clean nothing": lambda choice: operation("clean_history", table="h", before=str(EARLIEST)),
    "rewind nobody": lambda choice: operation("rewind", table="h", to="2024-01-01", only=NOBODY),
    "erase": lambda choice: operation("erase_subject", table="h", only=SUBJECT),
    "clean": lambda choice: operation("clean_history", table="h", before=str(CLEANED)),
    "rewind": lambda choice: operation(
        "rewind", table="h", to=str(ENDED - timedelta(days=1)), at=str(AGAIN), only=SUBJECT
    ),
}
# After these the table is not that of the batches alone, and a reset would undo them.
CHANGING, RESETS = {"erase", "clean", "rewind"}, {"restore", "truncate"}


class Race:
    """A table with its first batch, one run of the model, and its opponents."""

    def __init__(self, choice: random.Random, processes: int) -> None:
        drawn = a_history(choice, batches=4)
        # A truncate removes the rows of another writer for ever: the table begins empty.
        first, *later = drawn.batches
        self.history = History(drawn.key, drawn.convention, [], [[*first, *VERSIONS], *later])
        names = choice.choices(list(OPPONENTS), k=processes - 1)
        if CHANGING & set(names):
            names = ["run" if name in RESETS else name for name in names]
        # With these, the result of a rewind depends on the order.
        if {"erase", "clean"} & set(names):
            names = ["run" if name == "rewind" else name for name in names]
        self.names = ["run", *names]
        self.files = {"models/h.sql": history_model(self.history, None)}
        self.before = Job([RUN], {"models/h.sql": history_model(self.history, 1)})
        self.jobs = [
            Job([step], self.files) for step in [RUN, *(OPPONENTS[name](choice) for name in names)]
        ]
        # One that lost is repeated; one that was done changes nothing more.
        again = [OPPONENTS[name](choice) for name in CHANGING & set(names)]
        self.quiet = Job([RUN, *again], self.files, CONTENT)

    def expected(self) -> list[dict[str, Any]]:
        """The table of the oracle with what the opponents did to the subject."""
        rows = []
        for row in after(self.history):
            is_subject = all(row[name] == value for name, value in SUBJECT.items())
            if is_subject and "clean" in self.names and row["_fivetran_end"] < CLEANED:
                continue
            if is_subject and "rewind" in self.names and row["_fivetran_active"]:
                rows.append({**row, "amount": 7, "_fivetran_start": AGAIN})
                end = AGAIN - timedelta(milliseconds=1)
                row = {**row, "_fivetran_end": end, "_fivetran_active": False}
            if is_subject and "erase" in self.names:
                row = {**row, **dict.fromkeys(DATA_COLUMNS)}
            rows.append(row)
        return rows

    def check(self, answer: Answer) -> list[str]:
        errors = [f"the quiet run failed: {error}" for error in answer.outcomes if error]
        errors += differences("h", answer.rows["h"], self.expected(), COLUMNS)
        return errors + doubled_batches(answer.rows["log"])
