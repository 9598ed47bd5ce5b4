"""Two or four processes that work on one history table at the same time.

Each runs the model, or a statement of another kind. One of them may lose and fail; after a quiet
run the table must be that of the oracle, and no batch may be applied twice.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tests.oracle.random_histories import History
from tests.support.project import SCHEMA
from tests.torture.workers import Answer, Job
from tests.torture.works import CONTENT, a_history, check_history, dbt, history_model, operation

TABLE = f"{SCHEMA}.h"
RUN = dbt("run", "--select", "h")
ERASED = "torture"


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
    "erase nobody": lambda choice: operation(
        "erase_subject", table="h", only={"region": ERASED, "id": ERASED}
    ),
    "clean nothing": lambda choice: operation("clean_history", table="h", before="1971-01-01"),
    "rewind nobody": lambda choice: operation(
        "rewind", table="h", to="2024-01-01", only={"region": ERASED, "id": ERASED}
    ),
}


class Race:
    """A table with its first batch, one run of the model, and its opponents."""

    def __init__(self, choice: random.Random, processes: int) -> None:
        drawn = a_history(choice, batches=4)
        # A truncate removes the rows of another writer for ever: the table begins empty.
        self.history = History(drawn.key, drawn.convention, [], drawn.batches)
        names = choice.choices(list(OPPONENTS), k=processes - 1)
        self.names = ["run", *names]
        self.files = {"models/h.sql": history_model(self.history, None)}
        self.before = Job([RUN], {"models/h.sql": history_model(self.history, 1)})
        self.jobs = [
            Job([step], self.files) for step in [RUN, *(OPPONENTS[name](choice) for name in names)]
        ]
        self.quiet = Job([RUN], self.files, CONTENT)

    def check(self, answer: Answer) -> list[str]:
        errors = [f"the quiet run failed: {error}" for error in answer.outcomes if error]
        return errors + check_history(self.history, answer)
