"""Answers the questions of the page from the tables, for `explore --serve`.

An answer takes one or a few queries of the readers and holds only what the page shows: the rows
around the place to which a list was scrolled, the versions of a record, the changes between two
dates.
"""

from __future__ import annotations

import json
import secrets
import zoneinfo
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dbt_history.conventions import split_terms
from dbt_history.explore.export import (
    DAY,
    MARKS,
    MAX_VERSIONS,
    Exported,
    Row,
    as_deltas,
    as_text,
    compact_table,
    has_erasures,
    is_tombstone,
    not_erased,
    order_and_columns,
    period_texts,
    proper,
    read_arrivals,
    read_commits,
    read_marks,
    row_of,
    sort_key,
    start_of,
    with_ended_by,
)
from dbt_history.explore.project import DbtProject, ExploreError
from dbt_history.explore.tables import HistoryTable
from dbt_history.sql import quoted, string_literal
from dbt_history.timeline.versions import is_data

PAGE = 100
MAX_RECORD = 5_000
MAX_GROUPS = 20_000
MAX_NAMES = 200
# Keys that a statement names one by one, so that Delta skips files.
MAX_KEYS = 1_000
SORTABLE = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "string", "date",
            "timestamp", "boolean")  # fmt: skip
EPOCH = "timestamp_ntz'1970-01-01'"


class QuestionError(ExploreError):
    """The page asked for something that does not exist."""


def number_of(value: Any, least: int = -(2**63), most: int = 2**63 - 1) -> int:
    """A number that the page sent, as text or number. Raises QuestionError."""
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        raise QuestionError(f"not a number: {value!r}") from None
    if not least <= number <= most:
        raise QuestionError(f"{number} is not from {least} to {most}")
    return number


@dataclass(frozen=True)
class Search:
    """The text of the search field, as the page understands it: `7`, or `space=roads, id=7`."""

    find: str = ""
    is_exact: bool = False
    zone: str = "UTC"

    @classmethod
    def of(cls, question: Mapping[str, Any]) -> Search:
        zone = str(question.get("zone") or "UTC")
        if zone not in zoneinfo.available_timezones():
            raise QuestionError(f"unknown time zone {zone!r}")
        return cls(str(question.get("find") or "").strip(), question.get("match") == "exact", zone)


