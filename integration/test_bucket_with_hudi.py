"""Tables with the simple bucket index: hoodie and Apache Hudi find the same bucket for every key, and write one table in turns."""

import random
from collections import Counter

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import UnsupportedTableError
from hoodie.hashes.of_buckets import bucket_numbers
from hoodie.model.buckets import BucketLayout
from integration.hudi_client import PeerError
from integration.odd_keys import KEYGEN, ODD_VALUES, key_text
from integration.tables import TRIPS, Written, trips
from integration.turns import METADATA_ON, Turns
from integration.views import View, by_hudi, by_rust, differences, ours
from tests.effort import soak_but

COUNT = 4
BUCKET = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": str(COUNT)}


class BucketTurns(Turns):
    """As `Turns`; both writers use the bucket index, and after every step no bucket has two file groups."""

    def __init__(self, hudi, path, table_type, *, more=None):
        super().__init__(hudi, path, table_type, more={**BUCKET, **(more or {})}, own=BUCKET)

    def hudi_writes(self, operation, rows):
        self.hudi.write(self.path, self.arrow(rows), self.options | {"hoodie.datasource.write.operation": operation})
        self.table.merge(rows)
        self.check(f"hudi writes by {operation}")

    def we_write(self, operation, rows):
        getattr(self.table.table, operation)(self.arrow(rows))
        self.table.merge(rows)
        self.check(f"we write by {operation}")

    def check(self, step):
        super().check(step)
        groups = Counter((s.group.partition_path, s.group.file_id[:8]) for s in self.table.table.files())
        assert max(groups.values()) == 1, step
        for row in ours(self.path, View()):
            (bucket,) = bucket_numbers(pa.array([row["_hoodie_record_key"]]), ("id",), COUNT)
            assert int(row["_hoodie_file_name"].lstrip(".")[:8]) == bucket, step


@pytest.mark.parametrize("table_type", soak_but(["MERGE_ON_READ"], ["COPY_ON_WRITE", "MERGE_ON_READ"]))
def test_a_table_of_ours_in_turns(hudi, tmp_path, table_type):
    turns = BucketTurns(hudi, tmp_path / "trips", table_type)
    turns.create()
    turns.we_upsert(trips(range(6), fare=1, ts=10))
    # Buckets that are there and ones that are not, keys that stand in our logs, in base files and nowhere.
    turns.hudi_upserts(trips([1, 2, *range(10, 20)], fare=2, ts=20))
    turns.we_upsert(trips([2, 11, *range(20, 30)], fare=3, ts=30))
    turns.hudi_upserts(trips([11, 20, 21, 40], fare=4, ts=40))
    turns.we_delete(trips([20, 12, 999], fare=0, ts=0))
    turns.hudi_deletes(trips([21, 13, 998], fare=0, ts=50))
    turns.we_compact()
    turns.we_write("bulk_insert", trips([50, 51, 52], fare=5, ts=50))
    turns.we_write("insert", trips([60, 61], fare=6, ts=60))
    turns.hudi_upserts_and_cleans_up(trips([50, 60, 62], fare=7, ts=70))
    turns.we_upsert(trips([62, 63], fare=8, ts=80) + trips([50], fare=8, ts=1))
    turns.hudi_upserts(trips([62, 63, 64], fare=9, ts=90))


def test_overwritten_partitions_begin_with_new_file_groups_for_both(hudi, tmp_path):
    turns = BucketTurns(hudi, tmp_path / "trips", "MERGE_ON_READ")
    turns.create()
    turns.we_upsert(trips(range(12), fare=1, ts=10))
    turns.we_upsert(trips(range(6, 18), fare=2, ts=20))
    written = trips(range(0, 8, 2), fare=3, ts=30)  # all in one of the two cities
    turns.table.table.insert_overwrite(turns.arrow(written))
    turns.table.remove(trips(range(0, 18, 2), fare=0, ts=0))
    turns.table.merge(written)
    turns.check("we overwrite a partition")
    turns.hudi_upserts(trips([1, 2, 20], fare=4, ts=40))
    written = trips(range(1, 9, 2), fare=5, ts=50)
    hudi.write(
        turns.path, turns.arrow(written), turns.options | {"hoodie.datasource.write.operation": "insert_overwrite"}
    )
    turns.table.remove(trips(range(1, 18, 2), fare=0, ts=0))
    turns.table.merge(written)
    turns.check("hudi overwrites a partition")
    turns.we_upsert(trips([1, 2, 20, 21], fare=6, ts=60))


