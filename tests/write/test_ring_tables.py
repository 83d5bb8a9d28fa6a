"""Tables with consistent buckets: where rows go, which ring counts, and what is refused."""

import json

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import CorruptFileError, OptionError, UnsupportedTableError
from hoodie.format.hash_ring import first_ring, format_ring, renewed_ring
from hoodie.hashes.of_buckets import ring_hashes
from hoodie.index.rings import rings_of
from hoodie.model.buckets import FIRST_RING, RINGS, BucketEngine, BucketLayout, places_on
from hoodie.model.instant import InstantTime
from hoodie.model.names import PROPERTIES
from tests.memory_tables import Input, batch, keys, leftovers, new_table, opened, snapshot_of, stray_files

RING = {
    "hoodie.index.type": "BUCKET",
    "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    "hoodie.bucket.index.num.buckets": "4",
}
MOR = "MERGE_ON_READ"
LAYOUT = BucketLayout(4, ("id",), BucketEngine.CONSISTENT_HASHING)


def rows(ids, part="a", *, val=0, ts=1, deleted=None):
    return [Input(f"k{n}", part, val, ts, deleted) for n in ids]


def values(table):
    """{(id, part): val}; a key that stands twice fails."""
    found = snapshot_of(table)
    assert len({row[:2] for row in found}) == len(found), "a key is there twice"
    return {row[:2]: row[2] for row in found}


def rings(table):
    context = table._context
    return rings_of(context.storage, context.snapshot(), table.partitions(), new_count=None)


def check_layout(table):
    """Every row stands in the file group to which the ring of its partition leads."""
    found = rings(table)
    for row in table.scan(meta_columns=True).to_arrow().to_pylist():
        ring = found[row["_hoodie_partition_path"]]
        (place,) = places_on(ring.values, ring_hashes(pa.array([row["_hoodie_record_key"]]), ("id",)))
        assert row["_hoodie_file_name"].startswith(ring.nodes[place].file_id)


def ring_table(more=None):
    storage, clock = new_table(table_type=MOR, more={**RING, **(more or {})})
    return storage, clock, opened(storage, clock)


def forget(storage):
    """Leave the properties as Apache Hudi does, which says nothing there of buckets."""
    kept = [line for line in storage.read(PROPERTIES).decode().splitlines() if "hoodie.python.bucket" not in line]
    storage.replace(PROPERTIES, "\n".join([*kept, ""]).encode())


def test_every_operation_keeps_keys_where_the_ring_leads():
    storage, _, table = ring_table()
    assert table.config.buckets == LAYOUT
    assert table.upsert(batch(rows(range(20)) + rows(range(5), "b/c"))).index == {"bucket": 8}
    table.insert(batch(rows(range(15, 25), val=1)))
    table.bulk_insert(batch(rows(range(20, 30), val=2)))
    table.delete(keys(rows([0, 22, 999])))
    assert table.compact()
    table.upsert(batch(rows([1], val=3, ts=2)))
    expected = {(f"k{n}", "a"): 0 if n < 15 else 1 if n < 20 else 2 for n in range(30) if n not in (0, 22)}
    expected |= {(f"k{n}", "b/c"): 0 for n in range(5)} | {("k1", "a"): 3}
    assert values(table) == expected
    check_layout(table)
    assert leftovers(storage) == []
    assert stray_files(storage, table) == []
    assert {ring.partition_path: ring for ring in rings(table).values()} == {
        path: first_ring(path, 4) for path in ("a", "b/c")
    }


def test_deletes_make_no_ring():
    storage, _, table = ring_table()
    table.upsert(batch(rows(range(5))))
    assert table.delete(keys(rows([1], "b"))).files == 0
    assert [info.path for info in storage.list(RINGS)] == [f"{RINGS}/a"]


def test_a_writer_that_dies_after_it_made_the_ring_leaves_nothing_in_the_way():
    storage, _, table = ring_table()
    storage.create_new(f"{RINGS}/a/{FIRST_RING}.hashing_meta", format_ring(first_ring("a", 2)))
    table.upsert(batch(rows(range(20))))  # the ring that is there counts, with its own number of buckets
    assert len(table.files()) == 2
    check_layout(table)


@pytest.mark.parametrize("count", ["4", "2"])
def test_two_writers_that_start_a_partition_at_once_share_its_ring(count):
    storage, clock, table = ring_table()
    before = storage.create_new
    other = opened(storage, clock, {"hoodie.bucket.index.num.buckets": count})

    def first(path, data, **how):
        storage.create_new = before
        other.upsert(batch(rows(range(10, 30), val=2, ts=2)))
        before(path, data, **how)

    storage.create_new = first
    table.upsert(batch(rows(range(20), ts=1)))
    assert values(table) == {(f"k{n}", "a"): 0 if n < 10 else 2 for n in range(30)}
    check_layout(table)


