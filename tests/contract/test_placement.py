"""What every index has to keep, whatever it is: a key is found again, and its promises hold for every write."""

import pytest

from hoodie.errors import OptionError
from hoodie.model.buckets import BucketEngine
from hoodie.options.values import IndexType
from hoodie.write.placement import BUCKETS, PLACEMENTS, placement_class
from tests.kept_keys import index_options
from tests.memory_tables import Input, batch, keys, new_table, opened, plain, snapshot_of

KINDS = ("COPY_ON_WRITE", "MERGE_ON_READ")


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


CONSISTENT = {"hoodie.index.type": "BUCKET", "hoodie.index.bucket.engine": "CONSISTENT_HASHING"}
INDEXES = {each.value: ({"hoodie.index.type": each.value}, KINDS) for each in IndexType}
INDEXES["CONSISTENT_HASHING"] = (CONSISTENT, ("MERGE_ON_READ",))


@pytest.fixture(params=[(name, kind) for name, (_, kinds) in INDEXES.items() for kind in kinds], ids="-".join)
def table(request):
    name, kind = request.param
    options = index_options(IndexType(name)) if name in set(IndexType) else INDEXES[name][0]
    more = options | ({"hoodie.bucket.index.num.buckets": "2"} if options.get("hoodie.index.type") == "BUCKET" else {})
    storage, clock = new_table(table_type=kind, ordering="ts", more=more)
    table = opened(storage, clock, options)
    table.upsert(batch([Input(f"k{n}", "a", n, 1) for n in range(4)]))
    return table


def values(table):
    return [row[:3] for row in snapshot_of(table)]


def test_every_index_that_options_name_has_a_placement():
    assert PLACEMENTS.keys() == set(IndexType)
    assert BUCKETS.keys() == set(BucketEngine)


def test_an_update_takes_the_place_of_the_stored_row(table):
    table.upsert(batch([Input("k1", "a", 11, 2), Input("k9", "b/c", 9, 2)]))
    table.upsert(batch([Input("k1", "a", 12, 3), Input("k9", "b/c", 10, 3)]))
    assert values(table) == [("k0", "a", 0), ("k1", "a", 12), ("k2", "a", 2), ("k3", "a", 3), ("k9", "b/c", 10)]


def test_a_delete_takes_the_stored_row_away_and_the_key_may_come_again(table):
    table.delete(keys([Input("k1", "a")]))
    assert values(table) == [("k0", "a", 0), ("k2", "a", 2), ("k3", "a", 3)]
    table.upsert(batch([Input("k1", "a", 11, 0)]))
    assert values(table) == [("k0", "a", 0), ("k1", "a", 11), ("k2", "a", 2), ("k3", "a", 3)]


def test_rows_of_one_key_in_a_batch_are_one(table):
    table.upsert(batch([Input("k1", "a", 11, 2), Input("k1", "a", 12, 3), Input("k7", "a", 7), Input("k7", "a", 8)]))
    assert [row[2] for row in values(table) if row[0] in ("k1", "k7")] == [12, 8]


def test_an_insert_drops_rows_of_stored_keys_where_the_index_looks_them_up(table):
    def insert():
        table.insert(
            batch([Input("k1", "a", 11, 2), Input("k9", "a", 9, 2)]), {"hoodie.datasource.insert.dup.policy": "drop"}
        )

    if placement_class(table.config).looks_up:
        insert()
        assert values(table)[1:] == [("k1", "a", 1), ("k2", "a", 2), ("k3", "a", 3), ("k9", "a", 9)]
    else:
        with pytest.raises(OptionError, match="looks no keys up"):
            insert()


def test_rows_are_found_after_a_clustering_or_none_is_made(table):
    if placement_class(table.config).rows_may_move:
        table.cluster(["val"])
        table.upsert(batch([Input("k1", "a", 11, 2)]))
        assert values(table) == [("k0", "a", 0), ("k1", "a", 11), ("k2", "a", 2), ("k3", "a", 3)]
    else:
        with pytest.raises(OptionError, match="nothing was clustered"):
            table.cluster(["val"])


# -- indexes by which a key is unique in the whole table ---------------------------------------------------------------

STAYS = ("bloom.index", "simple.index", "record.index", "hbase.index", "python.index")
GLOBAL = [*(each for each in IndexType if PLACEMENTS[each].is_global), "RECORD_INDEX that is not there"]


@pytest.fixture(params=GLOBAL)
def global_options(request):
    if request.param not in [*IndexType]:
        return {"hoodie.index.type": "RECORD_INDEX", "hoodie.record.index.update.partition.path": "true"}
    return index_options(request.param)


@pytest.fixture
def whole(kind, global_options):
    """A table in which k0 to k3 are in partition a."""
    storage, clock = new_table(table_type=kind, ordering="ts", more=global_options)
    table = opened(storage, clock, global_options)
    table.upsert(batch([Input(f"k{n}", "a", n, 5) for n in range(4)]))
    return table


def read_optimized(table):
    return sorted(table.scan(query="read_optimized").to_arrow().select(["id", "part", "val"]).to_pylist(), key=repr)


