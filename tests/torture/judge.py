"""MariaDB's system versioning as the judge: the same transactions there and in history tables.

    MariaDB        x1 ---- x2 ---- x3        an instant per transaction: SET @@timestamp
    plain events   x1 ---- x2 ---- x3        the same instants, on the axis of the table
    Delta tables     c1 ---- c2 ---- c3      the time of a transaction's last commit

A kind of table is compared at the instants of its transactions, right before them, and between two
of them. In a world all tables of all kinds have the same transactions, which come from its seed.
"""

from __future__ import annotations

import itertools
import os
import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from scripts.spark_settings import ONE_TASK
from tests.support import java
from tests.support.project import SCHEMA, Project
from tests.support.rendering import Renderer, renderer
from tests.support.tables import data_frame
from tests.torture.mariadb import MariaDB, server
from tests.torture.transactions import (
    COLUMNS,
    REFERENCES,
    TABLES,
    Change,
    Transaction,
    Transactions,
    net,
)

TRANSACTIONS = 14
PARTS = 6
MICROSECOND = timedelta(microseconds=1)
# Of MariaDB 10.11: the end of a row that is current.
LAST = "2038-01-19 03:14:07.999999"
OPTIONS = (
    "using delta tblproperties ('delta.enableChangeDataFeed' = 'true',"
    " 'delta.enableInCommitTimestamps' = 'true')"
)
FEED = {
    "_change_type": "string",
    "_commit_version": "bigint",
    "_commit_timestamp": "timestamp",
    "part": "bigint",
}
Cells = tuple[str | None, ...]
# A table's rows by id.
Image = dict[str, Cells]
# A table, and the numbers of two transactions.
Range = tuple[str, int, int]


@dataclass(frozen=True)
class Kind:
    """A kind of history table.

    is_dated       whether its versions have the instants of the transactions; else those of commits
    write          writes the model of a table, named `world.model(kind, table)`
    convention     a table → how readers read it
    """

    name: str
    is_dated: bool
    write: Callable[[World, str], None]
    convention: Callable[[str], dict[str, Any]]
    has_gap: bool = False


@dataclass
class World:
    """One seed: its transactions, and its tables everywhere."""

    seed: int
    project: Project
    call: Renderer
    database: MariaDB
    choice: random.Random = field(init=False)
    transactions: list[Transaction] = field(init=False)
    is_close: bool = field(init=False)
    # Versions of the three Delta tables after each transaction.
    versions: list[dict[str, int]] = field(default_factory=list)
    commits: list[datetime] = field(default_factory=list)
    # Events up to which the tables of plain events have arrived.
    parts: int = 0
    # The number of transactions before the first run of the tables that read Delta tables.
    populated: int = 0

    def __post_init__(self) -> None:
        self.choice = random.Random(f"judge {self.seed}")
        self.is_close = self.seed % 4 == 0
        made = Transactions(self.choice, TRANSACTIONS, self.is_close)
        self.transactions = made.made
        self.project.schema = f"{SCHEMA}_judge{self.seed}"

    @property
    def spark(self) -> SparkSession:
        return self.project.spark

    @property
    def instants(self) -> list[datetime]:
        return [transaction.at for transaction in self.transactions]

    @property
    def changes(self) -> list[Change]:
        return [change for transaction in self.transactions for change in transaction.changes]

    def kinds(self) -> list[Kind]:
        return [kind for kind in KINDS if not (self.is_close and kind.has_gap)]

    def main(self, table: str) -> str:
        return f"{self.project.schema}_main.{table}"

    def model(self, kind: str, table: str) -> str:
        return f"{kind}_{table}"


# Where the same transactions go.


def fill_database(world: World) -> None:
    types = {"string": "varchar(40)"}
    script = [
        "set time_zone = '+00:00'",
        "create or replace database judged character set utf8mb4",
        "use judged",
        *(
            f"create table {table} ("
            + ", ".join(f"{name} {types.get(type_, type_)}" for name, type_ in columns.items())
            + ", primary key (id)) with system versioning"
            for table, columns in COLUMNS.items()
        ),
    ]
    for transaction in world.transactions:
        # A literal with microseconds; a number with as many digits would be rounded.
        at = f"unix_timestamp(timestamp'{transaction.at}')"
        script += [f"set @@timestamp = {at}", "start transaction"]
        script += [statement.format("") for _, statement in transaction.statements]
        script.append("commit")
    world.database.query(";\n".join(script))


