"""The seed tests of dbt's adapter suite."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt.tests.adapter.simple_seed import fixtures
from dbt.tests.adapter.simple_seed import seeds as files
from dbt.tests.adapter.simple_seed import test_seed as seeds
from dbt.tests.adapter.simple_seed.test_seed_type_override import BaseSimpleSeedColumnOverride

# Types of Postgres as those of Spark.
TYPES = {"text": "string", "integer": "bigint", "timestamp without time zone": "timestamp"}


class TestBasic(seeds.BaseBasicSeedTests):
    pass


class TestFullRefreshOn(seeds.BaseSeedConfigFullRefreshOn):
    pass


class TestFullRefreshOff(seeds.BaseSeedConfigFullRefreshOff):
    pass


class TestCustomSchema(seeds.BaseSeedCustomSchema):
    pass


class TestUniqueDelimiter(seeds.BaseSeedWithUniqueDelimiter):
    pass


class TestWrongDelimiter(seeds.BaseSeedWithWrongDelimiter):
    pass


class TestEmptyDelimiter(seeds.BaseSeedWithEmptyDelimiter):
    pass


class TestEnabledViaConfig(seeds.BaseSimpleSeedEnabledViaConfig):
    pass


class TestParsing(seeds.BaseSeedParsing):
    pass


class TestByteOrderMark(seeds.BaseSimpleSeedWithBOM):
    @pytest.fixture(scope="class", autouse=True)
    def setUp(self, project: Any) -> None:
        project.run_sql(files.seeds__expected_sql)
        text = Path(seeds.__file__).with_name("seed_bom.csv").read_bytes()
        Path(project.project_root, "seeds", "seed_bom.csv").write_bytes(text)


class TestSpecificFormats(seeds.BaseSeedSpecificFormats):
    """Without dots in the name of a seed, which dbt-spark does not quote."""

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {
            "big_seed.csv": "\n".join(["seed_id", *map(str, range(2_000))]),
            "seed_with_dots.csv": files.seed__with_dots_csv,
            "seed_unicode.csv": files.seed__unicode_csv,
        }


class TestEmptySeed(seeds.BaseTestEmptySeed):
    pass


class TestColumnOverride(BaseSimpleSeedColumnOverride):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        expected = fixtures.properties__schema_yml
        for postgres, spark in TYPES.items():
            expected = expected.replace(f"type: {postgres}\n", f"type: {spark}\n")
        return {"schema.yml": expected}

    @staticmethod
    def seed_enabled_types() -> dict[str, str]:
        return {"seed_id": "string", "birthday": "date"}

    @staticmethod
    def seed_tricky_types() -> dict[str, str]:
        return dict.fromkeys(("seed_id_str", "looks_like_a_bool", "looks_like_a_date"), "string")
