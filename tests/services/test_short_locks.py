"""Services hold the table lock for moments only: how much is done while it is held once does not grow with what there is to do."""

from contextlib import contextmanager
from dataclasses import replace

import pytest

from hoodie.services import archiving, cleaning
from hoodie.storage.cache import Cache
from hoodie.storage.faults import FaultStorage
from tests.memory_tables import Input, batch, new_table, opened, snapshot_of
from tests.placed import in_memory


class Watched(FaultStorage):
    """Counts the calls that are made while the lock is held, each time anew."""

    def __init__(self, inner):
        super().__init__(inner)
        self.held = None
        self.changes, self.lists = [], []

    @contextmanager
    def watching(self, lock, timeout_s):
        with lock.held(timeout_s):
            before, self.held = len(self.trace), 0
            try:
                yield
            finally:
                self.changes.append(len(self.trace) - before)
                self.lists.append(self.held)
                self.held = None

    def list(self, folder, *, recursive=False):
        if self.held is not None and not folder.startswith(".hoodie"):
            self.held += 1
        return super().list(folder, recursive=recursive)


class WatchedLock:
    def __init__(self, lock, storage):
        self.lock, self.storage = lock, storage

    def __getattr__(self, name):
        return getattr(self.lock, name)

    def held(self, timeout_s):
        return self.storage.watching(self.lock, timeout_s)


def watched(storage, clock, options=None):
    watch = Watched(storage)
    table = opened(watch, clock, options, cache=Cache())
    context = table._context
    coordination = context.coordination._replace(lock=WatchedLock(context.lock, watch))
    table.writer.context = replace(context, coordination=coordination)
    return watch, table


@pytest.fixture
def partitioned():
    storage, clock = new_table(table_type="COPY_ON_WRITE")
    table = opened(storage, clock)
    table.upsert(batch([Input(f"k{n}", f"p{n:02}", 0, 0) for n in range(40)]))
    return storage, clock, table


def test_however_many_instants_are_archived_few_leave_at_a_time():
    storage, clock = new_table(table_type="COPY_ON_WRITE")
    table = opened(storage, clock)
    for turn in range(80):
        table.upsert(batch([Input("k", "a", turn, turn)]))
    watch, table = watched(storage, clock)
    result = table.archive(min_commits=4)
    assert len(result.instants) == 76
    assert len(watch.changes) == 3
    assert max(watch.changes) <= 3 * archiving._AT_A_TIME
    assert len(table.timeline.commits) == 4
    assert len(table.history(archived=True)) == 80
    assert snapshot_of(table)[0][2] == 79


def test_nothing_is_listed_under_the_lock_to_archive_what_replaced_files(partitioned):
    storage, clock, table = partitioned
    table.delete_partitions(["p0*"])
    for turn in range(8):
        table.upsert(batch([Input("k39", "p39", turn, turn)]))
    table.clean(retain_commits=1)
    watch, table = watched(storage, clock)
    result = table.archive(min_commits=3)
    assert len(result.instants) > 3
    assert watch.lists == [0]


@in_memory("under a lock that can end, folders of emptied partitions stay")
def test_however_many_folders_a_clean_removes_few_go_at_a_time(partitioned):
    storage, clock, table = partitioned
    table.delete_partitions(["p*"])
    table.upsert(batch([Input("new", "new", 0, 0)]))
    watch, table = watched(storage, clock)
    table.clean(retain_commits=1)
    assert [folder for folder in storage.list("") if folder.path.startswith("p")] == []
    assert max(watch.lists) == cleaning._EMPTIED_AT_A_TIME
    assert sum(watch.lists) == 40


def test_a_compaction_is_planned_on_a_listing_that_was_made_before():
    storage, clock = new_table(table_type="MERGE_ON_READ")
    table = opened(storage, clock)
    for turn in range(2):
        table.upsert(batch([Input(f"k{n}", f"p{n:02}", turn, turn) for n in range(20)]))
    watch, table = watched(storage, clock)
    assert table.schedule_compaction()
    assert watch.lists == [0]
    assert table.run_compaction()[0].files == 20
