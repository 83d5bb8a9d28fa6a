"""Keys and paths under Spark: generated keys are one of a kind whatever Spark runs twice, settings are remembered."""

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import hoodie
import pyspark_hoodie
from hoodie.errors import KeyFieldError

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("driver_max_bytes", ["0", "67108864"])
def test_a_table_without_record_key_generates_them(door, tmp_path, driver_max_bytes):
    path = str(tmp_path / "t")
    options = {
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.python.driver.max.bytes": driver_max_bytes,
    }
    frame = door.range(0, 40, 1, 4).select("id", (F.col("id") % 2).cast("string").alias("part"))
    # Rows of Python functions are never brought to the driver: each of the four pieces makes keys of its own.
    frame = frame.mapInArrow(lambda batches: batches, "id long, part string")
    for _ in range(2):
        frame.write.format("hoodie").options(**options).mode("append").save(path)
    keys = hoodie.open_table(path).scan(columns=["_hoodie_record_key"]).to_arrow()[0].to_pylist()
    assert len(keys) == len(set(keys)) == 80
    assert {key.count("_") for key in keys} == {2}
    assert {key.split("_")[1] for key in keys} == {"0", "1", "2", "3"}


def test_rows_of_generated_keys_are_deleted_by_a_condition(enabled, tmp_path):
    path = str(tmp_path / "t")
    enabled.range(10).write.format("hoodie").mode("append").save(path)
    assert pyspark_hoodie.HoodieTable.for_path(enabled, path).delete(where="id < 4").deleted == 4
    assert sorted(row["id"] for row in enabled.read.format("hoodie").load(path).collect()) == list(range(4, 10))


def test_custom_partitions_are_said_once(door, tmp_path):
    path = str(tmp_path / "t")
    options = {
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "city:SIMPLE,at:TIMESTAMP",
        "hoodie.keygen.timebased.timestamp.type": "EPOCHMICROSECONDS",
        "hoodie.keygen.timebased.output.dateformat": "yyyy/MM",
    }
    frame = door.createDataFrame([(1, "x", 0), (2, None, 1)], "id long, city string, day int")
    frame = frame.select("id", "city", F.timestamp_seconds(F.col("day") * 86400 * 40).alias("at"))
    frame.write.format("hoodie").options(**options).mode("append").save(path)
    frame.write.format("hoodie").mode("append").save(path)
    table = hoodie.open_table(path)
    assert sorted(table.partitions()) == ["__HIVE_DEFAULT_PARTITION__/1970/02", "x/1970/01"]
    assert table.scan().count() == 2
    assert pa.types.is_timestamp(table.schema.field("at").type)


@pytest.mark.parametrize("driver_max_bytes", ["0", "100000000"])
def test_keys_that_are_equal_as_text_only_are_refused(enabled, tmp_path, driver_max_bytes):
    path = str(tmp_path / "t")
    options = {
        "hoodie.datasource.write.recordkey.field": "a,b",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.python.driver.max.bytes": driver_max_bytes,
    }

    def write(*keys):
        frame = enabled.createDataFrame(keys, "a string, b string").mapInArrow(lambda rows: rows, "a string, b string")
        frame.write.format("hoodie").options(**options).mode("append").save(path)

    write(("x,b:y", "z"), ("x", None))
    for other in (("x", "y,b:z"), ("x", "__null__")):
        with pytest.raises(KeyFieldError, match="one would overwrite the other"):
            write(("p", "q"), other)
    assert hoodie.open_table(path).scan().count() == 2
