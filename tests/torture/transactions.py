"""Random transactions over three related tables, as SQL for two databases and as events.

    customers ◀── contracts ◀── payments ──▶ customers

Each transaction has its own instant. References may be NULL, dangling, or contradict each other.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from tests.support.tables import literal

COLUMNS = {
    "customers": {"id": "bigint", "name": "string", "city": "string"},
    "contracts": {"id": "bigint", "customer_id": "bigint", "plan": "string", "since": "date"},
    "payments": {
        "id": "bigint", "customer_id": "bigint", "contract_id": "bigint",
        "amount": "decimal(12,2)", "note": "string",
    },
}  # fmt: skip
TABLES = tuple(COLUMNS)
# Column of a reference → the table it refers to.
REFERENCES = {
    "contracts": {"customer_id": "customers"},
    "payments": {"customer_id": "customers", "contract_id": "contracts"},
}
IDS = range(1, 6)
# Collations and markers confuse some of these with each other.
TEXTS = (None, "", " ", "NULL", "null", "a", "A", "a ", "é", "e", "it's", "a\\b", '"', "%")
BEGIN = datetime(2020, 1, 1, 12, 0, 0, 123456)
GAP = timedelta(milliseconds=1)
Row = dict[str, Any]
State = dict[str, dict[int, Row]]


@dataclass(frozen=True)
class Change:
    """What a statement does to one record; `before` is None for a new one, `after` for a deletion.

    number  of the statement
    """

    table: str
    id: int
    before: Row | None
    after: Row | None
    number: int
    at: datetime


@dataclass
class Transaction:
    """Statements with `{}` for the prefix of a table's name, and what they change."""

    at: datetime
    statements: list[tuple[str, str]] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)


