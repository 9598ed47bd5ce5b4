"""Random histories from a seed: a table and batches, for the oracle and the materialization.

Two profiles:

* `well_formed`: the batches that a Fivetran-like writer sends for a stream of events
  (`event_stream`, `split`). For every split, the last table is `truth(stream)`.
* `wild`: any batch that validation accepts: rows without an earliest row, late rows inside closed
  versions, rows with an end beyond the next start, deletes. Not drawn: a table with an active
  version that has ended.

`is_in_order` is the condition for pruning: a batch whose least time is L may be applied only to the
rows with end >= L - gap if no ended version could become visible behind a pruned one. Rule 6b keeps
a table in order for every batch.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Literal, TypeAlias

from .convention import Convention, Row, Time
from .history_batch import UpdateWithoutBase, apply_batch, rows_by_key, validate

Profile: TypeAlias = Literal["well_formed", "wild"]
Kind: TypeAlias = Literal["insert", "replace", "update", "delete"]
KeyValues: TypeAlias = dict[str, str]
KeyItems: TypeAlias = tuple[tuple[str, str], ...]
Batch: TypeAlias = list[Row]

DATA_COLUMNS = ("name", "note", "amount")
TEXTS = (None, "", "NULL", "null", "None", "a", "b", "it's", "\\N", "ä")
KEY = ("region", "id")
KINDS_OF_CHANGE: tuple[Kind, ...] = ("update", "update", "update", "replace", "delete")
FAR_TIME = datetime(9999, 1, 1)


@dataclass(frozen=True)
class History:
    """A table and its successive batches.

    initial  rows with the key, DATA_COLUMNS and the convention's columns; perhaps empty
    batches  staged rows of each batch; `_batch` is the position in the list, from 1; may be empty
    """

    key: tuple[str, ...]
    convention: Convention
    initial: list[Row]
    batches: list[Batch]


@dataclass(frozen=True)
class Event:
    """A change of a record.

    insert   a record appears: all of DATA_COLUMNS in `values`
    replace  an existing record changes: all of DATA_COLUMNS
    update   an existing record changes: some of DATA_COLUMNS, at least one
    delete   the record disappears; `values` is empty
    """

    key: KeyItems
    time: Time
    version_id: Any
    kind: Kind
    values: tuple[tuple[str, Any], ...]

    @property
    def is_version(self) -> bool:
        return self.kind != "delete"

    @property
    def position(self) -> tuple[Any, ...]:
        """Order of one key's events: a delete comes after the version that starts with it."""
        return (self.time, not self.is_version, self.version_id)


@dataclass(frozen=True)
class Scale:
    """Times of a convention's type.

    origin  the time of tick 0
    tick    distance between two ordinary events
    least   smallest distance: 1 microsecond, 1, or 1 day
    gap     the convention's gap
    """

    origin: Time
    tick: Any
    least: Any
    gap: Any

    def at(self, tick: int) -> Time:
        return self.origin + tick * self.tick

    def offsets(self) -> tuple[Any, ...]:
        """Distances at which rules decide differently: 0, least, gap, gap and least, both ways."""
        zero = self.least - self.least
        steps = (self.least, self.gap, self.gap - self.least, self.gap + self.least)
        return (zero, *steps, *(-step for step in steps))


def scale_of(convention: Convention) -> Scale:
    """The scale of a convention's type."""
    gap = convention.gap
    if convention.type == "bigint":
        return Scale(1000, 10, 1, gap)
    if convention.type == "date":
        return Scale(date(2024, 1, 1), timedelta(days=5), timedelta(days=1), gap)
    tick, least = timedelta(minutes=1), timedelta(microseconds=1)
    return Scale(datetime(2024, 1, 1), tick, least, gap)


