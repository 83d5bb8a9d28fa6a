"""Where an action starts from, its calls, and what readers see before and after: what tests stop at each call."""

from functools import cache

from hoodie.model.enums import TableType
from hoodie.model.names import STAGING
from hoodie.publish.copying import Decision, Verdict
from hoodie.storage.faults import FaultStorage, crash_points
from hoodie.storage.memory import MemoryStorage
from tests.bucket import BucketStorage
from tests.crash.actions import ACTIONS, Action, Views, told_by
from tests.effort import soak_but
from tests.memory_tables import FakeClock, copy_of, new_storage, opened
from tests.placed import EVERY, SERVER, TRIED


class Scene:
    """An action's starting point, its calls, and what readers see before and after."""

    def __init__(self, action: Action, kind: type[MemoryStorage]):
        self.action = action
        clock = FakeClock()
        self.start = new_storage(clock, kind)
        action.prepare(self.start, clock)
        self._known = Views.of(opened(self.start, clock)).known()
        self.before = self.seen(self.start, clock)
        done, clock = copy_of(self.start)
        traced = FaultStorage(done)
        action.run(opened(traced, clock))
        self.trace = traced.trace
        self.after = self.seen(done, clock)

    def seen(self, storage, clock):
        """In memory the clock, and so the instants, are the same in every run."""
        views = Views.of(opened(storage, clock))
        return views if SERVER is None else views.told_by(self._known)

    def rows(self, rows):
        """As `seen` shows those of a snapshot."""
        return tuple(rows) if SERVER is None else told_by(self._known, rows)

    def points(self):
        """The places to die at; on a server perhaps some of them."""
        return chosen(list(crash_points(self.trace)))


def chosen(places):
    some = places[EVERY // 2 :: EVERY]
    TRIED["places"] += len(some)
    return some


KINDS = {"memory": MemoryStorage, "bucket": BucketStorage} if SERVER is None else {SERVER: MemoryStorage}
MAIN = ("copy-on-write upsert", "merge-on-read upsert", "compaction", "clustering", "rollback", "restore")
"""Where a store cannot rename, the others are stopped in `make soak` only: it publishes all alike."""
EVERY_CASE = [(name, kind) for kind in KINDS for name in ACTIONS]
OFTEN = soak_but([(name, kind) for name, kind in EVERY_CASE if kind != "bucket" or name in MAIN], EVERY_CASE)
"""Actions and kinds of storage that `make integration` tries."""


@cache
def scene_of(name: str, kind: str = next(iter(KINDS))) -> Scene:
    return Scene(ACTIONS[name], KINDS[kind])


def is_decided(storage):
    """Whether a write of a dead process is decided and has no completed file yet: then whoever comes next puts it."""
    for info in storage.list(STAGING, recursive=True):
        if info.path.endswith("/_decision"):
            decision = Decision.decode(storage.read(info.path), path=info.path)
            return decision.verdict is Verdict.COMPLETE and not storage.exists(decision.path)
    return False


def is_merge_on_read(storage):
    return opened(storage).config.table_type is TableType.MERGE_ON_READ
