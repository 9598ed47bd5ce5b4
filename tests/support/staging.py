"""Short functions for staged rows of a fivetran table with key `id` and columns `v` and `w`."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from tests.oracle.convention import FIVETRAN
from tests.support.project import Project
from tests.support.tables import BOOKKEEPING, data_frame

OPEN: datetime = FIVETRAN.open_end  # type: ignore[assignment]
TYPES = {
    "id": "bigint",
    "v": "string",
    "w": "string",
    "_fivetran_start": "timestamp",
    "_fivetran_end": "timestamp",
    "_fivetran_active": "boolean",
}
COLUMNS = tuple(TYPES)


def day(number: int) -> datetime:
    """The n-th of January 2024."""
    return datetime(2024, 1, 1) + timedelta(days=number - 1)


def before(time: datetime) -> datetime:
    """The end of a version that is followed by one at `time`."""
    return time - timedelta(milliseconds=1)


def earliest(batch: int | None, id_: Any, at: datetime) -> dict[str, Any]:
    return {"_stage": "earliest_start", "_batch": batch, "id": id_, "_fivetran_start": at}


def upsert(batch: int | None, id_: Any, at: datetime, v: str | None = "a", **more: Any) -> Any:
    return {
        "_stage": "upsert", "_batch": batch, "id": id_, "v": v, "w": "w", "_fivetran_start": at,
        "_fivetran_end": OPEN, "_fivetran_active": True, **more,
    }  # fmt: skip


def update(batch: int | None, id_: Any, at: datetime, v: str | None = "b", **more: Any) -> Any:
    return {**upsert(batch, id_, at, v), "_stage": "update", "_unmodified": ["w"], **more}


def delete(batch: int | None, id_: Any, at: datetime) -> dict[str, Any]:
    return {"_stage": "delete", "_batch": batch, "id": id_, "_fivetran_end": at}


def new_version(batch: int, id_: Any, at: datetime, v: str) -> list[dict[str, Any]]:
    """An update as a writer sends it: the earliest row, and the changed values."""
    return [earliest(batch, id_, at), update(batch, id_, at, v)]


def stage(
    project: Project, name: str, rows: list[dict[str, Any]], types: dict[str, str] | None = None
) -> str:
    """Create a view of the rows; returns the SELECT for a model."""
    types = {**BOOKKEEPING, **(types or TYPES)}
    data_frame(project.spark, rows, types).createOrReplaceTempView(name)
    return f"select * from {name}"


def version(id_: Any, v: str | None, start: datetime, end: datetime = OPEN) -> dict[str, Any]:
    """An expected row of the table."""
    return {
        "id": id_, "v": v, "w": "w", "_fivetran_start": start, "_fivetran_end": end,
        "_fivetran_active": end == OPEN,
    }  # fmt: skip


def batches_of_one(count: int) -> tuple[str, list[dict[str, Any]]]:
    """Batches 1 to `count` of record 1, one version each, as a SELECT, and the final table."""
    select = "\nunion all\n".join(
        f"select '{stage_}' as _stage, {number}L as _batch, 1L as id, 'v{number}' as v, 'w' as w,"
        f" timestamp'{day(number)} UTC' as _fivetran_start,"
        " timestamp'9999-12-31 23:59:59.999 UTC' as _fivetran_end, true as _fivetran_active"
        for number in range(1, count + 1)
        for stage_ in ("earliest_start", "upsert")
    )
    closed = [version(1, f"v{n}", day(n), before(day(n + 1))) for n in range(1, count)]
    return select, [*closed, version(1, f"v{count}", day(count))]