def random_history(
    seed: int,
    convention: Convention,
    profile: Profile = "wild",
    keys: int = 3,
    batches: int = 6,
    key: tuple[str, ...] = KEY,
    in_order: bool = True,
    update_without_base: UpdateWithoutBase = "skip",
    late_events: bool = False,
) -> History:
    """A random history; the same arguments give the same one.

    keys, batches        the greatest numbers of them
    in_order             False: the initial table may have overlapping versions, as another tool
                         might have written them; pruning does not work on it
    update_without_base  the option for applying the batches (skip or insert)
    late_events          the option for applying the batches, of the wild profile
    """
    if profile == "well_formed":
        return written_history(seed, convention, keys, batches, key)
    return wild_history(
        seed, convention, keys, batches, key, in_order, update_without_base, late_events
    )


def tag(history: History, number: int) -> History:
    """The same history with its own keys: the last key column is prefixed with the number."""
    column = history.key[-1]

    def tagged(rows: Iterable[Row]) -> list[Row]:
        return [{**row, column: f"{number}:{row[column]}"} for row in rows]

    batches = [tagged(batch) for batch in history.batches]
    return History(history.key, history.convention, tagged(history.initial), batches)


def merge(histories: Sequence[History]) -> History:
    """One history out of tagged ones of the same key columns and convention.

    Batch i holds the rows of batch i of all of them. Their keys must differ.
    """
    initial = [row for history in histories for row in history.initial]
    longest = max(len(history.batches) for history in histories)
    batches = [
        [row for history in histories for row in (history.batches[i : i + 1] or [[]])[0]]
        for i in range(longest)
    ]
    return History(histories[0].key, histories[0].convention, initial, batches)


def is_in_order(table: Iterable[Row], key: Sequence[str], convention: Convention) -> bool:
    """Whether no version that ended before a batch can affect it.

    Per key, in the order of (start, version_id):
    (a) no version ends more than one gap before its start;
    (b) ends do not decrease: no version ends later than a following one (one whose active flag is
        NULL may: it is never changed);
    (c) no active version has ended: its end is after the times of all batches.

        in order            [----]  [-------]   [------...
        against (b)         [----------------]            a delete at D closes the upper one if
                                 [----]     D             the lower one was pruned
    """
    return all(
        versions_are_in_order(versions, convention) for versions in rows_by_key(table, key).values()
    )


def versions_are_in_order(versions: Sequence[Row], convention: Convention) -> bool:
    """`is_in_order` for one key."""
    ends: list[Time] = []
    behind_endless = False
    for row in sorted(versions, key=convention.identity):
        end = row[convention.end]
        if is_beyond(end, convention):
            behind_endless = behind_endless or not convention.is_untouchable(row)
            continue
        backwards = end < row[convention.start] - convention.gap
        falling = behind_endless or any(end < earlier for earlier in ends)
        if backwards or falling or is_active_but_ended(row, convention):
            return False
        if not convention.is_untouchable(row):
            ends.append(end)
    return True


def is_active_but_ended(row: Row, convention: Convention) -> bool:
    """Whether a version is open and has an end before the end of time: a contradiction."""
    return convention.is_open(row) and not is_beyond(row[convention.end], convention)


def is_beyond(end: Time | None, convention: Convention) -> bool:
    """Whether an end is after the times of all batches: endless, or another writer's open end."""
    if end is None or convention.is_endless(end):
        return True
    return convention.type == "timestamp" and bool(end >= FAR_TIME)


# well_formed: a stream of events and a writer that sends it in batches


def event_stream(
    seed: int,
    convention: Convention,
    keys: int = 3,
    events: int = 8,
    late: bool = True,
    key: tuple[str, ...] = KEY,
) -> list[Event]:
    """Changes of some records, in the order in which a writer receives them.

    events  the greatest number per key
    late    some events are received after later ones of their key

    Distances that the rules cannot distinguish are left out, as two splits would differ there:

    * a record is inserted again at least one gap after its deletion (and never at the same time);
    * with late events, versions of one key start at least one gap apart;
    * versions with the same start (only where version_id separates them) are received together.
    """
    rng = random.Random(f"stream {seed} {convention}")
    atoms: list[tuple[float, list[Event]]] = []
    for values in key_values(keys, key):
        life = life_of(rng, values, convention, rng.randint(1, events), late)
        for position, together in enumerate(atoms_of(life)):
            delay = rng.choice((0, 0, 0, 1.5, 4)) if late else 0
            atoms.append((position + delay + rng.random() / 2, together))
    if not late:
        atoms = [(position, atom) for position, (_, atom) in enumerate(sorted_by_time(atoms))]
    return [event for _, atom in sorted(atoms, key=lambda pair: pair[0]) for event in atom]


