"""Answers the questions of the page from the tables, for `explore --serve`.

An answer takes one or a few queries of the readers and holds only what the page shows: the rows
around the place to which a list was scrolled, the versions of a record, the changes between two
dates.
"""

from __future__ import annotations

import json
import secrets
import zoneinfo
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dbt_history.explore.export import (
    DAY,
    MAX_VERSIONS,
    WHO,
    Exported,
    Row,
    as_deltas,
    as_text,
    compact_table,
    is_tombstone,
    literal,
    order_and_columns,
    proper,
    quoted,
    read_arrivals,
    read_commits,
    read_marks,
    sort_key,
    start_of,
)
from dbt_history.explore.project import DbtProject, ExploreError
from dbt_history.explore.tables import HistoryTable

PAGE = 100
MAX_RECORD = 5_000
MAX_GROUPS = 20_000
MAX_NAMES = 200
SORTABLE = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "string", "date",
            "timestamp", "boolean")  # fmt: skip
EPOCH = "timestamp_ntz'1970-01-01'"


class QuestionError(ExploreError):
    """The page asked for something that does not exist."""


def number_of(value: Any, least: int = -(2**63), most: int = 2**63 - 1) -> int:
    """A number that the page sent, as text or number. Raises QuestionError."""
    try:
        number = int(value)
    except (TypeError, ValueError):
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
    columns    the shown columns besides key and period, with their types
    secret     the values of a hidden key column are shown as a digest with it
    """

    project: DbtProject
    table: HistoryTable
    period: Mapping[str, Any]
    order: str
    columns: list[tuple[str, str]]
    secret: str = field(default_factory=lambda: secrets.token_hex(16))

    @classmethod
    def of(cls, project: DbtProject, table: HistoryTable) -> Served:
        period = project.call("_stored_periods", relation=table.relation, convention=table.reader)
        return cls(project, table, period, *order_and_columns(project, table, period))

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
                salted = f"concat('{self.secret}', coalesce(cast({quoted(name)} as string), ''))"
                found.append((f"concat('hidden ', left(sha2({salted}, 256), 16))", "string"))
            else:
                found.append((quoted(name), self.table.columns[name]))
        return found

    def key_texts(self) -> list[str]:
        return [
            as_text(name, self.table.columns[name]) if sql == quoted(name) else sql
            for name, (sql, _) in zip(proper(self.table), self.key_columns())
        ]

    def version(self, since: str = "", until: str = "", is_open: str = "") -> str:
        """A row as a JSON text, for `row_of`."""
        cells = [as_text(name, kind) for name, kind in self.columns]
        parts = [since or self.period["since"], until or self.period["until"]]
        parts += [is_open or self.period["is_open"], self.order]
        texts = [f"cast({part} as string)" for part in parts]
        return f"to_json(array({', '.join([*texts, *self.key_texts(), *cells])}))"

    def row_of(self, text: str) -> Row:
        since, until, is_open, place, *values = json.loads(text)
        width = len(self.table.key)
        return Row(
            tuple(values[:width]),
            int(since) * self.scale,
            None if until is None else int(until) * self.scale,
            is_open == "true",
            int(place),
            values[width:],
        )

    def point(self, at: int) -> str:
        """A position of the page as SQL of the axis."""
        kind = self.period["type"]
        if kind == "bigint":
            return f"{at}L" if at > -(2**63) else f"({at + 1}L - 1L)"
        if kind == "date":
            return f"date_from_unix_date({at // DAY})"
        return f"timestamp_micros({at}L)"

    def as_of(self, at: int) -> str:
        """The rows in force. Of a log not by the reader `as_of`, whose rows have no end."""
        if not self.period["key"]:
            return str(
                self.project.call(
                    "as_of",
                    relation=self.table.relation,
                    at=self.point(at),
                    convention=self.table.reader,
                )
            )
        return f"(select * from {self.period['from']} as stored where {self.in_force(at)})"

    def in_force(self, at: int) -> str:
        at //= self.scale
        until = self.period["until"]
        return f"({self.period['since']} <= {at} and ({until} is null or {at} < {until}))"

    def matches(self, search: Search) -> str:
        """The condition that the search field is for a row. Hidden columns cannot be searched."""
        if not search.find:
            return "true"

        def test(text: str, wanted: str) -> str:
            if search.is_exact:
                return f"{text} <=> {literal(wanted)}"
            found = f"startswith(lower({text}), lower({literal(wanted)}))"
            return f"coalesce({found}, {str(wanted == 'NULL').lower()})"

        def exact(sql: str, kind: str, wanted: str) -> str:
            # A literal of the column's type lets Delta skip files.
            if not search.is_exact or not kind.endswith("int"):
                return ""
            return f"{sql} = try_cast({literal(wanted)} as {kind}) and "

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
        for term in search.find.split(","):
            name, _, wanted = (part.strip() for part in term.partition("="))
            if name.lower() not in known:
                return "false"
            sql, kind, text = known[name.lower()]
            tests.append(f"({exact(sql, kind, wanted)}{test(text, wanted)})")
        return f"({' and '.join(tests)})"

    def has_key(self, keys: Sequence[Sequence[str | None]], alias: str = "") -> str:
        """The condition that a row has one of the keys, given as the page's texts."""
        columns = list(zip(self.key_columns(), self.key_texts()))

        def is_value(column: tuple[tuple[str, str], str], value: str | None) -> str:
            (sql, kind), text = column
            if value is None:
                return f"{sql} is null"
            return (
                f"{sql} = {typed(value, kind)}"
                if typed(value, kind)
                else f"{text} = {literal(value)}"
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

    def order_by(self, sort: Any) -> str:
        """The order of a list: by key, or first by the column that the page has at this place."""
        keys = ", ".join(sql for sql, _ in self.key_columns())
        if not isinstance(sort, Mapping):
            return keys
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
        return f"{shown[place]} {'desc' if down else 'asc'} nulls {nulls}, {keys}"

    def exported(self, rows: list[Row]) -> Exported:
        return Exported(self.table, self.axis, self.period["type"], self.columns, rows)


def typed(value: str, kind: str) -> str | None:
    """A key's text as a literal of its type; None for types that are compared as text."""
    if kind == "string":
        return literal(value)
    if kind in ("tinyint", "smallint", "int", "bigint"):
        return f"try_cast({literal(value)} as {kind})"
    if kind == "timestamp":
        return f"timestamp_micros(try_cast({literal(value)} as bigint))"
    if kind == "date":
        return f"try_cast({literal(value)} as date)"
    return None


def clock(micros: str, zone: str) -> str:
    """Microseconds since 1970 as the text of a clock in a zone, in any time zone of the session."""
    utc = f"timestampadd(MICROSECOND, {micros}, {EPOCH})"
    if zone != "UTC":
        utc = f"convert_timezone('UTC', {literal(zone)}, {utc})"
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

    def answer(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        """Raises ExploreError."""
        ask = {
            "rows": self.rows, "versions": self.versions, "written": self.written,
            "changes": self.changes, "step": self.step,
        }.get(str(question.get("ask")))  # fmt: skip
        if ask is None:
            raise QuestionError(f"unknown question {question.get('ask')!r}")
        return ask(question)

    def about(self) -> list[dict[str, Any]]:
        """The tables without rows: how many versions each has, and from when to when."""
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
            f"select count(*), cast(min({since}) as string), cast(greatest(max({since}),"
            f" max(if({one.period['is_open']}, null, {until}))) as string)"
            f" from {one.period['from']} as history where {since} is not null"
        )
        marks = read_marks(self.project, one.table, one.period["type"], one.scale)
        exported = replace(one.exported([]), marks=marks)
        limits = [None if value is None else str(int(value) * one.scale) for value in (first, last)]
        return {**compact_table(exported, []), "points": [], "count": count, "limits": limits}

    def rows(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        """A page of the rows in force at `at`, of those only at `than`, and how many there are.

        at      [ a ][ b' ]     [ d ]     rows: a, b', d
        than    [ a ][ b  ][ c ]          gone: c; new: d; changed: b'; a is the same row
        """
        one, search = self.one(question), Search.of(question)
        at = number_of(question.get("at"))
        than = None if question.get("than") is None else number_of(question["than"])
        first = number_of(question.get("first", 0), 0)
        count = number_of(question.get("count", PAGE), 1, MAX_VERSIONS)
        is_gone = question.get("part") == "gone"
        wanted = one.matches(search)
        order = one.order_by(question.get("sort"))
        page_of = f"order by {order} limit {count} offset {first}"
        if than is None:
            source = f"(select * from {one.as_of(at)} as history where {wanted})"
        elif is_gone or question.get("only"):
            source = self.differences(one, at, than, wanted, "gone" if is_gone else "rows")
        else:
            source = f"(select * from {one.as_of(at)} as history where {wanted})"
        made: dict[str, Any] = {}
        if question.get("counts"):
            made["counts"] = self.counts(one, at, than, search, bool(question.get("only")))
        found = [
            one.row_of(text)
            for (text,) in self.project.rows(
                f"select {one.version()} as version from {source} as history {page_of}"
            )
        ]
        before: dict[tuple[str | None, ...], Row] = {}
        if than is not None and not is_gone and found:
            condition = one.has_key([row.key for row in found])
            before = {
                row.key: row
                for (text,) in self.project.rows(
                    f"select {one.version()} as version from {one.as_of(than)} as history"
                    f" where {condition}"
                )
                for row in [one.row_of(text)]
            }
        return {**made, "first": first, **paired_slice(one, found, before)}

    def differences(self, one: Served, at: int, than: int, wanted: str, part: str) -> str:
        """The rows at one date whose record has no row, or another one, at the other date.

        Only rows that are in force at just one of the dates are joined.
        """
        now = f"(select * from {one.as_of(at)} as history where not {one.in_force(than)})"
        then = f"(select * from {one.as_of(than)} as history where not {one.in_force(at)})"
        keys = [sql for sql, _ in one.key_columns()]
        named = ", ".join(f"{sql} as _key_{place}" for place, sql in enumerate(keys))
        same = " and ".join(
            f"here._key_{place} <=> there._key_{place}" for place in range(len(keys))
        )
        shown = f"{cells_text(one)} as _cells"
        mine, other = (then, now) if part == "gone" else (now, then)
        condition = "there._is_there is null"
        if part == "rows":
            condition += " or here._cells <> there._cells"
        return (
            f"(select here.* from (select *, {named}, {shown} from {mine} as mine where {wanted})"
            f" as here left join (select {named}, {shown}, true as _is_there from {other} as other)"
            f" as there on {same} where {condition})"
        )

    def counts(
        self, one: Served, at: int, than: int | None, search: Search, only: bool
    ) -> dict[str, int]:
        wanted = one.matches(search)
        rows = f"(select * from {one.as_of(at)} as history where {wanted})"
        parts = [rows]
        if than is not None:
            if only:
                parts = [self.differences(one, at, than, wanted, "rows")]
            parts.append(self.differences(one, at, than, wanted, "gone"))
        # One statement, whose parts Spark runs side by side.
        counted = ", ".join(f"(select count(*) from {part} as counted)" for part in parts)
        (numbers,) = self.project.rows(f"select {counted}")
        return {"rows": numbers[0], "gone": numbers[1] if than is not None else 0}

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
            terms.append(f"{text} <=> {'null' if value is None else literal(value)}")
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
            f" where {one.period['since']} is not null and {condition} limit {MAX_RECORD + 1}"
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
        everything = "(" + " union all ".join(parts) + ")"
        terms = ["true"]
        if question.get("user"):
            terms.append(f"who = {literal(str(question['user']))}")
        if question.get("column"):
            terms.append(f"array_contains(columns, {literal(str(question['column']))})")
        wanted = " and ".join(terms)
        made: dict[str, Any] = {"first": first}
        if question.get("counts"):
            made |= self.change_counts(everything, wanted, tables, search)
        page_of = self.project.rows(
            "select table_number, what, cast(at as string), key"
            f" from {everything} as changes where {wanted}"
            f" order by at, table_number, sort_key limit {count} offset {first}"
        )
        keys: dict[int, list[list[str | None]]] = {}
        listed = []
        for number, what, at, text in page_of:
            key = json.loads(text)
            listed.append({"table": id_of(tables[number]), "what": what, "at": at, "key": key})
            keys.setdefault(number, [])
            if key not in keys[number]:
                keys[number].append(key)
        slices = {}
        for number, of_table in keys.items():
            one = tables[number]
            rows, _ = self.all_versions(one, one.has_key(of_table))
            slices[id_of(one)] = slice_of(one, rows)
        return {**made, "changes": listed, "tables": slices}

    def changes_of(self, one: Served, place: int, start: int, end: int, search: Search) -> str:
        """One row per change: a begin and an end at the same instant are an update."""
        who = next((name for name, _ in one.columns if name.lower() in WHO), None)
        is_new = "_change_type <> 'update_preimage'"
        who_sql = f"any_value({as_text(who, 'string')}) filter (where {is_new})" if who else "null"
        columns = []
        for name, kind in one.columns:
            if name[:1] in "_@":
                continue
            old, new = (
                f"any_value({as_text(name, kind)}) filter (where _change_type = 'update_{side}')"
                for side in ("preimage", "postimage")
            )
            columns.append(f"if({old} is distinct from {new}, {literal(name)}, null)")
        listed = f"array_compact(array({', '.join(columns)}))" if columns else "array('')"
        at = "unix_micros(_changed_at)" if one.kind == "timestamp" else "_changed_at"
        if one.kind == "date":
            at = f"unix_date(_changed_at) * {DAY}L"
        keys = [sql for sql, _ in one.key_columns()]
        source = self.project.call(
            "changeset",
            relation=one.table.relation,
            from_at=one.point(start + one.scale - 1),
            to_at=one.point(end + one.scale - 1),
            key=proper(one.table),
            convention=one.table.reader,
        )
        grouped = ", ".join(quoted(name) for name in proper(one.table))
        changed = "bool_or(_change_type like 'update%')"
        inner = (
            f"select {place} as table_number, {at} as at,"
            f" if({changed}, 'update', any_value(_change_type)) as what,"
            f" {who_sql} as who, if({changed}, {listed}, array()) as columns,"
            f" to_json(array({', '.join(one.key_texts())})) as key,"
            f" array({', '.join(f'cast({sql} as string)' for sql in keys)}) as sort_key"
            f" from {source} as history group by {grouped}, _changed_at"
            f" having bool_or({one.matches(search)}) filter (where {is_new})"
        )
        return (
            "select table_number, at, what,"
            " if(what = 'delete', 'unknown', coalesce(who, 'unknown')) as who, columns, key,"
            f" sort_key from ({inner}) as grouped"
        )

    def change_counts(
        self, everything: str, wanted: str, tables: Sequence[Served], search: Search
    ) -> dict[str, Any]:
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
        found = self.project.rows(
            "select one.kind, one.name, one.place, count(*) as number from (select explode(concat("
            f"{counted})) as one from {everything} as changes) as counted"
            f" group by 1, 2, 3 order by kind = 'day', number desc limit {MAX_GROUPS}"
        )

        def of(kind: str) -> list[tuple[str, int, int]]:
            return [(name, place, number) for each, name, place, number in found if each == kind]

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
                f"select {', '.join(parts)} from {one.period['from']} as history"
            )
            found += [int(value) * one.scale for value in row if value is not None]
        best_of = (max if is_back else min)(found, default=None)
        return {"at": None if best_of is None else str(best_of)}


def id_of(one: Served) -> str:
    return f"{one.table.schema}.{one.table.name}"


def cells_text(one: Served) -> str:
    """The data of a row as one text that is equal if all cells are."""
    cells = [as_text(name, kind) for name, kind in one.columns if name[:1] not in "_@"]
    return f"to_json(array({', '.join(cells) or 'cast(null as string)'}))"


def key_of(value: Any, one: Served) -> list[str | None]:
    if not isinstance(value, list) or len(value) != len(one.table.key):
        raise QuestionError(f"the key of {one.table.name} is {', '.join(one.table.key)}")
    return [None if part is None else str(part) for part in value]


def paired_slice(
    one: Served, found: list[Row], before: Mapping[tuple[str | None, ...], Row]
) -> dict[str, Any]:
    """The rows and those of the second date in one slice: `rows` has [place, place before or -1].

    A row that is in force at both dates is its own predecessor.
    """
    rows: list[Row] = []
    places = []
    for row in found:
        old = before.get(row.key)
        is_same = old is not None and (old.since, old.order) == (row.since, row.order)
        rows.append(row)
        place = len(rows) - 1
        if old is not None and not is_same:
            rows.append(old)
        places.append([place, -1 if old is None else place if is_same else place + 1])
    return {"slice": slice_of(one, rows), "rows": places}
