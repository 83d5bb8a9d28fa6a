"""Indexes of the whole table under Spark: chunks that executors staged are looked up, and decided on, by tasks of their own."""

import pyarrow as pa
import pytest

import hoodie
import pyspark_hoodie
from hoodie.options.values import IndexType
from hoodie.storage.local import LocalStorage
from tests.effort import long_but
from tests.kept_keys import KeptInSqlite, index_options
from tests.metadata_tables import check_index
from tests.spark.conftest import options_of

pytestmark = pytest.mark.spark

DDL = "id string, part string, qty int, ts long"
TASKS = {"hoodie.python.driver.max.bytes": "0"}
SIMPLE = {"hoodie.index.type": "GLOBAL_SIMPLE"}
INDEX = {
    "hoodie.index.type": "RECORD_INDEX",
    "hoodie.record.index.update.partition.path": "true",
    "hoodie.metadata.record.index.enable": "true",
}


HBASE = {"hoodie.index.type": "HBASE"}


@pytest.mark.parametrize(
    "index", long_but([SIMPLE, INDEX], [SIMPLE, INDEX, HBASE]), ids=["GLOBAL_SIMPLE", "RECORD_INDEX", "HBASE"]
)
@pytest.mark.parametrize("table_type", long_but(["MERGE_ON_READ"], ["COPY_ON_WRITE", "MERGE_ON_READ"]))
def test_rows_move_between_partitions_when_spark_runs_the_tasks(door, tmp_path, table_type, index):
    """Of HBASE the server is a fake one in this process, and the tasks reach it over sockets."""
    if index is HBASE:
        index = index_options(IndexType.HBASE)
    path = str(tmp_path / "t")
    expected = {}
    for step, ids in enumerate([range(20), range(10, 30), range(5, 25)]):
        rows = [(f"k{n}", "abc"[(n + step) % 3], step, step) for n in ids]
        late = [(f"k{n}", "z", 9, -1) for n in range(3) if step]
        given = index | options_of(hoodie_datasource_write_table_type=table_type)
        frame = door.createDataFrame(rows + late, DDL).repartition(3)
        frame.write.format("hoodie").options(**(given if not step else {} if index is SIMPLE else index), **TASKS).mode(
            "append"
        ).save(path)
        expected |= {row[0]: row[1:3] for row in rows}
    table = hoodie.open_table(path)
    for query in ("snapshot", "read_optimized"):
        found = table.scan(query=query).to_arrow().to_pylist()
        assert {row["id"]: (row["part"], row["qty"]) for row in found} == expected
        assert len(found) == len(expected)
    if index is INDEX:
        check_index(LocalStorage(path))


def test_tasks_of_spark_ask_and_tell_an_index_of_the_users_own(spark, tmp_path):
    pyspark_hoodie.enable(spark)
    index = KeptInSqlite(str(tmp_path / "places.db"))
    hoodie.register_index("in_sqlite", index)
    path = str(tmp_path / "t")
    for step in range(2):
        rows = [(f"k{n}", "abc"[(n + step) % 3], step, step) for n in range(20)]
        frame = spark.createDataFrame(rows, DDL).repartition(3)
        given = {"hoodie.index.class": "in_sqlite"} | options_of(hoodie_datasource_write_table_type="COPY_ON_WRITE")
        frame.write.format("hoodie").options(**given, **TASKS).mode("append").save(path)
    found = hoodie.open_table(path).scan(meta_columns=True).to_arrow().to_pylist()
    stands = {row["id"]: (row["part"], row["_hoodie_file_name"].split("_")[0]) for row in found}
    assert len(found) == 20
    places = index.look_up(pa.array(list(stands))).to_pylist()
    assert [(each["partition_path"], each["file_id"]) for each in places] == list(stands.values())
