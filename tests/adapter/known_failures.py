"""Tests of the suite that fail on dbt-spark, each with the reason.

A test that passes although it is listed fails, so that an entry is removed when dbt-spark corrects
the bug.
"""

from __future__ import annotations

EMPTY_DELETION = "hard_deletes: new_record writes a deletion without the values of the record"
NEW_RECORD = ("TestNewRecordTimestamp", "TestNewRecordCheck", "TestNewRecordValidToCurrent")

NULL_IS_TEXT = "a NULL of the seed becomes the text None"
NULLS = (
    "TestBasic.test_simple_seed",
    "TestBasic.test_simple_seed_full_refresh_flag",
    "TestFullRefreshOn.test_simple_seed_full_refresh_config",
    "TestFullRefreshOff.test_simple_seed_full_refresh_config",
    "TestCustomSchema.test_simple_seed_with_schema",
    "TestCustomSchema.test_simple_seed_with_drop_and_schema",
    "TestUniqueDelimiter.test_seed_with_unique_delimiter",
    "TestByteOrderMark.test_simple_seed",
    "TestUniqueKey.test__one_unique_key",
    "TestUniqueKey.test__unary_unique_key_list",
    "TestUniqueKey.test__duplicated_unary_unique_key_list",
    "TestUniqueKey.test__trinary_unique_key_list",
)
VIEW_STAYS = "Spark does not drop a view with the table that it reads, as Postgres does"
NO_MESSAGE = "Spark has no text for Delta's error: Cannot find main error class"
COLUMN_STAYS = "append selects the columns of the table, also those that the model no longer has"
NO_DROP = "dbt-spark does not remove columns of a Delta table"
BOTH = ("package", "plain")

# By test and way of `conftest.py`.
KNOWN_FAILURES = {
    **{(name, "plain"): NULL_IS_TEXT for name in NULLS},
    ("TestBasic.test_simple_seed_full_refresh_flag", "package"): VIEW_STAYS,
    ("TestFullRefreshOn.test_simple_seed_full_refresh_config", "package"): VIEW_STAYS,
    **{("TestUniqueKey.test__bad_unique_key", way): NO_MESSAGE for way in BOTH},
    **{("TestUniqueKey.test__bad_unique_key_list", way): NO_MESSAGE for way in BOTH},
    **{
        ("TestOnSchemaChange.test_run_incremental_append_new_columns", way): COLUMN_STAYS
        for way in BOTH
    },
    **{("TestOnSchemaChange.test_run_incremental_sync_all_columns", way): NO_DROP for way in BOTH},
    (
        "TestMultiUniqueKey.test_multi_column_unique_key",
        "plain",
    ): "with a list as unique_key the second run fails: AMBIGUOUS_REFERENCE",
    **{(f"{name}.test_snapshot_new_record_mode", "plain"): EMPTY_DELETION for name in NEW_RECORD},
}
