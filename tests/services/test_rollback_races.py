"""Looking for dead writers while living ones complete."""

import pytest

from hoodie.errors import InstantNotFoundError
from hoodie.services.rollback import rollback_instant
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
