"""Tables that Apache Hudi bootstrapped, on Spark."""

import pytest

from tests.bootstrapped import bootstrapped

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("name", ["mor6_plain", "cow9_mixed"])
def test_rows_are_those_that_hudi_reads(spark, tmp_path, name):
    found = bootstrapped(tmp_path, name)
    frame = spark.read.format("hoodie").load(str(found.table))
    rows = [row.asDict(recursive=True) for row in frame.select(*found.rows[0]).orderBy("id").collect()]
    assert rows == found.rows
    assert frame.where("qty > 110").count() == sum(row["qty"] > 110 for row in found.rows)