@pytest.mark.parametrize("table_type", soak_but(["MERGE_ON_READ"], ["COPY_ON_WRITE", "MERGE_ON_READ"]))
def test_every_view_of_a_table_of_ours(hudi, tmp_path, table_type):
    turns = BucketTurns(hudi, tmp_path / "trips", table_type)
    turns.create()
    turns.we_upsert(trips(range(12), fare=1, ts=10))
    turns.we_upsert(trips([1, 2, *range(20, 30)], fare=2, ts=20))
    turns.we_delete(trips([2, 21], fare=0, ts=0))
    turns.we_upsert(trips([3, 22], fare=0, ts=30, deleted=True))
    turns.we_compact()
    turns.we_upsert(trips([1, 23, 40], fare=3, ts=40))
    assert differences(turns.path, ours, by_hudi(hudi)) == []
    assert differences(turns.path, ours, by_rust) == []


@pytest.mark.parametrize("table_type", soak_but(["COPY_ON_WRITE"], ["COPY_ON_WRITE", "MERGE_ON_READ"]))
def test_a_table_of_hudi_in_turns(hudi, tmp_path, table_type):
    """Nothing in its properties says that it has buckets."""
    turns = BucketTurns(hudi, tmp_path / "trips", table_type, more=METADATA_ON)
    turns.create_by_hudi(trips(range(40), fare=1, ts=10))
    turns.we_upsert(trips([1, 2, *range(40, 50)], fare=2, ts=20))
    assert turns.table.table.config.buckets == BucketLayout(COUNT, ("id",))
    turns.hudi_upserts(trips([2, 40, 41, 60], fare=3, ts=30))
    assert "hoodie.python.bucket.count=4" in turns.properties()  # it stays there
    turns.we_delete(trips([3, 41, 60], fare=0, ts=0))
    turns.we_compact()
    turns.hudi_upserts(trips([4, 42, 61], fare=4, ts=40))
    turns.we_upsert(trips([4, 42, 61, 62], fare=5, ts=50))


def test_compactions_of_each_run_by_the_other(hudi, tmp_path):
    turns = BucketTurns(hudi, tmp_path / "trips", "MERGE_ON_READ")
    table = turns.create()
    turns.we_upsert(trips(range(10), fare=1, ts=10))
    turns.we_upsert(trips(range(5, 15), fare=2, ts=20))
    scheduled = table.table.schedule_compaction()
    table.upsert(trips([5, 20], fare=3, ts=30))  # beside the pending plan, where hudi-rs 0.5.0 loses the newer logs
    hudi.run_compaction(turns.path, op="run")
    assert scheduled in table.table.timeline.compactions
    turns.check("hudi ran our compaction")
    turns.hudi_upserts(trips([1, 20, 21], fare=4, ts=40))
    hudi.run_compaction(turns.path, op="schedule", options={"hoodie.compact.inline.max.delta.commits": "1"})
    (pending,) = table.table.pending_compactions()
    assert [result.instant for result in table.table.run_compaction()] == [pending.time]
    turns.check("we ran the compaction of hudi")
    turns.hudi_upserts(trips([1, 21, 22], fare=5, ts=50))


def test_the_golden_table_is_written_further_by_both(hudi, golden, tmp_path):
    table = golden("v6_bucket")
    options = {
        **BUCKET,
        "hoodie.table.name": "v6_bucket",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    }
    keys = {(row["_hoodie_partition_path"], row["_hoodie_record_key"]) for row in table.expected["snapshot"]}
    for _ in range(2):
        hoodie.open_table(table.path).upsert(hoodie.open_table(table.path).scan().to_arrow())
        hudi.write(table.path, hoodie.open_table(table.path).scan().to_arrow(), options)
        found = ours(table.path, View())
        assert len(found) == len(keys)
        assert {(row["_hoodie_partition_path"], row["_hoodie_record_key"]) for row in found} == keys
        assert by_hudi(hudi)(table.path, View()) == found
        assert by_rust(table.path, View()) == found


