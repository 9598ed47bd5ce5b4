"""What can be wrong with what a picture was asked for."""

from __future__ import annotations


class TimelineError(Exception):
    """There is nothing to draw, or no way to tell how the table writes its periods down."""