class Transactions:
    """`count` random transactions.

    is_close  whether a record may change again within a millisecond, the gap of `fivetran`, whose
              events of one record are documented to be a gap apart
    """

    def __init__(self, choice: random.Random, count: int, is_close: bool) -> None:
        self.choice = choice
        self.is_close = is_close
        self.state: State = {table: {} for table in TABLES}
        self.number = 0
        self.made: list[Transaction] = []
        # Records and when they changed last.
        self.touched: dict[tuple[str, int], datetime] = {}
        at = BEGIN
        for _ in range(count):
            self.made.append(self.transaction(at))
            at += choice.choice(
                [
                    timedelta(microseconds=1),
                    timedelta(microseconds=choice.randint(2, 999)),
                    GAP,
                    timedelta(microseconds=choice.randint(1001, 2000)),
                    timedelta(seconds=choice.randint(1, 100)),
                    timedelta(days=choice.randint(1, 100)),
                ]
            )

    def transaction(self, at: datetime) -> Transaction:
        made = Transaction(at)
        wanted = self.choice.randint(1, 4) if self.made else 5
        for _ in range(50):
            if len(made.statements) >= wanted:
                break
            kinds: list[Callable[[Transaction, str], None]] = [
                self.insert, self.insert, self.update, self.update, self.touch, self.delete,
                self.replace, self.refer, self.update_some, self.delete_some,
            ]  # fmt: skip
            # The first transactions fill the tables.
            kind = self.choice.choice(kinds if self.made else kinds[:1])
            kind(made, TABLES[len(made.statements) % 3] if not self.made else self.table())
        self.touched |= {(change.table, change.id): at for change in made.changes}
        return made

    def table(self) -> str:
        return self.choice.choice(TABLES)

    def may_change(self, table: str, id_: int, at: datetime) -> bool:
        last = self.touched.get((table, id_))
        return self.is_close or last is None or at - last >= GAP

    def value(self, column: str) -> Any:
        if column.endswith("_id"):
            return self.choice.choice([None, 9, *IDS, *IDS])
        return {
            "since": self.choice.choice(
                [None, date(1000, 1, 1), date(2024, 2, 29), date(9999, 12, 31)]
            ),
            "amount": self.choice.choice(
                [None, Decimal("0.00"), Decimal("-1.50"), Decimal("1.50"), Decimal("9999999999.99")]
            ),
        }.get(column, self.choice.choice(TEXTS))

    def row(self, table: str, id_: int) -> Row:
        return {name: id_ if name == "id" else self.value(name) for name in COLUMNS[table]}

    def write(
        self, made: Transaction, table: str, statement: str, after: dict[int, Row | None]
    ) -> None:
        """Add a statement, if it changes anything and may."""
        if not after or not all(self.may_change(table, id_, made.at) for id_ in after):
            return
        self.number += 1
        made.statements.append((table, statement))
        for id_, row in after.items():
            before = self.state[table].get(id_)
            made.changes.append(Change(table, id_, before, row, self.number, made.at))
            if row is None:
                del self.state[table][id_]
            else:
                self.state[table][id_] = row

    def insert(self, made: Transaction, table: str, id_: int | None = None) -> None:
        free = [key for key in IDS if key not in self.state[table]]
        count = self.choice.randint(1, 3) if id_ is None else 1
        ids = [id_] if id_ is not None else self.choice.sample(free, min(len(free), count))
        rows = [self.row(table, key) for key in ids]
        cells = ", ".join(f"({', '.join(map(sql, row.values()))})" for row in rows)
        self.write(
            made,
            table,
            f"insert into {{}}{table} ({', '.join(COLUMNS[table])}) values {cells}",
            {row["id"]: row for row in rows},
        )

    def one(self, table: str) -> int | None:
        there = sorted(self.state[table])
        return self.choice.choice(there) if there else None

    def set(self, made: Transaction, table: str, id_: int, values: Row) -> None:
        pairs = ", ".join(f"{name} = {sql(value)}" for name, value in values.items())
        row = {**self.state[table][id_], **values}
        self.write(made, table, f"update {{}}{table} set {pairs} where id = {id_}", {id_: row})

    def update(self, made: Transaction, table: str) -> None:
        if (id_ := self.one(table)) is not None:
            names = [name for name in COLUMNS[table] if name != "id"]
            chosen = self.choice.sample(names, self.choice.randint(1, len(names)))
            self.set(made, table, id_, {name: self.value(name) for name in chosen})

    def touch(self, made: Transaction, table: str) -> None:
        """An update to the values that the row has."""
        if (id_ := self.one(table)) is not None:
            row = self.state[table][id_]
            self.set(made, table, id_, {name: row[name] for name in row if name != "id"})

    def refer(self, made: Transaction, table: str) -> None:
        """Change a reference only."""
        if table in REFERENCES and (id_ := self.one(table)) is not None:
            name = self.choice.choice(list(REFERENCES[table]))
            self.set(made, table, id_, {name: self.value(name)})

    def delete(self, made: Transaction, table: str) -> None:
        if (id_ := self.one(table)) is not None:
            self.write(made, table, f"delete from {{}}{table} where id = {id_}", {id_: None})

    def replace(self, made: Transaction, table: str) -> None:
        """Delete a record and insert it again in the same transaction."""
        if (id_ := self.one(table)) is not None and self.may_change(table, id_, made.at):
            self.write(made, table, f"delete from {{}}{table} where id = {id_}", {id_: None})
            self.insert(made, table, id_)

    def update_some(self, made: Transaction, table: str) -> None:
        name = self.choice.choice([name for name in COLUMNS[table] if name != "id"])
        bound, value = self.choice.choice(IDS), self.value(name)
        rows: dict[int, Row | None] = {
            id_: {**row, name: value} for id_, row in self.state[table].items() if id_ <= bound
        }
        statement = f"update {{}}{table} set {name} = {sql(value)} where id <= {bound}"
        self.write(made, table, statement, rows)

    def delete_some(self, made: Transaction, table: str) -> None:
        """Delete what refers to a record, or all rows."""
        there, statement = self.state[table], f"delete from {{}}{table}"
        if table in REFERENCES and self.choice.random() >= 0.2:
            name, value = self.choice.choice(list(REFERENCES[table])), self.choice.choice(IDS)
            there = {id_: row for id_, row in there.items() if row[name] == value}
            statement += f" where {name} = {value}"
        elif self.choice.random() >= 0.2:
            return
        self.write(made, table, statement, dict.fromkeys(there))


def sql(value: Any) -> str:
    """A literal that Spark and MariaDB read alike."""
    return str(value) if isinstance(value, Decimal) else literal(value)


def net(changes: Iterable[Change]) -> list[Change]:
    """For each record and instant the change from before its transaction to after it."""
    first: dict[tuple[str, int, datetime], Change] = {}
    last: dict[tuple[str, int, datetime], Change] = {}
    for change in changes:
        place = (change.table, change.id, change.at)
        first.setdefault(place, change)
        last[place] = change
    return [
        Change(change.table, change.id, first[place].before, change.after, change.number, change.at)
        for place, change in last.items()
    ]
