"""What a query reads of a table's commits grows with their number, whatever a process can keep of them."""

import pytest

from hoodie.storage.cache import Cache
from hoodie.storage.faults import FaultStorage
from tests.memory_tables import Input, batch, new_table, opened

COMMITS = 40


class Reading(FaultStorage):
    """Counts how often each commit is read."""

    commits = 0

    def read(self, path, offset=0, length=None):
        self.commits += path.endswith("commit")
        return super().read(path, offset, length)


@pytest.fixture
def table():
    """A table with many small commits in a process that keeps next to none of them."""
    storage, clock = new_table(table_type="MERGE_ON_READ")
    writer = opened(storage, clock)
    for turn in range(COMMITS):
        writer.upsert(batch([Input(f"k{turn % 5}", "ab"[turn % 2], turn, turn)]))
    return opened(Reading(storage), clock, cache=Cache(12 * 1024))


def reads(table, act):
    storage = table._context.storage
    storage.commits = 0
    act()
    return storage.commits


def test_a_scan_reads_each_commit_once_and_the_newest_for_its_schema(table):
    assert COMMITS <= reads(table, table.scan) <= COMMITS + 4


def test_moments_and_ranges_read_each_commit_a_few_times(table):
    middle = table.timeline.commits[COMMITS // 2].time
    assert reads(table, lambda: table.scan(as_of=middle)) <= 2 * COMMITS
    assert reads(table, lambda: table.changes(since=middle)) <= 2 * COMMITS
    assert reads(table, lambda: table.changes(since=middle, images="before_after")) <= 3 * COMMITS
    assert reads(table, lambda: table.scan(where="val > 3")) <= 2 * COMMITS + 4


def test_an_upsert_reads_each_commit_once_and_the_next_one_none(table):
    table._context.kept_view()
    assert reads(table, lambda: table.upsert(batch([Input("k1", "a", 99, 99)]))) <= COMMITS + 12
    assert reads(table, lambda: table.upsert(batch([Input("k1", "a", 100, 100)]))) <= 12


def test_names_of_logs_are_decoded_once(table):
    view = table._context.snapshot().view
    view.latest_slices()
    active = table._context.active
    added = sum(
        len(stat.log_files.added)
        for i in table.timeline.commits
        for stat in active.read_commit(i).stats()
        if stat.log_files
    )
    assert added <= 3 * COMMITS
