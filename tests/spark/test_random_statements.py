"""Random statements give what the same text gives on a plain table of DuckDB."""

import pytest

from tests.spark.random_statements import first_difference

pytestmark = [pytest.mark.spark, pytest.mark.long]


@pytest.mark.parametrize("table_type", ["cow", "mor"])
@pytest.mark.parametrize("seed", range(4))
def test_statements_give_what_duckdb_gives(enabled, table_type, seed):
    assert first_difference(enabled, table_type, seed) is None
