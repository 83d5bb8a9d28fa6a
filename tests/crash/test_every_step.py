"""A writer dies, or meets an I/O error, at every call that changes the storage: readers see the old table or the new one.

Where the environment names a server (`tests/placed.py`), the tables are there, and `FaultStorage` stands before it.
"""

import errno
import shutil

import pytest

from benchmarks.requests import Counting, chained
from hoodie.errors import CommitOutcomeUnknownError, HoodieError
from hoodie.model.enums import Action as TimelineAction
from hoodie.storage.faults import Fault, FaultStorage, crash_points
from hoodie.storage.local import LocalStorage
from tests.crash.actions import ACTIONS, MOVES_ROWS, Action, crash, repair
from tests.crash.scenes import KINDS, OFTEN, chosen, is_decided, is_merge_on_read, scene_of
from tests.effort import SOAK, long_but
from tests.memory_tables import (
    Input,
    batch,
    copy_of,
    left_by,
    leftovers,
    opened,
    snapshot_of,
    stray_files,
)
from tests.placed import EVERY, SERVER

CALLS = {
    "copy-on-write upsert": 19,
    "upsert with change logs": 25,
    "merge-on-read upsert": 24,
    "upsert of deleted rows": 18,
    "upsert with gathered markers": 22,
    "insert_overwrite": 16,
    "load in one pass": 21,
    "delete_partitions": 9,
    "compaction": 15,
    "compaction within a budget": 13,
    "log compaction": 17,
    "clustering": 12,
    "clustering of many rows": 31,
    "large compaction": 33,
    "large clustering": 33,
    "rollback": 15,
    "rollback of the newest commit": 18,
    "savepoint": 2,
    "dropped savepoint": 3,
    "restore": 42,
    "restore of logs": 75,
    "expiry": 9,
    "repair": 7,
}
"""How many calls of each action change the storage. One more is one more place to die: look at it, then raise the number."""

CALLS_IN_A_BUCKET = {
    "copy-on-write upsert": 17,
    "upsert with change logs": 23,
    "merge-on-read upsert": 22,
    "upsert of deleted rows": 18,
    "upsert with gathered markers": 20,
    "insert_overwrite": 14,
    "load in one pass": 21,
    "delete_partitions": 7,
    "compaction": 15,
    "compaction within a budget": 13,
    "log compaction": 17,
    "clustering": 12,
    "clustering of many rows": 31,
    "large compaction": 33,
    "large clustering": 33,
    "rollback": 19,
    "rollback of the newest commit": 16,
    "savepoint": 2,
    "dropped savepoint": 3,
    "restore": 36,
    "restore of logs": 64,
    "expiry": 7,
    "repair": 13,
}
"""The same where a store copies files and cannot rename."""

IN_SHORT = [("merge-on-read upsert", "memory")]
"""Of the rest `make integration` tries every step, too."""

PAIRS = 20
"""Deaths in the recovery from a death that are tried of each action, about: there are a thousand and more of a restore."""

MOMENTS = ("torn", "before", "after")
"""Of a call that fails: `make soak` tries each at each call, other runs one at each, in turns."""

UNSEEN = ("rollback", "savepoint", "dropped savepoint", "log compaction", "clustering of many rows", "repair")
"""Actions that no view tells of."""

NEXT = Input("next", "a", 1, 1)
PLANNED = (TimelineAction.COMPACTION, TimelineAction.LOGCOMPACTION, TimelineAction.CLUSTERING)


SHORT = IN_SHORT if SERVER is None else [(name, SERVER) for name in ACTIONS]


@pytest.fixture(params=long_but(["merge-on-read upsert"], ACTIONS))
def memory_scene(request):
    return scene_of(request.param)


@pytest.fixture(params=long_but(SHORT, OFTEN), ids="-".join)
def scene(request):
    return scene_of(*request.param)


@pytest.mark.parametrize("kind", long_but(KINDS.keys() & {"memory"}, KINDS))
def test_the_number_of_changing_calls_is_known(kind):
    found = {name: len(scene_of(name, kind).trace) for name in ACTIONS}
    assert found == (CALLS_IN_A_BUCKET if kind in ("bucket", "s3") else CALLS)


