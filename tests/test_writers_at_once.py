"""A write whose instant comes after that of another one, which is completed while it is at work: what it writes again, and what stays.

The rules: docs/contributing/decisions/writers.md, "Writers wait for smaller instants".
"""

import threading

import pytest

from hoodie.engine.local import LocalEngine
from hoodie.model.enums import Action, TableType
from hoodie.model.names import MARKERS, parse_log_file
from hoodie.storage.faults import FaultStorage, InjectedFault, crash_points
from hoodie.storage.memory import MemoryStorage
from hoodie.table import open_at
from tests.begun import begun
from tests.bucket import BucketStorage
from tests.engines import Meanwhile
from tests.memory_tables import (
    FakeClock,
    Input,
    batch,
    copy_of,
    create,
    keys,
    leftovers,
    new_storage,
    new_table,
    opened,
    snapshot_of,
    stray_files,
)

KINDS = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
TAKES_NO_TURNS = {"hoodie.write.concurrency.early.conflict.detection.enable": "false"}
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
PATIENCE_S = 300


class Watched(LocalEngine):
    """Counts the tasks of each step; before the first write it says that the write is planned, and waits for the other one."""

    def __init__(self, planned, done):
        super().__init__(1)
        self._planned, self._done = planned, done
        self.looked_up, self.written = [], []

    def run(self, fn, tasks, *, label, at_once=1):
        if "look up" in label:
            self.looked_up.append(sum(len(pack.tasks) for pack in tasks))
        if "write files" in label:
            self.written.append(sum(len(parcel) for parcel in tasks))
            self._planned.set()
            assert self._done.wait(PATIENCE_S)
        return super().run(fn, tasks, label=label)


def at_once(storage, clock, first, second, *, turns=False):
    """Run `second` so that its instant is the greater one and `first` is completed before it; gives its result and engine.

    With `turns` it waits for the other before it writes, else it has written its files by then.
    """
    planned, done = threading.Event(), threading.Event()
    engine = Watched(planned, done)
    results = []

    def pause(seconds):
        planned.set()
        assert done.wait(PATIENCE_S)
        clock.sleep(seconds)

    later = open_at(
        storage, engine=engine, options={} if turns else TAKES_NO_TURNS, sleep=pause if turns else clock.sleep
    )
    thread = threading.Thread(target=lambda: results.append(second(later)))

    def start():
        thread.start()
        assert planned.wait(PATIENCE_S)

    try:
        earlier = first(open_at(storage, engine=Meanwhile("write files", start), sleep=clock.sleep))
    finally:
        done.set()
        thread.join(PATIENCE_S)
    assert results, "the second write failed"
    assert results[0].instant > earlier.instant
    return results[0], engine


def values(storage, clock):
    return {row[0]: row[2] for row in snapshot_of(opened(storage, clock))}


def begins_anew(table):
    """Whether a write that lost is rolled back and takes another instant, where it would be mended on version 6."""
    return table.config.layout.by_completion and table.config.table_type is TableType.MERGE_ON_READ


def require_whole(storage, clock, commits):
    """Both writes are there, neither was rolled back, and nothing is left over."""
    table = opened(storage, clock)
    assert len(table.timeline.commits) == commits
    assert begins_anew(table) or not [each for each in table.timeline if each.action is Action.ROLLBACK]
    assert leftovers(storage) == []
    assert stray_files(storage, table) == []


UP = {
    "other keys": ([Input("k", "a", 2, 2)], [Input("l", "a", 3, 3)], {"k": 2, "l": 3, "m": 1}),
    "the same key": ([Input("k", "a", 2, 2)], [Input("k", "a", 3, 2)], {"k": 3, "l": 1, "m": 1}),
    "a row that is older": ([Input("k", "a", 2, 9)], [Input("k", "a", 3, 3)], {"k": 2, "l": 1, "m": 1}),
    "new keys": ([Input("n", "a", 2, 2)], [Input("o", "a", 3, 3)], {"k": 1, "l": 1, "m": 1, "n": 2, "o": 3}),
    "the same new key": ([Input("n", "a", 2, 2)], [Input("n", "a", 3, 3)], {"k": 1, "l": 1, "m": 1, "n": 3}),
    "deleted, then updated": (
        [Input("k", "a", 2, 2, True)],
        [Input("k", "a", 3, 3), Input("l", "a", 3, 3)],
        {"k": 3, "l": 3, "m": 1},
    ),
    "deleted, then updated by an older row": (
        [Input("k", "a", 2, None, True)],
        [Input("k", "a", 3, 0), Input("l", "a", 3, 3)],
        {"k": 3, "l": 3, "m": 1},
    ),
    "inserted, then deleted": ([Input("n", "a", 2, 2)], [Input("n", "a", 3, 3, True)], {"k": 1, "l": 1, "m": 1}),
    "another partition": ([Input("m", "b", 2, 2)], [Input("l", "a", 3, 3)], {"k": 1, "l": 3, "m": 2}),
}