def sorted_by_time(
    atoms: Iterable[tuple[float, list[Event]]],
) -> list[tuple[float, list[Event]]]:
    """Atoms of all keys, ordered by time."""
    return sorted(atoms, key=lambda pair: (pair[1][0].time, not pair[1][0].is_version))


def atoms_of(life: Sequence[Event]) -> list[list[Event]]:
    """One key's events, grouped: versions with the same start are one group."""
    atoms: list[list[Event]] = []
    for event in life:
        if atoms and are_one_atom(atoms[-1][-1], event):
            atoms[-1].append(event)
        else:
            atoms.append([event])
    return atoms


def are_one_atom(one: Event, other: Event) -> bool:
    """Whether two consecutive events must be in the same batch."""
    same = one.key == other.key and one.time == other.time
    return same and one.is_version and other.is_version


def life_of(
    rng: random.Random, key: KeyValues, convention: Convention, events: int, late: bool
) -> list[Event]:
    """The changes of one record, in order of time: insert, changes, delete, insert again, ..."""
    scale = scale_of(convention)
    time = scale.at(rng.randint(0, 3)) + rng.choice((scale.least, 2 * scale.least))
    life: list[Event] = []
    for number in range(1, events + 1):
        alive = bool(life) and life[-1].is_version
        kind: Kind = rng.choice(KINDS_OF_CHANGE) if alive else "insert"
        if life:
            time += rng.choice(steps_after(life[-1], kind, convention, late, rng))
        version_id = time if convention.version_id == convention.start else number
        values = random_values(rng, partly=kind == "update") if kind != "delete" else {}
        life.append(Event(tuple(key.items()), time, version_id, kind, tuple(values.items())))
    return life


def steps_after(
    event: Event, kind: Kind, convention: Convention, late: bool, rng: random.Random
) -> list[Any]:
    """Distances after which an event of this kind may follow."""
    scale = scale_of(convention)
    zero = scale.least - scale.least
    short = [scale.least, scale.gap, scale.gap - scale.least, scale.gap + scale.least]
    steps = [step for step in short if step > zero] + [rng.randint(1, 3) * scale.tick] * 3
    if not event.is_version or (late and kind != "delete"):
        steps = [step for step in steps if step >= scale.gap]
    if kind == "delete" or (event.is_version and convention.version_id != convention.start):
        steps.append(zero)
    return steps


def split(stream: Sequence[Event], seed: int, convention: Convention) -> list[Batch]:
    """Random batches of a writer for the events of a stream.

    For a key with new versions in the part, E is the least of their starts, and all known events
    from E on are sent (again): versions open, sealed, or with end and active unmodified; deletes as
    delete rows. Deletes alone are sent without E.
    """
    rng = random.Random(f"split {seed} {convention}")
    known: dict[Any, list[Event]] = {}
    batches: list[Batch] = []
    for part in cut(stream, rng):
        batch: Batch = []
        for key in dict.fromkeys(event.key for event in part):
            new = [event for event in part if event.key == key]
            known[key] = sorted([*known.get(key, []), *new], key=lambda event: event.position)
            batch += written_rows(known[key], new, rng, convention)
        batches.append(numbered(batch, len(batches) + 1, rng))
    return batches


