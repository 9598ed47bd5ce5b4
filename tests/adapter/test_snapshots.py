"""The snapshot tests of dbt's adapter suite."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.basic.test_snapshot_check_cols import BaseSnapshotCheckCols
from dbt.tests.adapter.basic.test_snapshot_timestamp import BaseSnapshotTimestamp
from dbt.tests.adapter.simple_snapshot import test_various_configs as various
from dbt.tests.adapter.simple_snapshot.new_record_check_mode import BaseSnapshotNewRecordCheckMode
from dbt.tests.adapter.simple_snapshot.new_record_dbt_valid_to_current import (
    BaseSnapshotNewRecordDbtValidToCurrent,
)
from dbt.tests.adapter.simple_snapshot.new_record_timestamp_mode import (
    BaseSnapshotNewRecordTimestampMode,
)
from dbt.tests.adapter.simple_snapshot.test_ephemeral_snapshot_hard_deletes import (
    BaseSnapshotEphemeralHardDeletes,
    BaseSnapshotNewColumnSpecificCheckCols,
    BaseSnapshotNewColumnTimestampStrategy,
    BaseSnapshotNewColumnWithDeletes,
)
from dbt.tests.adapter.simple_snapshot.test_snapshot import BaseSimpleSnapshot, BaseSnapshotCheck


@pytest.fixture(autouse=True)
def adapted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The suite expects rows in the order of their insertion, and file formats to stay."""
    ask, update = (vars(various)[name] for name in ("run_sql_with_adapter", "update_config_file"))

    def ask_in_order(adapter: Any, sql: str, fetch: str | None = None) -> Any:
        ordered = (
            "from (select *, row_number() over (partition by id order by test_valid_from) as place"
            " from {schema}.snapshot_actual) order by place, id"
        )
        return ask(adapter, sql.replace("from {schema}.snapshot_actual", ordered), fetch)

    def update_and_keep(changes: dict[str, Any], *places: str) -> Any:
        changes["snapshots"]["+file_format"] = "delta"
        return update(changes, *places)

    monkeypatch.setattr(various, "run_sql_with_adapter", ask_in_order)
    monkeypatch.setattr(various, "update_config_file", update_and_keep)


class TestTimestamp(BaseSimpleSnapshot):
    pass


class TestCheck(BaseSnapshotCheck):
    pass


class TestBasicTimestamp(BaseSnapshotTimestamp):
    pass


class TestBasicCheckCols(BaseSnapshotCheckCols):
    pass


class TestColumnNames(various.BaseSnapshotColumnNames):
    pass


class TestColumnNamesOfTheProject(various.BaseSnapshotColumnNamesFromDbtProject):
    pass


class TestInvalidColumnNames(various.BaseSnapshotInvalidColumnNames):
    pass


class TestValidToCurrent(various.BaseSnapshotDbtValidToCurrent):
    pass


class TestMultiUniqueKey(various.BaseSnapshotMultiUniqueKey):
    pass


class TestNewRecordTimestamp(BaseSnapshotNewRecordTimestampMode):
    pass


class TestNewRecordCheck(BaseSnapshotNewRecordCheckMode):
    pass


class TestNewRecordValidToCurrent(BaseSnapshotNewRecordDbtValidToCurrent):
    pass


class TestEphemeralHardDeletes(BaseSnapshotEphemeralHardDeletes):
    pass


class TestNewColumnTimestamp(BaseSnapshotNewColumnTimestampStrategy):
    pass


class TestNewColumnSpecificCheckCols(BaseSnapshotNewColumnSpecificCheckCols):
    pass


class TestNewColumnWithDeletes(BaseSnapshotNewColumnWithDeletes):
    pass
