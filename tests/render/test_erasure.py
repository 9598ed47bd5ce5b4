"""What an erasure finds and records; no Spark."""

from __future__ import annotations

from datetime import date, datetime

from tests.support.rendering import Renderer


def test_a_subject_whose_key_is_a_day_or_a_time_is_recorded(call: Renderer) -> None:
    """dbt reads an unquoted 2024-03-01 of --args as a date, which JSON does not have."""
    days = [date(2024, 3, 1), date(2024, 3, 2), datetime(2024, 3, 1, 12), "2024-03-01", 7, "7"]
    found = [call("_subject_hash", only={"day": day}, salt="run") for day in days]

    assert found[0] == found[3]
    assert len(set(found)) == 5