def cut(stream: Sequence[Event], rng: random.Random) -> Iterator[list[Event]]:
    """Parts of a stream in its order: all events together, one each, or anything between."""
    share = rng.choice((0.0, 0.2, 0.5, 0.8, 1.0))
    part: list[Event] = []
    for event in stream:
        if part and not are_one_atom(part[-1], event) and rng.random() < share:
            yield part
            part = []
        part.append(event)
    if part:
        yield part


def written_rows(
    known: Sequence[Event],
    new: Sequence[Event],
    rng: random.Random,
    convention: Convention,
) -> Batch:
    """The rows that the writer sends for one key."""
    starts = [event.time for event in new if event.is_version]
    if not starts:
        return [delete_row(event.key, event.time, rng, convention) for event in new]
    rows = [earliest_row(new[0].key, min(starts), convention)]
    if rng.random() < 0.2:
        rows.append(earliest_row(new[0].key, max(starts), convention))
    for event, following in zip(known, [*known[1:], None], strict=True):
        if event.is_version and event.time >= min(starts):
            rows.append(version_row(event, following, rng, convention))
        elif not event.is_version and (event in new or event.time >= min(starts)):
            rows.append(delete_row(event.key, event.time, rng, convention))
    return rows


def version_row(
    event: Event, following: Event | None, rng: random.Random, convention: Convention
) -> Row:
    """An upsert or update row for an event."""
    values = dict(event.values)
    kept = [name for name in DATA_COLUMNS if name not in values]
    stage = "update" if event.kind == "update" else rng.choice(("upsert", "replace"))
    row = staged_row(stage, event.key, convention, values)
    row[convention.start] = event.time
    row[convention.version_id] = event.version_id
    style = rng.choice(("open", "ended", "kept"))
    if style == "ended" and following is not None:
        end = following.time - convention.gap if following.is_version else following.time
        set_period(row, end, False, convention)
    elif style == "kept" and stage == "update":
        kept += [name for name in (convention.end, convention.active) if name is not None]
    else:
        set_period(row, convention.open_end, True, convention)
    row["_unmodified"] = kept or None
    return row


def truth(stream: Iterable[Event], convention: Convention, as_events: bool = False) -> list[Row]:
    """The table of a stream, computed without the rules: each version ends where the next event of
    its key requires; with `as_events` a gap before its deletion, too."""
    lives: dict[Any, list[Event]] = {}
    for event in stream:
        lives.setdefault(event.key, []).append(event)
    table: list[Row] = []
    for key, events in lives.items():
        life = sorted(events, key=lambda event: event.position)
        values: Row = {}
        for event, following in zip(life, [*life[1:], None], strict=True):
            if not event.is_version:
                continue
            values = {**values, **dict(event.values)}
            row = {**dict(key), **values, convention.start: event.time}
            row[convention.version_id] = event.version_id
            if following is None:
                set_period(row, convention.open_end, True, convention)
            else:
                at_its_time = not following.is_version and not as_events
                end = following.time if at_its_time else following.time - convention.gap
                set_period(row, end, False, convention)
            table.append(row)
    return table


def plain_events(seed: int, convention: Convention) -> list[Event]:
    """Upserts and deletes of some records, in any order of arrival.

    A delete may follow a delete, or be the first event of its key. Events of one key are at least
    a gap apart, of some keys often exactly one gap.
    """
    rng = random.Random(f"plain {seed} {convention}")
    scale = scale_of(convention)
    stream = []
    for values in key_values(3, KEY):
        is_close = rng.random() < 0.5
        for tick in rng.sample(range(12 if is_close else 20), rng.randint(1, 9)):
            time = scale.at(tick) + rng.choice((scale.least, 2 * scale.least))
            if is_close:
                time = scale.origin + tick * (scale.gap or scale.least)
            kind: Kind = rng.choice(("insert", "insert", "delete"))
            data = random_values(rng) if kind == "insert" else {}
            stream.append(Event(tuple(values.items()), time, time, kind, tuple(data.items())))
    return rng.sample(stream, len(stream))


