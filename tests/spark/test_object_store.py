"""Tables in an object store that Spark itself has no file system for."""

import pytest
from pyspark.sql import functions as F

from tests.spark.conftest import options_of

pytestmark = pytest.mark.spark


@pytest.fixture
def uri(monkeypatch):
    from tests.servers.s3 import shared_moto  # noqa: PLC0415 - environments of smoke tests alone have no moto

    server = shared_moto()
    for name, value in server.options.items():
        monkeypatch.setenv(name.upper(), value)
    return server.new_uri()


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_writes_and_every_read(enabled, uri, table_type):
    options = options_of(hoodie_datasource_write_table_type=table_type, hoodie_table_name="t")
    first = enabled.range(300).select("id", F.concat(F.lit("p"), F.col("id") % 3).alias("part"), F.lit(1).alias("ts"))
    first.write.format("hoodie").options(**options).mode("append").save(uri)
    first.where("id < 50").withColumn("ts", F.lit(2)).write.format("hoodie").options(**options).mode("append").save(uri)
    read = enabled.read.format("hoodie").load(uri)
    assert (read.count(), read.where("ts = 2").count(), read.where("part = 'p1'").count()) == (300, 50, 100)
    optimized = enabled.read.format("hoodie").option("hoodie.datasource.query.type", "read_optimized").load(uri)
    assert optimized.where("ts = 1").count() == (300 if table_type == "MERGE_ON_READ" else 250)
    pulled = (
        enabled.read.format("hoodie")
        .option("hoodie.datasource.query.type", "incremental")
        .option("hoodie.datasource.read.begin.instanttime", "000")
        .load(uri)
    )
    assert pulled.count() == 300
