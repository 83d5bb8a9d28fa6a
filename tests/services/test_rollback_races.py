"""Looking for dead writers while living ones complete."""

from uuid import uuid4

import pytest

from hoodie.errors import InstantNotFoundError
from hoodie.format.log_block import rollback_block
from hoodie.services.rollback import rollback_instant
from hoodie.services.undo_files import disarm
from hoodie.storage.memory import MemoryStorage
from hoodie.timeline.active import ActiveTimeline
from hoodie.write.publish import commit_metadata
from tests.memory_tables import Input, batch, new_table, opened


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
