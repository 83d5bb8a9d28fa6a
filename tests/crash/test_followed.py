"""Somebody follows a table while its writer dies at every call, and the next one goes on: a followed view is that of a listing."""

import pytest

from hoodie.storage.faults import FaultStorage, crash_points
from hoodie.storage.memory import MemoryStorage
from hoodie.table import HoodieTable
from tests.bucket import BucketStorage
from tests.crash.actions import ACTIONS, Action, crash
from tests.effort import in_shares, long_but, soak_but
from tests.followed import check_followed, follower, moved
from tests.memory_tables import FakeClock, Input, batch, copy_of, new_storage, opened, snapshot_of

KINDS = {"memory": MemoryStorage, "bucket": BucketStorage}
IN_SHORT = [(name, "memory") for name in ("rollback", "clean")]


def cleaned(table):
    table.clean(retain_commits=1)


def old_versions(storage, clock):
    ACTIONS["restore of logs"].prepare(storage, clock)
    table = opened(storage, clock)
    table.drop_savepoint(table.savepoints()[0].instant)
    for turn in range(3):
        table.compact()
        table.upsert(batch([Input("k0", "a", turn, 100 + turn), Input("k1", "b", turn, 100 + turn)]))
    table.insert_overwrite(batch([Input("x", "c/d", 1, 1)]))


SCENES = {**{name: (each.prepare, each.run) for name, each in ACTIONS.items()}, "clean": (old_versions, cleaned)}


EVERY_SCENE = [(name, kind) for kind in KINDS for name in SCENES]
IN_A_BUCKET = ("copy-on-write upsert", "merge-on-read upsert", "compaction", "rollback", "clean")
SOME_SCENES = soak_but(
    [(name, kind) for name, kind in EVERY_SCENE if kind == "memory" or name in IN_A_BUCKET], EVERY_SCENE
)


@pytest.fixture(params=long_but(IN_SHORT, SOME_SCENES), ids="-".join)
def scene(request):
    return request.param


@in_shares(4, often=2)
def test_a_crash_at_every_call_and_the_next_write_are_followed(scene, share):
    name, kind = scene
    prepare, run = SCENES[name]
    clock = FakeClock()
    start = new_storage(clock, KINDS[kind])
    prepare(start, clock)
    done, done_clock = copy_of(start)
    traced = FaultStorage(done)
    run(opened(traced, done_clock))
    died = 0
    places = share.of(crash_points(traced.trace))
    for fault in places:
        storage, clock = copy_of(start)
        quick, slow = follower(storage), follower(storage)
        assert check_followed(quick) == check_followed(slow) > 0
        died += crash(storage, clock, Action(name, prepare, run), fault)
        check(quick, fault)
        bare, clock = copy_of(storage)  # another process: nothing of the dead one's marks is held any more
        quick, slow = moved(quick, bare), moved(slow, bare)
        opened(bare, clock).upsert(batch([Input("next", "a", 1, 1000)]))
        check(quick, fault)
        opened(bare, clock).cluster()
        check(quick, fault)
        check(slow, fault)
        assert snapshot_of(HoodieTable(slow)) == snapshot_of(opened(bare, clock))
    assert died == len(places) > 0


def check(context, fault):
    try:
        check_followed(context)
    except AssertionError as error:
        raise AssertionError(f"after {fault}") from error
