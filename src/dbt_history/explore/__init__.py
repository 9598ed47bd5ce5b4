"""One page to look at history tables: the rows of an instant, versions, changes."""
