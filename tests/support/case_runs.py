"""Runs conformance cases on mirrors and events together: a statement of each, then due models.

Variants of a case are models over the same main tables that run at other points in time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.support.operations import Case, Tables, statements_of
from tests.support.project import Project


@dataclass
class CaseRun:
    """The models of one case, variant and set of options; `models` run together, in order.

    tables     schema of the main tables
    expected   the expected rows by table
    """

    case: Case
    name: str
    variant: Mapping[str, Any] | None
    expected: Mapping[str, Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    models: list[str] = field(default_factory=list)
    steps: list[tuple[str, Any]] = field(init=False)
    place: int = 0

    def __post_init__(self) -> None:
        self.steps = statements_of(self.case, self.variant)
        if not any(kind == "populate" for kind, _ in self.steps):
            self.steps.insert(0, ("mirror", None))

    @property
    def id(self) -> str:
        return f"{self.case['id']}_{self.name}".lower().replace("-", "_")

    @property
    def tables(self) -> str:
        return main_schema(self.case)

    @property
    def schema(self) -> str:
        return f"tests_{self.id}"

    def is_due(self, number: int, is_last: bool, control: Callable[[CaseRun, str], None]) -> bool:
        """Pass statements up to `number`, suspending and resuming; whether a run is due then.

        The last run waits for the last statement of all cases: the runs of many cases are one.
        """
        while self.place < len(self.steps):
            kind, what = self.steps[self.place]
            if kind in ("mirror", "populate"):
                return is_last or self.place + 1 < len(self.steps)
            if kind == "run" and what[1] > number:
                return False
            if kind in ("suspend", "resume"):
                control(self, kind)
            self.place += 1
        return False


def main_schema(case: Case) -> str:
    return f"tests_{case['id'].lower().replace('-', '_')}"


def run_cases(
    project: Project,
    case_runs: Sequence[CaseRun],
    tables: Mapping[str, Tables],
    control: Callable[[CaseRun, str], None],
    metadata: Callable[[Case, int], str | None],
) -> dict[str, list[int]]:
    """Run all cases. Returns for each case the numbers of the statements, in order.

    A model may belong to several cases.
    """
    cases = {case_run.case["id"]: case_run.case for case_run in case_runs}
    done = {name: list[int]() for name in cases}
    last = max(what[1] for case_run in case_runs for kind, what in case_run.steps if kind == "run")
    for number in range(last + 1):
        for name, case in cases.items():
            for transaction, operation in statement(case, number):
                tables[name].run(operation, metadata(case, transaction))
                done[name].append(number)
        while due := [run for run in case_runs if run.is_due(number, number == last, control)]:
            project.run(*dict.fromkeys(model for case_run in due for model in case_run.models))
            for case_run in due:
                case_run.place += 1
    return done


def statement(case: Case, number: int) -> Iterable[tuple[int, Mapping[str, Any]]]:
    """The statement of a case with this number, if there is one, with its transaction."""
    return [
        (what[0], what[2])
        for kind, what in statements_of(case, None)
        if kind == "run" and what[1] == number
    ]