def plain_batches(
    stream: Sequence[Event], seed: int, convention: Convention, as_events: bool
) -> list[Batch]:
    """A stream in batches of upsert and delete rows, without earliest rows; some are sent twice.

    as_events  the start of a delete row is the time of the deletion, as in those of `batch_rows`;
               else its end is
    """
    rng = random.Random(f"parts {seed} {convention}")
    batches: list[Batch] = []
    for part in cut(stream, rng):
        rows = [
            version_row(event, None, rng, convention)
            if event.is_version
            else delete_row(event.key, event.time, rng, convention, as_events)
            for event in part
        ]
        batches.append(numbered(rows, len(batches) + 1, rng))
        if rng.random() < 0.1:
            batches.append([{**row, "_batch": len(batches) + 1} for row in rng.choice(batches)])
    return batches


def written_history(
    seed: int, convention: Convention, keys: int, batches: int, key: tuple[str, ...]
) -> History:
    """The well-formed profile: a split stream whose first batches are already in the table."""
    rng = random.Random(f"written {seed} {convention}")
    stream = event_stream(seed, convention, keys, events=8, late=rng.random() < 0.5, key=key)
    sent = split(stream, seed, convention)
    table: list[Row] = []
    for batch in sent[: rng.randrange(len(sent))]:
        table = apply_batch(table, batch, key, convention).table
        sent = sent[1:]
    numbered_again = [[{**row, "_batch": i} for row in batch] for i, batch in enumerate(sent, 1)]
    return History(key, convention, table, numbered_again[:batches])


# wild: anything that validation accepts


@dataclass
class Draws:
    """The state for drawing wild rows: randomness, and the times at which rules change.

    moments  starts and ends of the key's versions so far, and of the batch's rows
    now      the tick near which ordinary times are drawn
    """

    rng: random.Random
    convention: Convention
    moments: list[Time]
    now: int

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def time(self) -> Time:
        """A start, E or delete time: at or near a known moment, later, or at random."""
        scale, number = scale_of(self.convention), self.rng.random()
        if self.moments and number < 0.5:
            moment = self.rng.choice(self.moments)
            time = moment + self.rng.choice(scale.offsets()) if self.chance(0.6) else moment
        elif number < 0.85:
            time = scale.at(self.now + self.rng.randint(1, 4))
        else:
            time = scale.at(self.rng.randint(0, self.now + 1))
        self.moments.append(time)
        return time

    def period(self, start: Time) -> tuple[Time | None, bool | None]:
        """End and active flag of a version; mostly consistent."""
        active: bool | None = self.chance(0.5)
        end = self.rng.choice(open_ends(self.convention)) if active else self.closed_end(start)
        if self.chance(0.08):
            active = self.rng.choice((None, None, not active))
        return end, active

    def closed_end(self, start: Time) -> Time:
        """An end at most one gap before the start."""
        scale = scale_of(self.convention)
        least = start - self.convention.gap
        ends = [self.time(), self.time(), start + self.rng.randint(0, 3) * scale.tick]
        return self.rng.choice([least, *(end for end in ends if end >= least)])

    def version_id(self, start: Time) -> Any:
        own = self.convention.version_id != self.convention.start
        return self.rng.randint(1, 3) if own else start


def wild_history(
    seed: int,
    convention: Convention,
    keys: int,
    batches: int,
    key: tuple[str, ...],
    in_order: bool,
    update_without_base: UpdateWithoutBase,
    late_events: bool,
) -> History:
    """The wild profile. The oracle computes the tables between the batches."""
    rng = random.Random(f"wild {seed} {convention}")
    names = key_values(rng.randint(1, keys), key)
    empty = rng.random() < 0.2
    tables = [[] if empty else initial_versions(rng, values, convention) for values in names]
    if not in_order:
        tables = [[outlast(rng, row, convention) for row in table] for table in tables]
    initial = [row for table in tables for row in table]
    batches_drawn: list[Batch] = []
    past: list[list[Batch]] = [[] for _ in names]
    as_events = late_events and rng.random() < 0.5
    for number in range(1, rng.randint(1, batches) + 1):
        batch: Batch = []
        for i, values in enumerate(names):
            if rng.random() < 0.3:
                continue
            for _ in range(20):
                rows = wild_rows(rng, values, tables[i], past[i], 3 * number, convention, as_events)
                if validate(rows, key, convention):
                    continue
                result = apply_batch(
                    tables[i], rows, key, convention, update_without_base, late_events
                )
                if any(is_active_but_ended(row, convention) for row in result.table):
                    continue
                tables[i] = result.table
                past[i].append(rows)
                batch += rows
                break
        rng.shuffle(batch)
        batches_drawn.append([{**row, "_batch": number} for row in batch])
    return History(key, convention, initial, batches_drawn)


