"""What each generic test must pass and fail on: tables as SQL, and the number of failing rows.

Data only; the caller creates each table, runs the test on it and counts the failing rows. Times
are UTC.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

OPEN = "9999-12-31 23:59:59.999"
MAX_BIGINT = 9223372036854775807

TIMES = {"convention": "validity"}
NUMBERS = {"convention": "validity", "type": "bigint"}
NUMBERS_WITH_MAXIMUM = {"convention": "validity", "type": "bigint", "open_end": MAX_BIGINT}
APPEND_ONLY = {**NUMBERS, "append_only": True}
DATES = {"convention": "validity", "type": "date"}
CLOSED_DATES = {"convention": "validity", "type": "date", "open_end": "9999-12-31", "gap": "1 day"}
# Open ends before the year 9999.
EARLY_DATES = {"convention": "validity", "type": "date", "open_end": "2099-12-31"}
EARLY = {"convention": "fivetran", "open_end": "2099-12-31 23:59:59"}
ODD_NAMES = {"start": "start", "end": "end", "active": "My Col", "type": "bigint", "open_end": 99}


@dataclass(frozen=True)
class GenericTestCase:
    """One table and the result of a generic test on it.

    sentence    a statement about the table; the name of the case
    test        the generic test
    table       SQL query that gives the rows of the table
    failures    the number of rows that the test must return
    arguments   arguments of the test besides the model
    expected    for `matches_expected`: SQL query for the other side
    history     the table's own `meta.history`
    """

    sentence: str
    test: str
    table: str
    failures: int
    arguments: dict[str, Any] = field(default_factory=dict)
    expected: str | None = None
    history: dict[str, Any] = field(default_factory=dict)


def fivetran(*rows: tuple[Any, str | None, str | None, bool | None]) -> str:
    """Versions (id, start, end, active) under the fivetran names."""
    return union(
        f"select {literal(key)} as id, {time(start)} as _fivetran_start,"
        f" {time(end)} as _fivetran_end, {literal(active)} as _fivetran_active"
        for key, start, end, active in rows
    )


def periods(axis: str, *rows: tuple[Any, Any, Any]) -> str:
    """Versions (id, start, end) under the names of `validity`; axis: bigint, date or timestamp."""
    points: dict[str, Callable[[Any], str]] = {"timestamp": time, "date": date, "bigint": number}
    point = points[axis]
    return union(
        f"select {literal(key)} as id, {point(start)} as valid_from, {point(end)} as valid_to"
        for key, start, end in rows
    )


def odd(*rows: tuple[Any, Any, int, int, bool]) -> str:
    """Versions (My Key, path, start, end, My Col): a composite key, names that are SQL keywords."""
    return union(
        f"select {literal(first)} as `My Key`, {literal(second)} as path,"
        f" {number(start)} as start, {number(end)} as `end`, {literal(active)} as `My Col`"
        for first, second, start, end, active in rows
    )


def union(selects: Iterable[str]) -> str:
    return " union all ".join(selects)


def literal(value: Any) -> str:
    if value is None:
        return "cast(null as boolean)"
    if isinstance(value, bool):
        return str(value).lower()
    return f"'{value}'" if isinstance(value, str) else str(value)


def time(value: str | None) -> str:
    return "cast(null as timestamp)" if value is None else f"timestamp'{value} UTC'"


def date(value: str | None) -> str:
    return "cast(null as date)" if value is None else f"date'{value}'"


def number(value: int | None) -> str:
    return "cast(null as bigint)" if value is None else f"{value}L"


# sentence, table, failures, arguments
Line: TypeAlias = tuple[str, str, int, dict[str, Any]]

T1, T2, T3, T4 = (f"2024-01-01 00:0{minute}:00" for minute in (1, 2, 3, 4))
BEFORE_T2, BEFORE_T3, BEFORE_T4 = (f"2024-01-01 00:0{minute}:59.999" for minute in (1, 2, 3))
ID = {"key": "id"}
ODD = {"key": ["My Key", "path"], "convention": ODD_NAMES}

GOOD = fivetran((1, T1, BEFORE_T2, False), (1, T2, OPEN, True), (2, T2, OPEN, True))
DELETED_AND_BACK = fivetran((1, T1, T2, False), (1, T3, OPEN, True))
GOOD_ODD = odd(("a", "x", 1, 5, False), ("a", "x", 5, 99, True), ("a", "y", 2, 99, True))

PERIODS_DO_NOT_OVERLAP: list[Line] = [
    ("periods of a key that touch do not overlap", GOOD, 0, ID),
    (
        "periods of different keys may overlap",
        fivetran((1, T1, OPEN, True), (2, T1, OPEN, True)),
        0,
        ID,
    ),
    ("a deletion gap is no overlap", DELETED_AND_BACK, 0, ID),
    ("an empty table has no overlap", f"select * from ({GOOD}) where false", 0, ID),
    (
        "two open versions of a key overlap",
        fivetran((1, T1, OPEN, True), (1, T2, OPEN, True)),
        1,
        ID,
    ),
    ("a NULL end is open and overlaps", fivetran((1, T1, None, True), (1, T2, OPEN, True)), 1, ID),
    (
        "an end within one gap of the next start overlaps it",
        fivetran((1, T1, "2024-01-01 00:01:59.9995", False), (1, T2, OPEN, True)),
        1,
        ID,
    ),
    ("equal starts overlap", fivetran((1, T1, BEFORE_T3, False), (1, T1, OPEN, True)), 1, ID),
    (
        "an overlap is found behind a short version in between",
        fivetran(
            (1, T1, BEFORE_T4, False), (1, T2, "2024-01-01 00:02:00", False), (1, T3, OPEN, True)
        ),
        2,
        ID,
    ),
    (
        "the active flag is ignored",
        fivetran((1, T1, OPEN, False), (1, T2, OPEN, None)),
        1,
        ID,
    ),
    (
        "half-open periods may touch",
        periods("timestamp", (1, T1, T2), (1, T2, None)),
        0,
        {"key": "id", "convention": TIMES},
    ),
    (
        "half-open periods overlap by a microsecond",
        periods("timestamp", (1, T1, "2024-01-01 00:02:00.000001"), (1, T2, None)),
        1,
        {"key": "id", "convention": TIMES},
    ),
    (
        "numbers with a NULL open end: adjacent periods pass, a second open version fails",
        periods("bigint", (1, 1, 5), (1, 5, None), (2, 1, None), (2, 7, None)),
        1,
        {"key": "id", "convention": NUMBERS},
    ),
    (
        "numbers with a maximum as open end",
        periods("bigint", (1, 1, 5), (1, 5, MAX_BIGINT), (2, 1, MAX_BIGINT), (2, 7, MAX_BIGINT)),
        1,
        {"key": "id", "convention": NUMBERS_WITH_MAXIMUM},
    ),
    (
        "several states of one transaction: the earlier ones are empty and overlap nothing",
        "select 'f' as id, 1L as i, 10L as txn, 10L as txn_next union all select 'f', 2L, 10L, 12L"
        " union all select 'f', 3L, 12L, null",
        0,
        {"key": "id", "convention": "naksha"},
    ),
    (
        "two non-empty states of one transaction overlap",
        "select 'f' as id, 1L as i, 10L as txn, 12L as txn_next union all select 'f', 2L, 10L, 12L",
        1,
        {"key": "id", "convention": "naksha"},
    ),
    (
        "two versions of a key in an append-only table overlap",
        "select 1 as id, 5L as valid_from union all select 1, 6L union all select 2, 6L",
        1,
        {"key": "id", "convention": APPEND_ONLY},
    ),
    (
        "dates, half-open",
        periods(
            "date",
            (1, "2024-01-01", "2024-01-05"),
            (1, "2024-01-05", None),
            (2, "2024-01-01", "2024-01-06"),
            (2, "2024-01-05", None),
        ),
        1,
        {"key": "id", "convention": DATES},
    ),
    (
        "dates, closed: the end is the last day",
        periods(
            "date",
            (1, "2024-01-01", "2024-01-04"),
            (1, "2024-01-05", "9999-12-31"),
            (2, "2024-01-01", "2024-01-05"),
            (2, "2024-01-05", "9999-12-31"),
        ),
        1,
        {"key": "id", "convention": CLOSED_DATES},
    ),
    ("odd column names and a composite key", GOOD_ODD, 0, ODD),
    (
        "odd column names and a composite key, overlapping",
        odd(("a", "x", 1, 6, False), ("a", "x", 5, 99, True), ("a", "y", 2, 99, True)),
        1,
        ODD,
    ),
    (
        "column names in another case are the same columns",
        "select 1 as ID, timestamp'2024-01-01 00:00:00 UTC' as _FIVETRAN_START,"
        " timestamp'9999-12-31 00:00:00 UTC' as _Fivetran_End",
        0,
        ID,
    ),
]

NO_GAP_BETWEEN_VERSIONS: list[Line] = [
    ("versions that touch have no gap", GOOD, 0, ID),
    (
        "versions that touch have no gap when none is allowed",
        GOOD,
        0,
        {**ID, "allow_deletion_gaps": False},
    ),
    ("a deletion gap is allowed", DELETED_AND_BACK, 0, ID),
    (
        "a deletion gap fails when none is allowed",
        DELETED_AND_BACK,
        1,
        {**ID, "allow_deletion_gaps": False},
    ),
    (
        "a gap of one unit is no deletion",
        fivetran((1, T1, "2024-01-01 00:01:59.998", False), (1, T2, OPEN, True)),
        1,
        ID,
    ),
    (
        "a gap of less than one unit is no deletion",
        fivetran((1, T1, "2024-01-01 00:01:59.998999", False), (1, T2, OPEN, True)),
        1,
        ID,
    ),
    (
        "a gap of more than one unit is a deletion",
        fivetran((1, T1, "2024-01-01 00:01:59.997", False), (1, T2, OPEN, True)),
        0,
        ID,
    ),
    ("a gap below the stated minimum fails", DELETED_AND_BACK, 1, {**ID, "minimum_gap": "1 hour"}),
    (
        "a gap of the stated minimum is allowed",
        periods("timestamp", (1, T1, T2), (1, T3, None)),
        0,
        {"key": "id", "convention": TIMES, "minimum_gap": "1 minute"},
    ),
    (
        "a period closed a millisecond too early in a half-open table fails",
        periods("timestamp", (1, T1, BEFORE_T2), (1, T2, None)),
        1,
        {"key": "id", "convention": TIMES},
    ),
    (
        "a gap is measured from the end of all earlier versions",
        fivetran((1, T1, BEFORE_T4, False), (1, T2, BEFORE_T3, False), (1, T4, OPEN, True)),
        0,
        {**ID, "allow_deletion_gaps": False},
    ),
    ("an overlap is no gap", fivetran((1, T1, OPEN, True), (1, T2, OPEN, True)), 0, ID),
    (
        "numbers with a NULL open end",
        periods(
            "bigint", (1, 1, 5), (1, 5, None), (2, 1, 4), (2, 5, None), (3, 1, 3), (3, 5, None)
        ),
        1,
        {"key": "id", "convention": NUMBERS},
    ),
    (
        "numbers with a maximum as open end, no gap allowed",
        periods(
            "bigint",
            (1, 1, 5),
            (1, 5, MAX_BIGINT),
            (2, 1, 4),
            (2, 5, MAX_BIGINT),
            (3, 1, 3),
            (3, 5, 8),
        ),
        2,
        {"key": "id", "convention": NUMBERS_WITH_MAXIMUM, "allow_deletion_gaps": False},
    ),
    (
        "numbers, a stated minimum",
        periods("bigint", (1, 1, 3), (1, 12, None), (2, 1, 3), (2, 13, None)),
        1,
        {"key": "id", "convention": NUMBERS, "minimum_gap": 10},
    ),
    (
        "closed dates: a day missing fails, two are a deletion",
        periods(
            "date",
            (1, "2024-01-01", "2024-01-03"),
            (1, "2024-01-05", "9999-12-31"),
            (2, "2024-01-01", "2024-01-02"),
            (2, "2024-01-05", "9999-12-31"),
            (3, "2024-01-01", "2024-01-04"),
            (3, "2024-01-05", "9999-12-31"),
        ),
        1,
        {"key": "id", "convention": CLOSED_DATES},
    ),
    (
        "odd column names and a composite key, with a gap",
        odd(("a", "x", 1, 4, False), ("a", "x", 5, 99, True), ("a", "y", 6, 99, True)),
        1,
        ODD,
    ),
]

ONE_ACTIVE_VERSION: list[Line] = [
    ("a key has one open version", GOOD, 0, ID),
    ("a deleted record may have none", fivetran((1, T1, T2, False)), 0, ID),
    (
        "a deleted record fails when one is required",
        fivetran((1, T1, T2, False)),
        1,
        {**ID, "at_least_one": True},
    ),
    ("a key has one open version, as required", GOOD, 0, {**ID, "at_least_one": True}),
    (
        "two open versions of a key fail, once",
        fivetran((1, T1, OPEN, True), (1, T2, OPEN, True), (2, T1, OPEN, True)),
        1,
        ID,
    ),
    (
        "equal starts count twice",
        fivetran((1, T1, OPEN, True), (1, T1, OPEN, True)),
        1,
        ID,
    ),
    (
        "a NULL active flag does not count",
        fivetran((1, T1, OPEN, None), (1, T2, OPEN, True)),
        0,
        ID,
    ),
    (
        "numbers with a NULL open end",
        periods("bigint", (1, 1, None), (2, 1, None), (2, 7, None)),
        1,
        {"key": "id", "convention": NUMBERS},
    ),
    (
        "numbers with a maximum as open end, NULL open too",
        periods(
            "bigint", (1, 1, MAX_BIGINT), (2, 1, None), (2, 7, MAX_BIGINT), (3, 1, MAX_BIGINT - 1)
        ),
        1,
        {"key": "id", "convention": NUMBERS_WITH_MAXIMUM},
    ),
    (
        "closed dates, open in the year 9999",
        periods(
            "date",
            (1, "2024-01-01", "9999-12-31"),
            (1, "2024-02-01", "9999-12-30"),
            (2, "2024-01-01", "2024-02-01"),
        ),
        1,
        {"key": "id", "convention": CLOSED_DATES},
    ),
    (
        "dates, open from an open end before the year 9999",
        periods(
            "date",
            (1, "2024-01-01", "2099-12-31"),
            (1, "2024-02-01", "9999-12-31"),
            (2, "2024-01-01", "2099-12-30"),
            (2, "2024-02-01", "2099-12-31"),
            (3, "2024-01-01", "2099-12-31"),
        ),
        1,
        {"key": "id", "convention": EARLY_DATES},
    ),
    (
        "a version with an open end before the year 9999 counts where one is required",
        periods("date", (1, "2024-01-01", "2099-12-31"), (2, "2024-01-01", "2024-02-01")),
        1,
        {"key": "id", "convention": EARLY_DATES, "at_least_one": True},
    ),
    (
        "odd column names and a composite key",
        odd(("a", "x", 1, 99, True), ("a", "x", 5, 99, True), ("a", "y", 6, 99, True)),
        1,
        ODD,
    ),
]

ACTIVE_MATCHES_OPEN_END: list[Line] = [
    ("active is true exactly at the open end", GOOD, 0, ID),
    ("active with a closed end fails", fivetran((1, T1, T2, True)), 1, ID),
    ("inactive with the open end fails", fivetran((1, T1, OPEN, False)), 1, ID),
    (
        "a NULL active flag fails, open or closed",
        fivetran((1, T1, OPEN, None), (2, T1, T2, None)),
        2,
        ID,
    ),
    (
        "a NULL end fails where the open end is a value",
        fivetran((1, T1, None, True), (2, T1, None, False)),
        2,
        ID,
    ),
    (
        "open ends as in real files",
        fivetran(
            (1, T1, "9999-12-31 23:59:59", True),
            (2, T1, "9999-12-31 23:59:59.999999", True),
            (3, T1, "9999-12-31 00:00:00", True),
            (4, T1, "9998-12-31 23:59:59", False),
        ),
        0,
        ID,
    ),
    (
        "a NULL end is open if the open end of the convention is NULL",
        fivetran((1, T1, None, True), (2, T1, None, False), (3, T1, T2, False)),
        1,
        {"key": "id", "convention": {"convention": "fivetran", "open_end": None}},
    ),
    (
        "active from an open end before the year 9999",
        fivetran(
            (1, T1, "2099-12-31 23:59:59", True),
            (2, T1, "2099-12-31 23:59:59", False),
            (3, T1, "2099-12-31 23:59:58.999", False),
            (4, T1, OPEN, True),
        ),
        1,
        {"key": "id", "convention": EARLY},
    ),
    ("odd column names", GOOD_ODD, 0, ODD),
    ("odd column names, broken", odd(("a", "x", 1, 99, False), ("a", "y", 2, 98, True)), 2, ODD),
]

PERIOD_IS_WELL_FORMED: list[Line] = [
    ("a period has a start before its end", GOOD, 0, ID),
    ("a NULL start fails", fivetran((1, None, OPEN, True), (2, None, None, True)), 2, ID),
    ("a NULL end beside a maximum fails", fivetran((1, T1, None, True)), 1, ID),
    (
        "a NULL end is well formed where the open end is NULL",
        periods("bigint", (1, 1, None)),
        0,
        {"key": "id", "convention": NUMBERS},
    ),
    (
        "an append-only table has starts alone, none of them NULL",
        "select 1 as id, 5L as valid_from union all select 2, null",
        1,
        {"key": "id", "convention": APPEND_ONLY},
    ),
    ("an end before the start fails", fivetran((1, T2, T1, False)), 1, ID),
    (
        "a closed end may be one gap before the start, and not earlier",
        fivetran((1, T2, BEFORE_T2, False), (2, T2, "2024-01-01 00:01:59.998999", False)),
        1,
        ID,
    ),
    (
        "a half-open period may be empty, and not negative",
        periods("bigint", (1, 5, 5), (2, 5, 4), (3, 5, None)),
        1,
        {"key": "id", "convention": NUMBERS},
    ),
    (
        "numbers with a maximum as open end",
        periods("bigint", (1, 5, MAX_BIGINT), (2, MAX_BIGINT, 4)),
        1,
        {"key": "id", "convention": NUMBERS_WITH_MAXIMUM},
    ),
    (
        "numbers with a gap, whose maximum does not overflow",
        periods("bigint", (1, 5, MAX_BIGINT), (2, 5, 4), (3, 5, 3)),
        1,
        {"key": "id", "convention": {**NUMBERS_WITH_MAXIMUM, "gap": 1}},
    ),
    (
        "closed dates",
        periods(
            "date",
            (1, "2024-01-05", "2024-01-04"),
            (2, "2024-01-05", "2024-01-03"),
            (3, "2024-01-05", "9999-12-31"),
        ),
        1,
        {"key": "id", "convention": CLOSED_DATES},
    ),
    (
        "a period may start at the open end, and not after it",
        periods(
            "date",
            (1, "2099-12-31", "2099-12-31"),
            (2, "2100-01-01", "2099-12-31"),
            (3, "2100-01-01", "2100-01-01"),
        ),
        1,
        {"key": "id", "convention": EARLY_DATES},
    ),
    (
        "the smallest number as a start does not overflow",
        periods("bigint", (1, -MAX_BIGINT, MAX_BIGINT), (2, 5, -MAX_BIGINT)),
        1,
        {"key": "id", "convention": {**NUMBERS_WITH_MAXIMUM, "gap": 2}},
    ),
    (
        "a column may have any name",
        "select 1 as id, 5L as valid_from, 4L as valid_to, 'a' as _until",
        1,
        {"key": "id", "convention": NUMBERS},
    ),
    ("odd column names", odd(("a", "x", 1, 99, True), ("a", "y", 5, 2, False)), 1, ODD),
]

PLAIN = "select 1 as id, 'a' as `My Col`, cast(null as string) as path"

MATCHES_EXPECTED: list[tuple[str, str, str, int, dict[str, Any]]] = [
    ("equal rows match, NULL equals NULL", PLAIN, PLAIN, 0, {}),
    ("two empty tables match", f"{PLAIN} where false", f"{PLAIN} where false", 0, {}),
    ("a row too many is unexpected", f"{PLAIN} union all select 2, 'b', 'x'", PLAIN, 1, {}),
    ("a row too few is missing", f"{PLAIN} where false", PLAIN, 1, {}),
    (
        "a different row is missing and unexpected",
        "select 1 as id, 'a' as c",
        "select 1 as id, 'b' as c",
        2,
        {},
    ),
    (
        "NULL is not the empty string",
        "select 1 as id, '' as c",
        "select 1 as id, cast(null as string) as c",
        2,
        {},
    ),
    ("a repeated row is unexpected", f"{PLAIN} union all {PLAIN}", PLAIN, 1, {}),
    ("rows are counted", f"{PLAIN} union all {PLAIN}", f"{PLAIN} union all {PLAIN}", 0, {}),
    (
        "columns may be in another order",
        "select 1 as id, 'a' as c",
        "select 'a' as C, 1 as ID",
        0,
        {},
    ),
    (
        "only the named columns are compared",
        "select 1 as id, 'a' as c, 5 as more",
        "select 1 as id, 'b' as c",
        0,
        {"columns": ["id"]},
    ),
    (
        "microseconds differ",
        "select timestamp'2024-01-01 00:00:00.000001 UTC' as at",
        "select timestamp'2024-01-01 00:00:00.000002 UTC' as at",
        2,
        {},
    ),
    ("integers of any width match", "select 7L as id", "select 7Y as id", 0, {}),
    ("text is the number that it is written as", "select 7 as id", "select '7' as id", 0, {}),
    ("text is no other number", "select 7 as id", "select '007' as id", 2, {}),
    ("a number is the text that it is written as", "select '007' as id", "select 7 as id", 2, {}),
    ("a double is the decimal that it is read from", "select 1.10 as c", "select 1.1D as c", 0, {}),
    ("a double is not rounded", "select 1.10 as c", "select 1.101D as c", 2, {}),
    (
        "an integer is not rounded to a double",
        "select 9007199254740993L as id",
        "select 9007199254740992.0D as id",
        2,
        {},
    ),
    (
        "a double is not rounded to an integer",
        "select 9007199254740992.0D as id",
        "select 9007199254740993L as id",
        2,
        {},
    ),
    (
        "a date is its midnight",
        "select timestamp'2024-01-01' as c union all select timestamp'2024-01-02 01:00:00'",
        "select date'2024-01-01' as c union all select date'2024-01-02'",
        2,
        {},
    ),
    (
        "NULL of any type is NULL",
        "select cast(null as timestamp) as a, array(1) as b, cast(null as struct<a: int>) as c",
        "select null as a, array(1L) as b, cast(null as int) as c",
        0,
        {},
    ),
    (
        "fields are not compared by their place",
        "select named_struct('a', 1, 'b', 2) as c",
        "select named_struct('b', 1, 'a', 2) as c",
        2,
        {},
    ),
    (
        "maps match whatever the order of their entries",
        "select map('a', 1, 'b', 2) as m, array(map('a', 1, 'b', 2)) as l",
        "select map('b', 2, 'a', 1) as m, array(map('b', 2, 'a', 1)) as l",
        0,
        {},
    ),
    (
        "maps with different values differ",
        "select map('a', 1) as m",
        "select map('a', 2) as m",
        2,
        {},
    ),
    (
        "a NULL map is not an empty one",
        "select map('a', 1) as m union all select null",
        "select map('a', 1) as m union all select map()",
        2,
        {},
    ),
    (
        "NaN equals NaN and -0 equals 0",
        "select double('NaN') as n, -0.0D as z",
        "select double('NaN') as n, 0.0D as z",
        0,
        {},
    ),
    (
        "arrays and structs are compared by value",
        "select array(1, null) as a, named_struct('x', 1, 'y', 'b') as s",
        "select array(1, null) as a, named_struct('x', 1, 'y', 'c') as s",
        2,
        {},
    ),
]

NUMBER = {"column_name": "number"}
IS_GAPLESS: list[tuple[str, str, int, dict[str, Any]]] = [
    ("numbers follow each other", "select * from values (3), (1), (2) as t(number)", 0, NUMBER),
    ("no numbers are no gap", "select cast(null as bigint) as number", 0, NUMBER),
    (
        "one number may have several rows",
        "select * from values (1), (2), (1) as t(number)",
        0,
        NUMBER,
    ),
    (
        "a row without a number is no gap",
        "select * from values (1), (null) as t(number)",
        0,
        NUMBER,
    ),
    ("a number is missing", "select * from values (1), (3), (4), (6) as t(number)", 2, NUMBER),
    ("the first number is missing", "select * from values (2), (3) as t(number)", 1, NUMBER),
    ("a number before the first", "select * from values (0), (1) as t(number)", 1, NUMBER),
    (
        "the first number is given",
        "select * from values (7), (8) as t(number)",
        0,
        {**NUMBER, "first": 7},
    ),
]

CASES = (
    [
        GenericTestCase(sentence, test, table, failures, arguments)
        for test, cases in {
            "periods_do_not_overlap": PERIODS_DO_NOT_OVERLAP,
            "no_gap_between_versions": NO_GAP_BETWEEN_VERSIONS,
            "one_active_version": ONE_ACTIVE_VERSION,
            "active_matches_open_end": ACTIVE_MATCHES_OPEN_END,
            "period_is_well_formed": PERIOD_IS_WELL_FORMED,
            "is_gapless": IS_GAPLESS,
        }.items()
        for sentence, table, failures, arguments in cases
    ]
    + [
        GenericTestCase(sentence, "matches_expected", table, failures, arguments, expected)
        for sentence, table, expected, failures, arguments in MATCHES_EXPECTED
    ]
    + [
        GenericTestCase(
            "numbers, a stated minimum, with the convention and key of the table",
            "no_gap_between_versions",
            periods("bigint", (1, 1, 3), (1, 12, None), (2, 1, 3), (2, 13, None)),
            1,
            {"minimum_gap": 10},
            history={**NUMBERS, **ID},
        ),
    ]
)
