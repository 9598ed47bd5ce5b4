"""What to install where a part is missing."""

from __future__ import annotations


def not_installed(part: str, extra: str) -> str:
    """The message for a missing part. The package is not on an index (docs/commands.md)."""
    return (
        f'{part} is not installed: pip install "<folder>[{extra}]" with a checkout of dbt_history,'
        f' or "dbt-history[{extra}] @ git+<its repository>@<tag>"'
    )