def initial_versions(rng: random.Random, values: KeyValues, convention: Convention) -> list[Row]:
    """Versions of one key, in order: contiguous or with gaps, the last one open or ended."""
    scale = scale_of(convention)
    draws = Draws(rng, convention, [], 0)
    time = scale.at(0)
    rows: list[Row] = []
    for number in range(rng.randint(0, 5)):
        time += rng.choice((scale.tick, scale.tick, 2 * scale.tick, scale.least))
        row: Row = {**values, **random_values(rng), convention.start: time}
        row[convention.version_id] = draws.version_id(time)
        set_period(row, rng.choice(open_ends(convention)), True, convention)
        if rows:
            cut_off(rng, rows[-1], time, convention)
        if convention.active is not None and rng.random() < 0.05:
            row[convention.active] = None
        rows.append(row)
        if number == 4 or rng.random() < 0.1:
            time += scale.tick
            cut_off(rng, row, time, convention)
    return rows


def outlast(rng: random.Random, row: Row, convention: Convention) -> Row:
    """A closed version unchanged, or with an end that may be beyond the next starts."""
    if convention.is_open(row) or convention.is_untouchable(row) or rng.random() < 0.5:
        return row
    return {
        **row,
        convention.end: row[convention.end] + rng.randint(1, 3) * scale_of(convention).tick,
    }


