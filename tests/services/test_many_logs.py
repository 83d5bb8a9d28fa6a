"""Slices that are never compacted: users are told once, and archiving does not slow down with them."""

import logging

from hoodie.filegroup.row_copies import row_copies_of
from hoodie.model.tuning import Tuning
from hoodie.storage.memory import MemoryStorage
from tests.damaged_tables import make
from tests.memory_tables import FakeClock, Input, batch, new_storage, opened


def test_a_table_whose_slices_have_very_many_logs_is_named_once(caplog):
    tuning = Tuning(warned_logs=4)
    clock = FakeClock()
    storage = new_storage(clock)
    make(storage, clock)
    with caplog.at_level(logging.WARNING, "hoodie"):
        for number in range(3):
            opened(storage, clock, tuning=tuning).upsert(batch([Input("k0", "a", number, 50 + number)]))
        assert not caplog.records
        for number in range(5):
            opened(storage, clock, tuning=tuning).upsert(batch([Input("k0", "a", number, 60 + number)]))
    (record,) = caplog.records
    assert "hoodie compaction run memory://table" in record.getMessage()


class Counting(MemoryStorage):
    opens = 0

    def open_input(self, path, *, mapped=True):
        Counting.opens += "/rows/" in path
        return super().open_input(path, mapped=mapped)

    def read(self, path, offset=0, length=None):
        Counting.opens += "/rows/" in path
        return super().read(path, offset, length)


def test_archiving_opens_few_row_copies_however_many_there_are():
    clock = FakeClock()
    storage = new_storage(clock, Counting)
    make(storage, clock)
    opened_copies = []
    for _ in range(3):
        for number in range(12):
            opened(storage, clock).upsert(batch([Input("k0", "a", number, 50)]))
        before = Counting.opens
        opened(storage, clock, tuning=Tuning(copies_looked_at=2)).archive(min_commits=2)
        opened_copies.append(Counting.opens - before)
    assert len(row_copies_of(storage)) > 30
    assert opened_copies[0] == opened_copies[-1] > 0
