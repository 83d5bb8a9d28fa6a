"""Ctrl-C, a lack of memory or of threads at every step of an action: the same process goes on as if nothing had been.

Unlike a crash, the process lives on with its locks, marks, threads and caches. Whatever came, and whenever, it reaches the caller as
itself; the old or the new table is seen; the next write, compaction and scan of the same handle work; nothing stays held.
"""

import contextlib
import gc
import os
import threading
from functools import cache

import pytest

from hoodie.errors import HoodieError
from hoodie.lock.registry import held_by_this_thread
from hoodie.storage.faults import FaultStorage
from hoodie.storage.local import LocalStorage
from tests.crash.actions import ACTIONS, CHANGES, Action, _prepare, _prepare_logs, repair, told_by
from tests.crash.scenes import is_decided
from tests.effort import long_but, soak_but
from tests.interrupts import Steps, threads_left, threads_of_ours
from tests.memory_tables import (
    FakeClock,
    Input,
    batch,
    copy_of,
    keys,
    leftovers,
    new_storage,
    opened,
    snapshot_of,
    stray_files,
)
from tests.placed import EVERY, SERVER, TRIED

NEXT = Input("next", "a", 1, 1)
MORE_ACTIONS = {
    action.name: action
    for action in (
        *ACTIONS.values(),
        Action("delete", _prepare_logs, lambda table: table.delete(keys([CHANGES[0], CHANGES[1]]))),
        Action("schedule", _prepare_logs, lambda table: table.schedule_compaction()),
        Action("copy-on-write scan", _prepare("COPY_ON_WRITE"), lambda table: table.scan().to_arrow()),
        Action("merge-on-read scan", _prepare_logs, lambda table: table.scan().to_arrow()),
    )
}
OFTEN = ["merge-on-read upsert", "compaction"]
CALL_STRIDE = int(os.environ.get("HOODIE_INTERRUPT_STRIDE", "7"))
STRIDE = int(os.environ.get("HOODIE_INTERRUPT_STRIDE", "41"))
"""Of calls and of lines every so manieth in the usual run, others for each action; with 1 all of them."""
ERRORS = [KeyboardInterrupt, MemoryError]
NO_THREAD = RuntimeError("can't start new thread")
FAILING_STARTS = [
    ("after", NO_THREAD),
    ("before", KeyboardInterrupt),
    ("before", NO_THREAD),
    ("after", KeyboardInterrupt),
    ("before", MemoryError),
    ("after", MemoryError),
]


class Scene:
    def __init__(self, action):
        self.action = action
        clock = FakeClock()
        self.start = new_storage(clock)
        action.prepare(self.start, clock)
        rows = snapshot_of(opened(self.start, clock))
        self._known = frozenset(row[-1] for row in rows)
        self.before = self.seen(rows)
        done, clock = copy_of(self.start)
        action.run(opened(done, clock))
        self.rows_after = snapshot_of(opened(done, clock))
        self.after = self.seen(self.rows_after)

    def seen(self, rows):
        """In memory the clock, and so the instants, are the same in every run."""
        return tuple(rows) if SERVER is None else told_by(self._known, rows)


@cache
def scene_of(name):
    return Scene(MORE_ACTIONS[name])


class Interrupted(FaultStorage):
    """Raises once: at the start of the call `at` of all calls, reads too, or right after it has done its work."""

    def __init__(self, inner, at, moment, error):
        self.at, self.moment, self.error = at, moment, error
        self.calls = 0
        self.changes = []
        super().__init__(inner)

    def _strikes(self):
        self.calls += 1
        return self.calls == self.at

    def _living(self):
        strikes = self._strikes()
        if strikes and self.moment == "before":
            raise self.error
        return super()._living()

    def _change(self, verb, path, act, *, torn=None):
        result = super()._change(verb, path, act, torn=torn)
        self.changes.append(self.calls)
        if self.calls == self.at and self.moment == "after":
            self.at = 0
            raise self.error
        return result


def goes_on(table, storage, scene, where):
    """The same handle, in the same thread, right after the interrupt."""
    seen = snapshot_of(table)
    assert scene.seen(seen) in (scene.before, scene.after), where
    assert not held_now(), where
    expected = scene.rows_after if is_decided(storage) else seen  # the next writer puts the completed file
    result = table.upsert(batch([NEXT]))
    if table.config.table_type == "MERGE_ON_READ":
        table.compact()
    rows = snapshot_of(opened(storage))
    assert {(id_, part, val, ts) for id_, part, val, ts, _ in rows} == {row[:4] for row in expected} | {
        ("next", "a", 1, 1)
    }, where
    assert result.instant
    if table.pending_log_compactions():  # its plan stands, for whoever runs it
        table.run_log_compaction()
    if table.pending_clusterings():
        table.run_clustering()
    assert not table.timeline.pending(), where
    assert leftovers(storage) == [], where
    if scene.action.name == "repair":
        repair(table)
    assert stray_files(storage, table) == [], where
    assert not held_now(), where
    assert threads_left(EARLIER["threads"]) == [], where


