"""What a writer reports when the storage fails around the moment at which its commit lands."""

import errno
import logging
from datetime import datetime

import pytest

from hoodie.errors import CommitConflictError, CommitOutcomeUnknownError
from hoodie.format.plan_avro import encode_rollback_plan
from hoodie.model.enums import Action, State, WriteOperation
from hoodie.model.instant import Instant, next_instant
from hoodie.model.payloads import CommitMetadata, RollbackPlan
from hoodie.storage.faults import Fault, FaultStorage
from hoodie.txn.conflict import WriteBasis
from hoodie.txn.transaction import Transaction
from tests.memory_tables import Input, batch, copy_of, leftovers, new_table, opened, snapshot_of

FIRST = [Input("k", "a", 1, 1)]
SECOND = [Input("k", "a", 2, 2)]
LONG_AGO = datetime(2001, 1, 1)


class Unreadable(FaultStorage):
    """From the moment that a completed file is published, nothing can be read until `works` is set."""

    def __init__(self, inner, plan=(), *, blind_from=".commit"):
        super().__init__(inner, plan)
        self.blind_from = blind_from
        self.works = True

    def create_new(self, path, data, *, via=None, durable=True):
        if path.endswith(self.blind_from):
            self.works = False
        super().create_new(path, data, via=via, durable=durable)

    def _readable(self):
        if not self.works:
            raise OSError(errno.EIO, "the storage does not answer")

    def read(self, path, offset=0, length=None):
        self._readable()
        return super().read(path, offset, length)

    def list(self, folder, *, recursive=False):
        self._readable()
        return super().list(folder, recursive=recursive)

    def names(self, folder):
        self._readable()
        return super().names(folder)


@pytest.fixture
def started():
    storage, clock = new_table(table_type="COPY_ON_WRITE")
    opened(storage, clock).upsert(batch(FIRST))
    return storage, clock


def publishing_call(storage, clock):
    """The number of the call that publishes the commit of `SECOND`."""
    other, other_clock = copy_of(storage)
    traced = FaultStorage(other)
    opened(traced, other_clock).upsert(batch(SECOND))
    return next(call.n for call in traced.trace if call.path.endswith(".commit"))


@pytest.mark.parametrize("moment", ["before", "after"])
def test_when_publishing_fails_and_cannot_be_looked_at_the_outcome_is_unknown_and_nothing_is_deleted(started, moment):
    storage, clock = started
    faulty = Unreadable(storage, [Fault(publishing_call(storage, clock), moment, errno.EIO)])
    with pytest.raises(CommitOutcomeUnknownError, match="not known whether the commit landed"):
        opened(faulty, clock).upsert(batch(SECOND))
    assert [call.verb for call in faulty.trace[-1:]] == ["create_new"]  # nothing was done after it
    landed = moment == "after"
    assert [row[2] for row in snapshot_of(opened(storage, clock))] == [2 if landed else 1]
    opened(storage, clock).upsert(batch([Input("l", "a", 3, 3)]))
    assert [row[2] for row in snapshot_of(opened(storage, clock))] == [2 if landed else 1, 3]
    assert leftovers(storage) == []


def test_when_the_timeline_cannot_be_read_after_publishing_the_outcome_is_unknown(started):
    storage, clock = started
    with pytest.raises(CommitOutcomeUnknownError, match="was published, but then its timeline could not be read"):
        opened(Unreadable(storage), clock).upsert(batch(SECOND))
    assert [row[2] for row in snapshot_of(opened(storage, clock))] == [2]
    opened(storage, clock).upsert(batch([Input("l", "a", 3, 3)]))
    assert [row[2] for row in snapshot_of(opened(storage, clock))] == [2, 3]
    assert leftovers(storage) == []


def test_an_answer_that_was_lost_is_found_again(started):
    storage, clock = started
    faulty = FaultStorage(storage, [Fault(publishing_call(storage, clock), "after", errno.EIO)])
    result = opened(faulty, clock).upsert(batch(SECOND))
    assert [row[2] for row in snapshot_of(opened(storage, clock))] == [2]
    assert opened(storage, clock).timeline.latest_commit.time == result.instant
    assert leftovers(storage) == []


