"""Build the documented example and print its table: the first result of `make build`."""

from __future__ import annotations

import logging
import sys

from dbt.cli.main import dbtRunner

from dbt_history.session import start_session

TABLE = "dbt_history.fivetran_history"
# Tests that also read other models run later, with these.
ARGUMENTS = ["build", "--select", "+fivetran_history", "--indirect-selection", "cautious"]


def main() -> None:
    logging.getLogger("py4j").setLevel(logging.ERROR)
    spark = start_session("dbt_history first result")
    done = dbtRunner().invoke(["--quiet", *ARGUMENTS])
    if not done.success:
        sys.exit(f"first_result: dbt {' '.join(ARGUMENTS)} failed")
    tests = [result for result in done.result if result.node.resource_type == "test"]  # type: ignore[union-attr]
    versions = spark.table(TABLE).orderBy("id", "_fivetran_start")
    print(f"\n{TABLE}, six batches in one commit, {len(tests)} tests passed:\n")
    versions.show(100, truncate=False)


if __name__ == "__main__":
    main()
