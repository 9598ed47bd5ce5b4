"""The static site of `make docs`: guides, dbt's own docs, pictures of the examples, an audit."""