BASE = [Input("k", "a", 1, 1), Input("l", "a", 1, 1), Input("m", "b", 1, 1)]
INDEXES = pytest.mark.parametrize("index", [{}, BUCKETS], ids=["bloom", "bucket"])


@KINDS
@INDEXES
@pytest.mark.parametrize("case", UP)
def test_a_write_that_another_one_was_completed_before_keeps_its_instant_and_comes_after_it(kind, index, case):
    storage, clock = new_table(table_type=kind, more=index)
    opened(storage, clock).upsert(batch(BASE))
    first, second, expected = UP[case]
    result, _ = at_once(storage, clock, lambda t: t.upsert(batch(first)), lambda t: t.upsert(batch(second)))
    assert values(storage, clock) == expected
    assert opened(storage, clock).timeline.latest_commit.time == result.instant
    require_whole(storage, clock, 3)


@KINDS
@pytest.mark.parametrize("case", UP)
def test_on_version_9_rows_are_the_same_and_a_merge_on_read_write_takes_another_instant(kind, case):
    storage, clock = new_table(table_type=kind, more={"hoodie.write.table.version": "9"})
    opened(storage, clock).upsert(batch(BASE))
    first, second, expected = UP[case]
    result, _ = at_once(storage, clock, lambda t: t.upsert(batch(first)), lambda t: t.upsert(batch(second)))
    assert values(storage, clock) == expected
    table = opened(storage, clock)
    assert table.timeline.latest_commit.time == result.instant
    assert len(table.timeline.commits) == 3
    assert leftovers(storage) == []
    assert stray_files(storage, table) == []


@INDEXES
@pytest.mark.parametrize("case", [case for case in UP if case != "another partition"])
def test_a_write_lets_an_earlier_one_go_first_that_rewrites_the_same_file_group(index, case):
    storage, clock = new_table(table_type="COPY_ON_WRITE", more={**index, "hoodie.bucket.index.num.buckets": "1"})
    opened(storage, clock).upsert(batch(BASE))
    first, second, expected = UP[case]
    _, engine = at_once(storage, clock, lambda t: t.upsert(batch(first)), lambda t: t.upsert(batch(second)), turns=True)
    assert len(engine.written) == 1  # no work was in vain
    assert values(storage, clock) == expected
    require_whole(storage, clock, 3)


def test_logs_stay_beside_those_of_the_other_write():
    storage, clock = new_table(table_type="MERGE_ON_READ", ordering=None)
    opened(storage, clock).upsert(batch(BASE))
    result, engine = at_once(
        storage,
        clock,
        lambda t: t.upsert(batch([Input("k", "a", 2), Input("l", "a", 2)])),
        lambda t: t.upsert(batch([Input("k", "a", 3)])),
    )
    assert engine.written == [1]
    assert values(storage, clock) == {"k": 3, "l": 2, "m": 1}
    names = [parse_log_file(info.name) for info in storage.list("a")]
    versions = [1, 1] if begins_anew(opened(storage, clock)) else [1, 2]  # of logs that are a commit's own
    assert sorted(name.version for name in names if name is not None) == versions
    assert result.updated == 1
    require_whole(storage, clock, 3)


@INDEXES
def test_only_the_file_groups_that_the_other_write_changed_are_looked_into_and_written_again(index):
    storage, clock = new_table(table_type="COPY_ON_WRITE", more=index)
    opened(storage, clock).upsert(batch([Input(f"k{part}", part, 1, 1) for part in "abcd"]))
    _, engine = at_once(
        storage,
        clock,
        lambda t: t.upsert(batch([Input("kb", "b", 2, 2), Input("new", "b", 2, 2)])),
        lambda t: t.upsert(batch([Input(f"k{part}", part, 3, 3) for part in "abcd"])),
    )
    assert engine.written == [4, 1]
    assert engine.looked_up == ([] if index else [4, 1])
    assert values(storage, clock) == {"ka": 3, "kb": 3, "kc": 3, "kd": 3, "new": 2}
    require_whole(storage, clock, 3)


@KINDS
def test_a_partial_update_is_completed_from_what_the_other_write_stored(kind):
    storage, clock = new_table(table_type=kind)
    opened(storage, clock).upsert(batch(BASE))
    partial = batch([Input("k", "a", None, 3)]).select(["id", "part", "ts"])
    at_once(
        storage,
        clock,
        lambda t: t.upsert(batch([Input("k", "a", 2, 2)])),
        lambda t: t.upsert(partial, options={"hoodie.python.upsert.partial": "true"}),
    )
    assert values(storage, clock) == {"k": 2, "l": 1, "m": 1}
    require_whole(storage, clock, 3)


