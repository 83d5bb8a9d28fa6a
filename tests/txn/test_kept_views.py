"""What a write listed serves the next write of the same process into the table: it must show what a listing shows."""

import gc
import random
import weakref

import pytest

from hoodie.model.names import join
from hoodie.storage.cache import Cache
from hoodie.storage.faults import FaultStorage
from hoodie.storage.local import LocalStorage
from hoodie.storage.memory import MemoryStorage
from hoodie.view.view import FileSystemView
from tests.effort import long_but
from tests.memory_tables import Input, batch, create, keys, new_table, opened

PARTS = ("a", "b", "c")


class Counting(FaultStorage):
    """Counts the listings of partitions, and the commits that are read."""

    listed = 0
    commits_read = 0

    def read(self, path, offset=0, length=None):
        self.commits_read += path.endswith("commit")
        return super().read(path, offset, length)

    def list(self, folder, *, recursive=False):
        self.listed += folder in PARTS
        return super().list(folder, recursive=recursive)


def context_of(table):
    return table._context


def listed_anew(table):
    context = context_of(table)
    view = FileSystemView(context.listing, context.active, context.active.load(), context.archived())
    return {part: view.file_groups(part) for part in PARTS}


def kept(table):
    context = context_of(table)
    view = context.kept_view()
    if view is not None:
        context.keep_view(view)
    return view


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("seed", long_but([0, 1], range(4)))
def test_it_is_what_a_listing_shows_after_each_of_a_history_of_writes(table_type, seed):
    rng = random.Random(seed)
    storage, clock = new_table(table_type=table_type)
    table = opened(storage, clock)
    followed = 0
    for turn in range(25):
        rows = [Input(f"k{rng.randrange(40)}", rng.choice(PARTS), turn, turn) for _ in range(rng.randrange(1, 6))]
        match rng.randrange(8):
            case 0:
                table.delete(keys(rows))
            case 1:
                table.insert(batch(rows))
            case 2:
                table.bulk_insert(batch(rows))
            case 3 if turn > 5:
                table.insert_overwrite(batch(rows))
            case 4 if table_type == "MERGE_ON_READ" and turn > 5:
                table.compact()
            case 5 if table_type == "MERGE_ON_READ" and turn > 5 and not table.timeline.pending():
                table.schedule_compaction()
            case _:
                table.upsert(batch(rows))
        view = kept(table)
        if view is None or view.timeline != table.timeline:
            continue
        fresh = listed_anew(table)
        for part, groups in view._groups.items():
            assert groups == fresh[part], (turn, part)
            followed += 1
        for part in PARTS:
            assert view.file_groups(part) == fresh[part]
        assert view.partitions() == tuple(p for p in PARTS if storage.exists(join(p, ".hoodie_partition_metadata")))
    assert followed > 10


def test_a_writer_that_nobody_disturbs_lists_its_partitions_once():
    storage, clock = new_table(table_type="MERGE_ON_READ")
    counting = Counting(storage)
    table = opened(counting, clock)
    for turn in range(6):
        table.upsert(batch([Input("k", "a", turn, turn), Input("l", "b", turn, turn)]))
        if turn == 0:
            counting.listed = 0
    assert counting.listed == 0


def test_a_writer_does_not_read_its_own_commits_back(tmp_path):
    storage = Counting(LocalStorage(tmp_path))
    create(storage, table_type="MERGE_ON_READ")
    for turn in range(3):
        opened(storage).upsert(batch([Input("k", "a", turn, turn)]))
    assert len(opened(storage).history()) == 3
    assert storage.commits_read == 0


def test_a_table_that_is_opened_anew_is_not_listed_anew_on_local_disk(tmp_path):
    storage = Counting(LocalStorage(tmp_path))
    create(storage, table_type="MERGE_ON_READ")
    opened(storage).upsert(batch([Input("k", "a", 1, 1)]))
    storage.listed = 0
    again = Counting(LocalStorage(tmp_path))
    assert opened(again).upsert(batch([Input("k", "a", 2, 2)])).updated == 1
    assert storage.listed == again.listed == 0
    # What that left asks the storage of the one that takes it, not the first one.
    assert kept(opened(again))._listing.storage is not storage
    assert opened(again).scan().to_arrow().num_rows == 1


def test_storages_whose_uris_may_be_alike_share_nothing():
    one, other = MemoryStorage(), MemoryStorage()
    for storage in (one, other):
        create(storage, table_type="MERGE_ON_READ")
    opened(one).upsert(batch([Input("k", "a", 1, 1)]))
    assert kept(opened(other)) is None
    assert kept(opened(one)) is not None


def test_a_table_in_memory_is_gone_with_its_last_user():
    storage, clock = new_table(table_type="MERGE_ON_READ")
    for turn in range(3):
        opened(storage, clock).upsert(batch([Input("k", "a", turn, turn)]))
        opened(storage, clock).scan().to_arrow()
    gone = weakref.ref(storage)
    del storage
    gc.collect()
    assert gone() is None


def test_only_a_few_tables_are_kept_and_none_of_very_many_file_groups():
    cache = Cache(64 * 1024)
    tables = []
    for _ in range(10):
        storage, clock = new_table(table_type="MERGE_ON_READ")
        tables.append(opened(storage, clock, cache=cache))
        tables[-1].upsert(batch([Input("k", "a", 1, 1), Input("l", "b", 1, 1)]))
    assert kept(tables[0]) is None
    assert kept(tables[-1]) is not None
    tables[-1].upsert(batch([Input(f"k{n}", f"p{n}", 2, 2) for n in range(20)]))
    assert kept(tables[-1]) is None


def test_after_a_commit_of_another_writer_partitions_are_listed_again():
    storage, clock = new_table(table_type="MERGE_ON_READ")
    counting = Counting(storage)
    mine, other = opened(counting, clock), opened(storage, clock, cache=Cache())
    mine.upsert(batch([Input("k", "a", 1, 1)]))
    other.upsert(batch([Input("l", "a", 2, 2)]))
    counting.listed = 0
    result = mine.upsert(batch([Input("k", "a", 3, 3), Input("l", "a", 3, 3)]))
    assert counting.listed > 0
    assert (result.inserted, result.updated) == (0, 2)


def test_after_a_write_that_failed_nothing_is_kept():
    storage, clock = new_table(table_type="MERGE_ON_READ")
    table = opened(storage, clock)
    table.upsert(batch([Input("k", "a", 1, 1)]))
    assert kept(table) is not None

    class Fails(Exception):
        pass

    def publish(*_, **__):
        raise Fails

    storage.move_new, kept_method = publish, storage.move_new
    with pytest.raises(Fails):
        table.upsert(batch([Input("k", "a", 2, 2)]))
    storage.move_new = kept_method
    assert kept(table) is None
    assert table.upsert(batch([Input("k", "a", 3, 3)])).updated == 1
