"""Files that are followed, on Spark: what the driver lists and follows serves reads, writes and services of the session."""

import pytest

import hoodie
import pyspark_hoodie

pytestmark = pytest.mark.spark

FOLLOW = {"hoodie.filesystem.view.incr.timeline.sync.enable": "true", "hoodie.clean.automatic": "false"}
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
}


def rows(spark, turn, count=4):
    return spark.createDataFrame(
        [(f"k{n}", "abc"[n % 3], turn) for n in range(count)], "id string, part string, fare int"
    )


def test_reads_writes_and_services_go_by_what_was_followed(enabled, tmp_path):
    path = str(tmp_path / "t")
    rows(enabled, 0).write.format("hoodie").options(**OPTIONS, **FOLLOW).save(path)
    table = pyspark_hoodie.HoodieTable.for_path(enabled, path, FOLLOW)
    assert table.read().count() == 4
    by_hand = tmp_path / "t" / "zz"
    by_hand.mkdir()
    (by_hand / ".hoodie_partition_metadata").write_bytes((tmp_path / "t/a/.hoodie_partition_metadata").read_bytes())
    for turn in range(1, 4):
        rows(enabled, turn, 4 + turn).write.format("hoodie").options(**OPTIONS, **FOLLOW).mode("append").save(path)
        found = enabled.read.format("hoodie").options(**{next(iter(FOLLOW)): "true"}).load(path)
        assert {(row.id, row.fare) for row in found.collect()} == {(f"k{n}", turn) for n in range(4 + turn)}
        assert table.read().count() == 4 + turn
    assert table.compact()
    assert table.clean(retain_commits=1).files > 0
    assert {(row.id, row.fare) for row in table.read().collect()} == {(f"k{n}", 3) for n in range(7)}
    # Only a listing sees it.
    listing = hoodie.open_table(path)
    embedded = hoodie.open_table(path, options=FOLLOW)
    assert "zz" in known(listing)
    assert "zz" not in known(table)
    assert "zz" not in known(embedded)
    assert embedded.scan().count() == 7


def known(table) -> tuple[str, ...]:
    """What the files' view of the table knows, also of partitions without rows."""
    return table._for_queries.snapshot().view.partitions()
