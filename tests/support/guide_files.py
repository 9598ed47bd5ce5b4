"""The files and commands of a guide that a reader copies, in the order of the page."""

from __future__ import annotations

import re
from collections.abc import Iterator

FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
PATH = re.compile(r"`([\w./-]+\.(?:yml|csv|sql))`")


def steps(text: str) -> Iterator[tuple[str | None, str]]:
    """A file as (path, text), commands as (None, text).

    The path of a block is the last one in the words before it.
    """
    end = 0
    for block in FENCE.finditer(text):
        paths = PATH.findall(text[end : block.start()])
        end = block.end()
        if block[1] == "bash":
            yield None, block[2]
        elif paths:
            yield paths[-1], block[2]
