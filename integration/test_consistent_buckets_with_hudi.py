"""Tables with consistent buckets: hoodie and Apache Hudi find the same file group for every key, and write one table in turns."""

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import OptionError
from hoodie.hashes.of_buckets import ring_hashes
from hoodie.index.rings import rings_of
from hoodie.model.buckets import BucketEngine, BucketLayout, places_on
from integration.odd_keys import KEYGEN, ODD_VALUES, key_text
from integration.tables import TRIPS, Written, trips
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


class RingTurns(Turns):
    """As `Turns`; both writers use consistent buckets, and after every step each row stands where its ring leads."""

    def __init__(self, hudi, path, *, more=None):
        super().__init__(hudi, path, "MERGE_ON_READ", more={**RING, **(more or {})})

    def create(self):
        self.table = Written(
            self.path,
            TRIPS,
            record_key="id",
            partition_by="city",
            ordering="ts",
            table_type=self.table_type,
            options=RING,
        )
        return self.table

    def check(self, step):
        super().check(step)
        rings = rings_now(self.table.table)
        for row in ours(self.path, View()):
            ring = rings[row["_hoodie_partition_path"]]
            (place,) = places_on(ring.values, ring_hashes(pa.array([row["_hoodie_record_key"]]), ("id",)))
            assert row["_hoodie_file_name"].lstrip(".").startswith(ring.nodes[place].file_id), step


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
