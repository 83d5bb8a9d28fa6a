"""Row copies live as long as slices that somebody reads: rollbacks remove theirs, compactions those of the one before the last."""

import pytest

from hoodie.filegroup.row_copies import drop_row_copies
from hoodie.model.instant import InstantTime
from hoodie.model.names import ROW_COPIES, format_row_copy, join, parse_row_copy
from hoodie.storage.faults import Fault, FaultStorage, InjectedFault
from hoodie.storage.memory import MemoryStorage
from tests.memory_tables import Input, batch, new_table, opened, stray_files
from tests.scan_files import check

ROWS = [Input(f"k{n}", "a", n, 1) for n in range(4)]


def copies(storage):
    return [parse_row_copy(info.name) for info in storage.list(ROW_COPIES)]


def test_a_rollback_removes_the_copies_of_its_instant():
    storage, clock = new_table(table_type="MERGE_ON_READ")
    for _ in range(2):
        opened(storage, clock).upsert(batch(ROWS))
    died = 0
    for at in range(1, 40):
        try:
            opened(FaultStorage(storage, [Fault(at, "before")]), clock).upsert(batch(ROWS[:2]))
        except InjectedFault:
            completed = {instant.time for instant in opened(storage, clock).timeline.commits}
            died += not completed.issuperset(copies(storage))
            opened(storage, clock).rollback()
            assert stray_files(storage, opened(storage, clock)) == []
            check(opened(storage, clock))
        else:
            break
    assert died


@pytest.mark.parametrize("compactions", [1, 2])
def test_compaction_removes_copies_from_before_the_one_before_it(compactions):
    storage, clock = new_table(table_type="MERGE_ON_READ")
    opened(storage, clock).upsert(batch(ROWS))
    instants = []
    for _ in range(compactions):
        instants.append(opened(storage, clock).upsert(batch(ROWS[:2])).instant)
        opened(storage, clock).compact()
    assert copies(storage) == instants[-1:]
    for instant in instants:
        check(opened(storage, clock), as_of=instant)


def test_copies_before_an_instant_are_those_by_time_and_not_by_text():
    within, short, after = "20261121075818500", "20261121075818", "20261121075819000"
    for before, left in ((short, [short, after]), (within, [short, within, after]), (after, [after])):
        storage = MemoryStorage()
        for time in (within, short, after):
            storage.create_new(join(ROW_COPIES, format_row_copy(time, 0)), b"")
        drop_row_copies(storage, before=InstantTime(before))
        assert sorted(map(str, copies(storage))) == left
