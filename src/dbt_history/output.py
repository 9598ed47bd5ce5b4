"""Files that the commands write."""

from __future__ import annotations

import os
from pathlib import Path

import click


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
