"""A listing shows an older state of its folder: the action does as it should or raises, no row is lost, and none comes back.

No storage that tables are kept on does that (`LaggingStorage` says what is assumed of it). Each listing of an action lags once. What
the action has not seen it may leave behind, as a file that counts nowhere.
"""

from functools import cache

import pytest

from hoodie.errors import HoodieError
from hoodie.model.instant import InstantTime
from hoodie.storage.cache import Cache
from tests.crash.actions import ACTIONS, repair, told_by
from tests.crash.lagging import LaggingStorage
from tests.crash.scenes import KINDS, OFTEN, is_merge_on_read, scene_of
from tests.effort import long_but, soak_but
from tests.memory_tables import (
    FakeClock,
    Input,
    batch,
    copy_of,
    left_by,
    new_storage,
    opened,
    plain,
    snapshot_of,
    stray_files,
)
from tests.placed import SERVER

pytestmark = pytest.mark.skipif(SERVER is not None, reason="a server's listings do not lag")

NEXT = Input("next", "a", 1, 1)
CASES = soak_but([(*case, 1) for case in OFTEN], [(*case, behind) for case in OFTEN for behind in (1, 3)])
SHORT = [(name, "memory", 1) for name in ("merge-on-read upsert", "delete_partitions", "restore")]


@cache
def prepared(name, kind):
    """The table that the action starts from, and what the storage held before each change on the way there."""
    clock = FakeClock()
    storage = new_storage(clock, KINDS[kind])
    history = []
    ACTIONS[name].prepare(LaggingStorage(storage, history), clock)
    return storage, history


def listings_of(name, kind):
    start, history = prepared(name, kind)
    storage, clock = copy_of(start)
    counted = LaggingStorage(storage, list(history))
    ACTIONS[name].run(opened(counted, clock))
    return range(1, len(counted.listings) + 1)


def lagging(name, kind, late, behind):
    start, history = prepared(name, kind)
    storage, clock = copy_of(start)
    return LaggingStorage(storage, list(history), late=late, behind=behind), clock


def untimed(scene, views):
    """With the instants of the action as one: who lists again may have taken a later one."""
    return views.told_by(scene.before.known())


@pytest.mark.parametrize("case", long_but(SHORT, CASES), ids=lambda case: "-".join(map(str, case)))
def test_an_action_with_a_listing_that_is_out_of_date(case):
    name, kind, behind = case
    scene, action = scene_of(name, kind), ACTIONS[name]
    before, after = untimed(scene, scene.before), untimed(scene, scene.after)
    lagged = 0
    for late in listings_of(name, kind):
        storage, clock = lagging(name, kind, late, behind)
        try:
            action.run(opened(storage, clock))
        except (HoodieError, OSError):
            right = (before, after)
        else:
            right = (after,)
        if storage.lagged is None:
            continue
        lagged += 1
        bare, clock = left_by(storage.inner)
        assert untimed(scene, scene.seen(bare, clock)) in right, (late, storage.lagged)
        goes_on(name, bare, clock, late=(late, storage.lagged))
    assert lagged > 2


def goes_on(name, storage, clock, *, late):
    """Later writes, services and a repair find a table that is well."""
    kept = snapshot_of(opened(storage, clock))
    instants = [opened(storage, clock).upsert(batch([NEXT._replace(val=n, ts=n)])).instant for n in range(2)]
    assert sorted(map(InstantTime, instants)) == instants
    rows = [*kept, ("next", "a", 1, 1, instants[-1])]
    assert snapshot_of(opened(storage, clock)) == sorted(rows, key=repr), late
    if is_merge_on_read(storage):
        opened(storage, clock).compact()
        opened(storage, clock).run_log_compaction()
    opened(storage, clock).run_clustering()
    repair(opened(storage, clock))
    table = opened(storage, clock)
    assert snapshot_of(table) == sorted(rows, key=repr), late
    assert not table.timeline.pending(), late
    assert [path for path in stray_files(storage, table) if "/rows/" not in path] == [], late


@pytest.mark.parametrize("case", long_but([SHORT[0][:2]], OFTEN), ids="-".join)
def test_a_reader_with_a_listing_that_is_out_of_date_sees_one_state_or_raises(case):
    name, kind = case
    scene = scene_of(name, kind)
    known = scene.before.known()
    start, clock = copy_of(prepared(name, kind)[0])
    table = opened(start, clock)
    right = {tuple(plain(table.scan(as_of=commit.time, meta_columns=True))) for commit in table.timeline.commits}
    right.add(told_by(known, scene.after.snapshot))
    done, clock = lagging(name, kind, None, 1)
    scene.action.run(opened(done, clock))
    for behind in (1, 2, 3):
        for late in range(1, 9):
            storage = LaggingStorage(done.inner, list(done.history), late=late, behind=behind)
            try:
                rows = plain(opened(storage, clock, cache=Cache()).scan(meta_columns=True))
            except (HoodieError, OSError):
                continue
            assert told_by(known, rows) in right, (late, storage.lagged)
