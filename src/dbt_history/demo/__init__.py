"""The command `dbt-history demo`: a small history, built and shown in a page."""
