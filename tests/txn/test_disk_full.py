"""A disk that fills up while files are written: the write fails, and what it had staged gives the room back."""

import errno

import pytest

from hoodie.model.names import STAGING
from hoodie.storage.faults import FaultStorage
from tests.memory_tables import Input, batch, leftovers, new_table, opened, snapshot_of


class Full(FaultStorage):
    """No room for anything more, as long as data files lie in a staging folder."""

    def create_new(self, path, data, *, via=None, durable=True):
        self._need_room()
        super().create_new(path, data, via=via, durable=durable)

    def move_new(self, source, target):
        self._need_room()
        super().move_new(source, target)

    def _need_room(self):
        if any(info.path.endswith(".parquet") or ".log." in info.path for info in self.list(STAGING, recursive=True)):
            raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_write_that_fills_the_disk_is_undone_at_once(table_type):
    storage, clock = new_table(table_type=table_type)
    opened(storage, clock).upsert(batch([Input("k", "a", 1, 1)]))
    table = opened(Full(storage), clock)
    with pytest.raises(OSError, match="No space left on device"):
        table.upsert(batch([Input("k", "a", 2, 2)]))
    assert leftovers(storage) == []
    assert table.timeline.pending_writes == ()
    assert [row[2] for row in snapshot_of(table)] == [1]
