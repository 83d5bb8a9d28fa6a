"""Tables with consistent buckets: hoodie and Apache Hudi find the same file group for every key, and write one table in turns."""

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import OptionError, UnsupportedTableError
from hoodie.hashes.of_buckets import ring_hashes
from hoodie.index.rings import rings_of
from hoodie.model.buckets import BucketEngine, BucketLayout, places_on
from integration.odd_keys import KEYGEN, ODD_VALUES, key_text
from integration.tables import trips
from integration.turns import Turns
from integration.views import View, by_hudi, by_rust, differences, ours

RING = {
    "hoodie.index.type": "BUCKET",
    "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    "hoodie.bucket.index.num.buckets": "4",
}


def rings_now(table):
    context = table._context
    snapshot = context.snapshot()
    return rings_of(context.storage, snapshot, snapshot.view.partitions(), new_count=None)


LIMITS = {"hoodie.bucket.index.min.num.buckets": "1", "hoodie.bucket.index.max.num.buckets": "6"}
SPLIT = LIMITS | {"hoodie.parquet.max.file.size": "1000", "hoodie.bucket.index.merge.threshold": "0.01"}
MERGE = LIMITS | {"hoodie.parquet.max.file.size": "100000000"}
INLINE = {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "1"}
DUPLICATES = {
    "hoodie.clustering.updates.strategy": (
        "org.apache.hudi.client.clustering.update.strategy.SparkConsistentBucketDuplicateUpdateStrategy"
    )
}


class RingTurns(Turns):
    """As `Turns`; both writers use consistent buckets, and after every step each row stands where its ring leads."""

    def __init__(self, hudi, path, *, more=None):
        super().__init__(hudi, path, "MERGE_ON_READ", more={**RING, **(more or {})}, own=RING)

    def check(self, step):
        super().check(step)
        rings = rings_now(self.table.table)
        for row in ours(self.path, View()):
            ring = rings[row["_hoodie_partition_path"]]
            (place,) = places_on(ring.values, ring_hashes(pa.array([row["_hoodie_record_key"]]), ("id",)))
            assert row["_hoodie_file_name"].lstrip(".").startswith(ring.nodes[place].file_id), step


def buckets(turns):
    return {path: len(ring.nodes) for path, ring in rings_now(turns.table.table).items()}


def hudi_runs(turns, op, more):
    given = RING | more | {"hoodie.metadata.enable": "false", "hoodie.datasource.write.recordkey.field": "id"}
    given |= {"hoodie.write.auto.upgrade": "false", "hoodie.write.table.version": "6"}
    options = ",".join(f"{name}={value}" for name, value in given.items())
    turns.hudi.sql(
        f"call run_clustering(path => '{turns.path}', op => '{op}', order => 'fare', options => '{options}')"
    )


def test_each_splits_and_merges_buckets_and_the_other_goes_on(hudi, tmp_path):
    turns = RingTurns(hudi, tmp_path / "trips")
    turns.create()
    turns.we_upsert(trips(range(40), fare=1, ts=10))
    assert turns.table.table.cluster(options=SPLIT)
    assert buckets(turns) == {"ny": 6, "sf": 6}
    turns.check("we split")
    turns.hudi_upserts(trips(range(20, 60), fare=2, ts=20))
    hudi.write(turns.path, turns.arrow(trips([1], fare=3, ts=30)), turns.options | MERGE | INLINE)
    turns.table.merge(trips([1], fare=3, ts=30))
    turns.check("Hudi merges")
    assert max(buckets(turns).values()) < 6
    turns.we_upsert(trips(range(10, 70), fare=4, ts=40))
    turns.we_compact()
    hudi.write(turns.path, turns.arrow(trips([2], fare=5, ts=50)), turns.options | SPLIT | INLINE)
    turns.table.merge(trips([2], fare=5, ts=50))
    turns.check("Hudi splits")
    assert turns.table.table.cluster(options=MERGE)
    turns.check("we merge")
    assert buckets(turns) == {"ny": 1, "sf": 1}
    turns.hudi_upserts(trips(range(30, 80), fare=6, ts=60))
    turns.table.table.insert_overwrite(turns.arrow(trips([0, 2], fare=7, ts=70)))
    turns.table.remove(trips(range(0, 80, 2), fare=0, ts=0))
    turns.table.merge(trips([0, 2], fare=7, ts=70))
    turns.check("we overwrite a partition")
    turns.hudi_upserts(trips(range(8), fare=8, ts=80))


def test_clusterings_of_each_run_by_the_other(hudi, tmp_path):
    turns = RingTurns(hudi, tmp_path / "trips")
    table = turns.create().table
    turns.we_upsert(trips(range(40), fare=1, ts=10))
    ours_planned = table.schedule_clustering(options=SPLIT)
    turns.check("a plan of ours is pending")
    hudi_runs(turns, "execute", SPLIT)
    assert table.pending_clusterings() == ()
    assert (turns.path / ".hoodie" / f"{ours_planned}.replacecommit").stat().st_size > 0
    turns.check("Hudi ran our plan")
    turns.we_upsert(trips(range(20, 50), fare=2, ts=20))
    hudi_runs(turns, "schedule", MERGE)
    (pending,) = table.pending_clusterings()
    (result,) = table.run_clustering()
    assert result.instant == pending.time
    turns.check("we ran the plan of Hudi")
    turns.hudi_upserts(trips(range(30, 60), fare=3, ts=30))
    turns.we_upsert(trips(range(40, 70), fare=4, ts=40))


