"""Data in a script element of a page."""

from __future__ import annotations

import json
from typing import Any


def as_json(data: Any) -> str:
    """The data as JSON for a script element: no value can end it or begin a comment."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
    return text.replace("<", "\\u003c")
