"""Fivetran's four-stage merge as five handwritten statements, each in its own commit."""

from __future__ import annotations

from bench.tables import COLUMNS

KEPT = ("name", "city", "quantity")


def five_statements(table: str, staged: str) -> list[str]:
    """The stages as documented: without pruning, checks and protection against concurrent runs."""
    earliest = f"""(
        select id, min(_fivetran_start) as at from {staged}
        where _stage = 'earliest_start' group by id
    )"""
    kept = ", ".join(f"history.{name}" for name in KEPT)
    columns = ", ".join(COLUMNS)
    completed = ", ".join(("base" if name in KEPT else "changes") + f".{name}" for name in COLUMNS)
    return [
        f"""
        merge into {table} as history using {earliest} as earliest
        on history.id = earliest.id and history._fivetran_start >= earliest.at
        when matched then delete
        """,
        f"""
        merge into {table} as history using {earliest} as earliest
        on history.id = earliest.id and history._fivetran_active = true
        when matched then update set
            _fivetran_active = false, _fivetran_end = earliest.at - interval 1 millisecond
        """,
        f"""
        with changes as (select * from {staged} where _stage = 'update'),
        base as (
            select history.id, max_by(struct({kept}), history._fivetran_start) as last
            from {table} as history
            left semi join changes on history.id = changes.id
            group by history.id
        )
        insert into {table} ({columns})
        select {completed.replace("base.", "base.last.")}
        from changes inner join base on base.id = changes.id
        """,
        f"insert into {table} ({columns}) select {columns} from {staged} where _stage = 'upsert'",
        f"""
        merge into {table} as history
        using (select * from {staged} where _stage = 'delete') as deleted
        on history.id = deleted.id and history._fivetran_active = true
        when matched then update set _fivetran_active = false, _fivetran_end = deleted._fivetran_end
        """,
    ]
