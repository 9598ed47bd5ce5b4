"""History tables on Spark: the Python side of the dbt package dbt_history."""

__version__ = "0.1.0"