def test_scenes_show_something(scene):
    if scene.action.name in UNSEEN:
        assert scene.before == scene.after
    else:
        assert scene.before != scene.after
    if scene.action.name in MOVES_ROWS:
        assert scene.before.snapshot == scene.after.snapshot


def recovered(scene, storage, clock, *, last_snapshot):
    """The next write succeeds, adds exactly its row, and leaves nothing of the dead writer behind."""
    if is_decided(storage):
        last_snapshot = scene.after.snapshot
    table = opened(storage, clock)
    result = table.upsert(batch([NEXT]))
    rows = snapshot_of(opened(storage, clock))
    assert [row for row in rows if row[0] == NEXT.id] == [("next", "a", 1, 1, result.instant)]
    assert scene.rows(row for row in rows if row[0] != NEXT.id) == tuple(last_snapshot)
    pending = opened(storage, clock).timeline.pending()
    assert all(i.action in PLANNED for i in pending)
    assert leftovers(storage) == []
    if pending:
        if is_merge_on_read(storage):
            opened(storage, clock).run_compaction()
            opened(storage, clock).run_log_compaction()
        opened(storage, clock).run_clustering()
        assert snapshot_of(opened(storage, clock)) == rows
        assert not opened(storage, clock).timeline.pending()
    assert leftovers(storage) == []
    if scene.action.name == "repair":
        repair(opened(storage, clock))
        assert snapshot_of(opened(storage, clock)) == rows
    assert stray_files(storage, opened(storage, clock)) == []


def errors_in(trace):
    return [
        (call, moment)
        for number, call in enumerate(trace)
        for moment in (MOMENTS if SOAK else MOMENTS[number % 3 : number % 3 + 1])
    ]


def test_after_a_crash_at_any_step_readers_see_the_old_or_the_new_table_and_the_next_write_cleans_up(scene):
    outcomes = {"before": 0, "after": 0}
    points = scene.points()
    for fault in points:
        storage, clock = copy_of(scene.start)
        assert crash(storage, clock, scene.action, fault), fault
        bare, clock = left_by(storage)
        seen = scene.seen(bare, clock)
        assert seen in (scene.before, scene.after), fault
        outcomes["after" if seen == scene.after else "before"] += 1
        recovered(scene, bare, clock, last_snapshot=seen.snapshot)
    assert outcomes["before"] + outcomes["after"] == len(points)


@pytest.mark.long
@pytest.mark.parametrize(
    "name", ["merge-on-read upsert", "copy-on-write upsert", "compaction", "clustering of many rows"]
)
def test_it_is_the_same_where_calls_that_do_not_need_each_other_are_made_at_the_same_time(name):
    """Which of them were made before the crash differs from run to run."""
    scene = scene_of(name, "bucket" if SERVER is None else SERVER)
    died = 0
    for fault in scene.points():
        storage, clock = copy_of(scene.start)
        died += crash(storage, clock, scene.action, fault, at_once=8)
        bare, clock = left_by(storage)
        seen = scene.seen(bare, clock)
        assert seen in (scene.before, scene.after), fault
        recovered(scene, bare, clock, last_snapshot=seen.snapshot)
    assert died > 20 // EVERY


@pytest.mark.long
@pytest.mark.skipif(SERVER is not None, reason="in memory the order is the same in every run")
@pytest.mark.parametrize("name", ["merge-on-read upsert", "copy-on-write upsert"])
def test_nor_does_it_matter_which_of_these_calls_come_first(name):
    """Here each thread but the caller's is faster than that: the lock is released late, and files have their names early."""
    scene = scene_of(name, "bucket")
    with chained(Counting()):
        for fault in scene.points():
            storage, clock = copy_of(scene.start)
            assert crash(storage, clock, scene.action, fault, at_once=8), fault
            bare, clock = left_by(storage)
            seen = scene.seen(bare, clock)
            assert seen in (scene.before, scene.after), fault
            recovered(scene, bare, clock, last_snapshot=seen.snapshot)