@pytest.mark.parametrize("hash_field", ["a,b", "b", "b,a"])
def test_composite_keys_stand_where_hudi_looks_for_them(hudi, tmp_path, hash_field):
    path = tmp_path / "composite"
    chance = random.Random(hash_field)
    pairs = {(chance.choice(ODD_VALUES), chance.choice(ODD_VALUES)) for _ in range(300)}
    by_text = {
        key_text(*pair): pair for pair in sorted(pairs, key=repr) if any(pair)
    }  # others are refused as ambiguous
    pairs = list(by_text.values())
    more = {"hoodie.bucket.index.hash.field": hash_field, "hoodie.bucket.index.num.buckets": "64"}
    table = hoodie.create_table(
        path,
        record_key=["a", "b"],
        partition_by="city",
        ordering="ts",
        table_type="MERGE_ON_READ",
        options=BUCKET | more,
    )

    def rows(ts):
        a, b = zip(*pairs, strict=True)
        count = len(pairs)
        return pa.table(
            {
                "a": pa.array(a, pa.string()),
                "b": pa.array(b, pa.string()),
                "city": ["m"] * count,
                "ts": pa.array([ts] * count, pa.int64()),
            }
        )

    options = {
        **(BUCKET | more),
        "hoodie.table.name": "composite",
        "hoodie.datasource.write.recordkey.field": "a,b",
        "hoodie.datasource.write.partitionpath.field": "city",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        KEYGEN: "org.apache.hudi.keygen.ComplexKeyGenerator",
    }
    table.upsert(rows(1))
    hudi.write(path, rows(2), options)
    assert table.scan(where="ts = 2").count() == table.scan().count()
    by_keys = {row["_hoodie_record_key"]: row["_hoodie_file_name"] for row in by_hudi(hudi)(path, View())}
    assert len(by_keys) == table.scan().count()
    # And a table in which Hudi alone chose the buckets.
    alone = tmp_path / "alone"
    hudi.write(alone, rows(1), options, mode="overwrite")
    found = {row["_hoodie_record_key"]: int(row["_hoodie_file_name"][:8]) for row in by_hudi(hudi)(alone, View())}
    keys = list(found)
    assert bucket_numbers(pa.array(keys), tuple(hash_field.split(",")), 64).tolist() == [found[key] for key in keys]
    assert sorted(keys) == sorted(by_keys)


def test_random_keys_of_one_column_stand_where_hudi_puts_them(hudi, tmp_path):
    chance = random.Random(20)
    pieces = ["a", ",", "é", "😀", "\U0010fffd", "id", " ", "ß", "\u0001", "Z", "%", "/"]
    made = {"".join(chance.choice(pieces) for _ in range(chance.randint(1, 12))) for _ in range(400)}
    made |= {key.replace(",", ":") for key in made}
    table = pa.table({"id": sorted(made), "city": ["m"] * len(made), "ts": pa.array([1] * len(made), pa.int64())})
    options = {
        **BUCKET,
        "hoodie.bucket.index.num.buckets": "61",
        "hoodie.table.name": "single",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "city",
        "hoodie.datasource.write.precombine.field": "ts",
    }
    hudi.write(tmp_path / "single", table, options, mode="overwrite")
    rows = by_hudi(hudi)(tmp_path / "single", View())
    found = bucket_numbers(pa.array([row["_hoodie_record_key"] for row in rows]), ("id",), 61)
    assert len(rows) == len(made)
    assert found.tolist() == [int(row["_hoodie_file_name"][:8]) for row in rows]


def test_a_bulk_insert_by_hudi_is_taken_over_a_second_one_nobody_can_write(hudi, tmp_path):
    turns = BucketTurns(hudi, tmp_path / "trips", "MERGE_ON_READ")
    bulk = turns.options | {"hoodie.datasource.write.operation": "bulk_insert"}
    hudi.write(turns.path, turns.arrow(trips(range(60), fare=1, ts=10)), bulk, mode="overwrite")
    turns.table = Written(turns.path, TRIPS, table=hoodie.open_table(turns.path))
    turns.table.merge(trips(range(60), fare=1, ts=10))
    turns.we_upsert(trips([1, 60], fare=2, ts=20))
    turns.hudi_upserts(trips([1, 60, 61], fare=3, ts=30))
    hudi.write(turns.path, turns.arrow(trips(range(70, 100), fare=1, ts=10)), bulk)
    with pytest.raises(UnsupportedTableError, match="is a second file group of bucket"):
        turns.table.table.upsert(turns.arrow(trips([1], fare=4, ts=40)))
    with pytest.raises(PeerError, match="Find multiple files at partition path"):
        hudi.write(turns.path, turns.arrow(trips([1], fare=4, ts=40)), turns.options)
