"""Logs that were written while a compaction of their slice was pending: look-ups read those and no others, also after archiving."""

import pytest

from hoodie.model.names import name_of, parse_log_file
from hoodie.storage.cache import Cache
from hoodie.storage.faults import FaultStorage
from tests.memory_tables import Input, batch, keys, new_table, opened, snapshot_of

ONE_DELTA = {"hoodie.compact.inline.max.delta.commits": "1"}


class Reads(FaultStorage):
    """Notes which files are read."""

    def __init__(self, storage):
        super().__init__(storage)
        self.paths: list[str] = []

    def read(self, path):
        self.paths.append(path)
        return super().read(path)

    @property
    def logs(self):
        return {path for path in self.paths if parse_log_file(name_of(path))}


def elsewhere(storage, clock):
    """The table as another process has it."""
    return opened(storage, clock, cache=Cache())


def others(turn):
    return batch([Input(f"k{n}", "a", turn, turn) for n in range(1, 4)])


def written_again_while_compacted(log_compaction=False):
    """`k0` was deleted before a compaction was planned, and written again before that ran: it is in a log, and in no base file."""
    storage, clock = new_table(table_type="MERGE_ON_READ")
    table = opened(storage, clock)
    table.upsert(batch([Input(f"k{n}", "a", 0, 0) for n in range(4)]))
    table.delete(keys([Input("k0", "a", 0, 0)]))
    planned = table.schedule_compaction()
    assert planned is not None
    again = table.upsert(batch([Input("k0", "a", 1, 1)])).instant
    table.run_compaction()
    if log_compaction:
        table.upsert(others(1))
        assert table.schedule_log_compaction(blocks=2)
        table.run_log_compaction()
    for turn in range(2, 10):
        table.upsert(others(turn))
    return storage, clock, again


@pytest.mark.parametrize("log_compaction", [False, True])
def test_a_key_that_only_such_a_log_has_is_found_whatever_was_archived(log_compaction):
    storage, clock, again = written_again_while_compacted(log_compaction)
    table = elsewhere(storage, clock)
    result = table.archive(ONE_DELTA, min_commits=2)
    assert result.earliest is not None
    assert result.earliest <= again
    assert "before the base file" in (result.held_by or "")
    found = elsewhere(storage, clock).upsert(batch([Input("k0", "a", 20, 20)]))
    assert (found.inserted, found.updated) == (0, 1)
    assert [row[2] for row in snapshot_of(elsewhere(storage, clock)) if row[0] == "k0"] == [20]
    table = elsewhere(storage, clock)
    table.compact()
    assert table.archive(ONE_DELTA, min_commits=2).earliest > again
    found = elsewhere(storage, clock).upsert(batch([Input("k0", "a", 30, 30)]))
    assert (found.inserted, found.updated) == (0, 1)


def test_a_look_up_reads_no_log_of_an_archived_commit():
    storage, clock = new_table(table_type="MERGE_ON_READ")
    table = opened(storage, clock)
    for turn in range(9):
        table.upsert(others(turn))
    assert table.archive(ONE_DELTA, min_commits=2).instants
    reads = Reads(storage)
    found = elsewhere(reads, clock).upsert(others(20))
    assert (found.inserted, found.updated) == (0, 3)
    assert reads.logs == set()
    assert {row[2] for row in snapshot_of(elsewhere(storage, clock))} == {20}
