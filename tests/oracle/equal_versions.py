"""Runs of equal versions in plain Python: what `merge_equal` and `track_columns` store.

    changes     a@1   a@5   b@9
    versions    [ a -------)[ b ----
    stored      1 -> 9      9 ->         and a repeat, 5 -> 5 - gap

Input is the table that the rules give without the option; its versions are the changes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

from .convention import Convention, Row
from .history_batch import rows_by_key


def with_runs(
    table: Sequence[Row], key: Sequence[str], convention: Convention, tracked: Collection[str]
) -> list[Row]:
    """The stored rows: one version per run of changes that are equal in the tracked columns."""
    rows: list[Row] = []
    for versions in rows_by_key(table, key).values():
        for run in runs_of(versions, convention, tracked):
            rows += stored_rows(run, key, convention)
    return rows


def runs_of(
    versions: Sequence[Row], convention: Convention, tracked: Collection[str]
) -> Iterator[list[Row]]:
    """The versions of one record in runs; an empty version, or one never closed, is alone."""
    run: list[Row] = []
    for row in sorted(versions, key=convention.identity):
        if is_alone(row, convention):
            yield [row]
            continue
        if run and not continues(row, run[-1], convention, tracked):
            yield run
            run = []
        run = [*run, row]
    if run:
        yield run


def is_alone(row: Row, convention: Convention) -> bool:
    if convention.is_untouchable(row):
        return True
    end = row[convention.end]
    is_short = end is not None and end <= row[convention.start] - convention.gap
    return not convention.is_open(row) and is_short


def continues(row: Row, previous: Row, convention: Convention, tracked: Collection[str]) -> bool:
    """Whether a version begins where an equal one ends."""
    return (
        not convention.is_open(previous)
        and previous[convention.end] == row[convention.start] - convention.gap
        and all(previous[name] == row[name] for name in tracked)
    )


def stored_rows(run: Sequence[Row], key: Sequence[str], convention: Convention) -> list[Row]:
    """The version has the first start and the last values; each repeat the values before it."""
    period = convention.columns()
    first, last = run[0], run[-1]
    starts = {
        convention.start: first[convention.start],
        convention.version_id: first[convention.version_id],
    }
    rows = [{**last, **starts}]
    for previous, row in pairwise(run):
        repeat = {**previous, **{name: row[name] for name in (*key, *period)}}
        repeat[convention.end] = row[convention.start] - convention.gap
        if convention.active is not None:
            repeat[convention.active] = False
        rows.append(repeat)
    return rows
