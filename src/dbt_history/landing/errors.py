"""Errors of landing and their messages. No message contains an encryption key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from py4j.protocol import Py4JJavaError

MAX_SHOWN = 20


@dataclass(frozen=True)
class Problem:
    """One reason for a refusal. `line` counts from 1, header included; in Parquet, the row."""

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
    """Base class of landing errors."""


class RefusedError(LandingError):
    """The request or its files are invalid; nothing of the request was landed."""

    def __init__(self, title: str, problems: Sequence[Problem] = ()) -> None:
        self.title = title
        self.problems = list(problems)
        super().__init__(title)

    def __str__(self) -> str:
        lines = [self.title, *(f"  {problem}" for problem in self.problems[:MAX_SHOWN])]
        hidden = len(self.problems) - MAX_SHOWN
        return "\n".join(lines + ([f"  and {hidden:,} more"] if hidden > 0 else []))


class FileError(LandingError):
    """A file cannot be read completely: wrong key, truncated, too large, or another format."""


class BusyError(LandingError):
    """Concurrent writers won every attempt."""


def abbreviated(cell: str) -> str:
    """A cell abbreviated to one short line for a message."""
    return repr(cell if len(cell) <= 40 else cell[:37] + "…")


def first_line(error: Exception) -> str:
    """The message without Java's stack trace; the name of the error if it has none."""
    lines = str(error).strip().splitlines()
    # py4j names its own object in the first line, and Java's exception in the second.
    if isinstance(error, Py4JJavaError) and len(lines) > 1:
        return lines[1].removeprefix(": ")
    return lines[0] if lines else type(error).__name__
