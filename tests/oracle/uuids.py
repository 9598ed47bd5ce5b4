"""The documented UUID of states and transactions, in plain Python."""

from __future__ import annotations

from datetime import date
from uuid import UUID

FIRST_DAY, LAST_DAY = date(2000, 1, 1), date(3023, 12, 31)


def uuid_of(object_id: int, day: date) -> str:
    """Text of 60 bits of id, version 4, variant, year - 2000, month, day, type 1, database id 0."""
    day = min(max(day, FIRST_DAY), LAST_DAY)
    high = (object_id >> 12) << 16 | 4 << 12 | object_id & 0xFFF
    low = 2 << 62 | (day.year - 2000) << 52 | day.month << 48 | day.day << 43
    return str(UUID(int=high << 64 | low | 1 << 40))
