"""Names and texts in SQL."""

from __future__ import annotations

import re


def quoted(name: str) -> str:
    """A name as a Spark SQL identifier."""
    return "`" + name.replace("`", "``") + "`"


def parts_of(table: str) -> list[str]:
    """The names in `catalog.schema.table`, in which backquotes are allowed."""
    found = re.findall(r"`((?:[^`]|``)*)`|([^.`]+)", table)
    return [(inside or plain).replace("``", "`") for inside, plain in found]


def quoted_table(table: str) -> str:
    """`schema.table`, in which backquotes are allowed, as a Spark SQL identifier."""
    return ".".join(map(quoted, parts_of(table)))


def string_literal(value: str) -> str:
    """A value as a Spark SQL string literal.

    Spark reads backslashes as escapes, and replaces `${env:HOME}` also between quotes.
    """
    escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("${", "\\u0024{")
    return f"'{escaped}'"
