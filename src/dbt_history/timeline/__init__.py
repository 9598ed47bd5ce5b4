"""Pictures of time: the versions of a record as bars on an axis, and the batches of a table."""