def test_recovery_run_twice_changes_nothing_more(scene):
    for fault in scene.points():
        storage, clock = copy_of(scene.start)
        crash(storage, clock, scene.action, fault)
        bare, clock = left_by(storage)
        opened(bare, clock).rollback()
        once = bare.snapshot()
        opened(bare, clock).rollback()
        assert bare.snapshot() == once, fault


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "name",
    long_but(
        ["merge-on-read upsert", "clustering"],
        [
            *("merge-on-read upsert", "compaction", "log compaction", "clustering", "rollback of the newest commit"),
            *("restore of logs", "expiry"),
        ],
    ),
)
def test_a_crash_in_the_recovery_from_a_crash_is_recovered_too(name, kind):
    scene = scene_of(name, kind)
    pairs = []
    for number, fault in enumerate(crash_points(scene.trace)):
        if number % 3:
            continue
        storage, clock = copy_of(scene.start)
        crash(storage, clock, scene.action, fault)
        dead, clock = left_by(storage)
        undone, clock = copy_of(dead)
        recovery = FaultStorage(undone)
        opened(recovery, clock).rollback()
        pairs += [(fault, dead, second) for second in list(crash_points(recovery.trace))[number % 3 :: 3]]
    assert len(pairs) > 20
    for fault, dead, second in chosen(pairs if SOAK else pairs[:: max(1, len(pairs) // PAIRS)]):
        storage, clock = copy_of(dead)
        crash(storage, clock, Action("recovery", scene.action.prepare, lambda table: table.rollback()), second)
        bare, clock = left_by(storage)
        seen = scene.seen(bare, clock)
        assert seen in (scene.before, scene.after), (fault, second)
        recovered(scene, bare, clock, last_snapshot=seen.snapshot)


def test_after_an_io_error_at_any_step_the_call_raises_and_nothing_is_visible_or_its_result_is_right(scene):
    for call, moment in chosen(errors_in(scene.trace)):
        storage, clock = copy_of(scene.start)
        faulty = FaultStorage(storage, [Fault(call.n, moment, errno.EIO)])
        fault = (call, moment)
        try:
            scene.action.run(opened(faulty, clock))
        except CommitOutcomeUnknownError:
            assert scene.seen(storage, clock) in (scene.before, scene.after), fault
        except (OSError, HoodieError):
            seen = scene.seen(storage, clock)
            # A plan of a service, and its completed file, change no row: it may have got further than it could say.
            assert seen == scene.before or (scene.action.name in MOVES_ROWS and seen == scene.after), fault
        else:
            assert scene.seen(storage, clock) == scene.after, fault
        seen = scene.seen(storage, clock)
        recovered(scene, storage, clock, last_snapshot=seen.snapshot)


@pytest.mark.skipif(SERVER is not None, reason="the disk has its test in `make test`")
def test_the_same_on_a_local_disk(memory_scene, tmp_path):
    """A sample: what a disk adds to memory is its own half-done steps."""
    scene = memory_scene
    start = tmp_path / "start"
    scene.action.prepare(LocalStorage(start), None)
    before = rows_without_times(start)
    done = tmp_path / "done"
    shutil.copytree(start, done)
    traced = FaultStorage(LocalStorage(done))
    scene.action.run(opened(traced))
    after = rows_without_times(done)
    assert len(traced.trace) == len(scene.trace)
    for number, fault in enumerate(crash_points(traced.trace)):
        if number % 9 == 4:
            folder = tmp_path / f"crash{number}"
            shutil.copytree(start, folder)
            assert crash(LocalStorage(folder), None, scene.action, fault)
            assert rows_without_times(folder) in (before, after), fault
            storage = LocalStorage(folder)
            recovered(scene, storage, None, last_snapshot=snapshot_of(opened(storage)))
            shutil.rmtree(folder)


def rows_without_times(folder):
    return [row[:-1] for row in snapshot_of(opened(LocalStorage(folder)))]