@KINDS
def test_a_delete_finds_what_the_other_write_inserted(kind):
    storage, clock = new_table(table_type=kind)
    opened(storage, clock).upsert(batch(BASE))
    at_once(
        storage,
        clock,
        lambda t: t.insert(batch([Input("n", "a", 2, 2)])),
        lambda t: t.delete(keys([Input("n", "a"), Input("k", "a")])),
    )
    assert values(storage, clock) == {"l": 1, "m": 1}
    require_whole(storage, clock, 3)


# -- at every moment -----------------------------------------------------------------------------------------------------

EARLIER, LATER, NEXT = (
    [Input("k", "a", 2, 2), Input("n", "a", 2, 2), Input("m", "b", 2, 2)],
    [Input("k", "a", 3, 3), Input("n", "a", 3, 3), Input("p", "c", 3, 3)],
    [Input("next", "d", 4, 4)],
)
AFTER_EARLIER = {"k": 2, "l": 1, "m": 2, "n": 2}
AFTER_LATER = {**AFTER_EARLIER, "k": 3, "n": 3, "p": 3}


class ActsAtMarkers(FaultStorage):
    """Calls `act` once, when the first marker is made: right before files get their final names."""

    act = None

    def touch(self, path):
        if self.act is not None and path.startswith(MARKERS):
            act, self.act = self.act, None
            act()
        super().touch(path)


def overtaken(storage, clock, faulty, moment):
    """Upsert `LATER` on a storage with faults; at some moment the write of `EARLIER` is completed. Whether it died."""
    with begun(opened(storage, clock), batch(EARLIER)) as end:
        engine = LocalEngine(1)
        if moment == "while it writes":
            engine = Meanwhile("write files", end)
        else:
            faulty.act = end
        try:
            open_at(faulty, engine=engine, sleep=clock.sleep).upsert(batch(LATER))
        except InjectedFault:
            return True
        finally:
            end()
    return False


MOMENTS = ("while it writes", "while it publishes")


def test_a_log_that_has_its_name_is_never_taken_away():
    """A reader may have listed it, and look into it at any moment."""
    clock = FakeClock()
    storage = new_storage(clock)
    create(storage, table_type="MERGE_ON_READ")
    opened(storage, clock).upsert(batch(BASE))
    acting = ActsAtMarkers(storage)
    partial = batch([Input("k", "a", None, 3)]).select(["id", "part", "ts"])
    with begun(opened(storage, clock), batch(EARLIER)) as end:
        acting.act = end
        opened(acting, clock).upsert(partial, options={"hoodie.python.upsert.partial": "true"})
    assert values(storage, clock) == AFTER_EARLIER
    table = opened(storage, clock)
    assert [i.action for i in table.timeline if i.action is Action.ROLLBACK]  # it began anew
    logs = [call for call in acting.trace if call.verb == "delete" and ".log." in call.path]
    assert logs == [] or begins_anew(table)  # whose readers look at no log of a write that is not completed


STORES = {"memory": MemoryStorage, "bucket": BucketStorage}
ALL = [(kind, moment, store) for kind in ("COPY_ON_WRITE", "MERGE_ON_READ") for moment in MOMENTS for store in STORES]


@pytest.mark.long
@pytest.mark.parametrize("scene", ALL, ids=", ".join)
def test_a_writer_that_dies_at_any_call_while_it_mends_a_conflict_loses_nothing_and_shows_nothing(scene):
    kind, moment, store = scene
    clock = FakeClock()
    start = new_storage(clock, STORES[store])
    create(start, table_type=kind)
    opened(start, clock).upsert(batch(BASE))

    def run(faults):
        storage, clock = copy_of(start)
        faulty = ActsAtMarkers(storage, faults)
        died = overtaken(storage, clock, faulty, moment)
        return storage, clock, faulty, died

    storage, clock, traced, died = run([])
    assert not died
    assert values(storage, clock) == AFTER_LATER
    require_whole(storage, clock, 3)
    tried = 0
    for fault in crash_points(traced.trace):
        storage, clock, _, died = run([fault])
        assert died, fault
        found = values(storage, clock)
        assert found in (AFTER_EARLIER, AFTER_LATER), fault
        opened(storage, clock).upsert(batch(NEXT))
        if store == "bucket" and AFTER_LATER.items() <= values(storage, clock).items():
            found = AFTER_LATER  # it had been decided, and the next writer put the file that completes it
        assert values(storage, clock) == {**found, "next": 4}, fault
        table = opened(storage, clock)
        pulled = table.changes().to_arrow()
        assert dict(zip(pulled["id"].to_pylist(), pulled["val"].to_pylist(), strict=True)) == {**found, "next": 4}, (
            fault
        )
        assert leftovers(storage) == [], fault
        assert stray_files(storage, table) == [], fault
        tried += 1
    assert tried > 30
