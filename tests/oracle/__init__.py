"""A reference implementation of the history batch in plain Python, and random histories.

`convention` names the columns of a version table, `history_batch` applies the ten rules one by one,
`cases` reads the conformance cases, `random_histories` draws histories from a seed.
"""
