"""Draws the versions of records as bars on a time axis, and the batches of a table."""