@pytest.mark.parametrize("unreadable", [b"", b"no plan"])
def test_a_rollback_that_cannot_be_read_does_not_hide_another_one_of_this_instant(started, unreadable):
    storage, clock = started
    table = opened(storage, clock)
    transaction, _ = Transaction.start(
        table._context, Action.COMMIT, lambda *_: None, lambda _: CommitMetadata(WriteOperation.UPSERT)
    )
    first, second = (
        next_instant(LONG_AGO, transaction.instant),
        next_instant(LONG_AGO, next_instant(LONG_AGO, transaction.instant)),
    )
    active = table._context.active
    active.create(Instant(first, Action.ROLLBACK, State.REQUESTED), unreadable)
    plan = encode_rollback_plan(RollbackPlan(transaction.instant, Action.COMMIT, ()))
    active.create(Instant(second, Action.ROLLBACK, State.REQUESTED), plan)
    with pytest.raises(CommitConflictError, match="another process is rolling it back"), transaction:
        transaction.commit(CommitMetadata(WriteOperation.UPSERT), WriteBasis())


def test_a_commit_that_is_archived_at_once_has_landed():
    storage, clock = new_table(table_type="COPY_ON_WRITE", more={"hoodie.write.table.version": "9"})

    class ArchivesAtOnce(FaultStorage):
        def create_new(self, path, data, *, via=None, durable=True):
            super().create_new(path, data, via=via, durable=durable)
            if path.endswith(".commit"):
                self._inner.delete(path)

    assert opened(ArchivesAtOnce(storage), clock).upsert(batch(FIRST)).instant


def test_a_completed_file_is_never_older_than_its_instant_and_failing_to_mend_that_does_not_fail_the_commit(
    started, caplog
):
    storage, clock = started

    class StampsInThePast(FaultStorage):
        """A file server whose clock lags: it stamps what is created ten seconds back."""

        refuses = False

        def create_new(self, path, data, *, via=None, durable=True):
            clock.now_s -= 10
            try:
                super().create_new(path, data, via=via, durable=durable)
            finally:
                clock.now_s += 10

        def touch(self, path):
            if self.refuses and path.endswith(".commit"):
                raise OSError(errno.EPERM, "only the owner may")
            super().touch(path)

    lagging = StampsInThePast(storage)
    first = opened(lagging, clock).upsert(batch(SECOND)).instant
    table = opened(storage, clock)
    assert not table._context.clock.ahead_of(storage.stat(f".hoodie/{first}.commit").mtime_s, first)
    lagging.refuses = True
    with caplog.at_level(logging.WARNING, logger="hoodie"):
        opened(lagging, clock).upsert(batch([Input("k", "a", 4, 4)]))
    assert "modification time" in caplog.text
    assert [row[2] for row in snapshot_of(opened(storage, clock))] == [4]


def test_an_io_error_in_the_compaction_after_a_commit_does_not_fail_the_commit(caplog):
    storage, clock = new_table(table_type="MERGE_ON_READ")
    inline = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "2"}
    opened(storage, clock, inline).upsert(batch(FIRST))

    class NoPlans(FaultStorage):
        def create_new(self, path, data, *, via=None, durable=True):
            if path.endswith(".compaction.requested"):
                raise OSError(errno.ENOSPC, "no space left on device")
            super().create_new(path, data, via=via, durable=durable)

    with caplog.at_level(logging.WARNING, logger="hoodie"):
        result = opened(NoPlans(storage), clock, inline).upsert(batch(SECOND))
    assert "the commit stands" in caplog.text
    assert opened(storage, clock).timeline.latest_commit.time == result.instant
    assert [row[2] for row in snapshot_of(opened(storage, clock))] == [2]
    opened(storage, clock, inline).upsert(batch([Input("k", "a", 3, 3)]))
    assert any(i.action is Action.COMMIT for i in opened(storage, clock).timeline.commits)
