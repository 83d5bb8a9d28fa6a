"""Statements of the files in `sql/`, each on both table types."""

import pytest

import pyspark_hoodie
from tests.effort import long_but
from tests.spark.statement_files import FILES, run, statements_of

pytestmark = pytest.mark.spark

TYPES = ("cow", "mor")
CASES = [f"{name} {kind} 6" for name in FILES for kind in TYPES] + [
    f"{name} {kind} 9" for name in ("merge", "values") for kind in TYPES
]
SHORT = (
    "insert cow 6",
    "procedures mor 6",
    "tables mor 6",
    "merge cow 6",
    "merge mor 6",
    "update_delete mor 6",
    "values mor 9",
)


@pytest.mark.parametrize("case", long_but(SHORT, CASES))
def test_statements(spark, case):
    pyspark_hoodie.enable(spark)
    name, kind, version = case.split()
    database = f"{name}_{kind}_{version}"
    spark.sql(f"CREATE DATABASE {database}")
    try:
        for statement in statements_of(FILES[name].read_text()):
            run(spark, statement, database, kind, version)
    finally:
        spark.sql(f"DROP DATABASE {database} CASCADE")
        pyspark_hoodie.disable()
