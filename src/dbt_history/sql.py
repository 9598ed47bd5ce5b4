"""Names and texts in SQL."""

from __future__ import annotations


def quoted(name: str) -> str:
    """A name as a Spark SQL identifier."""
    return "`" + name.replace("`", "``") + "`"


def string_literal(value: str) -> str:
    """A value as a Spark SQL string literal.

    Spark reads backslashes as escapes, and replaces `${env:HOME}` also between quotes.
    """
    escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("${", "\\u0024{")
    return f"'{escaped}'"
