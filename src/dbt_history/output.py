"""What the commands write: files and what goes into them, tables in the terminal."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path

import click


def asset(part: str, name: str) -> str:
    """The text of a file of a part of the package: `asset("timeline", "page.css")`."""
    return (files("dbt_history") / part / name).read_text(encoding="utf-8")


def aligned(rows: Sequence[Sequence[str]], *, numbers: bool = False) -> Iterator[str]:
    """The lines of a table. Text is aligned to the left, `numbers` after the first column right."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        cells = [
            cell.rjust(width) if numbers and place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths))
        ]
        yield "  ".join(cells).rstrip()


class OutputError(click.ClickException):
    """A file cannot be written."""


def write_file(path: Path, text: str) -> None:
    """Replace a file as a whole: after an interruption it has its old content, or the new one.

    A missing folder is made. Raises OutputError.
    """
    file = path.resolve()
    try:
        if file.exists() and not file.is_file():  # /dev/stdout
            file.write_text(text, encoding="utf-8")
            return
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_name(f"{file.name}.{os.getpid()}.partial")
        try:
            partial.write_text(text, encoding="utf-8")
            partial.replace(file)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror}") from None
