"""A timeline server beside a session: its driver asks for files, and tasks ask nobody."""

import pytest

import hoodie.timeline_server
import pyspark_hoodie

pytestmark = pytest.mark.spark

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.write.markers.type": "TIMELINE_SERVER_BASED",
    "hoodie.embed.timeline.server": "true",
}


def rows(spark, turn, count):
    return spark.createDataFrame(
        [(f"k{n}", "abc"[n % 3], turn) for n in range(count)], "id string, part string, fare int"
    )


def test_reads_writes_and_services_ask_a_server_only(enabled, tmp_path):
    path = str(tmp_path / "t")
    rows(enabled, 0, 4).write.format("hoodie").options(**OPTIONS).save(path)
    with hoodie.timeline_server.start(path) as server:
        ask = server.options | {"hoodie.filesystem.view.type": "REMOTE_ONLY"}
        for turn in range(1, 4):
            rows(enabled, turn, 4 + turn).write.format("hoodie").options(**OPTIONS, **ask).mode("append").save(path)
            found = enabled.read.format("hoodie").options(**ask).load(path)
            assert {(row.id, row.fare) for row in found.collect()} == {(f"k{n}", turn) for n in range(4 + turn)}
        table = pyspark_hoodie.HoodieTable.for_path(enabled, path, ask)
        assert table.compact()
        assert {(row.id, row.fare) for row in table.read().collect()} == {(f"k{n}", 3) for n in range(7)}
    with pytest.raises(hoodie.HoodieError, match="timeline server"):
        table.read().collect()
    first = {**ask, "hoodie.filesystem.view.type": "REMOTE_FIRST"}
    assert enabled.read.format("hoodie").options(**first).load(path).count() == 7