def test_rows_that_hudi_writes_twice_beside_a_pending_clustering(hudi, tmp_path):
    """Into the old and the new file groups, whose logs come before their base files."""
    turns = RingTurns(hudi, tmp_path / "trips")
    table = turns.create().table
    turns.we_upsert(trips(range(40), fare=1, ts=10))
    hudi_runs(turns, "schedule", SPLIT)
    hudi.write(turns.path, turns.arrow(trips(range(10, 50), fare=2, ts=20)), turns.options | DUPLICATES)
    turns.table.merge(trips(range(10, 50), fare=2, ts=20))
    turns.check("Hudi writes twice")
    with pytest.raises(UnsupportedTableError, match="can be run by Apache Hudi only"):
        table.run_clustering()
    with pytest.raises(UnsupportedTableError, match="and not be dropped"):
        table.rollback(table.pending_clusterings()[0].time)
    turns.check("we leave it")
    hudi_runs(turns, "execute", SPLIT)
    turns.check("Hudi clusters behind it")
    turns.we_upsert(trips(range(30, 60), fare=3, ts=30))
    assert table.pending_clusterings() == ()


def test_a_table_of_ours_in_turns(hudi, tmp_path):
    turns = RingTurns(hudi, tmp_path / "trips")
    turns.create()
    turns.we_upsert(trips(range(6), fare=1, ts=10))
    # Buckets that are there and ones that are not, keys that stand in our logs, in base files and nowhere.
    turns.hudi_upserts(trips([1, 2, *range(10, 20)], fare=2, ts=20))
    turns.we_upsert(trips([2, 11, *range(20, 30)], fare=3, ts=30))
    turns.we_delete(trips([20, 12, 999], fare=0, ts=0))
    turns.hudi_deletes(trips([21, 13, 998], fare=0, ts=50))
    turns.we_compact()
    turns.we_upsert(trips([1, 23, 40], fare=3, ts=60))
    assert differences(turns.path, ours, by_hudi(hudi)) == []
    assert differences(turns.path, ours, by_rust) == []
    turns.hudi_upserts_and_cleans_up(trips([50, 60, 62], fare=7, ts=70))
    turns.we_upsert(trips([62, 63], fare=8, ts=80) + trips([50], fare=8, ts=1))


def test_a_table_of_hudi_in_turns(hudi, tmp_path):
    """Nothing in its properties says that it has buckets, and its first rows stand in logs."""
    turns = RingTurns(hudi, tmp_path / "trips")
    turns.create_by_hudi(trips(range(20), fare=1, ts=10))
    turns.we_upsert(trips([1, 2, *range(20, 30)], fare=2, ts=20))
    assert turns.table.table.config.buckets == BucketLayout(4, ("id",), BucketEngine.CONSISTENT_HASHING)
    turns.hudi_upserts(trips([2, 20, 21, 40], fare=3, ts=30))
    turns.we_delete(trips([3, 21, 40], fare=0, ts=0))
    turns.we_compact()
    turns.hudi_upserts(trips([4, 22, 41], fare=4, ts=40))


@pytest.mark.parametrize("hash_field", ["a,b", "b"])
def test_composite_keys_stand_where_hudi_looks_for_them(hudi, tmp_path, hash_field):
    path = tmp_path / "composite"
    pairs = list({key_text(a, b): (a, b) for a in ODD_VALUES for b in ODD_VALUES if a or b}.values())[::3]
    a, b = zip(*pairs, strict=True)
    table = pa.table(
        {
            "a": pa.array(a, pa.string()),
            "b": pa.array(b, pa.string()),
            "city": ["m"] * len(a),
            "ts": pa.array([1] * len(a), pa.int64()),
        }
    )
    options = {
        **RING,
        "hoodie.bucket.index.hash.field": hash_field,
        "hoodie.bucket.index.num.buckets": "64",
        "hoodie.table.name": "composite",
        "hoodie.datasource.write.recordkey.field": "a,b",
        "hoodie.datasource.write.partitionpath.field": "city",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        KEYGEN: "org.apache.hudi.keygen.ComplexKeyGenerator",
    }
    hudi.write(path, table, options, mode="overwrite")
    found = hoodie.open_table(path).scan(meta_columns=True).to_arrow()
    assert len(found) == len(pairs)
    fields = tuple(hash_field.split(","))
    (ring,) = rings_now(hoodie.open_table(path)).values()
    places = places_on(ring.values, ring_hashes(found.column("_hoodie_record_key"), fields))
    assert [ring.nodes[place].file_id for place in places] == found.column("_hoodie_file_name").to_pylist()
    # Its rows stand in logs only, and the key has two columns.
    with pytest.raises(OptionError, match="which columns are hashed"):
        hoodie.open_table(path).upsert(table)
    hoodie.open_table(path).upsert(table, {"hoodie.bucket.index.hash.field": hash_field})
    hudi.write(path, table, options)
    assert hoodie.open_table(path).scan().count() == len(pairs)
