"""Tables of version 3 to 5 in Spark: they are read, and a write says to upgrade them."""

import pytest

import hoodie
from hoodie.storage.local import LocalStorage
from tests.version_changes import make_old

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(("table_type", "version"), [("COPY_ON_WRITE", "3"), ("MERGE_ON_READ", "5")])
def test_an_old_table_is_read_and_not_written(spark, tmp_path, table_type, version):
    path = str(tmp_path / "t")
    columns = {"id": "string", "n": "int64", "day": "string"}
    table = hoodie.create_table(path, columns, record_key="id", partition_by="day", ordering="n", table_type=table_type)
    table.upsert([{"id": "a", "n": 1, "day": "x"}, {"id": "b", "n": 1, "day": "y"}])
    first = table.upsert([{"id": "a", "n": 2, "day": "x"}]).instant
    table.delete([{"id": "b", "day": "y"}])
    make_old(LocalStorage(path), version)
    frame = spark.read.format("hoodie").load(path)
    assert [(row.id, row.n) for row in frame.collect()] == [("a", 2)]
    past = spark.read.format("hoodie").option("as.of.instant", first).load(path)
    assert sorted((row.id, row.n) for row in past.collect()) == [("a", 2), ("b", 1)]
    with pytest.raises(Exception, match=r"upgrade it first, by table.upgrade\(6\)"):
        frame.write.format("hoodie").mode("append").save(path)
    hoodie.open_table(path).upgrade(6)
    spark.createDataFrame([("c", 3, "x")], "id STRING, n LONG, day STRING").write.format("hoodie").mode("append").save(
        path
    )
    assert sorted((row.id, row.n) for row in spark.read.format("hoodie").load(path).collect()) == [("a", 2), ("c", 3)]
