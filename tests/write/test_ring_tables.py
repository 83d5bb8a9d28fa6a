"""Tables with consistent buckets: where rows go, which ring counts, and what is refused."""

import json
from dataclasses import replace

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import CommitConflictError, CorruptFileError, OptionError, UnsupportedTableError
from hoodie.format.clustering_plan import encode_clustering_plan
from hoodie.format.hash_ring import first_ring, format_ring, renewed_ring
from hoodie.hashes.of_buckets import ring_hashes
from hoodie.index.rings import rings_of
from hoodie.model.buckets import FIRST_RING, RINGS, BucketEngine, BucketLayout, places_on
from hoodie.model.enums import Action, State
from hoodie.model.instant import Instant, InstantTime
from hoodie.model.names import PROPERTIES
from hoodie.options.clustering import ClusteringOptions
from hoodie.services.clustering_plan import plan_clustering
from hoodie.storage.faults import Fault, FaultStorage, InjectedFault
from hoodie.table import open_at
from tests.effort import long_but
from tests.engines import Meanwhile
from tests.memory_tables import Input, batch, copy_of, keys, leftovers, new_table, opened, snapshot_of, stray_files

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
    with pytest.raises(CorruptFileError, match="is not a hash ring of the buckets of partition 'a'"):
        opened(storage, clock).upsert(batch(rows([1])))
    assert len(values(opened(storage, clock))) == 8


def test_overwrites_begin_with_new_file_groups_on_a_new_ring():
    storage, clock, table = ring_table()
    table.upsert(batch(rows(range(20)) + rows(range(20), "b")))
    before = rings(table)
    table.insert_overwrite(batch(rows(range(5, 9), val=1)))
    assert values(table) == {(f"k{n}", "b"): 0 for n in range(20)} | {(f"k{n}", "a"): 1 for n in range(5, 9)}
    after = rings(table)
    assert after["b"] == before["b"]
    assert (after["a"].number, after["a"].instant) == (1, table.timeline.commits[-1].time)
    assert not after["a"].numbers.keys() & before["a"].numbers.keys()
    check_layout(table)
    table = opened(storage, clock)
    table.upsert(batch(rows(range(20), val=2)))
    table.delete_partitions(["a"])
    assert {key[1] for key in values(table)} == {"b"}
    table.upsert(batch(rows(range(3), val=3)))  # into none of the file groups that were replaced
    assert values(table) == {(f"k{n}", "b"): 0 for n in range(20)} | {(f"k{n}", "a"): 3 for n in range(3)}
    check_layout(table)
    assert rings(table)["a"].number == 2
    table.insert_overwrite_table(batch(rows(range(2), "c")))
    table.upsert(batch(rows(range(2), "b") + rows(range(9), "a")))
    assert len(values(table)) == 13
    check_layout(table)


def test_an_overwrite_puts_a_partition_right_that_apache_hudi_overwrote():
    storage, clock, table = ring_table()
    table.upsert(batch(rows(range(8))))
    stray = renewed_ring(first_ring("a", 4), FIRST_RING)
    storage.replace(f"{RINGS}/a/{FIRST_RING}.hashing_meta", format_ring(stray))
    table = opened(storage, clock)
    table.insert_overwrite(batch(rows(range(4), val=1)))
    table.upsert(batch(rows(range(8), val=2)))
    assert values(table) == {(f"k{n}", "a"): 2 for n in range(8)}
    check_layout(table)


SMALL = {"hoodie.parquet.max.file.size": "100"}
SPLIT = SMALL | {"hoodie.bucket.index.max.num.buckets": "6", "hoodie.bucket.index.merge.threshold": "0.01"}
MERGE = {"hoodie.bucket.index.min.num.buckets": "2"}


def test_clusterings_split_and_merge_buckets():
    storage, clock, table = ring_table()
    table.upsert(batch(rows(range(40)) + rows(range(40), "b")))
    table.upsert(batch(rows(range(50), val=1)))
    expected = values(table)
    assert table.cluster() == []  # neither more nor fewer buckets are allowed
    (result,) = table.cluster(options=SPLIT)
    assert result.replaced == 4  # two of four in each partition
    assert values(table) == expected
    found = rings(table)
    assert {path: (len(ring.nodes), ring.number) for path, ring in found.items()} == {"a": (6, 1), "b": (6, 1)}
    check_layout(table)
    table = opened(storage, clock)
    table.upsert(batch(rows(range(60), val=2)))
    (result,) = table.cluster(options=MERGE)
    assert {path: (len(ring.nodes), ring.number) for path, ring in rings(table).items()} == {"a": (2, 2), "b": (2, 2)}
    check_layout(table)
    assert len(table.files()) == 4
    (result,) = table.cluster(["val"])  # sorted only
    assert result.replaced == 4
    check_layout(table)
    table.upsert(batch(rows(range(60), val=3)))
    assert values(table) == {(f"k{n}", "a"): 3 for n in range(60)} | {(f"k{n}", "b"): 0 for n in range(40)}
    assert leftovers(storage) == []
    assert stray_files(storage, table) == []
    assert [ring.instant for ring in rings(table).values()] == [result.instant] * 2


