"""A plain-Python judge of the history batch, and random histories to try it with.

`convention` names the columns of a version table, `history_batch` applies the ten rules one after
another, `cases` reads the conformance cases, `random_histories` draws histories from a seed.
"""
