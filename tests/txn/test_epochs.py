"""The epoch of an instant, which a writer takes while it waits for the lock."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from hoodie.engine.local import LocalEngine
from hoodie.model.enums import Action
from hoodie.publish.publishers import publisher_of
from hoodie.table import HoodieTable
from hoodie.view.context import TableContext
from tests.bucket import BucketStorage
from tests.memory_tables import KEEP_ALL, FakeClock, Input, batch, create, leftovers, new_storage, opened, snapshot_of


class AtOnce(BucketStorage):
    """Takes several requests at the same time, and says when the epoch was read to commit: once before, to publish."""

    can = replace(BucketStorage.can, at_once=8)

    def __init__(self, *args, **how):
        super().__init__(*args, **how)
        self.is_read = threading.Event()
        self.epochs = 0

    def read_tagged(self, path):
        found = super().read_tagged(path)
        if path.endswith("_decision"):
            self.epochs += 1
            if self.epochs == 2:
                self.is_read.set()
        return found


class Waited:
    """The lock: when it is taken to commit, another write had it first, and was committed after the epoch was read."""

    def __init__(self, lock, storage, takings):
        self._lock = lock
        self._storage = storage
        self._takings = iter(takings)

    def __getattr__(self, name):
        return getattr(self._lock, name)

    @contextmanager
    def held(self, timeout_s) -> Iterator[None]:
        if next(self._takings, None) == "commit":
            assert self._storage.is_read.wait(60)
            (instant,) = publisher_of(self._storage).remains()
            publisher_of(self._storage).advance(instant)
        with self._lock.held(timeout_s):
            yield


def test_a_writer_that_waited_for_the_lock_while_another_was_committed_looks_again_and_commits():
    clock = FakeClock()
    storage = new_storage(clock, AtOnce)
    create(storage, table_type="COPY_ON_WRITE")
    opened(storage, clock).upsert(batch([Input("k", "a", 1, 1)]))
    context = TableContext.open(storage, LocalEngine(1), sleep=clock.sleep)
    lock = Waited(context.lock, storage, ["start", "commit"])
    table = HoodieTable(replace(context, coordination=context.coordination._replace(lock=lock)), KEEP_ALL)
    storage.epochs = 0
    storage.is_read.clear()
    table.upsert(batch([Input("k", "a", 2, 2)]))
    assert [row[2] for row in snapshot_of(opened(storage, clock))] == [2]
    instants = opened(storage, clock)._context.active.load()
    assert [each.action for each in instants] == [Action.COMMIT] * 2, "nothing had to be rolled back"
    assert leftovers(storage) == []