@pytest.mark.parametrize(("step", "buckets"), [("hash keys", 6), ("write files", 4)])
def test_a_clustering_that_comes_in_between_makes_a_write_place_its_rows_anew(step, buckets):
    """When it names its file groups a clustering leaves them out."""
    storage, clock, table = ring_table()
    table.upsert(batch(rows(range(40))))
    slow = open_at(storage, engine=Meanwhile(step, lambda: table.cluster(options=SPLIT)), sleep=clock.sleep)
    slow.upsert(batch(rows(range(60), val=1)))
    assert len(rings(table)["a"].nodes) == buckets
    assert values(table) == {(f"k{n}", "a"): 1 for n in range(60)}
    check_layout(table)
    assert stray_files(storage, table) == []


@pytest.mark.parametrize("step", ["hash keys", "write files"])
def test_an_overwrite_beside_another_one_ends_on_the_ring(step):
    storage, clock, table = ring_table()
    table.upsert(batch(rows(range(40))))
    other = lambda: table.insert_overwrite(batch(rows(range(20, 30), val=2)))  # noqa: E731
    slow = open_at(storage, engine=Meanwhile(step, other), sleep=clock.sleep)
    slow.insert_overwrite(batch(rows(range(60), val=1)))
    table.upsert(batch(rows(range(60), val=3)))
    assert values(table) == {(f"k{n}", "a"): 3 for n in range(60)}
    check_layout(table)
    assert rings(table)["a"].number == 2


def test_a_write_into_buckets_of_a_pending_clustering_is_refused_and_others_are_not():
    storage, clock, table = ring_table()
    table.upsert(batch(rows(range(40)) + rows(range(4), "b")))
    table.schedule_clustering(where="part = 'a'", options=SPLIT)
    with pytest.raises(CommitConflictError, match="is going to move"):
        table.upsert(batch(rows(range(40), val=1)))
    table.upsert(batch(rows(range(4), "b", val=1)))
    assert table.schedule_clustering(where="part = 'a'", options=SPLIT) is None
    assert opened(storage, clock).run_clustering()
    table.upsert(batch(rows(range(40), val=1)))
    check_layout(table)
    assert set(values(table).values()) == {1}


def test_a_plan_that_is_dropped_leaves_the_ring():
    storage, _, table = ring_table()
    table.upsert(batch(rows(range(40))))
    before = rings(table)
    instant = table.schedule_clustering(options=SPLIT)
    storage.create_new(f"{RINGS}/a/{instant}.hashing_meta", b"of a try that died")
    table.rollback(instant)
    assert rings(table) == before
    assert [info.name for info in storage.list(f"{RINGS}/a")] == [f"{FIRST_RING}.hashing_meta"]


def test_a_restore_brings_the_ring_back():
    storage, clock, table = ring_table()
    table.upsert(batch(rows(range(40))))
    first = table.savepoint()
    before = rings(table)
    table.cluster(options=SPLIT)
    table.upsert(batch(rows(range(60), val=1)))
    table.restore(first)
    assert rings(table) == before
    assert [info.name for info in storage.list(f"{RINGS}/a")] == [f"{FIRST_RING}.hashing_meta"]
    table = opened(storage, clock)
    table.upsert(batch(rows(range(60), val=2)))
    assert values(table) == {(f"k{n}", "a"): 2 for n in range(60)}
    check_layout(table)


def test_a_plan_that_fits_no_ring_is_not_run():
    storage, clock, table = ring_table()
    table.upsert(batch(rows(range(40))))
    table.schedule_clustering(options=SPLIT)
    later = renewed_ring(first_ring("a", 4), FIRST_RING)
    same = replace(later, nodes=first_ring("a", 4).nodes)
    storage.replace(f"{RINGS}/a/{FIRST_RING}.hashing_meta", format_ring(same))
    with pytest.raises(UnsupportedTableError, match="does not fit the hash rings"):
        opened(storage, clock).run_clustering()
    assert len(values(table)) == 40


