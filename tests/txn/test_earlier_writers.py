"""Whom a write lets go first."""

import threading

import pytest

from hoodie.model.enums import Action, State
from hoodie.model.files import FileGroupId
from hoodie.model.instant import Instant
from hoodie.model.payloads import CommitMetadata, WriteStat
from hoodie.txn.earlier_writers import Ahead, Patience, wait_for
from hoodie.txn.heartbeat import Heartbeat
from tests.memory_tables import new_table, opened

APPENDS, REWRITES, INSERTS = (Instant(f"2026010100000000{n}", Action.DELTACOMMIT, State.INFLIGHT) for n in "123")


def announced(*stats, path="p"):
    found = tuple(
        WriteStat(file_id, path, path="", log_version=version, num_inserts=inserts)
        for file_id, version, inserts in stats
    )
    return CommitMetadata(write_stats={path: found})


AHEAD = Ahead(
    {
        APPENDS: announced(("f", 3, 0), ("f", 4, 0), ("g", 1, 0)),
        REWRITES: announced(("h", None, 0)),
        INSERTS: announced(("new", None, 9)),
    }
)


def test_log_versions_are_the_highest_that_were_named():
    assert AHEAD.log_versions() == {FileGroupId("p", "f"): 4, FileGroupId("p", "g"): 1}


@pytest.mark.parametrize(
    ("ours", "rewriting", "meeting"),
    [
        (announced(("f", 5, 0)), set(), {APPENDS}),
        (announced(("f", None, 0)), {APPENDS}, {APPENDS}),
        (announced(("h", 1, 0)), {REWRITES}, {REWRITES}),
        (announced(("other", None, 1)), set(), {INSERTS}),
        (announced(("f", 1, 0), path="q"), set(), set()),
        (announced(("other", None, 1), path="q"), set(), set()),
        (CommitMetadata(), set(), set()),
    ],
)
def test_work_on_a_file_group_is_vain_where_one_of_two_rewrites_it(ours, rewriting, meeting):
    assert AHEAD.rewriting(ours) == rewriting
    assert AHEAD.meeting(ours) == meeting


def test_nobody_waits_for_a_write_that_has_lost_already():
    later = Instant("20260101000000009", Action.DELTACOMMIT, State.COMPLETED)
    earlier = later._replace(time="20260101000000000")
    ours = announced(("f", None, 0), ("h", None, 1))
    assert Ahead.of(AHEAD.writes, [(earlier, ours)]).rewriting(ours) == {APPENDS, REWRITES}
    assert Ahead.of(AHEAD.writes, [(later, announced(("h", 1, 0)))]).rewriting(ours) == {APPENDS}
    assert Ahead.of(AHEAD.writes, [(later, announced(("x", None, 1)))]).meeting(ours) == {APPENDS, REWRITES}
    assert Ahead.of(AHEAD.writes, [(later, announced(("h", 1, 0)))]).log_versions() == AHEAD.log_versions()


@pytest.fixture
def pending():
    """A table with a pending write, which another thread holds alive until it is told to end."""
    storage, clock = new_table(table_type="MERGE_ON_READ")
    context = opened(storage, clock)._context
    instant = Instant("20251124160000000", Action.DELTACOMMIT, State.INFLIGHT)
    held, end = threading.Event(), threading.Event()

    def work():
        heartbeat = Heartbeat(instant.time, context)
        heartbeat.hold()
        heartbeat.start()
        held.set()
        end.wait(30)
        heartbeat.abandon()

    context.active.create(instant._replace(state=State.REQUESTED))
    context.active.create(instant)
    thread = threading.Thread(target=work)
    thread.start()
    assert held.wait(30)
    yield context, instant, clock, end, thread
    end.set()
    thread.join(30)


def test_one_waits_no_longer_than_ones_patience(pending):
    context, instant, clock, _, _ = pending
    before = clock.slept_s
    patience = Patience(5.0)
    wait_for(context, frozenset({instant}), patience)
    assert patience.left_s == 0
    assert clock.slept_s - before == pytest.approx(5.0)
    assert not patience.pause(context.clock)


def test_nobody_waits_for_what_is_completed_dead_or_somewhere_else(pending):
    context, instant, clock, end, thread = pending
    other = instant._replace(time="20251124160000001")
    wait_for(context, frozenset({other}), Patience(5.0))
    end.set()
    thread.join(30)
    wait_for(context, frozenset({instant}), Patience(5.0))
    assert clock.slept_s == 0


def test_nobody_waits_for_what_the_same_thread_is_doing():
    storage, clock = new_table(table_type="MERGE_ON_READ")
    context = opened(storage, clock)._context
    instant = Instant("20251124160000000", Action.DELTACOMMIT, State.INFLIGHT)
    context.active.create(instant._replace(state=State.REQUESTED))
    context.active.create(instant)
    heartbeat = Heartbeat(instant.time, context)
    heartbeat.hold()
    heartbeat.start()
    try:
        wait_for(context, frozenset({instant}), Patience(5.0))
        assert clock.slept_s == 0
    finally:
        heartbeat.abandon()