def cut_off(rng: random.Random, row: Row, at: Time, convention: Convention) -> None:
    """End a version at a following start, or some time before."""
    if convention.is_open(row):
        scale = scale_of(convention)
        end = at - convention.gap
        early = [end - scale.least, end - scale.gap, end - scale.tick // 2]
        ends = [
            end,
            end,
            end,
            *(time for time in early if time >= row[convention.start]),
        ]
        set_period(row, rng.choice(ends), False, convention)


def wild_rows(
    rng: random.Random,
    values: KeyValues,
    table: Sequence[Row],
    past: Sequence[Batch],
    now: int,
    convention: Convention,
    as_events: bool,
) -> Batch:
    """Rows of one key for one batch; not validated."""
    if past and rng.random() < 0.1:
        return rng.choice(past)
    draws = Draws(rng, convention, moments_of(table, convention), now)
    key = tuple(values.items())
    rows = rng.choice((mixed_rows, mixed_rows, chain_rows))(draws, key)
    starts = [row[convention.start] for row in rows]
    for _ in range(rng.choice((0, 0, 0, 1, 1, 2))):
        rows.append(delete_row(key, draws.time(), rng, convention, as_events))
    if draws.chance(0.3) or (starts and draws.chance(0.3)):
        earliest = min(starts) if starts and draws.chance(0.7) else draws.time()
        rows.append(earliest_row(key, earliest, convention))
        if draws.chance(0.15):
            rows.append(earliest_row(key, draws.time(), convention))
    return numbered(rows, 0, rng)


def mixed_rows(draws: Draws, key: KeyItems) -> Batch:
    """Some update and upsert rows that need not be consistent."""
    rows: Batch = []
    for _ in range(draws.rng.choice((0, 0, 1, 1, 2, 3))):
        stage = draws.rng.choice(("update", "update", "upsert", "replace"))
        rows.append(wild_change(stage, draws, key, draws.time()))
    if rows and draws.chance(0.1):
        rows.append(dict(draws.rng.choice(rows)))
    if rows and draws.chance(0.15):
        twin = draws.rng.choice(rows)
        again = wild_change(twin["_stage"], draws, key, twin[draws.convention.start])
        rows.append({**again, draws.convention.version_id: twin[draws.convention.version_id]})
    return rows


def chain_rows(draws: Draws, key: KeyItems) -> Batch:
    """Chain fill: perhaps an upsert, then successive updates of one or two columns each."""
    tick = scale_of(draws.convention).tick
    start = draws.time()
    rows = [wild_change("upsert", draws, key, start)] if draws.chance(0.4) else []
    for number in range(1, draws.rng.randint(2, 4)):
        rows.append(wild_change("update", draws, key, start + number * tick))
    return rows


def wild_change(stage: str, draws: Draws, key: KeyItems, start: Time) -> Row:
    """An update or upsert row with a random period."""
    convention, rng = draws.convention, draws.rng
    row = staged_row(stage, key, convention, random_values(rng))
    row[convention.start] = start
    row[convention.version_id] = draws.version_id(start)
    set_period(row, *draws.period(start), convention)
    if stage == "update":
        kept = rng.sample(DATA_COLUMNS, rng.choice((0, 1, 2, 2, 3)))
        names = [name for name in (convention.end, convention.active) if name is not None]
        kept += rng.choice(([], [], [], names, names, [rng.choice(names)]))
        row["_unmodified"] = kept or rng.choice((None, []))
    return row


def sent_again_history(seed: int, convention: Convention) -> History:
    """Old versions sent again without an earliest row; in the next batch, updates of the records.

    An update completes its unmodified columns only if the record was not deleted before it:

        table       [ a ------)[ b ------)            deleted, or open
        batch 1     [ a2 ---------------- open        ends where b starts
        batch 2                             u         some have an E of their own
    """
    rng = random.Random(f"sent again {seed} {convention}")
    tick = scale_of(convention).tick
    initial: list[Row] = []
    sent: list[Batch] = [[], []]
    for values in key_values(3, KEY):
        versions, last = contiguous_versions(rng, values, convention)
        initial += versions
        key = tuple(values.items())
        draws = Draws(rng, convention, moments_of(versions, convention), 0)
        old = rng.choice(versions[:-1])
        again = wild_change(
            rng.choice(("upsert", "upsert", "update")), draws, key, old[convention.start]
        )
        again[convention.version_id] = old[convention.version_id]
        update = wild_change("update", draws, key, last + rng.randint(1, 2) * tick)
        update["_unmodified"] = rng.sample(DATA_COLUMNS, rng.randint(1, 2))
        for row in (again, update):
            set_period(row, convention.open_end, True, convention)
        if rng.random() < 0.2:
            set_period(again, draws.closed_end(old[convention.start]), False, convention)
        sent[0].append(again)
        sent[1].append(update)
        if rng.random() < 0.3:
            earliest = rng.choice((last, update[convention.start]))
            sent[1].append(earliest_row(key, earliest, convention))
    batches = [numbered(rows, number, rng) for number, rows in enumerate(sent, 1)]
    return History(KEY, convention, initial, batches)


def contiguous_versions(
    rng: random.Random, values: KeyValues, convention: Convention
) -> tuple[list[Row], Time]:
    """Two to four versions of one key, the last one mostly deleted, and the time after them."""
    scale = scale_of(convention)
    number = rng.randint(2, 4)
    rows: list[Row] = []
    for tick in range(number):
        row: Row = {**values, **random_values(rng), convention.start: scale.at(tick)}
        row[convention.version_id] = row[convention.start]
        if convention.version_id != convention.start:
            row[convention.version_id] = rng.randint(1, 3)
        set_period(row, scale.at(tick + 1) - convention.gap, False, convention)
        rows.append(row)
    if rng.random() < 0.25:
        set_period(rows[-1], convention.open_end, True, convention)
    elif rng.random() < 0.5:
        rows[-1][convention.end] = scale.at(number)
    return rows, scale.at(number)


def moments_of(table: Iterable[Row], convention: Convention) -> list[Time]:
    """Starts and finite ends of a table."""
    times = [row[name] for row in table for name in (convention.start, convention.end)]
    return [time for time in times if not is_beyond(time, convention)]


# rows and values


def staged_row(
    stage: str,
    key: KeyItems,
    convention: Convention,
    values: dict[str, Any] | None = None,
) -> Row:
    """A staged row with all columns; missing ones are NULL."""
    names = (*DATA_COLUMNS, *convention.columns(), "_batch", "_order", "_unmodified")
    return {**dict(key), **dict.fromkeys(names), **(values or {}), "_stage": stage}


def earliest_row(key: KeyItems, start: Time, convention: Convention) -> Row:
    """An earliest_start row."""
    row = staged_row("earliest_start", key, convention)
    row[convention.start] = start
    return row


def delete_row(
    key: KeyItems, at: Time, rng: random.Random, convention: Convention, as_event: bool = False
) -> Row:
    """A delete row: only key and end are used, of an event the start, too; other cells are NULL or
    random."""
    row = staged_row("delete", key, convention)
    if as_event:
        row[convention.start] = at
        set_period(row, at - convention.gap, False, convention)
        return row
    if rng.random() < 0.2:
        row.update(random_values(rng))
        row[convention.start] = at
    set_period(row, at, rng.choice((None, False)), convention)
    return row


def set_period(row: Row, end: Time | None, active: bool | None, convention: Convention) -> None:
    """Set the end and, if there is one, the flag."""
    row[convention.end] = end
    if convention.active is not None:
        row[convention.active] = active


def numbered(rows: Sequence[Row], batch: int, rng: random.Random) -> Batch:
    """Rows with `_batch`, mostly with an `_order`, in any order."""
    orders: list[int | None] = list(rng.sample(range(1, len(rows) + 1), len(rows)))
    if rng.random() < 0.25:
        orders = [None] * len(rows)
    pairs = zip(rows, orders, strict=True)
    staged = [{**row, "_batch": batch, "_order": order} for row, order in pairs]
    return rng.sample(staged, len(staged))


def random_values(rng: random.Random, partly: bool = False) -> dict[str, Any]:
    """Values of DATA_COLUMNS, including NULL and similar texts; partly: of some columns."""
    names = rng.sample(DATA_COLUMNS, rng.randint(1, 2)) if partly else DATA_COLUMNS
    amount = rng.choice((None, 0, 1, -7, 2**40))
    return {name: amount if name == "amount" else rng.choice(TEXTS) for name in names}


def key_values(number: int, key: tuple[str, ...]) -> list[KeyValues]:
    """Similar keys: (eu, 1), (eu, 11), (e, u1), ...; at most six."""
    if len(key) == 1:
        return [{key[0]: text} for text in ("1", "11", "01", "", "NULL", "a")[:number]]
    pairs = (("eu", "1"), ("eu", "11"), ("e", "u1"), ("us", "1"), ("", "1"), ("us", ""))
    return [
        {**dict.fromkeys(key, "x"), key[0]: first, key[-1]: last} for first, last in pairs[:number]
    ]


def open_ends(convention: Convention) -> list[Time | None]:
    """Ends of open versions: the convention's, and those of other writers if there is a flag."""
    if convention.active is not None and convention.type == "timestamp":
        microsecond = datetime(9999, 12, 31, 23, 59, 59, 999999)
        others = [
            microsecond,
            datetime(9999, 12, 31, 23, 59, 59),
            datetime(9999, 1, 9, 4, 10),
        ]
        return [convention.open_end] * 5 + others
    if convention.active is None and convention.open_end is not None:
        return [convention.open_end, convention.open_end, None]
    return [convention.open_end]
