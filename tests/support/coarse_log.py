"""The coarse log of the tests: its inbox, and the log that empties it after each run."""

from __future__ import annotations

from collections.abc import Mapping

from tests.support.project import Project


def write_coarse_log(project: Project, keys: Mapping[str, str], codes: str | None = None) -> None:
    """Write the models `inbox` and `core`; `keys` has the key column of each table."""
    said = f", codes='{codes}'" if codes else ""
    relation = f"api.Relation.create(schema='{project.schema}', identifier="
    listed = ", ".join(
        f"{{'main': {relation}'{name}'), 'key': '{key}'}}" for name, key in keys.items()
    )
    project.model(
        "inbox",
        f"select * from {{{{ dbt_history.core_temp_history([{listed}]) }}}}",
        materialized="history_append",
        tblproperties={"delta.appendOnly": "false"},
    )
    project.model(
        "core",
        f"select * from {{{{ dbt_history.core_history(ref('inbox'){said}) }}}}",
        materialized="history_append",
        unique_key=["trans_id", "table", "event"],
        post_hook="{{ dbt_history.drain_core_temp_history(ref('inbox'), this) }}",
    )
