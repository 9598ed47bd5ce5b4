"""The names of landing tables and of tables of the destination; no Spark."""

from __future__ import annotations

from typing import Any

import pytest

from dbt_history.landing.errors import RefusedError
from dbt_history.landing.table import CatalogTable, LandingTable
from dbt_history.serve.tables import Target


@pytest.mark.parametrize("kind", [CatalogTable, LandingTable, Target])
@pytest.mark.parametrize(("schema", "name"), [("s", "a b"), ("s`", "a"), ("s", "")])
def test_a_name_has_only_letters_digits_and_underscores(kind: Any, schema: str, name: str) -> None:
    with pytest.raises(RefusedError, match="is not a valid name: use only letters, digits and _"):
        kind(None, schema, name)
    assert str(kind(None, "s_1", "A2")) == "s_1.A2"


def test_the_command_names_the_options_that_give_another_name() -> None:
    with pytest.raises(RefusedError, match=r"; give another one \(--schema, --table\)"):
        LandingTable(None, "s", "a b")  # type: ignore[arg-type]


def test_a_table_of_the_destination_has_no_name_of_a_landing_table() -> None:
    with pytest.raises(RefusedError, match="are for landing tables"):
        Target(None, "s", "a__landing")  # type: ignore[arg-type]