def test_a_plan_of_another_kind_is_not_run_on_rings():
    storage, _, table = ring_table()
    table.upsert(batch(rows(range(40))))
    context = table._context
    slices = context.snapshot().view.latest_slices()
    plan = plan_clustering(slices, ClusteringOptions(whole=True))
    instant = context.clock.allot(table.timeline.latest_time)
    data = encode_clustering_plan(plan, uri=storage.uri)
    context.active.create(Instant(instant, Action.CLUSTERING, State.REQUESTED), data)
    with pytest.raises(UnsupportedTableError, match="does not fit the hash rings"):
        table.run_clustering()
    check_layout(table)


@pytest.mark.parametrize("more", [RING, {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"}])
def test_a_table_whose_buckets_only_its_files_show_is_clustered_as_one_with_buckets(more):
    storage, clock = new_table(table_type=MOR, more=more)
    opened(storage, clock).upsert(batch(rows(range(80))))
    forget(storage)
    table = opened(storage, clock)
    if more is RING:
        table.cluster(["val"])
        check_layout(table)
    else:
        with pytest.raises(OptionError, match="nothing was clustered"):
            table.cluster(["val"])


def test_rows_that_hudi_wrote_for_file_groups_to_come_do_not_count_before():
    """With its SparkConsistentBucketDuplicateUpdateStrategy, rows go to the old file group and to the new one's first log."""
    storage, clock, table = ring_table()
    table.upsert(batch(rows(range(40))))
    table.upsert(batch(rows(range(40), val=1)))
    instant = table.schedule_clustering(options=SPLIT)
    expected = values(table)
    log = next(info for info in storage.list("a") if ".log.1_" in info.name)
    commit = table.timeline.commits[-1]
    twin = f".{'f' * 8}-0000-4000-8000-000000000000-0_{instant}.log.1_0-0-0"
    storage.create_new(f"a/{twin}", storage.read(log.path))
    named = storage.read(f".hoodie/{commit.time}.deltacommit").decode()
    stat = json.loads(named)
    own = next(each for each in stat["partitionToWriteStats"]["a"] if each["path"] == log.path)
    other = {**own, "path": f"a/{twin}", "fileId": twin[1:].partition("_")[0], "baseFile": "", "logFiles": [twin]}
    stat["partitionToWriteStats"]["a"].append(other)
    storage.replace(f".hoodie/{commit.time}.deltacommit", json.dumps(stat).encode())
    table = opened(copy_of(storage)[0], clock)
    assert values(table) == expected
    with pytest.raises(UnsupportedTableError, match="can be run by Apache Hudi only, and not be dropped"):
        table.run_clustering()
    with pytest.raises(UnsupportedTableError, match="can be run by Apache Hudi only, and not be dropped"):
        table.rollback(instant)
    assert values(table) == expected


ACTS = {
    "first rows of a partition": lambda table: table.upsert(batch(rows(range(9), "b"))),
    "split": lambda table: table.cluster(options=SPLIT),
    "merge": lambda table: table.cluster(options=SMALL | MERGE | {"hoodie.bucket.index.merge.threshold": "900"}),
    "overwrite": lambda table: table.insert_overwrite(batch(rows(range(5, 9), val=7))),
    "delete of a partition": lambda table: table.delete_partitions(["a"]),
}


@pytest.mark.parametrize("name", long_but(["merge"], ACTS))
def test_a_writer_that_dies_at_any_step_leaves_the_old_ring_or_the_new_one(name):
    act = ACTS[name]
    storage, _, table = ring_table()
    table.upsert(batch(rows(range(40))))
    old = values(table)
    done = opened(*copy_of(storage))
    act(done)
    new, at = values(done), 0
    while True:
        at += 1
        there, clock = copy_of(storage)
        faulty = FaultStorage(there, [Fault(at, ("torn", "before", "after")[at % 3])])
        try:
            act(opened(faulty, clock))
        except InjectedFault:
            pass
        else:
            break
        table = opened(there, clock)
        assert values(table) in (old, new), at
        table.upsert(batch(rows(range(30, 50), val=9, ts=2)))
        expected = {(f"k{n}", "a"): 9 for n in range(30, 50)}
        assert values(table) in (old | expected, new | expected), at
        check_layout(table)
        table.cluster(options=SPLIT)
        check_layout(table)
        assert values(table) in (old | expected, new | expected), at
        assert stray_files(there, table) == [], at
    assert at > 5
