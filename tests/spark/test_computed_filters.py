"""Arithmetic, functions, fields of structs and parameters in `where` find the same rows in Spark as without it."""

from datetime import UTC, date, datetime
from decimal import Decimal
from functools import reduce

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import hoodie
from hoodie.errors import OptionError
from pyspark_hoodie import HoodieTable
from tests.random_filters import VALUES, Filters, table_of

pytestmark = pytest.mark.spark

CONDITIONS = [
    "i / 0 IS NULL AND i % 0 IS NULL",
    "l % -1 = 0 AND -7 % l < 0",
    "n * 2.5 - n > 1.5 - i",
    "f / l < 0.5",
    "year(t) = 2023 AND day(t) = 31 AND month(t) = 12",
    "year(w) * 100 + month(w) = 202312",
    "d - DATE '2024-01-01' + 1 > 0",
    "d + 1 > DATE '2024-12-31' - 5",
    "x.\"inner\".s || 'b' = 'ab'",
    "X.I IS NULL AND x IS NOT NULL",
    "substr(s, 2, 3) = 'Ab ' OR substr(s, 9) = ''",
    "length(trim(lower(s))) = 2",
    "CASE WHEN b THEN l WHEN i > 0 THEN 7 ELSE NULL END IS NULL",
    "coalesce(x.i, 0) IN (0, 2)",
    "abs(-f) >= 0.5 AND NOT coalesce(b, false)",
]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    rows = table_of([{name: values[n % len(values)] for name, values in VALUES.items()} for n in range(8)])
    rows = rows.append_column("w", rows["t"].cast(pa.timestamp("us")))
    nothing = rows.slice(0, 1).to_pylist()[0] | dict.fromkeys([*VALUES, "w"]) | {"id": 100}
    table = hoodie.create_table(tmp_path_factory.mktemp("computed") / "t", rows.schema, record_key="id")
    table.upsert(pa.concat_tables([rows, pa.Table.from_pylist([nothing], rows.schema)]))
    return str(table.uri)


def test_spark_finds_the_rows_that_are_found_without_it(spark, path):
    table, there = hoodie.open_table(path), HoodieTable.for_path(spark, path)
    made = Filters(1)
    wheres = [*CONDITIONS, *(made.bound(made.filter()) for _ in range(25))]
    frames = [there.read(["id"], where).select("id", F.lit(n)) for n, where in enumerate(wheres)]
    found = [(number, row_id) for row_id, number in reduce(DataFrame.union, frames).collect()]
    expected = [
        (n, i) for n, where in enumerate(wheres) for i in table.scan(["id"], where).to_arrow()["id"].to_pylist()
    ]
    assert sorted(found) == sorted(expected)
    assert len(expected) > len(CONDITIONS)


def test_parameters_are_taken_in_spark_too(spark, path):
    table = HoodieTable.for_path(spark, path)
    params = {"day": date(2024, 1, 1), "price": Decimal("0.10"), "at": datetime(1970, 1, 1, tzinfo=UTC)}
    found = table.read(["id"], "d >= :day OR n = :price OR t < :at", params=params).count()
    assert found == hoodie.open_table(path).scan(where="d >= :day OR n = :price OR t < :at", params=params).count() > 0
    with pytest.raises(OptionError, match="no value for the parameter :low"):
        table.read(where="l > :low", params={})


def test_an_integer_that_grows_too_large_is_an_error_in_spark_too(spark, path):
    with pytest.raises(Exception, match="too large"):
        HoodieTable.for_path(spark, path).read(["id"], "l * 9223372036854775807 > 1").collect()
