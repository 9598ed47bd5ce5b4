"""The rules of `_hx` mirrors in plain Python: commits on main tables in, history rows out.

A commit has the rows of its table after it; the result does not depend on when a mirror runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]
Key = tuple[Any, ...]


@dataclass(frozen=True)
class Link:
    """A foreign key: `columns` reference the key of `table`; `name` is the link column."""

    columns: tuple[str, ...]
    table: str
    name: str


@dataclass(frozen=True)
class Main:
    """A main table: its key and its foreign keys."""

    name: str
    key: tuple[str, ...]
    links: tuple[Link, ...] = ()


@dataclass(frozen=True)
class Commit:
    """One commit on one table.

    after    the rows of the table after it, by key
    touched  keys of rows that an update wrote, changed or not
    """

    table: str
    after: Mapping[Key, Row]
    touched: frozenset[Key] = frozenset()


def changed_rows(before: Mapping[Key, Row], commit: Commit) -> Iterable[tuple[Key, Row, bool]]:
    """Key, row and whether it was deleted, by key; a deleted row has its last values."""
    for key in sorted(before.keys() | commit.after.keys()):
        old, new = before.get(key), commit.after.get(key)
        if new is None:
            assert old is not None
            yield key, old, True
        elif old != new or key in commit.touched:
            yield key, new, False


def mirror(tables: Sequence[Main], commits: Iterable[Commit]) -> dict[str, list[Row]]:
    """The history rows of each table in the order of their ids, which begin at 1.

    Rows: the columns, `deleted`, `<table>_hx_id`, then the links: the newest history row of the
    referenced item after the commit, None if there is none.
    """
    mains = {main.name: main for main in tables}
    histories: dict[str, list[Row]] = {name: [] for name in mains}
    newest: dict[str, dict[Key, int]] = {name: {} for name in mains}
    states: dict[str, Mapping[Key, Row]] = {name: {} for name in mains}
    for commit in commits:
        main, history = mains[commit.table], histories[commit.table]
        changed = list(changed_rows(states[main.name], commit))
        first = len(history) + 1
        newest[main.name] |= {key: first + place for place, (key, _, _) in enumerate(changed)}
        for place, (_, row, is_deleted) in enumerate(changed):
            links = {
                link.name: newest[link.table].get(tuple(row[name] for name in link.columns))
                for link in main.links
            }
            own = {"deleted": is_deleted, f"{main.name}_hx_id": first + place}
            history.append({**row, **own, **links})
        states[main.name] = commit.after
    return histories
