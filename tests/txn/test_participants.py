"""Who takes part in a commit is called under the lock, and can end it."""

import pytest

from hoodie.errors import UnsupportedTableError
from hoodie.model.enums import Action, State
from hoodie.txn import participants, transaction
from tests.memory_tables import Input, batch, new_table, opened, snapshot_of

ROWS = batch([Input("k", "a", 1, 1)])


class Noting:
    def __init__(self):
        self.calls = []
        self.refuses = False

    def before_plan(self, context):
        assert context.lock.is_held()
        self.calls.append("plan")

    def before_publish(self, context, instant, metadata):
        assert context.lock.is_held()
        assert not context.active.exists(instant)
        self.calls.append((instant.action, instant.state, sorted(metadata.write_stats)))
        if self.refuses:
            raise UnsupportedTableError("not kept up to date")


@pytest.fixture
def noting(monkeypatch):
    one = Noting()
    for module in (participants, transaction):
        monkeypatch.setattr(module, "participants_of", lambda context: (one,))
    return one


def test_a_participant_is_called_before_the_plan_and_before_the_completed_file(noting):
    storage, clock = new_table(table_type="COPY_ON_WRITE")
    opened(storage, clock).upsert(ROWS)
    assert noting.calls == ["plan", (Action.COMMIT, State.COMPLETED, ["a"])]


def test_a_participant_that_refuses_ends_the_write(noting):
    storage, clock = new_table(table_type="COPY_ON_WRITE")
    noting.refuses = True
    with pytest.raises(UnsupportedTableError, match="not kept up to date"):
        opened(storage, clock).upsert(ROWS)
    assert snapshot_of(opened(storage)) == []
    assert not opened(storage).timeline.commits
