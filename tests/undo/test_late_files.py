"""Archiving beside what was undone: files that come late, and restores whose process died."""

from contextlib import suppress

import pytest

from hoodie.model.enums import Action
from hoodie.model.names import format_log_file, name_of, parse_log_file
from hoodie.storage.cache import Cache
from hoodie.storage.faults import FaultStorage, InjectedFault, crash_points
from hoodie.timeline.archive import ArchivedTimeline
from hoodie.write.attempt import Attempt
from tests.effort import long_but
from tests.memory_tables import Input, batch, copy_of, new_table, opened, plain, snapshot_of
from tests.placed import in_memory

KINDS = ["COPY_ON_WRITE", "MERGE_ON_READ"]
DIES_UNDECIDED = in_memory("a storage without renames has decided for the commit before it is on the timeline")


def rows(turn):
    return batch([Input(f"k{n}", "ab"[n % 2], turn, turn) for n in range(4)])


def written(kind, turns):
    storage, clock = new_table(table_type=kind)
    table = opened(storage, clock)
    for turn in range(turns):
        table.upsert(rows(turn))
    return storage, clock, table


class DiesBeforePublishing(FaultStorage):
    def create_new(self, path, data, *, via=None, durable=True):
        if path.endswith("commit"):
            raise InjectedFault("died")
        super().create_new(path, data, via=via, durable=durable)


def elsewhere(storage, clock):
    """The table as another process has it."""
    return opened(storage, clock, cache=Cache())


@DIES_UNDECIDED
def test_a_late_file_does_not_come_alive_where_the_timeline_comes_to_begin_between_its_write_and_the_rollback(
    monkeypatch,
):
    """The write was pending while others committed, so its rollback came after them."""
    storage, clock, table = written("COPY_ON_WRITE", 3)
    publish, others = Attempt.publish, []

    def published_beside_others(self, *args):
        if not others:
            others.append("begun")
            others.append(opened(storage, clock).upsert(batch([Input("z", "z", 0, 0)])).instant)
        return publish(self, *args)

    class DiesAfterOthers(FaultStorage):
        def create_new(self, path, data, *, via=None, durable=True):
            if path.endswith(".commit") and len(others) == 2 and others[1] not in path:
                raise InjectedFault("died")
            super().create_new(path, data, via=via, durable=durable)

    monkeypatch.setattr(Attempt, "publish", published_beside_others)
    with pytest.raises(InjectedFault):
        opened(DiesAfterOthers(storage), clock).upsert(rows(50))
    storage, clock = copy_of(storage)  # nothing of its marks is held any more
    table = opened(storage, clock)
    (dead,) = (i.time for i in table.timeline.pending_writes)
    assert dead < others[1]
    late = next(i.path for i in storage.list("a") if dead in i.path)
    content = storage.read(late)
    assert table.rollback() == [dead]
    for turn in range(3, 6):
        table.upsert(rows(turn))
    assert not storage.exists(late)
    storage.create_new(late, content)
    result = table.archive(min_commits=4)
    assert dead < result.earliest == others[1] < table.timeline.newest(Action.ROLLBACK).time
    assert not storage.exists(late)
    assert {row[2] for row in snapshot_of(elsewhere(storage, clock)) if row[0] != "z"} == {5}


@DIES_UNDECIDED
def test_a_log_that_came_after_its_write_was_rolled_back_does_not_come_alive_and_those_that_were_there_stay():
    storage, clock, table = written("MERGE_ON_READ", 2)

    there = {i.path for i in storage.list("a")}
    with pytest.raises(InjectedFault):
        opened(DiesBeforePublishing(storage), clock).upsert(rows(50))
    (log,) = {i.path for i in storage.list("a")} - there
    content = storage.read(log)
    table.upsert(rows(2))  # rolls it back
    # As where a copy of a table has lost its times: the plan says what was there.
    storage.delete(log)
    storage.create_new(log, content)
    dead = table._context.active.rollback_target(table.timeline.newest(Action.ROLLBACK))
    name = parse_log_file(name_of(log))
    late = f"a/{format_log_file(name._replace(version=90))}"
    storage.create_new(late, content)
    for turn in range(3, 9):
        table.upsert(rows(turn))
        if turn == 5:
            table.compact()
    one_delta = {"hoodie.compact.inline.max.delta.commits": "1"}
    assert dead < table.archive(one_delta, min_commits=2).earliest
    assert not storage.exists(late)
    assert storage.exists(log)
    assert {row[2] for row in snapshot_of(elsewhere(storage, clock))} == {8}


@DIES_UNDECIDED
@pytest.mark.parametrize("kind", KINDS)
def test_archiving_does_not_read_the_archive_for_rollbacks_that_left_nothing(kind, monkeypatch):
    """The archive grows without end, and rollbacks stay on the timeline for long."""
    storage, clock, table = written(kind, 2)

    with pytest.raises(InjectedFault):
        opened(DiesBeforePublishing(storage), clock).upsert(rows(50))
    for turn in range(2, 9):
        table.upsert(rows(turn))
    read = []
    whole = ArchivedTimeline.instants.func
    monkeypatch.setattr(ArchivedTimeline, "instants", property(lambda self: read.append(self) or whole(self)))
    one_delta = {"hoodie.compact.inline.max.delta.commits": "1"}
    if kind == "MERGE_ON_READ":
        table.compact()
    for least in (4, 2):
        assert table.archive(one_delta, min_commits=least).instants
    assert table.timeline.newest(Action.ROLLBACK)
    assert not read
    assert {row[2] for row in snapshot_of(elsewhere(storage, clock))} == {8}


