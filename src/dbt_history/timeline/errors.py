"""Errors of the timeline command."""

from __future__ import annotations


class TimelineError(Exception):
    """There is nothing to draw, or the tables cannot be drawn together."""