@dataclass
class Served:
    """A table whose rows stay in Spark.

    period     `_stored_periods`: SQL of since, until and is_open
    reader     `_reader`: the input of the package's readers
    columns    the shown columns besides key and period, with their types
    source     the arguments of a reader of which `ended_by` is a column
    shown      the condition that a row is not one that an erasure left
    secret     the values of a hidden key column are shown as a digest with it
    """

    project: DbtProject
    table: HistoryTable
    period: Mapping[str, Any]
    reader: Mapping[str, Any]
    order: str
    columns: list[tuple[str, str]]
    source: Mapping[str, Any]
    ended_by: str
    shown: str
    secret: str = field(default_factory=lambda: secrets.token_hex(16))

    @classmethod
    def of(cls, project: DbtProject, table: HistoryTable) -> Served:
        source, ended_by = with_ended_by(project, table)
        period = project.call("_stored_periods", **source)
        reader = project.call(
            "_reader", relation=table.relation, convention=table.reader, caller_name="explore"
        )
        order, columns = order_and_columns(project, table, period)
        shown = not_erased(project, table, columns)
        return cls(project, table, period, reader, order, columns, source, ended_by, shown)

    @property
    def kind(self) -> str:
        return str(self.period["type"])

    # -- SQL ---------------------------------------------------------------------------------------

    @property
    def axis(self) -> str:
        return "number" if self.period["type"] == "bigint" else "time"

    @property
    def scale(self) -> int:
        """Microseconds per unit of the table's axis; 1 for numbers."""
        return DAY if self.period["type"] == "date" else 1

    def key_columns(self) -> list[tuple[str, str]]:
        """SQL and type of each key column; the digest of a hidden one."""
        found = []
        for name in proper(self.table):
            if name.lower() in self.table.hidden:
                # NULL and '' are two keys.
                text = f"coalesce(concat('=', cast({quoted(name)} as string)), '')"
                salted = f"concat('{self.secret}', {text})"
                found.append((f"concat('hidden ', left(sha2({salted}, 256), 16))", "string"))
            else:
                found.append((quoted(name), self.table.columns[name]))
        return found

    def key_texts(self) -> list[str]:
        return [
            as_text(name, self.table.columns[name]) if sql == quoted(name) else sql
            for name, (sql, _) in zip(proper(self.table), self.key_columns())
        ]

    def version(self) -> str:
        """A row as a JSON text, for `row_of`."""
        texts = period_texts(self.period, self.order, self.ended_by) + self.key_texts()
        texts += [as_text(name, kind) for name, kind in self.columns]
        return f"to_json(array({', '.join(texts)}))"

    def row_of(self, text: str) -> Row:
        return row_of(text, len(self.table.key), self.scale)

    def point(self, at: int) -> str:
        """A position of the page as SQL of the axis."""
        kind = self.period["type"]
        if kind == "bigint":
            return f"{at}L" if at > -(2**63) else f"({at + 1}L - 1L)"
        if kind == "date":
            return f"date_from_unix_date({at // DAY})"
        return f"timestamp_micros({at}L)"

    def in_force(self, at: int) -> str:
        """The condition that a version is in force, on the bare columns where Spark compares them.

        Of numbers with a gap by `until`: less the gap, the least point is no bigint.
        """
        if self.kind != "bigint" or not self.reader["convention"]["gap"]:
            rule = {"convention": self.reader["convention"], "point": self.point(at)}
            begins = self.project.call("_starts_by", **rule)
            return f"({begins} and {self.project.call('_lasts_beyond', **rule)})"
        until = self.period["until"]
        return f"({self.period['since']} <= {at} and ({until} is null or {at} < {until}))"

    def not_cleaned(self, at: int) -> str:
        """True, or an error if versions of this date were cleaned, as `as_of` has it."""
        guard = self.project.call(
            "_not_below_retention_horizon", reader=self.reader, point=self.point(at),
            caller_name="as_of", or_at_tag=True,
        )  # fmt: skip
        return str(guard or "true")

    def matches(self, search: Search) -> str:
        """The condition that a row is shown and found. Hidden columns cannot be searched."""
        return f"({self.shown} and {self.is_found(search)})"

    def is_found(self, search: Search) -> str:
        """The condition of the search field alone."""
        if not search.find:
            return "true"

        def test(text: str, wanted: str) -> str:
            found = f"startswith(lower({text}), lower({string_literal(wanted)}))"
            if search.is_exact:
                found = f"{text} = {string_literal(wanted)}"
            return f"coalesce({found}, {str(wanted == 'NULL').lower()})"

        def exact(sql: str, kind: str, wanted: str) -> str:
            # A literal of the column's type lets Delta skip files.
            if not search.is_exact or not kind.endswith("int") or wanted == "NULL":
                return ""
            return f"{sql} = try_cast({string_literal(wanted)} as {kind}) and "

        keys = list(zip(self.table.key, self.key_columns(), self.key_texts()))
        if "=" not in search.find:
            tests = [
                f"({exact(sql, kind, search.find)}{test(text, search.find)})"
                for _, (sql, kind), text in keys
            ]
            return f"({' or '.join(tests)})"
        known = {name.lower(): (sql, kind, text) for name, (sql, kind), text in keys}
        for name, kind in self.columns:
            text = as_text(name, kind)
            if kind == "timestamp":
                text = clock(f"unix_micros({quoted(name)})", search.zone)
            known.setdefault(name.lower(), (quoted(name), kind, text))
        tests = []
        for term in split_terms(search.find):
            name, _, wanted = (part.strip() for part in term.partition("="))
            if name.lower() not in known:
                return "false"
            sql, kind, text = known[name.lower()]
            tests.append(f"({exact(sql, kind, wanted)}{test(text, wanted)})")
        return f"({' and '.join(tests)})"

    def has_key(self, keys: Sequence[Sequence[str | None]]) -> str:
        """The condition that a row has one of the keys, given as the page's texts."""
        columns = list(zip(self.key_columns(), self.key_texts()))

        def is_value(column: tuple[tuple[str, str], str], value: str | None) -> str:
            (sql, kind), text = column
            if value is None:
                return f"{sql} is null"
            return (
                f"{sql} = {typed(value, kind)}"
                if typed(value, kind)
                else f"{text} = {string_literal(value)}"
            )

        if (
            len(columns) == 1
            and typed("0", columns[0][0][1])
            and None not in {key[0] for key in keys}
        ):
            (sql, kind), _ = columns[0]
            values = ", ".join(str(typed(str(key[0]), kind)) for key in keys)
            return f"{sql} in ({values})" if keys else "false"
        terms = [
            "(" + " and ".join(is_value(*pair) for pair in zip(columns, key)) + ")" for key in keys
        ]
        return "(" + (" or ".join(terms) or "false") + ")"

    def sort_of(self, sort: Any) -> tuple[str, str]:
        """SQL and direction of the column that the page has at this place; empty: by key alone."""
        if not isinstance(sort, Mapping):
            return "", ""
        shown = [sql for sql, _ in self.key_columns()]
        shown += [
            quoted(name) if kind.startswith(SORTABLE) else as_text(name, kind)
            for name, kind in self.columns
        ]
        shown += [
            self.period["since"],
            f"if({self.period['is_open']}, null, {self.period['until']})",
        ]
        place = number_of(sort.get("column"), 0, len(shown) - 1)
        # An open end is the last one.
        is_end = place == len(shown) - 1
        down = bool(sort.get("down"))
        nulls = "last" if is_end != down else "first"
        return shown[place], f"{'desc' if down else 'asc'} nulls {nulls}"

    def key_names(self) -> list[str]:
        """The names of the key columns in `chosen` and `only_at`."""
        return [f"_page_key_{place}" for place in range(len(self.table.key))]

    def narrow(self, sort: str) -> list[str]:
        """What tells a row of a list and its place there, as columns of a SELECT."""
        named = [f"{sql} as {name}" for (sql, _), name in zip(self.key_columns(), self.key_names())]
        named += [f"{self.period['since']} as _page_since", f"{self.order} as _page_order"]
        return named + ([f"{sort} as _page_sort"] if sort else [])

    def chosen(self, at: int, wanted: str, sort: str) -> str:
        """The rows in force at `at`, narrow."""
        return (
            f"select {', '.join(self.narrow(sort))} from {self.period['from']} as history"
            f" where {self.in_force(at)} and {self.not_cleaned(at)} and {wanted}"
        )

    def only_at(self, at: int, other: int, wanted: str, sort: str, or_changed: bool) -> str:
        """The rows at `at` whose record has no row at `other`, narrow.

        With `or_changed` also those whose record has another row there, with other cells:

            at       [ a ][ b' ]     [ d ]     b' if its cells differ from b's, d
            other    [ a ][ b  ][ c ]

        The table is read once. A row in force at both dates is no difference; of the others, each
        record has one at each date at most.
        """
        here, there = self.in_force(at), self.in_force(other)
        cells = f", {self.fingerprint()} as _page_cells" if or_changed else ""
        keys = ", ".join(self.key_names())
        of_here = "filter (where _page_is_here)"
        taken = [f"max({name}) {of_here} as {name}" for name in ("_page_since", "_page_order")]
        taken += [f"any_value(_page_sort) {of_here} as _page_sort"] if sort else []
        is_other = "not bool_or(_page_is_there)"
        if or_changed:
            is_other += " or min(_page_cells) <> max(_page_cells)"
        return (
            f"select {keys}, {', '.join(taken)} from (select {', '.join(self.narrow(sort))},"
            f" {here} as _page_is_here, {there} as _page_is_there, {wanted} as _page_is_wanted"
            f"{cells} from {self.period['from']} as history"
            f" where ({here} or {there}) and not ({here} and {there})"
            f" and {self.not_cleaned(at)} and {self.not_cleaned(other)}) as versions"
            f" group by {keys}"
            f" having bool_or(_page_is_here and _page_is_wanted) and ({is_other})"
        )

    def fingerprint(self) -> str:
        """A number of 64 bits that differs where the data of two rows do.

        The secret keeps anyone from making two rows with the same number. A hash skips NULL, so
        that the places of NULLs are hashed too.
        """
        cells, nulls = [], []
        for name, kind in self.columns:
            if is_data(name):
                is_plain = kind.startswith(SORTABLE) and kind not in ("float", "double")
                cells.append(quoted(name) if is_plain else as_text(name, kind))
                nulls.append(f"{quoted(name)} is null")
        return f"xxhash64({', '.join([string_literal(self.secret), *cells, *nulls])})"

    def is_tombstone(self) -> str:
        """`is_tombstone` of a row, in SQL."""
        data = [quoted(name) for name, _ in self.columns if is_data(name)]
        nulls = " and ".join(f"{name} is null" for name in data)
        is_empty = f"{self.period['until']} <= {self.period['since']}"
        return f"{is_empty} and {nulls}" if data else "false"

    def exported(self, rows: list[Row]) -> Exported:
        return Exported(self.table, self.axis, self.period["type"], self.columns, rows)


