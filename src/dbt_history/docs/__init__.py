"""A site for a dbt project: its history tables, guides, and dbt's own documentation."""
