"""What can go wrong while landing, and how it is told. No message ever holds a key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

SHOWN = 20


@dataclass(frozen=True)
class Problem:
    """One reason for a refusal. `line` counts from 1, the header included; `row` of Parquet too."""

    text: str
    file: str = ""
    line: int | None = None
    column: str = ""

    def __str__(self) -> str:
        place = [self.file] if self.file else []
        place += [f"line {self.line:,}"] if self.line is not None else []
        place += [f"column {self.column}"] if self.column else []
        return f"{', '.join(place)}: {self.text}" if place else self.text


class LandingError(Exception):
    """Base of all errors of landing."""


class RefusedError(LandingError):
    """The request or its files are wrong; nothing of the request was landed."""

    def __init__(self, title: str, problems: Sequence[Problem] = ()) -> None:
        self.title = title
        self.problems = list(problems)
        super().__init__(title)

    def __str__(self) -> str:
        lines = [self.title, *(f"  {problem}" for problem in self.problems[:SHOWN])]
        hidden = len(self.problems) - SHOWN
        return "\n".join(lines + ([f"  and {hidden:,} more"] if hidden > 0 else []))


class FileError(LandingError):
    """A file cannot be read to its end: wrong key, cut, too large, not what it is said to be."""


class BusyError(LandingError):
    """Other writers came first again and again."""


def shown(cell: str) -> str:
    """A cell for a message: short, on one line."""
    return repr(cell if len(cell) <= 40 else cell[:37] + "…")