def test_a_table_of_which_only_the_rings_speak_is_recognised():
    storage, clock, table = ring_table()
    table.upsert(batch(rows(range(20))))
    forget(storage)
    table = opened(storage, clock)
    assert table.config.buckets is None
    table.upsert(batch(rows(range(10, 30), val=1)))
    assert table.config.buckets == opened(storage, clock).config.buckets == LAYOUT
    check_layout(table)
    assert len(values(table)) == 30


def test_hash_columns_are_found_by_the_keys_or_an_option_says_them(tmp_path):
    more = {**RING, "hoodie.bucket.index.hash.field": "b", "hoodie.datasource.write.table.type": MOR}
    table = hoodie.create_table(tmp_path / "t", record_key=["a", "b"], options=more)
    data = pa.table({"a": [str(n) for n in range(40)], "b": [f"{n % 7},x:{n}" for n in range(40)]})
    table.upsert(data)
    path = tmp_path / "t" / PROPERTIES
    kept = [line for line in path.read_text().splitlines() if "hoodie.python.bucket" not in line]
    path.write_text("\n".join([*kept, ""]))
    table = hoodie.open_table(tmp_path / "t")
    table.upsert(data)
    assert table.scan().count() == 40
    assert table.config.buckets == BucketLayout(4, ("b",), BucketEngine.CONSISTENT_HASHING)


def test_copy_on_write_is_refused_as_in_hudi():
    with pytest.raises(OptionError, match="is for merge-on-read tables, as in Apache Hudi"):
        new_table(table_type="COPY_ON_WRITE", more=RING)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"hoodie.index.bucket.engine": "SIMPLE"}, "bucket engine is 'CONSISTENT_HASHING' in the table, 'SIMPLE'"),
        ({"hoodie.index.type": "BLOOM"}, "index type is 'BUCKET' in the table"),
    ],
)
def test_options_that_contradict_the_layout_are_refused(given, message):
    _, _, table = ring_table()
    table.upsert(batch(rows(range(8))))
    with pytest.raises(OptionError, match=message):
        table.upsert(batch(rows([1])), given)
    table.upsert(batch(rows([1])), {**RING, "hoodie.bucket.index.num.buckets": "9"})


@pytest.mark.parametrize(
    "given", [{"hoodie.index.type": "BLOOM"}, {"hoodie.index.type": "BUCKET", "hoodie.index.bucket.engine": "SIMPLE"}]
)
def test_options_against_the_rings_are_refused(given):
    storage, clock, table = ring_table()
    table.upsert(batch(rows(range(8))))
    forget(storage)
    with pytest.raises(OptionError, match="it has consistent buckets, and to write them otherwise"):
        opened(storage, clock).upsert(batch(rows([1])), given)


def test_file_groups_that_are_not_on_the_ring_are_refused():
    """As an insert_overwrite by Apache Hudi leaves them."""
    storage, clock, table = ring_table()
    table.upsert(batch(rows(range(8))))
    ring = first_ring("a", 4)
    other = format_ring(renewed_ring(ring, FIRST_RING))
    storage.replace(f"{RINGS}/a/{FIRST_RING}.hashing_meta", other)
    with pytest.raises(UnsupportedTableError, match=r"partition 'a' of table .* can be read, not written: file group"):
        opened(storage, clock).upsert(batch(rows([1])))
    assert len(values(table)) == 8
    opened(storage, clock).upsert(batch(rows([1], "b")))


def test_a_ring_of_an_instant_that_is_not_completed_does_not_count():
    storage, _, table = ring_table()
    table.upsert(batch(rows(range(8))))
    last = table.timeline.commits[-1].time
    for time in (last, InstantTime(f"{int(last) + 5}")):
        ring = renewed_ring(first_ring("a", 4), time)
        storage.create_new(f"{RINGS}/a/{time}.hashing_meta", format_ring(ring))
        storage.create_new(f"{RINGS}/a/{time}.commit", b"")  # Apache Hudi leaves marks of what was restored
    table.upsert(batch(rows(range(8), val=1)))
    check_layout(table)
    assert set(values(table).values()) == {1}


def test_a_damaged_ring_stops_writes_and_no_reads():
    storage, clock, table = ring_table()
    table.upsert(batch(rows(range(8))))
    path = f"{RINGS}/a/{FIRST_RING}.hashing_meta"
    storage.replace(path, json.dumps({"nodes": []}).encode())
    with pytest.raises(CorruptFileError, match="is no hash ring of the buckets of partition 'a'"):
        opened(storage, clock).upsert(batch(rows([1])))
    assert len(values(opened(storage, clock))) == 8


def test_what_is_not_done_yet_is_refused():
    _, _, table = ring_table()
    table.upsert(batch(rows(range(8))))
    for act in (lambda: table.insert_overwrite(batch(rows([1]))), lambda: table.delete_partitions(["a"])):
        with pytest.raises(OptionError, match="nothing was written"):
            act()
    with pytest.raises(OptionError, match="nothing was clustered"):
        table.cluster()
    assert len(values(table)) == 8