@DIES_UNDECIDED
@pytest.mark.parametrize("kind", KINDS)
def test_late_files_of_several_undone_writes_in_one_partition_all_go(kind):
    storage, clock, table = written(kind, 2)
    late = {}
    for turn in range(3):
        there = {i.path for i in storage.list("a")}
        with pytest.raises(InjectedFault):
            opened(DiesBeforePublishing(storage), clock).upsert(rows(50 + turn))
        (file,) = {i.path for i in storage.list("a")} - there
        name = parse_log_file(name_of(file))
        content = storage.read(file)
        assert len(table.rollback()) == 1
        again = f"a/{format_log_file(name._replace(version=90 + turn))}" if name else file
        late[again] = content
    for path, content in late.items():
        storage.create_new(path, content)
    for turn in range(2, 9):
        table.upsert(rows(turn))
        if turn == 5 and kind == "MERGE_ON_READ":
            table.compact()
    table.archive({"hoodie.compact.inline.max.delta.commits": "1"}, min_commits=2)
    assert not [path for path in late if storage.exists(path)]
    assert {row[2] for row in snapshot_of(elsewhere(storage, clock))} == {8}


@DIES_UNDECIDED
@pytest.mark.parametrize("kind", KINDS)
def test_archiving_lists_a_partition_as_often_for_many_rollbacks_as_for_one(kind):
    class Lists(FaultStorage):
        def list(self, folder, *, recursive=False):
            listed.append(folder)
            return super().list(folder, recursive=recursive)

    counts = {}
    for rollbacks in (1, 5):
        storage, clock, table = written(kind, 2)
        for turn in range(rollbacks):
            with pytest.raises(InjectedFault):
                opened(DiesBeforePublishing(storage), clock).upsert(rows(50 + turn))
            assert len(table.rollback()) == 1
        for turn in range(2, 9):
            table.upsert(rows(turn))
        table.compact() if kind == "MERGE_ON_READ" else None
        listed: list[str] = []
        archived = elsewhere(Lists(storage), clock).archive(
            {"hoodie.compact.inline.max.delta.commits": "1"}, min_commits=2
        )
        assert archived.instants
        counts[rollbacks] = {each: listed.count(each) for each in "ab"}
    assert counts[1] == counts[5]
    assert counts[1]["a"] > 0


@pytest.mark.parametrize("late_file", ["base", "log"])
def test_a_file_of_a_commit_that_a_restore_undid_does_not_come_alive(late_file):
    kind = "COPY_ON_WRITE" if late_file == "base" else "MERGE_ON_READ"
    storage, clock, table = written(kind, 3)
    saved = table.timeline.latest_commit.time
    there = {i.path for i in storage.list("a")}
    undone = table.upsert(rows(50)).instant
    (late,) = {i.path for i in storage.list("a")} - there
    content = storage.read(late)
    clock.now_s += 5
    table.restore(saved)
    if late_file == "log":
        name = parse_log_file(name_of(late))
        late = f"a/{format_log_file(name._replace(version=90))}"
    storage.create_new(late, content)
    for turn in range(3, 9):
        table.upsert(rows(turn))
        if turn == 5 and late_file == "log":
            table.compact()
    one_delta = {"hoodie.compact.inline.max.delta.commits": "1"}
    assert undone < table.archive(one_delta, min_commits=2).earliest
    assert not storage.exists(late)
    assert {row[2] for row in snapshot_of(elsewhere(storage, clock))} == {8}
    restore = table.timeline.newest(Action.RESTORE)
    table.archive(one_delta, min_commits=1)
    assert elsewhere(storage, clock).timeline.newest(Action.RESTORE) == restore  # who pulled beyond it is told for ever


@pytest.mark.parametrize("share", long_but([0], range(4)))
@pytest.mark.parametrize("kind", long_but(["COPY_ON_WRITE"], KINDS))
def test_archiving_beside_a_restore_whose_process_died_keeps_what_it_goes_back_to(kind, share):
    storage, _, table = written(kind, 8)
    table.compact() if kind == "MERGE_ON_READ" else None
    target = table.timeline.commits[-4].time
    then = plain(table.scan(as_of=target, meta_columns=True))
    now, history = snapshot_of(table), [r.instant for r in table.history()]
    whole, its_clock = copy_of(storage)
    traced = FaultStorage(whole)
    opened(traced, its_clock).restore(target)
    seen = set()
    for fault in list(crash_points(traced.trace))[share::4]:
        dead, its_clock = copy_of(storage)
        with suppress(InjectedFault):
            opened(FaultStorage(dead, [fault]), its_clock).restore(target)
        bare, its_clock = copy_of(dead)
        between = elsewhere(bare, its_clock)
        before = snapshot_of(between)
        assert before in (now, then), fault
        seen.add(before == then)
        between.archive({"hoodie.compact.inline.max.delta.commits": "1"}, min_commits=1)
        assert snapshot_of(elsewhere(bare, its_clock)) == before, fault
        again = elsewhere(bare, its_clock)
        again.upsert(batch([Input("next", "a", 1, 1)]))
        assert [row for row in snapshot_of(elsewhere(bare, its_clock)) if row[0] != "next"] == before, fault
        kept = history if before == now else [time for time in history if time <= target]
        assert [r.instant for r in again.history(archived=True)][: len(kept)] == kept, fault
        assert not again.timeline.pending(Action.RESTORE)
    assert True in seen