def typed(value: str, kind: str) -> str | None:
    """A key's text as a literal of its type; None for types that are compared as text."""
    if kind == "string":
        return string_literal(value)
    if kind in ("tinyint", "smallint", "int", "bigint"):
        return f"try_cast({string_literal(value)} as {kind})"
    if kind == "timestamp":
        return f"timestamp_micros(try_cast({string_literal(value)} as bigint))"
    if kind == "date":
        return f"try_cast({string_literal(value)} as date)"
    return None


def clock(micros: str, zone: str) -> str:
    """Microseconds since 1970 as the text of a clock in a zone, in any time zone of the session."""
    utc = f"timestampadd(MICROSECOND, {micros}, {EPOCH})"
    if zone != "UTC":
        utc = f"convert_timezone('UTC', {string_literal(zone)}, {utc})"
    return f"cast({utc} as string)"


def slice_of(served: Served, rows: list[Row]) -> dict[str, Any]:
    """Rows as the page has a table, with positions of their own."""
    known = {value for row in rows for value in (row.since, row.until) if value is not None}
    points = sorted(known)
    return {**compact_table(served.exported(rows), points), "points": as_deltas(points)}


# -- the questions ---------------------------------------------------------------------------------


class Answers:
    """The tables of one server. `rows`, `versions` and so on are the questions of the page."""

    def __init__(self, project: DbtProject, served: Sequence[Served]) -> None:
        self.project = project
        self.served = served
        self.by_id = {id_of(one): one for one in self.served}

    def look_again(self) -> None:
        """Find cleanings and erasures of other processes, the first ones of a schema, too.

        A schema in which none was found needs two small statements.
        """
        pending: defaultdict[str, list[Served]] = defaultdict(list)
        for one in self.served:
            if one.shown == "true":
                pending[one.table.schema].append(one)
        for schema, tables in pending.items():
            self.project.look_for(schema, MARKS)
            if has_erasures(self.project, tables[0].table):
                for one in tables:
                    one.shown = not_erased(self.project, one.table, one.columns)

    def answer(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        """Raises ExploreError."""
        self.look_again()
        ask = {
            "rows": self.rows, "versions": self.versions, "written": self.written,
            "changes": self.changes, "step": self.step,
        }.get(str(question.get("ask")))  # fmt: skip
        if ask is None:
            raise QuestionError(f"unknown question {question.get('ask')!r}")
        return ask(question)

    def about(self) -> list[dict[str, Any]]:
        """The tables without rows: how many versions each has, and from when to when."""
        self.look_again()
        return [self.head(one) for one in self.served]

    def one(self, question: Mapping[str, Any]) -> Served:
        found = self.by_id.get(str(question.get("table")))
        if found is None:
            raise QuestionError(f"unknown table {question.get('table')!r}")
        return found

    def chosen(self, question: Mapping[str, Any]) -> list[Served]:
        names = question.get("tables")
        if not isinstance(names, list):
            raise QuestionError("tables is not a list")
        return [self.one({"table": name}) for name in names]

    def head(self, one: Served) -> dict[str, Any]:
        since, until = one.period["since"], one.period["until"]
        ((count, first, last),) = self.project.rows(
            f"select count(if({one.is_tombstone()}, null, true)),"
            f" cast(min({since}) as string), cast(greatest(max({since}),"
            f" max(if({one.period['is_open']}, null, {until}))) as string)"
            f" from {one.period['from']} as history where {since} is not null and {one.shown}"
        )
        marks = read_marks(self.project, one.table, one.period["type"], one.scale)
        exported = replace(one.exported([]), marks=marks)
        limits = [None if value is None else str(int(value) * one.scale) for value in (first, last)]
        return {**compact_table(exported, []), "points": [], "count": count, "limits": limits}

    def rows(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        """A page of the rows in force at `at`, or of those only at `than`, and how many there are.

        at      [ a ][ b' ]     [ d ]     rows: a, b', d
        than    [ a ][ b  ][ c ]          gone: c; new: d; changed: b'; a is the same row

        The page is chosen from rows without cells, because sorting all cells takes longer.
        """
        one, search = self.one(question), Search.of(question)
        at = number_of(question.get("at"))
        than = None if question.get("than") is None else number_of(question["than"])
        first = number_of(question.get("first", 0), 0)
        count = number_of(question.get("count", PAGE), 1, MAX_VERSIONS)
        is_gone = question.get("part") == "gone"
        wanted = one.matches(search)
        sort, direction = one.sort_of(question.get("sort"))
        here, there = at, than
        if than is not None and is_gone:
            here, there = than, None
            source = one.only_at(than, at, wanted, sort, False)
        elif than is not None and question.get("only"):
            source = one.only_at(at, than, wanted, sort, True)
        else:
            source = one.chosen(at, wanted, sort)
        order = ", ".join([f"_page_sort {direction}"] * bool(sort) + one.key_names())
        # The count of a window takes less than a second statement.
        counts = bool(question.get("counts")) and first == 0
        counted = "count(*) over ()" if counts else "0"
        page = (
            f"select *, {counted} as _page_count from ({source}) as chosen"
            f" order by {order} limit {count} offset {first}"
        )
        texts = [as_text(name, kind) for name, (_, kind) in zip(one.key_names(), one.key_columns())]
        shown = ["_page_count", "_page_since", "_page_order"]
        shown = [f"cast({name} as string)" for name in shown] + texts
        listed = self.project.rows(f"select to_json(array({', '.join(shown)})) from ({page})")
        places = [json.loads(text) for (text,) in listed]
        made: dict[str, Any] = {"first": first}
        if counts:
            made["count"] = int(places[0][0]) if places else 0
        wants = [(tuple(key), int(since), int(place)) for _, since, place, *key in places]
        return {**made, **self.with_cells(one, wants, page, here, there)}

    def with_cells(
        self,
        one: Served,
        wants: Sequence[tuple[tuple[str | None, ...], int, int]],
        page: str,
        at: int,
        than: int | None,
    ) -> dict[str, Any]:
        """The rows of a page, given by key, start and order, and those of their keys at `than`.

        `rows` has for each its place in the slice and that of its predecessor, -1 without one. A
        row in force at both dates is its own predecessor.
        """
        is_here, is_there = one.in_force(at), "false" if than is None else one.in_force(than)
        guard = one.not_cleaned(at if than is None else than)
        keys = list(dict.fromkeys(key for key, _, _ in wants))
        source = f"{one.period['from']} as history"
        condition = one.has_key(keys)
        if len(keys) > MAX_KEYS:
            pairs = zip(one.key_columns(), one.key_names())
            same = " and ".join(f"{sql} <=> page.{name}" for (sql, _), name in pairs)
            names = ", ".join(one.key_names())
            source += f" join (select distinct {names} from ({page})) as page on {same}"
            condition = "true"
        found = (
            self.project.rows(
                f"select {one.version()}, {is_here}, {is_there} from {source}"
                f" where ({is_here} or {is_there}) and {guard} and {condition}"
            )
            if wants
            else []
        )
        here: defaultdict[tuple[tuple[str | None, ...], int, int], list[Row]] = defaultdict(list)
        there: dict[tuple[str | None, ...], Row] = {}
        for text, is_of_page, is_before in found:
            row = one.row_of(text)
            if is_of_page:
                here[row.key, row.since // one.scale, row.order].append(row)
            if is_before:
                there[row.key] = row
        rows: list[Row] = []
        places = []
        for want in wants:
            if not here[want]:
                continue  # the table was written meanwhile
            # A table may have two such rows although no history should.
            row, before = here[want].pop(0), there.get(want[0])
            rows.append(row)
            place = len(rows) - 1
            if before is not None and before is not row:
                rows.append(before)
            places.append([place, -1 if before is None else len(rows) - 1])
        return {"slice": slice_of(one, rows), "rows": places}

    def record(self, one: Served, home: Served, key: Sequence[str | None]) -> str | None:
        """The condition for the rows of a record of `home`: the same values in the same columns.

        Where a column is not in the key, the whole records of the matching rows, so that each
        version has its predecessor. None if the table lacks a column.
        """
        if one is home:
            return one.has_key([key])
        keys = {
            name.lower(): (sql, text)
            for name, (sql, _), text in zip(one.table.key, one.key_columns(), one.key_texts())
        }
        others = {name.lower(): as_text(name, kind) for name, kind in one.columns}
        terms, is_key = [], True
        for name, value in zip(home.table.key, key):
            text = keys.get(name.lower(), ("", ""))[1] or others.get(name.lower())
            if text is None:
                return None
            is_key = is_key and name.lower() in keys
            terms.append(f"{text} <=> {'null' if value is None else string_literal(value)}")
        condition = " and ".join(terms)
        if is_key:
            return condition
        columns = ", ".join(sql for sql, _ in one.key_columns())
        return (
            f"({columns}) in (select {columns} from {one.period['from']} as matching"
            f" where {condition})"
        )

    def versions(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        """The versions of a record, and those of other tables with the same values."""
        home, tables = self.one(question), self.chosen(question)
        key = key_of(question.get("key"), home)
        found = {}
        for one in tables:
            condition = self.record(one, home, key)
            if condition is not None:
                rows, is_cut = self.all_versions(one, condition)
                found[id_of(one)] = {**slice_of(one, rows), "isCut": is_cut}
        return {"tables": found}

    def all_versions(self, one: Served, condition: str) -> tuple[list[Row], bool]:
        found = self.project.rows(
            f"select {one.version()} as version from {one.period['from']} as history"
            f" where {one.period['since']} is not null and {one.shown} and {condition}"
            f" limit {MAX_RECORD + 1}"
        )
        rows = [one.row_of(text) for (text,) in found[:MAX_RECORD]]
        rows = [row for row in rows if not is_tombstone(row, one.columns)]
        rows.sort(key=lambda row: (sort_key(row.key), row.since, row.order))
        return rows, len(found) > MAX_RECORD

    def written(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        """The versions of a record with the batch and run that wrote each, which takes longer."""
        home, tables = self.one(question), self.chosen(question)
        key = key_of(question.get("key"), home)
        found = {}
        for one in tables:
            condition = self.record(one, home, key)
            if (
                condition is None
                or " in (select " in condition
                or one.table.hidden & {name.lower() for name in one.table.key}
            ):
                continue
            rows, is_cut = self.all_versions(one, condition)
            exported = replace(one.exported(rows), commits=read_commits(self.project, one.table))
            start = start_of(one.period, one.axis)
            read_arrivals(self.project, exported, start, one.order, condition, one.scale)
            points = sorted({p for row in rows for p in (row.since, row.until) if p is not None})
            made = {**compact_table(exported, points), "points": as_deltas(points)}
            found[id_of(one)] = {**made, "isCut": is_cut}
        return {"tables": found}

    def changes(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        """What changed in [at, to): a page of it, and how much per day, user and column."""
        start, end = number_of(question.get("from")), number_of(question.get("to"))
        first = number_of(question.get("first", 0), 0)
        count = number_of(question.get("count", PAGE), 1, MAX_VERSIONS)
        search = Search.of(question)
        tables = self.chosen(question)
        parts = [
            self.changes_of(one, place, start, end, search) for place, one in enumerate(tables)
        ]
        if not parts:
            return {"total": 0, "first": 0, "changes": [], "tables": {}}
        everything = " union all ".join(parts)
        terms = ["true"]
        if question.get("user"):
            terms.append(f"who = {string_literal(str(question['user']))}")
        if question.get("column"):
            terms.append(f"array_contains(columns, {string_literal(str(question['column']))})")
        wanted = " and ".join(terms)
        made: dict[str, Any] = {"first": first}
        order = "at, table_number, sort_key"
        page = (
            f"select 'page' as kind, what as name, table_number as place, row_number() over (order"
            f" by {order}) as number, cast(at as string) as at, to_json(now) as now,"
            f" to_json(before) as before from (select * from changes where {wanted}"
            f" order by {order} limit {count} offset {first}) as page"
        )
        sql = f"with changes as ({everything}) {page}"
        if question.get("counts"):
            sql += f" union all {self.change_counts(wanted, tables, search)}"
        found = self.project.rows(sql)
        if question.get("counts"):
            made |= self.counts_of(found, tables)
        page_of = sorted((row for row in found if row[0] == "page"), key=lambda row: int(row[3]))
        listed = []
        versions: defaultdict[int, dict[tuple[Any, ...], Row]] = defaultdict(dict)
        for _, what, number, _, at, now, before in page_of:
            rows = [tables[number].row_of(text) for text in (now, before) if text is not None]
            versions[number].update({(row.key, row.since, row.order): row for row in rows})
            key = list(rows[0].key)
            listed.append({"table": id_of(tables[number]), "what": what, "at": at, "key": key})
        slices = {}
        for number, of_table in versions.items():
            rows = sorted(
                of_table.values(), key=lambda row: (sort_key(row.key), row.since, row.order)
            )
            slices[id_of(tables[number])] = slice_of(tables[number], rows)
        return {**made, "changes": listed, "tables": slices}

    def changes_of(self, one: Served, place: int, start: int, end: int, search: Search) -> str:
        """One row per change: a begin and an end at the same instant are an update.

        now       the version that began, or that a delete ended, as the texts of `row_of`
        before    the version that an update ended
        """
        source = self.project.call(
            "changeset",
            **one.source,
            from_at=one.point(start + one.scale - 1),
            to_at=one.point(end + one.scale - 1),
            key=proper(one.table),
        )
        is_before = "_change_type = 'update_preimage'"
        is_now = f"not {is_before}"

        def side(text: str, condition: str) -> str:
            return f"any_value({text}) filter (where {condition})"

        cells = [(name, as_text(name, kind)) for name, kind in one.columns]
        changed = [
            f"if({side(text, is_before)} is distinct from {side(text, is_now)},"
            f" {string_literal(name)}, null)"
            for name, text in cells
            if is_data(name)
        ]
        who = dict(cells).get(one.table.user_column or "", "cast(null as string)")
        at = "unix_micros(_changed_at)" if one.kind == "timestamp" else "_changed_at"
        if one.kind == "date":
            at = f"unix_date(_changed_at) * {DAY}L"
        period = period_texts(one.period, one.order, one.ended_by)
        now, before = (
            ", ".join(
                [*(side(text, condition) for text in period), *one.key_texts()]
                + [side(text, condition) for _, text in cells]
            )
            for condition in (is_now, is_before)
        )
        is_update = "bool_or(_change_type like 'update%')"
        is_delete = "any_value(_change_type) = 'delete'"
        sort = [f"cast({sql} as string)" for sql, _ in one.key_columns()]
        grouped = ", ".join(quoted(name) for name in proper(one.table))
        inner = (
            f"select {place} as table_number, {at} as at,"
            f" if({is_update}, 'update', any_value(_change_type)) as what,"
            f" if({is_delete}, {side(one.ended_by, is_now)}, {side(who, is_now)}) as who,"
            f" if({is_update}, array_compact(array({', '.join(changed)})), array()) as columns,"
            f" array({', '.join(sort)}) as sort_key, array({now}) as now,"
            f" if({is_update}, array({before}), null) as before"
            f" from {source} as history group by {grouped}, _changed_at"
            f" having bool_or({one.matches(search)}) filter (where {is_now})"
        )
        # The condition is always true. It makes the counts read the columns that the page reads,
        # so that Spark uses one exchange for both. Without ANSI mode `size` of NULL is -1.
        return (
            "select table_number, at, what, coalesce(who, 'unknown') as who, columns,"
            f" sort_key, now, before from ({inner}) as grouped"
            " where array_size(now) > 0 and coalesce(array_size(before), 1) > 0"
        )

    def change_counts(self, wanted: str, tables: Sequence[Served], search: Search) -> str:
        """How many changes: of each day and table, and without the filters of each user, column."""
        day = f"left({clock('at', search.zone)}, 10)"
        if tables[0].axis == "number":
            day = "cast(at as string)"
        counted = (
            f"if({wanted}, array(struct('day' as kind, {day} as name, table_number as place),"
            " struct('total' as kind, '' as name, 0 as place)), array()),"
            " array(struct('user' as kind, who as name, 0 as place)),"
            " transform(columns, one -> struct('column' as kind, one as name, 0 as place))"
        )
        return (
            "(select one.kind, one.name, one.place, count(*) as number, null, null, null"
            f" from (select explode(concat({counted})) as one from changes) as counted"
            f" group by 1, 2, 3 order by kind = 'day', number desc limit {MAX_GROUPS})"
        )

    def counts_of(
        self, found: Sequence[tuple[Any, ...]], tables: Sequence[Served]
    ) -> dict[str, Any]:
        def of(kind: str) -> list[tuple[str, int, int]]:
            rows = [row[1:4] for row in found if row[0] == kind]
            return sorted(rows, key=lambda row: -row[2])

        return {
            "total": sum(number for _, _, number in of("total")),
            "days": [[name, id_of(tables[place]), number] for name, place, number in of("day")],
            "users": [[name, number] for name, _, number in of("user")][:MAX_NAMES],
            "columns": [[name, number] for name, _, number in of("column")][:MAX_NAMES],
        }

    def step(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        """The next, or the previous, position at which a row begins or ends."""
        at, is_back = number_of(question.get("at")), number_of(question.get("by")) < 0
        found = []
        for one in self.chosen(question):
            since, until = one.period["since"], one.period["until"]
            place = f"{at // one.scale if not is_back else -(-at // one.scale)}"
            parts = []
            for sql in (since, f"if({one.period['is_open']}, null, {until})"):
                best = "max" if is_back else "min"
                sign = "<" if is_back else ">"
                parts.append(f"cast({best}({sql}) filter (where {sql} {sign} {place}) as string)")
            (row,) = self.project.rows(
                f"select {', '.join(parts)} from {one.period['from']} as history where {one.shown}"
            )
            found += [int(value) * one.scale for value in row if value is not None]
        best_of = (max if is_back else min)(found, default=None)
        return {"at": None if best_of is None else str(best_of)}


def id_of(one: Served) -> str:
    return f"{one.table.schema}.{one.table.name}"


def key_of(value: Any, one: Served) -> list[str | None]:
    if not isinstance(value, list) or len(value) != len(one.table.key):
        raise QuestionError(f"the key of {one.table.name} is {', '.join(one.table.key)}")
    return [None if part is None else str(part) for part in value]
