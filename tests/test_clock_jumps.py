"""A clock that jumps between writes: a write has a greater instant than all before it, or says that the clock is wrong."""

import pytest

from hoodie.errors import LockError
from hoodie.timeline.clock import MAX_COMMIT_WAIT_S
from tests.memory_tables import Input, batch, leftovers, new_table, opened, snapshot_of
from tests.placed import in_memory

pytestmark = in_memory("sets the clock")

YEAR_2000_S = 946_684_800.0 - 1_764_000_000.0
BACK = (YEAR_2000_S, -86_400, -3_600, -MAX_COMMIT_WAIT_S - 1, 1 - MAX_COMMIT_WAIT_S, -30, -1, -0.001)
JUMPS = (*BACK, -0.0004, 0, 0.0004, *(-jump for jump in BACK))


class Writer:
    def __init__(self, kind):
        self.storage, self.clock = new_table(table_type=kind, ordering=None)
        self.instants, self.newest = [], None

    def write(self, value, *, refused=False):
        table, rows, slept_s = opened(self.storage, self.clock), batch([Input("k", "a", value)]), self.clock.slept_s
        if refused:
            with pytest.raises(LockError, match="ahead of the storage's clock"):
                table.upsert(rows)
            assert self.clock.slept_s == slept_s  # it does not wait in vain
        else:
            self.instants.append(table.upsert(rows).instant)
            self.newest = value
        assert [row[2] for row in snapshot_of(opened(self.storage, self.clock))] == [self.newest]
        assert self.instants == sorted(set(self.instants))
        assert leftovers(self.storage) == []


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("comes_back", [False, True], ids=["it stays", "it comes back"])
@pytest.mark.parametrize("jump_s", JUMPS)
def test_a_write_has_a_greater_instant_or_says_that_the_clock_is_wrong(kind, jump_s, comes_back):
    writer = Writer(kind)
    began_s = writer.clock.now_s
    writer.write(0)
    writer.clock.now_s += jump_s
    writer.write(1, refused=jump_s < -MAX_COMMIT_WAIT_S)
    if comes_back:
        writer.clock.now_s = began_s + 1
        writer.write(2, refused=jump_s > MAX_COMMIT_WAIT_S)
    writer.clock.now_s = began_s + max(0, jump_s)
    writer.write(3)
