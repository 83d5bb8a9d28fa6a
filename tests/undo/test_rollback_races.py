"""Rolling back beside others: writers that complete, and rollbacks of the same instant."""

from uuid import uuid4

import pytest

from hoodie.errors import InstantNotFoundError
from hoodie.format.log_block import rollback_block
from hoodie.model.enums import Action
from hoodie.storage.faults import FaultStorage, InjectedFault
from hoodie.storage.memory import MemoryStorage
from hoodie.timeline.active import ActiveTimeline
from hoodie.undo.rollback import rollback_instant
from hoodie.undo.undo_files import disarm
from hoodie.write.publish import commit_metadata
from tests.memory_tables import Input, batch, new_table, opened
from tests.placed import in_memory


class DiesBefore(FaultStorage):
    """The process dies before it puts a file whose name ends so."""

    def __init__(self, storage, ending):
        super().__init__(storage)
        self.ending = ending

    def create_new(self, path, data, *, via=None, durable=True):
        if path.endswith(self.ending):
            raise InjectedFault("died")
        super().create_new(path, data, via=via, durable=durable)


@in_memory("a storage without renames has decided for the commit before it is on the timeline")
def test_a_second_rollback_of_an_instant_goes_on_with_the_first_and_then_has_nothing_to_do():
    storage, clock = new_table(table_type="MERGE_ON_READ")
    table = opened(storage, clock)
    table.upsert(batch([Input("a", "p")]))
    with pytest.raises(InjectedFault):
        opened(DiesBefore(storage, ".deltacommit"), clock).upsert(batch([Input("b", "p")]))
    (dead,) = (i.time for i in table.timeline.pending_writes)
    with pytest.raises(InjectedFault):
        opened(DiesBefore(storage, ".rollback.inflight"), clock).rollback()
    (begun,) = table.timeline.pending(Action.ROLLBACK)
    assert rollback_instant(opened(storage, clock)._context, dead) == begun.time
    assert rollback_instant(opened(storage, clock)._context, dead) is None
    assert [i.time for i in table.timeline if i.action is Action.ROLLBACK] == [begun.time]
    assert not table.timeline.pending()


def test_a_writer_that_completes_after_the_timeline_was_read_is_not_taken_for_a_dead_one(monkeypatch):
    storage, clock = new_table(table_type="MERGE_ON_READ")
    other = opened(storage, clock)
    read_before = []

    def before_it_commits(*args, **kwargs):
        read_before.append(other.timeline)
        return commit_metadata(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr("hoodie.write.attempt.commit_metadata", before_it_commits)
        done = opened(storage, clock).upsert(batch([Input("a", "p")]))
    (stale,) = read_before
    assert [instant.time for instant in stale.pending_writes] == [done.instant]

    load = ActiveTimeline.load
    with monkeypatch.context() as patch:
        patch.setattr(ActiveTimeline, "load", lambda active, **_: read_before.pop() if read_before else load(active))
        assert other.rollback() == []
    assert not read_before
    assert other.scan().to_arrow().num_rows == 1
    with pytest.raises(InstantNotFoundError, match="is completed; only pending instants are rolled back"):
        rollback_instant(other._context, done.instant)


@pytest.mark.parametrize("is_the_same", [True, False])
def test_another_rollback_that_takes_the_name_of_the_log_first_is_no_error(is_the_same):
    """A process that was paused beyond its lease goes on disarming beside the one that took over."""
    dead, ours, other = (f"2026010109300000{digit}" for digit in (1, 2, 3))
    theirs = rollback_block(instant=ours if is_the_same else other, target=dead)

    class TakenFirst(MemoryStorage):
        def create_new(self, path, data, **how):
            if not self.exists(path) and not taken:
                taken.append(path)
                super().create_new(path, theirs)
            super().create_new(path, data, **how)

    taken: list[str] = []
    storage = TakenFirst()
    storage.mkdirs("p")
    path, size = disarm(storage, "p", f"{uuid4()}-0", dead, ours, [dead])
    assert storage.read(path) == rollback_block(instant=ours, target=dead)
    assert size == storage.stat(path).size_bytes
    assert (path == taken[0]) is is_the_same
    assert len(storage.list("p")) == (1 if is_the_same else 2)
