"""The bucket indexes under Spark: chunks that executors staged are hashed and written by tasks of their own."""

from collections import Counter

import pyarrow as pa
import pytest

import hoodie
import pyspark_hoodie
from hoodie.format.hash_ring import first_ring
from hoodie.hashes.of_buckets import bucket_numbers, ring_hashes
from hoodie.model.buckets import places_on
from tests.effort import long_but
from tests.spark.conftest import options_of

pytestmark = pytest.mark.spark

BUCKET = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"}
STAGED = {"hoodie.python.driver.max.bytes": "0"}
DDL = "id string, part string, qty int, ts long"


def test_consistent_buckets_by_tasks_of_spark(door, tmp_path):
    path = str(tmp_path / "t")
    consistent = BUCKET | {"hoodie.index.bucket.engine": "CONSISTENT_HASHING"}
    for step, ids in enumerate([range(20), range(10, 40)]):
        frame = door.createDataFrame([(f"k{n}", "ab"[n % 2], step, step) for n in ids], DDL).repartition(3)
        given = options_of(hoodie_datasource_write_table_type="MERGE_ON_READ") | consistent if not step else {}
        frame.write.format("hoodie").options(**given, **STAGED).mode("append").save(path)
    rows = hoodie.open_table(path).scan(meta_columns=True).to_arrow().to_pylist()
    assert {row["id"]: row["qty"] for row in rows} == {f"k{n}": 0 if n < 10 else 1 for n in range(40)}
    for row in rows:
        ring = first_ring(row["part"], 4)
        (place,) = places_on(ring.values, ring_hashes(pa.array([row["id"]]), ("id",)))
        assert row["_hoodie_file_name"].startswith(ring.nodes[place].file_id)


@pytest.mark.parametrize("table_type", long_but(["MERGE_ON_READ"], ["COPY_ON_WRITE", "MERGE_ON_READ"]))
def test_every_key_goes_to_its_bucket_when_spark_runs_the_tasks(door, request, tmp_path, table_type):
    path = str(tmp_path / "t")
    for step, ids in enumerate([range(20), range(10, 40)]):
        frame = door.createDataFrame([(f"k{n}", "ab"[n % 2], step, step) for n in ids], DDL).repartition(3)
        # Only the first write says it: the table remembers.
        given = options_of(hoodie_datasource_write_table_type=table_type) | BUCKET if not step else {}
        frame.write.format("hoodie").options(**given, **STAGED).mode("append").save(path)
        if "enabled" in request.node.name:
            # The source writes in processes of its own, and only the timeline tells of it.
            last = pyspark_hoodie.last_commit(path)
            assert (dict(last.index), last.engine) == ({"bucket": 8}, "spark")
    rows = hoodie.open_table(path).scan(meta_columns=True).to_arrow().to_pylist()
    assert {row["id"]: row["qty"] for row in rows} == {f"k{n}": 0 if n < 10 else 1 for n in range(40)}
    assert len(rows) == 40
    for row in rows:
        (bucket,) = bucket_numbers(pa.array([row["id"]]), ("id",), 4)
        assert int(row["_hoodie_file_name"][:8]) == bucket
    groups = Counter((s.group.partition_path, s.group.file_id[:8]) for s in hoodie.open_table(path).files())
    assert set(groups.values()) == {1}