def create_mains(world: World) -> None:
    world.spark.sql(f"create schema if not exists {world.project.schema}_main")
    for table, columns in COLUMNS.items():
        listed = ", ".join(f"{name} {type_}" for name, type_ in columns.items())
        world.spark.sql(f"create table {world.main(table)} ({listed}) {OPTIONS}")
    world.versions.append(dict.fromkeys(TABLES, 0))


def commit(world: World, transaction: Transaction) -> None:
    """A commit for each statement."""
    versions = dict(world.versions[-1])
    # Commit times are milliseconds; those of two transactions differ.
    time.sleep(0.003)
    for table, statement in transaction.statements:
        world.spark.sql(statement.format(f"{world.project.schema}_main."))
        versions[table] += 1
    world.versions.append(versions)


def read_commit_times(world: World) -> None:
    times: dict[str, dict[int, datetime]] = {}
    for table in TABLES:
        log = world.spark.sql(f"describe history {world.main(table)}").collect()
        times[table] = {row.version: row.timestamp for row in log}
        assert max(times[table]) == world.versions[-1][table], table
    world.commits = [
        max(times[table][version] for table, version in versions.items())
        for versions in world.versions[1:]
    ]


def stage_events(world: World) -> None:
    """Tables of the events as rows of a change feed, in order and in random parts; and netted ones.

    The changes of a record at one instant are in one part.
    """
    order = {at: 1 + place * PARTS // TRANSACTIONS for place, at in enumerate(world.instants)}
    late: dict[tuple[str, int, datetime], int] = defaultdict(lambda: world.choice.randint(1, PARTS))
    ways: dict[str, Callable[[Change], int]] = {
        "ordered": lambda change: order[change.at],
        "late": lambda change: late[change.table, change.id, change.at],
    }
    for table, columns in COLUMNS.items():
        changes = [change for change in world.changes if change.table == table]
        for name, part_of in ways.items():
            rows = [row for change in changes for row in feed_rows(change, part_of(change))]
            types = {**columns, **FEED, "happened": "timestamp"}
            save(world, f"{name}_{table}", rows, types)
            rows = [
                {
                    **dict.fromkeys(columns),
                    **(change.after or {}),
                    "id": change.id,
                    "happened": change.at,
                    "is_deleted": change.after is None,
                    "part": part_of(change),
                }
                for change in net(changes)
            ]
            types = {**columns, "happened": "timestamp", "is_deleted": "boolean", "part": "bigint"}
            save(world, f"net_{name}_{table}", rows, types)


def save(
    world: World, name: str, rows: Iterable[Mapping[str, Any]], types: Mapping[str, str]
) -> None:
    texts = [
        {
            column: value if value is None or types[column] != "decimal(12,2)" else str(value)
            for column, value in row.items()
        }
        for row in rows
    ]
    frame = data_frame(world.spark, texts, types)
    frame.write.mode("overwrite").saveAsTable(f"{world.project.schema}_main.{name}")


def feed_rows(change: Change, part: int) -> list[dict[str, Any]]:
    mark = {
        "_commit_version": change.number,
        "_commit_timestamp": change.at,
        "happened": change.at,
        "part": part,
    }
    if change.before is None or change.after is None:
        kind, image = (
            ("delete", change.before) if change.after is None else ("insert", change.after)
        )
        return [{**(image or {}), **mark, "_change_type": kind}]
    return [
        {**change.before, **mark, "_change_type": "update_preimage"},
        {**change.after, **mark, "_change_type": "update_postimage"},
    ]


def arrive(world: World, part: int) -> None:
    """Views of the events up to a part, and of those of the parts since the last run."""
    for view in ("ordered", "late", "net_ordered", "net_late"):
        for table in TABLES:
            source = f"{world.project.schema}_main.{view}_{table}"
            for name, condition in (
                ("arrived", f"part <= {part}"),
                ("new", f"part > {world.parts} and part <= {part}"),
            ):
                world.spark.sql(
                    f"create or replace temp view {name}_{view}_{table} as"
                    f" select * from {source} where {condition}"
                )
    world.parts = part


# The kinds of tables.


def of_batches(name: str, convention: str, is_late: bool, is_numbered: bool) -> Kind:
    """`history_batch` of plain events, by numbered parts or with one batch per run."""

    def write(world: World, table: str) -> None:
        source = f"{'late' if is_late else 'ordered'}_{table}"
        if is_numbered:
            view, columns = f"arrived_{source}", "* except (part, happened), part as _batch"
        else:
            view, columns = f"new_{source}", "* except (part, happened)"
        at = "happened" if is_late else "_commit_timestamp"
        rows = f"dbt_history.batch_rows('{view}', 'id', '{convention}', at='{at}')"
        more: dict[str, Any] = {"late_events": True} if is_late else {}
        world.project.history(
            world.model(name, table),
            f"select {columns} from {{{{ {rows} }}}}",
            convention=convention,
            max_deleted_share=None,
            batches_per_commit=world.choice.choice([None, None, 1]),
            **more,
        )

    return Kind(
        name, True, write, lambda _: {"convention": convention}, has_gap=convention == "fivetran"
    )


def of_history(name: str, convention: str, is_late: bool) -> Kind:
    """`materialized='history'` of changed records with `updated_at`."""

    def write(world: World, table: str) -> None:
        world.project.model(
            world.model(name, table),
            f"select * except (part) from new_net_{'late' if is_late else 'ordered'}_{table}",
            materialized="history",
            unique_key="id",
            meta={
                "history": {
                    "convention": convention,
                    "source": "changes",
                    "updated_at": "happened",
                    "deleted": "is_deleted",
                    "max_deleted_share": None,
                }
            },
        )

    return Kind(
        name, True, write, lambda _: {"convention": convention}, has_gap=convention == "fivetran"
    )


def write_feed(world: World, table: str) -> None:
    """`materialized='history'` of a Delta table."""
    world.project.model(
        world.model("feed", table),
        f"select * from {world.main(table)}",
        materialized="history",
        unique_key="id",
        meta={"history": {"convention": "validity", "max_deleted_share": None}},
    )


def relation(world: World, table: str) -> str:
    return f"api.Relation.create(schema='{world.project.schema}_main', identifier='{table}')"


def write_events(world: World, table: str) -> None:
    world.project.model(
        world.model("events", table),
        f"select * from {{{{ dbt_history.event_rows({relation(world, table)}, 'id') }}}}",
        materialized="history_append",
    )


def write_mirror(world: World, table: str) -> None:
    references = ", ".join(
        f"{{'column': '{column}', 'key': 'id', 'history': ref('{world.model('mirror', other)}')}}"
        for column, other in REFERENCES.get(table, {}).items()
    )
    world.project.model(
        world.model("mirror", table),
        f"select * from {{{{ dbt_history.hx_rows({relation(world, table)}, 'id',"
        f" references=[{references}]) }}}}",
        materialized="history_append",
    )


KINDS = (
    of_batches("fivetran", "fivetran", is_late=False, is_numbered=True),
    of_batches("validity", "validity", is_late=False, is_numbered=False),
    of_batches("fivetran_late", "fivetran", is_late=True, is_numbered=False),
    of_batches("validity_late", "validity", is_late=True, is_numbered=True),
    of_history("history", "validity", is_late=False),
    of_history("history_late", "fivetran", is_late=True),
    Kind("feed", False, write_feed, lambda _: {"convention": "validity"}),
    Kind("events", False, write_events, lambda _: {"convention": "events", "key": "id"}),
    Kind(
        "mirror",
        False,
        write_mirror,
        lambda table: {"convention": "hx", "key": "id", "id": f"{table}_hx_id"},
    ),
)


def play(world: World) -> None:
    """The transactions everywhere, and the runs of the models."""
    fill_database(world)
    create_mains(world)
    stage_events(world)
    for kind in world.kinds():
        for table in TABLES:
            kind.write(world, table)
    dated = [kind.name for kind in world.kinds() if kind.is_dated]
    others = [kind.name for kind in world.kinds() if not kind.is_dated]
    world.populated = world.choice.randint(0, 2)
    middle = world.choice.randint(world.populated + 1, TRANSACTIONS - 1)
    parts = sorted(world.choice.sample(range(1, PARTS), 2))
    for number in range(TRANSACTIONS + 1):
        due: list[str] = []
        if number == world.populated:
            arrive(world, parts[0])
            due = [*dated, *others]
        elif number == middle:
            arrive(world, parts[1])
            # A run takes a new part of what is not numbered; none may be left out.
            due = [*dated, *(name for name in others if world.choice.random() < 0.7)]
        elif number == TRANSACTIONS:
            arrive(world, PARTS)
            due = [*dated, *others]
        if due:
            world.project.run(*(world.model(kind, table) for kind in due for table in TABLES))
        if number < TRANSACTIONS:
            commit(world, world.transactions[number])
    read_commit_times(world)


# What is read on both sides.


def text(at: datetime) -> str:
    return at.isoformat(" ", "microseconds")


class Verdict:
    """What was compared, by kind and by what was read, and what differs."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        self.problems: list[str] = []

    def compare(self, kind: str, what: str, where: str, got: Any, expected: Any) -> None:
        self.counts[kind, what] += 1
        if got != expected:
            self.problems.append(f"{where}: {what} of {kind}: {shown(got, expected)}")


def shown(got: Any, expected: Any) -> str:
    """The first rows that one side has and the other has not."""
    ours, theirs = as_rows(got), as_rows(expected)
    lacking = [row for row in theirs if row not in ours][:3]
    extra = [row for row in ours if row not in theirs][:3]
    return f"lacks {lacking}, has {extra}"


def as_rows(found: Any) -> list[Any]:
    return list(found.items()) if isinstance(found, dict) else list(found)


def cells_of(table: str, alias: str = "", text_type: str = "string") -> list[str]:
    prefix = f"{alias}." if alias else ""
    return [f"cast({prefix}{name} as {text_type})" for name in COLUMNS[table]]


def ask_database(world: World, queries: Sequence[str]) -> list[list[Any]]:
    """For each SELECT of one JSON array its rows."""
    script = ["set time_zone = '+00:00'", "use judged"]
    for place, query in enumerate(queries):
        script += [f"select json_array({place}, {query}"]
    rows: list[list[Any]] = [[] for _ in queries]
    for place, *cells in world.database.query(";\n".join(script)):
        rows[place].append(tuple(cells))
    return rows


def their_table(table: str, at: datetime | None) -> str:
    return f"{table} for system_time as of timestamp'{text(at)}'" if at else table


def their_state(table: str, at: datetime | None) -> str:
    return f"{', '.join(cells_of(table, text_type='char'))}) from {their_table(table, at)}"


def their_join(at: datetime) -> str:
    ids = [cell for table in TABLES for cell in cells_of(table, table[:4], "char")]
    customers, contracts, payments = (
        f"{their_table(table, at)} as {table[:4]}" for table in TABLES
    )
    return (
        f"{', '.join(ids)}) from {customers} inner join {contracts} on cont.customer_id = cust.id"
        f" inner join {payments} on paym.contract_id = cont.id and paym.customer_id = cust.id"
    )


def their_versions(table: str) -> str:
    """All versions; those that a transaction both began and ended were never there."""
    return (
        f"cast(row_start as char), cast(row_end as char), {', '.join(cells_of(table, '', 'char'))})"
        f" from {table} for system_time all where row_start < row_end"
    )


def their_between(table: str, since: datetime, until: datetime) -> str:
    return (
        f"{', '.join(cells_of(table, '', 'char'))}) from {table} for system_time"
        f" from timestamp'{text(since)}' to timestamp'{text(until)}' where row_start < row_end"
    )


def ask_spark(world: World, queries: Sequence[tuple[Sequence[str], str]]) -> list[list[Cells]]:
    """For each pair of columns and FROM clause its rows, all by one statement."""
    parts = [
        f"select {place} as place, array({', '.join(columns)}) as cells from {source}"
        for place, (columns, source) in enumerate(queries)
    ]
    rows: list[list[Cells]] = [[] for _ in queries]
    for place, cells in world.spark.sql("\nunion all\n".join(parts)).collect():
        rows[place].append(tuple(cells))
    return rows


def image(rows: Iterable[Cells]) -> Image:
    """Rows by id; a record that is there twice has both rows, which no other side has."""
    found: Image = {}
    for row in rows:
        known = found.get(str(row[0]))
        found[str(row[0])] = row if known is None else (*known, *row)
    return found


class Comparison:
    """One kind's tables against MariaDB."""

    def __init__(self, world: World, kind: Kind, verdict: Verdict) -> None:
        self.world, self.kind, self.verdict = world, kind, verdict
        self.choice = random.Random(f"questions {world.seed} {kind.name}")
        # Before its first run, a table that reads a Delta table knows no instants.
        first = 0 if kind.is_dated else world.populated
        self.instants = list(enumerate(world.instants))[first:]

    def where(self, *parts: Any) -> str:
        return " ".join([f"seed {self.world.seed}", *map(str, parts)])

    def there(self, place: int) -> datetime:
        """Where the state after a transaction is in the kind's tables."""
        return self.world.instants[place] if self.kind.is_dated else self.world.commits[place]

    def view(self, table: str) -> str:
        """The table's rows, read once: each of a hundred readers would list Delta's files."""
        return f"read_{self.kind.name}_{table}"

    def reader(self, name: str, table: str, **arguments: Any) -> str:
        convention = self.kind.convention(table)
        return str(
            self.world.call(name, relation=self.view(table), convention=convention, **arguments)
        )

    def run(self) -> None:
        for table in TABLES:
            name = self.world.project.table(self.world.model(self.kind.name, table))
            stored = self.world.spark.table(name)
            rows = self.world.spark.createDataFrame(stored.collect(), stored.schema)
            rows.createOrReplaceTempView(self.view(table))
        self.compare_states()
        self.compare_joins()
        self.compare_changesets()
        if self.kind.is_dated:
            self.compare_versions_between()
        if self.kind.name == "mirror":
            self.compare_found_changes()

    def states_asked(self) -> list[tuple[datetime | None, Any]]:
        """Instants of MariaDB, and the same for the kind's readers; None is now."""
        asked: list[tuple[datetime | None, Any]] = [
            (at, text(self.there(place))) for place, at in self.instants
        ]
        if self.kind.is_dated:
            # Right before a transaction, right after one, and before all.
            others = [at + self.choice.choice([-1, 1]) * MICROSECOND for at in self.world.instants]
            chosen = [*self.choice.sample(others, 3), self.world.instants[0] - timedelta(days=1)]
            asked += [(at, text(at)) for at in chosen]
        return [*asked, (None, "now")]

    def compare_states(self) -> None:
        asked = [(table, at, there) for table in TABLES for at, there in self.states_asked()]
        theirs = ask_database(self.world, [their_state(table, at) for table, at, _ in asked])
        ours = ask_spark(
            self.world,
            [
                (cells_of(table), f"{self.reader('as_of', table, at=there)} as found")
                for table, _, there in asked
            ],
        )
        for (table, at, _), got, expected in zip(asked, ours, theirs, strict=True):
            where = self.where(table, "at", at or "now")
            self.verdict.compare(self.kind.name, "as of", where, image(got), image(expected))

    def compare_joins(self) -> None:
        """Three tables at an instant: of their states, and of `history_join` at that instant."""
        chosen = self.choice.sample(self.instants, 3)
        theirs = ask_database(self.world, [their_join(at) for _, at in chosen])
        joined = self.world.call(
            "history_join",
            tables={
                table: {
                    "relation": self.view(table),
                    "key": "id" if table == "customers" else "customer_id",
                    "convention": self.kind.convention(table),
                }
                for table in TABLES
            },
        )
        columns = [cell for table in TABLES for cell in cells_of(table, table)]
        for what in ("join", "history_join"):
            ours = ask_spark(
                self.world,
                [
                    (columns, self.join_at(place) if what == "join" else self.at(joined, place))
                    for place, _ in chosen
                ],
            )
            for (_, at), got, expected in zip(chosen, ours, theirs, strict=True):
                where = self.where("three tables at", at)
                self.verdict.compare(self.kind.name, what, where, Counter(got), Counter(expected))

    def join_at(self, place: int) -> str:
        at = text(self.there(place))
        customers, contracts, payments = (
            f"{self.reader('as_of', table, at=at)} as {table}" for table in TABLES
        )
        return (
            f"{customers} inner join {contracts} on contracts.customer_id = customers.id"
            f" inner join {payments} on payments.contract_id = contracts.id"
            " and payments.customer_id = customers.id"
        )

    def at(self, joined: str, place: int) -> str:
        at = f"timestamp'{text(self.there(place))}'"
        return (
            f"{joined} as joined where valid_from <= {at} and (valid_to is null or {at} < valid_to)"
            " and payments.contract_id = contracts.id"
        )

    def ranges(self) -> list[Range]:
        """Of each table pairs of transactions; the end of one is the last."""
        places = [place for place, _ in self.instants]
        found: list[Range] = []
        for table in TABLES:
            pairs = [sorted(self.choice.sample(places, 2)) for _ in range(3)]
            found += [(table, first, last) for first, last in [*pairs, (places[0], places[-1])]]
        return found

    def compare_changesets(self) -> None:
        """The changes at instants in [from, to); of commits those in (c_from, c_to]."""
        asked = self.ranges()
        ours = ask_spark(
            self.world,
            [
                (
                    ["_change_type", "cast(unix_micros(_changed_at) as string)", *cells_of(table)],
                    self.reader(
                        "changeset", table, key="id",
                        from_at=text(self.since(first)), to_at=text(self.since(last)),
                    ) + " as found",
                )
                for table, first, last in asked
            ],
        )  # fmt: skip
        theirs = (
            self.their_changes(asked)
            if self.kind.is_dated
            else [differences(old, new) for old, new in self.their_images(asked)]
        )
        for (table, first, last), got, expected in zip(asked, ours, theirs, strict=True):
            steps = steps_of(got)
            changes = steps if self.kind.is_dated else joined_steps(steps)
            where = self.where(table, "from", self.since(first), "to", self.since(last))
            self.verdict.compare(self.kind.name, "changeset", where, changes, expected)

    def since(self, place: int) -> datetime:
        """The bound of a range: the transaction's instant, or the point after its commits."""
        return self.there(place) + (timedelta(0) if self.kind.is_dated else MICROSECOND)

    def their_changes(self, asked: Sequence[Range]) -> list[dict[Any, Any]]:
        """The versions of MariaDB that began or ended in each range."""
        found = ask_database(self.world, [their_versions(table) for table in TABLES])
        versions = dict(zip(TABLES, found, strict=True))
        result = []
        for table, first, last in asked:
            since, until = text(self.world.instants[first]), text(self.world.instants[last])
            rows: list[Cells] = []
            for start, end, *cells in versions[table]:
                if since <= start < until:
                    rows.append(("insert", micros(start), *cells))
                if since <= end < until and end != LAST:
                    rows.append(("delete", micros(end), *cells))
            result.append(steps_of(rows))
        return result

    def their_images(self, asked: Sequence[Range]) -> list[tuple[Image, Image]]:
        """MariaDB's states at both ends of each range."""
        at = self.world.instants
        queries = [their_state(table, at[place]) for table, *ends in asked for place in ends]
        found = [image(rows) for rows in ask_database(self.world, queries)]
        return list(zip(found[::2], found[1::2], strict=True))

    def compare_versions_between(self) -> None:
        """All rows that were visible at some instant of [from, to)."""
        asked = self.ranges()
        instants = self.world.instants
        theirs = ask_database(
            self.world,
            [their_between(table, instants[first], instants[last]) for table, first, last in asked],
        )
        ours = ask_spark(
            self.world,
            [
                (
                    cells_of(table),
                    self.reader(
                        "between", table,
                        from_at=text(instants[first]), to_at=text(instants[last]),
                    ) + " as found",
                )
                for table, first, last in asked
            ],
        )  # fmt: skip
        for (table, first, last), got, expected in zip(asked, ours, theirs, strict=True):
            where = self.where(table, "from", instants[first], "to", instants[last])
            self.verdict.compare(self.kind.name, "between", where, set(got), set(expected))

    def compare_found_changes(self) -> None:
        """The rows of a mirror in (c_from, c_to], joined, are what differs between the two."""
        asked = self.ranges()
        ours = ask_spark(
            self.world,
            [
                (
                    ["_change_type", f"cast({table}_hx_id as string)", *cells_of(table)],
                    str(
                        self.world.call(
                            "find_changes",
                            hx=self.view(table),
                            key="id",
                            id=f"{table}_hx_id",
                            from_at=text(self.since(first)),
                            to_at=text(self.since(last)),
                        )
                    ),
                )
                for table, first, last in asked
            ],
        )
        for (table, first, last), got, (old, new) in zip(
            asked, ours, self.their_images(asked), strict=True
        ):
            where = self.where(table, "from", self.since(first), "to", self.since(last))
            self.verdict.compare("mirror", "find_changes", where, applied(old, got), new)


def micros(at: str) -> str:
    moment = datetime.fromisoformat(at) - datetime(1970, 1, 1)
    return str(moment // MICROSECOND)


def steps_of(rows: Iterable[Cells]) -> dict[Any, Any]:
    """The change of each record at each point: (microseconds, id) → old row, new row.

    A version that follows an equal one is no change.
    """
    old: dict[Any, list[Cells]] = defaultdict(list)
    new: dict[Any, list[Cells]] = defaultdict(list)
    for kind, at, *cells in rows:
        side = new if kind in ("insert", "update_postimage") else old
        side[int(at or 0), cells[0]].append(tuple(cells))
    return {
        place: (old[place], new[place])
        for place in sorted({*old, *new}, key=repr)
        if old[place] != new[place]
    }


def joined_steps(steps: Mapping[Any, Any]) -> dict[Any, Any]:
    """Of each record the row before its first change and the row after its last one."""
    first: dict[Any, Any] = {}
    last: dict[Any, Any] = {}
    for (_, id_), (old, new) in sorted(steps.items(), key=lambda step: step[0][0]):
        first.setdefault(id_, old)
        last[id_] = new
    return {id_: (first[id_], last[id_]) for id_ in first if first[id_] != last[id_]}


def differences(old: Image, new: Image) -> dict[Any, Any]:
    def listed(found: Image, id_: str) -> list[Cells]:
        return [found[id_]] if id_ in found else []

    return {
        id_: (listed(old, id_), listed(new, id_))
        for id_ in {*old, *new}
        if old.get(id_) != new.get(id_)
    }


def applied(before: Image, rows: Iterable[Cells]) -> Image:
    """A state after the changes of a mirror, in the order of their ids.

    A change that is impossible, such as an update of what is not there, leaves a mark.
    """
    state = dict(before)
    for kind, _, *cells in sorted(rows, key=lambda row: int(row[1] or 0)):
        id_ = str(cells[0])
        if (kind == "insert") == (id_ in state):
            state[f"{kind} of {id_}"] = tuple(cells)
        if kind == "delete":
            state.pop(id_, None)
        else:
            state[id_] = tuple(cells)
    return state


def judge(
    folder: Path, seed: int, wanted: int, say: Callable[[str], object]
) -> tuple[str, Verdict]:
    """Play worlds until there are `wanted` comparisons: MariaDB's version, and the verdict.

    Raises UnavailableError without a MariaDB.
    """
    # PySpark shows a time in the zone of the process.
    os.environ["TZ"] = "UTC"
    time.tzset()
    verdict = Verdict()
    with server() as database:
        spark = (
            SparkSession.builder.master("local[1]")
            .config("spark.sql.catalogImplementation", "in-memory")
            .config("spark.sql.warehouse.dir", f"{folder}/warehouse")
            .config("spark.driver.extraJavaOptions", java.OPTIONS)
            .config(map=ONE_TASK)
            .getOrCreate()
        )
        spark.sparkContext.setLogLevel("OFF")
        project = Project.create(folder / "project", spark)
        call = renderer()
        for number in itertools.count(seed):
            world = World(number, project, call, database)
            play(world)
            for kind in world.kinds():
                Comparison(world, kind, verdict).run()
            project.clear()
            say(f"{verdict.counts.total()} of {wanted} comparisons with MariaDB, seed {number}")
            if verdict.counts.total() >= wanted:
                break
        spark.stop()
        return database.version(), verdict
