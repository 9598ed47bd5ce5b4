"""Run the campaign: `make torture ARGS="--kills 200 --races 100 --comparisons 1000 --seed 1"`.

A failure names its seed. `--seed N` draws the same data and moments again, with `--only WRITER
--kills 4 --races 0 --comparisons 0`, `--kills 0 --races 1 --comparisons 0`, or `--kills 0 --races 0
--comparisons 1`. `--write` puts the summary into docs/measured_reliability.md.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import click

from tests.support.project import ROOT
from tests.torture.judge import judge
from tests.torture.mariadb import UnavailableError
from tests.torture.races import Race
from tests.torture.workers import Worker
from tests.torture.works import OF_FILES, WORKS, Work

PAGE = ROOT / "docs" / "measured_reliability.md"
# Before the sections of the page that a campaign writes.
KILLS, RACES, JUDGE = "<!-- kills -->", "<!-- races -->", "<!-- mariadb -->"
# Of one job; each is a kill.
COPIES = 4
NAMES = (*WORKS, *OF_FILES)


@dataclass
class Campaign:
    """The workers, and what was counted."""

    folder: Path
    kills: Counter[str] = field(default_factory=Counter)
    signals: int = 0
    races: Counter[str] = field(default_factory=Counter)
    lost_races: int = 0
    problems: list[str] = field(default_factory=list)
    started: int = 0
    places: int = 0
    workers: list[Worker] = field(default_factory=list)

    def worker(self, place: int) -> Worker:
        while len(self.workers) <= place:
            self.workers.append(self.start())
        return self.workers[place]

    def start(self) -> Worker:
        self.started += 1
        return Worker(self.folder / f"worker_{self.started}")

    def close(self) -> None:
        while self.workers:
            self.workers.pop().kill()

    def place(self, name: str) -> Path:
        """A new folder: a worker removes the folder of its previous job."""
        self.places += 1
        made = self.folder / "tables" / f"{self.places}_{name}"
        made.mkdir(parents=True)
        return made

    def report(self, what: str, problems: list[str]) -> None:
        for problem in problems:
            self.problems.append(f"{what}: {problem}")
            click.echo(f"  FAILED {what}: {problem}")


def drawn(name: str, seed: int, folder: Path) -> Work:
    choice = random.Random(f"{name} {seed}")
    if name in OF_FILES:
        requests = folder / f"requests_{name}_{seed}"
        shutil.rmtree(requests, ignore_errors=True)
        requests.mkdir()
        return OF_FILES[name](choice, requests)
    return WORKS[name](choice)


def files_in(tables: Path) -> int:
    # os.walk passes over a folder that a writer removes meanwhile; rglob fails.
    return sum(len(folders) + len(files) for _, folders, files in os.walk(tables))


def moments(
    choice: random.Random, tables: Path, number: int, seconds: float
) -> list[Callable[[], bool]]:
    """Points in time, and changes in the number of files, at random."""
    begun: list[float] = []
    seen = [files_in(tables)]

    def at(time_: float) -> Callable[[], bool]:
        def is_now() -> bool:
            begun[:] = begun or [time.monotonic()]
            return time.monotonic() - begun[0] >= time_

        return is_now

    def after_files(count: int) -> Callable[[], bool]:
        def is_now() -> bool:
            begun[:] = begun or [time.monotonic()]
            there = files_in(tables)
            if abs(there - seen[0]) < count:
                return False
            seen[0] = there
            return True

        return is_now

    times = sorted(choice.uniform(0, seconds) for _ in range(number))
    return [at(t) if choice.random() < 0.3 else after_files(choice.randint(1, 4)) for t in times]


def kill_once(campaign: Campaign, name: str, seed: int, seconds: float, wanted: int) -> float:
    """Interrupt one job up to `wanted` times; returns its duration."""
    work = drawn(name, seed, campaign.folder)
    choice = random.Random(f"moments {name} {seed}")
    tables = campaign.place("job")
    worker = campaign.worker(0)
    if work.before.steps:
        prepared = campaign.place("before")
        made = worker.do(prepared, work.before)
        campaign.report(f"{name}, seed {seed}, before", [e for e in made.outcomes if e])
        shutil.copytree(prepared, tables, dirs_exist_ok=True)
    copies = [campaign.place("copy") / "tables" for _ in range(wanted)]
    worker.prepare(tables, work.job)
    began = time.monotonic()
    number = worker.interrupt(tables, copies, moments(choice, tables, wanted, seconds))
    # One of five jobs is ended by the signal itself, not only paused.
    if number == wanted and seed % 5 == 0:
        worker.kill()
        campaign.signals += 1
        shutil.rmtree(copies[-1])
        shutil.copytree(tables, copies[-1])
        campaign.workers[0] = campaign.start()
        duration = seconds
    else:
        worker.answer()
        duration = time.monotonic() - began
    for copy in copies[:number]:
        campaign.kills[name] += 1
        try:
            answer = campaign.worker(1).do(copy, work.job)
            problems = work.check(answer)
        except Exception as error:
            problems = [f"{type(error).__name__}: {error}"]
            campaign.workers[1].kill()
            campaign.workers[1] = campaign.start()
        campaign.report(f"{name}, seed {seed}, kill {copies.index(copy) + 1}", problems)
    return duration


def race_once(campaign: Campaign, seed: int) -> None:
    choice = random.Random(f"race {seed}")
    race = Race(choice, 4 if seed % 4 == 0 else 2)
    tables, prepared = campaign.place("race"), campaign.place("before")
    made = campaign.worker(0).do(prepared, race.before)
    campaign.report(f"race, seed {seed}, before", [e for e in made.outcomes if e])
    shutil.copytree(prepared, tables, dirs_exist_ok=True)
    runners = [campaign.worker(place) for place in range(len(race.jobs))]
    for worker, job in zip(runners, race.jobs, strict=True):
        worker.prepare(tables, job)
    for worker in runners:
        worker.go()
    answers = [worker.answer() for worker in runners]
    campaign.lost_races += sum(1 for answer in answers for error in answer.outcomes if error)
    campaign.races[" | ".join(race.names)] += 1
    # Worker 0 removes the folder of the race when it opens that of the quiet run.
    quiet = campaign.place("quiet") / "tables"
    shutil.copytree(tables, quiet)
    problems = race.check(campaign.worker(0).do(quiet, race.quiet))
    campaign.report(f"race, seed {seed}, {' | '.join(race.names)}", problems)


@contextmanager
def campaign_in(folder: Path) -> Iterator[Campaign]:
    campaign = Campaign(folder)
    try:
        yield campaign
    finally:
        campaign.close()


def judged(campaign: Campaign, seed: int, wanted: int) -> list[str]:
    """Compare with MariaDB; the lines of the summary."""
    folder = campaign.folder / "judge"
    folder.mkdir()
    try:
        version, verdict = judge(folder, seed, wanted, click.echo)
    except UnavailableError as error:
        click.echo(f"MariaDB is left out: {error}")
        return [f"MariaDB was left out: {error}."]
    campaign.report("MariaDB", verdict.problems)
    compared = sorted({what for _, what in verdict.counts})
    lines = [
        f"{verdict.counts.total():,} comparisons with the system versioning of MariaDB {version}:"
        f" **{len(verdict.problems)} differences**.",
        "",
        f"| table | {' | '.join(compared)} |",
        f"|---|{'---|' * len(compared)}",
    ]
    for kind in dict.fromkeys(kind for kind, _ in verdict.counts):
        cells = [f"{verdict.counts[kind, what] or '–'}" for what in compared]
        lines.append(f"| {kind} | {' | '.join(cells)} |")
    return lines


def replaced(text: str, mark: str, lines: list[str]) -> str:
    """The page with another section after the mark, which ends at the next mark."""
    head, found, tail = text.partition(f"{mark}\n")
    assert found, mark
    _, following, rest = tail.partition("\n<!-- ")
    return "".join([head, found, "\n", "\n".join(lines), "\n", following, rest])


def of_kills(campaign: Campaign, seed: int, minutes: float, problems: int) -> list[str]:
    return [
        f"{sum(campaign.kills.values())} kills ({campaign.signals} by SIGKILL, the others as copies"
        f" of the files of the stopped process), seed {seed}: **{problems} problems**.",
        "",
        "| writer | kills |",
        "|---|---|",
        *(f"| `{name}` | {count} |" for name, count in sorted(campaign.kills.items())),
        "",
        f"It took {minutes:.0f} minutes.",
    ]


def of_races(campaign: Campaign, seed: int, minutes: float, problems: int) -> list[str]:
    opponents = Counter(
        name for names, count in campaign.races.items() for name in names.split(" | ")[1:] * count
    )
    return [
        f"{sum(campaign.races.values())} races of two and four processes, seed {seed}:"
        f" **{problems} problems**. {campaign.lost_races} participants lost and were refused.",
        "",
        "| a run of the model against | races |",
        "|---|---|",
        *(f"| {name} | {count} |" for name, count in sorted(opponents.items())),
        "",
        f"It took {minutes:.0f} minutes.",
    ]


@click.command()
@click.option("--kills", default=200, show_default=True)
@click.option("--races", default=100, show_default=True)
@click.option("--comparisons", default=1000, show_default=True, help="with MariaDB")
@click.option("--seed", default=1, show_default=True)
@click.option("--only", type=click.Choice(NAMES), multiple=True, help="these writers only")
@click.option("--write", is_flag=True, help="write docs/measured_reliability.md")
def main(
    kills: int, races: int, comparisons: int, seed: int, only: tuple[str, ...], write: bool
) -> None:
    """Interrupt writers at random moments, let processes race, and compare with MariaDB."""
    parts = {}
    names = only or NAMES
    seconds = dict.fromkeys(names, 8.0)
    with (
        tempfile.TemporaryDirectory(prefix="torture_") as folder,
        campaign_in(Path(folder)) as campaign,
    ):
        number, began = seed, time.monotonic()
        while sum(campaign.kills.values()) < kills:
            name = names[number % len(names)]
            wanted = min(COPIES, kills - sum(campaign.kills.values()))
            seconds[name] = kill_once(campaign, name, number, seconds[name], wanted)
            click.echo(f"{sum(campaign.kills.values())} of {kills} kills: {name}, seed {number}")
            number += 1
        if kills:
            minutes = (time.monotonic() - began) / 60
            parts[KILLS] = of_kills(campaign, seed, minutes, len(campaign.problems))
        found, began = len(campaign.problems), time.monotonic()
        for number in range(seed, seed + races):
            race_once(campaign, number)
            click.echo(f"{number - seed + 1} of {races} races, seed {number}")
        if races:
            minutes = (time.monotonic() - began) / 60
            problems = len(campaign.problems) - found
            parts[RACES] = of_races(campaign, seed, minutes, problems)
        # Their memory is free for the judge's own Spark.
        campaign.close()
        if comparisons:
            parts[JUDGE] = judged(campaign, seed, comparisons)
    for mark, lines in parts.items():
        click.echo("\n".join(lines))
        if write:
            PAGE.write_text(replaced(PAGE.read_text(), mark, lines))
    sys.exit(1 if campaign.problems else 0)


if __name__ == "__main__":
    main()
