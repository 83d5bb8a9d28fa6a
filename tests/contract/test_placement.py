"""What every index has to keep, whatever it is: a key is found again, and its promises hold for every write."""

import pytest

from hoodie.errors import OptionError
from hoodie.options.values import IndexType
from hoodie.write.placement import PLACEMENTS
from tests.memory_tables import Input, batch, keys, new_table, opened, snapshot_of

KINDS = ("COPY_ON_WRITE", "MERGE_ON_READ")


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture(params=list(IndexType))
def index(request):
    return request.param


@pytest.fixture
def table(kind, index):
    options = {"hoodie.index.type": index}
    more = options | ({"hoodie.bucket.index.num.buckets": "2"} if index is IndexType.BUCKET else {})
    storage, clock = new_table(table_type=kind, ordering="ts", more=more)
    table = opened(storage, clock, options)
    table.upsert(batch([Input(f"k{n}", "a", n, 1) for n in range(4)]))
    return table


def values(table):
    return [row[:3] for row in snapshot_of(table)]


def test_every_index_that_options_name_has_a_placement():
    assert PLACEMENTS.keys() == set(IndexType)


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


def test_an_insert_drops_rows_of_stored_keys_where_the_index_looks_them_up(table, index):
    def insert():
        table.insert(
            batch([Input("k1", "a", 11, 2), Input("k9", "a", 9, 2)]), {"hoodie.datasource.insert.dup.policy": "drop"}
        )

    if PLACEMENTS[index].looks_up:
        insert()
        assert values(table)[1:] == [("k1", "a", 1), ("k2", "a", 2), ("k3", "a", 3), ("k9", "a", 9)]
    else:
        with pytest.raises(OptionError, match="looks no keys up"):
            insert()


def test_rows_are_found_after_a_clustering_or_none_is_made(table, index):
    if PLACEMENTS[index].rows_may_move:
        table.cluster(["val"])
        table.upsert(batch([Input("k1", "a", 11, 2)]))
        assert values(table) == [("k0", "a", 0), ("k1", "a", 11), ("k2", "a", 2), ("k3", "a", 3)]
    else:
        with pytest.raises(OptionError, match="nothing was clustered"):
            table.cluster(["val"])