def test_a_row_of_another_partition_moves_there_in_every_view(whole):
    before = whole.timeline.commits[-1]
    result = whole.upsert(batch([Input("k1", "b/c", 11, 6), Input("k9", "b/c", 9, 6)]))
    now = [("k0", "a", 0), ("k1", "b/c", 11), ("k2", "a", 2), ("k3", "a", 3), ("k9", "b/c", 9)]
    assert (result.inserted, result.deleted) == (2, 1)
    assert values(whole) == now
    assert [tuple(row.values()) for row in read_optimized(whole)] == now
    assert [row[0] for row in plain(whole.scan(as_of=before.time, meta_columns=True))] == ["k0", "k1", "k2", "k3"]
    assert sorted(row["id"] for row in whole.changes(since=before.time).to_arrow().to_pylist()) == ["k1", "k9"]


def test_a_row_goes_and_comes_back(whole):
    for n in range(3):
        whole.upsert(batch([Input("k1", "b/c", 11 + n, 6 + 2 * n)]))
        whole.upsert(batch([Input("k1", "a", 21 + n, 7 + 2 * n)]))
    assert values(whole) == [("k0", "a", 0), ("k1", "a", 23), ("k2", "a", 2), ("k3", "a", 3)]


def test_a_row_moves_whose_late_delete_did_not_count(whole):
    """On merge-on-read that delete stands in a log; what takes the row away must count against it, too."""
    whole.upsert(batch([Input("k1", "a", 0, 4, True), Input("k2", "a", 0, 4, True)]))
    whole.upsert(batch([Input("k1", "b/c", 11, 6), Input("k3", "b/c", 13, 6)]))
    now = [("k0", "a", 0), ("k1", "b/c", 11), ("k2", "a", 2), ("k3", "b/c", 13)]
    assert values(whole) == now


def test_a_row_that_is_older_than_the_stored_one_does_not_move(whole):
    whole.upsert(batch([Input("k1", "b/c", 11, 4)]))
    assert values(whole) == [(f"k{n}", "a", n) for n in range(4)]


def test_a_delete_finds_its_key_in_any_partition(whole):
    whole.delete(keys([Input("k1", "b/c")]))
    whole.upsert(batch([Input("k2", "b/c", 0, 6, True), Input("k3", "b/c", 0, 4, True)]))
    assert values(whole) == [("k0", "a", 0), ("k3", "a", 3)]  # a delete that is older than the row does not count


def test_rows_of_one_key_in_two_partitions_of_a_batch_are_one(whole):
    rows = [Input("k7", "b/c", 1, 6), Input("k7", "a", 2, 6), Input("k1", "b/c", 3, 7), Input("k1", "a", 4, 6)]
    whole.upsert(batch(rows))
    assert values(whole) == [("k0", "a", 0), ("k1", "b/c", 3), ("k2", "a", 2), ("k3", "a", 3), ("k7", "a", 2)]


def test_a_row_stays_where_it_is_if_an_option_says_so(whole):
    stays = {f"hoodie.{name}.update.partition.path": "false" for name in STAYS}
    whole.upsert(batch([Input("k1", "b/c", 11, 6)]), stays)
    (row,) = [row for row in whole.scan(meta_columns=True).to_arrow().to_pylist() if row["id"] == "k1"]
    assert (row["_hoodie_partition_path"], row["part"], row["val"]) == ("a", "b/c", 11)
    whole.upsert(batch([Input("k1", "b/c", 12, 7)]))
    (row,) = [row for row in whole.scan(meta_columns=True).to_arrow().to_pylist() if row["id"] == "k1"]
    assert (row["_hoodie_partition_path"], row["part"], row["val"]) == ("b/c", "b/c", 12)


def test_an_insert_drops_a_row_whose_key_is_in_another_partition(whole):
    rows = [Input("k1", "b/c", 11, 9), Input("k8", "a", 1), Input("k8", "b/c", 2)]
    whole.insert(batch(rows), {"hoodie.datasource.insert.dup.policy": "drop"})
    assert values(whole) == [*((f"k{n}", "a", n) for n in range(4)), ("k8", "b/c", 2)]


def test_a_key_that_is_in_two_partitions_already_is_there_once_after_an_upsert(kind, global_options):
    """Of such a table no record index is made."""
    storage, clock = new_table(table_type=kind, ordering="ts")
    table = opened(storage, clock)
    table.upsert(batch([Input("k1", "a", 1, 5), Input("k1", "b/c", 2, 7), Input("k2", "a", 3, 5)]))
    table = opened(storage, clock, global_options)
    table.upsert(batch([Input("k1", "a", 4, 8)]))
    assert values(table) == [("k1", "a", 4), ("k2", "a", 3)]


def test_a_moved_row_keeps_columns_that_the_batch_lacks(whole):
    some = batch([Input("k1", "b/c", 11)]).select(["id", "part", "val"])
    whole.upsert(some, partial=True)
    assert [row[:4] for row in snapshot_of(whole) if row[0] == "k1"] == [("k1", "b/c", 11, 5)]


def test_the_table_remembers_an_index_of_the_whole_table(whole, global_options):
    is_own = "hoodie.index.class" in global_options
    other = {"hoodie.index.class": "other"} if is_own else {"hoodie.index.type": "BLOOM"}
    with pytest.raises(OptionError, match=r"index (type )?is '"):
        whole.upsert(batch([Input("k1", "b/c", 11, 6)]), other)
