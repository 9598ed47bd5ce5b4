"""The static site of `make docs`: guides, dbt's docs, charts of the examples, an audit."""
