"""Where nothing is said, a table whose storage is a server is followed from the second time on that a process asks for a partition."""

import pickle

import pytest

import hoodie
from hoodie.storage.cache import Cache
from hoodie.storage.memory import MemoryStorage
from hoodie.table import HoodieTable
from tests.bucket import BucketStorage
from tests.memory_tables import FakeClock, Input, batch, create, opened, snapshot_of

SYNC = "hoodie.filesystem.view.incr.timeline.sync.enable"
PARTITIONS = ("a", "b")


def counting(kind):
    class Counting(kind):
        """Notes the folders that are listed."""

        def __init__(self, uri, *, clock):
            super().__init__(uri, clock=clock)
            self.listed = []

        def list(self, folder, *, recursive=False):
            self.listed.append(folder)
            return super().list(folder, recursive=recursive)

        def counted(self):
            """Listings of partitions since it was asked last, and all listings."""
            found = sum(path in PARTITIONS for path in self.listed), len(self.listed)
            self.listed.clear()
            return found

    return Counting


def rows(turn, parts=PARTITIONS):
    return batch([Input(f"k{n}", part, turn, turn) for n, part in enumerate(parts)])


def made(kind, table_type):
    clock = FakeClock()
    storage = counting(kind)("memory://t", clock=clock)
    create(storage, table_type=table_type)
    opened(storage, clock, cache=Cache()).upsert(rows(0))
    storage.counted()
    return storage, clock


def elsewhere(storage, clock, options=None):
    """The table as another process has it."""
    return opened(storage, clock, options, cache=Cache())


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_queries_list_twice_and_then_no_more(table_type):
    storage, clock = made(BucketStorage, table_type)
    table, writer = elsewhere(storage, clock), elsewhere(storage, clock)
    found = []
    for turn in range(1, 5):
        writer.upsert(rows(turn))
        storage.counted()
        assert {row[3] for row in snapshot_of(table)} == {turn}
        found.append(storage.counted()[0])
    assert found == [2, 2, 0, 0]


def test_what_a_process_does_once_costs_no_request_more():
    costs = []
    for options in ({}, {SYNC: "false"}):
        storage, clock = made(BucketStorage, "MERGE_ON_READ")
        for act in (snapshot_of, lambda table: table.upsert(rows(1)), lambda table: table.compact()):
            act(elsewhere(storage, clock, options))
            costs.append((options, *storage.counted()))
    half = len(costs) // 2
    assert [cost[1:] for cost in costs[:half]] == [cost[1:] for cost in costs[half:]]


@pytest.mark.parametrize(("kind", "options"), [(MemoryStorage, {}), (BucketStorage, {SYNC: "false"})])
def test_nothing_is_followed_where_that_saves_nothing_or_it_was_turned_off(kind, options):
    storage, clock = made(kind, "COPY_ON_WRITE")
    table = elsewhere(storage, clock, options)
    for _ in range(4):
        snapshot_of(table)
        assert storage.counted()[0] == 2


def test_a_write_can_turn_it_off():
    storage, clock = made(BucketStorage, "COPY_ON_WRITE")
    table = elsewhere(storage, clock)
    for _ in range(3):
        snapshot_of(table)
    assert table._context.synced is not None
    table.upsert(rows(1), {SYNC: "false"})
    assert table._context.synced is None


def test_partitions_that_come_later_are_known_from_their_commits():
    storage, clock = made(BucketStorage, "COPY_ON_WRITE")
    table = elsewhere(storage, clock)
    for _ in range(3):
        snapshot_of(table)
    elsewhere(storage, clock).upsert(rows(1, "abc"))
    storage.counted()
    assert [row[1] for row in snapshot_of(table)] == ["a", "b", "c"]
    assert storage.counted()[0] == 0


def test_a_clean_sees_what_failed_writes_left():
    storage, clock = made(BucketStorage, "COPY_ON_WRITE")
    table = elsewhere(storage, clock)
    for turn in range(1, 6):
        table.upsert(rows(turn))
        snapshot_of(table)
    storage.counted()
    assert table.clean(retain_commits=1).files
    assert storage.counted()[0] == 2


def test_a_checkpoint_is_asked_for_to_follow_at_once(tmp_path):
    storage, clock = made(MemoryStorage, "COPY_ON_WRITE")
    table = elsewhere(storage, clock, {"hoodie.python.view.checkpoint.path": str(tmp_path)})
    snapshot_of(table)
    storage.counted()
    snapshot_of(table)
    assert storage.counted()[0] == 0


def test_an_opening_that_follows_goes_to_another_process(tmp_path):
    """As the reader of a stream does: what is known of the files stays here, and is learned there anew."""
    table = hoodie.create_table(
        tmp_path / "t", batch([Input("a", "p")]).schema, record_key="id", partition_by="part", options={SYNC: "true"}
    )
    table.upsert(batch([Input("a", "p", 1)]))
    assert table.scan().count() == 1
    context = pickle.loads(pickle.dumps(table._context))
    assert context.synced is not None
    assert HoodieTable(context).scan().count() == 1
    for options in ({SYNC: "false"}, {}):
        context = pickle.loads(pickle.dumps(hoodie.open_table(tmp_path / "t", options=options)._context))
        assert context.synced is None