EARLIER = {"held": [], "threads": []}


@pytest.fixture(autouse=True)
def what_earlier_tests_left():
    EARLIER["held"], EARLIER["threads"] = list(held_by_this_thread()), threads_of_ours()


def held_now():
    return [held for held in held_by_this_thread() if held not in EARLIER["held"]]


@pytest.mark.parametrize("error", long_but([KeyboardInterrupt], ERRORS))
@pytest.mark.parametrize("name", long_but(OFTEN, MORE_ACTIONS))
def test_an_interrupt_at_any_storage_call(name, error):
    scene = scene_of(name)
    counted, clock = copy_of(scene.start)
    probe = Interrupted(counted, 0, "before", error)
    table = opened(probe, clock)
    probe.calls = 0
    scene.action.run(table)
    points = [(at, "before") for at in range(1, probe.calls + 1)] + [(at, "after") for at in probe.changes]
    points = points[(error is MemoryError) :: CALL_STRIDE * EVERY]
    TRIED["places"] += len(points)
    for at, moment in points:
        storage, clock = copy_of(scene.start)
        striking = Interrupted(storage, 0, moment, error)
        table = opened(striking, clock)
        striking.calls, striking.at = 0, at
        with contextlib.suppress(error):  # nothing else may come out, and nothing where the table is not hurt
            scene.action.run(table)
        striking.at = 0
        goes_on(table, striking, scene, (at, moment))


# -- at every line: what a signal can interrupt between the calls of the storage


@pytest.mark.parametrize("name", long_but(["compaction"], MORE_ACTIONS))
def test_an_interrupt_at_any_line(name):
    scene = scene_of(name)
    counted, clock = copy_of(scene.start)
    table = opened(counted, clock)
    with Steps() as steps:
        scene.action.run(table)
    offset = list(MORE_ACTIONS).index(name) % STRIDE
    places = range(1 + offset, len(steps.seen) + 1, STRIDE * EVERY)
    TRIED["places"] += len(places)
    for at in places:
        storage, clock = copy_of(scene.start)
        table = opened(storage, clock)
        with contextlib.suppress(KeyboardInterrupt), Steps(at) as striking:
            scene.action.run(table)
        goes_on(table, storage, scene, striking.where)


@pytest.mark.long
@pytest.mark.parametrize("name", ["copy-on-write upsert", "compaction"])
def test_an_interrupt_at_any_line_with_locks_of_the_operating_system(name, tmp_path):
    action = MORE_ACTIONS[name]
    action.prepare(LocalStorage(tmp_path / "counted"), None)
    with Steps() as steps:
        action.run(opened(LocalStorage(tmp_path / "counted")))
    locks = [at for at, place in enumerate(steps.seen, 1) if "/lock/" in place[0] or "/txn/" in place[0]]
    table = path = None
    for number, at in enumerate(locks[:: max(1, STRIDE - 2)]):
        if path is None or number % 20 == 0:
            path = tmp_path / str(number)
            action.prepare(LocalStorage(path), None)
        table = opened(LocalStorage(path))
        table.upsert(batch([Input("k0", "a", number, 1000 + number)]))
        with contextlib.suppress(KeyboardInterrupt), Steps(at) as striking:
            action.run(table)
        assert not held_now(), striking.where
        table.upsert(batch([NEXT]))
        if name == "compaction":
            table.compact()
        assert "next" in table.scan().to_arrow().column("id").to_pylist()
        assert not table.timeline.pending(), striking.where
        assert leftovers(LocalStorage(path)) == [], striking.where
        assert threads_left(EARLIER["threads"]) == [], striking.where


@pytest.mark.parametrize("start", long_but(FAILING_STARTS[:1], soak_but(FAILING_STARTS[:2], FAILING_STARTS)), ids=str)
@pytest.mark.parametrize("name", long_but(OFTEN, ACTIONS))
def test_a_thread_that_cannot_start(name, start, monkeypatch):
    scene, (moment, error) = scene_of(name), start
    really = threading.Thread.start
    expected = error if isinstance(error, type) else type(error)
    for number in range(1, 4):
        count = 0

        def strike(self, number=number):
            nonlocal count
            count += 1
            if count == number and moment == "before":
                raise error
            really(self)
            if count == number:
                raise error

        storage, clock = copy_of(scene.start)
        table = opened(storage, clock)
        with (
            monkeypatch.context() as patch,
            contextlib.suppress(expected, HoodieError),
        ):  # of a service it is one of ours
            patch.setattr(threading.Thread, "start", strike)
            scene.action.run(table)
        goes_on(table, storage, scene, number)
        if count < number:
            break
    gc.collect()
